"""Documents as rows of plain values, to compare what is stored with what was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bittern.history.documents.documents import Documents
from bittern.model.events.typed.typed import HEADER, STRING, Typed, TypedReader

Value = tuple[Any, ...]


def values(typed: Typed) -> list[list[Value]]:
    """By event and attribute: kind, word, and tie or bytes."""

    def one(a: int, e: int) -> Value:
        kind, word, tie = (int(array[a, e]) for array in typed[:3])
        if kind != STRING:
            return kind, word, tie
        length = int.from_bytes(typed.heap[tie : tie + HEADER].tobytes(), "little")
        return kind, word, typed.heap[tie + HEADER : tie + HEADER + length].tobytes()

    n_attributes, n_events = typed.kinds.shape
    return [[one(a, e) for a in range(n_attributes)] for e in range(n_events)]


def expected(events: Any, attributes: Sequence[str], json: Any = ()) -> list[list[Value]]:
    return values(TypedReader(attributes).read(events, json).typed)


def found(documents: Documents, attributes: Sequence[str], **bounds: Any) -> list[list[Value]]:
    """What a scan gives; its numbers follow each other."""
    rows: list[list[Value]] = []
    at = max(documents.first, bounds.get("start") or 0)
    for number, typed in documents.scan(attributes, **bounds):
        assert number == at
        assert all(array.flags.c_contiguous for array in typed)
        rows += values(typed)
        at += typed.kinds.shape[1]
    return rows
