"""Map columns: the entries whose key is an attribute in use.

A ``map<string, ...>`` column holds, row after row, keys and values::

    row 0: {a: 1, b: 2}   row 1: null   row 2: {b: 5, b: 6}
    keys     a b b b      offsets 0 2 2 4
    items    1 2 5 6

A key is one part of a path, taken literally: the key ``x.y`` is the attribute `` `x.y` ``. Of a key
that comes twice in a map, the last value counts; a null value counts as missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.language.literals import attribute_parts
from bittern.model.cells import used_entries
from bittern.model.columns import Column, validity
from bittern.model.mappings import MAX_STRING
from bittern.model.rank import BOOLEAN, NUMBER, STRING, TIME
from bittern.model.strings import StringTable, arrow_strings
from bittern.model.tagged import BOOLEAN as BOOLEAN_TAG
from bittern.model.tagged import FLOAT, INTEGER, OTHER, TIMESTAMP, TaggedValues
from bittern.model.tagged import STRING as STRING_TAG

_TAG_OF_KIND = {NUMBER: INTEGER, STRING: STRING_TAG, BOOLEAN: BOOLEAN_TAG, TIME: TIMESTAMP}


class Entries(NamedTuple):
    """Used entries: their row, attribute, and place among the keys and items."""

    rows: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    def at(self, which: npt.NDArray[np.bool_]) -> Entries:
        """Some of them."""
        return Entries(*(column[which] for column in self))


def map_names(names: list[str]) -> StringTable:
    """Attribute numbers by the key that a map has for them: one part, without back-quotes."""
    parts = [attribute_parts(name) for name in names]
    keys = pa.array([each[0] for each in parts], type=pa.large_string())
    data, offsets, _ = arrow_strings(keys)
    # A path of several parts is no key; it is filed where no look-up goes.
    return StringTable.build(data, offsets, np.array([len(p) > 1 for p in parts], dtype=np.int32))


def _map_offsets(array: pa.Array, keys: pa.Array) -> npt.NDArray[np.int64]:
    """Where each map's entries begin in ``keys``, and the end.

    The offsets of a sliced array still count from the start of its unsliced children.
    """
    offsets = np.asarray(array.offsets).astype(np.int64)
    return offsets - offsets[0] if len(keys) == offsets[-1] - offsets[0] else offsets


def map_entries(
    array: pa.Array,
    keys: pa.Array,
    column: Column,
    names: StringTable,
    taken: npt.NDArray[np.uint8],
) -> Entries:
    """Entries whose key is an attribute that is not ``taken``, and whose value is not null."""
    data, offsets, _ = arrow_strings(keys)
    rows = np.empty(len(keys), dtype=np.int64)
    packed = np.empty(len(keys), dtype=np.int64)
    n = used_entries(
        names.as_tuple,
        data,
        offsets,
        _map_offsets(array, keys),
        validity(array),
        column.valid,
        taken,
        rows,
        packed,
        np.full(len(taken), -1, dtype=np.int64),
    )
    return Entries(rows[:n], packed[:n] >> 32, packed[:n] & 0xFFFFFFFF)


def key_entries(
    array: pa.Array, keys: pa.Array, key: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows that have this key, and the place of its last entry there."""
    places = np.flatnonzero(np.asarray(pc.equal(keys, key)))
    rows = np.searchsorted(_map_offsets(array, keys), places, "right") - 1
    inside = (rows >= 0) & (rows < len(array))
    rows, places = rows[inside], places[inside]
    valid = validity(array)
    if len(valid):  # entries may lie under a null map
        rows, places = rows[valid[rows] == 1], places[valid[rows] == 1]
    _, last = np.unique(rows[::-1], return_index=True)
    kept = len(rows) - 1 - last
    return rows[kept], places[kept]


def tag_entries(column: Column, entries: Entries) -> TaggedValues:
    """The values of entries whose type a tag can hold."""
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
