"""Lookups: terms of entries as questions to summaries.

``EXISTS d IN LAST 100 (d.isbn = isbn AND d.price > price AND d.shop = 's3')`` is one lookup::

    SUMMARY    of all documents, keyed by isbn and shop: MAX of price
    keys       the event's isbn, 's3'    VALUE  the event's price, STRICT: higher, not as high
    LAST       100                       its answer has to be among the last 100 documents

A lookup is a row of ``table`` and its lists (keys, conditions on the event, residuals of a LIST)
lie together in ``lists``. Values come from rows of the batch's values, the same for events and
documents, or are constants of the lookup itself: so lookups with other shops share the summary.
Conditions, of the other kinds, are numbers that the batch comes with; in lists they stand as
``2 * condition + 1`` where they have to be TRUE and ``2 * condition`` where they must not be.

Cost: one hash look-up (two, for the last n of a group) and O(log steps), or the length of a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.history.groups import (
    AGE,
    ARRIVAL,
    LIST,
    NEVER,
    PLACES,
    TIMES,
    comparable,
    compares_value,
    find_group,
    value_of,
)
from bittern.history.listed import is_listed
from bittern.history.summaries import newest
from bittern.jit import i8r, i8r2, inline, tuple_type, u1r
from bittern.model.events.typed import TIME

Int64s = npt.NDArray[np.int64]
#: Columns of a lookup. VALUE: code of the value compared, or NO_VALUE; LAST: a window of so many
#: documents, or -1; MICROSECONDS: a window of time, or -1; NEEDS: a row without which nothing is
#: found, or -1. The rest are ranges of lists; residuals come behind conditions.
(
    ENTRY,
    SUMMARY,
    VALUE,
    STRICT,
    LAST,
    MICROSECONDS,
    KEYS,
    KEYS_END,
    CONDITIONS,
    CONDITIONS_END,
    RESIDUALS_END,
    NEEDS,
) = range(12)
COLUMNS = 12
#: In VALUE: the question compares none.
NO_VALUE = 2**62


class Lookups(NamedTuple):
    """All lookups, in order of their entries, and how they are found."""

    table: Int64s
    lists: Int64s
    entry_starts: Int64s  # lookups of entry e: entry_starts[e] to entry_starts[e + 1]
    negated: npt.NDArray[np.uint8]  # by entry
    has_sets: npt.NDArray[np.uint8]  # by entry: some term is left to document sets
    filed_starts: Int64s  # by row: lookups that ask nothing of an event without that attribute
    filed: Int64s
    unfiled: Int64s  # lookups that need no attribute
    open: Int64s  # entries that something has to be said of where nothing is found


LOOKUPS = tuple_type(Lookups, i8r2, i8r, i8r, u1r, u1r, i8r, i8r, i8r, i8r)


@inline
def pass_all(conditions: Any, first: Any, last: Any, stamps: Any, stamp: Any) -> Any:
    """Do these conditions say yes? Those that are TRUE carry this event's stamp."""
    for i in range(first, last):
        if (stamps[conditions[i] >> 1] == stamp) != (conditions[i] & 1 == 1):
            return False
    return True


@inline
def is_found(
    table: Any,
    lists: Any,
    lookup: Any,
    question: Any,
    axis: Any,
    axis_of: Any,
    key_starts: Any,
    keys: Any,
    listed_starts: Any,
    key: Any,
    slots: Any,
    groups: Any,
    parts: Any,
    steps: Any,
    own_heap: Any,
    event: Any,
    number: Any,
    first: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
    heap: Any,
    stamps: Any,
    stamp: Any,
) -> Any:
    """Does a document answer the lookup for this event, which would be document ``number``?

    Documents before ``first`` have expired.
    """
    if not pass_all(lists, table[lookup, CONDITIONS], table[lookup, CONDITIONS_END], stamps, stamp):
        return False
    summary, code = table[lookup, SUMMARY], table[lookup, VALUE]
    asked = question[summary]
    kind, word, tie = np.uint8(0), np.int64(0), np.int64(0)
    if code != NO_VALUE:
        kind, word, tie = value_of(
            code, event, kinds, words, ties, fixed_kinds, fixed_words, fixed_ties
        )
    group_kind = np.uint8(0)
    if compares_value(asked):
        if not comparable(kind):
            return False
        group_kind = kind
    bound = np.int64(NEVER + 1)
    if axis[summary] == ARRIVAL:
        bound = first
        if table[lookup, LAST] >= 0:
            bound = max(bound, number - table[lookup, LAST])
    elif axis[summary] == TIMES:
        row = axis_of[summary]
        if kinds[row, event] != TIME:
            return False
        if words[row, event] > bound + table[lookup, MICROSECONDS]:
            bound = words[row, event] - table[lookup, MICROSECONDS]
    elif axis[summary] == PLACES:
        counter = axis_of[summary]
        group = find_group(
            key,
            slots,
            groups,
            parts,
            own_heap,
            counter,
            np.uint8(0),
            keys,
            key_starts[counter],
            key_starts[counter + 1],
            event,
            kinds,
            words,
            ties,
            fixed_kinds,
            fixed_words,
            fixed_ties,
            heap,
        )
        if group < 0:
            return False
        bound = groups[group, AGE] - table[lookup, LAST]
    group = find_group(
        key,
        slots,
        groups,
        parts,
        own_heap,
        summary,
        group_kind,
        lists,
        table[lookup, KEYS],
        table[lookup, KEYS_END],
        event,
        kinds,
        words,
        ties,
        fixed_kinds,
        fixed_words,
        fixed_ties,
        heap,
    )
    if group < 0:
        return False
    if asked == LIST:
        return is_listed(
            groups,
            steps,
            own_heap,
            group,
            listed_starts[summary + 1] - listed_starts[summary] + 1,
            bound,
            axis[summary] != TIMES,
            lists,
            table[lookup, CONDITIONS_END],
            table[lookup, RESIDUALS_END],
            event,
            kinds,
            words,
            ties,
            fixed_kinds,
            fixed_words,
            fixed_ties,
            heap,
        )
    strict = table[lookup, STRICT]
    return newest(groups, steps, own_heap, asked, group, kind, word, tie, heap, strict) >= bound
