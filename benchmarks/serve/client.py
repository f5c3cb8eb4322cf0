"""A client that costs little: requests over connections that stay open, and what each took.

Two ways to ask, since they tell different things::

    closed   each of c connections asks again when it is answered        how many a second
    paced    a request each 1/r seconds, whether others are answered     how long each waits
             or not; its time counts from when it was due                at this rate

A client that waits for an answer before it asks again does not see what a pause of the service
costs all those who would have asked meanwhile; the second does.
"""

from __future__ import annotations

import asyncio
import collections
import gc
import itertools
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvloop

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Sequence

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Answered(asyncio.Protocol):
    """A connection with one request under way at a time."""

    def __init__(self) -> None:
        self._got = bytearray()
        self._head = b""
        self._begin = self._whole = 0  # where the body begins and ends, once that is known
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """It is open."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed: whoever waits hears of it."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed by the service"))

    def data_received(self, data: bytes) -> None:
        """A part of an answer; the body goes to whoever waits when all of it is there."""
        self._got += data
        if not self._whole:
            end = self._got.find(_END)
            if end < 0:
                return
            self._head = bytes(self._got[:end]).lower()
            begin = self._head.find(_LENGTH) + len(_LENGTH)
            self._begin = end + len(_END)
            self._whole = self._begin + int(self._head[begin:].split(b"\r\n", 1)[0])
        if len(self._got) < self._whole:
            return
        body = bytes(self._got[self._begin :])
        self._got.clear()
        self._whole = 0
        assert self._answer is not None
        if not self._head.startswith(b"http/1.1 2"):
            self._answer.set_exception(RuntimeError(f"{self._head[:60]!r} {body[:300]!r}"))
        else:
            self._answer.set_result(body)

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """Send a request; its answer's body comes later."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close it."""
        self._transport.close()


def request(
    address: str, body: bytes, *, path: str = "/v1/match", kind: str = "application/json"
) -> bytes:
    """A POST, as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def connect(address: str) -> Answered:
    """Open a connection."""
    where = urlsplit(address)
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(Answered, where.hostname, where.port)
    return made


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it in an event loop of its own, without collecting garbage meanwhile."""
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(work)
    finally:
        gc.enable()


async def closed(
    address: str, requests: Sequence[bytes], *, connections: int, seconds: float
) -> tuple[float, list[float]]:
    """Requests a second, and the seconds of each."""
    taken: list[float] = []
    to_send = itertools.cycle(requests)
    opened = [await connect(address) for _ in range(connections)]
    begin = perf_counter()

    async def ask_on(own: Answered) -> None:
        while (sent := perf_counter()) - begin < seconds:
            await own.ask(next(to_send))
            taken.append(perf_counter() - sent)

    await asyncio.gather(*map(ask_on, opened))
    elapsed = perf_counter() - begin
    for each in opened:
        each.close()
    return len(taken) / elapsed, taken


async def paced(
    address: str, requests: Sequence[bytes], *, connections: int, seconds: float, rate: float
) -> tuple[float, list[float]]:
    """Requests a second that were answered, and the seconds of each since it was due."""
    taken: list[float] = []
    to_send = itertools.cycle(requests)
    opened = [await connect(address) for _ in range(connections)]
    waiting: collections.deque[float] = collections.deque()
    come = asyncio.Semaphore(0)
    begin = perf_counter()
    dues: Iterator[float] = (begin + number / rate for number in range(int(rate * seconds)))

    async def ask_on(own: Answered) -> None:
        while True:
            await come.acquire()
            if not waiting:
                return
            due = waiting.popleft()
            await own.ask(next(to_send))
            taken.append(perf_counter() - due)

    asking = [asyncio.ensure_future(ask_on(each)) for each in opened]
    for due in dues:
        if (left := due - perf_counter()) > 0:
            await asyncio.sleep(left)
        waiting.append(due)
        come.release()
    for _ in asking:
        come.release()
    await asyncio.gather(*asking)
    elapsed = perf_counter() - begin
    for each in opened:
        each.close()
    return len(taken) / elapsed, taken


async def whole(address: str, requests: Sequence[bytes]) -> list[bytes]:
    """The bodies of the answers to requests that are made one after the other."""
    opened = await connect(address)
    bodies = [await opened.ask(each) for each in requests]
    opened.close()
    return bodies


class Stream(asyncio.Protocol):
    """An open stream of server-sent events: when it came, and when each event did."""

    def __init__(self) -> None:
        self.begun = asyncio.get_running_loop().create_future()
        self.times: list[float] = []
        self._tail = b""

    def data_received(self, data: bytes) -> None:
        """Something has come: the head, or events."""
        now = perf_counter()
        *whole_lines, self._tail = (self._tail + data).split(b"\n")
        self.times += [now for line in whole_lines if line.startswith(b"data:")]
        if not self.begun.done() and any(line.startswith(b": bittern") for line in whole_lines):
            self.begun.set_result(None)


async def listen(address: str, paths: Sequence[str]) -> list[tuple[Any, Stream]]:
    """Open a stream for each path; returns when all have begun."""
    where = urlsplit(address)
    loop = asyncio.get_running_loop()
    opened = []
    for path in paths:
        transport, stream = await loop.create_connection(Stream, where.hostname, where.port)
        head = f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAccept: text/event-stream\r\n\r\n"
        transport.write(head.encode())
        opened.append((transport, stream))
    await asyncio.wait_for(asyncio.gather(*(stream.begun for _, stream in opened)), 300)
    return opened
