"""Matches of a batch: for each event, the subscriptions that it satisfies.

Compressed rows: the subscriptions of event e are ``subscriptions[offsets[e]:offsets[e + 1]]``, as
positions in ``all_ids``. Their order within an event is not specified, except after ``limit`` (best
first); ``ids`` and ``to_pylist`` list them in the order of the index.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import starts_of
from bittern.errors import brief
from bittern.jit import i4, i4r, i4w, i8w, kernel, u1r, void
from bittern.model.ids import Ids

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_ONE = np.uint64(1)
#: A notebook shows so many events, and so many ids of each.
SHOWN = 10


@kernel(void, i4r, i4r, i4r, i4r, u1r, i8w)
def _count(
    rows: Any, classes: Any, class_starts: Any, subscribers: Any, alive: Any, counts: Any
) -> None:
    """Add the subscriptions of each event to its count, which stands behind its row."""
    for i in range(len(rows)):
        c = np.uint64(classes[i])  # unsigned: no test for a negative index
        if len(class_starts) == 0:
            n = 1 if len(alive) == 0 else np.int64(alive[subscribers[c]])
        elif len(alive) == 0:
            n = np.int64(class_starts[c + _ONE] - class_starts[c])
        else:
            n = 0
            for k in range(class_starts[c], class_starts[c + _ONE]):
                n += alive[subscribers[k]]
        counts[np.uint64(rows[i]) + _ONE] += n


@kernel(void, i4r, i4r, i4r, i4r, u1r, i4, i8w, i4w)
def _fill(
    rows: Any,
    classes: Any,
    class_starts: Any,
    subscribers: Any,
    alive: Any,
    shift: Any,
    free: Any,
    out: Any,
) -> None:
    """Write the subscriptions of each event, moved up by ``shift``, where it has free places."""
    for i in range(len(rows)):
        c, row = np.uint64(classes[i]), np.uint64(rows[i])
        first, last = np.int64(c), np.int64(c) + 1
        if len(class_starts):
            first, last = np.int64(class_starts[c]), np.int64(class_starts[c + _ONE])
        at = free[row]
        for k in range(first, last):
            subscriber = subscribers[np.uint64(k)]
            if len(alive) == 0 or alive[subscriber]:
                out[np.uint64(at)] = subscriber + shift
                at += 1
        free[row] = at


@dataclass(frozen=True)
class Subscribers:
    """The subscriptions of each class; ``starts`` is empty if every class has exactly one."""

    starts: npt.NDArray[np.int32]
    subscribers: npt.NDArray[np.int32]

    @classmethod
    def of(cls, class_of: npt.NDArray[np.int32], n_classes: int) -> Subscribers:
        """From the class of each subscription. O(n)."""
        order = np.argsort(class_of, kind="stable").astype(np.int32)
        if len(class_of) == n_classes:
            return cls(np.empty(0, dtype=np.int32), order)
        starts = starts_of(np.bincount(class_of, minlength=n_classes), np.int32)
        return cls(starts, order)

    def class_of(self, subscription: int) -> int:
        """The class of a subscription. O(n)."""
        place = int(np.flatnonzero(self.subscribers == subscription)[0])
        return int(np.searchsorted(self.starts, place, "right")) - 1 if len(self.starts) else place

    def check(self, n_subscriptions: int, n_classes: int) -> None:
        """Verify that each subscription is in exactly one of the classes. O(n log n)."""
        assert np.array_equal(np.sort(self.subscribers), np.arange(n_subscriptions)), (
            "classes do not hold each subscription exactly once"
        )
        if len(self.starts) == 0:
            assert n_subscriptions == n_classes, "classes and their subscribers differ in number"
            return
        assert len(self.starts) == n_classes + 1, "classes and their subscribers differ in number"
        assert self.starts[0] == 0, "subscribers do not start at 0"
        assert self.starts[-1] == n_subscriptions, "subscribers do not end at the last subscription"
        assert (np.diff(self.starts) >= 0).all(), "class starts do not ascend"


class Satisfied(NamedTuple):
    """(event, class) pairs in any order, and the subscribers of these classes.

    ``alive`` has a 1 for each living subscription; it is empty if all are alive. The first of them
    has the position ``shift``.
    """

    rows: npt.NDArray[np.int32]
    classes: npt.NDArray[np.int32]
    subscribers: Subscribers
    alive: npt.NDArray[np.uint8]
    shift: int


def expanded(
    parts: Sequence[Satisfied], n_events: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The matches of the same events in several indexes. O(pairs + matches)::

    part 0   event 0: class 2    event 1: class 0       offsets         0     3  4
    part 1   event 0: class 0    (subscriptions 4, 5)   subscriptions   1 4 5 0
    """
    offsets = np.zeros(n_events + 1, dtype=np.int64)
    for rows, classes, own, alive, _ in parts:
        _count(rows, classes, own.starts, own.subscribers, alive, offsets)
    np.cumsum(offsets, out=offsets)
    free = offsets[:-1].copy()
    out = np.empty(int(offsets[-1]), dtype=np.int32)
    for rows, classes, own, alive, shift in parts:
        _fill(rows, classes, own.starts, own.subscribers, alive, shift, free, out)
    return offsets, out


