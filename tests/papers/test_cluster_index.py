"""The Cluster Index: the contract, and how seed 004 chooses keys and counts evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.bit_vectors import cluster_index
from bittern.literature.bit_vectors.cluster_index import ClusterIndex
from bittern.literature.bit_vectors.cluster_tree import KEY, LEFT, RIGHT, ClusterTree, best_key
from paper_examples import FIVE
from paper_examples import TREE_EXAMPLE_4 as EXAMPLE_4
from stabbing_contract import StabbingContract, brute_force, build, stabs


class TestContract(StabbingContract):
    name = "cluster"
    parameters = st.sampled_from([{}, {"minimum": 1}, {"minimum": 3}, {"minimum": 1000}])


def score(cluster, key: int) -> int:
    """The paper's: difference in size of the two clusters, plus how many are in both."""
    left = {i for low, _, i in cluster if low < key}
    right = {i for _, high, i in cluster if high >= key}
    return abs(len(left) - len(right)) + len(left & right)


def tree_of(index, node: int | None = None) -> object:
    """Nested (key, left, right), with the ids of the cluster at each leaf."""
    node = (0 if len(index.tree.nodes) else ~0) if node is None else int(node)
    if node < 0:
        return cluster_of(index, ~node)
    key, left, right = index.tree.nodes[node]
    return int(key), tree_of(index, left), tree_of(index, right)


def cluster_of(index: ClusterIndex, leaf: int) -> list[int]:
    cell = int(index.tree.bounds[leaf])
    return sorted(index.candidates_batch([cell]).ids(0, 1).tolist())


class Recorder(list):
    """A list that remembers which of its items were asked for."""

    def __init__(self, items) -> None:
        super().__init__(items)
        self.asked: list[int] = []

    def __getitem__(self, at):
        self.asked.append(at)
        return super().__getitem__(at)


class TestKeysOfThePaper:
    def test_seed_004_example_of_scores_3_for_21_and_5_for_48(self) -> None:
        assert sorted({end for low, high, _ in FIVE for end in (low, high)}) == [
            2,
            6,
            19,
            21,
            23,
            48,
            50,
        ]
        assert len([i for low, _, i in FIVE if low < 21]) == 3
        assert len([i for _, high, i in FIVE if high >= 21]) == 4
        assert len([i for low, _, i in FIVE if low < 48]) == 5
        assert len([i for _, high, i in FIVE if high >= 48]) == 2
        assert score(FIVE, 21) == (4 - 3) + (4 + 3 - 5) == 3
        assert score(FIVE, 48) == (5 - 2) + (5 + 2 - 5) == 5

    def test_seed_004_example_examines_21_then_48_then_23_and_no_other(self) -> None:
        points = [2, 6, 19, 21, 23, 48, 50]
        begun = Recorder(sum(low < point for low, _, _ in FIVE) for point in points)
        ended = [sum(high < point for _, high, _ in FIVE) for point in points]
        chosen = best_key.py_func(begun, ended, 0, 7, 0, 5)
        assert [points[at] for at in begun.asked] == [21, 48, 23]
        assert points[chosen] == 21

    def test_seed_004_example_chooses_21(self) -> None:
        assert tree_of(build(ClusterIndex, FIVE, 51)) == (
            21,
            (19, [0, 1], [1, 2]),
            (23, [1, 2, 3], [2, 3, 4]),
        )

    def test_a_key_further_on_wins_with_a_smaller_score_and_the_first_of_equals(self) -> None:
        apart = [(2, 6, 0), (6, 21, 1), (19, 22, 2), (23, 48, 3), (23, 50, 4), (2, 21, 5)]
        points = sorted({end for low, high, _ in apart for end in (low, high)})
        assert [(point, score(apart, point)) for point in points[3:6]] == [
            (21, 4),
            (22, 2),
            (23, 2),
        ]
        assert min(score(apart, point) for point in points) == 2
        assert build(ClusterIndex, apart, 51).tree.nodes[0, KEY] == 23  # 21, then 23, then 22

    intervals = st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair))),
        max_size=25,
    ).map(lambda pairs: [(low, high, i) for i, (low, high) in enumerate(pairs)])

    @given(held=intervals, minimum=st.integers(1, 6))
    def test_every_node_has_the_best_of_all_keys_and_leaves_cannot_be_split(
        self, held, minimum
    ) -> None:
        index = build(ClusterIndex, held, 41, minimum=minimum)

        def verify(tree, cluster, first: int, stop: int) -> None:
            ends = {end for low, high, _ in cluster for end in (low, high) if first < end < stop}
            scores = [score(cluster, end) for end in ends]
            if isinstance(tree, list):
                assert tree == [i for _, _, i in cluster]
                for end in ends if len(cluster) > minimum else ():
                    left = [one for one in cluster if one[0] < end]
                    right = [one for one in cluster if one[1] >= end]
                    assert len(cluster) in (len(left), len(right))
                return
            key, left, right = tree
            assert key in ends
            assert score(cluster, key) == min(scores)
            assert len(cluster) > minimum
            verify(left, [one for one in cluster if one[0] < key], first, key)
            verify(right, [one for one in cluster if one[1] >= key], key, stop)

        verify(tree_of(index), held, -1, 41)

    def test_clusters_of_one_are_not_split(self) -> None:
        assert tree_of(build(ClusterIndex, [(3, 9, 4)], 20)) == [4]
        assert tree_of(build(ClusterIndex, [(3, 3, 4), (5, 9, 2)], 20)) == (5, [4], [2])

    def test_intervals_with_a_common_cell_are_not_split(self) -> None:
        index = build(ClusterIndex, [(i, 20 + i, i) for i in range(20)], 40)
        assert tree_of(index) == list(range(20))
        assert index.evaluations([5]).tolist() == [20]

    def test_a_path_may_be_much_longer_than_table_1_says(self) -> None:
        # 1000 intervals that begin together and end one after the other, and another that begins
        # after every 30 of these ends.
        held = [(0, 2 * i + 1, i) for i in range(1000)]
        held += [(60 * i, 2005, 1000 + i) for i in range(1, 34)]
        for turned in (held, [(2005 - high, 2005 - low, i) for low, high, i in held]):
            tree = ClusterTree.of(*np.array(turned, np.int32).T[:2].copy(), 1)
            tree.check()
            assert tree.depth() > 4 * np.log2(len(held))


