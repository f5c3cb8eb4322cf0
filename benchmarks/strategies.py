"""Which strategy is faster? ``python -m benchmarks.strategies [workload ...] [--small]``.

One process holds the same subscriptions under each strategy, and they match the same events in
turns, so that whatever else the machine does hits all alike::

    wide       pivot  bits  default  default  bits  pivot  ...      least and median of each

What is timed is the CPU time of the thread that matches. All must find as many matches.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from time import process_time, thread_time
from typing import Any

import numpy as np

import bittern
from benchmarks import workloads

DEFAULT = ("ranges", "wide")
#: Name and parameters of each; what is asked for by default may be pivots, bits or both.
STRATEGIES: dict[str, dict[str, Any]] = {
    "pivot": {"strategy": "pivot", "parameters": {"bits": False}},
    "bits": {"strategy": "bits"},
    "default": {},
}
#: The others are what is published for many wide ranges (``literature/rectangles``).
COMPARED = (*STRATEGIES, "hem", "rein", "tama")


def compare(
    workload: workloads.Workload, strategies: list[str], *, n_events: int, rounds: int
) -> None:
    """Print a line for each strategy."""
    subscriptions, sample = workload.subscriptions(), workload.sample()
    events = workload.events(n_events)
    matchers, counts = {}, {}
    for name in strategies:
        begin = process_time()
        asked = STRATEGIES.get(name, {"strategy": name})
        index = bittern.Index.build(subscriptions, sample=sample, **asked)
        taken = process_time() - begin
        matchers[name] = bittern.Matcher(index)
        counts[name] = matchers[name].match(events).counts
        print(
            f"{workload.name:10}{name:10}{index.subscriptions.name}, built in {taken:.1f} s, "
            f"{index.nbytes / 1e6:.1f} MB"
        )
    for name in strategies[1:]:
        if not np.array_equal(counts[name], counts[strategies[0]]):
            raise SystemExit(f"{workload.name}: {name} finds other matches")
    seconds: dict[str, list[float]] = {name: [] for name in strategies}
    gc.disable()
    for turn in range(rounds):
        for name in strategies if turn % 2 else reversed(strategies):
            begin = thread_time()
            matchers[name].match(events)
            seconds[name].append(1e6 * (thread_time() - begin) / n_events)
    gc.enable()
    for name in strategies:
        totals = matchers[name].last_statistics
        print(
            f"{workload.name:10}{name:10}min {min(seconds[name]):.2f}, "
            f"median {statistics.median(seconds[name]):.2f} us/event; "
            f"{totals['candidates'] / n_events:,.1f} candidates, "
            f"{totals['matches'] / n_events:,.1f} matches per event",
            flush=True,
        )


def main() -> None:
    """Read the arguments and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strategies", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workloads", nargs="*", default=list(DEFAULT))
    parser.add_argument("--strategies", default=",".join(COMPARED), help="default: %(default)s")
    parser.add_argument("--small", action="store_true", help="the same shapes, small")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    told = parser.parse_args()
    for name in told.workloads:
        compare(
            workloads.get(name, "small" if told.small else "full"),
            told.strategies.split(","),
            n_events=told.events,
            rounds=told.rounds,
        )


if __name__ == "__main__":
    main()
