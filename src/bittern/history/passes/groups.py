"""Groups: documents with the same key, in one hash table for all summaries, in flat arrays.

Two summaries, the first keyed by ``isbn``, the second without a key, after three documents::

    slots                . 2 . . 1 . 3 .         a group's number + 1, at the hash of its key
    groups   SUMMARY     0       0       1
             PART        0       1       2       the key's values are ``parts`` from here on
             AGE         5       6       -       what the summary keeps of the group
             STEP COUNT  - -     - -     0 2     its steps, if it has any, are from here on
    parts    word        "isbn1" "isbn2"         (kind, word, tie; strings are in the heap)
    steps    age, word, tie

A group is one row, so that finding one costs two cache misses. What it keeps is up to its summary's
question (``history/passes/summaries.py``). Where room runs out, ``renew`` copies all that is live
into larger arrays: groups whose documents have all expired, and steps and strings that nobody
refers to, are left behind. O(key) to find or make a group. The sender of documents chooses their
keys, so the hash has a secret key (``model/hashing.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.jit import (
    i8,
    i8r,
    i8r2,
    i8w,
    i8w2,
    inline,
    kernel,
    tuple_type,
    u1r,
    u1r2,
    u1w,
    u8w,
    void,
)
from bittern.model.events.typed.typed import (
    MISSING,
    OTHER,
    STRING,
    TypedValue,
    hash_value,
    order_of,
    put_string,
    string_stop,
)
from bittern.model.hashing import HashKey, hash_pair, secret_key

#: What a summary is asked about a document (``history/passes/summaries.py``).
NEWEST, MAX, MIN, DISTINCT, KINDS, COUNT, LIST = range(7)
#: What a document's age is: always 0, its number, its time, its place in its group.
NO_AXIS, ARRIVAL, TIMES, PLACES = range(4)
#: How many kinds of values there are, missing included.
N_KINDS = 6
#: Older than every age.
NEVER = -(2**63)
#: What is found instead of a group.
NO_GROUP, NO_KEY = -1, -2
#: What no value has as its tie.
NO_TIE = -(2**63)
#: Columns of a group. AGE: of the newest document, or how many there are; OTHER_AGE: of the newest
#: with another value; STEP, N_STEPS, ROOM: where its steps are, how many, and room for how many.
HASH, SUMMARY, KIND, PART, AGE, OTHER_AGE, STEP, N_STEPS, ROOM = range(9)
#: Columns of a part of a key, and of a step.
PART_KIND, WORD, TIE = range(3)
STEP_AGE = 0
#: In ``used``: how much of each array is taken.
GROUPS, PARTS, STEPS, BYTES = range(4)


class Specs(NamedTuple):
    """What the summaries are, one entry each; rows are attributes."""

    question: npt.NDArray[np.int64]
    axis: npt.NDArray[np.int64]
    axis_of: npt.NDArray[np.int64]  # TIMES: row of the time; PLACES: the COUNT that counts
    value: npt.NDArray[np.int64]  # row of the value compared, or -1
    key_starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]  # rows
    listed_starts: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]  # rows of the values that a LIST keeps


class Groups(NamedTuple):
    """All groups of all summaries."""

    slots: npt.NDArray[np.int64]  # a power of two of them, at least twice the groups
    groups: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    heap: npt.NDArray[np.uint8]
    used: npt.NDArray[np.int64]
    key: HashKey  # of the hash


class Operands(NamedTuple):
    """What is compared: the values of a batch, the same for events and documents, and constants."""

    kinds: npt.NDArray[np.uint8]  # one row for each attribute, one column for each event
    words: npt.NDArray[np.int64]
    ties: npt.NDArray[np.int64]
    fixed_kinds: npt.NDArray[np.uint8]  # of the constants of lookups
    fixed_words: npt.NDArray[np.int64]
    fixed_ties: npt.NDArray[np.int64]
    heap: npt.NDArray[np.uint8]  # of both


class GroupKey(NamedTuple):
    """What a group is found by: a summary, a kind, and the values with some codes."""

    summary: int
    kind: int
    codes: npt.NDArray[np.int64]
    first: int  # of the codes, which begin here
    last: int  # and end before this


SPECS = tuple_type(Specs, *[i8r] * 8)
GROUPS_TYPE = tuple_type(Groups, i8w, i8w2, i8w2, i8w2, u1w, i8w, u8w)
OPERANDS = tuple_type(Operands, u1r2, i8r2, i8r2, u1r, i8r, i8r, u1r)


def empty_groups(groups: int, parts: int, steps: int, heap: int) -> Groups:
    """No group yet, and room for so many."""
    return Groups(
        np.zeros(1 << max(4, (2 * groups).bit_length()), dtype=np.int64),
        np.empty((groups, 9), dtype=np.int64),
        np.empty((parts, 3), dtype=np.int64),
        np.empty((steps, 3), dtype=np.int64),
        np.empty(heap, dtype=np.uint8),
        np.zeros(4, dtype=np.int64),
        secret_key(),
    )


@inline
def comparable(kind: Any) -> Any:
    """Is it a kind that compares with itself?"""
    return kind not in (MISSING, OTHER)


@inline
def compares_value(question: Any) -> Any:
    """Does the question compare a value, so that groups are apart by its kind?"""
    return question in (MAX, MIN, DISTINCT)


@inline
def value_of(operands: Any, code: Any, event: Any) -> Any:
    """An event's value in row ``code``; below 0 it is the constant ``-1 - code``."""
    if code >= 0:
        kind, word = operands.kinds[code, event], operands.words[code, event]
        return TypedValue(kind, word, operands.ties[code, event], operands.heap)
    kind, word = operands.fixed_kinds[-1 - code], operands.fixed_words[-1 - code]
    return TypedValue(kind, word, operands.fixed_ties[-1 - code], operands.heap)


