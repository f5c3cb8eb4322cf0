"""Which cells of a rank space a smaller one asks about, so that most values need not be read in it.

A snapshot reads an event's values into its own cells first. A delta on top of it has other cells,
but few tests, and most values satisfy none of them. So for each cell of the snapshot there is a bit
that tells whether some test of a delta may hold there::

    snapshot   price  (..10) 10 (10..20) 20 (20..)        a delta asks   price > 15
    bits                0     0     1     1     1

A value whose bit is clear is as good as missing to the deltas, and is not looked up in them. A set
bit promises nothing: cells are told apart by other constants. Where bits cannot tell (a test that
holds for missing values, suffixes, patterns, kinds that the snapshot does not know, strings other
than equal ones), all values of the attribute are kept.

Bits are only ever set. So they are set in place, before anyone matches with the delta, and whoever
matches without it reads a few values more. O(tests) for a delta, and a bit for each cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Int32s
from bittern.jit import frozen, i4r, i4w, inline, kernel, tuple_type, u1r, u1w, u8w, void
from bittern.model.rank.cells import TouchedArrays
from bittern.model.rank.space import (
    BASE,
    COUNT,
    FINE,
    FIRST,
    RANK,
    REVERSED,
    STRING,
    RankSpace,
    float_cell,
    integer_cell,
    string_cell,
)

_WORD, _BITS, _ONE = np.uint64(6), np.uint64(63), np.uint64(1)


class CellTests(NamedTuple):
    """The tests of an index: a channel, and the cells that it holds for (below 0: missing ones)."""

    channels: Int32s
    lows: Int32s
    highs: Int32s


_MARKED = tuple_type(TouchedArrays, u8w, u1w)
_TESTS = tuple_type(CellTests, i4r, i4r, i4r)


@inline
def _set(bits: Any, low: Any, high: Any) -> None:
    for cell in range(low, high + 1):
        at = np.uint64(cell)
        bits[at >> _WORD] |= _ONE << (at & _BITS)


@inline
def _cells_of_constant(base: Any, channel: Any, own: Any, own_channel: Any, i: Any) -> Any:
    """The first and the last cell of ``base`` that the i-th number of an own channel may be in."""
    fine = own.heads[own_channel, FINE]
    if fine < 0:
        value = own.floors[own.heads[own_channel, FIRST] + i]
        cell = integer_cell(base, channel, value)
        return cell, cell
    about = own.fine_doubles[fine + i]
    low = float_cell(base, channel, np.nextafter(about, -np.inf))
    return low, float_cell(base, channel, np.nextafter(about, np.inf))


@inline
def _mark_numbers(
    base: Any, channel: Any, own: Any, own_channel: Any, covered: Any, bits: Any
) -> None:
    """Set the bits of the cells that overlap with covered cells of an own channel."""
    count = own.heads[own_channel, COUNT]
    first, axis = own.heads[own_channel, BASE], base.heads[channel, BASE]
    cell = np.int64(0)
    while cell <= 2 * count:
        if covered[first + cell] == 0:
            cell += 1
            continue
        low, high = np.int64(0), 2 * base.heads[channel, COUNT]
        if cell > 0:  # from this constant on, or from the one before
            low, _ = _cells_of_constant(base, channel, own, own_channel, (cell - 1) >> 1)
        while cell < 2 * count and covered[first + cell + 1] > 0:
            cell += 1
        if cell < 2 * count:
            _, high = _cells_of_constant(base, channel, own, own_channel, cell >> 1)
        _set(bits, axis + low, axis + high)
        cell += 1


@inline
def _mark_strings(
    base: Any, channel: Any, own: Any, own_channel: Any, covered: Any, bits: Any
) -> Any:
    """The same for strings; whether only constants are covered, and nothing between them."""
    count = own.heads[own_channel, COUNT]
    first, axis = own.heads[own_channel, BASE], base.heads[channel, BASE]
    string = own.heads[own_channel, FIRST] - len(own.floors)
    for cell in range(0, 2 * count + 1, 2):
        if covered[first + cell] > 0:
            return False
    for i in range(count):
        if covered[first + 2 * i + 1] > 0:
            start, stop = own.strings.offsets[string + i], own.strings.offsets[string + i + 1]
            cell = axis + string_cell(base, channel, own.strings.data, start, stop)
            _set(bits, cell, cell)
    return True


@kernel(void, RANK, RANK, i4r, i4r, u1r, _TESTS, i4w, _MARKED)
def _mark(
    base: Any,
    own: Any,
    places: Any,
    attributes: Any,
    kinds: Any,
    tests: Any,
    covered: Any,
    marked: Any,
) -> None:
    """Mark what the tests of an own rank space ask about.

    ``places`` has by own attribute the one of ``base``, ``attributes`` and ``kinds`` those of each
    own channel. ``covered`` has room for each own cell, and the end, and is 0.
    """
    n_channels = len(kinds)
    for i in range(len(tests.lows)):
        channel, low, high = tests.channels[i], tests.lows[i], tests.highs[i]
        if channel < 0 or channel >= n_channels or low > high:
            continue
        if low < 0:
            marked.whole[places[attributes[channel]]] = 1
        else:
            covered[low] += 1
            covered[high + 1] -= 1
    for cell in range(1, len(covered)):
        covered[cell] += covered[cell - 1]
    for channel in range(n_channels):
        attribute, kind = places[attributes[channel]], np.int64(kinds[channel])
        is_asked = False
        for cell in range(own.bases[channel], own.bases[channel + 1]):
            is_asked = is_asked or covered[cell] > 0
        if not is_asked or marked.whole[attribute]:
            continue
        of_base = np.int64(-1)
        if kind < REVERSED:
            of_base = np.int64(base.channels[attribute, kind])
        if of_base < 0:
            marked.whole[attribute] = 1
        elif kind == STRING:
            if not _mark_strings(base, of_base, own, channel, covered, marked.bits):
                marked.whole[attribute] = 1
        else:
            _mark_numbers(base, of_base, own, channel, covered, marked.bits)


class Touched:
    """The cells of a rank space that others ask about."""

    def __init__(self, rank: RankSpace) -> None:
        self._base = frozen(rank.arrays)
        self._marked = TouchedArrays(
            np.zeros((rank.n_cells >> 6) + 1, dtype=np.uint64),
            np.zeros(len(rank.names), dtype=np.uint8),
        )
        #: What matching reads.
        self.arrays = frozen(self._marked)

    def mark(self, own: RankSpace, numbers: Int32s, tests: CellTests | None) -> None:
        """Mark what another rank space asks about; ``tests`` are None if they are not known.

        ``numbers`` has by attribute of this rank space the other's number, or -1.
        """
        asked = np.flatnonzero(numbers >= 0)
        if tests is None:
            self._marked.whole[asked] = 1
            return
        places = np.empty(len(own.names), dtype=np.int32)
        places[numbers[asked]] = asked
        covered = np.zeros(own.n_cells + 1, dtype=np.int32)
        _mark(
            self._base,
            frozen(own.arrays),
            places,
            own.channel_attributes,
            own.channel_kinds,
            frozen(tests),
            covered,
            self._marked,
        )
