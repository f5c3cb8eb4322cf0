"""Every request comes in here: who asks, how fast; and what goes out gets its headers and its line.

::

    request ─ caller ─ rate ─┬─ routing ─ handler ─┬─ answer with security headers ─ metrics, a line
                             └─ one event: match ──┘                                in the log

Pages get a strict content policy: scripts, styles and pictures of this service alone, none inline,
and no page of another site may frame them. CORS is off: no header allows it.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser

from bittern.service.http.access import COOKIE, Caller, identified
from bittern.service.http.matching import answer_one, is_one
from bittern.service.http.problems import Problem, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bittern.service.http.state import ServiceState

logger = logging.getLogger("bittern.service.requests")
failures = logging.getLogger("bittern.service")

#: Paths that need no caller.
_OPEN = {"/healthz", "/readyz"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", _POLICY.encode()),
]


class Told(dict[str, Any]):
    """A message of the log with several parts, which a log of JSON has as they are."""

    def __str__(self) -> str:
        return json.dumps(self)


class Entrance:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, state: ServiceState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        is_begun = False

        async def sending(message: Message) -> None:
            nonlocal status, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        caller = await self._caller(scope)
        scope["bittern_caller"] = caller
        try:
            if is_one(scope):
                await (await answer_one(Request(scope, receive)))(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        except Exception as error:
            found = problem_of(error) or _failure(scope)
            if is_begun:
                raise
            await found.response()(scope, receive, sending)
        finally:
            self._note(scope, caller, status, time.perf_counter() - started)

    async def _caller(self, scope: Scope) -> Caller | Problem | None:
        """Who asks; a problem if that is not known, which is told where it matters."""
        if scope["path"] in _OPEN:
            return None
        headers = Headers(scope=scope)
        cookies = headers.get("cookie")
        cookie = cookie_parser(cookies).get(COOKIE) if cookies else None
        try:
            caller = await identified(self._state, headers, cookie)
            rate = caller.limit("rate")
            if rate is not None:
                name = "" if caller.token is None else caller.token.id
                caller.tenant.buckets.take(name, rate)
        except Exception as error:  # noqa: BLE001  told by the handler
            return problem_of(error) or _failure(scope)
        return caller

    def _note(self, scope: Scope, caller: Any, status: int, seconds: float) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "other")
        metrics = self._state.metrics
        metrics.requests.labels(scope["method"] if route else "other", path, status).inc()
        metrics.seconds.labels(path).observe(seconds)
        if logger.isEnabledFor(logging.INFO):
            told = Told(
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(seconds * 1000, 2),
                tenant=caller.tenant.name if isinstance(caller, Caller) else None,
                by=caller.name if isinstance(caller, Caller) else None,
            )
            logger.info(told)


def _failure(scope: Scope) -> Problem:
    """Our own failure: the caller gets a number, and the log has the rest."""
    name = secrets.token_hex(8)
    failures.exception("request %s failed: %s %s", name, scope["method"], scope["path"])
    return Problem(500, "failure", f"this is a mistake of the service; its log has it as {name}")
