"""Gathering: the pieces of each event, found in several shards, as one row.

::

    row  subscriptions  candidates                 row  keys  rejected  pieces
    7    [11, 5]        3              with        7    ...   null      2       ->   7  [11, 5, 30]
    7    [30]           1

Pieces come as they were found, many in a value, and those of a *slice* of a block are put together
by compiled code. The JVM sees only the rows of the result; it brings slices together by their
blocks, sorted, so that a task holds the pieces of one slice at a time. A stream cannot be sorted:
there a task holds what is not complete yet, of a micro-batch.

Nothing here looks at keys: two events with the same keys are two rows.

If an executor is lost with its shuffled rows, its tasks run again. Rows that come in another order
then make other blocks, with another digest of the hashes of their events; pieces of both would make
events that lack some. So events say how many pieces they have, blocks how many events, and a job
with an incomplete slice fails, to be run again. Files are read in one order, always. What comes out
of a shuffle may not be; then Spark 4.1 and later see by their own checksums that rows differ, and
begin anew where nothing was returned yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Int64s, starts_of
from bittern.engine.sharding.merging import merged
from bittern.errors import BitternError
from bittern.spark.attributes import place
from bittern.spark.operator import CANDIDATES, REJECTED, SUBSCRIPTIONS, cuts
from bittern.spark.sharded.routing import PIECES, ROW, EventBlock
from bittern.spark.sharded.visiting import CARRIED, SLICE, one_batch

_INCOMPLETE = (
    "pieces of events are missing: events came in another order when lost rows were computed "
    "again; run the job again, or match events as they are read from files"
)


@dataclass(frozen=True)
class Gatherer:
    """Puts the pieces of events together; runs in Python workers."""

    n_keys: int
    limit: int | None
    integer_ids: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One partition, a slice as soon as it is complete. O(events + matches)."""
        waiting: dict[tuple[bytes, int], _Slice] = {}
        for batch in batches:
            _, blocks, slices, parts, found = batch.columns
            keys = zip(blocks.to_pylist(), slices.to_pylist(), strict=True)
            for key, part, value in zip(keys, parts.to_pylist(), found, strict=True):
                own = waiting.setdefault(key, _Slice())
                own.add(part, one_batch(value))
                if own.is_complete(EventBlock.of(key[0]), key[1]):
                    del waiting[key]
                    yield from self._rows(own, key[1] * SLICE)
        if waiting:
            raise BitternError(_INCOMPLETE)

    def _rows(self, own: _Slice, first_row: int) -> Iterator[pa.RecordBatch]:
        """The rows of a slice, in the order of its events."""
        told = pa.Table.from_batches(own.carried).combine_chunks().to_batches()[0]
        told = told.take(pa.array(np.argsort(told.column(ROW).to_numpy())))
        candidates = np.zeros(told.num_rows, np.int64)
        lists = []
        for _, batch in sorted(own.pieces, key=lambda piece: piece[0]):
            rows = batch.column(ROW).to_numpy().astype(np.int64) - first_row
            candidates[rows] += batch.column(CANDIDATES).to_numpy()
            lists.append((rows, batch.column(SUBSCRIPTIONS)))
        plain = pa.int64() if self.integer_ids else pa.string()
        nothing = np.empty(0, np.int64), pa.array([], pa.list_(plain))
        offsets, values = merged(lists or [nothing], told.num_rows)
        if self.limit is not None and lists:
            offsets, values = _best(offsets, values, self.limit)
        names = [place(at) for at in range(self.n_keys)]
        names += [SUBSCRIPTIONS, CANDIDATES, REJECTED]
        for start, end in cuts(offsets):
            ends = (offsets[start : end + 1] - offsets[start]).astype(np.int32)
            inside = values.slice(offsets[start], ends[-1]).cast(plain)
            columns = [told.column(at).slice(start, end - start) for at in range(self.n_keys)]
            columns += [
                pa.ListArray.from_arrays(pa.array(ends), inside),
                pa.array(candidates[start:end]),
                told.column(REJECTED).slice(start, end - start),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=names)


@dataclass
class _Slice:
    """What has come of a slice so far."""

    carried: list[pa.RecordBatch] = field(default_factory=list)
    pieces: list[tuple[int, pa.RecordBatch]] = field(default_factory=list)
    n_events: int = 0
    n_pieces: int = 0  # that are still to come, or too many if negative

    def add(self, part: int, batch: pa.RecordBatch) -> None:
        """Keep the pieces of one part, or what events carry, which tells how many they have."""
        if part == CARRIED:
            self.carried.append(batch)
            self.n_events += batch.num_rows
            self.n_pieces += int(batch.column(PIECES).to_numpy().sum())
        else:
            self.pieces.append((part, batch))
            self.n_pieces -= batch.num_rows

    def is_complete(self, block: EventBlock, number: int) -> bool:
        """Whether all events of the slice are here, and all pieces of each."""
        return self.n_pieces == 0 and self.n_events == min(SLICE, block.n_events - number * SLICE)


def _best(offsets: Int64s, values: pa.StructArray, limit: int) -> tuple[Int64s, pa.Array]:
    """The first ``limit`` ids of each event, in the order of what they are to be ranked by."""
    counts = np.diff(offsets)
    limit = min(limit, len(values))  # any Python integer will do
    events = np.repeat(np.arange(len(counts)), counts)
    names = [each.name for each in values.type]
    ranked = pa.table([events, *values.flatten()], names=["event", *names])
    order = pc.sort_indices(ranked, [(name, "ascending") for name in ranked.column_names])
    at = np.arange(len(events)) - np.repeat(offsets[:-1], counts)
    kept = order.to_numpy()[at < limit]
    return starts_of(np.minimum(counts, limit)), values.field("id").take(pa.array(kept))
