"""The clock and the judge of the history benchmarks.

::

    documents --append--> History --+
    texts ----build-----> Index ----+-- LiveMatcher --match, remember=False--> passes, pairs
                                                                                      |
    pairs that were reported, pairs that were not although their constants hold --> nested loops

A time is the median of passes over one batch of events that are matched and not remembered, so that
every pass sees the same documents.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

import bittern
from benchmarks.draw import Ints
from benchmarks.history.naive import Naive
from benchmarks.history.world import BOOKSHOP, Records, Subscriptions, World, in_vain
from benchmarks.run import DisagreementError, timed
from bittern.history.history import History

PASSES = 3
#: Documents that are appended at a time.
CHUNK = 100_000
#: Events of a batch whose pairs are judged.
JUDGED_EVENTS = 20
#: Events that come before the clock starts, at least and at most.
WARM, WARMEST = 20, 1_000


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    thin: int
    subscriptions: int
    documents: int
    events: int
    sizes: tuple[int, ...]  # of a history that grows
    of_a_sort: int  # subscriptions there
    distinct: tuple[int, ...]
    sharing: tuple[int, ...]
    phased: int  # subscriptions for the phases and the pre-filter
    in_vain: tuple[float, ...]
    seconds: float  # that a pass should take
    pairs: int  # judged of each kind
    paper: tuple[int, int]  # subscriptions and events of the paper's plan
    constants_once: int  # events of that plan with the constants asked once
    duck_seconds: float
    singles: int  # events, or documents, that come one at a time


class Setting:
    """What every part gets: the scale, documents, events, and a history of all documents."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        self.scale, self.folder = scale, folder
        self.world = World(scale.thin)
        self.documents = self.world.documents(scale.documents)
        self.events = self.world.events(scale.events)
        self.warm = self.world.events(WARMEST, seed=2).table()

    @cached_property
    def mix(self) -> Subscriptions:
        """The subscriptions of the mix."""
        return self.world.subscriptions(self.scale.subscriptions, BOOKSHOP)

    @cached_property
    def index(self) -> bittern.Index:
        """The index of the mix."""
        return bittern.Index.build(self.mix.table())

    @cached_property
    def history(self) -> History:
        """All documents, in memory; whoever uses it remembers nothing."""
        return filled(self.documents)

    def measure(self, live: Any, events: Records | None = None) -> tuple[dict[str, Any], Ints]:
        """Time passes over as many of the events as fit into the seconds; and what was found."""
        events = self.events if events is None else events
        n = WARM
        for _ in range(3):  # the first call prepares; calls of few events cost more for each
            few = self.warm.slice(0, n)
            began = perf_counter()
            live.match(few, remember=False)
            took = perf_counter() - began
            fitting = int(self.scale.seconds / took * len(few))
            n = max(WARM, min(fitting, len(events)))
        batch = events.slice(0, n).table()
        (passes, matches), _ = timed(lambda: _passes(live, batch))
        told, found = live.last_statistics, pairs_of(matches)
        return {
            "events": n,
            "passes_seconds": passes,
            "microseconds_per_event": statistics.median(passes) / n * 1e6,
            "matches_per_event": len(found) / n,
            "evaluations_per_event": told["join_evaluations"] / n,
            "phase": live.joins.estimate.choice,
        }, found

    def static(self, subscriptions: Subscriptions, what: str) -> dict[str, Any]:
        """Measure subscriptions against all documents, and judge what they found."""
        with live_matcher(subscriptions, self.history) as live:
            measured, found = self.measure(live)
        return measured | {"verified": self.judge(subscriptions, found, measured["events"], what)}

    def judge(
        self,
        subscriptions: Subscriptions,
        found: Ints,
        n: int,
        what: str,
        *,
        documents: Records | None = None,
        events: Records | None = None,
        remembered: bool = False,
    ) -> dict[str, int]:
        """Nested loops over some pairs, their events spread over the first ``n``."""
        past = self.documents if documents is None else documents
        batch = (self.events if events is None else events).slice(0, n)
        naive = Naive(subscriptions, past, batch, remembered=remembered)
        some = np.unique(np.linspace(0, n - 1, min(n, JUDGED_EVENTS)).astype(np.int64))
        return naive.judge(found, some, self.scale.pairs, what)


def _passes(live: Any, batch: pa.Table) -> tuple[list[float], Any]:
    """Seconds of each, and the matches of the last."""
    passes = []
    for _ in range(PASSES):
        began = perf_counter()
        matches = live.match(batch, remember=False)
        passes.append(perf_counter() - began)
    return passes, matches


def filled(documents: Records, path: Path | None = None) -> History:
    """A history with these documents."""
    history = History(path)
    append(history, documents)
    return history


def append(history: History, documents: Records) -> None:
    """Append them, some at a time."""
    for at in range(0, len(documents), CHUNK):
        history.append(documents.slice(at, at + CHUNK).table())


def live_matcher(subscriptions: Subscriptions, history: History) -> Any:
    """Subscriptions over a history."""
    return bittern.LiveMatcher(bittern.Index.build(subscriptions.table()), history=history)


def ready(index: bittern.Index, history: History, event: pa.Table) -> Any:
    """A matcher that has read the documents, which its first event makes it do."""
    live = bittern.LiveMatcher(index, history=history)
    live.match(event, remember=False)
    return live


def load_kernels() -> None:
    """Match something small in every way, so that the first part does not time the loading."""
    world = World(100)
    for mix in (BOOKSHOP, in_vain(0.5)):
        with live_matcher(world.subscriptions(500, mix), filled(world.documents(500))) as live:
            for phases in ("auto", "joins first", "constants first"):
                live.joins.phases = phases
                live.match(world.events(20).table())
                live.match(world.events(20).table(), remember=False)


def pairs_of(matches: Any) -> Ints:
    """(event, subscription) of every match, in order."""
    flat: pa.Table = matches.to_arrow(flat=True)
    both = np.stack([flat[name].to_numpy() for name in ("event", "subscription")], axis=1)
    return in_order(both.astype(np.int64))


def in_order(pairs: Ints) -> Ints:
    """By event, then by subscription."""
    return pairs[np.lexsort(pairs.T[::-1])]


def same_pairs(what: str, found: Ints, expected: Ints) -> None:
    """Raise unless both have the same matches, each once."""
    if np.array_equal(found, expected):
        return
    one, other = (set(map(tuple, each.tolist())) for each in (found, expected))
    raise DisagreementError(
        f"{what} finds {len(found):,} matches, expected are {len(expected):,}; "
        f"{len(one - other):,} are superfluous and {len(other - one):,} missing, "
        f"for example {sorted(one ^ other)[:3]}"
    )
