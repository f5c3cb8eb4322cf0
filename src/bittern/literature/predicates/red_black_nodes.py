"""Red-black tree in flat arrays: keys in order, found, put in and taken out in O(log n).

An entry of ``keyed_lists`` is a node: its key is ``keys[node]``, and a row of ``links`` holds the
nodes to the left and to the right, the one above, and whether it is red::

    node   .  1  2   3   4                        links   left right parent red
    keys   .  3  7  12  20        3: 12           1          0     0      2   1
                                 /     |          2          1     0      3   0
                              2: 7    4: 20       3          2     4      0   0
                             /                    4          0     0      3   0
                          1: 3, red

Node 0 stands for every missing child and for the parent of the root. It is black; the repair after
a removal, which may begin at a missing child, notes in it for a while where it is.

The rules (checked by ``check``): keys ascend from left to right; the root is black; no red node has
a red child; every way from the root down to a missing child meets the same number of black nodes.
So no way is more than twice as long as another, and the height is at most 2 log2(n + 1).

A tree is built perfectly balanced: node i has the i-th key, the middle of a range is its root, all
nodes are black but those of the deepest level. Inserting recolours and rotates at most twice,
removing at most three times; nodes are linked anew and never copied, so that a node keeps its
number, and with it its lists, as long as its key is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import i4r2, i4w, i4w2, i8, i8r, i8w, inline, kernel, void
from bittern.literature.predicates.keyed_lists import (
    N_KEYS,
    NONE,
    ROOT,
    USED,
    KeyedLists,
    free_entry,
    new_entry,
)

if TYPE_CHECKING:
    from bittern.arrays import Int32s, Int64s

LEFT, RIGHT, PARENT, RED = range(4)
"""Columns of ``links``; the two sides are 0 and 1, so that the other one is 1 - side."""

_DEEPEST = 64
"""More than the height of a built tree of any size."""


# -- going through the tree ----------------------------------------------------------------------


@inline
def first_from(keys: Any, links: Any, root: Any, key: Any) -> Any:
    """The node of the smallest key that is not below this one, or none."""
    found, node = NONE, root
    while node != NONE:
        if keys[node] >= key:
            found = node
            node = int(links[node, LEFT])
        else:
            node = int(links[node, RIGHT])
    return found


@inline
def last_to(keys: Any, links: Any, root: Any, key: Any) -> Any:
    """The node of the greatest key that is not above this one, or none."""
    found, node = NONE, root
    while node != NONE:
        if keys[node] <= key:
            found = node
            node = int(links[node, RIGHT])
        else:
            node = int(links[node, LEFT])
    return found


@inline
def neighbour(links: Any, node: Any, side: Any) -> Any:
    """The next node in order of the keys, on this side, or none."""
    other = 1 - side
    below = int(links[node, side])
    if below != NONE:
        while links[below, other] != NONE:
            below = int(links[below, other])
        return below
    above = int(links[node, PARENT])
    while above != NONE and links[above, side] == node:
        node, above = above, int(links[above, PARENT])
    return above


@kernel(i8, i8r, i4r2, i8, i8)
def _find_node(keys: Any, links: Any, root: Any, key: Any) -> Any:
    node = root
    while node != NONE and keys[node] != key:
        node = int(links[node, LEFT if key < keys[node] else RIGHT])
    return node


@kernel(void, i4r2, i8, i4w)
def _in_order(links: Any, root: Any, found: Any) -> None:
    """Write all nodes down from left to right; ``found`` is as long as there are nodes."""
    node = root
    while links[node, LEFT] != NONE:
        node = int(links[node, LEFT])
    for i in range(len(found)):
        found[i] = node
        node = neighbour(links, node, RIGHT)


# -- changes -------------------------------------------------------------------------------------


@inline
def _replace(links: Any, state: Any, node: Any, by: Any) -> None:
    """Let ``by``, which may be none, take the place of a node under that one's parent."""
    parent = int(links[node, PARENT])
    if parent == NONE:
        state[ROOT] = by
    elif links[parent, LEFT] == node:
        links[parent, LEFT] = by
    else:
        links[parent, RIGHT] = by
    links[by, PARENT] = parent


