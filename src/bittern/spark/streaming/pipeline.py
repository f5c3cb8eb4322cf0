"""The pipeline: a stream of events, a catalog that changes, and a sink that gets every match.

What happens with micro-batch 42, and what is on disk when the driver dies there::

    Spark decides on its rows         offsets/42                    (Spark's, write-ahead)
    the catalog's version is pinned   bittern/pins/42.json          replay: the same version
    its events become documents       bittern/history/batch=42      replay: not written again
    tasks match and write             .batch=42.<token>.writing     replay: thrown away
    the driver commits the folder     outbox/batch=42               replay: not matched again
    edges, throttles                  bittern/after/0/batch=42      replay: from the state before
    the sink takes it                                               replay: again, same (query, 42)
    Spark notes it as done            commits/42

With the ``Files`` sink and no after-steps the outbox is the sink's own folder, and the commit of
the folder is the delivery: exactly once. Other sinks forward from the outbox in the checkpoint,
where a batch stays until the next one is done.

The pin decides what a batch is matched with. A subscription that was committed before the pin is
written is matched in that batch, all others in a later one; every row has the version.

Cost of the machinery for each batch: a pin (two ``fsync``), a query for what changed, and a rename
for each file; Spark's own bookkeeping takes more (docs/benchmarks/streaming.md).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from bittern.catalog.catalog import Catalog
from bittern.engine.matcher import check_limit
from bittern.errors import BitternError, OptionError, PipelineError, brief
from bittern.history.history import check_keep
from bittern.model.event_schema import EventSchema
from bittern.spark import session
from bittern.spark.attributes import event_schema
from bittern.spark.changes.forms import ChangeForm, check_form
from bittern.spark.changes.sides import Sides, sides_of
from bittern.spark.frames import names_in, payload_in
from bittern.spark.history.past import order_of
from bittern.spark.session import is_case_sensitive
from bittern.spark.sink.part_files import VERSION
from bittern.spark.sink.staging import local_path
from bittern.spark.sink.writing import texts_in
from bittern.spark.streaming.batch import After, Sink
from bittern.spark.streaming.claims import ClaimedCheckpoint, checkpoint_at
from bittern.spark.streaming.documents import StreamHistory
from bittern.spark.streaming.files import Files
from bittern.spark.streaming.listener import Listener
from bittern.spark.streaming.metrics import Metrics
from bittern.spark.streaming.outbox import BATCH, QUERY, check_apart, table_at
from bittern.spark.streaming.pins import Checkpoint
from bittern.spark.streaming.steps import PipelinePlan, Steps

#: Names that no column of the events can have in the output.
_TAKEN = (VERSION, BATCH, QUERY)
#: Seconds that a graceful stop waits for Spark to note the last batch as done.
_NOTING = 30


class Pipeline:
    """A stream of events matched against a catalog, each micro-batch against one version of it.

    ::

        events = spark.readStream.schema("id bigint, price double").json("incoming")
        pipeline = Pipeline(events, "shop.db", Files("matches"), "checkpoint", event_id="id")
        running = pipeline.start()
        ...
        running.stop()

    Parameters
    ----------
    events
        A streaming DataFrame; attributes are found in it as ``bittern.spark.match`` finds them.
    catalog
        A ``bittern.Catalog``, or its URL.
    sink
        Where matches go: ``bittern.spark.streaming`` has them. A path is short for ``Files(path)``.
    checkpoint
        A folder, on a file system that survives the driver, for all that a restart needs; or one
        in a bucket, ``s3a://bucket/folder``.
    event_id, json, limit
        As in ``bittern.spark.match``.
    payload
        Columns that travel with each match to the sink, beside those of ``event_id``; "*" is all.
        They do not identify an event.
    rejects
        A folder for the events that could not be read: keys, payload, JSON columns and the reason.
    store
        A folder or URI for snapshots that driver and executors share; needed on a cluster.
    trigger
        How often to look for new events, such as "5 seconds"; None: as soon as the last batch ends.
    available_now
        Match what is there, in batches, and stop: for backfills.
    after
        Steps between matching and the sink, in order: ``Edge`` and ``Throttle``.
    metrics
        A ``Metrics`` object, which gets the figures of every batch.
    name
        Stands in Spark's pages and in its list of queries, as ``bittern:NAME``. By default it is
        the path of the checkpoint.
    history
        True, or a folder that driver and executors share: events are remembered, and EXISTS and
        FORALL range over those of all earlier batches. True means a folder in the checkpoint.
    keep
        How many of the newest documents are used; None: all of them.
    order_by
        The columns that give the order of the events of a batch: then each is compared with the
        earlier ones too, in a single task. Without it they do not see each other.
    changes
        Events are changes of rows, and matches have a column ``change``: whether the row enters,
        leaves or stays in the subscription. ``bittern.spark.changes`` has the forms of changes.
    shards
        The number of parts to cut the catalog into, if one host should not hold it: at the start,
        and when very much has changed. Not with ``history`` or ``changes``.
    """

    def __init__(
        self,
        events: DataFrame,
        catalog: Catalog | str,
        sink: Sink | str | os.PathLike[str],
        checkpoint: str | os.PathLike[str],
        *,
        event_id: str | Sequence[str] | None = None,
        json: str | Sequence[str] = (),
        limit: int | None = None,
        payload: str | Sequence[str] = (),
        rejects: str | os.PathLike[str] | None = None,
        store: str | None = None,
        trigger: str | None = "1 second",
        available_now: bool = False,
        after: Sequence[After] = (),
        metrics: Metrics | None = None,
        history: bool | str | os.PathLike[str] = False,
        keep: int | None = None,
        order_by: str | Sequence[str] | None = None,
        name: str | None = None,
        changes: ChangeForm | None = None,
        shards: int | None = None,
    ) -> None:
        if changes is None:
            own_columns = _of_events(events, event_id, json, payload, told=rejects is not None)
        else:
            _check_changes(json=json, limit=limit, history=history, after=after)
            own_columns = _of_changes(events, changes, event_id, payload, told=rejects is not None)
        keys, documents = own_columns.keys, own_columns.json
        if not events.isStreaming:
            raise OptionError(
                "a pipeline needs a stream of events: for a batch use bittern.spark.write"
            )
        check_limit(limit)
        _check_shards(shards, history=history, changes=changes)
        _check_classic(events.sparkSession)
        if not isinstance(sink, Sink | str | os.PathLike):
            raise OptionError(f"sink must be a sink or the path of a folder, not {brief(sink)}")
        sink = sink if isinstance(sink, Sink) else Files(sink)
        sink.check(events.sparkSession)
        for number, step in enumerate(after):
            if not isinstance(step, After):
                raise OptionError(
                    f"after must be a list of steps, such as Edge(...), not {brief(step)}"
                )
            step.check(keys)
            if step.needs_all_events and number:
                raise OptionError(
                    f"{type(step).__name__} must be the first step: steps before it would remove "
                    f"the events without matches, which it needs"
                )
        path = sink.path if isinstance(sink, Files) else None
        _check_history(history, keep, order_by)
        documents_in = None if isinstance(history, bool) else history
        check_apart(checkpoint=checkpoint, sink=path, rejects=rejects, history=documents_in)
        if name is not None and (not isinstance(name, str) or not name):
            raise OptionError(f"name must be a text, not {brief(name)}")
        own = checkpoint_at(checkpoint, events.sparkSession)
        self._events = events
        self._name = f"bittern:{name or own.path}"
        self._trigger = {"availableNow": True} if available_now else _interval(trigger, events)
        self._plan = PipelinePlan(
            events.sparkSession,
            catalog if isinstance(catalog, Catalog) else Catalog(catalog, create=False),
            sink,
            own,
            keys,
            documents,
            limit,
            None if rejects is None else table_at(rejects, events.sparkSession),
            store,
            tuple(after),
            Metrics() if metrics is None else metrics,
            _history(own, documents_in, keep) if history is not False else None,
            tuple(order_of(events, order_by)),
            own_columns.schema,
            own_columns.payload,
            own_columns.changes,
            shards,
        )

    def start(self) -> Running:
        """Start the stream; ``PipelineError`` if the checkpoint or a folder is another's."""
        return Running(self._plan, self._events, self._trigger, self._name)

    def run(self) -> None:
        """Start the stream and wait until it ends, which only ``available_now`` does by itself."""
        self.start().await_termination()


