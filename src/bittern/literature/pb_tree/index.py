r"""PB+tree (Wang, Zhang and Kitsuregawa 2004), the predicate index of seed 002.

A B+tree on the constants of predicates, with its leaves linked, and below the leaves three lists in
the order of the constants. All six operators are in one structure::

    predicates   > 3 sid 1    >= 5 sid 2    = 5 sid 3    < 8 sid 4    != 6 sid 5

                          [ 3  6 ]                  branch
                         /    |   \
    leaf list       MIN   3  5 {2,3}   6  8 MAX     SidSets of =, <= and >=
    Inequality      MIN ......... 6 {5} ....... MAX   !=
    GreaterThan     MIN . 3 {1} . 5 {2} ....... MAX   >, >=
    LessThan        MIN ............. 8 {4} ... MAX   <, <=

A leaf item points to a node of each list: of GreaterThan and Inequality to the one that has the
largest key not above its own, of LessThan to the one with the smallest not below. So a search goes
down the tree once, takes the SidSet of the value if there is one, and collects from four starting
points: GreaterThan downwards, LessThan upwards, Inequality both ways. 5: ``{2, 3}``, then 3
``{1}``, 8 ``{4}``, 6 ``{5}``. The lowest and the highest key of each list are sentinels.

Costs, for n constants and L sids found: space O(n), search O(log n + L). An insertion or deletion
is O(log n) and the leaves whose pointers have to be adjusted when a node of a list is cut or joined
(O(n) at worst, see ``adjust.py``).

Everything lies in pages of ``page_bytes`` (see ``pages.py``). Here all of them are one array in
memory or mapped from a snapshot; in ``predicate_file.py`` they are in a file of their own, which
can be changed, and of which a bounded part is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, occupied
from bittern.jit import read_only
from bittern.literature.pb_tree.check import check_tree, stored_sids
from bittern.literature.pb_tree.insert import PAGES_PER_STEP
from bittern.literature.pb_tree.page_table import PAGE_SIZES, checked_page_bytes
from bittern.literature.pb_tree.pages import PAGE_WORDS
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, TREE_SIZE, memory_pool
from bittern.literature.pb_tree.search import Bounds
from bittern.literature.pb_tree.tree import ASCENDING, PAGE_BYTES, Tree, new_tree, of_numbers
from bittern.literature.predicates.contract import PredicateIndex
from bittern.literature.predicates.sides import PredicateStabbing
from bittern.stabbing.contract import check_bytes, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

_FEWEST = PAGES_PER_STEP
"""Pages to begin with, and to have room for at least."""


class MemoryPages:
    """All pages in one array, page p at position p; one that is given is copied before a change."""

    def __init__(self, longs: NDArray[np.uint64], tree: Int64s, free: Int32s) -> None:
        self.pool = memory_pool(4 * int(tree[PAGE_WORDS]))
        self.longs, self.tree, self.free = longs, tree, free
        self.ints = longs.view(np.int32)
        self._own = False

    @classmethod
    def new(cls, page_bytes: int) -> Self:
        """Room for a few pages, and none yet."""
        made = cls(np.empty(0, np.uint64), new_tree(page_bytes), np.empty(0, np.int32))
        made.make_room()
        return made

    def make_room(self) -> None:
        """Add half as many pages: O(size)."""
        used = int(self.tree[N_PAGES])
        self._copy(used + max(_FEWEST, used // 2))

    def to_change(self) -> None:
        """Own the arrays, if they were given or are given away."""
        if not self._own:
            self._copy(int(self.tree[N_PAGES]) + _FEWEST)

    def trim(self) -> None:
        """Drop all spare room."""
        self._copy(int(self.tree[N_PAGES]))

    def _copy(self, pages: int) -> None:
        longs_each = int(self.tree[PAGE_WORDS]) // 2
        used, n_free = int(self.tree[N_PAGES]) * longs_each, int(self.tree[N_FREE])
        check_bytes(8 * pages * longs_each, "a PB+tree in memory", "a CEI index")
        longs, free = np.empty(pages * longs_each, np.uint64), np.zeros(pages, np.int32)
        kept = self.longs[:used]
        longs[: len(kept)] = kept
        longs[len(kept) : used] = 0
        free[:n_free] = self.free[:n_free]
        self.longs, self.ints, self.free = longs, longs.view(np.int32), free
        self.tree = self.tree.copy()
        self._own = True

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The pages in use, the tree's numbers, the free ones: what is changed next is a copy."""
        self._own = False
        end = int(self.tree[N_PAGES]) * int(self.tree[PAGE_WORDS]) // 2
        return {
            "pages": self.longs[:end],
            "tree": self.tree,
            "free": self.free[: int(self.tree[N_FREE])],
        }


