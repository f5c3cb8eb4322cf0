"""Changes while matching: ``python -m benchmarks.churn [--small]``.

One thread matches, another changes subscriptions, and what the first one loses is measured. Over
the same base index, each with a fresh ``LiveMatcher`` and at 0, 1,000 and 20,000 subscribes/s with
as many unsubscribes/s::

    batches     match, match, match ...     10,000 events each: events/s, and the reader's own CPU
    pauses      match, match, match ...     100 events each: how much longer than usual is a call?
    in turns    changes, match, changes ... one thread, CPU time only: as many changes as would have
                come during the match, which is what a machine that is busy otherwise can measure

What is unsubscribed was subscribed ``BEHIND`` changes earlier, so that it has been indexed by then
and the number of subscriptions stays the same. Then the writer's own speed::

    alone       subscribe, subscribe ...          nobody matches
    contended   subscribe, subscribe ...          a thread matches batches, nobody paces the writer
    many        subscribe_many, unsubscribe_many  nobody matches, ``MANY`` at a time
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from time import perf_counter, sleep, thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

import bittern
from benchmarks import workloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from benchmarks.workloads import Workload

#: Subscribes per second, and as many unsubscribes.
RATES = (0, 1_000, 20_000)
#: Subscriptions that a writer keeps before it takes the oldest away.
BEHIND = 10_000
SECONDS = 5.0
SUBSCRIBE_SECONDS = 3.0
#: Events of a call whose pauses are measured.
FEW = 100
#: Subscriptions of one ``subscribe_many``.
MANY = 20_000
#: Calls with many events and with few, in turns with changes.
TURNS = (20, 500)
#: The edges of the histogram, in milliseconds.
EDGES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
#: More than a writer can add in the time it has.
FRESH = 500_000

HEAD_IN_TURNS = (
    "in turns, CPU time of one thread\n"
    "subscribes/s CPU us/event CPU us/change pause p50     p99 longest (ms)"
)
HEAD = (
    "subscribes/s changes/s  events/s   lost CPU us/event  call ms pause p50     p99 longest   "
    "histogram"
)

Rows = list[tuple[int, str]]


class Writer(threading.Thread):
    """Subscribes and unsubscribes at a rate until it is told to stop."""

    def __init__(self, live: Any, fresh: Rows, rate: int) -> None:
        super().__init__(name="churn-writer")
        self.changed = 0
        self.seconds = 0.0
        self.failure: BaseException | None = None
        self._live = live
        self._fresh = fresh
        self._rate = rate
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Keep to a timetable: after a stall the writer catches up, as a feed would."""
        start = perf_counter()
        try:
            while not self._stop_asked.is_set():
                due = int((perf_counter() - start) * 2 * self._rate)
                while self.changed < due and not self._stop_asked.is_set():
                    self.change(self.changed)
                    self.changed += 1
                sleep(0.001)
        except BaseException as error:  # noqa: BLE001  (re-raised where the run can see it)
            self.failure = error
        self.seconds = perf_counter() - start

    def stop(self) -> float:
        """End the thread and give the changes per second it reached."""
        self._stop_asked.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        return self.changed / self.seconds

    def change(self, number: int) -> None:
        """Make the n-th change."""
        place = number // 2
        if number % 2 == 0:
            self._live.subscribe(*self._fresh[place + BEHIND])
        else:
            self._live.unsubscribe(self._fresh[place][0])


@dataclass(frozen=True)
class Matched:
    """What a reader saw while changes were made at some rate."""

    rate: int
    changes_per_second: float
    events_per_second: float
    cpu_microseconds_per_event: float
    #: Of calls with few events, in milliseconds.
    call: float
    pause_p50: float
    pause_p99: float
    pause_longest: float
    #: Calls with a pause of less than each of ``EDGES``, and of more than all.
    histogram: list[int]


