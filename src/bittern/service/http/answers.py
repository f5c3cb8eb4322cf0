"""What goes out: subscriptions, versions, events and explanations as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from fastapi import Response

from bittern.catalog.rows import Subscription
from bittern.engine.explain import Explanation, Step

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return Response(text.encode("utf-8", "replace"), status, headers, "application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)


def as_time(microseconds: int) -> str:
    """A time of the journal, as ISO 8601."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def subscription_json(of: Subscription) -> dict[str, Any]:
    """A subscription with all fields that it has."""
    return {
        "id": of.id,
        "expression": of.expression,
        "subscriber": of.subscriber,
        "weight": of.weight,
        "metadata": of.metadata,
        "enabled": of.enabled,
        "created": of.created,
        "changed": of.changed,
        "version": of.version,
        "until": of.until,
    }


def rows_json(rows: pa.Table) -> list[dict[str, Any]]:
    """Subscriptions from a table with the columns of ``Catalog.at``, or some of them."""
    found: list[dict[str, Any]] = rows.to_pylist()
    for row in found:
        if "metadata" in row:
            row["metadata"] = _loaded(row["metadata"])
    return found


def _loaded(metadata: str | None) -> Any:
    try:
        return json.loads(metadata) if metadata is not None else None
    except (ValueError, RecursionError):  # written by somebody else
        return None


def explanation_json(of: Explanation) -> dict[str, Any]:
    """An explanation: whether it matched, and each predicate with the value that it met."""
    return {
        "id": of.id,
        "matched": of.matched,
        "expression": of.expression,
        "left_out": of.left_out,
        "phases": of.phases or None,
        "tree": step_json(of.step),
    }


def step_json(step: Step) -> dict[str, Any]:
    """A node of an explanation; its truth is true, false, or null for unknown."""
    told: dict[str, Any] = {"text": step.text, "truth": step.truth}
    if step.found:
        told["found"] = step.found
    if step.construct:
        told["construct"] = step.construct
    if step.parts:
        told["parts"] = [step_json(part) for part in step.parts]
    return told


def match_json(number: int, time: int, version: int, subscriptions: str, event: str) -> str:
    """What an event matched for one subscriber; ids and event are JSON texts."""
    return (
        f'{{"number":{number},"time":"{as_time(time)}","version":{version},'
        f'"subscriptions":{subscriptions},"event":{event}}}'
    )


def listed(texts: Sequence[str]) -> str:
    """A JSON list of JSON texts."""
    return f"[{','.join(texts)}]"
