"""Who asks: a token in ``Authorization: Bearer ...``, or in the cookie of a page.

As long as the default tenant has no token and the service listens on loopback, whoever reaches it
may do everything. Two checks keep pages of other sites out then, which a browser would let send
requests to this machine: the host that was asked for is this machine's, and a request that says
where it comes from (``Origin``) comes from there. The second check holds for cookies too.

=========== ====================================================================
read        look at subscriptions, sets, versions and metrics; match and explain
subscribe   what read may, change subscriptions and sets, and read matches
publish     publish events
admin       everything in the tenant: tokens and the audit log too
=========== ====================================================================
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated
from urllib.parse import SplitResult, urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers

from bittern.catalog.journal.places import DEFAULT
from bittern.catalog.journal.tokens import AccessToken, parts_of
from bittern.service.http.limits import limit_of
from bittern.service.http.problems import Problem

if TYPE_CHECKING:
    from bittern.service.http.state import ServiceState
    from bittern.service.http.tenants import Tenant

#: The cookie that has a page's token.
COOKIE = "bittern_token"
_BEARER = "bearer "
_MAX_TOKEN = 256
_ALLOWED = {
    "read": {"read", "subscribe", "admin"},
    "subscribe": {"subscribe", "admin"},
    "publish": {"publish", "admin"},
    "admin": {"admin"},
}
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_REFUSED = {"WWW-Authenticate": 'Bearer realm="bittern"'}


class Caller:
    """Who makes a request: a token of a tenant, or None for whoever may do everything."""

    __slots__ = ("roles", "state", "tenant", "token")

    def __init__(self, state: ServiceState, tenant: Tenant, token: AccessToken | None) -> None:
        self.state = state
        self.tenant = tenant
        self.token = token
        self.roles = frozenset({"admin"}) if token is None else token.roles

    @property
    def name(self) -> str:
        """For logs: the token's id and name."""
        return "anybody" if self.token is None else f"{self.token.id} ({self.token.name})"

    def limit(self, name: str) -> int | None:
        """A limit of the token, or of the service."""
        own = {} if self.token is None else self.token.limits
        return limit_of(name, own, self.state.settings)

    def may(self, role: str) -> bool:
        """Whether the caller may do what this role may."""
        return not self.roles.isdisjoint(_ALLOWED[role])

    def check(self, role: str) -> None:
        """A problem unless the caller may do what this role may."""
        if not self.may(role):
            raise Problem(403, "forbidden", f"this takes a token with the role {role} or admin")


async def identified(state: ServiceState, headers: Headers, cookie: str | None) -> Caller:
    """The caller of a request; a problem if there is no good token and one is needed."""
    given = headers.get("authorization")
    if given is None and cookie is not None:
        check_origin(headers)
        given = _BEARER + cookie
    if given is None:
        default = await state.tenant(DEFAULT)
        if default.all_tokens or not state.settings.is_loopback:
            raise _unknown("this needs a token: Authorization: Bearer bt_...")
        check_local(headers)
        check_origin(headers)
        return Caller(state, default, None)
    parts = None
    if given[: len(_BEARER)].lower() == _BEARER and len(given) <= _MAX_TOKEN:
        parts = parts_of(given[len(_BEARER) :].strip())
    if parts is None or parts.tenant not in state.known:
        raise _unknown("this is no token of this service")
    tenant = state.tenants.get(parts.tenant) or await state.tenant(parts.tenant)
    token = tenant.all_tokens.get(parts.id)
    if token is None or not token.is_of(parts.secret):
        raise _unknown("this is no token of this service")
    if token.expires is not None and token.is_expired(time.time_ns() // 1000):
        raise _unknown("this token has expired")
    return Caller(state, tenant, token)


def check_local(headers: Headers) -> None:
    """A problem unless the request was sent to a name of this machine."""
    host = _parts("//" + headers.get("host", ""))
    if host is None or host.hostname not in _LOCAL:
        raise Problem(
            403,
            "forbidden",
            "without tokens this service answers to localhost and 127.0.0.1 only: create a token "
            "with 'bittern token create'",
        )


def check_origin(headers: Headers) -> None:
    """A problem if the request says that it comes from a page of another site."""
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return
    else:
        parts = _parts(origin)
        if parts is not None and parts.netloc == headers.get("host", ""):
            return
    raise Problem(403, "forbidden", "requests from pages of other sites are refused")


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL; None if it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _unknown(said: str) -> Problem:
    return Problem(401, "unauthorized", said, headers=_REFUSED)


def caller_of(request: Request) -> Caller:
    """The caller, whom the entrance has identified; a problem if it could not."""
    found = request.scope["bittern_caller"]
    if isinstance(found, Problem):
        raise found
    assert isinstance(found, Caller)
    return found


def _who_may(role: str) -> Callable[[Request], Awaitable[Caller]]:
    async def allowed(request: Request) -> Caller:
        caller = caller_of(request)
        caller.check(role)
        return caller

    return allowed


MayRead = Annotated[Caller, Depends(_who_may("read"))]
MaySubscribe = Annotated[Caller, Depends(_who_may("subscribe"))]
MayPublish = Annotated[Caller, Depends(_who_may("publish"))]
MayAdminister = Annotated[Caller, Depends(_who_may("admin"))]
