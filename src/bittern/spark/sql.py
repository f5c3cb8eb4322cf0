"""Matching in SQL: as a function, and as a table function.

::

    SELECT id, bittern_match(struct(*)) AS subscriptions FROM events
    SELECT * FROM bittern_match(TABLE(events))

The function takes a struct and returns the array of the subscriptions that it satisfies. The table
function returns the keys of each event and one subscription, a row for each match; what it returns
must be known when it is registered, so it comes with ``events``.

Both send to Python what they are given: ``struct(price, seller)`` costs less than ``struct(*)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StructField, StructType

from bittern.catalog.catalog import Catalog
from bittern.engine.matcher import check_limit
from bittern.errors import OptionError
from bittern.spark.asked import Asked
from bittern.spark.attributes import event_schema, names_of
from bittern.spark.frames import names_in
from bittern.spark.history.past import refuse_quantifiers
from bittern.spark.operator import (
    SUBSCRIPTION,
    Operator,
    carried,
    flat,
    id_type,
    subscription_ids,
)
from bittern.spark.session import is_case_sensitive
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.subscriptions.resolving import resolve
from bittern.spark.versions import check_arrow_functions


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
    sets: Mapping[str, Any] | None = None,
) -> None:
    """Register ``name`` as a function and, given ``events``, as a table function.

    ``events`` tells the columns of the tables that the table function will be given; ``event_id``
    names those that it returns (all of them if None). The other arguments are those of
    ``bittern.spark.match``. An index in shards needs a shuffle, which a function cannot do, so the
    index is whole, whatever its size.
    """
    check_arrow_functions()
    from pyspark.sql.functions import arrow_udf, arrow_udtf  # type: ignore[attr-defined]  # noqa: PLC0415

    check_limit(limit)
    if events is not None:
        keys, documents = names_in(events, event_id, json)
        _check_types(events.schema, keys)
    elif event_id is not None:
        raise OptionError("event_id needs events: a DataFrame with the columns to expect")
    else:
        documents = names_of(json, "json")
    asked = Asked(
        json=documents, store=store, shards=None, sample=sample, on_error=on_error, sets=sets
    )
    if isinstance(subscriptions, Catalog):
        raise OptionError(
            "a catalog changes, and a SQL function cannot follow it: use bittern.spark.match, or "
            "register an index that was built from it"
        )
    counts = is_case_sensitive(spark)
    known = None
    if events is not None:
        known = event_schema(events.schema, documents, case_sensitive=counts)
    source = resolve(spark, subscriptions, asked, schema=known)
    if not isinstance(source.ref, SnapshotRef):
        raise OptionError("an index in shards cannot be a SQL function: use bittern.spark.match")
    refuse_quantifiers(source.attributes, "a SQL function has no history: use bittern.spark.match")
    value_type = id_type(integer_ids=source.integer_ids)
    function = _Function(source.ref, tuple(documents), limit, counts)
    spark.udf.register(name, arrow_udf(function.subscriptions, ArrayType(value_type)))
    if events is not None:
        result = StructType(
            [*(events.schema[key] for key in keys), StructField(SUBSCRIPTION, value_type)]
        )
        operator = Operator(source.ref, tuple(keys), tuple(documents), limit, counts)
        table_function: Any = arrow_udtf(_table_function(operator), returnType=result)
        spark.udtf.register(name, table_function)


def _check_types(schema: StructType, keys: Sequence[str]) -> None:
    """Raise unless keys come back from Python as they are: no cast can follow a table function."""
    for key in keys:
        type_, back = schema[key].dataType, carried(schema[key].dataType)
        if type_ != back:
            raise OptionError(
                f"the column {key!r} is {type_.simpleString()}, which a table function cannot "
                f"return: cast it to {back.simpleString()}, or name other columns in event_id"
            )


@dataclass(frozen=True)
class _Function:
    ref: SnapshotRef
    json: tuple[str, ...]
    limit: int | None
    case_sensitive: bool

    def subscriptions(self, events: pa.Array) -> pa.Array:
        """The subscriptions of each struct; NULL is not an event and has none."""
        there = events.is_valid().to_numpy(zero_copy_only=False)
        matcher = self.ref.matcher(case_sensitive=self.case_sensitive)
        matches = matcher.match(events.drop_null(), limit=self.limit, json=self.json)
        ids = subscription_ids(matches, 0, len(matches.subscriptions))
        offsets = np.zeros(len(events) + 1, dtype=np.int32)
        offsets[1:][there] = matches.counts
        return pa.ListArray.from_arrays(pa.array(np.cumsum(offsets, dtype=np.int32)), ids)


def _table_function(operator: Operator) -> type:
    """A class for Spark, which makes one for each partition and gives it batches."""

    class Match:
        def eval(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            for batch in operator(iter([events])):
                yield from flat(batch)

    return Match
