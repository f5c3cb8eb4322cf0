"""Runs: where the ids of a batch are in an array, found in one pass and copied in another.

A structure that keeps id lists answers a value with a few pieces (runs) of its ``items`` array.
Its search kernel writes down where they are, and nothing else::

    items    3  8  1  4  9  2              value 0 is in lists [0, 2) and [5, 6), value 1 in none,
    begins   0  5  2                       value 2 in list [2, 5)
    lengths  2  1  3
    ends     0  2  2  3                    runs of value i: ends[i] .. ends[i + 1]
    offsets  0  3  3  6                    ids of value i: offsets[i] .. offsets[i + 1]

Two passes, because the first waits for scattered directory entries, many at once since none
depends on another, and the second streams; doing both per value makes every copy wait for its
directory entry. Nothing is looked up twice, and the output is allocated once, at its exact size.
Cost: 16 bytes per value and 8 per run, beside the search and the copying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bittern.jit import i4r, i4w, i8, i8w, inline, kernel, prefetch, tuple_type, void
from bittern.stabbing.contract import Located

if TYPE_CHECKING:
    from collections.abc import Callable

    from bittern.arrays import Int32s, Int64s

_RUNS_PER_VALUE = 4
_WIDE = 8
_LINE = 16
_AHEAD_SHORT, _AHEAD_LONG, _LONG = 48, 24, 32
"""Runs between asking for ids and copying them, where runs are short or long on average: as many
as cover a miss of all caches, and not much more."""


class RunArrays(NamedTuple):
    """What a search kernel writes; see the module for the layout."""

    offsets: Int64s
    ends: Int64s
    begins: Int32s
    lengths: Int32s


RUNS = tuple_type(RunArrays, i8w, i8w, i4w, i4w)


@inline
def add_run(begin: Any, end: Any, begins: Any, lengths: Any, n: Any) -> Any:
    """Write one more run, unless it is empty, and return how many there are; without a branch."""
    begins[np.uint64(n)] = begin
    length = int(end) - int(begin)
    lengths[np.uint64(n)] = length
    return n + int(length > 0)


@kernel(void, i4r, i4r, i4r, i8, i8, i4w)
def _copy_runs(items: Any, begins: Any, lengths: Any, first: Any, last: Any, ids: Any) -> None:
    """Copy eight ids at a time, past the end of a run: the next run writes over what is too much.

    Runs are short and of all lengths: a loop that stops exactly mispredicts the end of each.
    """
    at = 0
    distance = _AHEAD_LONG if len(ids) > _LONG * (last - first) else _AHEAD_SHORT
    for run in range(first, last):
        ahead = np.uint64(min(run + distance, last - 1))
        later = np.uint64(begins[ahead])
        prefetch(items, later)
        if lengths[ahead] > _LINE:  # hardware goes on by itself after some lines
            prefetch(items, later + np.uint64(_LINE))
            prefetch(items, later + np.uint64(2 * _LINE))
            prefetch(items, later + np.uint64(3 * _LINE))
        begin, length = int(begins[np.uint64(run)]), int(lengths[np.uint64(run)])
        wide = (length + _WIDE - 1) & -_WIDE
        if at + wide > len(ids) or begin + wide > len(items):
            for i in range(length):  # too near the end of an array for eight at a time
                ids[at + i] = items[begin + i]
            at += length
            continue
        source, target = np.uint64(begin), np.uint64(at)
        at += length
        while True:
            # All are read before any is written, so that they become two wide moves.
            a, b = items[source], items[source + np.uint64(1)]
            c, d = items[source + np.uint64(2)], items[source + np.uint64(3)]
            e, f = items[source + np.uint64(4)], items[source + np.uint64(5)]
            g, h = items[source + np.uint64(6)], items[source + np.uint64(7)]
            ids[target], ids[target + np.uint64(1)] = a, b
            ids[target + np.uint64(2)], ids[target + np.uint64(3)] = c, d
            ids[target + np.uint64(4)], ids[target + np.uint64(5)] = e, f
            ids[target + np.uint64(6)], ids[target + np.uint64(7)] = g, h
            source += np.uint64(_WIDE)
            target += np.uint64(_WIDE)
            length -= _WIDE
            if length <= 0:
                break


class Runs(Located):
    """Runs of a batch of values; see the module for the layout."""

    def __init__(self, items: Int32s, n_values: int, most: int) -> None:
        """Make room for ``n_values``, of which none has more than ``most`` runs."""
        self.items = items
        room = most + n_values * min(most, _RUNS_PER_VALUE)
        offsets, ends = np.empty(n_values + 1, np.int64), np.empty(n_values + 1, np.int64)
        offsets[0] = ends[0] = 0
        self.offsets = offsets
        self.found = RunArrays(offsets, ends, np.empty(room, np.int32), np.empty(room, np.int32))

    def search(self, kernel: Callable[..., int], *arguments: Any) -> Self:
        """Call the kernel with the arguments, the value to begin with, and what it writes.

        It goes on to the last value, or returns the one for which there may be no room.
        """
        done, n = 0, len(self.offsets) - 1
        while (done := kernel(*arguments, done, self.found)) < n:
            _, ends, begins, lengths = self.found
            used = int(ends[done])
            # As many per value as there were so far, and some more; at least twice as many.
            room = max(2 * len(begins), used * n // max(done, 1) * 9 // 8)
            grown = np.empty(room, np.int32), np.empty(room, np.int32)
            grown[0][:used], grown[1][:used] = begins[:used], lengths[:used]
            self.found = RunArrays(self.offsets, ends, *grown)
        return self

    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        _, ends, begins, lengths = self.found
        _copy_runs(self.items, begins, lengths, int(ends[first]), int(ends[last]), ids)
