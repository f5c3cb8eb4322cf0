"""What tests rely on to be steady."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

from steady import come, free_port, listens


def test_files_come_one_after_the_other(tmp_path: Path) -> None:
    """However soon, and whatever they are called: by milliseconds none is as old as another."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    for name in "cabed":
        (folder / ".partial").write_text(name)
        come(folder / ".partial", folder / name)
    by_age = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns // 1_000_000)
    assert [file.name for file in by_age] == list("cabed")
    assert len({file.stat().st_mtime_ns // 1_000_000 for file in by_age}) == 5


def test_a_free_port_can_be_taken() -> None:
    port = free_port()
    assert not listens(port)
    with socket.create_server(("127.0.0.1", port)):
        assert listens(port)


def test_only_what_was_collected_is_never_garbage() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
