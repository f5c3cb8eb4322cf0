"""Sorted lists, flat and as trees of blocks, against Python's own sorted lists."""

from __future__ import annotations

import bisect
from typing import Any

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

from bittern.arrays import Int32s
from bittern.errors import OptionError
from bittern.jit import i4w, i8, kernel
from bittern.literature.sorted_lists import lists as sorted_lists
from bittern.literature.sorted_lists.blocks import (
    BLOCK,
    FAN,
    FREE,
    LISTS,
    SLOTS,
    find_pair,
    following,
    length_of,
    room_for,
    seek,
)
from bittern.literature.sorted_lists.lists import SortedLists
from bittern.stabbing.areas import HELD, USED
from effort import examples

Pairs = list[tuple[int, int]]

# A tree of two levels of inner blocks needs more leaves than one inner block has children.
TALL = 2 * BLOCK * FAN


def columns(rows: Any) -> tuple[Int32s, Int32s, Int32s]:
    """Tuples (list, key, value) as int32 columns."""
    table = np.array(list(rows), dtype=np.int32).reshape(-1, 3)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()


@kernel(i8, LISTS, i8, i8, i4w, i4w)
def _scan(lists: Any, n: Any, key: Any, out_keys: Any, out_values: Any) -> Any:
    """Copy what list n holds from a key on, and return how much that is."""
    begins, ends, keys, values = lists
    count = 0
    begin, end, block = seek(begins, ends, keys, n, key)
    while True:
        for i in range(begin, end):
            out_keys[count] = keys[i]
            out_values[count] = values[i]
            count += 1
        block, begin, end = following(keys, values, block)
        if block < 0:
            return count


@kernel(i8, LISTS, i8, i8, i8)
def _find(lists: Any, n: Any, key: Any, value: Any) -> Any:
    begins, ends, keys, values = lists
    return find_pair(begins, ends, keys, values, n, key, value)


@kernel(i8, LISTS, i8)
def _length(lists: Any, n: Any) -> Any:
    begins, ends, _, _ = lists
    return length_of(begins, ends, n)


def scan(lists: SortedLists, n: int, key: int = -(2**31)) -> Pairs:
    """What a kernel finds in list n from a key on."""
    keys, values = (np.empty(lists.n_pairs + 1, np.int32) for _ in range(2))
    count = _scan(lists.searched, n, key, keys, values)
    return list(zip(keys[:count].tolist(), values[:count].tolist(), strict=True))


def contents(lists: SortedLists) -> list[Pairs]:
    """All lists."""
    return [scan(lists, n) for n in range(lists.n_lists)]


def height(lists: SortedLists, n: int) -> int:
    """Levels of blocks of list n; 0 for a flat run."""
    begins, _, keys, _ = lists.searched
    if begins[n] >= 0:
        return 0
    block, levels = ~int(begins[n]), 1
    while keys[block] < 0:
        block, levels = int(keys[block + 1 + FAN]), levels + 1
    return levels


def of_range(n: int, step: int = 1) -> SortedLists:
    """One list of n pairs with ascending keys."""
    keys = np.arange(0, n * step, step, dtype=np.int32)
    return SortedLists.build(np.zeros(n, np.int32), keys, keys, 1)


def test_the_modules_example() -> None:
    rows = [(2, 4, 7), (0, 8, 0), (2, 1, 4), (0, 3, 1), (2, 4, 0)]
    lists = SortedLists.build(*columns(rows), 3)
    packed = {name: array.tolist() for name, array in lists.arrays().items()}
    assert packed == {
        "offsets": [0, 2, 2, 5],
        "keys": [3, 8, 1, 4, 4],
        "values": [1, 0, 4, 0, 7],
    }
    assert lists.nbytes == 4 * 4 + 8 * 5
    assert lists.insert(*columns([(0, 5, 2)])) == 1
    loose = lists.reserve(0)
    assert loose.begins.tolist() == [5, 2, 2]
    assert loose.ends.tolist() == [8, 2, 5]
    assert loose.limits.tolist() == [9, 2, 5]
    assert contents(lists) == [[(3, 1), (5, 2), (8, 0)], [], [(1, 4), (4, 0), (4, 7)]]


def test_equal_pairs_count_once() -> None:
    rows = [(0, 1, 1), (1, 1, 1), (0, 1, 1), (0, 1, 2), (0, 1, 1)]
    lists = SortedLists.build(*columns(rows), 3)
    lists.check()
    assert contents(lists) == [[(1, 1), (1, 2)], [(1, 1)], []]
    assert lists.insert(*columns([(0, 1, 2), (2, 0, 0), (2, 0, 0)])) == 1
    assert lists.delete(*columns([(0, 1, 2), (0, 1, 2), (1, 9, 9)])) == 1
    lists.check()
    assert contents(lists) == [[(1, 1)], [(1, 1)], [(0, 0)]]


