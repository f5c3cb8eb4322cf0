"""The Spark benchmarks measure what they say: data, peers, memory, simulation, derived figures."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks import workloads
from benchmarks.spark import derived, frames, memory, report, rules, simulate, sizing

import bittern

DOCS = Path(__file__).parents[2] / "docs"
CONSTANTS = sizing.Constants(
    base_seconds=10e-6,
    slope_seconds=1e-12,
    visit_seconds=5e-6,
    mapped_bytes=64.0,
    disk_bytes=128.0,
    event_bytes=400.0,
    matches=8e-5,
    worker_bytes=float(1 << 28),
    fan_out=((4, 4.0), (64, 16.0)),
)


# -- data ------------------------------------------------------------------------------------------


def test_event_files_hold_every_event_once(tmp_path):
    workload = workloads.get("shop", "small")
    path = frames.write_events(workload, 1_001, tmp_path)
    tables = [pq.read_table(file) for file in sorted(path.iterdir())]
    assert len(tables) == frames.FILES
    numbers = pa.concat_tables(tables)[frames.EVENT].to_pylist()
    assert numbers == list(range(1_001))
    assert tables[0][frames.VALUES][0].as_py() != tables[1][frames.VALUES][0].as_py()
    assert frames.write_events(workload, 1_001, tmp_path) == path


@pytest.mark.parametrize("name", ["shop", "dense"])
def test_rules_say_what_the_subscriptions_say(name, tmp_path):
    workload = workloads.get(name, "small")
    conjunctions = frames.part_of(workload.conjunctions(), 500)
    subscriptions = workload.subscriptions().slice(0, 500)
    assert conjunctions.texts().to_pylist() == subscriptions["expression"].to_pylist()
    path = tmp_path / "rules.txt"
    path.write_text(rules.source(conjunctions))
    events = workload.events(200)
    loop = rules.Loop(str(path))
    found = [loop.holding(dict(row.get(frames.VALUES, row))) for row in events.to_pylist()]
    expected = bittern.Matcher(bittern.Index.build(subscriptions)).match(events).to_pylist()
    assert found == expected
    assert name != "shop" or any(found)


# -- peers -----------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("name", ["shop", "dense"])
def test_peers_find_what_the_engine_finds(spark, name, tmp_path):
    from benchmarks.spark import beside, peers

    workload = workloads.get(name, "small")
    subscriptions = workload.subscriptions().slice(0, 2_000)
    conjunctions = frames.part_of(workload.conjunctions(), 2_000)
    table = frames.events_table(workload, 300)
    matches = bittern.Matcher(bittern.Index.build(subscriptions)).match(table)
    expected = matches.to_arrow(flat=True)
    assert len(expected) > 0
    events = spark.createDataFrame(table)
    for kind in peers.PEERS:
        peer = kind(spark, conjunctions, tmp_path, as_map=frames.VALUES in table.column_names)
        found = peer.match(events).toArrow()
        beside.agree_on_pairs(kind.name, found, expected)
        with pytest.raises(beside.DisagreementError):
            beside.agree_on_pairs(kind.name, found.slice(1), expected)
        peer.forget()


# -- memory ----------------------------------------------------------------------------------------


def test_mappings_of_an_index_are_told_from_the_rest():
    smaps = """\
