"""Pipelines that remember: EXISTS and FORALL over the events of all batches before.

Every match is compared with the oracle (``remembering.py``). Catalogs change between batches,
drivers are killed, and folders of documents are folded all the while; workers and executors are
killed in ``faults/test_pipeline_faults.py``.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

import oracle
from bittern.errors import OptionError, PipelineError
from bittern.language.parser import parse
from bittern.service import pipeline_file
from bittern.service import run as running_pipelines
from bittern.spark.sink.staging import Staging
from bittern.spark.streaming import documents
from bittern.spark.streaming.metrics import BatchReport, Metrics
from remembering import EVENTS_A_FILE, Changes, Place, run
from spark_jobs import streams
from spark_sessions import RemoteError, Session

pytestmark = pytest.mark.spark


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "place")
    yield made
    made.catalog.close()


@pytest.fixture
def _fold_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_FAN", 2)


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


def test_driver_is_killed(spark: Any, place: Place, tmp_path: Path) -> None:
    """In its batch, after the commit; earlier, it would have left what was copied then."""
    copies = {
        f"{when} the documents are there": tmp_path / f"copy {when}" for when in ("before", "after")
    }
    with Session("classic", tmp_path / "dying", streams.CONF) as dying:
        place.arrive()
        run(spark, place)
        place.arrive()
        asked = {"place": str(place.path), "die_at": "after the commit", "batch": 1}
        told = {stage: str(copy) for stage, copy in copies.items()}
        with pytest.raises(RemoteError, match="the session ended"):
            dying.call("spark_jobs.streams:run", copies=told, history=True, **asked)
    assert (place.history / "batch=1").exists()
    place.change()
    for stage, copy in copies.items():
        seen = [*place.arrival]
        with streams.as_it_was(place.path, copy):
            assert (place.history / "batch=1").exists() == stage.startswith("after")
            assert not (place.path / "matches" / "batch=1").exists()
            run(spark, place)
            place.assert_exact()
        place.arrival = seen  # whoever runs a batch again may have its documents in another order
    place.arrive()
    run(spark, place)
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
        version = place.version(batch)
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
