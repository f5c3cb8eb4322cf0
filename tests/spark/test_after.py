"""After-steps: what newly holds, and no more than so much, as a plain model says, replays included.

The model works on events one at a time; the steps get many entities in few batches.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bittern.errors import OptionError
from bittern.spark.sink.staging import Staging
from bittern.spark.streaming.after import Edge, Throttle
from bittern.spark.streaming.batch import Batch

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VERSION = 4711
#: A name that Spark would read as a field of a struct, and others that the steps use themselves.
KEYS = ("shop.product", "held", "receiver")
SCHEMA = "`shop.product` string, held int, receiver int, subscription string, version bigint"


class Details:
    """What a catalog knows of subscriptions: who subscribed."""

    def __init__(self, subscribers: dict[str, str | None]) -> None:
        self.subscribers = subscribers

    def details(self, ids: list[str], version: int) -> pa.Table:
        assert version == VERSION
        known = [id_ for id_ in ids if id_ in self.subscribers]
        names = [self.subscribers[id_] for id_ in known]
        columns = {
            "id": pa.array(known, pa.string()),
            "subscriber": pa.array(names, pa.string()),
            "weight": pa.array([1.0] * len(known)),
            "metadata": pa.array([None] * len(known), pa.string()),
        }
        return pa.table(columns)


def batch_of(
    matches: DataFrame,
    number: int,
    keys: tuple[str, ...] = KEYS,
    time: datetime = NOON,
    catalog: Any = None,
) -> Batch:
    return Batch(
        matches.sparkSession, "query", number, VERSION, time, keys, matches, catalog or Details({})
    )


def rows_of(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, frame.collect()))


def content(folder: Path) -> dict[str, bytes]:
    """All files with their bytes: what must never change."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def states(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "state").iterdir())


class Event(NamedTuple):
    """Keys of an event; entity, order, and what decides ties."""

    entity: str | None
    at: int | None
    tie: int
    matches: frozenset[str]

    def rows(self) -> list[tuple[Any, ...]]:
        keys = (self.entity, self.at, self.tie)
        return [(*keys, name, VERSION) for name in sorted(self.matches) or [None]]


def drawn(seed: int, n: int) -> list[Event]:
    """Events of few entities, with few times, so that many follow each other and many tie."""
    random_ = random.Random(seed)
    events = []
    for tie in random_.sample(range(10 * n), n):
        entity = random_.choice([f"p{i}" for i in range(25)] + [None] * 2)
        at = random_.choice([None, *range(-3, 4)])
        names = [name for name in "abcd" if random_.random() < 0.4]
        events.append(Event(entity, at, tie, frozenset(names)))
    return events


def held_after(events: list[Event], held: dict[str, frozenset[str]]) -> Counter[tuple[Any, ...]]:
    """Model of an Edge: the matches that pass; ``held`` is brought up to date."""
    passed: Counter[tuple[Any, ...]] = Counter()
    null = -(10**6)  # comes first
    for event in sorted(events, key=lambda e: (null if e.at is None else e.at, e.tie)):
        before = frozenset() if event.entity is None else held.get(event.entity, frozenset())
        for name in event.matches - before:
            passed[event.entity, event.at, event.tie, name, VERSION] += 1
        if event.entity is not None:
            held[event.entity] = event.matches
    return passed


# Edge


@pytest.mark.spark
def test_an_edge_lets_pass_what_newly_holds(spark: Any, tmp_path: Path) -> None:
    step = Edge("shop.product", order="held")
    held: dict[str, frozenset[str]] = {}
    for number, seed in [(0, 1), (1, 2), (4, 3)]:  # Spark may skip a number
        events = drawn(seed, 120)
        rows = list(itertools.chain.from_iterable(event.rows() for event in events))
        rows += [row for row in rows[:40] if row[0] is not None]  # repeated within the batch
        matches = spark.createDataFrame(rows, SCHEMA).repartition(3)
        batch = batch_of(matches, number)
        passed = step.apply(batch, str(tmp_path))
        assert passed.columns == matches.columns
        assert passed.schema.simpleString() == matches.schema.simpleString()
        expected = held_after(events, held)
        anonymous = Counter(row for row in rows if row[0] is None and row[3] is not None)
        assert rows_of(passed) == expected
        assert {row: n for row, n in expected.items() if row[0] is None} == anonymous

        left = spark.read.parquet(str(tmp_path / "state" / f"batch={number}"))
        remembered = left.where("held IS NOT NULL").collect()
        assert {row.entity["shop.product"]: frozenset(row.held) for row in remembered} == {
            entity: names for entity, names in held.items() if names
        }
        assert len(remembered) == len({row.entity for row in remembered})

        before = content(tmp_path)
        assert rows_of(step.apply(batch, str(tmp_path))) == expected  # a replay
        assert content(tmp_path) == before
    assert states(tmp_path) == ["batch=1", "batch=4"]


