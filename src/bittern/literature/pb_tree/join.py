"""Joining leaves and branches that deletions have left with little, upwards from a leaf.

A page that is less than a quarter full is joined with the sibling to its right, or else to its
left, under the same parent, if both fit into one page with an eighth to spare, so that the next
insertion does not cut it again. An empty page that has no sibling, or none that it fits to, is
taken out of its parent, which may take its parent out in turn::

    [ 10 | 20 | 30 ]                      [ 10 | 30 ]
      |    |    |         11 is joined      |    |
     1 5  11   31 35      with 1 5        1 5 11  31 35

The page to the left stays, the separator of the one to the right goes. A branch that is joined
takes its separator down, since the key of its own first slot says nothing. A root with one child
gives way to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline
from bittern.literature.pb_tree.chains import give_back, unlink
from bittern.literature.pb_tree.pages import (
    BRANCH,
    BRANCHES,
    CHILD,
    COUNT,
    HEADER,
    HEIGHT,
    KIND,
    LEAF,
    LEAVES,
    LONGEST,
    PAGE_WORDS,
    ROOT,
    Key,
    drop_item,
    free_words,
    move_items,
    prefix_in,
    put_item,
    slot_of,
    take_key,
)
from bittern.literature.pb_tree.pool import fetch, touch


@inline
def used_words(ints: Any, base: Any, words: Any) -> Any:
    """Words of slots and contents."""
    return words - HEADER - free_words(ints, base, words)


@apart
def fit_together(ints: Any, tree: Any, base: Any, other: Any) -> Any:
    """Whether the items of two pages are to be in one."""
    words = tree[PAGE_WORDS]
    a, b = used_words(ints, base, words), used_words(ints, other, words)
    need = a + b if min(a, b) == 0 else a + b + (words >> 3)
    if ints[base + KIND] == BRANCH:
        need += tree[LONGEST]  # the separator that comes down
    return need <= words - HEADER


@apart
def discard(pages: Any, free: Any, page: Any) -> None:
    """A leaf or branch is no longer part of the tree."""
    pool, ints, longs, tree = pages
    if ints[fetch(pool, longs, page) + KIND] == LEAF:
        unlink(pages, page)
        tree[LEAVES] -= 1
    else:
        tree[BRANCHES] -= 1
    give_back(pool, tree, free, page)


@apart
def join_siblings(pages: Any, free: Any, parent: Any, slot: Any, scratch: Any) -> Any:
    """Move the items of child ``slot`` + 1 to child ``slot``, if they fit; whether they did."""
    pool, ints, longs, tree = pages
    above, words = fetch(pool, longs, parent), tree[PAGE_WORDS]
    if slot < 0 or slot + 1 >= ints[above + COUNT]:
        return False
    left = np.int64(ints[slot_of(ints, above, slot) + CHILD])
    right = np.int64(ints[slot_of(ints, above, slot + 1) + CHILD])
    base, other = fetch(pool, longs, left), fetch(pool, longs, right)
    if not fit_together(ints, tree, base, other):
        return False
    touch(pool, left)
    touch(pool, parent)
    if ints[other + KIND] == BRANCH and ints[other + COUNT]:
        take_key(ints, above, slot + 1, scratch)
        child = ints[slot_of(ints, other, 0) + CHILD]
        touch(pool, right)
        drop_item(ints, longs, other, words, 0)
        moved = put_item(
            ints,
            longs,
            base,
            words,
            np.int64(ints[base + COUNT]),
            Key(prefix_in(scratch), np.int64(scratch[2]), scratch, np.int64(3)),
        )
        ints[moved + CHILD] = child
    move_items(ints, longs, other, words, 0, base)
    drop_item(ints, longs, above, words, slot + 1)
    discard(pages, free, right)
    return True


@apart
def mend(pages: Any, free: Any, path: Any, level: Any, scratch: Any) -> None:
    """Join pages upwards from the leaf at the end of a path, as far as needed."""
    pool, ints, longs, tree = pages
    while level > 0:
        page, parent = path[2 * level], path[2 * level - 2]
        base = fetch(pool, longs, page)
        if used_words(ints, base, tree[PAGE_WORDS]) >= tree[PAGE_WORDS] >> 2:
            return
        slot, empty = path[2 * level - 1], ints[base + COUNT] == 0
        joined = join_siblings(pages, free, parent, slot, scratch) or join_siblings(
            pages, free, parent, slot - 1, scratch
        )
        if not joined:
            if not empty:
                return
            touch(pool, parent)
            drop_item(ints, longs, fetch(pool, longs, parent), tree[PAGE_WORDS], slot)
            discard(pages, free, page)
        level -= 1
    root = tree[ROOT]
    base = fetch(pool, longs, root)
    while ints[base + KIND] == BRANCH and ints[base + COUNT] == 1:
        tree[ROOT] = ints[base + HEADER + CHILD]
        tree[HEIGHT] -= 1
        tree[BRANCHES] -= 1
        give_back(pool, tree, free, root)
        root = tree[ROOT]
        base = fetch(pool, longs, root)
