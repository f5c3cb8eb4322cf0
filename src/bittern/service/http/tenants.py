"""``Tenant``: all that a service has of one tenant. Tenants share nothing but the process.

Which subscriber a subscription belongs to, and where its matches are posted, is asked of the
catalog once and remembered until the subscription changes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bittern.catalog.catalog import Catalog
from bittern.catalog.following import Followed
from bittern.catalog.journal.audit import AuditLog
from bittern.catalog.journal.journal import Journal
from bittern.catalog.journal.letters import Letters
from bittern.catalog.journal.tokens import AccessToken, TokenTable
from bittern.delivery.addresses import url_in
from bittern.engine.live.matcher import LiveMatcher
from bittern.errors import BadSubscription
from bittern.history.history import History
from bittern.service.http.configuration import ServiceSettings
from bittern.service.http.limits import RequestBuckets
from bittern.service.http.publishing import Publisher
from bittern.service.http.tails import Tail

#: Subscriptions whose subscribers are remembered.
_REMEMBERED = 500_000
#: Events that become documents at a time, when the history is filled.
_AT_A_TIME = 10_000
#: The entry of a subscription's metadata that names a URL.
WEBHOOK = "webhook"


class Recipient(NamedTuple):
    """Who is told of a subscription's matches: a subscriber, "" for none, and maybe a URL."""

    subscriber: str
    url: str | None


class Tenant:
    """All that a service has of one tenant; see ``state.py``."""

    def __init__(self, name: str, catalog: Catalog, settings: ServiceSettings) -> None:
        self.name = name
        self.catalog = catalog
        self.settings = settings
        database = catalog.database
        self.journal = Journal(database)
        self.tokens = TokenTable(database, name)
        self.audit = AuditLog(database)
        self.letters = Letters(database)
        #: The documents that EXISTS and FORALL see: the last events of the journal.
        self.history = History(keep=settings.history) if settings.history else None
        self._remembered = 0  # the last event that the history has, or cannot have any more
        self._is_ahead = False  # the history has events that were never committed
        self.followed = Followed(catalog, self.history)
        if self.history is not None:
            self.remember(self.journal.span().last)
        self.all_tokens: dict[str, AccessToken] = self.tokens.all()
        self.buckets = RequestBuckets()
        self.tail = Tail(self.journal)
        self.publisher = Publisher(self)
        self._recipients: dict[str, Recipient] = {}
        #: Held by short writes. SQLite lets who waits for another's write sleep, so that who writes
        #: all the time would leave nobody else a turn.
        self.writing = threading.Lock()
        self.live.match("{}", remember=False)  # loads what matches one event

    @property
    def live(self) -> LiveMatcher:
        """The matcher of the newest version that this process knows."""
        return self.followed.live

    @property
    def version(self) -> int:
        """The catalog's version that ``live`` matches."""
        return self.followed.version

    @property
    def bad(self) -> Mapping[str | int, BadSubscription]:
        """Subscriptions that cannot be matched, by id."""
        return self.followed.bad

    def advance(self, version: int | None = None) -> None:
        """Match the catalog's newest version, or at least this one, from now on. O(changes)."""
        with self.followed.lock:
            changed = self.followed.advance(version)
            if changed is None:
                self._recipients.clear()
            else:
                for id_ in changed:
                    self._recipients.pop(id_, None)

    def recipients(self, ids: Iterable[str], version: int) -> Mapping[str, Recipient]:
        """Who is told of these subscriptions' matches. For who holds ``followed.lock``."""
        known = self._recipients
        unknown = [id_ for id_ in ids if id_ not in known]
        if unknown:
            if len(known) + len(unknown) > _REMEMBERED:
                known.clear()
                unknown = list(ids)
            table = self.catalog.details(unknown, version)
            columns = (table[name].to_pylist() for name in ("id", "subscriber", "metadata"))
            for id_, subscriber, metadata in zip(*columns, strict=True):
                known[id_] = Recipient(subscriber or "", url_in(metadata, WEBHOOK))
        return known

    # -- documents -----------------------------------------------------------------------------

    def remember(self, last: int) -> None:
        """Let the history have the journal's events up to this number. O(events that it lacks)."""
        history = self.history
        if history is None:
            return
        with history.lock:
            if self._is_ahead:
                history.expire(history.end)
                self._remembered, self._is_ahead = 0, False
            after = max(self._remembered, last - self.settings.history)
            while after < last:
                some = self.journal.events(after, _AT_A_TIME, until=last)
                if not some:
                    break
                history.append([each.event for each in some])
                after = some[-1].number
            self._remembered = last

    def has_remembered(self, last: int) -> None:
        """Matching has made documents of the events up to this number."""
        self._remembered = last

    def lost_turn(self) -> None:
        """A turn failed after its events had become documents: these are to go again."""
        self._is_ahead = True

    def close(self) -> None:
        """Stop background work and close the database."""
        self.followed.close()
        if self.history is not None:
            self.history.close()
        self.catalog.close()
