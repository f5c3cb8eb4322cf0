"""Rank space: every value of every ordered type becomes one integer cell, exactly.

An attribute's values of one kind are a *channel*. The n constants that the subscriptions compare it
with cut the channel into 2n + 1 cells: below the first constant, exactly it, between it and the
second, and so on. With ``price < 10``, ``price >= 99.5`` and ``color = 'red'``::

    channel  0 price, numbers                       1 color, strings
    cells    (..10) 10 (10..99.5) 99.5 (99.5..)     (..red) red (red..)
    global   0      1  2          3    4            5       6   7
    base     0                                      5                     8

All channels lie on one global axis, so a predicate is a closed interval of global cells
(``price < 10`` is [0, 0], ``price >= 99.5`` is [3, 4]) and an event is a set of global cells. A
missing value has no cell. NaN, which is above every number, shares the last cell.

Kinds of channels: numbers, times (microseconds since 1970 UTC) and booleans hold numeric constants;
strings and reversed strings (for suffixes) hold bytes; ``ANY`` has one cell, for "the attribute is
not NULL", and each ``PATTERN`` has one cell, for "the value satisfies this pattern". Channels are
numbered in that order. A value of another kind than a literal never meets it: that is NULL.

Finding an integer's cell is one table look-up where the constants are dense, else a binary search
of the constants' floors; an equality-only string costs one hash look-up, O(1).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.jit import f8r, i4r, i4r2, i8r, inline, kernel, tuple_type, u1r, u1w, void
from bittern.model.numbers import INT64_MIN, NumberColumns, cells_of_doubles
from bittern.model.strings import (
    STRING_TABLE,
    StringTable,
    StringTableArrays,
    compare_bytes,
    find,
)

NUMBER, TIME, BOOLEAN, STRING, REVERSED, ANY, PATTERN = range(7)
KIND_NAMES = ("number", "time", "boolean", "string", "reversed string", "any", "pattern")
#: Kinds that an attribute has at most one channel of; patterns are numbered apart.
SINGLE_KINDS = 6

_LEAST = np.int64(INT64_MIN)
_TWO_63 = 2.0**63


class RankArrays(NamedTuple):
    """What kernels see of a rank space."""

    channels: npt.NDArray[np.int32]  # (attributes, SINGLE_KINDS): the channel of a kind, or -1
    bases: npt.NDArray[np.int32]  # first global cell of each channel, and the end
    starts: npt.NDArray[np.int32]  # first constant of each channel, and the end
    floors: npt.NDArray[np.int64]  # of numeric constants
    direct_starts: npt.NDArray[np.int64]  # numeric channels: into direct, or -1
    direct_least: npt.NDArray[np.int64]  # the integer that direct_starts stands for
    direct_sizes: npt.NDArray[np.int32]
    direct: npt.NDArray[np.int32]  # local cell of each integer of a dense channel
    fine_starts: npt.NDArray[np.int32]  # numeric channels with fractions or huge: into fine_*, or -1
    fine_whole: npt.NDArray[np.uint8]
    fine_doubles: npt.NDArray[np.float64]
    fine_cells: npt.NDArray[np.int32]  # local cell of a float equal to the constant's double
    ordered: npt.NDArray[np.uint8]  # string channels: has a predicate other than equality
    strings: StringTableArrays


RANK = tuple_type(
    RankArrays, i4r2, i4r, i4r, i8r, i8r, i8r, i4r, i4r, i4r, u1r, f8r, i4r, u1r, STRING_TABLE
)


@inline
def integer_cell(rank: Any, channel: Any, value: Any) -> Any:
    """The local cell of an integer in a numeric channel."""
    direct = rank.direct_starts[channel]
    first = rank.starts[channel]
    count = rank.starts[channel + 1] - first
    if direct >= 0:
        least = rank.direct_least[channel]
        if value < least:
            return 0
        if value > least + rank.direct_sizes[channel] - 1:  # value - least could overflow
            return 2 * count
        return np.int64(rank.direct[direct + value - least])
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if rank.floors[first + middle] < value:
            low = middle + 1
        else:
            high = middle
    if low < count and rank.floors[first + low] == value:
        fine = rank.fine_starts[channel]
        if fine < 0 or rank.fine_whole[fine + low]:
            return 2 * low + 1
        if value == _LEAST:  # clamped: these constants lie below every integer
            while low < count and rank.floors[first + low] == value and not rank.fine_whole[fine + low]:
                low += 1
            if low < count and rank.floors[first + low] == value:
                return 2 * low + 1
    return 2 * low


@inline
def float_cell(rank: Any, channel: Any, value: Any) -> Any:
    """The local cell of a float in a numeric channel; NaN is above all."""
    first = rank.starts[channel]
    count = rank.starts[channel + 1] - first
    if value != value:
        return 2 * count
    fine = rank.fine_starts[channel]
    if fine >= 0:
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if rank.fine_doubles[fine + middle] < value:
                low = middle + 1
            else:
                high = middle
        if low < count and rank.fine_doubles[fine + low] == value:
            return np.int64(rank.fine_cells[fine + low])
        return 2 * low
    if value >= _TWO_63:
        return 2 * count
    if value < -_TWO_63:
        return 0
    below = np.floor(value)
    cell = integer_cell(rank, channel, np.int64(below))
    return cell + 1 if value > below and cell & 1 else cell


@inline
def string_cell(rank: Any, channel: Any, data: Any, start: Any, stop: Any) -> Any:
    """The local cell of a string: by hash, then by binary search where order matters."""
    first = rank.starts[channel]
    numeric = len(rank.floors)
    found = find(rank.strings, data, start, stop, channel)
    if found >= 0:
        return 2 * (np.int64(found) + numeric - first) + 1
    if not rank.ordered[channel]:
        return 0
    low, high = first - numeric, rank.starts[channel + 1] - numeric
    while low < high:
        middle = (low + high) >> 1
        constant, end = rank.strings.offsets[middle], rank.strings.offsets[middle + 1]
        if compare_bytes(rank.strings.data, constant, end, data, start, stop) < 0:
            low = middle + 1
        else:
            high = middle
    return 2 * np.int64(low + numeric - first)


@kernel(void, u1r, i8r, u1w)
def reverse_strings(data: Any, offsets: Any, out: Any) -> None:
    """Reverse the bytes of each string, so that suffixes become prefixes."""
    for i in range(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        for at in range(start, stop):
            out[start + stop - 1 - at - offsets[0]] = data[at]


@dataclass(frozen=True)
class RankSpace:
    """Attributes, channels, constants and their cells. Immutable; safe to share."""

    names: StringTable
    channel_attributes: npt.NDArray[np.int32]
    channel_kinds: npt.NDArray[np.uint8]
    columns: NumberColumns  # numeric constants exactly; only fine channels keep mantissas
    arrays: RankArrays

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return len(self.channel_kinds)

    @property
    def n_cells(self) -> int:
        """The length of the global axis."""
        return int(self.arrays.bases[-1])

    def attribute_names(self) -> list[str]:
        """The canonical names of the attributes, by number."""
        table = self.names.as_tuple
        text, ends = bytes(table.data), table.offsets.tolist()
        return [text[a:b].decode() for a, b in itertools.pairwise(ends)]

    def constants(self, channel: int) -> NumberColumns:
        """The constants of a numeric channel."""
        arrays = self.arrays
        count = int(arrays.starts[channel + 1] - arrays.starts[channel])
        fine = int(arrays.fine_starts[channel])
        if fine >= 0:
            return self.columns.take(np.arange(fine, fine + count))
        first = int(arrays.starts[channel])
        return NumberColumns.of_integers(arrays.floors[first : first + count])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, by name, to be saved."""
        out = self.arrays._asdict()
        strings = out.pop("strings")
        out |= {f"strings.{k}": v for k, v in strings._asdict().items()}
        out |= {f"names.{k}": v for k, v in self.names.arrays().items()}
        out |= {f"fine.{k}": v for k, v in self.columns._asdict().items()}
        out["channel_attributes"] = self.channel_attributes
        out["channel_kinds"] = self.channel_kinds
        return out

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> RankSpace:
        """The same rank space, on arrays that may be memory-mapped."""
        strings = StringTable.from_arrays(_under(arrays, "strings."))
        own = {f: arrays[f] for f in RankArrays._fields if f != "strings"}
        return cls(
            StringTable.from_arrays(_under(arrays, "names.")),
            arrays["channel_attributes"],
            arrays["channel_kinds"],
            NumberColumns(**_under(arrays, "fine.")),
            RankArrays(**own, strings=strings.as_tuple),
        )

    def check(self) -> None:
        """Verify that channels tile the axis and constants ascend."""
        arrays = self.arrays
        counts = np.diff(arrays.starts)
        assert (counts >= 0).all(), "constants of channels overlap"
        assert (np.diff(arrays.bases) == 2 * counts + 1).all(), "channels do not tile the axis"
        assert (np.diff(self.channel_kinds.astype(np.int64)) >= 0).all(), "channels are out of order"
        n_numeric = int(np.count_nonzero(self.channel_kinds <= BOOLEAN))
        assert int(arrays.starts[n_numeric]) == len(arrays.floors), "numeric constants are missing"
        inner = np.ones(max(0, len(arrays.floors) - 1), dtype=np.bool_)
        edges = arrays.starts[1:n_numeric]
        inner[edges[(edges > 0) & (edges < len(arrays.floors))] - 1] = False
        assert (np.diff(arrays.floors)[inner] >= 0).all(), "numeric constants do not ascend"
        self.names.check()
        StringTable(arrays.strings).check()

    def pattern_channels(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The pattern channels, and the attribute of each; an attribute's are adjacent."""
        channels = np.flatnonzero(self.channel_kinds == PATTERN)
        return channels, self.channel_attributes[channels]


def _under(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def direct_tables(
    starts: npt.NDArray[np.int32], floors: npt.NDArray[np.int64], fine_starts: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[Any], ...]:
    """For dense integer channels, the cell of every integer from the least constant to the greatest."""
    n_channels = len(fine_starts)
    counts = np.diff(starts[: n_channels + 1].astype(np.int64))
    eligible = (counts > 0) & (fine_starts < 0)
    least = np.zeros(n_channels, dtype=np.int64)
    spans = np.zeros(n_channels, dtype=np.uint64)
    least[eligible] = floors[starts[:-1][:n_channels][eligible]]
    greatest = floors[starts[1:][:n_channels][eligible] - 1]
    # In unsigned arithmetic the difference is right even where it does not fit in int64.
    spans[eligible] = greatest.view(np.uint64) - least[eligible].view(np.uint64)
    dense = eligible & (spans < (4 * counts + 64).astype(np.uint64))
    sizes = np.where(dense, spans + np.uint64(1), np.uint64(0)).astype(np.int32)
    ends = np.cumsum(sizes, dtype=np.int64)
    table_starts = np.where(dense, ends - sizes, -1)
    table = np.zeros(int(ends[-1]) if n_channels else 0, dtype=np.int32)
    channel_of = np.repeat(np.arange(n_channels), counts)
    kept = dense[channel_of]
    places = (table_starts - least)[channel_of[kept]] + floors[: len(channel_of)][kept]
    # Constant i of a channel is cell 2i+1; the integers between it and the next are cell 2i+2.
    local = np.arange(len(channel_of)) - starts[:-1][:n_channels][channel_of]
    table[places] = 2 * local[kept] + 1
    return table_starts, least, sizes, _fill_gaps(table)


def _fill_gaps(table: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Integers that are no constant lie in the cell after the constant before them."""
    constants = np.flatnonzero(table)
    before = np.zeros(len(table), dtype=np.int64)
    before[constants] = constants
    np.maximum.accumulate(before, out=before)
    gaps = table == 0
    table[gaps] = table[before[gaps]] + 1
    return table


def build_rank_space(
    names: StringTable,
    channel_attributes: npt.NDArray[np.int32],
    channel_kinds: npt.NDArray[np.uint8],
    constant_counts: npt.NDArray[np.int64],
    columns: NumberColumns,
    strings: StringTable,
    ordered: npt.NDArray[np.uint8],
) -> RankSpace:
    """Put channels on the axis; constants come sorted by (channel, value). O(constants)."""
    n_channels = len(channel_kinds)
    starts = np.zeros(n_channels + 1, dtype=np.int32)
    np.cumsum(constant_counts, out=starts[1:])
    bases = np.zeros(n_channels + 1, dtype=np.int32)
    np.cumsum(2 * constant_counts + 1, out=bases[1:])
    table = np.full((len(names), SINGLE_KINDS), -1, dtype=np.int32)
    single = np.flatnonzero(channel_kinds < SINGLE_KINDS)
    table[channel_attributes[single], channel_kinds[single]] = single

    n_numeric = int(np.count_nonzero(channel_kinds <= BOOLEAN))
    counts = constant_counts[:n_numeric]
    channel_of = np.repeat(np.arange(n_numeric), counts)
    huge = np.abs(columns.doubles) >= _TWO_63
    is_fine = np.zeros(n_numeric, dtype=np.bool_)
    is_fine[channel_of[~columns.whole | huge]] = True
    fine_starts = np.full(n_numeric, -1, dtype=np.int32)
    fine_starts[is_fine] = np.concatenate(([0], np.cumsum(counts[is_fine])[:-1]))[: is_fine.sum()]
    kept = np.flatnonzero(is_fine[channel_of])
    cells = [
        cells_of_doubles(columns.take(np.arange(starts[c], starts[c + 1])))
        for c in np.flatnonzero(is_fine)
    ]
    direct_starts, least, sizes, direct = direct_tables(starts, columns.floors, fine_starts)
    fine = columns.take(kept)
    arrays = RankArrays(
        channels=table,
        bases=bases,
        starts=starts,
        floors=columns.floors,
        direct_starts=direct_starts.astype(np.int64),
        direct_least=least,
        direct_sizes=sizes,
        direct=direct,
        fine_starts=fine_starts,
        fine_whole=fine.whole.astype(np.uint8),
        fine_doubles=fine.doubles,
        fine_cells=np.concatenate(cells).astype(np.int32) if cells else np.empty(0, np.int32),
        ordered=ordered,
        strings=strings.as_tuple,
    )
    return RankSpace(names, channel_attributes, channel_kinds, fine, arrays)
