"""A pipeline in shards: each batch finds what its version of the catalog finds, whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import bittern
from bittern.catalog.catalog import Catalog
from bittern.errors import OptionError
from bittern.spark.catalogs import in_shards, sending
from bittern.spark.catalogs.in_shards import ShardsBuilder
from bittern.spark.changes.forms import BeforeAfter
from bittern.spark.streaming.metrics import BatchReport, Metrics
from bittern.spark.streaming.pipeline import Pipeline
from steady import come

pytestmark = pytest.mark.spark

EVENTS = [
    {"id": at, "price": float(at % 7), "color": ("red", "blue", "teal")[at % 3]} for at in range(20)
]


class Between(Metrics):
    """Does what is to be done after a batch, and keeps the versions."""

    def __init__(self, steps: list[Callable[[], Any]]) -> None:
        super().__init__()
        self.steps = steps
        self.versions: dict[int, int] = {}

    def batch(self, report: BatchReport) -> None:
        super().batch(report)
        self.versions[report.batch_id] = report.version
        if report.batch_id < len(self.steps):
            self.steps[report.batch_id]()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.sets.put("warm", ["red"])
        for at in range(12):
            text = f"price >= {at % 8} AND price < {at % 8 + 2}"
            catalog.add(f"p{at}", text, weight=float(at % 3))
        catalog.add("reds", "color = 'red'", weight=5.0)
        catalog.add("warm", "color IN SET warm AND price > 1")
        catalog.add("none", "price IS NULL OR color IS NULL")
        yield catalog


def right(catalog: Catalog, version: int, limit: int | None) -> list[tuple[int, str]]:
    """What the embedded engine finds for a version."""
    sets = {"warm": catalog.sets.members("warm", version)}
    rows = catalog.at(version).select(["id", "expression", "weight"])
    matches = bittern.Matcher(bittern.Index.build(rows, sets=sets)).match(EVENTS, limit=limit)
    found = [[str(each) for each in own] for own in matches.to_pylist()]
    return sorted((at, id_) for at, own in enumerate(found) for id_ in own)


@pytest.mark.parametrize("limit", [None, 2])
def test_every_batch_finds_what_its_version_finds(
    spark: Any,
    tmp_path: Path,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    limit: int | None,
) -> None:
    monkeypatch.setattr(in_shards, "_CHANGED", 5)
    if limit is not None:
        monkeypatch.setattr(in_shards, "CLOSURE", 1)  # changes are broadcast
    cuts = []
    cut = in_shards.build_shards
    monkeypatch.setattr(
        in_shards, "build_shards", lambda *args, **more: cuts.append(1) or cut(*args, **more)
    )
    incoming = tmp_path / "incoming"
    incoming.mkdir()

    def feed(number: int) -> None:
        hidden = incoming / f".{number}"
        hidden.write_text("\n".join(map(json.dumps, EVENTS)))
        come(hidden, incoming / f"{number:06}.json")

    def change_some() -> None:
        catalog.add("new", "price = 3")
        catalog.add("p1", "color = 'teal'", weight=9.0, replace=True)
        catalog.remove("reds")
        catalog.add("other", "id < 3 AND upper(color) = 'RED'")

    def change_a_set() -> None:
        catalog.sets.put("warm", ["teal", "blue"])

    def change_most() -> None:
        for at in range(2, 12):
            catalog.add(f"p{at}", f"price = {at % 5}", replace=True)

    for number in range(5):
        feed(number)
    between = Between([change_some, change_a_set, change_most, lambda: catalog.remove("new")])
    events = spark.readStream.schema("id bigint, price double, color string")
    Pipeline(
        events.option("maxFilesPerTrigger", 1).json(str(incoming)),
        catalog,
        tmp_path / "matches",
        tmp_path / "checkpoint",
        event_id="id",
        available_now=True,
        limit=limit,
        metrics=between,
        shards=3,
    ).run()
    assert len(set(between.versions.values())) == 5
    for batch, version in between.versions.items():
        rows = [
            row
            for file in (tmp_path / "matches" / f"batch={batch}").glob("*.parquet")
            for row in pq.ParquetFile(file).read().to_pylist()
        ]
        assert {row["version"] for row in rows} == {version}
        found = sorted((row["id"], row["subscription"]) for row in rows)
        assert found == right(catalog, version, limit), f"batch {batch}"
    assert len(cuts) == 2, "at the start, and when most had changed"


def test_shards_of_an_empty_catalog_and_an_earlier_version(
    spark: Any, tmp_path: Path, catalog: Catalog
) -> None:
    with Catalog(tmp_path / "empty.db") as empty:
        builder = ShardsBuilder(spark, empty, shards=2)
        assert sum(builder.shards(empty.version()).subscriptions) == 0
        empty.add("a", "price = 1")
        found = builder.shards(empty.version())
        assert found.changed() is not None
        assert found.attributes == ("price",)
        builder.close()
    builder = ShardsBuilder(spark, catalog, shards=2)
    first = builder.shards(catalog.version())
    before = catalog.version()
    catalog.add("later", "price = 5")
    assert builder.shards(catalog.version()).changed() is not None
    again = builder.shards(before)
    assert again.id == first.id
    builder.close()
    assert sending.CLOSURE == in_shards.CLOSURE


def test_what_does_not_go_with_shards_is_refused(
    spark: Any, tmp_path: Path, catalog: Catalog
) -> None:
    events = spark.readStream.schema("id bigint, price double").json(str(tmp_path))
    rows = spark.readStream.schema("id int, before struct<a: int>, after struct<a: int>")

    def refused(message: str, stream: Any = events, **options: Any) -> None:
        with pytest.raises(OptionError, match=message):
            Pipeline(
                stream, catalog, tmp_path / "out", tmp_path / "state", event_id="id", **options
            )

    refused("shards must be None or a number from 1, not 0", shards=0)
    refused("shards must be None or a number from 1, not 'auto'", shards="auto")
    refused("history and changes cannot be given with shards", shards=2, history=True)
    form = BeforeAfter("before", "after")
    refused(
        "changes cannot be given with shards",
        rows.json(str(tmp_path)),
        shards=2,
        changes=form,
    )