class _OwnColumns(NamedTuple):
    """The columns of a stream: what identifies an event, travels with it, and is looked at."""

    keys: tuple[str, ...]
    payload: tuple[str, ...]
    json: tuple[str, ...]
    schema: EventSchema
    changes: Callable[[DataFrame], Sides] | None = None


def _of_events(
    events: DataFrame, event_id: Any, json: Any, payload: Any, *, told: bool
) -> _OwnColumns:
    """The columns of events; ``told`` says that rejects are written."""
    keys, documents = names_in(events, event_id, json)
    for key in keys:
        if key.lower() in _TAKEN:
            raise OptionError(f"the key column {key!r} has the name of an output column: rename it")
    also = payload_in(events, keys, payload, _TAKEN)
    if told:
        texts_in(documents, (*keys, *also), BATCH)
    counts = is_case_sensitive(events.sparkSession)
    schema = event_schema(events.schema, documents, case_sensitive=counts)
    return _OwnColumns(tuple(keys), tuple(also), tuple(documents), schema)


def _of_changes(
    events: DataFrame, changes: ChangeForm, event_id: Any, payload: Any, *, told: bool
) -> _OwnColumns:
    """The columns of changes."""
    if not isinstance(events, DataFrame):
        raise OptionError(f"events must be a Spark DataFrame, not {type(events).__name__}")
    make = partial(
        sides_of,
        form=check_form(changes),
        event_id=event_id,
        payload=payload,
        taken=_TAKEN,
        with_texts=told,
    )
    sides = make(events)
    payload = sides.names[len(sides.keys) : len(sides.names) - sides.texts]
    return _OwnColumns(sides.keys, payload, sides.json, sides.event_schema(), make)


