"""Intervals, + and - of times; and what fails in Spark, of all functions of times."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.terms.scope import folded
from times_beside_spark import compare, edges

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return edges()


INTERVALS = [
    "d + i", "i + d", "d + y", "d - i", "d - e", "d - t", "t - u", "t - d", "n - t", "n - n",
    "d + NULL", "d - NULL", "t + NULL", "t - NULL", "NULL - d", "NULL - t", "v + NULL", "NULL - v",
    "d + INTERVAL '1' DAY", "d - INTERVAL 3 WEEKS", "d + INTERVAL '25' HOUR",
    "d - INTERVAL 1 SECOND",
    "INTERVAL '1' DAY + d", "INTERVAL '1' MONTH + t", "d + INTERVAL '1' MONTH",
    "d - INTERVAL 1 YEAR",
    "t + INTERVAL '1-1' YEAR TO MONTH", "t - INTERVAL '13' MONTH", "n + INTERVAL '1' MONTH",
    "t + INTERVAL '1 02:03:04.5' DAY TO SECOND", "n - INTERVAL '02:03' HOUR TO MINUTE", "t + v",
    "t - v", "d + v", "v + t", "v + v", "v - v", "v + INTERVAL '1' DAY", "v > INTERVAL '1' DAY",
    "INTERVAL '1' DAY + INTERVAL '1' DAY", "INTERVAL '1' DAY - INTERVAL '1' HOUR", "d - e > v",
    "INTERVAL '1' MONTH + INTERVAL '1' YEAR", "INTERVAL '1' MONTH < INTERVAL '1' YEAR",
    "make_ym_interval(i, y)", "make_ym_interval(i)", "make_ym_interval()",
    "make_ym_interval(i, NULL)",
    "make_dt_interval(i, y, i, c)", "make_dt_interval()", "make_dt_interval(1, 2)", "(d - e) * 2",
    "d + make_interval(0, i, y, 1)", "t + make_interval(1, i, y, i, i, y, c)",
    "d + make_ym_interval(1, y)",
    "t - make_interval(0, 1, 0, 1, 1, 1, 1.5)", "make_ym_interval(1, i) < make_ym_interval(i, 1)",
    "v * 2", "2 * v", "v * i", "v * x", "v * c", "v * 1.5", "v * f", "v / 3", "v / 1.7",
    "v / 1.7e0",
    "make_ym_interval(0, i) * 1.5", "make_ym_interval(0, i) / 2", "make_ym_interval(0, i) * x",
    "make_ym_interval(0, i) / 0.7e0", "i * make_ym_interval(0, i)", "-v", "-make_ym_interval(i)",
    "EXTRACT(YEAR FROM make_ym_interval(1, i))", "EXTRACT(MONTH FROM make_ym_interval(1, i))",
    *(f"EXTRACT({each} FROM v)" for each in ("DAY", "HOUR", "MINUTE", "SECOND")),
    "INTERVAL 3 DAYS 2 HOURS", "INTERVAL '3 days -2 hours'", "INTERVAL '-1-2' YEAR TO MONTH",
    "INTERVAL '100:04.000001' MINUTE TO SECOND", "INTERVAL '1.1234567' SECOND",
    "INTERVAL 5 MILLISECONDS",
    "INTERVAL '1 year 2 months'", "INTERVAL '+3' DAY", "INTERVAL 1 WEEK 1 DAY",
    "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND", "INTERVAL '1 02' DAY TO HOUR",
]  # fmt: skip


def test_intervals(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, INTERVALS)


FAIL = [
    "add_months(make_date(2024, 1, 1), 2147483647)",
    "next_day(make_date(2024, 1, 1), 'xx')",
    "timestampdiff(DayOfYear, timestamp_seconds(1), timestamp_seconds(2))",
    "make_date(2024, 2, 30)",
    "make_date(2024, 13, 1)",
    "make_date(2024, 0, 1)",
    "make_timestamp(2024, 2, 29, 24, 0, 0)",
    "make_timestamp(2024, 2, 29, 0, 0, 60.5)",
    "make_timestamp(2024, 2, 29, 0, 0, -1)",
    "make_timestamp(2024, 2, 29, 0, 0, 0, 'nowhere')",
    "to_date('x', 'yyyy')",
    "to_timestamp('2023-02-29', 'yyyy-MM-dd')",
    "to_timestamp_ntz('x', 'yyyy')",
    "unix_timestamp('2024-01-01')",
    "unix_timestamp('x', 'yyyy')",
    "timestamp_seconds(9223372036854775807)",
    "timestamp_seconds(5.1234567)",
    "timestamp_seconds(99999999999999999999.5)",
    "timestamp_millis(9223372036854775807)",
    "from_utc_timestamp(timestamp_seconds(1), 'nowhere')",
    "from_utc_timestamp(timestamp_seconds(1), '+19:00')",
    "from_utc_timestamp(timestamp_seconds(1), '')",
    "from_utc_timestamp(timestamp_seconds(1), 'europe/berlin')",
    "timestamp_micros(9223372036854775807) + INTERVAL '1' SECOND",
    "timestamp_micros(9223372036854775807) + INTERVAL '1' MONTH",
    "timestamp_micros(9223372036854775807) - timestamp_micros(-9223372036854775807)",
    "make_date(2024, 1, 1) + make_interval(0, 0, 0, 0, 1)",
    "make_dt_interval(2147483647)",
    "make_ym_interval(178956970, 8)",
    "make_interval(178956971)",
    "INTERVAL '1' DAY * double('NaN')",
    "INTERVAL '1' DAY / 0",
    "INTERVAL '1' DAY / 0.0e0",
    "INTERVAL '106751991' DAY * 2",
    "INTERVAL '1' MONTH * 2147483648",
    "make_dt_interval(106751991) + make_dt_interval(106751991)",
]


@pytest.mark.parametrize("text", FAIL)
def test_what_fails_in_spark_fails_here(spark: Any, text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  one of many of Spark's
        spark.range(1).selectExpr(text).collect()
    with pytest.raises(ValueError):  # noqa: PT011
        folded(read_term(text))
