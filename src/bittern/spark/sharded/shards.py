"""A sharded index, as a closure carries it: references only, whatever the catalog's size.

A catalog that is larger than one host should hold is cut into parts, and each subscription lives in
exactly one of them: in *home*, which every task holds, or in one *shard*. So a match is found once,
and there is nothing to deduplicate. An event visits each shard that the router names, and home with
the first of them (``spark/sharded/matching.py``)::

    event ──► router ──► 2, 5 ──► shuffle ──► shard 2 and home    matches
                                    └───────► shard 5             matches

The router is a small index itself. Its subscriptions are *regions*, such as ``price >= 3 AND price
<= 9``: for each subscription of a shard, an event that satisfies it lies in one of the shard's
regions. A region's id is ``shard << REGION_BITS | k``; ids above those of all shards belong to
*witnesses*, which no event matches, and which tell the router what parts look at
(``engine/sharding/regions.py``). ``engine/sharding/cutting.py`` says how parts are chosen,
``spark/sharded/building.py`` how they are built.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import Broadcast

    from bittern.spark.sharded.since_cut import SinceCut
    from bittern.spark.snapshots.node_cache import SnapshotRef


@dataclass(frozen=True)
class Shards:
    """References to the parts of a sharded index; a few hundred bytes per shard."""

    id: str  # a digest of the ids of all parts and of the router
    router: SnapshotRef
    home: SnapshotRef | None  # None: no subscription lives at home
    shards: tuple[SnapshotRef, ...]
    subscriptions: tuple[int, ...]  # of each shard
    nbytes: tuple[int, ...]  # of each shard
    traffic: tuple[float, ...]  # the share of events that are expected to visit each shard
    integer_ids: bool  # all subscription ids are integers: matches are array<bigint>, not <string>
    attributes: tuple[str, ...]  # canonical names of those that any part looks at
    #: What has changed since they were cut, as it is or as a broadcast.
    changes: SinceCut | Broadcast[SinceCut] | None = None

    def changed(self) -> SinceCut | None:
        """What has changed since they were cut; in any process."""
        changes: Any = self.changes
        found: SinceCut | None = getattr(changes, "value", changes)
        return found

    def with_sets(self, sets: SnapshotRef) -> Shards:
        """The same parts, each of which looks values up in these named sets."""
        return replace(
            self,
            router=replace(self.router, more_sets=sets),
            home=None if self.home is None else replace(self.home, more_sets=sets),
            shards=tuple(replace(shard, more_sets=sets) for shard in self.shards),
        )
