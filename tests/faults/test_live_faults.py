"""An exception in the middle of any change of a live matcher: all of the change is there, or none.

What ``len``, ``in``, ``expression`` and ``match`` say has to be the same dictionary each time, that
before the change or that after it, and the next change has to work.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bittern
from answers import build
from bittern.engine.live import changes as changes_module
from bittern.engine.live import compact as compact_module
from bittern.engine.live import delta as delta_module
from bittern.engine.live import layers as layers_module
from bittern.engine.live.compact import Child, Compaction
from bittern.errors import BitternError
from interrupts import FAULTS, Fault, each_fault
from live_cases import EVENTS, HOLDS
from steady import PATIENCE

BASE = {0: "a = 1", "0": "b = 'x'", "x": "a > 0 AND b IS NULL", "gone": "TRUE", "base": "a IS NULL"}
INDEX = build(BASE)
#: Sealed before the change, and not.
DELTA = {1: "a = 1.0", "y": "b LIKE 'x%'", "later": "TRUE"}
PENDING = {2: "a BETWEEN 2 AND 4", "z": "NOT (a = 1 AND b = 'x')"}
IDS = (*BASE, *DELTA, *PENDING, "new", "newer", 3)

Held = dict[Any, str]

# An exception just after a file was opened leaves it to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here loses power: a call of the system's in the place of a slow one."""
    monkeypatch.setattr(os, "fsync", os.fstat)


def changed() -> bittern.LiveMatcher:
    """A matcher of a snapshot, a delta, marks of the dead, and changes that nobody has seen."""
    live = bittern.LiveMatcher(INDEX)
    for id_, text in DELTA.items():
        live.subscribe(id_, text)
    live.unsubscribe("gone")
    live.seal()
    for id_, text in PENDING.items():
        live.subscribe(id_, text)
    live.unsubscribe("base")
    live.replace("later", "c.d = 0.5")
    return live


BEFORE: Held = {
    id_: text for id_, text in (BASE | DELTA | PENDING).items() if id_ not in ("gone", "base")
} | {"later": "c.d = 0.5"}


def held(live: bittern.LiveMatcher) -> Held:
    """What is subscribed, in which everything agrees."""
    found = {id_: live.expression(id_) for id_ in IDS if id_ in live}
    assert len(live) == len(found)
    right = [
        sorted(repr(id_) for id_, text in found.items() if HOLDS[text][event])
        for event in range(len(EVENTS))
    ]
    matches = live.match(EVENTS).to_pylist()
    assert [sorted(map(repr, ids)) for ids in matches] == right
    assert len(live) == len(found)
    return found


def judge(fault: Fault[bittern.LiveMatcher], *possible: Held) -> None:
    """All or nothing; and the next change works."""
    live = fault.subject
    found = held(live)
    assert found in possible, fault
    if fault.caught is None:
        assert found == possible[-1], fault
    live.replace(0, "TRUE")
    assert held(live) == found | {0: "TRUE"}, fault


def without(*ids: Any) -> Held:
    return {id_: text for id_, text in BEFORE.items() if id_ not in ids}


