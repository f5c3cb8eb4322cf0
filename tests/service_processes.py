"""Services in processes of their own, on loopback, that tests start, call and kill."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service_calls import NDJSON
from steady import PATIENCE

Refused = (OSError, http.client.HTTPException)


class Process:
    """``bittern serve`` in a process."""

    def __init__(self, *options: str, **environment: str) -> None:
        command = [sys.executable, "-m", "bittern.service.cli", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(
            [*command, "--no-console", "--log", "error"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self.said: list[str] = []
        addresses: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in self.process.stderr:
                self.said.append(line.decode())
                if "listening on" in self.said[-1]:
                    addresses.put(self.said[-1].split()[-1].removeprefix("http://"))
            addresses.put("")

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        self.address = addresses.get(timeout=PATIENCE)
        assert self.address, self.said

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=PATIENCE)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """A request: its status and its answer; ``Refused`` if the process dies meanwhile."""
        with contextlib.closing(self.connect()) as connection:
            return call(connection, method, path, body, **headers)

    def good(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        status, told = self.call(method, path, body, **headers)
        assert 200 <= status < 300, (method, path, status, told)
        return told

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end: the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stderr.close()
        return code


def call(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    content = None
    if isinstance(body, list):
        content = b"\n".join(json.dumps(each).encode() for each in body)
        headers = {"content-type": NDJSON, **headers}
    elif body is not None:
        content = json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, content, sent)
    answer = connection.getresponse()
    told = answer.read()
    return answer.status, json.loads(told) if told else None


@contextlib.contextmanager
def serving(*options: str, **environment: str) -> Iterator[Process]:
    process = Process(*options, **environment)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.kill()


def events_of(process: Process, path: str, **headers: str) -> Iterator[dict[str, Any]]:
    """The data of a stream's events, until the stream ends or breaks."""
    with contextlib.closing(process.connect()) as connection, contextlib.suppress(*Refused):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers={"Accept": "text/event-stream", **sent})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def in_folder(folder: Path) -> tuple[str, str]:
    return "--folder", str(folder)
