"""The audit log over HTTP, and what webhooks could not deliver."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from bittern.service.http.access import MayAdminister, MayRead
from bittern.service.http.answers import as_json, as_time
from bittern.service.http.described import ok

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/audit", responses=ok("changes, newest first; an outcome of null is not known"))
async def list_changes(
    caller: MayAdminister,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="a number")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List who changed what, and what became of it."""
    found = await caller.state.run(caller.tenant.audit.entries, before, limit)
    told = [{**each._asdict(), "time": as_time(each.time)} for each in found]
    return as_json({"changes": told})


@router.get("/letters/dead", responses=ok("requests to webhooks that were given up on"))
async def list_dead_letters(
    caller: MayRead,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List what webhooks could not deliver, by the number of the event."""
    found = await caller.state.run(caller.tenant.letters.dead, after, limit)
    told = [{**each._asdict(), "time": as_time(each.time)} for each in found]
    return as_json({"letters": told})
