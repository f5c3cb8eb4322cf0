"""Matching with a k-index: the lists of an event's values, joined size by size.

The *Conjunction* algorithm that seed 003 compares itself with (its reference [26]). For size K, the
lists of the event's values are kept sorted by the item that each is at. An item of size K has to be
in K of them, so that the K-th list says how far the ones before it can skip::

    K = 2     at (5 1)   at (7 1)   at (9 1)      item 5 is in one list only: skip to 7
              at (7 1)   at (7 1)   at (9 1)      item 7 is in two: it matches
              at (9 1)   at (8 1)   ...

A negative posting of an item comes before its positive ones, so that where the first list is at
one, the item is rejected, and all lists skip it. Size 0 is like size 1, with the Z-list besides.

Items in conjunctive form have a bitmap instead: every posting found sets the bit of its clause, and
the item matches when all are set. (Seed 003, section 6.1, clears bits; setting them makes an
untouched bitmap 0.) Those touched are reset after each event.

Cost: for each size, the entries of K - 1 lists at worst, each found by galloping; reading the
entries of all lists for conjunctive forms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import (
    i4r,
    i4w,
    i8w,
    inline,
    kernel,
    prefetch,
    tuple_type,
    u1r,
    u8w,
    void,
)
from bittern.literature.kindex.directory import Z
from bittern.literature.sorted_lists.blocks import LISTS, following, seek, start_of
from bittern.matching.output import OUTPUT, first_time
from bittern.model.rank.encoded import ENTRIES
from bittern.stabbing.areas import rank

# How the place of a list in order is packed: the item, then 1 if the posting is positive, then
# which list it is.
_ITEM, _POSITIVE = 32, 31
_WHICH = (1 << 31) - 1
_AT_END = (1 << 63) - 1


class SearchArrays(NamedTuple):
    """What matching needs besides the lists."""

    codes: Int32s
    first: Int32s
    owners: Int32s
    clauses: npt.NDArray[np.uint8]


class KIndexScratch(NamedTuple):
    """Working memory of a batch, the last two for items in conjunctive form."""

    stamps: Int32s  # zeros, one for each class; empty where no class has several items
    bitmaps: UInt64s  # zeros, one for each item
    touched: Int32s  # as many


SEARCH = tuple_type(SearchArrays, i4r, i4r, i4r, u1r)
_SCRATCH = tuple_type(KIndexScratch, i4w, u8w, i4w)


class _Cursors(NamedTuple):
    """The lists of one size that an event is in: where each of them is, and all in order."""

    numbers: Int64s
    places: Int64s
    stops: Int64s  # where the run of its place ends
    blocks: Int64s  # and which block that is, or -1
    heads: Int64s  # ascending


@inline
def _values_of(entries: Any, begin: Any, end: Any, first: Any, lists: Any, bases: Any) -> Any:
    """The first list of each of an event's values that has lists, and how many there are."""
    n_values = 0
    for i in range(begin, end):
        base = first[np.uint64(entries[i] & 0xFFFFFFFF)]
        if base >= 0:
            prefetch(lists.begins, base)
            bases[n_values] = base
            n_values += 1
    for i in range(n_values):
        at = lists.begins[np.uint64(bases[i])]
        prefetch(lists.keys, at)
        prefetch(lists.values, at)
    return n_values


# ------------------------------------------------------------------ conjunctive forms


@inline
def _set_bits(lists: Any, number: Any, bitmaps: Any, touched: Any, n_touched: Any) -> Any:
    """Set the bits of all postings of a list; how many items have bits then."""
    begins, ends, keys, values = lists
    at, end, block = start_of(begins, ends, keys, number)
    while True:
        for k in range(at, end):
            item = np.uint64(keys[np.uint64(k)])
            bits = bitmaps[item]
            if bits == 0:
                touched[n_touched] = item
                n_touched += 1
            bitmaps[item] = bits | np.uint64(1) << np.uint64(values[np.uint64(k)])
        block, at, end = following(keys, values, block)
        if block < 0:
            return n_touched


@inline
def _report_whole(search: Any, scratch: Any, n_touched: Any, found: Any, n: Any) -> Any:
    """Report the items that have all of their bits, and clear them; -1 if there is no room."""
    for i in range(n_touched):
        item = np.uint64(scratch.touched[i])
        whole = (np.uint64(2) << np.uint64(search.clauses[item] - 1)) - np.uint64(1)
        if scratch.bitmaps[item] == whole and n >= 0:
            if n == len(found):
                n = -1
            else:
                found[n] = search.owners[item]
                n += 1
        scratch.bitmaps[item] = 0
    return n


# ------------------------------------------------------------------ conjunctions


@inline
def _head(keys: Any, values: Any, at: Any, which: Any) -> Any:
    """The place in order of a list that is at this posting."""
    at = np.uint64(at)  # unsigned: no test for a negative index
    return np.int64(keys[at]) << _ITEM | np.int64(values[at]) << _POSITIVE | np.int64(which)


@inline
def _sink(heads: Any, i: Any, m: Any, head: Any) -> None:
    """Put a head where it belongs among those after place i, which moves up to meet them."""
    while i + 1 < m and heads[np.uint64(i + 1)] < head:
        heads[np.uint64(i)] = heads[np.uint64(i + 1)]
        i += 1
    heads[np.uint64(i)] = head


