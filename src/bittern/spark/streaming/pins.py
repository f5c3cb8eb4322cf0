"""Our part of the checkpoint: its owner, and the catalog version that each batch is bound to.

::

    <checkpoint>/
      offsets/ commits/ metadata ...     Spark's
      bittern/
        lock                             says which pipeline runs; it is locked, as is the folder
        owner.json                       which catalog and query they are of
        pins/
          00000000000000000041.json      {"version": 4710, "time": "2026-03-01T12:00:04.120+00:00"}
          00000000000000000042.json      {"version": 4711, "time": "2026-03-01T12:00:05.098+00:00"}

After a restart, a batch that was not noted as done gets the same number and the same rows, but the
catalog may have changed. So the version is recorded before anything is matched, and read from the
record ever after: two attempts at a batch find the same matches. A pin appears whole or not at all
(it is linked to its name when it is on disk) and is never changed.

Two drivers at once are prevented in three ways. The lock of ``bittern/`` cannot be removed without
removing its content; that of the file works where folders cannot be locked (NFS). Before each pin,
both must still be what was locked. And where nothing can be locked at all, only one of two drivers
creates a pin: the other stops. In an object store, which has no locks, ``claims.py`` does it.

Cost: two small files and two ``fsync`` for each batch.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from bittern.errors import PipelineError
from bittern.files import Opened, sync, to_disk, try_hold
from bittern.spark.sink.staging import local_path
from bittern.spark.told import component, read_told, whole, words

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_FILE = os.O_RDWR | os.O_CREAT
#: Pins that stay, so that one can look up later what a batch was matched with.
_KEPT = 1000
_OWNER = "bittern/owner.json"


@dataclass(frozen=True)
class Pin:
    """The catalog version and time that a batch is bound to."""

    version: int
    #: When it was bound, in UTC.
    time: datetime


class SmallFiles(Protocol):
    """The small files of a checkpoint, by their names in it; those of an object store have it."""

    def place(self, name: str) -> object:
        """Where a file is, for messages."""

    def read(self, name: str) -> bytes:
        """The content of a file; FileNotFoundError if there is none."""

    def create(self, name: str, told: dict[str, Any]) -> bool:
        """Write a small JSON file for good, whole or not at all; False if there is one already."""

    def has(self, name: str) -> bool:
        """Whether there is a file, or a folder with something in it."""

    def remove(self, name: str) -> None:
        """Remove a file; there may be none."""


class LocalFiles:
    """Small files in a folder with a path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place(self, name: str) -> Path:
        """The path of a file."""
        return self._folder / name

    def read(self, name: str) -> bytes:
        """The content of a file; FileNotFoundError if there is none."""
        return self.place(name).read_bytes()

    def create(self, name: str, told: dict[str, Any]) -> bool:
        """Write a small JSON file for good, whole or not at all; False if there is one already."""
        return create_once(self.place(name), told)

    def has(self, name: str) -> bool:
        """Whether there is a file, or a folder with something in it."""
        place = self.place(name)
        return place.is_file() or (place.is_dir() and any(place.iterdir()))

    def remove(self, name: str) -> None:
        """Remove a file; there may be none."""
        self.place(name).unlink(missing_ok=True)


