"""Roots, powers, logarithms, angles: of a DOUBLE, which every argument is cast to.

Where Spark gives NULL and not NaN (the logarithm of zero or less), so does this. O(rows).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.arrays import Float64s
from bittern.terms.casts.casts import cast
from bittern.terms.columns import column, given
from bittern.terms.nodes import Call
from bittern.terms.numbers.numbers import plain
from bittern.terms.scope import FunctionTable, Scope, Value

TABLE = FunctionTable()


def _of_one(
    function: Callable[[Float64s], Float64s],
    above: float | None,
    scope: Scope,
    call: Call,
    value: Value,
) -> Value:
    """A function of one number; NULL unless it is above a bound (NaN is above all)."""
    own = column(_double(scope, call, value))
    with np.errstate(all="ignore"):
        data = function(own.data)
    valid = own.valid if above is None else own.valid & ~(own.data <= above)
    return given(data, valid, pa.float64(), value)


def _of_two(
    function: Callable[[Float64s, Float64s], Float64s],
    scope: Scope,
    call: Call,
    left: Value,
    right: Value,
) -> Value:
    one, other = (column(_double(scope, call, value)) for value in (left, right))
    with np.errstate(all="ignore"):
        data = function(one.data, other.data)
    return given(data, one.valid & other.valid, pa.float64(), left, right)


def _double(scope: Scope, call: Call, value: Value) -> Value:
    return cast(scope, plain(scope, value, what=call.function), pa.float64())


def _inverted(function: Callable[[Float64s], Float64s]) -> Callable[[Float64s], Float64s]:
    return lambda data: 1 / function(data)


_LN2 = np.log(2.0)
_FUNCTIONS: dict[str, Callable[[Float64s], Float64s]] = {
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "rint": np.rint,
    "degrees": lambda data: data * (180 / np.pi),
    "radians": lambda data: data * (np.pi / 180),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "cot": _inverted(np.tan),
    "sec": _inverted(np.cos),
    "csc": _inverted(np.sin),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
}
for _name, _function in _FUNCTIONS.items():
    TABLE.add(_name, least=1)(partial(_of_one, _function, None))
TABLE.add("ln", least=1)(partial(_of_one, np.log, 0.0))
TABLE.add("log10", least=1)(partial(_of_one, np.log10, 0.0))
TABLE.add("log2", least=1)(partial(_of_one, lambda data: np.log(data) / _LN2, 0.0))
TABLE.add("log1p", least=1)(partial(_of_one, np.log1p, -1.0))


@TABLE.add("log", least=1, most=2)
def _log(scope: Scope, call: Call, first: Value, second: Value | None = None) -> Value:
    """The natural logarithm of one number, or that of the second to the base of the first."""
    if second is None:
        return _of_one(np.log, 0.0, scope, call, first)
    base, own = (column(_double(scope, call, value)) for value in (first, second))
    valid = base.valid & own.valid & ~(base.data <= 0) & ~(own.data <= 0)
    with np.errstate(all="ignore"):
        data = np.log(own.data) / np.log(base.data)
    return given(data, valid, pa.float64(), first, second)


def _power(base: Float64s, exponent: Float64s) -> Float64s:
    # C has 1 for 1 to the power of anything, and -1 to that of infinity; Java has NaN.
    odd = (np.abs(base) == 1) & ~np.isfinite(exponent)
    return np.where(odd, np.nan, np.power(base, exponent))


TABLE.add("power", "pow", least=2)(partial(_of_two, _power))
# Spark adds zero, so that -0.0 is 0.0.
TABLE.add("atan2", least=2)(partial(_of_two, lambda y, x: np.arctan2(y + 0.0, x + 0.0)))
TABLE.add("hypot", least=2)(partial(_of_two, np.hypot))


def _constant(number: float, *_: Any) -> Value:
    return pa.scalar(number)


TABLE.add("pi", least=0)(partial(_constant, np.pi))
TABLE.add("e", least=0)(partial(_constant, np.e))
