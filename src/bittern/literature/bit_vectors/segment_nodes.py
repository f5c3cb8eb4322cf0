"""Nodes of a Segment Tree: planting a tree over leaves, and finding nodes in it.

``nodes`` has two columns. In an inner node they are the first cell of its right child and the
number of its left child; in a leaf the leaf's own first cell and 0. The right child of a node is
the number after its left child, so that one number serves for both. Node 0 is the root::

    node    0  1  2  3  4            leaves 0 .. 1, 2 .. 2 and 3 .. 9
    BOUND   3  2  3  0  2            0 -> 1 and 2, 1 -> 3 and 4
    CHILD   1  3  0  0  0

Nodes are numbered level by level down to subtrees of 64 leaves, and then subtree by subtree, so
that the last steps of a search stay close together, in the rows of the nodes too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bittern.jit import i4r, i4r2, i4w, i4w2, i8, inline, kernel, void

if TYPE_CHECKING:
    from bittern.arrays import Int32s

Nodes: TypeAlias = "Int32s"
"""Two columns; see the module."""

BOUND, CHILD = 0, 1

_BLOCK = 64
"""Leaves of a subtree that is numbered in one piece."""


@inline
def _expand(n: Any, free: Any, leaves: Any, nodes: Any, begins: Any, ends: Any) -> Any:
    """Write node n of leaves begins[n] .. ends[n]-1, and return what number is free then.

    The left child of a node with m leaves has the largest power of two below m of them, which is
    what joining in pairs from below comes to.
    """
    begin, end = begins[n], ends[n]
    if end - begin == 1:
        nodes[n, BOUND], nodes[n, CHILD] = leaves[begin], 0
        return free
    half = 1
    while 2 * half < end - begin:
        half *= 2
    nodes[n, BOUND], nodes[n, CHILD] = leaves[begin + half], free
    begins[free], ends[free] = begin, begin + half
    begins[free + 1], ends[free + 1] = begin + half, end
    return free + 2


@kernel(void, i4r, i4w2, i4w, i4w, i4w)
def _plant(leaves: Any, nodes: Any, begins: Any, ends: Any, tops: Any) -> None:
    """Join leaves with these first cells in pairs; ``tops`` is room for a number per leaf."""
    begins[0], ends[0] = 0, len(leaves)
    n, free, n_tops = 0, 1, 0
    while n < free:
        if ends[n] - begins[n] > _BLOCK:
            free = _expand(n, free, leaves, nodes, begins, ends)
        else:
            tops[n_tops] = n
            n_tops += 1
        n += 1
    for i in range(n_tops):
        n = free
        free = _expand(tops[i], free, leaves, nodes, begins, ends)
        while n < free:
            free = _expand(n, free, leaves, nodes, begins, ends)
            n += 1


@kernel(i8, i4r2, i8, i8, i4r, i4r, i4w2, i4w, i4w)
def _canonical(
    nodes: Any,
    first: Any,
    last: Any,
    lows: Any,
    highs: Any,
    stack: Any,
    found: Any,
    found_of: Any,
) -> Any:
    """Canonical nodes of intervals, while there is room for them, and how many there are.

    The root's interval is [first, last]. ``found`` are the nodes, ``found_of`` their intervals.
    """
    total = 0
    for i in range(len(lows)):
        low, high = lows[i], highs[i]
        size = 0
        if low <= high:
            stack[0, 0], stack[0, 1], stack[0, 2] = 0, first, last
            size = 1
        while size:
            size -= 1
            n, begin, end = stack[size, 0], stack[size, 1], stack[size, 2]
            if low <= begin and end <= high:
                if total < len(found):
                    found[total], found_of[total] = n, i
                total += 1
                continue
            bound, child = nodes[n, BOUND], nodes[n, CHILD]
            if high >= bound:
                stack[size, 0], stack[size, 1], stack[size, 2] = child + 1, bound, end
                size += 1
            if low < bound:
                stack[size, 0], stack[size, 1], stack[size, 2] = child, begin, bound - 1
                size += 1
    return total


@inline
def below(nodes: Any, n: Any, value: Any) -> Any:
    """The child that contains the value, or -1 below a leaf."""
    bound, child = nodes[n, BOUND], nodes[n, CHILD]
    return int(child + int(value >= bound) if child else -1)


@kernel(i8, i4r2, i8, i4w)
def _path(nodes: Any, value: Any, path: Any) -> Any:
    """Nodes from the root to the leaf of a value, and how many."""
    n, size = 0, 0
    while n >= 0:
        path[size] = n
        size += 1
        n = below(nodes, n, value)
    return size


@kernel(i8, i4r2, i8, i4w, i4w, i4w)
def _subtree(nodes: Any, top: Any, stack: Any, leaves: Any, inner: Any) -> Any:
    """Leaves and inner nodes of a subtree, from left to right, and how many leaves."""
    stack[0] = top
    size, n_leaves, n_inner = 1, 0, 0
    while size:
        size -= 1
        n = stack[size]
        if nodes[n, CHILD]:
            inner[n_inner] = n
            n_inner += 1
            stack[size], stack[size + 1] = nodes[n, CHILD] + 1, nodes[n, CHILD]
            size += 2
        else:
            leaves[n_leaves] = n
            n_leaves += 1
    return n_leaves


def plant(bounds: Int32s) -> Nodes:
    """Nodes over leaves with these first cells: O(m)."""
    nodes = np.empty((max(2 * len(bounds) - 1, 0), 2), np.int32)
    if len(bounds):
        begins, ends, tops = (np.empty(len(nodes), np.int32) for _ in range(3))
        _plant(bounds, nodes, begins, ends, tops)
    return nodes


def canonical_nodes(
    nodes: Nodes, first: int, last: int, lows: Int32s, highs: Int32s, depth: int
) -> tuple[Int32s, Int32s]:
    """Canonical nodes of intervals in a tree of [first, last], and the interval of each."""
    stack = np.empty((depth + 2, 3), np.int32)
    room = 0 if len(lows) > 1 else 2 * depth  # one needs no counting first
    while True:
        found, of = np.empty(room, np.int32), np.empty(room, np.int32)
        n = int(_canonical(nodes, first, last, lows, highs, stack, found, of))
        if n <= room:
            return found[:n], of[:n]
        room = n


def path_to(nodes: Nodes, cell: int, depth: int) -> Int32s:
    """Nodes from the root to the leaf of a cell, in a tree where no path has more than depth."""
    path = np.empty(depth, np.int32)
    return path[: _path(nodes, cell, path)]


def subtree(nodes: Nodes, top: int, n_nodes: int, depth: int) -> tuple[Int32s, Int32s]:
    """Leaves and inner nodes, ``top`` first, under a node, from left to right: O(these)."""
    most = n_nodes // 2 + 1  # only as much of it is touched as there are
    leaves, inner = np.empty(most, np.int32), np.empty(most, np.int32)
    n = int(_subtree(nodes, top, np.empty(depth + 1, np.int32), leaves, inner))
    return leaves[:n], inner[: n - 1]


def leftmost_leaves(nodes: Nodes) -> Int32s:
    """The first leaf under each node: O(nodes * depth)."""
    leaves = np.arange(len(nodes), dtype=np.int32)
    while (children := nodes[leaves, CHILD]).any():
        leaves = np.where(children, children, leaves)
    return leaves
