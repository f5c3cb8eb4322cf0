r"""The Interval Tree of seed 004 (from computational geometry): every interval at one node only.

A node's key is an end point. The intervals that contain it are stored at the node, twice: by
ascending low end (the left list) and by descending high end (the right list). Those that lie
wholly to the left are in the left subtree, those to the right in the right one::

    0 [18, 25]   1 [10, 35]   2 [15, 60]   3 [60, 80]           35: left  4 6 1 2 7
    4 [5, 50]    5 [75, 90]   6 [8, 45]    7 [30, 70]          /  \  right 7 2 4 6 1
                                                          25: 0    80: left 3 5, right 5 3

Searching 20: it is less than 35, so the left list gives what begins no later (4, 6, 1, 2, but not
7); then, to the left, it is less than 25, and the list gives 0. A value above the key takes from
the right list what ends no earlier, and goes right; a value that *is* the key takes the whole list
and is done. Lists are in the order of ends, which a bit vector could not tell: this is the one
structure of seed 004 that has none. The paper reads a list up to the first interval that does not
contain the value; here a binary search finds that place and the ids before it are copied, while
``evaluations`` counts as the paper reads.

The key is the median (the upper one) of the distinct end points in the subtree, so a built tree has
a depth of at most 1 + log2(2n), and no node of it is empty. An interval takes 20 bytes, a node 24
(``interval_nodes`` shows the arrays).

Inserting goes down to the first key that the interval contains, or to a new leaf. When a leaf comes
to stand more than about twice as deep as a built tree would be, the smallest subtree above it that
is too high for its own size is built anew, as in a scapegoat tree; everything is, when room at the
free ends is used up or half of the nodes are empty. That comes to O(log(n)**2) per change,
amortised, beside the length of the list that it touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.arrays import Int32s, Int64s
from bittern.jit import i4r, i4r2, i8, i8w, kernel, read_only, void
from bittern.stabbing.areas import check_areas
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex, as_values, unfit
from bittern.stabbing.interval_nodes import (
    ABOVE,
    BEGIN,
    DEEPEST,
    EMPTY,
    END,
    ENTRIES,
    FAR_HIGHS,
    HIGH,
    HIGHS,
    IDS,
    KEY,
    LACK,
    LEFT,
    LIMIT,
    LOWS,
    N_COLUMNS,
    N_FIGURES,
    N_LISTS,
    NO_ROOM,
    RIGHT,
    ROOT,
    ROWS,
    TOO_DEEP,
    USED,
    WEIGHT,
    find,
    first_after,
    first_before,
    plant,
    put,
    take,
    uproot,
)
from bittern.stabbing.runs import RUNS, Runs, add_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Int32Table: TypeAlias = NDArray[np.int32]
"""Two-dimensional."""

_LEAST_ROOM = 64


@kernel(i8, i4r2, i4r2, i8, i4r, i8, RUNS)
def _search(nodes: Any, lists: Any, root: Any, values: Any, first: Any, runs: Any) -> Any:
    """Parts of the lists that the values from ``first`` on take, as runs, while there is room."""
    offsets, ends, begins, lengths = runs
    lows, highs = lists[LOWS], lists[FAR_HIGHS]
    total, n = offsets[first], ends[first]
    for i in range(first, len(values)):
        if n + DEEPEST > len(begins):
            return i
        value, node = values[i], root
        while node >= 0:
            row = np.uint64(node)
            key, begin, end = nodes[row, KEY], int(nodes[row, BEGIN]), int(nodes[row, END])
            base = 0
            if value < key:
                end = first_after(lows, begin, end, value)
                node = int(nodes[row, LEFT])
            elif value > key:
                end = first_before(highs, begin, end, value)
                base = len(lows)  # the ids of the right lists stand behind all others
                node = int(nodes[row, RIGHT])
            else:
                node = -1
            total += end - begin
            n = add_run(base + begin, base + end, begins, lengths, n)
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(values)


@kernel(void, i4r2, i4r2, i8, i8, i4r, i8w)
def _evaluate(nodes: Any, lists: Any, root: Any, domain: Any, values: Any, counts: Any) -> None:
    lows, highs = lists[LOWS], lists[FAR_HIGHS]
    for i in range(len(values)):
        value = values[i]
        node = root if 0 <= value < domain else -1
        counts[i] = 0
        while node >= 0:
            counts[i] += 1
            key, begin, end = nodes[node, KEY], int(nodes[node, BEGIN]), int(nodes[node, END])
            if value == key:
                break
            if value < key:
                stop = first_after(lows, begin, end, value)
                node = int(nodes[node, LEFT])
            else:
                stop = first_before(highs, begin, end, value)
                node = int(nodes[node, RIGHT])
            counts[i] += stop - begin + (stop < end)


class IntervalTree(StabbingIndex):
    """Intervals at the topmost node whose key they contain, in lists sorted by either end."""

    name = "interval-tree"

    def __init__(self, nodes: Int32Table, lists: Int32Table, *, domain: int) -> None:
        """Take the arrays of a built tree as they are, read-only or not: O(1)."""
        self.domain = domain
        self.nodes, self.lists = nodes, lists
        entries = lists.shape[1]
        self._figures = np.zeros(N_FIGURES, np.int64)
        self._figures[ROOT] = 0 if entries else -1
        self._figures[[ROWS, USED, ENTRIES]] = len(nodes), entries, entries
        self._built = True

    @classmethod
    def _build(cls, lows: Int32s, highs: Int32s, ids: Int32s, domain: int) -> Self:
        """O(n log n)."""
        index = cls(
            np.empty((0, N_COLUMNS), np.int32), np.empty((N_LISTS, 0), np.int32), domain=domain
        )
        index._plant_all(np.stack((lows, highs, ids)), room=0)
        return index

    def _plant_all(self, intervals: Int32Table, room: int) -> None:
        """Replace the whole tree, with free room to grow, or none to be searched only.

        The old one is left as it is, and given up when the new one is complete.
        """
        n = intervals.shape[1]
        nodes, lists = np.empty((n, N_COLUMNS), np.int32), np.empty((N_LISTS, n + room), np.int32)
        figures = np.zeros(N_FIGURES, np.int64)
        figures[ROOT] = plant(intervals, *_orders(intervals), nodes, lists, figures)
        figures[ENTRIES] = n
        rows = int(figures[ROWS])
        nodes = _with_room(nodes[:rows], rows + room)
        self.nodes, self.lists, self._figures, self._built = nodes, lists, figures, not room

    def _rebuild(self, room: int) -> None:
        at = self._positions()[1]
        self._plant_all(np.stack([self.lists[row, at] for row in (LOWS, HIGHS, IDS)]), room)

    def _room(self) -> int:
        """Free room that is paid for by the changes since the last time, or will be."""
        return max(_LEAST_ROOM, int(self._figures[ENTRIES]) // 2)

    def _loosen(self) -> None:
        """Make copies that may change, with free room, of the arrays of a built tree."""
        if self._built:
            room = self._room()
            self.nodes = _with_room(self.nodes, len(self.nodes) + room)
            self.lists = _with_room(self.lists.T, self.lists.shape[1] + room).T.copy()
            self._built = False

    def _insert(self, low: int, high: int, id: int) -> None:  # noqa: A002
        self._loosen()
        while (done := put(self.nodes, self.lists, self._figures, low, high, id)) == NO_ROOM:
            self._rebuild(max(self._room(), int(self._figures[LACK])))
        if done == TOO_DEEP:
            self._replant(*self._figures[[HIGH, ABOVE, WEIGHT]].tolist())

    def _replant(self, node: int, above: int, weight: int) -> None:
        """Build the subtree of ``node`` anew, under the node ``above`` it (-1: it is the root)."""
        figures = self._figures
        if figures[USED] + weight > self.lists.shape[1] or figures[ROWS] + weight > len(self.nodes):
            self._rebuild(self._room())
            return
        intervals = np.empty((3, weight), np.int32)
        uproot(self.nodes, self.lists, node, intervals, figures)
        root = plant(intervals, *_orders(intervals), self.nodes, self.lists, figures)
        if above < 0:
            figures[ROOT] = root
        else:
            self.nodes[above, LEFT if self.nodes[above, LEFT] == node else RIGHT] = root

    def _delete(self, low: int, high: int, id: int) -> bool:  # noqa: A002
        at = find(self.nodes, self.lists, self._figures[ROOT], low, high, id)
        if at < 0:
            return False
        self._loosen()
        take(self.nodes, self.lists, self._figures, at)
        if 2 * self._figures[EMPTY] > self._figures[ROWS] + _LEAST_ROOM:
            self._rebuild(self._room())
        return True

    def _locate(self, values: Int32s) -> Runs:
        nodes, lists, figures = self.nodes, self.lists, self._figures
        runs = Runs(lists[IDS:].reshape(-1), len(values), DEEPEST)
        return runs.search(_search, nodes, lists, figures[ROOT], values)

    def evaluations(self, values: ArrayLike) -> Int64s:
        """Count the predicate evaluations for each value, as figures 7 and 8 of seed 004 do.

        One for each key on the way, and one for each interval read in a list: those that contain
        the value, and the one that does not and so ends the reading. A value that equals a key
        takes the list without looking. A value outside the domain is compared with nothing.
        """
        cells = as_values(values)
        counts = np.empty(len(cells), np.int64)
        _evaluate(self.nodes, self.lists, self._figures[ROOT], self.domain, cells, counts)
        return counts

    def _levels(self) -> Iterator[tuple[Int32s, Int32s, Int32s]]:
        """Nodes of each level, with the keys to the left and right that bound their subtrees."""
        level = np.array([n for n in [int(self._figures[ROOT])] if n >= 0], np.int32)
        after, before = np.full(len(level), -1, np.int32), np.full(len(level), 2**31 - 1, np.int32)
        while len(level):
            yield level, after, before
            rows = self.nodes[level]
            keys = rows[:, KEY]
            after, before = np.concatenate([after, keys]), np.concatenate([keys, before])
            level = np.concatenate([rows[:, LEFT], rows[:, RIGHT]])
            there = level >= 0
            level, after, before = level[there], after[there], before[there]

    def statistics(self) -> dict[str, int | float]:
        """Nodes, depth and lists: O(nodes)."""
        rows = self.nodes[: int(self._figures[ROWS])]
        lengths = rows[:, END] - rows[:, BEGIN]
        return {
            "domain": self.domain,
            "nodes": int(np.count_nonzero(lengths)),
            "empty_nodes": int(self._figures[EMPTY]),
            "depth": sum(1 for _ in self._levels()),
            "longest_list": int(lengths.max(initial=0)),
            "entries": int(self._figures[ENTRIES]),
            "bytes": self.nbytes,
        }

    def _positions(self) -> tuple[Int64s, Int64s]:
        """Nodes of all list items and their positions, list after list."""
        rows = self.nodes[: int(self._figures[ROWS])]
        begins, lengths = rows[:, BEGIN].astype(np.int64), rows[:, END] - rows[:, BEGIN]
        owners = np.repeat(np.arange(len(rows)), lengths)
        starts = np.cumsum(lengths) - lengths
        return owners, np.arange(len(owners)) + (begins - starts)[owners]

    def ids(self) -> Int32s:
        """Distinct ids in the lists, ascending."""
        return np.unique(self.lists[IDS, self._positions()[1]])

    def check(self) -> None:
        """Verify tree, areas and lists: O(n log n)."""
        figures, nodes = self._figures, self.nodes
        rows = nodes[: int(figures[ROWS])]
        lengths = rows[:, END] - rows[:, BEGIN]
        assert (lengths >= 0).all(), "a list ends before it begins"
        assert int(lengths.sum()) == figures[ENTRIES], "lists do not add up to the entries"
        assert np.count_nonzero(lengths == 0) == figures[EMPTY], "empty nodes are miscounted"
        assert figures[USED] <= self.lists.shape[1], "more of the lists is used than there is"
        begins, ends, limits = rows[:, BEGIN], rows[:, END], rows[:, LIMIT]
        check_areas(begins, ends, limits, int(figures[USED]), "list")
        owners, at = self._positions()
        lows, highs, far_highs, ids, far_ids = self.lists[:, at]
        same = owners[1:] == owners[:-1]
        assert (lows[1:] >= lows[:-1])[same].all(), "a left list is not ascending"
        assert (far_highs[1:] <= far_highs[:-1])[same].all(), "a right list is not descending"
        one, two = np.lexsort((ids, highs, owners)), np.lexsort((far_ids, far_highs, owners))
        alike = (highs[one] == far_highs[two]) & (ids[one] == far_ids[two])
        assert alike.all(), "the two lists of a node differ"
        keys = rows[owners, KEY]
        assert ((lows <= keys) & (keys <= highs)).all(), "an interval misses the key of its node"
        assert (lows >= 0).all(), "an interval begins before the domain"
        assert (highs < self.domain).all(), "an interval leaves the domain"
        seen = np.zeros(len(rows), np.int64)
        after, before = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        for depth, (level, left, right) in enumerate(self._levels()):
            seen[level] += 1
            after[level], before[level] = left, right
            between = (left < nodes[level, KEY]) & (nodes[level, KEY] < right)
            assert between.all(), "keys are out of order"
            assert depth < DEEPEST, "the tree is too deep"
        assert (seen[owners] == 1).all(), "a node with intervals is not in the tree"
        inside = (after[owners] < lows) & (highs < before[owners])
        assert inside.all(), "an interval contains a key further up"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """A built tree, which it becomes again after changes: O(1) or O(n log n)."""
        if not self._built:
            self._rebuild(0)
        self.nodes, self.lists = read_only(self.nodes), read_only(self.lists)
        shape = np.array([self.domain, len(self.nodes)], np.int64)
        return {"shape": shape, "nodes": self.nodes, "lists": self.lists}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        shape, nodes, lists = (np.asarray(arrays[name]) for name in ("shape", "nodes", "lists"))
        fit = (
            shape.shape == (2,)
            and 0 <= shape[0] <= MAX_DOMAIN
            and nodes.dtype == lists.dtype == np.int32
            and nodes.ndim == lists.ndim == 2
            and (nodes.shape[1], lists.shape[0]) == (N_COLUMNS, N_LISTS)
            and len(nodes) == shape[1]
            and min(1, lists.shape[1]) <= len(nodes) <= lists.shape[1]
        )
        if not fit:
            raise unfit("an Interval Tree")
        return cls(read_only(nodes), read_only(lists), domain=int(shape[0]))


def _with_room(rows: Int32Table, length: int) -> Int32Table:
    """Copy rows, to so many of which only the first are used."""
    grown = np.empty((length, rows.shape[1]), np.int32)
    grown[: len(rows)] = rows
    return grown


def _orders(intervals: Int32Table) -> tuple[Int32s, Int32s]:
    """The intervals by ascending low and by descending high."""
    by_low = np.argsort(intervals[0], kind="stable").astype(np.int32)
    by_high = np.argsort(-intervals[1], kind="stable").astype(np.int32)
    return by_low, by_high
