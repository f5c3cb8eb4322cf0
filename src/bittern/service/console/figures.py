"""What an index is made of: attributes, the longest lists of postings, arrays, deltas.

The snapshot's figures are counted once and kept while it lives; deltas are few and small. The last
events tell how many of them have an attribute. O(postings + cells) for a new snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from bittern.engine.index import Index
from bittern.model.rank.space import COUNT, SINGLE_KINDS, RankSpace
from bittern.service.console.cells import cell_in_words, channels_of, shown_name
from bittern.service.console.recent import last_events

if TYPE_CHECKING:
    from bittern.service.http.tenants import Tenant

_MOST = 15


class AttributeFigures(NamedTuple):
    """An attribute: predicates on it, subscriptions filed under it, constants, and events."""

    name: str
    mentions: int
    postings: int
    constants: int
    #: The share of the last events that have it, and that a posting under it stands for.
    there: float | None
    selectivity: float | None


class PostingList(NamedTuple):
    """What an event with one of these values has to look at, and what makes it so long."""

    attribute: str
    values: str
    length: int
    exact: int
    ranges: int


class SegmentFigures(NamedTuple):
    """The snapshot or a delta."""

    subscriptions: int
    removed: int
    bytes: int


class IndexFigures(NamedTuple):
    """All figures of one matcher."""

    summary: dict[str, Any]
    attributes: list[AttributeFigures]
    lists: list[PostingList]
    arrays: list[tuple[str, int]]
    predicates: list[tuple[str, int]]
    segments: list[SegmentFigures]
    events: int


class _Counted(NamedTuple):
    summary: dict[str, Any]
    mentions: npt.NDArray[np.int64]
    postings: npt.NDArray[np.int64]
    constants: npt.NDArray[np.int64]
    lists: list[PostingList]
    arrays: list[tuple[str, int]]
    predicates: list[tuple[str, int]]


_counted: WeakKeyDictionary[Index, _Counted] = WeakKeyDictionary()


def figures_of(tenant: Tenant) -> IndexFigures:
    """The figures of the tenant's matcher now."""
    state, sets = tenant.live.sealed_with_sets()
    index = state.segments[0].index
    counted = _counted.get(index)
    if counted is None:
        counted = _counted[index] = _count(index)
    sample = last_events(tenant)
    there, selectivity = _by_sample(index, sample, sets)
    names = index.rank.attribute_names()
    order = np.argsort(-counted.mentions, kind="stable")[:_MOST].tolist()
    return IndexFigures(
        counted.summary,
        [
            AttributeFigures(
                shown_name(names[at]),
                int(counted.mentions[at]),
                int(counted.postings[at]),
                int(counted.constants[at]),
                _known(there, at),
                _known(selectivity, at),
            )
            for at in order
            if counted.mentions[at]
        ],
        counted.lists,
        counted.arrays,
        counted.predicates,
        [SegmentFigures(len(each.index), each.dead, each.index.nbytes) for each in state.segments],
        len(sample),
    )


def _known(shares: Any, at: int) -> float | None:
    return None if shares is None or np.isnan(shares[at]) else float(shares[at])


def _parts(index: Index) -> dict[str, Any]:
    """The arrays of postings, wherever this strategy has them."""
    arrays = index.subscriptions.arrays()
    before = "pivot." if index.subscriptions.name == "pivot-bits" else ""
    return {
        name.removeprefix(before): array
        for name, array in arrays.items()
        if name.startswith(before)
    }


