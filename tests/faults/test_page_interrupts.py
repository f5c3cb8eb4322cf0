"""A page file whose change was interrupted: all of it or nothing, and the next call works.

What a writer cannot know after an interrupt it says: roll back, or open the file again.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bittern.errors import PageError
from bittern.literature.pb_tree.disk import Disk
from bittern.literature.pb_tree.predicate_file import PredicateFile
from bittern.literature.pb_tree.views import folder_of, oldest_view
from interrupts import each_fault

OPTIONS = {"cache_bytes": 128 * 512}
BEFORE = [("<", 100, 1), (">=", 50, 2), ("=", 7, 3), ("!=", 7, 4)]
VALUES = [0, 7, 8, 50, 100, 200]
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda value, constant: value < constant,
    ">=": lambda value, constant: value >= constant,
    "=": lambda value, constant: value == constant,
    "!=": lambda value, constant: value != constant,
}
Rows = list[tuple[str, int, int]]


def expected(rows: Rows) -> list[list[int]]:
    return [
        sorted(sid for operator, constant, sid in rows if HOLDS[operator](value, constant))
        for value in VALUES
    ]


def found(file: PredicateFile) -> list[list[int]]:
    return [sorted(file.search(value).tolist()) for value in VALUES]


def trouble(file: PredicateFile) -> str:
    """What it says instead of answering; nothing if it answers."""
    try:
        found(file)
    except PageError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loss of power is tested here."""
    monkeypatch.setattr(Disk, "sync", lambda _: None)


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], Path]:
    """Copies of a file that has predicates, a new one with each call."""
    original = tmp_path / "original.pb"
    with PredicateFile.create(original, "integer", page_bytes=512, **OPTIONS) as file:
        file.insert_many(*zip(*BEFORE, strict=True))
    numbers = itertools.count()
    return lambda: shutil.copy(original, tmp_path / f"{next(numbers)}.pb")


def writer(path: Path) -> PredicateFile:
    return PredicateFile.open(path, writable=True, **OPTIONS)