@inline
def _rotate(links: Any, state: Any, node: Any, side: Any) -> None:
    """Let a node go down to this side, and its child of the other side come up instead."""
    other = 1 - side
    up = int(links[node, other])
    inner = int(links[up, side])
    links[node, other] = inner
    if inner != NONE:
        links[inner, PARENT] = node
    _replace(links, state, node, up)
    links[up, side] = node
    links[node, PARENT] = up


@kernel(i8, i8w, i4w2, i8w, i8)
def _put_node(keys: Any, links: Any, state: Any, key: Any) -> Any:
    """The node of a key, put in red as a leaf if it is new, and then repaired."""
    parent, node = NONE, state[ROOT]
    side = LEFT
    while node != NONE:
        if keys[node] == key:
            return node
        parent, side = node, LEFT if key < keys[node] else RIGHT
        node = int(links[node, side])
    new = new_entry(keys, state, key)
    links[new, LEFT] = links[new, RIGHT] = NONE
    links[new, PARENT], links[new, RED] = parent, 1
    if parent == NONE:
        state[ROOT] = new
    else:
        links[parent, side] = new
    node = new
    while links[parent, RED]:  # hence not the root, and there is a grandparent, a black one
        grand = int(links[parent, PARENT])
        side = LEFT if links[grand, LEFT] == parent else RIGHT
        uncle = int(links[grand, 1 - side])
        links[grand, RED] = 1
        if links[uncle, RED]:
            links[parent, RED] = links[uncle, RED] = 0
            node, parent = grand, int(links[grand, PARENT])
            continue
        if links[parent, 1 - side] == node:
            _rotate(links, state, parent, side)
            node, parent = parent, node
        links[parent, RED] = 0
        _rotate(links, state, grand, 1 - side)
    links[state[ROOT], RED] = 0
    return new


@inline
def _repair(links: Any, state: Any, node: Any) -> None:
    """One black node is missing on the ways through ``node``, which may be none: make up for it."""
    while node != state[ROOT] and not links[node, RED]:
        parent = int(links[node, PARENT])
        side = LEFT if links[parent, LEFT] == node else RIGHT
        other = 1 - side
        sibling = int(links[parent, other])  # there is one: its ways have a black node more
        if links[sibling, RED]:
            links[sibling, RED], links[parent, RED] = 0, 1
            _rotate(links, state, parent, side)
            sibling = int(links[parent, other])
        if not links[links[sibling, LEFT], RED] and not links[links[sibling, RIGHT], RED]:
            links[sibling, RED] = 1
            node = parent
            continue
        if not links[links[sibling, other], RED]:
            links[links[sibling, side], RED], links[sibling, RED] = 0, 1
            _rotate(links, state, sibling, other)
            sibling = int(links[parent, other])
        links[sibling, RED] = links[parent, RED]
        links[parent, RED] = links[links[sibling, other], RED] = 0
        _rotate(links, state, parent, side)
        node = state[ROOT]
    links[node, RED] = 0


@kernel(void, i8w, i4w2, i8w, i8)
def _remove_node(keys: Any, links: Any, state: Any, node: Any) -> None:
    """Unlink a node; one with two children is replaced by the next in order."""
    was_red = links[node, RED]
    if links[node, LEFT] == NONE or links[node, RIGHT] == NONE:
        child = int(links[node, RIGHT if links[node, LEFT] == NONE else LEFT])
        _replace(links, state, node, child)
    else:
        following = int(links[node, RIGHT])
        while links[following, LEFT] != NONE:
            following = int(links[following, LEFT])
        was_red = links[following, RED]
        child = int(links[following, RIGHT])
        if links[following, PARENT] == node:
            links[child, PARENT] = following
        else:
            _replace(links, state, following, child)
            links[following, RIGHT] = links[node, RIGHT]
            links[links[following, RIGHT], PARENT] = following
        _replace(links, state, node, following)
        links[following, LEFT] = links[node, LEFT]
        links[links[following, LEFT], PARENT] = following
        links[following, RED] = links[node, RED]
    if not was_red:
        _repair(links, state, child)
    links[NONE, PARENT] = NONE
    free_entry(keys, state, node)


# -- building ------------------------------------------------------------------------------------


