"""Routing: the shards that each event must visit, and the batches that take events there.

A task reads its events in *blocks*. The router, a small index, names the shards of every event of a
block, and the events that go to the same task travel together, as one Arrow batch in one row::

    block   event  route        rows   part  visits (one value)
            7      [0, 2]  ->          0     event 7, event 9
            8      []                  3     event 8                goes nowhere but home
            9      [0]                 5     event 7

So a row of the shuffle holds hundreds of events, and the JVM copies bytes instead of walking
columns. An event's *first* visit (it has one even if it goes nowhere) also visits home, which every
task holds, and alone carries what only the result needs: keys, payload, and why it was rejected.

The router judges events for all parts (``engine/sharding/regions.py``): it sees all columns that
carry attributes, as the parts do. An event that it cannot read visits nothing, not even home.

A shard that many events visit has several tasks, its *salt*, chosen by ``salts``. Which of them a
visit goes to, and which visit is the first, is told by a hash of the event's content, never by its
place: if a lost stage is recomputed with its rows in another order, every visit still goes to the
task it went to before. Rows of the same order make the same batches.
"""

from __future__ import annotations

import hashlib
import heapq
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bittern.arrays import Int64s, Mask, starts_of
from bittern.engine.matcher import BLOCK, Matcher
from bittern.engine.sharding.regions import REGION_BITS
from bittern.model.events.reads import readable_rows
from bittern.model.matches import Matches
from bittern.spark.arrow_tables import packed
from bittern.spark.operator import FIRST, REJECTED, blocks, named_columns, reasons
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import attach

#: Columns of the batches on their way: an event's place in its block, the number of its pieces.
ROW, PIECES = "row", "pieces"
EVENT, AT_HOME = "event", "at_home"
#: What goes from the router to the shards, a row for each task and shard of a block.
VISITS = "task int, shard int, block binary, visits binary, carried binary"
_VISITS = pa.schema(
    [
        ("task", pa.int32()),
        ("shard", pa.int32()),  # -1: none
        ("block", pa.binary()),
        ("visits", pa.binary()),
        ("carried", pa.binary()),
    ]
)
#: A block has more events where they are spread over more tasks than this.
_TASKS_PER_BLOCK, _MOST_BLOCKS = 64, 8
#: Bytes of the events of a row, about: a row is one value for the JVM.
_MOST_BYTES = 16 << 20


class EventBlock(NamedTuple):
    """What tells a block from all others, and from what other events would make of it."""

    partition: int
    number: int
    n_events: int
    digest: int

    def to_bytes(self) -> bytes:
        """As a value of a row."""
        return _BLOCK.pack(*self)

    @classmethod
    def of(cls, data: bytes) -> EventBlock:
        """From a value of a row."""
        return cls(*_BLOCK.unpack(data))


_BLOCK = struct.Struct(">iiiQ")


def routes(matches: Matches) -> tuple[Int64s, Int64s]:
    """Distinct (event, shard) pairs, in order, of what events matched in the router."""
    rows = np.repeat(np.arange(len(matches)), matches.counts)
    regions = matches.all_ids.take_arrow(matches.subscriptions).to_numpy(zero_copy_only=False)
    pairs = np.unique(rows << 32 | regions >> REGION_BITS)
    return pairs >> 32, pairs & 0xFFFFFFFF


def salts(traffic: Sequence[float], tasks: int) -> tuple[int, ...]:
    """The number of tasks for each shard: at least one, and more where more events go.

    Each further task goes where a task has most to do, so no other distribution has a smaller
    largest load; it is at most total traffic / (tasks - shards).

    >>> salts([0.9, 0.1, 0.0], 6)
    (4, 1, 1)
    """
    given = [1] * len(traffic)
    loads = [(-share, 1, shard) for shard, share in enumerate(traffic)]
    heapq.heapify(loads)
    for _ in range(len(given) and tasks - len(given)):
        shard = loads[0][2]
        given[shard] += 1
        heapq.heapreplace(loads, (-traffic[shard] / given[shard], given[shard], shard))
    return tuple(given)


def n_tasks(spark: SparkSession | None, shards: int) -> int:
    """The number of tasks for this many shards: enough for the cluster, and to split hot shards."""
    parallelism = 0
    if spark is not None:
        try:
            parallelism = spark.sparkContext.defaultParallelism
        except PySparkException:  # Spark Connect does not tell; this is what the user thinks fit
            parallelism = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    return max(2 * shards, parallelism)


