"""What every predicate index must do, whatever its structure.

A test module subclasses ``PredicateContract`` (it names the index and the parameters to try) and so
runs it through all of this, random histories included.

The truth is kept in *atoms*: ``<``, ``=`` and ``>`` of a key and sid, how often each. ``<=`` is two
of them, and so an index that stores it as ``<`` and ``=`` may be asked to take out either.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

from bittern.arrays import occupied
from bittern.literature.predicates.contract import OPERATORS, PredicateIndex
from effort import examples
from stabbing_contract import Saving

Predicate = tuple[int, int, int]
"""Operator, key and sid."""

ATOMS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": "=>"}

INT64 = np.iinfo(np.int64)
ATTRIBUTES = np.array([INT64.min, -9, 10, 1 << 40])
"""First keys of four attributes; the last ends with the greatest number there is."""


def bounds(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last key of the attribute of each value."""
    at = np.searchsorted(ATTRIBUTES, values, "right")
    return ATTRIBUTES[at - 1], np.append(ATTRIBUTES[1:] - 1, INT64.max)[at - 1]


def build(cls: type[PredicateIndex], predicates: list[Predicate], **given: Any) -> PredicateIndex:
    operators, keys, sids = np.array(predicates, np.int64).reshape(-1, 3).T
    return cls.build(operators.astype(np.uint8), keys.copy(), sids.astype(np.int32), **given)


def satisfies(operator: int, key: int, value: int) -> bool:
    found = "<" if value < key else "=" if value == key else ">"
    return found in ATOMS[OPERATORS[operator]]


def brute_force(predicates: list[Predicate], value: int) -> list[int]:
    first, last = (int(bound[0]) for bound in bounds(np.array([value])))
    return sorted(
        sid
        for operator, key, sid in predicates
        if first <= key <= last and satisfies(operator, key, value)
    )


def search(index: PredicateIndex, values: list[int]) -> list[list[int]]:
    """Sids of ascending values, written with gaps between them, which must stay."""
    keys = np.array(values, np.int64)
    firsts, lasts = bounds(keys)
    counts = np.full(len(keys), -7, np.int64)
    index.count(keys, firsts, lasts, counts)
    starts = np.cumsum(counts + 2) - counts
    sids = np.full(int((counts + 2).sum()) + 1, -5, np.int32)
    index.fill(keys, firsts, lasts, starts, sids)
    found = [
        sids[start : start + count].tolist() for start, count in zip(starts, counts, strict=True)
    ]
    assert all(sid >= 0 for each in found for sid in each)
    assert np.count_nonzero(sids == -5) == 2 * len(keys) + 1
    return found


def found(index: PredicateIndex, values: list[int]) -> list[list[int]]:
    return [sorted(sids) for sids in search(index, values)]


#: Few and near, so that they meet; at the ends of attributes; and as far apart as they can be.
KEYS = st.one_of(
    st.integers(-12, 13),
    st.sampled_from([INT64.min, INT64.min + 1, -10, -9, 9, 10, (1 << 40) - 1, 1 << 40]),
    st.sampled_from([INT64.max - 1, INT64.max]),
)
PREDICATES = st.tuples(st.integers(0, 5), KEYS, st.integers(0, 4))


class History(Saving):
    """Any sequence of changes, against atoms."""

    cls: ClassVar[type[PredicateIndex]]
    parameters: ClassVar[st.SearchStrategy[dict[str, Any]]]

    @initialize(data=st.data(), predicates=st.lists(PREDICATES, max_size=40))
    def start(self, data: st.DataObject, predicates: list[Predicate]) -> None:
        self.atoms: Counter[tuple[int, int, str]] = Counter()
        self.intact = list(predicates)
        for predicate in predicates:
            self.change(predicate, 1)
        self.index = build(self.cls, predicates, **data.draw(self.parameters))

    def change(self, predicate: Predicate, by: int) -> None:
        operator, key, sid = predicate
        for atom in ATOMS[OPERATORS[operator]]:
            self.atoms[key, sid, atom] += by

    @rule(predicate=PREDICATES)
    def insert(self, predicate: Predicate) -> None:
        self.index.insert(*predicate)
        self.intact.append(predicate)
        self.change(predicate, 1)

    @precondition(lambda self: self.intact)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        predicate = self.intact.pop(data.draw(st.integers(0, len(self.intact) - 1)))
        assert self.index.delete(*predicate)
        self.change(predicate, -1)

    @rule(predicate=PREDICATES)
    def delete_what_was_not_inserted(self, predicate: Predicate) -> None:
        operator, key, sid = predicate
        if predicate in self.intact:
            return
        taken = self.index.delete(*predicate)
        if taken:
            assert all(self.atoms[key, sid, atom] > 0 for atom in ATOMS[OPERATORS[operator]])
            self.change(predicate, -1)
            # It may have been a part of any predicate of this key and sid.
            self.intact = [kept for kept in self.intact if kept[1:] != (key, sid)]

    @invariant()
    def agrees(self) -> None:
        self.index.check()
        held = list(self.atoms.elements())
        assert set(self.index.sids().tolist()) == {sid for _, sid, _ in held}
        assert len(self.index.sids()) == self.index.statistics()["entries"]
        values = sorted([*range(-13, 15), INT64.min, INT64.max, *(key for key, _, _ in held)])
        predicates = [(OPERATORS.index(atom), key, sid) for key, sid, atom in held]
        assert found(self.index, values) == [brute_force(predicates, v) for v in values]


