"""Named sets on Spark: by reference, in shards, in SQL, pinned with the catalog's version."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import bittern
import bittern.spark
from bittern.catalog.catalog import Catalog
from bittern.errors import OptionError
from bittern.spark.catalogs import eventual, views
from bittern.spark.catalogs.builder import Builder
from bittern.spark.streaming.files import Files
from bittern.spark.streaming.metrics import BatchReport, Metrics
from bittern.spark.streaming.pipeline import Pipeline
from steady import wait_until

pytestmark = pytest.mark.spark

TEXTS = {
    "in": "u IN SET vips",
    "out": "u NOT IN SET vips",
    "name": "lower(n) IN SET names AND u > 1",
    "plain": "u = 2",
}
SETS = {"vips": [1, 2], "names": ["ann"]}
ROWS = [(1, 1, "Ann"), (2, 2, "ANN"), (3, 3, "Bob"), (4, None, "ann")]
RIGHT = {1: {"in"}, 2: {"in", "name", "plain"}, 3: {"out"}, 4: set[str]()}
#: With 3 in the place of 1 and 2.
OTHER = {1: {"out"}, 2: {"out", "name", "plain"}, 3: {"in"}, 4: set[str]()}


@pytest.fixture
def events(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, "id long, u long, n string")


@pytest.fixture
def subscriptions(spark: Any) -> Any:
    return spark.createDataFrame(list(TEXTS.items()), "id string, expression string")


def found(frame: Any) -> dict[int, set[str]]:
    return {row.id: set(row.subscriptions) for row in frame.collect()}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(tmp_path / "catalog.db") as made:
        for name, members in SETS.items():
            made.sets[name] = members
        made.load(TEXTS)
        yield made


def test_an_index_with_its_sets_or_with_others(events: Any, tmp_path: Path) -> None:
    index = bittern.Index.build(TEXTS, sets=SETS)
    assert found(bittern.spark.match(events, index, event_id="id")) == RIGHT
    more = {"vips": [3]}
    assert found(bittern.spark.match(events, index, event_id="id", sets=more)) == OTHER
    index.save(tmp_path / "saved")
    path = str(tmp_path / "saved")
    assert found(bittern.spark.match(events, path, event_id="id", sets=more)) == OTHER
    bare = bittern.Index.build(TEXTS)
    with pytest.raises(OptionError, match="the sets 'vips', 'names'"):
        bittern.spark.match(events, bare, event_id="id")
    with pytest.raises(OptionError, match="the set 'names'"):
        bittern.spark.match(events, bare, event_id="id", sets=more)
    with pytest.raises(OptionError, match="NULL"):
        bittern.spark.match(events, bare, event_id="id", sets={"vips": [None]})


@pytest.mark.parametrize("shards", [None, 3])
def test_subscriptions_of_a_frame(
    events: Any, subscriptions: Any, shards: int | None, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"event_id": "id", "shards": shards, "store": str(tmp_path)}
    assert found(bittern.spark.match(events, subscriptions, sets=SETS, **options)) == RIGHT
    built = bittern.spark.build(subscriptions, shards=shards, store=str(tmp_path))
    for sets, right in ((SETS, RIGHT), (SETS | {"vips": [3]}, OTHER)):
        assert found(bittern.spark.match(events, built, event_id="id", sets=sets)) == right
    with pytest.raises(OptionError, match="the sets"):
        bittern.spark.match(events, built, event_id="id")
    out = tmp_path / "out"
    bittern.spark.write(events, built, out, event_id="id", sets=SETS)
    rows = [
        row for file in out.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()
    ]
    assert {row["id"]: set(row["subscriptions"]) for row in rows} == RIGHT


def test_many_shards_route_by_sets(spark: Any, tmp_path: Path) -> None:
    """Subscriptions that are filed under a set, in parts: each event finds its own."""
    texts = [(i, f"u IN SET s{i % 20} AND v = {i}") for i in range(200)]
    texts += [(1000 + i, f"u IN SET s{i}") for i in range(20)]
    frame = spark.createDataFrame(texts, "id long, expression string")
    sets = {f"s{i}": range(i, 100, 20) for i in range(20)}
    rows = [(n, n % 100, n % 200) for n in range(300)]
    events = spark.createDataFrame(rows, "id long, u long, v long")
    got = found(
        bittern.spark.match(
            events, frame, event_id="id", shards=4, sets=sets, store=str(tmp_path), sample=events
        )
    )
    embedded = bittern.Matcher(bittern.Index.build(texts), sets=sets)
    right = embedded.match([{"u": u, "v": v} for _, u, v in rows]).to_pylist()
    assert got == {n: set(ids) for (n, _, _), ids in zip(rows, right, strict=True)}


def test_sql(spark: Any, events: Any) -> None:
    index = bittern.Index.build(TEXTS, sets=SETS)
    bittern.spark.register(spark, index, "with_sets", sets={"vips": [3]})
    events.createOrReplaceTempView("set_events")
    rows = spark.sql("SELECT id, with_sets(struct(*)) AS subscriptions FROM set_events")
    assert found(rows) == OTHER


def test_a_function_that_only_spark_knows_is_refused(spark: Any, events: Any) -> None:
    frame = spark.createDataFrame([("a", "hash(u) IN SET vips")], "id string, expression string")
    with pytest.raises(bittern.errors.SubscriptionError, match="only Spark can compute"):
        bittern.spark.match(events, frame, event_id="id", sets=SETS)


def test_beside_documents(spark: Any, tmp_path: Path) -> None:
    texts = {"a": "u IN SET vips AND EXISTS d (d.n = n)"}
    index = bittern.Index.build(texts, sets=SETS)
    rows = [(1, 1, "x"), (2, 2, "x"), (3, 3, "x")]
    frame = spark.createDataFrame(rows, "id long, u long, n string")
    for sets, right in ((None, {2}), ({"vips": [3]}, {3})):
        out = bittern.spark.match(frame, index, event_id="id", order_by="id", sets=sets)
        assert {id_ for id_, ids in found(out).items() if ids} == right


def test_a_catalog(events: Any, catalog: Catalog, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    assert found(bittern.spark.match(events, catalog, event_id="id", store=store)) == RIGHT
    catalog.sets["vips"] = [3]
    assert found(bittern.spark.match(events, catalog, event_id="id", store=store)) == OTHER
    with pytest.raises(OptionError, match="a catalog has its own sets"):
        bittern.spark.match(events, catalog, event_id="id", sets=SETS)
    with pytest.raises(OptionError, match="a catalog has its own sets"):
        bittern.spark.match(events, catalog, event_id="id", sets=SETS, consistency="eventual")


@pytest.mark.parametrize("carried", [0, 1 << 16])
def test_views(
    spark: Any, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried: int
) -> None:
    """A version's view has the sets of that version; changing a set sends nothing else anew."""
    monkeypatch.setattr(views, "CARRIED_SET", carried)
    first = catalog.version()
    catalog.sets["vips"] = [3]
    catalog.sets["unused"] = [1]
    builder = Builder(spark, catalog, str(tmp_path / "store"))
    old, new, last = (builder.view(version) for version in (first, first + 1, first + 2))
    assert len(last.named_sets) == 2, "nothing names the third"
    assert old.layers == new.layers == last.layers
    assert old.id != new.id == last.id
    assert set(old.named_sets) & set(new.named_sets), "the other set is the same"
    for view, right in ((old, RIGHT), (new, OTHER), (last, OTHER)):
        matches = view.matcher().match([{"u": u, "n": n} for _, u, n in ROWS])
        assert [set(ids) for ids in matches.to_pylist()] == list(right.values())
    builder.close()


