"""Events in whatever form they come, as cells in rank space.

====================================  ==========================================================
form                                  attributes
====================================  ==========================================================
``pyarrow.Table``, ``RecordBatch``    one column each; a struct's fields by dotted path; the
                                      entries of a ``map<string, ...>`` column by key
Arrow array of strings                JSON objects, nested ones by dotted path
Arrow array of structs or maps        as above
pandas ``DataFrame``                  one column each
list of mappings, one mapping         by key, nested ones by dotted path
list of strings, one string           JSON objects
====================================  ==========================================================

Only attributes that a subscription mentions are read. A column of its own wins over an entry of the
same name in a map. What cannot be read (broken JSON, a row that is no mapping) is rejected with a
reason and counts as an event without attributes.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.engine.jit import frozen
from bittern.errors import EventError
from bittern.model.cells import (
    float_pairs,
    integer_pairs,
    string_pairs,
    tagged_pairs,
)
from bittern.model.columns import Column, from_frame, plain, read_column
from bittern.model.encoded import EncodedEvents, encode_pairs
from bittern.model.json_text import REJECT_REASONS, scan_json
from bittern.model.mappings import Names, flatten, path_part
from bittern.model.maps import key_entries, map_entries, map_names, tag_entries
from bittern.model.numbers import Number, exact, floors_at_scale
from bittern.model.patterns import PatternSet
from bittern.model.rank import ANY, NUMBER, REVERSED, STRING, RankSpace, reverse_strings
from bittern.model.strings import arrow_strings, gather_strings
from bittern.model.tagged import STRING as STRING_TAG
from bittern.model.tagged import TaggedValues

Pairs = npt.NDArray[np.uint64]
_SHIFT = np.uint64(32)
_ROW_MASK = np.uint64(0xFFFFFFFF)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoded(NamedTuple):
    """Events in rank space, and those that could not be read: (row, reason)."""

    events: EncodedEvents
    rejects: list[tuple[int, str]]


class Encoder:
    """Encodes events for one rank space. Immutable; threads may share it."""

    def __init__(self, rank: RankSpace, patterns: Mapping[int, PatternSet]) -> None:
        self._rank = rank
        self._arrays = frozen(rank.arrays)
        self._patterns = patterns
        channels, owners = rank.pattern_channels()  # an attribute's lie together
        firsts = np.searchsorted(owners, sorted(patterns)).tolist()
        self._first_pattern = dict(zip(sorted(patterns), channels[firsts].tolist(), strict=True))
        self._names = Names(rank.attribute_names())
        self.map_names = map_names(list(self._names.numbers))
        self._numbers: dict[int, list[Number]] = {}
        self._floors: dict[tuple[int, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def numbers(self, channel: int) -> list[Number]:
        """The constants of a numeric channel, exactly; read once."""
        if channel not in self._numbers:
            constants = self._rank.constants(channel)
            self._numbers[channel] = [constants.number(i) for i in range(len(constants.floors))]
        return self._numbers[channel]

    def floors(self, channel: int, scale: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The constants of a numeric channel in another unit; computed once."""
        if (channel, scale) not in self._floors:
            self._floors[channel, scale] = floors_at_scale(self._rank.constants(channel), scale)
        return self._floors[channel, scale]

    def encode(self, events: Any) -> Encoded:
        """Read a batch in any of the forms above. O(values)."""
        batch = _Batch(self)
        n_events = batch.read(events)
        pairs = np.concatenate([np.empty(0, dtype=np.uint64), *batch.pairs])
        return Encoded(encode_pairs(pairs, n_events, self._arrays.bases), sorted(batch.rejects))


