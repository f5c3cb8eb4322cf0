"""The strategy ``counting``: shared predicates, counters, changes, and what damage it notices.

What every strategy promises is in ``test_strategies.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from answers import build, expected
from bittern.errors import OptionError
from bittern.growing import GrowingColumn, longer
from bittern.literature.counting import match as counting_match
from bittern.literature.counting.clauses import MOST_COUNTED
from bittern.literature.counting.index import Counting
from bittern.literature.counting.intervals import UNUSED, DistinctIntervals, ends_of, keys_of
from bittern.matching import stabbed
from bittern.matching.contract import Refused
from bittern.model.classes.compile import Compiled
from bittern.stabbing.registry import STRUCTURES, build_named
from matching_cases import SHAPES, small_events
from subscription_contract import (
    compiled,
    encoded,
    expected_pairs,
    held,
    pairs,
    part,
    read_only_copies,
    truth,
)

Arrays = dict[str, npt.NDArray[Any]]


def index_of(catalog: Compiled, which: list[int] | None = None, **parameters: Any) -> Counting:
    """Classes of a catalog, all of them unless told, under their own numbers."""
    chosen = list(range(len(catalog.classes))) if which is None else which
    index, live = held(Counting, catalog, chosen, **parameters)
    assert isinstance(index, Counting)
    assert live == dict(enumerate(chosen))
    return index


def agrees(index: Counting, catalog: Compiled, live: dict[int, int], events: list[Any]) -> None:
    index.check(catalog.rank.n_channels, catalog.rank.n_cells)
    for sparse in (False, True):
        batch = encoded(catalog, events, sparse=sparse)
        assert pairs(index, batch) == expected_pairs(truth(catalog, batch), live)


# ------------------------------------------------------------------ what stands where


def test_the_drawn_example() -> None:
    """``a <= 4 AND b = 7``, and ``a <= 4 AND c IS NULL OR b = 7``."""
    catalog = compiled(["a <= 4 AND b = 7", "(a <= 4 AND c IS NULL) OR b = 7"])
    index = index_of(catalog)
    statistics = index.statistics()
    assert (statistics["clauses"], statistics["intervals"], statistics["entries"]) == (3, 3, 5)
    events = [
        {"a": 4, "b": 7},
        {"a": 4, "b": 7, "c": "there"},
        {"a": 4, "c": 1},
        {"a": 4},
        {"b": 7},
        {},
    ]
    agrees(index, catalog, {0: 0, 1: 1}, events)
    found = index.match(encoded(catalog, events))
    rows = [sorted(found.classes[found.rows == row].tolist()) for row in range(len(events))]
    assert rows == [[0, 1], [0, 1], [], [1], [1], []]
    assert found.candidates.tolist() == [4, 5, 3, 2, 2, 0]


def test_a_predicate_that_a_thousand_clauses_share_stands_once() -> None:
    texts = [f"model = 'x' AND price <= {i}" for i in range(1000)]
    catalog = compiled(texts)
    statistics = index_of(catalog).statistics()
    assert statistics["clauses"] == 1000
    assert statistics["intervals"] == 1001
    assert statistics["entries"] == 2000
    events = [{"model": "x", "price": i / 2} for i in range(-4, 2010, 59)] + [{"model": "y"}]
    agrees(index_of(catalog), catalog, {c: c for c in range(1000)}, events)
    changed = index_of(catalog, list(range(500)))
    changed.insert(part(catalog.classes, range(500, 1000)))
    assert changed.statistics()["intervals"] == 1001
    agrees(changed, catalog, {c: c for c in range(1000)}, events)


def test_values_of_a_set_are_shared_one_by_one() -> None:
    catalog = compiled(["a IN (1, 2, 3) AND b = 1", "a IN (2, 3, 4)", "a = 3 AND b != 1"])
    statistics = index_of(catalog).statistics()
    assert statistics["intervals"] == 4 + 1 + 2
    assert statistics["entries"] == 4 + 3 + 3
    events = [{"a": a, "b": b} for a in (None, 0, 1, 2, 3, 4, 5) for b in (None, 0, 1)]
    agrees(index_of(catalog), catalog, {0: 0, 1: 1, 2: 2}, events)


def test_what_forbids_a_clause_does_so_however_much_else_holds() -> None:
    """Taken back too early, a forbidden clause would come to nought on the way."""
    texts = ["a = 1 AND b IS NULL", "a = 1 AND b IS NULL AND c IS NULL", "c = 1 AND a IS NULL"]
    texts += ["a = 1 AND d = 1 AND s NOT LIKE '%x%'", "s LIKE '%x%' AND a = 1 AND b IS NULL"]
    catalog = compiled(texts)
    events = [
        {"a": a, "b": b, "c": c, "d": d, "s": s}
        for a in (None, 1)
        for b in (None, 1)
        for c in (None, 1)
        for d in (None, 1)
        for s in (None, "x", "y")
    ]
    index = index_of(catalog)
    live = {c: c for c in range(len(texts))}
    agrees(index, catalog, live, events)
    agrees(index, catalog, live, events[::-1])


def conjunction(n: int) -> str:
    return " AND ".join(f"w{i} = 1" for i in range(n))


def test_a_byte_counts_as_many_predicates_as_it_can() -> None:
    most = MOST_COUNTED
    texts = [
        conjunction(most),
        conjunction(most + 1),
        f"{conjunction(most - 1)} AND z IS NULL",
        f"{conjunction(most)} AND z IS NULL",
        conjunction(256 + 1),
        f"a = 1 OR ({conjunction(300)})",
    ]
    catalog = compiled(texts)
    index = index_of(catalog)
    assert index.statistics()["always"] == 4
    every = {f"w{i}": 1 for i in range(300)}
    events: list[dict[str, Any]] = [every, every | {"z": 1}, every | {"w7": 2}, {}, {"a": 1}]
    events += [{f"w{i}": 1 for i in range(n)} for n in (1, most - 1, most, most + 1, 257, 299)]
    agrees(index, catalog, {c: c for c in range(len(catalog.classes))}, events)


def test_batches_are_cut_by_memory() -> None:
    events = small_events()
    right = expected(SHAPES, events)
    matcher = bittern.Matcher(build(SHAPES, strategy="counting"))
    for chunk in (0, 1, 7, 100):
        with mock.patch.object(counting_match, "CHUNK", chunk):
            assert matcher.match(events).to_pylist() == right, chunk


# ------------------------------------------------------------------ any stabbing index


@pytest.mark.parametrize("stabbing", sorted(STRUCTURES))
def test_every_stabbing_structure_by_name(stabbing: str) -> None:
    texts = list(SHAPES.values())
    catalog = compiled(texts)
    events = small_events()
    n = len(catalog.classes)
    whole = index_of(catalog, stabbing=stabbing)
    assert whole.parameters == {"stabbing": stabbing}
    assert whole.statistics()["stabbing"]["structure"] == stabbing
    agrees(whole, catalog, {c: c for c in range(n)}, events)

    index = index_of(catalog, list(range(n // 2)), stabbing=stabbing)
    index.insert(part(catalog.classes, range(n // 2, n)))
    live = {c: c for c in range(n)}
    agrees(index, catalog, live, events)
    gone = np.arange(0, n, 2, dtype=np.int32)
    index.delete(part(catalog.classes, gone), gone)
    live = {c: c for c in range(1, n, 2)}
    agrees(index, catalog, live, events)
    opened = Counting.from_arrays(read_only_copies(index.arrays()), index.parameters)
    agrees(opened, catalog, live, events)


def test_a_chosen_structure_remembers_what_was_asked_for() -> None:
    catalog = compiled(list(SHAPES.values()))
    index = index_of(catalog, stabbing="auto", stabbing_memory=1 << 20)
    assert index.parameters["asked"] == "auto"
    assert index.parameters["memory"] == 1 << 20
    assert index.options == {"stabbing": "auto", "stabbing_memory": 1 << 20}
    opened = Counting.from_arrays(index.arrays(), index.parameters)
    assert opened.options == index.options
    assert index_of(catalog).options == {"stabbing": "cei", "stabbing_memory": None}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stabbing": "tree"}, "tree"),
        ({"stabbing_memory": 5}, "auto"),
        (
            {"stabbing": "auto", "stabbing_memory": 0},
            "in bytes, must be a whole number of at least 1",
        ),
        ({"colour": 1}, "the strategy counting has no parameter 'colour'"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        bittern.Index.build({"s": "a = 1"}, strategy="counting", parameters=parameters)


# ------------------------------------------------------------------ changes


def test_intervals_come_with_their_first_clause_and_go_with_their_last() -> None:
    texts = ["a = 1 AND b = 1", "a = 1 AND b = 2", "a = 1 AND c IS NULL", "c = 1"]
    catalog = compiled(texts)
    events = [{"a": 1, "b": b, "c": c} for b in (None, 1, 2) for c in (None, 1)]
    index = index_of(catalog, [])
    seen = []

    def insert(*which: int) -> None:
        index.insert(part(catalog.classes, which))
        seen.append(index.statistics()["intervals"])

    def delete(which: list[int], numbers: list[int]) -> None:
        index.delete(part(catalog.classes, which), np.array(numbers, dtype=np.int32))
        seen.append(index.statistics()["intervals"])

    insert(0)
    insert(1, 2)
    agrees(index, catalog, {0: 0, 1: 1, 2: 2}, events)
    delete([0], [0])
    delete([2, 1], [2, 1])
    assert seen == [2, 4, 3, 0]
    assert index.statistics()["stabbing"]["entries"] == 0
    agrees(index, catalog, {}, events)
    insert(3, 0)
    insert(0, 0)
    agrees(index, catalog, {3: 3, 4: 0, 5: 0, 6: 0}, events)
    assert seen[-2:] == [3, 3]
    assert len(index.arrays()["keys"]) == 4, "numbers of intervals are not given again"
    statistics = index.statistics()
    assert (statistics["classes"], statistics["deleted"], statistics["clauses"]) == (7, 3, 4)


@pytest.mark.parametrize(
    ("inserted", "deleted"),
    [
        ("a IN (1, 2, 3)", "a IN (1, 2)"),
        ("a IN (1, 2)", "a IN (1, 2, 3)"),
        ("a IN (1, 2)", "a IN (1, 3)"),
        ("a = 1 AND b = 1", "a = 1"),
        ("a = 1", "a = 1 AND b = 1"),
        ("a = 1 OR b = 1", "a = 1"),
        ("a = 1 OR b = 1", "a = 1 OR b = 2"),
        ("a = 1 OR b = 1", "a = 1 AND b = 1"),
        ("a = 1 AND b IS NULL", "a = 1 AND b IS NOT NULL"),
        ("a IS NULL", "b IS NULL"),
        ("a IS NULL", "a = 1 AND a = 2"),
        ("a = 1 AND a = 2", "a IS NULL"),
        ("a IS NULL", "a = 1"),
        ("a = 1 AND a = 2", "a = 1"),
    ],
)
def test_only_what_was_inserted_is_deleted(inserted: str, deleted: str) -> None:
    """One that is right goes with one that is not: neither is taken out."""
    catalog = compiled(["b = 1", inserted, deleted])
    right, wrong = catalog.class_of[1:].tolist()
    index = index_of(catalog, [0, right])
    events = [{"a": a, "b": b} for a in (None, 1, 2, 3) for b in (None, 1, 2)]
    for numbers in ([0, 1], [1, 0]):
        classes = part(catalog.classes, [[0, wrong][number] for number in numbers])
        with pytest.raises(OptionError, match="delete exactly what was inserted"):
            index.delete(classes, np.array(numbers, dtype=np.int32))
        agrees(index, catalog, {0: 0, 1: right}, events)
    index.delete(part(catalog.classes, [right]), np.array([1], dtype=np.int32))
    agrees(index, catalog, {0: 0}, events)
    with pytest.raises(OptionError, match="delete exactly what was inserted"):
        index.delete(part(catalog.classes, [right]), np.array([1], dtype=np.int32))
    with pytest.raises(OptionError, match="1 classes to delete have 2 numbers"):
        index.delete(part(catalog.classes, [0]), np.array([0, 1], dtype=np.int32))


def test_a_class_that_has_no_normal_form_cannot_be_there() -> None:
    bomb = " AND ".join(f"(x{i} = 1 OR y{i} = 1)" for i in range(12))
    catalog = compiled(["a = 1", bomb])
    index = index_of(catalog, [0])
    with pytest.raises(Refused):
        index.insert(part(catalog.classes, [0, 1]))
    with pytest.raises(OptionError, match="delete exactly what was inserted"):
        index.delete(part(catalog.classes, [1]), np.array([0], dtype=np.int32))
    agrees(index, catalog, {0: 0}, [{"a": 1}, {}])


def test_long_lists_change() -> None:
    """A thousand clauses share a predicate, one by one, and leave in another order."""
    catalog = compiled([f"a = 1 AND b = {i}" for i in range(400)])
    index = index_of(catalog, [])
    rng = np.random.default_rng(4)
    for some in np.array_split(np.arange(400), 37):
        index.insert(part(catalog.classes, some))
    live = {c: c for c in range(400)}
    events = [{"a": 1, "b": int(b)} for b in rng.integers(0, 450, 40)] + [{"b": 3}, {"a": 1}]
    agrees(index, catalog, live, events)
    for some in np.array_split(rng.permutation(400)[:390], 13):
        index.delete(part(catalog.classes, some), some.astype(np.int32))
        for c in some.tolist():
            del live[c]
        agrees(index, catalog, live, events)
    packed = Counting.from_arrays(index.arrays(), index.parameters)
    agrees(packed, catalog, live, events)
    assert packed.nbytes <= index.nbytes


def test_bytes_are_those_of_the_arrays() -> None:
    catalog = compiled([f"a = {i} AND b < {i % 7}" for i in range(500)])
    index = index_of(catalog)
    held_there = index.nbytes
    assert sum(array.nbytes for array in index.arrays().values()) <= held_there
    index.insert(part(catalog.classes, range(500)))
    assert index.nbytes > held_there


# ------------------------------------------------------------------ damage


def _with(name: str, change: Callable[[npt.NDArray[Any]], Any]) -> Callable[[Arrays], None]:
    def spoil(arrays: Arrays) -> None:
        changed = change(arrays[name])
        if changed is not None:
            arrays[name] = changed

    return spoil


def _set(name: str, at: int, value: int) -> Callable[[Arrays], None]:
    def change(array: npt.NDArray[Any]) -> None:
        array[at] = value

    return _with(name, change)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_set("bases", 0, 1), "begin at the first cell"),
        (_set("bases", 1, 0), "a channel has no cell"),
        (_with("bases", lambda a: a[:-1]), "one base per channel"),
        (_with("bases", lambda a: a.astype(np.int64)), "not of 32 bits"),
        (_set("keys", 0, -5), "a key is negative"),
        (_with("keys", lambda a: a[[0, 0, *range(2, len(a))]]), "an interval stands twice"),
        (_with("keys", lambda a: a[:-1]), "one list per interval"),
        (_set("keys", 0, (1 << 32) | (0 << 1)), "an interval is empty"),
        (_set("keys", 0, (1 << 32) | (99 << 1)), "beyond the axis"),
        (_set("keys", 0, (0 << 32) | (3 << 1)), "leaves its channel"),
        (_set("keys", 0, (1 << 32) | (1 << 1) | 1), "what forbids is not a channel"),
        (_set("keys", 0, UNUSED), "an interval is kept that no clause uses"),
        (_set("starts", 0, 1), "clauses do not start at the first class"),
        (_set("starts", 1, 5), "the clauses of classes do not ascend"),
        (_with("starts", lambda a: a[:-1]), "one start per class"),
        (_with("sizes", lambda a: a[:-1]), "clauses do not end at the last class"),
        (_with("sizes", lambda a: a.astype(np.int32)), "not bytes"),
        (_set("sizes", 0, 0), "a clause counts for a class that has none"),
        (_set("sizes", 0, 1), "a clause counts to another number"),
        (_set("entries", 0, -2), "less than no intervals"),
        (_set("entries", 0, -1), "a clause counts for a class that has none"),
        (_set("entries", 0, 7), "a class has more or fewer intervals"),
        (_set("entries", 3, -1), "an always-candidate is counted, or deleted"),
        (_set("lists.keys", 1, 77), "a list names no clause"),
        (_set("lists.keys", 0, 5), "does not ascend"),
        (_set("lists.values", 0, 1), "a list gives a clause to another class"),
        (_with("lists.offsets", lambda a: a[:-1]), "packed sorted lists do not fill the keys"),
        (_set("always.classes", 0, 9), "an always-candidate is no class"),
        (_set("always.classes", 0, 1), "an always-candidate is counted, or deleted"),
    ],
)
def test_damage_is_named(spoil: Callable[[Arrays], None], message: str) -> None:
    texts = ["a = 1 AND b < 2", "a = 1 OR b = 3", "b = 3 AND c IS NULL", "c IS NULL"]
    catalog = compiled(texts)
    assert catalog.class_of.tolist() == [0, 1, 2, 3]
    rank = catalog.rank
    index = index_of(catalog)
    arrays = {name: array.copy() for name, array in index.arrays().items()}
    spoil(arrays)
    broken = Counting.from_arrays(arrays, index.parameters)
    with pytest.raises(AssertionError, match=message):
        broken.check(rank.n_channels, rank.n_cells)


def test_a_clause_that_would_count_a_cell_twice_is_noticed() -> None:
    catalog = compiled(["a IN (1, 2)", "a BETWEEN 1 AND 2"])
    index = index_of(catalog)
    arrays = {name: array.copy() for name, array in index.arrays().items()}
    lows, highs = ends_of(arrays["keys"])
    both = int(np.flatnonzero(lows < highs)[0])
    first, last = arrays["lists.offsets"][[both, both + 1]]
    assert last - first == 1
    arrays["lists.keys"][first], arrays["lists.values"][first] = 0, 0
    arrays["entries"][:] = 3, 0
    arrays["sizes"][:] = 1, 0
    broken = Counting.from_arrays(arrays, index.parameters)
    with pytest.raises(AssertionError, match="a clause counts one cell twice"):
        broken.check(catalog.rank.n_channels, catalog.rank.n_cells)


def with_stabbing(index: Counting, lows: list[int], highs: list[int]) -> Counting:
    """The same index over a stabbing index of these intervals."""
    other = build_named("cei", lows, highs, index.chosen.index.domain)
    strange = {f"stabbing.{name}": array for name, array in other.arrays().items()}
    return Counting.from_arrays(index.arrays() | strange, index.parameters)


@pytest.mark.parametrize("at_most", [1, 1 << 28])
def test_a_stabbing_index_of_other_intervals_is_noticed(at_most: int) -> None:
    """Also where only some of the cells can be looked at in full."""
    catalog = compiled(["a < 1 AND b < 1", "a < 2 AND b < 2"])
    n_channels, n_cells = catalog.rank.n_channels, catalog.rank.n_cells
    index = index_of(catalog)
    lows, highs = (ends.tolist() for ends in ends_of(index.arrays()["keys"]))
    with mock.patch.object(stabbed, "_MOST_COMPARED", at_most):
        with_stabbing(index, lows, highs).check(n_channels, n_cells)
        wider = with_stabbing(index, lows, [highs[0] + 1, *highs[1:]])
        with pytest.raises(AssertionError, match="finds more or fewer intervals"):
            wider.check(n_channels, n_cells)
        fewer = with_stabbing(index, lows[:-1], highs[:-1])
        with pytest.raises(AssertionError, match="finds more or fewer intervals"):
            fewer.check(n_channels, n_cells)
        swapped = with_stabbing(index, lows[::-1], highs[::-1])
        with pytest.raises(AssertionError, match="finds other intervals"):
            swapped.check(n_channels, n_cells)
        longer_axis = with_stabbing(index, lows, highs)
        with pytest.raises(AssertionError, match="another axis"):
            longer_axis.chosen.check(*ends_of(index.arrays()["keys"]), n_cells + 1)


def test_lists_that_are_gone_through_twice_leave_no_room() -> None:
    """What was never checked is wrong, but nothing is written where there is no room for it."""
    catalog = compiled(["a = 1 AND b = 2 AND e IS NULL", "a = 1 AND c = 3"])
    index = index_of(catalog)
    n = len(index.arrays()["keys"])
    everywhere = with_stabbing(index, [0] * n, [catalog.rank.n_cells - 1] * n)
    events = encoded(catalog, [{"a": 1}, {"a": 1, "b": 2, "c": 3, "e": 1}])
    with pytest.raises(bittern.errors.SnapshotError, match="damaged"):
        everywhere.match(events)


# ------------------------------------------------------------------ what to work in


def test_what_a_batch_worked_in_serves_the_next() -> None:
    """Also where there was no room for what an event met, and it was taken up again."""
    texts = [f"(a = 1 AND b > {i}) OR (a = 1 AND c IS NULL AND b < {i})" for i in range(40)]
    catalog = compiled(texts)
    index = index_of(catalog, list(range(30)))
    live = {c: c for c in range(30)}
    events = [{"a": 1, "b": b, "c": c} for b in (None, *range(0, 40, 3)) for c in (None, 1)]
    with mock.patch.multiple(counting_match, _LEAST_ROOM=0, _ROOM=0):
        for event in events:
            agrees(index, catalog, live, [event])
    agrees(index, catalog, live, events)
    index.insert(part(catalog.classes, range(30, 40)))
    live |= {c: c for c in range(30, 40)}
    agrees(index, catalog, live, events)
    index.delete(part(catalog.classes, range(10)), np.arange(10, dtype=np.int32))
    agrees(index, catalog, {c: c for c in range(10, 40)}, events)


def test_threads_match_one_index() -> None:
    catalog = compiled([f"a <= {i} AND b > {i % 9} OR c = {i}" for i in range(300)])
    index = index_of(catalog)
    batches = [
        encoded(catalog, [{"a": (7 * i + k) % 300, "b": k % 11, "c": i} for k in range(40)])
        for i in range(8)
    ]
    right = [pairs(index, batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = pool.map(lambda batch: pairs(index, batch), batches)
            assert list(found) == right


# ------------------------------------------------------------------ numbers of intervals


@given(st.data())
def test_intervals_are_found_under_their_numbers(data: st.DataObject) -> None:
    """Against a dictionary, through any history; few keys, so that searches meet each other."""
    bases = np.array([0, 40], dtype=np.int32)
    cells = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
    some = st.lists(cells, max_size=12)

    def keys(drawn: list[list[int]]) -> npt.NDArray[np.int64]:
        ends = np.array(drawn, dtype=np.int32).reshape(-1, 2)
        return keys_of(ends[:, 0], ends[:, 1], np.zeros(len(ends), np.bool_))

    intervals = DistinctIntervals(np.empty(0, np.int64))
    known: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["add", "add", "remove", "share"]))
        if step == "add":
            wanted = keys(data.draw(some))
            numbers, added = intervals.add(wanted)
            new = dict(zip(wanted.tolist(), numbers.tolist(), strict=True))
            assert {key: n for key, n in new.items() if key in known}.items() <= known.items()
            assert sorted(added.tolist()) == sorted(n for k, n in new.items() if k not in known)
            known |= new
        elif step == "remove" and known:
            gone = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True))
            intervals.remove(np.array([known.pop(key) for key in gone], dtype=np.int32))
        elif step == "share":
            shared = intervals.share()
            before = shared.copy()
            intervals.add(keys([[0, 39]]))
            intervals.remove(intervals.find(keys([[0, 39]])))
            assert np.array_equal(shared, before)
            intervals = DistinctIntervals(shared)
        intervals.check(bases)
        assert len(set(known.values())) == len(known)
        asked = keys(data.draw(some))
        right = [known.get(key, -1) for key in asked.tolist()]
        assert intervals.find(asked).tolist() == right
        assert intervals.numbers().tolist() == sorted(known.values())


def test_a_column_never_changes_what_it_handed_out() -> None:
    given_array = np.arange(3, dtype=np.int32)
    given_array.flags.writeable = False
    column = GrowingColumn(given_array)
    column.append(np.array([7, 8], dtype=np.int32))
    shared = column.share()
    column.extended(0)[0] = 9
    column.append(np.array([5], dtype=np.int32))
    column.cut(5)
    assert shared.tolist() == [0, 1, 2, 7, 8]
    assert given_array.tolist() == [0, 1, 2]
    assert column.items.tolist() == [9, 1, 2, 7, 8]
    assert column.items.dtype == np.int32


def test_what_has_no_room_of_its_own_is_copied_to_grow() -> None:
    """A view begins where its array does, and yet what is behind it is not free."""
    grown = longer(np.arange(3, dtype=np.int32), 2)
    assert grown.tolist() == [0, 1, 2, 0, 0]
    again = longer(grown, 1)
    assert np.shares_memory(grown, again)
    for view in (again[:2], again[:2][:2], again.view()[:2]):
        assert longer(view, 2).tolist() == [0, 1, 0, 0]
    assert again.tolist() == [0, 1, 2, 0, 0, 0]
    plain = np.arange(9, dtype=np.int32)
    assert longer(plain[:4], 3).tolist() == [0, 1, 2, 3, 0, 0, 0]
    assert plain.tolist() == list(range(9))
    rows = longer(np.ones((2, 4), dtype=np.int32), 1)
    assert rows.shape == (3, 4)
    assert rows.sum() == 8
