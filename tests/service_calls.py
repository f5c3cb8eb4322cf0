"""Calls of a service in this process, without a socket: requests, and streams that stay open.

``running(settings)`` starts an application in an event loop of its own thread, and ends it. Its
``call`` is a request with its answer; ``listen`` is a stream, from which a test takes one event
after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from steady import PATIENCE

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


@dataclass
class Answer:
    """The answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def kind(self) -> str:
        """The kind of a problem."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        told = self.json()
        assert told["status"] == self.status
        return told["type"].removeprefix("urn:bittern:problem:")


class Calls:
    """A running application."""

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self.state = app.state.service
        self._loop = loop

    def soon(self, work: Any) -> Future:
        """Begin something in the application's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def begin(self, method: str, path: str, body: Any = None, **headers: str) -> Future:
        """Begin a request."""
        return self.soon(self._call(method, path, body, headers))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Make a request: a body that is not bytes is sent as JSON, a list of them as lines."""
        return self.begin(method, path, body, **headers).result(PATIENCE)

    def good(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Make a request that succeeds; what it is answered with."""
        answer = self.call(method, path, body, **headers)
        assert 200 <= answer.status < 300, (method, path, answer)
        return answer.json()

    def _scope(self, method: str, path: str, headers: dict[str, str]) -> dict[str, Any]:
        parts = urlsplit(path)
        sent = {"host": "localhost:8080", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in sent.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8080),
        }

    async def _call(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
        content = b""
        if isinstance(body, bytes):
            content = body
        elif isinstance(body, list):
            content = b"\n".join(json.dumps(each).encode() for each in body)
            headers = {"content-type": NDJSON, **headers}
        elif body is not None:
            content = json.dumps(body).encode()
            headers = {"content-type": "application/json", **headers}
        sent: list[Any] = []
        incoming = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            if incoming:
                return incoming.pop()
            await asyncio.Event().wait()  # the caller stays
            return {}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(self._scope(method, path, headers), receive, send)
        start, *parts = sent
        told = {key.decode().lower(): value.decode() for key, value in start["headers"]}
        return Answer(start["status"], told, b"".join(part.get("body", b"") for part in parts))

    @contextlib.contextmanager
    def listen(self, path: str, **headers: str) -> Iterator[Listening]:
        """Open a stream of server-sent events."""
        stream = Listening()
        scope = self._scope("GET", path, {"accept": "text/event-stream", **headers})

        async def serve() -> None:
            gone = asyncio.Event()
            stream.leave = lambda: self._loop.call_soon_threadsafe(gone.set)

            async def receive() -> Any:
                await gone.wait()
                return {"type": "http.disconnect"}

            await self.app(scope, receive, stream.send)

        ended = self.soon(serve())
        ended.add_done_callback(lambda _: stream.end())
        try:
            yield stream
        finally:
            stream.wait_for_start()
            stream.leave()
            ended.result(PATIENCE)


class Listening:
    """What has come in a stream."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._text = ""
        self._events: list[dict[str, str]] = []
        self.status = 0
        self.is_over = False
        self.leave: Any = None

    async def send(self, message: Any) -> None:
        with self._changed:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            self._text += message.get("body", b"").decode()
            *whole, self._text = self._text.split("\n\n")
            for block in whole:
                event: dict[str, str] = {}
                for line in block.split("\n"):
                    name, _, value = line.partition(": ")
                    event[name] = f"{event[name]}\n{value}" if name in event else value
                if "data" in event:
                    self._events.append(event)
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def wait_for_start(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.status or self.is_over, PATIENCE)

    def wait_for_end(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.is_over, PATIENCE)

    def take(self, n: int) -> list[dict[str, str]]:
        """The next events, when they have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._events) >= n, PATIENCE), self._events
            taken, self._events = self._events[:n], self._events[n:]
        return taken

    def numbers(self, n: int) -> list[int]:
        """The numbers of the next events."""
        return [int(event["id"]) for event in self.take(n)]


@contextlib.contextmanager
def running(settings: Any) -> Iterator[Calls]:
    """Start an application, and stop it."""
    from bittern.service.http.app import create_app

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="service")
    thread.start()
    try:
        app = asyncio.run_coroutine_threadsafe(_made(create_app, settings), loop).result(PATIENCE)
        context = app.router.lifespan_context(app)
        asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(PATIENCE)
        try:
            yield Calls(app, loop)
        finally:
            ending = context.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(ending, loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


async def _made(create_app: Any, settings: Any) -> Any:
    return create_app(settings)
