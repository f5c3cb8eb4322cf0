"""The papers' experiments run, agree, and are written up by code alone."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from benchmarks.draw import Draw
from benchmarks.papers import figure, measure, peers, report, run, seed_000, seed_001, seed_004
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


def test_exponent_of_a_power():
    assert seed_004.exponent({n: 3 * n**0.5 for n in (10, 20, 40)}) == pytest.approx(0.5)


# The run


def test_every_experiment_runs_and_measures_every_structure(result):
    assert list(result["experiments"]) == list(run.EXPERIMENTS)
    for each in report.FIGURES:
        points = each.points(result["experiments"][each.experiment])
        assert not points.refused
        for name in each.labels:
            for panel in each.panels:
                assert len(points.of(name, panel.key)) == 2, (each.name, name, panel.key)


def test_structures_of_a_point_found_the_same(result):
    for measured in result["experiments"].values():
        found: dict[float, set[float]] = {}
        for point in measured.get("points", ()):
            if "ids_per_value" in point:
                found.setdefault(point["x"], set()).add(point["ids_per_value"])
        assert all(len(each) == 1 for each in found.values())


def test_everybody_is_in_the_comparison(result):
    compared = result["experiments"]["peers"]
    assert list(compared["ours"]) == list(STRUCTURES)
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
    class Loser(peers.NumPy):
        def ids(self, values):
            return super().ids(values)[1:]

    monkeypatch.setattr(peers, "OTHERS", (Loser,))
    monkeypatch.setattr(peers, "STRUCTURES", {"cei": ""})
    with pytest.raises(DisagreementError, match="numpy, searchsorted finds"):
        peers.compare(small=True)


def test_what_does_not_fit_is_told(result, monkeypatch):
    def refuse(*_, **__):
        raise OptionError("that would take 9 TB")

    monkeypatch.setattr(CEI, "_build", refuse)
    measure.load_kernels.cache_clear()
    monkeypatch.setattr(measure, "load_kernels", lambda _: None)
    monkeypatch.setattr(peers, "load_kernels", lambda _: None)
    monkeypatch.setattr(peers, "OTHERS", ())
    monkeypatch.setattr(peers, "Copy", lambda intervals, _: peers.NumPy(intervals))
    changed = {**result, "experiments": dict(result["experiments"]), "scale": "full"}
    changed["experiments"]["001-fig17"] = seed_001.fig_17(small=True)
    monkeypatch.setattr(peers, "STRUCTURES", {"cei": "", "ui": ""})
    assert peers.compare(small=True)["ours"]["cei"] == {"refused": "that would take 9 TB"}
    page = report.page(changed)
    assert "Not measured at 10: that would take 9 TB." in page
    assert "the papers' own, except where a structure refuses" in page


def test_a_part_of_the_run_keeps_the_rest(tmp_path):
    path = tmp_path / "papers.json"
    run.main(["--small", "--only", "fig14", "--output", str(path)])
    run.main(["--small", "--only", "004-fig7", "--output", str(path)])
    assert set(json.loads(path.read_text())["experiments"]) == {"001-fig14", "004-fig7"}
    with pytest.raises(SystemExit, match="differs in scale"):
        run.main(["--only", "004-fig7", "--output", str(path)])


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
        False, "storage A / B 0.5 to 2, at most 1 at 1 of 2 points"
    )
    assert figure.below("bytes", "a", "b", 2)(two) == Verdict(True, "storage A / B 0.5 to 2")
    assert figure.below("bytes", "a", "b", only=lambda x: x == 1)(two).holds
    assert figure.below("bytes", "a", "b", only=lambda x: x > 2)(two) == Verdict(
        False, "storage A / B: not measured"
    )


def test_all_of():
    two = points(a={1: 5}, b={1: 10})
    rising, falling = figure.below("bytes", "a", "b"), figure.below("bytes", "b", "a")
    assert figure.all_of(rising, rising)(two).holds
    assert figure.all_of(rising, falling)(two) == Verdict(
        False, "storage A / B 0.5; storage B / A 2, at most 1 at 0 of 1 points"
    )


@pytest.mark.parametrize(
    ("a", "verdict"),
    [
        ({10: 1, 20: 3, 40: 3}, Verdict(True, "A above B from 20 on")),
        ({10: 1, 20: 1, 40: 3}, Verdict(False, "A above B from 40 on")),
        ({10: 1, 20: 1, 40: 1}, Verdict(False, "A above B: nowhere")),
        ({10: 3, 20: 3, 40: 3}, Verdict(False, "A above B: everywhere")),
    ],
)
def test_crosses(a, verdict):
    assert figure.crosses("bytes", "a", "b", 16)(points(a=a, b={10: 2, 20: 2, 40: 2})) == verdict


def test_grows():
    one = points(a={1: 2, 4: 3, 8: 10})
    assert figure.grows("bytes", "a", 5)(one) == Verdict(True, "A grows 5 times")
    assert not figure.grows("bytes", "a", 6)(one).holds


def test_steady_and_affected():
    overlap = points(interval={10: 16, 98: 20}, cluster={10: 16, 98: 70})
    assert seed_004._steady("interval")(overlap) == Verdict(True, "INTERVAL 16 to 20")
    assert not seed_004._steady("cluster")(overlap).holds
    assert seed_004._affected("cluster")(overlap) == Verdict(True, "CLUSTER 16 to 70")
    assert not seed_004._affected("interval")(overlap).holds


@pytest.mark.parametrize(("ahead", "holds"), [((92, 98), True), ((50, 92, 98), False), ((), False)])
def test_takes_over(ahead, holds):
    hybrid = {x: 10 if x in ahead else 30 for x in (10, 50, 92, 98)}
    cluster = dict.fromkeys(hybrid, 20)
    assert seed_004._takes_over(points(hybrid=hybrid, cluster=cluster)).holds is holds


def test_growth():
    ns = (100, 200, 400, 800)
    given = [
        {"structure": "cluster", "x": n, "sparse": 2 * np.log2(n), "nested": 0.7 * n} for n in ns
    ]
    table = Points(given, {"cluster": "Cluster"})
    assert seed_004._growth("cluster", worst_is_linear=True)(table).holds
    verdict = seed_004._growth("cluster", worst_is_linear=False)(table)
    assert not verdict.holds
    assert verdict.seen.endswith("n^1.00 when all overlap")


@pytest.mark.parametrize(("is_list", "holds"), [(2_100, True), (900, False)])
def test_twenty_times(is_list, holds):
    times = [
        {"structure": name, "x": 10, "ns_per_value": time, "ns_single": 9_000}
        for name, time in (("is-list", is_list), ("cei", 100))
    ]
    verdict = seed_001._twenty_times(Points(times, seed_001.ALL))
    assert verdict.holds is holds
    assert verdict.seen.startswith(f"CEI is {is_list / 100:.3g} times faster at W = 10 (1 times")


def test_bounds_and_falls():
    given = [
        {"structure": name, "x": x, "entries": value}
        for name, values in {"cei": (9, 7), "cei lower": (8, 6), "cei upper": (9, 8)}.items()
        for x, value in enumerate(values)
    ]
    labels = {point["structure"]: "CEI" for point in given}
    assert seed_001._within_bounds("cei")(Points(given, labels)).holds
    assert seed_001._falls("cei", "entries")(Points(given, labels)).holds
    given[1]["entries"] = 10
    assert not seed_001._within_bounds("cei")(Points(given, labels)).holds
    assert not seed_001._falls("cei", "entries")(Points(given, labels)).holds


def test_hardly_apart():
    rest = {"sci": {2: 800}, "sci_bc": {2: 50}, "lci": {2: 30}, "lci_bv": {2: 1}}
    close = points(**rest, lci_bc={2: 5})
    assert seed_000._hardly_apart(close) == Verdict(
        True, "at most 0.50% of the plot's height apart, which is up to 5 times"
    )
    assert not seed_000._hardly_apart(points(**rest, lci_bc={2: 20})).holds


# Page and plots


def test_page_and_plots_are_written(written):
    page = (written / "papers.md").read_text()
    shown = set(re.findall(r"\]\(([\w.]+\.svg)\)", page))
    assert shown == {path.name for path in written.glob("*.svg")}
    assert shown == {*(f"{each.name}.svg" for each in report.FIGURES), "peers.svg"}
    for each in report.FIGURES:
        assert f"\n## {each.title}\n" in page
        assert all(claim.paper in page for claim in each.claims)
    assert all(f"| {target.what} | " in page for target in report.TARGETS)
    assert "the figures mean nothing" in page
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
    compared = changed["experiments"]["peers"]
    for found in (*compared["ours"].values(), *compared["others"].values()):
        found["ns_per_event"] = 1_000.0
    compared["ours"]["cei"] |= {"ns_per_event": 40.0, "bytes": 1}
    compared["ours"]["ui"] |= {"bytes": 10}
    page = report.page(changed)
    assert (
        "need more storage than LCI and CEI. | **no** | storage LCI / IS-lists 2, at most 1" in page
    )
    assert "times faster than ncls | 25 | ≥ 20 | yes |" in page
    assert "copying the output | 0.04 | ≤ 5 | yes |" in page
    assert "CEI, share of the bytes of UI | 0.1 | ≤ 0.2 | yes |" in page
    compared["ours"]["cei"]["ns_per_event"] = 100.0
    page = report.page(changed)
    assert "times faster than ncls | 10 | ≥ 20 | **no** |" in page


def test_the_command_line_writes_the_page(result, tmp_path):
    path = tmp_path / "papers.json"
    path.write_text(json.dumps({**result, "experiments": {}}))
    assert report.main([str(path), "--output", str(tmp_path / "docs")]) == 0
    assert [each.name for each in (tmp_path / "docs").iterdir()] == ["papers.md"]
