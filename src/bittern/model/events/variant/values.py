"""The scalars of variants: read from bytes by compiled functions, and numbers beyond 64 bits.

A primitive is a header, four times its type, and its bytes, the lowest first::

    0c 01              int8 1               20 02 7d 00 00 00   decimal, 2 places: 1.25
    2c 56 47 00 00     date, day 18,262     05 78               string of one byte, "x"

``scalar`` never reads at or behind ``stop`` and never fails. It returns (reason or 0, tag, payload,
length, float); see ``tagged`` for what they mean.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.jit import inline
from bittern.model.events.json.tokens import is_utf8
from bittern.model.strings import byte_at, word_at
from bittern.model.tagged import (
    BOOLEAN,
    EXACT,
    EXACT_TIME,
    FLOAT,
    INTEGER,
    OTHER,
    STRING,
    TIMESTAMP,
)

#: Why a variant was rejected, by reason code; code 0 is never given.
REJECT_REASONS = (
    "",
    "the top level of the variant is not an object",
    "the variant is corrupt",
    "the variant is nested more than 64 levels deep",
    "a string of the variant is not valid UTF-8",
    "the variant has a value of an unknown type",
    "the variant is longer than 2 GiB",
)
NO_REASON, NOT_AN_OBJECT, CORRUPT, TOO_DEEP, BAD_UTF8, UNKNOWN_TYPE, TOO_LONG = range(7)

#: The low two bits of a header.
PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
NULL_HEADER = 0  # which is all that a null has
# Tags that live between here and ``variant`` only.
NULL = 0
FLOAT_BITS = 16  # the payload has the bits of a float64

# The types of primitives.
_TRUE, _FALSE, _INT8, _INT64, _DOUBLE = 1, 2, 3, 6, 7
_DECIMAL4, _DECIMAL8, _DECIMAL16 = 8, 9, 10
_DATE, _MICROSECONDS, _MICROSECONDS_LOCAL, _FLOAT = 11, 12, 13, 14
_BINARY, _STRING, _NANOSECONDS, _NANOSECONDS_LOCAL, _LAST_TYPE = 15, 16, 18, 19, 20
# Bytes behind the header, by type; of binaries and strings those of their length.
_SIZES = np.array([0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, 4, 4, 8, 8, 8, 16], dtype=np.int64)

_MOST_PLACES = 38
_FLOAT_DIGITS = np.int64(10**15)  # a float64 stands for every decimal of fewer digits than this has
_EXACT_POWERS = 22  # of ten, that a float64 holds
_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(_MOST_PLACES + 1)])
# What a float32 with this exponent multiplies its mantissa by; 255 is for infinity and NaN.
_POWERS_OF_TWO = np.array([2.0 ** (max(1, e) - 150) for e in range(255)])
_DAY = 86_400_000_000
_LAST_DAY = (2**63 - 1) // _DAY  # later days are beyond all literals anyway


@inline
def unsigned(data: Any, at: Any, width: Any) -> Any:
    """The integer in the next 1 to 4 bytes."""
    value = np.int64(byte_at(data, at))
    for i in range(1, width):
        value |= np.int64(byte_at(data, at + i)) << (8 * i)
    return value


@inline
def _signed(data: Any, at: Any, width: Any) -> Any:
    """The integer with a sign in the next 1, 2, 4 or 8 bytes."""
    if width == 8:
        return np.int64(word_at(data, at))
    value = unsigned(data, at, width)
    return value - ((value >> (8 * width - 1)) << (8 * width))


@inline
def _widened(bits: Any) -> Any:
    """A float32, from its bits."""
    exponent, fraction = bits >> 23 & 255, bits & 0x7FFFFF
    if exponent == 255:
        real = np.inf if fraction == 0 else np.nan
    else:
        whole = fraction | 0x800000 if exponent else fraction
        real = np.float64(whole) * _POWERS_OF_TWO[exponent]
    return -real if bits >> 31 else real


@inline
def _decimal(data: Any, at: Any, kind: Any) -> Any:
    """The decimal whose header is at ``at``."""
    places = np.int64(byte_at(data, at + 1))
    if places > _MOST_PLACES:
        return CORRUPT, NULL, at, np.int64(0), 0.0
    if kind == _DECIMAL4:
        mantissa = _signed(data, at + 2, 4)
    else:
        mantissa = np.int64(word_at(data, at + 2))
        if kind == _DECIMAL16 and np.int64(word_at(data, at + 10)) != mantissa >> 63:
            return NO_REASON, EXACT, at, np.int64(0), 0.0
    while places > 0 and not -_FLOAT_DIGITS < mantissa < _FLOAT_DIGITS and mantissa % 10 == 0:
        mantissa //= 10
        places -= 1
    if places == 0:
        return NO_REASON, INTEGER, mantissa, np.int64(0), 0.0
    if places <= _EXACT_POWERS and -_FLOAT_DIGITS < mantissa < _FLOAT_DIGITS:
        return NO_REASON, FLOAT, at, np.int64(0), np.float64(mantissa) / _POWERS_OF_TEN[places]
    return NO_REASON, EXACT, at, np.int64(0), 0.0


@inline
def scalar(data: Any, at: Any, stop: Any) -> Any:
    """Read the value at ``at``, which is not an object; an array's content is not read."""
    header = np.int64(byte_at(data, at))
    basic, kind = header & 3, header >> 2
    nothing = np.int64(0)
    if basic == ARRAY:
        return NO_REASON, OTHER, at, nothing, 0.0
    start, size = at + 1, kind
    if basic == PRIMITIVE:
        if kind > _LAST_TYPE:
            return UNKNOWN_TYPE, NULL, nothing, nothing, 0.0
        size = _SIZES[kind]
        if start + size > stop:
            return CORRUPT, NULL, nothing, nothing, 0.0
        if kind in (_STRING, _BINARY):
            start, size = start + 4, unsigned(data, start, 4)
    if start + size > stop:
        return CORRUPT, NULL, nothing, nothing, 0.0
    if basic == SHORT_STRING or kind == _STRING:
        if not is_utf8(data, start, start + size):
            return BAD_UTF8, NULL, nothing, nothing, 0.0
        return NO_REASON, STRING, start, size, 0.0
    if kind == 0:
        return NO_REASON, NULL, nothing, nothing, 0.0
    if kind in (_TRUE, _FALSE):
        return NO_REASON, BOOLEAN, np.int64(kind == _TRUE), nothing, 0.0
    if _INT8 <= kind <= _INT64:
        return NO_REASON, INTEGER, _signed(data, start, size), nothing, 0.0
    if kind == _DOUBLE:
        return NO_REASON, FLOAT_BITS, _signed(data, start, 8), nothing, 0.0
    if kind == _FLOAT:
        return NO_REASON, FLOAT, nothing, nothing, _widened(unsigned(data, start, 4))
    if _DECIMAL4 <= kind <= _DECIMAL16:
        return _decimal(data, at, kind)
    if kind == _DATE:
        day = min(max(_signed(data, start, 4), -_LAST_DAY), _LAST_DAY)
        return NO_REASON, TIMESTAMP, day * _DAY, nothing, 0.0
    if kind in (_MICROSECONDS, _MICROSECONDS_LOCAL):
        return NO_REASON, TIMESTAMP, _signed(data, start, 8), nothing, 0.0
    if kind in (_NANOSECONDS, _NANOSECONDS_LOCAL):
        ticks = _signed(data, start, 8)
        if ticks % 1000 == 0:
            return NO_REASON, TIMESTAMP, ticks // 1000, nothing, 0.0
        return NO_REASON, EXACT_TIME, ticks, nothing, 0.0
    return NO_REASON, OTHER, at, nothing, 0.0


