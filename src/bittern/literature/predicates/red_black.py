"""Red-black-tree-based index (Chandrasekaran and Franklin 2002, PSoup): a rival in seed 002.

One red-black tree (``red_black_nodes``) holds the constants of all operators. A node has five
arrays of sids, in the order of the values that satisfy them::

    node 3      <      <=     =      >=     >           value 2 takes <  and <=        of this node
    sids        {8}    {}     {7}    {5}    {9}         value 3 takes <= and = and >=
                |<- below ->|                           value 4 takes >= and >
                       |<- equal -->|
                              |<- above ->|

so that a value takes two or three arrays that lie side by side from each node. ``!=`` is ``<`` and
``>`` of the same constant.

A search walks the tree and looks at every node of the value's attribute, whether it has anything to
give or not: O(n) for n distinct constants, as Table 1 of the paper has it. An insertion or deletion
is O(log n) and the length of the array, which is kept in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s
from bittern.jit import i4w, i8, i8r, i8w, inline, kernel, void
from bittern.literature.predicates.contract import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    GREATER,
    LESS,
    UNEQUAL,
    PredicateIndex,
)
from bittern.literature.predicates.keyed_lists import KEY_TREE, NONE, ROOT, copy_list, length_of
from bittern.literature.predicates.red_black_nodes import RIGHT, RedBlackTree, first_from, neighbour
from bittern.literature.predicates.sides import PredicateStabbing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

WIDTH = 5
"""Arrays of a node."""

_KINDS = {
    LESS: np.array([0], np.int32),
    AT_MOST: np.array([1], np.int32),
    EQUAL: np.array([2], np.int32),
    AT_LEAST: np.array([3], np.int32),
    GREATER: np.array([4], np.int32),
    UNEQUAL: np.array([0, 4], np.int32),
}
"""Which arrays of a node an operator's sids go to."""


@inline
def _satisfied(key: Any, value: Any) -> Any:
    """The first array of a node that a value takes, and the first behind those."""
    if value < key:
        return 0, 2
    if value > key:
        return 3, 5
    return 1, 4


@kernel(void, KEY_TREE, i8, i8r, i8r, i8r, i8w)
def _count(tree: Any, root: Any, values: Any, firsts: Any, lasts: Any, counts: Any) -> None:
    keys, links, begins, ends, _ = tree
    for i in range(len(values)):
        if i and values[i] == values[i - 1] and firsts[i] == firsts[i - 1]:
            counts[i] = counts[i - 1]
            continue
        total = 0
        node = first_from(keys, links, root, firsts[i])
        while node != NONE and keys[node] <= lasts[i]:
            first, last = _satisfied(keys[node], values[i])
            for n in range(WIDTH * node + first, WIDTH * node + last):
                total += length_of(begins, ends, n)
            node = neighbour(links, node, RIGHT)
        counts[i] = total


@kernel(void, KEY_TREE, i8, i8r, i8r, i8r, i8r, i4w)
def _fill(
    tree: Any, root: Any, values: Any, firsts: Any, lasts: Any, starts: Any, sids: Any
) -> None:
    keys, links, begins, ends, items = tree
    for i in range(len(values)):
        at = starts[i]
        node = first_from(keys, links, root, firsts[i])
        while node != NONE and keys[node] <= lasts[i]:
            first, last = _satisfied(keys[node], values[i])
            for n in range(WIDTH * node + first, WIDTH * node + last):
                at = copy_list(begins, ends, items, n, sids, at)
            node = neighbour(links, node, RIGHT)


class RedBlackPredicates(PredicateIndex):
    """One tree on all constants, five arrays of sids to a node; see the module."""

    def __init__(self, tree: RedBlackTree) -> None:
        self.tree = tree

    @classmethod
    def build(cls, operators: NDArray[np.uint8], keys: Int64s, sids: Int32s) -> Self:
        """O(n log n)."""
        kinds = np.array([_KINDS[operator][0] for operator in range(len(_KINDS))], np.int32)
        again = np.flatnonzero(operators == UNEQUAL)
        tree = RedBlackTree.build(
            np.concatenate((keys, keys[again])),
            np.concatenate((kinds[operators], np.full(len(again), _KINDS[UNEQUAL][1]))),
            np.concatenate((sids, sids[again])),
            WIDTH,
        )
        return cls(tree)

    def insert(self, operator: int, key: int, sid: int) -> None:
        """Add one predicate: O(log n) and the length of its arrays."""
        self.tree.insert(key, _KINDS[operator], sid)

    def delete(self, operator: int, key: int, sid: int) -> bool:
        """Take one predicate out: O(log n) and the length of its arrays.

        Two predicates ``<`` and ``>`` of one constant and sid are the same as ``!=``.
        """
        return self.tree.delete(key, _KINDS[operator], sid)

    def count(self, values: Int64s, firsts: Int64s, lasts: Int64s, counts: Int64s) -> None:
        """O(n) for each distinct value."""
        tree = self.tree
        _count(tree.searched, tree.state[ROOT], values, firsts, lasts, counts)

    def fill(
        self, values: Int64s, firsts: Int64s, lasts: Int64s, starts: Int64s, sids: Int32s
    ) -> None:
        """O(n + L) for each value."""
        tree = self.tree
        _fill(tree.searched, tree.state[ROOT], values, firsts, lasts, starts, sids)

    def statistics(self) -> dict[str, int | float]:
        """Sids (those of ``!=`` twice), distinct constants, and the height of the tree."""
        tree = self.tree
        return {"entries": tree.n_sids, "keys": tree.n_keys, "height": tree.height}

    def sids(self) -> Int32s:
        """Every stored sid, in order of the constants."""
        return self.tree.contents()[2]

    def check(self) -> None:
        """Verify the tree: O(n log n)."""
        self.tree.check()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the tree."""
        return self.tree.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are: O(1)."""
        return cls(RedBlackTree.from_arrays(arrays, WIDTH))


class RedBlack(PredicateStabbing):
    """Intervals of cells as predicates of the red-black-tree-based index."""

    name = "red-black"
    predicates = RedBlackPredicates
