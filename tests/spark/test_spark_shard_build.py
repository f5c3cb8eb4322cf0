"""Sharded indexes built by Spark: the parts hold the catalog, the router finds the parts."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import oracle
import strategies
from bittern import Matcher
from bittern.errors import BadSubscription, OptionError
from bittern.language.printer import print_expression

pytest.importorskip("pyspark")

import bittern.spark
from bittern.engine.sharding.regions import REGION_BITS
from bittern.spark.sharded import building as shard_build
from bittern.spark.sharded.building import build_shards
from bittern.spark.snapshots.node_cache import attach
from bittern.spark.snapshots.store import CACHE
from bittern.spark.subscriptions.reading import Reading

pytestmark = pytest.mark.spark


def frame(spark, rows, schema="id bigint, expression string", partitions=3):
    return spark.createDataFrame(rows, schema).repartition(partitions)


def parts_of(shards):
    """All parts, home last."""
    return [attach(ref) for ref in (*shards.shards, *([shards.home] if shards.home else []))]


def routed(shards, events):
    """What each event matches where the router sends it, and at home; each match once."""
    visited = [
        {region >> REGION_BITS for region in regions}
        for regions in Matcher(attach(shards.router)).match(events).to_pylist()
    ]
    found = [[] for _ in visited]
    for at, part in enumerate(parts_of(shards)):
        for event, matched in enumerate(Matcher(part).match(events).to_pylist()):
            if at == len(shards.shards) or at in visited[event]:
                found[event] += matched
    return [sorted(matched) for matched in found]


def build(frame, n_shards, store, sample=None, *, history=True):
    return build_shards(
        frame,
        n_shards,
        sample=sample,
        store=str(store),
        stabbing="cei",
        reading=Reading(),
        total=frame.count(),
        history=history,
        on_bad=lambda _: None,
    )


def test_without_a_history_rows_that_need_one_are_bad(spark, tmp_path):
    rows = [(n, f"a = {n}") for n in range(20)]
    rows += [(20, "EXISTS d (d.a = a)"), (21, "a = 3 AND NOT EXISTS d (d.a = a)"), (22, "a = =")]
    shards, bad = build(frame(spark, rows), 2, tmp_path, history=False)
    assert sorted(each.id for each in bad) == [20, 21, 22]
    assert sum("there is no history" in each.message for each in bad) == 2
    assert sorted(id_ for part in parts_of(shards) for id_ in part.ids.to_pylist()) == [*range(20)]
    with pytest.raises(OptionError, match="shards cannot be matched with a history"):
        build(frame(spark, rows), 2, tmp_path)


def test_parts_hold_the_catalog_and_the_router_finds_them(spark, tmp_path):
    trees = dict(enumerate(strategies.sample(strategies.typed_expressions(), 200)))
    events = strategies.sample(strategies.typed_events(), 100)
    batch = strategies.as_arrow(events)
    rows = [(id_, print_expression(tree)) for id_, tree in trees.items()]
    shards, bad = build(frame(spark, rows), 4, tmp_path, batch)
    assert bad == []
    parts = parts_of(shards)
    assert sorted(id_ for part in parts for id_ in part.ids.to_pylist()) == sorted(trees)
    assert len(shards.shards) == 4
    assert shards.subscriptions == tuple(len(part) for part in parts[:4])
    assert shards.nbytes == tuple(part.nbytes for part in parts[:4])
    assert shards.integer_ids
    used = {name for part in parts for name in part.rank.attribute_names()}
    assert shards.attributes == tuple(sorted(used))
    router = attach(shards.router)
    assert set(router.rank.attribute_names()) == used
    for name in used:
        masks = [part.encoder.kinds.mask(name) for part in parts]
        assert router.encoder.kinds.mask(name) == np.bitwise_or.reduce(masks)
    assert pickle.loads(pickle.dumps(shards)) == shards
    expected = [
        [id_ for id_, tree in trees.items() if oracle.matches(tree, event)] for event in events
    ]
    assert routed(shards, batch) == expected


def test_weights_and_text_ids_arrive(spark, tmp_path):
    rows = [(f"s{i}", f"a = {i}", float(i) if i % 2 else None) for i in range(40)]
    shards, bad = build(
        frame(spark, rows, "id string, expression string, weight double"), 3, tmp_path
    )
    assert bad == []
    assert not shards.integer_ids
    found = {}
    for part in parts_of(shards):
        found |= dict(zip(part.ids.to_pylist(), part.weights.tolist(), strict=True))
    assert found == {f"s{i}": float(i) if i % 2 else 1.0 for i in range(40)}


def test_the_same_catalog_is_the_same_snapshots(spark, tmp_path):
    rows = [(i, f"a{i % 7} = {i}") for i in range(200)]
    first, _ = build(frame(spark, rows, partitions=2), 3, tmp_path)
    again, _ = build(frame(spark, rows, partitions=2), 3, tmp_path)
    assert first == again
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ref.id for ref in (first.router, first.home, *first.shards) if ref
    )


def test_bad_subscriptions_come_back(spark, tmp_path):
    rows = [(1, "a ="), (2, "a = 1"), (3, None), (None, "a = 1"), (None, "b = 2"), (4, "b = 'x'")]
    shards, bad = build(frame(spark, rows), 2, tmp_path)
    assert sum(shards.subscriptions) + (len(attach(shards.home)) if shards.home else 0) == 2
    found = sorted((each.id or 0, each.position) for each in bad)
    assert found == [(0, 0), (0, 0), (1, 3), (3, 0)]


def test_of_a_repeated_id_the_first_good_row_stays(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(shard_build, "_SETTLED_ROWS", 2)
    rows = [(i, f"a = {i}") for i in range(20)]
    rows += [(7, "b = 7"), (30, "c ="), (30, "c = 1"), (30, "c = 2"), (31, "d ="), (31, "d <")]
    ids, texts = zip(*rows, strict=True)
    ordered = spark.createDataFrame(pa.table({"id": ids, "expression": texts}))
    shards, bad = build(ordered.coalesce(1), 2, tmp_path)
    texts = {}
    for part in parts_of(shards):
        texts |= dict(zip(part.ids.to_pylist(), part.texts.to_pylist(), strict=True))
    assert texts == {i: f"a = {i}" for i in range(20)} | {30: "c = 1"}
    again = "this id was given before; ids are unique"
    messages = sorted((each.id, each.message if each.message == again else "") for each in bad)
    assert messages == [(7, again), (30, ""), (30, again), (31, ""), (31, "")]
    assert all(isinstance(each, BadSubscription) for each in bad)


@pytest.mark.parametrize("texts", [[], ["a IS NULL", "FALSE", "TRUE", "a = 1 AND a = 2"]])
def test_catalogs_with_nothing_to_cut(spark, tmp_path, texts):
    rows = list(enumerate(texts))
    shards, bad = build(frame(spark, rows), 3, tmp_path)
    assert bad == []
    found = sorted(id_ for part in parts_of(shards) for id_ in part.ids.to_pylist())
    assert found == list(range(len(texts)))
    truth = [[i for i, text in enumerate(texts) if text in ("a IS NULL", "TRUE")]]
    assert routed(shards, [{"b": 1}]) == truth
    assert len(shards.shards) == len(shards.traffic) == len(shards.nbytes)


def test_traffic_is_what_events_visit_that_the_cut_was_not_made_by(spark, tmp_path):
    rows = [(i, f"k{i % 2} = {i}") for i in range(400)]
    sample = pa.table({"k0": pa.array([0] * 3 + [None] * 7, pa.int64())})
    shards, _ = build(frame(spark, rows), 2, tmp_path, sample)
    visited = [
        {region >> REGION_BITS for region in regions}
        for regions in Matcher(attach(shards.router)).match(sample).to_pylist()[1::2]
    ]
    for shard, share in enumerate(shards.traffic):
        assert share == np.mean([shard in each for each in visited])
    assert 0 < sum(shards.traffic) <= 0.6


def test_shards_are_built_and_matched_with_large_variable_types(spark, tmp_path):
    rows = [(f"s{i}", f"a = {i} OR b = 'x{i}'") for i in range(20)] + [("bad", "a =")]
    subscriptions = frame(spark, rows, "id string, expression string")
    events = spark.sql("""SELECT 'k' AS id, 3 AS a, '{"b": "x7"}' AS doc""")
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        shards, bad = build(subscriptions, 2, tmp_path)
        found = bittern.spark.match(events, shards, event_id="id", json="doc", rejects=True)
        assert [(row.id, sorted(row.subscriptions), row.rejected) for row in found.collect()] == [
            ("k", ["s3", "s7"], None)
        ]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert [each.id for each in bad] == ["bad"]


def test_the_driver_keeps_all_parts_in_use(spark):
    shards, _ = build(frame(spark, [(i, f"a = {i}") for i in range(20)]), 2, CACHE)
    held = {Path(os.path.realpath(each)).name for each in Path("/proc/self/fd").iterdir()}
    parts = [*shards.shards, *([shards.home] if shards.home else [])]
    assert {f"{part.id}.use" for part in parts} <= held


def test_executors_need_a_store_that_they_can_write_to(spark):
    rows = frame(spark, [(1, "a = 1")])
    with pytest.raises(OptionError, match="give store="):
        build(rows, 2, "artifacts")
