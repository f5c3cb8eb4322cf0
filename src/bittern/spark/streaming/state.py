"""What an after-step leaves: a folder for each batch, written once and never changed.

::

    state/                            a table that grows, and is forgotten from its other end
      batch=16/                       batch 17 starts from what is remembered here
      batch=17/                       what passed of it and what is remembered after it, together:
                                      a replay finds both, and computes nothing
      .batch=18.<token>.writing/      a driver died here: what it wrote is never read

What a batch leaves is computed from the batch and from what the batch before it left, so it is the
same in every attempt; ``outbox.py`` says why it is there whole or not at all. Two are kept: Spark
replays only the last batch.

Cost: one job for each batch, which writes all that is remembered and so grows with that too, not
with the batch alone.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from bittern.errors import OptionError
from bittern.spark.stores.manifests import ManifestTable
from bittern.spark.streaming.outbox import Outbox


class States:
    """What the batches of one step left."""

    def __init__(self, table: Outbox | ManifestTable) -> None:
        self._table = table

    def before(self, spark: SparkSession, batch_id: int, schema: StructType) -> DataFrame:
        """What is remembered from before this batch, as columns of this schema."""
        last = self._before(batch_id)
        if last is None:
            return spark.createDataFrame([], schema)
        left = self._table.read(spark, last)
        found = StructType([field for field in left.schema if field.name in schema.names])
        if found.simpleString() != schema.simpleString():
            raise OptionError(
                f"{self._table.path} remembers {found.simpleString()}, but this step needs "
                f"{schema.simpleString()}: a step and its columns cannot change within one "
                f"checkpoint; use a new checkpoint, or remove that folder to start afresh"
            )
        return left.select(*schema.names)

    def keep(self, batch_id: int, left: DataFrame) -> DataFrame:
        """Have on disk what this batch left, if it is not there yet, and read it from there."""
        self._table.write(left, batch_id)
        last = self._before(batch_id)
        if last is not None:
            self._table.forget(last)  # no batch starts from what was left before it
        return self._table.read(left.sparkSession, batch_id)

    def _before(self, batch_id: int) -> int | None:
        """The last batch before this one that left something."""
        return max((batch for batch in self._table.batches() if batch < batch_id), default=None)
