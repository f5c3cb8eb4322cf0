"""One set of random subscriptions and events, on disk for any session, and what matches what.

::

    folder/events/0.parquet ... 3    id, and a column for each attribute
    folder/documents/...             id, and the same events as JSON text, without what JSON cannot
                                     say, such as NaN or a date
    folder/maps/...                  id, a map<string, ...> for each type, and the struct
    folder/subscriptions/...         id, expression, weight
    folder/snapshot                  their index, built by the embedded engine

Each file is one partition of a job (``READING``). Answers come from the oracle and from nowhere
else: for each event its number and the numbers of all subscriptions that are true of it, both
ascending, so an event or a match that comes twice makes a difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

import bittern
import oracle
import strategies
from bittern.language.printer import print_expression
from bittern.language.syntax import Expression

#: Rows of (event, its subscriptions).
Rows: TypeAlias = list[list[Any]]

N_FILES = 4
#: So that a file is a partition, and a partition is several Arrow batches.
READING = {
    "spark.sql.files.openCostInBytes": "1g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
}
_MAPS = {"integers": ("n", pa.int64()), "doubles": ("x", pa.float64()), "texts": ("s", pa.string())}


@dataclass(frozen=True)
class World:
    """Subscriptions and events by number, and the answers for each form of the events."""

    folder: Path
    trees: Sequence[Expression]
    events: Sequence[strategies.Event]
    weights: Sequence[float]
    answers: Mapping[str, Rows]

    def matches(self) -> Rows:
        """The answers as one row (event, subscription) for each match."""
        return flat(self.answers["events"])

    def best(self, limit: int) -> Rows:
        """The answers cut to those of highest weight, best first."""
        return [
            [event, sorted(found, key=lambda number: (-self.weights[number], number))[:limit]]
            for event, found in self.answers["events"]
        ]


def flat(rows: Rows) -> Rows:
    """Rows of (event, subscriptions) as rows of (event, subscription)."""
    return [[event, number] for event, found in rows for number in found]


def make(folder: Path, n_subscriptions: int, n_events: int) -> World:
    """Draw subscriptions and events, write them down, and ask the oracle."""
    trees = strategies.sample(strategies.typed_expressions(), n_subscriptions)
    weights = [float(number * 7 % 5) for number in range(len(trees))]
    drawn = strategies.sample(strategies.typed_events(), n_events)
    documents = [_document(event) for event in drawn]
    wide = strategies.as_arrow(drawn)
    maps = {"st": wide.column("st")}
    for name, (attribute, type_) in _MAPS.items():
        entries = [[(attribute, event[attribute])] for event in drawn]
        maps[name] = pa.array(entries, pa.map_(pa.string(), type_))
    in_maps = {"st", *(attribute for attribute, _ in _MAPS.values())}
    tables = {
        "events": wide,
        "documents": pa.table({"document": [json.dumps(document) for document in documents]}),
        "maps": pa.table(maps),
    }
    for name, table in tables.items():
        _save(folder / name, table.add_column(0, "id", pa.array(range(len(drawn)))))
    catalog = pa.table(
        {
            "id": range(len(trees)),
            "expression": [print_expression(tree) for tree in trees],
            "weight": weights,
        }
    )
    _save(folder / "subscriptions", catalog)
    bittern.Index.build(catalog).save(folder / "snapshot")
    answers = {
        "events": answer(trees, drawn),
        "documents": answer(trees, documents),
        "maps": answer(trees, [{name: event[name] for name in in_maps} for event in drawn]),
    }
    return World(folder, trees, drawn, weights, answers)


def answer(trees: Sequence[Expression], events: Sequence[strategies.Event]) -> Rows:
    """What the oracle says."""
    return [
        [place, [number for number, tree in enumerate(trees) if oracle.matches(tree, event)]]
        for place, event in enumerate(events)
    ]


def _document(event: strategies.Event) -> dict[str, Any]:
    """What JSON can say of an event, NULLs included."""
    said: dict[str, Any] = {}
    for name, value in event.items():
        if isinstance(value, dict):
            said[name] = _document(value)
        elif isinstance(value, str | int | None) or (
            isinstance(value, float) and math.isfinite(value)
        ):
            said[name] = value
    return said


def _save(folder: Path, table: pa.Table) -> None:
    """Cut a table into as many files as there are to be partitions."""
    folder.mkdir(parents=True)
    for number in range(N_FILES):
        first, last = (table.num_rows * k // N_FILES for k in (number, number + 1))
        pq.write_table(table.slice(first, last - first), folder / f"{number}.parquet")
