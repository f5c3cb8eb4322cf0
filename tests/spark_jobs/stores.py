"""Pipelines whose checkpoint and tables are in an object store, and drivers that die there.

All that a driver writes begins with one URI, ``root``. On its way it can copy that to another one:
whoever goes on from a copy goes on from what a driver would have left that died then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from pyarrow import fs

from spark_jobs.faults import wait_for
from spark_jobs.streams import _around, _ended, _nothing, die, pipeline
from steady import PATIENCE


@dataclass(frozen=True)
class HalfWritten:
    """A stage of rows that kills the driver when one of two partitions of a batch is written."""

    files: fs.FileSystem
    folder: str
    leader: int
    armed: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        # Rows are first only looked at, to choose how to index.
        if context.partitionId() == 1 and Path(self.armed).exists() and wait_for(self._is_half):
            die(self.leader)

    def _is_half(self) -> bool:
        selector = fs.FileSelector(self.folder, allow_not_found=True)
        names = [each.base_name for each in self.files.get_file_info(selector)]
        return any(name.startswith("part-00000-") for name in names)


def _arm(stage: str, batch: int, act: Callable[[], object]) -> None:
    """Have this driver do something at a stage of a batch."""
    from bittern.spark.stores.manifests import ManifestStaging
    from bittern.spark.streaming.pins import Checkpoint

    def at_pin(_: Any, batch_id: int, *__: Any) -> None:
        if batch_id == batch:
            act()

    def at_commit(staging: Any) -> None:
        if staging.attempts.endswith(f"/matches/_files/batch={batch}"):
            act()

    owner, name, at = (
        (Checkpoint, "pin", at_pin) if "pin" in stage else (ManifestStaging, "commit", at_commit)
    )
    around = (at, _nothing) if stage.startswith("before") else (_nothing, at)
    _around(owner, name, *around)


def _copy(spark: Any, root: str, to: str) -> None:
    from bittern.spark.stores.remote_files import for_tasks

    files, source = for_tasks(spark, root)
    fs.copy_files(
        source, to.removeprefix("s3a://"), source_filesystem=files, destination_filesystem=files
    )


def run(
    spark: Any,
    place: str,
    root: str,
    *,
    batch: int = -1,
    copies: Mapping[str, str] | None = None,
    half_written: bool = False,
    steps: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Match all that is there, and say what went wrong; or die in the midst of a batch."""
    from bittern.spark.stores.remote_files import for_tasks
    from bittern.spark.streaming import Edge, Throttle
    from bittern.spark.streaming import steps as streaming_steps

    for stage, to in (copies or {}).items():
        _arm(stage, batch, partial(_copy, spark, root, to))
    if half_written:
        files, folder = for_tasks(spark, f"{root}/matches/_files/batch={batch}")
        armed = f"{place}/armed"
        options["stage"] = HalfWritten(files, folder, os.getpid(), armed)
        real = streaming_steps.fill

        def fill(*arguments: Any, **named: Any) -> Any:
            Path(armed).touch()
            return real(*arguments, **named)

        streaming_steps.fill = fill
    if steps:
        options["after"] = [Edge("id"), Throttle(5, "1 day", by="subscription", order="id")]
    places = {name: f"{root}/{name}" for name in ("checkpoint", "matches", "rejects")}
    return _ended(lambda: pipeline(spark, place, **(places | options)).run())


def read(spark: Any, path: str) -> list[list[Any]]:
    """What ``read_matches`` finds: the rows, sorted, by name of column."""
    from bittern.spark import read_matches

    table = read_matches(path)
    columns = sorted(table.columns)
    return sorted(map(list, table.select(*columns).collect()))


def read_plainly(spark: Any, path: str) -> int:
    """What Spark finds without the manifests."""
    return spark.read.parquet(path).count()


