"""Terms on Spark: computed by the JVM, so an event matches exactly when ``filter`` keeps it.

``filter`` itself fails where a term does, so what is compared with it does not fail; what becomes
of rows that do is told by hand.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import bittern
import bittern.spark
from bittern.errors import OptionError, SubscriptionError
from bittern.spark.attributes import project
from bittern.spark.terms.planning import PlansOfStream
from spark_jobs import terms
from steady import PATIENCE

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    return spark.createDataFrame(terms.rows(200), terms.SCHEMA).cache()


@pytest.fixture(scope="module", autouse=True)
def _functions(spark: Any) -> None:
    spark.udf.register("backwards", lambda text: None if text is None else text[::-1], "string")
    spark.udf.register("plus_one", lambda number: None if number is None else number + 1, "int")
    spark.udf.register("dice", F.udf(lambda: 4, "int").asNondeterministic())


#: These only this session knows.
OWN = [
    "backwards(brand) = 'emcA'",
    "length(backwards(upper(brand))) > quantity",
    "plus_one(quantity) > plus_one(plus_one(`odd.name`))",
    "CAST(backwards(code) AS STRING) = code",
]
EXPRESSIONS = [*terms.EXPRESSIONS, *OWN]


def compare(expressions: list[str], found: list[set[int]], kept: list[set[int]]) -> None:
    assert not terms.differences(expressions, found, kept)


def test_terms_match_as_filter_does(spark: Any) -> None:
    expressions = [*EXPRESSIONS, *terms.random_expressions(20)]
    found = terms.match_beside_filter(spark, expressions)
    assert found["rejected"] == [None]
    assert not found["differences"]
    assert found["n_kept"] > len(expressions) // 2


def in_order_of_keys(text: str) -> bool:
    """Whether it depends on the order of a map's keys, which mappings need not have."""
    return "map_keys(extra)[0]" in text or "get(map_keys(extra), 0)" in text


def test_all_forms_of_events_match_as_filter_does(events: Any) -> None:
    """Without Spark, what is known without it; JSON has neither times nor decimals."""
    texts = [*terms.EXPRESSIONS, *terms.random_expressions(80)]
    texts = [text for text in texts if not in_order_of_keys(text)]
    kept = dict(enumerate(terms.kept_by_filter(events, texts)))
    table, mappings = events.toArrow(), terms.mappings(200)
    index = bittern.Index.build(dict(enumerate(texts)), on_error="skip", schema=table.schema)
    assert len(index) > 100
    assert all("there is no function" in bad.message for bad in index.bad)
    matcher = bittern.Matcher(index)
    found = {
        "columns": matcher.match(table),
        "structs": matcher.match(table.to_struct_array()),
        "mappings": matcher.match(mappings),
    }
    with bittern.LiveMatcher(schema=table.schema) as live:
        live.subscribe_many({at: texts[at] for at in index.ids.to_pylist()})
        found["live"] = live.match(table)
    answers = {form: each.to_pylist() for form, each in found.items()}
    answers["one by one"] = [matcher.match(event).to_pylist()[0] for event in mappings[:20]]
    in_json = [{**event, "cost": None, "day": None, "seen": None} for event in mappings]
    answers["json"] = matcher.match([json.dumps(event) for event in in_json]).to_pylist()
    for form, own in answers.items():
        here = set(range(len(own)))
        for at in index.ids.to_pylist():
            if form == "json" and any(name in texts[at] for name in ("cost", "day", "seen")):
                continue
            same = {row for row, ids in enumerate(own) if at in ids} == kept[at] & here
            assert same, f"{form}: {texts[at]}"


def test_terms_in_shards(spark: Any, events: Any, tmp_path: Any) -> None:
    expressions = EXPRESSIONS * 3
    built = bittern.spark.build(
        terms.frame_of(spark, expressions), sample=events, shards=3, store=str(tmp_path)
    )
    assert built.n_bad == 0
    found = bittern.spark.match(events, built, event_id="id", explode=True)
    compare(
        expressions,
        terms.matched(found, len(expressions)),
        terms.kept_by_filter(events, expressions),
    )
    gathered = bittern.spark.match(events, built, event_id="id").collect()
    assert len(gathered) == 200
    told = bittern.spark.plan(built, events=events, event_id="id")
    assert "quantity" in (told.left_out or ())  # only terms read it


def test_terms_in_a_stream(spark: Any, events: Any, tmp_path: Any) -> None:
    events.write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema(events.schema).parquet(f"{tmp_path}/in")
    built = bittern.spark.build(terms.frame_of(spark, EXPRESSIONS))
    query = (
        bittern.spark.match(stream, built, event_id="id", explode=True)
        .writeStream.format("memory")
        .queryName("found_by_terms")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE)
    found = terms.matched(spark.table("found_by_terms"), len(EXPRESSIONS))
    compare(EXPRESSIONS, found, terms.kept_by_filter(events, EXPRESSIONS))


