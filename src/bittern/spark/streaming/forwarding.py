"""Sinks that hand a batch to one of Spark's writers: Kafka, and any format by its name.

::

    matches              order  subscription  version
                         17     alert-3       4711

    Kafka                key    9d1c...  (of the order 17, alert-3 and 4711: 32 hexadecimal digits)
                         value  {"order":17,"subscription":"alert-3","version":4711,"batch":42}

    Format, with a path  <path>/query=<id>/batch=42/part-*
    Format, otherwise    order  subscription  version  batch  query
                         17     alert-3       4711     42     5f0e...

What happens when a batch is delivered again, because the driver died before Spark noted it as done,
is up to the receiver. Files: the batch's own folder is replaced. Delta: the table knows the query
and the batch, and takes none twice. Kafka and the others: matches may come twice, with the same key
or the same batch and query, by which they are known.

Cost: that of Spark's writer; the matches are read once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bittern.errors import OptionError, brief
from bittern.options import one_of
from bittern.spark.attributes import names_of, quoted
from bittern.spark.operator import SUBSCRIPTION
from bittern.spark.session import is_case_sensitive
from bittern.spark.sink.part_files import VERSION
from bittern.spark.streaming.batch import Batch, Sink, as_json
from bittern.spark.streaming.outbox import BATCH, QUERY
from bittern.spark.streaming.sources import (
    checked_options,
    listed,
    missing_connector,
    said,
)
from bittern.spark.versions import condition

MODES = ("append", "overwrite")
#: Formats of files, which Spark writes to a folder.
_FILES = ("parquet", "orc", "json", "csv", "xml", "avro")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(.+://)?[^\s,/]+:[0-9]{1,5}")
_OWN_KAFKA = {"kafka.bootstrap.servers": "servers", "topic": "topic", "path": "topic"}
#: Of a hash with 64: 128 bits tell any number of matches apart.
_KEY_DIGITS = 32
#: How Spark's errors begin where no class implements a format.
_MISSING = re.compile(r"\[(\w+_)?DATA_SOURCE_NOT_(FOUND|ENABLED)\b")
OWN_DELTA = ("txnappid", "txnversion")


@dataclass(frozen=True, init=False)
class Kafka(Sink):
    """A topic of Kafka, through Spark's own connector: each match at least once, with its key.

    A match always has the same key, a hash of the event's keys, the subscription and the catalog
    version: a consumer that has seen a key before has seen the match.

    Parameters
    ----------
    servers
        Where brokers listen, as "host:port".
    options
        Of Kafka's producer with the prefix ``kafka.``: ``{"kafka.compression.type": "zstd"}``.
    """

    servers: str
    topic: str
    options: Mapping[str, str]

    def __init__(
        self,
        servers: str | Sequence[str],
        topic: str,
        *,
        options: Mapping[str, str] | None = None,
    ) -> None:
        brokers = listed(servers, "servers")
        for server in brokers.split(","):
            if _SERVER.fullmatch(server) is None:
                raise OptionError(f"servers must be given as host:port, not {server!r}")
        if not isinstance(topic, str) or _TOPIC.fullmatch(topic) is None or set(topic) == {"."}:
            raise OptionError(
                f"topic must be at most 249 letters, digits, dots, dashes and underscores, not "
                f"{topic!r}"
            )
        given = checked_options(options, _OWN_KAFKA)
        for name in given:
            if not name.startswith("kafka."):
                raise OptionError(
                    f"options has {name!r}, which Spark would ignore: settings of Kafka's producer "
                    f"begin with 'kafka.', as in 'kafka.{name}'"
                )
        fill_in(self, servers=brokers, topic=topic, options=given)

    def __repr__(self) -> str:  # options may hold a password
        return f"Kafka({self.servers!r}, {self.topic!r})"

    def check(self, spark: SparkSession) -> None:
        """Raise an OptionError if Spark's Kafka connector is missing."""
        if _is_missing(spark, "kafka"):
            raise missing_connector(spark)

    def deliver(self, batch: Batch) -> None:
        """Send each match; returns when the brokers have acknowledged all of them."""
        writer = self.messages(batch).write.format("kafka").options(**self.options)
        writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic).save()

    def messages(self, batch: Batch) -> DataFrame:
        """What is sent: the columns key and value, both text."""
        check_free(batch, BATCH)
        # The order in which a pipeline names its keys makes no other key of a match.
        identity = as_json(*map(quoted, sorted(batch.keys)), SUBSCRIPTION, VERSION)
        return batch.matches.select(
            F.substring(F.sha2(identity, 256), 1, _KEY_DIGITS).alias("key"),
            as_json(*map(quoted, batch.carried), SUBSCRIPTION, VERSION, _number(batch)).alias(
                "value"
            ),
        )


