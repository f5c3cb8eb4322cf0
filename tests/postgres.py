"""A real PostgreSQL on loopback for the run, from Debian's packages.

The fixture ``postgres`` gives a ``Server``: started when the first test asks for it, stopped by its
process id at the end. It listens on 127.0.0.1 alone, with a password, and its data are in a
temporary folder. PostgreSQL refuses to run as root, so root runs it as ``postgres`` or ``nobody``.

Where there is no PostgreSQL the tests skip, and the reason is printed by ``pytest -ra``. On Debian
and Ubuntu: ``apt-get install -y postgresql``.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from steady import PATIENCE, free_port

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # tests kill processes, they do not cut the power
    "max_connections": "100",
    "shared_buffers": "32MB",
    "log_min_messages": "warning",
}


def binaries() -> Path | None:
    """The folder of initdb and postgres, of the newest version there is."""
    found = [each.parent for each in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found.sort(key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("pg_ctl")
    if on_path:
        found.insert(0, Path(on_path).resolve().parent)
    return found[-1] if found else None


def as_whom() -> dict[str, Any]:
    """For ``subprocess``: an unprivileged user, if this is root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("neither the user postgres nor nobody is there")


def reachable_folder(whom: dict[str, Any], roots: Sequence[Path] | None = None) -> Path:
    """A new folder of the user's, in the first of ``roots`` that the user can enter.

    ``TMPDIR`` comes first; it may be a folder that only root may enter, so the system's come next.
    """
    if roots is None:
        roots = [Path(each) for each in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")]
    for root in roots:
        if not root.is_dir():
            continue
        folder = Path(tempfile.mkdtemp(prefix="bittern-pg-", dir=root))
        if not whom:
            return folder
        os.chown(folder, whom["user"], whom["group"])
        if subprocess.run(["test", "-x", folder], check=False, **whom).returncode == 0:
            return folder
        folder.rmdir()
    raise RuntimeError(f"the server's user can enter none of {', '.join(map(str, roots))}")


class Server:
    """One PostgreSQL server, its data in ``folder``."""

    def __init__(self, programs: Path, folder: Path, whom: dict[str, Any]) -> None:
        self._programs = programs
        self._folder = folder
        self._whom = whom
        self._password = secrets.token_hex(8)
        self.port = free_port()
        password = folder / "password"
        password.write_text(self._password)
        password.chmod(0o644)  # in a folder that only the server's user can enter
        options = f"--pgdata={folder}/data --pwfile={password} --username=bittern --locale=C"
        options += " --auth=scram-sha-256 --encoding=UTF8 --no-sync"
        subprocess.run(
            [
                programs / "initdb",
                f"--pgdata={folder}/data",
                f"--pwfile={password}",
                *options.split(),
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            **self._whom,
        )
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://bittern:{self._password}@127.0.0.1:{self.port}/{database}"

    def new_url(self) -> str:
        """The URL of an empty schema, which is made in an instant; a database takes longer."""
        name = f"b{secrets.token_hex(6)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def start(self) -> None:
        """Start, and wait until it answers; tried again while a killed one's processes end."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with (self._folder / "log").open("ab") as log:
                settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
                settings += [f"--port={self.port}", "--unix_socket_directories="]
                self.process = subprocess.Popen(
                    [self._programs / "postgres", "-D", self._folder / "data", *settings],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                    start_new_session=True,  # Ctrl-C is for pytest, which then stops it
                    **self._whom,
                )
            while self.process.poll() is None:
                if self._answers():
                    return
                if time.monotonic() > deadline:
                    self.kill()
                    raise RuntimeError(self._said("does not answer"))
                time.sleep(0.05)
            if time.monotonic() > deadline:
                raise RuntimeError(self._said("does not start"))
            time.sleep(0.2)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=PATIENCE).close()
        except psycopg.OperationalError:
            return False
        return True

    def _said(self, what: str) -> str:
        return f"PostgreSQL {what}: {(self._folder / 'log').read_text()[-2000:]}"

    def stop(self) -> None:
        """End all sessions and itself at once; nothing need be tidy, ``start`` recovers."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL, as a crash; what was committed is there after ``start``."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def restart(self) -> None:
        """Crash and recover."""
        self.kill()
        self.start()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Start the one PostgreSQL server of the run."""
    programs = binaries()
    if programs is None:
        pytest.skip("NO POSTGRESQL: apt-get install -y postgresql")
    whom = as_whom()
    folder = reachable_folder(whom)
    try:
        server = Server(programs, folder, whom)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
