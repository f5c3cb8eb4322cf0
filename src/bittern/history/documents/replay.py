"""Documents as events again, for who wants to match or to show them.

A segment holds its documents in blocks, one for each form in which they came. Runs of documents
that are in one block become one batch, in order of arrival::

    documents 40 and 41   rows of a table           a table of two rows
    document  42          a mapping                 a list of one mapping
    document  43          a row of that table       a table of one row

Tables, JSON texts and arrays are what they were. Mappings are put together again from their values
(``history/documents/mapping_rows.py``): they match like the originals, but what is in a list was
not kept, and a value without a kind is shown as ``...``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.history.documents.mapping_rows import BELOW, number_of
from bittern.history.documents.segments import MAPPINGS, TABLE, Block, StoredEvents
from bittern.history.history import History
from bittern.language.literals import attribute_parts
from bittern.model import tagged

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Unkept:
    """A value that was not kept, as it compares with nothing."""

    def __repr__(self) -> str:
        return "..."


_UNKEPT = Unkept()


class Replay:
    """The documents of a history, from the oldest that is used."""

    def __init__(self, history: History) -> None:
        self._history = history

    def total(self) -> int:
        """How many documents there are."""
        return len(self._history)

    def batches(self) -> Iterator[tuple[Any, tuple[str, ...]]]:
        """The documents as events, and their columns of JSON text. O(bytes)."""
        first = self._history.first
        for start, stored in self._history.documents.stored():
            skip = max(0, first - start)
            if skip < stored.n_documents:
                yield from _runs(stored, skip)


def _runs(stored: StoredEvents, skip: int) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The documents of a segment but the first ``skip``, block by block as they alternate."""
    blocks = [_BlockEvents(block, stored.n_documents) for block in stored.blocks()]
    owner = np.full(stored.n_documents, -1, dtype=np.int32)
    for number, block in enumerate(blocks):
        owner[block.places] = number
    owner = owner[skip:]
    edges = np.flatnonzero(np.diff(owner)) + 1
    for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), len(owner)], strict=True):
        if owner[begin] < 0:  # events without a value
            yield [{}] * (end - begin), ()
        else:
            block = blocks[owner[begin]]
            yield block.between(begin + skip, end + skip), block.json


class _BlockEvents:
    """The documents of a block."""

    def __init__(self, block: Block, n_documents: int) -> None:
        self.json = block.json
        every = np.arange(n_documents, dtype=np.int32)
        places = every if block.places is None else block.places
        self._events: Any
        if block.form == MAPPINGS:
            mappings = _mappings(block.rows, places)
            self.places = np.array(sorted(mappings), dtype=np.int32)
            self._events = [mappings[place] for place in self.places.tolist()]
        else:
            order = np.argsort(places, kind="stable")
            self.places = places[order]
            rows = block.rows if np.array_equal(self.places, places) else block.rows.take(order)
            self._events = rows if block.form == TABLE else rows.column(0)

    def between(self, begin: int, end: int) -> Any:
        """The documents at these places of the segment, all of which are in this block."""
        first, last = np.searchsorted(self.places, [begin, end]).tolist()
        if isinstance(self._events, list):
            return self._events[first:last]
        return self._events.slice(first, last - first)


def _mappings(rows: pa.Table, places: npt.NDArray[np.int32]) -> dict[int, dict[str, Any]]:
    """The mappings by place; a nested one comes after the value that it is."""
    found: dict[int, dict[str, Any]] = {}
    columns = (rows.column(name).to_pylist() for name in ("path", "tag", "payload", "text"))
    for place, path, tag, payload, text in zip(places.tolist(), *columns, strict=True):
        event = found.setdefault(place, {})
        if path.endswith(BELOW):
            _put(event, attribute_parts(path.removesuffix(BELOW)), [_UNKEPT])
        else:
            _put(event, attribute_parts(path), _value(tag, payload, text))
    return found


def _put(event: dict[str, Any], parts: tuple[str, ...], value: Any) -> None:
    *above, last = parts
    for part in above:
        inner = event.get(part)
        if not isinstance(inner, dict):
            inner = event[part] = {}
        event = inner
    known = event.get(last)
    if value is _UNKEPT and isinstance(known, dict | list):
        return  # what is inside came first
    event[last] = value


def _value(tag: int, payload: int, text: str | None) -> Any:
    if tag == tagged.STRING:
        return text
    if tag == tagged.EXACT:
        assert text is not None
        return number_of(text)
    if tag == tagged.INTEGER:
        return payload
    if tag == tagged.FLOAT:
        return float(np.int64(payload).view(np.float64))
    if tag == tagged.BOOLEAN:
        return payload != 0
    if tag == tagged.TIMESTAMP:
        try:
            return _EPOCH + dt.timedelta(microseconds=payload)
        except OverflowError:
            return np.datetime64(payload, "us")
    return _UNKEPT
