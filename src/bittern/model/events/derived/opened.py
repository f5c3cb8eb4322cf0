"""Lists and objects of mappings, JSON and variants, opened for the terms that read them.

Such a value has its own type in every event. Rows whose types go together are one Arrow array, and
what an object lacks is NULL; the numbers of one list have one type, but rows are never converted
for each other's sake, so that an event matches the same in any batch::

    row 0  [1, 2]         list<bigint>
    row 1  [1, 2.5]       list<double>
    row 2  [], [NULL]     list<NULL>, apart from them: it can be asked for values of any type
    row 3  [1, "a"]       list<anything>: it has a size, but its elements cannot be compared

An object is a map from names to values; inside a list it is a struct, of those fields only that
some term names. Values of the same types are read together, level by level: some 0.2 microseconds
per element and field, and as much again to tell values of several types apart. Where types differ
inside one value, it is typed on its own, which is ten times as slow. Values that no term reads cost
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.model.events.derived.value_types import Typing, fitter, is_text, merged_rows
from bittern.model.events.mappings import LISTS
from bittern.terms.nested.nested import field_of, lists_of, parts_of, path_parts
from bittern.terms.nodes import Attribute, Call, Constant, Term, walk
from bittern.terms.types import ANY

_NULL, _INTEGER, _FLOAT = pa.null(), pa.int64(), pa.float64()
#: Types that rows of one batch may have; what does not go with them cannot be compared.
_MAX_GROUPS = 64
#: Elements of a batch, and levels, that are tried together.
_MAX_ELEMENTS = 10_000_000
_MAX_ALIKE_DEPTH = 8
_FAST: dict[type, pa.DataType] = {
    type(None): _NULL,
    bool: pa.bool_(),
    int: _INTEGER,
    float: _FLOAT,
    str: pa.string(),
}


def named_fields(terms: Sequence[Term]) -> frozenset[str]:
    """All names that might be fields of structs in these terms."""
    found: set[str] = set()
    for term in terms:
        for node in walk(term):
            if isinstance(node, Attribute):
                found.update(path_parts(node.name)[1:])
            elif isinstance(node, Call) and node.function in (".", "[]"):
                key = node.arguments[1]
                if isinstance(key, Constant) and isinstance(key.scalar.as_py(), str):
                    found.add(key.scalar.as_py())
    return frozenset(found)


def below(value: Any, parts: Sequence[str]) -> Any:
    """What a path leads to inside a value; of a list, the list of what is in each element."""
    if not parts:
        return value
    if isinstance(value, LISTS):
        return [below(each, parts) for each in value]
    return below(value.get(parts[0]), parts[1:]) if isinstance(value, Mapping) else None


def typed_arrays(
    values: Sequence[Any], fields: frozenset[str]
) -> list[tuple[npt.NDArray[np.int64], pa.Array]]:
    """The values in arrays of one type each, with the places where they stood."""
    whole = _alike(values, fields, 0)
    if whole is None:
        return _typed_apart(values, fields)
    bare = _without_values(whole)
    if not bare.any():
        return [(np.arange(len(values)), whole)]
    own = np.flatnonzero(bare)
    apart = _typed_apart([values[place] for place in own.tolist()], fields)
    found = [(own[places], array) for places, array in apart]
    if not bare.all():
        found.append((np.flatnonzero(~bare), whole.filter(pa.array(~bare))))
    return found


def _typed_apart(
    values: Sequence[Any], fields: frozenset[str]
) -> list[tuple[npt.NDArray[np.int64], pa.Array]]:
    """The same, where they do not all have one type."""
    signatures: dict[Any, list[int]] = {}
    memo: dict[tuple[int, bool], Any] = {}
    for place, value in enumerate(values):
        signatures.setdefault(_signature(value, fields, 0, memo), []).append(place)
    found: list[tuple[npt.NDArray[np.int64], pa.Array]] = []
    for own in signatures.values():
        array = _alike([values[place] for place in own], fields, 0, mixed=True)
        pieces = [(np.array(own), array)]
        if array is None:
            pieces = _one_by_one([values[place] for place in own], fields)
            pieces = [(np.array(own)[places], each) for places, each in pieces]
        found += pieces
    return _together(found)


def _together(
    pieces: list[tuple[npt.NDArray[np.int64], pa.Array]],
) -> list[tuple[npt.NDArray[np.int64], pa.Array]]:
    """The pieces, as few as their types allow."""
    groups: list[tuple[pa.DataType, list[tuple[npt.NDArray[np.int64], pa.Array]]]] = []
    for places, array in pieces:
        for number, (kind, members) in enumerate(groups):
            merged = merged_rows(kind, array.type)
            if merged is not None:
                groups[number] = merged, [*members, (places, array)]
                break
        else:
            if len(groups) >= _MAX_GROUPS:
                array = pa.array([b""] * len(array), ANY)  # noqa: PLW2901
            groups.append((array.type, [(places, array)]))
    return [
        (
            np.concatenate([places for places, _ in members]),
            pa.concat_arrays([_widened(array, kind) for _, array in members]),
        )
        for kind, members in groups
    ]


def _without_values(array: pa.Array) -> npt.NDArray[np.bool_]:
    """The rows that are lists or objects without any value inside, lists in lists included."""
    if not pa.types.is_list(array.type) and not pa.types.is_map(array.type):
        return np.zeros(len(array), dtype=np.bool_)
    lists = parts_of(array)
    inside = lists.values.field("value") if pa.types.is_map(array.type) else lists.values
    values = inside.is_valid().to_numpy(zero_copy_only=False) & ~_without_values(inside)
    return lists.valid & ~lists.any(values)


def _widened(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array in a type that has more fields than its own; what is not there is NULL."""
    if array.type == kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if pa.types.is_struct(kind):
        columns = [_widened(field_of(array, field.name), field.type) for field in kind]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=array.is_null())
    lists = parts_of(array)
    if pa.types.is_list(kind):
        return lists.array(_widened(lists.values, kind.value_type))
    keys, items = lists.values.flatten()
    offsets = pa.array(lists.offsets, pa.int32(), mask=np.append(~lists.valid, False))
    return pa.MapArray.from_arrays(offsets, keys, _widened(items, kind.item_type))


