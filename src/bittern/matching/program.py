"""Programs: the tests of an expression as rows that are run in order, with jumps.

A row is (channel, low, high, jump); how jumps are read is drawn in ``model/classes/structure.py``.
A plain conjunction rejects on its first failing test, so each of its rows jumps to "reject" if
false.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import starts_of
from bittern.jit import i4r, i4w2, inline, kernel, void
from bittern.matching.contract import check_size
from bittern.model.classes.classes import CLASSES, Classes
from bittern.model.rank.encoded import cell_of


@inline
def holds(
    matrix: Any,
    width: Any,
    starts: Any,
    table: Any,
    entries: Any,
    event: Any,
    rows: Any,
    at: Any,
) -> Any:
    """Whether the test in this row holds for the event (the first five are the events' view)."""
    at = np.uint64(at)  # unsigned: no test for a negative index
    cell = cell_of(matrix, width, starts, table, entries, event, rows[at, 0])
    return rows[at, 1] <= cell <= rows[at, 2]


@inline
def accepts(
    matrix: Any,
    width: Any,
    starts: Any,
    table: Any,
    entries: Any,
    event: Any,
    rows: Any,
    start: Any,
    stop: Any,
) -> Any:
    """Run rows ``start`` to ``stop`` for one event. O(rows), usually far fewer."""
    at = start
    channel, cell = np.int64(-1), np.int64(0)
    while at < stop:
        row = np.uint64(at)
        if rows[row, 0] != channel:  # the values of IN ask for the same channel in turn
            channel = np.int64(rows[row, 0])
            cell = np.int64(cell_of(matrix, width, starts, table, entries, event, rows[row, 0]))
        jump = rows[row, 3]
        if (rows[row, 1] <= cell <= rows[row, 2]) == (jump & 1 == 1):
            at = max(at + 1, start + np.int64(jump >> 1))  # a damaged one might jump back, for ever
        else:
            at += 1
    return at == stop


@inline
def is_first_pivot(
    matrix: Any,
    width: Any,
    starts: Any,
    table: Any,
    entries: Any,
    event: Any,
    rows: Any,
    start: Any,
    low: Any,
    high: Any,
) -> Any:
    """Whether the first pivot of a class that holds is the one that found it."""
    for at in range(start, start + rows[start, 3]):
        if holds(matrix, width, starts, table, entries, event, rows, at):
            return rows[at, 1] == low and rows[at, 2] == high
    return False


@inline
def write_program(
    rows: Any,
    at: Any,
    structure: Any,
    structures: Any,
    channels: Any,
    lows: Any,
    highs: Any,
    start: Any,
    count: Any,
) -> Any:
    """Write the whole expression of one class as rows from ``at`` on; returns where they end."""
    first_jump = structures.jump_starts[structure]
    for i in range(count):
        rows[at, 0] = channels[start + i]
        rows[at, 1] = lows[start + i]
        rows[at, 2] = highs[start + i]
        rows[at, 3] = (count + 1) << 1 if structure == 0 else structures.jumps[first_jump + i]
        at += 1
    return at


@kernel(void, CLASSES, i4r, i4w2)
def _write(classes: Any, row_starts: Any, rows: Any) -> None:
    for c in range(len(classes.counts)):
        write_program(
            rows,
            row_starts[c],
            classes.structure_of[c],
            classes.structures,
            classes.channels,
            classes.lows,
            classes.highs,
            classes.starts[c],
            classes.counts[c],
        )


def programs(
    classes: Classes, which: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Where the program of each of these classes starts, and the rows. O(tests)."""
    taken = classes.take(which)
    check_size("tests", int(taken.counts.sum()))
    starts = starts_of(taken.counts, np.int32)
    rows = np.empty((int(starts[-1]), 4), dtype=np.int32)
    _write(taken.arrays, starts, rows)
    return starts, rows
