"""What every stabbing index must do, whatever its structure.

A structure's test module subclasses ``StabbingContract`` (it names the structure and the
parameters to try) and so runs it through all of this, random histories included.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bittern.errors import OptionError
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex
from bittern.stabbing.registry import structure
from effort import examples

Interval = tuple[int, int, int]


def build(
    cls: type[StabbingIndex], intervals: list[Interval], domain: int, **parameters: Any
) -> StabbingIndex:
    lows, highs, ids = np.array(intervals, np.int32).reshape(-1, 3).T
    return cls.build(lows, highs, ids, domain=domain, **parameters)


def brute_force(intervals: list[Interval], value: int) -> list[int]:
    return sorted(i for low, high, i in intervals if low <= value <= high)


def stabs(index: StabbingIndex, values: list[int]) -> list[list[int]]:
    """Sorted ids per value, from one batch whose counts are compared on the way."""
    offsets, ids = index.stab_batch(np.array(values, np.int64))
    assert offsets.dtype == np.int64
    assert ids.dtype == np.int32
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    assert index.locate_batch(np.array(values, np.int64)).offsets.tolist() == offsets.tolist()
    return [sorted(part.tolist()) for part in np.split(ids, offsets[1:-1])][: len(values)]


class Saving(RuleBasedStateMachine):
    """Whatever is done to an index, it can be saved at any time, and what was saved stays."""

    cls: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        self.index: Any = None
        self.given: list[tuple[np.ndarray, np.ndarray]] = []

    @rule()
    def save_and_open(self) -> None:
        arrays = self.index.arrays()
        copies = {name: array.copy() for name, array in arrays.items()}
        for array in copies.values():
            array.flags.writeable = False
        self.given += [(array, array.copy()) for array in arrays.values()]
        self.index = self.cls.from_arrays(copies)

    @rule()
    def save_and_go_on(self) -> None:
        arrays = self.index.arrays()
        self.given += [(array, array.copy()) for array in arrays.values()]

    def teardown(self) -> None:
        for array, before in getattr(self, "given", []):
            assert np.array_equal(array, before), "an array that was handed out has changed"


class History(Saving):
    """Any sequence of changes, against the ids that cover each cell."""

    cls: ClassVar[type[StabbingIndex]]
    parameters: ClassVar[st.SearchStrategy[dict[str, Any]]]

    @initialize(data=st.data(), domain=st.one_of(st.integers(1, 9), st.integers(1, 300)))
    def start(self, data: st.DataObject, domain: int) -> None:
        self.domain = domain
        cell = st.integers(0, domain - 1)
        # Few ids, so that they own several intervals; points and full ranges often.
        ends = st.one_of(
            cell.map(lambda c: (c, c)),
            st.tuples(cell, cell).map(lambda pair: (min(pair), max(pair))),
            cell.map(lambda c: (0, c)),
            cell.map(lambda c: (c, domain - 1)),
        )
        self.interval = st.tuples(ends, st.integers(0, 5)).map(lambda pair: (*pair[0], pair[1]))
        self.intact = data.draw(st.lists(self.interval, max_size=30))
        self.cover = [Counter(brute_force(self.intact, v)) for v in range(domain)]
        self.index = build(self.cls, self.intact, domain, **data.draw(self.parameters))

    def covers(self, interval: Interval) -> bool:
        low, high, number = interval
        return all(self.cover[v][number] > 0 for v in range(low, high + 1))

    def change(self, interval: Interval, by: int) -> None:
        low, high, number = interval
        for v in range(low, high + 1):
            self.cover[v][number] += by

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        interval = data.draw(self.interval)
        self.index.insert(*interval)
        self.intact.append(interval)
        self.change(interval, 1)

    @precondition(lambda self: self.intact)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.intact) - 1))
        interval = self.intact.pop(at)
        self.index.delete(*interval)
        self.change(interval, -1)

    @rule(data=st.data())
    def delete_what_was_not_inserted(self, data: st.DataObject) -> None:
        interval = data.draw(self.interval)
        if interval in self.intact:
            return
        if not self.covers(interval):
            with pytest.raises(OptionError, match="not in the index"):
                self.index.delete(*interval)
            return
        try:
            self.index.delete(*interval)
        except OptionError:
            return
        # Taken as a cut: it may have gone through any interval of this id.
        self.change(interval, -1)
        self.intact = [kept for kept in self.intact if kept[2] != interval[2]]

    @invariant()
    def agrees(self) -> None:
        self.index.check()
        values = list(range(-2, self.domain + 2))
        expected = [sorted(c.elements()) for c in self.cover]
        assert stabs(self.index, values) == [[], [], *expected, [], []]


class StabbingContract:
    """Subclass as ``Test...`` with the structure's name and the parameters to try."""

    name: ClassVar[str]
    parameters: ClassVar[st.SearchStrategy[dict[str, Any]]] = st.just({})

    @property
    def cls(self) -> type[StabbingIndex]:
        return structure(self.name)

    def test_any_history_agrees_with_brute_force(self) -> None:
        machine = type("TheHistory", (History,), {"cls": self.cls, "parameters": self.parameters})
        run_state_machine_as_test(
            machine,
            settings=examples(steps=25),
        )

    def test_an_empty_index_finds_nothing(self) -> None:
        for domain in (0, 1, 7, 1000):
            index = build(self.cls, [], domain)
            index.check()
            assert stabs(index, [-1, 0, domain - 1, domain]) == [[], [], [], []]
            assert index.stab_batch([])[0].tolist() == [0]
            assert index.statistics()["entries"] == 0

    def test_a_domain_of_one_cell(self) -> None:
        index = build(self.cls, [(0, 0, 4), (0, 0, 2), (0, 0, 4)], 1)
        index.check()
        assert sorted(index.stab(0).tolist()) == [2, 4, 4]
        index.delete(0, 0, 4)
        assert sorted(index.stab(0).tolist()) == [2, 4]

    def test_full_domain_intervals_are_found_everywhere(self) -> None:
        index = build(self.cls, [(0, 776, 1)] * 3 + [(5, 5, 0)], 777)
        index.check()
        assert stabs(index, [0, 5, 776]) == [[1, 1, 1], [0, 1, 1, 1], [1, 1, 1]]

    def test_values_may_be_unsorted_repeated_and_outside(self) -> None:
        intervals = [(2, 5, 1), (0, 3, 2), (4, 4, 3), (7, 9, 1)]
        index = build(self.cls, intervals, 10)
        values = [9, 4, -1, 4, 10, 0, 2**31 - 1, -(2**31), 2**40, -(2**40), 3]
        assert stabs(index, values) == [brute_force(intervals, v) for v in values]

    def test_a_single_value_finds_what_a_batch_does_whatever_has_changed(self) -> None:
        rng = np.random.default_rng(3)
        intervals = [(low, low + int(rng.integers(0, 9)), low % 50) for low in range(90)]
        built = build(self.cls, intervals, 100)
        mapped = self.cls.from_arrays(built.arrays())
        values = [0, 7, 50, 98, 99, -1, 100, 2**40, np.int64(7), np.int32(50)]
        for index in (built, mapped):
            held = list(intervals)
            for step in range(90):
                if step % 10 == 0:
                    expected = [brute_force(held, int(value)) for value in values]
                    assert [sorted(index.stab(value).tolist()) for value in values] == expected
                if step == 40:
                    index.arrays()  # which may put what is searched elsewhere
                index.insert(0, 99, step)
                held.append((0, 99, step))
                index.delete(*held.pop(0))
        first = built.stab(7)
        first[:] = -1
        assert -1 not in built.stab(7)

    def test_a_large_build_agrees_with_brute_force(self) -> None:
        rng = np.random.default_rng(7)
        n, domain = 3000, 5000
        lows = rng.integers(0, domain, n)
        lengths = np.where(rng.random(n) < 0.6, 0, rng.integers(0, domain, n))
        highs = np.minimum(lows + lengths, domain - 1)
        ids = rng.integers(0, 2**31, n)
        index = self.cls.build(lows, highs, ids, domain=domain)
        index.check()
        values = np.sort(rng.choice(domain, 500, replace=False))
        offsets, found = index.stab_batch(values)
        for i, value in enumerate(values):
            expected = np.sort(ids[(lows <= value) & (value <= highs)])
            assert np.array_equal(np.sort(found[offsets[i] : offsets[i + 1]]), expected)

    def test_build_gives_the_same_as_inserting_one_by_one(self) -> None:
        rng = np.random.default_rng(8)
        intervals = [(*sorted(rng.integers(0, 200, 2).tolist()), int(i)) for i in range(400)]
        index = build(self.cls, [], 200)
        for interval in intervals:
            index.insert(*interval)
        index.check()
        assert stabs(index, list(range(200))) == [brute_force(intervals, v) for v in range(200)]
        for interval in intervals:
            index.delete(*interval)
        index.check()
        assert stabs(index, list(range(200))) == [[]] * 200
        assert index.statistics()["entries"] == 0

    def test_memory_mapped_arrays_are_searched_in_place_and_copied_to_change(
        self, tmp_path
    ) -> None:
        intervals = [(i, min(99, i * 2), i) for i in range(100)]
        for name, array in build(self.cls, intervals, 100).arrays().items():
            np.save(tmp_path / f"{name}.npy", array)
        files = {path: path.read_bytes() for path in tmp_path.iterdir()}
        mapped = {path.stem: np.load(path, mmap_mode="r") for path in files}
        index = self.cls.from_arrays(mapped)
        index.check()
        every = list(range(100))
        assert stabs(index, every) == [brute_force(intervals, v) for v in every]
        index.insert(10, 20, 7)
        index.delete(*intervals[3])
        index.check()
        changed = [*intervals[:3], *intervals[4:], (10, 20, 7)]
        assert stabs(index, every) == [brute_force(changed, v) for v in every]
        assert {path: path.read_bytes() for path in files} == files

    def test_bytes_are_those_of_the_arrays(self) -> None:
        small = build(self.cls, [(0, 0, 0)], 1000)
        large = build(self.cls, [(i % 1000, i % 1000, i) for i in range(5000)], 1000)
        assert large.nbytes >= sum(array.nbytes for array in large.arrays().values())
        assert large.nbytes - small.nbytes >= 4 * 4999
        assert large.statistics()["bytes"] == large.nbytes

    @pytest.mark.parametrize(
        ("interval", "message"),
        [
            ((5, 4, 0), "reversed"),
            ((-1, 4, 0), "leaves the domain"),
            ((4, 10, 0), "leaves the domain"),
            ((4, 5, -1), "id -1"),
        ],
    )
    def test_wrong_intervals_are_refused_and_change_nothing(self, interval, message) -> None:
        index = build(self.cls, [(2, 5, 1)], 10)
        before = {name: array.copy() for name, array in index.arrays().items()}
        for call in (index.insert, index.delete):
            with pytest.raises(OptionError, match=message):
                call(*interval)
        with pytest.raises(OptionError, match=message):
            build(self.cls, [(2, 5, 1), interval], 10)
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(2, 6, 1)
        after = index.arrays()
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[name], after[name]) for name in before)

    def test_wrong_arguments_are_refused(self) -> None:
        with pytest.raises(OptionError, match="1, 2 and 1 items"):
            self.cls.build([1], [2, 3], [4], domain=10)
        with pytest.raises(OptionError, match="whole numbers"):
            self.cls.build([1.5], [2], [4], domain=10)
        with pytest.raises(OptionError, match="fit into int32"):
            self.cls.build([1], [2], [2**31], domain=10)
        with pytest.raises(OptionError, match="one-dimensional"):
            self.cls.build([[1]], [[2]], [[3]], domain=10)
        for domain in (-1, MAX_DOMAIN + 1):
            with pytest.raises(OptionError, match="domain"):
                self.cls.build([], [], [], domain=domain)
        with pytest.raises(OptionError, match="has no parameter 'colour'"):
            self.cls.build([], [], [], domain=10, colour=1)
        index = build(self.cls, [], 10)
        with pytest.raises(OptionError, match="whole number"):
            index.insert(1.0, 2, 3)  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="whole numbers"):
            index.stab_batch([0.5, float("nan")])
