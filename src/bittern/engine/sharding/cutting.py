"""Cutting: which part of a sharded index each subscription belongs to.

A subscription belongs where its first pivot is, in order of attribute, kind and low end. If a
pivot has no low end (``price < 20``), its high end decides. So a *slot* is a cell of the ruler
(``engine/sharding/regions.py``) and a side of it: slot c for pivots that begin in cell c, slot
``n_cells + c`` for those that have no beginning and end there::

    price = 12, price BETWEEN 10 AND 60     begin in cell 4      slot 4
    price < 20                              ends in cell 4       slot 11 + 4

Executors count the bytes in each place and send *points*. The driver makes a ruler and *pieces* of
neighbouring slots from them, and distributes the pieces::

    price    ####|####|####|###      more than 1/8 of a shard: cut at marks
    color    ####                    one piece
    size     #                       a quarter of all events carry it, and it is small: home
    always   ##                      home, unless it is larger than a shard

Pieces are laid out in a row, and the row is cut into shards. The pieces that most events need per
byte come first: so what nearly every event carries is in few shards, and few events visit the
others. Pieces of one attribute stay neighbours, so a shard has one range of it. As pieces are
small, no shard is much larger than the mean.

A slot can be larger than a piece, if a million subscriptions name one constant. Such slots are
placed before all others, each where there is most room. A slot that is larger than a shard cannot
be cut by value: its subscriptions are dealt to several shards in turn, and events visit all of
them.

Everything is deterministic. Cost: O(points log points); ``combined`` keeps them few.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Float64s, Int64s, starts_of
from bittern.engine.sharding.regions import (
    EVERY_EVENT,
    NO_EVENT,
    MarkValue,
    Ruler,
    RulerKey,
    text_value,
    value_text,
)

#: Marks of a ruler. More make narrower regions, and a larger router.
MARKS = 8_192
#: A piece is at most this share of a shard, unless it is one slot.
_PIECE = 0.125
#: An attribute that this share of events carries is matched at home, where its subscriptions and
#: all others there are so small a share of a shard.
_HOT, _HOME = 0.25, 0.125

#: Of each of these attributes: the share of events that carry it.
Presence = Callable[[list[str]], Float64s]

#: Places where pivots begin or end. ``value`` is NULL where there is no end; ``shift`` is -1 just
#: below the value and 1 just above it. ``load`` counts a subscription in equal shares at all of its
#: pivots, ``bytes`` counts its bytes at the first.
POINTS = pa.schema(
    [
        ("attribute", pa.string()),
        ("kind", pa.int32()),
        ("side", pa.int32()),
        ("value", pa.string()),
        ("shift", pa.int32()),
        ("load", pa.float64()),
        ("bytes", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Cut:
    """The part of each slot's subscriptions. Part ``n_shards`` is home."""

    n_shards: int
    ruler: Ruler
    starts: Int64s  # of each slot's parts in ``parts``, and the end
    parts: npt.NDArray[np.int32]
    traffic: tuple[float, ...]  # share of events that each shard is expected to see


class _Piece(NamedTuple):
    """Slots that stay together."""

    nbytes: float
    slots: tuple[tuple[int, int], ...]  # ranges, the end not included
    events: float  # share of events that have a value there
    density: float  # share of events for each byte, of the whole key


class _Place(NamedTuple):
    """Where pivots begin or end."""

    side: int
    value: MarkValue | None
    shift: int

    def order(self) -> tuple[Any, ...]:
        """By side, those without a value first, then by value."""
        return self.side, self.value is not None, self.value, self.shift


class _Sums(NamedTuple):
    load: float
    nbytes: float


_Places = Mapping[RulerKey, Mapping[_Place, _Sums]]


def thinned(groups: Int64s, loads: Float64s, width: float) -> Int64s:
    """Which of sorted points stand for all: the last of each bucket of so much load in a group.

    Each group has at least one point left, and a point that is heavier than a bucket stays. O(n).
    """
    if len(groups) == 0:
        return np.empty(0, dtype=np.int64)
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    before = np.append(0.0, np.cumsum(loads)[:-1])
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(groups))))
    bucket = np.floor(before / width)
    last = np.append((groups[1:] != groups[:-1]) | (bucket[1:] != bucket[:-1]), True)
    return np.flatnonzero(last)


def stood_for(values: Float64s, kept: Int64s) -> Float64s:
    """The sums of all points that each point kept by ``thinned`` stands for."""
    if len(kept) == 0:
        return values
    sums: Float64s = np.add.reduceat(values, np.append(0, kept[:-1] + 1))
    return sums


