"""Pipelines into tables by name, killed before and after a table has a batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.faults import wait_for
from spark_jobs.streams import die


@dataclass(frozen=True)
class HalfWritten:
    """A stage of rows that kills the driver when one of two files of a batch is written."""

    table: str
    before: int
    leader: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 1 and wait_for(self._is_half):
            die(self.leader)

    def _is_half(self) -> bool:
        return len(written(self.table)) > self.before


def written(table: str) -> list[Path]:
    """The complete data files below a table's folder."""
    files = (file for file in Path(table).rglob("*.parquet") if "_delta_log" not in file.parts)
    return [file for file in files if file.stat().st_size > 8 and _ends(file) == b"PAR1"]


def _ends(file: Path) -> bytes:
    with file.open("rb") as opened:
        opened.seek(-4, os.SEEK_END)
        return opened.read()


def run(
    spark: Any,
    place: str,
    table: str,
    *,
    format: str | None,  # noqa: A002
    die_at: str | None = None,
    batch: int = -1,
    folder: str = "",
    checkpoint: str = "checkpoint",
) -> str | None:
    """Match what is there into a table, a file a batch, or die; returns what went wrong."""
    from bittern.errors import BitternError
    from bittern.spark import Pipeline
    from bittern.spark.streaming import NamedTable, tables

    deliver, rows_of = NamedTable.deliver, tables.with_batch

    def half(given: Any) -> Any:
        rows = rows_of(given)
        if given.batch_id != batch:
            return rows
        stage = HalfWritten(folder, len(written(folder)), os.getpid())
        return rows.mapInArrow(stage, rows.schema)

    def whole(self: Any, given: Any) -> None:
        deliver(self, given)
        if given.batch_id == batch:
            die(os.getpid())

    if die_at == "half written":
        tables.with_batch = half  # type: ignore[assignment]
    elif die_at == "written":
        NamedTable.deliver = whole  # type: ignore[method-assign]
    reader = spark.readStream.schema("id bigint, price double").option("maxFilesPerTrigger", 2)
    events = reader.parquet(f"{place}/events")
    try:
        Pipeline(
            events,
            f"{place}/catalog.db",
            NamedTable(table, format=format),
            f"{place}/{checkpoint}",
            event_id="id",
            available_now=True,
        ).run()
    except BitternError as failure:
        return f"{type(failure).__name__}: {failure}"
    finally:
        NamedTable.deliver = deliver  # type: ignore[method-assign]
        tables.with_batch = rows_of
    return None


def rows(spark: Any, table: str) -> list[list[Any]]:
    """What a table has, in order."""
    spark.catalog.refreshTable(table)
    found = spark.table(table).select("id", "subscription", "version", "batch", "query")
    return sorted(list(row) for row in found.collect())


def sql(spark: Any, statements: list[str]) -> None:
    """Run these."""
    for statement in statements:
        spark.sql(statement).collect()


def deliver_again(spark: Any, place: str, table: str, batch: int) -> None:
    """Deliver the batch that the outbox still has once more, as a driver does that was killed."""
    from datetime import UTC, datetime

    import bittern
    from bittern.spark.streaming import NamedTable
    from bittern.spark.streaming.batch import Batch
    from bittern.spark.streaming.outbox import Outbox
    from bittern.spark.streaming.pins import Checkpoint

    checkpoint = Checkpoint(f"{place}/checkpoint")
    query = checkpoint.query_id()
    assert query is not None
    with bittern.Catalog(f"{place}/catalog.db") as catalog:
        matches = Outbox(checkpoint.own / "outbox").read(spark, batch)
        now = datetime.now(UTC)
        NamedTable(table).deliver(
            Batch(spark, query, batch, catalog.version(), now, ("id",), matches, catalog)
        )


def refused(spark: Any, table: str, format: str | None) -> str:  # noqa: A002
    """Why a table is refused when a stream starts."""
    from bittern.errors import OptionError
    from bittern.spark.streaming import NamedTable

    try:
        NamedTable(table, format=format).check(spark)
    except OptionError as error:
        return str(error)
    return ""
