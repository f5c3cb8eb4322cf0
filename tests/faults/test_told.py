"""What is read of files and databases is what was written there, or refused before it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from bittern.errors import SnapshotError
from bittern.spark.snapshots import cache_folder, node_cache
from bittern.spark.snapshots import store as stores
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.told import component, file_name, read_told, whole, words

TRAVERSALS = [
    "../victim",
    "..",
    ".",
    "",
    "/victim",
    "a/b",
    "a\\b",
    "a\0",
    "a\n",
    "~",
    "*",
    "A",
    "é",
]


@pytest.mark.parametrize("name", [*TRAVERSALS, "-a", "a-", "x" * 129, None, 5, b"a", ["a"]])
def test_no_part_of_a_path(name: Any) -> None:
    with pytest.raises(ValueError, match="is not a name of"):
        component(name)


@pytest.mark.parametrize("name", ["0", "new", "5f0e2a7c-0000-4000-8000-000000000000", "0" * 32])
def test_a_part_of_a_path(name: str) -> None:
    assert component(name) == name


def test_names_of_files() -> None:
    assert file_name("part-00000-17-ab12.c000.snappy.parquet")
    for name in ("../x.parquet", ".x", "", "a/b", "x\n", "-x", None, "x" * 255):
        with pytest.raises(ValueError, match="is not the name of a file"):
            file_name(name)


@pytest.mark.parametrize("value", [True, False, 1.0, "1", -1, None, [1], float("nan")])
def test_no_whole_number(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        whole(value)


@pytest.mark.parametrize("text", ["", "[]", "1", "null", '"x"', "{", b"\xff", "[" * 100_000])
def test_no_object(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_told(text)


def test_what_is_told() -> None:
    assert read_told(b'{"version": 4711, "time": "x"}') == {"version": 4711, "time": "x"}
    assert (whole(0), whole(1 << 80), words("")) == (0, 1 << 80, "")


@pytest.mark.parametrize("name", TRAVERSALS)
def test_the_cache_and_a_store_keep_to_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "manifest.json").write_text("{}")
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    root = cache_folder.cache_root()
    for use in (
        lambda: cache_folder.mark(root, name),
        lambda: cache_folder.locked(root, name).__enter__(),
        lambda: cache_folder.temporary(root, name).__enter__(),
        lambda: node_cache.attach(SnapshotRef(name, str(victim))),
        lambda: node_cache.keep(name),
        lambda: node_cache.drop(name),
        lambda: stores.remove(str(root), name),
    ):
        with pytest.raises(SnapshotError):
            use()
    assert (victim / "manifest.json").exists()
    assert list(root.iterdir()) == []
