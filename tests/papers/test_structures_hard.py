"""Hard cases for every structure: extreme shapes, limits, threads, odd arguments, damage."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bittern.errors import OptionError
from bittern.literature.bit_vectors import slots
from bittern.literature.constructs import family as constructs
from bittern.literature.is_list import nodes as skip_nodes
from bittern.stabbing import cei, contract, interval_tree
from bittern.stabbing.choose import RECOMMENDED
from bittern.stabbing.contract import MAX_DOMAIN, StabbingIndex
from bittern.stabbing.registry import STRUCTURES, build_named, structure

EVERY = pytest.mark.parametrize("name", STRUCTURES)
WITH_BITS = pytest.mark.parametrize("name", ["cluster", "interval", "hybrid", "segment-tree"])

Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def columns(intervals: list[tuple[int, int, int]]) -> Columns:
    lows, highs, ids = np.array(intervals, np.int64).reshape(-1, 3).T.copy()
    return lows, highs, ids


def wrong(index: StabbingIndex, intervals: Columns, values: Any) -> list[int]:
    """Values for which the index does not find what comparing all intervals finds."""
    lows, highs, ids = intervals
    offsets, found = index.stab_batch(values)
    return [
        int(value)
        for i, value in enumerate(values)
        if not np.array_equal(
            np.sort(found[offsets[i] : offsets[i + 1]]),
            np.sort(ids[(lows <= value) & (value <= highs)]),
        )
    ]


def some(seed: int, n: int, domain: int, longest: int) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, domain, n)
    highs = np.minimum(lows + rng.integers(0, longest, n), domain - 1)
    return list(zip(lows.tolist(), highs.tolist(), range(n), strict=True))


# ------------------------------------------------------------------ extreme shapes


@pytest.mark.parametrize("name", ["is-list", "cluster", "interval", "hybrid", "segment-tree"])
def test_the_largest_domain(name: str) -> None:
    last = MAX_DOMAIN - 1
    held = [(0, last, 5), (last, last, 2**31 - 1), (0, 0, 0), (2**29, last - 1, 1), (7, 2**29, 2)]
    index = structure(name).build(*columns(held), domain=MAX_DOMAIN)
    values = np.array([-1, 0, 1, 6, 7, 2**29, 2**29 + 1, last - 1, last, last + 1, 2**31 - 1])
    assert wrong(index, columns(held), values) == []
    index.insert(last - 1, last, 9)
    index.delete(0, last, 5)
    held = [*held[1:], (last - 1, last, 9)]
    index.check()
    assert wrong(index, columns(held), values) == []


@EVERY
def test_many_that_are_the_same_come_and_go(name: str) -> None:
    domain = 130
    index = structure(name).build([63] * 500, [64] * 500, [7] * 500, domain=domain)
    for _ in range(300):
        index.delete(63, 64, 7)
    for number in range(200):
        index.insert(63, 64, number)
    index.check()
    expected = sorted([7] * 200 + list(range(200)))
    assert sorted(index.stab(63).tolist()) == sorted(index.stab(64).tolist()) == expected
    for number in range(200):
        index.delete(63, 64, number)
    for _ in range(200):
        index.delete(63, 64, 7)
    assert index.stab(63).tolist() == []
    assert index.statistics()["entries"] == 0
    with pytest.raises(OptionError, match="not in the index"):
        index.delete(63, 64, 7)


@EVERY
@pytest.mark.parametrize("order", [1, -1])
def test_nested_and_stairs_in_either_order(name: str, order: int) -> None:
    """The worst orders for trees that grow one interval at a time."""
    domain, n = 2000, 400
    nested = [(i, domain - 1 - i, i) for i in range(n)]
    stairs = [(4 * i, min(4 * i + 30, domain - 1), n + i) for i in range(n)]
    held = [*nested, *stairs][::order]
    index = structure(name).build([], [], [], domain=domain)
    for interval in held:
        index.insert(*interval)
    index.check()
    values = np.arange(0, domain, 3)
    assert wrong(index, columns(held), values) == []
    for interval in held[::2]:
        index.delete(*interval)
    index.check()
    assert wrong(index, columns(held[1::2]), values) == []


def test_an_interval_tree_stays_as_flat_as_its_module_says() -> None:
    """At most about twice as deep as a built one, whatever the order of insertion."""
    domain, n = 20_000, 5000
    for order in (1, -1):
        index = structure("interval-tree").build([], [], [], domain=domain)
        for i in list(range(n))[::order]:
            index.insert(4 * i, 4 * i + 1, i)
        assert index.statistics()["depth"] <= 2 * math.log2(n) + 10


@EVERY
def test_a_value_of_the_last_list_does_not_disturb_those_behind_it(name: str) -> None:
    """The last ids of an array are copied with more care than the others."""
    held = [*some(1, 300, 400, 30), (399, 399, 2**31 - 1)]
    index = structure(name).build(*columns(held), domain=400)
    values = np.tile([399, 5, 398, 7, 399, 200], 50)
    assert wrong(index, columns(held), values) == []


# ------------------------------------------------------------------ many threads


@EVERY
def test_many_threads_search_one_index(name: str) -> None:
    held = some(2, 2000, 3000, 60)
    index = structure(name).build(*columns(held), domain=3000)
    index.insert(5, 2000, 7)
    index.delete(5, 2000, 7)
    values = np.random.default_rng(3).integers(0, 3000, 200)
    found: list[list[int]] = []

    def search() -> None:
        found.extend(wrong(index, columns(held), values) for _ in range(20))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 80


@pytest.mark.parametrize(
    ("name", "module", "step"),
    [
        ("interval-tree", interval_tree, "plant"),
        ("is-list", skip_nodes, "lay_nodes"),
    ],
)
def test_a_search_while_another_thread_saves(
    name: str, module: Any, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built anew beside what is searched: nobody meets half of a tree, or an empty one."""
    held = some(4, 300, 500, 40)
    index = structure(name).build(*columns(held), domain=500)
    index.insert(5, 300, 7)
    index.delete(5, 300, 7)
    values, found = np.arange(500), []
    real = getattr(module, step)

    def in_the_middle(*arguments: Any) -> Any:
        found.append(wrong(index, columns(held), values))
        return real(*arguments)

    monkeypatch.setattr(module, step, in_the_middle)
    index.arrays()
    assert found
    assert found[0] == []


