"""Endpoints on loopback that behave as they are told, and remember what arrived."""

from __future__ import annotations

import json
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

#: Longest that a handler stands still for, if nobody ends the receiver before.
PATIENCE = 30

LOOPBACK = ("127.0.0.0/8", "::1/128")


class Arrived(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.body)


Behaviour = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Reads a request, notes it, and does what the path is told to do next."""

    server: Receiver
    timeout = PATIENCE

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.lock:
            self.server.arrived.append(Arrived(self.path, headers, body))
            told = self.server.told[self.path]
            behaviour = told.pop(0) if len(told) > 1 else told[0] if told else answer(200)
        behaviour(self)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class Receiver(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.arrived: list[Arrived] = []
        #: By path, what to do with one request after the other; the last for all that follow.
        self.told: dict[str, list[Behaviour]] = defaultdict(list)
        self.scheme = "http" if tls is None else "https"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the other side hung up, as it should

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.server_port}{path}"

    def at(self, path: str) -> list[Arrived]:
        with self.lock:
            return [each for each in self.arrived if each.path == path]


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def raw(*pieces: bytes) -> Behaviour:
    """These bytes, and then nothing: the connection is closed."""

    def behave(handler: Handler) -> None:
        for piece in pieces:
            handler.wfile.write(piece)

    return behave


def silence(handler: Handler) -> None:
    handler.server.ended.wait(PATIENCE)


def drip(handler: Handler) -> None:
    """Headers without end, a byte at a time, faster than a socket's own time limit runs out."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(PATIENCE * 100):
        if handler.server.ended.wait(0.01):
            return
        handler.wfile.write(b"x")


def flood(handler: Handler) -> None:
    """An answer, and a body that does not end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not handler.server.ended.is_set():
        handler.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def endless_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.server.ended.is_set():
        handler.wfile.write(b"X-More: " + b"x" * 60000 + b"\r\n")
