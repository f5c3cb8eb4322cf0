"""The sources that a catalog can be loaded from: tables, frames, files, mappings, Spark's frames.

::

    "subs.csv", Path("subs.parquet")              a file
    pyarrow.Table, RecordBatch, a reader of them  columns by name
    pandas, polars and other frames               through Arrow
    spark.table("subs")                           partition by partition, pyspark is not imported
    {"s1": "price < 10"}                          id -> expression
    [{"id": "s1", "expression": ...}, ...]        mappings or Subscriptions

A field that has no column, or no key in a mapping, is ``ABSENT`` (``rows.py``); a Subscription has
them all.

Memory: a part of the source, and a partition of a DataFrame of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import chain
from typing import Any

import pyarrow as pa

from bittern.catalog.files import Incoming, batch_rows, present, read_file
from bittern.catalog.rows import ABSENT, FIELDS, Subscription, values_of
from bittern.errors import BadSubscription, OptionError
from bittern.model.events.columns import from_frame

_PART = 20_000
_FORMS = (
    "the path of a CSV, JSON lines or Parquet file, a table, a DataFrame, a mapping from id to "
    "expression, or mappings with id and expression"
)


def rows_of(source: Any) -> Incoming:
    """The rows of any source."""
    if isinstance(source, Incoming):
        return source
    if isinstance(source, str | os.PathLike):
        return read_file(source)
    if hasattr(source, "toLocalIterator"):
        return Incoming(0, _spark_rows(source))
    if isinstance(source, pa.Table | pa.RecordBatch):
        return _table_rows(source)
    if isinstance(source, pa.RecordBatchReader):
        return Incoming(0, _batches_rows(source))
    if hasattr(source, "__dataframe__"):
        try:
            return _table_rows(from_frame(source))
        except ValueError as wrong:
            raise OptionError(str(wrong)) from None
    if isinstance(source, Mapping):
        absent = [ABSENT] * (len(FIELDS) - 2)
        return Incoming(len(source), ((id_, text, *absent) for id_, text in source.items()))
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise OptionError(f"a catalog can be loaded from {_FORMS}, not {type(source).__name__}")
    return Incoming(len(source) if isinstance(source, Sized) else 0, _iterable_rows(source))


def _table_rows(table: pa.Table | pa.RecordBatch) -> Incoming:
    columns = present(table.schema.names, "the table")
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    batches = table.select(columns).to_batches(max_chunksize=_PART)
    return Incoming(table.num_rows, chain.from_iterable(map(batch_rows, batches)))


def _batches_rows(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[Any, ...] | BadSubscription]:
    for batch in batches:
        yield from _table_rows(batch).values


def _spark_rows(frame: Any) -> Iterator[tuple[Any, ...]]:
    columns = present(list(frame.columns), "the DataFrame")
    places = [columns.index(name) if name in columns else None for name in FIELDS]
    for row in frame.select(*(f"`{name}`" for name in columns)).toLocalIterator():
        yield tuple(ABSENT if place is None else _plain(row[place]) for place in places)


def _plain(value: Any) -> Any:
    """A struct of Spark is a row; metadata becomes a mapping."""
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def _iterable_rows(source: Iterable[Any]) -> Iterator[tuple[Any, ...] | BadSubscription]:
    for number, each in enumerate(source):
        if isinstance(each, pa.RecordBatch):
            yield from _table_rows(each).values
        else:
            yield row_of(each, number)


def row_of(given: Any, number: int, *, strict: bool = False) -> tuple[Any, ...] | BadSubscription:
    """The values of FIELDS; ``strict`` refuses other keys, and a missing field is None."""
    if isinstance(given, Subscription):
        return tuple(getattr(given, name) for name in FIELDS)
    if not isinstance(given, Mapping):
        said = (
            f"a subscription must be a mapping with {', '.join(FIELDS)}, not {type(given).__name__}"
        )
        return BadSubscription(f"row {number}", 0, said)
    if strict and (others := [key for key in given if key not in FIELDS]):
        said = f"a subscription has {', '.join(FIELDS)}, but not {str(others[0])[:40]!r}"
        shown = given.get("id", f"row {number}")
        return BadSubscription(shown if isinstance(shown, str | int) else repr(shown), 0, said)
    return values_of(given, default=None if strict else ABSENT)
