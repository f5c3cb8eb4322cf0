"""The values that one attribute has in the documents, in order: the paper's augmented B-tree.

A document's *place* is its number counted from the oldest document held. Values stand in columns by
place, and for each kind there are *runs*: places in the order of their values, equal values by
place::

    place     0    1    2    3    4    5    6         in the tail, still without order: 6
    value     30   10   'a'  20   10   -    40
    numbers   run  1 4 3 0                            strings   run  2        missing   {5}

What is below, equal to or above a value is then a stretch of each run, which two bisections find:
below 25 is ``1 4 3``. As sets of places stretches are made from *marks*: every 1/256 of a run there
is a roaring bitmap of all places before it (the paper's bit vectors in the tree), so that a stretch
of any length is the difference of two marks, corrected by a few hundred places. Marks are made when
a run is first asked for a long stretch.

New documents are the *tail*, which is read from end to end. Past ``LONGEST_TAIL`` it is sorted and
becomes a run, which is merged with the one before while that is not ``RATIO`` times as long: a run
covers consecutive documents, runs get shorter towards the new ones, and there are log n of them.

Cost for n documents: appending one O(log n) moves, amortised; finding a stretch O(log n) per run,
and the tail; making a set of it O(n / 64) words at worst. 21 bytes a document, its string, and up
to 16 bytes for marks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from bittern.arrays import Int32s
from bittern.growing import longer
from bittern.history.sets.ordered_runs import (
    Run,
    bitmap_of,
    bytes_of,
    merge,
    places_of,
    rank,
    sort,
)
from bittern.history.sets.outcomes import ABOVE, APART, BELOW, EQUAL
from bittern.jit import (
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1w,
    void,
)
from bittern.model.events.typed.typed import (
    MISSING,
    OTHER,
    STRING,
    TypedValue,
    compare,
    put_string,
    string_stop,
)

#: Documents in the tail, at most; and how much longer a run is than the next, at least.
LONGEST_TAIL, RATIO = 1024, 16
_N_KINDS = OTHER + 1
_VALUE = tuple_type(TypedValue, i8, i8, i8, u1r)


@inline
def outcome(
    kind: Any,
    word: Any,
    tie: Any,
    heap: Any,
    other_kind: Any,
    other_word: Any,
    other_tie: Any,
    other_heap: Any,
) -> Any:
    """How one value compares with another: BELOW, EQUAL, ABOVE or APART."""
    if kind != other_kind or kind in (MISSING, OTHER):
        return APART
    order = compare(kind, word, tie, heap, other_word, other_tie, other_heap)
    return BELOW if order < 0 else (EQUAL if order == 0 else ABOVE)


@kernel(i8, u1r, i8r, u1r)
def _string_bytes(kinds: Any, ties: Any, heap: Any) -> Any:
    total = 0
    for i in range(len(kinds)):
        if kinds[i] == STRING:
            total += string_stop(heap, ties[i]) - ties[i]
    return total


@kernel(void, u1r, i8w, u1r, u1w, i8)
def _keep_strings(kinds: Any, ties: Any, theirs: Any, heap: Any, end: Any) -> None:
    """Copy strings from their heap to the end of ours, and let the ties point there."""
    for i in range(len(kinds)):
        if kinds[i] == STRING:
            stop = put_string(theirs, ties[i], heap, end)
            ties[i] = end
            end = stop


@kernel(i8, i4r, u1r, i8r, i8r, u1r, _VALUE, i8, i4w)
def _keep(
    places: Any, kinds: Any, words: Any, ties: Any, heap: Any, value: Any, outcomes: Any, kept: Any
) -> Any:
    """Of these places, those whose value compares with this one in one of the ways asked for."""
    n = 0
    for i in range(len(places)):
        p = places[i]
        how = outcome(
            *(kinds[p], words[p], ties[p], heap),
            *(value.kind, value.word, value.tie, value.heap),
        )
        if how & outcomes:
            kept[n] = p
            n += 1
    return n


class FoundDocuments:
    """The documents that compare with a value in some way: counted, and as far as asked made.

    ``count`` is exact for all documents held. Of an equality alone the places are ascending.
    """

    def __init__(self, index: OrderedIndex, outcomes: int, value: TypedValue) -> None:
        self._index, self._outcomes, self._value = index, outcomes, value
        self._stretches: list[tuple[Run, int, int]] = []
        self._sets: list[BitMap] = []
        if outcomes & APART:
            sets = enumerate(index.sets)
            self._sets = [own for k, own in sets if k != value.kind or not value.compares]
        if outcomes & ~APART:
            for run in index.runs[value.kind]:
                self._add_stretches(run, (0, *index.ranks(run, value), len(run.places)))
        self._tail = index.keep(index.tail, outcomes & ~APART, value)
        self.count = len(self._tail)
        self.count += sum(high - low for _, low, high in self._stretches)
        self.count += sum(map(len, self._sets))

    def _add_stretches(self, run: Run, ends: tuple[int, int, int, int]) -> None:
        """Those between the four ends that are asked for; neighbours as one."""
        low = -1
        for i, asked in enumerate((BELOW, EQUAL, ABOVE, 0)):
            if self._outcomes & asked:
                low = ends[i] if low < 0 else low
            elif low >= 0:
                if ends[i] > low:
                    self._stretches.append((run, low, ends[i]))
                low = -1

    def places(self, most: int | None = None) -> Int32s:
        """All of them, or some if there are more than ``most``."""
        parts = [run.places[low:high][:most] for run, low, high in self._stretches]
        parts += [self._tail]
        parts += [places_of(own) for own in self._sets]
        return np.concatenate(parts)[:most]

    def keep(self, places: Int32s) -> Int32s:
        """Those of these places that are among them, in the same order."""
        return self._index.keep(places, self._outcomes, self._value)

    def narrow(self, documents: BitMap) -> BitMap:
        """Those of this set that are among them."""
        parts = [run.between(low, high) for run, low, high in self._stretches]
        parts += self._sets
        if len(self._tail):
            parts.append(bitmap_of(self._tail))
        return documents & (BitMap.union(*parts) if parts else BitMap())


class OrderedIndex:
    """The values of one attribute, in order. One thread at a time may use it."""

    def __init__(self) -> None:
        self._kinds = np.empty(0, dtype=np.uint8)
        self._words = np.empty(0, dtype=np.int64)
        self._ties = np.empty(0, dtype=np.int64)
        self._heap = np.empty(0, dtype=np.uint8)
        self._in_runs = 0
        #: Runs of each kind, oldest documents first; and the places of each kind as a set.
        self.runs: list[list[Run]] = [[] for _ in range(_N_KINDS)]
        self.sets = [BitMap() for _ in range(_N_KINDS)]

    def __len__(self) -> int:
        return len(self._kinds)

    @property
    def tail(self) -> Int32s:
        """The places that are in no run yet."""
        return np.arange(self._in_runs, len(self), dtype=np.int32)

    def append(
        self,
        kinds: npt.NDArray[np.uint8],
        words: npt.NDArray[np.int64],
        ties: npt.NDArray[np.int64],
        heap: npt.NDArray[np.uint8],
    ) -> None:
        """The values of documents that have arrived, one row of a ``Typed``."""
        start, end = len(self), len(self._heap)
        self._kinds = _extended(self._kinds, kinds)
        self._words = _extended(self._words, words)
        self._ties = _extended(self._ties, ties)
        self._heap = longer(self._heap, int(_string_bytes(kinds, ties, heap)))
        _keep_strings(self._kinds[start:], self._ties[start:], heap, self._heap, end)
        for kind in np.unique(kinds).tolist():
            self.sets[kind].update(bitmap_of(_places_where(kinds == kind) + np.int32(start)))
        if len(self) - self._in_runs > LONGEST_TAIL:
            self._sort_tail()

    def _sort_tail(self) -> None:
        kinds = self._kinds[self._in_runs :]
        for kind, runs in enumerate(self.runs):
            places = _places_where(kinds == kind) + np.int32(self._in_runs)
            if kind not in (MISSING, OTHER) and len(places):
                sort(places, np.empty_like(places), kind, self._words, self._ties, self._heap)
                self._push(runs, kind, places)
        self._in_runs = len(self)

    def _push(self, runs: list[Run], kind: int, places: Int32s) -> None:
        """A run of newer documents, merged with those before that are not much longer."""
        while runs and len(runs[-1].places) < RATIO * len(places):
            older, newer = runs.pop().places, places
            places = np.empty(len(older) + len(newer), dtype=np.int32)
            merge(older, newer, places, kind, self._words, self._ties, self._heap)
        runs.append(Run(places))

    def drop(self, n: int) -> None:
        """Forget the n oldest documents; the next one gets place 0. O(documents left)."""
        self._kinds, self._words = self._kinds[n:].copy(), self._words[n:].copy()
        self._ties = self._ties[n:].copy()
        strings = self._kinds == STRING
        # Strings stand in the order of arrival: those of dropped documents are the first ones.
        dead = int(self._ties[strings].min(initial=len(self._heap)))
        self._ties[strings] -= dead
        self._heap = self._heap[dead:].copy()
        self._in_runs = max(0, self._in_runs - n)
        self.sets = [bitmap_of(_places_where(self._kinds == k)) for k in range(_N_KINDS)]
        for kind, runs in enumerate(self.runs):
            left = [run.places[run.places >= n] - np.int32(n) for run in runs]
            runs.clear()
            for places in left:
                if len(places):
                    self._push(runs, kind, places)

    def found(self, outcomes: int, value: TypedValue) -> FoundDocuments:
        """The documents whose value compares with this one in one of these ways."""
        return FoundDocuments(self, outcomes, value)

    def ranks(self, run: Run, value: TypedValue) -> tuple[int, int]:
        """How many values of the run are below this one, and how many below or equal."""
        columns = (run.places, self._words, self._ties, self._heap)
        return rank(*columns, *value, -1), rank(*columns, *value, 0)

    def keep(self, places: Int32s, outcomes: int, value: TypedValue) -> Int32s:
        """Those of these places whose value compares with this one so, in the same order."""
        kept = np.empty(len(places), dtype=np.int32)
        columns = (self._kinds, self._words, self._ties, self._heap)
        return kept[: _keep(places, *columns, value, outcomes, kept)]

    @property
    def nbytes(self) -> int:
        """Memory in use, room to grow left out."""
        columns: list[npt.NDArray[Any]] = [self._kinds, self._words, self._ties, self._heap]
        runs = [run for runs in self.runs for run in runs]
        marks = [mark for run in runs for mark in run.marks]
        arrays = [*columns, *(run.places for run in runs)]
        return sum(a.nbytes for a in arrays) + sum(map(bytes_of, [*self.sets, *marks]))

    def statistics(self) -> dict[str, int]:
        """Sizes of what it is made of."""
        runs = [run for runs in self.runs for run in runs]
        return {
            "documents": len(self),
            "runs": len(runs),
            "tail": len(self) - self._in_runs,
            "marks": sum(len(run.marks) for run in runs),
            "heap_bytes": len(self._heap),
            "bytes": self.nbytes,
        }

    def check(self) -> None:
        """Verify order, runs, marks and sets: O(n log n)."""
        for kind in range(_N_KINDS):
            places = _places_where(self._kinds == kind)
            assert self.sets[kind] == bitmap_of(places), "a kind's set is wrong"
            self._check_runs(kind, places[places < self._in_runs])
        assert 0 <= len(self) - self._in_runs <= LONGEST_TAIL, "the tail is too long"
        sizes = int(_string_bytes(self._kinds, self._ties, self._heap))
        assert sizes == len(self._heap), "the heap holds other strings than there are"

    def _check_runs(self, kind: int, places: Int32s) -> None:
        runs = self.runs[kind]
        if kind in (MISSING, OTHER):
            assert not runs, "values that cannot be compared stand in a run"
            return
        held = np.concatenate([places[:0], *(np.sort(run.places) for run in runs)])
        assert np.array_equal(held, places), "runs do not hold each place once, oldest first"
        lengths = [len(run.places) for run in runs]
        assert all(a >= RATIO * b for a, b in pairwise(lengths)), "a run is too short"
        for run in runs:
            again = np.sort(run.places)
            sort(again, np.empty_like(again), kind, self._words, self._ties, self._heap)
            assert np.array_equal(again, run.places), "a run is out of order"
            for i, mark in enumerate(run.marks):
                assert mark == bitmap_of(run.places[: i * run.step]), "a mark is wrong"


def _extended(column: npt.NDArray[Any], more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    size = len(column)
    column = longer(column, len(more))
    column[size:] = more
    return column


def _places_where(mask: npt.NDArray[np.bool_]) -> Int32s:
    return np.flatnonzero(mask).astype(np.int32)
