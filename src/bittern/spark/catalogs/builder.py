"""Makes a view of a catalog's version: a base snapshot and deltas, which are folded in time.

::

    version 4000     4711                   4725                         ...      224,000
            │        │                      │                                     │
            base     base + delta of 300    base + deltas of 300 and 14           a new base
            (store)  (what changed since, by catalog.changes)                     (compaction)

A driver that starts takes the newest base of the catalog that the snapshot store has, up to the
version that it needs, and reads only what changed since; without one it reads the whole catalog and
leaves a base for others. Any number of drivers may share a store::

    <store>/
      3fa9...                            a snapshot, named by its content
      catalogs/<uid of the catalog>/<hash of the events' schema>/
        00000000000000004000.json        {"version": 4000, "snapshot": "3fa9..."}
        00000000000000004000.plain.json  the same without subscriptions that need a history

Bases of one version by two drivers may differ (they saw other events, and file subscriptions under
other predicates) but find the same matches, so the last writer does no harm. All of this is
derived: what is damaged or missing is made again from the catalog. A driver that starts with a base
reads all of it once to check it. Without a history, EXISTS and FORALL cannot be answered:
subscriptions that have them are left out, as bad ones are, and bases without them are *plain*:
a driver that has a history cannot start from those. A note tells what was left out of its base
(``"left_out": [["s7", 0, "EXISTS and FORALL compare ..."]]``), so that every driver can say it;
of very many it names some and tells how many more there are (``"unnamed"``).

Cost: a version with c changes takes a query for them and O(c) to index them, some more now and then
when deltas are folded; a base of a million subscriptions takes some ten seconds, in a process of
its own while deltas go on (``engine/live/compact.py``).
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from bittern.catalog.catalog import Catalog
from bittern.catalog.following import CatalogStep, step_to, tell_left_out
from bittern.engine.index import Index
from bittern.engine.known_schema import KnownSchema, Unknown, tell_unknown
from bittern.engine.live.layers import Layers
from bittern.engine.snapshot.folder import read_snapshot
from bittern.errors import BadSubscription, CatalogError, OptionError, SnapshotError
from bittern.language.derived import sets_of
from bittern.model.event_schema import EventSchema
from bittern.spark.catalogs.views import View, view_of
from bittern.spark.history.past import REMEDY, has_quantifiers, lacks_history, without_quantifiers
from bittern.spark.snapshots import node_cache, transport
from bittern.spark.snapshots import store as stores
from bittern.spark.snapshots.cache_folder import cache_root
from bittern.spark.snapshots.node_cache import SnapshotRef, attach
from bittern.spark.subscriptions.reading import Reading
from bittern.spark.told import component, read_told, whole, words
from bittern.terms.unknown import SPARK

logger = logging.getLogger("bittern")

#: Bases of a catalog that a store keeps.
_KEPT_BASES = 2
#: How the names of bases end that have all subscriptions, and of those that lack some.
_WHOLE, _PLAIN = ".json", ".plain.json"
_BASE = re.compile(r"[0-9]{20}(\.plain)?\.json")
_DIGITS = 20
#: Of a catalog, what a subscription is.
COLUMNS = ["id", "expression", "weight"]
#: Subscriptions that are left out: so many are named in a note.
_NOTED = 1000


class _Note(NamedTuple):
    """A store's note about a base."""

    version: int
    snapshot: str
    left_out: list[BadSubscription]
    unnamed: int  # left out besides these


