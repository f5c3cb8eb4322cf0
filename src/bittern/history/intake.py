"""Intake: which summaries take a document, and what they make of it.

Summaries with a condition that has to be TRUE are filed under it, the others see every document; so
a document costs as much as there are summaries for it, not as there are summaries::

    condition 4 (title LIKE '%bird%')  -> summaries 2, 7
    (none)                             -> summaries 0, 1, 3
    COUNTs                             -> summary 5, raised when all others are done
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.history.groups import (
    AGE,
    ARRIVAL,
    COUNT,
    LIST,
    NEVER,
    NO_KEY,
    PLACES,
    TIMES,
    comparable,
    compares_value,
    find_group,
    new_group,
)
from bittern.history.listed import add_listed
from bittern.history.lookups import pass_all
from bittern.history.summaries import add_to_group
from bittern.jit import i8r, inline, tuple_type
from bittern.model.events.typed import TIME

Int64s = npt.NDArray[np.int64]


class Intake(NamedTuple):
    """Which summaries take a document, by the conditions that it satisfies."""

    filed_starts: Int64s  # by condition
    filed: Int64s  # summaries
    unfiled: Int64s  # summaries without a condition that has to be TRUE
    counters: Int64s  # the COUNTs
    condition_starts: Int64s  # by summary
    conditions: Int64s


INTAKE = tuple_type(Intake, *[i8r] * 6)


@inline
def is_taken(
    summary: Any,
    raise_counts: Any,
    question: Any,
    axis: Any,
    axis_of: Any,
    value_rows: Any,
    key_starts: Any,
    keys: Any,
    listed_starts: Any,
    listed: Any,
    condition_starts: Any,
    conditions: Any,
    key: Any,
    slots: Any,
    groups: Any,
    parts: Any,
    steps: Any,
    own_heap: Any,
    used: Any,
    event: Any,
    number: Any,
    live: Any,
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
    """Let a summary take the event as document ``number``; False if there is no room.

    Documents before ``live`` have expired. A COUNT makes sure that it has the group, and only with
    ``raise_counts`` counts.
    """
    first, last = condition_starts[summary], condition_starts[summary + 1]
    if not pass_all(conditions, first, last, stamps, stamp):
        return True
    first, last = key_starts[summary], key_starts[summary + 1]
    asked, row = question[summary], value_rows[summary]
    kind, word, tie = np.uint8(0), np.int64(0), np.int64(0)
    if row >= 0:
        kind, word, tie = kinds[row, event], words[row, event], ties[row, event]
    group_kind = np.uint8(0)
    if compares_value(asked):
        if not comparable(kind):
            return True
        group_kind = kind
    age = np.int64(0)
    if axis[summary] == ARRIVAL:
        age = number
    elif axis[summary] == TIMES:
        row = axis_of[summary]
        if kinds[row, event] != TIME:
            return True
        age = max(words[row, event], np.int64(NEVER + 1))
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
        age = groups[group, AGE] if group >= 0 else np.int64(0)
    group = find_group(
        key,
        slots,
        groups,
        parts,
        own_heap,
        summary,
        group_kind,
        keys,
        first,
        last,
        event,
        kinds,
        words,
        ties,
        fixed_kinds,
        fixed_words,
        fixed_ties,
        heap,
    )
    if group == NO_KEY:
        return True
    if group < 0:
        group = new_group(
            key,
            slots,
            groups,
            parts,
            steps,
            own_heap,
            used,
            asked,
            summary,
            group_kind,
            keys,
            first,
            last,
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
    if raise_counts == 0 and asked == COUNT:
        return True
    if asked == LIST:
        return add_listed(
            groups,
            steps,
            own_heap,
            used,
            group,
            age,
            number,
            live,
            listed,
            listed_starts[summary],
            listed_starts[summary + 1],
            event,
            kinds,
            words,
            ties,
            heap,
        )
    return add_to_group(groups, steps, own_heap, used, asked, group, age, kind, word, tie, heap)
