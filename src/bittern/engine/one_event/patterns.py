"""The patterns that one event satisfies: a compiled call between reading the event and matching it.

The call for one event (``kernel.py``) stops where it has read a string that patterns are asked of.
This call finds the patterns that hold, with the functions of a batch
(``model/patterns/candidates.py``), and leaves their channels in the scratch, from where the first
one goes on. What only RE2 can tell it leaves to Python, for just those values and patterns. So an
index without patterns has nothing of this in its call, nor compiles it.

The arrays of all pattern sets are found by a table of their own, ``WIDTH`` rows for each set::

    what the set consists of    actions, texts, programs, what is filed under nothing
    twice: an automaton         its arrays, what is filed under its literals, what a call finds
    what a call needs besides   the first channel, room for LIKE programs, settled patterns

A call numbers the values it looks at, so that notes of earlier values need not be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.engine.one_event.table import FOUND, N_SLOTS, PATTERNS, SLOTS, VALUES
from bittern.jit import array_at, i8, inline, kernel
from bittern.model.patterns.automaton import Automaton, Finding
from bittern.model.patterns.candidates import (
    FIELDS,
    FIRST,
    LAST,
    OF_PATTERN,
    SATISFIED,
    Filing,
    add_candidates,
    find_fragments,
)
from bittern.model.patterns.filing import RUN
from bittern.model.patterns.likes import holds_like
from bittern.model.patterns.regex.programs import HOLDS, NOT_TEXT, run_program
from bittern.model.tagged import STRING

if TYPE_CHECKING:
    from bittern.arrays import Int32s
    from bittern.engine.one_event.table import Scratch, TableArrays
    from bittern.model.events.batch import Constants
    from bittern.model.patterns.sets import PatternSet

#: Some room is too small; the scratch says how much is needed.
ROOM = -1
#: Integers of a question to RE2: a set, an entry and a pattern.
QUESTION = 3
_SET = ("actions", "texts", "text_offsets", "programs", "program_offsets", "unfiled")
_SET_TYPES = ("u1", "u1", "i8", "u8", "i8", "i4")
_AUTOMATON = (*Automaton._fields, "filed_offsets", "filed")
_AUTOMATON_TYPES = ("u1", "i4", "i4", "u1", "i4", "i4", "i4")
_PART = len(_AUTOMATON) + len(Finding._fields)
#: Rows of the table for each set, of which the last three are what a call needs besides.
WIDTH = len(_SET) + 2 * _PART + 3
_FIRST_CHANNEL, _ROOM, _SETTLED = WIDTH - 3, WIDTH - 2, WIDTH - 1
#: The number of the last value before all notes are forgotten.
LAST_VALUE = 2**31 - 2


class PatternArrays(NamedTuple):
    """The pattern sets of an index, the first channel of each, and each attribute's set, or -1."""

    sets: tuple[PatternSet, ...]
    first_channels: tuple[int, ...]
    set_of: Int32s

    @classmethod
    def of(cls, constants: Constants, n_attributes: int) -> PatternArrays:
        """Those of a rank space."""
        sets, firsts = constants.patterns, constants.first_pattern
        set_of = np.full(n_attributes, -1, np.int32)
        set_of[list(sets)] = np.arange(len(sets))
        return cls(tuple(sets.values()), tuple(firsts[each] for each in sets), set_of)

    def are_sound(self) -> bool:
        """Whether all arrays are as the kernel takes them to be."""
        names = [*_SET, *(half + name for half in ("plain_", "folded_") for name in _AUTOMATON)]
        dtypes = [*_SET_TYPES, *_AUTOMATON_TYPES, *_AUTOMATON_TYPES]
        return all(
            own[name].dtype == np.dtype(dtype) and own[name].flags.c_contiguous
            for own in (each.arrays() for each in self.sets)
            for name, dtype in zip(names, dtypes, strict=True)
        )

    def rows(self) -> list[TableArrays]:
        """The rows of each set, of which those that a call writes are new."""
        return [
            _rows_of(patterns, channel)
            for patterns, channel in zip(self.sets, self.first_channels, strict=True)
        ]

    def room(self, n: int) -> tuple[Int32s, Int32s, Int32s]:
        """New room for so many channels that are found, candidates, and questions to RE2."""
        found, candidates, questions = (
            np.empty(n * size, np.int32) for size in (1, FIELDS, QUESTION)
        )
        return found, candidates, questions


