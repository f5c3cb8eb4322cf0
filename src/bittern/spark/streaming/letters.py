"""What a task of the webhook does: cut matches into requests, deliver them, keep the dead letters.

::

    url            subscriber  match                       request 0 of (a, ann)
    https://a/...  ann         {"order": 17, ...}   ──►    {"query": "f3...", "batch": 9,
    https://a/...  ann         {"order": 18, ...}           "version": 4711, "time": "2026-...",
    https://a/...  bob         {"order": 17, ...}           "subscriber": "ann", "request": 0,
                                                            "matches": [{"order": 17, ...}, ...]}

Rows come sorted, so equal input is cut into equal requests. A request's key is a hash of its URL
and body, which hold all that tells one from another: equal keys are equal requests.

Dead letters are written to a file of the task's attempt, which counts if Spark accepts the attempt
(``staging.py``). They hold no header, no signature and no password of a URL.

Cost: what ``delivery/lanes.py`` says, and a row group of dead letters.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from pyspark import TaskContext

from bittern.delivery.addresses import networks, shown
from bittern.delivery.lanes import Delivery, Endpoint, Outcome, Terms
from bittern.delivery.posting import Post, Request
from bittern.spark.operator import Batches
from bittern.spark.sink.part_files import Table, row_of

#: Characters of matches in a request, unless a single match has more.
_MOST_CHARACTERS = 1 << 20
_DEAD_LETTER = pa.schema(
    [
        ("version", pa.int64()),
        ("subscriber", pa.string()),
        ("url", pa.string()),
        ("idempotency_key", pa.string()),
        ("attempts", pa.int32()),
        ("status", pa.int32()),
        ("reason", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("payload", pa.string()),
    ]
)
COUNTS = ("requests", "matches", "attempts", "dead_requests", "dead_matches")
#: URLs, each with a subscriber.
PAIRS = pa.list_(pa.list_(pa.string()))
#: What a task returns, in one row; the file is null where there was nothing to write.
REPORT = pa.schema(
    [
        ("file", pa.string()),
        ("bytes", pa.int64()),
        *((name, pa.int64()) for name in COUNTS),
        ("given_up", PAIRS),
        ("untried", PAIRS),
    ]
)


@dataclass(frozen=True)
class LetterTask:
    """What runs on each partition: plain data that a closure carries."""

    query_id: str
    batch_id: int
    version: int
    time: str
    terms: Terms
    suspects: frozenset[Endpoint]
    most_matches: int
    private: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    secret: bytes | None = field(repr=False)
    dead_letters: Table

    def __call__(self, batches: Batches) -> Batches:
        """Deliver one partition; yields one row, of ``REPORT``."""
        context = TaskContext.get()
        assert context is not None
        yield self.run(batches, context.partitionId(), context.taskAttemptId())

    def run(self, batches: Batches, partition: int, attempt: int) -> pa.RecordBatch:
        """Deliver one attempt of a partition; returns the report when dead letters are on disk."""
        rows = (
            row
            for batch in batches
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        post = Post(networks(self.private), self.headers, self.secret)
        delivery = Delivery(post, self.terms, self.suspects)
        part = self.dead_letters.part(partition, attempt)
        counts = dict.fromkeys(COUNTS, 0)
        given_up: set[Endpoint] = set()
        untried: set[Endpoint] = set()
        try:
            for outcome in delivery.run(self.requests(rows)):
                counts["requests"] += 1
                counts["matches"] += outcome.request.matches
                counts["attempts"] += outcome.attempts
                if outcome.gave_up:
                    told = untried if outcome.untried else given_up
                    told.add((outcome.request.url, outcome.request.subscriber))
                if outcome.reason is not None:
                    counts["dead_requests"] += 1
                    counts["dead_matches"] += outcome.request.matches
                    part.add(self._dead_letter(outcome))
            file, size = part.close()
        except BaseException:
            part.discard()
            raise
        return row_of(REPORT, [file, size, *counts.values(), list(given_up), list(untried)])

    def requests(self, rows: Iterable[tuple[str, str | None, str]]) -> Iterator[Request]:
        """Cut the matches of each URL and subscriber, which stand together, into requests."""
        for (url, subscriber), group in itertools.groupby(rows, key=lambda row: row[:2]):
            texts = (text for _, _, text in group)
            for number, matches in enumerate(pieces(texts, self.most_matches)):
                envelope = {
                    "query": self.query_id,
                    "batch": self.batch_id,
                    "version": self.version,
                    "time": self.time,
                    "subscriber": subscriber,
                    "request": number,
                }
                # Matches are JSON already.
                text = f'{json.dumps(envelope)[:-1]}, "matches": [{", ".join(matches)}]}}'
                body = text.encode()
                key = hashlib.sha256(url.encode() + b"\n" + body).hexdigest()[:32]
                yield Request(subscriber, url, key, body, len(matches))

    def _dead_letter(self, outcome: Outcome) -> pa.RecordBatch:
        request = outcome.request
        row = {
            "version": self.version,
            "subscriber": request.subscriber,
            "url": shown(request.url),
            "idempotency_key": request.key,
            "attempts": outcome.attempts,
            "status": outcome.status,
            "reason": outcome.reason,
            "time": datetime.now(UTC),
            "payload": request.body.decode(),
        }
        return pa.RecordBatch.from_pylist([row], _DEAD_LETTER)


def pieces(texts: Iterable[str], most: int) -> Iterator[list[str]]:
    """Texts in their order, as many together as a request may carry."""
    piece: list[str] = []
    size = 0
    for text in texts:
        if piece and (len(piece) == most or size + len(text) > _MOST_CHARACTERS):
            yield piece
            piece, size = [], 0
        piece.append(text)
        size += len(text)
    if piece:
        yield piece
