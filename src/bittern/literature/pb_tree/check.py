"""Verifying a PB+tree by its definitions, page by page.

What is looked at: every page is part of the tree or free; items ascend within pages and from one
page to the next; all leaves are at the same depth and between their separators; links lead to and
fro; sentinels are where they belong, and nowhere else; SidSets are complete; each pointer of each
leaf item leads to the node that its definition says, the one with the largest key not above
(GreaterThan, Inequality) or with the smallest not below (LessThan); all numbers of the tree.

Keys are compared in Python: O(size), some microseconds per item.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from bittern.jit import i8, i8w, kernel, u8r
from bittern.literature.pb_tree.pages import (
    BRANCH,
    BRANCHES,
    CHILD,
    COUNT,
    FIRST,
    FIRST_LEAF,
    FORK,
    HEADER,
    HEADS,
    HEIGHT,
    KEYS,
    KIND,
    LAST,
    LEAF,
    LEAF_SIDS,
    LEAVES,
    LENGTH,
    LIST,
    LIST_KEYS,
    LIST_NODES,
    LIST_SIDS,
    LONGEST,
    LT,
    N_SIDS,
    NEXT,
    PAGE_WORDS,
    PENDING,
    PHASE,
    PLACE,
    POINTERS,
    PREVIOUS,
    ROOT,
    SIDS,
    SPILL,
    SPILLED,
    SPILLS,
    TAIL,
    TAILS,
    stride_of,
    tail_words,
)
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, begin, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bittern.arrays import Int32s
    from bittern.literature.pb_tree.tree import Pages

_python = {each: getattr(each, "py_func", each) for each in (stride_of, tail_words)}


SortKey: TypeAlias = tuple[int, bytes, int]
"""Prefix, tail and length of a key, which sort as keys do."""


@kernel(i8, i8w, u8r, i8)
def _fetched(pool: Any, longs: Any, page: Any) -> Any:
    begin(pool)
    return fetch(pool, longs, page)


class Item(NamedTuple):
    """An item of a page; the key is None if it is a sentinel."""

    key: SortKey | None
    words: Int32s
    """Of the slot."""


class Page(NamedTuple):
    """A page, read."""

    number: int
    header: Int32s
    items: list[Item]
    ints: Int32s

    @property
    def keys(self) -> list[SortKey]:
        """Keys that are not sentinels."""
        return [item.key for item in self.items if item.key is not None]


def read_page(pages: Pages, number: int) -> Page:
    """A page with its items; AssertionError if slots and contents do not fit together."""
    words = int(pages.tree[PAGE_WORDS])
    assert 0 < number < pages.tree[N_PAGES], f"there is no page {number}"
    base = int(_fetched(pages.pool, pages.longs, number))
    ints = pages.ints[base : base + words].copy()
    longs = ints.view(np.uint64)
    kind, count = int(ints[KIND]), int(ints[COUNT])
    assert kind in (BRANCH, LEAF, LIST, SPILL, FORK), f"page {number} is of no kind"
    if kind == SPILL:
        assert 0 < count <= words - HEADER, f"spill page {number} has {count} sids"
        assert (ints[HEADER : HEADER + count] >= 0).all(), f"a sid of page {number} is negative"
        return Page(number, ints[:HEADER], [], ints)
    if kind == FORK:
        assert 0 < count <= (words - HEADER) // 2, f"fork {number} has {count} children"
        return Page(number, ints[:HEADER], [], ints)
    stride = _python[stride_of](kind)
    assert 0 <= count <= (words - HEADER) // stride, f"page {number} has {count} items"
    flags = {int(ints[FIRST]), int(ints[LAST])}
    assert flags <= ({0} if kind == BRANCH else {0, 1}), f"page {number} has odd sentinels"
    items, edge, sids, spilled = [], words, 0, 0
    for at in range(count):
        slot = HEADER + at * stride
        length, tail = int(ints[slot + TAIL]) & LENGTH, int(ints[slot + TAIL]) >> 16
        size = _python[tail_words](length)
        assert tail + size == edge, f"item {at} of page {number} has its tail elsewhere"
        edge = tail
        if kind != BRANCH:
            place, own = int(ints[slot + PLACE]), int(ints[slot + N_SIDS])
            sids += own
            if place >= 0:
                assert place + own == edge, f"item {at} of page {number} has its sids elsewhere"
                assert (ints[place:edge] >= 0).all(), f"a sid of page {number} is negative"
                edge = place
            else:
                spilled += 1
        lone = (at == 0 and ints[FIRST]) or (at == count - 1 and ints[LAST])
        key = None if lone else _key(ints, longs, slot, length, tail)
        items.append(Item(key, ints[slot : slot + stride]))
    assert HEADER + count * stride <= edge, f"slots and contents of page {number} overlap"
    if kind != BRANCH:
        assert int(longs[SIDS]) == sids, f"page {number} has another number of sids"
        assert int(ints[SPILLED]) == spilled, f"page {number} has other spilled SidSets"
    keys = [item.key for item in items[kind == BRANCH :] if item.key is not None]
    assert all(a < b for a, b in pairwise(keys)), f"the keys of page {number} do not ascend"
    return Page(number, ints[:HEADER], items, ints)


def _sids_of(page: Page) -> Int32s:
    """The sids of a spill page."""
    return page.ints[HEADER : HEADER + int(page.header[COUNT])]


def _key(ints: Int32s, longs: Any, slot: int, length: int, tail: int) -> SortKey:
    rest = ints[tail : tail + _python[tail_words](length)].astype(">i4").tobytes()
    return int(longs[slot // 2]), rest, length


class Checked:
    """What is known of the pages that were looked at."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.tree = pages, pages.tree
        self.seen: set[int] = set()
        self.spills = 0

    def read(self, number: int, *kinds: int) -> Page:
        """A page that is to be of one of these kinds, and is met once."""
        assert number not in self.seen, f"page {number} is met twice"
        self.seen.add(number)
        page = read_page(self.pages, number)
        assert page.header[KIND] in kinds, f"page {number} is of kind {page.header[KIND]}"
        return page

    def sids(self, item: Item) -> int:
        """How many sids an item has; its spill pages are verified."""
        if item.words[PLACE] >= 0:
            return int(item.words[N_SIDS])
        spills = self.spilled(-int(item.words[PLACE]))
        numbers = [0, *(page.number for page in spills), 0]
        sids = [sid for page in spills for sid in _sids_of(page)]
        for at, page in enumerate(spills):
            links = int(page.header[PREVIOUS]), int(page.header[NEXT])
            assert links == (numbers[at], numbers[at + 2]), "a link of spill pages leads elsewhere"
        assert all(a <= b for a, b in pairwise(sids)), "sids of spill pages do not ascend"
        assert len(sids) == item.words[N_SIDS], "a spilled SidSet has another number of sids"
        return len(sids)

    def spilled(self, number: int) -> list[Page]:
        """The spill pages below one, in their order; all at the same depth."""
        level: list[tuple[int, int | None]] = [(number, None)]
        is_root = True
        while True:
            pages = [self.read(number, FORK, SPILL) for number, _ in level]
            self.spills += len(pages)
            kinds = {int(page.header[KIND]) for page in pages}
            assert len(kinds) == 1, "spill pages are at different depths"
            if kinds == {SPILL}:
                for page, (_, least) in zip(pages, level, strict=True):
                    assert least in (None, _sids_of(page)[0]), "a fork has another smallest sid"
                return pages
            below: list[tuple[int, int | None]] = []
            for page, (_, least) in zip(pages, level, strict=True):
                children = page.ints[HEADER : HEADER + 2 * int(page.header[COUNT])].reshape(-1, 2)
                assert len(children) > is_root, "a fork leads to one page only"
                leasts = [least, *children[1:, 0].tolist()]
                below += zip(children[:, 1].tolist(), leasts, strict=True)
            level, is_root = below, False

    def leaves(self) -> tuple[list[Page], int]:
        """The leaves in the order of the tree, and how many branches there are above."""
        found: list[Page] = []
        branches = 0
        stack: list[tuple[int, int, Any, Any]] = [(int(self.tree[ROOT]), 0, (), None)]
        while stack:
            number, level, low, high = stack.pop()
            if level < self.tree[HEIGHT]:
                page = self.read(number, BRANCH)
                branches += 1
                assert len(page.items) > (level == 0), f"branch {number} has too few children"
                keys: list[Any] = [low, *(item.key for item in page.items[1:]), high]
                assert all(a < b for a, b in pairwise(keys[:-1])), (
                    f"branch {number} is not above its separator"
                )
                children = [int(item.words[CHILD]) for item in page.items]
                below = [
                    (child, level + 1, keys[at], keys[at + 1]) for at, child in enumerate(children)
                ]
                stack += reversed(below)
                continue
            page = self.read(number, LEAF)
            found.append(page)
            assert all(low <= key for key in page.keys), f"leaf {number} is below its separator"
            assert high is None or all(key < high for key in page.keys), (
                f"leaf {number} is above its separator"
            )
        return found, branches

    def chain(self, head: int, kind: int) -> list[Page]:
        """The pages of a list from its head on."""
        found, before = [], 0
        while head:
            page = self.read(head, kind)
            assert page.header[PREVIOUS] == before, f"page {head} does not lead back"
            found.append(page)
            before, head = head, int(page.header[NEXT])
        return found


