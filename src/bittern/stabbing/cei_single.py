"""The search of CEI for a single value: one kernel, which is called with two arrays.

A search for a batch notes runs of ids before it copies them (``runs``), which is worth it for many
values. For one, most of its time is taking arrays from Python: here they are told by address.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import array_at, i4w, i8, i8r, kernel


@kernel(i8, i8r, i8, i4w)
def stab(where: Any, value: Any, ids: Any) -> Any:
    """How many ids a cell has, which are in ``ids`` if these fit.

    ``where`` has the shape of the index (cells, bits of a segment, bits of a group), the number of
    lists, the addresses of their begins, their ends, the masks and the items, and how many items.
    """
    bits, group_bits, lists = where[1], where[2], where[3]
    begins = array_at(where[4], (lists,), np.int32)
    ends = array_at(where[5], (lists,), np.int32)
    masks = array_at(where[6], ((value >> group_bits) + 1,), np.int32)
    mask = int(masks[value >> group_bits]) & ((2 << bits) - 1)
    base = (value >> bits) << (bits + 1)
    local = (1 << bits) + (value & ((1 << bits) - 1))
    items = array_at(where[7], (where[8],), np.int32)
    n = 0
    while mask:
        if mask & 1:
            begin, end = int(begins[base + local]), int(ends[base + local])
            if n + end - begin <= len(ids):
                for k in range(begin, end):
                    ids[n + k - begin] = items[k]
            n += max(0, end - begin)
        mask >>= 1
        local >>= 1
    return n
