"""The operator: it runs in Python workers, on one Arrow batch of events after the other.

``Operator`` is all that goes to the executors: a reference to a snapshot and a few names. In a
worker it maps the snapshot (``node_cache.py``) and gives each batch to the embedded engine::

    in    id  price  seller            out   id  subscriptions  candidates  rejected
          1   9      {"country": FI}         1   [7, 9]         12          null
          2   70     null                    2   []             0           null

A snapshot's content is fixed by its id, and documents that events are compared with by the names of
their files: a task that is retried, or run twice, yields the same rows. Candidates are the
different expressions that were looked at for an event.

An array for each event is cheaper than a row for each match, since the JVM walks what Python
returns row by row; so even exploded output leaves Python as arrays.

Cost: O(events + candidates + matches), and a microsecond or two of transfer for each event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from bittern.engine.matcher import BLOCK, Matcher, StateMatcher
from bittern.language.literals import TERM
from bittern.model.events.derived.derived import marked
from bittern.model.matches import Matches
from bittern.spark.attributes import quoted
from bittern.spark.history.remembered import HistoryMatcher
from bittern.terms.spelling import spelling

Batches = Iterator[pa.RecordBatch]

SUBSCRIPTIONS, SUBSCRIPTION, REJECTED = "subscriptions", "subscription", "rejected"
CANDIDATES = "candidates"
#: Marks one of an event's rows, where it may have several (``sharded/``).
FIRST = "is_first_piece"
#: Columns after the keys in what the operator yields: subscriptions, candidates, rejected.
TAIL = 3
#: Matches in one Arrow batch, unless a single event has more: bounds memory on both sides.
_MOST_MATCHES = 1 << 22
#: Rows, and bytes if keys are of the same size, that exploding makes at once.
_MOST_ROWS, _MOST_BYTES = 1 << 20, 64 << 20


class Reference(Protocol):
    """What a closure carries for subscriptions: a snapshot, or a view of a catalog's version.

    Or either with the documents that events are compared with (``remembered.AfterDocuments``).
    """

    @property
    def id(self) -> str:
        """Of the content."""

    def matcher(self) -> Matcher | StateMatcher | HistoryMatcher:
        """A matcher for them, in any process."""


@dataclass(frozen=True)
class Operator:
    """Batches of events in, batches of matches out: the keys, then ``tail_fields``."""

    ref: Reference
    keys: tuple[str, ...]
    json: tuple[str, ...] = ()
    limit: int | None = None
    case_sensitive: bool = True

    def __call__(self, batches: Batches) -> Batches:
        """Match one partition. O(events + candidates + matches)."""
        matcher = self.ref.matcher()
        for batch in blocks(batches):
            with spelling(case_sensitive=self.case_sensitive):
                matches = matcher.match(batch, limit=self.limit, json=self.json)
            fields = [batch.schema.field(key) for key in self.keys]
            columns = [batch.column(key) for key in self.keys]
            others = [pa.array(matches.candidates), reasons(matches)]
            for first, last in cuts(matches.offsets):
                lists = subscription_lists(matches, first, last)
                own = [column.slice(first, last - first) for column in (*columns, *others)]
                own.insert(len(fields), lists)
                schema = pa.schema(fields + tail_fields(lists.type))
                yield pa.RecordBatch.from_arrays(own, schema=schema)
        if isinstance(matcher, HistoryMatcher):
            matcher.finish()


def blocks(batches: Batches, size: int = BLOCK) -> Batches:
    """Batches of as many rows as the engine matches at once, and a last one that may have fewer.

    Spark's are smaller, and the more events visit the index together, the less each of them costs.
    """
    kept: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        kept.append(batch)
        n_rows += batch.num_rows
        while n_rows >= size:
            last, n_rows = kept.pop(), n_rows - size
            cut = last.num_rows - n_rows
            yield pa.concat_batches([*kept, last.slice(0, cut)])
            kept = [last.slice(cut)]
    if n_rows:
        yield pa.concat_batches(kept)


def carried(type_: DataType) -> DataType:
    """The type in which values come back: Arrow has no collations, and one kind of interval."""
    if isinstance(type_, StringType):
        return StringType()
    if isinstance(type_, DayTimeIntervalType):
        return DayTimeIntervalType()
    if isinstance(type_, ArrayType):
        return ArrayType(carried(type_.elementType), type_.containsNull)
    if isinstance(type_, MapType):
        types = carried(type_.keyType), carried(type_.valueType)
        return MapType(*types, type_.valueContainsNull)
    if isinstance(type_, StructType):
        return carried_schema(type_)
    return type_


def carried_schema(schema: StructType) -> StructType:
    """The schema to give ``mapInArrow`` for rows of this schema."""
    return StructType(
        [
            StructField(field.name, carried(field.dataType), field.nullable, field.metadata)
            for field in schema
        ]
    )


def restored(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame, its columns that ``schema`` names cast back to what they were before Python."""
    lost = {field.name: field for field in schema if carried(field.dataType) != field.dataType}
    if lost.keys().isdisjoint(frame.columns):
        return frame
    columns = []
    for name in frame.columns:
        column = F.col(quoted(name))
        if name in lost:
            column = column.cast(lost[name].dataType).alias(name, metadata=lost[name].metadata)
        columns.append(column)
    return frame.select(*columns)


