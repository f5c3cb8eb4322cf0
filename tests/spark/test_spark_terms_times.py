"""Fields, calendar, numbers and zones of times: Spark and the terms give the same, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bittern.terms.types import TIMESTAMP
from times_beside_spark import compare, edges

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return edges()


FIELDS = [
    *(
        f"{name}({column})"
        for name in [
            "year",
            "quarter",
            "month",
            "day",
            "dayofmonth",
            "dayofweek",
            "weekday",
            "dayofyear",
            "weekofyear",
            "hour",
            "minute",
            "second",
            "last_day",
        ]
        for column in ("d", "t", "n")
    ),
    *(
        f"EXTRACT({name} FROM {column})"
        for name in [
            "year",
            "quarter",
            "month",
            "week",
            "day",
            "dow",
            "doy",
            "hour",
            "minute",
            "second",
            "yearofweek",
            "dayofweek",
            "dayofweek_iso",
            "dow_iso",
            "mons",
            "yrs",
            "s",
        ]
        for column in ("d", "t", "n")
    ),
    "date_part('MINS', t)",
    "year(NULL)",
]


def test_fields(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, FIELDS)


CALENDAR = [
    *(f"trunc({column}, w)" for column in ("d", "t", "n")),
    *(f"date_trunc(w, {column})" for column in ("d", "t", "n")),
    *(
        f"date_trunc('{unit}', t)"
        for unit in [
            "YEAR",
            "yyyy",
            "yy",
            "QUARTER",
            "month",
            "mon",
            "mm",
            "WEEK",
            "day",
            "dd",
            "hour",
            "minute",
            "second",
            "millisecond",
            "microsecond",
            "decade",
        ]
    ),
    "trunc(d, NULL)",
    "datediff(d, e)",
    "datediff(t, e)",
    "date_diff(d, n)",
    "date_add(d, i)",
    "date_add(t, y)",
    "date_add(d, NULL)",
    "dateadd(d, 1)",
    "date_sub(d, i)",
    "date_sub(n, y)",
    "add_months(d, i)",
    "add_months(t, 1)",
    "add_months(d, y)",
    "months_between(t, u)",
    "months_between(t, u, FALSE)",
    "months_between(d, e)",
    "months_between(d, u, TRUE)",
    "months_between(n, t)",
    "months_between(t, u, NULL)",
    "next_day(d, p)",
    "next_day(t, 'friday')",
    "next_day(d, NULL)",
    "make_date(year(d), month(d), 1 )",
    "make_date(i, 2, 28)",
    "make_date(i, NULL, 28)",
    "make_timestamp(year(t), month(t), 1, hour(t), minute(t), 0.5)",
    "make_timestamp(year(t), month(t), 1, hour(t), minute(t), second(t), z)",
    "make_timestamp_ntz(year(t), 1, 1, 0, 0, 60)",
    "make_timestamp_ltz(year(t), 1, 1, 0, 0, 59.999999)",
    "try_make_timestamp(year(t), month(t), 30, hour(t), 5, 5)",
]


def test_calendar(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, CALENDAR)


NUMBERS = [
    *(f"{name}(t)" for name in ("unix_seconds", "unix_millis", "unix_micros", "unix_timestamp")),
    "unix_micros(n)",
    "unix_timestamp(d)",
    "unix_timestamp(n)",
    "to_unix_timestamp(t)",
    "to_unix_timestamp(t, 'yyyy')",
    "unix_date(d)",
    "date_from_unix_date(i)",
    *(f"timestamp_seconds({column})" for column in ("i", "y", "l", "x", "f", "c")),
    "timestamp_millis(l)",
    "timestamp_micros(i)",
    "from_unixtime(l)",
    "from_unixtime(i, 'yyyy DDD HH')",
    "to_date(t)",
    "to_date(d)",
    "to_timestamp(d)",
    "to_timestamp(n)",
    "to_timestamp_ntz(t)",
    "to_timestamp_ntz(d, 'yyyy')",
    "to_timestamp(t, NULL)",
    "to_timestamp(d, NULL)",
    "to_date(t, NULL)",
    "to_date(d, NULL)",
    "to_timestamp_ntz(d, NULL)",
    "to_timestamp_ntz(n, NULL)",
    "unix_timestamp(t, NULL)",
    "unix_timestamp('2024', NULL)",
    "to_date('2024', NULL)",
]


def test_numbers(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, NUMBERS)


UNITS = (
    "MICROSECOND", "millisecond", "second", "MINUTE", "hour", "DAY", "dayofyear", "week", "MONTH",
    "quarter", "year",
)  # fmt: skip


def test_units(spark: Any, rows: pa.Table) -> None:
    terms = [
        text
        for unit in UNITS
        for text in (
            f"timestampadd({unit}, i, t)",
            f"timestampdiff({unit}, t, u)",
            f"timestampdiff({unit}, n, d)",
        )
        if not (unit == "dayofyear" and "diff" in text)  # which fails, in test_terms_intervals
    ]
    more = [
        "dateadd(MONTH, 1, d)",
        "date_add(WEEK, i, n)",
        "datediff(DAY, t, d)",
        "date_diff(HOUR, d, t)",
    ]
    compare(spark, rows, [*terms, *more, "timestampadd(DAY, 1.5, '2024-01-31')"])


ARGUMENTS = [
    "year('2024-02-29')",
    "hour('2024-02-29 05:00:00')",
    "EXTRACT(WEEK FROM '2024-12-31')",
    "trunc('2024-02-29', 'mm')",
    "trunc(d, 5)",
    "date_trunc('hour', '2024-02-29 05:06:00')",
    "datediff(d, '2024-01-01')",
    "d - '2024-01-01'",
    "'2024-01-01' - t",
    "'2024-01-31 01:00:00' + INTERVAL '1' DAY",
    "INTERVAL '1' HOUR + '2024-01-31'",
    "date_add('2024-01-31', '1')",
    "add_months(d, '1')",
    "add_months(d, 1.5)",
    "add_months(d, l / 86399)",
    "months_between('2024-03-30 10:00:00', d)",
    "last_day('2024-02-01')",
    "next_day('2024-02-01', 'mon')",
    "make_date('2024', '1', 1.7e0)",
    "make_timestamp('2024', 1, 1, 1, 1, '1.5')",
    "make_timestamp(2024, 1, 1, 1, 1, 59.1234567)",
    "date_from_unix_date('5')",
    "from_unixtime('5')",
    "from_unixtime(x)",
    "from_unixtime(c)",
    "date_format('2024-02-29', 'yyyy')",
    "date_format(d, 5)",
    "to_date(2024)",
    "to_date('2024-02-29 12:00:00')",
    "to_date(5, 'y')",
    "try_to_date('x')",
    "try_to_date(2024)",
    "to_timestamp(i)",
    "to_timestamp(c)",
    "to_timestamp(x)",
    "to_timestamp('2024-02-29 12:00:00')",
    "try_to_timestamp('x')",
    "try_to_timestamp(5)",
    "to_timestamp_ntz('2024-02-29 12:00:00')",
    "to_timestamp_ntz('2024-02-29 12:00 +0130', 'yyyy-MM-dd HH:mm Z')",
    "unix_timestamp('2024-01-01 00:00:00')",
    "from_utc_timestamp('2024-07-01', 'Europe/Berlin')",
    "try_add(d, 1)",
    "try_add(timestamp_micros(9223372036854775807), v)",
    "try_subtract(d, INTERVAL '1' MONTH)",
    "try_multiply(v, 2)",
    "try_divide(v, 0)",
    "v * '1.5'",
    "v * NULL",
    "NULL * make_ym_interval(1)",
    "make_ym_interval(1) / NULL",
    "make_dt_interval('1', '2', 1.7)",
]


def test_arguments_are_cast(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, ARGUMENTS)


def test_zones(spark: Any, rows: pa.Table) -> None:
    zones = "UTC Europe/Berlin America/New_York Asia/Kolkata +8 -08:30 GMT+2 EST CST Africa/Cairo"
    texts = [
        f"{name}({column}, {zone})"
        for name in ("from_utc_timestamp", "to_utc_timestamp")
        for column in ("t", "d", "n")
        for zone in ("z", "NULL", *(f"'{each}'" for each in zones.split()))
    ]
    texts += [
        "convert_timezone('Europe/Berlin', 'America/New_York', n)",
        "convert_timezone('America/New_York', t)",
        "convert_timezone(z, 'Asia/Tokyo', n)",
    ]
    compare(spark, rows, texts)


def test_changes_of_zones(spark: Any) -> None:
    """Half hours around each change of some years."""
    starts = ["1945-05-23T20", "1980-04-05T20", "2011-12-29T08", "2024-03-30T22", "2024-10-26T22"]
    starts += ["2024-03-10T00", "2024-11-03T00", "2024-04-06T12", "2300-03-27T00", "1893-03-31T22"]
    micros = np.concatenate(
        [
            np.datetime64(each, "us").astype(np.int64) + np.arange(64) * 1_800_000_000
            for each in starts
        ]
    )
    rows = pa.table({"t": pa.array(micros).view(TIMESTAMP)})
    rows = rows.append_column("i", rows["t"]).append_column("w", rows["t"])
    rows = rows.append_column("p", rows["t"]).append_column("z", rows["t"])
    zones = "Europe/Berlin America/New_York Australia/Lord_Howe Pacific/Apia Asia/Kathmandu"
    compare(
        spark,
        rows,
        [
            f"{name}(t, '{zone}')"
            for name in ("from_utc_timestamp", "to_utc_timestamp")
            for zone in zones.split()
        ],
    )
