"""Steps between matching and the sink: only matches that newly hold, and not too many of them.

``Edge("product", order="at")``, where a subscription holds for a product while its events match::

    product  at   matches          held before   passes
    tent     1    cheap            -             cheap      the first event of the tent
    tent     2    cheap, red       cheap         red        cheap has not ceased to hold
    tent     3    -                cheap, red    -          an event without a match counts too
    tent     4    cheap            -             cheap      it holds again

``Throttle(2, "1 hour")``, where ann has the subscriptions cheap and red::

    pinned   matches                     sent this hour   passes
    10:58    cheap, red, red, (bob) big  -                cheap, red, big
    10:59    red                         ann 2, bob 1     -
    11:00    red                         -                red        a new hour

Both are DataFrame code that the JVM runs. What a batch leaves, the matches that pass and what is to
be remembered, depends on nothing but the batch and what the batch before it left, and is written
down before any of it is used (``state.py``): a replay lets the same matches pass.

Cost: one job, which sorts the batch together with what is remembered. An Edge remembers a row for
each entity for which something holds, a Throttle one for each receiver of something in the current
window. docs/benchmarks/streaming.md has figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import ClassVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from bittern.errors import OptionError
from bittern.options import one_of, whole_number
from bittern.spark.arrow_tables import frame_of, to_arrow
from bittern.spark.attributes import names_of, quoted
from bittern.spark.operator import SUBSCRIPTION
from bittern.spark.streaming.batch import After, Batch
from bittern.spark.streaming.outbox import table_at
from bittern.spark.streaming.state import States
from bittern.spark.versions import VariantType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(r"([0-9]{1,9}) *(second|minute|hour|day|week)s?")
#: How matches are counted.
_BY = ("subscriber", "subscription")
_COUNTS = StructType(
    [
        StructField("receiver", StringType()),
        StructField("window", LongType()),
        StructField("seconds", LongType()),
        StructField("sent", LongType()),
    ]
)


class Edge(After):
    """Let a match pass only if the subscription did not hold for the entity's previous event.

    Parameters
    ----------
    entity
        The keys that identify what an event is about. An event that lacks one of them (NULL) has
        no past: its matches pass, and are not remembered.
    order
        The keys by which the events of an entity follow each other within a batch, first to last;
        ties, and all if None, are decided by the other keys in the order of ``event_id``. Batches
        follow each other as they come.

    Rows with the same keys are one event, so what a source repeats within a batch passes once.
    """

    #: An event that matches nothing ends what held: it comes as a row without a subscription.
    needs_all_events: ClassVar[bool] = True

    def __init__(
        self, entity: str | Sequence[str], order: str | Sequence[str] | None = None
    ) -> None:
        self.entity = tuple(names_of(entity, "entity"))
        self.order = tuple(names_of(order, "order"))
        if not self.entity:
            raise OptionError(
                "entity names no column: name the keys that identify what an event is about"
            )

    def check(self, keys: tuple[str, ...]) -> None:
        """Raise an OptionError unless entity and order are among the keys."""
        _check_keys("entity", self.entity, keys)
        _check_keys("order", self.order, keys)

    def apply(self, batch: Batch, folder: str) -> DataFrame:
        """The matches that newly hold."""
        self.check(batch.keys)
        matches = batch.matches
        fields = [matches.schema[name] for name in self.entity]
        _check_orderable("entity", fields)
        _check_orderable("order", [matches.schema[name] for name in self.order])
        remembered = StructType(
            [
                StructField("entity", StructType(fields)),
                StructField("held", ArrayType(StringType())),
            ]
        )
        states = States(table_at(f"{folder}/state", batch.spark))
        before = states.before(matches.sparkSession, batch.batch_id, remembered)
        anonymous = reduce(or_, [F.col(quoted(name)).isNull() for name in self.entity])
        events = (
            matches.where(~anonymous)
            .select(
                F.struct(*map(quoted, self.entity)).alias("entity"),
                F.struct(*_positions(batch, self.order)).alias("position"),
                F.struct(*map(quoted, batch.carried)).alias("event"),
                SUBSCRIPTION,
            )
            .groupBy("entity", "position")
            .agg(F.first("event").alias("event"), F.collect_set(SUBSCRIPTION).alias("holds"))
        )
        # What held before the batch is an event before all others: its position is NULL.
        past = before.withColumnRenamed("held", "holds")
        in_order = Window.partitionBy("entity").orderBy("position")
        nothing = F.array().cast("array<string>")
        newly = F.array_except("holds", F.coalesce(F.lag("holds").over(in_order), nothing))
        is_last = F.lead(F.lit(True)).over(in_order).isNull()
        left = (
            events.unionByName(past, allowMissingColumns=True)
            .select(
                "entity",
                F.when(is_last & (F.size("holds") > 0), F.col("holds")).alias("held"),
                "event",
                F.when(F.col("event").isNotNull(), newly).alias("newly"),
            )
            .where(F.col("held").isNotNull() | (F.size("newly") > 0))
        )
        passed = states.keep(batch.batch_id, left).select(
            *[F.col("event").getField(name).alias(name) for name in batch.carried],
            F.explode("newly").alias(SUBSCRIPTION),
            F.lit(batch.version).cast("bigint").alias("version"),
        )
        without_past = matches.where(anonymous & F.col(SUBSCRIPTION).isNotNull())
        return passed.unionByName(without_past).select(*map(quoted, matches.columns))


class Throttle(After):
    """Let a limited number of matches of a receiver pass in a window of time.

    Parameters
    ----------
    most
        The number of matches per window.
    per
        The length of a window: "1 hour", "90 seconds", "2 days", ... Windows are aligned to UTC,
        and a batch is in the window in which it was pinned to its catalog version.
    by
        The receiver: the "subscriber" of a subscription in the batch's version of the catalog
        (a subscription without one counts by itself), or each "subscription".
    order
        The keys by which matches of a batch are chosen, first to last; ties, and all if None, by
        the other keys in the order of ``event_id``, then by subscription.
    """

    needs_all_events: ClassVar[bool] = False

    def __init__(
        self,
        most: int,
        per: str,
        by: str = "subscriber",
        order: str | Sequence[str] | None = None,
    ) -> None:
        whole_number("most", most, 1, 2**63 - 1)
        one_of("by", by, _BY)
        self.most = most
        self.per = _duration(per)
        self.by = by
        self.order = tuple(names_of(order, "order"))

    def check(self, keys: tuple[str, ...]) -> None:
        """Raise an OptionError unless the order is among the keys."""
        _check_keys("order", self.order, keys)

    def apply(self, batch: Batch, folder: str) -> DataFrame:
        """The matches that are within the limit."""
        self.check(batch.keys)
        matches = batch.matches
        _check_orderable("order", [matches.schema[name] for name in self.order])
        states = States(table_at(f"{folder}/state", batch.spark))
        window = F.lit((batch.time - _EPOCH) // self.per).cast("bigint").alias("window")
        seconds = F.lit(self.per // timedelta(seconds=1)).cast("bigint").alias("seconds")
        counts = states.before(matches.sparkSession, batch.batch_id, _COUNTS)
        # Counts of an earlier window say nothing about this one; nor do those of another length.
        past = counts.where((F.col("window") == window) & (F.col("seconds") == seconds))
        rows = self._received(batch).unionByName(
            past.select("receiver", "sent"), allowMissingColumns=True
        )
        # The count before the batch stands before all matches: its position is NULL.
        everyone = Window.partitionBy("receiver")
        in_order = everyone.orderBy("position", SUBSCRIPTION)
        before = F.coalesce(F.sum("sent").over(everyone), F.lit(0))
        place = before + F.count("match").over(in_order.rowsBetween(Window.unboundedPreceding, 0))
        total = F.least(before + F.count("match").over(everyone), F.lit(self.most))
        is_first = F.row_number().over(in_order) == 1
        left = rows.select(
            "receiver",
            window,
            seconds,
            F.when(is_first, total.cast("bigint")).alias("sent"),
            F.when(place <= self.most, F.col("match")).alias("match"),
        ).where(F.col("sent").isNotNull() | F.col("match").isNotNull())
        passed = states.keep(batch.batch_id, left).where(F.col("match").isNotNull())
        return passed.select(*[F.col("match").getField(n).alias(n) for n in matches.columns])

    def _received(self, batch: Batch) -> DataFrame:
        """Each complete match, with its receiver and its position among the receiver's matches."""
        matches = batch.matches.where(F.col(SUBSCRIPTION).isNotNull())
        alone = F.concat(F.lit("subscription "), F.col(SUBSCRIPTION))
        rows = matches.select(
            F.struct(*map(quoted, matches.columns)).alias("match"),
            F.struct(*_positions(batch, self.order)).alias("position"),
            SUBSCRIPTION,
        )
        if self.by == "subscription":
            return rows.select("*", alone.alias("receiver"))
        ids = to_arrow(matches.select(SUBSCRIPTION).distinct())[SUBSCRIPTION].to_pylist()
        known = batch.catalog.details(sorted(ids), batch.version).select(["id", "subscriber"])
        known = known.rename_columns([SUBSCRIPTION, "subscriber"])
        subscribers = frame_of(matches.sparkSession, known)
        # A prefix keeps a subscriber apart from a subscription of the same name.
        shared = F.concat(F.lit("subscriber "), F.col("subscriber"))
        joined = rows.join(subscribers, SUBSCRIPTION, "left")
        return joined.select("*", F.coalesce(shared, alone).alias("receiver"))


