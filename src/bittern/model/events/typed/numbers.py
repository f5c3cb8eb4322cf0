"""Numbers as typed values: a word that orders floats, and a tie that orders what rounds to one.

::

    number                nearest float   what that stands for   tie / 2**62, in steps of floats
    0.1                   0.1             0.1                    0
    0.10000000000000001   0.1             0.1                    1e-17 / 2**-56
    9007199254740993      2.0**53         9007199254740992       1 / 2
    2**63 - 1             2.0**63         9223372036854776000    -193 / 2048

Rounding keeps the order, so that (word, tie) is in the order of the exact numbers. A float is never
further than half a step from the number that rounds to it, nor from what it stands for, so that
a tie has 63 bits. Beyond the largest float there is one number on each side; a tie that rounds to 0
although the number is not what its float stands for is 1 or -1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from bittern.arrays import Int64s
from bittern.jit import b1w, f8w, i8r, i8w, inline, kernel, u1r, u8r, void
from bittern.model.events.variant.values import LongDecimals
from bittern.model.numbers import INT64_MAX, exact

_WORD_OF_NAN = np.int64(0x7FF8 << 48)
_ALL_BUT_SIGN = np.int64(INT64_MAX)
_TIE_BITS = 62
#: What the float 2**63 stands for is this much more than the largest int64.
_ABOVE_INT64 = 193
_FLOAT_DIGITS = np.uint64(10**15)  # a float64 stands for every decimal of fewer digits
_EXACT_POWERS = 22  # of ten, that a float64 holds
_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(_EXACT_POWERS + 1)])
_TOO_LARGE = np.uint64(1 << 63)
_ZERO, _SIX, _TEN = np.uint64(0), np.uint64(6), np.uint64(10)
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@inline
def put_float(value: Any, words: Any, reals: Any, at: Any) -> None:
    """Write a float's word at ``at``; ``reals`` are the bytes of ``words``. Its tie is 0."""
    if np.isnan(value):
        words[at] = _WORD_OF_NAN
        return
    reals[at] = value + 0.0  # -0.0 becomes 0.0
    words[at] ^= words[at] >> 63 & _ALL_BUT_SIGN


@inline
def put_integer(value: Any, words: Any, reals: Any, ties: Any, at: Any) -> None:
    """Write an integer's word, and its tie unless that is 0."""
    real = np.float64(value)
    put_float(real, words, reals, at)
    if -(2.0**53) < real < 2.0**53:
        return
    if real == 2.0**63:
        rest, exponent = value - INT64_MAX - _ABOVE_INT64, np.int64(63)
    else:
        rest = value - np.int64(real)
        exponent = ((words[at] ^ words[at] >> 63) >> 52) - 1023
    ties[at] = rest << (_TIE_BITS + 52 - exponent)


@inline
def _tenth(high: Any, low: Any) -> Any:
    """A tenth of ``high * 2**64 + low``, rounded down, and what is left: (high, low, rest)."""
    upper = high % _TEN << _HALF | low >> _HALF
    lower = upper % _TEN << _HALF | low & _LOW_HALF
    return high // _TEN, upper // _TEN << _HALF | lower // _TEN, lower % _TEN


@kernel(void, i8r, u8r, u8r, u1r, i8w, f8w, i8w, b1w)
def _put_decimals(
    signs: Any, highs: Any, lows: Any, places: Any, words: Any, reals: Any, ties: Any, long: Any
) -> None:
    """Write words and ties of decimals, or that one is too long."""
    for i in range(len(signs)):
        high, low, scale = highs[i], lows[i], np.int64(places[i])
        short = high == _ZERO and low < _FLOAT_DIGITS and scale <= _EXACT_POWERS
        while scale > 0 and not short:
            tenth_high, tenth_low, rest = _tenth(high, low)
            if rest != _ZERO:
                break
            high, low, scale = tenth_high, tenth_low, scale - 1
            short = high == _ZERO and low < _FLOAT_DIGITS and scale <= _EXACT_POWERS
        if short:
            value = np.float64(signs[i]) * np.float64(low) / _POWERS_OF_TEN[scale]
            put_float(value, words, reals, i)
        elif scale == 0 and high == _ZERO and low < _TOO_LARGE:
            put_integer(signs[i] * np.int64(low), words, reals, ties, i)
        else:
            long[i] = True


def words_of_decimals(decimals: LongDecimals) -> tuple[Int64s, Int64s]:
    """Words and ties of decimals; only those of more than 15 digits are looked at one by one."""
    count = len(decimals.signs)
    words, ties = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    long = np.zeros(count, dtype=np.bool_)
    _put_decimals(*decimals, words, words.view(np.float64), ties, long)
    places = np.flatnonzero(long)
    words[places], ties[places] = words_of_numbers(map(decimals.exact, places.tolist()))
    return words, ties


def words_of_numbers(numbers: Iterable[Decimal | int]) -> tuple[Int64s, Int64s]:
    """Words and ties of finite numbers of any length, one by one."""
    pairs = [_nearest_and_tie(number) for number in numbers]
    reals = np.array([nearest for nearest, _ in pairs], dtype=np.float64)
    bits = reals.view(np.int64)
    ties = np.array([tie for _, tie in pairs], dtype=np.int64)
    return bits ^ (bits >> 63 & _ALL_BUT_SIGN), ties


def _nearest_and_tie(number: Decimal | int) -> tuple[float, int]:
    value = exact(number)
    try:
        nearest = float(value) + 0.0
    except OverflowError:  # of integers; decimals become infinite
        nearest = math.inf if value > 0 else -math.inf
    nearest = max(-sys.float_info.max, min(sys.float_info.max, nearest))
    meant = exact(nearest)
    if value == meant:
        return nearest, 0
    rest = (Fraction(value) - Fraction(meant)) / Fraction(math.ulp(nearest))
    tie = round(rest * (1 << _TIE_BITS)) or (1 if rest > 0 else -1)
    return nearest, max(-INT64_MAX, min(INT64_MAX, tie))
