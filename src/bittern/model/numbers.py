"""Numbers as Bittern compares them: by exact value.

An integer or decimal has its exact value. A float stands for the decimal that prints it (its
shortest round-trip form), so the float 0.1 equals the literal 0.1. From 2**53 on, while 64-bit
integers can equal it, it stands for exactly the whole number that it is.

``NumberColumns`` holds sorted, distinct constants as the arrays that searching needs::

    constant     floor  whole  double  mantissa x 10**-scale
    -0.5            -1      0    -0.5        -5            1
    3                3      1     3.0         3            0
    3.25             3      0    3.25       325            2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Number: TypeAlias = int | Decimal

#: From the first on every float is a whole number, and below the second an int64 can hold it.
WHOLE_FLOATS, BEYOND_INT64 = 2.0**53, 2.0**63
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Enough digits for every double as a whole number; the caller's own context must not matter.
_CONTEXT = Context(prec=800, Emax=999_999, Emin=-999_999)
#: No constant is as large as 10 to this power, or as small as 10 to minus it.
BEYOND = 400


def exact(value: float | Decimal) -> Number:
    """The number that a finite value stands for; an int where it is whole."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if abs(value) >= WHOLE_FLOATS and INT64_MIN <= value < BEYOND_INT64:
            return int(value)
        value = Decimal(repr(value))
    if not -BEYOND < value.adjusted() < BEYOND:
        # Beyond all constants: what matters is on which side.
        value = Decimal(
            (
                value.as_tuple().sign,
                (int(value != 0),),
                int(math.copysign(BEYOND, value.adjusted())),
            )
        )
    whole = int(value)
    return whole if whole == value else value


class NumberColumns(NamedTuple):
    """Constants in ascending order, one array per aspect."""

    floors: npt.NDArray[np.int64]
    whole: npt.NDArray[np.bool_]
    doubles: npt.NDArray[np.float64]
    mantissas: npt.NDArray[np.int64]
    scales: npt.NDArray[np.int16]

    @classmethod
    def of(cls, numbers: Sequence[Number]) -> NumberColumns:
        """Spread numbers into columns; O(n), vectorised when all are 64-bit integers."""
        if all(type(n) is int and INT64_MIN <= n <= INT64_MAX for n in numbers):
            return cls.of_integers(np.array(numbers, dtype=np.int64))
        mantissas, scales = zip(*map(_mantissa_and_scale, numbers), strict=True)
        return cls(
            np.array([_clamped(_floor(n)) for n in numbers], dtype=np.int64),
            np.array([type(n) is int and INT64_MIN <= n <= INT64_MAX for n in numbers]),
            np.array([float(n) for n in numbers], dtype=np.float64),
            np.array(mantissas, dtype=np.int64),
            np.array(scales, dtype=np.int16),
        )

    @classmethod
    def of_integers(cls, values: npt.NDArray[np.int64]) -> NumberColumns:
        """Columns of 64-bit integers."""
        return cls(
            values,
            np.ones(len(values), dtype=np.bool_),
            values.astype(np.float64),
            values,
            np.zeros(len(values), dtype=np.int16),
        )

    def number(self, i: int) -> Number:
        """Constant i again, exactly."""
        return exact(Decimal(int(self.mantissas[i])).scaleb(-int(self.scales[i]), _CONTEXT))

    def plain(self) -> npt.NDArray[np.bool_]:
        """Which constants are what their doubles print; no other such constant has that double."""
        few_digits = (self.mantissas > -(10**15)) & (self.mantissas < 10**15)
        return few_digits & (np.abs(self.doubles) < WHOLE_FLOATS)

    def take(self, indices: npt.NDArray[np.int64]) -> NumberColumns:
        """The columns at these places."""
        floors, whole, doubles, mantissas, scales = self
        return NumberColumns(
            floors[indices], whole[indices], doubles[indices], mantissas[indices], scales[indices]
        )


def _floor(number: Number) -> int:
    whole = int(number)
    return whole - 1 if number < whole else whole


def _clamped(whole: int) -> int:
    return max(INT64_MIN, min(INT64_MAX, whole))


def _mantissa_and_scale(number: Number) -> tuple[int, int]:
    sign, digits, exponent = Decimal(number).normalize(_CONTEXT).as_tuple()
    mantissa = int("".join(map(str, digits)))
    scale = -int(exponent)
    return (-mantissa if sign else mantissa), scale


def floors_at_scale(
    columns: NumberColumns, scale: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Floors, and which are whole, of the constants times ``10**scale``: for decimal columns."""
    floors = np.empty(len(columns.floors), dtype=np.int64)
    whole = np.empty(len(columns.floors), dtype=np.bool_)
    for i in range(len(floors)):
        number = Decimal(columns.number(i)).scaleb(scale, _CONTEXT)
        floor = _floor(exact(number))
        floors[i] = _clamped(floor)
        whole[i] = floor == number and INT64_MIN <= floor <= INT64_MAX
    return floors, whole


def cells_of_doubles(columns: NumberColumns) -> npt.NDArray[np.int32]:
    """For each constant, the cell of a float event value that equals its nearest double.

    Almost always the constant's own cell ``2i + 1``. Where several constants share a double, or
    a constant of more than 15 digits is not what its double prints, the float lies beside it.
    """
    n = len(columns.floors)
    cells = np.arange(n, dtype=np.int32) * 2 + 1
    doubles = columns.doubles
    plain = columns.plain()
    shared = np.zeros(n, dtype=np.bool_)
    shared[1:] = doubles[1:] == doubles[:-1]
    shared[:-1] |= shared[1:]
    for i in np.flatnonzero(~plain | shared):
        value = exact(float(doubles[i]))
        first = int(np.searchsorted(doubles, doubles[i], "left"))
        while first < n and doubles[first] == doubles[i] and columns.number(first) < value:
            first += 1
        equal = first < n and columns.number(first) == value
        cells[i] = 2 * first + int(equal)
    return cells
