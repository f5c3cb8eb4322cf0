"""Lists: all documents of a group, where a summary of them cannot answer.

An alternative that has a key and asks two or more other things of one document,
``d.author = author AND d.year < year AND d.price < 30``, goes through the documents of the key's
group, newest first, until one satisfies the rest, or the window ends. What the rest needs of a
document stands in the list::

    steps of a group    7 7 .   number 1999 .   number 25.0 .     document 7: age, number, and
                        9 9 .   number 2004 .   number 12.5 .     kind, word, tie of year and price

A lookup's *residuals* say what is asked: which value of the list, which outcomes of comparing it
(below, equal, above, apart) are good, and with which value of the event or constant.

Cost: O(documents of the group) at worst, some nanoseconds each; a list takes 24 bytes for each
document and as many for each of its values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.history.passes.groups import (
    N_STEPS,
    NO_TIE,
    PART_KIND,
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
    value_of,
)
from bittern.history.sets.outcomes import ABOVE, APART, BELOW, EQUAL
from bittern.jit import inline
from bittern.model.events.typed.typed import order_of

#: A residual is so many numbers: place of the value, good outcomes, code of what it is compared to.
RESIDUAL = 3


class Residuals(NamedTuple):
    """What else is asked of a document: ``lists[first:last]``, of a lookup."""

    lists: npt.NDArray[np.int64]
    first: int
    last: int


@inline
def is_listed(
    state: Any,
    group: Any,
    width: Any,
    bound: Any,
    in_order: Any,
    residuals: Any,
    operands: Any,
    event: Any,
) -> Any:
    """Does a document of the group, not older than ``bound``, satisfy the residuals?

    ``width`` is how many steps a document takes; ``in_order`` says that ages ascend.
    """
    start = state.groups[group, STEP]
    at = start + state.groups[group, N_STEPS] - width
    while at >= start:
        if state.steps[at, STEP_AGE] < bound:
            if in_order:
                return False
        elif _satisfies(state, at + 1, residuals, operands, event):
            return True
        at -= width
    return False


@inline
def _satisfies(state: Any, values: Any, residuals: Any, operands: Any, event: Any) -> Any:
    """Does the document whose values are the steps from ``values`` on satisfy the residuals?"""
    steps, lists = state.steps, residuals.lists
    for i in range(residuals.first, residuals.last, RESIDUAL):
        step = values + lists[i]
        asked = value_of(operands, lists[i + 2], event)
        outcome = np.int64(APART)
        if steps[step, PART_KIND] == asked.kind and comparable(asked.kind):
            order = order_of(held(steps, step, asked.kind, state.heap), asked)
            outcome = np.int64(EQUAL) if order == 0 else np.int64(BELOW if order < 0 else ABOVE)
        if lists[i + 1] & outcome == 0:
            return False
    return True


@inline
def add_listed(
    state: Any, group: Any, age: Any, specs: Any, summary: Any, operands: Any, moment: Any
) -> Any:
    """Put a document at the end of its group's list; False if there is no room."""
    groups, steps = state.groups, state.steps
    first, last = specs.listed_starts[summary], specs.listed_starts[summary + 1]
    width = last - first + 1
    start, n = groups[group, STEP], groups[group, N_STEPS]
    if n and steps[start + n - width, WORD] == moment.number:
        return True  # it was added before room ran out elsewhere
    if n + width > groups[group, ROOM] and not _move_list(state, group, width, moment.live):
        return False
    n = groups[group, N_STEPS]
    at = groups[group, STEP] + n
    for k in range(first, last):
        step = at + 1 + k - first
        value = value_of(operands, specs.listed[k], moment.event)
        tie = own_tie(state, value)
        if tie == NO_TIE:
            return False
        steps[step, PART_KIND] = np.int64(value.kind)
        steps[step, WORD], steps[step, TIE] = value.word, tie
    steps[at, STEP_AGE], steps[at, WORD], steps[at, TIE] = age, moment.number, 0
    groups[group, N_STEPS] = n + width
    return True


@inline
def _move_list(state: Any, group: Any, width: Any, live: Any) -> Any:
    """Move a list to where one more document has room, those before ``live`` left behind.

    False if there is no such place.
    """
    groups, steps = state.groups, state.steps
    start, n = groups[group, STEP], groups[group, N_STEPS]
    dead = np.int64(0)
    while dead < n and steps[start + dead, WORD] < live:
        dead += width
    room = max(groups[group, ROOM], 2 * (n - dead + width))
    moved = state.used[STEPS]
    if moved + room > len(steps):
        return False
    for i in range(dead, n):
        move_row(steps, start + i, steps, moved + i - dead)
    state.used[STEPS] = moved + room
    groups[group, STEP], groups[group, ROOM], groups[group, N_STEPS] = moved, room, n - dead
    return True
