"""Decimals as whole numbers of their smallest unit, and Spark's rules for their types.

::

    DECIMAL(5, 2)   1.25   NULL   -3.00      scale 2
    units           125    0      -300       int64; Python's integers where these do not suffice

Arithmetic is exact, then rounded to the type of the result. Columns whose numbers stay within 64
bits, which nearly all do, are computed by NumPy; a column that holds larger ones, or in which an
intermediate result might be larger, is computed in Python's integers, some 50 times slower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.columns import as_array
from bittern.terms.scope import Value
from bittern.terms.types import MAX_PRECISION, as_decimal, bounded_decimal

#: Units are kept below this, so that sums and signs stay within 64 bits.
_MOST = 2**62
_WORD = (1 << 64) - 1
#: Spark divides to this many digits behind the point, before it rounds to those of the result.
_QUOTIENT_SCALE = MAX_PRECISION + 1
#: What Scala keeps of a number whose sign it changes.
_NEGATED_DIGITS = 34
#: With fewer digits in a result of 64 bits, rounding twice is the same as rounding once.
_ROUNDS_ONCE = 18


class Units(NamedTuple):
    """Decimals: their units (int64 or objects), where they are not NULL, and their type."""

    data: npt.NDArray[Any]
    valid: Mask
    kind: pa.Decimal128Type


def units_of(value: Value, kind: pa.DataType | None = None) -> Units:
    """Integers or decimals as units; an integer may be told its type (a constant's is its own)."""
    array = as_array(value)
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_integer(array.type):
        data = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        small = _size(data) < _MOST
        return Units(data if small else data.astype(object), valid, kind or as_decimal(array.type))
    if not len(array):
        return Units(np.zeros(0, np.int64), valid, array.type)
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    words = words[array.offset : array.offset + len(array)]
    low, high = (np.where(valid, words[:, i], 0) for i in (0, 1))
    if (high == low >> 63).all() and _size(low) < _MOST:
        return Units(low, valid, array.type)
    wide = (high.astype(object) << 64) + low.view(np.uint64).astype(object)
    return Units(wide, valid, array.type)


def decimal_array(data: npt.NDArray[Any], valid: Any, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The units as an array of a decimal type, and a mask of those that do not fit: NULL."""
    valid = np.broadcast_to(valid, data.shape)
    most = 10**kind.precision
    over = (
        np.zeros(data.shape, np.bool_)
        if data.dtype == np.int64 and most > _MOST * 2
        else np.asarray((data >= most) | (data <= -most), dtype=np.bool_) & valid
    )
    kept = valid & ~over
    words = np.zeros((len(data), 2), np.int64)
    data = np.where(kept, data, 0)
    if data.dtype == np.int64:
        words[:, 0], words[:, 1] = data, data >> 63
    else:
        words[:, 0] = (data & _WORD).astype(np.uint64).view(np.int64)
        words[:, 1] = (data >> 64).astype(np.int64)
    buffers = [pa.array(kept).buffers()[1], pa.py_buffer(words)]
    return pa.Array.from_buffers(kind, len(data), buffers), over


def _size(data: npt.NDArray[Any]) -> int:
    """The largest magnitude among the units."""
    return max(int(data.max()), -int(data.min())) if len(data) else 0


def times_ten(data: npt.NDArray[Any], power: int) -> npt.NDArray[Any]:
    """The units times a power of ten, as objects if need be."""
    factor = 10**power
    if data.dtype == np.int64 and max(_size(data), 1) * factor >= _MOST:
        data = data.astype(object)
    return np.asarray(data * factor)


def quotient(over: npt.NDArray[Any], under: Any, mode: str) -> npt.NDArray[Any]:
    """Whole quotients: ``up`` and ``even`` round halves so, ``down`` cuts off, ``floor``, ``ceil``.

    ``under`` is nowhere zero: units as well, or one integer.
    """
    if isinstance(under, int) and under >= _MOST:
        over = over.astype(object)
    size = np.abs(under)
    whole, rest = np.abs(over) // size, np.abs(over) % size
    negative = np.asarray((over < 0) != (np.asarray(under) < 0), dtype=np.bool_)
    if mode == "up":
        whole = whole + (rest >= size - rest)
    elif mode == "even":
        odd = whole % 2 == 1
        whole = whole + ((rest > size - rest) | ((rest == size - rest) & odd))
    elif mode in ("floor", "ceil"):
        whole = whole + ((rest != 0) & (negative == (mode == "floor")))
    return np.asarray(np.where(negative, -whole, whole))


def negated(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Units with the other sign; of more than 34 digits Spark keeps 34, rounding halves to even."""
    if data.dtype == object:
        for power in range(MAX_PRECISION - _NEGATED_DIGITS, 0, -1):
            unit = 10**power
            long = np.asarray(np.abs(data) >= 10 ** (_NEGATED_DIGITS + power - 1), dtype=np.bool_)
            if long.any():  # what has been rounded to more zeros stays as it is
                data = np.where(long, quotient(data, unit, "even") * unit, data)
    return np.asarray(-data)


def rescaled(data: npt.NDArray[Any], scale: int, to: int, mode: str = "up") -> npt.NDArray[Any]:
    """Units of one scale as units of another."""
    if to >= scale:
        return times_ten(data, to - scale) if to > scale else data
    return quotient(data, 10 ** (scale - to), mode)


def _level(left: Units, right: Units) -> tuple[npt.NDArray[Any], npt.NDArray[Any], int]:
    """Both in units of the finer scale of the two."""
    scale = max(left.kind.scale, right.kind.scale)
    one, other = (rescaled(each.data, each.kind.scale, scale) for each in (left, right))
    return one, other, scale


def _together(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Digits in front of the point of a type that holds both, and behind it."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return whole, max(left.scale, right.scale)


def sum_of(left: Units, right: Units, sign: int) -> tuple[npt.NDArray[Any], pa.DataType]:
    """Left plus or minus right."""
    whole, fraction = _together(left.kind, right.kind)
    kind = bounded_decimal(whole + fraction + 1, fraction)
    one, other, scale = _level(left, right)
    return rescaled(one + sign * other, scale, kind.scale), kind


def product(left: Units, right: Units) -> tuple[npt.NDArray[Any], pa.DataType]:
    """Left times right."""
    scale = left.kind.scale + right.kind.scale
    kind = bounded_decimal(left.kind.precision + right.kind.precision + 1, scale)
    one, other = left.data, right.data
    if _size(one) * _size(other) >= _MOST:
        one = one.astype(object)
    return rescaled(one * other, scale, kind.scale), kind


def ratio(left: Units, right: Units) -> tuple[npt.NDArray[Any], pa.DataType]:
    """Left by right, which is nowhere zero."""
    one, other = left.kind, right.kind
    scale = max(6, one.scale + other.precision + 1)
    kind = bounded_decimal(one.precision - one.scale + other.scale + scale, scale)
    scale = kind.scale
    raised = scale - one.scale + other.scale
    both = left.data.dtype == right.data.dtype == np.int64
    fits = max(_size(left.data), 1) * 10 ** max(raised, 0) < _MOST
    if both and raised >= 0 and scale <= _ROUNDS_ONCE and fits:
        return quotient(left.data * 10**raised, right.data, "up"), kind
    over, under = left.data.astype(object), right.data.astype(object)
    raised = _QUOTIENT_SCALE - one.scale + other.scale
    exact = quotient(over * 10**raised, under, "up")
    return rescaled(exact, _QUOTIENT_SCALE, scale), kind


def whole_ratio(left: Units, right: Units) -> tuple[npt.NDArray[np.int64], Mask]:
    """Left by right, cut off, and what has more digits than any type.

    Of the digits that do not fit a BIGINT the lowest 64 bits are left, as in Spark.
    """
    one, other, _ = _level(left, right)
    found = quotient(one, other, "down")
    if found.dtype == np.int64:
        return found, np.zeros(len(found), np.bool_)
    over = np.asarray(np.abs(found) >= 10**MAX_PRECISION, dtype=np.bool_)
    return (found & _WORD).astype(np.uint64).view(np.int64), over


def remainder(left: Units, right: Units) -> tuple[npt.NDArray[Any], pa.DataType]:
    """What is left of left, with its sign, when it is divided by right, which is nowhere zero."""
    kinds = left.kind, right.kind
    whole = min(kind.precision - kind.scale for kind in kinds)
    fraction = max(kind.scale for kind in kinds)
    one, other, _ = _level(left, right)
    rest = np.abs(one) % np.abs(other)
    return np.where(one < 0, -rest, rest), pa.decimal128(whole + fraction, fraction)


def positive_remainder(left: Units, right: Units) -> tuple[npt.NDArray[Any], pa.DataType]:
    """The remainder; one below zero gets the divisor added, and is taken again."""
    rest, kind = remainder(left, right)
    other = _level(left, right)[1]
    again = rest + other
    size = np.abs(again) % np.abs(other)
    return np.where(rest < 0, np.where(again < 0, -size, size), rest), kind
