r"""Sets of characters: what a literal, a class, ``.`` or ``\w`` matches.

A set is 128 bits for ASCII and a list of ranges of wider characters, sorted once it is closed::

    [a-c\x{e9}]    bits of a, b, c     (e9, e9)
    [^a]           all bits but a      (80, 10ffff)
    (?i)k          bits of K and k     (212a, 212a): the Kelvin sign is a k to RE2

Case is folded as RE2 does it for what is ASCII; of wider characters that is not known here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import apart, i4w, i8w, inline, tuple_type, u8w

#: The last character of Unicode, and how many ranges of wide characters a pattern may have.
LAST_CHARACTER = 0x10FFFF
MAX_RANGES = 256

#: RE2 folds these with k and s.
KELVIN, LONG_S = 0x212A, 0x017F


class CharacterSets(NamedTuple):
    """The sets of one pattern, and a set that is being read.

    ``bits``: two words for each set. ``starts``: where the ranges of each begin in ``lows`` and
    ``highs``. ``letters``: the character if there is only one, or ``FOLDED`` + it, or -1.
    ``counts``: sets; ranges; 1 once there was what is not known here.
    """

    bits: np.ndarray
    starts: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    letters: np.ndarray
    counts: np.ndarray


SETS = tuple_type(CharacterSets, u8w, i4w, i4w, i4w, i4w, i8w)

#: Added to a letter that is found in either case.
FOLDED = 1 << 24


def room_for_sets(most: int) -> CharacterSets:
    """Room for so many sets, and one that is begun behind them."""
    return CharacterSets(
        np.zeros(2 * most + 2, np.uint64),
        np.zeros(most + 2, np.int32),
        np.zeros(MAX_RANGES, np.int32),
        np.zeros(MAX_RANGES, np.int32),
        np.zeros(most + 1, np.int32),
        np.zeros(3, np.int64),
    )


@inline
def begin_set(sets: Any) -> Any:
    """Begin an empty set; returns its number, which it has once it is closed."""
    number = sets.counts[0]
    sets.bits[2 * number] = 0
    sets.bits[2 * number + 1] = 0
    sets.starts[number] = sets.counts[1]
    return number


@inline
def is_full(sets: Any) -> Any:
    """Whether there is no room to close another set."""
    return sets.counts[0] >= sets.letters.shape[0] - 1


@inline
def close_set(sets: Any, letter: Any) -> Any:
    """Keep the set that was begun, unless ``is_full``; returns its number."""
    number = sets.counts[0]
    sets.letters[number] = letter
    sets.counts[0] = number + 1
    sets.starts[number + 1] = sets.counts[1]
    return number


@inline
def _add_wide(sets: Any, low: Any, high: Any) -> None:
    at = sets.counts[1]
    if at >= MAX_RANGES:
        sets.counts[2] = 1
        return
    sets.lows[at] = low
    sets.highs[at] = high
    sets.counts[1] = at + 1


@inline
def _add_ascii(sets: Any, character: Any) -> None:
    word = 2 * sets.counts[0] + (character >> 6)
    sets.bits[word] |= np.uint64(1) << np.uint64(character & 63)


@inline
def is_letter(character: Any) -> Any:
    """Whether it is an ASCII letter."""
    return 97 <= character | 32 <= 122 and character < 128


@apart
def add_range(sets: Any, low: Any, high: Any, folded: Any) -> None:
    """Add the characters from ``low`` to ``high`` to the set that was begun."""
    for character in range(low, min(high, 127) + 1):
        _add_ascii(sets, character)
        if folded and is_letter(character):
            _add_ascii(sets, character ^ 32)
            if character | 32 == 107:  # k
                _add_wide(sets, KELVIN, KELVIN)
            if character | 32 == 115:  # s
                _add_wide(sets, LONG_S, LONG_S)
    if high >= 128:
        _add_wide(sets, max(low, 128), high)
        if folded:
            sets.counts[2] = 1


@apart
def negate_set(sets: Any) -> None:
    """Turn the set that was begun into its complement."""
    number = sets.counts[0]
    sets.bits[2 * number] ^= np.uint64(0xFFFFFFFFFFFFFFFF)
    sets.bits[2 * number + 1] ^= np.uint64(0xFFFFFFFFFFFFFFFF)
    first, end = np.int64(sets.starts[number]), sets.counts[1]
    # Insertion sort: a class names few wide ranges.
    for i in range(first + 1, end):
        low, high = sets.lows[i], sets.highs[i]
        j = i
        while j > first and sets.lows[j - 1] > low:
            sets.lows[j] = sets.lows[j - 1]
            sets.highs[j] = sets.highs[j - 1]
            j -= 1
        sets.lows[j] = low
        sets.highs[j] = high
    # The gaps between them, each written behind the place that was read last.
    expected: Any = 128
    kept = first
    for i in range(first, end):
        low, high = np.int64(sets.lows[i]), np.int64(sets.highs[i])
        if low > expected:
            sets.lows[kept] = expected
            sets.highs[kept] = low - 1
            kept += 1
        expected = max(expected, high + 1)
    sets.counts[1] = kept
    if expected <= LAST_CHARACTER:
        _add_wide(sets, expected, LAST_CHARACTER)


@apart
def only_letter(sets: Any) -> Any:
    """The one ASCII character of the set that was begun, or -1."""
    number = sets.counts[0]
    if sets.counts[1] > sets.starts[number]:
        return -1
    letter = -1
    for half in range(2):
        word = sets.bits[2 * number + half]
        if word:
            if letter >= 0 or word & (word - np.uint64(1)):
                return -1
            letter = 64 * half
            while not word & np.uint64(1):
                word >>= np.uint64(1)
                letter += 1
    return letter
