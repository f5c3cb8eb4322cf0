"""Compaction: a snapshot and what changed since become a new snapshot, in a process of its own.

Reading a million texts keeps an interpreter busy for seconds; in the matching process it would take
the interpreter lock from every reader. So the work is handed over in a folder::

    base/           the snapshot (or the index's own folder, where it is saved already)
    changes.pickle  where the base is, the positions still alive, and the rows added since
    sample.pickle   some recent events, for the choice of pivots
    result/         the new snapshot, written by the child

The new snapshot holds the survivors in their old order, then the added rows.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.engine.index import Index
from bittern.engine.snapshot import read_snapshot
from bittern.errors import CompactionError, OptionError, SnapshotError, SubscriptionError

Row = tuple[str | int, str, float | None]


class Compaction(threading.Thread):
    """One compaction on its way; calls ``done`` with itself at the end, whatever happened.

    ``kept`` are the positions in the base that survive; the new index holds them in this order,
    then the added rows. In the end there is an ``index``, or a ``failure``.
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
        self.index: Index | None = None
        self.failure: Exception | None = None
        self._base = base
        self._added = added
        self._sample = sample
        self._done = done

    def run(self) -> None:
        """Run the child and open what it wrote. O(catalog), seconds."""
        try:
            self._hand_over()
            _run_child(self.work)
            self.index = Index.open(self.work / "result")
        except Exception as failure:  # noqa: BLE001  the owner decides what to do with it
            self.failure = failure
        self._done(self)

    def _hand_over(self) -> None:
        self.work.mkdir(parents=True)
        path, base, snapshot_id = self._base.path, self._base, self._base.id
        if path is None or not _holds(path, base):
            path = self.work / "base"
            snapshot_id = base.write(path)
        changes = {
            "base": str(path.resolve()),
            "id": snapshot_id,
            "kept": self.kept,
            "added": self._added,
        }
        with (self.work / "changes.pickle").open("wb") as file:
            pickle.dump(changes, file)
        try:
            sample = pickle.dumps(self._sample)
        except Exception:  # noqa: BLE001  events may be anything; the sample is only a help
            sample = pickle.dumps(None)
        (self.work / "sample.pickle").write_bytes(sample)


def _holds(path: Path, index: Index) -> bool:
    """Is the snapshot in this folder still the one that the index is mapped from?"""
    try:
        return read_snapshot(path).id == index.id
    except SnapshotError:
        return False


def _run_child(work: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    child = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "bittern.engine.compact", str(work)],
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if child.returncode:
        last = child.stderr.strip().splitlines()[-1:] or [f"exit code {child.returncode}"]
        raise CompactionError(f"the compacting process failed: {last[0]}")


def _rows(base: Index, kept: npt.NDArray[np.int64], added: list[Row]) -> Iterator[Row]:
    """Survivors, then added rows."""
    ids = base.all_ids.take(kept)
    texts = base.texts.take(pa.array(kept)).to_pylist()
    weights = [None] * len(kept) if base.weights is None else base.weights[kept].tolist()
    yield from zip(ids, texts, weights, strict=True)
    yield from added


def main(work: Path) -> None:
    """Build the new snapshot; runs in the child."""
    with (work / "changes.pickle").open("rb") as file:
        changes = pickle.load(file)  # noqa: S301  written by the parent, in its own folder
    try:
        sample = pickle.loads((work / "sample.pickle").read_bytes())  # noqa: S301
    except Exception:  # noqa: BLE001  events of a class that this process does not know
        sample = None
    base = Index.open(changes["base"])
    if base.id != changes["id"]:  # positions would mean other subscriptions
        raise CompactionError(f"{changes['base']} was replaced while it was read")
    rows = _rows(base, changes["kept"], changes["added"])
    strategy, options = base.subscriptions.name, base.subscriptions.options
    try:
        index = Index.build(rows, sample=sample, strategy=strategy, parameters=options)
    except (SubscriptionError, OptionError):
        # Texts were checked when they came: the strategy cannot hold one of the added, or not all
        # of them together. Pivot can.
        rows = _rows(base, changes["kept"], changes["added"])
        index = Index.build(rows, sample=sample)
    index.save(work / "result")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
