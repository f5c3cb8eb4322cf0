"""What the schema of events tells on Spark: names in any case, types, and what is not there.

Columns of all types are compared with constants of all kinds, and with each other: an event matches
exactly when ``filter`` keeps it, and what ``filter`` refuses is told.
"""

from __future__ import annotations

import itertools
import logging
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

import bittern
import bittern.spark
from bittern.errors import OptionError, SubscriptionError
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
COLUMNS = "b i l f d c w whole part day moment truth word ok dt ts tn bin l_i".split()  # noqa: SIM905
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
    return random.Random(7).sample(found, 400)  # every one of them was right once


def is_refused(events: Any, text: str) -> bool:
    try:
        events.filter(text)
    except AnalysisException:
        return True
    return False


def answers(events: Any, texts: list[str]) -> dict[str, set[int] | None]:
    """By expression, the events that ``filter`` keeps; None if it fails."""
    found: dict[str, set[int] | None] = {}
    for start in range(0, len(texts), 25):
        some = texts[start : start + 25]
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


def as_rows(spark: Any, texts: list[str]) -> Any:
    rows = [(str(at), text) for at, text in enumerate(texts)]
    return spark.createDataFrame(rows, "id string, expression string").coalesce(1)


def found_on_spark(events: Any, subscriptions: Any, texts: list[str], **options: Any) -> Any:
    """By expression, the events that match it on Spark."""
    options = {"event_id": "id", "explode": True, **options}
    found: dict[str, set[int]] = {text: set() for text in texts}
    for row in bittern.spark.match(events, subscriptions, **options).collect():
        found[texts[int(row.subscription)]].add(row.id)
    return found


def test_columns_of_all_types_and_constants_of_all_kinds(events: Any) -> None:
    texts, table = expressions(), events.toArrow()
    index = bittern.Index.build(dict(enumerate(texts)), schema=table.schema, on_error="skip")
    bad = {texts[each.id] for each in index.bad}
    unknown = {texts[each.id] for each in index.unknown}
    found: dict[str, set[int]] = {text: set() for text in texts}
    for row, ids in enumerate(bittern.Matcher(index).match(table).to_pylist()):
        for at in ids:
            found[texts[at]].add(row + 1)
    # What Spark refuses to compare is told, and nothing else.
    assert [text for text in unknown if not is_refused(events, text)] == []
    assert not any(found[text] for text in unknown)
    analyzed = [text for text in texts if text not in unknown]
    kept = answers(events, analyzed)
    # A constant that cannot be cast fails every query, so it is bad.
    assert [text for text in bad if kept[text] is not None] == []
    right = [text for text in analyzed if kept[text] is not None]
    assert len(right) > 150
    assert {text: found[text] for text in right} == {text: kept[text] for text in right}


SOME = [
    "d > '98'", "i IN ('98', ' 9 ')", "whole > 97", "whole IN (5, 98.0)", "c = '98.5'",
    "w < '100'", "dt = '2024-1-2'", "ts >= '2024-01-02'", "ok = 'yes'", "NOT truth", "i LIKE '9%'",
    "day = DATE '2024-02-29'", "bin = 'ab'", "whole = l", "part < d", "d = 'Infinity'",
    "WHOLE BETWEEN 1 AND 98.5", "lower(Whole) = 98", "I > '9' AND Word = 'ab'",
]  # fmt: skip


@pytest.mark.parametrize("shards", [None, 2])
def test_the_same_on_spark_where_the_schema_is_that_of_the_events(
    spark: Any, events: Any, shards: int | None, tmp_path: Any
) -> None:
    options = {"shards": shards, "store": str(tmp_path)}
    found = found_on_spark(events, as_rows(spark, SOME), SOME, **options)
    assert found == answers(events, SOME)


def test_a_constant_that_cannot_be_cast_is_bad(spark: Any, events: Any) -> None:
    subscriptions = as_rows(spark, ["ok AND d > 'abc'", "i = '1.5'", "i = '1'"])
    with pytest.raises(SubscriptionError) as refused:
        bittern.spark.match(events, subscriptions, event_id="id")
    assert [(bad.id, bad.position) for bad in refused.value.bad] == [("0", 11), ("1", 4)]
    assert "'abc' is compared as DOUBLE" in refused.value.bad[0].message


