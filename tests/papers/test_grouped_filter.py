"""Grouped Filter: both contracts, its four parts, and the hash table under two of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.literature.predicates.contract import OPERATORS
from bittern.literature.predicates.grouped_filter import GroupedPredicates
from bittern.literature.predicates.key_table import KEY_SLOTS, KeyTable, n_slots
from predicate_contract import PredicateContract, build
from stabbing_contract import StabbingContract

FIRST = np.zeros(1, np.int32)


class TestPredicates(PredicateContract):
    cls = GroupedPredicates


class TestStabbing(StabbingContract):
    name = "grouped-filter"


def test_operators_are_grouped_as_the_paper_does() -> None:
    index = build(GroupedPredicates, [(operator, 5, operator) for operator in range(6)])
    held = {
        name: [OPERATORS[sid] for sid in part.contents()[2].tolist()]
        for name, part in index._parts()
    }
    assert held == {"greater": [">", ">="], "less": ["<", "<="], "equal": ["="], "unequal": ["!="]}
    statistics = index.statistics()
    assert statistics["entries"] == 6
    assert [statistics[f"{name}_keys"] for name in held] == [1, 1, 1, 1]
    assert (statistics["greater_height"], statistics["less_height"]) == (1, 1)


def table(keys: list[int]) -> KeyTable:
    sids = np.arange(len(keys), dtype=np.int32)
    return KeyTable.build(np.array(keys, np.int64), np.zeros(len(keys), np.int32), sids, 1)


def test_the_example_of_the_hash_table() -> None:
    built = table([3, 4, 20])
    assert built.keys.tolist() == [0, 3, 4, 20]
    assert built.directory[:-KEY_SLOTS].tolist() == [0, 0, 2, 1, 3, 0, 0, 0]
    assert built.delete(4, FIRST, 1)
    built.check()
    assert built.contents()[0].tolist() == [3, 20]


KEYS = st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(KEYS, max_size=30), st.lists(st.tuples(st.booleans(), KEYS), max_size=60))
def test_a_hash_table_is_a_dictionary(keys: list[int], changes: list[tuple[bool, int]]) -> None:
    index, held = table(keys), dict[int, list[int]]()
    for sid, key in enumerate(keys):
        held.setdefault(key, []).append(sid)
    for is_insertion, key in changes:
        if is_insertion:
            index.insert(key, FIRST, 99)
            held.setdefault(key, []).append(99)
        elif key in held:
            assert index.delete(key, FIRST, held[key].pop())
            if not held[key]:
                del held[key]
        else:
            assert not index.delete(key, FIRST, 99)
    index.check()
    expected = [(key, 0, sid) for key in sorted(held) for sid in sorted(held[key])]
    assert list(zip(*(column.tolist() for column in index.contents()), strict=True)) == expected


def test_a_hash_table_grows_and_is_emptied_again() -> None:
    index, keys = table([]), [(-1) ** i * i << 20 for i in range(3000)]
    for key in keys:
        index.insert(key, FIRST, 1)
    index.check()
    for key in keys[::2] + keys[1::2]:
        assert index.delete(key, FIRST, 1)
    index.check()
    assert index.n_keys == index.n_sids == 0
    assert [n_slots(n) for n in (0, 1, 2, 3, 4, 5, 8, 9)] == [2, 2, 4, 8, 8, 16, 16, 32]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda a: a["slots"].fill(0), "no entry|miscounted"),
        (lambda a: a["slots"].__setitem__(a["slots"] == 2, 1), "same entry"),
        (lambda a: a["keys"].__setitem__(2, a["keys"][1]), "not found|out of order"),
        (lambda a: a["offsets"].__setitem__(3, a["offsets"][2]), "no sids|ascending"),
        (lambda a: a["slots"].__setitem__(a["slots"] == 3, 77), "leads to no entry"),
    ],
)
def test_check_sees_a_damaged_hash_table(damage, message: str) -> None:
    arrays = {name: array.copy() for name, array in table([4, 8, 15, 16, 23]).arrays().items()}
    damage(arrays)
    with pytest.raises(AssertionError, match=message):
        KeyTable.from_arrays(arrays, 1).check()
