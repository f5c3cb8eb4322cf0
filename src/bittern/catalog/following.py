"""A live matcher that is as a version of a catalog is, and goes on with it.

::

    version 4000       4711               4725              224,000
            │          │                  │                 │
            an index   + 300 changes      + 14 changes      too many at once: an index again

``step_to`` is the way from one version to the next, for whatever has layers: ``Followed`` here, and
the views that a pipeline on Spark makes (``spark/catalogs/builder.py``). ``Followed`` keeps the
named sets too. Subscriptions that cannot be matched are left out and listed in ``bad``: they were
written without the catalog's checks, or need a history and there is none.

Cost: a version with c changes takes a query for them and O(c) to index them; an index of a million
subscriptions some ten seconds, in which matching goes on with the one before.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from bittern.catalog.catalog import Catalog
from bittern.engine.index import Index
from bittern.engine.live.layers import COMPACT_ROWS, COMPACT_SHARE, Layers
from bittern.engine.live.matcher import LiveMatcher
from bittern.errors import BadSubscription, OptionError

if TYPE_CHECKING:
    from bittern.engine.answers import SeenBefore

logger = logging.getLogger("bittern")

_COLUMNS = ["id", "expression", "weight"]
#: Subscriptions that are left out: so many are named in the log one by one.
_NAMED = 20


class CatalogStep(NamedTuple):
    """The way from one version to another: ids that go, and subscriptions that come."""

    version: int
    removed: list[str]
    put: pa.Table  # id, expression, weight

    @property
    def ids(self) -> list[str]:
        """All ids that change."""
        ids: list[str] = self.put["id"].to_pylist()
        return self.removed + ids

    def take(self, layers: Layers) -> list[BadSubscription]:
        """Make all of it, in one step; returns the subscriptions that cannot be matched."""
        rows = zip(*(column.to_pylist() for column in self.put.columns), strict=True)
        return layers.apply(self.removed, rows, self.version)


def step_to(
    catalog: Catalog, layers: Layers, version: int, most: int | None = None
) -> CatalogStep | None:
    """What brings layers to a version of the catalog. O(changes).

    None if the changes are forgotten, or more than ``most``, by default so many that a new index
    is quicker.
    """
    try:
        changes = catalog.changes(layers.version, version)
    except OptionError:
        return None
    step = CatalogStep(version, changes.removed, changes.put.select(_COLUMNS))
    most = _too_many(layers) if most is None else most
    return None if len(step.removed) + step.put.num_rows > most else step


def tell_left_out(bad: list[BadSubscription]) -> None:
    """Say in the log which subscriptions are left out, some of them by name."""
    for each in bad[:_NAMED]:
        logger.warning("bittern: subscription %r is left out: %s", each.id, each.message)
    if len(bad) > _NAMED:
        logger.warning("bittern: %d more subscriptions are left out", len(bad) - _NAMED)


class Followed:
    """A live matcher that follows a catalog. Threads may share one; they advance one at a time.

    ``lock`` is held while it advances: who holds it sees one version throughout.
    """

    def __init__(self, catalog: Catalog, history: SeenBefore | None = None) -> None:
        self._catalog = catalog
        self._history = history
        self.lock = threading.RLock()
        self._set_versions: dict[str, int] = {}
        #: Subscriptions of this version that cannot be matched, by id.
        self.bad: dict[str | int, BadSubscription] = {}
        #: The matcher. Another one comes in its place where very much changes at once.
        self.live = self._started(catalog.version())

    @property
    def version(self) -> int:
        """The version of the catalog that it matches."""
        return self.live.version

    def advance(self, version: int | None = None) -> list[str] | None:
        """Go on to a version, the newest if none is given; earlier ones change nothing.

        Returns the ids that changed, or None if any may have.
        """
        with self.lock:
            if version is None:
                version = self._catalog.version()
            if version <= self.live.version:
                return []
            dropped = self._take_sets(version)
            step = step_to(self._catalog, self.live, version)
            if step is None:
                before, self.live = self.live, self._started(version)
                if self._history is None:
                    before.close()
                return None
            ids, bad = step.ids, step.take(self.live)
            for id_ in ids:
                self.bad.pop(id_, None)
            self._take_bad(bad)
            if dropped:
                self.live.change_sets(
                    lambda sets: {name: own for name, own in sets.items() if name not in dropped}
                )
            return ids

    def _take_sets(self, version: int) -> set[str]:
        """Put sets in place as a version has them; returns those that it lacks. O(members)."""
        versions = self._catalog.sets.versions(version)
        new = {
            name: self._catalog.sets.members(name, version)
            for name, own in versions.items()
            if self._set_versions.get(name) != own.version
        }
        if new:
            self.live.change_sets(lambda sets: {**sets, **new})
        dropped = self._set_versions.keys() - versions.keys()
        self._set_versions = {name: own.version for name, own in versions.items()}
        return dropped

    def _started(self, version: int) -> LiveMatcher:
        """A matcher of a version from the catalog. O(subscriptions)."""
        rows = self._catalog.at(version).select(_COLUMNS)
        sets: dict[str, Any] = dict(self._catalog.sets.at(version))
        index = Index.build(rows, on_error="skip", sets=sets, unknown="ignore")
        self.bad = {}
        self._take_bad(index.bad)
        self._set_versions = {
            name: own.version for name, own in self._catalog.sets.versions(version).items()
        }
        if self._history is not None and (before := getattr(self, "live", None)) is not None:
            before.close()  # a history serves one matcher at a time
        return LiveMatcher(index, version, history=self._history, sets=sets, unknown="ignore")

    def _take_bad(self, bad: list[BadSubscription]) -> None:
        tell_left_out(bad)
        self.bad |= {each.id: each for each in bad}

    def close(self) -> None:
        """Stop background work, and release the history."""
        with self.lock:
            self.live.close()


def _too_many(layers: Layers) -> int:
    """More changes at once than these are not worth a delta."""
    return max(COMPACT_ROWS, int(COMPACT_SHARE * len(layers)))
