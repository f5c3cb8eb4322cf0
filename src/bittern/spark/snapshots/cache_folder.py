"""The cache of a host: a folder of snapshots that the processes of one user fill, use and clean.

::

    /tmp/bittern-cache-1000/                      $BITTERN_CACHE_DIR, else under the temp folder
      9a58f9f8440865bc5ce65255696b1606/           a snapshot: complete, verified, never changed
      9a58f9f8440865bc5ce65255696b1606.lock       held by the one process that fills the entry
      9a58f9f8440865bc5ce65255696b1606.use        shared by all that use it; its time: the last use
      9a58f9f8440865bc5ce65255696b1606.1f3c.tmp/  being filled, or being removed

A rename shows an entry all at once, so readers need no lock. A process that dies while filling
leaves a ``.tmp``; the kernel frees the lock, and the next holder removes what it finds. Cleaning
takes ``.lock`` and ``.use`` for itself and never waits for them: entries that are being filled or
used stay. A lock file that was removed while a process waited for it protects nothing, so the
process that gets it checks again.

Cost: two system calls for a lock; cleaning is O(files in the cache).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bittern.errors import OptionError, SnapshotError
from bittern.files import released
from bittern.spark.snapshots.transport import is_id
from bittern.spark.told import component

#: How long unused entries are kept, and how many bytes there may be; entries in use stay.
KEEP_DAYS = 7.0
KEEP_BYTES = 32 << 30

_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

# The descriptors on which this process alone holds a lock, or waits for it.
_held: set[int] = set()


def cache_root() -> Path:
    """Return the cache's folder, created if needed; only its owner may write there.

    It is outside the folders of executors, so that all executors of a host share it.
    """
    told = os.environ.get("BITTERN_CACHE_DIR")
    default = Path(tempfile.gettempdir()) / f"bittern-cache-{os.getuid()}"
    root = Path(os.path.realpath(told)) if told else default
    fix = "set BITTERN_CACHE_DIR to a folder of your own"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = root.lstat()
    except OSError as error:
        raise SnapshotError(
            f"cannot make the cache folder {root}: {error.strerror}; {fix}"
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise SnapshotError(f"the cache folder {root} belongs to another user; {fix}")
    if status.st_mode & 0o022:
        raise SnapshotError(
            f"other users may write to the cache folder {root}; chmod 700 it, or {fix}"
        )
    return root


@contextlib.contextmanager
def temporary(root: Path, name: str) -> Iterator[Path]:
    """Make a folder to fill, which is gone afterwards unless it was renamed."""
    folder = _leftover(root, _checked(name))
    try:
        folder.mkdir()
        yield folder
    except OSError as error:
        raise SnapshotError(
            f"cannot write to the cache {root}: {error.strerror}; make room there, or set "
            f"BITTERN_CACHE_DIR to a folder on another disk"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _checked(name: str) -> str:
    """The name of an entry, which becomes that of files."""
    try:
        return component(name)
    except ValueError as error:
        raise SnapshotError(f"the cache has no such entry: {error}") from None


def _leftover(root: Path, name: str) -> Path:
    return root / f"{name}.{secrets.token_hex(4)}.tmp"


def install(folder: Path, entry: Path) -> None:
    """Put a folder in place of what is there, if anything is: that is damaged. With the lock."""
    if entry.exists():
        aside = _leftover(entry.parent, entry.name)
        entry.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)  # processes that mapped it keep the mapping
    folder.rename(entry)


# Locks


def _open(path: Path) -> int:
    """Open a file to lock it, making it if need be."""
    try:
        return os.open(path, _LOCK_FILE, 0o600)
    except OSError as error:
        raise _cannot_lock(path, error) from error


def _take(descriptor: int, path: Path, operation: int) -> bool | None:
    """Lock the open file; False if ``operation`` does not wait and would have to.

    None if the file was removed meanwhile: then the lock is worth nothing.
    """
    try:
        fcntl.flock(descriptor, operation)
        return os.path.samestat(os.fstat(descriptor), path.stat()) or None
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot_lock(path, error) from error


def _cannot_lock(path: Path, error: OSError) -> SnapshotError:
    return SnapshotError(
        f"cannot lock {path}: {error.strerror}; set BITTERN_CACHE_DIR to a local disk"
    )


@contextlib.contextmanager
def _exclusive(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a file's lock for this process alone; gives False if that would be to ``wait``."""
    operation = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
    taken = None
    while taken is None:
        with released(_open(path)) as descriptor:
            try:
                _held.add(descriptor)
                taken = _take(descriptor, path, operation)
                if taken is not None:
                    yield taken
            finally:
                _held.discard(descriptor)


