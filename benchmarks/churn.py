"""Changes while matching: what one writer costs the readers, and how fast it can write.

Four measurements over the same base index, each on a fresh ``LiveMatcher``::

    quiet      match, match, match ...                      nobody writes
    paced      match, match, match ...                      a thread makes 1,000 changes/s
    alone      subscribe, subscribe, subscribe ...          nobody matches
    contended  subscribe, subscribe, subscribe ...          a thread matches batches

Half of the paced changes add a subscription and half take an earlier one away.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import bittern

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.workloads import Workload

CHANGES_PER_SECOND = 1_000
SUBSCRIBE_SECONDS = 3.0
PACED_SECONDS = 5.0
#: More than a writer can add in the time it has.
FRESH = 500_000


class Writer(threading.Thread):
    """Makes ``CHANGES_PER_SECOND`` changes until it is told to stop."""

    def __init__(self, live: Any, changes: list[tuple[int, str]]) -> None:
        super().__init__(name="churn-writer")
        self.changed = 0
        self.seconds = 0.0
        self.failure: BaseException | None = None
        self._live = live
        self._changes = changes
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Keep to a timetable: after a stall the writer catches up, as a feed would."""
        start = perf_counter()
        try:
            while not self._stop_asked.is_set():
                due = int((perf_counter() - start) * CHANGES_PER_SECOND)
                while self.changed < due:
                    self._change(self.changed)
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

    def _change(self, number: int) -> None:
        identity, expression = self._changes[number // 2]
        if number % 2 == 0:
            self._live.subscribe(identity, expression)
        else:
            self._live.unsubscribe(identity)


def measure(index: Any, workload: Workload, events: pa.Table, repeat: int) -> dict[str, float]:
    """Run the four measurements; about 15 seconds plus the passes."""
    changes = workload.changes(FRESH if workload.scale == "full" else FRESH // 10)
    fresh = list(zip(changes["id"].to_pylist(), changes["expression"].to_pylist(), strict=True))
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        quiet = _events_per_second(live, events, repeat, at_least=0.0)
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        writer = Writer(live, fresh)
        writer.start()
        try:
            paced = _events_per_second(live, events, repeat, at_least=PACED_SECONDS)
        finally:
            changed = writer.stop()
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        alone = _subscribes_per_second(live, fresh)
    with contextlib.closing(bittern.LiveMatcher(index)) as live:
        contended, matched = _subscribe_while_matching(live, fresh, events)
    return {
        "events_per_second_quiet": quiet,
        "events_per_second_paced": paced,
        "changes_per_second_paced": changed,
        "slowdown_paced": 1 - paced / quiet,
        "subscribes_per_second_alone": alone,
        "subscribes_per_second_contended": contended,
        "events_per_second_contended": matched,
        "slowdown_contended": 1 - matched / quiet,
    }


def _events_per_second(live: Any, events: pa.Table, repeat: int, *, at_least: float) -> float:
    """Median of ``repeat`` passes, and of more while ``at_least`` seconds have not gone by."""
    live.match(events)
    passes: list[float] = []
    begin = perf_counter()
    while len(passes) < repeat or perf_counter() - begin < at_least:
        start = perf_counter()
        live.match(events)
        passes.append(perf_counter() - start)
    return len(events) / statistics.median(passes)


def _subscribes_per_second(live: Any, fresh: list[tuple[int, str]]) -> float:
    start = perf_counter()
    done = 0
    for identity, expression in fresh:
        live.subscribe(identity, expression)
        done += 1
        if perf_counter() - start > SUBSCRIBE_SECONDS:
            break
    return done / (perf_counter() - start)


def _subscribe_while_matching(
    live: Any, fresh: list[tuple[int, str]], events: pa.Table
) -> tuple[float, float]:
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
