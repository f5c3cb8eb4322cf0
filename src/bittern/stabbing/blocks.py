"""Decomposition of intervals into aligned power-of-two blocks, minimal in number.

A *block* of level v covers 2**v cells and begins at a multiple of 2**v. Blocks are at most one
*segment* of 2**bits cells long; segment boundaries are the guiding posts of seed 001. Going from
left to right, always the largest block that is aligned here and does not reach past the end::

    cell          8   9  10  11  12  13  14  15        bits = 3
    [8, 13]       |------ 4 -----|-- 2 --|             blocks (8, level 2), (12, level 1)
    [11, 14]                  | 1|-- 2 --| 1|          blocks (11, 0), (12, 1), (14, 0)

This is BestPartition and its guiding posts at once: a block that is as long as a segment is the
segment. Nothing smaller exists: blocks are nested or disjoint, so wherever another decomposition
uses a smaller block, it needs at least two for the cells of ours. An interval of w cells takes at
most 2 * min(bits, log2 w) blocks and w >> bits whole segments.

The papers' intervals [a, b) are half-open and closed right ends need extra point constructs there.
Over cells [low, high] is [low, high + 1), so here they need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, void

if TYPE_CHECKING:
    from bittern.arrays import Int32s, Int64s


@inline
def block_level(low: Any, stop: Any, bits: Any) -> Any:
    """Level of the first block of [low, stop): doubled while it is aligned and does not exceed."""
    level = 0
    while level < bits and (low >> level) & 1 == 0 and low + (2 << level) <= stop:
        level += 1
    return level


@kernel(void, i4r, i4r, i8, i8w)
def _count_blocks(lows: Any, highs: Any, bits: Any, offsets: Any) -> None:
    total = 0
    offsets[0] = 0
    for i in range(len(lows)):
        low, stop = int(lows[i]), int(highs[i]) + 1
        while low < stop:
            low += 1 << block_level(low, stop, bits)
            total += 1
        offsets[i + 1] = total


@kernel(void, i4r, i4r, i8, i8r, i4w, i4w)
def _write_blocks(lows: Any, highs: Any, bits: Any, offsets: Any, starts: Any, levels: Any) -> None:
    for i in range(len(lows)):
        low, stop = int(lows[i]), int(highs[i]) + 1
        for at in range(offsets[i], offsets[i + 1]):
            level = block_level(low, stop, bits)
            starts[at] = low
            levels[at] = level
            low += 1 << level


def decompose(lows: Int32s, highs: Int32s, bits: int) -> tuple[Int64s, Int32s, Int32s]:
    """Blocks of n intervals as offsets (n + 1), first cells and levels: O(n log length)."""
    offsets = np.empty(len(lows) + 1, np.int64)
    _count_blocks(lows, highs, bits, offsets)
    starts = np.empty(int(offsets[-1]), np.int32)
    levels = np.empty_like(starts)
    _write_blocks(lows, highs, bits, offsets, starts, levels)
    return offsets, starts, levels


def decompose_one(low: int, high: int, bits: int) -> tuple[Int32s, Int32s]:
    """First cells and levels of one interval's blocks, left to right: O(log length)."""
    _, starts, levels = decompose(np.array([low], np.int32), np.array([high], np.int32), bits)
    return starts, levels
