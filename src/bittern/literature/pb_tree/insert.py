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

from bittern.jit import apart, i4r, i4w, i8, i8r, i8w, inline, kernel, u1r, u8r, u8w
from bittern.literature.pb_tree.adjust import UPWARDS, adjust, link_behind, start_adjusting
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
from bittern.literature.pb_tree.sid_sets import add_sid, new_page, room_for_sid
from bittern.literature.predicates.contract import AT_LEAST, AT_MOST, EQUAL, GREATER, UNEQUAL

MOST_LEVELS = 48
"""Levels of branches, more than any tree has: pages that are cut have many children."""

PAGES_PER_STEP = 8
"""Pages that a step may allocate."""


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
    pool: Any, ints: Any, longs: Any, tree: Any, path: Any,
    prefix: Any, length: Any, tails: Any, start: Any,
) -> Any:  # fmt: skip
    """Go down to the leaf of a key, noting pages and slots; returns the level of the leaf."""
    level, page = 0, tree[ROOT]
    base = fetch(pool, longs, page)
    while ints[base + KIND] == BRANCH:
        at = child_of(ints, longs, base, prefix, length, tails, start)
        path[2 * level], path[2 * level + 1] = page, at
        page = np.int64(ints[slot_of(ints, base, at) + CHILD])
        base = fetch(pool, longs, page)
        level += 1
    path[2 * level] = page
    return level


@apart
def split(
    pool: Any, ints: Any, longs: Any, tree: Any, free: Any, path: Any, level: Any,
    prefix: Any, length: Any, tails: Any, start: Any, scratch: Any,
) -> None:  # fmt: skip
    """Cut the page of this level, or one above that has no room for a separator, or the root.

    ``prefix`` and so on is the key that is to come in.
    """
    words = tree[PAGE_WORDS]
    while level > 0:
        parent = fetch(pool, longs, path[2 * level - 2])
        if free_words(ints, parent, words) >= 4 + tree[LONGEST]:
            break
        level -= 1
    page = path[2 * level]
    if level == 0:
        root = new_page(pool, ints, longs, tree, free, BRANCH)
        slot = put_item(ints, longs, fetch(pool, longs, root), words, 0, np.uint64(0), 0, tails, 0)
        ints[slot + CHILD] = page
        tree[ROOT] = root
        tree[HEIGHT] += 1
        tree[BRANCHES] += 1
        return
    base = fetch(pool, longs, page)
    kind = np.int64(ints[base + KIND])
    first = 1 if kind == BRANCH else np.int64(ints[base + FIRST])
    end = np.int64(ints[base + COUNT] - ints[base + LAST])
    at = find(ints, longs, base, first, end, prefix, length, tails, start)
    cut = middle_of(ints, base, words, at)
    right = new_page(pool, ints, longs, tree, free, kind)
    other = fetch(pool, longs, right)
    touch(pool, page)
    if cut < end:
        take_key(ints, base, cut, scratch)
    else:  # only the key above all goes to the right: the new one will come before it
        scratch[0], scratch[1] = (
            np.int32(prefix & np.uint64(0xFFFFFFFF)),
            np.int32(prefix >> np.uint64(32)),
        )
        scratch[2] = length
        for k in range(tail_words(length)):
            scratch[3 + k] = tails[start + k]
    move_items(ints, longs, base, words, cut, other)
    if kind == LEAF:
        link_behind(pool, ints, longs, page, right)
        tree[LEAVES] += 1
    else:
        tree[BRANCHES] += 1
    above = path[2 * level - 2]
    parent = fetch(pool, longs, above)
    touch(pool, above)
    slot = put_item(
        ints, longs, parent, words, path[2 * level - 1] + 1,
        prefix_in(scratch), np.int64(scratch[2]), scratch, 3,
    )  # fmt: skip
    ints[slot + CHILD] = right


@apart
def split_list(
    pool: Any, ints: Any, longs: Any, tree: Any, free: Any, which: Any, node: Any, at: Any,
    scratch: Any,
) -> None:  # fmt: skip
    """Cut a node of a list, and note the adjustment that this makes necessary."""
    base, words = fetch(pool, longs, node), tree[PAGE_WORDS]
    touch(pool, node)
    cut = middle_of(ints, base, words, at)
    right = new_page(pool, ints, longs, tree, free, LIST)
    tree[LIST_NODES + which] += 1
    # Items from this key on change over: at the first key of the new node, or, where pointers
    # look upwards, behind the last one of the old.
    take_key(ints, base, cut - 1 if which == LT else cut, scratch)
    move_items(ints, longs, base, words, cut, fetch(pool, longs, right))
    if ints[fetch(pool, longs, right) + LAST]:
        tree[TAILS + which] = right
    link_behind(pool, ints, longs, node, right)
    start_adjusting(pool, ints, longs, tree, which, node, right, UPWARDS, which == LT, scratch)


