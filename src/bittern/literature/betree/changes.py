"""Insertion into a BE-Tree, and deletion.

A clause goes down from the root: of its predicates whose channel has a p-node in the c-node's
p-directory, and is not yet on the path, it follows the one with the least ``share``, and in that
p-node's c-directory the halves that enclose the predicate; where there is no further p-node for it,
it stays. A c-node that overflows is cut (``cuts``), and so are those that its clauses move
to. Where nothing pays, the capacity of this c-node grows to twice its clauses, so that it is not
tried again for each of them. A wide c-node that is full takes no further clause with a channel
that is not in nearly all events: such a clause gets a p-node at once.

Deletion takes a clause from its place and frees the c-nodes that have become empty.

The insertion stops where an array has no room for the next step, with a tree that is whole, and
goes on from there, in the middle of a cut as well: the tree does not depend on where it stopped.

Cost: O(path) look-ups and amortised O(capacity x predicates) for cuts; a deletion is O(1) and what
it frees.
"""

from __future__ import annotations

from typing import Any

from bittern.jit import b1, f8r, f8w, i4r, i4w, i4w2, i8, i8r, i8w, inline, kernel, u8w, void
from bittern.literature.betree.clauses import (
    CLASS,
    DELETED,
    LEAF,
    MORE,
    SEVERAL,
    SIZE,
    SPOT,
    interval_rows,
    rows_of,
)
from bittern.literature.betree.cuts import (
    CLUSTER,
    CUT,
    CUT_NODE,
    LOOKED_UP,
    N_PENDING,
    NEXT,
    NO_CUT,
    PENDING_ROOM,
    STAMP,
    best_cut,
    cluster,
    first_unmarked,
    is_wide,
    partition,
    push_if_over,
    smallest,
)
from bittern.literature.betree.nodes import (
    CAPACITY,
    DELETED_ROWS,
    LISTED,
    N_CLAUSES,
    N_SEVERAL,
    NONE,
    ROOT,
    find,
    n_clauses,
)
from bittern.literature.betree.runs import add_pnode, has_room, put, remove_empty, take

_MOST_CLAUSES = 2**31 - 1


@inline
def _file(
    nodes: Any,
    items: Any,
    rows: Any,
    slots: Any,
    figures: Any,
    bases: Any,
    frequencies: Any,
    capacity: Any,
    marks: Any,
    stamp: Any,
    clause: Any,
) -> Any:
    """Put a clause where it belongs as the tree is; the c-node, or NONE for want of room."""
    node = ROOT
    while nodes[node, LISTED] != 0:
        found = NONE
        at, end = clause + 1, rows_of(rows, clause)
        while at < end and rows[at, 1] >= 0:
            if marks[rows[at, 0]] != stamp:
                found = find(slots, nodes, node, rows[at, 0])
                if found >= 0:
                    break
            at += 1 + interval_rows(rows[at, 3])
        if found < 0:
            break
        marks[rows[at, 0]] = stamp
        node = smallest(nodes, found, rows[at, 1], rows[at, 2])
    tested = first_unmarked(rows, clause, marks, stamp)
    if tested >= 0 and n_clauses(nodes, node) >= capacity and is_wide(nodes, node, capacity):
        channel = rows[tested, 0]
        if frequencies[channel] < 1.0 - LOOKED_UP:
            if not has_room(nodes, items, slots, figures, node):
                return NONE
            node = add_pnode(nodes, items, rows, slots, figures, bases, node, channel, capacity)
            marks[channel] = stamp
            tested = first_unmarked(rows, clause, marks, stamp)
    if tested < 0:
        tested = clause + 1
    if not put(nodes, items, rows, figures, node, clause, tested):
        return NONE
    return node


@kernel(b1, i4w2, i4w2, i4w2, u8w, i8w, i4r, f8r, i8, i8r, i8w, i4w, f8w, i4w, i4w, i8w)
def insert(
    nodes: Any,
    items: Any,
    rows: Any,
    slots: Any,
    figures: Any,
    bases: Any,
    frequencies: Any,
    capacity: Any,
    clauses: Any,
    marks: Any,
    counts: Any,
    shares: Any,
    touched: Any,
    pending: Any,
    state: Any,
) -> Any:
    """Insert clauses from ``state[NEXT]`` on, cutting what overflows; False: make room, go on."""
    while True:
        while state[N_PENDING] > 0:
            if state[CUT] == NO_CUT:
                node = pending[state[N_PENDING] - 1]
                n = n_clauses(nodes, node)
                if n <= capacity:
                    nodes[node, CAPACITY] = capacity
                    state[N_PENDING] -= 1
                    continue
                state[PENDING_ROOM] = state[N_PENDING] + n
                if state[PENDING_ROOM] > len(pending):
                    return False
                state[STAMP] += 1
                state[CUT_NODE] = node
                state[CUT] = best_cut(
                    nodes,
                    items,
                    rows,
                    bases,
                    frequencies,
                    capacity,
                    node,
                    marks,
                    state[STAMP],
                    counts,
                    shares,
                    touched,
                )
                if state[CUT] == NO_CUT:
                    nodes[node, CAPACITY] = min(2 * n, _MOST_CLAUSES)
                    state[N_PENDING] -= 1
                    continue
            if state[CUT] == CLUSTER:
                done = cluster(
                    nodes,
                    items,
                    rows,
                    slots,
                    figures,
                    capacity,
                    state[CUT_NODE],
                    marks,
                    state[STAMP],
                    pending,
                    state,
                )
            else:
                done = partition(
                    nodes,
                    items,
                    rows,
                    slots,
                    figures,
                    bases,
                    capacity,
                    state[CUT_NODE],
                    state[CUT],
                    marks,
                    state[STAMP],
                    pending,
                    state,
                )
            if not done:
                return False
            state[CUT] = NO_CUT
        if state[NEXT] == len(clauses):
            return True
        state[STAMP] += 1
        clause = clauses[state[NEXT]]
        node = _file(
            nodes,
            items,
            rows,
            slots,
            figures,
            bases,
            frequencies,
            capacity,
            marks,
            state[STAMP],
            clause,
        )
        if node < 0:
            return False
        state[NEXT] += 1
        figures[N_CLAUSES] += 1
        push_if_over(nodes, node, pending, state)


# ------------------------------------------------------------------ deletion


@kernel(void, i4w2, i4w2, i4w2, u8w, i8w, i8, i4w, i4r)
def delete(
    nodes: Any,
    items: Any,
    rows: Any,
    slots: Any,
    figures: Any,
    capacity: Any,
    firsts: Any,
    numbers: Any,
) -> None:
    """Delete all clauses of classes that are there."""
    for number in numbers:
        clause = firsts[number]
        firsts[number] = DELETED
        going = clause >= 0
        if going and rows[clause, SIZE] & SEVERAL:
            figures[N_SEVERAL] -= 1
        while going:
            node = rows[clause, LEAF]
            take(nodes, items, rows, node, rows[clause, SPOT])
            rows[clause, CLASS] = -1
            size = rows[clause, SIZE]
            figures[N_CLAUSES] -= 1
            figures[DELETED_ROWS] += 1 + (size >> 2)
            if 4 * n_clauses(nodes, node) < nodes[node, CAPACITY]:
                nodes[node, CAPACITY] = max(capacity, nodes[node, CAPACITY] // 2)
            remove_empty(nodes, items, rows, slots, figures, node)
            clause += 1 + (size >> 2)
            going = size & MORE != 0