def test_only_terms_cross(spark: Any, events: Any) -> None:
    index = bittern.Index.build(
        {"a": "lower(brand) = 'x' AND price * 2 > quantity", "b": "size(tags) > 1"},
        functions="spark",
    )
    crossing = project(events, ["id"], index.rank.attribute_names(), []).columns
    assert [name for name in crossing if not name.startswith("\1")] == ["id", "extra"]
    assert len(crossing) == 2 + 3 + 1  # a map may hold any attribute, but no term reads it


# -- rows that fail ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def failing(spark: Any) -> Any:
    data = [(1, 6, 3, "7"), (2, 6, 0, "7"), (3, 2**31 - 1, 1, "x"), (4, None, 0, None)]
    return spark.createDataFrame(data, "id int, a int, b int, t string")


def found_in(events: Any, subscriptions: Any, **options: Any) -> dict[int, tuple[set[Any], Any]]:
    found = bittern.spark.match(events, subscriptions, event_id="id", rejects=True, **options)
    return {row.id: (set(row.subscriptions), row.rejected) for row in found.collect()}


def test_rows_that_fail_are_listed_and_fail_no_job(spark: Any, failing: Any) -> None:
    texts = {
        "divide": "a / b > 1",
        "shared": "a / b + 1 > 2",
        "none": "a / b IS NULL",
        "default": "coalesce(a / b, 0) = 0",
        "branch": "CASE WHEN b = 0 THEN 0 ELSE a / b END = 0",
        "add": "a + 1 > 0",
        "cast": "CAST(t AS INT) = 7",
        "date": "to_date(t) IS NULL",
        "raised": "raise_error(concat(t, '!')) IS NULL",
        "python": "plus_one(a + 1) > 0",
        "constant": "a > 1 / 0",
    }
    frame = spark.createDataFrame(list(texts.items()), "id string, expression string")
    found = found_in(failing, frame)
    always = {"raised", "date"}  # the text of every row is no date
    assert found[1][0] - always == {"divide", "shared", "add", "cast", "python"}
    assert found[2][0] - always == {"none", "branch", "add", "cast", "python"}
    assert found[3][0] - always == {"divide", "shared"}
    assert found[4][0] - always == {"none", "default", "branch"}
    assert all(reason is not None for _, reason in found.values())  # 1 / 0
    del texts["raised"], texts["date"], texts["constant"]
    frame = spark.createDataFrame(list(texts.items()), "id string, expression string")
    reasons = {id_: reason for id_, (_, reason) in found_in(failing, frame).items()}
    assert reasons[1] is None
    assert reasons[4] is None
    assert "a / b" in reasons[2]
    assert "division by zero" in reasons[2]
    assert "overflow" in reasons[3] or "invalid cast" in reasons[3]


def test_reasons_come_from_shards_too(spark: Any, failing: Any, tmp_path: Any) -> None:
    texts = [(number, f"a / b > {number}") for number in range(50)]
    frame = spark.createDataFrame(texts, "id bigint, expression string")
    built = bittern.spark.build(frame, shards=2, store=str(tmp_path))
    found = found_in(failing, built)
    assert found[1] == ({0, 1}, None)
    assert found[2][0] == set()
    assert "division by zero" in found[2][1]


# -- attributes that are no columns --------------------------------------------------------------


def test_terms_over_maps_and_documents(spark: Any) -> None:
    data = [
        (1, {"brand": "ACME"}, '{"price": 6, "n": {"k": 2}}'),
        (2, {"other": "x"}, '{"price": 1}'),
        (3, None, None),
    ]
    events = spark.createDataFrame(data, "id int, m map<string, string>, doc string")
    texts = {"map": "lower(brand) = 'acme'", "json": "price * n.k > 10", "own": "m.brand = 'ACME'"}
    frame = spark.createDataFrame(list(texts.items()), "id string, expression string")
    found = found_in(events, frame, json="doc")
    assert {id_: ids for id_, (ids, _) in found.items()} == {
        1: {"map", "json", "own"},
        2: set(),
        3: set(),
    }
    frame = spark.createDataFrame(
        [("s", "url_encode(brand) > 'a'")], "id string, expression string"
    )
    with pytest.raises(OptionError, match=r"url_encode\(brand\).*brand is no column"):
        bittern.spark.match(events, frame, json="doc")
    frame = spark.createDataFrame([("s", "url_encode(m.brand) > '0'")], frame.schema)
    assert found_in(events, frame, json="doc")[1][0] == {"s"}


def test_an_attribute_that_no_event_has_is_null(spark: Any, failing: Any) -> None:
    texts = {"a": "url_encode(nothing) IS NULL", "b": "lower(nothing) = 'x'", "c": "lower(A) = 'x'"}
    frame = spark.createDataFrame(list(texts.items()), "id string, expression string")
    assert {ids == {"a"} for ids, _ in found_in(failing, frame).values()} == {True}


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nosuch(a) = 1", "nosuch"),
        ("regr_count(a, b) = 1", "needs many rows"),
        ("explode(array(a)) = 1", "gives many rows"),
        ("input_file_name() = 'x'", "another value each time"),
        ("dice() = 4", "another value each time"),
        ("url_encode(array(a)) = 'x'", "url_encode"),
        ("size(sequence(a, 'x')) > 1 AND named_struct('k') IS NULL", "named_struct"),
    ],
)
def test_what_spark_cannot_compute_is_refused(
    spark: Any, failing: Any, text: str, why: str
) -> None:
    frame = spark.createDataFrame([("s", text)], "id string, expression string")
    with pytest.raises((OptionError, SubscriptionError), match=why):
        bittern.spark.match(failing, frame, event_id="id")