def measure(index: Any, workload: Workload, events: pa.Table) -> dict[str, float]:
    """All measurements, one figure each; about a minute."""
    fresh = _fresh(workload)
    quiet, *others = [_matched(index, fresh, events, rate) for rate in RATES]
    figures = {"events_per_second_quiet": quiet.events_per_second}
    for turns in (_in_turns(index, fresh, events, rate) for rate in RATES):
        for name, value in asdict(turns).items():
            if name != "rate":
                figures[f"in_turns_{name}_{turns.rate}"] = value
    for found in (quiet, *others):
        for name, value in asdict(found).items():
            if name not in ("rate", "histogram"):
                figures[f"{name}_{found.rate}"] = value
        figures[f"slowdown_{found.rate}"] = 1 - found.events_per_second / quiet.events_per_second
    return figures | _written(index, fresh, events, quiet)


def _fresh(workload: Workload) -> Rows:
    changes = workload.changes(FRESH if workload.scale == "full" else FRESH // 10)
    return list(zip(changes["id"].to_pylist(), changes["expression"].to_pylist(), strict=True))


def _matched(index: Any, fresh: Rows, events: pa.Table, rate: int) -> Matched:
    """Match while changes are made at a rate."""
    few = events.slice(0, FEW).combine_chunks()
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        live.match(few)
        usual = statistics.median(_calls(live, few, at_least=1.0)[0]) if rate else 0.0
        if rate:
            for row in fresh[:BEHIND]:
                live.subscribe(*row)
        live.match(events)
        writer = Writer(live, fresh, rate)
        if rate:
            writer.start()
        try:
            passes, cpu = _calls(live, events, at_least=SECONDS)
            calls, _ = _calls(live, few, at_least=SECONDS)
        finally:
            changed = writer.stop() if rate else 0.0
    usual = usual or statistics.median(calls)
    pauses = np.maximum(0.0, np.array(calls) - usual) * 1e3
    edges = np.array([0.0, *EDGES, np.inf])
    return Matched(
        rate,
        changed,
        len(events) * len(passes) / sum(passes),
        sum(cpu) / len(passes) / len(events) * 1e6,
        usual * 1e3,
        *(float(np.percentile(pauses, share)) for share in (50, 99, 100)),
        np.histogram(pauses, edges)[0].tolist(),
    )


def _calls(live: Any, events: pa.Table, *, at_least: float) -> tuple[list[float], list[float]]:
    """Seconds of each call, and CPU seconds of this thread."""
    walls, cpus = [], []
    begin = perf_counter()
    while perf_counter() - begin < at_least:
        start, cpu = perf_counter(), thread_time()
        live.match(events)
        cpus.append(thread_time() - cpu)
        walls.append(perf_counter() - start)
    return walls, cpus


@dataclass(frozen=True)
class InTurns:
    """What one thread's CPU time says, where it makes the changes between two matches itself."""

    rate: int
    cpu_microseconds_per_event: float
    cpu_microseconds_per_change: float
    #: Of calls with few events, in milliseconds of CPU time.
    pause_p50: float
    pause_p99: float
    pause_longest: float


def _in_turns(index: Any, fresh: Rows, events: pa.Table, rate: int) -> InTurns:
    """Make the changes of each match's usual time, then match."""
    few = events.slice(0, FEW).combine_chunks()
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        usual = [_median_cpu(live, batch) for batch in (events, few)]
        writer = Writer(live, fresh, rate)
        for row in fresh[: BEHIND if rate else 0]:
            live.subscribe(*row)
        live.match(few)
        cpu = []
        changing, owed = 0.0, 0.0
        for batch, seconds, times in zip((events, few), usual, TURNS, strict=True):
            own = []
            for _ in range(times):
                owed += 2 * rate * seconds
                start = thread_time()
                while owed >= 1:
                    writer.change(writer.changed)
                    writer.changed, owed = writer.changed + 1, owed - 1
                changed = thread_time()
                live.match(batch)
                own.append(thread_time() - changed)
                changing += changed - start
            cpu.append(own)
    batches, calls = map(np.array, cpu)
    pauses = np.maximum(0.0, calls - usual[1]) * 1e3
    return InTurns(
        rate,
        float(batches.mean()) / len(events) * 1e6,
        changing / max(1, writer.changed) * 1e6,
        *(float(np.percentile(pauses, share)) for share in (50, 99, 100)),
    )


def _median_cpu(live: Any, events: pa.Table) -> float:
    live.match(events)
    return statistics.median(_calls(live, events, at_least=1.0)[1])


def _written(index: Any, fresh: Rows, events: pa.Table, quiet: Matched) -> dict[str, float]:
    """How fast a writer is."""
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        alone = _subscribes_per_second(live, fresh)
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        contended, matched = _subscribe_while_matching(live, fresh, events)
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        many = _changes_per_second(live, fresh)
    return {
        "subscribes_per_second_alone": alone,
        "subscribes_per_second_contended": contended,
        "events_per_second_contended": matched,
        "slowdown_contended": 1 - matched / quiet.events_per_second,
        "changes_per_second_many": many,
    }


def _subscribes_per_second(live: Any, fresh: Rows) -> float:
    start = perf_counter()
    done = 0
    for identity, expression in fresh:
        live.subscribe(identity, expression)
        done += 1
        if perf_counter() - start > SUBSCRIBE_SECONDS:
            break
    return done / (perf_counter() - start)


def _subscribe_while_matching(live: Any, fresh: Rows, events: pa.Table) -> tuple[float, float]:
    """Count subscribes per second here and events per second in a thread beside."""
    live.match(events)
    finished = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        start = perf_counter()
        reader = pool.submit(_match_until, finished, live, events)
        try:
            rate = _subscribes_per_second(live, fresh)
        finally:
            finished.set()
        batches = reader.result()
        return rate, batches * len(events) / (perf_counter() - start)


def _match_until(finished: threading.Event, live: Any, events: pa.Table) -> int:
    batches = 0
    while not finished.is_set():
        live.match(events)
        batches += 1
    return batches


def _changes_per_second(live: Any, fresh: Rows) -> float:
    """Changes of ``subscribe_many`` and ``unsubscribe_many`` in turns."""
    done, start, first = 0, perf_counter(), 0
    while perf_counter() - start < SUBSCRIBE_SECONDS and first < len(fresh):
        rows = fresh[first : first + MANY]
        live.subscribe_many(rows)
        done, first = done + len(rows), first + MANY
        if first > MANY:
            before = [id_ for id_, _ in fresh[first - 2 * MANY : first - MANY]]
            live.unsubscribe_many(before)
            done += len(before)
    return done / (perf_counter() - start)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the workload's index, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--small", action="store_true", help="10,000 instead of a million")
    parser.add_argument("--in-turns", action="store_true", help="only CPU time, of one thread")
    parser.add_argument("--subscriptions", type=int, help="only so many of them")
    options = parser.parse_args(arguments)
    workload = workloads.get("churn", "small" if options.small else "full")
    texts = workload.subscriptions().slice(0, options.subscriptions)
    index = bittern.Index.build(texts, sample=workload.sample())
    fresh, events = _fresh(workload), workload.events(10_000)
    print(f"{len(index):,} subscriptions, {len(events):,} events a batch")
    print(HEAD_IN_TURNS)
    for rate in RATES:
        turns = _in_turns(index, fresh, events, rate)
        line = f"{rate:>12,} {turns.cpu_microseconds_per_event:>12.2f}"
        line += f" {turns.cpu_microseconds_per_change:>13.2f}"
        line += f" {turns.pause_p50:>9.2f} {turns.pause_p99:>7.2f} {turns.pause_longest:>7.2f}"
        print(line, flush=True)
    if options.in_turns:
        return 0
    print(HEAD)
    quiet = None
    for rate in RATES:
        found = _matched(index, fresh, events, rate)
        quiet = quiet or found
        lost = 1 - found.events_per_second / quiet.events_per_second
        line = f"{rate:>12,} {found.changes_per_second:>9,.0f} {found.events_per_second:>9,.0f}"
        line += f" {lost:>6.1%} {found.cpu_microseconds_per_event:>12.2f} {found.call:>8.2f}"
        line += f" {found.pause_p50:>8.2f} {found.pause_p99:>7.2f} {found.pause_longest:>7.2f}"
        print(f"{line}   {found.histogram}", flush=True)
    print(f"histogram: calls with a pause below {', '.join(map(str, EDGES))} ms, and longer")
    assert quiet is not None
    print(json.dumps(_written(index, fresh, events, quiet), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
