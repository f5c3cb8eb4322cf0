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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.model.events.columns import Column, validity
from bittern.model.events.mappings import MAX_STRING
from bittern.model.rank.cells import used_entries
from bittern.model.rank.space import BOOLEAN, NUMBER, STRING, TIME
from bittern.model.strings import StringTable, arrow_strings
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


def map_entries(
    array: pa.Array, keys: pa.Array, items: pa.Array, names: StringTable, *, nulls: bool = False
) -> MapEntries:
    """Entries whose key is among ``names``, and whose value is not null unless ``nulls`` count."""
    data, offsets, _ = arrow_strings(keys)
    rows = np.empty(len(keys), dtype=np.int64)
    packed = np.empty(len(keys), dtype=np.int64)
    n = used_entries(
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
