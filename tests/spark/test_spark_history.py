"""Events of a batch compared with documents: on Spark, and in the process that a task runs in."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bittern
import bittern.spark
import oracle
import strategies
from bittern.catalog.catalog import Catalog
from bittern.engine.live.delta import State
from bittern.errors import HistoryError, OptionError, SubscriptionError
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.spark.history import remembered
from bittern.spark.history.remembered import HistoryMatcher, Remembered, joins_at, moved_on

Event = Mapping[str, Any]
Found = dict[int, list[int]]

WISHES = {
    1: "EXISTS d (d.isbn = isbn AND d.price > price)",
    2: "FORALL d (d.isbn != isbn)",
    3: "price < 10 AND EXISTS d IN LAST 2 (d.shop = shop)",
    4: "price < 10",
}
BOOKS = "id long, isbn string, price double, shop string"
DOCUMENTS = [
    {"isbn": "a", "price": 9.0, "shop": "x"},
    {"isbn": "b", "price": 20.0, "shop": "y"},
    {"isbn": None, "price": None, "shop": "z"},
]
EVENTS = [
    {"id": 1, "isbn": "a", "price": 5.0, "shop": "y"},
    {"id": 2, "isbn": "c", "price": 7.0, "shop": "x"},
    {"id": 3, "isbn": "c", "price": 6.0, "shop": "x"},
    {"id": 4, "isbn": "b", "price": 30.0, "shop": "z"},
    {"id": 5, "isbn": None, "price": 1.0, "shop": "z"},
]


def expected(
    texts: Mapping[int, str],
    events: Sequence[Event],
    before: Sequence[Event],
    *,
    in_order: bool = False,
) -> Found:
    """Nested loops, by the event's id."""
    trees = {number: parse(text) for number, text in texts.items()}
    seen, found = list(before), {}
    for event in events:
        found[event["id"]] = [n for n, tree in trees.items() if oracle.matches(tree, event, seen)]
        if in_order:
            seen.append(event)
    return found


def arrays(frame: Any) -> Found:
    rows = frame.collect()
    found = {row["id"]: sorted(row["subscriptions"]) for row in rows}
    assert len(found) == len(rows)
    return found


# -- in a process -------------------------------------------------------------------------------


def state_of(texts: Mapping[int, str]) -> State:
    index = bittern.Index.build(dict(texts))
    return State.over(index)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """What this process reads, as (name of a part, rows passed over), from an empty memory on."""
    reads: list[tuple[str, int]] = []
    genuine = remembered._documents

    def noted(part: str, start: int, *rest: Any) -> Any:
        reads.append((Path(part).name, start))
        return genuine(part, start, *rest)

    monkeypatch.setattr(remembered, "_documents", noted)
    monkeypatch.setattr(remembered, "_held", None)
    yield reads
    remembered._held = None


@pytest.fixture
def part(tmp_path: Path) -> Callable[..., str]:
    def written(name: str, *rows: Event) -> str:
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), tmp_path / name)
        return str(tmp_path / name)

    return written


def matched(
    state: State, of: Remembered, events: Sequence[Event], *, in_order: bool = False
) -> Found:
    matcher = HistoryMatcher(state, of, in_order=in_order)
    found = matcher.match(pa.Table.from_pylist(list(events)), limit=None, json=of.json)
    return dict(zip((e["id"] for e in events), map(sorted, found.to_pylist()), strict=True))


def test_a_part_is_read_once_by_a_process(read: list[Any], part: Callable[..., str]) -> None:
    state = state_of(WISHES)
    parts = tuple(part(f"p{n}", document) for n, document in enumerate(DOCUMENTS))
    for n in (1, 1, 3, 3):
        assert matched(state, Remembered(parts[:n]), EVENTS) == expected(
            WISHES, EVENTS, DOCUMENTS[:n]
        )
    assert read == [("p0", 0), ("p1", 0), ("p2", 0)]
    other = Remembered(parts[1:])
    assert matched(state, other, EVENTS) == expected(WISHES, EVENTS, DOCUMENTS[1:])
    assert matched(state, Remembered(), EVENTS) == expected(WISHES, EVENTS, [])
    assert read[3:] == [("p1", 0), ("p2", 0)]


