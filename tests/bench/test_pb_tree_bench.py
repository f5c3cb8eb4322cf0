"""The PB+tree benchmarks at a small scale: everything runs, and everybody finds the same ids.

The same code at full scale is ``make bench-pb-tree``: up to ten million predicates.
"""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.pb_tree import beside, growth, report, run, workloads
from benchmarks.pb_tree.cache import fit
from benchmarks.pb_tree.growth import exponent
from benchmarks.pb_tree.measure import PASSES
from benchmarks.pb_tree.peers import Given, PBInMemory, RedBlack, offsets_of
from benchmarks.pb_tree.plots import LOOKS
from benchmarks.pb_tree.targets import DATABASES, OURS, targets
from benchmarks.pb_tree.truth import Truth
from benchmarks.pb_tree.workloads import FAMILIES, POINTS, THRESHOLDS, WIDE, Predicates
from benchmarks.run import DisagreementError

from small_runs import small_run

ROOT = Path(__file__).parents[2]
#: blake2b of some predicates and values of every family: a change here is another workload, and
#: every figure measured with the old one is void.
FROZEN = "4af6aca4c08f3421"
EVERYBODY = tuple(dict.fromkeys((*beside.ON_DISK, *beside.IN_MEMORY, RedBlack, *growth.STRUCTURES)))


# -- the run ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return small_run("benchmarks.pb_tree.run", tmp_path_factory.mktemp("pb_tree"))


def test_every_part_runs_with_everybody(result):
    parts = result["parts"]
    assert list(parts) == list(run.PARTS)
    for family, sizes in ((THRESHOLDS, run.SMALL.thresholds), (WIDE, run.SMALL.wide)):
        points = parts["beside"][family]
        assert [point["n"] for point in points] == list(sizes)
        for point in points:
            asked = [kind.name for kind in beside.kinds(run.SMALL, point["n"])]
            assert list(point["peers"]) == asked
            assert point["ids_per_value"] > 30
            for told in point["peers"].values():
                assert 0 < told["changes"] <= run.SMALL.changes
                assert min(told[f"{key}_us"] for key in ("single", "batch", "insert")) > 0
    assert list(parts["growth"]["points"]) == [kind.name for kind in growth.STRUCTURES]
    assert {"sqlite", "lmdb"} <= set(result["environment"]["versions"])


def test_number_update_is_none_at_best_and_grows_with_n_at_worst(result):
    updates = result["parts"]["updates"]
    assert all(point["most"] == 0 for point in updates["best"])
    few, many = updates["worst"]
    assert 0 < few["most"] < many["most"]
    assert many["mean"] < many["most"]


def test_a_smaller_cache_reads_more_pages(result):
    (size,) = result["parts"]["cache"]["sizes"]
    reads = [point["reads"] for point in size["points"] if point["values"] == "even"]
    assert reads[0] == 0
    assert reads[0] < reads[-1] <= size["pages_alone"]


def test_the_page_has_every_section_and_its_plots(result, tmp_path):
    source = tmp_path / "result.json"
    source.write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="small run"):
        report.main([str(source)])
    assert report.main([str(source), "--output", str(tmp_path / "page")]) == 0
    text = (tmp_path / "page" / "pb_tree.md").read_text()
    titles = ("Targets", "Search", "Insert", "Table 1", "Number_update", "The cache", "Verified")
    for title in titles:
        assert f"\n## {title}" in text
    plots = list((tmp_path / "page").glob("*.svg"))
    assert len(plots) == 8
    for plot in plots:
        assert f"({plot.name})" in text
        assert plot.stat().st_size > 1_000


