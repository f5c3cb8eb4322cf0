"""Arithmetic: ``+ - * / % div``, their ``try_`` forms, signs, remainders.

The type of a result follows from the types of the operands, as in Spark::

    TINYINT + INT       INT                 the wider one; a result that does not fit fails the row
    FLOAT + INT         DOUBLE              FLOAT only with FLOAT
    DECIMAL(5, 2) * 3   DECIMAL(7, 2)       an integer constant counts its own digits
    INT / INT           DOUBLE              DECIMAL with DECIMAL; by zero fails, as % by zero does
    INT div INT         BIGINT              cut off towards zero, and % has the dividend's sign
    '5' + 1             BIGINT              a string is cast: BIGINT beside integers, else DOUBLE

Dates, times and intervals in ``+`` and ``-`` are those of ``terms/times``. All O(rows).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.casts.casts import cast, widened
from bittern.terms.columns import NumPyColumn, as_given, column, given, meaningless
from bittern.terms.nodes import Call, Constant, Term
from bittern.terms.numbers import decimals
from bittern.terms.numbers.decimals import Units, decimal_array, units_of
from bittern.terms.scope import FunctionTable, Scope, Value
from bittern.terms.types import as_decimal, common_type, is_number

TABLE = FunctionTable()
OVERFLOW = "the result does not fit its type"
_BY_ZERO = "division by zero"
_SHORT = 2**31

Data = npt.NDArray[Any]


def plain(
    scope: Scope, value: Value, *, what: str, strict: bool = True, empty: pa.DataType | None = None
) -> Value:
    """One operand as a number: a string is cast to DOUBLE, and so is NULL unless it is told."""
    kind = value.type
    if is_number(kind):
        return value
    if pa.types.is_null(kind):
        return widened(value, empty or pa.float64())
    if pa.types.is_string(kind):
        return cast(scope, value, pa.float64(), strict=strict)
    raise meaningless(what, kind)


def pair(
    scope: Scope, what: str, left: Value, right: Value, *, strict: bool = True
) -> tuple[Value, Value]:
    """Both operands as numbers: strings are cast, NULL takes the type of the other."""
    left, right = _beside(scope, left, right.type, strict), _beside(scope, right, left.type, strict)
    for value in (left, right):
        if not is_number(value.type):
            raise meaningless(what, left.type, right.type)
    return left, right


def _beside(scope: Scope, value: Value, other: pa.DataType, strict: bool) -> Value:  # noqa: FBT001
    types = pa.types
    if types.is_null(value.type):
        return widened(value, other if is_number(other) else pa.float64())
    if types.is_string(value.type) and (is_number(other) or types.is_null(other)):
        kind = pa.int64() if types.is_integer(other) else pa.float64()
        return cast(scope, value, kind, strict=strict)
    return value


def own_type(term: Term, value: Value) -> pa.DataType:
    """The DECIMAL of an operand: an integer constant has as many digits as it is written with.

    Unless it is a TINYINT, which Spark has forgotten.
    """
    counts = pa.types.is_integer(value.type) and value.type != pa.int8()
    if isinstance(term, Constant) and counts and term.scalar.is_valid:
        return pa.decimal128(len(str(abs(term.scalar.as_py()))), 0)
    return as_decimal(value.type)


class Operation(NamedTuple):
    """What an operator does with decimals, floats and integers.

    Each gets both operands, and those of the integers say where they overflow. Divisors are nowhere
    zero.
    """

    on_decimals: Callable[[Units, Units], tuple[Data, pa.DataType]]
    on_floats: Callable[[Data, Data], Data]
    on_integers: Callable[[Data, Data], tuple[Data, Mask]]
    divides: bool = False


def _added(left: Data, right: Data) -> tuple[Data, Mask]:
    found = left + right
    return found, ((left ^ found) & (right ^ found)) < 0


def _subtracted(left: Data, right: Data) -> tuple[Data, Mask]:
    found = left - right
    return found, ((left ^ right) & (left ^ found)) < 0


def _multiplied(left: Data, right: Data) -> tuple[Data, Mask]:
    found = left * right
    if left.dtype != np.int64:
        wide = left.astype(np.int64) * right
        return found, wide != found
    if _are_short(left) and _are_short(right):
        return found, np.zeros(1, np.bool_)
    least = np.iinfo(np.int64).min
    safe = np.where((left == 0) | (left == -1), 1, left)
    wrong = (safe == left) & (found // safe != right) | (left == -1) & (right == least)
    return found, wrong


def _are_short(numbers: Data) -> bool:
    """Whether the product of two of them fits into a BIGINT, whatever they are."""
    return len(numbers) == 0 or bool(numbers.min() > -_SHORT and numbers.max() < _SHORT)


def _rest(left: Data, right: Data) -> tuple[Data, Mask]:
    # The lowest number by -1 traps on some machines; what is left is 0, as by 1.
    return np.fmod(left, np.where(right == -1, 1, right)), np.zeros(1, np.bool_)


def _positive_rest(left: Data, right: Data) -> tuple[Data, Mask]:
    # Spark computes bytes and shorts as INT, and lets INT and BIGINT wrap around.
    kind = left.dtype
    wide = np.promote_types(kind, np.int32)
    left, right = left.astype(wide), right.astype(wide)
    rest = _rest(left, right)[0]
    found = np.where(rest < 0, _rest(rest + right, right)[0], rest)
    return found.astype(kind), np.zeros(1, np.bool_)


def _positive_float_rest(left: Data, right: Data) -> Data:
    rest = np.fmod(left, right)
    return np.where(rest < 0, np.fmod(rest + right, right), rest)


def _no_integers(_left: Data, _right: Data) -> tuple[Data, Mask]:
    raise AssertionError  # they are cast to DOUBLE before


_OPERATIONS = {
    "+": Operation(partial(decimals.sum_of, sign=1), np.add, _added),
    "-": Operation(partial(decimals.sum_of, sign=-1), np.subtract, _subtracted),
    "*": Operation(decimals.product, np.multiply, _multiplied),
    "/": Operation(decimals.ratio, np.divide, _no_integers, divides=True),
    "%": Operation(decimals.remainder, np.fmod, _rest, divides=True),
    "pmod": Operation(
        decimals.positive_remainder, _positive_float_rest, _positive_rest, divides=True
    ),
}


def computed(
    scope: Scope, call: Call, name: str, left: Value, right: Value, *, strict: bool = True
) -> Value:
    """An operation on two numbers; rows without a result are NULL, and fail if it is strict."""
    operation = _OPERATIONS[name]
    left, right = pair(scope, name, left, right, strict=strict)
    kind = common_type(left.type, right.type)
    assert kind is not None
    if name == "/" and not pa.types.is_decimal(kind):
        kind = pa.float64()
    if pa.types.is_decimal(kind):
        one, other = (
            units_of(value, own_type(term, value))
            for term, value in zip(call.arguments, (left, right), strict=True)
        )
        valid, divisor = _divisible(scope, one, other, operation, strict=strict)
        data, kind = operation.on_decimals(one, other._replace(data=divisor))
        array, over = decimal_array(data, valid, kind)
        if strict:
            scope.fail(over, OVERFLOW)
        return as_given(array, left, right)
    first, second = (column(widened(value, kind)) for value in (left, right))
    valid, divisor = _divisible(scope, first, second, operation, strict=strict)
    with np.errstate(all="ignore"):
        if pa.types.is_floating(kind):
            data = operation.on_floats(first.data, divisor)
        else:
            data, over = operation.on_integers(first.data, divisor)
            if over.any():
                over = over & valid
                valid = valid & ~over
                if strict:
                    scope.fail(over, OVERFLOW)
    return given(data, valid, kind, left, right)


def _divisible(
    scope: Scope,
    left: NumPyColumn | Units,
    right: NumPyColumn | Units,
    operation: Operation,
    *,
    strict: bool,
) -> tuple[Mask, Data]:
    """Where there is a result, and the right operand; as a divisor, without zeros."""
    valid = left.valid & right.valid
    if not operation.divides:
        return valid, right.data
    zero = np.asarray(right.data == 0, dtype=np.bool_)
    if not zero.any():
        return valid, right.data
    if strict:
        scope.fail(valid & zero, _BY_ZERO)
    return valid & ~zero, np.where(zero, right.data.dtype.type(1), right.data)


def _arithmetic(
    name: str, scope: Scope, call: Call, left: Value, right: Value, *, strict: bool = True
) -> Value:
    if name in "+-*/" and (pa.types.is_temporal(left.type) or pa.types.is_temporal(right.type)):
        from bittern.terms.times.intervals import scaled  # noqa: PLC0415
        from bittern.terms.times.times import shifted  # noqa: PLC0415

        own = scope if strict else Scope({}, scope.n_rows)
        return (shifted if name in "+-" else scaled)(own, Call(name, ()), left, right)
    return computed(scope, call, name, left, right, strict=strict)


TABLE.add("+", least=2)(partial(_arithmetic, "+"))
TABLE.add("-", least=2)(partial(_arithmetic, "-"))
TABLE.add("*", least=2)(partial(_arithmetic, "*"))
TABLE.add("/", least=2)(partial(_arithmetic, "/"))
TABLE.add("%", "mod", least=2)(partial(_arithmetic, "%"))
TABLE.add("pmod", least=2)(partial(_arithmetic, "pmod"))
TABLE.add("try_add", least=2)(partial(_arithmetic, "+", strict=False))
TABLE.add("try_subtract", least=2)(partial(_arithmetic, "-", strict=False))
TABLE.add("try_multiply", least=2)(partial(_arithmetic, "*", strict=False))
TABLE.add("try_divide", least=2)(partial(_arithmetic, "/", strict=False))
TABLE.add("try_mod", least=2)(partial(_arithmetic, "%", strict=False))


@TABLE.add("div", least=2)
def _div(scope: Scope, _call: Call, left: Value, right: Value) -> Value:
    kinds = left.type, right.type
    left, right = pair(scope, "div", left, right)
    if all(map(pa.types.is_null, kinds)):
        left, right = widened(left, pa.int64()), widened(right, pa.int64())
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        raise meaningless("div", *kinds)
    one, other = units_of(left), units_of(right)
    valid = one.valid & other.valid
    zero = np.asarray(other.data == 0, dtype=np.bool_)
    scope.fail(valid & zero, _BY_ZERO)
    valid = valid & ~zero
    divisor = np.where(zero, other.data.dtype.type(1), other.data)
    found, over = decimals.whole_ratio(one, other._replace(data=divisor))
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        over = (one.data == np.iinfo(np.int64).min) & (other.data == -1)
    over = valid & over
    scope.fail(over, OVERFLOW)
    return given(found, valid & ~over, pa.int64(), left, right)


@TABLE.add("negative", least=1)
def _negative(scope: Scope, _call: Call, value: Value) -> Value:
    if pa.types.is_temporal(value.type):
        from bittern.terms.times.intervals import negated  # noqa: PLC0415

        return negated(scope, value)
    return _turned(scope, value, "-", lambda data: np.ones(data.shape, np.bool_))


@TABLE.add("abs", least=1)
def _abs(scope: Scope, _call: Call, value: Value) -> Value:
    return _turned(
        scope, value, "abs", lambda data: np.signbit(data) if data.dtype.kind == "f" else data < 0
    )


@TABLE.add("positive", least=1)
def _positive(scope: Scope, _call: Call, value: Value) -> Value:
    is_interval = pa.types.is_duration(value.type) or pa.types.is_interval(value.type)
    return value if is_interval else plain(scope, value, what="+")


def _turned(scope: Scope, value: Value, what: str, which: Callable[[Data], Mask]) -> Value:
    """The numbers, some with the other sign; the lowest integer has none, and fails."""
    if not pa.types.is_duration(value.type):
        value = plain(scope, value, what=what)
    if pa.types.is_decimal(value.type):
        units = units_of(value)
        data = np.where(which(units.data), decimals.negated(units.data), units.data)
        array, over = decimal_array(data, units.valid, value.type)
        scope.fail(over, OVERFLOW)
        return as_given(array, value)
    own = column(value)
    data, valid = np.where(which(own.data), -own.data, own.data), own.valid
    if not pa.types.is_floating(value.type):
        over = valid & (own.data == np.iinfo(own.data.dtype).min)
        scope.fail(over, OVERFLOW)
        valid = valid & ~over
    return given(data, valid, value.type, value)


@TABLE.add("sign", "signum", least=1)
def _sign(scope: Scope, _call: Call, value: Value) -> Value:
    own = column(cast(scope, plain(scope, value, what="sign"), pa.float64()))
    # NumPy's sign of -0.0 is 0.0; Spark's is -0.0, and equal to it.
    signs = np.where(own.data == 0, own.data, np.sign(own.data))
    return given(signs, own.valid, pa.float64(), value)
