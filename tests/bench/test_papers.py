"""The papers' experiments run, agree, and are written up by code alone."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from benchmarks.draw import Draw
from benchmarks.papers import (
    figure,
    measure,
    others,
    peers,
    report,
    run,
    seed_000,
    seed_001,
    seed_004,
    seed_004_figures,
    targets,
)
from benchmarks.papers.figure import Points, Verdict
from benchmarks.papers.measure import Intervals, Truth, closed_integers, half_open
from benchmarks.run import DisagreementError

from bittern.errors import OptionError
from bittern.stabbing.cei import CEI
from bittern.stabbing.registry import STRUCTURES


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Every experiment at its small size, as the JSON file has it."""
    path = tmp_path_factory.mktemp("papers") / "papers.json"
    assert run.main(["--small", "--output", str(path)]) == 0
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def written(result, tmp_path_factory):
    """The folder with the page and the plots of that file."""
    folder = tmp_path_factory.mktemp("docs")
    report.write(result, folder)
    return folder


def brute_force(intervals, cell):
    return np.flatnonzero((intervals.lows <= cell) & (cell <= intervals.highs))


# What is drawn and what is true


def test_intervals_are_those_of_the_papers():
    closed = closed_integers(Draw(1), 5_000, 100, 20)
    lengths = closed.highs - closed.lows
    assert (closed.lows.min(), closed.lows.max()) == (0, 98)  # integers 1 .. R-1
    assert (lengths.min(), lengths.max(), closed.highs.max()) == (1, 20, 99)  # both ends belong
    opened = half_open(Draw(1), 5_000, 100, 20)
    cells = opened.highs - opened.lows + 1
    assert (opened.lows.min(), opened.lows.max()) == (1, 99)
    assert (cells.min(), cells.max(), opened.highs.max()) == (1, 20, 99)
    assert len(opened.first(7)) == 7


def test_truth_is_brute_force():
    intervals = half_open(Draw(2), 300, 50, 9)
    truth = Truth(intervals)
    values = np.linspace(0, 49.9, 77)
    found = [brute_force(intervals, int(value)) for value in values]
    assert truth.counts(values).tolist() == [len(ids) for ids in found]
    assert truth.id_sum(values) == sum(int(ids.sum()) for ids in found)


def test_batches_are_cut_by_values_and_by_ids():
    counts = np.array([3, 3, 3, 50, 1, 1, 1, 1, 1])
    batches = measure.cut(counts, values=4, ids=7)
    assert [(b.start, b.stop) for b in batches] == [(0, 2), (2, 3), (3, 4), (4, 8), (8, 9)]
    assert measure.cut(np.zeros(0, np.int64)) == []


def test_overlap_is_the_share_of_pairs_that_meet():
    lows = Draw(3).below(50, 2 * 40).reshape(2, 40)
    highs = lows + Draw(4).below(10, 2 * 40).reshape(2, 40)
    pairs = [(i, j) for i in range(40) for j in range(i)]
    meet = [
        max(low[i], low[j]) <= min(high[i], high[j])
        for low, high in zip(lows, highs, strict=True)
        for i, j in pairs
    ]
    assert seed_004.overlap(lows, highs) == pytest.approx(np.mean(meet))
    size = seed_004._size_for(0.6, lows)
    assert seed_004.overlap(lows, lows + size) >= 0.6 > seed_004.overlap(lows, lows + size - 1)


def test_starts_lie_around_the_origin():
    starts = seed_004.starts(Draw(5), 20_000, reach=100)
    assert (starts.min(), starts.max()) == (1, 199)
    left, right = np.bincount(np.sign(starts - 100) + 1)[[0, 2]]
    assert left == pytest.approx(right, rel=0.1)
    assert (np.abs(starts - 100) < 10).mean() > 2 * 0.1  # Zipfian: dense near the origin


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (lambda n: 7 + n / 10**4, "constant"),
        (lambda n: 3 + 2 * np.log2(n), "logarithmic"),
        (lambda n: 5 + 3 * n**0.5, "as a root"),
        (lambda n: 90 + 0.7 * n, "linear"),
    ],
)
def test_growth_is_told_apart(value, kind):
    assert seed_004_figures.growth({n: value(n) for n in (100, 200, 400, 800, 1600)}) == kind


