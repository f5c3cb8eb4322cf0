"""The Interval Index of seed 004: the contract, the paper's example, its tree and its counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.bit_vectors.interval_index import IntervalIndex
from paper_examples import EXAMPLE_4
from stabbing_contract import Interval, StabbingContract, brute_force, build, stabs


class TestContract(StabbingContract):
    name = "interval"


def nodes_of(index: IntervalIndex) -> list[tuple[int, int]]:
    return list(zip(index.lows.tolist(), index.highs.tolist(), strict=True))


def visited(nodes: list[tuple[int, int]], value: int) -> list[tuple[int, int]]:
    """The paper's search, in a tree whose root is the ceil(n/2)-th of the sorted nodes."""
    if not nodes:
        return []
    root = -(-len(nodes) // 2) - 1
    low, high = nodes[root]
    below = nodes[:root] if value < low else nodes[root + 1 :] if value > high else []
    return [(low, high), *visited(below, value)]


class TestExampleOfThePaper:
    @pytest.fixture
    def example_4(self) -> IntervalIndex:
        index = build(IntervalIndex, EXAMPLE_4, 100)
        index.check()
        return index

    def test_seed_004_example_4_nodes_are_the_elementary_intervals(self, example_4) -> None:
        # 15 end points make 31 elementary intervals; the first and the last satisfy no profile.
        assert nodes_of(example_4) == [
            *[(5, 5), (6, 7), (8, 8), (9, 9), (10, 10), (11, 14), (15, 15), (16, 17)],
            *[(18, 18), (19, 24), (25, 25), (26, 29), (30, 30), (31, 39), (40, 40)],
            *[(41, 44), (45, 45), (46, 49), (50, 50), (51, 59), (60, 60), (61, 69)],
            *[(70, 70), (71, 74), (75, 75), (76, 79), (80, 80), (81, 89), (90, 90)],
        ]

    def test_seed_004_example_4_x_20_finds_profiles_0_1_2_4_6(self, example_4) -> None:
        assert sorted(example_4.stab(20).tolist()) == [0, 1, 2, 4, 6]

    def test_seed_004_figure_3_x_20_visits_five_nodes(self, example_4) -> None:
        path = visited(nodes_of(example_4), 20)
        assert path == [(40, 40), (15, 15), (25, 25), (18, 18), (19, 24)]
        assert example_4.evaluations([20]).tolist() == [5]

    def test_seed_004_figure_3_a_search_stops_where_the_interval_is_found(self, example_4) -> None:
        # The root, a child of it, and a value for which the search runs past a leaf.
        assert example_4.evaluations([40, 15, 0, 95]).tolist() == [1, 2, 4, 5]
        assert stabs(example_4, [0, 95]) == [[], []]


class TestTree:
    def test_elementary_intervals_in_no_interval_get_no_node(self) -> None:
        index = build(IntervalIndex, [(10, 12, 1), (20, 20, 2)], 100)
        assert nodes_of(index) == [(10, 10), (11, 11), (12, 12), (20, 20)]

    def test_the_tree_that_the_module_draws(self) -> None:
        index = build(IntervalIndex, [(2, 18, 0), (5, 30, 1)], 41)
        nodes = [(2, 2), (3, 4), (5, 5), (6, 17), (18, 18), (19, 29), (30, 30)]
        assert nodes_of(index) == nodes
        assert visited(nodes, 20) == [(6, 17), (19, 29)]
        assert index.evaluations([20, 6, 2, 40]).tolist() == [2, 1, 3, 3]
        assert stabs(index, [2, 5, 18, 20]) == [[0], [0, 1], [0, 1], [1]]

    @given(st.integers(1, 60), st.data())
    def test_evaluations_are_the_nodes_that_the_tree_visits(self, domain: int, data) -> None:
        cells = st.tuples(st.integers(0, domain - 1), st.integers(0, domain - 1)).map(sorted)
        intervals = [(*ends, 0) for ends in data.draw(st.lists(cells, max_size=12))]
        index = build(IntervalIndex, intervals, domain)
        nodes = nodes_of(index)
        values = range(domain)
        counts = index.evaluations(values).tolist()
        assert counts == [len(visited(nodes, value)) for value in values]
        assert all(count <= len(nodes).bit_length() for count in counts)
        assert index.statistics()["depth"] == len(nodes).bit_length()

    def test_values_outside_the_domain_are_compared_with_nothing(self) -> None:
        index = build(IntervalIndex, EXAMPLE_4, 100)
        assert index.evaluations([-1, 100, 2**40]).tolist() == [0, 0, 0]
        assert build(IntervalIndex, [], 100).evaluations([5]).tolist() == [0]

    def test_one_interval_more_cuts_copies_and_creates_nodes(self) -> None:
        index = build(IntervalIndex, [(10, 20, 1), (30, 30, 2)], 100)
        assert nodes_of(index) == [(10, 10), (11, 19), (20, 20), (30, 30)]
        index.insert(15, 40, 3)
        index.check()
        assert nodes_of(index) == [
            *[(10, 10), (11, 14), (15, 15), (16, 19), (20, 20)],
            *[(21, 29), (30, 30), (31, 39), (40, 40)],
        ]
        assert stabs(index, [14, 15, 25, 30, 40]) == [[1], [1, 3], [3], [2, 3], [3]]

    def test_nodes_that_became_empty_are_taken_out(self) -> None:
        index = build(IntervalIndex, [(10, 20, 1), (15, 40, 3)], 100)
        index.delete(15, 40, 3)
        index.check()
        # The cuts of the deleted interval stay for now.
        assert nodes_of(index) == [(10, 10), (11, 14), (15, 15), (16, 19), (20, 20)]
        index.arrays()
        assert nodes_of(index) == [(10, 10), (11, 19), (20, 20)]

    def test_saved_after_changes_is_what_would_have_been_built(self) -> None:
        rng = np.random.default_rng(5)
        every = [(*sorted(rng.integers(0, 500, 2).tolist()), i) for i in range(60)]
        index = build(IntervalIndex, every[:40], 500)
        for interval in every[40:]:
            index.insert(*interval)
        for interval in every[:20]:
            index.delete(*interval)
        built = build(IntervalIndex, every[20:], 500).arrays()
        saved = index.arrays()
        assert built.keys() == saved.keys()
        assert all(np.array_equal(built[name], saved[name]) for name in built)

    def test_many_changes_build_it_again(self) -> None:
        index = build(IntervalIndex, [(i, i + 3, i) for i in range(0, 400, 4)], 403)
        for i in range(0, 400, 4):
            index.delete(i, i + 3, i)
            index.insert(i + 1, i + 2, i)
        index.check()
        assert index.slots.changes <= 16 + len(index.slots.lows) // 2
        assert stabs(index, list(range(6))) == [[], [0], [0], [], [], [4]]

    def test_rows_of_short_intervals_have_few_words(self) -> None:
        rng = np.random.default_rng(6)
        lows = rng.integers(0, 99_000, 60_000)
        index = IntervalIndex.build(
            lows, lows + rng.integers(0, 200, 60_000), np.arange(60_000), domain=100_000
        )
        figures = index.statistics()
        assert figures["words"] < 4 * figures["nodes"]
        assert figures["entries"] > 40 * figures["nodes"]

    @pytest.mark.parametrize("clustered", [False, True])
    def test_tops_narrow_the_search_wherever_the_nodes_are(self, clustered: bool) -> None:  # noqa: FBT001
        rng = np.random.default_rng(9)
        spread = 0 if clustered else rng.integers(-499, 497, 900)
        lows = 500_000 + rng.integers(0, 3000, 900) + spread * 1000
        intervals: list[Interval] = [(int(low), int(low) + 30, i) for i, low in enumerate(lows)]
        index = build(IntervalIndex, intervals, 1_000_000)
        for interval in intervals[::100]:
            index.delete(*interval)
        kept = [interval for i, interval in enumerate(intervals) if i % 100]
        index.check()
        values = [0, 999_999, *(lows[:100] + rng.integers(-40, 40, 100)).clip(0).tolist()]
        assert stabs(index, values) == [brute_force(kept, value) for value in values]
        assert len(index.tops) <= len(index.lows) // 8 + 2


class TestMemory:
    def test_too_many_long_intervals_are_refused(self, monkeypatch) -> None:
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", 1_000_000)
        long = np.arange(3000)
        with pytest.raises(OptionError, match=r"take \d+ bytes .at most 1000000.: use cei"):
            IntervalIndex.build(long, long + 3000, long, domain=6000)
        short = IntervalIndex.build(long, long + 30, long, domain=6000)
        assert short.nbytes < 1_000_000

    def test_an_insertion_that_is_refused_changes_nothing(self, monkeypatch) -> None:
        intervals = [(i, i + 5, i) for i in range(0, 3000, 3)]
        index = build(IntervalIndex, intervals, 3010)
        before = {name: array.copy() for name, array in index.arrays().items()}
        built = index.bits.n_words * 12 + index.bits.n_rows * 4
        for room in (0, 30_000):  # refused when nodes are split, and when bits are set
            monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", built + room)
            with pytest.raises(OptionError, match="bytes"):
                index.insert(1, 3000, 7)
            index.check()
            after = index.arrays()
            assert all(np.array_equal(before[name], after[name]) for name in before)


class TestCheck:
    """Each invariant, broken on purpose."""

    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        index = build(IntervalIndex, [(i, i + 7, i) for i in range(0, 90, 5)], 100)
        return {name: array.copy() for name, array in index.arrays().items()}

    def broken(self, arrays: dict[str, np.ndarray], message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            IntervalIndex.from_arrays(arrays).check()

    def test_slots(self, arrays) -> None:
        arrays["slot_highs"][-1] = 100
        self.broken(arrays, "past the domain")

    def test_bits(self, arrays) -> None:
        arrays["row_words"][0] = 0
        self.broken(arrays, "without bits")

    def test_one_row_per_node(self, arrays) -> None:
        index = IntervalIndex.from_arrays(arrays)
        index.bits.add_rows(np.array([-1], np.int32))
        with pytest.raises(AssertionError, match="one row per node"):
            index.check()

    def test_reversed(self, arrays) -> None:
        arrays["highs"][0] = -1
        self.broken(arrays, "node is reversed")

    def test_overlap(self, arrays) -> None:
        arrays["highs"][0] = arrays["lows"][1]
        self.broken(arrays, "overlap")

    def test_outside(self, arrays) -> None:
        arrays["lows"][0] = -1
        self.broken(arrays, "a node is outside")

    def test_tops(self, arrays) -> None:
        arrays["tops"][1] += 1
        self.broken(arrays, "a top does not count")

    def test_end_point_after_the_last_node(self, arrays) -> None:
        arrays["slot_lows"][-1] = arrays["slot_highs"][-1] = 99
        self.broken(arrays, "has no node")

    def test_end_point_inside_a_node(self, arrays) -> None:
        at = int(np.flatnonzero(arrays["highs"] > arrays["lows"])[0])
        arrays["slot_lows"][0] = arrays["highs"][at]
        self.broken(arrays, "by itself")

    def test_hole(self, arrays) -> None:
        at = int(np.flatnonzero(arrays["highs"] > arrays["lows"])[0])
        arrays["highs"][at] -= 1
        self.broken(arrays, "in no node")

    def test_wrong_bits(self, arrays) -> None:
        arrays["row_words"][0] ^= 1 << 5
        self.broken(arrays, "not those of its intervals")

    def test_empty_node(self) -> None:
        index = build(IntervalIndex, [(10, 12, 1)], 100)
        index.bits.splice(3, 3, np.array([-1], np.int32))
        index._splice(3, 3, np.array([50], np.int32), np.array([51], np.int32))
        with pytest.raises(AssertionError, match="a node is in no interval"):
            index.check()

    @pytest.mark.parametrize(
        "name", ["lows", "highs", "tops", "row_offsets", "row_words", "slot_ids"]
    )
    def test_sizes_and_types_are_verified_on_opening(self, arrays, name: str) -> None:
        whole = arrays[name]
        for wrong in (whole[:-1], whole.astype(np.float32), np.append(whole, whole)):
            with pytest.raises(SnapshotError, match="fit together"):
                IntervalIndex.from_arrays(arrays | {name: wrong})

    def test_shape_is_verified_on_opening(self, arrays) -> None:
        for shape in ([-1], [2**40], [], [100, 1]):
            with pytest.raises(SnapshotError, match="fit together"):
                IntervalIndex.from_arrays(arrays | {"shape": np.array(shape, np.int64)})
        for shift in ([31], [3], [-1], [], [4, 4]):
            with pytest.raises(SnapshotError, match="fit together"):
                IntervalIndex.from_arrays(arrays | {"top_shift": np.array(shift, np.int64)})