@dataclass(frozen=True)
class Router:
    """Finds the shards that events must visit; runs in Python workers."""

    shards: Shards
    json: tuple[str, ...]
    case_sensitive: bool = True

    def open(self) -> None:
        """Map the regions ahead: while events gather to a block, there is time."""
        attach(self.shards.router)

    def match(self, events: pa.RecordBatch | pa.StructArray) -> Matches:
        """The regions that events lie in."""
        ref, changes = self.shards.router, self.shards.changed()
        sets = ref.sets() if changes is None else changes.sets()
        found = Matcher(attach(ref), sets=sets, case_sensitive=self.case_sensitive)
        return found.match(events, json=self.json)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For each event the shards that it must visit, ascending."""
        for batch in batches:
            matches = self.match(batch)
            rows, numbers = routes(matches)
            offsets = np.searchsorted(rows, np.arange(len(matches) + 1)).astype(np.int32)
            lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers.astype(np.int32)))
            yield pa.RecordBatch.from_arrays([lists], names=["shards"])


@dataclass(frozen=True)
class Dispatcher:
    """Sends events to the tasks that hold their shards; runs in Python workers.

    In: the events' columns by place, and the hash of their content. Out: ``VISITS``.
    """

    router: Router
    names: tuple[str, ...]  # of the events' columns
    visiting: tuple[str, ...]  # those that carry attributes
    keys: tuple[str, ...]  # those that carry what the result needs
    texts: int  # how many of the last keys are NULL unless the event was rejected
    tasks: tuple[int, ...]  # of each shard
    gathered: bool  # else every visit carries the keys, not the first alone

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One partition, block by block. O(events + visits)."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        size = BLOCK * min(_MOST_BLOCKS, 1 + sum(self.tasks) // _TASKS_PER_BLOCK)
        self.router.open()
        for number, batch in enumerate(blocks(batches, size)):
            content = batch.column(len(self.names)).to_numpy()
            events = named_columns(batch, self.names)
            visits = self._visits(events.select(self.visiting), content)
            digest = hashlib.blake2b(content, digest_size=8).digest()
            block = EventBlock(partition, number, len(content), int.from_bytes(digest, "big"))
            yield from self._sent(block.to_bytes(), events, visits)

    def _visits(self, events: pa.RecordBatch, content: Int64s) -> _Visits:
        matches = self.router.match(events)
        rows, shards = routes(matches)
        readable = readable_rows(len(content), matches.rejects)
        counts = np.bincount(rows, minlength=len(content))
        firsts = np.zeros(len(rows), np.bool_)
        somewhere = np.flatnonzero(counts)
        # Bits of the hash that do not tell the task.
        which = (content[somewhere] >> 32) % counts[somewhere]
        firsts[starts_of(counts)[somewhere] + which] = True
        nowhere = np.flatnonzero(counts == 0)
        rows = np.concatenate((rows, nowhere))
        shards = np.concatenate((shards, np.full(len(nowhere), -1)))
        firsts = np.concatenate((firsts, np.ones(len(nowhere), np.bool_)))
        home = self.router.shards.home is not None, self.router.shards.changes is not None
        at_home = firsts & readable[rows] & any(home)
        pieces = counts + sum(home) * np.bincount(rows[at_home], minlength=len(content))
        tasks = self._task_of(shards, content[rows])
        return _Visits(rows, shards, tasks, firsts, at_home, pieces, reasons(matches))

    def _task_of(self, shards: Int64s, content: Int64s) -> Int64s:
        """The task of each visit: one of its shard's, or any if it goes nowhere."""
        if not self.tasks:
            return np.zeros(len(shards), np.int64)
        first = starts_of(self.tasks)
        own = np.array([*self.tasks, first[-1]])[shards]
        found: Int64s = np.where(shards < 0, 0, first[shards]) + content % own
        return found

    def _sent(
        self, block: bytes, events: pa.RecordBatch, visits: _Visits
    ) -> Iterator[pa.RecordBatch]:
        """A row for each task and shard, or several if they would be large."""
        rejected = visits.rejected
        carried = [events.column(name) for name in self.keys]
        for at in range(len(carried) - self.texts, len(carried)):
            carried[at] = pc.if_else(rejected.is_valid(), carried[at], None)
        names = [f"c{at}" for at in range(len(carried))]
        carried += [rejected, pa.array(visits.pieces.astype(np.int32))]
        result = pa.RecordBatch.from_arrays(carried, names=[*names, REJECTED, PIECES])
        asked = events.select(self.visiting).to_struct_array()
        most = max(1, _MOST_BYTES * events.num_rows // max(1, asked.nbytes))
        # Tasks are few, and 16 bits are sorted by counting.
        kind = (visits.tasks * 2 + (visits.shards < 0)).astype(np.int64)
        kind = kind.astype(np.int16) if kind.max(initial=0) < 1 << 15 else kind
        order = np.argsort(kind, kind="stable")
        bounds = np.flatnonzero(np.diff(kind[order], prepend=-1)).tolist()
        for start, end in zip(bounds, [*bounds[1:], len(order)], strict=True):
            for first in range(start, end, most):
                own = order[first : min(end, first + most)]
                yield self._row(block, asked, result, visits.taken(own))

    def _row(
        self, block: bytes, asked: pa.StructArray, result: pa.RecordBatch, own: _Visits
    ) -> pa.RecordBatch:
        rows = pa.array(own.rows.astype(np.int32))
        columns = [_rows_of(asked, own.rows), rows, pa.array(own.firsts), pa.array(own.at_home)]
        visits = pa.RecordBatch.from_arrays(columns, names=[EVENT, ROW, FIRST, AT_HOME])
        told = own.rows[own.firsts] if self.gathered else own.rows
        carried = result.take(pa.array(told)).append_column(ROW, pa.array(told.astype(np.int32)))
        # The JVM copies every byte several times, and compresses what it shuffles less well.
        sent = packed(visits, compressed=True), packed(carried)
        values = (int(own.tasks[0]), int(own.shards[0]), block, *sent)
        return pa.RecordBatch.from_arrays(
            [pa.array([each], field.type) for each, field in zip(values, _VISITS, strict=True)],
            schema=_VISITS,
        )


def _rows_of(events: pa.StructArray, rows: Int64s) -> pa.StructArray:
    return events if len(rows) == len(events) else events.take(pa.array(rows))


class _Visits(NamedTuple):
    """Where events go: a row, shard, task for each visit; pieces and reasons for each event."""

    rows: Int64s
    shards: Int64s
    tasks: Int64s
    firsts: Mask
    at_home: Mask
    pieces: Int64s
    rejected: pa.Array

    def taken(self, which: Int64s) -> _Visits:
        """Some of the visits."""
        return self._replace(
            rows=self.rows[which],
            shards=self.shards[which],
            tasks=self.tasks[which],
            firsts=self.firsts[which],
            at_home=self.at_home[which],
        )