def test_targets_are_judged_by_what_was_measured(result):
    parts = copy.deepcopy(result["parts"])
    for family in (THRESHOLDS, WIDE):
        for point in parts["beside"][family]:
            for name, told in point["peers"].items():
                told["single_us"] = told["batch_us"] = 1.0 if name == OURS else 4.0
    even, tenth = parts["cache"]["sizes"][0]["points"][0], parts["cache"]["sizes"][0]["points"][-2]
    even["us"], tenth["us"] = 2.0, 10.0
    assert (tenth["values"], tenth["share"]) == ("even", 0.1)
    parts["cache"]["sizes"][0]["fit"]["r2"] = 0.5
    shown = targets(parts)
    assert shown.count("| 4 | ≥ 3 | yes |") == 2 * 2 * len(DATABASES)
    assert shown.count("| 1 | ≤ 1.21 | yes |") == 2
    assert "| 5 | ≤ 10 | yes |" in shown
    assert "| 0.5 | ≥ 0.9 | **no** |" in shown
    parts["beside"][WIDE][-1]["peers"]["LMDB, chunks"]["batch_us"] = 2.5
    parts["beside"][THRESHOLDS][-1]["peers"][OURS]["single_us"] = 1.25
    shown = targets(parts)
    assert "| LMDB / PB+tree, in a batch, `wide`, least of all n | 2.5 | ≥ 3 | **no** |" in shown
    assert "| 1.25 | ≤ 1.21 | **no** |" in shown


def test_lines_are_fitted():
    found = fit([0.0, 1.0, 2.0, 4.0], [3.0, 5.0, 7.0, 11.0])
    assert found["base_us"] == pytest.approx(3)
    assert found["us_per_read"] == pytest.approx(2)
    assert found["r2"] == pytest.approx(1)
    assert found["worst"] == pytest.approx(1)
    assert fit([0.0, 1.0, 2.0], [1.0, 5.0, 1.0])["r2"] < 0.1
    assert exponent([10, 100, 1000], [5.0, 50.0, 500.0]) == pytest.approx(1)
    assert exponent([10, 100, 1000], [5.0, 5.0, 5.0]) == pytest.approx(0)


# -- the workloads ---------------------------------------------------------------------------------


def test_the_workloads_are_frozen():
    digest = hashlib.blake2b(digest_size=8)
    for family in FAMILIES:
        for rows in (workloads.predicates(family, 3_000), workloads.predicates(family, 3_000, 200)):
            for column in rows:
                digest.update(column.tobytes())
        for skewed in (False, True):
            digest.update(workloads.values(family, 3_000, 200, skewed=skewed).tobytes())
    assert digest.hexdigest() == FROZEN


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_a_value_satisfies_about_a_hundred_whatever_n_is(n):
    for family in (THRESHOLDS, POINTS):
        rows = workloads.predicates(family, n)
        assert set(rows.operators.tolist()) == set(range(6))
        truth = Truth(rows)
        for skewed in (False, True):
            counts, _ = truth.expected(workloads.values(family, n, 500, skewed=skewed))
            assert 50 < np.mean(counts) < 200


def test_half_of_wide_predicates_hold_and_their_constants_are_skewed():
    rows = workloads.predicates(WIDE, 20_000)
    counts, _ = Truth(rows).expected(workloads.values(WIDE, 20_000, 500))
    assert 0.45 < np.mean(counts) / 20_000 < 0.55
    _, of_constant = np.unique(rows.constants, return_counts=True)
    assert of_constant.max() > 10 * np.mean(of_constant)


def test_more_predicates_are_others_with_sids_of_their_own():
    rows, more = workloads.predicates(WIDE, 500), workloads.predicates(WIDE, 500, 500)
    assert not np.array_equal(rows.constants, more.constants)
    assert not set(rows.sids.tolist()) & set(more.sids.tolist())
    assert rows.joined(more).rows(500).sids.tolist() == more.sids.tolist()


def test_ordered_keys_have_the_order_of_floats():
    floats = np.array([-np.inf, -2.5, -1e-300, 0.0, 1e-300, 0.5, 3.0, np.inf])
    assert (np.diff(workloads.ordered_keys(floats)) > 0).all()