@dataclass(frozen=True, init=False)
class Format(Sink):
    """Whatever Spark can write to, by the name of its format.

    Files (Parquet, ORC, JSON, CSV, XML, Avro) go to ``<path>/query=<id>/batch=<n>``, a folder that
    is replaced if the batch is delivered again: each match is there once, though a reader may see
    a batch that is being written. What the table at ``<path>`` calls batch and query stands in the
    folders' names. Other formats get both as columns, and Delta as ``txnVersion`` and ``txnAppId``
    too, by which it takes each batch once.

    Parameters
    ----------
    name
        "parquet", "delta", "jdbc", ..., or the name of the class that implements it.
    mode
        "append", or "overwrite" what an earlier batch wrote to the same place.
    partition_by
        Columns of the matches to partition by.
    options
        Of the format. ``{batch}`` and ``{query}`` in a value stand for those of the batch.
    """

    name: str
    mode: str
    partition_by: tuple[str, ...]
    options: Mapping[str, str]

    def __init__(
        self,
        name: str,
        *,
        mode: str = "append",
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise OptionError(
                f"name must be the name of a Spark format, such as 'delta', not {name!r}"
            )
        one_of("mode", mode, MODES)
        given = {key: option(key, value) for key, value in (options or {}).items()}
        lower = {key.lower() for key in given}
        form = name.strip().lower()
        if form == "text":
            raise OptionError(
                "the format text holds one column, but matches have more: use json or csv"
            )
        if form in _FILES and "path" not in lower:
            raise OptionError(
                f"{name} is written to files: give their folder in options, as 'path'"
            )
        if form in _FILES and mode != "append":
            raise OptionError(
                f"{name} is written to one folder per batch, and none replaces another: leave out "
                f"mode"
            )
        if form == "delta" and lower & {*OWN_DELTA}:
            raise OptionError("txnAppId and txnVersion are set for each batch: leave them out")
        partitions = tuple(names_of(partition_by, "partition_by"))
        fill_in(self, name=name.strip(), mode=mode, partition_by=partitions, options=given)

    def __repr__(self) -> str:  # options may hold a password
        return f"Format({self.name!r}, mode={self.mode!r}, partition_by={self.partition_by!r})"

    def check(self, spark: SparkSession) -> None:
        """Raise an OptionError if Spark has no such format."""
        if self.name.lower() == "kafka":
            raise OptionError("use the sink Kafka, which gives each match its key")
        if _is_missing(spark, self.name):
            raise OptionError(
                f"Spark has no format {self.name!r}: check the name, or start Spark with the jars "
                f"of its connector (spark.jars.packages)"
            )

    def deliver(self, batch: Batch) -> None:
        """Write the batch; returns when the writer has committed it."""
        rows = self._rows(batch)
        for name in self.partition_by:
            if name not in rows.columns:
                raise OptionError(
                    f"partition_by names {name!r}, which is not a column of the matches; they have "
                    f"{', '.join(rows.columns)}"
                )
        options = {name: _filled(value, batch) for name, value in self.options.items()}
        mode = self.mode
        if self.name.lower() in _FILES:
            options = {
                name: f"{value.rstrip('/')}/{batch.place}" if name.lower() == "path" else value
                for name, value in options.items()
            }
            mode = "overwrite"
        if self.name.lower() == "delta":
            options |= {"txnAppId": batch.query_id, "txnVersion": str(batch.batch_id)}
        writer = rows.write.format(self.name).mode(mode).options(**options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        try:
            writer.save()
        except AnalysisException as error:
            if condition(error) != "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE":
                raise
            raise OptionError(
                f"{self.name} cannot hold these matches: {said(error)} Name other columns in "
                f"event_id, cast that one, or use another format"
            ) from error

    def _rows(self, batch: Batch) -> DataFrame:
        check_free(batch, BATCH, QUERY)
        # Folders have those names.
        return batch.matches if self.name.lower() in _FILES else with_batch(batch)


def fill_in(sink: Sink, **values: object) -> None:
    """Fill in a frozen sink."""
    for name, value in values.items():
        object.__setattr__(sink, name, value)


def with_batch(batch: Batch) -> DataFrame:
    """The matches with the columns batch and query."""
    return batch.matches.select("*", _number(batch), F.lit(batch.query_id).alias(QUERY))


def _number(batch: Batch) -> Column:
    return F.lit(batch.batch_id).cast("bigint").alias(BATCH)


def option(name: str, value: object) -> str:
    """An option's value as Spark takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(name, str) or not isinstance(value, str | int | float):
        raise OptionError(
            f"options must be names with strings or numbers, not {brief(name)}: {brief(value)}"
        )
    return str(value)


def _filled(value: str, batch: Batch) -> str:
    # Not str.format: other braces, as in JSON, are the value's own.
    return value.replace("{batch}", str(batch.batch_id)).replace("{query}", batch.query_id)


def _is_missing(spark: SparkSession, name: str) -> bool:
    """Has Spark no format of this name?"""
    try:
        spark.read.format(name).schema("known int").load()
    except Exception as error:  # noqa: BLE001  of a class for each thing that is wrong
        # One that is known misses options here, or cannot be read: it is for writing.
        return _MISSING.search(str(error)) is not None
    return False


def check_free(batch: Batch, *names: str) -> None:
    """None of the keys has one of these names."""
    same = str if is_case_sensitive(batch.spark) else str.lower
    for key in batch.keys:
        if same(key) in names:
            raise OptionError(f"the key column {key!r} has the name of an output column: rename it")
