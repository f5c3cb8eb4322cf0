"""``POST /v1/backtest``: what a draft would have matched, over the journal or a file.

The journal has the time of every event, so matches are counted per hour without being told how.
Files are those that somebody who may write there has put into the folder ``backtest`` of the
service, below it one for each tenant: a name that leads out of it is refused.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from fastapi import APIRouter, Request, Response

import bittern
from bittern.engine.backtest.result import Backtest
from bittern.errors import OptionError
from bittern.options import whole_number
from bittern.service.http.access import MayRead
from bittern.service.http.answers import as_json
from bittern.service.http.bodies import read_object
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem

if TYPE_CHECKING:
    from bittern.service.http.tenants import Tenant

router = APIRouter(prefix="/v1", tags=["match"])

#: Events of the journal, unless the caller says otherwise, and at most.
LAST = 100_000
_MOST = 10_000_000
_AT_A_TIME = 10_000
_MOST_SAMPLES = 1_000
#: Backtests at once in one process, and seconds that one may take.
_AT_ONCE = 2
_SECONDS = 120.0
#: The columns of what is read from the journal: an event, and when it was logged.
_EVENT, _LOGGED = "event", "bittern_logged"
_FOLDER = "backtest"

_ASKED = {
    "type": "object",
    "additionalProperties": False,
    "required": ["expression"],
    "properties": {
        "expression": {"type": "string"},
        "last": {"type": "integer", "minimum": 1, "maximum": _MOST},
        "file": {"type": ["string", "null"]},
        "time": {"type": ["string", "null"]},
        "samples": {"type": "integer", "minimum": 0, "maximum": _MOST_SAMPLES},
    },
}
_turns = asyncio.Semaphore(_AT_ONCE)


@router.post("/backtest", openapi_extra=body(_ASKED), responses=ok("what it would have matched"))
async def backtest(request: Request, caller: MayRead) -> Response:
    """Try a draft on the last events, or on a file or folder of the service's.

    The answer has counts, matches per hour, samples, and of each predicate how many events it
    rejects. ``time`` is the attribute or term that is the time of an event (of the journal: when it
    was logged, unless said otherwise).
    """
    given = await read_object(request, caller, "expression", "last", "file", "time", "samples")
    expression, file, time = (given.get(name) for name in ("expression", "file", "time"))
    if not isinstance(expression, str):
        raise Problem(422, "bad-request", "expression must be a text")
    for name, value in (("file", file), ("time", time)):
        if not isinstance(value, str | None):
            raise Problem(422, "bad-request", f"{name} must be a text or null")
    last = whole_number("last", given.get("last", LAST), 1, _MOST)
    samples = whole_number("samples", given.get("samples", 10), 0, _MOST_SAMPLES)
    path = None if file is None else file_of(caller.state.settings.folder, caller.tenant.name, file)
    async with _turns:
        found = await caller.state.run(run, caller.tenant, expression, path, last, time, samples)
    return as_json(found.as_json())


def run(
    tenant: Tenant, expression: str, path: Path | None, last: int, time: str | None, samples: int
) -> Backtest:
    """Make a backtest; for a thread."""
    deadline = clock.monotonic() + _SECONDS

    def check(_stage: str, done: int, _total: int) -> None:
        if clock.monotonic() > deadline:
            said = f"it took too long: {done:,} events were read. Ask for fewer"
            raise Problem(503, "too-slow", said)

    _, sets = tenant.live.sealed_with_sets()
    if path is not None:
        return bittern.backtest(
            path, expression, time=time, samples=samples, sets=sets, progress=check
        )
    found = bittern.backtest(
        _journal(tenant, last),
        expression,
        time=time or _LOGGED,
        samples=samples,
        json=_EVENT,
        sets=sets,
        progress=check,
    )
    return found.with_samples(_EVENT)


def _journal(tenant: Tenant, count: int) -> Iterator[pa.Table]:
    """The last events of the journal, in order."""
    last = tenant.journal.span().last
    after = max(0, last - count)
    while after < last:
        some = tenant.journal.events(after, _AT_A_TIME, until=last)
        if not some:
            return
        after = some[-1].number
        yield pa.table(
            {
                _EVENT: pa.array([each.event for each in some], pa.large_string()),
                _LOGGED: pa.array([each.time for each in some], pa.timestamp("us", "UTC")),
            }
        )


def file_of(folder: Path, tenant: str, name: str) -> Path:
    """A file or folder of a tenant by its name; ``OptionError`` if it is not one of them."""
    own = (folder / _FOLDER / tenant).resolve()
    said = f"there is no file or folder {name!r:.100} to test on: put it into {_FOLDER}/{tenant}"
    if not name or "\0" in name:
        raise OptionError(said)
    try:
        path = (own / name).resolve()
        is_there = path.is_relative_to(own) and path.exists()
    except (OSError, ValueError, RuntimeError):
        is_there = False
    if not is_there:
        raise OptionError(said)
    return path


def files_of(folder: Path, tenant: str) -> list[str]:
    """The names of files and folders that a tenant may test on."""
    try:
        found = [each.name for each in (folder / _FOLDER / tenant).iterdir()]
    except OSError:
        return []
    return sorted(name for name in found if not name.startswith("."))
