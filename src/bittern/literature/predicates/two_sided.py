"""Two-sided intervals over a predicate index: one end is filed, the other is checked.

An interval that is bounded on both sides is a conjunction, ``>= low AND <= high``, which a
predicate index leaves to a second phase. Here that phase is one comparison: the interval is filed
under one of its two predicates, with the number of a *row* as sid, and the row knows the rest::

    attribute of cells 0 .. 9               predicate      row   ids   others
    id 7  [5, 8]   5 .. 9 or 0 .. 8         >= 5           0     7     8      high, if filed by low
    id 4  [1, 3]   1 .. 9 or 0 .. 3         <= 3           1     4     ~1     ~low, if by high

    value 2: finds row 1, and 2 >= 1: id 4         value 9: finds row 0, but 9 > 8

Of the two predicates the one is taken that fewer cells satisfy, so that a value finds half of the
rows at most, and a quarter on average where intervals lie anywhere. That is what a two-sided
interval costs, however short it is: O(n) candidates for each value.

Rows are found, to be deleted, by asking for the filed end with that end as the only key of its
attribute. Free rows, of id -1, are a chain through ``others``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, starts_of, stretches
from bittern.jit import i4r, i4w, i8, i8r, i8w, kernel, read_only
from bittern.literature.predicates.contract import AT_LEAST, AT_MOST, PredicateIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CANDIDATES = 1 << 20
"""Rows that are looked at together, where a single value does not find more."""

_LEAST_ROOM = 16
_NOWHERE = -1


@kernel(i8, i8r, i8r, i4r, i4r, i4r, i8w, i4w)
def _keep(
    values: Any, starts: Any, rows: Any, ids: Any, others: Any, counts: Any, found: Any
) -> Any:
    """Write the ids of those rows that contain their values, one value after the other."""
    n = 0
    for i in range(len(values)):
        before = n
        for k in range(starts[i], starts[i + 1]):
            row = rows[k]
            other = int(others[row])
            if values[i] <= other if other >= 0 else values[i] >= ~other:
                found[n] = ids[row]
                n += 1
        counts[i] = n - before
    return n


class FoundIds(NamedTuple):
    """The ids of a batch of values, or only where they would be."""

    offsets: Int64s
    ids: Int32s | None


class TwoSided:
    """Intervals that are bounded on both sides; see the module."""

    def __init__(self, index: PredicateIndex, ids: Int32s, others: Int32s, free: int) -> None:
        """Take the arrays as they are, read-only or not: O(1)."""
        self.index, self.ids, self.others = index, ids, others
        self.used, self.free = len(ids), free

    @classmethod
    def build(
        cls,
        predicates: type[PredicateIndex],
        intervals: tuple[Int32s, Int32s, Int32s],
        firsts: Int64s,
        lasts: Int64s,
        parameters: dict[str, Any],
    ) -> Self:
        """File lows, highs and ids of intervals within attributes of these bounds."""
        lows, highs, ids = intervals
        operators, keys, others = _filed(lows, highs, firsts, lasts)
        rows = np.arange(len(ids), dtype=np.int32)
        index = predicates.build(operators, keys, rows, **parameters)
        return cls(index, ids, others, _NOWHERE)

    def insert(self, low: int, high: int, id: int, first: int, last: int) -> None:  # noqa: A002
        """File one more, in a free row or a new one."""
        operator, key, other = _filed_one(low, high, first, last)
        self._loosen()
        row = self.free if self.free != _NOWHERE else self.used
        self.index.insert(operator, key, row)
        if row == self.free:
            self.free = int(self.others[row])
        else:
            self.used += 1
        self.ids[row], self.others[row] = id, other

    def delete(self, low: int, high: int, id: int, first: int, last: int) -> bool:  # noqa: A002
        """Take one out, or change nothing and say False: O(rows of its filed end)."""
        operator, key, other = _filed_one(low, high, first, last)
        value, counts = np.array([key], np.int64), np.empty(1, np.int64)
        self.index.count(value, value, value, counts)
        rows = np.empty(int(counts[0]), np.int32)
        self.index.fill(value, value, value, np.zeros(1, np.int64), rows)
        same = np.flatnonzero((self.ids[rows] == id) & (self.others[rows] == other))
        if not len(same):
            return False
        row = int(rows[same[0]])
        self.index.delete(operator, key, row)
        self._loosen()
        self.ids[row], self.others[row] = -1, self.free
        self.free = row
        return True

    def _loosen(self) -> None:
        """Own the table, with room for one more row."""
        if self.used == len(self.ids) or not self.ids.flags.writeable:
            grown = np.full((2, self.used + max(_LEAST_ROOM, self.used // 2)), -1, np.int32)
            grown[:, : self.used] = self.ids[: self.used], self.others[: self.used]
            self.ids, self.others = grown[0].copy(), grown[1].copy()

    def matches(
        self, values: Int64s, firsts: Int64s, lasts: Int64s, most: int | None = None
    ) -> FoundIds:
        """The ids of ascending values: O(candidates), in pieces of bounded memory.

        If there are more than ``most`` of them, they are only counted.
        """
        candidates = np.zeros(len(values), np.int64)
        self.index.count(values, firsts, lasts, candidates)
        ends, counts = starts_of(candidates), np.zeros(len(values), np.int64)
        found: list[Int32s] | None = [np.empty(0, np.int32)]
        total = 0
        for first, last in stretches(ends, _CANDIDATES):
            part, starts = slice(first, last), ends[first : last + 1] - ends[first]
            rows = np.empty(int(starts[-1]), np.int32)
            self.index.fill(values[part], firsts[part], lasts[part], starts[:-1], rows)
            kept = np.empty(len(rows), np.int32)
            n = int(_keep(values[part], starts, rows, self.ids, self.others, counts[part], kept))
            total += n
            if most is not None and total > most:
                found = None
            if found is not None:
                found.append(kept[:n].copy())
        return FoundIds(starts_of(counts), None if found is None else np.concatenate(found))

    def in_use(self) -> Int32s:
        """The ids of all rows in use, repetitions included."""
        return np.asarray(self.ids[: self.used][self.ids[: self.used] >= 0])

    def table(self) -> tuple[Int32s, Int32s]:
        """Ids and others of all rows, to be saved; the next change makes copies of them."""
        self.ids = read_only(self.ids[: self.used])
        self.others = read_only(self.others[: self.used])
        return self.ids, self.others

    def check(self, domain: int) -> None:
        """Verify the index, and that every row in use is filed once: O(n log n)."""
        self.index.check()
        ids, others = self.ids[: self.used], self.others[: self.used]
        rows = np.flatnonzero(ids >= 0)
        filed = np.unique(self.index.sids())  # a predicate may be stored in two places
        assert np.array_equal(filed, rows), "rows are not filed, or others are"
        ends = np.where(others >= 0, others, ~others)[rows]
        assert (ends < domain).all(), "an end is beyond the domain"
        free, number = self.free, 0
        while free != _NOWHERE and number < len(ids):
            assert 0 <= free < len(ids), "a free row is beyond those used"
            assert ids[free] == -1, "a free row has an id"
            free = int(others[free])
            number += 1
        assert number + len(rows) == len(ids), "free rows are miscounted"


def _filed(
    lows: Int32s, highs: Int32s, firsts: Int64s, lasts: Int64s
) -> tuple[NDArray[np.uint8], Int64s, Int32s]:
    """Operators and keys that intervals are filed under, and what their rows know."""
    by_low = lows.astype(np.int64) + highs > firsts + lasts
    operators = np.where(by_low, AT_LEAST, AT_MOST).astype(np.uint8)
    keys = np.where(by_low, lows, highs).astype(np.int64)
    return operators, keys, np.where(by_low, highs, ~lows).astype(np.int32)


def _filed_one(low: int, high: int, first: int, last: int) -> tuple[int, int, int]:
    lows, highs = (np.array([end], np.int32) for end in (low, high))
    firsts, lasts = (np.array([bound], np.int64) for bound in (first, last))
    operators, keys, others = _filed(lows, highs, firsts, lasts)
    return int(operators[0]), int(keys[0]), int(others[0])
