"""Versions over HTTP: what a subscription was, what two versions differ in, undoing a change."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from bittern.catalog import conditional
from bittern.catalog.conditional import ABSENT_YET
from bittern.catalog.rows import FIELDS
from bittern.errors import OptionError, UnknownSubscriptionError
from bittern.options import whole_number
from bittern.service.http.access import MayRead, MaySubscribe
from bittern.service.http.answers import as_json, rows_json, subscription_json
from bittern.service.http.bodies import read_object
from bittern.service.http.changes import changed, check_room
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem

router = APIRouter(prefix="/v1", tags=["versions"])

_UNDO = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "version": {"type": ["integer", "null"]}},
}


@router.get("/versions", responses=ok("the last versions, newest first"))
async def list_versions(
    caller: MayRead, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> Response:
    """List the last versions: when each was made, and how many subscriptions it changed."""
    found = await caller.state.run(caller.tenant.catalog.versions, limit)
    return as_json({"versions": [each._asdict() for each in found]})


@router.get("/changes", responses=ok("what was put and removed between two versions"))
async def compare_versions(
    caller: MayRead,
    since: Annotated[int, Query(ge=0, le=2**53)],
    until: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """Compare two versions: subscriptions put, with the forms they had before, and removed."""
    catalog = caller.tenant.catalog

    def compare() -> dict[str, Any]:
        changes = catalog.changes(since, until)
        put, removed = rows_json(changes.put.slice(0, limit)), changes.removed[:limit]
        before: dict[str, Any] = {}
        for id_ in [*(row["id"] for row in put), *removed]:
            try:
                before[id_] = subscription_json(catalog.get(id_, since))
            except UnknownSubscriptionError:
                before[id_] = None
        return {
            "since": since,
            "until": changes.version,
            "put": [{"before": before[row["id"]], "after": row} for row in put],
            "removed": [{"before": before[id_], "id": id_} for id_ in removed],
            "more": changes.put.num_rows > limit or len(changes.removed) > limit,
        }

    return as_json(await caller.state.run(compare))


@router.get("/history/{id:path}", responses=ok("every form that it has had, oldest first"))
async def read_history(caller: MayRead, id: str) -> Response:  # noqa: A002
    """Read every form of a subscription that is not forgotten, removed ones too."""
    if "\0" in id:
        raise Problem(400, "bad-request", "U+0000 is in no id")
    found = await caller.state.run(caller.tenant.catalog.history, id)
    if not found:
        raise UnknownSubscriptionError(f"there was never a subscription {id!r:.520}")
    return as_json({"forms": [subscription_json(each) for each in found]})


@router.post("/undo", openapi_extra=body(_UNDO), responses=ok("the subscription, or that it went"))
async def undo(request: Request, caller: MaySubscribe) -> Response:
    """Give a subscription the form it had in a version, or the one before its last change.

    If it was not there then, it is removed.
    """
    given = await read_object(request, caller, "id", "version")
    id_, version = given.get("id"), given.get("version")
    if not isinstance(id_, str) or "\0" in id_:
        raise Problem(422, "bad-request", "id must be the id of a subscription")
    if version is not None:
        whole_number("version", version, 0, 2**53)
    catalog = caller.tenant.catalog

    def back() -> tuple[int, Any]:
        forms = catalog.history(id_)
        if not forms:
            raise UnknownSubscriptionError(f"there was never a subscription {id_!r:.520}")
        at, last = version, forms[-1]
        now = ABSENT_YET if last.until is not None else last.version
        if at is None:
            at = (last.version if last.until is None else last.until) - 1  # type: ignore[operator]
        elif at > catalog.version():
            raise OptionError(f"there is no version {at} yet")
        then = [form for form in forms if form.version <= at < (form.until or at + 1)]  # type: ignore[operator]
        if not then:
            return (conditional.remove(catalog, id_, now) if now else 0), None
        if not now:
            check_room(caller, 1)
        fields = {name: getattr(then[0], name) for name in FIELDS}
        made, _ = conditional.put(catalog, fields, now)
        return made, catalog.get(id_, made)

    found = await changed(caller, "undo", id_, back)
    if found is None:
        return as_json({"id": id_, "removed": True})
    return as_json(subscription_json(found), headers={"ETag": f'"{found.version}"'})
