"""From versions to views: whatever a builder starts from, a view is the catalog at its version."""

from __future__ import annotations

import logging
import os
import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

from bittern.catalog.catalog import Catalog
from bittern.engine.index import Index
from bittern.engine.live import layers as layers_module
from bittern.engine.live.compact import Child
from bittern.engine.live.layers import Layers
from bittern.errors import CatalogError, OptionError
from bittern.language.quantifiers import is_hidden
from bittern.spark.catalogs import builder as builder_module
from bittern.spark.catalogs.builder import Builder
from bittern.spark.snapshots.node_cache import SnapshotRef
from live_cases import TEXTS, HeldBack
from steady import PATIENCE, said_here
from stream_parts import builder, check, forget, notes


@pytest.fixture(params=["folder", "cache"])
def where(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str | None]:
    """What ``store`` is given; the process has nothing open."""
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield str(tmp_path / "store") if request.param == "folder" else None
    forget()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store alone, for what has nothing to do with where it is."""
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield str(tmp_path / "store")
    forget()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(tmp_path / "catalog.db") as catalog:
        catalog.apply(puts=[{"id": f"s{n}", "expression": text} for n, text in enumerate(TEXTS)])
        yield catalog


def change(catalog: Catalog, dice: random.Random) -> int:
    """Some changes of every kind, in one version."""
    ids = [f"s{n}" for n in range(30)]
    removes = dice.sample(ids, dice.randrange(3))
    puts = [
        {
            "id": id_,
            "expression": dice.choice(TEXTS),
            "weight": dice.choice([None, 2.0]),
            "enabled": dice.random() < 0.8,
        }
        for id_ in dice.sample([id_ for id_ in ids if id_ not in removes], dice.randrange(1, 6))
    ]
    return catalog.apply(puts, removes)


def base_texts(built: Builder, identity: str) -> dict[str, str]:
    index = Index.open(Path(built.folder) / identity)
    return dict(zip(index.ids.to_pylist(), index.texts.to_pylist(), strict=True))


def texts_at(catalog: Catalog, version: int) -> dict[str, str]:
    rows = catalog.at(version)
    return dict(zip(rows["id"].to_pylist(), rows["expression"].to_pylist(), strict=True))


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("the whole catalog is read")


# ------------------------------------------------------------------ from version to version


def test_every_version_on_the_way(catalog: Catalog, where: str | None) -> None:
    dice = random.Random(8)
    built = builder(catalog, where)
    for _ in range(12):
        check(built.view(catalog.version(), carry=dice.random() < 0.7), catalog)
        change(catalog, dice)
    versions = [dice.randrange(1, catalog.version() + 1) for _ in range(8)]
    for version in versions:  # forth and back
        check(built.view(version), catalog)
    built.close()


def test_a_builder_starts_from_a_base_that_another_left(
    catalog: Catalog, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = builder(catalog, where)
    check(first.view(1), catalog)
    first.close()
    catalog.add("new", "a = 1")
    catalog.remove("s0")
    asked: list[int] = []

    def sample() -> None:
        asked.append(1)

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "at", forbidden)
        forget()
        second = builder(catalog, where)
        view = second.view(3, sample)
        again = second.view(3, sample)
    assert view == again
    assert asked == [1]
    assert notes(second) == notes(first)
    assert list(notes(first)) == [1]
    check(view, catalog)
    assert second.delta() == (1, 1)
    second.close()


def test_a_base_of_a_later_version_is_of_no_use(catalog: Catalog, store: str) -> None:
    first = builder(catalog, store)
    version = catalog.add("new", "TRUE")
    check(first.view(version), catalog)
    forget()
    second = builder(catalog, store)
    check(second.view(1), catalog)
    check(second.view(version), catalog)
    assert list(notes(first)) == [1, 2]
    first.close()
    second.close()


def test_going_back_begins_anew(catalog: Catalog, store: str) -> None:
    built = builder(catalog, store)
    catalog.add("new", "TRUE")
    catalog.remove("s0")
    for version in (3, 1, 2, 3, 1):
        view = built.view(version)
        assert view.version == version
        check(view, catalog)
    built.close()


def test_a_catalog_without_subscriptions(tmp_path: Path, where: str | None) -> None:
    with Catalog(tmp_path / "empty.db") as empty:
        built = builder(empty, where)
        view = built.view(0)
        assert view.matcher().match([{"a": 1}]).to_pylist() == [[]]
        assert not view.matcher().match([{"a": 1}]).all_ids.is_int64
        assert built.attributes() == ()
        assert built.delta() == (0, 0)
        check(built.view(empty.add("1", "a = 1")), empty)
        assert built.attributes() == ("a",)
        check(built.view(empty.remove("1")), empty)
        built.close()


def test_attributes_are_those_of_all_layers(catalog: Catalog, store: str) -> None:
    built = builder(catalog, store)
    built.view(1)
    assert set(built.attributes()) == {"a", "b", "c", "c.d"}
    built.view(catalog.add("new", "seller.country = 'FI'"))
    assert set(built.attributes()) == {"a", "b", "c", "c.d", "seller.country"}
    built.close()


def test_a_sample_helps_and_may_be_none(catalog: Catalog, store: str) -> None:
    built = builder(catalog, store)
    check(built.view(1, lambda: pa.table({"a": [1, 1, 2], "b": ["x", None, "y"]})), catalog)
    built.close()


def test_two_catalogs_share_a_store(catalog: Catalog, tmp_path: Path, store: str) -> None:
    with Catalog(tmp_path / "other.db") as other:
        other.add("s0", "a = 3")
        one, two = builder(catalog, store), builder(other, store)
        check(one.view(1), catalog)
        check(two.view(1), other)
        forget()
        check(builder(catalog, store).view(1), catalog)
        check(builder(other, store).view(1), other)
        one.close()
        two.close()


def test_a_cluster_needs_a_store(catalog: Catalog) -> None:
    with pytest.raises(OptionError, match="on a cluster needs store="):
        builder(catalog, None, "spark://host:7077")
    with pytest.raises(OptionError, match="needs store="):
        builder(catalog, "artifacts")


# ------------------------------------------------------------------ new bases


def test_too_many_changes_at_once_make_a_base(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bittern.catalog.following.COMPACT_ROWS", 5)
    built = builder(catalog, store)
    built.view(1)
    version = catalog.apply([{"id": f"m{n}", "expression": "a = 1"} for n in range(5)])
    check(built.view(version), catalog)
    assert list(notes(built)) == [1]
    version = catalog.apply([{"id": f"n{n}", "expression": "a = 1"} for n in range(5)], ["s0"])
    check(built.view(version), catalog)
    assert list(notes(built)) == [1, version]
    assert built.delta() == (0, 0)
    assert base_texts(built, notes(built)[version]) == texts_at(catalog, version)
    built.close()


def test_a_compaction_leaves_a_base_of_its_version(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldBack()
    monkeypatch.setattr(Child, "run", held.run)
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 3)
    built = builder(catalog, store)
    built.view(1)
    at = catalog.apply([{"id": f"m{n}", "expression": "a = 1"} for n in range(5)], ["s1"])
    check(built.view(at), catalog)
    assert held.started.wait(PATIENCE)
    later = catalog.add("late", "a = 1")
    check(built.view(later), catalog)
    assert list(notes(built)) == [1]
    finish(built, held)
    check(built.view(later), catalog)
    assert list(notes(built)) == [1, at]
    assert base_texts(built, notes(built)[at]) == texts_at(catalog, at)
    assert built.delta() == (1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "at", forbidden)
        forget()
        other = builder(catalog, store)
        view = other.view(later)
    check(view, catalog)
    assert other.delta() == (1, 1)
    built.close()
    other.close()


def finish(built: Builder, held: HeldBack) -> None:
    assert built._layers is not None
    running = built._layers._compacting
    held.go_on.set()
    if running is not None:
        running.join(PATIENCE)


def test_a_compaction_that_ends_while_a_view_is_made(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new version is never noted with the old base, whose content is another version's."""
    held = HeldBack()
    monkeypatch.setattr(Child, "run", held.run)
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 3)
    built = builder(catalog, store)
    built.view(1)
    at = catalog.apply([{"id": f"m{n}", "expression": "a = 1"} for n in range(5)], ["s1"])
    built.view(at)
    assert held.started.wait(PATIENCE)
    seal = Layers.seal

    def seal_then_swap(layers: Layers) -> Any:
        state = seal(layers)
        if threading.current_thread() is threading.main_thread() and not held.go_on.is_set():
            finish(built, held)
        return state

    monkeypatch.setattr(Layers, "seal", seal_then_swap)
    later = catalog.add("late", "a = 1")
    check(built.view(later), catalog)
    check(built.view(later), catalog)
    assert list(notes(built)) == [1, at]
    for version, identity in notes(built).items():
        assert base_texts(built, identity) == texts_at(catalog, version)
    built.close()


