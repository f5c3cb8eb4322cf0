"""The progress of a build: a bar on a terminal, plain lines elsewhere.

::

    parsing  [##############----------]  58 %  580,000 of 1,000,000      on a terminal, redrawn
    parsing: 580,000 of 1,000,000                                        elsewhere, now and then
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

_WIDTH = 24
_REDRAW = 0.1  # seconds between two pictures of the bar
_REPORT = 5.0  # seconds between two lines


class Progress:
    """A callable ``(stage, done, total)`` that draws; O(1) and almost always silent.

    A total of 0 means that it is not known.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._bar = stream.isatty()
        self._stage = ""
        self._last = clock()
        self._drawn = 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` steps of the stage are done, if it is time to."""
        now = self._clock()
        pause = _REDRAW if self._bar else _REPORT
        ended = 0 < total <= done
        turn = stage != self._stage if self._bar else ended
        if not turn and not ended and now - self._last < pause:
            return
        self._stage, self._last = stage, now
        if self._bar:
            self._draw(stage, done, total)
        else:
            self._stream.write(f"{stage}: {_share(done, total)}\n")
            self._stream.flush()

    def _draw(self, stage: str, done: int, total: int) -> None:
        share = min(1.0, done / total) if total else 0.0
        filled = int(share * _WIDTH)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        percent = f"{share:4.0%}" if total else "    "
        line = f"{stage:<10} [{bar}] {percent}  {_share(done, total)}"
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)

    def close(self) -> None:
        """Clear the bar, so that the next output starts on a clean line."""
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0


def _share(done: int, total: int) -> str:
    return f"{done:,} of {total:,}" if total else f"{done:,}"
