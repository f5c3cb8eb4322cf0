"""Pipelines in one process: which version a batch is matched with, and what becomes of it.

What happens when processes are killed is in test_pipeline_faults.py. Here streams read files, one
for each micro-batch, and the catalog changes between two of them: whoever is told of a finished
batch (``Metrics``) changes it before the next one is pinned.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

from answers import expected
from bittern.catalog.catalog import Catalog
from bittern.errors import OptionError, PipelineError
from bittern.spark.streaming import pipeline as pipeline_module
from bittern.spark.streaming.after import Edge, Throttle
from bittern.spark.streaming.batch import After, Batch, Sink
from bittern.spark.streaming.files import Files
from bittern.spark.streaming.metrics import BatchReport, Metrics
from bittern.spark.streaming.outbox import Outbox
from bittern.spark.streaming.pins import Checkpoint
from bittern.spark.streaming.pipeline import Pipeline
from bittern.spark.streaming.steps import PipelinePlan, Steps
from steady import PATIENCE, come, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.smoke]

SCHEMA = "id bigint, price double, color string"


class Reports(Metrics):
    """Keeps what it is told, and does what is to be done between two batches."""

    def __init__(self, between: Mapping[int, Callable[[], Any]] | None = None) -> None:
        super().__init__()
        self.reports: list[BatchReport] = []
        self._between = between or {}

    def batch(self, report: BatchReport) -> None:
        super().batch(report)
        self.reports.append(report)
        if report.batch_id in self._between:
            self._between[report.batch_id]()


class Rows(Sink):
    """Keeps the rows that it is given, by batch; ``do`` is done first."""

    def __init__(self, do: Callable[[Batch], None] = lambda _: None) -> None:
        self.do = do
        self.batches: list[Batch] = []
        self.rows: list[tuple[int, list[tuple[Any, ...]]]] = []

    def check(self, spark: Any) -> None:
        assert spark is not None

    def deliver(self, batch: Batch) -> None:
        self.do(batch)
        self.batches.append(batch)
        self.rows.append((batch.batch_id, sorted(map(tuple, batch.matches.collect()))))


class Without(After):
    """Lets pass what is not of one subscription, and notes what it saw."""

    def __init__(self, subscription: str) -> None:
        self.subscription = subscription
        self.seen: list[tuple[str, list[Any]]] = []
        self.keys: tuple[str, ...] = ()

    def check(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def apply(self, batch: Batch, folder: str) -> Any:
        found = [row["subscription"] for row in batch.matches.collect()]
        self.seen.append((folder, sorted(found, key=str)))
        return batch.matches.where(f"subscription IS NULL OR subscription != '{self.subscription}'")


class AllEvents(Without):
    """One that has to see events without matches."""

    needs_all_events: ClassVar[bool] = True


class World:
    """A catalog, a folder of incoming files, and a checkpoint."""

    def __init__(self, spark: Any, folder: Path, catalog: Catalog) -> None:
        self.spark = spark
        self.folder = folder
        self.catalog = catalog
        self.incoming = folder / "incoming"
        self.incoming.mkdir()
        self.checkpoint = folder / "checkpoint"
        self.fed = 0

    def feed(self, *events: Any) -> None:
        """One more file, which is one more micro-batch."""
        lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
        hidden = self.incoming / f".{self.fed}"
        hidden.write_text("\n".join(lines))
        come(hidden, self.incoming / f"{self.fed:06}.json")
        self.fed += 1

    def events(self, schema: str = SCHEMA, form: str = "json") -> Any:
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.format(form).load(str(self.incoming))

    def pipeline(self, sink: Any = None, **options: Any) -> Pipeline:
        chosen = {"event_id": "id", "available_now": True, **options}
        events = chosen.pop("events", None)
        return Pipeline(
            self.events() if events is None else events,
            chosen.pop("catalog", self.catalog),
            self.folder / "matches" if sink is None else sink,
            chosen.pop("checkpoint", self.checkpoint),
            **chosen,
        )

    def matches(self, name: str = "matches") -> list[tuple[Any, ...]]:
        """All rows of the table, with the batch first; no job is run for it."""
        return sorted(
            (int(folder.name.removeprefix("batch=")), *row.values())
            for folder in (self.folder / name).glob("batch=*")
            for file in folder.glob("*.parquet")
            for row in pq.ParquetFile(file).read().to_pylist()
        )

    def noted(self) -> list[int]:
        """The batches that Spark has noted as done."""
        names = [file.name for file in (self.checkpoint / "commits").iterdir()]
        return sorted(int(name) for name in names if name.isdecimal())

    def pin(self, batch: int) -> int:
        pin = Checkpoint(self.checkpoint).pinned(batch)
        assert pin is not None
        return pin.version


@pytest.fixture
def world(spark: Any, tmp_path: Path) -> Iterator[World]:
    with Catalog(tmp_path / "catalog.db") as catalog:
        catalog.apply(
            [
                {"id": "cheap", "expression": "price < 10", "weight": 2.0},
                {"id": "red", "expression": "color = 'red'"},
            ]
        )
        yield World(spark, tmp_path, catalog)


# ------------------------------------------------------------------ versions


def test_each_batch_is_matched_with_its_version(world: World) -> None:
    """Subscribing, replacing, disabling and removing take effect in the next batch."""
    catalog = world.catalog
    between = {
        0: lambda: catalog.add("blue", "color = 'blue' AND material = 'oak'"),
        1: lambda: catalog.add("cheap", "price < 5", replace=True),
        2: lambda: catalog.set_enabled("red", False),
        3: lambda: catalog.apply(removes=["cheap", "blue"]),
        4: lambda: catalog.set_enabled("red", True),
    }
    events: list[dict[str, Any]] = [
        {"id": 1, "price": 7, "color": "red"},
        {"id": 2, "price": 70, "color": "blue", "material": "oak"},
        {"id": 3, "price": 3},
        {"id": 4},
    ]
    for number in range(6):
        world.feed(*({**event, "id": 10 * number + event["id"]} for event in events))
    metrics = Reports(between)
    stream = world.events(f"{SCHEMA}, material string")
    pipeline = world.pipeline(events=stream, metrics=metrics)
    pipeline.run()

    right = []
    for number in range(6):
        version = number + 1
        rows = catalog.at(version)
        texts = dict(zip(rows["id"].to_pylist(), rows["expression"].to_pylist(), strict=True))
        for event, ids in zip(events, expected(texts, events), strict=True):
            right += [(number, 10 * number + event["id"], id_, version) for id_ in ids]
        assert world.pin(number) == version
    assert world.matches() == sorted(right)
    per_batch = [{row[2] for row in right if row[0] == number} for number in range(6)]
    assert per_batch == [
        {"cheap", "red"},
        {"cheap", "red", "blue"},
        {"cheap", "red", "blue"},
        {"cheap", "blue"},
        set(),
        {"red"},
    ]
    assert world.noted() == list(range(6))
    reports = metrics.reports
    assert [report.batch_id for report in reports] == list(range(6))
    assert [report.version for report in reports] == list(range(1, 7))
    assert [report.newest for report in reports] == list(range(1, 7))
    assert [report.events for report in reports] == [4] * 6
    assert sum(report.matches for report in reports) == len(right)
    assert all(report.seconds.keys() == {"pin", "view", "match", "deliver"} for report in reports)
    assert not any(report.replayed for report in reports)
    table = world.spark.read.parquet(str(world.folder / "matches"))
    assert table.dtypes == [
        *[("id", "bigint"), ("subscription", "string"), ("version", "bigint"), ("batch", "int")]
    ]
    assert table.count() == len(right)


def test_a_stream_that_runs_and_is_stopped(world: World) -> None:
    world.feed({"id": 1, "price": 1})
    metrics = Reports()
    running = world.pipeline(available_now=False, trigger=None, metrics=metrics).start()
    try:
        wait_until(lambda: len(metrics.reports) == 1)
        version = world.catalog.add("all", "TRUE")
        world.feed({"id": 2, "price": 100})
        wait_until(lambda: len(metrics.reports) == 2)
        assert running.is_active
        assert not running.await_termination(0.05)
        with pytest.raises(PipelineError, match="in use by process"):
            world.pipeline().start()
    finally:
        running.stop()
    assert not running.is_active
    assert running.await_termination()
    running.stop()
    assert world.matches() == [(0, 1, "cheap", 1), (1, 2, "all", version)]
    # All of it is noted as done: going on does nothing again.
    assert world.noted() == [0, 1]
    again = Reports()
    world.feed({"id": 3})
    world.pipeline(metrics=again).run()
    assert [(report.batch_id, report.replayed) for report in again.reports] == [(2, False)]
    assert world.matches()[-1] == (2, 3, "all", version)


def test_spark_shows_a_pipeline_by_its_name_and_stages(world: World) -> None:
    """In the list of queries, and in the descriptions of jobs; what others describe stays."""
    context = world.spark.sparkContext
    context.setJobDescription("of the caller")
    seen: list[tuple[str, str]] = []

    def look(_: Batch) -> None:
        (query,) = world.spark.streams.active
        seen.append((query.name, context.getLocalProperty("spark.job.description")))

    world.feed({"id": 1, "price": 1})
    metrics = Reports()
    world.pipeline(Rows(look), metrics=metrics, name="shop").run()
    assert seen == [("bittern:shop", "batch 0: deliver")]
    assert not metrics.figures().running
    jobs = context._jsc.sc().statusStore().jobsList(None)
    told = [jobs.apply(i).description() for i in range(jobs.size())]
    assert "batch 0: match" in {each.get() for each in told if each.isDefined()}
    assert context.getLocalProperty("spark.job.description") == "of the caller"
    context.setJobDescription(None)


def test_two_pipelines_of_one_name_do_not_run_in_one_session(world: World) -> None:
    running = world.pipeline(available_now=False, name="shop").start()
    other = {"checkpoint": world.folder / "other", "sink": world.folder / "others"}
    try:
        with pytest.raises(OptionError, match="'bittern:shop' runs in this session already"):
            world.pipeline(**other, name="shop").start()
        world.pipeline(**other).run()  # by default they have the names of their checkpoints
    finally:
        running.stop()
    for name in ("", 5):
        with pytest.raises(OptionError, match="name must be a text"):
            world.pipeline(name=name)


def test_stopping_finishes_the_batch_under_way(world: World) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Batch) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    sink = Rows(wait)
    for number in range(3):
        world.feed({"id": number, "price": 1})
    running = world.pipeline(sink, available_now=False, trigger="0 seconds").start()
    assert begun.wait(PATIENCE)
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    stopping.join(0.5)
    assert stopping.is_alive()
    assert sink.rows == []
    go_on.set()
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert running.await_termination()
    assert sink.rows == [(0, [(0, "cheap", 1)])]
    assert world.noted() == [0]
    world.pipeline(sink).run()
    assert sink.rows == [(n, [(n, "cheap", 1)]) for n in range(3)]


def test_giving_up_the_batch_under_way(world: World) -> None:
    """It is done again: the sink, which is no transaction, may see it twice, and the same."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Batch) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    sink = Rows(wait)
    world.feed({"id": 1, "price": 1}, {"id": 2, "color": "red"})
    running = world.pipeline(sink, available_now=False).start()
    assert begun.wait(PATIENCE)
    aborting = threading.Thread(target=running.abort)
    aborting.start()
    go_on.set()
    aborting.join(PATIENCE)
    assert not aborting.is_alive()
    assert not running.is_active
    assert running.await_termination()
    world.catalog.add("all", "TRUE")
    metrics = Reports()
    world.pipeline(sink, metrics=metrics).run()
    right = (0, [(1, "cheap", 1), (2, "red", 1)])
    assert sink.rows
    assert all(rows == right for rows in sink.rows)
    assert world.noted() == [0]


