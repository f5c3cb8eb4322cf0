"""Views: which versions of a page file are being read.

A reader registers with its own file in a folder beside the page file, and holds a lock on it as
long as it reads that version::

    tree                          the page file
    tree.views/17.8f3a09...       a reader of version 17
    tree.views/20.c41d77...       a reader of version 20

The writer does not reuse places that version 17 has, and removes the files of readers that died. A
file is locked before it gets its name, so an unlocked file with such a name belongs to a dead
reader. Cost: a file for each view; a look at the folder for each commit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from bittern.errors import PageError
from bittern.files import Opened, hold, is_locked


def folder_of(path: Path) -> Path:
    """Where the readers of a page file register."""
    return path.with_name(f"{path.name}.views")


class ReaderView:
    """A registered reader of this version, until it is closed."""

    def __init__(self, path: Path, version: int) -> None:
        folder = folder_of(path)
        token = secrets.token_hex(8)
        self._file = folder / f"{version}.{token}"
        self._lock: Opened | None = None
        try:
            while not self._file.exists():
                folder.mkdir(exist_ok=True)
                self._register(folder / f".{token}")
        except OSError as error:
            if error.errno != errno.EROFS:  # on a read-only disk nothing changes
                raise PageError(
                    f"a reader of {path} must register in the folder {folder}, but cannot write "
                    f"there ({error.strerror}): give this user write permission, or read a copy"
                ) from error

    def _register(self, unnamed: Path) -> None:
        self._lock = lock = Opened(unnamed, os.O_RDWR | os.O_CREAT, 0o666)
        os.fchmod(lock.number, 0o644)  # the writer, maybe another user, has to see that it is held
        hold(lock.number)
        with contextlib.suppress(FileNotFoundError):  # a writer saw it before the lock: once more
            unnamed.rename(self._file)

    def close(self) -> None:
        """Let the writer use again what only this version reads."""
        if self._lock is not None:
            if not self._lock.is_inherited:  # a child's end does not end its parent's view
                with contextlib.suppress(OSError):
                    self._file.unlink()
            self._lock.close()


def oldest_view(path: Path) -> int | None:
    """The oldest version that a living reader looks at; views of dead readers are removed."""
    versions = []
    try:
        files = list(folder_of(path).iterdir())
    except FileNotFoundError:
        return None
    for file in files:
        if not is_locked(file):
            with contextlib.suppress(OSError):
                file.unlink()
            continue
        version = file.name.partition(".")[0]
        if version.isdecimal():
            versions.append(int(version))
    return min(versions, default=None)
