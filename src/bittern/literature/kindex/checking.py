"""What matching trusts of a k-index's postings, verified entry by entry.

Nothing here is needed to match. The directory, the lists and the items are sound by themselves
already; here they are checked against each other, so that the answers are right: an item of size K
is posted in K channels, under the code of its size and under no other, as often as it says; all
values of a cell hold the same.

Cost: O(postings), and 32 bytes per item.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, u1r, u8w
from bittern.literature.kindex.directory import CellDirectory, Z
from bittern.literature.kindex.items import Items
from bittern.literature.sorted_lists.blocks import LISTS, following, start_of
from bittern.literature.sorted_lists.lists import SortedLists

_BROKEN = (
    "",
    "a posting is of no item",
    "a posting is of an item that is not posted",
    "an item is posted under two codes, or under one for another form",
    "a posting of a conjunction is neither positive nor negative",
    "a negative posting is in a channel of several cells",
    "a posting is of a clause that its item does not have",
    "the values of a cell have different postings",
    "a posting of the Z-list is negative",
    "an item is not posted as often as it says",
    "a conjunction is not posted in as many channels as its size",
    "the Z-list lacks an item, or has one of another size",
    "a clause of an item is not posted",
    "the size of a conjunctive form is wrong",
    "items are not counted right",
)
_MIX = np.uint64(0x9E3779B97F4A7C15)


@inline
def _bits_set(word: Any) -> Any:
    n = 0
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@kernel(i8, i4r, i4r, i4r, i4r, LISTS, u1r, i4r, i8r, i4w, i8w, i4w, i4w, u8w, u8w, i4w)
def _first_broken(
    bases: Any,
    codes: Any,
    first: Any,
    counts: Any,
    lists: Any,
    clauses: Any,
    entries: Any,
    code_items: Any,
    column_of: Any,
    seen: Any,
    last_channel: Any,
    channels: Any,
    bits: Any,
    channel_bits: Any,
    shared: Any,
) -> Any:
    """Number of the first invariant found broken, or 0; room to work in are the last seven."""
    begins, ends, keys, values = lists
    n_items, n_codes = len(entries), len(codes)
    at, end, block = start_of(begins, ends, keys, Z)
    while True:
        for i in range(at, end):
            item = keys[i]
            if item < 0 or item >= n_items:
                return 1
            if entries[item] <= 0:
                return 2
            if clauses[item] > 0 or n_codes == 0 or codes[0] != 0:
                return 3
            if values[i] != 1:
                return 8
            column_of[item] = 0
            seen[item] += 1
            shared[item] = 1
        block, at, end = following(keys, values, block)
        if block < 0:
            break
    for channel in range(len(bases) - 1):
        for cell in range(bases[channel], bases[channel + 1]):
            if first[cell] < 0:
                continue
            for column in range(n_codes):
                conjunctive = codes[column] & 1
                mixed_first = np.uint64(0)
                for value in range(counts[cell]):
                    mixed = np.uint64(0)
                    at, end, block = start_of(
                        begins, ends, keys, first[cell] + value * n_codes + column
                    )
                    while True:
                        for i in range(at, end):
                            item = keys[i]
                            if item < 0 or item >= n_items:
                                return 1
                            if entries[item] <= 0:
                                return 2
                            if column_of[item] != -1 and column_of[item] != column:
                                return 3
                            if (clauses[item] > 0) != (conjunctive == 1):
                                return 3
                            column_of[item] = column
                            seen[item] += 1
                            mixed = (mixed ^ np.uint64(item)) * _MIX
                            mixed = (mixed ^ np.uint64(np.uint32(values[i]))) * _MIX
                            if conjunctive:
                                if values[i] < 0 or values[i] >= clauses[item]:
                                    return 6
                            elif values[i] < 0 or values[i] > 1:
                                return 4
                            elif values[i] == 0:
                                if bases[channel + 1] - bases[channel] > 1:
                                    return 5
                                continue
                            if last_channel[item] != channel:
                                last_channel[item] = channel
                                channels[item] += 1
                                channel_bits[item] = 0
                            if conjunctive:
                                bit = np.uint64(1) << np.uint64(values[i])
                                bits[item] |= bit
                                channel_bits[item] |= bit
                                shared[item] = max(shared[item], _bits_set(channel_bits[item]))
                        block, at, end = following(keys, values, block)
                        if block < 0:
                            break
                    if value == 0:
                        mixed_first = mixed
                    elif mixed != mixed_first:
                        return 7
    counted = np.zeros(n_codes, dtype=np.int64)
    for item in range(n_items):
        if seen[item] != max(0, entries[item]):
            return 9
        if entries[item] <= 0:
            continue
        column = column_of[item]
        size = codes[column] >> 1
        counted[column] += 1
        if clauses[item] == 0:
            if channels[item] != size:
                return 10
            if (shared[item] == 1) != (size == 0):
                return 11
        else:
            if bits[item] != (np.uint64(2) << np.uint64(clauses[item] - 1)) - np.uint64(1):
                return 12
            if size != (clauses[item] + shared[item] - 1) // shared[item]:
                return 13
    for column in range(n_codes):
        if counted[column] != code_items[column]:
            return 14
    return 0


def check_postings(
    bases: npt.NDArray[np.int32],
    directory: CellDirectory,
    lists: SortedLists,
    items: Items,
    code_items: npt.NDArray[np.int64],
) -> None:
    """AssertionError says what is wrong with the postings."""
    assert len(code_items) == len(directory.codes), "there is not one count per code"
    n = len(items)
    _, clauses, entries = items.arrays
    broken = _first_broken(
        bases,
        *directory,
        lists.searched,
        clauses,
        entries,
        code_items,
        np.full(n, -1, dtype=np.int32),
        np.zeros(n, dtype=np.int64),
        np.full(n, -1, dtype=np.int32),
        np.zeros(n, dtype=np.int32),
        np.zeros(n, dtype=np.uint64),
        np.zeros(n, dtype=np.uint64),
        np.zeros(n, dtype=np.int32),
    )
    assert not broken, _BROKEN[broken]
