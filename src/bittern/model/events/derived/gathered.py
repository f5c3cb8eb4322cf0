"""The values that terms read, gathered from a batch as Arrow arrays, by attribute and type.

::

    events     {"a": 1}   {"a": "x"}   {}   {"a": 2}
    a          BIGINT 1, NULL, NULL, 2      STRING NULL, x, NULL, NULL      which: 0 1 -1 0

O(values).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.language.literals import attribute_parts
from bittern.model import tagged
from bittern.model.events.batch import EventRows
from bittern.model.events.columns import Column
from bittern.model.events.derived.opened import below, typed_arrays
from bittern.model.events.sinks import Opener
from bittern.model.events.variant.values import LongDecimals
from bittern.model.numbers import Number
from bittern.model.strings import gather_strings
from bittern.model.tagged import TaggedValues
from bittern.terms.nested.nested import field_of, parts_of, settled_nested
from bittern.terms.scope import MeaninglessError
from bittern.terms.types import TIMESTAMP


class TypedColumn(NamedTuple):
    """The values of one attribute: by row which of the arrays has it, or -1."""

    codes: npt.NDArray[np.int16] | None  # None: the only array has all
    arrays: list[pa.Array]

    def array(self, code: int) -> pa.Array:
        """The array of a code."""
        return self.arrays[code] if code >= 0 else pa.nulls(len(self.arrays[0]))


class _Piece(NamedTuple):
    """Values of one attribute and type, and the rows that they stand in.

    NULL in a column is of its type, and missing elsewhere.
    """

    rows: EventRows
    array: pa.Array
    is_column: bool = False


class Gathered:
    """A sink that keeps values as Arrow arrays, by attribute and type."""

    def __init__(self, names: Sequence[str], fields: Sequence[frozenset[str]] = ()) -> None:
        """``fields`` are the names in terms that read an attribute, for what it may hold."""
        self._names = names
        self._fields = fields
        self._pieces: list[tuple[int, _Piece]] = []

    def mark(self) -> int:
        """Where the next piece will be, for ``move_rows``."""
        return len(self._pieces)

    def move_rows(self, mark: int, rows: EventRows) -> None:
        """Values since ``mark`` that are in row i belong in ``rows[i]``."""
        for i in range(mark, len(self._pieces)):
            attribute, piece = self._pieces[i]
            self._pieces[i] = attribute, piece._replace(rows=rows[piece.rows])

    def repeat_rows(self, mark: int, codes: EventRows) -> None:
        """Values since ``mark`` that are in row i belong in every row whose code is i."""
        for i in range(mark, len(self._pieces)):
            attribute, piece = self._pieces[i]
            places = np.full(int(codes.max(initial=-1)) + 1, -1)
            places[piece.rows] = np.arange(len(piece.rows))
            rows = np.flatnonzero(places[codes] >= 0)
            array = piece.array.take(pa.array(places[codes[rows]]))
            self._pieces[i] = attribute, _Piece(rows, array)

    def add_column(self, attribute: int, column: Column) -> None:
        """A column of one type."""
        piece = _Piece(np.arange(len(column.array)), settled_nested(column.array), is_column=True)
        self._pieces.append((attribute, piece))

    def add_present(self, attributes: EventRows, rows: EventRows) -> None:
        """Attributes that are there: they are TRUE."""
        for attribute in np.unique(attributes).tolist():
            own = rows[attributes == attribute]
            self._add(attribute, own, pa.repeat(True, len(own)))

    def add_tagged(self, values: TaggedValues) -> None:
        """Values of any kind, except those that no payload holds."""
        order = np.argsort(values.attributes, kind="stable")
        present, starts = np.unique(values.attributes[order], return_index=True)
        for attribute, own in zip(present.tolist(), np.split(order, starts[1:]), strict=False):
            for tag in np.unique(values.tags[own]).tolist():
                if tag in _ARRAYS:
                    places = own[values.tags[own] == tag]
                    self._add(attribute, values.rows[places], _ARRAYS[tag](values, places))

    def add_others(self, values: TaggedValues, open_: Opener) -> None:
        """Lists, objects and whatever else has no kind, in arrays of one type each."""
        others = values.at(values.tags == tagged.OTHER)
        for attribute in np.unique(others.attributes).tolist():
            parts = attribute_parts(self._names[attribute])
            own = others.at(others.attributes == attribute)
            found = []
            for row, payload in zip(own.rows.tolist(), own.payloads.tolist(), strict=True):
                used, place = divmod(payload, 1 << tagged.PATH_BITS)
                value = open_(row, place)
                found.append(below(value, parts[used:]) if used else value)
            for places, array in typed_arrays(found, self._fields[attribute]):
                self._add(attribute, own.rows[places], array)

    def within(self, attribute: int, path: str, lists: pa.Array) -> pa.Array:
        """The list of what a path leads to in each element; NULLs if it leads nowhere."""
        array = settled_nested(lists)
        try:
            for part in attribute_parts(self._names[attribute])[len(attribute_parts(path)) :]:
                array = field_of(array, part)
        except MeaninglessError:
            whole = parts_of(settled_nested(lists))
            return whole.array(pa.nulls(len(whole.values)))
        return array

    def add_exact_numbers(self, numbers: list[tuple[int, int, Number]]) -> None:
        """(row, attribute, number), one by one."""
        for row, attribute, number in numbers:
            ((_, array),) = typed_arrays([number], frozenset())
            self._add(attribute, np.array([row]), array)

    def add_variant_numbers(self, values: TaggedValues) -> None:
        """Long decimals and nanoseconds among the values of variants."""
        for place in np.flatnonzero(values.tags == tagged.EXACT).tolist():
            decimals = LongDecimals.read(values.data, values.payloads[place : place + 1])
            array = pa.array([decimals.exact(0)])
            self._add(int(values.attributes[place]), values.rows[place : place + 1], array)
        for place in np.flatnonzero(values.tags == tagged.EXACT_TIME).tolist():
            array = pa.array(values.payloads[place : place + 1]).view(pa.timestamp("ns", "UTC"))
            array = settled_nested(array)
            self._add(int(values.attributes[place]), values.rows[place : place + 1], array)

    def _add(self, attribute: int, rows: EventRows, array: pa.Array) -> None:
        self._pieces.append((attribute, _Piece(rows, array)))

    def typed(self, n_events: int) -> dict[str, TypedColumn]:
        """All values by attribute."""
        pieces: list[dict[pa.DataType, list[_Piece]]] = [{} for _ in self._names]
        for attribute, piece in self._pieces:
            pieces[attribute].setdefault(piece.array.type, []).append(piece)
        return {
            name: _together(own, n_events) for name, own in zip(self._names, pieces, strict=True)
        }


def _together(pieces: Mapping[pa.DataType, list[_Piece]], n_events: int) -> TypedColumn:
    if not pieces:
        return TypedColumn(None, [pa.nulls(n_events)])
    arrays = [_spread(own, n_events) for own in pieces.values()]
    (first, *_), *_ = pieces.values()
    whole = not arrays[0].null_count or (first.is_column and len(first.rows) == n_events)
    if len(arrays) == 1 and whole:
        return TypedColumn(None, arrays)
    codes = np.full(n_events, -1, dtype=np.int16)
    for code, own in enumerate(pieces.values()):
        for piece in own:
            if piece.is_column:
                codes[piece.rows] = code
    for code, array in enumerate(arrays):
        codes[np.asarray(array.is_valid().to_numpy(zero_copy_only=False))] = code
    return TypedColumn(codes, arrays)


def _spread(pieces: list[_Piece], n_events: int) -> pa.Array:
    """The values in their rows, with NULL in all others; of two for one row the last counts."""
    if len(pieces) == 1 and len(pieces[0].array) == n_events and len(pieces[0].rows) == n_events:
        rows, array, _ = pieces[0]
        if n_events == 0 or (rows[0] == 0 and bool((np.diff(rows) == 1).all())):
            return array
    array = pa.concat_arrays([piece.array for piece in pieces])
    places = np.full(n_events, -1, dtype=np.int64)
    places[np.concatenate([piece.rows for piece in pieces])] = np.arange(len(array))
    return array.take(pa.array(places, mask=places < 0))


def _integers(values: TaggedValues, places: EventRows) -> pa.Array:
    return pa.array(values.payloads[places])


def _floats(values: TaggedValues, places: EventRows) -> pa.Array:
    return pa.array(values.payloads[places].view(np.float64))


def _booleans(values: TaggedValues, places: EventRows) -> pa.Array:
    return pa.array(values.payloads[places] != 0)


def _times(values: TaggedValues, places: EventRows) -> pa.Array:
    return pa.array(values.payloads[places]).view(TIMESTAMP)


def _strings(values: TaggedValues, places: EventRows) -> pa.Array:
    offsets = np.zeros(len(places) + 1, dtype=np.int64)
    np.cumsum(values.lengths[places], out=offsets[1:])
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather_strings(values.data, values.payloads[places], values.lengths[places], offsets, text)
    return pa.LargeStringArray.from_buffers(
        len(places), pa.py_buffer(offsets), pa.py_buffer(text)
    ).cast(pa.string())


def one_value(tag: int, value: Any) -> pa.Array:
    """The array of one value: the payload of an entry, or the bytes of a string."""
    if tag == tagged.STRING:
        return pa.array([value], pa.binary()).cast(pa.string())
    none, tags, bytes_ = np.zeros(1, np.int32), np.array([tag], np.uint8), np.empty(0, np.uint8)
    entry = TaggedValues(none, none, tags, np.array([value], np.int64), none, bytes_)
    array: pa.Array = _ARRAYS[tag](entry, np.zeros(1, np.int64))
    return array


_ARRAYS: dict[int, Any] = {
    tagged.INTEGER: _integers,
    tagged.FLOAT: _floats,
    tagged.BOOLEAN: _booleans,
    tagged.TIMESTAMP: _times,
    tagged.STRING: _strings,
}
