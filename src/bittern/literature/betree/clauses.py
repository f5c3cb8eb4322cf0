"""Clauses of a BE-Tree as rows: what its l-nodes point to.

A clause is known by the row of its head; then come its predicates, the one that fewest events are
expected to get past first, "missing" last::

    rows[31]   class 5    c-node 4   place 1   size          head: whose, where it is filed, and
    rows[32]   c          40   44    0                       rows << 2 | several << 1 | more
    rows[33]   a           2    9    3                       three intervals, in the rows below
    rows[34]   2  2  5  5
    rows[35]   9  9  0 -1

*several* says that its class has other clauses, *more* that the next clause is one of them. A
predicate gives its lowest and highest cell; if it has several intervals, also how many. The class
of a clause that was deleted is -1.

An event that reaches a clause has been led there by channels and halved intervals. ``share`` is
what part of all events that is, if the clause is filed under one predicate: the channel's
frequency times the part of its cells that is in the smallest of the repeatedly halved intervals
that encloses the predicate. It orders the predicates, and is what space cutting goes by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.jit import b1, f8r, frozen, i4r, i4r2, i4w2, i8, i8r, i8w, inline, kernel, void
from bittern.literature.clauses.normal import CLAUSES, Clauses

# The columns of a clause's head.
CLASS, LEAF, SPOT, SIZE = range(4)
SEVERAL, MORE = 2, 1
#: In ``firsts``, instead of the row of a class's first clause: it has none, or was deleted.
NO_CLAUSE, DELETED = -1, -2


@inline
def rows_of(rows: Any, clause: Any) -> Any:
    """Where the predicates of a clause end."""
    return clause + 1 + (rows[np.uint64(clause), SIZE] >> 2)


@inline
def interval_rows(n: Any) -> Any:
    """Rows below a predicate that says it has n intervals: two in each."""
    return (n + 1) >> 1


@inline
def share(bases: Any, frequencies: Any, channel: Any, low: Any, high: Any) -> Any:
    """The part of all events that get to the smallest halved interval around a predicate."""
    first, last = bases[channel], bases[channel + 1] - 1
    cells = last - first + 1
    while first < last:
        middle = (first + last) >> 1
        if high <= middle:
            last = middle
        elif low > middle:
            first = middle + 1
        else:
            break
    return frequencies[channel] * (last - first + 1) / cells


@inline
def _among(rows: Any, at: Any, n: Any, cell: Any) -> Any:
    """Whether the cell is in one of the n ascending intervals from row ``at`` on."""
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) >> 1
        if rows[np.uint64(at + (middle >> 1)), np.uint64(2 * (middle & 1))] <= cell:
            low = middle
        else:
            high = middle
    row, column = np.uint64(at + (low >> 1)), 2 * (low & 1)
    return rows[row, np.uint64(column)] <= cell <= rows[row, np.uint64(column + 1)]


@inline
def holds(rows: Any, clause: Any, cells: Any) -> Any:
    """Whether all predicates of a clause hold; ``cells`` are the event's, by channel (-1: none)."""
    at, end = clause + 1, rows_of(rows, clause)
    while at < end:
        row = np.uint64(at)
        cell = cells[np.uint64(rows[row, 0])]
        if cell < rows[row, 1] or cell > rows[row, 2]:
            return False
        n = rows[row, 3]
        at += 1
        if n:
            if not _among(rows, at, n, cell):
                return False
            at += interval_rows(n)
    return True


