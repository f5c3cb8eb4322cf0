"""A table in an object store that grows by a batch at a time, each of which is there whole or not.

::

    s3a://bucket/matches/
      _bittern                                which query writes here
      _files/batch=41/part-00000-17-<token>.parquet
      _files/batch=42/part-00000-23-<token>.parquet     of a task that a retry has replaced
      _files/batch=42/part-00000-24-<token>.parquet
      _manifests/00000000000000000041.json    {"batch": 41, "files": [{"name": ..., "bytes": ...}]}

A batch is there when its manifest is, and consists of the files that this names, whatever lies
beside them. The manifest is created last, under the condition that there is none (``hadoop.py``):
so a batch is written once, by whatever driver, and is never changed. What a batch consists of does
not depend on the driver, as ``pipeline.py`` says, so whoever finds a manifest leaves it alone.

Names that begin with "_" are hidden from Spark: who reads the whole folder as Parquet is told that
there is nothing, rather than given files of tasks that died. ``reading.py`` reads what is there.

Cost: for each batch half a dozen requests, and those of its tasks' files; no file is copied or
renamed.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from bittern.errors import OptionError, PipelineError
from bittern.spark.stores.hadoop import HadoopStore
from bittern.spark.stores.remote_files import for_tasks
from bittern.spark.told import file_name, read_told, whole, words

_OWNER, _FILES, _MANIFESTS = "_bittern", "_files", "_manifests"
_MANIFEST = re.compile(r"([0-9]{20})\.json")
#: What stands for other characters in a pattern of Spark's; for itself behind a backslash.
_PATTERN = re.compile(r"[\[\]{}*?\\]")


class ManifestTable:
    """The batches of a growing table in an object store; ``Outbox`` is the same for paths."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.path = root
        self.store = HadoopStore(spark, root)
        #: Where tasks write: pyarrow's file system, and the path of the table in it.
        self.tasks = for_tasks(spark, root)

    def claim(self, query_id: str) -> None:
        """Claim the table for this query; PipelineError if it is another's or not such a table."""
        owner = self.store.place(_OWNER)
        try:
            if not self.store.has(_OWNER):
                if any(not name.startswith((".", "_")) for name in self.store.sizes()):
                    raise PipelineError(
                        f"{self.path} holds something that no pipeline wrote: give this pipeline "
                        f"its own folder"
                    )
                self.store.create(_OWNER, {"query": query_id})
            found = words(read_told(self.store.read(_OWNER))["query"])
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
        """What killed drivers left of a batch goes when the batch is committed."""

    def has(self, batch_id: int) -> bool:
        """Whether the batch was written."""
        return self.store.has(_manifest(batch_id))

    def staging(self, batch_id: int) -> ManifestStaging:
        """Files to write the batch to, which are the batch when they are committed."""
        return ManifestStaging(self, batch_id)

    def read(self, spark: SparkSession, batch_id: int) -> DataFrame:
        """The rows of a batch that was written."""
        return read_files(spark, self.path, self.files(batch_id)).drop("batch")

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a DataFrame as a batch, unless it was written before."""
        if self.has(batch_id):
            return
        with self.staging(batch_id) as staging:
            folder = f"{_folder(batch_id)}/{staging.token}"
            frame.write.parquet(self.store.place(folder))
            for name, size in self.store.sizes(folder).items():
                if name.endswith(".parquet"):
                    staging.take(f"{staging.token}/{name}", size)
            staging.commit()

    def files(self, batch_id: int) -> dict[str, int]:
        """The files of a batch, from ``_files`` on, and how many bytes they have."""
        name = _manifest(batch_id)
        try:
            return files_of(read_told(self.store.read(name)), batch_id)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PipelineError(
                f"{self.store.place(name)}, which lists the files of a batch, cannot be read "
                f"({error}): restore it"
            ) from error

    def batches(self) -> list[int]:
        """The batches that were written. O(batches)."""
        found = map(_MANIFEST.fullmatch, self.store.sizes(_MANIFESTS))
        return [int(match[1]) for match in found if match is not None]

    def forget(self, before: int) -> None:
        """Remove the batches before this one."""
        for batch_id in self.batches():
            if batch_id < before:
                with contextlib.suppress(OSError):  # the next batch tries again
                    self.store.remove(_folder(batch_id))
                    self.store.remove(_manifest(batch_id))


class ManifestStaging:
    """A batch that is being written; ``with`` removes what was not committed."""

    def __init__(self, table: ManifestTable, batch_id: int) -> None:
        self._store, self._batch = table.store, batch_id
        self._table, self._folder = table, _folder(batch_id)
        self._token = secrets.token_hex(8)
        self.filesystem, base = table.tasks
        self.attempts = f"{base}/{self._folder}"
        self._taken: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    @property
    def token(self) -> str:
        """The part of file names that is unique to this attempt."""
        return self._token

    def accept(self, name: str, size: int) -> None:
        """Add a file that a task wrote to the batch. O(1)."""
        try:
            self.take(file_name(name), size)
        except ValueError as error:
            raise OptionError(f"a task reported a file that does not exist: {error}") from None

    def take(self, name: str, size: int) -> None:
        """Add a file in the batch's folder."""
        self._taken[name] = size

    def commit(self) -> None:
        """Have the batch consist of the accepted files, unless it was committed already."""
        try:
            self._check_there()
            told = {
                "batch": self._batch,
                "files": [
                    {"name": f"{_batch(self._batch)}/{name}", "bytes": size}
                    for name, size in self._taken.items()
                ],
            }
            self._store.create(_manifest(self._batch), told)
            self._tidy()
        except OSError as error:
            raise PipelineError(f"cannot commit the batch: {error}") from error

    def _check_there(self) -> None:
        """Raise an OptionError unless Spark finds what the tasks wrote."""
        found: dict[str, dict[str, int]] = {}
        for name, size in self._taken.items():
            folder, _, last = f"{self._folder}/{name}".rpartition("/")
            if folder not in found:
                found[folder] = self._store.sizes(folder)
            if found[folder].get(last) != size:
                raise OptionError(
                    f"a task wrote {size} bytes to {self._store.place(folder)}/{last}, but Spark "
                    f"does not find them: tasks and Spark must reach the same storage, so set "
                    f"where it is and its keys as spark.hadoop.fs.s3a.*"
                )

    def _tidy(self) -> None:
        """Remove what no manifest names: files of attempts that were retried or died."""
        kept = {name.split("/")[1] for name in self._table.files(self._batch)}
        for name in self._store.sizes(self._folder):
            if name not in kept:
                self._store.remove(f"{self._folder}/{name}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            with contextlib.suppress(OSError):  # the attempt that succeeds removes them
                for name in self._store.sizes(self._folder):
                    if self._token in name:
                        self._store.remove(f"{self._folder}/{name}")


def files_of(told: dict[str, Any], batch_id: int) -> dict[str, int]:
    """What a manifest tells; ValueError, KeyError or TypeError if it does not."""
    if whole(told["batch"]) != batch_id:
        raise ValueError(f"it is of batch {told['batch']}")
    found = {}
    for each in told["files"]:
        folder, *parts = words(each["name"]).split("/")
        if folder != _batch(batch_id) or len(parts) not in (1, 2):
            raise ValueError(f"{each['name']!r:.60} is not the name of a file of the batch")
        found["/".join([folder, *map(file_name, parts)])] = whole(each["bytes"])
    if not found:
        raise ValueError("it names no file")
    return found


def read_files(spark: SparkSession, root: str, names: Any) -> DataFrame:
    """Files of a table, with a column ``batch``."""
    base = f"{root}/{_FILES}"
    places = [_PATTERN.sub(r"\\\g<0>", f"{base}/{name}") for name in names]
    return spark.read.option("basePath", base).parquet(*places)


def _batch(batch_id: int) -> str:
    return f"batch={batch_id}"


def _folder(batch_id: int) -> str:
    return f"{_FILES}/{_batch(batch_id)}"


def _manifest(batch_id: int) -> str:
    return f"{_MANIFESTS}/{batch_id:020d}.json"
