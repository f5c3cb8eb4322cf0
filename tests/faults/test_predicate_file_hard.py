"""Predicate indexes on disk in trouble: crashes, killed writers, small caches, damage, misuse.

How writes are recorded and crash images made is told in ``page_crashes``.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bittern.errors import OptionError, PageError
from bittern.literature.pb_tree.disk import Disk
from bittern.literature.pb_tree.page_file import PageFile
from bittern.literature.pb_tree.pool import PLACE_BITS
from bittern.literature.pb_tree.predicate_file import PredicateFile
from bittern.literature.pb_tree.tree import new_tree
from page_crashes import (
    Recorder,
    after_crash,
    possible,
    start,
)
from predicate_generations import (
    GENERATIONS,
    PAGE_BYTES,
    VALUES,
    create,
    found_at,
    generation,
    insert,
    next_generation,
    reopen,
)
from predicate_oracle import OPERATORS, Oracle, found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loss of power is tested here."""
    monkeypatch.setattr(Disk, "sync", lambda _: None)


# Loss of power


class Scenario:
    """Commits with splits, spills, early flushes, deletions and joins; what each version finds."""

    def __init__(self, file: PredicateFile, seed: int) -> None:
        self.file = file
        self.chance = random.Random(seed)
        self.now = Oracle()
        self.present: list[tuple[str, int, int]] = []
        self.versions = {file.version: self.contents()}

    def contents(self) -> list[list[int]]:
        return [self.now.search(value) for value in VALUES]

    def grow(self, count: int, constants: int) -> None:
        more = [
            (self.chance.choice(OPERATORS), self.chance.randrange(constants), sid)
            for sid in range(count)
        ]
        insert(self.file, more)
        self.now.insert_many(more)
        self.present += more

    def shrink(self, count: int) -> None:
        self.chance.shuffle(self.present)
        gone, self.present = self.present[:count], self.present[count:]
        assert self.file.delete_many(*zip(*gone, strict=True)).all()
        self.now.delete_many(gone)

    def commit(self) -> None:
        self.versions[self.file.version + 1] = self.contents()
        self.file.commit()

    def run(self) -> None:
        """Four commits."""
        self.grow(250, 64)
        self.commit()
        self.grow(120, 3)
        self.file._file.flush()
        self.shrink(60)
        self.commit()
        self.shrink(len(self.present) - 15)
        self.commit()
        self.grow(40, 64)
        self.commit()


def checked(path: Path, image: bytes, versions: Any, allowed: set[int], *, go_on: bool) -> int:
    """Open what a crash left, and see that it is one of the versions, whole; which one."""
    path.write_bytes(image)
    file = reopen(path, writable=go_on)
    try:
        version = file.version
        assert version in allowed
        assert found(file, VALUES) == versions[version]
        file.check()
        if go_on:
            file.insert("=", 64.0, 2**31 - 1)
            file.commit()
            file.check()
            expected = [
                [*sids, 2**31 - 1] if value == 64 else sids
                for value, sids in zip(VALUES, versions[version], strict=True)
            ]
            assert found(file, VALUES) == expected
        return version
    finally:
        file.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_every_write(tmp_path: Path, recorder: Recorder, seed: int) -> None:
    chance = random.Random(seed)
    scenario = Scenario(create(tmp_path / "index"), seed)
    scenario.grow(100, 20)
    scenario.commit()
    before, first = (tmp_path / "index").read_bytes(), scenario.file.version
    recorder.start()
    scenario.run()
    scenario.file.close()
    operations = recorder.operations.copy()
    seen = set()
    for last in range(len(operations) + 1):
        allowed = possible(operations, last, first)
        for style in ["in order", "dropped", "dropped"]:
            image = after_crash(before, operations, last, chance, style)
            go_on = chance.random() < 0.5
            seen.add(checked(tmp_path / "crash", image, scenario.versions, allowed, go_on=go_on))
    assert seen == set(range(first, first + 5))


