"""The experiments of seed 003: data as the paper says, strategies that agree, a page by code."""

from __future__ import annotations

import gc
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.papers import (
    report,
    run,
    seed_003,
    seed_003_claims,
    seed_003_figures,
    seed_003_forms,
    seed_003_measure,
    seed_003_report,
    seed_003_standins,
)
from benchmarks.papers.figure import Points
from benchmarks.papers.seed_003_data import (
    OPEN,
    Setting,
    Values,
    compiled,
    distinct,
    drawn,
    drawn_events,
    drawn_tests,
    zipf,
)
from benchmarks.papers.seed_003_measure import Pace, Truth, compare
from benchmarks.run import DisagreementError

import bittern
from bittern.errors import OptionError
from bittern.matching.contract import Found, Refused
from bittern.matching.pivot.index import Pivot
from bittern.matching.registry import STRATEGIES, strategy
from bittern.matching.scan import Scan
from bittern.model.classes.structure import AND, TEST
from bittern.model.rank.encoded import event_entries

THIRD = 1 / 3


@pytest.fixture(autouse=True, scope="module")
def thawed():
    """Measuring keeps what is there from the garbage collector; nobody else is to notice.

    What was collected with the tests stays kept from it.
    """
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def operators(tests):
    """The share of =, <= and >= among the tests."""
    equal, at_most = tests.lows == tests.highs, tests.lows == OPEN
    at_least = tests.highs == OPEN
    assert (equal.astype(int) + at_most + at_least == 1).all()
    return [each.mean() for each in (equal, at_most, at_least)]


def operands(tests):
    return np.maximum(tests.lows, tests.highs) // 2


def rows_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


# Table 3


def test_sizes_are_even_from_1_to_the_largest():
    counts = drawn_tests(Setting(n=40_000, d=500, largest=8)).counts
    shares = np.bincount(counts, minlength=9) / len(counts)
    assert shares[0] == 0
    assert shares[1:] == pytest.approx([1 / 8] * 8, abs=0.01)
    assert counts.mean() == pytest.approx(4.5, rel=0.01)  # and not 8 / 2


@pytest.mark.parametrize("equal", [0.2, 0.4, 1.0])
def test_operators_other_than_equality_share_the_rest(equal):
    tests = drawn_tests(Setting(n=30_000, d=500, equal=equal))
    rest = (1 - equal) / 2
    assert operators(tests) == pytest.approx([equal, rest, rest], abs=0.01)


def test_attributes_and_operands_are_even():
    tests = drawn_tests(Setting(n=60_000, d=50, sigma=20))
    assert np.bincount(tests.channels) / len(tests.channels) == pytest.approx(
        [1 / 50] * 50, rel=0.1
    )
    shares = np.bincount(operands(tests), minlength=21) / len(tests.channels)
    assert shares[0] == 0
    assert shares[1:] == pytest.approx([1 / 20] * 20, rel=0.1)


@pytest.mark.parametrize("exponent", [0.4, 1.0])
def test_attributes_and_operands_follow_zipf(exponent):
    # Single predicates, because distinct attributes make frequent ones rarer.
    tests = drawn_tests(Setting(n=200_000, d=30, largest=1, sigma=20, zipf=exponent))
    for found, n in ((tests.channels, 30), (operands(tests) - 1, 20)):
        expected = zipf(n, exponent) / zipf(n, exponent).sum()
        assert np.bincount(found, minlength=n) / len(found) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_attributes_are_distinct(exponent):
    setting = Setting(n=3_000, d=40, largest=20, m=30, zipf=exponent)
    tests = drawn_tests(setting)
    assert len(np.unique(rows_of(tests.counts) * 40 + tests.channels)) == len(tests.channels)
    events = drawn_events(setting, 200)
    assert len(np.unique(events.rows * 40 + events.channels)) == 200 * 30
    assert np.bincount(events.rows).tolist() == [30] * 200  # exactly m
    assert 1 <= events.values.min() <= events.values.max() <= 50


def test_repeated_ones_are_drawn_again():
    given = iter([[1, 1, 2, 2], [2], [4]])
    assert distinct(np.array([3, 1]), lambda _: np.array(next(given))).tolist() == [1, 2, 4, 2]