def _check_changes(*, json: Any, limit: Any, history: Any, after: Sequence[Any]) -> None:
    """Raise an OptionError for what changes do not go with."""
    given = {"json": bool(json), "limit": limit is not None, "history": bool(history)}
    for name, is_given in given.items():
        if is_given:
            raise OptionError(f"{name} cannot be given for changes of rows: leave it out")
    if any(isinstance(step, After) and step.needs_all_events for step in after):
        raise OptionError(
            "an Edge cannot follow changes of rows, which tell by themselves what newly holds: "
            'ask for them, as in BeforeAfter(kinds=["enter"])'
        )


def _interval(trigger: str | None, events: DataFrame) -> dict[str, Any]:
    if trigger is None:
        return {"processingTime": "0 seconds"}
    try:
        events.writeStream.trigger(processingTime=trigger)  # Spark knows what a time is
    except PySparkException:
        raise OptionError(
            f"trigger must be a time such as '5 seconds', or None, not {brief(trigger)}"
        ) from None
    return {"processingTime": trigger}


def _check_history(history: Any, keep: int | None, order_by: Any) -> None:
    check_keep(keep)
    if not isinstance(history, bool | str | os.PathLike):
        raise OptionError(f"history must be True or the path of a folder, not {brief(history)}")
    for name, value in (("keep", keep), ("order_by", order_by)):
        if history is False and value is not None:
            raise OptionError(f"{name} needs a history: give history=True too")


def _history(
    checkpoint: Checkpoint, folder: str | os.PathLike[str] | None, keep: int | None
) -> StreamHistory:
    """The documents of a pipeline, in a folder or in its checkpoint."""
    if folder is None:
        folder = f"{checkpoint.own}/history"
        if isinstance(checkpoint, ClaimedCheckpoint):
            raise OptionError(
                f"a history cannot be kept in {checkpoint.path}: give history= the path of a "
                f"folder that driver and executors share"
            )
    return StreamHistory(local_path(os.fspath(folder), "history"), keep)


def _check_shards(shards: Any, *, history: Any, changes: Any) -> None:
    if shards is not None and (type(shards) is not int or shards < 1):
        raise OptionError(f"shards must be None or a number from 1, not {brief(shards)}")
    if shards is not None and (history is not False or changes is not None):
        raise OptionError("history and changes cannot be given with shards: leave one of them out")


def _check_classic(spark: SparkSession) -> None:
    if session.is_connect(spark):
        raise OptionError(
            "a pipeline commits in the driver's process: use a classic session, not Spark Connect"
        )


