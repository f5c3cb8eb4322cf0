"""Figures of a pipeline: what is counted, and what other programs get to read of it."""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import threading
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError
from bittern.spark.streaming.json_lines import JsonLines
from bittern.spark.streaming.metrics import (
    BatchReport,
    Durations,
    Figures,
    Metrics,
    TriggerProgress,
)
from bittern.spark.streaming.prometheus import PrometheusFile, Served, prometheus_text
from steady import PATIENCE

STAGES = {"pin": 0.25, "view": 0.25, "match": 1.0, "deliver": 0.5}
#: A line of Prometheus' format: a name, labels whose values are quoted, a number.
SAMPLE = re.compile(
    r"(bittern_\w+)\{((?:\w+=\"(?:[^\"\\\n]|\\[\\\"n])*\",?)+)\} (-?\d+(?:\.\d+)?(?:e[+-]\d+)?)"
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def report(batch_id: int, events: int = 100, matches: int = 10, **more: Any) -> BatchReport:
    arguments = {"version": 3, "newest": 3, "seconds": STAGES, **more}
    return BatchReport(batch_id, events=events, matches=matches, **arguments)


def test_totals_are_sums_and_states_are_the_last(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    assert metrics.figures() == Figures()
    metrics.batch(report(0, rejects=2, delta=5, segments=2))
    metrics.batch(report(1, events=50, matches=0, version=4, newest=9, delta=7, segments=3))
    figures = metrics.figures()
    assert (figures.events, figures.matches, figures.rejects) == (150, 10, 2)
    assert (figures.batches, figures.batch_id) == (2, 1)
    assert (figures.version, figures.newest, figures.versions_behind) == (4, 9, 5)
    assert (figures.delta, figures.segments) == (7, 3)
    assert figures.seconds == {stage: 2 * took for stage, took in STAGES.items()}
    assert [done.report.batch_id for done in figures.recent] == [0, 1]


def test_a_pin_newer_than_the_newest_seen_is_not_behind(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    metrics.batch(report(0, version=8, newest=7))
    assert metrics.figures().versions_behind == 0
    assert metrics.figures().newest == 8


def test_rates_are_over_the_last_minute_and_fall_when_nothing_comes(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    for i in range(60):
        clock.now += 2
        metrics.batch(report(i))  # took 2 s: one follows the other
    assert metrics.figures().events_rate == pytest.approx(50)
    assert metrics.figures().matches_rate == pytest.approx(5)
    clock.now += 30
    assert metrics.figures().events_rate == pytest.approx(25)
    clock.now += 31
    assert metrics.figures().events_rate == 0


def test_a_batch_longer_than_the_minute_counts_for_its_part_in_it(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    clock.now += 600
    metrics.batch(report(0, events=6000, seconds={"match": 600.0}))
    assert metrics.figures().events_rate == pytest.approx(10)


def test_rates_at_the_start_are_of_the_time_there_was(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    metrics.batch(report(0))  # took 2 s, and the clock began when it ended
    assert metrics.figures().events_rate == pytest.approx(50)
    instant = Metrics(clock=clock)
    instant.batch(report(0, seconds={}))
    assert instant.figures().events_rate == 0  # in no time there is no rate


def test_time_is_counted_from_the_start_of_the_stream(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    clock.now += 20
    metrics.begin()
    clock.now += 4
    metrics.batch(report(0))
    assert metrics.figures().uptime == 4
    assert metrics.figures().events_rate == pytest.approx(25)


def test_quantiles_of_the_latency(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    for i in range(100):
        metrics.batch(report(i, seconds={"match": float(i + 1)}))
    assert (metrics.figures().latency_p50, metrics.figures().latency_p99) == (50.0, 99.0)
    for i in range(200):
        metrics.batch(report(100 + i, seconds={"match": 1.0}))
    assert metrics.figures().latency_p99 == 1.0  # the first hundred are forgotten
    assert metrics.figures().latency_sum == 5050 + 200


def test_spark_tells_the_rest_of_a_batch(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    metrics.batch(report(7))
    metrics.progress(TriggerProgress(7, rows=100, whole=3.0, commit=0.75, behind=40))
    figures = metrics.figures()
    assert figures.recent[-1].latency == 3.0
    assert figures.seconds == {**STAGES, "commit": 0.75, "other": 0.25}
    assert (figures.rows, figures.behind, figures.latency_sum) == (100, 40, 3.0)


def test_what_spark_tells_of_other_batches_changes_no_latency(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    metrics.progress(TriggerProgress(7, rows=3, whole=9.0))  # nothing was reported at all
    metrics.batch(report(7))
    metrics.progress(TriggerProgress(8, whole=9.0))
    metrics.progress(TriggerProgress(7))  # without a duration
    metrics.progress(TriggerProgress(7, whole=9.0))  # told twice
    assert metrics.figures().recent[-1].latency == 2.0
    assert metrics.figures().rows == 3


def test_spark_that_counts_less_than_the_stages_took(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    metrics.batch(report(7))
    metrics.progress(TriggerProgress(7, whole=1.999, commit=0.0))
    assert metrics.figures().recent[-1].latency == 2.0
    assert metrics.figures().seconds["other"] == 0


def test_a_source_that_is_silent_for_a_while_keeps_its_lag(clock: Clock) -> None:
    metrics = Metrics(clock=clock)
    metrics.progress(TriggerProgress(0, behind=12))
    metrics.progress(TriggerProgress(1))
    assert metrics.figures().behind == 12


def test_many_threads_lose_nothing() -> None:
    metrics = Metrics()

    def work(first: int) -> None:
        for i in range(200):
            metrics.batch(report(first + i, seconds={"match": 0.001}))
            metrics.progress(TriggerProgress(first + i, rows=1))
            metrics.figures()

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures = metrics.figures()
    assert (figures.batches, figures.events, figures.rows) == (800, 80_000, 800)
    assert figures.seconds["match"] == pytest.approx(0.8)


# JSON lines


def lines_of(path: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_line_per_batch_once_it_is_complete(tmp_path: Any) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    metrics = Metrics([JsonLines(path, "shop")], wall=lambda: 1_700_000_000.125)
    metrics.batch(report(0))
    assert lines_of(path) == []  # Spark may still tell its part
    metrics.progress(TriggerProgress(0, whole=2.5, commit=0.25, behind=3))
    metrics.batch(report(1))
    metrics.batch(report(2, rejects=1, replayed=True))  # Spark never told of batch 1
    metrics.close()
    first, second, third = lines_of(path)
    assert first == {
        "time": "2023-11-14T22:13:20.125Z",
        "pipeline": "shop",
        "batch": 0,
        "replayed": False,
        "version": 3,
        "newest": 3,
        "events": 100,
        "matches": 10,
        "rejects": 0,
        "latency": 2.5,
        "seconds": {**STAGES, "commit": 0.25, "other": 0.25},
        "delta": 0,
        "segments": 0,
        "documents": None,
        "left_out": 0,
        "behind": 3,
    }
    assert second["seconds"] == STAGES
    assert (third["batch"], third["rejects"], third["replayed"]) == (2, 1, True)


def test_a_line_that_was_cut_stays_alone(tmp_path: Any) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"batch": 0}\n{"ba')
    metrics = Metrics([JsonLines(path, "shop")])
    metrics.batch(report(1))
    metrics.close()
    lines = path.read_text().splitlines()
    assert lines[:2] == ['{"batch": 0}', '{"ba']
    assert json.loads(lines[2])["batch"] == 1


def test_a_large_file_makes_way(tmp_path: Any) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics([JsonLines(path, "shop", rotate=1000)])
    for i in range(20):
        metrics.batch(report(i))
    metrics.close()
    old = lines_of(tmp_path / "metrics.jsonl.1")
    new = lines_of(path)
    assert [line["batch"] for line in [*old, *new]] == list(range(20 - len(old) - len(new), 20))
    assert all(file.stat().st_size <= 1000 for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 2


def test_lines_that_cannot_be_put_aside_are_written_nevertheless(tmp_path: Any) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics([JsonLines(path, "shop", rotate=1)])
    (tmp_path / "metrics.jsonl.1").mkdir()
    for batch in range(3):
        metrics.batch(report(batch))
    metrics.close()
    assert [line["batch"] for line in lines_of(path)] == [0, 1, 2]
    assert "metrics.jsonl" in (metrics.figures().error or "")


def test_lines_go_on_where_the_file_was_taken_away(tmp_path: Any) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics([JsonLines(path, "shop", rotate=1)])
    metrics.batch(report(0))
    metrics.batch(report(1))
    path.unlink()
    metrics.batch(report(2))
    metrics.batch(report(3))
    metrics.close()
    assert [line["batch"] for line in lines_of(path)] == [3]
    assert metrics.figures().error is None


def test_a_disk_that_is_full_does_not_stop_the_stream(tmp_path: Any) -> None:
    class Full(JsonLines):
        def batch(self, _: Any) -> None:
            raise OSError(28, "No space left on device")

    other = JsonLines(tmp_path / "other.jsonl", "shop")
    metrics = Metrics([Full(tmp_path / "full.jsonl", "shop"), other])
    metrics.batch(report(0))
    metrics.batch(report(1))
    assert "No space left on device" in str(metrics.figures().error)
    assert not metrics.figures().failed
    metrics.close()
    assert [line["batch"] for line in lines_of(tmp_path / "other.jsonl")] == [0, 1]


def test_the_error_of_the_query_is_not_hidden_by_that_of_an_exporter(tmp_path: Any) -> None:
    class Full(JsonLines):
        def refresh(self, _: Any) -> None:
            raise OSError(28, "No space left on device")

    metrics = Metrics([Full(tmp_path / "full.jsonl", "shop")])
    metrics.ended("the broker is gone")
    assert metrics.figures().error == "the broker is gone"
    metrics.close()


@pytest.mark.parametrize("name", ["metrics.prom", "metrics.jsonl"])
def test_a_place_that_cannot_be_written(tmp_path: Any, name: str) -> None:
    (tmp_path / "file").write_text("")
    kind = PrometheusFile if name.endswith("prom") else JsonLines
    with pytest.raises(OptionError, match=r"cannot write metrics to .*file/metrics"):
        kind(tmp_path / "file" / name, "shop")
    (tmp_path / name).mkdir()
    with pytest.raises(OptionError, match="cannot write metrics to"):
        kind(tmp_path / name, "shop")


# Prometheus


def samples(text: bytes | str) -> dict[str, float]:
    """Every sample of a text by its name and labels, each line of it being right."""
    text = text if isinstance(text, str) else text.decode()
    found = {}
    declared: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("#"):
            _, what, name, rest = line.split(" ", 3)
            if what == "TYPE":
                assert name not in declared
                declared[name] = rest
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        family = re.sub("_(sum|count|bucket)$", "", sample[1])
        assert family in declared or sample[1] in declared, line
        assert f"{sample[1]} {sample[2]}" not in found
        found[f"{sample[1]} {sample[2]}"] = float(sample[3])
    assert text.endswith("\n")
    return found


def test_prometheus_text_tells_what_the_figures_tell() -> None:
    metrics = Metrics()
    metrics.batch(report(4, rejects=2, version=3, newest=5, delta=9, segments=1))
    metrics.progress(TriggerProgress(4, rows=100, whole=3.0, commit=0.75, behind=7))
    found = samples(prometheus_text(metrics.figures(), "shop"))
    expected = {
        'events_total pipeline="shop"': 100,
        'matches_total pipeline="shop"': 10,
        'rejects_total pipeline="shop"': 2,
        'rows_read_total pipeline="shop"': 100,
        'replays_total pipeline="shop"': 0,
        'stage_seconds_sum pipeline="shop",stage="commit"': 0.75,
        'stage_seconds_bucket le="0.5",pipeline="shop",stage="commit"': 0,
        'stage_seconds_bucket le="1.0",pipeline="shop",stage="commit"': 1,
        'batch_latency_seconds_bucket le="2.5",pipeline="shop"': 0,
        'batch_latency_seconds_bucket le="5.0",pipeline="shop"': 1,
        'batch_latency_seconds_bucket le="+Inf",pipeline="shop"': 1,
        'batch_latency_seconds_sum pipeline="shop"': 3,
        'batch_latency_seconds_count pipeline="shop"': 1,
        'batch_id pipeline="shop"': 4,
        'catalog_version pipeline="shop"': 3,
        'catalog_newest_version pipeline="shop"': 5,
        'catalog_versions_behind pipeline="shop"': 2,
        'source_events_behind pipeline="shop"': 7,
        'delta_subscriptions pipeline="shop"': 9,
        'failed pipeline="shop"': 0,
    }
    assert {name: found[f"bittern_{name}"] for name in expected} == expected


def test_what_is_not_known_has_no_sample() -> None:
    text = prometheus_text(Figures(), "shop").decode()
    assert samples(text)
    assert "source_events_behind" not in text
    assert "batch_id" not in text
    assert "stage" not in text


def test_what_is_counted_never_shrinks() -> None:
    """Spark tells of a batch later, and then it has taken longer; each is counted once."""
    metrics = Metrics()
    before: dict[str, float] = {}
    for i, whole in enumerate((3.0, 40.0, None, 0.001)):
        for told in (report(i, replayed=i == 2), TriggerProgress(i, whole=whole)):
            if isinstance(told, BatchReport):
                metrics.batch(told)
            else:
                metrics.progress(told)
            now = samples(prometheus_text(metrics.figures(), "shop"))
            counters = {name: value for name, value in now.items() if "_bucket" in name}
            assert all(counters.get(name, 0) >= value for name, value in before.items())
            before = counters
    figures = metrics.figures()
    assert (sum(figures.latency.counts), figures.replays) == (4, 1)
    assert figures.latency.total == pytest.approx(figures.latency_sum)
    totals = {stage: took.total for stage, took in figures.stages.items()}
    assert totals == pytest.approx(dict(figures.seconds))


@given(st.lists(st.floats(0, 1000)))
def test_durations_are_counted_in_the_range_they_are_in(taken: list[float]) -> None:
    durations = Durations()
    for seconds in taken:
        durations = durations.plus(seconds)
    for limit, count in durations.cumulative():
        assert count == sum(seconds <= limit for seconds in taken)
    assert durations.total == pytest.approx(sum(taken))


@given(name=st.text(), rate=st.floats(0, allow_infinity=False))
def test_any_name_and_number_can_be_told(name: str, rate: float) -> None:
    found = samples(prometheus_text(Figures(events_rate=rate), name))
    written = next(key for key in found if key.startswith("bittern_events_per_second "))
    quoted = written.split('pipeline="', 1)[1].removesuffix('"')
    pairs = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
    assert re.sub(r"\\[\\\"n]", lambda escape: pairs[escape[0]], quoted) == name
    assert math.isclose(found[written], rate)


def test_the_file_is_always_whole(tmp_path: Any) -> None:
    path = tmp_path / "bittern.prom"
    metrics = Metrics([PrometheusFile(path, "shop")])
    read: list[dict[str, float]] = []
    over = threading.Event()

    def reads() -> None:
        while not over.is_set():
            read.append(samples(path.read_text()))

    reader = threading.Thread(target=reads)
    reader.start()
    for i in range(200):
        metrics.batch(report(i))
    over.set()
    reader.join()
    metrics.close()
    seen = [each['bittern_events_total pipeline="shop"'] for each in read]
    assert seen == sorted(seen)
    assert samples(path.read_text())['bittern_events_total pipeline="shop"'] == 20_000
    assert [file.name for file in tmp_path.iterdir()] == ["bittern.prom"]


def test_the_file_says_that_rates_fell_and_how_it_ended(tmp_path: Any, clock: Clock) -> None:
    path = tmp_path / "bittern.prom"
    metrics = Metrics([PrometheusFile(path, "shop")], clock=clock)
    rate = 'bittern_events_per_second pipeline="shop"'
    clock.now += 10
    metrics.batch(report(0))
    assert samples(path.read_text())[rate] == 10
    clock.now += 70
    metrics.idle()
    assert samples(path.read_text())[rate] == 0
    metrics.ended("no more")
    assert samples(path.read_text())['bittern_failed pipeline="shop"'] == 1


def test_a_name_that_is_no_text_is_written_as_far_as_it_goes(tmp_path: Any) -> None:
    PrometheusFile(tmp_path / "bittern.prom", "caf\udce9")  # as Python reads a file's name
    assert samples((tmp_path / "bittern.prom").read_text())['bittern_failed pipeline="caf?"'] == 0


def test_a_file_that_nobody_would_read(tmp_path: Any) -> None:
    with pytest.raises(OptionError, match=r"end in \.prom"):
        PrometheusFile(tmp_path / "bittern.txt", "shop")


def get(port: int, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_served_until_it_is_closed() -> None:
    metrics = Metrics()
    served = Served(0, "shop", metrics.figures)
    metrics.batch(report(0))
    status, kind, text = get(served.port, "/metrics?name=x")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert samples(text)['bittern_events_total pipeline="shop"'] == 100
    assert get(served.port, "/healthz")[::2] == (200, "ok\n")
    assert get(served.port, "/readyz")[::2] == (503, "the stream does not run\n")
    metrics.started()
    assert get(served.port, "/readyz")[::2] == (200, "ok\n")
    assert get(served.port, "/../etc/passwd")[0] == 404
    metrics.ended("the broker\nis gone")
    for path in ("/healthz", "/readyz"):
        assert get(served.port, path)[::2] == (503, "failed: the broker\nis gone\n")
    served.close()
    with pytest.raises(urllib.error.URLError):
        get(served.port, "/metrics")


def test_a_stream_that_was_stopped_is_healthy_and_not_ready() -> None:
    metrics = Metrics()
    served = Served(0, "shop", metrics.figures)
    metrics.started()
    metrics.ended(None)
    assert (get(served.port, "/healthz")[0], get(served.port, "/readyz")[0]) == (200, 503)
    served.close()


@pytest.mark.parametrize("address", ["127.0.0.2", "::1"])
def test_served_on_another_address_and_nowhere_else(address: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
    served = Served(0, "shop", Figures, address)
    host = f"[{address}]" if ":" in address else address
    with urllib.request.urlopen(f"http://{host}:{served.port}/metrics", timeout=PATIENCE) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.URLError):
        get(served.port, "/metrics")
    served.close()


@pytest.mark.parametrize("address", ["localhost", "", "10.0.0.256", "127.0.0.1:80"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(OptionError, match="an IP address of this machine, such as 127"):
        Served(0, "shop", Figures, address)


def test_clients_that_behave_badly_harm_nobody() -> None:
    metrics = Metrics()
    served = Served(0, "shop", metrics.figures)
    with socket.create_connection(("127.0.0.1", served.port)) as silent:
        with socket.create_connection(("127.0.0.1", served.port)) as rude:
            rude.sendall(b"\x00\xff nonsense\r\n\r\n")
            assert b"400" in rude.recv(1000)
        posting = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
        posting.request("POST", "/metrics", b"x" * 10)
        assert posting.getresponse().status == 501
        posting.close()
        assert get(served.port, "/metrics")[0] == 200
        served.close()  # does not wait for the silent one
        assert silent.fileno() > 0


def test_a_port_that_is_taken_or_none() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OptionError, match=f"cannot serve metrics on port {port}"):
            Served(port, "shop", Figures)
    with pytest.raises(OptionError, match="cannot serve metrics on port 70000"):
        Served(70_000, "shop", Figures)


# What Spark tells


def progress(**changed: Any) -> SimpleNamespace:
    took = {"triggerExecution": 3000, "walCommit": 500, "commitOffsets": 250, "addBatch": 2000}
    plain = {"id": "q", "batchId": 7, "numInputRows": 100, "durationMs": took, "sources": []}
    return SimpleNamespace(**{**plain, **changed})


def source(latest: Any, end: Any) -> SimpleNamespace:
    return SimpleNamespace(latestOffset=latest, endOffset=end)


def test_progress_of_spark() -> None:
    listener = pytest.importorskip("bittern.spark.streaming.listener")
    kafka = source('{"t": {"0": 150, "1": 80}}', '{"t": {"0": 120, "1": 80}}')
    told = progress(sources=[kafka, source(None, '{"logOffset": 3}')])
    assert listener.as_progress(told) == TriggerProgress(7, 100, 3.0, 0.75, 30)
    empty = progress(sources=None, durationMs={}, numInputRows=None)
    assert listener.as_progress(empty) == TriggerProgress(7, 0, None, None, None)


@pytest.mark.parametrize(
    ("latest", "end", "behind"),
    [
        ('{"t": {"0": 5}}', '{"t": {"0": 9}}', 0),  # the topic was made anew
        ('{"t": {"0": 5, "1": 3}}', '{"t": {"0": 5}}', 3),  # a new partition
        ('{"t": {"0": 5}, "u": {"0": 2}}', '{"t": {"0": 4}, "u": {"0": 0}}', 3),
        ({"t": {"0": 5}}, {"t": {"0": 4}}, 1),  # parsed already
        (None, '{"t": {"0": 4}}', None),
        ("null", '{"t": {"0": 4}}', None),
        ('{"logOffset": 5}', '{"logOffset": 4}', None),  # files, not events
        ('{"t": {"0": 5.5}}', '{"t": {"0": 4}}', None),
        ('{"t": {"0": true}}', '{"t": {"0": 4}}', None),
        ("5", "4", None),
        ("no json", "{", None),
        ("[" * 100_000, "{}", None),
        ("{}", "{}", None),
    ],
)
def test_events_that_were_not_read(latest: Any, end: Any, behind: int | None) -> None:
    listener = pytest.importorskip("bittern.spark.streaming.listener")
    assert listener.events_behind(source(latest, end)) == behind


def test_the_listener_hears_of_its_own_query_alone() -> None:
    listener = pytest.importorskip("bittern.spark.streaming.listener")
    metrics = Metrics()
    one = listener.Listener(metrics, "q")
    one.onQueryStarted(SimpleNamespace(id="q"))
    one.onQueryProgress(SimpleNamespace(progress=progress()))
    one.onQueryProgress(SimpleNamespace(progress=progress(id="other")))
    one.onQueryIdle(SimpleNamespace(id="q"))
    one.onQueryTerminated(SimpleNamespace(id="other", exception="boom"))
    assert metrics.figures().rows == 100
    assert not metrics.figures().failed
    trace = "job failed\norg.apache.SparkException: gone\nbittern.errors.SnapshotError: damaged"
    one.onQueryTerminated(SimpleNamespace(id="q", exception=trace))
    assert metrics.figures().failed
    assert metrics.figures().error == "damaged"
    quiet = Metrics()
    listener.Listener(quiet, "q").onQueryTerminated(SimpleNamespace(id="q", exception=None))
    assert not quiet.figures().failed
