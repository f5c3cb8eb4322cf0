"""What keeps tests steady on a busy machine.

Nothing that a test asserts depends on how fast something is: tests wait for conditions, with a
limit that is met only when something hangs; streams take files in the order in which they came; and
ports that are chosen now are still free when a server takes them, many seconds later.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

#: Seconds until what must happen has happened, on the slowest machine that has a core for us.
PATIENCE = 300
#: Ports that systems, as they come, do not give to those who ask for any.
_OWN_PORTS = range(15_000, 32_000)
_EARLY = 10**18  # a time in 2001, in nanoseconds


class Limit:
    """Seconds that something may take: they pass as slowly as processes wait for the cores."""

    def __init__(self, seconds: float) -> None:
        self._left, self._seen = seconds, time.monotonic()

    def left(self) -> float:
        """How many are left, or 0."""
        now, crowd = time.monotonic(), os.getloadavg()[0] / (os.cpu_count() or 1)
        self._left -= (now - self._seen) / max(1.0, crowd)
        self._seen = now
        return max(0.0, self._left)


def wait_until(happened: Callable[[], bool], look: Callable[[], object] = lambda: None) -> None:
    """Wait for what must happen; ``look`` raises when it cannot happen any more."""
    limit = Limit(PATIENCE)
    while not happened():
        look()
        assert limit.left(), "it never happens"
        time.sleep(0.01)


def come(partial: Path, place: Path) -> None:
    """Give a file its place in a stream's folder, as the youngest there.

    Spark takes files by their age in milliseconds, and those of one age in any order.
    """
    ages = [file.stat().st_mtime_ns for file in place.parent.glob("[!.]*")]
    age = max(ages, default=_EARLY) + 10**9
    os.utime(partial, ns=(age, age))
    partial.rename(place)


def free_port() -> int:
    """A port of 127.0.0.1 that is free, and will be: those who ask for any are given others."""
    while True:
        port = random.SystemRandom().choice(_OWN_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def said_here(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What this thread has logged: threads of earlier tests may still say something."""
    here = threading.get_ident()
    return [record.getMessage() for record in caplog.records if record.thread == here]


def listens(port: int) -> bool:
    """Does somebody take connections at this port of 127.0.0.1?"""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE):
        return True
    return False
