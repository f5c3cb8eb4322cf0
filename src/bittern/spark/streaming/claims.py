"""A checkpoint in an object store: whose it is, without locks.

::

    s3a://bucket/checkpoint/bittern/claims/
      00000000000000000007.json     the seventh driver, the last one: it works here
      00000000000000000007.beat     a number that it raises every few seconds, or "released"

A driver claims the checkpoint by creating the claim of the next number, under the condition that
there is none. It is refused while the last claim's beat goes on. If that stands still for half a
minute, or was released, or belonged to a process of this machine that has ended, the driver takes
over. No two clocks are compared.

A driver that was taken for dead, and was not, is kept out by the numbers: before it pins a batch
it looks whether its claim is still the last. Here is why that is enough. Spark writes down the rows
of batch n before it hands them over, and then the driver looks. So whoever claims later finds these
rows and gives them the same number, and of two who pin the batch one creates the pin. From there
rows and version are the same for both, and so is all that they write, each object under the
condition that there is none.

What is left to Spark is its own log of offsets, which it writes by renaming. Two drivers would have
to write there at the same moment, one of them after half a minute without a beat; so a driver that
finds its claim lost stops its stream at once.

Cost: a request for each beat, one more for each batch, and a thread.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

from bittern.errors import PipelineError
from bittern.spark.stores.hadoop import HadoopStore
from bittern.spark.stores.places import remote_place
from bittern.spark.streaming.pins import Checkpoint
from bittern.spark.told import read_told

logger = logging.getLogger("bittern")

_CLAIMS = "bittern/claims"
_CLAIM = re.compile(r"([0-9]{20})\.json")
_RELEASED = b"released"
#: Seconds between two beats, and without one until a driver counts as dead.
_BEAT, _LAPSE = 5.0, 30.0


class ClaimedCheckpoint(Checkpoint):
    """A checkpoint in an object store, held by one pipeline at a time; ``with`` releases it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        store = HadoopStore(spark, root)
        self.path, self.own, self.location = root, f"{root}/bittern", root
        self._files = self._store = store
        self._number = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._call: Callable[[PipelineError], object] = lambda _: None

    def __enter__(self) -> Self:
        try:
            self._claim()
        except OSError as error:
            raise PipelineError(f"cannot write to the checkpoint {self.path}: {error}") from error
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, args=(self._number, self._ended), name="bittern-claim", daemon=True
        )
        self._thread.start()
        return self

    def _claim(self) -> None:
        """Create the claim of the next number."""
        last = self._last()
        if last:
            self._wait_for(last)
        number, own = last + 1, {"token": secrets.token_hex(8)} | _process()
        is_mine = self._store.create(_claim(number), own)
        if not is_mine or self._last() != number:
            raise self._in_use("another pipeline, which was quicker")
        self._number = number
        for name in self._store.sizes(_CLAIMS):
            if name < f"{number:020d}":
                self._store.remove(f"{_CLAIMS}/{name}")

    def _wait_for(self, last: int) -> None:
        """Return when the driver of a claim is known to be gone; PipelineError if it works."""
        try:
            holder = read_told(self._store.read(_claim(last)))
        except (FileNotFoundError, ValueError):  # it was replaced in between, or is damaged
            holder = {}
        first = self._beat_of(last)
        if first == _RELEASED or _has_ended(holder):
            return
        until = time.monotonic() + _LAPSE
        logger.info("waiting up to %d s for %s", _LAPSE, self.path)
        while time.monotonic() < until:
            time.sleep(_BEAT / 10)
            now = self._beat_of(last)
            if now == _RELEASED:
                return
            if now != first:
                raise self._in_use(f"process {holder.get('pid')} on {holder.get('host')}")

    def _in_use(self, by: str) -> PipelineError:
        return PipelineError(
            f"the checkpoint {self.path} is in use by {by}: stop that one first, or give this "
            f"pipeline its own checkpoint"
        )

    def _beat_of(self, number: int) -> bytes | None:
        try:
            return self._store.read(_beat(number))
        except FileNotFoundError:
            return None

    def _last(self) -> int:
        """The number of the last claim; 0 if there is none."""
        found = map(_CLAIM.fullmatch, self._store.sizes(_CLAIMS))
        return max((int(match[1]) for match in found if match is not None), default=0)

    def _beat(self, number: int, ended: threading.Event) -> None:
        """Tell others that this driver lives, and hear that it was taken for dead."""
        beats = 0
        while not ended.wait(_BEAT):
            beats += 1
            try:
                if self._last() != number:
                    self._call(self._taken_over())
                    return
                self._store.replace(_beat(number), str(beats).encode())
            except OSError as error:  # others may take over now: the next pin finds out
                logger.warning("the checkpoint %s cannot be reached: %s", self.path, error)

    def when_lost(self, call: Callable[[PipelineError], object]) -> None:
        """Call this, from a thread, if another driver takes over."""
        self._call = call

    def _taken_over(self) -> PipelineError:
        return PipelineError(
            f"another pipeline has taken over the checkpoint {self.path}, since this one did not "
            f"answer for a while: it stops; nothing is lost"
        )

    def _check_held(self) -> None:
        try:
            last = self._last()
        except OSError as error:
            raise PipelineError(f"the checkpoint {self.path} cannot be read: {error}") from error
        if last != self._number:
            raise self._taken_over()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._ended.set()
        if thread is not threading.current_thread():
            thread.join()
        try:
            self._store.replace(_beat(self._number), _RELEASED)
        except OSError as failure:  # the next driver waits for half a minute
            logger.warning("the claim of %s could not be released: %s", self.path, failure)


def checkpoint_at(path: str | os.PathLike[str], spark: SparkSession) -> Checkpoint:
    """The checkpoint at a path, or at a URI of an object store."""
    root = remote_place(path, "checkpoint")
    return Checkpoint(path) if root is None else ClaimedCheckpoint(spark, root)


def _claim(number: int) -> str:
    return f"{_CLAIMS}/{number:020d}.json"


def _beat(number: int) -> str:
    return f"{_CLAIMS}/{number:020d}.beat"


def _process() -> dict[str, Any]:
    """What tells this process from all others, on this machine and elsewhere."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "machine": _machine(), "since": _since(pid)}


def _has_ended(holder: dict[str, Any]) -> bool:
    """Whether a claim's process was one that this process would see, and does not."""
    machine, pid = _machine(), holder.get("pid")
    if machine is None or holder.get("machine") != machine or not isinstance(pid, int):
        return False
    return _since(pid) != holder.get("since")


def _machine() -> str | None:
    """The machine since it started, and the part of it whose processes are seen; None: unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _since(pid: int) -> str | None:
    """When a process started, in ticks; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
