"""Random expressions over typed events: Spark, the oracle and the engine give one answer.

Spark is given the very text that the printer writes and the parser reads. A job costs far more
than an expression, so hundreds of expressions are columns of one ``select``; a few also go
through ``filter`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import bittern
import oracle
import strategies
from bittern.language.parser import parse
from bittern.language.printer import print_expression

if TYPE_CHECKING:
    from bittern.language.syntax import Expression

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def trees() -> list[Expression]:
    return strategies.sample(strategies.typed_expressions(), 300)


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return strategies.sample(strategies.typed_events(), 150)


@pytest.fixture(scope="module")
def frame(spark: Any, events: list[dict[str, Any]]) -> Any:
    return spark.createDataFrame(strategies.as_arrow(events))


@pytest.fixture(scope="module")
def answers(frame: Any, trees: list[Expression]) -> list[list[bool | None]]:
    """Ask Spark for the truth of every tree (a list each) on every event, in one job."""
    columns = [f"({print_expression(tree)}) AS c{number}" for number, tree in enumerate(trees)]
    return [column.to_pylist() for column in frame.selectExpr(*columns).toArrow().columns]


def test_oracle_agrees_with_spark(
    trees: list[Expression], events: list[dict[str, Any]], answers: list[list[bool | None]]
) -> None:
    wrong = [
        (print_expression(tree), event, f"oracle {truth}", f"Spark {answer}")
        for tree, column in zip(trees, answers, strict=True)
        for event, answer in zip(events, column, strict=True)
        if (truth := oracle.truth(tree, event)) is not answer
    ]
    assert not wrong, min(wrong, key=lambda difference: len(difference[0]))


@pytest.mark.parametrize("form", ["mapping", "arrow"])
def test_engine_agrees_with_spark(
    trees: list[Expression],
    events: list[dict[str, Any]],
    answers: list[list[bool | None]],
    form: str,
) -> None:
    catalog = {number: print_expression(tree) for number, tree in enumerate(trees)}
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    batch: Any = events if form == "mapping" else strategies.as_arrow(events)
    matched = matcher.match(batch).to_pylist()
    found = {(number, event) for event, numbers in enumerate(matched) for number in numbers}
    kept = {
        (number, event)
        for number, column in enumerate(answers)
        for event, answer in enumerate(column)
        if answer
    }
    shown = [
        (catalog[number], events[event], f"engine {(number, event) in found}")
        for number, event in found ^ kept
    ]
    assert not shown, min(shown, key=lambda difference: len(difference[0]))


def test_filter_keeps_what_the_oracle_matches(
    frame: Any, trees: list[Expression], events: list[dict[str, Any]]
) -> None:
    """The one sentence itself, word for word, on every twentieth expression."""
    from pyspark.sql.functions import monotonically_increasing_id

    numbered = frame.coalesce(1).withColumn("number", monotonically_increasing_id()).cache()
    for tree in trees[::20]:
        text = print_expression(tree)
        kept = [row.number for row in numbered.filter(text).select("number").collect()]
        parsed = parse(text)
        expected = [place for place, event in enumerate(events) if oracle.matches(parsed, event)]
        assert sorted(kept) == expected, text
    numbered.unpersist()