def _rows_of(patterns: PatternSet, first_channel: int) -> TableArrays:
    own = patterns.arrays()
    rows = [own[name] for name in _SET]
    for half, finding in zip(("plain_", "folded_"), patterns.findings(), strict=True):
        rows += [*(own[half + name] for name in _AUTOMATON), *finding]
    besides: tuple[npt.NDArray[Any], ...] = (
        np.array([first_channel]),
        np.empty(patterns.like_words, np.uint64),
        np.full(len(patterns), -1, np.int32),
    )
    return (*rows, *besides)


@inline
def _begin_again(sets: Any) -> None:
    """Remove all notes of earlier values, as the numbers of values begin again."""
    for row in range(0, len(sets), WIDTH):
        at = row + _SETTLED
        array_at(sets[at, 0], (sets[at, 1],), np.int32)[:] = -1
        for half in range(2):
            at = row + len(_SET) + half * _PART + len(_AUTOMATON)
            array_at(sets[at, 0], (sets[at, 1],), np.int32)[:] = -1


@inline
def _candidates(
    sets: Any,
    row: Any,
    filed: Any,
    data: Any,
    begin: Any,
    end: Any,
    value: Any,
    spare: Any,
    candidates: Any,
) -> Any:
    """What may hold for a value, as fields; returns how many there are, and how many there may be.

    If there may be more than there is room for, what was found is not complete.
    """
    actions, texts, text_offsets, room, unfiled = filed
    n, most = np.int64(0), FIELDS * len(unfiled)
    for half in range(2):
        at = row + len(_SET) + half * _PART
        automaton = Automaton(
            array_at(sets[at, 0], (sets[at, 1],), np.uint8),
            array_at(sets[at + 1, 0], (sets[at + 1, 1],), np.int32),
            array_at(sets[at + 2, 0], (sets[at + 2, 1],), np.int32),
            array_at(sets[at + 3, 0], (sets[at + 3, 1],), np.uint8),
            array_at(sets[at + 4, 0], (sets[at + 4, 1],), np.int32),
        )
        if len(automaton.hit_links) == 0:
            continue
        filing = Filing(
            array_at(sets[at + 5, 0], (sets[at + 5, 1],), np.int32),
            array_at(sets[at + 6, 0], (sets[at + 6, 1],), np.int32),
            actions,
            texts,
            text_offsets,
        )
        finding = Finding(
            array_at(sets[at + 7, 0], (sets[at + 7, 1],), np.int32),
            array_at(sets[at + 8, 0], (sets[at + 8, 1],), np.int32),
            array_at(sets[at + 9, 0], (sets[at + 9, 1],), np.int32),
            array_at(sets[at + 10, 0], (sets[at + 10, 1],), np.int32),
            array_at(sets[at + 11, 0], (sets[at + 11, 1],), np.int32),
            array_at(sets[at + 12, 0], (sets[at + 12, 1],), np.int64),
            array_at(sets[at + 13, 0], (sets[at + 13, 1],), np.uint64),
            array_at(sets[at + 14, 0], (sets[at + 14, 1],), np.uint64),
            array_at(sets[at + 15, 0], (sets[at + 15, 1],), np.uint64),
            array_at(sets[at + 16, 0], (sets[at + 16, 1],), np.uint64),
        )
        more, length = find_fragments(
            automaton, finding, filing, data, begin, end, value, half, spare
        )
        most += FIELDS * more
        if most <= len(candidates):
            n = add_candidates(
                finding, filing, data, begin, end, value, length, room, candidates, n
            )
    if most <= len(candidates):
        for i in range(len(unfiled)):
            pattern = np.int64(unfiled[i])
            first = 0
            if actions[pattern] == RUN:
                program = texts[text_offsets[pattern] : text_offsets[pattern + 1]]
                if not holds_like(data[begin:end], program, room):
                    continue
                first = SATISFIED
            candidates[n + OF_PATTERN] = pattern
            candidates[n + FIRST] = first
            candidates[n + LAST] = end - begin
            n += FIELDS
    return n, most


