"""A stream matched against a changing catalog: every match once, each batch pinned to a version.

One micro-batch goes ``pipeline.py`` → ``steps.py``: the catalog's newest version is recorded before
anything is matched (``pins.py``) → base snapshot and deltas of that version
(``spark/catalogs/builder.py``, ``views.py``) → tasks match and write Parquet, the driver commits it
(``outbox.py``) → edges and throttles (``after.py``) → the sink (``files.py``, ``forwarding.py``,
``webhook.py``) → Spark's commit.
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
    from bittern.spark.streaming.webhook import Webhook

__all__ = [
    "Edge",
    "Files",
    "Format",
    "Kafka",
    "Metrics",
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
