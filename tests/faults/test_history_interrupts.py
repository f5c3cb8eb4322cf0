"""A history whose change was interrupted, at whatever moment: all of it or nothing, and it knows.

What is in memory is compared with what the file has, by opening it anew.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bittern import Index, LiveMatcher
from bittern.history import History
from bittern.history.documents import file as document_file
from bittern.history.documents.documents import Documents
from interrupts import each_fault

#: Documents that are there before the change: with the eighth, segments of one become one.
BEFORE = [{"isbn": name, "price": price} for price, name in enumerate("abcabca")]
NEW = [{"isbn": "a", "price": 99}, {"isbn": "z", "price": 1}]
TABLE = pa.Table.from_pylist(NEW)  # nothing that is raised while it is read makes it unreadable
NEXT = {"isbn": "n", "price": 5}
PROBES = [{"isbn": name, "price": price} for name in "abnz" for price in (0, 3, 50, 99)]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.build(
        {
            "new": "NOT EXISTS d (d.isbn = isbn)",
            "fell": "EXISTS d IN LAST 1 PER isbn (d.price > price)",
            "highest": "FORALL d (price > d.price)",
            "odd": "price > 0 AND EXISTS d IN LAST 4 (d.price > price AND d.isbn != isbn)",
        }
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug here, so that nothing has to wait for the disk."""
    pragmas = [*document_file._PRAGMAS, "PRAGMA synchronous = OFF"]
    monkeypatch.setattr(document_file, "_PRAGMAS", pragmas)
    monkeypatch.setattr(document_file, "sync", lambda _: None)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Copies of the folder of a history, a new one with each call."""
    numbers = itertools.count()
    with Documents(tmp_path / "original") as documents:
        for event in BEFORE:
            documents.append([event])

    def copy() -> Path:
        return shutil.copytree(tmp_path / "original", tmp_path / str(next(numbers)))

    return copy


def held(documents: Documents) -> list[tuple[Any, int]]:
    """All documents, as they are read again."""
    found = []
    for _, typed in documents.scan(["isbn", "price"]):
        kinds, words, ties, heap = typed
        for i in range(kinds.shape[1]):
            length = int.from_bytes(heap[ties[0, i] :][:8].tobytes(), "little")
            name = heap[ties[0, i] + 8 :][:length].tobytes().decode()
            found.append((name, int(words[1, i])))
    return found


def content(events: list[dict[str, Any]]) -> list[tuple[Any, int]]:
    with Documents() as documents:
        documents.append(events)
        return held(documents)


def judge(fault: Any, documents: Documents, path: Path | None, either: list[Any]) -> None:
    """All of the change or nothing, in memory as on disk; what comes next is taken."""
    found = held(documents)
    assert found in either, fault
    if fault.caught is None:
        assert found == either[-1], fault
    documents.check()
    number = documents.append([NEXT])
    assert number == documents.end - 1, fault
    assert held(documents) == found + content([NEXT]), fault
    documents.check()
    numbers = documents.first, documents.end
    documents.close()
    if path is not None:
        with Documents(path) as again:
            assert (again.first, again.end) == numbers, fault
            assert held(again) == found + content([NEXT]), fault
            again.check()


@pytest.mark.parametrize("events", [NEW[:1], NEW], ids=["merged", "two"])
def test_an_append(folders: Callable[[], Path], events: list[Any]) -> None:
    either = [content(BEFORE), content(BEFORE + events)]

    def make() -> tuple[Documents, Path]:
        path = folders()
        return Documents(path), path

    for fault in each_fault(make, lambda made: made[0].append(events), moments=30):
        judge(fault, *fault.subject, either)


def test_an_append_in_memory() -> None:
    either = [content(BEFORE), content(BEFORE + NEW)]

    def make() -> Documents:
        documents = Documents()
        documents.append(BEFORE)
        return documents

    for fault in each_fault(make, lambda made: made.append(NEW), moments=30):
        judge(fault, fault.subject, None, either)


def test_expiring_gives_room_back_or_not(tmp_path: Path) -> None:
    """So much goes that the file is cut."""
    original = tmp_path / "original"
    large = [{"isbn": f"{i}" * 3000, "price": i} for i in range(8)]
    with Documents(original) as documents:
        for event in large:
            documents.append([event] * 3)
        documents.append([{"isbn": "last", "price": 9}])
        stored = held(documents)
    numbers = itertools.count()

    def make() -> tuple[Documents, Path]:
        path = shutil.copytree(original, tmp_path / str(next(numbers)))
        return Documents(path), path

    for fault in each_fault(make, lambda made: made[0].expire(24), moments=30):
        judge(fault, *fault.subject, [stored, stored[24:]])


def test_a_check(folders: Callable[[], Path]) -> None:
    def make() -> tuple[Documents, Path]:
        path = folders()
        return Documents(path), path

    for fault in each_fault(make, lambda made: made[0].check(), moments=12):
        judge(fault, *fault.subject, [content(BEFORE)])


def test_a_walk_that_was_interrupted_does_not_keep_segments_from_merging() -> None:
    def make() -> Documents:
        documents = Documents()
        for event in BEFORE:
            documents.append([event])
        return documents

    for fault in each_fault(make, held, moments=12):
        fault.caught = None  # or its traceback keeps the walk alive
        documents = fault.subject
        documents.append([NEXT])
        assert documents.statistics()["segments"] == 1, fault


def test_opening_and_making_a_folder(tmp_path: Path, folders: Callable[[], Path]) -> None:
    numbers = itertools.count()
    for make, expected in (
        (folders, content(BEFORE)),
        (lambda: tmp_path / f"new {next(numbers)}", []),
    ):
        for fault in each_fault(make, Documents, moments=24):
            if isinstance(fault.result, Documents):
                fault.result.close()
            fault.result = None
            with Documents(fault.subject) as documents:
                assert held(documents) == expected, fault
                documents.append([NEXT])
                documents.check()


def test_closing(folders: Callable[[], Path]) -> None:
    def make() -> tuple[Documents, Path]:
        path = folders()
        return Documents(path), path

    for fault in each_fault(make, lambda made: made[0].close(), moments=8):
        documents, path = fault.subject
        documents.close()
        with Documents(path) as again:
            assert held(again) == content(BEFORE), fault


def test_a_file_that_cannot_be_asked_is_asked_again(
    folders: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C once more, while the file is asked what became of the change."""
    documents = Documents(folders())
    settle = Documents._settle

    def interrupted(self: Documents) -> None:
        monkeypatch.setattr(Documents, "_settle", settle)
        raise KeyboardInterrupt

    monkeypatch.setattr(Documents, "_settle", interrupted)
    monkeypatch.setattr(Documents, "_added", lambda *_: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        documents.append(NEW)
    monkeypatch.undo()
    assert documents.end == len(BEFORE)
    documents.append(NEW)
    documents.check()
    assert held(documents) == content(BEFORE + NEW)


# ------------------------------------------------------------------ with a matcher


class Following:
    """A matcher of a history in a folder."""

    def __init__(self, index: Index, path: Path, keep: int | None) -> None:
        self._index, self._path, self._keep = index, path, keep
        self.history = History(path, keep=keep)
        self.live = LiveMatcher(index, history=self.history)
        self.live.match(NEXT, remember=False)  # so that it has something to be wrong about

    def close(self) -> None:
        self.live.close()
        self.history.close()

    def judge(self, fault: Any, either: list[list[Any]]) -> None:
        """Its answers are those of a matcher that was not there when it happened."""
        found = held(self.history.documents)
        assert found in either, fault
        if fault.caught is None:
            assert found == either[-1], fault
        self._compare(fault)
        self.live.match(NEXT)
        assert held(self.history.documents)[-1:] == content([NEXT]), fault
        self._compare(fault)
        self.history.documents.check()
        self.close()
        shutil.rmtree(self._path)

    def _compare(self, fault: Any) -> None:
        copy = shutil.copytree(self._path, self._path.with_name(f"{self._path.name} copy"))
        with History(copy, keep=self._keep) as anew, LiveMatcher(self._index, history=anew) as live:
            assert (self.history.first, self.history.end) == (anew.first, anew.end), fault
            answers = self.live.match(PROBES, remember=False).to_pylist()
            assert answers == live.match(PROBES, remember=False).to_pylist(), fault
        shutil.rmtree(copy)


@pytest.mark.parametrize("keep", [None, 3])
def test_a_match_that_remembers(
    index: Index, folders: Callable[[], Path], keep: int | None
) -> None:
    either = [content(BEFORE), content(BEFORE + NEW)]
    if keep is not None:
        either.append(content((BEFORE + NEW)[-keep:]))
    for fault in each_fault(
        lambda: Following(index, folders(), keep), lambda made: made.live.match(TABLE), moments=24
    ):
        fault.subject.judge(fault, either)


def test_a_match_at_once(index: Index, folders: Callable[[], Path]) -> None:
    either = [content(BEFORE), content(BEFORE + NEW)]
    for fault in each_fault(
        lambda: Following(index, folders(), None),
        lambda made: made.live.match(TABLE, at_once=True),
        moments=24,
    ):
        fault.subject.judge(fault, either)


def test_the_first_match_of_a_matcher(index: Index, folders: Callable[[], Path]) -> None:
    """All that is known of the documents is made by it."""

    def make() -> Following:
        made = Following(index, folders(), None)
        made.live.close()
        made.live = LiveMatcher(index, history=made.history)
        return made

    either = [content(BEFORE), content(BEFORE + NEW)]
    for fault in each_fault(make, lambda made: made.live.match(TABLE), moments=24):
        fault.subject.judge(fault, either)


def test_a_subscription_that_comes_later(index: Index, folders: Callable[[], Path]) -> None:
    def make() -> Following:
        made = Following(index, folders(), None)
        made.live.subscribe("late", "EXISTS d (d.price < price AND d.isbn != isbn)")
        return made

    either = [content(BEFORE), content(BEFORE + NEW)]
    for fault in each_fault(make, lambda made: made.live.match(TABLE), moments=24):
        fault.subject.live.unsubscribe("late")
        fault.subject.judge(fault, either)


@pytest.mark.parametrize("keep", [None, 3])
def test_an_append_that_a_matcher_follows(
    index: Index, folders: Callable[[], Path], keep: int | None
) -> None:
    either = [content(BEFORE), content(BEFORE + NEW)]
    if keep is not None:
        either.append(content((BEFORE + NEW)[-keep:]))
    for fault in each_fault(
        lambda: Following(index, folders(), keep),
        lambda made: made.history.append(TABLE),
        moments=24,
    ):
        fault.subject.judge(fault, either)


def test_expiring_that_a_matcher_follows(index: Index, folders: Callable[[], Path]) -> None:
    either = [content(BEFORE), content(BEFORE[5:])]
    for fault in each_fault(
        lambda: Following(index, folders(), None), lambda made: made.history.expire(5), moments=24
    ):
        fault.subject.judge(fault, either)


def test_opening_and_closing_a_matcher(index: Index, folders: Callable[[], Path]) -> None:
    for fault in each_fault(
        folders, lambda path: LiveMatcher(index, history=path).close(), moments=24
    ):
        fault.caught = None  # or its traceback holds what was opened
        with LiveMatcher(index, history=fault.subject) as live:
            assert live.match(NEXT).to_pylist(), fault
