"""A snapshot: named arrays in a directory, memory-mapped, crash-safe to write.

::

    shop.bittern/
      manifest.json       kind, format, release, meta, arrays, id
      pivot.ids.npy       128-byte header | data          <- mapped read-only
      pivot.offsets.npy   128-byte header | data

    manifest["arrays"] = [{"name": "pivot.ids", "dtype": "<i4", "shape": [7],
                           "bytes": 156, "blake2b": "5f1c..."}, ...]

``bytes`` and ``blake2b`` are of the whole file, so ``ls -l`` and ``b2sum -l 256`` give the same.
The id is the digest of kind, format, meta and arrays in canonical JSON: it depends on the content
and not on the release, the place or the time.

A complete snapshot takes its name by renames (``files.py``), so every reader finds one at every
moment, whatever kills the writer. A reader that finds no ``shop`` opens ``.shop.next``, and a
reader that has the old one open keeps its mapping.

Cost: writing is one pass over the bytes (hashing included) and one fsync per array; opening is
O(arrays), whatever their size; verifying reads everything once. What a manifest says is in
``engine/snapshot/manifest.py``; docs/file_format.md has the rest.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import mmap
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.engine.snapshot.manifest import (
    KIND,
    MANIFEST,
    MAX_BYTES,
    ArrayEntry,
    canonical,
    check_array,
    check_format,
    check_manifest,
    describe,
    manifest_text,
    new_manifest,
    npy_header,
    parse_manifest,
)
from bittern.errors import SnapshotError
from bittern.files import (
    Opened,
    new_temporary,
    only_writer,
    put_in_place,
    remove_temporary,
    sibling,
    sync,
    to_disk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CHUNK = 1 << 20
# Never through a symbolic link, and never blocked by a FIFO that took a file's place.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A mapping outlives its descriptor; Python keeps one open all the same unless told not to.
_MAPPED: dict[str, Any] = {"access": mmap.ACCESS_READ}
if sys.version_info >= (3, 13):
    _MAPPED["trackfd"] = False
# What is short here is not wrong with the snapshot.
_SHORTAGES = {
    errno.EMFILE: "the process has too many open files; raise its limit (ulimit -n)",
    errno.ENFILE: "the system has too many open files; raise its limit (sysctl fs.file-max)",
    errno.ENOMEM: "cannot map more; raise the limit (sysctl vm.max_map_count or ulimit -v)",
}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An open snapshot; the arrays stay valid when the directory is replaced or removed."""

    path: Path
    id: str
    release: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def nbytes(self) -> int:
        """What the arrays occupy, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())


def write_snapshot(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]
) -> str:
    """Write a snapshot at ``path``, replacing an existing one, and return its id. O(bytes).

    ``meta`` is any JSON object; keep it small, since opening parses it.
    """
    target = _resolve(path)
    for name, array in arrays.items():
        check_array(name, array)
    try:
        stored_meta = json.loads(canonical(dict(meta)))
    except (TypeError, ValueError, RecursionError) as error:
        raise SnapshotError(f"the meta of a snapshot must be a JSON object: {error}") from error
    # Digests are all of one length: what is wrong with the manifest shows before the work.
    drafts = [describe(name, array, "0" * 64) for name, array in arrays.items()]
    manifest_text(new_manifest(stored_meta, drafts))
    try:
        check_target(target)
        made: tuple[Path, Opened] | None = None
        try:
            with only_writer(target):
                made = new_temporary(target)
            identity = _write_files(made[0], arrays, stored_meta)
            check_target(target)
            with only_writer(target) as parent:
                put_in_place(made[0], target, parent)
        finally:
            if made is not None:
                remove_temporary(*made)  # nothing is left of it where it is in place
    except OSError as error:
        raise SnapshotError(f"cannot write snapshot {path}: {_reason(error)}") from error
    return identity


def read_snapshot(path: str | os.PathLike[str], *, verify: bool = False) -> Snapshot:
    """Open the snapshot at ``path``. O(arrays); with ``verify`` every byte is read and checked.

    Without it a changed value is not noticed: verify once after copying (docs/file_format.md).
    """
    snapshot, problems = _read(Path(path), verify=verify)
    if problems:
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        raise SnapshotError(f"snapshot {path} is damaged: {problems[0]}{more}")
    return snapshot


def verify_snapshot(path: str | os.PathLike[str]) -> list[str]:
    """Everything that is wrong with the snapshot at ``path``, one sentence each. O(bytes)."""
    try:
        return _read(Path(path), verify=True)[1]
    except SnapshotError as error:
        return [str(error)]


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise unless a snapshot may be written at ``path``, where nothing else is. O(arrays)."""
    target = _resolve(path)
    try:
        if not target.parent.is_dir():
            raise SnapshotError(f"cannot write snapshot {path}: there is no folder {target.parent}")
        if not target.exists():
            return
        if not target.is_dir():
            raise SnapshotError(f"cannot write snapshot {path}: a file with this name exists")
        files = list(target.iterdir())
        if files and not (all(map(_is_part, files)) and _is_ours(target)):
            raise SnapshotError(
                f"cannot write snapshot {path}: the folder exists and is not a snapshot, or holds "
                f"other files too; choose another name or remove it first"
            )
    except OSError as error:
        raise SnapshotError(f"cannot write snapshot {path}: {_reason(error)}") from error


