"""Parts of the sink without Spark: what its tasks are given, and tables of one file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bittern.spark.sink.part_files import Table, Task
from bittern.spark.sink.staging import Staging

TAIL = [
    pa.field("subscriptions", pa.list_(pa.int64())),
    pa.field("candidates", pa.int64()),
    pa.field("rejected", pa.string()),
]


def found(*rows: tuple, keys: tuple[pa.Field, ...] = (pa.field("id", pa.int64()),)):
    """What the operator yields: (keys ..., subscriptions, candidates, rejected)."""
    schema = pa.schema([*keys, *TAIL])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


#: No names to give back: batches come with theirs.
AS_THEY_ARE = iter
BATCH = found((1, [7, 9], 12, None), (2, [], 0, "not JSON"), (3, [7], 0, None))


def content(path: Path, column: str = "id") -> list:
    return sorted(pq.read_table(path)[column].to_pylist())


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def table_in(staging: Staging) -> Table:
    return Table(str(staging.attempts), staging.token, "snappy", {"made": "here"})


def put(path: Path, ids: list[int], mode: str = "error") -> None:
    """Write a table of one file, with the driver's part alone."""
    with Staging(path, mode) as staging:
        task = Task(AS_THEY_ARE, table_in(staging), None, explode=False)
        report = task.run(iter([found(*((i, [], 0, None) for i in ids))]), 0, 1).to_pylist()[0]
        staging.accept(report["file"], report["bytes"])
        staging.commit()
