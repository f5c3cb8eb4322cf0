"""Page files against a dictionary: commits, views, frames, damage, and who may open them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bittern.errors import OptionError, PageError
from bittern.jit import i8, i8r, i8w, kernel, u8r, void
from bittern.literature.pb_tree import page_file, page_table, places, views
from bittern.literature.pb_tree.disk import Disk
from bittern.literature.pb_tree.page_file import PageFile
from bittern.literature.pb_tree.pool import (
    DIRTY,
    N_FREE,
    N_PAGES,
    PLACE_BITS,
    SPARE,
    TREE_SIZE,
    PageFault,
    begin,
    checksum,
    drop,
    fault,
    fetch,
    fresh,
    has_room,
    memory_pool,
    touch,
)
from effort import examples
from page_contents import CACHE_BYTES, PAGE_BYTES, Contents
from steady import PATIENCE


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loss of power is tested here."""
    monkeypatch.setattr(Disk, "sync", lambda _: None)


# Against a dictionary


class PageMachine(RuleBasedStateMachine):
    """One writer, and readers that stay where they are until they refresh."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(Disk, "sync", lambda _: None)
        self.folder = tempfile.TemporaryDirectory(prefix="bittern-pages-")
        self.path = Path(self.folder.name) / "pages"
        self.now: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.readers: list[tuple[Contents, dict[int, int]]] = []
        self.chance = random.Random(0)

    @initialize(seed=st.integers(0, 1000), page_bytes=st.sampled_from([512, 1024]))
    def create(self, seed: int, page_bytes: int) -> None:
        self.chance = random.Random(seed)
        self.writer = Contents.create(self.path, page_bytes)

    def some(self, share: float) -> list[int]:
        return [page for page in self.now if self.chance.random() < share]

    @rule(count=st.sampled_from([1, 5, 100, 300]))
    def add(self, count: int) -> None:
        values = [self.chance.randrange(1 << 20) for _ in range(count)]
        pages = self.writer.add(values)
        assert not set(pages) & set(self.now)
        self.now.update(zip(pages, values, strict=True))

    @rule(share=st.sampled_from([0.01, 0.3, 1.0]))
    def change(self, share: float) -> None:
        pages = self.some(share)
        values = [self.chance.randrange(1 << 20) for _ in pages]
        self.writer.change(pages, values)
        self.now.update(zip(pages, values, strict=True))

    @rule(share=st.sampled_from([0.01, 0.3, 1.0]))
    def remove(self, share: float) -> None:
        pages = self.some(share)
        self.writer.remove(pages)
        for page in pages:
            del self.now[page]

    @rule()
    def flush(self) -> None:
        self.writer.file.flush()
        assert self.writer.file.pool[DIRTY] == 0

    @rule()
    def commit(self) -> None:
        version, writes = self.writer.file.version, self.writer.file.statistics()["page_writes"]
        self.writer.file.commit()
        self.committed = dict(self.now)
        if self.writer.file.version == version:  # nothing to do
            assert self.writer.file.statistics()["page_writes"] == writes
        self.writer.file.verify()

    @rule()
    def rollback(self) -> None:
        self.writer.file.rollback()
        self.now = dict(self.committed)

    @rule(commit=st.booleans())
    def reopen(self, *, commit: bool) -> None:
        if commit:
            self.commit()
        page_bytes = self.writer.file.page_bytes
        self.writer.file.close()
        self.writer = Contents.open(self.path, writable=True, cache_bytes=128 * page_bytes)
        self.now = dict(self.committed)

    @rule()
    @precondition(lambda self: len(self.readers) < 3)
    def look(self) -> None:
        reader = Contents.open(self.path, cache_bytes=128 * self.writer.file.page_bytes)
        assert reader.file.version == self.writer.file.version
        self.readers.append((reader, dict(self.committed)))

    @rule(data=st.data())
    @precondition(lambda self: self.readers)
    def refresh(self, data: Any) -> None:
        which = data.draw(st.integers(0, len(self.readers) - 1))
        reader = self.readers[which][0]
        older = reader.file.version < self.writer.file.version
        assert reader.file.refresh() == older
        self.readers[which] = reader, dict(self.committed)

    @rule(data=st.data())
    @precondition(lambda self: self.readers)
    def look_away(self, data: Any) -> None:
        self.readers.pop(data.draw(st.integers(0, len(self.readers) - 1)))[0].file.close()

    @invariant()
    def writer_sees_its_changes(self) -> None:
        if hasattr(self, "writer"):
            assert self.writer.all() == self.now

    @invariant()
    def readers_see_their_version(self) -> None:
        for reader, expected in self.readers:
            assert reader.all() == expected

    def teardown(self) -> None:
        for reader, _ in self.readers:
            reader.file.verify()
            reader.file.close()
        if hasattr(self, "writer"):
            self.writer.file.close()
        assert not list(self.path.parent.glob("pages.views/*"))
        self.folder.cleanup()
        self.patch.undo()


PageMachine.TestCase.settings = examples(steps=25)
TestPageMachine = PageMachine.TestCase


# Readers


def test_a_reader_keeps_its_version_through_many_commits(tmp_path: Path, quick: None) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add(range(200))
    writer.file.commit()
    reader = Contents.open(tmp_path / "pages")
    for i in range(1, 60):
        writer.change(pages, range(i, 200 + i))
        writer.file.commit()
        assert reader.read(pages[:: 1 + i % 7]) == list(range(0, 200, 1 + i % 7))
    kept = writer.file.statistics()["file_bytes"]
    reader.file.verify()
    assert reader.file.refresh()
    assert reader.read(pages) == list(range(59, 259))
    assert not reader.file.refresh()
    for i in range(60):  # now that nobody needs the old ones, their places are used again
        writer.change(pages, range(i, 200 + i))
        writer.file.commit()
        assert reader.file.refresh()
    assert writer.file.statistics()["file_bytes"] <= kept
    assert reader.read(pages) == list(range(59, 259))
    reader.file.close()
    writer.file.close()


def test_a_writer_that_comes_later_spares_what_is_read(tmp_path: Path, quick: None) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add(range(100))
    writer.file.commit()
    reader = Contents.open(tmp_path / "pages")
    for i in range(1, 10):
        writer.change(pages, range(i, 100 + i))
        writer.file.commit()
        writer.file.close()
        writer = Contents.open(tmp_path / "pages", writable=True)
    assert reader.read(pages) == list(range(100))
    reader.file.verify()
    reader.file.close()
    writer.file.close()


def test_pages_that_did_not_move_stay_in_their_frames(tmp_path: Path, quick: None) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add(range(50))
    writer.file.commit()
    reader = Contents.open(tmp_path / "pages")
    reader.read(pages)
    assert reader.file.statistics()["page_reads"] == 50
    writer.change(pages[:3], [0, 0, 0])
    writer.file.commit()
    reader.file.refresh()
    assert reader.read(pages) == [0, 0, 0, *range(3, 50)]
    assert reader.file.statistics()["page_reads"] == 53
    reader.file.close()
    writer.file.close()


def test_a_view_taken_while_commits_go_on(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the meta and registering, the writer may be two versions further."""
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add([0] * 80)
    writer.file.commit()
    real, left = page_file.ReaderView, [5]

    def slow(path: Path, version: int) -> Any:
        for _ in range(left[0]):
            writer.change(pages, [writer.file.version] * 80)
            writer.file.commit()
        left[0] = max(0, left[0] - 1)
        return real(path, version)

    monkeypatch.setattr(page_file, "ReaderView", slow)
    reader = Contents.open(tmp_path / "pages")
    assert reader.file.version == writer.file.version - 1
    assert set(reader.read(pages)) == {reader.file.version - 1}
    for _ in range(4):
        writer.change(pages, [writer.file.version] * 80)
        writer.file.commit()
    reader.file.verify()
    assert len(list((tmp_path / "pages.views").iterdir())) == 1
    reader.file.close()
    writer.file.close()


