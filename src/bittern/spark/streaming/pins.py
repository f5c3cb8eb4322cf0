"""The checkpoint's own part: who works on it, and which catalog version each batch is bound to.

::

    <checkpoint>/
      offsets/ commits/ metadata ...     Spark's
      bittern/
        lock                             held by the one pipeline that runs; says who that is
        owner.json                       which catalog and query they are of
        pins/
          00000000000000000041.json      {"version": 4710, "time": "2026-03-01T12:00:04.120+00:00"}
          00000000000000000042.json      {"version": 4711, "time": "2026-03-01T12:00:05.098+00:00"}

Spark gives a batch that was not noted as done the same number and the same rows after a restart,
and the catalog may have moved on by then. So the version is written down before anything is matched
and taken from there ever after: two attempts at a batch find the same matches. A pin appears whole
or not at all (it is linked to its name when it is on disk) and is never changed.

Cost: two small files and two ``fsync`` for each batch.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bittern.errors import OptionError, PipelineError
from bittern.files import sync
from bittern.spark.staging import local_path

#: Pins that stay, for those who want to know later what a batch was matched with.
_KEPT = 1000


@dataclass(frozen=True)
class Pin:
    """What a batch is bound to."""

    version: int
    #: When it was bound, in UTC.
    time: datetime


class Checkpoint:
    """A checkpoint's folder, held by one pipeline at a time; ``with`` lets go of it.

    ::

        with Checkpoint("checkpoint") as checkpoint:
            checkpoint.pin(0, catalog.version)    # asks the catalog, and writes it down
            checkpoint.pin(0, catalog.version)    # the same pin, whatever the catalog says now
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path = local_path(os.fspath(path))
        except OptionError:
            raise OptionError(
                f"the checkpoint is a folder of a file system with paths, not {path}"
            ) from None
        self.own = self.path / "bittern"
        self._pins = self.own / "pins"
        self._lock = -1

    def __enter__(self) -> Self:
        try:
            self._pins.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.own / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._take(lock)
                self._probe()
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            raise PipelineError(f"cannot write to the checkpoint {self.path}: {error}") from error
        self._lock = lock
        return self

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 500, 0).decode(errors="replace").strip()
            raise PipelineError(
                f"the checkpoint {self.path} is in use by {holder or 'another pipeline'}: stop "
                f"that one first, or give this pipeline a checkpoint of its own"
            ) from None
        holder = f"process {os.getpid()} on {socket.gethostname()}\n"
        os.ftruncate(lock, 0)
        os.pwrite(lock, holder.encode(), 0)

    def _probe(self) -> None:
        """Write something now rather than fail in the first batch."""
        probe = self._pins / f".{secrets.token_hex(8)}"
        probe.write_bytes(b"x")
        probe.unlink()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._lock)
        self._lock = -1

    def query_id(self) -> str | None:
        """Spark's id of the query, the same after every restart; None before its first start."""
        try:
            metadata = json.loads((self.path / "metadata").read_text(encoding="utf-8"))
            return str(metadata["id"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PipelineError(
                f"{self.path / 'metadata'} cannot be read ({error}): the checkpoint is damaged"
            ) from error

    def bind(self, catalog: str, query_id: str) -> None:
        """Bind the pins to a catalog, by its uid, and to a query: numbers mean nothing in others.

        ``PipelineError`` if they are another's.
        """
        place = self.own / "owner.json"
        try:
            if not place.exists():
                create_once(place, {"catalog": catalog, "query": query_id})
            told = json.loads(place.read_text(encoding="utf-8"))
            found = {"catalog": told["catalog"], "query": told["query"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PipelineError(f"cannot use {place}: {error}") from error
        for what, given in (("catalog", catalog), ("query", query_id)):
            if found[what] != given:
                raise PipelineError(
                    f"the pins in {self.path} are of another {what}, {found[what]}, and this is "
                    f"{given}: go on with that one, or begin with a new checkpoint"
                )

    def pin(self, batch_id: int, newest: Callable[[], int]) -> Pin:
        """The pin of a batch; if it has none yet, it is bound to the version ``newest`` tells."""
        place = self._place(batch_id)
        found = self._read(place)
        if found is not None:
            return found
        told = {"version": newest(), "time": datetime.now(UTC).isoformat()}
        try:
            create_once(place, told)
            self._place(batch_id - _KEPT).unlink(missing_ok=True)
        except OSError as error:
            raise PipelineError(f"cannot write the pin {place}: {error}") from error
        pin = self._read(place)
        assert pin is not None
        return pin

    def pinned(self, batch_id: int) -> Pin | None:
        """The pin that a batch has, if any."""
        return self._read(self._place(batch_id))

    def _place(self, batch_id: int) -> Path:
        return self._pins / f"{batch_id:020d}.json"

    def _read(self, place: Path) -> Pin | None:
        try:
            told = json.loads(place.read_text(encoding="utf-8"))
            return Pin(int(told["version"]), datetime.fromisoformat(told["time"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PipelineError(
                f"the pin {place} cannot be read ({error}): it says with which version of the "
                f"catalog the batch was matched, so nothing is matched without it; restore it"
            ) from error


def create_once(place: Path, told: dict[str, Any]) -> None:
    """Write a small JSON file for good: whole or not at all, and not if there is one already."""
    temporary = place.with_name(f".{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(json.dumps(told).encode())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, place)
        sync(place.parent)
    finally:
        with contextlib.suppress(OSError):  # a disk that takes nothing has been told of already
            temporary.unlink()
