"""Lines: what 512 things may match, as one bitmap for each line of a channel.

Things are classes, or blocks of classes. 512 of them share a *block*; a bit of a line says that the
thing may match an event whose value is in that line's group (``groups.py``)::

    block 0    things      0 1 2 ... 511        slot 3: price, 4 lines    slot 5: color, 3 lines
               line 0      0 0 1 ...            no price                  no color
               line 1      1 0 1 ...            price in group 1
               ...
    offsets    0 2 ...                          block 0 has the columns 0 and 1
    columns    3 5 ...                          the slot of each
    starts     0 4 7 ...                        its first line; and the end
    words      line 0, line 1, ...              8 words of 64 bits each

A block has no more lines than it is allowed to: the slots that rule most out come first. A slot
that rules nothing out has none.

Memory: 64 bytes for each line; 8 for each column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Float64s, Int32s, Int64s, UInt64s
from bittern.jit import (
    f8r,
    frozen,
    i4r,
    i4w,
    i8,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u8r,
    u8w,
    void,
)
from bittern.matching.bits.groups import MOST_LINES
from bittern.matching.bits.limits import LIMITS, Limits, all_lines
from bittern.vectors import WORDS

#: Things in a block, a bit of a line each.
BLOCK = 64 * WORDS
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: Lines that begin with a cache line are read at once.
_ALIGNMENT = 64


class Lines(NamedTuple):
    """The lines of all blocks."""

    offsets: Int64s
    columns: Int32s
    starts: Int32s
    words: UInt64s


LINES = tuple_type(Lines, i8r, i4r, i4r, u8r)
_WRITTEN = tuple_type(Lines, i8w, i4w, i4w, u8w)


def n_blocks(n_things: int) -> int:
    """How many blocks hold so many things."""
    return -(-n_things // BLOCK)


def aligned_words(n: int) -> UInt64s:
    """Words in memory that begins with a cache line."""
    room = np.empty(8 * n + _ALIGNMENT, dtype=np.uint8)
    skipped = -room.ctypes.data % _ALIGNMENT
    return room[skipped : skipped + 8 * n].view(np.uint64)


@kernel(i8, LIMITS, i4r, f8r, i8, i8, i8w, i4w)
def _choose(
    limits: Any,
    n_lines: Any,
    shares: Any,
    most_lines: Any,
    n: Any,
    counts: Any,
    columns: Any,
) -> Any:
    """The slots of each block, best first, from the n-th column on; returns their new number."""
    offsets, slots, masks = limits
    gains = np.zeros(len(n_lines), dtype=np.float64)
    touched = np.empty(len(n_lines), dtype=np.int64)
    n_things = len(offsets) - 1
    for block in range(len(counts)):
        n_touched, room, begin = 0, most_lines, n
        things = offsets[block * BLOCK], offsets[min((block + 1) * BLOCK, n_things)]
        for i in range(things[0], things[1]):
            slot = np.int64(slots[i])
            if gains[slot] == 0.0:
                touched[n_touched] = slot
                n_touched += 1
                gains[slot] = 1e-12  # it rules something out, however unlikely
            for line in range(n_lines[slot]):
                if not masks[i] >> np.uint64(line) & _ONE:
                    gains[slot] += shares[slot * MOST_LINES + line]
        for chosen in range(n_touched):
            best = chosen
            for k in range(chosen + 1, n_touched):
                if gains[touched[k]] > gains[touched[best]]:
                    best = k
            slot = touched[best]
            touched[best], touched[chosen] = touched[chosen], slot
            if n_lines[slot] > room:
                break
            room -= np.int64(n_lines[slot])
            columns[n] = slot
            n += 1
        for k in range(n_touched):
            gains[touched[k]] = 0.0
        counts[block] = n - begin
    return n


@inline
def _present(first: Any, n_things: Any) -> Any:
    """A word with a bit for each of 64 things from ``first`` on that exists."""
    left = n_things - first
    if left <= 0:
        return _ZERO
    return all_lines(min(left, 64))


@kernel(void, LIMITS, i8, i8, i4r, _WRITTEN)
def _write(limits: Any, first_block: Any, last_block: Any, n_lines: Any, lines: Any) -> None:
    """Write the words of blocks, whose limits begin with those of the first one's things."""
    offsets, slots, masks = limits
    block_offsets, columns, starts, words = lines
    start_of = np.full(len(n_lines), -1, dtype=np.int64)
    n_things = len(offsets) - 1
    for block in range(first_block, last_block):
        first = (block - first_block) * BLOCK
        for column in range(block_offsets[block], block_offsets[block + 1]):
            start_of[columns[column]] = starts[column]
            for line in range(starts[column], starts[column] + n_lines[columns[column]]):
                for word in range(WORDS):
                    words[line * WORDS + word] = _present(first + 64 * word, n_things)
        for thing in range(first, min(first + BLOCK, n_things)):
            word, bit = (thing - first) >> 6, _ONE << np.uint64((thing - first) & 63)
            for i in range(offsets[thing], offsets[thing + 1]):
                start = start_of[slots[i]]
                if start < 0:
                    continue
                for line in range(n_lines[slots[i]]):
                    if not masks[i] >> np.uint64(line) & _ONE:
                        words[(start + line) * WORDS + word] &= ~bit
        for column in range(block_offsets[block], block_offsets[block + 1]):
            start_of[columns[column]] = -1


