"""Figures of a running pipeline: how they are reported, kept and read.

The pipeline reports a micro-batch when it is delivered; Spark adds, a little later and from another
thread, what only Spark knows (``listener.py``). Both go through one lock into one ``Metrics``, and
readers take a ``Figures``, which never changes::

    pipeline ── batch(BatchReport) ──┐                       ┌── figures() ── terminal view, HTTP
    listener ── progress, idle,      ├──►  Metrics  ─────────┤
                ended             ───┘                       └── exporters: JSON lines, a file

    batch 7, what took how long    |pin|view|  match  |deliver|  commit | other |
    told by                         the pipeline               Spark

So a batch's latency is the sum of its stages until Spark tells how long the whole trigger took;
from then on it is that, and what no stage accounts for stands under ``other``. An exporter is told
of a batch once it is complete: when Spark has told its part, or the next batch is there, or the
end. An exporter that fails is noted in ``Figures.error``; the stream goes on.

Rates are over the last minute. A batch counts for the time it took, not for the moment it ended::

    now - 60 s                                       now
        ├───────────────────────────────────────────┤
     [ batch 6, half of it counts ]   [  batch 7  ]          idle time counts too

Cost: O(1) a batch, and O(batches of the last minute) for ``figures``.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

_WINDOW = 60.0  # seconds that rates are over
_LATENCIES = 200  # batches that quantiles are over
_SHOWN = 10  # batches in ``Figures.recent``
#: Upper ends of the ranges in which durations are counted, in seconds: a batch takes from some
#: hundredths of a second to minutes.
_LIMITS = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, math.inf,
)  # fmt: skip
#: Batches kept for rates: more than ten a second do not fit Spark's own work between them.
_KEPT = 1000


@dataclass(frozen=True)
class BatchReport:
    """What the pipeline tells of a micro-batch that it has delivered."""

    batch_id: int
    version: int  # of the catalog, pinned
    newest: int  # version of the catalog when the batch was delivered
    events: int
    matches: int
    rejects: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage
    delta: int = 0  # subscriptions that are not in the base snapshot yet
    segments: int = 0  # deltas that they are in
    replayed: bool = False  # it was matched by an earlier run, and delivered again
    documents: int | None = None  # that the next batch is compared with; None without a history
    left_out: int = 0  # subscriptions of the version that cannot be matched


@dataclass(frozen=True)
class TriggerProgress:
    """What Spark tells of a trigger; ``seconds`` are of the whole and of committing it."""

    batch_id: int
    rows: int = 0
    whole: float | None = None
    commit: float | None = None
    behind: int | None = None  # events that the source has and that were not read yet


@dataclass(frozen=True)
class Done:
    """A batch with all that is known about it."""

    report: BatchReport
    ended: float  # on the clock of ``Metrics``
    time: float  # seconds since 1970, when it was reported
    latency: float
    seconds: Mapping[str, float]
    behind: int | None = None


@dataclass(frozen=True)
class Durations:
    """How many durations were at most 0.01 s, at most 0.025 s, and so on; and their sum.

    ::

        0.004, 0.3, 0.4    counts  1 0 0 0 0 2 0 ...    total  0.704
    """

    counts: tuple[int, ...] = (0,) * len(_LIMITS)
    total: float = 0.0

    def plus(self, seconds: float) -> Durations:
        """With one more. O(1)."""
        counts = list(self.counts)
        counts[bisect_left(_LIMITS, seconds)] += 1
        return Durations(tuple(counts), self.total + seconds)

    def cumulative(self) -> list[tuple[float, int]]:
        """Each limit, and how many were not above it."""
        return list(zip(_LIMITS, accumulate(self.counts), strict=True))


@dataclass(frozen=True)
class Figures:
    """The state of a pipeline at one moment; totals are since it was started."""

    uptime: float = 0.0
    batches: int = 0
    batch_id: int | None = None
    events: int = 0
    matches: int = 0
    rejects: int = 0
    rows: int = 0  # that Spark has read from the source
    events_rate: float = 0.0
    matches_rate: float = 0.0
    latency_p50: float | None = None
    latency_p99: float | None = None
    latency_sum: float = 0.0
    #: Of batches whose time is known to the end: these never shrink, as Prometheus wants it.
    latency: Durations = Durations()
    stages: Mapping[str, Durations] = field(default_factory=dict)
    replays: int = 0  # batches that an earlier run had matched
    version: int | None = None
    newest: int | None = None
    behind: int | None = None  # events not read yet; None where the source does not tell
    delta: int = 0
    segments: int = 0
    documents: int | None = None  # of the history; None where there is none
    left_out: int = 0  # subscriptions of the version that cannot be matched
    seconds: Mapping[str, float] = field(default_factory=dict)
    running: bool = False  # the query was started, and has not ended
    failed: bool = False  # the query ended with an error
    error: str | None = None  # the last one, of the query or of an exporter
    recent: Sequence[Done] = ()  # the last batches, oldest first

    @property
    def versions_behind(self) -> int:
        """How many versions the catalog has had since the one that was matched last."""
        return max(0, (self.newest or 0) - (self.version or 0))


class Exporter(Protocol):
    """Writes figures somewhere; called from one thread at a time, and may raise OSError."""

    def batch(self, done: Done) -> None:
        """A batch is complete."""

    def refresh(self, figures: Figures) -> None:
        """Something has changed, or some seconds have passed."""

    def close(self) -> None:
        """Nothing comes any more."""


class Metrics:
    """The figures of one pipeline; every method may be called from any thread."""

    def __init__(
        self,
        exporters: Sequence[Exporter] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._exporters = exporters
        self._clock = clock
        self._wall = wall
        self._began = clock()
        self._lock = threading.RLock()
        self._totals = Figures()
        self._kept: deque[Done] = deque(maxlen=_KEPT)
        self._open = False  # the last of them waits for what Spark tells

    def begin(self) -> None:
        """The stream starts now, where that is later than these figures were made."""
        with self._lock:
            self._began = self._clock()

    def started(self) -> None:
        """The query runs: its checkpoint and folders are its own."""
        with self._lock:
            self._totals = dataclasses.replace(self._totals, running=True)
            self._refresh()

    def stopped(self) -> None:
        """The query runs no more, whatever Spark still tells of it."""
        with self._lock:
            self._totals = dataclasses.replace(self._totals, running=False)
            self._refresh()

    def batch(self, report: BatchReport) -> None:
        """Take a batch that was delivered. O(1)."""
        with self._lock:
            self._complete()
            seconds = dict(report.seconds)
            done = Done(report, self._clock(), self._wall(), sum(seconds.values()), seconds)
            self._kept.append(done)
            self._open = True
            was = self._totals
            self._totals = dataclasses.replace(
                was,
                batches=was.batches + 1,
                batch_id=report.batch_id,
                events=was.events + report.events,
                matches=was.matches + report.matches,
                rejects=was.rejects + report.rejects,
                version=report.version,
                newest=max(report.version, report.newest),
                delta=report.delta,
                segments=report.segments,
                documents=report.documents,
                left_out=report.left_out,
                replays=was.replays + report.replayed,
            )
            self._count(seconds, done.latency)
            self._refresh()

    def progress(self, told: TriggerProgress) -> None:
        """Take what Spark tells of a trigger, be it of the last batch or of an idle one. O(1)."""
        with self._lock:
            was = self._totals
            behind = told.behind if told.behind is not None else was.behind
            self._totals = dataclasses.replace(was, rows=was.rows + told.rows, behind=behind)
            if self._open and self._kept[-1].report.batch_id == told.batch_id:
                self._kept[-1] = self._timed(self._kept[-1], told)
                self._complete()
            self._refresh()

    def idle(self) -> None:
        """Nothing came for some seconds: rates fall, and exporters may say so."""
        with self._lock:
            self._complete()
            self._refresh()

    def ended(self, error: str | None) -> None:
        """The query is over; with an error if it failed."""
        with self._lock:
            self._complete()
            self._totals = dataclasses.replace(self._totals, running=False)
            if error is not None:
                self._totals = dataclasses.replace(self._totals, failed=True, error=error)
            self._refresh()

    def close(self) -> None:
        """Write what is left to write, and end the exporters. Once."""
        with self._lock:
            self._complete()
            self._refresh()
            for exporter in self._exporters:
                self._export(exporter.close)
            self._exporters = ()

    def figures(self) -> Figures:
        """The present figures."""
        with self._lock:
            now = self._clock()
            events, matches = self._rates(now)
            latencies = sorted(done.latency for done in list(self._kept)[-_LATENCIES:])
            return dataclasses.replace(
                self._totals,
                uptime=now - self._began,
                events_rate=events,
                matches_rate=matches,
                latency_p50=_quantile(latencies, 0.50),
                latency_p99=_quantile(latencies, 0.99),
                seconds=dict(self._totals.seconds),
                recent=tuple(self._kept)[-_SHOWN:],
            )

    def _timed(self, done: Done, told: TriggerProgress) -> Done:
        """The batch with Spark's part of the time; totals grow by what is new."""
        if told.whole is None:
            return dataclasses.replace(done, behind=told.behind)
        commit = told.commit or 0.0
        # Spark counts whole milliseconds, so that stages may seem to take longer than the whole.
        other = max(0.0, told.whole - commit - sum(done.seconds.values()))
        more = {"commit": commit, "other": other}
        latency = max(told.whole, done.latency)
        self._count(more, latency - done.latency)
        seconds = {**done.seconds, **more}
        return dataclasses.replace(done, latency=latency, seconds=seconds, behind=told.behind)

    def _count(self, seconds: Mapping[str, float], latency: float) -> None:
        totals = dict(self._totals.seconds)
        for stage, took in seconds.items():
            totals[stage] = totals.get(stage, 0.0) + took
        whole = self._totals.latency_sum + latency
        self._totals = dataclasses.replace(self._totals, seconds=totals, latency_sum=whole)

    def _rates(self, now: float) -> tuple[float, float]:
        """Events and matches per second, of the last minute or of all the time if that is less."""
        if not self._kept:
            return 0.0, 0.0
        since = max(now - _WINDOW, min(self._began, self._kept[0].ended - self._kept[0].latency))
        events = matches = 0.0
        for done in reversed(self._kept):
            if done.ended <= since:
                break
            within = done.ended - max(since, done.ended - done.latency)
            share = within / done.latency if done.latency > 0 else 1.0
            events += share * done.report.events
            matches += share * done.report.matches
        span = now - since
        return (events / span, matches / span) if span > 0 else (0.0, 0.0)

    def _complete(self) -> None:
        """Tell the exporters of the last batch, if they were not told yet."""
        if self._open:
            self._open = False
            done, was = self._kept[-1], self._totals
            stages = {
                **was.stages,
                **{
                    stage: was.stages.get(stage, Durations()).plus(took)
                    for stage, took in done.seconds.items()
                },
            }
            self._totals = dataclasses.replace(
                was, latency=was.latency.plus(done.latency), stages=stages
            )
            for exporter in self._exporters:
                self._export(lambda to=exporter: to.batch(self._kept[-1]))  # type: ignore[misc]

    def _refresh(self) -> None:
        if self._exporters:
            figures = self.figures()
            for exporter in self._exporters:
                self._export(lambda to=exporter: to.refresh(figures))  # type: ignore[misc]

    def _export(self, call: Callable[[], None]) -> None:
        try:
            call()
        except OSError as failure:  # a full disk is no reason to stop matching
            reason = f"metrics cannot be written: {failure}"
            if not self._totals.failed:
                self._totals = dataclasses.replace(self._totals, error=reason)


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The least value that this share of all does not exceed."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None
