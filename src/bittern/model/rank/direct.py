"""Direct tables: the cell of each integer from a channel's least constant to its greatest.

Where constants are dense, one look-up finds an integer's cell. With the constants 3, 7 and 12::

    integer   3  4  5  6  7  8  9 10 11 12
    cell      1  2  2  2  3  4  4  4  4  5      the tables of all such channels lie end to end

4 bytes per integer; only channels with few gaps have one (``model/rank/space.py``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s


def spans(leasts: Int64s, greatests: Int64s) -> npt.NDArray[np.uint64]:
    """How far it is from each least to its greatest: unsigned, as int64 may be too small."""
    return greatests.astype(np.uint64) - leasts.astype(np.uint64)


def tables(
    starts: Int64s, leasts: Int64s, counts: Int64s, floors: Int64s, size: int
) -> npt.NDArray[np.int32]:
    """The tables of channels that have one from ``starts`` on (-1: none). O(constants + size).

    ``floors`` are the constants of all channels, ``counts`` of each.
    """
    table = np.zeros(size, dtype=np.int32)
    channel_of = np.repeat(np.arange(len(counts)), counts)
    kept = starts[channel_of] >= 0
    places = (starts - leasts)[channel_of[kept]] + floors[kept]
    # Constant i of a channel is cell 2i+1; the integers between it and the next are cell 2i+2.
    local = np.arange(len(channel_of)) - (np.cumsum(counts) - counts)[channel_of]
    table[places] = 2 * local[kept] + 1
    return _fill_gaps(table)


def _fill_gaps(table: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """An integer that is not a constant is in the cell after the constant before it."""
    constants = np.flatnonzero(table)
    before = np.zeros(len(table), dtype=np.int64)
    before[constants] = constants
    np.maximum.accumulate(before, out=before)
    gaps = table == 0
    table[gaps] = table[before[gaps]] + 1
    return table
