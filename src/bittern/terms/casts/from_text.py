"""Casts of STRING to numbers and Booleans, as strict as Spark's in ANSI mode.

::

    ' 12 '  '+12'                INT        spaces and control characters around it are left out
    '12.5'  '1e3' '.5' ' inf'    DOUBLE     what Java reads, with ``1.5d`` and ``0x1p3``, too
    '12.345'  '1e2'              DECIMAL    rounded to the type's scale, halves away from zero
    'Yes' 't' '0'                BOOLEAN

What is nothing of these is NULL, and marked as wrong. O(bytes); rare forms are read one by one,
each distinct value once.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.columns import arrow, column, merged, per_distinct
from bittern.terms.numbers.decimals import decimal_array, quotient, times_ten
from bittern.terms.types import MAX_PRECISION

#: What Spark leaves out around integers, Booleans and times; and Java around other numbers.
_AROUND = r"^[\x00-\x20\x7f]+|[\x00-\x20\x7f]+$"
_SPACE = r"^[\x00-\x20]+|[\x00-\x20]+$"
_INTEGER = r"^[+-]?[0-9]+$"
_LARGEST = "9223372036854775807", "9223372036854775808"  # and the magnitude of the lowest
_FLOAT = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?$"
_HEX = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_WORDS = {
    "inf": np.inf,
    "+inf": np.inf,
    "infinity": np.inf,
    "+infinity": np.inf,
    "-inf": -np.inf,
    "-infinity": -np.inf,
    "nan": np.nan,
}
_SHORT_DECIMAL = r"^[+-]?(?:[0-9]{1,17}\.?|[0-9]{0,8}\.[0-9]{1,9})$"
_DECIMAL = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,10}))?")
#: Two types' worth of digits: of a number that fits, none behind them is kept.
_MOST_DIGITS = 2 * MAX_PRECISION + 4
#: Products below this are whole in 64 bits.
_SMALL = 2.0**61
_TRUE = pa.array(["t", "true", "y", "yes", "1"])
_FALSE = pa.array(["f", "false", "n", "no", "0"])


def trimmed(array: pa.Array) -> pa.Array:
    """Strings without spaces and control characters around them."""
    return pc.replace_substring_regex(array, _AROUND, "")


def _mask(value: Any) -> Mask:
    return np.asarray(value.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def integers(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The strings as integers of a type, and a mask of those that are none."""
    text = trimmed(array)
    valid = _mask(array.is_valid())
    digits = pc.replace_substring_regex(text, "^[+-]?0*", "")
    negative = _mask(pc.starts_with(text, "-"))
    length = column(pc.utf8_length(digits)).data
    most = pc.if_else(pa.array(negative), _LARGEST[1], _LARGEST[0])
    fits = (length < 19) | ((length == 19) & _mask(pc.less_equal(digits, most)))
    good = valid & fits & _mask(pc.match_substring_regex(text, _INTEGER))
    padded = pc.if_else(pa.array(good & (length > 0)), digits, "0")
    sizes = padded.cast(pa.uint64()).to_numpy(zero_copy_only=False)
    data = np.where(negative, np.negative(sizes), sizes).view(np.int64)
    limits = np.iinfo(kind.to_pandas_dtype())
    good &= (data >= limits.min) & (data <= limits.max)
    return arrow(np.where(good, data, 0).astype(limits.dtype), good, kind), valid & ~good


