"""Delivers matches to subscribers: a POST to each subscriber's URL, from the tasks.

A subscription names its URL in the catalog, in its metadata. The driver looks up the subscriptions
that matched in the batch, at the batch's catalog version, and the tasks deliver::

    matches                    catalog at version 4711             requests
    order  subscription        id       subscriber  metadata       https://a.example/x
    17     alert-3             alert-3  ann         {"webhook":      {"subscriber": "ann", ...
    18     alert-3                                   "https://        "matches": [{"order": 17,
    17     wish-8                                    a.example/x"}     "subscription": "alert-3"},
                               wish-8   bob         {}   skipped      {"order": 18, ...}]}

Rows are sorted by URL, subscriber, keys and subscription before tasks cut them into requests
(``letters.py``), so that a batch makes the same requests, with the same keys, whenever it is
delivered. What has waited for the most batches comes first. Delivery is at least
once, since a driver or task that dies does not know what it sent; the key tells a receiver what it
has seen.

What cannot be delivered goes to the dead letters, exactly once for each batch::

    <dead_letters>/query=<id>/batch=17/part-*.parquet      staged and renamed: staging.py
        version  subscriber  url  idempotency_key  attempts  status  reason  time  payload

They are committed after everything else is delivered. So a batch with dead letters is known to be
done and is not delivered again; a batch without any is.

Cost: one shuffle of the matches, and what ``delivery/lanes.py`` says for each task.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from bittern.delivery.addresses import networks, url_in
from bittern.delivery.lanes import Endpoint, Terms
from bittern.delivery.posting import check_headers
from bittern.errors import OptionError, brief
from bittern.options import whole_number
from bittern.spark.arrow_tables import frame_of, to_arrow
from bittern.spark.arrow_types import report_schema
from bittern.spark.attributes import quoted
from bittern.spark.operator import SUBSCRIPTION
from bittern.spark.sink.part_files import Table
from bittern.spark.sink.staging import Staging, local_path
from bittern.spark.streaming.batch import Batch, Sink, as_json
from bittern.spark.streaming.letters import COUNTS, REPORT, LetterTask

logger = logging.getLogger("bittern")

_ORDERED = (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_TARGETS = pa.schema(
    [
        (SUBSCRIPTION, pa.string()),
        ("subscriber", pa.string()),
        ("url", pa.string()),
        ("waited", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Delivered:
    """The outcome of a batch; requests and matches include the dead letters."""

    requests: int = 0
    matches: int = 0
    attempts: int = 0
    dead_requests: int = 0
    dead_matches: int = 0
    #: Matches of subscriptions that have no URL.
    skipped: int = 0


class Webhook(Sink):
    """Delivers each match to the URL that its subscription names, in requests for each subscriber.

    Parameters
    ----------
    dead_letters
        Folder that driver and executors share, for requests that could not be delivered.
    entry
        The entry of a subscription's metadata that holds its URL. Subscriptions without it are
        skipped.
    attempts, first_wait, longest_wait, timeout, within
        How hard to try, in attempts and seconds: see ``delivery/lanes.py``.
    concurrency
        Connections of each task; there are as many tasks as Spark has cores.
    most_matches
        The most matches in one request.
    private
        Networks that are allowed although they are not public, such as "10.0.0.0/8".
    headers
        Sent with every request.
    secret
        Signs every request, in the header Bittern-Signature.
    """

    def __init__(
        self,
        *,
        dead_letters: str | os.PathLike[str],
        entry: str = "webhook",
        attempts: int = 5,
        first_wait: float = 0.5,
        longest_wait: float = 30.0,
        timeout: float = 10.0,
        within: float = 60.0,
        concurrency: int = 8,
        most_matches: int = 500,
        private: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        secret: str | bytes | None = None,
    ) -> None:
        self._dead_letters = os.fspath(dead_letters)
        self._entry = entry
        self._terms = Terms(
            attempts=whole_number("attempts", attempts, 1, 100),
            first_wait=_seconds("first_wait", first_wait),
            longest_wait=_seconds("longest_wait", longest_wait),
            timeout=_seconds("timeout", timeout, zero=False),
            within=_seconds("within", within, zero=False),
            concurrency=whole_number("concurrency", concurrency, 1, 256),
        )
        self._most_matches = whole_number("most_matches", most_matches, 1, 1_000_000)
        networks(private)
        self._private = tuple(private)
        self._headers = check_headers(headers or {})
        if secret is not None and not (isinstance(secret, str | bytes) and secret):
            raise OptionError("secret must be a string that is not empty, or None for no signature")
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._given_up: frozenset[Endpoint] = frozenset()
        #: For how many batches in a row each endpoint had matches and was not tried. One batch
        #: alone would not be fair: an endpoint that failed in the one before would come before one
        #: that has waited longer.
        self._waits: dict[Endpoint, int] = {}
        #: Of the last batch that this sink delivered.
        self.last: Delivered | None = None

    def __repr__(self) -> str:
        return f"Webhook(dead_letters={self._dead_letters!r}, entry={self._entry!r})"

    def check(self, spark: SparkSession) -> None:  # noqa: ARG002
        """Raise an OptionError unless dead letters can be written; writes nothing."""
        place = local_path(self._dead_letters, "dead_letters")
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise OptionError(
                f"dead_letters must be a folder that driver and executors can write to, but "
                f"{self._dead_letters} is not: look at {there}"
            )

    def deliver(self, batch: Batch) -> None:
        """Deliver a batch; returns when every request was answered or is a dead letter."""
        folder = f"{self._dead_letters}/{batch.place}"
        if local_path(folder).exists():
            return
        targets, skipped = self._targets(batch)
        found: dict[str, int] = {}
        if targets.num_rows:
            found = self._post(batch, targets, folder)
        self.last = Delivered(**found, skipped=skipped)
        if self.last.dead_requests:
            logger.warning(
                "batch %d: %d of %d requests to webhooks are in %s",
                batch.batch_id,
                self.last.dead_requests,
                self.last.requests,
                folder,
            )

    def _targets(self, batch: Batch) -> tuple[pa.Table, int]:
        """The URLs of the batch's subscriptions, and how many matches have none."""
        counted = to_arrow(batch.matches.groupBy(SUBSCRIPTION).agg(F.count(F.lit(1))))
        ids, counts = (column.to_pylist() for column in counted.columns)
        details = batch.catalog.details(ids, batch.version)
        columns = (details.column(name).to_pylist() for name in ("id", "subscriber", "metadata"))
        rows = [
            {
                SUBSCRIPTION: id_,
                "subscriber": subscriber,
                "url": url,
                "waited": self._waits.get((url, subscriber), 0),
            }
            for id_, subscriber, metadata in zip(*columns, strict=True)
            if (url := url_in(metadata, self._entry)) is not None
        ]
        wanted = {row[SUBSCRIPTION] for row in rows}
        skipped = sum(n for id_, n in zip(ids, counts, strict=True) if id_ not in wanted)
        return pa.Table.from_pylist(rows, _TARGETS), skipped

    def _post(self, batch: Batch, targets: pa.Table, folder: str) -> dict[str, int]:
        with Staging(folder) as staging:
            task = LetterTask(
                query_id=batch.query_id,
                batch_id=batch.batch_id,
                version=batch.version,
                time=batch.time.astimezone(UTC).isoformat(),
                terms=self._terms,
                suspects=self._given_up,
                most_matches=self._most_matches,
                private=self._private,
                headers=self._headers,
                secret=self._secret,
                dead_letters=Table(str(staging.attempts), staging.token, "zstd", {}),
            )
            rows = _rows(batch, targets)
            reports = rows.mapInArrow(task, report_schema(REPORT)).collect()
            files = [(row["file"], row["bytes"]) for row in reports if row["file"] is not None]
            for name, size in files:
                staging.accept(name, size)
            if files:
                staging.commit()
        self._given_up = _pairs(reports, "given_up")
        untried = _pairs(reports, "untried")
        self._waits = {each: self._waits.get(each, 0) + 1 for each in untried}
        return {name: sum(row[name] for row in reports) for name in COUNTS}


