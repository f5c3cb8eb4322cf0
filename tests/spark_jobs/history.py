"""Jobs that compare events with documents, as functions that give plain rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bittern import spark as bittern_spark
from spark_jobs.parity import rows
from spark_jobs.world import Rows


@dataclass(frozen=True)
class FailOnce:
    """A stage that fails the first task which has passed a batch on; a file tells of it."""

    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failed = Path(self.folder) / "failed"
        for batch in batches:
            yield batch
            if not failed.exists():
                failed.touch()
                raise RuntimeError("this task fails the first time")


def match(
    spark: Any,
    snapshot: str,
    events: str,
    *,
    history: str | None = None,
    as_path: bool = False,
    partitions: int = 3,
    fail_in: str | None = None,
    **options: Any,
) -> Rows:
    """Match a folder of events after a folder of documents; with ``fail_in`` a task fails once."""
    documents: Any = history
    if history is not None and not as_path:
        documents = spark.read.parquet(history)
    frame = spark.read.parquet(events).repartition(partitions)
    found = bittern_spark.match(frame, snapshot, event_id="id", history=documents, **options)
    if fail_in is not None:
        found = found.mapInArrow(FailOnce(fail_in), found.schema)
    return rows(found)