class Builder:
    """Views of a catalog's versions, for the executors of one Spark session.

    ``bad`` has, by id, the subscriptions of the current version that cannot be matched and are left
    out: they were written without the catalog's checks, or need a ``history`` and there is none.
    After a start from a base that lacks very many, it has only those that the base's note names.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        store: str | None = None,
        *,
        history: bool = False,
        schema: EventSchema | None = None,
    ) -> None:
        """``schema`` is that of the events, whose types tell what texts mean."""
        self._spark = spark
        self._schema = schema
        self._known = None if schema is None else KnownSchema(schema, SPARK)
        self._told: tuple[int, set[str]] = (-1, set())  # a version, and what was missing so far
        self._catalog = catalog
        self._where = stores.destination(spark, store)
        if self._where == stores.ARTIFACTS:
            raise OptionError(
                "a pipeline on a cluster needs store=, a folder or URI that the driver and all "
                "executors can reach, because its snapshots change"
            )
        try:
            self._uid = component(catalog.uid)  # which becomes the name of a folder
        except ValueError as error:
            raise CatalogError(f"{catalog} has an invalid uid: {error}") from None
        self._history = history
        self._is_plain = False  # has something been left out for want of a history?
        self._layers: Layers | None = None
        self._registered = -1
        #: Named sets: in which version each took its form, and an index that has nothing else.
        self._sets: dict[str, tuple[int, Index]] = {}
        self._published: list[str] = []  # bases, the newest last
        self.bad: dict[str | int, BadSubscription] = {}
        self._unnamed = 0  # left out of the base, and not named in its note

    def view(
        self,
        version: int,
        sample: Callable[[], pa.Table | None] = lambda: None,
        *,
        carry: bool = True,
    ) -> View:
        """The view of a version. ``sample`` gives typical events, asked for at the start.

        With ``carry`` small deltas are part of the view, else everything is in the store. Versions
        usually ascend; a version before the last one is built again.
        """
        layers = self._layers
        if layers is None or version < layers.version or not self._advance(layers, version):
            layers = self._start(version, sample)
        with self._or_anew():
            state = layers.seal()
        base, base_version = layers.base()  # younger than the state's, if a compaction ended now
        if base_version != self._registered:
            ref = self._publish(base)
            self._register(ref, base_version)
            self._release_all_but(ref)
        self._tell_missing(version)
        return view_of(state, version, self._publish, self._sets_at(version), carry=carry)

    def _sets_at(self, version: int) -> list[Index]:
        """The sets that subscriptions name, each in an index of its own. O(members that changed).

        A set that the catalog lacks, whoever wrote that, is left out: nothing is known of it.
        """
        names = sets_of(self.attributes())
        known, self._sets = self._sets, {}
        versions = self._catalog.sets.versions(version) if names else {}
        for name in names:
            if name not in versions:
                logger.warning("bittern: subscriptions name the set %r, which there is not", name)
                continue
            since, index = known.get(name, (-1, None))
            if index is None or since != versions[name].version:
                members = self._catalog.sets.members(name, version)
                since, index = versions[name].version, Index.build({}, sets={name: members})
            self._sets[name] = since, index
        return [index for _, index in self._sets.values()]

    def _tell_missing(self, version: int) -> None:
        """Warn of attributes that the events do not have, of each once."""
        told, names = self._told
        if self._known is None or version == told:
            return
        missing = [each for each in self._known.missing(self.attributes()) if each[0] not in names]
        tell_unknown([Unknown(None, *each) for each in missing])
        self._told = version, names | {name for name, _ in missing}

    def attributes(self) -> tuple[str, ...]:
        """The attributes that the subscriptions of the last view mention."""
        assert self._layers is not None
        names: dict[str, None] = {}
        for segment in self._layers.seal().segments:
            names |= dict.fromkeys(segment.index.rank.attribute_names())
        return tuple(names)

    def delta(self) -> tuple[int, int]:
        """How many subscriptions are in deltas, and how many deltas there are."""
        assert self._layers is not None
        _, *deltas = self._layers.seal().segments
        return sum(len(segment.index) for segment in deltas), len(deltas)

    def left_out(self) -> int:
        """How many subscriptions of the last view cannot be matched."""
        return len(self.bad) + self._unnamed

    def close(self) -> None:
        """Wait for a running compaction, and remove temporary files."""
        layers, self._layers = self._layers, None
        if layers is not None:
            layers.close()

    # -- getting there -------------------------------------------------------------------------

    def _advance(self, layers: Layers, version: int) -> bool:
        """Apply the changes; False if they are forgotten, or so many that a new base is quicker."""
        if version == layers.version:
            return True
        step = self._step_to(layers, version)
        if step is None:
            return False
        for id_ in step.ids:
            self.bad.pop(id_, None)
        with self._or_anew():
            bad = step.take(layers)
        self._is_plain |= any(map(lacks_history, bad))
        self._take_bad(bad)
        return True

    def _step_to(self, layers: Layers, version: int) -> CatalogStep | None:
        return step_to(self._catalog, layers, version)

    @contextlib.contextmanager
    def _or_anew(self) -> Iterator[None]:
        """If layers are left half changed, discard them: the next view starts from a base."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _start(self, version: int, sample: Callable[[], pa.Table | None]) -> Layers:
        self.close()
        self.bad, self._unnamed = {}, 0
        self._is_plain = False
        events = sample()
        layers = self._from_store(version)
        if layers is None or not self._advance(layers, version):
            layers = self._new_layers(self._from_catalog(version, events), version)
        layers.sample = events
        self._layers = layers
        return layers

    def _new_layers(self, base: Index, version: int) -> Layers:
        remedy = "" if self._history else REMEDY
        return Layers(
            base,
            version,
            without_history=remedy,
            functions=SPARK,
            schema=self._schema,
            unknown="ignore",  # ``_tell_missing`` tells all at once
        )

    def _from_catalog(self, version: int, sample: pa.Table | None) -> Index:
        self.bad, self._unnamed = {}, 0  # a base that is too old may have said otherwise
        rows = self._catalog.at(version).select(COLUMNS)
        reader = Reading(self._schema).reader()
        shapes, read = reader.shapes, reader.read(rows)
        if not self._history:
            able = without_quantifiers(read, shapes.templates)
            self._is_plain = len(able.ids) < len(read.ids)
            read = able
        self._take_bad(read.bad)
        return Index.of_subscriptions(read, shapes.templates, sample=sample, text_ids=True)

    def _take_bad(self, bad: list[BadSubscription]) -> None:
        tell_left_out(bad)
        self.bad |= {each.id: each for each in bad}

    # -- the store -----------------------------------------------------------------------------

    def _publish(self, index: Index) -> SnapshotRef:
        return stores.with_kernels(self._spark, stores.write(index, self._where), self._where)

    def _release_all_but(self, ref: SnapshotRef) -> None:
        """Keep the new base, and the one before for views that are still in use."""
        self._published = [name for name in self._published if name != ref.id] + [ref.id]
        while len(self._published) > _KEPT_BASES:
            node_cache.release(self._published.pop(0))

    def _from_store(self, version: int) -> Layers | None:
        """The newest base that is not younger than ``version``, if the store has a good one."""
        for name in reversed(self._bases()):
            told = self._read(name)
            if told is None or told.version > version:
                continue
            identity = told.snapshot
            ref = SnapshotRef(identity, transport.child(self.folder, identity))
            try:
                index = _verified(ref)
            except SnapshotError as error:
                if transport.is_shortage(error):
                    raise
                logger.warning("bittern: a base of the catalog is made again: %s", error)
                with contextlib.suppress(SnapshotError):  # of a store that is only read
                    stores.remove(self.folder, identity)
                node_cache.drop(identity)  # its files may be the store's own, linked
                continue
            if not self._history and has_quantifiers(index.rank.attribute_names()):
                continue
            self._registered = told.version
            self._is_plain = name.endswith(_PLAIN)
            self._take_bad(told.left_out)
            self._unnamed = told.unnamed
            return self._new_layers(index, told.version)
        return None

    @property
    def folder(self) -> str:
        """The store, or this host's cache."""
        return str(cache_root()) if self._where == stores.CACHE else self._where

    @property
    def list_folder(self) -> str:
        """Where the store says what it has of the catalog, for events of this schema."""
        folder = transport.child(transport.child(self.folder, "catalogs"), self._uid)
        return folder if self._schema is None else transport.child(folder, self._schema.id)

    def _bases(self) -> list[str]:
        filesystem, base = transport.filesystem(self.list_folder)
        selector = fs.FileSelector(base, allow_not_found=True)
        names = [info.base_name for info in filesystem.get_file_info(selector)]
        known = sorted(name for name in names if _BASE.fullmatch(name))
        return [name for name in known if not (self._history and name.endswith(_PLAIN))]

    def _read(self, name: str) -> _Note | None:
        try:
            told = read_told(transport.read_file(transport.child(self.list_folder, name)))
            good = whole(told["version"]) == int(name[:_DIGITS]) and transport.is_id(
                words(told["snapshot"])
            )
            left_out = [_bad(*each) for each in told.get("left_out", ())]
            unnamed = whole(told.get("unnamed", 0))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # half written, or removed by another driver
        return _Note(told["version"], told["snapshot"], left_out, unnamed) if good else None

    def _register(self, ref: SnapshotRef, version: int) -> None:
        """Record the base for other drivers; if that fails, they only start more slowly."""
        told: dict[str, Any] = {"version": version, "snapshot": ref.id}
        if self.left_out():
            named = list(self.bad.values())[:_NOTED]
            told["left_out"] = [[*astuple(each)] for each in named]
            told["unnamed"] = self.left_out() - len(named)
        text = json.dumps(told).encode()
        filesystem, base = transport.filesystem(self.list_folder)
        try:
            end = _PLAIN if self._is_plain else _WHOLE
            transport.write_file(transport.child(self.list_folder, f"{version:020d}{end}"), text)
            same = [name for name in self._bases() if name[_DIGITS:] == end]
            for name in same[:-_KEPT_BASES]:
                with contextlib.suppress(FileNotFoundError):  # another driver was quicker
                    filesystem.delete_file(f"{base}/{name}")
        except OSError as error:
            logger.warning(
                "bittern: the base of version %d could not be recorded in the store: %s",
                version,
                error,
            )
        self._registered = version


def _verified(ref: SnapshotRef) -> Index:
    """A base in which every byte was checked, here and, if the store is a folder, there."""
    assert ref.uri is not None
    stored = transport.local_path(ref.uri)
    if stored is not None:
        read_snapshot(stored, verify=True)
    index = attach(ref)
    assert index.path is not None
    try:
        if index.path != stored:
            read_snapshot(index.path, verify=True)
    except SnapshotError:
        node_cache.drop(ref.id)
        index = attach(ref)  # verifies what it fetches
    return index


def _bad(id_: Any, position: Any, message: Any) -> BadSubscription:
    return BadSubscription(words(id_), whole(position), words(message))
