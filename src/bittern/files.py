"""Durable files and folders: each appears complete or not at all, and locks protect writers.

A file is written under a temporary name beside its own, flushed to disk, and renamed
(``whole_file``).

A lock (``flock``) belongs to an open descriptor and ends with the process that holds it, however
that ends. Some file systems have no locks: there, users must make sure that there is one writer at
a time. An interrupt leaves no lock behind: an object keeps its lock on an ``Opened``, a function
takes one for a moment inside ``released``, and ``hold`` and ``try_hold`` take them.

A folder is replaced by another at once, whatever kills the writer. The new content is written
beside the target, in a folder on which its writer holds a lock. It is complete and on disk before
it takes the name. If the target does not exist, that is one rename. If it does, it takes four
steps, each a rename or a removal, so that a complete folder can be found at every moment::

    .shop.<token>.writing -> .shop.next       the new one is complete and on disk
    shop -> .shop.<token>.removing            readers that find no shop may open .shop.next
    .shop.next -> shop                        the new one is in place
    remove .shop.<token>.removing

The next writer of the same target first cleans up after a killed one (``only_writer``):
``.shop.next`` takes the name if it is free, and folders that no living writer holds are removed.
Cost: O(entries of the parent folder) for each scan, and a few renames.

What a process believes or runs lies where nobody else can write: ``is_private``, ``make_private``.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def sync(path: Path) -> None:
    """Flush a file's bytes, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_disk(file: IO[bytes]) -> None:
    """Flush what was written to an open file to disk."""
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def whole_file(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that takes its name, replacing an older file, when it is complete.

    A durable file is on disk by then; the others are for content that can be written again.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")  # as long whatever the name
    try:
        with temporary.open("xb") as file:
            yield file
            if durable:
                to_disk(file)
        temporary.replace(path)
        if durable:
            with contextlib.suppress(PermissionError):  # a folder to write to and not to read
                sync(path.parent)
    except OSError as error:
        if error.filename == str(temporary):  # tell the name that the caller knows
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):  # there is none, or there can be none
            temporary.unlink()


class Opened:
    """A descriptor that is closed with its last owner, so that an interrupt leaves no lock behind.

    A child forked meanwhile does not touch the lock, and does not prevent its release.
    """

    number = -1

    def __init__(self, path: str | os.PathLike[str], flags: int, mode: int = 0o777) -> None:
        self._process = os.getpid()
        self.number = os.open(path, flags | os.O_CLOEXEC, mode)

    @property
    def is_inherited(self) -> bool:
        """Whether it was opened before this process was forked, so that it is the parent's."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Release the lock and close the descriptor; may be repeated after an interrupt."""
        number = self.number
        if number >= 0:
            if not self.is_inherited:
                with contextlib.suppress(OSError):
                    fcntl.flock(number, fcntl.LOCK_UN)
            self.number = -1
            os.close(number)

    def __del__(self) -> None:
        self.close()


@contextlib.contextmanager
def released(descriptor: int) -> Iterator[int]:
    """Release, at the end, a lock that is taken inside, and close the descriptor.

    Closing alone would leave the lock to a child forked meanwhile.
    """
    try:
        yield descriptor
    finally:
        # A lock that stayed would keep this process itself waiting for ever. So no function of ours
        # is called, at whose beginning an interrupt could come.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except OSError:  # no locks here
            pass
        finally:
            os.close(descriptor)


def hold(descriptor: int) -> None:
    """Wait until no other process holds a lock on the file or folder, then take it."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_hold(descriptor: int) -> bool:
    """Take the lock and return true, or return false at once if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # no locks here
    return True


def is_locked(path: Path) -> bool:
    """Whether a living process holds a lock on the file or folder; true if that is not known."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    with released(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def at_exit(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function when this process ends. Children forked from it end without calling it."""
    process = os.getpid()

    def call() -> None:
        if os.getpid() == process:
            function(*arguments)

    atexit.register(call)


