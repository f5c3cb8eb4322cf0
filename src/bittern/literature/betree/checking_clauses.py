"""Checks what kernels trust in a BE-Tree's clauses: rows, predicates, and their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s
from bittern.jit import f8r, i4r, i4r2, i8, i8r, i8w, inline, kernel
from bittern.literature.betree.clauses import (
    CLASS,
    DELETED,
    MORE,
    SEVERAL,
    SIZE,
    interval_rows,
    rows_of,
    share,
)
from bittern.literature.betree.nodes import DELETED_ROWS, N_CLAUSES, N_SEVERAL, USED_ROWS

_PREDICATE_FAULTS = (
    "a predicate's channel is not there",
    "a clause has a channel twice",
    "a predicate has cells of another channel",
    "a predicate's intervals leave its clause",
    "a predicate's intervals are not apart and ascending",
    "a clause's predicates are out of order",
    "a clause has nothing to look up",
)


@kernel(i8, i4r2, i8w)
def _heads(rows: Any, heads: Any) -> Any:
    """The rows of all clauses' heads, deleted ones too; how many, or -1 if rows are left over."""
    at = n = 0
    while at < len(rows):
        size = rows[at, SIZE] >> 2
        if size < 1:
            return -1
        heads[n] = at
        n += 1
        at += 1 + size
    return n if at == len(rows) else -1


@inline
def _intervals_fault(rows: Any, at: Any, n: Any) -> Any:
    """Whether something is wrong: n intervals must be apart, ascending, from first to last cell."""
    last = np.int64(rows[at, 1]) - 2
    for i in range(2 * interval_rows(n)):
        low = np.int64(rows[at + 1 + (i >> 1), 2 * (i & 1)])
        high = np.int64(rows[at + 1 + (i >> 1), 2 * (i & 1) + 1])
        if i == n:
            return low != 0 or high != -1
        if low < last + 2 or high < low or (i == 0 and low != rows[at, 1]):
            return True
        if i == n - 1 and high != rows[at, 2]:
            return True
        last = high
    return False


@kernel(i8, i4r2, i8r, i4r, f8r)
def _predicates_fault(rows: Any, clauses: Any, bases: Any, frequencies: Any) -> Any:
    """The number of what is wrong with some clause's predicates, or -1."""
    marks = np.full(len(frequencies), -1, dtype=np.int64)
    for clause in clauses:
        at, end = clause + 1, rows_of(rows, clause)
        last = -1.0
        if rows[at, 1] < 0:
            return 6
        while at < end:
            channel, low, high = rows[at, 0], rows[at, 1], rows[at, 2]
            n = np.int64(rows[at, 3])
            if channel < 0 or channel >= len(frequencies):
                return 0
            if marks[channel] == clause:
                return 1
            marks[channel] = clause
            missing = low == -1 and high == -1
            if not missing and not bases[channel] <= low <= high < bases[channel + 1]:
                return 2
            if n < 0 or n == 1 or (missing and n) or at + interval_rows(n) >= end:
                return 3
            if n and _intervals_fault(rows, at, n):
                return 4
            own = 2.0 if missing else share(bases, frequencies, channel, low, high)
            if own < last:
                return 5
            last = own
            at += 1 + interval_rows(n)
    return -1


def check_clauses(held: Mapping[str, npt.NDArray[Any]]) -> Int64s:
    """Clauses tile the rows, and classes have theirs; returns the rows of live clauses' heads."""
    figures, firsts = held["figures"], held["firsts"]
    rows = held["rows"][: figures[USED_ROWS]]
    heads = np.empty(len(rows), dtype=np.int64)
    n = int(_heads(rows, heads))
    assert n >= 0, "clauses do not tile the rows"
    heads = heads[:n]
    deleted = rows[heads, CLASS] == -1
    sizes = 1 + (rows[heads, SIZE].astype(np.int64) >> 2)
    assert sizes[deleted].sum() == figures[DELETED_ROWS], "wrong number of deleted rows"
    clauses: Int64s = heads[~deleted]
    assert len(clauses) == figures[N_CLAUSES], "wrong number of clauses"
    fault = int(_predicates_fault(rows, clauses, held["bases"], held["frequencies"]))
    assert fault < 0, _PREDICATE_FAULTS[fault]

    owners, flags = rows[clauses, CLASS], rows[clauses, SIZE]
    assert ((owners >= 0) & (owners < len(firsts))).all(), "a clause's class is not there"
    more = flags & MORE != 0
    follows = np.zeros(len(clauses), dtype=np.bool_)
    follows[1:] = more[:-1]
    assert not more[-1:].any(), "a class ends before its last clause"
    next_to = (clauses + sizes[~deleted])[:-1] == clauses[1:]
    own = (owners[:-1] == owners[1:]) & next_to
    assert own[more[:-1]].all(), "a class's clauses are not together"
    assert np.array_equal(flags & SEVERAL != 0, more | follows), "a class has not several clauses"
    begins = clauses[~follows]
    assert (firsts >= DELETED).all(), "a class is neither there nor deleted"
    where = np.flatnonzero(firsts >= 0)
    assert len(where) == len(begins), "classes with clauses differ from clauses' classes"
    assert np.array_equal(firsts[owners[~follows]], begins), "a class's first clause is elsewhere"
    n_several = np.count_nonzero(more & ~follows)
    assert n_several == figures[N_SEVERAL], "wrong number of classes with several clauses"
    return clauses