@kernel(i8, LINES, i4r, i8w, i4w, u8w)
def _block_limits(lines: Any, n_lines: Any, offsets: Any, slots: Any, masks: Any) -> Any:
    """What each block may match: the lines that are not empty; returns how many limits."""
    n = 0
    for block in range(len(lines.offsets) - 1):
        offsets[block] = n
        for column in range(lines.offsets[block], lines.offsets[block + 1]):
            slot, mask = lines.columns[column], _ZERO
            for line in range(n_lines[slot]):
                some = _ZERO
                for word in range(WORDS):
                    some |= lines.words[(lines.starts[column] + line) * WORDS + word]
                if some:
                    mask |= _ONE << np.uint64(line)
            if mask != all_lines(np.int64(n_lines[slot])):
                slots[n], masks[n] = slot, mask
                n += 1
    offsets[len(lines.offsets) - 1] = n
    return n


def block_limits(lines: Lines, n_lines: Int32s) -> Limits:
    """The limits of blocks, as things."""
    offsets = np.empty_like(lines.offsets)
    slots = np.empty(len(lines.columns), dtype=np.int32)
    masks = np.empty(len(lines.columns), dtype=np.uint64)
    n = _block_limits(frozen(lines), n_lines, offsets, slots, masks)
    return frozen(Limits(offsets, slots[:n], masks[:n]))


def choose_columns(
    limits: Limits, n_lines: Int32s, shares: Float64s, most_lines: int
) -> tuple[Int64s, Int32s]:
    """How many columns each block of these things has, and their slots."""
    counts = np.zeros(n_blocks(len(limits.offsets) - 1), dtype=np.int64)
    most = min(len(n_lines), most_lines // 2)  # a slot has two lines or more
    columns = np.empty(len(counts) * most, dtype=np.int32)
    n = _choose(limits, n_lines, shares, most_lines, 0, counts, columns)
    return counts, columns[:n].copy()


def empty_lines(counts: Int64s, columns: Int32s, n_lines: Int32s) -> Lines:
    """Lines that ``write_lines`` is going to write, for blocks with these columns."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    starts = np.zeros(len(columns) + 1, dtype=np.int32)
    np.cumsum(n_lines[columns], out=starts[1:])
    return Lines(offsets, columns.copy(), starts, aligned_words(int(starts[-1]) * WORDS))


def write_lines(lines: Lines, first: int, limits: Limits, n_lines: Int32s) -> None:
    """Write the lines of the blocks from ``first`` on, whose things have these limits."""
    last = first + n_blocks(len(limits.offsets) - 1)
    _write(limits, first, last, n_lines, lines)


def check_lines(lines: Lines, n_things: int, n_lines: Int64s) -> None:
    """Every block has columns of different slots, and their lines tile the words."""
    offsets, columns, starts, words = lines
    assert len(offsets) == n_blocks(n_things) + 1, "there are more or fewer blocks"
    assert offsets[0] == 0, "columns do not begin with the first block"
    assert (np.diff(offsets) >= 0).all(), "columns of blocks are not ascending"
    assert offsets[-1] == len(columns) == len(starts) - 1, "columns differ in number"
    assert ((columns >= 0) & (columns < len(n_lines))).all(), "a column has no slot"
    block = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = block * max(1, len(n_lines)) + columns
    assert len(np.unique(keys)) == len(keys), "a block has a slot twice"
    tiles = starts[0] == 0 and np.array_equal(np.diff(starts.astype(np.int64)), n_lines[columns])
    assert tiles, "the lines of columns do not follow each other"
    assert len(words) == WORDS * int(starts[-1]), "words are missing, or there are too many"
