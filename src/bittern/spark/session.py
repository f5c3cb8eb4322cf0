"""A Spark session for programs that bring none, and how far its jobs are.

The command line and the demo start one; a library's user has a session and passes DataFrames.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession

from bittern.errors import OptionError

_LOOK = 0.2  # seconds between two looks at what runs


def start(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Start a session; without a master it is spark-defaults', or this machine's cores."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else whatever python3 is on the path
    builder = SparkSession.builder.appName("bittern")
    if master is not None or "SPARK_REMOTE" not in os.environ:
        builder = builder.master(master or os.environ.get("MASTER", "local[*]"))
    if (master or "local").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else needs to reach it
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    settings = {
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **conf,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, RuntimeError) as failure:  # no Java, no such master
        reason = str(failure).strip().split("\n")[0]
        raise OptionError(f"Spark does not start (it needs Java 17 or later): {reason}") from None
    with contextlib.suppress(PySparkException):  # not there in Spark Connect
        session.sparkContext.setLogLevel("ERROR")
    return session


@contextlib.contextmanager
def watched(spark: SparkSession, report: Callable[[str, int, int], None] | None) -> Iterator[None]:
    """While inside, report (stage, tasks done, tasks) of what runs; nothing where it is None."""
    if report is None:
        yield
        return
    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkException:  # Spark Connect tells of progress in another way
        yield
        return
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK):
            done = total = 0
            for stage in tracker.getActiveStageIds():
                told = tracker.getStageInfo(stage)
                if told is not None:
                    done, total = done + told.numCompletedTasks, total + told.numTasks
            if total:
                report("matching", done, total)

    watcher = threading.Thread(target=look, name="bittern-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def observation() -> Observation:
    """Metrics of one job, for ``match(..., observe=...)``; ``get`` waits for the job."""
    return Observation()