NESTED = """
    id int, Price double, `odd.Name` int, st struct<a: int, In: struct<Os: string>>,
    mp map<string, int>, ls array<struct<I: int>>
"""
NAMED = [
    "PRICE > 5", "price < 3", "PRICE > 5 AND price > 7", "ST.A = 1", "st.in.OS = 'x'",
    "St.In.Os = 'x' AND st.a = 1", "`ODD.NAME` = 1", "MP.k = 1", "mp.k = 1", "mp.K = 1",
    "upper(st.IN.os) = 'X'", "exists(LS, v -> v.i = 5)", "array_contains(ls.i, 5)",
    "MP['k'] + 1 = 2", "ID = 1 AND price > 0", "LS.I IS NOT NULL", "st.IN IS NOT NULL",
    "price * 2 > PRICE", "concat(st.in.os, 'a') = 'xa' AND concat(ST.in.os, 'A') = 'xA'",
]  # fmt: skip


@pytest.fixture(scope="module")
def nested(spark: Any) -> Any:
    rows = [
        (1, 6.0, 1, (1, ("x",)), {"k": 1}, [(5,)]),
        (2, 2.0, 2, (2, ("y",)), {"K": 1}, [(4,)]),
        (3, 8.0, None, (1, None), {}, []),
        (4, None, None, None, None, None),
    ]
    return spark.createDataFrame(rows, NESTED).cache()


@pytest.mark.parametrize("shards", [None, 2])
def test_names_are_found_in_any_case(
    spark: Any, nested: Any, shards: int | None, tmp_path: Any
) -> None:
    options = {"shards": shards, "store": str(tmp_path)}
    found = found_on_spark(nested, as_rows(spark, NAMED), NAMED, **options)
    assert found == answers(nested, NAMED)


def test_case_counts_where_the_session_says_so(spark: Any, nested: Any) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        texts = [
            "PRICE > 5",
            "Price > 5",
            "st.In.Os = 'x'",
            "st.in.os = 'x'",
            "upper(st.IN.os) = 'X'",
        ]
        found = found_on_spark(nested, as_rows(spark, texts), texts)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert list(found.values()) == [set(), {1, 3}, {1}, set(), set()]


def test_names_are_found_in_any_case_by_an_index_a_function_and_a_pipeline_of_views(
    spark: Any, nested: Any, tmp_path: Any
) -> None:
    texts = ["PRICE > 5", "st.in.OS = 'x'", "MP.k = 1"]
    right = answers(nested, texts)
    index = bittern.Index.build({str(at): text for at, text in enumerate(texts)})
    assert found_on_spark(nested, index, texts) == right
    bittern.spark.register(spark, index, "in_any_case")
    nested.createOrReplaceTempView("nested_events")
    rows = spark.sql("SELECT id, explode(in_any_case(struct(*))) AS s FROM nested_events").collect()
    assert {(texts[int(row.s)], row.id) for row in rows} == {
        (text, id_) for text, ids in right.items() for id_ in ids
    }
    catalog = bittern.Catalog(str(tmp_path / "c.db"))
    for at, text in enumerate(texts):
        catalog.add(str(at), text)
    for consistency in ("snapshot", "eventual"):
        options = {"consistency": consistency, "store": str(tmp_path / "store")}
        assert found_on_spark(nested, catalog, texts, **options) == right
    texts = ["EXISTS d (d.PRICE > price)", "EXISTS d (d.Id = ID)"]
    rows = as_rows(spark, texts)
    history = spark.createDataFrame([(1, 7.0)], "iD int, pRICE double")
    assert found_on_spark(nested, rows, texts, history=history) == {texts[0]: {1, 2}, texts[1]: {1}}


def test_fields_that_differ_only_in_case(spark: Any) -> None:
    """Spark finds ``s.a`` ambiguous. Here a name that is there exactly is meant, and no other."""
    events = spark.sql("SELECT 1 AS id, named_struct('ab', 1, 'AB', 2) AS s")
    texts = ["s.ab = 1", "s.AB = 2", "S.ab = 1", "s.Ab = 1 OR s.Ab = 2"]
    assert all(is_refused(events, text) for text in texts)
    found = found_on_spark(events, as_rows(spark, texts), texts)
    assert list(found.values()) == [{1}, {1}, {1}, set()]


