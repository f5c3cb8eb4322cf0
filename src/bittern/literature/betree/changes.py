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

from bittern.jit import b1, i4r, i4w, i8, i8r, inline, kernel, void
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
    GUIDE,
    LOOKED_UP,
    N_PENDING,
    NEXT,
    NO_CUT,
    PENDING_ROOM,
    STAMP,
    WORK,
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
    CHANGING,
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
def _file(tree: Any, guide: Any, clause: Any, work: Any) -> Any:
    """Put a clause where it belongs as the tree is; the c-node, or NONE for want of room."""
    nodes, _, rows, slots, _ = tree
    capacity, marks, stamp = guide.capacity, work.marks, work.state[STAMP]
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
        if guide.frequencies[channel] < 1.0 - LOOKED_UP:
            if not has_room(tree, node):
                return NONE
            node = add_pnode(tree, guide.bases, node, channel, capacity)
            marks[channel] = stamp
            tested = first_unmarked(rows, clause, marks, stamp)
    if tested < 0:
        tested = clause + 1
    if not put(tree, node, clause, tested):
        return NONE
    return node


@inline
def _cut_pending(tree: Any, guide: Any, work: Any) -> Any:
    """Cut the c-nodes that have overflowed, and those that this overflows; False: no room."""
    nodes, capacity, pending, state = tree.nodes, guide.capacity, work.pending, work.state
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
            state[CUT] = best_cut(tree, guide, node, work)
            if state[CUT] == NO_CUT:
                nodes[node, CAPACITY] = min(2 * n, _MOST_CLAUSES)
                state[N_PENDING] -= 1
                continue
        if state[CUT] == CLUSTER:
            done = cluster(tree, guide, state[CUT_NODE], work)
        else:
            done = partition(tree, guide, state[CUT_NODE], state[CUT], work)
        if not done:
            return False
        state[CUT] = NO_CUT
    return True


@kernel(b1, CHANGING, GUIDE, i8r, WORK)
def insert(tree: Any, guide: Any, clauses: Any, work: Any) -> Any:
    """Insert clauses from ``state[NEXT]`` on, cutting what overflows; False: make room, go on."""
    state = work.state
    while True:
        if not _cut_pending(tree, guide, work):
            return False
        if state[NEXT] == len(clauses):
            return True
        state[STAMP] += 1
        node = _file(tree, guide, clauses[state[NEXT]], work)
        if node < 0:
            return False
        state[NEXT] += 1
        tree.figures[N_CLAUSES] += 1
        push_if_over(tree.nodes, node, work)


# ------------------------------------------------------------------ deletion


@kernel(void, CHANGING, i8, i4w, i4r)
def delete(tree: Any, capacity: Any, firsts: Any, numbers: Any) -> None:
    """Delete all clauses of classes that are there."""
    nodes, _, rows, _, figures = tree
    for number in numbers:
        clause = firsts[number]
        firsts[number] = DELETED
        going = clause >= 0
        if going and rows[clause, SIZE] & SEVERAL:
            figures[N_SEVERAL] -= 1
        while going:
            node = rows[clause, LEAF]
            take(tree, node, rows[clause, SPOT])
            rows[clause, CLASS] = -1
            size = rows[clause, SIZE]
            figures[N_CLAUSES] -= 1
            figures[DELETED_ROWS] += 1 + (size >> 2)
            if 4 * n_clauses(nodes, node) < nodes[node, CAPACITY]:
                nodes[node, CAPACITY] = max(capacity, nodes[node, CAPACITY] // 2)
            remove_empty(tree, node)
            clause += 1 + (size >> 2)
            going = size & MORE != 0
