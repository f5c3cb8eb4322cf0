"""How full the pages of a PB+tree are, by what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import b1r, i4r, i8r, i8w, kernel, u8r, void
from bittern.literature.pb_tree.pages import (
    BRANCH,
    COUNT,
    FORK,
    HEADER,
    KIND,
    LEAF,
    LIST,
    PAGE_WORDS,
    SPILL,
    free_words,
)
from bittern.literature.pb_tree.pool import N_FREE, N_PAGES, begin, fetch

if TYPE_CHECKING:
    from bittern.literature.pb_tree.tree import Pages

KINDS = {"branch": BRANCH, "leaf": LEAF, "list": LIST, "spill": SPILL, "fork": FORK}


@kernel(void, i8w, i4r, u8r, i8r, b1r, i8w, i8w)
def _measure(
    pool: Any, ints: Any, longs: Any, tree: Any, is_free: Any, pages: Any, used: Any
) -> None:
    words = tree[PAGE_WORDS]
    for page in range(1, len(is_free)):
        if is_free[page]:
            continue
        begin(pool)
        base = fetch(pool, longs, page)
        kind = ints[base + KIND]
        if kind < BRANCH or kind > FORK:
            continue  # no page of a tree: checking it says so
        pages[kind] += 1
        if kind == SPILL:
            used[kind] += ints[base + COUNT]
        elif kind == FORK:
            used[kind] += 2 * ints[base + COUNT]
        else:
            used[kind] += words - HEADER - free_words(ints, base, words)


def fill_by_kind(pages: Pages) -> dict[str, float]:
    """Share of the room that is used, by kind of page."""
    is_free = np.zeros(int(pages.tree[N_PAGES]), np.bool_)
    is_free[pages.free[: int(pages.tree[N_FREE])]] = True
    numbers, used = np.zeros(FORK + 1, np.int64), np.zeros(FORK + 1, np.int64)
    _measure(pages.pool, pages.ints, pages.longs, pages.tree, is_free, numbers, used)
    room = int(pages.tree[PAGE_WORDS]) - HEADER
    return {name: float(used[k] / max(1, numbers[k] * room)) for name, k in KINDS.items()}