@contextlib.contextmanager
def locked(root: Path, name: str) -> Iterator[None]:
    """Hold the right to fill an entry, after removing what killed processes left of it."""
    with _exclusive(root / f"{_checked(name)}.lock", wait=True):
        _sweep(root, name)
        yield


def mark(root: Path, identity: str) -> int:
    """Say that this process uses an entry, for as long as the descriptor is open."""
    path = root / f"{_checked(identity)}.use"
    while True:
        descriptor = _open(path)
        try:
            if _take(descriptor, path, fcntl.LOCK_SH):
                os.utime(descriptor)
                return descriptor
        except BaseException:
            unmark(descriptor)
            raise
        os.close(descriptor)


def unmark(descriptor: int) -> None:
    """Take back a mark under which no forked child uses the entry.

    Closing alone would leave it to a child that has just been forked, until that gives it up.
    """
    with released(descriptor):
        pass


def _sweep(root: Path, name: str) -> None:
    for leftover in root.glob(f"{name}.*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)


def _after_fork() -> None:
    """In a forked child, give up what a thread of the parent was in the middle of."""
    for descriptor in _held:
        os.close(descriptor)  # the parent's descriptor goes on holding the lock
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)


# Cleaning


def clean(
    root: Path | None = None, *, older_than: float | None = None, keep_bytes: float | None = None
) -> list[str]:
    """Remove unused entries; returns their ids.

    Those not used for ``older_than`` seconds go, and then the longest unused until the rest has at
    most ``keep_bytes``. Defaults: $BITTERN_CACHE_DAYS (7) and $BITTERN_CACHE_BYTES (32 GiB). Runs
    by itself after each fetch. O(files in the cache); others may clean at the same time.
    """
    root = cache_root() if root is None else root
    if older_than is None:
        older_than = 86_400 * _setting("BITTERN_CACHE_DAYS", KEEP_DAYS)
    if keep_bytes is None:
        keep_bytes = _setting("BITTERN_CACHE_BYTES", KEEP_BYTES)
    sizes: dict[str, int] = {}
    for name in {path.name.split(".")[0] for path in root.iterdir()}:
        if is_id(name):
            sizes[name] = _size(root / name)
    used = {name: _last_use(root, name) for name in sizes}
    total, now, removed = sum(sizes.values()), time.time(), []
    for name in sorted(sizes, key=used.__getitem__):
        entry = (root / name).exists()
        expired = now - used[name] > older_than or total > keep_bytes
        if (expired or not entry) and _remove(root, name) and entry:
            total -= sizes[name]
            removed.append(name)
    return removed


def _setting(name: str, default: float) -> float:
    told = os.environ.get(name, "")
    try:
        return float(told) if told else default
    except ValueError:
        raise OptionError(f"{name}={told!r} is not a number") from None


def _size(entry: Path) -> int:
    with contextlib.suppress(OSError):  # another process removes it
        return sum(file.stat().st_size for file in entry.iterdir())
    return 0


def _last_use(root: Path, name: str) -> float:
    with contextlib.suppress(OSError):
        return (root / f"{name}.use").stat().st_mtime
    return 0.0


def _remove(root: Path, name: str) -> bool:
    """Remove an entry with all that belongs to it, unless a process fetches or uses it."""
    lock, use = root / f"{name}.lock", root / f"{name}.use"
    with _exclusive(lock, wait=False) as is_unfilled:
        if not is_unfilled:
            return False
        with _exclusive(use, wait=False) as is_unused:
            if not is_unused:
                return False
            with contextlib.suppress(FileNotFoundError):
                (root / name).rename(_leftover(root, name))
            _sweep(root, name)
            use.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
    return True
