"""The state of a running pipeline: a picture on a terminal, plain lines elsewhere.

On a terminal it is redrawn in place a few times a second. Columns for which there is no room are
left out, the last ones first::

    shop   running for 0:02:10                                  batch 128, catalog version 42
    -----------------------------------------------------------------------------------------
    events/s  matches/s  latency p50  latency p99  behind  rejects     events  matches
       9,800      1,204       0.41 s       0.77 s       0        2  1,204,321  130,200
    -----------------------------------------------------------------------------------------
    batch  version  events  matches  rejects  latency   match  deliver  commit   view   pin
      127       41   9,900    1,190        0   0.43 s  0.30 s    20 ms   90 ms  10 ms  1 ms
      128       42   9,950    1,204        1   0.41 s  0.29 s    20 ms   90 ms   4 ms  1 ms

Elsewhere there is a line every few seconds while batches come, and one a minute while none do::

    batch 128: 9,800 events/s, 1,204 matches/s, latency p50 0.41 s p99 0.77 s, catalog version 42

The reader may go away: output that cannot be written is dropped, and the pipeline continues. Cost:
a few milliseconds for each picture.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TextIO

from bittern.service.report import count

if TYPE_CHECKING:
    from rich.console import Group

    from bittern.spark.streaming.metrics import Done, Figures

_DRAW = 0.25  # seconds between two pictures
_LINE = 5.0  # between two lines, while there is something new
_IDLE_LINE = 60.0  # and while there is not
_BATCHES = 8  # of the last ones in a picture
_AROUND = 9  # lines of a picture beside those
_STAGES = ("match", "deliver", "commit", "view", "pin")  # those that take long first
_GAP = 2  # between two columns


class LiveView:
    """Shows figures. ``show`` may be called any number of times, ``close`` once."""

    def __init__(
        self, name: str, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from rich.console import Console  # noqa: PLC0415 (cold start)
        from rich.live import Live  # noqa: PLC0415

        self._name = name
        self._stream = stream
        self._clock = clock
        self._last = -_IDLE_LINE
        self._batches = 0
        self._gone = False
        self._live: Live | None = None
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        # By its environment, rich takes even a pipe for a terminal.
        if stream.isatty() and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console, auto_refresh=False, redirect_stdout=False,
                redirect_stderr=False,
            )  # fmt: skip
            self._guarded(self._live.start)

    def show(self, figures: Figures) -> None:
        """Show these figures if it is time to."""
        now = self._clock()
        if self._live is not None:
            if now - self._last >= _DRAW:
                self._last = now
                self._draw(figures)
        elif now - self._last >= (_LINE if figures.batches > self._batches else _IDLE_LINE):
            self._last, self._batches = now, figures.batches
            self._guarded(lambda: self._write(as_line(figures)))

    def close(self, figures: Figures) -> None:
        """Show the last figures, unless a line has told them, and leave the terminal as it was."""
        live = self._live
        if live is not None:
            self._draw(figures, over=True)
            self._guarded(live.stop)
        elif figures.batches > self._batches:
            self._guarded(lambda: self._write(as_line(figures)))

    def _draw(self, figures: Figures, *, over: bool = False) -> None:
        live, console = self._live, self._console
        if live is not None:
            size = console.size
            drawn = picture(self._name, figures, size.width, size.height - _AROUND, over=over)
            self._guarded(lambda: live.update(drawn, refresh=not over))  # stopping does it too

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def _guarded(self, call: Callable[[], Any]) -> None:
        if not self._gone:
            try:
                call()
            except (OSError, ValueError):  # the pipe or the terminal was closed, or the stream is
                self._gone = True
                with contextlib.suppress(OSError, ValueError):
                    # What is still in its buffer would fail again at exit.
                    os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


def picture(
    name: str, figures: Figures, width: int, lines: int = _BATCHES, *, over: bool = False
) -> Group:
    """The picture for a terminal of this width, with this many of the last batches."""
    from rich.console import Group  # noqa: PLC0415 (cold start)
    from rich.rule import Rule  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    state = "failed after" if figures.failed else "ran for" if over else "running for"
    left = f"{_plain(name)}   {state} {timedelta(seconds=int(figures.uptime))}"
    right = f"batch {_or_dash(figures.batch_id)}, {_version(figures)}"
    parts: list[Any] = [
        _ends(left, right),
        Rule(style="dim"),
        _table([_totals(figures)], width, "bold cyan"),
    ]
    shown = figures.recent[-min(lines, _BATCHES) :] if lines > 0 else ()
    if shown:
        parts += [Rule(style="dim"), _table([_row(done) for done in shown], width, "")]
    if figures.error is not None:
        parts.append(Text(_plain(figures.error), "red", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def as_line(figures: Figures) -> str:
    """The figures in one line."""
    if figures.batch_id is None:
        return "no batch yet"
    behind = "" if figures.behind is None else f", {count(figures.behind, 'event')} behind"
    error = "" if figures.error is None else f", {_plain(figures.error)}"
    return (
        f"batch {figures.batch_id}: {figures.events_rate:,.0f} events/s, "
        f"{figures.matches_rate:,.0f} matches/s, latency p50 {_seconds(figures.latency_p50)} "
        f"p99 {_seconds(figures.latency_p99)}, {_version(figures)}{behind}, "
        f"{count(figures.events, 'event')}, {count(figures.matches, 'match')}, "
        f"{count(figures.rejects, 'reject')}{error}"
    )


def _ends(left: str, right: str) -> Any:
    """A line with one text at its left end and another at its right end."""
    grid = _grid()
    grid.expand = True
    grid.add_column(no_wrap=True, overflow="ellipsis", style="bold")
    grid.add_column(no_wrap=True, overflow="ellipsis", justify="right")
    grid.add_row(left, right)
    return grid


def _totals(figures: Figures) -> dict[str, str]:
    return {
        "events/s": f"{figures.events_rate:,.0f}",
        "matches/s": f"{figures.matches_rate:,.0f}",
        "latency p50": _seconds(figures.latency_p50),
        "latency p99": _seconds(figures.latency_p99),
        "behind": _or_dash(figures.behind),
        "rejects": f"{figures.rejects:,}",
        "events": f"{figures.events:,}",
        "matches": f"{figures.matches:,}",
    }


def _row(done: Done) -> dict[str, str]:
    report = done.report
    stages = {stage: _seconds(done.seconds.get(stage)) for stage in _STAGES}
    return {
        "batch": f"{report.batch_id:,}",
        "version": f"{report.version:,}",
        "events": f"{report.events:,}",
        "matches": f"{report.matches:,}",
        "rejects": f"{report.rejects:,}",
        "latency": _seconds(done.latency),
        **stages,
    }


def _table(rows: list[dict[str, str]], width: int, style: str) -> Any:
    """The columns for which there is room, at least one."""
    grid = _grid()
    grid.show_header = True
    grid.header_style = "dim"
    room = width + _GAP
    names: list[str] = []
    for name in rows[0]:
        room -= max(len(name), *(len(row[name]) for row in rows)) + _GAP
        if names and room < 0:
            break
        grid.add_column(name, justify="right", no_wrap=True, overflow="ellipsis", style=style)
        names.append(name)
    for row in rows:
        grid.add_row(*(row[name] for name in names))
    return grid


def _grid() -> Any:
    from rich.table import Table  # noqa: PLC0415 (cold start)

    return Table.grid(padding=(0, _GAP))


def _version(figures: Figures) -> str:
    late = f" ({figures.versions_behind:,} behind)" if figures.versions_behind else ""
    return f"catalog version {_or_dash(figures.version)}{late}"


def _or_dash(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _plain(text: str) -> str:
    """The text as one line, without control characters for the terminal."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _seconds(took: float | None) -> str:
    if took is None:
        return "-"
    return f"{took * 1000:.0f} ms" if took < 0.0995 else f"{took:,.2f} s"
