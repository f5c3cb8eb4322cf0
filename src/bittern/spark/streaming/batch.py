"""One micro-batch between outbox and sink, and the interfaces of sinks and after-steps.

::

    matches    order  subscription  version       read from committed Parquet: reading it twice
               17     alert-3       4711          matches nothing again, and gives the same rows
               17     wish-8        4711
               18     alert-3       4711

If the driver dies before Spark has noted a batch as done, sinks and steps get the same batch again,
with the same rows, catalog version and time of the pin. So what depends on nothing else is
repeatable, and (query, batch) tells a receiver what it has seen before.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bittern.catalog.catalog import Catalog
from bittern.spark.operator import SUBSCRIPTION
from bittern.spark.sink.part_files import VERSION
from bittern.spark.streaming.outbox import BATCH, QUERY

#: Times as ISO 8601 writes them, with all their digits, whatever the session's time zone.
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class Batch:
    """The matches of one micro-batch, one row for each."""

    spark: SparkSession
    #: Of the checkpoint: the same after every restart.
    query_id: str
    batch_id: int
    #: The catalog version that the batch is pinned to.
    version: int
    #: When it was pinned, in UTC.
    time: datetime
    #: The columns that identify an event.
    keys: tuple[str, ...]
    #: Keys, payload, subscription (string), version (bigint).
    matches: DataFrame
    catalog: Catalog

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns of the event: keys and payload, as they were when it was matched."""
        return tuple(name for name in self.matches.columns if name not in (SUBSCRIPTION, VERSION))

    @property
    def place(self) -> str:
        """A folder's name that no other batch has, of this query or of another."""
        return f"{QUERY}={self.query_id}/{BATCH}={self.batch_id}"


def as_json(*columns: Column | str) -> Column:
    """Columns as one JSON text: the same for the same values, and to the microsecond."""
    return F.to_json(F.struct(*columns), _JSON)


class Sink(abc.ABC):
    """Where matches go. What it delivers twice, a receiver can tell by (query, batch)."""

    @abc.abstractmethod
    def check(self, spark: SparkSession) -> None:
        """Raise an OptionError for what cannot work, before the stream starts."""

    @abc.abstractmethod
    def deliver(self, batch: Batch) -> None:
        """Hand over a batch; returns when the receiver has it."""


class After(abc.ABC):
    """A step between matching and the sink, which lets some matches pass."""

    #: Has it to see events without matches too? They come as rows without a subscription.
    needs_all_events: ClassVar[bool] = False

    @abc.abstractmethod
    def check(self, keys: tuple[str, ...]) -> None:
        """Raise an OptionError unless it can work on matches with these keys."""

    @abc.abstractmethod
    def apply(self, batch: Batch, folder: str) -> DataFrame:
        """The matches that pass, with the columns they have. State is kept under ``folder``.

        The state after a batch is written once and never changed: a replay starts from the state
        before it.
        """