@pytest.mark.spark
def test_an_entity_of_two_keys_and_keys_that_cannot_be_sorted(spark: Any, tmp_path: Path) -> None:
    keys = ("shop", "product", "tags", "body")
    sql = """
        SELECT shop, product, map('k', tag) AS tags, parse_json(body) AS body, subscription,
               4711L AS version
        FROM VALUES ('x', 1, 'r', '1', 'a'), ('x', 1, 's', '1', 'a'), ('x', 1, 's', '2', 'b'),
                    ('x', 2, 'r', '1', 'a'), ('y', 1, 'r', '1', 'a'), ('y', NULL, 'r', '1', 'a'),
                    ('y', NULL, 's', '1', 'a'), (NULL, NULL, 's', '1', CAST(NULL AS STRING))
             AS t (shop, product, tag, body, subscription)
    """
    batch = batch_of(spark.sql(sql), 0, keys)
    passed = Edge(["shop", "product"], order=None).apply(batch, str(tmp_path))
    shown = passed.select("shop", "product", "tags.k", F.to_json("body"), "subscription")
    assert rows_of(shown) == Counter(
        [
            # (x, 1) comes with r, then with s and 1, which holds already, then with s and 2.
            ("x", 1, "r", "1", "a"),
            ("x", 1, "s", "2", "b"),
            ("x", 2, "r", "1", "a"),
            ("y", 1, "r", "1", "a"),
            ("y", None, "r", "1", "a"),
            ("y", None, "s", "1", "a"),
        ]
    )
    for key, type_ in [("tags", "map<string,string>"), ("body", "variant")]:
        with pytest.raises(OptionError, match=f"names '{key}', which is {type_}"):
            Edge(key, order=None).apply(batch, str(tmp_path / "other"))
        with pytest.raises(OptionError, match=f"order names '{key}'"):
            Edge("shop", order=key).apply(batch, str(tmp_path / "other"))
        with pytest.raises(OptionError, match=f"order names '{key}'"):
            Throttle(1, "1 hour", order=key).apply(batch, str(tmp_path / "other"))


def tents(spark: Any, *names: str | None, at: int = 0) -> DataFrame:
    return spark.createDataFrame([("tent", at, 0, name, VERSION) for name in names], SCHEMA)


