"""Visits: events that have come to a shard are matched there, a batch as it was sent.

A batch is matched by itself, whatever else comes to the task: so what is found of it, and in which
order, is the same if a lost stage is recomputed. Tasks have no state and a shard's content is fixed
by its id. What was found goes on in *pieces*: the matches of some events in one shard, or at home.
With ``gathered`` they travel as they came, many in one value, to the task that puts the pieces of
an event together (``gathering.py``)::

    visits of a block to shard 2   ->   task  block  slice  part   found (one value)
                                        0     b      0      2      7: [30], 9: []
                                        1     b      1      2      1034: [11, 5]

Else each piece is a row of the result; an event that goes somewhere has a row for each visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from bittern.arrays import Float64s, Int64s
from bittern.engine.matcher import Matcher, StateMatcher
from bittern.model.ids import Ids
from bittern.model.matches import Matches
from bittern.spark.arrow_tables import packed
from bittern.spark.attributes import place
from bittern.spark.operator import (
    CANDIDATES,
    FIRST,
    REJECTED,
    SUBSCRIPTIONS,
    carried,
    cuts,
    id_type,
)
from bittern.spark.sharded.routing import AT_HOME, EVENT, ROW, EventBlock
from bittern.spark.sharded.shards import Shards
from bittern.terms.spelling import spelling

#: Events of a block whose pieces are put together at once; a gathering task holds that many.
SLICE = 1_024
#: What goes from the shards to be gathered, a row for each slice of a batch of visits.
FOUND = "task int, block binary, slice int, part int, found binary"
_FOUND = pa.schema(
    [
        ("task", pa.int32()),
        ("block", pa.binary()),
        ("slice", pa.int32()),
        ("part", pa.int32()),
        ("found", pa.binary()),  # places, subscriptions, candidates
    ]
)
#: Parts: what the first visits carry, home and what has changed, and from here on the shards.
CARRIED, HOME, CHANGED, SHARD = -1, 0, 1, 2
_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Visitor:
    """Matches visits, whatever shards they are to; runs in Python workers."""

    shards: Shards
    n_keys: int
    json: tuple[str, ...]
    limit: int | None
    case_sensitive: bool
    gathered: int  # the number of tasks that gather; 0: pieces are the result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match one partition. O(events + candidates + matches)."""
        for batch in batches:
            columns = (batch.column(at) for at in range(1, batch.num_columns))
            for shard, block, *sent in zip(*columns, strict=True):
                visits, told = map(one_batch, sent)
                pieces = self._pieces(shard.as_py(), visits)
                if self.gathered:
                    rows = visits.column(ROW).to_numpy()
                    yield self._found(EventBlock.of(block.as_py()), pieces, told, rows)
                else:
                    yield from self._rows(pieces, visits, told)

    def _pieces(self, shard: int, visits: pa.RecordBatch) -> list[_Pieces]:
        """What the shard and home find of some events."""
        found: list[_Pieces] = []
        if shard >= 0:
            found.append(self._piece(SHARD + shard, visits, np.arange(visits.num_rows)))
        home = np.flatnonzero(visits.column(AT_HOME).to_numpy(zero_copy_only=False))
        if self.shards.home is not None and len(home):
            found.append(self._piece(HOME, visits, home))
        if self.shards.changes is not None and len(home):
            found.append(self._piece(CHANGED, visits, home))
        return found

    def _piece(self, part: int, visits: pa.RecordBatch, own: Int64s) -> _Pieces:
        events = visits.column(EVENT)
        if len(own) < len(events):
            events = events.take(pa.array(own))
        # A struct alone is one column; its fields are the events'.
        batch = pa.RecordBatch.from_arrays(events.flatten(), schema=pa.schema(list(events.type)))
        matcher, weights = self._matcher(part)
        with spelling(case_sensitive=self.case_sensitive):
            matches = matcher.match(batch, limit=self.limit, json=self.json)
        return _Pieces(
            part, own, matches.offsets, self._values(matches, weights), matches.candidates
        )

    def _matcher(self, part: int) -> tuple[Matcher | StateMatcher, Float64s | None]:
        """What matches a part, and the weights of its subscriptions."""
        changes = self.shards.changed()
        if part == CHANGED:
            assert changes is not None
            return changes.matcher()
        ref = self.shards.home if part == HOME else self.shards.shards[part - SHARD]
        assert ref is not None
        if changes is not None:
            return changes.matcher_of(ref)
        matcher = ref.matcher(case_sensitive=self.case_sensitive)
        return matcher, matcher.index.weights

    def _values(self, matches: Matches, weights: Float64s | None) -> pa.Array:
        """The ids of all matches or, where there is a limit, what to rank them by as well."""
        positions, ids = matches.subscriptions, matches.all_ids
        plain = pa.int64() if self.shards.integer_ids else pa.large_string()
        taken = ids.take_arrow(positions).cast(plain)
        if self.limit is None:
            return taken
        heavy = np.full(len(positions), -1.0) if weights is None else -weights[positions]
        ranked = {"heavy": pa.array(heavy)}
        if not self.shards.integer_ids:
            are_integers = ids.marks()[positions].view(np.bool_)
            numbers = np.zeros(len(positions), dtype=np.int64)
            numbers[are_integers] = taken.filter(pa.array(are_integers)).cast(pa.int64())
            ranked |= {"is_text": pa.array(~are_integers), "number": pa.array(numbers)}
        return pa.StructArray.from_arrays([*ranked.values(), taken], [*ranked, "id"])

    def _found(
        self, block: EventBlock, pieces: list[_Pieces], told: pa.RecordBatch, rows: Int64s
    ) -> pa.RecordBatch:
        """The pieces, and what is carried, by slices of the block."""
        data = block.to_bytes()
        made: list[tuple[int, int, bytes]] = []  # slice, part, content
        for slice_, first, last in _slices(told.column(ROW).to_numpy()):
            made.append((slice_, CARRIED, packed(told.slice(first, last - first))))
        for part, own, offsets, ids, candidates in pieces:
            values = _narrow(ids)
            for slice_, start, end in _slices(rows[own]):
                for first, last in cuts(offsets[start : end + 1]):
                    here = slice(start + first, start + last)
                    ends = offsets[here.start : here.stop + 1] - offsets[here.start]
                    inside = values.slice(offsets[here.start], ends[-1])
                    columns = [
                        pa.array(rows[own[here]]),
                        pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), inside),
                        pa.array(candidates[here]),
                    ]
                    names = [ROW, SUBSCRIPTIONS, CANDIDATES]
                    found = pa.RecordBatch.from_arrays(columns, names=names)
                    made.append((slice_, part, packed(found)))
        slices, parts, contents = zip(*made, strict=True)
        tasks = [(block.digest + each) % self.gathered for each in slices]
        columns = [tasks, [data] * len(made), slices, parts, contents]
        return pa.RecordBatch.from_arrays(
            [pa.array(each, field.type) for each, field in zip(columns, _FOUND, strict=True)],
            schema=_FOUND,
        )

    def _rows(
        self, pieces: list[_Pieces], visits: pa.RecordBatch, told: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        """A row of the result for each piece, and for each event that has none."""
        n = visits.num_rows
        is_first = visits.column(FIRST)
        if all(each.part < SHARD for each in pieces):  # these events go nowhere
            none = np.zeros(n, np.int64)
            nothing = self._values(NO_MATCHES, None)
            pieces = [
                _Pieces(CARRIED, np.arange(n), np.zeros(n + 1, np.int64), nothing, none),
                *pieces,
            ]
        names = [place(at) for at in range(self.n_keys)]
        names += [SUBSCRIPTIONS, CANDIDATES, REJECTED, FIRST]
        plain = pa.int64() if self.shards.integer_ids else pa.string()
        for part, own, offsets, values, candidates in pieces:
            some = told.take(pa.array(own)) if len(own) < n else told
            # What is told of an event is told once; its piece at home is not the first.
            firsts = pa.array(np.zeros(len(own), np.bool_)) if part in (HOME, CHANGED) else is_first
            rejected = pc.if_else(firsts, some.column(REJECTED), None)
            for start, end in cuts(offsets):
                ends = (offsets[start : end + 1] - offsets[start]).astype(np.int32)
                inside = values.slice(offsets[start], ends[-1]).cast(plain)
                here = some.slice(start, end - start)
                columns = [
                    *here.columns[: self.n_keys],
                    pa.ListArray.from_arrays(pa.array(ends), inside),
                    pa.array(candidates[start:end]),
                    rejected.slice(start, end - start),
                    firsts.slice(start, end - start),
                ]
                yield pa.RecordBatch.from_arrays(columns, names=names)


class _Pieces(NamedTuple):
    """What one part found of some events: their places, and where each one's matches begin."""

    part: int
    own: Int64s
    offsets: Int64s
    values: pa.Array
    candidates: Int64s


#: Of no events.
NO_MATCHES = Matches(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), Ids.of([]))


