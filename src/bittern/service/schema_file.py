"""``--schema FILE``: what is known about events, and what that says about subscriptions.

FILE is a Parquet or Arrow file with the columns of the events (any of their files will do), or JSON
with the type of each attribute, as in a cast::

    {"price": "double", "seen": "timestamp", "device": {"os": "string"}}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bittern.engine.known_schema import KnownSchema, Unknown, tell_unknown
from bittern.errors import BadSubscription, ExpressionError, OptionError
from bittern.language.shapes import Shapes
from bittern.model.event_schema import EventSchema
from bittern.terms.types import type_of
from bittern.terms.unknown import SPARK


def read_schema(options: argparse.Namespace) -> EventSchema:
    """The schema that the options name."""
    name = options.schema
    try:
        schema = _schema(name)
    except (OSError, pa.ArrowException, ValueError, RecursionError) as wrong:
        raise OptionError(f"{name} is not a schema of events: {wrong}") from None
    return EventSchema(schema, case_sensitive=not options.ignore_case)


def _schema(name: str) -> pa.Schema:
    suffix = Path(name).suffix.lower()
    if suffix == ".json":
        told = json.loads(Path(name).read_text("utf-8"))
        if not isinstance(told, dict):
            raise ValueError("a JSON object of names and types is expected")
        return pa.schema(_fields(told))
    if suffix in (".arrow", ".feather", ".ipc"):
        with pa.memory_map(name) as source:
            return pa.ipc.open_file(source).schema
    return pq.read_schema(name)


def _fields(told: dict[str, Any]) -> list[pa.Field]:
    fields = []
    for name, kind in told.items():
        if isinstance(kind, dict):
            fields.append(pa.field(name, pa.struct(_fields(kind))))
        elif isinstance(kind, str):
            fields.append(pa.field(name, type_of(kind)))
        else:  # what is wrong is the file
            raise ValueError(  # noqa: TRY004
                f"the type of {name} must be a string or an object, not {kind!r:.40}"
            )
    return fields


class SchemaCheck:
    """Checks subscriptions of a catalog, which keeps them as they are."""

    def __init__(self, schema: EventSchema, unknown: str) -> None:
        self._known = KnownSchema(schema, SPARK)
        self._unknown = unknown
        self._shapes = Shapes()
        #: What was asked for in vain so far.
        self.unknown: list[Unknown] = []

    def problem(self, id_: Any, expression: Any) -> BadSubscription | None:
        """What the schema says against a subscription; other mistakes are found elsewhere."""
        if not isinstance(expression, str):
            return None
        try:
            self._shapes.read(expression)
        except ExpressionError:
            return None
        try:
            self._known.read(id_, expression, self._shapes, self._unknown, self.unknown.extend)
        except ExpressionError as wrong:
            return BadSubscription(id_, wrong.position, wrong.message)
        return None

    def tell(self) -> None:
        """Warn of what was asked for in vain."""
        tell_unknown(self.unknown)

    def checked(
        self, rows: Iterator[tuple[Any, ...] | BadSubscription]
    ) -> Iterator[tuple[Any, ...] | BadSubscription]:
        """Rows of id, expression and more, with what is bad in place of bad ones."""
        for row in rows:
            yield row if isinstance(row, BadSubscription) else self.problem(*row[:2]) or row
