"""What comes in: bodies, read up to the caller's limit and within a time, and split into lines."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from bittern.service.http.access import Caller
from bittern.service.http.problems import Problem

#: Seconds in which a body has to come.
_SECONDS = 60.0
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
ARROW = "application/vnd.apache.arrow.stream"
#: What curl says of ``-d`` if it is not told otherwise; nothing here reads forms.
_FORM = "application/x-www-form-urlencoded"
_BOM = "\ufeff"


async def read_body(request: Request, caller: Caller) -> bytes:
    """The body of a request; a problem if it is too large, too slow or packed."""
    headers = request.headers
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "unsupported-encoding", "send the body as it is, without compression")
    limit = caller.limit("body") or 0
    said = headers.get("content-length", "")
    if said.isdecimal() and int(said[:20]) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(_SECONDS):
            parts, size = [], 0
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
    except TimeoutError:
        said = f"the body did not come within {_SECONDS:g} s"
        raise Problem(408, "too-slow", said) from None
    except ClientDisconnect:
        raise Problem(400, "bad-request", "the body did not come to its end") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Problem:
    return Problem(413, "too-large", f"a body may have {limit:,} bytes: send it in parts")


def media_type(request: Request) -> str:
    """The type of the body without its parameters; JSON if none is given, or curl's own."""
    given = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    return "application/json" if given in ("", _FORM) else given


def as_text(body: bytes) -> str:
    """A body as text; a problem if it is not UTF-8."""
    try:
        return body.decode().removeprefix(_BOM)
    except UnicodeDecodeError as wrong:
        raise Problem(400, "bad-request", f"the body is not UTF-8: {wrong}") from None


def lines_of(body: bytes) -> list[str]:
    """The lines of a body that are not blank."""
    return [line for line in as_text(body).split("\n") if line and not line.isspace()]


def as_object(text: str | bytes, what: str = "the body") -> dict[str, Any]:
    """A JSON object; a problem that says where it is none."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Problem(400, "bad-json", f"{what} holds half a surrogate pair") from None
    except UnicodeDecodeError:
        raise Problem(400, "bad-json", f"{what} is not UTF-8") from None
    except json.JSONDecodeError as wrong:
        said = f"{what} is not JSON: {wrong}"
        errors = [{"position": wrong.pos, "message": wrong.msg}]
        raise Problem(400, "bad-json", said, errors=errors) from None
    except ValueError as wrong:
        raise Problem(400, "bad-json", f"{what} is not JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise Problem(400, "bad-json", f"{what} must be a JSON object")
    return found


def only(given: dict[str, Any], *names: str) -> None:
    """A problem if an object has other names than these."""
    for name in given:
        if name not in names:
            known = ", ".join(names)
            raise Problem(422, "bad-request", f"{name!r:.60} is not known here; these are: {known}")


async def read_object(request: Request, caller: Caller, *names: str) -> dict[str, Any]:
    """The body as a JSON object with some of these names."""
    given = as_object(await read_body(request, caller))
    only(given, *names)
    return given


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
