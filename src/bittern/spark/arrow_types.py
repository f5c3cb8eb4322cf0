"""The Arrow types in which Spark passes its own types to Python, and back.

PySpark has functions for this, but they are internal: their arguments change from release to
release. ``tests/spark/test_arrow_types.py`` compares ours with what tasks of the installed release
get.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    UserDefinedType,
)

from bittern.spark.versions import GeographyType, GeometryType, TimeType, VariantType

_PLAIN: dict[type[DataType], pa.DataType] = {
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    StringType: pa.string(),  # of any collation
    BinaryType: pa.binary(),
    DateType: pa.date32(),
    # The zone is the session's; the values do not differ.
    TimestampType: pa.timestamp("us", tz="UTC"),
    TimestampNTZType: pa.timestamp("us"),
    TimeType: pa.time64("ns"),
    DayTimeIntervalType: pa.duration("us"),
    NullType: pa.null(),
}
_REPORTED: dict[pa.DataType, DataType] = {
    pa.string(): StringType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.list_(pa.list_(pa.string())): ArrayType(ArrayType(StringType())),
}


def arrow_type(type_: DataType) -> pa.DataType | None:
    """The Arrow type for values of a Spark type; None if Arrow has none for it or a part of it."""
    if type(type_) in _PLAIN:
        return _PLAIN[type(type_)]
    if isinstance(type_, DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, UserDefinedType):
        return arrow_type(type_.sqlType())  # what is stored
    if isinstance(type_, VariantType):
        return _marked(("value", pa.binary()), ("metadata", pa.binary()), {"variant": "true"})
    if isinstance(type_, GeometryType | GeographyType):
        marks = {type_.typeName(): "true", "srid": str(type_.srid)}
        return _marked(("srid", pa.int32()), ("wkb", pa.binary()), marks)
    if isinstance(type_, ArrayType):
        return _nested(pa.list_, _field("element", type_.elementType, nullable=type_.containsNull))
    if isinstance(type_, MapType):
        key = _field("key", type_.keyType, nullable=False)
        return _nested(
            pa.map_, key, _field("value", type_.valueType, nullable=type_.valueContainsNull)
        )
    if isinstance(type_, StructType):
        fields = [_field(field.name, field.dataType, nullable=field.nullable) for field in type_]
        return _nested(lambda *own: pa.struct(own), *fields)
    return None


def _nested(make: Callable[..., pa.DataType], *fields: pa.Field | None) -> pa.DataType | None:
    return None if any(field is None for field in fields) else make(*fields)


def _field(name: str, type_: DataType, *, nullable: bool) -> pa.Field | None:
    found = arrow_type(type_)
    if found is None or (pa.types.is_null(found) and not nullable):  # an empty array's elements
        return None
    return pa.field(name, found, nullable=nullable)


def _marked(
    one: tuple[str, pa.DataType], other: tuple[str, pa.DataType], marks: dict[str, str]
) -> pa.DataType:
    """A struct whose second field tells readers what it is."""
    return pa.struct(
        [pa.field(*one, nullable=False), pa.field(*other, nullable=False, metadata=marks)]
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Python gets rows of this schema; Arrow must have all its types."""
    whole = arrow_type(schema)
    assert whole is not None
    return pa.schema(list(whole))


def report_schema(report: pa.Schema) -> StructType:
    """The schema, for ``mapInArrow``, of the rows in which tasks report (``part_files.row_of``)."""
    return StructType([StructField(field.name, _REPORTED[field.type]) for field in report])
