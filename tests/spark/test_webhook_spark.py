"""Webhooks from Spark's tasks: a batch made by hand, endpoints on loopback, counts of both."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from bittern.catalog.catalog import Catalog
from bittern.spark.streaming.batch import Batch
from bittern.spark.streaming.webhook import Delivered, Webhook
from webhook_receivers import LOOPBACK, Receiver, answer

pytestmark = pytest.mark.spark

TIME = datetime(2026, 8, 22, 10, tzinfo=UTC)
SCHEMA = "`order.id` bigint, at timestamp, url string, parts map<string,int>, price decimal(9,2)"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(tmp_path / "catalog.db") as catalog:
        yield catalog


def subscribe(catalog: Catalog, **subscriptions: tuple[str | None, Any]) -> int:
    """Put subscriptions, each with a subscriber and metadata; returns the version."""
    return catalog.apply(
        puts=[
            {"id": id_, "expression": "x = 1", "subscriber": subscriber, "metadata": metadata}
            for id_, (subscriber, metadata) in subscriptions.items()
        ]
    )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def batch_of(spark: Any, catalog: Catalog, matches: dict[str, int], batch_id: int = 5) -> Batch:
    """So many matches of each subscription, in no order, at the catalog's newest version."""
    version = catalog.version()
    rows = [
        (n, datetime(2026, 1, 1, 0, 0, n, 123456), None, {"b": n, "a": 1}, None, id_, version)
        for id_, many in matches.items()
        for n in range(many)
    ]
    schema = f"{SCHEMA}, subscription string, version bigint"
    frame = spark.createDataFrame(rows[::2] + rows[1::2], schema).repartition(3)
    keys = ("order.id", "at", "url", "parts", "price")
    return Batch(spark, "query-1", batch_id, version, TIME, keys, frame, catalog)


def sink_to(folder: Path, **options: Any) -> Webhook:
    slow = {"timeout": 60.0, "within": 600.0}  # the machine may be, the endpoints are not
    return Webhook(
        dead_letters=folder, private=LOOPBACK, first_wait=0.0, most_matches=10, **slow, **options
    )


def test_a_batch_is_delivered_and_what_is_not_is_a_dead_letter(
    spark: Any, receiver: Receiver, catalog: Catalog, tmp_path: Path
) -> None:
    receiver.told["/shaky"] = [answer(500), answer(200)]
    receiver.told["/gone"] = [answer(410)]
    subscribe(
        catalog,
        a1=("ann", {"webhook": receiver.url("/ann")}),
        a2=("ann", {"webhook": receiver.url("/ann")}),
        b1=("bob", {"webhook": receiver.url("/shaky")}),
        c1=(None, {"webhook": receiver.url("/gone")}),
        d1=("dan", {}),
        e1=("eve", {"webhook": "http://169.254.169.254/latest/meta-data"}),
        z1=("zoe", {"webhook": receiver.url("/never-matched")}),
    )
    matches = {"a1": 13, "a2": 12, "b1": 3, "c1": 2, "d1": 4, "e1": 1, "f1": 5}
    batch = batch_of(spark, catalog, matches)
    subscribe(catalog, a1=("ann", {}), a2=("kim", {"webhook": receiver.url("/too-late")}))
    dead = tmp_path / "dead"
    sink = sink_to(dead)
    sink.check(spark)
    sink.deliver(batch)

    assert sink.last == Delivered(
        requests=6, matches=31, attempts=7, dead_requests=2, dead_matches=3, skipped=9
    )
    arrived = receiver.at("/ann")
    assert [len(each.document["matches"]) for each in arrived] == [10, 10, 5]
    assert [each.document["request"] for each in arrived] == [0, 1, 2]
    assert len({each.key for each in arrived}) == 3
    document = arrived[0].document
    assert document["matches"][:3] == [
        {
            "order.id": n,
            "at": f"2026-01-01T00:00:0{n}.123456Z",
            "url": None,
            "parts": {"a": 1, "b": n},
            "price": None,
            "subscription": subscription,
        }
        for n, subscription in [(0, "a1"), (0, "a2"), (1, "a1")]
    ]
    del document["matches"]
    assert document == {
        "query": "query-1",
        "batch": 5,
        "version": 1,
        "time": "2026-08-22T10:00:00+00:00",
        "subscriber": "ann",
        "request": 0,
    }
    found = Counter(
        (match["order.id"], match["subscription"])
        for each in arrived
        for match in each.document["matches"]
    )
    assert found == {(n, id_): 1 for id_ in ("a1", "a2") for n in range(matches[id_])}
    assert len({each.key for each in receiver.at("/shaky")}) == 1
    assert Counter(each.path for each in receiver.arrived) == {"/ann": 3, "/shaky": 2, "/gone": 1}

    letters = spark.read.parquet(str(dead)).orderBy("subscriber").collect()
    shown = [
        (row["query"], row["batch"], row["version"], row["subscriber"], row["url"])
        for row in letters
    ]
    assert shown == [
        ("query-1", 5, 1, None, receiver.url("/gone")),
        ("query-1", 5, 1, "eve", "http://169.254.169.254/latest/meta-data"),
    ]
    assert [(row["attempts"], row["status"]) for row in letters] == [(1, 410), (1, None)]
    assert letters[0]["reason"] == "answered 410"
    assert "169.254.169.254 is not public" in letters[1]["reason"]
    (gone,) = receiver.at("/gone")
    assert letters[0]["payload"].encode() == gone.body
    assert letters[0]["idempotency_key"] == gone.key

    # A replay finds the dead letters, which were the last step: nothing is sent again.
    sink_to(dead).deliver(batch)
    assert len(receiver.arrived) == 6
    # One that does not find them sends the same again: same keys, same bodies.
    shuffled = dataclasses.replace(batch, matches=batch.matches.repartition(5, "subscription"))
    sink_to(tmp_path / "other").deliver(shuffled)
    again = receiver.at("/ann")
    assert [(each.key, each.body) for each in again[3:]] == [
        (each.key, each.body) for each in again[:3]
    ]


