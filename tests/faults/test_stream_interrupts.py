"""A stream's files after an exception at any moment: all of a change or nothing, and it goes on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

from bittern.catalog.catalog import Catalog
from bittern.errors import PipelineError
from bittern.spark.streaming import documents
from bittern.spark.streaming.documents import StreamHistory
from bittern.spark.streaming.outbox import Outbox
from bittern.spark.streaming.pins import Checkpoint
from bittern.spark.streaming.state import States
from interrupts import each_fault
from stream_parts import builder, check, forget, ids, notes, put, read

MOMENTS = 25

# A file that was open when the exception came is closed when it is collected, which Python tells.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(documents, "_FAN", 2)


@pytest.fixture
def new(tmp_path: Path) -> Callable[[], Path]:
    numbers = itertools.count()
    return lambda: tmp_path / str(next(numbers))


def visible(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")}


# ------------------------------------------------------------------ the checkpoint


def taken(path: Path) -> Checkpoint:
    checkpoint = Checkpoint(path)
    checkpoint.__enter__()
    return checkpoint


def let_go(checkpoint: Checkpoint) -> None:
    checkpoint.__exit__(None, None, None)


def test_taking_a_checkpoint(new: Callable[[], Path]) -> None:
    for fault in each_fault(
        lambda: Checkpoint(new()), lambda made: made.__enter__(), moments=MOMENTS, unmake=let_go
    ):
        if fault.caught is None:
            let_go(fault.subject)
        again = taken(fault.subject.path)  # what failed holds no lock
        assert again.pin(0, lambda: 1).version == 1, str(fault)
        let_go(again)


def test_pins(new: Callable[[], Path]) -> None:
    for fault in each_fault(
        lambda: taken(new()),
        lambda made: made.pin(7, lambda: 70),
        moments=MOMENTS,
        unmake=let_go,
    ):
        found = fault.subject.pinned(7)
        assert found is None or found.version == 70, str(fault)
        assert fault.result in (None, found)
        pin = fault.subject.pin(7, lambda: 71)
        assert pin.version == (71 if found is None else 70), str(fault)
        assert visible(fault.subject.own / "pins") == {f"{7:020d}.json"}
        assert fault.subject.pin(8, lambda: 80).version == 80


def test_whose_a_checkpoint_and_a_table_are(new: Callable[[], Path]) -> None:
    for fault in each_fault(
        lambda: taken(new()), lambda made: made.bind("one", "q"), moments=MOMENTS, unmake=let_go
    ):
        fault.subject.bind("one", "q")
        with pytest.raises(PipelineError, match="to another query"):
            fault.subject.bind("one", "r")
    for table in each_fault(lambda: Outbox(new()), lambda made: made.claim("q"), moments=MOMENTS):
        table.subject.claim("q")
        with pytest.raises(PipelineError, match="belongs to another query"):
            table.subject.claim("r")


# ------------------------------------------------------------------ folders of batches


def claimed(path: Path) -> Outbox:
    outbox = Outbox(path)
    outbox.claim("q")
    return outbox


def test_a_batch_of_a_table(new: Callable[[], Path]) -> None:
    for fault in each_fault(
        lambda: claimed(new()), lambda made: put(made.path, 3, ids(1, 2), ids(3)), moments=12
    ):
        outbox = fault.subject
        assert outbox.batches() == ([3] if outbox.has(3) else []), str(fault)
        if not outbox.has(3):
            put(outbox.path, 3, ids(1, 2), ids(3))
        rows = pq.read_table(outbox.folder(3), partitioning=None)["id"].to_pylist()
        assert sorted(rows) == [1, 2, 3], str(fault)
        outbox.tidy()
        assert visible(outbox.path) == {"_bittern", "batch=3"}
        put(outbox.path, 4, ids(4))
        assert sorted(outbox.batches()) == [3, 4]


class Frame:
    """As much of Spark as a state asks for: rows that can be written, and read again."""

    def __init__(self, *rows: int) -> None:
        self._rows = rows
        self.write = self.read = self
        self.sparkSession = self

    def parquet(self, place: str) -> Any:
        path = Path(place.removeprefix("file:"))
        if path.name.startswith("batch="):
            return pq.read_table(path, partitioning=None)["id"].to_pylist()
        path.mkdir()
        pq.write_table(ids(*self._rows), path / "part-0.parquet")
        (path / "_SUCCESS").touch()
        return None


def test_what_a_step_remembers(new: Callable[[], Path]) -> None:
    def made() -> SimpleNamespace:
        path = new()
        States(Outbox(path / "state")).keep(0, Frame(0))  # type: ignore[arg-type]
        States(Outbox(path / "state")).keep(1, Frame(1))  # type: ignore[arg-type]
        return SimpleNamespace(path=path, states=States(Outbox(path / "state")))

    for fault in each_fault(made, lambda subject: subject.states.keep(2, Frame(2)), moments=12):
        states = fault.subject.states
        assert states._before(2) == 1, str(fault)
        assert states._table.read(Frame(), 1) == [1]
        before = Outbox(fault.subject.path / "state").has(2)
        # A replay may compute what it likes: what was written first counts.
        assert states.keep(2, Frame(99)) == ([2] if before else [99]), str(fault)
        assert sorted(states._table.batches()) == [1, 2]


# ------------------------------------------------------------------ documents


def test_where_a_history_begins(new: Callable[[], Path]) -> None:
    def made() -> StreamHistory:
        history = StreamHistory(new())
        history.claim("q")
        return history

    for fault in each_fault(made, lambda history: history.open(5), moments=MOMENTS):
        fault.subject.open(5)
        put(fault.subject.path, 5, ids(5))
        assert read(fault.subject, 6) == [5], str(fault)


@pytest.mark.parametrize("keep", [None, 4])
def test_folding_documents(new: Callable[[], Path], keep: int | None) -> None:
    batches = 6

    def made() -> StreamHistory:
        history = StreamHistory(new(), keep)
        history.claim("q")
        history.open(0)
        for batch in range(batches):
            put(history.path, batch, ids(batch))
        history.remembered(batches)
        return history

    def newest(history: StreamHistory, batch: int) -> list[int]:
        return read(history, batch)[-(keep or batch) :]

    for fault in each_fault(made, lambda history: history.tidy(batches), moments=8):
        expected = list(range(batches))[-(keep or batches) :]
        for history in (fault.subject, StreamHistory(fault.subject.path, keep)):
            assert newest(history, batches) == expected, str(fault)
            history.claim("q")
            history.tidy(batches)
            assert newest(history, batches) == expected, str(fault)
            assert newest(history, batches - 1) == list(range(batches - 1))[-(keep or 99) :]
        put(fault.subject.path, batches, ids(batches))
        fault.subject.tidy(batches + 1)
        assert newest(fault.subject, batches + 1)[-1] == batches


# ------------------------------------------------------------------ views


@pytest.mark.parametrize("change", ["first", "delta"])
def test_views_and_the_notes_of_their_bases(
    tmp_path: Path, new: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setenv("BITTERN_CACHE_DIR", str(tmp_path / "cache"))
    with Catalog(tmp_path / "catalog.db") as catalog:
        catalog.apply([{"id": f"s{n}", "expression": f"a = {n}"} for n in range(3)])
        catalog.add("seen", "EXISTS d (d.a = a)")
        last = catalog.apply([{"id": "s1", "expression": "b = 1"}], ["s0", "seen"])

        def made() -> Any:
            built = builder(catalog, str(new()))
            if change == "delta":
                built.view(last - 1)
            return built

        for fault in each_fault(
            made, lambda built: built.view(last), moments=6, unmake=lambda built: built.close()
        ):
            check(fault.subject.view(last), catalog)
            assert fault.subject.bad == {}, str(fault)
            assert len(notes(fault.subject)) == 1, str(fault)
            forget()
            other = builder(catalog, fault.subject.folder)
            check(other.view(last), catalog)
            other.close()
    forget()
