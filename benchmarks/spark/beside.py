"""Our match beside what a Spark user writes today (``peers.py``), in one session, on the same data.

A peer gets four times as many events each time, while the next step fits into the seconds allowed,
and at last as many as fill them. Every step's matches are compared with ours, row by row; then the
last step is run again into the ``noop`` sink, and that pass counts. Ours is measured on as many
events as keep it busy for seconds, with the same subscriptions, into the same sink: rates are
compared, as if the peer's stayed what it is for as many events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import bittern.spark
from benchmarks import workloads
from benchmarks.run import DisagreementError
from benchmarks.spark.frames import (
    EVENT,
    VALUES,
    events_table,
    read_events,
    saved_index,
    write_events,
)
from benchmarks.spark.peers import PEERS, SUBSCRIPTION
from benchmarks.spark.session import (
    Setting,
    drain,
    in_turns,
    progress,
    rates,
    seconds_of,
    session,
)
from benchmarks.spark.stage import WORKLOADS, events_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.spark.peers import Peer

STEP = 4
MOST_EVENTS = 1 << 18


def measure(setting: Setting) -> dict[str, Any]:
    """Every peer on both workloads."""
    with session() as spark:
        return {name: _workload(spark, setting, name) for name in WORKLOADS}


def _workload(spark: SparkSession, setting: Setting, name: str) -> dict[str, Any]:
    workload = workloads.get(name, setting.scale)
    conjunctions = workload.conjunctions()
    assert conjunctions is not None
    index = str(saved_index(workload, setting.folder))
    n = events_of(setting, name)
    events = read_events(spark, write_events(workload, n, setting.folder))
    matched = bittern.spark.match(events, index, event_id=EVENT)
    progress(f"{name}: {workload.n_subscriptions:,} subscriptions")
    ours = in_turns({"ours": lambda: drain(matched)}, passes=2)["ours"]
    result: dict[str, Any] = {
        "subscriptions": workload.n_subscriptions,
        "ours": rates(ours, n),
        "peers": {},
    }
    for kind in PEERS:
        progress(f"  {kind.name}")
        loaded: list[Peer] = []
        load_seconds = seconds_of(
            lambda kind=kind, loaded=loaded: loaded.append(  # type: ignore[misc]
                kind(spark, conjunctions, setting.folder, as_map=VALUES in events.columns)
            )
        )
        peer = loaded[0]
        measured = as_many_as_fit(peer, workload, index, setting.size(8, 1))
        peer.forget()
        ratio = result["ours"]["events_per_second"] / measured["events_per_second"]
        result["peers"][kind.name] = {"load_seconds": load_seconds, **measured, "ratio": ratio}
        progress(f"    {measured['events_per_second']:,.1f} events/s, ours {ratio:,.0f} times")
    return result


def as_many_as_fit(
    peer: Peer, workload: workloads.Workload, index: str, allowed: float
) -> dict[str, Any]:
    """Grow the number of events while a step fits into the seconds allowed; time the last one."""
    n, last = 2, False
    peer.match(_events(peer.spark, workload, n)).count()  # every worker reads what it needs
    while True:
        events = _events(peer.spark, workload, n)
        found: list[pa.Table] = []
        frame = peer.match(events)
        seconds = seconds_of(lambda f=frame, to=found: to.append(f.toArrow()))  # type: ignore[misc]
        agree_on_pairs(peer.name, found[0], _ours(events, index))
        if last or n >= MOST_EVENTS:
            break
        events.unpersist()
        last = seconds * (STEP + 1) > allowed
        growth = max(1.0, min(STEP, allowed / seconds)) if last else STEP
        n = min(int(growth * n), MOST_EVENTS)
    passes = [seconds_of(lambda: drain(peer.match(events)))]
    events.unpersist()
    return rates(passes, n)


def _events(spark: SparkSession, workload: workloads.Workload, n: int) -> DataFrame:
    frame = spark.createDataFrame(events_table(workload, n)).repartition(2).cache()
    frame.count()
    return frame


def _ours(events: DataFrame, index: str) -> pa.Table:
    return bittern.spark.match(events, index, event_id=EVENT, explode=True).toArrow()


def agree_on_pairs(what: str, found: pa.Table, expected: pa.Table) -> None:
    """Raise unless both are the same pairs of event and subscription."""
    pairs = []
    for table in (found, expected):
        events, subscriptions = (table[name].to_numpy() for name in (EVENT, SUBSCRIPTION))
        order = np.lexsort((subscriptions, events))
        pairs.append((events[order], subscriptions[order]))
    if not all(map(np.array_equal, *pairs)):
        raise DisagreementError(
            f"{what} finds {len(found):,} matches, Bittern {len(expected):,}, not all the same"
        )