class TestExample4OfThePaper:
    @pytest.fixture
    def index(self) -> ClusterIndex:
        return build(ClusterIndex, EXAMPLE_4, 100)

    def test_seed_004_figure_2_cluster_index_on_x(self, index) -> None:
        assert tree_of(index) == (
            50,
            (30, [0, 1, 2, 4, 6], [1, 2, 4, 6, 7]),
            (75, (60, [2, 4, 7], [2, 3, 7]), [3, 5]),
        )

    def test_seed_004_figure_2_search_of_20(self, index) -> None:
        assert sorted(index.stab(20).tolist()) == [0, 1, 2, 4, 6]
        # Keys 50 and 30, then the five candidates of the leaf.
        assert index.evaluations([20]).tolist() == [2 + 5]

    def test_candidates_may_match(self, index) -> None:
        assert sorted(index.candidates_batch([5]).ids(0, 1).tolist()) == [0, 1, 2, 4, 6]
        assert index.stab(5).tolist() == [4]
        assert index.evaluations([5]).tolist() == [2 + 5]

    def test_values_outside_the_domain_have_no_candidates(self, index) -> None:
        assert index.candidates_batch([-1, 100, 2**40]).offsets.tolist() == [0, 0, 0, 0]
        assert index.evaluations([-1, 100, 2**40]).tolist() == [0, 0, 0]


