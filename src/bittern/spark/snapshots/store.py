"""From the driver to the executors: where a snapshot is, so that every worker can attach to it.

::

    publish(spark, index, store)  ──►  SnapshotRef(id, uri, artifact)  ──►  the closure of a task

    store (or the conf spark.bittern.store)           the reference
    "/shared/bittern", "s3://bucket/bittern"          uri = <store>/<id>
    nothing, and Spark runs in this process           uri = <cache of this host>/<id>
    nothing, and there is a cluster; "artifacts"      artifact = "<id>.bittern", sent by Spark

A store is a folder of snapshots named by their ids. Since an id is a hash of the content, nothing
is written twice, and drivers that publish the same index at once do no harm: on a file system the
first rename wins, in an object store both write the same bytes, the manifest last.

A path or URI in place of an index, with no ``store=``, is taken at its word: executors fetch from
it themselves, and the index is not written. Compiled kernels go where an index would, to executors
that may run on other hosts (``bundles.py``).

Cost: O(bytes), or O(arrays) once the store has the index.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyarrow import fs
from pyspark.errors import PySparkException

from bittern.engine.index import Index
from bittern.engine.snapshot.manifest import MANIFEST
from bittern.errors import OptionError, SnapshotError
from bittern.files import at_exit, whole_file
from bittern.spark.session import is_connect
from bittern.spark.snapshots import bundles, node_cache, transport
from bittern.spark.snapshots.bundles import BundleRef
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.versions import condition, send_file

logger = logging.getLogger("bittern")

ARTIFACTS = "artifacts"
CACHE = "cache"
CONF = "spark.bittern.store"

# Not .tar: Spark unpacks files of that name on every executor, whatever they were added as.
_SUFFIX = ".bittern"
#: Of a store: compiled kernels, each file named by its digest.
_KERNELS = "kernels"
_WRITING = re.compile(r"\.[0-9a-f]{16}\.tmp")

# The same content under the same name: what a second driver or session of it may hear.
_THERE_ALREADY = ("ARTIFACT_ALREADY_EXISTS", "DUPLICATED_ARTIFACT")

# Which artifacts a session has, so that none is sent twice.
_sent: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def publish(spark: Any, source: Index | str | Path, store: str | Path | None = None) -> SnapshotRef:
    """Make an index reachable for the executors of ``spark``; returns what a closure carries.

    ``source`` is an index, or the path or URI of a saved one. ``store`` is a folder or URI that
    the driver and all executors reach, or "artifacts" to send the index through Spark, or "cache"
    for this host's cache, where the executors run on this host.
    """
    return with_kernels(spark, _published(spark, source, store), store)


def _published(spark: Any, source: Index | str | Path, store: str | Path | None) -> SnapshotRef:
    place = source if isinstance(source, Index) else os.fspath(source)
    where = destination(spark, store)
    if isinstance(place, str) and store is None and where != CACHE:
        return SnapshotRef(transport.read_id(place), _absolute(place))
    if where != ARTIFACTS:
        return write(place, where)
    identity = node_cache.put(place)
    saved = node_cache.saved_at(place)
    return SnapshotRef(identity, saved and _absolute(saved), _send(spark, identity))


def with_kernels(spark: Any, ref: SnapshotRef, store: str | Path | None = None) -> SnapshotRef:
    """The reference with the kernels of this process, if executors may run on other hosts."""
    where = destination(spark, store)
    if where == CACHE or _is_local(spark):
        return ref
    digest, data = bundles.packed()
    try:
        if where == ARTIFACTS:
            kernels = BundleRef(digest, artifact=_send_bundle(spark, digest, data))
        else:
            uri = transport.child(transport.child(where, _KERNELS), digest)
            _write_bundle(uri, data)
            kernels = BundleRef(digest, uri)
    except (SnapshotError, OSError) as error:
        logger.warning("bittern: executors compile kernels, which cannot be sent: %s", error)
        return ref
    return replace(ref, kernels=kernels)


def _write_bundle(uri: str, data: bytes) -> None:
    with contextlib.suppress(OSError):
        if transport.read_file(uri, len(data) + 1) == data:
            return
    transport.write_file(uri, data)


def destination(spark: Any, store: str | Path | None = None) -> str:
    """Where this session's snapshots go: a path or URI, "cache" or "artifacts"."""
    told = os.fspath(store) if store is not None else spark.conf.get(CONF, None)
    if told is None:
        return CACHE if _is_local(spark) else ARTIFACTS
    if not told:
        raise OptionError(f"store= and {CONF} must be a folder, a URI, 'artifacts' or 'cache'")
    return told if told in (ARTIFACTS, CACHE) else _absolute(told)


def write(source: Index | str, where: str) -> SnapshotRef:
    """Write a snapshot to a store or to this host's cache, from any process, executors included."""
    if where == CACHE:
        identity = node_cache.put(source)
        return SnapshotRef(identity, str(node_cache.entry_path(identity)))
    if where == ARTIFACTS:
        raise OptionError("only a driver can send artifacts: give store= a folder or URI")
    folder = transport.local_path(where)
    if folder is not None:
        return _write_folder(source, folder)
    identity = node_cache.put(source)
    target = transport.child(where, identity)
    if not transport.holds(target, identity):
        transport.upload(node_cache.entry_path(identity), target)
    return SnapshotRef(identity, target)


