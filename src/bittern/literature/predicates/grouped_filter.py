"""Grouped Filter (Madden et al. 2002, the index of CACQ): a rival of the PB+tree in seed 002.

Predicates on one attribute are grouped by operator into four structures, two ordered trees
(``red_black_nodes``) and two hash tables (``key_table``)::

    greater   tree on the constants of > and >=         > 3 sid 9     >= 3 sid 5    >= 8 sid 2
    less      tree on the constants of < and <=         < 5 sid 8
    equal     hash table on the constants of =          = 3 sid 7
    unequal   hash table on the constants of !=         != 4 sid 6

    value 4   greater, from 4 down to the first key: 3, both lists: {9, 5}
              less, from 4 up to the last key: 5: {8}
              equal: none.      unequal: everything but 4: none

A node of a tree has two lists, one for the strict operator and one for the other; the strict one
does not count where the key is the value.

Costs, for n distinct constants and L sids found: a search O(log n + L), since each node that is
visited has something to give; an insertion or deletion O(log n) and the length of the list, which
is kept in order. A value looks at all of ``unequal``: where several attributes share one index and
use ``!=``, also at the keys of the others.

``count`` goes through a tree once for all values of an attribute, in their order, adding up on
the way: as much as for the farthest of them alone. ``fill`` goes from each value's bound
outwards, as above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, prefixed, under
from bittern.jit import i4w, i8, i8r, i8w, kernel, void
from bittern.literature.predicates.contract import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    GREATER,
    LESS,
    UNEQUAL,
    PredicateIndex,
)
from bittern.literature.predicates.key_table import KeyTable, entry_of
from bittern.literature.predicates.keyed_lists import (
    KEY_TABLE,
    KEY_TREE,
    NONE,
    ROOT,
    USED,
    KeyedLists,
    copy_list,
    length_of,
)
from bittern.literature.predicates.red_black_nodes import (
    LEFT,
    RIGHT,
    RedBlackTree,
    first_from,
    last_to,
    neighbour,
)
from bittern.literature.predicates.sides import PredicateStabbing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

STRICT, INCLUSIVE = 0, 1
"""Lists of a node: ids of > or <, and of >= or <=."""

_PLACES = {
    EQUAL: ("equal", 0),
    UNEQUAL: ("unequal", 0),
    LESS: ("less", STRICT),
    AT_MOST: ("less", INCLUSIVE),
    GREATER: ("greater", STRICT),
    AT_LEAST: ("greater", INCLUSIVE),
}
"""Which structure an operator's predicates are in, and which list of a node there."""

_WIDTHS = {"greater": 2, "less": 2, "equal": 1, "unequal": 1}


@kernel(void, KEY_TREE, i8, i8r, i8r, i8w)
def _count_greater(tree: Any, root: Any, values: Any, firsts: Any, counts: Any) -> None:
    """Add the sids below each value, from the first key of its attribute upwards."""
    keys, links, begins, ends, _ = tree
    node, below = NONE, 0
    for i in range(len(values)):
        if i == 0 or firsts[i] != firsts[i - 1]:
            node, below = first_from(keys, links, root, firsts[i]), 0
        while node != NONE and keys[node] < values[i]:
            below += length_of(begins, ends, 2 * node) + length_of(begins, ends, 2 * node + 1)
            node = neighbour(links, node, RIGHT)
        counts[i] += below
        if node != NONE and keys[node] == values[i]:
            counts[i] += length_of(begins, ends, 2 * node + INCLUSIVE)


