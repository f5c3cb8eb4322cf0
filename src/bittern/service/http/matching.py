"""Matching without any state: one event, lines of events, or an Arrow stream.

One JSON event is matched in the event loop, as that takes microseconds; the rest in a thread. Most
requests are one event without any options: those come here straight from the entrance
(``answer_one``), since routing and reading options takes ten times as long as matching. The
answer to one event is an object, to lines it is lines, and to a stream it is a stream::

    {"price": 5}                      {"version": 17, "matches": ["s1", "s7"]}

    {"price": 5}                      {"event": 0, "subscriptions": ["s1", "s7"]}
    {"price": "                       {"event": 1, "subscriptions": []}
                                      {"event": 1, "error": "not JSON: ..."}

An event that cannot be read does not stop the others: what is wrong stands behind the matches, in a
stream in the schema's metadata (``rejects``).
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pyarrow.ipc
from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute

import bittern
from bittern.engine.live.matcher import LiveMatcher
from bittern.model.events.json.lines import texts_of
from bittern.model.matches import Matches
from bittern.service.http.access import Caller, MayRead, caller_of
from bittern.service.http.answers import as_json, explanation_json, rows_json
from bittern.service.http.arrow_events import read_arrow
from bittern.service.http.bodies import ARROW, NDJSON, as_text, media_type, read_body
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem
from bittern.service.tables import json_lines

if TYPE_CHECKING:
    from starlette.types import Scope

router = APIRouter(prefix="/v1", tags=["match"])

#: A longer event is matched in a thread.
_SHORT = 1 << 16
_EXPLAINED = 20
_MOST_EVENTS = 2_000_000


@router.post(
    "/match",
    openapi_extra=body("Event", "application/json", *NDJSON[:1], ARROW),
    responses=ok("the subscriptions of each event", 200, "application/json", *NDJSON[:1], ARROW),
)
async def match_events(
    request: Request,
    caller: MayRead,
    limit: Annotated[int | None, Query(ge=1, le=2**31, description="the k best by weight")] = None,
    full: Annotated[bool, Query(description="whole subscriptions, not only ids")] = False,  # noqa: FBT002
    explain: Annotated[list[str] | None, Query(max_length=_EXPLAINED)] = None,
) -> Response:
    """Match events against the newest version, without leaving a trace.

    ``full`` and ``explain`` (ids of subscriptions, each explained) are for a single event.
    """
    content = await read_body(request, caller)
    kind = media_type(request)
    live = caller.tenant.live
    metrics = caller.state.metrics
    if kind == "application/json":
        text = as_text(content)
        ids, version = await _match_one(caller, text, limit)
        if not full and not explain:
            return _told(ids, version)
        return as_json(await caller.state.run(_in_full, caller, text, ids, full, explain or []))
    if full or explain:
        raise Problem(400, "bad-request", "full and explain are for a single JSON event")
    if kind in NDJSON:
        work, answer = _match_lines, NDJSON[0]
    elif kind == ARROW:
        work, answer = _match_arrow, ARROW
    else:
        known = ", ".join(("application/json", NDJSON[0], ARROW))
        raise Problem(415, "unsupported-media-type", f"send {known}, not {kind!r:.100}")
    answered, n_events = await caller.state.run(work, live, content, limit)
    metrics.matched.inc(n_events)
    return Response(answered, media_type=answer)


_JSON = {"Content-Type": "application/json"}
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def is_one(scope: Scope) -> bool:
    """Whether a request is one event to be matched, without options: ``answer_one`` answers it."""
    if scope["path"] != "/v1/match" or scope["method"] != "POST" or scope["query_string"]:
        return False
    return media_type(Request(scope)) == "application/json"


async def answer_one(request: Request) -> Response:
    """Answer a request that ``is_one``, as ``match_events`` does."""
    request.scope["route"] = _ONE
    caller = caller_of(request)
    caller.check("read")
    ids, version = await _match_one(caller, as_text(await read_body(request, caller)), None)
    return _told(ids, version)


#: What metrics call the route of ``answer_one``.
_ONE = next(route for route in router.routes if isinstance(route, APIRoute))


async def _match_one(caller: Caller, text: str, limit: int | None) -> tuple[list[Any], int]:
    """The ids that one event matches, and the version that was matched, or an earlier one."""
    live = caller.tenant.live
    version = live.version
    if live.joins is None and len(text) <= _SHORT:
        found = live.match(text, limit=limit)
    else:
        found = await caller.state.run(live.match, text, limit=limit, remember=False)
    caller.state.metrics.matched.inc()
    if found.rejects:
        raise Problem(422, "bad-event", f"the event cannot be read: {found.rejects[0][1]}")
    return found.ids(0), version


def _told(ids: list[Any], version: int) -> Response:
    told = _COMPACT.encode(ids)
    return Response(f'{{"version":{version},"matches":{told}}}', 200, _JSON)


def _match_lines(live: LiveMatcher, content: bytes, limit: int | None) -> tuple[bytes, int]:
    as_text(content)  # UTF-8, or a problem
    lines = texts_of(content)
    if len(lines) > _MOST_EVENTS:
        raise Problem(413, "too-large", f"send at most {_MOST_EVENTS:,} events at a time")
    found = live.match(lines, limit=limit, remember=False)
    table = found.ordered().to_arrow()
    told = bytes(json_lines(table.column(0), table.column(1), flat=False))
    wrong = (json.dumps({"event": row, "error": reason}) for row, reason in found.rejects)
    return told + "".join(f"{line}\n" for line in wrong).encode(), len(lines)


def _match_arrow(live: LiveMatcher, content: bytes, limit: int | None) -> tuple[bytes, int]:
    events = read_arrow(content)
    found: Matches = live.match(events, limit=limit, remember=False)
    table = found.ordered().to_arrow()
    rejects = json.dumps([{"event": row, "error": why} for row, why in found.rejects])
    table = table.replace_schema_metadata({"version": str(live.version), "rejects": rejects})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue(), events.num_rows


def _in_full(
    caller: Caller,
    text: str,
    ids: list[Any],
    full: bool,  # noqa: FBT001
    explain: list[str],
) -> dict[str, Any]:
    """The answer to one event with whole subscriptions, and with explanations of some."""
    tenant = caller.tenant
    with tenant.followed.lock:  # one version throughout
        live, version = tenant.live, tenant.version
        told: dict[str, Any] = {"version": version, "matches": ids}
        if full:
            rows = rows_json(tenant.catalog.details(ids, version))
            for row in rows:
                row["expression"] = live.expression(row["id"]) if row["id"] in live else None
            told["matches"] = rows
        if explain:
            told["explanations"] = [
                explanation_json(bittern.explain(live, text, id_)) for id_ in explain
            ]
    return told
