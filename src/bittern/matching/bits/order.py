"""The order of classes: those that rule the same events out share a block.

A block is looked at for the events that may match any of its classes. So classes are sorted by the
test that fewest events are expected to satisfy, by its channel and its lowest cell: a block then
has few channels, and on one of them a short stretch of cells. Of tests that are about as good, it
is the one of the channel that most classes test, so that there are few such channels::

    price in [3, 5]      price in [4, 9] and size in [0, 7]   ...   size in [2, 2] and ...
    block 0, price 3 to 20                                          block 7, size 2 to 4
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.arrays import Float64s, Int32s, Int64s
from bittern.jit import f8r, i4r, i4r2, i8, i8w, inline, kernel, void

#: A test counts as good as the best one if it lets at most so many times as many events pass.
_AS_GOOD = 1.5


@inline
def _share(mass: Any, low: Any, high: Any) -> Any:
    """Events expected to satisfy a test; all of them where no cell says so."""
    if low < 0 or high < low:
        return 1.0
    return mass[high + 1] - mass[low]


@kernel(void, i4r, i4r2, f8r, i8, i8w)
def _keys(starts: Any, rows: Any, mass: Any, n_channels: Any, keys: Any) -> None:
    mentions = np.zeros(n_channels + 1, dtype=np.int64)
    for i in range(len(rows)):
        if rows[i, 0] >= 0:
            mentions[rows[i, 0]] += 1
    for c in range(len(keys)):
        best = 1.0
        for i in range(starts[c], starts[c + 1]):
            best = min(best, _share(mass, rows[i, 1], rows[i, 2]))
        chosen, most = -1, 0
        for i in range(starts[c], starts[c + 1]):
            if rows[i, 0] < 0 or rows[i, 1] < 0 or mentions[rows[i, 0]] <= most:
                continue
            if _share(mass, rows[i, 1], rows[i, 2]) <= best * _AS_GOOD:
                chosen, most = i, mentions[rows[i, 0]]
        keys[c] = np.int64(1) << 62
        if chosen >= 0:
            keys[c] = np.int64(rows[chosen, 0]) << 32 | np.int64(rows[chosen, 1])


def class_order(starts: Int32s, rows: Int32s, mass: Float64s, n_channels: int) -> Int64s:
    """The classes whose programs these are, in the order in which blocks take them. O(rows)."""
    keys = np.empty(len(starts) - 1, dtype=np.int64)
    _keys(starts, rows, mass, n_channels, keys)
    return np.argsort(keys, kind="stable")
