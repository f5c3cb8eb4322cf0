"""Matching against shards: route each event, visit the shards that may match it, gather.

::

    routing.py     events, block by block: 7, 8, 9
                     │  shuffle by task: batches of visits
    visiting.py    shard 0   7: [11, 5]  9: []             and home  7: []
                   shard 2   7: [30]                       and home  8: [40]  9: []
                     │  shuffle by block: batches of pieces
    gathering.py   7: [11, 5, 30]  8: [40]  9: []          a row for each event again

Three Python stages; between them events and matches travel as Arrow batches in binary columns.
Without ``gather`` the second stage returns rows: pieces, several for an event.

Cost: an event crosses into Python as a row once, and is shuffled and read once for each visit;
gathering shuffles the matches once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StructType

from bittern.spark.attributes import carriers, is_loose, place, placed
from bittern.spark.operator import (
    CANDIDATES,
    FIRST,
    REJECTED,
    SUBSCRIPTIONS,
    Named,
    restored,
)
from bittern.spark.session import is_case_sensitive
from bittern.spark.sharded.gathering import Gatherer
from bittern.spark.sharded.routing import VISITS, Dispatcher, Router, n_tasks, salts
from bittern.spark.sharded.shards import Shards
from bittern.spark.sharded.visiting import FOUND, Visitor, piece_schema
from bittern.spark.versions import in_partition


def match_shards(
    events: DataFrame,
    keys: Sequence[str],
    shards: Shards,
    *,
    limit: int | None,
    json: Sequence[str],
    gather: bool,
    payload: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> DataFrame:
    """The keys, payload, texts, subscriptions, candidates and rejected: a row for each event.

    ``events`` are projected already: their columns are the keys, the payload and what carries
    attributes. Texts are columns that are NULL unless the event was rejected. Without ``gather``,
    which ``limit`` needs, there are pieces: several rows for an event, its matches spread over
    them, and a column ``is_first_piece`` that is true on one of them.
    """
    spark = events.sparkSession
    carried = (*keys, *payload, *texts)
    counts = is_case_sensitive(spark)
    tasks = salts(shards.traffic, n_tasks(spark, len(shards.shards))) if shards.shards else ()
    router = Router(shards, tuple(json), counts)
    names = tuple(events.columns)
    attributes = carriers(events.schema, shards.attributes, json, case_sensitive=counts)
    # A batch has a column at least, of whatever.
    visiting = tuple(name for name in names if name in attributes) or names[:1]
    dispatcher = Dispatcher(router, names, visiting, carried, len(texts), tasks, gather)
    visits = placed(events).withColumn("content", _content(events.schema))
    visits = visits.mapInArrow(dispatcher, VISITS)
    if tasks:  # else all of it is home, and nothing has to move
        visits = in_partition(visits, sum(tasks), F.col("task"))
    n_gathering = max(1, sum(tasks)) if gather else 0
    visitor = Visitor(shards, len(carried), tuple(json), limit, counts, n_gathering)
    pieces = piece_schema(events.schema, carried, integer_ids=shards.integer_ids)
    if not gather:
        return _named(visits.mapInArrow(visitor, pieces), events.schema, carried, F.col(FIRST))
    found = visits.mapInArrow(visitor, FOUND)
    if tasks:
        found = in_partition(found, n_gathering, F.col("task"))
    if not events.isStreaming:
        found = found.sortWithinPartitions("block", "slice")
    gatherer = Gatherer(len(carried), limit, shards.integer_ids)
    whole = StructType([field for field in pieces if field.name != FIRST])
    return _named(found.mapInArrow(gatherer, whole), events.schema, carried)


def _named(frame: DataFrame, schema: StructType, keys: Sequence[str], *more: Column) -> DataFrame:
    """The columns of the result under their own names, and in the types of the events."""
    columns = [F.col(place(at)).alias(key) for at, key in enumerate(keys)]
    found = frame.select(*columns, SUBSCRIPTIONS, CANDIDATES, REJECTED, *more)
    return restored(found, StructType([schema[name] for name in keys]))


def routed(events: DataFrame, shards: Shards, json: Sequence[str]) -> DataFrame:
    """For each of the projected events the shards that it must visit."""
    router = Router(shards, tuple(json), is_case_sensitive(events.sparkSession))
    named = Named(tuple(events.columns), router)
    return placed(events).mapInArrow(named, "shards array<int>")


def _content(schema: StructType) -> Column:
    """A hash of an event: of all columns that Spark can hash, or of its maps if there are none."""
    columns = [F.col(place(at)) for at in range(len(schema))]
    types = [field.dataType for field in schema]
    own = list(zip(columns, types, strict=True))
    hashed = [column for column, type_ in own if not is_loose(type_)]
    maps = [
        F.map_entries(column)
        for column, type_ in own
        if isinstance(type_, MapType) and not (is_loose(type_.keyType) or is_loose(type_.valueType))
    ]
    found = hashed or maps
    return F.xxhash64(*found) if found else F.lit(0).cast("bigint")