# -- truth and peers -------------------------------------------------------------------------------

#: Every operator below, at and above zero; sids count from 0.
AROUND_ZERO = Predicates(
    np.tile(np.arange(6, dtype=np.uint8), 3),
    np.repeat([-1.5, 0.25, 2.0], 6),
    np.arange(18, dtype=np.int32),
)
ASKED = np.array([-9.0, -1.5, -1.0, 0.25, 0.5, 2.0, 7.0])


def satisfied(predicates: Predicates, value: float) -> list[int]:
    tests = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
    return sorted(
        sid
        for operator, constant, sid in predicates.triples()
        if getattr(value, tests[operator])(constant)
    )


def test_the_truth_is_what_comparing_everything_says():
    rows = AROUND_ZERO
    more = workloads.predicates(WIDE, 30, 10)
    for truth, held in (
        (Truth(rows), rows),
        (Truth(more, Truth(rows)), rows.joined(more)),
    ):
        counts, sums = truth.expected(ASKED)
        for value, count, total in zip(ASKED.tolist(), counts, sums, strict=True):
            expected = satisfied(held, value)
            assert truth.ids(value).tolist() == expected
            assert (count, total) == (len(expected), sum(expected))


@pytest.mark.parametrize(
    "kind", sorted(EVERYBODY, key=lambda kind: kind.name), ids=lambda k: k.name
)
def test_everybody_agrees_with_the_truth_and_has_a_colour(kind, tmp_path):
    for rows, later in (
        (AROUND_ZERO.rows(0, 9), AROUND_ZERO.rows(9)),
        (workloads.predicates(WIDE, 700), workloads.predicates(WIDE, 700, 60)),
    ):
        folder = tmp_path / str(len(rows))
        folder.mkdir()
        peer = kind(Given(rows, later, folder))
        values = np.concatenate([ASKED, workloads.values(WIDE, 700, 50)])
        before, after = Truth(rows), Truth(later, Truth(rows))
        one_by_one(peer, values, before)
        assert peer.nbytes > 0
        for triple in later.triples():
            peer.insert(*triple)
        peer.commit()
        one_by_one(peer, values, after)
        for triple in later.triples():
            peer.delete(*triple)
        peer.commit()
        before.judge(peer.name, values, *peer.search_batch(values))
        peer.insert_many(later)
        peer.commit()
        after.judge(peer.name, values, *peer.search_batch(values))
        peer.delete_many(later)
        peer.commit()
        one_by_one(peer, values, before)
        peer.close()
    assert kind.name in LOOKS


def one_by_one(peer, values, truth):
    truth.judge(peer.name, values, *peer.search_batch(values))
    found = [peer.search(value) for value in values.tolist()]
    truth.judge(peer.name, values, offsets_of([len(ids) for ids in found]), np.concatenate(found))


def test_a_wrong_id_and_a_missing_one_end_the_run(tmp_path):
    rows = workloads.predicates(THRESHOLDS, 400)
    values = workloads.values(THRESHOLDS, 400, 40)
    peer, truth = PBInMemory(Given(rows, rows.rows(0, 0), tmp_path)), Truth(rows)
    offsets, ids = peer.search_batch(values)
    truth.judge("somebody", values, offsets, ids)
    fewer = offsets - (np.arange(len(offsets)) > 3)
    with pytest.raises(DisagreementError, match="somebody counts"):
        truth.judge("somebody", values, fewer, np.delete(ids, offsets[4] - 1))
    other = ids.copy()
    other[offsets[3]] += 1_000
    with pytest.raises(DisagreementError, match="somebody finds other ids"):
        truth.judge("somebody", values, offsets, other)


def test_sizes_can_be_left_out():
    scale = run.up_to(run.FULL, 100_000)
    assert scale.thresholds == (10_000, 100_000)
    assert scale.cached == (100_000,)
    assert PASSES * scale.changes > 1_000
