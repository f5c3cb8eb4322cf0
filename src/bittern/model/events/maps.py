"""Map columns: the entries whose key is asked for.

A ``map<string, ...>`` column holds, row after row, keys and values::

    row 0: {a: 1, b: 2}   row 1: null   row 2: {b: 5, b: 6}
    keys     a b b b      offsets 0 2 2 4
    items    1 2 5 6

A key is one part of a path, taken literally: the key ``x.y`` of a column ``m`` is the attribute
``m.`x.y` ``, and `` `x.y` `` as well. Of a key that comes twice in a map, the last value counts; a
null value counts as missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.jit import i8, i8r, i8w, kernel, u1r
from bittern.model.events.columns import Column, validity
from bittern.model.events.mappings import MAX_STRING
from bittern.model.rank.space import BOOLEAN, NUMBER, STRING, TIME
from bittern.model.strings import (
    FOUND,
    KEY_ROWS,
    STARTS,
    STOPS,
    STRING_TABLE,
    TOGETHER,
    StringTable,
    arrow_strings,
    find_together,
)
from bittern.model.tagged import BOOLEAN as BOOLEAN_TAG
from bittern.model.tagged import FLOAT, INTEGER, OTHER, TIMESTAMP, TaggedValues
from bittern.model.tagged import STRING as STRING_TAG

_ALL_VALID = np.empty(0, dtype=np.uint8)
_TAG_OF_KIND = {NUMBER: INTEGER, STRING: STRING_TAG, BOOLEAN: BOOLEAN_TAG, TIME: TIMESTAMP}


class MapEntries(NamedTuple):
    """Used entries: their row, what the key stands for, and place among the keys and items."""

    rows: npt.NDArray[np.int64]
    names: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    def at(self, which: npt.NDArray[np.bool_]) -> MapEntries:
        """Some of them."""
        return MapEntries(*(column[which] for column in self))


def _map_offsets(array: pa.Array, keys: pa.Array) -> npt.NDArray[np.int64]:
    """Where each map's entries begin in ``keys``, and the end.

    The offsets of a sliced array still count from the start of its unsliced children.
    """
    offsets = np.asarray(array.offsets).astype(np.int64)
    return offsets - offsets[0] if len(keys) == offsets[-1] - offsets[0] else offsets


@kernel(i8, STRING_TABLE, u1r, i8r, i8r, u1r, u1r, i8w, i8w, i8w)
def _used_entries(
    names: Any,
    key_data: Any,
    key_offsets: Any,
    map_offsets: Any,
    valid_maps: Any,
    valid_values: Any,
    out_rows: Any,
    out_names: Any,
    last_of: Any,
) -> Any:
    """Entries of maps whose key is among the names: writes (row, name << 32 | entry).

    A key that comes twice in a map counts once, with its last value.
    """
    n = 0
    keys, begin, end = np.empty((KEY_ROWS, TOGETHER), dtype=np.int64), np.int64(0), np.int64(0)
    for row in range(len(map_offsets) - 1):
        if len(valid_maps) and not valid_maps[row]:
            continue
        first = n
        for entry in range(map_offsets[row], map_offsets[row + 1]):
            if not begin <= entry < end:
                begin = np.int64(entry)
                end = np.int64(min(entry + TOGETHER, len(key_offsets) - 1))
                for k in range(end - begin):
                    keys[STARTS, k] = key_offsets[begin + k]
                    keys[STOPS, k] = key_offsets[begin + k + 1]
                find_together(names, key_data, keys, end - begin, 0)
            name = keys[FOUND, entry - begin]
            if name < 0:
                continue
            earlier = last_of[name]
            packed = np.int64(name) << 32 | entry
            if first <= earlier < n and out_names[earlier] >> 32 == name:
                out_names[earlier] = packed
                continue
            last_of[name] = n
            out_rows[n] = row
            out_names[n] = packed
            n += 1
    if len(valid_values) == 0:
        return n
    kept = 0
    for i in range(n):
        entry = out_names[i] & 0xFFFFFFFF
        if valid_values[entry]:
            out_rows[kept] = out_rows[i]
            out_names[kept] = out_names[i]
            kept += 1
    return kept


def map_entries(
    array: pa.Array, keys: pa.Array, items: pa.Array, names: StringTable, *, nulls: bool = False
) -> MapEntries:
    """Entries whose key is among ``names``, and whose value is not null unless ``nulls`` count."""
    data, offsets, _ = arrow_strings(keys)
    rows = np.empty(len(keys), dtype=np.int64)
    packed = np.empty(len(keys), dtype=np.int64)
    n = _used_entries(
        names.as_tuple,
        data,
        offsets,
        _map_offsets(array, keys),
        validity(array),
        _ALL_VALID if nulls else validity(items),
        rows,
        packed,
        np.full(len(names), -1, dtype=np.int64),
    )
    return MapEntries(rows[:n], packed[:n] >> 32, packed[:n] & 0xFFFFFFFF)


def rows_of_places(
    array: pa.Array, keys: pa.Array, places: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The maps in which some entries stand, by their places among the keys; each map once."""
    rows = np.unique(np.searchsorted(_map_offsets(array, keys), places, "right") - 1)
    rows = rows[(rows >= 0) & (rows < len(array))]
    valid = validity(array)
    return rows[valid[rows] == 1] if len(valid) else rows  # entries may lie under a null map


def tag_entries(column: Column, entries: MapEntries) -> TaggedValues:
    """The values of entries, whose names are attributes and whose type a tag can hold."""
    rows, attributes, places = entries
    payloads = np.zeros(len(rows), dtype=np.int64)
    lengths = np.zeros(len(rows), dtype=np.int32)
    text = np.empty(0, dtype=np.uint8)
    tags = np.full(len(rows), _TAG_OF_KIND.get(column.kind, OTHER), dtype=np.uint8)
    if column.kind == STRING:
        text, starts, _ = arrow_strings(column.array)
        payloads, long = starts[places], starts[places + 1] - starts[places]
        tags[long > MAX_STRING] = OTHER  # there, but too long to compare
        lengths = np.where(long > MAX_STRING, 0, long).astype(np.int32)
    elif column.values is not None:
        payloads = column.values[places].view(np.int64)
        if column.values.dtype == np.float64:
            tags[:] = FLOAT
    return TaggedValues(
        rows.astype(np.int32),
        attributes.astype(np.int32),
        tags,
        payloads,
        lengths,
        text,
    )
