"""``bittern.spark.match`` and its SQL functions in one classic session: forms, output, errors."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import bittern
import bittern.spark
import oracle
import strategies
from bittern.errors import OptionError
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.spark import frames
from bittern.spark import operator as operators
from bittern.spark.asked import Asked
from steady import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.smoke]

WISHES = {
    1: "price < 10",
    2: "seller.country = 'FI'",
    3: "price > 5 AND title LIKE '%tent%'",
    4: "day >= DATE '2026-02-01'",
}
OFFERS = [
    {"id": 1, "price": 9.0, "title": "a tent", "seller": {"country": "FI"}, "day": "2026-01-31"},
    {"id": 2, "price": 70.0, "title": "a lamp", "seller": None, "day": "2026-02-01"},
    {"id": 3, "price": None, "title": None, "seller": {"country": "SE"}, "day": None},
    {"id": 4, "price": 3.0, "title": "two tents", "seller": {"country": "FI"}, "day": None},
]
FOUND = {1: [1, 2, 3], 2: [4], 3: [], 4: [1, 2]}
WIDE = "id long, price double, title string, seller struct<country: string, rating: int>, day date"


@pytest.fixture(scope="module")
def index() -> bittern.Index:
    return bittern.Index.build(WISHES)


@pytest.fixture(scope="module")
def offers(spark: Any) -> Any:
    rows = [
        (
            offer["id"],
            offer["price"],
            offer["title"],
            offer["seller"] and (offer["seller"]["country"], 5),
            offer["day"] and dt.date.fromisoformat(offer["day"]),
        )
        for offer in OFFERS
    ]
    return spark.createDataFrame(rows, WIDE).repartition(3, "id").cache()


def arrays(frame: Any) -> dict[Any, list[Any]]:
    return {row["id"]: sorted(row["subscriptions"]) for row in frame.collect()}


def pairs(frame: Any) -> list[tuple[Any, Any]]:
    return sorted((row["id"], row["subscription"]) for row in frame.collect())


ALL_PAIRS = sorted((event, wish) for event, wishes in FOUND.items() for wish in wishes)


# Forms of events


def test_wide_columns_and_structs(offers: Any, index: bittern.Index) -> None:
    assert arrays(bittern.spark.match(offers, index, event_id="id")) == FOUND


def test_subscriptions_that_the_driver_holds(offers: Any) -> None:
    """What ``Index.build`` takes is built by the schema of the events, as a DataFrame is."""
    table = pa.table({"id": list(WISHES), "expression": list(WISHES.values())})
    typed = {**WISHES, 3: "price > '5' AND title LIKE '%tent%'"}  # as Spark reads it on a double
    for form in (typed, list(typed.items()), table, table.to_pandas()):
        found = bittern.spark.match(offers, form, event_id="id").collect()
        assert {row.id: sorted(row.subscriptions) for row in found} == FOUND
    built = bittern.spark.build([("a", "price < 10", 2), ("b", "price <"), ("a", "TRUE")])
    assert (built.subscriptions, built.n_bad) == (1, 2)
    assert bittern.spark.plan({"a": "price < 10"}, events=offers, event_id="id").subscriptions == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": None}, "an expression must be text, not NoneType"),
        ({"a": "x = '\ud800'"}, "half a surrogate pair"),
        ({1.5: "a"}, "an id must be a string or an integer, not float"),
        ([("a", "x > 1", "heavy")], "a weight must be a finite number, not 'heavy'"),
        ([("a", "x > 1", 2, 3)], r"each subscription must be \(id, expression\)"),
        ({1: "x > 1", "1": "x > 2"}, "ids are all integers or all texts, not both 1 and '1'"),
    ],
)
def test_subscriptions_that_no_column_can_hold(offers: Any, given: Any, said: str) -> None:
    with pytest.raises(bittern.errors.BitternError, match=said):
        bittern.spark.match(offers, given, event_id="id")


def test_all_columns_come_back_without_an_event_id(offers: Any, index: bittern.Index) -> None:
    found = bittern.spark.match(offers, index)
    assert found.columns == [*offers.columns, "subscriptions"]
    assert [f.dataType for f in found.schema][:-1] == [f.dataType for f in offers.schema]
    rows = {row["id"]: row for row in found.collect()}
    for row in offers.collect():
        assert rows[row["id"]][:-1] == tuple(row)
        assert sorted(rows[row["id"]]["subscriptions"]) == FOUND[row["id"]]


def test_json_text_beside_columns(spark: Any, index: bittern.Index) -> None:
    """``price`` is a column of its own, the rest comes from the text."""
    rows = [
        (1, 9.0, '{"title": "a tent", "seller": {"country": "FI"}, "price": 1000}'),
        (2, 70.0, '{"title": "a lamp"}'),
        (3, None, None),
        (4, 3.0, '{"title": "two tents", "seller": {"country": "FI"}}'),
    ]
    events = spark.createDataFrame(rows, "id long, price double, body string")
    found = bittern.spark.match(events, index, event_id="id", json="body")
    assert arrays(found) == {1: [1, 2, 3], 2: [], 3: [], 4: [1, 2]}


def test_variant_keeps_types(offers: Any, index: bittern.Index) -> None:
    events = offers.selectExpr(
        "id", "to_variant_object(struct(price, title, seller, day)) AS document"
    )
    assert arrays(bittern.spark.match(events, index, event_id="id")) == FOUND


def test_map_of_numbers(spark: Any) -> None:
    index = bittern.Index.build({"hot": "t > 30", "wet": "h >= 80 AND t > 0", "odd": "`a.b` = 1"})
    rows = [(1, {"t": 31, "h": 80}), (2, {"t": 5, "a.b": 1}), (3, {}), (4, None)]
    events = spark.createDataFrame(rows, "id long, readings map<string, bigint>")
    found = bittern.spark.match(events, index, event_id="id")
    assert found.schema["subscriptions"].dataType.simpleString() == "array<string>"
    assert arrays(found) == {1: ["hot", "wet"], 2: ["odd"], 3: [], 4: []}


def test_only_attributes_in_use_cross(offers: Any, index: bittern.Index) -> None:
    """The plan's projection is all that Python sees: no rating, no column of no use."""
    from pyspark.sql import functions as F

    wide = offers.select("*", F.lit("x").alias("unused"), F.struct("id").alias("other"))
    job = frames.prepare(wide, index, Asked(event_id="id", shards=None))
    assert job.events.columns == ["id", "price", "title", "seller", "day"]
    assert job.events.schema["seller"].dataType.simpleString() == "struct<country:string>"


