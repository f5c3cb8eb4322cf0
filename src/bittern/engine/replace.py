"""Replacing a folder by another at once, whatever kills the writer.

The new content is written beside the target, in a folder that its living writer holds a lock on,
and complete and on disk before it takes the name. Where nothing is at the target that is one
rename. Where something is, it takes four steps, each a rename or a removal, so that a complete
folder can be reached at every moment::

    .shop.<token>.writing -> .shop.next       the new one is complete and on disk
    shop -> .shop.<token>.removing            readers that find no shop may open .shop.next
    .shop.next -> shop                        the new one is in place
    remove .shop.<token>.removing

The next writer of the same target first puts right what a killed one left (``only_writer``):
``.shop.next`` takes the name if it is free, and folders that no living writer holds are removed.
Cost: O(entries of the parent folder) for each look, and a few renames.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from bittern.files import hold, is_locked, let_go

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextlib.contextmanager
def only_writer(target: Path, *, recover: bool = True) -> Iterator[int]:
    """Hold the parent folder's lock, with what killed writers left put right. For moments only.

    Gives a descriptor of the parent folder. Putting right takes a look at all that is there: who
    has done so before, and knows that nobody else writes here, need not ``recover``.
    """
    parent = os.open(target.parent, _DIRECTORY)
    try:
        hold(parent)
        if recover:
            _recover(target)
        yield parent
    finally:
        let_go(parent)  # a lock that stayed would keep this process itself waiting for ever


def sibling(target: Path, end: str) -> Path:
    """A hidden name beside the target."""
    return target.with_name(f".{target.name}.{end}")


def new_temporary(target: Path) -> tuple[Path, int]:
    """Make a folder beside the target, and a descriptor whose lock says that its writer lives."""
    temporary, lock = sibling(target, f"{secrets.token_hex(8)}.writing"), -1
    try:
        temporary.mkdir()
        lock = os.open(temporary, _DIRECTORY)
        hold(lock)
    except BaseException:
        remove_temporary(temporary, lock)
        raise
    return temporary, lock


def remove_temporary(temporary: Path, lock: int) -> None:
    """Remove what is left of such a folder, if anything, and let go of it."""
    shutil.rmtree(temporary, ignore_errors=True)
    if lock >= 0:
        os.close(lock)


def put_in_place(folder: Path, target: Path, parent: int) -> None:
    """Give a complete folder of the same file system the target's name. Only for its writer."""
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