@dataclass(frozen=True)
class Named:
    """Gives columns their names back before ``function``, if there is one, sees them."""

    names: tuple[str, ...]
    function: Callable[[Batches], Batches] | None

    def __call__(self, batches: Batches) -> Batches:
        """One partition. O(columns) for each batch."""
        named = (named_columns(batch, self.names) for batch in batches)
        return named if self.function is None else self.function(named)


def named_columns(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The first columns of a batch under these names; those of terms are marked."""
    columns = batch.columns[: len(names)]
    fields = [named_field(field, name) for field, name in zip(batch.schema, names, strict=False)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def named_field(field: pa.Field, name: str) -> pa.Field:
    """A field of events under this name; marked if Spark has computed it for a term."""
    return marked(field.with_name(name)) if name.startswith(TERM) else field.with_name(name)


def cuts(offsets: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of events that have no more than ``_MOST_MATCHES`` together, or are one event."""
    first = 0
    while first < len(offsets) - 1:
        fits = np.searchsorted(offsets, offsets[first] + _MOST_MATCHES, "right")
        last = max(first + 1, int(fits) - 1)
        yield first, last
        first = last


def subscription_ids(matches: Matches, first: int, last: int) -> pa.Array:
    """The ids of the matches from number ``first`` up to ``last``, as Spark takes them."""
    ids = matches.all_ids.take_arrow(matches.subscriptions[first:last])
    # Spark's strings have short offsets.
    return ids if pa.types.is_integer(ids.type) else ids.cast(pa.string())


def subscription_lists(matches: Matches, first: int, last: int) -> pa.Array:
    """The ids for each event of a range."""
    offsets = matches.offsets[first : last + 1]
    ids = subscription_ids(matches, offsets[0], offsets[-1])
    return pa.ListArray.from_arrays(pa.array((offsets - offsets[0]).astype(np.int32)), ids)


def reasons(matches: Matches) -> pa.Array:
    """For each event why it was rejected, or which value was mistyped, or null."""
    if not (matches.rejects or matches.mistyped):
        return pa.nulls(len(matches), pa.string())
    found: list[str | None] = [None] * len(matches)
    for row, reason in (*matches.mistyped, *matches.rejects):
        found[row] = reason
    return pa.array(found, type=pa.string())


def tail_fields(lists: pa.DataType) -> list[pa.Field]:
    """What follows the keys: subscriptions, candidates, rejected."""
    return [
        pa.field(SUBSCRIPTIONS, lists),
        pa.field(CANDIDATES, pa.int64()),
        pa.field(REJECTED, pa.string()),
    ]


def flat(batch: pa.RecordBatch, *, every_event: bool = False) -> Batches:
    """Keys and subscription, a row for each match, in pieces that fit in memory. O(matches).

    With ``every_event`` an event without matches has a row too, without a subscription.
    """
    keys = batch.select(range(batch.num_columns - TAIL))
    lists = batch.column(keys.num_columns)
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(batch.num_rows), counts)
    ids = lists.flatten()
    if every_event:
        ids, rows = _with_gaps(ids, counts)
    schema = keys.schema.append(pa.field(SUBSCRIPTION, ids.type))
    fitting = _MOST_BYTES * batch.num_rows // max(1, keys.nbytes)
    step = max(1, min(_MOST_ROWS, fitting))
    done = 0
    for start in range(0, len(rows), step):
        for taken in _take(keys, rows[start : start + step]):
            columns = [*taken.columns, ids.slice(done, taken.num_rows)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            done += taken.num_rows


def _with_gaps(
    ids: pa.Array, counts: npt.NDArray[np.int32]
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The ids with a NULL for each event that has none, and the event of each."""
    rows = np.repeat(np.arange(len(counts)), np.maximum(counts, 1))
    gaps = counts[rows] == 0
    places = np.cumsum(~gaps) - 1
    return ids.take(pa.array(places, mask=gaps)), rows


def _take(keys: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> Batches:
    try:
        yield keys.take(pa.array(rows))
    except pa.ArrowInvalid:
        # More than 2 GiB of text in a column: its largest values are also those repeated most.
        if len(rows) == 1:
            raise
        yield from _take(keys, rows[: len(rows) // 2])
        yield from _take(keys, rows[len(rows) // 2 :])


def id_type(*, integer_ids: bool) -> DataType:
    """Spark's type of subscription ids."""
    return LongType() if integer_ids else StringType()


def output_schema(schema: StructType, keys: Sequence[str], *, integer_ids: bool) -> StructType:
    """What ``Operator`` yields for events of this schema, in the types that the events have."""
    return StructType(
        [
            *(schema[key] for key in keys),
            StructField(SUBSCRIPTIONS, ArrayType(id_type(integer_ids=integer_ids))),
            StructField(CANDIDATES, LongType()),
            StructField(REJECTED, StringType()),
        ]
    )
