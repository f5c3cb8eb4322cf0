"""Conditions and what chooses by them: AND, OR, NOT, CASE, if, coalesce and their kin.

``case`` has the arguments condition, result, condition, result, ... and the result of ELSE last.
Results are evaluated only for the rows that take them. All O(rows).
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.comparisons import as_wider, order
from bittern.terms.nodes import Call, Constant, Term
from bittern.terms.scope import Mask, MeaninglessError, Scope, Table, Value
from bittern.terms.types import widest_type

TABLE = Table()
_NULL = Constant(pa.scalar(None, pa.null()))


def truth(value: Value) -> Value:
    """A value as a condition."""
    if pa.types.is_null(value.type):
        return pc.cast(value, pa.bool_())
    if not pa.types.is_boolean(value.type):
        raise MeaninglessError(f"a condition is a Boolean, not {value.type}")
    return value


@TABLE.add("and", "or", least=2, most=-1)
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
    values = [(mask, scope.among(mask).value(term)) for mask, term in pieces if mask.any()]
    # Terms that no row takes have a type too, and it counts; evaluated on no row, it costs nothing.
    nobody = scope.among(np.zeros(scope.n_rows, dtype=np.bool_))
    kinds = [value.type for _, value in values] + [nobody.value(term).type for _, term in pieces]
    kind = widest_type(kinds)
    if kind is None:
        raise MeaninglessError("the results have types that do not go together")
    if len(values) == 1 and values[0][0].all():
        return as_wider(scope, values[0][1], kind)
    arrays, places = [], np.full(scope.n_rows, -1, dtype=np.int64)
    start = 0
    for mask, value in values:
        count = int(mask.sum())
        own = _result(scope, mask, value, kind)
        arrays.append(own if isinstance(own, pa.Array) else Scope({}, count).array(own))
        places[mask] = np.arange(start, start + count)
        start += count
    if not arrays:
        return pa.nulls(scope.n_rows, kind)
    together = pa.concat_arrays(arrays)
    return together.take(pa.array(places, mask=places < 0))


def _result(scope: Scope, mask: Mask, value: Value, kind: pa.DataType) -> Value:
    """The value of some rows in the type of all."""
    # A cast may fail for some of them, and only then does it matter which they are.
    is_cast = pa.types.is_string(value.type) and value.type != kind
    return as_wider(scope.among(mask) if is_cast else scope, value, kind)


@TABLE.add("case", least=3, most=-1, lazy=True)
def _case(scope: Scope, call: Call) -> Value:
    *branches, otherwise = call.arguments
    waiting = np.ones(scope.n_rows, dtype=np.bool_)
    pieces: list[tuple[Mask, Term]] = []
    for condition, result in zip(branches[::2], branches[1::2], strict=True):
        holds = np.zeros(scope.n_rows, dtype=np.bool_)
        own = scope.among(waiting)
        holds[waiting] = own.mask(truth(own.value(condition)))
        pieces.append((holds, result))
        waiting = waiting & ~holds
    pieces.append((waiting, otherwise))
    return chosen(scope, pieces)


@TABLE.add("if", "iff", least=3, lazy=True)
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
        there = np.zeros(scope.n_rows, dtype=np.bool_)
        own = scope.among(waiting)
        there[waiting] = own.mask(pc.is_valid(own.array(own.value(term))))
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
