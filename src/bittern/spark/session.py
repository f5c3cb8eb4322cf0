"""A Spark session for programs that have none, and the progress of its jobs.

The command line and the demo start one; users of the library have a session and pass DataFrames.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn, Protocol

import pyspark
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from bittern.errors import OptionError
from bittern.spark.versions import condition
from bittern.spark.workers import lacking

#: How an error stands in a traceback: ours, and any other.
_OWN_ERROR = re.compile(r"bittern\.errors\.\w+: (.+)")
_ERROR = re.compile(r"(?:: )?[\w.$]+(?:Error|Exception): (.+)")
#: What Hadoop says of a URI when a connector is not among Spark's jars.
_NO_FILE_SYSTEM = re.compile(
    r'(No FileSystem for scheme "[^"]*"|Class org\.apache\.hadoop\.fs\.[\w.]+ not found)'
)

_LOOK = 0.2  # seconds between two looks at what runs

#: Only errors, without stack traces, and from the first line on: by Spark's own settings the JVM
#: would greet and warn. The gateway's level must be the same, or Spark takes it for a shell's. Why
#: a stream ends is told by its caller; for Spark a stop that meets a new batch is an error.
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex{none}
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.stream.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
logger.stream.level = off
logger.older.name = org.apache.spark.sql.execution.streaming.MicroBatchExecution
logger.older.level = off
"""


class Report(Protocol):
    """Receives the progress of a stage."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that this many of the stage's tasks are done."""

    def close(self) -> None:
        """The stage is over."""


@contextlib.contextmanager
def running(master: str | None, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session that is stopped at the end; the default master is ``$MASTER``, or all cores here.

    Ctrl-C raises KeyboardInterrupt and prints nothing. While Spark starts, it waits until there is
    something to stop: a JVM would outlive its Python process.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: object) -> NoReturn:
        came.append(number)
        logging.disable()  # py4j would log where it was interrupted,
        warnings.simplefilter("ignore")  # and Spark warn that it was
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with ThreadPoolExecutor(1) as pool:  # in the main thread, Spark would set its own handler
            spark = pool.submit(_start, master, conf).result()
        try:
            signal.signal(signal.SIGINT, interrupt)
            if came:
                raise KeyboardInterrupt
            yield spark
        finally:
            spark.stop()
    except Exception:
        if came:  # Ctrl-C reaches Python workers too, and what they and Spark say of it is no news
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _start(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else whatever python3 is on the path
    builder = SparkSession.builder.appName("bittern")
    remote = "SPARK_REMOTE" in os.environ and master is None
    if not remote:
        _check_java()
        master = master or os.environ.get("MASTER", "local[*]")
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # other hosts need not reach it
            builder = builder.config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **conf,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with contextlib.nullcontext() if remote else _quiet():
            return builder.getOrCreate()
    except (PySparkException, RuntimeError) as failure:  # too old a Java, no such master
        reason = str(failure).strip().split("\n")[0]
        raise OptionError(f"Spark cannot start (it needs Java 17 or later): {reason}") from None


def _check_java() -> None:
    """Raise unless there is a Java to start, where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME is {home}, where there is none" if home else "there is none on the PATH"
        raise OptionError(
            f"Spark needs Java 17 or later, but {where}: install it, or set JAVA_HOME to it"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """While inside, a JVM that starts logs by ``_LOGGING``, unless its user has settings."""
    if "SPARK_CONF_DIR" in os.environ:
        yield
        return
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
        file.write(_LOGGING)
        file.flush()
        option = f"-Dlog4j2.configurationFile=file:{file.name}"
        os.environ["SPARK_SUBMIT_OPTS"] = f"{option} {before or ''}"
        try:
            yield
        finally:
            del os.environ["SPARK_SUBMIT_OPTS"]
            if before is not None:
                os.environ["SPARK_SUBMIT_OPTS"] = before


@contextlib.contextmanager
def watched(spark: SparkSession, report: Report | None, stage: str) -> Iterator[None]:
    """While inside, report the tasks of all jobs under this name, unless ``report`` is None.

    The total is of what Spark has begun so far, and grows with each job.
    """
    if report is None:
        yield
        return
    tasks: dict[int, int] = {}
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, report, stage, tasks, over), daemon=True)
    watcher.start()
    try:
        yield
        over.set()
        watcher.join()
        if tasks:
            report(stage, sum(tasks.values()), sum(tasks.values()))
    finally:
        over.set()
        watcher.join()
        report.close()


def _watch(
    spark: SparkSession, report: Report, stage: str, tasks: dict[int, int], over: threading.Event
) -> None:
    """Fill ``tasks`` with those of each of Spark's stages, and tell how many are left."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkException:  # Spark Connect tells of progress in another way
        return
    told = (0, 0)
    while not over.wait(_LOOK):
        left = 0
        for each in tracker.getActiveStageIds():
            info = tracker.getStageInfo(each)
            if info is not None:
                tasks[each] = info.numTasks
                left += info.numTasks - info.numCompletedTasks
        total = sum(tasks.values())
        # Between two jobs all is done, and yet it is not.
        if left and told != (total - left, total):
            told = total - left, total
            report(stage, *told)


def with_fields(lines: DataFrame, line: str, names: Sequence[str]) -> DataFrame:
    """A column of JSON text, and before it some of its fields by dotted path, as text."""
    paths = {name: "".join(f"['{part}']" for part in name.split(".")) for name in names}
    fields = [F.get_json_object(line, f"${path}").alias(name) for name, path in paths.items()]
    return lines.select(*fields, line)


def exists(spark: SparkSession, uri: str) -> bool:
    """Whether there is something at a URI that Spark can reach. It lists, and reads nothing."""
    try:
        spark.read.text(uri)
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return False
        raise
    return True


def is_connect(spark: object) -> bool:
    """Whether it is a session of Spark Connect, whose driver is another process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_sparks(failure: Exception) -> bool:
    """Whether an exception comes from Spark, or from the bridge to it."""
    return type(failure).__module__.startswith(("pyspark.", "py4j."))


def reason(failure: Exception) -> str:
    """Why a job failed, in a sentence: the message of our task, else Spark's first line."""
    sentence = lacking(failure) or _unreachable(failure)
    if sentence is not None:
        return sentence
    lines = str(failure).strip().splitlines()
    for pattern in (_OWN_ERROR, _ERROR):
        found = next(filter(None, map(pattern.match, lines)), None)
        if found is not None:
            return found[1]
    return lines[0] if lines else type(failure).__name__


def _unreachable(failure: Exception) -> str | None:
    """Why Spark cannot reach a URI, if a connector is lacking, and what to do."""
    found = _NO_FILE_SYSTEM.search(str(failure))
    if found is None:
        return None
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    names = [jar.stem for jar in jars.glob("hadoop-client-api-*.jar")]
    version = names[0].rpartition("-")[2] if names else "VERSION"
    return (
        f"{found[1]}: Spark lacks the connector for this URI. Give it the one of its Hadoop's "
        f"version: for S3, write s3a://... and set "
        f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}"
    )


def observation() -> Observation:
    """Metrics of one job, for ``match(..., observe=...)``; ``get`` waits for the job."""
    return Observation()


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether the session distinguishes ``a`` from ``A``."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
