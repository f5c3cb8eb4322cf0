"""A batch of events in rank space: the form that every subscription index reads.

Two views of the same set of (event, cell) pairs. With three events over two channels whose cells
start at 0 and 5 (see ``model/rank/space.py``)::

    pairs       event 0: 1, 6     event 1: 4     event 2: 1

    by cell     cells 1 4 6   offsets 0 2 3 4    rows 0 2 | 1 | 0       to visit postings once
    by event    matrix [[1, 6], [4, -1], [1, -1]]                       to look a test's cell up

The matrix has one more column, always 0, for tests that always hold. Where it would be large and
empty (thousands of channels, few per event) the second view is sparse instead: a small hash table
for each event (``model/rank/tables.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bittern.jit import (
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
from bittern.model.rank.tables import build_tables, find_cell

#: A matrix of at most this many bytes (a few caches) is always worth it; a larger one if it is a
#: quarter full. Looking a cell up in the sparse view costs several times as much.
SMALL_MATRIX = 1 << 23
LARGE_MATRIX = 1 << 28
#: ``cell << 32 | event``, in any order.
Pairs: TypeAlias = npt.NDArray[np.uint64]
_RADIX_BITS = 11
#: With this many pairs for each cell that there is they are counted by cell; else they are sorted.
_PAIRS_PER_CELL = 2
_ROW_MASK = np.uint64(0xFFFFFFFF)
_CELL_SHIFT = np.uint64(32)


class EventArrays(NamedTuple):
    """The view by event; ``matrix`` is empty where the view is sparse."""

    matrix: npt.NDArray[np.int32]
    width: int  # columns of the matrix: the channels, and one that is always 0
    starts: npt.NDArray[np.int64]
    table: npt.NDArray[np.uint64]
    entries: npt.NDArray[np.int64]  # channel << 32 | cell


EVENTS = tuple_type(EventArrays, i4r, i8, i8r, u8r, i8r)


class EventEntries(NamedTuple):
    """What each event has: its entries lie from ``offsets[event]`` to ``offsets[event + 1]``."""

    offsets: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]  # channel << 32 | cell, in order


#: Kernels only read them. They are made for one batch, and freezing them would cost time.
ENTRIES = tuple_type(EventEntries, i8w, i8w)


@dataclass(frozen=True)
class EncodedEvents:
    """``n_events`` events: distinct cells ascending with their rows, and the view by event."""

    n_events: int
    cells: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    by_event: EventArrays


@inline
def cell_of(
    matrix: Any, width: Any, starts: Any, table: Any, entries: Any, event: Any, channel: Any
) -> Any:
    """The event's global cell in this channel, or -1 where it has no value."""
    if len(matrix):
        return np.int64(matrix[np.uint64(event * width + channel)])
    return find_cell(starts, table, entries, event, channel)


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


@kernel(i8, u8r, i8w, i4w, i8w, i4w)
def _count_pairs(pairs: Any, ends: Any, cells: Any, offsets: Any, rows: Any) -> Any:
    """The same from pairs in any order: count each cell's, then put every row in its place.

    ``ends`` has room for all cells and is 0. Pairs of one column follow each other, so that what
    they are counted in stays in the cache.
    """
    for pair in pairs:
        ends[pair >> _CELL_SHIFT] += 1
    n, end = 0, np.int64(0)
    for cell in range(len(ends)):
        count = ends[cell]
        ends[cell] = end
        if count:
            cells[n] = cell
            offsets[n] = end
            n += 1
            end += count
    offsets[n] = end
    for pair in pairs:
        cell = pair >> _CELL_SHIFT
        rows[np.uint64(ends[cell])] = np.int32(pair & _ROW_MASK)
        ends[cell] += 1
    return n


