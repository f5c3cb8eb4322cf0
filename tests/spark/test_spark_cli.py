"""``bittern spark-match``: once as a command of its own, then in the session of the tests."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import demo

pytest.importorskip("pyspark")
from bittern.errors import PipelineError
from bittern.service import cli
from bittern.service import spark_match as spark_match_module
from bittern.spark import session
from steady import PATIENCE, wait_until

#: One JVM that starts quickly, and nothing but loopback.
QUICK = (
    "--master", "local[2]",
    "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf", "spark.sql.shuffle.partitions=2",
)  # fmt: skip
EVENTS = [{"id": i, "price": i, "seller": {"country": "FI" if i % 2 else "SE"}} for i in range(20)]
WISHES = [("cheap", "price < 3"), ("finnish", "seller.country = 'FI' AND price >= 17")]
FOUND = {0: ["cheap"], 1: ["cheap"], 2: ["cheap"], 17: ["finnish"], 19: ["finnish"]}


@pytest.fixture
def files(tmp_path: Any) -> Any:
    pq.write_table(pa.Table.from_pylist(EVENTS), tmp_path / "events.parquet")
    lines = [json.dumps(event) for event in EVENTS] + ['{"price": '] + ['{"price": "cheap"}']
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    with (tmp_path / "wishes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "expression"), *WISHES])
    with (tmp_path / "mixed.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "expression"), *WISHES, ("bad", "price <")])
    return tmp_path


@pytest.mark.spark
def test_parquet_to_parquet(spark: Any, files: Any) -> None:
    """The fixture is asked for so that the test is skipped where there is no Spark."""
    with (files / "wishes.csv").open("a", newline="") as file:
        csv.writer(file).writerows([("seen", "EXISTS d (d.price = price)")])
        csv.writer(file).writerows(
            [("risen", "price > 17 AND FORALL d IN LAST 1 (d.price < price)")]
        )
        csv.writer(file).writerows([("vip", "id IN SET vips")])
    (files / "vips.jsonl").write_text("5\n99\n")
    pq.write_table(pa.table({"price": [3, 50]}), files / "before.parquet")
    arguments = [
        "events.parquet", "wishes.csv", "out.parquet", "--event-id", "id",
        "--history", "before.parquet", "--order-by", "id", "--set", "vips=vips.jsonl",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "bittern.service.cli", "spark-match", *arguments, *QUICK],
        capture_output=True,
        text=True,
        cwd=files,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "BITTERN_CACHE_DIR": f"{files}/cache"},
        timeout=PATIENCE,
        check=False,
    )
    err = done.stderr
    assert done.returncode == 0, err
    assert "events" in done.stdout
    found = pq.read_table(files / "out.parquet").to_pylist()
    assert {row["id"]: sorted(row["subscriptions"]) for row in found if row["subscriptions"]} == (
        FOUND | {3: ["seen"], 5: ["vip"], 18: ["risen"], 19: ["finnish", "risen"]}
    )
    assert len(found) == len(EVENTS)
    assert "matching: " in err  # the progress
    assert "WARN " not in err  # Spark's own


@pytest.fixture
def spark_match(spark: Any, bittern_command: Any, monkeypatch: Any) -> Any:
    """Call the command with the session that is there, in place of one that it starts."""

    @contextlib.contextmanager
    def running(_master: str | None, conf: Mapping[str, str]) -> Iterator[Any]:
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in conf.items():
            hadoop.set(name.removeprefix("spark.hadoop."), value)
        yield spark
        for name in conf:
            hadoop.unset(name.removeprefix("spark.hadoop."))

    monkeypatch.setattr(session, "running", running)
    return lambda *arguments: bittern_command("spark-match", *arguments)


@pytest.mark.spark
def test_json_lines_with_rejects_and_bad_subscriptions(spark_match: Any, files: Any) -> None:
    code, _, err = spark_match(
        files / "events.jsonl", files / "mixed.csv", files / "out.parquet", "--event-id", "id",
        "--explode", "--on-error", "skip", "--rejects", files / "bad.parquet",
        "--payload", "*",
    )  # fmt: skip
    assert code == 0, err
    assert "'bad', position 7" in err
    found = pq.read_table(files / "out.parquet").to_pylist()
    pairs = sorted((int(row["id"]), row["subscription"]) for row in found)
    assert pairs == sorted((i, wish) for i, wishes in FOUND.items() for wish in wishes)
    assert all(json.loads(row["event"])["id"] == int(row["id"]) for row in found)
    bad = pq.read_table(files / "bad.parquet")
    assert bad.column_names == ["id", "event", "rejected"]
    assert len(bad) == 2
    assert sorted(bad["event"].to_pylist()) == ['{"price": ', '{"price": "cheap"}']


@pytest.mark.spark
def test_csv_output_from_a_snapshot(spark_match: Any, files: Any, bittern_command: Any) -> None:
    made = bittern_command("build", files / "wishes.csv", "--output", files / "shop.bittern")
    assert made[0] == 0
    code, _, err = spark_match(
        files / "events.parquet",
        files / "shop.bittern",
        files / "out.csv",
        "--event-id",
        "id",
        "--quiet",
    )
    assert code == 0, err
    parts = sorted((files / "out.csv").glob("part-*"))
    rows = [row for part in parts for row in csv.DictReader(part.read_text().splitlines())]
    pairs = sorted((int(row["id"]), row["subscription"]) for row in rows)
    assert pairs == sorted((i, wish) for i, wishes in FOUND.items() for wish in wishes)
    assert "matching" not in err


@pytest.mark.spark
def test_parquet_to_what_only_spark_reaches(spark_match: Any, files: Any) -> None:
    """Hadoop's viewfs gives a folder another name: a file system that only the JVM knows."""
    (files / "mounted").mkdir()
    mount = f"spark.hadoop.fs.viewfs.mounttable.x.link./out=file://{files}/mounted"
    names = (files / "events.parquet", files / "wishes.csv", "viewfs://x/out/m.parquet")
    arguments = (*names, "--conf", mount)
    code, out, err = spark_match(*arguments, "--event-id", "id")
    assert code == 0, err
    found = pq.read_table(files / "mounted" / "m.parquet").to_pylist()
    assert {row["id"]: row["subscriptions"] for row in found if row["subscriptions"]} == FOUND
    assert len(found) == len(EVENTS)
    assert dict(line.split()[:2] for line in out.splitlines())["events"] == str(len(EVENTS))
    code, out, err = spark_match(*arguments, "--quiet")
    said = "viewfs://x/out/m.parquet exists: choose another name or give --overwrite"
    assert (code, out, err.splitlines()[-1]) == (2, "", f"bittern: {said}")


