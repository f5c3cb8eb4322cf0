"""Letters: what published events matched and is still to be posted to webhooks.

A letter is written with its event, and removed when it was delivered, or when it was given up on
and became a dead letter. A process that dies in between posts it again, under the same key.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from bittern.catalog.database import Database
from bittern.catalog.journal.tables import dead_letters, events, letters
from bittern.files import released, try_hold

#: Any number that other programs are unlikely to take for a lock of theirs.
_DELIVERING = 0x6269_7474

_WAITING = (
    sa.select(
        letters.c.number,
        letters.c.url,
        letters.c.subscriber,
        letters.c.subscriptions,
        events.c.time,
        events.c.version,
        events.c.event,
    )
    .join_from(letters, events, letters.c.number == events.c.number)
    .order_by(letters.c.number, letters.c.url, letters.c.subscriber)
)


class Letter(NamedTuple):
    """What one event matched for one subscriber at one address; ids and event are JSON texts."""

    number: int
    url: str
    subscriber: str
    subscriptions: str
    time: int
    version: int
    event: str


class DeadLetter(NamedTuple):
    """A letter that was given up on."""

    number: int
    url: str
    subscriber: str
    subscriptions: str
    time: int
    attempts: int
    status: int | None
    reason: str


class Letters:
    """The letters in the database of one catalog, whose journal has been opened."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """While inside, no other process delivers: False if one does already.

        PostgreSQL keeps a lock for a transaction that is open meanwhile; beside SQLite's file there
        is a file to lock.
        """
        database = self._database
        if database.is_sqlite:
            place = f"{database}.letters"
            with released(os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as lock:
                yield try_hold(lock)
            return
        with database.writing() as connection:
            mine = sa.func.pg_try_advisory_xact_lock(_DELIVERING, sa.func.hashtext(database.uid))
            yield bool(connection.execute(sa.select(mine)).scalar_one())

    def waiting(self, limit: int) -> list[Letter]:
        """The oldest letters that are still to be posted."""
        with self._database.reading() as connection:
            return [Letter(*row) for row in connection.execute(_WAITING.limit(limit))]

    def settle(
        self, delivered: Sequence[Letter], dead: Sequence[tuple[Letter, int, int | None, str]]
    ) -> None:
        """Remove letters that were delivered, and keep those apart that were given up on.

        Of a dead letter come the attempts, the last status and the reason.
        """
        done = [*delivered, *(letter for letter, *_ in dead)]
        if not done:
            return
        names = ("number", "url", "subscriber")
        key: dict[str, Any] = {name: sa.bindparam(f"own_{name}") for name in names}
        query = letters.delete().where(*(letters.c[name] == own for name, own in key.items()))
        gone = [{f"own_{name}": getattr(each, name) for name in key} for each in done]
        with self._database.writing() as connection:
            connection.execute(query, gone)
            if dead:
                connection.execute(dead_letters.insert(), [_dead(*each) for each in dead])

    def dead(self, after: int, limit: int) -> list[DeadLetter]:
        """Dead letters of events with higher numbers."""
        query = sa.select(dead_letters).where(dead_letters.c.number > after)
        ordered = query.order_by(*dead_letters.primary_key.columns).limit(limit)
        with self._database.reading() as connection:
            return [DeadLetter(*row) for row in connection.execute(ordered)]


def _dead(letter: Letter, attempts: int, status: int | None, reason: str) -> dict[str, Any]:
    own = {name: getattr(letter, name) for name in ("number", "url", "subscriber", "subscriptions")}
    told = {"attempts": attempts, "status": status, "reason": reason}
    return {**own, "time": time.time_ns() // 1000, **told}
