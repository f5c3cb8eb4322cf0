"""SidSets: the sids of one item, in its own page while they are few, else in spill pages.

A spill page is a header and sids. New ones go into the first page of the chain, and what is taken
out of any page is replaced by the last one of the first, so that all pages behind it stay full::

    item -> [ 7 9 . . ] -> [ 3 8 1 5 ] -> [ 2 6 4 11 ]        5 goes:  9 takes its place
    item -> [ 7 . . . ] -> [ 3 8 1 9 ] -> [ 2 6 4 11 ]

It is a bag: a sid that came twice is in it twice. Cost: O(page) to add; to take out, as much as it
takes to find the sid, O(length).

Pages are taken from and given back to a stack of free numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline
from bittern.literature.pb_tree.pages import (
    COUNT,
    HEADER,
    N_SIDS,
    NEXT,
    PAGE_WORDS,
    PLACE,
    SIDS,
    SPILL,
    SPILLED,
    SPILLS,
    TAIL,
    clear,
    drop_sids,
    free_words,
    put_sid,
    slot_of,
)
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, begin, drop, fetch, fresh, touch

HERE, ABSENT = 0, -1
"""Where a sid is if not in a spill page, which has a number above 0."""


@apart
def new_page(pages: Any, free: Any, kind: Any) -> Any:
    """An empty page of this kind; there is one left, as kernels make sure before they begin."""
    pool, ints, longs, tree = pages
    if tree[N_FREE]:
        tree[N_FREE] -= 1
        page = np.int64(free[tree[N_FREE]])
    else:
        page = tree[N_PAGES]
        tree[N_PAGES] += 1
    clear(ints, longs, fresh(pool, page), kind)
    return page


@apart
def give_back(pool: Any, tree: Any, free: Any, page: Any) -> None:
    """The page is in use no more."""
    free[tree[N_FREE]] = page
    tree[N_FREE] += 1
    drop(pool, page)


@inline
def most_here(tree: Any) -> Any:
    """Sids that an item keeps in its own page, at most."""
    return tree[PAGE_WORDS] >> 3


@inline
def room_for_sid(tree: Any, ints: Any, slot: Any) -> Any:
    """Words that one more sid takes in the page of its item."""
    return 1 if ints[slot + PLACE] >= 0 and ints[slot + N_SIDS] < most_here(tree) else 0


@apart
def add_sid(pages: Any, free: Any, page: Any, at: Any, sid: Any) -> None:
    """Add a sid to the SidSet of an item; its page has the room that ``room_for_sid`` says."""
    pool, ints, longs, tree = pages
    base, words = fetch(pool, longs, page), tree[PAGE_WORDS]
    touch(pool, page)
    slot = slot_of(ints, base, at)
    count, place = np.int64(ints[slot + N_SIDS]), np.int64(ints[slot + PLACE])
    if place >= 0 and count < most_here(tree):
        put_sid(ints, longs, base, words, at, sid)
        return
    if place >= 0 or ints[fetch(pool, longs, -place) + COUNT] == words - HEADER:
        first = new_page(pages, free, SPILL)
        tree[SPILLS] += 1
        chain = fetch(pool, longs, first)
        if place >= 0:
            for k in range(count):
                ints[chain + HEADER + k] = ints[base + place + k]
            ints[chain + COUNT] = count
            drop_sids(ints, longs, base, words, at, count)
            ints[slot + N_SIDS] = count
            longs[(base >> 1) + SIDS] += np.uint64(count)
            ints[base + SPILLED] += 1
        else:
            ints[chain + NEXT] = -place
        ints[slot + PLACE] = -first
    first = -np.int64(ints[slot + PLACE])
    chain = fetch(pool, longs, first)
    touch(pool, first)
    ints[chain + HEADER + ints[chain + COUNT]] = sid
    ints[chain + COUNT] += 1
    ints[slot + N_SIDS] += 1
    longs[(base >> 1) + SIDS] += np.uint64(1)


@apart
def find_sid(pages: Any, page: Any, at: Any, sid: Any) -> Any:
    """Where a sid of an item is: the spill page, HERE or ABSENT; and which one there.

    Going through spill pages is a step each: what was fetched before may be gone.
    """
    pool, ints, longs, _ = pages
    base = fetch(pool, longs, page)
    slot = slot_of(ints, base, at)
    place, count = np.int64(ints[slot + PLACE]), ints[slot + N_SIDS]
    if place >= 0:
        for k in range(count):
            if ints[base + place + k] == sid:
                return np.int64(HERE), k
        return np.int64(ABSENT), 0
    chain = -place
    while chain:
        begin(pool)
        base = fetch(pool, longs, chain)
        for k in range(ints[base + COUNT]):
            if ints[base + HEADER + k] == sid:
                return chain, k
        chain = np.int64(ints[base + NEXT])
    return np.int64(ABSENT), 0


@apart
def take_sid(
    pages: Any,
    free: Any,
    page: Any,
    at: Any,
    where: Any,
    which: Any,
) -> None:
    """Take a sid out that was found there; few that are left come back to their item's page."""
    pool, ints, longs, tree = pages
    base, words = fetch(pool, longs, page), tree[PAGE_WORDS]
    touch(pool, page)
    slot = slot_of(ints, base, at)
    place = np.int64(ints[slot + PLACE])
    if where == HERE:
        ints[base + place + which] = ints[base + place]
        drop_sids(ints, longs, base, words, at, 1)
        return
    first = -place
    chain, hole = fetch(pool, longs, first), fetch(pool, longs, where)
    touch(pool, first)
    touch(pool, where)
    left = np.int64(ints[chain + COUNT]) - 1
    ints[hole + HEADER + which] = ints[chain + HEADER + left]
    ints[chain + COUNT] = left
    ints[slot + N_SIDS] -= 1
    longs[(base >> 1) + SIDS] -= np.uint64(1)
    following = np.int64(ints[chain + NEXT])
    if left == 0 and following:
        ints[slot + PLACE] = -following
        tree[SPILLS] -= 1
        give_back(pool, tree, free, first)
    elif not following and left <= most_here(tree) >> 1 and left <= free_words(ints, base, words):
        longs[(base >> 1) + SIDS] -= np.uint64(left)
        ints[base + SPILLED] -= 1
        ints[slot + PLACE] = ints[slot + TAIL] >> 16
        ints[slot + N_SIDS] = 0
        for k in range(left):
            put_sid(ints, longs, base, words, at, ints[chain + HEADER + k])
        tree[SPILLS] -= 1
        give_back(pool, tree, free, first)
