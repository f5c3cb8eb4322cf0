"""Workloads as Spark sees them: events in Parquet files, subscriptions as an index or as rows.

Events of a workload lie in as many files as there are partitions to be read::

    folder/shop-1000000/part-0.parquet    event  attributes
                                          0      {a17: 4, a211: 50, ...}
           ...          part-7.parquet

Every file is drawn with a seed of its own, and ``event`` counts through all of them.

Cost: O(values); a few seconds for a million events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bittern
from benchmarks.generators import Conjunctions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.workloads import Workload

EVENT, VALUES = "event", "attributes"
FILES = 8


def part_of(conjunctions: Conjunctions, n: int) -> Conjunctions:
    """The first ``n`` subscriptions."""
    offsets = conjunctions.offsets[: n + 1]
    return Conjunctions(conjunctions.vocabulary, conjunctions.codes[: offsets[-1]], offsets)


def events_table(workload: Workload, n: int, *, first: int = 0, seed: int = 1) -> pa.Table:
    """``n`` events with their numbers."""
    events = workload.events(n, seed)
    numbers = pa.array(np.arange(first, first + n, dtype=np.int64))
    return events.add_column(0, EVENT, numbers)


def write_events(workload: Workload, n: int, folder: Path) -> Path:
    """Write ``n`` events as files of equal size, unless they are there; returns their folder."""
    path = folder / f"{workload.name}-{workload.scale}-{n}"
    if path.exists():
        return path
    building = folder / f"{path.name}.part"
    building.mkdir(parents=True, exist_ok=True)
    own = -(-n // FILES)
    for number, first in enumerate(range(0, n, own)):
        table = events_table(workload, min(own, n - first), first=first, seed=number + 1)
        pq.write_table(table, building / f"part-{number}.parquet")
    building.rename(path)
    return path


def read_events(spark: SparkSession, path: Path) -> DataFrame:
    """Read the events, every file as one partition."""
    largest = max(file.stat().st_size for file in path.iterdir())
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(largest))
    return spark.read.parquet(str(path))


def saved_index(workload: Workload, folder: Path) -> Path:
    """Build the index of a workload and save it there, unless it is there; returns its path."""
    path = folder / f"{workload.name}-{workload.scale}.index"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        index = bittern.Index.build(workload.subscriptions(), sample=workload.sample())
        index.save(path)
    return path
