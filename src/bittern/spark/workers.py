"""Detects Python workers that cannot run Bittern, early where that is cheap, and says why.

Unless PYSPARK_PYTHON says otherwise, workers are whatever ``python3`` is first on the path, even if
the driver runs in an environment of its own. Spark then fails a task with a traceback that ends in
``No module named 'bittern'``.

Where the workers are on this machine and run another Python than the driver, a job of one task
tries it, once for each session, before anything is matched. Elsewhere the first job of ours that
fails tells; what a caller's own action raises is as Spark has it.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bittern.errors import OptionError

#: What Spark says, somewhere in a traceback, of a Python that lacks something or is another one.
_LACKING = re.compile(
    r"(No module named '(?:bittern|google|numba|numpy|pandas|pyarrow|pyroaring|re2)\b[^\n]*"
    r"|\[PACKAGE_NOT_INSTALLED\][^\n]*|\[PYTHON_VERSION_MISMATCH\][^\n]*)"
)

_tried: weakref.WeakSet[Any] = weakref.WeakSet()


def lacking(failure: BaseException) -> str | None:
    """Why Python workers cannot run Bittern, if that is why a job failed, and what to do."""
    found = _LACKING.search(str(failure))
    if found is None:
        return None
    return (
        f"Spark's Python workers cannot run bittern ({found[1].strip().rstrip('.')}): set "
        f"PYSPARK_PYTHON={sys.executable} before Spark starts, or install bittern in the Python "
        f"that they run"
    )


@contextlib.contextmanager
def able() -> Iterator[None]:
    """While inside, a job that fails because of its workers' Python says so in a sentence."""
    try:
        yield
    except PySparkException as failure:
        sentence = lacking(failure)
        if sentence is None:
            raise
        raise OptionError(sentence) from failure


def check_workers(spark: SparkSession) -> None:
    """Raise if this machine's workers cannot run Bittern; O(1) unless they run another Python."""
    try:
        context = spark.sparkContext
    except PySparkException:  # Spark Connect: the workers are the server's
        return
    if (
        context in _tried
        or not str(context.master).startswith("local")
        or _is_ours(context.pythonExec)
    ):
        return
    with able():
        spark.range(0, 1, 1, 1).mapInArrow(_import, "id long").collect()
    _tried.add(context)


def _is_ours(python: str) -> bool:
    """Whether it is the Python that runs this process, with the same environment."""
    found = shutil.which(python)
    # Not resolved: an environment's Python is a link to the one that it was made with.
    return found is not None and Path(found).absolute() == Path(sys.executable).absolute()


def _import(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What runs in the worker: to get here, it has imported this module."""
    return batches
