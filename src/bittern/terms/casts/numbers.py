"""Casts among numbers, Booleans and times.

::

    DOUBLE 127.9  -> TINYINT 127     cut off, and checked against the type's range
    DECIMAL 1.25  -> DECIMAL(3, 1)   1.3, halves away from zero, and checked against the digits
    DOUBLE 0.25   -> DECIMAL(3, 1)   0.3, by its shortest decimal; NaN and infinity are NULL
    TIMESTAMP     -> BIGINT          seconds since 1970, downwards; a DOUBLE has the fraction, too

Each gives an array, and a mask of the rows that have no value in the type. All O(rows).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.columns import NumPyColumn, arrow, column
from bittern.terms.numbers.decimals import Units, decimal_array, quotient, rescaled, units_of
from bittern.terms.numbers.shortest import EXACT_POWER, rounded_units

_SECOND = 1_000_000
_SECONDS = pa.decimal128(20, 6)
_WORD = (1 << 64) - 1
#: A DOUBLE that lies halfway between two FLOATs ends in these bits.
_HALFWAY, _BELOW_FLOAT = 1 << 28, (1 << 29) - 1

Converted = tuple[pa.Array, Mask]


def _none(array: pa.Array) -> Mask:
    return np.zeros(len(array), np.bool_)


def to_integer(array: pa.Array, kind: pa.DataType) -> Converted:
    """Numbers, Booleans or timestamps as integers."""
    limits = np.iinfo(kind.to_pandas_dtype())
    if pa.types.is_decimal(array.type):
        units = units_of(array)
        data = quotient(units.data, 10**units.kind.scale, "down")
        valid = units.valid
    else:
        data, valid = column(array)
        if pa.types.is_timestamp(array.type):
            data = data // _SECOND
    if not pa.types.is_floating(array.type):
        wrong = valid & np.asarray((data < limits.min) | (data > limits.max), dtype=np.bool_)
        return arrow(np.where(wrong, 0, data).astype(limits.dtype), valid & ~wrong, kind), wrong
    # The highest BIGINT is no DOUBLE; Spark takes the one above it, and cuts it off.
    wide = data.astype(np.float64)
    most = float(limits.max)
    with np.errstate(invalid="ignore"):
        wrong = valid & ~((np.floor(wide) <= most) & (np.ceil(wide) >= float(limits.min)))
    highest = wide >= most
    cut = np.trunc(np.where(wrong | highest, 0, wide)).astype(np.int64)
    cut = np.where(highest & ~wrong, limits.max, cut)
    return arrow(cut.astype(limits.dtype), valid & ~wrong, kind), wrong


def to_float(array: pa.Array, kind: pa.DataType) -> Converted:
    """Numbers, Booleans or timestamps as FLOAT or DOUBLE."""
    target = np.dtype(kind.to_pandas_dtype())
    if pa.types.is_decimal(array.type):
        units = units_of(array)
        found = _divided(units)
        data, valid = (found if kind == pa.float64() else _single(units, found)), units.valid
    else:
        data, valid = column(array)
        if pa.types.is_timestamp(array.type):
            data = data / 1e6
    with np.errstate(over="ignore"):
        return arrow(data.astype(target), valid, kind), _none(array)


def _divided(units: Units) -> npt.NDArray[np.float64]:
    """The nearest DOUBLEs: what is whole on both sides of a division is rounded once."""
    scale = units.kind.scale
    whole = units.data.dtype == np.int64 and scale <= EXACT_POWER
    if whole and (np.abs(units.data) <= 2**53).all():
        return np.asarray(units.data / 10.0**scale)
    return np.asarray((units.data.astype(object) / 10**scale).astype(np.float64))


def _single(units: Units, found: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The nearest FLOATs; a DOUBLE halfway between two of them has been rounded once already."""
    single = found.astype(np.float32)
    bits = found.view(np.int64)
    for row in np.flatnonzero((bits & _BELOW_FLOAT) == _HALFWAY):
        exact = Fraction(int(units.data[row]), 10**units.kind.scale)
        half = Fraction(found[row])
        if exact != half:
            nudged = bits[row : row + 1] + (1 if abs(exact) > abs(half) else -1)
            single[row] = nudged.view(np.float64).astype(np.float32)[0]
    return single


def to_decimal(array: pa.Array, kind: pa.DataType) -> Converted:
    """Numbers, Booleans or timestamps as decimals."""
    scale = kind.scale
    if pa.types.is_decimal(array.type) or pa.types.is_integer(array.type):
        units = units_of(array)
        return decimal_array(rescaled(units.data, units.kind.scale, scale), units.valid, kind)
    own = column(array)
    if pa.types.is_boolean(array.type):
        ones = own.data.astype(np.int64)
        return decimal_array(rescaled(ones, 0, scale), own.valid, kind)
    if pa.types.is_timestamp(array.type):
        return to_decimal(_micros_as_decimals(own), kind)
    data = own.data.astype(np.float64)
    finite = np.isfinite(data)
    return decimal_array(
        rounded_units(np.where(finite, data, 0.0), scale), own.valid & finite, kind
    )


def _micros_as_decimals(own: NumPyColumn) -> pa.Array:
    return decimal_array(own.data, own.valid, _SECONDS)[0]


def to_boolean(array: pa.Array) -> Converted:
    """Numbers as Booleans: all but zero are true, NaN as well."""
    own: NumPyColumn | Units = units_of(array) if pa.types.is_decimal(array.type) else column(array)
    return arrow(np.asarray(own.data != 0, np.bool_), own.valid, pa.bool_()), _none(array)


def to_timestamp(array: pa.Array, kind: pa.DataType) -> Converted:
    """Numbers as seconds since 1970."""
    if pa.types.is_decimal(array.type):
        units = units_of(array)
        data: npt.NDArray[Any] = units.data.astype(object) * _SECOND
        data = quotient(data, 10**units.kind.scale, "down")
        # Spark takes the lowest 64 bits, whatever else there is.
        bits = (data & _WORD).astype(np.uint64).view(np.int64)
        return arrow(bits, units.valid, kind), _none(array)
    own = column(array)
    if pa.types.is_integer(array.type):
        most = np.iinfo(np.int64).max // _SECOND
        data = own.data.astype(np.int64)
        clipped = np.clip(data, -most, most) * _SECOND
        limits = np.iinfo(np.int64)
        clipped = np.where(data > most, limits.max, np.where(data < -most, limits.min, clipped))
        return arrow(clipped, own.valid, kind), _none(array)
    with np.errstate(all="ignore"):
        micros = pa.array(own.data.astype(np.float64) * 1e6, mask=~own.valid, from_pandas=False)
    found, wrong = to_integer(micros, pa.int64())
    return found.view(kind), wrong