def combined(points: pa.Table, width: float) -> pa.Table:
    """Points of several chunks, as few as those of one. O(points log points)."""
    rows = [
        (*key, side, None if value is None else value_text(value), shift, *own[place])
        for key, own in _places(points).items()
        for place in sorted(own, key=_Place.order)
        for side, value, shift in [place]
    ]
    stretches = [(*row[:3], row[3] is None) for row in rows]
    changes = [a != b for a, b in itertools.pairwise(stretches)]
    groups = np.cumsum([0, *changes])[: len(rows)]
    loads, nbytes = (np.array([row[column] for row in rows]) for column in (5, 6))
    kept = thinned(groups, loads, width)
    columns: list[Any] = [[rows[i][column] for i in kept.tolist()] for column in range(5)]
    columns += [stood_for(loads, kept), stood_for(nbytes, kept)]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, POINTS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=POINTS)


def cut(
    points: pa.Table, n_shards: int, presence: Presence | None = None, *, marks: int = MARKS
) -> Cut:
    """Cut subscriptions whose pivots lie at these points (``POINTS``).

    ``presence`` tells how many events carry an attribute. Without it, attributes with many pivots
    are assumed to be in many events.
    """
    places = _places(points)
    total = sum(sums.nbytes for own in places.values() for sums in own.values())
    ruler = _ruler(places, marks)
    shares = _presence(places, presence)
    pieces = list(_pieces(ruler, _weights(places, ruler), shares, total / n_shards))
    home, rest = _at_home(pieces, total / n_shards)
    return _deal(home, rest, n_shards, ruler)


def _places(points: pa.Table) -> _Places:
    """Points by key, in order of the keys; equal ones are summed."""
    out: dict[RulerKey, dict[_Place, _Sums]] = {EVERY_EVENT: {}, NO_EVENT: {}}
    for attribute, kind, side, text, shift, load, nbytes in zip(
        *(points[name].to_pylist() for name in POINTS.names), strict=True
    ):
        own = out.setdefault(RulerKey(attribute, kind), {})
        place = _Place(side, None if text is None else text_value(kind, text), shift)
        before = own.get(place, _Sums(0.0, 0.0))
        own[place] = _Sums(before.load + load, before.nbytes + nbytes)
    return dict(sorted(out.items()))


def _ruler(places: _Places, budget: int) -> Ruler:
    """About ``budget`` marks at quantiles of the load, at least one for each key with a value."""
    groups: list[int] = []
    loads: list[float] = []
    values: list[MarkValue] = []
    for group, own in enumerate(places.values()):
        load_of: dict[MarkValue, float] = {}
        for place, sums in own.items():
            if place.value is not None:
                load_of[place.value] = load_of.get(place.value, 0.0) + sums.load
        ordered: list[Any] = sorted(load_of)
        values += ordered
        loads += [load_of[value] for value in ordered]
        groups += [group] * len(ordered)
    width = max(sum(loads) / budget, 1e-300)
    marks: list[list[MarkValue]] = [[] for _ in places]
    for i in thinned(np.array(groups, dtype=np.int64), np.array(loads), width).tolist():
        marks[groups[i]].append(values[i])
    return Ruler(tuple(places), tuple(map(tuple, marks)))


def _weights(places: _Places, ruler: Ruler) -> Float64s:
    """The bytes in each slot."""
    weights = np.zeros(2 * ruler.n_cells)
    for own, marks, base in zip(places.values(), ruler.marks, ruler.bases.tolist(), strict=False):
        for (side, value, shift), sums in own.items():
            if value is None:
                cell = 2 * len(marks)
            else:
                i = bisect_left(marks, value)
                cell = 2 * i + 1 + shift if i < len(marks) and marks[i] == value else 2 * i
            weights[side * ruler.n_cells + base + cell] += sums.nbytes
    return weights


def _presence(places: _Places, presence: Presence | None) -> Float64s:
    """For each key, the share of events that carry its attribute; all for ``EVERY_EVENT``."""
    attributes = sorted({key.attribute for key in places} - {""})
    if presence is not None:
        known = presence(attributes)
    else:
        place_of = {attribute: i for i, attribute in enumerate(attributes)}
        known = np.zeros(len(attributes))
        for key, own in places.items():
            if key.attribute:
                known[place_of[key.attribute]] += sum(sums.load for sums in own.values())
        known /= max(known.max(initial=0.0), 1e-300)
    share_of = dict(zip(attributes, known.tolist(), strict=True)) | {"": 0.0}
    return np.array([1.0 if key == EVERY_EVENT else share_of[key.attribute] for key in places])


