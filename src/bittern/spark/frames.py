"""Matching DataFrames: a projection, one ``mapInArrow``, and the rest in the JVM.

::

    events --select--> keys, attributes in use                        attributes.py
           --mapInArrow--> keys, subscriptions, candidates, rejected  operator.py (sharded/)
           --observe, explode, drop--> what was asked for

All mistakes in the arguments are found here, on the driver, before a job starts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from bittern.catalog.catalog import Catalog
from bittern.engine.index import Index
from bittern.engine.matcher import check_limit
from bittern.errors import OptionError
from bittern.model.events.mappings import path_part
from bittern.options import one_of
from bittern.spark.arrow_types import arrow_schema
from bittern.spark.asked import Asked
from bittern.spark.attributes import check_columns, event_schema, names_of, placed, project, quoted
from bittern.spark.catalogs.eventual import follow
from bittern.spark.history.past import Past, has_quantifiers
from bittern.spark.operator import (
    CANDIDATES,
    FIRST,
    REJECTED,
    SUBSCRIPTION,
    SUBSCRIPTIONS,
    Named,
    Operator,
    Reference,
    carried_schema,
    output_schema,
    restored,
)
from bittern.spark.session import is_case_sensitive
from bittern.spark.sharded.matching import match_shards
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import SnapshotRef, attach
from bittern.spark.subscriptions.handed_over import as_frame, is_handed_over
from bittern.spark.subscriptions.resolving import Resolved, resolve
from bittern.spark.subscriptions.samples import can_carry
from bittern.spark.versions import check_connect
from bittern.spark.workers import check_workers
from bittern.terms.spelling import spelling

#: Names that keys cannot have.
_OUTPUT = {SUBSCRIPTIONS, SUBSCRIPTION, CANDIDATES, REJECTED, FIRST}


@dataclass(frozen=True)
class Job:
    """A matching that is about to run: the projected events and the names that matter."""

    source: Resolved
    events: DataFrame  # keys first, then what else carries attributes
    keys: tuple[str, ...]
    json: tuple[str, ...]
    limit: int | None
    payload: tuple[str, ...] = ()  # columns that travel with the keys
    texts: tuple[str, ...] = ()  # columns that travel with rejects alone, behind the payload

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns of events that come back, before the subscriptions."""
        return (*self.keys, *self.payload, *self.texts)

    def matches(self, *, gather: bool) -> DataFrame:
        """Keys, subscriptions, candidates, rejected; one row per event if ``gather`` is set.

        Without it an event may have several rows, the first marked: ``is_in_pieces``.
        """
        ref = self.source.ref
        if isinstance(ref, Shards):
            return match_shards(
                self.events,
                self.keys,
                ref,
                payload=self.payload,
                texts=self.texts,
                limit=self.limit,
                json=self.json,
                gather=gather,
            )
        schema = output_schema(
            self.events.schema, self.carried, integer_ids=self.source.integer_ids
        )
        named = Named(tuple(self.events.columns), self.operator(ref))
        return restored(placed(self.events).mapInArrow(named, carried_schema(schema)), schema)

    def operator(self, ref: Reference) -> Operator:
        """The operator that matches the events in Python workers."""
        counts = is_case_sensitive(self.events.sparkSession)
        return Operator(ref, self.carried, self.json, self.limit, counts)

    def is_in_pieces(self, *, gather: bool) -> bool:
        """Whether an event may have several rows in ``matches``."""
        return isinstance(self.source.ref, Shards) and not gather


def prepare(events: DataFrame, subscriptions: Any, asked: Asked) -> Job:
    """Check all arguments, build and publish what is needed, project the events."""
    keys, documents = names_in(events, asked.event_id, asked.json)
    payload = payload_in(events, keys, asked.payload)
    check_limit(asked.limit)
    past = Past(events, asked.history, asked.order_by)
    if asked.sample is None and not events.isStreaming:
        asked = replace(asked, sample=events)
    if asked.consistency == "eventual":
        past.refuse_eventual()
        return _eventual(events, subscriptions, (keys, payload, documents), asked)
    spark = events.sparkSession
    if is_handed_over(subscriptions):
        subscriptions = as_frame(spark, subscriptions)
    counts = is_case_sensitive(spark)
    schema = event_schema(events.schema, documents, case_sensitive=counts)
    source = resolve(spark, subscriptions, asked, history=past.is_given(), schema=schema)
    if not isinstance(subscriptions, DataFrame):  # these were built for this schema
        with spelling(case_sensitive=counts):
            _warn_of_types(events, source, documents)
    if has_quantifiers(source.attributes):
        ref, attributes = past.subscribed(source.ref, source.attributes, documents, asked.store)
        source = Resolved(ref, attributes, source.integer_ids)
        events = past.ordered(events, keys)
    projected = project(events, (*keys, *payload), source.attributes, documents)
    return Job(
        source,
        projected,
        tuple(keys),
        tuple(documents),
        asked.limit,
        payload=tuple(payload),
    )


