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
question (``history/summaries.py``). Where room runs out, ``renew`` copies all that is live into
larger arrays: groups whose documents have all expired, and steps and strings that nobody refers
to, are left behind. O(key) to find or make a group. The sender of documents chooses their keys, so
the hash has a secret key (``model/hashing.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.jit import i8, i8r, i8w, i8w2, inline, kernel, tuple_type, u1w, u8w, void
from bittern.model.events.typed import (
    MISSING,
    OTHER,
    STRING,
    compare,
    hash_value,
    put_string,
    string_stop,
)
from bittern.model.hashing import Key, hash_pair, secret_key

#: What a summary is asked about a document (``history/summaries.py``).
NEWEST, MAX, MIN, DISTINCT, KINDS, COUNT, LIST = range(7)
#: What a document's age is: always 0, its number, its time, its place in its group.
NO_AXIS, ARRIVAL, TIMES, PLACES = range(4)
#: How many kinds of values there are, missing included.
N_KINDS = 6
#: Older than every age.
NEVER = -(2**63)
#: What is found instead of a group.
NO_GROUP, NO_KEY = -1, -2
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
    key: Key  # of the hash


SPECS = tuple_type(Specs, *[i8r] * 8)
GROUPS_TYPE = tuple_type(Groups, i8w, i8w2, i8w2, i8w2, u1w, i8w, u8w)


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
def value_of(
    code: Any,
    at: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
) -> Any:
    """The value in row ``code`` and column ``at``; below 0 it is the constant ``-1 - code``."""
    if code >= 0:
        return kinds[code, at], words[code, at], ties[code, at]
    return fixed_kinds[-1 - code], fixed_words[-1 - code], fixed_ties[-1 - code]


@inline
def hash_key(
    key: Any,
    summary: Any,
    kind: Any,
    codes: Any,
    first: Any,
    last: Any,
    at: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
    heap: Any,
) -> Any:
    """Mix a summary, a kind and some values; -1 if one of them does not compare."""
    mixed = hash_pair(summary, kind, key)
    for k in range(first, last):
        own, word, tie = value_of(
            codes[k], at, kinds, words, ties, fixed_kinds, fixed_words, fixed_ties
        )
        if not comparable(own):
            return np.int64(-1)
        mixed = hash_value(own, word, tie, heap, mixed, key)
    return np.int64(mixed >> np.uint64(1))


@inline
def find_group(
    key: Any,
    slots: Any,
    groups: Any,
    parts: Any,
    own_heap: Any,
    summary: Any,
    kind: Any,
    codes: Any,
    first: Any,
    last: Any,
    at: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
    heap: Any,
) -> Any:
    """The group of a summary with these values; NO_GROUP, or NO_KEY if one does not compare."""
    mixed = hash_key(
        key,
        summary,
        kind,
        codes,
        first,
        last,
        at,
        kinds,
        words,
        ties,
        fixed_kinds,
        fixed_words,
        fixed_ties,
        heap,
    )
    if mixed < 0:
        return np.int64(NO_KEY)
    mask = len(slots) - 1
    slot = mixed & mask
    while slots[slot]:
        group = slots[slot] - 1
        if (
            groups[group, HASH] == mixed
            and groups[group, SUMMARY] == summary
            and groups[group, KIND] == kind
        ):
            part, same = groups[group, PART], True
            for k in range(first, last):
                own, word, tie = value_of(
                    codes[k], at, kinds, words, ties, fixed_kinds, fixed_words, fixed_ties
                )
                same = parts[part, PART_KIND] == own and (
                    compare(own, parts[part, WORD], parts[part, TIE], own_heap, word, tie, heap)
                    == 0
                )
                if not same:
                    break
                part += 1
            if same:
                return group
        slot = (slot + 1) & mask
    return np.int64(NO_GROUP)


@inline
def keep_string(heap: Any, tie: Any, own_heap: Any, used: Any) -> Any:
    """Copy a string into the groups' heap; where it is there, or -1 if there is no room."""
    at = used[BYTES]
    if at + string_stop(heap, tie) - tie > len(own_heap):
        return np.int64(-1)
    used[BYTES] = put_string(heap, tie, own_heap, at)
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
def new_group(
    key: Any,
    slots: Any,
    groups: Any,
    parts: Any,
    steps: Any,
    own_heap: Any,
    used: Any,
    question: Any,
    summary: Any,
    kind: Any,
    rows: Any,
    first: Any,
    last: Any,
    at: Any,
    kinds: Any,
    words: Any,
    ties: Any,
    fixed_kinds: Any,
    fixed_words: Any,
    fixed_ties: Any,
    heap: Any,
) -> Any:
    """A group without documents, for values that compare; -1 if there is no room for it."""
    group, part, step = used[GROUPS], used[PARTS], used[STEPS]
    room = np.int64(N_KINDS) if question == KINDS else np.int64(compares_value(question))
    if (
        group >= len(groups)
        or part + last - first > len(parts)
        or step + room > len(steps)
        or 2 * (group + 1) > len(slots)
    ):
        return np.int64(-1)
    mixed = hash_key(
        key,
        summary,
        kind,
        rows,
        first,
        last,
        at,
        kinds,
        words,
        ties,
        fixed_kinds,
        fixed_words,
        fixed_ties,
        heap,
    )
    for k in range(first, last):
        row = rows[k]
        tie = ties[row, at]
        if kinds[row, at] == STRING:
            tie = keep_string(heap, tie, own_heap, used)
            if tie < 0:
                return np.int64(-1)
        parts[part, PART_KIND], parts[part, WORD], parts[part, TIE] = (
            np.int64(kinds[row, at]),
            words[row, at],
            tie,
        )
        part += 1
    groups[group, HASH], groups[group, SUMMARY], groups[group, KIND] = mixed, summary, kind
    groups[group, PART] = used[PARTS]
    groups[group, AGE], groups[group, OTHER_AGE] = 0 if question == COUNT else NEVER, NEVER
    groups[group, STEP], groups[group, N_STEPS], groups[group, ROOM] = step, 0, room
    for i in range(room):
        steps[step + i, STEP_AGE] = NEVER
    used[GROUPS], used[PARTS], used[STEPS] = group + 1, part, step + room
    _file(slots, mixed, group)
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
