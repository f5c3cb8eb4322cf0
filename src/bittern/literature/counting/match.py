"""Phase two of counting: clauses lose one for each satisfied predicate, and get it back.

An event goes through the lists of its satisfied intervals. Each clause that it meets loses one of
what it has left to satisfy, and where it stands is noted. Then the notes are gone through: a clause
that has none left is reported, and each gets back what it lost, so that the counters, one byte for
each clause, need no clearing::

    left before            2 1 1
    after lists 0 1, 0 2   0 0 0
    notes 0 1              1 1 0      clauses 0 and 1 had none left: reported
    notes 0 2              2 1 1      clause 2 as well

An interval that forbids a clause adds one, so that it cannot reach zero. That is noted from the
other end and undone last: earlier, it could bring a clause to zero on the way. A class with several
clauses is reported once: it is marked, and the marks are undone as well.

So the working memory (``CountingScratch``) is the same after an event as before, and serves the
next batch too: the cost of a batch of one event depends on what it finds, not on the number of
clauses.

Cost: O(cells + satisfied intervals + clauses on their lists) per event; a batch looks each distinct
cell up once, as far as memory allows (``CHUNK``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, starts_of, stretches
from bittern.errors import SnapshotError
from bittern.jit import (
    apart,
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    read_only,
    tuple_type,
    u1w,
    void,
)
from bittern.literature.sorted_lists.blocks import LISTS, ListArrays, following, length_of, start_of
from bittern.matching.contract import candidates_of
from bittern.matching.output import OUTPUT, Output
from bittern.model.rank.encoded import EncodedEvents
from bittern.stabbing.contract import StabbingIndex

#: Satisfied intervals looked up at once: bounds memory.
CHUNK = 1 << 20
#: Matches that there is room for at first, at least, and for each event.
_LEAST_ROOM, _ROOM = 1 << 12, 8

_DAMAGED = -1
_ONE, _LESS_ONE = np.uint8(1), np.uint8(255)  # counters are bytes, which wrap around


class CountingScratch(NamedTuple):
    """Working memory, for one thread at a time."""

    left: npt.NDArray[np.uint8]  # of each clause: predicates left to satisfy
    reported: npt.NDArray[np.uint8]  # of each class: 1 if it was reported for this event
    places: Int32s  # notes: as many as an event can have; most are never touched

    @classmethod
    def of(cls, sizes: npt.NDArray[np.uint8], n_classes: int, n_pairs: int) -> Self:
        """For clauses of these sizes, which the lists hold in this many pairs. O(clauses)."""
        return cls(sizes.copy(), np.zeros(n_classes, np.uint8), np.empty(n_pairs, np.int32))


class CountedEvents(NamedTuple):
    """Events of a batch that are counted for at once, and what they satisfy."""

    positions: Int32s  # which of the cells that were looked up each event has, one by one
    offsets: Int64s  # where the intervals that a cell satisfies begin in ``ids``, and the end
    ids: Int32s
    first: int
    last: int  # one behind the last event


_SCRATCH = tuple_type(CountingScratch, u1w, u1w, i4w)
_CHUNK = tuple_type(CountedEvents, i4w, i8r, i4w, i8, i8)


@kernel(void, i8r, i4r, i8w, i4w)
def _positions(offsets: Any, rows: Any, event_offsets: Any, positions: Any) -> None:
    """Which of the batch's distinct cells each event has."""
    n_events = len(event_offsets) - 1
    for row in rows:
        event_offsets[row + 1] += 1
    for row in range(n_events):
        event_offsets[row + 1] += event_offsets[row]
    free = event_offsets[:-1].copy()
    for position in range(len(offsets) - 1):
        for k in range(offsets[position], offsets[position + 1]):
            row = np.uint64(rows[k])
            positions[free[row]] = position
            free[row] += 1


@inline
def _go_through(
    begins: Any,
    ends: Any,
    clauses: Any,
    classes: Any,
    n: Any,
    left: Any,
    change: Any,
    places: Any,
    at: Any,
    step: Any,
) -> Any:
    """Change the counter of every clause on list n, and note where it stands there."""
    begin, end, block = np.int64(begins[np.uint64(n)]), np.int64(ends[np.uint64(n)]), np.int64(-1)
    if begin < 0:
        begin, end, block = start_of(begins, ends, clauses, n)
    while True:
        for k in range(begin, end):
            left[np.uint64(clauses[np.uint64(k)])] += change
            places[np.uint64(at)] = k
            at += step
        block, begin, end = following(clauses, classes, block)
        if block < 0:
            return at


@inline
def _take_back(clauses: Any, left: Any, places: Any, first: Any, last: Any, change: Any) -> None:
    """Change the counters of the clauses that notes first .. last-1 are about."""
    for i in range(first, last):
        left[np.uint64(clauses[np.uint64(places[np.uint64(i)])])] += change


