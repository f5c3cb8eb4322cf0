"""Turns a batch into rank space: values in, packed pairs ``cell << 32 | event`` out.

Events of every form (``model/events/reader.py``) arrive here as columns of one kind or as tagged
values. Each value becomes up to three cells, in the channels of its attribute::

    color = "red"      strings      the cell of "red" among the constants
                       reversed     the cell of "der"
                       any          there is a value
                       patterns     one cell for each pattern that "red" satisfies

O(values), and a binary search or a hash look-up each; a string that many events share meets the
patterns once.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import ranges
from bittern.jit import frozen
from bittern.model.distinct import distinct
from bittern.model.events.columns import Column
from bittern.model.numbers import Number, exact, floors_at_scale
from bittern.model.rank.cells import (
    NOTHING,
    AskedValues,
    TouchedArrays,
    float_pairs,
    integer_pairs,
    repeat_pairs,
    string_pairs,
    tagged_pairs,
)
from bittern.model.rank.encoded import Pairs
from bittern.model.rank.space import (
    ANY,
    COUNT,
    FINE,
    FIRST,
    NUMBER,
    REVERSED,
    STRING,
    TIME,
    RankSpace,
    reverse_strings,
)
from bittern.model.strings import arrow_strings, gather_strings
from bittern.model.tagged import EXACT, EXACT_TIME, TaggedValues
from bittern.model.tagged import STRING as STRING_TAG

if TYPE_CHECKING:
    from bittern.model.events.derived.known import Known
    from bittern.model.patterns.sets import PatternSet

EventRows = npt.NDArray[Any]
_SHIFT = np.uint64(32)
_ROW_MASK = np.uint64(0xFFFFFFFF)
#: A float this much, in proportion, from an approximation lies on the same side of the number.
_NEAR = 2.0**-48
_ALL = frozen(AskedValues(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)))


def rows_of(pairs: Pairs) -> npt.NDArray[np.int64]:
    """The event of each pair."""
    return (pairs & _ROW_MASK).astype(np.int64)


def cells_of(pairs: Pairs) -> npt.NDArray[np.int64]:
    """The cell of each pair."""
    return (pairs >> _SHIFT).astype(np.int64)


def _for_each_row(starts: npt.NDArray[Any], codes: EventRows) -> tuple[EventRows, npt.NDArray[Any]]:
    """What a row's code has, row by row: the rows, and the places in what the codes have.

    ``starts`` says where what each code has begins, and at last where all ends. O(rows + places).
    """
    firsts, counts = starts[:-1][codes], np.diff(starts)[codes]
    if counts.max(initial=0) <= 1:
        rows = np.flatnonzero(counts)
        return rows, firsts[rows]
    return np.repeat(np.arange(len(codes)), counts), ranges(firsts, counts)


class Constants:
    """A rank space with its patterns, and its constants in other forms, computed once if asked."""

    def __init__(self, rank: RankSpace, patterns: Mapping[int, PatternSet]) -> None:
        self._rank = rank
        self.arrays = frozen(rank.arrays)
        self.patterns = patterns
        channels, owners = rank.pattern_channels()  # an attribute's lie together
        firsts = np.searchsorted(owners, sorted(patterns)).tolist()
        self.first_pattern = dict(zip(sorted(patterns), channels[firsts].tolist(), strict=True))
        self._numbers: dict[int, list[Number]] = {}
        self._floors: dict[tuple[int, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def hidden_cells(self, marked: Sequence[int]) -> npt.NDArray[np.bool_] | None:
        """By cell, whether it is of these attributes, which no event carries itself; None: none."""
        if not marked:
            return None
        channels, bases = self.arrays.channels[marked], self.arrays.bases
        hidden = np.zeros(self._rank.n_cells, dtype=np.bool_)
        for channel in channels[channels >= 0].tolist():
            hidden[bases[channel] : bases[channel + 1]] = True
        return hidden

    def numbers(self, channel: int) -> list[Number]:
        """The constants of a numeric channel, exactly."""
        if channel not in self._numbers:
            constants = self._rank.constants(channel)
            self._numbers[channel] = [constants.number(i) for i in range(len(constants.floors))]
        return self._numbers[channel]

    def floors(self, channel: int, scale: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The constants of a numeric channel in another unit."""
        if (channel, scale) not in self._floors:
            self._floors[channel, scale] = floors_at_scale(self._rank.constants(channel), scale)
        return self._floors[channel, scale]

    def doubles(self, channel: int) -> npt.NDArray[np.float64]:
        """The floats nearest to the constants of a numeric channel."""
        first, count, fine = (int(self.arrays.heads[channel, i]) for i in (FIRST, COUNT, FINE))
        if fine >= 0:
            return self.arrays.fine_doubles[fine : fine + count]
        return self.arrays.floors[first : first + count].astype(np.float64)


