"""Sharded matching without Spark: the tasks of each stage, one after the other in this process.

Spark's part is played by ``sent``: rows go to the task that they name, in any order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bittern.spark.sharded.gathering import Gatherer
from bittern.spark.sharded.routing import Dispatcher, Router
from bittern.spark.sharded.shards import Shards
from bittern.spark.sharded.visiting import Visitor

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def dispatcher(
    shards: Shards, names: Sequence[str], tasks: Sequence[int], *, gathered: bool
) -> Dispatcher:
    """What reads events with these columns, of which ``id`` alone comes back."""
    visiting = tuple(name for name in names if name != "id")
    router = Router(shards, ())
    return Dispatcher(router, tuple(names), visiting, ("id",), 0, tuple(tasks), gathered)


def hashed(events: pa.Table) -> pa.Table:
    """Events as they come from the JVM: by place, and a hash of their content."""
    rng = np.random.default_rng(5)
    known = rng.integers(-(2**63), 2**63 - 1, 1 << 16)
    content = known[events["id"].to_numpy() & 0xFFFF]
    names = [f"c{at}" for at in range(events.num_columns)]
    return events.rename_columns(names).append_column("content", pa.array(content))


def sent(rows: pa.Table, seed: int) -> Iterator[pa.Table]:
    """The rows of each task, in some order."""
    order = random.Random(seed).sample(range(len(rows)), len(rows))
    tasks = rows["task"].to_numpy()
    for task in np.unique(tasks):
        yield rows.take([at for at in order if tasks[at] == task])


def run(task: Task, rows: pa.Table) -> pa.Table:
    """What a task makes of its rows, of which Spark gives it a few at a time."""
    made = list(task(iter(rows.to_batches(max_chunksize=7))))
    return pa.Table.from_batches(made) if made else None


def found_by(
    shards: Shards,
    events: pa.Table,
    tasks: Sequence[int],
    *,
    seed: int = 0,
    gathered: int = 0,
    limit: int | None = None,
) -> pa.Table:
    """The result for events with a column ``id``; in pieces, unless ``gathered`` by some tasks."""
    route = dispatcher(shards, events.column_names, tasks, gathered=bool(gathered))
    visitor = Visitor(shards, 1, (), limit, True, gathered)
    visits = run(route, hashed(events))
    found = pa.concat_tables(run(visitor, own) for own in sent(visits, seed))
    if not gathered:
        return found
    gatherer = Gatherer(1, limit, shards.integer_ids)
    return pa.concat_tables(run(gatherer, own) for own in sent(found, seed + 1))


def lists(found: pa.Table) -> dict[Any, list[Any]]:
    """The subscriptions of each event, of all its rows."""
    whole: dict[Any, list[Any]] = {}
    for row in found.select(["c0", "subscriptions"]).to_pylist():
        whole.setdefault(row["c0"], []).extend(row["subscriptions"])
    return whole
