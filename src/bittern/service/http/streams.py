"""What matched, as it comes: server-sent events, or a request that waits.

::

    GET /v1/subscribers/ann/matches                      Accept: text/event-stream
    Last-Event-ID: 17                                    continue behind event 17

    id: 18
    data: {"number":18,"time":"...","version":4711,"subscriptions":["s1"],"event":{"price":5}}

Without a number it begins with the oldest event that is kept, so that nobody misses what came
before the first connection; ``after=now`` begins with the next. Where events behind the number are
forgotten already, an event ``gap`` says so. Without ``Accept`` the answer is JSON, as soon as there
is something or ``wait`` seconds are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event

from bittern.catalog.journal.journal import LoggedMatch
from bittern.service.http.access import Caller, MayRead, MaySubscribe
from bittern.service.http.answers import as_json, listed, match_json
from bittern.service.http.described import number, ok
from bittern.service.http.problems import Problem
from bittern.service.http.tails import Stream

router = APIRouter(prefix="/v1", tags=["matches"])

#: Seconds between two signs of life.
HEARTBEAT = 15.0
_ROWS = 500
_STREAM = "text/event-stream"
#: The most streams of a tenant in one process.
_MOST_STREAMS = 5_000

SubscriberName = Annotated[str, Path(min_length=1, max_length=500)]
AfterNumber = Annotated[str, Query(max_length=20, description="a number, or now")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait, without a stream")]
Limit = Annotated[int, Query(ge=1, le=1000)]
LastEventId = Annotated[str | None, Header(max_length=20)]


@router.get(
    "/subscribers/{name}/matches",
    responses=ok("what matched for a subscriber", 200, "application/json", _STREAM),
)
async def subscriber_matches(
    request: Request,
    caller: MaySubscribe,
    name: SubscriberName,
    after: AfterNumber = "0",
    wait: Wait = 0,
    limit: Limit = 100,
    last_event_id: LastEventId = None,
) -> Response:
    """Read what events matched for a subscriber, as a stream or with a waiting request."""
    return await _answer(request, caller, name, (last_event_id or after, wait, limit), _keep_all)


@router.get(
    "/matches", responses=ok("what matched in the tenant", 200, "application/json", _STREAM)
)
async def all_matches(
    request: Request,
    caller: MayRead,
    after: AfterNumber = "now",
    wait: Wait = 0,
    limit: Limit = 100,
    subscription: Annotated[str | None, Query(max_length=500)] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Read what events matched for all subscribers, one row for each; from now on if not said."""

    def keep(row: LoggedMatch) -> bool:
        return subscription is None or _quoted(subscription) in row.subscriptions

    return await _answer(request, caller, None, (last_event_id or after, wait, limit), keep)


def _keep_all(_row: LoggedMatch) -> bool:
    return True


def _quoted(id_: str) -> str:
    """An id as it stands in the JSON of a row."""
    return listed([as_json(id_).body.decode()])[1:-1]  # type: ignore[union-attr]


Keep = Callable[[LoggedMatch], bool]


async def _answer(
    request: Request,
    caller: Caller,
    subscriber: str | None,
    asked: tuple[str, float, int],
    keep: Keep,
) -> Response:
    after, wait, limit = asked
    if subscriber is not None and "\0" in subscriber:
        raise Problem(400, "bad-request", "U+0000 is in no name")
    span = await caller.state.run(caller.tenant.journal.span)
    begin = span.last if after == "now" else number("after", after)
    if _STREAM in request.headers.get("accept", ""):
        if caller.tenant.tail.n_streams >= _MOST_STREAMS:
            said = f"{_MOST_STREAMS:,} streams are open already"
            raise Problem(503, "busy", said, headers={"Retry-After": "5"})
        rows = _events(caller, subscriber, begin, keep)
        return EventSourceResponse(rows, headers={"Cache-Control": "no-store"})
    rows_read, last = await _rows_after(caller, subscriber, begin, limit, keep, wait)
    told = [_as_text(row, subscriber) for row in rows_read]
    gap = "true" if begin < span.first - 1 else "false"
    text = f'{{"matches":{listed(told)},"next":{last},"gap":{gap}}}'
    return Response(text.encode("utf-8", "replace"), media_type="application/json")