def test_the_best_document_is_the_least_of_all():
    lows = Draw(8).below(40, 2 * 30).reshape(2, 30)
    profiles = seed_004.built("interval", lows, lows + 5, 46)
    every = np.stack([each.ravel() for each in np.mgrid[:46, :46]])
    assert seed_004.fewest(profiles, 46) == profiles.evaluations(every).min()


def test_overlap_is_compared_with_the_papers():
    assert seed_004.beside_the_papers([1.5, 20]) == "1.5 to 20 percent (within the paper's 1 to 20)"
    assert "(not within" in seed_004.beside_the_papers([0.9, 5])
    assert "(not within" in seed_004.beside_the_papers([5, 20.1])


def test_an_interval_stands_once_in_each_bucket_that_it_meets():
    intervals = half_open(Draw(9), 300, 1_000, 200)
    rows = others._bucketed(intervals)
    found = set(zip(rows["id"].to_pylist(), rows["bucket"].to_pylist(), strict=True))
    assert len(found) == len(rows)
    assert found == {
        (int(i), cell >> others.BUCKET_BITS)
        for i in intervals.ids
        for cell in range(intervals.lows[i], intervals.highs[i] + 1)
    }


# The run


def test_every_experiment_runs_and_measures_every_structure(result):
    assert list(result["experiments"]) == list(run.EXPERIMENTS)
    for each in report.FIGURES:
        points = each.points(result["experiments"][each.experiment])
        assert not points.refused
        for name in each.labels:
            for panel in each.panels:
                assert len(points.of(name, panel.key)) >= 2, (each.name, name, panel.key)


def test_structures_of_a_point_found_the_same(result):
    for measured in result["experiments"].values():
        found: dict[float, set[float]] = {}
        for point in measured.get("points", ()):
            if "ids_per_value" in point:
                found.setdefault(point["x"], set()).add(point["ids_per_value"])
        assert all(len(each) == 1 for each in found.values())


def test_everybody_is_in_the_comparison(result):
    compared = result["experiments"]["peers"]
    assert list(compared["ours"]) == [
        *STRUCTURES,
        *(f"cei, segment={segment}" for segment in (8, 16, 32, 64)),
        "Intervals, cei",
        "Intervals, dlist",
    ]
    assert list(compared["others"]) == ["copy", *(peer.name for peer in peers.OTHERS)]
    for found in (*compared["ours"].values(), *compared["others"].values()):
        assert found["events"] > 0
        assert found["ns_per_event"] == min(each["ns_per_event"] for each in found["tried"])


def test_a_structure_that_finds_too_little_ends_the_run(monkeypatch):
    monkeypatch.setattr(CEI, "stab_batch", lambda _, values: (np.zeros(len(values) + 1), values))
    intervals = Intervals(np.array([0], np.int32), np.array([5], np.int32), 8)
    with pytest.raises(DisagreementError, match="cei counts 0"):
        measure.measure("cei", intervals, np.array([1], np.int32), 1)


def test_a_structure_that_finds_other_ids_ends_the_run(monkeypatch):
    honest = CEI.stab_batch

    def shifted(index, values):
        offsets, ids = honest(index, values)
        return offsets, ids + 1

    monkeypatch.setattr(CEI, "stab_batch", shifted)
    intervals = Intervals(np.array([0], np.int32), np.array([5], np.int32), 8)
    with pytest.raises(DisagreementError, match="their sum is 1, not 0"):
        measure.measure("cei", intervals, np.array([1], np.int32), 1)


@pytest.mark.parametrize("peer", peers.OTHERS, ids=lambda peer: peer.name)
def test_a_peer_finds_what_brute_force_does(peer):
    intervals = half_open(Draw(6), 200, 64, 20)
    values = 1 + Draw(7).unit(50) * 63
    expected = np.concatenate([brute_force(intervals, int(value)) for value in values])
    found = peer(intervals).ids(values)
    assert sorted(found.tolist()) == sorted(expected.tolist())


def test_a_peer_that_loses_an_id_ends_the_run(monkeypatch):
    class Loser(others.NumPy):
        def ids(self, values):
            return super().ids(values)[1:]

    monkeypatch.setattr(peers, "OTHERS", (Loser,))
    monkeypatch.setattr(peers, "STRUCTURES", {"cei": ""})
    with pytest.raises(DisagreementError, match="numpy, searchsorted finds"):
        peers.compare(small=True)