class TestClusters:
    def test_minimum_stops_splitting(self) -> None:
        held = [(i, i, i) for i in range(64)]
        assert build(ClusterIndex, held, 64).statistics()["leaves"] == 64
        index = build(ClusterIndex, held, 64, minimum=4)
        assert index.statistics()["leaves"] == 16
        assert index.statistics()["candidates_per_leaf"] == 4
        assert index.statistics()["depth"] == 4

    @pytest.mark.parametrize("minimum", [0, -1, 1.5, None, 2**70])
    def test_minimum_must_be_a_size(self, minimum) -> None:
        with pytest.raises(OptionError, match="minimum"):
            build(ClusterIndex, [], 10, minimum=minimum)

    def test_many_changes_choose_new_keys(self) -> None:
        index = build(ClusterIndex, [], 1000)
        assert index.statistics()["leaves"] == 1
        for i in range(200):
            index.insert(5 * i, 5 * i + 4, i)
        assert index.statistics()["leaves"] > 60
        index.check()
        for i in range(190):
            index.delete(5 * i, 5 * i + 4, i)
        assert index.statistics()["leaves"] < 40
        index.check()

    def test_long_rows_are_evaluated_in_whole_words_and_bit_by_bit(self) -> None:
        # 64 slots side by side, single ones far apart, and the last word that is not full.
        rng = np.random.default_rng(2)
        held = [(i // 10, 100 + i // 10 + int(rng.integers(0, 20)), i) for i in range(700)]
        held += [(i, 199, 700 + i) for i in range(0, 199, 7)]
        index = build(ClusterIndex, held, 200)
        assert stabs(index, list(range(200))) == [brute_force(held, v) for v in range(200)]

    @pytest.mark.parametrize("most", [1, 40, 1000])
    def test_a_batch_of_too_many_candidates_is_compared_in_pieces(self, most, monkeypatch) -> None:
        ends = np.sort(np.random.default_rng(4).integers(0, 300, (500, 2)))
        held = [(*pair, i) for i, pair in enumerate(ends.tolist())]
        index = build(ClusterIndex, held, 300)
        values = np.random.default_rng(5).integers(-5, 305, 700)
        offsets, ids = index.stab_batch(values)
        monkeypatch.setattr(cluster_index, "MOST_WORDS", most)
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", 1)  # a search is never refused
        words: list[int] = []
        compare = index._matches

        def matches(*arguments):
            words.append(len((found := compare(*arguments)).words))
            return found

        monkeypatch.setattr(index, "_matches", matches)
        located = index.locate_batch(values)
        assert len(words) > 2
        assert max(words) <= max(most, np.diff(index.bits.pack()[0]).max())
        assert np.array_equal(located.offsets, offsets)
        for first, last in [(0, 700), (0, 0), (3, 4), (250, 260), (13, 699), (700, 700)]:
            expected = ids[offsets[first] : offsets[last]]
            assert np.array_equal(located.ids(first, last), expected)

    def test_every_array_is_counted(self) -> None:
        index = build(ClusterIndex, FIVE, 60)
        rows, slots = 5 * 4 + 4 * 12 + 2 * 8, 5 * 12 + 2 * 8
        assert index.nbytes == 2 * 8 + 3 * 12 + 4 * 4 + rows + slots

    def test_too_much_overlap_is_refused_and_changes_nothing(self, monkeypatch) -> None:
        ends = np.sort(np.random.default_rng(3).integers(0, 5000, (1000, 2)))
        held = [(*pair, i) for i, pair in enumerate(ends.tolist())]
        index = build(ClusterIndex, held, 5000)
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", 50_000)
        with pytest.raises(OptionError, match="bytes"):
            build(ClusterIndex, held, 5000)
        with pytest.raises(OptionError, match="bytes"):
            index.insert(0, 4999, 7)
        monkeypatch.undo()
        index.check()
        assert stabs(index, [0, 2500]) == [brute_force(held, value) for value in (0, 2500)]


class TestCheck:
    """Each invariant, broken on purpose."""

    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        index = build(ClusterIndex, [(i, min(i + i % 5, 99), i) for i in range(100)], 100)
        return {name: array.copy() for name, array in index.arrays().items()}

    def broken(self, arrays: dict[str, np.ndarray], message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            ClusterIndex.from_arrays(arrays).check()

    def test_a_missing_bit(self, arrays) -> None:
        at = int(np.argmax(np.bitwise_count(arrays["row_words"]) > 1))
        arrays["row_words"][at] &= arrays["row_words"][at] - np.uint64(1)
        self.broken(arrays, "cluster is not the intervals")

    def test_keys_out_of_order(self, arrays) -> None:
        arrays["nodes"][0, KEY] = 99
        self.broken(arrays, "keys are out of order")

    def test_a_child_that_does_not_exist(self, arrays) -> None:
        arrays["nodes"][0, RIGHT] = len(arrays["nodes"])
        self.broken(arrays, "a child does not exist")

    def test_a_leaf_that_does_not_exist(self, arrays) -> None:
        arrays["nodes"][0, RIGHT] = ~(len(arrays["nodes"]) + 1)
        self.broken(arrays, "a leaf does not exist")

    def test_a_node_that_was_lost(self, arrays) -> None:
        arrays["nodes"][0, LEFT] = ~0
        self.broken(arrays, "not in the tree")

    def test_leaves_out_of_order(self, arrays) -> None:
        both = (arrays["nodes"][:, LEFT] < 0) & (arrays["nodes"][:, RIGHT] < 0)
        node = int(np.argmax(both))
        arrays["nodes"][node, LEFT:] = arrays["nodes"][node, LEFT:][::-1].copy()
        self.broken(arrays, "leaves are out of order")

    def test_an_interval_outside_the_domain(self, arrays) -> None:
        arrays["shape"][0] = 50
        self.broken(arrays, "past the domain")

    def test_a_row_too_few(self) -> None:
        index = build(ClusterIndex, EXAMPLE_4, 100)
        index.tree = ClusterTree(index.tree.nodes[:0])
        with pytest.raises(AssertionError, match="one row per leaf"):
            index.check()

    def test_sizes_and_types_are_verified_on_opening(self, arrays) -> None:
        wrongs = [
            {"nodes": arrays["nodes"][:-1].copy()},
            {"nodes": arrays["nodes"][:, :-1].copy()},
            {"nodes": arrays["nodes"].astype(np.int64)},
            {"nodes": arrays["nodes"].ravel()},
            {"row_words": arrays["row_words"][:-1].copy()},
            {"slot_ids": arrays["slot_ids"][:-1].copy()},
            {"shape": np.array([100])},
            {"shape": np.array([-1, 1])},
            {"shape": np.array([2**40, 1])},
            {"shape": np.array([100, 0])},
        ]
        for wrong in wrongs:
            with pytest.raises(SnapshotError, match="fit together"):
                ClusterIndex.from_arrays(arrays | wrong)
