"""What the structures of seed 004 are built on: slots, bit vectors and elementary intervals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.arrays import occupied
from bittern.errors import OptionError
from bittern.literature.bit_vectors import slots
from bittern.literature.bit_vectors.bit_runs import find_slot
from bittern.literature.bit_vectors.elementary import bounds_of, cuts_of, highs_of, split
from bittern.literature.bit_vectors.slots import Slots
from bittern.literature.bit_vectors.vectors import BitVectors


def int32s(numbers) -> np.ndarray:
    return np.array(list(numbers), np.int32)


def sets_of(bits: BitVectors) -> list[set[int]]:
    """The slots of each row."""
    return [set(bits.union(int32s([row])).tolist()) for row in range(bits.n_rows)]


def of_sets(rows: list[set[int]]) -> BitVectors:
    pairs = [(row, slot) for row, slots in enumerate(rows) for slot in sorted(slots)]
    return BitVectors.of_pairs(int32s(p[0] for p in pairs), int32s(p[1] for p in pairs), len(rows))


class TestElementaryIntervals:
    def test_seed_004_list_of_end_points_2_5_18_30(self) -> None:
        bounds = bounds_of(int32s([2, 5]), int32s([18, 30]), 41)
        pairs = list(zip(bounds.tolist(), highs_of(bounds, 41).tolist(), strict=True))
        assert pairs == [
            *[(0, 1), (2, 2), (3, 4), (5, 5), (6, 17)],
            *[(18, 18), (19, 29), (30, 30), (31, 40)],
        ]
        assert len(bounds) == 2 * 4 + 1

    def test_gaps_without_cells_do_not_exist(self) -> None:
        assert bounds_of(int32s([0]), int32s([1]), 2).tolist() == [0, 1]
        assert bounds_of(int32s([]), int32s([]), 5).tolist() == [0]
        assert bounds_of(int32s([]), int32s([]), 0).tolist() == []
        assert highs_of(int32s([]), 0).tolist() == []

    @given(st.integers(1, 40), st.data())
    def test_no_interval_begins_or_ends_inside_one(self, domain: int, data) -> None:
        cells = st.tuples(st.integers(0, domain - 1), st.integers(0, domain - 1)).map(sorted)
        given_ = data.draw(st.lists(cells, max_size=8))
        lows, highs = int32s(low for low, _ in given_), int32s(high for _, high in given_)
        bounds = bounds_of(lows, highs, domain)
        ends = {*lows.tolist(), *highs.tolist()}
        # By definition: a bound is where a cell is an end point or the one before it is.
        expected = [c for c in range(domain) if c == 0 or c in ends or c - 1 in ends]
        assert bounds.tolist() == expected

    def test_cuts_of_one_interval(self) -> None:
        assert cuts_of(3, 7, 10).tolist() == [3, 4, 7, 8]
        assert cuts_of(3, 3, 10).tolist() == [3, 4]
        assert cuts_of(3, 9, 10).tolist() == [3, 4, 9]

    @given(st.integers(1, 30), st.data())
    def test_split_cuts_where_it_has_to_and_fills_holes(self, domain: int, data) -> None:
        parts = data.draw(st.lists(st.booleans(), min_size=domain, max_size=domain))
        bounds = [0, *(c for c in range(1, domain) if parts[c]), domain]
        pieces = [(a, b - 1) for a, b in pairwise(bounds) if data.draw(st.booleans())]
        low, high = sorted(data.draw(st.tuples(*[st.integers(0, domain - 1)] * 2)))
        done = split(int32s(p[0] for p in pieces), int32s(p[1] for p in pieces), low, high)
        new = list(zip(done.lows.tolist(), done.highs.tolist(), strict=True))
        untouched = pieces[: done.begin] + pieces[done.stop :]
        assert all(b < low or high < a for a, b in untouched)
        cells = {c for a, b in pieces[done.begin : done.stop] for c in range(a, b + 1)}
        assert [c for a, b in new for c in range(a, b + 1)] == sorted(
            cells | set(range(low, high + 1))
        )
        assert {a for a, _ in new} >= {low, high}
        assert {b for _, b in new} >= {low, high}
        assert new[done.inside] == [p for p in new if low <= p[0] <= high]
        for (a, b), source in zip(new, done.sources.tolist(), strict=True):
            around = [i for i, (c, d) in enumerate(pieces) if c <= a <= b <= d]
            assert [source] == (around or [-1])


class TestSlots:
    def some(self) -> Slots:
        return Slots.of(int32s([5, 0, 5, 5]), int32s([9, 3, 6, 6]), int32s([1, 2, 8, 3]))

    def test_intervals_are_ordered_so_that_neighbours_overlap(self) -> None:
        held = self.some()
        columns = (a.tolist() for a in (held.lows, held.highs, held.ids))
        assert list(zip(*columns, strict=True)) == [(0, 3, 2), (5, 6, 3), (5, 6, 8), (5, 9, 1)]

    def test_freed_slots_are_used_again_the_last_one_first(self) -> None:
        held = self.some()
        held.free(1)
        held.free(3)
        held.check(10)
        assert (held.n_live, held.n_free, held.next) == (2, 2, 3)
        assert held.live()[2].tolist() == [2, 8]
        assert [held.add(0, 9, 70 + i) for i in range(4)] == [3, 1, 4, 5]
        held.check(10)
        assert sorted(held.live()[2].tolist()) == [2, 8, 70, 71, 72, 73]

    def test_it_is_worn_after_changes_in_proportion_to_its_size(self) -> None:
        held = Slots.of(*[np.zeros(100, np.int32)] * 3)
        changes = 0
        while not held.worn:
            held.free(held.add(0, 0, 1))
            changes += 2
        assert 50 <= changes <= 100

    def test_saved_arrays_keep_free_slots_and_are_never_changed(self) -> None:
        held = self.some()
        held.free(2)
        arrays = held.arrays()
        before = {name: array.copy() for name, array in arrays.items()}
        for version in (held, Slots.from_arrays(arrays)):
            assert version is not None
            version.check(10)
            assert version.add(1, 1, 1) == 2
            version.free(0)
            version.check(10)
        assert all(np.array_equal(arrays[name], before[name]) for name in arrays)

    @pytest.mark.parametrize("name", ["slot_lows", "slot_highs", "slot_ids", "slot_figures"])
    def test_sizes_and_types_are_verified_on_opening(self, name: str) -> None:
        arrays = self.some().arrays()
        for wrong in (arrays[name][:-1], arrays[name].astype(np.int16)[:1], np.full(2, 2**40)):
            assert Slots.from_arrays(arrays | {name: wrong}) is None
        assert Slots.from_arrays(arrays) is not None

    def test_too_many_are_refused(self, monkeypatch) -> None:
        monkeypatch.setattr(slots, "MAX_SLOTS", 4)
        held = self.some()
        with pytest.raises(OptionError, match="at most 4 intervals"):
            held.add(0, 0, 0)
        held.check(10)
        assert held.n_live == 4

    @pytest.mark.parametrize(
        ("name", "at", "value", "message"),
        [
            ("lows", 3, 10, "wrong number of free slots"),
            ("lows", 0, -1, "before the first cell"),
            ("highs", 3, 10, "past the domain"),
            ("ids", 3, -5, "id is negative"),
            ("ids", 2, -1, "ends early"),
            ("ids", 2, 0, "holds an interval"),
            ("ids", 1, 0, "goes on"),
        ],
    )
    def test_check_finds(self, name: str, at: int, value: int, message: str) -> None:
        held = self.some()
        held.free(1)
        held.free(2)
        held.check(10)
        getattr(held, name)[at] = value
        with pytest.raises(AssertionError, match=message):
            held.check(10)


class TestBitVectors:
    def test_only_words_with_bits_are_kept(self) -> None:
        bits = of_sets([{3, 64, 70, 700}, set(), {63}])
        offsets, numbers, words = bits.pack()
        assert offsets.tolist() == [0, 3, 3, 4]
        assert numbers.tolist() == [0, 1, 10, 0]
        assert words.tolist() == [1 << 3, 1 | 1 << 6, 1 << 60, 1 << 63]
        assert (bits.n_rows, bits.n_words, bits.n_bits) == (3, 4, 5)

    @given(st.lists(st.tuples(st.integers(0, 20), st.integers(-1, 20)), max_size=150))
    def test_runs_of_rows_are_the_pairs_in_them(self, runs: list[tuple[int, int]]) -> None:
        bits = BitVectors.of_runs(int32s(r[0] for r in runs), int32s(r[1] for r in runs), 21)
        bits.check(len(runs))
        rows = [{s for s, (a, b) in enumerate(runs) if a <= row <= b} for row in range(21)]
        assert sets_of(bits) == rows
        assert bits.same(of_sets(rows))

    @given(st.data())
    def test_any_changes_agree_with_sets(self, data) -> None:
        slot = st.integers(0, 200)
        rows = data.draw(st.lists(st.sets(slot, max_size=8), min_size=1, max_size=6))
        bits = of_sets(rows)
        for _ in range(data.draw(st.integers(1, 25))):
            some = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
            number = data.draw(slot)
            match data.draw(st.sampled_from(["set", "clear", "add", "splice", "put", "pack"])):
                case "set":
                    bits.set(int32s(some), number)
                    rows = [r | {number} if i in some else r for i, r in enumerate(rows)]
                case "clear":
                    bits.clear(int32s(some), number)
                    rows = [r - {number} if i in some else r for i, r in enumerate(rows)]
                case "add":
                    assert bits.add_rows(int32s([*some, -1])) == len(rows)
                    rows = [*rows, *(rows[i] for i in some), set()]
                case "splice":
                    begin, stop = (some[0], some[-1] + 1) if some else (len(rows), len(rows))
                    sources = [i for i in range(begin, stop) for _ in range(1 + (i in some))]
                    sources = [i for i in sources if rows[i] or i in some] + [-1]
                    bits.splice(begin, stop, int32s(sources))
                    made = [rows[i] if i >= 0 else set() for i in sources]
                    rows = [*rows[:begin], *made, *rows[stop:]]
                case "put":
                    new = data.draw(
                        st.lists(st.sets(slot, max_size=8), min_size=len(some), max_size=len(some))
                    )
                    bits.put(int32s(some), of_sets(new))
                    for i, row in zip(some, new, strict=True):
                        rows[i] = row
                case "pack":
                    bits.pack()
                    assert bits.packed
            bits.check(201)
            assert sets_of(bits) == rows
            assert bits.n_bits == sum(map(len, rows))
            every = int32s(range(len(rows)))
            assert bits.is_empty(every).tolist() == [not row for row in rows]
            assert set(bits.union(every).tolist()) == set().union(*rows)

    def test_rows_more_empty_or_a_copy(self) -> None:
        bits = of_sets([{1, 99}])
        assert bits.add_rows(int32s([-1, 0])) == 1
        bits.clear(int32s([0]), 99)
        assert sets_of(bits) == [{1}, set(), {1, 99}]

    def test_every_array_is_counted(self) -> None:
        bits = of_sets([{1, 99}])
        assert occupied(bits) == 2 * 4 + 2 * 12 + 2 * 8
        bits.clear(int32s([0]), 99)
        assert occupied(bits) == 3 * 4 + len(bits.words) * 12 + 2 * 8

    def test_many_rows_that_outgrow_their_areas_over_and_over(self) -> None:
        bits = of_sets([set() for _ in range(50)])
        for slot in range(0, 64 * 40, 64):
            bits.set(int32s(range(slot // 64 % 3, 50, 3)), slot)
            bits.check(64 * 40)
        assert sets_of(bits)[7] == {slot for slot in range(0, 64 * 40, 64) if slot // 64 % 3 == 1}

    def test_given_arrays_are_never_changed(self) -> None:
        arrays = of_sets([{1, 2}, {70}]).arrays()
        for array in arrays.values():
            array.flags.writeable = False
        bits = BitVectors.from_arrays(arrays)
        assert bits is not None
        assert bits.packed
        bits.clear(int32s([0]), 1)
        assert not bits.packed
        assert sets_of(bits) == [{2}, {70}]

    @pytest.mark.parametrize("name", ["row_offsets", "row_numbers", "row_words"])
    def test_sizes_and_types_are_verified_on_opening(self, name: str) -> None:
        arrays = of_sets([{1, 2}, {70}]).arrays()
        for wrong in (arrays[name][:-1], arrays[name].astype(np.int64), arrays[name][:0]):
            assert BitVectors.from_arrays(arrays | {name: wrong}) is None
        assert BitVectors.from_arrays(arrays | {"row_offsets": int32s([1, 1, 2])}) is None
        assert BitVectors.from_arrays(arrays) is not None

    def test_a_slot_is_found_by_its_interval(self) -> None:
        held = Slots.of(int32s([0, 0, 2, 2]), int32s([5, 5, 4, 9]), int32s([7, 8, 7, 7]))
        bits = of_sets([{0, 1}, {1, 2, 3}])
        assert find_slot(bits, int32s([0, 1]), held, (0, 5, 8)) == 1
        assert find_slot(bits, int32s([0, 1]), held, (2, 9, 7)) == 3
        assert find_slot(bits, int32s([0]), held, (2, 9, 7)) == -1
        assert find_slot(bits, int32s([1]), held, (2, 9, 8)) == -1

    def test_what_takes_too_much_memory_is_refused_before(self, monkeypatch) -> None:
        firsts, lasts = int32s([0] * 640), int32s([99] * 640)
        needed = 12 * 10 * 100 + 4 * 100
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", needed)
        bits = BitVectors.of_runs(firsts, lasts, 100)
        with pytest.raises(OptionError, match=rf"take \d+ bytes .at most {needed}."):
            bits.set(int32s(range(100)), 640)
        assert bits.n_words == 1000
        bits.check(640)
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", needed - 1)
        with pytest.raises(OptionError, match=rf"100 bit vectors .* take {needed} bytes.*cei"):
            BitVectors.of_runs(firsts, lasts, 100)
        with pytest.raises(OptionError, match="take 13600 bytes"):
            BitVectors.of_pairs(np.arange(1100, dtype=np.int32) % 100, int32s(range(1100)), 100)


class TestCheckOfBitVectors:
    """Each invariant, broken on purpose."""

    def broken(self, bits: BitVectors, message: str, n_slots: int = 200) -> None:
        with pytest.raises(AssertionError, match=message):
            bits.check(n_slots)

    @pytest.fixture
    def loose(self) -> BitVectors:
        bits = of_sets([{1, 100}, {2}, {3, 70, 199}])
        bits.set(int32s([0, 1]), 150)
        bits.check(200)
        return bits

    def test_backwards(self, loose: BitVectors) -> None:
        loose.ends[1] = loose.begins[1] - 1
        self.broken(loose, "ends before it begins")

    def test_sum(self, loose: BitVectors) -> None:
        loose.ends[0] -= 1
        self.broken(loose, "do not add up")

    def test_used(self, loose: BitVectors) -> None:
        loose._figures[0] = len(loose.words) + 1
        self.broken(loose, "more words are used")

    def test_area(self, loose: BitVectors) -> None:
        loose._limits[0] = loose.ends[0] - 1
        self.broken(loose, "leaves its area")

    def test_past_the_end(self, loose: BitVectors) -> None:
        loose._figures[0] -= 1
        self.broken(loose, "past the end")

    def test_shared(self, loose: BitVectors) -> None:
        for array in (loose.begins, loose.ends, loose._limits):
            array[2] = array[0]
        self.broken(loose, "share an area")

    def test_order(self, loose: BitVectors) -> None:
        loose.numbers[loose.begins[2]] = 3
        self.broken(loose, "row 2 are out of order")

    def test_no_bits(self, loose: BitVectors) -> None:
        loose.words[loose.begins[1]] = 0
        self.broken(loose, "row 1 are .* without bits")

    def test_slots_that_do_not_exist(self, loose: BitVectors) -> None:
        self.broken(loose, "row 2 are .* past the slots", n_slots=199)
        self.broken(loose, "row 0 are .* past the slots", n_slots=64)