def test_an_index_that_loses_a_profile_ends_the_run():
    lows = np.zeros((2, 3), np.int64)
    highs = np.full((2, 3), 9)
    profiles = seed_004.built("interval", lows, highs - [0, 0, 5], 10)
    with pytest.raises(DisagreementError, match="interval finds other profiles"):
        seed_004.evaluations("interval", profiles, lows, highs, 10, 1)


def test_what_is_copied_is_the_output():
    intervals = half_open(Draw(6), 300, 64, 20)
    values = 1 + Draw(7).unit(2 * measure.BATCH + 50) * 63
    truth, copy = Truth(intervals), peers.Copy(intervals, values)
    for _ in range(2):
        for at in range(0, len(values), measure.BATCH):
            batch = values[at : at + measure.BATCH]
            found = copy.ids(batch)
            assert found.base is None
            assert len(found) == truth.counts(batch).sum()
            measure.same_ids("copy", found, truth.id_sum(batch))
        copy.rewind()


def test_what_does_not_fit_is_told(result, monkeypatch):
    def refuse(*_, segment=None):
        raise OptionError("that would take 9 TB")

    monkeypatch.setattr(CEI, "_build", refuse)
    measure.load_kernels.cache_clear()
    monkeypatch.setattr(measure, "load_kernels", lambda _: None)
    monkeypatch.setattr(peers, "load_kernels", lambda _: None)
    monkeypatch.setattr(peers, "OTHERS", ())
    monkeypatch.setattr(peers, "Copy", lambda intervals, _: others.NumPy(intervals))
    changed = {**json.loads(json.dumps(result)), "scale": "full"}
    changed["experiments"]["001-fig17"] |= seed_001.fig_17(small=True)
    monkeypatch.setattr(peers, "STRUCTURES", {"cei": "", "ui": ""})
    monkeypatch.setattr(peers, "UNDER_VALUES", ())
    assert peers.compare(small=True)["ours"]["cei"] == {"refused": "that would take 9 TB"}
    page = report.page(changed)
    assert "Not measured at 10: that would take 9 TB." in page
    assert "the papers' own, except where a structure refuses" in page


def test_a_part_of_the_run_keeps_the_rest(tmp_path):
    path = tmp_path / "papers.json"
    run.main(["--small", "--only", "fig14", "--output", str(path)])
    run.main(["--small", "--only", "004-fig7", "--output", str(path)])
    assert set(json.loads(path.read_text())["experiments"]) == {"001-fig14", "004-fig7"}
    assert list(tmp_path.iterdir()) == [path]
    for arguments in (["--only", "004-fig7"], []):
        with pytest.raises(SystemExit, match="differs in scale"):
            run.main([*arguments, "--output", str(path)])


def test_a_small_run_does_not_replace_the_results_of_a_whole_one(tmp_path, monkeypatch):
    whole = tmp_path / "papers.json"
    whole.write_text(json.dumps({"scale": "full"}))
    monkeypatch.setattr(run, "OUTPUT", whole)
    monkeypatch.setattr(run, "EXPERIMENTS", {"none": lambda **_: {}})
    run.main(["--small"])
    assert json.loads(whole.read_text()) == {"scale": "full"}
    small = json.loads((tmp_path / "papers-small.json").read_text())
    assert (small["scale"], list(small["experiments"])) == ("small", ["none"])


@pytest.fixture
def two_experiments(tmp_path, monkeypatch):
    """A file of an earlier whole run of two experiments, of which the second fails from now on."""

    def fail(*, small):
        raise DisagreementError("b")

    path = tmp_path / "papers.json"
    monkeypatch.setattr(run, "EXPERIMENTS", {n: lambda **_: {"points": [1]} for n in "ab"})
    assert run.main(["--output", str(path)]) == 0
    monkeypatch.setattr(run, "EXPERIMENTS", {"a": lambda **_: {"points": [2]}, "b": fail})
    return path


def test_a_run_that_stops_keeps_what_an_earlier_one_had(two_experiments):
    with pytest.raises(DisagreementError):
        run.main(["--output", str(two_experiments)])
    found = json.loads(two_experiments.read_text())["experiments"]
    assert {name: each["points"] for name, each in found.items()} == {"a": [2], "b": [1]}


