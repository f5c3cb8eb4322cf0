"""What matching trusts of a k-index's postings, verified entry by entry.

Nothing here is needed to match. The directory, the lists and the items are sound by themselves
already; here they are checked against each other, so that the answers are right: an item of size K
is posted in K channels, under the code of its size and under no other, as often as it says; all
values of a cell hold the same.

Cost: O(postings), and 32 bytes per item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import frozen, i4r, i8, i8r, inline, kernel
from bittern.literature.kindex.directory import DIRECTORY, CellDirectory, Z
from bittern.literature.kindex.items import ITEMS, Items
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


class _Seen(NamedTuple):
    """What the postings say of each item."""

    column: Int32s  # of the code that it is posted under, or -1
    entries: Int64s  # how often it is posted
    last_channel: Int32s
    channels: Int32s  # how many it is posted in
    bits: UInt64s  # of the clauses that are posted
    channel_bits: UInt64s  # those in the last channel
    shared: Int32s  # the most clauses in one channel; 1 if it is in the Z-list


@inline
def _bits_set(word: Any) -> Any:
    n = 0
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@inline
def _broken_item(item: Any, column: Any, conjunctive: Any, items: Any, seen: Any) -> Any:
    """What is wrong with a posting's item, under the code of this column; 0 if nothing is."""
    if item < 0 or item >= len(items.entries):
        return 1
    if items.entries[item] <= 0:
        return 2
    if seen.column[item] != -1 and seen.column[item] != column:
        return 3
    if (items.clauses[item] > 0) != (conjunctive == 1):
        return 3
    return 0


@inline
def _broken_z_list(codes: Any, lists: Any, items: Any, seen: Any) -> Any:
    """What is wrong with the Z-list; 0 if nothing is."""
    begins, ends, keys, values = lists
    at, end, block = start_of(begins, ends, keys, Z)
    while True:
        for i in range(at, end):
            item = keys[i]
            broken = _broken_item(item, 0, 0, items, seen)
            if broken:
                return broken
            if len(codes) == 0 or codes[0] != 0:
                return 3
            if values[i] != 1:
                return 8
            seen.column[item] = 0
            seen.entries[item] += 1
            seen.shared[item] = 1
        block, at, end = following(keys, values, block)
        if block < 0:
            return 0


@inline
def _broken_list(
    number: Any,
    column: Any,
    conjunctive: Any,
    channel: Any,
    single: Any,
    lists: Any,
    items: Any,
    seen: Any,
) -> Any:
    """What is wrong with the postings of a list, and a hash of them; 0 if nothing is.

    It is of this channel, which has a ``single`` cell or not.
    """
    begins, ends, keys, values = lists
    mixed = np.uint64(0)
    at, end, block = start_of(begins, ends, keys, number)
    while True:
        for i in range(at, end):
            item, value = keys[i], values[i]
            broken = _broken_item(item, column, conjunctive, items, seen)
            if broken:
                return broken, mixed
            seen.column[item] = column
            seen.entries[item] += 1
            mixed = (mixed ^ np.uint64(item)) * _MIX
            mixed = (mixed ^ np.uint64(np.uint32(value))) * _MIX
            if conjunctive:
                if value < 0 or value >= items.clauses[item]:
                    return 6, mixed
            elif value < 0 or value > 1:
                return 4, mixed
            elif value == 0:
                if not single:
                    return 5, mixed
                continue
            if seen.last_channel[item] != channel:
                seen.last_channel[item] = channel
                seen.channels[item] += 1
                seen.channel_bits[item] = 0
            if conjunctive:
                bit = np.uint64(1) << np.uint64(value)
                seen.bits[item] |= bit
                seen.channel_bits[item] |= bit
                seen.shared[item] = max(seen.shared[item], _bits_set(seen.channel_bits[item]))
        block, at, end = following(keys, values, block)
        if block < 0:
            return 0, mixed


@inline
def _broken_cells(bases: Any, directory: Any, lists: Any, items: Any, seen: Any) -> Any:
    """What is wrong with the postings of all cells; 0 if nothing is."""
    codes, first, counts = directory
    for channel in range(len(bases) - 1):
        single = bases[channel + 1] - bases[channel] == 1
        for cell in range(bases[channel], bases[channel + 1]):
            if first[cell] < 0:
                continue
            for column in range(len(codes)):
                mixed_first = np.uint64(0)
                for value in range(counts[cell]):
                    number = first[cell] + value * len(codes) + column
                    broken, mixed = _broken_list(
                        number, column, codes[column] & 1, channel, single, lists, items, seen
                    )
                    if broken:
                        return broken
                    if value == 0:
                        mixed_first = mixed
                    elif mixed != mixed_first:
                        return 7
    return 0


@inline
def _broken_items(codes: Any, items: Any, seen: Any, counted: Any) -> Any:
    """What is wrong with the items, now that all postings are seen; 0 if nothing is.

    ``counted`` (zeros) become the items of each code.
    """
    clauses, entries = items.clauses, items.entries
    for item in range(len(entries)):
        if seen.entries[item] != max(0, entries[item]):
            return 9
        if entries[item] <= 0:
            continue
        column = seen.column[item]
        size = codes[column] >> 1
        counted[column] += 1
        if clauses[item] == 0:
            if seen.channels[item] != size:
                return 10
            if (seen.shared[item] == 1) != (size == 0):
                return 11
        else:
            if seen.bits[item] != (np.uint64(2) << np.uint64(clauses[item] - 1)) - np.uint64(1):
                return 12
            if size != (clauses[item] + seen.shared[item] - 1) // seen.shared[item]:
                return 13
    return 0


@kernel(i8, i4r, DIRECTORY, LISTS, ITEMS, i8r)
def _first_broken(bases: Any, directory: Any, lists: Any, items: Any, code_items: Any) -> Any:
    """Number of the first invariant found broken, or 0."""
    codes, n_items = directory.codes, len(items.entries)
    seen = _Seen(
        np.full(n_items, -1, dtype=np.int32),
        np.zeros(n_items, dtype=np.int64),
        np.full(n_items, -1, dtype=np.int32),
        np.zeros(n_items, dtype=np.int32),
        np.zeros(n_items, dtype=np.uint64),
        np.zeros(n_items, dtype=np.uint64),
        np.zeros(n_items, dtype=np.int32),
    )
    counted = np.zeros(len(codes), dtype=np.int64)
    broken = _broken_z_list(codes, lists, items, seen)
    if not broken:
        broken = _broken_cells(bases, directory, lists, items, seen)
    if not broken:
        broken = _broken_items(codes, items, seen, counted)
    if broken:
        return broken
    for column in range(len(codes)):
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
    broken = _first_broken(bases, frozen(directory), lists.searched, items.arrays, code_items)
    assert not broken, _BROKEN[broken]
