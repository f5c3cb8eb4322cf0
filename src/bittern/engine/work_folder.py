"""A temporary folder of a process that lives long, which does not stay when it is killed.

Its owner holds a lock on it as long as it lives. Whoever makes the next one removes those that
nobody holds, are its own user's, and are older than an hour.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from bittern.files import hold, is_locked

_PREFIX = "bittern-live-"
#: Seconds after which a folder that nobody holds is taken for a killed owner's.
_LEFT = 3600.0


def new_work_folder() -> tuple[Path, int]:
    """Make a folder, and a descriptor whose lock says that its owner lives; sweep what is left."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    hold(lock)  # without locks nothing is swept
    for other in folder.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else removed it
            found = other.lstat()
            old = time.time() - found.st_mtime > _LEFT  # a younger one may not be locked yet
            if old and found.st_uid == os.getuid() and not is_locked(other):
                shutil.rmtree(other, ignore_errors=True)
    return folder, lock


def remove_work_folder(folder: Path, lock: int) -> None:
    """Remove it, and let go of it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
