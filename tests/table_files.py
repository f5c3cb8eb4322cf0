"""Tables on disk, for the tests of the command line."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def save(path, rows):
    """Write rows in the format of the file's extension and return the path."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        pa.csv.write_csv(pa.Table.from_pylist(rows), path)
    else:
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    return path
