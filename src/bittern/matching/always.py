"""Always-candidates: classes that no index can look up, run in full for each event.

``a IS NULL`` holds for events that lack ``a``, so there is no cell to file it under::

    classes  3  8                 numbers under which they are reported
    starts   0  1  3              rows of their programs (``matching/program.py``)
    rows     [a -1 -1 r] [b -1 -1 r] [c 4 4 r]

Cost: O(events x classes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import prefixed, ranges, record_of, starts_of, under
from bittern.jit import i4r, i4r2, i4w, i8, i8w, kernel
from bittern.matching.output import Output
from bittern.matching.program import accepts, programs
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EVENTS, EncodedEvents


@kernel(i8, i4r, i4r, i4r, i4r2, EVENTS, i8, i4w, i4w, i8w)
def _run(
    numbers: Any,
    places: Any,
    starts: Any,
    rows: Any,
    events: Any,
    n_events: Any,
    out_rows: Any,
    out_classes: Any,
    state: Any,
) -> Any:
    """Run the programs at ``places`` for events from ``state[0]`` on, while there is room."""
    matrix, width, table_starts, table, entries = events
    event, n = state[0], state[2]
    while event < n_events and n + len(places) <= len(out_rows):
        for i in range(len(places)):
            start, stop = np.int64(starts[places[i]]), np.int64(starts[places[i] + 1])
            if accepts(matrix, width, table_starts, table, entries, event, rows, start, stop):
                out_rows[n] = event
                out_classes[n] = numbers[i]
                n += 1
        event += 1
    state[0], state[2] = event, n
    return event


def run_programs(
    numbers: npt.NDArray[np.int32],
    places: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    events: EncodedEvents,
    out: Output,
) -> None:
    """Run the programs at ``places`` for every event; what accepts is reported as ``numbers``."""
    out.state[0] = 0
    out.make_room(len(places))
    while (
        _run(
            numbers,
            places,
            starts,
            rows,
            events.by_event,
            events.n_events,
            out.rows,
            out.classes,
            out.state,
        )
        < events.n_events
    ):
        out.make_room(len(places))


class Always(NamedTuple):
    """Always-candidates of an index that changes; a change makes a new one."""

    classes: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls, classes: Classes, which: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32]
    ) -> Always:
        """Classes ``which`` of some, reported under ``numbers``. O(tests)."""
        starts, rows = programs(classes, which)
        return cls(numbers.astype(np.int32), starts, rows)

    def match(self, events: EncodedEvents, out: Output) -> None:
        """Add the matches of every event."""
        if len(self.classes):
            places = np.arange(len(self.classes), dtype=np.int32)
            run_programs(self.classes, places, self.starts, self.rows, events, out)

    def with_more(self, more: Always) -> Always:
        """These and more."""
        return Always(
            np.concatenate((self.classes, more.classes)),
            np.concatenate((self.starts, self.starts[-1] + more.starts[1:])),
            np.concatenate((self.rows, more.rows)),
        )

    def without(self, numbers: npt.NDArray[np.int32]) -> Always:
        """All but the classes of these numbers."""
        kept = ~np.isin(self.classes, numbers)
        sizes = np.diff(self.starts)
        starts = starts_of(sizes[kept], np.int32)
        return Always(self.classes[kept], starts, self.rows[np.repeat(kept, sizes)])

    def holds(
        self, classes: Classes, which: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32]
    ) -> bool:
        """Whether, of the classes of these numbers, it has just ``which``, with their programs."""
        order = np.argsort(numbers[which])
        wanted = Always.of(classes, which[order], numbers[which][order])
        own = self.without(np.setdiff1d(self.classes, numbers))
        by_number = np.argsort(own.classes)
        starts, lengths = own.starts[by_number].astype(np.int64), np.diff(own.starts)[by_number]
        rows = own.rows[ranges(starts, lengths.astype(np.int64))]
        return (
            np.array_equal(own.classes[by_number], wanted.classes)
            and np.array_equal(lengths, np.diff(wanted.starts))
            and np.array_equal(rows, wanted.rows)
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be saved."""
        return prefixed("always.", self)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Always:
        """The same again, from an index's arrays."""
        return record_of(cls, under(arrays, "always."))

    def check(self, n_classes: int, n_channels: int, n_cells: int) -> None:
        """Programs tile the rows, tests and jumps go where there is something, numbers exist."""
        from bittern.matching.checks import (  # noqa: PLC0415  only then
            check_jumps,
            check_starts,
            check_tests,
        )

        check_starts(self.starts, self.rows, len(self.classes))
        check_tests(self.rows, n_channels, n_cells)
        check_jumps(np.diff(self.starts).astype(np.int64), self.rows)
        assert ((self.classes >= 0) & (self.classes < n_classes)).all(), (
            "an always-candidate is no class"
        )
        assert len(np.unique(self.classes)) == len(self.classes), "an always-candidate stands twice"
