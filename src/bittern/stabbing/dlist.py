"""Dlist, direct listing (seed 000, section 5.1): for every cell the ids that cover it.

Each cell has its own list (``id_lists``), which is the answer for that value::

    cell       0   1   2   3   4   5           7: [1, 3]   9: [3, 5]
    ids            7   7   7 9 9   9           stab(3) = {7, 9}

Nothing is faster to search: one list is copied per value, whatever n and the lengths are. Nothing
takes more: an interval of w cells stands in w lists, 4 bytes each, and takes O(w) to change. It
is the floor that other structures' search times are held against, and it is the right choice for
equalities and other very short intervals.

Counting a build is O(n + r): only the ends of intervals are noted, and summed up from left to
right. Placing the entries is one write per entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s
from bittern.jit import i4r, i4w, i8, kernel, prefetch, void
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex, check_bytes, unfit
from bittern.stabbing.id_lists import IdLists, in_order_of_ids
from bittern.stabbing.runs import RUNS, Runs, add_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_AHEAD = 32
"""Values between asking for a directory entry and reading it."""


@kernel(void, i4r, i4r, i4w)
def _count_covers(lows: Any, highs: Any, counts: Any) -> None:
    for i in range(len(lows)):
        counts[np.uint64(lows[i])] += 1
        counts[np.uint64(highs[i]) + np.uint64(1)] -= 1
    covers = 0
    for n in range(len(counts)):
        covers += int(counts[n])
        counts[n] = covers


@kernel(void, i4r, i4r, i4r, i4w, i4w)
def _place_covers(lows: Any, highs: Any, ids: Any, offsets: Any, items: Any) -> None:
    for i in range(len(lows) - 1, -1, -1):
        for n in range(np.uint64(lows[i]), np.uint64(highs[i]) + np.uint64(1)):
            at = np.uint64(offsets[n]) - np.uint64(1)
            offsets[n] = at
            items[at] = ids[i]


@kernel(i8, i4r, i4r, i4r, i8, RUNS)
def _search(list_begins: Any, list_ends: Any, values: Any, first: Any, runs: Any) -> Any:
    """The one list of each value, for which there is room for all of them."""
    offsets, ends, begins, lengths = runs
    domain = len(list_begins)
    total, n = offsets[first], ends[first]
    for i in range(first, len(values)):
        prefetch(list_begins, int(values[np.uint64(min(i + _AHEAD, len(values) - 1))]))
        value = int(values[i])
        if 0 <= value < domain:
            begin, end = list_begins[np.uint64(value)], list_ends[np.uint64(value)]
            total += int(end) - int(begin)
            n = add_run(begin, end, begins, lengths, n)
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(values)


class Dlist(StabbingIndex):
    """Direct lists: for each cell the ids of all intervals that contain it."""

    name = "dlist"

    def __init__(self, lists: IdLists) -> None:
        self.lists = lists
        self.domain = lists.n_lists

    @classmethod
    def _build(cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int) -> Self:
        """O(r + entries), after a sort of ids out of order."""
        entries = int(highs.sum(dtype=np.int64) - lows.sum(dtype=np.int64)) + len(lows)
        what = f"{cls.name} over {domain} cells with {entries} entries"
        check_bytes(4 * (domain + 1 + entries), what, "cei or lci-dt, which share list entries")
        lows, highs, ids = in_order_of_ids(lows, highs, ids)
        counts = np.zeros(domain + 1, np.int32)
        _count_covers(lows, highs, counts)
        lists, offsets = IdLists.for_counts(counts)
        _place_covers(lows, highs, ids, offsets, lists.items)
        return cls(lists)

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        self.lists.insert(np.arange(low, high + 1, dtype=np.int32), id)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        return self.lists.delete(np.arange(low, high + 1, dtype=np.int32), id)

    def stab(self, value: int) -> Int32s:
        """Ids of the intervals that contain one value: its list, in half a microsecond or so."""
        if type(value) is not int:
            return super().stab(value)
        if not 0 <= value < self.domain:
            return np.empty(0, np.int32)
        lists = self.lists
        return lists.items[lists.begins[value] : lists.ends[value]].copy()

    def _locate(self, values: Int32s) -> Runs:
        lists = self.lists
        return Runs(lists.items, len(values), 1).search(_search, lists.begins, lists.ends, values)

    def statistics(self) -> dict[str, int | float]:
        """Sizes of the directory and the lists: O(r)."""
        lengths = self.lists.ends - self.lists.begins
        return {
            "domain": self.domain,
            "lists": self.lists.n_lists,
            "nonempty_lists": int(np.count_nonzero(lengths)),
            "longest_list": int(lengths.max(initial=0)),
            "entries": self.lists.n_entries,
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids in the lists, ascending."""
        return self.lists.ids()

    def check(self) -> None:
        """Verify the lists: O(r + entries)."""
        self.lists.check()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Packed lists: O(1) if unchanged."""
        offsets, items = self.lists.pack()
        return {"offsets": offsets, "items": items}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        offsets, items = np.asarray(arrays["offsets"]), np.asarray(arrays["items"])
        if not (
            1 <= len(offsets) <= MAX_DOMAIN + 1
            and (int(offsets[0]), int(offsets[-1])) == (0, len(items))
            and offsets.dtype == items.dtype == np.int32
        ):
            raise unfit(f"a {cls.name} index")
        return cls(IdLists(offsets, items))
