"""Casts between types, with Spark's meaning.

``cast`` is ``CAST``: in ANSI mode a value that does not fit fails the row, with ``strict=False``
(``TRY_CAST``) it is just NULL. ``widened`` leads to a type that holds every value. These can be::

    to          number  STRING  BOOLEAN  DATE  TIMESTAMP  _NTZ  BINARY       in the modules
    number         x       x       x              x                          numbers, to_text
    STRING         x       x       x      x       x         x     x          from_text, …_times
    BOOLEAN        x       x       x                                         numbers, to_text
    DATE                   x              x       x         x                here, to_text
    TIMESTAMP      x       x              x       x         x                numbers, to_text
    _NTZ                   x              x       x         x                here, to_text
    BINARY                 x                                      x          here

and lists, maps and structs of these to others of their kind.
All O(rows), and O(bytes) of strings.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.casts import from_text, from_text_times, numbers
from bittern.terms.casts.to_text import to_text
from bittern.terms.columns import arrow, as_array, as_given, column, per_distinct
from bittern.terms.nested.nested import parts_of
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.types import is_number, type_name, type_of

TABLE = FunctionTable()
_DAY = 86_400_000_000
_MOST_DAYS = (2**63 - 1) // _DAY


def widened(value: Value, kind: pa.DataType) -> Value:
    """The value in a type that ``common_type`` found."""
    if value.type == kind:
        return value
    if pa.types.is_null(value.type):
        return as_given(pa.nulls(len(as_array(value)), kind), value)
    found = _converted(as_array(value), kind)
    return pc.cast(value, kind, safe=False) if found is None else as_given(found[0], value)


def cast(scope: Scope, value: Value, kind: pa.DataType, *, strict: bool = True) -> Value:
    """The value as another type; rows that cannot be cast are NULL, and fail if it is strict."""
    if value.type == kind or pa.types.is_null(value.type):
        return widened(value, kind)
    found = _converted(as_array(value), kind)
    if found is None:
        raise MeaninglessError(f"{type_name(value.type)} cannot be cast to {type_name(kind)}")
    array, wrong = found
    if strict and wrong.any():
        scope.fail(wrong, f"a {type_name(value.type)} that is no {type_name(kind)}")
        if pa.types.is_nested(kind):
            array = array.take(pa.array(np.arange(len(array)), mask=wrong))
    return as_given(array, value)


def _converted(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask] | None:
    """The array in another type, and a mask of what has no value there; None if nothing has."""
    types, own = pa.types, array.type
    if own == kind:
        return array, _nowhere(array)
    if types.is_null(own):
        return pa.nulls(len(array), kind), _nowhere(array)
    if types.is_nested(own):
        return _nested(array, kind)
    if types.is_string(own):
        return _from_text(array, kind)
    if types.is_string(kind):
        return _to_text(array)
    if types.is_date(own) or types.is_timestamp(own):
        if types.is_date(kind) or types.is_timestamp(kind):
            return _between_times(array, kind)
        if not (is_number(kind) and types.is_timestamp(own) and own.tz is not None):
            return None
    elif not (is_number(own) or types.is_boolean(own)):
        return None
    if types.is_integer(kind):
        return numbers.to_integer(array, kind)
    if types.is_floating(kind):
        return numbers.to_float(array, kind)
    if types.is_decimal(kind):
        return numbers.to_decimal(array, kind)
    if not is_number(own):
        return None
    if types.is_boolean(kind):
        return numbers.to_boolean(array)
    if types.is_timestamp(kind) and kind.tz is not None:
        return numbers.to_timestamp(array, kind)
    return None


def _nested(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask] | None:
    """Lists and maps element by element, structs field by field; a row is wrong if one of it is."""
    types, own = pa.types, array.type
    if types.is_list(own) and types.is_list(kind):
        lists = parts_of(array)
        found = _converted(lists.values, kind.value_type)
        return None if found is None else (lists.array(found[0]), lists.any(found[1]))
    if types.is_map(own) and types.is_map(kind):
        entries = parts_of(array)
        to = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        found = _nested(entries.values, to)
        if found is None:
            return None
        offsets = pa.array(entries.offsets, pa.int32(), mask=np.append(~entries.valid, False))
        return pa.MapArray.from_arrays(offsets, *found[0].flatten()), entries.any(found[1])
    if types.is_struct(own) and types.is_struct(kind) and len(own) == len(kind):
        wrong, fields = _nowhere(array), []
        for field, to in zip(array.flatten(), kind, strict=True):
            found = _converted(field, to.type)
            if found is None:
                return None
            fields.append(found[0])
            wrong |= found[1]
        mask = pc.is_null(array) if array.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask), wrong
    return None


def _from_text(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask] | None:
    types = pa.types
    if types.is_integer(kind):
        return from_text.integers(array, kind)
    if types.is_floating(kind):
        return from_text.floats(array, kind)
    if types.is_decimal(kind):
        return from_text.decimals(array, kind)
    if types.is_boolean(kind):
        return from_text.booleans(array)
    if types.is_date(kind):
        return from_text_times.dates(array)
    if types.is_timestamp(kind):
        return from_text_times.timestamps(array, kind)
    return (array.cast(kind), _nowhere(array)) if types.is_binary(kind) else None


def _to_text(array: pa.Array) -> tuple[pa.Array, Mask] | None:
    types, own = pa.types, array.type
    if types.is_binary(own):
        try:
            return array.cast(pa.string()), _nowhere(array)
        except pa.ArrowInvalid:  # some bytes are no UTF-8: Spark keeps them, Arrow cannot
            text = per_distinct(array, _decoded, pa.string())
            return text, column(text.is_null()).data & column(array.is_valid()).data
    known = is_number(own) or types.is_boolean(own) or types.is_date(own) or types.is_timestamp(own)
    return (to_text(array), _nowhere(array)) if known else None


def _decoded(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _between_times(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """Dates are midnight; local time is UTC."""
    own = column(array)
    if pa.types.is_timestamp(array.type):
        if pa.types.is_timestamp(kind):
            return array.view(kind), _nowhere(array)
        return arrow((own.data // _DAY).astype(np.int32), own.valid, kind), _nowhere(array)
    days = own.data.astype(np.int64)
    wrong = own.valid & (np.abs(days) > _MOST_DAYS)
    return arrow(np.where(wrong, 0, days) * _DAY, own.valid & ~wrong, kind), wrong


def _nowhere(array: pa.Array) -> Mask:
    return np.zeros(len(array), np.bool_)


@TABLE.add("cast", least=1)
def _cast(scope: Scope, call: Call, value: Value) -> Value:
    assert call.to is not None
    return cast(scope, value, call.to)


@TABLE.add("try_cast", least=1)
def _try_cast(scope: Scope, call: Call, value: Value) -> Value:
    assert call.to is not None
    return cast(scope, value, call.to, strict=False)


def _cast_to(kind: pa.DataType, scope: Scope, _call: Call, value: Value) -> Value:
    return cast(scope, value, kind)


_NAMES = "tinyint smallint int bigint float double decimal string binary boolean date timestamp"
for _name in _NAMES.split(" "):
    TABLE.add(_name, least=1)(partial(_cast_to, type_of(_name)))