class Checkpoint:
    """A checkpoint's folder, held by one pipeline at a time; ``with`` releases it.

    ::

        with Checkpoint("checkpoint") as checkpoint:
            checkpoint.pin(0, catalog.version)    # asks the catalog, and writes it down
            checkpoint.pin(0, catalog.version)    # the same pin, whatever the catalog says now
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Any = local_path(os.fspath(path), "checkpoint")
        self.own: Any = self.path / "bittern"
        #: The checkpoint, as Spark is told of it.
        self.location = f"file:{self.path}"
        self._files: SmallFiles = LocalFiles(self.path)
        self._pins = self.own / "pins"
        self._held: dict[Path, Opened] = {}  # what is locked

    def __enter__(self) -> Self:
        held: dict[Path, Opened] = {}
        try:
            self._take(held)
            self._held = held
        except OSError as error:
            _close(held)
            raise PipelineError(f"cannot write to the checkpoint {self.path}: {error}") from error
        except BaseException:
            _close(held)
            raise
        return self

    def _take(self, held: dict[Path, Opened]) -> None:
        """Lock the folder and the file in it, which are put into ``held``."""
        self._pins.mkdir(parents=True, exist_ok=True)
        for place, how in (self.own, _FOLDER), (self.own / "lock", _FILE):
            held[place] = Opened(place, how, 0o644)
            if not try_hold(held[place].number):
                raise PipelineError(
                    f"the checkpoint {self.path} is in use by {self._holder()}: stop that "
                    f"one first, or give this pipeline its own checkpoint"
                )
        _check_same(held)  # another may have removed one in between
        lock = held[self.own / "lock"].number
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        self._probe()

    def _holder(self) -> str:
        """The process that holds the lock, as far as it is known."""
        with contextlib.suppress(OSError):
            text = (self.own / "lock").read_bytes()[:500].decode(errors="replace").strip()
            return text or "another pipeline"
        return "another pipeline"

    def _check_held(self) -> None:
        """Raise unless this pipeline still holds the checkpoint."""
        _check_same(self._held)

    def when_lost(self, call: Callable[[PipelineError], object]) -> None:
        """Call this if another driver takes over, which locks do not let happen."""

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
        held, self._held = self._held, {}
        _close(held)

    def query_id(self) -> str | None:
        """Spark's id of the query, the same after every restart; None before its first start."""
        try:
            return component(read_told(self._files.read("metadata"))["id"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError) as error:
            raise PipelineError(
                f"{self._files.place('metadata')} cannot be read ({_said(error)}): the checkpoint "
                f"is damaged; {self._metadata_remedy()}"
            ) from error

    def check_query(self) -> None:
        """Raise a PipelineError if Spark could not continue the query that was here before."""
        if self.query_id() is not None:
            return
        if any(map(self._files.has, (_OWNER, "offsets", "commits"))):
            raise PipelineError(
                f"{self._files.place('metadata')} is missing, and the checkpoint has batches: "
                f"{self._metadata_remedy()}"
            )

    def _metadata_remedy(self) -> str:
        """What to do about a file of Spark's that says nothing but the query's id."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            query = component(read_told(self._files.read(_OWNER))["query"])
            return f'restore it; it only needs to hold {{"id":"{query}"}}'
        return "restore it, or start with a new checkpoint"

    def bind(self, catalog: str, query_id: str) -> None:
        """Bind the pins to a catalog, by its uid, and to a query: numbers mean nothing in others.

        ``PipelineError`` if they are another's.
        """
        try:
            if not self._files.has(_OWNER):
                self._files.create(_OWNER, {"catalog": catalog, "query": query_id})
            told = read_told(self._files.read(_OWNER))
            found = {"catalog": words(told["catalog"]), "query": words(told["query"])}
        except (OSError, ValueError, KeyError) as error:
            raise PipelineError(
                f"cannot use {self._files.place(_OWNER)}: {_said(error)}"
            ) from error
        for what, given in (("catalog", catalog), ("query", query_id)):
            if found[what] != given:
                raise PipelineError(
                    f"the pins in {self.path} belong to another {what}, {found[what]}, and this is "
                    f"{given}: use that one, or start with a new checkpoint"
                )

    def pin(self, batch_id: int, newest: Callable[[], int]) -> Pin:
        """The pin of a batch; if it has none yet, it is bound to the version ``newest`` tells.

        ``PipelineError`` if another driver works on the checkpoint.
        """
        self._check_held()
        name = _name(batch_id)
        found = self.pinned(batch_id)
        if found is not None:
            return found
        told = {"version": newest(), "time": datetime.now(UTC).isoformat()}
        try:
            if not self._files.create(name, told):
                raise PipelineError(
                    f"another pipeline has written the pin {self._files.place(name)} at the same "
                    f"time: a checkpoint can have only one driver, so this one stops"
                )
            if batch_id >= _KEPT:
                self._files.remove(_name(batch_id - _KEPT))
        except OSError as error:
            raise PipelineError(
                f"cannot write the pin {self._files.place(name)}: {error}"
            ) from error
        pin = self.pinned(batch_id)
        assert pin is not None
        return pin

    def is_noted(self, batch_id: int) -> bool:
        """Whether Spark has noted a batch as done."""
        return self._files.has(f"commits/{batch_id}")

    def pinned(self, batch_id: int) -> Pin | None:
        """The pin that a batch has, if any."""
        name = _name(batch_id)
        try:
            told = read_told(self._files.read(name))
            return Pin(whole(told["version"]), _moment(told["time"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError) as error:
            raise PipelineError(
                f"the pin {self._files.place(name)} cannot be read ({_said(error)}): it names the "
                f"version of the catalog that the batch was matched with, so nothing is matched "
                f"without it; restore it"
            ) from error


def _check_same(held: dict[Path, Opened]) -> None:
    """Raise if what is at a path is not what was locked there."""
    for place, opened in held.items():
        try:
            same = os.path.samestat(os.fstat(opened.number), place.stat())
        except FileNotFoundError:
            same = False
        if not same:
            raise PipelineError(
                f"{place} was removed or replaced while this pipeline held its lock: another "
                f"pipeline may use the checkpoint now, so this one stops; make sure that only "
                f"one runs, and start it again"
            )


def _name(batch_id: int) -> str:
    return f"bittern/pins/{batch_id:020d}.json"


def _close(held: dict[Path, Opened]) -> None:
    for opened in held.values():
        opened.close()


def _moment(told: Any) -> datetime:
    """A time with a time zone."""
    moment = datetime.fromisoformat(words(told))
    if moment.utcoffset() is None:
        raise ValueError(f"{told!r:.40} has no time zone")
    return moment


def _said(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def create_once(place: Path, told: dict[str, Any]) -> bool:
    """Write a small JSON file for good: whole or not at all; False if there is one already."""
    temporary = place.with_name(f".{secrets.token_hex(8)}")
    created = True
    try:
        with temporary.open("xb") as file:
            file.write(json.dumps(told).encode())
            to_disk(file)
        try:
            os.link(temporary, place)
        except FileExistsError:
            created = False
        sync(place.parent)
    finally:
        with contextlib.suppress(OSError):  # a disk that takes nothing has been told of already
            temporary.unlink()
    return created
