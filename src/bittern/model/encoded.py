"""A batch of events in rank space: the form that every subscription index reads.

Two views of the same set of (event, cell) pairs. With three events over two channels whose cells
start at 0 and 5 (see ``model/rank.py``)::

    pairs       event 0: 1, 6     event 1: 4     event 2: 1

    by cell     cells 1 4 6   offsets 0 2 3 4    rows 0 2 | 1 | 0       to visit postings once
    by event    matrix [[1, 6], [4, -1], [1, -1]]                       to look a test's cell up

The matrix has one more column, always 0, for tests that always hold. Where it would be large and
empty (thousands of channels, few per event) the second view is sparse instead: each event's
channels in order with their cells, and a 256-bit signature of its channels that tells most
missing ones at the cost of one load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.jit import (
    frozen,
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u8r,
    u8w,
    void,
)

#: A matrix of at most this many bytes (a few caches) is always worth it; a larger one if it is a
#: quarter full. Looking a cell up in the sparse view costs several times as much.
SMALL_MATRIX = 1 << 23
LARGE_MATRIX = 1 << 28
_RADIX_BITS = 11
_ROW_MASK = np.uint64(0xFFFFFFFF)
_CELL_SHIFT = np.uint64(32)


class EventArrays(NamedTuple):
    """The view by event; ``matrix`` is empty where the view is sparse.

    Kernels unpack it first and hand single arrays on: Numba is slow at passing tuples around.
    """

    matrix: npt.NDArray[np.int32]
    width: int  # columns of the matrix: the channels, and one that is always 0
    offsets: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]  # channel << 32 | cell, ascending within an event
    signatures: npt.NDArray[np.uint64]  # four words per event


EVENTS = tuple_type(EventArrays, i4r, i8, i8r, i8r, u8r)


@dataclass(frozen=True)
class EncodedEvents:
    """``n_events`` events: distinct cells ascending with their rows, and the view by event."""

    n_events: int
    cells: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    by_event: EventArrays


@inline
def signature_bit(channel: Any) -> Any:
    """Which of an event's 256 signature bits stands for this channel."""
    return (np.uint64(channel) * np.uint64(0x9E3779B1) >> np.uint64(24)) & np.uint64(255)


@inline
def may_have(signatures: Any, event: Any, channel: Any) -> Any:
    """0 only if the event has no value in this channel, else 1."""
    bit = signature_bit(channel)
    word = signatures[np.uint64(4 * event) + (bit >> np.uint64(6))]
    return np.int64((word >> (bit & np.uint64(63))) & np.uint64(1))


