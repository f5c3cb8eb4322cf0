"""Intervals as predicates: what becomes of them in attributes, and the two-sided ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.errors import OptionError, SnapshotError
from bittern.literature.predicates import sides, two_sided
from bittern.literature.predicates.contract import OPERATORS
from bittern.literature.predicates.sides import PredicateStabbing
from bittern.stabbing.registry import build_named, structure
from stabbing_contract import Interval, brute_force, build, stabs

NAMES = ("grouped-filter", "red-black")
EVERY = pytest.mark.parametrize("name", NAMES)


def cut(draw: st.DataObject, domain: int) -> list[int]:
    cells = draw.draw(st.sets(st.integers(0, domain - 1), max_size=4))
    return sorted(cells | {0})


@EVERY
@given(data=st.data())
def test_any_cuts_agree_with_brute_force(name: str, data: st.DataObject) -> None:
    """Intervals that cross cuts included, as they come and go, and are saved."""
    domain = data.draw(st.integers(1, 40))
    cell = st.integers(0, domain - 1)
    ends = st.tuples(cell, cell).map(sorted)
    some = st.lists(st.tuples(ends, st.integers(0, 3)).map(lambda one: (*one[0], one[1])))
    held, more = data.draw(some), data.draw(some)
    index = build(structure(name), held, domain, cuts=cut(data, domain))
    every = list(range(-1, domain + 1))
    assert stabs(index, every) == [brute_force(held, v) for v in every]
    for interval in more:
        index.insert(*interval)
    gone = [*held[::2], *more[1::2]]
    for interval in gone:
        index.delete(*interval)
    index.check()
    left = [*held[1::2], *more[::2]]
    assert stabs(index, every) == [brute_force(left, v) for v in every]
    opened = type(index).from_arrays(index.arrays())
    assert stabs(opened, every) == [brute_force(left, v) for v in every]
    assert opened.ids().tolist() == sorted({number for _, _, number in left})


class Attributes(PredicateStabbing):
    """Names what it is given."""

    name = "attributes"
    predicates = structure("red-black").predicates  # type: ignore[attr-defined]


def filed(intervals: list[Interval], cuts: list[int], domain: int) -> tuple[set[Any], set[Any]]:
    """Predicates of the one-sided index, and of the other with the end that is checked."""
    index = build(Attributes, intervals, domain, cuts=cuts)
    assert isinstance(index, PredicateStabbing)
    kinds = ("<", "<=", "=", ">=", ">")
    one, two = (
        {(kinds[kind], key, sid) for key, kind, sid in zip(*tree.contents(), strict=True)}
        for tree in (index.one.tree, index.two.index.tree)  # type: ignore[attr-defined]
    )
    others = {
        (operator, int(key), int(index.two.ids[row]), int(index.two.others[row]))
        for operator, key, row in two
    }
    return {(operator, int(key), int(sid)) for operator, key, sid in one}, others


def test_what_intervals_become() -> None:
    """The examples of both modules."""
    cuts = [0, 10]
    assert filed([(12, 12, 1), (12, 19, 2), (10, 12, 3), (10, 19, 4)], cuts, 20) == (
        {("=", 12, 1), (">=", 12, 2), ("<=", 12, 3), (">=", 10, 4)},
        set(),
    )
    assert filed([(5, 8, 7), (1, 3, 4)], [0], 10) == (
        set(),
        {(">=", 5, 7, 8), ("<=", 3, 4, ~1)},
    )
    assert filed([(3, 25, 6)], [0, 10, 20], 30)[0] == {(">=", 3, 6), (">=", 10, 6), ("<=", 25, 6)}
    assert filed([(3, 25, 6)], [0, 3, 4, 20], 30)[0] == {("=", 3, 6), (">=", 4, 6), ("<=", 25, 6)}
    assert set(OPERATORS) >= {"=", "<=", ">="}


@EVERY
def test_part_of_an_interval_that_crosses_is_not_taken_out(name: str) -> None:
    index = structure(name).build([3, 12], [12, 15], [6, 6], domain=30, cuts=[0, 10, 20])
    every, held = list(range(30)), [(3, 12, 6), (12, 15, 6)]
    for absent in ((3, 15, 6), (3, 25, 6), (0, 12, 6)):
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(*absent)
        index.check()
        assert stabs(index, every) == [brute_force(held, v) for v in every]
    index.delete(3, 12, 6)
    assert stabs(index, every) == [brute_force(held[1:], v) for v in every]


@EVERY
def test_candidates_are_looked_at_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    lows = rng.integers(1, 90, 300)
    highs = np.minimum(lows + rng.integers(1, 9, 300), 98)
    index = structure(name).build(lows, highs, np.arange(300), domain=100)
    values = rng.integers(-5, 105, 400)
    offsets, ids = index.stab_batch(values)
    for pieces in (1, 50, 1000):
        monkeypatch.setattr(two_sided, "_CANDIDATES", pieces)
        again = index.stab_batch(values)
        assert np.array_equal(again[0], offsets)
        assert np.array_equal(again[1], ids)
        for kept in (0, 100):
            monkeypatch.setattr(sides, "_KEPT", kept)
            located = index.locate_batch(values)
            assert np.array_equal(located.offsets, offsets)
            assert located._matches.ids is None  # type: ignore[attr-defined]
            for first, last in ((0, 400), (17, 18), (100, 300), (5, 5)):
                assert np.array_equal(located.ids(first, last), ids[offsets[first] : offsets[last]])
        monkeypatch.undo()


@EVERY
@pytest.mark.parametrize(
    "cuts", [[], [1], [0, 0], [0, 5, 4], [0, 10], [-1, 3], [[0]], [0.5], "x", [0, 2**40]]
)
def test_wrong_cuts_are_refused(name: str, cuts: Any) -> None:
    with pytest.raises(OptionError, match="cuts"):
        structure(name).build([1], [2], [3], domain=10, cuts=cuts)


@EVERY
def test_cuts_that_do_not_fit_are_refused_when_mapped(name: str) -> None:
    arrays = structure(name).build([1], [2], [3], domain=10, cuts=[0, 5]).arrays()
    for damaged in (arrays["cuts"][:1], arrays["cuts"].astype(np.int32), np.array([], np.int64)):
        with pytest.raises(SnapshotError):
            structure(name).from_arrays({**arrays, "cuts": damaged})
    with pytest.raises(AssertionError, match="cuts"):
        structure(name).from_arrays({**arrays, "cuts": np.array([0, 12])}).check()


@EVERY
def test_check_sees_rows_that_are_lost_or_wrong(name: str) -> None:
    index = structure(name).build([1, 2, 5], [3, 4, 8], [7, 8, 9], domain=10)
    arrays = index.arrays()
    for field, numbers, message in (
        ("ids", [7, -1, 9], "not filed"),
        ("others", [~1, ~2, 10], "beyond the domain"),
        ("shape", [10, 1, 3, 2], "free row has an id"),
    ):
        damaged = np.array(numbers, arrays[field].dtype)
        with pytest.raises(AssertionError, match=message):
            structure(name).from_arrays({**arrays, field: damaged}).check()


@EVERY
def test_only_structures_that_ask_for_cuts_get_them(name: str) -> None:
    lows, highs = np.array([0, 12], np.int32), np.array([9, 19], np.int32)
    index = build_named(name, lows, highs, 20, cuts=[0, 10])
    assert index.statistics()["attributes"] == 2
    assert index.statistics()["two_sided"] == 0
    assert build_named("cei", lows, highs, 20, cuts=[0, 10]).name == "cei"
    assert build_named("auto", lows, highs, 20, cuts=[0, 10]).stab(15).tolist() == [1]


@EVERY
def test_intervals_of_values_have_no_cuts(name: str) -> None:
    found = bittern.Intervals.build([1, 5, None], [9, 7, 6], structure=name)
    assert sorted(found.stab(6).tolist()) == [0, 1, 2]
    with pytest.raises(OptionError, match="cuts"):
        bittern.Intervals.build([1, 5], [9, 7], structure=name, cuts=[0, 1])


@EVERY
def test_one_sided_subscriptions_are_one_sided_under_the_engine(name: str) -> None:
    """The channels of the catalog are its attributes."""
    catalog = {"a": "x > 3", "b": "y <= 5", "c": "z = 7", "d": "x BETWEEN 4 AND 9", "e": "y < 2"}
    for strategy in ("pivot", "counting"):
        index = bittern.Index.build(catalog, strategy=strategy, stabbing=name)
        statistics = index.subscriptions.chosen.index.statistics()
        assert (statistics["attributes"], statistics["two_sided"]) == (3, 1)
        index.check()


def test_rows_are_used_again() -> None:
    index = structure("grouped-filter").build([], [], [], domain=100)
    assert isinstance(index, PredicateStabbing)
    for _ in range(20):
        for k in range(10):
            index.insert(10 + k, 30 + k, k)
        for k in range(10):
            index.delete(10 + k, 30 + k, k)
    index.check()
    assert index.two.used == 10
