r"""The Hybrid Index (Tatbul; seed 004, 4.1.3): a tree of keys over many small Interval Indexes.

The tree of the Cluster Index (``cluster_tree``) leads a value to a leaf. Instead of comparing the
value with all intervals of the leaf's cluster, as the Cluster Index does, their elementary
intervals are searched, as in the Interval Index, whose bits are the answer::

    a [2, 6]   b [6, 21]   c [19, 23]   d [21, 48]   e [23, 50]                   21
                                                                                /    \
    leaf     0                     1         2          3                     19      23
    cells    .. 18                 19 .. 20  21 .. 22   23 ..
    nodes    2   3..5  6   7..18   19  20    21   22    23   24..47  48  49  50
    bits     a   a     ab  b       bc  bc    bcd  cd    cde  de      de  e   e

A value 20 is less than 21 and not less than 19; of the two nodes of leaf 1 it is compared with 19
and is in the other: 2 keys and 2 elementary intervals, however many intervals contain it.

Keys are end points, so that no elementary interval is in two leaves, and all leaves together are
one Interval Index: its sorted nodes, rows and slots, of which leaf i has the nodes ``begins[i]`` to
``ends[i] - 1``. (Only after changes may an elementary interval lie across a key that is no longer
an end point; then both leaves have it.) Elementary intervals outside the leaf's cells, which a
separate index of its cluster would have too, could never be found, and are not there.

``minimum`` is the paper's minimum cluster size: splitting ends at clusters of at most that many
intervals, or larger ones that no key can split. A search is a path of keys and then a binary search
in what they left, so that ``minimum`` hardly changes its length, but a path through keys is slower
than a binary search and takes memory. With 640,000 intervals of up to 200 cells out of a million
(61 contain a value), 16 gives 408,000 leaves and 64 gives 246,000, and both take 220 ns per value;
128 gives 16,000 and takes 176; 256 and 1024 give 4,000 and 1,000, and take 187 and 201, as a binary
search that begins with many nodes waits for memory longer. 128 is the default.

Costs are those of the Interval Index, and 12 bytes more per key and 8 per leaf. Insertions and
deletions are those of the Interval Index; the keys stay as they are until it is built again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.jit import i4r, i4r2, i4w, i8, i8w, kernel, prefetch, read_only, void
from bittern.literature.bit_vectors.bit_runs import BitRuns
from bittern.literature.bit_vectors.cluster_tree import ClusterTree, checked_minimum, way_to
from bittern.literature.bit_vectors.elementary import last_within
from bittern.literature.bit_vectors.interval_index import IntervalIndex, visited
from bittern.literature.bit_vectors.slots import Slots
from bittern.stabbing.contract import StabbingIndex, as_values, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

DEFAULT_MINIMUM = 128
"""Intervals that a leaf's cluster may have and is not split any more; the module says why."""

_AHEAD = 32
"""Values between asking for the nodes of a leaf and searching them."""

_LINES, _LINE = 4, 16
"""Cache lines of nodes that are asked for: as many as a leaf has by default."""


@kernel(void, i4r, i4r, i4r, i4r, i4r, i4w)
def _search(
    leaf_begins: Any, leaf_ends: Any, lows: Any, highs: Any, values: Any, rows: Any
) -> None:
    """Make the leaf of each value in ``rows`` its node, or -1 if none has the value."""
    last = len(values) - 1
    for i in range(len(values)):
        later = leaf_begins[np.uint64(max(rows[np.uint64(min(i + _AHEAD, last))], 0))]
        for line in range(_LINES):
            prefetch(lows, later + line * _LINE)
        leaf, rows[i] = rows[i], -1
        if leaf >= 0:
            at = np.uint64(leaf)
            begin, end = np.uint64(leaf_begins[at]), np.uint64(leaf_ends[at])
            if begin < end:
                node = last_within(lows, begin, end, values[i])
                rows[i] = node if lows[node] <= values[i] else -1
    # In a loop of its own, so that as many wait for their high ends at a time as can.
    for i in range(len(values)):
        if rows[i] >= 0 and highs[np.uint64(rows[i])] < values[i]:
            rows[i] = -1


@kernel(void, i4r2, i4r, i4r, i4r, i4r, i8, i4r, i8w)
def _evaluate(
    keys: Any,
    leaf_begins: Any,
    leaf_ends: Any,
    lows: Any,
    highs: Any,
    domain: Any,
    values: Any,
    counts: Any,
) -> None:
    for i in range(len(values)):
        value = values[i]
        counts[i] = 0
        if 0 <= value < domain:
            leaf, counts[i] = way_to(keys, value)
            begin, end = int(leaf_begins[leaf]), int(leaf_ends[leaf])
            counts[i] += visited(lows, highs, begin, end, value)


