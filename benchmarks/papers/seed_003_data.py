"""Subscriptions and events as seed 003 draws them, as arrays in rank space.

No text is written and none is read, so that ten million subscriptions take seconds. What is drawn
are *tests*: a channel and two *positions* of its values, 2v for "exactly v" and 2v - 1 for "just
below v"; they are then compiled as texts would be, with the constants in use and no others::

    a7 = 3       channel 7   low  6   high  6
    a7 <= 3      channel 7   low -1   high  6        -1: open
    a7 >= 3      channel 7   low  6   high -1
    a9 LIKE 'ab%'  channel 9   low 2·rank('ab')   high 2·rank('ac') - 1

Table 3 of the paper is ``Setting``. Attribute and operand are drawn evenly, or with Zipf's
probabilities, where the r-th attribute and the value r have a weight of r to the power -zipf; the
attributes of a subscription, and of an event, are distinct: a repeated one is drawn again.

Cost: O(tests), about 0.3 µs for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.draw import Draw, Floats, Ints
from bittern.arrays import Int32s
from bittern.jit import i4r, i8, i8r, kernel, u1w
from bittern.matching.pivot.cover import cell_mass
from bittern.model.classes.classes import Classes, StructureArrays, classify
from bittern.model.classes.structure import Nested, Structure
from bittern.model.numbers import NumberColumns
from bittern.model.rank.encoded import EncodedEvents, encode_pairs
from bittern.model.rank.space import NUMBER, STRING, RankSpace, build_rank_space
from bittern.model.strings import StringTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Masses: TypeAlias = NDArray[np.float64]

SEED = 3
OPEN = -1
EQUAL, AT_MOST, AT_LEAST = range(3)
#: Up to this many (channel, value) combinations a table is faster than sorting.
TABLE = 1 << 26


class Tests(NamedTuple):
    """The tests of subscriptions, as drawn."""

    channels: Int32s
    lows: Ints
    highs: Ints
    counts: Int32s  # tests of each subscription
    structure_of: Int32s  # 0: all of its tests hold
    structures: Sequence[Nested]  # number 1 and on


class Values(NamedTuple):
    """What the events hold, ordered by event."""

    rows: Int32s
    channels: Int32s
    values: Ints
    n_events: int


class Space:
    """A rank space over integers 1, 2, ... below ``n_values``, or over strings in order.

    The first channels are numbers; where there are ``words``, the channels from ``n_numbers`` on
    are strings, and a value is the place of a word.
    """

    def __init__(
        self,
        tests: Tests,
        n_channels: int,
        n_values: int,
        *,
        n_numbers: int | None = None,
        words: Sequence[bytes] = (),
    ) -> None:
        self._n_values = n_values
        n_numbers = n_channels if n_numbers is None else n_numbers
        has_low, has_high = (np.flatnonzero(each != OPEN) for each in (tests.lows, tests.highs))
        low_keys = self._keys(tests.channels[has_low], (tests.lows[has_low] + 1) >> 1)
        high_keys = self._keys(tests.channels[has_high], (tests.highs[has_high] + 1) >> 1)
        if n_channels * n_values <= TABLE:
            used = np.zeros(n_channels * n_values, dtype=np.bool_)
            used[low_keys] = True
            used[high_keys] = True
            self._constants = np.flatnonzero(used)
            place_of = np.cumsum(used, dtype=np.int32) - np.int32(1)
            low_places, high_places = place_of[low_keys], place_of[high_keys]
        else:
            self._constants = np.unique(np.concatenate((low_keys, high_keys)))
            low_places = np.searchsorted(self._constants, low_keys).astype(np.int32)
            high_places = np.searchsorted(self._constants, high_keys).astype(np.int32)
        of_channel = self._constants // n_values
        counts = np.bincount(of_channel, minlength=n_channels)
        values = self._constants % n_values
        numeric = int(np.searchsorted(of_channel, n_numbers))
        kinds = np.where(np.arange(n_channels) < n_numbers, NUMBER, STRING).astype(np.uint8)
        strings = [words[value] for value in values[numeric:].tolist()]
        self.rank: RankSpace = build_rank_space(
            _string_table([b"a%d" % i for i in range(n_channels)], 0),
            np.arange(n_channels, dtype=np.int32),
            kinds,
            counts,
            NumberColumns.of_integers(values[:numeric]),
            _string_table(strings, of_channel[numeric:].astype(np.int32)),
            (kinds == STRING).astype(np.uint8),
        )
        bases = self.rank.arrays.bases
        # Cell 2k + 1 is the k-th constant of its channel; constants number all channels' on.
        self._shift = (bases[:-1] - 2 * (np.cumsum(counts) - counts)).astype(np.int32)
        self.lows, self.highs = bases[tests.channels], bases[tests.channels + 1] - np.int32(1)
        for cells, which, places, positions in (
            (self.lows, has_low, low_places, tests.lows),
            (self.highs, has_high, high_places, tests.highs),
        ):
            odd = (positions[which] & 1).astype(np.int32)
            shift = self._shift[tests.channels[which]]
            cells[which] = 2 * places + np.int32(1) - odd + shift

    def _keys(self, channels: Int32s, values: Ints) -> Ints:
        return channels.astype(np.int64) * self._n_values + values

    def encode(self, events: Values, n_events: int) -> EncodedEvents:
        """The first of the events. O(their values)."""
        end = int(np.searchsorted(events.rows, n_events))
        channels = events.channels[:end]
        keys = self._keys(channels, events.values[:end])
        places = np.searchsorted(self._constants, keys)
        known = np.append(self._constants, -1)[places] == keys
        cells = 2 * places + known + self._shift[channels]
        pairs = cells.astype(np.uint64) << np.uint64(32) | events.rows[:end].astype(np.uint64)
        return encode_pairs(pairs, n_events, self.rank.arrays.bases)


@dataclass(frozen=True)
class Subscriptions:
    """What an index is built of: classes in a rank space, and which events to expect."""

    space: Space
    classes: Classes
    class_of: Int32s
    mass: Masses
    n_tests: int
    domain: tuple[int, int]
    equalities: int
    """What rewriting every range of integers into equalities makes of the tests."""

    def __len__(self) -> int:
        return len(self.class_of)

    @cached_property
    def none(self) -> Classes:
        """No class at all, in the same rank space."""
        few = self.classes
        return Classes(
            few.channels[:0],
            few.lows[:0],
            few.highs[:0],
            few.starts[:0],
            few.counts[:0],
            few.structure_of[:0],
            few.structures,
        )


def compiled(
    tests: Tests,
    n_channels: int,
    n_values: int,
    *,
    log: Values | None = None,
    n_numbers: int | None = None,
    words: Sequence[bytes] = (),
) -> Subscriptions:
    """The subscriptions in rank space; ``log`` is a log of events, to tell attributes' frequency.

    Without one, the subscriptions tell it.
    """
    space = Space(tests, n_channels, n_values, n_numbers=n_numbers, words=words)
    equalities = _integers(tests, n_values)
    structures = StructureArrays.of([Structure.of(nested) for nested in tests.structures])
    classes, class_of = classify(
        tests.channels.copy(),
        space.lows,
        space.highs,
        tests.counts.copy(),
        tests.structure_of,
        structures,
        n_channels,
    )
    counts = None
    if log is not None:
        encoded = space.encode(log, log.n_events)
        counts = np.zeros(space.rank.n_cells, dtype=np.int64)
        counts[encoded.cells] = np.diff(encoded.offsets)
    mass = cell_mass(space.rank, classes, counts, log.n_events if log is not None else 0)
    domain = (1, n_values - 1)
    return Subscriptions(space, classes, class_of, mass, len(tests.channels), domain, equalities)


def _integers(tests: Tests, n_values: int) -> int:
    """How many integers of 1 .. n_values - 1 all tests allow together."""
    first = np.where(tests.lows == OPEN, 1, (tests.lows + 1) >> 1)
    last = np.where(tests.highs == OPEN, n_values - 1, tests.highs >> 1)
    return int(np.maximum(0, last - first + 1).sum())


def _string_table(strings: Sequence[bytes], groups: Any) -> StringTable:
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in strings], out=offsets[1:])
    return StringTable.build(np.frombuffer(b"".join(strings), np.uint8), offsets, groups)


# Drawing


@kernel(i8, i8r, i4r, u1w)
def _mark_repeated(starts: Any, chosen: Any, marks: Any) -> Any:
    """Mark what stands in its row before; returns how many do. Quadratic in a row's length."""
    n = 0
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            marks[i] = 0
            for k in range(starts[row], i):
                if chosen[k] == chosen[i]:
                    marks[i] = 1
            n += marks[i]
    return n


