"""Where the lists of a k-index are: those of one value side by side, one for each code.

A *code* is what kind of list it is: size << 1 for conjunctions, 1 more for conjunctive forms. Only
codes that occur have lists, and only cells that something is posted for::

    codes   2  4              sizes 1 and 2
    cell    0   1    2        values 1, 0 (nothing is posted) and 2
    first   1  -1    3
    lists   0 | 1 2 | 3 4 5 6
            Z   size 1, size 2; for the first value of cell 2, then for its second

A code that occurs for the first time makes room for its lists between the others, which moves no
posting; a cell gets its lists at the end.

Cost: O(postings). Lists in bulk are made by a counting sort of two rounds over pieces of postings,
so that there is one piece beside the lists: about a million postings, or those of one clause if it
has more. What is inserted later is written out whole beside the lists that it goes into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, ranges, starts_of, stretches
from bittern.jit import i4r, i4w, i8, kernel, tuple_type, void
from bittern.literature.kindex.postings import POSTINGS, Postings
from bittern.literature.sorted_lists.lists import SortedLists

#: Lists, keys and values of postings.
Triple: TypeAlias = tuple[Int32s, Int32s, Int32s]

#: The Z-list is the first one.
Z = 0
#: Postings of a piece: a few caches.
_PIECE = 1 << 20


@kernel(void, POSTINGS, i8, i8, i4r, i4r, i4r, i8, i4w, i4w, i4w)
def _post(
    postings: Any,
    start: Any,
    stop: Any,
    columns: Any,
    first: Any,
    counts: Any,
    n_columns: Any,
    lists: Any,
    keys: Any,
    values: Any,
) -> None:
    """Write the postings of clauses ``start`` to ``stop``."""
    items, sizes, numbers, starts, negative, interval_starts, lows, highs, _ = postings
    n = 0
    for k in range(start, stop):
        if sizes[k] == 0:
            lists[n], keys[n], values[n] = Z, items[k], 1
            n += 1
        for p in range(starts[k], starts[k + 1]):
            value = numbers[k] if numbers[k] >= 0 else 1 - negative[p]
            for i in range(interval_starts[p], interval_starts[p + 1]):
                for cell in range(lows[i], highs[i] + 1):
                    at = first[np.uint64(cell)] + columns[k]
                    for _ in range(counts[np.uint64(cell)]):
                        lists[np.uint64(n)] = at
                        keys[np.uint64(n)] = items[k]
                        values[np.uint64(n)] = value
                        n += 1
                        at += n_columns


@kernel(void, i4r, i4w)
def _add_lengths(lists: Any, lengths: Any) -> None:
    for i in range(len(lists)):
        lengths[np.uint64(lists[i])] += 1


@kernel(void, i4r, i4r, i4r, i4w, i4w, i4w)
def _fill(lists: Any, keys: Any, values: Any, free: Any, list_keys: Any, list_values: Any) -> None:
    """Put postings into their lists, each at the next place that is free."""
    for i in range(len(lists)):
        n = np.uint64(lists[i])
        at = np.uint64(free[n])
        list_keys[at] = keys[i]
        list_values[at] = values[i]
        free[n] += 1


class CellDirectory(NamedTuple):
    """The lists of each cell; see the module."""

    codes: Int32s  # that occur, ascending
    first: Int32s  # list of each cell, or -1 if it has none; a change copies it if it is read-only
    counts: Int32s  # values of each cell

    def n_values(self, n_lists: int) -> int:
        """How many values have lists, of which there are as many as this."""
        return (n_lists - Z - 1) // len(self.codes) if len(self.codes) else 0

    def new_cells(self, parts: Sequence[Postings]) -> npt.NDArray[np.int64]:
        """The cells that have postings among these and no lists yet, ascending.

        O(n log n) for n intervals, and the cells that they cover, once each.
        """
        lows = np.concatenate([part.lows for part in parts]).astype(np.int64)
        highs = np.concatenate([part.highs for part in parts]).astype(np.int64)
        order = np.argsort(lows)
        # Of each interval what lies above all before it: together they are what all cover.
        ends = np.maximum.accumulate(highs[order]) + 1
        firsts = np.maximum(lows[order], np.concatenate(([0], ends[:-1])))
        cells = ranges(firsts, ends - firsts)
        return cells[self.first[cells] < 0]

    def with_cells(self, cells: npt.NDArray[np.int64], n: int) -> CellDirectory:
        """Give cells that have none their lists, from list ``n`` on."""
        sizes = len(self.codes) * self.counts[cells].astype(np.int64)
        first = self.first if self.first.flags.writeable else self.first.copy()
        first[cells] = n + np.cumsum(sizes) - sizes
        return self._replace(first=first)

    def with_codes(self, codes: Int32s, lists: SortedLists) -> tuple[CellDirectory, SortedLists]:
        """Make room for the lists of more codes. O(lists), and packing those that have changed."""
        old = len(self.codes)
        if old == 0:
            return self._replace(codes=codes), lists
        arrays = lists.arrays()
        offsets = arrays["offsets"]
        own = offsets[Z + 1 : -1].reshape(-1, old)
        ends = offsets[Z + 1 + old :: old]
        # A list that is new begins where the next one of the same value does, or the value ends.
        places = np.searchsorted(self.codes, codes)
        begins = np.column_stack((own, ends))[:, places].reshape(-1)
        offsets = np.concatenate((offsets[: Z + 1], begins, offsets[-1:]))
        first = self.first.copy()
        has = first >= 0
        first[has] = Z + 1 + (first[has] - Z - 1) // old * len(codes)
        wider = SortedLists(offsets, arrays["keys"], arrays["values"])
        return self._replace(codes=codes, first=first), wider

    def triples(self, postings: Postings, size: int) -> Iterator[Triple]:
        """Lists, keys and values of all postings, about ``size`` of them at a time."""
        columns = np.searchsorted(self.codes, postings.codes).astype(np.int32)
        ends = starts_of(postings.totals)
        for start, stop in stretches(ends, size):
            n = int(ends[stop] - ends[start])
            lists, keys, values = (np.empty(n, dtype=np.int32) for _ in range(3))
            _post(
                postings,
                start,
                stop,
                columns,
                self.first,
                self.counts,
                len(self.codes),
                lists,
                keys,
                values,
            )
            yield lists, keys, values

    def all_triples(self, parts: Sequence[Postings]) -> Triple:
        """Lists, keys and values of all postings at once."""
        none = np.empty(0, dtype=np.int32)
        pieces = [(none, none, none)]
        for part in parts:
            pieces += self.triples(part, int(part.totals.sum()))
        lists, keys, values = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return lists, keys, values

    def lists_of(self, parts: Sequence[Postings], n_lists: int) -> SortedLists:
        """All postings in lists, by a counting sort. O(postings)."""
        # The end of list n goes to n + 2, so that its begin is at n + 1; filling moves it on, and
        # when all are filled it is the end.
        offsets = np.zeros(n_lists + 2, dtype=np.int32)
        for part in parts:
            for lists, _, _ in self.triples(part, _PIECE):
                _add_lengths(lists, offsets[2:])
        np.cumsum(offsets, out=offsets)
        keys, values = (np.empty(int(offsets[-1]), dtype=np.int32) for _ in range(2))
        for part in parts:
            for piece in self.triples(part, _PIECE):
                _fill(*piece, offsets[1:-1], keys, values)
        return SortedLists(offsets[:-1], keys, values)

    def check(self, n_lists: int) -> None:
        """Codes ascend, and the lists of cells tile those after the Z-list. O(cells log cells)."""
        assert (np.diff(self.codes.astype(np.int64)) > 0).all(), "codes do not ascend"
        assert (self.codes >= 0).all(), "a code is negative"
        assert not (self.codes == 1).any(), "a conjunctive form has size 0"
        assert len(self.first) == len(self.counts), "there is not one list per cell"
        cells = np.flatnonzero(self.first >= 0)
        cells = cells[np.argsort(self.first[cells], kind="stable")]
        sizes = len(self.codes) * self.counts[cells].astype(np.int64)
        ends = Z + 1 + np.cumsum(sizes)
        assert np.array_equal(self.first[cells], ends - sizes), "the lists of cells do not tile"
        assert n_lists == (ends[-1] if len(ends) else Z + 1), "lists belong to no cell"


DIRECTORY = tuple_type(CellDirectory, i4r, i4r, i4r)