def test_views_of_dead_readers_are_removed(tmp_path: Path, quick: None) -> None:
    writer = Contents.create(tmp_path / "pages")
    folder = views.folder_of(tmp_path / "pages")
    folder.mkdir()
    for name in ("1.0123456789abcdef", ".0123456789abcdef", "something else"):
        (folder / name).touch()
    reader = Contents.open(tmp_path / "pages")
    assert views.oldest_view(tmp_path / "pages") == 1
    assert [file.name.partition(".")[0] for file in folder.iterdir()] == ["1"]
    reader.file.close()
    assert not list(folder.iterdir())
    assert views.oldest_view(tmp_path / "pages") is None
    writer.file.close()


def test_a_forked_child_leaves_lock_and_views_to_its_parent(tmp_path: Path) -> None:
    """In a process of its own, since this one may have threads."""
    script = f"""
import os, sys
from bittern.errors import PageError
from bittern.literature.pb_tree.predicate_file import PredicateFile
path = {str(tmp_path / "x.pb")!r}
writer = PredicateFile.create(path, "integer")
reader = PredicateFile.open(path)
if os.fork() == 0:
    for use in (lambda: reader.search(1), lambda: writer.insert("=", 1, 1), reader.refresh):
        try:
            use()
        except PageError as error:
            print(str(error).partition(": ")[2], flush=True)
    sys.exit(0)
os.wait()
print(len(os.listdir(path + ".views")))
try:
    PredicateFile.open(path, writable=True)
except PageError as error:
    print(str(error).partition(": ")[2])
writer.insert("=", 7, 1)
writer.commit()
reader.refresh()
print(reader.search(7).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines() == [
        *["open it in this process"] * 3,
        "1",
        "close it there, or open it for reading",
        "[1]",
    ]


def test_a_forked_child_does_not_wait_for_a_thread_that_searches(tmp_path: Path) -> None:
    script = f"""
