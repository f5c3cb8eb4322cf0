"""Views: which versions of a page file somebody is reading.

A reader says so with a file of its own in a folder beside the page file, and holds a lock on it as
long as it looks at that version::

    tree                          the page file
    tree.views/17.8f3a09...       somebody reads version 17
    tree.views/20.c41d77...       somebody else reads version 20

The writer does not use places again that version 17 reads, and removes the files of readers that
died. A file is locked before it gets its name, so that one under such a name that nobody holds is
of a dead reader. Cost: a file for each view; a look at the folder for each commit.
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


class View:
    """Somebody reads this version, until it is closed."""

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
            if error.errno != errno.EROFS:  # where nobody can write, nothing changes
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
