"""What is done with each micro-batch: pin, history, view, match, after-steps, sink.

``Steps`` is what Spark calls with the rows of a batch. It keeps nothing between two batches that a
restart could not find again: the builder's layers are derived from the catalog, everything else is
in the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from bittern.catalog.catalog import Catalog
from bittern.errors import CatalogError, PipelineError
from bittern.model.event_schema import EventSchema
from bittern.spark.attributes import project
from bittern.spark.catalogs.builder import Builder
from bittern.spark.catalogs.in_shards import ShardsBuilder
from bittern.spark.catalogs.sending import Sender, Sent
from bittern.spark.catalogs.views import View
from bittern.spark.changes.sides import Sides
from bittern.spark.history.past import attributes_needed, has_quantifiers, in_order
from bittern.spark.history.remembered import AfterDocuments
from bittern.spark.operator import (
    FIRST,
    SUBSCRIPTION,
    Batches,
    Operator,
    Reference,
    output_schema,
)
from bittern.spark.session import is_case_sensitive
from bittern.spark.sharded.matching import match_shards
from bittern.spark.sharded.shards import Shards
from bittern.spark.sink.staging import StagedTable
from bittern.spark.sink.writing import fill, texts_in
from bittern.spark.stores.manifests import ManifestTable
from bittern.spark.streaming.batch import After, Batch, Sink
from bittern.spark.streaming.documents import StreamHistory
from bittern.spark.streaming.files import Files
from bittern.spark.streaming.metrics import BatchReport, Metrics
from bittern.spark.streaming.outbox import Outbox, table_at
from bittern.spark.streaming.pins import Checkpoint, Pin
from bittern.spark.subscriptions.samples import sample_table
from bittern.spark.terms.planning import PlansOfStream

_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True)
class PipelinePlan:
    """The arguments of a pipeline, checked."""

    spark: SparkSession
    catalog: Catalog
    sink: Sink
    checkpoint: Checkpoint
    keys: tuple[str, ...]
    json: tuple[str, ...]
    limit: int | None
    rejects: Outbox | ManifestTable | None
    store: str | None
    after: tuple[After, ...]
    metrics: Metrics
    history: StreamHistory | None = None
    #: The columns that tell the order of arrival; none if events of a batch do not see each other.
    order: tuple[str, ...] = ()
    #: Of the events, whose types tell what subscriptions mean.
    schema: EventSchema | None = None
    #: The columns that travel with matches beside the keys.
    payload: tuple[str, ...] = ()
    #: Events are changes of rows: both sides of those in a batch.
    changes: Callable[[DataFrame], Sides] | None = None
    #: How many parts the catalog is cut into; None: it stays whole.
    shards: int | None = None

    @cached_property
    def table(self) -> Outbox | ManifestTable | None:
        """The sink's own folders, if it is one of files."""
        return table_at(self.sink.path, self.spark) if isinstance(self.sink, Files) else None

    @cached_property
    def outbox(self) -> Outbox | ManifestTable:
        """Where tasks write matches: the sink's own table, where nothing comes in between."""
        direct = None if self.after else self.table
        return direct or table_at(f"{self.checkpoint.own}/outbox", self.spark)


@dataclass
class _Watch:
    """How long each stage of a batch took. Spark's pages show its jobs under the stage's name."""

    context: SparkContext
    batch_id: int
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        before = self.context.getLocalProperty(_DESCRIPTION)
        self.context.setJobDescription(f"batch {self.batch_id}: {stage}")
        try:
            yield
        finally:
            self.context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # or None
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began


class _Job(NamedTuple):
    """What tasks are to do: with which columns, and what comes of it."""

    frame: DataFrame
    operator: Callable[[Batches], Batches] | None
    schema: StructType
    texts: int


def _builder(plan: PipelinePlan) -> Builder:
    """What makes of the catalog's versions what tasks match with."""
    spark, catalog = plan.spark, plan.catalog
    if plan.shards is not None:
        return ShardsBuilder(spark, catalog, plan.store, shards=plan.shards, schema=plan.schema)
    has_history = plan.history is not None
    return Builder(spark, catalog, plan.store, history=has_history, schema=plan.schema)


