"""The simplest plan: a ``match`` in the stream, whose workers look for newer versions themselves.

::

    driver, every second           <store>/catalogs/<uid>/.../current.json        workers, each task
    catalog.version() changed?     {"version": 4711, "layers": [                  read it, if the
    ──► base, deltas published ──►   {"snapshot": "3fa9...", "dead": "..."}, ──►  last look is a
                                     {"snapshot": "77c0...", "dead": ""}]}        second ago

There is no pin and no ``foreachBatch``: Spark plans the matching as part of the stream, and any
sink of Spark takes the result. In return, two tasks of a batch may see different versions, and so
may a task that is run again. Where that matters, use ``Pipeline``.

Published deltas are removed when they have not been current for a while. A delta that becomes
current again stays, since equal deltas have the same name.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from bittern.catalog.catalog import Catalog
from bittern.engine.matcher import StateMatcher
from bittern.errors import BitternError, SnapshotError
from bittern.model.event_schema import EventSchema
from bittern.spark.catalogs.builder import Builder
from bittern.spark.catalogs.views import CarriedLayer, View
from bittern.spark.session import is_connect
from bittern.spark.snapshots import store as stores
from bittern.spark.snapshots import transport
from bittern.spark.snapshots.node_cache import SnapshotRef
from bittern.spark.told import component, read_told, whole, words

logger = logging.getLogger("bittern")

#: Seconds between two looks, of the driver at the catalog and of a worker at the pointer.
REFRESH = 1.0
#: Seconds that a delta which is no longer current stays for workers that have not looked since.
_LINGER = 120.0
#: How often a store is asked to remove one, with that time in between.
_ATTEMPTS = 5


@dataclass(frozen=True)
class Following:
    """What a closure carries: where the pointer is, and the snapshots."""

    pointer: str
    folder: str

    @property
    def id(self) -> str:
        """Its name in metrics: there is not just one snapshot."""
        return "eventual"

    def matcher(self) -> StateMatcher:
        """A matcher for the newest version that this process has seen."""
        return _look(self.pointer, self.folder).matcher()


# Of this process: when the pointer was read last, and what it said.
_seen: dict[str, tuple[float, View]] = {}


def _look(pointer: str, folder: str) -> View:
    now = time.monotonic()
    known = _seen.get(pointer)
    if known is not None and now - known[0] < REFRESH:
        return known[1]
    try:
        view = _parse(read_told(transport.read_file(pointer)), folder)
        view.matcher()
    except (OSError, ValueError, KeyError, TypeError, SnapshotError) as error:
        if known is None:
            raise SnapshotError(f"cannot read the view at {pointer}: {error}") from error
        logger.warning("bittern: matching continues with version %d: %s", known[1].version, error)
        view = known[1]
    _seen[pointer] = (now, view)
    return view


def _parse(told: dict[str, Any], folder: str) -> View:
    layers = []
    for each in told["layers"]:
        identity = component(each["snapshot"])
        uri = transport.child(folder, identity)
        if each["uri"] != uri:
            raise ValueError(f"{each['uri']!r:.200} is not {uri}")
        dead = base64.b64decode(words(each["dead"]), validate=True)
        layers.append(CarriedLayer(SnapshotRef(identity, uri), dead))
    sets = []
    for each in told.get("sets", ()):
        identity = component(each)
        sets.append(SnapshotRef(identity, transport.child(folder, identity)))
    return View(whole(told["version"]), tuple(layers), tuple(sets))


class CatalogFollower(threading.Thread):
    """Keeps the pointer at the catalog's newest version, while session and catalog are open."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        store: str | None,
        schema: EventSchema | None = None,
    ) -> None:
        super().__init__(name="bittern-follower", daemon=True)
        self._catalog = catalog
        self._builder = Builder(spark, catalog, store, schema=schema)
        self._spark = weakref.ref(spark)
        self._folder = self._builder.folder
        self._current: View | None = None
        #: Since when which deltas are not current or could not be removed, the oldest first, and
        #: how often that was tried.
        self._old: dict[str, tuple[float, int]] = {}
        self._ended = threading.Event()
        pointer = transport.child(self._builder.list_folder, "current.json")
        self.following = Following(pointer, self._folder)
        self._refresh()

    def run(self) -> None:
        """Look, publish, sleep. A failure leaves the pointer as it is until the next look."""
        while not self._ended.wait(REFRESH):
            spark = self._spark()
            if spark is None or _is_stopped(spark):
                break
            if self._catalog.is_closed:
                logger.warning(
                    "bittern: the catalog was closed: streams that match with it stay at its "
                    "version %d",
                    self._current.version if self._current else 0,
                )
                break
            try:
                self._refresh()
            except (BitternError, OSError) as error:
                logger.warning("bittern: the view stays at its version: %s", error)
            except Exception:
                logger.exception("bittern: the view stays at its version")
        self._builder.close()

    def is_of_use(self) -> bool:
        """Whether newer versions are still published."""
        return self.is_alive() and not self._catalog.is_closed

    def stop(self) -> None:
        """End; workers continue with the last version."""
        self._ended.set()

    def _refresh(self) -> None:
        version = self._catalog.version()
        if self._current is None or version != self._current.version:
            view = self._builder.view(version, carry=False)
            self._point(view)
            self._retire(view)
            self._current = view
        self._remove_old()

    def _point(self, view: View) -> None:
        layers = [
            {
                "snapshot": layer.index.id,
                "uri": transport.child(self._folder, layer.index.id),
                "dead": base64.b64encode(layer.dead).decode(),
            }
            for layer in view.layers
        ]
        sets = [each.id for each in view.named_sets]
        text = json.dumps({"version": view.version, "layers": layers, "sets": sets}).encode()
        try:
            transport.write_file(self.following.pointer, text)
        except OSError as error:
            raise SnapshotError(f"cannot write {self.following.pointer}: {error}") from error

    def _retire(self, view: View) -> None:
        """Note which deltas and sets are no longer current; bases stay, for later drivers."""
        now, kept = time.monotonic(), {layer.index.id for layer in view.layers}
        kept |= {each.id for each in view.named_sets}
        for identity in kept & self._old.keys():
            del self._old[identity]
        if self._current is not None:
            before = [layer.index for layer in self._current.layers[1:]]
            for each in (*before, *self._current.named_sets):
                if each.id not in kept:
                    self._old[each.id] = now, 0

    def _remove_old(self) -> None:
        now = time.monotonic()
        for identity, (since, tried) in list(self._old.items()):
            if now - since <= _LINGER:
                break
            del self._old[identity]
            try:
                stores.remove(self._folder, identity)
            except SnapshotError as error:
                if tried + 1 < _ATTEMPTS:
                    self._old[identity] = now, tried + 1
                else:
                    logger.warning(
                        "bittern: a delta that is no longer needed could not be removed: %s", error
                    )


def _is_stopped(spark: Any) -> bool:
    if is_connect(spark):
        return bool(spark.is_stopped)
    return spark.sparkContext._jsc is None  # noqa: SLF001


_followers: weakref.WeakKeyDictionary[
    SparkSession, dict[tuple[str, str | None, str | None], CatalogFollower]
] = weakref.WeakKeyDictionary()


def follow(
    spark: SparkSession, catalog: Catalog, store: str | None, schema: EventSchema | None = None
) -> Following:
    """Publish newest versions for the workers of a session, with one thread for each catalog.

    ``schema`` is that of the events: there is one for each, too.
    """
    own = _followers.setdefault(spark, {})
    key = catalog.uid, store, None if schema is None else schema.id
    follower = own.get(key)
    if follower is None or not follower.is_of_use():
        follower = own[key] = CatalogFollower(spark, catalog, store, schema)
        follower.start()
    return follower.following