@apart
def _meet(
    lists: Any, keys: Any, chunk: Any, begin: Any, end: Any, left: Any, places: Any
) -> tuple[Any, Any]:
    """Go through the lists of all that the cells at ``positions[begin:end]`` satisfy.

    Returns how many clauses have lost one, and where the notes of those begin that were given one:
    -1 if an event meets more clauses than there are.
    """
    begins, ends, clauses, classes = lists
    positions, offsets, ids, _, _ = chunk
    n_lost, first_given = np.int64(0), np.int64(len(places))
    for p in range(begin, end):
        cell = np.uint64(positions[p])
        for i in range(offsets[cell], offsets[cell + np.uint64(1)]):
            n_list = ids[i]
            if n_lost + length_of(begins, ends, n_list) > first_given:
                return n_lost, np.int64(_DAMAGED)
            if keys[np.uint64(n_list)] & 1:
                at = first_given - 1
                first_given = 1 + _go_through(
                    begins, ends, clauses, classes, n_list, left, _ONE, places, at, -1
                )
            else:
                n_lost = _go_through(
                    begins, ends, clauses, classes, n_list, left, _LESS_ONE, places, n_lost, 1
                )
    return n_lost, first_given


@apart
def _report(
    clauses: Any, classes: Any, scratch: Any, n_lost: Any, event: Any, out: Any, n: Any
) -> Any:
    """Report the classes of clauses that have none left, each once; how many matches there are.

    Each clause gets back what it lost.
    """
    left, reported, places = scratch
    rows, found, _ = out
    before = n
    for i in range(n_lost):
        place = np.uint64(places[i])
        clause = np.uint64(clauses[place])
        if left[clause] == 0:
            c = classes[place]
            if reported[np.uint64(c)] == 0:
                reported[np.uint64(c)] = 1
                rows[n] = event
                found[n] = c
                n += 1
        left[clause] += _ONE
    for i in range(before, n):
        reported[np.uint64(found[i])] = 0
    return n


@kernel(void, LISTS, i8r, i8r, _CHUNK, _SCRATCH, i8w, OUTPUT)
def _count(
    lists: Any, keys: Any, event_offsets: Any, chunk: Any, scratch: Any, met: Any, out: Any
) -> None:
    """Count for events of a chunk from ``state[0]`` on, while there is room for all they meet.

    ``state[1]`` becomes the room that is needed, or ``_DAMAGED`` if an event meets more clauses
    than there are.
    """
    clauses, classes, state = lists.keys, lists.values, out.state
    left, _, places = scratch
    base = event_offsets[chunk.first]
    n_places = len(places)
    n = state[2]
    for event in range(state[0], chunk.last):
        begin, end = event_offsets[event] - base, event_offsets[event + 1] - base
        n_lost, first_given = _meet(lists, keys, chunk, begin, end, left, places)
        if first_given == _DAMAGED:
            state[1] = _DAMAGED
            return
        if n + n_lost > len(out.rows):
            _take_back(clauses, left, places, 0, n_lost, _ONE)
            _take_back(clauses, left, places, first_given, n_places, _LESS_ONE)
            state[0], state[1], state[2] = event, n_lost, n
            return
        n = _report(clauses, classes, scratch, n_lost, event, out, n)
        _take_back(clauses, left, places, first_given, n_places, _LESS_ONE)
        met[event] = n_lost + n_places - first_given
    state[0], state[2] = chunk.last, n


def count_all(
    events: EncodedEvents,
    stabbing: StabbingIndex,
    lists: ListArrays,
    keys: Int64s,
    scratch: CountingScratch,
    out: Output,
) -> Int64s:
    """Report the classes that hold for each event; returns how many clauses each has met.

    After an error, ``scratch`` cannot be used any more.
    """
    met = np.zeros(events.n_events, np.int64)
    event_offsets = np.zeros(events.n_events + 1, np.int64)
    positions = np.empty(len(events.rows), np.int32)
    _positions(events.offsets, events.rows, event_offsets, positions)
    out.make_room(max(_LEAST_ROOM, _ROOM * events.n_events))
    for chunk in _chunks(events, stabbing, event_offsets, positions):
        out.state[0] = chunk.first
        while True:
            _count(lists, keys, event_offsets, chunk, scratch, met, out.arrays)
            if out.state[1] == _DAMAGED:
                raise SnapshotError(
                    "the index is damaged: its stabbing index leads to lists twice; build it again"
                )
            if out.state[0] == chunk.last:
                break
            out.make_room(2 * int(out.state[1]))  # the next event may meet some more
    return met


def _chunks(
    events: EncodedEvents, stabbing: StabbingIndex, event_offsets: Int64s, positions: Int32s
) -> Iterator[CountedEvents]:
    """The batch in chunks that bound memory."""
    located = stabbing.locate_batch(events.cells)
    if located.offsets[-1] <= CHUNK:
        ids = located.ids(0, len(events.cells))
        yield CountedEvents(positions, read_only(located.offsets), ids, 0, events.n_events)
        return
    totals = starts_of(candidates_of(events, located.offsets))
    for first, last in stretches(totals, CHUNK):
        cells, own = np.unique(
            positions[event_offsets[first] : event_offsets[last]], return_inverse=True
        )
        offsets, ids = stabbing.stab_batch(events.cells[cells])
        yield CountedEvents(own.astype(np.int32), read_only(offsets), ids, first, last)
