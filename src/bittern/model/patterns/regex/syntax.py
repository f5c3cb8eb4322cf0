r"""The text of a regular expression as a row of tokens, each behind what it applies to.

::

    ab+|[0-9]$        SET a   SET b   PLUS   CAT   SET 0-9   END   CAT   ALT
    a{2,3}            SET a   SET a   CAT    SET a   OPTION   CAT

What a token applies to is a stretch of tokens that ends right before it, so that what is repeated
is copied as a stretch. The reader knows exactly as much of RE2's syntax as it needs to be sure. A
class that it does not know is a set of its own (``UNKNOWN``); at anything else it gives up. It
takes the text as RE2 accepted it: what RE2 would refuse is not looked for.

O(text), and what is repeated by a count once for each copy, at most ``MAX_TOKENS`` in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import apart, inline
from bittern.model.patterns.regex.classes import (
    LAST_CHARACTER,
    add_range,
    begin_set,
    is_letter,
    negate_set,
    only_letter,
)
from bittern.model.patterns.regex.tokens import (
    AT,
    DEPTH,
    DOT_ALL,
    FLAGS,
    FOLD,
    GIVEN_UP,
    HAS_BRANCHES,
    ITEM,
    KNOWN,
    LINE_END,
    LINE_START,
    LINES,
    RESULT,
    TEXT_END,
    TEXT_START,
    UNKNOWN_PLACE,
    WORD_EDGE,
    add_literal,
    add_place,
    add_set,
    add_unknown,
    close_group,
    end_branch,
    give_up,
    open_group,
    repeat_item,
)

# Bytes by name: kernels have no characters.
_STAR_SIGN, _PLUS_SIGN, _QUESTION, _BRACE, _BRACE_END, _BAR, _PAREN, _PAREN_END = b"*+?{}|()"
_BRACKET, _BRACKET_END, _BACKSLASH, _DOT_SIGN, _CARET, _DOLLAR, _HYPHEN, _COLON = b"[]\\.^$-:"
_LESS, _GREATER, _COMMA = b"<>,"
_A, _Z_SMALL, _B_SMALL, _B, _C, _D_SMALL, _S_SMALL, _W_SMALL = b"AzbBCdsw"
_D, _S, _W, _P_SMALL, _P, _Q, _E, _I_SMALL = b"DSWpPQEi"
_M_SMALL, _U, _X_SMALL = b"mUx"


@apart
def _decode(text: Any, at: Any) -> Any:
    """The character at a place of a text that is UTF-8, and the place behind it."""
    first = np.int64(text[at])
    if first < 0x80 or at + 1 >= text.shape[0]:
        return first, at + 1
    length = 2 + (first >= 0xE0) + (first >= 0xF0)
    character = first & (0x7F >> length)
    for i in range(at + 1, min(at + length, text.shape[0])):
        character = character << 6 | np.int64(text[i]) & 0x3F
    return character, at + length


@inline
def _hex_digit(byte: Any) -> Any:
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    if 97 <= byte | 32 <= 102:
        return np.int64(byte | 32) - 87
    return np.int64(-1)


@inline
def _at_is(text: Any, at: Any, character: Any) -> Any:
    return at < text.shape[0] and text[at] == character


@inline
def _is_octal(text: Any, at: Any) -> Any:
    return at < text.shape[0] and 48 <= text[at] <= 55


@apart
def _coded(text: Any, at: Any) -> Any:
    """The character that an escape at ``at`` stands for, or -1; and the place behind it.

    Of letters and digits only those are read that RE2 reads as one character.
    """
    if at + 1 >= text.shape[0]:
        return np.int64(-1), at
    following = np.int64(text[at + 1])
    if following == _X_SMALL:
        if _at_is(text, at + 2, _BRACE):
            value, i = np.int64(0), at + 3
            while i < min(text.shape[0], at + 11) and _hex_digit(text[i]) >= 0:
                value = value << 4 | _hex_digit(text[i])
                i += 1
            if i > at + 3 and _at_is(text, i, _BRACE_END):
                return value, i + 1
            return np.int64(-1), at
        if (
            at + 3 < text.shape[0]
            and _hex_digit(text[at + 2]) >= 0
            and _hex_digit(text[at + 3]) >= 0
        ):
            return _hex_digit(text[at + 2]) << 4 | _hex_digit(text[at + 3]), at + 4
        return np.int64(-1), at
    if 48 <= following <= 55:
        # \0 to \077, or at least two digits: \1 would be a reference.
        if following != 48 and not _is_octal(text, at + 2):
            return np.int64(-1), at
        value, i = np.int64(0), at + 1
        while i < at + 4 and _is_octal(text, i):
            value = value << 3 | (np.int64(text[i]) - 48)
            i += 1
        return value, i
    for i in range(6):  # a f t n r v
        if following == (97, 102, 116, 110, 114, 118)[i]:
            return np.int64((7, 12, 9, 10, 13, 11)[i]), at + 2
    if following < 128 and not is_letter(following) and not 48 <= following <= 57:
        return following, at + 2
    return np.int64(-1), at


@apart
def _add_named(sets: Any, name: Any, folded: Any) -> None:
    r"""Add what ``\d``, ``\s`` or ``\w`` stands for."""
    if name in (_D_SMALL, _W_SMALL):
        add_range(sets, 48, 57, folded)
    if name == _W_SMALL:
        add_range(sets, 65, 90, folded)
        add_range(sets, 95, 95, folded)
        add_range(sets, 97, 122, folded)
    if name == _S_SMALL:
        add_range(sets, 9, 10, folded)
        add_range(sets, 12, 13, folded)
        add_range(sets, 32, 32, folded)


@apart
def _add_complement(sets: Any, name: Any, folded: Any) -> None:
    r"""Add what ``\D``, ``\S`` or ``\W`` stands for to a set that may hold more."""
    for character in range(128):
        is_digit = 48 <= character <= 57
        is_word = is_digit or is_letter(character) or character == 95
        is_space = 9 <= character <= 10 or 12 <= character <= 13 or character == 32
        if (
            (name == _D and not is_digit)
            or (name == _W and not is_word)
            or (name == _S and not is_space)
        ):
            add_range(sets, character, character, False)
    if name == _W and folded:
        add_range(sets, 128, 0x17E, False)
        add_range(sets, 0x180, 0x2129, False)
        add_range(sets, 0x212B, LAST_CHARACTER, False)
    else:
        add_range(sets, 128, LAST_CHARACTER, False)


@apart
def _class(tokens: Any, text: Any) -> None:
    """A class in brackets; the reader stands at the opening one."""
    sets, state = tokens.sets, tokens.state
    folded = state[FLAGS] & FOLD != 0
    at = state[AT] + 1
    negated = _at_is(text, at, _CARET)
    at += negated
    begin_set(sets)
    is_first = True
    while at < text.shape[0] and (is_first or text[at] != _BRACKET_END):
        is_first = False
        if text[at] == _BRACKET and _at_is(text, at + 1, _COLON):  # [:name:] is left to RE2
            sets.counts[2] = 1
            end = at + 2
            while end + 1 < text.shape[0] and not (
                text[end] == _COLON and text[end + 1] == _BRACKET_END
            ):
                end += 1
            if end + 1 < text.shape[0]:
                at = end + 2
                continue
        if text[at] == _BACKSLASH and at + 1 < text.shape[0]:
            name = np.int64(text[at + 1])
            if name in (_D_SMALL, _S_SMALL, _W_SMALL):
                _add_named(sets, name, folded)
                at += 2
                continue
            if name in (_D, _S, _W):
                _add_complement(sets, name, folded)
                at += 2
                continue
            if name | 32 == _P_SMALL:  # \pL is left to RE2
                sets.counts[2] = 1
                at = _after_property(text, at)
                continue
        low, at = _class_character(text, at)
        if low < 0:
            give_up(tokens)
            return
        high = low
        if _at_is(text, at, _HYPHEN) and at + 1 < text.shape[0] and text[at + 1] != _BRACKET_END:
            high, at = _class_character(text, at + 1)
            if high < low:
                give_up(tokens)
                return
        add_range(sets, low, high, folded)
    if at >= text.shape[0]:
        give_up(tokens)
        return
    state[AT] = at + 1
    if negated:
        negate_set(sets)
    add_set(tokens, only_letter(sets))


@inline
def _class_character(text: Any, at: Any) -> Any:
    if text[at] == _BACKSLASH:
        return _coded(text, at)
    return _decode(text, at)


@inline
def _after_property(text: Any, at: Any) -> Any:
    r"""Behind ``\pL`` or ``\p{Greek}``."""
    if _at_is(text, at + 2, _BRACE):
        while at < text.shape[0] and text[at] != _BRACE_END:
            at += 1
        return at + 1
    return at + 3


@apart
def _escape(tokens: Any, text: Any) -> None:
    """What begins with a backslash, other than a quotation."""
    sets, state = tokens.sets, tokens.state
    at = state[AT]
    if at + 1 >= text.shape[0]:
        give_up(tokens)
        return
    name = np.int64(text[at + 1])
    folded = state[FLAGS] & FOLD != 0
    state[AT] = at + 2
    if name == _A:
        add_place(tokens, TEXT_START)
    elif name == _Z_SMALL:
        add_place(tokens, TEXT_END)
    elif name == _B_SMALL:
        add_place(tokens, WORD_EDGE)
    elif name == _B:  # B holds inside a character, too, where a program never stops
        add_place(tokens, UNKNOWN_PLACE)
    elif name == _C:  # C is one byte, of a character, too
        add_unknown(tokens)
    elif name in (_D_SMALL, _S_SMALL, _W_SMALL):
        begin_set(sets)
        _add_named(sets, name, folded)
        add_set(tokens, -1)
    elif name in (_D, _S, _W):
        begin_set(sets)
        _add_complement(sets, name, folded)
        add_set(tokens, -1)
    elif name | 32 == _P_SMALL:
        state[AT] = _after_property(text, at)
        add_unknown(tokens)
    else:
        character, after = _coded(text, at)
        if character < 0:
            give_up(tokens)
            return
        state[AT] = after
        add_literal(tokens, character)


@apart
def _quotation(tokens: Any, text: Any) -> None:
    r"""Everything from ``\Q`` to ``\E`` or the end."""
    state = tokens.state
    at = state[AT] + 2
    while at < text.shape[0] and not (text[at] == _BACKSLASH and _at_is(text, at + 1, _E)):
        character, at = _decode(text, at)
        add_literal(tokens, character)
        if state[RESULT] == GIVEN_UP:
            return
    state[AT] = at + 2


@apart
def _group(tokens: Any, text: Any) -> None:
    """An opening parenthesis, or flags of their own."""
    state = tokens.state
    at = state[AT] + 1
    flags = state[FLAGS]
    if not _at_is(text, at, _QUESTION):
        state[AT] = at
        open_group(tokens, flags)
        return
    at += 1
    named = at + 1 if _at_is(text, at, _P) else at
    if _at_is(text, named, _LESS):
        while at < text.shape[0] and text[at] != _GREATER:
            at += 1
        state[AT] = at + 1
        open_group(tokens, flags)
        return
    is_off = False
    while at < text.shape[0] and text[at] != _PAREN_END and text[at] != _COLON:
        letter = text[at]
        flag = 0
        if letter == _HYPHEN and not is_off:
            is_off = True
        elif letter == _I_SMALL:
            flag = FOLD
        elif letter == _S_SMALL:
            flag = DOT_ALL
        elif letter == _M_SMALL:
            flag = LINES
        elif letter != _U:  # U: which of several places is found first, which nobody asks
            give_up(tokens)
            return
        flags = flags & ~flag if is_off else flags | flag
        at += 1
    if at >= text.shape[0]:
        give_up(tokens)
        return
    state[AT] = at + 1
    if text[at] == _PAREN_END:
        state[FLAGS] = flags
    else:
        open_group(tokens, flags)


@inline
def _number(text: Any, at: Any) -> Any:
    """The number at a place, or -1 if there is none or RE2 would not read it; and what follows."""
    value, i = np.int64(0), at
    while i < text.shape[0] and 48 <= text[i] <= 57 and i < at + 5:
        value = 10 * value + np.int64(text[i]) - 48
        i += 1
    if i == at or i == at + 5 or (text[at] == 48 and i > at + 1):
        return np.int64(-1), at
    return value, i


@apart
def _counted(tokens: Any, text: Any) -> Any:
    """A count in braces; False if RE2 reads the brace as itself."""
    state = tokens.state
    at = state[AT] + 1
    if not (at < text.shape[0] and 48 <= text[at] <= 57):
        return False
    least, at = _number(text, at)
    most = least
    if least >= 0 and _at_is(text, at, _COMMA):
        at += 1
        most = np.int64(-1)
        if not _at_is(text, at, _BRACE_END):
            most, at = _number(text, at)
            if most < least:
                least = np.int64(-1)
    if least < 0 or not _at_is(text, at, _BRACE_END):
        give_up(tokens)  # a count that RE2 may read in its own way
        return True
    state[AT] = at + 1
    repeat_item(tokens, least, most)
    return True


@apart
def _dot(tokens: Any) -> None:
    begin_set(tokens.sets)
    if tokens.state[FLAGS] & DOT_ALL:
        add_range(tokens.sets, 0, LAST_CHARACTER, False)
    else:
        add_range(tokens.sets, 0, 9, False)
        add_range(tokens.sets, 11, LAST_CHARACTER, False)
    add_set(tokens, -1)


@apart
def read_tokens(text: Any, tokens: Any) -> Any:
    """Read a regular expression into ``tokens``; returns how much of it is known."""
    state = tokens.state
    state[:] = 0
    state[RESULT] = KNOWN
    state[ITEM] = -1
    tokens.sets.counts[:] = 0
    # Every turn goes on by a byte at least.
    while state[AT] < text.shape[0] and state[RESULT] != GIVEN_UP:
        at = state[AT]
        byte = text[at]
        has_lines = state[FLAGS] & LINES != 0
        is_quantifier = byte in (_STAR_SIGN, _PLUS_SIGN, _QUESTION)
        if byte == _BRACE and _counted(tokens, text):
            is_quantifier = True
        elif is_quantifier:
            state[AT] = at + 1
            repeat_item(tokens, 1 if byte == _PLUS_SIGN else 0, 1 if byte == _QUESTION else -1)
        elif byte == _BAR:
            state[AT] = at + 1
            end_branch(tokens)
            state[HAS_BRANCHES] = 1
        elif byte == _PAREN:
            _group(tokens, text)
        elif byte == _PAREN_END:
            state[AT] = at + 1
            close_group(tokens)
        elif byte == _BRACKET:
            _class(tokens, text)
        elif byte == _BACKSLASH and _at_is(text, at + 1, _Q):
            _quotation(tokens, text)
        elif byte == _BACKSLASH:
            _escape(tokens, text)
        else:
            character, state[AT] = _decode(text, at)
            if byte == _DOT_SIGN:
                _dot(tokens)
            elif byte == _CARET:
                add_place(tokens, LINE_START if has_lines else TEXT_START)
            elif byte == _DOLLAR:
                add_place(tokens, LINE_END if has_lines else TEXT_END)
            else:
                add_literal(tokens, character)
        if is_quantifier and _at_is(text, state[AT], _QUESTION):
            state[AT] += 1  # the reluctant form finds the same values
    if state[DEPTH] != 0:
        give_up(tokens)
    if state[RESULT] != GIVEN_UP:
        end_branch(tokens)
    return state[RESULT]
