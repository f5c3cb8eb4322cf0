"""Hard cases of the pivot engine: each was wrong once."""

from __future__ import annotations

import numpy as np
import pytest

import bittern
from answers import build, engine, expected
from bittern.matching.pivot.index import Pivot
from matching_cases import limits


@pytest.mark.parametrize("text", ["a IS NULL OR a IS NULL", "a IS NULL OR NOT (a IS NOT NULL)"])
def test_an_expression_that_says_twice_that_a_value_is_missing_matches_once(text: str) -> None:
    catalog = {"s": text}
    events = [{}, {"a": 1}, {"a": 1, "b": 2}]
    assert engine(catalog, events) == expected(catalog, events)


def test_a_list_that_begins_and_ends_like_a_sorted_one_is_not_searched() -> None:
    """The cell of ``p = 4`` has the first and the last of 72 postings from one lowest cell.

    Those between them do not contain it; 70 others do, which come from a lower cell.
    """
    catalog = {f"constant {n}": f"p = {n} AND never = 1" for n in range(8)}
    catalog["first"] = "p > 3 AND p <= 4 AND x0 = 1"
    for n in range(1, 71):
        catalog[f"between {n}"] = f"p > 3 AND p < 4 AND x{n} = 1"
        catalog[f"below {n}"] = f"p >= 3 AND p <= 5 AND x{n} = 1"
    catalog["last"] = "p > 3 AND p <= 7 AND x71 = 1"
    usual = {f"x{n}": 1 for n in range(72)}
    events = [{"p": 4, "x5": 1}, {"p": 4, "x0": 1, "x9": 1, "x71": 1}]
    index = build(catalog, sample=[usual] * 200 + [{"p": 4}])
    with limits(sparse=True):
        assert bittern.Matcher(index).match(events).to_pylist() == expected(catalog, events)


def _changed(index: bittern.Index, **arrays: np.ndarray) -> None:
    """Check the index's arrays with some of them replaced."""
    pivot = index.subscriptions
    changed = Pivot.from_arrays(pivot.arrays() | arrays, pivot.parameters)
    changed.check(index.rank.n_channels, index.rank.n_cells)


def test_check_finds_postings_of_one_cell_out_of_the_order_of_their_channels() -> None:
    usual = {f"x{n}": 1 for n in range(4)}
    catalog = {n: f"p = 1 AND x{n} = 1" for n in range(4)}
    index = build(catalog, sample=[usual] * 50 + [{"p": 1}])
    arrays = index.subscriptions.arrays()
    with pytest.raises(AssertionError, match="order"):
        _changed(index, **{name: arrays[name][::-1].copy() for name in ("heads", "bounds")})


def test_check_finds_a_class_whose_parts_may_hold_together_but_is_not_said_to_repeat() -> None:
    index = build({"s": "(a = 1 AND b = 1) OR (c = 1 AND d = 1)"})
    with pytest.raises(AssertionError, match="repeat"):
        _changed(index, repeats=np.zeros(1, dtype=np.uint8))
