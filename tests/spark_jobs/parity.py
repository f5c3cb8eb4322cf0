"""Every way into Bittern on Spark, as functions that give plain rows of what ``world.py`` made."""

from __future__ import annotations

from typing import Any

from bittern import spark as bittern_spark
from spark_jobs.world import READING, Rows


def read(spark: Any, folder: str, name: str) -> Any:
    """One of the world's folders as a DataFrame, a partition for each file."""
    for key, value in READING.items():
        spark.conf.set(key, value)
    return spark.read.parquet(f"{folder}/{name}")


def rows(frame: Any, *, ranked: bool = False) -> Rows:
    """Rows of (id, array) in order, arrays too unless they are ranked; repeated ones stay."""
    found = [[row[0], list(row[1])] for row in frame.collect()]
    return sorted([event, each if ranked else sorted(each)] for event, each in found)


def pairs(frame: Any) -> Rows:
    """Rows of (id, one subscription) in order; repeated ones stay."""
    return sorted([row[0], row[1]] for row in frame.collect())


def match(
    spark: Any,
    folder: str,
    *,
    events: str = "events",
    subscriptions: str = "snapshot",
    variant: bool = False,
    **options: Any,
) -> Rows:
    """Match one form of the events with the snapshot, or with subscriptions built on Spark."""
    frame = read(spark, folder, events)
    if variant:
        frame = frame.selectExpr("id", "parse_json(document) AS document")
    found = bittern_spark.match(
        frame, source(spark, folder, subscriptions), event_id="id", **options
    )
    if options.get("explode"):
        return pairs(found)
    return rows(found, ranked="limit" in options)


def source(spark: Any, folder: str, subscriptions: str) -> Any:
    """The snapshot's path, subscriptions as a DataFrame, or what ``built`` has of them."""
    if subscriptions == "snapshot":
        return f"{folder}/snapshot"
    if subscriptions == "shards":
        return built(spark, folder, N_SHARDS)
    return read(spark, folder, subscriptions)


#: Subscriptions that cannot be read.
BAD = {1_000: "n <", 1_001: "n = 'a", 1_002: None, 1_003: "n = 1 n"}
N_SHARDS = 3
_built: dict[tuple[str, int | None], Any] = {}


def built(spark: Any, folder: str, shards: int | None) -> Any:
    """Subscriptions built on Spark, bad ones among them; once in each process."""
    if (folder, shards) not in _built:
        bad = spark.createDataFrame(list(BAD.items()), "id bigint, expression string")
        all_ = read(spark, folder, "subscriptions").unionByName(bad, allowMissingColumns=True)
        store = f"{folder}/store"  # where executors write shards
        _built[folder, shards] = bittern_spark.build(all_, shards=shards, store=store)
    return _built[folder, shards]


def build(spark: Any, folder: str, shards: int | None) -> dict[str, Any]:
    """What ``built`` tells, and what it matches."""
    made = built(spark, folder, shards)
    found = bittern_spark.match(read(spark, folder, "events"), made, event_id="id")
    told = sorted(list(row) for row in made.bad.collect())
    return {"rows": rows(found), "bad": told, "subscriptions": made.subscriptions}


def observe(spark: Any, folder: str, **options: Any) -> dict[str, Any]:
    """The metrics of a job, beside its rows."""
    from pyspark.sql import Observation

    seen = Observation("bittern")
    given = source(spark, folder, options.pop("subscriptions", "snapshot"))
    found = bittern_spark.match(
        read(spark, folder, "events"), given, event_id="id", observe=seen, **options
    )
    return {"rows": rows(found), "metrics": seen.get}


def sql(spark: Any, folder: str) -> dict[str, Rows]:
    """The function and the table function, called by SQL."""
    events = read(spark, folder, "events")
    events.createOrReplaceTempView("events")
    bittern_spark.register(spark, f"{folder}/snapshot", "matching", events=events, event_id="id")
    return {
        "function": rows(spark.sql("SELECT id, matching(struct(*)) FROM events")),
        "table function": pairs(spark.sql("SELECT * FROM matching(TABLE(events))")),
    }


def write(spark: Any, folder: str, target: str, **options: Any) -> dict[str, Any]:
    """Write matches from the tasks, and read them back."""
    given = source(spark, folder, options.pop("subscriptions", "snapshot"))
    events = read(spark, folder, "events")
    written = bittern_spark.write(events, given, target, event_id="id", **options)
    found = spark.read.parquet(target)
    return {
        "rows": pairs(found) if options.get("explode") else rows(found),
        "matches": written.matches,
        "events": written.events,
    }


def kept(spark: Any, folder: str, texts: dict[str, str]) -> Rows:
    """What ``events.filter(text)`` keeps, for each text."""
    events = read(spark, folder, "events").cache()
    found = []
    for number, text in texts.items():
        found += [[row.id, int(number)] for row in events.filter(text).select("id").collect()]
    events.unpersist()
    return sorted(found)