def _eventual(
    events: DataFrame,
    catalog: Any,
    names: tuple[list[str], list[str], list[str]],
    asked: Asked,
) -> Job:
    """Match with the version that workers see; all columns cross: later versions may need any.

    ``names`` are the keys, the payload and the JSON columns.
    """
    keys, payload, json = names
    if asked.sets is not None:
        raise OptionError("a catalog has its own sets: change them with catalog.sets")
    if not isinstance(catalog, Catalog):
        raise OptionError(
            f'consistency="eventual" takes a bittern.Catalog, not {type(catalog).__name__}'
        )
    check_workers(events.sparkSession)
    attributes = tuple(path_part(name) for name in events.columns)
    counts = is_case_sensitive(events.sparkSession)
    schema = event_schema(events.schema, json, case_sensitive=counts)
    ref = follow(events.sparkSession, catalog, asked.store, schema)
    source = Resolved(ref, attributes, integer_ids=False)
    projected = project(events, (*keys, *payload), attributes, json)
    return Job(
        source,
        projected,
        tuple(keys),
        tuple(json),
        asked.limit,
        payload=tuple(payload),
    )


def names_in(
    events: DataFrame, event_id: str | Sequence[str] | None, json: str | Sequence[str]
) -> tuple[list[str], list[str]]:
    """The keys and the JSON columns of events, if they can be matched with these arguments."""
    check_connect(events)
    if not isinstance(events, DataFrame):
        raise OptionError(f"events must be a Spark DataFrame, not {type(events).__name__}")
    documents = names_of(json, "json")
    keys = list(events.columns) if event_id is None else names_of(event_id, "event_id")
    case_sensitive = is_case_sensitive(events.sparkSession)
    check_columns(events.schema, keys, documents, case_sensitive=case_sensitive)
    for key in keys:
        if (key if case_sensitive else key.lower()) in _OUTPUT:
            raise OptionError(
                f"the key column {key!r} has the name of an output column: rename it, or name "
                f"other columns in event_id"
            )
    if not keys:
        raise OptionError("event_id names no column: name the columns that identify an event")
    return keys, documents


def payload_in(
    events: DataFrame,
    keys: Sequence[str],
    payload: str | Sequence[str],
    taken: Sequence[str] = (),
) -> list[str]:
    """The columns beside the keys that travel with matches; "*" is all that are left.

    ``taken`` are further names that no column of the output may have.
    """
    case_sensitive = is_case_sensitive(events.sparkSession)
    names = [*events.columns] if payload == "*" else names_of(payload, "payload")
    found = [name for name in names if name not in keys]
    check_columns(events.schema, (), (), found, case_sensitive=case_sensitive)
    for name in found:
        if (name if case_sensitive else name.lower()) in {*_OUTPUT, *taken}:
            raise OptionError(
                f"the column {name!r} has the name of an output column: rename it, or name the "
                f"columns of the payload without it"
            )
    return found


def mistyped(index: Index, schema: StructType, json: Sequence[str]) -> list[str]:
    """The columns of events that no subscription can compare, because of their type."""
    known = [field for field in schema if can_carry(field.dataType)]
    carrying = arrow_schema(StructType(known))
    own = [name for name in json if name in carrying.names]
    return [reason for _, reason in index.encoder.mistyped_columns(carrying, own)]


def _warn_of_types(events: DataFrame, source: Resolved, json: Sequence[str]) -> None:
    # The router knows what any shard compares.
    ref = source.ref.router if isinstance(source.ref, Shards) else source.ref
    if not isinstance(ref, SnapshotRef):
        return  # a catalog's attributes change
    for reason in mistyped(attach(ref), events.schema, json):
        warnings.warn(f"{reason}: these comparisons are never true", stacklevel=4)


