"""Functions that take a function: exists, forall, filter, transform and aggregate.

``exists(items, i -> i.price < limit)`` is evaluated once for all elements of all rows, in a scope
whose rows are the elements::

    row  limit  items                           element  row  i.price  limit   body
    0    5      [{price: 4}, {price: 9}]        0        0    4        5       TRUE
    1    3      [{price: 7}]                    1        0    9        5       FALSE
    2    9      NULL                            2        1    7        3       FALSE

    exists      row 0 TRUE, row 1 FALSE, row 2 NULL

Only what the body reads is made: columns of the elements' fields, and attributes of the event
repeated. Rows are taken together as long as they have at most ``_TOGETHER`` elements, and
repeated texts and arrays count too. O(elements x nodes of the body).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.casts.casts import widened
from bittern.terms.limits import MAX_ELEMENTS
from bittern.terms.logic.conditions import truth
from bittern.terms.nested.nested import Lists, Offsets, field_of, list_parts, parts_of, path_parts
from bittern.terms.nodes import Attribute, Call, Lambda, attributes_of
from bittern.terms.scope import Failure, FunctionTable, MeaninglessError, Scope, Value

TABLE = FunctionTable()
#: Elements that are taken together, if they are not of one row.
_TOGETHER = 1 << 21
#: Bytes of a repeated text that count as one element.
_TEXT_UNIT = 16
#: Steps of ``aggregate``, which takes one element of every row in each.
_MAX_STEPS = 10_000
#: Elements that take as long as one step.
_STEP = 1_000


class _Applied(NamedTuple):
    """Some rows: where they begin, their lists, and a function's value for each element."""

    start: int
    lists: Lists
    values: pa.Array
    failures: list[Failure]  # by element


def _function(call: Call, place: int, *counts: int) -> Lambda:
    """The argument that is a function, of so many parameters."""
    found = call.arguments[place]
    if not isinstance(found, Lambda):
        raise MeaninglessError(f"{call.function} needs a function, such as x -> x > 5")
    if len(found.parameters) not in counts:
        raise MeaninglessError(f"a function in {call.function} has another number of parameters")
    return found


class _Within(Mapping[str, pa.Array]):
    """What the body of a function may read: parts of what is given, and columns at these rows."""

    def __init__(self, scope: Scope, given: Mapping[str, pa.Array], rows: Offsets) -> None:
        self._around = scope.columns
        self._given = given
        self._rows = pa.array(rows)
        self._found: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._found:
            head, *rest = path_parts(name)
            if head in self._given:
                column = self._given[head]
                for part in rest:
                    column = field_of(column, part)
            else:
                column = self._around[name].take(self._rows)
            self._found[name] = column
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _weights(scope: Scope, function: Lambda, value: Value) -> Offsets:
    """How much each row counts: its elements, and what is repeated for them."""
    if isinstance(value, pa.Scalar):
        lengths = np.full(scope.n_rows, len(value) if value.is_valid else 0, dtype=np.int64)
    else:
        counts = pc.fill_null(pc.list_value_length(value), 0).cast(pa.int64())
        lengths = np.asarray(counts)
    texts = np.ones(scope.n_rows, dtype=np.int64)
    for name in attributes_of(function.body):
        column = scope.columns.get(name)
        if column is not None and column.type in (pa.string(), pa.binary()):
            sizes = pc.fill_null(pc.binary_length(column), 0).cast(pa.int64())
            texts += np.asarray(sizes) // _TEXT_UNIT
        elif column is not None and (pa.types.is_list(column.type) or pa.types.is_map(column.type)):
            texts += parts_of(column).lengths
    return lengths * texts


def _pieces(weights: Offsets) -> Iterator[tuple[int, int]]:
    """Rows from start to stop that together are not too heavy, or one row; one piece at least."""
    ends, start = np.cumsum(weights), 0
    while True:
        before = ends[start - 1] if start else 0
        most = min(_TOGETHER, MAX_ELEMENTS)
        stop = max(int(np.searchsorted(ends, before + most, "right")), start + 1)
        yield start, min(stop, len(weights))
        start = stop
        if start >= len(weights):
            return


