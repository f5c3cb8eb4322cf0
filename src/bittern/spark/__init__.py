"""Bittern on Spark: a DataFrame of events in, a DataFrame of matches out.

::

    import bittern.spark

    bittern.spark.match(events, subscriptions, event_id="id")

In the order in which a call and its events meet them::

    frames.py asked.py               ``match``, and the options that others share with it
    subscriptions/                   of any form, compiled, where executors find them: ``build``
    snapshots/                       how an index reaches the processes that match with it
    sharded/  catalogs/              an index that outgrows a host; a catalog that changes
    attributes.py arrow_types.py     the columns that cross into Python, and their types
    arrow_tables.py versions.py      tables from DataFrames and back; what older PySparks lack
    terms/                           what the JVM computes for subscriptions, as columns
    history/                         the documents that events are compared with
    operator.py                      in a worker: batch by batch into the embedded engine
    sink/                            ``write``: matches straight from the tasks
    stores/                          tables and small files in an object store
    sql.py  planning.py              ``register`` and ``plan``
    changes/                         ``match_changes``: what rows enter and leave as they change
    backtesting.py                   ``backtest``: what a draft would have matched
    streaming/                       ``Pipeline``: a stream against a catalog that changes
    session.py workers.py told.py    a session for commands; workers without Bittern; what files say
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.spark import changes, streaming
    from bittern.spark.backtesting import backtest
    from bittern.spark.changes.matching import match_changes
    from bittern.spark.frames import match
    from bittern.spark.planning import plan
    from bittern.spark.sink.writing import write
    from bittern.spark.sql import register
    from bittern.spark.stores.reading import read_matches
    from bittern.spark.streaming.pipeline import Pipeline
    from bittern.spark.subscriptions.building import build

__all__ = [
    "Pipeline",
    "backtest",
    "build",
    "changes",
    "match",
    "match_changes",
    "plan",
    "read_matches",
    "register",
    "streaming",
    "write",
]

# Loaded on first use, so that importing the package does not load pyspark.
_HOMES = {
    "Pipeline": "bittern.spark.streaming.pipeline",
    "backtest": "bittern.spark.backtesting",
    "build": "bittern.spark.subscriptions.building",
    "match": "bittern.spark.frames",
    "match_changes": "bittern.spark.changes.matching",
    "plan": "bittern.spark.planning",
    "read_matches": "bittern.spark.stores.reading",
    "register": "bittern.spark.sql",
    "write": "bittern.spark.sink.writing",
}


def __getattr__(name: str) -> Any:
    if name in ("changes", "streaming"):
        return import_module(f"bittern.spark.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'bittern.spark' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
