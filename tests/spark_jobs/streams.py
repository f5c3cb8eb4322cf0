"""Pipelines that are killed, starved or fed poison, at a place and a time that the test chose.

All of a pipeline lies in one folder, so that any driver can go on with what another has left::

    place/
      events/        Parquet files, put there by the test; each file is one partition of a batch
      catalog.db     changed by the test while pipelines run, or between two of them
      checkpoint/    matches/    rejects/

A driver kills itself between two steps of Bittern's, which it replaces by ones that do, or is
killed by one of its tasks. With a driver die all processes of its process session: the Python
process, its JVM and their workers, as when a host or a container goes. On its way there it can copy
what is there at earlier stages: whoever goes on from a copy goes on from what a driver would have
left that died then, and no other driver has to start and die for it. (Files outlive a process just
as they are: what was written and not yet flushed is lost with a machine only.)
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pyarrow as pa

from spark_jobs.faults import Trouble, wait_for
from spark_sessions import members

_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: Of sessions: a file is a partition, and a partition is several Arrow batches.
CONF = {
    "spark.sql.files.openCostInBytes": "1g",
    _RECORDS: "8",
    # A batch reaches the next stage when the one after it is there, not when 64 KiB are.
    "spark.buffer.size": "32",
}
SCHEMA = "id bigint, price double, colour string, document string"
FILES_A_BATCH = 2


def die(leader: int) -> NoReturn:
    """Kill all processes of a driver's process session, this one last."""
    for pid in [*members(leader)]:
        if pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")


# ------------------------------------------------------------------ where drivers die


@dataclass(frozen=True)
class HalfWritten:
    """A stage of rows that kills the driver when one of two partitions of a batch is written."""

    matches: str
    batch: int
    leader: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        # Before the folder is there the rows are only looked at, to choose how to index.
        if context.partitionId() == 1 and self._files("") and wait_for(self._is_half):
            die(self.leader)

    def _files(self, rest: str) -> list[Path]:
        return list(Path(self.matches).glob(f".batch={self.batch}.*.writing{rest}"))

    def _is_half(self) -> bool:
        return any(
            file.stat().st_size > 8 and file.read_bytes().endswith(b"PAR1")
            for file in self._files("/attempts/part-00000-*.parquet")
        )


def _around(owner: Any, name: str, before: Callable[..., None], after: Callable[..., None]) -> None:
    """Have a method call these before and after it, with its own arguments."""
    real = getattr(owner, name)

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        before(self, *arguments)
        value = real(self, *arguments, **named)
        after(self, *arguments)
        return value

    setattr(owner, name, method)


def _nothing(*_: Any) -> None:
    pass


def _arm(stage: str, batch: int, act: Callable[[], object]) -> None:
    """Have this driver do something at a stage of a batch, if that is one of Bittern's steps."""
    from bittern.spark.sink.staging import Staging
    from bittern.spark.streaming.pins import Checkpoint

    def at_pin(_: Any, batch_id: int, *__: Any) -> None:
        if batch_id == batch:
            act()

    def at_commit_of(table: str) -> Callable[[Any], None]:
        def at_commit(staging: Any) -> None:
            if staging.target.name == f"batch={batch}" and staging.target.parent.name == table:
                act()

        return at_commit

    if stage == "before the pin":
        _around(Checkpoint, "pin", at_pin, _nothing)
    elif stage == "after the pin":
        _around(Checkpoint, "pin", _nothing, at_pin)
    elif stage == "before the commit":
        _around(Staging, "commit", at_commit_of("matches"), _nothing)
    elif stage == "after the commit":
        _around(Staging, "commit", _nothing, at_commit_of("matches"))
    elif stage == "before the documents are there":
        _around(Staging, "commit", at_commit_of("history"), _nothing)
    elif stage == "after the documents are there":
        _around(Staging, "commit", _nothing, at_commit_of("history"))


#: Of a place, what drivers write to.
WRITTEN = ("checkpoint", "matches", "rejects")


def _copy(place: Path, to: Path) -> None:
    """What a driver would leave that died now."""
    for name in WRITTEN:
        if (place / name).exists():
            shutil.copytree(place / name, to / name, symlinks=True)


@contextlib.contextmanager
def as_it_was(place: Path, copy: Path) -> Iterator[None]:
    """Have a place as it was when it was copied, for a while."""
    aside = copy.with_name(f"{copy.name} aside")
    for out, back in ((aside, copy), (copy, aside)):
        out.mkdir(exist_ok=True)
        for name in WRITTEN:
            if (place / name).exists():
                (place / name).rename(out / name)
            if (back / name).exists():
                (back / name).rename(place / name)
        if out is aside:
            yield


# ------------------------------------------------------------------ where tasks die


@dataclass(frozen=True)
class Armed(Trouble):
    """A trouble that comes when a batch is matched, not when the driver looks at its rows."""

    def _act(self, here: Path, partition: int) -> None:
        if (here / "armed").exists():
            super()._act(here, partition)


