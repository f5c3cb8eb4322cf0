"""``bittern.spark.backtest``: beside Spark's own filter, and beside ``bittern.backtest``."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import bittern
import bittern.spark
from bittern.errors import BitternError, ExpressionError, OptionError
from bittern.language.printer import print_expression
from strategies import TYPED_SCHEMA, as_arrow, sample, typed_events, typed_expressions

pytestmark = pytest.mark.spark

HOUR = dt.timedelta(hours=1)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rows = sample(typed_events(), 100)
    start = dt.datetime(2026, 1, 31, 8, 30, tzinfo=dt.UTC)
    times = [None if n % 7 == 0 else start + n % 5 * HOUR for n in range(len(rows))]
    return as_arrow(rows, TYPED_SCHEMA).append_column(
        "seen", pa.array(times, pa.timestamp("us", "UTC"))
    )


@pytest.fixture(scope="module")
def frame(spark: Any, table: pa.Table) -> Any:
    return spark.createDataFrame(table).repartition(3).cache()


def counted(found: Any) -> Any:
    predicates = {(each.text, each.true, each.rejects, each.alone) for each in found.predicates}
    return found.events, found.matches, predicates, found.hours, found.untimed


def test_it_is_sparks_filter_and_the_embedded_backtest(frame: Any, table: pa.Table) -> None:
    for tree in sample(typed_expressions(), 3):
        draft = print_expression(tree)
        found = bittern.spark.backtest(frame, draft, time="seen", samples=3)
        matched = frame.filter(draft)
        assert found.matches == matched.count(), draft
        schema = table.schema
        assert counted(found) == counted(
            bittern.backtest(table, draft, time="seen", schema=schema)
        ), draft
        assert len(found.samples) == min(3, found.matches)
        kept = {tuple(row) for row in map(str_of, matched.collect())}
        assert all(tuple(str_of_values(each.values)) in kept for each in found.samples)


def str_of(row: Any) -> list[str]:
    return str_of_values(row.asDict(recursive=True))


def str_of_values(values: Any) -> list[str]:
    return [f"{name}={values[name]!r}" for name in sorted(values)]


def test_json_columns_functions_of_spark_and_what_cannot_be_read(spark: Any) -> None:
    rows = [(1, '{"a": 5, "b": "x"}'), (2, '{"a": '), (3, '{"a": 50}'), (4, None)]
    events = spark.createDataFrame(rows, "id long, doc string")
    found = bittern.spark.backtest(events, "a < 10 AND soundex(b) = 'X000'", json="doc")
    assert (found.events, found.matches, found.unreadable) == (3, 1, 1)
    assert found.samples[0].values == {"id": 1, "doc": '{"a": 5, "b": "x"}'}
    assert found.samples[0].event is None
    ordered = bittern.spark.backtest(
        events, "EXISTS d (d.id < id)", order_by="id", time="timestamp_seconds(id * 1800)"
    )
    assert ordered.matches == 3
    assert [(each.events, each.matches) for each in ordered.hours] == [(1, 0), (2, 2), (1, 1)]


def test_mistakes_are_told(frame: Any, spark: Any) -> None:
    with pytest.raises(ExpressionError) as caught:
        bittern.spark.backtest(frame, "n <")
    assert caught.value.position == 3
    with pytest.raises(BitternError, match="vips"):
        bittern.spark.backtest(frame, "s IN SET vips")
    with pytest.raises(OptionError, match="DataFrame"):
        bittern.spark.backtest([], "n < 1")
    with pytest.raises(OptionError, match="no end"):
        bittern.spark.backtest(spark.readStream.format("rate").load(), "value < 1")
