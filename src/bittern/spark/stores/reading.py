"""Reading what a pipeline wrote: whole batches only, wherever they are."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from bittern.errors import OptionError, PipelineError
from bittern.spark.sink.staging import local_path
from bittern.spark.stores.hadoop import HadoopStore
from bittern.spark.stores.manifests import files_of, read_files
from bittern.spark.stores.places import remote_place
from bittern.spark.told import read_told


def read_matches(path: str | os.PathLike[str]) -> DataFrame:
    """The table that a pipeline's ``Files`` sink writes, or its ``rejects``: all whole batches.

    In an object store these are the batches that have a manifest now; of a path the same as
    ``spark.read.parquet``. Batches that come later are in what is read later. O(files).

    Parameters
    ----------
    path
        The folder that the pipeline was given.
    """
    spark = SparkSession.active()
    root = remote_place(path, "path")
    if root is None:
        return spark.read.parquet(f"file:{local_path(os.fspath(path), 'path')}")
    names: list[str] = []
    if HadoopStore(spark, root).sizes("_manifests"):
        texts = spark.read.text(f"{root}/_manifests/*.json", wholetext=True).collect()
        for row in texts:
            try:
                told = read_told(row[0])
                names += files_of(told, told["batch"])
            except (ValueError, KeyError, TypeError) as error:
                raise PipelineError(
                    f"a manifest in {root}/_manifests cannot be read ({error}): restore it"
                ) from error
    if not names:
        raise OptionError(f"{root} has no batch yet, or no pipeline writes to it: look at the path")
    return read_files(spark, root, names)
