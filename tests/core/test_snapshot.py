"""Snapshots: what is written is what is read, and a killed writer loses nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bittern.engine.snapshot import folder as module
from bittern.engine.snapshot import manifest
from bittern.engine.snapshot.folder import (
    check_target,
    read_snapshot,
    verify_snapshot,
    write_snapshot,
)
from bittern.engine.snapshot.manifest import MANIFEST
from bittern.errors import SnapshotError
from snapshot_arrays import holds

OLD = {"ids": np.arange(1000, dtype=np.int32), "low": np.linspace(0, 1, 7)}
NEW = {"ids": np.arange(5, dtype=np.int32), "flags": np.array([True, False])}

DTYPES = ["?", "<i1", "<u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"]
ARRAYS = st.dictionaries(
    st.from_regex(r"[a-z0-9_][a-z0-9_.]{0,12}", fullmatch=True),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0))
    ),
    max_size=4,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "inf" not in repr(value))


@given(arrays=ARRAYS, meta=st.dictionaries(st.text(), JSON, max_size=3))
def test_round_trip(tmp_path_factory, arrays, meta):
    path = tmp_path_factory.mktemp("round") / "s"
    identity = write_snapshot(path, arrays, meta)
    snapshot = read_snapshot(path, verify=True)
    assert snapshot.id == identity
    assert snapshot.meta == meta
    assert snapshot.arrays.keys() == arrays.keys()
    assert snapshot.nbytes == sum(array.nbytes for array in arrays.values())
    for name, array in arrays.items():
        found = snapshot.arrays[name]
        assert type(found) is np.ndarray
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        assert found.flags.c_contiguous
        assert not found.flags.writeable
        assert np.load(path / f"{name}.npy", allow_pickle=False).tobytes() == array.tobytes()


def test_strided_and_transposed_arrays_are_stored_in_c_order(tmp_path):
    grid = np.arange(24, dtype=np.int64).reshape(4, 6)
    write_snapshot(tmp_path / "s", {"t": grid.T, "s": grid[::2, ::-1]}, {})
    arrays = read_snapshot(tmp_path / "s").arrays
    assert np.array_equal(arrays["t"], grid.T)
    assert np.array_equal(arrays["s"], grid[::2, ::-1])


def test_the_id_is_that_of_the_content(tmp_path):
    first = write_snapshot(tmp_path / "a", OLD, {"n": 1})
    assert write_snapshot(tmp_path / "b", dict(reversed(OLD.items())), {"n": 1}) == first
    assert write_snapshot(tmp_path / "c", OLD, {"n": 2}) != first
    assert write_snapshot(tmp_path / "d", {**OLD, "low": OLD["low"] + 1}, {"n": 1}) != first
    assert write_snapshot(tmp_path / "e", {"id": OLD["ids"], "low": OLD["low"]}, {"n": 1}) != first


def test_the_id_does_not_depend_on_the_release(tmp_path, monkeypatch):
    first = write_snapshot(tmp_path / "a", OLD, {})
    monkeypatch.setattr(manifest, "release", lambda: "99.0")
    assert write_snapshot(tmp_path / "b", OLD, {}) == first
    assert read_snapshot(tmp_path / "b").release == "99.0"


@pytest.mark.parametrize(
    ("arrays", "meta", "message"),
    [
        ({"../x": np.zeros(1)}, {}, "array name"),
        ({"": np.zeros(1)}, {}, "array name"),
        ({".hidden": np.zeros(1)}, {}, "array name"),
        ({"Upper": np.zeros(1)}, {}, "array name"),
        ({"x\n": np.zeros(1)}, {}, "array name"),
        ({"x" * 101: np.zeros(1)}, {}, "array name"),
        ({"x": np.array(1.0)}, {}, "0 dimensions"),
        ({"x": np.array([object()])}, {}, "type object"),
        ({"x": np.array(["a"])}, {}, "type <U1"),
        ({"x": np.zeros(1, ">i4")}, {}, "type >i4"),
        ({"x": np.zeros(1, "<i4,<f8")}, {}, "cannot hold"),
        ({}, {"x": float("nan")}, "JSON"),
        ({}, {"x": object()}, "JSON"),
        ({}, {1: 2, "1": 3}, "JSON"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(tmp_path, arrays, meta, message):
    with pytest.raises(SnapshotError, match=message):
        write_snapshot(tmp_path / "s", arrays, meta)
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_that_no_reader_takes_is_never_written(tmp_path, monkeypatch):
    write_snapshot(tmp_path / "s", OLD, {})
    size = (tmp_path / "s" / MANIFEST).stat().st_size
    for holder in (manifest, module):
        monkeypatch.setattr(holder, "MAX_BYTES", size)
    write_snapshot(tmp_path / "t", OLD, {})
    assert holds(tmp_path / "t", OLD)
    for holder in (manifest, module):
        monkeypatch.setattr(holder, "MAX_BYTES", size - 1)
    monkeypatch.setattr(module.os, "write", lambda *_: pytest.fail("arrays were written"))
    with pytest.raises(SnapshotError, match=r"too many arrays \(2\)"):
        write_snapshot(tmp_path / "u", OLD, {})
    with pytest.raises(SnapshotError, match="more than"):
        read_snapshot(tmp_path / "s")
    assert not (tmp_path / "u").exists()


def test_a_meta_is_refused_or_can_be_read_however_deep_it_is(tmp_path):
    deep, refused = {}, 0
    for depth in range(sys.getrecursionlimit()):
        deep = {"x": deep}
        if depth % 25 == 0:
            try:
                identity = write_snapshot(tmp_path / "s", {}, deep)
            except SnapshotError:
                refused += 1
            else:
                assert read_snapshot(tmp_path / "s").id == identity
    assert refused


# Shortages


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.EMFILE, "ulimit -n"), (errno.ENFILE, "fs.file-max"), (errno.ENOMEM, "max_map_count")],
)
@pytest.mark.parametrize("place", ["mmap", "open", "listdir"])
def test_a_shortage_is_not_called_damage(tmp_path, monkeypatch, number, advice, place):
    write_snapshot(tmp_path / "s", OLD, {})

    def short(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.mmap if place == "mmap" else module.os, place, short)
    with pytest.raises(SnapshotError, match=advice) as told:
        read_snapshot(tmp_path / "s")
    assert "damaged" not in str(told.value)
    (problem,) = verify_snapshot(tmp_path / "s")
    assert problem == str(told.value)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_files_stay_open_only_where_python_cannot_help_it(tmp_path):
    write_snapshot(tmp_path / "s", OLD, {})

    def open_files() -> int:
        """Those of this test: others of the process come and go."""
        links = map(os.path.realpath, Path("/proc/self/fd").iterdir())
        return sum(link.startswith(f"{tmp_path}/") for link in links)

    assert open_files() == 0
    snapshot = read_snapshot(tmp_path / "s")
    kept = open_files()
    assert kept == (0 if sys.version_info >= (3, 13) else len(snapshot.arrays))


# Replacing


def test_a_snapshot_is_replaced_and_an_open_reader_keeps_the_old_one(tmp_path):
    path = tmp_path / "s"
    write_snapshot(path, OLD, {})
    before = read_snapshot(path)
    write_snapshot(path, NEW, {})
    assert holds(path, NEW)
    assert np.array_equal(before.arrays["ids"], OLD["ids"])
    assert np.array_equal(before.arrays["low"], OLD["low"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


def test_a_symbolic_link_to_a_snapshot_is_followed(tmp_path):
    write_snapshot(tmp_path / "v1", OLD, {})
    (tmp_path / "current").symlink_to("v1")
    assert holds(tmp_path / "current", OLD)
    write_snapshot(tmp_path / "current", NEW, {})
    assert (tmp_path / "current").is_symlink()
    assert holds(tmp_path / "v1", NEW)


def foreign_file(path):
    path.write_text("mine")


def foreign_folder(path):
    path.mkdir()
    (path / "thesis.txt").write_text("mine")


def foreign_manifest(path):
    path.mkdir()
    (path / MANIFEST).write_text('{"kind": "something else"}')


def snapshot_with_a_guest(path):
    write_snapshot(path, OLD, {})
    (path / "notes.txt").write_text("mine")


@pytest.mark.parametrize(
    "prepare", [foreign_file, foreign_folder, foreign_manifest, snapshot_with_a_guest]
)
def test_what_is_not_a_snapshot_is_never_overwritten(tmp_path, prepare):
    path = tmp_path / "s"
    prepare(path)
    before = sorted(path.rglob("*"))
    with pytest.raises(SnapshotError, match="cannot write snapshot"):
        write_snapshot(path, NEW, {})
    with pytest.raises(SnapshotError, match="cannot write snapshot"):
        check_target(path)
    assert sorted(path.rglob("*")) == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_folder_may_be_written_to(tmp_path):
    (tmp_path / "s").mkdir()
    write_snapshot(tmp_path / "s", NEW, {})
    assert holds(tmp_path / "s", NEW)


def test_a_missing_parent_folder_is_named(tmp_path):
    with pytest.raises(SnapshotError, match=r"no folder .*/nowhere"):
        write_snapshot(tmp_path / "nowhere" / "s", NEW, {})


def test_a_failing_disk_leaves_the_old_snapshot_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "s"
    write_snapshot(path, OLD, {})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "write", full)
    with pytest.raises(SnapshotError, match="No space left on device"):
        write_snapshot(path, NEW, {})
    monkeypatch.undo()
    assert holds(path, OLD)
    assert list(tmp_path.iterdir()) == [path]


def test_every_file_is_on_disk_before_it_is_put_in_place(tmp_path, monkeypatch):
    write_snapshot(tmp_path / "s", OLD, {})
    happened = []

    def synced(descriptor, real=os.fsync):
        happened.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        real(descriptor)

    def renamed(source, target, real=os.rename):
        happened.append(("rename", Path(target).suffix))
        real(source, target)

    monkeypatch.setattr(module.os, "fsync", synced)
    monkeypatch.setattr(module.os, "rename", renamed)
    write_snapshot(tmp_path / "s", NEW, {})
    first = happened.index(("rename", ".next"))
    files = [name for _, name in happened[:first]]
    assert files[:3] == ["flags.npy", "ids.npy", MANIFEST]
    assert files[3].endswith(".writing")
    assert happened[first + 1 :] == [
        ("sync", tmp_path.name),
        ("rename", ".removing"),
        ("rename", ""),
        ("sync", tmp_path.name),
    ]


# Killed writers, of which there is more in faults/test_killed_writers.py


def test_a_reader_finds_the_new_snapshot_while_the_name_is_free(tmp_path):
    write_snapshot(tmp_path / "s", NEW, {})
    (tmp_path / "s").rename(tmp_path / ".s.next")
    assert holds(tmp_path / "s", NEW)
    write_snapshot(tmp_path / "s", OLD, {})
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


def test_a_living_writer_is_not_disturbed_by_another(tmp_path, monkeypatch):
    path = tmp_path / "s"
    real = module._write_files

    def slow(folder, arrays, meta):
        monkeypatch.setattr(module, "_write_files", real)
        write_snapshot(path, OLD, {})
        assert holds(path, OLD)
        return real(folder, arrays, meta)

    monkeypatch.setattr(module, "_write_files", slow)
    write_snapshot(path, NEW, {})
    assert holds(path, NEW)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("another_writer_is_midway", [False, True])
def test_a_reader_never_mixes_two_snapshots(tmp_path, monkeypatch, another_writer_is_midway):
    path = tmp_path / "s"
    write_snapshot(path, OLD, {"which": "old"})
    real = module.check_format

    def replaced_meanwhile(manifest):
        monkeypatch.setattr(module, "check_format", real)
        write_snapshot(path, NEW, {"which": "new"})
        if another_writer_is_midway:
            path.rename(tmp_path / ".s.next")
        real(manifest)

    monkeypatch.setattr(module, "check_format", replaced_meanwhile)
    snapshot = read_snapshot(path)
    assert snapshot.meta == {"which": "new"}
    assert snapshot.arrays.keys() == NEW.keys()


SHARING = """
import re, sys
from bittern.engine.snapshot.folder import read_snapshot
array = read_snapshot(sys.argv[1]).arrays["big"]
array.sum()
text = open("/proc/self/smaps").read()
part = text[text.index("/big.npy"):]
for key in ("Shared_Clean", "Shared_Dirty", "Private_Dirty"):
    print(re.search(key + r":\\s+(\\d+)", part)[1])
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_two_processes_share_the_pages(tmp_path):
    big = np.arange(1 << 18, dtype=np.int64)
    write_snapshot(tmp_path / "s", {"big": big}, {})
    here = read_snapshot(tmp_path / "s").arrays["big"]
    assert here.sum() == big.sum()
    child = subprocess.run(
        [sys.executable, "-c", SHARING, str(tmp_path / "s")],
        capture_output=True,
        text=True,
        check=True,
    )
    # Kilobytes; those that the system has not written to the disk yet count as dirty.
    clean, dirty, private_dirty = map(int, child.stdout.split())
    assert private_dirty == 0
    assert clean + dirty >= big.nbytes // 1024


def test_a_sound_snapshot_has_no_problems(tmp_path):
    write_snapshot(tmp_path / "s", OLD, {})
    assert verify_snapshot(tmp_path / "s") == []
