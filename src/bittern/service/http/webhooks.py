"""Posts letters to webhooks, each at least once: ``delivery`` does the work, round after round.

A round takes the oldest letters of a tenant, and notes what became of each when all are answered or
given up on. A process that dies in a round leaves its letters to the next, which makes the same
requests with the same keys: a receiver knows by its key what it has seen. One process at a time
delivers for a tenant.

The body of a request::

    {"subscriber": "ann", "number": 18, "time": "...", "version": 4711,
     "subscriptions": ["s1", "s7"], "event": {"price": 5}}
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from typing import TYPE_CHECKING

from bittern.catalog.journal.letters import Letter
from bittern.delivery.addresses import networks, shown
from bittern.delivery.lanes import Delivery, Endpoint, Terms
from bittern.delivery.posting import Post, Request
from bittern.errors import BitternError
from bittern.service.http.answers import match_json

if TYPE_CHECKING:
    from bittern.service.http.state import ServiceState
    from bittern.service.http.tenants import Tenant

logger = logging.getLogger("bittern.service")

_LETTERS = 1_000
_TERMS = Terms(attempts=5, first_wait=0.5, longest_wait=10.0, timeout=10.0, within=30.0)
#: Seconds between two looks for letters.
_EVERY = 0.5


async def deliver_letters(state: ServiceState, tenant: Tenant) -> None:
    """Deliver one tenant's letters until the service stops; failures are logged."""
    suspects: frozenset[Endpoint] = frozenset()
    while not state.stopping.is_set():
        try:
            done, suspects = await state.run(_round, state, tenant, suspects)
        except BitternError as error:
            logger.warning("letters of tenant %s cannot be delivered: %s", tenant.name, error)
            done = 0
        if not done:
            await asyncio.sleep(_EVERY)


def _round(
    state: ServiceState, tenant: Tenant, suspects: frozenset[Endpoint]
) -> tuple[int, frozenset[Endpoint]]:
    """One round: how many letters it had, and the endpoints that were given up on."""
    with tenant.letters.turn() as mine:
        letters = tenant.letters.waiting(_LETTERS) if mine else []
        if not letters:
            return 0, suspects
        settings = state.settings
        secret = None if settings.secret is None else settings.secret.encode()
        post = Post(networks(settings.private), (), secret)
        letters.sort(key=lambda each: (each.url, each.subscriber, each.number))
        by_key = {_key(tenant, each): each for each in letters}
        requests = [_request(key, each) for key, each in by_key.items()]
        delivered: list[Letter] = []
        dead: list[tuple[Letter, int, int | None, str]] = []
        given_up: set[Endpoint] = set()
        for outcome in Delivery(post, _TERMS, suspects).run(requests):
            letter = by_key[outcome.request.key]
            if outcome.reason is None:
                delivered.append(letter)
            elif not outcome.untried:
                dead.append((letter, outcome.attempts, outcome.status, outcome.reason))
            if outcome.gave_up:
                given_up.add((letter.url, outcome.request.subscriber))
        tenant.letters.settle(delivered, dead)
        state.metrics.letters.labels("delivered").inc(len(delivered))
        state.metrics.letters.labels("dead").inc(len(dead))
        if dead:
            place = shown(dead[0][0].url)
            logger.warning(
                "tenant %s: %d letters are dead, as to %s", tenant.name, len(dead), place
            )
        return len(delivered) + len(dead), frozenset(given_up)


def _key(tenant: Tenant, letter: Letter) -> str:
    """The same whenever this letter is posted, and no other letter's."""
    whole = json.dumps([tenant.catalog.uid, letter.number, letter.url, letter.subscriber])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _request(key: str, letter: Letter) -> Request:
    told = match_json(
        letter.number, letter.time, letter.version, letter.subscriptions, letter.event
    )
    body = f'{{"subscriber":{json.dumps(letter.subscriber)},{told[1:]}'.encode("utf-8", "replace")
    n_matches = len(json.loads(letter.subscriptions))
    return Request(letter.subscriber or None, letter.url, key, body, n_matches)
