"""Chunks of subscriptions: their pivots as points to cut at, and as parts and regions after that.

A chunk is compiled and filed as an index of its own would be, up to the postings::

    text                            pivots (cells of the chunk's rank space)     first
    model = 'x' AND price <= 9      [model 'x', 'x']                             model 'x'
    price < 3 OR color = 'red'      [price start, below 3] [color 'red', 'red']  color 'red'

``points`` says where the pivots of a chunk are and how many bytes are filed there. ``assign``
compares the ruler of the cut with the chunk's constants, which maps the chunk's cells to the
ruler's, and gives each subscription its part and each part its regions. An event that satisfies a
subscription satisfies one of its pivots, so it is in a region of the subscription's part. That
holds whichever chunk the subscription came with, and even if the cut was made for others.

Cost: reading and compiling, about 7 us for each subscription; the rest is some array operations and
a few microseconds for each attribute.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Float64s, Int64s, ranges
from bittern.engine.expected import expected_events
from bittern.engine.sharding.cutting import POINTS, Cut, stood_for, thinned
from bittern.engine.sharding.regions import (
    EVERY_CELL,
    EVERY_EVENT,
    MARK_CHARACTERS,
    NO_CELL,
    NO_EVENT,
    CellRuns,
    Ruler,
    RulerKey,
    shared_kind,
    united,
    value_text,
)
from bittern.engine.subscriptions import Subscriptions
from bittern.language.templates import Template
from bittern.matching.pivot.filing import file_classes
from bittern.model.classes.compile import compile_subscriptions
from bittern.model.numbers import Number, NumberColumns
from bittern.model.rank.space import COUNT, FINE, FIRST, STRING, RankSpace

#: What a snapshot holds of a subscription besides its text: id and place, and each of its tests.
_SUBSCRIPTION_BYTES, _TEST_BYTES = 32, 48


class Assigned(NamedTuple):
    """A chunk after the cut: the part of each subscription, and runs of cells for each part."""

    parts: npt.NDArray[np.int32]
    region_parts: npt.NDArray[np.int32]
    regions: CellRuns  # of each part in turn


class Chunk:
    """Some subscriptions and their pivots. ``sample`` is a batch of typical events, or None."""

    def __init__(
        self, subscriptions: Subscriptions, templates: list[Template], sample: Any
    ) -> None:
        compiled = compile_subscriptions(
            templates, subscriptions.shape_ids, subscriptions.parameters
        )
        self._rank = compiled.rank
        filed, numbers = file_classes(
            compiled.classes, expected_events(compiled, sample), self._rank.n_channels
        )
        self._lows, self._highs = filed.lows.astype(np.int64), filed.highs.astype(np.int64)
        self._class_of = numbers[compiled.class_of]
        n_tests = np.zeros(len(numbers), dtype=np.int64)
        n_tests[numbers] = compiled.classes.counts
        sizes = np.asarray(pc.binary_length(subscriptions.texts)).astype(np.float64)
        sizes += _SUBSCRIPTION_BYTES + _TEST_BYTES * n_tests[self._class_of]
        #: Of each class: its subscriptions, and their bytes.
        self._counts = np.bincount(self._class_of, minlength=len(numbers))
        self._nbytes = _sums(self._class_of, sizes, len(numbers))
        self._always = np.zeros(len(numbers), dtype=np.bool_)
        self._always[filed.always] = True
        #: Of each posting: its class and its channel.
        self._classes = np.maximum(filed.heads[:, 1], ~filed.heads[:, 1]).astype(np.int64)
        self._bases = self._rank.arrays.bases.astype(np.int64)
        self._channels = np.searchsorted(self._bases, self._lows, "right") - 1

    @cached_property
    def _keys(self) -> tuple[list[RulerKey], Int64s]:
        """The keys of this chunk in order, and which of them each channel belongs to."""
        rank, names = self._rank, self._rank.attribute_names()
        channels = [
            RulerKey(names[attribute], shared_kind(kind))
            for attribute, kind in zip(
                rank.channel_attributes.tolist(), rank.channel_kinds.tolist(), strict=True
            )
        ]
        keys = sorted(set(channels))
        numbers = {key: number for number, key in enumerate(keys)}
        return keys, np.array([numbers[key] for key in channels], dtype=np.int64)

    @cached_property
    def _firsts(self) -> tuple[Int64s, Int64s]:
        """The classes that have pivots, and the first posting of each by key and low end."""
        keys = self._keys[1][self._channels]
        order = np.lexsort((self._highs, self._lows, keys, self._classes))
        classes = self._classes[order]
        first = np.append(True, classes[1:] != classes[:-1])[: len(classes)]
        return classes[first], order[first]

    @cached_property
    def _whole(self) -> npt.NDArray[np.bool_]:
        """Which postings the ruler treats as "present"."""
        whole: npt.NDArray[np.bool_] = self._rank.channel_kinds[self._channels] > STRING
        return whole

    @cached_property
    def _from_start(self) -> npt.NDArray[np.bool_]:
        """Which postings have no low end, so that their high end says where they belong."""
        unbounded: npt.NDArray[np.bool_] = self._lows == self._bases[self._channels]
        return self._whole | unbounded

    # -- before the cut ------------------------------------------------------------------------

    def points(self, width: float) -> pa.Table:
        """Where the pivots lie (``cutting.POINTS``), a point or so for ``width`` subscriptions."""
        keys, key_of = self._keys
        n_cells, classes = self._rank.n_cells, self._classes
        owners = key_of[self._channels]
        spots = np.where(self._from_start, n_cells + self._highs, self._lows)
        spots[self._whole] = 2 * n_cells + owners[self._whole]
        spots, some, spot_of = np.unique(spots, return_index=True, return_inverse=True)
        each = self._counts / np.maximum(1, np.bincount(classes, minlength=len(self._counts)))
        loads = _sums(spot_of, each[classes], len(spots))
        filed, first = self._firsts
        nbytes = _sums(spot_of[first], self._nbytes[filed], len(spots))

        # Spots are sorted by side, channel and cell; "present" comes last, one for each key.
        stretches = 2 * self._channels[some] + (spots >= n_cells)
        groups = np.cumsum(np.append(False, np.diff(stretches) != 0))[: len(spots)]
        kept = thinned(groups, loads, width)
        values, shifts = self._values(spots[kept], self._channels[some[kept]])
        chosen = [keys[owner] for owner in owners[some[kept]].tolist()]
        found = {
            "attribute": [key.attribute for key in chosen],
            "kind": [key.kind for key in chosen],
            "side": (spots[kept] >= n_cells).astype(np.int32),
            "value": values,
            "shift": shifts,
            "load": stood_for(loads, kept),
            "bytes": stood_for(nbytes, kept),
        }
        never = ~self._always
        never[classes] = False
        rest = [
            (*key, 0, None, 0, float(self._counts[own].sum()), float(self._nbytes[own].sum()))
            for key, own in ((EVERY_EVENT, self._always), (NO_EVENT, never))
            if own.any()
        ]
        return pa.concat_tables(
            [
                pa.Table.from_pydict(found, schema=POINTS),
                pa.Table.from_pylist(
                    [dict(zip(POINTS.names, row, strict=True)) for row in rest], schema=POINTS
                ),
            ]
        )

    def _values(self, spots: Int64s, channels: Int64s) -> tuple[list[str | None], list[int]]:
        """The constant that each spot is at or beside, if any; and on which side of it."""
        rank, n_cells = self._rank, self._rank.n_cells
        by_high = spots >= n_cells
        cells = spots - n_cells * by_high - self._bases[channels]
        # From below: the constant that a gap comes after. From above: the one that it ends at.
        places = np.where(by_high, cells // 2, (cells - 1) // 2)
        bounded = (places < rank.arrays.heads[channels, COUNT]) & (spots < 2 * n_cells)
        shifts = np.where(~bounded | (cells % 2 == 1), 0, np.where(by_high, -1, 1))
        values: list[str | None] = [None] * len(spots)
        for i in np.flatnonzero(bounded).tolist():
            constant = _constant(rank, int(channels[i]), int(places[i]))
            if isinstance(constant, bytes):
                # The least string above a prefix need not be valid text; what it begins with is.
                text = constant.decode(errors="ignore")[:MARK_CHARACTERS]
                if text.encode() != constant:
                    shifts[i] = 1
                values[i] = text
            else:
                values[i] = value_text(constant)
        return values, shifts.tolist()

    # -- after the cut -------------------------------------------------------------------------

    def assign(self, cut: Cut) -> Assigned:
        """The part of each subscription, and the regions of each part."""
        ruler = cut.ruler
        lows, highs, known = self._on(ruler)
        slots = np.full(len(self._nbytes), NO_CELL, dtype=np.int64)
        slots[self._always] = EVERY_CELL
        filed, first = self._firsts
        by_high = self._from_start & known
        slots[filed] = np.where(by_high, ruler.n_cells + highs, lows)[first]

        starts, counts = cut.starts[:-1], np.diff(cut.starts)
        own = slots[self._class_of]
        turns = np.arange(len(own)) % counts[own]
        parts = cut.parts[starts[own] + turns]

        always = np.flatnonzero(self._always)
        classes = np.concatenate((self._classes, always))
        everything = np.full(len(always), EVERY_CELL)
        lows, highs = np.concatenate((lows, everything)), np.concatenate((highs, everything))
        # What is dealt out has its regions in each of its parts.
        own = slots[classes]
        copies = counts[own]
        of_part = cut.parts[ranges(starts[own], copies)]
        stride = ruler.n_cells + 1  # so that the last cell of one part and the next's do not touch
        offsets = of_part.astype(np.int64) * stride
        firsts, lasts = united(
            np.repeat(lows, copies) + offsets, np.repeat(highs, copies) + offsets
        )
        region_parts = firsts // stride
        regions = CellRuns(firsts - region_parts * stride, lasts - region_parts * stride)
        return Assigned(parts, region_parts.astype(np.int32), regions)

    def _on(self, ruler: Ruler) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_]]:
        """Each posting's interval of the ruler's cells, and whether the ruler has its key.

        Where it has not, the interval is every event.
        """
        keys, key_of = self._keys
        places = np.array([ruler.places.get(key, -1) for key in keys], dtype=np.int64)[key_of]
        marks_at = _cells_of_marks(self._rank, ruler, places)
        before = np.searchsorted(marks_at, self._bases[:-1])  # marks of earlier channels
        bases = ruler.bases[:-1][np.maximum(places, 0)] - 2 * before
        known = places[self._channels] >= 0
        at_mark = np.append(marks_at, -1)

        def exactly(ends: Int64s, odd: npt.NDArray[np.bool_]) -> Int64s:
            """Twice the marks below, and one more at a mark."""
            below = np.searchsorted(marks_at, ends)
            cells: Int64s = 2 * below + (odd & (at_mark[below] == ends))
            return cells

        odd_lows = (self._lows - self._bases[self._channels]) % 2 == 1
        odd_highs = (self._highs - self._bases[self._channels]) % 2 == 1
        lows = bases[self._channels] + exactly(self._lows, odd_lows)
        # A gap between constants ends below the next constant: above all marks inside it.
        to_gap = 2 * np.searchsorted(marks_at, self._highs, "right")
        highs = bases[self._channels] + np.where(odd_highs, exactly(self._highs, odd_highs), to_gap)
        lows[~known] = highs[~known] = EVERY_CELL
        return lows, highs, known


def _sums(groups: npt.NDArray[Any], weights: Float64s, n_groups: int) -> Float64s:
    """The sum of the weights of each group."""
    return np.bincount(groups, weights, minlength=n_groups).astype(np.float64)


def _constant(rank: RankSpace, channel: int, place: int) -> Number | bytes:
    """A constant of a channel."""
    head = rank.arrays.heads[channel]
    if head[FINE] >= 0:
        return rank.columns.number(int(head[FINE]) + place)
    at = int(head[FIRST]) + place
    if rank.channel_kinds[channel] < STRING:
        return int(rank.arrays.floors[at])
    strings, at = rank.arrays.strings, at - len(rank.arrays.floors)
    return bytes(strings.data[strings.offsets[at] : strings.offsets[at + 1]])


def _cells_of_marks(rank: RankSpace, ruler: Ruler, places: Int64s) -> Int64s:
    """The global cells of all marks of those keys that the channels stand at; they ascend."""
    channels = np.flatnonzero((places >= 0) & (rank.channel_kinds <= STRING))
    firsts, ends = ruler.mark_starts[places[channels]], ruler.mark_starts[places[channels] + 1]
    owners = np.repeat(channels, ends - firsts)
    marks = ranges(firsts, ends - firsts)
    numeric = rank.channel_kinds[owners] < STRING
    cells = np.empty(len(marks), dtype=np.int64)
    cells[numeric] = _cells_of_numbers(rank, ruler, owners[numeric], marks[numeric])
    cells[~numeric] = _cells_of_strings(rank, ruler, owners[~numeric], marks[~numeric])
    cells += rank.arrays.bases[owners]
    return cells


def _cells_of_numbers(rank: RankSpace, ruler: Ruler, owners: Int64s, marks: Int64s) -> Int64s:
    """The local cells of marks, by their doubles, and exactly where doubles are not enough."""
    heads = rank.arrays.heads[rank.channel_kinds < STRING]
    columns = NumberColumns.of_integers(rank.arrays.floors)
    doubles, plain = columns.doubles, columns.plain()
    of_constant = np.repeat(np.arange(len(heads)), heads[:, COUNT])
    fine = np.flatnonzero(heads[of_constant, FINE] >= 0)
    doubles[fine], plain[fine] = rank.columns.doubles, rank.columns.plain()
    ours = ruler.numbers.take(marks)
    # One search for all channels: by channel, then by value.
    values = np.unique(np.concatenate((doubles, ours.doubles)))
    stride = len(values) + 1
    constants = of_constant * stride + np.searchsorted(values, doubles)
    wanted = owners * stride + np.searchsorted(values, ours.doubles)
    firsts, ends = np.searchsorted(constants, wanted), np.searchsorted(constants, wanted, "right")
    found = firsts < ends
    at = firsts - heads[owners, FIRST]
    cells: Int64s = 2 * at + found
    sure = np.append(plain, False)[np.where(found, firsts, -1)] & ours.plain()
    for i in np.flatnonzero(found & ~sure).tolist():
        channel, place, mark = int(owners[i]), int(at[i]), ruler.values[marks[i]]
        end = place + int(ends[i] - firsts[i])
        while place < end and _constant(rank, channel, place) < mark:
            place += 1
        equal = place < end and _constant(rank, channel, place) == mark
        cells[i] = 2 * place + equal
    return cells


def _cells_of_strings(rank: RankSpace, ruler: Ruler, owners: Int64s, marks: Int64s) -> list[int]:
    """The local cells of marks."""
    if len(marks) == 0:
        return []
    data, ends = bytes(rank.arrays.strings.data), rank.arrays.strings.offsets.tolist()
    constants = [data[a:b] for a, b in itertools.pairwise(ends)]
    heads = rank.arrays.heads[owners]
    firsts = heads[:, FIRST] - len(rank.arrays.floors)
    cells = []
    for first, count, mark in zip(
        firsts.tolist(), heads[:, COUNT].tolist(), marks.tolist(), strict=True
    ):
        text = str(ruler.values[mark]).encode()
        at = bisect_left(constants, text, first, first + count)
        equal = at < first + count and constants[at] == text
        cells.append(2 * (at - first) + equal)
    return cells
