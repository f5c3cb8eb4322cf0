"""The counter arrays of OpIndex: one for each pivot, one *counter* for each filing under it.

Counter s of pivot p is at ``begins[p] + s``: the class to report, and the hits or bits that it
needs. Lists keep s, its *slot*. Matching counts up from zero in scratch, so that an event pays for
the counters that it hits and not for all that there are::

    pivot       0        1                 pivot 1: slot 0 is class 1 and needs 2 hits, slot 1 is
    begins      0        2                 a hole, slot 2 is class 6 and needs 3
    owners      0  4  |  1  5  6  .  .
    needs       1  2  |  2  0  3  .  .

New counters go to the end, and classes are numbered upwards, so that owners ascend and the counters
of a class are found by binary search. A deleted one leaves a hole that keeps its owner. Arrays that
grow move to the free end (``stabbing/areas.py``); when most counters are holes, the index writes
everything anew.

Cost: O(1) amortised to append, O(log n) to find; 8 bytes for each counter and 12 for each pivot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, ranges, starts_of
from bittern.growing import longer
from bittern.jit import frozen, i4r, i4w, i8, i8r, i8w, kernel, tuple_type, void
from bittern.stabbing.areas import USED, check_areas, move_to_end, rank, room_to_move

_SMALLEST_AREA = 4
_LEAST_ROOM = 64


class CounterArrays(NamedTuple):
    """What matching sees."""

    begins: Int32s
    ends: Int32s
    owners: Int32s
    needs: Int32s


COUNTERS = tuple_type(CounterArrays, i4r, i4r, i4r, i4r)
CHANGING = tuple_type(CounterArrays, i4w, i4w, i4w, i4w)


@kernel(i8, i4r, i4r, i4r, i8, CHANGING, i4w, i8w, i4w)
def _append(
    pivots: Any,
    new_owners: Any,
    new_needs: Any,
    first: Any,
    counters: Any,
    limits: Any,
    figures: Any,
    slots: Any,
) -> Any:
    """Append counters from the ``first`` on while there is room; the first that is left."""
    begins, ends, owners, needs = counters
    for i in range(first, len(pivots)):
        p = pivots[i]
        begin, end = int(begins[p]), int(ends[p])
        if end == limits[p]:
            if figures[USED] + room_to_move(begin, end, _SMALLEST_AREA) > len(owners):
                return i
            old = begin
            begin, end = move_to_end(p, begins, ends, limits, figures, _SMALLEST_AREA)
            for k in range(end - begin):
                owners[begin + k] = owners[old + k]
                needs[begin + k] = needs[old + k]
        owners[end], needs[end] = new_owners[i], new_needs[i]
        slots[i] = end - begin
        ends[p] = end + 1
    return len(pivots)


@kernel(void, i4r, i4r, i4r, COUNTERS, i4w)
def _find(pivots: Any, wanted: Any, wanted_needs: Any, counters: Any, slots: Any) -> None:
    """The slot of each filing, -1 where there is none; those of a class stand together."""
    begins, ends, owners, needs = counters
    for i in range(len(pivots)):
        slots[i] = -1
        p = pivots[i]
        if p < 0:
            continue
        at = rank(owners, begins[p], ends[p], wanted[i])
        k = i - 1
        while k >= 0 and wanted[k] == wanted[i]:
            at += int(pivots[k] == p)
            k -= 1
        if at < ends[p] and owners[at] == wanted[i] and needs[at] == wanted_needs[i]:
            slots[i] = at - begins[p]


@kernel(void, COUNTERS, i4w, i4w, i4w, i8r, i4w)
def _without_holes(
    counters: Any, offsets: Any, new_owners: Any, new_needs: Any, starts: Any, new_slots: Any
) -> None:
    """Copy what is no hole; ``new_slots[starts[p] + s]`` is where slot s of pivot p has gone."""
    begins, ends, owners, needs = counters
    n = 0
    for p in range(len(begins)):
        offsets[p] = n
        for at in range(begins[p], ends[p]):
            new_slots[starts[p] + at - begins[p]] = n - offsets[p]
            if needs[at] > 0:
                new_owners[n], new_needs[n] = owners[at], needs[at]
                n += 1
    offsets[len(begins)] = n


class Counters:
    """The counter arrays of all pivots; see the module."""

    searched: CounterArrays

    def __init__(self, offsets: Int32s, owners: Int32s, needs: Int32s) -> None:
        """Take packed arrays without holes as they are, read-only or not: O(pivots)."""
        self._offsets: Int32s | None = offsets
        self._limits = offsets[1:]
        self._figures = np.array([len(owners)], dtype=np.int64)
        self.n_counters, self.n_holes = len(owners), 0
        self._show(CounterArrays(offsets[:-1], offsets[1:], owners, needs))
        #: Counters of the longest array, holes included.
        self.longest = int(np.diff(offsets).max(initial=0))

    def _show(self, arrays: CounterArrays) -> None:
        self._own = arrays
        self.searched = frozen(arrays)

    @classmethod
    def build(
        cls, pivots: Int32s, owners: Int32s, needs: Int32s, n_pivots: int
    ) -> tuple[Self, Int32s]:
        """One counter for each filing, and their slots; owners ascend. O(n log n)."""
        order = np.argsort(pivots, kind="stable")
        offsets = starts_of(np.bincount(pivots, minlength=n_pivots), np.int32)
        slots = np.empty(len(pivots), dtype=np.int32)
        slots[order] = np.arange(len(order), dtype=np.int32) - offsets[:-1][pivots[order]]
        return cls(offsets, owners[order], needs[order]), slots

    @property
    def n_pivots(self) -> int:
        """How many arrays there are, empty ones included."""
        return len(self.searched.begins)

    @property
    def packed(self) -> bool:
        """Whether nothing changed since the arrays were built or mapped."""
        return self._offsets is not None

    @property
    def nbytes(self) -> int:
        """What is in use."""
        if self._offsets is not None:
            return int(self._offsets.nbytes) + 8 * len(self.searched.owners)
        return 3 * self.searched.begins.nbytes + 8 * int(self._figures[USED])

    def add_pivots(self, n: int) -> None:
        """Add n empty arrays after the others: O(1) each, amortised."""
        begins, ends, owners, needs = self._loose()
        self._limits = longer(self._limits, n)
        self._show(CounterArrays(longer(begins, n), longer(ends, n), owners, needs))

    def append(self, pivots: Int32s, owners: Int32s, needs: Int32s) -> Int32s:
        """One more counter for each filing; their slots. Owners ascend, after all that are here."""
        slots = np.empty(len(pivots), dtype=np.int32)
        arrays = self._loose()
        done = 0
        while True:
            added = pivots, owners, needs, done
            done = _append(*added, arrays, self._limits, self._figures, slots)
            if done == len(pivots):
                break
            more = max(_LEAST_ROOM, len(arrays.owners))
            arrays = arrays._replace(
                owners=longer(arrays.owners, more), needs=longer(arrays.needs, more)
            )
        self._show(arrays)
        self.longest = max(self.longest, int(slots.max(initial=-1)) + 1)
        self.n_counters += len(slots)
        return slots

    def find(self, pivots: Int32s, owners: Int32s, needs: Int32s) -> Int32s:
        """The slots of filings, -1 where there is no such; a pivot that is not there is -1."""
        slots = np.empty(len(pivots), dtype=np.int32)
        _find(pivots, owners, needs, self.searched, slots)
        return slots

    def clear(self, pivots: Int32s, slots: Int32s) -> None:
        """Make holes of these counters."""
        arrays = self._loose()
        arrays.needs[arrays.begins[pivots] + slots] = 0
        self.n_counters -= len(slots)
        self.n_holes += len(slots)

    def without_holes(self) -> tuple[Counters, Int64s, Int32s]:
        """The same, packed; ``new_slots[starts[p] + s]`` is where slot s of pivot p has gone."""
        sizes = self.searched.ends.astype(np.int64) - self.searched.begins
        starts = starts_of(sizes)[:-1]
        offsets = np.empty(self.n_pivots + 1, dtype=np.int32)
        owners, needs = (np.empty(self.n_counters, dtype=np.int32) for _ in range(2))
        new_slots = np.empty(int(sizes.sum()), dtype=np.int32)
        _without_holes(self.searched, offsets, owners, needs, starts, new_slots)
        return Counters(offsets, owners, needs), starts, new_slots

    def _loose(self) -> CounterArrays:
        """The arrays to change: copied where they were packed, which may be mapped."""
        if self._offsets is not None:
            begins, ends, owners, needs = (array.copy() for array in self._own)
            self._limits = ends.copy()
            self._offsets = None
            self._show(CounterArrays(begins, ends, owners, needs))
        return self._own

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Offsets, owners and needs of packed arrays without holes."""
        assert self._offsets is not None, "only packed arrays are saved"
        return {
            "offsets": self._offsets,
            "owners": self.searched.owners,
            "needs": self.searched.needs,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The same again, searched in place."""
        return cls(arrays["offsets"], arrays["owners"], arrays["needs"])

    def check(self, n_classes: int) -> None:
        """Verify every invariant, whatever the arrays hold: O(pivots log pivots + counters)."""
        begins, ends, owners, needs = self.searched
        assert len(ends) == len(begins) == len(self._limits), "a pivot has no counter array"
        assert len(needs) == len(owners), "owners and needs differ in number"
        assert (begins >= 0).all(), "a counter array begins before the first"
        assert (begins <= ends).all(), "a counter array ends before it begins"
        if self._offsets is not None:
            assert int(self._offsets[0]) == 0, "packed counters do not begin at 0"
            assert int(self._offsets[-1]) == len(owners), "packed counters are cut off"
        else:
            assert self._figures[USED] <= len(owners), "more counters are used than there are"
            check_areas(begins, ends, self._limits, int(self._figures[USED]), "counter array")
        held, of_pivot = self.positions()
        assert ((owners[held] >= 0) & (owners[held] < n_classes)).all(), (
            "a counter belongs to no class"
        )
        rising = (np.diff(owners[held]) >= 0) | (np.diff(of_pivot) > 0)
        assert rising.all(), "owners of counters do not ascend"
        assert (needs[held] >= 0).all(), "a counter needs less than nothing"
        assert np.count_nonzero(needs[held] == 0) == self.n_holes, "holes are counted wrong"
        assert len(held) == self.n_counters + self.n_holes, "counters are counted wrong"

    def live(self) -> tuple[Int64s, Int64s]:
        """Where all counters are that are no holes, and the pivot of each."""
        positions, of_pivot = self.positions()
        live = self.searched.needs[positions] > 0
        return positions[live], of_pivot[live]

    def n_several(self) -> int:
        """How many classes have several counters. O(counters)."""
        owners = self.searched.owners[self.live()[0]]
        return int(np.count_nonzero(np.bincount(owners) > 1))

    def positions(self) -> tuple[Int64s, Int64s]:
        """Where all counters are, holes included, and the pivot of each."""
        sizes = self.searched.ends.astype(np.int64) - self.searched.begins
        places = ranges(self.searched.begins, sizes)
        return places, np.repeat(np.arange(self.n_pivots), sizes)
