"""How OpIndex matches: Algorithm 2 of seed 003, for a batch of events.

For each attribute of an event that is a pivot, for each operator, every attribute of the event is
looked up in the pivot's list of that operator: the directory says where the attribute's segment is,
its signature whether it is worth searching, and what is found in it counts::

    event   B = 6   C = 3   E = 9          pivots A, C, D; two segments {A, C, E} and {B, D}
    C       =       segment 1 lacks (B,6)   segment 0 lacks (C,3), lacks (E,9)     by signature
            <=      segment 1 may have B: search from (B,6) on    segment 0 may have E: from (E,9)
            >=      segment 0 may have E: search up to (E,9)

Counters count up from zero in scratch: as many hits, or all the bits, that a filing needs make it
hold. What was touched is cleared after each pivot, so that no counter array is copied. A value of a
"missing" predicate, which comes first, puts its counter out of reach.

Cost: for m attributes of which k are pivots, O(k m) signatures for each operator, of which few
lead to a search, and the hits. Where the next signatures and lists are is known ahead, so they are
asked for ahead: these are the cache misses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import (
    i4r,
    i4w,
    i8,
    i8w,
    inline,
    kernel,
    prefetch,
    tuple_type,
    void,
)
from bittern.literature.opindex.counters import COUNTERS, CounterArrays
from bittern.literature.opindex.directory import DIRECTORY, DirectoryArrays, signature_bit
from bittern.literature.opindex.operators import (
    MISSING,
    N_OPERATORS,
    NODES,
    POINT,
    n_reaches,
    reach,
)
from bittern.literature.opindex.trie import TRIE, TrieArrays, innermost
from bittern.literature.sorted_lists.blocks import LISTS, ListArrays, following, seek
from bittern.matching.output import OUTPUT, first_time
from bittern.model.rank.encoded import ENTRIES

#: How many entries ahead to ask for directories, for signatures and counters, and for lists.
_DIRECTORY_AHEAD, _SIGNATURES_AHEAD, _LISTS_AHEAD = 4, 2, 1
#: Of long arrays only the beginning is asked for.
_COUNTERS_ASKED, _PAIRS_ASKED, _WORDS_ASKED = 128, 64, 64
#: Numbers of 32 bits in a cache line.
_LINE = 16
_OUT_OF_REACH = np.int64(-(1 << 62))
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


class Searched(NamedTuple):
    """What matching sees of an index."""

    lists: ListArrays
    counters: CounterArrays
    directory: DirectoryArrays
    trie: TrieArrays
    bases: Int32s  # the first cells of channels, and the end
    depth: int  # no path in the trie is longer
    n_segments: int
    n_bits: int


class OpIndexScratch(NamedTuple):
    """Working memory of a batch."""

    tally: Int64s  # zeros, for the longest counter array and one more
    touched: Int32s  # as many
    stamps: Int32s  # zeros, one for each class; empty if no class has several filings


_SEARCHED = tuple_type(Searched, LISTS, COUNTERS, DIRECTORY, TRIE, i4r, i8, i8, i8)
_SCRATCH = tuple_type(OpIndexScratch, i8w, i4w, i4w)


class _Attributes(NamedTuple):
    """What the attributes of one event are looked up by; there is room for the widest event."""

    channels: Int64s
    cells: Int64s
    segments: Int64s
    key_bits: UInt64s
    channel_bits: UInt64s
    paths: Int64s  # where their nodes begin in ``path``, and the end
    path: Int32s
    worth: Int64s  # which of them are worth searching


@inline
def _read_event(entries: Any, start: Any, size: Any, index: Any, event: Any) -> None:
    """Take up the attributes of an event, whose entries begin at ``start``."""
    lows, highs, parents = index.trie
    for i in range(size):
        channel, cell = entries[start + i] >> 32, entries[start + i] & 0xFFFFFFFF
        event.channels[i], event.cells[i] = channel, cell
        event.segments[i] = channel % index.n_segments
        event.key_bits[i] = signature_bit(cell, index.n_bits)
        event.channel_bits[i] = signature_bit(channel, index.n_bits)
        n_nodes = event.paths[i]
        if len(lows) > 0 and cell >= lows[0]:
            node = innermost(lows, highs, parents, cell)
            while node >= 0:
                event.path[n_nodes] = node
                n_nodes += 1
                node = np.int64(parents[node])
        event.paths[i + 1] = n_nodes


@inline
def _count(
    value: Any, operator: Any, base: Any, needs: Any, tally: Any, touched: Any, n_touched: Any
) -> tuple[Any, Any, Any]:
    """Count one entry of a list: its slot, whether its filing holds now, and how many touched."""
    if value >= 0:
        slot = np.uint64(value)
        before = tally[slot]
        after = _OUT_OF_REACH if operator == MISSING else before + 1
        full = np.int64(needs[np.uint64(base) + slot])
    else:
        slot = np.uint64(~value >> 6)
        before = tally[slot]
        after = before | np.int64(1) << (~value & 63)
        full = np.int64(_ALL_BITS >> np.uint64(64 - needs[np.uint64(base) + slot]))
    touched[np.uint64(n_touched)] = slot
    tally[slot] = after
    return slot, after == full and before != full, n_touched + np.int64(before == 0)


@inline
def _worth_searching(
    operator: Any, first: Any, size: Any, signatures: Any, n_bits: Any, event: Any
) -> Any:
    """Which of the event's attributes may be in a list, by signature and without a branch.

    Returns how many; they are in ``worth``. The list's first segment is list ``first``.
    """
    _, _, segments, key_bits, channel_bits, paths, path, worth = event
    if n_bits == 0:
        for i in range(size):
            worth[i] = i
        return size
    n = np.int64(0)
    if NODES >> operator & 1:
        for i in range(size):
            word = signatures[np.uint64(first + segments[i])]
            found = np.uint64(0)
            for k in range(paths[i], paths[i + 1]):
                found |= word >> signature_bit(path[k], n_bits)
            worth[np.uint64(n)] = i
            n += np.int64(found & np.uint64(1))
    elif POINT >> operator & 1:
        for i in range(size):
            word = signatures[np.uint64(first + segments[i])]
            worth[np.uint64(n)] = i
            n += np.int64(word >> key_bits[i] & np.uint64(1))
    else:
        for i in range(size):
            word = signatures[np.uint64(first + segments[i])]
            worth[np.uint64(n)] = i
            n += np.int64(word >> channel_bits[i] & np.uint64(1))
    return n


@inline
def _ask_ahead(at: Any, entries: Any, index: Any) -> None:
    """Ask for what the pivots of the next entries need: each step uses what the one before got."""
    begins, ends, keys, values = index.lists
    counters, n_segments = index.counters, index.n_segments
    pivot_of, firsts, signatures = index.directory
    final = len(entries) - 1
    channel = entries[np.uint64(min(at + _DIRECTORY_AHEAD, final))] >> 32
    pivot = np.int64(pivot_of[np.uint64(channel)])
    prefetch(firsts, pivot * N_OPERATORS)
    prefetch(counters.begins, pivot)
    prefetch(counters.ends, pivot)
    channel = entries[np.uint64(min(at + _SIGNATURES_AHEAD, final))] >> 32
    pivot = np.int64(pivot_of[np.uint64(channel)])
    if pivot >= 0:
        begin = np.int64(counters.begins[np.uint64(pivot)])
        end = min(begin + _COUNTERS_ASKED, np.int64(counters.ends[np.uint64(pivot)]))
        for i in range(begin, end, _LINE):
            prefetch(counters.needs, i)
            prefetch(counters.owners, i)
        for operator in range(N_OPERATORS):
            first = np.int64(firsts[np.uint64(pivot * N_OPERATORS + operator)])
            if first >= 0:
                prefetch(begins, first + channel % n_segments)
                if len(signatures) > 0:
                    for i in range(first, first + min(n_segments, _WORDS_ASKED), _LINE // 2):
                        prefetch(signatures, i)
    channel = entries[np.uint64(min(at + _LISTS_AHEAD, final))] >> 32
    pivot = np.int64(pivot_of[np.uint64(channel)])
    if pivot >= 0:
        for operator in range(N_OPERATORS):
            first = np.int64(firsts[np.uint64(pivot * N_OPERATORS + operator)])
            if first >= 0:
                own = np.uint64(first + channel % n_segments)
                begin = np.int64(begins[own])
                for i in range(begin, min(begin + _PAIRS_ASKED, np.int64(ends[own])), _LINE):
                    prefetch(keys, i)
                    prefetch(values, i)


@inline
def _look_up(
    index: Any, event: Any, size: Any, number: Any, pivot: Any, scratch: Any, out: Any, n: Any
) -> tuple[Any, Any]:
    """Count what the event finds in all lists of a pivot, and report what holds.

    Returns how many matches there are then, and how many counters were touched.
    """
    begins, ends, keys, values = index.lists
    _, firsts, signatures = index.directory
    owners, needs = index.counters.owners, index.counters.needs
    tally, touched, stamps = scratch
    paths, segments = event.paths, event.segments
    base = np.int64(index.counters.begins[np.uint64(pivot)])
    n_touched = np.int64(0)
    for operator in range(N_OPERATORS):
        first = np.int64(firsts[np.uint64(pivot * N_OPERATORS + operator)])
        if first < 0:
            continue
        for w in range(_worth_searching(operator, first, size, signatures, index.n_bits, event)):
            i = event.worth[w]
            channel = np.uint64(event.channels[i])
            least = np.int64(index.bases[channel])
            most = np.int64(index.bases[channel + np.uint64(1)]) - 1
            for k in range(n_reaches(operator, paths[i + 1] - paths[i])):
                low, high = reach(operator, k, event.cells[i], least, most, event.path, paths[i])
                begin, end, block = seek(begins, ends, keys, first + segments[i], low)
                while True:
                    while begin < end and keys[np.uint64(begin)] <= high:
                        value = np.int64(values[np.uint64(begin)])
                        slot, holds, n_touched = _count(
                            value, operator, base, needs, tally, touched, n_touched
                        )
                        begin += 1
                        if holds:
                            owner = owners[np.uint64(base) + slot]
                            if len(stamps) == 0 or first_time(stamps, owner, number):
                                out.rows[n] = number
                                out.classes[n] = owner
                                n += 1
                    if begin < end:
                        break
                    block, begin, end = following(keys, values, block)
                    if block < 0:
                        break
    return n, n_touched


@kernel(void, _SEARCHED, ENTRIES, _SCRATCH, i8w, OUTPUT)
def match(index: Any, events: Any, scratch: Any, candidates: Any, out: Any) -> None:
    """Match events from ``state`` (event, entry, matches) on while there is room.

    ``candidates`` are filings that were touched.
    """
    offsets, entries = events
    counters, pivot_of = index.counters, index.directory.pivot_of
    tally, touched, _ = scratch
    state = out.state
    widest = 0
    for number in range(len(offsets) - 1):
        widest = max(widest, offsets[number + 1] - offsets[number])
    event = _Attributes(
        np.empty(widest, dtype=np.int64),
        np.empty(widest, dtype=np.int64),
        np.empty(widest, dtype=np.int64),
        np.empty(widest, dtype=np.uint64),
        np.empty(widest, dtype=np.uint64),
        np.zeros(widest + 1, dtype=np.int64),
        np.empty(widest * index.depth, dtype=np.int32),
        np.empty(widest + 1, dtype=np.int64),
    )
    number, at, n = state[0], state[1], state[2]
    while number < len(offsets) - 1:
        start, stop = offsets[number], offsets[number + 1]
        _read_event(entries, start, stop - start, index, event)
        at = max(at, start)
        while at < stop:
            pivot = np.int64(pivot_of[np.uint64(event.channels[at - start])])
            if pivot >= 0:
                own = np.uint64(pivot)
                if n + counters.ends[own] - counters.begins[own] > len(out.rows):
                    state[0], state[1], state[2] = number, at, n
                    return
            _ask_ahead(at, entries, index)
            at += 1
            if pivot < 0:
                continue
            n, n_touched = _look_up(index, event, stop - start, number, pivot, scratch, out, n)
            for k in range(n_touched):
                tally[np.uint64(touched[np.uint64(k)])] = 0
            candidates[number] += n_touched
        number += 1
    state[0], state[1], state[2] = number, at, n