@pytest.mark.spark
def test_what_a_killed_driver_leaves_is_not_taken_for_a_state(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, folder = Edge("shop.product", None), str(tmp_path)
    first, second = batch_of(tents(spark, "a"), 0), batch_of(tents(spark, "a", "b"), 1)
    step.apply(first, folder)
    before = content(tmp_path)

    with monkeypatch.context() as patch:  # all of it is written, and has not got its name
        patch.setattr(Staging, "commit", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr(Staging, "__exit__", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            step.apply(second, folder)
    assert len(states(tmp_path)) == 2
    torn = tmp_path / "state" / f".batch=7.{'0' * 16}.writing"
    torn.mkdir()
    (torn / "part-0.parquet").write_bytes(b"PAR1, and no more")
    assert {name: content(tmp_path).get(name) for name in before} == before

    def new() -> list[str]:
        return sorted(row.subscription for row in step.apply(second, folder).collect())

    assert new() == ["b"]
    assert content(tmp_path / "state" / "batch=0") == {
        name.removeprefix("state/batch=0/"): data for name, data in before.items()
    }
    # Killed before what passed was used: the next driver finds the state, and the same passes.
    assert new() == new() == ["b"]
    third = batch_of(tents(spark, None), 2)
    assert step.apply(third, folder).collect() == []
    assert {"batch=1", "batch=2"} == {name for name in states(tmp_path) if name[0] != "."}
    again = step.apply(batch_of(tents(spark, "a"), 3), folder)
    assert [row.subscription for row in again.collect()] == ["a"]  # the event without ended it


@pytest.mark.spark
def test_a_step_that_remembers_something_else_is_refused(spark: Any, tmp_path: Path) -> None:
    Edge("shop.product", None).apply(batch_of(tents(spark, "a"), 0), str(tmp_path))
    later = batch_of(tents(spark, "a"), 1)
    for other in (Edge("held", None), Edge(["shop.product", "held"], None), Throttle(1, "1 day")):
        with pytest.raises(OptionError, match="cannot change within one checkpoint"):
            other.apply(later, str(tmp_path))
    assert states(tmp_path) == ["batch=0"]


# Throttle

SUBSCRIBERS = {"a": "ann", "b": "ann", "c": "bob", "d": None, "ann": None}


def sent_after(
    rows: list[tuple[Any, ...]], most: int, sent: Counter[Any], who: dict[str, Any]
) -> Counter[tuple[Any, ...]]:
    """Model of a Throttle: the matches that pass; ``sent`` is brought up to date."""
    passed: Counter[tuple[Any, ...]] = Counter()
    for row in sorted(rows, key=lambda row: (row[1], row[0], row[2], row[3])):
        receiver = ("subscriber", who[row[3]]) if who.get(row[3]) else ("subscription", row[3])
        if sent[receiver] < most:
            sent[receiver] += 1
            passed[row] += 1
    return passed


@pytest.mark.spark
@pytest.mark.parametrize("by", ["subscriber", "subscription"])
def test_a_throttle_lets_pass_so_many_in_a_window(spark: Any, tmp_path: Path, by: str) -> None:
    most, random_ = 6, random.Random(5)
    step = Throttle(most, "1 hour", by, order="held")
    catalog = Details(SUBSCRIBERS)  # which does not know e
    who = SUBSCRIBERS if by == "subscriber" else {}
    windows: dict[int, Counter[Any]] = defaultdict(Counter)
    for number, minutes in enumerate([40, 59, 60]):
        names = random_.choices([*SUBSCRIBERS, "e"], [4, 4, 1, 2, 3, 1], k=14)
        rows = [
            (f"p{random_.randrange(3)}", random_.randrange(4), i // 2, name, VERSION)
            for i, name in enumerate(names)
        ]
        empty = [("p", 0, 0, None, VERSION)]  # an event without matches is nobody's
        matches = spark.createDataFrame(rows + rows[:1] + empty, SCHEMA).repartition(2)
        batch = batch_of(matches, number, time=NOON + timedelta(minutes=minutes), catalog=catalog)
        passed = step.apply(batch, str(tmp_path))
        assert passed.schema.simpleString() == matches.schema.simpleString()
        sent = windows[minutes // 60]
        expected = sent_after(rows + rows[:1], most, sent, who)
        assert rows_of(passed) == expected
        before = content(tmp_path)
        assert rows_of(step.apply(batch, str(tmp_path))) == expected  # a replay
        assert content(tmp_path) == before
        left = spark.read.parquet(str(tmp_path / "state" / f"batch={number}"))
        counts = {tuple(row.receiver.split(" ", 1)): row.sent for row in left.collect() if row.sent}
        assert counts == sent  # of this window alone
    assert states(tmp_path) == ["batch=1", "batch=2"]
    if by == "subscriber":
        assert ("subscriber", "ann") in windows[1]
        assert ("subscription", "ann") in windows[1]  # somebody's name is no subscriber's


@pytest.mark.spark
def test_windows_of_another_length_count_anew(spark: Any, tmp_path: Path) -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)  # in which windows of all lengths begin together
    passed = []
    for number, step in enumerate(
        [Throttle(1, "1 hour"), Throttle(1, "1 hour"), Throttle(1, "1 day")]
    ):
        batch = batch_of(tents(spark, "a", at=number), number, time=start)
        passed.append(step.apply(batch, str(tmp_path)).count())
    assert passed == [1, 0, 1]


@pytest.mark.spark
def test_steps_follow_each_other_and_take_empty_batches(spark: Any, tmp_path: Path) -> None:
    edge, throttle = Edge("shop.product", "held"), Throttle(1, "1 day")
    passed = []
    for number, names in enumerate([(), ("a", "b"), ("a",)]):
        batch = batch_of(tents(spark, *names, at=number), number)
        held = edge.apply(batch, f"{tmp_path}/0")
        following = batch_of(held, number)
        passed.append(
            [row.subscription for row in throttle.apply(following, f"{tmp_path}/1").collect()]
        )
    assert [len(names) for names in passed] == [0, 2, 0]  # each subscription counts by itself


# At the door


def test_what_cannot_be_meant_is_said_at_once() -> None:
    for entity in ((), [], None):
        with pytest.raises(OptionError, match="entity names no column"):
            Edge(entity, None)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="order must be the name of a column"):
        Edge("a", 7)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="entity names a column twice"):
        Edge(["a", "a"], None)
    for most in (0, -1, 2**63, True, 1.5, "3", None):
        with pytest.raises(OptionError, match="most must be a whole number"):
            Throttle(most, "1 hour")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="by must be 'subscriber' or 'subscription', not 'user'"):
        Throttle(1, "1 hour", "user")
    long = "1" * 5000 + " hours"
    for per in ("", "1", "hour", "0 hours", "-1 hour", "1.5 hours", "1 month", long, 60, None):
        with pytest.raises(OptionError, match="per must be a number of seconds"):
            Throttle(1, per)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="longer than a window can be"):
        Throttle(1, "999999999 weeks")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1 hour", timedelta(hours=1)),
        ("90 seconds", timedelta(seconds=90)),
        ("15minutes", timedelta(minutes=15)),
        (" 2 Days ", timedelta(days=2)),
        ("1 week", timedelta(weeks=1)),
    ],
)
def test_lengths_of_windows(text: str, length: timedelta) -> None:
    assert Throttle(1, text).per == length


def test_columns_are_keys() -> None:
    Edge("a", "b").check(("a", "b"))
    Throttle(1, "1 day", order=["b", "a"]).check(("a", "b"))
    with pytest.raises(OptionError, match=r"entity names 'A', which is not a key .* names a, b"):
        Edge("A", None).check(("a", "b"))
    with pytest.raises(OptionError, match="order names 'subscription', which is not a key"):
        Edge("a", "subscription").check(("a", "b"))
    with pytest.raises(OptionError, match="order names 'at', which is not a key"):
        Throttle(1, "1 day", order="at").check(("a", "b"))
    assert Edge("a", None).needs_all_events
    assert not Throttle(1, "1 day").needs_all_events
