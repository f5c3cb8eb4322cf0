"""Verifying sorted lists: every invariant of both forms, and safely on arrays that break them.

Nothing is followed that has not been found to lie in the arrays: a walk of the trees looks at no
place outside of what is in use, and ends when it has seen more blocks than there can be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.arrays import Int32s
from bittern.jit import frozen, i4w, i8, i8w, inline, kernel
from bittern.literature.sorted_lists.blocks import (
    BLOCK,
    FAN,
    FREE,
    LISTS,
    LOOSE,
    SLOTS,
    ListArrays,
    LooseArrays,
    joined,
)
from bittern.stabbing.areas import HELD, USED, check_areas

_FIRST, _LAST = -(1 << 63), (1 << 63) - 1

_FAULTS = (
    "",
    "a block is not in the arrays",
    "blocks form a circle",
    "a block is too full or too empty",
    "pairs of a block are out of order or in the wrong block",
    "leaves are not chained in order",
    "leaves are not all on one level",
    "a tree does not hold as many pairs as it says",
)
(
    _FINE,
    _OUTSIDE,
    _CIRCLE,
    _FULLNESS,
    _ORDER,
    _CHAIN,
    _DEPTH,
    _NUMBER,
) = range(len(_FAULTS))


@kernel(i8, LISTS)
def _first_unordered(lists: Any) -> Any:
    """Find the first flat run whose pairs do not ascend, or -1."""
    begins, ends, keys, values = lists
    for n in range(len(begins)):
        if begins[n] < 0:
            continue
        for i in range(begins[n] + 1, ends[n]):
            if joined(keys[i - 1], values[i - 1]) >= joined(keys[i], values[i]):
                return n
    return -1


@inline
def _walk_free(values: Any, figures: Any, blocks: Any) -> Any:
    """Note the freed blocks; returns the fault that was found first."""
    seen, block = int(blocks[0]), int(figures[FREE])
    while block != -1:
        if block < 0 or block > figures[USED] - SLOTS:
            return _OUTSIDE
        if seen + 1 >= len(blocks):
            return _CIRCLE
        seen += 1
        blocks[seen] = block
        block = int(values[block])
    blocks[0] = seen
    return _FINE


@inline
def _walk_tree(
    keys: Any, values: Any, figures: Any, root: Any, n_pairs: Any, stack: Any, blocks: Any
) -> Any:
    """Visit a tree's blocks from left to right and note them; returns the first fault.

    ``stack`` has rows of (block, depth, least pair, last pair that it may hold).
    """
    seen = int(blocks[0])
    top, pairs, leaf, leaf_depth = 1, 0, -1, -1
    stack[0], stack[1], stack[2], stack[3] = root, 0, _FIRST, _LAST
    while top:
        top -= 1
        block, depth = stack[4 * top], stack[4 * top + 1]
        least, last = stack[4 * top + 2], stack[4 * top + 3]
        if block < 0 or block > figures[USED] - SLOTS:
            return _OUTSIDE
        inner = keys[block] < 0
        count = ~int(keys[block]) if inner else int(keys[block])
        most = FAN if inner else BLOCK
        if count > most or (4 * count < most and block != root) or (inner and count < 2):
            return _FULLNESS
        if seen + 1 + top + (count if inner else 0) >= len(blocks):
            return _CIRCLE
        seen += 1
        blocks[seen] = block
        for i in range(block + 1, block + 1 + count):
            pair = joined(keys[i], values[i])
            if pair < least or pair > last or (i > block + 1 and pair == least):
                return _ORDER
            least = pair
        if inner:
            for at in range(block + count, block, -1):
                stack[4 * top] = keys[at + FAN]
                stack[4 * top + 1] = depth + 1
                stack[4 * top + 2] = joined(keys[at], values[at])
                stack[4 * top + 3] = last
                last = stack[4 * top + 2] - 1
                top += 1
            continue
        if leaf >= 0 and values[leaf] != block:
            return _CHAIN
        if leaf >= 0 and depth != leaf_depth:
            return _DEPTH
        leaf, leaf_depth = block, depth
        pairs += count
    if values[leaf] != -1:
        return _CHAIN
    blocks[0] = seen
    return _FINE if pairs == n_pairs else _NUMBER


@kernel(i8, LOOSE, i8w, i4w)
def _walk(loose: Any, stack: Any, blocks: Any) -> Any:
    """Note all blocks, after their number in ``blocks[0]``; returns the first fault."""
    begins, ends, _, keys, values, figures = loose
    for n in range(len(begins)):
        if begins[n] < 0:
            fault = _walk_tree(keys, values, figures, ~int(begins[n]), ends[n], stack, blocks)
            if fault != _FINE:
                return fault
    return _walk_free(values, figures, blocks)


def check_packed(offsets: Int32s, keys: Int32s, values: Int32s) -> None:
    """Verify the packed form: O(lists + pairs)."""
    for array in (offsets, keys, values):
        assert array.dtype == np.int32, "sorted lists are not of 32 bits"
        assert array.ndim == 1, "sorted lists are not flat"
    assert len(offsets), "the offsets of sorted lists are empty"
    assert len(keys) == len(values), "sorted lists do not have a value for each key"
    assert int(offsets[0]) == 0, "packed sorted lists do not begin at 0"
    assert int(offsets[-1]) == len(keys), "packed sorted lists do not fill the keys"
    assert (offsets[1:] >= offsets[:-1]).all(), "a sorted list ends before it begins"
    _check_order(ListArrays(offsets[:-1], offsets[1:], keys, values))


def check_loose(loose: LooseArrays) -> None:
    """Verify the loose form: O(lists log lists + slots)."""
    begins, ends, limits, keys, values, figures = loose
    used = int(figures[USED])
    assert len(begins) == len(ends) == len(limits), "the directory of sorted lists is cut off"
    assert 0 <= used <= len(keys) == len(values), "more slots are used than there are"
    lengths = ends.astype(np.int64) - np.maximum(begins, 0)
    assert (lengths >= 0).all(), "a sorted list ends before it begins"
    assert int(lengths.sum()) == int(figures[HELD]), "sorted lists do not add up to their pairs"
    flat = begins >= 0
    assert (ends[flat] <= used).all(), "a sorted list is past the end"
    _check_order(ListArrays(begins, ends, keys, values))
    blocks = np.zeros(used // SLOTS + 2, np.int32)
    fault = int(_walk(loose, np.empty(4 * len(blocks), np.int64), blocks))
    assert fault == _FINE, _FAULTS[fault]
    blocks = blocks[1 : 1 + blocks[0]]
    check_areas(
        np.concatenate([begins[flat], blocks]),
        np.concatenate([ends[flat], blocks]),
        np.concatenate([limits[flat], blocks + SLOTS]),
        used,
        "sorted list or block",
    )


def _check_order(lists: ListArrays) -> None:
    bad = int(_first_unordered(frozen(lists)))
    assert bad < 0, f"sorted list {bad} does not ascend"