FROZEN = {
    "synthetic": "b34654cc7e52c77f",
    "queries": "8986c7bd46dfac57",
    "wishes": "2d5d28984b61688c",
    "clauses": "a4bb75c611441c54",
    "prefixes": "12d361b4c7c625bf",
    "events": "5ae95b7272ba4a21",
    "documents": "36c5abc046c5c9a8",
    "products": "2bec092b73307040",
}


def digest(*arrays):
    joined = b"".join(np.ascontiguousarray(each).astype("<i8").tobytes() for each in arrays)
    return hashlib.blake2b(joined, digest_size=8).hexdigest()


def drawings():
    setting = Setting(n=500, d=100, zipf=0.4)
    prefixes, _ = seed_003_forms.prefix_tests(setting, 0.5, 3)
    tests = {
        "synthetic": drawn_tests(setting),
        "queries": seed_003_standins.queries(500, intervals=True),
        "wishes": seed_003_standins.wishes(500, 6, sets=True),
        "clauses": seed_003_forms.clauses_tests(setting, 4, cnf=True),
        "prefixes": prefixes,
    }
    events = {
        "events": drawn_events(setting, 50),
        "documents": seed_003_standins.documents(50, 5.4, intervals=True),
        "products": seed_003_standins.products(50),
    }
    return {name: digest(*each[:5]) for name, each in tests.items()} | {
        name: digest(*each[:3]) for name, each in events.items()
    }


def test_same_seeds_same_bytes():
    assert drawings() == FROZEN


# Stand-ins, forms and prefixes


