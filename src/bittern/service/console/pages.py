"""The pages and their addresses. ``mount`` puts them into the application of a service.

================================  ===============================================================
``/console/playground``           write a draft, see what it makes of an event and of the last ones
``/console/live``                 matches as they arrive
``/console/catalog``              search; ``/subscription`` one of them; ``/versions`` compare;
                                  ``/import`` load files; ``/extremes`` what never or always matches
``/console/index``                what the index is made of
``/console/pipelines``            what pipelines report
``/console/login``                a token, which is kept in a cookie that no script can read
================================  ===============================================================
"""

from __future__ import annotations

import difflib
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers

from bittern.catalog.searching import find
from bittern.errors import BitternError
from bittern.imports.formats import FORMATS as RULES
from bittern.service.console import asked, pictures
from bittern.service.console.drawing import HERE, ROOT, page, told, visitor
from bittern.service.console.figures import figures_of
from bittern.service.console.pictures import Bar
from bittern.service.console.pipelines import pipelines_in
from bittern.service.console.recent import extremes
from bittern.service.http import previews
from bittern.service.http.access import COOKIE, Caller, check_origin, identified
from bittern.service.http.answers import rows_json
from bittern.service.http.backtests import LAST, files_of
from bittern.service.http.problems import Problem
from bittern.service.http.state import ServiceState

router = APIRouter(include_in_schema=False)

_LONGEST_TOKEN = 4_096
_ROWS = 50
_SHOWN = 100
_COMPARED = 100

Text = Annotated[str, Query(max_length=1000)]


def mount(app: FastAPI, state: ServiceState) -> None:
    """Put all pages into an application."""
    assert app.state.service is state, "pages ask requests who they are"
    app.include_router(router)
    app.include_router(asked.router)
    app.mount(f"{ROOT}/static", StaticFiles(directory=HERE / "static"), name="console-static")


@router.get("/")
@router.get(ROOT)
async def front() -> Response:
    """The first page."""
    return RedirectResponse(f"{ROOT}/playground", 303)


@router.get(f"{ROOT}/login")
async def ask_token(request: Request) -> Response:
    """Ask for a token."""
    return page(request, None, "login", said="")


