"""Changes of rows on Spark: every form, beside Spark's filters and the oracle; pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bittern
import bittern.spark
import oracle
import strategies
from bittern.errors import OptionError
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.spark.changes import BeforeAfter, ChangeFeed, Debezium
from bittern.spark.streaming import Edge, Files, Pipeline, Throttle

pytestmark = [pytest.mark.spark, pytest.mark.smoke]

WISHES = {
    "cheap": "price < 10",
    "red": "colour = 'red'",
    "none": "price IS NULL",
    "double": "price * 2 > 15",
}
ROW = "struct<price: double, colour: string>"
ROWS = [
    (1, (8.0, "red"), (12.0, "red")),
    (2, None, (5.0, "tan")),
    (3, (7.0, None), None),
    (4, None, None),
    (5, (None, "red"), (None, "tan")),
    (6, (8.0, "red"), (8.0, "red")),
]
TOLD = {
    (1, "leave", "cheap"), (1, "stay", "red"), (1, "stay", "double"),
    (2, "enter", "cheap"),
    (3, "leave", "cheap"),
    (5, "leave", "red"), (5, "stay", "none"),
    (6, "stay", "cheap"), (6, "stay", "red"), (6, "stay", "double"),
}  # fmt: skip


def triples(frame: Any) -> set[tuple[Any, ...]]:
    rows = [tuple(row) for row in frame.select("id", "change", "subscription").collect()]
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.fixture(scope="module")
def changes(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, f"id long, before {ROW}, after {ROW}").repartition(2)


def as_row(row: Any) -> dict[str, Any] | None:
    return row and dict(zip(("price", "colour"), row, strict=True))


def texts(spark: Any) -> Any:
    rows = [(at, *(row and json.dumps(as_row(row)) for row in sides)) for at, *sides in ROWS]
    return spark.createDataFrame(rows, "id long, before string, after string")


def envelope(old: Any, new: Any) -> str | None:
    """As Debezium writes it; a change of nothing into nothing is a tombstone."""
    if old is None and new is None:
        return None
    op = "c" if old is None else "d" if new is None else "u"
    return json.dumps({"op": op, "before": as_row(old), "after": as_row(new), "ts_ms": 5})


def feed(spark: Any) -> Any:
    """Delta's change feed of the same changes, each in a version of its own."""
    rows = []
    for at, old, new in ROWS:
        if old is not None:
            rows.append((at, *old, "update_preimage" if new else "delete", at))
        if new is not None:
            rows.append((at, *new, "update_postimage" if old else "insert", at))
    schema = "id long, price double, colour string, _change_type string, _commit_version long"
    return spark.createDataFrame(rows, schema).repartition(3)


def test_structs_and_what_travels_with_them(spark: Any, changes: Any) -> None:
    found = bittern.spark.match_changes(changes, WISHES, event_id="id", explode=True)
    assert found.columns == ["id", "change", "subscription"]
    assert triples(found) == TOLD
    lists = bittern.spark.match_changes(changes, WISHES, event_id="id", payload="*", rejects=True)
    assert lists.columns == ["id", "before", "after", "change", "subscriptions", "rejected"]
    rows = lists.collect()
    assert {(r.id, r.change, each) for r in rows for each in r.subscriptions} == TOLD
    assert {row.id for row in rows} == {1, 2, 3, 5, 6}
    assert all((row.before, row.after) == ROWS[row.id - 1][1:] for row in rows)
    only = BeforeAfter(kinds=["leave"])
    found = bittern.spark.match_changes(changes, WISHES, changes=only, event_id="id", explode=True)
    assert triples(found) == {each for each in TOLD if each[1] == "leave"}


@pytest.mark.parametrize("form", ["texts", "variants", "maps", "envelopes", "a feed", "renamed"])
def test_every_form_tells_the_same(spark: Any, changes: Any, form: str) -> None:
    wishes = {**WISHES}
    told, given = TOLD, BeforeAfter()
    if form == "texts":
        events = texts(spark)
    elif form == "variants":
        events = texts(spark).selectExpr(
            "id", "parse_json(before) before", "parse_json(after) after"
        )
    elif form == "maps":
        for name in ("red", "double"):
            del wishes[name]
        told = {each for each in TOLD if each[2] in wishes}
        entry = "if({0} IS NULL, NULL, map('price', {0}.price)) {0}"
        events = changes.selectExpr("id", entry.format("before"), entry.format("after"))
    elif form == "envelopes":
        rows = [(at, envelope(*sides)) for at, *sides in ROWS]
        events, given = spark.createDataFrame(rows, "id long, value string"), Debezium()
    elif form == "a feed":
        events, given = feed(spark), ChangeFeed("id")
    else:
        events = changes.selectExpr("id", "before AS `o.ld`", "after AS price")
        given = BeforeAfter("o.ld", "price")
    found = bittern.spark.match_changes(events, wishes, changes=given, explode=True)
    assert triples(found) == told


