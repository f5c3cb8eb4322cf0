"""Dates, timestamps and intervals: the terms of a table, in Spark and here, row by row.

Each batch is one query of Spark's: types and values agree. What fails in Spark fails here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.terms.scope import evaluate, folded
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ, YEAR_MONTH, type_name

pytestmark = pytest.mark.spark

DATES = [
    "0001-01-01", "0004-02-29", "1582-10-10", "1600-02-29", "1900-02-28", "1969-12-31",
    "1970-01-01", "1999-12-31", "2000-02-29", "2023-01-01", "2024-01-31", "2024-02-29",
    "2024-03-31", "2024-10-27", "2024-12-29", "2024-12-30", "2024-12-31", "2026-01-01",
    "9999-12-30", "9999-12-31",
]  # fmt: skip
CLOCKS = [
    "00:00:00",
    "23:59:59.999999",
    "12:00:00.5",
    "02:30:00",
    "11:59:59.000001",
    "13:05:07.012",
]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Days of all kinds with a clock each, NULL last, and small numbers beside them."""
    moments = [f"{day}T{CLOCKS[i % len(CLOCKS)]}" for i, day in enumerate(DATES)]
    micros = np.array(moments, "M8[us]").astype(np.int64)
    days = np.array(DATES, "M8[D]").astype(np.int32)
    numbers = [(-1) ** i * i * 7 % 400 - 100 for i in range(len(DATES))]
    others = days[::-1].copy()
    offsets = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "+05:30", "PST", "UTC"]
    units = ["year", "MM", "week", "Quarter", "bogus", "day", "hour", "millisecond", "yy"]
    columns = {
        "d": pa.array(days).view(pa.date32()),
        "e": pa.array(others).view(pa.date32()),
        "t": pa.array(micros).view(TIMESTAMP),
        "u": pa.array(micros[::-1].copy()).view(TIMESTAMP),
        "n": pa.array(micros).view(TIMESTAMP_NTZ),
        "i": pa.array(numbers, pa.int32()),
        "y": pa.array([each % 120 for each in numbers], pa.int8()),
        "l": pa.array([each * 86_399 for each in numbers], pa.int64()),
        "x": pa.array([each / 7 for each in numbers], pa.float64()),
        "f": pa.array([each / 3 for each in numbers], pa.float32()),
        "c": pa.array([Decimal(each) / 8 for each in numbers], pa.decimal128(12, 3)),
        "z": pa.array([offsets[i % len(offsets)] for i in range(len(DATES))]),
        "w": pa.array([units[i % len(units)] for i in range(len(DATES))]),
        "p": pa.array(["Mo tue WEDNESDAY th fri sat SU".split()[i % 7] for i in range(len(DATES))]),
        "v": pa.array([each * 3_600_000_001 for each in numbers], pa.int64()).view(
            pa.duration("us")
        ),
    }
    with_null = {
        name: pa.concat_arrays([column, pa.nulls(1, column.type)])
        for name, column in columns.items()
    }
    return pa.table(with_null)


def plain(array: pa.Array) -> list[Any]:
    """Values that can be compared, whatever year they are in."""
    kind = array.type
    if pa.types.is_date(kind):
        return array.view(pa.int32()).to_pylist()
    if pa.types.is_duration(kind):
        return array.cast(pa.duration("us")).view(pa.int64()).to_pylist()
    if pa.types.is_timestamp(kind):
        return array.view(pa.int64()).to_pylist()
    if kind == YEAR_MONTH:
        return [None if each is None else each.months for each in array.to_pylist()]
    return [repr(each) if isinstance(each, float) else each for each in array.to_pylist()]


def same_type(ours: pa.DataType, name: str) -> bool:
    """Whether Spark's name of a type is ours; some of its intervals are one type here."""
    shown = type_name(ours).lower().replace(", ", ",")
    if name.startswith("interval"):
        ends_with_days = name == "interval day"
        months = "month" in name or "year" in name
        return shown == (
            "interval year to month"
            if months
            else "interval day"
            if ends_with_days
            else "interval day to second"
        )
    return shown == name


def compare(spark: Any, rows: pa.Table, texts: list[str]) -> None:
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    ours = []
    for text in texts:
        array, failures = evaluate(read_term(text), columns, rows.num_rows)
        assert not failures, (text, failures)
        assert len(array) == rows.num_rows, text
        ours.append(array)
    frame = spark.createDataFrame(rows)
    types = [field.dataType.simpleString() for field in frame.selectExpr(*texts).schema.fields]
    asked = [
        f"CAST(CAST(({text}) AS INTERVAL MONTH) AS INT)" if array.type == YEAR_MONTH else text
        for text, array in zip(texts, ours, strict=True)
    ]
    named = [f"({text}) AS c{number}" for number, text in enumerate(asked)]
    theirs = frame.selectExpr(*named).toArrow()
    wrong = []
    for number, (text, array, name) in enumerate(zip(texts, ours, types, strict=True)):
        if not same_type(array.type, name):
            wrong.append((text, type_name(array.type), name))
        expected = plain(theirs[f"c{number}"].combine_chunks())
        found = plain(array)
        wrong += [
            (text, {each: rows[each][row].as_py() for each in ("i", "w", "p", "z")},
             str(rows["t"][row]), f"ours {own}", f"Spark {other}")
            for row, (own, other) in enumerate(zip(found, expected, strict=True))
            if own != other
        ]  # fmt: skip
    assert not wrong, "\n".join(map(str, wrong[:40]))


