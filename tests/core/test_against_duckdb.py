"""Random expressions over typed events: DuckDB, the oracle and the engine give one answer.

DuckDB reads nearly the same language (and uses RE2 itself); its own way to write literals, LIKE
and regular expressions is spelt out here, so that the printer under test is not its own judge.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import bittern
import oracle
import strategies
from bittern.language import syntax
from bittern.language.printer import print_expression

duckdb = pytest.importorskip("duckdb")


def in_duckdb(tree: syntax.Expression) -> str:
    """Write a tree in DuckDB's dialect."""
    match tree:
        case syntax.BooleanConstant(value):
            return f"CAST({literal(value)} AS BOOLEAN)"
        case syntax.Not(operand):
            return f"(NOT {in_duckdb(operand)})"
        case syntax.And(operands):
            return "(" + " AND ".join(map(in_duckdb, operands)) + ")"
        case syntax.Or(operands):
            return "(" + " OR ".join(map(in_duckdb, operands)) + ")"
        case syntax.IsNull(name):
            return f"({name} IS NULL)"
        case syntax.Compare(name, operator, operand):
            return f"({name} {operator} {literal(operand.value)})"
        case syntax.Between(name, low, high):
            return f"({name} BETWEEN {literal(low.value)} AND {literal(high.value)})"
        case syntax.In(name, values):
            return f"({name} IN ({', '.join(literal(value.value) for value in values)}))"
        case syntax.Like(name, pattern, escape):
            return f"({name} LIKE {literal(pattern)} ESCAPE {literal(escape)})"
        case syntax.Regex(name, pattern):
            return f"regexp_matches({name}, {literal(pattern)})"
    raise TypeError(tree)


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case int():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise TypeError(value)


def answers(trees: list[syntax.Expression], events: list[dict[str, Any]]) -> list[list[Any]]:
    """Ask DuckDB for the truth of every tree (a list each) on every event, in one query."""
    table = strategies.as_arrow(events)
    # Time zones are an extension of DuckDB's that may not be there: hand it UTC without a zone.
    schema = table.schema.set(table.schema.get_field_index("t"), pa.field("t", pa.timestamp("us")))
    with duckdb.connect() as connection:
        connection.register("events", table.cast(schema))
        columns = ", ".join(f"{in_duckdb(tree)} AS c{i}" for i, tree in enumerate(trees))
        answered = connection.sql(f"SELECT {columns} FROM events").to_arrow_table()
    return [column.to_pylist() for column in answered.columns]


def test_oracle_agrees_with_duckdb() -> None:
    trees = strategies.sample(strategies.typed_expressions(), 300)
    events = strategies.sample(strategies.typed_events(), 200)
    wrong = [
        (in_duckdb(tree), event, f"oracle {truth}", f"DuckDB {answer}")
        for tree, column in zip(trees, answers(trees, events), strict=True)
        for event, answer in zip(events, column, strict=True)
        if (truth := oracle.truth(tree, event)) is not answer
    ]
    assert not wrong, min(wrong, key=lambda difference: len(difference[0]))


def test_engine_agrees_with_duckdb() -> None:
    """The whole way: printed, parsed, compiled into one index, matched as one Arrow batch."""
    trees = strategies.sample(strategies.typed_expressions(), 300)
    events = strategies.sample(strategies.typed_events(), 200)
    catalog = {number: print_expression(tree) for number, tree in enumerate(trees)}
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    matched = matcher.match(strategies.as_arrow(events)).to_pylist()
    found = {(number, event) for event, numbers in enumerate(matched) for number in numbers}
    expected = {
        (number, event)
        for number, column in enumerate(answers(trees, events))
        for event, answer in enumerate(column)
        if answer
    }
    wrong = found ^ expected
    shown = [(catalog[number], events[event], (number, event) in found) for number, event in wrong]
    assert not shown, min(shown, key=lambda difference: len(difference[0]))
