"""Runs of words: where the bit vectors of a batch stand, found in one pass and read in another.

A row of ``vectors`` is a run of words, as a list of ids is a run of items, so that a search
kernel writes down rows exactly as ``runs`` has it write down lists; only the offsets are counts of
bits. Reading a run walks the bits of its words and writes the id of each slot.

A structure that finds one row per value needs no more than the rows' numbers (``of_rows``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import i4r, i4w, i8, i8r, inline, kernel, prefetch, u8r, void
from bittern.literature.bit_vectors.bitmaps import NO_BITS, ONE_BIT, count_bits, lowest_bit
from bittern.literature.bit_vectors.words import count_row
from bittern.stabbing.runs import RUNS, Runs, add_run

if TYPE_CHECKING:
    from bittern.arrays import Int32s
    from bittern.literature.bit_vectors.slots import Slots
    from bittern.literature.bit_vectors.vectors import BitVectors

_64 = np.uint64(64)
_63 = np.uint64(63)
_6 = np.uint64(6)
_2 = np.uint64(2)
_3 = np.uint64(3)
_4 = np.uint64(4)

_AHEAD = 32
"""Rows or runs between asking for something and reading it: covers a miss of all caches."""

_SOON = 8
"""Runs between asking for what belongs to slots and reading it."""

_LINES, _LINE = np.uint64(8), np.uint64(16)
"""Cache lines of int32 that are asked for: two words of slots, as many as most runs have."""


@inline
def ask_for_slots(numbers: Any, begins: Any, run: Any, last: Any, of_slots: Any) -> None:
    """Ask for the items of slots that a run, soon to be read, begins with; the last is ``last``."""
    soon = np.uint64(numbers[np.uint64(begins[np.uint64(min(run + _SOON, last))])]) << _6
    for line in range(_LINES):
        prefetch(of_slots, soon + line * _LINE)


@kernel(i8, i4r, i4r, i4r, u8r, i8, RUNS)
def _runs_of_rows(
    rows: Any, row_begins: Any, row_ends: Any, words: Any, first: Any, runs: Any
) -> Any:
    """The row of each value (-1: none) as a run.

    Each waits for memory twice, for where the row is and for its words, and asks for both before.
    """
    offsets, ends, begins, lengths = runs
    total, n = offsets[first], ends[first]
    for i in range(first, len(rows)):
        row = rows[np.uint64(min(i + 2 * _AHEAD, len(rows) - 1))]
        prefetch(row_begins, row)
        prefetch(row_ends, row)
        row = rows[np.uint64(min(i + _AHEAD, len(rows) - 1))]
        if row >= 0:
            prefetch(words, row_begins[np.uint64(row)])
        row = rows[i]
        if row >= 0:
            begin, end = row_begins[np.uint64(row)], row_ends[np.uint64(row)]
            total += count_row(words, begin, end)
            n = add_run(begin, end, begins, lengths, n)
        offsets[i + 1] = total
        ends[i + 1] = n
    return len(rows)


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
    for run in range(first, last):
        later = begins[np.uint64(min(run + _AHEAD, last - 1))]
        prefetch(words, later)
        prefetch(numbers, later)
        ask_for_slots(numbers, begins, run, last - 1, slot_ids)
        begin = np.uint64(begins[np.uint64(run)])
        for i in range(begin, begin + np.uint64(lengths[np.uint64(run)])):
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

    @classmethod
    def of_rows(cls, bits: BitVectors, slots: Slots, rows: Int32s) -> BitRuns:
        """One row per value, or none where it is -1."""
        runs = cls(bits, slots, len(rows), 1)
        return runs.search(_runs_of_rows, rows, bits.begins, bits.ends, bits.words)

    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        _, ends, begins, lengths = self.found
        runs = begins, lengths, int(ends[first]), int(ends[last])
        _write_runs(self.items, self.numbers, self.words, *runs, ids)


def find_slot(bits: BitVectors, rows: Int32s, slots: Slots, interval: tuple[int, int, int]) -> int:
    """Find a slot with this (low, high, id) whose bit is set in one of the rows, or -1."""
    directory = bits.begins, bits.ends, bits.numbers, bits.words
    return int(
        _find(rows, *directory, slots.lows, slots.highs, slots.ids, np.array(interval, np.int64))
    )
