"""Profiles over several attributes: every structure against brute force, and what is counted."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers import profiles as module
from benchmarks.papers.profiles import Profiles, lazy_evaluations, naive_evaluations
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError
from effort import examples

OF_SEED_004 = ["cluster", "interval", "hybrid", "segment-tree", "interval-tree"]


def brute_force(lows, highs, event) -> list[int]:
    """Numbers of the profiles whose predicates all hold."""
    matching = []
    for number in range(lows.shape[1]):
        one = lows[:, number], highs[:, number], event
        holds = [a == -1 or (v != -1 and a <= v <= b) for a, b, v in zip(*one, strict=True)]
        if all(holds):
            matching.append(number)
    return matching


def matches(index: Profiles, values) -> list[list[int]]:
    offsets, numbers = index.match(values)
    assert (offsets.dtype, numbers.dtype) == (np.int64, np.int32)
    return [part.tolist() for part in np.split(numbers, offsets[1:-1])][: values.shape[1]]


@st.composite
def catalogs(draw):
    """Domains, profiles with some predicates left out, and events with some values missing."""
    k = draw(st.integers(1, 3))
    domains = draw(st.lists(st.integers(1, 30), min_size=k, max_size=k))
    n, m = draw(st.integers(0, 90)), draw(st.integers(0, 8))
    seed = draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    lows, highs = np.empty((2, k, n), np.int32)
    values = np.empty((k, m), np.int32)
    for a, domain in enumerate(domains):
        ends = np.sort(rng.integers(0, domain, (2, n)), axis=0)
        none = rng.random(n) < 0.3
        lows[a], highs[a] = np.where(none, -1, ends)
        values[a] = rng.integers(-1, domain, m)
    return domains, lows, highs, values


class TestMatching:
    @pytest.mark.parametrize("structure", [*OF_SEED_004, "cei"])
    @given(catalog=catalogs())
    def test_agrees_with_brute_force(self, structure, catalog) -> None:
        domains, lows, highs, values = catalog
        index = Profiles.build(lows, highs, domains=domains, structure=structure)
        assert matches(index, values) == [brute_force(lows, highs, event) for event in values.T]

    def test_the_example_of_the_module(self) -> None:
        index = Profiles.build([[2, 5, 6], [3, -1, 0]], [[8, 5, 9], [4, -1, 9]], domains=[10, 10])
        values = np.array([[5, 5, 6, -1], [4, -1, 4, 4]])
        assert matches(index, values) == [[0, 1], [1], [0, 2], []]

    def test_a_profile_without_predicates_matches_everything(self) -> None:
        index = Profiles.build([[-1, 3]], [[-1, 4]], domains=[10])
        assert matches(index, np.array([[-1, 3, 9, 77]])) == [[0], [0, 1], [0], [0]]

    def test_a_large_batch_is_matched_in_pieces(self, monkeypatch) -> None:
        rng = np.random.default_rng(4)
        lows = rng.integers(0, 80, (2, 300))
        highs = lows + rng.integers(0, 20, (2, 300))
        values = rng.integers(0, 100, (2, 500))
        index = Profiles.build(lows, highs, domains=[100, 100], structure="cluster")
        whole, counts = index.match(values), index.evaluations(values)
        monkeypatch.setattr(module, "_PIECE_BITS", 300 * 64)
        for part, expected in zip(index.match(values), whole, strict=True):
            assert np.array_equal(part, expected)
        assert np.array_equal(index.evaluations(values), counts)
        expected = [brute_force(lows, highs, event) for event in values.T]
        assert [part.tolist() for part in np.split(whole[1], whole[0][1:-1])] == expected

    def test_parameters_reach_every_index(self) -> None:
        lows = np.arange(40).reshape(2, 20)
        index = Profiles.build(lows, lows, domains=[40, 40], structure="cluster", minimum=7)
        assert [one.minimum for one in index.indexes] == [7, 7]
        assert index.n_profiles == 20
        assert index.nbytes > sum(one.nbytes for one in index.indexes)


class TestEvaluations:
    @pytest.mark.parametrize("structure", ["interval", "hybrid", "segment-tree", "interval-tree"])
    @examples(0.25)
    @given(catalog=catalogs())
    def test_are_the_sum_over_the_attributes_that_the_event_has(self, structure, catalog) -> None:
        domains, lows, highs, values = catalog
        index = Profiles.build(lows, highs, domains=domains, structure=structure)
        expected = np.zeros(values.shape[1], np.int64)
        for one, row in zip(index.indexes, values, strict=True):
            expected += np.where(row < 0, 0, one.evaluations(row))
        assert index.evaluations(values).tolist() == expected.tolist()

    @given(catalog=catalogs())
    def test_cluster_evaluates_what_is_a_candidate_for_every_attribute(self, catalog) -> None:
        domains, lows, highs, values = catalog
        index = Profiles.build(lows, highs, domains=domains, structure="cluster")
        counted = index.evaluations(values).tolist()
        for event, count in zip(values.T, counted, strict=True):
            keys, survivors = 0, set(range(lows.shape[1]))
            for a, (one, value) in enumerate(zip(index.indexes, event, strict=True)):
                candidates = one.candidates_batch([value]).ids(0, 1).tolist()
                keys += one.evaluations([value])[0] - len(candidates)
                survivors &= set(candidates) | set(np.flatnonzero(lows[a] == -1).tolist())
            evaluated = np.count_nonzero(lows[:, sorted(survivors)] != -1)
            assert count == keys + evaluated

    def test_cluster_combines_before_it_evaluates(self) -> None:
        # On x all four overlap; on y a key tells two of them from the others.
        lows, highs = [[0, 1, 2, 3], [0, 0, 5, 5]], [[9, 9, 9, 9], [1, 2, 6, 7]]
        index = Profiles.build(lows, highs, domains=[10, 10], structure="cluster")
        assert index.indexes[0].evaluations([5]).tolist() == [4]
        assert index.indexes[1].evaluations([6]).tolist() == [1 + 2]
        assert index.evaluations([[5], [6]]).tolist() == [1 + 2 * 2]

    def test_without_an_index_all_predicates_or_those_up_to_the_first_that_is_false(self) -> None:
        lows, highs = [[2, 5, 6], [3, -1, 0]], [[8, 5, 9], [4, -1, 9]]
        values = [[5, 1], [4, 4]]
        assert naive_evaluations(lows, values).tolist() == [5, 5]
        assert lazy_evaluations(lows, highs, values).tolist() == [2 + 1 + 1, 3]

    @examples(0.5)
    @given(catalog=catalogs())
    def test_lazy_is_between_one_per_profile_and_naive(self, catalog) -> None:
        _, lows, highs, values = catalog
        lazy = lazy_evaluations(lows, highs, values)
        assert (lazy <= naive_evaluations(lows, values)).all()
        assert (lazy >= np.count_nonzero((lows != -1).any(axis=0))).all()
        for event, count in zip(values.T, lazy.tolist(), strict=True):
            expected = 0
            for low, high in zip(lows.T, highs.T, strict=True):
                for a, b, value in zip(low, high, event, strict=True):
                    if a != -1:
                        expected += 1
                        if not a <= value <= b:
                            break
            assert count == expected

    def test_seed_004_no_index_evaluates_k_n_predicates(self) -> None:
        # "2 * 100 = 200 to 2 * 1000 = 2000 predicate evaluations"
        for n in (100, 1000):
            assert set(naive_evaluations(np.zeros((2, n), int), np.zeros((2, 50), int))) == {2 * n}

    def test_seed_004_section_4_1_6_every_index_beats_no_index_by_far(self) -> None:
        rng = np.random.default_rng(7)
        lows = rng.integers(0, 9990, (2, 1000))
        values = rng.integers(0, 10_000, (2, 50))
        for structure in OF_SEED_004:
            index = Profiles.build(lows, lows + 9, domains=[10_000] * 2, structure=structure)
            assert index.evaluations(values).mean() < 50

    def test_seed_004_figure_8_overlap_hurts_cluster_and_interval_tree_alone(self) -> None:
        rng = np.random.default_rng(8)
        values = rng.integers(0, 1000, (2, 50))
        means: dict[str, list[float]] = {}
        for length in (10, 900):
            lows = rng.integers(0, 1000 - length, (2, 100))
            for structure in OF_SEED_004:
                index = Profiles.build(
                    lows, lows + length - 1, domains=[1000] * 2, structure=structure
                )
                means.setdefault(structure, []).append(float(index.evaluations(values).mean()))
        for structure in ("interval", "hybrid", "segment-tree"):
            low, high = means[structure]
            assert high < 1.35 * low
        for structure in ("cluster", "interval-tree"):
            low, high = means[structure]
            assert high > 3 * low
        assert min(means, key=lambda structure: means[structure][1]) in ("interval", "hybrid")

    def test_a_structure_that_counts_none_is_refused(self) -> None:
        index = Profiles.build([[1]], [[2]], domains=[5], structure="cei")
        with pytest.raises(OptionError, match="'cei' does not count"):
            index.evaluations([[1]])


class TestBadInput:
    def test_shapes(self) -> None:
        with pytest.raises(OptionError, match="one row per attribute"):
            Profiles.build([1], [2], domains=[5])
        with pytest.raises(OptionError, match="one row per attribute"):
            Profiles.build(np.empty((0, 3), int), np.empty((0, 3), int), domains=[])
        with pytest.raises(OptionError, match=r"\(1, 1\), \(1, 2\) and 1"):
            Profiles.build([[1]], [[2, 3]], domains=[5])
        with pytest.raises(OptionError, match="2 attributes"):
            Profiles.build([[1]], [[2]], domains=[5, 5])
        index = Profiles.build([[1]], [[2]], domains=[5])
        for values in ([1], [[1], [2]]):
            with pytest.raises(OptionError, match="one row for each"):
                index.match(values)
            with pytest.raises(OptionError, match="one row for each"):
                index.evaluations(values)

    @pytest.mark.parametrize(
        ("low", "high", "message"),
        [
            (3, 2, "reversed"),
            (-1, 2, "leaves the domain"),
            (2, -1, "reversed"),
            (2, 9, "leaves the domain"),
            (1.5, 2, "whole numbers"),
        ],
    )
    def test_ends(self, low, high, message) -> None:
        with pytest.raises(OptionError, match=message):
            Profiles.build([[0], [low]], [[1], [high]], domains=[5, 5])

    def test_the_attribute_and_the_profile_are_named(self) -> None:
        with pytest.raises(OptionError, match=r"attribute 1: interval \[4, 2\] with id 1"):
            Profiles.build([[0, 0], [0, 4]], [[1, 1], [1, 2]], domains=[5, 5])

    def test_an_unknown_structure(self) -> None:
        with pytest.raises(OptionError, match="no stabbing index is called"):
            Profiles.build([[0]], [[1]], domains=[5], structure="btree")
