"""Where documents are kept: three stores, each durable when an append returns, beside each other.

::

    documents   bittern's own: SQLite, a row for each append with its events as Arrow's IPC format
    parquet     a file for each append; eight of a size become one
    rows        SQLite, a row for each document with its attributes as JSON

For each: the mean time of an append of 1, 100 and 10,000 events, merging included; the time to read
two of nine attributes of a million documents into typed values; and the bytes per document after
that million came in appends of 10,000.

    python -m benchmarks.history.store [FOLDER]

Takes a quarter of a minute on a quiet machine. The folder says on which disk; files are removed in
the end.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.history.world import World
from bittern.history.documents.documents import Documents
from bittern.model.events.typed.typed import TypedReader

DOCUMENTS = 1_000_000
#: Events of an append, and how many such appends are timed.
APPENDS = ((1, 200), (100, 200), (10_000, 10))
ATTRIBUTES = ("author", "price")
FAN = 8


class Store(Protocol):
    """What is measured."""

    def append(self, events: pa.Table) -> Any:
        """Have them on disk."""

    def read(self) -> int:
        """Read the attributes of all documents; returns how many there are."""


class Own:
    """The documents of a history."""

    def __init__(self, folder: Path) -> None:
        self._documents = Documents(folder / "own")
        self.append = self._documents.append

    def read(self) -> int:
        """Scan."""
        return sum(typed.kinds.shape[1] for _, typed in self._documents.scan(ATTRIBUTES))


class Parquet:
    """Files whose names tell their order and their size."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._end = folder, 0
        self._descriptor = os.open(folder, os.O_RDONLY)
        self._sizes: list[tuple[Path, int]] = []

    def append(self, events: pa.Table) -> None:
        """A file, and a larger one where there are too many."""
        self._write(events, self._end)
        self._end += len(events)
        while len({size for _, size in self._sizes[-FAN:]}) == 1 and len(self._sizes) >= FAN:
            paths = [path for path, _ in self._sizes[-FAN:]]
            del self._sizes[-FAN:]
            whole = pa.concat_tables(map(pq.read_table, paths))
            for path in paths[1:]:
                path.unlink()
            self._write(whole, int(paths[0].stem))

    def _write(self, events: pa.Table, start: int) -> None:
        new, path = self._folder / "new", self._folder / f"{start:012}.parquet"
        pq.write_table(events, new, compression="zstd")
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.rename(path)
        os.fsync(self._descriptor)
        self._sizes.append((path, (len(events).bit_length() - 1) // 3))

    def read(self) -> int:
        """Only the columns that are needed."""
        reader, n = TypedReader(ATTRIBUTES), 0
        for path, _ in self._sizes:
            n += reader.read(pq.read_table(path, columns=list(ATTRIBUTES))).n_events
        return n


class Rows:
    """What one would do with a database at first."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = PERSIST", "synchronous = FULL"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("CREATE TABLE documents (number INTEGER PRIMARY KEY, text TEXT)")

    def append(self, events: pa.Table) -> None:
        """A transaction."""
        self._db.execute("BEGIN")
        texts = [(json.dumps(event),) for event in events.to_pylist()]
        self._db.executemany("INSERT INTO documents (text) VALUES (?)", texts)
        self._db.execute("COMMIT")

    def read(self) -> int:
        """All of the text."""
        reader, n = TypedReader(ATTRIBUTES), 0
        found = self._db.execute("SELECT text FROM documents ORDER BY number")
        while texts := found.fetchmany(65_536):
            n += reader.read(pa.array([text for (text,) in texts])).n_events
        return n


def measure(make: Any, table: pa.Table, folder: str | None) -> list[float]:
    """Milliseconds of the appends and of reading, and bytes per document."""
    figures = []
    for size, times in APPENDS:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            store: Store = make(Path(place))
            parts = [table.slice(i * size, size) for i in range(times + 1)]
            store.append(parts.pop())  # what is done once only
            begin = perf_counter()
            for part in parts:
                store.append(part)
            figures.append((perf_counter() - begin) / times * 1e3)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = make(Path(place))
        for start in range(0, len(table), 10_000):
            store.append(table.slice(start, 10_000))
        begin = perf_counter()
        if store.read() != len(table):
            raise AssertionError(f"{make.__name__} has lost documents")
        figures.append((perf_counter() - begin) * 1e3)
        n_bytes = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
        figures.append(n_bytes / len(table))
    return figures


def main(arguments: list[str]) -> int:
    """Print the table."""
    table = World().documents(DOCUMENTS).table()
    TypedReader(ATTRIBUTES).read(table.slice(0, 10))  # load what is compiled
    sizes = [f"append {size:,}" for size, _ in APPENDS]
    heads = ["store", *sizes, "read two of all", "bytes each"]
    print("".join(f"{head:>17}" for head in heads))
    for name, make in (("documents", Own), ("parquet", Parquet), ("rows", Rows)):
        *times, n_bytes = measure(make, table, arguments[0] if arguments else None)
        shown = [name, *(f"{ms:.2f} ms" for ms in times), f"{n_bytes:.1f}"]
        print("".join(f"{one:>17}" for one in shown), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