def test_a_run_elsewhere_replaces_the_file_only_when_complete(two_experiments, monkeypatch):
    earlier = json.loads(two_experiments.read_text())
    earlier["environment"]["cpu"] = "another"
    two_experiments.write_text(json.dumps(earlier))
    with pytest.raises(SystemExit, match="differs in cpu"):
        run.main(["--only", "a", "--output", str(two_experiments)])
    with pytest.raises(DisagreementError):
        run.main(["--output", str(two_experiments)])
    assert json.loads(two_experiments.read_text()) == earlier
    monkeypatch.setitem(run.EXPERIMENTS, "b", lambda **_: {"points": [3]})
    assert run.main(["--output", str(two_experiments)]) == 0
    found = json.loads(two_experiments.read_text())["experiments"]
    assert {name: each["points"] for name, each in found.items()} == {"a": [2], "b": [3]}


def test_unknown_experiments_are_refused(capsys):
    with pytest.raises(SystemExit):
        run.main(["--only", "fig99"])
    assert "no experiment is called fig99" in capsys.readouterr().err


# Judging


def points(**series):
    given = [
        {"structure": name.replace("_", "-"), "x": x, "bytes": value, "evaluations": value}
        for name, values in series.items()
        for x, value in values.items()
    ]
    labels = {point["structure"]: point["structure"].upper() for point in given}
    return Points(given, labels)


def test_below():
    two = points(a={1: 5, 2: 8}, b={1: 10, 2: 4, 3: 1})
    assert figure.below("bytes", "a", "b")(two) == Verdict(
        False, "storage A / B < 1", "storage A / B 0.5 to 2, < 1 at 1 of 2 points"
    )
    assert figure.below("bytes", "a", "b", 2)(two) == Verdict(
        True, "storage A / B ≤ 2", "storage A / B 0.5 to 2"
    )
    assert figure.below("bytes", "a", "b", where=figure.up_to_x("n", 1))(two) == Verdict(
        True, "storage A / B < 1 for n ≤ 1", "storage A / B 0.5"
    )
    assert figure.below("bytes", "a", "b", where=figure.from_x("n", 3_000))(two) == Verdict(
        False, "storage A / B < 1 for n ≥ 3,000", "storage A / B: not measured"
    )


def test_less_is_not_the_same():
    same = points(a={1: 5}, b={1: 5}, c={1: 6})
    assert not figure.below("bytes", "a", "b")(same).holds
    assert figure.below("bytes", "a", "b", 1.01)(same).holds
    assert figure.below_all("bytes", "a", ("a", "c"))(same).holds
    assert not figure.below_all("bytes", "a", ("a", "b", "c"))(same).holds


def test_all_of():
    two = points(a={1: 5}, b={1: 10})
    rising, falling = figure.below("bytes", "a", "b"), figure.below("bytes", "b", "a")
    assert figure.all_of(rising, rising)(two).holds
    assert figure.all_of(rising, falling)(two) == Verdict(
        False,
        "storage A / B < 1; storage B / A < 1",
        "storage A / B 0.5; storage B / A 2, < 1 at 0 of 1 points",
    )


@pytest.mark.parametrize(
    ("a", "holds", "seen"),
    [
        ({10: 1, 20: 3, 40: 3}, True, "from 20 on"),
        ({10: 1, 20: 1, 40: 3}, False, "from 40 on"),
        ({10: 1, 20: 3, 40: 1}, False, "from 20 but not always after"),
        ({10: 1, 20: 1, 40: 1}, False, "nowhere"),
        ({10: 3, 20: 3, 40: 3}, False, "everywhere"),
    ],
)
def test_crosses(a, holds, seen):
    verdict = figure.crosses("bytes", "a", "b", 16)(points(a=a, b={10: 2, 20: 2, 40: 2}))
    criterion = "storage A / B > 1 at and after a first x of 8 to 32"
    assert verdict == Verdict(holds, criterion, f"storage A / B: above 1 {seen}")


def test_grows():
    one = points(a={1: 2, 4: 3, 8: 10})
    assert figure.grows("bytes", "a", 5)(one) == Verdict(
        True, "storage of A at the last x / at the first ≥ 5", "A grows 5 times"
    )
    assert not figure.grows("bytes", "a", 6)(one).holds


@pytest.mark.parametrize(("last", "steady"), [(20, True), (20.1, False)])
def test_steady(last, steady):
    verdict = seed_004_figures._steady("interval")(points(interval={10: 16, 98: last}))
    assert verdict.holds is steady
    assert verdict.criterion == "INTERVAL: most evaluations / fewest ≤ 1.25"