def check_tree(pages: Pages) -> None:
    """Verify everything; AssertionError says what is broken."""
    checked, tree = Checked(pages), pages.tree
    assert not tree[PENDING], "an adjustment is not at its end"
    assert not tree[PHASE], "a deletion is not at its end"
    leaves, branches = checked.leaves()
    _check_linked(leaves, "the leaf list")
    assert leaves[0].number == tree[FIRST_LEAF], "the first leaf is another one"
    items = [item for leaf in leaves for item in leaf.items]
    keys = _check_sentinels(items, "the leaf list")
    assert len(keys) == tree[KEYS], "the tree has another number of keys"
    assert sum(map(checked.sids, items)) == tree[LEAF_SIDS], "leaves have another number of sids"
    in_lists: set[SortKey] = set()
    for which in range(3):
        nodes = checked.chain(int(tree[HEADS + which]), LIST)
        _check_linked(nodes, f"list {which}")
        assert nodes[-1].number == tree[TAILS + which], f"the tail of list {which} is another one"
        assert len(nodes) == tree[LIST_NODES + which], f"list {which} has other pages"
        of_list = [item for node in nodes for item in node.items]
        own = _check_sentinels(of_list, f"list {which}")
        assert len(own) == tree[LIST_KEYS + which], f"list {which} has another number of keys"
        counts = [checked.sids(item) for item in of_list]
        assert all(counts[1:-1]), f"an item of list {which} has no sid"
        assert sum(counts) == tree[LIST_SIDS + which], f"list {which} has other sids"
        in_lists |= set(own)
        _check_pointers(items, nodes, which)
    for item in items:
        needed = item.key is None or item.key in in_lists or item.words[N_SIDS] > 0
        assert needed, "a leaf item has no sid, and no list has its key"
    assert in_lists <= set(keys), "a list has a key that the leaves do not have"
    longest = max((len(tail) // 4 for _, tail, _ in keys), default=0)
    assert longest <= tree[LONGEST], "a tail is longer than the longest"
    assert (len(leaves), branches) == (tree[LEAVES], tree[BRANCHES]), "the tree has other pages"
    assert checked.spills == tree[SPILLS], "there are other spill pages"
    free = set(pages.free[: int(tree[N_FREE])].tolist())
    assert len(free) == tree[N_FREE], "a page is free twice"
    assert not free & checked.seen, "a page of the tree is free"
    assert free | checked.seen == set(range(1, int(tree[N_PAGES]))), "a page is lost"


def _check_linked(pages: list[Page], what: str) -> None:
    numbers = [0, *(page.number for page in pages), 0]
    for at, page in enumerate(pages):
        links = int(page.header[PREVIOUS]), int(page.header[NEXT])
        assert links == (numbers[at], numbers[at + 2]), f"a link of {what} leads elsewhere"
        assert page.header[FIRST] == (at == 0), f"the head of {what} is not where it belongs"
        assert page.header[LAST] == (at == len(pages) - 1), f"the tail of {what} is elsewhere"
        assert page.items, f"a page of {what} is empty"


def _check_sentinels(items: list[Item], what: str) -> list[SortKey]:
    assert items[0].key is items[-1].key is None, f"{what} has no sentinel at an end"
    assert items[0].words[N_SIDS] == items[-1].words[N_SIDS] == 0, "a sentinel has sids"
    keys = [item.key for item in items[1:-1] if item.key is not None]
    assert len(keys) == len(items) - 2, f"{what} has a sentinel in between"
    assert all(a < b for a, b in pairwise(keys)), f"{what} does not ascend"
    return keys


def _check_pointers(items: list[Item], nodes: list[Page], which: int) -> None:
    """Each leaf item points to the node that has the largest key not above it, or the smallest."""
    keys: list[SortKey] = []
    owners: list[int] = []
    for node in nodes:
        keys += node.keys
        owners += [node.number] * len(node.keys)
    for item in items:
        if item.key is None:
            right = nodes[0].number if item is items[0] else nodes[-1].number
        elif which == LT:
            at = bisect_left(keys, item.key)
            right = owners[at] if at < len(keys) else nodes[-1].number
        else:
            at = bisect_right(keys, item.key)
            right = owners[at - 1] if at else nodes[0].number
        pointer = int(item.words[POINTERS + which])
        assert pointer == right, f"pointer {which} of a leaf item leads to {pointer}, not {right}"


def stored_sids(pages: Pages) -> Int32s:
    """Every sid of leaves and lists, as often as it is stored."""
    return np.concatenate([np.empty(0, np.int32), *_sids(pages)])


def _sids(pages: Pages) -> Iterator[Int32s]:
    free = set(pages.free[: int(pages.tree[N_FREE])].tolist())
    for number in range(1, int(pages.tree[N_PAGES])):
        if number in free:
            continue
        page = read_page(pages, number)
        if page.header[KIND] == SPILL:
            yield _sids_of(page)
        elif page.header[KIND] in (LEAF, LIST):
            for item in page.items:
                if item.words[PLACE] >= 0:
                    place = int(item.words[PLACE])
                    yield page.ints[place : place + int(item.words[N_SIDS])]
