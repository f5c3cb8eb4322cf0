"""Scan: every class is tested against every event. The definition of truth, and a yardstick.

    starts  0 2 3            class c runs rows starts[c] to starts[c + 1]
    rows    [a 0 4 r] [b 7 7 r] [c 9 9 r]

Cost: O(events x classes), each class stopping at the first test that decides it. Memory: 16 bytes
per test and 4 per class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bittern.jit import i4r, i4r2, i4w, i8, i8w, kernel
from bittern.matching.checks import check_jumps, check_starts, check_tests
from bittern.matching.contract import Found, SubscriptionIndex
from bittern.matching.program import accepts, programs
from bittern.model.classes.classes import Classes
from bittern.model.rank.encoded import EVENTS, EncodedEvents
from bittern.model.rank.space import RankSpace


@kernel(i8, EVENTS, i8, i8, i4r, i4r2, i4w, i4w, i8w)
def _scan(
    events: Any,
    first: Any,
    n_events: Any,
    starts: Any,
    rows: Any,
    out_rows: Any,
    out_classes: Any,
    n_out: Any,
) -> Any:
    """Scan events from ``first`` on while there is room for one more event's matches."""
    matrix, width, table_starts, table, entries = events
    n_classes = len(starts) - 1
    n = 0
    for event in range(first, n_events):
        if n + n_classes > len(out_rows):
            n_out[0] = n
            return event
        for c in range(n_classes):
            first_row, end = np.int64(starts[c]), np.int64(starts[c + 1])
            if accepts(matrix, width, table_starts, table, entries, event, rows, first_row, end):
                out_rows[n] = event
                out_classes[n] = c
                n += 1
    n_out[0] = n
    return n_events


class Scan(SubscriptionIndex):
    """All classes as programs, run one after the other."""

    name: ClassVar[str] = "scan"

    def __init__(self, starts: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]) -> None:
        self._starts = starts
        self._rows = rows

    @classmethod
    def build(
        cls,
        classes: Classes,
        mass: npt.NDArray[np.float64],  # noqa: ARG003
        rank: RankSpace,  # noqa: ARG003
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """Write one program per class. O(tests)."""
        numbers = np.arange(len(classes), dtype=np.int32)
        return cls(*programs(classes, numbers)), numbers

    def match(self, events: EncodedEvents) -> Found:
        """Test everything. O(events x classes)."""
        n_classes = len(self._starts) - 1
        room = max(n_classes, min(1 << 20, n_classes * events.n_events))
        found_rows, found_classes = [], []
        n_out = np.zeros(1, dtype=np.int64)
        event = 0
        while event < events.n_events:
            rows, classes = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
            event = _scan(
                events.by_event,
                event,
                events.n_events,
                self._starts,
                self._rows,
                rows,
                classes,
                n_out,
            )
            found_rows.append(rows[: n_out[0]].copy())
            found_classes.append(classes[: n_out[0]].copy())
        none = np.empty(0, dtype=np.int32)
        return Found(
            np.concatenate([none, *found_rows]),
            np.concatenate([none, *found_classes]),
            np.full(events.n_events, n_classes, dtype=np.int64),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Program starts and rows."""
        return {"starts": self._starts, "rows": self._rows}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        parameters: Mapping[str, Any],  # noqa: ARG003
    ) -> Self:
        """Run the programs in place."""
        return cls(arrays["starts"], arrays["rows"])

    def statistics(self) -> dict[str, Any]:
        """Number of classes and tests."""
        return {"classes": len(self._starts) - 1, "tests": len(self._rows)}

    def check(self, n_channels: int, n_cells: int) -> None:
        """Programs tile the rows; tests and jumps go where there is something."""
        check_starts(self._starts, self._rows, len(self._starts) - 1)
        check_tests(self._rows, n_channels, n_cells)
        check_jumps(np.diff(self._starts).astype(np.int64), self._rows)
