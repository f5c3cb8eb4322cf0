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

from bittern.jit import (
    i4r,
    i4w,
    i8r,
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
from bittern.matching.output import first_time
from bittern.stabbing.areas import rank

# How the place of a list in order is packed: the item, then 1 if the posting is positive, then
# which list it is.
_ITEM, _POSITIVE = 32, 31
_WHICH = (1 << 31) - 1
_AT_END = (1 << 63) - 1


class SearchArrays(NamedTuple):
    """What matching needs besides the lists."""

    codes: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    owners: npt.NDArray[np.int32]
    clauses: npt.NDArray[np.uint8]


SEARCH = tuple_type(SearchArrays, i4r, i4r, i4r, u1r)


@inline
def _skip_to(
    begins: Any,
    ends: Any,
    keys: Any,
    values: Any,
    n: Any,
    at: Any,
    end: Any,
    block: Any,
    key: Any,
) -> tuple[Any, Any, Any]:
    """From a posting below ``key`` to the first one that is not; at == end if there is none."""
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


@kernel(void, SEARCH, LISTS, i8r, i8r, i4w, u8w, i4w, i8w, i4w, i4w, i8w)
def match_events(
    search: Any,
    lists: Any,
    event_offsets: Any,
    entries: Any,
    stamps: Any,
    bitmaps: Any,
    touched: Any,
    candidates: Any,
    out_rows: Any,
    out_classes: Any,
    state: Any,
) -> None:
    """Match events from ``state[0]`` on; one that finds no room for its matches is done again.

    ``stamps`` (zeros) are empty where no class has several items. ``candidates`` are the items that
    the lists stopped at, and those whose bitmaps were touched.
    """
    codes, first, owners, clauses = search
    begins, ends, keys, values = lists
    n_events, room = len(event_offsets) - 1, len(out_rows)
    most = 1
    for event in range(n_events):
        most = max(most, event_offsets[event + 1] - event_offsets[event] + 1)
    bases = np.empty(most, dtype=np.int64)  # first list of each of the event's values
    heads = np.empty(most, dtype=np.int64)
    numbers, places, stops, blocks = (
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
    )
    event, n = state[0], state[2]
    full = False
    while event < n_events and not full:
        n_values = 0
        for i in range(event_offsets[event], event_offsets[event + 1]):
            base = first[np.uint64(entries[i] & 0xFFFFFFFF)]
            if base >= 0:
                prefetch(begins, base)
                bases[n_values] = base
                n_values += 1
        for i in range(n_values):
            begin = begins[np.uint64(bases[i])]
            prefetch(keys, begin)
            prefetch(values, begin)
        before, n_touched, looked = n, 0, 0
        column = len(codes)
        while column > 0 and not full:
            column -= 1
            size = codes[column] >> 1
            if size > n_values:
                continue
            if codes[column] & 1:
                for i in range(n_values):
                    at, end, block = start_of(begins, ends, keys, bases[i] + column)
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
                            break
                continue
            m = 0
            for i in range(n_values + 1):
                if i == n_values and size > 0:
                    break
                number = np.int64(Z) if i == n_values else bases[i] + column
                at, end, block = np.int64(begins[np.uint64(number)]), np.int64(0), np.int64(-1)
                if at < 0:
                    at, end, block = start_of(begins, ends, keys, number)
                else:
                    end = np.int64(ends[np.uint64(number)])
                if at < end:
                    numbers[m], places[m], stops[m], blocks[m] = number, at, end, block
                    head = _head(keys, values, at, m)
                    place = m
                    while place > 0 and heads[place - 1] > head:
                        heads[place] = heads[place - 1]
                        place -= 1
                    heads[place] = head
                    m += 1
            needed = max(size, 1)
            while m >= needed:
                item = heads[0] >> _ITEM
                target = heads[np.uint64(needed - 1)] >> _ITEM
                looked += 1
                moved = 0
                if item == target:
                    moved = needed
                    if heads[0] >> _POSITIVE & 1:
                        if n == room:
                            full = True
                            break
                        owner = owners[np.uint64(item)]
                        if len(stamps) == 0 or first_time(stamps, owner, event):
                            out_classes[np.uint64(n)] = owner
                            n += 1
                    else:
                        while moved < m and heads[moved] >> _ITEM == item:
                            moved += 1
                    target += 1
                else:
                    while heads[np.uint64(moved)] >> _ITEM < target:
                        moved += 1
                ended = 0
                for i in range(moved - 1, -1, -1):
                    which = np.uint64(heads[np.uint64(i)] & _WHICH)
                    at, end, block = _skip_to(
                        begins,
                        ends,
                        keys,
                        values,
                        numbers[which],
                        places[which],
                        stops[which],
                        blocks[which],
                        target,
                    )
                    places[which], stops[which], blocks[which] = at, end, block
                    head = np.int64(_AT_END)
                    if at < end:
                        head = _head(keys, values, at, which)
                    else:
                        ended += 1
                    _sink(heads, i, m, head)
                m -= ended
        for i in range(n_touched):
            item = np.uint64(touched[i])
            whole = (np.uint64(2) << np.uint64(clauses[item] - 1)) - np.uint64(1)
            if bitmaps[item] == whole and not full:
                if n == room:
                    full = True
                else:
                    out_classes[n] = owners[item]
                    n += 1
            bitmaps[item] = 0
        if full:  # as if the event had not been looked at
            if len(stamps):
                for i in range(before, n):
                    stamps[out_classes[i]] = 0
            n = before
            break
        for i in range(before, n):
            out_rows[i] = event
        candidates[event] = looked + n_touched
        event += 1
    state[0], state[2] = event, n
