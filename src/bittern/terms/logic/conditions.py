"""Conditions and what chooses by them: AND, OR, NOT, CASE, if, coalesce and their kin.

``case`` has the arguments condition, result, condition, result, ... and the result of ELSE last.
Results are evaluated only for the rows that take them. All O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.columns import as_array
from bittern.terms.logic.comparisons import as_wider, order
from bittern.terms.nodes import Call, Constant, Term
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.types import widest_type

TABLE = FunctionTable()
_NULL = Constant(pa.scalar(None, pa.null()))


def truth(value: Value) -> Value:
    """A value as a condition."""
    if pa.types.is_null(value.type):
        return pc.cast(value, pa.bool_())
    if not pa.types.is_boolean(value.type):
        raise MeaninglessError(f"a condition is a Boolean, not {value.type}")
    return value


def _decided(_scope: Scope, call: Call, values: Sequence[Value]) -> Value:
    """Where AND has a FALSE already, or OR a TRUE."""
    conditions = map(truth, values)
    if call.function == "and":
        conditions = map(pc.invert, conditions)
    return reduce(pc.or_, (pc.fill_null(each, False) for each in conditions))


@TABLE.add("and", "or", least=2, most=-1, settles=_decided)
def _junction(_scope: Scope, call: Call, *values: Value) -> Value:
    joined = pc.and_kleene if call.function == "and" else pc.or_kleene
    return reduce(joined, map(truth, values))


@TABLE.add("not", least=1)
def _not(_scope: Scope, _call: Call, value: Value) -> Value:
    return pc.invert(truth(value))


@TABLE.add("is true", least=1)
def _is_true(_scope: Scope, _call: Call, value: Value) -> Value:
    return pc.fill_null(truth(value), False)


@TABLE.add("is false", least=1)
def _is_false(_scope: Scope, _call: Call, value: Value) -> Value:
    return pc.fill_null(pc.invert(truth(value)), False)


def chosen(scope: Scope, pieces: list[tuple[Mask, Term]]) -> Value:
    """For each row the value of the term whose mask has it; masks do not overlap."""
    taken = [(mask, *_result(scope, mask, term)) for mask, term in pieces if mask.any()]
    # Terms that no row takes have a type too, and it counts; evaluated on no row, it costs nothing.
    nobody = np.zeros(scope.n_rows, dtype=np.bool_)
    others = [_result(scope, nobody, term)[1].type for mask, term in pieces if not mask.any()]
    kind = widest_type([value.type for *_, value in taken] + others)
    if kind is None:
        raise MeaninglessError("the results have types that do not go together")
    if not taken:
        return pa.nulls(scope.n_rows, kind)
    if len(taken) == 1 and taken[0][0].all():
        return as_wider(scope, taken[0][2], kind)
    arrays, places, start = [], np.full(scope.n_rows, -1), 0
    for mask, own, value in taken:
        # A text that is cast may fail, and then only for the rows that take it.
        is_cast = pa.types.is_string(value.type) and value.type != kind
        failing = scope.among(mask) if is_cast and own is scope else own
        arrays.append(as_array(as_wider(failing, value, kind)))
        rows: Any = 0
        if isinstance(value, pa.Array):
            rows = np.arange(scope.n_rows) if own is scope else np.cumsum(mask) - 1
        places = np.where(mask, start + rows, places)
        start += len(arrays[-1])
    missing = places < 0
    return pa.concat_arrays(arrays).take(pa.array(places, mask=missing if missing.any() else None))


def _result(scope: Scope, mask: Mask, term: Term) -> tuple[Scope, Value]:
    """The value of a term for the rows of a mask, as a value of those alone or of all rows."""
    if not isinstance(term, Call):
        value = scope.value(term)
        if isinstance(value, pa.Scalar) or pa.types.is_primitive(value.type):
            return scope, value  # to pick some of its rows would cost more
    own = scope.among(mask)
    return own, own.value(term)


def _spread(waiting: Mask, own: Mask) -> Mask:
    """A mask of all rows, or of those that wait, as one of those that wait among all."""
    if len(own) == len(waiting):
        return own & waiting
    found = np.zeros(len(waiting), dtype=np.bool_)
    found[waiting] = own
    return found


@TABLE.add("case", least=3, most=-1, lazy=True)
def _case(scope: Scope, call: Call) -> Value:
    *branches, otherwise = call.arguments
    waiting = np.ones(scope.n_rows, dtype=np.bool_)
    pieces: list[tuple[Mask, Term]] = []
    for condition, result in zip(branches[::2], branches[1::2], strict=True):
        own = scope.among(waiting)
        holds = _spread(waiting, own.mask(truth(own.value(condition))))
        pieces.append((holds, result))
        waiting = waiting & ~holds
    pieces.append((waiting, otherwise))
    return chosen(scope, pieces)


@TABLE.add("if", least=3, lazy=True)
def _if(scope: Scope, call: Call) -> Value:
    return _case(scope, call)


@TABLE.add("nvl2", least=3, lazy=True)
def _nvl2(scope: Scope, call: Call) -> Value:
    value, there, missing = call.arguments
    return _case(scope, Call("case", (Call("isnotnull", (value,)), there, missing)))


@TABLE.add("coalesce", least=1, most=-1, lazy=True)
def _coalesce(scope: Scope, call: Call) -> Value:
    waiting = np.ones(scope.n_rows, dtype=np.bool_)
    pieces: list[tuple[Mask, Term]] = []
    for term in call.arguments:
        own = scope if isinstance(term, Constant) else scope.among(waiting)
        there = _spread(waiting, own.mask(pc.is_valid(own.value(term))))
        pieces.append((there, term))
        waiting = waiting & ~there
    return chosen(scope, [*pieces, (waiting, _NULL)])


@TABLE.add("nvl", "ifnull", least=2, lazy=True)
def _nvl(scope: Scope, call: Call) -> Value:
    return _coalesce(scope, call)


@TABLE.add("nullif", least=2)
def _nullif(scope: Scope, _call: Call, value: Value, other: Value) -> Value:
    equal = pc.fill_null(order(scope, value, other)[1], False)
    return pc.if_else(equal, pa.scalar(None, value.type), value)


@TABLE.add("nullifzero", least=1)
def _nullifzero(scope: Scope, call: Call, value: Value) -> Value:
    return _nullif(scope, call, value, pa.scalar(0, pa.int32()))


@TABLE.add("zeroifnull", least=1, lazy=True)
def _zeroifnull(scope: Scope, call: Call) -> Value:
    return _coalesce(scope, Call("coalesce", (*call.arguments, Constant(pa.scalar(0, pa.int32())))))
