"""Pipelines that remember: EXISTS and FORALL over the events of all batches before.

Every match is compared with the oracle, which goes through the documents one by one. Which those
are is known from the batch of each event: all of earlier batches, and with ``order_by`` those of
the same batch that come before it. Catalogs change between batches, drivers are killed, workers and
executors too, and folders of documents are folded all the while.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import bittern
import bittern.spark
import oracle
from bittern.errors import OptionError, PipelineError
from bittern.language.parser import parse
from bittern.service import pipeline_file
from bittern.service import run as running_pipelines
from bittern.spark.sink.staging import Staging
from bittern.spark.streaming import documents
from bittern.spark.streaming.documents import StreamHistory
from bittern.spark.streaming.metrics import BatchReport, Metrics
from bittern.spark.streaming.pins import Checkpoint
from spark_jobs import streams
from spark_sessions import RemoteError, Session
from steady import come

pytestmark = pytest.mark.spark

COLOURS = ("red", "tan", "sea green", None)
EVENTS_A_FILE = 6
UNREADABLE = "no"
QUANTIFIED = (
    "EXISTS d (d.price > price)",
    "FORALL d (d.price <= price)",
    "NOT EXISTS d (d.colour = colour)",
    "EXISTS d (d.colour = colour AND d.price > price)",
    "EXISTS d (d.size = size AND d.colour != 'red') AND price < {low}",
    "EXISTS d IN LAST 5 (d.size >= size)",
    "FORALL d IN LAST 2 PER colour (d.size < size)",
    "EXISTS d IN LAST {low} (d.price BETWEEN 10 AND 20 AND d.size > {low})",
    "colour = 'red' AND NOT (FORALL d IN LAST 7 (d.size != {low} OR d.price > price))",
    "EXISTS d PER colour (d.price > 5 AND d.size < price AND d.price < size)",
)
PLAIN = ("price > {low}", "size < {low} OR colour = 'tan'")


class Place:
    """A pipeline's folder, what has come there, and how its catalog has changed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.events: dict[int, dict[str, Any]] = {}
        self.unreadable: set[int] = set()
        self.arrival: list[int] = []  # of documents, as far as it was seen
        self._random = random.Random(7)
        self._files = 0
        (folder / "events").mkdir(parents=True)
        self.catalog = bittern.Catalog(folder / "catalog.db")
        self.catalog.apply([{"id": f"s{n}", "expression": self._expression()} for n in range(12)])
        self.change()

    @property
    def history(self) -> Path:
        """Where the documents are."""
        return self.path / "checkpoint" / "bittern" / "history"

    def _expression(self) -> str:
        text = self._random.choice((*QUANTIFIED, *PLAIN))
        return text.replace("{low}", str(self._random.randrange(1, 12)))

    def change(self) -> None:
        """Make a new version: some are added or replaced, one goes, one is only its own."""
        there = self.catalog.at().column("id").to_pylist()
        puts = [
            {"id": f"s{number}", "expression": self._expression()}
            for number in self._random.sample(range(16), 3)
        ]
        puts += [{"id": f"only-{self.catalog.version() + 1}", "expression": "id >= 0"}]
        gone = {self._random.choice([id_ for id_ in there if id_.startswith("s")])}
        gone |= {id_ for id_ in there if id_.startswith("only-")}
        self.catalog.apply(puts, [*(gone - {put["id"] for put in puts})])

    def arrive(self, files: int = streams.FILES_A_BATCH) -> None:
        """The events of one batch come, some of which cannot be read."""
        for _ in range(files):
            rows = [self._event(len(self.events) + n) for n in range(EVENTS_A_FILE)]
            rows[self._random.randrange(3)]["document"] = UNREADABLE
            for row in rows:
                text = row["document"]
                read = {} if text == UNREADABLE else json.loads(text)
                self.events[row["id"]] = row | read
                if text == UNREADABLE:
                    self.unreadable.add(row["id"])
            schema = {"id": pa.int64(), "price": pa.float64(), "colour": pa.string()}
            table = pa.Table.from_pylist(rows, pa.schema(schema | {"document": pa.string()}))
            partial = self.path / "events" / ".partial"
            pq.write_table(table, partial)
            come(partial, partial.with_name(f"{self._files:05d}.parquet"))
            self._files += 1

    def _event(self, id_: int) -> dict[str, Any]:
        draw = self._random
        return {
            "id": id_,
            "price": draw.choice([None, *map(float, range(24))]),
            "colour": draw.choice(COLOURS),
            "document": json.dumps({"size": draw.randrange(24)}),
        }

    def rows(self) -> list[tuple[int, int, str, int]]:
        """Batch, event, subscription and version of each match."""
        found = []
        for folder in (self.path / "matches").glob("batch=*"):
            batch = int(folder.name.removeprefix("batch="))
            rows = pq.read_table(folder, partitioning=None).to_pylist()
            found += [(batch, row["id"], row["subscription"], row["version"]) for row in rows]
        return found

    def remembered(self, batches: int) -> list[int]:
        """The events that are documents, in order."""
        return [
            id_
            for part in StreamHistory(self.history).before(batches)
            for file in sorted(Path(part.path).glob("*.parquet"))
            for id_ in pq.read_table(file, partitioning=None)["id"].to_pylist()
        ]

    def note(self, batches: int) -> None:
        """See which documents there are, in which order: that never changes."""
        stored = self.remembered(batches)
        known = [id_ for id_ in stored if id_ in self.arrival]
        assert known == self.arrival[len(self.arrival) - len(known) :]
        self.arrival += stored[len(known) :]

    def assert_exact(self, *, keep: int | None = None, order: bool = False) -> None:
        """Every match once, with the version of its batch and the documents before its event."""
        rows = self.rows()
        batch_of = {id_: batch for batch, id_, _, _ in rows}
        sound = self.events.keys() - self.unreadable
        assert batch_of.keys() == sound, "events are lost"
        batches = max(batch_of.values()) + 1
        self.note(batches)
        assert Counter(self.arrival) == Counter(sound)
        assert [batch_of[id_] for id_ in self.arrival] == sorted(batch_of.values())
        if order:
            by = {id_: (batch_of[id_], *self._price(id_), id_) for id_ in sound}
            assert self.arrival == sorted(sound, key=lambda id_: by[id_])
        expected: Counter[tuple[Any, ...]] = Counter()
        for batch in range(batches):
            version = self._version(batch)
            table = self.catalog.at(version).select(["id", "expression"]).to_pydict()
            trees = {id_: parse(text) for id_, text in zip(*table.values(), strict=True)}
            before = [self.events[id_] for id_ in self.arrival if batch_of[id_] < batch]
            for id_ in [id_ for id_ in self.arrival if batch_of[id_] == batch]:
                expected.update(
                    (batch, id_, subscription, version)
                    for subscription, tree in trees.items()
                    if oracle.matches(tree, self.events[id_], before[-(keep or len(before)) :])
                )
                if order:
                    before.append(self.events[id_])
        assert Counter(rows) == expected
        assert not [*self.history.glob(".batch*")], "something is left behind"

    def _price(self, id_: int) -> tuple[bool, float]:
        """By which events are ordered, NULLs first."""
        price = self.events[id_]["price"]
        return price is not None, price or 0.0

    def _version(self, batch: int) -> int:
        pin = Checkpoint(self.path / "checkpoint").pinned(batch)
        assert pin is not None
        return pin.version


