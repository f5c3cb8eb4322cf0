"""Distribution: one good copy of a snapshot per host, whoever races, dies or cleans."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from bittern import Index
from bittern.engine.snapshot.folder import verify_snapshot
from bittern.engine.snapshot.manifest import MANIFEST
from bittern.errors import OptionError, SnapshotError
from bittern.files import is_locked
from bittern.spark.snapshots import cache_folder, node_cache, transport
from bittern.spark.snapshots.node_cache import SnapshotRef, attach, clean, keep, put

pytest.importorskip("pyspark")
from bittern.spark.snapshots import store as stores
from steady import PATIENCE, wait_until

pytestmark = pytest.mark.smoke

EXPRESSIONS = {7: "price < 10", 8: "color = 'red' AND price >= 3", 9: "name LIKE 'a%'"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty cache, and a process that has nothing open."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(folder))
    forget()
    yield folder
    forget()


@pytest.fixture
def saved(tmp_path):
    index = Index.build(EXPRESSIONS)
    index.save(tmp_path / "shop")
    return index


def forget():
    node_cache._opened.clear()
    while node_cache._published:
        os.close(node_cache._published.popitem()[1])
    gc.collect()


def names(root):
    return sorted(path.name for path in root.iterdir())


def entries(root):
    return [name for name in names(root) if transport.is_id(name)]


def leftovers(root):
    return [name for name in names(root) if name.endswith(".tmp")]


def is_good(root, identity):
    return verify_snapshot(root / identity) == [] and entries(root) == [identity]


def flip(file):
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.unlink()  # a new inode: others may have a link to this one
    file.write_bytes(data)


def other_index(k=0):
    return Index.build({1: f"price > {k}"})


# One process


def test_attach_maps_one_copy_and_remembers_it(root, saved):
    ref = SnapshotRef(saved.id, str(saved.path))
    index = attach(ref)
    assert index.expression(8) == EXPRESSIONS[8]
    assert index.path == root / saved.id
    assert attach(ref) is index
    assert is_good(root, saved.id)
    assert not leftovers(root)
    forget()
    shutil.rmtree(saved.path)
    assert attach(ref).ids == index.ids  # from the cache: the source is gone


def test_a_reference_is_small_and_plain():
    ref = SnapshotRef("0" * 32, "s3://" + "bucket/" * 50, "0" * 32 + ".bittern")
    assert len(pickle.dumps(ref)) < 1000
    assert pickle.loads(pickle.dumps(ref)) == ref


def test_an_index_without_subscriptions_is_an_index(root):
    index = Index.build({})
    identity = put(index)
    assert len(attach(SnapshotRef(identity))) == 0
    assert is_good(root, identity)


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "file://localhost{}"])
def test_paths_and_file_uris(root, saved, form):
    assert attach(SnapshotRef(saved.id, form.format(saved.path))).id == saved.id
    array = next(saved.path.glob("*.npy"))
    assert (root / saved.id / array.name).stat().st_ino == array.stat().st_ino


def test_uris_are_quoted_and_relative_paths_are_not_uris(tmp_path, monkeypatch):
    path = tmp_path / "a b#c"
    assert transport.local_path(path.as_uri()) == path
    monkeypatch.chdir(tmp_path)
    assert transport.local_path("x/../shop") == tmp_path / "shop"
    assert transport.local_path("s3://bucket/shop") is None
    with pytest.raises(SnapshotError, match="names a host"):
        transport.local_path("file://elsewhere/shop")


def test_copies_where_links_are_not_possible(root, saved, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EXDEV, "another device")

    monkeypatch.setattr(os, "link", refuse)
    attach(SnapshotRef(saved.id, str(saved.path)))
    array = next(saved.path.glob("*.npy"))
    assert (root / saved.id / array.name).stat().st_nlink == 1
    assert is_good(root, saved.id)


class Far:
    """A pyarrow file system that stands for any other: URIs far://x/... are under one folder."""

    def __init__(self, base):
        self.base = base

    def from_uri(self, uri):
        from pyarrow import fs

        scheme, rest = uri.split("://")
        if scheme != "far":
            raise ValueError(f"Unrecognized filesystem type in URI: {uri}")
        return fs.SubTreeFileSystem(str(self.base), fs.LocalFileSystem()), rest.split("?")[0]


