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

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.model.events.mappings import LISTS, MAX_DEPTH, plain_value
from bittern.model.numbers import INT64_MAX, INT64_MIN
from bittern.terms.nested import field_of, lists_of, parts_of, path_parts
from bittern.terms.nodes import Attribute, Call, Constant, Term, walk
from bittern.terms.types import ANY, DAY_TIME, MAX_PRECISION, TIMESTAMP, common_type, is_number

_NULL, _INTEGER, _FLOAT = pa.null(), pa.int64(), pa.float64()
#: Integers from here on have too many digits for a decimal.
_BEYOND_DECIMALS = 10**MAX_PRECISION
#: Types that rows of one batch may have; what does not go with them cannot be compared.
_MAX_GROUPS = 64
#: Parts that one value may have, and elements of a batch, and levels, that are tried together.
_MAX_PARTS = 100_000
_MAX_ELEMENTS = 10_000_000
_MAX_ALIKE_DEPTH = 8
_FAST: dict[type, pa.DataType] = {
    type(None): _NULL,
    bool: pa.bool_(),
    int: _INTEGER,
    float: _FLOAT,
    str: pa.string(),
}
_SIMPLE: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    float: _FLOAT,
    dt.date: pa.date32(),
    dt.timedelta: DAY_TIME,
    bytes: pa.binary(),
}


class _Plain(NamedTuple):
    """A value in plain Python, and its type."""

    value: Any
    kind: pa.DataType


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
            merged = _merged_rows(kind, array.type)
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


def _is_bare(kind: pa.DataType) -> bool:
    """Whether it is the type of a list or an object without any value inside."""
    if pa.types.is_list(kind):
        return pa.types.is_null(kind.value_type) or _is_bare(kind.value_type)
    return pa.types.is_map(kind) and (pa.types.is_null(kind.item_type) or _is_bare(kind.item_type))


def _without_values(array: pa.Array) -> npt.NDArray[np.bool_]:
    """The rows that are lists or objects without any value inside, lists in lists included."""
    if not pa.types.is_list(array.type) and not pa.types.is_map(array.type):
        return np.zeros(len(array), dtype=np.bool_)
    lists = parts_of(array)
    inside = lists.values.field("value") if pa.types.is_map(array.type) else lists.values
    values = inside.is_valid().to_numpy(zero_copy_only=False) & ~_without_values(inside)
    return lists.valid & ~lists.any(values)


def _merged_rows(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """As ``_merged``, for rows: those without values inside do not take the type of others."""
    if left != right and (_is_bare(left) or _is_bare(right)):
        return None
    return _merged(left, right)


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
    plain = [_Typing(fields).plain(value, 0) for value in values]
    by_kind: dict[pa.DataType, list[int]] = {}
    for place, each in enumerate(plain):
        by_kind.setdefault(each.kind, []).append(place)
    groups: list[tuple[pa.DataType, list[int]]] = []
    for kind, places in by_kind.items():
        for number, (own, members) in enumerate(groups):
            together = _merged_rows(own, kind)
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
    fit = _fitter(kind)
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
        if items is None or set(map(type, keys)) - {str} or not all(map(_is_utf8, keys)):
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


class _Typing:
    """One value being typed; it may have shared or cyclic parts, so these are counted."""

    def __init__(self, fields: frozenset[str]) -> None:
        self._fields = fields
        self._left = _MAX_PARTS

    def plain(self, value: Any, depth: int) -> _Plain:
        """The value in plain Python, and its type."""
        self._left -= 1
        if self._left < 0:
            return _Plain(b"", ANY)
        if isinstance(value, Mapping | list | tuple | np.ndarray):
            if depth == MAX_DEPTH:
                return _Plain(b"", ANY)
            return (
                self._object(value, depth)
                if isinstance(value, Mapping)
                else self._list(value, depth)
            )
        return _scalar(plain_value(value))

    def _list(self, value: Any, depth: int) -> _Plain:
        inner = [self.plain(each, depth + 1) for each in value]
        return _Plain([each.value for each in inner], pa.list_(_all_joined(inner)))

    def _object(self, value: Mapping[Any, Any], depth: int) -> _Plain:
        own = {
            key: self.plain(each, depth + 1)
            for key, each in value.items()
            if isinstance(key, str) and (key in self._fields if depth else _is_utf8(key))
        }
        if depth:
            kind = pa.struct([(key, own[key].kind) for key in sorted(own)])
            return _Plain({key: each.value for key, each in own.items()}, kind)
        pairs = [(key, each.value) for key, each in own.items()]
        return _Plain(pairs, pa.map_(pa.string(), _all_joined(list(own.values()))))


def _scalar(value: Any) -> _Plain:
    simple = _SIMPLE.get(type(value))
    if simple is not None:
        return _Plain(value, simple)
    if value is None:
        return _Plain(None, _NULL)
    if isinstance(value, str):
        return _Plain(value, pa.string() if value.isascii() or _is_utf8(value) else ANY)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, dt.datetime):
        return _Plain(value if value.tzinfo else value.replace(tzinfo=dt.UTC), TIMESTAMP)
    return _Plain(value, ANY)


