"""One copy of a snapshot per host, fetched once, mapped by every process that matches with it.

::

    attach(ref)   mapped by this process already?         ─► that index             microseconds
                  in the host's cache?                    ─► map it                 milliseconds
                  lock the entry; is it there by now?     ─► map it
                  fetch, verify, rename into the cache    ─► map it                 O(bytes)

Pages of a mapped file are in memory once, whatever the number of processes, and a closure carries
a reference of a few hundred bytes. ``cache_folder.py`` keeps the cache, ``transport.py`` brings
files into it, ``store.py`` decides on the driver where they come from. A cached snapshot whose
files have lost bytes is fetched again, as if it were not there.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bittern.engine.index import Index
from bittern.engine.live.delta import State
from bittern.engine.matcher import Matcher
from bittern.errors import SnapshotError
from bittern.spark.snapshots import bundles, transport
from bittern.spark.snapshots.bundles import BundleRef
from bittern.spark.snapshots.cache_folder import (
    cache_root,
    clean,
    install,
    locked,
    mark,
    temporary,
    unmark,
)
from bittern.spark.told import file_name

_KEPT_OPEN = 8  # indexes per process: a sharded one has several, and tasks alternate
_KEPT_PUBLISHED = 256  # marks of a driver, one descriptor each
_UNNAMED = "new"  # of an index whose id is known only when it has been written


@dataclass(frozen=True)
class SnapshotRef:
    """What a closure carries instead of an index: a few hundred bytes of plain data."""

    #: The snapshot's id, which is a hash of its content.
    id: str
    #: Path or URI of the snapshot's folder, if executors can see one.
    uri: str | None = None
    #: Name of the file (a tar) that Spark ships to the executors, if it does.
    artifact: str | None = None
    #: A snapshot of named sets, which come in place of its own.
    more_sets: SnapshotRef | None = None
    #: Compiled kernels, for processes that have none.
    kernels: BundleRef | None = field(default=None, compare=False)

    def matcher(self, *, case_sensitive: bool = True) -> Matcher:
        """A matcher for the snapshot, in any process."""
        return Matcher(attach(self), sets=self.sets(), case_sensitive=case_sensitive)

    def sets(self) -> Mapping[str, Any]:
        """The named sets that its subscriptions look values up in."""
        own = attach(self).sets
        return own if self.more_sets is None else {**own, **attach(self.more_sets).sets}

    def state(self) -> State:
        """The snapshot as a state, for callers that match with more than it."""
        return State.over(attach(self))


# Of this process: indexes by id, with the descriptor that marks each as in use, and the marks of
# what it has published. Forked children share the first, which is right: they have the mappings.
_mutex = threading.Lock()
_opened: OrderedDict[str, tuple[Index, int]] = OrderedDict()
_published: OrderedDict[str, int] = OrderedDict()
_written: weakref.WeakKeyDictionary[Index, str] = weakref.WeakKeyDictionary()


def attach(ref: SnapshotRef) -> Index:
    """Return the index that ``ref`` means, in any process; safe to call from threads.

    O(1) once the process has it, milliseconds once the host has it, else O(bytes). SnapshotError
    if it cannot be fetched.
    """
    if not transport.is_id(ref.id):
        raise SnapshotError(f"{ref.id!r} is not the id of a snapshot")
    with _mutex:
        if ref.id in _opened:
            _opened.move_to_end(ref.id)
            index, use = _opened[ref.id]
            os.utime(use)
            return index
    if ref.kernels is not None:
        bundles.take(ref.kernels)
    root = cache_root()
    use = mark(root, ref.id)
    try:
        found = _open_entry(root, ref.id)
        index = _fill(root, ref) if found is None else found
    except BaseException:
        unmark(use)
        raise
    weakref.finalize(index, os.close, use)
    with _mutex:
        index, _ = _opened.setdefault(ref.id, (index, use))  # another thread may have been quicker
        while len(_opened) > _KEPT_OPEN:
            _opened.popitem(last=False)
    return index


def put(source: Index | str) -> str:
    """Make this host's cache hold an index, or the snapshot at a path or URI; returns its id.

    What was put stays in use by this process. O(bytes), or O(arrays) if the cache has it already.
    """
    root = cache_root()
    place = saved_at(source)
    identity = known_id(source)
    if identity is not None:
        _keep_published(identity, mark(root, identity))
        if _open_entry(root, identity) is not None:
            return identity
    if isinstance(source, Index) and place is None:
        return _put_new(root, source)
    assert identity is not None
    _fill(root, SnapshotRef(identity, place))
    return identity


def keep(identity: str) -> None:
    """Keep a snapshot of this host's cache in use by this process, whichever process put it there.

    SnapshotError if the cache does not have it any more.
    """
    root = cache_root()
    _keep_published(identity, mark(root, identity))
    if not transport.holds(str(root / identity), identity):
        raise SnapshotError(
            f"snapshot {identity} was removed from the cache {root} before it was used; increase "
            f"BITTERN_CACHE_BYTES, or give store= a folder or URI"
        )


def drop(identity: str) -> None:
    """Drop a damaged snapshot: this process's next ``attach`` fetches it again.

    Processes that have it mapped keep it.
    """
    with _mutex:
        _opened.pop(identity, None)
    root = cache_root()
    with locked(root, identity):
        shutil.rmtree(root / identity, ignore_errors=True)


def release(identity: str) -> None:
    """Allow cleaning of a snapshot that this process put into the cache and no longer needs."""
    with _mutex:
        use = _published.pop(identity, None)
    if use is not None:
        unmark(use)


def known_id(source: Index | str) -> str | None:
    """The id of a source; None for an index that was never written."""
    if isinstance(source, Index):
        return source.id or _written.get(source)
    return transport.read_id(source)


def remember(index: Index, identity: str) -> None:
    """Note under which id an index was written, so that it need not be written to learn it."""
    _written[index] = identity


def saved_at(source: Index | str) -> str | None:
    """Where a source can be fetched from; None for an index that only memory holds."""
    if not isinstance(source, Index):
        return source
    if source.path is None or source.id is None:
        return None
    path = str(source.path.absolute())
    return path if transport.holds(path, source.id) else None


def entry_path(identity: str) -> Path:
    """Where this host's cache has, or would have, a snapshot."""
    return cache_root() / identity