def test_queries_and_documents_are_as_long_as_the_real_ones():
    queries = seed_003_standins.queries(40_000, intervals=False)
    assert queries.counts.mean() == pytest.approx(2.5, abs=0.05)
    assert (queries.lows == 2).all()
    assert (queries.highs == 2).all()
    for mean, spread in ((5.4, 0.1), (123.0, 1.0)):
        documents = seed_003_standins.documents(1_000, mean, intervals=False)
        assert len(documents.rows) / 1_000 == pytest.approx(mean, abs=spread)
        assert (documents.values == 1).all()
    intervals = seed_003_standins.queries(5_000, intervals=True)
    assert (intervals.lows < intervals.highs).all()
    assert (intervals.highs.max() // 2, intervals.lows.min() // 2) == (20, 1)
    often = seed_003_standins.documents(300, 123.0, intervals=True).values
    assert 1 <= often.min() < often.max() <= 50


def test_products_have_the_shares_that_the_paper_tells():
    products = seed_003_standins.products(20_000)
    shares = np.bincount(products.channels, minlength=10_204) / 20_000
    assert shares[:2] == pytest.approx([0.31, 0.17], abs=0.01)
    assert len(shares) == 10_204
    assert len(products.rows) / 20_000 == pytest.approx(seed_003_standins.shares().sum(), rel=0.02)
    assert (np.diff(products.rows) >= 0).all()
    asked = seed_003_standins.wishes(100_000, 1, sets=False).channels
    logs = np.log(seed_003_standins.shares() * 296_846)
    halves = [np.count_nonzero(asked < 5_102), np.count_nonzero(asked >= 5_102)]
    assert halves[0] / halves[1] == pytest.approx(logs[:5_102].sum() / logs[5_102:].sum(), rel=0.03)


def test_sets_have_three_members():
    wishes = seed_003_standins.wishes(500, 4, sets=True)
    assert (wishes.counts == 3 * wishes.structure_of).all()
    members = wishes.lows.reshape(-1, 3)
    assert (np.diff(np.sort(members), axis=1) > 0).all()
    assert (wishes.channels.reshape(-1, 3) == wishes.channels[::3, None]).all()


@pytest.mark.parametrize("cnf", [True, False])
def test_clauses_have_one_to_four_predicates(cnf):
    setting = Setting(n=20_000, d=200)
    tests = seed_003_forms.clauses_tests(setting, 3, cnf=cnf)
    assert tests.counts.mean() == pytest.approx(2 * 2.5, rel=0.02)  # clauses, predicates of each
    conjunctions = tests.counts[tests.structure_of == 0]
    if cnf:  # clauses of one predicate each: 1/3 (1/4 + 1/16 + 1/64) of all
        assert conjunctions.max() == 3
        assert len(conjunctions) / 20_000 == pytest.approx((1 / 4 + 1 / 16 + 1 / 64) / 3, rel=0.1)
    else:  # one clause
        assert conjunctions.max() == 4
        assert len(conjunctions) / 20_000 == pytest.approx(1 / 3, rel=0.05)
    assert (AND if cnf else 2, [TEST, (2 if cnf else AND, [TEST] * 3)]) in tests.structures


def test_prefixes_are_of_words():
    setting = Setting(n=5_000)
    tests, strings = seed_003_forms.prefix_tests(setting, 0.3, 4)
    is_prefix = tests.channels >= seed_003_forms.NUMERIC
    assert is_prefix.mean() == pytest.approx(0.3, abs=0.02)
    assert (tests.lows == tests.highs)[~is_prefix].all()
    words = seed_003_forms.vocabulary()
    assert len(set(words)) == seed_003_forms.WORDS
    assert strings == sorted(set(strings))
    for low, high in zip(tests.lows[is_prefix][:200], tests.highs[is_prefix][:200], strict=True):
        prefix, end = strings[low // 2], strings[(high + 1) // 2]
        assert len(prefix) == 4
        inside = {word for word in words if prefix <= word < end}
        assert inside == {word for word in words if word.startswith(prefix)} != set()


# The same as texts


def written(tests, words=(), n_numbers=10**9):
    """The subscriptions as SQL texts."""

    def text(test):
        channel, low, high = (int(each[test]) for each in tests[:3])
        name = f"a{channel}"
        if channel >= n_numbers:
            return f"{name} LIKE '{words[low // 2].decode()}%'"
        if low == high:
            return f"{name} = {low // 2}"
        if low == OPEN:
            return f"{name} <= {high // 2}"
        if high == OPEN:
            return f"{name} >= {low // 2}"
        return f"{name} BETWEEN {low // 2} AND {high // 2}"

    def nested(node, leaves):
        if node == TEST:
            return next(leaves)
        joined = " AND " if node[0] == AND else " OR "
        return "(" + joined.join(nested(child, leaves) for child in node[1]) + ")"

    starts = np.cumsum(tests.counts) - tests.counts
    texts = []
    for start, count, structure in zip(starts, tests.counts, tests.structure_of, strict=True):
        leaves = iter([text(test) for test in range(start, start + count)])
        flat = (AND, [TEST] * int(count))
        texts.append(nested(tests.structures[structure - 1] if structure else flat, leaves))
    return texts


def mappings(events, words=(), n_numbers=10**9):
    found = [{} for _ in range(events.n_events)]
    for row, channel, value in zip(*(each.tolist() for each in events[:3]), strict=True):
        found[row][f"a{channel}"] = words[value].decode() if channel >= n_numbers else value
    return found


SMALL = Setting(n=800, d=30, m=15, sigma=12)


def cases():
    """Tests, events, the number of channels and of values, and words, of every generator."""
    synthetic = drawn_events(SMALL, 60)
    yield "synthetic", drawn_tests(SMALL), synthetic, 30, 13, {}
    for cnf in (True, False):
        tests = seed_003_forms.clauses_tests(SMALL, 3, cnf=cnf)
        yield f"cnf {cnf}", tests, synthetic, 30, 13, {}
    for intervals in (False, True):
        queries = seed_003_standins.queries(800, intervals=intervals)
        documents = seed_003_standins.documents(60, 123.0, intervals=intervals)
        yield f"intervals {intervals}", queries, documents, 50_000, 52, {}
    for sets in (False, True):
        wishes = seed_003_standins.wishes(800, 2, sets=sets)
        # More of the frequent attributes than products have, so that something matches.
        products = seed_003_standins.products(1_000)
        yield f"sets {sets}", wishes, products, 10_204, 101, {}
    tests, words = seed_003_forms.prefix_tests(replace(SMALL, n=3_000, sigma=2), 0.9, 1)
    numbers = seed_003_forms.NUMERIC
    events = seed_003_forms.prefix_events(replace(SMALL, sigma=2), words, 60)
    told = {"n_numbers": numbers, "words": words}
    yield "prefix", tests, events, numbers + seed_003_forms.STRINGS, len(words), told


def test_rank_space_is_that_of_the_texts():
    for case in cases():  # drawn here, since every process collects
        print(case[0])
        assert_rank_space(*case[1:])


def assert_rank_space(tests, events, n_channels, n_values, told):
    index = bittern.Index.build(enumerate(written(tests, **told)))
    expected = bittern.Matcher(index).match(mappings(events, **told)).to_pylist()
    subscriptions = compiled(tests, n_channels, n_values, **told)
    subscriptions.space.rank.check()
    encoded = subscriptions.space.encode(events, events.n_events)
    for cls in (Scan, Pivot):
        index, numbers = cls.build(
            subscriptions.classes, subscriptions.mass, subscriptions.space.rank
        )
        index.check(subscriptions.space.rank.n_channels, subscriptions.space.rank.n_cells)
        found = index.match(encoded)
        holding = np.zeros((events.n_events, len(subscriptions.classes)), dtype=bool)
        holding[found.rows, seed_003_measure._inverse(numbers)[found.classes]] = True
        of_subscriptions = holding[:, subscriptions.class_of]
        assert [np.flatnonzero(row).tolist() for row in of_subscriptions] == expected
    assert sum(map(len, expected)) > 5


def test_the_first_events_are_encoded_alone():
    subscriptions, events = drawn(SMALL), drawn_events(SMALL, 60)
    part = Values(*(each[: 20 * SMALL.m] for each in events[:3]), 20)
    first, alone = subscriptions.space.encode(events, 20), subscriptions.space.encode(part, 20)
    assert first.cells.tolist() == alone.cells.tolist()
    assert first.rows.tolist() == alone.rows.tolist()


def test_equalities_are_the_integers_of_all_ranges():
    tests = drawn_tests(SMALL)
    lows = np.where(tests.lows == OPEN, 1, tests.lows // 2)
    highs = np.where(tests.highs == OPEN, 12, tests.highs // 2)
    expected = sum(len(range(low, high + 1)) for low, high in zip(lows, highs, strict=True))
    assert compiled(tests, 30, 13).equalities == expected


def test_a_log_of_events_tells_frequencies():
    tests, events = drawn_tests(SMALL), drawn_events(SMALL, 500)
    rare = events.channels != 7
    log = Values(*(each[rare] for each in events[:3]), 500)
    subscriptions = compiled(tests, 30, 13, log=log)
    bases = subscriptions.space.rank.arrays.bases
    shares = subscriptions.mass[bases[1:]] - subscriptions.mass[bases[:-1]]
    assert shares[7] < 0.01 < np.delete(shares, 7).min()


# Lemmas 3, 6 and 7

EVEN = Setting(n=60_000, d=400, largest=6, m=40, equal=THIRD, sigma=20)
MEAN_SIZE = (EVEN.largest + 1) / 2  # the paper prints Gamma_max / 2


def opindex(setting, **parameters):
    subscriptions = drawn(setting)
    index, _ = strategy("opindex").build(
        subscriptions.classes, subscriptions.mass, subscriptions.space.rank, **parameters
    )
    return subscriptions, index


@pytest.mark.parametrize("sigma", [2, 20, 500])
def test_seed_003_lemma_6(sigma):
    """Of the predicates on an event's attributes, the index counts a share of kappa.

    Subscriptions of one predicate each: a counter that is touched is a predicate that matches.
    """
    setting = replace(EVEN, sigma=sigma, largest=1)
    subscriptions, index = opindex(setting)
    events = drawn_events(setting, 1_000)
    found = index.match(subscriptions.space.encode(events, events.n_events))
    assert found.candidates.sum() == len(found.rows)
    filed = {channel: len(own) for channel, own in index.pivot_lists().items()}
    n_looked_at = sum(filed[channel] for channel in events.channels.tolist())
    kappa = (1 + 2 / sigma) / 3
    assert found.candidates.sum() / n_looked_at == pytest.approx(kappa, rel=0.01)


def test_seed_003_lemma_7():
    """Entries of the lists that an event searches, and satisfies: matching counts exactly these."""
    setting, n_events = replace(EVEN, sigma=2_000), 200  # hardly equal classes
    subscriptions, index = opindex(setting)
    rows = [
        (pivot, operator, *row)
        for (pivot, operator, _), own in index.predicate_lists().items()
        for row in own
    ]
    columns = (np.array(each) for each in zip(*rows, strict=True))
    pivots, operators, channels, operands, owners = columns
    kinds = [operators == operator for operator in ("=", "<=", ">=")]
    encoded = subscriptions.space.encode(drawn_events(setting, n_events), n_events)
    found = index.match(encoded)
    matched = np.bincount(found.rows, minlength=n_events)
    sizes = np.bincount(owners)
    starts, entries = event_entries(encoded, subscriptions.space.rank.arrays.bases)
    n_hits = 0
    for event in range(n_events):
        mine = entries[starts[event] : starts[event + 1]]
        cell_of = np.full(setting.d, -1)
        cell_of[mine >> 32] = mine & 0xFFFFFFFF
        cells = cell_of[channels]
        reached = [cells == operands, cells <= operands, cells >= operands]
        satisfied = np.select(kinds, reached, default=False)
        hit = (cell_of[pivots] >= 0) & (cells >= 0) & satisfied
        hits = np.bincount(owners[hit], minlength=len(sizes))
        assert found.candidates[event] == np.count_nonzero(hits)
        assert matched[event] == np.count_nonzero(hits == sizes)
        n_hits += hits.sum()
    m, d, kappa = setting.m, setting.d, (1 + 2 / setting.sigma) / 3
    psi = m * setting.n * kappa / d * (1 + (m - 1) * (MEAN_SIZE - 1) / d)
    assert n_hits / n_events == pytest.approx(psi, rel=0.02)


@pytest.mark.parametrize("segments", [1, 8, 32])
def test_seed_003_lemma_3(segments):
    """Predicates per segment: even operators, attributes and pivots, and hardly equal classes."""
    _, index = opindex(replace(EVEN, sigma=2_000), segments=segments)
    found = index.statistics()
    assert found["lists"] == 3 * EVEN.d  # one for each pivot and operator
    eta = EVEN.n * MEAN_SIZE / (3 * segments * EVEN.d)
    assert found["predicates_per_segment"] == pytest.approx(eta, rel=0.02)
    by_operator = list(found["entries_by_operator"].values())
    assert by_operator == pytest.approx([EVEN.n * MEAN_SIZE / 3] * 3, rel=0.02)


# Measuring


@pytest.fixture
def workload():
    return drawn(SMALL), drawn_events(SMALL, 200)


def test_truth_tells_every_difference():
    class_of = np.arange(10, dtype=np.int32)

    def truth(rows, classes):
        found = Found(np.array(rows, np.int32), np.array(classes, np.int32), np.zeros(3))
        return Truth.of(found, class_of, 3)

    one = truth([0, 0, 2], [1, 2, 3])
    assert one.counts.tolist() == [2, 0, 1]
    other = truth([2, 0, 0], [3, 2, 1])
    assert (one.sums == other.sums).all()  # in whatever order
    assert (one.sums != truth([0, 0, 2], [1, 3, 2]).sums).tolist() == [True, False, True]
    assert truth([0, 0, 0, 2], [1, 2, 2, 3]).counts.tolist() == [3, 0, 1]  # a pair twice


def broken(monkeypatch, change):
    honest = Scan.match
    monkeypatch.setattr(Scan, "match", lambda index, events: change(honest(index, events)))
    monkeypatch.setattr(seed_003_measure, "load_kernels", lambda _: None)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: Found(found.rows[1:], found.classes[1:], found.candidates),
        lambda found: Found(found.rows, found.classes[::-1].copy(), found.candidates),
        lambda found: Found(
            np.append(found.rows, found.rows[-1]),
            np.append(found.classes, found.classes[-1]),
            found.candidates,
        ),
    ],
    ids=["one lost", "others", "one twice"],
)
def test_a_strategy_that_finds_something_else_ends_the_run(workload, monkeypatch, change):
    subscriptions, events = workload
    broken(monkeypatch, change)
    with pytest.raises(DisagreementError, match="scan finds other classes for"):
        compare(subscriptions, {1: events}, ["pivot", "scan"], Pace())


def test_a_point_has_all_that_is_plotted(workload):
    subscriptions, events = workload
    points = compare(subscriptions, {20: events, 30: events}, ["pivot", "scan"], Pace())
    assert [(point["structure"], point["x"]) for point in points] == [
        (name, x) for name in ("pivot", "scan") for x in (20, 30)
    ]
    for point in points:
        assert point["us_per_event"] > 0
        assert point["build_seconds"] > 0
        assert (point["subscriptions"], point["classes"]) == (800, len(subscriptions.classes))
        assert 0 < point["matches"] <= point["candidates"] <= len(subscriptions.classes)
        assert 0 < point["events"] <= 200
    assert points[0]["bytes"] != points[2]["bytes"]


def test_what_is_slow_or_finds_much_gets_fewer_events(workload, monkeypatch):
    subscriptions, events = workload
    monkeypatch.setattr(seed_003_measure, "MOST_MATCHES", 500)
    [point] = compare(subscriptions, {1: events}, ["pivot"], Pace())
    assert point["events"] * point["matches"] < 2 * 500
    monkeypatch.setattr(seed_003_measure, "PASS_SECONDS", 1e-12)
    [point] = compare(subscriptions, {1: events}, ["pivot"], Pace())
    assert point["events"] == seed_003_measure.FIRST_EVENTS


def test_missing_strategies_are_named_aloud(workload, capsys):
    subscriptions, events = workload
    assert len(compare(subscriptions, {1: events}, ["pivot", "none such"], Pace())) == 1
    assert "NOT THERE, so not measured: none such" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (Refused({4: "a range"}), "scan: 1 refused, such as a range"),
        (OptionError("too many rows"), "scan: too many rows"),
        (MemoryError("no room"), "scan: no room"),
    ],
    ids=["classes", "option", "memory"],
)
def test_a_refusal_is_a_point_too(workload, monkeypatch, refusal, told):
    def refuse(*_, **__):
        raise refusal

    subscriptions, events = workload
    monkeypatch.setattr(Scan, "build", refuse)
    monkeypatch.setattr(seed_003_measure, "load_kernels", lambda _: None)
    [point] = compare(subscriptions, {1: events}, ["scan"], Pace())
    assert point["refused"] == told
    assert "us_per_event" not in point