def test_events_in_order_are_forgotten_by_the_next_task(
    read: list[Any], part: Callable[..., str]
) -> None:
    """The same task once more, one that died half way, and one that sees no events."""
    state, of = state_of(WISHES), Remembered((part("p", *DOCUMENTS),))
    ordered = expected(WISHES, EVENTS, DOCUMENTS, in_order=True)
    assert ordered != expected(WISHES, EVENTS, DOCUMENTS)
    assert matched(state, of, EVENTS, in_order=True) == ordered
    HistoryMatcher(state, of, in_order=True).match(EVENTS[:2], limit=None, json=())
    assert matched(state, of, EVENTS, in_order=True) == ordered
    assert matched(state, of, EVENTS) == expected(WISHES, EVENTS, DOCUMENTS)
    assert read == [("p", 0)] * 4


def test_events_in_order_go_on_from_batch_to_batch(part: Callable[..., str]) -> None:
    matcher = HistoryMatcher(state_of(WISHES), Remembered((part("p", *DOCUMENTS),)), in_order=True)
    found = [matcher.match([event], limit=None, json=()).to_pylist()[0] for event in EVENTS]
    ordered = expected(WISHES, EVENTS, DOCUMENTS, in_order=True)
    assert [sorted(each) for each in found] == list(ordered.values())


def test_what_was_matched_in_order_may_become_a_part(
    read: list[Any], part: Callable[..., str]
) -> None:
    state, before = state_of(WISHES), Remembered((part("p", *DOCUMENTS),))
    after = Remembered((*before.parts, part("q", *EVENTS)))
    joins = joins_at(before, [state.segments[0].index])
    matched(state, before, EVENTS, in_order=True)
    moved_on(joins, after, [state.segments[0].index])
    right = expected(WISHES, EVENTS, [*DOCUMENTS, *EVENTS])
    assert matched(state, after, EVENTS) == right
    assert read == [("p", 0)]
    moved_on(joins, Remembered(("elsewhere",)), [state.segments[0].index])
    assert matched(state, after, EVENTS) == right


def test_parts_made_of_others_are_known_by_numbers(
    read: list[Any], part: Callable[..., str]
) -> None:
    state = state_of(WISHES)
    a, b, c = (part(name, DOCUMENTS[n]) for n, name in enumerate("abc"))
    ab, whole = part("ab", *DOCUMENTS[:2]), part("abc", *DOCUMENTS)

    def check(parts: tuple[str, ...], numbers: tuple[int, ...], n: int, **more: Any) -> None:
        of = Remembered(parts, stamp="history", numbers=numbers, **more)
        assert matched(state, of, EVENTS) == expected(WISHES, EVENTS, DOCUMENTS[:n][-2:])

    check((a, b), (0, 1, 2), 2, keep=2)
    assert read == [("a", 0), ("b", 0)]
    check((ab, c), (0, 2, 3), 3, keep=2)
    check((b, c), (1, 2, 3), 3, keep=2)
    assert read[2:] == [("c", 0)]
    check((ab,), (0, 2), 2, keep=2)  # fewer than are there
    check((whole,), (0, 3), 3, keep=2)
    assert read[3:] == [("ab", 0), ("abc", 2)]
    everything = Remembered((whole,), stamp="history", numbers=(0, 3))
    assert matched(state, everything, EVENTS) == expected(WISHES, EVENTS, DOCUMENTS)
    later = Remembered(
        (c,), stamp="history", numbers=(2, 3)
    )  # without keep the others are too many
    assert matched(state, later, EVENTS) == expected(WISHES, EVENTS, DOCUMENTS[2:])
    other = Remembered((a,), stamp="other", numbers=(0, 1))
    assert matched(state, other, EVENTS) == expected(WISHES, EVENTS, DOCUMENTS[:1])


