"""``bittern inspect`` of a predicate index on disk: what it shows, and what it makes of damage."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.engine.snapshot.folder import read_snapshot, write_snapshot
from bittern.literature.pb_tree import page_table
from bittern.literature.pb_tree.disk import Disk
from bittern.literature.pb_tree.page_file import PageFile
from bittern.literature.pb_tree.page_table import Meta, is_page_file
from bittern.literature.pb_tree.pages import COUNT, LEAF, POINTERS
from bittern.literature.pb_tree.pages import HEADER as PAGE_HEADER
from bittern.literature.pb_tree.pages import KIND as KIND_WORD
from bittern.literature.pb_tree.pool import stamp
from bittern.literature.pb_tree.predicate_file import PredicateFile
from bittern.literature.pb_tree.tree import LISTS, new_tree
from bittern.service.cli import main
from table_files import save

PAGE_BYTES = 512
WORDS = PAGE_BYTES // 4
CACHE_BYTES = 128 * PAGE_BYTES
N = 3000


@pytest.fixture
def run(bittern_command: Any) -> Any:
    return bittern_command


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All operators, a long SidSet, and some of it deleted again."""
    path = tmp_path_factory.mktemp("predicates") / "price.pb"
    operators, keys = np.arange(N) % 6, np.arange(N) * 7919 % 1000
    with PredicateFile.create(path, "integer", page_bytes=PAGE_BYTES) as index:
        index.insert_many(operators, keys, np.arange(N))
        index.insert_many("=", [5000] * 500, np.arange(500))
        index.commit()
        index.delete_many(operators[:900], keys[:900], np.arange(900))
    return path


@pytest.fixture
def price(made: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copy(made, tmp_path / "price.pb"))


def refused(run: Any, path: Path, *more: str) -> str:
    """The one sentence that is said of a file that is not sound."""
    code, out, err = run("inspect", path, *more)
    assert (code, out) == (1, "")
    assert err.startswith("bittern: ")
    assert str(path) in err
    assert err.count("\n") == 1
    return str(err)


