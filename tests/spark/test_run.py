"""``bittern run``: how it is stopped, what is shown meanwhile, and all of it in a child process."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from py4j.protocol import Py4JNetworkError

import bittern
import spark_sessions
from bittern.errors import PipelineError, SnapshotError
from bittern.service import pipeline_file
from bittern.service import run as running_pipelines
from bittern.service.live_view import LiveView, as_line, picture
from bittern.service.run import Signals, attend, raise_failure, summary
from bittern.spark.streaming.metrics import BatchReport, Figures, Metrics, TriggerProgress
from bittern.spark.streaming.pins import Checkpoint
from steady import PATIENCE, free_port, wait_until

STAGES = {"pin": 0.001, "view": 0.02, "match": 0.4, "deliver": 0.11}


def busy(batches: int = 12, error: str | None = None) -> Figures:
    metrics = Metrics()
    for i in range(batches):
        metrics.batch(BatchReport(i, 40, 42, 1000 + i, 120, i % 2, STAGES))
        metrics.progress(TriggerProgress(i, rows=1000, whole=0.75, commit=0.09, behind=1234))
    if error is not None:
        metrics.ended(error)
    return metrics.figures()


# The view


def drawn(figures: Figures, width: int, lines: int = 8, name: str = "shop") -> list[str]:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=width, height=40)
    console.print(picture(name, figures, width, lines))
    return stream.getvalue().rstrip("\n").split("\n")


def test_the_picture_shows_what_there_is() -> None:
    lines = drawn(busy(), 100)
    assert lines[0].startswith("shop   running for 0:00:00 ")
    assert lines[0].endswith(" batch 11, catalog version 40 (2 behind)")
    assert re.split("  +", lines[2].strip()) == [
        *("events/s", "matches/s", "latency p50", "latency p99", "behind", "rejects"),
        *("events", "matches"),
    ]
    assert re.split("  +", lines[3].strip())[2:] == (
        ["0.75 s", "0.75 s", "1,234", "6", "12,066", "1,440"]
    )
    assert lines[5].split()[:6] == ["batch", "version", "events", "matches", "rejects", "latency"]
    assert re.split("  +", lines[-1].strip()) == [
        *("11", "40", "1,011", "120", "1"),
        *("0.75 s", "0.40 s", "0.11 s", "90 ms", "20 ms", "1 ms"),
    ]
    assert len(lines) == 6 + 8


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40, 20, 8, 1])
@pytest.mark.parametrize("batches", [0, 1, 12])
def test_the_picture_fits(width: int, batches: int) -> None:
    error = "no [bold]broker[/] any more\nand what follows is long " * 5
    lines = drawn(busy(batches, error), width)
    assert max(map(len, lines)) <= width
    tables = [line for line in lines[1:-1] if not line.startswith("─")]
    if width >= 8:
        assert not any("…" in line for line in tables if "shop" not in line)  # columns are whole


def test_the_picture_is_as_high_as_there_is_room() -> None:
    assert len(drawn(busy(), 100, lines=3)) == 6 + 3
    assert len(drawn(busy(), 100, lines=0)) == 4
    assert len(drawn(busy(), 100, lines=-7)) == 4


def test_nothing_in_a_text_moves_the_cursor_or_is_markup() -> None:
    (*_, last) = drawn(busy(1, "\x1b[2Jgone\r\x07 [red]x[/red]"), 100, name="\x1b]0;x\x07")
    assert last.strip() == "[2Jgone   [red]x[/red]"
    assert not any("\x1b" in line for line in drawn(busy(1), 100, name="\x1b]0;x\x07"))


def test_one_line_of_figures() -> None:
    line = as_line(busy())
    assert re.fullmatch(
        r"batch 11: [\d,]+ events/s, [\d,]+ matches/s, latency p50 0\.75 s p99 0\.75 s, "
        r"catalog version 40 \(2 behind\), 1,234 events behind, 12,066 events, 1,440 matches, "
        r"6 rejects",
        line,
    )
    assert as_line(Figures()) == "no batch yet"
    assert as_line(busy(1, "it\nis gone")).endswith("0 rejects, it is gone")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    view = LiveView("shop", stream, clock)
    for second in range(241):
        clock.now = float(second)
        view.show(busy(1 + min(second, 20)))  # a batch each second, and then none
    view.close(busy())
    shown = [int(line.split()[1].rstrip(":")) for line in stream.getvalue().splitlines()]
    assert shown == [0, 5, 10, 15, 20, 20, 20, 20]
    assert "\x1b" not in stream.getvalue()


def test_the_last_batch_is_told_at_the_end() -> None:
    """Also of a run so short that no line was due since its first batch."""
    stream, clock = io.StringIO(), Clock()
    view = LiveView("shop", stream, clock)
    view.show(Figures())
    view.show(busy(3))  # a moment later
    view.close(busy(4))
    shown = stream.getvalue().splitlines()
    assert shown[0] == "no batch yet"
    assert [line.split(":")[0] for line in shown[1:]] == ["batch 3"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_drawn_on_in_place(monkeypatch: Any) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("LINES", "12")
    stream, clock = Terminal(), Clock()
    view = LiveView("shop", stream, clock)
    for i in range(20):
        clock.now += 0.1
        view.show(busy(1 + i))
    view.close(busy(20))
    written = stream.getvalue()
    assert 5 < written.count("running for") < 15  # not for every call
    assert written.count("ran for") == 1
    assert "\x1b[1A" in written  # the cursor goes up instead of the screen being wiped
    assert "\x1b[2J" not in written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1  # it is seen again


@pytest.mark.parametrize("variable", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: Any, variable: str) -> None:
    monkeypatch.setenv("TERM", variable)
    stream = Terminal()
    view = LiveView("shop", stream)
    view.show(busy())
    view.close(busy())
    assert re.fullmatch(r"batch 11: .* rejects\n", stream.getvalue())


def test_a_pipe_is_no_terminal_whatever_the_environment_says(monkeypatch: Any) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    view = LiveView("shop", stream)
    view.show(busy())
    view.close(busy())
    assert "\x1b" not in stream.getvalue()


def test_whoever_watches_may_go_away() -> None:
    reads, writes = os.pipe()
    with os.fdopen(writes, "w") as stream:
        clock = Clock()
        view = LiveView("shop", stream, clock)
        view.show(busy())
        os.close(reads)
        for _ in range(3):
            clock.now += 100
            view.show(busy(14))
        view.close(busy())
        stream.write("and this harms nobody")  # nor does what is flushed at exit
    view.show(busy())  # of a stream that is closed


def test_a_terminal_that_hangs_up(monkeypatch: Any) -> None:
    class Gone(Terminal):
        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setenv("TERM", "xterm")
    view = LiveView("shop", Gone())
    view.show(busy())
    view.close(busy())


# Stopping


class Fake:
    """A pipeline that runs until it is stopped; ``slow`` until it is aborted."""

    def __init__(self, *, slow: bool = False, failure: PipelineError | None = None) -> None:
        self.is_active = failure is None
        self.calls: list[str] = []
        self._slow = slow
        self._failure = failure
        self._over = threading.Event()

    def stop(self) -> None:
        self.calls.append("stop")
        if self._slow:
            assert self._over.wait(PATIENCE)
        self.is_active = False

    def abort(self) -> None:
        self.calls.append("abort")
        self._over.set()
        self.is_active = False

    def await_termination(self, _seconds: float) -> bool:
        if self._failure is not None:
            raise self._failure from self._failure.__cause__
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: Any) -> None:
    monkeypatch.setattr(running_pipelines, "_LOOK", 0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_stops_and_the_second_does_it_at_once(number: signal.Signals) -> None:
    with Signals() as signals:
        pipeline = Fake()
        os.kill(os.getpid(), number)
        assert attend(pipeline, Metrics(), signals, None) == 0
        assert pipeline.calls == ["stop"]
        slow = Fake(slow=True)
        os.kill(os.getpid(), number)
        assert attend(slow, Metrics(), signals, None) == 130
        assert slow.calls == ["stop", "abort"]


def test_a_signal_while_it_runs(monkeypatch: Any) -> None:
    """The batch under way is waited for, until the second one comes."""
    pipeline = Fake(slow=True)
    looks = iter([None, signal.SIGTERM, None, None, None, signal.SIGTERM])

    def sleep(_: float) -> None:
        number = next(looks, None)
        if number is not None:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(running_pipelines.time, "sleep", sleep)
    with Signals() as signals:
        assert attend(pipeline, Metrics(), signals, None) == 130
    assert pipeline.calls == ["stop", "abort"]


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with Signals() as signals:
        with signals.again():
            os.kill(os.getpid(), signal.SIGINT)
        assert signals.asked == 1
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_one_that_ends_by_itself() -> None:
    pipeline = Fake()
    pipeline.is_active = False
    assert attend(pipeline, Metrics(), Signals(), None) == 0
    assert pipeline.calls == []


def test_stopping_that_fails_is_told() -> None:
    class Broken(Fake):
        def stop(self) -> None:
            raise PipelineError("the disk is full")

    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(PipelineError, match="the disk is full"):
            attend(Broken(), Metrics(), signals, None)


def test_a_failure_is_a_sentence_and_a_hint() -> None:
    metrics = Metrics()
    failure = PipelineError("the stream has stopped")
    failure.__cause__ = RuntimeError("Job aborted\n\tat org.apache\nbittern.errors.X: damaged")
    with pytest.raises(PipelineError) as caught:
        raise_failure(Fake(failure=failure), metrics, "/data/checkpoint")
    assert str(caught.value) == (
        "the pipeline has failed: damaged\n"
        "What was committed is safe: start it again, and it continues from /data/checkpoint"
    )
    assert metrics.figures().failed
    assert metrics.figures().error == "damaged"
    own = PipelineError("the stream has stopped")
    own.__cause__ = SnapshotError("no such snapshot")
    with pytest.raises(PipelineError, match="has failed: no such snapshot"):
        raise_failure(Fake(failure=own), Metrics(), "c")
    raise_failure(Fake(), metrics, "c")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            ConnectionRefusedError(111, "Connection refused"),
            "Spark's JVM ended while the pipeline ran (Connection refused). What was ",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark: Answer from Java side is"),
    ],
)
def test_a_jvm_that_is_gone(
    bittern_command: Any, files: Path, monkeypatch: Any, failure: Exception, said: str
) -> None:
    def dies(*_: object) -> int:
        raise failure

    monkeypatch.setattr(running_pipelines, "_run", dies)
    code, _, err = bittern_command("run", files / "pipeline.toml")
    assert code == 1
    assert said in err


def test_what_ends_the_watching_is_in_the_metrics(monkeypatch: Any) -> None:
    class Lost(Fake):
        @property
        def is_active(self) -> bool:
            raise ConnectionResetError(104, "Connection reset by peer")

        @is_active.setter
        def is_active(self, _: bool) -> None:
            pass

    metrics = Metrics()
    pipeline = SimpleNamespace(start=Lost)
    with pytest.raises(ConnectionResetError):
        running_pipelines._attended(pipeline, None, metrics, Signals(), quiet=True)
    assert metrics.figures().error == "[Errno 104] Connection reset by peer"


def test_the_summary() -> None:
    figures = Figures(uptime=3.21, batches=1, events=1, matches=2)
    assert summary(figures, given_up=False) == "stopped: 1 event, 2 matches in 1 batch, 3.2 s"
    figures = Figures(uptime=3.21, batches=2, events=1500, matches=1, rejects=3)
    assert summary(figures, given_up=True) == (
        "stopped at once; the current batch will be replayed: 1,500 events, 1 match, "
        "3 rejected in 2 batches, 3.2 s"
    )


# What is wrong shows before Spark starts


def test_a_file_that_is_wrong(bittern_command: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        running_pipelines.session, "running", lambda *_: pytest.fail("Spark was started")
    )
    (tmp_path / "pipeline.toml").write_text('[catalog]\nurll = "shop.db"\n')
    code, out, err = bittern_command("run", tmp_path / "pipeline.toml")
    assert (code, out) == (2, "")
    assert "5 things are wrong with it" in err
    assert "catalog.urll is not a key here: did you mean url?" in err
    code, _, err = bittern_command("run", tmp_path / "nope.toml", "--check")
    assert code == 2
    assert "nope.toml: No such file or directory" in err


def test_a_catalog_that_is_none(bittern_command: Any, files: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        running_pipelines.session, "running", lambda *_: pytest.fail("Spark was started")
    )
    (files / "shop.db").write_bytes(b"no database, but long enough to be taken for one" * 40)
    code, _, err = bittern_command("run", files / "pipeline.toml")
    assert code == 1
    assert "shop.db" in err
    assert not (files / "metrics.jsonl").exists()


def test_a_catalog_that_is_not_there_is_not_made(
    bittern_command: Any, files: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(
        running_pipelines.session, "running", lambda *_: pytest.fail("Spark was started")
    )
    code, _, err = bittern_command("run", files / "pipeline.toml")
    assert code == 1
    assert "shop.db" in err
    assert not (files / "shop.db").exists()


@pytest.mark.parametrize("key", ["json_lines", "prometheus_file"])
def test_metrics_that_cannot_be_written(
    bittern_command: Any, files: Path, monkeypatch: Any, key: str
) -> None:
    monkeypatch.setattr(
        running_pipelines.session, "running", lambda *_: pytest.fail("Spark was started")
    )
    bittern.Catalog(files / "shop.db").close()
    (files / "file").write_text("")
    text = (files / "pipeline.toml").read_text()
    changed = re.sub(rf"^{key} = .*$", f'{key} = "file/x.prom"', text, flags=re.MULTILINE)
    (files / "pipeline.toml").write_text(changed)
    code, _, err = bittern_command("run", files / "pipeline.toml")
    assert code == 2
    assert "cannot write metrics to" in err


def checkpoint_files(files: Path) -> list[str]:
    return sorted(str(path.relative_to(files)) for path in (files / "checkpoint").rglob("*"))


@pytest.mark.parametrize("options", [(), ("--check",), ("--once", "--quiet")])
def test_a_checkpoint_that_is_in_use(
    bittern_command: Any, files: Path, monkeypatch: Any, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(
        running_pipelines.session, "running", lambda *_: pytest.fail("Spark was started")
    )
    bittern.Catalog(files / "shop.db").close()
    with Checkpoint(files / "checkpoint"):
        code, _, err = bittern_command("run", files / "pipeline.toml", *options)
    assert code == 1
    assert f"checkpoint is in use by process {os.getpid()} on " in err
    assert not (files / "metrics.jsonl").exists()  # they are the other's


class Starting(Exception):  # noqa: N818
    """Spark would be started now."""


@pytest.mark.parametrize("exists", [False, True])
def test_a_checkpoint_is_free_again_when_spark_starts(
    files: Path, monkeypatch: Any, *, exists: bool
) -> None:
    """A mere check makes none."""
    bittern.Catalog(files / "shop.db").close()
    if exists:
        Checkpoint(files / "checkpoint").__enter__().__exit__(None, None, None)
    before = checkpoint_files(files)
    file = pipeline_file.read(files / "pipeline.toml", {})

    def start(*_: object) -> None:
        with Checkpoint(file.run.checkpoint):
            raise Starting

    def check(*_: object) -> None:
        assert checkpoint_files(files) == before
        raise Starting

    for spark, checks in ((check, True), (start, False)):
        monkeypatch.setattr(running_pipelines.session, "running", spark)
        with pytest.raises(Starting):
            running_pipelines._run(file, argparse.Namespace(check=checks, quiet=True, once=False))


# The whole of it


PIPELINE = """
[catalog]
url = "shop.db"
[source]
kind = "files"
path = "incoming"
keys = {{ id = "get_json_object(value, '$.id')" }}
[matching]
event_id = "id"
[sink]
kind = "files"
path = "matches"
[rejects]
path = "rejects"
[run]
checkpoint = "checkpoint"
trigger = "100 milliseconds"
master = "local[2]"
[run.conf]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
spark.sql.shuffle.partitions = 2
[metrics]
json_lines = "metrics.jsonl"
prometheus_file = "shop.prom"
prometheus_port = {port}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.toml").write_text(PIPELINE.format(port=free_port()))
    (tmp_path / "incoming").mkdir()
    return tmp_path


