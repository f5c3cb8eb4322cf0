"""Matching of the pivot index: postings are tested inline, what is left is verified later.

Testing a posting inline needs its head, which stands in order, and one look at the event.
Verifying needs rows of its class, which may be anywhere in memory where classes have several
postings. Then survivors of the first test wait in a buffer, and while one is verified the rows of
the next ones are on their way::

    cell 17, event 4   postings 8 9 12      pending   (8, 4) (12, 4)
    cell 17, event 6            8 9 12                (9, 6)
    ...                                     full: verify (8, 4), fetch rows for (9, 6) ...

``dense_pass`` and ``verify`` take arrays one by one, 14 and 19 arguments. As tuples, in turns over
10,000 events, matching took longer: ``shop`` 2 to 8 %, ``dense`` 0 to 3 %, ``equality`` 3 to 8 %.
Tuples of numbers cost nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.jit import (
    i4r,
    i4r2,
    i4w,
    i4w2,
    i8r,
    i8w,
    inline,
    kernel,
    popcount,
    prefetch,
    tuple_type,
    u1r,
    void,
)
from bittern.matching.program import accepts, is_first_pivot
from bittern.model.rank.encoded import EVENTS, cell_of
from bittern.model.rank.tables import mask_of, may_have, multiplier_in

#: Survivors that wait, at least: enough to hide one fetch behind others, few enough for the cache.
PENDING = 1 << 12
# How many survivors ahead a class's start is fetched, and then its rows.
_FAR, _NEAR = 24, 12
_ITEMS_PER_LINE = 16
# How many events ahead the cell that the first posting of a list tests is fetched.
_AHEAD = 12
# A sorted list with this many postings for each word of the event's table is searched.
_SEARCHED = 16


class PivotArrays(NamedTuple):
    """What kernels see."""

    heads: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int32]
    lows: npt.NDArray[np.int32]
    highs: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    several: npt.NDArray[np.uint8]
    always: npt.NDArray[np.int32]


PIVOT = tuple_type(PivotArrays, i4r2, i4r2, i4r, i4r, i4r, i4r2, u1r, i4r)


@inline
def dense_pass(
    heads: Any,
    bounds: Any,
    starts: Any,
    rows: Any,
    several: Any,
    matrix: Any,
    base: Any,
    ids: Any,
    first: Any,
    last: Any,
    pending: Any,
    kept: Any,
    out_classes: Any,
    n: Any,
) -> Any:
    """Test each posting inline, without a branch; returns the number of matches and of pending.

    Of postings that hold, the class goes to the output where nothing is left to test; the others
    survive, unless the first of their rows rejects them. Unsigned indices spare a test for
    negative ones.
    """
    still = kept
    for i in range(first, last):
        posting = np.uint64(ids[i])
        cell = matrix[np.uint64(base + heads[posting, 0])]
        pending[np.uint64(kept)] = ids[i]
        kept += np.int64((bounds[posting, 0] <= cell) & (cell <= bounds[posting, 1]))
    for i in range(still, kept):
        posting = np.uint64(pending[i])
        c = heads[posting, 1]
        if c < 0:
            out_classes[n] = ~c
            n += 1
            continue
        start = np.int64(starts[c])
        cell = matrix[base + rows[start, 0]]
        failed = np.int64((rows[start, 1] > cell) | (cell > rows[start, 2]))
        rejects = np.int64(rows[start, 3] == (starts[c + 1] - start + 1) << 1)
        pending[still] = pending[i]
        still += 1 - (failed & rejects & np.int64(several[c] == 0))
    return n, still


@inline
def _sparse_pass(
    heads: Any,
    table: Any,
    place: Any,
    ids: Any,
    span: Any,
    pending: Any,
    kept: Any,
    out_classes: Any,
    n: Any,
) -> Any:
    """As ``dense_pass``, but survivors have only passed a look at one bit.

    The event may have the channel of their inline test (which is never for a missing value).
    ``place`` is where its table starts, the mask of that, and the channel that always holds.
    """
    start, mask, always = place
    first, last = span
    multiplier = multiplier_in(table)
    for i in range(first, last):
        posting = np.uint64(ids[i])
        channel, c = heads[posting, 0], heads[posting, 1]
        done = np.int64(channel == always) & np.int64(c < 0)
        out_classes[np.uint64(n)] = ~c
        n += done
        pending[np.uint64(kept)] = ids[i]
        may = may_have(table, start, multiplier, mask, channel) | np.int64(channel == always)
        kept += may & (1 - done)
    return n, kept


@inline
def _is_sorted(ids: Any, first: Any, last: Any, lows: Any) -> Any:
    """Whether a list is postings in a row of one lowest cell: they are sorted by channel."""
    for i in range(first + 1, last):
        if ids[np.uint64(i)] != ids[np.uint64(i - 1)] + 1:
            return False
    return lows[np.uint64(ids[first])] == lows[np.uint64(ids[last - 1])]


@inline
def _sparse_search(
    heads: Any,
    table: Any,
    entries: Any,
    place: Any,
    ids: Any,
    span: Any,
    pending: Any,
    kept: Any,
    out_classes: Any,
    n: Any,
) -> Any:
    """As ``_sparse_pass`` for a long sorted list: look the event's channels up among its own.

    ``place`` is where its table starts and stops, and the channel that always holds.
    """
    start, stop, always = place
    first, last = span
    begin, end = np.int64(ids[first]), np.int64(ids[last - 1]) + 1
    entry = table[np.uint64(2 * start + 1)] - popcount(table[np.uint64(2 * start)])
    past = table[np.uint64(2 * stop - 1)]
    while entry <= past:  # one more step, for the channel that always holds
        channel = always if entry == past else entries[entry] >> 32
        low, high = begin, end
        while low < high:
            middle = (low + high) >> 1
            if heads[np.uint64(middle), 0] < channel:
                low = middle + 1
            else:
                high = middle
        while low < end and heads[np.uint64(low), 0] == channel:
            c = heads[np.uint64(low), 1]
            done = np.int64(channel == always) & np.int64(c < 0)
            out_classes[np.uint64(n)] = ~c
            n += done
            pending[np.uint64(kept)] = low
            kept += 1 - done
            low += 1
        entry += np.uint64(1)
    return n, kept


@inline
def verify(
    heads: Any,
    bounds: Any,
    lows: Any,
    highs: Any,
    starts: Any,
    rows: Any,
    several: Any,
    matrix: Any,
    width: Any,
    table_starts: Any,
    table: Any,
    entries: Any,
    pending: Any,
    pending_events: Any,
    kept: Any,
    scattered: Any,
    out_rows: Any,
    out_classes: Any,
    n: Any,
) -> Any:
    """Verify all that is pending; returns the number of matches."""
    sparse = len(matrix) == 0
    always = width - 1
    for i in range(kept):
        if scattered and i + _FAR < kept:
            c = heads[np.uint64(pending[np.uint64(i + _FAR)]), 1]
            if c >= 0:
                prefetch(starts, np.int64(c))
            c = heads[np.uint64(pending[np.uint64(i + _NEAR)]), 1]
            if c >= 0:
                row = 4 * np.int64(starts[np.uint64(c)])
                prefetch(rows, row)
                prefetch(rows, row + _ITEMS_PER_LINE)
        posting, event = np.uint64(pending[i]), np.int64(pending_events[i])
        if sparse and heads[posting, 0] != always:
            inline = cell_of(matrix, width, table_starts, table, entries, event, heads[posting, 0])
            if inline < bounds[posting, 0] or inline > bounds[posting, 1]:
                continue
        c = heads[posting, 1]
        if c < 0:
            c = ~c
        else:
            start, stop = np.int64(starts[c]), np.int64(starts[c + 1])
            program = start
            if several[c]:
                program = start + rows[start, 3]
                if not is_first_pivot(
                    matrix,
                    width,
                    table_starts,
                    table,
                    entries,
                    event,
                    rows,
                    start,
                    lows[posting],
                    highs[posting],
                ):
                    continue
            if not accepts(matrix, width, table_starts, table, entries, event, rows, program, stop):
                continue
        out_rows[n] = event
        out_classes[n] = c
        n += 1
    return n


@kernel(void, PIVOT, EVENTS, i8r, i4r, i8r, i4r, i4w2, i4w, i4w, i8w)
def match_postings(
    pivot: Any,
    events: Any,
    pair_offsets: Any,
    pair_rows: Any,
    offsets: Any,
    ids: Any,
    waiting: Any,
    out_rows: Any,
    out_classes: Any,
    state: Any,
) -> None:
    """Verify the postings of each cell for each event that carries it.

    ``state`` is (cell, pair, matches): where to go on, and how many matches there are now. Stops
    where the output might not have room for the next list and one more. ``waiting`` is room for
    the longest list: for postings, and for their events.
    """
    pending, pending_events = waiting[0], waiting[1]
    heads, bounds, lows, highs, starts, rows, several, _ = pivot
    matrix, width, table_starts, table, entries = events
    cell, n = state[0], state[2]
    pair = max(state[1], pair_offsets[cell])
    # Classes are numbered as their first postings are: if most have but one, they are in order.
    scattered = len(lows) > len(several) + (len(several) >> 3)
    ordered: Any = False  # the list of cell ``seen``
    seen, kept = np.int64(-1), np.int64(0)
    column = np.int64(0)  # what the first posting of cell ``seen`` tests
    while True:
        while cell < len(offsets) - 1 and (
            offsets[cell] == offsets[cell + 1] or pair >= pair_offsets[cell + 1]
        ):
            cell += 1
            pair = pair_offsets[cell]
        length = np.int64(0)
        if cell < len(offsets) - 1:
            length = offsets[cell + 1] - offsets[cell]
        full = n + kept + length >= len(out_rows) or kept + length > len(pending)
        if length == 0 or full or (kept and not scattered):
            n = verify(
                heads,
                bounds,
                lows,
                highs,
                starts,
                rows,
                several,
                matrix,
                width,
                table_starts,
                table,
                entries,
                pending,
                pending_events,
                kept,
                scattered,
                out_rows,
                out_classes,
                n,
            )
            kept = np.int64(0)
            if length == 0 or n + length >= len(out_rows):
                break
        first, last = offsets[cell], offsets[cell + 1]
        if cell != seen:
            seen = cell
            ordered = len(matrix) == 0 and length > _SEARCHED and _is_sorted(ids, first, last, lows)
            if len(matrix):
                column = np.int64(heads[np.uint64(ids[first]), 0])
                until = min(pair + _AHEAD, pair_offsets[cell + 1])
                for near in range(pair, until):
                    prefetch(matrix, np.int64(pair_rows[np.uint64(near)]) * width + column)
        if len(matrix) and pair + _AHEAD < pair_offsets[cell + 1]:
            prefetch(matrix, np.int64(pair_rows[np.uint64(pair + _AHEAD)]) * width + column)
        event = np.int64(pair_rows[pair])
        pair += 1
        matches_before, kept_before = n, kept
        if len(matrix):
            n, kept = dense_pass(
                heads,
                bounds,
                starts,
                rows,
                several,
                matrix,
                event * width,
                ids,
                first,
                last,
                pending,
                kept,
                out_classes,
                n,
            )
        elif ordered and length > _SEARCHED * (table_starts[event + 1] - table_starts[event]):
            n, kept = _sparse_search(
                heads,
                table,
                entries,
                (table_starts[event], table_starts[event + 1], width - 1),
                ids,
                (first, last),
                pending,
                kept,
                out_classes,
                n,
            )
        else:
            n, kept = _sparse_pass(
                heads,
                table,
                (table_starts[event], mask_of(table_starts, event), width - 1),
                ids,
                (first, last),
                pending,
                kept,
                out_classes,
                n,
            )
        for i in range(matches_before, n):
            out_rows[i] = event
        for i in range(kept_before, kept):
            pending_events[i] = event
    state[0], state[1], state[2] = cell, pair, n
