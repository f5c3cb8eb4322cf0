"""A page file after a loss of power: a crash at every write in turn, and a killed writer."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from bittern.errors import PageError
from bittern.literature.pb_tree.disk import Disk
from page_contents import Contents
from page_crashes import (
    Recorder,
    after_crash,
    apply,
    meta_version,
    possible,
    start,
)

Versions = dict[int, dict[int, int]]


def checked(path: Path, image: bytes, versions: Versions, allowed: set[int]) -> int:
    """Open what a crash left, and see that it is one of the versions, whole; which one."""
    path.write_bytes(image)
    contents = Contents.open(path, writable=True)
    try:
        assert contents.file.version in allowed
        assert contents.all() == versions[contents.file.version]
        contents.file.verify()
        return contents.file.version
    finally:
        contents.file.close()


def work(contents: Contents, versions: Versions, chance: random.Random, commits: int) -> None:
    """Change, add and remove pages, and commit; ``versions`` learns what each one has."""
    now = dict(versions[contents.file.version])
    for _ in range(commits):
        some = chance.sample(sorted(now), min(len(now), chance.choice([1, 3, 40])))
        values = [chance.randrange(1 << 20) for _ in some]
        contents.change(some, values)
        now.update(zip(some, values, strict=True))
        if chance.random() < 0.5:
            contents.file.flush()
        gone = chance.sample(sorted(now), min(len(now), chance.choice([0, 2, 30])))
        contents.remove(gone)
        for page in gone:
            del now[page]
        values = [chance.randrange(1 << 20) for _ in range(chance.choice([0, 1, 50, 90]))]
        now.update(zip(contents.add(values), values, strict=True))
        versions[contents.file.version + 1] = dict(now)
        contents.file.commit()


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_every_write(tmp_path: Path, recorder: Recorder, seed: int) -> None:
    chance = random.Random(seed)
    contents = Contents.create(tmp_path / "pages")
    versions: Versions = {1: {}}
    work(contents, versions, chance, 6)
    before, start = (tmp_path / "pages").read_bytes(), contents.file.version
    recorder.start()
    work(contents, versions, chance, 3)
    contents.file.close()
    operations = recorder.operations.copy()
    seen = set()
    for last in range(len(operations) + 1):
        allowed = possible(operations, last, start)
        for style in ["in order", "in order", "dropped", "dropped", "dropped"]:
            image = after_crash(before, operations, last, chance, style)
            seen.add(checked(tmp_path / "crashed", image, versions, allowed))
    assert seen == {start, start + 1, start + 2, start + 3}
    assert sum(kind == "sync" for kind, _, _ in operations) == 6


@pytest.mark.parametrize("seed", range(6))
def test_killed_writers_and_losses_of_power(tmp_path: Path, recorder: Recorder, seed: int) -> None:
    """A killed writer's last writes are seen by the next one, but need not be on disk yet."""
    chance = random.Random(100 + seed)
    path = tmp_path / "pages"
    Contents.create(path).file.close()
    versions: Versions = {1: {}}
    on_disk, newest, pending = path.read_bytes(), 1, []
    for _ in range(40):
        contents = Contents.open(path, writable=True)
        assert contents.all() == versions[contents.file.version]
        recorder.start()
        work(contents, versions, chance, 2)
        contents.file.close()
        operations = pending + recorder.operations
        last = chance.randrange(len(pending), len(operations) + 1)
        if chance.random() < 0.5:
            metas = [i for i in range(len(operations)) if meta_version(operations[i])]
            last = max(len(pending), chance.choice(metas) + 1)
        if chance.random() < 0.5:
            pending = operations[:last]
            image = bytearray(on_disk)
            for operation in pending:
                apply(image, operation)
            seen = [meta_version(operation) or newest for operation in pending]
            checked(path, bytes(image), versions, {max(seen, default=newest)})
        else:
            allowed = possible(operations, last, newest)
            on_disk, pending = after_crash(on_disk, operations, last, chance, "dropped"), []
            newest = checked(path, on_disk, versions, allowed)


