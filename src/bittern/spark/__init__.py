"""Bittern on Spark: a DataFrame of events in, a DataFrame of matches out.

::

    import bittern.spark

    bittern.spark.match(events, subscriptions, event_id="id")

One event goes ``frames.match`` → a projection to the attributes in use (``attributes.py``) →
``mapInArrow`` of ``operator.py`` → in a worker, the snapshot mapped from the node's cache
(``snapshots/``) → the embedded engine → one row per event. ``building.py`` compiles subscriptions
on the executors, ``sharded/`` is for indexes that outgrow a host, ``past.py`` and its neighbours
provide the documents that events are compared with, ``sink/`` writes matches straight from the
tasks, ``sql.py`` is for SQL, and ``streaming/`` matches a stream against a catalog that changes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.spark import streaming
    from bittern.spark.building import build
    from bittern.spark.frames import match
    from bittern.spark.planning import plan
    from bittern.spark.sink.writing import write
    from bittern.spark.sql import register
    from bittern.spark.streaming.pipeline import Pipeline

__all__ = ["Pipeline", "build", "match", "plan", "register", "streaming", "write"]

# Loaded on first use, so that importing the package does not load pyspark.
_HOMES = {
    "Pipeline": "bittern.spark.streaming.pipeline",
    "build": "bittern.spark.building",
    "match": "bittern.spark.frames",
    "plan": "bittern.spark.planning",
    "register": "bittern.spark.sql",
    "write": "bittern.spark.sink.writing",
}


def __getattr__(name: str) -> Any:
    if name == "streaming":
        return import_module("bittern.spark.streaming")
    if name not in _HOMES:
        raise AttributeError(f"module 'bittern.spark' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
