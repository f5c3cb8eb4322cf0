"""Subscriptions over HTTP: create, read, replace, patch, delete, list, load and check.

The tag of a subscription (``ETag``) is the version that gave it its form. With ``If-Match`` a
change is made only if nobody else has made one since.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response

from bittern.catalog import conditional
from bittern.catalog.catalog import TAKEN
from bittern.catalog.conditional import ABSENT_YET, ChangedMeanwhileError
from bittern.catalog.rows import FIELDS, Door, values_of
from bittern.catalog.searching import find
from bittern.errors import BadSubscription
from bittern.service.http.access import Caller, MayRead, MaySubscribe
from bittern.service.http.answers import as_json, rows_json, subscription_json
from bittern.service.http.bodies import (
    NDJSON,
    as_object,
    lines_of,
    media_type,
    only,
    read_body,
    read_object,
)
from bittern.service.http.changes import changed, check_room, check_room_for
from bittern.service.http.described import body, number, ok
from bittern.service.http.problems import Problem

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"])

AtVersion = Annotated[int | None, Query(ge=0, le=2**53, description="as of this version")]
IfMatch = Annotated[str | None, Header(max_length=40, description='the ETag, such as "17", or *')]
_CHECKED = 100_000  # subscriptions that are checked in one request


@router.get("", responses=ok("a page of subscriptions, in order of their ids"))
async def list_subscriptions(
    caller: MayRead,
    text: Annotated[str | None, Query(max_length=1000)] = None,
    subscriber: Annotated[str | None, Query(max_length=500)] = None,
    attribute: Annotated[str | None, Query(max_length=500)] = None,
    after: Annotated[str, Query(max_length=500, description="an id: begin behind it")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    version: AtVersion = None,
) -> Response:
    """List subscriptions, disabled ones too; search by text, subscriber and attribute."""
    for given in (text, subscriber, attribute, after):
        _check_text(given)
    page = await caller.state.run(
        find,
        caller.tenant.catalog,
        text=text,
        subscriber=subscriber,
        attribute=attribute,
        after=after,
        limit=limit,
        version=version,
    )
    rows = rows_json(page.rows)
    last = rows[-1]["id"] if rows and page.more else None
    return as_json({"subscriptions": rows, "next": last})


@router.post("", status_code=201, openapi_extra=body("Subscription"), responses=ok("made", 201))
async def create_subscription(request: Request, caller: MaySubscribe) -> Response:
    """Create a subscription; 409 if its id is taken."""
    given = await read_object(request, caller, *FIELDS)
    try:
        return await _put(caller, given, ABSENT_YET, "create")
    except ChangedMeanwhileError:
        raise Problem(409, "id-is-taken", TAKEN.split(":")[0]) from None


@router.post("/load", openapi_extra=body("Subscription", *NDJSON), responses=ok("what was done"))
async def load_subscriptions(
    request: Request,
    caller: MaySubscribe,
    mode: Annotated[str, Query(pattern="^(upsert|replace)$")] = "upsert",
    on_error: Annotated[str, Query(pattern="^(raise|skip)$")] = "raise",
) -> Response:
    """Load many subscriptions, one JSON object a line, as one version: all of them or none.

    With ``on_error=skip`` the good ones are loaded and the bad ones listed.
    """
    content = await read_body(request, caller)
    n_lines = content.count(b"\n") + (not content.endswith(b"\n"))

    def load() -> tuple[int, Any]:
        catalog = caller.tenant.catalog
        check_room(caller, n_lines - (catalog.count(all=True) if mode == "replace" else 0))
        with tempfile.TemporaryDirectory(prefix="bittern-load-") as folder:
            file = Path(folder) / "subscriptions.jsonl"
            file.write_bytes(content)
            done = catalog.load(file, mode=mode, on_error=on_error)
        return done.version, done

    done = await changed(caller, "load", f"{n_lines} lines, {mode}", load, is_long=True)
    told = {name: getattr(done, name) for name in ("version", "added", "changed", "removed")}
    bad = [_bad_json(each) for each in done.bad]
    return as_json({**told, "unchanged": done.unchanged, "bad": bad})


@router.post(
    "/validate",
    openapi_extra=body("Subscription", "application/json", *NDJSON),
    responses=ok("every mistake with its position; none if all are valid"),
)
async def validate_subscriptions(request: Request, caller: MayRead) -> Response:
    """Check one subscription, or one a line, without saving anything."""
    content = await read_body(request, caller)
    lines: list[str | bytes] = []
    lines += lines_of(content) if media_type(request) in NDJSON else [content]
    if len(lines) > _CHECKED:
        raise Problem(413, "too-large", f"send at most {_CHECKED:,} subscriptions at a time")

    def check() -> list[BadSubscription]:
        catalog = caller.tenant.catalog
        door = Door(catalog.allows_quantifiers, catalog.functions, lambda: set(catalog.sets))
        bad = []
        for place, line in enumerate(lines):
            given = as_object(line, f"line {place + 1}" if len(lines) > 1 else "the body")
            only(given, *FIELDS)
            found = door.check(values_of({"id": "draft", **given}))
            if isinstance(found, BadSubscription):
                bad.append(found)
        return bad

    bad = await caller.state.run(check)
    return as_json({"valid": not bad, "checked": len(lines), "errors": list(map(_bad_json, bad))})


@router.get("/{id:path}", responses=ok("the subscription"))
async def read_subscription(caller: MayRead, id: str, version: AtVersion = None) -> Response:  # noqa: A002
    """Read one subscription, as it is or as it was in a version."""
    _check_text(id)
    found = await caller.state.run(caller.tenant.catalog.get, id, version)
    return as_json(subscription_json(found), headers={"ETag": f'"{found.version}"'})


@router.put(
    "/{id:path}",
    openapi_extra=body("SubscriptionFields"),
    responses=ok("replaced") | ok("made", 201),
)
async def replace_subscription(
    request: Request,
    caller: MaySubscribe,
    id: str,  # noqa: A002
    if_match: IfMatch = None,
) -> Response:
    """Put a subscription: all of it is replaced, or made if it is not there."""
    given = await read_object(request, caller, *FIELDS)
    return await _put(caller, {**given, "id": _same_id(given, id)}, _expected(if_match), "replace")


@router.patch(
    "/{id:path}", openapi_extra=body("SubscriptionFields"), responses=ok("the subscription")
)
async def patch_subscription(
    request: Request,
    caller: MaySubscribe,
    id: str,  # noqa: A002
    if_match: IfMatch = None,
) -> Response:
    """Change the given fields of a subscription; null clears a field."""
    given = await read_object(request, caller, *FIELDS)
    _same_id(given, id)
    given.pop("id", None)
    expected = _expected(if_match)
    catalog = caller.tenant.catalog

    def patch() -> tuple[int, Any]:
        version = conditional.change(catalog, id, given, expected)
        return version, catalog.get(id, version)

    found = await changed(caller, "patch", id, patch)
    return as_json(subscription_json(found), headers={"ETag": f'"{found.version}"'})


@router.delete("/{id:path}", responses=ok("the version that no longer has it"))
async def delete_subscription(
    caller: MaySubscribe,
    id: str,  # noqa: A002
    if_match: IfMatch = None,
) -> Response:
    """Delete a subscription; earlier versions keep it, and undo brings it back."""
    _check_text(id)
    expected = _expected(if_match)

    def remove() -> tuple[int, int]:
        version = conditional.remove(caller.tenant.catalog, id, expected)
        return version, version

    return as_json({"version": await changed(caller, "delete", id, remove)})


async def _put(
    caller: Caller, given: dict[str, Any], expected: int | None, action: str
) -> Response:
    catalog = caller.tenant.catalog

    def put() -> tuple[int, Any]:
        check_room_for(caller, given.get("id"))
        version, is_new = conditional.put(catalog, given, expected)
        return version, (catalog.get(given["id"], version), is_new)

    found, is_new = await changed(caller, action, f"{given.get('id')!s:.500}", put)
    headers = {"ETag": f'"{found.version}"'}
    if is_new:
        headers["Location"] = f"/v1/subscriptions/{quote(found.id, safe='')}"
    return as_json(subscription_json(found), 201 if is_new else 200, headers)


def _same_id(given: dict[str, Any], id_: str) -> str:
    _check_text(id_)
    if str(given.get("id", id_)) != id_:
        raise Problem(422, "bad-request", "the id of the body is not that of the path")
    return id_


def _expected(if_match: str | None) -> int | None:
    """The version that an If-Match names; None: any."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    return number("If-Match", text)


def _check_text(text: str | None) -> None:
    if text is not None and "\0" in text:
        raise Problem(400, "bad-request", "U+0000 is in no id and no text of a catalog")


def _bad_json(bad: BadSubscription) -> dict[str, Any]:
    return {"id": bad.id, "position": bad.position, "message": bad.message}
