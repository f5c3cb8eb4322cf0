"""One element of an array, one value of a map, one field of a struct.

::

    a = [x, y]        a[0]  x      element_at(a, -1)  y      a[5]  fails      get(a, 5)  NULL
    m = {k: 1}        m['k']  1    m['other']  NULL          map_contains_key(m, 'k')  TRUE
    s = [{f: 1}]      s[0].f  1    s.f  [1]

O(rows), of maps O(entries).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.nested.arrays import integers, picked
from bittern.terms.nested.nested import field_of, list_parts, map_parts
from bittern.terms.nested.sets import contains, found_in
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value

TABLE = FunctionTable()


@TABLE.add("[]", least=2)
def _element(scope: Scope, _call: Call, value: Value, at: Value) -> Value:
    if pa.types.is_map(value.type):
        return _entry(scope, value, at)
    if pa.types.is_struct(value.type) or pa.types.is_string(at.type):
        return _field(scope, _call, value, at)
    if at.type == pa.int64():
        # Spark takes the low 32 bits of a BIGINT.
        places = np.asarray(scope.array(at).fill_null(0).to_numpy(zero_copy_only=False))
        at = pa.array(places.astype(np.int32), mask=scope.mask(pc.is_null(at)))
    return _indexed(scope, value, at, "an array", strict=True)


def _indexed(scope: Scope, value: Value, at: Value, name: str, *, strict: bool) -> Value:
    """The element at a place counted from 0."""
    lists = list_parts(scope, value, name)
    place, has_place = integers(scope, at, name)
    there = lists.valid & has_place
    inside = there & (place >= 0) & (place < lists.lengths)
    if strict:
        scope.fail(there & ~inside, "the array has no element there")
    return picked(lists.values, np.where(inside, lists.offsets[:-1] + place, 0), inside)


@TABLE.add("get", least=2)
def _get(scope: Scope, _call: Call, value: Value, at: Value) -> Value:
    return _indexed(scope, value, at, "get", strict=False)


def _element_at(strict: bool, scope: Scope, call: Call, value: Value, at: Value) -> Value:  # noqa: FBT001
    """Counted from 1, or backwards from -1; of a map, the value of a key."""
    if pa.types.is_map(value.type):
        return _entry(scope, value, at)
    lists = list_parts(scope, value, call.function)
    place, has_place = integers(scope, at, call.function)
    there = lists.valid & has_place
    scope.fail(there & (place == 0), f"{call.function} counts from 1, or backwards from -1")
    there &= place != 0
    # Not negated: the least integer has no opposite.
    inside = there & np.where(place > 0, place <= lists.lengths, place >= -lists.lengths)
    if strict:
        scope.fail(there & ~inside, "the array has no element there")
    begin = np.where(place > 0, lists.offsets[:-1] - 1, lists.offsets[1:])
    return picked(lists.values, np.where(inside, begin + place, 0), inside)


TABLE.add("element_at", least=2)(partial(_element_at, True))
TABLE.add("try_element_at", least=2)(partial(_element_at, False))


def _entry(scope: Scope, value: Value, key: Value) -> Value:
    """What maps have under a key; of a key that comes twice the last counts."""
    keys, items = map_parts(scope, value, "a key")
    same, _ = found_in(keys, key)
    places = np.full(scope.n_rows, -1, dtype=np.int64)
    found = np.flatnonzero(same)
    places[keys.parents[found]] = found
    return picked(items.values, places, places >= 0)


@TABLE.add(".", least=2)
def _field(scope: Scope, _call: Call, value: Value, name: Value) -> Value:
    if not (isinstance(name, pa.Scalar) and pa.types.is_string(name.type) and name.is_valid):
        raise MeaninglessError("a field has a name, which is a constant string")
    return field_of(scope.array(value), name.as_py())


@TABLE.add("map_contains_key", least=2)
def _map_contains_key(scope: Scope, _call: Call, value: Value, key: Value) -> Value:
    return contains(map_parts(scope, value, "map_contains_key")[0], key)


@TABLE.add("map_keys", least=1)
def _map_keys(scope: Scope, _call: Call, value: Value) -> Value:
    return map_parts(scope, value, "map_keys")[0].array()


@TABLE.add("map_values", least=1)
def _map_values(scope: Scope, _call: Call, value: Value) -> Value:
    return map_parts(scope, value, "map_values")[1].array()
