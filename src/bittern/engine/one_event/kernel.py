"""The compiled call for one event.

All that it reads and writes is found by address, in a table of (address, length) that stands at an
address itself (``engine/one_event/table.py``): handing sixty arrays over would take longer than
matching. The steps are those of a batch, and so are the functions:

1. *Parse* JSON text (``model/events/json/text.py``), or take over the values of a mapping. If
   something is computed from them, Python does that (``computed.py``) and calls again.
2. *Encode*: each value becomes up to three cells (``model/rank/cells.py``). The view by event is
   one row of channels, -1 but for those of this event, and is cleared at the end.
3. *Stab*: the lists of each cell, as runs of the stabbing index's items (``stabbing/cei.py``). What
   the next step reads is asked for meanwhile.
4. *Verify* the postings of all runs where they lie (``matching/pivot/match.py``), then run the
   always-candidates, and keep each class once.
5. *Expand* classes to subscriptions that are alive.

It returns ``candidates << 32 | matches``, with the matches in the scratch, or why it stopped. A
snapshot and its deltas are *parts* of one call: the others take over what the first has read under
own numbers, and their matches stand behind its own. Cost: O(bytes + values + candidates + matches).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.engine.one_event.found import expand, fetch_programs, keep_once, passing_postings, stab
from bittern.engine.one_event.table import (
    ALIVE,
    CANDIDATES,
    CELLS,
    COMPUTED,
    ENTRIES,
    FOUND,
    INPUT,
    MATCHES,
    N_ALIVE,
    N_NUMBERS,
    N_SLOTS,
    NUMBERS_AT,
    PART,
    RUNS,
    SHIFT,
    SLOTS,
    TABLE,
)
from bittern.jit import array_at, i8, inline, kernel, prefetch, text
from bittern.matching.pivot.match import verify
from bittern.matching.program import accepts
from bittern.model.events.json.entries import TaggedRoom
from bittern.model.events.json.text import Workspace, scan_text
from bittern.model.events.json.tokens import NUMBER_TEXT
from bittern.model.rank.cells import value_cells
from bittern.model.rank.space import BASE, DIRECT, HEAD, LEAST, NUMBER, SINGLE_KINDS, RankArrays
from bittern.model.rank.space import STRING as STRING_KIND
from bittern.model.strings import TOGETHER, StringTableArrays
from bittern.model.tagged import INTEGER, STRING

# Why the call stopped: the batch has to do it, some room is too small (the scratch has what is
# needed), Python has to round numbers, find patterns of strings, or compute something.
FALL_BACK, ROOM, NUMBERS, STRINGS, COMPUTE = -1, -2, -3, -4, -5
# What is asked to be computed (``computed.py``), behind what each attribute asks for: something for
# every event; something that nulls matter to.
ALWAYS, NULLS = 1, 2
# What there is to read: JSON text. Else so many values of a mapping, or, from ``AGAIN`` down, so
# many entries that an earlier call has left in the scratch.
JSON, AGAIN = -1, -2
#: A result below zero is a reason, and so many times the number of the part that stopped.
REASONS = 8
_COUNT = 0xFFFFFFFF
# The bits of a byte that tell the first byte of a character of UTF-8 from the others.
_TOP_BITS, _INSIDE = 0xC0, 0x80


@inline
def _parse(data: Any, size: Any, names: Any, work: Any, entries: Any, state: Any) -> Any:
    """Scan the JSON text in ``data``; returns the number of entries, or why not."""
    reason, count, _ = scan_text(data, np.int64(0), size, names, work, entries, 0, np.int64(0))
    if reason != 0:
        return np.int64(FALL_BACK)
    for i in range(count):
        if entries.tags[i] == NUMBER_TEXT:
            state[ENTRIES] = count
            return np.int64(NUMBERS)
    return np.int64(count)


@inline
def _take_over(values: Any, n: Any, data: Any, size: Any, entries: Any) -> None:
    """The values of a mapping as entries. Lengths of strings are characters, and become bytes."""
    at = np.int64(0)
    for i in range(n):
        tag, payload = values[2 * i] & 255, values[2 * i + 1]
        entries.attributes[i] = values[2 * i] >> 8
        entries.tags[i] = tag
        if tag != STRING:
            entries.payloads[i], entries.lengths[i] = payload, 0
            continue
        start = at
        while payload > 0 and at < size:
            at += 1
            payload -= 1
            while at < size and data[at] & _TOP_BITS == _INSIDE:
                at += 1
        entries.payloads[i], entries.lengths[i] = start, at - start


@inline
def _take_from(first: Any, numbers: Any, data: Any, entries: Any) -> Any:
    """The entries of the first part under own numbers, with their strings; returns how many."""
    t = array_at(first, (N_SLOTS, 2), np.int64)
    text = array_at(t[SLOTS.data, 0], (t[SLOTS.data, 1],), np.uint8)
    attributes = array_at(t[SLOTS.attributes, 0], (t[SLOTS.attributes, 1],), np.int32)
    tags = array_at(t[SLOTS.tags, 0], (t[SLOTS.tags, 1],), np.uint8)
    payloads = array_at(t[SLOTS.payloads, 0], (t[SLOTS.payloads, 1],), np.int64)
    lengths = array_at(t[SLOTS.lengths, 0], (t[SLOTS.lengths, 1],), np.int32)
    state = array_at(t[SLOTS.state, 0], (t[SLOTS.state, 1],), np.int64)
    n, at = np.int64(0), np.int64(0)
    for i in range(state[ENTRIES]):
        number = numbers[np.uint64(attributes[i])]
        if number < 0:
            continue
        entries.attributes[n], entries.tags[n] = number, tags[i]
        entries.payloads[n], entries.lengths[n] = payloads[i], lengths[i]
        if tags[i] == STRING:
            entries.payloads[n] = at
            for k in range(lengths[i]):
                data[at] = text[payloads[i] + k]
                at += 1
        n += 1
    return n


@inline
def _encode(
    rank: Any, kinds: Any, entries: Any, n: Any, data: Any, spare: Any, cells: Any, channels: Any
) -> Any:
    """Write the cells of all entries, and their channels; returns how many, or ``FALL_BACK``.

    A batch tells of values that no subscription compares, and looks into lists.
    """
    for i in range(n):
        if entries.attributes[i] >= len(kinds):
            return np.int64(FALL_BACK)
        prefetch(rank.channels, SINGLE_KINDS * np.int64(entries.attributes[i]))
    for i in range(n):
        kind = STRING_KIND if entries.tags[i] == STRING else NUMBER
        channel = np.int64(rank.channels[np.uint64(entries.attributes[i]), kind])
        prefetch(rank.heads, HEAD * channel)
    for i in range(n):
        if entries.tags[i] == INTEGER:
            channel = np.int64(rank.channels[np.uint64(entries.attributes[i]), NUMBER])
            if channel >= 0:
                least = rank.heads[channel, LEAST]
                prefetch(rank.direct, rank.heads[channel, DIRECT] + entries.payloads[i] - least)
    count = 0
    for i in range(n):
        attribute, tag = np.uint64(entries.attributes[i]), entries.tags[i]
        if kinds[attribute] != 0 and not kinds[attribute] >> np.uint64(tag) & np.uint64(1):
            return np.int64(FALL_BACK)
        any_channel, turned, turned_cell, channel, cell = value_cells(
            rank,
            attribute,
            tag,
            entries.payloads[i],
            entries.reals[i],
            entries.lengths[i],
            data,
            spare,
            spare,
        )
        if any_channel >= 0:
            channels[count], cells[count] = any_channel, rank.heads[any_channel, BASE]
            count += 1
        if turned >= 0:
            channels[count], cells[count] = turned, rank.heads[turned, BASE] + turned_cell
            count += 1
        if channel >= 0:
            channels[count], cells[count] = channel, rank.heads[channel, BASE] + cell
            count += 1
    return np.int64(count)


@inline
def _has_patterns(entries: Any, n: Any, set_of: Any) -> Any:
    """Whether patterns are asked of one of the entries."""
    for i in range(n):
        attribute = np.int64(entries.attributes[i])
        if entries.tags[i] == STRING and attribute < len(set_of) and set_of[attribute] >= 0:
            return True
    return False


@inline
def _is_asked(entries: Any, n: Any, asking: Any) -> Any:
    """Whether something has to be computed for an event with these entries."""
    last = len(asking) - 1
    if asking[last] != 0:
        return True
    for i in range(n):
        if entries.attributes[i] < last and asking[np.uint64(entries.attributes[i])] != 0:
            return True
    return False


@inline
def _match(parts: Any, part: Any, given: Any, mode: Any) -> Any:
    """Match one part; all but the first take over what the first has read."""
    t = array_at(parts[part, TABLE], (N_SLOTS, 2), np.int64)
    names = StringTableArrays(
        array_at(t[SLOTS.name_data, 0], (t[SLOTS.name_data, 1],), np.uint8),
        array_at(t[SLOTS.name_offsets, 0], (t[SLOTS.name_offsets, 1],), np.int64),
        array_at(t[SLOTS.name_groups, 0], (t[SLOTS.name_groups, 1],), np.int32),
        array_at(t[SLOTS.name_slots, 0], (t[SLOTS.name_slots, 1],), np.uint64),
        array_at(t[SLOTS.name_key, 0], (t[SLOTS.name_key, 1],), np.uint64),
    )
    rank = RankArrays(
        array_at(t[SLOTS.channels_of, 0], (t[SLOTS.channels_of, 1], SINGLE_KINDS), np.int32),
        array_at(t[SLOTS.bases, 0], (t[SLOTS.bases, 1],), np.int32),
        array_at(t[SLOTS.rank_heads, 0], (t[SLOTS.rank_heads, 1], HEAD), np.int64),
        array_at(t[SLOTS.floors, 0], (t[SLOTS.floors, 1],), np.int64),
        array_at(t[SLOTS.direct, 0], (t[SLOTS.direct, 1],), np.int32),
        array_at(t[SLOTS.fine_whole, 0], (t[SLOTS.fine_whole, 1],), np.uint8),
        array_at(t[SLOTS.fine_doubles, 0], (t[SLOTS.fine_doubles, 1],), np.float64),
        array_at(t[SLOTS.fine_cells, 0], (t[SLOTS.fine_cells, 1],), np.int32),
        StringTableArrays(
            array_at(t[SLOTS.string_data, 0], (t[SLOTS.string_data, 1],), np.uint8),
            array_at(t[SLOTS.string_offsets, 0], (t[SLOTS.string_offsets, 1],), np.int64),
            array_at(t[SLOTS.string_groups, 0], (t[SLOTS.string_groups, 1],), np.int32),
            array_at(t[SLOTS.string_slots, 0], (t[SLOTS.string_slots, 1],), np.uint64),
            array_at(t[SLOTS.string_key, 0], (t[SLOTS.string_key, 1],), np.uint64),
        ),
    )
    kinds = array_at(t[SLOTS.kinds, 0], (t[SLOTS.kinds, 1],), np.uint64)
    list_begins = array_at(t[SLOTS.list_begins, 0], (t[SLOTS.list_begins, 1],), np.int32)
    list_ends = array_at(t[SLOTS.list_ends, 0], (t[SLOTS.list_ends, 1],), np.int32)
    masks = array_at(t[SLOTS.masks, 0], (t[SLOTS.masks, 1],), np.int32)
    items = array_at(t[SLOTS.items, 0], (t[SLOTS.items, 1],), np.int32)
    shape = array_at(t[SLOTS.shape, 0], (t[SLOTS.shape, 1],), np.int64)
    heads = array_at(t[SLOTS.heads, 0], (t[SLOTS.heads, 1], 2), np.int32)
    bounds = array_at(t[SLOTS.bounds, 0], (t[SLOTS.bounds, 1], 2), np.int32)
    lows = array_at(t[SLOTS.lows, 0], (t[SLOTS.lows, 1],), np.int32)
    highs = array_at(t[SLOTS.highs, 0], (t[SLOTS.highs, 1],), np.int32)
    starts = array_at(t[SLOTS.starts, 0], (t[SLOTS.starts, 1],), np.int32)
    rows = array_at(t[SLOTS.rows, 0], (t[SLOTS.rows, 1], 4), np.int32)
    several = array_at(t[SLOTS.several, 0], (t[SLOTS.several, 1],), np.uint8)
    always = array_at(t[SLOTS.always, 0], (t[SLOTS.always, 1],), np.int32)
    owners = array_at(t[SLOTS.owners, 0], (t[SLOTS.owners, 1],), np.int32)
    repeats = array_at(t[SLOTS.repeats, 0], (t[SLOTS.repeats, 1],), np.uint8)
    class_starts = array_at(t[SLOTS.class_starts, 0], (t[SLOTS.class_starts, 1],), np.int32)
    subscribers = array_at(t[SLOTS.subscribers, 0], (t[SLOTS.subscribers, 1],), np.int32)
    data = array_at(t[SLOTS.data, 0], (t[SLOTS.data, 1],), np.uint8)
    asking = array_at(t[SLOTS.asking, 0], (t[SLOTS.asking, 1],), np.uint8)
    computed = array_at(t[SLOTS.computed, 0], (t[SLOTS.computed, 1],), np.int32)
    size = np.int64(len(given))
    work = Workspace(
        array_at(t[SLOTS.path, 0], (t[SLOTS.path, 1],), np.uint8),
        array_at(t[SLOTS.latest, 0], (t[SLOTS.latest, 1],), np.int64),
        array_at(t[SLOTS.prefixes, 0], (t[SLOTS.prefixes, 1],), np.int64),
        array_at(t[SLOTS.objects, 0], (t[SLOTS.objects, 1],), np.bool_),
        array_at(
            t[SLOTS.data, 0] + size, (size,), np.uint8
        ),  # behind the text, as payloads have it
        len(asking) > 0 and asking[len(asking) - 1] & NULLS != 0,
        array_at(t[SLOTS.keys, 0], (t[SLOTS.keys, 1], TOGETHER), np.int64),
    )
    spare = array_at(t[SLOTS.spare, 0], (t[SLOTS.spare, 1],), np.uint8)
    entries = TaggedRoom(
        array_at(t[SLOTS.attributes, 0], (0,), np.int32),  # all are of one row
        array_at(t[SLOTS.attributes, 0], (t[SLOTS.attributes, 1],), np.int32),
        array_at(t[SLOTS.tags, 0], (t[SLOTS.tags, 1],), np.uint8),
        array_at(t[SLOTS.payloads, 0], (t[SLOTS.payloads, 1],), np.int64),
        array_at(t[SLOTS.payloads, 0], (t[SLOTS.payloads, 1],), np.float64),
        array_at(t[SLOTS.lengths, 0], (t[SLOTS.lengths, 1],), np.int32),
    )
    cells = array_at(t[SLOTS.cells, 0], (t[SLOTS.cells, 1],), np.int32)
    channels = array_at(t[SLOTS.channels, 0], (t[SLOTS.channels, 1],), np.int32)
    run_begins = array_at(t[SLOTS.run_begins, 0], (t[SLOTS.run_begins, 1],), np.int32)
    run_lengths = array_at(t[SLOTS.run_lengths, 0], (t[SLOTS.run_lengths, 1],), np.int32)
    matrix = array_at(t[SLOTS.matrix, 0], (t[SLOTS.matrix, 1],), np.int32)
    pending = array_at(t[SLOTS.pending, 0], (t[SLOTS.pending, 1],), np.int32)
    events = array_at(t[SLOTS.events, 0], (t[SLOTS.events, 1],), np.int32)
    out_rows = array_at(t[SLOTS.out_rows, 0], (t[SLOTS.out_rows, 1],), np.int32)
    classes = array_at(t[SLOTS.classes, 0], (t[SLOTS.classes, 1],), np.int32)
    seen = array_at(t[SLOTS.seen, 0], (t[SLOTS.seen, 1],), np.uint8)
    out = array_at(t[SLOTS.out, 0], (t[SLOTS.out, 1],), np.int32)
    state = array_at(t[SLOTS.state, 0], (t[SLOTS.state, 1],), np.int64)
    values = array_at(t[SLOTS.values, 0], (t[SLOTS.values, 1],), np.int64)
    set_of = array_at(t[SLOTS.set_of, 0], (t[SLOTS.set_of, 1],), np.int32)
    found = array_at(t[SLOTS.found, 0], (t[SLOTS.found, 1],), np.int32)
    alive = array_at(parts[part, ALIVE], (parts[part, N_ALIVE],), np.uint8)
    numbers = array_at(parts[part, NUMBERS_AT], (parts[part, N_NUMBERS],), np.int32)
    # Entries of JSON take three bytes at least, and their cells have room for three of each.
    needed = max(size, 3 * mode)
    if needed > len(spare):
        state[INPUT] = needed
        return np.int64(ROOM)
    if mode > AGAIN:
        state[FOUND], state[COMPUTED] = -1, -1
    count = np.int64(AGAIN - mode)
    if part > 0:
        count = _take_from(parts[0, TABLE], numbers, data, entries)
    else:
        for i in range(size):
            data[i] = given[i]
        if mode == JSON:
            # Just the text: payloads of strings without their escapes count from its end.
            whole = array_at(t[SLOTS.data, 0], (size,), np.uint8)
            count = _parse(whole, size, names, work, entries, state)
            if count < 0:
                return count
        elif mode >= 0:
            count = np.int64(mode)
            _take_over(values, count, data, size, entries)
    state[ENTRIES] = count
    if state[COMPUTED] < 0:
        if len(asking) and _is_asked(entries, count, asking):
            return np.int64(COMPUTE)
        state[COMPUTED] = 0
    if len(set_of) and state[FOUND] < 0 and _has_patterns(entries, count, set_of):
        return np.int64(STRINGS)
    n_cells = _encode(rank, kinds, entries, count, data, spare, cells, channels)
    if n_cells < 0:
        return n_cells
    for i in range(state[FOUND]):
        channels[n_cells], cells[n_cells] = found[i], rank.heads[found[i], BASE]
        n_cells += 1
    for i in range(state[COMPUTED]):
        channels[n_cells], cells[n_cells] = computed[2 * i], computed[2 * i + 1]
        n_cells += 1
    state[CELLS] = n_cells
    if n_cells * (shape[1] + 1) >= len(run_begins):
        state[RUNS] = n_cells * (shape[1] + 1)
        return np.int64(ROOM)
    n_runs, total = stab(
        list_begins, list_ends, masks, items, shape, cells, n_cells, run_begins, run_lengths
    )
    candidates = total + len(always)
    if candidates >= len(pending):
        state[CANDIDATES] = candidates
        return np.int64(ROOM)
    for i in range(n_cells):
        matrix[np.uint64(channels[i])] = cells[i]
    kept = passing_postings(heads, bounds, matrix, items, run_begins, run_lengths, n_runs, pending)
    n, kept = fetch_programs(heads, starts, rows, several, pending, kept, classes)
    width = np.int64(len(matrix))
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
        state,
        names.key,
        state,
        pending,
        events,
        kept,
        False,  # their programs are on their way
        out_rows,
        classes,
        n,
    )
    for i in range(len(always)):
        c = np.int64(always[i])
        if accepts(
            matrix, width, state, names.key, state, 0, rows, np.int64(starts[c]), starts[c + 1]
        ):
            classes[n] = c
            n += 1
    for i in range(n_cells):
        matrix[np.uint64(channels[i])] = -1
    if len(owners):
        n = keep_once(owners, repeats, seen, classes, n)
    matches = expand(class_starts, subscribers, alive, classes, n, out, np.int64(0))
    if matches > len(out):
        state[MATCHES] = matches
        return np.int64(ROOM)
    return candidates << 32 | matches


@kernel(i8, i8, i8, text, i8)
def match_one(parts_at: Any, n_parts: Any, given: Any, mode: Any) -> Any:
    """Match the event that ``mode`` says with one part, or with several that are read for at once.

    ``given`` is its JSON text, or the strings of a mapping one behind the other. The matches of all
    are in the scratch of the first part.
    """
    parts = array_at(parts_at, (n_parts, PART), np.int64)
    total = np.int64(0)
    for part in range(n_parts):
        found = _match(parts, part, given, mode)
        if found < 0:
            return found - REASONS * part
        if part > 0:
            first = array_at(parts[0, TABLE], (N_SLOTS, 2), np.int64)
            own = array_at(parts[part, TABLE], (N_SLOTS, 2), np.int64)
            n, before = found & _COUNT, total & _COUNT
            out = array_at(first[SLOTS.out, 0], (first[SLOTS.out, 1],), np.int32)
            more = array_at(own[SLOTS.out, 0], (own[SLOTS.out, 1],), np.int32)
            if before + n > len(out):
                state = array_at(first[SLOTS.state, 0], (first[SLOTS.state, 1],), np.int64)
                state[MATCHES] = before + n
                return np.int64(ROOM)
            for i in range(n):
                out[before + i] = more[i] + parts[part, SHIFT]
        total += found
    return total