import os, signal, threading
from bittern.errors import PageError
from bittern.literature.pb_tree import predicate_file
from bittern.literature.pb_tree.predicate_file import PredicateFile
found, searching, forked = predicate_file.search_one, threading.Event(), threading.Event()
def waiting(*arguments):
    searching.set()
    forked.wait()
    return found(*arguments)
predicate_file.search_one = waiting
index = PredicateFile.create({str(tmp_path / "x.pb")!r}, "integer")
thread = threading.Thread(target=index.search, args=(1,))
thread.start()
searching.wait()
if (child := os.fork()) == 0:
    signal.alarm(60)
    try:
        index.search(1)
    except PageError as error:
        print(str(error).partition(": ")[2], flush=True)
    index.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
forked.set()
thread.join()
print(status, index.search(1).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines() == ["open it in this process", "0 []"]


def test_a_view_can_be_seen_by_other_users(tmp_path: Path) -> None:
    Contents.create(tmp_path / "pages").file.close()
    before = os.umask(0o077)
    try:
        reader = Contents.open(tmp_path / "pages")
    finally:
        os.umask(before)
    (view,) = (tmp_path / "pages.views").iterdir()
    assert view.stat().st_mode & 0o444 == 0o444
    reader.file.close()


@pytest.mark.parametrize(("number", "name"), [(13, "Permission denied"), (28, "No space left")])
def test_a_reader_that_cannot_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, name: str
) -> None:
    Contents.create(tmp_path / "pages").file.close()

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(number, name)

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(PageError, match=f"must register in the folder .*{name}"):
        Contents.open(tmp_path / "pages")


def test_where_nobody_can_write_no_view_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add([4])
    writer.file.commit()
    writer.file.close()

    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    reader = Contents.open(tmp_path / "pages")
    assert reader.read(pages) == [4]
    assert not reader.file.refresh()
    reader.file.close()


# Frames


@pytest.mark.parametrize("page_bytes", [512, 4096, 65_536])
def test_a_file_many_times_larger_than_the_cache(
    tmp_path: Path, quick: None, page_bytes: int
) -> None:
    n = 128 * (50 if page_bytes == 512 else 3)
    contents = Contents.create(tmp_path / "pages", page_bytes)
    pages = contents.add(range(n))
    contents.file.commit()
    chance = random.Random(2)
    order = list(range(n))
    chance.shuffle(order)
    contents.change([pages[i] for i in order], [2 * i for i in order])
    assert contents.read(pages) == list(range(0, 2 * n, 2))
    figures = contents.file.statistics()
    assert figures["frames"] == 128
    assert figures["page_writes"] > 2 * n - 128  # most were written before any commit
    assert figures["dirty_frames"] <= 64
    contents.file.rollback()
    assert contents.read(pages) == list(range(n))
    size = contents.file.statistics()["file_bytes"]
    contents.change(pages, range(1, n + 1))
    contents.file.commit()
    after = contents.file.statistics()
    more = figures["dirty_frames"] + after["map_pages"]  # else the same places
    assert after["file_bytes"] <= size + more * page_bytes
    contents.file.verify()
    contents.file.close()


def test_the_clock_spares_what_is_used_often(tmp_path: Path, quick: None) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = contents.add(range(1000))
    contents.file.commit()
    root, others = pages[0], pages[1:]
    contents.read([page for other in others for page in (root, other)])
    reads = contents.file.statistics()["page_reads"]
    contents.read([page for other in others for page in (root, other)])
    assert contents.file.statistics()["page_reads"] - reads <= len(others) + 20
    contents.file.close()


@kernel(void, u8r, i8w, i8r)
def _all_in_one_step(longs: Any, pool: Any, pages: Any) -> None:
    begin(pool)
    for i in range(len(pages)):
        fetch(pool, longs, pages[i])