@pytest.mark.parametrize(("last", "affected"), [(32, True), (31, False)])
def test_affected(last, affected):
    verdict = seed_004_figures._affected("cluster")(points(cluster={10: 16, 98: last}))
    assert verdict.holds is affected


@pytest.mark.parametrize(
    ("ahead", "holds"),
    [((92, 98), True), ((98,), True), ((90, 92, 98), False), ((92,), False), ((), False)],
)
def test_takes_over(ahead, holds):
    hybrid = {x: 10 if x in ahead else 30 for x in (10, 50, 90, 92, 98)}
    given = points(hybrid=hybrid, cluster=dict.fromkeys(hybrid, 20), hybrid_default={50: 5})
    assert seed_004_figures._takes_over(given).holds is holds


def test_the_worst_index_of_figure_7():
    given = points(cluster={100: 18, 1000: 47}, interval={100: 10, 1000: 20})
    assert seed_004_figures._worst_index(given).holds
    assert seed_004_figures._well_beside_none(given).holds
    for n, value in ((100, 17.9), (1000, 47.1)):
        off = points(cluster={100: 18, 1000: 47} | {n: value}, interval={100: 10, 1000: 10})
        assert not seed_004_figures._worst_index(off).holds
    many = points(cluster={100: 20.1, 1000: 47})
    assert not seed_004_figures._well_beside_none(many).holds


def test_growth():
    ns = (100, 200, 400, 800)
    given = [
        {"structure": "a", "x": n, "sparse": 2 * np.log2(n), "nested": 0.7 * n, "fewest": 2}
        for n in ns
    ]
    table = Points(given, {"a": "A"})
    claim = seed_004_figures._growth
    verdict = claim("a", sparse="logarithmic", nested="linear", best="constant")(table)
    assert verdict == Verdict(
        True,
        "sparse: logarithmic; all overlap: linear; best document, sparse: constant",
        "sparse: logarithmic, 13.3 to 19.3; all overlap: linear, 70 to 560;"
        " best document, sparse: constant, 2 to 2",
    )
    assert not claim("a", sparse="logarithmic", nested="logarithmic")(table).holds
    assert not claim("a", sparse="constant", nested="linear")(table).holds
    slow = seed_004_figures.SLOW
    assert claim("a", sparse=slow, nested="linear", best=slow)(table).holds
    assert not claim("a", sparse=slow, nested=slow)(table).holds
    for point in given:  # the best document of a logarithm is not a constant
        point["fewest"] = np.log2(point["x"])
    assert not claim("a", sparse=slow, nested="linear", best="constant")(table).holds


@pytest.mark.parametrize(("is_list", "holds"), [(2_000, True), (1_990, False)])
def test_twenty_times(is_list, holds):
    times = [
        {"structure": name, "x": 10, "ns_per_value": time, "ns_single": 9_000}
        for name, time in (("is-list", is_list), ("cei", 100))
    ]
    verdict = seed_001._twenty_times(Points(times, seed_001.ALL))
    assert verdict.holds is holds
    assert verdict.seen.startswith(f"CEI is {is_list / 100:.3g} times faster at W = 10 (1 times")


@pytest.mark.parametrize(("last", "holds"), [(30, True), (29, False)])
def test_faster_growth(last, holds):
    given = [
        {"structure": name, "x": x, "ns_per_value": time}
        for name, times in {"lci-dt": (10, last), "cei": (10, 20)}.items()
        for x, time in enumerate(times)
    ]
    assert seed_001._faster_growth(Points(given, seed_001.ALL)).holds is holds


def test_bounds_and_falls():
    given = [
        {"structure": name, "x": x, "entries": value}
        for name, values in {"cei": (9, 7), "cei lower": (8, 6), "cei upper": (9, 8)}.items()
        for x, value in enumerate(values)
    ]
    labels = {point["structure"]: "CEI" for point in given}
    assert seed_001._within_bounds("cei")(Points(given, labels)).holds
    assert seed_001._falls("cei", "entries")(Points(given, labels)).holds
    given[1]["entries"] = 9
    assert not seed_001._falls("cei", "entries")(Points(given, labels)).holds
    given[1]["entries"] = 10
    assert not seed_001._within_bounds("cei")(Points(given, labels)).holds


def test_hardly_apart():
    rest = {"sci": {2: 800}, "sci_bc": {2: 50}, "lci": {2: 30}, "lci_bv": {2: 1}}
    close = seed_000._hardly_apart(points(**rest, lci_bc={2: 5}))
    assert close.holds
    assert close.seen == "at most 0.50% of the plot's height apart, which is up to 5 times"
    assert not seed_000._hardly_apart(points(**rest, lci_bc={2: 20})).holds


