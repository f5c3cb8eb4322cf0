"""Looks for what other processes did: versions, events, tokens; and drops what is old.

A turn of publishing and a change do not wait for this: they look themselves. It is for requests
that only match, for streams, and for tokens.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from bittern.errors import BitternError

if TYPE_CHECKING:
    from bittern.service.http.state import ServiceState
    from bittern.service.http.tenants import Tenant

logger = logging.getLogger("bittern.service")

_DAY = 86_400 * 1_000_000
#: Seconds between two looks for old events.
_FORGET_EVERY = 600.0
#: Seconds between two looks for tokens.
_TOKENS_EVERY = 0.5


async def follow_changes(state: ServiceState, tenant: Tenant) -> None:
    """Look for changes of one tenant until the service stops; failures are logged."""
    forgotten = tokens = 0.0
    while not state.stopping.is_set():
        await tenant.tail.wait(state.settings.poll)
        now = time.monotonic()
        try:
            if tenant.tail.n_streams:
                await tenant.tail.read(state.run)
            await state.run(tenant.advance)
            if now - tokens >= _TOKENS_EVERY:
                tenant.all_tokens = await state.run(tenant.tokens.all)
                tokens = now
            if now - forgotten >= _FORGET_EVERY:
                await state.run(_forget, state, tenant)
                forgotten = now
        except BitternError as error:
            logger.warning("tenant %s cannot be followed: %s", tenant.name, error)
            await asyncio.sleep(1.0)


def _forget(state: ServiceState, tenant: Tenant) -> None:
    """Drop events that are too old, and that no history wants."""
    before = time.time_ns() // 1000 - state.settings.keep_days * _DAY
    gone = tenant.journal.forget(before, state.settings.history)
    if gone:
        logger.info("tenant %s: %d events were dropped", tenant.name, gone)
