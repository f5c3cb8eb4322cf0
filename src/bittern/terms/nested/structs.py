"""Structs and maps that a term builds, and rows that it compares.

::

    (a, b) IN ((1, 'x'), (2, 'y'))     a row is a struct
    named_struct('a', 1, 'b', 'x').b   x
    map('k', 1, 'l', 2)['k']           1

O(rows x arguments).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bittern.terms.logic.comparisons import as_wider
from bittern.terms.nested.nested import path_parts
from bittern.terms.nested.ranks import ranks
from bittern.terms.nodes import Attribute, Call, Term
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.types import widest_type

TABLE = FunctionTable()


@TABLE.add("struct", least=1, most=-1)
def _struct(scope: Scope, call: Call, *values: Value) -> Value:
    """A field has the name of the attribute that it is, else that of its place."""
    names = [_name(term, place) for place, term in enumerate(call.arguments, 1)]
    return _built(scope, names, values)


def _name(term: Term, place: int) -> str:
    return path_parts(term.name)[-1] if isinstance(term, Attribute) else f"col{place}"


@TABLE.add("named_struct", least=2, most=-1)
def _named_struct(scope: Scope, _call: Call, *values: Value) -> Value:
    if len(values) % 2:
        raise MeaninglessError("named_struct takes names and values in turn")
    names = []
    for name in values[::2]:
        if not (isinstance(name, pa.Scalar) and pa.types.is_string(name.type) and name.is_valid):
            raise MeaninglessError("the names in named_struct are constant strings")
        names.append(name.as_py())
    return _built(scope, names, values[1::2])


def _built(scope: Scope, names: list[str], values: tuple[Value, ...]) -> Value:
    is_constant = all(isinstance(value, pa.Scalar) for value in values)
    own = Scope({}, 1) if is_constant else scope
    found = pa.StructArray.from_arrays([own.array(value) for value in values], names)
    return found[0] if is_constant else found


@TABLE.add("map", least=0, most=-1)
def _map(scope: Scope, _call: Call, *values: Value) -> Value:
    """A NULL key and a key that comes twice fail, as in Spark."""
    if len(values) % 2:
        raise MeaninglessError("map takes keys and values in turn")
    is_constant = all(isinstance(value, pa.Scalar) for value in values)
    own = Scope({}, 1) if is_constant else scope
    keys, items = (_turned(own, values[start::2]) for start in (0, 1))
    n_entries, n_rows = len(values) // 2, own.n_rows
    numbers = np.sort(ranks(keys).reshape(n_rows, n_entries), axis=1)
    failures = {
        "a key of a map is NULL": (numbers < 0).any(axis=1),
        "a key comes twice in a map": (np.diff(numbers, axis=1) == 0).any(axis=1),
    }
    failed = np.zeros(n_rows, dtype=np.bool_)
    for reason, rows in failures.items():
        scope.fail(bool(rows[0]) if is_constant else rows, reason)
        failed |= rows
    counts = np.where(failed, 0, n_entries)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    kept = pa.array(np.repeat(~failed, n_entries))
    starts = pa.array(offsets, mask=np.append(failed, False))
    found = pa.MapArray.from_arrays(starts, keys.filter(kept), items.filter(kept))
    return found[0] if is_constant else found


def _turned(scope: Scope, values: tuple[Value, ...]) -> pa.Array:
    """All values in one type, those of the first row first."""
    kind = widest_type(value.type for value in values)
    if kind is None:
        raise MeaninglessError("the keys or the values of a map do not go together")
    if not values:
        return pa.nulls(0)
    together = pa.concat_arrays([scope.array(as_wider(scope, value, kind)) for value in values])
    places = np.arange(len(together)).reshape(len(values), scope.n_rows).T.ravel()
    return together.take(pa.array(places))
