"""A PB+tree over pages, wherever these are: in memory, mapped, or in a file with a bounded cache.

::

    Tree ── pages.pool, ints, longs    the frames, and what is in them        (``pool``)
         ── pages.tree                 root, height, heads and tails, counts  (``pages``)
         ── pages.free                 numbers of free pages

A kernel that changes pages comes back when it has run out of them or of clean frames. Then
``make_room`` sees to it and the kernel goes on where it was. A kernel that only searches needs no
room: what it reads takes the place of what it read before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from bittern.jit import frozen, read_only
from bittern.literature.pb_tree.delete import delete_rows
from bittern.literature.pb_tree.insert import insert_rows, plant
from bittern.literature.pb_tree.pages import (
    ADJUSTED,
    BRANCHES,
    DELETED,
    HEIGHT,
    INSERTED,
    KEYS,
    LEAF_SIDS,
    LEAVES,
    LIST_KEYS,
    LIST_NODES,
    LIST_SIDS,
    PAGE_WORDS,
    PENDING,
    READJUSTED,
    SPILLS,
    TreeKeys,
)
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, TREE_SIZE
from bittern.literature.pb_tree.search import (
    COPY,
    COPY_COUNTED,
    COUNT_ONLY,
    NODES,
    Bounds,
    search,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bittern.arrays import Int32s, Int64s

PAGE_BYTES = 4096

ASCENDING = 44
"""Where the numbers of a tree say 1: sids of spill pages ascend, as they did not at first."""

LISTS = ("inequality", "greater_than", "less_than")
"""The lists in words, in the order of their numbers."""

_NO_SIDS, _NO_PREFIXES = np.empty(0, np.int32), np.empty(0, np.uint64)
_NO_BOUNDS = frozen(Bounds(_NO_PREFIXES, _NO_PREFIXES))
_NO_KEYS = frozen(TreeKeys(_NO_PREFIXES, _NO_SIDS, np.empty(0, np.int64), _NO_SIDS))
_SIGN = np.uint64(1 << 63)


class Pages(Protocol):
    """Where a tree's pages are."""

    @property
    def pool(self) -> Int64s:
        """What is in which frame; see ``pool``."""

    @property
    def ints(self) -> Int32s:
        """The frames as words ..."""

    @property
    def longs(self) -> NDArray[np.uint64]:
        """... and as longs."""

    @property
    def tree(self) -> Int64s:
        """The numbers of the tree; see ``pages``."""

    @property
    def free(self) -> Int32s:
        """A stack of free pages."""

    def make_room(self) -> None:
        """Provide pages to allocate and clean frames; the arrays may change."""


def of_numbers(numbers: Int64s) -> TreeKeys:
    """Whole numbers as keys."""
    _, lengths, starts, tails = _NO_KEYS
    return TreeKeys(read_only(numbers.view(np.uint64) ^ _SIGN), lengths, starts, tails)


def new_tree(page_bytes: int) -> Int64s:
    """The numbers of a tree that is not planted yet."""
    tree = np.zeros(TREE_SIZE, np.int64)
    tree[N_PAGES] = 1  # 0 is no page
    tree[PAGE_WORDS] = page_bytes // 4
    tree[ASCENDING] = 1
    return tree


class Tree:
    """Predicates in pages. Nothing is checked here; one thread changes it at a time."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages

    def plant(self) -> None:
        """Make the pages of an empty tree."""
        pages = self.pages
        plant(pages.pool, pages.ints, pages.longs, pages.tree, pages.free)

    def insert(self, keys: TreeKeys, operators: NDArray[np.uint8], sids: Int32s) -> None:
        """Add predicates, one after the other; ascending keys leave full pages."""
        row, pages = 0, self.pages
        while row < len(sids) or pages.tree[PENDING]:
            where = pages.pool, pages.ints, pages.longs, pages.tree, pages.free
            row = insert_rows(*where, keys, operators, sids, row)
            if row < len(sids) or pages.tree[PENDING]:
                pages.make_room()

    def delete(
        self, keys: TreeKeys, operators: NDArray[np.uint8], sids: Int32s
    ) -> NDArray[np.uint8]:
        """Take predicates out, one after the other; 1 for each that was there."""
        row, pages = 0, self.pages
        done = np.zeros(len(sids), np.uint8)
        while row < len(sids):
            where = pages.pool, pages.ints, pages.longs, pages.tree, pages.free
            row = delete_rows(*where, keys, operators, sids, row, done)
            if row < len(sids):
                pages.make_room()
        return done

    def search(
        self,
        values: TreeKeys,
        cursors: Int64s,
        sids: Int32s | None = None,
        *,
        counted: Int32s | None = None,
        bounds: Bounds = _NO_BOUNDS,
    ) -> Int32s:
        """Count, or write, the sids of ascending values from ``cursors`` on, which move on.

        Counting returns where they were found. A caller that passes this as ``counted``, to write
        the sids of the same values, saves the search for them.
        """
        pages, task = self.pages, COUNT_ONLY
        if sids is None:
            sids = _NO_SIDS
        else:
            task = COPY if counted is None else COPY_COUNTED
        nodes = np.empty((NODES, len(cursors)), np.int32) if counted is None else counted
        where = pages.pool, pages.ints, pages.longs, pages.tree
        search(*where, values, bounds, nodes, cursors, sids, task)
        return nodes

    def statistics(self) -> dict[str, int | float]:
        """The numbers of the tree, in words: O(1)."""
        tree = self.pages.tree
        inserted, deleted = int(tree[INSERTED]), int(tree[DELETED])
        found: dict[str, int | float] = {
            "page_bytes": int(tree[PAGE_WORDS]) * 4,
            "height": int(tree[HEIGHT]) + 1,
            "keys": int(tree[KEYS]),
            "entries": int(tree[LEAF_SIDS] + tree[LIST_SIDS : LIST_SIDS + 3].sum()),
            "pages": int(tree[N_PAGES] - tree[N_FREE]) - 1,
            "free_pages": int(tree[N_FREE]),
            "branch_pages": int(tree[BRANCHES]),
            "leaf_pages": int(tree[LEAVES]),
            "spill_pages": int(tree[SPILLS]),
            "leaf_sids": int(tree[LEAF_SIDS]),
        }
        for which, name in enumerate(LISTS):
            found[f"{name}_keys"] = int(tree[LIST_KEYS + which])
            found[f"{name}_sids"] = int(tree[LIST_SIDS + which])
            found[f"{name}_pages"] = int(tree[LIST_NODES + which])
        found["inserted"], found["deleted"] = inserted, deleted
        found["leaves_adjusted"] = int(tree[ADJUSTED])
        found["leaves_adjusted_per_insert"] = int(tree[ADJUSTED]) / max(inserted, 1)
        found["leaves_adjusted_per_delete"] = int(tree[READJUSTED]) / max(deleted, 1)
        return found