def _pairs(reports: Sequence[Row], name: str) -> frozenset[Endpoint]:
    return frozenset((url, subscriber) for row in reports for url, subscriber in row[name])


def _rows(batch: Batch, targets: pa.Table) -> DataFrame:
    """URL, subscriber and JSON of every match, those of both together and in order.

    Those that have waited for the most batches come first.
    """
    matches = batch.matches
    columns = {name: F.col(quoted(name)) for name in (*batch.carried, SUBSCRIPTION)}
    orders = {
        f"order{at}": columns[key]
        for at, key in enumerate(batch.keys)
        if isinstance(matches.schema[key].dataType, _ORDERED)
    }
    text = as_json(*(column.alias(name) for name, column in columns.items()))
    rows = matches.select(
        columns[SUBSCRIPTION].alias(SUBSCRIPTION),
        text.alias("match"),
        *(column.alias(order) for order, column in orders.items()),
    ).join(frame_of(batch.spark, targets), SUBSCRIPTION)
    return (
        rows.repartition(batch.spark.sparkContext.defaultParallelism, "url")
        .sortWithinPartitions(F.desc("waited"), "url", "subscriber", *orders, SUBSCRIPTION, "match")
        .select("url", "subscriber", "match")
    )


def _seconds(name: str, value: Any, *, zero: bool = True) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 0 <= value <= sys.float_info.max or (value == 0 and not zero):
        least = "of at least 0" if zero else "above 0"
        raise OptionError(f"{name} must be a number of seconds {least}, not {brief(value)}")
    return float(value)