def test_both_of_the_best_are_judged():
    claim = next(
        claim
        for claim in seed_000.FIGURES[0].claims
        if claim.paper.endswith("the best of the five.")
    )
    sizes = {"sci": {4: 9}, "sci_bc": {4: 5}, "lci": {4: 6}, "lci_bc": {4: 3}, "lci_bv": {4: 4}}
    assert claim.judge(points(**sizes)).holds
    for name in ("lci_bc", "lci_bv"):
        assert not claim.judge(points(**sizes | {name: {4: 5}})).holds


@pytest.mark.parametrize("each", report.FIGURES, ids=lambda each: each.name)
def test_no_claim_holds_of_structures_that_are_all_the_same(each):
    """What says faster, less or more cannot be true then; only likeness can."""
    keys = ("bytes", "entries", "evaluations", "ns_per_value", "ns_to_count", "ns_single")
    keys += ("sparse", "nested", "fewest")
    given = [
        {"structure": name, "x": x, **dict.fromkeys(keys, 1e6)}
        for name in each.labels
        for x in (5, 128)
    ]
    alike = ("hardly", "accurate", "a little", "steady", "Ω(k).")
    for claim in each.claims:
        holds = claim.judge(Points(given, each.labels)).holds
        assert holds is any(word in claim.paper for word in alike), claim.paper


# Targets


def compared(**changes):
    """A comparison in which everybody takes 1,000 ns and 100 bytes, but for the changes."""
    names = [*STRUCTURES, *(peers.with_segment(segment) for segment in peers.SEGMENTS)]
    found = {"ns_per_event": 1_000.0, "bytes": 100, "ns_single": 3_000.0, "ns_batch": 1_000.0}
    found |= {"build_seconds": 1.0, "batch": 1, "events": 1}
    ours = {name: dict(found) for name in names}
    theirs = {peer.name: dict(found) for peer in others.OTHERS} | {"copy": dict(found)}
    for name, change in changes.items():
        (ours if name in ours else theirs)[name].update(change)
    return {"peers": {"ours": ours, "others": theirs}}


def reached(experiments, part):
    (row,) = (found for target, found in targets.rows(experiments) if part in target.what)
    return row


def test_the_target_of_ncls_is_for_events_as_they_come():
    times = {"dlist": {"ns_per_event": 50}, "ncls, events sorted": {"ns_per_event": 600}}
    assert reached(compared(**times), "ncls") == ("20 (12 with its events sorted first)", True)
    assert not reached(compared(**times, ncls={"ns_per_event": 999}), "ncls").met


@pytest.mark.parametrize(("part", "name"), [("DuckDB", "duckdb, buckets"), ("Polars", "polars")])
def test_the_fastest_form_of_a_join_counts(part, name):
    fast = {"dlist": {"ns_per_event": 100}}
    assert reached(compared(**fast), part).met
    assert reached(compared(**fast, **{name: {"ns_per_event": 499}}), part) == (
        f"4.99 ({name})",
        False,
    )


def test_copying_the_output():
    assert reached(compared(copy={"ns_per_event": 200}), "copying") == ("5", True)
    assert not reached(compared(copy={"ns_per_event": 199}), "copying").met


def test_cei_is_judged_by_the_fastest_segment_that_is_small_enough():
    segments = {
        "cei, segment=8": {"ns_per_event": 900, "bytes": 21},
        "cei, segment=16": {"ns_per_event": 1_500, "bytes": 20},
        "cei, segment=32": {"ns_per_event": 1_600, "bytes": 15},
        "cei, segment=64": {"ns_per_event": 1_700, "bytes": 10},
    }
    told = "8: 0.9 at 0.21, 16: 1.5 at 0.2, 32: 1.6 at 0.15, 64: 1.7 at 0.1 of the bytes"
    assert reached(compared(**segments), "CEI") == (f"1.5 with segment 16 ({told})", True)
    segments["cei, segment=16"]["ns_per_event"] = 1_510
    assert not reached(compared(**segments), "CEI").met
    large = {name: {"bytes": 30} for name in segments}
    assert reached(compared(**large), "CEI").measured.startswith("none is small enough")