class Changes(Metrics):
    """Changes the catalog after every batch, and keeps what it is told."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.reports: list[BatchReport] = []
        self._place = place

    def batch(self, report: BatchReport) -> None:
        super().batch(report)
        self.reports.append(report)
        self._place.note(report.batch_id + 1)
        self._place.change()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "place")
    yield made
    made.catalog.close()


@pytest.fixture
def _fold_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_FAN", 2)


def run(spark: Any, place: Place, **options: Any) -> list[BatchReport]:
    """Match all that is there; what was told of each batch."""
    told = Changes(place)
    chosen = {"history": True, **options}
    streams.pipeline(spark, str(place.path), metrics=told, **chosen).run()
    return told.reports


# ------------------------------------------------------------------ batches, one after the other


@pytest.mark.parametrize("order", [None, "price"], ids=["whole batches", "in order"])
@pytest.mark.parametrize("keep", [None, 25])
@pytest.mark.usefixtures("_fold_early")
def test_matches_are_those_of_the_documents_before(
    spark: Any, place: Place, keep: int | None, order: str | None
) -> None:
    """The catalog changes after each batch, and folders are folded after every other."""
    for _ in range(6):
        place.arrive()
    reports = run(spark, place, keep=keep, order_by=order)
    place.assert_exact(keep=keep, order=order is not None)
    counts = [report.documents for report in reports]
    assert counts == [min(10 * (batch + 1), keep or 1_000) for batch in range(6)]
    assert [*place.history.glob("batches=*")], "nothing was folded"


def test_a_folder_of_its_own_and_steps_after(spark: Any, place: Place, tmp_path: Path) -> None:
    """Documents are remembered while nobody asks for them, and events that match nothing too."""
    place.catalog.apply([], place.catalog.at().column("id").to_pylist())
    place.catalog.add("red", "colour = 'red'")
    place.arrive()
    place.arrive()
    (later,) = (tmp_path / name for name in ("documents",))

    def sized(report: BatchReport) -> None:
        if report.batch_id == 0:
            place.catalog.add("again", "EXISTS d (d.size = size)")

    told = Metrics()
    told.batch = sized  # type: ignore[method-assign]
    streams.pipeline(spark, str(place.path), metrics=told, history=later).run()
    assert {folder.name for folder in later.glob("batch=*")} == {"batch=0", "batch=1"}
    sound = [event for id_, event in place.events.items() if id_ not in place.unreadable]
    first = [event for event in sound if event["id"] < 2 * EVENTS_A_FILE]
    sizes = {event["size"] for event in first}
    again = {event["id"] for event in sound if event["size"] in sizes and event not in first}
    assert again
    assert {row[1] for row in place.rows() if row[2] == "again"} == again
    assert not place.history.exists()


def test_the_section_of_a_file(spark: Any, place: Place) -> None:
    """``bittern run`` makes the same pipeline of its file."""
    place.arrive()
    place.arrive()
    text = """
        catalog = { url = "catalog.db" }
        source = { kind = "files", path = "events", format = "parquet", per_trigger = 2 }
        matching = { event_id = "id", json = "document" }
        history = { keep = 15, order_by = "price" }
        sink = { kind = "files", path = "matches" }
        run = { checkpoint = "checkpoint" }
    """
    (place.path / "pipeline.toml").write_text(text)
    file = pipeline_file.read(place.path / "pipeline.toml", {})
    running_pipelines._pipeline(spark, file, place.catalog, Changes(place), once=True).run()
    place.assert_exact(keep=15, order=True)


# ------------------------------------------------------------------ drivers that fail or are killed


class Stopped(Exception):  # noqa: N818
    """What a driver ends with at a point that the test chose."""


STAGES = [("history", "before"), ("history", "after"), ("matches", "before"), ("matches", "after")]


@pytest.mark.parametrize("order", [None, "price"], ids=["whole batches", "in order"])
@pytest.mark.usefixtures("_fold_early")
def test_a_stream_that_fails_goes_on_with_the_same_documents(
    spark: Any, place: Place, order: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers live on, and have documents by then that the batch that is run again must not see."""
    real = Staging.commit
    for batch, (table, when) in enumerate(STAGES):

        def commit(staging: Staging, *, stage: Any = (batch, table, when)) -> None:
            number, of, moment = stage
            fails = (staging.target.parent.name, staging.target.name) == (of, f"batch={number}")
            if not fails or moment == "after":
                real(staging)
            if fails:
                raise Stopped

        place.arrive()
        monkeypatch.setattr(Staging, "commit", commit)
        with pytest.raises(PipelineError, match="the stream has stopped"):
            run(spark, place, order_by=order)
        assert (place.history / f"batch={batch}").exists() == ((table, when) != STAGES[0])
        place.change()
    monkeypatch.setattr(Staging, "commit", real)
    place.arrive()
    run(spark, place, order_by=order)
    place.assert_exact(order=order is not None)


