"""Spark sessions to measure with, and the clock.

A session is like a user's: both compilers of the JVM, the default collector, adaptive execution;
only what would disturb the clock is off (UI, progress bar). Passes of the things to compare are
run in turns, so that a disturbance of the machine meets all of them::

    warm-up   jvm  identity  match        compilers, workers, mapping of the index
    pass 1    jvm  identity  match
    pass 2    jvm  identity  match        median of each over the passes
    pass 3    jvm  identity  match
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.workloads import Scale

ROOT = Path(__file__).parents[2]
#: A worker uses one core, as Spark expects of it.
WORKER_ENVIRONMENT = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Setting:
    """What every part gets: a folder for events and indexes, and whether all is to be small."""

    folder: Path
    small: bool

    @property
    def scale(self) -> Scale:
        """The scale of the workloads."""
        return "small" if self.small else "full"

    def size(self, full: int, small: int) -> int:
        """One of two sizes."""
        return small if self.small else full


def progress(what: str) -> None:
    """Tell on the screen what comes now, and when."""
    print(f"{time.strftime('%H:%M:%S')}  {what}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def session(master: str = "local[2]", **settings: str) -> Iterator[SparkSession]:
    """Start a session, and end it; its folders are gone afterwards.

    ``settings`` have ``__`` for the dots of their names.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers run whatever python3 is on PATH
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = str(ROOT)  # workers import what is measured here by name
    with tempfile.TemporaryDirectory(prefix="bittern-bench-") as scratch:
        os.environ["SPARK_WORKER_DIR"] = f"{scratch}/work"
        builder = SparkSession.builder.master(master).appName("bittern-bench")
        configuration = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "4g",
            "spark.driver.maxResultSize": "4g",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            "spark.local.dir": f"{scratch}/local",
            "spark.executorEnv.PYTHONPATH": str(ROOT),
        }
        configuration |= {f"spark.executorEnv.{k}": v for k, v in WORKER_ENVIRONMENT.items()}
        configuration |= {name.replace("__", "."): value for name, value in settings.items()}
        for name, value in configuration.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        finally:
            spark.stop()


def drain(frame: DataFrame) -> None:
    """Compute every row and write none."""
    frame.write.format("noop").mode("overwrite").save()


def seconds_of(work: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def in_turns(
    jobs: Mapping[str, Callable[[], Any]], *, passes: int, warm: int = 1
) -> dict[str, list[float]]:
    """Seconds of every pass of each job, after ``warm`` passes that do not count."""
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(-warm, passes):
        for name, job in jobs.items():
            seconds = seconds_of(job)
            progress(f"    {name}: {seconds:.2f} s{' (warm-up)' if number < 0 else ''}")
            if number >= 0:
                taken[name].append(seconds)
    return taken


def rates(passes: list[float], events: int) -> dict[str, Any]:
    """What a result holds about the passes over that many events."""
    median = statistics.median(passes)
    return {
        "events": events,
        "passes_seconds": passes,
        "events_per_second": events / median,
        "best_events_per_second": events / min(passes),
    }
