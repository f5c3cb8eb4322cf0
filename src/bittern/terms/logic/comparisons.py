"""Comparisons, and what they are made of: order, equality, membership, patterns.

``compare(a, b)`` is -1, 0 or 1 as a is below, equal to or above b, and NULL where one of them is
NULL or their kinds differ. NaN equals itself and is above every number, -0.0 is 0.0, strings are
ordered by their bytes: as in Spark. All O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.casts.casts import cast, widened
from bittern.terms.columns import as_array, as_given
from bittern.terms.nested.ranks import ranks
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.types import ANY, common_type, is_number, type_name, wider_type, widest_type

TABLE = FunctionTable()


def in_common(left: Value, right: Value) -> tuple[Value, Value]:
    """Both in a type that holds all values of both."""
    kind = common_type(left.type, right.type)
    if kind is None:
        raise MeaninglessError(
            f"{type_name(left.type)} cannot be compared with {type_name(right.type)}"
        )
    return widened(left, kind), widened(right, kind)


def compared(scope: Scope, left: Value, right: Value) -> tuple[Value, Value]:
    """Both in the type in which Spark compares them; strings that are none fail."""
    kind = wider_type(left.type, right.type)
    if kind is None:
        raise MeaninglessError(
            f"{type_name(left.type)} cannot be compared with {type_name(right.type)}"
        )
    if pa.types.is_string(right.type) and right.type != kind:
        # Beside NULL nothing is cast, so nothing fails.
        right = pc.if_else(pc.is_valid(left), right, pa.scalar(None, right.type))
    return as_wider(scope, left, kind), as_wider(scope, right, kind)


def as_wider(scope: Scope, value: Value, kind: pa.DataType) -> Value:
    """The value in a type that ``wider_type`` found."""
    is_cast = pa.types.is_string(value.type) and not pa.types.is_string(kind)
    return cast(scope, value, kind) if is_cast else widened(value, kind)


def order(scope: Scope, left: Value, right: Value) -> tuple[Value, Value]:
    """Whether the left value is below the right one, and whether they are equal."""
    from bittern.terms.times.intervals import months_alone  # noqa: PLC0415

    if {left.type, right.type} == {pa.string(), pa.binary()}:  # a text is its bytes
        left, right = left.cast(pa.binary()), right.cast(pa.binary())
    left, right = compared(scope, left, right)
    if pa.types.is_null(left.type):
        nothing = pa.scalar(None, pa.bool_())
        return nothing, nothing
    if pa.types.is_interval(left.type):
        left, right = months_alone(left), months_alone(right)
    if pa.types.is_nested(left.type):
        return _nested_order(left, right)
    if left.type == ANY:
        raise MeaninglessError(f"values of type {type_name(left.type)} are not compared")
    below, equal = pc.less(left, right), pc.equal(left, right)
    if pa.types.is_floating(left.type):
        nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
        below = pc.or_kleene(below, pc.and_(pc.invert(nan_left), nan_right))
        equal = pc.or_kleene(equal, pc.and_(nan_left, nan_right))
    return below, equal


def _nested_order(left: Value, right: Value) -> tuple[Value, Value]:
    """Lists and structs, element by element."""
    arrays = [as_array(left), as_array(right)]
    codes = ranks(pa.concat_arrays(arrays))
    one, other = codes[: len(arrays[0])], codes[len(arrays[0]) :]
    missing = (one < 0) | (other < 0)
    found = (pa.array(one < other, mask=missing), pa.array(one == other, mask=missing))
    return as_given(found[0], left, right), as_given(found[1], left, right)


@TABLE.add("compare", least=2)
def _compare(scope: Scope, _call: Call, left: Value, right: Value) -> Value:
    below, equal = order(scope, left, right)
    one, zero = pa.scalar(1, pa.int8()), pa.scalar(0, pa.int8())
    above = pc.if_else(equal, zero, one)
    return pc.if_else(below, pa.scalar(-1, pa.int8()), above)


_OPERATORS: dict[str, Any] = {
    "=": lambda _, equal: equal,
    "!=": lambda _, equal: pc.invert(equal),
    "<": lambda below, _: below,
    "<=": pc.or_kleene,
    ">": lambda below, equal: pc.invert(pc.or_kleene(below, equal)),
    ">=": lambda below, _: pc.invert(below),
}


def _operator(scope: Scope, call: Call, left: Value, right: Value) -> Value:
    return _OPERATORS[call.function](*order(scope, left, right))


for _name in _OPERATORS:
    TABLE.add(_name, least=2)(_operator)


@TABLE.add("<=>", least=2)
def _same(scope: Scope, _call: Call, left: Value, right: Value) -> Value:
    equal = order(scope, left, right)[1]
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(equal, False), both)


@TABLE.add("equal_null", least=2)
def _equal_null(scope: Scope, call: Call, left: Value, right: Value) -> Value:
    return _same(scope, call, left, right)


def _told(scope: Scope, call: Call, values: Sequence[Value]) -> Value:
    """Where the value is NULL, or one of the first members, or below the low end."""
    told, n_failures = pc.is_null(values[0]), len(scope.failures)
    if len(values) > 1:
        begun = _in(scope, call, *values) if call.function == "in" else order(scope, *values)[0]
        told = pc.or_(told, pc.fill_null(begun, False))
    del scope.failures[n_failures:]
    return told


@TABLE.add("in", least=2, most=-1, settles=_told)
def _in(scope: Scope, _call: Call, value: Value, *values: Value) -> Value:
    kind = widest_type(each.type for each in (value, *values))
    if kind is None:
        shown = ", ".join(dict.fromkeys(type_name(each.type) for each in (value, *values)))
        raise MeaninglessError(f"IN has values of types that do not go together: {shown}")
    value, found = as_wider(scope, value, kind), pa.scalar(False)
    for each in values:
        found = pc.or_kleene(found, order(scope, value, as_wider(scope, each, kind))[1])
    return found


@TABLE.add("between", least=3, settles=_told)
def _between(scope: Scope, _call: Call, value: Value, low: Value, high: Value) -> Value:
    below = order(scope, value, low)[0]
    above = _OPERATORS[">"](*order(scope, value, high))
    return pc.and_kleene(pc.invert(below), pc.invert(above))


@TABLE.add("is null", "isnull", least=1)
def _is_null(_scope: Scope, _call: Call, value: Value) -> Value:
    return pc.is_null(value)


@TABLE.add("isnotnull", least=1)
def _is_not_null(_scope: Scope, _call: Call, value: Value) -> Value:
    return pc.is_valid(value)


@TABLE.add("isnan", least=1)
def _is_nan(scope: Scope, _call: Call, value: Value) -> Value:
    if not (is_number(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"isnan takes a number, not {value.type}")
    if not pa.types.is_floating(value.type):
        return pa.scalar(False) if isinstance(value, pa.Scalar) else pa.repeat(False, scope.n_rows)
    return pc.fill_null(pc.is_nan(value), False)


def extreme(kind: str, scope: Scope, _call: Call, *values: Value) -> Value:
    """The greatest or least of the values that are not NULL."""
    best = values[0]
    for each in values[1:]:
        best, each = in_common(best, each)  # noqa: PLW2901
        below, equal = order(scope, each, best)
        better = below if kind == "least" else pc.invert(pc.or_kleene(below, equal))
        take = pc.or_(pc.fill_null(better, False), pc.is_null(best))
        best = pc.if_else(take, each, best)
    return best


TABLE.add("greatest", least=2, most=-1)(partial(extreme, "greatest"))
TABLE.add("least", least=2, most=-1)(partial(extreme, "least"))


def distinct(strings: pa.Array, answer: Any) -> pa.Array:
    """Ask for each distinct string once, where there are few of them."""
    encoded = strings.dictionary_encode()
    answers = np.array([answer(text) for text in encoded.dictionary.to_pylist()], dtype=np.bool_)
    return pa.array(answers).take(encoded.indices)
