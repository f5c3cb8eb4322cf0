"""Where streams are tried hardest: catalogs that are replaced, weeks of running, odd paths."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

from bittern.catalog import following as following_module
from bittern.catalog.catalog import Catalog
from bittern.errors import CatalogError, OptionError, PipelineError
from bittern.spark.catalogs import eventual
from bittern.spark.catalogs.eventual import CatalogFollower
from bittern.spark.snapshots import cache_folder, transport
from bittern.spark.streaming import Edge, Files, Metrics, Pipeline, sources, steps
from bittern.spark.streaming.batch import Batch, Sink
from steady import PATIENCE, wait_until
from stream_parts import LocalSession, builder, forget

ALWAYS = "price >= 0"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a process that has nothing open."""
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache"
    forget()


class Counting(Sink):
    """Notes what it is given; needs nothing."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def check(self, spark: Any) -> None:
        """Nothing can be wrong."""

    def deliver(self, batch: Batch) -> None:
        self.batches.append(batch.batch_id)


def pipeline(spark: Any, catalog: Catalog, sink: Any, folder: Path, **options: Any) -> Pipeline:
    """A new batch of 20 events with each run."""
    source = sources.generator(spark, {"price": "number"}, rows_per_batch=20)
    chosen = {"checkpoint": folder / "checkpoint", "available_now": True, **options}
    return Pipeline(source.events, catalog, sink, event_id="number", **chosen)


def found(spark: Any, folder: Path) -> set[tuple[str, int]]:
    rows = spark.read.parquet(str(folder)).select("subscription", "version").distinct().collect()
    return {(row.subscription, row.version) for row in rows}


# ------------------------------------------------------------------ catalogs that are replaced


def test_a_catalog_whose_file_is_replaced_is_told(tmp_path: Path) -> None:
    """Somebody restores a backup, or begins anew, under a pipeline that runs."""
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("old", ALWAYS)
        for file in tmp_path.glob("shop.db*"):
            file.rename(tmp_path / f"gone-{file.name}")
        with Catalog(tmp_path / "shop.db") as other:
            other.apply([{"id": f"n{n}", "expression": ALWAYS} for n in range(3)])
        for call in (catalog.version, catalog.at, lambda: catalog.add("lost", ALWAYS)):
            with pytest.raises(
                CatalogError, match="moved, removed or replaced since it was opened"
            ):
                call()
        with Catalog(tmp_path / "shop.db", create=False) as again:
            assert (again.version(), again.count()) == (1, 3)


@pytest.mark.spark
def test_a_pin_holds_for_its_catalog_alone(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 of another catalog has other subscriptions."""
    with Catalog(tmp_path / "a.db") as one, Catalog(tmp_path / "b.db") as other:
        one.add("one", ALWAYS)
        other.add("other", ALWAYS)
        with monkeypatch.context() as dying:
            dying.setattr(steps.Steps, "_match", _dies)
            with pytest.raises(PipelineError, match="dies here"):
                pipeline(spark, one, tmp_path / "matches", tmp_path).run()
        with pytest.raises(PipelineError, match="to another catalog"):
            pipeline(spark, other, tmp_path / "matches", tmp_path).run()


def _dies(*_: Any) -> Any:
    raise RuntimeError("dies here, after the pin")


@pytest.mark.spark
def test_a_pin_holds_for_its_query_alone(spark: Any, tmp_path: Path) -> None:
    """Who removes what Spark has in a checkpoint begins anew, with what is newest now."""
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("old", ALWAYS)
        pipeline(spark, catalog, tmp_path / "matches", tmp_path).run()
        catalog.apply([{"id": "new", "expression": ALWAYS}], ["old"])
        for name in ("offsets", "commits", "sources"):
            shutil.rmtree(tmp_path / "checkpoint" / name, ignore_errors=True)
        for name in ("metadata", ".metadata.crc"):
            (tmp_path / "checkpoint" / name).unlink(missing_ok=True)
        try:
            pipeline(spark, catalog, tmp_path / "again", tmp_path).run()
        except PipelineError:
            return  # to be told is as good
        assert found(spark, tmp_path / "again") == {("new", 2)}


# ------------------------------------------------------------------ weeks of running


@pytest.mark.spark
def test_deltas_leave_no_files_behind(spark: Any, tmp_path: Path) -> None:
    """A delta of some MiB, sent with every batch, does not fill the disk."""
    kept = Path(spark.sparkContext._temp_dir)
    rows = [
        {"id": f"d{n}", "expression": f"price = {n} AND colour = 'c{n}'"} for n in range(15_000)
    ]
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("always", ALWAYS)
        source = sources.generator(spark, {"price": "number"}, rows_per_batch=20)
        running = Pipeline(
            source.events, catalog, Counting(), tmp_path / "checkpoint", trigger=None
        ).start()
        try:
            _wait_for_batch(running, 0)
            catalog.load(rows)
            _wait_for_batch(running, running._last + 2)
            before = _bytes(kept)
            _wait_for_batch(running, running._last + 5)
            assert _bytes(kept) - before < 2 << 20
        finally:
            running.stop()