# ------------------------------------------------------------------ what a pipeline is told


def test_json_limit_rejects_and_odd_names(world: World) -> None:
    """Keys of several columns, attributes in the JSON text of another, the heaviest match only."""
    catalog = world.catalog
    catalog.add("nested", "seller.country = 'FI'", weight=3)
    catalog.add("words", "title LIKE '%tent%'", weight=0.5)
    schema = "`order.id` bigint, `Größe` string, `a b` string, body string, title string"
    rows = [
        (1, "S", None, {"price": 5, "seller": {"country": "FI"}}, "a tent"),
        (2, "M", "x", {"price": 5}, "a tent"),
        (3, "L", "x", "{not json", "a tent"),
        (4, None, "x", {"price": "?"}, None),
        (5, "S", "x", None, "tents"),
    ]
    names = ("order.id", "Größe", "a b", "body", "title")
    for row in rows:
        body = row[3] if row[3] is None or isinstance(row[3], str) else json.dumps(row[3])
        world.feed({**dict(zip(names, row, strict=True)), "body": body})
    metrics = Reports()
    world.pipeline(
        events=world.events(schema).coalesce(1),
        event_id=["a b", "order.id", "Größe"],
        json="body",
        limit=1,
        rejects=world.folder / "rejects",
        metrics=metrics,
    ).run()
    version = catalog.version()
    assert [row[2:] for row in sorted(world.matches(), key=lambda row: row[2])] == [
        (1, "S", "nested", version),
        (2, "M", "cheap", version),
        (5, "S", "words", version),
    ]
    rejects = world.matches("rejects")
    assert [row[:5] for row in rejects] == [
        (2, "x", 3, "L", "{not json"),
        (3, "x", 4, None, '{"price": "?"}'),
    ]
    assert "price is a string" in rejects[1][5]
    assert [report.rejects for report in metrics.reports] == [0, 0, 1, 1, 0]
    told = world.spark.read.parquet(str(world.folder / "rejects"))
    assert told.columns == ["a b", "order.id", "Größe", "body", "rejected", "batch"]