def one_batch(value: pa.BinaryScalar) -> pa.RecordBatch:
    """The batch that a value of a row holds. No byte is copied."""
    with pa.ipc.open_stream(value.as_buffer()) as stream:
        return stream.read_next_batch()


def _slices(rows: npt.NDArray[Any]) -> Iterator[tuple[int, int, int]]:
    """The slices that ascending rows lie in, and from where to where."""
    of = rows // SLICE
    starts = np.flatnonzero(np.diff(of, prepend=-1)).tolist()
    for first, last in zip(starts, [*starts, len(rows)][1:], strict=True):
        yield int(of[first]), first, last


def _narrow(values: pa.Array) -> pa.Array:
    """Integers in half the bytes, if all of them fit: ids are most of what is gathered."""
    if not pa.types.is_int64(values.type) or len(values) == 0:
        return values
    numbers = values.to_numpy()
    if numbers.min() < _INT32.min or numbers.max() > _INT32.max:
        return values
    return pa.array(numbers.astype(np.int32))


def piece_schema(schema: StructType, keys: Sequence[str], *, integer_ids: bool) -> StructType:
    """What ``Visitor`` yields where nothing is gathered, as Spark says it."""
    fields = [StructField(place(at), carried(schema[key].dataType)) for at, key in enumerate(keys)]
    return StructType(
        [
            *fields,
            StructField(SUBSCRIPTIONS, ArrayType(id_type(integer_ids=integer_ids))),
            StructField(CANDIDATES, LongType()),
            StructField(REJECTED, StringType()),
            StructField(FIRST, BooleanType()),
        ]
    )