def _signature(
    value: Any, fields: frozenset[str], depth: int, memo: dict[tuple[int, bool], Any]
) -> Any:
    """Which types of Python there are in a value, by level."""
    kind = type(value)
    if kind not in (list, tuple, dict):
        return kind
    key = id(value), depth > 0
    known = memo.get(key)
    if known is None:
        memo[key] = kind  # in a cycle
        if kind is dict and depth:
            inner = [value.get(name) for name in sorted(fields)]
        else:
            inner = list(value.values()) if kind is dict else value
        kinds = set(map(type, inner))
        if kinds & {list, tuple, dict} or (kind is dict and depth):
            found = [_signature(each, fields, depth + 1, memo) for each in inner]
            known = kind, tuple(found) if kind is dict and depth else frozenset(found)
        else:
            known = kind, frozenset(kinds - {type(None)})
        memo[key] = known
    return known


def _one_by_one(
    values: Sequence[Any], fields: frozenset[str]
) -> list[tuple[npt.NDArray[np.int64], pa.Array]]:
    """Each value typed on its own."""
    plain = [Typing(fields).plain(value, 0) for value in values]
    by_kind: dict[pa.DataType, list[int]] = {}
    for place, each in enumerate(plain):
        by_kind.setdefault(each.kind, []).append(place)
    groups: list[tuple[pa.DataType, list[int]]] = []
    for kind, places in by_kind.items():
        for number, (own, members) in enumerate(groups):
            together = merged_rows(own, kind)
            if together is not None:
                groups[number] = together, members + places
                break
        else:
            groups.append((kind if len(groups) < _MAX_GROUPS else ANY, places))
    return [
        (np.array(places), _array([plain[place].value for place in places], kind))
        for kind, places in groups
    ]


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    fit = fitter(kind)
    try:
        return pa.array(values if fit is None else list(map(fit, values)), kind)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return pa.array([None if value is None else b"" for value in values], ANY)


def _alike(
    values: Sequence[Any], fields: frozenset[str], depth: int, *, mixed: bool = False
) -> pa.Array | None:
    """The values in one array if they all have the same type, else None.

    ``mixed`` says that where there are integers and floats, every value has both of them.
    """
    kinds = set(map(type, values)) - {type(None)}
    if mixed and kinds == {int, float}:
        try:
            return pa.array([None if value is None else float(value) for value in values], _FLOAT)
        except OverflowError:
            return None
    if len(kinds) > 1 or depth > _MAX_ALIKE_DEPTH or len(values) > _MAX_ELEMENTS:
        return None
    kind = kinds.pop() if kinds else type(None)
    if kind in _FAST:
        try:
            return pa.array(values, _FAST[kind])
        except (OverflowError, UnicodeEncodeError):
            return None
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    if kind in (list, tuple):
        own = [() if value is None else value for value in values]
        ends = _ends(own)
        if ends[-1] > _MAX_ELEMENTS:
            return None
        inner = _alike(list(chain.from_iterable(own)), fields, depth + 1, mixed=mixed)
        return None if inner is None else lists_of(ends, inner, valid)
    if kind is dict:
        objects = [{} if value is None else value for value in values]
        return _objects_alike(objects, valid, fields, depth, mixed=mixed)
    return None


def _objects_alike(
    values: list[dict[Any, Any]],
    valid: npt.NDArray[np.bool_],
    fields: frozenset[str],
    depth: int,
    *,
    mixed: bool,
) -> pa.Array | None:
    if not depth:
        keys = list(chain.from_iterable(values))
        found = [item for value in values for item in value.values()]
        items = _alike(found, fields, 1, mixed=mixed)
        if items is None or set(map(type, keys)) - {str} or not all(map(is_text, keys)):
            return None
        offsets = pa.array(_ends(values), pa.int32(), mask=np.append(~valid, False))
        return pa.MapArray.from_arrays(offsets, pa.array(keys, pa.string()), items)
    columns = []
    for name in sorted(fields):
        column = _alike([value.get(name) for value in values], fields, depth + 1, mixed=mixed)
        if column is None:
            return None
        columns.append(column)
    if not columns:
        return pa.array([{} if there else None for there in valid], pa.struct([]))
    return pa.StructArray.from_arrays(columns, sorted(fields), mask=pa.array(~valid))


def _ends(values: Sequence[Any]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))))
