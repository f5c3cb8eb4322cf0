"""Segments: consecutive documents as bytes, and reading values from them.

The documents of a segment are in *blocks*, one for each form of the events. Tables with the same
columns share a block, so merging many small segments makes long columns, whatever the order of
different tables::

    documents 40 and 41   a table of isbn, price       block 1, a table
    document  42          {"isbn": "c", "year": 1999}    places  isbn  price
    document  43          a table of isbn, price         0       a     9.5
                                                         1       b     7.0
                                                         3       a     8.0

                                                       block 2, mappings
                                                         places  path  tag      payload  text
                                                         2       isbn  STRING            c
                                                         2       year  INTEGER  1999

Tables keep their columns as they are; data frames and arrays of structs are tables; JSON texts,
maps and variants are an array. All of these are read again as if they had just arrived. Mappings
are one row for each value (``history/documents/mapping_rows.py``).

A block is a stream of Arrow's IPC format, compressed column by column: every type of Arrow survives
exactly, and only columns that can say something about the attributes asked for are decompressed.
The column of places has no values where they are 0, 1, 2 ...

O(bytes) to pack, to unpack and to merge; reading adds O(values of the attributes asked for).
"""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bittern.arrays import Int32s
from bittern.history.documents.mapping_rows import add_values
from bittern.model.events.attributes import Attributes
from bittern.model.events.columns import plain
from bittern.model.events.mappings import Names
from bittern.model.events.objects import is_json, is_variant_column
from bittern.model.events.reader import EventReader
from bittern.model.events.reads import Rejects
from bittern.model.events.sinks import ValueSink

#: What a block's rows are: events of a table, of an array, or the values of mappings.
TABLE, ARRAY, MAPPINGS = "table", "array", "mappings"
_FORM, _JSON = b"form", b"json"  # what a block's metadata says
_PLAIN, _COMPRESSED = pa.ipc.IpcWriteOptions(), pa.ipc.IpcWriteOptions(compression="zstd")
#: Fewer bytes than this are not compressed: that takes longer than all else, and they soon merge.
_FEW_BYTES = 1 << 14


class Block(NamedTuple):
    """Documents of a segment that came in one form."""

    form: str
    json: tuple[str, ...]  # columns that hold JSON text
    places: Int32s | None  # of its rows in the segment; None: 0, 1, 2 ...
    rows: pa.Table

    def explicit(self, behind: int) -> Int32s:
        """The places of its rows in a longer segment, ``behind`` so many other documents."""
        if self.places is None:
            return np.arange(behind, behind + self.rows.num_rows, dtype=np.int32)
        return self.places + np.int32(behind)


def pack(blocks: Iterable[Block]) -> bytes:
    """The blocks of a segment, one stream after the other."""
    sink = pa.BufferOutputStream()
    for form, json, places, rows in blocks:
        column = pa.nulls(rows.num_rows) if places is None else pa.array(places)
        described = {_FORM: form, _JSON: json_format.dumps(json)}
        whole = rows.add_column(0, "places", column).replace_schema_metadata(described)
        options = _PLAIN if rows.nbytes < _FEW_BYTES else _COMPRESSED
        with pa.ipc.new_stream(sink, whole.schema, options=options) as stream:
            stream.write_table(whole)
    return bytes(sink.getvalue())


def unpack(data: bytes, names: Names | None = None) -> Iterator[Block]:
    """The blocks of a segment; with ``names``, without columns that say nothing about them."""
    source = pa.BufferReader(data)
    while source.tell() < len(data):
        start = source.tell()
        schema = pa.ipc.open_stream(source).schema
        form = schema.metadata[_FORM].decode()
        json = tuple(json_format.loads(schema.metadata[_JSON]))
        wanted = list(range(len(schema)))
        if names is not None and form == TABLE:
            wanted = [0, *(i for i in wanted[1:] if can_say(schema.field(i), json, names))]
        source.seek(start)
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        rows = pa.ipc.open_stream(source, options=options).read_all().replace_schema_metadata(None)
        column = plain(rows.column(0))
        places = None if pa.types.is_null(column.type) else column.to_numpy()
        yield Block(form, json, places, rows.remove_column(0))


def can_say(field: pa.Field, json: Sequence[str], names: Names) -> bool:
    """Whether the column may have values of one of the attributes."""
    return (
        bool(names.paths("", [field.name])[0])
        or pa.types.is_map(field.type)
        or field.name in json
        or is_json(field.type)
        or is_variant_column(field)
    )


def merge(segments: Iterable[tuple[int, bytes]]) -> bytes:
    """Segments that follow each other, given as (documents, bytes), as one."""
    alike: dict[tuple[str, tuple[str, ...], bytes], list[tuple[Block, Int32s]]] = {}
    n_documents = 0
    for count, data in segments:
        for block in unpack(data):
            key = block.form, block.json, bytes(block.rows.schema.serialize())
            alike.setdefault(key, []).append((block, block.explicit(n_documents)))
        n_documents += count
    return pack(_joined(parts, n_documents) for parts in alike.values())


def _joined(parts: list[tuple[Block, Int32s]], n_documents: int) -> Block:
    """Blocks of the same columns, with their places in a segment, as one."""
    rows = pa.concat_tables([block.rows for block, _ in parts]).combine_chunks()
    places = np.concatenate([places for _, places in parts])
    form, json = parts[0][0][:2]
    is_every = form != MAPPINGS and len(places) == n_documents
    return Block(form, json, None if is_every else places, rows)


class StoredEvents:
    """The documents of a segment, as events that can be read like those of any other form."""

    def __init__(self, data: bytes, n_documents: int) -> None:
        self._data = data
        self.n_documents = n_documents

    def blocks(self) -> Iterator[Block]:
        """Their blocks, with all that was kept of them."""
        return unpack(self._data)

    def read_into(self, attributes: Attributes, sink: ValueSink) -> tuple[int, Rejects]:
        """Read values of these attributes; returns the number of events and the unreadable ones."""
        rejects: Rejects = []
        for form, json, places, rows in unpack(self._data, attributes.names):
            if form == MAPPINGS:
                assert places is not None
                add_values(rows, places, attributes.names, sink)
            elif rows.num_columns:
                mark = sink.mark()
                reader = EventReader(attributes, sink, json)
                reader.read(rows if form == TABLE else rows.column(0))
                unread = reader.rejected()
                if places is not None:
                    sink.move_rows(mark, places)
                    unread = [(int(places[row]), why) for row, why in unread]
                rejects += unread
        return self.n_documents, rejects