@pytest.mark.spark
@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_what_spark_cannot_reach_is_told_before_anything_is_read(
    spark_match: Any, files: Any, monkeypatch: Any, scheme: str, overwrite: tuple[str, ...]
) -> None:
    monkeypatch.setattr(spark_match_module, "_read", lambda *_: pytest.fail("events were read"))
    code, _, err = spark_match(
        files / "events.parquet", files / "wishes.csv", f"{scheme}://b/m.parquet", *overwrite
    )
    assert code == 1
    assert "Spark lacks the connector for this URI" in err
    assert "write s3a://... and set spark.jars.packages=org.apache.hadoop:hadoop-aws:3." in err


@pytest.mark.spark
def test_a_place_is_known_before_anything_is_written_there(spark: Any, tmp_path: Any) -> None:
    assert session.exists(spark, f"file://{tmp_path}")
    assert not session.exists(spark, f"file://{tmp_path}/nothing")


@pytest.mark.spark
def test_events_that_are_all_rejected_fail(spark_match: Any, files: Any) -> None:
    (files / "broken.jsonl").write_text('{"price": \nnonsense\n')
    code, out, err = spark_match(
        *(files / name for name in ("broken.jsonl", "wishes.csv", "out.jsonl")),
        "--quiet",
        "--event-id",
        "id",
    )
    said = "bittern: all events were rejected, so none matched"
    assert (code, out, err.splitlines()[-1]) == (1, "", said)


# What is wrong with a command shows before Spark starts


@pytest.mark.parametrize(
    ("arguments", "said", "expected"),
    [
        (("nope.parquet", "wishes.csv", "out.parquet"), "no such file", 1),
        (("events.parquet", "nope.csv", "out.parquet"), "no such file", 1),
        (("events.parquet", "wishes.csv", "out.what"), "extension", 2),
        (("events.parquet", "wishes.csv", "wishes.csv"), "exists", 2),
        (("events.parquet", "wishes.csv", "out.parquet", "--conf", "x"), "NAME=VALUE", 2),
        (("events.jsonl", "wishes.csv", "out.csv", "--rejects", "r"), "--rejects needs Parquet", 2),
        (("events.parquet", "wishes.csv", "events.parquet", "--overwrite"), "is an input", 2),
        (("events.parquet", "wishes.csv", "s3a://b/o.parquet", "--rejects", "r"), "paths", 2),
        (("events.parquet", "wishes.csv", "out.parquet", "--rejects", "s3a://b/r"), "paths", 2),
        (
            ("events.parquet", "wishes.csv", ".", "--output-format", "csv", "--overwrite"),
            "holds",
            2,
        ),
    ],
)
def test_mistakes(
    files: Any,
    bittern_command: Any,
    monkeypatch: Any,
    arguments: tuple[str, ...],
    said: str,
    expected: int,
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setattr(session, "running", lambda *_: pytest.fail("Spark was started"))
    code, _, err = bittern_command("spark-match", *arguments)
    assert said in err
    assert code == expected


@pytest.mark.parametrize(("home", "said"), [("/nowhere", "JAVA_HOME is /nowhere"), ("", "PATH")])
def test_no_java(files: Any, bittern_command: Any, monkeypatch: Any, home: str, said: str) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", str(files))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    code, _, err = bittern_command("spark-match", "events.parquet", "wishes.csv", "out.csv")
    assert code == 2
    assert "needs Java 17" in err
    assert said in err
    assert not list(files.glob("*out.csv*"))


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "bittern.service.cli", "spark-match", "events.parquet", "wishes.csv", "out.csv"],
        [str(Path(__file__).parents[2] / "examples" / "demo.py")],
    ],
    ids=["spark-match", "demo"],
)
def test_no_pyspark(files: Any, command: list[str]) -> None:
    (files / "pyspark").mkdir()
    (files / "pyspark" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'pyspark'\", name='pyspark')"
    )
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=files,
        env=os.environ | {"PYTHONPATH": str(files)},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "bittern: pyspark is not installed: pip install 'bittern[spark]'\n"


