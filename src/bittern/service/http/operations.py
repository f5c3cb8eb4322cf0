"""Is it well: counters for Prometheus, and whether the process lives and can serve.

Counters are of this process and all tenants, and name none of them.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

import bittern
from bittern.service.http.access import MayRead, caller_of
from bittern.service.http.answers import as_json
from bittern.service.http.described import ok
from bittern.service.http.problems import Problem

router = APIRouter(tags=["operations"])

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)


class ServiceMetrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        self.requests = Counter(
            "bittern_requests",
            "Requests by method, route and status",
            ["method", "route", "status"],
            **own,
        )
        self.seconds = Histogram(
            "bittern_request_seconds",
            "Time to answer, by route",
            ["route"],
            buckets=_SECONDS,
            **own,
        )
        self.matched = Counter(
            "bittern_events_matched", "Events matched without being logged", **own
        )
        self.published = Counter("bittern_events_published", "Events logged", **own)
        self.matches = Counter("bittern_matches", "Matches of logged events", **own)
        self.changes = Counter("bittern_changes", "Changes by what was done", ["action"], **own)
        self.streams = Gauge("bittern_streams", "Streams that are open", **own)
        self.letters = Counter(
            "bittern_letters", "Requests to webhooks by what became of them", ["outcome"], **own
        )
        self.subscriptions = Gauge("bittern_subscriptions", "Subscriptions that are matched", **own)

    def text(self) -> bytes:
        """All of them in Prometheus's format."""
        return generate_latest(self.registry)


@router.get("/metrics", responses=ok("counters", 200, "text/plain"))
async def metrics(caller: MayRead) -> Response:
    """Read the counters of this process, in Prometheus's format."""
    found = caller.state.metrics
    found.subscriptions.set(sum(len(own.live) for own in caller.state.tenants.values()))
    return Response(found.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/healthz", responses=ok("the process answers"))
async def health() -> Response:
    """Say that the process answers."""
    return as_json({"status": "ok"})


@router.get("/readyz", responses=ok("requests can be served"))
async def readiness(request: Request) -> Response:
    """Say whether requests can be served: not while catalogs are loaded, or when it stops."""
    if not request.app.state.service.is_ready:
        raise Problem(503, "not-ready", "catalogs are being loaded, or the service stops")
    return as_json({"status": "ready"})


@router.get("/v1", tags=["access"], responses=ok("the tenant, the roles, the version"))
async def about(request: Request) -> Response:
    """Say who the caller is, and what the service has of the tenant."""
    caller = caller_of(request)
    told: dict[str, Any] = {
        "bittern": bittern.__version__,
        "tenant": caller.tenant.name,
        "token": None if caller.token is None else caller.token.id,
        "roles": sorted(caller.roles),
    }
    if caller.may("read"):
        told |= {
            "version": caller.tenant.version,
            "subscriptions": len(caller.tenant.live),
            "left_out": len(caller.tenant.bad),
            "history": caller.state.settings.history,
        }
    return as_json(told)