def test_a_struct_that_is_itself_tested_stays_whole(spark: Any) -> None:
    index = bittern.Index.build({1: "seller IS NULL", 2: "seller.country = 'FI'"})
    events = spark.createDataFrame(
        [(1, None), (2, ("FI",)), (3, (None,))], "id long, seller struct<country: string>"
    )
    assert arrays(bittern.spark.match(events, index, event_id="id")) == {1: [1], 2: [2], 3: []}


def test_random_expressions_agree_with_the_oracle(spark: Any) -> None:
    trees = strategies.sample(strategies.typed_expressions(), 200)
    events = strategies.sample(strategies.typed_events(), 120)
    texts = {number: print_expression(tree) for number, tree in enumerate(trees)}
    table = strategies.as_arrow(events).append_column("id", pa.array(range(len(events))))
    frame = spark.createDataFrame(table).repartition(4)
    found = bittern.spark.match(frame, bittern.Index.build(texts), event_id="id")
    truth = {
        number: [k for k, text in texts.items() if oracle.matches(parse(text), event)]
        for number, event in enumerate(events)
    }
    assert arrays(found) == truth


@pytest.mark.parametrize("shards", [None, 2])
def test_names_that_spark_would_take_apart(spark: Any, shards: int | None, tmp_path: Any) -> None:
    texts = ["`a.b` = 1", "`c 0` = 2", "`back``quote` = 3", "shard = 4", "st.`x.y` = 5"]
    wishes = spark.createDataFrame(list(enumerate(texts)), "id long, expression string")
    columns = (
        "`i.d` long, `a.b` int, `c 0` int, `back``quote` int, shard int, st struct<`x.y`: int>"
    )
    events = spark.createDataFrame([(7, 1, 2, 3, 4, (5,)), (8, 0, 2, 0, 0, None)], columns)
    built = bittern.spark.build(wishes, shards=shards)
    found = bittern.spark.match(events, built, event_id="i.d")
    assert {row["i.d"]: sorted(row["subscriptions"]) for row in found.collect()} == {
        7: [0, 1, 2, 3, 4],
        8: [1],
    }
    written = bittern.spark.write(events, built, tmp_path / "out", event_id=["i.d", "back`quote"])
    rows = spark.read.parquet(written.path).collect()
    assert {(row["i.d"], row["back`quote"]) for row in rows} == {(7, 3), (8, 0)}


