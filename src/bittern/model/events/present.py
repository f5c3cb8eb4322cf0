"""Which attributes an event has at all, NULL or not, for ``a IS MISSING``.

Each attribute of the index that stands for the presence of another (``language/presence.py``) has a
cell where the other is there. Events are read once more for these, by the same way through every
form (``model/events/reader.py``)::

    mappings, JSON, variants   a.b is there if the object ``a`` has the key ``b``, null or not; or
                               ``a`` is null, so that ``a.b`` is null as well; or ``a`` is a list
    columns                    if the column ``a`` has a field ``b``: the type says it, for all rows
    a column of maps           if the map of the row has the key ``b``, or is NULL

What is in several places is there if one of them has it. O(values of the events' forms), like
reading them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.language.presence import is_presence, present_path
from bittern.model.events.attributes import Attributes, Taken
from bittern.model.events.batch import EventRows
from bittern.model.events.columns import is_nested, plain, read_column
from bittern.model.events.mappings import LISTS, MAX_DEPTH, path_part, plain_value
from bittern.model.events.maps import map_entries
from bittern.model.events.objects import Objects, read_json, read_variants
from bittern.model.events.reader import EventReader
from bittern.model.events.reads import Rejects
from bittern.model.events.sinks import ValueSink
from bittern.model.rank.space import STRING


class PresentAttributes:
    """The attributes of one rank space that stand for the presence of others. Immutable."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        """From the numbers of all attributes by name."""
        own = {present_path(name): i for name, i in numbers.items() if is_presence(name)}
        self._numbers = np.array(list(own.values()), dtype=np.int64)
        self._found_as = Attributes(list(own))

    def add(self, events: Any, json: str | Sequence[str], sink: ValueSink) -> Rejects:
        """Tell a sink which attributes are there; returns the rows that cannot be read."""
        assert not hasattr(events, "read_into"), "no condition on documents asks what they lack"
        reader = _PresenceReader(self._found_as, json)
        reader.read(events)
        attributes, rows = reader.present()
        sink.add_present(self._numbers[attributes], rows)
        return reader.rejected()

    def in_mapping(self, event: Mapping[Any, Any]) -> list[int]:
        """The attributes that are there in one event, some perhaps repeated. O(keys)."""
        found: list[int] = self._numbers[_PresenceReader(self._found_as, ()).keys(event)].tolist()
        return found


def present_names(names: Sequence[str], event: Any) -> set[str]:
    """Of attributes that stand for the presence of others, those that one event has."""
    reader = _PresenceReader(Attributes(list(map(present_path, names))), ())
    reader.read(event)
    return {names[number] for number in reader.present()[0].tolist()}


class _PresenceReader(EventReader):
    """Reads which attributes are there, in place of their values."""

    def __init__(self, attributes: Attributes, json: str | Sequence[str]) -> None:
        super().__init__(attributes, _NO_SINK, json)
        self._found: list[npt.NDArray[np.int64]] = []  # row << 32 | attribute

    def present(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The attributes that are there, each once for a row, and their rows."""
        found = np.concatenate([np.empty(0, dtype=np.int64), *self._found])
        if len(self._found) > 1:
            found = np.unique(found)
        return found & 0xFFFFFFFF, found >> 32

    def _add(self, rows: EventRows, attributes: Any) -> None:
        self._found.append(rows.astype(np.int64) << 32 | attributes)

    def _values(self, attribute: int, array: pa.Array, rows: EventRows | None) -> None:
        self._add(np.arange(len(array)) if rows is None else rows, attribute)

    def _map(
        self,
        path: str,
        array: pa.Array,
        taken: Taken,
        rows: EventRows | None,
        claimed: list[npt.NDArray[np.int64]] | None = None,  # noqa: ARG002  any map may have it
    ) -> None:
        keys, items = plain(array.keys), plain(array.items)
        if read_column(keys).kind != STRING:
            return
        if path and array.null_count:
            nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
            for attribute in self._names.below(path):
                if not taken[attribute]:
                    self._add(nulls if rows is None else rows[nulls], attribute)
        asked = self._attributes.keys(path)
        entries = map_entries(array, keys, items, asked.table, nulls=True)
        if rows is not None:
            entries = entries._replace(rows=rows[entries.rows])
        if is_nested(items.type):
            for key in np.unique(entries.names).tolist():
                each = entries.at(entries.names == key)
                inner = items.take(pa.array(each.places))
                self._column(asked.paths[key], inner, taken, each.rows)
            return
        attributes = asked.attributes[entries.names]
        kept = (attributes >= 0) & (taken[attributes] == 0)
        self._add(entries.rows[kept], attributes[kept])

    def _read_json(self, array: pa.Array) -> Objects:
        return read_json(array, self._attributes.table, nulls=True)

    def _read_variants(self, array: pa.Array) -> Objects:
        return read_variants(array, self._attributes.table, nulls=True)

    def _objects(self, objects: Objects, taken: Taken) -> None:
        self.rejects += objects.rejects
        values = self._names.spread(objects.values)
        kept = taken[values.attributes] == 0
        self._add(values.rows[kept], values.attributes[kept])

    def _mappings(self, events: Sequence[Any]) -> None:
        rows: list[int] = []
        attributes: list[int] = []
        for row, event in enumerate(events):
            if not isinstance(event, Mapping):
                continue  # nothing, or listed as a reject where values are read
            try:
                found = self.keys(event)
            except MemoryError:  # of this process, not of the event
                raise
            except Exception as wrong:  # noqa: BLE001  whatever is in an event, the others count
                self.rejects.append((row, f"unreadable: {wrong!r}"))
                continue
            rows += [row] * len(found)
            attributes += found
        self._add(np.array(rows, dtype=np.int64), np.array(attributes, dtype=np.int64))

    def keys(self, event: Mapping[Any, Any]) -> list[int]:
        """The attributes that a mapping has."""
        numbers, prefixes = self._names.numbers, self._names.prefixes
        found: list[int] = []
        waiting: list[tuple[str, int, Mapping[Any, Any]]] = [("", 0, event)]
        while waiting:
            prefix, depth, mapping = waiting.pop()
            for key, value in mapping.items():
                if not isinstance(key, str):
                    continue
                path = prefix + path_part(key)
                if path in numbers:
                    found.append(numbers[path])
                if path not in prefixes:
                    continue
                if isinstance(value, Mapping) and depth < MAX_DEPTH:
                    waiting.append((path + ".", depth + 1, value))
                elif isinstance(value, LISTS) or plain_value(value) is None:
                    found += self._names.below(path)
        return found


#: Nothing is put into it: values are not read.
_NO_SINK: Any = object()
