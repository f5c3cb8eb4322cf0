"""How a view reaches the workers: in the closure if it is small, else as a broadcast.

PySpark writes a closure of more than a MiB to a file that stays as long as the session does: a
view that changes with every batch would fill a disk in days. A broadcast is such a file too, but it
can be removed, and a worker reads it once however many batches use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import Broadcast
from pyspark.sql import SparkSession

from bittern.engine.live.delta import State
from bittern.engine.matcher import StateMatcher
from bittern.spark.catalogs.views import View

#: Bytes that a closure may carry; the rest of one is small.
CLOSURE = 1 << 19


@dataclass(frozen=True)
class Sent:
    """A view that workers have, or fetch when they need it."""

    id: str
    view: Broadcast[View]

    def matcher(self) -> StateMatcher:
        """A matcher for it, in any process."""
        return self.view.value.matcher()

    def state(self) -> State:
        """The version as a state, for callers that match with more than it."""
        return self.view.value.state()

    def sets(self) -> Mapping[str, Any]:
        """The named sets of the version."""
        return self.view.value.sets()


class Sender:
    """Sends views one after the other; the previous one is removed when the next is sent."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._last: Sent | None = None

    def sent(self, view: View) -> View | Sent:
        """What a closure carries for a view."""
        if view.nbytes <= CLOSURE:
            return view
        if self._last is None or self._last.id != view.id:
            self.close()
            self._last = Sent(view.id, self._spark.sparkContext.broadcast(view))
        return self._last

    def close(self) -> None:
        """Remove what was sent last."""
        if self._last is not None:
            self._last.view.destroy()
            self._last = None
