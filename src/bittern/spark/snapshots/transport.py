"""How the files of a snapshot travel: a link, a copy, a download, or a tar that Spark carries.

::

    /data/shop          ── hard link, else copy ──►  ┐
    file:///data/shop   ── hard link, else copy ──►  ├  <folder>/manifest.json
    s3://bucket/shop    ── pyarrow.fs, 8 at once ─►  │  <folder>/ids.npy  ...
    <id>.bittern (tar)  ── member by member ──────►  ┘

The manifest comes first, and its id must be the one asked for: that fixes the name, the size and
the digest of everything else before a byte of it moves. So nothing but a snapshot's own files is
ever written, whatever a tar or a bucket holds, and never more bytes than the snapshot has. When
all are there they are read once more and checked against their digests.

A hard link costs no bytes and is safe, since ``engine/snapshot/folder.py`` never changes a file
that it has written: it writes new folders. Cost: O(bytes) to verify and, unless linked, to copy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from bittern.engine.snapshot.folder import read_snapshot
from bittern.engine.snapshot.manifest import (
    MANIFEST,
    MAX_BYTES,
    ArrayEntry,
    check_format,
    check_manifest,
    parse_manifest,
)
from bittern.errors import SnapshotError
from bittern.files import to_disk, whole_file

_CHUNK = 1 << 20
_AT_ONCE = 8  # downloads: one stream of an object store is far slower than the network
# Two letters at least: "c:/x" would be a drive. Java writes file:/x, other programs file:///x.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# Hadoop's names for what pyarrow calls s3.
_SYNONYMS = {"s3a": "s3", "s3n": "s3"}

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

# Opens one file of a snapshot by its name.
_Open = Callable[[str], IO[bytes]]


def is_id(name: str) -> bool:
    """Whether a name is that of a snapshot's content."""
    return re.fullmatch(r"[0-9a-f]{32}", name) is not None


def local_path(place: str) -> Path | None:
    """Return the path that ``place`` means, or None if it is a URI of something else than files."""
    scheme = _SCHEME.match(place)
    if scheme is None:
        return Path(os.path.abspath(place))  # noqa: PTH100 (Path.absolute keeps "..")
    if scheme[1].lower() != "file":
        return None
    parts = urlsplit(place)
    if parts.netloc not in ("", "localhost"):
        raise SnapshotError(
            f"{place} names a host: write file:/// with three slashes before a path"
        )
    return Path(unquote(parts.path))


def child(uri: str, name: str) -> str:
    """Return the URI of what has this name in a folder; options stay at the end."""
    head, mark, options = uri.partition("?")
    return f"{head.rstrip('/')}/{name}{mark}{options}"


def filesystem(uri: str) -> tuple[Any, str]:
    """Return the pyarrow file system of a URI or path, and the path in it."""
    path = local_path(uri)
    if path is not None:
        return fs.LocalFileSystem(), str(path)
    scheme, rest = uri.split(":", 1)
    try:
        found, base = fs.FileSystem.from_uri(f"{_SYNONYMS.get(scheme.lower(), scheme)}:{rest}")
    except (OSError, ValueError, ImportError) as error:
        raise SnapshotError(f"cannot reach {uri}: {error}") from error
    return found, base.rstrip("/")


def read_id(place: str) -> str:
    """Return the id of the snapshot at a path or URI. One small file is read."""
    with _from(place), _parts(place) as open_part:
        return _read_manifest(open_part)[1]


def holds(place: str, identity: str) -> bool:
    """Whether the snapshot with this id is at a path or URI, all of it as far as sizes tell."""
    try:
        path = local_path(place)
        if path is None:
            return read_id(place) == identity  # written last, so that it vouches for the rest
        return read_snapshot(path).id == identity
    except SnapshotError as error:
        if is_shortage(error):
            raise
        return False