class Contents:
    """Where the pages of the newest version are in a file."""

    def __init__(self, path: Path) -> None:
        disk = Disk(path, writable=False)
        self.path = path
        self.meta: Meta = page_table.read_metas(disk)[0]
        disk.page_bytes = self.meta.page_bytes
        table = page_table.read_table(disk, self.meta)
        self.places, *self.maps = (level.places for level in table)
        disk.close()

    def page(self, number: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        raw = np.fromfile(self.path, np.int32)
        return raw[self.places[number] * WORDS :][:WORDS].copy()

    def first_of(self, kind: int) -> int:
        numbers = np.flatnonzero(self.places).tolist()
        return next(each for each in numbers if self.page(each)[KIND_WORD] == kind)

    def put(self, number: int, page: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        """Write a page as if a commit had: with the right checksum, in the maps above it too."""
        raw = np.fromfile(self.path, np.int32)
        at, version = number, self.meta.version
        for places, above in itertools.pairwise([self.places, *self.maps, None]):
            stamp(page, page.view(np.uint64), WORDS, version, np.array([0]), np.array([number]))
            raw[places[at] * WORDS :][:WORDS] = page
            total = int(page.view(np.uint32)[0])
            if above is not None:
                at, spot = divmod(at, (WORDS - 16) // 2)
                page, number = raw[above[at] * WORDS :][:WORDS].copy(), -1 - at
                page.view(np.uint32)[16 + (WORDS - 16) // 2 + spot] = total
        raw.tofile(self.path)
        meta = self.meta._replace(root_sum=total)
        with self.path.open("r+b") as file:
            file.seek(page_table.meta_offset(meta.version))
            file.write(page_table.pack(meta))


def flip(path: Path, offset: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 0x10
    path.write_bytes(raw)


# What is shown


def test_the_figures_are_those_of_the_index(run: Any, made: Path) -> None:
    code, out, err = run("inspect", made, "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    with PredicateFile.open(made) as index:
        known, fill = index.statistics(), index.fill()
    assert about["kind"] == "integer"
    assert about["fill"] == fill
    assert about["file_bytes"] == made.stat().st_size
    for name in ("version", "page_bytes", "height", "keys", "entries", "leaf_sids"):
        assert about[name] == known[name]
    assert about["height"] > 2
    pages = about["pages"]
    assert pages["branch"] + pages["leaf"] + pages["list"] + pages["spill"] == known["pages"]
    assert pages["spill"] >= 500 * 4 // PAGE_BYTES
    assert (pages["map"], pages["free"]) == (known["map_pages"], known["free_pages"])
    assert list(about["lists"]) == list(LISTS)
    for name, of_list in about["lists"].items():
        assert of_list == {each: known[f"{name}_{each}"] for each in ("keys", "sids", "pages")}
        assert of_list["keys"] > 0
    sids = sum(of_list["sids"] for of_list in about["lists"].values())
    assert about["leaf_sids"] + sids == about["entries"]
    changes = about["changes"]
    assert (changes["inserted"], changes["deleted"]) == (N + 500, 900)
    assert changes["leaves_adjusted_per_insert"] == known["leaves_adjusted_per_insert"] > 0
    assert changes["leaves_adjusted_per_delete"] == known["leaves_adjusted_per_delete"] > 0
    assert about["cache"]["page_reads"] == known["pages"]


def test_the_table_has_them_too(run: Any, made: Path) -> None:
    code, out, err = run("inspect", made)
    assert (code, err) == (0, "")
    about = json.loads(run("inspect", made, "--json")[1])
    shown = [line.split() for line in out.splitlines()]
    assert ["kind", "integer"] in shown
    assert ["entries", f"{about['entries']:,}"] in shown
    assert ["greater_than"] in shown
    assert ["leaf", f"{about['pages']['leaf']:,}"] in shown
    assert ["leaf", f"{about['fill']['leaf']:.2f}"] in shown
    assert "checked" not in out
    code, checked, err = run("inspect", made, "--check")
    assert (code, err) == (0, "")
    assert checked.startswith(out)
    assert checked.endswith("\nchecked: checksums and structure are correct\n")


def test_few_adjustments_are_not_shown_as_none(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "many"
    with PredicateFile.create(path, "integer") as index:
        index.insert_many("<", np.arange(9000), np.arange(9000))
    changes = json.loads(run("inspect", path, "--json")[1])["changes"]
    assert 0 < changes["leaves_adjusted_per_insert"] < 0.01
    line = next(x for x in run("inspect", path)[1].splitlines() if "adjusted_per_insert" in x)
    assert float(line.split()[1]) == pytest.approx(changes["leaves_adjusted_per_insert"], rel=0.05)


@pytest.mark.parametrize("kind", ["integer", "float", "string", "timestamp"])
def test_an_empty_index(run: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "empty"
    PredicateFile.create(path, kind).close()
    code, out, err = run("inspect", path, "--check", "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    assert (about["kind"], about["height"], about["keys"], about["entries"]) == (kind, 1, 0, 0)
    assert (about["pages"]["leaf"], about["pages"]["branch"]) == (1, 0)
    assert about["changes"]["leaves_adjusted_per_insert"] == 0


def test_an_index_whose_maker_was_stopped_at_once(run: Any, tmp_path: Path) -> None:
    PageFile.create(tmp_path / "begun", PAGE_BYTES, new_tree(PAGE_BYTES), b"float")
    code, out, err = run("inspect", tmp_path / "begun", "--check")
    assert (code, err) == (0, "")
    assert ["kind", "float"] in [line.split() for line in out.splitlines()]


# Beside a writer


def test_what_is_not_committed_is_not_shown(run: Any, price: Path) -> None:
    before = json.loads(run("inspect", price, "--check", "--json")[1])
    with PredicateFile.open(price, writable=True, cache_bytes=CACHE_BYTES) as writer:
        writer.insert_many(">", np.arange(20_000), np.arange(20_000))  # more than the cache holds
        code, out, err = run("inspect", price, "--check", "--json")
        assert (code, err) == (0, "")
        during = json.loads(out)
        assert during | {"file_bytes": 0} == before | {"file_bytes": 0}
        writer.commit()
        after = json.loads(run("inspect", price, "--check", "--json")[1])
        assert after["entries"] == before["entries"] + 20_000
        assert after["version"] == before["version"] + 1


WRITER = """
import itertools
import sys
import numpy as np
from bittern.literature.pb_tree.predicate_file import PredicateFile
keys, before = np.arange(0, 1000, 10), None
with PredicateFile.open(sys.argv[1], writable=True) as index:
    for turn in itertools.count():
        these = np.full(100, turn % 6), keys + turn % 7, np.full(100, turn)
        index.insert_many(*these)
        if before is not None:
            index.delete_many(*before)
        index.commit()
        before = these
        print(index.version, flush=True)
"""


def test_another_process_commits_all_the_time(run: Any, price: Path) -> None:
    before = json.loads(run("inspect", price, "--json")[1])
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(price)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = [before]
        while len(seen) < 6:
            code, out, err = run("inspect", price, "--check", "--json")
            assert (code, err) == (0, "")
            seen.append(json.loads(out))
            while int(writer.stdout.readline()) <= seen[-1]["version"]:
                pass
    finally:
        writer.kill()
        writer.communicate()
    for about in seen:
        commits = about["version"] - before["version"]
        inserted = about["changes"]["inserted"] - before["changes"]["inserted"]
        deleted = about["changes"]["deleted"] - before["changes"]["deleted"]
        assert (inserted, deleted) == (100 * commits, 100 * max(0, commits - 1))
    versions = [about["version"] for about in seen]
    assert versions == sorted(set(versions))
    assert run("inspect", price, "--check")[0] == 0  # what the killed writer left


# Damage


@pytest.mark.parametrize("options", [[], ["--check"]])
def test_a_damaged_page_is_told(run: Any, price: Path, options: list[str]) -> None:
    contents = Contents(price)
    flip(price, int(contents.places[contents.first_of(LEAF)]) * PAGE_BYTES + 100)
    refused(run, price, *options)


def test_every_page_and_map_is_read(run: Any, made: Path, tmp_path: Path) -> None:
    contents = Contents(made)
    used = np.concatenate([contents.places[contents.places > 0], *contents.maps]).tolist()
    for place in used[:: len(used) // 15]:
        path = Path(shutil.copy(made, tmp_path / "damaged.pb"))
        flip(path, place * PAGE_BYTES + place % PAGE_BYTES)
        refused(run, path, "--check")
    path = Path(shutil.copy(made, tmp_path / "damaged.pb"))
    flip(path, int(contents.maps[-1][0]) * PAGE_BYTES + 70)
    assert "map" in refused(run, path)


def test_one_damaged_meta_is_none(run: Any, price: Path) -> None:
    """There are two copies of each."""
    version = Contents(price).meta.version
    flip(price, page_table.meta_offset(version) + 300)
    code, out, _ = run("inspect", price, "--check", "--json")
    assert (code, json.loads(out)["version"]) == (0, version)
    for offset in range(0, 8192, 2048):
        flip(price, offset + 301)
    assert "neither of its metas is whole" in refused(run, price)


def test_a_file_that_was_cut_off_is_told(run: Any, price: Path) -> None:
    os.truncate(price, price.stat().st_size - 1)
    assert "cut off" in refused(run, price, "--check")
    os.truncate(price, 5000)
    refused(run, price)


def test_structure_is_checked_beyond_checksums(run: Any, price: Path) -> None:
    contents = Contents(price)
    leaf = contents.first_of(LEAF)
    page = contents.page(leaf)
    assert page[COUNT] > 1
    slot = PAGE_HEADER + 8  # the second item
    page[slot + POINTERS] = leaf
    contents.put(leaf, page)
    assert run("inspect", price)[0] == 0
    assert "is not sound: " in refused(run, price, "--check")


# Other files


@pytest.mark.parametrize(
    ("record", "said"),
    [(b"decimal", "does not hold predicates, but 'decimal'"), (b"", "does not hold predicates")],
)
def test_a_page_file_of_something_else(run: Any, tmp_path: Path, record: bytes, said: str) -> None:
    PageFile.create(tmp_path / "other", PAGE_BYTES, new_tree(PAGE_BYTES), record)
    code, out, err = run("inspect", tmp_path / "other", "--check")
    assert (code, out) == (1, "")
    assert said in err


def test_a_page_file_of_a_later_format(
    run: Any, price: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_table, "_FORMAT", 0)
    assert "format 3; this release reads format 0" in refused(run, price)


@pytest.mark.parametrize("offset", [16, 2064, 4112, 6160])
def test_what_is_left_of_a_page_file_is_damaged(run: Any, tmp_path: Path, offset: int) -> None:
    """The magic number of one of the four copies of metas is enough to know what it was."""
    path = tmp_path / "remains"
    for rest in (b"", b"x" * 100, bytes(20_000)):
        path.write_bytes(bytes(offset) + b"btrnpage" + rest)
        assert "is damaged" in refused(run, path)


@given(st.binary(max_size=300), st.sampled_from([0, 1, 8, 2040, 8176, 8184, 8192]))
def test_garbage_is_refused_in_a_sentence(data: bytes, offset: int) -> None:
    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("bittern.service.cli.say", said.append)
        path = Path(folder) / "garbage"
        path.write_bytes(data + bytes(offset - min(offset, len(data))) + b"btrnpage" + data)
        assert [main(["inspect", str(path), *more]) for more in ([], ["--check"])] == [1, 1]
    assert len(said) == 2
    assert all(str(path) in sentence for sentence in said)


def test_what_is_no_file_is_no_page_file(run: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe", Path("/dev/null")):
        assert not is_page_file(path)
        code, out, err = run("inspect", path)
        assert (code, out) == (1, "")
        assert "snapshot" in err


def test_looking_leaves_the_file_as_it_was(run: Any, price: Path) -> None:
    before = price.read_bytes()
    assert run("inspect", price, "--check")[0] == 0
    assert price.read_bytes() == before
    views = price.with_name("price.pb.views")
    assert list(views.iterdir()) == []


# An index in a snapshot


SUBSCRIPTIONS = [
    {"id": f"s{i}", "expression": f"price {('<', '>=', '=')[i % 3]} {i}"} for i in range(300)
]


def test_a_snapshot_shows_the_trees_of_its_pivots(run: Any, tmp_path: Path) -> None:
    source = save(tmp_path / "s.jsonl", SUBSCRIPTIONS)
    shop = tmp_path / "shop"
    code, _, err = run("build", source, "--output", shop, "--stabbing", "pb-tree", "--quiet")
    assert (code, err) == (0, "")
    code, out, err = run("inspect", shop, "--check", "--json")
    assert (code, err) == (0, "")
    stabbing = json.loads(out)["statistics"]["pivot"]["stabbing"]
    assert stabbing["structure"] == "pb-tree"
    assert stabbing["one_height"] >= 2
    assert stabbing["one_inserted"] == 300
    assert 0 < stabbing["one_greater_than_keys"] <= stabbing["one_keys"]
    opened = read_snapshot(shop)
    arrays = dict(opened.arrays)
    name = next(each for each in arrays if each.endswith("one.pages"))
    pages = arrays[name].copy()
    words, length = pages.view(np.int32), 4 * 256
    leaf = next(at for at in range(length, len(words), length) if words[at + KIND_WORD] == LEAF)
    words[leaf + PAGE_HEADER + 8 + POINTERS] = leaf // length
    write_snapshot(tmp_path / "broken", arrays | {name: pages}, opened.meta)
    code, out, err = run("inspect", tmp_path / "broken", "--check")
    assert (code, out) == (1, "")
    assert "is not sound: " in err