def test_extreme_keys_and_values_keep_their_order() -> None:
    ends = (-(2**31), -1, 0, 2**31 - 1)
    rows = [(0, key, value) for key in ends for value in ends]
    lists = SortedLists.build(*columns(rows), 1)
    expected = sorted((key, value) for _, key, value in rows)
    assert contents(lists) == [expected]
    changed = SortedLists.build(*columns([]), 1)
    assert changed.insert(*columns(reversed(rows))) == len(rows)
    changed.check()
    assert contents(changed) == [expected]


@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("n", [0, 1, BLOCK, BLOCK + 1, TALL])
def test_a_search_finds_the_first_pair_from_a_key_on(n: int, *, loose: bool) -> None:
    """Also where many blocks share one key, and where the first pair is the next block's."""
    keys = np.repeat(np.arange(0, n, 5), 5)[:n].astype(np.int32) // 200 * 3
    values = np.arange(n, dtype=np.int32)
    lists = SortedLists.build(np.zeros(n, np.int32), keys, values, 1)
    if loose:
        lists.reserve(0)
        assert height(lists, 0) == (0 if n <= BLOCK else 2 if n <= TALL // 2 else 3)
    pairs = list(zip(keys.tolist(), values.tolist(), strict=True))
    for key in range(-1, int(keys.max(initial=0)) + 2):
        assert scan(lists, 0, key) == pairs[bisect.bisect_left(pairs, (key, -1)) :]
    assert _length(lists.searched, 0) == n
    for key, value in (*pairs[:3], *pairs[-3:]):
        at = int(_find(lists.searched, 0, key, value))
        assert (lists.searched.keys[at], lists.searched.values[at]) == (key, value)
        assert _find(lists.searched, 0, key, n) == -1


def test_trees_grow_and_shrink() -> None:
    """Through every height and back to nothing, with no block left but the root."""
    rng = np.random.default_rng(5)
    lists = SortedLists.build(*columns([]), 2)
    keys = rng.permutation(TALL).astype(np.int32)
    values = rng.integers(-9, 9, TALL).astype(np.int32)
    numbers = np.ones(TALL, np.int32)
    heights = set()
    for part in np.array_split(np.arange(TALL), 200):
        lists.insert(numbers[part], keys[part], values[part])
        lists.check()
        heights.add(height(lists, 1))
    assert scan(lists, 1) == sorted(zip(keys.tolist(), values.tolist(), strict=True))
    for part in np.array_split(rng.permutation(TALL), 40):
        assert lists.delete(numbers[part], keys[part], values[part]) == len(part)
        lists.check()
        heights.add(height(lists, 1))
    assert heights >= {0, 1, 2, 3}
    assert contents(lists) == [[], []]


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_insertions(*, descending: bool) -> None:
    lists = SortedLists.build(*columns([]), 1)
    keys = np.arange(TALL, dtype=np.int32)
    order = keys[::-1].copy() if descending else keys
    lists.insert(np.zeros(TALL, np.int32), order, order)
    lists.check()
    assert height(lists, 0) == 3
    assert contents(lists) == [list(zip(keys.tolist(), keys.tolist(), strict=True))]


def test_a_change_costs_logarithmic_work() -> None:
    """Slots that one insertion or deletion writes: bounded by the levels, not by the length."""
    written = {}
    for n in (1_000, 30_000, 900_000):
        lists = of_range(n, step=2)
        most = 0
        for i in range(40):
            key = columns([(0, 2 * (i * n // 40) + 1, 0)])
            for change in (lists.insert, lists.delete):
                before = lists.reserve(1)
                copies = before.keys.copy(), before.values.copy(), before.figures.copy()
                assert change(*key) == 1
                after = lists.reserve(0)
                assert after.keys is before.keys, "nothing is written anew"
                changed = (copies[0] != after.keys) | (copies[1] != after.values)
                most = max(most, int(np.count_nonzero(changed)))
        levels = height(lists, 0)
        assert most <= 3 * SLOTS * levels
        written[levels] = most
    assert list(written) == [2, 3, 4], "a list thirty times as long is one level higher"


def test_space_is_used_again() -> None:
    """Pairs that come and go, as many as there are, do not make the arrays grow."""
    n = 40 * BLOCK
    lists = of_range(n)
    lists.reserve(n)
    zeros, keys = np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
    sizes = []
    for turn in range(12):
        old, new = keys + turn * n, keys + (turn + 1) * n
        assert lists.insert(zeros, new, new) == n
        assert lists.delete(zeros, old if turn else keys, old if turn else keys) == n
        sizes.append(lists.nbytes)
        lists.check()
    assert max(sizes) <= 4 * 8 * n + 1000
    assert lists.delete(zeros, new, new) == n
    lists.reserve(0)
    assert lists.nbytes < 1000, "what is wasted is given back"


def test_reserved_room_is_enough() -> None:
    """The worst that can be: every list at its limit, every block of every level full."""
    worst = 0.0
    for n_lists, length in ((1, 1), (100, 0), (100, 31), (100, BLOCK), (20, 3000), (1, TALL)):
        rows = [(n, 10 * i, 0) for n in range(n_lists) for i in range(length)]
        for n_pairs in (1, 7, 500, 4000):
            lists = SortedLists.build(*columns(rows), n_lists)
            loose = lists.reserve(0)
            used = int(loose.figures[USED])
            new = [(i % n_lists, 10 * (i // n_lists) + 5, i) for i in range(n_pairs)]
            bound = room_for(n_pairs, used)
            assert lists.insert(*columns(new)) == n_pairs
            grown = (lists.nbytes - 12 * n_lists) // 8
            assert grown <= len(lists.searched.keys)
            worst = max(worst, (grown - used) / bound)
            lists.check()
    assert worst < 1


def test_given_arrays_never_change() -> None:
    lists = SortedLists.build(*columns([(n % 7, n % 50, n) for n in range(900)]), 7)
    given = {name: array.copy() for name, array in lists.arrays().items()}
    for array in given.values():
        array.flags.writeable = False
    mapped = SortedLists.from_arrays(given)
    before = {name: array.tobytes() for name, array in given.items()}
    mapped.insert(*columns([(3, 9, -5)]))
    mapped.delete(*columns([(3, 3, 3)]))
    assert mapped.add_lists(2) == 7
    mapped.check()
    assert before == {name: array.tobytes() for name, array in given.items()}
    assert contents(mapped)[:3] == contents(lists)[:3]
    assert contents(mapped)[3] == sorted({*contents(lists)[3], (9, -5)} - {(3, 3)})
    assert contents(mapped)[7:] == [[], []]


def test_lists_are_added_again_and_again() -> None:
    lists = SortedLists.build(*columns([]), 0)
    for n in range(100):
        assert lists.add_lists(1) == n
        assert lists.insert(*columns([(n, n, n), (n // 2, -n, n)])) == (2 if n else 1)
    lists.check()
    assert scan(lists, 3) == [(-7, 7), (-6, 6), (3, 3)]
    assert SortedLists.from_arrays(lists.arrays()).n_lists == 100


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_lists, "MAX_PAIRS", 100)
    with pytest.raises(OptionError, match="101 list entries are too many"):
        of_range(101)
    lists = of_range(60)
    with pytest.raises(OptionError, match="101 list entries are too many"):
        lists.reserve(41)
    with pytest.raises(OptionError, match="takes more room than one index has"):
        lists.reserve(40)
    assert lists.packed
    assert lists.n_pairs == 60


PACKED_FAULTS = [
    ("offsets", 0, 1, "do not begin at 0"),
    ("offsets", -1, 4, "do not fill the keys"),
    ("offsets", 1, 9, "ends before it begins"),
    ("keys", 1, 0, "list 0 does not ascend"),
    ("values", 4, 0, "list 1 does not ascend"),
]


@pytest.mark.parametrize(("name", "at", "value", "message"), PACKED_FAULTS)
def test_check_finds_what_is_broken(name: str, at: int, value: int, message: str) -> None:
    rows = [(0, 1, 1), (0, 2, 2), (1, 5, 0), (1, 5, 1), (1, 5, 2)]
    arrays = SortedLists.build(*columns(rows), 2).arrays()
    broken = {key: array.copy() for key, array in arrays.items()}
    broken[name][at] = value
    with pytest.raises(AssertionError, match=message):
        SortedLists.from_arrays(broken).check()


def test_check_finds_arrays_of_another_type() -> None:
    arrays = SortedLists.build(*columns([(0, 1, 1)]), 1).arrays()
    for name in arrays:
        with pytest.raises(AssertionError, match="of 32 bits"):
            SortedLists.from_arrays(arrays | {name: arrays[name].astype(np.int64)}).check()


def test_check_survives_any_broken_tree() -> None:
    """One number changed anywhere: the check says so, or the place is not in use."""
    rng = np.random.default_rng(8)
    lists = of_range(TALL)
    lists.delete(*columns([(0, key, key) for key in range(200, 900)]))  # frees some blocks
    loose = lists.reserve(0)
    used = int(loose.figures[USED])
    found = 0
    for _ in range(400):
        array = (loose.keys, loose.values)[int(rng.integers(2))]
        at = int(rng.integers(used))
        kept = int(array[at])
        array[at] = rng.choice([-1, 0, 1, 2**31 - 1, -(2**31), kept + 1, int(rng.integers(used))])
        try:
            lists.check()
        except AssertionError:
            found += 1
        array[at] = kept
    lists.check()
    assert found > 100
    directory: list[tuple[Any, int, str]] = [
        (loose.begins, -12_345, "not in the arrays"),
        (loose.begins, 12_345, "ends before it begins"),
        (loose.ends, 1, "add up"),
        (loose.figures[USED:], 12_345, "more slots are used"),
        (loose.figures[USED:], -SLOTS, "not in the arrays"),
        (loose.figures[HELD:], 1, "add up"),
        (loose.figures[FREE:], 12_345, "not in the arrays"),
        (loose.figures[FREE:], ~int(loose.begins[0]) - int(loose.figures[FREE]), "share"),
    ]
    for array, change, message in directory:
        array[0] += change
        with pytest.raises(AssertionError, match=message):
            lists.check()
        array[0] -= change
    lists.check()


class Machine(RuleBasedStateMachine):
    """Lists under any changes, beside a dict of sets."""

    keys = st.integers(-3, 12)
    rows = st.lists(st.tuples(st.integers(0, 3), keys, st.integers(0, 40)), max_size=40)

    @initialize(rows=rows, long=st.integers(0, 5 * BLOCK))
    def build(self, rows: list[tuple[int, int, int]], long: int) -> None:
        """List 3 is longer than a block in most runs."""
        rows = rows + [(3, i % 5, i) for i in range(long)]
        self.lists = SortedLists.build(*columns(rows), 4)
        self.truth: list[set[tuple[int, int]]] = [set() for _ in range(4)]
        for n, *pair in rows:
            self.truth[n].add((pair[0], pair[1]))

    @rule(rows=rows)
    def insert(self, rows: list[tuple[int, int, int]]) -> None:
        new = {row for row in rows if row[1:] not in self.truth[row[0]]}
        assert self.lists.count_held(*columns(new)) == 0
        assert self.lists.insert(*columns(rows)) == len(new)
        for n, *pair in rows:
            self.truth[n].add((pair[0], pair[1]))

    @rule(rows=rows)
    def delete(self, rows: list[tuple[int, int, int]]) -> None:
        held = {row for row in rows if row[1:] in self.truth[row[0]]}
        assert self.lists.delete(*columns(rows)) == len(held)
        for n, *pair in held:
            self.truth[n].remove((pair[0], pair[1]))

    @rule(n=st.integers(0, 3), first=st.integers(0, 300), count=st.integers(0, 300))
    def insert_many(self, n: int, first: int, count: int) -> None:
        rows = [(n, i % 5, i) for i in range(first, first + count)]
        self.lists.insert(*columns(rows))
        self.truth[n] |= {(key, value) for _, key, value in rows}

    @rule(n=st.integers(0, 3), every=st.integers(1, 3), count=st.integers(0, 300))
    def delete_many(self, n: int, every: int, count: int) -> None:
        pairs = sorted(self.truth[n])[::every][:count]
        assert self.lists.delete(*columns([(n, *pair) for pair in pairs])) == len(pairs)
        self.truth[n] -= set(pairs)

    @rule()
    def map_again(self) -> None:
        arrays = {name: array.copy() for name, array in self.lists.arrays().items()}
        for array in arrays.values():
            array.flags.writeable = False
        self.lists = SortedLists.from_arrays(arrays)

    @precondition(lambda self: self.lists.n_lists < 9)
    @rule()
    def add(self) -> None:
        assert self.lists.add_lists(1) == len(self.truth)
        self.truth.append(set())

    @rule(key=keys, n=st.integers(0, 3))
    def search(self, key: int, n: int) -> None:
        pairs = sorted(self.truth[n])
        assert scan(self.lists, n, key) == pairs[bisect.bisect_left(pairs, (key, -1)) :]

    @invariant()
    def agrees(self) -> None:
        self.lists.check()
        assert self.lists.n_pairs == sum(map(len, self.truth))
        assert self.lists.lengths().tolist() == list(map(len, self.truth))
        assert contents(self.lists) == [sorted(pairs) for pairs in self.truth]


def test_any_changes() -> None:
    run_state_machine_as_test(Machine, settings=examples(steps=25))
