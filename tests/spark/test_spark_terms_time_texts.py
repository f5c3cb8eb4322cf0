"""Patterns of dates: what Spark writes and reads by them is written and read here."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from times_beside_spark import compare, edges

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return edges()


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
        "2024-02-29 23:59:59.5", "", "x", "02024-02-29 00:00:00",
        "\uff12\uff10\uff12\uff14-02-29 00:00:00",
    ],
    "yyyyMMdd": ["20240229", "20230229", "2024022", "202402290", "00010101", "2024 229"],
    "d/M/yy": ["1/2/24", "29/02/2023", "29/02/23", "29/2/24", "0031/1/99", "0/1/24"],
    "ddMMyyyy": ["01022024", "29022024", "31042024", "1022024", "290220241"],
    "HHmmss": ["235959", "23595", "2359590"],
    "yyyyMMddHHmmss.SSS": ["20240229235959.123", "20240229235959.1234", "20240229235959"],
    "yyyyDDD": ["2024366", "2023366", "20241"],
    "HHmmssSSS": ["235959123", "2359591", "235959"],
    "MMddyy": ["022924", "0229240", "22924"],
    "dMM": ["129", "2902", "0102", "12"],
    "yMM": ["2024", "202402", "402"],
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
    "MMM d, yyyy": ["Feb 29, 2024", "FEB 29, 2024", "feb 29, 2023", "Febr 29, 2024",
        "Sept 1, 2024"],
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
    "yyyy-MM-dd HH:mm:ssX": ["2024-02-29 00:00:00+01", "2024-02-29 00:00:00+0130",
        "2024-02-29 00:00:00Z"],
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
