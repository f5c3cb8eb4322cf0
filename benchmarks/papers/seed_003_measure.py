"""What one strategy costs on some subscriptions and events, checked against the others.

The strategies are run one after the other, each freed before the next is built::

    build  ->  seconds, bytes
    match  ->  microseconds per event, on up to 10,000 events at once; fewer where that takes long
    insert ->  microseconds per subscription, all of them into an empty index in one call

The first strategy of a batch says what is found, event by event: how many classes, and the sum of a
hash of each. Every other one must say the same of all events that it was given, built and inserted
alike; a difference ends the run.

What would not fit is not tried: a k-index whose equalities are predicted to take more than twelve
gigabytes, and what is predicted to take more than 150 seconds to build or 30 to insert, from the
seconds that the same strategy took for each equality (k-index) or predicate (others) before.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.papers.measure import PASSES, Point, progress
from benchmarks.papers.seed_003_data import Setting, Subscriptions, Values, drawn, drawn_events
from benchmarks.run import DisagreementError, timed
from bittern.errors import OptionError
from bittern.matching.contract import Found, Refused
from bittern.matching.registry import STRATEGIES, strategy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from bittern.model.rank.encoded import EncodedEvents

LABELS = {
    "opindex": "OpIndex",
    "opindex-bs": "OpIndex-BS",
    "kindex": "k-index",
    "betree": "BE-Tree",
    "counting": "counting",
    "pivot": "pivot (ours)",
    "scan": "scan",
}
#: The strategies of a figure; pivot comes first and says what is found.
ALL = ("pivot", "opindex", "opindex-bs", "kindex", "betree", "counting")

EVENTS = 10_000
#: As many events as fit into the seconds of a pass, found by steps of this factor from the first.
FIRST_EVENTS, STEP = 4, 8
CHECKED_EVENTS = 64
PASS_SECONDS = 0.7
#: No further pass once they have taken so long together.
ALL_SECONDS = 1.5
#: Matches of one batch, at most: two numbers of four bytes each.
MOST_MATCHES = 20_000_000
#: What a k-index takes at its peak, at most: while it is built, and while it grows by insertions.
BYTES_PER_EQUALITY = {"build": 17, "insert": 60}
MOST_BYTES = 12_000_000_000
MOST_SECONDS = {"build": 90.0, "insert": 20.0}
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Truth(NamedTuple):
    """What each event of a batch finds: classes, and the sum of their hashes."""

    counts: NDArray[np.int64]
    sums: NDArray[np.uint64]

    @classmethod
    def of(cls, found: Found, class_of: NDArray[np.int32], n_events: int) -> Truth:
        """Read what was found, in the classes' own numbers. O(matches)."""
        counts = np.bincount(found.rows, minlength=n_events).astype(np.int64)
        hashes = (class_of[found.classes].astype(np.uint64) + np.uint64(1)) * _MIX
        hashes = (hashes ^ hashes >> np.uint64(29)) * _MIX
        sums = np.zeros(n_events, dtype=np.uint64)
        np.add.at(sums, found.rows, hashes ^ hashes >> np.uint64(32))
        return cls(counts, sums)


