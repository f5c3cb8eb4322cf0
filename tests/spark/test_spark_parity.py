"""One set of random subscriptions and events, every way through: the answers are the oracle's.

The embedded engine, ``events.filter``, and ``bittern.spark`` in a classic session, in Spark
Connect and on ``local-cluster`` with two executors, each in a process of its own; whole and
sharded, built here and there, from every form of events to every form of output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bittern
import strategies
from bittern.language.printer import print_expression
from spark_jobs import parity, terms, world
from spark_sessions import Session

pytestmark = pytest.mark.spark

CLASSIC, CONNECT, CLUSTER = "classic", "connect", "local-cluster"
PLACES = (CLASSIC, CONNECT, CLUSTER)


@pytest.fixture(scope="module")
def sessions(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Session]]:
    """The sessions that need a process of their own; they start while other tests run."""
    scratch = tmp_path_factory.mktemp("sessions")
    found = {place: Session(place, scratch / place) for place in (CONNECT, CLUSTER)}
    yield found
    for session in found.values():
        session.end()


@pytest.fixture(scope="module")
def case(sessions: Any, tmp_path_factory: pytest.TempPathFactory) -> world.World:
    return world.make(tmp_path_factory.mktemp("world") / "world", 200, 200)


@pytest.fixture(params=PLACES)
def ask(
    request: pytest.FixtureRequest, spark: Any, sessions: dict[str, Session], case: world.World
) -> Callable[..., Any]:
    """Call a function of ``spark_jobs.parity`` at one of the places."""

    def call(function: str, **arguments: Any) -> Any:
        if request.param == CLASSIC:
            return getattr(parity, function)(spark, str(case.folder), **arguments)
        name = f"spark_jobs.parity:{function}"
        return sessions[request.param].call(name, folder=str(case.folder), **arguments)

    return call


def assert_same(found: world.Rows, expected: world.Rows, case: world.World) -> None:
    """Show the shortest subscription that differs on some event, and how."""
    if found == expected:
        return
    events = [row[0] for row in found]
    assert events == [row[0] for row in expected], "events are missing or repeated"
    wrong = []
    for (event, ours), (_, truth) in zip(found, expected, strict=True):
        assert sorted(set(ours)) == sorted(ours), f"event {event} has a match twice: {ours}"
        wrong += [
            (print_expression(case.trees[number]), case.events[event], f"matched {number in ours}")
            for number in set(ours) ^ set(truth)
        ]
    raise AssertionError(min(wrong, key=lambda each: len(each[0])) if wrong else "order differs")


def test_embedded_engine(case: world.World) -> None:
    matcher = bittern.Matcher(bittern.Index.open(case.folder / "snapshot"))
    found = matcher.match(strategies.as_arrow(case.events)).to_pylist()
    rows = [[event, numbers] for event, numbers in enumerate(found)]
    assert_same(rows, case.answers["events"], case)


def test_filter(spark: Any, case: world.World) -> None:
    """The sentence that defines Bittern, on every twentieth expression."""
    texts = {str(k): print_expression(case.trees[k]) for k in range(0, len(case.trees), 20)}
    found = parity.kept(spark, str(case.folder), texts)
    assert found == [row for row in case.matches() if str(row[1]) in texts]


def test_arrays(ask: Callable[..., Any], case: world.World) -> None:
    assert_same(ask("match"), case.answers["events"], case)


def test_sent_by_spark(ask: Callable[..., Any], case: world.World) -> None:
    assert_same(ask("match", store="artifacts"), case.answers["events"], case)


@pytest.mark.parametrize("shards", [None, parity.N_SHARDS])
def test_built_by_match(
    ask: Callable[..., Any], case: world.World, tmp_path: Path, shards: int | None
) -> None:
    store = tmp_path / "store"
    asked = {"subscriptions": "subscriptions", "shards": shards, "store": str(store)}
    assert_same(ask("match", **asked), case.answers["events"], case)
    assert any(store.iterdir())


@pytest.mark.parametrize("way", ["snapshot", "shards"])
def test_a_row_for_each_match(ask: Callable[..., Any], case: world.World, way: str) -> None:
    assert ask("match", explode=True, subscriptions=way) == case.matches()


@pytest.mark.parametrize("way", ["snapshot", "shards"])
def test_best_of_each_event(ask: Callable[..., Any], case: world.World, way: str) -> None:
    assert_same(ask("match", limit=3, subscriptions=way), case.best(3), case)


def test_maps(ask: Callable[..., Any], case: world.World) -> None:
    assert_same(ask("match", events="maps"), case.answers["maps"], case)


@pytest.mark.parametrize("way", ["snapshot", "shards"])
def test_json_text(ask: Callable[..., Any], case: world.World, way: str) -> None:
    found = ask("match", events="documents", json="document", subscriptions=way)
    assert_same(found, case.answers["documents"], case)


def test_variants(ask: Callable[..., Any], case: world.World) -> None:
    found = ask("match", events="documents", variant=True)
    assert_same(found, case.answers["documents"], case)


@pytest.mark.parametrize("way", ["snapshot", "shards"])
def test_metrics(ask: Callable[..., Any], case: world.World, way: str) -> None:
    told = ask("observe", subscriptions=way)
    assert_same(told["rows"], case.answers["events"], case)
    metrics = told["metrics"]
    matches = len(case.matches())
    assert (metrics["events"], metrics["matches"]) == (len(case.events), matches)
    assert metrics["candidates"] >= matches / len(case.trees)
    assert metrics["rejects"] == 0
    assert metrics["snapshot"]


def test_sql(ask: Callable[..., Any], case: world.World) -> None:
    found = ask("sql")
    assert_same(found["function"], case.answers["events"], case)
    assert found["table function"] == case.matches()


@pytest.mark.parametrize("shards", [None, parity.N_SHARDS])
def test_bad_subscriptions_come_back(
    ask: Callable[..., Any], case: world.World, shards: int | None
) -> None:
    found = ask("build", shards=shards)
    assert_same(found["rows"], case.answers["events"], case)
    assert found["subscriptions"] == len(case.trees)
    bad = bittern.Index.build(parity.BAD, on_error="skip").bad
    assert found["bad"] == [[str(each.id), each.position, each.message] for each in bad]


@pytest.mark.parametrize("way", ["snapshot", "shards"])
def test_written_from_the_tasks(
    ask: Callable[..., Any], case: world.World, tmp_path: Path, way: str
) -> None:
    found = ask("write", target=str(tmp_path / "matches"), subscriptions=way)
    assert_same(found["rows"], case.answers["events"], case)
    assert (found["events"], found["matches"]) == (len(case.events), len(case.matches()))


def test_terms_beside_filter(sessions: dict[str, Session]) -> None:
    """In Spark Connect; the classic session does the same in test_spark_terms."""
    expressions = terms.random_expressions(20)
    name = "spark_jobs.terms:match_beside_filter"
    found = sessions[CONNECT].call(name, expressions=expressions)
    assert found["rejected"] == [None]
    assert not found["differences"]
    assert found["n_kept"] > len(expressions) // 2


@pytest.mark.parametrize("place", [CONNECT, CLUSTER])
def test_history(sessions: dict[str, Session], tmp_path: Path, place: str) -> None:
    """Documents reach all executors; a task of events in order that fails half way is repeated."""
    n, distinct = 20_000, 9_000  # more events than are matched at once
    keys = [(number * 7919) % distinct for number in range(n)]
    pq.write_table(pa.table({"id": range(n), "k": keys}), tmp_path / "events.parquet")
    known = {key for key in range(distinct) if key % 3 == 0}
    pq.write_table(pa.table({"k": sorted(known)}), tmp_path / "history.parquet")
    bittern.Index.build({1: "EXISTS d (d.k = k)", 2: "k < 5"}).save(tmp_path / "snapshot")
    together, ordered, seen = [], [], set(known)
    for number, key in enumerate(keys):
        small = [2] if key < 5 else []
        together.append([number, [1, *small] if key in known else small])
        ordered.append([number, [1, *small] if key in seen else small])
        seen.add(key)

    def match(**options: Any) -> world.Rows:
        found: world.Rows = sessions[place].call(
            "spark_jobs.history:match",
            snapshot=str(tmp_path / "snapshot"),
            events=str(tmp_path / "events.parquet"),
            history=str(tmp_path / "history.parquet"),
            store=str(tmp_path / "store"),
            **options,
        )
        return found

    assert match(as_path=False) == match(as_path=True) == together
    # Only a cluster tries a task again.
    failing = {"fail_in": str(tmp_path)} if place == CLUSTER else {}
    assert match(order_by="id", **failing) == ordered
    assert (tmp_path / "failed").exists() == (place == CLUSTER)
