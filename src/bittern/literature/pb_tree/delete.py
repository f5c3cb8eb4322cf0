"""Deleting from a PB+tree, which the paper calls the reverse of inserting and leaves out.

A row is done in phases, since pointers may have to be adjusted over more leaves than there is room
for at once; ``PHASE`` says where a row has got to::

    look    the leaf item and the list item are there and have the sid; else nothing changes
    take    the sid goes; a list item without sids goes with it
    point   it was the first key of its node (LessThan: the last): the leaf items between it and
            the next key of the list now belong to the neighbouring node (``adjust``, bounded)
    join    a node without items is unlinked; one that is less than a quarter full is joined with a
            neighbour if both fit into one page with an eighth to spare, and leaf items that
            pointed to the right one point to the left one
    mend    the leaf item goes if it has no sids and no list has its key; leaves and branches are
            joined in the same way, upwards; a root with one child gives way to it

Nodes of a list that hold a sentinel alone on their side (tail of GreaterThan and Inequality, head
of LessThan) are never joined: there, no leaf item but the sentinel's own points to them.

Cost: O(log n), and the leaves that are adjusted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, i4r, i4w, i8, i8w, kernel, u1r, u1w, u8w
from bittern.literature.pb_tree.adjust import DOWNWARDS, UPWARDS, adjust, start_adjusting
from bittern.literature.pb_tree.chains import give_back, unlink
from bittern.literature.pb_tree.insert import (
    PATH_SIZE,
    follow,
    is_in_leaf,
    key_words,
    list_of,
)
from bittern.literature.pb_tree.join import fit_together, mend, used_words
from bittern.literature.pb_tree.pages import (
    COUNT,
    DELETED,
    FIRST,
    KEYS,
    KEYS_TYPE,
    LAST,
    LEAF_SIDS,
    LIST_KEYS,
    LIST_NODES,
    LIST_SIDS,
    LT,
    N_SIDS,
    NEXT,
    PAGE_WORDS,
    PENDING,
    PHASE,
    POINTERS,
    PREVIOUS,
    READJUSTED,
    TAILS,
    Key,
    PageArrays,
    drop_item,
    find,
    holds,
    move_items,
    slot_of,
    take_key,
)
from bittern.literature.pb_tree.pool import begin, fetch, has_room, touch
from bittern.literature.pb_tree.search import descend, key_of
from bittern.literature.pb_tree.sid_sets import has_sid, take_sid

LOOK, POINT, JOINED, MEND = 0, 1, 2, 3
"""Values of PHASE; behind it stand the list and the node at hand."""


@apart
def item_of(pages: Any, page: Any, key: Any) -> Any:
    """The item of a key in a leaf or node, or -1."""
    pool, ints, longs, _ = pages
    base = fetch(pool, longs, page)
    end = np.int64(ints[base + COUNT] - ints[base + LAST])
    first = np.int64(ints[base + FIRST])
    at = find(ints, longs, base, first, end, key)
    return at if holds(ints, longs, base, at, key) else np.int64(-1)


@apart
def take(
    pages: Any,
    free: Any,
    operator: Any,
    sid: Any,
    key: Any,
    way: Any,
    scratch: Any,
) -> Any:
    """Look and take; False, and nothing has changed, if it is not there."""
    pool, ints, longs, tree = pages
    leaf = descend(pages, key)
    at = item_of(pages, leaf, key)
    if at < 0:
        return False
    which = list_of(operator)
    base = fetch(pool, longs, leaf)
    node = np.int64(ints[slot_of(ints, base, at) + POINTERS + which]) if which >= 0 else 0
    place = np.int64(0)
    if is_in_leaf(operator) and not has_sid(pages, leaf, at, sid):
        return False
    if which >= 0:
        place = item_of(pages, node, key)
        if place < 0 or not has_sid(pages, node, place, sid):
            return False
    if is_in_leaf(operator):
        begin(pool)
        take_sid(pages, free, leaf, at, sid, way)
        tree[LEAF_SIDS] -= 1
    tree[PHASE] = MEND
    if which < 0:
        return True
    begin(pool)
    take_sid(pages, free, node, place, sid, way)
    tree[LIST_SIDS + which] -= 1
    other = fetch(pool, longs, node)
    if ints[slot_of(ints, other, place) + N_SIDS]:
        return True
    take_key(ints, other, place, scratch)
    drop_item(ints, longs, other, tree[PAGE_WORDS], place)
    tree[LIST_KEYS + which] -= 1
    tree[PHASE], tree[PHASE + 1], tree[PHASE + 2] = POINT, which, node
    if which == LT and place == ints[other + COUNT]:
        new = np.int64(ints[other + NEXT])
        start_adjusting(pages, which, node, new, DOWNWARDS, False, scratch)
    elif which != LT and place == 0:
        new = np.int64(ints[other + PREVIOUS])
        start_adjusting(pages, which, node, new, UPWARDS, False, scratch)
    return True


@apart
def join_nodes(
    pages: Any,
    free: Any,
    which: Any,
    left: Any,
    right: Any,
    scratch: Any,
) -> Any:
    """Move all items of a node to the one before it, if they fit; whether they did."""
    pool, ints, longs, tree = pages
    if left == 0 or right == 0:
        return False
    base, other = fetch(pool, longs, left), fetch(pool, longs, right)
    alone = ints[base + FIRST] if which == LT else ints[other + LAST]
    if alone or not fit_together(ints, tree, base, other):
        return False
    touch(pool, left)
    # The items that pointed to the right node: from its first key on, or from the left one's last.
    if which == LT:
        take_key(ints, base, np.int64(ints[base + COUNT]) - 1, scratch)
    else:
        take_key(ints, other, 0, scratch)
    if ints[other + LAST]:
        tree[TAILS + which] = left
    move_items(ints, longs, other, tree[PAGE_WORDS], 0, base)
    unlink(pages, right)
    tree[LIST_NODES + which] -= 1
    give_back(pool, tree, free, right)
    start_adjusting(pages, which, right, left, UPWARDS, which == LT, scratch)
    return True


@apart
def join(pages: Any, free: Any, scratch: Any) -> None:
    """Unlink the node at hand if it is empty, or join it with a neighbour if it has little."""
    pool, ints, longs, tree = pages
    which, node = tree[PHASE + 1], tree[PHASE + 2]
    base = fetch(pool, longs, node)
    tree[PHASE] = JOINED
    if ints[base + COUNT] == 0:
        unlink(pages, node)
        tree[LIST_NODES + which] -= 1
        give_back(pool, tree, free, node)
        return
    if used_words(ints, base, tree[PAGE_WORDS]) >= tree[PAGE_WORDS] >> 2:
        return
    previous, following = np.int64(ints[base + PREVIOUS]), np.int64(ints[base + NEXT])
    if not join_nodes(pages, free, which, node, following, scratch):
        join_nodes(pages, free, which, previous, node, scratch)


@apart
def is_needed(
    pages: Any,
    leaf: Any,
    at: Any,
    key: Any,
) -> Any:
    """Whether a leaf item has sids, or a list has its key."""
    pool, ints, longs, _ = pages
    base = fetch(pool, longs, leaf)
    slot = slot_of(ints, base, at)
    if ints[slot + N_SIDS]:
        return True
    for which in range(3):
        node = np.int64(ints[slot + POINTERS + which])
        if item_of(pages, node, key) >= 0:
            return True
    return False


@kernel(i8, i8w, i4w, u8w, i8w, i4w, KEYS_TYPE, u1r, i4r, i8, u1w)
def delete_rows(
    pool: Any,
    ints: Any,
    longs: Any,
    tree: Any,
    free: Any,
    keys: Any,
    operators: Any,
    sids: Any,
    row: Any,
    done: Any,
) -> Any:
    """Delete rows from ``row`` on; returns the first that is not done, for want of room.

    ``done`` becomes 1 for rows that were there.
    """
    pages = PageArrays(pool, ints, longs, tree)
    way, scratch = np.empty(PATH_SIZE, np.int64), np.empty(key_words(tree), np.int32)
    while row < len(sids):
        begin(pool)
        if not has_room(pool):
            return row
        length, start = key_of(keys.lengths, keys.starts, row)
        key = Key(keys.prefixes[row], length, keys.tails, start)
        if tree[PHASE] == LOOK:
            if not take(pages, free, operators[row], sids[row], key, way, scratch):
                row += 1
                continue
            done[row] = 1
            tree[DELETED] += 1
        if tree[PHASE] == POINT:
            if tree[PENDING] and not adjust(pages, READJUSTED, True):
                return row
            begin(pool)
            join(pages, free, scratch)
        if tree[PHASE] == JOINED:
            if tree[PENDING] and not adjust(pages, READJUSTED, False):
                return row
            tree[PHASE] = MEND
        begin(pool)
        if not has_room(pool):
            return row
        level = follow(pages, way, key)
        leaf = way[2 * level]
        at = item_of(pages, leaf, key)
        if at >= 0 and not is_needed(pages, leaf, at, key):
            touch(pool, leaf)
            drop_item(ints, longs, fetch(pool, longs, leaf), tree[PAGE_WORDS], at)
            tree[KEYS] -= 1
            mend(pages, free, way, level, scratch)
        tree[PHASE] = LOOK
        row += 1
    return row
