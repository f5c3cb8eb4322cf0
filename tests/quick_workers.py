"""A daemon of Spark's Python workers, which start in no time since it has imported what they need.

Spark's own lets each worker import for itself, from archives: pyspark's, which is not compiled, and
a jar of thousands of classes, which is read on the way. That takes more than a second of a core,
most workers of tests have a few rows to do, and every session has four of them or more. This one
imports before it forks, from where this Python has it all, and runs no thread meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

# Threads of libraries that are imported here would be missing in the workers.
os.environ |= {
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
sys.path[:] = [entry for entry in sys.path if not entry.endswith((".zip", ".jar"))]
sys.path_importer_cache.clear()

import pyspark.daemon  # noqa: E402

#: Bittern comes last: some workers have none, as tests want it.
_NEEDED = (
    "pandas",
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "bittern.spark.operator",
)
with contextlib.suppress(ImportError):
    for name in _NEEDED:
        importlib.import_module(name)

if __name__ == "__main__":
    pyspark.daemon.manager()