@kernel(void, KEY_TREE, i8, i8r, i8r, i8w)
def _count_less(tree: Any, root: Any, values: Any, lasts: Any, counts: Any) -> None:
    """Add the sids above each value, from the last key of its attribute downwards."""
    keys, links, begins, ends, _ = tree
    node, above = NONE, 0
    for i in range(len(values) - 1, -1, -1):
        if i == len(values) - 1 or lasts[i] != lasts[i + 1]:
            node, above = last_to(keys, links, root, lasts[i]), 0
        while node != NONE and keys[node] > values[i]:
            above += length_of(begins, ends, 2 * node) + length_of(begins, ends, 2 * node + 1)
            node = neighbour(links, node, LEFT)
        counts[i] += above
        if node != NONE and keys[node] == values[i]:
            counts[i] += length_of(begins, ends, 2 * node + INCLUSIVE)


@kernel(void, KEY_TABLE, i8r, i8w)
def _count_equal(table: Any, values: Any, counts: Any) -> None:
    keys, slots, begins, ends, _ = table
    for i in range(len(values)):
        entry = entry_of(keys, slots, values[i])  # list 0, of no entry, is empty
        counts[i] += length_of(begins, ends, entry)


@kernel(void, KEY_TABLE, i8, i8r, i8r, i8r, i8w)
def _count_unequal(
    table: Any, used: Any, values: Any, firsts: Any, lasts: Any, counts: Any
) -> None:
    """Add up each attribute once, and leave out what is equal to the value."""
    keys, slots, begins, ends, _ = table
    total = 0
    for i in range(len(values)):
        if i == 0 or firsts[i] != firsts[i - 1]:
            total = 0
            for entry in range(1, used):  # the lists of free entries are empty
                if firsts[i] <= keys[entry] <= lasts[i]:
                    total += length_of(begins, ends, entry)
        counts[i] += total - length_of(begins, ends, entry_of(keys, slots, values[i]))


@kernel(void, KEY_TREE, i8, i8r, i8r, i8w, i4w, i8)
def _fill_ordered(
    tree: Any, root: Any, values: Any, bounds: Any, places: Any, sids: Any, side: Any
) -> None:
    """Write the sids from each value to this side, up to the bound of its attribute."""
    keys, links, begins, ends, items = tree
    for i in range(len(values)):
        at, value, bound = places[i], values[i], bounds[i]
        if side == LEFT:
            node = last_to(keys, links, root, value)
        else:
            node = first_from(keys, links, root, value)
        while node != NONE and (keys[node] >= bound if side == LEFT else keys[node] <= bound):
            if keys[node] != value:
                at = copy_list(begins, ends, items, 2 * node + STRICT, sids, at)
            at = copy_list(begins, ends, items, 2 * node + INCLUSIVE, sids, at)
            node = neighbour(links, node, side)
        places[i] = at


@kernel(void, KEY_TABLE, i8r, i8w, i4w)
def _fill_equal(table: Any, values: Any, places: Any, sids: Any) -> None:
    keys, slots, begins, ends, items = table
    for i in range(len(values)):
        entry = entry_of(keys, slots, values[i])
        places[i] = copy_list(begins, ends, items, entry, sids, places[i])


@kernel(void, KEY_TABLE, i8, i8r, i8r, i8r, i8w, i4w)
def _fill_unequal(
    table: Any, used: Any, values: Any, firsts: Any, lasts: Any, places: Any, sids: Any
) -> None:
    keys, slots, begins, ends, items = table
    for i in range(len(values)):
        at, equal = places[i], entry_of(keys, slots, values[i])
        for entry in range(1, used):
            if firsts[i] <= keys[entry] <= lasts[i] and entry != equal:
                at = copy_list(begins, ends, items, entry, sids, at)
        places[i] = at


