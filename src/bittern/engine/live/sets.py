"""The sets of a live matcher, by name: a mapping that changes while other threads match.

::

    live.sets["vips"] = [7, 9]      read and built first, then put in place by one assignment
    del live.sets["vips"]           refused while a subscription names it

Each match takes all sets as they are and works on them to its end. No subscription is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from bittern.engine.sets.content import Content
from bittern.engine.sets.members import Members
from bittern.engine.sets.named import checked_name, read_members, unknown_set, uses
from bittern.errors import OptionError

if TYPE_CHECKING:
    from bittern.engine.live.layers import Layers

Sets: TypeAlias = Mapping[str, Members]


class LiveSets(MutableMapping[str, Members]):
    """Sets by name. A set is given as a list, a set or an array; what is read is ``Members``."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def __getitem__(self, name: str) -> Members:
        sets = self._layers.named_sets
        if name not in sets:
            raise unknown_set(name, sets)
        members: Members = sets[name]
        return members

    def __contains__(self, name: object) -> bool:
        return name in self._layers.named_sets

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers.named_sets)

    def __len__(self) -> int:
        return len(self._layers.named_sets)

    def __repr__(self) -> str:
        return f"<sets {dict(self._layers.named_sets)}>"

    def __setitem__(self, name: str, members: Any) -> None:
        """Define a set, or replace all its members in one step. O(members x log members)."""
        found = read_members(checked_name(name), members)
        self._layers.change_sets(lambda sets: {**sets, name: found})

    def __delitem__(self, name: str) -> None:
        """Remove a set; ``OptionError`` if a subscription names it. O(texts) if one did."""
        self._layers.change_sets(lambda sets: self._without(sets, name))

    def add(self, name: str, members: Any) -> None:
        """Add members to a set, in one step; ``UnknownSetError`` if there is no such set.

        O(members of the set).
        """
        more = read_members(checked_name(name), members).content()
        self._change(name, lambda known: known.content().with_added(more))

    def remove(self, name: str, members: Any) -> None:
        """Remove members from a set, in one step; those that are not in it are ignored."""
        fewer = read_members(checked_name(name), members).content()
        self._change(name, lambda known: known.content().without(fewer))

    def _change(self, name: str, change: Callable[[Members], Content]) -> None:
        """Change a set without the lock, which matching needs; again if another was quicker."""

        def swapped(sets: Sets) -> Sets:
            return {**sets, name: found} if sets.get(name) is known else sets

        while True:
            known = self[name]
            found = Members.of_content(change(known))
            if self._layers.change_sets(swapped):
                return

    def _without(self, sets: Sets, name: str) -> Sets:
        if name not in sets:
            raise unknown_set(name, sets)
        for segment in self._layers.seal().segments:
            if name not in segment.index.set_names:
                continue
            rows = np.arange(len(segment.index))
            if len(segment.alive):
                rows = np.flatnonzero(segment.alive)
            for use in uses(segment.index.texts.take(pa.array(rows)), [name]):
                (id_,) = segment.index.all_ids.take(rows[use.row : use.row + 1])
                raise OptionError(
                    f"the subscription {id_!r} names the set {name!r}: unsubscribe it first"
                )
        return {known: members for known, members in sets.items() if known != name}
