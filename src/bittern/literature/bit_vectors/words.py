"""Rows of nonzero words under bit vectors: what kernels do with them; see ``vectors``.

Row r is ``numbers[begins[r]:ends[r]]`` and ``words[begins[r]:ends[r]]``, and may grow up to
``limits[r]`` (``areas``). The caller makes room.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import i4r, i4w, i8, i8w, inline, kernel, u8r, u8w, void
from bittern.literature.bit_vectors.bitmaps import NO_BITS, ONE_BIT, count_bits
from bittern.stabbing.areas import HELD, USED, move_to_end, rank, room_to_move

_SMALLEST_AREA = 2


@inline
def count_row(words: Any, begin: Any, end: Any) -> Any:
    """How many bits a row has, as int64."""
    total = NO_BITS
    for i in range(np.uint64(begin), np.uint64(end)):
        total += count_bits(words[i])
    return np.int64(total)


@kernel(void, i4r, i4r, i4r, i4r, u8r, i4w, i4w, u8w)
def gather(
    rows: Any,
    begins: Any,
    ends: Any,
    numbers: Any,
    words: Any,
    offsets: Any,
    numbers_out: Any,
    words_out: Any,
) -> None:
    """Copy these rows one behind the other."""
    at = 0
    for n in range(len(rows)):
        offsets[n] = at
        for i in range(begins[rows[n]], ends[rows[n]]):
            numbers_out[at] = numbers[i]
            words_out[at] = words[i]
            at += 1
    offsets[len(rows)] = at


@kernel(i8, i4r, i8, i4r, i4r, i4r, i4r)
def room_to_set(rows: Any, number: Any, begins: Any, ends: Any, limits: Any, numbers: Any) -> Any:
    """Words at the free end that the rows need which have to move for one more word."""
    room = 0
    for row in rows:
        begin, end = int(begins[row]), int(ends[row])
        if end == limits[row]:
            at = rank(numbers, begin, end, number)
            if at == end or numbers[at] != number:
                room += room_to_move(begin, end, _SMALLEST_AREA)
    return room


@kernel(void, i4r, i8, i4w, i4w, i4w, i4w, u8w, i8w)
def set_bit(
    rows: Any,
    slot: Any,
    begins: Any,
    ends: Any,
    limits: Any,
    numbers: Any,
    words: Any,
    figures: Any,
) -> None:
    """Set the bit of a slot in each row; one that has no room for its word moves to the end."""
    number, bit = slot >> 6, ONE_BIT << np.uint64(slot & 63)
    for row in rows:
        begin, end = int(begins[row]), int(ends[row])
        at = rank(numbers, begin, end, number)
        if at < end and numbers[at] == number:
            words[at] |= bit
            continue
        if end == limits[row]:
            moved, end = move_to_end(row, begins, ends, limits, figures, _SMALLEST_AREA)
            for i in range(moved, end):
                numbers[i] = numbers[begin + i - moved]
                words[i] = words[begin + i - moved]
            at += moved - begin
        for i in range(end, at, -1):
            numbers[i] = numbers[i - 1]
            words[i] = words[i - 1]
        numbers[at] = number
        words[at] = bit
        ends[row] = end + 1
        figures[HELD] += 1


@kernel(void, i4r, i8, i4r, i4w, i4w, u8w, i8w)
def clear_bit(
    rows: Any, slot: Any, begins: Any, ends: Any, numbers: Any, words: Any, figures: Any
) -> None:
    """Clear the bit of a slot in each row that has it; a word without bits goes."""
    number, bit = slot >> 6, ONE_BIT << np.uint64(slot & 63)
    for row in rows:
        end = int(ends[row])
        at = rank(numbers, int(begins[row]), end, number)
        if at == end or numbers[at] != number:
            continue
        words[at] &= ~bit
        if words[at] == NO_BITS:
            for i in range(at, end - 1):
                numbers[i] = numbers[i + 1]
                words[i] = words[i + 1]
            ends[row] = end - 1
            figures[HELD] -= 1


@kernel(void, i4r, i4r, i4r, i4w, i4w, i4w, i4w, u8w, i8w)
def copy_rows(
    froms: Any,
    tos: Any,
    rows: Any,
    begins: Any,
    ends: Any,
    limits: Any,
    numbers: Any,
    words: Any,
    figures: Any,
) -> None:
    """Make rows[n] a copy of the words from froms[n] to tos[n], with room for one more."""
    for n in range(len(rows)):
        at = int(figures[USED])
        begins[rows[n]] = at
        for i in range(froms[n], tos[n]):
            numbers[at] = numbers[i]
            words[at] = words[i]
            at += 1
        ends[rows[n]] = at
        limits[rows[n]] = at + 1
        figures[HELD] += tos[n] - froms[n]
        figures[USED] = at + 1


@kernel(i8, i4r, i4r, u8r)
def count_all(begins: Any, ends: Any, words: Any) -> Any:
    """How many bits all rows have."""
    total = 0
    for row in range(len(begins)):
        total += count_row(words, begins[row], ends[row])
    return total


@kernel(i8, i4r, i4r, i4r, u8r, i8)
def first_wrong(begins: Any, ends: Any, numbers: Any, words: Any, n_slots: Any) -> Any:
    """Find the first row whose words do not ascend, lack bits or have bits of no slot; or -1."""
    for row in range(len(begins)):
        previous = -1
        for i in range(begins[row], ends[row]):
            beyond = n_slots - (int(numbers[i]) << 6)
            if numbers[i] <= previous or words[i] == NO_BITS or beyond <= 0:
                return row
            if beyond < 64 and words[i] >> np.uint64(beyond) != NO_BITS:
                return row
            previous = numbers[i]
    return -1
