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
from bittern.engine.one_event.table import CANDIDATES, CELLS, MATCHES, N_SLOTS
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
    class_starts = array_at(t[34, 0], (t[34, 1],), np.int32)
    subscribers = array_at(t[35, 0], (t[35, 1],), np.int32)
    cells = array_at(t[46, 0], (t[46, 1],), np.int32)
    channels = array_at(t[47, 0], (t[47, 1],), np.int32)
    matrix = array_at(t[50, 0], (t[50, 1],), np.int32)
    classes = array_at(t[54, 0], (t[54, 1],), np.int32)
    out = array_at(t[56, 0], (t[56, 1],), np.int32)
    state = array_at(t[57, 0], (t[57, 1],), np.int64)
    firsts = array_at(t[64, 0], (t[64, 1],), np.int32)
    slots = array_at(t[65, 0], (t[65, 1],), np.int32)
    lines = array_at(t[66, 0], (t[66, 1],), np.uint8)
    offsets = array_at(t[67, 0], (t[67, 1],), np.int64)
    columns = array_at(t[68, 0], (t[68, 1],), np.int32)
    starts = array_at(t[69, 0], (t[69, 1],), np.int32)
    words = array_at(t[70, 0], (t[70, 1],), np.uint64)
    union_offsets = array_at(t[71, 0], (t[71, 1],), np.int64)
    union_columns = array_at(t[72, 0], (t[72, 1],), np.int32)
    union_starts = array_at(t[73, 0], (t[73, 1],), np.int32)
    union_words = array_at(t[74, 0], (t[74, 1],), np.uint64)
    program_starts = array_at(t[75, 0], (t[75, 1],), np.int32)
    rows = array_at(t[76, 0], (t[76, 1], 4), np.int32)
    values = array_at(t[77, 0], (t[77, 1],), np.uint8)
    union_line = array_at(t[78, 0], (WORDS,), np.uint64)
    line = array_at(t[79, 0], (WORDS,), np.uint64)
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