# Output


def test_explode(offers: Any, index: bittern.Index) -> None:
    found = bittern.spark.match(offers, index, event_id="id", explode=True)
    assert found.columns == ["id", "subscription"]
    assert pairs(found) == ALL_PAIRS


def test_several_keys_in_the_order_asked_for(offers: Any, index: bittern.Index) -> None:
    found = bittern.spark.match(offers, index, event_id=["title", "id"])
    assert found.columns == ["title", "id", "subscriptions"]
    assert arrays(found) == FOUND


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize("explode", [False, True])
def test_the_payload_travels_and_identifies_nothing(
    spark: Any, offers: Any, shards: int | None, *, explode: bool
) -> None:
    """Of shards it is gathered with the pieces of an event, NULL and nested values included."""
    subscriptions = spark.createDataFrame([*WISHES.items()], "id long, expression string")
    built = bittern.spark.build(subscriptions, sample=offers, shards=shards)
    options = {"event_id": "id", "explode": explode}
    found = bittern.spark.match(offers, built, payload=["seller", "title"], **options)
    last = "subscription" if explode else "subscriptions"
    assert found.columns == ["id", "seller", "title", last]
    plain = bittern.spark.match(offers, built, **options)
    assert sorted(found.select("id", last).collect()) == sorted(plain.collect())
    events = {row.id: (row.seller, row.title) for row in offers.collect()}
    assert all((row.seller, row.title) == events[row.id] for row in found.collect())
    every = bittern.spark.match(offers, built, payload="*", **options)
    assert every.columns == [*offers.columns, last]
    assert every.schema[:-1] == offers.schema[:]


def test_limit_keeps_the_heaviest(spark: Any, offers: Any) -> None:
    weighted = pa.table(
        {"id": [1, 2, 3], "expression": ["price < 10"] * 3, "weight": [1.0, 3.0, 2.0]}
    )
    found = bittern.spark.match(offers, bittern.Index.build(weighted), event_id="id", limit=2)
    lists = {row["id"]: row["subscriptions"] for row in found.collect()}
    assert lists == {1: [2, 3], 2: [], 3: [], 4: [2, 3]}


KEYS = {
    "b": (True, "boolean"),
    "i": (7, "int"),
    "y": (7, "tinyint"),
    "f": (1.5, "float"),
    "n": (Decimal("1.23"), "decimal(10,2)"),
    "d": (dt.date(2026, 1, 1), "date"),
    "t": (dt.datetime(2026, 1, 1, 12), "timestamp"),
    "w": (dt.datetime(2026, 1, 1, 12), "timestamp_ntz"),
    "x": (bytearray(b"\x00\xff"), "binary"),
    "a": ([1, None], "array<int>"),
    "m": ({"k": 1}, "map<string,int>"),
    "s": ((1, "z"), "struct<p:int,q:string>"),
    "g": (dt.timedelta(hours=1), "interval day to second"),
}


