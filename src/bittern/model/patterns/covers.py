r"""What a value must contain for a pattern to hold: covers of fragments, sought before all else.

A **cover** is a set of fragments of which at least one must occur. A sequence has several covers
and needs all of them, in their order; an alternation has the best cover of each branch together;
what may be left out has none. Adjoining literals are one fragment, and so are the ends of the
value: two bytes that UTF-8 never uses stand for them (``START``, ``END``), so that what is anchored
is found at its place only. Here they are written ``<`` and ``>``::

    ab(cd|ef+)?x{2}       ab, then xx
    ^GET /[a-z]+ok$       <GET /, then ok>
    LIKE 'a%b_c'          <a, then b, then c>
    (?i)error: [0-9]+     error:       found without regard to case
    (foo|bar)[a-z]        foo or bar
    [0-9]+|x              none: the first branch has no fragment

For every fragment it is known how many bytes at most of a match stand before it (``before``), so
that a program need not look further back. O(pattern length), times the branches of alternations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import apart, i8w, inline, tuple_type, u1w
from bittern.model.patterns.automaton import END, START
from bittern.model.patterns.likes import ANY_ONE, ANY_RUN
from bittern.model.patterns.regex.classes import FOLDED, KELVIN, LONG_S
from bittern.model.patterns.regex.tokens import (
    ALT,
    CAT,
    EMPTY,
    MAX_TOKENS,
    OPTION,
    PLUS,
    SET,
    STAR,
    TEXT_END,
    TEXT_START,
    UNKNOWN,
    count_of,
)

#: Longer literals are cut into several fragments: the automaton stays small.
MAX_FRAGMENT = 64
#: An alternation with more fragments than this is not worth filing under each.
MAX_COVER = 32
#: A pattern's first covers suffice.
MAX_COVERS = 8

#: How letters of a fragment are found: it has none, in their own case, in either case.
#: A value is searched in either case with k and s for the Kelvin sign and the long s: these two
#: are letters with a case of their own.
NEUTRAL, PLAIN, EITHER = 0, 1, 2

_MOST_FRAGMENTS = 4 * MAX_TOKENS
_MOST_BYTES = 16 * MAX_TOKENS
_UNBOUNDED = -1

# What is known of a part of the pattern: whether it is its run and nothing else, whether a place
# such as \b narrows it, the literal run that it ends with and what stands before that, the first of
# its covers, and how long it is in bytes.
_IS_EXACT, _IS_NARROWED, _RUN, _RUN_LENGTH, _RUN_CASE, _RUN_BEFORE = 0, 1, 2, 3, 4, 5
_COVERS, _LEAST, _MOST = 6, 7, 8
_PART_FIELDS = 9


class Room(NamedTuple):
    """Room to find the covers of one pattern after the other.

    ``fragments``: start in ``text``, length, case and bytes before it. ``covers``: the first
    fragment and their number. ``counts``: parts, covers, fragments, bytes; whether there is doubt.
    """

    parts: np.ndarray
    covers: np.ndarray
    fragments: np.ndarray
    text: np.ndarray
    counts: np.ndarray


ROOM = tuple_type(Room, i8w, i8w, i8w, u1w, i8w)
_N_PARTS, _N_COVERS, _N_FRAGMENTS, _N_BYTES, _DOUBT = 0, 1, 2, 3, 4


def room_for_covers() -> Room:
    """Room for the covers of one pattern after the other."""
    return Room(
        np.zeros(_PART_FIELDS * (MAX_TOKENS + 1), np.int64),
        np.zeros(2 * MAX_TOKENS + 2, np.int64),
        np.zeros(4 * _MOST_FRAGMENTS, np.int64),
        np.zeros(_MOST_BYTES, np.uint8),
        np.zeros(5, np.int64),
    )


@inline
def _clear(room: Any) -> None:
    room.counts[:] = 0


@inline
def count_covers(room: Any) -> Any:
    """How many covers were found."""
    return room.counts[_N_COVERS]


@inline
def _length_in_utf8(character: Any) -> Any:
    return 1 + (character >= 0x80) + (character >= 0x800) + (character >= 0x10000)


@inline
def _plus(a: Any, b: Any) -> Any:
    return a + b if a >= 0 and b >= 0 else np.int64(_UNBOUNDED)


@inline
def _put(room: Any, byte: Any) -> None:
    at = room.counts[_N_BYTES]
    if at == _MOST_BYTES:
        room.counts[_DOUBT] = 1
        return
    room.text[at] = byte
    room.counts[_N_BYTES] = at + 1


@apart
def _add_fragment(room: Any, start: Any, length: Any, case: Any, before: Any) -> None:
    at = room.counts[_N_FRAGMENTS]
    if at == _MOST_FRAGMENTS:
        room.counts[_DOUBT] = 1
        return
    fields = room.fragments[4 * at : 4 * at + 4]
    fields[0], fields[1], fields[2], fields[3] = start, length, case, before
    room.counts[_N_FRAGMENTS] = at + 1


@inline
def _is_end(byte: Any) -> Any:
    return byte >= END


@apart
def _insert_cover(room: Any, at: Any, start: Any, length: Any, case: Any, before: Any) -> None:
    """A cover of one fragment, before the cover ``at``; of nothing but one end, none."""
    if length == 0 or (length == 1 and _is_end(room.text[start])):
        return
    fragment = room.counts[_N_FRAGMENTS]
    _add_fragment(room, start, length, case, before)
    if room.counts[_DOUBT]:  # there was no room for it
        return
    covers = room.covers
    for i in range(room.counts[_N_COVERS], at, -1):
        covers[2 * i] = covers[2 * i - 2]
        covers[2 * i + 1] = covers[2 * i - 1]
    covers[2 * at] = fragment
    covers[2 * at + 1] = 1
    room.counts[_N_COVERS] += 1


@inline
def _seal(room: Any, part: Any, at: Any) -> None:
    """Make the run that a part ends with a cover, at ``at`` among the covers."""
    parts = room.parts
    _insert_cover(
        room,
        at,
        parts[part + _RUN],
        parts[part + _RUN_LENGTH],
        parts[part + _RUN_CASE],
        parts[part + _RUN_BEFORE],
    )
    parts[part + _RUN_LENGTH] = 0
    parts[part + _IS_EXACT] = 0


@inline
def worth(text: Any, start: Any, length: Any) -> Any:
    """How much a fragment tells: its bytes, and an end of the value as much as three of them."""
    ends = np.int64(_is_end(text[start])) + np.int64(
        length > 1 and _is_end(text[start + length - 1])
    )
    return length + 2 * ends


@inline
def _best_cover(room: Any, first: Any, end: Any) -> Any:
    """The cover whose least telling fragment tells most; -1 if there is none."""
    best: Any = np.int64(-1)
    most: Any = np.int64(0)
    for cover in range(first, end):
        least = np.int64(1 << 30)
        fragment = room.covers[2 * cover]
        for f in range(fragment, fragment + room.covers[2 * cover + 1]):
            least = min(least, worth(room.text, room.fragments[4 * f], room.fragments[4 * f + 1]))
        if least > most:
            best, most = cover, least
    return best


@apart
def _copy_fragments(room: Any, cover: Any) -> None:
    fragment = room.covers[2 * cover]
    for f in range(fragment, fragment + room.covers[2 * cover + 1]):
        fields = room.fragments[4 * f : 4 * f + 4]
        _add_fragment(room, fields[0], fields[1], fields[2], fields[3])


@inline
def _new_part(room: Any, is_exact: Any, least: Any, most: Any) -> Any:
    part = room.counts[_N_PARTS] * _PART_FIELDS
    room.counts[_N_PARTS] += 1
    room.parts[part : part + _PART_FIELDS] = 0
    room.parts[part + _IS_EXACT] = is_exact
    room.parts[part + _RUN] = room.counts[_N_BYTES]
    room.parts[part + _RUN_BEFORE] = most if not is_exact else 0
    room.parts[part + _COVERS] = room.counts[_N_COVERS]
    room.parts[part + _LEAST] = least
    room.parts[part + _MOST] = most
    return part


@apart
def _letter(room: Any, letter: Any) -> None:
    """A part that is one character."""
    character = letter & (FOLDED - 1)
    length = _length_in_utf8(character)
    most = length
    part = room.counts[_N_PARTS] * _PART_FIELDS
    if letter >= FOLDED and character == 107:  # k and s have another form that is longer
        most = 3
    elif letter >= FOLDED and character == 115:
        most = 2
    _new_part(room, 1, length if letter < FOLDED else 1, most)
    if length == 1:
        _put(room, character)
    else:
        shift = 6 * (length - 1)
        _put(room, (0xF00 >> length) & 0xFF | character >> shift)
        while shift > 0:
            shift -= 6
            _put(room, 0x80 | character >> shift & 0x3F)
    room.parts[part + _RUN_LENGTH] = length
    if letter >= FOLDED:
        room.parts[part + _RUN_CASE] = EITHER
    elif 97 <= character | 32 <= 122 or character in (KELVIN, LONG_S):
        room.parts[part + _RUN_CASE] = PLAIN


@apart
def _concatenate(room: Any) -> None:
    """Make one part of the last two."""
    parts, text = room.parts, room.text
    room.counts[_N_PARTS] -= 1
    right = room.counts[_N_PARTS] * _PART_FIELDS
    left = right - _PART_FIELDS
    run, length = parts[left + _RUN], parts[left + _RUN_LENGTH]
    more, added = parts[right + _RUN], parts[right + _RUN_LENGTH]
    case, case_added = parts[left + _RUN_CASE], parts[right + _RUN_CASE]
    is_exact = parts[left + _IS_EXACT] and parts[right + _IS_EXACT]
    if parts[right + _IS_EXACT] and length and added and _is_end(text[more]):
        last = text[run + length - 1]
        if last == text[more]:  # ^^ is ^
            more += 1
            added -= 1
        elif (
            last == END and text[more] == START
        ):  # $^ holds for the empty text, whose ends come the other way round
            room.counts[_DOUBT] = 1
    fits = length + added <= MAX_FRAGMENT and (
        min(case, case_added) == NEUTRAL or case == case_added
    )
    if not parts[right + _IS_EXACT] or not (fits or length == 0 or added == 0):
        for cover in range(parts[right + _COVERS], room.counts[_N_COVERS]):
            f = room.covers[2 * cover]
            for before in range(4 * f + 3, 4 * (f + room.covers[2 * cover + 1]), 4):
                room.fragments[before] = _plus(parts[left + _MOST], room.fragments[before])
        _seal(room, left, parts[right + _COVERS])
        parts[left + _RUN] = more
        parts[left + _RUN_LENGTH] = added
        parts[left + _RUN_CASE] = case_added
        parts[left + _RUN_BEFORE] = _plus(parts[left + _MOST], parts[right + _RUN_BEFORE])
        is_exact = 0
    elif length == 0:
        parts[left + _RUN] = more
        parts[left + _RUN_LENGTH] = added
        parts[left + _RUN_CASE] = case_added
        parts[left + _RUN_BEFORE] = parts[left + _MOST]
    elif added:
        if run + length != more:
            start = room.counts[_N_BYTES]
            for i in range(length):
                _put(room, text[run + i])
            for i in range(added):
                _put(room, text[more + i])
            parts[left + _RUN] = start
        parts[left + _RUN_LENGTH] = length + added
        parts[left + _RUN_CASE] = max(case, case_added)
    parts[left + _IS_EXACT] = is_exact
    parts[left + _IS_NARROWED] |= parts[right + _IS_NARROWED]
    parts[left + _LEAST] += parts[right + _LEAST]
    parts[left + _MOST] = _plus(parts[left + _MOST], parts[right + _MOST])


@apart
def _alternate(room: Any) -> None:
    """Make one part of the last two, of which either may stand there."""
    parts, covers = room.parts, room.covers
    room.counts[_N_PARTS] -= 1
    right = room.counts[_N_PARTS] * _PART_FIELDS
    left = right - _PART_FIELDS
    _seal(room, right, room.counts[_N_COVERS])
    n_before = room.counts[_N_COVERS]
    _seal(room, left, parts[right + _COVERS])
    middle = parts[right + _COVERS] + room.counts[_N_COVERS] - n_before
    one = _best_cover(room, parts[left + _COVERS], middle)
    other = _best_cover(room, middle, room.counts[_N_COVERS])
    room.counts[_N_COVERS] = parts[left + _COVERS]
    if one >= 0 and other >= 0 and covers[2 * one + 1] + covers[2 * other + 1] <= MAX_COVER:
        fragment = room.counts[_N_FRAGMENTS]
        _copy_fragments(room, one)
        _copy_fragments(room, other)
        at = parts[left + _COVERS]
        covers[2 * at] = fragment
        covers[2 * at + 1] = room.counts[_N_FRAGMENTS] - fragment
        room.counts[_N_COVERS] = at + 1
    parts[left + _LEAST] = min(parts[left + _LEAST], parts[right + _LEAST])
    is_bounded = parts[left + _MOST] >= 0 and parts[right + _MOST] >= 0
    parts[left + _MOST] = max(parts[left + _MOST], parts[right + _MOST]) if is_bounded else -1
    parts[left + _RUN_BEFORE] = parts[left + _MOST]


@apart
def _quantify(room: Any, kind: Any) -> None:
    """Repeat the last part, or let it be left out."""
    part = (room.counts[_N_PARTS] - 1) * _PART_FIELDS
    parts = room.parts
    _seal(room, part, room.counts[_N_COVERS])
    if kind != PLUS:
        room.counts[_N_COVERS] = parts[part + _COVERS]
        parts[part + _LEAST] = 0
    if kind != OPTION and parts[part + _MOST] > 0:
        parts[part + _MOST] = _UNBOUNDED
    parts[part + _RUN_BEFORE] = parts[part + _MOST]


@inline
def _end_of_value(room: Any, byte: Any) -> None:
    part = _new_part(room, 1, 0, 0)
    _put(room, byte)
    room.parts[part + _RUN_LENGTH] = 1


@apart
def find_covers(tokens: Any, room: Any) -> Any:
    """Find the covers of a row of tokens; returns whether the only one says it all.

    A value that has it is found then, and nothing has to be run.
    """
    _clear(room)
    sets = tokens.sets
    for i in range(count_of(tokens)):
        kind, number = tokens.kinds[i], tokens.numbers[i]
        if kind == SET and sets.letters[number] >= 0:
            _letter(room, np.int64(sets.letters[number]))
        elif kind == SET:
            least: Any = np.int64(4)
            most: Any = np.int64(1)
            for r in range(sets.starts[number], sets.starts[number + 1]):
                least = min(least, _length_in_utf8(np.int64(sets.lows[r])))
                most = max(most, _length_in_utf8(np.int64(sets.highs[r])))
            if sets.bits[2 * number] | sets.bits[2 * number + 1]:
                least = 1
            _new_part(room, 0, least, most)
        elif kind == UNKNOWN:
            _new_part(room, 0, 1, 4)
        elif kind == CAT:
            _concatenate(room)
        elif kind == ALT:
            _alternate(room)
        elif kind in (STAR, PLUS, OPTION):
            _quantify(room, kind)
        elif kind == TEXT_START:
            _end_of_value(room, START)
        elif kind == TEXT_END:
            _end_of_value(room, END)
        else:
            part = _new_part(room, 1, 0, 0)
            room.parts[part + _IS_NARROWED] = kind != EMPTY
        if room.counts[_DOUBT]:
            room.counts[_N_COVERS] = 0
            return False
    says_all = room.parts[_IS_EXACT] and not room.parts[_IS_NARROWED]
    _seal(room, 0, room.counts[_N_COVERS])
    return says_all and room.counts[_N_COVERS] == 1


@apart
def find_like_covers(program: Any, room: Any) -> None:
    """Find the covers of a LIKE program: its literal runs, the first and the last with an end."""
    _clear(room)
    length = program.shape[0]
    start = 0
    for i in range(length + 1):
        if i < length and program[i] != ANY_RUN and program[i] != ANY_ONE:
            continue
        for first in range(start, i, MAX_FRAGMENT):
            last = min(first + MAX_FRAGMENT, i)
            at = room.counts[_N_BYTES]
            if first == 0:
                _put(room, START)
            for j in range(first, last):
                _put(room, program[j])
            if last == length:
                _put(room, END)
            if room.counts[_N_COVERS] < MAX_TOKENS:
                _insert_cover(
                    room, room.counts[_N_COVERS], at, room.counts[_N_BYTES] - at, PLAIN, 0
                )
        start = i + 1
    if room.counts[_DOUBT]:
        room.counts[_N_COVERS] = 0
