"""How tasks write the files of a table: Arrow in, Parquet on disk, and one row of counts out.

A task gets batches as the operator yields them, with one row for each event, and writes what
belongs in each of two tables::

    id  subscriptions  candidates  rejected       matches   id  subscriptions   or  id  subscription
    1   [7, 9]         12          null                     1   [7, 9]              1   7
    2   []             0           not JSON                 2   []                  1   9
                                                  rejects   id  rejected
                                                            2   not JSON

Texts that were to be read, if they come along behind the keys, go to rejects alone.

Batches pile up to a row group before they are encoded: a reader pays for each row group, and the
codec finds more in a larger one. A partition without rows makes no file.

Spark's reader needs two facts that Parquet does not hold, and Spark's writer leaves them in the
footer: the schema in Spark's terms, for types and column metadata that Parquet does not have, and
the release, for the calendar of early dates. In Arrow's schema all nested fields may be NULL:
Arrow's writer refuses a NULL struct whose fields are NOT NULL, although they are NULL with it.

Cost: O(rows); a task holds one row group, and for exploded output one piece of repeated keys.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark import TaskContext

from bittern.errors import OptionError
from bittern.files import sync
from bittern.spark.operator import FIRST, TAIL, Batches, flat

#: Arrow bytes in a row group: what a task holds before it encodes them.
_ROW_GROUP = 64 << 20
#: Where Spark keeps its own schema in a Parquet footer.
SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
#: The column of the catalog version that matches were found with.
VERSION = "version"
COUNTS = ("rows", "events", "candidates", "matches", "rejects")
#: What a task returns, in one row; a file is null where there was nothing to write.
REPORT = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("rejects_file", pa.string()),
        pa.field("rejects_bytes", pa.int64()),
        *(pa.field(name, pa.int64()) for name in COUNTS),
    ]
)


@dataclass(frozen=True)
class Table:
    """Where a table's files go, and how they are made: plain data that a closure carries."""

    folder: str
    token: str
    codec: str
    footer: dict[str, str]
    #: Are its readers Arrow's? They get types that Parquet has none for back from Arrow's schema.
    for_arrow: bool = False
    #: Of pyarrow, to which the folder belongs; None: the files have paths.
    filesystem: fs.FileSystem | None = None

    def part(self, partition: int, attempt: int) -> PartFile:
        """The file of one attempt to write a partition."""
        return PartFile(self, f"part-{partition:05d}-{attempt}-{self.token}.parquet")


