"""Processes that are measured: ``bittern serve``, and Lucene's Monitor behind an HTTP server."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

ROOT = Path(__file__).parents[2]
#: Where scripts/monitor.sh puts Lucene's Monitor.
BUILT = Path(".monitor")
_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE = 600.0


class Served:
    """A process that says ``listening on ADDRESS`` when it serves."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        began = time.perf_counter()
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=ROOT
            )
        self.address = self._said(log)
        self.seconds = time.perf_counter() - began

    def _said(self, log: Path) -> str:
        deadline = time.monotonic() + _PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            with log.open("rb") as said:
                for line in said:
                    if b"listening on " in line and line.endswith(b"\n"):
                        return line.decode().split()[-1]
            time.sleep(0.05)
        raise SystemExit(f"it does not listen: {log.read_text()[-2000:]}")

    @property
    def cpu_seconds(self) -> float:
        """The CPU time that it has taken so far."""
        told = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(told[11]) + int(told[12])) / _TICKS

    @property
    def memory_bytes(self) -> int:
        """What it has in memory now."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def close(self) -> None:
        """Let it end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def bittern(folder: Path, *options: str) -> Served:
    """``bittern serve`` with its defaults, its log in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "bittern.service.cli", "serve", "--folder", str(folder)]
    return Served([*command, "--port", "0", *options], folder / "log")


def load(subscriptions: pa.Table, folder: Path, database: str | None = None) -> float:
    """Put subscriptions into the catalog of a service; the seconds that it took."""
    from bittern.catalog.journal.places import DEFAULT, TenantPlaces

    began = time.perf_counter()
    with TenantPlaces(folder, database).create(DEFAULT) as catalog:
        catalog.load(subscriptions)
    return time.perf_counter() - began


def monitor(subscriptions: pa.Table, folder: Path) -> Served:
    """Lucene's Monitor with the same subscriptions, in the form that it reads."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "subscriptions"
    with file.open("w") as out:
        columns = (subscriptions[name].to_pylist() for name in ("id", "expression"))
        out.writelines(f"{id_}\t{text}\n" for id_, text in zip(*columns, strict=True))
    classes = f"{BUILT}:{BUILT}/*"
    command = ["java", "-Xmx2g", "-Dsun.net.httpserver.nodelay=true", "-cp", classes, "Front"]
    return Served([*command, str(file)], folder / "log")


@contextlib.contextmanager
def postgresql() -> Iterator[Any]:
    """The PostgreSQL server of the tests, or None where there is none."""
    sys.path.append(str(ROOT / "tests"))
    try:
        import postgres
    finally:
        sys.path.remove(str(ROOT / "tests"))
    programs = postgres.binaries()
    if programs is None:
        yield None
        return
    whom = postgres.as_whom()
    folder = postgres.reachable_folder(whom)
    try:
        server = postgres.Server(programs, folder, whom)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
