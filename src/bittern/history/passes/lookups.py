"""Lookups: alternatives of entries as questions to summaries.

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

from bittern.arrays import Int64s
from bittern.history.passes.groups import (
    AGE,
    ARRIVAL,
    LIST,
    NEVER,
    PLACES,
    TIMES,
    GroupKey,
    comparable,
    compares_value,
    find_group,
    no_value,
    value_of,
)
from bittern.history.passes.listed import Residuals, is_listed
from bittern.history.passes.summaries import newest
from bittern.jit import i8r, i8r2, inline, tuple_type, u1r
from bittern.model.events.typed.typed import TIME

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
    has_sets: npt.NDArray[np.uint8]  # by entry: some alternative is left to document sets
    filed_starts: Int64s  # by row: lookups that ask nothing of an event without that attribute
    filed: Int64s
    unfiled: Int64s  # lookups that need no attribute
    open: Int64s  # entries that something has to be said of where nothing is found


LOOKUPS = tuple_type(Lookups, i8r2, i8r, i8r, u1r, u1r, i8r, i8r, i8r, i8r)


class Moment(NamedTuple):
    """An event of a batch: the number that it would have as a document, and what that means."""

    event: int
    number: int
    live: int  # documents before this one have expired
    stamp: int  # of the conditions that are TRUE for it


@inline
def pass_all(conditions: Any, first: Any, last: Any, stamps: Any, stamp: Any) -> Any:
    """Do these conditions say yes? Those that are TRUE carry this event's stamp."""
    for i in range(first, last):
        if (stamps[conditions[i] >> 1] == stamp) != (conditions[i] & 1 == 1):
            return False
    return True


@inline
def find_counter(state: Any, specs: Any, summary: Any, operands: Any, event: Any) -> Any:
    """The group that counts the documents for a summary with places."""
    counter = specs.axis_of[summary]
    first, last = specs.key_starts[counter], specs.key_starts[counter + 1]
    kind: Any = np.uint8(0)
    key = GroupKey(counter, kind, specs.keys, first, last)
    return find_group(state, operands, key, event)


@inline
def is_found(
    lookup: Any, lookups: Any, specs: Any, state: Any, operands: Any, stamps: Any, moment: Any
) -> Any:
    """Does a document answer the lookup for this event?"""
    table, lists, event = lookups.table, lookups.lists, moment.event
    if not pass_all(
        lists, table[lookup, CONDITIONS], table[lookup, CONDITIONS_END], stamps, moment.stamp
    ):
        return False
    summary = table[lookup, SUMMARY]
    question, axis = specs.question[summary], specs.axis[summary]
    value = no_value(operands)
    if table[lookup, VALUE] != NO_VALUE:
        value = value_of(operands, table[lookup, VALUE], event)
    kind: Any = np.uint8(0)
    if compares_value(question):
        if not comparable(value.kind):
            return False
        kind = value.kind
    bound = np.int64(NEVER + 1)
    if axis == ARRIVAL:
        bound = moment.live
        if table[lookup, LAST] >= 0:
            bound = max(bound, moment.number - table[lookup, LAST])
    elif axis == TIMES:
        times = specs.axis_of[summary]
        if operands.kinds[times, event] != TIME:
            return False
        if operands.words[times, event] > bound + table[lookup, MICROSECONDS]:
            bound = operands.words[times, event] - table[lookup, MICROSECONDS]
    elif axis == PLACES:
        group = find_counter(state, specs, summary, operands, event)
        if group < 0:
            return False
        bound = state.groups[group, AGE] - table[lookup, LAST]
    key = GroupKey(summary, kind, lists, table[lookup, KEYS], table[lookup, KEYS_END])
    group = find_group(state, operands, key, event)
    if group < 0:
        return False
    if question == LIST:
        width = specs.listed_starts[summary + 1] - specs.listed_starts[summary] + 1
        residuals = Residuals(lists, table[lookup, CONDITIONS_END], table[lookup, RESIDUALS_END])
        in_order = axis != TIMES
        return is_listed(state, group, width, bound, in_order, residuals, operands, event)
    return newest(state, group, question, value, table[lookup, STRICT]) >= bound
