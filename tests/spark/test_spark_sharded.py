"""Sharded matching is matching: whatever the cut, the routes and the tasks, one answer.

Most catalogs are cut at random here, and routers made by hand: a shard's regions are its own
expressions (every visit finds something), or TRUE (events visit in vain). How cuts are really made
is in ``test_spark_shard_build.py``.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import answers
import bittern
import strategies
from bittern.engine.sharding.regions import REGION_BITS, compared, witnesses
from bittern.errors import OptionError
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.spark.attributes import project
from bittern.spark.operator import FIRST
from bittern.spark.planning import plan
from bittern.spark.sharded import matching as sharded
from bittern.spark.sharded.gathering import check_identified
from bittern.spark.sharded.matching import Router, Visitor, match_shards, salts
from bittern.spark.sharded.shards import Shards
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
    routed_by = bittern.Index.build(regions).rank.attribute_names()
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
        routed_by=tuple(routed_by),
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
    return match_shards(
        projected, list(keys), shards, limit=limit, json=documents, gather=gather, counted=True
    )


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


def routed(shards: Shards, events: pa.Table) -> tuple[list[list[int]], list[str | None]]:
    batch = events.to_struct_array().combine_chunks()
    found = Router(shards.router, ()).route(batch)
    return found.field("shards").to_pylist(), found.field("rejected").to_pylist()


def visit(
    shards: Shards, events: pa.Table, visits: Sequence[tuple[int, int | None]], **options: Any
) -> pa.Table:
    """Visits (row, shard) as one batch through the visitor; an event's first comes first."""
    rows = [row for row, _ in visits]
    firsts = [row not in rows[:at] for at, row in enumerate(rows)]
    taken = events.take(rows).combine_chunks()
    columns = [
        *taken.columns,
        pa.array([shard for _, shard in visits], pa.int32()),
        pa.array(firsts, pa.bool_()),
        pa.array([True] * len(rows)),
        pa.nulls(len(rows), pa.string()),
    ]
    names = [f"c{at}" for at in range(taken.num_columns)]
    names += ["shard", FIRST, "is_readable", "rejected"]
    table = pa.table(columns, names=names)
    visitor = Visitor(shards, tuple(events.column_names), ("id",), (), options.get("limit"))
    found = list(visitor(iter(table.to_batches())))
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("home", [True, False])
def test_routes_and_visits_find_each_match_once(tmp_path: Path, *, home: bool) -> None:
    """Several shards in one batch, in any order: what Spark makes of tasks does not matter."""
    trees = strategies.sample(strategies.typed_expressions(), 60)
    events = strategies.sample(strategies.typed_events(), 60)
    catalog = {f"s{at}": print_expression(tree) for at, tree in enumerate(trees)}
    shards = cut(catalog, tmp_path / "parts", home=home)
    table = strategies.as_arrow(events).append_column("id", [list(range(len(events)))])
    routes, rejected = routed(shards, table)
    assert all(list(each) == sorted(set(each)) for each in routes)
    assert set(rejected) == {None}
    visits = [(row, shard) for row, each in enumerate(routes) for shard in each or [None]]
    random.Random(7).shuffle(visits)
    found = visit(shards, table, visits)
    assert found.num_rows == len(visits)
    merged = Counter(
        (id_, subscription)
        for id_, ids in zip(
            found["c0"].to_pylist(), found["subscriptions"].to_pylist(), strict=True
        )
        for subscription in ids
    )
    expected = {
        (row, id_) for row, ids in enumerate(answers.expected(catalog, events)) for id_ in ids
    }
    assert merged == Counter(expected)
    # What a lost executor's tasks send again is the same, in whatever order they get it.
    places = random.Random(8).sample(range(len(events)), len(events))
    again = visit(shards, table, sorted(visits, key=lambda each: places[each[0]]))
    assert sorted(map(repr, again.to_pylist())) == sorted(map(repr, found.to_pylist()))
    expressions = len(set(catalog.values()))
    for ids, candidates in zip(
        found["subscriptions"].to_pylist(), found["candidates"].to_pylist(), strict=True
    ):
        # Texts that mean the same are one candidate.
        different = {print_expression(normal_form(parse(catalog[id_]))) for id_ in ids}
        assert len(different) <= candidates + 1 <= expressions * 9