def clean(where: str | Path, older_than: float) -> list[str]:
    """Remove what was last published to a store more than ``older_than`` seconds ago.

    Returns the ids. Hosts that have such a snapshot keep it, others cannot fetch it any more: take
    longer than any job runs. What killed writers left goes by the same age.
    """
    filesystem, base = transport.filesystem(os.fspath(where))
    removed = []
    try:
        for info in filesystem.get_file_info(fs.FileSelector(base)):
            if info.type != fs.FileType.Directory or not _is_ours(info.base_name):
                continue
            manifest = filesystem.get_file_info(f"{info.path}/{MANIFEST}")
            written = manifest.mtime or info.mtime
            if written is None or time.time() - written.timestamp() <= older_than:
                continue
            if manifest.type == fs.FileType.File:
                filesystem.delete_file(manifest.path)  # first: the rest is nothing without it
            filesystem.delete_dir(info.path)
            removed.append(info.base_name)
        for info in filesystem.get_file_info(_bundles_in(base)):
            if info.mtime and time.time() - info.mtime.timestamp() > older_than:
                filesystem.delete_file(info.path)
    except OSError as error:
        raise SnapshotError(f"cannot clean {where}: {error}") from error
    return [name for name in removed if transport.is_id(name)]


def _bundles_in(base: str) -> fs.FileSelector:
    return fs.FileSelector(f"{base}/{_KERNELS}", allow_not_found=True)


def remove(where: str, identity: str) -> None:
    """Remove one snapshot from a store or a cache, for instance because it is damaged."""
    if not transport.is_id(identity):
        raise SnapshotError(f"{identity!r} is not the id of a snapshot")
    filesystem, base = transport.filesystem(transport.child(where, identity))
    try:
        if filesystem.get_file_info(f"{base}/{MANIFEST}").type == fs.FileType.File:
            filesystem.delete_file(f"{base}/{MANIFEST}")  # first: the rest is nothing without it
        if filesystem.get_file_info(base).type == fs.FileType.Directory:
            filesystem.delete_dir(base)
    except OSError as error:
        raise SnapshotError(f"cannot remove snapshot {identity} from {where}: {error}") from error


def _is_ours(name: str) -> bool:
    return transport.is_id(name) or _WRITING.fullmatch(name) is not None


def _write_folder(source: Index | str, store: Path) -> SnapshotRef:
    identity = node_cache.known_id(source)
    if identity is None or not _is_there(store / identity, identity):
        temporary = store / f".{secrets.token_hex(8)}.tmp"
        try:
            temporary.mkdir(parents=True)
            identity = _write_new(source, temporary / "new")
            _put_in_place(temporary, store / identity, identity)
        except OSError as error:
            raise SnapshotError(f"cannot write to the store {store}: {error}") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return SnapshotRef(identity, str(store / identity))


def _is_there(entry: Path, identity: str) -> bool:
    """Whether a store has a snapshot, which is then as good as published now."""
    if not transport.holds(str(entry), identity):
        return False
    with contextlib.suppress(OSError):  # another user's: its age stays
        os.utime(entry / MANIFEST)
    return True


def _write_new(source: Index | str, folder: Path) -> str:
    place = node_cache.saved_at(source)
    if place is None:
        assert isinstance(source, Index)
        identity = source.write(folder)
        node_cache.remember(source, identity)
        return identity
    identity = transport.read_id(place)
    folder.mkdir()
    transport.fetch(place, identity, folder)
    return identity


def _put_in_place(temporary: Path, entry: Path, identity: str) -> None:
    try:
        (temporary / "new").rename(entry)
    except OSError:
        if transport.holds(str(entry), identity):
            return  # another driver was quicker
        entry.rename(temporary / "damaged")
        (temporary / "new").rename(entry)


def _send(spark: Any, identity: str) -> str:
    """Give a session a snapshot of this host's cache as an artifact, once."""

    def pack(tar: Path) -> None:
        transport.pack(node_cache.entry_path(identity), tar)

    return _send_file(spark, f"{identity}{_SUFFIX}", pack)


def _send_bundle(spark: Any, digest: str, data: bytes) -> str:
    def write_data(path: Path) -> None:
        with whole_file(path, durable=False) as file:
            file.write(data)

    return _send_file(spark, f"{digest}.{_KERNELS}", write_data)


def _send_file(spark: Any, name: str, make: Callable[[Path], None]) -> str:
    """Give a session a file as an artifact, once."""
    sent = _sent.setdefault(spark, set())
    if name in sent:
        return name
    path = _artifact_folder() / name
    if not path.exists():
        make(path)
    try:
        send_file(spark, path)
    except PySparkException as error:
        if condition(error) not in _THERE_ALREADY:
            raise SnapshotError(f"Spark does not accept the artifact {name}: {error}") from error
    sent.add(name)
    return name


@functools.cache
def _artifact_folder() -> Path:
    """Make a folder for the life of this process: executors that start later fetch from it too."""
    folder = tempfile.mkdtemp(prefix="bittern-artifacts-")
    at_exit(functools.partial(shutil.rmtree, folder, ignore_errors=True))
    return Path(folder)


def _is_local(spark: Any) -> bool:
    """Whether the workers of a session are processes of this host."""
    if not re.fullmatch(r"local(\[[^\]]*\])?", spark.conf.get("spark.master", "")):
        return False
    # A Connect server may run anywhere, and its "local" is there; pyspark says if it started it.
    return not is_connect(spark) or "SPARK_LOCAL_REMOTE" in os.environ


def _absolute(place: str) -> str:
    path = transport.local_path(place)
    return place if path is None else str(path)
