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

from bittern.arrays import Int64s
from bittern.history.passes.groups import (
    AGE,
    ARRIVAL,
    COUNT,
    LIST,
    NEVER,
    NO_KEY,
    PLACES,
    TIMES,
    GroupKey,
    comparable,
    compares_value,
    find_group,
    new_group,
    no_value,
    value_of,
)
from bittern.history.passes.listed import add_listed
from bittern.history.passes.lookups import find_counter, pass_all
from bittern.history.passes.summaries import add_to_group
from bittern.jit import i8r, inline, tuple_type
from bittern.model.events.typed.typed import TIME


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
    intake: Any,
    specs: Any,
    state: Any,
    operands: Any,
    stamps: Any,
    moment: Any,
) -> Any:
    """Let a summary take the event as a document; False if there is no room.

    A COUNT makes sure that it has the group, and only with ``raise_counts`` counts.
    """
    event = moment.event
    first, last = intake.condition_starts[summary], intake.condition_starts[summary + 1]
    if not pass_all(intake.conditions, first, last, stamps, moment.stamp):
        return True
    question, axis = specs.question[summary], specs.axis[summary]
    value = no_value(operands)
    if specs.value[summary] >= 0:
        value = value_of(operands, specs.value[summary], event)
    kind: Any = np.uint8(0)
    if compares_value(question):
        if not comparable(value.kind):
            return True
        kind = value.kind
    age = np.int64(0)
    if axis == ARRIVAL:
        age = moment.number
    elif axis == TIMES:
        times = specs.axis_of[summary]
        if operands.kinds[times, event] != TIME:
            return True
        age = max(operands.words[times, event], np.int64(NEVER + 1))
    elif axis == PLACES:
        group = find_counter(state, specs, summary, operands, event)
        age = state.groups[group, AGE] if group >= 0 else np.int64(0)
    first, last = specs.key_starts[summary], specs.key_starts[summary + 1]
    key = GroupKey(summary, kind, specs.keys, first, last)
    group = find_group(state, operands, key, event)
    if group == NO_KEY:
        return True
    if group < 0:
        group = new_group(state, operands, key, question, event)
        if group < 0:
            return False
    if raise_counts == 0 and question == COUNT:
        return True
    if question == LIST:
        return add_listed(state, group, age, specs, summary, operands, moment)
    return add_to_group(state, group, question, age, value)