FIELDS = [
    *(
        f"{name}({column})"
        for name in (
            "year quarter month day dayofmonth dayofweek weekday dayofyear weekofyear "
            "hour minute second last_day"
        ).split()
        for column in ("d", "t", "n")
    ),
    *(
        f"EXTRACT({name} FROM {column})"
        for name in (
            "year quarter month week day dow doy hour minute second yearofweek dayofweek "
            "dayofweek_iso dow_iso mons yrs s"
        ).split()
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
        for unit in (
            "YEAR yyyy yy QUARTER month mon mm WEEK day dd hour minute second millisecond "
            "microsecond decade"
        ).split()
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
]


def test_numbers(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, NUMBERS)


PATTERNS = [
    "yyyy-MM-dd HH:mm:ss",
    "y yy yyy yyyy yyyyy yyyyyy",
    "M MM MMM MMMM L LL LLL LLLL d dd D DD DDD",
    "E EE EEE EEEE Q QQ QQQ QQQQ q qq qqq qqqq",
    "H HH h hh K KK k kk m mm s ss S SS SSS SSSS SSSSSS SSSSSSS SSSSSSSSS a",
    "X XX XXX XXXX XXXXX x xx xxx xxxx xxxxx Z ZZ ZZZ ZZZZ ZZZZZ",
    "yyyyMMdd[HHmm]",
    "dd. 日 é 🎉 [MM] /|\\\\",
    "",
]


def test_patterns_are_written(spark: Any, rows: pa.Table) -> None:
    terms = [f"date_format({column}, '{each}')" for each in PATTERNS for column in ("t", "d", "n")]
    compare(spark, rows, [*terms, "date_format(t, NULL)"])


#: A pattern, and strings that it reads or refuses.
READ = {
    "yyyy-MM-dd HH:mm:ss": [
        "2024-02-29 23:59:59", "2023-02-29 00:00:00", "2024-2-9 01:01:01", "0001-01-01 00:00:00",
        "9999-12-31 23:59:59", "2024-02-29 24:00:00", "2024-02-29 23:60:00", " 2024-02-29 00:00:00",
        "2024-02-29 23:59:59.5", "", "x", "02024-02-29 00:00:00", "２０２４-02-29 00:00:00",
    ],
    "yyyyMMdd": ["20240229", "20230229", "2024022", "202402290", "00010101", "2024 229"],
    "d/M/yy": ["1/2/24", "29/02/2023", "29/02/23", "29/2/24", "0031/1/99", "0/1/24"],
    "dMMyyyy": ["1022024", "29022024", "31042024"],
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]": [
        "2024-02-29T12:00:00", "2024-02-29t12:00:00.5", "2024-02-29T12:00:00.123+05:30",
        "2024-02-29T12:00:00Z", "2024-02-29T12:00:00.1234", "2024-02-29T12:00:00-18:00",
        "2024-02-29T12:00:00+18:01", "2024-02-29T12:00:00+01:60", "2024-02-29T12:00:00+0100",
    ],
    "yyyy-MM-dd hh:mm a": [
        "2024-02-29 12:00 AM", "2024-02-29 12:00 pm", "2024-02-29 01:00 Pm", "2024-02-29 00:00 AM",
        "2024-02-29 13:00 PM", "2024-02-29 1:00 AM", "2024-02-29 12:00 XM",
    ],
    "HH:mm a": ["13:00 PM", "13:00 AM", "00:30 AM"],
    "h": ["1", "12", "13", "0"],
    "k": ["24", "1", "0", "25"],
    "K a": ["0 AM", "11 PM", "12 AM"],
    "a": ["AM", "pm"],
    "MMM d, yyyy": ["Feb 29, 2024", "FEB 29, 2024", "feb 29, 2023", "Febr 29, 2024", "Sept 1, 2024"],
    "d MMMM yyyy": ["1 may 2024", "31 September 2024", "1 Dec 2024", "01 DECEMBER 0001"],
    "yyyy DDD": ["2024 366", "2023 366", "2024 060", "2024 60", "2024 000"],
    "D": ["1", "365", "366", "0060"],
    "yyyy MM D": ["2024 02 60", "2024 03 60"],
    "MM-dd": ["02-28", "02-29", "13-01"],
    "yyyy": ["2024", "24", "20240", "-2024", "+2024", "0000"],
    "y": ["24", "2024", "0", "-5", "12345"],
    "mm:ss": ["59:59", "60:00"],
    "ss.SSSSSSSSS": ["01.123456789", "01.1", "01."],
    "SSS": ["12", "1234"],
    "yyyy-MM-dd HH:mm:ssX": ["2024-02-29 00:00:00+01", "2024-02-29 00:00:00+0130", "2024-02-29 00:00:00Z"],
    "yyyy-MM-dd xx": ["2024-02-29 +0130", "2024-02-29 Z", "2024-02-29 -0000"],
    "yyyy-MM-dd Z": ["2024-02-29 +0130", "2024-02-29 +01:30"],
    "yyyy-MM-dd XXXXX": ["2024-02-29 +01:30:15", "2024-02-29 +01:30", "2024-02-29 z"],
    "'day' dd 'o''clock'": ["day 05 o'clock", "DAY 05 O'CLOCK", "day 5 o'clock"],
    "yyyy.MM": ["2024.02", "2024x02"],
    "": ["", "x"],
}  # fmt: skip


