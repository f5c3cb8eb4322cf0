"""Runs: places of documents in the order of their values, and roaring bitmaps of how they begin.

A run of the places 1 4 3 0 6 2 with a mark at every second one::

    places    1   4   3   0   6   2
    marks   {}      {1 4}   {0 1 3 4}   {0 1 2 3 4 6}

The set of any stretch is the difference of what is before its ends, and what is before a rank is
the nearest mark and at most half a step of places: from rank 1 to 4, ``{0 1 3 4} - {1}``. There are
up to ``MOST_MARKS`` marks, made when a run is first asked for a long stretch, which together take
at most 16 bytes per place; a set of n places is O(n / 64) words at worst.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from bittern.arrays import Int32s
from bittern.jit import i4r, i4w, i8, i8r, inline, kernel, u1r, void
from bittern.model.events.typed.typed import compare

#: Marks in a run, and the fewest places between two.
MOST_MARKS, LEAST_STEP = 256, 1024


class Stretch(NamedTuple):
    """Some places in a row: from ``first`` to before ``last``."""

    places: Int32s
    first: int
    last: int


@inline
def _merge_into(
    a: Any, b: Any, out: Any, at: Any, kind: Any, words: Any, ties: Any, heap: Any
) -> None:
    """Merge two stretches; of equal values those of ``a`` come first."""
    i, j = a.first, b.first
    while i < a.last or j < b.last:
        if j == b.last:
            from_a = True
        elif i == a.last:
            from_a = False
        else:
            p, q = a.places[i], b.places[j]
            from_a = compare(kind, words[p], ties[p], heap, words[q], ties[q], heap) <= 0
        if from_a:
            out[at] = a.places[i]
            i += 1
        else:
            out[at] = b.places[j]
            j += 1
        at += 1


@kernel(void, i4r, i4r, i4w, i8, i8r, i8r, u1r)
def merge(a: Any, b: Any, out: Any, kind: Any, words: Any, ties: Any, heap: Any) -> None:
    """Merge two runs; of equal values those of the first come first."""
    first, second = Stretch(a, 0, len(a)), Stretch(b, 0, len(b))
    _merge_into(first, second, out, 0, kind, words, ties, heap)


@kernel(void, i4w, i4w, i8, i8r, i8r, u1r)
def sort(places: Any, spare: Any, kind: Any, words: Any, ties: Any, heap: Any) -> None:
    """Sort places by value, equal ones as they stand: merge sort from the bottom up."""
    n = len(places)
    width = 1
    source, target = places, spare
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            first, second = Stretch(source, start, middle), Stretch(source, middle, end)
            _merge_into(first, second, target, start, kind, words, ties, heap)
        source, target = target, source
        width *= 2
    places[:] = source


@kernel(i8, i4r, i8r, i8r, u1r, i8, i8, i8, u1r, i8)
def rank(
    places: Any,
    words: Any,
    ties: Any,
    heap: Any,
    kind: Any,
    word: Any,
    tie: Any,
    other: Any,
    most: Any,
) -> Any:
    """How many values of a run compare as at most ``most`` (-1 below, 0 equal) with this one."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) >> 1
        p = places[middle]
        if compare(kind, words[p], ties[p], heap, word, tie, other) <= most:
            low = middle + 1
        else:
            high = middle
    return low


def bitmap_of(places: Int32s) -> BitMap:
    """Int32s, in any order, as a set; pyroaring is fast with ascending arrays of this type."""
    return BitMap(array("I", np.sort(places).tobytes()))


def places_of(bitmap: BitMap) -> Int32s:
    """A set as places, ascending."""
    return np.asarray(bitmap.to_array()).view(np.int32)


def bytes_of(bitmap: BitMap) -> int:
    """How much memory a set takes."""
    measured = bitmap.get_statistics()
    return (
        measured["n_bytes_array_containers"]
        + measured["n_bytes_run_containers"]
        + measured["n_bytes_bitset_containers"]
    )


class Run:
    """Int32s of one kind in the order of their values, and sets of how they begin."""

    def __init__(self, places: Int32s) -> None:
        self.places = places
        self.step = max(LEAST_STEP, -(-len(places) // MOST_MARKS))
        self.marks: list[BitMap] = []

    def between(self, low: int, high: int) -> BitMap:
        """The set of the stretch from one rank up to another."""
        if high - low <= self.step:
            return bitmap_of(self.places[low:high])
        return self._before(high) - self._before(low) if low else self._before(high)

    def _before(self, rank: int) -> BitMap:
        if not self.marks:
            self._mark()
        nearest = (rank + self.step // 2) // self.step
        at = min(nearest * self.step, len(self.places))
        if at == rank:
            return self.marks[nearest]
        if at < rank:
            return self.marks[nearest] | bitmap_of(self.places[at:rank])
        return self.marks[nearest] - bitmap_of(self.places[rank:at])

    def _mark(self) -> None:
        marks = [BitMap()]
        for start in range(0, len(self.places), self.step):
            marks.append(marks[-1] | bitmap_of(self.places[start : start + self.step]))
        self.marks = marks
