"""Pipelines that read a Kafka broker's topics: one to the end of what is there, one that stays.

Each has a folder: ``catalog.db`` is there before, ``checkpoint``, ``matches`` and ``rejects`` are
what it makes. With ``to``, matches go to that topic instead of ``matches``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from steady import PATIENCE

_running: dict[str, Any] = {}


def _pipeline(
    spark: Any, servers: Any, topics: Any, folder: str, to: str | None, options: Any, **how: Any
) -> Any:
    from bittern.spark import streaming

    source = streaming.sources.kafka(spark, servers, topics, **options)
    return streaming.Pipeline(
        source.events,
        f"{folder}/catalog.db",
        f"{folder}/matches" if to is None else streaming.Kafka(servers, to),
        f"{folder}/checkpoint",
        event_id=source.event_id,
        json=source.json,
        rejects=f"{folder}/rejects",
        **how,
    )


def run(
    spark: Any, servers: Any, topics: Any, folder: str, to: str | None = None, **options: Any
) -> None:
    """Match all that is new since the checkpoint."""
    pipeline = _pipeline(spark, servers, topics, folder, to, options, available_now=True)
    running = pipeline.start()
    try:
        assert running.await_termination(PATIENCE), "the stream did not come to an end"
    finally:
        running.stop()


def start(spark: Any, servers: Any, topics: Any, folder: str, **options: Any) -> None:
    """Start a stream that looks for messages until it is stopped."""
    pipeline = _pipeline(spark, servers, topics, folder, None, options, trigger="100 milliseconds")
    _running[folder] = pipeline.start()


def wait(spark: Any, folder: str, n: int) -> int:
    """Wait until the stream has written so many matches; how many there are."""
    deadline = time.monotonic() + PATIENCE
    while (found := _written(folder)) < n:
        # Raises, with the reason, if the stream has stopped.
        assert not _running[folder].await_termination(0.1), "the stream came to an end"
        assert time.monotonic() < deadline, f"{found} of {n} matches in time"
    return found


def _written(folder: str) -> int:
    files = Path(folder).glob("matches/batch=*/*.parquet")
    return sum(pq.read_metadata(file).num_rows for file in files)


def stop(spark: Any, folder: str) -> None:
    """End the stream after its batch."""
    _running.pop(folder).stop()