def test_a_store_tells_of_the_last_bases_only(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bittern.catalog.following.COMPACT_ROWS", 0)
    monkeypatch.setattr("bittern.catalog.following.COMPACT_SHARE", 0)
    built = builder(catalog, store)
    for n in range(4):
        check(built.view(catalog.add(f"n{n}", "a = 1")), catalog)
    assert list(notes(built)) == [4, 5]
    built.close()


def test_closing_waits_and_leaves_no_files(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldBack()
    monkeypatch.setattr(Child, "run", held.run)
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 3)
    built = builder(catalog, store)
    built.view(1)
    built.view(catalog.apply([{"id": f"m{n}", "expression": "a = 1"} for n in range(5)]))
    assert held.started.wait(PATIENCE)
    assert built._layers is not None
    folder = built._layers._work_folder.path
    assert folder.exists()
    threading.Timer(0.1, held.go_on.set).start()
    built.close()
    assert not folder.exists()
    built.close()
    check(built.view(2), catalog)  # and it can go on
    built.close()


# ------------------------------------------------------------------ drivers that share a store


def test_two_builders_at_once(catalog: Catalog, store: str) -> None:
    """They build the same base together, and then each goes its own way."""
    dice = random.Random(3)
    for _ in range(6):
        change(catalog, dice)
    meet, failures = threading.Barrier(2), []

    def work(seed: int) -> None:
        own, built = random.Random(seed), builder(catalog, store)
        try:
            for _ in range(4):
                meet.wait(PATIENCE)
                check(built.view(own.randrange(1, catalog.version() + 1)), catalog)
        except BaseException as failure:
            failures.append(failure)
            meet.abort()
            raise
        finally:
            built.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not failures
    left = [entry.name for entry in Path(store).iterdir()]
    assert not [name for name in left if name.startswith(".")]
    assert not list(Path(store, "catalogs", catalog.uid).glob("*.tmp"))


def test_a_note_that_another_driver_removes_first(
    catalog: Catalog,
    store: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(builder_module, "_KEPT_BASES", 1)
    built = builder(catalog, store)
    built.view(1)
    listed = Builder._bases

    def gone_by_now(self: Builder) -> list[str]:
        names = listed(self)
        for name in names[:-1]:
            (Path(self.list_folder) / name).unlink()
        return names

    monkeypatch.setattr("bittern.catalog.following.COMPACT_ROWS", 0)
    monkeypatch.setattr("bittern.catalog.following.COMPACT_SHARE", 0)
    version = catalog.add("new", "TRUE")
    built._layers = None
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "bittern"):
        patch.setattr(Builder, "_bases", gone_by_now)
        check(built.view(version), catalog)
    assert not said_here(caplog)
    assert list(notes(built)) == [version]
    built.close()


# ------------------------------------------------------------------ what is wrong


def write_past_the_door(catalog: Catalog, id_: str, expression: str) -> None:
    """Change an expression in the database itself."""
    with sqlite3.connect(catalog.url.removeprefix("sqlite:///")) as database:
        changed = database.execute(
            "UPDATE bittern_subscriptions SET expression = ? WHERE id = ?", (expression, id_)
        )
        assert changed.rowcount == 1
    database.close()


@pytest.mark.parametrize("they_come", ["first", "later"])
def test_poison_subscriptions_are_left_out(
    catalog: Catalog, store: str, caplog: pytest.LogCaptureFixture, they_come: str
) -> None:
    built = builder(catalog, store)
    if they_come == "later":
        built.view(1)
    catalog.add("poison", "a = 1")
    catalog.add("more", "a = 1")
    write_past_the_door(catalog, "poison", "a = = 1")
    write_past_the_door(catalog, "more", "(((")
    with caplog.at_level(logging.WARNING, "bittern"):
        check(built.view(3), catalog, without=("poison", "more"))
    assert set(built.bad) == {"poison", "more"}
    assert built.bad["poison"].position == 4
    assert sorted("poison" in message for message in said_here(caplog)) == [False, True]
    check(built.view(catalog.add("poison", "a = 1", replace=True)), catalog, without=("more",))
    assert set(built.bad) == {"more"}
    check(built.view(catalog.remove("more")), catalog)
    assert not built.bad
    built.close()


@pytest.mark.parametrize("they_come", ["first", "later", "in place of others"])
def test_what_needs_a_history_is_left_out_without_one(
    catalog: Catalog, store: str, caplog: pytest.LogCaptureFixture, they_come: str
) -> None:
    built = builder(catalog, store)
    if they_come != "first":
        built.view(catalog.version())
    ids = ("s1", "s2") if they_come == "in place of others" else ("seen", "all")
    catalog.add(ids[0], "a = 1 AND EXISTS d (d.a = a)", replace=True)
    catalog.add(ids[1], "∀ d (d.a < a) OR a = 1", replace=True)
    catalog.add("harmless", "a = 1 OR exists IS NULL", replace=True)
    with caplog.at_level(logging.WARNING, "bittern"):
        check(built.view(catalog.version()), catalog, without=ids)
    assert set(built.bad) == {*ids}
    assert "there is no history" in built.bad[ids[0]].message
    assert [message.split("'")[1] for message in said_here(caplog)] == sorted(
        ids, key=[*texts_at(catalog, catalog.version())].index
    )
    assert not any(map(is_hidden, built.attributes()))
    check(built.view(catalog.add(ids[0], "a = 1", replace=True)), catalog, without=ids[1:])
    check(built.view(catalog.remove(ids[1])), catalog)
    assert not built.bad
    built.close()


def test_bases_with_and_without_what_needs_a_history(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each driver starts from a base that it can use, and says what is not in it."""
    catalog.add("seen", "EXISTS d (d.a = a)")
    for history in (True, False):  # the second finds the base of the first
        built = builder(catalog, store, history=history)
        view = built.view(2)
        assert (view.state().ids.find("seen") >= 0) is history
        built.close()
    assert sorted(file.name for file in Path(built.list_folder).iterdir()) == [
        f"{2:020d}.json",
        f"{2:020d}.plain.json",
    ]
    monkeypatch.setattr(Catalog, "at", forbidden)
    for history in (True, False):
        forget()
        caplog.clear()
        again = builder(catalog, store, history=history)
        assert (again.view(2).state().ids.find("seen") >= 0) is history
        assert [*again.bad] == ([] if history else ["seen"])
        assert ("seen" in caplog.text) is not history
        again.close()


def test_all_that_a_base_lacks_is_counted_after_a_restart(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder_module, "_NOTED", 2)
    for n in range(5):
        catalog.add(f"seen{n}", "EXISTS d (d.a = a)")
    version = catalog.version()
    for _ in range(2):  # the second starts from the base of the first, and notes the same
        forget()
        built = builder(catalog, store)
        built.view(version)
        assert built.left_out() == 5
        built.close()
    built.view(catalog.add("seen9", "EXISTS d (d.a = a)"))
    assert built.left_out() == 6
    named = next(iter(built.bad))
    built.view(catalog.remove(named))
    assert built.left_out() == 5
    built.close()


def test_what_a_base_lacks_that_is_too_old_is_not_told(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder_module, "_NOTED", 1)
    catalog.add("seen", "EXISTS d (d.a = a)")
    catalog.add("all", "FORALL d (d.a = a)")
    built = builder(catalog, store)
    built.view(catalog.version())
    assert built.left_out() == 2
    built.close()
    catalog.remove("seen")
    catalog.remove("all")
    monkeypatch.setattr("bittern.catalog.following._too_many", lambda _: 0)
    forget()
    built = builder(catalog, store)
    built.view(catalog.version())
    assert (built.bad, built.left_out()) == ({}, 0)
    built.close()


def test_a_store_keeps_the_last_bases_of_each_kind(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Builder, "_from_store", lambda *_: None)
    catalog.add("seen", "EXISTS d (d.a = a)")
    for n in range(4):
        version = catalog.add(f"n{n}", "a = 1")
        for history in (True, False):
            built = builder(catalog, store, history=history)
            built.view(version)
            built.close()
    names = [file.name for file in Path(built.list_folder).iterdir()]
    assert sum(name.endswith(".plain.json") for name in names) == 2
    assert sum(not name.endswith(".plain.json") for name in names) == 2


@pytest.mark.parametrize("uid", ["../../victim", "", "a/b", ".", "..", "/etc", "A", "a\n", None])
def test_a_uid_that_is_none_becomes_no_path(
    catalog: Catalog, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: Any
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for n in range(5):
        (victim / f"{n:020d}.json").write_text("{}")
    monkeypatch.setattr(Catalog, "uid", uid)
    with pytest.raises(CatalogError, match="has an invalid uid"):
        builder(catalog, store)
    assert len(list(victim.iterdir())) == 5


GARBAGE = {
    "README.txt": "hello",
    "current.json": "{}",
    f"{9:019d}.json": "{}",
    f"{2:020d}.json": "",
    f"{3:020d}.json": "[1, 2]",
    f"{4:020d}.json": '{"version": 4}',
    f"{5:020d}.json": '{"version": "5", "snapshot": "' + "0" * 32 + '"}',
    f"{6:020d}.json": '{"version": 6, "snapshot": "../../etc"}',
    f"{7:020d}.json": '{"version": 7, "snapshot": null}',
    f"{8:020d}.json": '{"version": -8, "snapshot": "' + "0" * 32 + '"}',
    f"{9:020d}.json": '{"version": 9, "snapshot": "' + "0" * 32 + '"}',
    f"{10:020d}.json": '{"version": true, "snapshot": "GOOD"}',
    f"{11:020d}.json": '{"version": 1, "snapshot": "GOOD"}',
    f"{12:020d}.json": "\x00\x01",
    f"{14:020d}.json": '{"version": 14.0, "snapshot": "GOOD"}',
    f"{15:020d}.json": '{"version": 15, "snapshot": "GOOD", "left_out": [["x", true, "y"]]}',
    f"{16:020d}.json": '{"version": 16, "snapshot": "GOOD", "left_out": 5}',
    f"{17:020d}.json": "[" * 100_000,
    f"{18:020d}.json": '{"version": 18, "snapshot": "GOOD", "unnamed": -1}',
}


def test_garbage_in_a_store_is_passed_over(
    catalog: Catalog, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = builder(catalog, store)
    built.view(1)
    [good] = notes(built).values()
    folder = Path(built.list_folder)
    for name, text in GARBAGE.items():
        (folder / name).write_text(text.replace("GOOD", good))
    (folder / f"{13:020d}.json").mkdir()
    for n in range(20):
        catalog.add(f"n{n}", "a = 1")
    monkeypatch.setattr(Catalog, "at", forbidden)
    forget()
    other = builder(catalog, store)
    view = other.view(catalog.version())
    monkeypatch.undo()
    check(view, catalog)
    assert other.delta()[0] == 20  # all of them on the base of version 1
    built.close()
    other.close()


@pytest.mark.parametrize(
    ("where", "damage"),
    [
        *[("folder", damage) for damage in ("cut", "flipped", "manifest", "gone")],
        # What is in the cache was verified when it came: only its size is looked at again.
        *[("cache", damage) for damage in ("cut", "manifest", "gone")],
    ],
    indirect=["where"],
)
def test_a_damaged_base_is_made_again(
    catalog: Catalog, where: str | None, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    built = builder(catalog, where)
    built.view(1)
    [identity] = notes(built).values()
    built.close()
    forget()
    del built
    entry = Path(builder(catalog, where).folder) / identity
    if where is not None:  # and no host has it
        cached = Path(os.environ["BITTERN_CACHE_DIR"])
        for file in cached.glob(f"{identity}/*"):
            file.unlink()
    victim = entry / "texts.data.npy"
    if damage == "cut":
        victim.write_bytes(victim.read_bytes()[:-1])
    elif damage == "flipped":
        data = bytearray(victim.read_bytes())
        data[-1] ^= 1
        victim.write_bytes(data)
    elif damage == "manifest":
        (entry / "manifest.json").write_text("{")
    else:
        for file in entry.iterdir():
            file.unlink()
        entry.rmdir()
    again = builder(catalog, where)
    with caplog.at_level(logging.WARNING, "bittern"):
        view = again.view(1)
    assert "made again" in caplog.text
    forget()
    check(view, catalog)
    again.close()
    forget()
    assert base_texts(again, notes(again)[1]) == texts_at(catalog, 1)


def test_a_store_that_lists_nothing_still_holds_bases(
    catalog: Catalog, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A note cannot be written; matching goes on, and other drivers read the whole catalog."""
    Path(store).mkdir()
    (Path(store) / "catalogs").write_text("in the way")
    built = builder(catalog, store)
    with caplog.at_level(logging.WARNING, "bittern"):
        check(built.view(1), catalog)
    assert "could not be recorded" in caplog.text
    check(built.view(catalog.add("new", "a = 1")), catalog)
    built.close()


def test_changes_that_the_catalog_has_forgotten(catalog: Catalog, store: str) -> None:
    """Old bases cannot be brought up to date any more: the version is read as a whole."""
    built = builder(catalog, store)
    built.view(1)
    catalog.add("new", "a = 1")
    newest = catalog.remove("s0")
    catalog.forget(newest)
    check(built.view(newest), catalog)
    built.close()
    forget()
    for file in Path(built.list_folder).glob(f"{newest:020d}.json"):
        file.unlink()
    starting = builder(catalog, store)
    assert list(notes(starting)) == [1]
    check(starting.view(newest), catalog)
    starting.close()


def test_a_version_that_is_not_there(catalog: Catalog, store: str) -> None:
    built = builder(catalog, store)
    with pytest.raises(OptionError, match="no version 9 yet"):
        built.view(9)
    check(built.view(1), catalog)
    with pytest.raises(OptionError, match="no version 9 yet"):
        built.view(9)
    catalog.add("new", "a = 1")
    newest = catalog.add("newer", "a = 1")
    check(built.view(newest), catalog)
    catalog.forget(newest)
    with pytest.raises(OptionError, match="version 2 is forgotten"):
        built.view(2)
    check(built.view(newest), catalog)
    built.close()


def test_a_delta_that_travels_alone(catalog: Catalog, store: str) -> None:
    """Without ``carry`` a worker needs nothing but the store."""
    built = builder(catalog, store)
    built.view(1)
    view = built.view(catalog.add("new", "a = 1"), carry=False)
    assert all(isinstance(layer.index, SnapshotRef) for layer in view.layers)
    built.close()
    forget()
    check(view, catalog)