def test_a_batch_without_dead_letters_leaves_none(
    spark: Any, receiver: Receiver, catalog: Catalog, tmp_path: Path
) -> None:
    subscribe(catalog, a=("ann", {"hook": receiver.url("/ann")}), b=("bob", {"webhook": "x"}))
    sink = sink_to(tmp_path / "dead", entry="hook")
    sink.deliver(batch_of(spark, catalog, {"a": 2, "b": 3}))
    assert sink.last == Delivered(requests=1, matches=2, attempts=1, skipped=3)
    sink.deliver(batch_of(spark, catalog, {"b": 3}, 6))
    assert sink.last == Delivered(skipped=3)
    assert not list((tmp_path / "dead").rglob("*.parquet"))
    assert not list((tmp_path / "dead").rglob("batch=*"))
    assert len(receiver.arrived) == 1


def test_who_was_not_tried_comes_first_in_the_next_batch(
    spark: Any, receiver: Receiver, catalog: Catalog, tmp_path: Path
) -> None:
    """A subscriber's own healthy endpoint, behind failing ones that end the host for her.

    Three failures in a row end it: of seven endpoints, each is tried in three batches at the most.
    """
    paths = [f"/a{n:02}" for n in range(6)]
    for path in paths:
        receiver.told[path] = [answer(503)]
    hooks = {path[1:]: ("ann", {"webhook": receiver.url(path)}) for path in [*paths, "/healthy"]}
    subscribe(catalog, **hooks)
    sink = sink_to(tmp_path / "dead", attempts=1, concurrency=1)
    dead = 0
    for batch_id in range(6):
        sink.deliver(batch_of(spark, catalog, dict.fromkeys(hooks, 1), batch_id))
        assert sink.last is not None
        assert sink.last.requests == 7
        dead += sink.last.dead_requests
    assert len(receiver.at("/healthy")) >= 2
    letters = spark.read.parquet(str(tmp_path / "dead"))
    assert letters.count() == dead == 6 * 7 - len(receiver.at("/healthy"))


def test_who_was_given_up_on_gets_one_attempt_in_the_next_batch(
    spark: Any, receiver: Receiver, catalog: Catalog, tmp_path: Path
) -> None:
    receiver.told["/down"] = [answer(503)]
    subscribe(catalog, a=("ann", {"webhook": receiver.url("/down")}))
    sink = sink_to(tmp_path / "dead", attempts=3)
    attempts = []
    for batch_id in range(4):
        if batch_id == 2:
            receiver.told["/down"] = [answer(200)]
        if batch_id == 3:
            receiver.told["/down"] = [answer(503), answer(200)]
        sink.deliver(batch_of(spark, catalog, {"a": 1}, batch_id))
        assert sink.last is not None
        attempts.append((sink.last.attempts, sink.last.dead_requests))
    assert attempts == [(3, 1), (1, 1), (1, 0), (2, 0)]
    letters = spark.read.parquet(str(tmp_path / "dead")).orderBy("batch").collect()
    assert [(row["batch"], row["attempts"]) for row in letters] == [(0, 3), (1, 1)]


def test_what_others_have_at_a_url_that_was_given_up_on_gets_all_attempts(
    spark: Any, receiver: Receiver, catalog: Catalog, tmp_path: Path
) -> None:
    target = {"webhook": receiver.url("/shared")}
    subscribe(catalog, a=("ann", target), b=(None, target))
    sink = sink_to(tmp_path / "dead", attempts=3)
    receiver.told["/shared"] = [answer(503)]
    sink.deliver(batch_of(spark, catalog, {"a": 1}, 0))
    receiver.told["/shared"] = [answer(503), answer(503), answer(200)]
    sink.deliver(batch_of(spark, catalog, {"b": 1}, 1))
    assert sink.last is not None
    assert (sink.last.attempts, sink.last.dead_requests) == (3, 0)
