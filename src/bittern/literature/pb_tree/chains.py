"""Pages of a PB+tree given out, put into their chains, taken out again, and given back.

Leaves, nodes of a list and spill pages are linked with their neighbours, both ways. The numbers of
pages come from a stack of those that are free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart
from bittern.literature.pb_tree.pages import NEXT, PREVIOUS, clear
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, drop, fetch, fresh, touch


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


@apart
def link_behind(pages: Any, page: Any, new: Any) -> None:
    """Put a page behind another one in its chain."""
    pool, ints, longs, _ = pages
    base, other = fetch(pool, longs, page), fetch(pool, longs, new)
    touch(pool, page)
    following = np.int64(ints[base + NEXT])
    ints[other + PREVIOUS], ints[other + NEXT] = page, following
    ints[base + NEXT] = new
    if following:
        behind = fetch(pool, longs, following)
        touch(pool, following)
        ints[behind + PREVIOUS] = new


@apart
def unlink(pages: Any, page: Any) -> None:
    """Take a page out of its chain."""
    pool, ints, longs, _ = pages
    base = fetch(pool, longs, page)
    previous, following = np.int64(ints[base + PREVIOUS]), np.int64(ints[base + NEXT])
    if previous:
        other = fetch(pool, longs, previous)
        touch(pool, previous)
        ints[other + NEXT] = following
    if following:
        other = fetch(pool, longs, following)
        touch(pool, following)
        ints[other + PREVIOUS] = previous
