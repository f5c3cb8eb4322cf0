"""A stream matched against a changing catalog: every match once, each batch pinned to a version.

In the order in which a micro-batch meets them::

    sources.py               where events come from
    pipeline.py steps.py     the stream, and what is done with each micro-batch
    pins.py  claims.py       the catalog's newest version is recorded before anything is matched
    documents.py             its events become documents, where there is a history
    outbox.py                tasks match and write Parquet, the driver commits it
    after.py state.py        edges and throttles, and what they remember
    batch.py                 what a sink gets of it
    files.py tables.py forwarding.py webhook.py (letters.py)   the sinks
    metrics.py listener.py           figures: kept, and heard from Spark
    json_lines.py prometheus.py      the same for other programs

The view of the pinned version, base snapshot and deltas, is made in ``spark/catalogs``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittern.spark.streaming import sources
    from bittern.spark.streaming.after import Edge, Throttle
    from bittern.spark.streaming.files import Files
    from bittern.spark.streaming.forwarding import Format, Kafka
    from bittern.spark.streaming.metrics import Metrics
    from bittern.spark.streaming.pipeline import Pipeline
    from bittern.spark.streaming.tables import NamedTable
    from bittern.spark.streaming.webhook import Webhook

__all__ = [
    "Edge",
    "Files",
    "Format",
    "Kafka",
    "Metrics",
    "NamedTable",
    "Pipeline",
    "Throttle",
    "Webhook",
    "sources",
]

# Loaded on first use, so that importing the package does not load pyspark.
_HOMES = {
    "Edge": "after",
    "Files": "files",
    "Format": "forwarding",
    "Kafka": "forwarding",
    "Metrics": "metrics",
    "Pipeline": "pipeline",
    "NamedTable": "tables",
    "Throttle": "after",
    "Webhook": "webhook",
}


def __getattr__(name: str) -> Any:
    if name == "sources":
        return import_module(f"{__name__}.sources")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