def test_errors_of_spark_are_still_logged(spark: Any, failing: Any) -> None:
    # A logger has the class of its first caller; a plain one would refuse PySpark's keywords.
    logging.Logger.manager.loggerDict.pop("SQLQueryContextLogger", None)
    frame = spark.createDataFrame(
        [("s", "url_encode(array(a)) = 'x'")], "id string, expression string"
    )
    with pytest.raises((OptionError, SubscriptionError), match="url_encode"):
        bittern.spark.match(failing, frame, event_id="id")
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        failing.filter("url_encode(array(a)) = 'x'")


@pytest.mark.parametrize("text", ["rand() > 0.5", "uuid() = 'x'", "sum(a) > 1", "now() > day"])
def test_what_no_subscription_may_have_is_refused_with_its_position(spark: Any, text: str) -> None:
    frame = spark.createDataFrame([("s", f"a = 1 AND {text}")], "id string, expression string")
    bad = bittern.spark.build(frame).bad.collect()
    assert [(row.id, row.position) for row in bad] == [("s", len("a = 1 AND "))]


def test_a_column_with_our_mark_is_refused(spark: Any) -> None:
    events = spark.createDataFrame([(1, "x")], "id int, `\1lower(brand)` string")
    index = bittern.Index.build({"a": "lower(brand) = 'x'"})
    with pytest.raises(OptionError, match="control character"):
        bittern.spark.match(events, index, event_id="id")
    # Without Spark, such a column is just not asked for.
    table = pa.table({"\1lower(brand)": ["x"], "brand": ["y"]})
    assert bittern.Matcher(index).match(table).to_pylist() == [[]]


def test_functions_that_only_spark_knows_are_refused_elsewhere(tmp_path: Any) -> None:
    with pytest.raises(SubscriptionError, match="no function soundexxx"):
        bittern.Index.build({"s": "soundexxx(a) = 'x'"})
    index = bittern.Index.build({"s": "soundexxx(a) = 'x'", "t": "b = 1"}, functions="spark")
    index.save(tmp_path / "index")
    for each in (index, bittern.Index.open(tmp_path / "index")):
        assert each.functions == "spark"
        with pytest.raises(OptionError, match="soundexxx, which only Spark knows"):
            bittern.Matcher(each).match([{"a": "x"}])
    assert bittern.Index.build({"s": "a = 'x'"}, functions="spark").functions == "embedded"
    with pytest.raises(OptionError, match="functions must be"):
        bittern.Index.build({"s": "a = 1"}, functions="all")


def test_a_stream_goes_on_without_a_term_that_cannot_be_computed(
    spark: Any, failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    index = bittern.Index.build(
        {"s": "nosuch(a) IS NULL", "t": "lower(t) = '7'"}, functions="spark"
    )
    plans = PlansOfStream(spark, ())
    names = index.rank.attribute_names()
    plan = plans.plan(failing.schema, names)
    assert "nosuch(a) is NULL, since it cannot be computed" in caplog.text
    assert plans.plan(failing.schema, names) is plan  # Spark is not asked again
    assert project(failing, ["id"], names, [], plan).count() == 4


def test_a_catalog_for_spark_says_so(tmp_path: Any) -> None:
    pytest.importorskip("sqlalchemy")
    catalog = bittern.Catalog(tmp_path / "plain.db")
    with pytest.raises(SubscriptionError, match="no function url_encode"):
        catalog.add("s", "url_encode(a) = 'x'")
    catalog = bittern.Catalog(tmp_path / "spark.db", functions="spark")
    catalog.add("s", "url_encode(a) = 'x'")
    assert catalog.load([{"id": "t", "expression": "nosuch(a) = lower(b)"}]).added == 1
    with pytest.raises(SubscriptionError, match="cannot stand in a subscription"):
        catalog.add("u", "rand() > 0.5")
    assert bittern.Catalog(tmp_path / "spark.db").functions() == "spark"
    with pytest.raises(OptionError, match="created with functions='spark'"):
        bittern.Catalog(tmp_path / "spark.db", functions="embedded")


def test_a_catalog_with_terms(spark: Any, events: Any, tmp_path: Any) -> None:
    pytest.importorskip("sqlalchemy")
    catalog = bittern.Catalog(tmp_path / "catalog.db", functions="spark")
    catalog.load([{"id": str(n), "expression": text} for n, text in enumerate(EXPRESSIONS)])
    found = bittern.spark.match(
        events, catalog, event_id="id", explode=True, store=str(tmp_path / "store")
    )
    compare(
        EXPRESSIONS,
        terms.matched(found, len(EXPRESSIONS)),
        terms.kept_by_filter(events, EXPRESSIONS),
    )
