"""What type a value has on its own, and which types go together (``opened.py``).

::

    [1, 2.5]        list<double>          the numbers of one list have one type
    [1, "a"]        list<anything>        its elements cannot be compared
    {"f": [1, {}]}  map<string, list<anything>>

``merged`` is the type of two that differ only in what one of them lacks. All O(parts of the value).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bittern.model.events.mappings import MAX_DEPTH, plain_value
from bittern.model.numbers import INT64_MAX, INT64_MIN
from bittern.terms.types import ANY, DAY_TIME, MAX_PRECISION, TIMESTAMP, common_type, is_number

_NULL, _INTEGER, _FLOAT = pa.null(), pa.int64(), pa.float64()
#: Integers from here on have too many digits for a decimal.
_BEYOND_DECIMALS = 10**MAX_PRECISION
#: Parts that one value may have.
_MAX_PARTS = 100_000
_SIMPLE: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    float: _FLOAT,
    dt.date: pa.date32(),
    dt.timedelta: DAY_TIME,
    bytes: pa.binary(),
}


class Plain(NamedTuple):
    """A value in plain Python, and its type."""

    value: Any
    kind: pa.DataType


def is_bare(kind: pa.DataType) -> bool:
    """Whether it is the type of a list or an object without any value inside."""
    if pa.types.is_list(kind):
        return pa.types.is_null(kind.value_type) or is_bare(kind.value_type)
    return pa.types.is_map(kind) and (pa.types.is_null(kind.item_type) or is_bare(kind.item_type))


def merged_rows(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """As ``merged``, for rows: those without values inside do not take the type of others."""
    if left != right and (is_bare(left) or is_bare(right)):
        return None
    return merged(left, right)


class Typing:
    """One value being typed; it may have shared or cyclic parts, so these are counted."""

    def __init__(self, fields: frozenset[str]) -> None:
        self._fields = fields
        self._left = _MAX_PARTS

    def plain(self, value: Any, depth: int) -> Plain:
        """The value in plain Python, and its type."""
        self._left -= 1
        if self._left < 0:
            return Plain(b"", ANY)
        if isinstance(value, Mapping | list | tuple | np.ndarray):
            if depth == MAX_DEPTH:
                return Plain(b"", ANY)
            return (
                self._object(value, depth)
                if isinstance(value, Mapping)
                else self._list(value, depth)
            )
        return _scalar(plain_value(value))

    def _list(self, value: Any, depth: int) -> Plain:
        inner = [self.plain(each, depth + 1) for each in value]
        return Plain([each.value for each in inner], pa.list_(_all_joined(inner)))

    def _object(self, value: Mapping[Any, Any], depth: int) -> Plain:
        own = {
            key: self.plain(each, depth + 1)
            for key, each in value.items()
            if isinstance(key, str) and (key in self._fields if depth else is_text(key))
        }
        if depth:
            kind = pa.struct([(key, own[key].kind) for key in sorted(own)])
            return Plain({key: each.value for key, each in own.items()}, kind)
        pairs = [(key, each.value) for key, each in own.items()]
        return Plain(pairs, pa.map_(pa.string(), _all_joined(list(own.values()))))


def _scalar(value: Any) -> Plain:
    simple = _SIMPLE.get(type(value))
    if simple is not None:
        return Plain(value, simple)
    if value is None:
        return Plain(None, _NULL)
    if isinstance(value, str):
        return Plain(value, pa.string() if value.isascii() or is_text(value) else ANY)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, dt.datetime):
        return Plain(value if value.tzinfo else value.replace(tzinfo=dt.UTC), TIMESTAMP)
    return Plain(value, ANY)


def _integer(value: int) -> Plain:
    if INT64_MIN <= value <= INT64_MAX:
        return Plain(value, _INTEGER)
    if abs(value) < _BEYOND_DECIMALS:
        return _decimal(Decimal(value))
    try:
        return Plain(float(value), _FLOAT)  # all digits of a large one would take hours
    except OverflowError:
        return Plain(math.inf if value > 0 else -math.inf, _FLOAT)


def _decimal(value: Decimal) -> Plain:
    _, digits, exponent = value.as_tuple()
    if isinstance(exponent, int):
        scale = max(0, -exponent)
        precision = max(len(digits) + max(0, exponent), scale)
        if precision <= MAX_PRECISION:
            return Plain(value, pa.decimal128(precision, scale))
    return Plain(float(value), _FLOAT)


def is_text(text: str) -> bool:
    """Whether it can be UTF-8, which half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _all_joined(elements: list[Plain]) -> pa.DataType:
    kind: pa.DataType = _NULL
    for each in elements:
        if each.kind != kind:
            kind = _joined(kind, each.kind)
    return kind


def _joined(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of a list that has elements of both."""
    together = merged(left, right, _joined)
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


def merged(
    left: pa.DataType, right: pa.DataType, inside: Callable[..., pa.DataType | None] | None = None
) -> pa.DataType | None:
    """The type of both, where one only lacks what the other has; None if they differ otherwise."""
    inside = merged if inside is None else inside
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


def fitter(kind: pa.DataType) -> Callable[[Any], Any] | None:
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
        inner = fitter(kind.item_type if types.is_map(kind) else kind.value_type)
        if inner is None:
            return None
        if types.is_map(kind):
            return lambda pairs: pairs and [(key, inner(value)) for key, value in pairs]
        return lambda values: values and [inner(value) for value in values]
    if types.is_struct(kind):
        fits = [(field.name, fitter(field.type)) for field in kind]
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