def put(folder: Path, first: int, *more: str) -> None:
    """Twenty events with their numbers as prices, and other lines, in one file at once."""
    lines = [json.dumps({"id": i, "price": i}) for i in range(first, first + 20)]
    (folder / "writing").write_text("\n".join([*lines, *more]) + "\n")
    (folder / "writing").rename(folder / "incoming" / f"{first}.jsonl")


class Child:
    """``bittern run`` in a process of its own, with what it says in a file."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.said = folder / "stderr"
        command = [sys.executable, "-m", "bittern.service.cli", "run", "pipeline.toml", *options]
        environment = {"SPARK_LOCAL_IP": "127.0.0.1", "BITTERN_CACHE_DIR": str(folder / "cache")}
        with self.said.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                env=os.environ | environment,
                start_new_session=True,
            )

    def until(self, events: int) -> list[dict[str, Any]]:
        """Wait for the metrics of so many events."""

        def look() -> None:
            assert self._process.poll() is None, self.said.read_text()

        wait_until(lambda: sum(line["events"] for line in self._lines()) >= events, look)
        return self._lines()

    def _lines(self) -> list[dict[str, Any]]:
        path = self.folder / "metrics.jsonl"
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """Wait for the end: the exit code, and what was said."""
        try:
            code = self._process.wait(timeout=PATIENCE)
        finally:
            spark_sessions.end(self._process.pid)
        said = self.said.read_text()
        assert "Traceback" not in said
        return code, said


def found(folder: Path) -> list[tuple[int, str]]:
    rows = pq.read_table(folder / "matches").select(["id", "subscription"]).to_pylist()
    return sorted((int(row["id"]), row["subscription"]) for row in rows)


@pytest.mark.spark
def test_a_pipeline_that_is_stopped_fails_and_goes_on(
    spark: Any, files: Path, bittern_command: Any, monkeypatch: Any
) -> None:
    """By itself it is stopped, and fails; then it goes on in the session that is there."""
    with bittern.Catalog(files / "shop.db") as catalog:
        catalog.add("cheap", "price < 3")
        put(files, 0, '{"price": ')
        child = Child(files)
        first = child.until(20)
        version = catalog.add("round", "price IN (10, 20, 30, 40, 50)")
        put(files, 20)
        lines = child.until(40)
    assert served(files, "healthz") == served(files, "readyz") == "ok\n"
    (pages,) = re.findall(r"^bittern: Spark's pages are at (http://127\.0\.0\.1:\d+)$",
        child.said.read_text(), re.MULTILINE,
    )  # fmt: skip
    with urllib.request.urlopen(f"{pages}/StreamingQuery/", timeout=PATIENCE) as answer:
        assert "bittern:pipeline" in answer.read().decode()
    assert 'bittern_events_total{pipeline="pipeline"} 4' in served(files, "metrics")
    child.send(signal.SIGTERM)
    code, said = child.ended()
    assert code == 0, said
    assert re.search(r"bittern: stopped: 4\d events, 5 matches, 1 rejected in \d+ batch", said)
    assert re.search(r"^batch \d+: .* events/s, .* catalog version \d", said, re.MULTILINE)
    assert sum(line["rejects"] for line in first) == 1
    assert {line["version"] for line in lines} == {version - 1, version}
    assert set(lines[0]["seconds"]) >= {"pin", "view", "match", "deliver", "commit", "other"}
    matches = [(0, "cheap"), (1, "cheap"), (2, "cheap"), (20, "round"), (30, "round")]
    assert found(files) == matches
    assert pq.read_table(files / "rejects").num_rows == 1
    assert 'bittern_matches_total{pipeline="pipeline"} 5.0\n' in (files / "shop.prom").read_text()
    assert 'bittern_failed{pipeline="pipeline"} 0.0\n' in (files / "shop.prom").read_text()

    # What the next batch needs is damaged: nothing is lost by that.
    put(files, 40)
    commits = (files / "checkpoint" / "commits").iterdir()
    following = 1 + max(int(note.name) for note in commits if note.name.isdigit())
    pin = files / "checkpoint" / "bittern" / "pins" / f"{following:020d}.json"
    pin.write_text("{")
    code, said = Child(files, "--once", "--quiet").ended()
    assert code == 1, said
    assert re.search(r"^bittern: the pipeline has failed: the pin .* cannot", said, re.MULTILINE)
    assert "MicroBatchExecution" not in said  # it is told once
    assert f"it continues from {files / 'checkpoint'}\n" in said
    assert 'bittern_failed{pipeline="pipeline"} 1.0\n' in (files / "shop.prom").read_text()

    pin.unlink()
    monkeypatch.setattr(
        running_pipelines.session, "running", lambda *_: contextlib.nullcontext(spark)
    )
    code, _, said = bittern_command("run", files / "pipeline.toml", "--once")
    assert code == 0, said
    assert "bittern: stopped: 20 events, 2 matches in 1 batch" in said
    assert found(files) == [*matches, (40, "round"), (50, "round")]


def served(folder: Path, path: str) -> str:
    (port,) = re.findall(r"prometheus_port = (\d+)", (folder / "pipeline.toml").read_text())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=PATIENCE) as answer:
        return str(answer.read().decode())
