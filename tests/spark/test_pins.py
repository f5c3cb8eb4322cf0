"""A checkpoint belongs to one pipeline at a time, and a batch to the version it was bound to."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from bittern.errors import OptionError, PipelineError
from bittern.service.run import _try_checkpoint
from bittern.spark.streaming import pins
from bittern.spark.streaming.outbox import check_apart
from bittern.spark.streaming.pins import Checkpoint, Pin
from interrupts import each_fault
from steady import PATIENCE

#: Takes a checkpoint, says so, and holds it until its standard input ends.
HOLDER = """
import sys
from bittern.spark.streaming.pins import Checkpoint
with Checkpoint(sys.argv[1]) as checkpoint:
    checkpoint.pin(7, lambda: 70)
    print("taken", flush=True)
    sys.stdin.read()
"""


def never() -> int:
    raise AssertionError("the catalog is asked although the batch has a pin")


# ------------------------------------------------------------------ pins


def test_a_batch_is_bound_once(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with Checkpoint(tmp_path / "c") as checkpoint:
        pin = checkpoint.pin(0, lambda: 5)
        assert checkpoint.pin(0, never) == pin
        assert checkpoint.pinned(0) == pin
        assert checkpoint.pinned(1) is None
        assert checkpoint.pin(1, lambda: 6).version == 6
    assert pin.version == 5
    assert before <= pin.time <= datetime.now(UTC)
    assert pin.time.utcoffset() == timedelta(0)
    with Checkpoint(str(tmp_path / "c")) as again:
        assert again.pin(0, never) == pin


def test_the_file_of_a_pin_is_as_documented(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        pin = checkpoint.pin(42, lambda: 4711)
    place = tmp_path / "bittern" / "pins" / "00000000000000000042.json"
    assert json.loads(place.read_text()) == {"version": 4711, "time": pin.time.isoformat()}


def test_a_failing_catalog_leaves_no_pin(tmp_path: Path) -> None:
    def fails() -> int:
        raise RuntimeError("no database")

    with Checkpoint(tmp_path) as checkpoint:
        with pytest.raises(RuntimeError, match="no database"):
            checkpoint.pin(0, fails)
        assert checkpoint.pinned(0) is None
        assert checkpoint.pin(0, lambda: 3).version == 3


def test_whoever_writes_a_pin_first_decides(tmp_path: Path) -> None:
    """Of two that race (a lock that a file system does not know) one goes on."""
    meet = threading.Barrier(2)
    found: list[Pin] = []
    stopped: list[str] = []
    checkpoint = Checkpoint(tmp_path)

    def bind(version: int) -> None:
        def newest() -> int:
            meet.wait(PATIENCE)
            return version

        try:
            found.append(checkpoint.pin(0, newest))
        except PipelineError as error:
            stopped.append(str(error))

    with checkpoint:
        threads = [threading.Thread(target=bind, args=(version,)) for version in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert found == [checkpoint.pinned(0)]
    assert len(stopped) == 1
    assert "another pipeline has written the pin" in stopped[0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"version": 3}', '{"version": "x", "time": "?"}', "null"),
        *(
            f'{{"version": {wrong}, "time": "2026-03-01T12:00:04+00:00"}}'
            for wrong in ("true", "false", "1.0", '"1"', "-1", "null", "[1]", "9" * 5000)
        ),
        *(
            f'{{"version": 1, "time": {wrong}}}'
            for wrong in ("null", "17", '"2026-03-01T12:00:04"', '"x"', "true")
        ),
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_a_torn_pin_is_told_and_nothing_is_matched(tmp_path: Path, text: str) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.pin(3, lambda: 5)
        place = tmp_path / "bittern" / "pins" / "00000000000000000003.json"
        place.write_text(text)
        with pytest.raises(PipelineError, match=rf"{place} cannot be read.*restore it"):
            checkpoint.pin(3, never)
        assert place.read_text() == text


def test_a_killed_writer_leaves_no_pin(tmp_path: Path) -> None:
    """Half a pin has a hidden name, under which nobody looks."""
    with Checkpoint(tmp_path) as checkpoint:
        (tmp_path / "bittern" / "pins" / ".0123456789abcdef").write_text('{"vers')
        assert checkpoint.pinned(0) is None
        assert checkpoint.pin(0, lambda: 9).version == 9


def test_old_pins_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "_KEPT", 3)
    with Checkpoint(tmp_path) as checkpoint:
        for batch in range(8):
            checkpoint.pin(batch, partial(int, 10 + batch))
        kept = [checkpoint.pinned(batch) for batch in range(8)]
    assert [pin.version if pin else None for pin in kept] == [None] * 5 + [15, 16, 17]
    assert len(list((tmp_path / "bittern" / "pins").iterdir())) == 3


def test_a_pin_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with Checkpoint(tmp_path) as checkpoint:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(PipelineError, match=r"cannot write the pin .* No space left"):
            checkpoint.pin(0, lambda: 1)
        monkeypatch.undo()
        assert checkpoint.pinned(0) is None
        assert not list((tmp_path / "bittern" / "pins").iterdir())


def test_a_disk_that_became_read_only_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    with Checkpoint(tmp_path) as checkpoint:
        monkeypatch.setattr(os, "link", read_only)
        monkeypatch.setattr(Path, "unlink", read_only)
        with pytest.raises(PipelineError, match=r"cannot write the pin .* Read-only"):
            checkpoint.pin(0, lambda: 1)
        monkeypatch.undo()


# ------------------------------------------------------------------ whose it is


def test_a_checkpoint_has_one_user(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as first:
        with (
            pytest.raises(PipelineError, match=f"in use by process {os.getpid()} on .*: stop"),
            Checkpoint(tmp_path),
        ):
            pass
        assert first.pin(0, lambda: 1).version == 1
    with Checkpoint(tmp_path) as second:
        assert second.pin(0, never).version == 1


def test_an_interrupt_while_it_is_taken_leaves_no_lock(tmp_path: Path) -> None:
    def take(checkpoint: Checkpoint) -> None:
        with checkpoint:
            pass

    for fault in each_fault(lambda: Checkpoint(tmp_path), take, moments=30):
        fault.caught = None  # which has held the frames
        with Checkpoint(tmp_path):  # though the first is still there
            assert fault.subject.path == tmp_path


def test_taking_what_one_has_changes_nothing(tmp_path: Path) -> None:
    """The second ``with`` fails and the first still lets go: it can be taken again."""
    checkpoint = Checkpoint(tmp_path)
    with checkpoint:
        with pytest.raises(PipelineError, match="in use"), checkpoint:
            pass
        with pytest.raises(PipelineError, match="in use"), Checkpoint(tmp_path):
            pass
    with checkpoint, pytest.raises(PipelineError, match="in use"), Checkpoint(tmp_path):
        pass
    with Checkpoint(tmp_path):
        pass


def test_another_process_holds_it_until_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"taken\n"
        with (
            pytest.raises(PipelineError, match=f"in use by process {holder.pid} "),
            Checkpoint(tmp_path),
        ):
            pass
        holder.kill()
        holder.wait(PATIENCE)
    with Checkpoint(tmp_path) as checkpoint:
        assert checkpoint.pin(7, never).version == 70


@pytest.mark.parametrize("removed", ["lock", "folder", "lock, and replaced"])
def test_a_lock_that_is_removed_lets_nobody_else_in(tmp_path: Path, removed: str) -> None:
    """Whatever is done to the files, there is one who works on the checkpoint."""
    with Checkpoint(tmp_path) as first:
        first.pin(0, lambda: 1)
        if removed == "folder":  # all that the lock was for goes with it
            first.own.rename(tmp_path / "away")
            with Checkpoint(tmp_path) as second:
                assert second.pin(0, lambda: 2).version == 2
        else:
            (first.own / "lock").unlink()
            if removed != "lock":
                (first.own / "lock").write_text("process 1 on elsewhere\n")
            with pytest.raises(PipelineError, match="is in use by"), Checkpoint(tmp_path):
                pass
        for batch in (0, 1):
            (first.own / "lock").unlink(missing_ok=True)
            with pytest.raises(PipelineError, match=r"was removed or replaced while .* stops"):
                first.pin(batch, never)
    with Checkpoint(tmp_path) as third:
        third.pin(1, lambda: 3)


def test_where_folders_cannot_be_locked_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(9, "Bad file descriptor")  # as NFS has it
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with Checkpoint(tmp_path) as first:
        with (
            pytest.raises(PipelineError, match=f"in use by process {os.getpid()} "),
            Checkpoint(tmp_path),
        ):
            pass
        (first.own / "lock").unlink()
        with Checkpoint(tmp_path) as second:
            assert second.pin(0, lambda: 2).version == 2
            with pytest.raises(PipelineError, match="was removed or replaced"):
                first.pin(1, never)


def test_the_lock_is_not_passed_on_to_children(tmp_path: Path) -> None:
    """A process that the pipeline started may outlive it."""
    with Checkpoint(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with Checkpoint(tmp_path):
            pass
    finally:
        child.communicate(b"\n", timeout=PATIENCE)


def test_a_checkpoint_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(PipelineError, match="cannot write to the checkpoint"),
        Checkpoint(tmp_path / "file"),
    ):
        pass


def test_a_checkpoint_that_cannot_be_written_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", read_only)
    with (
        pytest.raises(PipelineError, match=r"cannot write to the checkpoint .*Read-only"),
        Checkpoint(tmp_path),
    ):
        pass
    monkeypatch.undo()
    with Checkpoint(tmp_path):  # what failed holds no lock
        pass


@pytest.mark.parametrize(
    "path", ["gs://bucket/checkpoint", "hdfs://host/checkpoint", "abfss://b@c/d", "dbfs:/c"]
)
def test_a_checkpoint_has_a_path(path: str) -> None:
    for refused in (
        lambda: Checkpoint(path),
        lambda: check_apart(checkpoint=path, sink="matches"),
        lambda: _try_checkpoint(path, make=True),
    ):
        with pytest.raises(OptionError, match="file system with paths") as told:
            refused()
        assert path in str(told.value)
        assert "mounted" in str(told.value)
        assert "write.parquet" not in str(told.value)


def test_a_uri_of_a_path_and_a_link_are_the_same_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    assert Checkpoint(f"file://{tmp_path}/real").path == Checkpoint(tmp_path / "link").path


# ------------------------------------------------------------------ Spark's metadata


def test_the_id_of_the_query(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        assert checkpoint.query_id() is None
        (tmp_path / "metadata").write_text('{"id":"1d6e2a7c-0000-4000-8000-000000000000"}')
        assert checkpoint.query_id() == "1d6e2a7c-0000-4000-8000-000000000000"


ID = "1d6e2a7c-0000-4000-8000-000000000000"


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"id": 5}', '{"id": "../../victim"}'])
def test_a_query_that_cannot_go_on_is_told_before_spark_starts(
    tmp_path: Path, text: str | None
) -> None:
    place = tmp_path / "metadata"
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.check_query()  # a new one
        (tmp_path / "offsets").mkdir()
        checkpoint.check_query()
        (tmp_path / "offsets" / "0").write_text("v1")
        if text is not None:
            place.write_text(text)
        with pytest.raises(PipelineError, match=f"{place} .*restore it, or start with a new"):
            checkpoint.check_query()
        checkpoint.bind("one", ID)
        with pytest.raises(
            PipelineError, match=f"{place} .*restore it; it only needs to hold"
        ) as told:
            checkpoint.check_query()
        place.write_text(str(told.value).rpartition(" needs to hold ")[2])
        checkpoint.check_query()
        assert checkpoint.query_id() == ID
    _try_checkpoint(str(tmp_path), make=True)
    place.unlink()
    with pytest.raises(PipelineError, match="is missing, and the checkpoint has batches"):
        _try_checkpoint(str(tmp_path), make=True)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\x00"])
def test_damaged_metadata_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata").write_text(text)
    with Checkpoint(tmp_path) as checkpoint, pytest.raises(PipelineError, match="damaged"):
        checkpoint.query_id()


# ------------------------------------------------------------------ whose they are


def test_pins_are_of_one_catalog_and_one_query(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.bind("one", "q")
        checkpoint.bind("one", "q")
    with Checkpoint(tmp_path) as again:
        with pytest.raises(PipelineError, match=r"belong to another catalog, one, and this is two"):
            again.bind("two", "q")
        with pytest.raises(PipelineError, match=r"belong to another query, q, and this is r"):
            again.bind("one", "r")
        again.bind("one", "q")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"catalog": "one"}', "\xff", '{"catalog": true, "query": "q"}'),
        '{"catalog": "one", "query": ["q"]}',
    ],
)
def test_a_checkpoint_whose_owner_cannot_be_told_is_not_used(tmp_path: Path, text: str) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        (checkpoint.own / "owner.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(PipelineError, match=f"cannot use {checkpoint.own / 'owner.json'}"):
            checkpoint.bind("one", "q")
