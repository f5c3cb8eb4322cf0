"""From the cells of one event to its subscriptions: what needs no rows, as a batch has.

Each step first asks for the memory that the next one reads, for all that was found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import inline, prefetch
from bittern.stabbing.cei import add_path, fetch_path

# Postings of a run that are asked for ahead. Those of a long one mostly lie in a row.
_FETCHED = 16
# Integers of a program's rows to its second cache line.
_ROWS_FETCHED = 16


@inline
def stab(
    begins: Any,
    ends: Any,
    masks: Any,
    items: Any,
    shape: Any,
    cells: Any,
    n: Any,
    run_begins: Any,
    run_lengths: Any,
) -> Any:
    """Find the runs of all cells; returns how many there are, and how many ids in them."""
    bits, group_bits = shape[1], shape[2]
    for i in range(n):
        prefetch(masks, np.int64(cells[i]) >> group_bits)
        fetch_path(begins, bits, np.int64(cells[i]))
    n_runs, total = np.int64(0), np.int64(0)
    for i in range(n):
        before = n_runs
        n_runs, more = add_path(
            begins,
            ends,
            masks,
            (shape[0], bits, group_bits),
            np.int64(cells[i]),
            run_begins,
            run_lengths,
            n_runs,
        )
        total += more
        for run in range(before, n_runs):
            prefetch(items, np.int64(run_begins[run]))
    return n_runs, total


@inline
def passing_postings(
    heads: Any,
    bounds: Any,
    matrix: Any,
    items: Any,
    run_begins: Any,
    run_lengths: Any,
    n_runs: Any,
    pending: Any,
) -> Any:
    """The inline test of each posting of all runs; returns how many hold, which are in a row."""
    for run in range(n_runs):
        first = np.int64(run_begins[run])
        for i in range(first, first + min(run_lengths[run], _FETCHED)):
            row = 2 * np.int64(items[np.uint64(i)])
            prefetch(heads, row)
            prefetch(bounds, row)
    kept = np.int64(0)
    for run in range(n_runs):
        first = np.int64(run_begins[run])
        for i in range(first, first + run_lengths[run]):
            posting = np.uint64(items[np.uint64(i)])
            cell = matrix[np.uint64(heads[posting, 0])]
            pending[np.uint64(kept)] = items[np.uint64(i)]
            kept += np.int64((bounds[posting, 0] <= cell) & (cell <= bounds[posting, 1]))
    return kept


@inline
def fetch_programs(
    heads: Any, starts: Any, rows: Any, several: Any, pending: Any, kept: Any, classes: Any
) -> Any:
    """The classes of postings that have nothing left to test, and how many others are pending.

    What the others' programs are found by is asked for, for all of them, and then the programs.
    """
    n, still = np.int64(0), np.int64(0)
    for i in range(kept):
        c = np.int64(heads[np.uint64(pending[i]), 1])
        if c < 0:
            classes[n] = ~c
            n += 1
            continue
        pending[still] = pending[i]
        still += 1
        prefetch(starts, c)
        prefetch(several, c)
    for i in range(still):
        row = 4 * np.int64(starts[np.uint64(heads[np.uint64(pending[i]), 1])])
        prefetch(rows, row)
        prefetch(rows, row + _ROWS_FETCHED)
    return n, still


@inline
def keep_once(owners: Any, repeats: Any, seen: Any, classes: Any, n: Any) -> Any:
    """The classes of parts, each once (``matching/pivot/alternatives.py``); ``seen`` is cleared."""
    kept = np.int64(0)
    for i in range(n):
        c = owners[np.uint64(classes[i])]
        classes[kept] = c
        kept += np.int64(not (repeats[c] and seen[c]))
        seen[c] |= repeats[c]
    for i in range(kept):
        seen[classes[i]] = 0
    return kept


@inline
def expand(
    starts: Any, subscribers: Any, alive: Any, classes: Any, n: Any, out: Any, count: Any
) -> Any:
    """Write the subscriptions of classes behind ``count`` others, as far as there is room.

    Returns how many there are then.
    """
    if len(starts):
        for i in range(n):
            prefetch(starts, np.int64(classes[i]))
    for i in range(n):
        c = np.int64(classes[i])
        prefetch(subscribers, np.int64(starts[c]) if len(starts) else c)
    for i in range(n):
        c = np.int64(classes[i])
        first, last = c, c + 1
        if len(starts):
            first, last = np.int64(starts[c]), np.int64(starts[c + 1])
        for k in range(first, last):
            subscriber = subscribers[k]
            if len(alive) == 0 or alive[subscriber]:
                if count < len(out):
                    out[count] = subscriber
                count += 1
    return count