class PairBatch:
    """Pairs that pile up as columns and tagged values are added."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._rank = constants.arrays
        self._pairs: list[Pairs] = []

    def mark(self) -> int:
        """Where the next pairs will be, for ``move_rows``."""
        return len(self._pairs)

    def move_rows(self, mark: int, rows: EventRows) -> None:
        """Pairs since ``mark`` that are in row i belong in ``rows[i]``."""
        for i in range(mark, len(self._pairs)):
            pairs = self._pairs[i]
            moved = rows[rows_of(pairs)].astype(np.uint64)
            self._pairs[i] = (pairs & ~_ROW_MASK) | moved

    def repeat_rows(self, mark: int, codes: EventRows) -> None:
        """Pairs since ``mark`` that are in row i belong in every row whose code is i."""
        for i in range(mark, len(self._pairs)):
            pairs = self._pairs[i]
            lasts = np.full(int(codes.max(initial=0)) + 1, -1)
            befores, out = np.empty(len(pairs), dtype=np.int64), np.empty(len(codes), np.uint64)
            n = repeat_pairs(pairs, codes, lasts, befores, out)
            if n > len(out):  # some rows have several
                lasts[:] = -1
                out = np.empty(n, dtype=np.uint64)
                repeat_pairs(pairs, codes, lasts, befores, out)
            self._pairs[i] = out[:n]

    def take(self, mark: int) -> Pairs:
        """Pairs since ``mark``, which are taken out again."""
        taken = np.concatenate([np.empty(0, dtype=np.uint64), *self._pairs[mark:]])
        del self._pairs[mark:]
        return taken

    def add_pairs(self, pieces: Sequence[Pairs]) -> None:
        """Pairs that are known."""
        self._pairs += pieces

    def known(self, attributes: Sequence[int]) -> Known | None:
        """What keeps the cells that values have in these attributes; None: they meet patterns."""
        if not self._constants.patterns.keys().isdisjoint(attributes):
            return None
        from bittern.model.events.derived.known import Known  # noqa: PLC0415  only for terms

        channels = self._rank.channels[list(attributes)]
        return Known(channels[channels >= 0].tolist(), self._rank.bases)

    @property
    def has_patterns(self) -> bool:
        """Whether strings of some attribute meet patterns."""
        return bool(self._constants.patterns)

    def pieces(self) -> list[Pairs]:
        """All of them, as they came."""
        return self._pairs

    def pairs(self) -> Pairs:
        """All of them."""
        if len(self._pairs) == 1:
            return self._pairs[0]
        return np.concatenate([np.empty(0, dtype=np.uint64), *self._pairs])

    def add_column(self, attribute: int, column: Column) -> None:
        """All pairs that one column gives: of its kind, reversed, any, patterns."""
        channels = self._rank.channels[attribute]
        room = len(column.array) - column.array.null_count
        if channels[ANY] >= 0:
            self._add_cells(int(channels[ANY]), column.rows, np.zeros(room, dtype=np.int64))
        if column.kind == STRING:
            self._add_strings(attribute, column, room)
            return
        channel = int(channels[column.kind]) if column.kind >= 0 else -1
        if channel < 0:
            return
        if column.exact:
            for row, number in enumerate(column.array.to_pylist()):
                if number is not None:
                    self.add_exact(row, channel, number)
        elif column.scale:
            assert column.values is not None
            rows = column.rows
            self._add_scaled(channel, rows, column.values[rows], column.scale)
        else:
            pairs = np.empty(room, dtype=np.uint64)
            assert column.values is not None
            write = float_pairs if column.values.dtype == np.float64 else integer_pairs
            write(self._rank, channel, column.values, column.valid, pairs, 0)
            self._pairs.append(pairs)

    def add_present(self, attributes: EventRows, rows: EventRows) -> None:
        """Attributes that are there in these rows, one by one."""
        bases = self._rank.bases[self._rank.channels[attributes, ANY]]
        self._pairs.append(bases.astype(np.uint64) << _SHIFT | rows.astype(np.uint64))

    def _add_strings(self, attribute: int, column: Column, room: int) -> None:
        data, offsets, _ = arrow_strings(column.array)
        channels = self._rank.channels[attribute]
        if channels[STRING] >= 0:
            pairs = np.empty(room, dtype=np.uint64)
            string_pairs(self._rank, channels[STRING], data, offsets, column.valid, pairs, 0)
            self._pairs.append(pairs)
        if channels[REVERSED] >= 0:
            turned = np.empty(int(offsets[-1] - offsets[0]), dtype=np.uint8)
            reverse_strings(data, offsets, turned)
            pairs = np.empty(room, dtype=np.uint64)
            string_pairs(
                self._rank, channels[REVERSED], turned, offsets - offsets[0], column.valid, pairs, 0
            )
            self._pairs.append(pairs)
        if attribute in self._constants.patterns:
            self._match_patterns(attribute, column.rows, column.array.drop_null())

    def _match_patterns(self, attribute: int, rows: EventRows, strings: pa.Array) -> None:
        """Match each distinct string once, then give every row its string's patterns."""
        codes, firsts = distinct(strings)
        data, offsets, _ = arrow_strings(strings.take(pa.array(firsts)))
        starts, ids = self._constants.patterns[attribute].match(data, offsets)
        having, places = _for_each_row(starts, codes)
        first = self._constants.first_pattern[attribute]
        cells = self._rank.bases[first + ids[places]].astype(np.uint64)
        self._pairs.append(cells << _SHIFT | rows[having].astype(np.uint64))

    def _add_cells(self, channel: int, rows: EventRows, cells: npt.NDArray[np.int64]) -> None:
        packed = (cells + int(self._rank.bases[channel])).astype(np.uint64) << _SHIFT
        self._pairs.append(packed | rows.astype(np.uint64))

    def _add_scaled(
        self, channel: int, rows: EventRows, values: npt.NDArray[np.int64], scale: int
    ) -> None:
        """Integers in another unit than the constants: compare with the constants in that unit."""
        floors, whole = self._constants.floors(channel, scale)
        # Constants clamped to the least int64 lie below every value.
        below = int(np.count_nonzero((floors == np.iinfo(np.int64).min) & ~whole))
        at = below + np.searchsorted(floors[below:], values, "left")
        inside = np.minimum(at, max(0, len(floors) - 1))
        equal = (at < len(floors)) & (floors[inside] == values) & whole[inside]
        self._add_cells(channel, rows, 2 * at + equal)

    def add_exact(self, row: int, channel: int, value: Decimal | int) -> None:
        """A number that no machine type holds, by exact comparison."""
        numbers = self._constants.numbers(channel)
        number: Number = exact(value)
        at = bisect.bisect_left(numbers, number)
        equal = at < len(numbers) and numbers[at] == number
        self._add_cells(channel, np.array([row]), np.array([2 * at + int(equal)]))

    def add_exact_numbers(self, numbers: list[tuple[int, int, Number]]) -> None:
        """(row, attribute, number), one by one."""
        for row, attribute, number in numbers:
            channel = int(self._rank.channels[attribute, NUMBER])
            if channel >= 0:
                self.add_exact(row, channel, number)

    def add_variant_numbers(self, values: TaggedValues) -> None:
        """Long decimals and nanoseconds among the values of variants, attribute by attribute."""
        for tag, kind in ((EXACT, NUMBER), (EXACT_TIME, TIME)):
            places = np.flatnonzero(values.tags == tag)
            for attribute in np.unique(values.attributes[places]).tolist():
                channel = int(self._rank.channels[attribute, kind])
                own = places[values.attributes[places] == attribute]
                if channel < 0:
                    continue
                if kind == TIME:
                    self._add_scaled(channel, values.rows[own], values.payloads[own], 3)
                else:
                    self._add_decimals(channel, values.at(own))

    def _add_decimals(self, channel: int, values: TaggedValues) -> None:
        """Approximations tell where a decimal is, unless a constant is as good as equal to it."""
        from bittern.model.events.variant.values import LongDecimals  # noqa: PLC0415  only then

        rows, decimals = values.rows, LongDecimals.read(values.data, values.payloads)
        about = decimals.approximate()
        doubles = self._constants.doubles(channel)
        low = np.searchsorted(doubles, about - np.abs(about) * _NEAR, "left")
        high = np.searchsorted(doubles, about + np.abs(about) * _NEAR, "right")
        clear = low == high
        self._add_cells(channel, rows[clear], 2 * low[clear])
        for i in np.flatnonzero(~clear).tolist():
            self.add_exact(int(rows[i]), channel, decimals.exact(i))

    def _add_values(
        self, values: TaggedValues, asked: AskedValues, touched: TouchedArrays
    ) -> npt.NDArray[np.int64]:
        """The pairs of values but for patterns; returns which of the values touch."""
        pairs = np.empty(3 * len(values.rows), dtype=np.uint64)
        scratch = np.empty(int(values.lengths.max(initial=0)), dtype=np.uint8)
        touching = np.empty(len(values.rows) + 1 if len(touched.bits) else 0, dtype=np.int64)
        n = tagged_pairs(
            self._rank, asked, frozen(values), touched, scratch, scratch, pairs, touching
        )
        self._pairs.append(pairs[:n])
        return touching[1 : 1 + int(touching[0])] if len(touching) else touching

    def add_asked(self, values: TaggedValues, asked: AskedValues) -> None:
        """Values that are asked for under own numbers; no pattern is asked of them."""
        self._add_values(values, frozen(asked), NOTHING)

    def add_touching(self, values: TaggedValues, touched: TouchedArrays) -> npt.NDArray[np.int64]:
        """As ``add_tagged``; returns the places of values that others may ask about."""
        found = self._add_values(values, _ALL, touched)
        self._add_patterns(values)
        return found

    def add_tagged(self, values: TaggedValues) -> None:
        """Values of any kind, except those that no payload holds."""
        self._add_values(values, _ALL, NOTHING)
        self._add_patterns(values)

    def _add_patterns(self, values: TaggedValues) -> None:
        patterns = self._constants.patterns
        if not patterns:
            return
        strings = np.flatnonzero(values.tags == STRING_TAG)
        strings = strings[np.argsort(values.attributes[strings], kind="stable")]
        present, starts = np.unique(values.attributes[strings], return_index=True)
        for attribute, chosen in zip(present.tolist(), np.split(strings, starts[1:]), strict=False):
            if attribute not in patterns:
                continue
            lengths = values.lengths[chosen].astype(np.int64)
            offsets = np.zeros(len(chosen) + 1, dtype=np.int64)
            np.cumsum(lengths, out=offsets[1:])
            text = np.empty(int(offsets[-1]), dtype=np.uint8)
            gather_strings(
                values.data, values.payloads[chosen], values.lengths[chosen], offsets, text
            )
            array = pa.LargeStringArray.from_buffers(
                len(chosen), pa.py_buffer(offsets), pa.py_buffer(text)
            )
            self._match_patterns(attribute, values.rows[chosen], array)
