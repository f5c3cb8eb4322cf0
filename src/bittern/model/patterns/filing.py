r"""Which fragments each pattern is filed under, and the programs of regular expressions.

A pattern is filed under every fragment of its best cover, and with that it is noted how many bytes
at most stand before the fragment, and which other fragment has to be found as well, before it or
behind it (``second``). The best cover is the one whose fragments few other patterns ask for: what
many ask for (a domain, a common path) many values contain.

    pattern                filed under    second
    lomi.*tara             tara           lomi, before it (if more patterns ask for lomi)
    LIKE 'a%b'             <a             b>, behind it
    \bred\b|\bblue\b       red, blue      none

O(total text) in kernels: 3 to 5 us a pattern.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import i4w, i8r, i8w, inline, kernel, tuple_type, u1r, u1w, u8w
from bittern.model.patterns import LIKE, REGEX
from bittern.model.patterns.covers import (
    EITHER,
    MAX_COVER,
    MAX_COVERS,
    MAX_FRAGMENT,
    ROOM,
    count_covers,
    find_covers,
    find_like_covers,
    worth,
)
from bittern.model.patterns.regex.programs import MAKING, MAX_WORDS, make_program
from bittern.model.patterns.regex.syntax import read_tokens
from bittern.model.patterns.regex.tokens import GIVEN_UP, KNOWN, TOKENS

#: What to do with a pattern whose fragment was found: nothing more, run its LIKE program, search.
ACCEPT, RUN, SEARCH = 0, 1, 2

#: From this length on, it matters more how many patterns share a fragment than how long it is.
_LONG_ENOUGH = 3

#: What one pattern adds at most: bytes of fragments, and fragments.
_MOST_FRAGMENTS = MAX_COVERS * MAX_COVER
_MOST_BYTES = _MOST_FRAGMENTS * (MAX_FRAGMENT + 2)


class PatternFacts(NamedTuple):
    """What is known of all patterns, laid end to end.

    ``actions`` by pattern; ``program_offsets`` into ``programs``; ``cover_offsets`` by pattern;
    ``fragment_offsets`` by cover; ``fragments``: start in ``text``, length, case, bytes before it.
    """

    actions: np.ndarray
    programs: np.ndarray
    program_offsets: np.ndarray
    cover_offsets: np.ndarray
    fragment_offsets: np.ndarray
    fragments: np.ndarray
    text: np.ndarray


_READ = tuple_type(PatternFacts, u1w, u8w, i8w, i8w, i8w, i8w, u1w)


@kernel(_READ, u1r, u1r, i8r, TOKENS, MAKING, ROOM)
def read_patterns(kinds: Any, texts: Any, offsets: Any, tokens: Any, making: Any, room: Any) -> Any:
    """Read every pattern: regular expressions as they are, LIKE as programs, texts to contain."""
    n_patterns = kinds.shape[0]
    actions = np.zeros(n_patterns, np.uint8)
    programs = np.empty(MAX_WORDS + 40 * n_patterns, np.uint64)
    program_offsets = np.zeros(n_patterns + 1, np.int64)
    cover_offsets = np.zeros(n_patterns + 1, np.int64)
    fragment_offsets = np.zeros(1 + MAX_COVERS * n_patterns, np.int64)
    fragments = np.empty(4 * (_MOST_FRAGMENTS + 2 * n_patterns), np.int64)
    text = np.empty(_MOST_BYTES + texts.shape[0], np.uint8)
    n_words = n_covers = n_fragments = n_bytes = 0
    for pattern in range(n_patterns):
        own = texts[offsets[pattern] : offsets[pattern + 1]]
        covers = 0
        if kinds[pattern] == REGEX:
            known = read_tokens(own, tokens)
            actions[pattern] = SEARCH
            if known != GIVEN_UP:
                if find_covers(tokens, room) and known == KNOWN:
                    actions[pattern] = ACCEPT
                covers = count_covers(room)
            if known == KNOWN and actions[pattern] == SEARCH:
                if programs.shape[0] < n_words + MAX_WORDS:
                    more = np.empty(2 * programs.shape[0], np.uint64)
                    more[:n_words] = programs[:n_words]
                    programs = more
                length = make_program(tokens, making)
                programs[n_words : n_words + length] = making.out[:length]
                n_words += length
        elif kinds[pattern] == LIKE:
            actions[pattern] = RUN
            find_like_covers(own, room)
            covers = count_covers(room)
        elif own.shape[0] > 0:
            # The whole text, however long: nothing is left to be run.
            if text.shape[0] < n_bytes + own.shape[0] + _MOST_BYTES:
                bytes_more = np.empty(2 * text.shape[0] + own.shape[0], np.uint8)
                bytes_more[:n_bytes] = text[:n_bytes]
                text = bytes_more
            text[n_bytes : n_bytes + own.shape[0]] = own
            fields = fragments[4 * n_fragments : 4 * n_fragments + 4]
            fields[0], fields[1], fields[2], fields[3] = n_bytes, own.shape[0], 0, 0
            n_bytes += own.shape[0]
            n_fragments += 1
            fragment_offsets[n_covers + 1] = n_fragments
            n_covers += 1
        for c in range(covers):
            # The first ones and the last: it may be anchored at the end.
            if c >= MAX_COVERS - 1 and c < covers - 1:
                continue
            for f in range(room.covers[2 * c], room.covers[2 * c] + room.covers[2 * c + 1]):
                start, length = room.fragments[4 * f], room.fragments[4 * f + 1]
                text[n_bytes : n_bytes + length] = room.text[start : start + length]
                fields = fragments[4 * n_fragments : 4 * n_fragments + 4]
                fields[0], fields[1] = n_bytes, length
                fields[2], fields[3] = room.fragments[4 * f + 2], room.fragments[4 * f + 3]
                n_bytes += length
                n_fragments += 1
            fragment_offsets[n_covers + 1] = n_fragments
            n_covers += 1
        if fragments.shape[0] < 4 * (n_fragments + _MOST_FRAGMENTS):
            fields_more = np.empty(2 * fragments.shape[0], np.int64)
            fields_more[: 4 * n_fragments] = fragments[: 4 * n_fragments]
            fragments = fields_more
        if text.shape[0] < n_bytes + _MOST_BYTES:
            bytes_more = np.empty(2 * text.shape[0], np.uint8)
            bytes_more[:n_bytes] = text[:n_bytes]
            text = bytes_more
        program_offsets[pattern + 1] = n_words
        cover_offsets[pattern + 1] = n_covers
    return PatternFacts(
        actions,
        programs[:n_words].copy(),
        program_offsets,
        cover_offsets,
        fragment_offsets[: n_covers + 1].copy(),
        fragments[: 4 * n_fragments].copy(),
        text[:n_bytes].copy(),
    )


@inline
def _slot(read: Any, fragment: Any, size: Any) -> Any:
    """Where a fragment is counted; two may share a place, which only makes one look common."""
    start, length = read.fragments[4 * fragment], read.fragments[4 * fragment + 1]
    value = np.uint64(0xCBF29CE484222325) ^ np.uint64(read.fragments[4 * fragment + 2] == EITHER)
    for i in range(start, start + length):
        value = (value ^ np.uint64(read.text[i])) * np.uint64(0x100000001B3)
    return np.int64(value >> np.uint64(20)) & (size - 1)


@kernel(i4w, _READ)
def choose_covers(read: Any) -> Any:
    """For each pattern the cover to file it under, and one of one fragment to ask for; or -1."""
    n_fragments = read.fragments.shape[0] >> 2
    n_patterns = read.actions.shape[0]
    size = 1024
    while size < 4 * n_fragments:
        size *= 2
    counts = np.zeros(size, np.int32)
    slots = np.empty(n_fragments, np.int32)
    for f in range(n_fragments):
        slots[f] = _slot(read, f, size)
        counts[slots[f]] += 1
    chosen = np.full(2 * n_patterns, -1, np.int32)
    for pattern in range(n_patterns):
        for is_second in range(2):
            best: Any = np.int64(-1)
            best_least: Any = np.int64(0)
            best_shared: Any = np.int64(0)
            for cover in range(read.cover_offsets[pattern], read.cover_offsets[pattern + 1]):
                first, end = read.fragment_offsets[cover], read.fragment_offsets[cover + 1]
                pivot = chosen[2 * pattern]
                if is_second and (
                    cover == pivot or end > first + 1 or not _same(read, pivot, first)
                ):
                    continue
                least: Any = np.int64(1 << 30)
                shared: Any = np.int64(0)
                for f in range(first, end):
                    fields = read.fragments[4 * f : 4 * f + 2]
                    least = min(least, worth(read.text, fields[0], fields[1]))
                    shared += counts[slots[f]]
                short, best_short = min(least, _LONG_ENOUGH), min(best_least, _LONG_ENOUGH)
                if (
                    best < 0
                    or short > best_short
                    or (
                        short == best_short
                        and (shared < best_shared or (shared == best_shared and least > best_least))
                    )
                ):
                    best, best_least, best_shared = cover, least, shared
            chosen[2 * pattern + is_second] = best
    return chosen


@inline
def _same(read: Any, cover: Any, fragment: Any) -> Any:
    """Whether a cover's fragments are found as this one is, with or without regard to case."""
    is_either = read.fragments[4 * fragment + 2] == EITHER
    for f in range(read.fragment_offsets[cover], read.fragment_offsets[cover + 1]):
        if (read.fragments[4 * f + 2] == EITHER) != is_either:
            return False
    return True