# ------------------------------------------------------------------ limits that are reached


def changed(name: str) -> tuple[StabbingIndex, list[tuple[int, int, int]]]:
    """An index with cuts that nothing needs any more, so that building again moves its nodes."""
    parameters = {"minimum": 4} if name == "hybrid" else {}
    held = some(5, 300, 4000, 300)
    index = structure(name).build(*columns(held), domain=4000, **parameters)
    for interval in held[:60]:
        index.delete(*interval)
    more = [(13 * i, 2000 + 90 * i, 1000 + i) for i in range(20)]
    for interval in more:
        index.insert(*interval)
    return index, [*held[60:], *more]


@WITH_BITS
def test_an_insertion_that_is_refused_for_its_size_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, held = changed(name)
    values = np.arange(0, 4000, 7)
    monkeypatch.setattr(contract, "MAX_BYTES", 1)
    refused = 0
    for i in range(2000):
        interval = (i, 3999 - i, 5000 + i)
        try:
            index.insert(*interval)
        except OptionError:
            refused += 1
            break
        held.append(interval)
    monkeypatch.undo()
    assert refused
    assert wrong(index, columns(held), values) == []
    index.check()


@WITH_BITS
def test_an_insertion_that_finds_no_slot_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = some(8, 50, 400, 100)
    index = structure(name).build(*columns(held), domain=400)
    monkeypatch.setattr(slots, "MAX_SLOTS", 50)
    with pytest.raises(OptionError, match="at most 50 intervals"):
        index.insert(3, 333, 1)
    index.check()
    assert wrong(index, columns(held), np.arange(400)) == []


@WITH_BITS
def test_what_is_too_large_can_still_shrink(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = some(6, 300, 400, 100)
    index = structure(name).build(*columns(held), domain=400)
    monkeypatch.setattr(contract, "MAX_BYTES", 1)
    for interval in held[:200]:  # so many that it is built again
        index.delete(*interval)
    index.check()
    index.arrays()
    monkeypatch.undo()
    assert wrong(index, columns(held[200:]), np.arange(400)) == []


def test_cei_refuses_a_directory_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "MAX_BYTES", 2**16)
    with pytest.raises(OptionError, match="bytes"):
        cei.CEI.build([1], [2], [3], domain=2**17)