#: Where each driver dies, each in a batch of its own, and an earlier stage of the second batch.
DEATHS = ("before the documents are there", "after the commit")
EARLIER = "after the documents are there"


def test_driver_is_killed(spark: Any, place: Place, tmp_path: Path) -> None:
    """Each driver runs the batch again that the last one died in, and dies in the next.

    One that died at an earlier stage would have left what was copied then.
    """
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(Session("classic", tmp_path / f"driver {n}", streams.CONF))
            for n in range(len(DEATHS))
        ]
        for batch, (stage, dying) in enumerate(zip(DEATHS, sessions, strict=True)):
            place.arrive()
            asked = {"place": str(place.path), "die_at": stage, "batch": batch, "history": True}
            copies = {EARLIER: str(tmp_path / "copy")} if batch else {}
            with pytest.raises(RemoteError, match="the session ended"):
                dying.call("spark_jobs.streams:run", copy_at=copies, **asked)
            assert (place.history / f"batch={batch}").exists() == (stage != DEATHS[0])
            place.change()
    with streams.as_it_was(place.path, tmp_path / "copy"):
        assert (place.history / f"batch={batch}").exists()
        assert not (place.path / "matches" / f"batch={batch}").exists()
        run(spark, place)
        place.assert_exact()
    place.arrive()
    run(spark, place)
    place.assert_exact()


