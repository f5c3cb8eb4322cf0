"""The bytes of a page file: every read and write from outside kernels, every wait for the disk.

A place is ``page_bytes`` long. Places side by side are read and written together.
"""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bittern.arrays import Int64s
from bittern.errors import PageError
from bittern.files import Opened, hold, try_hold, whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RUN_BYTES = 1 << 20


def create_file(path: Path, data: bytes) -> None:
    """Create a file that appears only when it is complete, and that replaces no other."""
    try:
        parent = Opened(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            hold(parent.number)  # no other process creates a file here now
            if os.path.lexists(path):
                raise PageError(f"{path} exists already: open it, or remove it first")
            with whole_file(path) as file:
                file.write(data)
        finally:
            parent.close()
    except OSError as error:
        raise PageError(f"cannot create the page file {path}: {error.strerror}") from error


class Disk:
    """An open file, by places."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path.resolve()
        """Whatever the name it was opened by: readers and writer meet beside it."""
        self.page_bytes = 0
        """Set by the caller that has read the meta."""
        self.writes = 0
        """Pages written so far."""
        mode = os.O_RDWR if writable else os.O_RDONLY
        try:
            self._opened = Opened(path, mode | os.O_NONBLOCK)
        except FileNotFoundError:
            raise PageError(f"there is no page file {path}: create it first") from None
        except OSError as error:
            raise PageError(f"cannot open the page file {path}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(self.file).st_mode):
            self.close()
            raise PageError(f"{path} is not a page file")
        if writable and not try_hold(self.file):
            self.close()
            raise PageError(
                f"{path} is in use by another writer: close it there, or open it for reading"
            )

    @property
    def file(self) -> int:
        """Its descriptor."""
        return self._opened.number

    @property
    def size(self) -> int:
        """The file's bytes."""
        return os.fstat(self.file).st_size

    def read(self, offset: int, size: int) -> bytes:
        """So many bytes; zeros where the file does not have them."""
        parts = []
        while size and (part := self._read(offset, size)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join([*parts, bytes(size)])

    def _read(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self.file, size, offset)
        except OSError as error:
            raise PageError(f"{self.path} cannot be read: {error.strerror}") from error

    def read_pages(self, places: Int64s) -> NDArray[np.uint64]:
        """The pages at these places, a row each."""
        pages = np.zeros((len(places), self.page_bytes // 8), np.uint64)
        order = np.argsort(places, kind="stable")
        places = places[order]
        for start, end in self._runs(places):
            offset, size = int(places[start]) * self.page_bytes, (end - start) * self.page_bytes
            data = np.frombuffer(self.read(offset, size), np.uint64)
            pages[order[start:end]] = data.reshape(end - start, -1)
        return pages

    def write_pages(self, pages: NDArray[np.uint64], rows: Int64s, places: Int64s) -> None:
        """Write these rows of pages to these places."""
        order = np.argsort(places, kind="stable")
        rows, places = rows[order], places[order]
        for start, end in self._runs(places):
            self.write(int(places[start]) * self.page_bytes, pages[rows[start:end]].tobytes())
            self.writes += end - start

    def _runs(self, places: Int64s) -> list[tuple[int, int]]:
        """Where in ascending places each run of neighbours begins and ends."""
        cuts = np.flatnonzero(np.diff(places) != 1) + 1
        bounds = [0, *cuts.tolist(), len(places)]
        most = _RUN_BYTES // self.page_bytes
        return [
            (start, min(start + most, end))
            for first, end in itertools.pairwise(bounds)
            for start in range(first, end, most)
        ]

    def write(self, offset: int, data: bytes) -> None:
        """Every write is one of these."""
        rest = memoryview(data)
        while rest:
            done = os.pwrite(self.file, rest, offset)
            offset, rest = offset + done, rest[done:]

    def sync(self) -> None:
        """Flush what was written to disk."""
        os.fsync(self.file)

    def cut(self, size: int) -> None:
        """Shorten the file."""
        os.ftruncate(self.file, size)

    @property
    def is_inherited(self) -> bool:
        """Whether it was opened before this process was forked, and is the parent's."""
        return self._opened.is_inherited

    def close(self) -> None:
        """Let go of the file, once."""
        self._opened.close()
