"""Adjusting the pointers of leaf items, after a node of a list was cut, emptied or merged.

The items that change over are neighbours on the leaf list: from a start on, upwards or downwards,
all that point to the old node point to the new one, up to the first that points elsewhere::

    a cut of GreaterThan node A = 1 4 | 7 9 into A and B, seen from the leaf list

    key         1  2  4  5  7  8  9  11        start: 7, the first key of B, upwards
    GTPointer   A  A  A  A  B  B  B  B

Where a node lost its first (LessThan: last) key but keeps others, its own range is the bound.

An adjustment may go over many leaves, and has to wait for changed pages to be written in between.
So where it has got to is kept among the numbers of the tree (``PENDING``): the list and 1, the old
node, the new one, leaf, item in it, direction. The leaves it accesses are the paper's
Number_update, the one term of an insertion that is not O(log n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline
from bittern.literature.pb_tree.pages import (
    COUNT,
    FIRST,
    LAST,
    LENGTH,
    NEXT,
    PENDING,
    POINTERS,
    PREVIOUS,
    TAIL,
    Key,
    find,
    is_below,
    is_equal,
    prefix_in,
    slot_of,
)
from bittern.literature.pb_tree.pool import begin, fetch, has_room, touch
from bittern.literature.pb_tree.search import descend

UPWARDS, DOWNWARDS = 1, -1


@apart
def start_adjusting(
    pages: Any,
    which: Any,
    old: Any,
    new: Any,
    direction: Any,
    beyond: Any,
    scratch: Any,
) -> None:
    """Note an adjustment that begins at the leaf item of a key, or at the next item beyond it."""
    pool, ints, longs, tree = pages
    key = Key(prefix_in(scratch), np.int64(scratch[2]), scratch, np.int64(3))
    leaf = descend(pages, key)
    base = fetch(pool, longs, leaf)
    end = np.int64(ints[base + COUNT] - ints[base + LAST])
    at = find(ints, longs, base, np.int64(ints[base + FIRST]), end, key)
    tree[PENDING], tree[PENDING + 1], tree[PENDING + 2] = which + 1, old, new
    tree[PENDING + 3], tree[PENDING + 4] = leaf, at + direction if beyond else at
    tree[PENDING + 5] = direction


@inline
def is_over(ints: Any, longs: Any, base: Any, slot: Any, node: Any, direction: Any) -> Any:
    """Whether a leaf item still belongs to a node that lost its first, or its last, key."""
    count = np.int64(ints[node + COUNT])
    if count == 0:
        return False
    other = slot_of(ints, node, 0 if direction == UPWARDS else count - 1)
    tail = np.int64(node + (ints[other + TAIL] >> 16))
    key = Key(longs[other >> 1], np.int64(ints[other + TAIL] & LENGTH), ints, tail)
    below = is_below(ints, longs, base, slot, key)
    if direction == UPWARDS:
        return not below
    return below or is_equal(ints, longs, base, slot, key)


@apart
def adjust(pages: Any, figure: Any, bounded: Any) -> Any:
    """Go on with the adjustment that is noted; False if it needs room first.

    It ends with the first item that points elsewhere; if ``bounded``, also with the first that
    lies within what is left in the old node. ``figure`` counts the leaves that are accessed.
    """
    pool, ints, longs, tree = pages
    which, old, new = tree[PENDING] - 1, tree[PENDING + 1], tree[PENDING + 2]
    direction = tree[PENDING + 5]
    while tree[PENDING]:
        begin(pool)
        if not has_room(pool):
            return False
        leaf, at = tree[PENDING + 3], tree[PENDING + 4]
        base = fetch(pool, longs, leaf)
        node = fetch(pool, longs, old) if bounded else base
        changed = False
        while 0 <= at < ints[base + COUNT]:
            slot = slot_of(ints, base, at)
            if ints[slot + POINTERS + which] != old or (
                bounded and is_over(ints, longs, base, slot, node, direction)
            ):
                tree[PENDING] = 0
                break
            ints[slot + POINTERS + which] = new
            changed = True
            at += direction
        tree[figure] += 1
        if changed:
            touch(pool, leaf)
        if tree[PENDING]:
            leaf = np.int64(ints[base + NEXT] if direction == UPWARDS else ints[base + PREVIOUS])
            tree[PENDING + 3] = leaf
            if leaf == 0:
                tree[PENDING] = 0
            elif direction == UPWARDS:
                tree[PENDING + 4] = 0
            else:
                tree[PENDING + 4] = np.int64(ints[fetch(pool, longs, leaf) + COUNT]) - 1
    return True
