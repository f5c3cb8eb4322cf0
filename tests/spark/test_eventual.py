"""The plan without pins: workers find newer versions themselves, and lose none for good."""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import bittern.spark
from bittern.catalog.catalog import Catalog
from bittern.errors import CatalogError, OptionError, SnapshotError
from bittern.spark.catalogs import eventual
from bittern.spark.catalogs.eventual import CatalogFollower
from bittern.spark.snapshots import store as stores
from bittern.spark.snapshots import transport
from steady import PATIENCE, wait_until
from stream_parts import LocalSession, forget, matches

EVENTS = [{"a": 1}, {"a": 2}]


class Unsteady:
    """A catalog that cannot be reached while ``failure`` is set."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.failure: Exception | None = None
        self.asked = 0

    def version(self) -> int:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return self._catalog.version()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store beside an empty cache, looked at all the time."""
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(eventual, "REFRESH", 0.01)
    eventual._seen.clear()
    forget()
    yield tmp_path / "store"
    eventual._seen.clear()
    forget()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(tmp_path / "catalog.db") as catalog:
        catalog.add("x", "a = 1")
        yield catalog


@pytest.fixture
def following(store: Path) -> Iterator[Callable[[Any], CatalogFollower]]:
    """Starts followers, and ends them."""
    started: list[CatalogFollower] = []
    session = LocalSession()

    def start(catalog: Any) -> CatalogFollower:
        follower = CatalogFollower(session, catalog, str(store))  # type: ignore[arg-type]
        follower.start()
        started.append(follower)
        return follower

    yield start
    for follower in started:
        follower.stop()
        follower.join(PATIENCE)
        assert not follower.is_alive()


def found(follower: CatalogFollower) -> list[list[str]]:
    """What a worker finds now."""
    return matches(follower.following.matcher(), EVENTS)


def test_workers_find_newer_versions(
    catalog: Catalog, following: Callable[[Any], CatalogFollower]
) -> None:
    follower = following(catalog)
    assert found(follower) == [["x"], []]
    catalog.add("y", "a = 2")
    wait_until(lambda: found(follower) == [["x"], ["y"]])
    catalog.apply([{"id": "y", "expression": "a > 0"}], ["x"])
    wait_until(lambda: found(follower) == [["y"], ["y"]])
    catalog.remove("y")
    wait_until(lambda: found(follower) == [[], []])


