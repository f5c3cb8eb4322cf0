"""What has changed in a catalog since its shards were cut: new rows at home, old ones marked.

::

    version 4000   shard 0   shard 1   ...   cut from the catalog, and the same for every batch
    version 4725   since then: + 314 subscriptions   a view, which every task has: another home
                               - s7, s90210, ...     ids that are passed over in all shards

A subscription that was put anew is passed over in its shard and matched in the view. Workers mark
the ids of a version in a part once: O(subscriptions of the part), some milliseconds a million.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Float64s
from bittern.engine.live.delta import ALL_ALIVE, Segment, State, state_weights
from bittern.engine.matcher import StateMatcher
from bittern.spark.arrow_tables import packed, unpacked
from bittern.spark.catalogs.views import View
from bittern.spark.snapshots.node_cache import SnapshotRef, attach

_KEPT = 16
#: Of this process: parts of which some subscriptions are passed over.
_states: OrderedDict[tuple[str, str], State] = OrderedDict()


@dataclass(frozen=True, repr=False)
class SinceCut:
    """The changes between the version that shards were cut from and another one."""

    view: View
    #: Ids that shards may have and the version has not, or has in the view: a packed column.
    gone: bytes

    @classmethod
    def of(cls, view: View, gone: Iterable[str]) -> SinceCut:
        """The changes that lead to a view, and all ids that they concern."""
        ids = pa.array(sorted(gone), pa.string())
        return cls(view, packed(pa.table({"id": ids}), compressed=True))

    @cached_property
    def id(self) -> str:
        """A hash of what they consist of."""
        return hashlib.blake2b(self.view.id.encode() + self.gone, digest_size=16).hexdigest()

    @property
    def nbytes(self) -> int:
        """What they carry themselves."""
        return self.view.nbytes + len(self.gone)

    def matcher(self) -> tuple[StateMatcher, Float64s | None]:
        """What matches the new subscriptions, and their weights."""
        return self.view.matcher(), state_weights(self.view.state())

    def matcher_of(self, part: SnapshotRef) -> tuple[StateMatcher, Float64s | None]:
        """What matches a shard, or home, without what is gone, and the weights of all."""
        key = part.id, self.id
        state = _states.get(key)
        if state is None:
            index = attach(part)
            gone = unpacked(self.gone)["id"].combine_chunks()
            ids = index.all_ids.values.cast(pa.large_string())
            is_gone = pc.is_in(ids, gone.cast(pa.large_string())).to_numpy(zero_copy_only=False)
            alive = (~is_gone).astype(np.uint8) if is_gone.any() else ALL_ALIVE
            state = State.of([Segment(index, alive, int(is_gone.sum()), None)])
            _states[key] = state
            while len(_states) > _KEPT:
                _states.popitem(last=False)
        return StateMatcher(state, sets=self.sets()), state_weights(state)

    def sets(self) -> Mapping[str, Any]:
        """The named sets of the version."""
        return self.view.sets()