def floats(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The strings as FLOAT or DOUBLE, and a mask of those that are none."""
    text = pc.replace_substring_regex(array, _SPACE, "")
    valid = _mask(array.is_valid())
    good = valid & _mask(pc.match_substring_regex(text, _FLOAT))
    plain = pc.if_else(pa.array(good), pc.replace_substring_regex(text, "[fFdD]$", ""), "0")
    numbers = plain.cast(kind)
    other = valid & ~good
    if not other.any():
        return pc.if_else(pa.array(valid), numbers, pa.scalar(None, kind)), other
    rest = per_distinct(text.filter(pa.array(other)), _rare_float, pa.float64())
    numbers = pc.if_else(pa.array(valid), numbers, pa.scalar(None, kind))
    numbers = merged(numbers, other, rest.cast(kind, safe=False))
    return numbers, valid & _mask(numbers.is_null())


def _rare_float(text: str) -> float | None:
    if (word := _WORDS.get(text.lower())) is not None:
        return word
    if text in ("+NaN", "-NaN"):  # so written, Java takes them with a sign
        return np.nan
    if match := _HEX.fullmatch(text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return -np.inf if text.startswith("-") else np.inf
    return None


def booleans(array: pa.Array) -> tuple[pa.Array, Mask]:
    """The strings as Booleans, and a mask of those that are none."""
    text = pc.ascii_lower(trimmed(array))
    yes, no = (_mask(pc.is_in(text, value_set=words)) for words in (_TRUE, _FALSE))
    return arrow(yes, yes | no, pa.bool_()), _mask(array.is_valid()) & ~(yes | no)


def decimals(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The strings as decimals of a type, and a mask of those that are none or do not fit."""
    text = pc.replace_substring_regex(array, _SPACE, "")
    valid = _mask(array.is_valid())
    short = valid & _mask(pc.match_substring_regex(text, _SHORT_DECIMAL))
    units = _short_units(pc.if_else(pa.array(short), text, "0"), kind.scale)
    other = np.flatnonzero(valid & ~short)
    good = valid.copy()
    if len(other):
        encoded = text.take(pa.array(other)).dictionary_encode()
        found = [_long_units(each, kind.scale) for each in encoded.dictionary.to_pylist()]
        asked = np.empty(len(found), object)
        asked[:] = [0 if each is None else each for each in found]
        which = encoded.indices.to_numpy()
        units = units.astype(object)
        units[other] = asked[which]
        good[other] = np.array([each is not None for each in found])[which]
    result, over = decimal_array(units, good, kind)
    return result, valid & (over | ~good)


def _short_units(text: pa.Array, scale: int) -> npt.NDArray[Any]:
    """Decimals of up to 17 digits in units of the scale."""
    point = column(pc.find_substring(text, ".")).data
    length = column(pc.utf8_length(text)).data
    behind = np.where(point < 0, 0, length - point - 1)
    digits = pc.replace_substring_regex(text, r"[+.]", "")
    data = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
    # First as many digits as the longest one has, then those of the type: one rounding.
    deepest = int(behind.max()) if len(behind) else 0
    factors = 10 ** (deepest - behind).astype(np.int64)
    if (np.abs(data) * factors.astype(np.float64) >= _SMALL).any():
        data = data.astype(object)
    level = data * factors
    if scale >= deepest:
        return times_ten(level, scale - deepest)
    return quotient(level, 10 ** (deepest - scale), "up")


def _long_units(text: str, scale: int) -> int | None:
    """One decimal in units of the scale; None if it is none, or has more digits than any type."""
    match = _DECIMAL.fullmatch(text)
    if match is None or max(text) > "\uffff":  # Java knows no digits beyond
        return None
    whole, _, fraction = match[2].partition(".")
    digits, exponent = whole + fraction, int(match[3] or 0)
    if abs(exponent) >= 2**31:
        return None
    if not digits.isascii():
        digits = "".join(str(int(digit)) for digit in digits)
    digits = digits.lstrip("0")
    # Only the first digit that is left out rounds; those behind it are not looked at.
    size = int(digits[:_MOST_DIGITS] or 0)
    if size == 0:
        return 0
    n_digits = min(len(digits), _MOST_DIGITS)
    power = exponent - len(fraction) + scale + len(digits) - n_digits
    if n_digits + power - scale > MAX_PRECISION:
        return None
    if n_digits + power < 0:
        return 0
    if power < 0:
        size = int(quotient(np.array([size], object), 10**-power, "up")[0])
    else:
        size *= 10**power
    return -size if match[1] == "-" else size
