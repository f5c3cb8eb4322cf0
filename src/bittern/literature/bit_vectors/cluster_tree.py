r"""The tree of the Cluster Index and the Hybrid Index (seed 004, 4.1.1): keys that part clusters.

A *cluster* is the set of intervals that a value may be in, after some comparisons with keys. A key
k splits it: intervals that begin before k (low < k) go to the left cluster, those that reach it
(high >= k) to the right one, and those that do both to both. Values below k go left, others right::

    a [2, 6]   b [6, 21]   c [19, 23]   d [21, 48]   e [23, 50]            21
                                                                   a b c /    \ b c d e
    Leaves from left to right are the cells up to 18,                19          23
    19 and 20, 21 and 22, and from 23 on; their                    /    \      /    \
    clusters are the intervals that meet these cells.             a b   b c  b c d  c d e

Keys are end points of the cluster's intervals inside the node's range of cells; the others part
nothing. A key's score is the difference in size of its clusters plus the number of intervals in
both. The ceil(m/2)-th of m end points is scored first, then the same is done in the half on the
side of the larger cluster, to the end; the smallest score wins, the first of equals. As
|l - r| + (l + r - n) = 2 max(l, r) - n, and l rises and r falls with the key, this binary search
finds the best of *all* end points, and stops where l = r. Splitting ends at clusters of at most
``minimum`` intervals, or when no end point leaves both clusters smaller than the node's, which is
when the best score is n: then all the intervals in it have a cell in common.

Sizes need no clusters. Of a node's cells [from, to), with key k between,

    l = #(low < k) - #(high < from)        r = #(low < to) - #(high < k)

and both counts are there for every end point, from one sort. A node is so O(log n), and building
O(n log n + nodes log n), whatever the overlap.

A node is a row of ``nodes``: key, left and right child, which is ~leaf where it is negative. Nodes
are in preorder, leaves numbered from left to right. The depth is little more than log2(n) when
intervals are short, but not always: if 100,000 intervals begin together and end one after the
other, and after every 300 of these ends another interval begins, a path has 481 keys. (The paper's
table 1 gives the Hybrid Index log n always, and the other one where overlap is not high.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.errors import OptionError, brief
from bittern.jit import i4r, i4r2, i4w, i4w2, i8, i8r, inline, kernel, void
from bittern.literature.bit_vectors.descents import GROUP, descend
from bittern.stabbing.contract import as_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bittern.arrays import Int32s

# Columns of a node's row.
KEY, LEFT, RIGHT = range(3)
N_COLUMNS = 3


@inline
def _child(nodes: Any, node: Any, value: Any) -> Any:
    """The child on the value's side, both read so that no jump depends on the key."""
    key, left, right = nodes[node, KEY], nodes[node, LEFT], nodes[node, RIGHT]
    return int(left if value < key else right)


@inline
def way_to(nodes: Any, value: Any) -> Any:
    """The leaf of a value, and how many keys it is compared with on the way there."""
    node = -1 if len(nodes) == 0 else 0
    keys = 0
    while node >= 0:
        keys += 1
        node = _child(nodes, np.uint64(node), value)
    return ~node, keys


@kernel(void, i4r2, i8, i4r, i4w)
def _leaves_of(nodes: Any, domain: Any, values: Any, leaves: Any) -> None:
    """The leaf of each value, or -1 outside the domain."""
    turns, path = np.empty(GROUP, np.int64), np.empty(GROUP, np.int32)
    root = min(0, len(nodes) - 1)
    for first in range(0, len(values), GROUP):
        size = min(GROUP, len(values) - first)
        descend(_child, nodes, root, domain, values, first, size, turns, path, 0)
        for g in range(size):
            leaves[first + g] = ~path[g] if 0 <= values[first + g] < domain else -1


@inline
def best_key(begun: Any, ended: Any, first: Any, stop: Any, passed: Any, reached: Any) -> Any:
    """Position of the key of a node among end points first .. stop-1, or -1 if it cannot split.

    ``begun`` and ``ended`` count the intervals that begin and end before each end point;
    ``passed`` of them end before the node's cells and ``reached`` begin before their end.
    """
    size = reached - passed
    best, best_score = -1, size
    while first < stop:
        middle = (first + stop - 1) >> 1
        left, right = begun[middle] - passed, reached - ended[middle]
        score = abs(left - right) + (left + right - size)
        if score < best_score:
            best, best_score = middle, score
        if left == right:
            break
        if left > right:
            stop = middle
        else:
            first = middle + 1
    return best


