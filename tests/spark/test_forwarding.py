"""Sinks that use Spark's writers: a batch that is delivered twice is there once, or can be told."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame

from bittern.errors import OptionError
from bittern.spark.streaming.batch import Batch
from bittern.spark.streaming.forwarding import Format, Kafka

QUERY = "5f0e8d2c-0000-4000-8000-123456789abc"
ROWS = [(17, "alert-3", 4711), (17, "wish-8", 4711), (18, "alert-3", 4711)]
SCHEMA = "order bigint, subscription string, version bigint"


def batch_of(
    matches: DataFrame, number: int = 42, keys: tuple[str, ...] = ("order",), query: str = QUERY
) -> Batch:
    time = datetime(2026, 3, 1, tzinfo=UTC)
    catalog: Any = None  # which these sinks do not ask
    return Batch(matches.sparkSession, query, number, 4711, time, keys, matches, catalog)


def matches_of(spark: Any, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(rows or ROWS, SCHEMA)


@pytest.mark.spark
def test_the_payload_is_in_the_message_and_not_in_its_key(spark: Any) -> None:
    plain = Kafka("localhost:9092", "topic").messages(batch_of(matches_of(spark))).collect()
    with_price = matches_of(spark).selectExpr("order", "12.5D AS price", "subscription", "version")
    found = Kafka("localhost:9092", "topic").messages(batch_of(with_price)).collect()
    assert [row["key"] for row in found] == [row["key"] for row in plain]
    assert found[0]["value"] == (
        '{"order":17,"price":12.5,"subscription":"alert-3","version":4711,"batch":42}'
    )


# Format


@pytest.mark.spark
@pytest.mark.parametrize("name", ["parquet", "JSON"])
def test_a_batch_of_files_replaces_itself_and_nothing_else(
    spark: Any, tmp_path: Path, name: str
) -> None:
    sink = Format(name, options={"path": f"{tmp_path}/", "compression": "gzip"})
    sink.check(spark)
    sink.deliver(batch_of(matches_of(spark, *ROWS[:1]), 41))
    sink.deliver(batch_of(matches_of(spark)))
    sink.deliver(batch_of(matches_of(spark)))
    sink.deliver(batch_of(matches_of(spark, *ROWS[2:]), 42, query="other"))
    columns = ["order", "subscription", "version", "batch", "query"]
    found = spark.read.format(name).load(str(tmp_path)).select(columns).collect()
    assert Counter(map(tuple, found)) == Counter(
        [(*ROWS[0], 41, QUERY), *((*row, 42, QUERY) for row in ROWS), (*ROWS[2], 42, "other")]
    )
    assert [path.name for path in (tmp_path / f"query={QUERY}").iterdir() if path.is_dir()]


@pytest.mark.spark
def test_other_formats_get_the_batch_and_the_query_as_columns(spark: Any, tmp_path: Path) -> None:
    # By the name of its class Parquet is a format like any other.
    parquet = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
    path = f"{tmp_path}/{{query}}-{{batch}}"
    sink = Format(parquet, partition_by="order", options={"PATH": path, "mergeSchema": True})
    sink.check(spark)
    for _ in range(2):
        sink.deliver(batch_of(matches_of(spark)))
    folder = tmp_path / f"{QUERY}-42"
    assert {path.name for path in folder.glob("order=*")} == {"order=17", "order=18"}
    found = spark.read.parquet(str(folder))
    assert dict(found.dtypes)["batch"] == "bigint"
    assert dict(found.dtypes)["query"] == "string"
    rows = found.select("order", "subscription", "version", "batch", "query").collect()
    assert Counter(map(tuple, rows)) == Counter({(*row, 42, QUERY): 2 for row in ROWS})
    Format(parquet, mode="overwrite", options={"path": path}).deliver(batch_of(matches_of(spark)))
    assert spark.read.parquet(str(folder)).count() == len(ROWS)


@pytest.mark.spark
def test_delta_is_told_query_and_batch(spark: Any) -> None:
    told: dict[str, Any] = {}  # without Delta's jars there is nobody else to ask

    class Writer:
        def format(self, name: str) -> Writer:
            told["format"] = name
            return self

        def mode(self, mode: str) -> Writer:
            told["mode"] = mode
            return self

        def options(self, **options: str) -> Writer:
            told.update(options)
            return self

        def save(self) -> None:
            told["saved"] = True

    class Matches:
        sparkSession = spark  # noqa: N815  as Spark calls it
        write = Writer()
        columns = ("order", "subscription", "version", "batch", "query")

        def select(self, *_: Any) -> Matches:
            return self

    matches: Any = Matches()
    Format("Delta", options={"path": "/table"}).deliver(batch_of(matches))
    assert told == {
        "format": "Delta",
        "mode": "append",
        "path": "/table",
        "txnAppId": QUERY,
        "txnVersion": "42",
        "saved": True,
    }


@pytest.mark.spark
def test_what_a_format_cannot_take_is_said(spark: Any, tmp_path: Path) -> None:
    where = {"path": str(tmp_path / "out")}
    nested = spark.sql("SELECT array(1) AS tags, 'a' AS subscription, 1L AS version")
    with pytest.raises(OptionError, match=r"csv cannot hold .*`tags`"):
        Format("csv", options=where).deliver(batch_of(nested, keys=("tags",)))
    sink = Format("json", partition_by="colour", options=where)
    with pytest.raises(OptionError, match=r"partition_by names 'colour', .* order, subscription"):
        sink.deliver(batch_of(matches_of(spark)))
    for name in ("batch", "QUERY"):
        taken = matches_of(spark).withColumnRenamed("order", name)
        with pytest.raises(
            OptionError, match=f"the key column '{name}' has the name of an output column"
        ):
            Format("json", options=where).deliver(batch_of(taken, keys=(name,)))
    assert not (tmp_path / "out").exists()
    for name in ("no-such-format", "no.such.Format", "a b/c", "avro"):
        with pytest.raises(OptionError, match=f"Spark has no format '{name}'"):
            Format(name, options=where).check(spark)
    with pytest.raises(OptionError, match="use the sink Kafka"):
        Format("kafka").check(spark)
    Format("jdbc", options={"url": "jdbc:x:y", "dbtable": "m"}).check(spark)
    Format("noop").check(spark)
    Format("noop").deliver(batch_of(matches_of(spark)))


def test_formats_at_the_door() -> None:
    for name in ("", " ", None, 3):
        with pytest.raises(OptionError, match="name must be the name of a Spark format"):
            Format(name)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="mode must be 'append' or 'overwrite', not 'ignore'"):
        Format("jdbc", mode="ignore")
    with pytest.raises(OptionError, match="give their folder in options, as 'path'"):
        Format("parquet")
    with pytest.raises(OptionError, match="none replaces another"):
        Format("parquet", mode="overwrite", options={"path": "x"})
    with pytest.raises(OptionError, match="text holds one column"):
        Format("text", options={"path": "x"})
    with pytest.raises(OptionError, match="txnAppId and txnVersion are set"):
        Format("delta", options={"path": "x", "TxnVersion": 3})
    with pytest.raises(OptionError, match="options must be names with strings or numbers"):
        Format("jdbc", options={"url": None})  # type: ignore[dict-item]
    with pytest.raises(OptionError, match="partition_by must be the name of a column"):
        Format("jdbc", partition_by=3)  # type: ignore[arg-type]
    assert Format("x", options={"a": True, "b": 1}).options == {"a": "true", "b": "1"}
    assert "secret" not in repr(Format("jdbc", options={"password": "secret"}))


# Kafka


@pytest.mark.spark
def test_without_the_connector_kafka_is_refused_at_the_start(spark: Any) -> None:
    with pytest.raises(OptionError, match=r"spark-sql-kafka-0-10_2.13:.*make kafka-jars"):
        Kafka("127.0.0.1:9092", "matches").check(spark)


@pytest.mark.spark
def test_messages_have_a_key_for_each_match(spark: Any) -> None:
    sink = Kafka("127.0.0.1:9092", "matches")
    messages = sink.messages(batch_of(matches_of(spark))).collect()
    assert [json.loads(message.value) for message in messages] == [
        {"order": order, "subscription": name, "version": version, "batch": 42}
        for order, name, version in ROWS
    ]
    keys = [message.key for message in messages]
    assert len(set(keys)) == len(ROWS)
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)
    again = sink.messages(batch_of(matches_of(spark), 43, query="other")).collect()
    assert [message.key for message in again] == keys  # whichever batch or query found it


@pytest.mark.spark
def test_keys_tell_apart_what_differs_and_nothing_else(spark: Any) -> None:
    sql = """
        SELECT * FROM VALUES
            (TIMESTAMP'2026-03-01 00:00:00.000001', TIMESTAMP_NTZ'2026-03-01 00:00:00', 'x', 's'),
            (TIMESTAMP'2026-03-01 00:00:00.000002', TIMESTAMP_NTZ'2026-03-01 00:00:00', 'x', 's'),
            (TIMESTAMP'2026-03-01 00:00:00.000001', TIMESTAMP_NTZ'2026-03-01 00:00:00.000001',
             'x', 's'),
            (NULL, TIMESTAMP_NTZ'2026-03-01 00:00:00', 'x', 's'),
            (TIMESTAMP'2026-03-01 00:00:00.000001', NULL, NULL, 's'),
            (TIMESTAMP'2026-03-01 00:00:00.000001', NULL, 'x","subscription":"s', 's')
        AS t (at, local, `a.b`, subscription)
    """
    names = ("at", "local", "a.b")
    matches = spark.sql(sql).selectExpr("*", "1L AS version").localCheckpoint()
    sink = Kafka(["127.0.0.1:9092", "127.0.0.2:9092"], "matches")
    keys = [row.key for row in sink.messages(batch_of(matches, keys=names)).collect()]
    assert len(set(keys)) == 6
    messages = sink.messages(batch_of(matches, keys=names[::-1])).collect()
    assert [row.key for row in messages] == keys
    assert json.loads(messages[0].value)["a.b"] == "x"
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        again = sink.messages(batch_of(matches, keys=names)).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [row.key for row in again] == keys


def test_kafka_at_the_door() -> None:
    assert Kafka(["a:1", "b:2"], "t").servers == "a:1,b:2"
    assert Kafka("SSL://a:1", "t").servers == "SSL://a:1"
    for servers in ("", [], None, "localhost", "a:1,b", "a:1 b:2"):
        with pytest.raises(OptionError, match="servers"):
            Kafka(servers, "t")  # type: ignore[arg-type]
    for topic in ("", "a b", "é", "..", "x" * 250, None, ["t"]):
        with pytest.raises(OptionError, match="topic must be at most 249"):
            Kafka("a:1", topic)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"'kafka\.acks'"):
        Kafka("a:1", "t", options={"acks": "all"})
    with pytest.raises(OptionError, match="give servers instead"):
        Kafka("a:1", "t", options={"kafka.bootstrap.servers": "b:1"})
    assert "secret" not in repr(Kafka("a:1", "t", options={"kafka.sasl.jaas.config": "secret"}))
