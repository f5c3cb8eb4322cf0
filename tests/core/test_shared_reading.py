"""One reading for several rank spaces gives each what it would have read itself."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from answers import build
from bittern.model.events.encoder import read_together
from bittern.model.events.mistyped import listed
from effort import examples

TEXTS = (
    *("a = 1", "a > 1.5 AND b LIKE 'x%'", "b LIKE '%y'", "b RLIKE 'x+'", "c.d < 3", "c IS NULL"),
    *("c.e = 'x' OR a IS NOT NULL", "a = 12345678901234567890.5", "b < 'm'", "f", "a + 1 = 2"),
    *("t > TIMESTAMP '2020-01-01 00:00:00'", "c.d IS MISSING", "`a.b` = 1", "c.d = '3'"),
)
VALUES = st.sampled_from(
    [None, 1, 2.5, -1, "x", "xy", "y", True, [1], Decimal("12345678901234567890.5"), float("nan")]
)
EVENTS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c", "f", "t", "a.b"]), VALUES)
    | st.fixed_dictionaries({"c": st.dictionaries(st.sampled_from("de"), VALUES), "a": VALUES}),
    max_size=6,
)


def compare(indexes: list[bittern.Index], events: Any, **options: Any) -> None:
    encoders = [index.encoder for index in indexes]
    together = read_together(encoders, events, **options)
    for encoder, found in zip(encoders, together, strict=True):
        alone = encoder.read(events, **options)
        assert np.array_equal(np.sort(found.pairs), np.sort(alone.pairs))
        assert found.n_events == alone.n_events
        assert found.rejects == alone.rejects
        assert listed([found.strays]) == listed([alone.strays])


@given(
    own=st.lists(st.lists(st.sampled_from(TEXTS), unique=True), min_size=1, max_size=3),
    events=EVENTS,
)
@examples(0.5)
def test_of_mappings(own: list[list[str]], events: list[Any]) -> None:
    texts = [TEXTS, *own]
    compare([build(dict(enumerate(each))) for each in texts], events)


NUMBERS = pa.map_(pa.string(), pa.int64())
INDEXES = [build(dict(enumerate(texts))) for texts in (TEXTS, TEXTS[:4], TEXTS[3:], ("z = 1",), ())]
JSON = ['{"a": 1, "b": "xy", "c": {"d": 4, "e": "x"}}', "[", '{"c": {"d": "3"}, "f": true}', "{}"]


@pytest.mark.parametrize(
    ("events", "options"),
    [
        (JSON, {}),
        (pa.array(JSON), {}),
        (pa.table({"a": [1, None, 3, 4], "doc": JSON}), {"json": "doc"}),
        (pa.table({"b": ["x", "y", None, "xy"], "c": [{"d": 1, "e": "x"}] * 2 + [None] * 2}), {}),
        (
            pa.table({"m": pa.array([[("a", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64()))}),
            {},
        ),
        (
            pa.table(
                {
                    "c": pa.array([[("d", "3")], [("e", "x")]], pa.map_(pa.string(), pa.string())),
                    "t": pa.array([0, 2 * 10**15], pa.timestamp("us", "UTC")),
                    "a": pa.array([Decimal("1.50"), Decimal("2.00")]),
                }
            ),
            {},
        ),
    ],
    ids=["json", "array", "documents", "columns", "map", "map in a column"],
)
def test_of_other_forms(events: Any, options: dict[str, Any]) -> None:
    compare(INDEXES, events, **options)
    compare(INDEXES[::-1], events, **options)