def test_keys_of_every_type_pass_unchanged(spark: Any, index: bittern.Index) -> None:
    schema = ", ".join(f"{name} {type_}" for name, (_, type_) in KEYS.items())
    rows = [tuple(value for value, _ in KEYS.values()), tuple([None] * len(KEYS))]
    events = spark.createDataFrame(rows, schema).selectExpr("*", "parse_json('{\"p\": 1}') AS v")
    found = bittern.spark.match(events, index)
    assert found.schema[:-1] == events.schema
    kept = found.drop("subscriptions").selectExpr("* EXCEPT (v)", "to_json(v) AS v")
    before = events.selectExpr("* EXCEPT (v)", "to_json(v) AS v")
    assert kept.collect() == before.collect()


@pytest.mark.parametrize("shards", [None, 2])
def test_keys_of_types_that_arrow_does_not_tell_apart(spark: Any, shards: int | None) -> None:
    """They come back as Arrow's, and are cast."""
    keys = (
        "INTERVAL '1' DAY AS day, INTERVAL '01:02' MINUTE TO SECOND AS short, "
        "'K' COLLATE UTF8_LCASE AS folded, CAST(NULL AS STRING COLLATE UNICODE) AS none, "
        "named_struct('p', 'K' COLLATE UTF8_LCASE, 'q', array(INTERVAL '1' DAY)) AS nested, "
        "'plain' AS text"
    )
    events = spark.sql(f"SELECT {keys}, 1 AS a")
    wishes = spark.createDataFrame([(1, "a = 1"), (2, "a > 3")], "id long, expression string")
    built = bittern.spark.build(wishes, shards=shards)
    for explode in (False, True):
        found = bittern.spark.match(events, built, event_id=events.columns, explode=explode)
        assert found.dtypes[:-1] == events.dtypes
        assert [tuple(row)[:-1] for row in found.collect()] == [tuple(events.first())]
        assert [row[-1] for row in found.collect()] == [1 if explode else [1]]


def test_keys_that_a_collation_takes_for_the_same_are_two_events(spark: Any) -> None:
    wishes = spark.createDataFrame([(1, "a = 1"), (2, "a > 1")], "id long, expression string")
    events = spark.sql("SELECT k COLLATE UTF8_LCASE AS k, a FROM VALUES ('x', 1), ('X', 2) t(k, a)")
    found = bittern.spark.match(
        events, bittern.spark.build(wishes, shards=2), event_id="k", sample=events
    )
    assert {row.k: row.subscriptions for row in found.collect()} == {"x": [1], "X": [2]}


@pytest.mark.parametrize("shards", [None, 2])
def test_attributes_named_like_columns_of_the_output(spark: Any, shards: int | None) -> None:
    texts = [(1, "subscriptions = 'x'"), (2, "rejected = 'y'"), (3, "candidates > 1")]
    wishes = spark.createDataFrame(texts, "id long, expression string")
    events = spark.sql(
        "SELECT 7 AS id, 'x' COLLATE UTF8_LCASE AS subscriptions, 'y' COLLATE UNICODE AS rejected, "
        "2 AS candidates"
    )
    found = bittern.spark.match(
        events, bittern.spark.build(wishes, shards=shards), event_id="id", rejects=True
    )
    assert found.dtypes == [
        ("id", "int"),
        ("subscriptions", "array<bigint>"),
        ("rejected", "string"),
    ]
    assert arrays(found) == {7: [1, 2, 3]}


def test_types_that_arrow_carries_are_not_cast(offers: Any, index: bittern.Index) -> None:
    from bittern.spark.operator import restored

    assert restored(offers, offers.schema) is offers


def test_rejects_have_a_reason_and_match_nothing(spark: Any, index: bittern.Index) -> None:
    rows = [(1, '{"price": 5}'), (2, '{"price": 5'), (3, "[1]"), (4, '{"price": "cheap"}')]
    events = spark.createDataFrame(rows, "id long, body string")
    found = bittern.spark.match(events, index, event_id="id", json="body", rejects=True)
    rows = {row["id"]: row for row in found.collect()}
    assert [rows[i]["subscriptions"] for i in (1, 2, 3, 4)] == [[1], [], [], []]
    assert rows[1]["rejected"] is None
    assert all(rows[i]["rejected"] for i in (2, 3))
    assert "price is a string" in rows[4]["rejected"]


