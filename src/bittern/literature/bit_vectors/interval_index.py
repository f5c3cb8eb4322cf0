"""The Interval Index (Tatbul; seed 004, 4.1.2): a binary search tree of elementary intervals.

End points cut the cells into elementary intervals (``elementary``). Each becomes a node with a bit
vector of the intervals that contain it, except those that are in no interval: they get no node.
The middle one, the ceil(m/2)-th of m, is the root, and so on in both halves::

    intervals [2, 18] (id 0) and [5, 30] (id 1), 41 cells; 9 elementary intervals, 7 nodes

    node     0      1      2      3        4         5         6
    lows     2      3      5      6        18        19        30           root: 3, then 1 and 5
    highs    2      4      5      17       18        29        30
    bits     0      0      0,1    0,1      0,1       1         1

A search for 20 compares with [6, 17], goes right and stops at [19, 29], whose bits are the answer.
It goes on below a leaf only for a value that is in no interval.

The nodes are two sorted arrays and row i of the bit vectors belongs to node i. The tree is implied
by the positions: the root is the middle of the array, its children the middles of the halves.
A batch is searched for the same nodes in another way: jumps that random values mispredict, and
cache misses, cost more than the levels which stopping early saves. ``tops`` counts, for every
2**shift cells, the nodes that begin up to there, one count for about eight nodes; the few nodes
between two counts are searched without jumps. ``evaluations`` counts what the tree compares.

Costs, for n intervals: at most 4n + 1 nodes; in each as many words as the slots of its intervals
are spread over (``vectors``), so that short intervals cost little and many long ones are
refused. A search compares with at most 1 + log2(m) nodes and reads one row. An insertion cuts at
most four elementary intervals and writes the rows between its end points, but moves the arrays of
nodes apart, which is O(m). A deletion takes out nodes that became empty. Cuts that no end point
needs any more stay until so much changed that everything is built again (``Slots.worn``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, starts_of
from bittern.errors import OptionError
from bittern.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, prefetch, read_only, void
from bittern.literature.bit_vectors.bit_runs import BitRuns, find_slot
from bittern.literature.bit_vectors.elementary import bounds_of, highs_of, last_within, split
from bittern.literature.bit_vectors.slots import Slots
from bittern.literature.bit_vectors.vectors import BitVectors
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex, as_values, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray


_NODES_PER_TOP = 8
_AHEAD = 32
"""Values between asking for the nodes around a value and searching them."""

_LARGEST_SHIFT = 30


@kernel(void, i8r, i4r, i4r, i4r, i4r, i4w)
def _search(shape: Any, tops: Any, lows: Any, highs: Any, values: Any, found: Any) -> None:
    """The node of each value, or -1; asks for tops first, and for the nodes between two then."""
    domain, shift = shape[0] if len(lows) else 0, shape[1]
    one = np.uint64(1)
    last = len(values) - 1
    for i in range(len(values)):
        prefetch(tops, values[np.uint64(min(i + 2 * _AHEAD, last))] >> shift)
        later = values[np.uint64(min(i + _AHEAD, last))]
        if 0 <= later < domain:
            top = np.uint64(later >> shift)
            begin, end = tops[top], tops[top + one]
            prefetch(lows, begin)
            prefetch(lows, end)
            prefetch(highs, begin)
            prefetch(highs, end)
        value = values[i]
        found[i] = -1
        if 0 <= value < domain:
            top = np.uint64(value >> shift)
            begin, end = np.uint64(tops[top]), np.uint64(tops[top + one])
            node = last_within(lows, begin - min(begin, one), end, value)
            if lows[node] <= value <= highs[node]:
                found[i] = node


@inline
def visited(lows: Any, highs: Any, begin: Any, end: Any, value: Any) -> Any:
    """How many of the nodes begin .. end-1, a tree by their positions, a search compares with."""
    nodes = 0
    while begin < end:
        middle = (begin + end - 1) >> 1
        nodes += 1
        if value < lows[middle]:
            end = middle
        elif value > highs[middle]:
            begin = middle + 1
        else:
            break
    return nodes


@kernel(void, i4r, i4r, i8, i4r, i8w)
def _evaluate(lows: Any, highs: Any, domain: Any, values: Any, counts: Any) -> None:
    for i in range(len(values)):
        end = len(lows) if 0 <= values[i] < domain else 0
        counts[i] = visited(lows, highs, 0, end, values[i])


class IntervalIndex(StabbingIndex):
    """Elementary intervals with bit vectors, in a binary search tree; see the module."""

    name = "interval"

    def __init__(
        self,
        lows: Int32s,
        highs: Int32s,
        bits: BitVectors,
        slots: Slots,
        tops: Int32s,
        shift: int,
        *,
        domain: int,
    ) -> None:
        self.domain = domain
        self._take(lows, highs, bits, slots, tops, shift)

    def _take(
        self,
        lows: Int32s,
        highs: Int32s,
        bits: BitVectors,
        slots: Slots,
        tops: Int32s,
        shift: int,
    ) -> None:
        self.lows, self.highs, self.bits, self.slots, self.tops = lows, highs, bits, slots, tops
        self._shape = np.array([self.domain, shift], np.int64)

    @classmethod
    def _build(cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int) -> Self:
        """O(n log n + words): a sort of the end points, and the rows word by word."""
        return cls(*_plant(lows, highs, ids, domain, refuse=True), domain=domain)

    def _rebuild(self) -> None:
        self._take(*_plant(*self.slots.live(), self.domain, refuse=False))

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        if self.slots.worn:
            self._rebuild()
        parts = split(self.lows, self.highs, low, high)
        begin, stop = parts.begin, parts.stop
        try:
            self.bits.splice(begin, stop, parts.sources)
            self.bits.set(
                np.arange(begin + parts.inside.start, begin + parts.inside.stop, dtype=np.int32),
                self.slots.next,
            )
        except OptionError:  # no room for so many bits: leave no half of it behind
            self._rebuild()
            raise
        self.slots.add(low, high, id)
        if len(parts.lows) > stop - begin:
            self._splice(begin, stop, parts.lows, parts.highs)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        begin = int(np.searchsorted(self.highs, low))
        stop = int(np.searchsorted(self.lows, high, "right"))
        rows = np.arange(begin, stop, dtype=np.int32)
        slot = find_slot(self.bits, rows[:1], self.slots, (low, high, id))
        if slot < 0:
            return False
        self.bits.clear(rows, slot)
        self.slots.free(slot)
        kept = rows[~self.bits.is_empty(rows)]
        if len(kept) < len(rows):
            self.bits.splice(begin, stop, kept)
            self._splice(begin, stop, self.lows[kept], self.highs[kept])
        if self.slots.worn:
            self._rebuild()
        return True

    def _splice(self, begin: int, stop: int, lows: Int32s, highs: Int32s) -> None:
        """Replace nodes begin .. stop-1 by these, which are between the same neighbours: O(m)."""
        shift = int(self._shape[1])
        changed = np.concatenate([self.lows[begin:stop], lows])
        first, last = int(changed.min()) >> shift, (int(changed.max()) >> shift) + 1
        self.lows = np.concatenate([self.lows[:begin], lows, self.lows[stop:]])
        self.highs = np.concatenate([self.highs[:begin], highs, self.highs[stop:]])
        if not self.tops.flags.writeable:
            self.tops = self.tops.copy()
        self.tops[last:] += np.int32(len(lows) - (stop - begin))
        self.tops[first:last] = _tops_of(self.lows, first, last, shift)

    def _locate(self, values: Int32s) -> BitRuns:
        nodes = np.empty(len(values), np.int32)
        _search(self._shape, self.tops, self.lows, self.highs, values, nodes)
        return BitRuns.of_rows(self.bits, self.slots, nodes)

    def evaluations(self, values: ArrayLike) -> Int64s:
        """Count the predicate evaluations for each value, as figures 7 and 8 of seed 004 do.

        One is a node that is visited: its interval is compared with the value, which is before,
        after or in it. The last one contains the value, or is where the search leaves the tree.
        A value outside the domain is compared with nothing.
        """
        cells = as_values(values)
        counts = np.empty(len(cells), np.int64)
        _evaluate(self.lows, self.highs, self.domain, cells, counts)
        return counts

    def statistics(self) -> dict[str, int | float]:
        """Sizes of the tree and its rows; ``entries`` are the bits that are set: O(words)."""
        words = self.bits.ends[: self.bits.n_rows] - self.bits.begins[: self.bits.n_rows]
        return {
            "domain": self.domain,
            "intervals": self.slots.n_live,
            "nodes": len(self.lows),
            "depth": len(self.lows).bit_length(),
            "entries": self.bits.n_bits,
            "words": self.bits.n_words,
            "longest_row": int(words.max(initial=0)),
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids of the intervals, ascending."""
        return self.slots.distinct_ids()

    def check(self) -> None:
        """Verify slots, nodes, and the bits of every node against the intervals: O(words)."""
        slots, lows, highs = self.slots, self.lows, self.highs
        slots.check(self.domain)
        self.bits.check(slots.n_slots)
        assert len(lows) == len(highs) == self.bits.n_rows, "not one row per node"
        assert (lows <= highs).all(), "a node is reversed"
        assert (highs[:-1] < lows[1:]).all(), "nodes are out of order or overlap"
        assert not len(lows) or (lows[0] >= 0 and highs[-1] < self.domain), "a node is outside"
        shift = int(self._shape[1])
        tops = _tops_of(lows, 0, _n_tops(self.domain, shift), shift)
        assert np.array_equal(self.tops, tops), "a top does not count the nodes up to its cell"
        begins, stops, _ = slots.live()
        for ends in (begins, stops):
            at = np.searchsorted(lows, ends)
            assert (at < len(lows)).all(), "an end point has no node"
            alone = (lows[at] == ends) & (highs[at] == ends)
            assert alone.all(), "an end point is not a node by itself"
        cells = starts_of(highs.astype(np.int64) - lows + 1)
        firsts, lasts = np.searchsorted(lows, begins), np.searchsorted(lows, stops)
        whole = cells[lasts + 1] - cells[firsts] == stops - begins + 1
        assert whole.all(), "a cell of an interval is in no node"
        needed = BitVectors.of_runs(*_runs_of(slots, lows), len(lows), refuse=False)
        assert self.bits.same(needed), "the bits of a node are not those of its intervals"
        every = np.arange(len(lows), dtype=np.int32)
        assert not self.bits.is_empty(every).any(), "a node is in no interval"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nodes, rows and slots as they would be built now: O(1) if unchanged."""
        if self.slots.changes:
            self._rebuild()
        self.tops = read_only(self.tops)  # others hold it too: the next change copies it first
        return {
            "shape": self._shape[:1].copy(),
            "top_shift": self._shape[1:].copy(),
            "tops": self.tops,
            "lows": read_only(self.lows),
            "highs": read_only(self.highs),
            **self.bits.arrays(),
            **self.slots.arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        shape, tops, lows, highs = (
            np.asarray(arrays[name]) for name in ("shape", "tops", "lows", "highs")
        )
        shape = np.append(shape, arrays["top_shift"])
        bits, slots = BitVectors.from_arrays(arrays), Slots.from_arrays(arrays)
        if (
            bits is None
            or slots is None
            or shape.shape != (2,)
            or not 0 <= int(shape[0]) <= MAX_DOMAIN
            or not len(lows) == len(highs) == bits.n_rows
            or not 0 <= int(shape[1]) <= _LARGEST_SHIFT
            or len(tops) != _n_tops(int(shape[0]), int(shape[1]))
            or not tops.dtype == lows.dtype == highs.dtype == np.int32
        ):
            raise unfit("an Interval Index")
        domain, shift = (int(n) for n in shape)
        return cls(lows, highs, bits, slots, read_only(tops), shift, domain=domain)


def _plant(
    lows: Int32s, highs: Int32s, ids: Int32s, domain: int, *, refuse: bool
) -> tuple[Int32s, Int32s, BitVectors, Slots, Int32s, int]:
    """Nodes, rows, slots, tops and shift for these intervals."""
    slots = Slots.of(lows, highs, ids)
    bounds = bounds_of(lows, highs, domain)
    bits = BitVectors.of_runs(*_runs_of(slots, bounds), len(bounds), refuse=refuse)
    offsets, numbers, words = bits.pack()
    nodes = np.flatnonzero(offsets[1:] > offsets[:-1])
    kept = np.append(offsets[nodes], offsets[-1])  # the rows left out have no words
    node_lows, node_highs = bounds[nodes], highs_of(bounds, domain)[nodes]
    shift = 0
    while domain >> shift > max(1, len(nodes) // _NODES_PER_TOP):
        shift += 1
    tops = _tops_of(node_lows, 0, _n_tops(domain, shift), shift)
    return node_lows, node_highs, BitVectors(kept, numbers, words), slots, tops, shift


def _n_tops(domain: int, shift: int) -> int:
    """A top for the first of every 2**shift cells, and one for what is after them."""
    return (-(-domain >> shift)) + 1


def _tops_of(lows: Int32s, first: int, last: int, shift: int) -> Int32s:
    """How many nodes begin at or before cell t << shift, for t from first to last - 1."""
    cells = (np.arange(first, last) << shift).astype(np.int32)
    return np.searchsorted(lows, cells, "right").astype(np.int32)


def _runs_of(slots: Slots, lows: Int32s) -> tuple[Int32s, Int32s]:
    """First and last node in the interval of each slot; reversed if it holds none."""
    used = slice(slots.n_slots)
    firsts = np.searchsorted(lows, slots.lows[used]).astype(np.int32)
    lasts = np.searchsorted(lows, slots.highs[used]).astype(np.int32)
    lasts[slots.lows[used] > slots.highs[used]] = -1
    return firsts, lasts
