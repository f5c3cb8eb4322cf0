"""CEI: the contract, and what its paper (seed 001) says by example, property and theorem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.stabbing.blocks import decompose, decompose_one
from bittern.stabbing.cei import CEI
from bittern.stabbing.id_lists import IdLists
from bittern.stabbing.registry import structure
from stabbing_contract import StabbingContract, build


class TestContract(StabbingContract):
    name = "cei"
    parameters = st.sampled_from([{}, *({"segment": 1 << k} for k in (0, 1, 2, 3, 5, 6, 7, 9))])


def lists_of(index: CEI) -> dict[int, list[int]]:
    """The nonempty lists, by global id."""
    bounds = zip(index.lists.begins, index.lists.ends, strict=True)
    lists = {n: index.lists.items[begin:end].tolist() for n, (begin, end) in enumerate(bounds)}
    return {n: ids for n, ids in lists.items() if ids}


def global_ids(start: int, stop: int, segment: int) -> list[int]:
    """Lists that the half-open interval [start, stop) of the paper goes to, in ascending order."""
    return list(lists_of(build(CEI, [(start, stop - 1, 0)], stop + segment, segment=segment)))


def local_ids(start: int, stop: int, segment: int) -> list[int]:
    return sorted(n % (2 * segment) for n in global_ids(start, stop, segment))


class TestExamplesOfThePaper:
    def test_seed_001_figure_7a_decomposes_8_to_14_into_2_and_6(self) -> None:
        assert local_ids(8, 14, segment=8) == [2, 6]

    def test_seed_001_figure_7b_decomposes_11_to_15_into_11_6_and_14(self) -> None:
        assert local_ids(11, 15, segment=8) == [6, 11, 14]
        starts, levels = decompose_one(11, 14, bits=3)
        assert list(zip(starts.tolist(), levels.tolist(), strict=True)) == [
            (11, 0),
            (12, 1),
            (14, 0),
        ]

    @pytest.fixture
    def figure_10(self) -> CEI:
        q1, q2, q3, q4 = (0, 3, 1), (1, 2, 2), (1, 3, 3), (0, 1, 4)
        return build(CEI, [q1, q2, q3, q4], 4, segment=4)

    def test_seed_001_figure_10_lists(self, figure_10: CEI) -> None:
        assert lists_of(figure_10) == {1: [1], 2: [4], 3: [3], 5: [2, 3], 6: [2]}

    def test_seed_001_figure_10_search_in_c5_finds_all_four(self, figure_10: CEI) -> None:
        assert figure_10.stab(1).tolist() == [2, 3, 4, 1]  # c5, then c2, then c1

    def test_seed_001_figure_10_deletion_undoes_insertion(self, figure_10: CEI) -> None:
        figure_10.delete(1, 3, 3)
        assert lists_of(figure_10) == {1: [1], 2: [4], 5: [2], 6: [2]}

    def test_seed_001_figure_6_files_whole_segments_under_2p_plus_1(self) -> None:
        # [3, 21) with L = 8: remnants [3, 8) and [16, 21), and the segment from post 8.
        assert global_ids(3, 21, segment=8) == [3, 11, 2 * 8 + 1, 32 + 2, 32 + 12]


class TestPropertiesOfThePaper:
    @given(bits=st.integers(0, 7))
    def test_seed_001_property_1_a_segment_has_2l_minus_1_ceis(self, bits: int) -> None:
        size = 1 << bits
        intervals = [
            (start, start + (1 << level) - 1, 0)
            for level in range(bits + 1)
            for start in range(0, size, 1 << level)
        ]
        assert list(lists_of(build(CEI, intervals, size, segment=size))) == list(range(1, 2 * size))

    @given(bits=st.integers(0, 7))
    def test_seed_001_property_2_level_i_has_ids_from_2_to_the_i(self, bits: int) -> None:
        size = 1 << bits
        for i in range(bits + 1):
            length = size >> i
            ids = [local_ids(start, start + length, size) for start in range(0, size, length)]
            assert ids == [[n] for n in range(1 << i, 2 << i)]

    @given(bits=st.integers(1, 7), data=st.data())
    def test_seed_001_properties_3_4_5_parents_contain_and_are_half(self, bits, data) -> None:
        size = 1 << bits
        level = data.draw(st.integers(0, bits - 1))
        start = data.draw(st.integers(0, (size >> level) - 1)) << level
        parent = start >> (level + 1) << (level + 1)
        [child_id] = local_ids(start, start + (1 << level), size)
        [parent_id] = local_ids(parent, parent + (2 << level), size)
        assert parent_id == child_id >> 1
        assert parent <= start < start + (1 << level) <= parent + (2 << level)

    @given(bits=st.integers(0, 6), data=st.data())
    def test_seed_001_property_6_a_value_is_in_k_plus_1_ceis(self, bits: int, data) -> None:
        size = 1 << bits
        blocks = [
            (start, start + (1 << level) - 1, level)
            for level in range(bits + 1)
            for start in range(0, 3 * size, 1 << level)
        ]
        index = build(CEI, blocks, 3 * size, segment=size)
        value = data.draw(st.integers(0, 3 * size - 1))
        assert index.stab(value).tolist() == list(range(bits + 1))

    @given(bits=st.integers(0, 8), value=st.integers(0, 5000))
    def test_seed_001_property_7_the_unit_cei_of_a_value(self, bits: int, value: int) -> None:
        size = 1 << bits
        i = value // size
        assert global_ids(value, value + 1, size) == [value - i * size + size + 2 * i * size]

    @given(bits=st.integers(1, 7), data=st.data())
    def test_seed_001_property_8_two_merge_only_if_the_smaller_id_is_even(self, bits, data) -> None:
        size = 1 << bits
        level = data.draw(st.integers(0, bits - 1))
        smaller = data.draw(st.integers(size >> level, (2 * size >> level) - 2))
        start = (smaller << level) - size
        merged = local_ids(start, start + (2 << level), size)
        assert merged == ([smaller >> 1] if smaller % 2 == 0 else [smaller, smaller + 1])

    @given(bits=st.integers(1, 10), post=st.integers(1, 5), data=st.data())
    def test_seed_001_lemma_3_aligned_take_one_cei_per_bit(self, bits, post, data) -> None:
        size = 1 << bits
        width = data.draw(st.integers(1, size - 1))
        for low in (post * size, post * size - width):
            assert len(decompose_one(low, low + width - 1, bits)[0]) == width.bit_count()


def fewest_blocks(low: int, stop: int, bits: int) -> tuple[int, int]:
    """Size and number of the smallest decompositions, over all of them."""
    best = {stop: (0, 1)}
    for at in range(stop - 1, low - 1, -1):
        sizes = [1 << v for v in range(bits + 1)]
        rest = [best[at + size] for size in sizes if at % size == 0 and at + size <= stop]
        fewest = min(count for count, _ in rest)
        best[at] = (fewest + 1, sum(ways for count, ways in rest if count == fewest))
    return best[low]


class TestDecomposition:
    @pytest.mark.parametrize("bits", range(6))
    def test_seed_001_theorem_1_minimal_and_lemma_2_unique(self, bits: int) -> None:
        cells = 2 << bits
        pairs = [(low, high) for high in range(cells) for low in range(high + 1)]
        lows, highs = np.array(pairs, np.int32).T.copy()
        offsets, _, _ = decompose(lows, highs, bits)
        for (low, high), count in zip(pairs, np.diff(offsets).tolist(), strict=True):
            assert (count, 1) == fewest_blocks(low, high + 1, bits)

    @given(bits=st.integers(0, 30), ends=st.tuples(*[st.integers(0, 2**30 - 1)] * 2))
    def test_blocks_are_aligned_adjacent_and_short_enough(self, bits, ends) -> None:
        low, high = min(ends), max(ends)
        high = min(high, low + 1000 * (1 << bits))
        starts, levels = (part.astype(np.int64) for part in decompose_one(low, high, bits))
        sizes = 1 << levels
        assert (starts % sizes == 0).all()
        assert levels.max() <= bits
        assert [low, *(starts + sizes)] == [*starts, high + 1]

    def test_no_intervals_give_no_blocks(self) -> None:
        none = np.empty(0, np.int32)
        offsets, starts, levels = decompose(none, none, 3)
        assert (offsets.tolist(), len(starts), len(levels)) == ([0], 0, 0)


class TestSegment:
    def test_default_is_32_where_intervals_are_short(self) -> None:
        assert build(CEI, [(i, i, i) for i in range(1000)], 100_000).segment == 32

    def test_default_follows_long_intervals(self) -> None:
        index = build(CEI, [(0, 3000 + i, i) for i in range(100)], 100_000)
        assert index.segment == 1024

    @pytest.mark.parametrize("width", [1, 30, 200, 3000, 40_000])
    def test_default_adds_few_entries(self, width: int) -> None:
        rng = np.random.default_rng(width)
        lows = rng.integers(0, 100_000 - width, 2000)
        highs = lows + rng.integers(0, width, 2000)
        entries = [
            CEI.build(lows, highs, np.arange(2000), domain=100_000, **given).statistics()["entries"]
            for given in ({}, {"segment": 2**17})
        ]
        assert entries[1] <= entries[0] <= 1.25 * entries[1]

    def test_default_pays_for_a_rare_long_interval_with_segments(self) -> None:
        points = [(i, i, i) for i in range(10_000)]
        assert build(CEI, [*points, (0, 9999, 7)], 10_000).segment == 32

    def test_default_covers_the_domain_when_nothing_is_known(self) -> None:
        assert build(CEI, [], 1000).segment == 1024

    def test_never_longer_than_the_domain_needs(self) -> None:
        assert build(CEI, [(0, 4, 1)], 5, segment=2**30).segment == 8

    @pytest.mark.parametrize("segment", [0, -4, 3, 2**31])
    def test_must_be_a_power_of_two(self, segment: int) -> None:
        with pytest.raises(OptionError, match="power of two"):
            build(CEI, [], 10, segment=segment)


class TestMasks:
    def test_equalities_alone_cost_one_list_per_value(self) -> None:
        index = build(CEI, [(i, i, i) for i in range(500)], 500)
        assert set(index.masks.tolist()) == {1}

    def test_levels_are_told_apart_by_region(self) -> None:
        index = build(CEI, [(3, 3, 0), (128, 191, 1), (256, 383, 2)], 512, segment=512)
        assert index.masks.tolist() == [1, 0, 1 << 6, 0, 1 << 7, 1 << 7, 0, 0]

    def test_saving_clears_levels_that_deletions_emptied(self) -> None:
        index = build(CEI, [(0, 63, 1), (5, 5, 2)], 64, segment=64)
        index.delete(0, 63, 1)
        assert index.masks.tolist() == [1 | 1 << 6]
        assert index.arrays()["masks"].tolist() == [1]


class TestCheck:
    """Each invariant, broken on purpose."""

    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        index = build(CEI, [(i, min(i + i % 5, 99), i) for i in range(100)] * 2, 100, segment=32)
        return {name: array.copy() for name, array in index.arrays().items()}

    def broken(self, arrays: dict[str, np.ndarray], message: str) -> None:
        with pytest.raises(AssertionError, match=message):
            CEI.from_arrays(arrays).check()

    def test_order(self, arrays) -> None:
        arrays["items"][:] = arrays["items"][::-1].copy()
        self.broken(arrays, "not ascending")

    def test_offsets(self, arrays) -> None:
        arrays["offsets"][50] = arrays["offsets"][60] + 1
        self.broken(arrays, "ends before it begins")

    @pytest.mark.parametrize("name", ["items", "offsets", "masks"])
    def test_sizes_and_types_are_verified_on_opening(self, arrays, name) -> None:
        whole = arrays[name]
        for wrong in (whole[:-1].copy(), whole.astype(np.int64), np.append(whole, whole[-1])):
            with pytest.raises(SnapshotError, match="fit together"):
                CEI.from_arrays(arrays | {name: wrong})

    def test_shape_is_verified_on_opening(self, arrays) -> None:
        for shape in ([99, 5], [100, 4], [100, -1], [-1, 5], [2**40, 5], [100, 99]):
            with pytest.raises(SnapshotError, match="fit together"):
                CEI.from_arrays(arrays | {"shape": np.array(shape)})

    def test_masks(self, arrays) -> None:
        arrays["masks"][1] = 0
        self.broken(arrays, "hides a level")

    def test_unused_number(self, arrays) -> None:
        arrays["offsets"][1:65] += 1
        arrays["offsets"][65:] += 1
        arrays["items"] = np.concatenate([[0], arrays["items"]]).astype(np.int32)
        self.broken(arrays, "local id 0")

    def test_past_the_domain(self, arrays) -> None:
        # List 3 * 64 + 1 is the whole fourth segment, cells 96 to 127, of which 100 exist.
        arrays["offsets"][3 * 64 + 2 :] += 1
        at = arrays["offsets"][3 * 64 + 1]
        arrays["items"] = np.insert(arrays["items"], at, 0).astype(np.int32)
        self.broken(arrays, "past the domain")


class TestIdLists:
    def test_too_many_entries_are_refused(self) -> None:
        with pytest.raises(OptionError, match="too many"):
            IdLists.for_counts(np.array([2**31 - 1, 1, 0], np.int32))

    def test_moving_and_packing_keep_every_list(self) -> None:
        rng = np.random.default_rng(3)
        lists = IdLists(np.zeros(21, np.int32), np.empty(0, np.int32))
        expected: list[list[int]] = [[] for _ in range(20)]
        for step in range(3000):
            chosen = rng.choice(20, 3, replace=False).astype(np.int32)
            number = int(rng.integers(0, 50))
            if step % 3:
                lists.insert(chosen, number)
                for n in chosen:
                    expected[n].append(number)
            else:
                there = all(number in expected[n] for n in chosen)
                assert lists.delete(chosen, number) == there
                for n in chosen if there else []:
                    expected[n].remove(number)
            if step % 500 == 0:
                lists.check()
        lists.check()
        assert not lists.packed
        offsets, items = lists.pack()
        assert lists.packed
        lists.check()
        assert [p.tolist() for p in np.split(items, offsets[1:-1])] == [sorted(e) for e in expected]


def test_an_unknown_structure_is_refused_with_the_known_names() -> None:
    assert structure("cei") is CEI
    with pytest.raises(OptionError, match=r"'btree'.*cei"):
        structure("btree")
