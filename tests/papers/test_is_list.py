"""IS-list: the contract, its marker rule by definition, and the markers that changes move."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.is_list import index as is_list
from bittern.literature.is_list import nodes as skip
from bittern.literature.is_list.index import ISList, pack
from bittern.literature.is_list.search import GROUP
from stabbing_contract import Interval, StabbingContract, brute_force, build, stabs


class TestContract(StabbingContract):
    name = "is-list"
    parameters = st.sampled_from([{}, {"branching": 4}, {"branching": 16}])


class Edge(NamedTuple):
    low: int
    high: int
    level: int


def state_for(domain: int) -> np.ndarray:
    state = np.zeros(skip.STATE_SIZE, np.int64)
    state[[skip.DOMAIN, skip.BRANCH_BITS, skip.RANDOM]] = domain, 1, skip.SEED
    return state


def with_heights(intervals: list[Interval], heights: dict[int, int], domain: int = 50) -> ISList:
    """An index whose nodes have these heights, by key."""
    lows, highs, ids = np.array(intervals, np.int32).reshape(-1, 3).T.copy()
    keys = np.array(sorted(heights), np.int32)
    drawn = np.array([heights[key] for key in sorted(heights)], np.int32)
    index = ISList(*pack(lows, highs, ids, keys, drawn, state_for(domain)))
    index.check()
    return index


def next_height(index: ISList, height: int) -> None:
    """Turn the generator until the next new node has this height."""
    state, drawn = index.state.copy(), np.zeros(1, np.int32)
    while True:
        before = int(state[skip.RANDOM])
        skip.draw_heights(state, drawn)
        if drawn[0] == height:
            index.state[skip.RANDOM] = before
            return


def edges_of(index: ISList) -> list[tuple[Edge, int]]:
    """Every edge between two nodes, and where its fields are."""
    nodes, found = index.nodes, []
    for level in range(int(index.state[skip.LEVELS])):
        for place in index.places(level).tolist():
            at = place + skip.EDGES + (level << skip.EDGE_BITS)
            if nodes[at + skip.NEXT] != skip.NOWHERE:
                keys = int(nodes[place + skip.KEY]), int(nodes[at + skip.NEXT_KEY])
                found.append((Edge(*keys, level), at))
    return found


def set_at(index: ISList, at: int) -> list[int]:
    begin, length = index.nodes[at : at + 2].tolist()
    return index.markers[begin : begin + length].tolist()


def markers_of(index: ISList) -> dict[Edge, list[int]]:
    """Slots on every edge that has any."""
    sets = {edge: sorted(set_at(index, at + skip.SET)) for edge, at in edges_of(index)}
    return {edge: slots for edge, slots in sets.items() if slots}


def eq_markers_of(index: ISList) -> dict[int, list[int]]:
    """Slots on every node."""
    places = index.places().tolist()
    return {int(index.nodes[at]): sorted(set_at(index, at + skip.EQ)) for at in places}


def ids_of(index: ISList, sets: dict) -> dict:
    return {key: sorted(index.slot_ids[slots].tolist()) for key, slots in sets.items()}


def by_definition(index: ISList) -> tuple[dict[Edge, list[int]], dict[int, list[int]]]:
    """Markers and eq markers from the rule alone: all intervals against all edges."""
    edges = [edge for edge, _ in edges_of(index)]
    markers: dict[Edge, list[int]] = {}
    eq: dict[int, set[int]] = {key: set() for key in eq_markers_of(index)}
    for slot in np.flatnonzero(index.slot_ids[: int(index.state[skip.SLOTS_END])] >= 0).tolist():
        low, high = index.spans[skip.SPAN * slot : skip.SPAN * slot + 2].tolist()
        within = [edge for edge in edges if low <= edge.low and edge.high <= high]
        for x, y, level in within:
            if not any(a <= x and y <= b and above > level for a, b, above in within):
                markers.setdefault(Edge(x, y, level), []).append(slot)
                eq[x].add(slot)
                eq[y].add(slot)
        if low == high:
            eq[low].add(slot)
    return markers, {key: sorted(slots) for key, slots in eq.items()}


A, B, C, D = (2, 5, 1), (9, 12, 2), (2, 12, 3), (17, 17, 4)


class TestHandDrawn:
    """The examples of the modules, number by number."""

    @pytest.fixture
    def example(self) -> ISList:
        return with_heights([A, B, C, D], {2: 2, 5: 1, 9: 2, 12: 1, 17: 2})

    def test_markers_stand_on_the_longest_edges(self, example: ISList) -> None:
        assert ids_of(example, markers_of(example)) == {
            Edge(2, 5, 0): [1],
            Edge(9, 12, 0): [2, 3],
            Edge(2, 9, 1): [3],
        }

    def test_eq_markers_stand_where_the_staircase_touches(self, example: ISList) -> None:
        eq = ids_of(example, eq_markers_of(example))
        assert eq == {2: [1, 3], 5: [1], 9: [2, 3], 12: [2, 3], 17: [4]}

    def test_a_search_reports_edges_that_pass_over_and_the_node_it_meets(self, example) -> None:
        assert stabs(example, [7, 9, 17, 18]) == [[3], [2, 3], [4], []]

    def test_the_figures(self, example: ISList) -> None:
        figures = example.statistics()
        assert (figures["nodes"], figures["levels"], figures["intervals"]) == (5, 2, 4)
        assert (figures["markers"], figures["eq_markers"], figures["entries"]) == (4, 8, 12)
        assert (figures["longest_eq_set"], figures["adjustments"]) == (2, 0)

    def test_a_staircase_goes_up_and_down(self) -> None:
        heights = {2: 3, 7: 1, 9: 2, 12: 1, 15: 2, 17: 3, 20: 1}
        points = [(key, key, 0) for key in (2, 9, 12, 15, 17)]
        index = with_heights([(7, 20, 1), *points], heights)
        stairs = [(7, 9, 0), (9, 15, 1), (15, 17, 1), (17, 20, 0)]
        assert ids_of(index, markers_of(index)) == {Edge(*edge): [1] for edge in stairs}

    def test_a_new_node_lets_a_marker_climb_and_its_end_brings_it_back(self) -> None:
        points = [(key, key, 0) for key in (9, 40)]
        index = with_heights([(5, 30, 1), *points], {5: 2, 9: 1, 30: 1, 40: 2})
        before = {Edge(5, 9, 0): [1], Edge(9, 30, 0): [1]}
        assert ids_of(index, markers_of(index)) == before
        next_height(index, 2)
        index.insert(20, 20, 2)
        index.check()
        assert ids_of(index, markers_of(index)) == {Edge(5, 20, 1): [1], Edge(20, 30, 0): [1]}
        eq = ids_of(index, eq_markers_of(index))
        assert eq == {5: [1], 9: [0], 20: [1, 2], 30: [1], 40: [0]}
        # Taken from 9 -> 30, 5 -> 9 and node 9; put on 5 -> 20, 20 -> 30 and node 20.
        assert index.statistics()["adjustments"] == 6
        index.delete(20, 20, 2)
        index.check()
        assert ids_of(index, markers_of(index)) == before
        assert index.statistics()["adjustments"] == 12

    def test_a_marker_climbs_on_the_right_as_well(self) -> None:
        points = [(key, key, 0) for key in (0, 35)]
        index = with_heights([(10, 40, 1), *points], {0: 2, 10: 1, 35: 1, 40: 2})
        before = {Edge(10, 35, 0): [1], Edge(35, 40, 0): [1]}
        assert ids_of(index, markers_of(index)) == before
        next_height(index, 2)
        index.insert(20, 20, 2)
        index.check()
        assert ids_of(index, markers_of(index)) == {Edge(10, 20, 0): [1], Edge(20, 40, 1): [1]}
        index.delete(20, 20, 2)
        index.check()
        assert ids_of(index, markers_of(index)) == before

    def test_known_end_points_move_no_marker(self, example: ISList) -> None:
        for interval in ((2, 17, 5), (5, 12, 6), (9, 9, 7)):
            example.insert(*interval)
            example.check()
        example.delete(5, 12, 6)
        example.check()
        assert example.statistics()["adjustments"] == 0

    def test_a_higher_node_than_any_raises_the_list_and_its_end_lowers_it(self, example) -> None:
        next_height(example, 7)
        example.insert(1, 1, 8)
        assert example.statistics()["levels"] == 7
        example.delete(1, 1, 8)
        assert example.statistics()["levels"] == 2


@st.composite
def interval_lists(draw: st.DrawFn) -> list[Interval]:
    cell = st.integers(0, 40)
    pairs = draw(st.lists(st.tuples(cell, cell), max_size=25))
    return [(min(pair), max(pair), number) for number, pair in enumerate(pairs)]


class TestMarkerRule:
    @given(intervals=interval_lists(), data=st.data())
    def test_a_build_follows_the_definition_for_any_heights(self, intervals, data) -> None:
        keys = sorted({end for low, high, _ in intervals for end in (low, high)})
        heights = {key: data.draw(st.integers(1, 5)) for key in keys}
        index = with_heights(intervals, heights)
        assert (markers_of(index), eq_markers_of(index)) == by_definition(index)

    @given(intervals=interval_lists(), data=st.data())
    def test_so_do_insertions_and_deletions_in_any_order(self, intervals, data) -> None:
        index = build(ISList, [], 50)
        for interval in intervals:
            index.insert(*interval)
        assert (markers_of(index), eq_markers_of(index)) == by_definition(index)
        kept = len(intervals) // 3
        for interval in data.draw(st.permutations(intervals))[kept:]:
            index.delete(*interval)
        index.check()
        assert (markers_of(index), eq_markers_of(index)) == by_definition(index)

    @given(intervals=interval_lists())
    def test_inserted_or_built_over_the_same_nodes_the_markers_are_the_same(self, intervals):
        index = build(ISList, [], 50)
        for interval in intervals:
            index.insert(*interval)
        inserted = ids_of(index, markers_of(index)), ids_of(index, eq_markers_of(index))
        index.arrays()  # builds the packed form of the same nodes
        assert index.packed
        index.check()
        assert (ids_of(index, markers_of(index)), ids_of(index, eq_markers_of(index))) == inserted


def random_intervals(n: int, domain: int, longest: int, seed: int = 1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, domain, n)
    highs = np.minimum(lows + rng.integers(0, longest, n), domain - 1)
    return lows, highs, np.arange(n)


def interval_tuples(n: int, domain: int, longest: int) -> list[Interval]:
    return list(map(tuple, np.stack(random_intervals(n, domain, longest), axis=1).tolist()))


class TestSize:
    @pytest.mark.parametrize(
        ("n", "domain", "longest"), [(20_000, 30_000, 200), (20_000, 2_000, 1_000)]
    )
    def test_markers_are_logarithmic_in_the_end_points_that_an_interval_spans(
        self, n, domain, longest
    ) -> None:
        lows, highs, ids = random_intervals(n, domain, longest)
        index = ISList.build(lows, highs, ids, domain=domain)
        keys = np.unique(np.concatenate((lows, highs)))
        spanned = np.searchsorted(keys, highs) - np.searchsorted(keys, lows)
        per_interval = index.statistics()["markers_per_interval"]
        assert 1 < per_interval < 2 * math.log2(spanned.mean())
        assert index.statistics()["eq_markers"] == index.statistics()["markers"] + n

    @pytest.mark.parametrize("branching", [2, 4, 8, 16])
    def test_heights_are_geometric(self, branching: int) -> None:
        n = 20_000
        index = ISList.build(range(n), range(n), range(n), domain=n, branching=branching)
        heights = index.nodes[index.places() + skip.HEIGHT]
        assert heights.mean() == pytest.approx(branching / (branching - 1), rel=0.02)
        for level in (1, 2, 3):
            expected = n / branching**level
            assert abs((heights > level).sum() - expected) < 4 * math.sqrt(expected)
        assert index.statistics()["branching"] == branching

    def test_more_branching_means_fewer_levels_and_more_markers(self) -> None:
        intervals = random_intervals(5_000, 8_000, 300)
        two, sixteen = (
            ISList.build(*intervals, domain=8_000, branching=b).statistics() for b in (2, 16)
        )
        assert two["levels"] > 2 * sixteen["levels"]
        assert two["markers"] < sixteen["markers"]

    def test_deleting_everything_leaves_nothing(self) -> None:
        intervals = interval_tuples(700, 900, 60)
        index = build(ISList, intervals[:400], 900)
        for interval in intervals[400:]:
            index.insert(*interval)
        adjusted = index.statistics()["adjustments"]
        assert adjusted > 0
        for at in np.random.default_rng(2).permutation(len(intervals)):
            index.delete(*intervals[at])
        index.check()
        figures = index.statistics()
        for name in ("nodes", "levels", "intervals", "entries", "markers", "eq_markers"):
            assert figures[name] == 0
        assert figures["adjustments"] > adjusted
        assert len(index.ids()) == 0
        sizes = {name: len(array) for name, array in index.arrays().items()}
        empty = {"nodes": skip.HEAD_SIZE, "markers": 0, "spans": 0, "ids": 0}
        assert sizes == empty | {"state": skip.STATE_SIZE}


class TestRoom:
    """Arrays that are as small as they may be, so that most changes need more room."""

    @pytest.fixture
    def asked(self, monkeypatch) -> list[tuple[str, int]]:
        asked: list[tuple[str, int]] = []
        spread = ISList._spread

        def tight(index: ISList, room: int) -> None:
            spread(index, room)
            # What is free is all that was asked for.
            index.markers = index.markers[: int(index.state[skip.MARKERS_END]) + room].copy()
            asked.append((index.doing, room))

        monkeypatch.setattr(ISList, "_spread", tight)
        monkeypatch.setattr(ISList, "doing", "nothing", raising=False)
        return asked

    @pytest.mark.parametrize(("domain", "longest"), [(400, 80), (90, 60), (4000, 3000)])
    def test_what_a_change_asks_for_is_enough(self, asked, domain, longest) -> None:
        intervals = interval_tuples(300, domain, longest)
        index = build(ISList, intervals[:150], domain)
        for step in range(150):
            index.doing = "insert"
            index.insert(*intervals[150 + step])
            index.check()
            index.doing = "delete"
            index.delete(*intervals[step])
            index.check()
        every = list(range(0, domain, 7))
        assert stabs(index, every) == [brute_force(intervals[150:], v) for v in every]
        assert {doing for doing, room in asked if room} == {"insert", "delete"}

    def test_freed_nodes_slots_and_areas_are_used_again(self) -> None:
        intervals = interval_tuples(500, 800, 50)
        index = build(ISList, intervals, 800)
        index.delete(*intervals[0])
        index.insert(*intervals[0])
        size, slots = index.nbytes, int(index.state[skip.SLOTS_END])
        for _ in range(20):
            for interval in intervals[:100]:
                index.delete(*interval)
            for interval in intervals[:100]:
                index.insert(*interval)
        index.check()
        assert int(index.state[skip.SLOTS_END]) == slots
        assert index.nbytes < 2 * size


class TestSearch:
    def test_groups_of_any_size_with_values_that_stop_early(self) -> None:
        intervals = interval_tuples(300, 500, 90)
        index = build(ISList, intervals, 500)
        rng = np.random.default_rng(3)
        for n in (1, GROUP - 1, GROUP, GROUP + 1, 5 * GROUP + 7):
            values = rng.integers(-50, 550, n).tolist()
            assert stabs(index, values) == [brute_force(intervals, v) for v in values]

    def test_runs_grow_with_the_sets_that_values_visit(self) -> None:
        lows, highs, ids = random_intervals(30_000, 40_000, 4_000)
        index = ISList.build(lows, highs, ids, domain=40_000)
        values = np.arange(1, 40_000, 13)
        runs = index.locate_batch(values)
        assert runs.found.ends[-1] > 6 * len(values)
        for i in range(0, len(values), 100):
            expected = ids[(lows <= values[i]) & (values[i] <= highs)]
            assert sorted(runs.ids(i, i + 1).tolist()) == expected.tolist()
        begin, end = runs.offsets[100], runs.offsets[2000]
        assert np.array_equal(runs.ids(100, 2000), runs.ids(0, len(values))[begin:end])


class TestState:
    def test_equal_histories_give_equal_arrays_even_through_a_snapshot(self) -> None:
        intervals = interval_tuples(300, 500, 50)
        results = []
        for through_snapshot in (False, True):
            index = build(ISList, intervals[:200], 500)
            if through_snapshot:
                index = ISList.from_arrays(index.arrays())
            for interval in intervals[200:]:
                index.insert(*interval)
            for interval in intervals[:50]:
                index.delete(*interval)
            results.append(index.arrays())
        for name, array in results[0].items():
            assert np.array_equal(array, results[1][name]), name

    def test_ids_are_those_of_live_intervals(self) -> None:
        index = build(ISList, [(0, 3, 7), (2, 2, 9), (1, 4, 7)], 10)
        assert index.ids().tolist() == [7, 9]
        index.delete(0, 3, 7)
        index.delete(2, 2, 9)
        assert index.ids().tolist() == [7]

    def test_identical_intervals_are_told_apart_and_ids_too(self) -> None:
        index = build(ISList, [(1, 4, 7), (1, 4, 7), (1, 4, 8), (1, 5, 7)], 10)
        with pytest.raises(OptionError, match="not in the index"):
            index.delete(1, 5, 8)
        index.delete(1, 4, 7)
        index.check()
        assert stabs(index, [3, 5]) == [[7, 7, 8], [7]]


class TestParametersAndLimits:
    @pytest.mark.parametrize("branching", [0, 1, 3, 32, -2, "2", None])
    def test_branching_is_one_of_a_few(self, branching) -> None:
        with pytest.raises(OptionError, match="choose from 2, 4, 8, 16"):
            build(ISList, [], 10, branching=branching)

    def test_too_many_markers_are_refused_before_they_are_allocated(self, monkeypatch) -> None:
        monkeypatch.setattr(is_list, "MAX_ENTRIES", 11)
        with pytest.raises(OptionError, match=r"12 markers .* \(48 bytes, at most 44\).* CEI"):
            build(ISList, [(2, 2, i) for i in range(12)], 50)

    def test_too_many_nodes_are_refused_before_they_are_allocated(self, monkeypatch) -> None:
        monkeypatch.setattr(is_list, "MAX_NODE_NUMBERS", skip.HEAD_SIZE + 9)
        with pytest.raises(OptionError, match=r"1 end points .* use a CEI"):
            build(ISList, [(2, 2, 1)], 50)

    @pytest.mark.parametrize("limit", ["MAX_TO_INSERT", "MAX_NODE_NUMBERS"])
    def test_an_insertion_beyond_the_limits_is_refused_and_changes_nothing(
        self, monkeypatch, limit
    ) -> None:
        index = build(ISList, [A, B, C, D], 50)
        before = {name: array.copy() for name, array in index.arrays().items()}
        monkeypatch.setattr(is_list, limit, 5)
        with pytest.raises(OptionError, match="cannot take more intervals"):
            index.insert(3, 4, 5)
        index.delete(*A)
        index.delete(*B)
        monkeypatch.undo()
        index.insert(*A)
        index.insert(*B)
        index.check()
        assert stabs(index, [3, 10]) == [[1, 3], [2, 3]]
        assert len(before["ids"]) == len(index.arrays()["ids"])


def node(index: ISList, number: int) -> int:
    """Where the number-th node is, by key; -1 for the head."""
    return int(index.places()[number]) if number >= 0 else skip.HEAD


def edge(index: ISList, number: int, level: int = 0) -> int:
    return node(index, number) + skip.EDGES + (level << skip.EDGE_BITS)


def of_node(number: int, field: int, value: int) -> Callable[[ISList], None]:
    """Damage: a field of a node."""

    def apply(index: ISList) -> None:
        index.nodes[node(index, number) + field] = value

    return apply


def of_edge(number: int, field: int, value: int) -> Callable[[ISList], None]:
    """Damage: a field of the edge of level 0 that leaves a node."""

    def apply(index: ISList) -> None:
        index.nodes[edge(index, number) + field] = value

    return apply


def of_head(level: int, field: int, value: int) -> Callable[[ISList], None]:
    """Damage: a field of an edge of the head."""

    def apply(index: ISList) -> None:
        index.nodes[skip.EDGES + (level << skip.EDGE_BITS) + field] = value

    return apply


def of_state(field: int, by: int) -> Callable[[ISList], None]:
    """Damage: a running figure."""

    def apply(index: ISList) -> None:
        index.state[field] += by

    return apply


def of_marker(number: int, slot: int, *, eq: bool = False) -> Callable[[ISList], None]:
    """Damage: the first marker on the edge of level 0 that leaves a node, or on the node."""

    def apply(index: ISList) -> None:
        at = node(index, number) + skip.EQ if eq else edge(index, number) + skip.SET
        index.markers[index.nodes[at]] = slot

    return apply


def of_span(slot: int, field: int, value: int) -> Callable[[ISList], None]:
    """Damage: an end of an interval."""

    def apply(index: ISList) -> None:
        index.spans[skip.SPAN * slot + field] = value

    return apply


def share_an_area(index: ISList) -> None:
    index.nodes[node(index, 0) + skip.EQ] = index.nodes[node(index, 2) + skip.EQ]


def repeat_a_marker(index: ISList) -> None:
    begin = index.nodes[edge(index, 2) + skip.SET]
    index.markers[begin] = index.markers[begin + 1]


def lose_a_marker(index: ISList) -> None:
    """Take the one marker of an edge away, with everything that counts it."""
    at = edge(index, 0) + skip.SET
    begin = int(index.nodes[at])
    index.nodes[at + 1] = 0
    index.markers[begin] = index.state[skip.FREE_AREAS]
    index.state[skip.FREE_AREAS] = begin
    index.state[skip.ENTRIES] -= 1


def lose_slots(index: ISList) -> None:
    index.slot_ids = index.slot_ids[:2]


def misplace_a_free_node(index: ISList) -> None:
    index.state[skip.FREE_NODES + 4] = index.state[skip.FREE_NODES + 3]
    index.state[skip.FREE_NODES + 3] = skip.NOWHERE


# Nodes 0 to 4 are 2, 5, 9, 12 and 17; slots 0 to 3 are A, C, B and D.
DAMAGES = {
    "slots are missing": [lose_slots],
    "the head has a key": [of_node(-1, skip.KEY, 0)],
    "keys of level 0 are not ascending": [of_node(1, skip.KEY, 20)],
    "a key is outside the domain": [of_state(skip.DOMAIN, -33)],
    "an edge has a wrong key": [of_edge(0, skip.NEXT_KEY, 6)],
    "a level does not end": [of_edge(4, skip.NEXT, -2)],
    "wrong number of nodes": [of_state(skip.NODES, 1)],
    "a height is impossible": [of_node(1, skip.HEIGHT, 0)],
    "the head is not as high": [of_node(-1, skip.HEIGHT, 3)],
    "wrong number of levels": [of_state(skip.LEVELS, 1), of_state(skip.LEVELS, -1)],
    "an edge above all levels leads on": [of_head(2, skip.NEXT, 0)],
    "an edge above all levels has markers": [of_head(skip.MAX_LEVELS - 1, skip.SET + 1, 1)],
    "a level has not the nodes": [of_node(1, skip.HEIGHT, 2)],
    "a free node is in a wrong chain": [misplace_a_free_node],
    "nodes do not fill their array": [of_state(skip.NODES_END, 1)],
    "wrong number of intervals": [of_state(skip.INTERVALS, 1)],
    "free slots are lost": [of_state(skip.FREE_SLOT, -10)],
    "an interval is reversed": [of_span(2, skip.LOW, 13)],
    "nodes are not the ends": [of_span(2, skip.LOW, 10)],
    "an end has a wrong owner count": [of_node(0, skip.OWNERS, 3)],
    "a chain leads nowhere": [of_node(0, skip.FIRST, 1000)],
    "an interval is in a wrong chain": [of_node(0, skip.FIRST, 3)],
    "chains do not hold every interval": [of_node(0, skip.FIRST, -1)],
    "a set has a negative length": [of_node(0, skip.EQ + 1, -1)],
    "sets do not add up": [of_node(0, skip.EQ + 1, 3)],
    "areas overlap or leave gaps": [share_an_area],
    "areas do not fill their array": [of_state(skip.MARKERS_END, 1)],
    "a marker is of no interval": [of_marker(0, 77), of_marker(0, -1), of_marker(0, 77, eq=True)],
    "a marked edge leaves its interval": [of_marker(0, 2)],
    "a marker is there twice": [repeat_a_marker],
    "a marker could be on a longer edge": [of_marker(0, 1)],
    "a marker is missing": [lose_a_marker],
    "eq markers are wrong": [of_marker(1, 1, eq=True)],
}


class TestCheck:
    """Each invariant, broken on purpose."""

    @pytest.fixture
    def index(self) -> ISList:
        """The hand-drawn example, after changes that left something in every free list."""
        index = with_heights([A, B, C, D], {2: 2, 5: 1, 9: 2, 12: 1, 17: 2})
        next_height(index, 3)
        index.insert(11, 11, 5)
        index.delete(11, 11, 5)
        index.check()
        assert index.state[skip.FREE_SLOT] >= 0
        assert index.state[skip.FREE_NODES + 3] >= 0
        assert (index.state[skip.FREE_AREAS :] >= 0).any()
        return index

    @pytest.mark.parametrize(
        ("message", "damage"),
        [(message, damage) for message, damages in DAMAGES.items() for damage in damages],
    )
    def test_damage_is_named(self, index, message, damage) -> None:
        damage(index)
        with pytest.raises(AssertionError, match=message):
            index.check()

    @pytest.mark.parametrize("name", ["nodes", "markers", "spans", "ids", "state"])
    def test_sizes_and_types_are_verified_on_opening(self, index, name) -> None:
        arrays = index.arrays()
        whole = arrays[name]
        ISList.from_arrays(arrays).check()
        for wrong in (whole[:-1], whole.astype(np.int16), np.append(whole, whole[-1])):
            with pytest.raises(SnapshotError, match="fit together"):
                ISList.from_arrays(arrays | {name: wrong})

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            (skip.DOMAIN, -1),
            (skip.DOMAIN, 2**40),
            (skip.BRANCH_BITS, 0),
            (skip.BRANCH_BITS, -1),
            (skip.BRANCH_BITS, 5),
            (skip.LEVELS, -1),
            (skip.LEVELS, skip.MAX_LEVELS + 1),
            (skip.ENTRIES, 3),
            (skip.INTERVALS, 3),
            (skip.FREE_SLOT, 0),
            (skip.FREE_AREAS, 0),
        ],
    )
    def test_figures_are_verified_on_opening(self, index, field, value) -> None:
        arrays = index.arrays()
        state = arrays["state"].copy()
        state[field] = value
        with pytest.raises(SnapshotError, match="fit together"):
            ISList.from_arrays(arrays | {"state": state})
