"""Cell tables: the cell that an event has in a channel, found in about one step.

A table is a hash table without empty slots. Each channel of the event takes a bit: the one that it
hashes to, or the next that is free. The channels stand in the order of their bits, so that counting
the bits below says where::

    channels 7, 9, 12 with cells 40, 55, 71; 7 and 12 hash to bit 2, 9 to bit 62

    bits     . . 7 12 . .  ...  . 9 .     word 0, and how many entries stand before it
    entries  7:40  12:71  9:55

Looking a channel up goes from its bit on: a clear bit says that the event does not have it, a set
one whose entry is another's says to go on. At most a quarter of the bits are set, so that most of
the missing channels cost one load. The sender of events chooses their channels, so the hash has a
secret key (``model/hashing.py``), another one for each batch.

Cost: O(1) to look up, O(1) per entry to build; 8 bytes per entry, and 64 or more per event.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import starts_of
from bittern.jit import i8r, i8w, inline, kernel, popcount, u8w, void
from bittern.model.hashing import secret_multiplier

#: Words of 64 bits that an event has at least; twice that many while a quarter of them is set.
_WORDS = 4
_ONE = np.uint64(1)
_BITS = np.uint64(63)
_WORD = np.uint64(6)


@inline
def multiplier_in(table: Any) -> Any:
    """The key of the hash."""
    return table[np.uint64(len(table) - 1)]


@inline
def _first_bit(channel: Any, multiplier: Any, mask: Any) -> Any:
    """The bit that a channel hashes to, in a table of ``mask + 1`` bits.

    Channels have 32 bits, so that those of a product behind the 32nd are as good as all.
    """
    return np.uint64(channel) * multiplier >> np.uint64(32) & mask


@inline
def mask_of(starts: Any, event: Any) -> Any:
    """One less than the number of bits of an event's table."""
    n_words = starts[np.uint64(event + 1)] - starts[np.uint64(event)]
    return np.uint64((n_words << 6) - 1)


@inline
def may_have(table: Any, start: Any, multiplier: Any, mask: Any, channel: Any) -> Any:
    """0 only if the event of this table has no value in this channel, else 1."""
    bit = _first_bit(channel, multiplier, mask)
    word = table[np.uint64(2) * (np.uint64(start) + (bit >> _WORD))]
    return np.int64((word >> (bit & _BITS)) & _ONE)


@inline
def find_cell(starts: Any, table: Any, entries: Any, event: Any, channel: Any) -> Any:
    """The event's cell in this channel, or -1."""
    start, mask = np.uint64(starts[np.uint64(event)]), mask_of(starts, event)
    bit = _first_bit(channel, multiplier_in(table), mask)
    while True:
        at = np.uint64(2) * (start + (bit >> _WORD))
        word = table[at] >> (bit & _BITS)
        if word & _ONE == 0:
            return np.int64(-1)
        # The bits from this one on, taken from all bits of the word, leave those below.
        entry = entries[table[at + _ONE] - popcount(word)]
        if entry >> 32 == channel:
            return entry & 0xFFFFFFFF
        bit = (bit + _ONE) & mask


@kernel(void, i8r, i8r, i8r, u8w, i8w)
def _fill(offsets: Any, ordered: Any, starts: Any, table: Any, entries: Any) -> None:
    """Give every entry its bit, then write it at its place; ``table`` has nothing but a key."""
    widest, multiplier = 1, multiplier_in(table)
    for event in range(len(offsets) - 1):
        widest = max(widest, offsets[event + 1] - offsets[event])
    bits = np.empty(widest, dtype=np.uint64)
    for event in range(len(offsets) - 1):
        first, last = offsets[event], offsets[event + 1]
        start, mask = np.uint64(starts[event]), mask_of(starts, event)
        for i in range(first, last):
            bit = _first_bit(ordered[np.uint64(i)] >> 32, multiplier, mask)
            while table[np.uint64(2) * (start + (bit >> _WORD))] >> (bit & _BITS) & _ONE:
                bit = (bit + _ONE) & mask
            table[np.uint64(2) * (start + (bit >> _WORD))] |= _ONE << (bit & _BITS)
            bits[np.uint64(i - first)] = bit
        held = np.uint64(first)
        for word in range(starts[event], starts[event + 1]):
            # The end of the word's entries: the bits from one on are counted back from there.
            held += popcount(table[np.uint64(2 * word)])
            table[np.uint64(2 * word + 1)] = held
        for i in range(first, last):
            bit = bits[np.uint64(i - first)]
            at = np.uint64(2) * (start + (bit >> _WORD))
            entries[table[at + _ONE] - popcount(table[at] >> (bit & _BITS))] = ordered[np.uint64(i)]


def build_tables(
    offsets: npt.NDArray[np.int64], ordered: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Where each event's words begin, the words with the ends of their entries, and the entries.

    Behind the words of the last event stands the key of the hash.
    ``ordered`` are ``channel << 32 | cell`` of each event, from ``offsets`` on.
    """
    counts = np.diff(offsets)
    # Powers of two, so that a mask keeps a bit within: 4, or from 65 channels on 8, ...
    quarters = np.maximum(1, -(-counts // (16 * _WORDS)))
    n_words = _WORDS << np.ceil(np.log2(quarters)).astype(np.int64)
    starts = starts_of(n_words)
    table = np.zeros(2 * int(starts[-1]) + 1, dtype=np.uint64)
    table[-1] = secret_multiplier()
    entries = np.empty(len(ordered), dtype=np.int64)
    _fill(offsets, ordered, starts, table, entries)
    return starts, table, entries
