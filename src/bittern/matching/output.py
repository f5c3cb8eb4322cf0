"""Matches as kernels find them: buffers that grow when a kernel stops for lack of room.

A kernel writes (event, class) pairs from ``state[2]`` on and stops before it might run out of room,
leaving in ``state[0]`` and ``state[1]`` where to continue; then ``make_room`` and call again::

    rows     0 0 3 . . .      state  (3, 17, 3): event 3, its seventeenth candidate, 3 matches
    classes  5 9 5 . . .
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.jit import i4w, i8w, inline, tuple_type


class OutputArrays(NamedTuple):
    """What kernels write."""

    rows: Int32s
    classes: Int32s
    state: Int64s


OUTPUT = tuple_type(OutputArrays, i4w, i4w, i8w)


class Output:
    """Rows and classes found so far, and where the kernel stopped."""

    def __init__(self) -> None:
        self.rows = np.empty(0, dtype=np.int32)
        self.classes = np.empty(0, dtype=np.int32)
        self.state = np.zeros(3, dtype=np.int64)

    @property
    def arrays(self) -> OutputArrays:
        """As they are now: ``make_room`` replaces them."""
        return OutputArrays(self.rows, self.classes, self.state)

    def make_room(self, needed: int) -> None:
        """Room for ``needed`` more matches, and then as many again as there are."""
        n = int(self.state[2])
        size = 2 * n + needed + 1
        if len(self.rows) < size:
            rows, classes = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
            rows[:n], classes[:n] = self.rows[:n], self.classes[:n]
            self.rows, self.classes = rows, classes


@inline
def first_time(stamps: Any, number: Any, event: Any) -> Any:
    """Whether a class is found for the first time for this event.

    ``stamps``, one for each class, start at 0: most of them are never touched, and so never come
    into memory. The events have to come one after the other.
    """
    number = np.uint64(number)
    stamp = event + 1
    new = stamps[number] != stamp
    stamps[number] = stamp
    return new
