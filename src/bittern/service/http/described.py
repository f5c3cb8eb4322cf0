"""What the OpenAPI description says of bodies and answers that handlers treat themselves."""

from __future__ import annotations

from typing import Any

from bittern.service.http.problems import MEDIA_TYPE, Problem

#: Schemas that bodies refer to, and the problem that any request may be answered with.
SCHEMAS: dict[str, Any] = {
    "Problem": {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {"type": "array", "items": {"type": "object"}},
        },
    },
    "Event": {"type": "object", "additionalProperties": True},
    "SubscriptionFields": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "expression": {"type": "string", "examples": ["price < 10 AND color = 'red'"]},
            "subscriber": {"type": ["string", "null"], "maxLength": 500},
            "weight": {"type": ["number", "null"]},
            "metadata": {"type": ["object", "null"]},
            "enabled": {"type": "boolean"},
        },
    },
}
SCHEMAS["Subscription"] = {
    **SCHEMAS["SubscriptionFields"],
    "required": ["id", "expression"],
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 500},
        **SCHEMAS["SubscriptionFields"]["properties"],
    },
}


def body(schema: str | dict[str, Any], *types: str) -> dict[str, Any]:
    """The body of a request: a schema by its name, in one of some media types."""
    told = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    content: dict[str, Any] = {}
    for media in types or ("application/json",):
        is_json = media == "application/json"
        content[media] = {"schema": told if is_json else {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


def ok(what: str, status: int = 200, *types: str) -> dict[int | str, dict[str, Any]]:
    """A good answer."""
    content: dict[str, Any] = {media: {"schema": {}} for media in types or ("application/json",)}
    return {status: {"description": what, "content": content}, **_PROBLEM}


_PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "a problem (RFC 9457)",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


def number(name: str, text: str) -> int:
    """A whole number of a header or query; a problem if it is none."""
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise Problem(400, "bad-request", f"{name} must be a whole number, not {text!r:.40}")
    return int(text)
