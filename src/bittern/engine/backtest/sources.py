"""Where remembered events are, and reading them batch by batch.

====================================  ==========================================================
given                                 events
====================================  ==========================================================
the folder of a history               its documents, in order of arrival
``History``                           the same, of one that is open; with ``keep``, the newest
``.parquet`` ``.pq``                  rows
``.jsonl`` ``.ndjson`` ``.json``      a JSON object per line; blank lines do not count
any other folder                      such files in it and below, in the order of their names
``pyarrow.RecordBatchReader``         rows
table, array, list, mapping           what can be matched (``model/events/reader.py``)
an iterator                           batches, each of a form that can be matched
====================================  ==========================================================

Files whose names begin with ``_`` or ``.`` do not count: Spark and others put their own there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sized
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet

from bittern.engine.backtest.result import event_of
from bittern.errors import BitternError, EventError, OptionError
from bittern.model.events.columns import from_frame
from bittern.model.events.json.lines import json_texts

_PARQUET = (".parquet", ".pq")
_JSON = (".jsonl", ".ndjson", ".json")
_ARROW = (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray)


class RememberedBatch(NamedTuple):
    """Some events, and which columns of theirs hold JSON objects as text."""

    events: Any
    json: tuple[str, ...] = ()


class Replayed(Protocol):
    """A history, as ``history/documents/replay.py`` gives it."""

    def total(self) -> int:
        """How many documents there are."""

    def batches(self) -> Iterator[tuple[Any, tuple[str, ...]]]:
        """The documents as events, and their columns of JSON text."""


class EventSource(NamedTuple):
    """Events: how many there are (0: not known), and batches of them."""

    total: int
    batches: Iterator[RememberedBatch]


def source_of(events: Any, json: tuple[str, ...], block: Callable[[], int]) -> EventSource:
    """The events of any form above; ``block`` says how many a batch may have."""
    if isinstance(events, str | os.PathLike):
        source = _at_path(Path(events), json, block)
    elif hasattr(events, "documents"):
        source = _replayed(events)
    elif isinstance(events, pa.RecordBatchReader | Iterator):
        source = EventSource(0, (RememberedBatch(batch, json) for batch in events))
    else:
        events = [events] if isinstance(events, Mapping) else events
        size = len(events) if isinstance(events, Sized) else 0  # if it is not, that is told below
        source = EventSource(size, iter([RememberedBatch(events, json)]))
    return EventSource(source.total, _cut(source.batches, block))


def _cut(batches: Iterator[RememberedBatch], block: Callable[[], int]) -> Iterator[RememberedBatch]:
    """The same events in batches that are not too large."""
    for events, json in batches:
        if isinstance(events, str | Mapping):
            events = [events]  # noqa: PLW2901
        elif hasattr(events, "__dataframe__") and not isinstance(events, pa.Table | pa.RecordBatch):
            events = from_frame(events)  # noqa: PLW2901
        is_arrow = isinstance(events, _ARROW)
        if not is_arrow and not isinstance(events, list | tuple):
            raise EventError(
                f"events must be a path, an Arrow table or array, a list of mappings, or batches "
                f"of these, not {type(events).__name__}"
            )
        start = 0
        while start < len(events):
            size = block()
            cut = events.slice(start, size) if is_arrow else events[start : start + size]
            yield RememberedBatch(cut, json)
            start += size


def _replayed(history: Any) -> EventSource:
    replay: Replayed = import_module("bittern.history.documents.replay").Replay(history)
    return EventSource(
        replay.total(), (RememberedBatch(events, json) for events, json in replay.batches())
    )


def _at_path(path: Path, json: tuple[str, ...], block: Callable[[], int]) -> EventSource:
    if path.is_dir():
        history = import_module("bittern.history.documents.file")
        if history.holds_documents(path):
            return EventSource(0, _of_folder(path))
        files = sorted(each for each in path.rglob("*") if _is_events(each, path))
        if not files:
            raise OptionError(
                f"{path} has no events: neither the documents of a history nor files that end in "
                f"{', '.join((*_PARQUET, *_JSON))}"
            )
    else:
        files = [path]
        if _suffix(path) not in (*_PARQUET, *_JSON):
            known = ", ".join((*_PARQUET, *_JSON))
            raise OptionError(f"{path}: events are a folder or a file that ends in {known}")
    return EventSource(_n_rows(files), _of_files(files, json, block))


def _is_events(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    return not hidden and _suffix(path) in (*_PARQUET, *_JSON) and path.is_file()


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _n_rows(files: list[Path]) -> int:
    """How many rows Parquet files have; 0 if some are not Parquet."""
    if any(_suffix(file) not in _PARQUET for file in files):
        return 0
    total = 0
    for file in files:
        with _told(file):
            total += pyarrow.parquet.read_metadata(file).num_rows
    return total


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn errors of Arrow and of the system into one sentence that names the file."""
    try:
        yield
    except pa.ArrowException as error:
        raise BitternError(f"{path}: {str(error).strip().splitlines()[0]}") from error
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror or error}") from error


def _of_files(
    files: list[Path], json: tuple[str, ...], block: Callable[[], int]
) -> Iterator[RememberedBatch]:
    for file in files:
        with _told(file):
            if _suffix(file) in _PARQUET:
                with pyarrow.parquet.ParquetFile(file) as rows:
                    for batch in rows.iter_batches(min(block(), 1 << 16)):
                        yield RememberedBatch(batch, json)
            else:
                with file.open("rb") as lines:
                    yield from map(RememberedBatch, json_texts(lines, block()))


def _of_folder(path: Path) -> Iterator[RememberedBatch]:
    """The documents in a folder, which nobody else may have open meanwhile."""
    with import_module("bittern.history.history").History(path) as history:
        yield from _replayed(history).batches


def mapping_at(events: Any, row: int) -> Mapping[str, Any]:
    """One event of a batch as a mapping."""
    if isinstance(events, _ARROW):
        event = events.slice(row, 1).to_pylist(maps_as_pydicts="lossy")[0]
    else:
        event = events[row]
    if isinstance(event, str | bytes):
        event = event_of(event)
    return event if isinstance(event, Mapping) else {}
