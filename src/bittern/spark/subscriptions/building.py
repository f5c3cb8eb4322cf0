"""Building on Spark: a DataFrame of subscriptions in, a snapshot that executors can map out.

::

    subscriptions  ──►  how many, how much text, how spread      one job in the JVM
                   ──►  read by the executors                    reading.py, one job
                   ──►  compiled on the driver, published        whole, up to some size
                   or   cut, compiled by the executors           sharded/building.py, beyond it

Reading takes most of the time (6 us for each subscription), so it is spread over the executors.
Compiling (2 us) stays in one place, where one rank space is made for all. The result matches like
the index that ``Index.build`` makes of the same rows. It is that index byte for byte, unless an id
is repeated across partitions or texts have more than a thousand shapes. Bad subscriptions are rows
of ``Built.bad``, whatever is wrong with them.

The DataFrame is computed twice, to be measured and to be read: ``cache`` it if that is expensive.
It is computed a third time if almost all of it is in one partition, which is then spread, in order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    CharType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    VarcharType,
)

from bittern.engine.given import check_columns
from bittern.engine.index import Index
from bittern.engine.known_schema import KnownSchema, Unknown, tell_unknown
from bittern.engine.subscriptions import OnProgress
from bittern.errors import BadSubscription, OptionError, SubscriptionError, brief
from bittern.model.event_schema import EventSchema
from bittern.options import one_of
from bittern.spark.attributes import event_schema, names_of
from bittern.spark.history.past import without_quantifiers
from bittern.spark.session import is_case_sensitive
from bittern.spark.sharded.building import build_shards
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.snapshots.store import publish
from bittern.spark.subscriptions.handed_over import as_frame, is_handed_over
from bittern.spark.subscriptions.reading import Reading, read, writable
from bittern.spark.subscriptions.samples import check_sample, sample_table
from bittern.spark.workers import able, check_workers
from bittern.stabbing.registry import check_name as check_stabbing
from bittern.terms.unknown import SPARK

#: Spark's setting of how many bytes one index may have before it is cut, and its default.
SHARD_BYTES_CONF = "spark.bittern.shard.bytes"
SHARD_BYTES = 4 << 30
#: What a subscription takes in a snapshot, with its text and id: so much, and so often its text.
#: Within 40 % on the catalogs of ``benchmarks/workloads.py`` that are large enough to matter.
_BYTES_EACH, _BYTES_PER_TEXT_BYTE = 32, 3

#: Partitions of more rows are spread, and so are these many if most of all rows are in one.
_LARGE_PARTITION, _UNEVEN_PARTITION = 1_000_000, 100_000
_SPREAD_ROWS = 50_000
#: The row within its partition, in Spark's monotonically increasing ids.
_ROW_BITS = 33

_TEXT = (StringType, CharType, VarcharType)
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_SUFFIXES = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True, eq=False, repr=False)
class Built:
    """Subscriptions that were built: give it to ``bittern.spark.match`` as often as you like."""

    #: Where the index is, for closures.
    ref: SnapshotRef | Shards
    #: How many subscriptions there are, bad ones not counted.
    subscriptions: int
    #: What was left out: id (string), position in the expression (int), message (string).
    bad: DataFrame
    n_bad: int
    #: What asks for something that the events of ``schema`` do not have: id, attribute and reason,
    #: all of them strings. Of an index in shards only attributes that are missing, without ids.
    unknown: DataFrame
    n_unknown: int
    #: The canonical names of the attributes that subscriptions mention.
    attributes: tuple[str, ...]
    #: Are all ids integers? Then matches are ``array<bigint>``, else ``array<string>``.
    integer_ids: bool
    #: How long each stage took: measure, read, build, publish; measure and build if sharded.
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        parts = f"{len(self.ref.shards)} shards" if isinstance(self.ref, Shards) else "one index"
        took = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in self.seconds.items())
        return (
            f"<bittern.spark.Built of {self.subscriptions:,} subscriptions on "
            f"{len(self.attributes):,} attributes, {self.n_bad:,} bad; {parts} "
            f"{self.ref.id[:12]}; {took}>"
        )


@able()
def build(
    subscriptions: Any,
    *,
    sample: DataFrame | pa.Table | pa.RecordBatch | None = None,
    json: str | Sequence[str] = (),
    store: str | None = None,
    shards: str | int | None = "auto",
    on_error: str = "skip",
    stabbing: str = "cei",
    progress: OnProgress | None = None,
    history: bool = True,
    schema: StructType | pa.Schema | EventSchema | None = None,
    unknown: str = "warn",
) -> Built:
    """Build an index of subscriptions with Spark, and publish it to the executors.

    Parameters
    ----------
    subscriptions
        A DataFrame with the columns id (string or an integer type), expression (string) and
        optionally weight (any numeric type; 1.0 where it is NULL). Where an id is repeated, the
        first good row stays. Or a mapping, pairs or a table, as in ``bittern.Index.build``.
    sample
        Typical events, as a DataFrame or an Arrow table: they tell which predicates to file
        subscriptions under. The first 10,000 rows of a DataFrame are used; if it is sorted, give
        ``events.sample(0.01)``. Without a sample, values are assumed to be distributed like the
        constants.
    json
        Columns of the sample whose text is JSON with attributes.
    store
        Where to put the snapshot (``bittern.spark.match`` says what it may be).
    shards
        None or 1: one index, whole on every host. A number from 2: that many parts. "auto": whole
        up to about 4 GiB (Spark's setting ``spark.bittern.shard.bytes``), beyond it as many parts
        as are needed to keep each below.
    on_error
        "skip" bad subscriptions, or "raise" them all as one ``SubscriptionError``.
    stabbing
        As in ``bittern.Index.build``.
    progress
        Called with (stage, done, total) when a stage begins and ends (``Built.seconds`` has them).
    history
        False: the index will be matched without a history, so EXISTS and FORALL are bad. Otherwise
        an index in shards refuses them with an ``OptionError``: it cannot use a history.
    schema
        Of the events: a DataFrame's, or Arrow's. Then constants are converted to the types of
        attributes (``docs/language.md``), and what the events do not have is in ``Built.unknown``.
    unknown
        "warn" of subscriptions that ask for what the events do not have, in the log; "raise" makes
        them bad; "ignore" looks for none.
    """
    one_of("on_error", on_error, ("raise", "skip"))
    one_of("unknown", unknown, ("warn", "raise", "ignore"))
    check_shards(shards)
    check_stabbing(stabbing, None)
    if is_handed_over(subscriptions):
        subscriptions = as_frame(SparkSession.active(), subscriptions)
    rows = rows_of(subscriptions)
    text_ids = isinstance(rows.schema["id"].dataType, StringType)
    check_sample(sample)
    documents = names_of(json, "json")
    spark = subscriptions.sparkSession
    if isinstance(schema, StructType):
        schema = event_schema(schema, documents, case_sensitive=is_case_sensitive(spark))
    known = None if schema is None else KnownSchema.of(schema, SPARK)
    reading = Reading(None if known is None else known.schema, unknown == "raise")
    mistakes: list[Unknown] = []
    limit = shard_bytes(spark.conf.get(SHARD_BYTES_CONF, None))
    check_workers(spark)
    watch = _Watch(progress)

    watch.begin("measure")
    total, text_bytes, largest = measure(rows)
    typical = sample_table(sample, documents)
    n_shards = shard_count(shards, estimated_bytes(total, text_bytes), limit)
    pieces = spread_pieces(total, largest)
    if pieces:
        rows = _spread(rows, pieces)
    watch.end("measure")

    ref: SnapshotRef | Shards
    if n_shards > 1:
        watch.begin("build")
        ref, bad = build_shards(
            rows,
            n_shards,
            sample=typical,
            store=store,
            stabbing=stabbing,
            total=total,
            history=history,
            reading=reading,
            on_bad=lambda found: _raise_bad(found, on_error),
        )
        watch.end("build")
        attributes, integer_ids = ref.attributes, ref.integer_ids
        if known is not None and unknown == "warn":
            mistakes = [Unknown(None, *each) for each in known.missing(attributes)]
    else:
        watch.begin("read", total)
        catalog, templates = read(rows, reading)
        if not history:
            catalog = without_quantifiers(catalog, templates)
        bad = catalog.bad
        _raise_bad(bad, on_error)
        if known is not None and unknown == "warn":
            mistakes = known.unknown(catalog, templates)
        watch.end("read", total)
        watch.begin("build")
        index = Index.of_subscriptions(
            catalog,
            templates,
            sample=typical,
            parameters={"stabbing": stabbing},
            text_ids=text_ids,
        )
        watch.end("build")
        watch.begin("publish")
        ref = publish(spark, index, store)
        watch.end("publish")
        attributes, integer_ids = tuple(index.rank.attribute_names()), index.all_ids.is_int64
    tell_unknown(mistakes)
    return Built(
        ref,
        total - len(bad),
        _bad_rows(spark, bad),
        len(bad),
        _unknown_rows(spark, mistakes),
        len(mistakes),
        attributes,
        integer_ids,
        watch.seconds,
    )


class _Watch:
    """Times the stages, and reports them to ``progress``."""

    def __init__(self, progress: OnProgress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._last = time.perf_counter()

    def begin(self, stage: str, total: int = 1) -> None:
        """Report that a stage begins."""
        if self._progress:
            self._progress(stage, 0, total)

    def end(self, stage: str, total: int = 1) -> None:
        """Report that a stage has ended; its time counts from the end of the one before."""
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now
        if self._progress:
            self._progress(stage, total, total)


def _raise_bad(bad: list[BadSubscription], on_error: str) -> None:
    if bad and on_error == "raise":
        raise SubscriptionError(bad)


# -- what comes in -----------------------------------------------------------------------------


def rows_of(subscriptions: DataFrame) -> DataFrame:
    """The columns id, expression and weight, if there is one, in the types that are read."""
    if not isinstance(subscriptions, DataFrame):
        raise OptionError(
            f"subscriptions must be a Spark DataFrame, not {type(subscriptions).__name__}; "
            "bittern.Index.build takes other forms"
        )
    if subscriptions.isStreaming:
        raise OptionError("subscriptions must be a batch DataFrame, but this one is a stream")
    schema = subscriptions.schema
    names = schema.names
    check_columns(names, "DataFrame")
    text, integer = StringType(), LongType()
    of_id = schema["id"].dataType
    _check_type("id", of_id, (*_TEXT, *_INTEGERS), "bigint or string")
    _check_type("expression", schema["expression"].dataType, _TEXT, "string")
    targets: dict[str, Any] = {
        "id": text if isinstance(of_id, _TEXT) else integer,
        "expression": text,
    }
    if "weight" in names:
        _check_type("weight", schema["weight"].dataType, (NumericType, NullType), "double")
        targets["weight"] = "double"
    # By place, since Spark takes ID for id unless told otherwise.
    numbered = subscriptions.toDF(*[f"c{place}" for place in range(len(names))])
    return numbered.select(
        [F.col(f"c{names.index(name)}").cast(to).alias(name) for name, to in targets.items()]
    )


def _check_type(name: str, found: DataType, wanted: tuple[type, ...], plain: str) -> None:
    if not isinstance(found, wanted):
        raise OptionError(
            f"the column {name} of the subscriptions is {found.simpleString()}: cast it to {plain}"
        )


# -- how much it is ----------------------------------------------------------------------------


def measure(rows: DataFrame) -> tuple[int, int, int]:
    """Count rows and bytes of text, and the rows of the largest partition; one job in the JVM."""
    row = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _ROW_BITS) - 1))
    measured = rows.select(row.alias("row"), F.octet_length("expression").alias("bytes"))
    none = F.lit(-1).cast("long")
    found = measured.agg(
        F.count(F.lit(1)), F.coalesce(F.sum("bytes"), F.lit(0)), F.coalesce(F.max("row"), none)
    ).first()
    assert found is not None
    return int(found[0]), int(found[1]), int(found[2]) + 1


def spread_pieces(total: int, largest: int) -> int:
    """Into how many partitions to spread the rows; 0 if they may stay as they are."""
    uneven = largest > _UNEVEN_PARTITION and 2 * largest > total
    return -(-total // _SPREAD_ROWS) if uneven or largest > _LARGE_PARTITION else 0


def _spread(rows: DataFrame, pieces: int) -> DataFrame:
    """The same rows in the same order, in this many partitions."""
    numbered = rows.withColumn("row", F.monotonically_increasing_id())
    return numbered.repartitionByRange(pieces, "row").sortWithinPartitions("row").drop("row")


def estimated_bytes(subscriptions: int, text_bytes: int) -> int:
    """The approximate size of a snapshot of this many subscriptions."""
    return _BYTES_EACH * subscriptions + _BYTES_PER_TEXT_BYTE * text_bytes


def check_shards(shards: Any) -> None:
    """Raise unless ``shards`` is None, "auto" or a number of parts."""
    number = isinstance(shards, int) and not isinstance(shards, bool) and shards >= 1
    if shards is not None and shards != "auto" and not number:
        raise OptionError(f"shards must be 'auto', None or a number from 1, not {brief(shards)}")


def shard_count(shards: str | int | None, nbytes: int, limit: int) -> int:
    """The number of parts to cut an index of this many bytes into; 1 leaves it whole."""
    if isinstance(shards, int):
        return shards
    return 1 if shards is None else max(1, -(-nbytes // limit))


def shard_bytes(setting: str | None) -> int:
    """The bytes that one index may have, from Spark's setting: "4g", "512m" or plain bytes."""
    if setting is None:
        return SHARD_BYTES
    digits = setting.strip().lower().rstrip("b")
    suffix = digits[-1:] if digits[-1:].isalpha() else ""
    digits = digits.removesuffix(suffix)
    if not digits.isdecimal() or not int(digits) or suffix not in _SUFFIXES:
        raise OptionError(f"{SHARD_BYTES_CONF} must be a size such as 4g or 512m, not {setting!r}")
    return int(digits) << _SUFFIXES[suffix]


# -- what comes back ---------------------------------------------------------------------------


def _bad_rows(spark: SparkSession, bad: list[BadSubscription]) -> DataFrame:
    """Bad subscriptions as a DataFrame."""
    rows = [
        (None if each.id is None else writable(str(each.id)), each.position, writable(each.message))
        for each in bad
    ]
    return spark.createDataFrame(rows, "id string, position int, message string")


def _unknown_rows(spark: SparkSession, unknown: list[Unknown]) -> DataFrame:
    """What the events do not have, as a DataFrame."""
    rows = [
        (None if each.id is None else writable(str(each.id)), each.attribute, each.reason)
        for each in unknown
    ]
    return spark.createDataFrame(rows, "id string, attribute string, reason string")