NEW: Rows = [("<", 60, 10 + i) for i in range(150)]  # more than a page of sids
CHANGES: dict[str, tuple[Callable[[PredicateFile], Any], Rows]] = {
    "insert": (lambda file: file.insert("=", 8, 5), [*BEFORE, ("=", 8, 5)]),
    "insert_many": (
        lambda file: file.insert_many(*zip(*NEW, strict=True)),
        [*BEFORE, *NEW],
    ),
    "delete": (lambda file: file.delete(">=", 50, 2), [BEFORE[0], *BEFORE[2:]]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change(files: Callable[[], Path], change: str) -> None:
    act, after = CHANGES[change]
    for fault in each_fault(lambda: writer(files()), act, moments=30):
        file = fault.subject
        if told := trouble(file):
            assert "roll back" in told, fault
            assert fault.caught is not None, fault
            file.rollback()
            assert found(file) == expected(BEFORE), fault
        now = found(file)
        assert now in (expected(BEFORE), expected(after)), fault
        if fault.caught is None:
            assert now == expected(after), fault
        file.insert("=", 200, 9)
        file.commit()
        file.check()
        file.close()


def test_a_commit(files: Callable[[], Path]) -> None:
    after = [*BEFORE, *NEW]

    def make() -> tuple[PredicateFile, Path]:
        path = files()
        file = writer(path)
        file.insert_many(*zip(*NEW, strict=True))
        return file, path

    for fault in each_fault(make, lambda made: made[0].commit()):
        file, path = fault.subject
        with PredicateFile.open(path, **OPTIONS) as reader:  # beside the writer, whatever it knows
            stored = found(reader)
        assert stored in (expected(BEFORE), expected(after)), fault
        if fault.caught is None:
            assert stored == expected(after), fault
        if told := trouble(file):
            if "roll back" in told:
                file.rollback()
            else:
                assert "open it again" in told, fault
                file.close()
                file = writer(path)
            assert found(file) == stored, fault
        assert found(file) in (stored, expected(after)), fault
        file.insert("=", 200, 9)
        file.commit()
        file.check()
        file.close()
        with PredicateFile.open(path, **OPTIONS) as reader:
            reader.check()
            assert 9 in reader.search(200).tolist(), fault


def test_a_rollback(files: Callable[[], Path]) -> None:
    def make() -> PredicateFile:
        file = writer(files())
        file.insert_many(*zip(*NEW, strict=True))
        return file

    for fault in each_fault(make, lambda file: file.rollback(), moments=30):
        file = fault.subject
        if told := trouble(file):
            assert "roll back" in told or "open it again" in told, fault
        else:
            assert found(file) in (expected(BEFORE), expected([*BEFORE, *NEW])), fault
        if "open it again" in told:
            file.close()
            continue
        file.rollback()
        assert found(file) == expected(BEFORE), fault
        file.insert("=", 200, 9)
        file.commit()
        file.check()
        file.close()


def test_creating(tmp_path: Path) -> None:
    numbers = itertools.count()

    def create(path: Path) -> PredicateFile:
        return PredicateFile.create(path, "integer", page_bytes=512, **OPTIONS)

    for fault in each_fault(lambda: tmp_path / f"{next(numbers)}.pb", create):
        if isinstance(fault.result, PredicateFile):
            fault.result.close()
        fault.caught = fault.result = None  # or its traceback holds what was opened
        path = fault.subject
        with writer(path) if path.exists() else create(path) as file:
            file.insert("=", 7, 3)
        with PredicateFile.open(path, **OPTIONS) as file:
            assert found(file) == expected([("=", 7, 3)]), fault


@pytest.mark.parametrize("writable", [True, False])
def test_opening_and_closing(files: Callable[[], Path], *, writable: bool) -> None:
    """Beside a writer, if for reading; no view and no lock is left."""

    def make() -> tuple[Path, PredicateFile | None]:
        path = files()
        return path, None if writable else writer(path)

    def use(made: tuple[Path, PredicateFile | None]) -> None:
        PredicateFile.open(made[0], writable=writable, **OPTIONS).close()

    for fault in each_fault(make, use):
        fault.caught = None  # or its traceback holds what was opened
        path, other = fault.subject
        file = writer(path) if other is None else other
        assert oldest_view(path) is None, fault
        assert not folder_of(path).exists() or not [*folder_of(path).iterdir()], fault
        file.insert("=", 8, 5)
        file.commit()
        assert found(file) == expected([*BEFORE, ("=", 8, 5)]), fault
        file.close()


def test_closing_once_more(files: Callable[[], Path]) -> None:
    def make() -> tuple[PredicateFile, PredicateFile, Path]:
        path = files()
        return writer(path), PredicateFile.open(path, **OPTIONS), path

    def close(made: tuple[PredicateFile, PredicateFile, Path]) -> None:
        made[1].close()
        made[0].close()

    for fault in each_fault(make, close):
        close(fault.subject)
        path = fault.subject[2]
        assert oldest_view(path) is None, fault
        with writer(path) as file:
            assert found(file) == expected(BEFORE), fault


def test_refreshing(files: Callable[[], Path]) -> None:
    after = [*BEFORE, ("=", 8, 5)]

    def make() -> tuple[PredicateFile, PredicateFile, Path]:
        path = files()
        file, reader = writer(path), PredicateFile.open(path, **OPTIONS)
        file.insert("=", 8, 5)
        file.commit()
        return file, reader, path

    for fault in each_fault(make, lambda made: made[1].refresh()):
        fault.caught = None
        file, reader, path = fault.subject
        if told := trouble(reader):
            assert "open it again" in told, fault
        else:
            assert found(reader) in (expected(BEFORE), expected(after)), fault
            reader.refresh()
            assert found(reader) == expected(after), fault
            if "flock" not in fault.place:  # where it fails there are no locks, is the rule
                assert oldest_view(path) == file.version, fault
        reader.close()
        assert oldest_view(path) is None, fault
        file.close()
