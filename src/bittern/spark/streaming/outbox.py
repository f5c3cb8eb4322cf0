"""A table that grows by one folder for each micro-batch, each of which is there whole or not.

::

    matches/
      _bittern                     which query writes here
      batch=0/
        part-00000-17-<token>.parquet    order  subscription  version
        part-00001-18-<token>.parquet    17     alert-3       4711
      batch=1/
        ...
      .batch=2.<token>.writing/    tasks are writing it; hidden from readers of the table

``spark.read.parquet("matches")`` gives one table with a column ``batch``. A folder takes its name
in one rename when all of it is on disk (``spark/sink/staging.py``), so a reader never sees half a
batch. One that is there says that its batch was written, and it is not written again: that is what
makes delivery exactly-once, since Spark itself may run a batch several times.

In an object store ``stores/manifests.py`` does the same without renames.

Batches are numbered by query, so two queries cannot share a table: the second would take the
first's folders for its own. ``claim`` refuses that.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bittern.errors import OptionError, PipelineError
from bittern.files import only_writer, sync
from bittern.spark.sink.staging import Staging, local_path
from bittern.spark.stores.manifests import ManifestTable
from bittern.spark.stores.places import remote_place
from bittern.spark.streaming.pins import create_once
from bittern.spark.told import NUMBER, read_told, words

#: Spark takes files and folders whose names begin so for no part of a table.
_OWNER = "_bittern"
#: What stands for other characters in a pattern of Spark's; for itself behind a backslash.
_PATTERN = re.compile(r"[\[\]{}*?\\]")
#: The column that Spark makes of the folders' names.
BATCH = "batch"
_FOLDER = re.compile(rf"{BATCH}=({NUMBER})")
#: The column of a query's id, where a sink's table has batches of several.
QUERY = "query"


@dataclass(frozen=True)
class Outbox:
    """The folders of a growing table."""

    path: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Outbox:
        """The table at a path, or a ``file:`` URI, that driver and executors share."""
        return cls(local_path(os.fspath(path), "a table of a pipeline"))

    def claim(self, query_id: str) -> None:
        """Claim the table for this query; PipelineError if it is another's or not such a table."""
        owner = self.path / _OWNER
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not owner.exists():
                # What is hidden is no part of a table: a claim that was killed may have left it.
                if any(not entry.name.startswith((".", _OWNER)) for entry in self.path.iterdir()):
                    raise PipelineError(
                        f"{self.path} holds something that no pipeline wrote: give this pipeline "
                        f"its own folder"
                    )
                create_once(owner, {"query": query_id})
            found = words(read_told(owner.read_bytes())["query"])
        except OSError as error:
            raise PipelineError(f"cannot write to {self.path}: {error}") from error
        except (ValueError, KeyError) as error:
            raise PipelineError(
                f"{owner}, which names the owner of this table, cannot be read ({error}): restore "
                f"it"
            ) from error
        if found != query_id:
            raise PipelineError(
                f"{self.path} belongs to another query, {found}: use the checkpoint of that query, "
                f"or choose another folder"
            )

    def tidy(self) -> None:
        """Remove what killed drivers left, even of a batch that is there and not written again."""
        for name in {left.name.split(".")[1] for left in self.path.glob(f".{BATCH}*")}:
            with only_writer(self.path / name):
                pass

    def folder(self, batch_id: int) -> Path:
        """Where a batch is, once it is written."""
        return self.path / f"{BATCH}={batch_id}"

    def has(self, batch_id: int) -> bool:
        """Whether the batch was written."""
        return self.folder(batch_id).exists()

    def staging(self, batch_id: int) -> Staging:
        """A folder to write the batch to, which takes its name when it is committed."""
        # A table has as many folders as batches; one look at all of them, by ``tidy``, is enough.
        return Staging(self.folder(batch_id), "overwrite", recover=False)

    def read(self, spark: SparkSession, batch_id: int) -> DataFrame:
        """The rows of a batch that was written."""
        # Spark takes what it reads for a pattern, and a path without a scheme for its default's.
        return spark.read.parquet(_PATTERN.sub(r"\\\g<0>", f"file:{self.folder(batch_id)}"))

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a DataFrame as a batch, unless it was written before."""
        if self.has(batch_id):
            return
        with self.staging(batch_id) as staging:
            written = staging.attempts / "written"
            frame.write.parquet(f"file:{written}")
            for file in written.glob("*.parquet"):
                sync(file)
                file.rename(staging.attempts / file.name)
                staging.accept(file.name, (staging.attempts / file.name).stat().st_size)
            staging.commit()

    def batches(self) -> list[int]:
        """The batches that were written. O(batches)."""
        found = [_FOLDER.fullmatch(folder.name) for folder in self.path.glob(f"{BATCH}=*")]
        return [int(match[1]) for match in found if match is not None]

    def forget(self, before: int) -> None:
        """Remove the batches before this one."""
        for batch_id in self.batches():
            if batch_id < before:
                shutil.rmtree(self.folder(batch_id), ignore_errors=True)


def table_at(path: str | os.PathLike[str], spark: SparkSession) -> Outbox | ManifestTable:
    """The growing table at a path, or at a URI of an object store."""
    root = remote_place(path, "a table of a pipeline")
    return Outbox.at(path) if root is None else ManifestTable(spark, root)


def check_apart(**paths: str | os.PathLike[str] | None) -> None:
    """Raise an OptionError where one of these folders, named by what it is for, is in another."""
    known = {
        name: remote_place(path, name) or local_path(os.fspath(path), name)
        for name, path in paths.items()
        if path is not None
    }
    for name, path in known.items():
        for other, place in known.items():
            if name != other and f"{path}/".startswith(f"{place}/"):
                raise OptionError(
                    f"{name} and {other} must be separate folders, not {path} in {place}"
                )
