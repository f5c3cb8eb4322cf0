"""Locks that a function holds briefly: an exception at any moment leaves none of them behind.

One that stayed would keep the same process waiting for ever, at its next turn.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from bittern import first_use
from bittern.files import is_locked, new_temporary, only_writer, remove_temporary
from bittern.spark.snapshots import cache_folder
from interrupts import FAULTS, each_fault

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
    first_use.compile_together(KERNEL, lambda: folder, "")


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
    monkeypatch.setattr(first_use, "_run_crew", lambda _: None)
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
