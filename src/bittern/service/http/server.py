"""Runs the application: uvicorn with uvloop and httptools, one process, until it is told to stop.

SIGTERM or Ctrl-C: no new connections, requests under way are answered, streams and waiting requests
end, and what does not end within half a minute is cut off.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import uvicorn

from bittern.catalog.journal.journal import Journal
from bittern.catalog.journal.places import DEFAULT, TenantPlaces
from bittern.catalog.journal.tokens import TokenTable
from bittern.errors import OptionError
from bittern.service.http.app import create_app
from bittern.service.http.configuration import ServiceSettings
from bittern.service.http.entrance import Told
from bittern.service.http.state import GRACE, ServiceState

_KEEP_ALIVE = 75
_CONNECTIONS = 10_000


class _Server(uvicorn.Server):
    """Tells the application that it stops before it waits for the connections' end."""

    def __init__(self, config: uvicorn.Config, state: ServiceState) -> None:
        super().__init__(config)
        self._state = state

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        self._state.end_streams()
        await super().shutdown(sockets)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with its time, level and logger; a message with parts is merged."""
        told: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        told |= record.msg if isinstance(record.msg, Told) else {"message": record.getMessage()}
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told)


def keep_log(level: str) -> None:
    """Write the log as lines of JSON to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("bittern", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def check_tokens(settings: ServiceSettings) -> None:
    """Refuse to listen where others reach it, unless somebody has a token."""
    if settings.is_loopback:
        return
    places = TenantPlaces(settings.folder, settings.database)
    for name in places.names():
        with (places.create if name == DEFAULT else places.open)(name) as catalog:
            Journal(catalog.database)
            if TokenTable(catalog.database, name).all():
                return
    raise OptionError(
        f"{settings.host} can be reached by others, and there is no token: create one with "
        f"'bittern token create', or listen on 127.0.0.1"
    )


def serve(settings: ServiceSettings, ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve until a signal; ``ready`` is called with the address when requests are accepted."""
    check_tokens(settings)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http="httptools",
        loop="uvloop",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=_CONNECTIONS,
    )
    server = _Server(config, app.state.service)
    begin = server.startup

    async def startup(sockets: list[Any] | None = None) -> None:
        await begin(sockets)
        if server.started and server.servers:
            host, port = server.servers[0].sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            ready(f"http://{shown}:{port}")

    server.startup = startup  # type: ignore[method-assign]
    server.run()
