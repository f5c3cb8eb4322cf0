"""Files that outlive their writers: what is on disk, and whose writer is alive.

A lock (``flock``) belongs to an open descriptor and goes with the process that holds it, however
that ends. Some file systems have none: there, one writer at a time is the user's promise.

A lock that an object keeps is on an ``Opened``, which an interrupt cannot leave behind. One that is
held for moments, within a function, is on a plain descriptor: ``hold`` or ``try_hold``, ``let_go``.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def sync(path: Path) -> None:
    """Have a file's bytes, or a folder's entries, on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Opened:
    """A descriptor that is closed with its last owner, so that an interrupt leaves no lock behind.

    A child forked meanwhile leaves the lock alone, and does not keep it from being let go.
    """

    number = -1

    def __init__(self, path: str | os.PathLike[str], flags: int, mode: int = 0o777) -> None:
        self._process = os.getpid()
        self.number = os.open(path, flags | os.O_CLOEXEC, mode)

    @property
    def is_inherited(self) -> bool:
        """Whether it was opened before this process was forked, and is the parent's."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Let go of the lock, and close it; once, and again if that was interrupted."""
        number = self.number
        if number >= 0:
            if not self.is_inherited:
                with contextlib.suppress(OSError):
                    fcntl.flock(number, fcntl.LOCK_UN)
            self.number = -1
            os.close(number)

    def __del__(self) -> None:
        self.close()


def hold(descriptor: int) -> None:
    """Wait until nobody else holds a lock on the file or folder, and hold it."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_hold(descriptor: int) -> bool:
    """Hold the lock, or say at once that somebody else does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # no locks here
    return True


def is_locked(path: Path) -> bool:
    """Whether somebody alive holds a lock on the file or folder, or that cannot be known."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def let_go(descriptor: int) -> None:
    """Close it, and with it the lock, which a child forked meanwhile would otherwise keep."""
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def at_exit(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function when this process ends. Children forked from it end without calling it."""
    process = os.getpid()

    def call() -> None:
        if os.getpid() == process:
            function(*arguments)

    atexit.register(call)
