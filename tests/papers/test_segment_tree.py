"""The Segment Tree as seed 004 builds it: the contract, the paper's example, shape and balance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.bit_vectors.segment_nodes import BOUND, CHILD, path_to, plant
from bittern.literature.bit_vectors.segment_tree import SegmentTree
from paper_examples import EXAMPLE_4
from stabbing_contract import StabbingContract, brute_force, build, stabs

Node = tuple[int, int]


class TestContract(StabbingContract):
    name = "segment-tree"


def tree_of(index: SegmentTree) -> dict[Node, set[int]]:
    """The interval of each node, the root first, and the ids that have their bit there."""
    tree: dict[Node, set[int]] = {}

    def visit(n: int, low: int, high: int) -> None:
        slots = index.bits.union(np.array([n], np.int32))
        tree[low, high] = set(index.slots.ids[slots].tolist())
        bound, child = index.nodes[n].tolist()
        if child:
            visit(child, low, bound - 1)
            visit(child + 1, bound, high)

    visit(0, 0, index.domain - 1)
    return tree


def path_of(index: SegmentTree, value: int) -> list[Node]:
    return [(low, high) for low, high in tree_of(index) if low <= value <= high]


class TestExampleOfThePaper:
    @pytest.fixture
    def example_4(self) -> SegmentTree:
        index = build(SegmentTree, EXAMPLE_4, 100)
        index.check()
        return index

    def test_seed_004_example_4_x_20_finds_profiles_0_1_2_4_6(self, example_4) -> None:
        assert sorted(example_4.stab(20).tolist()) == [0, 1, 2, 4, 6]

    def test_seed_004_figure_5_x_20_visits_a_full_path(self, example_4) -> None:
        path = path_of(example_4, 20)
        assert path == [(0, 99), (0, 40), (16, 40), (16, 25), (19, 25), (19, 24)]
        assert example_4.evaluations([20]).tolist() == [6]

    def test_seed_004_figure_5_bits_on_the_path(self, example_4) -> None:
        tree = tree_of(example_4)
        on_path = {node: tree[node] for node in path_of(example_4, 20) if tree[node]}
        assert on_path == {(16, 40): {1, 2, 4, 6}, (19, 25): {0}}

    def test_seed_004_figure_5_leaves_are_31_elementary_intervals(self, example_4) -> None:
        figures = example_4.statistics()
        assert (figures["leaves"], figures["nodes"], figures["depth"]) == (31, 61, 6)


class TestShape:
    def test_pairs_are_joined_from_below_and_an_odd_one_is_carried_up(self) -> None:
        index = build(SegmentTree, [(0, 0, 7), (2, 2, 8)], 5)
        # Leaves 0, 1, 2, 3 4: two pairs, one pair. With [4, 4] as well there are five leaves.
        assert list(tree_of(index)) == [(0, 4), (0, 1), (0, 0), (1, 1), (2, 4), (2, 2), (3, 4)]
        index = build(SegmentTree, [(0, 0, 7), (2, 2, 8), (4, 4, 9)], 5)
        assert list(tree_of(index))[-3:] == [(2, 2), (3, 3), (4, 4)]
        assert index.evaluations(range(5)).tolist() == [4, 4, 4, 4, 2]

    def test_the_tree_that_the_module_draws(self) -> None:
        tree = tree_of(build(SegmentTree, [(2, 18, 0), (5, 30, 1)], 41))
        inner = [(0, 40), (0, 30), (0, 5), (0, 2), (3, 5), (6, 30), (6, 18), (19, 30)]
        assert [node for node in tree if node in inner] == inner
        assert len(tree) == 9 + len(inner)
        assert [node for node, ids in tree.items() if 0 in ids] == [(2, 2), (3, 5), (6, 18)]
        assert [node for node, ids in tree.items() if 1 in ids] == [(5, 5), (6, 30)]

    @given(st.integers(1, 300))
    def test_every_level_joins_neighbours_of_the_level_below(self, n: int) -> None:
        nodes = plant(np.arange(n, dtype=np.int32))
        expected = set()
        level = [(i, i) for i in range(n)]
        while True:
            expected |= set(level)
            if len(level) == 1:
                break
            pairs = zip(level[::2], level[1::2], strict=False)
            carried = level[-1:] if len(level) % 2 else []
            level = [(left[0], right[1]) for left, right in pairs] + carried
        found, stack = set(), [(0, 0, n - 1)]
        while stack:
            node, low, high = stack.pop()
            found.add((low, high))
            bound, child = nodes[node].tolist()
            if child:
                stack += [(child, low, bound - 1), (child + 1, bound, high)]
        assert found == expected
        assert len(nodes) == len(expected) == 2 * n - 1

    @given(st.integers(1, 60), st.data())
    def test_an_interval_is_in_the_nodes_it_covers_whose_parent_it_does_not(
        self, domain: int, data
    ) -> None:
        cells = st.tuples(st.integers(0, domain - 1), st.integers(0, domain - 1)).map(sorted)
        ends = data.draw(st.lists(cells, max_size=12))
        intervals = [(*pair, i) for i, pair in enumerate(ends)]
        index = build(SegmentTree, intervals, domain)
        tree = tree_of(index)
        for low, high, number in intervals:
            covered = {(a, b) for a, b in tree if low <= a and b <= high}
            inner = {
                (a, b)
                for a, b in covered
                if any((c <= a and b <= d) and (c, d) != (a, b) for c, d in covered)
            }
            assert {node for node, ids in tree.items() if number in ids} == covered - inner
        most = 2 * max(1, len(tree).bit_length() - 1)
        assert index.statistics()["entries"] <= most * len(intervals)

    def test_evaluations_are_the_nodes_from_the_root_to_the_leaf(self) -> None:
        index = build(SegmentTree, EXAMPLE_4, 100)
        assert index.evaluations(range(100)).tolist() == [
            len(path_of(index, value)) for value in range(100)
        ]
        assert index.evaluations([-1, 100, 2**40]).tolist() == [0, 0, 0]


class TestChanges:
    def test_a_new_end_point_splits_a_leaf(self) -> None:
        index = build(SegmentTree, [], 10)
        assert tree_of(index) == {(0, 9): set()}
        index.insert(3, 9, 5)
        index.check()
        assert list(tree_of(index)) == [(0, 9), (0, 2), (3, 9), (3, 3), (4, 9), (4, 8), (9, 9)]
        assert tree_of(index)[3, 9] == {5}

    @pytest.mark.parametrize("down", [False, True])
    def test_end_points_in_order_do_not_make_a_list_of_the_tree(self, down: bool) -> None:  # noqa: FBT001
        old = [(i, i + 1, i) for i in range(0, 4000, 2)]
        new = [(4000 + 3 * i, 4100 + 3 * i, i) for i in range(700)]
        index = build(SegmentTree, old, 10_000)
        built = index.statistics()["depth"]
        for interval in new[::-1] if down else new:
            index.insert(*interval)
        index.check()
        assert index.slots.changes == len(new), "it was built again, which proves nothing"
        assert index.statistics()["depth"] <= 2 * built + 4
        values = [*range(3990, 6300, 7), 9999]
        assert stabs(index, values) == [brute_force(old + new, value) for value in values]

    def test_subtrees_are_planted_anew_below_rows_that_stay(self, monkeypatch) -> None:
        planted: list[int] = []
        replant = SegmentTree._replant

        def note(self, leaves, inner, last) -> None:
            planted.append(len(leaves))
            replant(self, leaves, inner, last)

        monkeypatch.setattr(SegmentTree, "_replant", note)
        points = [(1000 + i, 1000 + i, 0) for i in range(600)]
        index = build(SegmentTree, [(0, 1999, 8), (0, 511, 9), *points], 2000)
        for i in range(250):
            index.insert(2 * i, 2 * i, 1)
        index.check()
        assert planted
        assert max(planted) < index.statistics()["leaves"]
        assert tree_of(index)[0, 1999] == {8}
        assert stabs(index, [100, 101, 700]) == [[1, 8, 9], [8, 9], [8]]

    def test_leaves_that_no_end_point_needs_go_when_it_is_saved(self) -> None:
        index = build(SegmentTree, [(3, 9, 5)], 10)
        index.delete(3, 9, 5)
        index.check()
        assert index.statistics()["leaves"] == 4
        assert index.statistics()["entries"] == 0
        index.arrays()
        assert index.statistics()["leaves"] == 1

    def test_saved_after_changes_is_what_would_have_been_built(self) -> None:
        rng = np.random.default_rng(5)
        every = [(*sorted(rng.integers(0, 500, 2).tolist()), i) for i in range(60)]
        index = build(SegmentTree, every[:40], 500)
        for interval in every[40:]:
            index.insert(*interval)
        for interval in every[:20]:
            index.delete(*interval)
        built = build(SegmentTree, every[20:], 500).arrays()
        saved = index.arrays()
        assert built.keys() == saved.keys()
        assert all(np.array_equal(built[name], saved[name]) for name in built)

    def test_long_intervals_take_few_bits(self) -> None:
        long = np.arange(3000)
        figures = SegmentTree.build(long, long + 3000, long, domain=6000).statistics()
        assert figures["entries"] <= 3000 * 2 * 13


class TestMemory:
    def test_too_many_bits_are_refused(self, monkeypatch) -> None:
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", 100_000)
        many = np.arange(3000)
        with pytest.raises(OptionError, match=r"take \d+ bytes .at most 100000.: use cei"):
            SegmentTree.build(many, many + 3000, many, domain=6000)

    def test_an_insertion_that_is_refused_changes_nothing(self, monkeypatch) -> None:
        intervals = [(8, 2990, i) for i in range(400)] + [(i, i, 0) for i in range(500, 600)]
        index = build(SegmentTree, intervals, 3000)
        before = {name: array.copy() for name, array in index.arrays().items()}
        built = index.bits.n_words * 12 + index.bits.n_rows * 4
        for room in (0, 200):  # refused when a leaf is split, and when bits are set
            monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", built + room)
            with pytest.raises(OptionError, match="bytes"):
                index.insert(7, 2990, 7)
            index.check()
            after = index.arrays()
            assert all(np.array_equal(before[name], after[name]) for name in before)
        index.delete(8, 2990, 5)  # needs none, although it copies
        index.check()


class TestCheck:
    """Each invariant, broken on purpose."""

    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        index = build(SegmentTree, [(i, i + 7, i) for i in range(0, 90, 5)], 100)
        return {name: array.copy() for name, array in index.arrays().items()}

    def broken(self, arrays: dict[str, np.ndarray], message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            SegmentTree.from_arrays(arrays).check()

    def leaf_of(self, arrays: dict[str, np.ndarray], cell: int) -> int:
        return int(path_to(arrays["nodes"], cell, int(arrays["shape"][1]))[-1])

    def test_slots(self, arrays) -> None:
        arrays["slot_highs"][-1] = 100
        self.broken(arrays, "past the domain")

    def test_bits(self, arrays) -> None:
        arrays["row_words"][0] = 0
        self.broken(arrays, "without bits")

    def test_one_row_per_node(self, arrays) -> None:
        index = SegmentTree.from_arrays(arrays)
        index.bits.add_rows(np.array([-1], np.int32))
        with pytest.raises(AssertionError, match="one row per node"):
            index.check()

    def test_cells_without_a_tree(self) -> None:
        empty = build(SegmentTree, [], 0).arrays()
        self.broken(empty | {"shape": np.array([5, 0])}, "cells without one")

    def test_parents(self, arrays) -> None:
        arrays["nodes"][0, CHILD] = 3
        self.broken(arrays, "not one parent")

    def test_connection(self, arrays) -> None:
        # Two subtrees change places with the root's children, so that one of them is its own root.
        nodes = arrays["nodes"]
        inner = int(np.flatnonzero(nodes[:, CHILD])[-1])
        nodes[[0, inner], CHILD] = nodes[[inner, 0], CHILD]
        self.broken(arrays, "not under the root")

    def test_first_leaf(self, arrays) -> None:
        arrays["nodes"][self.leaf_of(arrays, 0), BOUND] = 1
        self.broken(arrays, "first leaf")

    def test_order(self, arrays) -> None:
        arrays["nodes"][self.leaf_of(arrays, 50), BOUND] = 0
        self.broken(arrays, "out of order")

    def test_outside(self, arrays) -> None:
        arrays["nodes"][self.leaf_of(arrays, 99), BOUND] = 100
        self.broken(arrays, "outside the domain")

    def test_end_points(self, arrays) -> None:
        arrays["slot_highs"][-1] = 96
        self.broken(arrays, "not a leaf by itself")

    def test_bounds(self, arrays) -> None:
        arrays["nodes"][0, BOUND] += 1
        self.broken(arrays, "where the right begins")

    def test_bounds_that_changed_places(self, arrays) -> None:
        first, second = np.flatnonzero(arrays["nodes"][:, CHILD])[:2]
        arrays["nodes"][[first, second], BOUND] = arrays["nodes"][[second, first], BOUND]
        self.broken(arrays, "where the right begins")

    def test_depth(self, arrays) -> None:
        arrays["shape"][1] -= 1
        self.broken(arrays, "deeper")

    def test_wrong_bits(self, arrays) -> None:
        arrays["row_words"][0] ^= 1 << 5
        self.broken(arrays, "not those of its intervals")

    @pytest.mark.parametrize("name", ["nodes", "row_offsets", "row_words", "slot_ids"])
    def test_sizes_and_types_are_verified_on_opening(self, arrays, name: str) -> None:
        whole = arrays[name]
        for wrong in (whole[:-1], whole.astype(np.float32), np.append(whole, whole)):
            with pytest.raises(SnapshotError, match="fit together"):
                SegmentTree.from_arrays(arrays | {name: wrong})

    def test_shape_is_verified_on_opening(self, arrays) -> None:
        for shape in ([-1, 5], [2**40, 5], [], [100], [100, -1], [100, 99]):
            with pytest.raises(SnapshotError, match="fit together"):
                SegmentTree.from_arrays(arrays | {"shape": np.array(shape, np.int64)})