def test_patterns_are_read(spark: Any) -> None:
    for pattern, strings in READ.items():
        quoted = pattern.replace("'", "\\'")
        rows = pa.table({name: pa.array([*strings, None]) for name in "stiwpz"})
        texts = [f"try_to_timestamp(s, '{quoted}')", f"try_to_date(s, '{quoted}')"]
        compare(spark, rows, texts)


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
    zones = "Europe/Berlin America/New_York Australia/Lord_Howe Pacific/Apia Europe/London Asia/Kathmandu"
    compare(
        spark,
        rows,
        [
            f"{name}(t, '{zone}')"
            for name in ("from_utc_timestamp", "to_utc_timestamp")
            for zone in zones.split()
        ],
    )


INTERVALS = [
    "d + i", "i + d", "d + y", "d - i", "d - e", "d - t", "t - u", "t - d", "n - t", "n - n",
    "d + NULL", "d - NULL", "t + NULL", "t - NULL", "NULL - d", "NULL - t", "v + NULL", "NULL - v",
    "d + INTERVAL '1' DAY", "d - INTERVAL 3 WEEKS", "d + INTERVAL '25' HOUR", "d - INTERVAL 1 SECOND",
    "INTERVAL '1' DAY + d", "INTERVAL '1' MONTH + t", "d + INTERVAL '1' MONTH", "d - INTERVAL 1 YEAR",
    "t + INTERVAL '1-1' YEAR TO MONTH", "t - INTERVAL '13' MONTH", "n + INTERVAL '1' MONTH",
    "t + INTERVAL '1 02:03:04.5' DAY TO SECOND", "n - INTERVAL '02:03' HOUR TO MINUTE", "t + v",
    "t - v", "d + v", "v + t", "v + v", "v - v", "v + INTERVAL '1' DAY", "v > INTERVAL '1' DAY",
    "INTERVAL '1' DAY + INTERVAL '1' DAY", "INTERVAL '1' DAY - INTERVAL '1' HOUR", "d - e > v",
    "INTERVAL '1' MONTH + INTERVAL '1' YEAR", "INTERVAL '1' MONTH < INTERVAL '1' YEAR",
    "make_ym_interval(i, y)", "make_ym_interval(i)", "make_ym_interval()", "make_ym_interval(i, NULL)",
    "make_dt_interval(i, y, i, c)", "make_dt_interval()", "make_dt_interval(1, 2)", "(d - e) * 2",
    "d + make_interval(0, i, y, 1)", "t + make_interval(1, i, y, i, i, y, c)", "d + make_ym_interval(1, y)",
    "t - make_interval(0, 1, 0, 1, 1, 1, 1.5)", "make_ym_interval(1, i) < make_ym_interval(i, 1)",
    "v * 2", "2 * v", "v * i", "v * x", "v * c", "v * 1.5", "v * f", "v / 3", "v / 1.7", "v / 1.7e0",
    "make_ym_interval(0, i) * 1.5", "make_ym_interval(0, i) / 2", "make_ym_interval(0, i) * x",
    "make_ym_interval(0, i) / 0.7e0", "i * make_ym_interval(0, i)", "-v", "-make_ym_interval(i)",
    "EXTRACT(YEAR FROM make_ym_interval(1, i))", "EXTRACT(MONTH FROM make_ym_interval(1, i))",
    *(f"EXTRACT({each} FROM v)" for each in ("DAY", "HOUR", "MINUTE", "SECOND")),
    "INTERVAL 3 DAYS 2 HOURS", "INTERVAL '3 days -2 hours'", "INTERVAL '-1-2' YEAR TO MONTH",
    "INTERVAL '100:04.000001' MINUTE TO SECOND", "INTERVAL '1.1234567' SECOND", "INTERVAL 5 MILLISECONDS",
    "INTERVAL '1 year 2 months'", "INTERVAL '+3' DAY", "INTERVAL 1 WEEK 1 DAY",
    "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND", "INTERVAL '1 02' DAY TO HOUR",
]  # fmt: skip


def test_intervals(spark: Any, rows: pa.Table) -> None:
    compare(spark, rows, INTERVALS)


FAIL = [
    "add_months(make_date(2024, 1, 1), 2147483647)",
    "next_day(make_date(2024, 1, 1), 'xx')",
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
