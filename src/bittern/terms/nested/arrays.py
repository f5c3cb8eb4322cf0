"""Functions of whole arrays: their size, a part of them, their order, and a text of all.

::

    slice([a, b, c, d], 2, 2)      [b, c]
    sort_array([2, NULL, 1])       [NULL, 1, 2]
    array_max([2, NULL, 1])        2
    array_join([a, NULL, b], '-')  a-b

Elements are compared by numbers that stand for their distinct values (``ranks.py``). O(rows +
elements), with order O(elements x log elements).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.casts.casts import cast
from bittern.terms.logic.comparisons import as_wider
from bittern.terms.nested.nested import Lists, Offsets, is_listed, list_parts, lists_of, parts_of
from bittern.terms.nested.ranks import ranks
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.types import widest_type

TABLE = FunctionTable()
_INT = pa.int32()
#: Bytes that one text, and one column of texts, may have.
_MAX_TEXT = 1 << 20
_MAX_TEXTS = 1 << 26


def integers(scope: Scope, value: Value, name: str) -> tuple[Offsets, npt.NDArray[np.bool_]]:
    """An INT for each row, and where it is not NULL; a BIGINT that is too large fails."""
    if pa.types.is_string(value.type):
        value = cast(scope, value, _INT)
    if not (pa.types.is_integer(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"{name} takes a whole number, not {value.type}")
    array = scope.array(value).cast(pa.int64())
    numbers = np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False))
    beyond = numbers != numbers.astype(np.int32)
    scope.fail(beyond, f"a number in {name} does not fit in an INT")
    return numbers, _valid(array) & ~beyond


def picked(array: pa.Array, places: Offsets, there: npt.NDArray[np.bool_]) -> pa.Array:
    """The elements at these places, NULL where there is none."""
    return array.take(pa.array(places, mask=~there))


@TABLE.add("array", least=0, most=-1)
def _array(scope: Scope, _call: Call, *values: Value) -> Value:
    kind = widest_type(each.type for each in values)
    if kind is None:
        raise MeaninglessError("the elements of an array have types that do not go together")
    n_rows, n_values = scope.n_rows, len(values)
    if not values:
        return pa.scalar([], pa.list_(pa.null()))
    alike = [as_wider(scope, each, kind) for each in values]
    if all(isinstance(each, pa.Scalar) for each in alike):
        elements = pa.concat_arrays([Scope({}, 1).array(each) for each in alike])
        offsets = np.array([0, n_values], dtype=np.int64)
        return lists_of(offsets, elements, np.ones(1, dtype=np.bool_))[0]
    together = pa.concat_arrays([scope.array(each) for each in alike])
    turned = np.arange(n_rows * n_values).reshape(n_values, n_rows).T.ravel()
    offsets = np.arange(n_rows + 1) * n_values
    return lists_of(offsets, together.take(pa.array(turned)), np.ones(n_rows, dtype=np.bool_))


@TABLE.add("size", "cardinality", "array_size", least=1)
def _size(scope: Scope, call: Call, value: Value) -> Value:
    kind = value.type
    if pa.types.is_null(kind):
        return pa.scalar(None, _INT)
    if pa.types.is_map(kind) and call.function != "array_size":
        lists = parts_of(scope.array(value))
        return pa.array(lists.lengths, _INT, mask=~lists.valid)
    if not is_listed(kind):
        raise MeaninglessError(f"{call.function} takes an array, not {kind}")
    if isinstance(value, pa.Scalar):
        return pa.scalar(len(value) if value.is_valid else None, _INT)
    return pc.list_value_length(value)


@TABLE.add("slice", least=3)
def _slice(scope: Scope, _call: Call, value: Value, start: Value, length: Value) -> Value:
    lists = list_parts(scope, value, "slice")
    first, has_first = integers(scope, start, "slice")
    count, has_count = integers(scope, length, "slice")
    valid = lists.valid & has_first & has_count
    scope.fail(valid & (first == 0), "slice counts from 1, or backwards from -1")
    scope.fail(valid & (first != 0) & (count < 0), "the length of slice is below 0")
    valid &= (first != 0) & (count >= 0)
    begin = np.where(first < 0, first + lists.lengths, first - 1)
    inside = valid & (begin >= 0) & (begin < lists.lengths)
    begin = np.where(inside, begin, 0)
    count = np.where(inside, np.minimum(np.maximum(count, 0), lists.lengths - begin), 0)
    lowest = np.repeat(begin, lists.lengths)
    highest = np.repeat(begin + count, lists.lengths)
    within = (lists.positions >= lowest) & (lists.positions < highest)
    return lists.kept(within)._replace(valid=valid).array()


def _extreme(best: Any, scope: Scope, call: Call, value: Value) -> Value:
    """The greatest or least element that is not NULL; of equal ones the first."""
    lists = list_parts(scope, value, call.function)
    codes = ranks(lists.values)
    parents, there = lists.parents, codes >= 0
    codes, parents, at = codes[there], parents[there], np.flatnonzero(there)
    if best is np.argmax:
        codes = -codes
    order = np.lexsort((at, codes, parents))
    rows, first = np.unique(parents[order], return_index=True)
    places = np.full(scope.n_rows, -1, dtype=np.int64)
    places[rows] = at[order[first]]
    return picked(lists.values, places, places >= 0)


TABLE.add("array_max", least=1)(partial(_extreme, np.argmax))
TABLE.add("array_min", least=1)(partial(_extreme, np.argmin))


def _sorted(lists: Lists, *, falling: bool, nulls_first: bool) -> pa.Array:
    codes = ranks(lists.values)
    keys = -codes if falling else codes
    end = len(codes) + 1
    keys = np.where(codes < 0, -end if nulls_first else end, keys)
    return lists.array(lists.values.take(pa.array(np.lexsort((keys, lists.parents)))))


@TABLE.add("sort_array", least=1, most=2)
def _sort_array(scope: Scope, _call: Call, value: Value, rising: Value | None = None) -> Value:
    """NULL comes first if values rise, and last if they fall."""
    lists = list_parts(scope, value, "sort_array")
    if rising is None:
        return _sorted(lists, falling=False, nulls_first=True)
    if not isinstance(rising, pa.Scalar) or rising.as_py() not in (None, True, False):
        raise MeaninglessError("the second argument of sort_array is TRUE or FALSE")
    if not rising.is_valid:
        lists = lists.kept(np.zeros(len(lists.values), dtype=np.bool_))
        return lists._replace(valid=np.zeros(scope.n_rows, dtype=np.bool_)).array()
    is_rising = rising.as_py()
    return _sorted(lists, falling=not is_rising, nulls_first=is_rising)


@TABLE.add("array_sort", least=1)
def _array_sort(scope: Scope, _call: Call, value: Value) -> Value:
    return _sorted(list_parts(scope, value, "array_sort"), falling=False, nulls_first=False)


@TABLE.add("array_join", least=2, most=3)
def _array_join(
    scope: Scope, _call: Call, value: Value, between: Value, instead: Value | None = None
) -> Value:
    lists = list_parts(scope, value, "array_join")
    lists = lists._replace(values=_texts(scope, lists.values))
    others = [_texts(scope, each) for each in (between, instead) if each is not None]
    valid = lists.valid
    for each in others:
        valid = valid & scope.mask(pc.is_valid(each))
    if instead is None:
        lists = lists.kept(_valid(lists.values))
    sizes = _sizes(lists, *(scope.array(each) for each in others))
    over = valid & ((sizes > _MAX_TEXT) | (np.cumsum(np.where(valid, sizes, 0)) > _MAX_TEXTS))
    scope.fail(over, "the text that array_join makes is too long")
    valid = valid & ~over
    if not valid.all():
        lists = lists.kept(valid[lists.parents])
    values = lists.values
    if instead is not None:
        values = pc.coalesce(values, scope.array(others[1]).take(pa.array(lists.parents)))
    lists = lists._replace(values=values, valid=np.ones_like(valid))
    joined = pc.binary_join(lists.array(), scope.array(others[0]))
    return pc.if_else(pa.array(valid), joined, pa.scalar(None, pa.string()))


def _texts(scope: Scope, value: Value) -> Value:
    """Strings as they are, other values as Spark writes them."""
    kind = value.type
    if pa.types.is_string(kind):
        return value
    if pa.types.is_null(kind):
        return pc.cast(value, pa.string())
    if pa.types.is_nested(kind):
        raise MeaninglessError(f"array_join takes an array of strings, not of {kind}")
    return cast(scope, value, pa.string())


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _sizes(lists: Lists, between: pa.Array, instead: pa.Array | None = None) -> Offsets:
    """The bytes of each joined text."""
    sizes = _bytes(lists.values)
    if instead is not None:
        sizes = np.where(_valid(lists.values), sizes, _bytes(instead)[lists.parents])
    ends = np.concatenate(([0], np.cumsum(sizes)))
    own: Offsets = np.diff(ends[lists.offsets])
    return own + _bytes(between) * np.maximum(lists.lengths - 1, 0)


def _bytes(texts: pa.Array) -> Offsets:
    return np.asarray(pc.fill_null(pc.binary_length(texts), 0).cast(pa.int64()))