def match(
    events: DataFrame,
    subscriptions: Any,
    *,
    event_id: str | Sequence[str] | None = None,
    payload: str | Sequence[str] = (),
    explode: bool = False,
    limit: int | None = None,
    json: str | Sequence[str] = (),
    rejects: bool = False,
    observe: str | Observation | None = None,
    store: str | None = None,
    shards: str | int | None = "auto",
    sample: Any = None,
    on_error: str = "raise",
    unknown: str = "warn",
    consistency: str = "snapshot",
    history: DataFrame | str | Path | None = None,
    order_by: str | Sequence[str] | None = None,
    sets: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Find the subscriptions that each event satisfies; for batch and streaming DataFrames.

    Parameters
    ----------
    events
        Attributes are columns, fields of structs (by dotted path), entries of ``map<string, ...>``
        and ``variant`` columns, and fields of the JSON text in the columns that ``json`` names.
    subscriptions
        A DataFrame with the columns id, expression and optionally weight; a mapping, pairs or a
        table as in ``bittern.Index.build``; a ``bittern.Catalog``; a ``bittern.Index``; the path or
        URI of a saved one; or the result of ``bittern.spark.build``, to build once and match often.
    event_id
        The columns that identify an event in the output; all columns if None. Only these and what
        carries attributes in use cross into Python.
    payload
        More columns of the events for the output, behind those of ``event_id``; "*" is all. They
        do not identify an event.
    explode
        One row for each match, with a column ``subscription``, instead of one for each event, with
        an array ``subscriptions``.
    limit
        Keep only this many matches of each event, those with the highest weights, best first, ties
        by id.
    rejects
        Add a column ``rejected``: why an event could not be read (it then matches nothing), or
        which of its values has a type that no subscription compares it with (that value counts as
        missing). With ``explode`` such an event has a row without a subscription.
    observe
        Name or Observation for the metrics events, candidates, matches, rejects and snapshot.
    store
        A folder, by path or URI, that driver and executors share, for the snapshot; "artifacts"
        sends it through Spark. Default: the conf ``spark.bittern.store``; without it, this host's
        cache if the master is local, and artifacts otherwise.
    shards
        "auto", or the number of parts to cut the index into if subscriptions are a DataFrame.
    sample
        Typical events that the index is planned for; default: the first of ``events``, unless they
        are a stream.
    on_error
        "raise" a SubscriptionError before anything is matched, or "skip" bad subscriptions
        (``bittern.spark.build`` returns them as a DataFrame). Those of a catalog are always left
        out, with a warning in the log. Without history and order_by, EXISTS and FORALL are bad.
    unknown
        What to do if subscriptions ask for what the events do not have: "warn" in the log, "raise",
        or "ignore" it. If subscriptions are a DataFrame, "raise" makes them bad.
    consistency
        For a catalog: "snapshot" takes its newest version now and keeps it; with "eventual" workers
        look for newer versions every second, and two tasks may see different ones.
        ``bittern.spark.Pipeline`` binds each micro-batch of a stream to one version.
    history
        What EXISTS and FORALL range over: the documents that precede all events, oldest first, as
        a DataFrame or the path or URI of Parquet files. Executors write a copy of a DataFrame to
        ``store`` at once; all of them read a path as it is.
    order_by
        The columns that give the order of events: then each event is compared with the earlier ones
        too, in a single task. Without it, events do not see each other.
    sets
        The named sets that subscriptions look values up in (``user_id IN SET vips``), from name to
        members, in place of those that an index was built with. A catalog has its own.
    """
    one_of("consistency", consistency, ("snapshot", "eventual"))
    asked = Asked(
        event_id=event_id,
        payload=payload,
        limit=limit,
        json=json,
        store=store,
        shards=shards,
        sample=sample,
        on_error=on_error,
        unknown=unknown,
        consistency=consistency,
        history=history,
        order_by=order_by,
        sets=sets,
    )
    job = prepare(events, subscriptions, asked)
    gather = not explode or limit is not None
    found = job.matches(gather=gather)
    if observe is not None:
        in_pieces = job.is_in_pieces(gather=gather)
        found = found.observe(observe, *metrics(job.source.ref.id, in_pieces=in_pieces))
    return shape(found, job.carried, explode=explode, rejects=rejects)


def metrics(snapshot: str, *, in_pieces: bool) -> list[Any]:
    """Spark's aggregates that count matches as they pass."""
    none = F.lit(0).cast("long")
    return [
        (F.count_if(FIRST) if in_pieces else F.count(F.lit(1))).alias("events"),
        F.coalesce(F.sum(CANDIDATES), none).alias("candidates"),
        F.coalesce(F.sum(F.size(SUBSCRIPTIONS)), none).alias("matches"),
        F.count(REJECTED).alias("rejects"),
        F.max(F.lit(snapshot)).alias("snapshot"),
    ]


def shape(found: DataFrame, keys: Sequence[str], *, explode: bool, rejects: bool) -> DataFrame:
    """The requested output, from keys, subscriptions, candidates and rejected."""
    columns = [F.col(quoted(key)) for key in keys]
    reason = [F.col(REJECTED)] if rejects else []
    if not explode:
        return found.select(*columns, SUBSCRIPTIONS, *reason)
    if not rejects:
        return found.select(*columns, F.explode(SUBSCRIPTIONS).alias(SUBSCRIPTION))
    each = F.explode_outer(SUBSCRIPTIONS).alias(SUBSCRIPTION)
    rows = found.select(*columns, each, *reason)
    return rows.filter(F.col(SUBSCRIPTION).isNotNull() | F.col(REJECTED).isNotNull())
