"""Matching with a BE-Tree: each event is led through the c-nodes that may hold clauses for it.

C-nodes wait in a queue, and clauses that got past the predicate beside them in a list: what they
point to has come from memory when it is their turn. A c-node adds to the queue the half that
contains the event's cell, and the p-nodes whose channel the event has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.arrays import Int32s
from bittern.jit import apart, i4w, i8w, inline, kernel, prefetch, tuple_type, void
from bittern.literature.betree.clauses import CLASS, SEVERAL, SIZE, holds
from bittern.literature.betree.nodes import (
    BEGIN,
    CHANNEL,
    END,
    HIGH,
    LEFT,
    LISTED,
    LOW,
    NODE_WIDTH,
    RIGHT,
    ROOT,
    SEARCHED,
    find,
    hash_of,
    mask_of,
)
from bittern.matching.output import OUTPUT, first_time
from bittern.model.rank.encoded import ENTRIES


class BETreeScratch(NamedTuple):
    """Working memory of a batch."""

    cells: Int32s  # those of one event by channel; all -1 between events
    queue: Int32s  # c-nodes to go to
    survivors: Int32s  # clauses that the event may satisfy
    stamps: Int32s  # zeros, one for each class; empty where no class has several clauses


_SCRATCH = tuple_type(BETreeScratch, i4w, i4w, i4w, i4w)


@inline
def _push(nodes: Any, queue: Any, tail: Any, node: Any) -> Any:
    prefetch(nodes, NODE_WIDTH * np.int64(node))
    queue[np.uint64(tail)] = node
    return tail + 1


@apart
def _gather(tree: Any, entries: Any, first: Any, last: Any, scratch: Any) -> tuple[Any, Any]:
    """Clauses that the event may satisfy into ``survivors``; how many, and how many there were."""
    nodes, items, rows, slots, _ = tree
    cells, queue, survivors, _ = scratch
    mask = mask_of(slots)
    looked_at = n = np.int64(0)
    queue[0] = ROOT
    head, tail = np.int64(0), np.int64(1)
    while head < tail:
        node = np.uint64(queue[head])
        head += 1
        if head < tail:
            prefetch(items, 4 * np.int64(nodes[np.uint64(queue[head]), BEGIN]))
        channel = nodes[node, CHANNEL]
        if channel >= 0:
            half = nodes[node, RIGHT]
            if cells[np.uint64(channel)] <= (nodes[node, LOW] + nodes[node, HIGH]) >> 1:
                half = nodes[node, LEFT]
            if half >= 0:
                tail = _push(nodes, queue, tail, half)
        begin, end = np.int64(nodes[node, BEGIN]), np.int64(nodes[node, END])
        n_listed = nodes[node, LISTED]
        if n_listed < 0:
            for k in range(first, last):
                prefetch(slots, np.int64(hash_of(slots, node, entries[k] >> 32) & mask))
            for k in range(first, last):
                pnode = find(slots, nodes, node, entries[k] >> 32)
                if pnode >= 0:
                    tail = _push(nodes, queue, tail, pnode)
        else:
            for i in range(begin, begin + n_listed):
                item = np.uint64(i)
                if cells[np.uint64(items[item, 1])] >= 0:
                    tail = _push(nodes, queue, tail, items[item, 0])
            begin += n_listed
        looked_at += end - begin
        before = n
        for i in range(begin, end):
            item = np.uint64(i)
            cell = cells[np.uint64(items[item, 1])]
            survivors[np.uint64(n)] = items[item, 0]
            n += np.int64((items[item, 2] <= cell) & (cell <= items[item, 3]))
        for i in range(before, n):
            prefetch(rows, 4 * np.int64(survivors[i]))
    return n, looked_at


@kernel(void, SEARCHED, ENTRIES, _SCRATCH, i8w, OUTPUT)
def match(tree: Any, events: Any, scratch: Any, candidates: Any, out: Any) -> None:
    """Match events from ``state[0]`` on; stops before one whose matches may not all have room.

    ``state[1]`` becomes the room that is needed.
    """
    rows, (offsets, entries) = tree.rows, events
    cells, _, survivors, stamps = scratch
    out_rows, out_classes, state = out
    event, n = state[0], state[2]
    while event < len(offsets) - 1:
        first, last = offsets[event], offsets[event + 1]
        for k in range(first, last):
            cells[np.uint64(entries[k] >> 32)] = np.int32(entries[k])
        n_survivors, looked_at = _gather(tree, entries, first, last, scratch)
        room = n + n_survivors <= len(out_rows)
        if room:
            for i in range(n_survivors):
                clause = np.int64(survivors[i])
                if holds(rows, clause, cells):
                    number = rows[clause, CLASS]
                    if rows[clause, SIZE] & SEVERAL and not first_time(stamps, number, event):
                        continue
                    out_rows[np.uint64(n)] = event
                    out_classes[np.uint64(n)] = number
                    n += 1
        for k in range(first, last):
            cells[np.uint64(entries[k] >> 32)] = -1
        if not room:
            state[1] = n_survivors
            break
        candidates[event] = looked_at
        event += 1
    state[0], state[2] = event, n