class GroupedPredicates(PredicateIndex):
    """Two trees and two hash tables, by operator; see the module."""

    def __init__(
        self, greater: RedBlackTree, less: RedBlackTree, equal: KeyTable, unequal: KeyTable
    ) -> None:
        self.greater, self.less, self.equal, self.unequal = greater, less, equal, unequal

    def _parts(self) -> Iterator[tuple[str, KeyedLists]]:
        for name in _WIDTHS:
            yield name, getattr(self, name)

    @classmethod
    def build(cls, operators: NDArray[np.uint8], keys: Int64s, sids: Int32s) -> Self:
        """O(n log n)."""
        parts: dict[str, Any] = {}
        for name, width in _WIDTHS.items():
            kinds = np.full(len(_PLACES), -1, np.int32)
            for operator, (where, kind) in _PLACES.items():
                if where == name:
                    kinds[operator] = kind
            own = np.flatnonzero(kinds[operators] >= 0)
            made = KeyTable if width == 1 else RedBlackTree
            parts[name] = made.build(keys[own], kinds[operators[own]], sids[own], width)
        return cls(**parts)

    def insert(self, operator: int, key: int, sid: int) -> None:
        """Add one predicate: O(log n) and the length of its list."""
        name, kind = _PLACES[operator]
        getattr(self, name).insert(key, np.array([kind], np.int32), sid)

    def delete(self, operator: int, key: int, sid: int) -> bool:
        """Take out exactly what was inserted: O(log n) and the length of its list."""
        name, kind = _PLACES[operator]
        part: KeyedLists = getattr(self, name)
        return part.delete(key, np.array([kind], np.int32), sid)

    def count(self, values: Int64s, firsts: Int64s, lasts: Int64s, counts: Int64s) -> None:
        """O(log n) per attribute, and the nodes that the values of an attribute visit together."""
        counts[:] = 0
        for tree, count, bounds in (
            (self.greater, _count_greater, firsts),
            (self.less, _count_less, lasts),
        ):
            if tree.n_sids:
                count(tree.searched, tree.state[ROOT], values, bounds, counts)
        if self.equal.n_sids:
            _count_equal(self.equal.searched, values, counts)
        if self.unequal.n_sids:
            used = self.unequal.state[USED]
            _count_unequal(self.unequal.searched, used, values, firsts, lasts, counts)

    def fill(
        self, values: Int64s, firsts: Int64s, lasts: Int64s, starts: Int64s, sids: Int32s
    ) -> None:
        """O(log n + L) per value, and all keys of ``!=``."""
        places = starts.copy()
        for tree, side, bounds in ((self.greater, LEFT, firsts), (self.less, RIGHT, lasts)):
            if tree.n_sids:
                root = tree.state[ROOT]
                _fill_ordered(tree.searched, root, values, bounds, places, sids, side)
        if self.equal.n_sids:
            _fill_equal(self.equal.searched, values, places, sids)
        if self.unequal.n_sids:
            used = self.unequal.state[USED]
            _fill_unequal(self.unequal.searched, used, values, firsts, lasts, places, sids)

    def statistics(self) -> dict[str, int | float]:
        """Sids and distinct constants of each part, and the heights of the trees."""
        out: dict[str, int | float] = {"entries": sum(part.n_sids for _, part in self._parts())}
        for name, part in self._parts():
            out[f"{name}_keys"] = part.n_keys
            if isinstance(part, RedBlackTree):
                out[f"{name}_height"] = part.height
        return out

    def sids(self) -> Int32s:
        """Every stored sid, part by part."""
        return np.concatenate([part.contents()[2] for _, part in self._parts()])

    def check(self) -> None:
        """Verify both trees and both tables: O(n log n)."""
        for _, part in self._parts():
            part.check()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the parts, each under its name."""
        return {
            name: array
            for side, part in self._parts()
            for name, array in prefixed(f"{side}.", part.arrays()).items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the given arrays where they are: O(1)."""
        parts: dict[str, Any] = {}
        for name, width in _WIDTHS.items():
            made = KeyTable if width == 1 else RedBlackTree
            parts[name] = made.from_arrays(under(arrays, f"{name}."), width)
        return cls(**parts)


class GroupedFilter(PredicateStabbing):
    """Intervals of cells as predicates of a Grouped Filter."""

    name = "grouped-filter"
    predicates = GroupedPredicates