@inline
def no_value(operands: Any) -> Any:
    """A missing value."""
    kind: Any = np.uint8(MISSING)
    zero: Any = np.int64(0)
    return TypedValue(kind, zero, zero, operands.heap)


@inline
def held(table: Any, at: Any, kind: Any, heap: Any) -> Any:
    """The value, of this kind, in a row of ``parts`` or ``steps``."""
    return TypedValue(kind, table[at, WORD], table[at, TIE], heap)


@inline
def hash_key(state: Any, operands: Any, key: Any, event: Any) -> Any:
    """Mix a summary, a kind and some values; -1 if one of them does not compare."""
    mixed = hash_pair(key.summary, key.kind, state.key)
    for k in range(key.first, key.last):
        value = value_of(operands, key.codes[k], event)
        if not comparable(value.kind):
            return np.int64(-1)
        mixed = hash_value(value.kind, value.word, value.tie, value.heap, mixed, state.key)
    return np.int64(mixed >> np.uint64(1))


@inline
def _has_key(state: Any, group: Any, operands: Any, key: Any, event: Any) -> Any:
    """Are these the values that the group is of?"""
    part = state.groups[group, PART]
    for k in range(key.first, key.last):
        value = value_of(operands, key.codes[k], event)
        if state.parts[part, PART_KIND] != value.kind:
            return False
        if order_of(held(state.parts, part, value.kind, state.heap), value) != 0:
            return False
        part += 1
    return True


@inline
def find_group(state: Any, operands: Any, key: Any, event: Any) -> Any:
    """The group with this key; NO_GROUP, or NO_KEY if one of its values does not compare."""
    mixed = hash_key(state, operands, key, event)
    if mixed < 0:
        return np.int64(NO_KEY)
    mask = len(state.slots) - 1
    slot = mixed & mask
    while state.slots[slot]:
        group = state.slots[slot] - 1
        if (
            state.groups[group, HASH] == mixed
            and state.groups[group, SUMMARY] == key.summary
            and state.groups[group, KIND] == key.kind
            and _has_key(state, group, operands, key, event)
        ):
            return group
        slot = (slot + 1) & mask
    return np.int64(NO_GROUP)


@inline
def own_tie(state: Any, value: Any) -> Any:
    """A value's tie, a string copied into the groups' heap; NO_TIE if there is no room."""
    if value.kind != STRING:
        return value.tie
    at = state.used[BYTES]
    if at + string_stop(value.heap, value.tie) - value.tie > len(state.heap):
        return np.int64(NO_TIE)
    state.used[BYTES] = put_string(value.heap, value.tie, state.heap, at)
    return at


@inline
def move_row(source: Any, at: Any, target: Any, to: Any) -> None:
    """Copy a part or a step."""
    for column in range(3):
        target[to, column] = source[at, column]


@inline
def _file(slots: Any, mixed: Any, group: Any) -> None:
    mask = len(slots) - 1
    slot = mixed & mask
    while slots[slot]:
        slot = (slot + 1) & mask
    slots[slot] = group + 1


