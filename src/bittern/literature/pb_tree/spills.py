r"""The sids of an item that has too many for its own page: ascending, in a B+tree of spill pages.

::

    item -> fork         [ . 40 81 ]           the smallest sid of each child but the first
                        /     |     \
    spill   [ 2 2 7 9 ] -> [ 40 41 66 ] -> [ 81 93 ]         4 bytes a sid, linked both ways

A fork knows the smallest sid of every child exactly. So a sid that is there at all, in several
pages maybe, is in the one that is come to. On the way down to where a sid comes in, every full page
is cut in two: in the middle, or where the new sid comes behind all others, so that ascending sids
leave full pages. A page that is left with less than a quarter is joined with a sibling if both fit
with an eighth to spare, and an empty one goes; a fork with one child at the top gives way to it.

Costs: O(log n) pages to find, to add and to take out one of n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline
from bittern.literature.pb_tree.chains import give_back, link_behind, new_page, unlink
from bittern.literature.pb_tree.pages import (
    COUNT,
    FORK,
    HEADER,
    KIND,
    NEXT,
    PAGE_WORDS,
    SPILL,
    SPILLS,
)
from bittern.literature.pb_tree.pool import fetch, touch


@inline
def _room(tree: Any, kind: Any) -> Any:
    """Sids of a spill page, or children of a fork."""
    words = tree[PAGE_WORDS] - HEADER
    return words >> 1 if kind == FORK else words


@inline
def _child_of(ints: Any, base: Any, sid: Any) -> Any:
    """The child of a fork that has a sid, if any has: the last that does not begin above it."""
    low, high = np.int64(1), np.int64(ints[base + COUNT])
    while low < high:
        middle = (low + high) >> 1
        if ints[base + HEADER + 2 * middle] <= sid:
            low = middle + 1
        else:
            high = middle
    return low - 1


@inline
def _page_at(ints: Any, base: Any, at: Any) -> Any:
    return np.int64(ints[base + HEADER + 2 * at + 1])


@inline
def _find(ints: Any, base: Any, sid: Any) -> Any:
    """The first place of a spill page that does not hold less."""
    low, high = np.int64(0), np.int64(ints[base + COUNT])
    while low < high:
        middle = (low + high) >> 1
        if ints[base + HEADER + middle] < sid:
            low = middle + 1
        else:
            high = middle
    return low


@apart
def first_spill(pool: Any, ints: Any, longs: Any, page: Any) -> Any:
    """The spill page with the smallest sids below a fork; a spill page itself."""
    base = fetch(pool, longs, page)
    while ints[base + KIND] == FORK:
        page = _page_at(ints, base, 0)
        base = fetch(pool, longs, page)
    return page


@apart
def is_spilled(pages: Any, page: Any, sid: Any) -> Any:
    """Whether the pages from this one down have a sid."""
    pool, ints, longs, _ = pages
    base = fetch(pool, longs, page)
    while ints[base + KIND] == FORK:
        base = fetch(pool, longs, _page_at(ints, base, _child_of(ints, base, sid)))
    at = _find(ints, base, sid)
    return at < ints[base + COUNT] and ints[base + HEADER + at] == sid


# -- adding ------------------------------------------------------------------------------------


@apart
def _put_child(ints: Any, base: Any, at: Any, least: Any, page: Any) -> None:
    """A child of a fork, before the one at this place."""
    count = ints[base + COUNT]
    for word in range(base + HEADER + 2 * count - 1, base + HEADER + 2 * at - 1, -1):
        ints[word + 2] = ints[word]
    ints[base + HEADER + 2 * at], ints[base + HEADER + 2 * at + 1] = least, page
    ints[base + COUNT] = count + 1


@apart
def _is_full(pages: Any, page: Any) -> Any:
    pool, ints, longs, tree = pages
    base = fetch(pool, longs, page)
    return ints[base + COUNT] == _room(tree, ints[base + KIND])


@apart
def _split(pages: Any, free: Any, fork: Any, at: Any, sid: Any) -> None:
    """Cut a child of a fork that has room for one more; ``sid`` is to come in."""
    pool, ints, longs, tree = pages
    parent = fetch(pool, longs, fork)
    page = _page_at(ints, parent, at)
    base = fetch(pool, longs, page)
    kind, count = np.int64(ints[base + KIND]), np.int64(ints[base + COUNT])
    right = new_page(pages, free, kind)
    tree[SPILLS] += 1
    other = fetch(pool, longs, right)
    touch(pool, page)
    touch(pool, fork)
    width = 2 if kind == FORK else 1
    first = base + HEADER
    cut, least = count >> 1, sid
    if kind == FORK:
        if sid >= ints[first + 2 * (count - 1)]:
            cut = count - 1
        least = ints[first + 2 * cut]
    else:
        if ints[base + NEXT] == 0 and sid >= ints[first + count - 1]:
            cut = count  # the new one alone, which is then the smallest
        else:
            least = ints[first + cut]
        link_behind(pages, page, right)
    for word in range((count - cut) * width):
        ints[other + HEADER + word] = ints[first + cut * width + word]
    ints[base + COUNT], ints[other + COUNT] = cut, count - cut
    _put_child(ints, parent, at + 1, least, right)


@apart
def spill_sid(pages: Any, free: Any, root: Any, sid: Any) -> Any:
    """Add a sid; returns the page that is uppermost now. One new page for each level at most."""
    pool, ints, longs, tree = pages
    if _is_full(pages, root):
        above = new_page(pages, free, FORK)
        tree[SPILLS] += 1
        _put_child(ints, fetch(pool, longs, above), 0, 0, root)
        root = above
    page, base = root, fetch(pool, longs, root)
    while ints[base + KIND] == FORK:
        at = _child_of(ints, base, sid)
        if _is_full(pages, _page_at(ints, base, at)):
            _split(pages, free, page, at, sid)
            at = _child_of(ints, base, sid)
        page = _page_at(ints, base, at)
        base = fetch(pool, longs, page)
    touch(pool, page)
    at, count = _find(ints, base, sid), ints[base + COUNT]
    for word in range(base + HEADER + count - 1, base + HEADER + at - 1, -1):
        ints[word + 1] = ints[word]
    ints[base + HEADER + at] = sid
    ints[base + COUNT] = count + 1
    return root


# -- taking out --------------------------------------------------------------------------------


@apart
def _drop_child(ints: Any, base: Any, at: Any) -> None:
    count = ints[base + COUNT] - 1
    for word in range(base + HEADER + 2 * at, base + HEADER + 2 * count):
        ints[word] = ints[word + 2]
    ints[base + COUNT] = count


@apart
def _set_least(pages: Any, way: Any, level: Any, least: Any) -> None:
    """What the page of this level has begins here now: the fork that says so is told."""
    pool, ints, longs, _ = pages
    while level > 0:
        level -= 1
        fork, at = way[2 * level], way[2 * level + 1]
        if at > 0:
            base = fetch(pool, longs, fork)
            touch(pool, fork)
            ints[base + HEADER + 2 * at] = least
            return


@apart
def _discard(pages: Any, free: Any, fork: Any, at: Any) -> None:
    """A child of a fork is empty, or its neighbour has what it had."""
    pool, ints, longs, tree = pages
    parent = fetch(pool, longs, fork)
    touch(pool, fork)
    page = _page_at(ints, parent, at)
    if ints[fetch(pool, longs, page) + KIND] == SPILL:
        unlink(pages, page)
    _drop_child(ints, parent, at)
    tree[SPILLS] -= 1
    give_back(pool, tree, free, page)


@apart
def _join(pages: Any, free: Any, fork: Any, at: Any) -> Any:
    """Move all of the child behind this one to this one, if it fits; whether it did."""
    pool, ints, longs, tree = pages
    parent = fetch(pool, longs, fork)
    if at < 0 or at + 1 >= ints[parent + COUNT]:
        return False
    left = _page_at(ints, parent, at)
    base, other = fetch(pool, longs, left), fetch(pool, longs, _page_at(ints, parent, at + 1))
    kind, count, more = np.int64(ints[base + KIND]), ints[base + COUNT], ints[other + COUNT]
    room = _room(tree, kind)
    if count + more > room - (room >> 3):
        return False
    touch(pool, left)
    width = 2 if kind == FORK else 1
    end = base + HEADER + count * width
    for word in range(more * width):
        ints[end + word] = ints[other + HEADER + word]
    if kind == FORK:
        ints[end] = ints[parent + HEADER + 2 * (at + 1)]
    ints[base + COUNT] = count + more
    _discard(pages, free, fork, at + 1)
    return True


@apart
def unspill_sid(pages: Any, free: Any, root: Any, sid: Any, way: Any) -> Any:
    """Take a sid out that is there; returns the page that is uppermost now, which may be empty.

    ``way`` is working memory for a path.
    """
    pool, ints, longs, tree = pages
    level, page, base = 0, root, fetch(pool, longs, root)
    while ints[base + KIND] == FORK:
        at = _child_of(ints, base, sid)
        way[2 * level], way[2 * level + 1] = page, at
        level += 1
        page = _page_at(ints, base, at)
        base = fetch(pool, longs, page)
    touch(pool, page)
    at, left = _find(ints, base, sid), ints[base + COUNT] - 1
    for word in range(base + HEADER + at, base + HEADER + left):
        ints[word] = ints[word + 1]
    ints[base + COUNT] = left
    if at == 0 and left:
        _set_least(pages, way, level, ints[base + HEADER])
    while level > 0:
        left = ints[base + COUNT]
        if left >= _room(tree, ints[base + KIND]) >> 2:
            break
        level -= 1
        fork, at = way[2 * level], way[2 * level + 1]
        base = fetch(pool, longs, fork)
        if left == 0:
            _discard(pages, free, fork, at)
            if at == 0 and ints[base + COUNT]:
                _set_least(pages, way, level, ints[base + HEADER])
        elif not _join(pages, free, fork, at) and not _join(pages, free, fork, at - 1):
            break
    base = fetch(pool, longs, root)
    while ints[base + KIND] == FORK and ints[base + COUNT] == 1:
        below = _page_at(ints, base, 0)
        tree[SPILLS] -= 1
        give_back(pool, tree, free, root)
        root, base = below, fetch(pool, longs, below)
    return root
