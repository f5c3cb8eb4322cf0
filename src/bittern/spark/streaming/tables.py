"""A sink that is a table, by its name in a catalog of Spark's: Delta or Iceberg, exactly once.

::

    lake.shop.alerts     order  subscription  version  batch  query
                         17     alert-3       4711     42     5f0e...

A table's commit is atomic: a batch is there as a whole or not at all. What is left is to know
whether a batch that is delivered again is there already::

    Delta      the commit has txnAppId 5f0e... and txnVersion 42, and the table refuses a version
               of that application that is not newer than the last one
    Iceberg    the snapshot's summary has bittern.query 5f0e... and bittern.batch 42, which are
               read back before a batch is written; where all snapshots of the query have been
               expired, the rows themselves are asked

Iceberg is asked before the write, not in its commit, so it takes one driver at a time: the lock of
the checkpoint sees to that.

Cost: that of Spark's writer. Iceberg's snapshots are listed once for each batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F

from bittern.errors import OptionError
from bittern.options import one_of
from bittern.spark.attributes import names_of, quoted
from bittern.spark.streaming.batch import Batch, Sink
from bittern.spark.streaming.forwarding import OWN_DELTA, check_free, fill_in, option, with_batch
from bittern.spark.streaming.outbox import BATCH, QUERY
from bittern.spark.streaming.sources import said
from bittern.spark.versions import condition

FORMATS = ("delta", "iceberg")
#: The names of a table and of where it is: plain, or anything in backquotes.
_PART = r"(?:[A-Za-z0-9_]+|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,7}}")
_SUMMARY_QUERY, _SUMMARY_BATCH = "bittern.query", "bittern.batch"
_SUMMARY = "snapshot-property."
_THERE_ALREADY = "TABLE_OR_VIEW_ALREADY_EXISTS"


@dataclass(frozen=True, init=False)
class NamedTable(Sink):
    """A Delta or Iceberg table: each match exactly once, whatever process dies.

    Parameters
    ----------
    name
        As in SQL: "alerts", "shop.alerts", or with the name of a catalog "lake.shop.alerts".
    format
        "delta" or "iceberg": a table that is not there is made, of this format. Without it, the
        table must be there.
    partition_by
        Columns of the matches to partition by a table that is made.
    options
        Of the format's writer.
    """

    name: str
    format: str | None
    partition_by: tuple[str, ...]
    options: Mapping[str, str]

    def __init__(
        self,
        name: str,
        *,
        format: str | None = None,  # noqa: A002  as Spark calls it
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise OptionError(
                f"name must be that of a table, such as 'shop.alerts', not {name!r:.80}: put a "
                f"part with other characters in `backquotes`"
            )
        if format is not None:
            one_of("format", format, FORMATS)
        given = {key: option(key, value) for key, value in (options or {}).items()}
        for key in given:
            if key.lower() in OWN_DELTA or key.lower().startswith(f"{_SUMMARY}bittern."):
                raise OptionError(f"options has {key!r}, which is set for each batch: leave it out")
        partitions = tuple(names_of(partition_by, "partition_by"))
        fill_in(self, name=name, format=format, partition_by=partitions, options=given)

    def __repr__(self) -> str:  # options may hold a password
        return f"NamedTable({self.name!r}, format={self.format!r})"

    def check(self, spark: SparkSession) -> None:
        """Raise an OptionError if the table is missing, or of a format without such commits."""
        found = self._found(spark)
        if found is None and self.format is None:
            raise OptionError(
                f"there is no table {self.name}: create it, or say format='delta' or "
                f"format='iceberg' to have it made"
            )
        if found is not None and self.format not in (None, found):
            raise OptionError(f"the table {self.name} is of format {found}, not {self.format}")

    def deliver(self, batch: Batch) -> None:
        """Write the batch, unless it is there; returns when the table has it."""
        check_free(batch, BATCH, QUERY)
        rows = with_batch(batch)
        found = self._found(batch.spark)
        if found is None:
            found = self._make(rows)
        writer = rows.writeTo(self.name).options(**self.options)
        if found == "delta":
            writer.option("txnAppId", batch.query_id).option("txnVersion", batch.batch_id).append()
        elif not self._has(batch):
            writer.option(f"{_SUMMARY}{_SUMMARY_QUERY}", batch.query_id).option(
                f"{_SUMMARY}{_SUMMARY_BATCH}", batch.batch_id
            ).append()

    def _found(self, spark: SparkSession) -> str | None:
        """The format of the table; None if there is none of that name."""
        try:
            if not spark.catalog.tableExists(self.name):
                return None
            told = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name}")
            rows = told.where("col_name = 'Provider'").select("data_type").collect()
        except AnalysisException as error:
            raise OptionError(
                f"the table {self.name} cannot be looked at: {said(error)}"
            ) from error
        provider = str(rows[0][0]).lower() if rows else "unknown"
        if provider not in FORMATS:
            raise OptionError(
                f"the table {self.name} is of format {provider}, which cannot tell a batch that is "
                f"delivered again: use a Delta or Iceberg table, or the sink Files or Format"
            )
        return provider

    def _make(self, rows: DataFrame) -> str:
        """Create the table, without rows; returns its format."""
        assert self.format is not None, "checked when the stream starts"
        for name in self.partition_by:
            if name not in rows.columns:
                raise OptionError(
                    f"partition_by names {name!r}, which is not a column of the matches; they have "
                    f"{', '.join(rows.columns)}"
                )
        empty = rows.sparkSession.createDataFrame([], rows.schema)
        writer: DataFrameWriterV2 = empty.writeTo(self.name).using(self.format)
        if self.partition_by:
            writer = writer.partitionedBy(*(F.col(quoted(name)) for name in self.partition_by))
        try:
            writer.create()
        except AnalysisException as error:
            if condition(error) != _THERE_ALREADY:  # another pipeline was quicker
                raise OptionError(
                    f"the table {self.name} cannot be made: {said(error)} Create it beforehand, or "
                    f"start Spark with the jars and settings of {self.format}"
                ) from error
        return self._found(rows.sparkSession) or self.format

    def _has(self, batch: Batch) -> bool:
        """Whether an Iceberg table has a batch, by the snapshots that its content comes from."""
        snapshots = batch.spark.table(f"{self.name}.snapshots")
        current = batch.spark.table(f"{self.name}.history").where("is_current_ancestor")
        own = snapshots.where(F.col("summary")[_SUMMARY_QUERY] == batch.query_id)
        number = F.max(F.col("summary")[_SUMMARY_BATCH].cast("bigint"))
        last = own.join(current, "snapshot_id", "left_semi").agg(number).collect()[0][0]
        if last is not None:
            return bool(last >= batch.batch_id)
        mine = (F.col(QUERY) == batch.query_id) & (F.col(BATCH) == batch.batch_id)
        return bool(batch.spark.table(self.name).where(mine).take(1))