@pytest.mark.parametrize("seed", range(3))
def test_the_version_before_is_whole_too(tmp_path: Path, recorder: Recorder, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "pages"
    contents = Contents.create(path)
    versions: Versions = {1: {}, 2: dict.fromkeys(contents.add([5]), 5)}
    contents.file.commit()
    for _ in range(30):
        work(contents, versions, chance, 1)
        version = contents.file.version
        if chance.random() < 0.3:
            pages = sorted(versions[version])
            contents.change(pages, [0] * len(pages))  # not committed
            contents.file.flush()
            contents.file.rollback()
        image = bytearray(path.read_bytes())
        start = version % 2 * 4096
        image[start : start + 4096] = bytes(4096)
        checked(tmp_path / "other", bytes(image), versions, {version - 1})
    contents.file.close()


def test_writing_that_fails_can_be_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = contents.add(range(300))
    contents.file.commit()
    write = Disk.write
    for fails_at in range(4):
        calls = 0

        def failing(disk: Disk, offset: int, data: bytes, fails_at: int = fails_at) -> None:
            nonlocal calls
            calls += 1
            if calls > fails_at:
                raise OSError(28, "No space left on device")
            write(disk, offset, data)

        contents.change(pages[::30], range(1000, 1010))
        with monkeypatch.context() as patch:
            patch.setattr(Disk, "write", failing)
            with pytest.raises(PageError, match="cannot be written: No space left"):
                contents.file.commit()
        if contents.file._state == "to open again":  # the meta itself
            with pytest.raises(PageError, match="open it again"):
                contents.file.rollback()
            contents.file.close()
            contents = Contents.open(tmp_path / "pages", writable=True)
        else:
            with pytest.raises(PageError, match="roll back"):
                contents.file.commit()
            contents.file.rollback()
        assert contents.read(pages) == list(range(300))
    contents.change(pages, range(5, 305))
    contents.file.commit()
    contents.file.verify()
    contents.file.close()


def test_a_failed_fsync_commits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = Contents.create(tmp_path / "pages")
    pages = contents.add([7])

    def failing(disk: Disk) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "sync", failing)
        with pytest.raises(PageError, match="Input/output error"):
            contents.file.commit()
    contents.file.rollback()
    assert contents.file.version == 1
    assert contents.all() == {}
    assert contents.add([8]) == pages
    contents.file.commit()
    assert contents.all() == {pages[0]: 8}
    contents.file.close()


WRITER = """
import sys
from page_contents import Contents
contents = Contents.open(sys.argv[1], writable=True)
pages = sorted(contents.all())
print("ready", flush=True)
while True:
    following = contents.file.version + 1
    contents.remove(pages[: len(pages) // 3])
    pages = pages[len(pages) // 3 :]
    contents.change(pages, [following] * len(pages))
    if following % 3 == 0:
        contents.file.flush()
    pages += contents.add([following] * (150 - len(pages)))
    contents.file.commit()
    print(following, flush=True)
"""

READER = """
import sys
from page_contents import Contents
contents = Contents.open(sys.argv[1])
print("ready", flush=True)
while True:
    version = contents.file.version
    for _ in range(3):
        assert set(contents.all().values()) == {version}, version
    if version % 5 == 0:
        contents.file.verify()
    if contents.file.refresh():
        assert contents.file.version > version
        print(contents.file.version, flush=True)
"""


def test_killed_writers_beside_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    contents = Contents.create(path)
    contents.add([2] * 150)
    contents.file.commit()
    contents.file.close()
    chance = random.Random(1)
    reader = start(READER, path)
    version = 2
    try:
        for _ in range(4):
            writer = start(WRITER, path)
            assert int(writer.stdout.readline()) == version + 1
            time.sleep(chance.uniform(0.0, 0.4))
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            contents = Contents.open(path)
            assert contents.file.version > version
            version = contents.file.version
            assert set(contents.all().values()) == {version}
            contents.file.verify()
            contents.file.close()
        while (seen := int(reader.stdout.readline() or -1)) != version:
            assert 2 < seen < version  # until the reader has come as far
    finally:
        reader.kill()
        complaints = reader.communicate()[1]
    assert "Error" not in complaints
    assert len(list((tmp_path / "pages.views").iterdir())) == 1  # the killed reader's
    contents = Contents.open(path, writable=True)
    contents.add([1])
    contents.file.commit()
    assert not list((tmp_path / "pages.views").iterdir())
    contents.file.close()
