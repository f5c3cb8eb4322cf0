"""What the schema of events tells on Spark: names in any case, types, and what is not there.

Columns of all types are compared with constants of all kinds, and with each other: an event matches
exactly when ``filter`` keeps it, and what ``filter`` refuses is told.
"""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

import bittern
import bittern.spark
from bittern.spark.terms.columns import fails

pytestmark = pytest.mark.spark

SCHEMA = """
    id int, b tinyint, i int, l bigint, f float, d double, c decimal(10, 2), w decimal(30, 4),
    whole string, part string, day string, moment string, truth string, word string, ok boolean,
    dt date, ts timestamp, tn timestamp_ntz, bin binary, l_i array<int>
"""
ROWS = [
    (
        1, 98, 98, 98, 98.0, 98.0, Decimal("98.00"), Decimal("98.0000"), "98", "98.0", "2024-01-01",
        "2024-01-01 00:00:00", "true", "ab", True, date(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1), b"ab", [1],
    ),
    (
        2, 99, 99, 3_000_000_000, 98.5, 98.5, Decimal("98.50"), Decimal("98.5001"), " 99 ", "98.5",
        "2024-1-2", "2024-01-02 10:00", "no", "98", False, date(2024, 1, 2),
        datetime(2024, 1, 2, 10, tzinfo=UTC), datetime(2024, 1, 2, 10), b"98", [],
    ),
    (
        3, -1, 0, -5, 0.1, 0.1, Decimal("0.10"), Decimal("12345678901234567890.1234"), "-5", "1e2",
        "2023-12-31", "2023-12-31 23:59:59.5", "f", "", None, date(2023, 12, 31),
        datetime(2023, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), datetime(2023, 12, 31, 23, 59),
        b"", None,
    ),
    (
        4, 9, 9, 9, float("nan"), float("inf"), Decimal("9.99"), Decimal("9.9999"), "3000000000",
        "NaN", "2024-02-29", "2024-02-29", "T", "true", True, date(2024, 2, 29),
        datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 2, 29), b"\x00", [9],
    ),
    (5, *(None for _ in range(19))),
]  # fmt: skip
COLUMNS = [
    part.split()[0] for part in SCHEMA.replace("(10, 2)", "").replace("(30, 4)", "").split(",")
]
#: By kind, two constants that columns of strings can be compared with.
CONSTANTS = {
    "whole": ("98", "99"),
    "large": ("3000000000", "-5"),
    "decimal": ("98.5", "0.10"),
    "float": ("98.5e0", "1e-1"),
    "text": ("'98'", "'99'"),
    "fraction": ("'98.5'", "' 0.1 '"),
    "odd": ("'NaN'", "'Infinity'"),
    "day": ("'2024-01-01'", "'2024-1-2'"),
    "yes": ("'yes'", "'F'"),
    "truth": ("TRUE", "FALSE"),
    "date": ("DATE '2024-01-01'", "DATE '2024-01-02'"),
    "time": ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-02 10:00:00'"),
    "null": ("NULL", "NULL"),
}
FORMS = [
    "{c} > {x}", "{c} = {x}", "{x} <= {c}", "{c} != {y}", "{c} <=> {x}", "{c} IN ({x}, {y})",
    "{c} NOT IN ({x})", "{c} BETWEEN {x} AND {y}", "NOT {c} BETWEEN {x} AND {y}",
]  # fmt: skip
PATTERNS = ["{c} LIKE '9%'", "{c} NOT LIKE '%0'", "{c} RLIKE '[0-9]{{2}}'", "startswith({c}, '9')"]


def expressions() -> list[str]:
    """Every column with constants of every kind, by a few operators each, and with others."""
    found = []
    for at, (column, kind) in enumerate(itertools.product(COLUMNS, CONSTANTS)):
        x, y = CONSTANTS[kind]
        chosen = {FORMS[(at + step) % len(FORMS)] for step in (0, 2, 5)}
        found += [form.format(c=column, x=x, y=y) for form in sorted(chosen)]
    for column in COLUMNS:
        found += [form.format(c=column) for form in PATTERNS]
    for at, (one, other) in enumerate(itertools.combinations(COLUMNS, 2)):
        found.append(f"{one} > {other}" if at % 2 else f"{other} = {one}")
    found += ["whole IN (5, 6.5)", "part IN (98.5, 5)", "whole IN (1, NULL)", "NOT truth"]
    found += ["lower(whole) > 5", "whole BETWEEN 1 AND 98.5", "i + 1 = '99'", "ok OR i = '9'"]
    found += ["CASE WHEN whole > 97 THEN ok END", "whole > 5 AND (i = '98' OR NOT d < '98')"]
    return found


def is_refused(events: Any, text: str) -> bool:
    try:
        events.filter(text)
    except AnalysisException:
        return True
    return False


def answers(events: Any, texts: list[str]) -> dict[str, set[int] | None]:
    """By expression, the events that ``filter`` keeps; None if it fails."""
    found: dict[str, set[int] | None] = {}
    for start in range(0, len(texts), 100):
        some = texts[start : start + 100]
        columns = []
        for at, text in enumerate(some):
            failing = fails((text,))
            columns += [f"{failing} AS f{at}", f"IF({failing}, NULL, {text}) AS e{at}"]
        rows = events.selectExpr("id", *columns).collect()
        for at, text in enumerate(some):
            is_failing = any(row[f"f{at}"] for row in rows)
            found[text] = None if is_failing else {row.id for row in rows if row[f"e{at}"]}
    return found


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1).cache()


def found_by_us(spark: Any, events: Any, texts: list[str]) -> tuple[Any, dict[str, set[int]]]:
    subscriptions = spark.createDataFrame(
        [(str(at), text) for at, text in enumerate(texts)], "id string, expression string"
    ).coalesce(1)
    built = bittern.spark.build(subscriptions, schema=events.schema)
    matches = bittern.spark.match(events, built, event_id="id", explode=True).collect()
    found: dict[str, set[int]] = {text: set() for text in texts}
    for row in matches:
        found[texts[int(row.subscription)]].add(row.id)
    return built, found


def test_columns_of_all_types_and_constants_of_all_kinds(spark: Any, events: Any) -> None:
    texts = expressions()
    built, found = found_by_us(spark, events, texts)
    bad = {texts[int(row.id)] for row in built.bad.collect()}
    unknown = {texts[int(row.id)] for row in built.unknown.collect()}
    # What Spark refuses to compare is told, and nothing else.
    assert [text for text in unknown if not is_refused(events, text)] == []
    assert not any(found[text] for text in unknown)
    analyzed = [text for text in texts if text not in unknown]
    kept = answers(events, analyzed)
    # A constant that cannot be cast fails every query, so it is bad.
    assert [text for text in bad if kept[text] is not None] == []
    right = [text for text in analyzed if kept[text] is not None]
    assert len(right) > 300
    assert {text: found[text] for text in right} == {text: kept[text] for text in right}
    # The same without Spark.
    table = events.toArrow()
    index = bittern.Index.build(dict(enumerate(texts)), schema=table.schema, on_error="skip")
    assert {texts[each.id] for each in index.unknown} == unknown
    assert {texts[each.id] for each in index.bad} == bad
    embedded: dict[str, set[int]] = {text: set() for text in texts}
    for row, ids in enumerate(bittern.Matcher(index).match(table).to_pylist()):
        for at in ids:
            embedded[texts[at]].add(row + 1)
    assert {text: embedded[text] for text in right} == {text: kept[text] for text in right}
