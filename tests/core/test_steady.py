"""What tests rely on to be steady."""

from __future__ import annotations

import gc
import os
import pwd
import socket
from pathlib import Path

import pytest

from postgres import reachable_folder
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