def is_shortage(error: BaseException | None) -> bool:
    """Whether this process lacks files or memory, which says nothing about the snapshot."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _SHORTAGES:
            return True
        error = error.__cause__
    return False


def fetch(place: str, identity: str, folder: Path) -> None:
    """Bring the snapshot ``identity`` from a path or URI into an empty folder, and verify it."""
    with _from(place), _parts(place) as open_part:
        path = local_path(place)
        _collect(open_part, identity, folder, linked=path, at_once=_AT_ONCE if path is None else 1)


def unpack(tar: Path, identity: str, folder: Path) -> None:
    """Bring the snapshot ``identity`` out of a tar into an empty folder, and verify it."""
    with _from(tar), tarfile.open(tar, "r:") as archive:

        def open_part(name: str) -> IO[bytes]:
            try:
                member = archive.getmember(name)
            except KeyError:
                raise SnapshotError(f"{name} is missing") from None
            file = archive.extractfile(member) if member.isreg() else None
            if file is None:
                raise SnapshotError(f"{name} is not a file")
            return file

        _collect(open_part, identity, folder)


def pack(folder: Path, tar: Path) -> None:
    """Write the files of a snapshot into a tar, the same bytes every time."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode = 0o600
        return member

    with (
        whole_file(tar, durable=False) as out,
        tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in sorted(folder.iterdir(), key=lambda each: (each.name != MANIFEST, each.name)):
            archive.add(file, file.name, recursive=False, filter=plain)


def upload(folder: Path, uri: str) -> None:
    """Write a snapshot to a URI, the manifest last, so that half a snapshot is never opened."""
    remote, base = filesystem(uri)

    def send(name: str) -> None:
        with (
            (folder / name).open("rb") as source,
            remote.open_output_stream(f"{base}/{name}") as out,
        ):
            shutil.copyfileobj(source, out, _CHUNK)

    try:
        remote.create_dir(base, recursive=True)
        arrays = [file.name for file in folder.iterdir() if file.name != MANIFEST]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(send, arrays))
        send(MANIFEST)
    except (OSError, ValueError) as error:
        raise SnapshotError(f"cannot write the snapshot to {uri}: {error}") from error


def read_file(uri: str, most: int | None = None) -> bytes:
    """Read a small file, or its first bytes."""
    remote, path = filesystem(uri)
    with remote.open_input_stream(path) as file:
        return bytes(file.read(most))


def write_file(uri: str, data: bytes) -> None:
    """Write a small file, which on a file system appears whole or not at all."""
    remote, path = filesystem(uri)
    remote.create_dir(path.rpartition("/")[0], recursive=True)
    partial = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with remote.open_output_stream(partial) as out:
            out.write(data)
        remote.move(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remote.delete_file(partial)
        raise


@contextlib.contextmanager
def _from(place: str | Path) -> Iterator[None]:
    """Say of which place it is, whatever goes wrong."""
    try:
        yield
    except FileNotFoundError as error:
        raise SnapshotError(f"there is no snapshot at {place}") from error
    except (SnapshotError, OSError, ValueError, EOFError, tarfile.TarError) as error:
        raise SnapshotError(f"cannot fetch {place}: {error}") from error


@contextlib.contextmanager
def _parts(place: str) -> Iterator[_Open]:
    path = local_path(place)
    if path is not None:
        yield lambda name: (path / name).open("rb")
        return
    remote, base = filesystem(place)
    yield lambda name: remote.open_input_stream(f"{base}/{name}")


def _read_manifest(open_part: _Open) -> tuple[bytes, str, list[ArrayEntry]]:
    with open_part(MANIFEST) as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise SnapshotError(f"{MANIFEST} has more than {MAX_BYTES} bytes")
    manifest = parse_manifest(text)
    check_format(manifest)
    _, entries, identity = check_manifest(manifest)
    return text, identity, entries


def _collect(
    open_part: _Open, identity: str, folder: Path, *, linked: Path | None = None, at_once: int = 1
) -> None:
    text, found, entries = _read_manifest(open_part)
    if found != identity:
        raise SnapshotError(f"snapshot {found} is there now, not {identity}")
    # Copied even where the rest is linked: its time says when this copy was made.
    (folder / MANIFEST).write_bytes(text)

    def bring(entry: ArrayEntry) -> None:
        name = f"{entry.name}.npy"
        if linked is None or not _link(linked / name, folder / name):
            with open_part(name) as source:
                _copy(source, folder / name, entry.bytes)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(bring, entries))
    read_snapshot(folder, verify=True)


def _link(source: Path, target: Path) -> bool:
    """Link a file; False where that cannot be: another device, no right to, no links at all."""
    if not stat.S_ISREG(source.lstat().st_mode):
        raise SnapshotError(f"{source} is not a file")
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(source: IO[bytes], target: Path, size: int) -> None:
    """Copy ``size`` bytes and put them on disk: a copy that a crash has holed has its full size."""
    with target.open("xb") as out:
        left = size
        while left and (chunk := source.read(min(left, _CHUNK))):
            out.write(chunk)
            left -= len(chunk)
        if left or source.read(1):
            raise SnapshotError(
                f"{target.name} does not have the {size} bytes that the manifest states"
            )
        to_disk(out)
