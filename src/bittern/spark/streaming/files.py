"""The exactly-once sink: a growing table of Parquet files, one folder for each batch."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bittern.spark.streaming.batch import Batch, Sink
from bittern.spark.streaming.outbox import table_at


@dataclass(frozen=True)
class Files(Sink):
    """A folder of Parquet files that ``spark.read.parquet`` reads as one table of matches.

    Tasks write straight into it; ``outbox.py`` says why a reader sees each batch whole and once.
    """

    #: A path, or a ``file:`` URI, of a file system that driver and executors share; or a folder in
    #: a bucket, ``s3a://bucket/folder``, which ``bittern.spark.read_matches`` reads.
    path: str | os.PathLike[str]

    def check(self, spark: SparkSession) -> None:
        """Raise an OptionError for a path that no task could write to."""
        table_at(self.path, spark)

    def deliver(self, batch: Batch) -> None:
        """Write what after-steps let pass; without after-steps, tasks have written it already."""
        table_at(self.path, batch.spark).write(batch.matches, batch.batch_id)
