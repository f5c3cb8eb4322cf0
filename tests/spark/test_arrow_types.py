"""Our Arrow types are those of the installed Spark, and nothing private of PySpark is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

SPARK = Path(__file__).parents[2] / "src" / "bittern" / "spark"

#: Every type that goes to Python, as SQL of a value or of NULL.
CROSSING = {
    "boolean": "true",
    "byte": "1Y",
    "short": "1S",
    "int": "1",
    "long": "1L",
    "float": "1F",
    "double": "1D",
    "decimal": "cast(1 AS decimal(20, 3))",
    "string": "'a'",
    "collated": "'a' COLLATE UTF8_LCASE",
    "binary": "X'00'",
    "date": "DATE '2026-01-31'",
    "timestamp": "TIMESTAMP '2026-01-31 08:00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ '2026-01-31 08:00:00'",
    "time": "TIME '08:00:00'",
    "interval": "INTERVAL '1 02:03:04' DAY TO SECOND",
    "hours": "INTERVAL '2' HOUR",
    "null": "NULL",
    "variant": "parse_json('{}')",
    "array": "array(1, 2)",
    "array_with_null": "array('a', NULL)",
    "map": "map('a', 1D)",
    "map_with_null": "map('a', NULL, 'b', array(1))",
    "struct": "struct(1 AS a, cast(NULL AS string) AS b)",
    "deep": "array(struct(map('a', struct(TIMESTAMP '2026-01-31 08:00:00' AS t)) AS m))",
    "variants": "array(parse_json('1'))",
}
#: What Arrow, or Spark on its way there, has no type for.
STAYING = {
    "months": "INTERVAL '1' MONTH",
    "calendar": "make_interval(1, 2)",
    "nothing": "array()",
    "within": "struct(INTERVAL '1' MONTH AS m)",
    "as_value": "map('a', INTERVAL '1' MONTH)",
}


#: Older releases have to be told that they may.
NEW = ("spark.sql.timeType.enabled", "spark.sql.geospatial.enabled")


@pytest.fixture
def all_types(spark: Any) -> Iterator[Any]:
    """The session, with types that it may not have by default."""
    before = {name: spark.conf.get(name, None) for name in NEW}
    for name in NEW:
        spark.conf.set(name, "true")
    yield spark
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def frame_of(spark: Any, columns: dict[str, str]) -> Any:
    return spark.range(1).selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()))


def received(frame: Any) -> pa.Schema:
    """The schema of the batches that a task is given."""

    def schema_of(batches: Any) -> Any:
        for batch in batches:
            told = [batch.schema.serialize().to_pybytes()]
            yield pa.RecordBatch.from_arrays([pa.array(told, pa.binary())], ["schema"])

    (row,) = frame.mapInArrow(schema_of, "schema binary").collect()
    return pa.ipc.read_schema(pa.py_buffer(bytes(row.schema)))


@pytest.mark.spark
def test_types_are_those_that_tasks_are_given(all_types: Any) -> None:
    from bittern.spark.arrow_types import arrow_schema

    frame = frame_of(all_types, CROSSING)
    given = received(frame)
    for ours, sparks in zip(arrow_schema(frame.schema), given, strict=True):
        assert ours == sparks, f"{ours} for {sparks}"
    mark = arrow_schema(frame.schema).field("variant").type.field("metadata").metadata
    assert mark == given.field("variant").type.field("metadata").metadata == {b"variant": b"true"}


@pytest.mark.spark
def test_geometries_are_marked_as_spark_marks_them(all_types: Any) -> None:
    from bittern.spark.arrow_types import arrow_schema

    point = "X'0101000000000000000000F03F0000000000000040'"
    frame = frame_of(all_types, {"g": f"st_geomfromwkb({point})", "h": f"st_geogfromwkb({point})"})
    for ours, sparks in zip(arrow_schema(frame.schema), received(frame), strict=True):
        assert ours == sparks
        assert ours.type.field("wkb").metadata == sparks.type.field("wkb").metadata


@pytest.mark.spark
def test_other_types_stay(spark: Any) -> None:
    from bittern.spark.arrow_types import arrow_type

    frame = frame_of(spark, STAYING)
    assert [field.name for field in frame.schema if arrow_type(field.dataType) is not None] == []


def test_a_users_type_is_what_it_is_stored_as() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    from bittern.spark.arrow_types import arrow_type

    class Point(types.UserDefinedType):  # type: ignore[misc]
        @classmethod
        def sqlType(cls) -> Any:  # noqa: N802
            return types.ArrayType(types.DoubleType(), False)

    expected = pa.list_(pa.field("element", pa.float64(), nullable=False))
    assert arrow_type(Point()) == expected


def test_reports_of_tasks_are_told_to_spark() -> None:
    pytest.importorskip("pyspark")
    from bittern.spark.arrow_types import arrow_schema, report_schema
    from bittern.spark.sink.part_files import REPORT
    from bittern.spark.streaming import letters

    for report in (REPORT, letters.REPORT):
        told = arrow_schema(report_schema(report))
        assert told.names == report.names
        assert [str(type_) for type_ in told.types] == [
            str(type_).replace("item", "element") for type_ in report.types
        ]


# -- nothing private -------------------------------------------------------------------------------

#: What PySpark's reference documents, and tells others to import.
PUBLIC = (
    "pyspark",
    "pyspark.errors",
    "pyspark.logger",
    "pyspark.sql",
    "pyspark.sql.functions",
    "pyspark.sql.streaming",
    "pyspark.sql.streaming.listener",
    "pyspark.sql.streaming.readwriter",
    "pyspark.sql.types",
)
#: Attributes by which PySpark reaches the JVM; none of them is meant for others.
PRIVATE = {"_jvm", "_jdf", "_jsc", "_sc", "_jsparkSession", "_jconf", "_jc", "_gateway", "_jrdd"}
EXCEPTIONS = {
    # PySpark tells nobody whether a context was stopped, short of running a job.
    ("catalogs/eventual.py", "_jsc"),
    # Nor whether an expression is deterministic: only the plan says so. Classic sessions alone.
    ("streaming/sources.py", "_jdf"),
    # Nor does it create an object on condition that there is none: Hadoop does, with the settings
    # that Spark has for it.
    ("stores/hadoop.py", "_jvm"),
    ("stores/hadoop.py", "_jsparkSession"),
    ("stores/remote_files.py", "_jsparkSession"),
}


def test_nothing_private_of_pyspark_is_used() -> None:
    found = set()
    for path in SPARK.rglob("*.py"):
        name = str(path.relative_to(SPARK))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
                found.add((name, node.attr))
            modules = []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
                modules += [alias.name for alias in node.names if alias.name.startswith("_")]
            found |= {
                (name, module)
                for module in modules
                if module.startswith(("pyspark", "_")) and module not in (*PUBLIC, "__future__")
            }
    assert found == EXCEPTIONS
