"""Measure a pipeline: ``python -m benchmarks.streaming.run [--only PART ...] [--small]``.

::

    catalog     load a million subscriptions, read them, build the base; a delta of n; compaction
    backlog     how many events a second, if they are all there: quiet, and with changes
    paced       50,000 events/s for a minute: how late is a match, quiet and with 1,000 changes/s
    fresh       how long from a subscription's commit to its first match
    soak        paced with changes on a smaller catalog, and every match verified (verify.py)

Events come as Parquet files that another process puts into a folder; changes are committed to the
catalog (SQLite) by a third. Latency is from the file's rename to the rename of the folder with its
matches. The JSON file is replaced after every part; ``benchmarks.streaming.report`` makes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

import bittern
from benchmarks.run import RESULTS, environment
from benchmarks.spark.session import ROOT, progress, session
from benchmarks.streaming import load, verify, world

OUTPUT = RESULTS / "streaming.json"


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    subscriptions: int
    soaked: int
    rate: int
    changes: int
    seconds: int
    backlog: int
    samples: int


FULL = Scale(1_000_000, 20_000, 50_000, 1_000, 60, 3_000_000, 20)
SMALL = Scale(20_000, 2_000, 4_000, 100, 6, 40_000, 3)


class Bench:
    """One Spark session, one catalog of full size, and pipelines one after the other."""

    def __init__(self, spark: Any, folder: Path, scale: Scale) -> None:
        self.spark = spark
        self.folder = folder
        self.scale = scale
        self.url = str(folder / "catalog.db")
        self._runs = 0

    # -- parts ---------------------------------------------------------------------------------

    def catalog(self) -> dict[str, Any]:
        """Loading, reading, building; a delta; a compaction."""
        from bittern.spark.catalogs.builder import Builder

        rows = world.subscriptions(self.scale.subscriptions)
        out: dict[str, Any] = {"subscriptions": rows.num_rows}
        with bittern.Catalog(self.url) as catalog:
            out["load"] = timed(lambda: catalog.load(rows))
            out["version"] = timed(catalog.version)
            out["add"] = timed(lambda: catalog.add("one", "price < 1"))
            out["read"] = timed(catalog.at)
            builder = Builder(self.spark, catalog)
            out["first_view"] = timed(lambda: builder.view(catalog.version()))
            out["deltas"] = {}
            for n in (1, 1_000, 10_000):
                refresh = []
                for turn in range(3):
                    puts = [
                        {"id": f"d{at}", "expression": world.expression(at, turn + n)}
                        for at in range(n)
                    ]
                    commit = timed(lambda puts=puts: catalog.apply(puts=puts))
                    view = timed(lambda: builder.view(catalog.version()))
                    refresh.append((commit, view))
                out["deltas"][n] = {
                    "commit": statistics.median(c for c, _ in refresh),
                    "view": statistics.median(v for _, v in refresh),
                }
            layers = builder._layers  # noqa: SLF001
            assert layers is not None
            out["compaction"] = timed(layers.compact)
            out["view_after"] = timed(lambda: builder.view(catalog.version()))
            builder.close()
            catalog.apply(removes=[f"d{at}" for at in range(10_000)])
        return out

    def backlog(self) -> dict[str, Any]:
        """Events that are all there at the start."""
        from bittern.spark.streaming import Edge, Throttle

        return {
            "quiet": self._backlog(changes=0),
            "changing": self._backlog(changes=self.scale.changes),
            "edge": self._backlog(0, [Edge("product", order="id")]),
            "throttle": self._backlog(0, [Throttle(10, "1 hour", by="subscription", order="id")]),
        }

    def _backlog(self, changes: int, after: list[Any] | None = None) -> dict[str, Any]:
        size = self.scale.rate
        with self._run() as run:
            for at in range(self.scale.backlog // size):
                pq.write_table(
                    world.events(at * size, size, at), run.incoming / f"{at:06d}.parquet"
                )
            running = run.start(self.url, per_trigger=2, available_now=True, after=after or [])
            with self._changing(self.url, run, changes, 600):
                running.await_termination()
            run.metrics.close()
            return run.told(skip=2)

    def paced(self) -> dict[str, Any]:
        """Events at a steady rate."""
        return {
            "quiet": self._paced(self.url, self.scale.subscriptions, 0)[0],
            "changing": self._paced(self.url, self.scale.subscriptions, self.scale.changes)[0],
        }

    def soak(self) -> dict[str, Any]:
        """Paced, changing, verified."""
        url = str(self.folder / "soak.db")
        with bittern.Catalog(url) as catalog:
            catalog.load(world.subscriptions(self.scale.soaked))
        told, counts = self._paced(url, self.scale.soaked, self.scale.changes, check=True)
        return {"subscriptions": self.scale.soaked} | told | {"verified": counts}

    def _paced(
        self, url: str, n: int, changes: int, *, check: bool = False
    ) -> tuple[dict[str, Any], dict[str, int]]:
        rate, seconds = self.scale.rate, self.scale.seconds
        with self._run() as run:
            # Files of their own warm everything up: workers, kernels, both compilers of the JVM.
            for at in range(4):
                events = world.events(10**9 + at * rate, rate // 2, -1 - at)
                pq.write_table(events, run.incoming / f"warm-{at}.parquet")
            running = run.start(url, trigger=None)
            run.wait_for_batches(1)
            arguments = [run.incoming, run.log("files"), rate, seconds]
            with self._changing(url, run, changes, seconds, n):
                child("produce", *arguments).wait()
            run.drain(running)
            told = run.told(skip=0) | run.latency()
            if not check:
                return told, {}
            with bittern.Catalog(url) as catalog:
                return told, verify.verify(catalog, run.incoming, run.matches, run.checkpoint)

    def fresh(self) -> dict[str, Any]:
        """Subscriptions that the next events satisfy, while events come."""
        delays = []
        rate, samples = self.scale.rate // 5, self.scale.samples
        with self._run() as run, bittern.Catalog(self.url) as catalog:
            pq.write_table(world.events(10**9, rate, -1), run.incoming / "warm.parquet")
            running = run.start(self.url, trigger=None)
            run.wait_for_batches(1)
            producing = child("produce", run.incoming, run.log("files"), rate, 2.5 * samples)
            try:
                for at in range(samples):
                    time.sleep(0.7)
                    catalog.add(f"fresh{at}", f"price > {at % 5}")
                    began = time.time()
                    delays.append(run.first(f"fresh{at}", running) - began)
                    catalog.remove(f"fresh{at}")
            finally:
                producing.terminate()
                producing.wait()
                running.stop()
        return {"samples": samples, "rate": rate} | spread(delays)

    # -- around them ---------------------------------------------------------------------------

    @contextmanager
    def _run(self) -> Iterator[Run]:
        self._runs += 1
        run = Run(self.spark, self.folder / f"run{self._runs}")
        try:
            yield run
        finally:
            run.close()
            shutil.rmtree(run.folder, ignore_errors=True)

    @contextmanager
    def _changing(
        self, url: str, run: Run, changes: int, seconds: float, n: int = 0
    ) -> Iterator[None]:
        if not changes:
            yield
            return
        many = n or self.scale.subscriptions
        process = child("change", url, run.log("changes"), changes, seconds, many)
        try:
            # It may take longer to start than all events take to come.
            while process.poll() is None and not _lines(run.log("changes")):
                time.sleep(0.01)
            yield
        finally:
            process.terminate()
            process.wait()


class Run:
    """One pipeline and what it leaves."""

    def __init__(self, spark: Any, folder: Path) -> None:
        from bittern.spark.streaming import Metrics

        self.folder, self.spark = folder, spark
        self.incoming, self.matches = folder / "incoming", folder / "matches"
        self.checkpoint = folder / "checkpoint"
        self.incoming.mkdir(parents=True)
        self.reports: list[Any] = []
        self.metrics = Metrics([self])
        self.seen: dict[int, float] = {}
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def batch(self, done: Any) -> None:
        """Take what the metrics tell of a batch."""
        self.reports.append(done)

    def refresh(self, figures: Any) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """End the watching."""
        self._ended.set()

    def log(self, name: str) -> Path:
        """Where another process writes what it did."""
        return self.folder / f"{name}.jsonl"

    def start(self, url: str, *, per_trigger: int | None = None, **options: Any) -> Any:
        """Start a pipeline on the files that come."""
        from bittern.spark.streaming import Files, Pipeline

        reader = self.spark.readStream.schema(world.SCHEMA).format("parquet")
        if per_trigger:
            reader = reader.option("maxFilesPerTrigger", per_trigger)
        pipeline = Pipeline(
            reader.load(str(self.incoming)),
            url,
            Files(self.matches),
            self.checkpoint,
            event_id=("id", "file", "product"),
            metrics=self.metrics,
            **options,
        )
        return pipeline.start()

    def _watch(self) -> None:
        """Note when a batch can be read."""
        while not self._ended.wait(0.002):
            if self.matches.exists():
                for entry in os.scandir(self.matches):
                    if entry.name.startswith("batch="):
                        self.seen.setdefault(int(entry.name.removeprefix("batch=")), time.time())

    def wait_for_batches(self, n: int, patience: float = 300) -> None:
        """Wait until so many were seen."""
        until = time.monotonic() + patience
        while len(self.seen) < n:
            assert time.monotonic() < until, f"{len(self.seen)} batches after {patience} s"
            time.sleep(0.05)

    def drain(self, running: Any) -> None:
        """Have everything that is there matched, and stop."""
        running.query.processAllAvailable()
        running.stop()
        self.metrics.close()

    def first(self, name: str, running: Any, patience: float = 60) -> float:
        """When the first match of a subscription could be read."""
        until, looked = time.monotonic() + patience, max(self.seen)
        while time.monotonic() < until and running.is_active:
            for batch in sorted(b for b in self.seen if b > looked):
                looked = batch
                rows = pq.read_table(
                    self.matches / f"batch={batch}", filters=[("subscription", "=", name)]
                )
                if rows.num_rows:
                    return self.seen[batch]
            time.sleep(0.005)
        raise AssertionError(f"no match of {name} after {patience} s")

    def told(self, skip: int) -> dict[str, Any]:
        """What the batches after the first few were like."""
        reports = self.reports[skip:]
        seconds = {
            stage: statistics.median(done.seconds.get(stage, 0.0) for done in reports)
            for stage in ("pin", "view", "match", "deliver", "commit", "other")
        }
        events = sum(done.report.events for done in reports)
        took = reports[-1].ended - self.reports[skip - 1].ended if skip else None
        changes = [json.loads(line) for line in _lines(self.log("changes"))]
        out: dict[str, Any] = {
            "batches": len(reports),
            "events": events,
            "matches": sum(done.report.matches for done in reports),
            "versions": len({done.report.version for done in reports}),
            "delta": max(done.report.delta for done in reports),
            "latency": spread([done.latency for done in reports]),
            "seconds": seconds,
        }
        if took:
            out["events_per_second"] = events / took
        if len(changes) > 1:
            made = sum(each["changes"] for each in changes[1:])
            out["changes_per_second"] = made / (changes[-1]["time"] - changes[0]["time"])
        return out

    def latency(self) -> dict[str, Any]:
        """From a file's rename to that of the folder which has its matches."""
        there = {each["file"]: each for each in map(json.loads, _lines(self.log("files")))}
        delays = []
        for batch, when in self.seen.items():
            rows = pq.read_table(self.matches / f"batch={batch}", columns=["file"])
            files = pc.unique(rows["file"]).to_pylist()
            delays += [when - there[file]["time"] for file in files if file in there]
        times = [each["time"] for each in there.values()]
        sent = sum(each["events"] for each in there.values())
        pause = 1 / load.PER_SECOND
        return {
            "end_to_end": spread(delays),
            "sent_per_second": sent / (max(times) - min(times) + pause),
        }


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def child(*arguments: Any) -> subprocess.Popen[bytes]:
    """Start one of ``load.py``'s processes."""
    command = [sys.executable, "-m", "benchmarks.streaming.load", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT)


