"""Matching against shards: route each event, visit the shards that may match it, gather.

Events are read once and stay in the JVM while Python, which gets only what regions look at, finds
the shards that each event must visit. Then there is a row for each visit, and the shuffle brings it
to a task that holds the shard::

    event   route        visits            task               matches         gathered
    7       [0, 2]   ->  7, 0 first   ->   0        shard 0   7  [11, 5]      7  [11, 5, 30]
                         7, 2              2 or 3   shard 2   7  [30]
    8       []       ->  8, - first   ->   any                8  []           8  []

An event's first visit (it has one even if it goes nowhere) also visits home, which every task
holds. Home is matched there and not where events are read, so that its matches do not cross the
shuffle. Without ``gather`` the rows of *matches* are the result: pieces, several for an event.

The router judges events for all parts (``engine/sharding/regions.py``), and the first visit carries
what it says. An event that it cannot read visits nothing, not even home. Only documents, JSON text
and variants, leave anything to judge; where there are some, Python is given all attributes in use
at once, since a column of its own hides what a document says of an attribute.

A shard that many events visit has several tasks, its *salt*, chosen by ``salts``. Which of them a
visit goes to is told by a hash of the event's content, never by its place in a batch: if a lost
stage is recomputed with its rows in another order, every visit still goes to the task it went to
before, and nothing is found twice or not at all. Tasks have no state and a shard's content is fixed
by its id, so a task that is retried, or run twice, yields the same rows.

Cost: an event crosses into Python once for the route and once for each visit, and is shuffled once
for each visit; gathering shuffles and sorts the matches once more.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from bittern.arrays import Int64s
from bittern.engine.sharding.regions import REGION_BITS
from bittern.language.derived import has_unknown_functions, is_derived
from bittern.model.events.reads import readable_rows
from bittern.model.ids import Ids
from bittern.model.matches import Matches
from bittern.spark.arrow_types import arrow_type
from bittern.spark.attributes import carriers, place, placed
from bittern.spark.operator import (
    CANDIDATES,
    FIRST,
    REJECTED,
    SUBSCRIPTIONS,
    blocks,
    carried,
    carried_schema,
    cuts,
    id_type,
    named_columns,
    named_field,
    reasons,
    restored,
)
from bittern.spark.session import is_case_sensitive
from bittern.spark.sharded.gathering import check_gathering, gathered, is_loose
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.versions import VariantType, arrow_function, in_partition

_SHARD, _TASK, _READABLE = "shard", "task", "is_readable"
#: Where an event must go, whether it could be read, and what is wrong.
_ROUTE = StructType(
    [
        StructField("shards", ArrayType(IntegerType())),
        StructField(_READABLE, BooleanType()),
        StructField(REJECTED, StringType()),
    ]
)


def match_shards(
    events: DataFrame,
    keys: Sequence[str],
    shards: Shards,
    *,
    limit: int | None,
    json: Sequence[str],
    gather: bool,
    counted: bool,
    payload: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> DataFrame:
    """The keys, payload, texts, subscriptions, candidates and rejected: a row for each event.

    ``events`` are projected already: their columns are the keys, the payload and what carries
    attributes. Texts are columns that are NULL unless the event was rejected. With
    ``gather`` the keys identify an event, else the job fails. Without it, which ``limit`` does not
    allow, there are pieces: several rows for an event, its matches spread over them, and a column
    ``is_first_piece`` that is true on one of them. If candidates are not to be ``counted``, fewer
    pieces are gathered.
    """
    if gather:
        check_gathering(events, keys)
    names = tuple(events.columns)
    counts = is_case_sensitive(events.sparkSession)
    carried = (*keys, *payload, *texts)
    visitor = Visitor(shards, names, carried, tuple(json), limit, counts, len(texts))
    value_type = _value_type(shards, ranked=limit is not None)
    schema = _piece_schema(events.schema, carried, value_type)
    pieces = _visits(events, shards, json).mapInArrow(visitor, schema)
    if gather:
        others = len(carried) - len(keys)
        found = _named(gathered(pieces, keys, others, limit, counted=counted), carried)
    else:
        found = _named(pieces, carried, F.col(FIRST))
    return restored(found, StructType([events.schema[name] for name in carried]))


def _named(frame: DataFrame, keys: Sequence[str], *more: Column) -> DataFrame:
    """The columns of the result under their own names."""
    columns = [F.col(place(at)).alias(key) for at, key in enumerate(keys)]
    return frame.select(*columns, SUBSCRIPTIONS, CANDIDATES, REJECTED, *more)


# -- routes and visits ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Router:
    """Finds the shards that events must visit; runs in Python workers."""

    ref: SnapshotRef
    json: tuple[str, ...]
    case_sensitive: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, their last column replaced by the route that it asks for."""
        for batch in batches:
            route = self.route(batch.column(-1))
            fields = [*list(batch.schema)[:-1], pa.field("route", route.type)]
            columns = [*batch.columns[:-1], route]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def route(self, events: pa.Array) -> pa.Array:
        """For each struct its shards, ascending, whether it could be read, and what is wrong."""
        fields = [named_field(field, field.name) for field in events.type]
        events = pa.StructArray.from_arrays(events.flatten(), fields=fields)
        matcher = self.ref.matcher(case_sensitive=self.case_sensitive)
        matches = matcher.match(events, json=self.json)
        rows, numbers = routes(matches)
        offsets = np.searchsorted(rows, np.arange(len(matches) + 1)).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers.astype(np.int32)))
        readable = readable_rows(len(matches), matches.rejects)
        return pa.StructArray.from_arrays(
            [lists, pa.array(readable), reasons(matches)], ["shards", _READABLE, REJECTED]
        )


