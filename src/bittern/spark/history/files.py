"""The Parquet files that hold a history's documents, in their order, as tasks carry them.

::

    history                            documents in order of arrival               what a task gets
    a path or URI of Parquet           files by name, rows as they stand           these files
    a DataFrame                        partitions by number, rows as they stand    a copy of it:

    <store or cache>/<32 random digits>/
      part-00000-17.parquet            attempt 17 of partition 0, which Spark accepted
      part-00001-18.parquet            its executor was lost
      part-00001-21.parquet            attempt 21 of partition 1, which Spark accepted

Tasks write the copy straight from Arrow, so a document reads like an event with the same columns.
Each task returns one row with the name of its file, and Spark returns the rows of exactly one
attempt of each partition: files of other attempts are never named. The copy lives as long as this
process, and no other process knows of it. What a killed process leaves is cleaned like unused
snapshots (``cache_folder.py``, ``store.clean``).

Cost: a job that reads the DataFrame and writes the columns in use; for a path, a listing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from bittern.errors import HistoryError, OptionError, SnapshotError
from bittern.files import at_exit
from bittern.spark.attributes import carriers, check_columns, placed
from bittern.spark.history.remembered import Remembered, part_files
from bittern.spark.operator import Batches, Named, blocks
from bittern.spark.session import is_case_sensitive
from bittern.spark.sink.part_files import SPARK_SCHEMA, nullable_inside, row_of
from bittern.spark.snapshots import transport
from bittern.spark.snapshots.cache_folder import cache_root, mark
from bittern.spark.snapshots.store import ARTIFACTS, CACHE, destination
from bittern.spark.told import file_name
from bittern.spark.versions import VariantType
from bittern.spark.workers import able

_REPORT = pa.schema([("file", pa.string())])


def check_history(history: Any) -> None:
    """Raise unless it can be a history."""
    if not isinstance(history, DataFrame | str | os.PathLike | None):
        raise OptionError(
            f"history must be a DataFrame of documents or the path of a folder of Parquet files, "
            f"not {type(history).__name__}"
        )
    if isinstance(history, DataFrame) and history.isStreaming:
        raise OptionError(
            "history is a stream: give a DataFrame that ends; bittern.spark.Pipeline remembers the "
            "events of a stream"
        )


def remembered_of(
    history: DataFrame | str | os.PathLike[str] | None,
    attributes: Sequence[str],
    json: Sequence[str],
    store: str | None,
) -> Remembered:
    """What tasks carry for a history, to look up these attributes of documents."""
    if history is None:
        return Remembered()
    if isinstance(history, DataFrame):
        return _copied(history, attributes, json, store)
    return _found(os.fspath(history), json)


def _found(place: str, json: Sequence[str]) -> Remembered:
    """The files at a path, as they are now."""
    try:
        files = part_files(place)
    except (HistoryError, SnapshotError, OSError) as error:
        raise OptionError(f"history names {place}, which cannot be read: {error}") from error
    if not files:
        raise OptionError(f"history names {place}, which has no Parquet files")
    _refuse_variants(place, next(iter(files)))
    stamp = hashlib.blake2b(digest_size=16)
    for name, file in files.items():
        stamp.update(f"{name}\0{file.size}\0{file.mtime_ns}\0".encode())
    return Remembered(tuple(files), json=tuple(json), stamp=stamp.hexdigest())


def _refuse_variants(place: str, file: str) -> None:
    """Spark takes variants apart when it writes them, and only it puts them together again."""
    filesystem, path = transport.filesystem(file)
    try:
        with filesystem.open_input_file(path) as source:
            metadata = pq.read_metadata(source).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise OptionError(f"history names {place}, which is not Parquet: {error}") from error
    schema = metadata.get(SPARK_SCHEMA.encode())
    for field in StructType.fromJson(loads(schema)) if schema else ():
        if isinstance(field.dataType, VariantType):
            raise OptionError(
                f"history names {place}, whose column {field.name!r} is a variant: give a "
                f"DataFrame, spark.read.parquet({place!r})"
            )


# A copy of a DataFrame


def _copied(
    history: DataFrame, attributes: Sequence[str], json: Sequence[str], store: str | None
) -> Remembered:
    spark = history.sparkSession
    own = [name for name in json if name in history.columns]
    case_sensitive = is_case_sensitive(spark)
    check_columns(history.schema, (), own, case_sensitive=case_sensitive)
    where = destination(spark, store)
    if where == ARTIFACTS:
        raise OptionError(
            "on a cluster, executors write the history's documents for each other: give store= a "
            "folder or URI that the driver and all executors can reach, or give history= the path "
            "of Parquet files there"
        )
    found = carriers(history.schema, attributes, own, case_sensitive=case_sensitive)
    # A document that says nothing is one nevertheless.
    columns = list(found.values()) or [F.lit(None).cast("boolean").alias("nothing")]
    frame = history.select(*columns)
    folder = _new_folder(where)
    named = Named(tuple(frame.columns), _Writer(folder))
    with able():
        rows = placed(frame).mapInArrow(named, "file string").collect()
    parts = [transport.child(folder, file_name(row["file"])) for row in rows]
    return Remembered(tuple(parts), json=tuple(own))


def _new_folder(where: str) -> str:
    """An empty folder that is gone when this process ends, and that others leave alone."""
    identity = secrets.token_hex(16)
    root = str(cache_root()) if where == CACHE else where
    folder = transport.child(root, identity)
    try:
        if where == CACHE:
            mark(Path(root), identity)  # for the life of this process
        filesystem, path = transport.filesystem(folder)
        filesystem.create_dir(path, recursive=True)
    except (OSError, SnapshotError) as error:
        raise OptionError(f"cannot write the history's documents to {root}: {error}") from error
    at_exit(_remove, filesystem, path)
    return folder


def _remove(filesystem: Any, path: str) -> None:
    with contextlib.suppress(OSError):
        filesystem.delete_dir(path)


@dataclass(frozen=True)
class _Writer:
    """Writes one partition of documents; runs in Python workers."""

    folder: str

    def __call__(self, batches: Batches) -> Batches:
        """Yield the name of the file, in a row, or nothing if there are no documents. O(rows)."""
        context = TaskContext.get()
        assert context is not None
        name = f"part-{context.partitionId():05d}-{context.taskAttemptId()}.parquet"
        filesystem, folder = transport.filesystem(self.folder)
        local = transport.local_path(self.folder)
        if local is not None and not local.is_dir():
            raise OptionError(
                f"{socket.gethostname()} cannot see {local}: give store= a folder or URI that the "
                f"driver and all executors can reach"
            )
        with contextlib.ExitStack() as opened:
            writer: pq.ParquetWriter | None = None
            for batch in blocks(batches):
                rows = batch.cast(nullable_inside(batch.schema))
                if writer is None:
                    sink = opened.enter_context(filesystem.open_output_stream(f"{folder}/{name}"))
                    writer = opened.enter_context(pq.ParquetWriter(sink, rows.schema))
                writer.write_batch(rows)
        if writer is not None:
            yield row_of(_REPORT, [name])
