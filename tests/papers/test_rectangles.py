"""REIN, HEM and TAMA: buckets, bitmaps and parts. What all strategies promise is tested for every
name of the registry in ``test_strategies.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bittern
from answers import build
from bittern.jit import frozen
from bittern.literature.rectangles.boxes import Boxes, boxes_of
from bittern.literature.rectangles.hem import Hem
from bittern.literature.rectangles.rein import Rein, buckets_of
from bittern.literature.rectangles.tama import Tama, parts_of
from bittern.model.classes.compile import Compiled
from bittern.model.rank.encoded import EncodedEvents
from effort import examples
from subscription_contract import (
    compiled,
    expected_pairs,
    held,
    integer_cases,
    pairs,
    truth,
)


def sides(*ranges: tuple[int, int]) -> Boxes:
    """Boxes of one side each, in channel 0."""
    numbers = np.arange(len(ranges), dtype=np.int32)
    lows, highs = np.array(ranges, np.int32).T
    return frozen(Boxes(numbers, numbers, numbers * 0, lows.copy(), highs.copy()))


def test_an_expression_is_the_boxes_of_its_alternatives() -> None:
    catalog = compiled(["(a <= 4 AND b IN (3, 7)) OR c > 5 AND d IS NULL", "e IS NULL"])
    boxes, always = boxes_of(catalog.classes)
    assert boxes.boxes.tolist() == [0, 0, 1]
    assert len(set(boxes.owners.tolist())) == 1
    assert always.tolist() == [c for c in (0, 1) if c != boxes.owners[0]]
    b = int(boxes.channels[1])
    base, end = catalog.rank.arrays.bases[b : b + 2].tolist()
    # The cells of b: below 3, 3, between, 7, above. The range around both values has a hole.
    assert (end - base, boxes.lows[1] - base, boxes.highs[1] - base) == (5, 1, 3)


def test_ends_are_in_buckets() -> None:
    """The example of ``rein.py``."""
    own = buckets_of(np.array([0, 10], np.int32), sides((0, 4), (3, 9), (6, 7)), 4)
    assert own.first_buckets.tolist() == [0, 4]
    assert own.low_starts.tolist() == [0, 1, 2, 3, 3]
    assert own.low_boxes.tolist() == [0, 1, 2]
    assert own.low_values.tolist() == [0, 3, 6]
    assert own.high_starts.tolist() == [0, 0, 1, 2, 3]
    assert own.high_boxes.tolist() == [0, 2, 1]


def test_a_range_is_filed_under_the_fewest_parts() -> None:
    """The example of ``tama.py``; and with three levels, whose last parts have two cells each."""
    bases = np.array([0, 8], np.int32)
    own = parts_of(bases, sides((1, 5)), 13)
    assert np.flatnonzero(np.diff(own.starts)).tolist() == [5, 6, 9]
    coarse = parts_of(bases, sides((1, 4)), 3)
    assert np.flatnonzero(np.diff(coarse.starts)).tolist() == [2, 6]


def test_bitmaps_have_what_other_groups_begin_and_end_with() -> None:
    boxes = sides(*((i, i + 2) for i in range(8)))
    own = Hem._made(np.array([0, 10], np.int32), boxes, buckets=10, groups=4)
    assert own.low_bounds.tolist() == [0, 2, 4, 6]
    assert own.low_words.tolist() == [0b11111111, 0b11111100, 0b11110000, 0b11000000]
    assert own.high_bounds.tolist() == [0, 4, 6, 8]
    assert own.high_words.tolist() == [0, 0b11, 0b1111, 0b111111]


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [(Rein, {"buckets": 2}), (Hem, {"buckets": 3, "groups": 2}), (Hem, {"groups": 5}),
     (Tama, {"levels": 1}), (Tama, {"levels": 2})],
)  # fmt: skip
def test_few_buckets_groups_and_levels_change_nothing(cls: Any, parameters: Any) -> None:
    @examples(0.3)
    @given(integer_cases(8))
    def check(case: tuple[Compiled, EncodedEvents]) -> None:
        catalog, batch = case
        index, live = held(cls, catalog, range(len(catalog.classes)), **parameters)
        index.check(catalog.rank.n_channels, catalog.rank.n_cells)
        assert pairs(index, batch) == expected_pairs(truth(catalog, batch), live)

    check()


@pytest.mark.parametrize("name", ["rein", "hem", "tama"])
def test_of_plain_ranges_only_matches_are_left(name: str) -> None:
    rng = np.random.default_rng(3)
    catalog = {}
    for i in range(300):
        lows = rng.integers(0, 60, 3)
        asked = [
            f"{name} BETWEEN {low} AND {low + 40}" for name, low in zip("abc", lows, strict=True)
        ]
        catalog[i] = " AND ".join(asked)
    events = [dict(zip("abc", rng.integers(0, 100, 3).tolist(), strict=True)) for _ in range(50)]
    matcher = bittern.Matcher(build(catalog, strategy=name))
    counts = matcher.match(events).counts
    assert matcher.last_statistics["candidates"] == matcher.last_statistics["matches"]
    assert np.array_equal(counts, bittern.Matcher(build(catalog)).match(events).counts)
    assert counts.sum() > 100
