"""Every structure of the registry: under the engine, against each other, and against damage.

What a structure must do on its own is in ``stabbing_contract.py``; here all of them meet the same
catalogs, events, intervals, wrong calls and damaged arrays.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

import bittern
import strategies
from answers import build, expected
from bittern.errors import OptionError, SnapshotError
from bittern.language.printer import print_expression
from bittern.stabbing.contract import StabbingIndex
from bittern.stabbing.registry import STRUCTURES, structure

EVERY = pytest.mark.parametrize("name", STRUCTURES)

# ------------------------------------------------------------------ under the engine


class Case(NamedTuple):
    """A catalog, events, and what the oracle says."""

    catalog: dict[str, str]
    events: list[dict[str, Any]]
    right: list[list[str]]


#: Every kind of value and every kind of end, equalities and NULLs, in fixed expressions as well.
RANGES = {
    "closed": "n BETWEEN 3 AND 7",
    "open": "n > 3 AND n < 7",
    "half": "x >= 0.5 AND x < 2.25",
    "above": "x > 1e3",
    "below": "n <= -1",
    "point": "n = 5",
    "points": "n IN (1, 5, 9007199254740993)",
    "other": "n != 5",
    "text": "s >= 'b' AND s < 'c'",
    "prefix": "s LIKE 'ab%'",
    "suffix": "s LIKE '%bc'",
    "name": "s = 'abc' OR s = 'b'",
    "since": "t >= TIMESTAMP '2024-01-01 12:00:00'",
    "day": "t BETWEEN DATE '2024-01-01' AND DATE '2024-01-02'",
    "flag": "b",
    "null": "n IS NULL AND x IS NOT NULL",
    "both": "n > 3 AND s = 'b' AND x < 10.01",
    "any": "n < 0 OR x < 0 OR s < 'a'",
    "always": "TRUE",
    "never": "n > 5 AND n < 5",
}


@cache
def cases() -> list[Case]:
    """Random catalogs and batches, and fixed ranges with random events of the typed world."""
    ranges = strategies.sample(st.lists(strategies.typed_events(), min_size=20, max_size=40), 4)
    drawn = [(RANGES, events) for events in ranges]
    drawn += strategies.sample(
        st.tuples(
            strategies.catalogs(strategies.free_expressions(3), max_size=14).map(
                lambda trees: {id_: print_expression(tree) for id_, tree in trees.items()}
            ),
            strategies.batches(strategies.free_events()),
        ),
        25,
    )
    return [Case(catalog, events, expected(catalog, events)) for catalog, events in drawn]


def matched(index: bittern.Index, events: Any) -> list[list[Any]]:
    return bittern.Matcher(index).match(events).to_pylist()


@EVERY
def test_the_engine_agrees_with_the_oracle(name: str) -> None:
    for catalog, events, right in cases():
        index = build(catalog, stabbing=name)
        assert index.subscriptions.parameters["stabbing"] == name
        assert matched(index, events) == right


@EVERY
def test_saved_and_mapped_indexes_agree_with_the_oracle(name: str, tmp_path: Path) -> None:
    for number, (catalog, events, right) in enumerate(cases()[:8]):
        path = tmp_path / str(number)
        build(catalog, stabbing=name).save(path)
        opened = bittern.Index.open(path, verify=True)
        opened.check()
        assert opened.subscriptions.parameters["stabbing"] == name
        assert matched(opened, events) == right


@EVERY
def test_subscriptions_come_and_go_over_every_structure(name: str) -> None:
    events = cases()[0].events
    with bittern.LiveMatcher(build(RANGES, stabbing=name)) as live:
        now = dict(RANGES)
        for id_ in ("closed", "text", "always", "day"):
            live.unsubscribe(id_)
            del now[id_]
        for id_, text in (("new", "n BETWEEN 4 AND 10"), ("text", "s > 'a'"), ("t", "t IS NULL")):
            live.subscribe(id_, text)
            now[id_] = text
        found = live.match(events).to_pylist()
    assert [sorted(row) for row in found] == [sorted(row) for row in expected(now, events)]


def test_compaction_keeps_the_structure() -> None:
    events = cases()[0].events
    with bittern.LiveMatcher(build(RANGES, stabbing="interval-tree")) as live:
        live.unsubscribe("open")
        live.subscribe("new", "n BETWEEN 4 AND 10")
        live.compact()
        assert live.base()[0].subscriptions.parameters["stabbing"] == "interval-tree"
        now = {id_: text for id_, text in RANGES.items() if id_ != "open"}
        now["new"] = "n BETWEEN 4 AND 10"
        found = live.match(events).to_pylist()
    assert [sorted(row) for row in found] == [sorted(row) for row in expected(now, events)]


# ------------------------------------------------------------------ against each other


class World(NamedTuple):
    """Intervals over a domain, in columns."""

    domain: int
    lows: NDArray[np.int32]
    highs: NDArray[np.int32]
    ids: NDArray[np.int32]

    def build(self, name: str) -> StabbingIndex:
        return structure(name).build(self.lows, self.highs, self.ids, domain=self.domain)


def world(domain: int, lows: Any, highs: Any, ids: Any = None) -> World:
    lows = np.asarray(lows, np.int32)
    highs = np.minimum(np.asarray(highs), domain - 1).astype(np.int32)
    number = np.arange(len(lows)) if ids is None else ids
    return World(domain, lows, highs, np.asarray(number, np.int32))


def _random(seed: int, n: int, domain: int, longest: int) -> World:
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, domain, n)
    return world(domain, lows, lows + rng.integers(0, longest, n))


def _skewed() -> World:
    """Most intervals crowd in the first cells, a few are long."""
    rng = np.random.default_rng(4)
    lows = np.minimum(rng.zipf(1.3, 600), 700) - 1
    lengths = np.minimum(rng.zipf(1.5, 600), 700)
    return world(700, lows, lows + lengths, rng.integers(0, 50, 600))


WORLDS = {
    "nothing": world(10, [], []),
    "one cell": world(1, [0, 0, 0], [0, 0, 0], [5, 2, 5]),
    "two cells": world(2, [0, 0, 1, 1], [0, 1, 1, 1]),
    "points": _random(1, 500, 300, 1),
    "short": _random(2, 500, 1000, 20),
    "any length": _random(3, 300, 257, 257),
    "the full domain": world(777, [0] * 40, [776] * 40),
    "heavy duplicates": world(64, [7] * 200 + [8] * 100, [20] * 200 + [8] * 100, [3] * 300),
    "skewed": _skewed(),
    "every interval": world(13, *np.triu_indices(13)),
    "last cell": world(129, [128] * 5 + [0], [128] * 6),
    "large ids": world(33, [1, 2, 30], [31, 2, 32], [2**31 - 1, 0, 2**31 - 1]),
}


def sorted_ids(index: StabbingIndex, values: Any) -> list[list[int]]:
    offsets, ids = index.stab_batch(values)
    return [sorted(part.tolist()) for part in np.split(ids, offsets[1:-1])][: len(values)]


def truth(world: World, values: Any) -> list[list[int]]:
    return [
        sorted(world.ids[(world.lows <= value) & (value <= world.highs)].tolist())
        for value in values
    ]


@EVERY
@pytest.mark.parametrize("given", WORLDS)
def test_structures_find_the_same(name: str, given: str) -> None:
    index = WORLDS[given].build(name)
    index.check()
    domain = WORLDS[given].domain
    values = np.random.default_rng(5).permutation(np.arange(-2, domain + 2))
    assert sorted_ids(index, values) == truth(WORLDS[given], values)
    assert np.array_equal(index.ids(), np.unique(WORLDS[given].ids))


@cache
def operations() -> tuple[list[tuple[bool, tuple[int, int, int]]], int]:
    """100,000 random insertions (True) and deletions of what is there, over some cells."""
    rng = np.random.default_rng(6)
    n, domain = 100_000, 600
    lows = rng.integers(0, domain, n)
    lengths = np.where(rng.random(n) < 0.5, 0, rng.geometric(0.1, n))
    highs = np.minimum(lows + lengths, domain - 1)
    ids = rng.integers(0, 1000, n)
    new = list(zip(lows.tolist(), highs.tolist(), ids.tolist(), strict=True))
    deletes, place = rng.random(n) < 0.45, rng.random(n)
    held: list[tuple[int, int, int]] = []
    out = []
    for i in range(n):
        if deletes[i] and held:
            at = int(place[i] * len(held))
            held[at], held[-1] = held[-1], held[at]
            out.append((False, held.pop()))
        else:
            held.append(new[i])
            out.append((True, new[i]))
    return out, domain


def held_after(n: int) -> World:
    every, domain = operations()
    held: Counter[tuple[int, int, int]] = Counter()
    for is_insertion, interval in every[:n]:
        held[interval] += 1 if is_insertion else -1
    lows, highs, ids = np.array(sorted(held.elements())).T
    return world(domain, lows, highs, ids)


@EVERY
def test_the_sum_of_many_operations_in_bulk(name: str) -> None:
    final = held_after(100_000)
    index = final.build(name)
    index.check()
    values = np.arange(0, final.domain, 7)
    assert sorted_ids(index, values) == truth(final, values)


@EVERY
def test_operations_one_by_one_leave_what_bulk_gives(name: str) -> None:
    every, domain = operations()
    index = structure(name).build([], [], [], domain=domain)
    for is_insertion, interval in every[:1500]:
        (index.insert if is_insertion else index.delete)(*interval)
    index.check()
    final = held_after(1500)
    assert sorted_ids(index, np.arange(domain)) == truth(final, np.arange(domain))
    assert sorted_ids(final.build(name), np.arange(domain)) == truth(final, np.arange(domain))


# ------------------------------------------------------------------ batches


@EVERY
def test_a_batch_is_its_values_one_by_one(name: str) -> None:
    for given in ("skewed", "any length", "points"):
        index = WORLDS[given].build(name)
        values = np.random.default_rng(7).integers(-3, WORLDS[given].domain + 3, 60)
        offsets, ids = index.stab_batch(values)
        for i, value in enumerate(values.tolist()):
            one = index.stab(value)
            assert one.tolist() == ids[offsets[i] : offsets[i + 1]].tolist()
        for form in (values.tolist(), values.astype(np.int16), values[::-1][::-1]):
            again = index.stab_batch(form)
            assert np.array_equal(again[0], offsets)
            assert np.array_equal(again[1], ids)
        for changed in (np.sort(values), values[::-1]):
            assert sorted_ids(index, changed) == truth(WORLDS[given], changed)


@EVERY
def test_parts_of_a_batch_can_be_filled_apart(name: str) -> None:
    for given in ("skewed", "short"):
        index = WORLDS[given].build(name)
        values = np.random.default_rng(8).integers(-3, WORLDS[given].domain + 3, 100)
        located = index.locate_batch(values)
        ends, whole = index.stab_batch(values)
        assert np.array_equal(located.offsets, ends)
        for first, last in ((0, 0), (0, 1), (0, 50), (50, 100), (99, 100), (100, 100), (13, 77)):
            part = located.ids(first, last)
            assert part.tolist() == whole[ends[first] : ends[last]].tolist()
            again = index.locate_batch(values[first:last])
            assert np.array_equal(again.offsets, ends[first : last + 1] - ends[first])


# ------------------------------------------------------------------ bad input


def snapshot(index: StabbingIndex) -> dict[str, tuple[Any, bytes]]:
    return {
        name: ((array.dtype.str, array.shape), array.tobytes())
        for name, array in index.arrays().items()
    }


BAD_INTERVALS: list[tuple[tuple[Any, Any, Any], str]] = [
    ((5, 4, 0), "reversed"),
    ((-1, 4, 0), "leaves the domain"),
    ((4, 50, 0), "leaves the domain"),
    ((2**40, 2**41, 0), "leaves the domain"),
    ((4, 5, -1), "id -1"),
    ((4, 5, 2**31), "id 2147483648"),
    ((4.0, 5, 0), "not a whole number"),
    ((4, 5.5, 0), "not a whole number"),
    ((float("nan"), 5, 0), "not a whole number"),
    ((4, float("inf"), 0), "not a whole number"),
    ((4, 5, 1.0), "not a whole number"),
    (("4", 5, 0), "not a whole number"),
    ((None, 5, 0), "not a whole number"),
]


@EVERY
def test_wrong_calls_change_nothing(name: str) -> None:
    index = structure(name).build([2, 2, 7, 0], [5, 5, 9, 49], [1, 1, 1, 2], domain=50)
    index.insert(3, 4, 6)
    index.delete(7, 9, 1)
    before = snapshot(index)
    for interval, message in BAD_INTERVALS:
        for call in (index.insert, index.delete):
            with pytest.raises(OptionError, match=message):
                call(*interval)
            assert snapshot(index) == before
    for absent in ((7, 9, 1), (2, 6, 1), (3, 4, 1 + 6), (1, 1, 1), (0, 49, 1), (3, 5, 6)):
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(*absent)
        assert snapshot(index) == before
    for values in ([-1, 50, 2**31, 2**62, -(2**62)], np.array([2**64 - 1], np.uint64)):
        assert index.stab_batch(values)[1].tolist() == []
    for values in ([0.5], [float("nan")], ["a"], [[1]], [None], 5):
        with pytest.raises(OptionError, match="values must be"):
            index.stab_batch(values)
    assert snapshot(index) == before
    index.check()
    assert sorted(index.stab(4).tolist()) == [1, 1, 2, 6]


@EVERY
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([5], [4], [0]), "reversed"),
        (([0, -1], [4, 4], [0, 0]), r"\[-1, 4\]"),
        (([0, 4], [4, 10], [0, 0]), r"\[4, 10\]"),
        (([4], [5], [-1]), "id -1"),
        (([4], [5], [2**31]), "fit into int32"),
        (([4.5], [5], [0]), "lows must be whole numbers"),
        (([4], [float("nan")], [0]), "highs must be whole numbers"),
        (([4], [float("inf")], [0]), "highs must be whole numbers"),
        (([4], [5, 6], [0]), "1, 2 and 1 items"),
        (([4], [5], []), "1, 1 and 0 items"),
        (([[4]], [[5]], [[0]]), "one-dimensional"),
        ((4, 5, 0), "one-dimensional"),
        ((["a"], ["b"], [0]), "lows must be whole numbers"),
    ],
)
def test_wrong_columns_are_refused(name: str, columns: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        structure(name).build(*columns, domain=10)


# ------------------------------------------------------------------ damage


def damages(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Ways in which a file can be wrong that its size or its type shows."""
    out = {
        "another type": array.astype(np.float32 if array.dtype != np.float32 else np.float64),
        "one more": np.concatenate((array, array[-1:])) if len(array) else np.zeros(1, array.dtype),
    }
    if len(array):
        out |= {"one less": array[:-1], "nothing": array[:0]}
    return out


@EVERY
def test_damaged_arrays_are_refused(name: str) -> None:
    """Or harmless, as whole numbers that came as floats: then every answer is still right."""
    cls = structure(name)
    world = _random(9, 300, 200, 60)
    right = truth(world, np.arange(200))
    arrays = world.build(name).arrays()
    assert sorted_ids(cls.from_arrays(arrays), np.arange(200)) == right
    refused, wrong = 0, []
    for field, array in arrays.items():
        for damage, broken in damages(array).items():
            try:
                index = cls.from_arrays({**arrays, field: broken})
                index.check()
                assert sorted_ids(index, np.arange(200)) == right
            except SnapshotError:
                refused += 1
            except Exception as other:  # noqa: BLE001  the list names it
                wrong.append((field, damage, repr(other)))
    assert not wrong
    assert refused > 2 * len(arrays)