def test_what_the_events_do_not_have_is_told(
    spark: Any, events: Any, nested: Any, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["wrd = 'x'", "WORD = 'x'", "dt > 5", "lower(mment) = 'x' OR i > 5"]
    subscriptions = as_rows(spark, texts)
    with caplog.at_level(logging.WARNING, "bittern"):
        bittern.spark.match(events, subscriptions, event_id="id")
    (told,) = [message for message in caplog.messages if "cannot have" in message]
    assert told == (
        "bittern: 3 subscription(s) ask for what the events cannot have: the events have no wrd: "
        "did you mean word?; dt is DATE, and is never compared with a number; the events have no "
        "mment: did you mean moment?"
    )
    with pytest.raises(SubscriptionError, match="did you mean word") as refused:
        bittern.spark.match(events, subscriptions, event_id="id", unknown="raise")
    assert [bad.id for bad in refused.value.bad] == ["0", "2", "3"]
    assert refused.value.bad[2].position == 6
    built = bittern.spark.build(subscriptions, schema=events.schema)
    assert built.n_unknown == 3
    assert [row.attribute for row in built.unknown.collect()] == ["wrd", "dt", "mment"]
    assert bittern.spark.build(subscriptions, schema=nested.schema).n_unknown == 0  # it has a map
    with pytest.raises(OptionError, match="unknown must be"):
        bittern.spark.build(subscriptions, schema=events.schema, unknown="perhaps")


def test_what_an_index_asks_for_in_vain_is_told(
    events: Any, caplog: pytest.LogCaptureFixture
) -> None:
    index = bittern.Index.build({"s": "wrd = 'x' AND I > 5"})
    with caplog.at_level(logging.WARNING, "bittern"):
        bittern.spark.match(events, index, event_id="id", unknown="ignore")
        assert not [message for message in caplog.messages if "cannot have" in message]
        bittern.spark.match(events, index, event_id="id")
    (told,) = [message for message in caplog.messages if "cannot have" in message]
    assert told.endswith("the events have no wrd: did you mean word?")
    with pytest.raises(OptionError, match="did you mean word"):
        bittern.spark.match(events, index, event_id="id", unknown="raise")


def test_texts_that_spark_does_not_compare_by_their_bytes(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Those with a collation, in any form of predicate; and CHAR(n), which Spark pads."""
    padded = {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
    events = spark.sql(
        "SELECT id, b, b COLLATE UTF8_LCASE AS c, upper(b) COLLATE UNICODE_CI AS u, "
        "named_struct('s', b COLLATE UTF8_LCASE) AS st, rpad(b, 3, ' ') AS p "
        "FROM VALUES (1, 'a'), (2, 'A'), (3, 'č'), (4, 'ab'), (5, NULL) AS (id, b)"
    )
    events = events.withMetadata("p", padded).cache()
    texts = [
        "c = 'A'",
        "C != 'A'",
        "NOT (c IN ('A', 'X') OR id = 3)",
        "c BETWEEN 'A' AND 'B' AND b != 'A'",
        "startswith(c, 'A') OR c <=> NULL",
        "c LIKE '_B'",
        "st.s = 'A'",
        "u = 'Ab'",
        "u < c COLLATE UNICODE_CI OR c IS NULL",
        "p = 'a '",
        "c = 'A' COLLATE UTF8_BINARY OR contains(c, 'B' COLLATE UTF8_BINARY)",
        "length(c) = 1 AND lower(b) = 'a'",
    ]
    kept = {text: {row.id for row in events.where(text).collect()} for text in texts}
    assert kept["c = 'A'"] == {1, 2}
    assert found_on_spark(events, as_rows(spark, texts), texts) == kept
    index = bittern.Index.build({"s": "st.s = 'A'"})
    with caplog.at_level(logging.WARNING, "bittern"):
        bittern.spark.match(events, index, event_id="id")
    (told,) = [message for message in caplog.messages if "cannot have" in message]
    assert told.endswith("Spark does not compare st.s by its bytes, and this index does")
