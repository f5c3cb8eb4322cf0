"""Writers of snapshots and documents that are killed: what was there is there, or what is new."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bittern.engine.snapshot.folder import write_snapshot
from bittern.errors import HistoryError
from bittern.history.documents.documents import Documents
from document_rows import expected, found
from dying import die_before, forks_of
from snapshot_arrays import holds

# ------------------------------------------------------------------ snapshots

OLD = {"ids": np.arange(1000, dtype=np.int32), "low": np.linspace(0, 1, 7)}
NEW = {"ids": np.arange(5, dtype=np.int32), "flags": np.array([True, False])}


def write_and_die(path: str, last: int) -> None:
    """Replace the snapshot, killed just before the ``last``-th operation on the file system."""
    die_before(last, ("write", "fsync", "rename", "mkdir", "unlink", "rmdir"))
    write_snapshot(path, NEW, {})


def test_killed_at_any_point_the_old_or_the_new_snapshot_is_there(tmp_path: Path) -> None:
    path = tmp_path / "s"
    outcomes: list[str] = []
    with forks_of(write_and_die) as writer:
        for last in range(1, 100):
            write_snapshot(path, OLD, {})
            ended = writer(str(path), last)
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            outcomes.append("old" if holds(path, OLD) else "new")
            assert outcomes[-1] == "old" or holds(path, NEW)
            write_snapshot(path, OLD, {})
            assert [entry.name for entry in tmp_path.iterdir()] == ["s"], "litter was not cleaned"
    assert holds(path, NEW)
    assert len(outcomes) > 15
    assert outcomes == sorted(outcomes, reverse=True)
    assert set(outcomes) == {"old", "new"}


# ------------------------------------------------------------------ documents

WRITER = """
import sys
from bittern.history.documents.documents import Documents

documents = Documents(sys.argv[1])
while True:
    end = documents.append([{"i": documents.end + k, "s": "x" * 2_000} for k in range(3)]) + 3
    if end % 5 == 0 and end > 30:
        documents.expire(end - 20)
    print(documents.first, end, flush=True)
"""


def test_nothing_that_was_told_is_lost_when_a_writer_is_killed(tmp_path: Path) -> None:
    folder, told = tmp_path / "history", (0, 0)
    for i in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(7 * i + 1):
                told = tuple(map(int, writer.stdout.readline().split()))
            if i == 1:
                with pytest.raises(HistoryError, match=r"in use, by this or another process"):
                    Documents(folder)
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                told = tuple(map(int, line.split()))
        with Documents(folder) as documents:
            assert documents.first >= told[0]
            assert told[1] <= documents.end <= told[1] + 3
            assert documents.end % 3 == 0
            live = [{"i": number} for number in range(documents.first, documents.end)]
            assert found(documents, ["i"]) == expected(live, ["i"])
            documents.check()