class HybridIndex(StabbingIndex):
    """A tree of keys, and elementary intervals with bit vectors in its leaves; see the module."""

    name = "hybrid"

    def __init__(
        self,
        tree: ClusterTree,
        leaves: IntervalIndex,
        begins: Int32s,
        ends: Int32s,
        *,
        minimum: int,
    ) -> None:
        self.domain = leaves.domain
        self.minimum = minimum
        self._minimum = np.array([minimum], np.int64)
        self.tree, self.leaves = tree, leaves
        self.begins, self.ends = begins, ends

    @classmethod
    def _build(
        cls,
        lows: Int32s,
        highs: Int32s,
        ids: Int32s,
        domain: int,
        *,
        minimum: int = DEFAULT_MINIMUM,
    ) -> Self:
        """O(n log n + words)."""
        minimum = checked_minimum(minimum)
        tree = ClusterTree.of(lows, highs, minimum)
        leaves = IntervalIndex.build(lows, highs, ids, domain=domain)
        return cls(tree, leaves, *_parts(tree, leaves), minimum=minimum)

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        before = self.leaves.slots
        try:
            self.leaves.insert(low, high, id)
        finally:  # it is built again when it refuses, too
            self._follow(before)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        before = self.leaves.slots
        self.leaves.delete(low, high, id)
        self._follow(before)
        return True

    def _follow(self, before: Slots) -> None:
        """Choose new keys when the Interval Index was built again, and find the leaves' nodes."""
        if self.leaves.slots is not before:
            lows, highs, _ = self.leaves.slots.live()
            self.tree = ClusterTree.of(lows, highs, self.minimum)
        self.begins, self.ends = _parts(self.tree, self.leaves)

    def _locate(self, values: Int32s) -> BitRuns:
        leaves = self.leaves
        rows = self.tree.leaves_of(values, self.domain)
        _search(self.begins, self.ends, leaves.lows, leaves.highs, values, rows)
        return BitRuns.of_rows(leaves.bits, leaves.slots, rows)

    def evaluations(self, values: ArrayLike) -> Int64s:
        """Count the predicate evaluations for each value, as figures 7 and 8 of seed 004 do.

        One for each key on the way to the leaf, and one for each elementary interval there that is
        compared with the value, to the one that contains it or where the search leaves the tree. A
        value outside the domain is compared with nothing.
        """
        cells = as_values(values)
        counts = np.empty(len(cells), np.int64)
        nodes = self.begins, self.ends, self.leaves.lows, self.leaves.highs
        _evaluate(self.tree.nodes, *nodes, self.domain, cells, counts)
        return counts

    def statistics(self) -> dict[str, int | float]:
        """The figures of all leaves as one Interval Index, and those of the tree: O(words)."""
        return self.leaves.statistics() | {
            "minimum": self.minimum,
            "leaves": self.tree.n_leaves,
            "depth": self.tree.depth(),
            "nodes_per_leaf": len(self.leaves.lows) / self.tree.n_leaves,
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids of the intervals, ascending."""
        return self.leaves.ids()

    def check(self) -> None:
        """Verify tree and elementary intervals, and that each leaf has its own: O(words)."""
        self.leaves.check()
        self.tree.check()
        begins, ends = _parts(self.tree, self.leaves)
        assert np.array_equal(self.begins, begins), "a leaf begins at the wrong node"
        assert np.array_equal(self.ends, ends), "a leaf ends at the wrong node"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Tree and Interval Index as they would be built now: O(1) if unchanged."""
        before = self.leaves.slots
        arrays = self.leaves.arrays()
        if self.leaves.slots is not before:
            self._follow(before)
        return arrays | {
            "minimum": self._minimum.copy(),
            "keys": read_only(self.tree.nodes),
            "leaf_begins": read_only(self.begins),
            "leaf_ends": read_only(self.ends),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        minimum, begins, ends = (
            np.asarray(arrays[name]) for name in ("minimum", "leaf_begins", "leaf_ends")
        )
        leaves = IntervalIndex.from_arrays(arrays)
        tree = ClusterTree.from_array(arrays["keys"])
        if (
            tree is None
            or minimum.shape != (1,)
            or minimum[0] < 1
            or not len(begins) == len(ends) == tree.n_leaves
            or not begins.dtype == ends.dtype == np.int32
        ):
            raise unfit("a Hybrid Index")
        return cls(tree, leaves, begins, ends, minimum=int(minimum[0]))


def _parts(tree: ClusterTree, leaves: IntervalIndex) -> tuple[Int32s, Int32s]:
    """First and last node (and one) of the elementary intervals that meet each leaf's cells."""
    bounds = tree.bounds
    begins = np.searchsorted(leaves.highs, bounds).astype(np.int32)
    ends = np.searchsorted(leaves.lows, np.append(bounds[1:], np.int32(2**31 - 1)))
    return begins, ends.astype(np.int32)
