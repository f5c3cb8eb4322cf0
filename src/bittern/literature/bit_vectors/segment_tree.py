"""The Segment Tree (seed 004, 4.1.4): elementary intervals in the leaves, their unions above.

The leaves are the elementary intervals in order. Bottom up they are joined in pairs, level by
level, and an odd one is carried up; an inner node is the union of its children and the root is the
whole domain. An interval has its bit in the *canonical* nodes: those that it covers and whose
parent it does not cover, at most two per level. Intervals [2, 18] (id 0) and [5, 30] (id 1)::

                                      0 .. 40
                         0 .. 30                       31 .. 40
              0 .. 5               6 .. 30                           id 0: 2 2, 3 .. 5, 6 .. 18
          0 .. 2  3 .. 5      6 .. 18   19 .. 30                     id 1: 5 5, 6 .. 30
         0 1 2 2  3 4 5 5   6 17 18 18  19 29 30 30

A search goes from the root to the leaf of the value and unites the bit vectors on its way. All
intervals that contain the value are on it, each once, so that uniting is reading one row after the
other. Unlike in the Interval Index, it always goes all the way down; but an interval is in few rows
however many elementary intervals it covers.

The tree is an array of nodes (``segment_nodes``), and row i of the bit vectors belongs to node i.

Costs, for n intervals and m <= 4n + 1 leaves: 2m - 1 nodes; an interval has at most 2 log2(m)
bits; a search visits 1 + log2(m) nodes. An inserted end point splits a leaf in two, where it is.
A leaf that gets deeper than 2 log2(m) has an ancestor whose subtree is too high for its leaves; the
lowest such subtree is replanted, balanced, as in a scapegoat tree, so that n insertions in any
order cost O(n log n) replanted nodes. Deleting only clears bits; leaves that no end point needs
stay until so much changed that everything is built again (``Slots.worn``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError
from bittern.jit import i4r, i4r2, i8, i8w, kernel, prefetch, read_only, u8r, void
from bittern.literature.bit_vectors.bit_runs import BitRuns, find_slot
from bittern.literature.bit_vectors.descents import GROUP, descend
from bittern.literature.bit_vectors.elementary import bounds_of, cuts_of
from bittern.literature.bit_vectors.segment_nodes import (
    BOUND,
    CHILD,
    Nodes,
    below,
    canonical_nodes,
    leftmost_leaves,
    path_to,
    plant,
    subtree,
)
from bittern.literature.bit_vectors.slots import Slots
from bittern.literature.bit_vectors.vectors import BitVectors
from bittern.literature.bit_vectors.words import count_row
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex, as_values, unfit
from bittern.stabbing.runs import RUNS, add_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

_AHEAD = 16
"""Runs between asking for their words and counting the bits."""

_SLACK = 4
_LEAST_ROOM = 64


@kernel(i8, i4r2, i4r, i4r, u8r, i8, i8, i4r, i8, RUNS)
def _search(
    nodes: Any,
    row_begins: Any,
    row_ends: Any,
    words: Any,
    domain: Any,
    depth: Any,
    values: Any,
    first: Any,
    runs: Any,
) -> Any:
    """Rows of the values from ``first`` on, as runs, while there is room for a whole group."""
    offsets, ends, begins, lengths = runs
    turns, path = np.empty(GROUP, np.int64), np.zeros(GROUP * (depth + 1), np.int32)
    froms, tos = np.empty(len(path), np.int32), np.empty(len(path), np.int32)
    total, n = offsets[first], ends[first]
    for base in range(first, len(values), GROUP):
        if n + GROUP * depth > len(begins):
            return base
        size = min(GROUP, len(values) - base)
        used = descend(below, nodes, 0, domain, values, base, size, turns, path, GROUP)
        # Level by level too: many read at once. What is behind the end of a path is not used.
        for i in range(np.uint64(used)):
            row = np.uint64(max(path[i], 0))
            froms[i], tos[i] = row_begins[row], row_ends[row]
        run = n
        for g in range(size):
            at = g
            while path[np.uint64(at)] >= 0:
                n = add_run(froms[np.uint64(at)], tos[np.uint64(at)], begins, lengths, n)
                at += GROUP
            ends[base + g + 1] = n
        for g in range(size):
            while run < ends[base + g + 1]:
                prefetch(words, begins[np.uint64(min(run + _AHEAD, n - 1))])
                begin = begins[np.uint64(run)]
                total += count_row(words, begin, begin + lengths[np.uint64(run)])
                run += 1
            offsets[base + g + 1] = total
    return len(values)


@kernel(void, i4r2, i8, i4r, i8w)
def _evaluate(nodes: Any, domain: Any, values: Any, counts: Any) -> None:
    for i in range(len(values)):
        counts[i] = 0
        if 0 <= values[i] < domain:
            n = 0
            while n >= 0:
                counts[i] += 1
                n = below(nodes, n, values[i])


class SegmentTree(StabbingIndex):
    """Bit vectors in the canonical nodes of a tree of elementary intervals; see the module."""

    name = "segment-tree"

    def __init__(
        self, nodes: Nodes, bits: BitVectors, slots: Slots, *, domain: int, depth: int
    ) -> None:
        self.domain = domain
        self._take(nodes, bits, slots, depth)

    def _take(self, nodes: Nodes, bits: BitVectors, slots: Slots, depth: int) -> None:
        self.nodes, self.bits, self.slots = nodes, bits, slots
        self.n_nodes = len(nodes)
        self._shape = np.array([self.domain, depth], np.int64)
        self._owned = False

    @property
    def depth(self) -> int:
        """No path has more nodes; exact in a tree without changes."""
        return int(self._shape[1])

    @classmethod
    def _build(cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int) -> Self:
        """O(n log n): a sort of the end points, and the canonical nodes of every interval."""
        nodes, bits, slots, depth = _grow(lows, highs, ids, domain, refuse=True)
        return cls(nodes, bits, slots, domain=domain, depth=depth)

    def _rebuild(self) -> None:
        self._take(*_grow(*self.slots.live(), self.domain, refuse=False))

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        if self.slots.worn:
            self._rebuild()
        try:
            for cut in cuts_of(low, high, self.domain).tolist():
                self._cut(cut)
                self._balance(cut)
            self.bits.set(self._canonical(low, high), self.slots.next)
        except OptionError:  # no room for so many bits: leave no half of it behind
            self._rebuild()
            raise
        self.slots.add(low, high, id)

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        slot = find_slot(self.bits, self._path(low), self.slots, (low, high, id))
        if slot < 0:
            return False
        self.bits.clear(self._canonical(low, high), slot)
        self.slots.free(slot)
        if self.slots.worn:
            self._rebuild()
        return True

    def _path(self, cell: int) -> Int32s:
        return path_to(self.nodes, cell, self.depth)

    def _canonical(self, low: int, high: int) -> Int32s:
        ends = np.array([low], np.int32), np.array([high], np.int32)
        return canonical_nodes(self.nodes, 0, self.domain - 1, *ends, self.depth)[0]

    def _cut(self, cell: int) -> None:
        """Make a leaf begin at this cell, by splitting the one that it is in: O(depth)."""
        path = self._path(cell)
        leaf, n = int(path[-1]), self.n_nodes
        first = int(self.nodes[leaf, BOUND])
        if first == cell:
            return
        self.bits.add_rows(np.full(2, -1, np.int32))
        if not self._owned or n + 2 > len(self.nodes):
            grown = np.empty((n + max(_LEAST_ROOM, n // 2), 2), np.int32)
            grown[:n] = self.nodes[:n]
            self.nodes, self._owned = grown, True
        self.nodes[n : n + 2] = (first, 0), (cell, 0)
        self.nodes[leaf] = cell, n
        self.n_nodes = n + 2
        self._shape[1] = max(self.depth, len(path) + 1)

    def _balance(self, cell: int) -> None:
        """Replant the lowest subtree around a leaf that is too deep, if that subtree is too high.

        A subtree is too high if its height is more than 2 log2(leaves). One of them is, at the
        latest the whole tree, when the leaf is deeper than that.
        """
        path = self._path(cell)
        if len(path) <= _limit(self.n_nodes):
            return
        for height, top in enumerate(path[-2::-1].tolist(), 1):
            leaves, inner = subtree(self.nodes, top, self.n_nodes, self.depth)
            if len(leaves) ** 2 < 2**height:
                bounds = self.nodes[path[: len(path) - 1 - height], BOUND]
                stop = int(bounds[bounds > cell].min(initial=self.domain))
                self._replant(leaves, inner, stop - 1)
                return

    def _replant(self, leaves: Int32s, inner: Int32s, last: int) -> None:
        """Balance a subtree, up to the cell ``last``, with the same nodes and leaves."""
        bounds = self.nodes[leaves, BOUND]
        first = int(bounds[0])
        slots = self.bits.union(np.concatenate([leaves, inner[1:]]))
        lows = np.maximum(self.slots.lows[slots], np.int32(first))
        highs = np.minimum(self.slots.highs[slots], np.int32(last))
        planted = plant(bounds)
        found, of = canonical_nodes(planted, first, last, lows, highs, self.depth)
        # None of these intervals covers the top, whose row stays as it is.
        bits = BitVectors.of_pairs(found - np.int32(1), slots[of], len(planted) - 1, refuse=False)
        nodes = np.empty(len(planted), np.int32)
        nodes[0] = inner[0]
        nodes[1::2] = self.nodes[inner, CHILD]
        nodes[2::2] = nodes[1::2] + np.int32(1)
        self.bits.put(nodes[1:], bits)
        planted[:, CHILD] = np.where(planted[:, CHILD], nodes[planted[:, CHILD]], 0)
        self.nodes[nodes] = planted

    def _locate(self, values: Int32s) -> BitRuns:
        bits = self.bits
        runs = BitRuns(bits, self.slots, len(values), GROUP * self.depth)
        rows = bits.begins, bits.ends, bits.words
        return runs.search(_search, self.nodes, *rows, self.domain, self.depth, values)

    def evaluations(self, values: ArrayLike) -> Int64s:
        """Count the predicate evaluations for each value, as figures 7 and 8 of seed 004 do.

        One is a node on the way from the root to the leaf, both included: its interval contains
        the value. A value outside the domain is compared with nothing.
        """
        cells = as_values(values)
        counts = np.empty(len(cells), np.int64)
        _evaluate(self.nodes, self.domain, cells, counts)
        return counts

    def _leaf_bounds(self) -> Int32s:
        used = self.nodes[: self.n_nodes]
        return np.sort(used[used[:, CHILD] == 0, BOUND])

    def statistics(self) -> dict[str, int | float]:
        """Sizes of the tree and its rows; ``entries`` are the bits that are set: O(m log m)."""
        leaves = self._leaf_bounds()
        return {
            "domain": self.domain,
            "intervals": self.slots.n_live,
            "nodes": self.n_nodes,
            "leaves": len(leaves),
            "depth": int(self.evaluations(leaves).max(initial=0)),
            "entries": self.bits.n_bits,
            "words": self.bits.n_words,
            "bytes": self.nbytes,
        }

    def ids(self) -> Int32s:
        """Distinct ids of the intervals, ascending."""
        return self.slots.distinct_ids()

    def check(self) -> None:
        """Verify slots, tree, and the bits of every node against the intervals: O(m log m)."""
        slots, used = self.slots, self.nodes[: self.n_nodes]
        slots.check(self.domain)
        self.bits.check(slots.n_slots)
        assert len(used) == self.bits.n_rows, "not one row per node"
        assert bool(len(used)) == bool(self.domain), "a tree without cells, or cells without one"
        if not len(used):
            return
        children = np.sort(used[used[:, CHILD] != 0, CHILD])
        assert np.array_equal(children, np.arange(1, len(used), 2)), "a node has not one parent"
        leaves, inner = subtree(self.nodes, 0, self.n_nodes, self.n_nodes)
        assert len(leaves) + len(inner) == len(used), "a node is not under the root"
        bounds = used[leaves, BOUND]
        assert bounds[0] == 0, "the first leaf does not begin at the first cell"
        assert (bounds[:-1] < bounds[1:]).all(), "leaves are out of order"
        assert bounds[-1] < self.domain, "the last leaf is outside the domain"
        ends = np.unique(np.concatenate(slots.live()[:2]))
        cuts = np.concatenate([ends, ends[ends < self.domain - 1] + 1])
        assert np.isin(cuts, bounds).all(), "an end point is not a leaf by itself"
        rights = used[leftmost_leaves(used)[used[inner, CHILD] + 1], BOUND]
        assert np.array_equal(used[inner, BOUND], rights), "a bound is not where the right begins"
        paths = self.evaluations(bounds)
        assert int(paths.max()) <= self.depth, "a leaf is deeper than the depth says"
        live = slice(slots.n_slots)
        found, of = canonical_nodes(
            self.nodes, 0, self.domain - 1, slots.lows[live], slots.highs[live], self.depth
        )
        needed = BitVectors.of_pairs(found, of, len(used), refuse=False)
        assert self.bits.same(needed), "the bits of a node are not those of its intervals"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nodes, rows and slots as they would be built now: O(1) if unchanged."""
        if self.slots.changes:
            self._rebuild()
        self._owned = False
        return {
            "shape": self._shape.copy(),
            "nodes": read_only(self.nodes),
            **self.bits.arrays(),
            **self.slots.arrays(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        shape, nodes = np.asarray(arrays["shape"]), np.asarray(arrays["nodes"])
        bits, slots = BitVectors.from_arrays(arrays), Slots.from_arrays(arrays)
        if (
            bits is None
            or slots is None
            or shape.shape != (2,)
            or not 0 <= int(shape[0]) <= MAX_DOMAIN
            or not 0 <= int(shape[1]) <= max(_limit(bits.n_rows), 0)
            or nodes.shape != (bits.n_rows, 2)
            or nodes.dtype != np.int32
        ):
            raise unfit("a Segment Tree")
        return cls(nodes, bits, slots, domain=int(shape[0]), depth=int(shape[1]))


def _limit(n_nodes: int) -> int:
    """The most nodes of a path in a tree of this many nodes."""
    return 2 * (n_nodes // 2 + 1).bit_length() + _SLACK


def _grow(
    lows: Int32s, highs: Int32s, ids: Int32s, domain: int, *, refuse: bool
) -> tuple[Nodes, BitVectors, Slots, int]:
    """Nodes, rows and slots of these intervals, and the longest path."""
    slots = Slots.of(lows, highs, ids)
    bounds = bounds_of(lows, highs, domain)
    nodes, depth = plant(bounds), 1 + (len(bounds) - 1).bit_length() if len(bounds) else 0
    found, of = canonical_nodes(nodes, 0, domain - 1, slots.lows, slots.highs, depth)
    bits = BitVectors.of_pairs(found, of, len(nodes), refuse=refuse)
    return nodes, bits, slots, depth