async def _rows_after(
    caller: Caller, subscriber: str | None, after: int, limit: int, keep: Keep, wait: float
) -> tuple[list[LoggedMatch], int]:
    """The rows behind a number, as soon as there are some, and the number to go on from."""
    run, tenant = caller.state.run, caller.tenant
    stream, _ = await tenant.tail.open(subscriber, run)
    deadline = asyncio.get_running_loop().time() + wait
    try:
        while True:
            stream.take()
            last = (await run(tenant.journal.span)).last
            rows = await _whole_events(caller, subscriber, after, limit, last)
            kept = list(filter(keep, rows))
            after = rows[-1].number if len(rows) >= limit else max(after, last)
            left = deadline - asyncio.get_running_loop().time()
            if kept or left <= 0 or caller.state.stopping.is_set():
                return kept, after
            if len(rows) < limit:
                await _wait(caller, stream, left)
    finally:
        tenant.tail.close(stream)


async def _whole_events(
    caller: Caller, subscriber: str | None, after: int, limit: int, until: int
) -> list[LoggedMatch]:
    """Some ``limit`` rows behind a number: all rows of an event, or none of them."""
    journal, run = caller.tenant.journal, caller.state.run
    rows: list[LoggedMatch] = await run(journal.matches, subscriber, after, limit, until)
    if subscriber is None and len(rows) >= limit:
        last = rows[-1].number
        head = [row for row in rows if row.number < last]
        rows = head + await run(journal.matches, None, last - 1, None, last)
    return rows


async def _wait(caller: Caller, stream: Stream, seconds: float) -> bool:
    """Wait for rows, or for the service to stop; False if the time is over."""
    return not caller.state.stopping.is_set() and await stream.wait(seconds)


async def _events(
    caller: Caller, subscriber: str | None, after: int, keep: Keep
) -> AsyncIterator[bytes]:
    """The stream itself, until the service stops or the caller goes."""
    state, tenant = caller.state, caller.tenant
    stream, _ = await tenant.tail.open(subscriber, state.run)
    state.metrics.streams.inc()
    try:
        yield format_sse_event(comment="bittern", retry=1000)
        span = await state.run(tenant.journal.span)
        if after < span.first - 1:
            told = f'{{"from":{after + 1},"to":{span.first - 1}}}'
            yield format_sse_event(event="gap", data_str=told)
        while not state.stopping.is_set():
            last = tenant.tail.last  # what comes behind it is given to the stream
            while after < last:
                rows = await _whole_events(caller, subscriber, after, _ROWS, last)
                after = rows[-1].number if len(rows) >= _ROWS else last
                if rows:
                    yield _as_events(rows, subscriber, keep)
            while not stream.is_late and not state.stopping.is_set():
                rows = [row for row in stream.take() if row.number > after]
                if rows:
                    after = rows[-1].number
                    yield _as_events(rows, subscriber, keep)
                elif not await _wait(caller, stream, HEARTBEAT) and not state.stopping.is_set():
                    if not caller_is_good(caller):
                        return
                    yield format_sse_event(comment="still here")
            stream.is_late = False
            stream.take()
    finally:
        state.metrics.streams.dec()
        tenant.tail.close(stream)


def caller_is_good(caller: Caller) -> bool:
    """Whether a stream's token is still there; one that was revoked is given nothing more."""
    return caller.token is None or caller.token.id in caller.tenant.all_tokens


def _as_events(rows: list[LoggedMatch], subscriber: str | None, keep: Keep) -> bytes:
    told = [
        format_sse_event(data_str=_as_text(row, subscriber), id=str(row.number))
        for row in rows
        if keep(row)
    ]
    return b"".join(told)


def _as_text(row: LoggedMatch, subscriber: str | None) -> str:
    whole = match_json(row.number, row.time, row.version, row.subscriptions, row.event)
    if subscriber is not None:
        return whole
    name = as_json(row.subscriber).body.decode()  # type: ignore[union-attr]
    return f'{{"subscriber":{name},{whole[1:]}'
