"""A view: the form in which one version of a catalog reaches the tasks that match against it.

::

    View  version 4711
      layer 0   SnapshotRef 3fa9...   1,000,000 subscriptions, mapped from the node's cache
                dead 17, 90210        positions in it that were removed or replaced since
      layer 1   Carried 77c0...       the 9,000 that were added since, as bytes in the closure
      layer 2   Carried 01de...       the last 300
      set       SnapshotRef 90ab...   vips: 2,000,000 members, as version 4711 has them

It is a state of ``engine/live/layers.py`` for other processes. The snapshot changes only at a
compaction, but the deltas with every version, so these travel with the task: a thousand
subscriptions are some 100 KB, and no file has to be written or removed. A delta of more than
``CARRIED`` bytes is published like a snapshot.

Each named set that subscriptions look values up in is a snapshot without subscriptions, or carried
if it is small: when a set changes, nothing else is sent anew.

Two processes that match against views of the same version find the same, whatever their layers.
Cost: a process decodes a delta once, and joins the ids once for each view: O(subscriptions) bytes.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bittern.engine.index import Index
from bittern.engine.live.delta import ALL_ALIVE, Segment, State
from bittern.engine.matcher import StateMatcher
from bittern.errors import SnapshotError
from bittern.model.ids import Ids
from bittern.spark.snapshots.node_cache import SnapshotRef, attach

#: A delta of more bytes is published like a snapshot.
CARRIED = 4 << 20
#: So is a named set: it changes less often than deltas do, and is sent with every task.
CARRIED_SET = 1 << 16
# What a process keeps decoded: deltas, views, each of which may have joined all ids, and sets.
_KEPT_DELTAS, _KEPT_VIEWS, _KEPT_SETS = 8, 3, 64

_Made = TypeVar("_Made")
_mutex = threading.Lock()
_indexes: OrderedDict[str, Index] = OrderedDict()
_states: OrderedDict[str, State] = OrderedDict()
_sets: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
# What the driver has sent of an index, so that it is packed or published once.
_sent: weakref.WeakKeyDictionary[Index, SnapshotRef | Carried] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, repr=False)
class Carried:
    """A small index as bytes."""

    id: str
    data: bytes

    def open(self) -> Index:
        """The index. O(bytes) the first time in a process."""
        return _kept(_indexes, self.id, _KEPT_DELTAS, lambda: _unpacked(self.data))


@dataclass(frozen=True, repr=False)
class CarriedLayer:
    """An index and the positions in it that are dead, as bytes of 32-bit numbers."""

    index: SnapshotRef | Carried
    dead: bytes

    def open(self) -> tuple[Index, npt.NDArray[np.uint8]]:
        """The index, and a mark for each subscription that is alive."""
        index = attach(self.index) if isinstance(self.index, SnapshotRef) else self.index.open()
        if not self.dead:
            return index, ALL_ALIVE
        alive = np.ones(len(index), dtype=np.uint8)
        dead = np.frombuffer(self.dead, dtype=np.int32)
        if dead.min() < 0 or dead.max() >= len(index):
            raise SnapshotError(f"a view names positions that {self.index.id} does not have")
        alive[dead] = 0
        return index, alive


@dataclass(frozen=True)
class View:
    """One version of a catalog, as a closure carries it."""

    version: int
    layers: tuple[CarriedLayer, ...]
    #: Snapshots without subscriptions, with a named set each.
    named_sets: tuple[SnapshotRef | Carried, ...] = ()

    @cached_property
    def id(self) -> str:
        """A hash of what the view consists of."""
        parts = [self._state_id, *(each.id for each in self.named_sets)]
        return hashlib.blake2b(" ".join(parts).encode(), digest_size=16).hexdigest()

    @cached_property
    def _state_id(self) -> str:
        """A hash of its layers."""
        digest = hashlib.blake2b(digest_size=16)
        for layer in self.layers:
            digest.update(layer.index.id.encode())
            digest.update(len(layer.dead).to_bytes(8))
            digest.update(layer.dead)
        return digest.hexdigest()

    @property
    def nbytes(self) -> int:
        """What it carries itself."""
        parts = (*(each.index for each in self.layers), *self.named_sets)
        carried = sum(len(each.data) for each in parts if isinstance(each, Carried))
        return carried + sum(len(layer.dead) for layer in self.layers)

    def matcher(self) -> StateMatcher:
        """A matcher for this version, in any process."""
        return StateMatcher(self.state(), sets=self.sets())

    def state(self) -> State:
        """The version as a state, for callers that match with more than it."""
        return _kept(_states, self._state_id, _KEPT_VIEWS, self._opened)

    def sets(self) -> Mapping[str, Any]:
        """The named sets of the version."""
        found: dict[str, Any] = {}
        for each in self.named_sets:
            opened = _kept(_sets, each.id, _KEPT_SETS, partial(_sets_in, each))
            found.update(opened)
        return found

    def _opened(self) -> State:
        opened = [layer.open() for layer in self.layers]
        ids = Ids.joined([index.all_ids for index, _ in opened])
        if ids.is_int64:  # there is none at all: a catalog's ids are text
            ids = Ids.of([], text=True)
        segments = tuple(Segment(index, alive, 0, None) for index, alive in opened)
        return State(segments, tuple(alive for _, alive in opened), ids, [])


def _sets_in(ref: SnapshotRef | Carried) -> Mapping[str, Any]:
    return (attach(ref) if isinstance(ref, SnapshotRef) else ref.open()).sets


def view_of(
    state: State,
    version: int,
    send: Callable[[Index], SnapshotRef],
    sets: Iterable[Index] = (),
    *,
    carry: bool = True,
) -> View:
    """The view of a state, on the driver; ``send`` publishes what is too large to be carried.

    ``sets`` are indexes without subscriptions, with a named set each.
    """
    layers = []
    for segment, marks in zip(state.segments, state.marks, strict=True):
        dead = np.flatnonzero(marks == 0).astype(np.int32).tobytes()
        is_small = carry and segment.rows is not None
        layers.append(CarriedLayer(_reference(segment.index, send, carry=is_small), dead))
    own = [_reference(each, send, carry=carry and each.nbytes <= CARRIED_SET) for each in sets]
    return View(version, tuple(layers), tuple(own))


def _reference(
    index: Index, send: Callable[[Index], SnapshotRef], *, carry: bool
) -> SnapshotRef | Carried:
    found = _sent.get(index)
    if isinstance(found, SnapshotRef) or (carry and found is not None):
        return found
    packed = _packed(index) if carry else None
    found = send(index) if packed is None or len(packed.data) > CARRIED else packed
    _sent[index] = found
    return found


def _packed(index: Index) -> Carried:
    data = pickle.dumps(index.parts(), protocol=pickle.HIGHEST_PROTOCOL)
    return Carried(hashlib.blake2b(data, digest_size=16).hexdigest(), data)


def _unpacked(data: bytes) -> Index:
    return Index.of_parts(*pickle.loads(data))  # noqa: S301  the driver's own


def _after_fork() -> None:
    """Replace, in the child, the lock that a thread of the parent may have held."""
    global _mutex
    _mutex = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _kept(cache: OrderedDict[str, _Made], key: str, most: int, make: Callable[[], _Made]) -> _Made:
    """The cache's value for a key, made if it is missing; the least recently used is dropped."""
    with _mutex:
        if key in cache:
            cache.move_to_end(key)
            return cache[key]
    made = make()
    with _mutex:
        made = cache.setdefault(key, made)  # another thread may have been quicker
        while len(cache) > most:
            cache.popitem(last=False)
    return made
