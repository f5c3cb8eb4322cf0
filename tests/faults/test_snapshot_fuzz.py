"""Damaged and forged snapshots: always a SnapshotError, never a crash, nothing read elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bittern.engine.snapshot.folder import read_snapshot, verify_snapshot, write_snapshot
from bittern.engine.snapshot.manifest import FORMAT, MANIFEST, OLDEST_FORMAT, content_id, npy_header
from bittern.errors import SnapshotError
from effort import examples

ARRAYS = {
    "ids": np.arange(40, dtype=np.int32),
    "twin": np.arange(40, 80, dtype=np.int32),
    "low": np.linspace(0, 1, 9),
    "none": np.zeros((0, 2), np.uint8),
}
META = {"classes": 40, "attributes": ["price", "model"]}


@pytest.fixture
def path(tmp_path):
    write_snapshot(tmp_path / "s", ARRAYS, META)
    return tmp_path / "s"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "s"
    write_snapshot(path, ARRAYS, META)
    return path


def forge(path, change):
    """Change the manifest and give it the id that fits, as somebody who means harm would."""
    manifest = json.loads((path / MANIFEST).read_text())
    change(manifest)
    manifest["id"] = content_id(manifest["format"], manifest["meta"], manifest["arrays"])
    (path / MANIFEST).write_text(json.dumps(manifest))


def refuses(path, message, *, verify=False):
    with pytest.raises(SnapshotError, match=message):
        read_snapshot(path, verify=verify)
    problems = verify_snapshot(path)
    assert problems
    assert all(isinstance(problem, str) for problem in problems)


@examples(6)
@given(data=st.data())
def test_random_damage_is_found_or_harmless(tmp_path_factory, sound, data):
    path = tmp_path_factory.mktemp("fuzz") / "s"
    shutil.copytree(sound, path)
    victim = path / data.draw(st.sampled_from([MANIFEST, *(name + ".npy" for name in ARRAYS)]))
    raw = bytearray(victim.read_bytes())
    kind = data.draw(st.sampled_from(["flip", "byte", "cut", "grow", "delete", "slice"]))
    at = data.draw(st.integers(0, len(raw) - 1))
    if kind == "flip":
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "byte":
        raw[at] = data.draw(st.integers(0, 255))
    elif kind == "cut":
        del raw[at:]
    elif kind == "slice":
        del raw[at : at + data.draw(st.integers(1, 40))]
    elif kind == "grow":
        raw[at:at] = data.draw(st.binary(min_size=1, max_size=40))
    if kind == "delete":
        victim.unlink()
    else:
        victim.write_bytes(raw)
    try:
        opened = read_snapshot(path, verify=True)
    except SnapshotError:
        assert verify_snapshot(path)
    else:  # white space and the release's name in the manifest mean nothing
        assert verify_snapshot(path) == []
        assert opened.id == read_snapshot(sound).id
        assert opened.meta == META
        assert all(np.array_equal(opened.arrays[name], ARRAYS[name]) for name in ARRAYS)
    try:
        unverified = read_snapshot(path)
    except SnapshotError:
        return
    assert {name: array.shape for name, array in unverified.arrays.items()} == {
        name: array.shape for name, array in ARRAYS.items()
    }


@examples(3)
@given(
    text=st.binary(max_size=80)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.just("bittern snapshot"),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["kind", "format", "release", "id", "meta", "arrays", "name"]),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
@example(text=b'{"kind": "bittern snapshot", "format": 99, "release": ""}')
def test_any_manifest_is_refused_in_words(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("fuzz")
    (path / MANIFEST).write_bytes(text)
    refuses(path, r"manifest\.json|it has format -?\d+, but this release")


FIELDS = {
    "name": ["../../etc/passwd", "/etc/passwd", "", ".", "a/b", "IDS", "ids\n", None, 7, "twin"],
    "dtype": ["|O", "<U4", ">i4", "<i4,<i4", "<c16", "<M8[us]", "<i8", "x" * 999, None, [], 4],
    "shape": [[], [41], [-40], [40.0], [True], ["40"], [1 << 61], [10**40], [0, 10**30], [1] * 99,
              [4, 10], 40, None, [[40]], [1 << 40, 1 << 40]],
    "bytes": [0, -1, 10**30, 288.0, "288", None, True],
    "blake2b": ["", None, 5],
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field in FIELDS for value in FIELDS[field]]
)
def test_a_forged_description_is_refused(path, field, value):
    def change(manifest):
        next(a for a in manifest["arrays"] if a["name"] == "ids")[field] = value

    forge(path, change)
    refuses(path, r"manifest\.json|array", verify=field == "blake2b")


def test_a_huge_shape_costs_no_memory(path):
    def change(manifest):
        entry = next(a for a in manifest["arrays"] if a["name"] == "ids")
        entry["shape"] = [1 << 60]
        entry["bytes"] = (1 << 62) + len(npy_header("<i4", (1 << 60,)))

    forge(path, change)
    refuses(path, "its file has 288 bytes instead of")


@pytest.mark.parametrize("part", ["arrays", "meta", "id", "release", "format", "kind"])
def test_a_manifest_lacking_a_part_is_refused(path, part):
    manifest = json.loads((path / MANIFEST).read_text())
    del manifest[part]
    (path / MANIFEST).write_text(json.dumps(manifest))
    refuses(path, MANIFEST)


def test_entries_that_are_no_objects_are_refused(path):
    forge(path, lambda manifest: manifest["arrays"].append(5))
    refuses(path, "without a valid name")


def test_a_newer_format_names_the_release_that_can_read_it(path):
    forge(path, lambda manifest: manifest.update(format=FORMAT + 1, release="7.2"))
    refuses(path, f"format {FORMAT + 1}, .* bittern 7.2, which wrote it, or a later release")


def test_a_forgotten_format_says_to_build_again(path):
    forge(path, lambda manifest: manifest.update(format=OLDEST_FORMAT - 1))
    refuses(path, "build it again")


def test_missing_and_surplus_files_are_named(path):
    (path / "low.npy").unlink()
    (path / "guest.npy").write_bytes(b"")
    refuses(path, "array 'low'.*1 more")
    assert len(verify_snapshot(path)) == 2
    assert "'guest.npy' is not part of it" in verify_snapshot(path)[1]


def test_swapped_arrays_of_other_shapes_are_refused_at_once(path):
    (path / "ids.npy").rename(path / "x")
    (path / "low.npy").rename(path / "ids.npy")
    (path / "x").rename(path / "low.npy")
    refuses(path, "damaged")


def test_swapped_arrays_of_one_shape_are_found_by_their_digests(path):
    (path / "ids.npy").rename(path / "x")
    (path / "twin.npy").rename(path / "ids.npy")
    (path / "x").rename(path / "twin.npy")
    refuses(path, "digest", verify=True)
    assert len(verify_snapshot(path)) == 2


def link(path, name):
    (path.parent / "outside").write_bytes((path / name).read_bytes())
    (path / name).unlink()
    (path / name).symlink_to(path.parent / "outside")


def fifo(path, name):
    (path / name).unlink()
    os.mkfifo(path / name)


def folder(path, name):
    (path / name).unlink()
    (path / name).mkdir()


@pytest.mark.parametrize("replace", [link, fifo, folder])
@pytest.mark.parametrize("name", ["ids.npy", MANIFEST])
def test_only_plain_files_inside_are_read(path, replace, name):
    replace(path, name)
    refuses(path, "ids|manifest")


def test_a_pickle_is_never_loaded(path):
    np.save(path / "ids.npy", np.array([{"a": 1}] * 40), allow_pickle=True)
    refuses(path, "array 'ids'")


def test_a_giant_or_deep_manifest_costs_no_memory(path):
    with (path / MANIFEST).open("wb") as file:
        file.truncate(1 << 40)
    refuses(path, "more than")
    (path / MANIFEST).write_text("[" * 200_000)
    refuses(path, "not valid JSON")
    (path / MANIFEST).write_text('{"format": ' + "9" * 50_000 + "}")
    refuses(path, "not valid JSON")


@pytest.mark.parametrize("place", ["nowhere", "file", "empty", "nul\0"])
def test_what_is_no_snapshot_is_said_plainly(tmp_path, place):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    refuses(tmp_path / place, "no snapshot at|not a snapshot|manifest|not a path")


UNVERIFIED = """
import os, resource, signal, sys
import numpy as np
from bittern import Index, Matcher

