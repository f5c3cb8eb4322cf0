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

from typing import Any

import numpy as np

from bittern.jit import (
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    prefetch,
    void,
)
from bittern.literature.opindex.counters import COUNTERS
from bittern.literature.opindex.directory import DIRECTORY, signature_bit
from bittern.literature.opindex.operators import (
    MISSING,
    N_OPERATORS,
    NODES,
    POINT,
    n_reaches,
    reach,
)
from bittern.literature.opindex.trie import TRIE, innermost
from bittern.literature.sorted_lists.blocks import LISTS, following, seek
from bittern.matching.output import first_time

#: How many entries ahead to ask for directories, for signatures and counters, and for lists.
_DIRECTORY_AHEAD, _SIGNATURES_AHEAD, _LISTS_AHEAD = 4, 2, 1
#: Of long arrays only the beginning is asked for.
_COUNTERS_ASKED, _PAIRS_ASKED, _WORDS_ASKED = 128, 64, 64
#: Numbers of 32 bits in a cache line.
_LINE = 16
_OUT_OF_REACH = np.int64(-(1 << 62))
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


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
    operator: Any,
    first: Any,
    size: Any,
    signatures: Any,
    n_bits: Any,
    segments: Any,
    key_bits: Any,
    channel_bits: Any,
    path: Any,
    paths: Any,
    worth: Any,
) -> Any:
    """Which of the event's attributes may be in a list, by signature and without a branch.

    Returns how many; they are in ``worth``. The list's first segment is list ``first``.
    """
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
def _ask_ahead(
    at: Any,
    entries: Any,
    begins: Any,
    ends: Any,
    keys: Any,
    values: Any,
    counter_begins: Any,
    counter_ends: Any,
    owners: Any,
    needs: Any,
    pivot_of: Any,
    firsts: Any,
    signatures: Any,
    n_segments: Any,
) -> None:
    """Ask for what the pivots of the next entries need: each step uses what the one before got."""
    final = len(entries) - 1
    channel = entries[np.uint64(min(at + _DIRECTORY_AHEAD, final))] >> 32
    pivot = np.int64(pivot_of[np.uint64(channel)])
    prefetch(firsts, pivot * N_OPERATORS)
    prefetch(counter_begins, pivot)
    prefetch(counter_ends, pivot)
    channel = entries[np.uint64(min(at + _SIGNATURES_AHEAD, final))] >> 32
    pivot = np.int64(pivot_of[np.uint64(channel)])
    if pivot >= 0:
        begin = np.int64(counter_begins[np.uint64(pivot)])
        end = min(begin + _COUNTERS_ASKED, np.int64(counter_ends[np.uint64(pivot)]))
        for i in range(begin, end, _LINE):
            prefetch(needs, i)
            prefetch(owners, i)
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


@kernel(
    void, LISTS, COUNTERS, DIRECTORY, TRIE, i4r, i8, i8, i8, i8r, i8r, i8w, i4w, i4w, i8w,
    i4w, i4w, i8w,
)  # fmt: skip
def match(
    lists: Any,
    counters: Any,
    directory: Any,
    trie: Any,
    bases: Any,
    depth: Any,
    n_segments: Any,
    n_bits: Any,
    offsets: Any,
    entries: Any,
    tally: Any,
    touched: Any,
    stamps: Any,
    candidates: Any,
    out_rows: Any,
    out_classes: Any,
    state: Any,
) -> None:
    """Match events from ``state`` (event, entry, matches) on while there is room.

    ``tally`` (zeros) and ``touched`` have room for the longest counter array, and one more.
    ``stamps`` (zeros) are empty if no class has several filings. ``candidates`` are filings that
    were touched. No path in the trie is longer than ``depth``.
    """
    begins, ends, keys, values = lists
    counter_begins, counter_ends, owners, needs = counters
    pivot_of, firsts, signatures = directory
    node_lows, node_highs, parents = trie
    widest = 0
    for event in range(len(offsets) - 1):
        widest = max(widest, offsets[event + 1] - offsets[event])
    channels = np.empty(widest, dtype=np.int64)
    cells = np.empty(widest, dtype=np.int64)
    segments = np.empty(widest, dtype=np.int64)
    key_bits = np.empty(widest, dtype=np.uint64)
    channel_bits = np.empty(widest, dtype=np.uint64)
    paths = np.zeros(widest + 1, dtype=np.int64)
    path = np.empty(widest * depth, dtype=np.int32)
    worth = np.empty(widest + 1, dtype=np.int64)
    event, at, n = state[0], state[1], state[2]
    while event < len(offsets) - 1:
        start, stop = offsets[event], offsets[event + 1]
        size = stop - start
        for i in range(size):
            channels[i] = entries[start + i] >> 32
            cells[i] = entries[start + i] & 0xFFFFFFFF
            segments[i] = channels[i] % n_segments
            key_bits[i] = signature_bit(cells[i], n_bits)
            channel_bits[i] = signature_bit(channels[i], n_bits)
            n_nodes = paths[i]
            if len(node_lows) > 0 and cells[i] >= node_lows[0]:
                node = innermost(node_lows, node_highs, parents, cells[i])
                while node >= 0:
                    path[n_nodes] = node
                    n_nodes += 1
                    node = np.int64(parents[node])
            paths[i + 1] = n_nodes
        at = max(at, start)
        while at < stop:
            pivot = np.int64(pivot_of[np.uint64(channels[at - start])])
            base = np.int64(0)
            if pivot >= 0:
                base = np.int64(counter_begins[np.uint64(pivot)])
                if n + counter_ends[np.uint64(pivot)] - base > len(out_rows):
                    state[0], state[1], state[2] = event, at, n
                    return
            _ask_ahead(
                at,
                entries,
                begins,
                ends,
                keys,
                values,
                counter_begins,
                counter_ends,
                owners,
                needs,
                pivot_of,
                firsts,
                signatures,
                n_segments,
            )
            at += 1
            if pivot < 0:
                continue
            n_touched = np.int64(0)
            for operator in range(N_OPERATORS):
                first = np.int64(firsts[np.uint64(pivot * N_OPERATORS + operator)])
                if first < 0:
                    continue
                n_worth = _worth_searching(
                    operator,
                    first,
                    size,
                    signatures,
                    n_bits,
                    segments,
                    key_bits,
                    channel_bits,
                    path,
                    paths,
                    worth,
                )
                for w in range(n_worth):
                    i = worth[w]
                    channel = np.uint64(channels[i])
                    least = np.int64(bases[channel])
                    most = np.int64(bases[channel + np.uint64(1)]) - 1
                    for k in range(n_reaches(operator, paths[i + 1] - paths[i])):
                        low, high = reach(operator, k, cells[i], least, most, path, paths[i])
                        begin, end, block = seek(begins, ends, keys, first + segments[i], low)
                        while True:
                            while begin < end and keys[np.uint64(begin)] <= high:
                                slot, holds, n_touched = _count(
                                    np.int64(values[np.uint64(begin)]),
                                    operator,
                                    base,
                                    needs,
                                    tally,
                                    touched,
                                    n_touched,
                                )
                                begin += 1
                                if holds:
                                    owner = owners[np.uint64(base) + slot]
                                    if len(stamps) == 0 or first_time(stamps, owner, event):
                                        out_rows[n] = event
                                        out_classes[n] = owner
                                        n += 1
                            if begin < end:
                                break
                            block, begin, end = following(keys, values, block)
                            if block < 0:
                                break
            for k in range(n_touched):
                tally[np.uint64(touched[np.uint64(k)])] = 0
            candidates[event] += n_touched
        event += 1
    state[0], state[1], state[2] = event, at, n
