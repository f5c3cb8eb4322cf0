"""Kernels for executors: compiled on the driver, they travel as snapshots do.

A worker on a fresh host has no compiled kernels, and would spend its first seconds, half a minute
of a core, on compiling them. So a reference to a snapshot also names a *bundle* of the kernels that
the driver has on disk (``bittern/kept.py``), by the digest of its bytes::

    SnapshotRef(id, uri, ..., kernels=BundleRef(digest, <store>/kernels/<digest>))
                                                       or an artifact of the session

Code is run, so a worker believes the digest in its task and nothing else: it hashes the bytes that
it has read, wherever they were. What is damaged, or cannot be fetched, is left out with a warning,
and a kernel that a bundle does not have, or has for another processor or other versions, is
compiled as if there were none.

Sessions whose executors are this process, or processes of this host, need none: they find what
their user has compiled.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from bittern import precompile
from bittern.errors import SnapshotError
from bittern.first_use import FIRST_USE
from bittern.spark.snapshots import transport
from bittern.spark.told import file_name

logger = logging.getLogger("bittern")

#: More bytes than all kernels have.
_MOST_BYTES = 64 << 20
#: Its room is never part of a match.
_LITERATURE = "bittern.literature."

_mutex = threading.Lock()
_known: set[str] = set()  # bundles that this process has taken, or cannot have


@dataclass(frozen=True)
class BundleRef:
    """What a closure carries of a bundle."""

    #: A hash of its bytes.
    digest: str
    #: Path or URI of the file, if executors can see one.
    uri: str | None = None
    #: Name of the file that Spark ships to the executors, if it does.
    artifact: str | None = None


@functools.cache
def packed() -> tuple[str, bytes]:
    """The digest and bytes of a bundle of this process's kernels. Once per process.

    Those that a first build and match need are compiled, where they are not. The others are what
    is on disk, those of the literature aside.
    """
    from bittern import kept  # noqa: PLC0415 (Numba takes half a second to import)

    for name in FIRST_USE:
        precompile.kernel_named(name).prepare()
    own = [name for name in precompile.modules() if not name.startswith(_LITERATURE)]
    found = [kernel.packed() for name in own for kernel in precompile.kernels(name)]
    data = kept.bundle([each for each in found if each is not None])
    return _digest(data), data


def take(ref: BundleRef) -> None:
    """Have this process load the kernels of a bundle instead of compiling them. Once for each."""
    with _mutex:
        if ref.digest in _known:
            return
        _known.add(ref.digest)
        try:
            data = _fetched(ref)
        except (SnapshotError, OSError) as error:
            logger.warning("bittern: kernels cannot be fetched, and are compiled: %s", error)
            return
        if _digest(data) != ref.digest:
            logger.warning("bittern: kernels have come damaged, and are compiled")
            return
        from bittern import kept  # noqa: PLC0415 (Numba takes half a second to import)

        kept.take(data)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _fetched(ref: BundleRef) -> bytes:
    if ref.uri is not None:
        return transport.read_file(ref.uri, _MOST_BYTES)
    from pyspark import SparkFiles  # noqa: PLC0415 (workers have it loaded, others need none)

    try:
        path = Path(SparkFiles.get(file_name(ref.artifact)))
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except (AssertionError, ValueError) as error:
        raise SnapshotError(f"artifact {ref.artifact!r:.60} cannot be read: {error}") from error


def _after_fork() -> None:
    """Replace, in the child, the lock that a thread of the parent may have held."""
    global _mutex
    _mutex = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
