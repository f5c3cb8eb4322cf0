"""Samples: some typical events on the driver, by which subscriptions are filed.

A sample is an Arrow table in which the type of every column tells how it carries attributes: JSON
text has Arrow's type ``arrow.json``, variants keep their mark. So a sample needs no further
description.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BinaryType, DataType

from bittern.errors import OptionError
from bittern.model.events.objects import is_json
from bittern.spark.arrow_tables import packed_row, unpacked
from bittern.spark.attributes import can_cross
from bittern.spark.workers import able

#: Events that are enough to tell which attributes are frequent.
ROWS = 10_000
#: Where events are so wide that fewer have to do.
_BYTES = 32 << 20


def check_sample(sample: object) -> None:
    """Raise unless it can be a sample."""
    if not isinstance(sample, DataFrame | pa.Table | pa.RecordBatch | None):
        raise OptionError(
            f"sample must be a DataFrame or an Arrow table of events, not {type(sample).__name__}"
        )
    if isinstance(sample, DataFrame) and sample.isStreaming:
        raise OptionError("sample is a stream: give a DataFrame that ends")


def sample_table(
    sample: DataFrame | pa.Table | pa.RecordBatch | None, json: Sequence[str] = ()
) -> pa.Table | None:
    """The sample's first rows, in the columns whose types can carry attributes; None if none do.

    ``json`` names columns of JSON text.
    """
    table = _collected(sample) if isinstance(sample, DataFrame) else sample
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if table is None or table.num_rows == 0:
        return None
    for name in set(json) & set(table.schema.names):
        at, column = table.schema.get_field_index(name), table.column(name).combine_chunks()
        if is_json(column.type):
            continue
        if column.type not in (pa.string(), pa.large_string(), pa.string_view()):
            raise OptionError(f"json names {name!r}, which is not text but {column.type}")
        text = pa.ExtensionArray.from_storage(pa.json_(column.type), column)
        table = table.set_column(at, name, text)
    return table


def _collected(sample: DataFrame) -> pa.Table | None:
    # By place: Spark would not tell ``a`` from ``A``.
    numbered = sample.toDF(*map(str, range(len(sample.columns))))
    carrying = [i for i, field in enumerate(sample.schema) if can_carry(field.dataType)]
    if not carrying:
        return None
    # Packed by a task: ``toArrow`` itself cannot read a NULL variant.
    few = numbered.select(*(f"`{i}`" for i in carrying)).limit(ROWS)
    with able():
        rows = few.mapInArrow(_pack, "packed binary").collect()
    parts = [unpacked(bytes(row["packed"])) for row in rows]
    names = [sample.columns[i] for i in carrying]
    return pa.concat_tables(parts).rename_columns(names) if parts else None


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as bytes in one row, until there are enough; the rest is only read."""
    room, least = _BYTES, 1  # one row at least, however wide
    for whole in batches:
        rows = max(least, whole.num_rows * room // max(1, whole.nbytes))
        if rows <= 0 or not whole.num_rows:
            continue
        batch, least = whole.slice(0, rows), 0
        room -= batch.nbytes
        yield packed_row(batch)


def can_carry(type_: DataType) -> bool:
    """Whether values of this type can be, or hold, attributes."""
    return not isinstance(type_, BinaryType | ArrayType) and can_cross(type_)