def routes(matches: Matches) -> tuple[Int64s, Int64s]:
    """Distinct (event, shard) pairs, in order, of what events matched in the router."""
    rows = np.repeat(np.arange(len(matches)), matches.counts)
    regions = matches.all_ids.take_arrow(matches.subscriptions).to_numpy(zero_copy_only=False)
    pairs = np.unique(rows << 32 | regions >> REGION_BITS)
    return pairs >> 32, pairs & 0xFFFFFFFF


def routed(events: DataFrame, shards: Shards, json: Sequence[str]) -> DataFrame:
    """The events, their columns by place, and a column route: shards, is_readable, rejected."""
    # A struct has at least one field; one that is NULL carries nothing.
    nothing = {"nothing": F.lit(None).cast(BooleanType())}
    counts = is_case_sensitive(events.sparkSession)
    fields = _looked_at(events.schema, shards, json, case_sensitive=counts) or nothing
    struct = F.struct(*(column.alias(name) for name, column in fields.items()))
    router = Router(shards.router, tuple(json), counts)
    route = arrow_function(router.route, _ROUTE)
    if route is not None:
        return placed(events).select("*", route(struct).alias("route"))
    # Where Python cannot be given some columns alone, it is given all of them, and gives them back.
    rows = placed(events).select("*", struct.alias("route"))
    schema = placed(events).schema.add("route", _ROUTE)
    return restored(rows.mapInArrow(router, carried_schema(schema)), schema)


def _looked_at(
    schema: StructType, shards: Shards, json: Sequence[str], *, case_sensitive: bool
) -> dict[str, Column]:
    """What the router has to see of events, by the columns' names."""
    judged = bool(json) or any(isinstance(field.dataType, VariantType) for field in schema)
    # Terms that workers evaluate may fail there, and the router says so for all parts.
    judged |= any(is_derived(name) and name not in schema.names for name in shards.attributes)
    # It can tell that it knows these only if it is given them.
    computed = [name for name in shards.attributes if has_unknown_functions([name])]
    attributes = shards.attributes if judged else [*shards.routed_by, *computed]
    columns = [F.col(place(at)) for at in range(len(schema))]
    return carriers(schema, attributes, json, columns, case_sensitive=case_sensitive)


