"""The Hybrid Index: the contract, and seed 004's example 4 as keys over elementary intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.bit_vectors.cluster_index import ClusterIndex
from bittern.literature.bit_vectors.hybrid_index import DEFAULT_MINIMUM, HybridIndex
from bittern.literature.bit_vectors.interval_index import IntervalIndex
from paper_examples import FIVE
from paper_examples import TREE_EXAMPLE_4 as EXAMPLE_4
from stabbing_contract import StabbingContract, brute_force, build, stabs


class TestContract(StabbingContract):
    name = "hybrid"
    parameters = st.sampled_from([{}, {"minimum": 1}, {"minimum": 2}, {"minimum": 7}])


def leaves_of(index: HybridIndex) -> list[list[tuple[int, int]]]:
    """Elementary intervals of each leaf."""
    nodes = list(zip(index.leaves.lows.tolist(), index.leaves.highs.tolist(), strict=True))
    return [nodes[a:b] for a, b in zip(index.begins, index.ends, strict=True)]


class TestExample4OfThePaper:
    @pytest.fixture
    def index(self) -> HybridIndex:
        return build(HybridIndex, EXAMPLE_4, 100, minimum=1)

    def test_seed_004_figure_4_the_top_half_is_the_cluster_index(self, index) -> None:
        cluster = build(ClusterIndex, EXAMPLE_4, 100)
        assert np.array_equal(index.tree.nodes, cluster.tree.nodes)

    def test_seed_004_figure_4_an_interval_index_in_each_leaf(self, index) -> None:
        first = leaves_of(index)[0]  # cells up to 29: profiles 0, 1, 2, 4 and 6
        assert first == [
            (5, 5),
            (6, 7),
            (8, 8),
            (9, 9),
            (10, 10),
            (11, 14),
            (15, 15),
            (16, 17),
            (18, 18),
            (19, 24),
            (25, 25),
            (26, 29),
        ]
        assert sum(map(len, leaves_of(index))) == len(index.leaves.lows)

    def test_seed_004_figure_4_search_of_20(self, index) -> None:
        assert sorted(index.stab(20).tolist()) == [0, 1, 2, 4, 6]
        # Keys 50 and 30; the sixth of twelve, [11, 14], the third of the six after it, [18, 18],
        # the second of the three after that, [25, 25], and then what is before it, [19, 24].
        assert index.evaluations([20]).tolist() == [2 + 4]

    def test_values_outside_the_domain_are_compared_with_nothing(self, index) -> None:
        assert index.evaluations([-1, 100, 2**40]).tolist() == [0, 0, 0]


class TestLeaves:
    def test_each_leaf_has_the_elementary_intervals_of_its_cells(self) -> None:
        index = build(HybridIndex, FIVE, 51, minimum=1)
        assert index.tree.bounds.tolist() == [0, 19, 21, 23]
        assert leaves_of(index) == [
            [(2, 2), (3, 5), (6, 6), (7, 18)],
            [(19, 19), (20, 20)],
            [(21, 21), (22, 22)],
            [(23, 23), (24, 47), (48, 48), (49, 49), (50, 50)],
        ]
        assert index.evaluations([20]).tolist() == [2 + 2]

    def test_empty_elementary_intervals_have_no_node(self) -> None:
        index = build(HybridIndex, [(2, 3, 0), (7, 7, 1)], 10, minimum=1)
        assert index.tree.bounds.tolist() == [0, 7]
        assert leaves_of(index) == [[(2, 2), (3, 3)], [(7, 7)]]
        assert stabs(index, [4, 7]) == [[], [1]]
        assert index.evaluations([5, 8]).tolist() == [1 + 2, 1 + 1]

    @given(
        pairs=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=40),
        minimum=st.integers(1, 50),
    )
    def test_evaluations_are_keys_and_nodes_to_the_first_that_contains_the_value(
        self, pairs, minimum
    ) -> None:
        held = [(min(pair), max(pair), i) for i, pair in enumerate(pairs)]
        index = build(HybridIndex, held, 61, minimum=minimum)
        cluster = build(ClusterIndex, held, 61, minimum=minimum)
        keys = cluster.evaluations(range(61)) - np.diff(cluster.candidates_batch(range(61)).offsets)
        leaves = leaves_of(index)
        for value, counted in enumerate(index.evaluations(range(61)).tolist()):
            nodes = leaves[int(cluster.tree.leaves(np.array([value], np.int32))[0])]
            visited = 0
            while nodes:
                middle = (len(nodes) + 1) // 2 - 1
                visited += 1
                low, high = nodes[middle]
                if low <= value <= high:
                    break
                nodes = nodes[:middle] if value < low else nodes[middle + 1 :]
            assert counted == keys[value] + visited

    def test_below_the_minimum_it_is_an_interval_index(self) -> None:
        index, plain = build(HybridIndex, EXAMPLE_4, 100), build(IntervalIndex, EXAMPLE_4, 100)
        assert index.minimum == DEFAULT_MINIMUM
        assert index.statistics()["leaves"] == 1
        every = np.arange(100)
        assert np.array_equal(index.evaluations(every), plain.evaluations(every))

    def test_high_overlap_costs_no_candidates(self) -> None:
        held = [(i, 500 + i, i) for i in range(400)]
        index = build(HybridIndex, held, 1000, minimum=1)
        cluster = build(ClusterIndex, held, 1000)
        assert cluster.evaluations([450]).tolist() == [400]
        assert index.evaluations([450])[0] <= 12

    @pytest.mark.parametrize("minimum", [0, -5, 2.5, 2**31])
    def test_minimum_must_be_a_size(self, minimum) -> None:
        with pytest.raises(OptionError, match="minimum"):
            build(HybridIndex, [], 10, minimum=minimum)

    def test_an_elementary_interval_across_a_key_is_in_both_leaves(self) -> None:
        held = [(10, 19, 0), (30, 39, 1), (50, 59, 2), (70, 79, 3)]
        index = build(HybridIndex, held, 100, minimum=1)
        keys = index.tree.bounds.tolist()[1:]
        for interval in held:
            index.delete(*interval)
        index.insert(5, 95, 9)
        index.check()
        assert keys == index.tree.bounds.tolist()[1:]
        assert stabs(index, list(range(100))) == [
            brute_force([(5, 95, 9)], value) for value in range(100)
        ]
        assert index.ends[0] > index.begins[1]

    def test_many_changes_choose_new_keys(self) -> None:
        index = build(HybridIndex, [], 1000, minimum=1)
        for i in range(200):
            index.insert(5 * i, 5 * i + 4, i)
        assert index.statistics()["leaves"] > 60
        index.check()
        for i in range(200):
            index.delete(5 * i, 5 * i + 4, i)
        assert index.statistics()["leaves"] < 40
        index.check()

    def test_too_much_overlap_is_refused_and_changes_nothing(self, monkeypatch) -> None:
        ends = np.sort(np.random.default_rng(3).integers(0, 5000, (1000, 2)))
        held = [(*pair, i) for i, pair in enumerate(ends.tolist())]
        index = build(HybridIndex, held, 5000)
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", 50_000)
        with pytest.raises(OptionError, match="bytes"):
            build(HybridIndex, held, 5000)
        monkeypatch.undo()
        index.check()
        assert stabs(index, [0, 2500]) == [brute_force(held, value) for value in (0, 2500)]


class TestCheck:
    """Each invariant of its own, broken on purpose."""

    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        held = [(i, min(i + i % 5, 99), i) for i in range(100)]
        index = build(HybridIndex, held, 100, minimum=3)
        return {name: array.copy() for name, array in index.arrays().items()}

    def broken(self, arrays: dict[str, np.ndarray], message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            HybridIndex.from_arrays(arrays).check()

    def test_a_leaf_that_begins_elsewhere(self, arrays) -> None:
        arrays["leaf_begins"][3] += 1
        self.broken(arrays, "begins at the wrong node")

    def test_a_leaf_that_ends_elsewhere(self, arrays) -> None:
        arrays["leaf_ends"][3] -= 1
        self.broken(arrays, "ends at the wrong node")

    def test_the_tree_is_checked(self, arrays) -> None:
        arrays["keys"][0, 0] = 99
        self.broken(arrays, "keys are out of order")

    def test_the_elementary_intervals_are_checked(self, arrays) -> None:
        arrays["row_words"][5] ^= np.uint64(1) << np.uint64(40)
        self.broken(arrays, "bits of a node")

    def test_sizes_and_types_are_verified_on_opening(self, arrays) -> None:
        wrongs = [
            {"keys": arrays["keys"][:-1].copy()},
            {"keys": arrays["keys"].astype(np.int64)},
            {"leaf_begins": arrays["leaf_begins"][:-1].copy()},
            {"leaf_ends": arrays["leaf_ends"].astype(np.int64)},
            {"lows": arrays["lows"][:-1].copy()},
            {"minimum": np.array([1, 1])},
            {"minimum": np.array([0])},
        ]
        for wrong in wrongs:
            with pytest.raises(SnapshotError, match="fit together"):
                HybridIndex.from_arrays(arrays | wrong)
