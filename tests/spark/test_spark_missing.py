"""``a IS MISSING`` on Spark, where the JVM leaves out what no subscription mentions."""

from __future__ import annotations

from typing import Any

import pytest

import bittern
import bittern.spark
from bittern.spark.attributes import project

pytestmark = pytest.mark.spark

PATHS = ("a", "a.b", "a.b.c", "k", "m.k", "z", "id")
CATALOG = {path: f"{path} IS MISSING" for path in PATHS}
CATALOG |= {f"{path} there": f"{path} IS NOT MISSING AND {path} IS NULL" for path in PATHS}
INDEX = bittern.Index.build(CATALOG)
#: Columns beside ``id``, and the missing paths of each row.
FRAMES: dict[str, tuple[str, list[Any], list[str]]] = {
    "no column": ("z int", [(1,), (None,)], ["a a.b a.b.c k m.k"] * 2),
    "a column": ("a int", [(1,), (None,)], ["a.b a.b.c k m.k z"] * 2),
    "a wide struct": (
        "a struct<b: struct<c: int, d: int>, e: string>",
        [(((1, 2), "x"),), ((None, "x"),), (None,)],
        ["k m.k z"] * 3,
    ),
    "another struct": ("a struct<e: int>", [((1,),), (None,)], ["a.b a.b.c k m.k z"] * 2),
    "an array": ("a array<struct<b: int>>", [([(1,)],), ([],), (None,)], ["k m.k z"] * 3),
    "a map": (
        "m map<string, int>",
        [({"k": 1},), ({"k": None},), ({"a": 1},), ({},), (None,)],
        [
            "a a.b a.b.c z",
            "a a.b a.b.c z",
            "a.b a.b.c k m.k z",
            "a a.b a.b.c k m.k z",
            "a a.b a.b.c k z",
        ],
    ),
    "a column beside a map": (
        "a int, m map<string, int>",
        [(None, {"a": 1}), (1, None)],
        ["a.b a.b.c k m.k z", "a.b a.b.c k z"],
    ),
}
TEXTS = [
    ('{"a": null}', "k m.k z"),
    ('{"a": {"b": null}}', "k m.k z"),
    ('{"a": {"b": 5}}', "a.b.c k m.k z"),
    ('{"a": 5, "k": null}', "a.b a.b.c m.k z"),
    ('{"m": {"k": null}, "z": 1}', "a a.b a.b.c k"),
    (None, "a a.b a.b.c k m.k z"),
]


def missing(found: Any) -> list[list[str]]:
    rows = sorted((row.id, row.subscriptions) for row in found.collect())
    return [sorted(each for each in own if each in PATHS) for _, own in rows]


def right(rows: list[str]) -> list[list[str]]:
    return [sorted(row.split()) for row in rows]


def with_ids(spark: Any, schema: str, rows: list[Any]) -> Any:
    numbered = [(number, *row) for number, row in enumerate(rows)]
    return spark.createDataFrame(numbered, f"id int, {schema}")


@pytest.mark.parametrize("name", FRAMES)
def test_columns(spark: Any, name: str) -> None:
    schema, rows, expected = FRAMES[name]
    events = with_ids(spark, schema, rows)
    found = bittern.spark.match(events, INDEX, event_id="id")
    assert missing(found) == right(expected)
    embedded = bittern.Matcher(INDEX).match(events.toArrow()).to_pylist()
    assert sorted((row.id, sorted(row.subscriptions)) for row in found.collect()) == [
        (number, sorted(own)) for number, own in enumerate(embedded)
    ]


@pytest.mark.parametrize("form", ["json", "variant"])
def test_documents(spark: Any, form: str) -> None:
    events = with_ids(spark, "doc string", [(text,) for text, _ in TEXTS])
    if form == "variant":
        events = events.selectExpr("id", "parse_json(doc) AS doc")
    json = "doc" if form == "json" else ()
    found = bittern.spark.match(events, INDEX, event_id="id", json=json)
    assert missing(found) == right([paths for _, paths in TEXTS])


def test_a_column_beside_a_document_decides(spark: Any) -> None:
    events = with_ids(spark, "a int, doc string", [(1, '{"a": {"b": 2}, "k": 1}')])
    found = bittern.spark.match(events, INDEX, event_id="id", json="doc")
    assert missing(found) == right(["a.b a.b.c m.k z"])
    wishes = {"inside": "a.b = 2", "beside": "k = 1"}
    [row] = bittern.spark.match(
        events, bittern.Index.build(wishes), event_id="id", json="doc"
    ).collect()
    assert row.subscriptions == ["beside"]


def test_what_cannot_cross_is_there(spark: Any) -> None:
    events = spark.sql(
        "SELECT 0 AS id, INTERVAL '1' YEAR AS a, struct(INTERVAL '1' YEAR AS k, 5 AS x) AS m "
        "UNION ALL SELECT 1, NULL, NULL"
    )
    wishes = {
        "missing": "a IS MISSING OR m.k IS MISSING",
        "null": "a IS NULL AND m.k IS NULL",
        "there": "a IS NOT NULL AND m.k IS NOT NULL AND m.x = 5",
        "inside": "a.b IS MISSING AND m.z IS MISSING",
    }
    found = bittern.spark.match(events, bittern.Index.build(wishes), event_id="id")
    rows = {row.id: sorted(row.subscriptions) for row in found.collect()}
    assert rows == {0: ["inside", "there"], 1: ["inside", "null"]}


def test_only_what_is_asked_for_crosses(spark: Any) -> None:
    events = with_ids(spark, "a struct<b: int, c: int>, z int", [((1, 2), 3)])
    index = bittern.Index.build({"s": "a.b IS MISSING"})
    crossing = project(events, ["id"], index.rank.attribute_names(), [])
    assert crossing.schema.simpleString() == "struct<id:int,a:struct<b:int>>"


def test_shards(spark: Any, tmp_path: Any) -> None:
    events = with_ids(spark, "doc string", [(text,) for text, _ in TEXTS])
    wishes = CATALOG | {f"k{number}": f"k = {number}" for number in range(200)}
    built = bittern.spark.build(
        spark.createDataFrame(list(wishes.items()), "id string, expression string"),
        shards=3,
        store=str(tmp_path / "store"),
    )
    found = bittern.spark.match(events, built, event_id="id", json="doc")
    assert missing(found) == right([paths for _, paths in TEXTS])


def test_a_sql_function(spark: Any) -> None:
    events = with_ids(spark, "a struct<b: int>, m map<string, int>", [((None,), {}), (None, None)])
    events.createOrReplaceTempView("missing_events")
    bittern.spark.register(spark, INDEX, "missing_match")
    found = spark.sql(
        "SELECT id, missing_match(struct(id, a, m)) AS subscriptions FROM missing_events"
    )
    assert missing(found) == right(["a.b.c k m.k z", "a.b.c k z"])
