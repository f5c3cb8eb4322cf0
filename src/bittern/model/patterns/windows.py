"""Where literals begin: the first bytes of all of them, in a table in front of their automaton.

An automaton takes a step for each byte, and each step waits for the one before. But at most bytes
no literal begins, and to see that, nothing needs to be known of the bytes before. So all places of
a value are tried, without a branch, against a filter of bits: the hashes of the first four bytes of
each literal, or of all its bytes if they are fewer. At the places that pass, a table has the first
eight bytes of each literal, as the automaton's classes of bytes. For the literals ``hers`` (0),
``heron`` (1), ``heirlooms`` (2) and ``it`` (3)::

    filter   hers  hero  heir  it
    slots    hers       4 bytes, literal 0      from the slot on that "hers" is hashed to
             heron      5 bytes, literal 1
             heirloom   8 bytes, state 17       the automaton's tree is followed from there
             it         2 bytes, literal 3

Where more than ``MOST_ALIKE`` of them begin with the same four bytes, these have one slot, and the
tree is followed from there. That is slow where values are made of what most literals begin with. So
steps are counted: after too many, the automaton reads the values instead, and windows are tried
again later. A single value that takes many is read by the automaton at once: no value costs more
than linear time.

The table follows from the automaton, is made when a set is first matched, and is no part of a
snapshot. It takes 32 to 64 bytes for each literal, and the filter 2 to 4. Its hash has a secret
key (``model/hashing.py``). There is none where the automaton has dense rows only: that is as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.errors import SnapshotError
from bittern.jit import apart, inline, kernel, u8, u8r, u8w, void
from bittern.model.hashing import hash_word, secret_multiplier
from bittern.model.patterns.automaton import (
    CHILD,
    DEGREE,
    END_CLASS,
    EXCESS,
    FALLBACK,
    HIT,
    N_FOUND,
    NOBODY_ASKS,
    ONE_CHILD,
    PAUSE,
    START_CLASS,
    TOO_MANY,
    read_by_automaton,
)

if TYPE_CHECKING:
    from bittern.arrays import UInt64s
    from bittern.model.patterns.automaton import Automaton

#: Bytes that the filter knows, and bytes that the table knows.
_FILTERED, _KNOWN = 4, 8
#: Slots of literals that begin with the same four bytes.
MOST_ALIKE = 4
#: Places of a value that are tried before those that pass are looked up, and words for those.
_STRETCH = 256
ROOM = 2 * _FILTERED * (_STRETCH + _KNOWN)
#: Bits of the filter for each slot.
_BITS = 8
#: Two steps for five bytes cost as much as the automaton. So many fifths more than that, and it
#: reads the next so many bytes.
_MOST_EXCESS, _PAUSE = 1 << 10, 1 << 18

_ONE, _BYTE, _LAST_BYTE = np.uint64(1), np.uint64(8), np.uint64(56)
_WORD, _IN_WORD, _ALL = np.uint64(6), np.uint64(63), np.uint64(64)
_PREFIX = np.uint64(0xFFFFFFFF)
#: A slot's second word: the bytes of the first one, whether it leads to a state, and the number.
_LENGTH, _IS_STATE, _NUMBER = np.uint64(255), np.uint64(256), np.uint64(16)


class Windows(NamedTuple):
    """``bits``: the filter; ``slots``: first bytes, and what they lead to (0: free), in turn.

    ``probes``: the multiplier of the hash, and a mask for each number of bytes that is filtered.
    """

    bits: UInt64s
    slots: UInt64s
    probes: UInt64s


@kernel(void, u8r, u8r, u8, u8w, u8w)
def _fill(words: Any, leads: Any, multiplier: Any, bits: Any, slots: Any) -> None:
    n_bits, n_slots = np.uint64(64 * len(bits)), np.uint64(len(slots) >> 1)
    for i in range(len(words)):
        hashed = hash_word(words[i] & _PREFIX, multiplier)
        at = hashed & (n_bits - _ONE)
        bits[at >> _WORD] |= _ONE << (at & _IN_WORD)
        at = hashed & (n_slots - _ONE)
        while slots[at + at + _ONE]:
            at = (at + _ONE) & (n_slots - _ONE)
        slots[at + at], slots[at + at + _ONE] = words[i], leads[i]


def windows_of(automaton: Automaton) -> Windows:
    """The table of an automaton's literals. O(states of the first eight bytes)."""
    nodes = automaton.nodes.reshape(-1, 4)
    words, leads = _first_bytes(automaton, nodes)
    lengths = np.unique(np.minimum(leads & _LENGTH, np.uint64(_FILTERED))).tolist()
    n_slots = 1 << max(6, (2 * len(words) - 1).bit_length())
    bits, slots = np.zeros(n_slots * _BITS // 64, np.uint64), np.zeros(2 * n_slots, np.uint64)
    multiplier = secret_multiplier()
    _fill(words, leads, multiplier, bits, slots)
    masks = [(1 << 8 * length) - 1 for length in lengths]
    return Windows(bits, slots, np.array([multiplier, *masks], np.uint64))


def _first_bytes(automaton: Automaton, nodes: np.ndarray) -> tuple[UInt64s, UInt64s]:
    """The first bytes of all literals, and what they lead to, level by level of the tree."""
    first, last, words = 0, 1, np.zeros(1, np.uint64)
    all_words, all_leads = [words[:0]], [words[:0]]
    fours, four_states = words[:0], np.zeros(0, np.int64)
    for depth in range(1, _KNOWN + 1):
        degrees = nodes[first:last, DEGREE] >> 8
        if (degrees < 0).any() or degrees.sum() > len(nodes) - last:
            raise SnapshotError("the states of a pattern's automaton are damaged")
        first, last = last, last + int(degrees.sum())
        shift = np.uint64(8 * (depth - 1))
        words = np.repeat(words, degrees) | automaton.labels[first:last].astype(np.uint64) << shift
        states = np.arange(first, last)
        if depth == _FILTERED:
            fours, four_states = words, states
        hits = nodes[first:last, HIT]
        shorter = nodes[:, HIT].take(nodes[first:last, FALLBACK], mode="clip")
        goes_on = (nodes[first:last, DEGREE] >= ONE_CHILD) & (depth == _KNOWN)
        taken = (hits >= 0) & (hits != shorter) | goes_on
        numbers = np.where(goes_on, states, hits)[taken]
        all_words.append(words[taken])
        all_leads.append(_leads_to(numbers, depth, goes_on[taken]))
    words, leads = np.concatenate(all_words), np.concatenate(all_leads)
    prefixes, counts = np.unique(words & _PREFIX, return_counts=True)
    crowded = prefixes[counts > MOST_ALIKE]
    kept, shared = ~np.isin(words & _PREFIX, crowded), np.isin(fours, crowded)
    return (
        np.concatenate((words[kept], fours[shared])),
        np.concatenate((leads[kept], _leads_to(four_states[shared], _FILTERED, np.True_))),
    )


def _leads_to(numbers: np.ndarray, length: int, are_states: Any) -> UInt64s:
    is_state = np.asarray(are_states).astype(np.uint64) * _IS_STATE
    return numbers.astype(np.uint64) << _NUMBER | is_state | np.uint64(length)


@inline
def _note(finding: Any, literal: Any, value: Any, start: Any, spare: Any) -> None:
    """Note that a literal is found at ``start``."""
    is_new = finding.marks[literal] != value
    if is_new:
        finding.marks[literal] = value
        finding.found[finding.counts[N_FOUND]] = literal
        finding.counts[N_FOUND] += 1
    if spare != NOBODY_ASKS:
        if is_new:
            finding.firsts[literal] = start
        finding.lasts[literal] = start


@inline
def _try_place(finding: Any, window: Any, place: Any, n: Any) -> Any:
    """Keep the eight bytes at a place that passes; returns how many words are kept."""
    bits, probes, passed = finding.bits, finding.probes, finding.passed
    for i in range(1, len(probes)):
        at = hash_word(window & probes[i], probes[0]) & np.uint64(64 * len(bits) - 1)
        passed[np.uint64(n)] = window
        passed[np.uint64(n + 1)] = np.uint64(place) << _BYTE | np.uint64(i)
        n += np.int64(bits[at >> _WORD] >> (at & _IN_WORD) & _ONE) << 1
    return n


@inline
def _follow(
    automaton: Any,
    finding: Any,
    text: Any,
    place: Any,
    end: Any,
    state: Any,
    depth: Any,
    value: Any,
    start: Any,
    spare: Any,
) -> Any:
    """Follow the tree from a state, and the text from a place; how many steps that takes."""
    nodes, steps = automaton.nodes, 0
    while True:
        hit = nodes[4 * state + HIT]
        if hit >= 0 and finding.lengths[hit] == depth + steps:
            _note(finding, hit, value, start, spare)
        if place + steps > end:
            break
        label = np.int64(automaton.classes[END_CLASS])
        if place + steps < end:
            label = np.int64(automaton.classes[text[place + steps]])
        child, degree = np.int64(nodes[4 * state + CHILD]), nodes[4 * state + DEGREE]
        last = child + (degree >> 8)
        if degree & 0xFF != label:
            child += 1
            while child < last and automaton.labels[child] != label:
                child += 1
        if child >= last:
            break
        state = child
        steps += 1
    return steps


@inline
def _look_up(
    automaton: Any,
    finding: Any,
    text: Any,
    begin: Any,
    end: Any,
    first: Any,
    value: Any,
    spare: Any,
    n: Any,
    most: Any,
) -> Any:
    """Look up what was kept, of which place 0 is ``first``; how many steps that takes.

    Stops after more than ``most``.
    """
    slots, probes, passed = finding.slots, finding.probes, finding.passed
    mask = np.uint64((len(slots) >> 1) - 1)
    steps = n >> 1
    for i in range(0, n, 2):
        if steps > most:
            break
        window, place = passed[np.uint64(i)], passed[np.uint64(i + 1)]
        prefix = window & probes[place & _LENGTH]
        at = hash_word(prefix, probes[0]) & mask
        while True:
            word, leads = slots[at + at], slots[at + at + _ONE]
            if not leads:
                break
            at = (at + _ONE) & mask
            length = leads & _LENGTH
            if (window ^ word) << (_ALL - length * _BYTE) or word & _PREFIX != prefix:
                continue
            start, number = first + np.int64(place >> _BYTE), np.int64(leads >> _NUMBER)
            if not leads & _IS_STATE:
                _note(finding, number, value, start - begin, spare)
                continue
            depth = np.int64(length)
            steps += _follow(
                automaton,
                finding,
                text,
                start + depth,
                end,
                number,
                depth,
                value,
                start - begin,
                spare,
            )
    return steps


@inline
def _find_by_windows(
    automaton: Any, finding: Any, text: Any, begin: Any, end: Any, value: Any, spare: Any
) -> Any:
    """Find by windows; False if that takes too many steps, and all is to be read again."""
    length = end - begin
    most, steps = 8 * length + 64, np.int64(0)
    window = np.uint64(automaton.classes[START_CLASS]) << _LAST_BYTE
    position = begin
    while True:
        n, stretch = np.int64(0), position
        while position < min(end, stretch + _STRETCH):
            label = np.uint64(automaton.classes[text[position]])
            window = window >> _BYTE | label << _LAST_BYTE
            n = _try_place(finding, window, position - stretch, n)
            position += 1
        if position == end:
            label = np.uint64(automaton.classes[END_CLASS])
            for behind in range(_KNOWN):
                window = window >> _BYTE | label << _LAST_BYTE
                label = np.uint64(0)
                n = _try_place(finding, window, position + behind - stretch, n)
        first = stretch + 1 - _KNOWN  # where the window begins whose last byte is read first
        left = most - steps
        steps += _look_up(automaton, finding, text, begin, end, first, value, spare, n, left)
        if position == end or steps > most:
            break
    counts = finding.counts
    counts[EXCESS] = max(0, counts[EXCESS] + 5 * steps - 2 * length)
    if counts[EXCESS] > _MOST_EXCESS:
        counts[EXCESS], counts[PAUSE] = 0, _PAUSE
    return steps <= most


@apart
def find_literals(
    automaton: Any, finding: Any, text: Any, begin: Any, end: Any, value: Any, spare: Any
) -> None:
    """Find every literal of one value, ``text[begin:end]``, in ``finding``."""
    counts = finding.counts
    counts[N_FOUND] = counts[TOO_MANY] = 0
    if counts[PAUSE] > 0:
        counts[PAUSE] -= end - begin
    elif len(finding.slots) > 0 and _find_by_windows(
        automaton, finding, text, begin, end, value, spare
    ):
        return
    read_by_automaton(automaton, finding, text, begin, end, value, spare)