@pytest.fixture
def far(tmp_path, monkeypatch):
    (tmp_path / "far").mkdir()
    monkeypatch.setattr(transport.fs, "FileSystem", Far(tmp_path / "far"))
    return tmp_path / "far"


def test_a_store_behind_a_uri(root, saved, far):
    ref = stores.write(saved, "far://bucket/store?region=eu")
    assert ref == SnapshotRef(saved.id, f"far://bucket/store/{saved.id}?region=eu")
    assert verify_snapshot(far / "bucket" / "store" / saved.id) == []
    before = (far / "bucket" / "store" / saved.id / MANIFEST).stat()
    assert stores.write(saved, "far://bucket/store?region=eu") == ref
    assert (far / "bucket" / "store" / saved.id / MANIFEST).stat() == before  # not written twice
    forget()
    shutil.rmtree(root)
    shutil.rmtree(saved.path)
    assert attach(ref).id == saved.id
    assert is_good(root, saved.id)
    assert stores.clean("far://bucket/store", 3600) == []
    assert stores.clean("far://bucket/store", -1) == [saved.id]
    assert list((far / "bucket" / "store").iterdir()) == []


def test_an_upload_that_was_cut_short_is_none(root, saved, far):
    ref = stores.write(saved, "far://bucket")
    target = far / "bucket" / saved.id
    (target / MANIFEST).unlink()
    next(target.glob("*.npy")).unlink()
    assert not transport.holds(ref.uri, saved.id)
    stores.write(saved, "far://bucket")
    assert verify_snapshot(target) == []


def test_unknown_schemes_are_named(root, far):
    with pytest.raises(SnapshotError, match="cannot reach ftp://x/y"):
        attach(SnapshotRef("0" * 32, "ftp://x/y"))


# What cannot be had, and what is not what it should be


def test_the_error_names_host_id_what_was_tried_and_the_fix(root, tmp_path):
    ref = SnapshotRef("0" * 32, str(tmp_path / "nowhere"), "0.bittern")
    with pytest.raises(SnapshotError) as raised:
        attach(ref)
    text = str(raised.value)
    for part in (os.uname().nodename, ref.id, str(tmp_path / "nowhere"), "0.bittern", "store="):
        assert part in text
    assert "\n" not in text
    assert entries(root) == leftovers(root) == []


@pytest.mark.parametrize("identity", ["", "../shop", "0" * 31, "0" * 33, "g" * 32])
def test_an_id_is_never_a_path(root, identity):
    with pytest.raises(SnapshotError, match="is not the id"):
        attach(SnapshotRef(identity, "/"))


def test_a_byte_flipped_on_the_way_is_seen(root, saved):
    flip(saved.path / "texts.data.npy")
    with pytest.raises(SnapshotError, match="digest"):
        attach(SnapshotRef(saved.id, str(saved.path)))
    assert entries(root) == leftovers(root) == []


def test_a_replaced_source_is_another_index(root, saved):
    wanted = saved.id
    other = other_index()
    other.save(saved.path)
    with pytest.raises(SnapshotError, match=f"{other.id} is there now, not {wanted}"):
        attach(SnapshotRef(wanted, str(saved.path)))


def test_a_cached_copy_that_lost_bytes_is_replaced(root, saved):
    ref = SnapshotRef(saved.id, str(saved.path))
    attach(ref)
    forget()
    array = root / saved.id / "texts.data.npy"
    array.unlink()  # the source has a link to it
    array.write_bytes(b"")
    assert attach(ref).expression(9) == EXPRESSIONS[9]
    assert is_good(root, saved.id)
    assert not leftovers(root)


def test_what_is_put_again_after_damage_is_whole(root):
    index = Index.build(EXPRESSIONS)
    identity = put(index)
    (root / identity / MANIFEST).unlink()
    assert put(index) == identity
    assert is_good(root, identity)
    assert not leftovers(root)


