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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import prefixed, record_of, starts_of, under
from bittern.jit import (
    choose,
    f8r,
    i4r,
    i4r2,
    i8r,
    i8r2,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1w,
    void,
)
from bittern.model.numbers import INT64_MIN, NumberColumns, cells_of_doubles
from bittern.model.rank.direct import spans, tables
from bittern.model.strings import (
    STRING_TABLE,
    StringTable,
    StringTableArrays,
    arrow_text,
    compare_bytes,
    find,
)

NUMBER, TIME, BOOLEAN, STRING, REVERSED, ANY, PATTERN = range(7)
KIND_NAMES = ("number", "time", "boolean", "string", "reversed string", "any", "pattern")
#: Kinds that an attribute has at most one channel of; patterns are numbered apart.
SINGLE_KINDS = 6

_LEAST_INT64 = np.int64(INT64_MIN)
_TWO_63 = 2.0**63


# What a channel's row of ``heads`` holds: one cache line per channel.
HEAD = 8
BASE, FIRST, COUNT, DIRECT, LEAST, GREATEST, FINE, ORDERED = range(HEAD)


class RankArrays(NamedTuple):
    """What kernels see of a rank space.

    A row of ``heads`` is (first global cell, first constant, number of constants, where its direct
    table starts or -1, the least and the greatest integer in that table, where its fine constants
    start or -1, 1 if its strings are compared by order and not only for equality).
    """

    channels: npt.NDArray[np.int32]  # (attributes, SINGLE_KINDS): the channel of a kind, or -1
    bases: npt.NDArray[np.int32]  # first global cell of each channel, and the end
    heads: npt.NDArray[np.int64]
    floors: npt.NDArray[np.int64]  # of numeric constants
    direct: npt.NDArray[np.int32]  # of dense channels: the local cell of each integer
    fine_whole: npt.NDArray[np.uint8]  # fine: channels with fractions or beyond int64
    fine_doubles: npt.NDArray[np.float64]
    fine_cells: npt.NDArray[np.int32]  # local cell of a float equal to the constant's double
    strings: StringTableArrays


RANK = tuple_type(RankArrays, i4r2, i4r, i8r2, i8r, i4r, u1r, f8r, i4r, STRING_TABLE)


@inline
def integer_cell(rank: Any, channel: Any, value: Any) -> Any:
    """The local cell of an integer in a numeric channel. (Unsigned indices cost less.)"""
    channel = np.uint64(channel)
    low = np.int64(0)
    if rank.heads[channel, DIRECT] < 0:
        first, left = rank.heads[channel, FIRST], rank.heads[channel, COUNT]
        while left > 0:
            half = (left + 1) >> 1
            is_below = rank.floors[np.uint64(first + low + half - 1)] < value
            low = choose(is_below, low + half, low)
            left -= half
    return integer_cell_from(rank, channel, value, low)


@inline
def integer_cell_from(rank: Any, channel: Any, value: Any, low: Any) -> Any:
    """The same, where ``low`` constants have a floor below the value (if there is no table)."""
    channel = np.uint64(channel)
    direct, count = rank.heads[channel, DIRECT], rank.heads[channel, COUNT]
    if direct >= 0:
        if value < rank.heads[channel, LEAST]:
            return np.int64(0)
        if value > rank.heads[channel, GREATEST]:
            return 2 * count
        return np.int64(rank.direct[np.uint64(direct + value - rank.heads[channel, LEAST])])
    first = rank.heads[channel, FIRST]
    if low < count and rank.floors[first + low] == value:
        fine = rank.heads[channel, FINE]
        if fine < 0 or rank.fine_whole[fine + low]:
            return 2 * low + 1
        if value == _LEAST_INT64:  # clamped: these constants lie below every integer
            while (
                low < count
                and rank.floors[first + low] == value
                and not rank.fine_whole[fine + low]
            ):
                low += 1
            if low < count and rank.floors[first + low] == value:
                return 2 * low + 1
    return 2 * low


