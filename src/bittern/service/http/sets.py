"""Named sets over HTTP: define one, change some of its members, look into it, remove it."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from bittern.service.http.access import MayRead, MaySubscribe
from bittern.service.http.answers import as_json
from bittern.service.http.bodies import read_object
from bittern.service.http.changes import changed
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem

router = APIRouter(prefix="/v1/sets", tags=["sets"])

SetName = Annotated[str, Path(min_length=1, max_length=200)]
_MEMBERS = {"type": "array", "items": {"type": ["number", "string", "boolean"]}}


def _members(*names: str) -> dict[str, Any]:
    properties = dict.fromkeys(names, _MEMBERS)
    return body({"type": "object", "additionalProperties": False, "properties": properties})


@router.get("", responses=ok("all sets, with the versions that gave them their form"))
async def list_sets(caller: MayRead) -> Response:
    """List the named sets."""
    found = await caller.state.run(caller.tenant.catalog.sets.versions)
    return as_json({"sets": [{"name": name, **own._asdict()} for name, own in found.items()]})


@router.get("/{name}", responses=ok("the first members"))
async def read_set(
    caller: MayRead,
    name: SetName,
    version: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    limit: Annotated[int, Query(ge=0, le=100_000)] = 1000,
) -> Response:
    """Read a set's first members, as it is or was in a version."""
    members = await caller.state.run(caller.tenant.catalog.sets.members, name, version)
    some = list(itertools.islice(members, limit))
    return as_json({"name": name, "size": len(members), "members": some})


@router.put("/{name}", openapi_extra=_members("members"), responses=ok("the version that has it"))
async def put_set(request: Request, caller: MaySubscribe, name: SetName) -> Response:
    """Define a set, or replace all its members."""
    given = await read_object(request, caller, "members")
    members = _listed(given, "members")

    def put() -> tuple[int, int]:
        version = caller.tenant.catalog.sets.put(name, members)
        return version, version

    return as_json({"version": await changed(caller, "put set", name, put)})


@router.patch(
    "/{name}", openapi_extra=_members("add", "remove"), responses=ok("the version that has it")
)
async def patch_set(request: Request, caller: MaySubscribe, name: SetName) -> Response:
    """Add members to a set, and remove others; those it does not have are ignored."""
    given = await read_object(request, caller, "add", "remove")
    add, remove = _listed(given, "add"), _listed(given, "remove")

    def patch() -> tuple[int, int]:
        sets = caller.tenant.catalog.sets
        version = sets.add(name, add) if add or not remove else 0
        version = max(version, sets.remove(name, remove) if remove else 0)
        return version, version

    return as_json({"version": await changed(caller, "patch set", name, patch)})


@router.delete("/{name}", responses=ok("the version that no longer has it"))
async def delete_set(caller: MaySubscribe, name: SetName) -> Response:
    """Remove a set; refused while a subscription names it."""

    def drop() -> tuple[int, int]:
        version = caller.tenant.catalog.sets.drop(name)
        return version, version

    return as_json({"version": await changed(caller, "delete set", name, drop)})


def _listed(given: dict[str, Any], name: str) -> list[Any]:
    members = given.get(name, [])
    if not isinstance(members, list):
        raise Problem(422, "bad-request", f"{name} must be a list")
    return members
