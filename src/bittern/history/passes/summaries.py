"""Summaries: what is worth remembering of all documents, so that a lookup need not see them.

A *summary* answers one question about the documents that pass its conditions, for each *group* of
them with the same values in its key attributes: how new is the newest document that ...

====================  ===========================  ==========================================
question              asked of a document          what a group keeps
====================  ===========================  ==========================================
NEWEST                it is in the group           its age
MAX, MIN              d.v > x (>=), d.v < x (<=)   stairs: ages ascending, values descending
DISTINCT              d.v != x                     the newest, and the newest of another value
KINDS                 d.v and x do not compare     the newest of each kind
COUNT                 (how many are in the group)  how many
LIST                  several things at once       all its documents (``history/passes/listed.py``)
====================  ===========================  ==========================================

*Age* is 0 for every document where nothing ever leaves (then stairs have one step: the extreme
value is enough), else the document's number, its time, or its place in its group. The stairs of
MAX keep the documents that no newer one surpasses; the newest document above x is the last step
that is higher than x, found by bisection::

    documents  age 1: 40   age 2: 55   age 3: 30   age 4: 35   age 5: 20
    stairs     2: 55   4: 35   5: 20                  newest above 30 is 4, above 50 is 2

A lookup costs O(1 + log steps) and adding a document the same, whatever the number of documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.history.passes.groups import (
    AGE,
    COUNT,
    DISTINCT,
    KINDS,
    MAX,
    N_KINDS,
    N_STEPS,
    NEVER,
    NEWEST,
    NO_TIE,
    OTHER_AGE,
    ROOM,
    STEP,
    STEP_AGE,
    STEPS,
    TIE,
    WORD,
    comparable,
    held,
    move_row,
    own_tie,
)
from bittern.jit import inline
from bittern.model.events.typed.typed import order_of


@inline
def newest(state: Any, group: Any, question: Any, value: Any, strict: Any) -> Any:
    """How new is the group's newest document that answers the question for this value?"""
    groups, steps = state.groups, state.steps
    start = groups[group, STEP]
    if question == NEWEST:
        return groups[group, AGE]
    if question == KINDS:
        best = np.int64(NEVER)
        for other in range(N_KINDS):
            if other != value.kind or not comparable(value.kind):
                best = max(best, steps[start + other, STEP_AGE])
        return best
    if question == DISTINCT:
        order = order_of(held(steps, start, value.kind, state.heap), value)
        return groups[group, AGE] if order else groups[group, OTHER_AGE]
    # Stairs: the steps before ``low`` are beyond the value, and the last of them is the newest.
    sign = 1 if question == MAX else -1
    low, high = np.int64(0), groups[group, N_STEPS]
    while low < high:
        middle = (low + high) >> 1
        order = sign * order_of(held(steps, start + middle, value.kind, state.heap), value)
        if order > 0 or (order == 0 and not strict):
            low = middle + 1
        else:
            high = middle
    return steps[start + low - 1, STEP_AGE] if low else np.int64(NEVER)


@inline
def add_to_group(state: Any, group: Any, question: Any, age: Any, value: Any) -> Any:
    """Note one document in its group; False if there is no room, and nothing has changed."""
    groups, steps = state.groups, state.steps
    if question == NEWEST:
        groups[group, AGE] = max(groups[group, AGE], age)
    elif question == COUNT:
        groups[group, AGE] += 1
    elif question == KINDS:
        at = groups[group, STEP] + value.kind
        steps[at, STEP_AGE] = max(steps[at, STEP_AGE], age)
    elif question == DISTINCT:
        return _add_distinct(state, group, age, value)
    else:
        return _step_over(state, group, age, value, 1 if question == MAX else -1)
    return True


@inline
def _add_distinct(state: Any, group: Any, age: Any, value: Any) -> Any:
    groups, steps = state.groups, state.steps
    at, known, other = groups[group, STEP], groups[group, AGE], groups[group, OTHER_AGE]
    if known != NEVER:
        if order_of(held(steps, at, value.kind, state.heap), value) == 0:
            groups[group, AGE] = max(known, age)
            return True
        if age < known or age <= other:  # the newest stays
            groups[group, OTHER_AGE] = max(other, age)
            return True
    tie = own_tie(state, value)
    if tie == NO_TIE:
        return False
    steps[at, WORD], steps[at, TIE] = value.word, tie
    groups[group, AGE], groups[group, OTHER_AGE], groups[group, N_STEPS] = age, known, 1
    return True


@inline
def _step_over(state: Any, group: Any, age: Any, value: Any, sign: Any) -> Any:
    """Put a document on the stairs, and take those off that are neither newer nor higher."""
    groups, steps = state.groups, state.steps
    start, n = groups[group, STEP], groups[group, N_STEPS]
    last = n  # before the first step that is at least as new
    while last > 0 and steps[start + last - 1, STEP_AGE] >= age:
        last -= 1
    first = last  # behind the last step that is higher
    if last < n and sign * order_of(held(steps, start + last, value.kind, state.heap), value) >= 0:
        return True  # a document as new is as high
    while first > 0:
        step = held(steps, start + first - 1, value.kind, state.heap)
        if sign * order_of(step, value) > 0:
            break
        first -= 1
    if last < n and steps[start + last, STEP_AGE] == age:
        last += 1  # as new, and not as high
    shift = first + 1 - last  # steps from ``last`` on move by so many places
    if n + shift > groups[group, ROOM]:
        if not _move_stairs(state, group):
            return False
        start = groups[group, STEP]
    tie = own_tie(state, value)
    if tie == NO_TIE:
        return False
    if shift > 0:
        for i in range(n - 1, last - 1, -1):
            move_row(steps, start + i, steps, start + i + shift)
    elif shift < 0:
        for i in range(last, n):
            move_row(steps, start + i, steps, start + i + shift)
    steps[start + first, STEP_AGE] = age
    steps[start + first, WORD], steps[start + first, TIE] = value.word, tie
    groups[group, N_STEPS] = n + shift
    return True


@inline
def _move_stairs(state: Any, group: Any) -> Any:
    """Move a group's steps to where there is twice the room; False if there is no such place."""
    groups, steps = state.groups, state.steps
    start, room, moved = groups[group, STEP], 2 * groups[group, ROOM], state.used[STEPS]
    if moved + room > len(steps):
        return False
    for i in range(groups[group, N_STEPS]):
        move_row(steps, start + i, steps, moved + i)
    state.used[STEPS] = moved + room
    groups[group, STEP], groups[group, ROOM] = moved, room
    return True