def _applied(scope: Scope, call: Call, function: Lambda) -> Iterator[_Applied]:
    """The function's value for every element, some rows at a time."""
    value = scope.value(call.arguments[0])
    if not (pa.types.is_list(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"{call.function} takes an array, not {value.type}")
    if pa.types.is_null(value.type):
        value = pa.scalar(None, pa.list_(pa.null()))
    weights = _weights(scope, function, value)
    over = weights > MAX_ELEMENTS
    scope.fail(over, f"{call.function} of an array that is too large")
    if over.any():
        value = pc.if_else(pa.array(over), pa.scalar(None, value.type), value)
        weights = np.where(over, 0, weights)
    for start, stop in _pieces(weights):
        is_whole = isinstance(value, pa.Scalar) or stop - start == len(value)
        own = value if is_whole else value.slice(start, stop - start)
        scope.spent.elements += int(weights[start:stop].sum())
        if not scope.spent.are_elements_left:
            rows = np.arange(scope.n_rows)
            left = (rows >= start) & (rows < stop) & (weights > 0)
            scope.fail(left, f"{call.function} has too many elements to go through")
            own = pa.scalar(None, value.type)
        # Functions of one column share its elements, and what their bodies have in common.
        first = call.arguments[0]
        key = first, function.parameters
        is_column = isinstance(first, Attribute) and own is scope.columns.get(first.name)
        if is_column and key in scope.inside:
            lists, inner = scope.inside[key]
        else:
            lists, inner = _elements(scope, call, function, own, start, stop)
            if is_column:
                scope.inside[key] = lists, inner
        inner.spent, before = scope.spent, len(inner.failures)
        values = inner.array(inner.value(function.body))
        yield _Applied(start, lists, values, inner.failures[before:])


def _elements(
    scope: Scope, call: Call, function: Lambda, value: Value, start: int, stop: int
) -> tuple[Lists, Scope]:
    """The lists of these rows, and a scope whose rows are their elements."""
    lists = list_parts(Scope({}, stop - start), value, call.function)
    given = {function.parameters[0]: lists.values}
    if len(function.parameters) > 1:
        given[function.parameters[1]] = pa.array(lists.positions, pa.int32())
    parents = lists.parents + start
    return lists, scope.within(_Within(scope, given, parents), len(parents))


def _tell(scope: Scope, applied: _Applied, needed: Mask | None = None) -> Mask:
    """Report the failures of elements, of those that are needed; returns the rows that fail."""
    failed = np.zeros(scope.n_rows, dtype=np.bool_)
    parents = applied.lists.parents + applied.start
    for places, reason in applied.failures:
        kept = places if needed is None else places[needed[places]]
        rows = np.zeros(scope.n_rows, dtype=np.bool_)
        rows[parents[kept]] = True
        scope.fail(rows, reason)
        failed |= rows
    return failed


def _quantified(stops_at: bool, scope: Scope, call: Call) -> Value:  # noqa: FBT001
    """The exists that stops at the first TRUE, and the forall that stops at the first FALSE.

    What comes behind that element cannot fail, as in Spark.
    """
    function, found = _function(call, 1, 1), []
    for applied in _applied(scope, call, function):
        lists, values = applied.lists, truth(applied.values)
        decides = _mask(values if stops_at else pc.invert(values))
        decided = lists.any(decides)
        unknown = np.zeros(len(decided), dtype=np.bool_)
        if values.null_count:
            unknown = ~decided & lists.any(_nulls(values))
        if applied.failures:
            needed = np.arange(len(decides)) <= lists.first(decides)[lists.parents]
            failed = _tell(scope, applied, needed)
            unknown |= failed[applied.start : applied.start + len(lists.valid)]
        found.append(pa.array(decided == stops_at, mask=~lists.valid | unknown))
    return pa.concat_arrays(found)


TABLE.add("exists", least=2, lazy=True)(partial(_quantified, True))
TABLE.add("forall", least=2, lazy=True)(partial(_quantified, False))


def _lists(scope: Scope, call: Call, make: Callable[[_Applied], Lists]) -> Value:
    function, found = _function(call, 1, 1, 2), []
    for applied in _applied(scope, call, function):
        failed = _tell(scope, applied)[applied.start : applied.start + len(applied.lists.valid)]
        lists = make(applied)
        if failed.any():
            lists = lists.kept(~failed[lists.parents])
        found.append(lists._replace(valid=lists.valid & ~failed).array())
    return pa.concat_arrays(found)


@TABLE.add("filter", least=2, lazy=True)
def _filter(scope: Scope, call: Call) -> Value:
    return _lists(scope, call, lambda applied: applied.lists.kept(_mask(truth(applied.values))))


@TABLE.add("transform", least=2, lazy=True)
def _transform(scope: Scope, call: Call) -> Value:
    return _lists(scope, call, lambda applied: applied.lists._replace(values=applied.values))


@TABLE.add("aggregate", "reduce", least=3, most=4, lazy=True)
def _aggregate(scope: Scope, call: Call) -> Value:
    """Step i puts the i-th elements of all rows that have one on what they are so far."""
    merge = _function(call, 2, 2)
    lists = list_parts(scope, scope.value(call.arguments[0]), call.function)
    lengths = lists.lengths
    long = lengths > _MAX_STEPS
    scope.fail(long, f"{call.function} takes at most {_MAX_STEPS:,} elements")
    steps = int(np.where(long, 0, lengths).max(initial=0))
    scope.spent.elements += max(steps * _STEP, int(lengths[~long].sum()))
    if not scope.spent.are_elements_left:
        scope.fail((lengths > 0) & ~long, f"{call.function} has too many elements to go through")
        long |= lengths > 0
    lengths = np.where(long, 0, lengths)
    so_far, rows = scope.array(scope.value(call.arguments[1])), np.arange(scope.n_rows)
    kind, broken = so_far.type, long
    done: list[tuple[Offsets, pa.Array]] = []
    for step in range(int(lengths.max(initial=0)) + 1):
        more = lengths[rows] > step
        done.append((rows[~more], so_far.filter(pa.array(~more))))
        rows, so_far = rows[more], so_far.filter(pa.array(more))
        element = lists.values.take(pa.array(lists.offsets[rows] + step))
        given = dict(zip(merge.parameters, (so_far, element), strict=True))
        merged = _inside(scope, merge, given, rows, broken)
        if merged.type != kind and not pa.types.is_null(merged.type):
            raise MeaninglessError(f"what {call.function} starts with is {kind}, not {merged.type}")
        so_far = widened(merged, kind)
    order = np.argsort(np.concatenate([rows for rows, _ in done]))
    found = pa.concat_arrays([array for _, array in done]).take(pa.array(order))
    if len(call.arguments) > 3:
        finish, rows = _function(call, 3, 1), np.flatnonzero(lists.valid)
        given = {finish.parameters[0]: found.take(pa.array(rows))}
        places = pa.array(np.cumsum(lists.valid) - 1, mask=~lists.valid)
        found = _inside(scope, finish, given, rows, broken).take(places)
    return pc.if_else(pa.array(lists.valid & ~broken), found, pa.scalar(None, found.type))


def _inside(
    scope: Scope, function: Lambda, given: Mapping[str, pa.Array], rows: Offsets, broken: Mask
) -> pa.Array:
    """The function's value for each of these rows; those that fail are marked as broken."""
    inner = scope.within(_Within(scope, given, rows), len(rows))
    value = inner.array(inner.value(function.body))
    for places, reason in inner.failures:
        failed = np.zeros(scope.n_rows, dtype=np.bool_)
        failed[rows[places]] = True
        scope.fail(failed & ~broken, reason)
        broken |= failed
    return value


def _mask(values: Value) -> Mask:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
