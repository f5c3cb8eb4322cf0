"""A little of everything on Spark, on whatever version is installed.

Here it runs on the newest one; ``make test-spark-versions`` runs it on all that are supported, each
with the lowest versions of everything else. Spark's own filter says what is right.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import bittern
import bittern.spark
from bittern.errors import OptionError
from bittern.spark import arrow_tables
from bittern.spark.streaming import Edge, Files, Format, Pipeline, Throttle, sources
from bittern.spark.versions import VERSION, in_partition

pytestmark = pytest.mark.spark

SUBSCRIPTIONS = {
    "equal": "model = 'iphone5s' AND price <= 580",
    "range": "price BETWEEN 5 AND 9.5",
    "nan": "price > 1e300",
    "null": "price IS NULL OR model IS NULL",
    "struct": "seller.country = 'FI' AND price < 100",
    "map": "size['x'] > 1",
    "array": "array_contains(tags, 'new')",
    "like": "model LIKE 'i%' OR model RLIKE '^no'",
    "term": "lower(model) = 'nokia' AND price * quantity > 10",
    "failing": "quantity / (quantity - 2) > 0.5",
    "decimal": "cost > 9.99",
    "time": "seen >= TIMESTAMP '2026-01-31 08:00:00'",
    "local": "local < TIMESTAMP_NTZ '2026-01-31 08:00:00'",
    "day": "day = DATE '2026-01-31'",
    "not": "NOT (model = 'Nokia' OR quantity > 3)",
}
#: Where Spark's own filter fails for some events, those that it can be asked about.
FAILING = {"failing": "quantity != 2"}
SQL = """
SELECT id, model, price, quantity,
  named_struct('country', IF(id % 2 = 0, 'FI', 'SE'), 'rating', id) AS seller,
  map('x', quantity, 'y', 0) AS size,
  IF(id % 3 = 0, array('new', 'red'), array()) AS tags,
  CAST(id AS DECIMAL(10, 2)) / 2 + 8 AS cost,
  timestamp_seconds(1769846400 + 3600 * (id - 4)) AS seen,
  TIMESTAMP_NTZ '2026-01-31 06:00:00' + make_dt_interval(0, CAST(id AS INT)) AS local,
  date_add(DATE '2026-01-29', CAST(id AS INT)) AS day
FROM VALUES
  (0, 'iphone5s', 550D, 1), (1, 'iphone5s', 600D, 2), (2, 'Nokia', 9D, 3), (3, 'nokia', 5D, 2),
  (4, NULL, 7D, 9), (5, 'galaxy', double('NaN'), 1), (6, 'galaxy', NULL, NULL), (7, '', -0D, 5)
  AS t(id, model, price, quantity)
"""


@pytest.fixture(scope="module")
def ansi(spark: Any) -> Any:
    """The session in ANSI mode, the default of Spark from 4.0 on."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield spark
    spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.fixture(scope="module")
def events(ansi: Any) -> Any:
    # Not cached: by the statistics of what is cached, Spark would leave out rows with a NaN.
    return ansi.sql(SQL).repartition(2)


@pytest.fixture(scope="module")
def expected(events: Any) -> Counter[tuple[int, str]]:
    """What each event satisfies, as Spark's filter has it."""
    asked = [
        f"CASE WHEN {FAILING.get(name, 'true')} THEN {expression} END AS `{name}`"
        for name, expression in SUBSCRIPTIONS.items()
    ]
    rows = events.selectExpr("id", *asked).collect()
    pairs = Counter((row["id"], name) for row in rows for name in SUBSCRIPTIONS if row[name])
    assert len(pairs) > 20
    return pairs


def frame_of(spark: Any) -> Any:
    return spark.createDataFrame([*SUBSCRIPTIONS.items()], "id string, expression string")


def pairs_of(found: Any) -> Counter[tuple[int, str]]:
    return Counter((row["id"], row["subscription"]) for row in found.collect())


@pytest.mark.parametrize("given", ["frame", "mapping"])
def test_match(ansi: Any, events: Any, expected: Any, given: str) -> None:
    subscriptions = frame_of(ansi) if given == "frame" else SUBSCRIPTIONS
    found = bittern.spark.match(events, subscriptions, event_id="id", explode=True)
    assert pairs_of(found) == expected
    rows = bittern.spark.match(events, subscriptions, event_id="id", rejects=True).collect()
    assert {row["id"]: len(row["subscriptions"]) for row in rows} == {
        id_: sum(1 for key in expected if key[0] == id_) for id_ in range(8)
    }
    assert [row["id"] for row in rows if row["rejected"] is not None] == [
        row["id"] for row in rows if row["id"] in (1, 3)
    ]


def test_write(ansi: Any, events: Any, expected: Any, tmp_path: Path) -> None:
    written = bittern.spark.write(
        events, frame_of(ansi), tmp_path / "out", event_id="id", explode=True
    )
    assert (written.events, written.matches) == (8, len(expected))
    assert pairs_of(ansi.read.parquet(str(tmp_path / "out"))) == expected


def test_shards(ansi: Any, events: Any, expected: Any) -> None:
    built = bittern.spark.build(frame_of(ansi), shards=3, sample=events, schema=events.schema)
    assert built.subscriptions == len(SUBSCRIPTIONS)
    assert bittern.spark.plan(built, events=events).sharded
    assert pairs_of(bittern.spark.match(events, built, event_id="id", explode=True)) == expected
    gathered = bittern.spark.match(events, built, event_id="id", observe="matching").collect()
    assert sum(len(row["subscriptions"]) for row in gathered) == len(expected)