class Steps:
    """Works on one batch after the other; call it with the rows of each."""

    def __init__(self, plan: PipelinePlan) -> None:
        self._plan = plan
        self._builder = _builder(plan)
        self._sender = Sender(plan.spark)
        self._terms = PlansOfStream(plan.spark, plan.json)
        self._query_id: str | None = None

    def close(self) -> None:
        """Release what the builder holds."""
        self._builder.close()
        self._sender.close()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Do all steps, or those that are left if an earlier attempt died."""
        plan, watch = self._plan, _Watch(self._plan.spark.sparkContext, batch_id)
        query_id = self.claim()
        with watch.time("pin"):
            pin = plan.checkpoint.pin(batch_id, plan.catalog.version)
        if plan.history is not None:
            with watch.time("remember"):
                plan.history.open(batch_id)
                plan.history.tidy(batch_id)
                plan.history.store(self._arrived(frame), batch_id, plan.json)
        replayed = plan.outbox.has(batch_id)
        if replayed:
            counts = {"events": 0, "matches": 0, "rejects": 0}
        else:
            counts = self._match(frame, batch_id, pin, watch)
        with watch.time("deliver"):
            self._deliver(batch_id, pin, query_id)
        rows, segments = (0, 0) if replayed else self._builder.delta()
        plan.metrics.batch(
            BatchReport(
                batch_id,
                pin.version,
                self._newest(pin),
                counts["events"],
                counts["matches"],
                counts["rejects"],
                watch.seconds,
                rows,
                segments,
                replayed=replayed,
                documents=None if plan.history is None else plan.history.count(batch_id + 1),
                left_out=self._builder.left_out(),
            )
        )

    def _arrived(self, frame: DataFrame) -> DataFrame:
        """The rows of a batch in order of arrival, if that counts."""
        plan = self._plan
        return in_order(frame, plan.order, plan.keys) if plan.order else frame

    def _newest(self, pin: Pin) -> int:
        """The newest version, for metrics; a delivered batch does not fail because of this."""
        try:
            return self._plan.catalog.version()
        except CatalogError:  # the next batch will tell
            return pin.version

    def claim(self) -> str:
        """Make the folders that are written to this query's own; returns its id.

        ``PipelineError`` if one is another's.
        """
        if self._query_id is None:
            plan = self._plan
            query_id = plan.checkpoint.query_id()
            if query_id is None:
                raise PipelineError(
                    f"the checkpoint {plan.checkpoint.path} has lost its metadata: restore it"
                )
            plan.checkpoint.bind(plan.catalog.uid, query_id)
            for outbox in dict.fromkeys((plan.outbox, plan.table, plan.rejects)):
                if outbox is not None:
                    outbox.claim(query_id)
                    outbox.tidy()
            if plan.history is not None:
                plan.history.claim(query_id)
            self._query_id = query_id
        return self._query_id

    def _match(self, frame: DataFrame, batch_id: int, pin: Pin, watch: _Watch) -> dict[str, int]:
        """Match the rows of a batch, and commit the folder of its matches; returns the counts."""
        plan = self._plan
        sides = None if plan.changes is None else plan.changes(frame)
        sample = frame if sides is None else sides.rows()
        with watch.time("view"):
            make = partial(sample_table, sample, plan.json)
            if isinstance(self._builder, ShardsBuilder):
                found: View | Shards = self._builder.shards(pin.version, make)
            else:
                found = self._builder.view(pin.version, make)
            attributes = self._builder.attributes()
        with watch.time("match"), ExitStack() as stack:
            if isinstance(found, Shards):
                job = self._in_shards(frame, found)
            else:
                sent = self._sender.sent(found)
                ref: Reference = sent
                if has_quantifiers(attributes):
                    ref = self._after_documents(sent, batch_id)
                    attributes = attributes_needed(attributes, becoming=bool(plan.order))
                    frame = self._arrived(frame)
                job = (
                    self._events(frame, ref, attributes)
                    if sides is None
                    else self._changes(sides, ref, attributes)
                )
            staging = stack.enter_context(_staged(plan.outbox, batch_id))
            rejects = None
            if plan.rejects is not None:
                rejects = stack.enter_context(_staged(plan.rejects, batch_id))
            return fill(
                job.frame,
                job.operator,
                job.schema,
                staging,
                rejects,
                explode=True,
                version=pin.version,
                every_event=any(step.needs_all_events for step in plan.after),
                texts=job.texts,
                has_kinds=sides is not None,
            )

    def _events(self, frame: DataFrame, ref: Reference, attributes: Sequence[str]) -> _Job:
        """What finds the subscriptions that events satisfy."""
        plan = self._plan
        projected, texts = self._projected(frame, attributes)
        carried = (*plan.keys, *plan.payload, *texts)
        counts = is_case_sensitive(plan.spark)
        operator = Operator(ref, carried, plan.json, plan.limit, counts)
        schema = output_schema(projected.schema, carried, integer_ids=False)
        return _Job(projected, operator, schema, len(texts))

    def _in_shards(self, frame: DataFrame, shards: Shards) -> _Job:
        """What finds them in shards: the matches, or pieces of them where nobody can tell."""
        plan = self._plan
        projected, texts = self._projected(frame, shards.attributes)
        every_event = any(step.needs_all_events for step in plan.after)
        found = match_shards(
            projected,
            plan.keys,
            shards,
            payload=plan.payload,
            texts=texts,
            limit=plan.limit,
            json=plan.json,
            gather=every_event or plan.limit is not None,
        )
        schema = StructType([field for field in found.schema if field.name != FIRST])
        return _Job(found, None, schema, len(texts))

    def _projected(
        self, frame: DataFrame, attributes: Sequence[str]
    ) -> tuple[DataFrame, tuple[str, ...]]:
        """What of the events crosses into Python, and which texts rejects have."""
        plan = self._plan
        terms = self._terms.plan(frame.schema, attributes)
        carried = (*plan.keys, *plan.payload)
        projected = project(frame, carried, attributes, plan.json, terms)
        return projected, () if plan.rejects is None else texts_in(plan.json, carried)

    def _changes(self, sides: Sides, ref: Reference, attributes: Sequence[str]) -> _Job:
        """What finds the subscriptions that rows enter, leave and stay in."""
        projected = sides.projected(attributes, self._terms.plan(sides.schema, attributes))
        schema = sides.output_schema(integer_ids=False)
        return _Job(projected, sides.operator(ref), schema, sides.texts)

    def _after_documents(self, view: View | Sent, batch_id: int) -> AfterDocuments:
        """A view together with the documents before a batch."""
        history, ordered = self._plan.history, bool(self._plan.order)
        assert history is not None, "without one, no subscription with quantifiers is in a view"
        then = history.remembered(batch_id + 1) if ordered else None
        return AfterDocuments(view, history.remembered(batch_id), ordered, then)

    def _deliver(self, batch_id: int, pin: Pin, query_id: str) -> None:
        plan = self._plan
        outbox = plan.outbox
        if outbox == plan.table:
            return  # committing the folder was the delivery
        batch = Batch(
            plan.spark,
            query_id,
            batch_id,
            pin.version,
            pin.time,
            plan.keys,
            outbox.read(plan.spark, batch_id),
            plan.catalog,
        )
        for number, step in enumerate(plan.after):
            folder = f"{plan.checkpoint.own}/after/{number}"
            batch = replace(batch, matches=step.apply(batch, folder))
        batch = replace(batch, matches=batch.matches.filter(F.col(SUBSCRIPTION).isNotNull()))
        plan.sink.deliver(batch)
        outbox.forget(batch_id)  # the one before is noted as done by now


def _staged(table: Outbox | ManifestTable, batch_id: int) -> AbstractContextManager[StagedTable]:
    return table.staging(batch_id)