def _integer(value: int) -> _Plain:
    if INT64_MIN <= value <= INT64_MAX:
        return _Plain(value, _INTEGER)
    if abs(value) < _BEYOND_DECIMALS:
        return _decimal(Decimal(value))
    try:
        return _Plain(float(value), _FLOAT)  # all digits of a large one would take hours
    except OverflowError:
        return _Plain(math.inf if value > 0 else -math.inf, _FLOAT)


def _decimal(value: Decimal) -> _Plain:
    _, digits, exponent = value.as_tuple()
    if isinstance(exponent, int):
        scale = max(0, -exponent)
        precision = max(len(digits) + max(0, exponent), scale)
        if precision <= MAX_PRECISION:
            return _Plain(value, pa.decimal128(precision, scale))
    return _Plain(float(value), _FLOAT)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _all_joined(elements: list[_Plain]) -> pa.DataType:
    kind: pa.DataType = _NULL
    for each in elements:
        if each.kind != kind:
            kind = _joined(kind, each.kind)
    return kind


def _joined(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of a list that has elements of both."""
    together = _merged(left, right, _joined)
    if together is not None:
        return together
    kind = common_type(left, right) if not pa.types.is_nested(left) else None
    if kind is None:
        return ANY
    if pa.types.is_decimal(kind) and is_number(left):
        whole = max(_whole_digits(left), _whole_digits(right))
        scale = max(getattr(left, "scale", 0), getattr(right, "scale", 0))
        return kind if whole + scale <= MAX_PRECISION else _FLOAT
    return kind


def _whole_digits(kind: pa.DataType) -> int:
    return int(kind.precision - kind.scale) if pa.types.is_decimal(kind) else 20


def _merged(
    left: pa.DataType, right: pa.DataType, inside: Callable[..., pa.DataType | None] | None = None
) -> pa.DataType | None:
    """The type of both, where one only lacks what the other has; None if they differ otherwise."""
    inside = _merged if inside is None else inside
    types = pa.types
    if left == right or types.is_null(right):
        return left
    if types.is_null(left):
        return right
    if types.is_list(left) and types.is_list(right):
        kind = inside(left.value_type, right.value_type)
        return None if kind is None else pa.list_(kind)
    if types.is_map(left) and types.is_map(right):
        kind = inside(left.item_type, right.item_type)
        return None if kind is None else pa.map_(pa.string(), kind)
    if types.is_struct(left) and types.is_struct(right):
        fields = {field.name: field.type for field in left}
        for field in right:
            kind = inside(fields.get(field.name, _NULL), field.type)
            if kind is None:
                return None
            fields[field.name] = kind
        return pa.struct([(name, fields[name]) for name in sorted(fields)])
    return None


def _fitter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes a value fit a type that it was joined to; None if Arrow does it."""
    types = pa.types
    if kind == ANY:
        return lambda value: None if value is None else b""
    if kind == _FLOAT:
        return lambda value: None if value is None else float(value)
    if types.is_decimal(kind):
        return lambda value: None if value is None else Decimal(value)
    if kind == TIMESTAMP:
        return _moment
    if types.is_list(kind) or types.is_map(kind):
        inner = _fitter(kind.item_type if types.is_map(kind) else kind.value_type)
        if inner is None:
            return None
        if types.is_map(kind):
            return lambda pairs: pairs and [(key, inner(value)) for key, value in pairs]
        return lambda values: values and [inner(value) for value in values]
    if types.is_struct(kind):
        fits = [(field.name, _fitter(field.type)) for field in kind]
        fits = [(name, fit) for name, fit in fits if fit is not None]
        if fits:
            return lambda value: (
                value
                and value | {name: fit(value.get(name)) for name, fit in fits if fit is not None}
            )
    return None


def _moment(value: Any) -> Any:
    if value is None or isinstance(value, dt.datetime):
        return value
    return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