def _pieces(ruler: Ruler, weights: Float64s, shares: Float64s, size: float) -> Iterator[_Piece]:
    """All slots, in pieces of at most ``_PIECE`` of a shard, or of one slot."""
    n, limit = ruler.n_cells, _PIECE * size
    spans = zip(ruler.bases[:-1].tolist(), ruler.bases[1:].tolist(), strict=True)
    for (first, end), share in zip(spans, shares.tolist(), strict=True):
        low, high = weights[first:end], weights[n + first : n + end]
        total = float(low.sum() + high.sum())
        density = share / total if total else 0.0
        if total <= limit:
            yield _Piece(total, ((first, end), (n + first, n + end)), share, density)
            continue
        for base, side in ((first, low), (n + first, high)):
            for a, b in _ranges(side, limit):
                nbytes = float(side[a:b].sum())
                seen = share if b - a == len(side) else share * nbytes / total
                yield _Piece(nbytes, ((base + a, base + b),), seen, density)


def _ranges(weights: Float64s, limit: float) -> Iterator[tuple[int, int]]:
    """Cut slots into ranges of at most ``limit`` bytes, or of one slot."""
    first, held = 0, 0.0
    for slot, nbytes in enumerate(weights.tolist()):
        if slot > first and held + nbytes > limit:
            yield first, slot
            first, held = slot, 0.0
        held += nbytes
    yield first, len(weights)


def _at_home(pieces: list[_Piece], size: float) -> tuple[list[_Piece], list[_Piece]]:
    """The pieces that are replicated, and those that are not.

    Always-candidates (the first piece) are replicated unless they are larger than a shard; so are
    hot pieces, the smallest first.
    """
    always, others = pieces[0], pieces[1:]
    home, rest = ([always], []) if always.nbytes <= size else ([], [always])
    room = _HOME * size
    for piece in sorted(others):
        if piece.events >= _HOT and 0 < piece.nbytes <= room:
            home.append(piece)
            room -= piece.nbytes
        else:
            rest.append(piece)
    return home, rest


def _shards(pieces: list[_Piece], n_shards: int) -> list[tuple[_Piece, list[int]]]:
    """The shards of each piece; see the module."""
    size = sum(piece.nbytes for piece in pieces) / n_shards
    room = [size] * n_shards
    out = []
    large = [piece for piece in pieces if piece.nbytes > _PIECE * size]
    for piece in sorted(large, key=lambda piece: (-piece.nbytes, piece.slots)):
        shares = min(n_shards, math.ceil(piece.nbytes / size))
        emptiest = sorted(range(n_shards), key=lambda shard: (-room[shard], shard))[:shares]
        for shard in emptiest:
            room[shard] -= piece.nbytes / shares
        out.append((piece, sorted(emptiest)))
    small = [piece for piece in pieces if piece.nbytes <= _PIECE * size]
    small.sort(key=lambda piece: (-piece.density, piece.slots))
    nbytes = np.array([piece.nbytes for piece in small])
    ends = np.cumsum(np.maximum(room, 0.0))
    scale = ends[-1] / nbytes.sum() if nbytes.sum() else 0.0  # where something is over-full
    chosen = np.searchsorted(ends, (np.cumsum(nbytes) - nbytes / 2) * scale)
    chosen = np.minimum(chosen, n_shards - 1)
    return out + [(piece, [shard]) for piece, shard in zip(small, chosen.tolist(), strict=True)]


def _deal(home: list[_Piece], rest: list[_Piece], n_shards: int, ruler: Ruler) -> Cut:
    """Put pieces into shards; returns the shards slot by slot."""
    owners = [(slots, [n_shards]) for piece in home for slots in piece.slots]
    missed = [1.0] * n_shards  # share of events that no piece of a shard wants
    for piece, shards in _shards(rest, n_shards):
        owners += [(slots, shards) for slots in piece.slots]
        for shard in shards if piece.nbytes else ():
            missed[shard] *= 1 - min(1.0, piece.events)
    counts = np.zeros(2 * ruler.n_cells, dtype=np.int64)
    parts: list[npt.NDArray[np.int32]] = []
    for (first, end), own in sorted(owners):
        counts[first:end] = len(own)
        parts.append(np.tile(np.array(own, dtype=np.int32), end - first))
    starts = starts_of(counts)
    traffic = tuple(1 - share for share in missed)
    return Cut(n_shards, ruler, starts, np.concatenate(parts), traffic)
