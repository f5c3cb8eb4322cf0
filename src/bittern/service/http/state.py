"""``ServiceState``: what all requests of a service share. Pages of the console use it directly.

::

    state.settings              configuration.py: ``ServiceSettings``
    state.metrics               operations.py: counters of this process
    state.tenants["default"]    tenants.py: ``Tenant``, loaded; of it
        .catalog                ``bittern.Catalog``: subscriptions and sets, every version
        .live                   ``LiveMatcher`` of the newest version this process knows
        .version                that version
        .journal                ``catalog.journal``: events, and what they matched, by number
        .tail                   tails.py: matches as they come, for streams
        .tokens .audit .letters the other parts of the journal
        .bad                    subscriptions that cannot be matched, by id

    await state.run(f, *args)   f in a thread: for whatever waits for the database, or takes long
    await state.tenant(name)    the tenant; loads it first if nobody has asked for it yet

``access.py`` says who asks: a page gets a ``Caller``, whose ``tenant`` is its own, and looks at no
other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from bittern.catalog.journal.places import DEFAULT, TenantPlaces
from bittern.errors import BitternError, CatalogError
from bittern.service.http.configuration import ServiceSettings
from bittern.service.http.following import follow_changes
from bittern.service.http.operations import ServiceMetrics
from bittern.service.http.tenants import Tenant
from bittern.service.http.webhooks import deliver_letters

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")

logger = logging.getLogger("bittern.service")

#: Threads for what waits: databases, bulk work, delivery.
_THREADS = 12
#: Seconds that requests have to end when the service stops.
GRACE = 30


class ServiceState:
    """What all requests of a service share; see the module."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = ServiceMetrics()
        self.places = TenantPlaces(settings.folder, settings.database)
        self.tenants: dict[str, Tenant] = {}
        #: The names of tenants that there are, loaded or not.
        self.known: frozenset[str] = frozenset({DEFAULT})
        self.is_ready = False
        self.stopping = asyncio.Event()
        self._loading: dict[str, asyncio.Lock] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bittern-service")
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(
        self, function: Callable[_Given, _Found], *args: _Given.args, **named: _Given.kwargs
    ) -> _Found:
        """Call a function in a thread, and wait for it without holding up other requests."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **named))

    async def tenant(self, name: str) -> Tenant:
        """A tenant, loaded. O(subscriptions) the first time."""
        if name in self.tenants:
            return self.tenants[name]
        async with self._loading.setdefault(name, asyncio.Lock()):
            if name not in self.tenants:
                made = await self.run(self._load, name)
                self.tenants[name] = made
                self._start(follow_changes(self, made))
                self._start(deliver_letters(self, made))
        return self.tenants[name]

    def _load(self, name: str) -> Tenant:
        """Open a tenant's catalog and load it; for a thread."""
        catalog = self.places.open(name)
        try:
            return Tenant(name, catalog, self.settings)
        except BaseException:
            catalog.close()  # whoever asks next opens it again
            raise

    async def start(self) -> None:
        """Load all tenants, and begin to follow their changes."""
        await self.refresh()
        await self.tenant(DEFAULT)
        self._start(self._load_all())

    async def refresh(self) -> None:
        """See which tenants there are now."""
        self.known = frozenset(await self.run(self.places.names))

    async def _load_all(self) -> None:
        for name in sorted(self.known):
            try:
                await self.tenant(name)
            except BitternError as error:  # the others are served
                logger.warning("tenant %s cannot be loaded: %s", name, error)
        self.is_ready = True
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), 1.0)
            with contextlib.suppress(CatalogError):
                await self.refresh()

    def _start(self, work: Any) -> None:
        """Let something go on until the service stops."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("background work ended", exc_info=task.exception())

    def end_streams(self) -> None:
        """Tell streams and waiting requests that the service stops."""
        self.is_ready = False
        self.stopping.set()
        for tenant in self.tenants.values():
            tenant.tail.wake_streams()

    async def stop(self) -> None:
        """End background work and close everything; what was acknowledged is on disk."""
        self.end_streams()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for tenant in self.tenants.values():
            await self.run(tenant.close)
        self._threads.shutdown(wait=False, cancel_futures=True)