def test_worker_and_executor_are_killed(spark: Any, place: Place, tmp_path: Path) -> None:
    """In the midst of a batch each: whoever takes its place has the same documents."""
    place.arrive()
    run(spark, place)
    conf = streams.CONF | {"spark.sql.execution.arrow.maxRecordsPerBatch": "2"}
    with Session("local-cluster", tmp_path / "session", conf) as cluster:
        for kind in ("worker", "executor"):
            trouble = tmp_path / kind
            trouble.mkdir()
            place.arrive()
            asked = {"trouble": str(trouble), "kind": kind, "store": str(tmp_path / "store")}
            asked |= {"place": str(place.path), "history": True}
            assert cluster.call("spark_jobs.streams:run", **asked)["error"] is None
            assert (trouble / "killed").exists()
            place.change()
    place.assert_exact()


# ------------------------------------------------------------------ what is wrong is told


def test_quantifiers_without_a_history(
    spark: Any, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Those who subscribed with them get nothing and are named; everybody else gets everything."""
    place.catalog.apply([{"id": f"p{n}", "expression": f"price > {n}"} for n in range(5)])
    metrics = Metrics()
    for text in ("price > 3", "NOT EXISTS d (d.size = size)"):
        place.catalog.add("late", text, replace=True)
        place.arrive()
        streams.pipeline(spark, str(place.path), metrics=metrics).run()
    expected: Counter[tuple[Any, ...]] = Counter()
    for batch in range(2):
        version = place._version(batch)
        subscribed = {row["id"]: row["expression"] for row in place.catalog.at(version).to_pylist()}
        needing = {id_ for id_, text in subscribed.items() if "EXISTS" in text or "FORALL" in text}
        for event in range(batch * len(place.events) // 2, (batch + 1) * len(place.events) // 2):
            expected.update(
                (batch, event, id_, version)
                for id_, text in subscribed.items()
                if id_ not in needing and event not in place.unreadable
                if oracle.matches(parse(text), place.events[event])
            )
    assert Counter(place.rows()) == expected
    assert "late" in needing
    assert metrics.figures().left_out == len(needing)
    for id_ in needing:
        assert f"subscription {id_!r} is left out: EXISTS and FORALL compare" in caplog.text
    place.arrive()
    run(spark, place)  # from now on it remembers, and nothing is left out
    assert needing & {id_ for batch, _, id_, _ in place.rows() if batch == 2}


def test_a_history_that_was_left_out_for_a_while(spark: Any, place: Place) -> None:
    place.catalog.apply([], place.catalog.at().column("id").to_pylist())
    for history in (True, False):
        place.arrive()
        streams.pipeline(spark, str(place.path), history=history).run()
    place.arrive()
    with pytest.raises(PipelineError, match=r"lacks batch 1, .* start with an empty history"):
        streams.pipeline(spark, str(place.path), history=True).run()
    shutil.rmtree(place.history)
    streams.pipeline(spark, str(place.path), history=True).run()
    assert {entry.name for entry in place.history.glob("batch=*")} == {"batch=2"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"history": 5}, "history must be True or the path of a folder, not 5"),
        ({"history": None}, "history must be True or the path of a folder, not None"),
        ({"history": "s3://bucket/history"}, "s3://bucket/history"),
        ({"history": True, "keep": 0}, "keep must be a whole number"),
        ({"history": True, "keep": "many"}, "keep must be a whole number"),
        ({"keep": 10}, "keep needs a history: give history=True too"),
        ({"order_by": "price"}, "order_by needs a history: give history=True too"),
        ({"history": True, "order_by": "time"}, "order_by names 'time', but the events have no"),
        ({"history": True, "order_by": []}, "order_by names no column"),
    ],
)
def test_options_are_checked(spark: Any, place: Place, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        streams.pipeline(spark, str(place.path), **options)


@pytest.mark.parametrize("name", ["checkpoint", "checkpoint/documents", "matches", "rejects/x"])
def test_the_history_is_apart(spark: Any, place: Place, name: str) -> None:
    with pytest.raises(OptionError, match="must be separate folders"):
        streams.pipeline(spark, str(place.path), history=place.path / name)
