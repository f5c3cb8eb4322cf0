"""Tokens, and how a reader adds one behind the other; ``syntax`` has the picture.

Items of a sequence are joined, branches of a group combined, and what is repeated copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import apart, i4w, i8w, inline, tuple_type, u1w
from bittern.model.patterns.regex.classes import (
    FOLDED,
    LAST_CHARACTER,
    SETS,
    CharacterSets,
    add_range,
    begin_set,
    close_set,
    is_full,
    is_letter,
    room_for_sets,
)

#: Tokens: one character; places; the empty text; what combines and repeats. The places first:
#: a program numbers them so.
TEXT_START, TEXT_END, LINE_START, LINE_END, WORD_EDGE = 0, 1, 2, 3, 4
SET, EMPTY, CAT, ALT, STAR, PLUS, OPTION = 5, 6, 7, 8, 9, 10, 11
#: A place or set that only RE2 knows.
UNKNOWN_PLACE, UNKNOWN = 12, 13

#: A row of tokens that would be longer is given up, or what is repeated is not copied.
MAX_TOKENS = 6_000
_MAX_DEPTH = 100

#: Results of reading: given up; fragments may be taken, but it is RE2 that runs it; all is known.
GIVEN_UP, PARTLY, KNOWN = 0, 1, 2

FOLD, DOT_ALL, LINES = 1, 2, 4


class Tokens(NamedTuple):
    """A row of tokens: what each is, and the number of its set. ``state`` is the reader's own."""

    kinds: np.ndarray
    numbers: np.ndarray
    sets: CharacterSets
    groups: np.ndarray
    state: np.ndarray


TOKENS = tuple_type(Tokens, u1w, i4w, SETS, i4w, i8w)

# The reader's state.
AT, COUNT, FLAGS, DEPTH, RESULT = 0, 1, 2, 3, 4
#: Where the last item begins, or -1; whether others stand before it; whether it is quantified.
ITEM, HAS_ITEMS, IS_QUANTIFIED = 5, 6, 7
#: Whether branches stand before this one.
HAS_BRANCHES = 8
_STATES = 9
_GROUP_FIELDS = 4


def room_for_tokens() -> Tokens:
    """Room for the tokens of one pattern after the other."""
    return Tokens(
        np.zeros(MAX_TOKENS, np.uint8),
        np.zeros(MAX_TOKENS, np.int32),
        room_for_sets(MAX_TOKENS),
        np.zeros(_MAX_DEPTH * _GROUP_FIELDS, np.int32),
        np.zeros(_STATES, np.int64),
    )


@inline
def count_of(tokens: Any) -> Any:
    """How many tokens were read."""
    return tokens.state[COUNT]


@inline
def give_up(tokens: Any) -> None:
    """The text has what the reader is not sure of."""
    tokens.state[RESULT] = GIVEN_UP


@inline
def only_partly(tokens: Any) -> None:
    """There is something that only RE2 knows."""
    tokens.state[RESULT] = min(tokens.state[RESULT], PARTLY)


@apart
def add_token(tokens: Any, kind: Any, number: Any) -> None:
    """Add a token to the row."""
    at = tokens.state[COUNT]
    if at == MAX_TOKENS:
        give_up(tokens)
        return
    tokens.kinds[at] = kind
    tokens.numbers[at] = number
    tokens.state[COUNT] = at + 1


@inline
def join(tokens: Any) -> None:
    """Concatenate the last item to those before it."""
    if tokens.state[ITEM] >= 0:
        if tokens.state[HAS_ITEMS]:
            add_token(tokens, CAT, 0)
        tokens.state[HAS_ITEMS] = 1
        tokens.state[ITEM] = -1


@apart
def begin_item(tokens: Any) -> None:
    """What comes next is an item of its own."""
    join(tokens)
    tokens.state[ITEM] = tokens.state[COUNT]
    tokens.state[IS_QUANTIFIED] = 0


@apart
def end_branch(tokens: Any) -> None:
    """End a branch, and combine it with those before it."""
    join(tokens)
    if not tokens.state[HAS_ITEMS]:
        add_token(tokens, EMPTY, 0)
    if tokens.state[HAS_BRANCHES]:
        add_token(tokens, ALT, 0)
    tokens.state[HAS_ITEMS] = 0


