"""Tokens: who may use a service, and what for. Secrets are never stored, only their hashes.

A token is shown once, when it is made::

    bt_acme_4f0c9a1be2d3_kEJx...        tenant, id and secret; the hash of the secret is stored

The secret has 256 random bits, so one round of SHA-256 protects it: there is nothing to guess that
a slower hash would make slower.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from bittern.catalog.database import DamageError, Database
from bittern.catalog.journal.tables import tokens
from bittern.errors import OptionError, brief
from bittern.options import one_of, whole_number

#: What a token may be used for; an admin may do everything.
ROLES = ("admin", "publish", "subscribe", "read")
#: Limits that a token may have of its own.
LIMITS = ("rate", "body", "subscriptions")
#: A name of a tenant: it becomes a part of paths and of tokens.
TENANT = re.compile(r"[a-z][a-z0-9]{0,39}")
_TOKEN = re.compile(r"bt_([a-z][a-z0-9]{0,39})_([0-9a-f]{12})_([A-Za-z0-9-]{20,100})")
_MAX_NAME = 200


@dataclass(frozen=True)
class AccessToken:
    """A token without its secret. Times are microseconds since 1970."""

    id: str
    name: str
    roles: frozenset[str]
    limits: dict[str, int]
    created: int
    expires: int | None
    hash: str = field(repr=False)

    def is_of(self, secret: str) -> bool:
        """Whether this is the secret, in a time that does not depend on where it differs."""
        return hmac.compare_digest(_hash(secret).encode(), self.hash.encode())

    def is_expired(self, now: int) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= now


class TokenParts(NamedTuple):
    """What a text that may be a token says."""

    tenant: str
    id: str
    secret: str


def parts_of(text: str) -> TokenParts | None:
    """The parts of a token's text; None if it is none."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else TokenParts(*found.groups())


def checked_tenant(name: Any) -> str:
    """A tenant's name, which may become a part of a path."""
    if not isinstance(name, str) or not TENANT.fullmatch(name):
        raise OptionError(
            f"a tenant's name has up to 40 small letters and digits and begins with a letter: "
            f"{brief(name)} does not"
        )
    return name


class TokenTable:
    """The tokens in the database of one tenant's catalog, whose journal has been opened."""

    def __init__(self, database: Database, tenant: str) -> None:
        self._database = database
        self._tenant = checked_tenant(tenant)

    def create(
        self,
        name: str,
        roles: list[str],
        limits: dict[str, int] | None = None,
        expires: int | None = None,
    ) -> tuple[str, AccessToken]:
        """Make a token: its text, which is shown once and never stored, and the token."""
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
            raise OptionError(f"a token's name is printable text of up to {_MAX_NAME} characters")
        if not roles:
            raise OptionError(f"a token needs a role: {', '.join(ROLES)}")
        asked = frozenset(one_of("role", role, ROLES) for role in roles)
        own = {
            one_of("limit", key, LIMITS): whole_number(key, value, 1, 2**53)
            for key, value in (limits or {}).items()
        }
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32).replace("_", "-")
        now = time.time_ns() // 1000
        if expires is not None and expires <= now:
            raise OptionError("a token cannot expire in the past")
        token = AccessToken(id_, name, asked, own, now, expires, _hash(secret))
        row = {
            "id": id_,
            "name": name,
            "hash": token.hash,
            "roles": " ".join(sorted(asked)),
            "limits": json.dumps(own),
            "created": now,
            "expires": expires,
        }
        with self._database.writing() as connection:
            connection.execute(tokens.insert(), row)
        return f"bt_{self._tenant}_{id_}_{secret}", token

    def revoke(self, id_: str) -> bool:
        """Remove a token; False if there is none with this id."""
        with self._database.writing() as connection:
            return connection.execute(tokens.delete().where(tokens.c.id == id_)).rowcount == 1

    def all(self) -> dict[str, AccessToken]:
        """All tokens by id."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(tokens).order_by(tokens.c.created, tokens.c.id))
            return {row.id: _token(row) for row in rows}


def _token(row: Any) -> AccessToken:
    try:
        roles, limits = frozenset(row.roles.split()), json.loads(row.limits)
        good = roles <= set(ROLES) and limits.keys() <= set(LIMITS)
        good = good and all(type(each) is int and each > 0 for each in limits.values())
        good = good and isinstance(row.hash, str) and len(row.hash) == 64
    except (ValueError, AttributeError, TypeError):
        good = False
    if not good:
        raise DamageError(f"the token {row.id!r:.40} is not what a service writes")
    return AccessToken(row.id, row.name, roles, limits, row.created, row.expires, row.hash)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
