"""For those who write SQL: matching as a function, and as a table function.

::

    SELECT id, bittern_match(struct(*)) AS subscriptions FROM events
    SELECT * FROM bittern_match(TABLE(events))

The function takes a struct and returns the array of the subscriptions that it satisfies. The table
function returns the keys of each event and one subscription, a row for each match; what it returns
must be known when it is registered, so it comes with ``events``.

Both send to Python what they are given: ``struct(price, seller)`` costs less than ``struct(*)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf, arrow_udtf  # type: ignore[attr-defined]
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from bittern.engine.matcher import Matcher
from bittern.errors import OptionError
from bittern.spark.attributes import check_columns, names_of
from bittern.spark.frames import resolve
from bittern.spark.node_cache import SnapshotRef, attach
from bittern.spark.operator import SUBSCRIPTION, Operator, tail
from bittern.spark.part_files import flat


def register(
    spark: SparkSession,
    subscriptions: Any,
    name: str = "bittern_match",
    *,
    events: DataFrame | None = None,
    event_id: str | Sequence[str] | None = None,
    limit: int | None = None,
    json: str | Sequence[str] = (),
    store: str | None = None,
    sample: Any = None,
    on_error: str = "raise",
) -> None:
    """Register ``name`` as a function and, given ``events``, as a table function.

    ``events`` tells the columns of the tables that the table function will be given; ``event_id``
    names those that it returns (all of them if None). The other arguments are those of
    ``bittern.spark.match``. An index in shards needs a shuffle, which a function cannot do, so the
    index is whole, whatever its size.
    """
    documents = tuple(names_of(json, "json"))
    if events is None and event_id is not None:
        raise OptionError("event_id needs events: a DataFrame with the columns to expect")
    if events is not None:
        keys = list(events.columns) if event_id is None else names_of(event_id, "event_id")
        check_columns(events.schema, keys, documents)
    source = resolve(
        spark,
        subscriptions,
        store=store,
        shards=None,
        sample=sample,
        json=documents,
        on_error=on_error,
    )
    if not isinstance(source.ref, SnapshotRef):
        raise OptionError("an index in shards cannot be a SQL function: use bittern.spark.match")
    id_type: DataType = LongType() if source.integer_ids else StringType()
    function = _Function(source.ref, documents, limit)
    spark.udf.register(name, arrow_udf(function.subscriptions, ArrayType(id_type)))
    if events is not None:
        schema = StructType(
            [*(events.schema[key] for key in keys), StructField(SUBSCRIPTION, id_type)]
        )
        operator = Operator(source.ref, tuple(keys), documents, limit)
        table_function: Any = arrow_udtf(_table_function(operator), returnType=schema)
        spark.udtf.register(name, table_function)


@dataclass(frozen=True)
class _Function:
    ref: SnapshotRef
    json: tuple[str, ...]
    limit: int | None

    def subscriptions(self, events: pa.Array) -> pa.Array:
        """The subscriptions of each struct."""
        matches = Matcher(attach(self.ref)).match(events, limit=self.limit, json=self.json)
        return tail(matches, 0, len(matches), 0)[0]


def _table_function(operator: Operator) -> type:
    """A class for Spark, which makes one for each partition and gives it batches."""

    class Match:
        def eval(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            for batch in operator(iter([events])):
                yield from flat(batch)

    return Match
