"""Lists of ids in flat arrays: what the storage under the structures costs, and its edges."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern import Intervals
from bittern.errors import OptionError
from bittern.stabbing import id_lists
from bittern.stabbing.id_lists import IdLists


def packed(lists: Iterable[list[int]]) -> IdLists:
    """Lists as a build leaves them."""
    lengths = [0, *map(len, each := list(lists))]
    items = np.array([number for ids in each for number in ids], np.int32)
    return IdLists(np.cumsum(lengths).astype(np.int32), items)


def contents(lists: IdLists) -> list[list[int]]:
    bounds = zip(lists.begins, lists.ends, strict=True)
    return [lists.items[begin:end].tolist() for begin, end in bounds]


@pytest.fixture
def repacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Entries that were copied, one number for each time that everything was."""
    copied: list[int] = []
    loosen = IdLists._loosen

    def counted(self: IdLists, lists: id_lists.Int32s) -> id_lists.Int32s:
        copied.append(self.n_entries)
        return loosen(self, lists)

    monkeypatch.setattr(IdLists, "_loosen", counted)
    return copied


def test_the_modules_example() -> None:
    lists = packed([[3, 8], [], [1, 4, 9]])
    assert lists.packed
    lists.insert(np.array([0], np.int32), 5)
    assert (lists.begins.tolist(), lists.ends.tolist()) == ([5, 2, 2], [8, 2, 5])
    assert contents(lists) == [[3, 5, 8], [], [1, 4, 9]]


@pytest.mark.parametrize("hot", [1, 3, 10])
def test_lists_that_hold_most_entries_are_not_copied_for_each_insert(hot, repacks) -> None:
    """Every insert goes to one of the hot lists, in turn, or to all of them."""
    n = 30_000
    numbers = list(range(n))
    lists = packed([numbers] * hot + [[number] for number in range(1000)])
    before = lists.n_entries
    for i in range(2000):
        lists.insert(np.array([i % hot], np.int32), n + i)
    every = np.arange(hot, dtype=np.int32)
    for i in range(2000):
        lists.insert(every, n + 2000 + i)
    lists.check()
    # Each hot list moves once, from where it was built: twice its ids, of half as many free.
    assert len(repacks) <= 6
    assert sum(repacks) <= 6 * (before + 2000 * (hot + 1))


def test_inserts_copy_as_many_entries_as_they_add(repacks) -> None:
    """Also where one insert follows deletions, and lists come and go."""
    lists = packed([[0], [], [7]] * 40)
    rng = np.random.default_rng(3)
    held, n = [set(ids) for ids in contents(lists)], 20_000
    for number in range(10, n):
        at = min(int(rng.exponential(8)), 119)
        lists.insert(np.array([at], np.int32), number)
        held[at].add(number)
        if number % 3 == 0:
            lost = int(rng.integers(120))
            if held[lost]:
                assert lists.delete(np.array([lost], np.int32), held[lost].pop())
    lists.check()
    assert contents(lists) == [sorted(ids) for ids in held]
    assert sum(repacks) <= 6 * n
    assert len(lists.items) <= 6 * lists.n_entries


def test_many_subscribers_to_one_range_are_not_copied_for_each_insert(repacks) -> None:
    n = 20_000
    lows = np.concatenate((np.arange(n) % 10_000, np.full(n, 37)))
    highs = np.concatenate((np.arange(n) % 10_000 + 5, np.full(n, 9001)))
    ranges = Intervals.build(lows, highs)
    for number in range(1000):
        ranges.insert(37, 9001, 2 * n + number)
    assert len(ranges.stab(5000)) == n + 1000 + 12
    assert len(repacks) <= 3


@given(
    st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(10, 40)), unique=True, max_size=60),
)
def test_lists_keep_their_ids_where_the_free_end_is_short(filled, changes) -> None:
    """The least free end, so that everything is copied as often as can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_lists, "_LEAST_ROOM", 0)
        held = [sorted(ids) for ids in filled]
        lists = packed(held)
        for at, number in changes:
            n = at % len(held)
            if number in held[n]:
                assert lists.delete(np.array([n], np.int32), number)
                held[n].remove(number)
            else:
                lists.insert(np.array([n], np.int32), number)
                held[n] = sorted([*held[n], number])
            lists.check()
            assert contents(lists) == held
        offsets, items = lists.pack()
        assert items.tolist() == [number for ids in held for number in ids]
        assert offsets[-1] == len(items)


def test_an_index_that_is_full_refuses_an_id_and_keeps_what_it_has(monkeypatch) -> None:
    monkeypatch.setattr(id_lists, "MAX_ENTRIES", 12)
    lists = packed([[1, 2], [3], []])
    for number in (4, 5):
        lists.insert(np.array([0], np.int32), number)
    for number in (6, 7, 8, 9):
        lists.insert(np.array([2], np.int32), number)
    before = contents(lists)
    with pytest.raises(OptionError, match="at most 12"):
        lists.insert(np.array([2], np.int32), 10)
    lists.check()
    assert contents(lists) == before == [[1, 2, 4, 5], [3], [6, 7, 8, 9]]
