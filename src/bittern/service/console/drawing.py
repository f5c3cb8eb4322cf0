"""Pages from templates. Every value is escaped; what templates lack is a mistake, not a blank."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from bittern.service.http.access import Caller
from bittern.service.http.problems import Problem

HERE = Path(__file__).parent
#: Where the pages are, and what they ask for.
ROOT = "/console"
#: The cookie that has the colours that a visitor chose.
THEME = "bittern_theme"
_PAGES = {
    "playground": "Playground",
    "live": "Live",
    "catalog": "Catalog",
    "index": "Index",
    "pipelines": "Pipelines",
}


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float) and not value.is_integer() and abs(value) < 100:
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    if value == 0:
        return "0 %"
    return f"{value:.1%}".replace("%", " %") if value >= 0.001 else f"{value * 100:.2g} %"


def _size(value: float) -> str:
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _moment(value: dt.datetime | None) -> str:
    return "" if value is None else f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S}"


def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"number": _number, "share": _share, "size": _size, "moment": _moment}
    found.globals |= {"root": ROOT, "pages": _PAGES}
    return found


_TEMPLATES = _environment()


def visitor(request: Request, role: str = "read") -> Caller | Response:
    """Who looks at a page; who is not known is sent to the page that asks for a token."""
    found = request.scope["bittern_caller"]
    if isinstance(found, Problem):
        if found.status == 401:
            return RedirectResponse(f"{ROOT}/login", 303)
        return told(request, found.status, found.detail)
    if not found.may(role):
        said = f"this page takes a token with the role {role} or admin"
        return told(request, 403, said)
    assert isinstance(found, Caller)
    return found


def page(
    request: Request, caller: Caller | None, name: str, status: int = 200, **values: Any
) -> Response:
    """A page: the template of this name, with these values."""
    theme = request.cookies.get(THEME)
    shared: dict[str, Any] = {
        "theme": theme if theme in ("dark", "light") else "",
        "here": name.split("_", maxsplit=1)[0],
        "caller": caller,
        "may_change": caller is not None and caller.may("subscribe"),
        "may_publish": caller is not None and caller.may("publish"),
    }
    text = _TEMPLATES.get_template(f"{name}.html").render(shared | values)
    headers = {"Cache-Control": "no-store"}
    return HTMLResponse(text.encode("utf-8", "replace"), status, headers)


def told(request: Request, status: int, said: str) -> Response:
    """A page that says what is wrong."""
    return page(request, None, "wrong", status, said=said)