def _visits(events: DataFrame, shards: Shards, json: Sequence[str]) -> DataFrame:
    """A row for each visit, in the task that holds the shard."""
    places = [place(at) for at in range(len(events.columns))]
    rows = routed(events, shards, json).select(
        *places,
        f"route.{_READABLE}",
        f"route.{REJECTED}",
        F.posexplode_outer("route.shards").alias("nth", _SHARD),
    )
    first = F.coalesce(F.col("nth"), F.lit(0)) == 0
    visits = rows.select(
        *places,
        _SHARD,
        first.alias(FIRST),
        _READABLE,
        F.when(first, F.col(REJECTED)).alias(REJECTED),
    )
    if not shards.shards:  # all of it is home
        return visits
    tasks = salts(shards.traffic, n_tasks(events.sparkSession, len(shards.shards)))
    placed = visits.withColumn(_TASK, _task(tasks, _content(events.schema)))
    return in_partition(placed, sum(tasks), F.col(_TASK)).drop(_TASK)


def _content(schema: StructType) -> Column:
    """A hash of an event, of all columns that Spark can hash."""
    hashed = [place(at) for at, field in enumerate(schema) if not is_loose(field.dataType)]
    return F.xxhash64(*hashed) if hashed else F.lit(0)


def _task(tasks: Sequence[int], content: Column) -> Column:
    """The task for a row: one of its shard's, or any if it goes nowhere."""
    shard = F.col(_SHARD)
    firsts = np.cumsum([0, *tasks[:-1]]).tolist()
    within = F.lit(firsts)[shard] + F.pmod(content, F.lit(list(tasks))[shard])
    anywhere = F.pmod(content, F.lit(sum(tasks)))
    return F.when(shard.isNull(), anywhere).otherwise(within).cast("int")


def salts(traffic: Sequence[float], tasks: int) -> tuple[int, ...]:
    """The number of tasks for each shard: at least one, and more where more events go.

    Each further task goes where a task has most to do, so no other distribution has a smaller
    largest load; it is at most total traffic / (tasks - shards).

    >>> salts([0.9, 0.1, 0.0], 6)
    (4, 1, 1)
    """
    given = [1] * len(traffic)
    loads = [(-share, 1, shard) for shard, share in enumerate(traffic)]
    heapq.heapify(loads)
    for _ in range(len(given) and tasks - len(given)):
        shard = loads[0][2]
        given[shard] += 1
        heapq.heapreplace(loads, (-traffic[shard] / given[shard], given[shard], shard))
    return tuple(given)


def n_tasks(spark: SparkSession | None, shards: int) -> int:
    """The number of tasks for this many shards: enough for the cluster, and to split hot shards."""
    parallelism = 0
    if spark is not None:
        try:
            parallelism = spark.sparkContext.defaultParallelism
        except PySparkException:  # Spark Connect does not tell; this is what the user thinks fit
            parallelism = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    return max(2 * shards, parallelism)


# -- in the task that holds the shard ------------------------------------------------------------