def test_steps_after_matching_come_in_order(world: World) -> None:
    world.feed({"id": 1, "price": 1, "color": "red"}, {"id": 2})
    world.feed({"id": 3, "color": "red"})
    sink, first, second = Rows(), AllEvents("cheap"), Without("nothing")
    before = datetime.now(UTC)
    world.pipeline(sink, after=[first, second]).run()
    assert (first.keys, second.keys) == (("id",), ("id",))
    own = world.checkpoint / "bittern"
    assert first.seen == [
        (str(own / "after" / "0"), [None, "cheap", "red"]),
        (str(own / "after" / "0"), ["red"]),
    ]
    assert second.seen == [
        (str(own / "after" / "1"), [None, "red"]),
        (str(own / "after" / "1"), ["red"]),
    ]
    assert sink.rows == [(0, [(1, "red", 1)]), (1, [(3, "red", 1)])]
    batch = sink.batches[0]
    query = Checkpoint(world.checkpoint).query_id()
    assert (batch.query_id, batch.batch_id, batch.version, batch.keys) == (query, 0, 1, ("id",))
    assert before <= batch.time <= datetime.now(UTC)
    assert batch.catalog is world.catalog
    assert batch.spark is world.spark
    # What the sink has taken is gone from the outbox, but for the last one.
    outbox = Outbox(own / "outbox")
    assert [n for n in range(3) if outbox.has(n)] == [1]


