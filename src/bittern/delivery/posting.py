"""One POST to an address that was checked, with one deadline for all of it.

::

    resolve ─ check ─ connect ─ TLS ─ send ─ status line and headers │ body: not read
    └────────────────────── seconds, in all ───────────────────────┘

A time limit of the socket starts again with every byte, so an endpoint that sends one every few
seconds would hold a connection forever. Here every wait gets only what is left of the whole. Only
the resolver keeps its own time, which the host's settings bound.

The connection goes to one of the addresses that were checked, and never through a proxy; the
certificate must be for the name in the URL. A redirect is an answer like any other: following it
would deliver to an address that is in no subscription. Only the status and ``Retry-After`` of an
answer are used, because a stranger chose its content.

Request::

    POST /a?b=1 HTTP/1.1
    Host: hooks.example.com
    Idempotency-Key: 5f1d...                    the same whenever this request is made again
    Bittern-Signature: sha256=91b0...           with a secret: HMAC of the key, a dot and the body

Cost: a connection for each request.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPResponse
from typing import Any, NamedTuple

from bittern.delivery.addresses import Address, Network, Target, resolve
from bittern.errors import OptionError

SIGNATURE = "Bittern-Signature"
KEY = "Idempotency-Key"
_OWN = {
    name.lower()
    for name in (
        "Host",
        "Connection",
        "Content-Length",
        "Content-Type",
        "Expect",
        "Transfer-Encoding",
        "Upgrade",
        KEY,
        SIGNATURE,
    )
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~]+(?:[ \t]+[!-~]+)*")


@dataclass(frozen=True)
class Request:
    """What one POST carries."""

    subscriber: str | None
    url: str
    key: str
    body: bytes
    matches: int


class UnreachableError(OSError):
    """A host accepted no connection, which says something about all its endpoints."""


class Reply(NamedTuple):
    """What came back."""

    status: int
    retry_after: float  # seconds; 0 if it does not say


def check_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Check the headers for every request. Messages name the header and never its value."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise OptionError(f"headers: {name!r} is not the name of a header")
        if name.lower() in _OWN:
            raise OptionError(f"headers: {name} is set by the webhook itself: leave it out")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise OptionError(f"headers: the value of {name} is not printable ASCII text")
    return tuple(headers.items())


class Post:
    """Makes requests. Its secrets are in no message and no ``repr``."""

    def __init__(
        self,
        private: Sequence[Network] = (),
        headers: Sequence[tuple[str, str]] = (),
        secret: bytes | None = None,
    ) -> None:
        self._private = private
        self._secret = secret
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self._tls = ssl.create_default_context()

    def __call__(self, target: Target, request: Request, seconds: float) -> Reply:
        """Make a request; RefusedError, OSError or HTTPException if there is no answer in time.

        UnreachableError, with the reason as its cause, if there was not even a connection.
        """
        deadline = time.monotonic() + seconds
        try:
            addresses = resolve(target, self._private)
            connection = _connect(addresses, target.port, deadline)
        except OSError as error:
            raise UnreachableError from error
        with connection as plain:
            plain.settimeout(_left(deadline))
            if target.scheme == "http":
                return self._exchange(plain, target, request, deadline)
            with self._tls.wrap_socket(plain, server_hostname=target.host) as safe:
                return self._exchange(safe, target, request, deadline)

    def _exchange(
        self, connection: socket.socket, target: Target, request: Request, deadline: float
    ) -> Reply:
        unsent = memoryview(self._head(target, request) + request.body)
        while unsent:
            connection.settimeout(_left(deadline))
            unsent = unsent[connection.send(unsent) :]
        response = HTTPResponse(_Answering(connection, deadline), method="POST")  # type: ignore[arg-type]
        with response:
            response.begin()
            return Reply(response.status, _seconds(response.headers.get("Retry-After")))

    def _head(self, target: Target, request: Request) -> bytes:
        signature = ""
        if self._secret is not None:
            signed = request.key.encode() + b"." + request.body
            digest = hmac.new(self._secret, signed, hashlib.sha256).hexdigest()
            signature = f"{SIGNATURE}: sha256={digest}\r\n"
        return (
            f"POST {target.path} HTTP/1.1\r\n"
            f"Host: {target.authority}\r\n"
            f"Connection: close\r\n"
            f"Content-Type: application/json\r\n"
            f"Content-Length: {len(request.body)}\r\n"
            f"{KEY}: {request.key}\r\n"
            f"{signature}{self._headers}\r\n"
        ).encode("ascii")


class _Answering(io.RawIOBase):
    """What a socket receives before a deadline, in the two forms that ``HTTPResponse`` asks for."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(_left(self._deadline))
        return self._connection.recv_into(buffer)


def _connect(addresses: Sequence[Address], port: int, deadline: float) -> socket.socket:
    """A connection to the first address that takes one; each gets its share of the time."""
    failure: OSError | None = None
    for done, address in enumerate(addresses):
        share = _left(deadline) / (len(addresses) - done)
        try:
            return socket.create_connection((str(address), port), share)
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _seconds(retry_after: str | None) -> float:
    """How long a ``Retry-After`` asks to wait: seconds, or a date; 0 if it is neither."""
    if retry_after is None:
        return 0.0
    if re.fullmatch(r"[0-9]{1,9}", retry_after.strip()):
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
        return max(0.0, (until.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return 0.0