@pytest.mark.parametrize("seed", range(2))
def test_one_crash_after_another(tmp_path: Path, recorder: Recorder, seed: int) -> None:
    chance = random.Random(100 + seed)
    path = tmp_path / "index"
    create(path).close()
    versions: dict[int, list[tuple[str, int, int]]] = {2: []}
    for _ in range(30):
        before = path.read_bytes()
        file = reopen(path)
        start = file.version
        present = list(versions[start])
        oracle = Oracle()
        oracle.insert_many(present)
        file.check()
        assert found(file, VALUES) == [oracle.search(value) for value in VALUES]
        recorder.start()
        for _ in range(2):
            more = generation(chance.randrange(1000))[: chance.choice([1, 70])]
            insert(file, more)
            present += more
            if chance.random() < 0.3:
                file._file.flush()
            chance.shuffle(present)
            gone = present[: int(len(present) * chance.choice([0.01, 0.3, 0.9]))]
            if gone:
                assert file.delete_many(*zip(*gone, strict=True)).all()
            present = present[len(gone) :]
            versions[file.version + 1] = list(present)
            file.commit()
        file.close()
        operations = recorder.operations.copy()
        last = chance.randrange(len(operations) + 1)
        path.write_bytes(after_crash(before, operations, last, chance, "dropped"))
        with reopen(path, writable=False) as reader:
            assert reader.version in possible(operations, last, start)


def test_a_crash_while_the_index_is_made(tmp_path: Path, recorder: Recorder) -> None:
    """The file is there before the tree: until then it is an empty index, which a writer plants."""
    path = tmp_path / "index"
    PageFile.create(path, PAGE_BYTES, new_tree(PAGE_BYTES), b"integer")
    before = path.read_bytes()
    recorder.start()
    reopen(path).close()
    operations = recorder.operations.copy()
    chance = random.Random(3)
    seen = set()
    for last in range(len(operations) + 1):
        for style in ["in order", "dropped", "dropped"]:
            path.write_bytes(after_crash(before, operations, last, chance, style))
            with reopen(path, writable=False) as reader:
                seen.add(reader.version)
                reader.check()
                assert found(reader, VALUES) == [[]] * len(VALUES)
                assert reader.search(5).tolist() == []
                assert reader.statistics()["keys"] == 0
                assert reader.fill()["spill"] == 0
                with reopen(path) as writer:
                    writer.insert(">", 5, 1)
                assert reader.search(6).tolist() == []
                assert reader.refresh()
                assert reader.search(6).tolist() == [1]
                reader.check()
    assert seen == {1, 2}


def test_a_file_cut_off(tmp_path: Path, quick: None) -> None:
    """Whatever is missing is noticed, or is not needed."""
    scenario = Scenario(create(tmp_path / "index"), 5)
    scenario.run()
    scenario.file.close()
    image = (tmp_path / "index").read_bytes()
    refused = 0
    for size in [*range(0, len(image), 512), *range(1, len(image), 4999), len(image) - 1]:
        (tmp_path / "cut").write_bytes(image[:size])
        for writable in (False, True):
            try:
                file = reopen(tmp_path / "cut", writable=writable)
            except PageError as error:
                assert "cut" in str(error)  # noqa: PT017  the file's name
                refused += 1
                continue
            assert found(file, VALUES) == scenario.versions[file.version]
            file.check()
            file.close()
    assert refused > len(image) // 512


# Writers that are killed, beside readers


WRITER = """
import sys
from predicate_generations import next_generation, reopen
file = reopen(sys.argv[1])
next_generation(file)
print("ready", flush=True)
while True:
    next_generation(file)
"""

READER = """
import sys
from predicate_generations import VALUES, found_at, reopen
from predicate_oracle import found
file = reopen(sys.argv[1], writable=False)
print("ready", flush=True)
seen = 0
while True:
    version = file.version
    expected = found_at(version)
    assert found(file, VALUES) == expected, version
    file.check()
    assert [sorted(file.search(value).tolist()) for value in VALUES[::20]] == expected[::20]
    if file.refresh():
        assert file.version > version
        seen += 1
        print(seen, flush=True)
"""