class Batch:
    """Events of which any number can be had, encoded, and what they are to find."""

    def __init__(self, subscriptions: Subscriptions, events: Values) -> None:
        self._space = subscriptions.space
        self._events = events
        self._truth = Truth(np.empty(0, np.int64), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return self._events.n_events

    def encoded(self, n: int) -> EncodedEvents:
        """The first n events."""
        return self._space.encode(self._events, n)

    def check(self, name: str, seen: Truth) -> None:
        """Raise unless earlier strategies found the same for all events that both have seen."""
        common = min(len(seen.counts), len(self._truth.counts))
        known = self._truth
        other = np.flatnonzero(
            (seen.counts[:common] != known.counts[:common])
            | (seen.sums[:common] != known.sums[:common])
        )
        if len(other):
            event = int(other[0])
            raise DisagreementError(
                f"{name} finds other classes for {len(other)} of {common} events, first for event"
                f" {event}: {seen.counts[event]} of them, others {known.counts[event]}"
            )
        if len(seen.counts) > common:
            self._truth = seen


class Pace:
    """Seconds that a strategy took for its work before, to predict what it will take."""

    def __init__(self, limits: Mapping[str, float] = MOST_SECONDS) -> None:
        self._limits = limits
        self._rates: dict[tuple[str, str], float] = {}

    def refusal(self, what: str, name: str, subscriptions: Subscriptions) -> str:
        """Why this is not to be tried, or nothing."""
        rate = self._rates.get((what, name), 0.0)
        seconds = rate * _work(name, subscriptions)
        if seconds > self._limits[what]:
            return f"to {what} it would take about {seconds:.0f} s, by its pace before"
        return ""

    def took(self, what: str, name: str, subscriptions: Subscriptions, seconds: float) -> None:
        """Learn from a measurement."""
        self._rates[what, name] = seconds / max(1, _work(name, subscriptions))


def _work(name: str, subscriptions: Subscriptions) -> int:
    return subscriptions.equalities if name == "kindex" else subscriptions.n_tests


def parameters_of(name: str, subscriptions: Subscriptions) -> dict[str, Any]:
    """What the paper sets, and the domain that the k-index rewrites ranges by."""
    paper: dict[str, dict[str, Any]] = {
        "opindex": {"segments": 32, "signature_bits": 64},
        "kindex": {"domain": subscriptions.domain},
        "betree": {"capacity": 5},
        "counting": {"stabbing": "cei"},
    }
    return paper.get(name, {})


def available(names: Iterable[str]) -> list[str]:
    """Those of the strategies that there are; the others are named aloud."""
    missing = [name for name in names if name not in STRATEGIES]
    if missing:
        progress(f"  NOT THERE, so not measured: {', '.join(missing)}")
    return [name for name in names if name in STRATEGIES]


@cache
def load_kernels(name: str) -> None:
    """Build, match and insert something small, so that no measurement includes compiling."""
    setting = Setting(n=200, d=300, m=10)
    subscriptions = drawn(setting)
    given = parameters_of(name, subscriptions)
    events = Batch(subscriptions, drawn_events(setting, 600)).encoded(600)
    index, _ = _built(name, subscriptions, given)
    index.match(events)
    if hasattr(index, "insert"):
        index, _ = _built(name, subscriptions, given, empty=True)
        index.insert(subscriptions.classes)
        index.match(events)
    gc.freeze()  # what compiling left: looking through it before every measurement takes longer


def _built(
    name: str, subscriptions: Subscriptions, given: Mapping[str, Any], *, empty: bool = False
) -> tuple[Any, NDArray[np.int32]]:
    classes = subscriptions.none if empty else subscriptions.classes
    return strategy(name).build(classes, subscriptions.mass, subscriptions.space.rank, **given)


def _inverse(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """The class of each number that an index reports."""
    class_of = np.empty(int(numbers.max(initial=-1)) + 1, dtype=np.int32)
    class_of[numbers] = np.arange(len(numbers), dtype=np.int32)
    return class_of


def compare(
    subscriptions: Subscriptions,
    batches: Mapping[Any, Values],
    names: Iterable[str],
    pace: Pace,
    *,
    insert: bool = False,
    given: Mapping[str, Any] | None = None,
) -> list[Point]:
    """The points of every strategy: one for each of the batches, by x."""
    made = {x: Batch(subscriptions, events) for x, events in batches.items()}
    points: list[Point] = []
    for name in available(names):
        load_kernels(name)
        parameters = {**parameters_of(name, subscriptions), **(given or {})}
        points += _measured(name, subscriptions, made, pace, parameters, insert=insert)
        gc.collect()
    return points


def _measured(
    name: str,
    subscriptions: Subscriptions,
    batches: Mapping[Any, Batch],
    pace: Pace,
    parameters: dict[str, Any],
    *,
    insert: bool,
) -> list[Point]:
    common: Point = {
        "structure": name,
        "parameters": parameters,
        "subscriptions": len(subscriptions),
        "classes": len(subscriptions.classes),
        "predicates": subscriptions.n_tests,
    }
    refusal = _refusal("build", name, subscriptions, pace)
    if not refusal:
        try:
            (index, numbers), seconds = timed(lambda: _built(name, subscriptions, parameters))
        except Refused as refused:
            refusal = (
                f"{len(refused.reasons):,} refused, such as {next(iter(refused.reasons.values()))}"
            )
        except (OptionError, MemoryError) as wrong:
            refusal = str(wrong)
    if refusal:
        points = [{**common, "x": x, "refused": f"{LABELS[name]}: {refusal}"} for x in batches]
        for point in points:
            progress(_told(point))
        return points
    pace.took("build", name, subscriptions, seconds)
    common |= {"build_seconds": seconds, "bytes": int(index.nbytes)}
    class_of = _inverse(numbers)
    points = [
        {**common, "x": x, **_matched(name, index, class_of, batch)} for x, batch in batches.items()
    ]
    del index, numbers
    if insert and hasattr(strategy(name), "insert"):
        batch = next(iter(batches.values()))
        inserted = _inserted(name, subscriptions, batch, pace, parameters)
        if "refused" in inserted:
            points += [{**common, "x": x, **inserted} for x in batches]
        else:
            points = [{**point, **inserted} for point in points]
    for point in points:
        progress(_told(point))
    return points


def _told(point: Point) -> str:
    if "refused" in point:
        return f"  at {point['x']}: {point['refused']}"
    inserted = ""
    if "us_per_insertion" in point:
        inserted = f", {point['us_per_insertion']:.2f} µs/insertion"
    return (
        f"  {point['structure']} at {point['x']}: {point['us_per_event']:.2f} µs/event"
        f" ({point['events']:,} events, {point['matches']:.1f} matches,"
        f" {point['candidates']:.1f} candidates), {point['bytes'] / 1e6:.0f} MB,"
        f" built in {point['build_seconds']:.2f} s{inserted}"
    )


def _refusal(what: str, name: str, subscriptions: Subscriptions, pace: Pace) -> str:
    """Why building or inserting is not to be tried, or nothing."""
    return too_large(what, name, subscriptions) or pace.refusal(what, name, subscriptions)


def too_large(what: str, name: str, subscriptions: Subscriptions) -> str:
    """Why a k-index would run out of memory, or nothing."""
    size = BYTES_PER_EQUALITY[what] * subscriptions.equalities
    if name != "kindex" or size <= MOST_BYTES:
        return ""
    return (
        f"out of memory; its ranges are {subscriptions.equalities:,} equalities, which take up to"
        f" {size / 1e9:.0f} GB, more than the {MOST_BYTES / 1e9:.0f} allowed"
    )


def _matched(name: str, index: Any, class_of: NDArray[np.int32], batch: Batch) -> Point:
    """Time per event, with as many events as do not take too long."""
    n, events = 0, batch.encoded(0)
    following = min(FIRST_EVENTS, len(batch))
    while following > n:
        n, events = following, batch.encoded(following)
        found, seconds = _passed(index, events)
        times = min(MOST_MATCHES / max(1, len(found.rows)), PASS_SECONDS / seconds, STEP)
        following = min(len(batch), int(n * times))
    seen = Truth.of(found, class_of, n)
    batch.check(name, seen)
    candidates = float(found.candidates.mean())
    del found
    passes: list[float] = []
    while len(passes) < PASSES and sum(passes) < ALL_SECONDS:
        passes.append(_passed(index, events)[1])
    return {
        "events": n,
        "us_per_event": statistics.median(passes) / n * 1e6,
        "matches": float(seen.counts.mean()),
        "candidates": candidates,
    }


def _passed(index: Any, events: EncodedEvents) -> tuple[Found, float]:
    """What one pass finds, and its seconds; collecting before each would take longer than it."""
    gc.disable()
    try:
        start = perf_counter()
        found: Found = index.match(events)
        return found, perf_counter() - start
    finally:
        gc.enable()


def _inserted(
    name: str, subscriptions: Subscriptions, batch: Batch, pace: Pace, parameters: Point
) -> Point:
    """Time per insertion of all classes, one after the other, into an empty index."""
    refusal = _refusal("insert", name, subscriptions, pace)
    if refusal:
        return {"refused": f"{LABELS[name]}, one by one: {refusal}"}
    index, _ = _built(name, subscriptions, parameters, empty=True)
    numbers, seconds = timed(lambda: index.insert(subscriptions.classes))
    pace.took("insert", name, subscriptions, seconds)
    n = min(CHECKED_EVENTS, len(batch))
    found = index.match(batch.encoded(n))
    batch.check(f"{name}, inserted,", Truth.of(found, _inverse(numbers), n))
    return {"us_per_insertion": seconds / len(numbers) * 1e6}
