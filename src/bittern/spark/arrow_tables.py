"""Arrow tables in the driver's memory, from DataFrames and as DataFrames.

Spark 3.5 has neither way: there tasks pack rows into bytes (``packed``), which the driver collects,
and a table goes to Spark row by row.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bittern.spark.arrow_types import arrow_schema, report_schema
from bittern.spark.versions import VERSION

_PACKED = pa.schema([("packed", pa.binary())])


def to_arrow(frame: DataFrame) -> pa.Table:
    """All rows of a DataFrame, in their order."""
    if VERSION >= (4, 0):
        return frame.toArrow()
    schema = arrow_schema(frame.schema)
    rows = frame.mapInArrow(_pack, "packed binary").collect()
    tables = [unpacked(bytes(row["packed"])).cast(schema) for row in rows]
    return pa.concat_tables([schema.empty_table(), *tables])


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield packed_row(batch)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of the rows of a table, of types that tasks report in."""
    if VERSION >= (4, 0):
        return spark.createDataFrame(table)
    columns = (column.to_pylist() for column in table.columns)
    return spark.createDataFrame([*zip(*columns, strict=True)], report_schema(table.schema))


def packed_row(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as bytes in one row, as tasks return it."""
    return pa.RecordBatch.from_arrays([pa.array([packed(batch)], pa.binary())], schema=_PACKED)


def packed(events: pa.Table | pa.RecordBatch, *, compressed: bool = False) -> bytes:
    """Rows as bytes, with the types and metadata of their columns; fewer if they are compressed."""
    options = pa.ipc.IpcWriteOptions(compression="zstd" if compressed else None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema, options=options) as stream:
        stream.write(events)
    return bytes(sink.getvalue())


def unpacked(events: bytes | pa.Buffer) -> pa.Table:
    """What ``packed`` was given."""
    return pa.ipc.open_stream(events).read_all()
