"""Calls whose Python workers cannot import bittern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bittern
import bittern.spark
from bittern.spark import workers


def attempts(spark: Any, folder: str) -> dict[str, list[str]]:
    """What each call raises: the exception's name and message."""
    subscriptions = spark.createDataFrame([(1, "price < 10")], "id long, expression string")
    events = spark.range(5).selectExpr("id", "cast(id AS double) AS price")
    index = bittern.Index.build({"a": "price < 3"})
    calls = {
        "match": lambda: bittern.spark.match(events, index),
        "register": lambda: bittern.spark.register(spark, index, "f"),
        "write": lambda: bittern.spark.write(events, index, Path(folder) / "out"),
    }
    raised = {name: _raised(call) for name, call in calls.items()}
    # As on a cluster, where nobody tries beforehand.
    workers._tried.add(spark.sparkContext)
    later = {
        "build": lambda: bittern.spark.build(subscriptions),
        "build with a sample": lambda: bittern.spark.build(subscriptions, sample=events),
        "write later": lambda: bittern.spark.write(events, index, Path(folder) / "out"),
    }
    return raised | {name: _raised(call) for name, call in later.items()}


def _raised(call: Any) -> list[str]:
    try:
        call()
    except Exception as error:  # noqa: BLE001
        return [type(error).__name__, str(error)]
    return ["", ""]
