"""Why an event matches a subscription, or why it does not: a stored one, or a draft."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request, Response

import bittern
from bittern.service.http.access import MayRead
from bittern.service.http.answers import as_json, explanation_json
from bittern.service.http.bodies import read_object
from bittern.service.http.described import body, ok
from bittern.service.http.problems import Problem

router = APIRouter(prefix="/v1", tags=["match"])

_ASKED = {
    "type": "object",
    "additionalProperties": False,
    "required": ["event"],
    "properties": {
        "event": {"type": "object"},
        "id": {"type": "string"},
        "expression": {"type": "string"},
    },
}


@router.post("/explain", openapi_extra=body(_ASKED), responses=ok("each predicate, true or not"))
async def explain(request: Request, caller: MayRead) -> Response:
    """Explain a stored subscription (``id``) or a draft (``expression``) with an event.

    The answer has the expression as a tree, of which every node is true, false or null for unknown,
    with the value that it met.
    """
    given = await read_object(request, caller, "event", "id", "expression")
    event, id_, expression = (given.get(name) for name in ("event", "id", "expression"))
    if not isinstance(event, dict):
        raise Problem(422, "bad-request", "event must be a JSON object")
    if isinstance(id_, str) == isinstance(expression, str):
        raise Problem(422, "bad-request", "give the id of a subscription, or an expression")

    def explained() -> Any:
        tenant, text = caller.tenant, json.dumps(event)
        if isinstance(id_, str):
            metadata = tenant.catalog.get(id_).metadata
            if id_ not in tenant.live:
                raise Problem(
                    409, "not-matched", f"{id_!r:.520} is disabled or left out: it is not matched"
                )
            return bittern.explain(tenant.live, text, id_, metadata=metadata)
        return bittern.explain(tenant.live, text, "draft", draft=expression)

    return as_json(explanation_json(await caller.state.run(explained)))