@dataclass(frozen=True, eq=False)
class Matches:
    """What a batch of events matched; see the module for the layout.

    It is a sequence: ``matches[0]`` are the ids that the first event matched, and a loop goes
    through the events.

    ``rejects`` lists the events that could not be read, ``mistyped`` those with a value of a kind
    that no subscription compares its attribute with; both are (event, reason). ``candidates`` is
    the number of different expressions that were evaluated for each event.
    """

    offsets: npt.NDArray[np.int64]
    subscriptions: npt.NDArray[np.int32]
    all_ids: Ids
    rejects: list[tuple[int, str]] = field(default_factory=list)
    ranked: bool = False
    mistyped: list[tuple[int, str]] = field(default_factory=list)
    candidates: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of_one(
        cls, subscriptions: npt.NDArray[np.int32], all_ids: Ids, n_candidates: int
    ) -> Matches:
        """What one event matched. Arrays of one or two items are made when they are asked for."""
        made = object.__new__(cls)
        fields = {
            "subscriptions": subscriptions,
            "all_ids": all_ids,
            "rejects": [],
            "ranked": False,
            "mistyped": [],
            "n_candidates": n_candidates,
        }
        object.__setattr__(made, "__dict__", fields)  # a fifth of what __init__ takes
        return made

    def __getattr__(self, name: str) -> Any:
        """The arrays that ``of_one`` did not make."""
        own = self.__dict__
        if "n_candidates" in own:
            if name == "offsets":
                return own.setdefault(name, np.array((0, len(self.subscriptions)), dtype=np.int64))
            if name == "candidates":
                return own.setdefault(name, np.array((own["n_candidates"],), dtype=np.int64))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many subscriptions each event matched."""
        return np.diff(self.offsets)

    def ids(self, event: int) -> list[str | int]:
        """The ids of the subscriptions that one event of the batch matched."""
        if not -len(self) <= event < len(self):
            raise IndexError(f"the batch has {len(self)} events; there is no event {brief(event)}")
        event %= len(self)
        own = self.subscriptions[self.offsets[event] : self.offsets[event + 1]]
        return self.all_ids.take(own if self.ranked else np.sort(own))

    def ordered(self) -> Matches:
        """The same, each event's matches in the order of the index, if they are not ranked."""
        if self.ranked:
            return self
        events = np.repeat(np.arange(len(self)), self.counts)
        subscriptions = np.sort(events << 32 | self.subscriptions) & 0xFFFFFFFF
        return replace(self, subscriptions=subscriptions.astype(np.int32))

    def __getitem__(self, event: int) -> list[str | int]:
        """The ids that one event matched."""
        return self.ids(event)

    def __iter__(self) -> Iterator[list[str | int]]:
        """The ids of each event, in order."""
        return iter(self.to_pylist())

    def __repr__(self) -> str:
        return f"<bittern.Matches: {self._sizes()}>"

    def _sizes(self) -> str:
        n_events, n_matches = len(self), len(self.subscriptions)
        sizes = [
            f"{n_events:,} {'event' if n_events == 1 else 'events'}",
            f"{n_matches:,} {'match' if n_matches == 1 else 'matches'}",
        ]
        return ", ".join([*sizes, f"{len(self.rejects):,} rejected"] if self.rejects else sizes)

    def _repr_html_(self) -> str:
        """The first events as a table, for notebooks."""
        from bittern.notebooks import table  # noqa: PLC0415  only there

        reasons = dict(self.rejects)
        rows = []
        for event in range(min(len(self), SHOWN)):
            found = self.ids(event)
            more = f", and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
            shown = reasons.get(event) or ", ".join(map(str, found[:SHOWN])) + more
            rows.append((event, len(found), shown))
        left = f"; these are the first {SHOWN}" if len(self) > SHOWN else ""
        return table(f"{self._sizes()}{left}", ("event", "matches", "subscriptions"), rows)

    def to_pylist(self) -> list[list[str | int]]:
        """The ids for every event. O(matches), and a sort unless they are ranked."""
        ids = self.all_ids.take(self.ordered().subscriptions)
        return [ids[start:end] for start, end in itertools.pairwise(self.offsets.tolist())]

    def to_arrow(self, *, flat: bool = False) -> pa.Table:
        """A table (event, list of subscriptions), or ``flat`` with one row per match."""
        ids = self.all_ids.take_arrow(self.subscriptions)
        if flat:
            events = np.repeat(np.arange(len(self), dtype=np.int64), self.counts)
            return pa.table({"event": events, "subscription": ids})
        lists = pa.LargeListArray.from_arrays(pa.array(self.offsets), ids)
        return pa.table({"event": np.arange(len(self), dtype=np.int64), "subscriptions": lists})

    def to_pandas(self, *, flat: bool = False) -> pd.DataFrame:
        """The table as a DataFrame of pandas."""
        return self.to_arrow(flat=flat).to_pandas()

    def to_polars(self, *, flat: bool = False) -> pl.DataFrame:
        """The table as a DataFrame of polars."""
        import polars as pl  # noqa: PLC0415  an extra

        return cast("pl.DataFrame", pl.from_arrow(self.to_arrow(flat=flat)))


