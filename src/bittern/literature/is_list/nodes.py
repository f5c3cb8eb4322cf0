"""Nodes of a skip list whose edges carry sets of markers: layout, linking, building.

All nodes lie in one int32 array. A node is known by the position where it begins there, and is
six numbers and four per edge that leaves it::

    key  height  owners  first | begin length | next-key next begin length | ... level 1 ...
                                 eq markers     edge of level 0

An edge repeats the key that it leads to, so that a search decides whether to follow it without
looking at the other node. ``begin`` and ``length`` name a *set*: markers[begin:begin + length].
``owners`` counts the ends of intervals at the key, ``first`` is a chain of the intervals that
start there (``spans``: low, high and the next of the chain for every interval).

The node at 0 is the head, with key -1 and an edge of every level. Where no node follows, an edge
leads to ``NOWHERE`` with a key above all others.

The *staircase* from one node to a later one is the path that takes, at each node, the longest edge
that does not overshoot: up and then down again, each edge as long as possible::

    level 2   2 -------------------------> 17        from 7 to 20: 7 -> 9 at level 0,
    level 1   2 ------> 9 ---------> 15 -> 17        9 -> 17 at level 1 in two edges,
    level 0   2 -> 7 -> 9 -> 12 ---> 15 -> 17 -> 20  17 -> 20 at level 0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import i4r, i4w, i8, i8w, inline, kernel, void

KEY, HEIGHT, OWNERS, FIRST, EQ, EDGES = 0, 1, 2, 3, 4, 6
"""Fields of a node; a set is two numbers, its begin and its length."""

NEXT_KEY, NEXT, SET = 0, 1, 2
"""Fields of an edge."""

EDGE_BITS = 2
"""An edge takes 1 << EDGE_BITS numbers."""

LOW, HIGH, FOLLOWING, SPAN = 0, 1, 2, 3
"""Fields of an interval in ``spans``, and how many there are."""

MAX_LEVELS = 30
"""As many as 2**30 cells can use."""

HEAD, NOWHERE, LAST_KEY = 0, -1, 2**31 - 1

HEAD_SIZE = EDGES + (MAX_LEVELS << EDGE_BITS)

# Running figures, which kernels update; the heads of free lists follow them.
DOMAIN, BRANCH_BITS, LEVELS, RANDOM, NODES, INTERVALS, ENTRIES, MOVED = range(8)
NODES_END, MARKERS_END, SLOTS_END, FREE_SLOT, FREE_NODES = range(8, 13)
FREE_AREAS = FREE_NODES + MAX_LEVELS + 1
STATE_SIZE = FREE_AREAS + 32

SEED = 0x2545F4914F6CDD1D


@inline
def edge_at(node: Any, level: Any) -> Any:
    """Where the edge of a level lies."""
    return node + EDGES + (level << EDGE_BITS)


@inline
def next_random(random: Any) -> Any:
    """Xorshift over 64 bits; the mask makes the right shift a logical one."""
    random ^= random << 13
    random ^= (random >> 7) & 0x01FFFFFFFFFFFFFF
    return random ^ (random << 17)


@inline
def height_of(random: Any, bits: Any) -> Any:
    """Geometric height from a random number: one node in 2**bits is higher than the others."""
    height = 1
    while height < MAX_LEVELS and random & ((1 << bits) - 1) == 0:
        random >>= bits
        height += 1
    return height


@inline
def go_right(nodes: Any, node: Any, level: Any, key: Any) -> Any:
    """Follow a level while it stays below the key; the edge that reaches or passes it."""
    edge = edge_at(node, level)
    while nodes[np.uint64(edge)] < key:
        edge = edge_at(int(nodes[np.uint64(edge + NEXT)]), level)
    return edge


@inline
def stair(nodes: Any, node: Any, level: Any, bound: Any) -> Any:
    """Level of the longest edge out of a node that does not pass the bound.

    It is looked for from ``level`` on, at which the node was reached: all the levels of a
    staircase together cost no more than its edges.
    """
    height = int(nodes[node + HEIGHT])
    while level + 1 < height and nodes[edge_at(node, level + 1)] <= bound:
        level += 1
    while nodes[edge_at(node, level)] > bound:
        level -= 1
    return level


@kernel(void, i8w, i4w)
def draw_heights(state: Any, heights: Any) -> None:
    """Heights of new nodes, and the state that the next ones are drawn from."""
    random = state[RANDOM]
    for i in range(len(heights)):
        random = next_random(random)
        heights[i] = height_of(random, state[BRANCH_BITS])
    state[RANDOM] = random


@kernel(void, i4r, i4r, i4w, i4w, i8w)
def lay_nodes(keys: Any, heights: Any, places: Any, nodes: Any, state: Any) -> None:
    """Link nodes of ascending keys, one after the other, with empty sets; note their places."""
    nodes[:] = 0
    nodes[HEAD + KEY] = -1
    nodes[HEAD + HEIGHT] = MAX_LEVELS
    nodes[HEAD + FIRST] = -1
    for level in range(MAX_LEVELS):
        nodes[edge_at(HEAD, level) + NEXT_KEY] = LAST_KEY
        nodes[edge_at(HEAD, level) + NEXT] = NOWHERE
    # From the last to the first: the head's edges always lead to the next of each level.
    at = len(nodes)
    for i in range(len(keys) - 1, -1, -1):
        height = int(heights[i])
        at -= edge_at(0, height)
        places[i] = at
        nodes[at + KEY] = keys[i]
        nodes[at + HEIGHT] = height
        nodes[at + FIRST] = -1
        for level in range(height):
            own, above = edge_at(at, level), edge_at(HEAD, level)
            nodes[own + NEXT_KEY] = nodes[above + NEXT_KEY]
            nodes[own + NEXT] = nodes[above + NEXT]
            nodes[above + NEXT_KEY] = keys[i]
            nodes[above + NEXT] = at
        state[LEVELS] = max(state[LEVELS], height)


@kernel(i8, i4r, i4r, i4w, i4w)
def count_markers(starts: Any, stops: Any, spans: Any, nodes: Any) -> Any:
    """Own and chain the ends, and make room in every set: ``begin`` is right, ``length`` is 0.

    Interval i goes from the node at starts[i] to the one at stops[i]. Returns the entries.
    """
    for i in range(len(starts) - 1, -1, -1):
        node, stop = int(starts[i]), int(stops[i])
        nodes[node + OWNERS] += 1
        nodes[stop + OWNERS] += 1
        spans[SPAN * i + FOLLOWING] = nodes[node + FIRST]
        nodes[node + FIRST] = i
        bound, level = nodes[stop + KEY], 0
        nodes[node + EQ + 1] += 1
        while node != stop:
            level = stair(nodes, node, level, bound)
            edge = edge_at(node, level)
            nodes[edge + SET + 1] += 1
            node = int(nodes[edge + NEXT])
            nodes[node + EQ + 1] += 1
    total = 0
    node = HEAD
    while node != NOWHERE:
        for place in range(-1, nodes[node + HEIGHT]):
            at = node + EQ if place < 0 else edge_at(node, place) + SET
            length = int(nodes[at + 1])
            nodes[at] = min(total, LAST_KEY)
            nodes[at + 1] = 0
            total += length
        node = int(nodes[edge_at(node, 0) + NEXT])
    return total


@inline
def _append(nodes: Any, at: Any, markers: Any, slot: Any) -> None:
    markers[nodes[at] + nodes[at + 1]] = slot
    nodes[at + 1] += 1


@kernel(void, i4r, i4r, i4w, i4w)
def place_markers(starts: Any, stops: Any, nodes: Any, markers: Any) -> None:
    """Put every interval on its staircase, into sets that have the room."""
    for i in range(len(starts)):
        node, stop = int(starts[i]), int(stops[i])
        bound, level = nodes[stop + KEY], 0
        _append(nodes, node + EQ, markers, i)
        while node != stop:
            level = stair(nodes, node, level, bound)
            edge = edge_at(node, level)
            _append(nodes, edge + SET, markers, i)
            node = int(nodes[edge + NEXT])
            _append(nodes, node + EQ, markers, i)


@kernel(i8, i4r, i8, i8, i4w)
def follow(links: Any, at: Any, field: Any, found: Any) -> Any:
    """Write down a chain whose next is links[at + field], up to one outside of ``links``.

    Returns its length; the room in ``found`` ends a chain that goes round in circles.
    """
    count = 0
    while at >= 0 and at + field < len(links) and count < len(found):
        found[count] = at
        count += 1
        at = int(links[at + field])
    return count


@kernel(i8, i4r, i4r, i4r, i8, i8, i8)
def find_slot(nodes: Any, spans: Any, ids: Any, low: Any, high: Any, number: Any) -> Any:
    """Find the slot of an interval among those that start at its low end, or -1."""
    node = edge = HEAD
    for level in range(MAX_LEVELS - 1, -1, -1):
        edge = go_right(nodes, node, level, low)
        node = edge - edge_at(0, level)
    if nodes[edge + NEXT_KEY] != low:
        return -1
    slot = int(nodes[nodes[edge + NEXT] + FIRST])
    while slot >= 0 and (spans[SPAN * slot + HIGH] != high or ids[slot] != number):
        slot = int(spans[SPAN * slot + FOLLOWING])
    return slot