path = sys.argv[1]
tests = ["a > 3 OR b > 4", "b = 5", "c < 6 OR a = 1", "d != 7", "e > 2 OR d < 9", "f = 8"]
Index.build(
    {f"s{i}": " AND ".join(f"({each})" for each in tests[: 2 + i % 5]) + f" AND g != {i}"
     for i in range(10)}
).save(path)
events = [dict.fromkeys("abcdefg", value) for value in range(10)]
Matcher(Index.open(path)).match(events)
file = f"{path}/index.starts.npy"
sound = np.load(file)
for i, start in enumerate(sound.tolist()):
    for bit in range(12):
        if start >> bit & 1:
            damaged = sound.copy()
            damaged[i] ^= 1 << bit
            np.save(file, damaged)
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_CPU, (5, 6))
                try:
                    Matcher(Index.open(path)).match(events)
                finally:
                    os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert -status not in (signal.SIGXCPU, signal.SIGKILL), (i, bit)
print("done")
"""


def test_a_damaged_snapshot_that_nobody_verified_comes_to_an_end(tmp_path):
    """Wrong answers and crashes are possible there, but no program jumps back for ever."""
    ran = subprocess.run(
        [sys.executable, "-c", UNVERIFIED, str(tmp_path / "s")],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.stdout == "done\n", ran.stdout + ran.stderr