def test_files_behind_a_step(world: World) -> None:
    world.feed({"id": 1, "price": 1, "color": "red"}, {"id": 2})
    pipeline = world.pipeline(after=[AllEvents("cheap")])
    pipeline.run()
    assert world.matches() == [(0, 1, "red", 1)]
    names = [file.name for file in (world.folder / "matches" / "batch=0").iterdir()]
    assert "_SUCCESS" in names
    with pytest.raises(PipelineError, match="belongs to another query"):
        world.pipeline(checkpoint=world.folder / "second").run()
    assert world.matches() == [(0, 1, "red", 1)]


def test_without_an_event_id_all_columns_are_keys(world: World) -> None:
    world.feed({"id": 1, "price": 1, "color": "blue"})
    with Catalog(world.folder / "empty.db") as empty:
        world.pipeline(event_id=None, catalog=empty).run()
        assert world.matches() == []
        read = world.spark.read.parquet(str(world.folder / "matches"))
        assert read.columns == ["id", "price", "color", "subscription", "version", "batch"]
        empty.add("blue", "color = 'blue'")
        world.feed({"id": 2, "price": 1.5, "color": "blue"})
        world.pipeline(event_id=None, catalog=empty.url).run()
    assert world.matches() == [(1, 2, 1.5, "blue", "blue", 1)]