def test_exploded_rejects_have_a_row_without_a_subscription(
    spark: Any, index: bittern.Index
) -> None:
    rows = [(1, '{"price": 5}'), (2, "{"), (3, "{}")]
    events = spark.createDataFrame(rows, "id long, body string")
    found = bittern.spark.match(
        events, index, event_id="id", json="body", rejects=True, explode=True
    )
    kept = {(r["id"], r["subscription"], r["rejected"] is not None) for r in found.collect()}
    assert kept == {(1, 1, False), (2, None, True)}


@pytest.mark.parametrize("shards", [None, 2])
def test_the_text_of_rejects_is_written(spark: Any, tmp_path: Any, shards: int | None) -> None:
    """A text that is valid UTF-8 or not, beside a payload and where the text is a key itself."""
    texts = ["CAST('{\"price\": 5}' AS STRING)", "'{'", "CAST(X'7BFF' AS STRING)"]
    rows = " UNION ALL ".join(f"SELECT {at} id, {text} body" for at, text in enumerate(texts))
    events = spark.sql(rows).selectExpr("id", "id * 2 more", "body")
    subscriptions = spark.createDataFrame([*WISHES.items()], "id long, expression string")
    built = bittern.spark.build(subscriptions, json="body", shards=shards)
    where, options = tmp_path / "rejects", {"rejects": tmp_path / "rejects", "mode": "overwrite"}
    for keys, payload in (("id", "more"), ("id", ()), (["id", "body"], ())):
        written = bittern.spark.write(
            events, built, tmp_path / "o", event_id=keys, payload=payload, json="body", **options
        )
        assert (written.events, written.rejects) == (3, 2)
        own = [keys] if isinstance(keys, str) else keys
        told = [*own, *([payload] if payload else [])]
        matches, found = (spark.read.parquet(str(each)) for each in (tmp_path / "o", where))
        assert matches.columns == [*told, "subscriptions"]
        assert found.columns == [*dict.fromkeys([*told, "body"]), "rejected"]
        texts = found.orderBy("id").selectExpr("hex(body)").collect()
        assert [row[0] for row in texts] == ["7B", "7BFF"]
    with pytest.raises(OptionError, match="has the name of a column of the rejects"):
        bittern.spark.write(
            events.withColumnRenamed("body", "Rejected"),
            built,
            tmp_path / "o",
            event_id="id",
            json="Rejected",
            **options,
        )


def test_observed_metrics(spark: Any, index: bittern.Index, tmp_path: Any) -> None:
    from pyspark.sql import Observation

    snapshot_id = index.write(tmp_path / "copy")
    rows = [(i, '{"price": 5}' if i % 4 else "{") for i in range(40)]
    events = spark.createDataFrame(rows, "id long, body string").repartition(3)
    observation = Observation()
    found = bittern.spark.match(
        events, index, event_id="id", json="body", explode=True, observe=observation
    )
    assert found.count() == 30
    told = observation.get
    assert told["events"] == 40
    assert told["matches"] == 30
    assert told["rejects"] == 10
    assert told["candidates"] >= 30
    assert told["snapshot"] == snapshot_id


