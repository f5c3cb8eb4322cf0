"""Events in whatever form they come, as cells in rank space.

====================================  ==========================================================
form                                  attributes
====================================  ==========================================================
``pyarrow.Table``, ``RecordBatch``    one column each; a struct's fields by dotted path; the
                                      entries of a ``map<string, ...>`` column by key; the fields
                                      of *documents*: variants, and JSON text that ``json`` names
Arrow array of strings                JSON objects, nested ones by dotted path
Arrow array of structs or maps        as above
pandas ``DataFrame``                  one column each, and documents
list of mappings, one mapping         by key, nested ones by dotted path
list of strings, one string           JSON objects
====================================  ==========================================================

Only attributes that a subscription mentions are read. Where an attribute stands in several places,
a column of its own wins; then come maps, then documents, each in the order of the columns, and
the first that has a value in the row wins. With ``json="doc"``::

    price   m                        doc                            the event
    5       {price: 6, color: red}   {"color": "tan", "size": 3}    price 5, color red, size 3
    null    {color: null}            {"color": "tan", "price": 9}   color tan

What cannot be read (broken JSON, a row that is no mapping) is rejected with a reason, has no values
here whatever its other columns say, and matches nothing, not even ``a IS NULL``. Values of a kind
that no subscription compares their attribute with are reported (``model/mistyped.py``) where each
value has a type of its own: in mappings, JSON and variants. The types of columns are known
beforehand, and ``Encoder.mistyped_columns`` judges them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.errors import EventError, OptionError
from bittern.language.literals import HIDDEN
from bittern.model.attributes import Attributes, Taken, refuse_twins
from bittern.model.batch import Batch, Constants, cells_of, rows_of
from bittern.model.columns import Column, from_frame, plain, read_column
from bittern.model.documents import (
    Document,
    check_json,
    is_json,
    is_variant,
    is_variant_column,
    json_names,
    read_json,
    read_variants,
)
from bittern.model.mappings import flatten, path_part
from bittern.model.maps import key_entries, map_entries, tag_entries
from bittern.model.mistyped import Kinds, Strays, joined
from bittern.model.numbers import Number
from bittern.model.patterns import PatternSet
from bittern.model.rank import ANY, STRING, RankSpace
from bittern.model.reads import Encoded, Read, Rejects, readable_rows
from bittern.model.tagged import TaggedValues

Rows = npt.NDArray[Any]
_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoder(Attributes):
    """Encodes events for one rank space. Immutable; threads may share it."""

    def __init__(self, rank: RankSpace, patterns: Mapping[int, PatternSet]) -> None:
        super().__init__(rank.attribute_names())
        self.constants = Constants(rank, patterns)
        self.kinds = Kinds(rank.arrays.channels, patterns, self.names.numbers)
        #: By cell, whether it belongs to a hidden attribute, which no event carries; None: none do.
        self.hidden = _hidden_cells(rank, self.names.numbers)

    def hidden_cell(self, name: str) -> int:
        """The cell that says that a hidden attribute is there."""
        arrays = self.constants.arrays
        return int(arrays.bases[arrays.channels[self.names.numbers[name], ANY]])

    def encode(self, events: Any, json: str | Sequence[str] = ()) -> Encoded:
        """Read a batch in any of the forms above. O(values).

        ``json`` names columns of a table whose text is JSON objects.
        """
        return self.read(events, json).encoded()

    def read(self, events: Any, json: str | Sequence[str] = ()) -> Read:
        """The first half of ``encode``, for those who have pairs to add."""
        batch = Batch(self.constants)
        reader = EventReader(self, batch, json, self.kinds)
        n_events = reader.read(events)
        rejects, pairs = reader.rejected(), batch.pairs()
        strays = joined(reader.strays) if reader.strays else self.kinds.no_strays()
        if rejects:
            kept = readable_rows(n_events, rejects)
            pairs, strays = pairs[kept[rows_of(pairs)]], strays.among(kept)
        if self.hidden is not None:
            pairs = pairs[~self.hidden[cells_of(pairs)]]
        return Read(pairs, n_events, rejects, strays, self.constants.arrays.bases)

    def mistyped_columns(
        self, schema: pa.Schema, json: str | Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        """Columns and fields of structs whose type no subscription compares: (path, reason)."""
        taken = self.none_taken()
        documents = json_names(json)
        found = []
        for field in schema:
            if field.name in documents or is_json(field.type) or is_variant_column(field):
                continue
            # An array without rows has the type that columns will have.
            column = plain(pa.nulls(0, field.type))
            for _, path, array in self.columns(path_part(field.name), column, taken):
                kind = read_column(array).kind
                why = self.kinds.complaint(path, kind, f"is of type {array.type}")
                if why is not None and not pa.types.is_null(array.type):
                    found.append((path, why))
        return found


def _hidden_cells(rank: RankSpace, numbers: Mapping[str, int]) -> npt.NDArray[np.bool_] | None:
    attributes = [number for name, number in numbers.items() if name.startswith(HIDDEN)]
    if not attributes:
        return None
    channels = rank.arrays.channels[attributes, ANY]
    hidden = np.zeros(rank.n_cells, dtype=np.bool_)
    hidden[rank.arrays.bases[channels]] = True
    return hidden


class Sink(Protocol):
    """Where the values of a batch go, in whatever form they came; ``Batch`` is one."""

    def add_column(self, attribute: int, column: Column) -> None:
        """The values of a column stand in the rows where it has them."""

    def add_tagged(self, values: TaggedValues) -> None:
        """Values of any kind; those that no payload holds come once more, in the next two."""

    def add_exact_numbers(self, numbers: list[tuple[int, int, Number]]) -> None:
        """(row, attribute, number): what mappings hold and ``add_tagged`` left out."""

    def add_variant_numbers(self, values: TaggedValues) -> None:
        """Tagged values of documents, among them what ``add_tagged`` left out."""

    def mark(self) -> int:
        """Where the next values will be, for ``move_rows``."""

    def move_rows(self, mark: int, rows: Rows) -> None:
        """Values since ``mark`` that are in row i belong in ``rows[i]``."""


class Stored(Protocol):
    """Events that were kept, and know how to be read again (``history/segments.py``)."""

    def read_into(self, attributes: Attributes, sink: Sink) -> tuple[int, Rejects]:
        """Read what they say of these attributes; how many there are, and which are unreadable."""


class EventReader:
    """One batch being read into a sink: rejects and, where kinds are given, strays pile up."""

    def __init__(
        self,
        attributes: Attributes,
        sink: Sink,
        json: str | Sequence[str],
        kinds: Kinds | None = None,
    ) -> None:
        self._attributes = attributes
        self._names = attributes.names
        self._sink = sink
        self._json = json_names(json)
        self._kinds = kinds
        self._seen: list[npt.NDArray[np.int64]] | None = None
        self._rejects: Rejects = []
        self.strays: list[Strays] = []

    def rejected(self) -> Rejects:
        """The rows that could not be read, ascending, each with the first reason."""
        return sorted(dict(reversed(self._rejects)).items())

    def read(self, events: Any) -> int:
        """Read events of any form; returns how many there are."""
        if isinstance(events, pa.Table | pa.RecordBatch):
            self._table(events)
            return int(events.num_rows)
        if isinstance(events, pa.Array | pa.ChunkedArray):
            self._array(plain(events))
            return len(events)
        if hasattr(events, "read_into"):
            stored: Stored = events
            n_events, rejects = stored.read_into(self._attributes, self._sink)
            self._rejects += rejects
            return n_events
        if isinstance(events, str | Mapping):
            events = [events]
        elif hasattr(events, "__dataframe__") and not isinstance(events, Sequence):
            try:
                return self.read(from_frame(events))
            except ValueError as wrong:
                raise EventError(str(wrong)) from None
        if not isinstance(events, Sequence) or isinstance(events, bytes | bytearray | memoryview):
            raise EventError(
                f"events are an Arrow table or array, a list of mappings, or one mapping, "
                f"not {type(events).__name__}"
            )
        self._refuse_json("a list")
        if any(isinstance(event, str) for event in events):
            self._texts([event if isinstance(event, str) else None for event in events])
            events = [None if isinstance(event, str) else event for event in events]
        self._mappings(events, self._attributes.none_taken(), report=True)
        return len(events)

    def _refuse_json(self, form: str) -> None:
        if self._json:
            raise OptionError(f"json names columns of a table; these events are {form}")

    def _texts(self, texts: list[str | None]) -> None:
        """JSON texts; None where another row stands."""
        try:
            array = pa.array(texts, type=pa.large_string())
        except UnicodeEncodeError:
            bad = {row for row, text in enumerate(texts) if text and _SURROGATE.search(text)}
            self._rejects += [(row, "the text holds half a surrogate pair") for row in sorted(bad)]
            readable = [None if row in bad else text for row, text in enumerate(texts)]
            array = pa.array(readable, type=pa.large_string())
        self._document(self._read_json(array), self._attributes.none_taken())

    def _array(self, array: pa.Array) -> None:
        if pa.types.is_struct(array.type) and not is_variant(array.type):
            self._table(pa.Table.from_arrays(array.flatten(), schema=pa.schema(list(array.type))))
            return
        self._refuse_json(f"an array of {array.type}")
        if is_variant(array.type):
            self._document(self._read_variants(array), self._attributes.none_taken())
        elif pa.types.is_map(array.type):
            self._maps([array], self._attributes.none_taken())
        elif pa.types.is_null(array.type):
            return
        elif read_column(array).kind == STRING:
            self._document(self._read_json(array), self._attributes.none_taken())
        else:
            raise EventError(
                f"an Arrow array of events holds JSON text, structs or maps, not {array.type}"
            )

    def _table(self, table: pa.Table | pa.RecordBatch) -> None:
        names = table.schema.names
        refuse_twins(names, "of the events")
        check_json(self._json, table.schema)
        taken = self._attributes.none_taken()
        maps, documents = [], []
        for name, field in zip(names, table.schema, strict=True):
            if name in self._json or is_json(field.type):
                documents.append((self._read_json, name))
            elif is_variant_column(field):
                documents.append((self._read_variants, name))
            else:
                if pa.types.is_map(field.type):
                    maps.append(name)
                path = path_part(name)
                if path in self._names.numbers or path in self._names.prefixes:
                    self._column(path, plain(table.column(name)), taken)
        if len(maps) + len(documents) > 1:
            self._seen = []
        self._maps([plain(table.column(name)) for name in maps], taken)
        for read, name in documents:
            self._document(read(plain(table.column(name))), taken)

    def _column(self, path: str, array: pa.Array, taken: Taken, rows: Rows | None = None) -> None:
        """A column and its fields; with ``rows``, its values stand in these."""
        mark = self._sink.mark()
        for attribute, _, own in self._attributes.columns(path, array, taken):
            column = read_column(own)
            self._sink.add_column(attribute, column)
            if rows is not None:
                self._see(rows[column.rows], attribute)
        if rows is not None:
            self._sink.move_rows(mark, rows)

    def _see(self, rows: Rows, attributes: Any) -> None:
        """These rows have values for these attributes, so that later columns do not count."""
        if self._seen is not None:
            self._seen.append(rows.astype(np.int64) << 32 | attributes)

    def _unseen(self, rows: Rows, attributes: Any) -> npt.NDArray[np.bool_] | None:
        """Which of them have no value yet; None if that is true of all."""
        if not self._seen:
            return None
        where = rows.astype(np.int64) << 32 | attributes
        return ~np.isin(where, np.concatenate(self._seen))

    def _maps(self, arrays: list[pa.Array], taken: Taken) -> None:
        """Entries of map columns; where two columns have the same key in a row, the first wins."""
        if len(arrays) > 1 and any(pa.types.is_struct(array.type.item_type) for array in arrays):
            self._merged_maps(arrays, taken)
            return
        for array in arrays:
            keys, items = plain(array.keys), plain(array.items)
            if read_column(keys).kind != STRING:
                continue
            if pa.types.is_struct(items.type):
                self._struct_entries(array, keys, items, taken)
                continue
            column = read_column(items)
            entries = map_entries(array, keys, column, self._attributes.map_names, taken)
            unseen = self._unseen(entries.rows, entries.attributes)
            if unseen is not None:
                entries = entries.at(unseen)
            if not (column.exact or column.scale):
                self._see(entries.rows, entries.attributes)
                self._sink.add_tagged(tag_entries(column, entries))
                continue
            names = list(self._names.numbers)
            for attribute in np.unique(entries.attributes).tolist():
                own = entries.at(entries.attributes == attribute)
                own_items = items.take(pa.array(own.places))
                self._column(names[attribute], own_items, taken.copy(), own.rows)

    def _merged_maps(self, arrays: list[pa.Array], taken: Taken) -> None:
        """Several map columns, some of structs: rare, so one by one as mappings."""
        events: list[dict[str, Any]] = [{} for _ in range(len(arrays[0]))]
        for array in reversed(arrays):  # so that the first column has the last word
            for event, entries in zip(events, array.to_pylist(), strict=True):
                event.update(e for e in entries or () if e[1] is not None)
        numbers = self._names.numbers
        gone = {name for name, number in numbers.items() if taken[number]}
        for event in events:
            for key in [key for key in event if path_part(key) in gone]:
                del event[key]
        self._mappings(events, taken, report=False)

    def _struct_entries(
        self, array: pa.Array, keys: pa.Array, items: pa.Array, taken: Taken
    ) -> None:
        """Entries that are structs: each key that leads to an attribute is a struct column."""
        wanted = {*self._names.numbers, *self._names.prefixes}
        for key in pc.unique(keys).to_pylist():
            if path_part(key) in wanted:
                rows, places = key_entries(array, keys, key)
                own_items = items.take(pa.array(places))
                self._column(path_part(key), own_items, taken.copy(), rows)

    def _read_json(self, array: pa.Array) -> Document:
        return read_json(array, self._attributes.table)

    def _read_variants(self, array: pa.Array) -> Document:
        return read_variants(array, self._attributes.table, self._attributes.prefixes)

    def _document(self, document: Document, taken: Taken) -> None:
        """What documents say about attributes that no column before them has."""
        values, rejects = document
        self._rejects += rejects
        if taken.any():
            values = values.at(taken[values.attributes] == 0)
        unseen = self._unseen(values.rows, values.attributes)
        if unseen is not None:
            values = values.at(unseen)
        self._tagged(values, report=True)
        self._sink.add_variant_numbers(values)

    def _mappings(self, events: Sequence[Any], taken: Taken, *, report: bool) -> None:
        values, exact, rejected = flatten(events, self._names)
        self._rejects += rejected
        if taken.any():
            values = values.at(taken[values.attributes] == 0)
            exact = [number for number in exact if not taken[number[1]]]
        self._tagged(values, report=report)
        self._sink.add_exact_numbers(exact)

    def _tagged(self, values: TaggedValues, *, report: bool) -> None:
        self._see(values.rows, values.attributes)
        self._sink.add_tagged(values)
        if report and self._kinds is not None:
            self.strays.append(self._kinds.strays(values))
