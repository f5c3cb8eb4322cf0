"""Writing matches: tasks write Parquet files straight from Arrow, and the driver commits them.

::

    match(...).write.parquet   operator -> Arrow -> JVM, row by row -> Parquet writer, row by row
    write(...)                 operator -> Arrow -> Parquet file; one row of counts -> JVM

Matches are many more than events, and the JVM would walk them twice: once out of Arrow and once
into Parquet. Here the task that finds them writes them, column by column, and only tells the driver
which file it wrote and what it counted. ``staging.py`` says why the result is complete or absent,
whatever is retried, runs twice or dies.

The files are what Spark's writer would have made: the session's codec, types that Spark reads as
its own, and Spark's schema in the footer, so that ``spark.read.parquet`` gives the same DataFrame.

Cost: encoding takes 15 to 30 ns for each match; a task holds one row group in memory.
"""

from __future__ import annotations

import contextlib
import json as json_text
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from bittern.errors import OptionError
from bittern.spark.arrow_types import arrow_schema, report_schema
from bittern.spark.asked import Asked
from bittern.spark.attributes import check_fields, placed
from bittern.spark.frames import prepare
from bittern.spark.operator import (
    FIRST,
    REJECTED,
    SUBSCRIPTION,
    SUBSCRIPTIONS,
    TAIL,
    Batches,
    Named,
    output_schema,
)
from bittern.spark.session import is_case_sensitive
from bittern.spark.sharded.shards import Shards
from bittern.spark.sink.part_files import (
    COUNTS,
    REPORT,
    SPARK_SCHEMA,
    VERSION,
    Table,
    Task,
    nullable_inside,
)
from bittern.spark.sink.staging import StagedTable, Staging
from bittern.spark.workers import able

#: Spark's names of codecs, and Arrow's.
_CODECS = {"none": "none", "uncompressed": "none", "lz4_raw": "lz4"} | {
    name: name for name in ("snappy", "gzip", "brotli", "lz4", "zstd")
}


@dataclass(frozen=True)
class Written:
    """What was written, and the counts."""

    path: str
    files: int
    bytes: int
    rows: int
    events: int
    candidates: int
    matches: int
    rejects: int
    seconds: float
    snapshot: str

    def __str__(self) -> str:
        rejects = f", {self.rejects:,} rejects" if self.rejects else ""
        return (
            f"{self.matches:,} matches of {self.events:,} events{rejects} in {self.seconds:,.1f} s:"
            f" {self.rows:,} rows, {self.bytes / 1e6:,.1f} MB, {self.files:,} files in {self.path}"
        )


def write(
    events: DataFrame,
    subscriptions: Any,
    path: str | os.PathLike[str],
    *,
    mode: str = "error",
    event_id: str | Sequence[str] | None = None,
    payload: str | Sequence[str] = (),
    explode: bool = False,
    limit: int | None = None,
    json: str | Sequence[str] = (),
    rejects: str | os.PathLike[str] | None = None,
    store: str | None = None,
    shards: str | int | None = "auto",
    sample: Any = None,
    on_error: str = "raise",
    unknown: str = "warn",
    history: Any = None,
    order_by: str | Sequence[str] | None = None,
    sets: Mapping[str, Any] | None = None,
) -> Written:
    """Match a batch of events and write what ``match`` returns to a folder of Parquet files.

    All or nothing: if anything fails, ``path`` is as it was before. Other arguments are those of
    ``match``.

    Parameters
    ----------
    path
        A path, or a ``file:`` URI, of a file system that driver and executors share.
    mode
        "error": raise if ``path`` exists; "overwrite": replace the Parquet files that are there.
    rejects
        A second path, for the keys, the payload and the JSON columns of rejected events, with the
        reason in a column ``rejected``. It is put in place just before ``path`` is.
    """
    if isinstance(events, DataFrame) and events.isStreaming:
        raise OptionError("write needs a batch of events: for a stream use match(...).writeStream")
    started = time.perf_counter()
    with able(), _staged(path, rejects, mode) as (staging, staged_rejects):
        asked = Asked(
            event_id=event_id,
            payload=payload,
            limit=limit,
            json=json,
            store=store,
            shards=shards,
            sample=sample,
            on_error=on_error,
            unknown=unknown,
            history=history,
            order_by=order_by,
            sets=sets,
        )
        job = prepare(events, subscriptions, asked)
        if rejects is not None:
            job = replace(job, texts=texts_in(job.json, job.carried))
        ref = job.source.ref
        if isinstance(ref, Shards):
            frame, function = (
                job.matches(gather=not explode or limit is not None),
                None,
            )
            schema = StructType([field for field in frame.schema if field.name != FIRST])
        else:
            frame, function = job.events, job.operator(ref)
            schema = output_schema(frame.schema, job.carried, integer_ids=job.source.integer_ids)
        found = fill(
            frame,
            function,
            schema,
            staging,
            staged_rejects,
            explode=explode,
            texts=len(job.texts),
        )
    return Written(
        str(staging.target), seconds=time.perf_counter() - started, snapshot=ref.id, **found
    )


