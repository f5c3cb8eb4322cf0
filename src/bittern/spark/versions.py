"""What the installed PySpark has, and what is done instead where it lacks something.

Clusters run PySpark 3.5 to 4.3. Everything else in this package is written for the newest of them;
what an older one lacks is here, so that nobody else asks for a version:

=======================  =====  ===============================================================
what                     since  before that
=======================  =====  ===============================================================
variants                 4.0    no value is one
times of day, geometry   4.1    no value is one
``toArrow``              4.0    tasks pack the rows, and ``collect`` brings them
``createDataFrame`` of   4.0    the rows of the table, one by one
an Arrow table
``addArtifacts``         4.0    ``SparkContext.addFile``
``is_valid_utf8``        4.0    a text that Java can read and write again
Spark Connect            4.0    refused: its DataFrames are not those of PySpark
``arrow_udf``            4.1    SQL functions are refused
``repartitionById``      4.1    ``repartition`` by keys whose hashes are the partitions
=======================  =====  ===============================================================
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from bittern.errors import OptionError

#: Major and minor number.
VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

#: Keys are looked for among so many numbers for each partition: all but surely each gets one.
_TRIED = 32
_keys: dict[int, list[int]] = {}


class _Absent(DataType):
    """A type that this PySpark does not have: nothing is of it."""


def _type(name: str) -> type[Any]:
    return getattr(types, name, _Absent)


VariantType = _type("VariantType")
TimeType = _type("TimeType")
GeometryType = _type("GeometryType")
GeographyType = _type("GeographyType")


def check_arrow_functions() -> None:
    """Raise unless functions of Arrow arrays can be registered for SQL."""
    if VERSION < (4, 1):
        raise OptionError(
            f"SQL functions need Spark 4.1 or later, and this is {pyspark.__version__}: give SQL a "
            f"view, bittern.spark.match(...).createOrReplaceTempView('matches')"
        )


def check_connect(frame: object) -> None:
    """Raise if this is a DataFrame of Spark Connect, and of a PySpark too old for it."""
    if VERSION < (4, 0) and type(frame).__module__.startswith("pyspark.sql.connect"):
        raise OptionError(
            f"Spark Connect needs Spark 4.0 or later, and this is {pyspark.__version__}: use a "
            f"classic session"
        )


def condition(error: PySparkException) -> str:
    """The name of Spark's that an error has, or an empty text."""
    name = error.getCondition() if VERSION >= (4, 0) else error.getErrorClass()
    return name or ""


def send_file(spark: Any, path: Path) -> None:
    """Have a file sent to all executors, where ``SparkFiles`` knows it by its name."""
    if VERSION >= (4, 0):
        spark.addArtifacts(str(path), file=True)
    else:
        spark.sparkContext.addFile(str(path))


def is_valid_utf8(text: Column) -> Column:
    """Whether the bytes of a text are UTF-8."""
    if VERSION >= (4, 0):
        return F.is_valid_utf8(text)
    return F.encode(text, "utf-8") == text.cast("binary")  # Java replaces what it cannot read


def query_log() -> logging.Logger:
    """The log in which PySpark tells of errors that it raises as well."""
    name = "SQLQueryContextLogger"
    if VERSION < (4, 0):
        return logging.getLogger(name)
    from pyspark.logger import PySparkLogger  # noqa: PLC0415

    # A logger has the class of its first caller, and a plain one would refuse PySpark's keywords.
    return PySparkLogger.getLogger(name)


def in_partition(frame: DataFrame, n_partitions: int, number: Column) -> DataFrame:
    """The rows in as many partitions, each in the one that ``number`` says."""
    if VERSION >= (4, 1):
        return frame.repartitionById(n_partitions, number)
    if n_partitions not in _keys:
        _keys[n_partitions] = _keys_of(frame.sparkSession, n_partitions)
    key = F.lit(_keys[n_partitions])[number].cast("bigint")
    return frame.repartition(n_partitions, key)


def _keys_of(spark: SparkSession, n_partitions: int) -> list[int]:
    """For each partition a number that ``repartition`` sends there, or else to another one.

    Where rows are makes no difference to what they match.
    """
    tried = spark.range(0, _TRIED * n_partitions, 1, 1)
    # As ``repartition`` does it.
    where = F.pmod(F.hash("id"), F.lit(n_partitions)).alias("partition")
    found = tried.groupBy(where).agg(F.min("id").alias("key")).collect()
    keys = {row["partition"]: row["key"] for row in found}
    return [keys.get(at, at) for at in range(n_partitions)]