def distinct(counts: NDArray[Any], pick: Callable[[int], Ints]) -> Int32s:
    """Numbers in rows of these lengths, none twice in a row: repeated ones are drawn again."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    chosen = pick(int(starts[-1])).astype(np.int32)
    marks = np.empty(len(chosen), dtype=np.uint8)
    while _mark_repeated(starts, chosen, marks):
        places = np.flatnonzero(marks)
        chosen[places] = pick(len(places))
    return chosen


def zipf(n: int, exponent: float) -> Floats:
    """The weight of each of n things, the most frequent first."""
    return np.arange(1, n + 1, dtype=np.float64) ** -exponent


def picker(draw: Draw, n: int, exponent: float) -> Callable[[int], Ints]:
    """Draw numbers below n, evenly or by Zipf."""
    if exponent == 0:
        return lambda count: draw.below(n, count)
    weights = zipf(n, exponent)
    return lambda count: draw.weighted(weights, count)


@dataclass(frozen=True)
class Setting:
    """Table 3 of seed 003, with its defaults."""

    n: int = 1_000_000
    d: int = 20_000
    largest: int = 4
    m: int = 20
    equal: float = 0.4
    sigma: int = 50
    zipf: float = 0.0

    @property
    def operators(self) -> tuple[float, float, float]:
        """The share of =, <= and >=."""
        return self.equal, (1 - self.equal) / 2, (1 - self.equal) / 2


def sizes(draw: Draw, n: int, largest: int) -> Int32s:
    """How many predicates each subscription has: 1 to the largest, evenly."""
    return (1 + draw.below(largest, n)).astype(np.int32)


def predicates(draw: Draw, setting: Setting, n: int) -> tuple[Ints, Ints]:
    """The positions of n predicates: an operator and an operand each."""
    operators = draw.weighted(np.array(setting.operators), n)
    positions = 2 * (1 + picker(draw, setting.sigma, setting.zipf)(n))
    lows = np.where(operators == AT_MOST, OPEN, positions)
    return lows, np.where(operators == AT_LEAST, OPEN, positions)


def drawn_tests(setting: Setting) -> Tests:
    """Conjunctions by Table 3."""
    draw = Draw(SEED, 1)
    counts = sizes(draw, setting.n, setting.largest)
    channels = distinct(counts, picker(draw, setting.d, setting.zipf))
    lows, highs = predicates(draw, setting, len(channels))
    return Tests(channels, lows, highs, counts, np.zeros(setting.n, np.int32), ())


def drawn(setting: Setting) -> Subscriptions:
    """Conjunctions by Table 3, in rank space."""
    return compiled(drawn_tests(setting), setting.d, setting.sigma + 1)


def drawn_events(setting: Setting, n: int) -> Values:
    """Events of m attributes by Table 3."""
    draw = Draw(SEED, 2)
    channels = distinct(np.full(n, setting.m), picker(draw, setting.d, setting.zipf))
    values = 1 + picker(draw, setting.sigma, setting.zipf)(len(channels))
    return Values(np.repeat(np.arange(n, dtype=np.int32), setting.m), channels, values, n)