def _resolve(path: str | os.PathLike[str]) -> Path:
    """Follow symbolic links to the folder itself, since its siblings are named after it."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise SnapshotError(f"{os.fspath(path)!r} is not a path: {error}") from error


def _is_part(file: Path) -> bool:
    return file.name == MANIFEST or file.suffix == ".npy"


def _is_ours(folder: Path) -> bool:
    descriptor = os.open(folder, _DIRECTORY)
    try:
        return bool(_load_manifest(descriptor).get("kind") == KIND)
    except SnapshotError:
        return False
    finally:
        os.close(descriptor)


# Writing


def _write_files(folder: Path, arrays: Mapping[str, np.ndarray], meta: Any) -> str:
    """Write everything into ``folder``, the manifest last; all is on disk when this returns."""
    entries = [_write_array(folder, name, arrays[name]) for name in sorted(arrays)]
    manifest = new_manifest(meta, entries)
    with (folder / MANIFEST).open("xb") as file:
        file.write(manifest_text(manifest))
        to_disk(file)
    sync(folder)
    return str(manifest["id"])


def _write_array(folder: Path, name: str, array: np.ndarray) -> ArrayEntry:
    header = npy_header(array.dtype.str, array.shape)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.blake2b(header, digest_size=32)
    with (folder / (name + ".npy")).open("xb", buffering=0) as file:
        _write_all(file.fileno(), header)
        for start in range(0, data.size, _CHUNK):
            chunk = data[start : start + _CHUNK].data
            digest.update(chunk)
            _write_all(file.fileno(), chunk)
        os.fsync(file.fileno())
    return describe(name, array, digest.hexdigest())


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


# Reading


def _read(path: Path, *, verify: bool) -> tuple[Snapshot, list[str]]:
    """Open through one directory descriptor, so that a replacement never mixes two snapshots."""
    target = _resolve(path)
    while True:
        descriptor = _open_folder(path, target)
        try:
            snapshot, problems = _read_folder(descriptor, target, verify=verify)
            if not problems or not _is_replaced(descriptor, target):
                return snapshot, problems
        except (SnapshotError, OSError) as error:
            if not _is_replaced(descriptor, target):
                raise SnapshotError(f"cannot open snapshot {path}: {_reason(error)}") from error
        finally:
            os.close(descriptor)


def _open_folder(path: Path, target: Path) -> int:
    # Writers may move the names between two looks; one replacement can do so once.
    for candidate in (target, sibling(target, "next")) * 10:
        try:
            return os.open(candidate, _DIRECTORY)
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            raise SnapshotError(f"{path} is not a snapshot: it is not a folder") from None
        except OSError as error:
            raise SnapshotError(f"cannot open snapshot {path}: {_reason(error)}") from error
    raise SnapshotError(f"there is no snapshot at {path}")


def _is_replaced(descriptor: int, target: Path) -> bool:
    """Whether the folder being read is no longer the one that a reader would open."""
    for candidate in (target, sibling(target, "next")):
        with contextlib.suppress(OSError):
            if os.path.samestat(candidate.stat(), os.fstat(descriptor)):
                return False
    return True


def _read_folder(descriptor: int, target: Path, *, verify: bool) -> tuple[Snapshot, list[str]]:
    manifest = _load_manifest(descriptor)
    check_format(manifest)
    meta, entries, identity = check_manifest(manifest)
    arrays: dict[str, np.ndarray] = {}
    problems: list[str] = []
    for entry in entries:
        try:
            arrays[entry.name] = _map_array(descriptor, entry, verify=verify)
        except (SnapshotError, OSError, ValueError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in _SHORTAGES:
                arrays.clear()  # the handler of the error needs files and memory too
                raise
            problems.append(f"array {entry.name!r}: {_reason(error)}")
    extra = set(os.listdir(descriptor)) - {entry.name + ".npy" for entry in entries} - {MANIFEST}
    problems += [f"file {name!r} is not part of it" for name in sorted(extra)]
    return Snapshot(target, identity, manifest["release"], meta, arrays), problems


def _load_manifest(folder: int) -> dict[str, Any]:
    try:
        with _regular(MANIFEST, folder) as (file, size):
            if size > MAX_BYTES:
                raise SnapshotError(f"{MANIFEST} has more than {MAX_BYTES} bytes")
            return parse_manifest(b"".join(_chunks(file)))
    except OSError as error:
        raise SnapshotError(f"{MANIFEST}: {_reason(error)}") from error


@contextlib.contextmanager
def _regular(name: str, folder: int) -> Iterator[tuple[int, int]]:
    """Open a file of the folder itself, giving its descriptor and size."""
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise SnapshotError(f"{name} is not a file")
        yield file, status.st_size
    finally:
        os.close(file)


def _chunks(file: int) -> Iterator[bytes]:
    position = 0
    while chunk := os.pread(file, _CHUNK, position):
        yield chunk
        position += len(chunk)


def _map_array(folder: int, entry: ArrayEntry, *, verify: bool) -> np.ndarray:
    header = npy_header(entry.dtype, entry.shape)
    with _regular(entry.name + ".npy", folder) as (file, size):
        if size != entry.bytes:
            raise SnapshotError(f"its file has {size} bytes instead of {entry.bytes}")
        if os.pread(file, len(header), 0) != header:
            raise SnapshotError("its file is of another type or shape, or damaged")
        if verify:
            digest = hashlib.blake2b(digest_size=32)
            for chunk in _chunks(file):
                digest.update(chunk)
            if digest.hexdigest() != entry.blake2b:
                raise SnapshotError("its content does not have the digest that was written")
        mapped = mmap.mmap(file, size, **_MAPPED)
    return np.ndarray(entry.shape, entry.dtype, mapped, len(header))


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    return _SHORTAGES.get(error.errno or 0) or error.strerror or str(error)