class PBPredicates(PredicateIndex):
    """A PB+tree in memory."""

    def __init__(self, pages: MemoryPages) -> None:
        self._pages = pages
        self._tree = Tree(pages)

    @classmethod
    def build(
        cls,
        operators: NDArray[np.uint8],
        keys: Int64s,
        sids: Int32s,
        *,
        page_bytes: int = PAGE_BYTES,
    ) -> Self:
        """Insert everything in the order of the keys, which leaves full pages: O(n log n)."""
        made = cls(MemoryPages.new(page_bytes))
        made._tree.plant()
        order = np.argsort(keys, kind="stable")
        made._tree.insert(of_numbers(keys[order]), operators[order], sids[order])
        made._pages.trim()
        return made

    def insert(self, operator: int, key: int, sid: int) -> None:
        """O(log n) and the leaves adjusted."""
        self._pages.to_change()
        self._tree.insert(*_one(operator, key, sid))

    def delete(self, operator: int, key: int, sid: int) -> bool:
        """O(log n) and the leaves adjusted."""
        self._pages.to_change()
        return bool(self._tree.delete(*_one(operator, key, sid))[0])

    def count(self, values: Int64s, firsts: Int64s, lasts: Int64s, counts: Int64s) -> None:
        """O(log n) per value and the pages of each list that the batch needs, once."""
        counts[:] = 0
        self._tree.search(of_numbers(values), counts, bounds=_bounds(firsts, lasts))

    def fill(
        self, values: Int64s, firsts: Int64s, lasts: Int64s, starts: Int64s, sids: Int32s
    ) -> None:
        """The same, and the output."""
        self._tree.search(of_numbers(values), starts.copy(), sids, bounds=_bounds(firsts, lasts))

    def statistics(self) -> dict[str, int | float]:
        """Height, pages, list lengths, leaves adjusted per insertion: O(1)."""
        return self._tree.statistics()

    def sids(self) -> Int32s:
        """Every stored sid: O(size)."""
        return stored_sids(self._pages)

    def check(self) -> None:
        """Verify order, balance, links, sentinels, and each pointer by its definition: O(size)."""
        check_tree(self._pages)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The pages as they are."""
        return self._pages.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Search the pages where they are; SnapshotError if sizes disagree."""
        longs, tree, free = (np.asarray(arrays[name]) for name in ("pages", "tree", "free"))
        fit = (
            longs.dtype == np.uint64
            and tree.dtype == np.int64
            and free.dtype == np.int32
            and len(tree) == TREE_SIZE
            and 4 * tree[PAGE_WORDS] in PAGE_SIZES
            and tree[ASCENDING]
            and longs.shape == (tree[N_PAGES] * tree[PAGE_WORDS] // 2,)
            and free.shape == (tree[N_FREE],)
        )
        if not fit:
            raise unfit("a PB+tree")
        return cls(MemoryPages(read_only(longs), read_only(tree), read_only(free)))

    def kept(self) -> tuple[NDArray[Any], ...]:
        """Pages, numbers, free pages."""
        return self._pages.longs, self._pages.tree, self._pages.free


class PBTree(PredicateStabbing):
    """Intervals of cells as predicates of a PB+tree."""

    name = "pb-tree"
    predicates = PBPredicates

    @property
    def nbytes(self) -> int:
        """Without the working memory that each tree has beside its pages."""
        trees: list[Any] = [self.one, self.two.index]
        rows = self.cuts, self.two.ids, self.two.others
        return occupied(rows, *(tree.kept() for tree in trees))

    @classmethod
    def _build(
        cls,
        lows: Int32s,
        highs: Int32s,
        ids: Int32s,
        domain: int,
        *,
        cuts: ArrayLike | None = None,
        page_bytes: int = PAGE_BYTES,
        **parameters: Any,
    ) -> Self:
        """Built in the order of the keys; ``page_bytes`` is a power of two, 512 to 65,536."""
        parameters["page_bytes"] = checked_page_bytes(page_bytes)
        return super()._build(lows, highs, ids, domain, cuts=cuts, **parameters)


def _one(operator: int, key: int, sid: int) -> tuple[Any, ...]:
    keys = of_numbers(np.array([key], np.int64))
    return keys, np.array([operator], np.uint8), np.array([sid], np.int32)


def _bounds(firsts: Int64s, lasts: Int64s) -> Bounds:
    return Bounds(of_numbers(firsts).prefixes, of_numbers(lasts).prefixes)
