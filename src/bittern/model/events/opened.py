"""Lists and objects of mappings, JSON and variants, opened for the terms that read them.

Such a value has its own type in every event. Rows whose types go together are one Arrow array, and
what an object lacks is NULL; the numbers of one list have one type, but rows are never converted
for each other's sake, so that an event matches the same in any batch::

    row 0  [1, 2]         list<bigint>
    row 1  [1, 2.5]       list<double>
    row 2  []             goes with row 0
    row 3  [1, "a"]       list<anything>: it has a size, but its elements cannot be compared

An object is a map from names to values; inside a list it is a struct, of those fields only that
some term names. This is Python's work, and only for values that a term reads: a microsecond or two
per element.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.model.events.mappings import LISTS, MAX_DEPTH, plain_value
from bittern.model.numbers import INT64_MAX, INT64_MIN
from bittern.terms.nested import path_parts
from bittern.terms.nodes import Attribute, Call, Constant, Term, walk
from bittern.terms.types import ANY, DAY_TIME, MAX_PRECISION, TIMESTAMP, common_type, is_number

_NULL, _INTEGER, _FLOAT = pa.null(), pa.int64(), pa.float64()
#: Types that rows of one batch may have; what does not go with them cannot be compared.
_MAX_GROUPS = 64
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
    plain = [_plain(value, fields, 0) for value in values]
    by_kind: dict[pa.DataType, list[int]] = {}
    for place, each in enumerate(plain):
        by_kind.setdefault(each.kind, []).append(place)
    groups: list[tuple[pa.DataType, list[int]]] = []
    for kind, places in by_kind.items():
        for number, (own, members) in enumerate(groups):
            together = _merged(own, kind)
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


def _plain(value: Any, fields: frozenset[str], depth: int) -> _Plain:
    value = plain_value(value)
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
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return _object(value, fields, depth)
    if depth < MAX_DEPTH and isinstance(value, LISTS):
        inner = [_plain(each, fields, depth + 1) for each in value]
        return _Plain([each.value for each in inner], pa.list_(_all_joined(inner)))
    return _Plain(value, ANY)


def _object(value: Mapping[Any, Any], fields: frozenset[str], depth: int) -> _Plain:
    own = {
        key: _plain(each, fields, depth + 1)
        for key, each in value.items()
        if isinstance(key, str) and (key in fields if depth else _is_utf8(key))
    }
    if depth:
        kind = pa.struct([(key, own[key].kind) for key in sorted(own)])
        return _Plain({key: each.value for key, each in own.items()}, kind)
    pairs = [(key, each.value) for key, each in own.items()]
    return _Plain(pairs, pa.map_(pa.string(), _all_joined(list(own.values()))))


def _integer(value: int) -> _Plain:
    if INT64_MIN <= value <= INT64_MAX:
        return _Plain(value, _INTEGER)
    return _decimal(Decimal(value))


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
