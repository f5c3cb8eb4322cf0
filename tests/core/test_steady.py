"""What tests rely on to be steady."""

from __future__ import annotations

import gc
import os
import pwd
import socket
from pathlib import Path

import pytest

from postgres import reachable_folder
from steady import Limit, come, free_port, listens


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


def test_a_limit_passes_as_slowly_as_processes_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, load = [0.0], [0.5]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    limit = Limit(100)
    for busy, passes, left in ((0.5, 10, 90), (2, 10, 80), (8, 10, 77.5), (20, 700, 7.5)):
        load[0], clock[0] = busy, clock[0] + passes
        assert limit.left() == left
    load[0], clock[0] = 1, clock[0] + 8
    assert limit.left() == 0


def test_only_what_was_collected_is_never_garbage() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts servers as somebody else")
def test_a_server_of_another_user_gets_a_folder_that_it_can_enter(tmp_path: Path) -> None:
    """Though ``TMPDIR`` is a folder that nobody but root may enter."""
    private, public = tmp_path / "private", Path("/tmp")
    private.mkdir(mode=0o700)
    nobody = pwd.getpwnam("nobody")
    whom = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    folder = reachable_folder(whom, [private, tmp_path / "none", public])
    try:
        assert folder.parent == public
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (nobody.pw_uid, 0o700)
    finally:
        folder.rmdir()
    assert not list(private.iterdir())
    with pytest.raises(RuntimeError, match=f"can enter none of {private}"):
        reachable_folder(whom, [private])
    assert reachable_folder({}, [private]).parent == private
