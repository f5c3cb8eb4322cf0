"""A temporary folder of a long-lived process, which is cleaned up even if the process is killed.

Its owner holds a lock on it as long as it lives. The maker of the next folder removes those that
are not locked, belong to the same user, and are older than an hour.

It is in a place where other users may write too, so its name cannot be trusted. Before each use it
is checked that the name still leads to the folder that was made, and that no other user can look
into it. A folder that is gone is not made again under its name, which others may know by then. Only
the process that made a folder removes it: a forked child may end before its parent.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from bittern.files import Opened, hold, is_locked, is_private

_PREFIX = "bittern-live-"
#: Seconds after which an unlocked folder is assumed to have lost its owner.
_LEFT = 3600.0


class WorkFolder:
    """A folder of this process; making it removes what killed processes left."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            self._lock = Opened(self.path, os.O_RDONLY)
            hold(self._lock.number)  # without locks nothing is swept
            self._sweep()
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def _sweep(self) -> None:
        for other in self.path.parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):  # another process removed it
                found = other.lstat()
                old = time.time() - found.st_mtime > _LEFT  # a younger one may not be locked yet
                is_left = old and found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode)
                if is_left and not is_locked(other):
                    shutil.rmtree(other, ignore_errors=True)

    def is_usable(self) -> bool:
        """Whether this process made it, and the name leads to it and to nothing else."""
        return self._is_own() and is_private(self.path)

    def _is_own(self) -> bool:
        try:
            found = os.path.samestat(self.path.lstat(), os.fstat(self._lock.number))
        except OSError:
            return False
        return found and not self._lock.is_inherited

    def new(self) -> Path:
        """Make a new folder in it."""
        return Path(tempfile.mkdtemp(dir=self.path))

    def remove(self) -> None:
        """Remove it if this process made it, and release its lock; may be called again."""
        if self._is_own():
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