@inline
def float_cell(rank: Any, channel: Any, value: Any) -> Any:
    """The local cell of a float in a numeric channel; NaN is above all."""
    count, fine = rank.heads[channel, COUNT], rank.heads[channel, FINE]
    if fine >= 0:
        low, left = np.int64(0), count
        while left > 0:
            half = (left + 1) >> 1
            is_below = rank.fine_doubles[np.uint64(fine + low + half - 1)] < value
            low = choose(is_below, low + half, low)
            left -= half
        return fine_cell_from(rank, channel, value, low)
    if np.isnan(value) or value >= _TWO_63:
        return 2 * count
    if value < -_TWO_63:
        return np.int64(0)
    below = np.floor(value)
    cell = integer_cell(rank, channel, np.int64(below))
    return cell + 1 if value > below and cell & 1 else cell


@inline
def fine_cell_from(rank: Any, channel: Any, value: Any, low: Any) -> Any:
    """The local cell of a float that ``low`` fine constants are below, unless it is NaN."""
    count, fine = rank.heads[channel, COUNT], rank.heads[channel, FINE]
    if np.isnan(value):
        return 2 * count
    if low < count and rank.fine_doubles[fine + low] == value:
        return np.int64(rank.fine_cells[fine + low])
    return 2 * low


@inline
def string_cell(rank: Any, channel: Any, data: Any, start: Any, stop: Any) -> Any:
    """The local cell of a string: by hash, then by binary search where order matters."""
    first = rank.heads[channel, FIRST] - len(rank.floors)  # among the strings
    found = find(rank.strings, data, start, stop, channel)
    if found >= 0:
        return 2 * (np.int64(found) - first) + 1
    if not rank.heads[channel, ORDERED]:
        return np.int64(0)
    low, high = first, first + rank.heads[channel, COUNT]
    while low < high:
        middle = (low + high) >> 1
        constant, end = rank.strings.offsets[middle], rank.strings.offsets[middle + 1]
        if compare_bytes(rank.strings.data, constant, end, data, start, stop) < 0:
            low = middle + 1
        else:
            high = middle
    return 2 * (low - first)


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
        names: list[str] = arrow_text(table.data, table.offsets).to_pylist()
        return names

    def names_with(self, mark: str) -> list[str]:
        """The names that begin with a mark, which most often none does. O(bytes)."""
        if mark.encode() not in self.names.as_tuple.data.tobytes():
            return []
        return [name for name in self.attribute_names() if name.startswith(mark)]

    def constants(self, channel: int) -> NumberColumns:
        """The constants of a numeric channel."""
        head = self.arrays.heads[channel]
        first, count, fine = int(head[FIRST]), int(head[COUNT]), int(head[FINE])
        if fine >= 0:
            return self.columns.take(np.arange(fine, fine + count))
        return NumberColumns.of_integers(self.arrays.floors[first : first + count])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, by name, to be saved."""
        out = self.arrays._asdict()
        strings = out.pop("strings")
        out |= prefixed("strings.", strings)
        out |= prefixed("names.", self.names.arrays())
        out |= prefixed("fine.", self.columns)
        out["channel_attributes"] = self.channel_attributes
        out["channel_kinds"] = self.channel_kinds
        return out

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> RankSpace:
        """The same rank space, on arrays that may be memory-mapped."""
        strings = StringTable.from_arrays(under(arrays, "strings."))
        own = {f: arrays[f] for f in RankArrays._fields if f != "strings"}
        return cls(
            StringTable.from_arrays(under(arrays, "names.")),
            arrays["channel_attributes"],
            arrays["channel_kinds"],
            record_of(NumberColumns, under(arrays, "fine.")),
            RankArrays(**own, strings=strings.as_tuple),
        )

    def check(self) -> None:
        """Verify all that kernels trust; AssertionError says what is broken. O(size)."""
        arrays, kinds = self.arrays, self.channel_kinds
        n = self.n_channels
        assert arrays.heads.shape == (n, 8), "there is not one head per channel"
        firsts, counts = arrays.heads[:, FIRST], arrays.heads[:, COUNT]
        assert (counts >= 0).all(), "a channel has a negative number of constants"
        assert np.array_equal(firsts, np.cumsum(counts) - counts), "constants do not tile"
        assert len(arrays.bases) == n + 1, "there is not one base per channel, and the end"
        assert arrays.bases[0] == 0, "the axis does not start at 0"
        assert (np.diff(arrays.bases.astype(np.int64)) == 2 * counts + 1).all(), (
            "channels do not tile the axis"
        )
        assert np.array_equal(arrays.heads[:, BASE], arrays.bases[:-1]), "a channel's base is wrong"
        assert (np.diff(kinds.astype(np.int64)) >= 0).all(), "channels are out of order"
        assert (kinds <= PATTERN).all(), "a channel is of no kind"
        self._check_attributes()
        n_numeric = int(np.count_nonzero(kinds <= BOOLEAN))
        n_ordered = int(np.count_nonzero(kinds <= REVERSED))
        assert counts[:n_numeric].sum() == len(arrays.floors), "numeric constants are missing"
        assert not counts[n_ordered:].any(), "a channel has constants that it cannot have"
        assert (arrays.heads[n_numeric:, (DIRECT, FINE)] == -1).all(), (
            "a channel that is not numeric has tables of numbers"
        )
        self._check_fine(arrays.heads[:n_numeric])
        self._check_numbers(arrays.heads[:n_numeric])
        self._check_strings(np.arange(n_numeric, n_ordered), counts[n_numeric:n_ordered])

    def _check_attributes(self) -> None:
        """Attributes and channels point to each other."""
        self.names.check()
        owners, table = self.channel_attributes, self.arrays.channels
        assert len(owners) == self.n_channels, "there is not one attribute per channel"
        known = (owners >= 0) & (owners < len(self.names))
        assert known.all(), "a channel belongs to no attribute"
        patterns = owners[self.channel_kinds == PATTERN]
        assert (np.diff(patterns) >= 0).all(), "an attribute's patterns are not adjacent"
        assert table.shape == (len(self.names), SINGLE_KINDS), "the table of channels is cut off"
        single = np.flatnonzero(self.channel_kinds < SINGLE_KINDS)
        assert np.count_nonzero(table != -1) == len(single), "an attribute has a channel too many"
        found = table[owners[single], self.channel_kinds[single]]
        assert np.array_equal(found, single), "the table of channels is wrong"

    def _check_fine(self, heads: npt.NDArray[np.int64]) -> None:
        """Fine constants tile their arrays, ascend, and know cells of their channel."""
        arrays = self.arrays
        is_fine = heads[:, FINE] != -1
        counts = heads[is_fine, COUNT]
        assert np.array_equal(heads[is_fine, FINE], np.cumsum(counts) - counts), (
            "fine constants do not tile"
        )
        columns = (arrays.fine_whole, arrays.fine_doubles, arrays.fine_cells, *self.columns)
        assert {len(column) for column in columns} == {counts.sum()}, "fine constants are missing"
        assert (arrays.fine_whole <= 1).all(), "a fine constant is neither whole nor not"
        of_channel = np.repeat(np.arange(len(counts)), counts)
        ascend = arrays.fine_doubles[1:] >= arrays.fine_doubles[:-1]
        assert (ascend | (np.diff(of_channel) > 0)).all(), "fine constants do not ascend"
        cells = arrays.fine_cells
        assert ((cells >= 0) & (cells <= 2 * counts[of_channel])).all(), (
            "a fine constant's cell is not in its channel"
        )

    def _check_numbers(self, heads: npt.NDArray[np.int64]) -> None:
        """Numeric constants ascend, and the direct tables say where integers lie among them."""
        floors, direct = self.arrays.floors, self.arrays.direct
        of_channel = np.repeat(np.arange(len(heads)), heads[:, COUNT])
        apart = np.diff(of_channel) > 0
        rising = floors[1:] > floors[:-1]  # a difference could overflow
        same = (floors[1:] == floors[:-1]) & (heads[of_channel, FINE] >= 0)[1:]
        assert (apart | rising | same).all(), "numeric constants do not ascend"
        dense = heads[:, DIRECT] != -1
        plain = (heads[:, COUNT] > 0) & (heads[:, FINE] == -1)
        assert plain[dense].all(), "a channel cannot have a direct table"
        tabled = heads[dense]
        lasts = tabled[:, FIRST] + tabled[:, COUNT] - 1
        assert np.array_equal(tabled[:, LEAST], floors[tabled[:, FIRST]]), "a least integer is off"
        assert np.array_equal(tabled[:, GREATEST], floors[lasts]), "a greatest integer is off"
        lengths = spans(tabled[:, LEAST], tabled[:, GREATEST])
        assert (lengths < len(direct)).all(), "a direct table is cut off"
        sizes = lengths.astype(np.int64) + 1
        assert np.array_equal(tabled[:, DIRECT], np.cumsum(sizes) - sizes), (
            "direct tables do not tile"
        )
        assert sizes.sum() == len(direct), "direct tables are cut off"
        cells = tables(heads[:, DIRECT], heads[:, LEAST], heads[:, COUNT], floors, len(direct))
        assert np.array_equal(direct, cells), "a direct table has a wrong cell"

    def _check_strings(
        self, channels: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> None:
        """Strings belong to their channels and ascend there."""
        import pyarrow.compute as pc  # noqa: PLC0415  half of what all imports take

        StringTable(self.arrays.strings).check()
        data, offsets, groups, *_ = self.arrays.strings
        assert counts.sum() == len(groups), "strings are missing"
        assert np.array_equal(groups, np.repeat(channels, counts)), "a string's channel is wrong"
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        strings = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(groups), buffers)
        ascend = np.asarray(pc.less(strings[:-1], strings[1:])) if len(groups) else np.empty(0)
        assert (ascend.astype(np.bool_) | (np.diff(groups) > 0)).all(), "strings do not ascend"

    def pattern_channels(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The pattern channels, and the attribute of each; an attribute's are adjacent."""
        channels = np.flatnonzero(self.channel_kinds == PATTERN)
        return channels, self.channel_attributes[channels]


