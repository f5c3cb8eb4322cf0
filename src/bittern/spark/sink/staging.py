"""Putting a table in place: tasks write attempts, and the driver commits the accepted ones.

::

    .matches.<token>.writing/            locked by the driver while it lives
      attempts/                          tasks write here, and never anywhere else
        part-00000-17-<token>.parquet      attempt 17 of partition 0, which Spark accepted
        part-00001-18-<token>.parquet      its executor was lost
        part-00001-21-<token>.parquet      attempt 21 of partition 1, which Spark accepted
      complete/                          the driver moves accepted files here ...
        part-00000-17-<token>.parquet
        part-00001-21-<token>.parquet
        _SUCCESS
    matches/                             ... and gives the folder its name, in one rename

A task returns one row with the name of its file, after the file is closed and on disk, and Spark
returns the rows of exactly one attempt of each partition. So files of retried, speculative and
forgotten attempts are never listed. An attempt that is still running when the driver is done can
only add to ``attempts``, and that folder is renamed before it is removed: no task creates folders,
so a late attempt finds no place to write to.

If anything fails, the target is as it was before. If the driver is killed, there is one complete
table or none (``files.py``), and the next writer of the same name removes the rest. Cost: a rename
for each file.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from bittern.errors import OptionError
from bittern.files import new_temporary, only_writer, put_in_place, sync
from bittern.spark.told import file_name

MODES = ("error", "overwrite")
#: A file of a table, alone or beside others.
_PART = re.compile(r"(?P<table>.*\.parquet|_SUCCESS)|_metadata|_common_metadata|\..*\.crc")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


class StagedTable(Protocol):
    """A table that is being written, as its writer sees it."""

    #: The folder that tasks write to, and pyarrow's file system that it belongs to, if it has no
    #: path.
    attempts: Any
    filesystem: Any

    @property
    def token(self) -> str:
        """The part of file names that is unique to this run."""

    def accept(self, name: str, size: int) -> None:
        """Add a file that a task wrote to the table."""

    def commit(self) -> None:
        """Have the accepted files be the table."""


class Staging:
    """A table that is being written; ``with`` removes what was not committed.

    ::

        with Staging("matches.parquet") as staging:
            (staging.attempts / "part-0.parquet").write_bytes(data)
            staging.accept("part-0.parquet", len(data))
            staging.commit()
    """

    def __init__(
        self, path: str | os.PathLike[str], mode: str = "error", *, recover: bool = True
    ) -> None:
        if mode not in MODES:
            also = " To append, use match(...).write.mode('append')." if mode == "append" else ""
            raise OptionError(f"mode must be 'error' or 'overwrite', not {mode!r}.{also}")
        self.filesystem = None
        self.path = os.fspath(path)
        self.target = local_path(self.path)
        self._mode = mode
        self._recover = recover  # as ``only_writer`` takes it

    def __enter__(self) -> Self:
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            with only_writer(self.target, recover=self._recover):
                self._check()
                self._folder, self._lock = new_temporary(self.target)
            try:
                self.attempts = self._folder / "attempts"
                self._complete = self._folder / "complete"
                self.attempts.mkdir()
                self._complete.mkdir()
            except BaseException:
                self._remove()
                raise
        except OSError as error:
            raise OptionError(f"cannot write to {self.path}: {error}") from error
        return self

    @property
    def token(self) -> str:
        """The part of file names that is unique to this run."""
        return self._folder.name.split(".")[-2]

    def accept(self, name: str, size: int) -> None:
        """Add a file that a task wrote to the table. O(1)."""
        try:
            attempt = self.attempts / file_name(name)
        except ValueError as error:
            raise OptionError(f"a task reported a file that does not exist: {error}") from None
        with contextlib.suppress(FileNotFoundError):
            if attempt.stat().st_size == size:
                attempt.rename(self._complete / name)
                return
        raise OptionError(
            f"a task wrote {size} bytes to {attempt}, but the driver cannot find them: write to a "
            f"folder that driver and executors share, or use match(...).write.parquet(...)"
        )

    def commit(self) -> None:
        """Replace the target by the accepted files. O(1)."""
        (self._complete / "_SUCCESS").touch()
        sync(self._complete)
        with only_writer(self.target, recover=self._recover) as parent:
            self._check()  # another writer may have been faster
            put_in_place(self._complete, self.target, parent)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        removing = self._folder.with_suffix(".removing")
        try:
            with contextlib.suppress(OSError):
                self._folder.rename(removing)
            shutil.rmtree(removing, ignore_errors=True)
        finally:
            self._lock.close()

    def _check(self) -> None:
        if not os.path.lexists(self.target):
            return
        if self._mode == "error":
            raise OptionError(
                f"{self.path} exists: choose another name, or replace it with mode='overwrite'"
            )
        if not self.target.is_dir() or not _is_table([*self.target.iterdir()]):
            raise OptionError(
                f"{self.path} is not a folder of Parquet files, or holds something else too, so it "
                f"is not overwritten: choose another name or remove it first"
            )


def local_path(path: str, what: str | None = None) -> Path:
    """The file system's own path for a path or a ``file:`` URI, without symbolic links.

    ``what`` it is for, if it is no table that ``match(...).write`` could write elsewhere. The path
    is as ``spark.read`` takes it, which does not decode ``%20``: a table is found where it was put.
    """
    scheme = _SCHEME.match(path)
    if scheme is None:
        return Path(os.path.realpath(path))
    if scheme[1].lower() != "file":
        if what is not None:
            raise OptionError(
                f"{what} must be a folder of a file system with paths, and {path} is not: give a "
                f"path, such as one where that storage is mounted"
            )
        raise OptionError(
            f"tasks write only to file systems with paths: write to {path} with "
            f"match(...).write.parquet({path!r})"
        )
    rest = path[scheme.end() - 1 :]
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        if host not in {"", "localhost"}:
            raise OptionError(f"{path} names a host, {host}: write file:/{rest} for local paths")
        rest = f"/{rest}"
    return Path(os.path.realpath(rest))


def _is_table(files: Sequence[Path]) -> bool:
    """Whether these are only files of a table and what Spark keeps beside them, or nothing."""
    kinds = [_PART.fullmatch(file.name) for file in files if file.is_file()]
    own = [kind for kind in kinds if kind is not None]
    return len(own) == len(files) and (not own or any(kind["table"] for kind in own))
