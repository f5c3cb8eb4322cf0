"""The temporary folder of a live matcher: gone when its maker is, whatever interrupts that."""

from __future__ import annotations

import os
import tempfile

from bittern.engine.live.work_folder import WorkFolder
from interrupts import each_fault


def test_an_interrupted_beginning_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def remove(made: list[WorkFolder]) -> None:
        for each in made:
            each.remove()

    for fault in each_fault(
        list, lambda made: made.append(WorkFolder()), unmake=remove, moments=1000
    ):
        assert len(list(tmp_path.iterdir())) == len(fault.subject), str(fault)


def test_what_is_no_folder_is_not_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pipe = tmp_path / "bittern-live-pipe"  # opening one waits for a writer
    os.mkfifo(pipe)
    os.utime(pipe, (0, 0))
    WorkFolder().remove()
    assert pipe.exists()
