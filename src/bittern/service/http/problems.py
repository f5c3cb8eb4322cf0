"""What is wrong, as JSON in one shape (RFC 9457)::

    {"type": "urn:bittern:problem:bad-subscription",
     "title": "Bad subscription", "status": 422, "detail": "1 subscription is not valid: ...",
     "errors": [{"id": "s1", "position": 7, "message": "a value is missing here"}]}

``errors`` has every mistake with its place in the text, where there are several. Messages come from
where the mistake was found and say what to do about it. Of a failure of our own nothing is told but
the number of the request, under which the log has it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from bittern.catalog.conditional import ChangedMeanwhileError
from bittern.errors import (
    BitternError,
    CatalogError,
    EventError,
    ExpressionError,
    HistoryError,
    OptionError,
    SubscriptionError,
    UnknownSetError,
    UnknownSubscriptionError,
)

logger = logging.getLogger("bittern.service")

#: Mistakes that are listed one by one.
_LISTED = 1_000
_AGAIN = {"Retry-After": "1"}
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818  it is one
    """A request that is answered with a problem."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    def body(self) -> bytes:
        """As JSON."""
        told = {
            "type": f"urn:bittern:problem:{self.kind}",
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        return json.dumps(told).encode()

    def response(self) -> Response:
        """As an answer."""
        return Response(self.body(), self.status, self.headers, MEDIA_TYPE)


def problem_of(error: Exception) -> Problem | None:
    """The problem that one of our errors is; None if it is not one that a caller can do about."""
    told = str(error)
    if isinstance(error, Problem):
        return error
    if isinstance(error, SubscriptionError):
        errors = [
            {"id": each.id, "position": each.position, "message": each.message}
            for each in error.bad[:_LISTED]
        ]
        return Problem(422, "bad-subscription", told, errors=errors, wrong=len(error.bad))
    if isinstance(error, ExpressionError):
        errors = [{"position": error.position, "message": error.message}]
        return Problem(422, "bad-expression", error.message, errors=errors)
    if isinstance(error, UnknownSubscriptionError):
        return Problem(404, "unknown-subscription", told)
    if isinstance(error, UnknownSetError):
        return Problem(404, "unknown-set", told)
    if isinstance(error, ChangedMeanwhileError):
        return Problem(412, "changed-meanwhile", told)
    if isinstance(error, EventError):
        return Problem(422, "bad-event", told)
    if isinstance(error, OptionError):
        return Problem(400, "bad-request", told)
    if isinstance(error, CatalogError | HistoryError):
        logger.error("the database failed: %s", told)
        said = "the database cannot be used now: try again later"
        return Problem(503, "unavailable", said, headers=_AGAIN)
    if isinstance(error, RecursionError):
        return Problem(422, "nested-too-deeply", "this is nested too deeply")
    if isinstance(error, BitternError):
        return Problem(400, "bad-request", told)
    return None


def install(app: FastAPI) -> None:
    """Let an application answer with problems, whatever goes wrong in it."""

    async def ours(_: Request, error: Exception) -> Response:
        found = problem_of(error)
        assert found is not None
        return found.response()

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [
            {"place": ".".join(map(str, each["loc"])), "message": each["msg"]}
            for each in error.errors()[:_LISTED]
        ]
        said = "; ".join(f"{each['place']}: {each['message']}" for each in errors[:3])
        return Problem(422, "bad-request", said, errors=errors).response()

    async def of_http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "bad-request")
        headers = error.headers or {}
        return Problem(error.status_code, kind, str(error.detail), headers=headers).response()

    for kind in (Problem, BitternError, RecursionError):
        app.add_exception_handler(kind, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_http)
