"""Known faults of Bittern on Spark, each the smallest input that shows it.

All are expected to fail, strictly: whoever mends one has to take its mark away.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import bittern
from bittern.errors import OptionError

pytest.importorskip("pyspark")

import pyarrow as pa

import bittern.spark
from bittern.spark.staging import Staging

LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def subscriptions(spark: Any, texts: dict[Any, str]) -> Any:
    id_type = "bigint" if all(isinstance(id_, int) for id_ in texts) else "string"
    return spark.createDataFrame(list(texts.items()), f"id {id_type}, expression string")


@pytest.fixture(scope="module")
def index() -> bittern.Index:
    return bittern.Index.build({1: "a = 1"})


@pytest.fixture(scope="module")
def cut(spark: Any) -> Any:
    texts = {1: "a = 1", 2: "a > 0", 3: "c = 1", 4: "c > 5"}
    return bittern.spark.build(subscriptions(spark, texts), shards=3)


# -- lost, wrong or refused for no reason ----------------------------------------------------------


@pytest.mark.xfail(strict=True, reason="a folder of hidden files passes for a table and is gone")
def test_overwriting_spares_a_folder_of_hidden_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text("mine", encoding="utf-8")
    with pytest.raises(OptionError, match="not overwritten"), Staging(home, "overwrite") as staging:
        staging.commit()
    assert (home / ".bashrc").exists()


@pytest.mark.spark
@pytest.mark.parametrize(
    "column",
    [
        "if(a = 1, NULL, named_struct('p', a))",  # p is NOT NULL, the struct is not
        """if(a = 1, NULL, parse_json('{"b": 1}'))""",
    ],
)
@pytest.mark.xfail(strict=True, reason="Parquet's writer refuses NULL parents of NOT NULL fields")
def test_null_structs_and_variants_are_written(
    spark: Any, tmp_path: Path, index: bittern.Index, column: str
) -> None:
    events = spark.sql(f"SELECT a, {column} AS s FROM VALUES (1), (2) AS t(a)")
    bittern.spark.write(events, index, tmp_path / "out")
    written = spark.read.parquet(str(tmp_path / "out")).orderBy("a").collect()
    assert [row.s is None for row in written] == [True, False]


def _unreadable_variants(spark: Any) -> Any:
    """One event, {"a": 1, "b": a string that is no UTF-8}."""
    mark = {b"variant": b"true"}
    parts = [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata=mark),
    ]
    value, names = bytes.fromhex("02020001000204 0c01 05ff"), bytes.fromhex("010200010261 62")

    def make(batches: Any) -> Any:  # inside, so that workers need not import this module
        for batch in batches:
            columns = [pa.array([each] * batch.num_rows, pa.binary()) for each in (value, names)]
            variants = pa.StructArray.from_arrays(columns, fields=parts)
            yield pa.RecordBatch.from_arrays([batch.column(0), variants], names=["id", "v"])

    return spark.range(1).mapInArrow(make, "id bigint, v variant")


@pytest.mark.spark
@pytest.mark.xfail(
    strict=True, reason="what only a shard's attributes show to be unreadable is not rejected"
)
def test_an_unreadable_variant_matches_nothing_in_any_part(spark: Any) -> None:
    events = _unreadable_variants(spark)
    texts = {k: f"a = {k} AND b <> 'x'" for k in range(1, 40)} | {99: "z IS NULL"}
    found = bittern.spark.match(
        events, subscriptions(spark, texts), event_id="id", rejects=True, shards=3
    )
    assert [tuple(row) for row in found.collect()] == [
        (0, [], "a string of the variant is not valid UTF-8")
    ]


@pytest.mark.spark
@pytest.mark.xfail(strict=True, reason="shards report no value of a type that nobody compares")
def test_shards_report_values_that_no_subscription_compares(spark: Any, cut: Any) -> None:
    events = spark.sql("""SELECT 7 AS id, '{"c": "x"}' AS j""")
    found = bittern.spark.match(events, cut, event_id="id", json="j", rejects=True)
    assert [row.rejected for row in found.collect()] == [
        "c is a string, and subscriptions compare it with numbers"
    ]


@pytest.mark.spark
@pytest.mark.xfail(strict=True, reason="only reading the matches checks that event ids are unique")
def test_counting_gathered_matches_notices_repeated_event_ids(spark: Any, cut: Any) -> None:
    events = spark.sql("SELECT * FROM VALUES (1, 1), (1, 1) AS t(id, a)")
    found = bittern.spark.match(events, cut, event_id="id")
    with pytest.raises(Exception, match="two events have"):
        found.count()  # 1


# -- settings and types that are Spark's own -------------------------------------------------------


@pytest.mark.spark
@pytest.mark.xfail(
    strict=True, reason="a survey's batches differ where the session wants long offsets"
)
def test_shards_are_built_with_large_variable_types(spark: Any) -> None:
    spark.conf.set(LARGE, "true")
    try:
        built = bittern.spark.build(subscriptions(spark, {1: "a = 1", 2: "a > 0"}), shards=2)
    finally:
        spark.conf.unset(LARGE)
    assert built.subscriptions == 2


@pytest.mark.spark
@pytest.mark.parametrize("key", ["INTERVAL '1' DAY", "'K' COLLATE UTF8_LCASE"])
@pytest.mark.xfail(
    strict=True, reason="Arrow does not carry these types, and the task says so in 71 lines of Java"
)
def test_keys_of_types_that_arrow_does_not_tell_apart(
    spark: Any, index: bittern.Index, key: str
) -> None:
    events = spark.sql(f"SELECT {key} AS k, 1 AS a")
    found = bittern.spark.match(events, index, event_id="k")
    assert [row.subscriptions for row in found.collect()] == [[1]]


@pytest.mark.spark
@pytest.mark.xfail(strict=True, reason="plan converts all columns, match only those it can")
def test_a_plan_for_events_with_columns_that_arrow_has_no_type_for(
    spark: Any, index: bittern.Index
) -> None:
    events = spark.sql("SELECT 1 AS id, 1 AS a, make_interval(1) AS i")
    assert bittern.spark.plan(index, events=events, event_id="id").left_out == ("i",)


@pytest.mark.spark
@pytest.mark.xfail(strict=True, reason="the driver marks the router alone: cleaning takes the rest")
def test_the_driver_keeps_all_parts_of_a_sharded_index(cut: Any) -> None:
    held = {Path(os.path.realpath(each)).name for each in Path("/proc/self/fd").iterdir()}
    parts = [*cut.ref.shards, *([cut.ref.home] if cut.ref.home else [])]
    assert {f"{part.id}.use" for part in parts} <= held


# -- wrong arguments that are not told on the driver -----------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize(
    ("select", "key"), [("1 AS Subscriptions, 1 AS a", "Subscriptions"), ("1 id, 1 a, 2 A", "id")]
)
@pytest.mark.xfail(strict=True, reason="Spark takes names that differ in case for the same, we not")
def test_names_that_differ_in_case_only_are_told(
    spark: Any, index: bittern.Index, select: str, key: str
) -> None:
    with pytest.raises(OptionError, match="rename"):
        bittern.spark.match(spark.sql(f"SELECT {select}"), index, event_id=key)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "select"), [({"limit": 0}, "1 AS a"), ({}, "1 AS a, 5 AS subscription")]
)
@pytest.mark.xfail(strict=True, reason="register checks neither limit nor the names of keys")
def test_what_cannot_be_registered_is_told(
    spark: Any, index: bittern.Index, options: dict[str, Any], select: str
) -> None:
    events = spark.sql(f"SELECT {select}")
    with pytest.raises(OptionError):
        bittern.spark.register(spark, index, "bittern_review", events=events, **options)