def _wait_for_batch(running: Any, batch_id: int) -> None:
    def look() -> None:
        if not running.is_active:
            running.await_termination()

    wait_until(lambda: running._last >= batch_id, look)


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_bases_that_were_replaced_can_be_cleaned(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline that runs for weeks makes thousands of them."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(following_module, "COMPACT_ROWS", 0)
    monkeypatch.setattr(following_module, "COMPACT_SHARE", 0.0)
    with Catalog(tmp_path / "shop.db") as catalog:
        built = builder(catalog, None)
        for n in range(6):
            built.view(catalog.add(f"s{n}", f"price = {n}"))
        forget_opened()
        cache_folder.clean(cache, older_than=1e9, keep_bytes=0)
        left = [entry.name for entry in cache.iterdir() if transport.is_id(entry.name)]
        built.close()
    assert len(left) <= 2


def forget_opened() -> None:
    """Have this process use what it has published, and nothing that it only looked at."""
    from bittern.spark.catalogs import views
    from bittern.spark.snapshots import node_cache

    views._states.clear()
    node_cache._opened.clear()


def test_a_delta_that_is_current_again_stays(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal deltas have one name: who unsubscribes and subscribes again makes the first again."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(eventual, "_LINGER", 0.05)
    store = tmp_path / "store"
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("base", "a = 1")
        follower = CatalogFollower(LocalSession(), catalog, str(store))  # type: ignore[arg-type]
        for text in ("a = 2", "a = 3", "a = 2"):
            catalog.add("switched", text, replace=True)
            follower._refresh()
        current = [layer.index.id for layer in follower._current.layers]  # type: ignore[union-attr]
        time.sleep(0.1)  # lingering is over
        follower._refresh()
        follower._builder.close()
    assert [id_ for id_ in current if not (store / id_).is_dir()] == []


# ------------------------------------------------------------------ what is right by now


@pytest.mark.spark
def test_a_batch_that_is_delivered_does_not_fail_for_a_figure(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog goes away between the delivery and the question for its newest version."""
    sink = Counting()
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("always", ALWAYS)
        real = catalog.version

        def version() -> int:
            if sink.batches:
                raise CatalogError("it is away")
            return real()

        monkeypatch.setattr(catalog, "version", version)
        pipeline(spark, catalog, sink, tmp_path).run()
    assert sink.batches == [0]


class Ending(Metrics):
    """Knows when the query is over."""

    over = threading.Event()

    def ended(self, error: str | None) -> None:
        super().ended(error)
        self.over.set()


@pytest.mark.spark
def test_stopping_is_no_failure(spark: Any, tmp_path: Path) -> None:
    """A batch that begins when the pipeline is told to stop ends, for Spark, with an error."""
    metrics = Ending()
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("always", ALWAYS)
        options: dict[str, Any] = {"available_now": False, "trigger": None, "metrics": metrics}
        running = pipeline(spark, catalog, Counting(), tmp_path, **options).start()
        _wait_for_batch(running, 0)
        running._stopping = True  # as stop() does before anything else
        assert metrics.over.wait(PATIENCE)
        running.stop()
    assert running.query.exception() is not None
    assert not metrics.figures().failed


@pytest.mark.spark
@pytest.mark.parametrize("name", ["check[1]point", "check{a,b}point", "check point*?"])
def test_paths_that_look_like_patterns(spark: Any, tmp_path: Path, name: str) -> None:
    with Catalog(tmp_path / "shop.db") as catalog:
        catalog.add("always", ALWAYS)
        step = Edge("number")
        matches = tmp_path / "matches"
        for _ in range(2):
            pipeline(
                spark, catalog, Files(matches), tmp_path, checkpoint=tmp_path / name, after=[step]
            ).run()
    assert spark.read.parquet(str(matches)).count() == 40


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sink": None}, "sink must be a sink or the path"),
        ({"after": "edge"}, "after must be a list of steps"),
        ({"after": [Edge]}, "after must be a list of steps"),
    ],
)
def test_arguments_of_another_kind(
    spark: Any, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with Catalog(tmp_path / "shop.db") as catalog, pytest.raises(OptionError, match=said):
        pipeline(spark, catalog, **{"sink": tmp_path / "m", "folder": tmp_path, **options})
