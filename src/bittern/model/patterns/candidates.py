"""Which patterns a value may satisfy, and running those that are left.

::

    value "a lomi tara"    literals found: lomi at 2, tara at 7
    filed under tara       (pattern 5, nothing before, lomi, left)    lomi is there and left of it:
    candidates             (pattern 5, value 0, from 7, to 7)         run its program from there

O(value bytes + what is filed under the literals found + what is run).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import apart, i4r, i4w, i8, i8r, i8w, kernel, tuple_type, u1r, u8r
from bittern.model.patterns.automaton import AUTOMATON, FINDING, N_FOUND, NOBODY_ASKS, TOO_MANY
from bittern.model.patterns.filing import RUN, SEARCH
from bittern.model.patterns.likes import holds_like
from bittern.model.patterns.regex.programs import HOLDS, NOT_TEXT, run_program
from bittern.model.patterns.windows import find_literals

#: Fields of what is filed under a literal.
PATTERN, BEFORE, SECOND, IS_LEFT = 0, 1, 2, 3
FIELDS = 4

#: Instead of where a program may begin: nothing is left to be run.
SATISFIED = -1

#: The Kelvin sign and the long s, which RE2 folds with k and s, begin with these bytes.
_KELVIN_LEAD, _LONG_S_LEAD = 0xE2, 0xC5


class Filing(NamedTuple):
    """What is filed under each literal, and the LIKE programs to run; see the module."""

    offsets: np.ndarray
    filed: np.ndarray
    actions: np.ndarray
    texts: np.ndarray
    text_offsets: np.ndarray


_FILING = tuple_type(Filing, i4r, i4r, u1r, u1r, i8r)

#: Fields of a candidate: a pattern, a value, and where in it the program may begin, first and last.
OF_PATTERN, _OF_VALUE, FIRST, LAST = 0, 1, 2, 3


@apart
def _unfolded(text: Any, begin: Any, end: Any, room: Any) -> Any:
    """Copy a value with ``k`` and ``s`` for their forms outside ASCII; its length then, or -1.

    It is -1 if there are none, and then nothing is copied.
    """
    position = begin
    while position < end and text[position] != _KELVIN_LEAD and text[position] != _LONG_S_LEAD:
        position += 1
    if position == end:
        return -1
    length = 0
    position = begin
    is_changed = False
    while position < end:
        byte = text[position]
        left = end - position
        if byte == 0xC5 and left > 1 and text[position + 1] == 0xBF:
            byte = 115
            position += 1
            is_changed = True
        elif (
            byte == 0xE2 and left > 2 and text[position + 1] == 0x84 and text[position + 2] == 0xAA
        ):
            byte = 107
            position += 2
            is_changed = True
        room[length] = byte
        length += 1
        position += 1
    return length if is_changed else -1


@apart
def find_fragments(
    automaton: Any,
    finding: Any,
    filing: Any,
    data: Any,
    begin: Any,
    end: Any,
    value: Any,
    folds: Any,
    copy: Any,
) -> Any:
    """Find the literals of one value; how much at most is filed under them, and the value's length.

    The length is that without the forms that ``copy`` has room for, and -1 if there are none of
    them: then places are those of the value itself.
    """
    spare = 4 * (end - begin) + 64 if filing.texts.shape[0] > 0 else NOBODY_ASKS
    length = _unfolded(data, begin, end, copy) if folds else -1
    if length >= 0:
        find_literals(automaton, finding, copy, 0, length, value, spare)
    else:
        find_literals(automaton, finding, data, begin, end, value, spare)
    most = np.int64(0)
    for k in range(finding.counts[N_FOUND]):
        literal = finding.found[k]
        most += filing.offsets[literal + 1] - filing.offsets[literal]
    return most, np.int64(length)


@apart
def add_candidates(
    finding: Any,
    filing: Any,
    data: Any,
    begin: Any,
    end: Any,
    value: Any,
    length: Any,
    room: Any,
    candidates: Any,
    n_fields: Any,
) -> Any:
    """Add what is filed under the literals that were found, as far as these tell.

    LIKE programs are run at once, in ``room``. Returns the number of fields of all candidates.
    """
    filed, actions = filing.filed, filing.actions
    marks, firsts, lasts, lengths = finding.marks, finding.firsts, finding.lasts, finding.lengths
    asks_places = filing.texts.shape[0] > 0
    is_placed = length < 0 and finding.counts[TOO_MANY] == 0
    for k in range(finding.counts[N_FOUND]):
        literal = finding.found[k]
        first = last = behind = np.int32(0)
        if asks_places:
            first = firsts[literal]
            behind = first + lengths[literal]
            last = lasts[literal] if is_placed else np.int32(end - begin)
        for row in range(filing.offsets[literal], filing.offsets[literal + 1]):
            entry = FIELDS * row
            second = filed[entry + SECOND]
            if second >= 0:
                if marks[second] != value:
                    continue
                if is_placed:
                    if filed[entry + IS_LEFT]:
                        if firsts[second] + lengths[second] > last:
                            continue
                    elif behind > lasts[second]:
                        continue
            pattern = filed[entry + PATTERN]
            begins = np.int32(SATISFIED)
            if actions[pattern] == RUN:
                program = filing.texts[
                    filing.text_offsets[pattern] : filing.text_offsets[pattern + 1]
                ]
                if not holds_like(data[begin:end], program, room):
                    continue
            elif actions[pattern] == SEARCH:
                before = filed[entry + BEFORE]
                is_near = before >= 0 and length < 0
                begins = max(np.int32(0), first - before) if is_near else np.int32(0)
            candidates[n_fields + OF_PATTERN] = pattern
            candidates[n_fields + _OF_VALUE] = value
            candidates[n_fields + FIRST] = begins
            candidates[n_fields + LAST] = max(np.int32(0), last)
            n_fields += FIELDS
    return n_fields


@kernel(i4w, AUTOMATON, FINDING, _FILING, u1r, i8r, i8, i8)
def find_candidates(
    automaton: Any, finding: Any, filing: Any, data: Any, offsets: Any, folds: Any, words: Any
) -> Any:
    """What is filed under the literals of each value; LIKE programs take so many ``words``."""
    candidates = np.empty(FIELDS * (2 * offsets.shape[0] + 16), np.int32)
    n_fields = np.int64(0)
    room = np.empty(words, np.uint64)
    longest = 0
    if folds:
        for value in range(offsets.shape[0] - 1):
            longest = max(longest, offsets[value + 1] - offsets[value])
    copy = np.empty(longest, np.uint8)
    for value in range(offsets.shape[0] - 1):
        begin, end = offsets[value], offsets[value + 1]
        most, length = find_fragments(
            automaton, finding, filing, data, begin, end, value, folds, copy
        )
        if n_fields + FIELDS * most > candidates.shape[0]:
            more = np.empty(2 * (n_fields + FIELDS * most), np.int32)
            more[:n_fields] = candidates[:n_fields]
            candidates = more
        n_fields = add_candidates(
            finding, filing, data, begin, end, value, length, room, candidates, n_fields
        )
    return candidates[:n_fields]


@kernel(i8w, i4w, u8r, i8r, u1r, i8r)
def run_programs(
    candidates: Any, programs: Any, program_offsets: Any, data: Any, offsets: Any
) -> Any:
    """Keys ``value * patterns + pattern`` of what is satisfied; complements of what RE2 is asked.

    Where there are many candidates, those of one pattern are run one after the other.
    """
    n_patterns = program_offsets.shape[0] - 1
    n_candidates = candidates.shape[0] // FIELDS
    if 4 * n_candidates > n_patterns:
        starts = np.zeros(n_patterns + 1, np.int64)
        for k in range(n_candidates):
            starts[candidates[FIELDS * k + OF_PATTERN] + 1] += 1
        for before in range(n_patterns):
            starts[before + 1] += starts[before]
        by_pattern = np.empty_like(candidates)
        for k in range(n_candidates):
            pattern = np.int64(candidates[FIELDS * k + OF_PATTERN])
            to = FIELDS * starts[pattern]
            starts[pattern] += 1
            for field in range(FIELDS):
                by_pattern[to + field] = candidates[FIELDS * k + field]
        candidates = by_pattern
    keys = np.empty(n_candidates, np.int64)
    n_keys = 0
    for k in range(n_candidates):
        at = FIELDS * k
        pattern, value = (
            np.int64(candidates[at + OF_PATTERN]),
            np.int64(candidates[at + _OF_VALUE]),
        )
        key = value * n_patterns + pattern
        first = np.int64(candidates[at + FIRST])
        if first != SATISFIED:
            begin, end = offsets[value], offsets[value + 1]
            program = program_offsets[pattern]
            holds = NOT_TEXT
            if program < program_offsets[pattern + 1]:
                last = begin + np.int64(candidates[at + LAST])
                holds = run_program(programs, program, data, begin, end, begin + first, last)
            if holds == NOT_TEXT:
                key = ~key
            elif holds != HOLDS:
                continue
        keys[n_keys] = key
        n_keys += 1
    return keys[:n_keys]


@kernel(i8w, i4r, u1r, i8r, u1r, i8r, i8)
def run_likes(
    patterns: Any, texts: Any, text_offsets: Any, data: Any, offsets: Any, words: Any
) -> Any:
    """The keys of the LIKE programs without a fragment that hold for a value."""
    n_patterns = text_offsets.shape[0] - 1
    keys = np.empty(16 + offsets.shape[0], np.int64)
    n_keys = 0
    room = np.empty(words, np.uint64)
    for value in range(offsets.shape[0] - 1):
        text = data[offsets[value] : offsets[value + 1]]
        for i in range(patterns.shape[0]):
            pattern = patterns[i]
            program = texts[text_offsets[pattern] : text_offsets[pattern + 1]]
            if not holds_like(text, program, room):
                continue
            if n_keys == keys.shape[0]:
                more = np.empty(2 * n_keys, np.int64)
                more[:n_keys] = keys
                keys = more
            keys[n_keys] = value * n_patterns + pattern
            n_keys += 1
    return keys[:n_keys].copy()