@inline
def cell_of(matrix: Any, width: Any, offsets: Any, entries: Any, event: Any, channel: Any) -> Any:
    """The event's global cell in this channel, or -1 where it has no value."""
    if len(matrix):
        return np.int64(matrix[np.uint64(event * width + channel)])
    wanted = np.int64(channel) << 32
    low, high = offsets[event], offsets[event + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if entries[np.uint64(middle)] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end and entries[low] >> 32 == channel:
        return entries[low] & 0xFFFFFFFF
    return np.int64(-1)


@kernel(void, u8w, u8w, i8, i8)
def _sort_pairs(pairs: Any, spare: Any, bits: Any, passes: Any) -> None:
    """Sort packed pairs by cell, stably: radix from the low digit up; ends in ``pairs``."""
    size = 1 << bits
    mask = np.uint64(size - 1)
    counts = np.zeros(size + 1, dtype=np.int64)
    source, target = pairs, spare
    for step in range(passes):
        shift = np.uint64(32 + step * bits)
        counts[:] = 0
        for pair in source:
            counts[((pair >> shift) & mask) + np.uint64(1)] += 1
        for i in range(size):
            counts[i + 1] += counts[i]
        for pair in source:
            digit = (pair >> shift) & mask
            target[np.uint64(counts[digit])] = pair
            counts[digit] += 1
        source, target = target, source
    if passes & 1:
        pairs[:] = spare


@kernel(i8, u8r, i4w, i8w, i4w)
def _group_pairs(pairs: Any, cells: Any, offsets: Any, rows: Any) -> Any:
    """Distinct cells with their rows, from sorted pairs; returns how many cells."""
    n = 0
    last = np.int64(-1)
    for i in range(len(pairs)):
        cell = np.int64(pairs[i] >> _CELL_SHIFT)
        if cell != last:
            cells[n] = cell
            offsets[n] = i
            n += 1
            last = cell
        rows[i] = np.int32(pairs[i] & _ROW_MASK)
    offsets[n] = len(pairs)
    return n


@inline
def _channel_of(bases: Any, channel: Any, cell: Any) -> Any:
    """The channel that owns the cell, searched upwards from ``channel`` by doubling steps."""
    step = 1
    low = channel
    while low + step < len(bases) - 1 and bases[low + step] <= cell:
        low += step
        step *= 2
    high = min(low + step, len(bases) - 1)
    while high - low > 1:
        middle = (low + high) >> 1
        if bases[middle] <= cell:
            low = middle
        else:
            high = middle
    return low


@kernel(void, i4r, i8r, i4r, i4r, i4w, i8)
def _fill_matrix(cells: Any, offsets: Any, rows: Any, bases: Any, matrix: Any, width: Any) -> None:
    matrix[:] = -1
    for row in range(len(matrix) // width):
        matrix[row * width + width - 1] = 0
    channel = 0
    for i in range(len(cells)):
        channel = _channel_of(bases, channel, cells[i])
        for k in range(offsets[i], offsets[i + 1]):
            matrix[rows[k] * width + channel] = cells[i]


@kernel(void, i4r, i8r, i4r, i4r, i8w, i8w, u8w)
def _fill_sparse(
    cells: Any,
    offsets: Any,
    rows: Any,
    bases: Any,
    event_offsets: Any,
    entries: Any,
    signatures: Any,
) -> None:
    """Scatter cells to their events; visiting them in order leaves each event's in order."""
    n_events = len(event_offsets) - 1
    for row in rows:
        event_offsets[row + 1] += 1
    for row in range(n_events):
        event_offsets[row + 1] += event_offsets[row]
    always = signature_bit(len(bases) - 1)
    for row in range(n_events):
        signatures[4 * row + np.int64(always >> np.uint64(6))] = np.uint64(1) << np.uint64(
            always & np.uint64(63)
        )
    free = event_offsets[:-1].copy()
    channel = 0
    for i in range(len(cells)):
        channel = _channel_of(bases, channel, cells[i])
        bit = signature_bit(channel)
        word, mask = np.int64(bit >> np.uint64(6)), np.uint64(1) << np.uint64(bit & np.uint64(63))
        entry = np.int64(channel) << 32 | np.int64(cells[i])
        for k in range(offsets[i], offsets[i + 1]):
            row = np.int64(rows[k])
            entries[np.uint64(free[np.uint64(row)])] = entry
            free[np.uint64(row)] += 1
            signatures[np.uint64(4 * row + word)] |= mask


def event_entries(
    events: EncodedEvents, bases: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each event's ``channel << 32 | cell`` in order, from either view. O(pairs)."""
    if len(events.by_event.offsets):
        return events.by_event.offsets, events.by_event.entries
    return _sparse(events.cells, events.offsets, events.rows, bases, events.n_events)[:2]


def _sparse(
    cells: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    bases: npt.NDArray[np.int32],
    n_events: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """The sparse view by event: offsets, entries and signatures."""
    event_offsets = np.zeros(n_events + 1, dtype=np.int64)
    entries = np.empty(len(rows), dtype=np.int64)
    signatures = np.zeros(4 * n_events, dtype=np.uint64)
    _fill_sparse(cells, offsets, rows, bases, event_offsets, entries, signatures)
    return event_offsets, entries, signatures


def encode_pairs(
    pairs: npt.NDArray[np.uint64], n_events: int, bases: npt.NDArray[np.int32]
) -> EncodedEvents:
    """Both views of packed pairs ``cell << 32 | event``, which are sorted in place. O(pairs)."""
    n_channels = len(bases) - 1
    bits = max(1, int(bases[-1]).bit_length())
    passes = -(-bits // _RADIX_BITS)
    if len(pairs) < 1 << (_RADIX_BITS - 2):
        pairs.sort()
    else:
        _sort_pairs(pairs, np.empty_like(pairs), -(-bits // passes), passes)
    cells = np.empty(len(pairs), dtype=np.int32)
    offsets = np.empty(len(pairs) + 1, dtype=np.int64)
    rows = np.empty(len(pairs), dtype=np.int32)
    n_cells = _group_pairs(pairs, cells, offsets, rows)
    cells, offsets = cells[:n_cells], offsets[: n_cells + 1]

    width = n_channels + 1
    size = n_events * width * 4
    if size <= SMALL_MATRIX or (size <= LARGE_MATRIX and size <= 16 * len(pairs)):
        matrix = np.empty(n_events * width, dtype=np.int32)
        _fill_matrix(cells, offsets, rows, bases, matrix, width)
        none = np.empty(0, dtype=np.int64)
        by_event = EventArrays(matrix, width, none, none, np.empty(0, dtype=np.uint64))
    else:
        matrix = np.empty(0, dtype=np.int32)
        by_event = EventArrays(matrix, width, *_sparse(cells, offsets, rows, bases, n_events))
    return EncodedEvents(n_events, cells, offsets, rows, frozen(by_event))