def test_the_least_gain_of_a_batch_counts():
    assert reached(compared(sci={"ns_single": 1_000}), "in a batch") == ("1 (`sci`)", True)
    assert not reached(compared(sci={"ns_single": 999}), "in a batch").met
    refused = compared(sci={"ns_single": 1, "refused": "too large"})
    assert reached(refused, "in a batch").met


def test_an_order_holds_at_every_point_or_not_at_all():
    def figures(cei):
        times = {"ui": 1, "cei": cei, "lci-dt": 3, "is-list": 3}
        points = [{"structure": n, "x": 40, "ns_per_value": time} for n, time in times.items()]
        return {f"001-fig{number}": {"points": points} for number in (17, 18, 19)}

    part = "seed 001's order"
    assert reached(figures(cei=2), part).met
    worse = figures(cei=2) | {"001-fig18": figures(cei=4)["001-fig18"]}
    assert reached(worse, part) == (
        "at 8 of 9 comparisons; greatest ratio 1.33, `cei` / `lci-dt` at 40 of 001-fig18",
        False,
    )
    assert not list(targets.rows({"001-fig17": worse["001-fig17"]}))


# Page and plots


def test_page_and_plots_are_written(written):
    page = (written / "papers.md").read_text()
    shown = set(re.findall(r"\]\(([\w.]+\.svg)\)", page))
    assert shown == {path.name for path in written.glob("*.svg")}
    assert shown == {*(f"{each.name}.svg" for each in report.FIGURES), "peers.svg"}
    for each in report.FIGURES:
        assert f"\n## {each.title}\n" in page
        assert all(claim.paper in page for claim in each.claims)
    assert all(f"| {target.what} | " in page for target in targets.TARGETS)
    assert "the figures mean nothing" in page
    assert page.count("† Chosen when a result had been seen: ") == 6
    assert f"skew) of {seed_004.SKEW}" in page
    assert re.search(
        r"overlap = [\d.]+ to [\d.]+ percent \((not )?within the paper's 1 to 20\)", page
    )
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    links = set(re.findall(r"\(#([^)]*)\)", page))
    assert links <= {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


def test_plots_hold_every_structure(written):
    for each in report.FIGURES:
        words = {element.text for element in ET.parse(written / f"{each.name}.svg").iter()}
        assert {*each.labels.values(), each.x_label} <= words


def test_plots_are_small_and_do_not_change_by_themselves(result, written, tmp_path):
    few = {name: result["experiments"][name] for name in ("001-fig17", "peers")}
    report.write({**result, "experiments": few}, tmp_path)
    for path in tmp_path.glob("*.svg"):
        assert path.read_bytes() == (written / path.name).read_bytes()
    assert max(path.stat().st_size for path in written.iterdir()) < 100_000


def test_verdicts_come_from_the_points(result):
    """Storage that no structure of Fig. 17 has, and times that none of the peers has."""
    changed = json.loads(json.dumps(result))
    for point in changed["experiments"]["001-fig17"]["points"]:
        point["bytes"] = {"cei": 3, "lci-dt": 2, "is-list": 1, "ui": 4}[point["structure"]]
    changed["experiments"]["peers"] |= compared(cei={"ns_per_event": 40.0})["peers"]
    page = report.page(changed)
    assert (
        "| storage LCI / IS-lists < 1; storage CEI / IS-lists < 1 | **no** |"
        " storage LCI / IS-lists 2, < 1 at 0 of 2 points;" in page
    )
    assert "as they come | 25 (25 with its events sorted first) | ≥ 20 | yes |" in page
    assert "copying the output | 0.04 | ≤ 5 | yes |" in page


def test_the_command_line_writes_the_page(result, tmp_path):
    path = tmp_path / "papers.json"
    path.write_text(json.dumps({**result, "experiments": {}}))
    assert report.main([str(path), "--output", str(tmp_path / "docs")]) == 0
    assert [each.name for each in (tmp_path / "docs").iterdir()] == ["papers.md"]


def test_a_small_result_does_not_go_into_the_documentation(tmp_path, monkeypatch):
    path, docs = tmp_path / "papers.json", tmp_path / "docs"
    monkeypatch.setattr(report, "PAGES", docs)
    result = {"scale": "small", "experiments": {}, "environment": run.environment()}
    path.write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="a small run"):
        report.main([str(path)])
    assert not docs.exists()
    path.write_text(json.dumps({**result, "scale": "full"}))
    assert report.main([str(path)]) == 0
    assert (docs / "papers.md").exists()