def test_random_changes_agree_with_two_filters_and_the_oracle(spark: Any) -> None:
    """NULL everywhere: rows that are missing, and attributes."""
    trees = strategies.sample(strategies.typed_expressions(), 60)
    rows = strategies.sample(strategies.typed_events(), 80)
    before, after = rows[:40], rows[40:]
    for at in range(0, 40, 5):
        after[at] = {**before[at], **dict(list(after[at].items())[:2])}
    missing = [[at % 7 == 0 for at in range(40)], [at % 11 == 3 for at in range(40)]]
    sides = [
        pa.StructArray.from_arrays(table.columns, fields=list(table.schema), mask=pa.array(mask))
        for table, mask in zip(
            (
                strategies.as_arrow(side).combine_chunks().to_batches()[0]
                for side in (before, after)
            ),
            missing,
            strict=True,
        )
    ]
    table = pa.table({"id": range(40), "before": sides[0], "after": sides[1]})
    frame = spark.createDataFrame(table).repartition(3)
    wishes = {f"s{at}": print_expression(tree) for at, tree in enumerate(trees)}
    index = bittern.Index.build(wishes)
    found = triples(bittern.spark.match_changes(frame, index, event_id="id", explode=True))

    held = []
    for side in ("before", "after"):
        asked = frame.where(f"{side} IS NOT NULL").select("id", f"{side}.*")
        answers = asked.selectExpr("id", *(f"({text}) AS {name}" for name, text in wishes.items()))
        held.append(
            {(row["id"], name) for row in answers.collect() for name in wishes if row[name] is True}
        )
    truth = {(*each, "stay") for each in held[0] & held[1]}
    truth |= {(*each, "leave") for each in held[0] - held[1]}
    truth |= {(*each, "enter") for each in held[1] - held[0]}
    assert found == {(at, change, name) for at, name, change in truth}
    for at in range(40):
        for name, text in wishes.items():
            tree = parse(text)
            was, now = (
                not gone[at] and oracle.matches(tree, rows_[at])
                for rows_, gone in zip((before, after), missing, strict=True)
            )
            kinds = {(True, True): "stay", (True, False): "leave", (False, True): "enter"}
            kind = kinds.get((was, now))
            assert {k for k in kinds.values() if (at, k, name) in found} == ({kind} - {None})


