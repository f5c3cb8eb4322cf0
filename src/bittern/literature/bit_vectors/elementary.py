"""Elementary intervals: the pieces into which end points cut the cells (seed 004, 4.1.2).

Every distinct end point e is an elementary interval [e, e] by itself, and so is each gap between
two consecutive end points, before the first and after the last. Over cells a gap may be empty,
and then it does not exist. End points 2, 5, 18 and 30 in a domain of 41 cells::

    [0, 1] [2, 2] [3, 4] [5, 5] [6, 17] [18, 18] [19, 29] [30, 30] [31, 40]       2n + 1 = 9

All cells of an elementary interval are in the same intervals: none begins or ends inside. They
partition the domain, so that their first cells, the *bounds*, say everything.

``bounds_of`` lists the bounds of many intervals, ``cuts_of`` those that one more interval needs
(at most four), ``split`` cuts a sorted list of elementary intervals at these, and ``last_within``
finds the elementary interval of a value inside a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.jit import inline

if TYPE_CHECKING:
    from bittern.arrays import Int32s


def bounds_of(lows: Int32s, highs: Int32s, domain: int) -> Int32s:
    """First cells of the elementary intervals of valid intervals, ascending: O(n log n)."""
    zero = np.zeros(min(domain, 1), np.int32)
    points = _distinct(np.concatenate([lows, highs]))
    bounds = _distinct(np.concatenate([zero, points, points + np.int32(1)]))
    return bounds[bounds < domain]


def highs_of(bounds: Int32s, domain: int) -> Int32s:
    """Last cells of the elementary intervals that begin at these bounds."""
    return np.append(bounds[1:], np.int32(domain))[: len(bounds)] - np.int32(1)


def _distinct(cells: Int32s) -> Int32s:
    """Ascending, each once. ``np.unique`` hashes first, which takes ten times as long here."""
    cells.sort()
    keep = np.ones(len(cells), bool)
    np.not_equal(cells[1:], cells[:-1], out=keep[1:])
    return cells[keep]


def cuts_of(low: int, high: int, domain: int) -> Int32s:
    """Bounds that make each end of one interval an elementary interval, ascending."""
    cuts = sorted({low, low + 1, high, high + 1})
    return np.array([cut for cut in cuts if cut < domain], np.int32)


@inline
def last_within(cells: Any, begin: Any, end: Any, value: Any) -> Any:
    """Position of the last of cells[begin:end] that is not above ``value``; begin if all are.

    Each step of the binary search is a conditional move instead of a jump, which random values
    would mispredict. Positions are uint64.
    """
    one = np.uint64(1)
    at, size = begin, end - begin
    while size > one:
        half = size >> one
        at = at + half if cells[at + half] <= value else at
        size -= half
    return at


class Split(NamedTuple):
    """What one interval does to a sorted list of disjoint elementary intervals.

    Those at positions ``begin`` to ``stop - 1`` are replaced by [lows[i], highs[i]]; the i-th is a
    part of the one at position ``sources[i]``, or of none (-1) where the list had a hole. Those at
    ``inside`` are in the interval; the others are what it leaves of the first and the last.
    """

    begin: int
    stop: int
    lows: Int32s
    highs: Int32s
    sources: Int32s
    inside: slice


def split(lows: Int32s, highs: Int32s, low: int, high: int) -> Split:
    """Cut elementary intervals [lows[i], highs[i]] for [low, high]: O(log n + parts).

    The list may have holes (a structure may leave out what is in no interval); [low, high] is
    covered without holes by the result.
    """
    begin = int(np.searchsorted(highs, low, "left"))
    stop = int(np.searchsorted(lows, high, "right"))
    old_lows, old_highs = lows[begin:stop], highs[begin:stop]
    first = min(low, int(old_lows[0])) if begin < stop else low
    end = max(high, int(old_highs[-1])) + 1 if begin < stop else high + 1
    cuts = np.array([low, low + 1, high, high + 1], np.int32)
    bounds = _distinct(np.concatenate([old_lows, old_highs + np.int32(1), cuts]))
    bounds = bounds[(bounds >= first) & (bounds < end)]
    ends = np.append(bounds[1:], end).astype(np.int32) - np.int32(1)
    at = np.searchsorted(old_lows, bounds, "right").astype(np.int32) - np.int32(1)
    within = (at >= 0) & (bounds <= old_highs[at]) if begin < stop else np.zeros(len(at), bool)
    inside = slice(int(np.searchsorted(bounds, low)), int(np.searchsorted(bounds, high, "right")))
    sources = np.where(within, at + begin, -1).astype(np.int32)
    return Split(begin, stop, bounds, ends, sources, inside)
