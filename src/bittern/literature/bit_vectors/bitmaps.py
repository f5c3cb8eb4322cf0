"""Rows of bits in uint64 words, of which the set bits are walked and the others skipped.

Every row takes the same number of words, so bit b of row i is in word ``i * width + b // 64``::

    two rows of 70 bits                  width = 2 words
    words   0b1010  0  0  0b100          row 0: bits 1 and 3; row 1: bit 64 + 2

A word that is 0 costs one comparison for 64 bits. In any other word the lowest set bit is found
by counting trailing zeros, one instruction, and removed with ``word & (word - 1)``::

    while word != NO_BITS:
        bit = lowest_bit(word)
        word &= word - ONE_BIT
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import inline

NO_BITS, ONE_BIT = np.uint64(0), np.uint64(1)
"""Typed for kernels: uint64 with a plain int would become a float there."""

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@inline
def count_bits(word: Any) -> Any:
    """How many bits of a uint64 are set, as uint64; compiled to one ``popcnt``."""
    word -= (word >> _1) & _PAIRS
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    word = (word + (word >> _4)) & _BYTES
    return (word * _SUM) >> _56


@inline
def lowest_bit(word: Any) -> Any:
    """Number of the lowest set bit of a uint64, as uint64; 64 if none is set.

    The zeros below it, counted as ones: the compiler makes a single ``tzcnt`` of it.
    """
    return count_bits(~word & (word - _1))


@inline
def set_bit(words: Any, width: Any, row: Any, bit: Any) -> None:
    """Set one bit of one row."""
    words[row * width + (bit >> 6)] |= ONE_BIT << np.uint64(bit & 63)


@inline
def clear_bit(words: Any, width: Any, row: Any, bit: Any) -> None:
    """Clear one bit of one row."""
    words[row * width + (bit >> 6)] &= ~(ONE_BIT << np.uint64(bit & 63))


def words_for(bits: int) -> int:
    """Words that hold this many bits."""
    return -(-bits // 64)
