"""Locks that a function holds briefly: an exception at any moment leaves none of them behind.

One that stayed would keep the same process waiting for ever, at its next turn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bittern import first_use
from bittern.files import is_locked, only_writer
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


@pytest.mark.parametrize("raises", FAULTS)
@pytest.mark.parametrize("hold", [write, fill, clean, compile_first])
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
