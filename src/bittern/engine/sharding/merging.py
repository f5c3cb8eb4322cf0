"""Merging: lists that several parts found for the same events, as one list for each.

::

    part 0    event 0: 11, 5                       offsets   0         3   4
    part 1    event 0: 30    event 1: 7      ->    values    11  5  30  7

Where ids are integers, each value is copied once, by a kernel that goes through one part after the
other; texts are taken by Arrow. Cost: O(events + values).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.arrays import Int64s, starts_of
from bittern.jit import i4r, i8r, i8w, inline, kernel, void


@inline
def _copy(values: Any, offsets: Any, rows: Any, free: Any, out: Any) -> None:
    for i in range(len(rows)):
        row = np.uint64(rows[i])
        at = free[row]
        for k in range(offsets[i], offsets[i + 1]):
            out[np.uint64(at)] = values[np.uint64(k)]
            at += 1
        free[row] = at


@kernel(void, i4r, i4r, i8r, i8w, i8w)
def _copy_short(values: Any, offsets: Any, rows: Any, free: Any, out: Any) -> None:
    """Copy the values of each row to its free places."""
    _copy(values, offsets, rows, free, out)


@kernel(void, i8r, i4r, i8r, i8w, i8w)
def _copy_long(values: Any, offsets: Any, rows: Any, free: Any, out: Any) -> None:
    """Copy the values of each row to its free places."""
    _copy(values, offsets, rows, free, out)


def merged(parts: Sequence[tuple[Int64s, pa.ListArray]], n_rows: int) -> tuple[Int64s, pa.Array]:
    """Where each row's values begin, and the values, from different rows and lists of each part.

    At least one part; integers may have 32 bits in some parts, and come out with 64.
    """
    counts = np.zeros(n_rows, np.int64)
    for rows, lists in parts:
        counts[rows] += np.diff(lists.offsets.to_numpy())
    offsets = starts_of(counts)
    if not pa.types.is_integer(parts[0][1].type.value_type):
        every = np.concatenate([rows for rows, _ in parts])
        lists = pa.concat_arrays([lists for _, lists in parts])
        return offsets, lists.take(pa.array(np.argsort(every, kind="stable"))).flatten()
    out, free = np.empty(int(offsets[-1]), np.int64), offsets[:-1].copy()
    for rows, lists in parts:
        copy = _copy_short if pa.types.is_int32(lists.type.value_type) else _copy_long
        copy(lists.values.to_numpy(), lists.offsets.to_numpy(), rows, free, out)
    return offsets, pa.array(out)
