r"""Texts cut into words, as the lexer cuts them, and their keys looked up, in one pass.

``language/shapes.py`` says what a key is and why two texts with one key differ in their parameters
alone. This is the same cut, for what is plain::

    text     price <= 580 AND model = 'iphone5s'
    words    0..5     9..12 13..16 17..22  25..35         where each starts and stops
    letters  a        n     AND   a       s
    key      a ` <= ` n ` ` AND ` ` a ` = ` s             a byte above 127 for each letter

Not plain, and left to ``Shapes.read``: names in back-quotes or with letters beyond ASCII, numbers
of more than 18 digits, with a sign that stands apart, or with more than an exponent behind them,
incomplete strings, those with ``\u``, comments, quantifiers, MISSING, control characters, bytes
that are not UTF-8, and texts that are too long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s, UInt64s
from bittern.engine.texts.distinct import DISTINCT, number_of
from bittern.jit import frozen, i4w, i8r, i8w, inline, kernel, tuple_type, u1r, u1w, u8r, void
from bittern.language.lexer import KEYWORDS, MISSING, QUANTIFIERS, TERM_WORDS, TYPES
from bittern.language.limits import MAX_LENGTH
from bittern.model.events.json.tokens import is_utf8
from bittern.model.strings import byte_at

#: The letters of a key as ``Shapes`` writes them, by the number that stands for them here.
LETTERS = ("a", "n", "s", *sorted(KEYWORDS | TERM_WORDS | TYPES))
NAME, NUMBER, STRING = 0, 1, 2
AND, OR = LETTERS.index("AND"), LETTERS.index("OR")
#: The byte of a key that stands for letter 0.
FIRST_LETTER = 128
#: In place of a key's number: the text is not plain, or there are more keys than are kept.
NOT_PLAIN, NOT_KEPT = -1, -2
#: So many keys are kept, of texts of any shape.
MOST_KEYS = 4096

_KEYWORD, _REFUSED = 64, 128  # flags of a special word; its letter in the bits below
_LONGEST = 16
_MOST_DIGITS, _MOST_EXPONENT_DIGITS, _MOST_DOTS = 18, 2, 60
_OTHER, _LETTER, _DIGIT, _SIGN, _DOT, _QUOTE, _SPACE, _STRANGE = range(8)
_SLASH, _STAR, _MINUS, _BACKSLASH, _POINT = map(ord, "/*-\\.")
_FIRST_OF_SIGNS, _SECOND_OF_SIGNS = 0xE2, 0x88  # of the signs for quantifiers
_CASE = np.uint64(0xDF)
_BYTE, _WORD = np.uint64(8), 8


class WordTables(NamedTuple):
    """What bytes are, and the special words: a hash table of their upper-case bytes."""

    kinds: npt.NDArray[np.uint8]
    firsts: UInt64s  # the first eight bytes of a word
    seconds: UInt64s  # the second eight
    flags: npt.NDArray[np.uint8]  # 0: no word


TABLES = tuple_type(WordTables, u1r, u8r, u8r, u1r)


class CutTexts(NamedTuple):
    """Some texts of a column, and their words one after the other."""

    data: npt.NDArray[np.uint8]
    offsets: Int64s  # where each of the texts begins, and the last one ends
    starts: Int64s
    stops: Int64s
    letters: npt.NDArray[np.uint8]
    first_words: Int64s  # of each text, and the end


#: ``starts`` and ``stops`` have room for sorted words, too (``conjunctions.py``).
CUT_TEXTS = tuple_type(CutTexts, u1r, i8r, i8w, i8w, u1w, i8w)


def _kind(byte: int) -> int:
    char = chr(byte)
    if byte > 126 or (byte < 32 and char not in "\t\n\r\f\v") or char == "`":
        return _STRANGE
    if char == "_" or char.isalpha():
        return _LETTER
    if char.isdigit():
        return _DIGIT
    kinds = {"+": _SIGN, "-": _SIGN, ".": _DOT, "'": _QUOTE, '"': _QUOTE}
    return kinds.get(char, _SPACE if char.isspace() else _OTHER)


def _tables() -> WordTables:
    """Special words, each at the first free place from its hash on."""
    made = WordTables(
        np.array([_kind(byte) for byte in range(256)], dtype=np.uint8),
        np.zeros(256, dtype=np.uint64),
        np.zeros(256, dtype=np.uint64),
        np.zeros(256, dtype=np.uint8),
    )
    flags = {word: LETTERS.index(word) for word in TERM_WORDS | TYPES}
    flags |= {word: LETTERS.index(word) | _KEYWORD for word in KEYWORDS}
    flags |= dict.fromkeys((MISSING, *QUANTIFIERS), _REFUSED)
    for word, flag in sorted(flags.items()):
        raw = word.encode()
        first, second = (int.from_bytes(half, "little") for half in (raw[:8], raw[8:]))
        at = _place(first, second)
        while made.flags[at]:
            at = (at + 1) % 256
        made.firsts[at], made.seconds[at], made.flags[at] = first, second, flag
    return frozen(made)


def _place(first: int, second: int) -> int:
    mixed = first ^ second * 31
    return (mixed ^ mixed >> 8 ^ mixed >> 16 ^ mixed >> 24 ^ mixed >> 32) & 255


READING_TABLES = _tables()


@inline
def _special(tables: Any, data: Any, start: Any, stop: Any) -> Any:
    """The flags of a word that has a meaning of its own, in any case, else 0."""
    if stop - start > _LONGEST:
        return np.uint8(0)
    first, second = np.uint64(0), np.uint64(0)
    shift = np.uint64(0)
    for at in range(start, min(stop, start + _WORD)):
        first |= (byte_at(data, at) & _CASE) << shift
        shift += _BYTE
    shift = np.uint64(0)
    for at in range(start + _WORD, stop):
        second |= (byte_at(data, at) & _CASE) << shift
        shift += _BYTE
    mixed = first ^ second * np.uint64(31)
    mixed ^= (
        mixed >> np.uint64(8)
        ^ mixed >> np.uint64(16)
        ^ mixed >> np.uint64(24)
        ^ mixed >> np.uint64(32)
    )
    place = mixed & np.uint64(255)
    while tables.flags[place]:
        if tables.firsts[place] == first and tables.seconds[place] == second:
            return tables.flags[place]
        place = (place + np.uint64(1)) & np.uint64(255)
    return np.uint8(0)


@inline
def _kind_at(tables: Any, data: Any, at: Any, stop: Any) -> Any:
    """The kind of a byte; behind the end, that of a space."""
    return tables.kinds[byte_at(data, at)] if at < stop else np.uint8(_SPACE)


@inline
def _are(data: Any, at: Any, stop: Any, first: Any, second: Any) -> Any:
    """Whether these two bytes stand here."""
    return (
        at + 1 < stop
        and byte_at(data, at) == np.uint64(first)
        and byte_at(data, at + 1) == np.uint64(second)
    )


@inline
def _is_in_name(tables: Any, data: Any, at: Any, stop: Any) -> Any:
    kind = _kind_at(tables, data, at, stop)
    return kind in (_LETTER, _DIGIT)


@inline
def _end_of_name(tables: Any, data: Any, start: Any, stop: Any) -> Any:
    """Where the name ends that starts here, and its letter; -1 if it is not plain."""
    at = start + 1
    while _is_in_name(tables, data, at, stop):
        at += 1
    flags = np.int64(_special(tables, data, start, at))
    if flags & _REFUSED:
        return at, -1
    dots = 0
    while (
        at < stop
        and byte_at(data, at) == np.uint64(_POINT)
        and _kind_at(tables, data, at + 1, stop) == _LETTER
    ):
        dots += 1
        at += 2
        while _is_in_name(tables, data, at, stop):
            at += 1
    if dots:
        return at, -1 if flags & _KEYWORD or dots > _MOST_DOTS else NAME
    return at, flags & (_KEYWORD - 1)


@inline
def _digits(tables: Any, data: Any, at: Any, stop: Any) -> Any:
    """Where the digits end that start here."""
    while _kind_at(tables, data, at, stop) == _DIGIT:
        at += 1
    return at


@inline
def _end_of_number(tables: Any, data: Any, start: Any, stop: Any) -> Any:
    """Where the number ends that starts here; ``start`` if none does, -1 if it is not plain."""
    at = start
    if tables.kinds[byte_at(data, at)] == _SIGN:
        at += 1
        while _kind_at(tables, data, at, stop) == _SPACE and at < stop:
            at += 1
    kind = _kind_at(tables, data, at, stop)
    if kind != _DIGIT and (kind != _DOT or _kind_at(tables, data, at + 1, stop) != _DIGIT):
        return start
    if at > start + 1:
        return -1
    first = at
    if kind == _DIGIT:
        at = _digits(tables, data, at, stop)
    if _kind_at(tables, data, at, stop) == _DOT:
        at = _digits(tables, data, at + 1, stop)
    if at - first > _MOST_DIGITS:
        return -1
    if _kind_at(tables, data, at, stop) == _LETTER:
        if byte_at(data, at) & _CASE != np.uint64(69):  # E
            return -1
        at += 1
        if _kind_at(tables, data, at, stop) == _SIGN:
            at += 1
        end = _digits(tables, data, at, stop)
        if end == at or end - at > _MOST_EXPONENT_DIGITS:
            return -1
        at = end
    kind = _kind_at(tables, data, at, stop)
    return -1 if kind in (_LETTER, _STRANGE) else at


@inline
def _end_of_string(data: Any, start: Any, stop: Any) -> Any:
    """Where the string ends that starts here with its quote; -1 if it is not plain."""
    quote = byte_at(data, start)
    at = start + 1
    while at < stop:
        byte = byte_at(data, at)
        if byte == quote:
            if at + 1 >= stop or byte_at(data, at + 1) != quote:
                return at + 1
            at += 2
        elif byte == np.uint64(_BACKSLASH):
            if at + 1 >= stop or byte_at(data, at + 1) & _CASE == np.uint64(85):  # U
                return -1
            at += 2
        elif byte == np.uint64(_FIRST_OF_SIGNS) and (
            at + 1 >= stop or byte_at(data, at + 1) == np.uint64(_SECOND_OF_SIGNS)
        ):
            return -1
        else:
            at += 1
    return -1


@inline
def _end_of_raw_string(data: Any, start: Any, stop: Any) -> Any:
    """The same for one that starts here with r and its quote."""
    quote = byte_at(data, start + 1)
    for at in range(start + 2, stop):
        byte = byte_at(data, at)
        if byte == quote:
            return at + 1
        if byte == np.uint64(_FIRST_OF_SIGNS):
            return -1
    return -1


@inline
def _word(tables: Any, data: Any, at: Any, stop: Any) -> Any:
    """Where the word ends that starts here, ``at`` if none does, and its letter; -1: not plain."""
    kind = tables.kinds[byte_at(data, at)]
    if kind == _LETTER:
        is_raw = byte_at(data, at) & _CASE == np.uint64(82)  # R
        if is_raw and _kind_at(tables, data, at + 1, stop) == _QUOTE:
            end = _end_of_raw_string(data, at, stop)
            return end, STRING if end > 0 else -1
        return _end_of_name(tables, data, at, stop)
    if _DIGIT <= kind <= _DOT:
        if _are(data, at, stop, _MINUS, _MINUS):
            return at, -1
        end = _end_of_number(tables, data, at, stop)
        return end, NUMBER if end >= 0 else -1
    if kind == _QUOTE:
        end = _end_of_string(data, at, stop)
        return end, STRING if end > 0 else -1
    if kind == _STRANGE:
        return at, -1
    return at, -1 if _are(data, at, stop, _SLASH, _STAR) else NAME


@kernel(void, CUT_TEXTS, TABLES, DISTINCT, i4w)
def cut_texts(texts: Any, tables: Any, keys: Any, key_of: Any) -> None:
    """Cut texts: their words, and the number of each one's key."""
    data, offsets, starts, stops, letters, first_words = texts
    scratch = np.empty(MAX_LENGTH, dtype=np.uint8)
    n = 0
    for text in range(len(key_of)):
        first_words[text] = n
        start, stop = offsets[text], offsets[text + 1]
        length, at = 0, start
        is_plain = stop - start <= MAX_LENGTH
        own = n
        while is_plain and at < stop:
            end, letter = _word(tables, data, at, stop)
            if letter < 0:
                is_plain = False
            elif end == at:
                scratch[length] = byte_at(data, at)
                length += 1
                at += 1
            else:
                starts[own], stops[own], letters[own] = at, end, letter
                own += 1
                scratch[length] = FIRST_LETTER + letter
                length += 1
                at = end
        if is_plain and is_utf8(data, start, stop):
            n = own
            number = number_of(keys, scratch, 0, length, MOST_KEYS)
            key_of[text] = number if number >= 0 else NOT_KEPT
        else:
            key_of[text] = NOT_PLAIN
    first_words[len(key_of)] = n
