"""The match stage beside a stage that does nothing: how much of Spark's own speed is left.

Three jobs over the same Parquet files, all into Spark's ``noop`` sink, in turns::

    jvm        read                                              what reading alone allows
    identity   read, key and attributes to Python, and back      what any Python stage pays
    match      read, key and attributes to Python, key and array<bigint> of subscriptions back

Of the first events the matches are compared with the embedded engine's. That engine is timed too,
one thread, the batches of the size that Spark sends: what of a stage's time is matching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

import bittern
import bittern.spark
from benchmarks import workloads
from benchmarks.run import agree
from benchmarks.spark.frames import EVENT, read_events, saved_index, write_events
from benchmarks.spark.session import (
    Setting,
    drain,
    in_turns,
    progress,
    rates,
    seconds_of,
    session,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

WORKLOADS = ("shop", "dense")
#: For a whole run: the slower of the jobs takes some ten seconds a pass.
EVENTS = {"shop": 2_000_000, "dense": 4_000_000}
SMALL_EVENTS = 20_000
CHECKED_EVENTS = 2_000
BATCH = 10_000  # Spark's default
PASSES = 3


def measure(setting: Setting) -> dict[str, Any]:
    """All three jobs on both workloads."""
    with session() as spark:
        return {name: _workload(spark, setting, name) for name in WORKLOADS}


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give back what comes in."""
    yield from batches


def events_of(setting: Setting, name: str) -> int:
    """How many events a workload is measured with."""
    return setting.size(EVENTS[name], SMALL_EVENTS)


def _workload(spark: Any, setting: Setting, name: str) -> dict[str, Any]:
    workload = workloads.get(name, setting.scale)
    n = events_of(setting, name)
    progress(f"{name}: {workload.n_subscriptions:,} subscriptions, {n:,} events")
    index = saved_index(workload, setting.folder)
    path = write_events(workload, n, setting.folder)
    events = read_events(spark, path)
    matched = bittern.spark.match(events, str(index), event_id=EVENT)
    returned = events.mapInArrow(identity, events.schema)
    jobs = {
        "jvm": lambda: drain(events),
        "identity": lambda: drain(returned),
        "match": lambda: drain(matched),
    }
    taken = in_turns(jobs, passes=setting.size(PASSES, 1))
    result: dict[str, Any] = {
        "notes": workload.notes,
        "subscriptions": workload.n_subscriptions,
        **{job: rates(passes, n) for job, passes in taken.items()},
        "embedded": _embedded(workload, str(index)),
    }
    result |= _check(events, path, str(index))
    ratio = result["match"]["events_per_second"] / result["identity"]["events_per_second"]
    progress(f"  match / identity: {ratio:.3f}")
    return result | {"ratio": ratio}


def _embedded(workload: workloads.Workload, index: str) -> dict[str, Any]:
    """One thread of this process, without Spark."""
    matcher = bittern.Matcher(bittern.Index.open(index))
    batches = [workload.events(BATCH, seed) for seed in (1, 2, 3)]
    matcher.match(batches[0])
    passes = [seconds_of(lambda: [matcher.match(batch) for batch in batches]) for _ in range(3)]
    return rates(passes, BATCH * len(batches))


def _check(events: DataFrame, path: Path, index: str) -> dict[str, float]:
    """Compare the first events' matches with the embedded engine's; say what an event is like."""
    few = events.filter(f"{EVENT} < {CHECKED_EVENTS}")
    found = bittern.spark.match(few, index, event_id=EVENT).orderBy(EVENT).toArrow()
    lists = found["subscriptions"].combine_chunks()
    table = pq.read_table(path / "part-0.parquet").slice(0, CHECKED_EVENTS)
    matches = bittern.Matcher(bittern.Index.open(index)).match(table)
    agree("Spark", np.asarray(lists.value_lengths()), matches.counts)
    assert sorted(lists.flatten().to_pylist()) == sorted(
        matches.to_arrow(flat=True)["subscription"].to_pylist()
    ), "Spark and the embedded engine find other subscriptions"
    return {
        "matches_per_event": float(matches.counts.mean()),
        "event_bytes": table.nbytes / len(table),
    }