@kernel(void, i8w, i8)
def _touch(pool: Any, page: Any) -> None:
    touch(pool, page)


@kernel(void, i8w, i8)
def _drop(pool: Any, page: Any) -> None:
    drop(pool, page)


@kernel(i8, i8w, i8)
def _fresh(pool: Any, page: Any) -> Any:
    return fresh(pool, page)


@kernel(i8, u8r, i8w, i8)
def _fetch(longs: Any, pool: Any, page: Any) -> Any:
    begin(pool)
    return fetch(pool, longs, page)


@kernel(i8, i8w)
def _has_room(pool: Any) -> Any:
    return has_room(pool)


def test_a_step_keeps_what_it_fetched(tmp_path: Path, quick: None) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = np.array(contents.add(range(500)))
    file = contents.file
    file.commit()
    _all_in_one_step(file.longs, file.pool, pages[:128])
    reads = file.statistics()["page_reads"]
    _all_in_one_step(file.longs, file.pool, pages[:128])
    assert file.statistics()["page_reads"] == reads
    with pytest.raises(PageError, match="all frames are in use in one step"), file.translated():
        _all_in_one_step(file.longs, file.pool, pages[:129])
    assert contents.read(pages) == list(range(500))
    file.close()


def test_there_is_room_for_a_step_while_there_is_room(tmp_path: Path, quick: None) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = np.array(contents.add(range(500)))
    file = contents.file
    file.commit()
    for page in pages[:64]:
        _fetch(file.longs, file.pool, page)
        assert _has_room(file.pool)
        _touch(file.pool, page)
    assert _has_room(file.pool)
    _all_in_one_step(file.longs, file.pool, pages[100 : 100 + SPARE])
    _fetch(file.longs, file.pool, pages[200])
    _touch(file.pool, pages[200])
    assert not _has_room(file.pool)
    file.close()


def test_page_numbers_that_are_none(tmp_path: Path, quick: None) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = contents.add(range(300))
    contents.remove(pages[-1:])
    file = contents.file
    file.commit()
    beyond = len(file._frames.slots)
    for page in (0, -1, -(1 << 40), beyond, 1 << 40, 1 << 62):
        for call in (
            lambda page: _fetch(file.longs, file.pool, page),
            lambda page: _fresh(file.pool, page),
            lambda page: _touch(file.pool, page),
            lambda page: _drop(file.pool, page),
        ):
            message = f"page {page}: there is no page with this number"
            with pytest.raises(PageError, match=message), file.translated():
                call(page)
    with pytest.raises(PageFault):
        _fetch(file.longs, file.pool, pages[-1])
    assert fault(file.pool) == f"page {pages[-1]}: this page is free, and has no contents"
    with pytest.raises(PageError, match="without having been fetched"), file.translated():
        _touch(file.pool, pages[0])
    assert contents.read(pages[:-1]) == list(range(299))
    file.close()
    with pytest.raises(PageError, match="it was closed"), file.translated():
        _fetch(file.longs, file.pool, pages[0])


def test_in_memory_a_page_is_a_frame() -> None:
    pool, longs = memory_pool(4096), np.zeros(1, np.uint64)
    assert _fetch(longs, pool, 7) == _fresh(pool, 7) == 7 * 1024
    _touch(pool, 7)
    _drop(pool, 7)
    assert _has_room(pool)


def test_a_checksum_tells_every_bit() -> None:
    longs = np.random.default_rng(3).integers(0, 1 << 63, 64).astype(np.uint64)
    seen = {int(checksum(longs))}
    for i in range(1, 64):
        for bit in range(64):
            longs[i] ^= np.uint64(1) << np.uint64(bit)
            seen.add(int(checksum(longs)))
            longs[i] ^= np.uint64(1) << np.uint64(bit)
    longs[[3, 4]] = longs[[4, 3]]
    seen.add(int(checksum(longs)))
    longs[[3, 11]] = longs[[11, 3]]
    seen.add(int(checksum(longs)))
    longs[0] += np.uint64(1)
    assert int(checksum(longs)) in seen  # the first is the checksum's own place
    assert len(seen) == 63 * 64 + 3
    assert checksum(np.zeros(64, np.uint64)) != 0


# Places