# The session


class Stopped:
    """A session that notes that it was stopped."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def handler(monkeypatch: Any) -> Any:
    """The handler of SIGINT, which must be there again in the end."""
    monkeypatch.setattr("logging.disable", lambda: None)
    before = signal.getsignal(signal.SIGINT)
    yield before
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.usefixtures("handler")
def test_interrupted_while_spark_starts(monkeypatch: Any) -> None:
    spark = Stopped()

    def start(*_: Any) -> Stopped:
        os.kill(os.getpid(), signal.SIGINT)
        return spark

    monkeypatch.setattr(session, "_start", start)
    with pytest.raises(KeyboardInterrupt), session.running(None, {}):
        pytest.fail("it was interrupted")
    assert spark.stopped


@pytest.mark.usefixtures("handler")
def test_interrupted_while_spark_runs(monkeypatch: Any) -> None:
    spark = Stopped()
    monkeypatch.setattr(session, "_start", lambda *_: spark)

    def work() -> None:
        with session.running(None, {}):
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert spark.stopped


@pytest.mark.usefixtures("handler")
def test_sigterm_ends_spark_as_an_interrupt_does(monkeypatch: Any) -> None:
    spark = Stopped()

    def start(*_: Any) -> Stopped:
        os.kill(os.getpid(), signal.SIGTERM)  # it waits until there is something to stop
        return spark

    def work(_options: Any) -> int:
        with session.running(None, {}):
            pytest.fail("it was terminated")

    monkeypatch.setattr(session, "_start", start)
    assert cli.run(argparse.Namespace(run=work)) == 143
    assert spark.stopped


class Tracker:
    """Spark's stages, a look at a time: which run, with tasks done and tasks."""

    def __init__(self, looks: list[dict[int, tuple[int, int]]]) -> None:
        self.looks = looks
        self.now: dict[int, tuple[int, int]] = {}

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 (Spark's)
        if self.looks:
            self.now = self.looks.pop(0)
        return list(self.now)

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802
        done, total = self.now[stage]
        return SimpleNamespace(numCompletedTasks=done, numTasks=total)


class Told:
    """Who is told of progress."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.calls.append((stage, done, total))

    def close(self) -> None:
        self.calls.append(("closed",))


def test_progress_counts_the_tasks_of_all_stages(monkeypatch: Any) -> None:
    looks = [{}, {1: (0, 2)}, {1: (0, 2)}, {1: (1, 2)}, {}, {2: (0, 4), 3: (1, 1)}, {}]
    tracker, told = Tracker(looks), Told()
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    monkeypatch.setattr(session, "_LOOK", 0.001)
    with session.watched(spark, told, "matching"):
        wait_until(lambda: not tracker.looks)
    done = [(0, 2), (1, 2), (3, 7), (7, 7)]
    assert told.calls == [*(("matching", *each) for each in done), ("closed",)]


class Hourglass:
    """A clock that goes on by a minute whenever somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, _: float) -> None:
        self.now += 60


def test_the_demo_is_as_patient_with_each_batch(monkeypatch: Any, tmp_path: Any) -> None:
    """A slow machine takes longer for all of them than any of them may take."""
    clock = Hourglass()
    monkeypatch.setattr(demo, "time", clock)
    monkeypatch.setattr(demo, "_tell", lambda _: None)

    def figures() -> Any:
        last = min(int(clock.now // 60), 9)  # one comes in every minute, and ten in all
        return SimpleNamespace(recent=[SimpleNamespace(report=SimpleNamespace(batch_id=last))])

    running = SimpleNamespace(is_active=True)
    shop = demo._Shop(running, SimpleNamespace(figures=figures), tmp_path)
    batches = shop.batches()
    assert [next(batches).batch_id for _ in range(10)] == list(range(10))
    with pytest.raises(PipelineError, match="no batch came in 120 s"):
        next(batches)


SAID_BY_SPARK = {
    "[PATH_NOT_FOUND] No such path.\n'Plan": "[PATH_NOT_FOUND] No such path.",
    "Calling o40.x.\n: org.apache.SparkException: [CODE] Why.\n\tat java": "[CODE] Why.",
    "Job aborted.\nTraceback\nOSError: x\n\nbittern.errors.SnapshotError: gone\n": "gone",
    "": "ValueError",
}


@pytest.mark.parametrize("text", SAID_BY_SPARK)
def test_reasons(text: str) -> None:
    assert session.reason(ValueError(text)) == SAID_BY_SPARK[text]