CHANGES: dict[str, tuple[Any, Held]] = {
    "subscribe": (lambda live: live.subscribe("new", "TRUE"), BEFORE | {"new": "TRUE"}),
    "subscribe again": (lambda live: live.subscribe("base", "TRUE"), BEFORE | {"base": "TRUE"}),
    "unsubscribe from the snapshot": (lambda live: live.unsubscribe("x"), without("x")),
    "unsubscribe from a delta": (lambda live: live.unsubscribe(1), without(1)),
    "unsubscribe what nobody saw": (lambda live: live.unsubscribe("z"), without("z")),
    "unsubscribe what was replaced": (lambda live: live.unsubscribe("later"), without("later")),
    "replace in the snapshot": (lambda live: live.replace("x", "TRUE"), BEFORE | {"x": "TRUE"}),
    "replace in a delta": (lambda live: live.replace(1, "TRUE", 2.0), BEFORE | {1: "TRUE"}),
    "replace what nobody saw": (lambda live: live.replace(2, "TRUE"), BEFORE | {2: "TRUE"}),
    "apply": (
        lambda live: live.apply(
            ["x", 1, "z", "unknown"],
            [("new", "TRUE", None), ("y", "a = 1", 2.0), (2, "a =", None), ("base", "TRUE", None)],
            7,
        ),
        without("x", 1, "z", 2) | {"new": "TRUE", "y": "a = 1", "base": "TRUE"},
    ),
    "subscribe many": (
        lambda live: live.subscribe_many({"new": "TRUE", "base": "TRUE", "newer": "a = 1"}),
        BEFORE | {"new": "TRUE", "base": "TRUE", "newer": "a = 1"},
    ),
    "unsubscribe many": (
        lambda live: live.unsubscribe_many(["x", 1, "z", "later"]),
        without("x", 1, "z", "later"),
    ),
    "seal": (lambda live: live.seal(), BEFORE),
    "match": (lambda live: live.match(EVENTS), BEFORE),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_or_nothing_of_a_change(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_module, "SPARE_SHAPES", 1)  # so that shapes are forgotten, too
    make_change, after = CHANGES[change]
    for fault in each_fault(changed, make_change, unmake=lambda live: live.close()):
        live = fault.subject
        if change == "apply":
            assert (held(live) == after) == (live.version == 7), fault
        judge(fault, BEFORE, after)


@pytest.mark.parametrize("change", ["subscribe", "subscribe many", "unsubscribe many", "replace"])
def test_all_or_nothing_where_writers_index(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change seals, and makes one delta of several."""
    monkeypatch.setattr(changes_module, "SEAL_AFTER", 0)
    monkeypatch.setattr(delta_module, "SMALL_DELTA", 0)
    monkeypatch.setattr(delta_module, "FOLD_RATIO", 0)
    make_change, after = CHANGES["replace in the snapshot" if change == "replace" else change]
    for fault in each_fault(changed, make_change, unmake=lambda live: live.close()):
        judge(fault, BEFORE, after)


def test_a_change_that_fails_half_way_is_none() -> None:
    def rows() -> Iterator[tuple[Any, str, None]]:
        yield "new", "TRUE", None
        raise BitternError("no more rows")

    with changed() as live:
        with pytest.raises(BitternError, match="no more rows"):
            live.apply(["x"], rows(), 7)
        assert live.version == 0
        assert held(live) == BEFORE


# ------------------------------------------------------------------ compaction


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction in this process."""
    monkeypatch.setattr(Child, "run", staticmethod(compact_module.main))


def wait_for_compactions() -> None:
    for thread in threading.enumerate():
        if isinstance(thread, Compaction):
            thread.join(PATIENCE)
            assert not thread.is_alive()


COMPACTIONS: dict[str, tuple[Callable[[bittern.LiveMatcher], Any], Held]] = {
    "by itself": (lambda live: live.subscribe("new", "TRUE"), BEFORE | {"new": "TRUE"}),
    "of a version": (
        lambda live: live.apply(["x"], [("new", "TRUE", None)], 7),
        without("x") | {"new": "TRUE"},
    ),
    "asked for": (lambda live: live.compact(), BEFORE),
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("change", COMPACTIONS)
def test_all_or_nothing_of_a_change_that_starts_a_compaction(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_change, after = COMPACTIONS[change]
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 10)

    def make() -> bittern.LiveMatcher:
        live = changed()
        live._compact_from = 0
        return live

    for fault in each_fault(make, make_change, moments=12, unmake=lambda live: live.close()):
        wait_for_compactions()
        judge(fault, BEFORE, after)
        live = fault.subject
        found = held(live)
        assert len(live.compact()) == len(found), fault
        assert held(live) == found, fault


class Swapping:
    """A compaction that has ended, with changes made meanwhile, before its result is taken."""

    def __init__(self) -> None:
        self.live = changed()
        self.compaction = self.live._start_compaction()
        self.compaction.make()
        self.live.replace("y", "a = 1")  # in the snapshot's rows, sealed in another delta
        self.live.subscribe("new", "TRUE")
        self.live.unsubscribe("x")
        self.live.seal()
        self.live.replace("new", "FALSE")  # in a delta that the compaction does not know
        self.live.replace(0, "a = 1.0")
        self.live.unsubscribe(1)
        self.live.subscribe("newer", "TRUE")

    def swap(self) -> None:
        self.compaction._done(self.compaction)


SWAPPED = without("x", 1) | {"y": "a = 1", "new": "FALSE", 0: "a = 1.0", "newer": "TRUE"}


@pytest.mark.usefixtures("at_once")
def test_all_or_nothing_of_a_compaction(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    caplog.set_level("CRITICAL")
    start = Compaction.start
    monkeypatch.setattr(Compaction, "start", lambda _: None)
    for fault in each_fault(
        Swapping, Swapping.swap, moments=30, unmake=lambda made: made.live.close()
    ):
        live = fault.subject.live
        assert held(live) == SWAPPED, fault
        assert live._running is None, fault
        if fault.subject.compaction.failure is not None:
            assert live.base()[0] is INDEX, fault
        live.subscribe(3, "TRUE")
        monkeypatch.setattr(Compaction, "start", start)
        live.compact()
        monkeypatch.setattr(Compaction, "start", lambda _: None)
        assert held(live) == SWAPPED | {3: "TRUE"}, fault


def test_closing_again_after_a_fault() -> None:
    """Where the disk fails, the folder is left to be swept."""
    for fault in each_fault(changed, lambda live: live.close(), faults=FAULTS[:2]):
        fault.subject.close()
        assert not fault.subject._work_folder.path.exists(), fault
        assert held(fault.subject) == BEFORE, fault


# ------------------------------------------------------------------ snapshots


@pytest.mark.parametrize("is_there", [False, True], ids=["nothing there", "over another"])
def test_all_or_nothing_of_a_snapshot(is_there: bool, tmp_path: Path) -> None:  # noqa: FBT001
    old, new = build({"x": "a = 1"}), build({"x": "a = 1", "y": "a = 1"})
    numbers = itertools.count()

    def make() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        if is_there:
            old.save(folder / "s")
        return folder / "s"

    for fault in each_fault(
        make, new.save, moments=25, unmake=lambda path: shutil.rmtree(path.parent)
    ):
        path = fault.subject
        try:
            found = len(bittern.Index.open(path, verify=True))
        except bittern.errors.SnapshotError:
            found = 0
        assert found in (1 if is_there else 0, 2), fault
        if fault.caught is None:
            assert found == 2, fault
        fault.caught = None  # or its traceback holds the lock
        assert old.save(path) == bittern.Index.open(path, verify=True).id, fault
        assert list(path.parent.iterdir()) == [path], fault