def test_places_come_back_when_nobody_reads_them() -> None:
    some = places.Places(10)
    assert some.take(3).tolist() == [10, 11, 12]
    assert some.is_new(np.array([9, 10, 12])).tolist() == [False, True, True]
    some.leave(np.array([4, 11]))  # version 1 has 4; 11 was never anybody's
    assert some.finish() == 13
    some.committed(2)
    some.release(1)
    assert some.take(2).tolist() == [11, 13]
    some.rolled_back()
    assert some.end == 13
    some.release(2)
    assert some.take(1).tolist() == [4]
    assert some.is_new(np.array([4, 11])).tolist() == [True, False]
    some.leave(np.array([12, 10]))
    assert some.finish() == 13
    some.committed(3)
    some.release(3)
    assert some.free == 3
    assert some.finish() == 10  # 10, 11, 12 are free, and the last
    assert some.free == 0


def test_a_file_that_is_emptied_gets_short(tmp_path: Path, quick: None) -> None:
    contents = Contents.create(tmp_path / "pages", 1024)  # one map for all of them
    pages = contents.add(range(110))
    contents.file.commit()
    long = contents.file.statistics()["file_bytes"]
    contents.remove(pages[5:])
    contents.file.commit()
    contents.file.verify()
    for i in range(6):
        contents.change(pages[:5], [i] * 5)
        contents.file.commit()
        contents.file.verify()
    figures = contents.file.statistics()
    assert figures["file_bytes"] < long / 3
    assert (figures["pages"], figures["free_pages"]) == (5, 105)
    contents.file.close()
    contents = Contents.open(tmp_path / "pages", writable=True, cache_bytes=128 * 1024)
    assert contents.all() == dict.fromkeys(pages[:5], 5)
    assert contents.add([9]) == [pages[5]]  # the lowest free number first
    contents.file.close()


def test_only_changed_maps_are_written(tmp_path: Path, quick: None) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = contents.add(range(56 * 56 + 50))  # 56 entries in a map: three levels
    contents.file.commit()
    assert contents.file.statistics()["map_pages"] == 57 + 2 + 1
    written = contents.file.statistics()["page_writes"]
    contents.change([pages[0], pages[5], pages[-1]], [1, 2, 3])
    contents.file.commit()
    assert contents.file.statistics()["page_writes"] - written == 3 + 2 + 2 + 1
    contents.file.verify()
    contents.file.close()
    reader = Contents.open(tmp_path / "pages")
    assert reader.read([pages[0], pages[1], pages[5], pages[-1]]) == [1, 1, 2, 3]
    reader.file.close()


def test_a_commit_without_changes_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = Contents.create(tmp_path / "pages")
    contents.add([1, 2])
    contents.file.commit()
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "write", None)
        contents.file.commit()
        contents.file.flush()
    assert contents.file.version == 2
    contents.file.tree[TREE_SIZE - 1] = 77
    contents.file.commit()
    assert contents.file.version == 3
    contents.file.close()
    contents = Contents.open(tmp_path / "pages")
    assert contents.file.tree[TREE_SIZE - 1] == 77
    contents.file.close()


# Damage


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[int, int], set[int]]:
    """A file's bytes after some commits, its pages, and the places in use."""
    path = tmp_path_factory.mktemp("sound") / "pages"
    contents = Contents.create(path)
    pages = contents.add(range(150))
    for i in range(4):
        contents.change(pages[i::5], range(30))
        contents.file.commit()
    expected = contents.all()
    table, *maps = page_table.read_table(contents.file._disk, contents.file._meta)
    used = {int(place) for level in (table, *maps) for place in level.places if place}
    contents.file.close()
    return path.read_bytes(), expected, used


