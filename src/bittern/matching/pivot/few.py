"""Matching of a small pivot index: event by event, all in one call.

A batch is sorted by cell so that what a cell is filed under is fetched from memory once for all its
events (``match.py``). A small index is in the nearest caches anyway, and then sorting, and the view
by event, take longer than matching. Here each event's cells are looked up as they come, and only an
event that finds something gets a view, which is one row of channels that is cleared afterwards::

    event 4    cells 17 40 95    postings of 17: 8 9    of 95: 12
               row   [-1 17 -1 ... 40 ... 95 ... 0]     tested as in a batch
    event 5    cells 18 41       none: nothing else to do

The functions are those of a batch. Cost: O(pairs + candidates).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s
from bittern.jit import frozen, i4r, i4w, i8, i8r, i8w, inline, kernel, tuple_type, u8r
from bittern.matching.output import OUTPUT, Output
from bittern.matching.pivot.match import PIVOT, PivotArrays, dense_pass, verify
from bittern.matching.program import accepts
from bittern.model.rank.encoded import Pairs
from bittern.stabbing.cei import CEI, add_path
from bittern.stabbing.contract import StabbingIndex

#: An index of at most so many postings and cells is small.
POSTINGS, CELLS = 1 << 15, 1 << 18
#: Matches to make room for at first, at most; else one for each event.
_ROOM_FOR = 1 << 16
_ROW_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class _Lists(NamedTuple):
    """The lists of a CEI index (``stabbing/cei.py``), and the channel of each cell."""

    begins: Int32s
    ends: Int32s
    masks: Int32s
    items: Int32s
    shape: npt.NDArray[np.int64]
    channels: Int32s


class _Events(NamedTuple):
    """The cells of each event: from ``offsets[event]`` to ``offsets[event + 1]``."""

    offsets: npt.NDArray[np.int64]
    cells: Int32s


class _Room(NamedTuple):
    """What one event needs: its row, the runs that it finds, and postings that wait."""

    row: Int32s
    begins: Int32s
    lengths: Int32s
    pending: Int32s
    zeros: Int32s


_LISTS = tuple_type(_Lists, i4r, i4r, i4r, i4r, i8r, i4r)
_EVENTS = tuple_type(_Events, i8w, i4w)
_ROOM = tuple_type(_Room, i4w, i4w, i4w, i4w, i4w)


@inline
def _group(pairs: Any, events: Any) -> None:
    """Bring the cells of each event together; ``offsets`` are 0."""
    offsets, cells = events
    last, descends = np.uint64(0), np.int64(0)
    for pair in pairs:
        row = pair & _ROW_MASK
        offsets[row + np.uint64(1)] += 1
        descends |= np.int64(row < last)
        last = row
    if descends == 0:  # as maps and JSON texts give them
        for i in range(len(pairs)):
            cells[i] = np.int32(pairs[i] >> _SHIFT)
        for event in range(1, len(offsets)):
            offsets[event] += offsets[event - 1]
        return
    # Now shifted by one event, so that each place ends up where the event's cells begin.
    total = np.int64(0)
    for event in range(1, len(offsets)):
        count = offsets[event]
        offsets[event] = total
        total += count
    for pair in pairs:
        event = (pair & _ROW_MASK) + np.uint64(1)
        cells[np.uint64(offsets[event])] = np.int32(pair >> _SHIFT)
        offsets[event] += 1


@kernel(i8, PIVOT, _LISTS, u8r, _EVENTS, _ROOM, OUTPUT, i8w)
def _match(
    pivot: Any, lists: Any, pairs: Any, events: Any, room: Any, out: Any, candidates: Any
) -> Any:
    """Match events from ``state[0]`` on; returns how much room the next one asks for, 0 at the end.

    ``state[1]`` says whether pairs are in order already, ``state[2]`` how many matches there are.
    """
    heads, bounds, lows, highs, starts, rows, several, always = pivot
    list_begins, list_ends, masks, items, shape, channels = lists
    offsets, cells = events
    row, begins, lengths, pending, zeros = room
    out_rows, out_classes, state = out
    domain, bits, group_bits = shape[0], shape[1], shape[2]
    width, n_always = len(row), len(always)
    if state[1] == 0:
        _group(pairs, events)
        state[1] = 1
    event, n = state[0], state[2]
    while event < len(candidates):
        first, last = offsets[event], offsets[event + 1]
        n_runs, total = np.int64(0), np.int64(0)
        for i in range(first, last):
            n_runs, more = add_path(
                list_begins,
                list_ends,
                masks,
                (domain, bits, group_bits),
                np.int64(cells[np.uint64(i)]),
                begins,
                lengths,
                n_runs,
            )
            total += more
        total += n_always
        if total == 0:
            event += 1
            continue
        if n + total > len(out_rows):
            state[0], state[2] = event, n
            return total
        candidates[event] = total
        for i in range(first, last):
            cell = cells[np.uint64(i)]
            row[np.uint64(channels[np.uint64(cell)])] = cell
        before, kept = n, np.int64(0)
        for run in range(n_runs):
            begin = np.int64(begins[np.uint64(run)])
            n, kept = dense_pass(
                heads,
                bounds,
                starts,
                rows,
                several,
                row,
                0,
                items,
                begin,
                begin + lengths[np.uint64(run)],
                pending,
                kept,
                out_classes,
                n,
            )
        n = verify(
            heads,
            bounds,
            lows,
            highs,
            starts,
            rows,
            several,
            row,
            width,
            state,
            pairs,
            state,
            pending,
            zeros,
            kept,
            False,
            out_rows,
            out_classes,
            n,
        )
        for i in range(n_always):
            c = np.int64(always[i])
            start, stop = np.int64(starts[c]), np.int64(starts[c + 1])
            if accepts(row, width, state, pairs, state, 0, rows, start, stop):
                out_classes[n] = c
                n += 1
        for i in range(before, n):
            out_rows[np.uint64(i)] = event
        for i in range(first, last):
            row[np.uint64(channels[np.uint64(cells[np.uint64(i)])])] = -1
        event += 1
    state[0], state[2] = event, n
    return 0


class Few:
    """What matches a pivot index event by event. Threads may share it."""

    def __init__(self, pivot: PivotArrays, stabbing: StabbingIndex, bases: Int32s) -> None:
        """``bases`` are the first cells of the channels, and the end of the axis."""
        self._pivot = pivot
        #: Whether the index is small; else there is no matching it like this.
        self.is_few = (
            len(pivot.lows) <= POSTINGS and bases[-1] <= CELLS and isinstance(stabbing, CEI)
        )
        if not self.is_few:
            return
        assert isinstance(stabbing, CEI)
        lists = stabbing.lists
        channels = np.arange(len(bases) - 1, dtype=np.int32)
        self._lists = frozen(
            _Lists(
                lists.begins,
                lists.ends,
                stabbing.masks,
                lists.items,
                stabbing.shape,
                np.repeat(channels, np.diff(bases)),
            )
        )
        self._width = len(bases)
        self._levels = stabbing.bits + 1

    def match(self, pairs: Pairs, n_events: int, out: Output) -> npt.NDArray[np.int64]:
        """Write all matches; returns the number of candidates of each event."""
        row = np.full(self._width, -1, dtype=np.int32)
        row[-1] = 0  # for tests that always hold
        most_runs = self._levels * min(len(pairs), self._width) + 1
        postings = len(self._pivot.lows) + 1
        room = _Room(
            row,
            np.empty(most_runs, dtype=np.int32),
            np.empty(most_runs, dtype=np.int32),
            np.empty(postings, dtype=np.int32),
            np.zeros(postings, dtype=np.int32),
        )
        events = _Events(
            np.zeros(n_events + 1, dtype=np.int64), np.empty(len(pairs), dtype=np.int32)
        )
        candidates = np.zeros(n_events, dtype=np.int64)
        out.make_room(min(n_events, _ROOM_FOR))
        while needed := _match(
            self._pivot, self._lists, pairs, events, room, out.arrays, candidates
        ):
            out.make_room(needed)
        return candidates
