"""Lists: all documents of a group, where a summary of them cannot answer.

A term that has a key and asks two or more other things of one document, ``d.author = author AND
d.year < year AND d.price < 30``, goes through the documents of the key's group, newest first, until
one satisfies the rest, or the window ends. What the rest needs of a document stands in the list::

    steps of a group    7 7 .   number 1999 .   number 25.0 .     document 7: age, number, and
                        9 9 .   number 2004 .   number 12.5 .     kind, word, tie of year and price

A lookup's *residuals* say what is asked: which value of the list, which outcomes of comparing it
(below, equal, above, apart) are good, and with which value of the event or constant.

Cost: O(documents of the group) at worst, some nanoseconds each; a list takes 24 bytes for each
document and as many for each of its values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.history.groups import (
    N_STEPS,
    PART_KIND,
    ROOM,
    STEP,
    STEP_AGE,
    STEPS,
    TIE,
    WORD,
    comparable,
    keep_string,
    move_row,
    value_of,
)
from bittern.history.outcomes import ABOVE, APART, BELOW, EQUAL
from bittern.jit import inline
from bittern.model.events.typed import STRING, compare

#: A residual is so many numbers: place of the value, good outcomes, code of what it is compared to.
RESIDUAL = 3


@inline
def is_listed(
    groups: Any,
    steps: Any,
    own_heap: Any,
    group: Any,
    width: Any,
    bound: Any,
    in_order: Any,
    lists: Any,
    first: Any,
    last: Any,
    event: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
    heap: Any,
) -> Any:
    """Does a document of the group, not older than ``bound``, satisfy the residuals?

    ``width`` is how many steps a document takes; ``in_order`` says that ages ascend.
    """
    start = groups[group, STEP]
    at = start + groups[group, N_STEPS] - width
    while at >= start:
        if steps[at, STEP_AGE] < bound:
            if in_order:
                return False
            at -= width
            continue
        good = True
        for i in range(first, last, RESIDUAL):
            step = at + 1 + lists[i]
            kind, word, tie = value_of(
                lists[i + 2], event, kinds, words, ties, fixed_kinds, fixed_words, fixed_ties
            )
            outcome = np.int64(APART)
            if steps[step, PART_KIND] == kind and comparable(kind):
                order = compare(
                    kind, steps[step, WORD], steps[step, TIE], own_heap, word, tie, heap
                )
                outcome = np.int64(EQUAL) if order == 0 else np.int64(BELOW if order < 0 else ABOVE)
            if lists[i + 1] & outcome == 0:
                good = False
                break
        if good:
            return True
        at -= width
    return False


@inline
def add_listed(
    groups: Any,
    steps: Any,
    own_heap: Any,
    used: Any,
    group: Any,
    age: Any,
    number: Any,
    live: Any,
    rows: Any,
    first: Any,
    last: Any,
    event: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    heap: Any,
) -> Any:
    """Put document ``number`` at the end of its group's list; False if there is no room.

    Documents before ``live`` have expired.
    """
    width = last - first + 1
    start, n = groups[group, STEP], groups[group, N_STEPS]
    if n and steps[start + n - width, WORD] == number:
        return True  # it was added before room ran out elsewhere
    if n + width > groups[group, ROOM]:
        dead = np.int64(0)
        while dead < n and steps[start + dead, WORD] < live:
            dead += width
        room = max(groups[group, ROOM], 2 * (n - dead + width))
        moved = used[STEPS]
        if moved + room > len(steps):
            return False
        for i in range(dead, n):
            move_row(steps, start + i, steps, moved + i - dead)
        used[STEPS] = moved + room
        n -= dead
        start = moved
        groups[group, STEP], groups[group, ROOM], groups[group, N_STEPS] = moved, room, n
    at = start + n
    for k in range(first, last):
        row, step = rows[k], at + 1 + k - first
        tie = ties[row, event]
        if kinds[row, event] == STRING:
            tie = keep_string(heap, tie, own_heap, used)
            if tie < 0:
                return False
        steps[step, PART_KIND] = np.int64(kinds[row, event])
        steps[step, WORD], steps[step, TIE] = words[row, event], tie
    steps[at, STEP_AGE], steps[at, WORD], steps[at, TIE] = age, number, 0
    groups[group, N_STEPS] = n + width
    return True