def test_a_flipped_bit_is_noticed(
    tmp_path: Path, sound: tuple[bytes, dict[int, int], set[int]]
) -> None:
    data, expected, used = sound
    path = tmp_path / "pages"
    chance = random.Random(5)
    bits = [chance.randrange(8 * len(data)) for _ in range(500)]
    bits += [8 * PAGE_BYTES * place + chance.randrange(8 * PAGE_BYTES) for place in used]
    bits += [chance.randrange(8 * 8192) for _ in range(100)]
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        path.write_bytes(flipped)
        noticed = 0
        for call in (lambda c: c.all(), lambda c: c.file.verify()):
            try:
                contents = Contents.open(path, writable=True)
            except PageError:
                noticed += 1
                continue
            try:
                found = call(contents)
                assert contents.file.version == 5
                assert found is None or found == expected
            except PageError:
                noticed += 1
            contents.file.close()
        assert noticed == (2 if bit // 8 // PAGE_BYTES in used else 0)


def test_a_page_that_was_not_written_is_noticed(tmp_path: Path, quick: None) -> None:
    """What a disk that forgets a write leaves: whatever the place held before, sound in itself."""
    path = tmp_path / "pages"
    contents = Contents.create(path)
    states = []

    def seen() -> None:
        states.append(path.read_bytes())

    chance = random.Random(1)
    pages = contents.add(range(200))
    contents.file.flush()
    seen()
    for i in range(12):
        contents.change(pages[i % 3 :: 3], chance.choices(range(1000), k=len(pages[i % 3 :: 3])))
        contents.file.flush()
        seen()
        if i % 4 == 1:
            contents.file.rollback() if i > 1 else contents.file.commit()
        contents.change(pages[:20], range(20))  # written over, where they were flushed to
        contents.file.commit()
        seen()
    expected = contents.all()
    table, *maps = page_table.read_table(contents.file._disk, contents.file._meta)
    used = sorted({int(place) for level in (table, *maps) for place in level.places if place})
    contents.file.close()

    def at(data: bytes, place: int) -> bytes:
        return data[place * PAGE_BYTES :][:PAGE_BYTES].ljust(PAGE_BYTES, b"\0")

    now = path.read_bytes()
    zeros, others = bytes(PAGE_BYTES), [*used[1:], used[0]]
    n_older = 0
    for place, other in zip(used, others, strict=True):
        older = {at(state, place) for state in states}
        n_older += len(older) - 1
        for wrong in (older | {zeros, at(now, other)}) - {at(now, place)}:
            path.write_bytes(now)
            with path.open("r+b") as file:
                file.seek(place * PAGE_BYTES)
                file.write(wrong)
                if wrong == at(now, other):
                    file.seek(other * PAGE_BYTES)
                    file.write(at(now, place))
            for call in (lambda c: c.all(), lambda c: c.file.verify()):
                with pytest.raises(PageError, match=r"is damaged|cannot be used: page"):
                    call(Contents.open(path))
    assert n_older > 200
    path.write_bytes(now)
    contents = Contents.open(path)
    assert contents.all() == expected
    contents.file.close()


def test_a_file_cut_off_is_noticed(
    tmp_path: Path, sound: tuple[bytes, dict[int, int], set[int]]
) -> None:
    data = sound[0]
    for size in [*range(0, len(data), 509), len(data) - 1]:
        (tmp_path / "pages").write_bytes(data[:size])
        for writable in (True, False):
            with pytest.raises(PageError, match=r"is damaged|is not a page file"):
                Contents.open(tmp_path / "pages", writable=writable)


def test_a_file_damaged_while_it_is_open(tmp_path: Path, quick: None) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add(range(300))
    writer.file.commit()
    place = int(writer.file._frames.slots[pages[7]] & PLACE_BITS)
    other = int(writer.file._frames.slots[pages[8]] & PLACE_BITS)
    reader = Contents.open(tmp_path / "pages")
    data = (tmp_path / "pages").read_bytes()
    page = data[place * PAGE_BYTES :][:PAGE_BYTES]

    def put(offset: int, new: bytes) -> None:
        with (tmp_path / "pages").open("r+b") as file:
            file.seek(offset)
            file.write(new)

    put(place * PAGE_BYTES, bytes(PAGE_BYTES))
    with pytest.raises(PageError, match=f"page {pages[7]}: its bytes are not those"):
        reader.read(pages)
    put(place * PAGE_BYTES, data[other * PAGE_BYTES :][:PAGE_BYTES])
    with pytest.raises(PageError, match=f"page {pages[7]}: another page lies at its place"):
        reader.read(pages)
    longs = np.frombuffer(page, np.uint64).copy()
    longs[1] = 9
    longs[0] = checksum(longs)
    put(place * PAGE_BYTES, longs.tobytes())
    with pytest.raises(PageError, match="was used again by a later commit"):
        reader.read(pages)
    put(place * PAGE_BYTES, page)
    assert reader.read(pages) == list(range(300))
    os.truncate(tmp_path / "pages", (place + 1) * PAGE_BYTES - 1)
    with pytest.raises(PageError, match="the file ends before or within it"):
        reader.read(pages)
    with pytest.raises(PageError, match="not sound"):
        reader.file.verify()
    reader.file.close()
    writer.file.close()


def forged(data: bytes, **changes: int) -> bytes:
    """All metas with other numbers and right checksums."""
    places = {"version": 1, "magic": 2, "form": 3, "page_bytes": 4, "end": 5, "root": 6}
    places |= {"record": 7, "n_pages": 16}
    forged = bytearray(data)
    for start in range(0, 8192, 2048):
        longs = np.frombuffer(bytes(forged[start : start + 2048]), np.int64).copy()
        for name, value in changes.items():
            longs[places[name]] = value
        longs.view(np.uint64)[0] = checksum(longs.view(np.uint64))
        forged[start : start + 2048] = longs.tobytes()
    return bytes(forged)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"form": 2}, "of format 2; this release reads format 3: create it again"),
        ({"form": 4}, "of format 4; this release reads format 3"),
        ({"magic": 0}, "is not a page file"),
        ({"page_bytes": 0}, "makes no sense"),
        ({"page_bytes": 1000}, "makes no sense"),
        ({"page_bytes": 1 << 40}, "makes no sense"),
        ({"page_bytes": 1024}, "is damaged"),
        ({"end": -1}, "makes no sense"),
        ({"end": 1 << 62}, "its end was cut off"),
        ({"root": 0}, "makes no sense"),
        ({"root": 1 << 40}, "makes no sense"),
        ({"root": 16}, "is damaged"),
        ({"n_pages": 0}, "makes no sense"),
        ({"n_pages": -5}, "makes no sense"),
        ({"n_pages": (1 << 31) - 1}, "makes no sense"),
        ({"record": 1 << 40}, "makes no sense"),
        ({"record": -1}, "makes no sense"),
    ],
)
def test_hostile_metas(
    tmp_path: Path,
    sound: tuple[bytes, dict[int, int], set[int]],
    changes: dict[str, int],
    message: str,
) -> None:
    (tmp_path / "pages").write_bytes(forged(sound[0], **changes))
    for writable in (True, False):
        with pytest.raises(PageError, match=message):
            Contents.open(tmp_path / "pages", writable=writable, cache_bytes=1 << 24)


