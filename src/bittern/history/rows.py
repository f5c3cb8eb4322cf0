"""Rows: numbers by event, one list after the other (what entries hold, which conditions are TRUE).

::

    event     0        1     2
    starts    0        3     3     4
    numbers   4 7 9          7            event 0 has 4, 7 and 9, event 1 none, event 2 has 7
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s, starts_of


class Rows(NamedTuple):
    """Those of event i are ``numbers[starts[i]:starts[i + 1]]``."""

    starts: Int64s
    numbers: npt.NDArray[Any]

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Rows:
        """From one list for each event, or for whatever else has lists. O(numbers)."""
        starts = starts_of([len(each) for each in lists])
        return cls(starts, np.array([n for each in lists for n in each], dtype=np.int64))

    @classmethod
    def none(cls, n: int) -> Rows:
        """Nothing for n events."""
        return cls(np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def grouped(cls, events: Int64s, numbers: npt.NDArray[Any], n: int) -> Rows:
        """From the event of each number, in any order; numbers of one stay in theirs. O(numbers)"""
        starts = starts_of(np.bincount(events, minlength=n))
        return cls(starts, numbers[np.argsort(events, kind="stable")])

    def events(self) -> Int64s:
        """The event of each number."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
