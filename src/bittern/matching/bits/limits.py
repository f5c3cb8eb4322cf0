"""Limits: for which lines of a channel can a class still match?

The program of a class (``matching/program.py``) is followed backwards, for one channel at a time.
Whatever the other channels hold, ``may[i]`` are the lines for which row i can still lead to
"accept"; a test of the channel itself lets a line go on as true if its group overlaps the test, and
as false unless its group lies within. For ``price < 10 OR color = 'red' AND price > 50``, with the
groups [..9] [10..49] [50..60] [61..] of ``price`` in the lines 1 to 4::

    row  test           if true    if false   may, for price
    0    price < 10     accept     1          1     3 4        = (1 and all) or (2 3 4 0 and 3 4)
    1    color = 'red'  2          reject     3 4
    2    price > 50     accept     reject     3 4              not 3 alone: its group has 51, too

So the limit is sound for every expression, and for a conjunction it is its test. Channels that rule
nothing out have no limit. A block of classes is limited by what its lines hold: ``lines.py`` builds
bitmaps of either.

Cost: O(rows) for each channel of a class, of which the first 64 are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import frozen, i4r, i4r2, i4w, i8, i8r, i8w, inline, kernel, tuple_type, u8r, u8w
from bittern.matching.bits.groups import GROUPS, GroupArrays, line_counts
from bittern.model.rank.encoded import stretch_of

#: Channels of a class that are looked at: the time is their number times that of the rows.
_MOST_CHANNELS = 64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


class Limits(NamedTuple):
    """The limits of things, from ``offsets[i]`` on: slots, and the lines that each may match."""

    offsets: Int64s
    slots: Int32s
    masks: UInt64s


LIMITS = tuple_type(Limits, i8r, i4r, u8r)
_WRITTEN = tuple_type(Limits, i8w, i4w, u8w)


@inline
def all_lines(n: Any) -> Any:
    """A word with the lowest n bits set, of which there are 1 to 64."""
    return ~_ZERO >> np.uint64(64 - n)


@inline
def _true_lines(groups: Any, low: Any, high: Any) -> Any:
    """Lines for which a test may hold, and lines for which it does in any case."""
    if low > high:
        return _ZERO, _ZERO
    if low < 0:
        return _ONE, _ONE
    first = stretch_of(groups.firsts, len(groups.firsts), low, 0)
    last = stretch_of(groups.firsts, len(groups.firsts), high, first)
    line, end = np.int64(groups.lines[first]), np.int64(groups.lines[last])
    may = all_lines(end + 1) & (~_ZERO << np.uint64(line))
    surely = may
    if groups.firsts[first] < low:
        surely &= ~(_ONE << np.uint64(line))
    # The next stretch begins behind this one; the last one of all is taken to be cut.
    if last + 1 >= len(groups.firsts) or groups.firsts[last + 1] > high + 1:
        surely &= ~(_ONE << np.uint64(end))
    return may, surely


@kernel(i8, i4r, i4r2, i8, i8, i4r, GROUPS, i4r, _WRITTEN)
def _limit(
    starts: Any,
    rows: Any,
    first: Any,
    last: Any,
    slot_of: Any,
    groups: Any,
    n_lines: Any,
    limits: Any,
) -> Any:
    """Write the limits of the classes ``first`` to ``last``; returns how many there are."""
    offsets, slots, masks = limits
    longest = 0
    for c in range(first, last):
        longest = max(longest, starts[c + 1] - starts[c])
    holds = np.empty((longest, 2), dtype=np.uint64)
    may = np.empty(longest + 2, dtype=np.uint64)
    seen = np.full(len(n_lines), -1, dtype=np.int64)
    n = 0
    for c in range(first, last):
        offsets[c - first] = n
        begin, size = np.int64(starts[c]), np.int64(starts[c + 1] - starts[c])
        for i in range(size):
            may_hold, holds_surely = _true_lines(groups, rows[begin + i, 1], rows[begin + i, 2])
            holds[i, 0], holds[i, 1] = may_hold, holds_surely
        looked_at = 0
        for own in range(size):
            channel = rows[begin + own, 0]
            slot = np.int64(slot_of[channel]) if channel >= 0 else -1
            if slot < 0 or seen[slot] == c or looked_at == _MOST_CHANNELS:
                continue
            seen[slot] = c
            looked_at += 1
            whole = all_lines(np.int64(n_lines[slot]))
            may[size], may[size + 1] = whole, _ZERO
            for i in range(size - 1, -1, -1):
                if_true, if_false = whole, whole
                if rows[begin + i, 1] > rows[begin + i, 2]:
                    if_true = _ZERO
                elif rows[begin + i, 0] == channel:
                    if_true, if_false = holds[i, 0], whole & ~holds[i, 1]
                jump = rows[begin + i, 3]
                target = np.int64(jump >> 1)  # forward, and to "reject" at most, unless damaged
                target = size + 1 if target > size or target <= i else target
                if jump & 1:
                    may[i] = (if_true & may[target]) | (if_false & may[i + 1])
                else:
                    may[i] = (if_false & may[target]) | (if_true & may[i + 1])
            if may[0] != whole:
                slots[n], masks[n] = slot, may[0]
                n += 1
    offsets[last - first] = n
    return n


class Programs:
    """The programs of classes, and the slots and groups of what they test."""

    def __init__(self, starts: Int32s, rows: Int32s, channels: Int32s, groups: GroupArrays) -> None:
        self._starts, self._rows, self._groups = starts, rows, groups
        self._slot_of = np.full(max(rows[:, 0].max(initial=0), channels.max(initial=0)) + 1, -1)
        self._slot_of = self._slot_of.astype(np.int32)
        self._slot_of[channels] = np.arange(len(channels), dtype=np.int32)
        self.n_lines = line_counts(groups)

    def limits(self, size: int) -> Iterator[tuple[int, Limits]]:
        """The number of a class, and the limits of the ``size`` classes from it on."""
        starts, n_classes = self._starts, len(self._starts) - 1
        for first in range(0, n_classes, size):
            last = min(n_classes, first + size)
            room = int(starts[last]) - int(starts[first])
            limits = Limits(
                np.empty(last - first + 1, dtype=np.int64),
                np.empty(room, dtype=np.int32),
                np.empty(room, dtype=np.uint64),
            )
            n = _limit(
                starts, self._rows, first, last, self._slot_of, self._groups, self.n_lines, limits
            )
            yield first, frozen(Limits(limits.offsets, limits.slots[:n], limits.masks[:n]))
