"""Gathering: the pieces of each event, found in several shards, as one row.

::

    key  subscriptions  candidates  rejected  is_first_piece        key  subscriptions  ...
    7    [11, 5]        3           null      true             ->   7    [11, 5, 30]
    7    [30]           1           null      false

Each event has one first piece, so a key with two of them belongs to two events: merging them would
be wrong, so the job fails instead.

If an executor is lost with its shuffled rows, its tasks run again, and their rows may come in
another order. Spark then compares a checksum of the rows with the earlier one, and gives up a job
that has begun to return rows if they differ. So pieces are sent as they are: complete, not half
gathered with their neighbours, and each the same whatever its neighbours were.

Cost: one shuffle and sort of the pieces that hold anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from bittern.errors import OptionError
from bittern.spark.attributes import place
from bittern.spark.operator import CANDIDATES, FIRST, REJECTED, SUBSCRIPTIONS
from bittern.spark.versions import VariantType

_LARGEST_SLICE = 2**31 - 1


def is_loose(type_: DataType) -> bool:
    """Whether it is or holds a map or a variant, which Spark can neither hash nor group."""
    if isinstance(type_, StructType):
        return any(is_loose(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return is_loose(type_.elementType)
    return isinstance(type_, MapType | VariantType)


def check_identified(*, identified: bool) -> None:
    """Raise unless the caller has named the columns that identify an event, to gather by them."""
    if not identified:
        raise OptionError(
            "sharded matching gathers an event's matches by its event_id: name the columns that "
            "identify an event, or use explode=True without limit"
        )


def check_gathering(events: DataFrame, keys: Sequence[str]) -> None:
    """Raise if matches of these events cannot be gathered by these keys."""
    if events.isStreaming:
        raise OptionError(
            "sharded matching of a stream cannot gather an event's matches: use explode=True "
            "without limit, or match each micro-batch in foreachBatch"
        )
    for key in keys:
        if is_loose(events.schema[key].dataType):
            raise OptionError(
                f"sharded matching gathers an event's matches by its event_id, and Spark cannot "
                f"group by {key!r}, which is {events.schema[key].dataType.simpleString()}: name "
                f"other columns, or use explode=True without limit"
            )


def gathered(
    pieces: DataFrame, keys: Sequence[str], carried: int, limit: int | None, *, counted: bool
) -> DataFrame:
    """One row for each event, the keys by place; two events with the same keys fail the job.

    Behind the keys stand so many ``carried`` columns, each the same in all pieces of an event where
    it is not NULL.
    """
    # Most visits find nothing, and then only the first has to be gathered.
    worth = F.col(FIRST) | (F.size(SUBSCRIPTIONS) > 0)
    if counted:
        worth |= F.col(CANDIDATES) > 0
    places = [place(at) for at in range(len(keys))]
    others = [place(at) for at in range(len(keys), len(keys) + carried)]
    grouped = (
        pieces.filter(worth)
        .repartition(*places)  # before grouping, which would else send what arrived together as one
        .groupBy(*places)
        .agg(
            F.flatten(F.collect_list(SUBSCRIPTIONS)).alias(SUBSCRIPTIONS),
            F.sum(CANDIDATES).alias(CANDIDATES),
            F.max(REJECTED).alias(REJECTED),
            F.count_if(FIRST).alias("events"),
            *(F.first(other, ignorenulls=True).alias(other) for other in others),
        )
    )
    found = F.col(SUBSCRIPTIONS)
    if limit is not None:
        best = F.slice(F.sort_array(found), 1, min(limit, _LARGEST_SLICE))
        found = F.transform(best, lambda match: match["id"])
    named = [F.col(place).alias(key) for place, key in zip(places, keys, strict=True)]
    twins = F.concat(
        F.lit("sharded matching gathers an event's matches by its event_id, and two events have "),
        F.to_json(F.struct(*named)),
        F.lit(": name columns that identify an event, or use explode=True without limit"),
    )
    # A filter, since a reader that reads no column of the matches computes none either.
    unique = F.when(F.col("events") == 1, F.lit(True)).otherwise(F.raise_error(twins))
    return grouped.filter(unique).withColumn(SUBSCRIPTIONS, found)
