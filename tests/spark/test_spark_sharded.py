"""Sharded matching is matching: whatever the cut, the routes and the tasks, one answer.

Most catalogs are cut at random here, and routers made by hand: a shard's regions are its own
expressions (every visit finds something), or TRUE (events visit in vain). How cuts are really made
is in ``test_spark_shard_build.py``.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import answers
import bittern
import shard_tasks
import strategies
from bittern.engine.sharding.merging import merged
from bittern.engine.sharding.regions import REGION_BITS, compared, witnesses
from bittern.errors import BitternError, OptionError
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.spark.attributes import project
from bittern.spark.operator import FIRST
from bittern.spark.planning import plan
from bittern.spark.sharded.gathering import Gatherer
from bittern.spark.sharded.matching import match_shards
from bittern.spark.sharded.routing import Router, salts
from bittern.spark.sharded.shards import Shards
from bittern.spark.sharded.visiting import Visitor
from bittern.spark.snapshots.node_cache import SnapshotRef
from steady import PATIENCE

pytestmark = pytest.mark.smoke
spark_test = pytest.mark.spark


def saved(subscriptions: Any, folder: Path) -> SnapshotRef:
    folder.parent.mkdir(exist_ok=True)
    return SnapshotRef(bittern.Index.build(subscriptions).save(folder), str(folder), None)


def cut(
    catalog: Mapping[Any, str],
    folder: Path,
    *,
    n: int = 4,
    home: bool = True,
    weights: Mapping[Any, float] | None = None,
    everywhere: Sequence[int] = (1,),
    traffic: Sequence[float] | None = None,
) -> Shards:
    """Deal the catalog out to ``n`` shards and home; all events visit those in ``everywhere``."""
    dealt: list[list[Any]] = [[] for _ in range(n + home)]
    for id_ in catalog:
        random.Random(f"{id_}").choice(dealt).append(id_)
    rows = [
        [(id_, catalog[id_], weights[id_] if weights else None) for id_ in part] for part in dealt
    ]
    regions = {
        at << REGION_BITS | k: "TRUE" if at in everywhere else catalog[id_]
        for at, part in enumerate(dealt[:n])
        for k, id_ in enumerate(part)
    }
    whole = bittern.Index.build(dict(catalog))
    known = {n << REGION_BITS | k: text for k, text in enumerate(witnesses(compared(whole)))}
    return Shards(
        id="0" * 64,
        router=saved(known | regions, folder / "router"),
        home=saved(rows[n], folder / "home") if home else None,
        shards=tuple(saved(part, folder / f"shard{at}") for at, part in enumerate(rows[:n])),
        subscriptions=tuple(len(part) for part in dealt[:n]),
        nbytes=(1,) * n,
        traffic=tuple(traffic or [0.5] * n),
        integer_ids=whole.all_ids.is_int64,
        attributes=tuple(whole.rank.attribute_names()),
    )


def run(
    events: Any,
    shards: Shards,
    keys: Sequence[str] = ("id",),
    *,
    limit: int | None = None,
    documents: Sequence[str] = (),
    gather: bool = True,
) -> Any:
    projected = project(events, keys, shards.attributes, documents)
    return match_shards(projected, list(keys), shards, limit=limit, json=documents, gather=gather)


def gathered(frame: Any) -> dict[Any, list[Any]]:
    """The subscriptions of each event, by its key."""
    table = frame.toArrow()
    keys = [
        name
        for name in table.column_names
        if name not in ("subscriptions", "candidates", "rejected")
    ]
    rows = list(zip(*(table[key].to_pylist() for key in keys), strict=True))
    assert len(set(rows)) == len(rows), "an event has two rows"
    found = table["subscriptions"].to_pylist()
    return {(row[0] if len(row) == 1 else row): ids for row, ids in zip(rows, found, strict=True)}


# -- without Spark -------------------------------------------------------------------------------


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 10)), min_size=1, max_size=12),
    st.integers(0, 40),
)
def test_salts_share_the_tasks_out_by_traffic(traffic: list[float], tasks: int) -> None:
    given_ = salts(traffic, tasks)
    assert len(given_) == len(traffic)
    assert min(given_) >= 1
    assert sum(given_) == max(tasks, len(traffic))
    largest = max(share / salt for share, salt in zip(traffic, given_, strict=True))
    if tasks > len(traffic):
        assert largest <= sum(traffic) / (tasks - len(traffic)) * (1 + 1e-9)
    # No task can be moved to a shard that is worse off than its own would then be.
    for at, salt in enumerate(given_):
        if salt > 1:
            assert traffic[at] / (salt - 1) >= largest * (1 - 1e-9)


def test_salts_of_no_shards_and_of_no_traffic() -> None:
    assert salts([], 8) == ()
    assert salts([0.0, 0.0], 6) == (3, 3)
    assert salts([0.97, 0.01, 0.01, 0.01], 8) == (5, 1, 1, 1)


def routed(shards: Shards, events: pa.Table) -> list[list[int]]:
    """The shards that each event must visit."""
    rows = events.combine_chunks().to_batches()
    found = Router(shards, ())(iter(rows))
    return [each for batch in found for each in batch.column("shards").to_pylist()]


@pytest.fixture(scope="module")
def typed() -> tuple[dict[str, str], list[dict[str, Any]], pa.Table]:
    trees = strategies.sample(strategies.typed_expressions(), 60)
    events = strategies.sample(strategies.typed_events(), 60)
    catalog = {f"s{at}": print_expression(tree) for at, tree in enumerate(trees)}
    table = strategies.as_arrow(events).append_column("id", [list(range(len(events)))])
    return catalog, events, table


@pytest.mark.parametrize("home", [True, False])
def test_routes_and_visits_find_each_match_once(tmp_path: Path, typed: Any, *, home: bool) -> None:
    catalog, events, table = typed
    shards = cut(catalog, tmp_path / "parts", home=home)
    routes = routed(shards, table)
    assert all(list(each) == sorted(set(each)) for each in routes)
    found = shard_tasks.found_by(shards, table, (1, 4, 2, 1))
    merged = Counter(
        (id_, subscription) for id_, own in shard_tasks.lists(found).items() for subscription in own
    )
    expected = {
        (row, id_) for row, ids in enumerate(answers.expected(catalog, events)) for id_ in ids
    }
    assert merged == Counter(expected)
    firsts = found.filter(found[FIRST])["c0"].to_pylist()
    assert sorted(firsts) == list(range(len(events)))
    expressions = len(set(catalog.values()))
    for ids, candidates in zip(
        found["subscriptions"].to_pylist(), found["candidates"].to_pylist(), strict=True
    ):
        # Texts that mean the same are one candidate.
        different = {print_expression(normal_form(parse(catalog[id_]))) for id_ in ids}
        assert len(different) <= candidates + 1 <= expressions * 9


@pytest.mark.parametrize("home", [True, False])
def test_gathering_makes_one_row_of_an_event_in_whatever_order_pieces_come(
    tmp_path: Path, typed: Any, monkeypatch: pytest.MonkeyPatch, *, home: bool
) -> None:
    catalog, events, table = typed
    monkeypatch.setattr("bittern.spark.sharded.visiting.SLICE", 7)
    monkeypatch.setattr("bittern.spark.sharded.gathering.SLICE", 7)
    monkeypatch.setattr("bittern.spark.operator._MOST_MATCHES", 5)
    shards = cut(catalog, tmp_path / "parts", home=home)
    expected = dict(enumerate(map(sorted, answers.expected(catalog, events))))
    found = [
        shard_tasks.found_by(shards, table, (1, 4, 2, 1), seed=seed, gathered=3)
        for seed in (1, 2, 3)
    ]
    for each in found:
        assert sorted(each["c0"].to_pylist()) == list(range(len(events)))
        assert {id_: sorted(own) for id_, own in shard_tasks.lists(each).items()} == expected
    # What a lost executor's tasks send again is the same, in whatever order they get it.
    rows = [sorted(map(repr, each.to_pylist())) for each in found]
    assert rows[0] == rows[1] == rows[2]


def test_what_tasks_send_does_not_depend_on_the_order_in_which_visits_came(
    tmp_path: Path, typed: Any
) -> None:
    """Spark compares what a stage sends with what it sent before its executor was lost."""
    catalog, _, table = typed
    shards = cut(catalog, tmp_path / "parts")
    route = shard_tasks.dispatcher(shards, table.column_names, (1, 1, 1, 1), gathered=True)
    visits = shard_tasks.run(route, shard_tasks.hashed(table))
    assert shard_tasks.run(route, shard_tasks.hashed(table)).equals(visits)
    visitor = Visitor(shards, 1, (), None, True, 4)
    sent = []
    for seed in (1, 2):
        parts = [shard_tasks.run(visitor, own) for own in shard_tasks.sent(visits, seed)]
        sent.append(sorted(map(repr, pa.concat_tables(parts).to_pylist())))
    assert sent[0] == sent[1]


def test_pieces_of_blocks_that_differ_are_never_put_together(tmp_path: Path, typed: Any) -> None:
    """Events that came in another order when they were read again: an error, not half an answer."""
    catalog, _, table = typed
    shards = cut(catalog, tmp_path / "parts")
    visitor = Visitor(shards, 1, (), None, True, 1)
    found = []
    for events in (table, table.take(list(reversed(range(len(table)))))):
        route = shard_tasks.dispatcher(shards, table.column_names, (1, 1, 1, 1), gathered=True)
        visits = shard_tasks.run(route, shard_tasks.hashed(events))
        found.append([shard_tasks.run(visitor, own) for own in shard_tasks.sent(visits, 1)])
    gatherer = Gatherer(1, None, shards.integer_ids)
    assert len(shard_tasks.run(gatherer, pa.concat_tables(found[0]))) == len(table)
    mixed = pa.concat_tables([found[0][0], *found[1][1:]])
    with pytest.raises(BitternError, match="in another order when lost rows were computed again"):
        shard_tasks.run(gatherer, mixed)


def test_a_visit_goes_to_the_same_task_whatever_the_order_of_events(
    tmp_path: Path, typed: Any
) -> None:
    """A stage that is recomputed in another order must not move a visit."""
    catalog, _, table = typed
    shards = cut(catalog, tmp_path / "parts", traffic=[0.1, 0.8, 0.05, 0.05])
    tasks = salts(shards.traffic, 9)
    route = shard_tasks.dispatcher(shards, table.column_names, tasks, gathered=False)
    starts = np.cumsum([0, *tasks])

    def places(events: pa.Table) -> dict[Any, tuple[int, bool]]:
        found = {}
        for row in shard_tasks.run(route, shard_tasks.hashed(events)).to_pylist():
            assert row["shard"] < 0 or row["task"] in range(*starts[row["shard"] :][:2])
            carried = pa.ipc.open_stream(row["carried"]).read_all()["c0"].to_pylist()
            firsts = pa.ipc.open_stream(row["visits"]).read_all()[FIRST].to_pylist()
            for id_, first in zip(carried, firsts, strict=True):
                assert (id_, row["shard"]) not in found
                found[id_, row["shard"]] = row["task"], first
        return found

    found = places(table)
    assert found == places(table.take(random.Random(3).sample(range(len(table)), len(table))))
    assert len({task for (_, shard), (task, _) in found.items() if shard == 1}) == tasks[1] > 3
    firsts = Counter(id_ for (id_, _), (_, first) in found.items() if first)
    assert firsts == Counter(range(len(table)))


def test_rows_of_the_shuffle_are_cut_where_events_are_large(
    tmp_path: Path, typed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, events, table = typed
    monkeypatch.setattr("bittern.spark.sharded.routing._MOST_BYTES", 1)
    shards = cut(catalog, tmp_path / "parts")
    expected = dict(enumerate(map(sorted, answers.expected(catalog, events))))
    for gathered in (0, 2):
        found = shard_tasks.lists(
            shard_tasks.found_by(shards, table, (1, 2, 1, 1), gathered=gathered)
        )
        assert {id_: sorted(own) for id_, own in found.items()} == expected


def test_events_that_go_nowhere_have_a_row(tmp_path: Path) -> None:
    shards = cut({1: "a > 1", 2: "a > 2"}, tmp_path / "parts", home=False, everywhere=())
    table = pa.table({"id": pa.array([5, 6, 7]), "a": pa.array([0, 9, 0])})
    for gathered in (0, 1):
        found = shard_tasks.found_by(shards, table, (1, 1, 1, 1), gathered=gathered)
        assert {id_: sorted(own) for id_, own in shard_tasks.lists(found).items()} == {
            5: [],
            6: [1, 2],
            7: [],
        }


@pytest.mark.parametrize("ids", ["short", "long", "texts"])
def test_merging_lists_of_several_parts(ids: str) -> None:
    rng = random.Random(ids)
    parts, expected = [], [[] for _ in range(9)]
    for _ in range(5):
        rows = sorted(rng.sample(range(9), rng.randint(0, 9)))
        own = [[rng.randrange(-(2**31), 2**31) for _ in range(rng.randint(0, 4))] for _ in rows]
        # What has 32 bits in one part may have 64 in another.
        kind = rng.choice([pa.int32(), pa.int64()]) if ids == "short" else pa.int64()
        if ids == "texts":
            own, kind = [[str(each) for each in values] for values in own], pa.large_string()
        for row, values in zip(rows, own, strict=True):
            expected[row] += values
        parts.append((np.array(rows, np.int64), pa.array(own, pa.list_(kind))))
    offsets, values = merged(parts, 9)
    found = values.to_pylist()
    assert [found[a:b] for a, b in itertools.pairwise(offsets.tolist())] == expected


# -- with Spark ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trees() -> list[Any]:
    return strategies.sample(strategies.typed_expressions(), 150)


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return strategies.sample(strategies.typed_events(), 120)


@pytest.fixture(scope="module")
def catalog(trees: list[Any]) -> dict[int, str]:
    return {7 * at - 300: print_expression(tree) for at, tree in enumerate(trees)}


@pytest.fixture(scope="module")
def expected(catalog: dict[int, str], events: list[dict[str, Any]]) -> list[list[int]]:
    return answers.expected(catalog, events)


@pytest.fixture(scope="module")
def shards(catalog: dict[int, str], tmp_path_factory: Any) -> Shards:
    folder = tmp_path_factory.mktemp("sharded") / "parts"
    return cut(catalog, folder, traffic=[0.1, 0.8, 0.05, 0.05])


@pytest.fixture(scope="module")
def frame(spark: Any, events: list[dict[str, Any]]) -> Any:
    table = strategies.as_arrow(events)
    return spark.createDataFrame(table.append_column("id", [list(range(len(events)))]))


@spark_test
def test_gathered_matches_are_those_of_the_oracle(
    frame: Any, shards: Shards, expected: list[list[int]]
) -> None:
    result = run(frame, shards)
    assert result.columns == ["id", "subscriptions", "candidates", "rejected"]
    assert result.schema["subscriptions"].dataType.simpleString() == "array<bigint>"
    found = gathered(result)
    assert {id_: sorted(ids) for id_, ids in found.items()} == dict(enumerate(expected))


@spark_test
def test_pieces_hold_each_match_once_and_mark_each_event_once(
    frame: Any, shards: Shards, expected: list[list[int]]
) -> None:
    table = run(frame, shards, gather=False).toArrow()
    assert table.column_names == ["id", "subscriptions", "candidates", "rejected", FIRST]
    ids, lists = table["id"].to_pylist(), table["subscriptions"].to_pylist()
    found = Counter((id_, each) for id_, own in zip(ids, lists, strict=True) for each in own)
    assert found == Counter((id_, each) for id_, own in enumerate(expected) for each in own)
    firsts = [id_ for id_, first in zip(ids, table[FIRST].to_pylist(), strict=True) if first]
    assert sorted(firsts) == list(range(len(expected)))
    assert len(ids) > len(firsts)
    assert pa.compute.sum(table["candidates"]).as_py() >= sum(map(len, expected)) > 0


@spark_test
@pytest.mark.parametrize("ids", ["integers", "both"])
def test_limit_keeps_the_best_of_all_shards_ties_by_id(
    spark: Any, tmp_path: Path, ids: str
) -> None:
    names = {
        "integers": [-5, 3, 20, 100, 7, 0, 2**62, -(2**63)],
        "both": [10, 9, "10", "9", -1, "😀", "é", "\uff5e"],
    }[ids]
    weights = dict(zip(names, [1.0, 1.0, 2.0, -0.0, 0.0, 1.0, 1.0, -3.5], strict=True))
    catalog = {name: f"a >= {at % 3}" for at, name in enumerate(names)}
    shards = cut(catalog, tmp_path / "parts", n=3, weights=weights)
    rows = [{"id": id_, "a": id_ % 4 - 1} for id_ in range(12)]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    whole = bittern.Index.build([(name, catalog[name], weights[name]) for name in names])
    for limit in (3, 10**20) if ids == "both" else (2,):
        best = bittern.Matcher(whole).match(rows, limit=limit).to_pylist()
        found = gathered(run(frame, shards, limit=limit))
        assert found == {
            id_: own if ids == "integers" else [str(each) for each in own]
            for id_, own in enumerate(best)
        }


@spark_test
def test_several_keys_nulls_among_them_and_keys_that_are_attributes(
    spark: Any, tmp_path: Path
) -> None:
    shards = cut({1: "a = 1", 2: "a = 2", 3: "b = 'x'", 4: "a IS NULL"}, tmp_path / "parts", n=2)
    schema = pa.schema([("a", pa.int64()), ("subscriptions.x", pa.string()), ("b", pa.string())])
    rows = [(1, "p", "x"), (1, None, "x"), (None, None, "x"), (2, "shard", "y"), (None, "p", "y")]
    table = pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
    )
    found = gathered(run(spark.createDataFrame(table), shards, ["a", "subscriptions.x"]))
    assert {key: sorted(ids) for key, ids in found.items()} == {
        (1, "p"): [1, 3],
        (1, None): [1, 3],
        (None, None): [3, 4],
        (2, "shard"): [2],
        (None, "p"): [4],
    }


@spark_test
def test_no_events_and_events_without_attributes(spark: Any, tmp_path: Path) -> None:
    shards = cut({1: "a = 1", 2: "TRUE", 3: "a = 3"}, tmp_path / "parts", n=2, everywhere=())
    nothing = spark.range(0).selectExpr("id", "id AS a")
    assert gathered(run(nothing, shards)) == {}
    assert gathered(run(spark.range(3), shards)) == {0: [2], 1: [2], 2: [2]}


@spark_test
def test_an_index_that_is_all_home_has_no_shards_to_visit(spark: Any, tmp_path: Path) -> None:
    shards = cut({1: "a = 1", 2: "a = 2"}, tmp_path / "parts", n=0)
    frame = spark.createDataFrame([(0, 1), (1, 2), (2, 3)], "id int, a int")
    assert gathered(run(frame, shards)) == {0: [1], 1: [2], 2: []}


@spark_test
@pytest.mark.parametrize("everywhere", [(0, 1, 2), ()])
def test_what_is_wrong_with_an_event_is_told_once(
    spark: Any, tmp_path: Path, everywhere: tuple[int, ...]
) -> None:
    """As the whole index tells it: by all attributes and kinds, and a column hides a document."""
    catalog = {
        1: "a = 1",
        2: "a = 2",
        3: "b = 'x'",
        4: "b = 'x' AND a = 1",
        5: "c IS NULL",
        6: "a = TRUE",
        7: "d LIKE '%x'",
        8: "t > TIMESTAMP '2026-01-01 00:00:00'",
        9: "own < 5",
    }
    shards = cut(catalog, tmp_path / "parts", n=3, everywhere=everywhere)
    texts = [
        '{"a": 1, "b": "x"}',
        "{",
        None,
        '{"a": "1", "b": "x"}',
        "[1]",
        '{"c": 1}',
        '{"a": true, "b": 1}',
        '{"d": 5, "b": "x"}',
        '{"t": 7, "a": 2}',
        '{"own": "hidden", "a": 1}',
        '{"c": [1], "e": {}}',
    ]
    rows = [(at, text, None if at % 2 else at) for at, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "id int, doc string, own int")
    table = run(frame, shards, documents=["doc"]).toArrow().sort_by("id")
    own = pa.array([row[2] for row in rows], pa.int32())
    batch = pa.table({"doc": pa.array(texts), "own": own})
    whole = bittern.Matcher(bittern.Index.build(catalog)).match(batch, json="doc")
    assert [row for row, _ in whole.rejects] == [1, 4]
    assert [row for row, _ in whole.mistyped] == [3, 6, 7, 8]
    told = dict(whole.rejects + whole.mistyped)
    assert table["rejected"].to_pylist() == [told.get(row) for row in range(len(texts))]
    assert [sorted(ids) for ids in table["subscriptions"].to_pylist()] == whole.to_pylist()
    pieces = run(frame, shards, documents=["doc"], gather=False).filter("rejected IS NOT NULL")
    assert sorted(row.id for row in pieces.collect()) == sorted(told)


def _unreadable_variants(spark: Any) -> Any:
    """One event, {"a": 1, "b": a string that is no UTF-8}."""
    mark = {b"variant": b"true"}
    parts = [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata=mark),
    ]
    value, names = bytes.fromhex("02020001000204 0c01 05ff"), bytes.fromhex("010200010261 62")

    def make(batches: Any) -> Any:  # inside, so that workers need not import this module
        for batch in batches:
            columns = [pa.array([each] * batch.num_rows, pa.binary()) for each in (value, names)]
            variants = pa.StructArray.from_arrays(columns, fields=parts)
            yield pa.RecordBatch.from_arrays([batch.column(0), variants], names=["id", "v"])

    return spark.range(1).mapInArrow(make, "id bigint, v variant")


@spark_test
def test_an_unreadable_variant_matches_nothing_in_any_part(spark: Any) -> None:
    """Only the shards look at ``b``, and only home would match."""
    texts = {k: f"a = {k} AND b <> 'x'" for k in range(1, 40)} | {99: "z IS NULL"}
    rows = spark.createDataFrame(list(texts.items()), "id bigint, expression string")
    found = bittern.spark.match(
        _unreadable_variants(spark), rows, event_id="id", rejects=True, shards=3
    )
    assert [tuple(row) for row in found.collect()] == [
        (0, [], "a string of the variant is not valid UTF-8")
    ]


@spark_test
def test_a_value_that_no_part_compares_is_told_and_that_some_part_compares_is_not(
    spark: Any,
) -> None:
    texts = {1: "a = 1", 2: "a > 0", 3: "c = 1", 4: "c > 5", 5: "a = 'x'"}
    rows = spark.createDataFrame(list(texts.items()), "id bigint, expression string")
    built = bittern.spark.build(rows, shards=3)
    events = spark.sql("""SELECT 7 AS id, '{"c": "x"}' AS j UNION ALL SELECT 8, '{"a": "y"}'""")
    found = bittern.spark.match(events, built, event_id="id", json="j", rejects=True)
    assert {row.id: row.rejected for row in found.collect()} == {
        7: "c is a string, and subscriptions compare it with numbers",
        8: None,
    }


@spark_test
def test_events_with_the_same_id_are_two_rows(spark: Any, tmp_path: Path) -> None:
    shards = cut({1: "a = 1", 2: "a = 2", 3: "a > 0"}, tmp_path / "parts", n=2)
    twins = spark.createDataFrame([(1, 5), (2, 6), (2, 5), (2, 5)], "a int, id int")
    found = [(row.id, sorted(row.subscriptions)) for row in run(twins, shards).collect()]
    assert sorted(found) == [(5, [1, 3]), (5, [2, 3]), (5, [2, 3]), (6, [2, 3])]


@spark_test
def test_keys_that_spark_cannot_group_are_gathered(spark: Any, tmp_path: Path) -> None:
    shards = cut({1: "a = 1", 2: "a >= 0"}, tmp_path / "parts", n=2)
    loose = spark.range(3).selectExpr("map('a', id) AS m")
    found = {row.m["a"]: sorted(row.subscriptions) for row in run(loose, shards, ["m"]).collect()}
    assert found == {0: [2], 1: [1, 2], 2: [2]}


@spark_test
@pytest.mark.parametrize("gather", [False, True])
def test_a_stream_is_matched(
    spark: Any,
    tmp_path: Path,
    frame: Any,
    shards: Shards,
    expected: list[list[int]],
    *,
    gather: bool,
) -> None:
    source = str(tmp_path / "events")
    frame.repartition(3).write.parquet(source)
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(source)
    pieces = run(stream, shards, gather=gather)
    query = (
        pieces.selectExpr("id", "explode(subscriptions) AS subscription")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "matches"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE)
    found = Counter(map(tuple, spark.read.parquet(str(tmp_path / "matches")).collect()))
    assert found == Counter((id_, each) for id_, own in enumerate(expected) for each in own)


# -- the plan ------------------------------------------------------------------------------------

CATALOG = {1: "a = 1", 2: "a = 2 AND b = 'x'", 3: "a > 1", 4: "c.d < 0", 5: "a IS NULL"}


def test_the_plan_of_an_index_says_what_it_is(tmp_path: Path) -> None:
    index = bittern.Index.build(CATALOG)
    told = plan(index)
    assert (told.sharded, told.built, told.n_shards, told.tasks) == (False, True, 0, None)
    assert (told.subscriptions, told.columns, told.fan_out) == (5, None, None)
    assert told.nbytes == index.nbytes
    assert set(told.attributes or ()) == {"a", "b", "c.d"}
    text = str(told)
    assert text.startswith("whole; 5 subscriptions, ")
    assert "attributes in use: a, b, c.d" in text
    assert json.loads(json.dumps(told.to_dict()))["parts"][0]["subscriptions"] == 5

    identity = index.save(tmp_path / "index")
    told = plan(tmp_path / "index")
    assert told.parts[0].snapshot == identity
    assert f"snapshots come from {tmp_path / 'index'}" in str(told)
    assert identity[:12] in str(told)


def test_a_plan_refuses_what_match_would_refuse() -> None:
    with pytest.raises(OptionError, match=r"of the same, a bittern\.Index, .*, not int"):
        plan(5)
    with pytest.raises(OptionError, match="shards must be 'auto'"):
        plan(bittern.Index.build(CATALOG), shards=0)
    with pytest.raises(OptionError, match="events must be a Spark DataFrame"):
        plan(bittern.Index.build(CATALOG), events=pa.table({"a": [1]}))


@spark_test
def test_the_plan_of_events_with_columns_that_arrow_has_no_type_for(spark: Any) -> None:
    index = bittern.Index.build({1: "a = 1", 2: "t > 5"})
    events = spark.sql("SELECT 1 AS id, 1 AS a, 'x' AS t, make_interval(1) AS i")
    told = plan(index, events=events, event_id="id")
    assert told.left_out == ("i",)
    assert [reason.split()[0] for reason in told.mistyped] == ["t"]
    with pytest.raises(OptionError, match="'i' is interval, which cannot be passed to Python"):
        plan(index, events=events)


def test_the_plan_of_shards_without_events_goes_by_what_the_build_expected(tmp_path: Path) -> None:
    shards = cut(CATALOG, tmp_path / "parts", n=3, traffic=[0.9, 0.2, 0.1])
    told = plan(shards)
    assert told.fan_out is not None
    assert told.fan_out.mean == pytest.approx(1.2)
    assert told.fan_out.p99 is None
    assert [part.name for part in told.parts] == ["router", "home", "shard 0", "shard 1", "shard 2"]
    assert told.subscriptions == 5
    assert told.tasks == sum(part.tasks or 0 for part in told.parts) >= 6
    text = str(told)
    assert "sharded: 3 shards and home; 5 subscriptions" in text
    assert "an event visits 1.20 shards on average (as the build expected" in text
    assert "a shard has 1 B at least, 1 B on average, 1 B at most" in text
    many = plan(cut({id_: f"a = {id_}" for id_ in range(60)}, tmp_path / "many", n=20, home=False))
    assert "... and 8 more shards" in str(many)
    assert "home" not in str(many)


@spark_test
def test_the_plan_of_shards_routes_a_sample_of_the_events(spark: Any, tmp_path: Path) -> None:
    shards = cut(CATALOG, tmp_path / "parts", n=3, everywhere=(0,), traffic=[0.1, 0.1, 0.1])
    rows = [{"id": at, "a": at % 3, "c": {"d": 5, "e": 1}, "z": "?"} for at in range(30)]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    told = plan(shards, events=frame, event_id="id")
    routes = routed(shards, pa.Table.from_pylist(rows))
    sizes = [len(each) for each in routes]
    assert told.fan_out is not None
    assert told.fan_out.mean == pytest.approx(sum(sizes) / 30)
    assert (told.fan_out.p99, told.fan_out.most, told.fan_out.events) == (
        max(sizes),
        max(sizes),
        30,
    )
    visits = Counter(shard for each in routes for shard in each)
    assert [part.traffic for part in told.parts[2:]] == [visits[at] / 30 for at in range(3)]
    assert (told.columns, told.left_out) == (("id", "a", "c"), ("z",))
    text = str(told)
    assert "columns that cross into Python: id, a, c" in text
    assert "columns that do not: z" in text
    assert "(of 30 events)" in text
    assert plan(shards, events=frame.limit(0), event_id="id").fan_out.events == 0
    assert plan(shards, events=frame).left_out == ()


@spark_test
def test_the_plan_of_subscriptions_is_an_estimate_by_the_rule_of_the_build(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bittern.spark.subscriptions import building

    rows = [(at, f"a = {at}") for at in range(200)]
    frame = spark.createDataFrame(rows, "id long, expression string")
    nbytes = building.estimated_bytes(200, sum(len(text) for _, text in rows))
    told = plan(frame)
    assert (told.sharded, told.built, told.subscriptions, told.nbytes) == (
        False,
        False,
        200,
        nbytes,
    )
    assert "within the 4.0 GiB that one index may have (spark.bittern.shard.bytes)" in str(told)
    told = plan(frame, shards=5)
    assert (told.sharded, told.n_shards, told.tasks) == (True, 5, 10)
    assert "because shards=5 was asked for" in str(told)
    assert "sharded: 5 shards; 200 subscriptions, about " in str(told)
    spark.conf.set("spark.bittern.shard.bytes", str(nbytes // 3))
    try:
        told = plan(frame)
    finally:
        spark.conf.unset("spark.bittern.shard.bytes")
    assert (told.sharded, told.n_shards) == (True, 4)
    assert "because that is more than the" in str(told)
    assert told.attributes is None
