"""Matching of bits: which blocks an event may match, which classes of a block, and which it does.

::

    values   the line of each slot, for each event                                groups.py
    unions   blocks that an event may match: lines of blocks, ANDed               _find_blocks
             turned around: the events of each block                              _list_events
    blocks   for a block, all its events: lines of classes, ANDed; the classes
             that are left run their programs                                     match_blocks

A block's lines (some tens of kilobytes) and programs stay in the cache while its events pass by.
ANDing takes no decision before its end: a test whether any bit is left, after each line or each
fourth, took longer than the lines that it spared, as it cannot be foreseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import (
    i4r,
    i4r2,
    i4w,
    i8,
    i8w,
    kernel,
    popcount,
    tuple_type,
    u1r,
    u8r,
    u8w,
    void,
)
from bittern.matching.bits.lines import BLOCK, LINES, Lines
from bittern.matching.output import OUTPUT
from bittern.matching.program import accepts
from bittern.model.rank.encoded import EVENTS
from bittern.vectors import WORDS, and_lines

#: Bytes of values, and pairs of an event and a block, that are held at once.
MOST_VALUES = 1 << 23
MOST_PAIRS = 1 << 24
_ONE = np.uint64(1)


class BitsArrays(NamedTuple):
    """What kernels see: lines of classes, lines of blocks, and programs."""

    blocks: Lines
    unions: Lines
    starts: Int32s
    rows: Int32s


BITS = tuple_type(BitsArrays, LINES, LINES, i4r, i4r2)


class Waiting(NamedTuple):
    """The events of each block, from ``offsets[block]`` on."""

    offsets: Int64s
    events: Int32s


@kernel(void, BITS, u1r, i8, i8, u8w, i8w)
def _find_blocks(
    bits: Any, values: Any, n_slots: Any, n_events: Any, found: Any, counts: Any
) -> None:
    """A bit for each block that an event may match; ``counts`` how many events each block has."""
    offsets, columns, starts, words = bits.unions
    n_unions, n_blocks = len(offsets) - 1, len(counts)
    line = np.empty(WORDS, dtype=np.uint64)
    for event in range(n_events):
        row = event * n_slots
        for union in range(n_unions):
            at = (event * n_unions + union) * WORDS
            and_lines(words, starts, columns, values, row, offsets[union], offsets[union + 1], line)
            for word in range(WORDS):
                left = line[word]
                found[np.uint64(at + word)] = left
                block = union * BLOCK + 64 * word
                while left:
                    lowest = left & (~left + _ONE)
                    place = block + np.int64(popcount(lowest - _ONE))
                    if place >= n_blocks:
                        break
                    counts[np.uint64(place)] += 1
                    left ^= lowest


@kernel(void, u8r, i8, i8, i8w, i4w)
def _list_events(found: Any, n_words: Any, n_events: Any, free: Any, events: Any) -> None:
    """Write each event to its blocks; ``free`` is where the next one of a block goes."""
    for event in range(n_events):
        for word in range(n_words):
            left = found[np.uint64(event * n_words + word)]
            while left:
                lowest = left & (~left + _ONE)
                block = 64 * word + np.int64(popcount(lowest - _ONE))
                if block >= len(free):
                    break
                events[np.uint64(free[np.uint64(block)])] = event
                free[np.uint64(block)] += 1
                left ^= lowest


def waiting_events(bits: BitsArrays, values: Any, n_slots: int, n_events: int) -> Waiting:
    """The events that each block may match, by the lines of their slots."""
    n_words = (len(bits.unions.offsets) - 1) * WORDS
    found: UInt64s = np.empty(n_events * n_words, dtype=np.uint64)
    offsets = np.zeros(len(bits.blocks.offsets), dtype=np.int64)
    _find_blocks(bits, values, n_slots, n_events, found, offsets[1:])
    np.cumsum(offsets, out=offsets)
    events = np.empty(int(offsets[-1]), dtype=np.int32)
    _list_events(found, n_words, n_events, offsets[:-1].copy(), events)
    return Waiting(offsets, events)


def tiles(n_events: int, n_slots: int, n_blocks: int) -> Iterator[tuple[int, int]]:
    """Stretches of events, as (first, last + 1), for bounded memory."""
    size = max(1, min(MOST_VALUES // max(1, n_slots), MOST_PAIRS // max(1, n_blocks)))
    for first in range(0, n_events, size):
        yield first, min(n_events, first + size)


WAITING = tuple_type(Waiting, i8w, i4w)


@kernel(void, BITS, EVENTS, WAITING, u1r, i8, i8, i8w, OUTPUT)
def match_blocks(
    bits: Any,
    events: Any,
    waiting: Any,
    values: Any,
    n_slots: Any,
    first: Any,
    candidates: Any,
    output: Any,
) -> None:
    """Match each block with the events that wait for it, of which number 0 is event ``first``.

    ``state`` is (block, waiting, matches): where to go on, and how many matches there are now.
    Stops where the output might not have room for one more line.
    """
    offsets, columns, starts, words = bits.blocks
    program_starts, rows = bits.starts, bits.rows
    matrix, width, table_starts, table, entries = events
    out_rows, out_classes, state = output
    n_classes = len(program_starts) - 1
    line = np.empty(WORDS, dtype=np.uint64)
    block, n = state[0], state[2]
    at = max(state[1], waiting.offsets[block])
    while block < len(offsets) - 1:
        begin, end = offsets[block], offsets[block + 1]
        while at < waiting.offsets[block + 1]:
            if n + BLOCK > len(out_rows):
                state[0], state[1], state[2] = block, at, n
                return
            place = np.int64(waiting.events[np.uint64(at)])
            at += 1
            if not and_lines(words, starts, columns, values, place * n_slots, begin, end, line):
                continue
            event = first + place
            for word in range(WORDS):
                left = line[word]
                while left:
                    lowest = left & (~left + _ONE)
                    left ^= lowest
                    c = block * BLOCK + 64 * word + np.int64(popcount(lowest - _ONE))
                    if c >= n_classes:
                        break
                    candidates[np.uint64(event)] += 1
                    start = np.int64(program_starts[np.uint64(c)])
                    stop = np.int64(program_starts[np.uint64(c + 1)])
                    if accepts(
                        matrix, width, table_starts, table, entries, event, rows, start, stop
                    ):
                        out_rows[np.uint64(n)] = event
                        out_classes[np.uint64(n)] = c
                        n += 1
        block += 1
    state[0], state[1], state[2] = block, at, n