def test_streaming(spark: Any, offers: Any, index: bittern.Index, tmp_path: Any) -> None:
    offers.write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema(offers.schema).parquet(f"{tmp_path}/in")
    found = bittern.spark.match(stream, index, event_id="id", explode=True, observe="metrics")
    query = (
        found.writeStream.format("memory")
        .queryName("found")
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(PATIENCE)
        assert pairs(spark.table("found")) == ALL_PAIRS
        observed = [p.observedMetrics["metrics"] for p in query.recentProgress]
        assert sum(each["events"] for each in observed) == len(OFFERS)
    finally:
        query.stop()
        spark.catalog.dropTempView("found")


def test_empty_events(offers: Any, index: bittern.Index) -> None:
    assert bittern.spark.match(offers.limit(0), index, event_id="id").collect() == []


def test_an_index_of_nothing_matches_nothing(offers: Any) -> None:
    found = bittern.spark.match(offers, bittern.Index.build({}), event_id="id")
    assert arrays(found) == {1: [], 2: [], 3: [], 4: []}


# Subscriptions


def test_a_snapshots_path(offers: Any, index: bittern.Index, tmp_path: Any) -> None:
    index.write(tmp_path / "shop")
    for source in (tmp_path / "shop", str(tmp_path / "shop"), f"file://{tmp_path}/shop"):
        assert arrays(bittern.spark.match(offers, source, event_id="id")) == FOUND


def test_a_frame_of_subscriptions(spark: Any, offers: Any) -> None:
    frame = spark.createDataFrame(list(WISHES.items()), "id long, expression string")
    assert arrays(bittern.spark.match(offers, frame, event_id="id")) == FOUND
    built = bittern.spark.build(frame)
    assert arrays(bittern.spark.match(offers, built, event_id="id")) == FOUND


def test_bad_subscriptions_are_found_before_anything_is_matched(spark: Any, offers: Any) -> None:
    frame = spark.createDataFrame([(1, "price <"), (2, "price < 4")], "id long, expression string")
    with pytest.raises(bittern.errors.SubscriptionError, match="position"):
        bittern.spark.match(offers, frame, event_id="id")
    found = bittern.spark.match(offers, frame, event_id="id", on_error="skip")
    assert arrays(found) == {1: [], 2: [], 3: [], 4: [2]}


def test_sharded_is_the_same(spark: Any, offers: Any) -> None:
    frame = spark.createDataFrame(list(WISHES.items()), "id long, expression string")
    built = bittern.spark.build(frame, shards=2)
    assert arrays(bittern.spark.match(offers, built, event_id="id")) == FOUND
    assert pairs(bittern.spark.match(offers, built, event_id="id", explode=True)) == ALL_PAIRS


def test_what_goes_to_executors_is_small(offers: Any, index: bittern.Index) -> None:
    job = frames.prepare(offers, index, Asked(event_id="id", shards=None))
    operator = operators.Operator(job.source.ref, job.keys, job.json, job.limit)
    assert len(pickle.dumps(operator)) < 1_000


# In a worker


def test_many_matches_leave_in_several_batches(
    index: bittern.Index, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bittern.spark import operator
    from bittern.spark.snapshots.node_cache import SnapshotRef

    monkeypatch.setattr(operator, "_MOST_MATCHES", 3)
    ref = SnapshotRef(index.write(tmp_path / "shop"), str(tmp_path / "shop"), None)
    batch = pa.record_batch({"id": [0, 1, 2, 3], "price": [9.0, 50.0, 1.0, 2.0],
                             "title": ["tent"] * 4})  # fmt: skip
    out = list(operator.Operator(ref, ("id",))(iter([batch])))
    assert [b.num_rows for b in out] == [2, 2]
    lists = [sorted(each) for b in out for each in b.column("subscriptions").to_pylist()]
    assert lists == [[1, 3], [3], [1], [1]]
    candidates = [each for b in out for each in b.column("candidates").to_pylist()]
    assert all(n >= len(each) for n, each in zip(candidates, lists, strict=True))


@pytest.mark.parametrize("sizes", [(), (0,), (3,), (4,), (9,), (1, 2, 3, 4), (5, 0, 7), (4, 4, 1)])
def test_batches_are_joined_and_cut_to_blocks(sizes: tuple[int, ...]) -> None:
    from bittern.spark import operator

    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    batches = [
        pa.record_batch({"n": pa.array(range(start, start + size), pa.int64())})
        for start, size in zip(starts, sizes, strict=True)
    ]
    out = list(operator.blocks(iter(batches), 4))
    assert [n for batch in out for n in batch.column("n").to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows == 4 for batch in out[:-1])
    assert all(0 < batch.num_rows <= 4 for batch in out)


# What users get wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"event_id": "nope"}, "no such column"),
        ({"event_id": []}, "names no column"),
        ({"event_id": ["id", "id"]}, "twice"),
        ({"event_id": 7}, "event_id"),
        ({"json": "price"}, "not text"),
        ({"json": "nope"}, "no such column"),
        ({"limit": 0}, "limit"),
    ],
)
def test_bad_options(offers: Any, index: bittern.Index, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        bittern.spark.match(offers, index, **options)


def test_bad_arguments(offers: Any, index: bittern.Index) -> None:
    with pytest.raises(OptionError, match="Spark DataFrame, not list"):
        bittern.spark.match([{"price": 4}], index)
    with pytest.raises(OptionError, match=r"a bittern\.Catalog, a bittern\.Index, .*, not int"):
        bittern.spark.match(offers, 5)


def test_keys_that_the_output_needs(offers: Any, index: bittern.Index) -> None:
    with pytest.raises(OptionError, match="'subscriptions' has the name of an output column"):
        bittern.spark.match(offers.withColumnRenamed("title", "subscriptions"), index)


@pytest.mark.parametrize(
    ("select", "key", "said"),
    [
        (
            "1 AS Subscriptions, 1 AS a",
            "Subscriptions",
            "'Subscriptions' has the name of an output column: rename",
        ),
        ("1 AS id, 1 AS a, 2 AS A", "id", "'a' and 'A', which Spark does not .* rename"),
        ("1 AS id, 1 AS a, 2 AS a", "id", "two columns of the events are named 'a': rename"),
        ("1 AS id, named_struct('b', 1, 'b', 2) AS s", "id", "two fields in 's' are named 'b'"),
    ],
)
def test_names_that_spark_takes_for_the_same_are_told_before_anything_is_built(
    spark: Any, select: str, key: str, said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        bittern.spark.match(spark.sql(f"SELECT {select}"), "no such index", event_id=key)


@pytest.mark.parametrize("shards", [None, 2])
def test_names_that_differ_in_case_where_spark_tells_them_apart(
    spark: Any, tmp_path: Any, shards: int | None
) -> None:
    texts = ["a = 1", "A = 2", "A = 1", "s.b = 3", "s.B = 3"]
    wishes = spark.createDataFrame(list(enumerate(texts)), "id long, expression string")
    built = bittern.spark.build(wishes, shards=shards)
    keys = ["id", "A", "Subscriptions"]
    setting = "spark.sql.caseSensitive"
    spark.conf.set(setting, "true")
    try:
        events = spark.sql(
            "SELECT 7 AS id, 1 AS a, 2 AS A, 5 AS Subscriptions, named_struct('b', 3, 'B', 4) AS s"
        )
        found = bittern.spark.match(events, built, event_id=keys).collect()
        bittern.spark.write(events, built, tmp_path / "out", event_id=keys)
        written = spark.read.parquet(str(tmp_path / "out")).collect()
    finally:
        spark.conf.unset(setting)
    for rows in (found, written):
        assert [(*row[:3], sorted(row[3])) for row in rows] == [(7, 2, 5, [0, 1, 3])]


@pytest.mark.parametrize("shards", [None, 2])
def test_fields_that_differ_in_case_are_told_apart_by_arrow(spark: Any, shards: int | None) -> None:
    """Spark could not take them out of their struct, so it crosses whole."""
    wishes = spark.createDataFrame([(1, "s.b = 3"), (2, "s.B = 3")], "id long, expression string")
    events = spark.sql("SELECT 7 AS id, named_struct('b', 3, 'B', 4, 'c', 5) AS s")
    built = bittern.spark.build(wishes, shards=shards)
    assert arrays(bittern.spark.match(events, built, event_id="id")) == {7: [1]}


def test_keys_of_a_users_type_are_told(spark: Any, index: bittern.Index) -> None:
    from pyspark.testing.objects import ExamplePoint

    events = spark.createDataFrame([(1, ExamplePoint(1.0, 2.0))], ["price", "point"])
    with pytest.raises(OptionError, match=r"'point' is .* cannot be passed to Python and back"):
        bittern.spark.match(events, index)
    found = bittern.spark.match(events, index, event_id="price").collect()
    assert [row.subscriptions for row in found] == [[1]]


def test_columns_whose_type_no_subscription_compares_with(offers: Any) -> None:
    with pytest.warns(UserWarning, match="title"):
        bittern.spark.match(offers, bittern.Index.build({1: "title > 5"}), event_id="id")


# SQL


def test_sql_functions(spark: Any, offers: Any, index: bittern.Index) -> None:
    bittern.spark.register(spark, index, events=offers, event_id="id")
    offers.createOrReplaceTempView("offers")
    found = spark.sql("SELECT id, bittern_match(struct(*)) AS subscriptions FROM offers")
    assert arrays(found) == FOUND
    found = spark.sql("SELECT id, subscription FROM bittern_match(TABLE(offers))")
    assert pairs(found) == ALL_PAIRS
    joined = spark.sql(
        "SELECT o.id, m.subscription FROM bittern_match(TABLE(offers)) m JOIN offers o USING (id) "
        "WHERE o.price < 5"
    )
    assert pairs(joined) == [(4, 1), (4, 2)]


def test_sql_function_over_json_and_some_columns(spark: Any, index: bittern.Index) -> None:
    bittern.spark.register(spark, index, name="wishes", json="body", limit=1)
    rows = [(1, '{"seller": {"country": "FI"}}', 3.0), (2, "{", 3.0), (3, None, 3.0)]
    spark.createDataFrame(rows, "id long, body string, price double").createOrReplaceTempView("raw")
    found = spark.sql("SELECT id, wishes(struct(body, price)) AS subscriptions FROM raw")
    assert arrays(found) == {1: [1], 2: [], 3: [1]}


def test_sql_function_of_a_null_struct(spark: Any) -> None:
    """It is no event, so that nothing is true of it."""
    bittern.spark.register(spark, bittern.Index.build({1: "a IS NULL", 2: "a = 1"}), "of_nulls")
    found = spark.sql(
        "SELECT id, of_nulls(if(id % 3 = 0, NULL, named_struct('a', nullif(id, 2)))) subscriptions "
        "FROM range(0, 6, 1, 2)"
    )
    assert arrays(found) == {0: [], 1: [2], 2: [1], 3: [], 4: [], 5: []}


@pytest.mark.parametrize(
    ("options", "select", "said"),
    [
        ({"limit": 0}, "1 AS a", "limit"),
        ({}, "1 AS a, 5 AS subscription", "'subscription' has the name of an output column"),
        ({}, "1 AS a, 2 AS A", "'a' and 'A', which Spark does not tell apart"),
        ({"event_id": "b"}, "1 AS a", "no such column"),
        ({"event_id": []}, "1 AS a", "names no column"),
        ({}, "1 AS a, INTERVAL '1' YEAR AS k", "'k' is .* cannot be passed to Python"),
        ({}, "1 AS a, INTERVAL '1' DAY AS k", "cast it to interval day to second"),
        ({}, "1 AS a, array('x' COLLATE UNICODE) AS k", "cast it to array<string>"),
        ({"json": "a"}, "1 AS a", "not text"),
    ],
)
def test_what_cannot_be_registered_is_told_before_anything_is_built(
    spark: Any, options: dict[str, Any], select: str, said: str
) -> None:
    events = spark.sql(f"SELECT {select}")
    with pytest.raises(OptionError, match=said):
        bittern.spark.register(spark, "no such index", "nothing", events=events, **options)
    with pytest.raises(OptionError, match="limit"):
        bittern.spark.register(spark, "no such index", "nothing", limit=-1)


def test_sql_function_needs_events_for_keys(spark: Any, index: bittern.Index) -> None:
    with pytest.raises(OptionError, match="event_id needs events"):
        bittern.spark.register(spark, index, event_id="id")