# ------------------------------------------------------------------ failures


def test_a_sink_that_fails_is_asked_again(world: World) -> None:
    """What it gets then is what it got before, though the catalog has moved on."""
    broken = True

    def fail(batch: Batch) -> None:
        if broken and batch.batch_id == 1:
            raise RuntimeError("the mail server is on fire")

    sink = Rows(fail)
    world.feed({"id": 1, "price": 1})
    world.feed({"id": 2, "price": 2})
    with pytest.raises(PipelineError) as caught:
        world.pipeline(sink).run()
    said = str(caught.value)
    assert "stopped after batch 0: the mail server is on fire\n" in said
    assert f"continues from the checkpoint {world.checkpoint}" in said
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert world.noted() == [0]
    assert sink.rows == [(0, [(1, "cheap", 1)])]
    time_of = Checkpoint(world.checkpoint).pinned(1)
    assert time_of is not None
    world.catalog.apply([{"id": "all", "expression": "TRUE"}], ["cheap"])
    world.feed({"id": 3, "price": 3})
    broken = False
    metrics = Reports()
    world.pipeline(sink, metrics=metrics).run()
    assert sink.rows == [
        (0, [(1, "cheap", 1)]),
        (1, [(2, "cheap", 1)]),
        (2, [(3, "all", 2)]),
    ]
    assert sink.batches[1].time == time_of.time
    assert [(report.batch_id, report.replayed) for report in metrics.reports] == [
        (1, True),
        (2, False),
    ]


def test_the_folder_of_another_is_not_written_to(world: World) -> None:
    (world.folder / "thesis").mkdir()
    (world.folder / "thesis" / "chapter.txt").write_text("x")
    world.feed({"id": 1, "price": 1})
    with pytest.raises(PipelineError, match="holds something that no pipeline wrote"):
        world.pipeline(world.folder / "thesis").run()
    assert [file.name for file in (world.folder / "thesis").iterdir()] == ["chapter.txt"]
    world.pipeline().run()  # another sink, and the batch is done
    assert world.matches() == [(0, 1, "cheap", 1)]


# ------------------------------------------------------------------ a batch again


def plan(world: World, sink: Sink, **options: Any) -> PipelinePlan:
    """What a pipeline was told, for steps that no stream calls."""
    world.checkpoint.mkdir(exist_ok=True)
    (world.checkpoint / "metadata").write_text('{"id": "q1"}')
    chosen = {"limit": None, "rejects": None, "after": (), "metrics": Reports(), **options}
    return PipelinePlan(
        spark=world.spark,
        catalog=world.catalog,
        sink=sink,
        checkpoint=Checkpoint(world.checkpoint),
        keys=("id",),
        json=(),
        store=None,
        **chosen,
    )