@apart
def open_group(tokens: Any, flags: Any) -> None:
    """``flags`` are those inside; those outside come back when it is closed."""
    state = tokens.state
    begin_item(tokens)
    if state[DEPTH] == _MAX_DEPTH:
        give_up(tokens)
        return
    at = state[DEPTH] * _GROUP_FIELDS
    tokens.groups[at] = state[FLAGS]
    tokens.groups[at + 1] = state[ITEM]
    tokens.groups[at + 2] = state[HAS_ITEMS]
    tokens.groups[at + 3] = state[HAS_BRANCHES]
    state[DEPTH] += 1
    state[FLAGS] = flags
    state[ITEM] = -1
    state[HAS_ITEMS] = state[HAS_BRANCHES] = 0


@apart
def close_group(tokens: Any) -> None:
    """End a group, which is an item then."""
    state = tokens.state
    if state[DEPTH] == 0:
        give_up(tokens)
        return
    end_branch(tokens)
    state[DEPTH] -= 1
    at = state[DEPTH] * _GROUP_FIELDS
    state[FLAGS] = tokens.groups[at]
    state[ITEM] = tokens.groups[at + 1]
    state[HAS_ITEMS] = tokens.groups[at + 2]
    state[HAS_BRANCHES] = tokens.groups[at + 3]
    state[IS_QUANTIFIED] = 0


@apart
def add_place(tokens: Any, kind: Any) -> None:
    """Add a place that is an item."""
    begin_item(tokens)
    add_token(tokens, kind, 0)
    if kind == UNKNOWN_PLACE:
        only_partly(tokens)


@apart
def add_set(tokens: Any, letter: Any) -> None:
    """Keep the set that was begun as an item; an unknown one if it has what is not known."""
    sets = tokens.sets
    if sets.counts[2]:
        sets.counts[2] = 0
        sets.counts[1] = sets.starts[sets.counts[0]]
        add_unknown(tokens)
        return
    if is_full(sets):  # there may be more sets than tokens: {0} takes back only tokens
        give_up(tokens)
        return
    begin_item(tokens)
    add_token(tokens, SET, close_set(sets, letter))


@apart
def add_unknown(tokens: Any) -> None:
    """Add a set that only RE2 knows, as an item."""
    begin_item(tokens)
    add_token(tokens, UNKNOWN, 0)
    only_partly(tokens)


@apart
def add_literal(tokens: Any, character: Any) -> None:
    """Add a character as an item."""
    folded = tokens.state[FLAGS] & FOLD != 0
    if character > LAST_CHARACTER or 0xD800 <= character < 0xE000:
        add_unknown(tokens)
        return
    begin_set(tokens.sets)
    add_range(tokens.sets, character, character, folded)
    letter = character | 32 | FOLDED if folded and is_letter(character) else character
    add_set(tokens, letter)


@inline
def _copy_item(tokens: Any, first: Any, length: Any) -> None:
    for i in range(first, first + length):
        add_token(tokens, np.int64(tokens.kinds[i]), tokens.numbers[i])


@apart
def repeat_item(tokens: Any, least: Any, most: Any) -> None:
    """Repeat the last item; ``most`` is -1 for any number of times."""
    state = tokens.state
    first = state[ITEM]
    if first < 0 or state[IS_QUANTIFIED]:
        give_up(tokens)
        return
    state[IS_QUANTIFIED] = 1
    length = state[COUNT] - first
    copies = max(least, most, 1)
    if least == 0 and most == 0:
        state[COUNT] = first
        add_token(tokens, EMPTY, 0)
    elif least <= 1 and most == -1:
        add_token(tokens, STAR if least == 0 else PLUS, 0)
    elif least == 0 and most == 1:
        add_token(tokens, OPTION, 0)
    elif copies * (length + 2) > MAX_TOKENS // 2 - state[COUNT]:
        # Fragments need to know only whether it is there at least once.
        add_token(tokens, STAR if least == 0 else PLUS, 0)
        only_partly(tokens)
    else:
        if least == 0:
            add_token(tokens, OPTION, 0)
        for i in range(1, copies):
            _copy_item(tokens, first, length)
            if i >= least:
                add_token(tokens, OPTION, 0)
            elif most == -1 and i == least - 1:
                add_token(tokens, PLUS, 0)
            add_token(tokens, CAT, 0)