def test_killed_writers_beside_readers(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        assert file.version == 2
        next_generation(file)
    chance = random.Random(1)
    reader = start(READER, path)
    staying = reopen(path, writable=False)
    kept, version = staying.version, 3
    try:
        for _ in range(3):
            writer = start(WRITER, path)
            assert reader.stdout.readline(), reader.communicate()[1]  # it has seen a new version
            time.sleep(chance.uniform(0.0, 0.4))
            with pytest.raises(PageError, match="in use by another writer"):
                reopen(path)
            writer.send_signal(signal.SIGKILL)
            assert writer.communicate()[1] == ""
            with reopen(path) as file:
                assert file.version > version
                version = file.version
                file.check()
                assert found(file, VALUES) == found_at(version)
                next_generation(file)
            assert staying.version == kept
            assert found(staying, VALUES) == found_at(kept)
        staying.check()
        assert staying.refresh()
        assert staying.version == version + 1
        assert found(staying, VALUES) == found_at(version + 1)
        assert not staying.refresh()
        assert reader.poll() is None, reader.communicate()[1]
    finally:
        staying.close()
        reader.kill()
        complaints = reader.communicate()[1]
    assert not complaints


def test_threads_share_an_index(tmp_path: Path, quick: None) -> None:
    """A search sees all of an insertion or nothing of it."""
    file = create(tmp_path / "index")
    file.insert_many("=", range(3000), [0] * 3000)  # more than the cache holds
    file.commit()
    complaints: list[str] = []
    done = threading.Event()

    def look() -> None:
        seen = 0
        chance = random.Random(threading.get_ident())
        while not done.is_set():
            low, high = found(file, [chance.randrange(2900), 3000.5])
            if len(low) != 1 or len(high) % 7 or len(high) < seen:
                complaints.append(f"{low} {len(high)} {seen}")
            seen = len(high)
            if len(file.search(3001)) % 7:
                complaints.append("a part")

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(60):
        file.insert_many(">", [3000 - i] * 7, range(7))
        if i % 10 == 0:
            file.commit()
    done.set()
    for thread in threads:
        thread.join()
    assert complaints == []
    file.check()
    assert len(file.search(3001)) == 420
    file.close()


# A cache that is much smaller than the index


def test_an_index_many_times_larger_than_its_cache(tmp_path: Path, quick: None) -> None:
    n = 32_000
    file = create(tmp_path / "index")
    chance = np.random.default_rng(4)
    order = chance.permutation(n)
    file.insert_many("=", np.arange(n), np.arange(n))
    figures = file.statistics()
    assert figures["frames"] == 128
    assert figures["pages"] >= 20 * 128
    assert figures["page_writes"] > 19 * 128  # most were written before any commit
    file.commit()
    # Few predicates of the lists among very many constants: a cut adjusts more leaves than fit.
    adjusted = file.statistics()["leaves_adjusted"]
    few = np.arange(500, n, 1000)
    for operator, sids in ((">", 1), ("<", 2), ("!=", 3)):
        file.insert_many(operator, few, np.full(len(few), n + sids))
    figures = file.statistics()
    assert figures["leaves_adjusted"] - adjusted > 3 * 128
    assert figures["dirty_frames"] <= 64 + 8
    reads = figures["page_reads"]
    assert reads > 0

    def right(value: int) -> list[int]:
        above, below = int((few > value).sum()), int((few < value).sum())
        own = [value] if value < n else []
        return sorted(own + [n + 1] * below + [n + 2] * above + [n + 3] * (above + below))

    some = [*order[:50].tolist(), 500, 1500, 31_500, n]
    assert found(file, some) == [right(value) for value in some]
    assert file.statistics()["page_reads"] > reads
    for value in some[-6:]:
        assert sorted(file.search(value).tolist()) == right(value)
    file.check()
    file.rollback()
    assert found(file, some) == [[value] if value < n else [] for value in some]
    file.check()
    # Once more, to stay; and out again, node by node.
    for operator, sids in ((">", 1), ("<", 2), ("!=", 3)):
        file.insert_many(operator, few, np.full(len(few), n + sids))
    file.commit()
    file.close()
    file = reopen(tmp_path / "index")
    for operator, sids in ((">", 1), ("<", 2), ("!=", 3)):
        assert file.delete_many(operator, few, np.full(len(few), n + sids)).all()
    assert file.statistics()["leaves_adjusted_per_delete"] > 1
    file.check()
    assert found(file, some) == [[value] if value < n else [] for value in some]
    assert file.delete_many("=", order, order).all()
    file.check()
    assert file.statistics()["pages"] == 7
    file.rollback()
    assert found(file, some[:3]) == [right(value) for value in some[:3]]
    file.close()


def test_a_cache_that_holds_all_reads_nothing(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    file = PredicateFile.create(path, "integer", page_bytes=512, cache_bytes=1 << 20)
    insert(file, generation(1) + generation(2))
    file.search_batch(VALUES)
    file.commit()
    insert(file, generation(3))
    file.delete_many(*zip(*generation(1), strict=True))
    file.commit()
    file.check()
    assert file.statistics()["page_reads"] == 0
    reader = PredicateFile.open(path, cache_bytes=1 << 20)
    assert reader.statistics()["page_reads"] == 0
    reader.search_batch(VALUES)
    reads = reader.statistics()["page_reads"]
    assert 0 < reads <= reader.statistics()["pages"]
    reader.search_batch(VALUES)
    reader.search(3)
    assert reader.statistics()["page_reads"] == reads
    file.insert("=", 59, 5)
    file.commit()
    reader.refresh()
    reader.search_batch(VALUES)
    assert reader.statistics()["page_reads"] - reads <= 3  # what did not change stays
    reader.close()
    file.close()


def test_a_batch_visits_each_page_of_a_list_once(tmp_path: Path, quick: None) -> None:
    path, n = tmp_path / "index", 6000
    with create(path) as file:
        file.insert_many(">", range(n), range(n))
    reader = reopen(path, writable=False)
    values = np.arange(n - 100, n)
    offsets, _ = reader.search_batch(values)
    assert np.diff(offsets).tolist() == values.tolist()
    figures = reader.statistics()
    # Counted, then copied: twice through the list, and the leaves of the values.
    assert figures["page_reads"] < 2 * figures["greater_than_pages"] + 200
    reader.close()


# A change that ends early


def write_fails(monkeypatch: pytest.MonkeyPatch, after: int, error: BaseException) -> None:
    write, left = Disk.write, [after]

    def failing(disk: Disk, offset: int, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise error
        write(disk, offset, data)

    monkeypatch.setattr(Disk, "write", failing)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_change_that_ends_early_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None, after: int, error: BaseException
) -> None:
    """With a cache this small, a change writes pages before it is at its end."""
    raised = PageError if isinstance(error, OSError) else KeyboardInterrupt
    path = tmp_path / "index"
    file = create(path)
    oracle = Oracle()
    for number in range(3, 40):
        insert(file, generation(number))
        oracle.insert_many(generation(number))
    file.insert_many("=", np.arange(1000, 5000), np.arange(4000))
    file.commit()
    expected = [oracle.search(value) for value in VALUES]
    assert found(file, VALUES) == expected

    def too_much() -> None:
        for constant in range(1000, 5000, 100):
            file.insert_many(">", [constant] * 10, range(10))

    changes: list[Callable[[], Any]] = [
        lambda: file.insert_many(">=", np.arange(6000, 12_000), np.zeros(6000, int)),
        lambda: file.delete_many("=", np.arange(1000, 5000, 2), np.arange(0, 4000, 2)),
        too_much,
    ]
    for change in changes:
        with monkeypatch.context() as patch:
            write_fails(patch, after, error)
            with pytest.raises(raised):
                change()
        for refused in (
            file.commit,
            lambda: file.search(5),
            lambda: file.search_batch([5]),
            lambda: file.insert("=", 1, 1),
            lambda: file.delete("=", 1000, 0),
            file.check,
        ):
            with pytest.raises(PageError, match="roll back"):
                refused()
        file.statistics()
        file.rollback()
        file.check()
        assert found(file, VALUES) == expected
        assert found(file, [4999])[0].count(3999) == 1
    file.insert("=", 1, 5)
    file.commit()
    file.close()
    with reopen(path, writable=False) as reader:
        reader.check()
        assert 5 in reader.search(1)


def test_a_commit_that_fails_at_any_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    path = tmp_path / "index"
    file = create(path)
    next_generation(file)
    outcomes = set()
    for fails_at in range(200):
        before = file.version
        insert(file, generation(before + 1))
        if before + 1 - GENERATIONS >= 3:
            file.delete_many(*zip(*generation(before + 1 - GENERATIONS), strict=True))
        with monkeypatch.context() as patch:
            write_fails(patch, fails_at, OSError(5, "Input/output error"))
            try:
                file.commit()
            except PageError as error:
                assert "Input/output error" in str(error)  # noqa: PT017
            else:
                break
        with pytest.raises(PageError, match=r"roll back|open it again"):
            file.commit()
        try:
            file.rollback()
            outcomes.add("rolled back")
        except PageError as error:
            assert "open it again" in str(error)  # noqa: PT017
            file.close()
            file = reopen(path)
            outcomes.add("opened again")
        file.check()
        assert file.version == before
        assert found(file, VALUES) == found_at(before)
        with reopen(path, writable=False) as reader:
            assert found(reader, VALUES) == found_at(before)
    assert outcomes == {"rolled back", "opened again"}
    assert found(file, VALUES) == found_at(file.version)
    file.close()


def test_a_context_that_ends_with_an_error_commits_nothing(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        file.insert("=", 1, 1)

    def fail() -> None:
        with reopen(path) as file:
            file.insert("=", 1, 2)
            file.delete("=", 1, 3)

    with pytest.raises(OptionError, match="not in the index"):
        fail()
    with reopen(path, writable=False) as reader:
        assert reader.search(1).tolist() == [1]
    with reopen(path) as file:
        file.insert("=", 1, 2)
        file.rollback()
        file.insert("=", 1, 3)
    file = reopen(path)
    file.insert("=", 1, 4)
    file.close()  # without a commit
    with reopen(path, writable=False) as reader:
        assert sorted(reader.search(1).tolist()) == [1, 3]


# Damage


def place_of(file: PredicateFile, page: int) -> int:
    return int(file._file._slots[page] & PLACE_BITS)


def damage(path: Path, place: int, at: int = 200) -> None:
    with path.open("r+b") as stream:
        stream.seek(place * PAGE_BYTES + at)
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 16]))


