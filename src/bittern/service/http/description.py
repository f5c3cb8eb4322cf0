"""``/docs``: the OpenAPI description as a page, of this service's own HTML and without a script."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

from bittern.service.http.access import caller_of
from bittern.service.http.answers import as_json

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def description(request: Request) -> Response:
    """Describe the interface for programs."""
    caller_of(request)
    return as_json(request.app.openapi())


@router.get("/docs")
async def page(request: Request) -> Response:
    """Describe the interface for people."""
    caller_of(request)
    return Response(_page(request.app.openapi()), media_type="text/html")


def _page(told: dict[str, Any]) -> str:
    """All operations by what they are about, with their parameters and bodies."""
    by_tag: dict[str, list[str]] = defaultdict(list)
    for path, operations in told["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["other"])[0]
            by_tag[tag].append(_operation(method, path, operation))
    parts = [f"<h2>{escape(tag)}</h2>{''.join(own)}" for tag, own in by_tag.items()]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'>"
        f"<title>{escape(told['info']['title'])}</title><h1>{escape(told['info']['title'])} "
        f"{escape(told['info']['version'])}</h1><p>For programs: <a href=/openapi.json>"
        f"/openapi.json</a>. Send a token as <code>Authorization: Bearer bt_...</code></p>"
        f"{''.join(parts)}"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        f"<li><code>{escape(each['name'])}</code> ({escape(each['in'])}) "
        f"{escape(each.get('description', ''))}</li>"
        for each in operation.get("parameters", ())
    ]
    types = operation.get("requestBody", {}).get("content", {})
    if types:
        rows.append(f"<li>body: {escape(', '.join(types))}</li>")
    return (
        f"<h3><code>{escape(method.upper())} {escape(path)}</code></h3>"
        f"<p>{escape(operation.get('description', ''))}</p><ul>{''.join(rows)}</ul>"
    )
