"""Compaction: a snapshot and the changes since become a new snapshot, in a separate process.

Reading a million texts keeps an interpreter busy for seconds; in the matching process it would take
the interpreter lock from every reader. So the work is handed over in a folder, as columns::

    base/          the snapshot (or the index's own folder, where it is saved already)
    kept.npy       the positions in it that are still alive
    added.arrow    the rows added since, and where the base is
    sample.arrow   some recent events, for the choice of pivots, where Arrow can hold them
    said           error messages of the child
    result/        the new snapshot, written by the child

The new snapshot holds the survivors in their old order, then the added rows.

Nothing here is a pickle, and the folder is private to the user (``engine/live/work_folder.py``).
The child ends when its parent does: nothing is ever written to its standard input, which is closed
when the parent ends (``processes.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.engine.index import Index
from bittern.engine.live.delta import Row
from bittern.engine.snapshot.folder import read_snapshot
from bittern.errors import (
    CompactionError,
    EventError,
    OptionError,
    SnapshotError,
    SubscriptionError,
)
from bittern.files import is_private
from bittern.processes import start_module
from bittern.terms.unknown import SPARK

#: Seconds that a child is given to end when it is asked to.
_ENDING_SECONDS = 5.0
_STOPPED = "compaction was stopped before it ended"
#: The column of a sample that is an array of events.
_EVENTS = "events"
_IS_ARRAY = {b"form": b"array"}


class Child:
    """The compacting process; it runs to its end or is stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self, work: Path) -> None:
        """Start it and wait; ``CompactionError`` if it fails or is stopped."""
        said = work / "said"  # not a pipe, which a process forked meanwhile would keep open
        with self._lock, said.open("wb") as errors:
            if self._is_stopped:
                raise CompactionError(_STOPPED)
            self._process = start_module(
                "bittern.engine.live.compact",
                [str(work)],
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        with self._process as process:
            check_ended(process.wait(), said.read_text(encoding="utf-8", errors="replace"))

    def stop(self) -> None:
        """End it, whatever it is doing, even if it is suspended."""
        with self._lock:
            self._is_stopped = True
            process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def check_ended(returncode: int, said: str) -> None:
    """Raise unless a child has done its work."""
    if returncode:
        last = said.strip().splitlines()[-1:] or [f"exit code {returncode}"]
        raise CompactionError(f"the compacting process failed: {last[0]}")


class Compaction(threading.Thread):
    """One compaction; it calls ``done`` with itself at the end, whatever happened.

    ``kept`` are the positions in the base that survive; the new index holds them in this order,
    then the added rows. At the end there is either an ``index`` or a ``failure``.
    """

    def __init__(
        self,
        work: Path,
        base: Index,
        alive: npt.NDArray[np.uint8],
        added: list[Row],
        sample: Any,
        done: Callable[[Compaction], None],
    ) -> None:
        super().__init__(name="bittern-compaction", daemon=True)
        self.work = work
        self.kept = np.flatnonzero(alive) if len(alive) else np.arange(len(base))
        self.added = added
        self.index: Index | None = None
        self.failure: Exception | None = None
        self._base = base
        self._sample = sample
        self._done = done
        self._child = Child()

    def run(self) -> None:
        """Make the new snapshot, then call ``done``."""
        self.make()
        self._done(self)

    def make(self) -> None:
        """Run the child and open what it wrote. O(subscriptions), seconds."""
        try:
            self._hand_over()
            self._child.run(self.work)
            self.index = Index.open(self.work / "result")
        except Exception as failure:  # noqa: BLE001  the owner decides what to do with it
            self.failure = failure

    def end(self, seconds: float) -> None:
        """Wait this long for it, then stop it; its result must not be used."""
        self.join(seconds)
        if self.is_alive():
            self._child.stop()
            self.join(seconds)

    def _hand_over(self) -> None:
        path, base, snapshot_id = self._base.path, self._base, self._base.id
        if path is None or not _holds(path, base):
            path = self.work / "base"
            snapshot_id = base.write(path)
        np.save(self.work / "kept.npy", self.kept, allow_pickle=False)
        told = {b"base": os.fsencode(path.resolve()), b"id": str(snapshot_id).encode()}
        _write(self.work / "added.arrow", _table(self.added).replace_schema_metadata(told))
        try:
            _write(self.work / "sample.arrow", _sample_table(self._sample))
        except Exception:  # noqa: BLE001  events may be anything; the sample is only a help
            (self.work / "sample.arrow").unlink(missing_ok=True)


def _holds(path: Path, index: Index) -> bool:
    """Whether the snapshot in this folder is still the one that the index is mapped from."""
    try:
        return read_snapshot(path).id == index.id
    except SnapshotError:
        return False


def _table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([str(row.id) for row in rows], type=pa.large_string()),
            "is_integer": pa.array([isinstance(row.id, int) for row in rows], type=pa.bool_()),
            "text": pa.array([row.text for row in rows], type=pa.large_string()),
            "weight": pa.array([row.weight for row in rows], type=pa.float64()),
        }
    )


