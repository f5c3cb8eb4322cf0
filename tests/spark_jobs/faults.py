"""Jobs in which something goes wrong half way, at a place and a time that the test chose.

A ``Trouble`` is a stage of the test's own, before or after Bittern's, in a Python worker of its
own. Rows pass through it unchanged; but in one partition, once, after the second batch::

    executor (JVM) ── daemon ──┬── worker of the trouble      kills its brother, or its
                               └── worker of Bittern          grandfather, or waits

So what dies is found by kinship and nothing else can be hit. Bittern's worker is then in the midst
of its partition: it has not seen the end, since the trouble has not passed all rows on, and it has
seen the first batch, if what Spark buffers is less than a batch. Files in ``folder`` tell the test
what happened.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs import parity
from spark_jobs.world import Rows
from spark_sessions import status
from steady import PATIENCE


@dataclass(frozen=True)
class Trouble:
    """A stage of batches that goes wrong in one partition: ``kind`` says how.

    =============  ====================================================================
    ``worker``     kills the worker of its executor that has mapped a snapshot
    ``executor``   kills its executor, once a worker of it has mapped a snapshot
    ``late``       kills its executor, once the driver has another partition
    ``slow``       waits until another attempt has passed all rows on
    ``stuck``      waits for as long as a test may take
    =============  ====================================================================

    The first attempt to come so far is the one; others wait until it has done its worst.
    """

    kind: str
    folder: str
    partition: int | None = 1  # None: the first that has a second batch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        here, partition = Path(self.folder), context.partitionId()
        (here / f"attempt-{partition}-{context.taskAttemptId()}").touch()
        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and self._is_hit(here, partition):
                self._act(here, partition)
        (here / f"complete-{partition}").touch()

    def _is_hit(self, here: Path, partition: int) -> bool:
        if self.partition is not None:
            return partition == self.partition
        if _claim(here / "chosen"):
            (here / f"chosen-{partition}").touch()
        return (here / f"chosen-{partition}").exists()

    def _act(self, here: Path, partition: int) -> None:
        reached, killed = here / "reached", here / "killed"
        complete = here / f"complete-{partition}"
        is_first = _claim(reached)
        victims: dict[str, Callable[[], list[int]]] = {
            "worker": brothers,
            "executor": lambda: [_executor()] if brothers() else [],
            "late": lambda: [_executor()] if _is_known(here) else [],
        }
        if self.kind in victims and not is_first:
            wait_for(killed.exists)  # a speculative copy must not be quicker
        elif self.kind in victims and wait_for(lambda: bool(victims[self.kind]())):
            killed.touch()
            for pid in victims[self.kind]():
                os.kill(pid, signal.SIGKILL)
        elif self.kind == "slow" and is_first:
            wait_for(complete.exists)
        elif self.kind == "stuck":
            wait_for(lambda: False)


def _is_known(here: Path) -> bool:
    """Is a partition done for so long that the driver has its rows?"""
    return any(time.time() - file.stat().st_mtime > 1 for file in here.glob("complete-*"))


def _claim(marker: Path) -> bool:
    """Be the first to come here."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def wait_for(happened: Callable[[], bool]) -> bool:
    """Poll until it has happened, or patience ends; says whether it has."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def brothers() -> list[int]:
    """Other workers of this daemon that have mapped a file of the node cache."""
    cache = os.path.realpath(os.environ["BITTERN_CACHE_DIR"])
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        if status(int(entry.name))[1] == os.getppid():
            try:
                maps = (entry / "maps").read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if cache in maps:
                found.append(int(entry.name))
    return found


def _executor() -> int:
    """The JVM that this worker works for: its daemon's parent."""
    pid = status(os.getppid())[1]
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"CoarseGrainedExecutorBackend" in command, command
    return pid


# ------------------------------------------------------------------ jobs


_NEW_DAEMON = "spark.sql.execution.pyspark.udf.tracebackDumpIntervalSeconds"
_numbers = itertools.count()


def executors(spark: Any, n: int) -> bool:
    """Wait until so many executors have come."""
    known = spark.sparkContext._jsc.sc()
    return wait_for(lambda: known.getExecutorMemoryStatus().size() > n)  # the driver is one, too


def troubled(frame: Any, kind: str, trouble: str, partition: int | None = 1) -> Any:
    """The same rows, through a trouble that leaves its files in the folder ``trouble``."""
    if kind == "worker":
        # Part of the workers' environment: a new value has a new daemon, without idle workers of
        # earlier jobs, that have mapped snapshots as well and would be killed in place of the one.
        frame.sparkSession.conf.set(_NEW_DAEMON, str(1_000_000 + next(_numbers)))
    return frame.mapInArrow(Trouble(kind, trouble, partition), frame.schema)


@functools.cache
def _sharded(spark: Any, folder: str, shards: int) -> Any:
    """A sharded index, built by the first job that needs it."""
    from bittern import spark as bittern_spark

    subscriptions = parity.read(spark, folder, "subscriptions")
    return bittern_spark.build(subscriptions, shards=shards, store=f"{folder}/store")


def match(
    spark: Any,
    folder: str,
    *,
    kind: str,
    trouble: str,
    after: bool = False,
    shards: int | None = None,
    **options: Any,
) -> Rows:
    """Match, with trouble before or ``after`` Bittern's stages."""
    from bittern import spark as bittern_spark

    given = _sharded(spark, folder, shards) if shards else f"{folder}/snapshot"
    events = parity.read(spark, folder, "events")
    if not after:
        events = troubled(events, kind, trouble)
    found = bittern_spark.match(events, given, event_id="id", **options)
    if after:
        found = troubled(found, kind, trouble, None)
    return parity.pairs(found) if options.get("explode") else parity.rows(found)


def write(
    spark: Any, folder: str, target: str, *, kind: str, trouble: str, **options: Any
) -> dict[str, Any]:
    """Write matches from the tasks, with trouble before them."""
    from bittern import spark as bittern_spark

    events = troubled(parity.read(spark, folder, "events"), kind, trouble)
    written = bittern_spark.write(
        events, f"{folder}/snapshot", target, event_id="id", explode=True, **options
    )
    return {"files": written.files, "rows": written.rows}


def race(spark: Any, folder: str, gate: str, drivers: int) -> Rows:
    """Match as soon as all drivers stand at the gate; all their workers then start."""
    here = Path(gate)
    (here / f"driver-{os.getpid()}").touch()
    wait_for(lambda: len(list(here.iterdir())) == drivers)
    return parity.match(spark, folder)
