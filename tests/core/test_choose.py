"""Predictions against built indexes, and the choice that follows from them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.papers import cost
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.errors import OptionError
from bittern.literature.constructs.family import LOGARITHMIC, SIMPLE
from bittern.literature.predictions.constructs import construct_entries
from bittern.literature.predictions.trees import skip_edges
from bittern.stabbing import choose as choosing
from bittern.stabbing import measured
from bittern.stabbing.blocks import decompose
from bittern.stabbing.choose import Choice, best_of, choose, ranked
from bittern.stabbing.estimate import Estimate, Work, figure, in_bytes, misses
from bittern.stabbing.predict import cei_entries, estimates
from bittern.stabbing.registry import STRUCTURES, build_named, default_memory, structure
from bittern.stabbing.summary import Summary

#: Intervals, domain, greatest length.
WORKLOADS = {
    "ranges": (20_000, 50_000, 30),
    "points": (20_000, 50_000, 1),
    "long": (5_000, 20_000, 1000),
    "crowded": (30_000, 2_000, 10),
    "sparse": (2_000, 500_000, 100),
}
#: How far predicted bytes may be off. Everything that a layout decides is exact.
TOLERANCE = {
    "dlist": 0.0,
    "ui": 0.0,
    "cei": 0.02,
    **dict.fromkeys(("lci", "lci-bc", "lci-bv", "lci-dt"), 0.0),
    **dict.fromkeys(("sci", "sci-bc", "sci-bv", "sci-dt"), 0.0),
    "is-list": 0.03,
    **dict.fromkeys(("cluster", "interval", "hybrid", "segment-tree", "interval-tree"), 0.15),
    **dict.fromkeys(("grouped-filter", "red-black", "pb-tree"), 0.15),
}


def drawn(n: int, domain: int, widest: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    lows = rng.integers(0, domain, n, np.int32)
    return lows, np.minimum(lows + rng.integers(0, widest, n, np.int32), domain - 1)


def summarised(name: str) -> Summary:
    return Summary.of(*drawn(*WORKLOADS[name]), WORKLOADS[name][1])


class TestSummary:
    def test_the_example_of_the_module(self):
        lengths = np.array([1, 1, 2, 3, 7])
        lows = np.array([0, 3, 5, 8, 12], np.int32)
        summary = Summary.of(lows, (lows + lengths - 1).astype(np.int32), 20)
        assert (summary.n, summary.domain) == (5, 20)
        assert summary.counts[:4].tolist() == [2, 2, 1, 0]
        assert summary.cells[:4].tolist() == [2, 5, 7, 0]
        assert summary.bits[:4].tolist() == [4, 3, 1, 0]
        assert summary.multiples[:4].tolist() == [5, 1, 0, 0]
        assert summary.ids_per_value == 14 / 20
        assert summary.mean_length == 14 / 5

    @given(
        st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12),
        st.sampled_from([41, 50, 5000]),
    )
    def test_ends_are_counted_the_same_in_dense_and_sparse_domains(self, pairs, domain):
        lows = np.array([min(pair) for pair in pairs], np.int32)
        highs = np.array([max(pair) for pair in pairs], np.int32)
        summary = Summary.of(lows, highs, domain)
        ends = {*lows.tolist(), *highs.tolist()}
        cuts = {0} | ends | {end + 1 for end in ends if end + 1 < domain}
        covered = [cut for cut in cuts if ((lows <= cut) & (cut <= highs)).any()]
        assert (summary.points, summary.pieces) == (len(ends), len(cuts))
        assert summary.occupied == len(covered)

    def test_nothing_at_all(self):
        none = np.empty(0, np.int32)
        for domain in (0, 1, 100):
            summary = Summary.of(none, none, domain)
            assert (summary.n, summary.points, summary.occupied) == (0, 0, 0)
            assert summary.pieces == min(domain, 1)
            assert summary.ids_per_value == summary.mean_length == 0


class TestPredictions:
    @pytest.mark.parametrize("workload", WORKLOADS)
    @pytest.mark.parametrize("name", STRUCTURES)
    def test_bytes_are_those_of_the_built_index(self, name, workload):
        """Exact where the layout is decided by domain and lengths; see ``TOLERANCE``."""
        n, domain, _ = WORKLOADS[workload]
        lows, highs = drawn(*WORKLOADS[workload])
        tried = [
            each
            for each in estimates(name, summarised(workload))
            if each.bytes < 10**8
            and (not each.parameters or min(each.parameters.values()) in (1, 2, 16, 64, 128))
        ]
        assert tried or workload in ("sparse", "ranges", "points", "long")
        for each in tried:
            built = structure(name).build(
                lows, highs, np.arange(n), domain=domain, **each.parameters
            )
            assert each.bytes == pytest.approx(built.nbytes, rel=TOLERANCE[name], abs=100), each

    @pytest.mark.parametrize("workload", WORKLOADS)
    def test_entries_of_cei_by_level(self, workload):
        lows, highs = drawn(*WORKLOADS[workload])
        for bits in (0, 3, 6, 12):
            _, _, levels = decompose(lows, highs, bits)
            built = np.bincount(levels, minlength=bits + 1)
            predicted = cei_entries(summarised(workload), bits)
            assert predicted == pytest.approx(built, rel=0.03, abs=60)
            by_length = [float(cost.cei_mean(int(w), 1 << bits)) for w in highs - lows + 1]
            assert predicted.sum() == pytest.approx(sum(by_length))

    @pytest.mark.parametrize("workload", WORKLOADS)
    def test_entries_of_lci_and_sci_are_exact(self, workload):
        lows, highs = drawn(*WORKLOADS[workload])
        for longest in (1, 2, 16, 256):
            pieces = sum(cost.lci_pieces(int(w), longest) for w in highs - lows + 1)
            assert construct_entries(LOGARITHMIC, summarised(workload), longest).sum() == pieces
            pieces = sum(cost.sci_pieces(int(w), longest) for w in highs - lows + 1)
            predicted = construct_entries(SIMPLE, summarised(workload), longest).sum()
            assert predicted == pytest.approx(pieces)

    @pytest.mark.parametrize("name", ["cei", "lci-bc"])
    def test_lists_found_by_a_value(self, name):
        """The chance that a list is not empty, against the lists that values really meet."""
        n, domain, _ = WORKLOADS["ranges"]
        lows, highs = drawn(*WORKLOADS["ranges"])
        key = "segment" if name == "cei" else "longest"
        index = structure(name).build(lows, highs, np.arange(n), domain=domain, **{key: 16})
        held = index.lists.ends > index.lists.begins
        met, values = 0, range(100, domain, 20)
        for value in values:
            leaf = 16 + value % 16
            path = [(value // 16) * 32 + (leaf >> v) for v in range(5)]
            if name == "lci-bc":
                path = [5 * (value - d) + k for d in range(16) for k in range(5) if 1 << k > d]
            met += int(held[path].sum())
        (one,) = (e for e in estimates(name, summarised("ranges")) if e.parameters == {key: 16})
        assert one.work.lists == pytest.approx(met / len(values), rel=0.05)

    def test_the_staircase_of_a_skip_list(self):
        """Expected edges, against the mean over drawn heights."""
        rng = np.random.default_rng(5)
        for ends in (1, 2, 3, 10, 50):
            total = 0
            for _ in range(2000):
                heights = rng.geometric(0.5, ends + 1)
                at = 0
                while at < ends:
                    higher = heights[at + 1 : ends + 1]
                    reach = [
                        at + 1 + int(np.argmax(higher > level))
                        for level in range(heights[at])
                        if (higher > level).any()
                    ]
                    at = max(reach)
                    total += 1
            assert skip_edges(ends) == pytest.approx(total / 2000, rel=0.04)

    def test_every_structure_is_priced(self):
        summary = summarised("ranges")
        for name in STRUCTURES:
            for each in estimates(name, summary):
                assert each.nanoseconds > 0
                assert each.work.ids + each.work.bits >= summary.ids_per_value
        assert set(measured.NANOSECONDS) == set(Work.__dataclass_fields__)
        assert Work(values=0).nanoseconds == 0
        assert Work(values=2).nanoseconds == 2 * measured.NANOSECONDS["values"]

    def test_what_the_cache_holds_is_not_waited_for(self):
        assert misses(3, measured.CACHE_BYTES) == 0
        assert misses(3, 3 * measured.CACHE_BYTES) == pytest.approx(2)

    @pytest.mark.parametrize("name", STRUCTURES)
    @pytest.mark.parametrize("domain", [0, 1, 5])
    def test_nothing_to_index(self, name, domain):
        none = np.empty(0, np.int32)
        for each in estimates(name, Summary.of(none, none, domain)):
            built = structure(name).build(none, none, none, domain=domain, **each.parameters)
            assert each.bytes == pytest.approx(built.nbytes, abs=300)


def made(name: str, size: int, nanoseconds: float) -> Estimate:
    return Estimate(name, {}, size, Work(values=nanoseconds / measured.NANOSECONDS["values"]))


def test_numbers_as_people_read_them():
    assert [in_bytes(n) for n in (0, 17, 1500, 28_100_000, 3e9, 2.2e12)] == [
        "0 B",
        "17 B",
        "1.5 kB",
        "28.1 MB",
        "3 GB",
        "2.2 TB",
    ]
    assert [in_bytes(n) for n in (999, 999_499, 999_600, 999.6e6)] == [
        "999 B",
        "999 kB",
        "1 MB",
        "1 GB",
    ]
    assert [figure(n) for n in (0.123456, 5.0, 54.321, 99.97, 1234.5)] == [
        "0.123",
        "5",
        "54.3",
        "100",
        "1,234",
    ]
    assert [figure(n) for n in (0.00004, 0.0006, 0)] == ["0", "0.001", "0"]


class TestChoosing:
    def test_the_smallest_of_those_that_are_fast_enough(self):
        fast, small, slow = made("fast", 900, 100), made("small", 300, 124), made("slow", 100, 126)
        assert best_of([slow, small, fast], 1000) is small
        assert best_of([slow, fast], 1000) is fast
        assert best_of([slow, small, fast], 299) is slow
        assert best_of([slow, small, fast], 99) is slow  # nothing fits: the smallest

    @given(
        st.lists(st.tuples(st.integers(0, 900), st.integers(1, 120)), min_size=1, max_size=40),
        st.integers(1, 10**6),
    )
    def test_never_over_the_limit_if_anything_fits(self, pairs, memory):
        lows = np.array([low for low, _ in pairs], np.int32)
        highs = np.minimum(lows + [length for _, length in pairs], 999).astype(np.int32)
        summary = Summary.of(lows, highs, 1000)
        smallest = min(
            (each for name in choosing.RECOMMENDED for each in estimates(name, summary)),
            key=lambda each: each.bytes,
        )
        if smallest.bytes > memory:
            with pytest.raises(OptionError, match=f"the smallest, .* about {smallest.bytes:,}$"):
                choose(lows, highs, 1000, memory=memory)
            return
        choice = choose(lows, highs, 1000, memory=memory)
        assert choice.bytes <= memory
        order = ranked(summary, memory)
        assert {each.name for each in order} == set(STRUCTURES)
        assert (order[0].name, order[0].parameters) == (choice.name, choice.parameters)
        assert choice.name in choosing.RECOMMENDED
        fits = [each.bytes <= memory for each in order]
        assert fits == sorted(fits, reverse=True)
        assert choice.nanoseconds <= choosing.SLACK * min(
            each.nanoseconds
            for each in order
            if each.bytes <= memory and each.name in choosing.RECOMMENDED
        )

    def test_points_need_no_tree(self):
        choice = choose(*drawn(100_000, 50_000, 1), 50_000)
        assert choice.name == "dlist"

    def test_long_intervals_are_not_listed_cell_by_cell(self):
        choice = choose(*drawn(100_000, 1 << 18, 2000), 1 << 18)
        assert choice.name == "cei"
        assert choice.parameters["segment"] >= 64

    def test_more_memory_allows_more(self):
        lows, highs = drawn(100_000, 1 << 18, 200)
        listed = int((highs - lows + 1).sum()) * 4
        large = choose(lows, highs, 1 << 18, memory=10 * listed)
        small = choose(lows, highs, 1 << 18, memory=4 * 10**6)
        assert small.bytes <= 4 * 10**6
        assert small.nanoseconds > large.nanoseconds
        assert small.bytes < large.bytes
        assert any("would be faster and needs" in reason for reason in small.reasons)

    def test_what_is_not_recommended_is_not_chosen(self):
        """Not even where it is predicted to be ahead, and then by less than predictions err."""
        for workload in WORKLOADS:
            summary = summarised(workload)
            for memory in (default_memory(summary.n), 10**9):
                first, *others = ranked(summary, memory)
                assert first.name in choosing.RECOMMENDED
                assert len(others) == len(STRUCTURES) - 1
                own = [each for each in (first, *others) if each.name in choosing.RECOMMENDED]
                least = min(each.nanoseconds for each in own if each.fits(memory))
                assert all(1.5 * each.nanoseconds > least for each in others if each.fits(memory))

    def test_the_only_one_that_fits_is_not_praised_for_its_speed(self):
        lows, highs = drawn(1000, 1 << 20, 500_000)
        choice = choose(lows, highs, 1 << 20, memory=30_000)
        assert choice.name == "interval-tree"
        assert "only interval-tree can be built in 30 kB" in choice.reasons[1]
        assert not any("fastest" in reason for reason in choice.reasons)
        assert any("would be faster and needs" in reason for reason in choice.reasons)

    def test_what_would_refuse_to_be_built_is_not_chosen(self):
        summary = summarised("long")
        for memory in (2**33, 2**50):
            for one in ranked(summary, memory):
                assert one.fits(memory) == (one.bytes <= one.most)
        assert not made("large", 2**32 + 1, 1.0).fits(2**40)
        assert (
            best_of([made("large", 2**32 + 1, 1.0), made("small", 5, 9.0)], 2**40).name == "small"
        )
        lows, highs = np.zeros(3000, np.int32), np.full(3000, 2**19, np.int32)
        with pytest.raises(OptionError, match="bytes"):
            structure("dlist").build(lows, highs, np.arange(3000), domain=2**20)
        choice = choose(lows, highs, 2**20, memory=2**40)
        assert choice.name != "dlist"

    def test_few_intervals_over_a_huge_domain(self):
        lows, highs = drawn(1000, 2**30, 100)
        choice = choose(lows, highs, 2**30)
        assert choice.bytes < 10**6

    def test_reasons_in_words(self):
        one = choose([0], [0], 1)
        assert one.reasons[0] == (
            "1 interval over 1 cell, 1.0 cells long on average: a value finds 1.00 of them"
        )
        lows, highs = drawn(100_000, 1 << 18, 2000)
        several = choose(lows, highs, 1 << 18)
        assert f"{several.parameters['segment']:,}" in several.reasons[2]
        assert re.search(r"only .*cei.* can be built in 23\.2 MB", several.reasons[1])

    def test_no_intervals(self):
        choice = choose([], [], 1000)
        assert choice.name in STRUCTURES
        assert len(choice.reasons) >= 2

    def test_the_default_limit(self):
        assert default_memory(0) == 16 * 2**20
        assert default_memory(1000) == 16 * 2**20 + 64_000

    def test_the_same_intervals_get_the_same_structure(self):
        lows, highs = drawn(5000, 5000, 20)
        assert choose(lows, highs, 5000) == choose(lows.tolist(), highs.tolist(), 5000)
        assert isinstance(choose(lows, highs, 5000), Choice)

    @pytest.mark.parametrize("memory", [0, -1, True, 1.5, "1"])
    def test_a_limit_that_is_none(self, memory):
        with pytest.raises(OptionError, match="in bytes, must be a whole number of at least 1"):
            choose([1], [2], 5, memory=memory)

    def test_intervals_that_are_wrong(self):
        with pytest.raises(OptionError, match="reversed"):
            choose([3], [2], 5)
        with pytest.raises(OptionError, match="leaves the domain"):
            choose([3], [5], 5)
        with pytest.raises(OptionError, match="2, 1 and 2 items"):
            choose([1, 2], [3], 5)
        with pytest.raises(OptionError, match="domain"):
            choose([], [], -1)


class TestBuilding:
    @pytest.mark.parametrize("name", ["auto", "dlist", "cei"])
    def test_what_is_built_finds_what_it_should(self, name):
        lows, highs = drawn(500, 300, 40)
        index = build_named(name, lows, highs, 300)
        assert name in ("auto", index.name)
        for value in (0, 17, 299):
            expected = np.flatnonzero((lows <= value) & (value <= highs))
            assert sorted(index.stab(value).tolist()) == expected.tolist()

    def test_wrong_names_and_limits(self):
        with pytest.raises(OptionError, match="no stabbing index is called 'nothing'"):
            build_named("nothing", [1], [2], 5)
        with pytest.raises(OptionError, match='stabbing="auto"'):
            build_named("cei", [1], [2], 5, 1000)
        with pytest.raises(OptionError, match="fits into 1 byte:"):
            build_named("auto", [1], [2], 5, 1)


SUBSCRIPTIONS = {
    f"s{i}": f"price > {i} AND price <= {i + 7} AND size = {i % 9}" for i in range(300)
}
EVENTS = [{"price": i + 0.5, "size": i % 9} for i in range(0, 300, 7)]


class TestEngine:
    def matched(self, index: bittern.Index) -> list[list[str]]:
        return [sorted(row) for row in bittern.Matcher(index).match(EVENTS).to_pylist()]

    def test_auto_answers_as_any_other(self, tmp_path):
        index = bittern.Index.build(SUBSCRIPTIONS, stabbing="auto")
        expected = self.matched(bittern.Index.build(SUBSCRIPTIONS))
        assert any(expected)
        assert self.matched(index) == expected
        name = index.statistics()["pivot"]["stabbing"]["structure"]
        assert name in STRUCTURES
        assert index.subscriptions.parameters == {
            "stabbing": name,
            "asked": "auto",
            "memory": None,
        }
        index.save(tmp_path / "x")
        opened = bittern.Index.open(tmp_path / "x")
        opened.check()
        assert opened.subscriptions.parameters == index.subscriptions.parameters
        assert self.matched(opened) == expected

    def test_the_default_stays(self):
        index = bittern.Index.build(SUBSCRIPTIONS)
        assert index.subscriptions.parameters == {"stabbing": "cei"}
        assert index.statistics()["pivot"]["stabbing"]["structure"] == "cei"

    def test_the_limit_holds(self):
        limit = 20_000
        index = bittern.Index.build(SUBSCRIPTIONS, stabbing="auto", stabbing_memory=limit)
        assert index.subscriptions.parameters["memory"] == limit
        assert index.statistics()["pivot"]["stabbing"]["bytes"] <= limit
        with pytest.raises(OptionError, match="fits into 10 bytes"):
            bittern.Index.build(SUBSCRIPTIONS, stabbing="auto", stabbing_memory=10)
        with pytest.raises(OptionError, match='stabbing="auto"'):
            bittern.Index.build(SUBSCRIPTIONS, stabbing="cei", stabbing_memory=limit)
        with pytest.raises(OptionError, match="no stabbing index"):
            bittern.Index.build(SUBSCRIPTIONS, stabbing="nothing")

    def test_compaction_chooses_again_and_changes_stay_right(self):
        index = bittern.Index.build(SUBSCRIPTIONS, stabbing="auto", stabbing_memory=10**6)
        with bittern.LiveMatcher(index) as live:
            live.subscribe("more", "price > 3 AND price < 5")
            live.unsubscribe("s1")
            compacted = live.compact()
            found = live.match([{"price": 4, "size": 2}]).to_pylist()
            assert sorted(found[0]) == ["more", "s2"]
        asked = compacted.subscriptions.parameters
        assert (asked["asked"], asked["memory"]) == ("auto", 10**6)