@router.post(f"{ROOT}/login")
async def take_token(request: Request) -> Response:
    """Keep a token in a cookie, if it is a good one."""
    state = request.app.state.service
    try:
        check_origin(request.headers)
        given = await _form(request)
        token = given.get("token", "").strip()
        bearer = Headers({"authorization": f"Bearer {token}"})
        await identified(state, bearer, None)
    except (Problem, UnicodeError, ValueError) as wrong:
        said = wrong.detail if isinstance(wrong, Problem) else "this is no token of this service"
        return page(request, None, "login", 403, said=said)
    answer = RedirectResponse(f"{ROOT}/playground", 303)
    answer.set_cookie(
        COOKIE,
        token,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post(f"{ROOT}/logout")
async def forget_token(request: Request) -> Response:
    """Forget the token."""
    check_origin(request.headers)
    answer = RedirectResponse(f"{ROOT}/login", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _LONGEST_TOKEN:
            raise Problem(413, "too-large", "this is no token of this service")
    return {name: values[0] for name, values in parse_qs(content.decode("ascii")).items()}


@router.get(f"{ROOT}/playground")
async def playground(request: Request, id: Text = "", event: Text = "") -> Response:  # noqa: A002
    """Write a draft; begin with a subscription that is there, or with nothing."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    found = None
    if id and "\0" not in id:
        found = await _asked(caller, caller.tenant.catalog.history, id)
    last = found[-1] if found and found[-1].until is None else None
    return page(
        request,
        caller,
        "playground",
        id=id,
        event=event,
        subscription=last,
        last=LAST,
        files=await _asked(caller, files_of, caller.state.settings.folder, caller.tenant.name),
    )


@router.get(f"{ROOT}/live")
async def live(request: Request, subscriber: Text = "", subscription: Text = "") -> Response:
    """Matches as they arrive."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    return page(request, caller, "live", subscriber=subscriber, subscription=subscription)


@router.get(f"{ROOT}/catalog")
async def catalog(
    request: Request, text: Text = "", attribute: Text = "", subscriber: Text = "", after: Text = ""
) -> Response:
    """Search the catalog."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    asked_for = {"text": text, "attribute": attribute, "subscriber": subscriber}
    if any("\0" in value for value in (*asked_for.values(), after)):
        return told(request, 400, "U+0000 is in no id and no text of a catalog")
    found = await _asked(
        caller,
        find,
        caller.tenant.catalog,
        text=text or None,
        attribute=attribute or None,
        subscriber=subscriber or None,
        after=after,
        limit=_ROWS,
    )
    rows = rows_json(found.rows)
    return page(
        request,
        caller,
        "catalog",
        rows=rows,
        asked=asked_for,
        after=after,
        next=rows[-1]["id"] if found.more and rows else None,
        bad=caller.tenant.bad,
        total=len(caller.tenant.live),
        version=caller.tenant.version,
    )


@router.get(f"{ROOT}/catalog/subscription")
async def subscription(request: Request, id: Text) -> Response:  # noqa: A002
    """One subscription with all its forms."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    forms = [] if "\0" in id else await _asked(caller, caller.tenant.catalog.history, id)
    if not forms:
        return told(request, 404, f"there was never a subscription {id!r:.520}")
    last = forms[-1]
    steps = list(zip([None, *forms], forms, strict=False))
    return page(
        request,
        caller,
        "catalog_subscription",
        id=id,
        last=last,
        is_there=last.until is None,
        bad=caller.tenant.bad.get(id),
        forms=[
            (form, [] if before is None else _difference(before, form)) for before, form in steps
        ][::-1],
    )


@router.get(f"{ROOT}/catalog/versions")
async def versions(
    request: Request,
    since: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    until: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Response:
    """The last versions, and what differs between two of them."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    own = caller.tenant.catalog
    listed = await _asked(caller, own.versions, 50)
    compared, said = None, ""
    if since is not None:
        try:
            compared = await _asked(caller, _compare, own, since, until)
        except BitternError as wrong:
            said = str(wrong)
    return page(
        request,
        caller,
        "catalog_versions",
        versions=listed,
        since=since,
        until=until,
        compared=compared,
        said=said,
    )


def _compare(own: Any, since: int, until: int | None) -> dict[str, Any]:
    changes = own.changes(since, until)
    rows = rows_json(changes.put.slice(0, _COMPARED))
    ids = [*(row["id"] for row in rows), *changes.removed[:_COMPARED]]
    before = {row["id"]: row for row in rows_json(own.details(ids, since))}
    texts = {id_: own.get(id_, since).expression for id_ in before}
    return {
        "since": since,
        "until": changes.version,
        "put": [(row, _pieces(texts.get(row["id"], ""), row["expression"])) for row in rows],
        "known": texts,
        "removed": [(id_, texts.get(id_, "")) for id_ in changes.removed[:_COMPARED]],
        "more": max(0, changes.put.num_rows - _COMPARED) + max(0, len(changes.removed) - _COMPARED),
    }


def _difference(before: Any, form: Any) -> list[tuple[str, str]]:
    return _pieces(before.expression, form.expression)


def _pieces(before: str, after: str) -> list[tuple[str, str]]:
    """The words of both texts: (same, gone or new; the words)."""
    if len(before) + len(after) > 20_000:
        return [("gone", before), ("new", after)]
    old, new = before.split(" "), after.split(" ")
    found: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(("same", " ".join(old[a:b])))
            continue
        if b > a:
            found.append(("gone", " ".join(old[a:b])))
        if d > c:
            found.append(("new", " ".join(new[c:d])))
    return found


@router.get(f"{ROOT}/catalog/import")
async def import_file(request: Request) -> Response:
    """Load a file, after a look at it."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    return page(
        request,
        caller,
        "catalog_import",
        own=previews.OWN,
        rules=RULES,
        with_lists=previews.WITH_LISTS,
    )


@router.get(f"{ROOT}/catalog/extremes")
async def never_or_always(request: Request) -> Response:
    """Which subscriptions match none of the last events, and which all."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    found = await _asked(caller, extremes, caller.tenant, _SHOWN)
    texts = {}
    for id_ in (*found.never, *found.always):
        if id_ in caller.tenant.live:
            texts[id_] = caller.tenant.live.expression(id_)
    return page(request, caller, "catalog_extremes", found=found, texts=texts)


@router.get(f"{ROOT}/index")
async def index(request: Request) -> Response:
    """What the index is made of."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    found = await _asked(caller, figures_of, caller.tenant)
    drawn = {
        "attributes": pictures.bars(
            [
                Bar(each.name, each.mentions, f"{each.mentions:,}", each.postings)
                for each in found.attributes
            ],
            "predicates by attribute; the part under which subscriptions are filed stands out",
        ),
        "lists": pictures.bars(
            [
                Bar(f"{each.attribute} {each.values}", each.length, f"{each.length:,}", each.exact)
                for each in found.lists
            ],
            "the longest lists of postings; the part for exactly this value stands out",
        ),
        "arrays": pictures.bars(
            [Bar(name, size, _bytes(size)) for name, size in found.arrays], "bytes by array"
        ),
        "predicates": pictures.bars(
            [Bar(name, count, f"{count:,}") for name, count in found.predicates[:_ROWS]],
            "predicates by operator",
        ),
        "segments": pictures.bars(
            [
                Bar(
                    "snapshot" if not place else f"delta {place}",
                    each.subscriptions,
                    f"{each.subscriptions:,}, {each.removed:,} removed",
                    each.removed,
                )
                for place, each in enumerate(found.segments)
            ],
            "subscriptions of the snapshot and of each delta; removed ones stand out",
        ),
    }
    return page(request, caller, "index", found=found, drawn=drawn)


def _bytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


@router.get(f"{ROOT}/pipelines")
async def pipelines(request: Request) -> Response:
    """What pipelines report."""
    caller = visitor(request)
    if isinstance(caller, Response):
        return caller
    folder = caller.state.settings.folder
    found = await _asked(caller, pipelines_in, folder, caller.tenant.name)
    drawn = {
        each.file: {
            "events": pictures.curve([own.events for own in each.batches], "events per batch"),
            "latency": pictures.curve(
                [own.latency for own in each.batches], "seconds that batches took"
            ),
            "lag": pictures.curve(
                [own.newest - own.version for own in each.batches], "versions behind"
            ),
        }
        for each in found
    }
    return page(request, caller, "pipelines", found=found, drawn=drawn, folder=folder)


async def _asked(caller: Caller, function: Any, *args: Any, **named: Any) -> Any:
    return await caller.state.run(function, *args, **named)
