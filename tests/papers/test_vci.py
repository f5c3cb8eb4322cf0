"""The eight structures of virtual construct intervals, and what seed 000 says of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError, SnapshotError
from bittern.literature.constructs.covering import BitmapIndex
from bittern.literature.constructs.family import ConstructIndex
from bittern.literature.constructs.lci import LCI
from bittern.literature.constructs.lci_bc import ClippedLCI
from bittern.literature.constructs.lci_bv import VirtualLCI
from bittern.literature.constructs.lci_dt import TableLCI
from bittern.literature.constructs.sci import SCI
from bittern.literature.constructs.sci_bc import ClippedSCI
from bittern.literature.constructs.sci_bv import VirtualSCI
from bittern.literature.constructs.sci_dt import TableSCI
from stabbing_contract import StabbingContract, build, stabs

SIMPLE = (SCI, ClippedSCI, VirtualSCI, TableSCI)
LOGARITHMIC = (LCI, ClippedLCI, VirtualLCI, TableLCI)
ALL = (*SIMPLE, *LOGARITHMIC)
BITMAPS = (SCI, ClippedSCI, LCI, ClippedLCI)

any_length = st.sampled_from([{}, *({"longest": n} for n in (1, 2, 3, 5, 8, 13, 40))])
powers = st.sampled_from([{}, *({"longest": 1 << k} for k in range(7))])


class TestSCI(StabbingContract):
    name = "sci"
    parameters = any_length


class TestClippedSCI(StabbingContract):
    name = "sci-bc"
    parameters = any_length


class TestVirtualSCI(StabbingContract):
    name = "sci-bv"
    parameters = any_length


class TestTableSCI(StabbingContract):
    name = "sci-dt"
    parameters = any_length


class TestLCI(StabbingContract):
    name = "lci"
    parameters = powers


class TestClippedLCI(StabbingContract):
    name = "lci-bc"
    parameters = powers


class TestVirtualLCI(StabbingContract):
    name = "lci-bv"
    parameters = powers


class TestTableLCI(StabbingContract):
    name = "lci-dt"
    parameters = powers


def lengths_of(cls: type[ConstructIndex], longest: int) -> list[int]:
    lengths = range(1, longest + 1)
    return [n for n in lengths if cls in SIMPLE or n & (n - 1) == 0]


def lists_of(index: ConstructIndex) -> dict[int, list[int]]:
    """The nonempty lists, by coordinate."""
    bounds = zip(index.lists.begins, index.lists.ends, strict=True)
    lists = {c: index.lists.items[begin:end].tolist() for c, (begin, end) in enumerate(bounds)}
    return {c: ids for c, ids in lists.items() if ids}


def rows_of(index: BitmapIndex) -> list[list[int]]:
    """Positions of the set bits in the row of each value."""
    rows = index.words.reshape(index.domain, -1).view(np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    return [np.flatnonzero(row).tolist() for row in bits]


def all_active(cls: type[ConstructIndex], domain: int, longest: int) -> ConstructIndex:
    """Every construct of the domain in use, by an interval whose id is its coordinate."""
    lengths = lengths_of(cls, longest)
    constructs_ = [
        (start, start + length - 1, start * len(lengths) + j)
        for start in range(domain)
        for j, length in enumerate(lengths)
        if start + length <= domain
    ]
    index = build(cls, constructs_, domain, longest=longest)
    assert lists_of(index) == {c: [c] for _, _, c in constructs_}
    return index


class TestCoordinates:
    @pytest.mark.parametrize("cls", SIMPLE)
    def test_seed_000_figure_1b_simple_constructs_of_l_4(self, cls) -> None:
        index = build(cls, [], 20, longest=4)
        for j in range(16):
            found = [index.coordinates(j, j + m - 1).tolist() for m in (1, 2, 3, 4)]
            assert found == [[4 * j], [4 * j + 1], [4 * j + 2], [4 * j + 3]]

    @pytest.mark.parametrize("cls", LOGARITHMIC)
    def test_seed_000_figure_3b_logarithmic_constructs_of_l_4(self, cls) -> None:
        index = build(cls, [], 20, longest=4)
        for j in range(16):
            found = [index.coordinates(j, j + m - 1).tolist() for m in (1, 2, 4)]
            assert found == [[3 * j], [3 * j + 1], [3 * j + 2]]

    @given(a=st.integers(0, 500), longest=st.integers(1, 40), data=st.data())
    def test_seed_000_equation_1(self, a: int, longest: int, data) -> None:
        b = a + data.draw(st.integers(1, longest))
        index = build(TableSCI, [], 600, longest=longest)
        assert index.coordinates(a, b - 1).tolist() == [a * longest + (b - a) - 1]

    @given(a=st.integers(0, 500), k=st.integers(0, 6), data=st.data())
    def test_seed_000_equation_2(self, a: int, k: int, data) -> None:
        l = data.draw(st.integers(0, k))  # noqa: E741
        index = build(TableLCI, [], 600, longest=1 << k)
        assert index.coordinates(a, a + (1 << l) - 1).tolist() == [a * (k + 1) + l]

    @given(ends=st.tuples(*[st.integers(0, 300)] * 2), k=st.integers(0, 5))
    def test_seed_000_section_4_end_points_follow_from_a_coordinate(self, ends, k: int) -> None:
        low, high = min(ends), max(ends)
        for cls, per in ((TableSCI, 1 << k), (TableLCI, k + 1)):
            at = low
            for c in build(cls, [], 301, longest=1 << k).coordinates(low, high).tolist():
                start, rest = divmod(c, per)
                assert start == at
                at += rest + 1 if cls is TableSCI else 1 << rest
            assert at == high + 1


class TestDecomposition:
    def test_seed_000_figure_2_whole_l_and_a_remnant(self) -> None:
        index = build(SCI, [], 40, longest=4)
        for x in range(10):
            for y in range(x + 1, 40):
                m = (y - x - 1) // 4
                whole = [(x + j * 4) * 4 + 3 for j in range(m)]
                remnant = (x + m * 4) * 4 + (y - (x + m * 4)) - 1
                assert index.coordinates(x, y - 1).tolist() == [*whole, remnant]

    def test_seed_000_section_2_3_seven_cells_are_4_2_and_1(self) -> None:
        index = build(LCI, [], 40, longest=16)
        for a in (0, 5, 20):
            c = [a * 5 + 2, (a + 4) * 5 + 1, (a + 6) * 5]  # [a, a+4], [a+4, a+6], [a+6, a+7]
            assert index.coordinates(a, a + 6).tolist() == c

    @given(ends=st.tuples(*[st.integers(0, 999)] * 2), k=st.integers(0, 8))
    def test_logarithmic_pieces_are_whole_l_and_the_digits_of_the_rest(self, ends, k) -> None:
        low, high = min(ends), max(ends)
        width = high - low + 1
        digits = [d for d in range(k - 1, -1, -1) if (width % (1 << k)) >> d & 1]
        found = build(TableLCI, [], 1000, longest=1 << k).coordinates(low, high) % (k + 1)
        assert found.tolist() == [k] * (width >> k) + digits


class TestBitmaps:
    """Figure 3(a): p = [a0, a0+6] and q = [a0, a0+2], which are the cells 0 .. 5 and 0 .. 1."""

    P, Q = 1, 2

    @pytest.fixture
    def figure_3a(self) -> SCI:
        index = build(SCI, [], 7, longest=4)
        index.insert(0, 5, self.P)
        index.insert(0, 1, self.Q)
        return index

    def test_seed_000_figure_3a_p_is_in_lists_3_and_17_and_q_in_1(self, figure_3a: SCI) -> None:
        assert lists_of(figure_3a) == {1: [self.Q], 3: [self.P], 17: [self.P]}
        assert figure_3a.lists.n_lists == 28

    def test_seed_000_figure_3a_bit_vectors(self, figure_3a: SCI) -> None:
        # The paper also sets b(2,1), b(4,3) and b(6,17), for the integers at the right ends.
        assert rows_of(figure_3a) == [[1, 3], [1, 3], [3], [3], [17], [17], []]

    def test_seed_000_figure_3a_clipped(self) -> None:
        index = build(ClippedSCI, [(0, 5, self.P), (0, 1, self.Q)], 7, longest=4)
        firsts = [0, 1, 2, 3, 7, 11, 15]
        expected = [[1, 3], [1, 3], [3], [3], [17], [17], []]
        clipped = [[c - first for c in row] for row, first in zip(expected, firsts, strict=True)]
        assert rows_of(index) == clipped

    @pytest.mark.parametrize("cls", SIMPLE)
    def test_seed_000_figure_3a_search(self, cls) -> None:
        index = build(cls, [(0, 5, self.P), (0, 1, self.Q)], 7, longest=4)
        both, p = [self.P, self.Q], [self.P]
        assert stabs(index, list(range(7))) == [both, both, p, p, p, p, []]

    @pytest.mark.parametrize("cls", ALL)
    def test_a_value_at_a_joint_is_reported_once(self, cls) -> None:
        index = build(cls, [(0, 11, 5)], 12, longest=4)
        assert stabs(index, list(range(12))) == [[5]] * 12

    @pytest.mark.parametrize("cls", BITMAPS)
    def test_bits_are_set_by_the_first_id_and_cleared_by_the_last(self, cls) -> None:
        index = build(cls, [], 30, longest=4)
        none = index.words.copy()
        index.insert(3, 12, 1)
        one = index.words.copy()
        assert not np.array_equal(one, none)
        index.insert(3, 12, 2)
        assert np.array_equal(index.words, one)
        index.delete(3, 12, 1)
        assert np.array_equal(index.words, one)
        index.delete(3, 12, 2)
        assert np.array_equal(index.words, none)

    def test_rows_have_a_bit_for_each_construct_or_for_the_segment(self) -> None:
        for cls, bits in ((SCI, 300 * 16), (LCI, 300 * 5), (ClippedSCI, 241), (ClippedLCI, 76)):
            index = build(cls, [], 300, longest=16)
            assert len(index.words) == 300 * -(-bits // 64)
            assert index.statistics()["bitmap_bytes"] == index.words.nbytes


def table_size(cls: type[ConstructIndex], longest: int) -> int:
    return longest * (longest + 1) // 2 if cls in SIMPLE else 2 * longest - 1


class TestCoveringConstructs:
    @pytest.mark.parametrize("longest", [1, 2, 4, 8, 16])
    @pytest.mark.parametrize("cls", ALL)
    def test_seed_000_section_3_covering_segments(self, cls, longest: int) -> None:
        per = len(lengths_of(cls, longest))
        index = all_active(cls, 3 * longest, longest)
        for j, found in enumerate(stabs(index, list(range(2 * longest)))):
            if j >= longest - 1:
                c_min = (j - longest + 1) * per + per - 1
                assert j * per + per - c_min == index.statistics()["covering_segment"]
            else:
                c_min = next(i for i, n in enumerate(lengths_of(cls, longest)) if n > j)
            assert (found[0], found[-1]) == (c_min, j * per + per - 1)

    @pytest.mark.parametrize("longest", [1, 2, 4, 8, 16])
    @pytest.mark.parametrize("cls", ALL)
    def test_seed_000_section_4_1_distances_are_the_same_for_all_values(self, cls, longest) -> None:
        index = all_active(cls, 4 * longest, longest)
        found = stabs(index, list(range(longest - 1, 3 * longest)))
        tables = {tuple(c - row[0] for c in row) for row in found}
        assert len(tables) == 1
        assert len(tables.pop()) == table_size(cls, longest) == index.statistics()["covering"]

    @pytest.mark.parametrize("longest", [1, 4, 16])
    @pytest.mark.parametrize("cls", ALL)
    def test_bits_name_exactly_the_covering_constructs(self, cls, longest) -> None:
        index = all_active(cls, 3 * longest, longest)
        lengths = lengths_of(cls, longest)
        expected = [
            [c for c in lists_of(index) if 0 <= j - c // len(lengths) < lengths[c % len(lengths)]]
            for j in range(3 * longest)
        ]
        assert stabs(index, list(range(3 * longest))) == expected
        if cls in BITMAPS:
            firsts = [row[0] if index.clipped else 0 for row in expected]
            rows = zip(firsts, rows_of(index), strict=True)
            assert [[first + bit for bit in row] for first, row in rows] == expected

    @pytest.mark.parametrize("cls", [TableSCI, TableLCI])
    def test_a_table_search_takes_one_run_per_beginning_while_packed(self, cls) -> None:
        index = all_active(cls, 100, 16)
        assert index.locate_batch([50]).found.ends.tolist() == [0, 16]
        index.insert(0, 0, 0)
        assert index.locate_batch([50]).found.ends.tolist() == [0, table_size(cls, 16)]
        before = sorted(index.stab(50).tolist())
        index.arrays()
        assert index.locate_batch([50]).found.ends.tolist() == [0, 16]
        assert sorted(index.stab(50).tolist()) == before


class TestLongest:
    @pytest.mark.parametrize("cls", ALL)
    def test_default_is_a_power_of_two_up_to_the_mean_length(self, cls) -> None:
        for width, longest in ((1, 1), (3, 2), (4, 4), (9, 8)):
            assert build(cls, [(7, 6 + width, 0)] * 3, 1000).longest == longest
        mean_of_4 = [(i, i, i) for i in range(9)] + [(0, 30, 9)]
        assert build(cls, mean_of_4, 1000).longest == 4

    @pytest.mark.parametrize("cls", ALL)
    def test_default_has_a_limit(self, cls) -> None:
        limit = 16 if cls in SIMPLE else 32
        assert build(cls, [(0, 799, 0)], 1000).longest == limit
        assert build(cls, [], 1000).longest == limit

    @pytest.mark.parametrize("cls", ALL)
    def test_never_longer_than_the_domain(self, cls) -> None:
        assert build(cls, [(0, 4, 1)], 5, longest=64).longest == (5 if cls in SIMPLE else 4)
        assert build(cls, [], 0, longest=64).longest == 1

    @pytest.mark.parametrize("longest", [0, -4, 2**17, 2.0, "8"])
    @pytest.mark.parametrize("cls", ALL)
    def test_must_be_a_length(self, cls, longest) -> None:
        with pytest.raises(OptionError, match=r"longest is .*: give a .* from 1 to 65536 cells"):
            build(cls, [], 10, longest=longest)

    @pytest.mark.parametrize("cls", LOGARITHMIC)
    def test_of_lci_must_be_a_power_of_two(self, cls) -> None:
        with pytest.raises(OptionError, match="longest is 12: give a power of two"):
            build(cls, [], 100, longest=12)


class TestMemory:
    @pytest.mark.parametrize(
        ("cls", "domain", "longest", "message"),
        [
            (SCI, 100_000, 16, "sci over 100000 cells .* would take 20006400004 bytes .* sci-bc"),
            (LCI, 100_000, 32, "lci over 100000 cells .* would take 7502400004 bytes .* lci-bc"),
            (ClippedSCI, 100_000, 1024, "sci-bc over .* sci-dt"),
            (ClippedLCI, 2**22, 1024, "lci-bc over .* lci-dt"),
            (VirtualSCI, 2**20, 2048, "sci-bv over .* lci-dt"),
            (TableSCI, 2**20, 2048, "sci-dt over .* lci-dt"),
            (VirtualLCI, 2**29, 4, "lci-bv over .* cei"),
            (TableLCI, 2**29, 4, "lci-dt over .* cei"),
        ],
    )
    def test_too_much_is_refused_before_it_is_taken(self, cls, domain, longest, message) -> None:
        with pytest.raises(OptionError, match=message):
            build(cls, [(0, 9, 1)], domain, longest=longest)

    @pytest.mark.parametrize("cls", ALL)
    def test_the_entries_count(self, cls, monkeypatch) -> None:
        intervals = [(0, 99, i) for i in range(1000)]
        needed = build(cls, [], 100, longest=1)
        fixed = sum(array.nbytes for name, array in needed.arrays().items() if name != "shape")
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", fixed + 4 * 100_000)
        assert build(cls, intervals, 100, longest=1).statistics()["entries"] == 100_000
        with pytest.raises(OptionError, match="longer constructs"):
            build(cls, [*intervals, (0, 0, 1)], 100, longest=1)


class TestCheck:
    """Each invariant, broken on purpose."""

    def opened(self, cls: type[ConstructIndex], **changes: np.ndarray) -> ConstructIndex:
        return cls.from_arrays(self.arrays(cls) | changes)

    def arrays(self, cls: type[ConstructIndex]) -> dict[str, np.ndarray]:
        twice = [(i % 100, min(i % 100 + i % 10, 99), i) for i in range(200)]
        index = build(cls, twice, 100, longest=8)
        return {name: array.copy() for name, array in index.arrays().items()}

    @pytest.mark.parametrize("cls", ALL)
    def test_order(self, cls) -> None:
        index = self.opened(cls, items=self.arrays(cls)["items"][::-1].copy())
        with pytest.raises(AssertionError, match="not ascending"):
            index.check()

    @pytest.mark.parametrize("cls", ALL)
    def test_number_of_lists(self, cls) -> None:
        index = self.opened(cls)
        index.domain -= 1
        with pytest.raises(AssertionError, match="wrong number of lists"):
            index.check()

    @pytest.mark.parametrize("cls", ALL)
    def test_past_the_domain(self, cls) -> None:
        arrays = self.arrays(cls)
        arrays["offsets"][-1] += 1  # the last list: the longest construct of the last cell
        items = np.append(arrays["items"], np.int32(5))
        with pytest.raises(AssertionError, match="past the domain"):
            self.opened(cls, items=items, offsets=arrays["offsets"]).check()

    @pytest.mark.parametrize("cls", BITMAPS)
    def test_bits(self, cls) -> None:
        for wrong, message in ((0, "lacks a bit"), (2**64 - 1, "where no active construct is")):
            index = self.opened(cls)
            index.words = index.words.copy()
            at = int(np.flatnonzero(index.words)[3])
            index.words[at] = wrong
            with pytest.raises(AssertionError, match=message):
                index.check()

    @pytest.mark.parametrize("cls", BITMAPS)
    def test_number_of_words(self, cls) -> None:
        index = self.opened(cls)
        index.words = index.words[:-1].copy()
        with pytest.raises(AssertionError, match="wrong number of words"):
            index.check()

    @pytest.mark.parametrize("cls", ALL)
    def test_sizes_and_types_are_verified_on_opening(self, cls) -> None:
        arrays = self.arrays(cls)
        for name in arrays.keys() - {"shape"}:
            whole = arrays[name]
            for wrong in (whole[:-1].copy(), whole.astype(np.int64), np.append(whole, whole[-1])):
                with pytest.raises(SnapshotError, match=f"a {cls.name} index do not fit"):
                    self.opened(cls, **{name: wrong})

    @pytest.mark.parametrize("cls", ALL)
    def test_shape_is_verified_on_opening(self, cls) -> None:
        for shape in ([99, 8], [100, 4], [100, 0], [100, 128], [-1, 8], [2**40, 8], [100, 2**40]):
            with pytest.raises(SnapshotError, match="fit together"):
                self.opened(cls, shape=np.array(shape))

    @pytest.mark.parametrize("cls", LOGARITHMIC)
    def test_a_length_that_is_no_power_of_two_is_refused_on_opening(self, cls) -> None:
        # 12 has as many binary digits as 8, so that all sizes agree.
        with pytest.raises(SnapshotError, match="fit together"):
            self.opened(cls, shape=np.array([100, 12]))
