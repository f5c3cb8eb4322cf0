"""Parts of strings, and where they are: substr, left, split_part, instr, startswith, overlay.

Positions count characters (bytes of BINARY) from 1, negative ones from the end::

    substr('Bittern', 2, 3)            'itt'
    substr('Bittern', -3)              'ern'
    substring_index('a.b.c', '.', 2)   'a.b'
    split_part('a.b.c', '.', -1)       'c'
    locate('t', 'Bittern', 4)          4
    overlay('Bittern', 'X', 2, 4)      'BXrn'

O(bytes of the arguments) in whole columns. What is searched for is mostly a constant; where it is a
column, Python is called once for each distinct pair.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.strings.strings import joined
from bittern.terms.strings.texts import (
    Characters,
    Integers,
    all_there,
    constants_once,
    each,
    integers,
    number,
    sizes,
    text,
    text_or_bytes,
    texts,
    where,
)

TABLE = FunctionTable()
#: What Spark takes for a length that is not given; behind a position far in front of the string it
#: is not enough to reach the end.
_ALL = 2**31 - 1


def _part(characters: Characters, position: Integers, length: Integers) -> pa.Array:
    """Spark's ``substring``: a part that begins in front of the value is cut off there."""
    counted = np.where(position < 0, characters.counts + position, 0)
    start = np.where(position > 0, position - 1, counted)
    return characters.cut(start, start + length)


@TABLE.add("substr", "substring", least=2, most=3)
@constants_once
def _substr(
    scope: Scope, _call: Call, value: Value, position: Value, length: Value | None = None
) -> Value:
    value, position = text_or_bytes(scope, value), number(scope, position)
    length = pa.scalar(_ALL, pa.int32()) if length is None else number(scope, length)
    found = _part(
        Characters(scope.array(value)), integers(scope, position), integers(scope, length)
    )
    return where(all_there(scope, position, length), found)


@TABLE.add("left", least=2)
@constants_once
def _left(scope: Scope, call: Call, value: Value, length: Value) -> Value:
    return _substr(scope, call, value, pa.scalar(1, pa.int32()), length)


@TABLE.add("right", least=2)
@constants_once
def _right(scope: Scope, _call: Call, value: Value, length: Value) -> Value:
    length = number(scope, length)
    characters = Characters(scope.array(text(scope, value)))
    count = np.maximum(integers(scope, length), 0)
    found = characters.cut(characters.counts - count, characters.counts)
    return where(all_there(scope, length), found)


@TABLE.add("overlay", least=3, most=4)
@constants_once
def _overlay(
    scope: Scope,
    _call: Call,
    value: Value,
    new: Value,
    position: Value,
    length: Value | None = None,
) -> Value:
    value, new = text_or_bytes(scope, value), text_or_bytes(scope, new)
    if value.type != new.type:
        raise MeaninglessError("overlay takes two strings or two BINARY")
    position = number(scope, position)
    length = pa.scalar(-1, pa.int32()) if length is None else number(scope, length)
    characters, own = Characters(scope.array(value)), scope.array(new)
    at, count = integers(scope, position), integers(scope, length)
    count = np.where(count < 0, Characters(own).counts, count)
    ones, everything = np.ones_like(at), np.full_like(at, 2 * _ALL)
    before, behind = _part(characters, ones, at - 1), _part(characters, at + count, everything)
    return where(all_there(scope, position, length), joined(scope, before, own, behind))


@TABLE.add("substring_index", least=3)
@constants_once
def _substring_index(scope: Scope, _call: Call, *values: Value) -> Value:
    value, delimiter = texts(scope, *values[:2])
    return each(scope, pa.string(), _up_to, value, delimiter, number(scope, values[2]))


def _up_to(value: str, delimiter: str, count: int) -> str:
    """What is in front of the delimiter number ``count``; delimiters may overlap."""
    if not delimiter or not count:
        return ""
    place = -1 if count > 0 else len(value) - len(delimiter) + 1
    for _ in range(abs(count)):
        if count > 0:
            place = value.find(delimiter, place + 1)
        else:
            end = place - 1 + len(delimiter)
            place = value.rfind(delimiter, 0, end) if place > 0 else -1
        if place < 0:
            return value
    return value[:place] if count > 0 else value[place + len(delimiter) :]