# The door


def test_creating(tmp_path: Path) -> None:
    path, tree = tmp_path / "pages", np.arange(TREE_SIZE)
    PageFile.create(path, 4096, tree, b"integer")
    assert tree.tolist() == list(range(TREE_SIZE))
    assert [entry.name for entry in tmp_path.iterdir()] == ["pages"]
    file = PageFile.open(path, writable=False, cache_bytes=1 << 20)
    assert (file.version, file.page_bytes, file.record) == (1, 4096, b"integer")
    assert file.tree.tolist() == [1, 0, *range(2, TREE_SIZE)]
    file.close()
    file.close()
    before = path.read_bytes()
    with pytest.raises(PageError, match="pages exists already"):
        PageFile.create(path, 512, tree)
    assert path.read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir()} == {"pages", "pages.views"}
    with pytest.raises(PageError, match=r"cannot create the page file .*No such file"):
        PageFile.create(tmp_path / "nowhere" / "pages", 4096, tree)


@pytest.mark.parametrize("page_bytes", [0, 256, 1000, 131_072, -512, 512.5, "512"])
def test_page_sizes_that_are_none(tmp_path: Path, page_bytes: Any) -> None:
    with pytest.raises(OptionError, match=r"page_bytes.*(choose from 512|not a whole number)"):
        PageFile.create(tmp_path / "pages", page_bytes, np.zeros(TREE_SIZE, np.int64))
    assert not list(tmp_path.iterdir())


def test_records_and_trees_that_do_not_fit(tmp_path: Path) -> None:
    for tree, record in ((TREE_SIZE - 1, b""), (TREE_SIZE, bytes(257))):
        with pytest.raises(OptionError, match="tree must be 64 numbers"):
            PageFile.create(tmp_path / "pages", 512, np.zeros(tree, np.int64), record)
    PageFile.create(tmp_path / "pages", 512, np.zeros(TREE_SIZE, np.int64), bytes(256))
    contents = Contents.open(tmp_path / "pages")
    assert contents.file.record == bytes(256)
    contents.file.close()