@kernel(i8, i4r, i8r, i8r, i8, i8, i4w2)
def _grow(points: Any, begun: Any, ended: Any, n: Any, minimum: Any, nodes: Any) -> Any:
    """Write the nodes of the tree over n intervals and return how many there are."""
    waiting = np.empty((len(points) + 1, 6), np.int64)
    waiting[0] = (0, len(points), 0, n, -1, LEFT)
    n_waiting, n_nodes, n_leaves = 1, 0, 0
    while n_waiting:
        n_waiting -= 1
        first, stop, passed, reached, above, side = waiting[n_waiting]
        at = -1
        if reached - passed > minimum:
            at = best_key(begun, ended, first, stop, passed, reached)
        if at < 0:
            child = ~n_leaves
            n_leaves += 1
        else:
            child = n_nodes
            nodes[child, KEY] = points[at]
            waiting[n_waiting] = (at + 1, stop, ended[at], reached, child, RIGHT)
            waiting[n_waiting + 1] = (first, at, passed, begun[at], child, LEFT)
            n_waiting += 2
            n_nodes += 1
        if above >= 0:
            nodes[above, side] = child
    return n_nodes


class ClusterTree:
    """Keys over the cells of an attribute; see the module."""

    def __init__(self, nodes: NDArray[np.int32]) -> None:
        """Take nodes as they are: O(1)."""
        self.nodes = nodes
        self._bounds: Int32s | None = None

    @classmethod
    def of(cls, lows: Int32s, highs: Int32s, minimum: int) -> Self:
        """Choose the keys for these intervals: O(n log n)."""
        rising, ends = np.sort(lows), np.sort(highs)
        points = np.unique(np.concatenate([rising, ends])).astype(np.int32)
        begun = np.searchsorted(rising, points).astype(np.int64)
        ended = np.searchsorted(ends, points).astype(np.int64)
        nodes = np.empty((len(points), N_COLUMNS), np.int32)
        n_nodes = int(_grow(points, begun, ended, len(lows), minimum, nodes))
        return cls(nodes[:n_nodes].copy())

    @property
    def n_leaves(self) -> int:
        """How many leaves there are: one more than keys."""
        return len(self.nodes) + 1

    @property
    def bounds(self) -> Int32s:
        """The first cell of each leaf, ascending; the first leaf begins at 0."""
        if self._bounds is None:
            self._bounds = np.append(np.int32(0), np.sort(self.nodes[:, KEY]))
        return self._bounds

    def leaves_of(self, values: Int32s, domain: int) -> Int32s:
        """Go down the tree to the leaf of each value; -1 for one outside the domain."""
        leaves = np.empty(len(values), np.int32)
        _leaves_of(self.nodes, domain, values, leaves)
        return leaves

    def leaves(self, cells: Int32s) -> Int32s:
        """The leaf of each cell."""
        return np.searchsorted(self.bounds[1:], cells, "right").astype(np.int32)

    def leaves_between(self, low: int, high: int) -> Int32s:
        """The leaves whose cells [low, high] meets."""
        first, last = self.leaves(np.array([low, high], np.int32)).tolist()
        return np.arange(first, last + 1, dtype=np.int32)

    def _levels(self) -> Iterator[tuple[Int32s, Int32s, Int32s]]:
        """Nodes and leaves of each level, with the keys that bound their cells from both sides."""
        level = np.array([0 if len(self.nodes) else ~0], np.int32)
        after, before = np.array([-1], np.int32), np.array([2**31 - 1], np.int32)
        while len(level):
            yield level, after, before
            inner = level >= 0
            rows = self.nodes[level[inner]]
            after, before = after[inner], before[inner]
            after = np.concatenate([after, rows[:, KEY]])
            before = np.concatenate([rows[:, KEY], before])
            level = np.concatenate([rows[:, LEFT], rows[:, RIGHT]])

    def depth(self) -> int:
        """How many keys the longest path has: O(nodes)."""
        return sum(1 for _ in self._levels()) - 1

    def check(self) -> None:
        """Verify that nodes form a tree in order, and leaves come from left to right: O(nodes)."""
        assert (self.nodes[:, LEFT:] < len(self.nodes)).all(), "a child does not exist"
        assert (self.nodes[:, LEFT:] >= ~len(self.nodes)).all(), "a leaf does not exist"
        met = np.zeros(len(self.nodes), np.int64)
        firsts = np.full(self.n_leaves, -2, np.int32)
        for level, after, before in self._levels():
            inner = level >= 0
            keys = self.nodes[level[inner], KEY]
            between = (after[inner] < keys) & (keys < before[inner])
            assert between.all(), "keys are out of order"
            met[level[inner]] += 1
            firsts[~level[~inner]] = after[~inner]
        assert (met == 1).all(), "a node is not in the tree"
        assert (firsts[:-1] < firsts[1:]).all(), "leaves are out of order"

    @classmethod
    def from_array(cls, nodes: NDArray[Any]) -> Self | None:
        """Take these nodes where they are, or None if they cannot be: O(1)."""
        nodes = np.asarray(nodes)
        fit = nodes.dtype == np.int32 and nodes.ndim == 2 and nodes.shape[1] == N_COLUMNS
        return cls(nodes) if fit else None


def checked_minimum(minimum: int) -> int:
    """Refuse a smallest size of clusters that no cluster has."""
    size = as_integer(minimum, "minimum")
    if not 1 <= size < 2**31:
        raise OptionError(f"minimum is {brief(size)}: give the size of a cluster, 1 to {2**31 - 1}")
    return size