def test_rows_are_in_the_partition_that_is_named(ansi: Any) -> None:
    from pyspark.sql import functions as F

    numbered = ansi.range(0, 100, 1, 3).select((F.col("id") % 5).cast("int").alias("to"))
    placed = in_partition(numbered, 5, F.col("to"))
    assert placed.rdd.getNumPartitions() == 5
    found = placed.select("to", F.spark_partition_id().alias("at")).distinct().collect()
    assert sorted(map(tuple, found)) == [(at, at) for at in range(5)]


def test_tables_come_and_go(events: Any, ansi: Any) -> None:
    table = arrow_tables.to_arrow(events.select("id", "seller", "tags", "cost", "seen"))
    assert table.num_rows == 8
    assert sorted(table["id"].to_pylist()) == list(range(8))
    assert arrow_tables.to_arrow(events.where("id > 10").select("id")).num_rows == 0
    ids = table.select(["id"]).slice(0, 2)
    ids = ids.set_column(0, "id", ids["id"].cast("int64"))
    assert arrow_tables.frame_of(ansi, ids).count() == 2


def test_sql(ansi: Any, events: Any, expected: Any) -> None:
    index = bittern.Index.build(
        {k: v for k, v in SUBSCRIPTIONS.items() if k in ("equal", "range", "null")}
    )
    known = Counter(key for key in expected.elements() if key[1] in ("equal", "range", "null"))
    bittern.spark.match(events, index, event_id="id", explode=True).createOrReplaceTempView("found")
    assert pairs_of(ansi.sql("SELECT * FROM found WHERE subscription != ''")) == known
    events.createOrReplaceTempView("offers")
    if VERSION < (4, 1):
        with pytest.raises(OptionError, match=r"SQL functions need Spark 4\.1 or later"):
            bittern.spark.register(ansi, index)
        return
    bittern.spark.register(ansi, index, events=events, event_id="id")
    found = ansi.sql("SELECT id, explode(bittern_match(struct(*))) AS subscription FROM offers")
    assert pairs_of(found) == known
    assert pairs_of(ansi.sql("SELECT * FROM bittern_match(TABLE(offers))")) == known


def test_variants(ansi: Any) -> None:
    if VERSION < (4, 0):
        pytest.skip(f"Spark {ansi.version} has no variants")
    rows = ansi.sql("""SELECT 1 AS id, parse_json('{"price": 5}') AS v""")
    found = bittern.spark.match(rows, {"a": "price < 9", "b": "price > 9"}, event_id="id")
    assert [row["subscriptions"] for row in found.collect()] == [["a"]]


def test_history(ansi: Any) -> None:
    sold = ansi.createDataFrame([("a", 9.0)], "isbn string, price double")
    offered = ansi.createDataFrame(
        [(1, "a", 5.0), (2, "b", 5.0)], "id long, isbn string, price double"
    )
    wishes = {"fallen": "EXISTS d (d.isbn = isbn AND d.price > price)"}
    found = bittern.spark.match(offered, wishes, event_id="id", history=sold, order_by="id")
    assert [row["subscriptions"] for row in found.orderBy("id").collect()] == [["fallen"], []]


LINES = (
    {"product": "tent", "at": 1, "price": 9},
    {"product": "tent", "at": 2, "price": 8},
    {"product": "lamp", "at": 3, "price": 7},
)


def test_pipeline(ansi: Any, tmp_path: Path) -> None:
    """JSON lines, one of which is no UTF-8; then the same with steps and another sink."""
    (tmp_path / "in").mkdir()
    lines = b"\n".join([*(json.dumps(line).encode() for line in LINES), b'{"product": "\xff"}'])
    (tmp_path / "in" / "a.jsonl").write_bytes(lines)
    catalog = bittern.Catalog(tmp_path / "catalog.db")
    catalog.add("cheap", "price < 10", subscriber="ann")
    catalog.add("lamps", "product LIKE 'l%'", subscriber="ann")
    keys = {name: f"get_json_object(value, '$.{name}')" for name in ("product", "at")}
    source = sources.files(ansi, tmp_path / "in", keys=keys)
    asked: dict[str, Any] = {"event_id": source.event_id, "json": source.json}
    asked |= {"available_now": True, "payload": "value"}
    Pipeline(
        source.events,
        catalog,
        Files(tmp_path / "out"),
        tmp_path / "first",
        rejects=tmp_path / "rejects",
        **asked,
    ).run()
    found = ansi.read.parquet(str(tmp_path / "out")).select("at", "subscription", "version")
    assert Counter(map(tuple, found.collect())) == Counter(
        [("1", "cheap", 2), ("2", "cheap", 2), ("3", "cheap", 2), ("3", "lamps", 2)]
    )
    assert ansi.read.parquet(str(tmp_path / "rejects")).count() == 1
    Pipeline(
        source.events,
        catalog,
        Format("json", options={"path": str(tmp_path / "json")}),
        tmp_path / "second",
        after=[Edge("product", order="at"), Throttle(2, "1 hour", order="at")],
        **asked,
    ).run()
    passed = ansi.read.json(str(tmp_path / "json")).select("at", "subscription")
    assert Counter(map(tuple, passed.collect())) == Counter([("1", "cheap"), ("3", "cheap")])