@kernel(void, CLAUSES, i4r, i4r, f8r, i8, i4w2, i8w)
def _lay_out(
    clauses: Any,
    numbers: Any,
    bases: Any,
    frequencies: Any,
    at: Any,
    rows: Any,
    places: Any,
) -> None:
    """Write clauses as rows from ``at`` on; ``places`` become the rows of their heads."""
    owners, starts, channels, interval_starts, lows, highs = clauses
    widest = 0
    for c in range(len(owners)):
        widest = max(widest, starts[c + 1] - starts[c])
    order = np.empty(widest, dtype=np.int64)
    shares = np.empty(widest, dtype=np.float64)
    for c in range(len(owners)):
        more = np.int64(c + 1 < len(owners) and owners[c + 1] == owners[c])
        several = more | np.int64(c > 0 and owners[c - 1] == owners[c])
        for k in range(starts[c + 1] - starts[c]):
            p = starts[c] + k
            low, high = lows[interval_starts[p]], highs[interval_starts[p + 1] - 1]
            own = 2.0  # "missing" after everything that can be looked up
            if low >= 0:
                own = share(bases, frequencies, channels[p], low, high)
            spot = k
            while spot > 0 and shares[spot - 1] > own:
                shares[spot], order[spot] = shares[spot - 1], order[spot - 1]
                spot -= 1
            shares[spot], order[spot] = own, p
        head = at
        places[c] = head
        at += 1
        for k in range(starts[c + 1] - starts[c]):
            p = order[k]
            first, last = interval_starts[p], interval_starts[p + 1]
            rows[at, 0], rows[at, 1], rows[at, 2] = channels[p], lows[first], highs[last - 1]
            n = last - first
            rows[at, 3] = n if n > 1 else 0
            at += 1
            if n > 1:
                for i in range(n):
                    rows[at + (i >> 1), 2 * (i & 1)] = lows[first + i]
                    rows[at + (i >> 1), 2 * (i & 1) + 1] = highs[first + i]
                at += interval_rows(n)
                if n & 1:
                    rows[at - 1, 2], rows[at - 1, 3] = 0, -1
        rows[head, CLASS] = numbers[owners[c]]
        rows[head, LEAF] = rows[head, SPOT] = -1
        rows[head, SIZE] = (at - head - 1) << 2 | several << 1 | more


def n_rows(clauses: Clauses) -> int:
    """How many rows clauses take."""
    n = np.diff(clauses.interval_starts)
    return len(clauses) + len(n) + int(((n[n > 1] + 1) >> 1).sum())


def lay_out(
    clauses: Clauses,
    numbers: npt.NDArray[np.int32],
    bases: npt.NDArray[np.int32],
    frequencies: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int32],
    at: int,
) -> npt.NDArray[np.int64]:
    """Write clauses as rows from ``at`` on, their class c as ``numbers[c]``. O(intervals).

    Returns the rows of their heads.
    """
    places = np.empty(len(clauses), dtype=np.int64)
    _lay_out(frozen(clauses), numbers, bases, frequencies, at, rows, places)
    return places


@kernel(b1, i4r2, i8r, i4r2, i4r)
def are_there(wanted: Any, places: Any, rows: Any, firsts: Any) -> Any:
    """Whether these clauses (as separate rows) are exactly those of their classes."""
    at = np.int64(0)
    going = False
    for c in range(len(places)):
        head = places[c]
        if not going:
            at = np.int64(firsts[wanted[head, CLASS]])
            if at < 0:
                return False
        if rows[at, SIZE] != wanted[head, SIZE]:
            return False
        for i in range(1, 1 + (wanted[head, SIZE] >> 2)):
            for k in range(4):
                if rows[at + i, k] != wanted[head + i, k]:
                    return False
        going = wanted[head, SIZE] & MORE
        at = rows_of(rows, at)
    return True


@inline
def move_class(rows: Any, firsts: Any, number: Any, out: Any, at: Any, moved: Any) -> Any:
    """Copy a class's clauses to row ``at`` of ``out`` on; ``moved`` tells where each is now."""
    clause = np.int64(firsts[number])
    firsts[number] = at
    going = True
    while going:
        end = rows_of(rows, clause)
        moved[clause] = at
        going = rows[clause, SIZE] & MORE != 0
        for row in range(clause, end):
            for k in range(4):
                out[at, k] = rows[row, k]
            at += 1
        clause = end
    return at
