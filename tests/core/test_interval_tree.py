"""The Interval Tree: the contract, the walk of seed 004's example 4, and what keeps it balanced."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import SnapshotError
from bittern.stabbing.interval_nodes import (
    BEGIN,
    EMPTY,
    END,
    FAR_HIGHS,
    FAR_IDS,
    HIGHS,
    IDS,
    KEY,
    LEFT,
    LIMIT,
    LOWS,
    RIGHT,
    ROOT,
    ROWS,
    USED,
    deepest,
)
from bittern.stabbing.interval_tree import IntervalTree
from paper_examples import TREE_EXAMPLE_4 as EXAMPLE_4
from stabbing_contract import Interval, StabbingContract, brute_force, build, stabs


class TestContract(StabbingContract):
    name = "interval-tree"


# Seed 004's example 4 as far as its text tells: the figure with the profiles is lost. These give
# the tree of its figure 6, root 35 and left child 25, with the lists that the text reads.


def tree_of(index: IntervalTree, node: int | None = None) -> object:
    """Nested (key, left list, right list, left subtree, right subtree)."""
    node = int(index._figures[ROOT]) if node is None else node
    if node < 0:
        return None
    row = index.nodes[node]
    part = slice(row[BEGIN], row[END])
    lists = index.lists[IDS, part].tolist(), index.lists[FAR_IDS, part].tolist()
    return int(row[KEY]), *lists, tree_of(index, row[LEFT]), tree_of(index, row[RIGHT])


class TestExample4OfThePaper:
    @pytest.fixture
    def index(self) -> IntervalTree:
        return build(IntervalTree, EXAMPLE_4, 100)

    def test_seed_004_figure_6_interval_tree_on_x(self, index) -> None:
        assert tree_of(index) == (
            35,
            [4, 6, 1, 2, 7],
            [7, 2, 4, 6, 1],
            (25, [0], [0], None, None),
            (80, [3, 5], [5, 3], None, None),
        )

    def test_seed_004_figure_6_search_of_20_reports_4_6_1_2_0_in_this_order(self, index) -> None:
        assert index.stab(20).tolist() == [4, 6, 1, 2, 0]

    def test_seed_004_figure_6_search_of_20_evaluates_two_keys_and_six_intervals(self, index):
        # 35, then 4, 6, 1, 2 and 7, which does not contain it; 25, then 0, the last of its list.
        assert index.evaluations([20]).tolist() == [2 + 5 + 1]

    def test_a_value_above_the_key_reads_the_right_list(self, index) -> None:
        assert index.stab(48).tolist() == [7, 2, 4]
        assert index.evaluations([48]).tolist() == [2 + 4 + 1]  # 6 ends before it, 3 begins after

    def test_a_value_that_is_the_key_takes_the_list_without_looking(self, index) -> None:
        assert index.stab(35).tolist() == [4, 6, 1, 2, 7]
        assert index.evaluations([35]).tolist() == [1]


intervals = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (min(pair), max(pair))),
    max_size=40,
).map(lambda pairs: [(low, high, i) for i, (low, high) in enumerate(pairs)])


def evaluations_by_hand(tree, held: list[Interval], value: int) -> int:
    """Walk the nested lists as the paper describes."""
    count = 0
    while tree is not None:
        key, left_list, right_list, left, right = tree
        count += 1
        if value == key:
            return count
        for i in left_list if value < key else right_list:
            count += 1
            if not held[i][0] <= value <= held[i][1]:
                break
        tree = left if value < key else right
    return count


class TestTree:
    @given(held=intervals)
    def test_the_key_is_the_upper_median_of_the_distinct_ends(self, held) -> None:
        def verify(tree) -> set[int]:
            if tree is None:
                return set()
            key, left_list, right_list, left, right = tree
            assert left_list
            assert sorted(left_list) == sorted(right_list)
            here = set(left_list) | verify(left) | verify(right)
            ends = sorted({end for i in here for end in held[i][:2]})
            assert key == ends[len(ends) // 2]
            return here

        index = build(IntervalTree, held, 61)
        assert verify(tree_of(index)) == set(range(len(held)))
        assert index.statistics()["depth"] <= 1 + np.log2(max(1, 2 * len(held)))

    @given(held=intervals)
    def test_evaluations_are_those_of_the_walk(self, held) -> None:
        index = build(IntervalTree, held, 61)
        tree = tree_of(index)
        counted = index.evaluations(np.arange(61))
        assert counted.tolist() == [evaluations_by_hand(tree, held, v) for v in range(61)]

    def test_values_outside_the_domain_are_compared_with_nothing(self) -> None:
        index = build(IntervalTree, EXAMPLE_4, 100)
        assert index.evaluations([-1, 100, 2**40]).tolist() == [0, 0, 0]
        assert build(IntervalTree, [], 100).evaluations([5]).tolist() == [0]

    def test_no_interval_is_at_two_nodes(self) -> None:
        index = build(IntervalTree, EXAMPLE_4, 100)
        statistics = index.statistics()
        assert statistics["entries"] == len(EXAMPLE_4)
        assert statistics["nodes"] == 3
        assert statistics["longest_list"] == 5

    @pytest.mark.parametrize("order", ["ascending", "descending", "inward", "outward"])
    def test_insertion_in_any_order_keeps_the_depth_logarithmic(self, order: str) -> None:
        n = 3000
        cells = {
            "ascending": list(range(n)),
            "descending": list(range(n - 1, -1, -1)),
            "inward": [i // 2 if i % 2 else n - 1 - i // 2 for i in range(n)],
            "outward": [n // 2 + (i + 1) // 2 * (-1) ** i for i in range(n - 1)],
        }[order]
        index = build(IntervalTree, [], n)
        for number, cell in enumerate(cells):
            index.insert(cell, cell, number)
        index.check()
        assert index.statistics()["depth"] <= deepest(n) + 1
        expected = np.argsort(cells)
        assert index.stab_batch(np.sort(cells))[1].tolist() == expected.tolist()

    def test_deletion_leaves_no_forest_of_empty_nodes(self) -> None:
        held = [(i, i, i) for i in range(2000)]
        index = build(IntervalTree, held, 2000)
        for interval in held[:1900]:
            index.delete(*interval)
        index.check()
        assert index.statistics()["empty_nodes"] <= 200
        assert stabs(index, [5, 1950]) == [[], [1950]]

    def test_an_empty_node_is_used_again(self) -> None:
        index = build(IntervalTree, EXAMPLE_4, 100)
        index.delete(18, 25, 0)
        assert index.statistics()["empty_nodes"] == 1
        index.insert(20, 27, 9)
        assert index.statistics()["empty_nodes"] == 0
        assert index.statistics()["nodes"] == 3
        index.check()

    def test_deleting_tells_intervals_of_one_id_and_end_apart(self) -> None:
        held = [(1, 8, 7), (2, 9, 7), (1, 9, 7), (2, 8, 7), (2, 8, 7)]
        index = build(IntervalTree, held, 10)
        for at in (3, 0, 1, 0, 0):
            index.delete(*held.pop(at))
            index.check()
            assert stabs(index, list(range(10))) == [brute_force(held, v) for v in range(10)]

    def test_a_growing_list_moves_and_keeps_its_neighbours(self) -> None:
        rng = np.random.default_rng(5)
        held = [(i, i, i) for i in range(0, 100, 10)]
        index = build(IntervalTree, held, 100)
        for i in range(500):
            interval = (int(rng.integers(0, 51)), int(rng.integers(50, 100)), i)
            index.insert(*interval)
            held.append(interval)
        index.check()
        assert index.statistics()["longest_list"] > 450
        assert stabs(index, list(range(100))) == [brute_force(held, v) for v in range(100)]


class TestCheck:
    """Each invariant, broken on purpose."""

    @pytest.fixture
    def index(self) -> IntervalTree:
        rng = np.random.default_rng(1)
        lows = rng.integers(0, 90, 80)
        index = IntervalTree.build(lows, lows + rng.integers(0, 9, 80), range(80), domain=100)
        index.insert(3, 5, 1)
        index.delete(3, 5, 1)  # writable from now on
        index.check()
        return index

    def broken(self, index: IntervalTree, message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            index.check()

    def test_a_list_that_ends_before_it_begins(self, index) -> None:
        index.nodes[2, END] = index.nodes[2, BEGIN] - 1
        self.broken(index, "ends before it begins")

    def test_a_list_that_leaves_its_area(self, index) -> None:
        index.nodes[2, LIMIT] = index.nodes[2, END] - 1
        self.broken(index, "leaves its area")

    def test_the_number_of_entries(self, index) -> None:
        index.nodes[0, END] -= 1
        self.broken(index, "add up")

    def test_the_number_of_empty_nodes(self, index) -> None:
        index._figures[EMPTY] += 1
        self.broken(index, "miscounted")

    def test_areas_that_overlap(self, index) -> None:
        index.nodes[1, [BEGIN, END, LIMIT]] -= 1
        self.broken(index, "share an area")

    def test_more_used_than_there_is(self, index) -> None:
        index._figures[USED] = index.lists.shape[1] + 1
        self.broken(index, "more of the lists is used")

    def test_an_area_past_the_end(self, index) -> None:
        rows = index.nodes[: int(index._figures[ROWS])]
        rows[np.argmax(rows[:, BEGIN]), LIMIT] = index._figures[USED] + 1
        self.broken(index, "past the end")

    def test_the_order_of_a_left_list(self, index) -> None:
        row = index.nodes[0]
        assert index.lists[LOWS, row[BEGIN]] < index.lists[LOWS, row[END] - 1]
        index.lists[:, [row[BEGIN], row[END] - 1]] = index.lists[:, [row[END] - 1, row[BEGIN]]]
        self.broken(index, "not ascending")

    def test_the_order_of_a_right_list(self, index) -> None:
        row = index.nodes[0]
        far = index.lists[FAR_HIGHS:IDS]
        assert far[0, row[BEGIN]] > far[0, row[END] - 1]
        for which in (FAR_HIGHS, FAR_IDS):
            part = index.lists[which, row[BEGIN] : row[END]]
            part[:] = part[::-1].copy()
        self.broken(index, "not descending")

    def test_lists_that_differ(self, index) -> None:
        index.lists[FAR_IDS, index.nodes[0, BEGIN]] += 1
        self.broken(index, "differ")

    def test_an_interval_that_misses_the_key(self, index) -> None:
        index.nodes[0, KEY] = index.lists[HIGHS, index.nodes[0, BEGIN] : index.nodes[0, END]].max()
        index.nodes[0, KEY] += 1
        self.broken(index, "misses the key")

    def test_an_interval_outside_the_domain(self, index) -> None:
        index.domain = 50
        self.broken(index, "leaves the domain")

    def test_an_interval_before_the_domain(self, index) -> None:
        node = 0
        while index.nodes[node, LEFT] >= 0:
            node = index.nodes[node, LEFT]
        index.lists[LOWS, index.nodes[node, BEGIN]] = -1
        self.broken(index, "begins before the domain")

    def test_keys_out_of_order(self, index) -> None:
        index.nodes[0, [LEFT, RIGHT]] = index.nodes[0, [RIGHT, LEFT]]
        self.broken(index, "out of order")

    def test_a_circle(self, index) -> None:
        leaf = np.flatnonzero((index.nodes[:10, LEFT] < 0) & (index.nodes[:10, RIGHT] < 0))[0]
        index.nodes[leaf, RIGHT] = leaf
        self.broken(index, "out of order")

    def test_a_tree_that_is_too_deep(self) -> None:
        # A path of 200 single points, which no building or inserting would leave.
        index = build(IntervalTree, [(i, i, i) for i in range(200)], 200)
        order = np.argsort(index.nodes[:, KEY])
        nodes, lists = index.nodes.copy(), index.lists.copy()
        nodes[:, [LEFT, RIGHT]] = -1
        nodes[order[:-1], RIGHT] = order[1:]
        index = IntervalTree(nodes, lists, domain=200)
        index._figures[ROOT] = order[0]
        self.broken(index, "too deep")

    def test_a_node_that_was_lost(self, index) -> None:
        index.nodes[0, LEFT] = -1
        self.broken(index, "not in the tree")

    def test_an_interval_that_is_too_far_down(self, index) -> None:
        node = int(index.nodes[0, LEFT])
        row = index.nodes[node]
        key = index.nodes[0, KEY]
        index.lists[HIGHS, row[BEGIN]] = key
        at = int(np.flatnonzero(index.lists[FAR_IDS] == index.lists[IDS, row[BEGIN]])[0])
        index.lists[FAR_HIGHS, at] = key
        part = slice(row[BEGIN], row[END])
        order = np.argsort(-index.lists[FAR_HIGHS, part], kind="stable")
        index.lists[FAR_HIGHS:, part][[0, 2]] = index.lists[FAR_HIGHS:, part][[0, 2]][:, order]
        self.broken(index, "key further up")


class TestSnapshot:
    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        return build(IntervalTree, EXAMPLE_4, 100).arrays()

    def test_sizes_and_types_are_verified_on_opening(self, arrays) -> None:
        wrongs = [
            {"nodes": arrays["nodes"][:, :-1].copy()},
            {"nodes": arrays["nodes"].astype(np.int64)},
            {"nodes": arrays["nodes"].ravel()},
            {"nodes": arrays["nodes"][:0].copy()},
            {"nodes": np.repeat(arrays["nodes"], 9, axis=0)},
            {"lists": arrays["lists"][:-1].copy()},
            {"lists": arrays["lists"].astype(np.int64)},
            {"nodes": arrays["nodes"][:-1].copy()},
            {"shape": np.array([-1, len(arrays["nodes"])])},
            {"shape": np.array([2**40, len(arrays["nodes"])])},
            {"shape": np.array([100])},
        ]
        for wrong in wrongs:
            with pytest.raises(SnapshotError, match="fit together"):
                IntervalTree.from_arrays(arrays | wrong)

    def test_changes_are_folded_in_as_if_built(self, arrays) -> None:
        index = IntervalTree.from_arrays(arrays)
        index.insert(1, 2, 3)
        assert tree_of(index) != tree_of(IntervalTree.from_arrays(arrays))
        index.delete(1, 2, 3)
        for name, array in index.arrays().items():
            assert np.array_equal(array, arrays[name])
