"""Values to cells: the kernels between Arrow buffers and rank space.

Each writes packed pairs ``cell << 32 | event`` from ``at`` on and returns where it stopped; the
caller has made room. A null value, or one in a channel that no subscription uses, writes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.jit import (
    choose,
    f8r,
    frozen,
    i4r,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    prefetch,
    tuple_type,
    u1r,
    u1w,
    u8r,
    u8w,
)
from bittern.model.rank.space import (
    ANY,
    BASE,
    BOOLEAN,
    COUNT,
    DIRECT,
    FINE,
    FIRST,
    HEAD,
    LEAST,
    NUMBER,
    RANK,
    REVERSED,
    SINGLE_KINDS,
    STRING,
    TIME,
    fine_cell_from,
    float_cell,
    integer_cell,
    integer_cell_from,
    string_cell,
)
from bittern.model.tagged import BOOLEAN as BOOLEAN_TAG
from bittern.model.tagged import FLOAT, INTEGER, TIMESTAMP, TaggedValues
from bittern.model.tagged import STRING as STRING_TAG

_SHIFT = np.uint64(32)
_ROW_MASK = np.uint64(0xFFFFFFFF)
_WORD, _BITS, _ONE = np.uint64(6), np.uint64(63), np.uint64(1)
#: Values that are searched for in step; what is known of them stays in the first cache.
_IN_STEP = 256
#: Tagged values whose memory is asked for together.
_TOGETHER = 32


class TouchedArrays(NamedTuple):
    """What others ask about (``touched.py``): a bit for each cell, 1 for each attribute, if whole.

    Empty where there are no others.
    """

    bits: npt.NDArray[np.uint64]
    whole: npt.NDArray[np.uint8]


#: There are no others.
NOTHING = frozen(TouchedArrays(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint8)))


class AskedValues(NamedTuple):
    """Which values are asked for, and under which numbers.

    ``places`` are those of the values, ``numbers`` has by attribute the own number, -1 for those
    that are not asked for. Empty, each stands for everything as it is.
    """

    places: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]


_ASKED = tuple_type(AskedValues, i8r, i4r)
_TOUCHED = tuple_type(TouchedArrays, u8r, u1r)
_TAGGED = tuple_type(TaggedValues, i4r, i4r, u1r, i8r, i4r, u1r)


@inline
def _pack(base: Any, cell: Any, row: Any) -> Any:
    return np.uint64(base + cell) << _SHIFT | np.uint64(row)


@inline
def _count_below(constants: Any, values: Any, below: Any) -> None:
    """How many of the sorted constants are below each value; NaN has none below it.

    Binary searches in step, without a branch: a processor does many at once.
    """
    for i in range(len(values)):
        below[i] = np.uint64(0)
    length = len(constants)
    while length > 0:
        half = (length + 1) >> 1
        step, last = np.uint64(half), np.uint64(half - 1)
        for i in range(len(values)):
            at = below[i]
            below[i] = choose(constants[at + last] < values[i], at + step, at)
        length -= half


@kernel(i8, RANK, i8, i8r, u1r, u8w, i8)
def integer_pairs(rank: Any, channel: Any, values: Any, valid: Any, pairs: Any, at: Any) -> Any:
    """Integers, booleans (0 and 1) or microseconds. ``valid`` is empty if all are."""
    base, first = rank.heads[channel, BASE], rank.heads[channel, FIRST]
    floors = rank.floors[first : first + rank.heads[channel, COUNT]]
    below = np.empty(_IN_STEP, dtype=np.uint64)
    for start in range(0, len(values), _IN_STEP):
        stop = min(start + _IN_STEP, len(values))
        if rank.heads[channel, DIRECT] < 0:
            _count_below(floors, values[start:stop], below)
        for row in range(start, stop):
            if len(valid) == 0 or valid[row]:
                cell = integer_cell_from(rank, channel, values[row], np.int64(below[row - start]))
                pairs[at] = _pack(base, cell, row)
                at += 1
    return at


@kernel(i8, RANK, i8, f8r, u1r, u8w, i8)
def float_pairs(rank: Any, channel: Any, values: Any, valid: Any, pairs: Any, at: Any) -> Any:
    """Floats, NaN included."""
    base, fine = rank.heads[channel, BASE], rank.heads[channel, FINE]
    doubles = rank.fine_doubles[fine : fine + rank.heads[channel, COUNT]]
    below = np.empty(_IN_STEP, dtype=np.uint64)
    for start in range(0, len(values), _IN_STEP):
        stop = min(start + _IN_STEP, len(values))
        if fine >= 0:
            _count_below(doubles, values[start:stop], below)
        for row in range(start, stop):
            if len(valid) == 0 or valid[row]:
                if fine >= 0:
                    cell = fine_cell_from(rank, channel, values[row], np.int64(below[row - start]))
                else:
                    cell = float_cell(rank, channel, values[row])
                pairs[at] = _pack(base, cell, row)
                at += 1
    return at


@kernel(i8, RANK, i8, u1r, i8r, u1r, u8w, i8)
def string_pairs(
    rank: Any, channel: Any, data: Any, offsets: Any, valid: Any, pairs: Any, at: Any
) -> Any:
    """Strings (reversed already, for a channel of reversed ones)."""
    base = rank.heads[channel, BASE]
    for row in range(len(offsets) - 1):
        if len(valid) == 0 or valid[row]:
            cell = string_cell(rank, channel, data, offsets[row], offsets[row + 1])
            pairs[at] = _pack(base, cell, row)
            at += 1
    return at


@kernel(i8, u8r, i8r, i8w, i8w, u8w)
def repeat_pairs(pairs: Any, codes: Any, lasts: Any, befores: Any, out: Any) -> Any:
    """Pairs of row i, again for each row whose code is i; returns how many there are.

    Each code's pairs are a chain: ``lasts`` has the last one (all -1 at first), ``befores`` the one
    before each. What does not fit in ``out`` is only counted.
    """
    for i in range(len(pairs)):
        code = pairs[i] & _ROW_MASK
        befores[i] = lasts[code]
        lasts[code] = i
    n = 0
    for row in range(len(codes)):
        at = lasts[np.uint64(codes[row])]
        while at >= 0:
            if n < len(out):
                out[n] = (pairs[at] & ~_ROW_MASK) | np.uint64(row)
            n += 1
            at = befores[at]
    return n


@kernel(i8, i4r, i8r, u8w)
def spread_cells(cells: Any, places: Any, out: Any) -> Any:
    """A pair for each row whose place has a cell (else -1); returns how many there are."""
    n = np.int64(0)
    for row in range(len(places)):
        cell = np.int64(cells[np.uint64(places[row])])
        out[np.uint64(n)] = np.uint64(cell) << _SHIFT | np.uint64(row)
        n += np.int64(cell >= 0)
    return n


@inline
def _reverse(data: Any, start: Any, stop: Any, out: Any) -> None:
    for i in range(stop - start):
        out[i] = data[stop - 1 - i]


@inline
def value_cells(
    rank: Any,
    attribute: Any,
    tag: Any,
    payload: Any,
    real: Any,
    length: Any,
    data: Any,
    scratch: Any,
    backwards: Any,
) -> Any:
    """The cells of a value (``model/tagged.py``), as channel "any", and two channels with cells.

    These are that of reversed strings and that of the value's kind; a channel is -1 where there is
    none. The arguments from ``data`` on are for strings: ``scratch`` has room for one, and
    ``backwards`` is the same bytes again, of the type of ``data``, so that what reads strings is
    compiled once.
    """
    any_channel = np.int64(rank.channels[attribute, ANY])
    turned, turned_cell = np.int64(-1), np.int64(0)
    channel, cell = np.int64(-1), np.int64(0)
    if tag in (INTEGER, FLOAT):
        channel = np.int64(rank.channels[attribute, NUMBER])
        if channel >= 0:
            if tag == INTEGER:
                cell = integer_cell(rank, channel, payload)
            else:
                cell = float_cell(rank, channel, real)
    elif tag in (BOOLEAN_TAG, TIMESTAMP):
        channel = np.int64(rank.channels[attribute, BOOLEAN if tag == BOOLEAN_TAG else TIME])
        if channel >= 0:
            cell = integer_cell(rank, channel, payload)
    elif tag == STRING_TAG:
        start, stop = payload, payload + length
        turned = np.int64(rank.channels[attribute, REVERSED])
        if turned >= 0:
            _reverse(data, start, stop, scratch)
            turned_cell = string_cell(rank, turned, backwards, 0, stop - start)
        channel = np.int64(rank.channels[attribute, STRING])
        if channel >= 0:
            cell = string_cell(rank, channel, data, start, stop)
    return any_channel, turned, turned_cell, channel, cell


@inline
def _is_touched(touched: Any, cell: Any) -> Any:
    """1 if a test of others may hold in this cell, else 0."""
    at = np.uint64(cell)
    return np.int64(touched.bits[at >> _WORD] >> (at & _BITS) & _ONE)


@inline
def _add_cells(rank: Any, cells: Any, row: Any, pairs: Any, at: Any) -> Any:
    """Write the pairs of a value from ``value_cells``; returns where they end."""
    any_channel, turned, turned_cell, channel, cell = cells
    if any_channel >= 0:
        pairs[at] = _pack(rank.heads[any_channel, BASE], 0, row)
        at += 1
    if turned >= 0:
        pairs[at] = _pack(rank.heads[turned, BASE], turned_cell, row)
        at += 1
    if channel >= 0:
        pairs[at] = _pack(rank.heads[channel, BASE], cell, row)
        at += 1
    return at


@inline
def _ask_ahead(rank: Any, values: Any, numbers: Any, places: Any, n: Any) -> None:
    """Ask for the memory that the cells of ``n`` values are found in, step by step for all."""
    for k in range(n):
        kind = STRING if values.tags[np.uint64(places[np.uint64(k)])] == STRING_TAG else NUMBER
        channel = np.int64(rank.channels[np.uint64(numbers[np.uint64(k)]), kind])
        prefetch(rank.heads, HEAD * channel)
    for k in range(n):
        i = np.uint64(places[np.uint64(k)])
        channel = np.int64(rank.channels[np.uint64(numbers[np.uint64(k)]), NUMBER])
        if values.tags[i] == INTEGER and channel >= 0:
            direct = rank.heads[channel, DIRECT]
            if direct >= 0:
                least = rank.heads[channel, LEAST]
                prefetch(rank.direct, direct + values.payloads[i] - least)
            else:
                middle = rank.heads[channel, COUNT] >> 1
                prefetch(rank.floors, rank.heads[channel, FIRST] + middle)


@kernel(i8, RANK, _ASKED, _TAGGED, _TOUCHED, u1w, u1r, u8w, i8w)
def tagged_pairs(
    rank: Any,
    asked: Any,
    values: Any,
    touched: Any,
    scratch: Any,
    backwards: Any,
    pairs: Any,
    touching: Any,
) -> Any:
    """Values of any kind; up to three pairs for each of them.

    With ``touched``, writes which values are in a touched cell from ``touching[1]`` on, and how
    many they are to ``touching[0]``.
    """
    floats = values.payloads.view(np.float64)
    own, places = np.empty(_TOGETHER, dtype=np.int32), np.empty(_TOGETHER, dtype=np.int64)
    at, n_touching = 0, np.int64(0)
    total = len(asked.places) or len(values.rows)
    for start in range(0, total, _TOGETHER):
        n = np.int64(0)
        for k in range(start, min(start + _TOGETHER, total)):
            i = asked.places[np.uint64(k)] if len(asked.places) else k
            number = values.attributes[np.uint64(i)]
            if len(asked.numbers):
                number = asked.numbers[np.uint64(number)]
            prefetch(rank.channels, SINGLE_KINDS * np.int64(number))
            own[np.uint64(n)], places[np.uint64(n)] = number, i
            n += np.int64(number >= 0)
        _ask_ahead(rank, values, own, places, n)
        for k in range(n):
            i, attribute = np.uint64(places[np.uint64(k)]), np.uint64(own[np.uint64(k)])
            cells = value_cells(
                rank,
                attribute,
                values.tags[i],
                values.payloads[i],
                floats[i],
                values.lengths[i],
                values.data,
                scratch,
                backwards,
            )
            at = _add_cells(rank, cells, values.rows[i], pairs, at)
            if len(touched.bits):
                touches = np.int64(touched.whole[attribute])
                if cells[3] >= 0:
                    touches |= _is_touched(touched, rank.heads[cells[3], BASE] + cells[4])
                touching[np.uint64(n_touching + 1)] = i
                n_touching += touches
    if len(touched.bits):
        touching[0] = n_touching
    return at
