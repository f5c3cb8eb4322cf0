"""Dlist and UI: the contract, and what seeds 000 and 001 say of one list per value."""

from __future__ import annotations

import numpy as np
import pytest

from bittern.errors import OptionError, SnapshotError
from bittern.literature.constructs.ui import UI
from bittern.stabbing.dlist import Dlist
from bittern.stabbing.registry import structure
from stabbing_contract import StabbingContract, build


class TestDlistContract(StabbingContract):
    name = "dlist"


class TestUIContract(StabbingContract):
    name = "ui"


def direct_lists(index: Dlist) -> list[list[int]]:
    bounds = zip(index.lists.begins, index.lists.ends, strict=True)
    return [index.lists.items[begin:end].tolist() for begin, end in bounds]


class TestExamplesOfThePapers:
    def test_seed_000_section_5_1_an_id_stands_in_the_list_of_each_value_it_covers(self) -> None:
        index = build(Dlist, [(1, 3, 7)], 6)
        index.insert(3, 5, 9)
        assert direct_lists(index) == [[], [7], [7], [7, 9], [9], [9]]
        index.delete(1, 3, 7)
        assert direct_lists(index) == [[], [], [], [9], [9], [9]]

    def test_seed_000_section_5_1_entries_are_the_lengths_of_all_intervals(self) -> None:
        rng = np.random.default_rng(1)
        lows = rng.integers(0, 1000, 300)
        highs = np.minimum(lows + rng.integers(0, 50, 300), 999)
        entries = Dlist.build(lows, highs, range(300), domain=1000).statistics()["entries"]
        assert entries == (highs - lows + 1).sum()

    def test_seed_001_table_1_one_construct_per_cell_and_one_covers_a_value(self) -> None:
        index = build(UI, [(0, 2, 1), (1, 1, 2)], 4)
        assert index.statistics()["lists"] == 4
        assert direct_lists(index) == [[1], [1, 2], [1], []]
        assert structure("ui") is UI

    def test_seed_000_section_5_3_constructs_of_one_cell_are_direct_lists(self) -> None:
        intervals = [(i % 40, i % 40 + i % 7, i) for i in range(100)]
        direct = build(Dlist, intervals, 50).arrays()
        for name in ("sci", "sci-bc", "lci", "lci-bc", "lci-bv", "sci-bv", "sci-dt", "lci-dt"):
            arrays = build(structure(name), intervals, 50, longest=1).arrays()
            assert np.array_equal(arrays["offsets"], direct["offsets"])
            assert np.array_equal(arrays["items"], direct["items"])


class TestMemory:
    def test_entries_beyond_the_limit_are_refused_before_they_are_written(self) -> None:
        # 5 * 2**28 entries would take 5 GiB.
        with pytest.raises(OptionError, match=r"entries would take 6442450948 bytes.*lci-dt"):
            build(Dlist, [(0, 2**28 - 1, i) for i in range(5)], 2**28)

    def test_the_limit_itself_is_allowed(self, monkeypatch) -> None:
        monkeypatch.setattr("bittern.stabbing.contract.MAX_BYTES", 4 * (10 + 1 + 6))
        assert build(Dlist, [(0, 5, 1)], 10).stab(5).tolist() == [1]
        with pytest.raises(OptionError, match="at most 68"):
            build(Dlist, [(0, 6, 1)], 10)


class TestOpeningAndCheck:
    @pytest.fixture
    def arrays(self) -> dict[str, np.ndarray]:
        index = build(Dlist, [(i, i + 3, i) for i in range(20)], 30)
        return {name: array.copy() for name, array in index.arrays().items()}

    def test_unordered_lists_are_found(self, arrays) -> None:
        arrays["items"][:] = arrays["items"][::-1].copy()
        with pytest.raises(AssertionError, match="not ascending"):
            Dlist.from_arrays(arrays).check()

    @pytest.mark.parametrize("name", ["items", "offsets"])
    def test_sizes_and_types_are_verified(self, arrays, name) -> None:
        whole = arrays[name]
        for wrong in (whole[1:].copy(), whole.astype(np.int64), whole[:0].copy()):
            with pytest.raises(SnapshotError, match="arrays of a dlist index"):
                Dlist.from_arrays(arrays | {name: wrong})