def test_a_damaged_page_is_named_and_others_are_read(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        file.insert_many("=", range(3000), range(3000))
        file.commit()
        pages = file._tree.pages.tree
        places = {page: place_of(file, page) for page in range(1, int(pages[0]))}
    image = path.read_bytes()
    named = set()
    for page in list(places)[7::23]:
        path.write_bytes(image)
        damage(path, places[page])
        reader = reopen(path, writable=False)
        with pytest.raises(PageError, match=rf"index is damaged: page {page} is not sound"):
            reader.check()
        good = 0
        for value in range(0, 3000, 5):
            try:
                assert reader.search(value).tolist() == [value]
                good += 1
            except PageError as error:
                assert f"page {page}: its bytes are not those" in str(error)  # noqa: PT017
                named.add(page)
        if page in named:
            with pytest.raises(PageError, match=f"page {page}: its bytes"):
                reader.search_batch(range(3000))
        assert good > 2500 or page in named
        reader.close()
        writer = reopen(path)  # it does not read what it does not need
        writer.insert("=", 5000, 1)
        writer.commit()
        assert writer.search(5000).tolist() == [1]
        writer.close()
    assert len(named) > 5


def test_a_change_that_meets_damage_is_rolled_back(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        file.insert_many("=", range(3000), range(3000))
        file.commit()
        places = {page: place_of(file, page) for page in range(1, int(file._file.tree[0]))}
    damage(path, places[100])
    file = reopen(path)
    with pytest.raises(PageError, match="page 100: its bytes are not those that were written"):
        file.insert_many("!=", range(3000), range(3000))
    with pytest.raises(PageError, match="roll back"):
        file.commit()
    with pytest.raises(PageError, match="roll back"):
        file.search(1)
    file.rollback()
    lost = 0
    for value in range(3000):
        try:
            assert file.search(value).tolist() == [value]
        except PageError:
            lost += 1
    assert 0 < lost < 20
    file.close()


def test_what_is_no_predicate_file(tmp_path: Path, quick: None) -> None:
    with pytest.raises(PageError, match=r"there is no page file .*missing"):
        PredicateFile.open(tmp_path / "missing")
    with pytest.raises(PageError, match="there is no page file"):
        PredicateFile.open(tmp_path / "missing", writable=True)
    for writable in (False, True):
        with pytest.raises(PageError, match=r"not a page file|Is a directory"):
            PredicateFile.open(tmp_path, writable=writable)
    chance = random.Random(9)
    for size in (0, 1, 511, 8192, 20_000):
        (tmp_path / "garbage").write_bytes(chance.randbytes(size))
        with pytest.raises(PageError, match="is not a page file"):
            PredicateFile.open(tmp_path / "garbage")
    PageFile.create(tmp_path / "other", 512, new_tree(512), b"something else")
    for writable in (False, True, True):
        with pytest.raises(PageError, match="does not hold predicates, but 'something else'"):
            reopen(tmp_path / "other", writable=writable)
    with pytest.raises(PageError, match="exists already"):
        PredicateFile.create(tmp_path / "garbage", "integer")
    with pytest.raises(PageError, match="cannot create the page file"):
        PredicateFile.create(tmp_path / "no" / "folder", "integer")


# Misuse


def test_options_that_are_none(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ("int", {}, "no kind of keys is called 'int': choose from integer, float, string"),
        ("", {}, "no kind of keys is called ''"),
        (None, {}, "no kind of keys is called None"),
        *(
            ("integer", {"page_bytes": page_bytes}, "page_bytes")
            for page_bytes in (0, 256, 513, 131_072, -512, "512", None, 1.5, True)
        ),
        *(
            ("integer", {"cache_bytes": cache_bytes}, "cache_bytes must be at least 524,288")
            for cache_bytes in (0, -1, 524_287)
        ),
    ]
    for kind, options, message in wrong:
        with pytest.raises(OptionError, match=message):
            PredicateFile.create(path, kind, **options)
        path.unlink(missing_ok=True)
    with create(path) as file:
        file.insert("=", 1, 1)
    with pytest.raises(OptionError, match="cache_bytes must be at least 65,536"):
        PredicateFile.open(path, cache_bytes=65_535)


def test_predicates_that_are_none(tmp_path: Path, quick: None) -> None:
    files = {kind: create(tmp_path / kind, kind) for kind in ("integer", "float", "string")}
    files["timestamp"] = create(tmp_path / "timestamp", "timestamp")
    limit = 8 + PAGE_BYTES // 8
    wrong: list[tuple[str, Any, Any, Any, str]] = [
        ("integer", "==", [1], [1], "'==' is not an operator: choose from = != < <= > >="),
        ("integer", ["=", "like"], [1, 2], [1, 2], "'like' is not an operator"),
        ("integer", [0, 6], [1, 2], [1, 2], "6 is not an operator: use 0 to 5"),
        ("integer", [-1], [1], [1], "-1 is not an operator"),
        ("integer", [None], [1], [1], "'None' is not an operator"),
        ("integer", [0.0], [1], [1], "'0.0' is not an operator"),
        ("integer", 6, [1], [1], "6 is not an operator"),
        ("integer", None, [1], [1], "'None' is not an operator"),
        ("integer", [["="]], [1], [1], "operators must be one-dimensional"),
        ("integer", "=", [1, 2], [1], "have 1, 2 and 1 items: give one of each per predicate"),
        ("integer", ["="], [1, 2], [1, 2], "have 1, 2 and 2 items"),
        ("integer", "=", [], [1], "have 1, 0 and 1 items"),
        ("integer", "=", [1], [-1], "sid -1 is negative: sids start at 0"),
        ("integer", "=", [1], [2**31], "they must fit into int32"),
        ("integer", "=", [1], [2**70], "sids must be whole numbers"),
        ("integer", "=", [1], [1.0], "sids must be whole numbers"),
        ("integer", "=", [1], ["1"], "sids must be whole numbers"),
        ("integer", "=", [1], 1, "sids must be one-dimensional"),
        ("integer", "=", 1, [1], "constants cannot be read"),
        ("integer", "=", [[1]], [1], "constants are list"),
        (
            "integer",
            "=",
            [1, None],
            [1, 2],
            "constant 1 is NULL: nothing can be compared with NULL",
        ),
        ("integer", "=", [None], [1], "constant 0 is NULL"),
        ("integer", "=", [1, 2.5], [1, 2], "constant 1, 2.5, is not a key of kind integer"),
        ("integer", "=", [float("nan")], [1], "constant 0, nan, is not a key of kind integer"),
        ("integer", "=", [float("inf")], [1], "constant 0, inf, is not a key of kind integer"),
        (
            "integer",
            "=",
            [2**63],
            [1],
            "constant 0, 9223372036854775808, is not a key of kind integer",
        ),
        ("integer", "=", [-(2**63) - 1], [1], "is not a key of kind integer"),
        ("integer", "=", ["1"], [1], "constants are strings, but the index has integer keys"),
        ("integer", "=", [True], [1], "constants are bool"),
        ("integer", "=", [1, "a"], [1, 2], "constants mix strings with other values"),
        ("integer", "=", "abc", [1, 2, 3], "constants must be a list or an array, not str"),
        (
            "float",
            "=",
            [2**53 + 1],
            [1],
            "constant 0, 9007199254740993, is not a key of kind float",
        ),
        ("float", "=", [10**400], [1], "is not a key of kind float"),
        ("float", "=", ["1"], [1], "constants are strings, but the index has float keys"),
        ("string", "=", [1], [1], "constants are numbers, but the index has string keys"),
        ("string", "=", [b"a"], [1], "constants are binary"),
        ("string", "=", ["\ud800"], [1], "constants cannot be read"),
        ("string", "=", ["a", "x" * (limit + 1)], [1, 2], f"longer than {limit} bytes"),
        ("string", "=", ["é" * (limit // 2 + 1)], [1], "use larger pages"),
        ("timestamp", "=", [5], [1], "constants are numbers, but the index has timestamp keys"),
        ("timestamp", "=", ["2000-01-01"], [1], "constants are strings"),
        ("timestamp", "=", np.array([1], "M8[ns]"), [1], "is not a key of kind timestamp"),
        ("timestamp", "=", np.array(["NaT"], "M8[us]"), [1], "constant 0 is NULL"),
        ("timestamp", "=", np.array([2**62], "M8[s]"), [1], "is not a key of kind timestamp"),
    ]
    for kind, operators, constants, sids, message in wrong:
        for change in (files[kind].insert_many, files[kind].delete_many):
            with pytest.raises(OptionError) as refusal:
                change(operators, constants, sids)
            assert message in str(refusal.value)
    for file in files.values():  # nothing of it has come in, and nothing is to be rolled back
        assert file.statistics()["keys"] == file.statistics()["inserted"] == 0
        file.check()
        version = file.version
        file.commit()
        assert file.version == version
        file.close()


def test_the_longest_strings(tmp_path: Path, quick: None) -> None:
    for page_bytes in (512, 4096, 65_536):
        path = tmp_path / str(page_bytes)
        most = 8 + page_bytes // 8
        file = PredicateFile.create(
            path, "string", page_bytes=page_bytes, cache_bytes=128 * page_bytes
        )
        texts = [f"{'x' * (most - 4)}{i:04d}" for i in range(60)] + ["x" * most, "é" * (most // 2)]
        for operator in OPERATORS:
            file.insert_many(operator, texts, range(len(texts)))
        file.check()
        texts.sort(key=str.encode)
        assert file.statistics()["height"] >= 3
        for at in (0, 1, 30, len(texts) - 1):
            n = len(texts)  # =, <=, >= once; != of all others; < and <= above; > and >= below
            assert len(file.search(texts[at])) == 3 + n - 1 + 2 * (n - 1)
            longer = texts[at] + "\0" * (1 + 70_000 * at % 2)
            assert len(file.search(longer)) == n + 2 * n
        assert len(file.search("x" * (most - 1))) == len(texts) * 3
        for operator in OPERATORS:
            assert file.delete_many(operator, texts, _sids_of(texts, most)).all()
        file.check()
        assert file.statistics()["pages"] == 7
        file.close()


def _sids_of(texts: list[str], most: int) -> list[int]:
    """The positions that these had before they were sorted."""
    odd = {"x" * most: 60, "é" * (most // 2): 61}
    return [odd[text] if text in odd else int(text[-4:]) for text in texts]


def test_values_that_are_none(tmp_path: Path, quick: None) -> None:
    file = create(tmp_path / "integer")
    for value, message in [
        ("a", "strings, but the index has integer keys"),
        (np.datetime64("2000-01-01"), "times, but the index has integer keys"),
        (True, "bool"),
        ([1], "list"),
        (1j, "is not a number"),
        (object(), "is not a number"),
    ]:
        with pytest.raises(OptionError, match=message):
            file.search(value)
        with pytest.raises(OptionError, match=message):
            file.search_batch([value])
    for values in (5, "abc", np.zeros((2, 2)), {1: 2}, [1, "a"]):
        with pytest.raises(OptionError):
            file.search_batch(values)
    file.close()


def test_a_string_that_is_no_unicode(tmp_path: Path, quick: None) -> None:
    file = create(tmp_path / "string", "string")
    with pytest.raises(OptionError, match="cannot be read"):
        file.search_batch(["\ud800"])
    with pytest.raises(OptionError, match="cannot be read"):
        file.search("\ud800")
    file.close()


def test_an_index_open_for_reading_is_not_changed(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        file.insert("=", 1, 1)
    image = path.read_bytes()
    with reopen(path, writable=False) as reader:
        for change in (
            lambda: reader.insert("=", 1, 2),
            lambda: reader.delete("=", 1, 1),
            lambda: reader.insert_many("=", [], []),
            reader.commit,
            reader.rollback,
        ):
            with pytest.raises(PageError, match="open for reading: open it with writable=True"):
                change()
        assert reader.search(1).tolist() == [1]
        assert reader.refresh() is False
    assert path.read_bytes() == image


def test_one_writer_at_a_time(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        with pytest.raises(PageError, match="in use by another writer: close it there, or open"):
            reopen(path)
        assert file.refresh() is False
        file.insert("=", 1, 1)
        with reopen(path, writable=False) as reader:
            assert reader.search(1).tolist() == []
    reopen(path).close()


def test_a_closed_index(tmp_path: Path, quick: None) -> None:
    path = tmp_path / "index"
    with create(path) as file:
        file.insert("=", 1, 1)
    for writable in (False, True):
        file = reopen(path, writable=writable)
        file.search(1)
        file.close()
        file.close()
        uses: list[Callable[[], Any]] = [
            lambda file=file: file.search(1),
            lambda file=file: file.search_batch([1]),
            file.statistics,
            file.refresh,
            file.check,
            file.fill,
        ]
        if writable:
            uses += [
                lambda file=file: file.insert("=", 1, 1),
                lambda file=file: file.search(1),
                lambda file=file: file.delete("=", 1, 1),
                file.commit,
                file.rollback,
            ]
        for use in uses:
            with pytest.raises(PageError, match="it was closed: open it again"):
                use()


def test_page_sizes_that_are_numbers_of_other_types(tmp_path: Path, quick: None) -> None:
    """An index of the size that was asked for, or none at all."""
    for i, page_bytes in enumerate([np.int64(512), np.uint16(1024), 512.0, 2**80, -(2**80)]):
        path = tmp_path / str(i)
        try:
            file = PredicateFile.create(path, "integer", page_bytes=page_bytes)  # type: ignore[arg-type]
        except OptionError:
            assert not path.exists()
            continue
        file.insert_many(">=", range(300), range(300))
        file.check()
        assert file.statistics()["page_bytes"] == page_bytes
        assert found(file, [150.5])[0] == list(range(151))
        file.close()


@pytest.mark.parametrize("cache_bytes", [0, -5, "64", 1e6, None, float("inf")])
def test_a_cache_that_cannot_be_leaves_no_file(
    tmp_path: Path, quick: None, cache_bytes: Any
) -> None:
    with pytest.raises(OptionError, match="cache_bytes"):
        PredicateFile.create(tmp_path / "index", "integer", cache_bytes=cache_bytes)
    assert not (tmp_path / "index").exists()
    PredicateFile.create(tmp_path / "index", "integer").close()
    with pytest.raises(OptionError, match="cache_bytes"):
        PredicateFile.open(tmp_path / "index", cache_bytes=cache_bytes)


@pytest.mark.parametrize("ragged", [[["="], ["=", "<"]], {"=": 1}])
def test_operators_of_no_shape(tmp_path: Path, quick: None, ragged: Any) -> None:
    file = create(tmp_path / "index")
    with pytest.raises(OptionError, match="operator"):
        file.insert_many(ragged, [1, 2], [1, 2])
    with pytest.raises(OptionError, match="sids"):
        file.insert_many("=", [1, 2], [[1], [1, 2]])
    file.close()