@inline
def _start(lists: Any, number: Any, cursors: Any, m: Any) -> Any:
    """One more list, at its first posting, unless it is empty; how many there are then."""
    begins, ends, keys, values = lists
    at, end, block = np.int64(begins[np.uint64(number)]), np.int64(0), np.int64(-1)
    if at < 0:
        at, end, block = start_of(begins, ends, keys, number)
    else:
        end = np.int64(ends[np.uint64(number)])
    if at >= end:
        return m
    cursors.numbers[m], cursors.places[m] = number, at
    cursors.stops[m], cursors.blocks[m] = end, block
    head, heads = _head(keys, values, at, m), cursors.heads
    place = m
    while place > 0 and heads[place - 1] > head:
        heads[place] = heads[place - 1]
        place -= 1
    heads[place] = head
    return m + 1


@inline
def _skip_to(lists: Any, n: Any, at: Any, end: Any, block: Any, key: Any) -> tuple[Any, Any, Any]:
    """From a posting below ``key`` to the first one that is not; at == end if there is none."""
    begins, ends, keys, values = lists
    step = 1
    while at + step < end and keys[np.uint64(at + step)] < key:
        at += step
        step *= 2
    at = rank(keys, at + 1, min(at + step, end), key)
    if at == end and block >= 0:
        at, end, block = seek(begins, ends, keys, n, key)
        if at == end:
            block, at, end = following(keys, values, block)
    return at, end, block


@inline
def _skip(lists: Any, cursors: Any, moved: Any, m: Any, target: Any) -> Any:
    """The first ``moved`` lists skip to the item ``target``; how many are not at their end then."""
    numbers, places, stops, blocks, heads = cursors
    ended = 0
    for i in range(moved - 1, -1, -1):
        which = np.uint64(heads[np.uint64(i)] & _WHICH)
        at, end, block = _skip_to(
            lists, numbers[which], places[which], stops[which], blocks[which], target
        )
        places[which], stops[which], blocks[which] = at, end, block
        head = np.int64(_AT_END)
        if at < end:
            head = _head(lists.keys, lists.values, at, which)
        else:
            ended += 1
        _sink(heads, i, m, head)
    return m - ended


@inline
def _join(
    lists: Any,
    cursors: Any,
    m: Any,
    needed: Any,
    owners: Any,
    stamps: Any,
    event: Any,
    found: Any,
    n: Any,
) -> tuple[Any, Any]:
    """Report the items that are in ``needed`` of m lists, and in none of them negative.

    Returns how many matches there are then, -1 if there is no room for all, and how many items the
    lists stopped at.
    """
    heads = cursors.heads
    looked = 0
    while m >= needed:
        item = heads[0] >> _ITEM
        target = heads[np.uint64(needed - 1)] >> _ITEM
        looked += 1
        moved = 0
        if item == target:
            moved = needed
            if heads[0] >> _POSITIVE & 1:
                if n == len(found):
                    return -1, looked
                owner = owners[np.uint64(item)]
                if len(stamps) == 0 or first_time(stamps, owner, event):
                    found[np.uint64(n)] = owner
                    n += 1
            else:
                while moved < m and heads[moved] >> _ITEM == item:
                    moved += 1
            target += 1
        else:
            while heads[np.uint64(moved)] >> _ITEM < target:
                moved += 1
        m = _skip(lists, cursors, moved, m, target)
    return n, looked


@kernel(void, SEARCH, LISTS, ENTRIES, _SCRATCH, i8w, OUTPUT)
def match_events(
    search: Any, lists: Any, events: Any, scratch: Any, candidates: Any, out: Any
) -> None:
    """Match events from ``state[0]`` on; one that finds no room for its matches is done again.

    ``candidates`` are the items that the lists stopped at, and those whose bitmaps were touched.
    """
    offsets, entries = events
    codes, stamps, found = search.codes, scratch.stamps, out.classes
    n_events = len(offsets) - 1
    most = 1
    for event in range(n_events):
        most = max(most, offsets[event + 1] - offsets[event] + 1)
    bases = np.empty(most, dtype=np.int64)  # first list of each of the event's values
    cursors = _Cursors(
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
    )
    event, n = out.state[0], out.state[2]
    while event < n_events:
        n_values = _values_of(
            entries, offsets[event], offsets[event + 1], search.first, lists, bases
        )
        before, n_touched, looked = n, 0, 0
        column = len(codes)
        while column > 0 and n >= 0:
            column -= 1
            size = codes[column] >> 1
            if size > n_values:
                continue
            if codes[column] & 1:
                for i in range(n_values):
                    n_touched = _set_bits(
                        lists, bases[i] + column, scratch.bitmaps, scratch.touched, n_touched
                    )
                continue
            m = 0
            for i in range(n_values):
                m = _start(lists, bases[i] + column, cursors, m)
            if size == 0:
                m = _start(lists, np.int64(Z), cursors, m)
            n, stops = _join(
                lists, cursors, m, max(size, 1), search.owners, stamps, event, found, n
            )
            looked += stops
        n = _report_whole(search, scratch, n_touched, found, n)
        if n < 0:  # all places are taken: as if the event had not been looked at
            if len(stamps):
                for i in range(before, len(found)):
                    stamps[found[i]] = 0
            n = before
            break
        for i in range(before, n):
            out.rows[i] = event
        candidates[event] = looked + n_touched
        event += 1
    out.state[0], out.state[2] = event, n
