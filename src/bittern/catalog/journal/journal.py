"""``catalog.journal``: events in the order in which they were published, and what they matched.

::

    with catalog.journal.turn() as turn:         nobody else publishes until this commits
        turn.version, turn.last                  what the catalog is now; the last number given
        turn.log([LoggedEvent(...), ...])        the events get the numbers that follow

    catalog.journal.matches("ann", after=17)     of one subscriber, resumable at any number

A turn begins with the lock of the journal's only row, which it keeps until its transaction ends.
The catalog's version is read behind that lock: so events of later numbers never have earlier
versions. The tables are created when a journal is first opened.

Cost: a commit for each turn, however many events it logs; reading costs what is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from bittern.catalog.database import DamageError, Database
from bittern.catalog.journal.tables import (
    create_all,
    events,
    head,
    letters,
    matches,
    publications,
)
from bittern.catalog.reading import is_whole, newest

_TAKE = head.update().values(last=head.c.last).returning(head.c.last, head.c.first)
_SPAN = sa.select(head.c.last, head.c.first)
_MATCHED = (
    sa.select(
        matches.c.number,
        events.c.time,
        events.c.version,
        matches.c.subscriber,
        matches.c.subscriptions,
        events.c.event,
    )
    .join_from(matches, events, matches.c.number == events.c.number)
    .order_by(matches.c.number, matches.c.subscriber)
)
_EVENTS = sa.select(events).order_by(events.c.number)
_ROWS = 10_000


class LoggedEvent(NamedTuple):
    """An event to be logged: its JSON text, the ids that matched, and where to post them."""

    event: str
    matched: Sequence[tuple[str, Sequence[str]]]  # (subscriber, ids)
    letters: Sequence[tuple[str, str, Sequence[str]]] = ()  # (URL, subscriber, ids)


class LoggedMatch(NamedTuple):
    """What one event matched for one subscriber; ids and event are JSON texts."""

    number: int
    time: int
    version: int
    subscriber: str
    subscriptions: str
    event: str


class StoredEvent(NamedTuple):
    """An event as it was logged."""

    number: int
    time: int
    version: int
    event: str


class Span(NamedTuple):
    """The numbers of the events that are there: from ``first`` up to and including ``last``."""

    first: int
    last: int


class Turn:
    """A publisher's turn: one transaction, in which nobody else publishes."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        last, _ = connection.execute(_TAKE).one()
        #: The number of the last event so far.
        self.last = _whole(last)
        #: The catalog's newest version, as of the last ``look``.
        self.version = self.look()

    def look(self) -> int:
        """The catalog's newest version now, which is what the next events are logged with."""
        self.version = newest(self._connection)
        return self.version

    def log(self, entries: Sequence[LoggedEvent]) -> int:
        """Log events under the next numbers; returns the first of these. O(matches)."""
        begin, now = self.last + 1, time.time_ns() // 1000
        numbered = list(enumerate(entries, begin))
        run = self._connection.execute
        if numbered:
            rows = [(number, now, self.version, each.event) for number, each in numbered]
            run(events.insert(), [dict(zip(events.c.keys(), row, strict=True)) for row in rows])
            self.last += len(numbered)
            run(head.update().values(last=self.last))
        matched = [
            {"subscriber": subscriber, "number": number, "subscriptions": _listed(ids)}
            for number, each in numbered
            for subscriber, ids in each.matched
        ]
        if matched:
            run(matches.insert(), matched)
        posted = [
            {"number": n, "url": url, "subscriber": subscriber, "subscriptions": _listed(ids)}
            for n, each in numbered
            for url, subscriber, ids in each.letters
        ]
        if posted:
            run(letters.insert(), posted)
        return begin

    def answer_to(self, key: str) -> tuple[str, str] | None:
        """The digest of what was published under a key, and the answer; None if nothing was."""
        query = sa.select(publications.c.digest, publications.c.answer)
        row = self._connection.execute(query.where(publications.c.key == key)).one_or_none()
        return None if row is None else (row.digest, row.answer)

    def answer(self, key: str, digest: str, answer: str) -> None:
        """Remember what is answered to the publication of a key."""
        row = {"key": key, "digest": digest, "answer": answer, "time": time.time_ns() // 1000}
        self._connection.execute(publications.insert(), row)


class Journal:
    """The journal in the database of one catalog. Threads and processes may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.writing(locked=True) as connection:
            create_all(connection)
            if connection.execute(_SPAN).first() is None:
                connection.execute(head.insert(), {"one": 1, "last": 0, "first": 1})

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Publish: what is logged inside is committed at the end, or not at all."""
        with self._database.writing() as connection:
            yield Turn(connection)

    def span(self) -> Span:
        """The numbers of the events that are there. O(1)."""
        with self._database.reading() as connection:
            last, first = connection.execute(_SPAN).one()
        return Span(_whole(first), _whole(last))

    def matches(
        self, subscriber: str | None, after: int, limit: int | None, until: int | None = None
    ) -> list[LoggedMatch]:
        """What events of higher numbers matched for a subscriber, or for all (None), by number.

        There are at most ``limit`` rows, and none of events behind ``until``. O(rows).
        """
        query = _MATCHED.where(matches.c.number > after).limit(limit)
        if subscriber is not None:
            query = query.where(matches.c.subscriber == subscriber)
        if until is not None:
            query = query.where(matches.c.number <= until)
        with self._database.reading() as connection:
            return [LoggedMatch(*row) for row in connection.execute(query)]

    def events(self, after: int, limit: int, until: int | None = None) -> list[StoredEvent]:
        """Events of higher numbers, in order. O(limit)."""
        query = _EVENTS.where(events.c.number > after).limit(limit)
        if until is not None:
            query = query.where(events.c.number <= until)
        with self._database.reading() as connection:
            return [StoredEvent(*row) for row in connection.execute(query)]

    def forget(self, before: int, keep: int = 0) -> int:
        """Drop events from before a time (microseconds), but not the last ``keep``.

        Returns how many events there were. Letters that are still to be posted keep their events.
        """
        with self._database.writing() as connection:
            last, _ = connection.execute(_TAKE).one()
            old = sa.select(sa.func.max(events.c.number)).where(
                events.c.time < before, events.c.number <= last - keep
            )
            end = connection.execute(old).scalar()
            waiting = connection.execute(sa.select(sa.func.min(letters.c.number))).scalar()
            connection.execute(publications.delete().where(publications.c.time < before))
            if end is None:
                return 0
            end = end if waiting is None else min(end, waiting - 1)
            connection.execute(matches.delete().where(matches.c.number <= end))
            gone = connection.execute(events.delete().where(events.c.number <= end)).rowcount
            connection.execute(head.update().values(first=end + 1))
            return gone


def _listed(ids: Sequence[str]) -> str:
    return json.dumps(ids, ensure_ascii=False, separators=(",", ":"))


def _whole(value: Any) -> int:
    if not is_whole(value):
        raise DamageError(f"{value!r:.40} is in the place of a number of events")
    return int(value)
