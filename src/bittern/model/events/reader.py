"""Reads events of any form, attribute by attribute, into a sink.

====================================  ==========================================================
form                                  attributes
====================================  ==========================================================
``pyarrow.Table``, ``RecordBatch``    one column each; a struct's fields and the entries of a
                                      ``map<string, ...>`` by dotted path, those of a map column
                                      also by key alone; the fields of *objects*: variants, and
                                      JSON text that ``json`` names
Arrow array of strings                JSON objects, nested ones by dotted path
Arrow array of structs or maps        as above
pandas ``DataFrame``                  one column each, and objects
list of mappings, one mapping         by key, nested ones by dotted path
list of strings, one string           JSON objects
====================================  ==========================================================

Only attributes that a subscription mentions are read. A path that leads into a list is a value
without a kind, present if the list is. If an attribute is in several places, its own column wins,
with everything inside it. Then come the keys of maps, then objects, each in the order of the
columns, and the first that has a value in the row wins. With ``json="doc"``::

    price   m                        doc                            the event
    5       {price: 6, color: red}   {"color": "tan", "size": 3}    price 5, color red, size 3
    null    {color: null}            {"color": "tan", "price": 9}   color tan

An event that cannot be read (broken JSON, a string that is not UTF-8, a row that is not a mapping)
is rejected with a reason. It has no values here, whatever its other columns hold, and matches
nothing, not even ``a IS NULL``. Values of a kind that no subscription compares their attribute with
are reported (``model/events/mistyped.py``) where each value has its own type: in mappings, JSON and
variants. The types of columns are known beforehand, and ``Encoder.mistyped_columns`` judges them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import EventError, OptionError
from bittern.language.literals import TERM
from bittern.model.events.attributes import Attributes, Taken, refuse_twins
from bittern.model.events.batch import EventRows
from bittern.model.events.columns import from_frame, is_list, is_nested, plain, read_column
from bittern.model.events.mappings import flatten
from bittern.model.events.mistyped import Strays
from bittern.model.events.objects import (
    Objects,
    check_json,
    is_json,
    is_variant,
    is_variant_column,
    json_names,
    read_json,
    read_variants,
)
from bittern.model.events.reads import Rejects, first_reasons
from bittern.model.events.sinks import KeptEvents, OpeningSink, StraySeeker, ValueSink
from bittern.model.events.utf8 import broken_rows, broken_strings
from bittern.model.rank.space import STRING
from bittern.model.tagged import TaggedValues

_SURROGATE = re.compile("[\ud800-\udfff]")


class EventReader:
    """One batch being read into a sink: rejects and, where kinds are given, strays pile up."""

    def __init__(
        self,
        attributes: Attributes,
        sink: ValueSink,
        json: str | Sequence[str],
        kinds: StraySeeker | None = None,
    ) -> None:
        self._attributes = attributes
        self._names = attributes.names
        self._sink = sink
        self._json = json_names(json)
        self._kinds = kinds
        #: The sink, if it wants to know what lists and objects hold.
        self._opening: OpeningSink | None = cast("Any", sink) if hasattr(sink, "within") else None
        self._seen: list[npt.NDArray[np.int64]] | None = None
        self.rejects: Rejects = []
        self.strays: list[Strays] = []

    def rejected(self) -> Rejects:
        """The rows that could not be read, ascending, each with the first reason."""
        return first_reasons(self.rejects)

    def read(self, events: Any) -> int:
        """Read events of any form; returns how many there are."""
        if isinstance(events, pa.Table | pa.RecordBatch):
            self._table(events)
            return int(events.num_rows)
        if isinstance(events, pa.Array | pa.ChunkedArray):
            self._array(plain(events))
            return len(events)
        if hasattr(events, "read_into"):
            stored: KeptEvents = events
            n_events, rejects = stored.read_into(self._attributes, self._sink)
            self.rejects += rejects
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
                f"events must be an Arrow table or array, a list of mappings, or one mapping, "
                f"not {type(events).__name__}"
            )
        self._refuse_json("a list")
        if any(isinstance(event, str) for event in events):
            self._texts([event if isinstance(event, str) else None for event in events])
            events = [None if isinstance(event, str) else event for event in events]
        self._mappings(events)
        return len(events)

    def _refuse_json(self, form: str) -> None:
        if self._json:
            raise OptionError(f"json needs a table with columns, but these events are {form}")

    def _texts(self, texts: list[str | None]) -> None:
        """JSON texts; None where another row stands."""
        try:
            array = pa.array(texts, type=pa.large_string())
        except UnicodeEncodeError:
            bad = {row for row, text in enumerate(texts) if text and _SURROGATE.search(text)}
            self.rejects += [(row, "the text holds half a surrogate pair") for row in sorted(bad)]
            readable = [None if row in bad else text for row, text in enumerate(texts)]
            array = pa.array(readable, type=pa.large_string())
        self._objects(self._read_json(array), self._attributes.none_taken())

    def _array(self, array: pa.Array) -> None:
        if pa.types.is_struct(array.type) and not is_variant(array.type):
            self._table(pa.Table.from_arrays(array.flatten(), schema=pa.schema(list(array.type))))
            return
        self._refuse_json(f"an array of {array.type}")
        if is_variant(array.type):
            self._objects(self._read_variants(array), self._attributes.none_taken())
        elif pa.types.is_map(array.type):
            self._maps([array], self._attributes.none_taken())
        elif pa.types.is_null(array.type):
            return
        elif read_column(array).kind == STRING:
            self._objects(self._read_json(array), self._attributes.none_taken())
        else:
            raise EventError(
                f"an Arrow array of events must hold JSON text, structs or maps, not {array.type}"
            )

    def _table(self, table: pa.Table | pa.RecordBatch) -> None:
        names = table.schema.names
        refuse_twins(names, "of the events")
        check_json(self._json, table.schema)
        taken = self._attributes.none_taken()
        maps, objects = [], []
        in_use = self._names.paths("", names)
        for name, field, paths in zip(names, table.schema, in_use, strict=True):
            if name.startswith(TERM):
                continue  # no attribute of an event has such a name
            if name in self._json or is_json(field.type):
                objects.append((self._read_json, name))
            elif is_variant_column(field):
                objects.append((self._read_variants, name))
            else:
                if pa.types.is_map(field.type):
                    maps.append(name)
                for path in paths:
                    self._column(path, table.column(name), taken)
        if len(maps) + len(objects) > 1:
            self._seen = []
        self._maps([plain(table.column(name)) for name in maps], taken)
        for read, name in objects:
            self._objects(read(plain(table.column(name))), taken)

    def _column(
        self,
        path: str,
        array: pa.Array | pa.ChunkedArray,
        taken: Taken,
        rows: EventRows | None = None,
    ) -> None:
        """A column and what lies inside it, which is ``taken`` from now on.

        With ``rows``, it is what some rows have in a map, and the others may have it elsewhere.
        """
        array = plain(array)
        found = []
        if path in self._names.numbers:
            found.append(self._names.numbers[path])
        inside = self._names.below(path) if path in self._names.prefixes else []
        if inside and pa.types.is_struct(array.type) and not is_variant(array.type):
            fields = [field.name for field in array.type]
            refuse_twins(fields, f"in {path!r}")
            in_use = self._names.paths(path, fields)
            for inner, inner_paths in zip(array.flatten(), in_use, strict=True):
                for inner_path in inner_paths:
                    self._column(inner_path, inner, taken, rows)
        elif inside and pa.types.is_map(array.type):
            self._map(path, array, taken, rows)
        elif is_list(array.type):
            found += inside
        for attribute in found:
            if not taken[attribute]:
                own = array
                if self._opening is not None and attribute != self._names.numbers.get(path):
                    own = self._opening.within(attribute, path, array)
                self._values(attribute, own, rows)
        if rows is None:
            taken[found if pa.types.is_struct(array.type) else [*found, *inside]] = 1

    def _values(self, attribute: int, array: pa.Array, rows: EventRows | None) -> None:
        """The values of one attribute; with ``rows``, they stand in these."""
        column = read_column(array)
        opened = self._opening is not None and is_nested(array.type)
        if column.kind == STRING or opened:
            broken = broken_rows(array) if opened else broken_strings(array)
            if len(broken):
                verb = "holds" if opened else "is"
                self._reject(attribute, broken if rows is None else rows[broken], verb)
                lost = np.isin(np.arange(len(array)), broken)
                column = read_column(array.take(pa.array(np.arange(len(array)), mask=lost)))
        mark = self._sink.mark()
        self._sink.add_column(attribute, column)
        if rows is not None:
            self._see(rows[column.rows], attribute)
            self._sink.move_rows(mark, rows)

    def _reject(self, attribute: int, rows: EventRows, verb: str = "is") -> None:
        """Reject these rows, whose strings are not UTF-8."""
        name = list(self._names.numbers)[attribute]
        why = f"{name} {verb} a string that is not valid UTF-8"
        self.rejects += [(row, why) for row in rows.tolist()]

    def _see(self, rows: EventRows, attributes: Any) -> None:
        """Note that these rows have values for these attributes: later columns are ignored."""
        if self._seen is not None:
            self._seen.append(rows.astype(np.int64) << 32 | attributes)

    def _unseen(self, rows: EventRows, attributes: Any) -> npt.NDArray[np.bool_] | None:
        """Which of them have no value yet; None if that is true of all."""
        if not self._seen:
            return None
        where = rows.astype(np.int64) << 32 | attributes
        return ~np.isin(where, np.concatenate(self._seen))

    def _maps(self, arrays: list[pa.Array], taken: Taken) -> None:
        """Maps whose entries are attributes; of those that have a key in a row, the first wins."""
        claimed: list[npt.NDArray[np.int64]] = []
        for array in arrays:
            self._map("", array, taken, None, claimed)

    def _map(
        self,
        path: str,
        array: pa.Array,
        taken: Taken,
        rows: EventRows | None,
        claimed: list[npt.NDArray[np.int64]] | None = None,
    ) -> None:
        """The entries of a map, whose keys stand behind a path; with ``rows``, in these.

        ``claimed`` are entries, ``row << 32 | key``, that maps before it have; its own are added.
        """
        from bittern.model.events.maps import (  # noqa: PLC0415  only for maps
            map_entries,
            rows_of_places,
            tag_entries,
        )

        keys, items = plain(array.keys), plain(array.items)
        if read_column(keys).kind != STRING:
            return
        broken = rows_of_places(array, keys, broken_strings(keys))
        broken = broken if rows is None else rows[broken]
        self.rejects += [(row, "a key of a map is not valid UTF-8") for row in broken.tolist()]
        asked = self._attributes.keys(path)
        entries = map_entries(array, keys, items, asked.table)
        if rows is not None:
            entries = entries._replace(rows=rows[entries.rows])
        if claimed is not None:
            own = entries.rows << 32 | entries.names
            if claimed:
                entries = entries.at(~np.isin(own, np.concatenate(claimed)))
            claimed.append(own)
        column = read_column(items)
        has_tags = not (is_nested(items.type) or column.exact or column.scale)
        if self._opening is not None or not has_tags:  # and tags do not keep the type
            for key in np.unique(entries.names).tolist():
                each = entries.at(entries.names == key)
                inner = items.take(pa.array(each.places))
                self._column(asked.paths[key], inner, taken, each.rows)
            return
        entries = entries._replace(names=asked.attributes[entries.names])
        entries = entries.at((entries.names >= 0) & (taken[entries.names] == 0))
        if column.kind == STRING:
            wrong = broken_strings(items, entries.places)
            for attribute in np.unique(entries.names[wrong]).tolist():
                self._reject(attribute, entries.rows[wrong][entries.names[wrong] == attribute])
            entries = entries.at(np.isin(np.arange(len(entries.rows)), wrong, invert=True))
        self._see(entries.rows, entries.names)
        self._sink.add_tagged(tag_entries(column, entries))

    def _read_json(self, array: pa.Array) -> Objects:
        return read_json(array, self._attributes.table)

    def _read_variants(self, array: pa.Array) -> Objects:
        return read_variants(array, self._attributes.table)

    def _objects(self, objects: Objects, taken: Taken) -> None:
        """What objects say about attributes that no column before them has."""
        values, rejects = self._names.spread(objects.values), objects.rejects
        self.rejects += rejects
        if taken.any():
            values = values.at(taken[values.attributes] == 0)
        unseen = self._unseen(values.rows, values.attributes)
        if unseen is not None:
            values = values.at(unseen)
        self._tagged(values)
        if self._opening is not None and objects.open is not None:
            self._opening.add_others(values, objects.open)
        self._sink.add_variant_numbers(values)

    def _mappings(self, events: Sequence[Any]) -> None:
        others: list[Any] | None = None if self._opening is None else []
        flattened, exact, rejected = flatten(events, self._names, others)
        self.rejects += rejected
        values = self._names.spread(flattened)
        self._tagged(values)
        if self._opening is not None and others:
            self._opening.add_others(values, lambda _row, payload: others[payload])
        self._sink.add_exact_numbers(exact)

    def _tagged(self, values: TaggedValues) -> None:
        self._see(values.rows, values.attributes)
        self._sink.add_tagged(values)
        if self._kinds is not None:
            self.strays.append(self._kinds.strays(values))