@pytest.mark.parametrize(
    ("name", "module", "parameter"),
    [
        ("cei", cei, "segment"),
        ("lci-dt", constructs, "longest"),
        ("sci-dt", constructs, "longest"),
    ],
)
def test_too_many_entries_are_refused_without_counting_them(
    name: str, module: Any, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 intervals of a million cells, cut into single cells, would be counted for minutes."""

    def count(*_arguments: Any) -> int:
        pytest.fail("entries are counted one by one")

    monkeypatch.setattr(contract, "MAX_BYTES", 2**20)
    monkeypatch.setattr(module, "_count_entries", count)
    n = 1000
    with pytest.raises(OptionError):
        structure(name).build([0] * n, [9999] * n, range(n), domain=10_000, **{parameter: 1})


@pytest.mark.parametrize("memory", [250_000, 300_000, 600_000, 10_000_000])
def test_what_is_chosen_for_a_limit_keeps_to_it(memory: int) -> None:
    """20,000 intervals within 200 of a million cells, whose bytes are predicted far too low."""
    rng = np.random.default_rng(3)
    lows, highs = rng.integers(0, 100, 20_000), rng.integers(100, 200, 20_000)
    sizes = [
        structure(name).build(lows, highs, np.arange(20_000), domain=10**6).nbytes
        for name in RECOMMENDED
    ]
    if min(sizes) <= memory:
        assert build_named("auto", lows, highs, 10**6, memory=memory).nbytes <= memory
    else:
        with pytest.raises(OptionError, match="no structure for 20,000 intervals"):
            build_named("auto", lows, highs, 10**6, memory=memory)


# ------------------------------------------------------------------ odd arguments


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8"])
def test_values_of_every_whole_type(kind: str) -> None:
    held = some(7, 100, 120, 20)
    index = structure("cei").build(*columns(held), domain=120)
    values = np.arange(127).astype(kind)
    assert wrong(index, columns(held), values) == []
    assert wrong(index, columns(held), values[::-3]) == []


@pytest.mark.parametrize(
    "values",
    [
        np.array([], object),
        np.array([], "U3"),
        np.array([], np.float64),
    ],
)
def test_no_values_of_any_type(values: Any) -> None:
    assert structure("cei").build([1], [2], [3], domain=9).stab_batch(values)[0].tolist() == [0]


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("cei", "segment"), ("lci-dt", "longest"), ("sci-bv", "longest"), ("is-list", "branching")],
)
@pytest.mark.parametrize("given", [0, -1, 1.5, "4", 2**40])
def test_parameters_that_are_none(name: str, parameter: str, given: Any) -> None:
    with pytest.raises(OptionError, match=parameter):
        structure(name).build([1], [2], [3], domain=20, **{parameter: given})


@pytest.mark.parametrize(
    ("name", "parameter"), [("cei", "segment"), ("cluster", "minimum"), ("hybrid", "minimum")]
)
@pytest.mark.parametrize("given", [math.nan, math.inf, [4]])
def test_parameters_that_are_no_numbers(name: str, parameter: str, given: Any) -> None:
    with pytest.raises(OptionError, match=parameter):
        structure(name).build([1], [2], [3], domain=20, **{parameter: given})


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize("mask", [-1, 2**31 - 1])
def test_check_sees_masks_of_levels_that_do_not_exist(mask: int) -> None:
    arrays = cei.CEI.build([1, 5], [4, 9], [1, 2], domain=64).arrays()
    damaged = {name: array.copy() for name, array in arrays.items()}
    damaged["masks"][0] = mask
    with pytest.raises(AssertionError, match="mask"):
        cei.CEI.from_arrays(damaged).check()


@WITH_BITS
def test_check_sees_ids_that_are_negative(name: str) -> None:
    arrays = structure(name).build([1, 5], [4, 9], [1, 2], domain=64).arrays()
    damaged = {field: array.copy() for field, array in arrays.items()}
    damaged["slot_ids"][0] = -7
    with pytest.raises(AssertionError, match="id is negative"):
        structure(name).from_arrays(damaged).check()