def _arm_when_matching(trouble: str) -> None:
    """From now on, matching a batch arms the trouble."""
    from bittern.spark.streaming import steps

    real = steps.fill

    def fill(*arguments: Any, **named: Any) -> Any:
        (Path(trouble) / "armed").touch()
        return real(*arguments, **named)

    steps.fill = fill


# ------------------------------------------------------------------ jobs


class _Heard(logging.Handler):
    """What Bittern warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        print(record.getMessage(), file=sys.stderr, flush=True)  # for who dies before it tells


def pipeline(
    spark: Any,
    place: str,
    *,
    catalog: str | None = None,
    checkpoint: str | None = None,
    matches: str | None = None,
    rejects: str | None = None,
    stage: Any = None,
    available_now: bool = True,
    **options: Any,
) -> Any:
    """A pipeline on all that is in a place; ``stage`` sees its rows first."""
    from bittern.spark import Pipeline

    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
    events = reader.parquet(f"{place}/events")
    if stage is not None:
        events = events.mapInArrow(stage, events.schema)
    return Pipeline(
        events,
        catalog or f"{place}/catalog.db",
        matches or f"{place}/matches",
        checkpoint or f"{place}/checkpoint",
        event_id="id",
        json="document",
        rejects=rejects or f"{place}/rejects",
        available_now=available_now,
        trigger="0 seconds",
        **options,
    )


def run(
    spark: Any,
    place: str,
    *,
    die_at: str | None = None,
    copies: Mapping[str, str] | None = None,
    batch: int = -1,
    trouble: str | None = None,
    kind: str = "",
    records_a_batch: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Match all that is there, and say what went wrong; or die at a stage of a batch.

    ``copies`` has other stages of the batch, and where to put a copy of what is there then.
    """
    stage: Any = None
    if records_a_batch is not None:
        spark.conf.set(_RECORDS, str(records_a_batch))
    for passed, copy in (copies or {}).items():
        _arm(passed, batch, partial(_copy, Path(place), Path(copy)))
    if die_at == "half written":
        stage = HalfWritten(f"{place}/matches", batch, os.getpid())
    elif die_at is not None:
        _arm(die_at, batch, lambda: die(os.getpid()))
    if trouble is not None:
        stage = Armed(kind, trouble)
        _arm_when_matching(trouble)
    return _ended(lambda: _run(spark, place, die_at, batch, stage=stage, **options))


def _run(spark: Any, place: str, die_at: str | None, batch: int, **options: Any) -> None:
    running = pipeline(spark, place, **options).start()
    if die_at == "after Spark's commit":
        note = Path(place, "checkpoint", "commits", str(batch))
        if wait_for(note.exists):
            die(os.getpid())
    running.await_termination()


def _ended(job: Callable[[], None]) -> dict[str, Any]:
    """How a job ended: the error, if there was one, and what Bittern warned of."""
    from bittern.errors import BitternError

    heard, logger = _Heard(), logging.getLogger("bittern")
    logger.addHandler(heard)
    error = None
    try:
        job()
    except BitternError as failure:
        error = f"{type(failure).__name__}: {failure}"
    finally:
        logger.removeHandler(heard)
    return {"error": error, "heard": heard.messages}


def _hold(real: Any, here: Path, batch: int | None) -> Any:
    """A ``Checkpoint.pin`` that waits, after it has pinned a batch, for a file ``go``."""

    def pin(self: Any, batch_id: int, newest: Callable[[], int]) -> Any:
        pinned = real(self, batch_id, newest)
        if batch_id == batch:
            (here / "held").touch()
            wait_for((here / "go").exists)
        return pinned

    return pin


def serve(spark: Any, place: str, *, hold_at: int | None = None, **options: Any) -> dict[str, Any]:
    """Run a stream until there is a file ``stop`` in the place, or it ends by itself.

    A file ``rival`` has a second pipeline started with the same checkpoint; ``rival said`` is then
    how that ended. ``hold_at`` is a batch that waits between its pin and its match for ``go``.
    """
    from bittern.spark.streaming.pins import Checkpoint

    here = Path(place)

    def job() -> None:
        running = pipeline(spark, place, available_now=False, **options).start()
        try:
            while running.is_active and not (here / "stop").exists():
                if (here / "rival").exists():
                    (here / "rival").unlink()
                    told = _ended(lambda: pipeline(spark, place, **options).run())
                    partial = here / ".rival said"
                    partial.write_text(str(told["error"]), encoding="utf-8")
                    partial.rename(here / "rival said")
                time.sleep(0.02)
            if not running.is_active:
                running.await_termination()
        finally:
            running.stop()

    with mock.patch.object(Checkpoint, "pin", _hold(Checkpoint.pin, here, hold_at)):
        return _ended(job)


def run_as_room_is_made(spark: Any, place: str, ballast: str, **options: Any) -> list[str]:
    """Run again and again, each time with a page more of free disk; returns all errors."""
    errors = []
    while True:
        error = run(spark, place, **options)["error"]
        if error is None:
            return errors
        errors.append(error)
        left = Path(ballast).stat().st_size
        assert left, errors[-1]
        os.truncate(ballast, max(0, left - 2 * os.sysconf("SC_PAGE_SIZE")))