class PartFile:
    """A Parquet file that is being written. The first row, or ``create``, creates it."""

    def __init__(self, table: Table, name: str) -> None:
        self._table = table
        self._name = name
        self._path = f"{table.folder}/{name}"
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows. O(1) for most batches, O(row group) where one is full."""
        if not batch.num_rows:
            return
        batch = batch.cast(nullable_inside(batch.schema))
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._bytes >= _ROW_GROUP:
            self._encode()

    def create(self, schema: pa.Schema) -> None:
        """Make the file, for rows of this schema, in which all that is nested may be NULL."""
        folder, filesystem = self._table.folder, self._table.filesystem
        if filesystem is None and not Path(folder).is_dir():
            raise OptionError(
                f"{socket.gethostname()} cannot see {folder}: write to a folder that "
                f"driver and executors share, or use match(...).write.parquet(...)"
            )
        with self._writing():
            self._writer = pq.ParquetWriter(
                self._path,
                schema,
                filesystem=filesystem,
                **_encodings(schema),
                compression=self._table.codec,
                store_decimal_as_integer=True,
                store_schema=self._table.for_arrow,
            )
        self._writer.add_key_value_metadata(self._table.footer)

    def _encode(self) -> None:
        schema = self._waiting[0].schema
        if self._writer is None:
            self.create(schema)
            assert self._writer is not None
        rows = pa.Table.from_batches(self._waiting)
        self._waiting, self._bytes = [], 0
        with self._writing():
            self._writer.write_table(rows, row_group_size=rows.num_rows)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Errors inside name the folder, if its disk is full."""
        try:
            yield
        except OSError as error:
            raise OptionError(f"cannot write to {self._table.folder}: {error}") from error

    def close(self) -> tuple[str | None, int]:
        """Finish the file and flush it to disk; returns its name and size, if there is one."""
        if self._waiting:
            self._encode()
        if self._writer is None:
            return None, 0
        with self._writing():
            self._writer.close()
            if self._table.filesystem is not None:
                return self._name, self._table.filesystem.get_file_info(self._path).size
            sync(Path(self._path))
            return self._name, Path(self._path).stat().st_size

    def discard(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            with contextlib.suppress(OSError):  # it may be what has failed already
                self._writer.close()
            if self._table.filesystem is None:
                Path(self._path).unlink(missing_ok=True)
                return
            with contextlib.suppress(OSError):  # the commit of the batch removes it
                self._table.filesystem.delete_file(self._path)


def nullable_inside(schema: pa.Schema) -> pa.Schema:
    """The schema, with all that is nested nullable; casting a batch to it copies no values."""
    return pa.schema([field.with_type(_nullable(field.type)) for field in schema])


def _nullable(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([_nullable_field(field) for field in type_])
    if pa.types.is_map(type_):
        key = type_.key_field  # never NULL
        return pa.map_(key.with_type(_nullable(key.type)), _nullable_field(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(_nullable_field(type_.value_field))
    return type_


def _nullable_field(field: pa.Field) -> pa.Field:
    """With its metadata, which tells a variant from a struct."""
    return field.with_type(_nullable(field.type)).with_nullable(True)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Integer ids, which come last, as differences, and dictionaries for everything else.

    Ids are too many for a dictionary and too even for a codec: of a million subscriptions they take
    half the time and six tenths of the bytes so.
    """
    *others, ids = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    if ids[1] != pa.int64():
        return {}
    return {
        "use_dictionary": [path for path, _ in others],
        "column_encoding": {ids[0]: "DELTA_BINARY_PACKED"},
    }


def _leaves(path: str, type_: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns of values that Parquet makes of a column, as it names them."""
    if pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(type_):
        yield from _leaves(f"{path}.key_value.key", type_.key_type)
        yield from _leaves(f"{path}.key_value.value", type_.item_type)
    elif pa.types.is_list(type_):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    else:
        yield path, type_


@dataclass(frozen=True)
class Task:
    """What runs on each partition: ``function``, then the writing."""

    function: Callable[[Batches], Batches]
    matches: Table
    rejects: Table | None
    explode: bool
    #: Stands in a column ``version`` of every row of an exploded table, if given.
    version: int | None = None
    #: Has an exploded table a row for events without matches?
    every_event: bool = False
    #: So many columns before the subscriptions are for rejects alone.
    texts: int = 0
    #: Stands in the column before these a kind of change, which rejects have not?
    has_kinds: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Write one partition; yields one row, of ``REPORT``. O(rows)."""
        context = TaskContext.get()
        assert context is not None
        yield self.run(batches, context.partitionId(), context.taskAttemptId())

    def run(self, batches: Batches, partition: int, attempt: int) -> pa.RecordBatch:
        """Write one attempt of a partition; returns the report when all of it is on disk."""
        part = self.matches.part(partition, attempt)
        rejects = None if self.rejects is None else self.rejects.part(partition, attempt)
        counts = dict.fromkeys(COUNTS, 0)
        try:
            for marked in self.function(batches):
                batch = _count(marked, counts)
                for rows in self._rows(_without(batch, self.texts)):
                    part.add(rows)
                if rejects is not None:
                    rejects.add(rejected(self._without_kinds(batch)))
            file, size = part.close()
            rejects_file, rejects_size = (None, 0) if rejects is None else rejects.close()
        except BaseException:
            part.discard()
            if rejects is not None:
                rejects.discard()
            raise
        counts["rows"] = part.rows
        return row_of(REPORT, [file, size, rejects_file, rejects_size, *counts.values()])

    def _without_kinds(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the rejects' table gets of a batch."""
        at = batch.num_columns - TAIL - self.texts - 1
        return batch.remove_column(at) if self.has_kinds else batch

    def _rows(self, batch: pa.RecordBatch) -> Batches:
        """What the matches' table gets of a batch."""
        if not self.explode:
            yield narrow(batch)
            return
        for rows in flat(batch, every_event=self.every_event):
            if self.version is None:
                yield rows
            else:
                versions = pa.repeat(pa.scalar(self.version, pa.int64()), rows.num_rows)
                yield rows.append_column(VERSION, versions)


def row_of(schema: pa.Schema, values: list[Any]) -> pa.RecordBatch:
    """One row: the report of a task to the driver."""
    columns = [pa.array([value], type_) for value, type_ in zip(values, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _count(batch: pa.RecordBatch, counts: dict[str, int]) -> pa.RecordBatch:
    """Count what is in a batch; returns it without the marks of first rows, if it has any."""
    if batch.schema.names[-1] == FIRST:  # an event may have several rows
        counts["events"] += pc.sum(batch.column(FIRST), min_count=0).as_py()
        batch = batch.select(range(batch.num_columns - 1))
    else:
        counts["events"] += batch.num_rows
    lists, candidates, reasons = batch.columns[-TAIL:]
    counts["candidates"] += pc.sum(candidates, min_count=0).as_py()
    counts["matches"] += pc.sum(pc.list_value_length(lists), min_count=0).as_py()
    counts["rejects"] += batch.num_rows - reasons.null_count
    return batch


def _without(batch: pa.RecordBatch, texts: int) -> pa.RecordBatch:
    """A batch without the columns that are for rejects alone. O(columns)."""
    end = batch.num_columns - TAIL
    return batch.select([*range(end - texts), *range(end, end + TAIL)]) if texts else batch


def narrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keys and subscriptions, a row for each event. O(columns)."""
    return batch.select(range(batch.num_columns - TAIL + 1))


def rejected(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keys and reasons of the events that have one. O(rows)."""
    wanted = [*range(batch.num_columns - TAIL), batch.num_columns - 1]
    reasons = batch.column(batch.num_columns - 1)
    if reasons.null_count == batch.num_rows:
        return batch.slice(0, 0).select(wanted)
    return batch.select(wanted).filter(pc.is_valid(reasons))