def _count(index: Index) -> _Counted:
    rank, found = index.rank, index.statistics()
    n_attributes = len(rank.names)
    own = _parts(index)
    mentions, postings = (np.zeros(n_attributes, dtype=np.int64) for _ in range(2))
    lists: list[PostingList] = []
    if {"lows", "highs", "heads", "rows"} <= own.keys():
        pivots = channels_of(rank, own["lows"])
        postings += _by_attribute(rank, pivots)
        mentions += postings
        for column in (own["heads"][:, 0], own["rows"][:, 0]):
            mentions += _by_attribute(rank, column[(column >= 0) & (column < rank.n_channels)])
        lists = _longest(rank, own["lows"], own["highs"])
    heads = rank.arrays.heads[:, COUNT]
    constants = np.zeros(n_attributes, dtype=np.int64)
    np.add.at(constants, rank.channel_attributes, heads)
    arrays = sorted(found.pop("arrays").items(), key=lambda item: -item[1])
    inner = found.pop(found["strategy"])
    predicates = sorted(found.pop("predicates").items(), key=lambda item: -item[1])
    summary = {name: value for name, value in found.items() if not isinstance(value, Mapping)}
    summary |= {
        name: inner[name]
        for name in ("postings", "always", "never", "parts")
        if isinstance(inner, Mapping) and name in inner
    }
    return _Counted(summary, mentions, postings, constants, lists, _grouped(arrays), predicates)


def _by_attribute(rank: RankSpace, channels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    owners = rank.channel_attributes[channels]
    return np.bincount(owners, minlength=len(rank.names)).astype(np.int64)


def _grouped(arrays: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The largest arrays, and all others together."""
    others = sum(size for _, size in arrays[_MOST:])
    return arrays[:_MOST] + ([("all others", others)] if others else [])


def _longest(
    rank: RankSpace, lows: npt.NDArray[np.int32], highs: npt.NDArray[np.int32]
) -> list[PostingList]:
    """The cells that most postings contain, one of each attribute and kind."""
    edges = np.zeros(rank.n_cells + 1, dtype=np.int64)
    np.add.at(edges, lows, 1)
    np.add.at(edges, highs.astype(np.int64) + 1, -1)
    lengths = np.cumsum(edges)[:-1]
    exact = np.bincount(lows[lows == highs], minlength=rank.n_cells)
    names = rank.attribute_names()
    found: list[PostingList] = []
    shown: defaultdict[str, int] = defaultdict(int)
    many = min(len(lengths), 50 * _MOST)
    top = np.argpartition(-lengths, many - 1)[:many] if many else np.empty(0, dtype=np.int64)
    for cell in top[np.argsort(-lengths[top], kind="stable")].tolist():
        attribute, values = cell_in_words(rank, names, cell)
        shown[attribute] += 1
        if lengths[cell] and shown[attribute] <= 3 and len(found) < _MOST:
            own = int(exact[cell])
            found.append(
                PostingList(attribute, values, int(lengths[cell]), own, int(lengths[cell]) - own)
            )
    return found


def _by_sample(index: Index, sample: list[str], sets: Mapping[str, Any]) -> tuple[Any, Any]:
    """By attribute, the share of events that have it, and that its postings stand for."""
    if not sample or not index.rank.n_channels:
        return None, None
    rank = index.rank
    events = index.encoder.encode(sample, sets=sets).events
    mass = np.zeros(rank.n_cells + 1, dtype=np.float64)
    mass[events.cells] = np.diff(events.offsets) / len(sample)
    below = np.concatenate(([0.0], np.cumsum(mass)))
    bases = rank.arrays.bases
    by_channel = below[bases[1:]] - below[bases[:-1]]
    there = np.full(len(rank.names), np.nan)  # patterns do not tell whether there is a value
    single = rank.channel_kinds < SINGLE_KINDS
    np.fmax.at(there, rank.channel_attributes[single], by_channel[single])
    own = _parts(index)
    selectivity = np.full(len(rank.names), np.nan)
    if "lows" in own and len(own["lows"]):
        shares = below[own["highs"].astype(np.int64) + 1] - below[own["lows"]]
        owners = rank.channel_attributes[channels_of(rank, own["lows"])]
        counts = np.bincount(owners, minlength=len(rank.names))
        sums = np.bincount(owners, weights=shares, minlength=len(rank.names))
        selectivity = np.where(counts, sums / np.maximum(counts, 1), np.nan)
    return np.minimum(there, 1.0), np.minimum(selectivity, 1.0)