def _sample_table(events: Any) -> pa.Table:
    """Events of any form as a table; may raise anything if Arrow cannot hold them."""
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, str | Mapping):
        events = [events]
    if not isinstance(events, pa.Array | pa.ChunkedArray):
        events = pa.array(events)
    return pa.table({_EVENTS: events}).replace_schema_metadata(_IS_ARRAY)


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


# In the child


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()


def _read_sample(path: Path) -> Any:
    if not path.exists():
        return None
    table = _read(path)
    return table[_EVENTS] if table.schema.metadata == _IS_ARRAY else table


def _rows(
    base: Index, kept: npt.NDArray[np.int64], added: pa.Table
) -> Iterator[tuple[str | int, str, float | None]]:
    """Survivors, then added rows."""
    ids = base.all_ids.take(kept)
    texts = base.texts.take(pa.array(kept)).to_pylist()
    weights = [None] * len(kept) if base.weights is None else base.weights[kept].tolist()
    yield from zip(ids, texts, weights, strict=True)
    columns = (added[name].to_pylist() for name in ("id", "is_integer", "text", "weight"))
    for id_, is_integer, text, weight in zip(*columns, strict=True):
        yield int(id_) if is_integer else id_, text, weight


def main(work: Path) -> None:
    """Build the new snapshot; runs in the child."""
    if not (is_private(work) and is_private(work.parent)):
        raise CompactionError(
            f"{work} is not private to this user, so its content cannot be trusted"
        )
    added = _read(work / "added.arrow")
    kept = np.load(work / "kept.npy", allow_pickle=False)
    path = os.fsdecode(added.schema.metadata[b"base"])
    base = Index.open(path)
    if base.id != added.schema.metadata[b"id"].decode():  # positions would mean other subscriptions
        raise CompactionError(f"{path} was replaced while it was read")
    index = _build(base, kept, added, _read_sample(work / "sample.arrow"))
    index.save(work / "result")


def _build(base: Index, kept: npt.NDArray[np.int64], added: pa.Table, sample: Any) -> Index:
    strategy, options = base.subscriptions.rebuilt_as, base.subscriptions.options
    rows = _rows(base, kept, added)
    try:
        return Index.build(
            rows, sample=sample, strategy=strategy, parameters=options, functions=SPARK
        )
    except EventError:  # read as what Arrow made of them
        return _build(base, kept, added, None)
    except (SubscriptionError, OptionError):
        # Texts were checked when they came: the strategy cannot hold one of the added, or not all
        # of them together. Pivot can.
        return Index.build(_rows(base, kept, added), sample=sample, functions=SPARK)


def _end_with_the_parent() -> None:
    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with_the_parent()
    main(Path(sys.argv[1]))