def create_at_once(spark: Any, root: str, name: str, n: int) -> list[bool]:
    """So many threads create one object; whose was created."""
    from bittern.spark.stores.hadoop import HadoopStore

    store, meet, found = HadoopStore(spark, root), threading.Barrier(n), [False] * n

    def create(number: int) -> None:
        meet.wait(PATIENCE)
        found[number] = store.create(name, {"number": number})

    threads = [threading.Thread(target=create, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return found


def small_objects(spark: Any, root: str) -> dict[str, Any]:
    """What a store tells of an object while it comes and goes."""
    from bittern.spark.stores.hadoop import HadoopStore

    store = HadoopStore(spark, root)
    told: dict[str, Any] = {"before": [store.has("a/b"), store.has("a"), store.sizes("a")]}
    told["created"] = [store.create("a/b", {"x": 1}), store.create("a/b", {"x": 2})]
    told["sent again"] = store.create("a/b", {"x": 1})  # the answer to the first was lost
    told["there"] = [store.has("a/b"), store.has("a"), store.sizes("a"), store.sizes()]
    store.replace("a/b", b"other")
    told["replaced"] = store.read("a/b").decode()
    store.remove("a/b")
    store.remove("a/b")
    told["after"] = [store.has("a/b"), store.has("a"), store.sizes("a")]
    try:
        store.read("a/b")
    except FileNotFoundError as error:
        told["missing"] = str(error)
    return told


def taken_over(spark: Any, place: str, root: str) -> str:
    """What ends a stream when another driver claims its checkpoint, between two batches."""
    from bittern.errors import PipelineError
    from bittern.spark.streaming import claims as module
    from bittern.spark.streaming.claims import ClaimedCheckpoint

    places = {name: f"{root}/{name}" for name in ("checkpoint", "matches", "rejects")}
    with mock.patch.object(module, "_BEAT", 0.2):
        running = pipeline(spark, place, available_now=False, **places).start()
        running.query.processAllAvailable()
        with (
            mock.patch.object(ClaimedCheckpoint, "_wait_for"),
            ClaimedCheckpoint(spark, places["checkpoint"]),
        ):
            try:
                running.await_termination(PATIENCE)
            except PipelineError as error:
                return str(error)
    return ""


def claims(spark: Any, root: str) -> dict[str, Any]:
    """Drivers of one checkpoint, one after the other and two at a time."""
    from bittern.errors import PipelineError
    from bittern.spark.streaming import claims as module
    from bittern.spark.streaming.claims import ClaimedCheckpoint

    told: dict[str, Any] = {}

    def refused(call: Callable[[], object]) -> str:
        try:
            call()
        except PipelineError as error:
            return str(error)
        return ""

    def never() -> int:
        raise AssertionError("the catalog is asked although the batch has a pin")

    with mock.patch.multiple(module, _BEAT=0.2, _LAPSE=PATIENCE):
        first = ClaimedCheckpoint(spark, root)
        with first:
            told["first"] = first.pin(0, lambda: 5).version
            told["while it beats"] = refused(ClaimedCheckpoint(spark, root).__enter__)
        second = ClaimedCheckpoint(spark, root)
        with second:  # the first was released: nobody waits
            told["second"] = second.pin(0, never).version
    stopped = threading.Event()
    with mock.patch.multiple(module, _BEAT=3_600.0, _LAPSE=0.5):
        silent = ClaimedCheckpoint(spark, root).__enter__()
    with mock.patch.multiple(module, _BEAT=0.2, _LAPSE=0.5):
        third = ClaimedCheckpoint(spark, root).__enter__()
        told["third"] = third.pin(1, lambda: 7).version
        told["the silent one"] = [refused(partial(silent.pin, n, never)) for n in (0, 1, 2)]
        with mock.patch.object(ClaimedCheckpoint, "_wait_for"):
            fourth = ClaimedCheckpoint(spark, root)
            third.when_lost(lambda _: stopped.set())
            fourth.__enter__()
        told["third hears of it"] = stopped.wait(PATIENCE)
        for each in (third, fourth, silent):
            each.__exit__(None, None, None)
    with mock.patch.object(module, "_LAPSE", PATIENCE):
        ended = ClaimedCheckpoint(spark, root)
        with mock.patch.multiple(module, _since=lambda _: "0", _BEAT=3_600.0):
            ended.__enter__()  # as a process that is not there any more
        ended._ended.set()
        with ClaimedCheckpoint(spark, root) as last:
            told["last"] = last.pin(1, never).version
    return told