# Filling


def _open_entry(root: Path, identity: str) -> Index | None:
    """Map what the cache has; None if it has nothing, or something damaged."""
    try:
        index = Index.open(root / identity)
    except SnapshotError as error:
        if transport.is_shortage(error):
            raise
        return None
    return index if index.id == identity else None


def _fill(root: Path, ref: SnapshotRef) -> Index:
    with locked(root, ref.id), temporary(root, ref.id) as folder:
        index = _open_entry(root, ref.id)  # another process may have been quicker
        if index is not None:
            return index
        _fetch(ref, folder)
        install(folder, root / ref.id)
        index = Index.open(root / ref.id)
    clean(root)
    return index


def _put_new(root: Path, index: Index) -> str:
    """Write an index that is nowhere on disk. One at a time: only the end tells which it is."""
    with locked(root, _UNNAMED), temporary(root, _UNNAMED) as folder:
        identity = index.write(folder / "index")
        _keep_published(identity, mark(root, identity))
        with locked(root, identity):
            if _open_entry(root, identity) is None:
                install(folder / "index", root / identity)
    remember(index, identity)
    clean(root)
    return identity


def _fetch(ref: SnapshotRef, folder: Path) -> None:
    """Try every source; the error names them all, since it may be read in an executor's log."""
    tried: list[str] = []
    for get, what in ((_fetch_uri, ref.uri), (_fetch_artifact, ref.artifact)):
        if what is None:
            continue
        try:
            get(what, ref.id, folder)
        except (SnapshotError, OSError) as error:
            tried.append(str(error))
            _empty(folder)
        else:
            return
    raise SnapshotError(
        f"host {socket.gethostname()} cannot get snapshot {ref.id} "
        f"({'; '.join(tried) or 'no source is known'}); give store= a folder or URI that the "
        f"driver and all executors can reach, or store='artifacts' to send it through Spark"
    )


def _fetch_uri(uri: str, identity: str, folder: Path) -> None:
    transport.fetch(uri, identity, folder)


def _fetch_artifact(name: str, identity: str, folder: Path) -> None:
    from pyspark import SparkFiles  # noqa: PLC0415 (workers have it loaded, others need none)

    try:
        file_name(name)
        path = Path(SparkFiles.get(name))
    except ValueError as error:
        raise SnapshotError(f"artifact {name!r:.60}: {error}") from None
    except Exception as error:  # an assertion or worse where no Spark runs
        raise SnapshotError(
            f"artifact {name}: this process is not part of a Spark application"
        ) from error
    transport.unpack(path, identity, folder)


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def _keep_published(identity: str, use: int) -> None:
    with _mutex:
        old = _published.pop(identity, None)
        _published[identity] = use
        closing = [old] if old is not None else []
        while len(_published) > _KEPT_PUBLISHED:
            closing.append(_published.popitem(last=False)[1])
    for descriptor in closing:
        unmark(descriptor)


def _after_fork() -> None:
    """In the child, replace the lock that a thread of the parent may have held.

    What the parent has published is kept by the parent, as long as it wants.
    """
    global _mutex
    _mutex = threading.Lock()
    for use in _published.values():
        os.close(use)
    _published.clear()


os.register_at_fork(after_in_child=_after_fork)
