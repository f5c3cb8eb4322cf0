"""Locks that a function holds briefly: an exception at any moment leaves none of them behind.

One that stayed would keep the same process waiting for ever, at its next turn.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from bittern import first_use
from bittern.engine.snapshot import folder as snapshot_folder
from bittern.engine.snapshot.folder import write_snapshot
from bittern.files import is_locked, new_temporary, only_writer, remove_temporary
from bittern.spark.snapshots import cache_folder
from interrupts import FAULTS, each_fault
from steady import PATIENCE

#: The name of an entry of the cache.
ENTRY = "0" * 32
KERNEL = first_use.FIRST_USE[0]


def write(folder: Path) -> None:
    with only_writer(folder / "target"):
        pass


def fill(folder: Path) -> None:
    with cache_folder.locked(folder, ENTRY):
        pass


def clean(folder: Path) -> None:
    (folder / ENTRY).mkdir(exist_ok=True)
    cache_folder.clean(folder, older_than=-1, keep_bytes=0)


def compile_first(folder: Path) -> None:
    first_use._asked = False
    first_use.compile_together(KERNEL, lambda: folder)


def look(folder: Path) -> None:
    is_locked(folder)


@pytest.mark.parametrize("raises", FAULTS)
@pytest.mark.parametrize("hold", [write, fill, clean, compile_first, look])
def test_an_exception_leaves_no_lock(
    hold: Callable[[Path], None],
    raises: Callable[[], BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_use, "_asked", False)
    monkeypatch.setattr(first_use, "n_cores", lambda: 2)
    monkeypatch.setattr(first_use, "_run_crew", lambda: None)
    for fault in each_fault(lambda: tmp_path, hold, faults=[raises]):
        files = [path for path in tmp_path.iterdir() if path.suffix in (".lock", ".use")]
        assert not [path for path in (tmp_path, *files) if is_locked(path)], fault
        hold(tmp_path)


def test_what_an_interrupted_removal_leaves_is_removed_by_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    temporary, lock = new_temporary(tmp_path / "target")
    with monkeypatch.context() as during:
        during.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove_temporary(temporary, lock)
    with only_writer(tmp_path / "target"):
        pass
    assert not temporary.exists()


def test_an_interrupt_before_a_removal_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    path = tmp_path / "snapshot"
    with monkeypatch.context() as during:
        during.setattr(snapshot_folder, "remove_temporary", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_snapshot(path, {}, {})
    write_snapshot(path, {}, {})  # cleans up, since nobody holds what was left
    assert list(tmp_path.iterdir()) == [path]


#: What is in place at the end, and the child's other half of the pipe.
FORKED_MEANWHILE = """
import os, sys
from pathlib import Path
from bittern.files import is_locked, new_temporary, remove_temporary
target = Path(sys.argv[1])
temporary, lock = new_temporary(target)
read, write = os.pipe()
if (child := os.fork()) == 0:
    os.close(write)
    os.read(read, 1)  # until the parent is done
    os._exit(0)
temporary.rename(target)
remove_temporary(temporary, lock)
print(is_locked(target))
os.close(write)
os.waitpid(child, 0)
"""


def test_a_child_forked_meanwhile_does_not_keep_what_is_in_place(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED_MEANWHILE, str(tmp_path / "target")],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout == "False\n"
