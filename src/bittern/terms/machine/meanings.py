"""What the machine makes of calls. A call that it cannot do in Spark's meaning is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa

from bittern.terms.machine import kernel as to
from bittern.terms.machine.translator import (
    BIGINT,
    BOOLEAN,
    DATE,
    HELD,
    INT,
    MEANINGS,
    REAL,
    Translator,
    TypedRegister,
    UntranslatableError,
)
from bittern.terms.nodes import Call, Constant
from bittern.terms.types import INTEGERS, TIMESTAMP, TIMESTAMP_NTZ, common_type

_MOST_PLACES = 15


def _means(*names: str) -> Callable[[Callable[..., TypedRegister]], Callable[..., TypedRegister]]:
    def enter(meaning: Callable[..., TypedRegister]) -> Callable[..., TypedRegister]:
        for name in names:
            MEANINGS[name] = meaning
        return meaning

    return enter


_ARITHMETIC = {
    "+": (to.ADD, to.ADD_REAL),
    "-": (to.SUBTRACT, to.SUBTRACT_REAL),
    "*": (to.MULTIPLY, to.MULTIPLY_REAL),
    "/": (-1, to.DIVIDE_REAL),
    "%": (to.REST, to.REST_REAL),
}


def _arithmetic(name: str, state: int) -> Callable[[Translator, Call], TypedRegister]:
    on_integers, on_reals = _ARITHMETIC[name]

    def meaning(own: Translator, call: Call) -> TypedRegister:
        kind = common_type(*map(own.kind, call.arguments))
        if name == "/" and kind in INTEGERS:
            kind = REAL
        if kind == REAL:
            left, right = (own.real(term) for term in call.arguments)
            return TypedRegister(own.step(on_reals, left, right, state), REAL)
        if kind not in INTEGERS:
            raise UntranslatableError
        left, right = own.alike(call.arguments, kind)
        return own.narrow(own.step(on_integers, left, right, state), kind, state)

    return meaning


for _name, _tried in zip("+-*/%", ("add", "subtract", "multiply", "divide", "mod"), strict=True):
    MEANINGS[_name] = _arithmetic(_name, to.LEFT)
    MEANINGS[f"try_{_tried}"] = _arithmetic(_name, to.NULL)
MEANINGS["mod"] = MEANINGS["%"]


@_means("negative", "abs")
def _turned(own: Translator, call: Call) -> TypedRegister:
    register, kind = own.value(call.arguments[0])
    whole, real = {"abs": (to.SIZE, to.SIZE_REAL)}.get(call.function, (to.NEGATE, to.NEGATE_REAL))
    if kind == REAL:
        return TypedRegister(own.step(real, register), REAL)
    if kind not in INTEGERS:
        raise UntranslatableError
    return own.narrow(own.step(whole, register, extra=to.LEFT), kind, to.LEFT)


@_means("floor", "ceil", "ceiling")
def _edge(own: Translator, call: Call) -> TypedRegister:
    if len(call.arguments) != 1:
        raise UntranslatableError
    register, kind = own.value(call.arguments[0])
    if kind == REAL:
        edge = to.FLOOR if call.function == "floor" else to.CEIL
        return TypedRegister(own.step(edge, register, extra=to.LEFT), BIGINT)
    if kind not in INTEGERS:
        raise UntranslatableError
    return TypedRegister(register, BIGINT)


@_means("round")
def _round(own: Translator, call: Call) -> TypedRegister:
    places = 0
    if len(call.arguments) == 2:
        constant = call.arguments[1]
        if not (isinstance(constant, Constant) and constant.scalar.type == INT):
            raise UntranslatableError
        places = constant.scalar.as_py()
    register, kind = own.value(call.arguments[0])
    if kind != REAL or places is None or not 0 <= places <= _MOST_PLACES:
        raise UntranslatableError
    return TypedRegister(own.step(to.ROUND, register, extra=places), REAL)


@_means("cast", "try_cast")
def _cast(own: Translator, call: Call) -> TypedRegister:
    state = to.LEFT if call.function == "cast" else to.NULL
    register, kind = own.value(call.arguments[0])
    if kind == call.to:
        return TypedRegister(register, kind)
    if call.to == REAL and kind in INTEGERS:
        return TypedRegister(own.real(call.arguments[0]), REAL)
    if call.to in INTEGERS and kind in (*INTEGERS, BOOLEAN):
        return own.narrow(register, call.to, state)
    if call.to in INTEGERS and kind == REAL:
        extra = 4 * call.to.bit_width + state
        return TypedRegister(own.step(to.CUT, register, extra=extra), call.to)
    raise UntranslatableError


#: Which of below (1), equal (2) and above (4) make a comparison true.
_TRUE_FOR = {"=": 2, "!=": 5, "<": 1, "<=": 3, ">": 4, ">=": 6}


@_means(*_TRUE_FOR)
def _comparison(own: Translator, call: Call) -> TypedRegister:
    order = own.order(*call.arguments)
    return TypedRegister(own.step(to.TEST, order, extra=_TRUE_FOR[call.function]), BOOLEAN)


@_means("compare")
def _compare(own: Translator, call: Call) -> TypedRegister:
    return TypedRegister(own.order(*call.arguments), pa.int8())


@_means("between")
def _between(own: Translator, call: Call) -> TypedRegister:
    value, low, high = call.arguments
    above = own.step(to.TEST, own.order(value, low), extra=_TRUE_FOR[">="])
    below = own.step(to.TEST, own.order(value, high), extra=_TRUE_FOR["<="])
    return TypedRegister(own.step(to.AND, above, below), BOOLEAN)


@_means("and", "or")
def _junction(own: Translator, call: Call) -> TypedRegister:
    operation = to.AND if call.function == "and" else to.OR
    parts = [own.truth(term) for term in call.arguments]
    return TypedRegister(reduce(lambda one, other: own.step(operation, one, other), parts), BOOLEAN)


@_means("not")
def _not(own: Translator, call: Call) -> TypedRegister:
    return TypedRegister(own.step(to.NOT, own.truth(call.arguments[0])), BOOLEAN)


@_means("is true", "is false")
def _is(own: Translator, call: Call) -> TypedRegister:
    operation = to.IS_TRUE if call.function == "is true" else to.IS_FALSE
    return TypedRegister(own.step(operation, own.truth(call.arguments[0])), BOOLEAN)


@_means("is null", "isnull", "isnotnull")
def _presence(own: Translator, call: Call) -> TypedRegister:
    operation = to.IS_THERE if call.function == "isnotnull" else to.IS_NULL
    return TypedRegister(own.step(operation, own.value(call.arguments[0]).register), BOOLEAN)


@_means("case", "if")
def _case(own: Translator, call: Call) -> TypedRegister:
    *branches, otherwise = call.arguments
    conditions = [own.truth(term) for term in branches[::2]]
    return own.chosen(list(zip(conditions, branches[1::2], strict=True)), otherwise)


@_means("coalesce", "nvl", "ifnull")
def _coalesce(own: Translator, call: Call) -> TypedRegister:
    return own.first(call.arguments)


@_means("greatest", "least")
def _extreme(own: Translator, call: Call) -> TypedRegister:
    kind = reduce(_common, map(own.kind, call.arguments))
    whole, real = {"greatest": (to.GREATEST, to.GREATEST_REAL)}.get(
        call.function, (to.LEAST, to.LEAST_REAL)
    )
    if kind not in HELD:
        raise UntranslatableError
    values = own.alike(call.arguments, kind)
    operation = real if kind == REAL else whole
    return TypedRegister(reduce(lambda best, each: own.step(operation, best, each), values), kind)


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    kind = common_type(left, right)
    if kind is None:
        raise UntranslatableError
    return kind


_FIELDS = {
    "year": to.YEAR,
    "month": to.MONTH,
    "day": to.DAY,
    "dayofmonth": to.DAY,
    "hour": to.HOUR,
    "minute": to.MINUTE,
    "second": to.SECOND,
}


@_means(*_FIELDS)
def _field(own: Translator, call: Call) -> TypedRegister:
    register, kind = own.value(call.arguments[0])
    operation = _FIELDS[call.function]
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        if operation <= to.DAY:
            register = own.step(to.DAYS, register)
    elif kind != DATE or operation > to.DAY:
        raise UntranslatableError
    return TypedRegister(own.step(operation, register), INT)
