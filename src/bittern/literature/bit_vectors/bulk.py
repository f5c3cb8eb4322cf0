"""Bit vectors in bulk: packed rows of nonzero words from runs of rows, or from single bits.

``rows_of_runs`` takes slots that are set in a run of consecutive rows (a structure whose rows are
elementary intervals in order). Word by word it sorts the rows where one of its 64 slots begins or
ends. The word is constant between two of these, so that the cost is in words, not in bits::

    slot 0   rows 1 .. 3           row       0     1     2     3     4     5
    slot 1   rows 2 .. 4           word 0    -    01    11    11    10     -

``rows_of_pairs`` takes any (row, slot) pairs. Both know the size before they allocate and refuse
what exceeds ``MAX_BYTES``: n intervals that all overlap have up to n / 64 words in each of up to
4n + 1 rows, in any order. Only what an index holds already, and rearranges, is not refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bittern.arrays import UInt64s, starts_of
from bittern.jit import i4r, i4w, i8r, i8w, inline, kernel, u8w, void
from bittern.literature.bit_vectors.bitmaps import NO_BITS, ONE_BIT
from bittern.stabbing.contract import check_bytes

if TYPE_CHECKING:
    from bittern.arrays import Int32s, Int64s

PackedRows: TypeAlias = "tuple[Int32s, Int32s, UInt64s]"
"""Packed rows: offsets, and the numbers and words between them."""


WORD_BYTES = 12
"""A word and its number."""


@kernel(void, i4r, i4r, i4w, i8w)
def _count_pairs(rows: Any, slots: Any, latest: Any, counts: Any) -> None:
    """Words per row; ``latest`` is the word that each row got last."""
    for i in range(len(rows)):
        row, number = rows[i], slots[i] >> 6
        if latest[row] != number:
            latest[row] = number
            counts[row] += 1


@kernel(void, i4r, i4r, i8w, i8r, i4w, u8w)
def _place_pairs(rows: Any, slots: Any, ends: Any, offsets: Any, numbers: Any, words: Any) -> None:
    for i in range(len(rows)):
        row, number = rows[i], slots[i] >> 6
        bit = ONE_BIT << np.uint64(slots[i] & 63)
        at = ends[row]
        if at > offsets[row] and numbers[at - 1] == number:
            words[at - 1] |= bit
        else:
            numbers[at] = number
            words[at] = bit
            ends[row] = at + 1


@inline
def _toggles(firsts: Any, lasts: Any, begin: Any, end: Any, rows: Any, bits: Any) -> Any:
    """Rows in which a bit of the word of slots begin .. end-1 changes, ascending, and which."""
    n = 0
    for slot in range(begin, end):
        if firsts[slot] <= lasts[slot]:
            bit = ONE_BIT << np.uint64(slot - begin)
            for row in (np.int64(firsts[slot]), np.int64(lasts[slot]) + 1):
                at = n
                while at > 0 and rows[at - 1] > row:
                    rows[at], bits[at] = rows[at - 1], bits[at - 1]
                    at -= 1
                rows[at], bits[at] = row, bit
                n += 1
    return n


@kernel(void, i4r, i4r, i8w, u8w, i8w)
def _count_runs(firsts: Any, lasts: Any, rows: Any, bits: Any, changes: Any) -> None:
    """How many more words row r has than row r - 1."""
    for begin in range(0, len(firsts), 64):
        n = _toggles(firsts, lasts, begin, min(begin + 64, len(firsts)), rows, bits)
        word = NO_BITS
        for i in range(n):
            before = word
            word ^= bits[i]
            if before == NO_BITS:
                changes[rows[i]] += 1
            elif word == NO_BITS:
                changes[rows[i]] -= 1


@kernel(void, i4r, i4r, i8w, u8w, i8w, i4w, u8w)
def _place_runs(
    firsts: Any, lasts: Any, rows: Any, bits: Any, ends: Any, numbers: Any, words: Any
) -> None:
    for begin in range(0, len(firsts), 64):
        n = _toggles(firsts, lasts, begin, min(begin + 64, len(firsts)), rows, bits)
        word = NO_BITS
        for i in range(n - 1):
            word ^= bits[i]
            if word != NO_BITS:
                for row in range(rows[i], rows[i + 1]):
                    numbers[ends[row]] = begin >> 6
                    words[ends[row]] = word
                    ends[row] += 1


def rows_of_pairs(rows: Int32s, slots: Int32s, n_rows: int, *, refuse: bool) -> PackedRows:
    """Bit slots[i] of rows[i] for all i; the slots of one row are ascending: O(pairs + rows)."""
    counts = np.zeros(n_rows, np.int64)
    _count_pairs(rows, slots, np.full(n_rows, -1, np.int32), counts)
    offsets, numbers, words = _for_counts(counts, refuse=refuse)
    _place_pairs(rows, slots, offsets[:-1].copy(), offsets, numbers, words)
    return offsets.astype(np.int32), numbers, words


def rows_of_runs(firsts: Int32s, lasts: Int32s, n_rows: int, *, refuse: bool) -> PackedRows:
    """Bit s of rows firsts[s] .. lasts[s] (none if reversed): O(slots + rows + words)."""
    toggled = np.empty(128, np.int64), np.empty(128, np.uint64)
    changes = np.zeros(n_rows + 1, np.int64)
    _count_runs(firsts, lasts, *toggled, changes)
    offsets, numbers, words = _for_counts(np.cumsum(changes[:-1]), refuse=refuse)
    _place_runs(firsts, lasts, *toggled, offsets[:-1].copy(), numbers, words)
    return offsets.astype(np.int32), numbers, words


def _for_counts(counts: Int64s, *, refuse: bool) -> tuple[Int64s, Int32s, UInt64s]:
    """Offsets for rows of these lengths, and room to fill."""
    offsets = starts_of(counts)
    n_words = int(offsets[-1])
    if refuse:
        refuse_too_many(n_words, len(counts))
    return offsets, np.empty(n_words, np.int32), np.empty(n_words, np.uint64)


def refuse_too_many(n_words: int, n_rows: int) -> None:
    """OptionError if this many words in this many rows exceed ``MAX_BYTES``."""
    what = f"{n_rows} bit vectors over these intervals, many of which overlap,"
    check_bytes(n_words * WORD_BYTES + n_rows * 4, what, "cei")