class LongDecimals(NamedTuple):
    """Decimals too long for a float or an int64 to stand for them: 128-bit mantissas, and places.

    ``signs`` are 1 or -1; the magnitude is ``highs * 2**64 + lows``.
    """

    signs: npt.NDArray[np.int64]
    highs: npt.NDArray[np.uint64]
    lows: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint8]

    @classmethod
    def read(cls, data: npt.NDArray[np.uint8], headers: npt.NDArray[np.int64]) -> LongDecimals:
        """The decimals that ``scalar`` called ``EXACT``, by where their headers are. O(n)."""
        kinds = data[headers] >> 2
        # Short ones may end with the data; what is read instead behind it is written over.
        window = np.minimum(headers[:, np.newaxis] + np.arange(2, 18), len(data) - 1)
        words = np.ascontiguousarray(data[window]).view(np.uint64)
        lows, highs = words[:, 0].copy(), words[:, 1].copy()
        small = kinds == _DECIMAL4
        lows[small] = lows[small].astype(np.uint32).view(np.int32).astype(np.int64).view(np.uint64)
        narrow = kinds != _DECIMAL16
        highs[narrow] = (lows[narrow].view(np.int64) >> 63).view(np.uint64)
        return cls.of_words(lows, highs, data[headers + 1])

    @classmethod
    def of_words(
        cls,
        lows: npt.NDArray[np.uint64],
        highs: npt.NDArray[np.uint64],
        places: npt.NDArray[np.uint8],
    ) -> LongDecimals:
        """From the two halves of mantissas with a sign, which are written over. O(n)."""
        negative = highs.view(np.int64) < 0
        lows[negative] = ~lows[negative] + np.uint64(1)
        highs[negative] = ~highs[negative] + (lows[negative] == 0)
        return cls(np.where(negative, -1, 1), highs, lows, places)

    def approximate(self) -> npt.NDArray[np.float64]:
        """Floats that are off by a few units in the last place at most."""
        magnitudes = self.highs.astype(np.float64) * 2.0**64 + self.lows.astype(np.float64)
        quotients: npt.NDArray[np.float64] = magnitudes / _POWERS_OF_TEN[self.places]
        return quotients * self.signs

    def exact(self, i: int) -> Decimal:
        """One of them as it is."""
        magnitude = (int(self.highs[i]) << 64) + int(self.lows[i])
        digits = tuple(map(int, str(magnitude)))
        return Decimal((int(self.signs[i] < 0), digits, -int(self.places[i])))