@kernel(i8, i8, i8)
def find_patterns(table: Any, n: Any) -> Any:
    """Find the patterns that the strings among ``n`` entries satisfy; how many RE2 is asked about.

    ``ROOM`` if there is not enough of it. O(value bytes + fragments found + what is run).
    """
    t = array_at(table, (N_SLOTS, 2), np.int64)
    data = array_at(t[SLOTS.data, 0], (t[SLOTS.data, 1],), np.uint8)
    spare = array_at(t[SLOTS.spare, 0], (t[SLOTS.spare, 1],), np.uint8)
    attributes = array_at(t[SLOTS.attributes, 0], (t[SLOTS.attributes, 1],), np.int32)
    tags = array_at(t[SLOTS.tags, 0], (t[SLOTS.tags, 1],), np.uint8)
    payloads = array_at(t[SLOTS.payloads, 0], (t[SLOTS.payloads, 1],), np.int64)
    lengths = array_at(t[SLOTS.lengths, 0], (t[SLOTS.lengths, 1],), np.int32)
    state = array_at(t[SLOTS.state, 0], (t[SLOTS.state, 1],), np.int64)
    set_of = array_at(t[SLOTS.set_of, 0], (t[SLOTS.set_of, 1],), np.int32)
    sets = array_at(t[SLOTS.sets, 0], (t[SLOTS.sets, 1], 2), np.int64)
    channels = array_at(t[SLOTS.found, 0], (t[SLOTS.found, 1],), np.int32)
    candidates = array_at(t[SLOTS.candidates, 0], (t[SLOTS.candidates, 1],), np.int32)
    questions = array_at(t[SLOTS.questions, 0], (t[SLOTS.questions, 1],), np.int32)
    n_found, n_asked = np.int64(0), np.int64(0)
    for i in range(n):
        attribute = np.int64(attributes[i])
        if tags[i] != STRING or attribute >= len(set_of) or set_of[attribute] < 0:
            continue
        if state[VALUES] >= LAST_VALUE:
            _begin_again(sets)
            state[VALUES] = 0
        state[VALUES] += 1
        value = state[VALUES]
        row = WIDTH * np.int64(set_of[attribute])
        actions = array_at(sets[row, 0], (sets[row, 1],), np.uint8)
        texts = array_at(sets[row + 1, 0], (sets[row + 1, 1],), np.uint8)
        text_offsets = array_at(sets[row + 2, 0], (sets[row + 2, 1],), np.int64)
        programs = array_at(sets[row + 3, 0], (sets[row + 3, 1],), np.uint64)
        program_offsets = array_at(sets[row + 4, 0], (sets[row + 4, 1],), np.int64)
        unfiled = array_at(sets[row + 5, 0], (sets[row + 5, 1],), np.int32)
        first_channel = array_at(sets[row + _FIRST_CHANNEL, 0], (1,), np.int64)[0]
        room = array_at(sets[row + _ROOM, 0], (sets[row + _ROOM, 1],), np.uint64)
        settled = array_at(sets[row + _SETTLED, 0], (sets[row + _SETTLED, 1],), np.int32)
        begin, end = payloads[i], payloads[i] + lengths[i]
        filed = (actions, texts, text_offsets, room, unfiled)
        n_fields, most = _candidates(sets, row, filed, data, begin, end, value, spare, candidates)
        most = n_found + n_asked + most // FIELDS
        if most > len(channels):
            state[PATTERNS] = most
            return np.int64(ROOM)
        for at in range(0, n_fields, FIELDS):
            pattern = np.int64(candidates[at + OF_PATTERN])
            if settled[pattern] == value:  # several of its fragments were found
                continue
            holds, first = np.int64(HOLDS), np.int64(candidates[at + FIRST])
            if first != SATISFIED:
                holds, program = np.int64(NOT_TEXT), program_offsets[pattern]
                if program < program_offsets[pattern + 1]:
                    last = begin + candidates[at + LAST]
                    holds = np.int64(
                        run_program(programs, program, data, begin, end, begin + first, last)
                    )
            if holds == HOLDS:
                settled[pattern] = value
                channels[n_found] = first_channel + pattern
                n_found += 1
            elif holds == NOT_TEXT:
                settled[pattern] = value
                question = QUESTION * n_asked
                questions[question], questions[question + 1] = set_of[attribute], i
                questions[question + 2] = pattern
                n_asked += 1
    state[FOUND] = n_found
    return n_asked


def ask_re2(patterns: PatternArrays, scratch: Scratch, n: int) -> None:
    """Add the patterns of ``n`` questions that RE2 finds in their values."""
    asked: dict[tuple[int, int], list[int]] = {}
    for number, entry, pattern in scratch.questions[: QUESTION * n].reshape(-1, QUESTION).tolist():
        asked.setdefault((number, entry), []).append(pattern)
    found: list[int] = []
    for (number, entry), own in asked.items():
        start = int(scratch.payloads[entry])
        end = start + int(scratch.lengths[entry])
        first = patterns.first_channels[number]
        holding = patterns.sets[number].search(scratch.data, start, end, own)
        found += [first + pattern for pattern in holding]
    scratch.add_channels(found)
