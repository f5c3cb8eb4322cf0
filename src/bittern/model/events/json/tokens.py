"""The tokens of JSON: strings, numbers and the three words, read from bytes by compiled functions.

Every function takes ``data`` and the bounds ``at`` and ``stop`` of what is left of one text, never
reads outside them, and never fails: a position below zero is minus the reason for rejecting the
text. O(bytes); plain text inside strings goes eight bytes a step.

A scalar is returned as (position behind it, tag, payload, length, float); see ``tagged`` for what
tag, payload and length mean. Three tags live between here and ``text.py`` only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import inline
from bittern.model.strings import byte_at, half_word_at, word_at
from bittern.model.tagged import BOOLEAN, FLOAT, INTEGER, STRING

#: Why a text was rejected, by reason code; code 0 is never given.
REJECT_REASONS = (
    "",
    "the top level is not an object",
    "not valid JSON",
    "the text ends too early",
    "something follows the object",
    "nested more than 64 levels deep",
    "a string has an invalid escape or half a surrogate pair",
    "a string has an unescaped control character",
    "a string is not valid UTF-8",
    "a number is not valid",
    "longer than 2 GiB",
)
NOT_AN_OBJECT, NOT_JSON, ENDS_EARLY, TRAILING, TOO_DEEP = 1, 2, 3, 4, 5
BAD_ESCAPE, BAD_CONTROL, BAD_UTF8, BAD_NUMBER, TOO_LONG = 6, 7, 8, 9, 10

NULL = 0
ESCAPED = 16  # a string that still has its escapes
NUMBER_TEXT = 17  # a number that needs more than 53 bits or 22 powers of ten, still as text

QUOTE, BACKSLASH, COMMA, COLON, DOT, BACK_QUOTE = (ord(c) for c in '"\\,:.`')
OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = (ord(c) for c in "{}[]")
_SPACE, _MINUS, _PLUS, _ZERO, _SMALL_E, _SMALL_F, _SMALL_U = (ord(c) for c in " -+0efu")
_TRUE, _ALSE, _NULL = (np.uint64(int.from_bytes(w, "little")) for w in (b"true", b"alse", b"null"))

_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(23)])
_EXACT = np.uint64(1 << 53)
_TWO_63 = np.uint64(1 << 63)
_TEN = np.uint64(10)

# In a word of eight bytes, the highest bit of each byte tells whether it is what is looked for.
_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _SPACES, _DOTS, _BACK_QUOTES = (
    np.uint64(c * 0x0101010101010101) for c in (QUOTE, BACKSLASH, _SPACE, DOT, BACK_QUOTE)
)
_LOWEST_TO_INDEX = np.uint64(0x0001020304050607)

_UNESCAPED = np.zeros(256, np.uint8)  # by the letter behind a backslash; 0 is none, or \u
for _letter, _byte in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _UNESCAPED[_letter] = _byte


@inline
def skip_space(data: Any, at: Any, stop: Any) -> Any:
    """To the first byte that is not white space."""
    while at < stop:
        byte = byte_at(data, at)
        if byte > _SPACE or byte not in (_SPACE, 10, 13, 9):
            break
        at += 1
    return at


@inline
def _zero_bytes(word: Any) -> Any:
    """High bits at zero bytes; wrong ones only above the lowest right one, which is asked for."""
    return (word - _ONES) & ~word & _HIGHS


@inline
def _skip_plain(data: Any, at: Any, stop: Any) -> Any:
    """To the first quote, backslash, control or non-ASCII byte."""
    while at + 8 <= stop:
        word = word_at(data, at)
        special = _zero_bytes(word ^ _QUOTES) | _zero_bytes(word ^ _BACKSLASHES)
        special |= ((word - _SPACES) | word) & _HIGHS
        if special != 0:
            lowest = special & (~special + np.uint64(1))
            # lowest is 2 ** (8 * index + 7), so the product's top byte is the index
            return at + np.int64((lowest >> np.uint64(7)) * _LOWEST_TO_INDEX >> np.uint64(56))
        at += 8
    while at < stop:
        byte = byte_at(data, at)
        if byte in (QUOTE, BACKSLASH) or byte < 32 or byte > 127:
            break
        at += 1
    return at


@inline
def _utf8_size(data: Any, at: Any, stop: Any) -> Any:
    """Bytes of the non-ASCII character at ``at``; 0 if it is not one in shortest form."""
    first = byte_at(data, at)
    size = 2 + (first >= 0xE0) + (first >= 0xF0)
    if first < 0xC2 or first > 0xF4 or at + size > stop:
        return 0
    for i in range(1, size):
        if byte_at(data, at + i) >> np.uint64(6) != 2:
            return 0
    second = byte_at(data, at + 1)
    overlong = (first == 0xE0 and second < 0xA0) or (first == 0xF0 and second < 0x90)
    outside = (first == 0xED and second > 0x9F) or (first == 0xF4 and second > 0x8F)
    return 0 if overlong or outside else size


@inline
def is_utf8(data: Any, at: Any, stop: Any) -> Any:
    """Tell whether the bytes are UTF-8; ASCII goes eight bytes a step."""
    while at < stop:
        if at + 8 <= stop and word_at(data, at) & _HIGHS == 0:
            at += 8
        elif byte_at(data, at) < 128:
            at += 1
        else:
            size = _utf8_size(data, at, stop)
            if size == 0:
                return False
            at += size
    return True


@inline
def _hex4(data: Any, at: Any, stop: Any) -> Any:
    """The number that four hexadecimal digits write, or -1."""
    if at + 4 > stop:
        return -1
    value = 0
    for i in range(4):
        byte = int(byte_at(data, at + i))
        letter = byte | 32
        if 48 <= byte <= 57:
            value = value * 16 + byte - 48
        elif 97 <= letter <= 102:
            value = value * 16 + letter - 87
        else:
            return -1
    return value


@inline
def _escaped_character(data: Any, at: Any, stop: Any) -> Any:
    r"""The code point that the ``\uXXXX`` at ``at`` begins, or -1; above 0xFFFF it takes two."""
    high = _hex4(data, at + 2, stop)
    if high < 0xD800 or high > 0xDFFF:
        return high
    if high > 0xDBFF or at + 12 > stop:
        return -1
    if byte_at(data, at + 6) != BACKSLASH or byte_at(data, at + 7) != _SMALL_U:
        return -1
    low = _hex4(data, at + 8, stop)
    if low < 0xDC00 or low > 0xDFFF:
        return -1
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)


@inline
def _escape_size(data: Any, at: Any, stop: Any) -> Any:
    """Bytes of the escape at ``at``; 0 if it is not one."""
    if at + 2 > stop:
        return 0
    letter = byte_at(data, at + 1)
    if letter != _SMALL_U:
        return 2 if _UNESCAPED[letter] != 0 else 0
    character = _escaped_character(data, at, stop)
    if character < 0:
        return 0
    return 12 if character > 0xFFFF else 6


@inline
def string_end(data: Any, at: Any, stop: Any) -> Any:
    """From behind the opening quote: where the closing one is, and whether there are escapes."""
    escaped = False
    while True:
        at = _skip_plain(data, at, stop)
        if at >= stop:
            return np.int64(-ENDS_EARLY), escaped
        byte = byte_at(data, at)
        if byte == QUOTE:
            return at, escaped
        if byte < 32:
            return np.int64(-BAD_CONTROL), escaped
        if byte == BACKSLASH:
            escaped = True
            size = _escape_size(data, at, stop)
        else:
            size = _utf8_size(data, at, stop)
        if size == 0:
            return np.int64(-BAD_ESCAPE if byte == BACKSLASH else -BAD_UTF8), escaped
        at += size


@inline
def _write_character(character: Any, out: Any, to: Any) -> Any:
    """Write one code point as UTF-8; returns the position behind it."""
    if character < 0x80:
        out[to] = character
        return to + 1
    if character < 0x800:
        out[to] = 0xC0 | character >> 6
        out[to + 1] = 0x80 | character & 0x3F
        return to + 2
    if character < 0x10000:
        out[to] = 0xE0 | character >> 12
        out[to + 1] = 0x80 | character >> 6 & 0x3F
        out[to + 2] = 0x80 | character & 0x3F
        return to + 3
    out[to] = 0xF0 | character >> 18
    out[to + 1] = 0x80 | character >> 12 & 0x3F
    out[to + 2] = 0x80 | character >> 6 & 0x3F
    out[to + 3] = 0x80 | character & 0x3F
    return to + 4


@inline
def unescape(data: Any, at: Any, stop: Any, out: Any, to: Any) -> Any:
    """Write a string that ``string_end`` accepted without its escapes; returns the end in out."""
    while at < stop:
        byte = byte_at(data, at)
        if byte != BACKSLASH:
            out[to] = byte
            at, to = at + 1, to + 1
        elif byte_at(data, at + 1) != _SMALL_U:
            out[to] = _UNESCAPED[byte_at(data, at + 1)]
            at, to = at + 2, to + 1
        else:
            character = _escaped_character(data, at, stop)
            at += 12 if character > 0xFFFF else 6
            to = _write_character(character, out, to)
    return to


@inline
def needs_quotes(data: Any, at: Any, stop: Any) -> Any:
    """Tell whether a name part has a dot or a back quote."""
    found = np.uint64(0)
    while at + 8 <= stop:
        word = word_at(data, at)
        found |= _zero_bytes(word ^ _DOTS) | _zero_bytes(word ^ _BACK_QUOTES)
        at += 8
    while at < stop:
        byte = byte_at(data, at)
        found |= np.uint64(byte in (DOT, BACK_QUOTE))
        at += 1
    return found != 0


@inline
def _digits(data: Any, at: Any, stop: Any, value: Any) -> Any:
    """Behind the digits at ``at``, and ``value`` with them appended (modulo 2 ** 64)."""
    while at < stop:
        digit = byte_at(data, at) - np.uint64(_ZERO)
        if digit > 9:  # bytes below "0" have wrapped around
            break
        value = value * _TEN + digit
        at += 1
    return at, value


@inline
def _exponent(data: Any, at: Any, stop: Any) -> Any:
    """Behind the exponent whose ``e`` is before ``at`` (below 0: not one), and its value."""
    negative = at < stop and byte_at(data, at) == _MINUS
    if negative or (at < stop and byte_at(data, at) == _PLUS):
        at += 1
    end, value = _digits(data, at, stop, np.uint64(0))
    if end == at:
        return np.int64(-BAD_NUMBER), np.int64(0)
    size = np.int64(value) if end - at < 10 else np.int64(1 << 40)  # far outside float64 anyway
    return end, -size if negative else size


@inline
def _number(data: Any, start: Any, stop: Any) -> Any:
    """Read the number at ``start``, which is a digit or a minus."""
    negative = byte_at(data, start) == _MINUS
    first = start + negative
    at, mantissa = _digits(data, first, stop, np.uint64(0))
    digits = at - first
    bad = digits == 0 or (digits > 1 and byte_at(data, first) == _ZERO)
    whole, exponent = True, np.int64(0)
    if at < stop and byte_at(data, at) == DOT:
        point, whole = at + 1, False
        at, mantissa = _digits(data, point, stop, mantissa)
        exponent = point - at
        digits -= exponent
        bad |= exponent == 0
    if at < stop and byte_at(data, at) | np.uint64(32) == _SMALL_E:
        whole = False
        at, power = _exponent(data, at + 1, stop)
        exponent += power
    if bad or at < 0:
        return np.int64(-BAD_NUMBER), NULL, np.int64(0), np.int64(0), 0.0
    if digits <= 19:  # so the mantissa did not overflow
        if whole and mantissa < _TWO_63 + np.uint64(negative):
            integer = np.int64(np.uint64(0) - mantissa if negative else mantissa)
            return at, INTEGER, integer, np.int64(0), 0.0
        if not whole and mantissa < _EXACT and -22 <= exponent <= 22:
            real = np.float64(np.int64(mantissa))
            power_of_ten = _POWERS_OF_TEN[abs(exponent)]
            real = real / power_of_ten if exponent < 0 else real * power_of_ten
            return at, FLOAT, np.int64(0), np.int64(0), -real if negative else real
    return at, NUMBER_TEXT, start, at - start, 0.0


@inline
def _word(data: Any, at: Any, stop: Any) -> Any:
    """Read ``true``, ``false`` or ``null``."""
    if at + 4 <= stop:
        word = half_word_at(data, at)
        if word == _TRUE:
            return at + 4, BOOLEAN, np.int64(1), np.int64(0), 0.0
        if word == _NULL:
            return at + 4, NULL, np.int64(0), np.int64(0), 0.0
        if at + 5 <= stop and byte_at(data, at) == _SMALL_F and half_word_at(data, at + 1) == _ALSE:
            return at + 5, BOOLEAN, np.int64(0), np.int64(0), 0.0
    return np.int64(-NOT_JSON), NULL, np.int64(0), np.int64(0), 0.0


@inline
def scalar(data: Any, at: Any, stop: Any) -> Any:
    """Read the string, number or word at ``at``."""
    byte = byte_at(data, at)
    if byte == QUOTE:
        end, escaped = string_end(data, at + 1, stop)
        behind = end + 1 if end >= 0 else end
        return behind, ESCAPED if escaped else STRING, at + 1, end - at - 1, 0.0
    if byte == _MINUS or byte - np.uint64(_ZERO) <= 9:
        return _number(data, at, stop)
    return _word(data, at, stop)