def test_eventual(
    spark: Any, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eventual, "REFRESH", 0.01)
    eventual._seen.clear()
    follower = eventual.CatalogFollower(spark, catalog, str(tmp_path / "store"))
    follower.start()
    rows = [{"u": u, "n": n} for _, u, n in ROWS]

    def seen() -> list[set[str]]:
        return [set(ids) for ids in follower.following.matcher().match(rows).to_pylist()]

    try:
        assert seen() == list(RIGHT.values())
        catalog.sets["vips"] = [3]
        wait_until(lambda: seen() == list(OTHER.values()))
    finally:
        follower.stop()
        follower.join()
        eventual._seen.clear()


class Between(Metrics):
    """Does something after a batch."""

    def __init__(self, between: dict[int, Callable[[], Any]]) -> None:
        super().__init__()
        self._between = between

    def batch(self, report: BatchReport) -> None:
        super().batch(report)
        if report.batch_id in self._between:
            self._between[report.batch_id]()


def test_each_batch_of_a_pipeline_has_the_sets_of_its_version(
    spark: Any, catalog: Catalog, tmp_path: Path
) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for number in range(4):
        lines = [json.dumps({"id": 10 * number + i, "u": u, "n": n}) for i, u, n in ROWS]
        file = incoming / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (1_000_000 + number, 1_000_000 + number))  # Spark takes older ones first
    reader = spark.readStream.schema("id long, u long, n string")
    stream = reader.option("maxFilesPerTrigger", 1).json(str(incoming))
    between: dict[int, Callable[[], Any]] = {
        0: lambda: catalog.sets.put("vips", [3]),
        1: lambda: catalog.sets.put("vips", range(100_000)),
        2: lambda: catalog.remove("plain"),
    }
    first = catalog.version()
    pipeline = Pipeline(
        stream,
        catalog,
        Files(tmp_path / "matches"),
        tmp_path / "checkpoint",
        event_id="id",
        available_now=True,
        store=str(tmp_path / "store"),
        metrics=Between(between),
    )
    pipeline.run()
    every = {1: {"in"}, 2: {"in", "name", "plain"}, 3: {"in"}, 4: set[str]()}
    last = every | {2: {"in", "name"}}
    right = {
        (10 * number + id_, name, first + number)
        for number, answers in enumerate((RIGHT, OTHER, every, last))
        for id_, names in answers.items()
        for name in names
    }
    rows = spark.read.parquet(str(tmp_path / "matches")).select("id", "subscription", "version")
    assert {tuple(row) for row in rows.collect()} == right
