"""Cutting space in two phases: which cut of a c-node pays most, and making it.

A c-node with more clauses than its capacity is cut, as long as that pays. The gain of a cut, in
clauses that an event at this c-node need not look at::

    partition by channel c    k - min(f k, f capacity + s) - 1 - f capacity / 2
    clustering                (k - capacity) / 2

Of the k clauses that have c, an event that has it (a share f of all) still looks at those that
their own intervals lead it to (s: the sum of their shares), and at a leaf that is full; what is
taken off besides is for the p-node, which is listed, and for going to another c-node, which is
worth half as many clauses as a c-node may have. For clustering, k clauses lie within a half. So
first it counts how many clauses have a channel, and among equally many how rare it is.

In a *wide* c-node, with more than ``MOST_LISTED`` items and than twice the capacity, a p-node costs
only ``LOOKED_UP``: p-directories of that size are looked up by the event's channels.

The original partitions whenever it can, also for the sake of a single clause: its leaves do not
have a predicate beside each clause, which prunes as well.

Cost: O(clauses x predicates) to choose, O(clauses moved) to make.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bittern.arrays import Float64s, Int32s, Int64s
from bittern.jit import f8r, f8w, i4r, i4w, i8, i8w, inline, tuple_type
from bittern.literature.betree.clauses import interval_rows, rows_of, share
from bittern.literature.betree.nodes import (
    BEGIN,
    CAPACITY,
    CHANNEL,
    END,
    HIGH,
    LEFT,
    LISTED,
    LOW,
    MOST_LISTED,
    NONE,
    PARENT,
    RIGHT,
    ROOT,
    find,
    listed,
    n_clauses,
    new_node,
)
from bittern.literature.betree.runs import add_pnode, has_room, put, take

# Where an insertion stands: the next clause, c-nodes to be cut and the room that these need, a
# number for each path marked, and the c-node that is being cut, and how.
NEXT, N_PENDING, PENDING_ROOM, STAMP, CUT_NODE, CUT = range(6)
N_STATES = 6
CLUSTER, NO_CUT = -2, -1


class CutGuide(NamedTuple):
    """What cuts go by."""

    bases: Int32s  # the first cells of channels, and the end
    frequencies: Float64s  # of channels: the share of events that have them
    capacity: int


class Insertion(NamedTuple):
    """Where an insertion stands, and room to work in; all but the last are by channel."""

    marks: Int64s  # the number of the last path that it was on
    counts: Int32s  # zeros
    shares: Float64s
    touched: Int32s
    pending: Int32s  # c-nodes to be cut
    state: Int64s


GUIDE = tuple_type(CutGuide, i4r, f8r, i8)
WORK = tuple_type(Insertion, i8w, i4w, f8w, i4w, i4w, i8w)

#: What a p-node costs that is looked up, in clauses: enough to say no for what all events have.
LOOKED_UP = 0.1


@inline
def first_unmarked(rows: Any, clause: Any, marks: Any, stamp: Any) -> Any:
    """The row of a clause's first predicate that is not on the path, or NONE."""
    at, end = clause + 1, rows_of(rows, clause)
    while at < end and rows[at, 1] >= 0:
        if marks[rows[at, 0]] != stamp:
            return at
        at += 1 + interval_rows(rows[at, 3])
    return NONE


@inline
def _on_channel(rows: Any, clause: Any, channel: Any) -> Any:
    """The row of a clause's predicate on a channel, or NONE; "missing" is none."""
    at, end = clause + 1, rows_of(rows, clause)
    while at < end and rows[at, 1] >= 0:
        if rows[at, 0] == channel:
            return at
        at += 1 + interval_rows(rows[at, 3])
    return NONE


@inline
def smallest(nodes: Any, node: Any, low: Any, high: Any) -> Any:
    """The smallest interval that encloses cells, of those that there are below a c-node."""
    while True:
        middle = (nodes[node, LOW] + nodes[node, HIGH]) >> 1
        below = NONE
        if high <= middle:
            below = nodes[node, LEFT]
        elif low > middle:
            below = nodes[node, RIGHT]
        if below < 0:
            return node
        node = below


@inline
def is_wide(nodes: Any, node: Any, capacity: Any) -> Any:
    """Whether so much is listed that p-nodes should be looked up instead."""
    n = nodes[node, END] - nodes[node, BEGIN]
    return nodes[node, LISTED] < 0 or n > max(MOST_LISTED, 2 * capacity)