def best(matches: Matches, weights: npt.NDArray[np.float64] | None, limit: int) -> Matches:
    """The ``limit`` matches of each event with the highest weights, best first, ties by id."""
    counts = matches.counts
    limit = min(limit, len(matches.subscriptions))  # any Python integer will do
    events = np.repeat(np.arange(len(matches)), counts)
    order_of_id = matches.all_ids.ranks()[matches.subscriptions]
    heavy = np.zeros(len(events)) if weights is None else -weights[matches.subscriptions]
    order = np.lexsort((order_of_id, heavy, events))
    place = np.arange(len(events)) - np.repeat(matches.offsets[:-1], counts)
    kept = order[place < limit]
    offsets = starts_of(np.minimum(counts, limit))
    return replace(matches, offsets=offsets, subscriptions=matches.subscriptions[kept], ranked=True)


def concatenate(parts: Sequence[Matches]) -> Matches:
    """Matches of consecutive batches as those of one."""
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, dtype=np.int64)]
    rejects: list[tuple[int, str]] = []
    mistyped: list[tuple[int, str]] = []
    first_event, first_match = 0, 0
    for part in parts:
        offsets.append(part.offsets[1:] + first_match)
        rejects += [(row + first_event, reason) for row, reason in part.rejects]
        mistyped += [(row + first_event, reason) for row, reason in part.mistyped]
        first_event += len(part)
        first_match += int(part.offsets[-1])
    return Matches(
        np.concatenate(offsets),
        np.concatenate([part.subscriptions for part in parts]),
        parts[0].all_ids,
        rejects,
        parts[0].ranked,
        mistyped,
        np.concatenate([part.candidates for part in parts]),
    )
