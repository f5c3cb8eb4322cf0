"""``create_app``: the application of a service, from its settings."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import bittern
from bittern.service.http import (
    audit,
    backtests,
    description,
    events,
    explaining,
    importing,
    matching,
    operations,
    problems,
    sets,
    streams,
    subscriptions,
    tokens,
    versions,
)
from bittern.service.http.configuration import ServiceSettings
from bittern.service.http.described import SCHEMAS
from bittern.service.http.entrance import Entrance
from bittern.service.http.state import ServiceState

_ABOUT = """Standing subscriptions, each a Boolean SQL condition, matched against every event.

Send a token as `Authorization: Bearer bt_...`. Problems are `application/problem+json` (RFC 9457).
"""
#: Where the console is, if it is installed.
_PAGES = "bittern.service.console.pages"


def create_app(settings: ServiceSettings | None = None) -> FastAPI:
    """The application; ``app.state.service`` is its ``ServiceState``, which starts with it."""
    state = ServiceState(settings or ServiceSettings())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await state.start()
        try:
            yield
        finally:
            await state.stop()

    app = FastAPI(
        title="Bittern",
        version=bittern.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,
        openapi_url=None,  # description.py
    )
    app.state.service = state
    problems.install(app)
    for module in (
        *(matching, events, streams, subscriptions, importing, versions, sets),
        *(explaining, backtests, tokens, audit, operations, description),
    ):
        app.include_router(module.router)
    _mount_console(app, state)
    app.add_middleware(Entrance, state=state)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _mount_console(app: FastAPI, state: ServiceState) -> None:
    """The pages, if their package is there."""
    if not state.settings.console:
        return
    try:
        pages: Any = import_module(_PAGES)
    except ModuleNotFoundError as missing:
        if not _PAGES.startswith(missing.name or "?"):
            raise
        return
    pages.mount(app, state)


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with what handlers read and write themselves."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = found.setdefault("components", {})
        parts.setdefault("schemas", {}).update(SCHEMAS)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
        for operations_of in found["paths"].values():
            for operation in operations_of.values():
                operation["responses"].pop("422", None)  # any problem is "default"
        app.openapi_schema = found
    return app.openapi_schema
