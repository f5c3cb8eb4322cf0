"""What pages ask for after they were drawn, as JSON: a draft's mistakes and tree, figures.

These are of the pages, not of the service's interface: they are not in its description, and change
with the pages.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

import bittern
from bittern.catalog.rows import Door, values_of
from bittern.engine.backtest.result import json_value
from bittern.errors import BadSubscription, BitternError, EventError
from bittern.options import one_of
from bittern.service.console.drawing import ROOT
from bittern.service.console.filing import filing_of
from bittern.service.console.pictures import histogram
from bittern.service.console.recent import SAMPLE, attributes, last_events
from bittern.service.http import previews
from bittern.service.http.access import Caller, MayRead, MaySubscribe
from bittern.service.http.answers import as_json, explanation_json
from bittern.service.http.bodies import read_object
from bittern.service.http.importing import load_rules, previewed
from bittern.service.http.problems import Problem

if TYPE_CHECKING:
    from bittern.service.http.tenants import Tenant

router = APIRouter(prefix=f"{ROOT}/api", include_in_schema=False)

_MOST_NAMES = 12
#: Drafts that are looked at at the same time, in one process.
_turns = asyncio.Semaphore(2)


@router.post("/draft")
async def draft(request: Request, caller: MayRead) -> Response:
    """A draft and an event: every mistake, the tree, and how the draft would be indexed."""
    given = await read_object(request, caller, "expression", "event", "filing")
    expression, event = _text(given, "expression"), _text(given, "event")
    async with _turns:
        told = await caller.state.run(
            _looked_at, caller.tenant, expression, event, bool(given.get("filing"))
        )
    return as_json(told)


def _looked_at(tenant: Tenant, expression: str, event: str, filing: bool) -> dict[str, Any]:  # noqa: FBT001
    catalog = tenant.catalog
    told: dict[str, Any] = {"errors": [], "event_error": None}
    told |= {"matched": None, "tree": None, "filing": None}
    door = Door(catalog.allows_quantifiers, catalog.functions, lambda: set(catalog.sets))
    found = door.check(values_of({"id": "draft", "expression": expression}))
    if isinstance(found, BadSubscription):
        return told | {"errors": [{"position": found.position, "message": found.message}]}
    try:
        if event.strip():
            explained = explanation_json(
                bittern.explain(tenant.live, event, "draft", draft=expression)
            )
            told |= {"matched": explained["matched"], "tree": explained["tree"]}
    except EventError as wrong:
        told |= {"event_error": str(wrong)}
    if filing:
        told |= {"filing": _filing(tenant, expression)}
    return told


def _filing(tenant: Tenant, expression: str) -> dict[str, Any] | None:
    """How it would be indexed; None if only Spark could match it."""
    _, sets = tenant.live.sealed_with_sets()
    try:
        found = filing_of(expression, last_events(tenant, SAMPLE), sets)
    except BitternError as wrong:
        return {"problem": str(wrong)}
    return found._asdict() | {"subscriptions": len(tenant.live)}


@router.get("/attributes")
async def attribute_names(
    caller: MayRead, start: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Names of attributes that begin with a text, or have it inside."""
    names = await caller.state.run(attributes, caller.tenant, start, _MOST_NAMES)
    return as_json({"names": names})


@router.get("/event")
async def newest_event(caller: MayRead) -> Response:
    """The newest event of the journal, to try a draft on."""
    texts = await caller.state.run(last_events, caller.tenant)
    return as_json({"event": texts[-1] if texts else None})


@router.post("/hours")
async def hours_picture(request: Request, caller: MayRead) -> Response:
    """The histogram of a backtest's hours, as SVG."""
    given = await read_object(request, caller, "hours")
    rows = given.get("hours")
    if not isinstance(rows, list):
        raise Problem(422, "bad-request", "hours must be a list")
    try:
        values = [
            (str(row["start"])[:16].replace("T", " "), float(row["events"]), float(row["matches"]))
            for row in rows
        ]
    except (TypeError, KeyError, ValueError, OverflowError):
        raise Problem(422, "bad-request", "hours must be those of a backtest") from None
    return Response(histogram(values, "matches per hour (UTC)"), media_type="image/svg+xml")


@router.get("/pulse")
async def pulse(caller: MayRead) -> Response:
    """Counters as they are now: the page takes differences. Those of the last batch come along."""
    tenant = caller.tenant
    span = await caller.state.run(tenant.journal.span)
    last = tenant.live.last_statistics
    return as_json(
        {
            "logged": span.last,
            "version": tenant.version,
            "subscriptions": len(tenant.live),
            "last": {name: json_value(value) for name, value in last.items()},
        }
    )


@router.post("/preview")
async def preview(request: Request, caller: MayRead) -> Response:
    """What a file would become."""
    form, text, options = await _file(request, caller)
    found = await _previewed(caller, form, text, options)
    rows = [each._asdict() for each in found.rows]
    return as_json({"good": found.good, "bad": found.bad, "rows": rows})


@router.post("/import")
async def load(request: Request, caller: MaySubscribe) -> Response:
    """Load what is good of a file, as one version."""
    form, text, options = await _file(request, caller)
    found = await _previewed(caller, form, text, options)
    done = await load_rules(caller, form, text, options, found.good)
    told = {name: getattr(done, name) for name in ("version", "added", "changed", "unchanged")}
    return as_json(told | {"bad": len(done.bad)})


async def _previewed(
    caller: Caller, form: str, text: str, options: dict[str, Any]
) -> previews.Preview:
    catalog = caller.tenant.catalog
    return await caller.state.run(previewed, previews.preview, catalog, form, text, options)


async def _file(request: Request, caller: Any) -> tuple[str, str, dict[str, Any]]:
    given = await read_object(request, caller, "format", "text", "lists")
    form = one_of("format", given.get("format"), previews.FORMATS)
    options: dict[str, Any] = {}
    lists = given.get("lists")
    if isinstance(lists, str) and lists.strip() and form in previews.WITH_LISTS:
        options["lists"] = [name.strip() for name in lists.split(",") if name.strip()]
    return form, _text(given, "text"), options


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise Problem(422, "bad-request", f"{name} must be a text")
    return value
