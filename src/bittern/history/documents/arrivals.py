"""Turns events of any form that can be matched into the blocks of a history's segments.

``history/documents/segments.py`` says which form becomes what. Events whose form a reader would
refuse are refused here, before they are stored: for example a table with two columns of the same
name, which could not be read again. O(bytes), without a copy where nothing is decoded or left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import EventError, OptionError
from bittern.history.documents.mapping_rows import is_utf8, rows_of
from bittern.history.documents.segments import ARRAY, MAPPINGS, TABLE, Block
from bittern.model.events.attributes import refuse_twins
from bittern.model.events.columns import from_frame, plain
from bittern.model.events.mappings import path_part
from bittern.model.events.objects import is_variant, json_names
from bittern.model.events.typed.typed import TypedReader


class Arrivals:
    """Events that become documents."""

    def __init__(self, events: Any, json: str | Sequence[str], keep: npt.ArrayLike | None) -> None:
        """``keep`` says for each event whether it becomes a document; None: all do."""
        self._json = json_names(json)
        self._form = TABLE
        events = _sliceable(events)
        none = events[:0] if isinstance(events, list) else events.slice(0, 0)
        _no_values().read(none, self._json)  # refuses what is wrong whatever the rows are
        if isinstance(events, pa.Array | pa.ChunkedArray):
            events = self._tabulate(plain(events))
        if isinstance(events, pa.Table):
            for field in events.schema:
                _refuse_inner_twins(field.type, path_part(field.name))
            events = events.replace_schema_metadata(None)  # of no use here, but often different
        self._events: pa.Table | list[Any] = events
        if keep is not None:
            self._keep(np.asarray(keep))

    def __len__(self) -> int:
        return len(self._events)

    def _tabulate(self, array: pa.Array) -> pa.Table:
        if pa.types.is_struct(array.type) and not is_variant(array.type):
            return pa.Table.from_arrays(array.flatten(), schema=pa.schema(list(array.type)))
        self._form = ARRAY
        return pa.table({"events": array})

    def _keep(self, keep: npt.NDArray[Any]) -> None:
        if keep.dtype != np.bool_ or keep.shape != (len(self),):
            raise OptionError(
                f"keep must be a Boolean for each of the {len(self)} events, whether it becomes a "
                f"document; it has shape {keep.shape} and type {keep.dtype}"
            )
        if keep.all():
            return
        if isinstance(self._events, list):
            self._events = list(compress(self._events, keep.tolist()))
            return
        # In runs: Arrow cannot filter every type, and few events are not kept.
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
        runs = [self._events.slice(start, stop - start) for start, stop in edges.tolist()]
        self._events = pa.concat_tables([self._events.slice(0, 0), *runs])

    def blocks(self, start: int, stop: int) -> list[Block]:
        """Some of the documents, as the blocks of a segment."""
        if isinstance(self._events, list):
            return list(_blocks_of_list(self._events[start:stop]))
        rows = self._events.slice(start, stop - start)
        columns = [_mergeable(column) for column in rows.columns]
        fields = [
            field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)
        ]
        rows = pa.Table.from_arrays(columns, schema=pa.schema(fields))
        return [Block(self._form, self._json, None, rows)] if columns else []


@cache
def _no_values() -> TypedReader:
    """A reader that only checks the form."""
    return TypedReader(())


def _sliceable(events: Any) -> Any:
    """Events as a table, an array or a list; ``EventError`` if their form is unknown."""
    if isinstance(events, pa.Table | pa.Array | pa.ChunkedArray):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, str | Mapping):
        return [events]
    if isinstance(events, Sequence) and not isinstance(events, bytes | bytearray | memoryview):
        return list(events)
    if not hasattr(events, "__dataframe__"):
        _no_values().read(events)  # says what can be read
    try:
        return from_frame(events)
    except ValueError as wrong:
        raise EventError(str(wrong)) from None


def _refuse_inner_twins(kind: pa.DataType, path: str) -> None:
    """``EventError`` for a struct with two fields of one name."""
    if pa.types.is_map(kind):
        _refuse_inner_twins(kind.item_type, path)
    elif pa.types.is_struct(kind):
        refuse_twins([field.name for field in kind], f"in {path!r}")
        for field in kind:
            _refuse_inner_twins(field.type, f"{path}.{path_part(field.name)}")


def _mergeable(column: pa.ChunkedArray) -> pa.Array:
    """A column without encodings that differ between tables, or that keep what is not in a slice.

    Arrow's extension types stay what they are: they tell JSON and variants from other columns.
    """
    kind = column.type
    is_encoded = (
        pa.types.is_dictionary(kind)
        or pa.types.is_run_end_encoded(kind)
        or pa.types.is_string_view(kind)
    )
    return plain(column) if is_encoded else column.combine_chunks()


def _blocks_of_list(events: list[Any]) -> Iterator[Block]:
    """JSON texts and mappings, in a block each."""
    is_text = [isinstance(event, str) for event in events]
    if any(is_text):
        texts = [text if is_utf8(text) else None for text in compress(events, is_text)]
        places = None if all(is_text) else np.flatnonzero(is_text).astype(np.int32)
        table = pa.table({"events": pa.array(texts, type=pa.large_string())})
        yield Block(ARRAY, (), places, table)
    if not all(is_text):
        mappings = [None if text else event for text, event in zip(is_text, events, strict=True)]
        table, places = rows_of(mappings)
        if len(places):
            yield Block(MAPPINGS, (), places, table)