@pytest.mark.parametrize(
    "failure",
    [
        CatalogError("the database is away"),
        OSError(28, "No space left on device"),
        RuntimeError("nobody has thought of this"),
    ],
)
def test_a_follower_survives_a_failure(
    catalog: Catalog,
    following: Callable[[Any], CatalogFollower],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    unsteady = Unsteady(catalog)
    follower = following(unsteady)
    unsteady.failure = failure
    asked = unsteady.asked
    wait_until(lambda: unsteady.asked > asked)  # who asked before has been answered
    catalog.add("y", "a = 1")
    asked = unsteady.asked
    with caplog.at_level(logging.WARNING, "bittern"):
        wait_until(lambda: unsteady.asked > asked + 3)
    assert str(failure) in caplog.text
    assert follower.is_alive()
    assert found(follower) == [["x"], []]
    unsteady.failure = None
    wait_until(lambda: found(follower) == [["x", "y"], []])


def test_a_follower_ends_with_its_session(catalog: Catalog, store: Path) -> None:
    session = LocalSession()
    follower = CatalogFollower(session, catalog, str(store))  # type: ignore[arg-type]
    follower.start()
    session._jsc = None
    follower.join(PATIENCE)
    assert not follower.is_alive()
    assert found(follower) == [["x"], []]  # workers go on with what there is


def test_a_follower_ends_with_its_catalog(
    catalog: Catalog, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, and a catalog that is opened again is followed again."""
    session: Any = LocalSession()
    eventual.follow(session, catalog, str(store))
    [first] = eventual._followers[session].values()
    with caplog.at_level(logging.WARNING, "bittern"):
        catalog.close()
        with Catalog(catalog.url) as again:
            again.add("y", "a = 2")
            eventual.follow(session, again, str(store))
            [second] = eventual._followers[session].values()
            wait_until(lambda: found(second) == [["x"], ["y"]])
            first.join(PATIENCE)
            assert not first.is_alive()
            assert second.is_alive()
            second.stop()
            second.join(PATIENCE)
    [told] = [record.getMessage() for record in caplog.records if record.thread == first.ident]
    assert "the catalog was closed: streams that match with it stay" in told
    assert "version 1" in told


def test_deltas_that_are_no_longer_current_go(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the base: one that is empty has deltas on it too."""
    monkeypatch.setattr(eventual, "_LINGER", 0.0)
    for name, texts in (("empty", {}), ("full", {"x": "a = 1"})):
        with Catalog(tmp_path / f"{name}.db") as catalog:
            catalog.load(texts)
            follower = CatalogFollower(LocalSession(), catalog, str(store / name))  # type: ignore[arg-type]
            for n in range(5):
                catalog.add(f"n{n}", "a = 2")
                time.sleep(0.01)  # lingering is over
                follower._refresh()
            kept, current = stored(store / name), pointed_at(follower)
            assert current <= kept
            # The base, the delta on it, and the one that has just been replaced.
            assert len(current) == 2
            assert len(kept) <= 3
            follower._builder.close()


def stored(store: Path) -> set[str]:
    return {entry.name for entry in store.iterdir() if transport.is_id(entry.name)}


def pointed_at(follower: CatalogFollower) -> set[str]:
    pointer = json.loads(Path(follower.following.pointer).read_text())
    return {layer["snapshot"] for layer in pointer["layers"]}


class Removing:
    """A store that is asked to remove something, and does not while it refuses."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuses = True
        self._remove = stores.remove

    def __call__(self, where: str, identity: str) -> None:
        self.asked.append(identity)
        if self.refuses:
            raise SnapshotError("it is only read")
        self._remove(where, identity)


@pytest.fixture
def removing(monkeypatch: pytest.MonkeyPatch) -> Removing:
    """Asked at once."""
    removing = Removing()
    monkeypatch.setattr(stores, "remove", removing)
    monkeypatch.setattr(eventual, "_LINGER", -1.0)
    return removing


def test_a_removal_that_fails_is_tried_again(
    catalog: Catalog, store: Path, removing: Removing
) -> None:
    follower = CatalogFollower(LocalSession(), catalog, str(store))  # type: ignore[arg-type]
    for n in range(3):
        catalog.add(f"n{n}", "a = 2")
        follower._refresh()
    assert len(set(removing.asked)) == 2
    assert stored(store) - pointed_at(follower) == set(removing.asked)
    removing.refuses = False
    follower._refresh()
    assert stored(store) == pointed_at(follower)
    follower._builder.close()


def test_a_removal_that_always_fails_is_given_up(
    catalog: Catalog, store: Path, removing: Removing, caplog: pytest.LogCaptureFixture
) -> None:
    follower = CatalogFollower(LocalSession(), catalog, str(store))  # type: ignore[arg-type]
    for n in range(2):
        catalog.add(f"n{n}", "a = 2")
        follower._refresh()
    with caplog.at_level(logging.WARNING, "bittern"):
        for _ in range(10):
            follower._refresh()
    assert len(removing.asked) == eventual._ATTEMPTS
    assert caplog.text.count("it is only read") == 1
    assert not follower._old
    follower._builder.close()


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"version": 1}', '{"version": 1, "layers": [{"snapshot": "../x"}]}'),
        *(
            f'{{"version": {version}, "layers": [{{"snapshot": "SNAPSHOT", "uri": "{uri}", '
            f'"dead": {dead}}}]}}'
            for version, uri, dead in (
                ("true", "URI", '""'),
                ("1.0", "URI", '""'),
                ("1", "/etc/SNAPSHOT", '""'),
                ("1", "URI", "5"),
                ("1", "URI", '"%%%%"'),
                ("1", "URI", '"AAA="'),  # no whole number of places
                ("1", "URI", '"/////w=="'),  # -1
                ("1", "URI", '"CQAAAA=="'),  # 9
            )
        ),
    ],
)
def test_a_pointer_that_cannot_be_read(
    catalog: Catalog, store: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """A worker that has a view goes on with it; one that has none says so."""
    follower = CatalogFollower(LocalSession(), catalog, str(store))  # type: ignore[arg-type]
    assert found(follower) == [["x"], []]
    [layer] = json.loads(Path(follower.following.pointer).read_text())["layers"]
    text = text.replace("SNAPSHOT", layer["snapshot"]).replace("URI", layer["uri"])
    Path(follower.following.pointer).write_text(text)
    time.sleep(0.02)
    with caplog.at_level(logging.WARNING, "bittern"):
        assert found(follower) == [["x"], []]
    assert "continues with version 1" in caplog.text
    eventual._seen.clear()
    with pytest.raises(SnapshotError, match="cannot read the view"):
        follower.following.matcher()
    follower._builder.close()


def test_the_pointer_is_as_documented(catalog: Catalog, store: Path) -> None:
    catalog.add("y", "a = 2")
    follower = CatalogFollower(LocalSession(), catalog, str(store))  # type: ignore[arg-type]
    catalog.remove("x")
    follower._refresh()
    told = json.loads((store / "catalogs" / catalog.uid / "current.json").read_text())
    assert told["version"] == 3
    [layer] = told["layers"]
    assert layer["uri"] == str(store / layer["snapshot"])
    assert base64.b64decode(layer["dead"]) == (0).to_bytes(4, "little")
    follower._builder.close()


# ------------------------------------------------------------------ with Spark


@pytest.mark.spark
def test_a_batch_against_a_catalog(spark: Any, catalog: Catalog) -> None:
    """``match`` takes the newest version, now and for good."""
    events = spark.createDataFrame([(1, 1), (2, 2)], "id bigint, a bigint")
    catalog.apply([{"id": "7", "expression": "a IN (1, 2)", "weight": 5.0}], ["x"])
    out = bittern.spark.match(events, catalog, event_id="id", explode=True)
    best = bittern.spark.match(events, catalog, event_id="id", limit=1)
    catalog.add("later", "TRUE")
    assert out.schema["subscription"].dataType.simpleString() == "string"
    assert sorted(map(tuple, out.collect())) == [(1, "7"), (2, "7")]
    assert [row.subscriptions for row in best.orderBy("id").collect()] == [["7"], ["7"]]


@pytest.mark.spark
def test_what_is_not_eventual(spark: Any, catalog: Catalog) -> None:
    events = spark.createDataFrame([(1, 1)], "id bigint, a bigint")
    with pytest.raises(OptionError, match=r"takes a bittern\.Catalog, not Index"):
        bittern.spark.match(events, bittern.Index.build({1: "a = 1"}), consistency="eventual")
    with pytest.raises(OptionError, match="'snapshot' or 'eventual', not 'strict'"):
        bittern.spark.match(events, catalog, consistency="strict")


@pytest.mark.spark
def test_a_stream_sees_what_is_subscribed_later(
    spark: Any, catalog: Catalog, tmp_path: Path
) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    stream = spark.readStream.schema("id bigint, a bigint, b string").json(str(incoming))
    out = bittern.spark.match(stream, catalog, event_id="id", explode=True, consistency="eventual")
    rows: list[tuple[int, str]] = []

    def take(frame: Any, _: int) -> None:
        rows.extend(map(tuple, frame.collect()))

    writer = out.writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    fed = 0

    def feed() -> int:
        """One more event, matched; returns its id."""
        nonlocal fed
        hidden = incoming / ".next"
        hidden.write_text(json.dumps({"id": fed, "a": 1, "b": "new"}))
        hidden.rename(incoming / f"{fed}.json")
        fed += 1
        query.processAllAvailable()
        return fed - 1

    try:
        feed()
        assert rows == [(0, "x")]
        catalog.add("y", "b = 'new'")  # an attribute that nobody had asked for
        wait_until(lambda: (feed(), "y") in rows)
        assert all((id_, "x") in rows for id_ in range(fed))
        catalog.remove("x")
        wait_until(lambda: (feed(), "x") not in rows)
        assert (fed - 1, "y") in rows
    finally:
        query.stop()
        for follower in eventual._followers[spark].values():
            follower.stop()
            follower.join(PATIENCE)
    names = [thread.name for thread in threading.enumerate()]
    assert "bittern-follower" not in names
