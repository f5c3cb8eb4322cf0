"""Building on Spark: the index of ``Index.build``, whatever the partitions; bad ones as rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bittern
import strategies
from answers import expected
from bittern.errors import OptionError, SubscriptionError
from bittern.language.limits import MAX_LENGTH, MAX_PREDICATES
from bittern.language.printer import print_expression
from bittern.model.events.objects import is_json

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from bittern.spark import build as spark_build
from bittern.spark import match as spark_match
from bittern.spark.sharded.shards import Shards
from bittern.spark.snapshots.node_cache import attach
from bittern.spark.subscriptions import building
from bittern.spark.subscriptions.reading import Reading, pack, unpack
from bittern.spark.subscriptions.samples import sample_table

REPEATED = "this id was given before; ids are unique"


def table(rows: list[tuple[Any, ...]], id_type: pa.DataType = pa.int64()) -> pa.Table:  # noqa: B008
    columns = {
        "id": pa.array([row[0] for row in rows], id_type),
        "expression": pa.array([row[1] for row in rows], pa.string()),
    }
    if rows and len(rows[0]) == 3:
        columns["weight"] = pa.array([row[2] for row in rows], pa.float64())
    return pa.table(columns)


def built_index(built: building.Built) -> bittern.Index:
    index = attach(built.ref)  # type: ignore[arg-type]
    index.check()
    assert index.id == built.ref.id
    return index


def bad_rows(built: building.Built) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in built.bad.collect()]


def whole_id(whole: bittern.Index, folder: Any) -> str:
    return whole.save(folder / "whole")


# ------------------------------------------------------------------ the same index


@pytest.fixture(scope="module")
def drawn() -> tuple[dict[int, str], list[Any]]:
    trees = strategies.sample(strategies.typed_expressions(), 60)
    texts = {number: print_expression(tree) for number, tree in enumerate(trees)}
    return texts, strategies.sample(strategies.typed_events(), 40)


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 3, 12])
def test_partitions_do_not_matter(spark, tmp_path, drawn, partitions: int) -> None:
    texts, events = drawn
    rows = [(id_, text, None if id_ % 3 else id_ / 2) for id_, text in texts.items()]
    # The order of rows is kept, and some partitions are empty.
    frame = spark.createDataFrame(table(rows)).repartitionByRange(partitions, "id")
    frame = frame.sortWithinPartitions("id").filter("id < 20 OR id > 39")
    rows = rows[:20] + rows[40:]
    texts = {row[0]: row[1] for row in rows}
    built = spark_build(frame, store=str(tmp_path / "store"), shards=None)
    index = built_index(built)
    whole = bittern.Index.build(table(rows))
    assert index.id == whole_id(whole, tmp_path)
    assert index.texts.to_pylist() == list(texts.values())
    assert np.array_equal(index.weights, whole.weights)
    assert built.subscriptions == len(rows)
    assert built.attributes == tuple(whole.rank.attribute_names())
    assert built.integer_ids
    assert (built.n_bad, bad_rows(built)) == (0, [])
    found = bittern.Matcher(index).match(strategies.as_arrow(events)).to_pylist()
    assert found == expected(texts, events)


@pytest.mark.spark
@pytest.mark.parametrize("empty", ["limit", "filter"])
def test_no_subscriptions_are_an_index_too(spark, tmp_path, empty: str) -> None:
    frame = spark.createDataFrame(table([(1, "a = 1")]))
    frame = frame.limit(0) if empty == "limit" else frame.filter("id > 5")
    built = spark_build(frame, store=str(tmp_path))
    assert (built.subscriptions, built.n_bad, built.attributes) == (0, 0, ())
    assert built.bad.dtypes == [("id", "string"), ("position", "int"), ("message", "string")]
    assert bad_rows(built) == []
    assert bittern.Matcher(built_index(built)).match([{"a": 1}]).to_pylist() == [[]]


@pytest.mark.spark
@pytest.mark.parametrize("id_type", ["tinyint", "smallint", "int", "bigint", "string"])
def test_ids_are_of_any_integer_type_or_text(spark, tmp_path, id_type: str) -> None:
    frame = spark.createDataFrame(table([(7, "a = 1"), (-8, "a = 2")]))
    frame = frame.select(frame.id.cast(id_type).alias("id"), "expression")
    built = spark_build(frame, store=str(tmp_path))
    assert built.integer_ids == (id_type != "string")
    found = bittern.Matcher(built_index(built)).match([{"a": 2}]).to_pylist()
    assert found == [["-8" if id_type == "string" else -8]]


@pytest.mark.spark
@pytest.mark.parametrize("weight_type", ["int", "decimal(10,2)", "float"])
def test_weights_are_of_any_numeric_type(spark, tmp_path, weight_type: str) -> None:
    rows = [(1, "a = 1", 1.5), (2, "a = 1", None), (3, "a = 1", 3.0)]
    frame = spark.createDataFrame(table(rows))
    frame = frame.withColumn("weight", frame.weight.cast(weight_type))
    built = spark_build(frame, store=str(tmp_path))
    first = 1.0 if weight_type == "int" else 1.5
    assert built_index(built).weights.tolist() == [first, 1.0, 3.0]


@pytest.mark.spark
def test_one_large_partition_is_spread_and_its_order_kept(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(building, "_UNEVEN_PARTITION", 100)
    monkeypatch.setattr(building, "_SPREAD_ROWS", 50)
    spread = []
    keep = building._spread
    monkeypatch.setattr(
        building, "_spread", lambda rows, pieces: spread.append(pieces) or keep(rows, pieces)
    )
    rows = [(id_ * 7919 % 1000, f"a = {id_} AND b{id_ % 9} < {id_}") for id_ in range(300)]
    built = spark_build(spark.createDataFrame(table(rows)).coalesce(1), store=str(tmp_path / "s"))
    assert spread == [6]
    assert built.ref.id == whole_id(bittern.Index.build(table(rows)), tmp_path)


@pytest.mark.spark
def test_a_sample_chooses_what_subscriptions_are_filed_under(spark, tmp_path) -> None:
    rows = [(id_, f"a = {id_} AND b = {id_}") for id_ in range(50)]
    frame = spark.createDataFrame(table(rows))
    # Most events have one and the same a, or b: it tells little.
    events = {
        name: pa.table(
            {name: [7] * 200, other: [*range(200)], "raw": [b"x"] * 200, "l": [[1]] * 200}
        )
        for name, other in ("ab", "ba")
    }
    ids = set()
    for name, sample in events.items():
        whole = bittern.Index.build(table(rows), sample=sample)
        expected_id = whole.save(tmp_path / f"whole-{name}")
        for given in (
            spark.createDataFrame(sample),
            sample if name == "a" else sample.to_batches()[0],
        ):
            built = spark_build(frame, sample=given, store=str(tmp_path / "store"))
            assert built.ref.id == expected_id
            ids.add(built.ref.id)
    assert len(ids) == 2


@pytest.mark.spark
def test_a_sample_may_have_columns_of_any_type(spark, tmp_path) -> None:
    frame = spark.createDataFrame(table([(1, "a = 1"), (2, "s.x = 1")]))
    odd = ("interval '1' year", "make_interval(1, 2)", "parse_json('{}')", "array(1)", "X'00'")
    sample = spark.sql(
        f"SELECT 1 AS a, named_struct('x', 1, 'y', array(1)) AS s, 2 AS A, NULL, {', '.join(odd)}"
    )
    whole = bittern.Index.build(
        table([(1, "a = 1"), (2, "s.x = 1")]), sample=pa.table({"a": [1], "s": [{"x": 1}]})
    )
    for given in (sample, sample.selectExpr("X'00'")):
        built = spark_build(frame, sample=given, store=str(tmp_path / "store"))
        assert built_index(built).ids.to_pylist() == [1, 2]
        if given is sample:
            assert built.ref.id == whole_id(whole, tmp_path)


# ------------------------------------------------------------------ what is bad comes back as rows


@pytest.mark.spark
def test_of_one_id_the_first_good_row_stays(spark, tmp_path) -> None:
    parts = [
        [(1, "a ="), (2, "a = 1"), (3, "a = 1")],
        [(1, "a = 2"), (2, "a = 'never read'"), (4, "(")],
        [(2, ")"), (1, "a ="), (5, "a = 2")],
    ]
    rows = [row for part in parts for row in part]
    frame = spark.createDataFrame(table(parts[0])).coalesce(1)
    for part in parts[1:]:
        frame = frame.union(spark.createDataFrame(table(part)).coalesce(1))
    built = spark_build(frame, store=str(tmp_path))
    whole = bittern.Index.build(table(rows), on_error="skip")
    index = built_index(built)
    assert index.ids.to_pylist() == whole.ids.to_pylist() == [2, 3, 1, 5]
    assert bittern.Matcher(index).match([{"a": 2}]).to_pylist() == [[1, 5]]
    told = [(str(bad.id), bad.position, bad.message) for bad in whole.bad]
    assert sorted(bad_rows(built)) == sorted(told)
    assert [row[0] for row in bad_rows(built) if row[2] == REPEATED] == ["2", "2", "1"]
    assert (built.subscriptions, built.n_bad) == (4, 5)


HOSTILE = {
    "empty": "",
    "blank": " \t\n ",
    "no sense": "a = = 1",
    "unfinished": "a = 'x",
    "not closed": "(" * 50 + "a = 1",
    "deep": "(" * 5_000 + "a = 1" + ")" * 5_000,
    "not not": "NOT " * 5_000 + "a = 1",
    "bomb": " AND ".join("(a = 1 OR b = 2)" for _ in range(3 * MAX_PREDICATES)),
    "list": f"a IN ({', '.join(map(str, range(2 * MAX_PREDICATES)))})",
    "long": "a = '" + "x" * MAX_LENGTH + "'",
    "longer": "a = '" + "x" * 10_000_000 + "'",
    "regex": "a RLIKE '(x'",
    "regex bomb": "a RLIKE '((x{1000}){1000}){1000}'",
    "look-around": "a RLIKE '(?=x)x'",
    "NUL": "a = 1 \0",
    "digits": "a = " + "9" * 400,
    "date": "a = DATE '2024-02-30'",
    "statement": "a = 1; DROP TABLE subscriptions",
}


@pytest.mark.spark
def test_hostile_expressions_are_rows_of_bad(spark, tmp_path) -> None:
    rows: list[tuple[Any, ...]] = [*HOSTILE.items(), ("null", None), (None, "a = 1"), (None, None)]
    rows += [("good", "a = 1"), ("NUL too", "a = 'x\0y'"), ("sign", "`a-é` = '😀'"), ("", "a = 1")]
    whole = bittern.Index.build(table(rows, pa.string()), on_error="skip")
    built = spark_build(spark.createDataFrame(table(rows, pa.string())), store=str(tmp_path))
    assert built_index(built).ids.to_pylist() == ["good", "NUL too", "sign", ""]
    told = bad_rows(built)
    assert told == [(bad.id, bad.position, bad.message) for bad in whole.bad]
    assert [row[0] for row in told] == [*HOSTILE, "null", None, None]
    assert all(len(row[2]) < 500 for row in told)


@pytest.mark.spark
def test_text_that_is_no_utf_8_is_bad(spark, tmp_path) -> None:
    raws = pa.table(
        {"id": [b"ok", b"\xff", b"half"], "text": [b"a = 1", b"a = 1", b"a = '\xed\xa0\x80'"]}
    )
    frame = spark.createDataFrame(raws)
    frame = frame.select(
        *[
            F.col(name).cast("string").alias(to)
            for name, to in (("id", "id"), ("text", "expression"))
        ]
    )
    built = spark_build(frame, store=str(tmp_path))
    assert built_index(built).ids.to_pylist() == ["ok"]
    assert [(row[0], row[1]) for row in bad_rows(built)] == [("\\udcff", 0), ("half", 4)]
    with pytest.raises(SubscriptionError) as raised:
        spark_build(frame, store=str(tmp_path), shards=2, on_error="raise")
    assert {(bad.id, bad.position) for bad in raised.value.bad} == {("\\udcff", 0), ("half", 4)}


@pytest.mark.spark
def test_weights_that_are_no_numbers_are_bad(spark, tmp_path) -> None:
    weights = [1.0, None, float("nan"), float("inf"), -2.0]
    rows = [(id_, "a = 1", weight) for id_, weight in enumerate(weights)]
    built = spark_build(spark.createDataFrame(table(rows)), store=str(tmp_path))
    assert built_index(built).weights.tolist() == [1.0, 1.0, -2.0]
    assert [row[0] for row in bad_rows(built)] == ["2", "3"]
    assert "finite" in bad_rows(built)[0][2]


@pytest.mark.spark
def test_bad_ones_are_raised_all_at_once_if_asked_for(spark, tmp_path) -> None:
    rows = [(id_, "a = 1" if id_ % 2 else "a =") for id_ in range(20)]
    frame = spark.createDataFrame(table(rows)).repartition(4)
    with pytest.raises(SubscriptionError) as raised:
        spark_build(frame, store=str(tmp_path), on_error="raise")
    assert sorted(bad.id for bad in raised.value.bad) == list(range(0, 20, 2))
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ in parts


@pytest.mark.spark
def test_parts_have_what_the_whole_has(spark, tmp_path) -> None:
    rows: list[tuple[Any, ...]] = [(f"s{id_}", f"a{id_ % 4} = {id_}") for id_ in range(80)]
    rows += [*HOSTILE.items(), ("s1", "a = 'again'"), ("s2", "("), (None, "a = 1"), ("n", None)]
    frame = spark.createDataFrame(table(rows, pa.string())).repartition(3)
    told: list[Any] = []
    built = spark_build(
        frame, store=str(tmp_path), shards=3, progress=lambda *what: told.append(what)
    )
    whole = spark_build(frame, store=str(tmp_path), shards=1)
    assert isinstance(built.ref, Shards)
    assert sorted(bad_rows(built), key=str) == sorted(bad_rows(whole), key=str)
    assert built.subscriptions == whole.subscriptions == 80
    assert (set(built.attributes), built.integer_ids) == (set(whole.attributes), False)
    assert [stage for stage, _, _ in told] == ["measure", "measure", "build", "build"]
    assert f"{len(built.ref.shards)} shards {built.ref.id[:12]}" in repr(built)


@pytest.mark.spark
def test_a_catalog_that_is_too_large_for_one_index_is_cut(spark, tmp_path) -> None:
    frame = spark.createDataFrame(table([(id_, f"a = {id_}") for id_ in range(90)]))
    spark.conf.set(building.SHARD_BYTES_CONF, "2k")
    try:
        built = spark_build(frame, store=str(tmp_path))
        assert isinstance(built.ref, Shards)
        assert not isinstance(spark_build(frame, store=str(tmp_path), shards=None).ref, Shards)
        spark.conf.set(building.SHARD_BYTES_CONF, "small")
        with pytest.raises(OptionError, match="small"):
            spark_build(frame)
    finally:
        spark.conf.unset(building.SHARD_BYTES_CONF)


# ------------------------------------------------------------------ what is wrong at once


@pytest.mark.spark
@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("expression", "id missing from expression"),
        ("id, 'a = 1' AS text", "expression missing from id, text"),
        ("id, expression, expression", "two columns named 'expression'"),
        ("id * 1.5D AS id, expression", "id of the subscriptions is double: cast it to bigint"),
        ("NULL AS id, expression", "id of the subscriptions is void"),
        ("id, CAST(expression AS binary) AS expression", "expression of the subscriptions is bin"),
        ("id, expression, 'x' AS weight", "weight of the subscriptions is string"),
    ],
)
def test_wrong_columns_are_told_before_any_job(spark, select: str, said: str) -> None:
    # Were a job started, it would fail with Spark's error.
    frame = spark.range(2).selectExpr("assert_true(id > 5) IS NULL AS x", "id", "'a' AS expression")
    with pytest.raises(OptionError, match=said):
        spark_build(frame.selectExpr(*select.split(", ")))


@pytest.mark.spark
def test_columns_may_have_neighbours(spark, tmp_path) -> None:
    frame = spark.range(2).selectExpr(
        "'other' AS ID", "id", "'x.y' AS `a.b`", "'x' AS weIght", "concat('a = ', id) AS expression"
    )
    built = spark_build(frame, store=str(tmp_path))
    assert built_index(built).texts.to_pylist() == ["a = 0", "a = 1"]
    assert repr(built).startswith(
        f"<bittern.spark.Built of 2 subscriptions on 1 attributes, 0 bad; one index "
        f"{built.ref.id[:12]}; measure "
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_error": "ignore"}, "on_error"),
        ({"shards": 0}, "shards"),
        ({"shards": True}, "shards"),
        ({"shards": "many"}, "shards"),
        ({"stabbing": "magic"}, "magic"),
        ({"sample": [{"a": 1}]}, "sample must be a DataFrame or an Arrow table"),
    ],
)
def test_wrong_options_are_told_before_any_job(spark, options: dict[str, Any], said: str) -> None:
    frame = spark.range(2).selectExpr("id", "assert_true(id > 5) AS expression")
    with pytest.raises(OptionError, match=said):
        spark_build(frame.select("id", F.col("expression").cast("string")), **options)


@pytest.mark.spark
def test_streams_and_other_things_are_refused(spark) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "'a' AS expression")
    for wrong in (stream, 5, "b = 1"):
        with pytest.raises(OptionError, match="DataFrame"):
            spark_build(wrong)
    frame = spark.createDataFrame(table([(1, "a = 1")]))
    with pytest.raises(OptionError, match="sample"):
        spark_build(frame, sample=stream)


@pytest.mark.spark
def test_progress_is_told_stage_by_stage(spark, tmp_path) -> None:
    told = []
    frame = spark.createDataFrame(table([(1, "a = 1"), (2, "b")]))
    built = spark_build(frame, store=str(tmp_path), progress=lambda *what: told.append(what))
    assert told == [
        *(("measure", 0, 1), ("measure", 1, 1)),
        *(("read", 0, 2), ("read", 2, 2)),
        *(("build", 0, 1), ("build", 1, 1)),
        *(("publish", 0, 1), ("publish", 1, 1)),
    ]
    assert list(built.seconds) == ["measure", "read", "build", "publish"]


# ------------------------------------------------------------------ without Spark


def test_a_partition_is_read_in_chunks(monkeypatch) -> None:
    monkeypatch.setattr("bittern.spark.subscriptions.reading._CHUNK_ROWS", 25)
    rows = [(id_, f"a{id_ % 3} = {id_}") for id_ in range(100)]
    batches = table(rows).to_batches(max_chunksize=10)
    chunks = [
        unpack(row["size"], row["packed"])
        for batch in Reading()(iter(batches))
        for row in batch.to_pylist()
    ]
    assert [len(catalog.ids) for catalog, _ in chunks] == [30, 30, 30, 10]
    assert [id_ for catalog, _ in chunks for id_ in catalog.ids] == list(range(100))
    monkeypatch.setattr("bittern.spark.subscriptions.reading._CHUNK_BYTES", 1)
    assert len(list(Reading()(iter(batches)))) == 10
    assert not list(Reading()(iter([])))


def test_a_chunk_carries_only_the_templates_it_uses() -> None:
    catalog, templates = unpack(*next_chunk([(1, "a = 1"), (2, "b < 2"), (3, "b < 3")]))
    again = catalog._replace(shape_ids=catalog.shape_ids[1:])
    small, kept = unpack(*pack(again, templates))
    assert kept == templates[1:]
    assert small.shape_ids.tolist() == [0, 0]


def next_chunk(rows: list[tuple[Any, ...]]) -> tuple[int, bytes]:
    (batch,) = Reading()(iter(table(rows).to_batches()))
    (row,) = batch.to_pylist()
    return row["size"], row["packed"]


def test_what_tasks_run_travels_by_name() -> None:
    assert len(pickle.dumps(Reading())) < 200


@pytest.mark.parametrize(
    ("total", "largest", "pieces"),
    [
        (0, 0, 0),
        (100_000, 100_000, 0),
        (100_001, 100_001, 3),
        (400_000, 200_000, 0),
        (400_000, 200_001, 8),
        (10_000_000, 1_000_000, 0),
        (10_000_000, 1_000_001, 200),
    ],
)
def test_only_large_and_uneven_partitions_are_spread(total, largest, pieces) -> None:
    assert building.spread_pieces(total, largest) == pieces


def test_the_size_decides_how_many_shards_there_are() -> None:
    def auto(nbytes: int) -> int:
        return building.shard_count("auto", nbytes, 1000)

    assert [auto(nbytes) for nbytes in (0, 1, 1000, 1001, 2000, 2001)] == [1, 1, 1, 2, 2, 3]
    assert building.shard_count(None, 10**12, 1000) == building.shard_count(1, 10**12, 1000) == 1
    assert building.shard_count(7, 0, 1000) == 7


def test_the_estimate_is_of_the_right_size() -> None:
    texts = [
        f"model = 'm{id_ % 500}' AND price < {id_ % 997} AND stars >= {id_ % 5}"
        for id_ in range(20_000)
    ]
    index = bittern.Index.build(table(list(enumerate(texts))))
    size = index.nbytes + sum(map(len, texts)) + 16 * len(texts)
    assert 0.5 < building.estimated_bytes(len(texts), sum(map(len, texts))) / size < 2


@pytest.mark.parametrize(
    ("setting", "nbytes"),
    [
        (None, 4 << 30),
        ("1000", 1000),
        ("10b", 10),
        ("1k", 1024),
        ("2MB", 2 << 20),
        (" 4g ", 4 << 30),
    ],
)
def test_the_size_of_a_shard_is_a_setting(setting: str | None, nbytes: int) -> None:
    assert building.shard_bytes(setting) == nbytes


@pytest.mark.parametrize("setting", ["", "g", "4x", "0", "-1", "1.5g", "four"])
def test_a_wrong_setting_is_told(setting: str) -> None:
    with pytest.raises(OptionError, match=r"spark\.bittern\.shard\.bytes"):
        building.shard_bytes(setting)


@pytest.mark.parametrize("column", [pa.array([1]), pa.array(["{}"]).dictionary_encode()])
def test_a_sample_whose_json_is_not_text_is_refused(column: pa.Array) -> None:
    with pytest.raises(OptionError, match=f"json names 'j', which is not text but {column.type}"):
        sample_table(pa.table({"j": column}), ["j"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.json_()])
def test_a_sample_of_json_text_says_so_itself(kind: pa.DataType) -> None:
    sample = sample_table(pa.table({"j": pa.array(["{}"]).cast(kind)}), ["j"])
    assert sample is not None
    assert is_json(sample.schema.field("j").type)


@pytest.mark.spark
def test_samples_of_json_and_variants_are_read(spark: Any) -> None:
    """Where all events have ``b`` and few have ``a``, the pivot is on ``a``."""
    catalog = [(i, f"a = {i % 3} AND b = {i % 5}") for i in range(30)]
    frame = spark.createDataFrame(catalog, "id long, expression string")
    texts = ['{"a": 1, "b": 1}', *['{"b": 1}'] * 30]
    by_text = spark.createDataFrame([(text,) for text in texts], "body string")
    by_variant = by_text.selectExpr("parse_json(body) AS v").union(
        spark.sql("SELECT CAST(NULL AS VARIANT) AS v")
    )
    whole = pa.table({"a": pa.array([1] + [None] * 30, pa.int64()), "b": [1] * 31})
    wanted = attach(spark_build(frame, sample=whole).ref).subscriptions.arrays()["lows"]
    for sample, json in ((by_text, "body"), (by_variant, ())):
        found = attach(spark_build(frame, sample=sample, json=json).ref).subscriptions.arrays()[
            "lows"
        ]
        assert np.array_equal(found, wanted)
    plain = attach(spark_build(frame).ref).subscriptions.arrays()["lows"]
    assert not np.array_equal(plain, wanted)


@pytest.mark.spark
def test_a_sample_has_few_bytes_however_wide_events_are(spark: Any) -> None:
    events = spark.range(1_000).select("id", F.expr("repeat('x', 100000)").alias("body"))
    sample = sample_table(events)
    assert sample is not None
    assert sample.nbytes < 64 << 20


@pytest.mark.spark
def test_text_ids_are_text_even_where_no_subscription_is_good(spark: Any) -> None:
    events = spark.sql("SELECT 1 AS id, 1 AS a")
    bad = spark.createDataFrame([("x", "a =")], "id string, expression string")
    found = spark_match(events, bad, event_id="id", on_error="skip", shards=None)
    assert dict(found.dtypes)["subscriptions"] == "array<string>"
    assert [row.subscriptions for row in found.collect()] == [[]]


@pytest.mark.spark
def test_building_works_with_batches_of_any_size(spark: Any) -> None:
    rows = spark.createDataFrame([(1, "a = 1")], "id long, expression string")
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(setting, "0")  # Spark: no limit
    try:
        built = spark_build(rows)
    finally:
        spark.conf.unset(setting)
    assert built.subscriptions == 1