def test_a_k_index_that_does_not_fit_is_not_tried(workload, monkeypatch):
    subscriptions, events = workload
    size = seed_003_measure.BYTES_PER_EQUALITY["build"] * subscriptions.equalities
    monkeypatch.setattr(seed_003_measure, "MOST_BYTES", size)
    assert seed_003_measure.too_large("build", "kindex", subscriptions) == ""
    assert "out of memory" in seed_003_measure.too_large("insert", "kindex", subscriptions)
    monkeypatch.setattr(seed_003_measure, "MOST_BYTES", size - 1)
    assert seed_003_measure.too_large("build", "opindex", subscriptions) == ""
    [point] = compare(subscriptions, {1: events}, ["kindex"], Pace())
    assert point["refused"].startswith("k-index: out of memory")


def test_what_would_take_too_long_is_not_tried(workload):
    small, _ = workload
    large = drawn(replace(SMALL, n=8_000))
    pace = Pace({"build": 5, "insert": 5})
    assert pace.refusal("build", "betree", large) == ""  # nothing is known
    pace.took("build", "betree", small, 0.6)
    assert "would take about 6 s" in pace.refusal("build", "betree", large)
    assert pace.refusal("insert", "betree", large) == ""
    pace.took("build", "betree", small, 0.4)
    assert pace.refusal("build", "betree", large) == ""


