"""The classes that one event matches by bits: a compiled call after the one for pivots.

An index may have some of its classes in bits (``matching/bits``). The call for one event
(``kernel.py``) has left the event's cells in the scratch, and what pivots found. This call adds
what bits find: the blocks that the event may match, by their lines; of each block the classes that
it may match, by theirs; and what is left by its program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.engine.one_event.found import expand
from bittern.engine.one_event.kernel import ROOM
from bittern.engine.one_event.table import CANDIDATES, CELLS, MATCHES, N_SLOTS, SLOTS
from bittern.jit import array_at, i8, kernel, popcount
from bittern.matching.bits.lines import BLOCK
from bittern.matching.program import accepts
from bittern.model.rank.encoded import stretch_of
from bittern.vectors import WORDS, and_lines

#: The arrays of bits, in the order of their slots, and the type of each.
ARRAYS: dict[str, str | tuple[str, int]] = {
    "groups.firsts": "i4",
    "groups.slots": "i4",
    "groups.lines": "u1",
    "blocks.offsets": "i8",
    "blocks.columns": "i4",
    "blocks.starts": "i4",
    "blocks.words": "u8",
    "unions.offsets": "i8",
    "unions.columns": "i4",
    "unions.starts": "i4",
    "unions.words": "u8",
    "starts": "i4",
    "rows": ("i4", 4),
}
_ONE = np.uint64(1)


@kernel(i8, i8, i8, i8, i8, i8)
def match_bits(table: Any, first_class: Any, n_matches: Any, alive_at: Any, n_alive: Any) -> Any:
    """Add matches behind ``n_matches``; returns ``candidates << 32 | matches``, or ``ROOM``.

    The classes in bits are numbered from ``first_class`` on. O(blocks x channels + candidates).
    """
    t = array_at(table, (N_SLOTS, 2), np.int64)
    class_starts = array_at(t[SLOTS.class_starts, 0], (t[SLOTS.class_starts, 1],), np.int32)
    subscribers = array_at(t[SLOTS.subscribers, 0], (t[SLOTS.subscribers, 1],), np.int32)
    cells = array_at(t[SLOTS.cells, 0], (t[SLOTS.cells, 1],), np.int32)
    channels = array_at(t[SLOTS.channels, 0], (t[SLOTS.channels, 1],), np.int32)
    matrix = array_at(t[SLOTS.matrix, 0], (t[SLOTS.matrix, 1],), np.int32)
    classes = array_at(t[SLOTS.classes, 0], (t[SLOTS.classes, 1],), np.int32)
    out = array_at(t[SLOTS.out, 0], (t[SLOTS.out, 1],), np.int32)
    state = array_at(t[SLOTS.state, 0], (t[SLOTS.state, 1],), np.int64)
    firsts = array_at(t[SLOTS.bit_firsts, 0], (t[SLOTS.bit_firsts, 1],), np.int32)
    slots = array_at(t[SLOTS.bit_slots, 0], (t[SLOTS.bit_slots, 1],), np.int32)
    lines = array_at(t[SLOTS.bit_lines, 0], (t[SLOTS.bit_lines, 1],), np.uint8)
    offsets = array_at(t[SLOTS.block_offsets, 0], (t[SLOTS.block_offsets, 1],), np.int64)
    columns = array_at(t[SLOTS.block_columns, 0], (t[SLOTS.block_columns, 1],), np.int32)
    starts = array_at(t[SLOTS.block_starts, 0], (t[SLOTS.block_starts, 1],), np.int32)
    words = array_at(t[SLOTS.block_words, 0], (t[SLOTS.block_words, 1],), np.uint64)
    union_offsets = array_at(t[SLOTS.union_offsets, 0], (t[SLOTS.union_offsets, 1],), np.int64)
    union_columns = array_at(t[SLOTS.union_columns, 0], (t[SLOTS.union_columns, 1],), np.int32)
    union_starts = array_at(t[SLOTS.union_starts, 0], (t[SLOTS.union_starts, 1],), np.int32)
    union_words = array_at(t[SLOTS.union_words, 0], (t[SLOTS.union_words, 1],), np.uint64)
    program_starts = array_at(t[SLOTS.bit_starts, 0], (t[SLOTS.bit_starts, 1],), np.int32)
    rows = array_at(t[SLOTS.bit_rows, 0], (t[SLOTS.bit_rows, 1], 4), np.int32)
    values = array_at(t[SLOTS.bit_values, 0], (t[SLOTS.bit_values, 1],), np.uint8)
    union_line = array_at(t[SLOTS.union_line, 0], (WORDS,), np.uint64)
    line = array_at(t[SLOTS.line, 0], (WORDS,), np.uint64)
    alive = array_at(alive_at, (n_alive,), np.uint8)

    n_cells, width = state[CELLS], np.int64(len(matrix))
    values[:] = 0
    for i in range(n_cells):
        matrix[np.uint64(channels[i])] = cells[i]
        group = stretch_of(firsts, len(firsts), cells[i], 0)
        slot = np.int64(slots[group])
        if slot >= 0:
            values[slot] = lines[group]
    n, candidates, zero = np.int64(0), np.int64(0), np.int64(0)
    n_classes = len(program_starts) - 1
    for union in range(len(union_offsets) - 1):
        begin, end = union_offsets[union], union_offsets[union + 1]
        and_lines(union_words, union_starts, union_columns, values, zero, begin, end, union_line)
        for union_word in range(WORDS):
            blocks = union_line[union_word]
            while blocks:
                lowest = blocks & (~blocks + _ONE)
                blocks ^= lowest
                block = union * BLOCK + 64 * union_word + np.int64(popcount(lowest - _ONE))
                if block >= len(offsets) - 1:
                    break
                begin, end = offsets[block], offsets[block + 1]
                if not and_lines(words, starts, columns, values, zero, begin, end, line):
                    continue
                for word in range(WORDS):
                    left = line[word]
                    while left:
                        lowest = left & (~left + _ONE)
                        left ^= lowest
                        c = block * BLOCK + 64 * word + np.int64(popcount(lowest - _ONE))
                        if c >= n_classes:
                            break
                        candidates += 1
                        if accepts(
                            matrix,
                            width,
                            state,
                            union_words,
                            state,
                            zero,
                            rows,
                            np.int64(program_starts[c]),
                            np.int64(program_starts[c + 1]),
                        ):
                            if n < len(classes):
                                classes[n] = first_class + c
                            n += 1
    for i in range(n_cells):
        matrix[np.uint64(channels[i])] = -1
    if n > len(classes):
        state[CANDIDATES] = n
        return np.int64(ROOM)
    matches = expand(class_starts, subscribers, alive, classes, n, out, n_matches)
    if matches > len(out):
        state[MATCHES] = matches
        return np.int64(ROOM)
    return candidates << 32 | matches