class _Batch:
    """One batch on its way into rank space: pairs pile up as columns are read."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._rank = encoder._arrays  # noqa: SLF001
        self._names = encoder._names  # noqa: SLF001
        self.pairs: list[Pairs] = []
        self.rejects: list[tuple[int, str]] = []

    def read(self, events: Any) -> int:
        """Read events of any form; returns how many there are."""
        if isinstance(events, pa.Table | pa.RecordBatch):
            self._table(events)
            return int(events.num_rows)
        if isinstance(events, pa.Array | pa.ChunkedArray):
            self._array(plain(events))
            return len(events)
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
        if any(isinstance(event, str) for event in events):
            self._texts([event if isinstance(event, str) else None for event in events])
            events = [None if isinstance(event, str) else event for event in events]
        self._mappings(events)
        return len(events)

    def _texts(self, texts: list[str | None]) -> None:
        """JSON texts; None where another row stands."""
        try:
            array = pa.array(texts, type=pa.large_string())
        except UnicodeEncodeError:
            bad = {row for row, text in enumerate(texts) if text and _SURROGATE.search(text)}
            self.rejects += [(row, "the text holds half a surrogate pair") for row in sorted(bad)]
            readable = [None if row in bad else text for row, text in enumerate(texts)]
            array = pa.array(readable, type=pa.large_string())
        self._json(array)

    def _array(self, array: pa.Array) -> None:
        if pa.types.is_struct(array.type):
            names = [field.name for field in array.type]
            self._table(pa.Table.from_arrays(array.flatten(), names))
        elif pa.types.is_map(array.type):
            self._maps([array], np.zeros(max(1, len(self._names.numbers)), dtype=np.uint8))
        elif pa.types.is_null(array.type):
            return
        elif read_column(array).kind == STRING:
            self._json(array)
        else:
            raise EventError(
                f"an Arrow array of events holds JSON text, structs or maps, not {array.type}"
            )

    def _table(self, table: pa.Table | pa.RecordBatch) -> None:
        names = table.schema.names
        _refuse_twins(names, "of the events")
        taken = np.zeros(max(1, len(self._names.numbers)), dtype=np.uint8)
        maps = []
        for name, field in zip(names, table.schema, strict=True):
            path = path_part(name)
            if pa.types.is_map(field.type):
                maps.append(name)
            if path in self._names.numbers or path in self._names.prefixes:
                self._column(path, plain(table.column(name)), taken)
        self._maps([plain(table.column(name)) for name in maps], taken)

    def _column(self, path: str, array: pa.Array, taken: npt.NDArray[np.uint8]) -> None:
        attribute = self._names.numbers.get(path)
        if attribute is not None and not taken[attribute]:
            taken[attribute] = 1
            self._values(attribute, read_column(array))
        if pa.types.is_struct(array.type) and path in self._names.prefixes:
            _refuse_twins([field.name for field in array.type], f"in {path!r}")
            for field, inner in zip(array.type, array.flatten(), strict=True):
                inner_path = f"{path}.{path_part(field.name)}"
                if inner_path in self._names.numbers or inner_path in self._names.prefixes:
                    self._column(inner_path, plain(inner), taken)

    def _entries(
        self, path: str, items: pa.Array, rows: npt.NDArray[np.int64], taken: npt.NDArray[np.uint8]
    ) -> None:
        """Values of one attribute that stand in these rows."""
        before = len(self.pairs)
        self._column(path, items, taken.copy())
        for i in range(before, len(self.pairs)):
            pairs = self.pairs[i]
            moved = rows[(pairs & _ROW_MASK).astype(np.int64)].astype(np.uint64)
            self.pairs[i] = (pairs & ~_ROW_MASK) | moved

    def _values(self, attribute: int, column: Column) -> None:
        """All pairs that one column gives: of its kind, reversed, any, patterns."""
        channels = self._rank.channels[attribute]
        room = len(column.array) - column.array.null_count
        if channels[ANY] >= 0:
            rows = np.flatnonzero(column.valid) if len(column.valid) else np.arange(room)
            self._add_cells(int(channels[ANY]), rows, np.zeros(room, dtype=np.int64))
        if column.kind == STRING:
            self._strings(attribute, column, room)
            return
        channel = int(channels[column.kind]) if column.kind >= 0 else -1
        if channel < 0:
            return
        if column.exact:
            for row, number in enumerate(column.array.to_pylist()):
                if number is not None:
                    self._add_exact(row, channel, number)
        elif column.scale:
            self._scaled(channel, column)
        else:
            pairs = np.empty(room, dtype=np.uint64)
            assert column.values is not None
            write = float_pairs if column.values.dtype == np.float64 else integer_pairs
            write(self._rank, channel, column.values, column.valid, pairs, 0)
            self.pairs.append(pairs)

    def _strings(self, attribute: int, column: Column, room: int) -> None:
        data, offsets, _ = arrow_strings(column.array)
        channels = self._rank.channels[attribute]
        if channels[STRING] >= 0:
            pairs = np.empty(room, dtype=np.uint64)
            string_pairs(self._rank, channels[STRING], data, offsets, column.valid, pairs, 0)
            self.pairs.append(pairs)
        if channels[REVERSED] >= 0:
            turned = np.empty(int(offsets[-1] - offsets[0]), dtype=np.uint8)
            reverse_strings(data, offsets, turned)
            pairs = np.empty(room, dtype=np.uint64)
            string_pairs(
                self._rank, channels[REVERSED], turned, offsets - offsets[0], column.valid, pairs, 0
            )
            self.pairs.append(pairs)
        if attribute in self._encoder._patterns:  # noqa: SLF001
            rows = np.flatnonzero(column.valid) if len(column.valid) else np.arange(room)
            self._match_patterns(attribute, rows, column.array.drop_null())

    def _match_patterns(self, attribute: int, rows: npt.NDArray[Any], strings: pa.Array) -> None:
        """Match each distinct string once, then give every row its string's patterns."""
        encoded = strings.dictionary_encode()
        data, offsets, _ = arrow_strings(encoded.dictionary)
        patterns = self._encoder._patterns[attribute]  # noqa: SLF001
        row_offsets, ids = patterns.match(data, offsets)
        codes = encoded.indices.to_numpy()
        counts = np.diff(row_offsets)[codes]
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
        found = ids[np.repeat(row_offsets[:-1][codes], counts) + within]
        first = self._encoder._first_pattern[attribute]  # noqa: SLF001
        cells = self._rank.bases[first + found].astype(np.uint64)
        self.pairs.append(cells << _SHIFT | np.repeat(rows, counts).astype(np.uint64))

    def _add_cells(
        self, channel: int, rows: npt.NDArray[Any], cells: npt.NDArray[np.int64]
    ) -> None:
        packed = (cells + int(self._rank.bases[channel])).astype(np.uint64) << _SHIFT
        self.pairs.append(packed | rows.astype(np.uint64))

    def _scaled(self, channel: int, column: Column) -> None:
        """Integers in another unit than the constants: compare with the constants in that unit."""
        floors, whole = self._encoder.floors(channel, column.scale)
        assert column.values is not None
        rows = np.flatnonzero(column.valid) if len(column.valid) else np.arange(len(column.values))
        values = column.values[rows]
        # Constants clamped to the least int64 lie below every value.
        below = int(np.count_nonzero((floors == np.iinfo(np.int64).min) & ~whole))
        at = below + np.searchsorted(floors[below:], values, "left")
        inside = np.minimum(at, max(0, len(floors) - 1))
        equal = (at < len(floors)) & (floors[inside] == values) & whole[inside]
        self._add_cells(channel, rows, 2 * at + equal)

    def _add_exact(self, row: int, channel: int, value: Decimal | int) -> None:
        """A number that no machine type holds, by exact comparison."""
        numbers = self._encoder.numbers(channel)
        number: Number = exact(value)
        at = bisect.bisect_left(numbers, number)
        equal = at < len(numbers) and numbers[at] == number
        self._add_cells(channel, np.array([row]), np.array([2 * at + int(equal)]))

    def _maps(self, arrays: list[pa.Array], taken: npt.NDArray[np.uint8]) -> None:
        """Entries of map columns; where two columns have the same key in a row, the first wins."""
        if len(arrays) > 1 and any(pa.types.is_struct(array.type.item_type) for array in arrays):
            self._merged_maps(arrays, taken)
            return
        seen = np.empty(0, dtype=np.int64)
        for array in arrays:
            keys, items = plain(array.keys), plain(array.items)
            if read_column(keys).kind != STRING:
                continue
            if pa.types.is_struct(items.type):
                self._struct_entries(array, keys, items, taken)
                continue
            column = read_column(items)
            entries = map_entries(array, keys, column, self._encoder.map_names, taken)
            if len(arrays) > 1:
                where = entries.rows << 32 | entries.attributes
                entries = entries.at(~np.isin(where, seen))
                seen = np.concatenate((seen, where))
            if not (column.exact or column.scale):
                self._tagged(tag_entries(column, entries))
                continue
            names = list(self._names.numbers)
            for attribute in np.unique(entries.attributes).tolist():
                own = entries.at(entries.attributes == attribute)
                own_items = items.take(pa.array(own.places))
                self._entries(names[attribute], own_items, own.rows, taken)

    def _merged_maps(self, arrays: list[pa.Array], taken: npt.NDArray[np.uint8]) -> None:
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
        self._mappings(events)

    def _struct_entries(
        self, array: pa.Array, keys: pa.Array, items: pa.Array, taken: npt.NDArray[np.uint8]
    ) -> None:
        """Entries that are structs: each key that leads to an attribute is a struct column."""
        wanted = {*self._names.numbers, *self._names.prefixes}
        for key in pc.unique(keys).to_pylist():
            if path_part(key) in wanted:
                rows, places = key_entries(array, keys, key)
                self._entries(path_part(key), items.take(pa.array(places)), rows, taken)

    def _json(self, array: pa.Array) -> None:
        data, offsets, valid = arrow_strings(array)
        names = self._encoder._rank.names  # noqa: SLF001
        values, rows, reasons = scan_json(data, offsets, valid, names)
        self._tagged(values)
        self.rejects += [
            (row, REJECT_REASONS[reason])
            for row, reason in zip(rows.tolist(), reasons.tolist(), strict=True)
        ]

    def _mappings(self, events: Sequence[Any]) -> None:
        flattened = flatten(events, self._names)
        self._tagged(flattened.values)
        for row, attribute, number in flattened.exact:
            channel = int(self._rank.channels[attribute, NUMBER])
            if channel >= 0:
                self._add_exact(row, channel, number)
        self.rejects += flattened.rejected

    def _tagged(self, values: TaggedValues) -> None:
        pairs = np.empty(3 * len(values.rows), dtype=np.uint64)
        longest = int(values.lengths.max(initial=0))
        n = tagged_pairs(
            self._rank,
            values.rows,
            values.attributes,
            values.tags,
            values.payloads,
            values.payloads.view(np.float64),
            values.lengths,
            values.data,
            np.empty(longest, dtype=np.uint8),
            pairs,
        )
        self.pairs.append(pairs[:n])
        patterns = self._encoder._patterns  # noqa: SLF001
        if not patterns:
            return
        strings = np.flatnonzero(values.tags == STRING_TAG)
        strings = strings[np.argsort(values.attributes[strings], kind="stable")]
        present, starts = np.unique(values.attributes[strings], return_index=True)
        for attribute, chosen in zip(present.tolist(), np.split(strings, starts[1:]), strict=False):
            if attribute not in patterns:
                continue
            lengths = values.lengths[chosen].astype(np.int64)
            offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
            np.cumsum(lengths, out=offsets[1:])
            text = np.empty(int(offsets[-1]), dtype=np.uint8)
            gather_strings(
                values.data, values.payloads[chosen], values.lengths[chosen], offsets, text
            )
            array = pa.LargeStringArray.from_buffers(
                len(chosen), pa.py_buffer(offsets), pa.py_buffer(text)
            )
            self._match_patterns(attribute, values.rows[chosen], array)


def _refuse_twins(names: list[str], where: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EventError(f"two columns {where} are named {twice!r}")
