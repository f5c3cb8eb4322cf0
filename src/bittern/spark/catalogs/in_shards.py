"""A catalog in shards: cut once, and what changes since is with every task.

::

    version 4000     4711                          4725                       ...    104,000
            │        │                             │                                 │
            shards   shards + what changed since   the same shards + some more       cut anew
            (store)  (a view, by catalog.changes)

Shards are cut from the whole catalog when a driver starts, and again when more has changed than
tasks should carry. That is a job of its own, for which a batch waits. Everything else is as in
``builder.py``: here the base of its layers is empty, and the ids that have changed are kept too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession

from bittern.catalog.catalog import Catalog
from bittern.catalog.following import CatalogStep, step_to
from bittern.engine.index import Index
from bittern.engine.live.layers import Layers
from bittern.model.event_schema import EventSchema
from bittern.spark.arrow_tables import frame_of
from bittern.spark.catalogs.builder import COLUMNS, Builder
from bittern.spark.catalogs.sending import CLOSURE
from bittern.spark.sharded.building import build_shards
from bittern.spark.sharded.shards import Shards
from bittern.spark.sharded.since_cut import SinceCut
from bittern.spark.snapshots import node_cache
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.subscriptions.building import rows_of
from bittern.spark.subscriptions.reading import Reading

#: Ids that may have changed before shards are cut anew, and the share of all that may.
_CHANGED, _SHARE = 100_000, 0.02
_SCHEMA = pa.schema([("id", pa.string()), ("expression", pa.string()), ("weight", pa.float64())])


class ShardsBuilder(Builder):
    """Shards of a catalog's versions, for the executors of one Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        store: str | None = None,
        *,
        shards: int,
        schema: EventSchema | None = None,
    ) -> None:
        super().__init__(spark, catalog, store, schema=schema)
        self._n_shards = shards
        self._shards: Shards | None = None
        self._changed: set[str] = set()  # ids, since shards were cut
        self._most = _CHANGED
        self._broadcast: Broadcast[SinceCut] | None = None

    def shards(self, version: int, sample: Callable[[], pa.Table | None] = lambda: None) -> Shards:
        """The shards of a version, and what has changed since they were cut."""
        view = self.view(version, sample)
        assert self._shards is not None
        if not self._changed and not view.named_sets:
            return self._shards
        changes = self._sent(SinceCut.of(view, self._changed))
        return replace(self._shards, changes=changes, attributes=self.attributes())

    def attributes(self) -> tuple[str, ...]:
        """The attributes that the subscriptions of the last view mention."""
        assert self._shards is not None
        return tuple(sorted({*self._shards.attributes, *super().attributes()}))

    def close(self) -> None:
        """Wait for a running compaction, and remove what is temporary."""
        super().close()
        self._forget()
        for ref in () if self._shards is None else _parts(self._shards):
            node_cache.release(ref.id)
        self._shards, self._changed = None, set()

    def _sent(self, changes: SinceCut) -> SinceCut | Broadcast[SinceCut]:
        """What closures carry; a broadcast where PySpark would leave a file for each batch."""
        if changes.nbytes <= CLOSURE:
            return changes
        if self._broadcast is None or self._broadcast.value.id != changes.id:
            self._forget()
            self._broadcast = self._spark.sparkContext.broadcast(changes)
        return self._broadcast

    def _forget(self) -> None:
        """Remove what was sent last."""
        broadcast, self._broadcast = self._broadcast, None
        if broadcast is not None:
            broadcast.destroy()

    def _step_to(self, layers: Layers, version: int) -> CatalogStep | None:
        step = step_to(self._catalog, layers, version, self._most)
        changed = self._changed if step is None else self._changed.union(step.ids)
        if len(changed) > self._most:
            return None
        self._changed = changed
        return step

    def _start(self, version: int, sample: Callable[[], pa.Table | None]) -> Layers:
        self.close()
        self.bad, self._unnamed = {}, 0
        events = sample()
        rows = self._catalog.at(version).select(COLUMNS).cast(_SCHEMA)
        self._most = max(_CHANGED, int(_SHARE * len(rows)))
        self._shards, bad = build_shards(
            rows_of(frame_of(self._spark, rows)),
            self._n_shards,
            sample=events,
            store=self._where,
            stabbing="cei",
            total=len(rows),
            history=False,
            reading=Reading(self._schema),
            on_bad=lambda _: None,
        )
        self._take_bad(bad)
        layers = self._new_layers(Index.build({}), version)
        layers.sample = events
        self._layers = layers
        return layers

    def _register(self, ref: SnapshotRef, version: int) -> None:  # noqa: ARG002
        """No other driver can start from what has changed alone."""
        self._registered = version


def _parts(shards: Shards) -> list[SnapshotRef]:
    """All parts that tasks have mapped."""
    return [shards.router, *shards.shards, *([] if shards.home is None else [shards.home])]
