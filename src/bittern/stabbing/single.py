"""The short way of a single value to its cell.

A batch of one value takes 50 microseconds before anything is searched: reading a list, making
arrays, several kernels. Here a Python number, time or string goes straight into one kernel, which
finds its place among the constants by a binary search and returns the cell of that place::

    constants 10 15 20     places 0 .. 6     cells 0 1 1 2 2 3 3
    value     15.5         place 4 (between 15 and 20)           cell 2

What is of no usual type, or compares with the constants in no usual way (integers beyond 2**53
with fractions, decimals, times of NumPy), goes the long way, in a batch of one.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import f8, f8r, i4r, i8, i8r, kernel, text, u1r
from bittern.model.numbers import WHOLE_FLOATS
from bittern.model.rank.space import NUMBER, STRING, TIME
from bittern.model.strings import arrow_strings
from bittern.stabbing.values import fits, microseconds

if TYPE_CHECKING:
    from bittern.arrays import Int32s
    from bittern.stabbing.axis import Axis

LONG_WAY = -1
"""No cell: only a batch can tell."""

_FAR = 2.0**63


@kernel(i8, i8r, i4r, i8, i8)
def _cell_of_integer(constants: Any, cells: Any, value: Any, beyond: Any) -> Any:
    """The cell of an integer, or of what lies between it and the next one."""
    low, high = 0, len(constants)
    while low < high:
        middle = (low + high) >> 1
        if constants[middle] < value:
            low = middle + 1
        else:
            high = middle
    place = 2 * low
    if low < len(constants) and constants[low] == value:
        place += 1 + beyond
    return cells[place]


@kernel(i8, f8r, i4r, f8)
def _cell_of_float(constants: Any, cells: Any, value: Any) -> Any:
    """The cell of a float; NaN is above all."""
    low, high = 0, len(constants)
    while low < high:
        middle = (low + high) >> 1
        if not constants[middle] >= value:
            low = middle + 1
        else:
            high = middle
    return cells[2 * low + (low < len(constants) and constants[low] == value)]


@kernel(i8, u1r, i8r, i4r, text)
def _cell_of_string(data: Any, offsets: Any, cells: Any, value: Any) -> Any:
    """The cell of a string in UTF-8."""
    low, high, count = 0, len(offsets) - 1, len(offsets) - 1
    found = False
    while low < high:
        middle = (low + high) >> 1
        begin = offsets[middle]
        length = offsets[middle + 1] - begin
        k = 0
        while k < length and k < len(value) and data[begin + k] == value[k]:
            k += 1
        if k == length and k == len(value):
            found = True
            low = high = middle
        elif k == length or (k < len(value) and data[begin + k] < value[k]):
            low = middle + 1
        else:
            high = middle
    return cells[2 * low + (found and low < count)]


class SingleValues:
    """The cells of single values on an axis: O(log m) each."""

    def __init__(self, axis: Axis, cells: Int32s) -> None:
        self._kind, self._scale = axis.kind, axis.scale
        self._cells = cells
        self._constants: Any = axis.constants
        self._text: Any = None
        if axis.kind == STRING:
            self._text = arrow_strings(axis.constants)[:2]
        self._is_whole = axis.kind != STRING and axis.constants.dtype == np.int64
        self._is_float = axis.kind == NUMBER and axis.constants.dtype == np.float64

    def cell(self, value: Any) -> int:
        """The cell of a value; LONG_WAY if it goes no short way."""
        kind = type(value)
        if self._kind == NUMBER:
            if kind is int:
                return self._of_integer(value)
            return self._of_float(value) if isinstance(value, float) else LONG_WAY
        if self._kind == STRING and kind is str:
            try:
                return int(_cell_of_string(*self._text, self._cells, value.encode()))
            except UnicodeEncodeError:
                return LONG_WAY
        if self._kind == TIME and kind is dt.datetime:
            units = microseconds(value) * 10**self._scale
            if fits(units):
                return int(_cell_of_integer(self._constants, self._cells, units, 0))
        return LONG_WAY

    def _of_integer(self, value: int) -> int:
        if self._is_whole and fits(value):
            return int(_cell_of_integer(self._constants, self._cells, value, 0))
        if self._is_float and -WHOLE_FLOATS <= value <= WHOLE_FLOATS:
            return int(_cell_of_float(self._constants, self._cells, value))
        return LONG_WAY

    def _of_float(self, value: float) -> int:
        if self._is_float:
            return int(_cell_of_float(self._constants, self._cells, value))
        if not self._is_whole:
            return LONG_WAY
        if -_FAR <= value < _FAR:
            below = math.floor(value)
            return int(_cell_of_integer(self._constants, self._cells, below, below != value))
        return int(self._cells[0 if value < 0 else -1])