def test_a_lack_of_files_is_not_taken_for_damage(root, saved, monkeypatch):
    ref = SnapshotRef(saved.id, str(saved.path))
    attach(ref)
    forget()

    def short(*_, **__):
        raise SnapshotError("cannot open") from OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(Index, "open", short)
    before = (root / saved.id).stat().st_ino
    with pytest.raises(SnapshotError, match="cannot open"):
        attach(ref)
    assert (root / saved.id).stat().st_ino == before


def test_a_full_disk_is_said_so(root, saved, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(transport, "_copy", full)
    with pytest.raises(SnapshotError, match="No space left"):
        attach(SnapshotRef(saved.id, str(saved.path)))
    assert entries(root) == leftovers(root) == []


# The tar that Spark carries


def tar_of(saved, path):
    transport.pack(saved.path, path)
    return path


def empty(tmp_path, name="out"):
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_a_tar_round_trip_has_the_same_bytes_every_time(tmp_path, saved):
    tar = tar_of(saved, tmp_path / "a.bittern")
    again = tmp_path / "again"
    shutil.copytree(saved.path, again)
    transport.pack(again, tmp_path / "b.bittern")
    assert tar.read_bytes() == (tmp_path / "b.bittern").read_bytes()
    transport.unpack(tar, saved.id, empty(tmp_path))
    assert verify_snapshot(tmp_path / "out") == []


def rewritten(tar, change):
    """The same tar with members added or changed."""
    with tarfile.open(tar) as archive:
        members = [(member, archive.extractfile(member).read()) for member in archive]
    out = tar.with_name("changed.bittern")
    with tarfile.open(out, "w") as archive:
        for member, data in change(members):
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out


def member(name, kind=tarfile.REGTYPE, link=""):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def test_what_is_no_file_of_the_snapshot_stays_in_the_tar(tmp_path, saved):
    planted = ["../escaped", str(tmp_path / "absolute"), "sub/x.npy", "extra.npy"]
    tar = rewritten(
        tar_of(saved, tmp_path / "a.bittern"),
        lambda members: [
            *((member(name), b"x") for name in planted),
            (member("door", tarfile.SYMTYPE, "/"), b""),
            *members,
        ],
    )
    transport.unpack(tar, saved.id, empty(tmp_path))
    assert names(tmp_path / "out") == names(saved.path)
    assert not (tmp_path / "escaped").exists()
    assert not (tmp_path / "absolute").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_only_files_are_taken(tmp_path, saved, kind):
    tar = rewritten(
        tar_of(saved, tmp_path / "a.bittern"),
        lambda members: [
            (member(m.name, kind, "/etc/passwd"), b"") if m.name == "texts.data.npy" else (m, data)
            for m, data in members
        ],
    )
    with pytest.raises(SnapshotError):
        transport.unpack(tar, saved.id, empty(tmp_path))
    assert not (tmp_path / "out" / "texts.data.npy").exists()


@pytest.mark.parametrize("size", [0, 1_000_000])
def test_no_more_and_no_fewer_bytes_are_taken_than_the_manifest_says(tmp_path, saved, size):
    tar = rewritten(
        tar_of(saved, tmp_path / "a.bittern"),
        lambda members: [
            (m, bytes(size) if m.name == "texts.data.npy" else data) for m, data in members
        ],
    )
    with pytest.raises(SnapshotError, match=r"texts\.data\.npy does not have the"):
        transport.unpack(tar, saved.id, empty(tmp_path))
    assert sum(file.stat().st_size for file in (tmp_path / "out").iterdir()) < 100_000


@pytest.mark.parametrize("keep", [0, 1, 700, 5_000])
def test_a_tar_that_was_cut_short_is_refused(tmp_path, saved, keep):
    tar = tar_of(saved, tmp_path / "a.bittern")
    tar.write_bytes(tar.read_bytes()[:keep])
    with pytest.raises(SnapshotError):
        transport.unpack(tar, saved.id, empty(tmp_path))


def test_a_tar_of_another_snapshot_is_refused(tmp_path, saved):
    tar = tar_of(saved, tmp_path / "a.bittern")
    with pytest.raises(SnapshotError, match="is there now"):
        transport.unpack(tar, "0" * 32, empty(tmp_path))


# Whose cache it is


def test_the_cache_is_private(root):
    cache_folder.cache_root()
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_cache_of_somebody_else_is_refused(root, monkeypatch):
    cache_folder.cache_root()
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    with pytest.raises(SnapshotError, match="belongs to another user; set BITTERN_CACHE_DIR"):
        attach(SnapshotRef("0" * 32))


def test_a_cache_that_others_may_write_to_is_refused(root):
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(SnapshotError, match="chmod 700"):
        attach(SnapshotRef("0" * 32))


def test_a_link_planted_in_the_temp_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("BITTERN_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"bittern-cache-{os.getuid()}").symlink_to(tmp_path / "theirs")
    with pytest.raises(SnapshotError, match="belongs to another user"):
        cache_folder.cache_root()


def test_without_a_setting_the_cache_is_under_the_temp_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("BITTERN_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder.cache_root() == tmp_path / f"bittern-cache-{os.getuid()}"


# Cleaning


def used_ago(root, identity, seconds):
    moment = time.time() - seconds
    os.utime(root / f"{identity}.use", (moment, moment))


@pytest.fixture
def three(root):
    """Three entries that nobody uses, the first unused for longest."""
    ids = [put(other_index(k)) for k in range(3)]
    forget()
    for k, identity in enumerate(ids):
        used_ago(root, identity, 1000 * (3 - k))
    return ids


def test_cleaning_by_age(root, three):
    assert clean(root, older_than=1500) == three[:2]
    assert names(root) == [three[2], f"{three[2]}.lock", f"{three[2]}.use", "new.lock"]


def test_cleaning_by_bytes_takes_the_longest_unused(root, three):
    size = sum(file.stat().st_size for file in (root / three[2]).iterdir())
    assert clean(root, older_than=1e9, keep_bytes=1.5 * size) == three[:2]
    assert entries(root) == [three[2]]


def test_what_this_process_uses_stays(root, three):
    index = attach(SnapshotRef(three[0]))
    used_ago(root, three[0], 1e6)
    assert clean(root, older_than=0, keep_bytes=0) == three[1:]
    node_cache._opened.clear()
    gc.collect()
    assert clean(root, older_than=0) == []  # the index is alive
    del index
    gc.collect()
    used_ago(root, three[0], 1e6)
    assert clean(root, older_than=0) == [three[0]]
    assert names(root) == ["new.lock"]


def test_what_was_published_stays(root):
    identity = put(Index.build(EXPRESSIONS))
    used_ago(root, identity, 1e6)
    assert clean(root, older_than=0, keep_bytes=0) == []


def test_cleaning_follows_a_fetch_and_the_settings(root, three, saved, monkeypatch):
    monkeypatch.setenv("BITTERN_CACHE_DAYS", str(1500 / 86_400))
    attach(SnapshotRef(saved.id, str(saved.path)))
    assert entries(root) == sorted([three[2], saved.id])
    monkeypatch.setenv("BITTERN_CACHE_BYTES", "0")
    put(Index.build({1: "a = 1"}))
    assert three[2] not in entries(root)
    assert saved.id in entries(root)
    monkeypatch.setenv("BITTERN_CACHE_BYTES", "plenty")
    with pytest.raises(OptionError, match="BITTERN_CACHE_BYTES='plenty'"):
        clean(root)


def test_cleaning_removes_what_failures_left(root, three):
    gone = "f" * 32
    (root / f"{gone}.0123abcd.tmp").mkdir()
    (root / f"{three[0]}.0123abcd.tmp").mkdir()
    with pytest.raises(SnapshotError):
        attach(SnapshotRef(gone))
    assert clean(root, older_than=2500) == [three[0]]
    assert not [name for name in names(root) if name.startswith((gone, three[0]))]


def test_a_lock_that_was_cleaned_away_is_taken_again(root, three):
    """Somebody waits for a lock file; its holder removes it."""
    path = root / f"{three[0]}.lock"
    seen = []

    def wait():
        with cache_folder.locked(root, three[0]):
            seen.append(is_locked(path))

    waiter = threading.Thread(target=wait)
    with cache_folder.locked(root, three[0]):
        waiter.start()
        wait_until(lambda: is_waited_for(path))
        path.unlink()
    waiter.join(PATIENCE)
    assert seen == [True]
    assert not is_locked(path)


def is_waited_for(path):
    inode = str(path.stat().st_ino)
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return any("->" in line and f":{inode} " in line for line in lines)


# Many processes

START = """
import json, os, sys, traceback
from bittern import Index
from bittern.spark.snapshots import cache_folder
from bittern.spark.snapshots import node_cache
from bittern.spark.snapshots import store
from bittern.spark.snapshots import transport
from bittern.spark.snapshots.node_cache import SnapshotRef, attach, put
arguments = sys.argv[1:]
def stay():
    print("done", flush=True)
    os.read(0, 1)  # until its input ends
"""
CROWD = """
# As Spark's daemon does: everything is imported, then the workers are forked.
here, ready = os.pipe()
gate, hold = os.pipe()
jobs = json.loads(sys.stdin.read())
for k, code in enumerate(jobs):
    if os.fork() == 0:
        status = 1
        try:
            os.close(hold)
            os.write(ready, b".")
            os.read(gate, 1)  # nothing comes: it ends when nobody holds the other side
            exec(code)
            os.write(1, f"{k} {said}\\n".encode())  # at once, so that no two lines mix
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
for _ in jobs:
    os.read(here, 1)
os.close(hold)
for _ in jobs:
    if os.wait()[1]:
        sys.exit(1)
"""
ATTACH = """
index = attach(SnapshotRef(arguments[0], arguments[1]))
said = f"{len(index)} {index.id} {index.path}"
"""
PUBLISH = """
index = Index.open(arguments[1])
index.path = index.id = None  # as if just built
said = f"{len(index)} {store.write(index, arguments[2]).id} published"
"""


def crowd(jobs, *arguments):
    """Run each code in a process of its own, all from one moment on; what each said."""
    done = subprocess.run(
        [sys.executable, "-c", START + CROWD, *map(str, arguments)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split(" ", 1) for line in done.stdout.splitlines())
    assert [int(k) for k, _ in lines] == list(range(len(jobs)))
    return [said for _, said in lines]


@pytest.fixture
def start():
    """Start a process that is to be killed, and hear its first words."""
    started = []

    def run(code, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", START + code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "done\n", process.communicate()[1]
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)


def test_many_processes_race_to_attach_and_end_with_one_good_copy(root, saved):
    said = crowd([ATTACH] * 8, saved.id, saved.path)
    assert set(said) == {f"3 {saved.id} {root / saved.id}"}
    assert is_good(root, saved.id)
    assert not leftovers(root)


@pytest.mark.parametrize("where", ["store", "cache"])
def test_two_drivers_publish_the_same_index_while_workers_attach(root, saved, where):
    folder = root.parent / "store"
    place = str(folder) if where == "store" else "cache"
    said = crowd([PUBLISH] * 2 + [ATTACH] * 4, saved.id, saved.path, place)
    assert said[:2] == [f"3 {saved.id} published"] * 2
    assert set(said[2:]) == {f"3 {saved.id} {root / saved.id}"}
    assert is_good(root, saved.id)
    assert not leftovers(root)
    if where == "store":
        assert names(folder) == [saved.id]
        assert verify_snapshot(folder / saved.id) == []


def test_janitors_do_not_disturb_each_other_nor_those_who_fetch(root, saved):
    janitor = """
for _ in range(100):
    cache_folder.clean(older_than=-1, keep_bytes=0)
said = "cleaned"
"""
    user = """
for _ in range(30):
    assert attach(SnapshotRef(*arguments)).id == arguments[0]
    node_cache._opened.clear()
said = "attached"
"""
    said = crowd([janitor] * 3 + [user] * 3, saved.id, saved.path)
    assert said == ["cleaned"] * 3 + ["attached"] * 3
    assert not leftovers(root)
    assert attach(SnapshotRef(saved.id, str(saved.path))).id == saved.id


def test_a_process_killed_while_fetching_is_followed_by_another(root, saved, start):
    fetcher = start(
        """
transport._link = lambda *_: False
def copy(source, target, size):
    target.write_bytes(b"half")
    stay()
transport._copy = copy
attach(SnapshotRef(*arguments))
""",
        saved.id,
        saved.path,
    )
    assert len(leftovers(root)) == 1
    assert clean(root, older_than=-1, keep_bytes=0) == []
    assert len(leftovers(root)) == 1  # its owner lives
    kill(fetcher)
    assert attach(SnapshotRef(saved.id, str(saved.path))).id == saved.id
    assert is_good(root, saved.id)
    assert not leftovers(root)


def test_a_driver_killed_while_writing_is_followed_by_another(root, start):
    driver = start(
        """
def write(self, path):
    path.mkdir()
    stay()
Index.write = write
put(Index.build({}))
"""
    )
    kill(driver)
    assert len(leftovers(root)) == 1
    identity = put(Index.build(EXPRESSIONS))
    assert is_good(root, identity)
    assert not leftovers(root)


def test_what_another_process_uses_stays(root, saved, start):
    user = start("index = attach(SnapshotRef(*arguments)); stay()", saved.id, saved.path)
    used_ago(root, saved.id, 1e6)
    assert clean(root, older_than=0, keep_bytes=0) == []
    assert is_good(root, saved.id)
    kill(user)
    assert clean(root, older_than=0) == [saved.id]
    assert names(root) == []


def test_a_forked_child_neither_waits_for_the_parent_nor_keeps_its_lock(root, saved, start):
    """Forked while one thread of the parent fetches and another has the module's lock."""
    parent = start(
        """
import threading
started = threading.Event()
link = transport._link
def slow(*paths):
    started.set()
    os.read(0, 1)  # until its input ends
transport._link = slow
threading.Thread(target=attach, args=[SnapshotRef(*arguments[:2])], daemon=True).start()
started.wait()
node_cache._mutex.acquire()
if os.fork() == 0:
    transport._link = link
    assert attach(SnapshotRef(*arguments[2:])).id == arguments[2]
    stay()
    os._exit(0)
os.wait()
""",
        saved.id,
        saved.path,
        *other_saved(root.parent),
    )
    kill(parent)  # in mid-fetch; the child lives on until its input ends
    assert attach(SnapshotRef(saved.id, str(saved.path))).id == saved.id
    assert not leftovers(root)


@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.PyDLL(None).fork()"])
def test_a_forked_child_does_not_keep_what_its_parent_has_released(root, start, fork):
    """The second fork tells Python nothing: so is a child that has not come to do anything yet."""
    parent = start(
        f"""
import ctypes
identity = put(Index.build({{"s1": "a = 1"}}))
here, ends = os.pipe()
child = {fork}
if child == 0:
    os.close(ends)
    stay()
    os.read(here, 1)  # until the parent has cleaned
    os._exit(0)
assert cache_folder.clean(older_than=-1) == []
node_cache.release(identity)
assert cache_folder.clean(older_than=-1) == [identity]
os.close(ends)
os.waitpid(child, 0)
"""
    )
    _, said = parent.communicate(timeout=PATIENCE)
    assert parent.returncode == 0, said
    assert names(root) == ["new.lock"]


@pytest.mark.parametrize("gone", ["released", "put again"])
def test_a_mark_goes_though_a_forked_child_has_not_come_to_close_its_own(root, gone):
    identity = put(Index.build({"s1": "a = 1"}))
    in_the_child = os.dup(node_cache._published[identity])
    try:
        if gone == "put again":
            node_cache.keep(identity)
        node_cache.release(identity)
        assert clean(root, older_than=-1) == [identity]
    finally:
        os.close(in_the_child)


def other_saved(folder):
    other = other_index()
    other.save(folder / "other")
    return other.id, other.path


def test_threads_share_one_index(root, saved):
    ref = SnapshotRef(saved.id, str(saved.path))
    got = []
    threads = [threading.Thread(target=lambda: got.append(attach(ref))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(got) == 8
    assert len(set(map(id, got))) == 1
    assert is_good(root, saved.id)


def test_a_process_keeps_few_indexes_and_those_it_used_last(root):
    ids = [put(other_index(k)) for k in range(node_cache._KEPT_OPEN + 1)]
    first = attach(SnapshotRef(ids[0]))
    for identity in ids[1:-1]:
        attach(SnapshotRef(identity))
    assert attach(SnapshotRef(ids[0])) is first
    attach(SnapshotRef(ids[-1]))
    assert list(node_cache._opened) == [*ids[2:-1], ids[0], ids[-1]]


def test_marks_of_published_indexes_are_bounded(root, monkeypatch):
    monkeypatch.setattr(node_cache, "_KEPT_PUBLISHED", 2)
    ids = [put(other_index(k)) for k in range(3)]
    assert list(node_cache._published) == ids[1:]
    put(other_index(1))
    assert list(node_cache._published) == [ids[2], ids[1]]
    assert clean(root, older_than=-1) == [ids[0]]


def test_what_another_process_has_put_is_kept_by_this_one(root):
    identity = put(other_index(1))
    forget()  # as if a worker had put it, which is gone
    keep(identity)
    assert clean(root, older_than=-1) == []
    forget()
    assert clean(root, older_than=-1) == [identity]
    with pytest.raises(SnapshotError, match="BITTERN_CACHE_BYTES"):
        keep(identity)


# Stores


def test_a_store_holds_each_index_once(root, saved, tmp_path):
    store = tmp_path / "made" / "store"
    ref = stores.write(saved, str(store))
    assert ref == SnapshotRef(saved.id, str(store / saved.id))
    manifest = store / saved.id / MANIFEST
    os.utime(manifest, (1, 1))
    inode = manifest.stat().st_ino
    unsaved = Index.build(EXPRESSIONS)
    for source in (saved, str(saved.path), unsaved, unsaved):
        assert stores.write(source, str(store)) == ref
    assert manifest.stat().st_ino == inode
    assert manifest.stat().st_mtime > 1  # published again: not old any more
    assert names(store) == [saved.id]
    assert not root.exists()  # the cache is the workers' business


def test_an_index_whose_folder_is_gone_is_written_from_memory(root, saved, tmp_path):
    other_index().save(saved.path)
    ref = stores.write(saved, str(tmp_path / "store"))
    assert ref.id == saved.id
    assert verify_snapshot(ref.uri) == []
    assert put(saved) == saved.id
    assert is_good(root, saved.id)


def test_a_damaged_entry_of_a_store_is_replaced(root, saved, tmp_path):
    ref = stores.write(saved, str(tmp_path / "store"))
    (Path(ref.uri) / MANIFEST).write_text("{}", encoding="ascii")
    assert stores.write(saved, str(tmp_path / "store")) == ref
    assert verify_snapshot(ref.uri) == []
    assert names(tmp_path / "store") == [saved.id]


def test_a_store_that_cannot_be_written_to(root, saved, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SnapshotError, match="cannot write to the store"):
        stores.write(saved, str(tmp_path / "file" / "store"))
    with pytest.raises(OptionError, match="only a driver"):
        stores.write(saved, "artifacts")


def test_cleaning_a_store_leaves_what_is_not_its_own(root, saved, tmp_path):
    store = tmp_path / "store"
    ref = stores.write(saved, str(store))
    (store / ".0123456789abcdef.tmp").mkdir()
    (store / "mine").mkdir()
    (store / "0123").touch()
    assert stores.clean(store, 3600) == []
    assert len(names(store)) == 4
    os.utime(Path(ref.uri) / MANIFEST, (1, 1))
    assert stores.clean(store, 3600) == [saved.id]
    assert stores.clean(store, -1) == []
    assert names(store) == ["0123", "mine"]
    with pytest.raises(SnapshotError, match="cannot clean"):
        stores.clean(tmp_path / "nowhere", 0)


class Session:
    """As much of a session as choosing a store asks for."""

    def __init__(self, master, **conf):
        self.conf = {"spark.master": master, **conf}


class ConnectSession(Session):
    __module__ = "pyspark.sql.connect.session"


@pytest.mark.parametrize(
    ("session", "store", "where"),
    [
        (Session("local"), None, "cache"),
        (Session("local[*]"), None, "cache"),
        (Session("local[2, 3]"), None, "cache"),
        (Session("local-cluster[2,1,1024]"), None, "artifacts"),
        (Session("spark://host:7077"), None, "artifacts"),
        (Session("yarn"), "/s", "/s"),
        (Session("yarn"), Path("/s"), "/s"),
        (Session("yarn"), "file:///s", "/s"),
        (Session("yarn"), "s3://b/s", "s3://b/s"),
        (Session("yarn", **{"spark.bittern.store": "/c"}), None, "/c"),
        (Session("local", **{"spark.bittern.store": "artifacts"}), None, "artifacts"),
        (Session("yarn", **{"spark.bittern.store": "/c"}), "/s", "/s"),
        (ConnectSession("local[*]"), None, "artifacts"),
    ],
)
def test_where_snapshots_go(session, store, where, monkeypatch):
    monkeypatch.delenv("SPARK_LOCAL_REMOTE", raising=False)
    assert stores.destination(session, store) == where


def test_a_connect_server_that_pyspark_started_is_on_this_host(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    assert stores.destination(ConnectSession("local[*]")) == "cache"


def test_an_empty_store_is_no_store():
    with pytest.raises(OptionError, match="store="):
        stores.destination(Session("local"), "")


def test_a_path_is_taken_at_its_word(root, saved, tmp_path):
    session = Session("yarn", **{"spark.bittern.store": str(tmp_path / "c")})
    ref = SnapshotRef(saved.id, str(saved.path))
    assert stores.publish(session, saved.path) == ref
    assert stores.publish(session, f"file://{saved.path}") == ref
    kernels = [each.name for each in (tmp_path / "c").iterdir()]
    assert kernels == ["kernels"]  # no snapshot was written there
    assert stores.publish(session, saved.path, tmp_path / "s").uri == str(tmp_path / "s" / saved.id)
    with pytest.raises(SnapshotError, match="there is no snapshot at"):
        stores.publish(session, tmp_path / "nowhere")


# With Spark


class Told:
    """What a worker attaches to: the id and the number of subscriptions."""

    def __init__(self, ref):
        self.ref = ref

    def __call__(self, batches):
        import pyarrow as pa

        for batch in batches:
            index = attach(self.ref)
            yield pa.RecordBatch.from_pydict(
                {"told": [f"{index.id} {len(index)}"] * batch.num_rows}
            )


def told_by_workers(spark, ref):
    # Sent whole: a worker cannot import a test module.
    import pyspark.cloudpickle

    pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        rows = spark.range(4, numPartitions=2).mapInArrow(Told(ref), "told string").collect()
    finally:
        pyspark.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    return {row.told for row in rows}


@pytest.mark.spark
def test_workers_attach_to_what_a_local_driver_published(spark, root):
    """Their cache is another folder than the driver's here: they take links from it."""
    index = Index.build({**EXPRESSIONS, 10: f"pid = {os.getpid()}"})
    ref = stores.publish(spark, index)
    assert ref.uri == str(root / ref.id)
    assert told_by_workers(spark, ref) == {f"{ref.id} 4"}


@pytest.mark.spark
def test_workers_attach_to_what_spark_carries(spark, root):
    index = Index.build({**EXPRESSIONS, 10: f"artifact = {time.time_ns()}"})  # in no cache yet
    ref = stores.publish(spark, index, "artifacts")
    assert ref == SnapshotRef(ref.id, None, f"{ref.id}.bittern")
    shutil.rmtree(root)  # nobody finds it where the driver has it
    assert stores.publish(spark, index, "artifacts") == ref  # nothing is sent twice
    assert stores.publish(spark.newSession(), index, "artifacts") == ref
    shutil.rmtree(root)
    assert told_by_workers(spark, ref) == {f"{ref.id} 4"}


@pytest.mark.spark
def test_workers_say_what_they_tried(spark, root, tmp_path):
    ref = SnapshotRef("0" * 32, str(tmp_path / "nowhere"), "0.bittern")
    with pytest.raises(Exception, match="cannot get snapshot 00000000") as raised:
        told_by_workers(spark, ref)
    assert "store='artifacts'" in str(raised.value)
