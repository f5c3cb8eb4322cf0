"""Searching a PB+tree: one descent for each value, then the four collecting scans.

The descent ends at a leaf. Its item of the value itself, if there is one, gives the SidSet of
``=``, ``<=`` and ``>=``; the item before and the item behind give the nodes of the lists where the
scans start (Fig. 8 and 9 of the paper)::

    value 6      leaf list       ... 4     5     7 ...
                 GreaterThan   Head ..  3   5            <- from 5 down to Head
                 LessThan                     8  .. Tail -> from 8 up to Tail
                 Inequality    Head .. 2       9 .. Tail    from 2 down, and from 9 up

Many values are searched at once, in ascending order. What a value finds in a list is what every
value further on finds as well, and some more, so that a scan begins at the last value's node (the
first one's, upwards) and the others *join* when it comes to theirs: each page of a list is visited
once for the whole batch, whichever values it serves. Where the tree holds several attributes, each
value *leaves* at the first key of its own.

A batch is counted first and copied then, with the same code: whole pages know how many sids they
have.
Cost: O(log n) page visits for a value, O(pages of the longest answer) for a scan, and the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.jit import (
    apart,
    i4r,
    i4w,
    i4w2,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u8r,
    void,
)
from bittern.literature.pb_tree.pages import (
    BRANCH,
    CHILD,
    COUNT,
    FIRST,
    GT,
    HEADER,
    INEQ,
    KEYS_TYPE,
    KIND,
    LAST,
    LIST_KEYS,
    LT,
    N_SIDS,
    NEXT,
    NUMBER_BYTES,
    PAGE_WORDS,
    PLACE,
    POINTERS,
    PREVIOUS,
    ROOT,
    SIDS,
    SPILLED,
    Key,
    PageArrays,
    TreeKeys,
    edge,
    find,
    holds,
    is_below,
    slot_of,
)
from bittern.literature.pb_tree.pool import begin, fetch
from bittern.literature.pb_tree.spills import first_spill

if TYPE_CHECKING:
    from bittern.arrays import UInt64s

COUNT_ONLY, COPY, COPY_COUNTED = 0, 1, 2
"""What a search is to do with the sids; the last, with what counting has left in ``nodes``."""

OWN_LEAF, OWN_ITEM, NODES = 3, 4, 5
"""Rows of ``nodes`` behind those of the three lists: the leaf of a value's own item, or 0, and the
item; and how many rows there are."""


class Bounds(NamedTuple):
    """Prefixes of the first and the last key of each value's attribute; empty if there is one.

    Kernels take them read-only.
    """

    firsts: UInt64s
    lasts: UInt64s


BOUNDS = tuple_type(Bounds, u8r, u8r)


@inline
def child_of(ints: Any, longs: Any, base: Any, key: Any) -> Any:
    """The slot of a branch whose child holds this key; the first slot is below all keys."""
    at = find(ints, longs, base, 1, ints[base + COUNT], key)
    return at if holds(ints, longs, base, at, key) else at - 1


@apart
def descend(pages: Any, key: Any) -> Any:
    """The leaf where this key is, or would be."""
    pool, ints, longs, tree = pages
    page = tree[ROOT]
    base = fetch(pool, longs, page)
    while ints[base + KIND] == BRANCH:
        at = child_of(ints, longs, base, key)
        page = np.int64(ints[slot_of(ints, base, at) + CHILD])
        base = fetch(pool, longs, page)
    return page


@apart
def spilled(pool: Any, ints: Any, longs: Any, page: Any, sids: Any, cursor: Any) -> Any:
    """Copy the sids of spill pages; returns where the next ones go."""
    begin(pool)
    page = first_spill(pool, ints, longs, page)
    while page:
        begin(pool)
        base = fetch(pool, longs, page)
        count = ints[base + COUNT]
        for k in range(count):
            sids[cursor + k] = ints[base + HEADER + k]
        cursor += count
        page = np.int64(ints[base + NEXT])
    return cursor


@apart
def collect(
    pool: Any, ints: Any, longs: Any, words: Any, page: Any, low: Any, high: Any,
    sids: Any, cursor: Any, copy: Any,
) -> Any:  # fmt: skip
    """Count or copy the sids of items low .. high-1 of a page; returns where the next ones go.

    What is beyond the end of ``sids`` is only counted. It takes no tuple of pages, as it is called
    for each value and page: the numbers of the tree, which it does not need, made counting 4 %
    slower.
    """
    base = fetch(pool, longs, page)
    whole = low <= ints[base + FIRST] and high >= ints[base + COUNT] - ints[base + LAST]
    end = cursor
    if whole:
        end += np.int64(longs[(base >> 1) + SIDS])
    else:
        for at in range(low, high):
            end += ints[slot_of(ints, base, at) + N_SIDS]
    if not copy or end > len(sids):
        return end
    block = edge(ints, base, words, high)
    length = edge(ints, base, words, low) - block
    if length == end - cursor and ints[base + SPILLED] == 0:
        for k in range(length):  # no tail and no spill page among them: one block
            sids[cursor + k] = ints[base + block + k]
        return end
    for at in range(low, high):
        slot = slot_of(ints, base, at)
        place, count = ints[slot + PLACE], ints[slot + N_SIDS]
        if place >= 0:
            for k in range(count):
                sids[cursor + k] = ints[base + place + k]
            cursor += count
        else:
            cursor = spilled(pool, ints, longs, -np.int64(place), sids, cursor)
            base = fetch(pool, longs, page)
    return end


@inline
def key_of(lengths: Any, starts: Any, i: Any) -> Any:
    """Length and tail of key i; without lengths, all are numbers."""
    if len(lengths) == 0:
        return np.int64(NUMBER_BYTES), np.int64(0)
    return np.int64(lengths[i]), starts[i]


@inline
def pointed_from(pages: Any, base: Any, at: Any, found: Any) -> Any:
    """The slots whose pointers are a key's: of the item before it, and of the item behind.

    A key that is there has its own. One at an end of its leaf has a neighbour in the next leaf.
    """
    pool, ints, longs, _ = pages
    before, behind = slot_of(ints, base, at if found else at - 1), slot_of(ints, base, at)
    if at == 0 and not found:
        other = fetch(pool, longs, ints[base + PREVIOUS])
        before = slot_of(ints, other, ints[other + COUNT] - 1)
    if at == ints[base + COUNT]:
        behind = slot_of(ints, fetch(pool, longs, ints[base + NEXT]), 0)
    return before, behind


@apart
def locate(pages: Any, keys: Any, nodes: Any, cursors: Any, sids: Any, task: Any) -> None:
    """Descend for every value: its own SidSet, and where the scans of the lists start.

    A value that is not above the last key of the leaf before it is in that leaf too. ``nodes``
    keeps all that was found, so that copying after counting does not descend again.
    """
    pool, ints, longs, tree = pages
    words = tree[PAGE_WORDS]
    prefixes, lengths, starts, tails = keys
    page, at = np.int64(0), np.int64(0)
    if task == COPY_COUNTED:
        for i in range(len(prefixes)):
            page, at = np.int64(nodes[OWN_LEAF, i]), np.int64(nodes[OWN_ITEM, i])
            if page:
                begin(pool)
                cursors[i] = collect(
                    pool, ints, longs, words, page, at, at + 1, sids, cursors[i], True
                )
        return
    for i in range(len(prefixes)):
        begin(pool)
        length, start = key_of(lengths, starts, i)
        key = Key(prefixes[i], length, tails, start)
        if page:
            base = fetch(pool, longs, page)
            end = np.int64(ints[base + COUNT] - ints[base + LAST])
            slot = slot_of(ints, base, end - 1)
            if end == 0 or is_below(ints, longs, base, slot, key):
                page = np.int64(0)
        if page == 0:
            page = descend(pages, key)
            at = np.int64(0)
        base = fetch(pool, longs, page)
        count = np.int64(ints[base + COUNT])
        high = count - ints[base + LAST]
        at = max(at, np.int64(ints[base + FIRST]))
        at = find(ints, longs, base, at, high, key)
        found = holds(ints, longs, base, at, key)
        before, behind = pointed_from(pages, base, at, found)
        nodes[INEQ, i] = ints[before + POINTERS + INEQ]
        nodes[GT, i] = ints[before + POINTERS + GT]
        nodes[LT, i] = ints[behind + POINTERS + LT]
        nodes[OWN_LEAF, i], nodes[OWN_ITEM, i] = page if found else 0, at
        if found:
            copy = task != COUNT_ONLY
            cursors[i] = collect(pool, ints, longs, words, page, at, at + 1, sids, cursors[i], copy)


@apart
def scan(
    pages: Any,
    keys: Any,
    bounds: Any,
    nodes: Any,
    cursors: Any,
    sids: Any,
    task: Any,
    upwards: Any,
) -> None:
    """Collect what is above each value, from its node up to Tail or its attribute's last key.

    Or, downwards, what is below it, to Head or its attribute's first key. ``bounds``, those keys,
    are empty if there is one attribute. Values take turns in the direction of the scan; those of
    the turns leave .. join-1 are joined.
    """
    pool, ints, longs, tree = pages
    words = tree[PAGE_WORDS]
    prefixes, lengths, starts, tails = keys
    n = len(prefixes)
    leave, join, page = 0, 0, np.int64(0)
    while True:
        if join == leave:
            if join == n:
                break
            page = np.int64(nodes[join if upwards else n - 1 - join])
        begin(pool)
        base = fetch(pool, longs, page)
        while join < n and nodes[join if upwards else n - 1 - join] == page:
            join += 1
        first = np.int64(ints[base + FIRST])
        end = np.int64(ints[base + COUNT] - ints[base + LAST])
        following = np.int64(ints[base + (NEXT if upwards else PREVIOUS)])
        leaving = leave
        for turn in range(leave, join):
            i = turn if upwards else n - 1 - turn
            low, high = first, end
            base = fetch(pool, longs, page)
            if nodes[i] == page:
                length, start = key_of(lengths, starts, i)
                key = Key(prefixes[i], length, tails, start)
                at = find(ints, longs, base, low, high, key)
                if not upwards:
                    high = at
                else:
                    low = at + 1 if holds(ints, longs, base, at, key) else at
            if len(bounds) and first < end:
                bound = Key(bounds[i], np.int64(NUMBER_BYTES), tails, np.int64(0))
                slot = slot_of(ints, base, end - 1 if upwards else first)
                if is_below(ints, longs, base, slot, bound) != upwards:
                    # The attribute ends on this page.
                    at = find(ints, longs, base, low, high, bound)
                    if not upwards:
                        low = at
                    else:
                        high = at + 1 if holds(ints, longs, base, at, bound) else at
                    leaving = turn + 1
            if low < high:
                copy = task != COUNT_ONLY
                cursors[i] = collect(
                    pool, ints, longs, words, page, low, high, sids, cursors[i], copy
                )
        leave = leaving
        page = following
        if page == 0:
            leave = join


@apart
def search_all(
    pages: Any, keys: Any, bounds: Any, nodes: Any, cursors: Any, sids: Any, task: Any
) -> None:
    """One descent for each value and the four scans."""
    locate(pages, keys, nodes, cursors, sids, task)
    for which in range(3):
        if pages.tree[LIST_KEYS + which] == 0:
            continue
        if which != LT:
            scan(pages, keys, bounds.firsts, nodes[which], cursors, sids, task, False)
        if which != GT:
            scan(pages, keys, bounds.lasts, nodes[which], cursors, sids, task, True)


@kernel(void, i8w, i4r, u8r, i8r, KEYS_TYPE, BOUNDS, i4w2, i8w, i4w, i8)
def search(
    pool: Any,
    ints: Any,
    longs: Any,
    tree: Any,
    keys: Any,
    bounds: Any,
    nodes: Any,
    cursors: Any,
    sids: Any,
    task: Any,
) -> None:
    """Count or copy the sids that ascending values find, from ``cursors`` on, which move on.

    ``task`` is COUNT_ONLY, COPY, or COPY_COUNTED with the ``nodes`` of an earlier count.
    """
    search_all(PageArrays(pool, ints, longs, tree), keys, bounds, nodes, cursors, sids, task)


@kernel(i8, i8w, i4r, u8r, i8r, i8, i8, i4r, i4w)
def search_one(
    pool: Any, ints: Any, longs: Any, tree: Any, number: Any, length: Any, tail: Any, sids: Any
) -> Any:
    """The same for one value: how many sids there are, which are in ``sids`` if these fit.

    With few arguments, since taking them is most of the time of a search that finds little.
    """
    prefixes, cursors = np.empty(1, np.uint64), np.zeros(1, np.int64)
    prefixes[0] = np.uint64(number) ^ (np.uint64(1) << np.uint64(63))
    lengths, starts = np.empty(1, np.int32), np.zeros(1, np.int64)
    lengths[0] = length
    nodes, bound = np.empty((NODES, 1), np.int32), np.empty(0, np.uint64)
    pages, keys = PageArrays(pool, ints, longs, tree), TreeKeys(prefixes, lengths, starts, tail)
    search_all(pages, keys, Bounds(bound, bound), nodes, cursors, sids, COPY)
    return cursors[0]