@inline
def stretch_of(firsts: Any, count: Any, cell: Any, low: Any) -> Any:
    """Which of ``count`` stretches of cells has this one, searched from ``low`` by doubling steps.

    Stretch i begins at ``firsts[i]`` and ends before the next one.
    """
    step = 1
    while low + step < count and firsts[low + step] <= cell:
        low += step
        step *= 2
    high = min(low + step, count)
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] <= cell:
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
        channel = stretch_of(bases, len(bases) - 1, cells[i], channel)
        for k in range(offsets[i], offsets[i + 1]):
            matrix[rows[k] * width + channel] = cells[i]


@kernel(void, i4r, i8r, i4r, i4r, i8w, i8w)
def _order(
    cells: Any, offsets: Any, rows: Any, bases: Any, event_offsets: Any, entries: Any
) -> None:
    """Scatter cells to their events; visiting them in order leaves each event's in order."""
    n_events = len(event_offsets) - 1
    for row in rows:
        event_offsets[row + 1] += 1
    for row in range(n_events):
        event_offsets[row + 1] += event_offsets[row]
    free = event_offsets[:-1].copy()
    channel = 0
    for i in range(len(cells)):
        channel = stretch_of(bases, len(bases) - 1, cells[i], channel)
        entry = np.int64(channel) << 32 | np.int64(cells[i])
        for k in range(offsets[i], offsets[i + 1]):
            row = np.uint64(rows[k])
            entries[np.uint64(free[row])] = entry
            free[row] += 1


def _ordered(
    cells: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    bases: npt.NDArray[np.int32],
    n_events: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    event_offsets = np.zeros(n_events + 1, dtype=np.int64)
    entries = np.empty(len(rows), dtype=np.int64)
    _order(cells, offsets, rows, bases, event_offsets, entries)
    return event_offsets, entries


def _sort(pairs: npt.NDArray[np.uint64], n_cells: int) -> None:
    """Sort packed pairs by cell, in place."""
    bits = max(1, n_cells.bit_length())
    passes = -(-bits // _RADIX_BITS)
    if len(pairs) < 1 << (_RADIX_BITS - 2):
        pairs.sort()
    else:
        _sort_pairs(pairs, np.empty_like(pairs), -(-bits // passes), passes)


def event_entries(events: EncodedEvents, bases: npt.NDArray[np.int32]) -> EventEntries:
    """Each event's ``channel << 32 | cell`` in order, and where they begin. O(pairs)."""
    ordered = _ordered(events.cells, events.offsets, events.rows, bases, events.n_events)
    return EventEntries(*ordered)


def encode_pairs(
    pairs: npt.NDArray[np.uint64], n_events: int, bases: npt.NDArray[np.int32]
) -> EncodedEvents:
    """Both views of packed pairs ``cell << 32 | event``, which may be sorted in place. O(pairs)."""
    n_channels, n_all = len(bases) - 1, int(bases[-1])
    most = min(len(pairs), n_all)  # distinct cells
    cells = np.empty(most, dtype=np.int32)
    offsets = np.empty(most + 1, dtype=np.int64)
    rows = np.empty(len(pairs), dtype=np.int32)
    if _PAIRS_PER_CELL * n_all <= len(pairs):
        n_cells = _count_pairs(pairs, np.zeros(n_all, dtype=np.int64), cells, offsets, rows)
    else:
        _sort(pairs, n_all)
        n_cells = _group_pairs(pairs, cells, offsets, rows)
    cells, offsets = cells[:n_cells], offsets[: n_cells + 1]

    width = n_channels + 1
    size = n_events * width * 4
    if size <= SMALL_MATRIX or (size <= LARGE_MATRIX and size <= 16 * len(pairs)):
        matrix = np.empty(n_events * width, dtype=np.int32)
        _fill_matrix(cells, offsets, rows, bases, matrix, width)
        none = np.empty(0, dtype=np.int64)
        by_event = EventArrays(matrix, width, none, np.empty(0, dtype=np.uint64), none)
    else:
        ordered = _ordered(cells, offsets, rows, bases, n_events)
        by_event = EventArrays(np.empty(0, dtype=np.int32), width, *build_tables(*ordered))
    return EncodedEvents(n_events, cells, offsets, rows, frozen(by_event))
