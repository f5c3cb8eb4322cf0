"""Inserting into a PB+tree: the constant into the B+tree, the sid into its SidSets (Fig. 6 and 7).

A new constant takes over the pointers of its neighbours: GTPointer and INEQPointer of the item
before it, LTPointer of the item behind it. The sid then goes to the SidSet of the leaf (``=``,
``<=``, ``>=``) and into the node of the list that the item points to (``>``, ``>=`` GreaterThan;
``<``, ``<=`` LessThan; ``!=`` Inequality). A key of its own in that node leaves all pointers
right, since they point to nodes, not to items.

One page at a time makes room. Where a page that is to be changed is full, it is cut in two and the
row begins anew, with nothing done yet; a branch makes room for the separator before its child is
cut. So each attempt either changes everything or cuts one page, and the tree is whole in between.

When a node of a list is cut, the leaf items from the cut on that pointed to it point to the new
node: the paper's adjustment (``adjust``).

Costs: O(log n) and the leaves that are adjusted, in the mean the leaves that a node of the list
spans divided by the items it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, i4r, i4w, i8, i8w, inline, kernel, u1r, u8w
from bittern.literature.pb_tree.adjust import UPWARDS, adjust, start_adjusting
from bittern.literature.pb_tree.chains import link_behind, new_page
from bittern.literature.pb_tree.pages import (
    ADJUSTED,
    BRANCH,
    BRANCHES,
    CHILD,
    COUNT,
    FIRST,
    FIRST_LEAF,
    GT,
    HEADS,
    HEIGHT,
    INEQ,
    INSERTED,
    KEYS,
    KEYS_TYPE,
    KIND,
    LAST,
    LEAF,
    LEAF_SIDS,
    LEAVES,
    LIST,
    LIST_KEYS,
    LIST_NODES,
    LIST_SIDS,
    LONGEST,
    LT,
    PAGE_WORDS,
    PENDING,
    POINTERS,
    ROOT,
    TAILS,
    Key,
    PageArrays,
    find,
    free_words,
    holds,
    middle_of,
    move_items,
    prefix_in,
    put_item,
    slot_of,
    tail_words,
    take_key,
)
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, begin, fetch, has_room, touch
from bittern.literature.pb_tree.search import child_of, key_of, pointed_from
from bittern.literature.pb_tree.sid_sets import add_sid, room_for_sid
from bittern.literature.predicates.contract import AT_LEAST, AT_MOST, EQUAL, GREATER, UNEQUAL

_MOST_LEVELS = 48
"""Levels of branches, more than any tree has: pages that are cut have many children."""
PATH_SIZE = 2 * _MOST_LEVELS + 2
"""Room for a path: a page and a slot on each level."""

PAGES_PER_STEP = 16
"""Pages that a step may allocate: one for each level of two SidSets, however large, and for a new
top of each."""


@inline
def key_words(tree: Any) -> Any:
    """Room for a key that is taken from a page: prefix, length, and the longest tail."""
    return 3 + (tree[PAGE_WORDS] >> 2)


@inline
def list_of(operator: Any) -> Any:
    """The list that an operator belongs to; -1 for ``=``."""
    if operator == EQUAL:
        return -1
    if operator == UNEQUAL:
        return INEQ
    return GT if operator in (GREATER, AT_LEAST) else LT


@inline
def is_in_leaf(operator: Any) -> Any:
    """Whether the sid is in the SidSet of the leaf too."""
    return operator in (EQUAL, AT_MOST, AT_LEAST)


@apart
def follow(
    pages: Any,
    path: Any,
    key: Any,
) -> Any:
    """Go down to the leaf of a key, noting pages and slots; returns the level of the leaf."""
    pool, ints, longs, tree = pages
    level, page = 0, tree[ROOT]
    base = fetch(pool, longs, page)
    while ints[base + KIND] == BRANCH:
        at = child_of(ints, longs, base, key)
        path[2 * level], path[2 * level + 1] = page, at
        page = np.int64(ints[slot_of(ints, base, at) + CHILD])
        base = fetch(pool, longs, page)
        level += 1
    path[2 * level] = page
    return level


@apart
def split(
    pages: Any,
    free: Any,
    path: Any,
    level: Any,
    key: Any,
    scratch: Any,
) -> None:
    """Cut the page of this level, or one above that has no room for a separator, or the root.

    ``key`` is to come in.
    """
    pool, ints, longs, tree = pages
    words = tree[PAGE_WORDS]
    while level > 0:
        parent = fetch(pool, longs, path[2 * level - 2])
        if free_words(ints, parent, words) >= 4 + tree[LONGEST]:
            break
        level -= 1
    page = path[2 * level]
    if level == 0:
        root = new_page(pages, free, BRANCH)
        nothing = Key(np.uint64(0), np.int64(0), key.tails, np.int64(0))
        slot = put_item(ints, longs, fetch(pool, longs, root), words, 0, nothing)
        ints[slot + CHILD] = page
        tree[ROOT] = root
        tree[HEIGHT] += 1
        tree[BRANCHES] += 1
        return
    base = fetch(pool, longs, page)
    kind = np.int64(ints[base + KIND])
    first = 1 if kind == BRANCH else np.int64(ints[base + FIRST])
    end = np.int64(ints[base + COUNT] - ints[base + LAST])
    at = find(ints, longs, base, first, end, key)
    cut = middle_of(ints, base, words, at)
    right = new_page(pages, free, kind)
    other = fetch(pool, longs, right)
    touch(pool, page)
    if cut < end:
        take_key(ints, base, cut, scratch)
    else:  # only the key above all goes to the right: the new one will come before it
        scratch[0], scratch[1] = (
            np.int32(key.prefix & np.uint64(0xFFFFFFFF)),
            np.int32(key.prefix >> np.uint64(32)),
        )
        scratch[2] = key.length
        for k in range(tail_words(key.length)):
            scratch[3 + k] = key.tails[key.start + k]
    move_items(ints, longs, base, words, cut, other)
    if kind == LEAF:
        link_behind(pages, page, right)
        tree[LEAVES] += 1
    else:
        tree[BRANCHES] += 1
    above = path[2 * level - 2]
    parent = fetch(pool, longs, above)
    touch(pool, above)
    slot = put_item(
        ints,
        longs,
        parent,
        words,
        path[2 * level - 1] + 1,
        Key(prefix_in(scratch), np.int64(scratch[2]), scratch, np.int64(3)),
    )
    ints[slot + CHILD] = right


@apart
def split_list(
    pages: Any,
    free: Any,
    which: Any,
    node: Any,
    at: Any,
    scratch: Any,
) -> None:
    """Cut a node of a list, and note the adjustment that this makes necessary."""
    pool, ints, longs, tree = pages
    base, words = fetch(pool, longs, node), tree[PAGE_WORDS]
    touch(pool, node)
    cut = middle_of(ints, base, words, at)
    right = new_page(pages, free, LIST)
    tree[LIST_NODES + which] += 1
    # Items from this key on change over: at the first key of the new node, or, where pointers
    # look upwards, behind the last one of the old.
    take_key(ints, base, cut - 1 if which == LT else cut, scratch)
    move_items(ints, longs, base, words, cut, fetch(pool, longs, right))
    if ints[fetch(pool, longs, right) + LAST]:
        tree[TAILS + which] = right
    link_behind(pages, node, right)
    start_adjusting(pages, which, node, right, UPWARDS, which == LT, scratch)


@kernel(i8, i8w, i4w, u8w, i8w, i4w, KEYS_TYPE, u1r, i4r, i8)
def insert_rows(
    pool: Any,
    ints: Any,
    longs: Any,
    tree: Any,
    free: Any,
    keys: Any,
    operators: Any,
    sids: Any,
    row: Any,
) -> Any:
    """Insert rows from ``row`` on; returns the first that is not in yet, for want of room."""
    pages, words = PageArrays(pool, ints, longs, tree), tree[PAGE_WORDS]
    way, pointers = np.empty(PATH_SIZE, np.int64), np.empty(3, np.int64)
    scratch = np.empty(key_words(tree), np.int32)
    while True:
        if tree[PENDING] and not adjust(pages, ADJUSTED, False):
            return row
        if row == len(sids):
            return row
        begin(pool)
        full = tree[N_PAGES] - tree[N_FREE] + PAGES_PER_STEP > len(free)
        if full or not has_room(pool):
            return row
        operator = operators[row]
        length, start = key_of(keys.lengths, keys.starts, row)
        key = Key(keys.prefixes[row], length, keys.tails, start)
        tail = tail_words(length)
        tree[LONGEST] = max(tree[LONGEST], tail)
        level = follow(pages, way, key)
        leaf = way[2 * level]
        base = fetch(pool, longs, leaf)
        end = np.int64(ints[base + COUNT] - ints[base + LAST])
        first = np.int64(ints[base + FIRST])
        at = find(ints, longs, base, first, end, key)
        found = holds(ints, longs, base, at, key)
        need = 0 if found else 8 + tail
        if is_in_leaf(operator):
            need += room_for_sid(tree, ints, slot_of(ints, base, at)) if found else 1
        if free_words(ints, base, words) < need:
            split(pages, free, way, level, key, scratch)
            continue
        before, behind = pointed_from(pages, base, at, found)
        pointers[INEQ] = ints[before + POINTERS + INEQ]
        pointers[GT] = ints[before + POINTERS + GT]
        pointers[LT] = ints[behind + POINTERS + LT]
        which = list_of(operator)
        if which >= 0:
            node = pointers[which]
            other = fetch(pool, longs, node)
            last = np.int64(ints[other + COUNT] - ints[other + LAST])
            low = np.int64(ints[other + FIRST])
            spot = find(ints, longs, other, low, last, key)
            there = holds(ints, longs, other, spot, key)
            need = 7 + tail
            if there:
                need = room_for_sid(tree, ints, slot_of(ints, other, spot))
            if free_words(ints, other, words) < need:
                split_list(pages, free, which, node, spot, scratch)
                continue
            touch(pool, node)
            if not there:
                put_item(ints, longs, other, words, spot, key)
                tree[LIST_KEYS + which] += 1
            add_sid(pages, free, node, spot, sids[row])
            tree[LIST_SIDS + which] += 1
        base = fetch(pool, longs, leaf)
        if not found:
            touch(pool, leaf)
            slot = put_item(ints, longs, base, words, at, key)
            for k in range(3):
                ints[slot + POINTERS + k] = pointers[k]
            tree[KEYS] += 1
        if is_in_leaf(operator):
            add_sid(pages, free, leaf, at, sids[row])
            tree[LEAF_SIDS] += 1
        tree[INSERTED] += 1
        row += 1


@kernel(i8, i8w, i4w, u8w, i8w, i4w)
def plant(pool: Any, ints: Any, longs: Any, tree: Any, free: Any) -> Any:
    """Make an empty tree: head and tail of each list, and a leaf with the two sentinels."""
    pages = PageArrays(pool, ints, longs, tree)
    begin(pool)
    words = tree[PAGE_WORDS]
    nothing = Key(np.uint64(0), np.int64(0), ints, np.int64(0))
    leaf = new_page(pages, free, LEAF)
    base = fetch(pool, longs, leaf)
    for at in range(2):
        put_item(ints, longs, base, words, at, nothing)
    ints[base + FIRST], ints[base + LAST] = 1, 1
    tree[ROOT], tree[FIRST_LEAF], tree[LEAVES] = leaf, leaf, 1
    for which in range(3):
        head = new_page(pages, free, LIST)
        tail = new_page(pages, free, LIST)
        for page, flag in ((head, FIRST), (tail, LAST)):
            other = fetch(pool, longs, page)
            put_item(ints, longs, other, words, 0, nothing)
            ints[other + flag] = 1
        link_behind(pages, head, tail)
        tree[HEADS + which], tree[TAILS + which] = head, tail
        tree[LIST_NODES + which] = 2
        ints[slot_of(ints, base, 0) + POINTERS + which] = head
        ints[slot_of(ints, base, 1) + POINTERS + which] = tail
    return leaf