def test_only_columns_in_use_are_read_until_more_are_asked_for(
    read: list[Any], part: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Remembered((part("p", *DOCUMENTS),))
    seen: list[list[str]] = []
    genuine = remembered.History.append

    def append(self: Any, events: pa.RecordBatch, **options: Any) -> int:
        seen.append(events.schema.names)
        return genuine(self, events, **options)

    monkeypatch.setattr(remembered.History, "append", append)
    for text, columns in [
        ("EXISTS d (d.isbn = isbn)", ["isbn"]),
        ("EXISTS d (d.isbn = isbn AND d.price > 10)", ["isbn", "price"]),
        ("FORALL d (d.price > 10)", None),
        ("EXISTS d PER shop (price > 10)", ["shop"]),
        ("EXISTS d (price > 10)", ["isbn"]),  # any: it is there
    ]:
        texts = {1: text}
        assert matched(state_of(texts), of, EVENTS) == expected(texts, EVENTS, DOCUMENTS)
        if columns == ["isbn"] and len(seen) > 1:
            continue  # what is there has enough
        assert columns is None or seen[-1] == columns
    assert len(seen) == 3


def test_json_documents_and_what_cannot_be_read(read: list[Any], tmp_path: Path) -> None:
    texts = {1: "EXISTS d (d.isbn = isbn)", 2: "EXISTS d IN LAST 1 (d.isbn = isbn)"}
    rows = pa.table({"body": ['{"isbn": "a"}', '{"isbn": "b"}', '{"isbn'], "note": ["x", "y", "z"]})
    (tmp_path / "folder").mkdir()
    pq.write_table(rows.slice(1), tmp_path / "folder/2.parquet")
    pq.write_table(rows.slice(0, 1), tmp_path / "folder/1.parquet")
    (tmp_path / "folder/_SUCCESS").touch()
    of = Remembered((str(tmp_path / "folder"),), json=("body", "elsewhere"))
    matcher = HistoryMatcher(state_of(texts), of, in_order=False)
    events = pa.table({"body": ['{"isbn": "a"}', '{"isbn": "b"}', "["]})
    found = matcher.match(events, limit=None, json=["body"])
    assert found.to_pylist() == [[1], [1, 2], []]
    assert [row for row, _ in found.rejects] == [2]


def test_a_part_that_cannot_be_read_is_named_and_nothing_stays(
    read: list[Any], part: Callable[..., str], tmp_path: Path
) -> None:
    state, good = state_of(WISHES), part("good", *DOCUMENTS)
    bad = tmp_path / "bad"
    bad.write_bytes(b"PAR1 and then nothing")
    (tmp_path / "nested" / "day=1").mkdir(parents=True)
    for name, why in [
        ("bad", "not a parquet file"),
        ("nothing", "there is nothing at"),
        ("nested", "folders"),
    ]:
        with pytest.raises(HistoryError, match=f"cannot read the documents in .*{name}.*{why}"):
            matched(state, Remembered((good, str(tmp_path / name))), EVENTS)
        assert matched(state, Remembered((good,)), EVENTS) == expected(WISHES, EVENTS, DOCUMENTS)


def test_random_tasks_agree_with_nested_loops(read: list[Any], part: Callable[..., str]) -> None:
    """Several sets of subscriptions in turn, as versions of a catalog come and go."""
    before = [fitted(each) for each in strategies.sample(strategies.joined_events(), 30)]
    events = identified(strategies.sample(strategies.joined_events(), 20))
    files = []
    for n in range(3):
        table = as_table(before[n * 10 : n * 10 + 10])
        files.append(part(f"p{n}"))
        pq.write_table(table, files[-1])
    trees = strategies.sample(strategies.joined_expressions(), 60)
    for n, in_order in enumerate([False, True, True, False, False, True]):
        texts = {k: print_expression(tree) for k, tree in enumerate(trees[n * 10 : n * 10 + 10])}
        of = Remembered(tuple(files[: 1 + n % 3]))
        matcher = HistoryMatcher(state_of(texts), of, in_order=in_order)
        found = matcher.match(as_table(events), limit=None, json=())
        right = expected(texts, events, before[: 10 + n % 3 * 10], in_order=in_order)
        assert [sorted(each) for each in found.to_pylist()] == list(right.values())


def test_a_copy_lives_as_long_as_its_process(tmp_path: Path) -> None:
    """Cleaning the cache leaves it alone until then."""
    program = """if True:
        from pathlib import Path
        from bittern.spark.snapshots.cache_folder import clean
        from bittern.spark.history.files import _new_folder

        for folder in map(Path, (_new_folder("cache"), _new_folder("store"))):
            (folder / "part").touch()
            clean(older_than=0)
            print(folder, folder.is_dir())
    """
    environment = os.environ | {"BITTERN_CACHE_DIR": str(tmp_path / "cache")}
    told = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    copies = [Path(name) for name in told[::2]]
    assert told[1::2] == ["True", "True"]
    assert [copy.parent.name for copy in copies] == ["cache", "store"]
    assert not any((tmp_path / copy).exists() for copy in copies)


# -- random events in columns -------------------------------------------------------------------

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.float64()),
        ("b", pa.int64()),
        ("s", pa.string()),
        ("d", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("u", pa.bool_()),
        ("m", pa.decimal128(20, 4)),
        ("n", pa.struct([("x", pa.float64())])),
        ("y.z", pa.string()),
    ]
)


