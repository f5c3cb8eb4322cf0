"""Passes what only Spark knows about a stream to ``metrics.py``.

Spark calls a listener from a thread of its own, some time after a trigger: how long the whole of it
took, how long its logs took, how many rows came, and how far the source is behind. The latter is
what Kafka tells as two sets of offsets, and no other source tells anything like it::

    endOffset     {"orders": {"0": 120, "1": 80}}      read so far
    latestOffset  {"orders": {"0": 150, "1": 80}}      there now            30 events behind

A listener must never raise: Spark would log the error for every batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from bittern.spark.session import reason
from bittern.spark.streaming.metrics import Metrics, TriggerProgress

#: Of Spark's names for the parts of a trigger, those that make it durable (4.x and before it).
_COMMITS = ("walCommit", "commitOffsets", "commitBatch")


class Listener(StreamingQueryListener):
    """Reports one query to ``metrics``, and ignores other queries of the session.

    ``is_stopped`` tells whether it was asked to stop: Spark calls it a failure when that ends a
    batch that had just begun.
    """

    def __init__(
        self, metrics: Metrics, query_id: str, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._metrics = metrics
        self._query_id = query_id
        self._is_stopped = is_stopped

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing has happened yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A trigger is over."""
        told = event.progress
        if str(told.id) == self._query_id:
            self._metrics.progress(as_progress(told))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """There was nothing to do for some seconds."""
        if str(event.id) == self._query_id:
            self._metrics.idle()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """It was stopped, or failed."""
        if str(event.id) == self._query_id:
            failure = None if self._is_stopped() else event.exception
            self._metrics.ended(None if failure is None else reason(RuntimeError(failure)))


def as_progress(told: Any) -> TriggerProgress:
    """What is of interest in a ``StreamingQueryProgress``."""
    took = told.durationMs or {}
    commits = [took[name] / 1000 for name in _COMMITS if name in took]
    behind = [events_behind(source) for source in told.sources or ()]
    known = [each for each in behind if each is not None]
    return TriggerProgress(
        batch_id=told.batchId,
        rows=told.numInputRows or 0,
        whole=took["triggerExecution"] / 1000 if "triggerExecution" in took else None,
        commit=sum(commits) if commits else None,
        behind=sum(known) if known else None,
    )


def events_behind(source: Any) -> int | None:
    """How many events a source has that were not read; None if it does not tell."""
    latest, end = _offsets(source.latestOffset), _offsets(source.endOffset)
    if latest and end is not None:
        return sum(max(0, offset - end.get(part, 0)) for part, offset in latest.items())
    return None


def _offsets(text: Any) -> dict[tuple[str, str], int] | None:
    """Offsets by topic and partition, if that is what a source writes."""
    try:
        told = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, Mapping):
        return None
    found = {}
    for topic, partitions in told.items():
        if not isinstance(partitions, Mapping):
            return None
        for partition, offset in partitions.items():
            if type(offset) is not int:
                return None
            found[topic, partition] = offset
    return found