def test_what_is_no_page_file(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    for writable in (True, False):
        with pytest.raises(PageError, match=r"there is no page file .*: create it first"):
            Contents.open(path, writable=writable)
    for data in (b"", b"x", bytes(1 << 20), random.Random(1).randbytes(1 << 16)):
        path.write_bytes(data)
        for writable in (True, False):
            with pytest.raises(PageError, match="pages is not a page file"):
                Contents.open(path, writable=writable)
    path.unlink()
    path.mkdir()
    for writable in (True, False):
        with pytest.raises(PageError, match=r"is not a page file|Is a directory"):
            Contents.open(path, writable=writable)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(PageError, match="is not a page file"):
        Contents.open(path)


def test_a_cache_that_is_too_small(tmp_path: Path) -> None:
    Contents.create(tmp_path / "pages").file.close()
    for size in (0, -1, CACHE_BYTES - 1):
        with pytest.raises(OptionError, match=r"cache_bytes must be at least 65,536 with pages of"):
            Contents.open(tmp_path / "pages", cache_bytes=size)
    assert not list((tmp_path).glob("pages.views/*"))
    Contents.open(tmp_path / "pages", writable=True).file.close()


def test_one_writer(tmp_path: Path) -> None:
    writer = Contents.create(tmp_path / "pages")
    with pytest.raises(PageError, match="is in use by another writer"):
        Contents.open(tmp_path / "pages", writable=True)
    script = (
        "import sys; from page_contents import Contents; Contents.open(sys.argv[1], writable=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "pages")],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PageError" in done.stderr
    assert "in use by another writer" in done.stderr
    writer.file.close()
    Contents.open(tmp_path / "pages", writable=True).file.close()


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add([1])
    writer.file.commit()
    assert not writer.file.refresh()  # it is at the newest version, its own
    writer.file.close()
    reader = Contents.open(tmp_path / "pages")
    reader.change(pages, [2])
    for call in (reader.file.commit, reader.file.flush, reader.file.rollback):
        with pytest.raises(PageError, match="is open for reading: open it with writable=True"):
            call()
    reader.file.close()
    for call in (
        reader.file.commit,
        reader.file.refresh,
        reader.file.verify,
        reader.file.statistics,
        lambda: reader.file.grow(1),
    ):
        with pytest.raises(PageError, match="it was closed: open it again"):
            call()


def test_limits(tmp_path: Path) -> None:
    contents = Contents.create(tmp_path / "pages")
    with pytest.raises(PageError, match="can have 2,147,483,647 pages"):
        contents.file.grow(1 << 31)
    some = places.Places(places.MOST_PLACES - 1)
    some.take(1)
    with pytest.raises(PageError, match="at most 4,294,967,296 places"):
        some.take(1)
    contents.file.close()


def test_a_page_without_a_place_is_noticed(tmp_path: Path) -> None:
    contents = Contents.create(tmp_path / "pages")
    contents.add([1, 2])
    contents.file.grow(1)
    contents.file.tree[N_PAGES] += 1  # given out, but never written and not free
    contents.file.commit()
    with pytest.raises(PageError, match="a page that is not free has no place"):
        contents.file.verify()
    assert contents.file.tree[N_FREE] == 0
    contents.file.close()


def test_a_copy_is_a_page_file(tmp_path: Path) -> None:
    writer = Contents.create(tmp_path / "pages")
    pages = writer.add(range(10))
    writer.file.commit()
    shutil.copy(tmp_path / "pages", tmp_path / "copy")
    writer.file.close()
    copy = Contents.open(tmp_path / "copy", writable=True)
    assert copy.read(pages) == list(range(10))
    copy.file.close()


def test_readers_and_writer_meet_whatever_name_they_use(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    writer = Contents.create("pages")
    pages = writer.add(range(100))
    writer.file.commit()
    (tmp_path / "link").symlink_to("here/pages")
    reader = Contents.open(tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    for i in range(8):
        writer.change(pages, [i] * 100)
        writer.file.commit()
    assert reader.read(pages) == list(range(100))
    reader.file.close()
    writer.file.close()


def test_interrupted_at_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is interrupted is told to be rolled back or opened again, and then goes on."""
    contents = Contents.create(tmp_path / "pages")
    pages = contents.add(range(120))
    contents.file.commit()
    real = {name: getattr(Disk, name) for name in ("write", "sync")}
    expected, last, interrupted = list(range(120)), 0, True
    while interrupted:
        calls, interrupted = [0], False

        def counted(name: str, calls: list[int], last: int) -> Any:
            def call(*arguments: Any) -> None:
                real[name](*arguments)
                calls[0] += 1
                if calls[0] > last:
                    raise KeyboardInterrupt

            return call

        contents.change(pages[::3], range(1000 + last, 1040 + last))
        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(Disk, name, counted(name, calls, last))
            try:
                contents.file.commit()
            except KeyboardInterrupt:
                interrupted = True
        if not interrupted or contents.file._state == "to open again":
            expected[::3] = range(1000 + last, 1040 + last)
        if contents.file._state == "to open again":
            with pytest.raises(PageError, match="open it again"):
                contents.file.commit()
            contents.file.close()
            contents = Contents.open(tmp_path / "pages", writable=True)
        elif interrupted:
            contents.file.rollback()
        assert contents.read(pages) == expected
        contents.file.verify()
        last += 1
    assert last > 4
    contents.file.close()