@contextlib.contextmanager
def only_writer(target: Path, *, recover: bool = True) -> Iterator[int]:
    """Hold the parent folder's lock, briefly, after cleaning up what killed writers left.

    Gives a descriptor of the parent folder. Cleaning up scans the folder: a writer that has done so
    before, and knows that there is no other writer, need not ``recover``.
    """
    with released(os.open(target.parent, _DIRECTORY)) as parent:
        hold(parent)
        if recover:
            _recover(target)
        yield parent


def sibling(target: Path, end: str) -> Path:
    """A hidden name beside the target."""
    return target.with_name(f".{target.name}.{end}")


def new_temporary(target: Path) -> tuple[Path, Opened]:
    """Make a folder beside the target, and a lock on it which says that its writer lives."""
    temporary, lock = sibling(target, f"{secrets.token_hex(8)}.writing"), None
    try:
        temporary.mkdir()
        lock = Opened(temporary, _DIRECTORY)
        hold(lock.number)
    except BaseException:
        remove_temporary(temporary, lock)
        raise
    return temporary, lock


def remove_temporary(temporary: Path, lock: Opened | None) -> None:
    """Remove what is left of such a folder, if anything, and release its lock."""
    try:
        shutil.rmtree(temporary, ignore_errors=True)
    finally:
        if lock is not None:
            lock.close()


def put_in_place(folder: Path, target: Path, parent: int) -> None:
    """Give a complete folder of the same file system the target's name. For its writer only."""
    following = sibling(target, "next")
    removing = sibling(target, f"{secrets.token_hex(8)}.removing")
    if not target.exists():
        folder.rename(target)
        os.fsync(parent)
        return
    folder.rename(following)
    os.fsync(parent)
    target.rename(removing)
    following.rename(target)
    os.fsync(parent)
    shutil.rmtree(removing, ignore_errors=True)


def _recover(target: Path) -> None:
    following = sibling(target, "next")
    if following.exists():
        if target.exists():
            shutil.rmtree(following)
        else:
            following.rename(target)
    leftover = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{16}\.(writing|removing)")
    for folder in target.parent.iterdir():
        if leftover.fullmatch(folder.name) and not is_locked(folder):
            shutil.rmtree(folder, ignore_errors=True)


def is_private(folder: Path) -> bool:
    """Whether this is a folder of this user's that nobody else may look into or change."""
    found = folder.lstat()
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_own and not stat.S_IMODE(found.st_mode) & 0o077


def make_private(folder: Path) -> bool:
    """Make a private folder, unless it is there; False if another user might have a hand in it.

    Its name is known, so that others may have been there first, with a folder of theirs or a link;
    or may be able to rename a folder on the way to it. ``folder`` is a real path, without links.
    """
    try:
        if not all(map(_keeps_names, folder.parents)):
            return False
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        return is_private(folder)
    except OSError:
        return False


def is_trusted(folder: Path, source: Path) -> bool:
    """Whether what lies in a folder may be run: who can write there owns the ``source`` anyway.

    Beside the source, that is the owner of the source, root and this user. Elsewhere it is root and
    this user alone, in all folders from the user's home on, or from one where all have names of
    their own (the temporary one).
    """
    try:
        owners = {0, os.geteuid()}
        if folder.parent == source:
            found = folder.stat()
            return found.st_uid in owners | {source.stat().st_uid} and not found.st_mode & 0o002
        if not folder.is_absolute():
            return False
        for each in (folder, *folder.parents):
            found = each.lstat()
            if found.st_uid not in owners:
                return False
            if each != folder and found.st_mode & stat.S_ISVTX:
                return True
            if _is_open(found):
                return False
            if each == Path.home():
                return True
    except (OSError, RuntimeError):  # it is not there; there is no home
        return False
    return True


def _is_open(found: os.stat_result) -> bool:
    """Whether others may write; a group that has its user's number is that user alone."""
    return bool(found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid != found.st_uid))


def _keeps_names(folder: Path) -> bool:
    """Whether only this user and root can rename what this user has in a folder."""
    found = folder.lstat()
    is_shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid())
    return is_own and not is_shared