@inline
def new_group(state: Any, operands: Any, key: Any, question: Any, event: Any) -> Any:
    """A group without documents, for values that compare; -1 if there is no room for it."""
    groups, parts, used = state.groups, state.parts, state.used
    group, part, step = used[GROUPS], used[PARTS], used[STEPS]
    room = np.int64(N_KINDS) if question == KINDS else np.int64(compares_value(question))
    if (
        group >= len(groups)
        or part + key.last - key.first > len(parts)
        or step + room > len(state.steps)
        or 2 * (group + 1) > len(state.slots)
    ):
        return np.int64(-1)
    mixed = hash_key(state, operands, key, event)
    for k in range(key.first, key.last):
        value = value_of(operands, key.codes[k], event)
        tie = own_tie(state, value)
        if tie == NO_TIE:
            return np.int64(-1)
        parts[part, PART_KIND], parts[part, WORD] = np.int64(value.kind), value.word
        parts[part, TIE] = tie
        part += 1
    groups[group, HASH], groups[group, SUMMARY], groups[group, KIND] = mixed, key.summary, key.kind
    groups[group, PART] = used[PARTS]
    groups[group, AGE], groups[group, OTHER_AGE] = 0 if question == COUNT else NEVER, NEVER
    groups[group, STEP], groups[group, N_STEPS], groups[group, ROOM] = step, 0, room
    for i in range(room):
        state.steps[step + i, STEP_AGE] = NEVER
    used[GROUPS], used[PARTS], used[STEPS] = group + 1, part, step + room
    _file(state.slots, mixed, group)
    return group


@inline
def _newest_of(question: Any, group: Any, groups: Any, steps: Any, width: Any) -> Any:
    """How new is the newest document of the group?"""
    start, count = groups[group, STEP], groups[group, N_STEPS]
    if question == KINDS:
        best = np.int64(NEVER)
        for kind in range(N_KINDS):
            best = max(best, steps[start + kind, STEP_AGE])
        return best
    if question in (MAX, MIN):
        return steps[start + count - 1, STEP_AGE] if count else np.int64(NEVER)
    if question == LIST:
        return steps[start + count - width, STEP_AGE] if count else np.int64(NEVER)
    return groups[group, AGE]


@kernel(void, SPECS, GROUPS_TYPE, GROUPS_TYPE, i8, i8)
def _copy_live(specs: Any, old: Any, new: Any, first: Any, write: Any) -> None:
    """Copy the groups that are live from document ``first`` on; or only count what they take."""
    used = new.used
    used[:] = 0
    new.key[:] = old.key
    for group in range(old.used[GROUPS]):
        summary = old.groups[group, SUMMARY]
        question = specs.question[summary]
        width = specs.listed_starts[summary + 1] - specs.listed_starts[summary] + 1
        newest = _newest_of(question, group, old.groups, old.steps, width)
        if specs.axis[summary] == ARRIVAL and newest < first:
            continue
        own, part, step, at = used[GROUPS], used[PARTS], used[STEPS], used[BYTES]
        n_parts = specs.key_starts[summary + 1] - specs.key_starts[summary]
        for i in range(n_parts):
            source = old.groups[group, PART] + i
            tie = old.parts[source, TIE]
            if write:
                move_row(old.parts, source, new.parts, part + i)
            if old.parts[source, PART_KIND] == STRING:
                if write:
                    put_string(old.heap, tie, new.heap, at)
                    new.parts[part + i, TIE] = at
                at += string_stop(old.heap, tie) - tie
        n_steps = old.groups[group, ROOM]
        n_values = np.int64(0) if question == KINDS else old.groups[group, N_STEPS]
        for i in range(n_steps):
            source = old.groups[group, STEP] + i
            if write:
                move_row(old.steps, source, new.steps, step + i)
            is_text = old.groups[group, KIND] == STRING
            if question == LIST:
                is_text = i % width != 0 and old.steps[source, PART_KIND] == STRING
            if i < n_values and is_text:
                tie = old.steps[source, TIE]
                if write:
                    put_string(old.heap, tie, new.heap, at)
                    new.steps[step + i, TIE] = at
                at += string_stop(old.heap, tie) - tie
        used[GROUPS], used[PARTS], used[STEPS], used[BYTES] = (
            own + 1,
            part + n_parts,
            step + n_steps,
            at,
        )
        if write:
            for column in range(9):
                new.groups[own, column] = old.groups[group, column]
            new.groups[own, PART], new.groups[own, STEP] = part, step
            _file(new.slots, old.groups[group, HASH], own)


def renew(specs: Specs, groups: Groups, first: int, spare: int) -> Groups:
    """The same groups with twice the room they take, and ``spare`` more of each kind. O(groups)."""
    measured = groups._replace(used=np.zeros(4, dtype=np.int64))
    _copy_live(specs, groups, measured, first, 0)
    groups_, parts, steps, heap = (2 * n + spare for n in measured.used.tolist())
    fresh = empty_groups(groups_, parts, steps, heap + 32 * spare)
    _copy_live(specs, groups, fresh, first, 1)
    return fresh