7f00-7f10 r--s 00000000 fe:00 11 /cache/9a58/index.heads.npy
Size:                 64 kB
Pss:                  10 kB
Pss_Dirty:             3 kB
7f10-7f20 r--s 00000000 fe:00 12 /cache/9a58/index.bounds.npy
Pss:                   5 kB
7f20-7f30 r-xp 00000000 fe:00 13 /usr/lib/libc.so.6
Pss:                   7 kB
7f30-7f40 rw-p 00000000 00:00 0
Pss:                   2 kB
7f40-7f50 r--s 00000000 fe:00 14 /cache/77aa/rank.heads.npy
Pss:                   1 kB
"""
    kib = 1024
    assert memory.mapped(smaps) == {"9a58": 15 * kib, "77aa": kib, memory.REST: 9 * kib}


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells mappings")
def test_a_mapped_index_is_seen_in_a_process(tmp_path):
    index = bittern.Index.build(workloads.get("shop", "small").subscriptions())
    index.save(tmp_path / "saved")
    opened = bittern.Index.open(tmp_path / "saved")
    bittern.Matcher(opened).match(workloads.get("shop", "small").events(100))
    held = memory.mapped(Path("/proc/self/smaps").read_text())
    assert 0 < held["saved"] <= 2 * sum(f.stat().st_size for f in (tmp_path / "saved").iterdir())


# -- simulation ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    return simulate.World(1.0, 60, 2_000, 300)


def test_skewed_draws_are_distinct_and_skewed():
    drawn = simulate.SkewedDraw(1.0, 1).distinct(2_000, 5, 50)
    assert all(len(set(row)) == 5 for row in drawn.tolist())
    counts = np.bincount(drawn.ravel(), minlength=50)
    assert counts[0] > 5 * counts[40]
    even = np.bincount(simulate.SkewedDraw(0.0, 1).distinct(2_000, 5, 50).ravel(), minlength=50)
    assert even.max() < 2 * even.min()
    assert (drawn == simulate.SkewedDraw(1.0, 1).distinct(2_000, 5, 50)).all()


@pytest.mark.parametrize("home", [True, False])
def test_routing_has_its_invariants(world, home):
    point = world.route(8, home=home)
    assert 0 < point["fan_out"] <= point["fan_out_p99"] <= point["fan_out_most"] <= 8
    assert point["busiest_shard"] >= 1
    assert point["busiest_task"] >= 1
    assert point["largest_shard"] >= 1
    assert home or point["home_share"] == 0
    assert point == world.route(8, home=home)


def test_routes_lead_to_every_match(world):
    """An event visits the shard of each subscription that it matches, or that one is at home."""
    from bittern.engine.sharding.chunks import Chunk
    from bittern.engine.sharding.cutting import cut
    from bittern.engine.sharding.regions import build_router
    from bittern.engine.subscriptions import read_subscriptions
    from bittern.language.shapes import Shapes
    from bittern.spark.sharded.routing import routes

    texts = simulate.shop_subscriptions(60, simulate.SkewedDraw(1.0, 5), 500).texts()
    table = pa.table({"id": np.arange(500), "expression": texts})
    shapes = Shapes()
    catalog = read_subscriptions(table, shapes, on_error="raise", progress=None)
    chunk = Chunk(catalog, shapes.templates, world.sample)
    plan = cut(chunk.points(1.0), 4)
    assigned = chunk.assign(plan)
    router = bittern.Matcher(build_router(plan.ruler, simulate.regions_of(plan, assigned), None))
    visited = {tuple(pair) for pair in np.stack(routes(router.match(world.events))).T.tolist()}
    matches = bittern.Matcher(bittern.Index.build(table)).match(world.events)
    pairs = matches.to_arrow(flat=True)
    assert len(pairs) > 0
    for event, subscription in zip(*(column.to_pylist() for column in pairs.columns), strict=True):
        part = int(assigned.parts[subscription])
        assert part == plan.n_shards or (event, part) in visited


# -- derived figures -------------------------------------------------------------------------------


def test_fan_out_lies_between_simulated_points():
    points = CONSTANTS.fan_out
    assert sizing.fan_out(points, 1) == 0
    assert sizing.fan_out(points, 4) == pytest.approx(4)
    assert sizing.fan_out(points, 64) == pytest.approx(16)
    assert sizing.fan_out(points, 16) == pytest.approx(8)  # half way on both scales
    assert sizing.fan_out(points, 128) == pytest.approx(32)


def test_a_whole_index_is_not_routed():
    found = sizing.need(CONSTANTS, 10_000_000, 1_000_000, alike=True)
    assert (found.shards, found.fan_out, found.network_bytes) == (1, 0, 0)
    assert found.core_seconds == pytest.approx(20e-6)
    assert found.cores == math.ceil(1_000_000 * found.core_seconds / 0.7)
    assert found.hosts == math.ceil(found.cores / 16)
    assert found.host_bytes == pytest.approx(10_000_000 * 64 + 16 * (1 << 28))


def test_a_sharded_index_pays_for_its_visits():
    n = 2**31  # 256 GiB of snapshots: 64 shards of 4 GiB
    found = sizing.need(CONSTANTS, n, 1_000, alike=True)
    assert found.shards == 64
    assert found.fan_out == pytest.approx(16)
    assert found.core_seconds == pytest.approx(10e-6 + 16 * 5e-6 + n * 1e-12)
    assert found.network_bytes == pytest.approx(1_000 * (16 * 400 + n * 8e-5 * 8))
    assert found.host_bytes == pytest.approx(16 / 64 * n * 64 + 16 * (1 << 28))
    fewer = sizing.need(CONSTANTS, n, 1_000, alike=False)
    assert fewer.core_seconds == pytest.approx(10e-6 + 16 * 5e-6 + 1e6 * 1e-12)
    assert fewer.matches_per_event == pytest.approx(80)


def made_up_result() -> dict:
    rate = {"events_per_second": 100_000.0}
    two = {"shop": rate, "shop-10m": {"events_per_second": 50_000.0}}
    two["shop-10m, sharded"] = {"events_per_second": 25_000.0}
    points = [
        {"shards": n, "home": True, "skew": 1.0, "fan_out": f, "fan_out_p99": f}
        | {"home_share": 0.01, "largest_shard": 1.1, "busiest_shard": 2.0, "busiest_task": 1.2}
        for n, f in CONSTANTS.fan_out
    ]
    stage = {"subscriptions": 1_000_000, "matches_per_event": 80.0, "event_bytes": 400.0}
    whole = {"matching_bytes": [640_000_000], "disk_bytes": [1_280_000_000]}
    held = {"workers": 4, "rest_bytes": 1 << 30, "index_bytes": {}}
    return {
        "parts": {
            "stage": {"shop": stage},
            "scaling-build": {
                "subscriptions": 10_000_000,
                "whole": whole,
                "sharded": {"traffic": [1.0, 1.0, 1.0, 1.0]},
            },
            "scaling-2x1": {"executors": 2, "cores": 1, "rates": two},
            "scaling-2x2": {"memory": {"shop-10m": held}},
            "simulate": {"points": points},
        }
    }


def test_constants_are_read_off_a_result():
    known = sizing.constants(made_up_result())
    # 2 cores: 20 us at a million, 40 us at ten, 80 us in four shards that every event visits.
    assert known.slope_seconds == pytest.approx(20e-6 / 9_000_000)
    assert known.base_seconds + 1_000_000 * known.slope_seconds == pytest.approx(20e-6)
    assert known.visit_seconds == pytest.approx(10e-6)
    assert (known.mapped_bytes, known.disk_bytes) == (64, 128)
    assert known.worker_bytes == 1 << 28
    assert known.matches == pytest.approx(8e-5)


def test_every_marker_of_the_page_is_filled():
    text = (DOCS / "scaling.md").read_text()
    sections = derived.sections(made_up_result())
    assert set(re.findall(r"<!-- figures: (\w+) -->", text)) == set(sections)
    for name, content in sections.items():
        assert "|" in content
        text = report.inserted(text, name, content)
        assert content in text
        assert report.inserted(text, name, content) == text
    with pytest.raises(SystemExit, match="no marker"):
        report.inserted(text, "nothing", "")


def test_missing_parts_are_named_and_show_no_figure():
    result = made_up_result()
    del result["parts"]["scaling-2x1"]
    sections = derived.sections(result)
    assert sections["alike"] == sections["constants"] == "Not measured yet: scaling-2x1."


def test_a_small_result_stays_out_of_the_documentation(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps({"scale": "small", "parts": {}}))
    with pytest.raises(SystemExit, match="small run"):
        report.main([str(path)])


def test_targets_are_judged_from_the_parts():
    parts = {"stage": {"shop": {"ratio": 0.4}}, "peers": {"shop": {"peers": {}}}}
    shown = report._targets(parts)
    assert "| 0.4 | ≥ 0.5 | **no** |" in shown
    assert len(shown.splitlines()) == 5
