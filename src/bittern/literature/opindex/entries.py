"""All entries of the lists of OpIndex, one row each: to verify, count and rewrite them.

An entry is a basic predicate and the counter that it counts for. A list keeps its key and one
number for the counter::

    slot                    a hit for the counter in this slot
    ~(slot << 6 | bit)      this bit for the counter in this slot
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s
from bittern.errors import OptionError
from bittern.literature.opindex.counters import Counters
from bittern.literature.opindex.directory import PivotDirectory
from bittern.literature.opindex.operators import N_OPERATORS, NODES, OPERATORS
from bittern.literature.opindex.space import Space
from bittern.literature.sorted_lists.lists import SortedLists

_MOST_SLOTS_OF_BITS = 1 << 25


class ListEntries(NamedTuple):
    """Entries in order of their lists."""

    lists: Int32s
    pivots: Int32s  # numbers of pivots
    operators: npt.NDArray[np.uint8]
    channels: Int32s
    keys: Int32s
    slots: Int32s
    bits: Int32s  # or -1


def entries_of(lists: SortedLists, directory: PivotDirectory, space: Space) -> ListEntries:
    """All entries. O(lists + entries)."""
    numbers, keys, values = lists.pairs()
    places = directory.blocks()[numbers // directory.n_segments]
    operators = (places % N_OPERATORS).astype(np.uint8)
    of_nodes = NODES >> operators & 1 > 0
    cells = keys.copy()
    nodes = keys[of_nodes]
    known = (nodes >= 0) & (nodes < len(space.trie))
    # What is no node is of no channel: the last one here.
    cells[of_nodes] = np.append(space.trie.searched.lows, -1)[np.where(known, nodes, -1)]
    channels = (np.searchsorted(space.bases, cells, side="right") - 1).astype(np.int32)
    is_bit = values < 0
    packed = np.where(is_bit, ~values, values)
    slots = np.where(is_bit, packed >> 6, packed)
    bits = np.where(is_bit, packed & 63, np.int32(-1))
    return ListEntries(numbers, places // N_OPERATORS, operators, channels, keys, slots, bits)


def values_of(slots: Int32s, bits: Int32s) -> Int32s:
    """What lists keep of counters: the slot and, where it is not -1, the bit."""
    return np.where(bits < 0, slots, ~(slots << np.int32(6) | bits)).astype(np.int32)


def check_slots(n_slots: int, bits: Int32s) -> None:
    """OptionError if slots and bits together have no room in 32 bits."""
    if n_slots > _MOST_SLOTS_OF_BITS and (bits >= 0).any():
        raise OptionError(
            f"one attribute is the pivot of more than {_MOST_SLOTS_OF_BITS:,} classes, some of "
            "them in conjunctive form: split the subscriptions"
        )


def pivot_lists(counters: Counters, directory: PivotDirectory) -> dict[int, list[int]]:
    """Of each pivot channel the classes that are filed under it, in order."""
    positions, of_pivot = counters.live()
    owners = counters.searched.owners[positions]
    out: dict[int, list[int]] = {}
    for channel, owner in zip(directory.pivots()[of_pivot].tolist(), owners.tolist(), strict=True):
        out.setdefault(channel, []).append(owner)
    return {channel: sorted(set(out[channel])) for channel in sorted(out)}


def predicate_lists(
    entries: ListEntries, counters: Counters, directory: PivotDirectory
) -> dict[tuple[int, str, int], list[tuple[int, int, int]]]:
    """Of each (pivot channel, operator, segment) its rows (channel, operand, class) in order."""
    begins, _, owners, _ = counters.searched
    out: dict[tuple[int, str, int], list[tuple[int, int, int]]] = {}
    for pivot, operator, segment, channel, key, owner in zip(
        directory.pivots()[entries.pivots].tolist(),
        entries.operators.tolist(),
        (entries.lists % directory.n_segments).tolist(),
        entries.channels.tolist(),
        entries.keys.tolist(),
        owners[begins[entries.pivots] + entries.slots].tolist(),
        strict=True,
    ):
        rows = out.setdefault((pivot, OPERATORS[operator], segment), [])
        rows.append((channel, key, owner))
    return out