# On the driver


@contextlib.contextmanager
def _staged(
    path: str | os.PathLike[str], rejects: str | os.PathLike[str] | None, mode: str
) -> Iterator[tuple[Staging, Staging | None]]:
    """Folders for matches and rejects, checked before any work and removed after it."""
    staging = Staging(path, mode)
    with contextlib.ExitStack() as stack:
        if rejects is None:
            yield stack.enter_context(staging), None
            return
        staged_rejects = Staging(rejects, mode)
        one, other = staging.target, staged_rejects.target
        if one.is_relative_to(other) or other.is_relative_to(one):
            raise OptionError(
                f"path and rejects must be two separate folders, not {path} and {rejects}"
            )
        yield stack.enter_context(staging), stack.enter_context(staged_rejects)


def fill(
    frame: DataFrame,
    function: Callable[[Batches], Batches] | None,
    schema: StructType,
    staging: StagedTable,
    rejects: StagedTable | None,
    *,
    explode: bool,
    version: int | None = None,
    every_event: bool = False,
    texts: int = 0,
    has_kinds: bool = False,
) -> dict[str, int]:
    """Run the job and commit what it wrote; returns the totals.

    An exploded table has a column ``version`` if there is one, and with ``every_event`` a row
    without a subscription for each event that matches nothing. So many of the last keys are
    ``texts`` for rejects alone; before them, with ``has_kinds``, stands the kind of a change.
    """
    keys, lists = schema.fields[:-TAIL], schema[SUBSCRIPTIONS]
    if explode:
        assert isinstance(lists.dataType, ArrayType)
        lists = StructField(SUBSCRIPTION, lists.dataType.elementType)
    spark = frame.sparkSession
    columns = [*keys[: len(keys) - texts], lists]
    if version is not None:
        columns.append(StructField(VERSION, LongType()))
    table = _table(spark, staging, StructType(columns))
    rejects_table = None
    if rejects is not None:
        told = [*keys, schema[REJECTED]]
        if has_kinds:
            del told[len(keys) - texts - 1]
        rejects_table = _table(spark, rejects, StructType(told))
    named = Named(tuple(frame.columns), function)
    task = Task(named, table, rejects_table, explode, version, every_event, texts, has_kinds)
    reports = placed(frame).mapInArrow(task, report_schema(REPORT)).collect()
    n_files = _accept(staging, table, reports, "")
    if rejects is not None and rejects_table is not None:
        _accept(rejects, rejects_table, reports, "rejects_")
        rejects.commit()
    staging.commit()
    return {"files": n_files} | {
        name: sum(report[name] for report in reports) for name in ("bytes", *COUNTS)
    }


def texts_in(json: Sequence[str], carried: Sequence[str], *taken: str) -> tuple[str, ...]:
    """The JSON columns that rejects have beside what is carried: what could not be read.

    ``taken`` are further names that none of them may have.
    """
    texts = tuple(name for name in json if name not in carried)
    for name in texts:
        if name.lower() in (REJECTED, *taken):
            raise OptionError(
                f"the JSON column {name!r} has the name of a column of the rejects: rename it"
            )
    return texts


def _table(spark: SparkSession, staging: StagedTable, schema: StructType) -> Table:
    """What tasks need to write files of this schema as the session would."""
    check_fields(schema, case_sensitive=is_case_sensitive(spark))  # or nothing could read them
    setting = "spark.sql.parquet.compression.codec"
    codec = spark.conf.get(setting, "snappy")
    if codec is None or codec.lower() not in _CODECS:
        raise OptionError(
            f"{setting} is {codec!r}, but write supports only {', '.join(sorted(_CODECS))}"
        )
    footer = {
        "org.apache.spark.version": spark.version,
        SPARK_SCHEMA: schema.json(),
    }
    return Table(
        str(staging.attempts),
        staging.token,
        _CODECS[codec.lower()],
        footer,
        filesystem=staging.filesystem,
    )


def _accept(staging: StagedTable, table: Table, reports: list[Row], prefix: str) -> int:
    """Move the files that the reports name; returns how many there are."""
    names = [(row[f"{prefix}file"], row[f"{prefix}bytes"]) for row in reports]
    files = [(name, size) for name, size in names if name is not None]
    if not files:  # a folder without a file is no table, since only a file has a schema
        part = table.part(0, 0)
        schema = StructType.fromJson(json_text.loads(table.footer[SPARK_SCHEMA]))
        part.create(nullable_inside(arrow_schema(schema)))
        files = [part.close()]
    for name, size in files:
        staging.accept(name, size)
    return len(files)
