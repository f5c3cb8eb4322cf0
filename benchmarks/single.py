"""One event at a time: ``python -m benchmarks.single [workload ...] [--small] [--deltas]``.

The same events are matched one by one by ``Matcher.match``, and as batches of one, which is what it
did before it had a path for one event. Both take turns, 64 events each, so that whatever else the
machine does hits both alike, and neither finds its caches full of the other's data::

    equality  json      p50 5.0 us  p99 11.2 us    as a batch p50 248.1 us  p99 391.0 us
    equality  mapping   p50 5.9 us  p99 12.0 us    as a batch p50 151.8 us  p99 270.3 us
    equality  batches of 1: 5.0 us  2: ...         as batches  1: 248.0 us  2: ...

The first two lines are wall time of single calls. The last is the CPU time per event against the
size of a batch of JSON texts. Both ways must find the same matches. With ``--deltas``, there are
60,000, 12,000 and 2,000 more subscriptions in deltas on the index, in a ``LiveMatcher``.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import logging
import statistics
from collections.abc import Callable, Sequence
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np

import bittern
from benchmarks import workloads
from bittern.engine.live.delta import State
from bittern.engine.matcher import StateMatcher

DEFAULT = ("equality", "shop", "dense", "optional")
#: Events that one way matches before it is the other's turn.
STRETCH = 64
SIZES = (1, 2, 8, 64, 256, 1024)
#: Subscriptions that come between two seals: too few to be folded into those before.
DELTAS = (60_000, 12_000, 2_000)
Match = Callable[[Any], Any]


def mappings(workload: workloads.Workload, n: int) -> list[dict[str, Any]]:
    """Events as mappings, without what they lack."""
    rows = workload.events(n).to_pylist()
    plain = [dict(row["attributes"]) if list(row) == ["attributes"] else row for row in rows]
    return [{name: value for name, value in row.items() if value is not None} for row in plain]


def texts(workload: workloads.Workload, events: Sequence[dict[str, Any]]) -> list[str]:
    """The same events as JSON texts; those that the workload has, where it has some."""
    own = workload.events_json(len(events))
    return [json.dumps(event) for event in events] if own is None else list(own.to_pylist())


def one_by_one(ways: Sequence[Match], events: Sequence[Any]) -> list[list[float]]:
    """Microseconds of each event, for each way."""
    taken: list[list[float]] = [[] for _ in ways]
    for number in range(0, len(events), STRETCH):
        for turn in range(len(ways)):
            way = (number // STRETCH + turn) % len(ways)  # neither always comes first
            match, own = ways[way], taken[way]
            for event in events[number : number + STRETCH]:
                begin = perf_counter_ns()
                match(event)
                own.append((perf_counter_ns() - begin) / 1e3)
    return taken


def in_batches(ways: Sequence[Match], events: Sequence[Any], size: int) -> list[float]:
    """Microseconds of CPU time per event in batches of a size, for each way: the median."""
    batches = [list(events[i : i + size]) for i in range(0, len(events) - size + 1, size)]
    taken: list[list[float]] = [[] for _ in ways]
    stretch = max(1, STRETCH // size)
    for number in range(0, len(batches), stretch):
        for turn in range(len(ways)):
            way = (number // stretch + turn) % len(ways)
            match, own = ways[way], batches[number : number + stretch]
            begin = thread_time_ns()
            for batch in own:
                match(batch[0] if size == 1 else batch)
            taken[way].append((thread_time_ns() - begin) / 1e3 / size / len(own))
    return [statistics.median(own) for own in taken]


def check(ways: Sequence[Match], events: Sequence[Any]) -> None:
    """All ways find the same."""
    for event in events:
        found = {tuple(np.sort(way(event).subscriptions).tolist()) for way in ways}
        if len(found) != 1:
            raise SystemExit(f"the two ways find other matches for {event}")


def with_deltas(workload: workloads.Workload, index: bittern.Index) -> bittern.LiveMatcher:
    """A live matcher with an index and deltas on top of it."""
    live = bittern.LiveMatcher(index)
    more = iter(workload.changes(sum(DELTAS)).to_pylist())
    for size in DELTAS:
        for row in itertools.islice(more, size):
            live.subscribe(row["id"], row["expression"])
        live.seal()
    return live


def measure(name: str, *, scale: workloads.Scale, n_events: int, deltas: bool) -> None:
    """Print the lines of one workload."""
    workload = workloads.get(name, scale)
    index = bittern.Index.build(workload.subscriptions(), sample=workload.sample())
    ways: list[Match] = [bittern.Matcher(index).match, StateMatcher(State.over(index)).match]
    if deltas:
        live = with_deltas(workload, index)
        print(f"{name:10}{len(live.seal().segments) - 1} deltas", flush=True)
        ways = [live.match, StateMatcher(live.seal()).match]
    events = mappings(workload, n_events)
    forms: dict[str, Sequence[Any]] = {"json": texts(workload, events), "mapping": events}
    for form, own in forms.items():
        check(ways, own[:100])
        told = [
            f"p50 {np.percentile(taken, 50):.1f} us  p99 {np.percentile(taken, 99):.1f} us"
            for taken in one_by_one(ways, own)
        ]
        print(f"{name:10}{form:10}{told[0]}    as a batch {told[1]}", flush=True)
    for form, own in forms.items():
        curve = {n: in_batches(ways, own, n) for n in SIZES if n <= n_events}
        told = [
            "  ".join(f"{n}: {taken[way]:.1f}" for n, taken in curve.items())
            for way in range(len(ways))
        ]
        print(f"{name:10}{form:10}us/event by size {told[0]}    as batches {told[1]}", flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.single", description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(DEFAULT))
    parser.add_argument("--small", action="store_true", help="a tenth of the subscriptions or less")
    parser.add_argument("--deltas", action="store_true", help="with deltas on the index")
    parser.add_argument("--events", type=int, default=4096)
    told = parser.parse_args()
    logging.disable(logging.WARNING)
    gc.disable()
    for name in told.workloads:
        scale: workloads.Scale = "small" if told.small else "full"
        measure(name, scale=scale, n_events=told.events, deltas=told.deltas)


if __name__ == "__main__":
    main()