@dataclass(frozen=True)
class Visitor:
    """Matches visits, whatever shards they are to; runs in Python workers.

    In: the events' columns, shard, first, readable, rejected. Out: the keys, subscriptions (in the
    form of ``_values`` if there is a limit), candidates, rejected, first.
    """

    shards: Shards
    names: tuple[str, ...]
    keys: tuple[str, ...]
    json: tuple[str, ...]
    limit: int | None
    case_sensitive: bool = True
    #: How many of the last keys are NULL unless the event was rejected.
    texts: int = 0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match one partition. O(events + candidates + matches)."""
        places = [self.names.index(key) for key in self.keys]
        names = [place(at) for at in range(len(places))]
        names += [SUBSCRIPTIONS, CANDIDATES, REJECTED, FIRST]
        value_type = arrow_type(_value_type(self.shards, ranked=self.limit is not None))
        for batch in blocks(batches):
            offsets, values, candidates = self._match(batch)
            for start, end in cuts(offsets):
                own = batch.slice(start, end - start)
                ends = (offsets[start : end + 1] - offsets[start]).astype(np.int32)
                inside = values.slice(offsets[start], ends[-1]).cast(value_type)
                columns = [own.column(at) for at in places]
                for at in range(len(places) - self.texts, len(places)):
                    is_told = own.column(REJECTED).is_valid()
                    columns[at] = pc.if_else(is_told, columns[at], None)
                columns += [
                    pa.ListArray.from_arrays(pa.array(ends), inside),
                    pa.array(candidates[start:end]),
                    own.column(REJECTED),
                    own.column(FIRST),
                ]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def _match(self, batch: pa.RecordBatch) -> tuple[Int64s, pa.Array, Int64s]:
        """Where each row's matches begin, the matches, and how many candidates each row had."""
        events = named_columns(batch, self.names)
        shard = pc.fill_null(batch.column(_SHARD), -1).to_numpy()
        # A task holds one shard, so there is mostly one; and home.
        visits = [(self.shards.shards[at], shard == at) for at in np.unique(shard[shard >= 0])]
        if self.shards.home is not None:
            at_home = pc.and_(batch.column(FIRST), batch.column(_READABLE))
            visits.append((self.shards.home, at_home.to_numpy(zero_copy_only=False)))
        rows, values = [np.empty(0, dtype=np.int64)], []
        candidates = np.zeros(batch.num_rows, dtype=np.int64)
        for ref, mask in visits:
            own = np.flatnonzero(mask)
            some = events if len(own) == len(mask) else events.take(pa.array(own))
            matcher = ref.matcher(case_sensitive=self.case_sensitive)
            # In order, so that a piece does not depend on what else is in the batch: see gathering.
            matches = matcher.match(some, limit=self.limit, json=self.json).ordered()
            rows.append(np.repeat(own, matches.counts))
            values.append(self._values(matches, matcher.index.weights))
            candidates[own] += matches.candidates
        owners = np.concatenate(rows)
        offsets = np.zeros(batch.num_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(owners, minlength=batch.num_rows), out=offsets[1:])
        found = pa.concat_arrays(values) if values else self._values(NO_MATCHES, None)
        if len(values) > 1:
            found = found.take(pa.array(np.argsort(owners, kind="stable")))
        return offsets, found, candidates

    def _values(self, matches: Matches, weights: npt.NDArray[np.float64] | None) -> pa.Array:
        """The ids of all matches or, where there is a limit, what to rank them by as well."""
        positions, ids = matches.subscriptions, matches.all_ids
        plain = pa.int64() if self.shards.integer_ids else pa.large_string()
        taken = ids.take_arrow(positions).cast(plain)
        if self.limit is None:
            return taken
        heavy = np.full(len(positions), -1.0) if weights is None else -weights[positions]
        ranked = {"heavy": pa.array(heavy)}
        if not self.shards.integer_ids:
            are_integers = ids.marks()[positions].view(np.bool_)
            numbers = np.zeros(len(positions), dtype=np.int64)
            numbers[are_integers] = taken.filter(pa.array(are_integers)).cast(pa.int64())
            ranked |= {"is_text": pa.array(~are_integers), "number": pa.array(numbers)}
        return pa.StructArray.from_arrays([*ranked.values(), taken], [*ranked, "id"])


#: Of no events.
NO_MATCHES = Matches(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), Ids.of([]))


def _value_type(shards: Shards, *, ranked: bool) -> DataType:
    """The type of a match on its way: an id or, to be ranked, what sorts like it and the id."""
    plain = id_type(integer_ids=shards.integer_ids)
    if not ranked:
        return plain
    order = [StructField("heavy", DoubleType())]
    if not shards.integer_ids:  # integers come first, and by value
        order += [StructField("is_text", BooleanType()), StructField("number", LongType())]
    return StructType([*order, StructField("id", plain)])


def _piece_schema(schema: StructType, keys: Sequence[str], value_type: DataType) -> StructType:
    """What ``Visitor`` yields, as Spark says it."""
    fields = [StructField(place(at), carried(schema[key].dataType)) for at, key in enumerate(keys)]
    return StructType(
        [
            *fields,
            StructField(SUBSCRIPTIONS, ArrayType(value_type)),
            StructField(CANDIDATES, LongType()),
            StructField(REJECTED, StringType()),
            StructField(FIRST, BooleanType()),
        ]
    )