def test_a_visitor_of_no_rows_and_of_rows_that_go_nowhere(tmp_path: Path) -> None:
    shards = cut({1: "a > 1", 2: "a > 2"}, tmp_path / "parts", home=False)
    table = pa.table({"id": pa.array([5, 6]), "a": pa.array([9, 9])})
    assert visit(shards, table, [(0, None), (1, None)])["subscriptions"].to_pylist() == [[], []]
    ranked = visit(shards, table, [(0, None)], limit=3)["subscriptions"]
    assert ranked.type.value_type.names == ["heavy", "id"]
    visitor = Visitor(shards, ("id", "a"), ("id",), (), None)
    empty = pa.table(
        {
            "c0": table["id"],
            "c1": table["a"],
            "shard": pa.array([0, 0], pa.int32()),
            FIRST: pa.array([True, True]),
            "is_readable": pa.array([True, True]),
            "rejected": pa.nulls(2, pa.string()),
        }
    )
    empty = empty.combine_chunks().to_batches()[0].slice(0, 0)
    assert sum(batch.num_rows for batch in visitor(iter([empty]))) == 0


def test_gathering_needs_columns_that_identify_an_event() -> None:
    check_identified(identified=True)
    with pytest.raises(OptionError, match="name the columns that identify an event"):
        check_identified(identified=False)


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
def test_a_visit_goes_to_the_same_task_whatever_the_order_of_events(
    spark: Any, frame: Any, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage that is recomputed in another order must not move a visit."""
    from pyspark.sql import functions as F

    monkeypatch.setattr(sharded, "n_tasks", lambda *_: 9)

    def tasks(events: Any) -> dict[Any, int]:
        visits = sharded._visits(events, shards, ())
        place = events.columns.index("id")
        rows = visits.select(f"c{place}", "shard", F.spark_partition_id()).collect()
        assert len({row[:2] for row in rows}) == len(rows)
        return {tuple(row[:2]): row[2] for row in rows}

    found = tasks(frame)
    assert found == tasks(frame.orderBy(F.desc("id")).repartition(3))
    by_shard: dict[Any, set[int]] = {}
    for (_, shard), task in found.items():
        by_shard.setdefault(shard, set()).add(task)
    salted = salts(shards.traffic, 9)
    starts = np.cumsum([0, *salted])
    for shard, own in by_shard.items():
        if shard is not None:
            assert own <= set(range(starts[shard], starts[shard + 1]))
    assert len(by_shard[1]) == salted[1] > 3


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
def test_only_what_regions_look_at_crosses_where_nothing_is_to_be_judged(
    spark: Any, tmp_path: Path
) -> None:
    """Without documents a column that home alone looks at is no concern of the router."""
    catalog = {1: "a = 1", 2: "b = 'x'"}
    shards = replace(cut(catalog, tmp_path / "parts", n=1, everywhere=()), routed_by=("a",))
    schema = spark.sql("SELECT 1 AS id, 1 AS a, 'x' AS b, '{}' AS doc").schema
    looked_at = partial(sharded._looked_at, case_sensitive=True)
    assert list(looked_at(schema, shards, [])) == ["a"]
    assert list(looked_at(schema, shards, ["doc"])) == ["a", "b", "doc"]
    variant = spark.sql("SELECT 1 AS a, 'x' AS b, parse_json('{}') AS v").schema
    assert list(looked_at(variant, shards, [])) == ["a", "b", "v"]


@spark_test
def test_events_with_the_same_id_fail_the_job_instead_of_being_merged(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors import PySparkException

    shards = cut({1: "a = 1", 2: "a = 2"}, tmp_path / "parts", n=2)
    twins = spark.createDataFrame(
        [(1, 5, "x"), (2, 6, "x"), (2, 5, "x")], "a int, id int, k string"
    )
    found = run(twins, shards, ["id", "k"])
    for read in (found.collect, found.count, found.select("id").collect):
        with pytest.raises(PySparkException, match=r'two events have \{"id":5,"k":"x"\}: name col'):
            read()
    assert run(twins, shards, ["id", "k"], gather=False).count() >= 3


@spark_test
def test_what_cannot_be_gathered_is_refused_on_the_driver(spark: Any, tmp_path: Path) -> None:
    shards = cut({1: "a = 1"}, tmp_path / "parts", n=1)
    loose = spark.range(1).selectExpr(
        "map('a', id) AS m", "array(named_struct('v', parse_json('1'))) AS v", "id AS a"
    )
    for key in ("m", "v"):
        with pytest.raises(OptionError, match=f"cannot group by '{key}'"):
            run(loose, shards, [key])
        assert run(loose, shards, [key], gather=False).count() == 1
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "value AS a")
    with pytest.raises(OptionError, match="explode=True"):
        run(stream, shards)


@spark_test
def test_a_stream_is_matched_in_pieces(
    spark: Any, tmp_path: Path, frame: Any, shards: Shards, expected: list[list[int]]
) -> None:
    source = str(tmp_path / "events")
    frame.repartition(3).write.parquet(source)
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(source)
    pieces = run(stream, shards, gather=False)
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
    routes, _ = routed(shards, pa.Table.from_pylist(rows))
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
