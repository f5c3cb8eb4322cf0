"""SidSets: the sids of one item, in its own page while they are few, else in spill pages.

In the page of the item they are in no order: a page bounds how many there are. In spill pages they
ascend, below a page that leads to them (``spills``)::

    item -> 7 9 3                        item -> [ 3 5 7 9 .. ]  or  item -> [ . 40 81 ] -> ...

It is a bag: a sid that came twice is in it twice. Cost: O(page) while they are few, O(log n) pages
for n of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline
from bittern.literature.pb_tree.chains import give_back, new_page
from bittern.literature.pb_tree.pages import (
    COUNT,
    HEADER,
    KIND,
    N_SIDS,
    PAGE_WORDS,
    PLACE,
    SIDS,
    SPILL,
    SPILLED,
    SPILLS,
    TAIL,
    drop_sids,
    free_words,
    put_sid,
    slot_of,
)
from bittern.literature.pb_tree.pool import fetch, touch
from bittern.literature.pb_tree.spills import is_spilled, spill_sid, unspill_sid


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
    if place >= 0:
        root = new_page(pages, free, SPILL)
        tree[SPILLS] += 1
        for k in range(count):
            spill_sid(pages, free, root, ints[base + place + k])
        drop_sids(ints, longs, base, words, at, count)
        ints[slot + N_SIDS] = count
        longs[(base >> 1) + SIDS] += np.uint64(count)
        ints[base + SPILLED] += 1
    else:
        root = -place
    ints[slot + PLACE] = -spill_sid(pages, free, root, sid)
    ints[slot + N_SIDS] += 1
    longs[(base >> 1) + SIDS] += np.uint64(1)


@inline
def _place_of(ints: Any, first: Any, count: Any, sid: Any) -> Any:
    """Where a sid is among those of an item's page; their number if it is not there."""
    at = 0
    while at < count and ints[first + at] != sid:
        at += 1
    return at


@apart
def has_sid(pages: Any, page: Any, at: Any, sid: Any) -> Any:
    """Whether a sid is in the SidSet of an item."""
    pool, ints, longs, _ = pages
    base = fetch(pool, longs, page)
    slot = slot_of(ints, base, at)
    place, count = np.int64(ints[slot + PLACE]), ints[slot + N_SIDS]
    if place >= 0:
        return _place_of(ints, base + place, count, sid) < count
    return is_spilled(pages, -place, sid)


@apart
def take_sid(pages: Any, free: Any, page: Any, at: Any, sid: Any, way: Any) -> None:
    """Take a sid out that is there; few that are left come back to their item's page."""
    pool, ints, longs, tree = pages
    base, words = fetch(pool, longs, page), tree[PAGE_WORDS]
    touch(pool, page)
    slot = slot_of(ints, base, at)
    place = np.int64(ints[slot + PLACE])
    if place >= 0:
        which = _place_of(ints, base + place, ints[slot + N_SIDS], sid)
        ints[base + place + which] = ints[base + place]
        drop_sids(ints, longs, base, words, at, 1)
        return
    root = unspill_sid(pages, free, -place, sid, way)
    ints[slot + PLACE] = -root
    ints[slot + N_SIDS] -= 1
    longs[(base >> 1) + SIDS] -= np.uint64(1)
    spill = fetch(pool, longs, root)
    left = np.int64(ints[spill + COUNT])
    few = ints[spill + KIND] == SPILL and left <= most_here(tree) >> 1
    if few and left <= free_words(ints, base, words):
        longs[(base >> 1) + SIDS] -= np.uint64(left)
        ints[base + SPILLED] -= 1
        ints[slot + PLACE] = ints[slot + TAIL] >> 16
        ints[slot + N_SIDS] = 0
        for k in range(left):
            put_sid(ints, longs, base, words, at, ints[spill + HEADER + k])
        tree[SPILLS] -= 1
        give_back(pool, tree, free, root)
