"""Importing over HTTP: a file of subscriptions or of rules of other systems, looked at or loaded.

The formats and what rules become are those of ``bittern import``, and of the console's page.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from bittern.catalog.catalog import Loaded
from bittern.errors import BitternError, RuleError
from bittern.service.http import previews
from bittern.service.http.access import Caller, MaySubscribe
from bittern.service.http.answers import as_json
from bittern.service.http.bodies import as_text, read_body
from bittern.service.http.changes import changed, check_room
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem, problem_of
from bittern.service.import_rules import rule_options

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"])

_FORMATS = "|".join(previews.FORMATS)
ListNames = Annotated[
    str | None, Query(max_length=10_000, description="attributes that may hold lists, with commas")
]
FieldNames = Annotated[
    str | None, Query(max_length=10_000, description="where keywords of Sigma are searched")
]


@router.post(
    "/import",
    openapi_extra=body({"type": "string"}, "text/plain"),
    responses=ok("what was done, or would be"),
)
async def import_rules(
    request: Request,
    caller: MaySubscribe,
    format: Annotated[str, Query(pattern=f"^({_FORMATS})$")],  # noqa: A002  as bittern import
    on_error: Annotated[str, Query(pattern="^(raise|skip)$")] = "raise",
    dry_run: Annotated[bool, Query(description="only say what each would become")] = False,  # noqa: FBT002
    lists: ListNames = None,
    scope: Annotated[str | None, Query(pattern="^(MessageAttributes|MessageBody)$")] = None,
    fields: FieldNames = None,
) -> Response:
    """Turn a file of another system's rules into subscriptions, as one version: all or none.

    With ``on_error=skip`` the good ones are loaded and the others listed, each with its place.
    """
    text = as_text(await read_body(request, caller))
    options = rule_options(format, {"lists": lists, "scope": scope, "fields": fields})
    catalog = caller.tenant.catalog
    found = await caller.state.run(previewed, previews.preview, catalog, format, text, options)
    bad = [
        {"id": row.id, "position": row.position, "message": row.problem}
        for row in found.rows
        if row.problem is not None
    ]
    if dry_run:
        rows = [row._asdict() for row in found.rows]
        return as_json({"good": found.good, "bad": found.bad, "rows": rows})
    if found.bad and on_error == "raise":
        said = f"{found.bad:,} of {found.good + found.bad:,} cannot be imported"
        raise Problem(422, "bad-subscription", said, errors=bad, wrong=found.bad)
    done = await load_rules(caller, format, text, options, found.good)
    counts = {name: getattr(done, name) for name in ("version", "added", "changed", "unchanged")}
    return as_json({**counts, "bad": bad})


async def load_rules(
    caller: Caller, form: str, text: str, options: dict[str, Any], count: int
) -> Loaded:
    """Load what is good of a text, which has so many good ones, as one version."""

    def work() -> tuple[int, Loaded]:
        check_room(caller, count)
        done = previewed(previews.load, caller.tenant.catalog, form, text, options)
        return done.version, done

    return await changed(caller, "import", form, work, is_long=True)


def previewed(work: Any, *given: Any) -> Any:
    """Call what reads rules, and turn what is wrong with them into a problem."""
    try:
        return work(*given)
    except BitternError as wrong:
        raise problem_of(wrong) or Problem(400, "bad-request", str(wrong)) from None
    except (RuleError, UnicodeError) as wrong:
        raise Problem(422, "bad-request", str(wrong)) from None