@kernel(void, i4w2)
def _balance(links: Any) -> None:
    """Link nodes 1, 2, 3 ... in this order: middles of ranges, the deepest level red."""
    n = len(links) - 1
    links[NONE] = 0
    deepest = 0
    while n >> (deepest + 1):
        deepest += 1
    begins, ends = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    parents, depths = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    begins[0], ends[0], parents[0], depths[0] = 1, n + 1, NONE, 0
    waiting = int(n > 0)
    while waiting:
        waiting -= 1
        begin, end, depth = begins[waiting], ends[waiting], depths[waiting]
        node = (begin + end) >> 1
        links[node, LEFT] = (begin + node) >> 1 if begin < node else NONE
        links[node, RIGHT] = (node + 1 + end) >> 1 if node + 1 < end else NONE
        links[node, PARENT] = parents[waiting]
        links[node, RED] = int(0 < depth == deepest)
        for side in range(2):
            if links[node, side] != NONE:
                begins[waiting] = begin if side == LEFT else node + 1
                ends[waiting] = node if side == LEFT else end
                parents[waiting], depths[waiting] = node, depth + 1
                waiting += 1


class RedBlackTree(KeyedLists):
    """Lists of sids by key, with the keys in a red-black tree; ``directory`` are its links."""

    directory_name = "links"

    @staticmethod
    def _index(keys: Int64s) -> Int32s:
        links = np.empty((len(keys), 4), np.int32)
        _balance(links)
        return links

    @staticmethod
    def _shape(n: int) -> tuple[int, ...]:
        return n + 1, 4

    @staticmethod
    def _root(n: int) -> int:
        return (n + 2) >> 1 if n else NONE

    def _find(self, key: int) -> int:
        return int(_find_node(self.keys, self.directory, self.state[ROOT], key))

    def _put(self, key: int) -> int:
        return int(_put_node(self.keys, self.directory, self.state, key))

    def _remove(self, entry: int) -> None:
        _remove_node(self.keys, self.directory, self.state, entry)

    def _grow(self, capacity: int) -> None:
        links = np.zeros((capacity, 4), np.int32)
        used = int(self.state[USED])
        links[:used] = self.directory[:used]
        self.directory = links

    def entries(self) -> Int32s:
        """The nodes from left to right: O(n)."""
        found = np.empty(int(self.state[N_KEYS]), np.int32)
        _in_order(self.directory, self.state[ROOT], found)
        return found

    @property
    def height(self) -> int:
        """Nodes on the longest way down: O(n)."""
        level, height = np.array([self.state[ROOT]]), 0
        while len(level := level[level != NONE]):
            level = self.directory[level, : RIGHT + 1].ravel()
            height += 1
        return height

    def _check_directory(self) -> None:
        """Verify links and colours, level by level; the order of keys is checked by the caller."""
        used, root = int(self.state[USED]), int(self.state[ROOT])
        links = self.directory[:used]
        assert ((links >= 0) & (links < used)).all(), "a link leads out of the tree"
        assert not links[NONE].any(), "the node that is none has links or a colour"
        assert 0 <= root < used, "the root is no node"
        assert links[root, RED] == 0, "the root is red"
        seen = np.zeros(used, np.bool_)
        level, parents = np.array([root]), np.array([NONE])
        blacks, ends = np.zeros(1, np.int64), set()
        while len(level):
            missing = level == NONE
            ends.update(blacks[missing].tolist())
            level, parents, blacks = level[~missing], parents[~missing], blacks[~missing]
            assert len(np.unique(level)) == len(level), "a node has two parents"
            assert not seen[level].any(), "a node is met again further down"
            seen[level] = True
            assert (links[level, PARENT] == parents).all(), "a node does not know its parent"
            red = links[level, RED]
            assert (red <= 1).all(), "a node has no colour"
            assert not (red & links[parents, RED]).any(), "a red node has a red child"
            parents, blacks = np.repeat(level, 2), np.repeat(blacks + 1 - red, 2)
            level = links[level, : RIGHT + 1].ravel()
        assert len(ends) == 1, "ways down have different numbers of black nodes"
        assert np.count_nonzero(seen) == self.state[N_KEYS], "nodes are miscounted"