def drawn(n: int, seed: int = 5) -> list[Predicate]:
    """Predicates of all operators, with many on few keys and a few on many."""
    rng = np.random.default_rng(seed)
    keys = np.where(rng.random(n) < 0.5, rng.integers(-9, 10, n), rng.integers(10, 10 + 4 * n, n))
    sids = rng.integers(0, 2**31, n)
    return list(zip(rng.integers(0, 6, n).tolist(), keys.tolist(), sids.tolist(), strict=True))


class PredicateContract:
    """Subclass as ``Test...`` with the index and the parameters to try."""

    cls: ClassVar[type[PredicateIndex]]
    parameters: ClassVar[st.SearchStrategy[dict[str, Any]]] = st.just({})

    def test_any_history_agrees_with_brute_force(self) -> None:
        machine = type("TheHistory", (History,), {"cls": self.cls, "parameters": self.parameters})
        run_state_machine_as_test(
            machine,
            settings=examples(steps=25),
        )

    def test_the_example_of_the_contract(self) -> None:
        index = build(self.cls, [(0, 3, 7), (5, 3, 5), (4, 3, 9), (2, 5, 8)])
        assert found(index, [2, 3, 4, 5]) == [[8], [5, 7, 8], [5, 8, 9], [5, 9]]

    def test_an_empty_index_finds_nothing(self) -> None:
        index = build(self.cls, [])
        index.check()
        assert found(index, [INT64.min, 0, 0, INT64.max]) == [[], [], [], []]
        assert found(index, []) == []
        assert index.statistics()["entries"] == 0
        assert not index.delete(0, 5, 1)
        index.insert(1, 5, 1)
        assert found(index, [4, 5, 6]) == [[1], [], [1]]

    def test_a_large_build_agrees_with_brute_force(self) -> None:
        predicates = drawn(4000)
        index = build(self.cls, predicates)
        index.check()
        values = sorted([*range(-12, 20), *range(30, 16_100, 997), INT64.max])
        assert found(index, values) == [brute_force(predicates, v) for v in values]

    def test_build_gives_the_same_as_inserting_one_by_one(self) -> None:
        predicates = drawn(600)
        index = build(self.cls, [])
        for predicate in predicates:
            index.insert(*predicate)
        index.check()
        values = sorted([*range(-12, 20), *range(30, 2500, 53)])
        assert found(index, values) == found(build(self.cls, predicates), values)
        for n, predicate in enumerate(predicates):
            assert index.delete(*predicate)
            if n % 100 == 0:
                index.check()
        index.check()
        assert found(index, values) == [[] for _ in values]
        assert index.statistics()["entries"] == 0
        assert not any(index.delete(*predicate) for predicate in predicates)

    def test_a_batch_is_its_values_one_by_one(self) -> None:
        """In the same order too: a batch may be filled in parts."""
        index = build(self.cls, drawn(500))
        index.insert(5, 3, 1)
        values = sorted([-9, -3, -3, 0, 3, 3, 3, 9, 10, 11, 400, 400, 1999, 5000])
        assert search(index, values) == [search(index, [value])[0] for value in values]

    def test_deleting_what_is_only_partly_there_changes_nothing(self) -> None:
        """``>=`` where only ``=`` or only ``>`` is, ``!=`` where only one side is, and so on."""
        for held in range(6):
            for asked in range(6):
                index = build(self.cls, [(held, 3, 1), (4, 3, 2)])
                atoms = ATOMS[OPERATORS[held]], ATOMS[OPERATORS[asked]]
                if not set(atoms[1]) <= set(atoms[0]):
                    assert not index.delete(asked, 3, 1), (held, asked)
                    index.check()
                    expected = [brute_force([(held, 3, 1), (4, 3, 2)], v) for v in (2, 3, 4)]
                    assert found(index, [2, 3, 4]) == expected
        index = build(self.cls, [(0, 3, 1)])
        assert not index.delete(0, 3, 2)
        assert not index.delete(0, 4, 1)

    def test_memory_mapped_arrays_are_searched_in_place_and_copied_to_change(
        self, tmp_path
    ) -> None:
        predicates = drawn(300)
        for name, array in build(self.cls, predicates).arrays().items():
            np.save(tmp_path / f"{name}.npy", array)
        files = {path: path.read_bytes() for path in tmp_path.iterdir()}
        index = self.cls.from_arrays({path.stem: np.load(path, mmap_mode="r") for path in files})
        index.check()
        values = sorted([*range(-12, 20), *range(30, 1200, 23)])
        assert found(index, values) == [brute_force(predicates, v) for v in values]
        index.insert(3, 4, 77)
        assert index.delete(*predicates[5])
        index.check()
        changed = [*predicates[:5], *predicates[6:], (3, 4, 77)]
        assert found(index, values) == [brute_force(changed, v) for v in values]
        assert {path: path.read_bytes() for path in files} == files

    def test_the_arrays_are_what_occupies_memory(self) -> None:
        index = build(self.cls, drawn(2000))
        held = occupied(index)
        assert held >= sum(array.nbytes for array in index.arrays().values())
        assert held >= 4 * 2000