def _direct_tables(
    heads: npt.NDArray[np.int64], floors: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """For dense integer channels, the cell of each integer from the least constant to the greatest.

    ``heads`` are those of the numeric channels; their columns about direct tables are filled in.
    """
    firsts, counts = heads[:, FIRST], heads[:, COUNT]
    eligible = (counts > 0) & (heads[:, FINE] < 0)
    heads[eligible, LEAST] = floors[firsts[eligible]]
    heads[eligible, GREATEST] = floors[firsts[eligible] + counts[eligible] - 1]
    lengths = spans(heads[:, LEAST], heads[:, GREATEST])
    dense = eligible & (lengths < (4 * counts + 64).astype(np.uint64))
    sizes = np.where(dense, lengths + np.uint64(1), np.uint64(0)).astype(np.int64)
    heads[:, DIRECT] = np.where(dense, np.cumsum(sizes) - sizes, -1)
    return tables(heads[:, DIRECT], heads[:, LEAST], counts, floors, int(sizes.sum()))


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
    bases = starts_of(2 * constant_counts + 1, np.int32)
    table = np.full((len(names), SINGLE_KINDS), -1, dtype=np.int32)
    single = np.flatnonzero(channel_kinds < SINGLE_KINDS)
    table[channel_attributes[single], channel_kinds[single]] = single

    heads = np.zeros((len(channel_kinds), 8), dtype=np.int64)
    heads[:, BASE] = bases[:-1]
    heads[:, FIRST] = np.cumsum(constant_counts) - constant_counts
    heads[:, COUNT] = constant_counts
    heads[:, ORDERED] = ordered
    heads[:, DIRECT] = heads[:, FINE] = -1
    numeric = heads[: int(np.count_nonzero(channel_kinds <= BOOLEAN))]
    channel_of = np.repeat(np.arange(len(numeric)), numeric[:, COUNT])
    is_fine = np.zeros(len(numeric), dtype=np.bool_)
    is_fine[channel_of[~columns.whole | (np.abs(columns.doubles) >= _TWO_63)]] = True
    fine_counts = numeric[is_fine, COUNT]
    numeric[is_fine, FINE] = np.cumsum(fine_counts) - fine_counts
    fine = columns.take(np.flatnonzero(is_fine[channel_of]))
    cells = [np.empty(0, dtype=np.int32)]
    for first, count in numeric[is_fine][:, (FINE, COUNT)].tolist():
        cells.append(cells_of_doubles(fine.take(np.arange(first, first + count))))
    arrays = RankArrays(
        channels=table,
        bases=bases,
        heads=heads,
        floors=columns.floors,
        direct=_direct_tables(numeric, columns.floors),
        fine_whole=fine.whole.astype(np.uint8),
        fine_doubles=fine.doubles,
        fine_cells=np.concatenate(cells),
        strings=strings.as_tuple,
    )
    return RankSpace(names, channel_attributes, channel_kinds, fine, arrays)
