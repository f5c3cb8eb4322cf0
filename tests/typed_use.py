"""How programs of users look to a type checker: ``make check`` reads this, and nothing runs it.

Where a line says ``type: ignore``, mypy has to find the mistake, or it says that nothing is to be
ignored there. So does pyright: ``npx pyright tests/typed_use.py``.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from typing import assert_type

import pandas as pd
import pyarrow as pa

import bittern


def what_subscriptions_may_be(table: pa.Table, frame: pd.DataFrame) -> None:
    """A mapping, pairs, triples, a table; nothing else."""
    bittern.Index.build({"s1": "price < 10"})
    bittern.Index.build({1: "price < 10"})
    bittern.Index.build([("s1", "price < 10"), ("s2", "price > 900")])
    bittern.Index.build([("s1", "price < 10", 2.5)])
    bittern.Index.build(table)
    bittern.Index.build(frame)
    bittern.Index.build(5)  # type: ignore[arg-type]
    bittern.Index.build({"s1": 10})  # type: ignore[arg-type]
    bittern.Index.build(["price < 10"])  # type: ignore[list-item]


def what_comes_back(index: bittern.Index) -> None:
    """Types of answers are known."""
    matches = bittern.Matcher(index).match([{"price": 5}])
    assert_type(matches, bittern.Matches)
    assert_type(matches[0], list[str | int])
    assert_type(matches.to_pylist(), list[list[str | int]])
    for ids in matches:
        assert_type(ids, list[str | int])
    explained = bittern.explain(index, {"price": 5}, "s1")
    assert_type(explained.matched, bool)
    assert_type(bittern.Catalog("shop.db").version(), int)
    with bittern.LiveMatcher(index) as live:
        live.subscribe("s2", "price < 20")
        live.subscribe("s2", 20)  # type: ignore[arg-type]
        assert_type(live.match({"price": 5}), bittern.Matches)
