"""Tokens over HTTP, for admins, and the cookie that gives a page its token."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from bittern.catalog.journal.tokens import LIMITS, ROLES, AccessToken
from bittern.errors import OptionError
from bittern.options import whole_number
from bittern.service.http.access import COOKIE, MayAdminister, check_origin, identified
from bittern.service.http.answers import as_json, as_time
from bittern.service.http.bodies import as_object, only, read_object
from bittern.service.http.changes import changed
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem

router = APIRouter(prefix="/v1", tags=["access"])

_DAY = 86_400 * 1_000_000
_NEW = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "roles"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "roles": {"type": "array", "minItems": 1, "items": {"enum": list(ROLES)}},
        "limits": {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: {"type": "integer", "minimum": 1} for name in LIMITS},
        },
        "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 36_500},
    },
}
_SESSION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["token"],
    "properties": {"token": {"type": "string"}},
}


@router.get("/tokens", responses=ok("all tokens, without their secrets"))
async def list_tokens(caller: MayAdminister) -> Response:
    """List the tenant's tokens."""
    found = await caller.state.run(caller.tenant.tokens.all)
    return as_json({"tokens": list(map(_as_json, found.values()))})


@router.post("/tokens", status_code=201, openapi_extra=body(_NEW), responses=ok("made", 201))
async def create_token(request: Request, caller: MayAdminister) -> Response:
    """Create a token. Its text is in the answer and nowhere else: it is not shown again."""
    given = await read_object(request, caller, "name", "roles", "limits", "days")
    roles, limits, days = given.get("roles"), given.get("limits") or {}, given.get("days")
    if not isinstance(roles, list) or not isinstance(limits, dict):
        raise OptionError("roles must be a list of words, and limits an object")
    expires = None
    if days is not None:
        expires = time.time_ns() // 1000 + whole_number("days", days, 1, 36_500) * _DAY
    tenant = caller.tenant

    def create() -> tuple[None, tuple[str, AccessToken]]:
        made = tenant.tokens.create(given.get("name"), roles, limits, expires)  # type: ignore[arg-type]
        tenant.all_tokens = tenant.tokens.all()
        return None, made

    text, token = await changed(caller, "create token", f"{given.get('name')!s:.200}", create)
    return as_json({"token": text, **_as_json(token)}, 201, {"Cache-Control": "no-store"})


@router.delete("/tokens/{id}", responses=ok("it is not accepted any more"))
async def revoke_token(caller: MayAdminister, id: str) -> Response:  # noqa: A002
    """Revoke a token: at once in this process, within a second in others."""
    if "\0" in id:
        raise Problem(404, "unknown-token", "no token has this id")
    tenant = caller.tenant

    def revoke() -> tuple[None, bool]:
        done = tenant.tokens.revoke(id)
        tenant.all_tokens = tenant.tokens.all()
        return None, done

    if not await changed(caller, "revoke token", id[:100], revoke):
        raise Problem(404, "unknown-token", f"no token has the id {id!r:.100}")
    return as_json({"revoked": id})


@router.post("/session", openapi_extra=body(_SESSION), responses=ok("a cookie"))
async def begin_session(request: Request) -> Response:
    """Give a page of this service its token, as a cookie that scripts cannot read."""
    state = request.app.state.service
    check_origin(request.headers)
    parts = [part async for part in _some(request)]
    given = as_object(b"".join(parts))
    only(given, "token")
    token = given.get("token")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise Problem(422, "bad-request", "token must be the text of a token")
    headers = request.headers.mutablecopy()
    headers["authorization"] = f"Bearer {token}"
    caller = await identified(state, headers, None)
    answer = as_json({"tenant": caller.tenant.name, "roles": sorted(caller.roles)})
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@router.delete("/session", responses=ok("the cookie is gone"))
async def end_session() -> Response:
    """Take the cookie away."""
    answer = as_json({})
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict", path="/")
    return answer


async def _some(request: Request) -> Any:
    """The body of a request by somebody who is not known yet: it is small."""
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > 4096:
            raise Problem(413, "too-large", "a token is shorter")
        yield part


def _as_json(token: AccessToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "roles": sorted(token.roles),
        "limits": token.limits,
        "created": as_time(token.created),
        "expires": None if token.expires is None else as_time(token.expires),
    }