@kernel(i8, i8w, i4w, u8w, i8w, i4w, u8r, i4r, i8r, i4r, u1r, i4r, i8, i8w, i4w)
def insert_rows(
    pool: Any, ints: Any, longs: Any, tree: Any, free: Any,
    prefixes: Any, lengths: Any, starts: Any, tails: Any,
    operators: Any, sids: Any, row: Any, path: Any, scratch: Any,
) -> Any:  # fmt: skip
    """Insert rows from ``row`` on; returns the first that is not in yet, for want of room.

    ``path`` has room for MOST_LEVELS pages and slots and, before them, three pointers.
    """
    words, pointers, way = tree[PAGE_WORDS], path[:3], path[3:]
    while True:
        if tree[PENDING] and not adjust(pool, ints, longs, tree, ADJUSTED, False):
            return row
        if row == len(prefixes):
            return row
        begin(pool)
        full = tree[N_PAGES] - tree[N_FREE] + PAGES_PER_STEP > len(free)
        if full or not has_room(pool):
            return row
        prefix, operator = prefixes[row], operators[row]
        length, start = key_of(lengths, starts, row)
        tail = tail_words(length)
        tree[LONGEST] = max(tree[LONGEST], tail)
        level = follow(pool, ints, longs, tree, way, prefix, length, tails, start)
        leaf = way[2 * level]
        base = fetch(pool, longs, leaf)
        end = np.int64(ints[base + COUNT] - ints[base + LAST])
        first = np.int64(ints[base + FIRST])
        at = find(ints, longs, base, first, end, prefix, length, tails, start)
        found = holds(ints, longs, base, at, prefix, length, tails, start)
        need = 0 if found else 8 + tail
        if is_in_leaf(operator):
            need += room_for_sid(tree, ints, slot_of(ints, base, at)) if found else 1
        if free_words(ints, base, words) < need:
            split(pool, ints, longs, tree, free, way, level, prefix, length, tails, start, scratch)
            continue
        before, behind = pointed_from(pool, ints, longs, base, at, found)
        pointers[INEQ] = ints[before + POINTERS + INEQ]
        pointers[GT] = ints[before + POINTERS + GT]
        pointers[LT] = ints[behind + POINTERS + LT]
        which = list_of(operator)
        if which >= 0:
            node = pointers[which]
            other = fetch(pool, longs, node)
            last = np.int64(ints[other + COUNT] - ints[other + LAST])
            low = np.int64(ints[other + FIRST])
            spot = find(ints, longs, other, low, last, prefix, length, tails, start)
            there = holds(ints, longs, other, spot, prefix, length, tails, start)
            need = 7 + tail
            if there:
                need = room_for_sid(tree, ints, slot_of(ints, other, spot))
            if free_words(ints, other, words) < need:
                split_list(pool, ints, longs, tree, free, which, node, spot, scratch)
                continue
            touch(pool, node)
            if not there:
                put_item(ints, longs, other, words, spot, prefix, length, tails, start)
                tree[LIST_KEYS + which] += 1
            add_sid(pool, ints, longs, tree, free, node, spot, sids[row])
            tree[LIST_SIDS + which] += 1
        base = fetch(pool, longs, leaf)
        if not found:
            touch(pool, leaf)
            slot = put_item(ints, longs, base, words, at, prefix, length, tails, start)
            for k in range(3):
                ints[slot + POINTERS + k] = pointers[k]
            tree[KEYS] += 1
        if is_in_leaf(operator):
            add_sid(pool, ints, longs, tree, free, leaf, at, sids[row])
            tree[LEAF_SIDS] += 1
        tree[INSERTED] += 1
        row += 1


@kernel(i8, i8w, i4w, u8w, i8w, i4w)
def plant(pool: Any, ints: Any, longs: Any, tree: Any, free: Any) -> Any:
    """Make an empty tree: head and tail of each list, and a leaf with the two sentinels."""
    begin(pool)
    words = tree[PAGE_WORDS]
    nothing = ints[:0]
    leaf = new_page(pool, ints, longs, tree, free, LEAF)
    base = fetch(pool, longs, leaf)
    for at in range(2):
        put_item(ints, longs, base, words, at, np.uint64(0), 0, nothing, 0)
    ints[base + FIRST], ints[base + LAST] = 1, 1
    tree[ROOT], tree[FIRST_LEAF], tree[LEAVES] = leaf, leaf, 1
    for which in range(3):
        head = new_page(pool, ints, longs, tree, free, LIST)
        tail = new_page(pool, ints, longs, tree, free, LIST)
        for page, flag in ((head, FIRST), (tail, LAST)):
            other = fetch(pool, longs, page)
            put_item(ints, longs, other, words, 0, np.uint64(0), 0, nothing, 0)
            ints[other + flag] = 1
        link_behind(pool, ints, longs, head, tail)
        tree[HEADS + which], tree[TAILS + which] = head, tail
        tree[LIST_NODES + which] = 2
        ints[slot_of(ints, base, 0) + POINTERS + which] = head
        ints[slot_of(ints, base, 1) + POINTERS + which] = tail
    return leaf
