"""Rounding: ``round`` (halves away from zero), ``bround`` (halves to even), ``floor``, ``ceil``.

::

    round(2.5) = 3   bround(2.5) = 2   floor(-2.5) = -3   ceil(-2.5) = -2   round(1250, -2) = 1300

The type of the first argument stays, but a DECIMAL gets the digits that it needs; ``floor`` and
``ceil`` of a DOUBLE are BIGINT. A DOUBLE is rounded as its shortest decimal (``shortest.py``).
All O(rows).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from bittern.terms.casts.casts import cast, widened
from bittern.terms.columns import as_given, column, given, meaningless
from bittern.terms.nodes import Call
from bittern.terms.numbers.decimals import decimal_array, quotient, rescaled, units_of
from bittern.terms.numbers.numbers import OVERFLOW, plain
from bittern.terms.numbers.shortest import EXACT_POWER, rounded_units
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.types import MAX_PRECISION, as_decimal, is_number

TABLE = FunctionTable()
#: What floor and ceil with places cast to first, if it is no DECIMAL.
_WIDE = {pa.float32(): pa.decimal128(14, 7), pa.float64(): pa.decimal128(30, 15)}
_TEXT = pa.decimal128(MAX_PRECISION, 18)
_WHOLE = 2.0**53
#: What is this large is rounded to infinity.
_BEYOND = 2**1024 - 2**970


def _places(scope: Scope, value: Value) -> int | None:
    """The second argument, which is a constant; None if it is NULL."""
    if not isinstance(value, pa.Scalar):
        raise MeaninglessError("the places that a number is rounded to are a constant")
    found = cast(scope, value, pa.int32()).as_py()
    assert found is None or isinstance(found, int)
    return found


_ZERO = pa.scalar(0, pa.int32())


def _round(mode: str, scope: Scope, call: Call, value: Value, places: Value = _ZERO) -> Value:
    value = plain(scope, value, what=call.function)
    to = _places(scope, places)
    if pa.types.is_decimal(value.type):
        return _rounded_decimal(scope, value, to, mode)
    if to is None:
        return widened(pa.scalar(None), value.type)
    if pa.types.is_integer(value.type):
        return value if to >= 0 else _rounded_integer(scope, value, to, mode)
    own = column(value)
    data = own.data.astype(np.float64)
    # Numbers this large are whole, and have one shortest decimal: nothing to round.
    kept = ~np.isfinite(data) | ((np.abs(data) >= _WHOLE) & (to >= 0))
    # Digits beyond the 17 that a DOUBLE has, wherever its point stands, change nothing.
    to = max(min(to, 350), -350)
    any_kept = bool(kept.any())
    units = rounded_units(np.where(kept, 0.0, data) if any_kept else data, to, mode)
    if units.dtype == np.int64 and abs(to) <= EXACT_POWER:
        found = units / 10.0**to if to >= 0 else units * 10.0**-to
    else:
        whole = units.astype(object)
        found = whole / 10**to if to >= 0 else whole * 10**-to
        found = np.where(np.abs(found) < _BEYOND, found, np.where(found < 0, -np.inf, np.inf))
    found = found.astype(np.float64)
    data = np.where(kept, data, found) if any_kept else found
    return given(data.astype(own.data.dtype), own.valid, value.type, value)


TABLE.add("round", least=1, most=2)(partial(_round, "up"))
TABLE.add("bround", least=1, most=2)(partial(_round, "even"))


def _rounded_integer(scope: Scope, value: Value, places: int, mode: str) -> Value:
    own = column(value)
    limits = np.iinfo(own.data.dtype)
    unit = 10 ** min(-places, 20)
    wide = quotient(own.data.astype(object), unit, mode) * unit
    over = np.asarray((wide < limits.min) | (wide > limits.max), dtype=np.bool_) & own.valid
    scope.fail(over, OVERFLOW)
    data = np.where(over, 0, wide).astype(own.data.dtype)
    return given(data, own.valid & ~over, value.type, value)


def _rounded_decimal(scope: Scope, value: Value, places: int | None, mode: str) -> Value:
    """In a type that has one more digit in front of the point, as rounding up may need it."""
    kind, units = value.type, units_of(value)
    whole = kind.precision - kind.scale + 1
    if places is None:
        return widened(pa.scalar(None), pa.decimal128(min(whole, MAX_PRECISION), 0))
    if places < 0:
        places = max(places, -MAX_PRECISION - 1)
        found = pa.decimal128(min(max(whole, 1 - places), MAX_PRECISION), 0)
        data = rescaled(rescaled(units.data, kind.scale, places, mode), places, 0)
    else:
        places = min(places, kind.scale)
        found = pa.decimal128(min(whole + places, MAX_PRECISION), places)
        data = rescaled(units.data, kind.scale, places, mode)
    array, over = decimal_array(data, units.valid, found)
    scope.fail(over, OVERFLOW)
    return as_given(array, value)


def _edge(mode: str, scope: Scope, call: Call, value: Value, places: Value | None = None) -> Value:
    """A BIGINT or DECIMAL below or above; with places always a DECIMAL."""
    if places is not None:
        return _edge_at(mode, scope, call, value, places)
    value = plain(scope, value, what=call.function, empty=pa.int64())
    if pa.types.is_decimal(value.type):
        return _rounded_decimal(scope, value, 0, mode)
    if pa.types.is_integer(value.type):
        return widened(value, pa.int64())
    own = column(value)
    data = (np.floor if mode == "floor" else np.ceil)(own.data.astype(np.float64))
    over = own.valid & ((data >= 2.0**63) | (data < -(2.0**63)))
    scope.fail(over, OVERFLOW)
    data = np.where(over | np.isnan(data), 0, data)  # NaN is 0 here, and only here
    return given(data.astype(np.int64), own.valid & ~over, pa.int64(), value)


def _edge_at(mode: str, scope: Scope, call: Call, value: Value, places: Value) -> Value:
    kind = value.type
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        value = cast(scope, value, _TEXT)
    elif is_number(kind):
        value = cast(scope, value, _WIDE[kind] if kind in _WIDE else as_decimal(kind))
    else:
        raise meaningless(call.function, kind)
    return _rounded_decimal(scope, value, _places(scope, places), mode)


TABLE.add("floor", least=1, most=2)(partial(_edge, "floor"))
TABLE.add("ceil", "ceiling", least=1, most=2)(partial(_edge, "ceil"))