def _check_name(spark: SparkSession, name: str) -> None:
    if any(query.name == name for query in spark.streams.active):
        raise OptionError(
            f"a query with the name {name!r} runs in this session already: give the pipeline "
            f"another name"
        )


class _Stopping(Exception):  # noqa: N818
    """Ends a batch that began after the pipeline was told to stop, before it has a pin."""


class Running:
    """A pipeline that was started."""

    def __init__(
        self, plan: PipelinePlan, events: DataFrame, trigger: dict[str, Any], name: str
    ) -> None:
        self._plan = plan
        self._batch = threading.Lock()  # held while a batch is worked on
        self._stopping = self._aborting = False
        self._last = -1
        self._failure: BaseException | None = None
        self._lost: PipelineError | None = None
        with ExitStack() as stack:
            stack.enter_context(plan.checkpoint)
            plan.checkpoint.check_query()
            self._steps = Steps(plan)
            stack.callback(self._steps.close)
            _check_name(plan.spark, name)
            writer = events.writeStream.foreachBatch(self._on_batch).trigger(**trigger)
            writer = writer.queryName(name)
            #: Spark's own handle.
            self.query = writer.option("checkpointLocation", plan.checkpoint.location).start()
            stack.callback(self.query.stop)
            plan.checkpoint.when_lost(self._on_lost)
            self._steps.claim()
            plan.metrics.started()
            stack.callback(plan.metrics.stopped)
            listener = Listener(plan.metrics, str(self.query.id), self._is_stopped)
            plan.spark.streams.addListener(listener)
            stack.callback(plan.spark.streams.removeListener, listener)
            self._held = stack.pop_all()

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        # The thread that stops holds the lock until the query has ended: never wait for it here.
        while not self._stopping:
            if self._batch.acquire(timeout=0.05):
                break
        else:
            raise _Stopping
        try:
            self._steps(frame, batch_id)
            self._last = batch_id
        except BaseException as failure:
            if self._aborting:  # Spark would print all of what was interrupted
                raise _Stopping from None
            self._failure = failure
            raise
        finally:
            self._batch.release()

    def _on_lost(self, reason: PipelineError) -> None:
        """Another driver works on the checkpoint: Spark is not to write there any more."""
        self._lost = reason
        self.query.stop()

    @property
    def is_active(self) -> bool:
        """Whether the stream still runs."""
        return bool(self.query.isActive)

    def _is_stopped(self) -> bool:
        """Whether it was told to stop, and nothing failed before."""
        return self._stopping and self._failure is None

    def stop(self) -> None:
        """Finish the current batch, and stop. What cannot be finished is done after a restart."""
        self._stopping = True
        with self._batch:
            self._wait_for_note()
            self.query.stop()
        self._held.close()

    def abort(self) -> None:
        """Stop at once: the current batch is done again after a restart."""
        self._stopping = self._aborting = True
        self.query.stop()
        self._held.close()

    def await_termination(self, seconds: float | None = None) -> bool:
        """Wait until the stream ends; False if it has not after this many seconds.

        ``PipelineError`` if it failed. It can be started again from its checkpoint.
        """
        try:
            if seconds is None:
                self.query.awaitTermination()
            elif not self.query.awaitTermination(seconds):  # type: ignore[arg-type]
                return False
        except StreamingQueryException as error:
            if not self._is_stopped():
                raise self._told(error) from (self._failure or error)
        finally:
            if not self.query.isActive:
                self._held.close()
        if self._lost is not None:
            raise self._lost
        return True

    def _told(self, error: StreamingQueryException) -> PipelineError:
        failure = self._failure if isinstance(self._failure, Exception) else error
        reason = str(failure) if isinstance(failure, BitternError) else session.reason(failure)
        after = f" after batch {self._last}" if self._last >= 0 else ""
        return PipelineError(
            f"the stream has stopped{after}: {reason}\nNothing is lost: start it again, and it "
            f"continues from the checkpoint {self._plan.checkpoint.path}"
        )

    def _wait_for_note(self) -> None:
        """Give Spark the time to note the last batch as done, so that it is not done again."""
        until = time.monotonic() + _NOTING
        while self._last >= 0 and self.query.isActive and time.monotonic() < until:
            if self._plan.checkpoint.is_noted(self._last):
                return
            time.sleep(0.02)
