"""The grammar beside Spark's: each text says of every row what Spark says."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import bittern
from bittern.errors import SubscriptionError

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("bin", pa.binary()),
        ("s", pa.string()),
        ("n", pa.int64()),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("x", pa.float64()),
    ]
)


def _utc(*fields: int) -> dt.datetime:
    return dt.datetime(*fields, tzinfo=dt.UTC)  # type: ignore[arg-type,misc]


ROWS: list[tuple[Any, ...]] = [
    (b"abc", "abc", 5, True, _utc(2024, 3, 31, 1, 30), dt.date(2024, 1, 1), 1.5),
    (b"\x01\xaf", "ABC", 4, False, _utc(2024, 1, 1), dt.date(2024, 2, 29), 2.5),
    (b"\xff\xfe", "xaz", 6, None, _utc(2023, 12, 31, 23), dt.date(2023, 12, 31), None),
    (None, None, None, None, None, None, None),
    (b"", "", 5, True, _utc(2024, 1, 1, 5), dt.date(2024, 1, 2), 0.0),
    ("é".encode(), "É", -5, False, _utc(1970, 1, 1), dt.date(1970, 1, 1), -1.0),
]
TABLE = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS], SCHEMA)
TEXTS = [
    "bin = X'1AF'",
    "bin = X'01AF'",
    "bin = x'01af'",
    "bin = X'616263'",
    "X'1AF' = bin",
    "bin = X''",
    "bin IN (X'616263', X'00')",
    "bin BETWEEN X'61' AND X'62'",
    "bin > X'61'",
    "bin IS NULL",
    "length(bin) = 3",
    "concat(bin, X'00') = X'61626300'",
    "hex(bin) = '616263'",
    "bin = CAST('abc' AS BINARY)",
    "bin = X'61' || X'6263'",
    "bin <=> X'616263'",
    "bin IS DISTINCT FROM X'616263'",
    "s LIKE X'6125'",
    "coalesce(bin, X'00') = X'00'",
    "s COLLATE UTF8_LCASE = 'Abc'",
    "s = 'Abc' COLLATE UTF8_LCASE",
    "s COLLATE UTF8_BINARY = 'abc'",
    "s = 'abc' COLLATE UTF8_BINARY",
    "collate(s, 'UTF8_LCASE') = 'aBc'",
    "s COLLATE UTF8_LCASE IN ('ABC', 'Z')",
    "s COLLATE UTF8_LCASE LIKE 'A%'",
    "s COLLATE UTF8_LCASE BETWEEN 'A' AND 'B'",
    "s COLLATE UTF8_LCASE < 'ABD'",
    "contains(s COLLATE UTF8_LCASE, 'B')",
    "startswith(s COLLATE UTF8_LCASE, 'A')",
    "s COLLATE UTF8_LCASE = 'é'",
    "s LIKE ANY ('a%', '%z')",
    "s LIKE SOME ('a%', '%z')",
    "s LIKE ALL ('a%', '%c')",
    "s NOT LIKE ANY ('a%', '%z')",
    "s NOT LIKE ALL ('a%', '%z')",
    "s ILIKE ANY ('A%', '%Z')",
    "s ILIKE ALL ('A%', '%C')",
    "s NOT ILIKE ANY ('A%', '%Z')",
    "s NOT ILIKE ALL ('A%', '%Z')",
    "s LIKE ANY ('a%', NULL)",
    "s LIKE ALL ('a%', NULL)",
    "s NOT LIKE ANY ('a%', NULL)",
    "'Zeta' NOT LIKE ANY ('%e%', 'z%')",
    "initcap('zeta') NOT ILIKE SOME ('%e%', 'y%')",
    "'Zeta' NOT LIKE ALL ('%e%', 'z%')",
    "'Zeta' NOT LIKE ALL ('%x%', 'z%')",
    "NOT (s NOT LIKE ANY ('a%', '%z'))",
    "s LIKE ANY (s, 'q')",
    "s LIKE ANY ('a%')",
    "s ILIKE 'ab_'",
    "s NOT ILIKE 'AB_'",
    "s ILIKE 'É'",
    "s LIKE 'a!%' ESCAPE '!'",
    "REGEXP_LIKE(s, '^a')",
    "regexp_like(s, 'A')",
    "regexp(s, 'a.c')",
    "rlike(s, 'z$')",
    "s REGEXP 'b'",
    "s RLIKE NULL",
    "n IS DISTINCT FROM 5",
    "n IS NOT DISTINCT FROM 5",
    "n IS DISTINCT FROM NULL",
    "n IS NOT DISTINCT FROM NULL",
    "n IS DISTINCT FROM x",
    "b IS UNKNOWN",
    "b IS NOT UNKNOWN",
    "(n > 4) IS UNKNOWN",
    "(n > 4) IS NOT TRUE",
    "b IS TRUE",
    "b IS NOT FALSE",
    "n IS UNKNOWN",
    "!b",
    "! b AND n = 4",
    "!(n = 5)",
    "NOT !b",
    "n !< 5",
    "n !> 5",
    "!n < 5",
    "n != 5",
    "n <> 5",
    "n == 5",
    "DATE '2024' = day",
    "day = DATE '2024'",
    "day = DATE '2024-1-1'",
    "day = DATE '2024-01'",
    "day = DATE 'epoch'",
    "t = TIMESTAMP ' Epoch'",
    "day = DATE '2024-2-29'",
    "day = DATE '+2024-01-01'",
    "day > DATE '1969-12-31T10:00'",
    "t = TIMESTAMP '2024-01-01 00:00:00'",
    "t = TIMESTAMP '2024-1-1'",
    "t = TIMESTAMP '2024'",
    "t = TIMESTAMP '2024-01-01 0:0:0'",
    "t = TIMESTAMP '2024-01-01T00:00:00Z'",
    "t = TIMESTAMP '2024-01-01 01:00:00 Europe/Paris'",
    "t = TIMESTAMP '2024-03-31 03:30:00 Europe/Paris'",
    "t = TIMESTAMP '2024-03-31 02:30:00 Europe/Paris'",
    "t = TIMESTAMP '2023-12-31 19:00:00 America/New_York'",
    "t = TIMESTAMP '2024-01-01 00:00:00 UTC+0'",
    "t = TIMESTAMP '2024-01-01 01:00:00+01'",
    "t = TIMESTAMP '2024-01-01 01:00:00 +1:00'",
    "t = TIMESTAMP '2024-01-01 01:00:00 GMT+1'",
    "t = TIMESTAMP '2023-12-31 19:00:00 EST'",
    "t = TIMESTAMP '2023-12-31 16:00:00 PST'",
    "t = TIMESTAMP_LTZ '2024-01-01 00:00:00'",
    "t = TIMESTAMP_LTZ '2024-01-01 01:00:00 Europe/Paris'",
    "t = TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "t = TIMESTAMP_NTZ '2024-01-01 00:00:00 Europe/Paris'",
    "t = TIMESTAMP '2024-01-01 00:00:00.000000'",
    "t >= TIMESTAMP '1970-01-01 00:00:00.0000001'",
    "s = 'a' 'b' 'c'",
    "s = 'a' \"bc\"",
    "s IN ('a' 'bc', 'x')",
    "s LIKE 'a' '%'",
    "s = 'ab' -- a comment",
    "n = 5 -- five",
    "n = 5 /* five */ AND s = 'abc'",
    "n = 5 -- not AND n = 4",
    "n = 5 AND -- first\n s = 'abc'",
    "(n) = (5)",
    "((n)) > ((4))",
    "(n) IN ((4), (5))",
    "(n) BETWEEN (4) AND (5)",
    "(s) LIKE ('a%')",
    "(s) RLIKE ('a')",
    "(b)",
    "((b) AND (n = 5))",
    "NOT (b)",
    "(n) IS NULL",
    "(n + (1)) * (2) = (12)",
    "(s) IN ('abc')",
    "n IN (4, (5))",
    "CASE WHEN (b) THEN (n) ELSE (0) END = (5)",
    "(CAST((n) AS INT)) = 5",
    "(DATE '2024-01-01') = day",
    "-(n) = -5",
    "- n = -5",
    "+n = 5",
    "- -n = 5",
    "n - -1 = 6",
    "n -1 = 4",
    "n-1 = 4",
    "n =5",
    "n=-5",
    "bin = s",
    "s = bin",
    "s = X'616263'",
    "n = /* nested /* comment */ */ 5",
    "s COLLATE UTF8_LCASE IS NULL",
]
#: What both refuse.
REFUSED = [
    "X'1G' = bin",
    "s LIKE ANY ()",
    "day = DATE '2024-02-30'",
    "t = TIMESTAMP '2024-01-01 00:00:00 Nowhere/Land'",
    "t > TIMESTAMP '2024-01-01 25:00:00'",
    "s COLLATE nonsense = 'a'",
    "s COLLATE 'UTF8_LCASE' = 'a'",
    "s COLLATE UTF8_LCASE = 'a' COLLATE UTF8_BINARY",
    "n = 5 /* open",
    "n IN ()",
    "n BETWEEN 1",
]


def test_texts_say_what_spark_says(spark: Any) -> None:
    columns = [f"({text}\n) AS c{number}" for number, text in enumerate(TEXTS)]
    theirs = spark.createDataFrame(TABLE).coalesce(1).selectExpr(*columns).toArrow().columns
    catalog = {}
    for number, text in enumerate(TEXTS):
        catalog[number] = text
        catalog[-1 - number] = f"NOT ({text}\n)"
    matched = bittern.Matcher(bittern.Index.build(catalog)).match(TABLE).to_pylist()
    wrong = []
    for number, (text, column) in enumerate(zip(TEXTS, theirs, strict=True)):
        ours = [True if number in ids else False if -1 - number in ids else None for ids in matched]
        if ours != column.to_pylist():
            wrong.append((text, f"Spark {column.to_pylist()}", f"we {ours}"))
    assert not wrong


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse(spark: Any, text: str) -> None:
    with pytest.raises(SubscriptionError):
        bittern.Index.build({"s": text})
    with pytest.raises(Exception):  # noqa: B017, PT011  of whatever class
        spark.createDataFrame(TABLE).selectExpr(text).collect()