def test_a_batch_that_is_run_again_is_not_matched_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = world.spark.createDataFrame([(1, 1.0, "red"), (2, 50.0, "red")], SCHEMA)
    told = plan(world, Files(world.folder / "matches"), rejects=Outbox.at(world.folder / "rejects"))
    with told.checkpoint:
        steps = Steps(told)
        steps(frame, 4)
        steps.close()
    right = [(4, 1, "cheap", 1), (4, 1, "red", 1), (4, 2, "red", 1)]
    assert world.matches() == right
    files = sorted((world.folder / "matches" / "batch=4").iterdir())
    world.catalog.add("all", "TRUE")

    def never(*_: Any) -> None:
        raise AssertionError("it is matched again")

    with told.checkpoint, monkeypatch.context() as patch:
        patch.setattr(Steps, "_match", never)
        steps = Steps(told)
        steps(frame, 4)
        steps.close()
    assert sorted((world.folder / "matches" / "batch=4").iterdir()) == files
    assert isinstance(told.metrics, Reports)
    assert [report.replayed for report in told.metrics.reports] == [False, True]
    # A driver that died before the commit left a pin, rejects and half a folder.
    half = world.folder / "matches" / ".batch=5.0123456789abcdef.writing" / "attempts"
    half.mkdir(parents=True)
    (half / "part-0.parquet").write_bytes(b"PAR1")
    with told.checkpoint:
        told.checkpoint.pin(5, lambda: 1)
        with Outbox.at(world.folder / "rejects").staging(5) as staging:
            staging.commit()
        steps = Steps(told)
        steps(frame, 5)
        steps.close()
    assert world.matches() == right + [(5, *row[1:]) for row in right]
    hidden = [file.name for file in (world.folder / "matches").glob(".*")]
    assert not hidden


def test_a_checkpoint_without_its_metadata_is_told(world: World) -> None:
    told = plan(world, Rows())
    (world.checkpoint / "metadata").unlink()
    with told.checkpoint, pytest.raises(PipelineError, match="lost its metadata"):
        Steps(told)(world.spark.range(1), 0)


@pytest.mark.parametrize("text", ["", '{"id": 5}', None])
def test_a_query_that_spark_cannot_go_on_with_is_told(world: World, text: str | None) -> None:
    (world.checkpoint / "commits").mkdir(parents=True)
    (world.checkpoint / "commits" / "0").write_text("v1")
    if text is not None:
        (world.checkpoint / "metadata").write_text(text)
    with pytest.raises(PipelineError, match=rf"{world.checkpoint}/metadata .*restore it, or start"):
        world.pipeline(Rows()).start()


def test_a_pin_of_a_version_that_is_forgotten_is_told(world: World) -> None:
    told = plan(world, Rows())
    frame = world.spark.createDataFrame([(1, 1.0, "red")], SCHEMA)
    world.catalog.add("more", "a = 1")
    world.catalog.forget(2)
    with told.checkpoint:
        told.checkpoint.pin(0, lambda: 1)
        with pytest.raises(OptionError, match="version 1 is forgotten"):
            Steps(told)(frame, 0)


# ------------------------------------------------------------------ at the door