def test_inserted_ones_are_checked_too(workload):
    subscriptions, events = workload
    known = [name for name in seed_003_measure.ALL if name in STRATEGIES]
    changing = [name for name in known if hasattr(strategy(name), "insert")]
    points = compare(subscriptions, {1: events}, ["pivot", *changing], Pace(), insert=True)
    inserted = [point["structure"] for point in points if "us_per_insertion" in point]
    assert inserted == changing


# The run and the page


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Every experiment at its small size, as the JSON file has it."""
    path = tmp_path_factory.mktemp("papers") / "seed_003.json"
    assert run.main(["--seed", "003", "--small", "--output", str(path)]) == 0
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    """The folder with the page and the plots of that file."""
    folder = tmp_path_factory.mktemp("docs")
    report.write(result, folder)
    return folder


def strategies_of(figure):
    return [name for name in figure.labels if name in STRATEGIES]


def test_every_experiment_runs_and_measures_every_strategy(result):
    assert list(result["experiments"]) == list(seed_003.EXPERIMENTS)
    for figure in seed_003_figures.FIGURES:
        points = figure.points(result["experiments"][figure.experiment])
        assert not points.refused
        for name in strategies_of(figure):
            for panel in figure.panels:
                skipped = (panel.key.endswith("cnf") and name not in seed_003.WITH_CNF) or (
                    panel.key == "us_per_insertion" and not hasattr(strategy(name), "insert")
                )
                n = len(points.of(name, panel.key))
                assert n == 0 if skipped else n >= 2, (figure.name, name, panel.key)


def test_strategies_of_a_point_found_the_same(result):
    for name, measured in result["experiments"].items():
        found = {}
        for point in measured["points"]:
            for key in (key for key in point if key.startswith("matches")):
                events = point[key.replace("matches", "events")]
                same = found.setdefault((point["x"], key, events), point[key])
                assert same == point[key], (name, point["x"], key)
        assert found, name


def test_the_page_has_every_figure_and_claim(folder):
    page = (folder / "seed_003.md").read_text()
    shown = set(re.findall(r"\]\(([\w.]+\.svg)\)", page))
    assert shown == {path.name for path in folder.glob("*.svg")}
    assert shown == {f"{figure.name}.svg" for figure in seed_003_figures.FIGURES}
    for figure in seed_003_figures.FIGURES:
        assert f"\n## {figure.title}\n" in page
        assert all(f"\n| {claim.paper} | " in page for claim in figure.claims)
    assert all(f"\n| {target.what} | " in page for target in seed_003_report.TARGETS)
    assert "the figures mean nothing" in page
    assert "**stand-ins are made up**" in page
    assert "\n## Beside a scan, 200 subscriptions\n" in page
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    links = set(re.findall(r"\(#([^)]*)\)", page))
    assert links <= {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    assert not (folder / "papers.md").exists()


def test_a_refusal_is_on_the_page(result):
    changed = json.loads(json.dumps(result))
    points = changed["experiments"]["003-sigma"]["points"]
    points.append({"structure": "kindex", "x": 3_200, "refused": "k-index: out of memory"})
    page = seed_003_report.page({**changed, "scale": "full"})
    assert page.count("Not measured at 3,200: k-index: out of memory.") == 2  # Fig. 8(b), 10(e)
    assert "the figures mean nothing" not in page


def test_a_small_run_has_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "OUTPUT_003", tmp_path / "seed_003.json")
    monkeypatch.setattr(seed_003, "EXPERIMENTS", {"none": lambda **_: {}})
    run.main(["--seed", "003", "--small"])
    assert [path.name for path in tmp_path.iterdir()] == ["seed_003-small.json"]


# Judging


def series(key="us_per_event", **values):
    given = [
        {"structure": name, "x": x, key: value}
        for name, each in values.items()
        for x, value in each.items()
    ]
    return Points(given, {name: name.upper() for name in values})


@pytest.mark.parametrize("figure", seed_003_figures.FIGURES, ids=lambda figure: figure.name)
def test_no_claim_holds_of_strategies_that_are_all_the_same(figure):
    """What says faster, less or more cannot be true then; only likeness can."""
    keys = {"bytes", "build_seconds", "us_per_event", "us_per_insertion"}
    keys |= {panel.key for panel in figure.panels}
    given = [
        {"structure": name, "x": x, **dict.fromkeys(keys, 1e6)}
        for name in figure.labels
        for x in (1, 5, 150)
    ]
    alike = ("steady", "about", "scales well", "scales as")
    for claim in figure.claims:
        holds = claim.judge(Points(given, figure.labels)).holds
        assert holds is any(word in claim.paper for word in alike), claim.paper


@pytest.mark.parametrize("figure", seed_003_figures.FIGURES, ids=lambda figure: figure.name)
def test_no_claim_holds_of_nothing(figure):
    for claim in figure.claims:
        verdict = claim.judge(Points([], figure.labels))
        assert not verdict.holds
        assert "not measured" in verdict.seen or "nowhere" in verdict.seen


def test_growth_is_compared_where_both_were_measured():
    two = series(a={1: 1, 2: 3, 4: 90}, b={1: 10, 2: 40})
    verdict = seed_003_claims.scales_better("us_per_event", "a", "b")(two)
    assert verdict.holds
    assert verdict.seen == "up to 2: matching time A 3 times, matching time B 4"
    assert not seed_003_claims.scales_better("us_per_event", "b", "a")(two).holds
    assert not seed_003_claims.scales_alike("us_per_event", "a", "b")(two).holds
    close = series(a={1: 1, 2: 4}, b={1: 10, 2: 50})
    assert seed_003_claims.scales_alike("us_per_event", "a", "b")(close).holds


def test_growth_of_two_keys():
    points = [
        {"structure": "a", "x": x, "us_per_event cnf": cnf, "us_per_event dnf": dnf}
        for x, cnf, dnf in ((1, 1, 1), (2, 3, 2))
    ]
    claim = seed_003_claims.scales_better("us_per_event dnf", "a", "a", "us_per_event cnf")
    assert claim(Points(points, {"a": "A"})).holds


def test_growth_beside_x():
    one = series(a={1: 1, 10: 8}, b={1: 1, 10: 11}, c={1: 1, 10: 16})
    less, linear = seed_003_claims.grows_less_than_x, seed_003_claims.linear
    assert [less("us_per_event", name)(one).holds for name in "abc"] == [True, False, False]
    assert [linear("us_per_event", name)(one).holds for name in "abc"] == [True, True, False]


def test_rises_and_falls():
    one = series(a={5: 10, 150: 20, 250: 5})
    rises, falls = seed_003_claims.rises, seed_003_claims.falls
    assert rises("us_per_event", ["a"], 2, last=150)(one).holds
    assert not rises("us_per_event", ["a"], 2)(one).holds
    assert falls("us_per_event", ["a"])(one).holds
    assert falls("us_per_event", ["a"], 0.5)(one).holds
    assert not falls("us_per_event", ["a"], 0.4)(one).holds
    assert seed_003_claims.steady("us_per_event", ["a"], 4)(one).holds
    assert not seed_003_claims.steady("us_per_event", ["a"], 3.9)(one).holds


def test_running_out_of_memory():
    labels = {"kindex": "k-index"}
    claim = seed_003_claims.runs_out_of_memory("kindex", 3_200, "sigma")

    def judged(measured, refused):
        given = [{"structure": "kindex", "x": x, "bytes": 1} for x in measured]
        given += [{"structure": "kindex", "x": x, "refused": "too large"} for x in refused]
        return claim(Points(given, labels)).holds

    assert judged([50, 800], [3_200, 12_800])
    assert not judged([50, 800, 3_200], [12_800])
    assert not judged([50], [800, 3_200, 12_800])
    assert not judged([50, 800, 3_200, 12_800], [])


def test_other_judges():
    claims = seed_003_claims
    one = series(a={4: 10, 8: 9, 20: 14}, b={4: 10, 8: 5, 20: 10})
    assert claims.dips_and_degrades("us_per_event", "a")(one).holds
    assert not claims.dips_and_degrades("us_per_event", "a")(series(a={4: 9, 8: 9, 20: 14})).holds
    assert claims.below_limit("us_per_event", "a", 15, "15 µs")(one).holds
    assert not claims.below_limit("us_per_event", "a", 14, "14 µs")(one).holds
    assert claims.within("us_per_event", "a", "b", 1, 1.8)(one).holds
    assert not claims.within("us_per_event", "a", "b", 1, 1.7)(one).holds
    assert claims.gains_more("us_per_event", ["b"], "a")(one).holds
    assert not claims.gains_more("us_per_event", ["a"], "b")(one).holds


# Targets


def measured(**times):
    """Experiments in which the strategies take these times at the default."""
    points = [
        {"structure": name, "x": 1_000_000, "us_per_event": time, "bytes": 1}
        for name, time in times.items()
    ]
    sigma = [{"structure": "opindex", "x": x, "bytes": size} for x, size in ((50, 100), (800, 125))]
    return {"003-n": {"points": points}, "003-sigma": {"points": sigma}}


def reached(experiments):
    return [found.met for _, found in seed_003_report.rows(experiments)]


def test_targets():
    assert reached(measured(pivot=1, opindex=5, kindex=50)) == [True] * 4
    assert reached(measured(pivot=1.01, opindex=5, kindex=49)) == [False, True, False, True]
    assert reached(measured(pivot=5, opindex=5, kindex=50)) == [True, True, False, False]
    grown = measured(pivot=1, opindex=5, kindex=50)
    grown["003-sigma"]["points"][1]["bytes"] = 126
    assert reached(grown) == [True, False, True, True]
    assert reached({"003-sigma": grown["003-sigma"]}) == [False]
    assert reached(measured(pivot=1)) == [False, True, False, False]


def test_where_the_pivot_engine_is_not_ahead_is_told():
    slow = measured(pivot=5, opindex=4, kindex=50)
    assert seed_003_report.comparisons(slow) == [
        (0.8, "opindex", "003-n at 1,000,000"),
        (10, "kindex", "003-n at 1,000,000"),
    ]
    assert "| 003-n at 1,000,000 | OpIndex | 0.8 |" in seed_003_report._not_ahead(slow)
    assert seed_003_report._not_ahead(measured(pivot=1, opindex=4)) == ""
