"""Publishing events over HTTP, and looking at the log of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from bittern.service.http.access import MayPublish, MayRead
from bittern.service.http.answers import as_json, as_time, listed
from bittern.service.http.bodies import NDJSON, as_text, lines_of, media_type, read_body
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem

router = APIRouter(prefix="/v1", tags=["events"])

_MOST_EVENTS = 100_000


@router.post(
    "/events",
    openapi_extra=body("Event", "application/json", *NDJSON[:1]),
    responses=ok("the numbers of the events, and how much they matched"),
)
async def publish_events(
    request: Request,
    caller: MayPublish,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> Response:
    """Publish an event, or one a line. Once it is answered, no event is lost and none skipped.

    Events of one request get consecutive numbers. Those that cannot be read are not published, and
    listed in ``rejects``. A request that is repeated with its ``Idempotency-Key`` publishes nothing
    again.
    """
    content = await read_body(request, caller)
    kind = media_type(request)
    if kind in NDJSON:
        events = lines_of(content)
    elif kind == "application/json":
        events = [as_text(content)]
    else:
        said = f"send application/json or {NDJSON[0]}, not {kind!r:.100}"
        raise Problem(415, "unsupported-media-type", said)
    if not events or len(events) > _MOST_EVENTS:
        said = f"send between one event and {_MOST_EVENTS:,}"
        raise Problem(413 if events else 422, "too-large" if events else "bad-event", said)
    answer = await caller.tenant.publisher.publish(caller.state, events, idempotency_key)
    if "problem" in answer:
        raise Problem(409, "key-is-taken", answer["problem"])
    if not answer["accepted"]:
        raise Problem(
            422,
            "bad-event",
            f"none of the events can be read: {answer['rejects'][0]['error']}",
            errors=answer["rejects"],
        )
    return as_json(answer)


@router.get("/events", responses=ok("events in the order of their numbers"))
async def list_events(
    caller: MayRead,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Response:
    """Read the log of events that are kept."""
    journal = caller.tenant.journal
    found = await caller.state.run(journal.events, after, limit)
    span = await caller.state.run(journal.span)
    rows = [
        f'{{"number":{each.number},"time":"{as_time(each.time)}","version":{each.version},'
        f'"event":{each.event}}}'
        for each in found
    ]
    told = f'{{"first":{span.first},"last":{span.last},"events":{listed(rows)}}}'
    return Response(told.encode("utf-8", "replace"), media_type="application/json")
