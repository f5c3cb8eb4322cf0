"""The book shop's mix at full size, beside nested loops and DuckDB, and while it remembers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.draw import Ints
from benchmarks.history.duck import DuckDB
from benchmarks.history.measure import Setting, filled, pairs_of, ready, same_pairs
from benchmarks.history.naive import Naive
from benchmarks.history.world import Subscriptions
from benchmarks.run import timed
from benchmarks.spark.session import progress

#: Events that are remembered in one batch.
REMEMBERED = 1_000


def whole(setting: Setting) -> dict[str, Any]:
    """Ours, and the others on the same subscriptions, documents and events."""
    subscriptions = setting.mix
    index, build = timed(lambda: setting.index)
    history, one = setting.history, setting.warm.slice(0, 1)
    live, attach = timed(lambda: ready(index, history, one))
    with live:
        measured, found = setting.measure(live)
        progress("  DuckDB")
        duckdb = _duckdb(setting, subscriptions, live)
    n = measured["events"]
    progress("  the plan without an index")
    naive = _naive(setting, subscriptions)
    progress("  remembering")
    return {
        "subscriptions": len(subscriptions),
        "documents": len(setting.documents),
        "distinct": subscriptions.distinct(),
        "build_seconds": build,
        "attach_seconds": attach,
        "batch": measured | {"verified": setting.judge(subscriptions, found, n, "the mix")},
        "families": _families(subscriptions, found, n),
        "naive": naive,
        "duckdb": duckdb,
        "remembered": _remembered(setting, subscriptions, index),
    }


def _naive(setting: Setting, subscriptions: Subscriptions) -> dict[str, Any]:
    """Seconds of nested loops: as the paper has them, and with the constants asked once."""
    naive = Naive(subscriptions, setting.documents, setting.events)
    few, events = setting.scale.paper
    step = len(subscriptions) // few
    part, every = np.arange(0, few * step, step), np.arange(len(subscriptions))
    out = {}
    for name, own, n in (("paper", part, events), ("once", every, setting.scale.constants_once)):
        seconds = naive.seconds_per_event(own, n, constants_once=name == "once")
        out[name] = {"subscriptions": len(own), "events": n, "seconds_per_event": seconds}
    return out


def _duckdb(setting: Setting, subscriptions: Subscriptions, live: Any) -> dict[str, Any]:
    """Batches of one event up to as many as fit, each beside ours on the same events."""
    database, load = timed(lambda: DuckDB(subscriptions, setting.documents))
    database.match(setting.events.slice(0, 1))
    batches, n = [], 1
    while True:
        events = setting.events.slice(0, n)
        table = events.table()
        theirs, seconds = timed(lambda events=events: database.match(events))  # type: ignore[misc]
        ours, own = timed(lambda table=table: live.match(table, remember=False))  # type: ignore[misc]
        same_pairs("DuckDB", theirs, pairs_of(ours))
        batches.append({"events": n, "matches": len(theirs), "seconds": seconds, "ours": own})
        if n == len(setting.events) or seconds * 5 > setting.scale.duck_seconds:
            database.close()
            return {"load_seconds": load, "batches": batches}
        n = min(10 * n, len(setting.events))


def _remembered(setting: Setting, subscriptions: Subscriptions, index: Any) -> dict[str, Any]:
    """Each event becomes a document for those after it: in a batch, and one at a time."""
    n = min(REMEMBERED, len(setting.events))
    batch = setting.events.slice(0, n).table()
    singles = [setting.world.events(1, seed=10 + at).table() for at in range(setting.scale.singles)]
    with ready(index, filled(setting.documents), setting.warm) as live:
        _, without = timed(lambda: live.match(batch, remember=False))
        matches, seconds = timed(lambda: live.match(batch))
        found = pairs_of(matches)
        _, one = timed(lambda: [live.match(single) for single in singles])
    return {
        "events": n,
        "microseconds_per_event": seconds / n * 1e6,
        "without_microseconds_per_event": without / n * 1e6,
        "one_at_a_time_microseconds": one / len(singles) * 1e6,
        "matches_per_event": len(found) / n,
        "verified": setting.judge(subscriptions, found, n, "remembering", remembered=True),
    }


def _families(subscriptions: Subscriptions, found: Ints, n: int) -> dict[str, Any]:
    """Of each family one expression, how many subscriptions, and their matches per event."""
    out = {}
    matched = subscriptions.family[found[:, 1]]
    for number, family in enumerate(subscriptions.families):
        own = np.flatnonzero(subscriptions.family == number)
        out[family.name] = {
            "example": family.text(subscriptions.values[own[0], : len(family.asks)].tolist()),
            "subscriptions": len(own),
            "matches_per_event": int(np.sum(matched == number)) / n,
        }
    return out