def timed(call: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    began = perf_counter()
    call()
    return perf_counter() - began


def spread(values: list[float]) -> dict[str, float]:
    """Median, 99th percentile and largest."""
    ordered = sorted(values)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
        "max": ordered[-1],
    }


PARTS = ("catalog", "backlog", "paced", "fresh", "soak")


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="everything, but little of it")
    parser.add_argument("--output", type=Path, help=f"the JSON file (results/{OUTPUT.name})")
    options = parser.parse_args(arguments)
    small = OUTPUT.with_name("streaming-small.json")
    output = options.output or (small if options.small else OUTPUT)
    scale = SMALL if options.small else FULL
    result: dict[str, Any] = {
        "environment": environment(),
        "scale": "small" if options.small else "full",
        "parts": {},
    }
    with tempfile.TemporaryDirectory(prefix="bittern-streaming-") as folder, session() as spark:
        bench = Bench(spark, Path(folder), scale)
        if "catalog" not in options.only and set(options.only) - {"soak"}:
            with bittern.Catalog(bench.url) as catalog:
                catalog.load(world.subscriptions(scale.subscriptions))
        for name in options.only:
            progress(f"{name} ...")
            result["parts"][name] = getattr(bench, name)()
            progress(json.dumps(result["parts"][name]))
            output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
