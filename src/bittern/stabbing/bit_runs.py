"""Runs of words: where the bit vectors of a batch stand, found in one pass and read in another.

A row of ``bit_vectors`` is a run of words, as a list of ids is a run of items, so that a search
kernel writes down rows exactly as ``runs`` has it write down lists; only the offsets are counts of
bits. Reading a run walks the bits of its words and writes the id of each slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.engine.jit import i4r, i4w, i8, i8r, inline, kernel, u8r, void
from bittern.stabbing.bitmaps import NO_BITS, ONE_BIT, count_bits, lowest_bit
from bittern.stabbing.runs import Runs

if TYPE_CHECKING:
    from bittern.stabbing.bit_vectors import BitVectors
    from bittern.stabbing.contract import Int32s
    from bittern.stabbing.slots import Slots

_64 = np.uint64(64)
_63 = np.uint64(63)
_6 = np.uint64(6)
_2 = np.uint64(2)
_3 = np.uint64(3)
_4 = np.uint64(4)


@inline
def _next_id(slot_ids: Any, base: Any, word: Any) -> Any:
    """The id of the lowest bit; any id of this word's slots if no bit is left."""
    return slot_ids[base + (lowest_bit(word) & _63)]


@kernel(void, i4r, i4r, u8r, i4r, i4r, i8, i8, i4w)
def _write_runs(
    slot_ids: Any,
    numbers: Any,
    words: Any,
    begins: Any,
    lengths: Any,
    first: Any,
    last: Any,
    ids: Any,
) -> None:
    """Write four ids at a time, past the last bit of a word: the next word writes over these.

    Words have all numbers of bits: a loop that stops exactly mispredicts the end of each.
    """
    at, room = np.uint64(0), np.uint64(len(ids))
    for run in range(np.uint64(first), np.uint64(last)):
        begin = np.uint64(begins[run])
        for i in range(begin, begin + np.uint64(lengths[run])):
            word, base = words[i], np.uint64(numbers[i]) << _6
            if at + _64 <= room:
                end = at + count_bits(word)
                while at < end:
                    ids[at] = _next_id(slot_ids, base, word)
                    word &= word - ONE_BIT
                    ids[at + ONE_BIT] = _next_id(slot_ids, base, word)
                    word &= word - ONE_BIT
                    ids[at + _2] = _next_id(slot_ids, base, word)
                    word &= word - ONE_BIT
                    ids[at + _3] = _next_id(slot_ids, base, word)
                    word &= word - ONE_BIT
                    at += _4
                at = end
            else:
                while word != NO_BITS:
                    ids[at] = _next_id(slot_ids, base, word)
                    word &= word - ONE_BIT
                    at += ONE_BIT


@kernel(i8, i4r, i4r, i4r, i4r, u8r, i4r, i4r, i4r, i8r)
def _find(
    rows: Any,
    begins: Any,
    ends: Any,
    numbers: Any,
    words: Any,
    lows: Any,
    highs: Any,
    ids: Any,
    wanted: Any,
) -> Any:
    """The first slot in these rows that holds the interval (low, high, id), or -1."""
    low, high, number = wanted[0], wanted[1], wanted[2]
    for row in rows:
        for i in range(begins[row], ends[row]):
            word = words[i]
            while word != NO_BITS:
                slot = (int(numbers[i]) << 6) + np.int64(lowest_bit(word))
                if lows[slot] == low and highs[slot] == high and ids[slot] == number:
                    return slot
                word &= word - ONE_BIT
    return -1


class BitRuns(Runs):
    """Rows of a batch of values: ``begins`` and ``lengths`` are of words, ``offsets`` of ids."""

    def __init__(self, bits: BitVectors, slots: Slots, n_values: int, most: int) -> None:
        """Make room for ``n_values``, of which none has more than ``most`` rows."""
        super().__init__(slots.ids, n_values, most)
        self.numbers, self.words = bits.numbers, bits.words

    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        a, b = int(self.ends[first]), int(self.ends[last])
        _write_runs(self.items, self.numbers, self.words, self.begins, self.lengths, a, b, ids)


def find_slot(bits: BitVectors, rows: Int32s, slots: Slots, interval: tuple[int, int, int]) -> int:
    """Find a slot with this (low, high, id) whose bit is set in one of the rows, or -1."""
    directory = bits.begins, bits.ends, bits.numbers, bits.words
    return int(
        _find(rows, *directory, slots.lows, slots.highs, slots.ids, np.array(interval, np.int64))
    )