def fitted(event: Event) -> dict[str, Any]:
    """What of an event fits into these columns; the rest is missing."""
    return {name: _fit(event.get(name), SCHEMA.field(name).type) for name in SCHEMA.names[1:]}


def _fit(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        inner = value if isinstance(value, dict) else {}
        return {"x": _fit(inner.get("x"), kind.field("x").type)} if inner else None
    if isinstance(value, bool):
        return value if pa.types.is_boolean(kind) else None
    if pa.types.is_timestamp(kind) and type(value) is dt.date:
        return dt.datetime.combine(value, dt.time(), dt.UTC)
    if pa.types.is_timestamp(kind) and isinstance(value, dt.datetime):
        return value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) != pa.types.is_string(kind):
        return None
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def identified(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [{"id": number, **fitted(event)} for number, event in enumerate(events)]


def as_table(events: Sequence[Event]) -> pa.Table:
    return pa.Table.from_pylist([dict(event) for event in events], SCHEMA)


# -- on Spark -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def books(spark: Any) -> Any:
    return spark.createDataFrame([tuple(event.values()) for event in EVENTS], BOOKS).repartition(
        3, "id"
    )


@pytest.fixture(scope="module")
def before(spark: Any) -> Any:
    rows = [tuple(document.values()) for document in DOCUMENTS]
    return spark.createDataFrame(rows, "isbn string, price double, shop string").coalesce(1)


@pytest.fixture(scope="module")
def index() -> bittern.Index:
    return bittern.Index.build(WISHES)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:.* these comparisons are never true:UserWarning")
@pytest.mark.parametrize("in_order", [False, True])
def test_random_batches_agree_with_nested_loops(
    spark: Any, tmp_path: Path, *, in_order: bool
) -> None:
    trees = strategies.sample(strategies.joined_expressions(), 50)
    texts = {number: print_expression(tree) for number, tree in enumerate(trees)}
    past = [fitted(each) for each in strategies.sample(strategies.joined_events(), 25)]
    events = identified(strategies.sample(strategies.joined_events(), 40))
    history = spark.createDataFrame(as_table(past).drop_columns(["id"]))
    frame = spark.createDataFrame(as_table(events)).repartition(4)
    right = expected(texts, events, past, in_order=in_order)
    options: dict[str, Any] = {"event_id": "id", "order_by": "id" if in_order else None}
    built = bittern.Index.build(texts)
    found = bittern.spark.match(frame, built, history=history, **options)
    assert arrays(found) == right
    assert arrays(found) == right  # once more in workers that have been there
    history.coalesce(1).write.parquet(str(tmp_path / "history"))
    assert (
        arrays(bittern.spark.match(frame, built, history=tmp_path / "history", **options)) == right
    )


@pytest.mark.spark
def test_events_do_not_see_each_other_unless_in_order(
    books: Any, before: Any, index: bittern.Index
) -> None:
    match = bittern.spark.match
    together = match(books, index, event_id="id", history=before)
    assert arrays(together) == expected(WISHES, EVENTS, DOCUMENTS)
    assert together.rdd.getNumPartitions() == 3
    ordered = match(books, index, event_id="id", history=before, order_by="id")
    assert arrays(ordered) == expected(WISHES, EVENTS, DOCUMENTS, in_order=True)
    assert ordered.rdd.getNumPartitions() == 1
    alone = match(books, index, event_id="id", order_by=["id"])
    assert arrays(alone) == expected(WISHES, EVENTS, [], in_order=True)


@pytest.mark.spark
def test_order_of_arrival(spark: Any) -> None:
    """NULLs first, ties by the event's id, whatever the type of other keys."""
    index = bittern.Index.build({1: "EXISTS d IN LAST 1 (d.name = before)"})
    rows = [
        (1, None, "a", "-", {}),
        (2, None, "b", "a", {}),
        (3, 5, "c", "b", {}),
        (4, 5, "d", "c", {}),
        (5, 7, "e", "d", {}),
    ]
    columns = "id long, at int, name string, before string, more map<string, int>"
    events = spark.createDataFrame(rows, columns).orderBy("id", ascending=False)
    found = bittern.spark.match(events, index, order_by="at")
    assert arrays(found) == {1: [], 2: [1], 3: [1], 4: [1], 5: [1]}


@pytest.mark.spark
def test_history_is_in_the_order_that_the_frame_has(spark: Any) -> None:
    index = bittern.Index.build({n: f"EXISTS d IN LAST {n} (d.k = k)" for n in range(1, 5)})
    events = spark.createDataFrame([(k, k) for k in range(4)], "id long, k long")
    history = spark.createDataFrame([(k, -k) for k in range(4)], "k long, at long").repartition(3)
    match = bittern.spark.match
    # By ``at`` 3 is the oldest; in partitions of their own.
    assert arrays(match(events, index, event_id="id", history=history.orderBy("at"))) == {
        k: list(range(k + 1, 5)) for k in range(4)
    }
    assert arrays(match(events, index, event_id="id", history=history.orderBy("k"))) == {
        k: list(range(4 - k, 5)) for k in range(4)
    }


@pytest.mark.spark
def test_forms_of_documents(spark: Any, books: Any, before: Any, index: bittern.Index) -> None:
    """A document reads like an event of the same columns: variants, maps, JSON text."""
    right = expected(WISHES, EVENTS, DOCUMENTS)
    fields = "struct(isbn, price, shop)"
    for form, json in [
        ([f"to_variant_object({fields}) AS body"], ()),
        ([f"to_json({fields}) AS body"], "body"),
        (["map('isbn', isbn, 'shop', shop) AS body", "price"], ()),
    ]:
        events, history = books.selectExpr("id", *form), before.selectExpr(*form)
        found = bittern.spark.match(events, index, event_id="id", json=json, history=history)
        assert arrays(found) == right, form
    nothing = before.selectExpr("1 AS one")
    found = bittern.spark.match(books, index, event_id="id", history=nothing)
    assert arrays(found) == expected(WISHES, EVENTS, [{}, {}, {}])
    none = before.limit(0)
    found = bittern.spark.match(books, index, event_id="id", history=none)
    assert arrays(found) == expected(WISHES, EVENTS, [])


@pytest.mark.spark
def test_what_cannot_be_read_is_no_document(spark: Any) -> None:
    index = bittern.Index.build({1: "EXISTS d IN LAST 1 (d.k = k)", 2: "k = 'x'", 3: "k > 0"})
    texts = ['{"k": 1}', '{"k": 1}', '{"k"', '{"k": 1}', '{"k": "x"}']
    lines = spark.createDataFrame(list(enumerate(texts)), "id long, body string")
    found = bittern.spark.match(
        lines, index, event_id="id", json="body", rejects=True, order_by="id"
    ).collect()
    assert [sorted(row["subscriptions"]) for row in sorted(found)] == [[3], [1, 3], [], [1, 3], [2]]
    assert [row["rejected"] is None for row in sorted(found)] == [True, True, False, True, True]


@pytest.mark.spark
def test_limits_rows_metrics_and_files(
    spark: Any, books: Any, before: Any, index: bittern.Index, tmp_path: Path
) -> None:
    from pyspark.sql import Observation

    right = expected(WISHES, EVENTS, DOCUMENTS, in_order=True)
    past: dict[str, Any] = {"event_id": "id", "history": before, "order_by": "id"}
    n_matches = sum(map(len, right.values()))
    observation = Observation("history")
    rows = bittern.spark.match(books, index, explode=True, observe=observation, **past).collect()
    assert sorted(map(tuple, rows)) == [(e, s) for e, all_ in right.items() for s in all_]
    assert (observation.get["events"], observation.get["matches"]) == (len(EVENTS), n_matches)
    best = arrays(bittern.spark.match(books, index, limit=1, **past))
    assert best == {event: found[:1] for event, found in right.items()}
    written = bittern.spark.write(books, index, tmp_path / "out", **past)
    assert written.matches == n_matches
    assert arrays(spark.read.parquet(written.path)) == right


@pytest.mark.spark
def test_a_catalog_and_subscriptions_in_a_frame(
    spark: Any, books: Any, before: Any, tmp_path: Path
) -> None:
    right = {
        event: list(map(str, all_)) for event, all_ in expected(WISHES, EVENTS, DOCUMENTS).items()
    }
    with Catalog(tmp_path / "catalog.db") as catalog:
        first, *others = [{"id": str(n), "expression": text} for n, text in WISHES.items()]
        catalog.apply(puts=[first, {"id": "4", "expression": "FALSE"}])
        bittern.spark.match(books, catalog, event_id="id", history=before)  # leaves a base behind
        catalog.apply(puts=others)
        found = bittern.spark.match(books, catalog, event_id="id", history=before)
        assert arrays(found) == right
    rows = spark.createDataFrame(list(WISHES.items()), "id long, expression string")
    built = bittern.spark.build(rows)
    found = bittern.spark.match(books, built, event_id="id", history=before)
    assert arrays(found) == expected(WISHES, EVENTS, DOCUMENTS)


@pytest.mark.spark
def test_a_path_whose_files_change_is_read_again(
    spark: Any, books: Any, index: bittern.Index, tmp_path: Path
) -> None:
    path = tmp_path / "history.parquet"
    for documents in (DOCUMENTS, DOCUMENTS[:1]):
        pq.write_table(pa.Table.from_pylist(documents), path)
        found = bittern.spark.match(books, index, event_id="id", history=f"file://{path}")
        assert arrays(found) == expected(WISHES, EVENTS, documents)


@pytest.mark.spark
def test_history_is_of_no_matter_to_other_subscriptions(spark: Any, books: Any) -> None:
    index = bittern.Index.build({1: "price < 10"})
    found = bittern.spark.match(books, index, event_id="id", history=books, order_by="id")
    assert arrays(found) == {event["id"]: [1] if event["price"] < 10 else [] for event in EVENTS}
    assert found.rdd.getNumPartitions() == 3


@pytest.mark.spark
def test_without_a_history_the_others_are_matched(
    spark: Any, books: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = list((WISHES | {7: "price < 10", 8: "isbn IS NOT NULL"}).items())
    plain = {id_: text for id_, text in texts if " d " not in text}
    needing = {*WISHES} - {*plain}
    assert needing
    frame = spark.createDataFrame(texts, "id long, expression string")
    right = arrays(bittern.spark.match(books, bittern.Index.build(plain), event_id="id"))
    assert any(right.values())
    assert arrays(bittern.spark.match(books, frame, event_id="id", on_error="skip")) == right
    built = bittern.spark.build(frame, history=False)
    assert {int(row["id"]) for row in built.bad.collect()} == needing
    assert arrays(bittern.spark.match(books, built, event_id="id")) == right
    with Catalog(tmp_path / "catalog.db") as catalog:
        catalog.apply([{"id": str(id_), "expression": text} for id_, text in texts])
        words = {event: [*map(str, ids)] for event, ids in right.items()}
        assert arrays(bittern.spark.match(books, catalog, event_id="id")) == words
        for id_ in needing:
            assert f"subscription '{id_}' is left out" in caplog.text
        eventual = bittern.spark.match(books, catalog, event_id="id", consistency="eventual")
        assert arrays(eventual) == words


@pytest.mark.spark
def test_refusals(
    spark: Any, books: Any, before: Any, index: bittern.Index, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "'a' AS isbn")
    wishes = spark.createDataFrame(list(WISHES.items()), "id long, expression string")
    before.selectExpr("to_variant_object(struct(isbn)) AS body").write.parquet(str(tmp_path / "v"))
    before.write.partitionBy("shop").parquet(str(tmp_path / "days"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no Parquet")

    def refused(why: str, events: Any = books, source: Any = index, **options: Any) -> None:
        with pytest.raises(OptionError, match=why):
            bittern.spark.match(events, source, event_id="id", **options)

    refused("there is no history: give history=")
    with pytest.raises(SubscriptionError, match="there is no history"):
        bittern.spark.match(books, wishes, event_id="id")
    refused("for a stream use bittern.spark.Pipeline", stream)
    refused(
        "for a batch of events: for a stream use bittern.spark.Pipeline", stream, history=before
    )
    refused("history is a stream", history=stream)
    refused("shards cannot be matched with a history", source=wishes, shards=2, history=before)
    refused("history must be a DataFrame of documents or the path", history=7)
    refused("nowhere, which cannot be read: there is nothing", history=str(tmp_path / "nowhere"))
    refused("has subfolders", history=str(tmp_path / "days"))
    refused("which has no Parquet files", history=tmp_path / "empty")
    refused("which is not Parquet", history=tmp_path / "text")
    refused("'body' is a variant: give a DataFrame", history=tmp_path / "v")
    refused("executors write the history's documents", history=before, store="artifacts")
    refused("order_by names 'when'", history=before, order_by="when")
    refused("order_by names no column", history=before, order_by=[])
    refused("order_by must be the name", history=before, order_by=3)
    refused("json names 'price', which is not text", json="price", history=before)
    mapped = books.selectExpr("*", "map('a', 1) AS m")
    refused("is map<string,int> and cannot be sorted", mapped, order_by="m")
    with Catalog(tmp_path / "catalog.db") as catalog:
        for past in ({"history": before}, {"order_by": "id"}):
            refused(
                "cannot be used with consistency", source=catalog, consistency="eventual", **past
            )
    with pytest.raises(OptionError, match="a SQL function has no history"):
        bittern.spark.register(spark, index)