def _positions(batch: Batch, order: Sequence[str]) -> list[Column]:
    """All keys, those of the order first, in forms that Spark can sort and group."""
    names = [*order, *(key for key in batch.keys if key not in order)]
    fields = [batch.matches.schema[name] for name in names]
    return [
        F.col(quoted(field.name))
        if _is_orderable(field.dataType)
        # as good as any other order, and the same whenever the same rows are read
        else F.to_json(quoted(field.name)).alias(field.name)
        for field in fields
    ]


def _is_orderable(type_: DataType) -> bool:
    """Whether Spark can sort by it."""
    if isinstance(type_, StructType):
        return all(_is_orderable(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return _is_orderable(type_.elementType)
    return not isinstance(type_, MapType | VariantType)


def _check_orderable(what: str, fields: Iterable[StructField]) -> None:
    for field in fields:
        if not _is_orderable(field.dataType):
            raise OptionError(
                f"{what} names {field.name!r}, which is {field.dataType.simpleString()}: values of "
                f"that type cannot be sorted; name another key"
            )


def _check_keys(what: str, names: Sequence[str], keys: Sequence[str]) -> None:
    for name in names:
        if name not in keys:
            raise OptionError(
                f"{what} names {name!r}, which is not a key of the matches; event_id names "
                f"{', '.join(keys)}: add it there, or name one of those"
            )


def _duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        raise OptionError(
            f"per must be a number of seconds, minutes, hours, days or weeks, such as '1 hour', "
            f"not {text!r}"
        )
    try:
        return timedelta(**{f"{found[2]}s": int(found[1])})
    except OverflowError:
        raise OptionError(f"per is {text!r}: that is longer than a window can be") from None