def test_what_cannot_be_read_is_in_no_kind(spark: Any) -> None:
    events = spark.createDataFrame(
        [
            (1, '{"op": "u", "after": {"price": 5}}'),
            (2, '{"op": "u", "before": {"price": 5}, "after": {"price": 1.00000000000000000001}}'),
            (3, '{"op": "c", "after": {"price": 5}'),
            (4, '{"price": 5}'),
            (5, '{"op": "d", "before": 7}'),
            (6, '{"payload": {"op": "r", "after": "{\\"price\\": 5}"}, "schema": {}}'),
            (7, '{"op": "t"}'),
            (8, ""),
            (9, '{"op": "c", "after": {"price": "five"}}'),
        ],
        "id long, value string",
    )
    wishes = {"one": "price = 1.00000000000000000001", "five": "price = 5"}
    options = {"changes": Debezium(), "event_id": "id", "explode": True, "rejects": True}
    rows = bittern.spark.match_changes(events, wishes, **options).collect()
    assert {(row.id, row.change, row.subscription) for row in rows if row.change} == {
        (2, "enter", "one"), (2, "leave", "five"), (6, "enter", "five"),
    }  # fmt: skip
    reasons = {row.id: row.rejected for row in rows if row.rejected}
    assert reasons.keys() == {1, 3, 4, 5, 9}
    assert "REPLICA IDENTITY FULL" in reasons[1]
    assert "has no op" in reasons[4]
    assert reasons[5].startswith("before: ")
    assert reasons[9].startswith("after: price")

    again = spark.createDataFrame([(1, 5.0, "insert", 3), (1, 6.0, "insert", 3), (2, 5.0, "?", 3)])
    again = again.toDF("id", "price", "_change_type", "_commit_version")
    options["changes"] = ChangeFeed("id")
    rows = bittern.spark.match_changes(again, wishes, **options).collect()
    assert {row.id: row.rejected.split(" ")[0] for row in rows} == {1: "several", 2: "its"}


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("1 id", {}, "the changes have no column 'before'; they have id"),
        ("1 id, 1 before, 2 after", {}, "a row must be a struct, a variant, a map or JSON text"),
        ("1 id, '{}' before, 2 after", {}, "must have the same type"),
        ("1 id, 2 value", {"changes": Debezium()}, "must be JSON text, not int: cast it"),
        ("1 id", {"changes": ChangeFeed("id")}, "the changes have no column '_change_type'"),
        ("1 id", {"changes": "before"}, "changes must be BeforeAfter"),
        ("'{}' before, '{}' after", {}, "event_id names no column"),
        ("1 change, '{}' before, '{}' after", {}, "'change' has the name of an output column"),
    ],
)
def test_what_is_no_change_is_told(
    spark: Any, columns: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        bittern.spark.match_changes(spark.sql(f"SELECT {columns}"), WISHES, **options)


def test_options_of_forms() -> None:
    with pytest.raises(OptionError, match="kinds must be"):
        BeforeAfter(kinds=["entered"])
    with pytest.raises(OptionError, match="kinds must name some of"):
        Debezium(kinds=[])
    with pytest.raises(OptionError, match="key names no column"):
        ChangeFeed()


# Pipelines


class World:
    """A catalog, a folder of incoming Parquet files, and a checkpoint."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.catalog = bittern.Catalog(folder / "catalog.db")
        self.catalog.load([{"id": id_, "expression": text} for id_, text in WISHES.items()])
        (folder / "in").mkdir()

    def feed(self, frame: Any) -> None:
        number = len(list((self.folder / "in").iterdir()))
        hidden = self.folder / f".{number}.parquet"
        pq.write_table(frame.toArrow(), hidden)
        hidden.rename(self.folder / "in" / f"{number}.parquet")

    def run(self, schema: Any, checkpoint: str = "checkpoint", **options: Any) -> None:
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        Pipeline(
            reader.parquet(str(self.folder / "in")),
            self.catalog,
            Files(self.folder / f"{checkpoint} matches"),
            self.folder / checkpoint,
            available_now=True,
            **options,
        ).run()

    def read(self, name: str) -> Any:
        return self.spark.read.parquet(str(self.folder / name))


@pytest.fixture
def world(spark: Any, tmp_path: Path) -> Any:
    made = World(spark, tmp_path)
    yield made
    made.catalog.close()


def test_a_pipeline_of_changes(world: World, changes: Any) -> None:
    world.feed(changes)
    options = {"changes": BeforeAfter(), "event_id": "id"}
    world.run(changes.schema, rejects=world.folder / "rejects", payload="after", **options)
    found = world.read("checkpoint matches")
    assert found.columns == ["id", "after", "change", "subscription", "version", "batch"]
    assert triples(found) == TOLD
    assert world.read("rejects").columns == ["id", "after", "rejected", "batch"]
    # A step in between, and only some kinds.
    options["changes"] = BeforeAfter(kinds=["enter", "leave"])
    after = [Throttle(1, "1 hour", by="subscription", order="id")]
    world.run(changes.schema, "second", after=after, **options)
    assert triples(world.read("second matches")) == {(1, "leave", "cheap"), (5, "leave", "red")}
    world.catalog.add("dear", "price > 9")
    world.feed(
        changes.limit(0).union(world.spark.sql(f"SELECT 9L, NULL, CAST((12D, NULL) AS {ROW})"))
    )
    world.run(changes.schema, **options)
    news = world.read("checkpoint matches").where("batch = 1")
    assert triples(news) == {(9, "enter", "dear"), (9, "enter", "double")}


def test_pipelines_of_envelopes_and_of_a_feed(world: World, spark: Any) -> None:
    lines = [(at, envelope(*sides)) for at, *sides in ROWS] + [(7, '{"op": '), (8, "")]
    events = spark.createDataFrame(lines, "id long, value string")
    world.feed(events)
    rejects = world.folder / "rejects"
    world.run(events.schema, changes=Debezium(), event_id="id", rejects=rejects)
    assert triples(world.read("checkpoint matches")) == TOLD
    ((at, text, why, batch),) = map(tuple, world.read("rejects").collect())
    assert (at, text, why, batch) == (7, '{"op": ', "the text ends too early", 0)

    (world.folder / "in" / "0.parquet").unlink()
    world.feed(feed(spark))
    world.run(feed(spark).schema, "second", changes=ChangeFeed("id"))
    assert triples(world.read("second matches")) == TOLD


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"json": "before"}, "json cannot be given for changes of rows"),
        ({"limit": 3}, "limit cannot be given for changes of rows"),
        ({"history": True}, "history cannot be given for changes of rows"),
        ({"after": [Edge("id")]}, "an Edge cannot follow changes of rows"),
        ({"event_id": "batch"}, "'batch' has the name of an output column"),
        ({"changes": True}, "changes must be BeforeAfter"),
    ],
)
def test_what_does_not_go_with_changes(world: World, options: dict[str, Any], said: str) -> None:
    schema = f"id long, batch long, before {ROW}, after {ROW}"
    with pytest.raises(OptionError, match=said):
        world.run(schema, **{"changes": BeforeAfter(), "event_id": "id", **options})