def test_a_batch_of_events_is_refused(world: World) -> None:
    batch = world.spark.createDataFrame([(1, 1.0)], "id bigint, price double")
    with pytest.raises(OptionError, match="needs a stream of events"):
        world.pipeline(events=batch)
    with pytest.raises(OptionError, match="not list"):
        world.pipeline(events=[{"id": 1}])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"event_id": "nothing"}, "nothing"),
        ({"event_id": []}, "names no column"),
        ({"json": "nothing"}, "nothing"),
        ({"limit": 0}, "limit"),
        ({"limit": "3"}, "limit"),
        ({"trigger": "", "available_now": False}, "trigger must be a time"),
        ({"trigger": 5, "available_now": False}, "trigger must be a time"),
        ({"trigger": "5 bananas", "available_now": False}, "5 bananas"),
        ({"trigger": "-5 seconds", "available_now": False}, "-5 seconds"),
        ({"checkpoint": "s3://bucket/checkpoint"}, "s3://bucket/checkpoint"),
        ({"checkpoint": "gs://b/c"}, "checkpoint must be a folder of a file system .* mounted"),
        ({"checkpoint": "s3a://b/c"}, "cannot reach s3a://b/c.*org.apache.hadoop:hadoop-aws:"),
        ({"sink": "s3a://b/m"}, "cannot reach s3a://b/m.*org.apache.hadoop:hadoop-aws:"),
        ({"rejects": "s3a://b/r"}, "cannot reach s3a://b/r.*org.apache.hadoop:hadoop-aws:"),
        ({"sink": "s3://bucket/matches"}, "s3://bucket/matches"),
        ({"rejects": "s3://bucket/rejects"}, "s3://bucket/rejects"),
        ({"sink": "FOLDER/checkpoint/matches"}, "separate folders"),
        ({"sink": "FOLDER/checkpoint"}, "separate folders"),
        ({"checkpoint": "FOLDER/matches/checkpoint"}, "separate folders"),
        ({"rejects": "FOLDER/matches"}, "separate folders"),
        ({"rejects": "file:FOLDER/checkpoint/rejects"}, "separate folders"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_work_is_told_before_anything_starts(
    world: World, options: dict[str, Any], said: str
) -> None:
    told = {
        name: value.replace("FOLDER", str(world.folder)) if isinstance(value, str) else value
        for name, value in options.items()
    }
    with pytest.raises(OptionError, match=said):
        world.pipeline(told.pop("sink", None), **told)
    assert not world.checkpoint.exists()
    assert not (world.folder / "matches").exists()


@pytest.mark.parametrize("name", ["version", "VERSION", "batch", "query", "subscription"])
def test_a_key_that_would_be_overwritten_is_refused(world: World, name: str) -> None:
    events = world.events(f"id bigint, {name} bigint, price double")
    with pytest.raises(OptionError, match="has the name of an output column"):
        world.pipeline(events=events, event_id=["id", name])
    with pytest.raises(OptionError, match="has the name of an output column"):
        world.pipeline(events=events, event_id=None)
    world.pipeline(events=events)  # as an attribute it is no key


def test_the_payload_travels_with_matches_and_rejects(world: World) -> None:
    """It identifies nothing: steps, keys and positions are those of ``event_id``."""
    world.feed({"id": 1, "price": 5.5, "color": "red"}, {"id": 2, "price": 50})
    world.feed({"id": 1, "price": 7, "color": "blue"})
    events = world.events().selectExpr("*", "if(id = 1, '{\"size\": 3}', '{') AS text")
    world.catalog.add("large", "size = 3")
    options = {"events": events, "json": "text", "rejects": world.folder / "rejects"}
    world.pipeline(**options, payload=["text", "price", "id"]).run()
    text = '{"size": 3}'
    assert world.matches() == [
        (0, 1, text, 5.5, "cheap", 2),
        (0, 1, text, 5.5, "large", 2),
        (0, 1, text, 5.5, "red", 2),
        (1, 1, text, 7.0, "cheap", 2),
        (1, 1, text, 7.0, "large", 2),
    ]
    ((batch, *reject),) = world.matches("rejects")
    assert (batch, reject[:3]) == (0, [2, "{", 50.0])
    others = {**options, "checkpoint": world.folder / "other", "rejects": world.folder / "told"}
    world.pipeline(world.folder / "plain", **others).run()
    ((batch, *reject),) = world.matches("told")  # the text comes along by itself
    assert (batch, reject[:2]) == (0, [2, "{"])
    assert world.matches("plain")[0] == (0, 1, "cheap", 2)
    batches = events.withColumnRenamed("text", "batch")
    with pytest.raises(OptionError, match="has the name of a column of the rejects"):
        world.pipeline(events=batches, json="batch", rejects=world.folder / "told")

    after = [Edge("id"), Throttle(2, "1 hour", by="subscription", order="id")]
    sink = Rows()
    again = {"checkpoint": world.folder / "again", "after": after}
    world.pipeline(sink, **again, **{**options, "rejects": None}, payload="*").run()
    first = [(1, 5.5, "red", text, id_, 2) for id_ in ("cheap", "large", "red")]
    assert sink.rows == [(0, first), (1, [])]
    assert sink.batches[0].keys == ("id",)
    assert sink.batches[0].carried == ("id", "price", "color", "text")


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ("nope", "payload names 'nope', but the events have no such column; they have id, "),
        (["price", "price"], "payload names a column twice"),
        (5, "payload must be the name of a column or a list of names"),
        ("version", "'version' has the name of an output column"),
        ("*", "'version' has the name of an output column"),
    ],
)
def test_a_payload_that_cannot_travel(world: World, payload: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        world.pipeline(events=world.events("id bigint, price double, version int"), payload=payload)


def test_a_payload_that_changes_is_that_of_when_a_batch_was_matched(world: World) -> None:
    world.feed({"id": 1, "price": 5.5, "color": "red"})

    def fails(_: Batch) -> None:
        raise OSError("no room")

    with pytest.raises(PipelineError, match="no room"):
        world.pipeline(Rows(fails), payload="price").run()
    sink = Rows()
    world.feed({"id": 2, "price": 6.5, "color": "red"})
    world.pipeline(sink, payload="color").run()
    assert sink.rows == [
        (0, [(1, 5.5, "cheap", 1), (1, 5.5, "red", 1)]),
        (1, [(2, "red", "cheap", 1), (2, "red", "red", 1)]),
    ]


def test_steps_and_sinks_are_asked_before_anything_starts(world: World) -> None:
    class Refusing(Rows):
        def check(self, spark: Any) -> None:
            raise OptionError(f"no such server as {spark.version}")

    class Picky(Without):
        def check(self, keys: tuple[str, ...]) -> None:
            raise OptionError(f"cannot work with {keys}")

    with pytest.raises(OptionError, match="no such server"):
        world.pipeline(Refusing())
    with pytest.raises(OptionError, match="cannot work with"):
        world.pipeline(after=[Without("x"), Picky("y")])
    with pytest.raises(OptionError, match="AllEvents must be the first step"):
        world.pipeline(after=[Without("x"), AllEvents("y")])
    assert not world.checkpoint.exists()


def test_spark_connect_is_refused(world: World) -> None:
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(OptionError, match="not Spark Connect"):
        pipeline_module._check_classic(connect())
    pipeline_module._check_classic(world.spark)


def test_a_start_that_fails_lets_go_of_the_checkpoint(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = world.pipeline(available_now=False)
    broken = replace(pipeline._plan, store="artifacts")
    monkeypatch.setattr(pipeline, "_plan", broken)
    with pytest.raises(OptionError, match="needs store="):
        pipeline.start()
    with Checkpoint(world.checkpoint):
        pass


def test_starting_twice_is_refused_and_harmless(world: World) -> None:
    world.feed({"id": 1, "price": 1})
    metrics = Reports()
    pipeline = world.pipeline(available_now=False, trigger=None, metrics=metrics)
    running = pipeline.start()
    try:
        with pytest.raises(PipelineError, match="in use"):
            pipeline.start()
        wait_until(lambda: len(metrics.reports) == 1)
    finally:
        running.stop()
    world.feed({"id": 2, "price": 1})
    again = pipeline.start()
    try:
        wait_until(lambda: len(metrics.reports) == 2)
    finally:
        again.stop()
    assert [row[:2] for row in world.matches()] == [(0, 1), (1, 2)]
