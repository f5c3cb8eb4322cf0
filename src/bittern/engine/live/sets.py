"""The sets of a live matcher, by name: a mapping that changes while other threads match.

::

    live.sets["vips"] = [7, 9]      read and built first, then put in place by one assignment
    del live.sets["vips"]           refused while a subscription names it

Each match takes all sets as they are and works on them to its end. No subscription is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bittern.engine.sets.members import Members
from bittern.engine.sets.named import checked_name, read_members, uses
from bittern.errors import OptionError

if TYPE_CHECKING:
    from bittern.engine.live.layers import Layers


class LiveSets(MutableMapping[str, Members]):
    """Sets by name. A set is given as a list, a set or an array; what is read is ``Members``."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def __getitem__(self, name: str) -> Members:
        return self._layers.named_sets[name]

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
        """Add members to a set, in one step. O(members of the set)."""
        more = read_members(name, members).content()
        self._change(name, lambda known: known.content().with_added(more))

    def remove(self, name: str, members: Any) -> None:
        """Remove members from a set, in one step; those that are not in it are ignored."""
        fewer = read_members(name, members).content()
        self._change(name, lambda known: known.content().without(fewer))

    def _change(self, name: str, change: Any) -> None:
        def changed(sets: dict[str, Members]) -> dict[str, Members]:
            return {**sets, name: Members.of_content(change(sets[name]))}

        self._layers.change_sets(changed)

    def _without(self, sets: dict[str, Members], name: str) -> dict[str, Members]:
        if name not in sets:
            raise KeyError(name)
        for segment in self._layers.seal().segments:
            if name not in segment.index.set_names:
                continue
            living = pa.array(segment.alive) if len(segment.alive) else None
            texts = segment.index.texts
            rows = pa.array(range(len(texts)))
            if living is not None:
                kept = living.cast(pa.bool_())
                texts, rows = texts.filter(kept), rows.filter(kept)
            for use in uses(texts, [name]):
                (id_,) = segment.index.all_ids.take(rows[use.row : use.row + 1].to_numpy())
                raise OptionError(
                    f"the subscription {id_!r} names the set {name!r}: unsubscribe it first"
                )
        return {known: members for known, members in sets.items() if known != name}