@inline
def best_cut(tree: Any, guide: Any, node: Any, work: Any) -> Any:
    """The channel to partition by, ``CLUSTER``, or ``NO_CUT``; marks the path."""
    nodes, items, rows, _, _ = tree
    bases, frequencies, capacity = guide
    marks, counts, shares, touched, _, state = work
    stamp = state[STAMP]
    up = node
    while up != ROOT:
        marks[nodes[up, CHANNEL]] = stamp
        up = nodes[up, PARENT]
    own, low, high = nodes[node, CHANNEL], nodes[node, LOW], nodes[node, HIGH]
    middle = (low + high) >> 1
    n_touched = enclosed = 0
    for i in range(nodes[node, BEGIN] + listed(nodes, node), nodes[node, END]):
        at, end = items[i, 0] + 1, rows_of(rows, items[i, 0])
        while at < end and rows[at, 1] >= 0:
            channel = rows[at, 0]
            if marks[channel] != stamp:
                if counts[channel] == 0:
                    touched[n_touched] = channel
                    n_touched += 1
                    shares[channel] = 0.0
                counts[channel] += 1
                shares[channel] += share(bases, frequencies, channel, rows[at, 1], rows[at, 2])
            elif channel == own and low < high and (rows[at, 2] <= middle or rows[at, 1] > middle):
                enclosed += 1
            at += 1 + interval_rows(rows[at, 3])
    wide = is_wide(nodes, node, capacity)
    best, most = NO_CUT, 0.0
    for k in range(n_touched):
        channel = touched[k]
        n, frequency = counts[channel], frequencies[channel]
        counts[channel] = 0
        gain = n - min(frequency * n, frequency * capacity + shares[channel])
        gain -= LOOKED_UP if wide else 1.0 + 0.5 * capacity * frequency
        if gain > most or (gain == most and channel < best):
            best, most = channel, gain
    if 0.5 * (enclosed - capacity) > most:
        return CLUSTER
    return best


@inline
def push_if_over(nodes: Any, node: Any, work: Any) -> None:
    """Remember a c-node that the last clause has overflowed."""
    if n_clauses(nodes, node) == nodes[node, CAPACITY] + 1:
        work.pending[work.state[N_PENDING]] = node
        work.state[N_PENDING] += 1


@inline
def _move_down(tree: Any, node: Any, place: Any, below: Any, work: Any) -> Any:
    """Move the clause at this place of a c-node's run to another c-node; False: no room."""
    clause = tree.items[place, 0]
    tested = first_unmarked(tree.rows, clause, work.marks, work.state[STAMP])
    spot = place - tree.nodes[node, BEGIN]
    if not put(tree, below, clause, tested if tested >= 0 else clause + 1):
        return False
    take(tree, node, spot)
    push_if_over(tree.nodes, below, work)
    return True


@inline
def partition(tree: Any, guide: Any, node: Any, channel: Any, work: Any) -> Any:
    """Move the clauses that have a channel to its p-node; False if there was no room for all."""
    nodes, items, rows, slots, _ = tree
    pnode = find(slots, nodes, node, channel)
    if pnode < 0:
        if not has_room(tree, node):
            return False
        pnode = add_pnode(tree, guide.bases, node, channel, guide.capacity)
    work.marks[channel] = work.state[STAMP]
    first = nodes[node, BEGIN] + listed(nodes, node)
    for i in range(nodes[node, END] - 1, first - 1, -1):
        at = _on_channel(rows, items[i, 0], channel)
        if at >= 0:
            below = smallest(nodes, pnode, rows[at, 1], rows[at, 2])
            if not _move_down(tree, node, i, below, work):
                return False
    return True


@inline
def cluster(tree: Any, guide: Any, node: Any, work: Any) -> Any:
    """Move the clauses that lie within a half to it; False if there was no room for all."""
    nodes, items, rows, _, _ = tree
    channel, low, high = nodes[node, CHANNEL], nodes[node, LOW], nodes[node, HIGH]
    middle = (low + high) >> 1
    for i in range(nodes[node, END] - 1, nodes[node, BEGIN] + listed(nodes, node) - 1, -1):
        at = _on_channel(rows, items[i, 0], channel)
        if rows[at, 1] <= middle < rows[at, 2]:
            continue
        is_left = rows[at, 2] <= middle
        half = LEFT if is_left else RIGHT
        if nodes[node, half] < 0:
            if not has_room(tree, node):
                return False
            first, last = (low, middle) if is_left else (middle + 1, high)
            nodes[node, half] = new_node(tree, node, channel, first, last, guide.capacity)
        if not _move_down(tree, node, i, nodes[node, half], work):
            return False
    return True