@TABLE.add("split_part", least=3)
@constants_once
def _split_part(scope: Scope, _call: Call, *values: Value) -> Value:
    value, delimiter = texts(scope, *values[:2])
    return each(scope, pa.string(), _part_number, value, delimiter, number(scope, values[2]))


def _part_number(value: str, delimiter: str, count: int) -> str:
    if not count:
        raise ValueError("parts are counted from 1, or from -1 at the end, never from 0")
    parts = value.split(delimiter) if delimiter else [value]
    if abs(count) > len(parts):
        return ""
    return parts[count - 1 if count > 0 else count]


def _place(scope: Scope, value: Value, part: Value) -> Value:
    """Where the part is first found, from 1; 0: nowhere."""
    if isinstance(part, pa.Array):
        return each(scope, pa.int32(), lambda string, own: string.find(own) + 1, value, part)
    if not part.is_valid:
        return pa.nulls(scope.n_rows, pa.int32())
    array = scope.array(value)
    found = integers(scope, pc.find_substring(array, part.as_py()))
    there = found >= 0
    places = Characters(array).characters_before(np.where(there, found, 0)) + 1
    return where(array.is_valid(), pa.array(np.where(there, places, 0).astype(np.int32)))


@TABLE.add("instr", least=2)
@constants_once
def _instr(scope: Scope, _call: Call, value: Value, part: Value) -> Value:
    return _place(scope, *texts(scope, value, part))


@TABLE.add("locate", "position", least=2, most=3)
@constants_once
def _locate(
    scope: Scope, _call: Call, part: Value, value: Value, start: Value | None = None
) -> Value:
    part, value = texts(scope, part, value)
    if start is None:
        return _place(scope, value, part)
    start = number(scope, start)
    found = each(scope, pa.int32(), _place_from, value, part, start)
    # Spark looks at the start first: without one there is no place, whatever the strings are.
    return pc.if_else(pc.is_null(start), pa.scalar(0, pa.int32()), found)


def _place_from(value: str, part: str, start: int) -> int:
    if start < 1:
        return 0
    return value.find(part, start - 1) + 1 if part else 1


@TABLE.add("find_in_set", least=2)
@constants_once
def _find_in_set(scope: Scope, _call: Call, *values: Value) -> Value:
    return each(scope, pa.int32(), _place_in_set, *texts(scope, *values))


def _place_in_set(value: str, members: str) -> int:
    found = members.split(",")
    return found.index(value) + 1 if value in found else 0


def _both(scope: Scope, value: Value, part: Value) -> tuple[Value, Value]:
    """As they are if both are BINARY, else as strings."""
    if pa.types.is_binary(value.type) and pa.types.is_binary(part.type):
        return value, part
    return text(scope, value), text(scope, part)


def _with_constant(scope: Scope, plain: Any, value: Value, part: pa.Scalar) -> Value:
    if not part.is_valid:
        return pa.nulls(scope.n_rows, pa.bool_())
    return plain(scope.array(value), part.as_py())


def _edge(name: str, scope: Scope, _call: Call, value: Value, part: Value) -> Value:
    value, part = _both(scope, value, part)
    is_start = name == "startswith"
    if isinstance(part, pa.Scalar):
        return _with_constant(scope, pc.starts_with if is_start else pc.ends_with, value, part)
    array = scope.array(value)
    own, wanted = sizes(scope, array), sizes(scope, part)
    common = np.minimum(own, wanted)
    characters = Characters(array.cast(pa.binary()))
    edge = characters.cut(own * 0, common) if is_start else characters.cut(own - common, own)
    return pc.equal(edge, part.cast(pa.binary()))


for _name in ("startswith", "endswith"):
    TABLE.add(_name, least=2)(constants_once(partial(_edge, _name)))


@TABLE.add("contains", least=2)
@constants_once
def _contains(scope: Scope, _call: Call, value: Value, part: Value) -> Value:
    value, part = _both(scope, value, part)
    if isinstance(part, pa.Scalar):
        return _with_constant(scope, pc.match_substring, value, part)
    return each(scope, pa.bool_(), lambda whole, own: own in whole, value, part)
