r"""A regular expression as a program over characters: a bit for each place in it, 64 at most.

The places of ``\bab+c|d``, in the order of the text, and what may come behind each::

    place     0     1    2       3    4    5
    matches   \b    a    b       c    d    (the end)
    behind    1     2    2, 3    5    5

Running goes through a value with the set of places that may come next. The places of which the
next character is one (a mask for each class of characters) are left, and all that may come behind
them is the new set; a place without a character, as ``\b``, is passed when its condition holds.
The pattern is found when the set has the end. Where only the next place may come behind one, that
is a shift for all of them, and where that or the place itself may, as after ``b+``, it stays as
well; the others have a mask each.

The words of a program: where it may begin; for each kind of place those of that kind; those with a
mask of their own; those that stay; counts (places, classes, wide ranges); the class of each ASCII
character, eight to a word; a mask for each class; what may come behind each place that has a mask;
and, for wider characters, where each range begins (and its class, in the upper half), the first at
128::

    first   start end line line \b   own   stay   counts   classes x 16   masks   behind   ranges

A value has to be UTF-8 as far as it is read: else the answer is ``NOT_TEXT``, and RE2 is asked.
O(value x places) at worst, some 3 ns a byte; 200 to 400 bytes for an ordinary program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import apart, inline, popcount, tuple_type, u8w
from bittern.model.patterns.regex.classes import MAX_RANGES
from bittern.model.patterns.regex.tokens import (
    ALT,
    CAT,
    EMPTY,
    LINE_END,
    LINE_START,
    MAX_TOKENS,
    OPTION,
    PLUS,
    SET,
    TEXT_END,
    TEXT_START,
    count_of,
)

#: Places, without the end.
MAX_PLACES = 62
#: A program is not longer: other regular expressions are RE2's.
MAX_WORDS = 1_024

#: What running says.
FAILS, HOLDS, NOT_TEXT = 0, 1, -1

_PLACE_KINDS = 5
_FIRST, _OF_KIND, _OWN, _STAY, _COUNTS, _CLASSES = 0, 1, 6, 7, 8, 9
_MASKS = _CLASSES + 16
_ONE = np.uint64(1)


class Making(NamedTuple):
    """Room to make a program in.

    ``stack``: first, last and whether it may be empty, of what is combined next. ``masks``: the
    places that each ASCII character is one of. ``behind``: by place. ``out``: the program.
    """

    stack: np.ndarray
    masks: np.ndarray
    behind: np.ndarray
    sets: np.ndarray
    edges: np.ndarray
    out: np.ndarray


MAKING = tuple_type(Making, u8w, u8w, u8w, u8w, u8w, u8w)


def room_to_make() -> Making:
    """Room for one program after the other."""
    return Making(
        np.zeros(3 * MAX_TOKENS + 3, np.uint64),
        np.zeros(128, np.uint64),
        np.zeros(64, np.uint64),
        np.zeros(64, np.uint64),
        np.zeros(2 * MAX_RANGES + 4, np.uint64),
        np.zeros(MAX_WORDS, np.uint64),
    )


@inline
def _bit(place: Any) -> Any:
    return _ONE << np.uint64(place)


@inline
def _number_of(bit: Any) -> Any:
    """The number of a place, from its bit."""
    return np.int64(popcount(bit - _ONE))


@inline
def _let_follow(making: Any, lasts: Any, firsts: Any) -> None:
    while lasts:
        bit = lasts & (~lasts + _ONE)
        making.behind[_number_of(bit)] |= firsts
        lasts ^= bit


@apart
def _arrange(tokens: Any, making: Any) -> Any:
    """Number the places and let them follow each other; their number, or -1 if there are many.

    Leaves the set of each place, plus 1, in ``sets``, and the first words of the program.
    """
    stack, out = making.stack, making.out
    out[: _COUNTS + 1] = 0
    places = 0
    top = 0  # of the stack, in words
    for i in range(count_of(tokens)):
        kind = tokens.kinds[i]
        if kind <= SET:
            if places == MAX_PLACES:
                return -1
            making.behind[places] = 0
            making.sets[places] = np.uint64(tokens.numbers[i] + 1) if kind == SET else np.uint64(0)
            if kind != SET:
                out[_OF_KIND + np.int64(kind)] |= _bit(places)
            stack[top] = stack[top + 1] = _bit(places)
            stack[top + 2] = 0
            places += 1
            top += 3
        elif kind == EMPTY:
            stack[top] = stack[top + 1] = 0
            stack[top + 2] = 1
            top += 3
        elif kind in (CAT, ALT):
            top -= 3
            left = top - 3
            if kind == CAT:
                _let_follow(making, stack[left + 1], stack[top])
                if stack[left + 2]:
                    stack[left] |= stack[top]
                kept = stack[left + 1] if stack[top + 2] else np.uint64(0)
                stack[left + 1] = stack[top + 1] | kept
                stack[left + 2] &= stack[top + 2]
            else:
                for k in range(3):
                    stack[left + k] |= stack[top + k]
        else:
            if kind != OPTION:
                _let_follow(making, stack[top - 2], stack[top - 3])
            if kind != PLUS:
                stack[top - 1] = 1
    end = _bit(places)
    _let_follow(making, stack[1], end)
    out[_FIRST] = stack[0] | (end if stack[2] else np.uint64(0))
    return places


@inline
def _class_of(out: Any, mask: Any, classes: Any) -> Any:
    """The class with this mask; the caller counts it if it is new."""
    number = 0
    while number < classes and out[_MASKS + number] != mask:
        number += 1
    out[_MASKS + number] = mask
    return number


@apart
def make_program(tokens: Any, making: Any) -> Any:
    """Make a program of tokens that are all known, in ``making.out``; its words, or 0."""
    out, sets = making.out, tokens.sets
    places = _arrange(tokens, making)
    if places < 0:
        return 0
    making.masks[:] = 0
    edges = making.edges  # where ranges of wide characters begin, or end before
    edges[0] = 128
    n_edges = 1
    for place in range(places):
        number = np.int64(making.sets[place]) - 1
        if number < 0:
            continue
        for half in range(2):
            left = sets.bits[2 * number + half]
            while left:
                bit = left & (~left + _ONE)
                making.masks[64 * half + _number_of(bit)] |= _bit(place)
                left ^= bit
        for k in range(sets.starts[number], sets.starts[number + 1]):
            for begins in (np.uint64(sets.lows[k]), np.uint64(sets.highs[k] + 1)):
                at = n_edges
                while at > 0 and edges[at - 1] > begins:
                    at -= 1
                if edges[at - 1] == begins:
                    continue
                if n_edges > MAX_RANGES:
                    return 0
                for j in range(n_edges, at, -1):
                    edges[j] = edges[j - 1]
                edges[at] = begins
                n_edges += 1
    classes = 0
    for character in range(128):
        mask = making.masks[character]
        number = _class_of(out, mask, classes)
        classes = max(classes, number + 1)
        word = _CLASSES + (character >> 3)
        if character & 7 == 0:
            out[word] = 0
        out[word] |= np.uint64(number) << np.uint64((character & 7) << 3)
    for k in range(n_edges):
        edge = np.int64(edges[k])
        mask = np.uint64(0)
        for place in range(places):
            number = np.int64(making.sets[place]) - 1
            if number >= 0:
                for r in range(sets.starts[number], sets.starts[number + 1]):
                    if sets.lows[r] <= edge <= sets.highs[r]:
                        mask |= _bit(place)
        number = _class_of(out, mask, classes)
        classes = max(classes, number + 1)
        edges[k] |= np.uint64(number) << np.uint64(32)
    if _MASKS + classes + places + n_edges > MAX_WORDS:
        return 0
    length = _MASKS + classes
    for place in range(places):
        next_one = _bit(place + 1)
        if making.sets[place] and making.behind[place] == next_one | _bit(place):
            out[_STAY] |= _bit(place)
        elif making.sets[place] == 0 or making.behind[place] != next_one:
            out[_OWN] |= _bit(place)
            out[length] = making.behind[place]
            length += 1
    for k in range(n_edges):
        out[length + k] = edges[k]
    out[_COUNTS] = np.uint64(places | classes << 8 | n_edges << 20)
    return length + n_edges


def check_program(words: np.ndarray) -> None:
    """Assert that running a program stays inside of it. O(words)."""
    assert len(words) > _MASKS
    counts = int(words[_COUNTS])
    places, classes, ranges = counts & 0xFF, counts >> 8 & 0xFFF, counts >> 20
    assert places <= MAX_PLACES
    own = int(words[_OWN])
    assert own | int(words[_STAY]) < 1 << places
    assert len(words) == _MASKS + classes + own.bit_count() + ranges
    assert ranges > 0
    known = (1 << places + 1) - 1
    behind = words[_MASKS + classes : _MASKS + classes + own.bit_count()].tolist()
    assert all(word <= known for word in [int(words[_FIRST]), *behind])
    numbers = words[_CLASSES:_MASKS].view(np.uint8).tolist()
    assert all(n < classes for n in [*numbers, *(w >> 32 for w in words[-ranges:].tolist())])
    conditions = np.bitwise_or.reduce(words[_OF_KIND : _OF_KIND + _PLACE_KINDS])
    assert int(conditions) | own == own


@inline
def _is_word(data: Any, at: Any, begin: Any, end: Any) -> Any:
    if at < begin or at >= end:
        return False
    byte = data[at]
    return 48 <= byte <= 57 or (97 <= byte | 32 <= 122 and byte < 128) or byte == 95


@inline
def _place_holds(kind: Any, data: Any, at: Any, begin: Any, end: Any) -> Any:
    if kind == TEXT_START:
        return at == begin
    if kind == TEXT_END:
        return at == end
    if kind == LINE_START:
        return at == begin or data[at - 1] == 10
    if kind == LINE_END:
        return at == end or data[at] == 10
    return _is_word(data, at - 1, begin, end) != _is_word(data, at, begin, end)


@inline
def _decode(data: Any, at: Any, end: Any) -> Any:
    """The wide character at a place and its length, 0 if it is not UTF-8."""
    first = np.int64(data[at])
    if first < 0xC2 or first > 0xF4:
        return np.int64(0), 0
    length = 2 + (first >= 0xE0) + (first >= 0xF0)
    if at + length > end:
        return np.int64(0), 0
    character = first & (0x7F >> length)
    for i in range(at + 1, at + length):
        if data[i] & 0xC0 != 0x80:
            return np.int64(0), 0
        character = character << 6 | np.int64(data[i]) & 0x3F
    if length == 3 and (character < 0x800 or 0xD800 <= character < 0xE000):
        return np.int64(0), 0
    if length == 4 and (character < 0x10000 or character > 0x10FFFF):
        return np.int64(0), 0
    return character, length


@inline
def _behind(words: Any, behinds: Any, own: Any, bit: Any) -> Any:
    """What may come behind a place that has a mask of its own."""
    return words[behinds + np.int64(popcount(own & (bit - _ONE)))]


@apart
def _pass_places(words: Any, base: Any, behinds: Any, enabled: Any, value: Any, at: Any) -> Any:
    """Add what comes behind the places without a character whose condition holds here."""
    data, begin, end = value
    own = words[base + _OWN]
    done = np.uint64(0)
    is_changed = True
    while is_changed:  # each turn passes a place that was not passed before
        is_changed = False
        for kind in range(_PLACE_KINDS):
            left = enabled & words[base + _OF_KIND + kind] & ~done
            if not left:
                continue
            done |= left
            if _place_holds(kind, data, at, begin, end):
                is_changed = True
                while left:
                    bit = left & (~left + _ONE)
                    enabled |= _behind(words, behinds, own, bit)
                    left ^= bit
    return enabled


@apart
def run_program(
    words: Any, base: Any, data: Any, begin: Any, end: Any, first: Any, last: Any
) -> Any:
    """Whether a program is found in ``data[begin:end]``, beginning between ``first`` and ``last``.

    It may look at all of the value. O((end - first) x places).
    """
    counts = np.int64(words[base + _COUNTS])
    classes = counts >> 8 & 0xFFF
    behinds = base + _MASKS + classes
    own, stay = words[base + _OWN], words[base + _STAY]
    ranges = behinds + np.int64(popcount(own))
    conditions = np.uint64(0)
    for kind in range(_PLACE_KINDS):
        conditions |= words[base + _OF_KIND + kind]
    beginning = words[base + _FIRST]
    goal = _bit(counts & 0xFF)
    enabled = np.uint64(0)
    at = first
    while at < end and data[at] & 0xC0 == 0x80 and at < first + 4:  # within a character
        at += 1
    while True:
        if at <= last:
            enabled |= beginning
        elif not enabled:
            return FAILS
        if enabled & conditions:
            enabled = _pass_places(words, base, behinds, enabled, (data, begin, end), at)
        if enabled & goal:
            return HOLDS
        if at >= end:
            return FAILS
        byte = np.int64(data[at])
        if byte < 128:
            number = words[base + _CLASSES + (byte >> 3)] >> np.uint64((byte & 7) << 3)
            number = np.int64(number & np.uint64(0xFF))
            at += 1
        else:
            character, length = _decode(data, at, end)
            if length == 0:
                return NOT_TEXT
            at += length
            k = ranges + (counts >> 20) - 1
            while k > ranges and np.int64(words[k] & np.uint64(0xFFFFFFFF)) > character:
                k -= 1
            number = np.int64(words[k] >> np.uint64(32))
        moved = enabled & words[base + _MASKS + number]
        enabled = (moved & ~own) << _ONE | moved & stay
        left = moved & own
        while left:
            bit = left & (~left + _ONE)
            enabled |= _behind(words, behinds, own, bit)
            left ^= bit
