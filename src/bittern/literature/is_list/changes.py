"""Insertion and deletion in an interval skip list, and the markers that they move.

A new node breaks the edges of its levels. An interval whose marker stands on one of these has two
edges there from now on, and longer ones than before if node and interval both reach that high::

    level 1   5 ----------------> 40     [5, 30] is on 5 -> 9 -> 30 at level 0: the edge of
    level 0   5 -> 9 -------> 30 -> 40   level 1 leads past its end

    level 1   5 ------> 20 -----> 40     now it is on 5 -> 20 at level 1 and 20 -> 30 at level 0;
    level 0   5 -> 9 -> 20 -> 30 -> 40   5 -> 9 and node 9 are rid of it

So each marker of a broken edge leaves the stairs down to it, from the farthest node before it whose
edge now ends in the new one (within the interval), and the stairs up from it to the farthest node
behind, and gets one edge on either side instead. Removing a node is exactly the opposite. This is
the *adjustment* that the papers name as the price of a dynamic list; MOVED counts every marker that
it put somewhere or took away.

Kernels here never allocate: they tell how many free numbers at the end of ``markers`` could be
needed at most, before they change anything that would be left half done, and are called again.
"""

from __future__ import annotations

from typing import Any

from bittern.jit import i4w, i8, i8w, inline, kernel
from bittern.literature.is_list.markers import change, free_set, put, take_at
from bittern.literature.is_list.nodes import (
    BRANCH_BITS,
    EQ,
    FIRST,
    FOLLOWING,
    FREE_NODES,
    FREE_SLOT,
    HEAD,
    HEIGHT,
    HIGH,
    INTERVALS,
    KEY,
    LAST_KEY,
    LEVELS,
    LOW,
    MARKERS_END,
    MAX_LEVELS,
    MOVED,
    NEXT,
    NEXT_KEY,
    NODES,
    NODES_END,
    NOWHERE,
    OWNERS,
    RANDOM,
    SET,
    SLOTS_END,
    SPAN,
    edge_at,
    go_right,
    height_of,
    next_random,
    stair,
)


@inline
def _change_stairs(
    nodes: Any,
    markers: Any,
    state: Any,
    node: Any,
    stop: Any,
    first: Any,
    last: Any,
    slot: Any,
    add: Any,
) -> None:
    """Put a marker on all edges from one node to another and on the nodes between, or take it.

    ``first`` and ``last`` tell whether the nodes at the ends are meant too. One loop over edges and
    nodes in turn, since what changes a set is much code to be compiled in twice.
    """
    bound, level, edge = nodes[stop + KEY], 0, NOWHERE
    here, meant = node + EQ, first
    while True:
        if meant:
            change(nodes, markers, state, here, slot, add)
        if edge != NOWHERE:
            node, edge = int(nodes[edge + NEXT]), NOWHERE
            here, meant = node + EQ, last or node != stop
        elif node != stop:
            level = stair(nodes, node, level, bound)
            edge = edge_at(node, level)
            here, meant = edge + SET, True
        else:
            return


@inline
def _length_of_stairs(nodes: Any, node: Any, stop: Any, more: Any) -> Any:
    """Length of all sets from one node to another, both included, with ``more`` in each."""
    bound, level = nodes[stop + KEY], 0
    total = nodes[node + EQ + 1] + more
    while node != stop:
        level = stair(nodes, node, level, bound)
        edge = edge_at(node, level)
        node = int(nodes[edge + NEXT])
        total += nodes[edge + SET + 1] + nodes[node + EQ + 1] + 2 * more
    return total


@inline
def _find(nodes: Any, key: Any, path: Any) -> Any:
    """Find the node of a key, or NOWHERE, and on all levels the node before it."""
    node = HEAD
    edge = HEAD
    for level in range(MAX_LEVELS - 1, -1, -1):
        edge = go_right(nodes, node, level, key)
        node = edge - edge_at(0, level)
        path[level] = node
    return int(nodes[edge + NEXT]) if nodes[edge + NEXT_KEY] == key else NOWHERE


@inline
def _link(nodes: Any, state: Any, key: Any, height: Any, path: Any) -> Any:
    """Put a node with empty sets behind those of the path."""
    node = state[FREE_NODES + height]
    if node < 0:
        node = state[NODES_END]
        state[NODES_END] += edge_at(0, height)
    else:
        state[FREE_NODES + height] = nodes[node + FIRST]
    nodes[node + KEY] = key
    nodes[node + HEIGHT] = height
    nodes[node + OWNERS] = 0
    nodes[node + FIRST] = -1
    nodes[node + EQ] = 0
    nodes[node + EQ + 1] = 0
    for level in range(height):
        own, before = edge_at(node, level), edge_at(path[level], level)
        nodes[own + NEXT_KEY] = nodes[before + NEXT_KEY]
        nodes[own + NEXT] = nodes[before + NEXT]
        nodes[own + SET] = 0
        nodes[own + SET + 1] = 0
        nodes[before + NEXT_KEY] = key
        nodes[before + NEXT] = node
    state[LEVELS] = max(state[LEVELS], height)
    state[NODES] += 1
    return node


@inline
def _unlink(nodes: Any, markers: Any, state: Any, node: Any, path: Any) -> None:
    """Take a node out, with its sets; the sets of the edges that led to it stay where they are."""
    height = int(nodes[node + HEIGHT])
    free_set(nodes, markers, state, node + EQ)
    for level in range(height):
        own, before = edge_at(node, level), edge_at(path[level], level)
        free_set(nodes, markers, state, own + SET)
        nodes[before + NEXT_KEY] = nodes[own + NEXT_KEY]
        nodes[before + NEXT] = nodes[own + NEXT]
    nodes[node + FIRST] = state[FREE_NODES + height]
    state[FREE_NODES + height] = node
    while state[LEVELS] and nodes[edge_at(HEAD, state[LEVELS] - 1) + NEXT_KEY] == LAST_KEY:
        state[LEVELS] -= 1
    state[NODES] -= 1


@inline
def _adjust(
    nodes: Any, markers: Any, spans: Any, state: Any, node: Any, path: Any, new: Any
) -> None:
    """Move the markers around a node that was linked just now, or is about to be unlinked.

    All of them are in the sets of edges that lead to the node: its own sets are empty when it is
    new, and repeat them when it is old. A marker belongs on levels ``left`` and ``right`` next to
    the node, and on the lower of these without it. Levels are gone through in the order in which
    the sets that markers move to have been dealt with before.
    """
    height = int(nodes[node + HEIGHT])
    for step in range(height):
        here = height - 1 - step if new else step
        at = edge_at(path[here], here) + SET
        for k in range(nodes[at + 1] - 1, -1, -1):
            slot = int(markers[nodes[at] + k])
            low, high = spans[SPAN * slot + LOW], spans[SPAN * slot + HIGH]
            left, right = here, 0
            while left + 1 < height and nodes[path[left + 1] + KEY] >= low:
                left += 1
            while right + 1 < height and nodes[edge_at(node, right + 1) + NEXT_KEY] <= high:
                right += 1
            broken = min(left, right)
            if left > broken:
                to = left if new else broken
                take_at(nodes, markers, state, at, k)
                put(nodes, markers, state, edge_at(path[to], to) + SET, slot)
            # The far end of the stairs on a side stays on the interval's path in any case. There
            # are none if it is the near end too: one node with edges of both levels.
            for side in range(2):
                if side == 0:
                    begin, end = int(path[left]), int(path[broken])
                else:
                    begin = int(nodes[edge_at(node, broken) + NEXT])
                    end = int(nodes[edge_at(node, right) + NEXT])
                if begin != end:
                    _change_stairs(
                        nodes, markers, state, begin, end, side == 1, side == 0, slot, not new
                    )
            if new:
                put(nodes, markers, state, edge_at(node, right) + SET, slot)
                put(nodes, markers, state, node + EQ, slot)


@inline
def _change_interval(
    nodes: Any, markers: Any, state: Any, start: Any, stop: Any, slot: Any, add: Any
) -> None:
    """Put all markers of one interval, or take them; these are no adjustment."""
    moved = state[MOVED]
    by = 1 if add else -1
    nodes[start + OWNERS] += by
    nodes[stop + OWNERS] += by
    state[INTERVALS] += by
    _change_stairs(nodes, markers, state, start, stop, True, True, slot, add)
    state[MOVED] = moved


@kernel(i8, i8, i8, i8, i4w, i4w, i4w, i4w, i8w, i8w)
def insert_interval(
    low: Any,
    high: Any,
    number: Any,
    nodes: Any,
    markers: Any,
    spans: Any,
    ids: Any,
    state: Any,
    path: Any,
) -> Any:
    """Insert, or return what room at the end of ``markers`` is needed to go on with it.

    There must be room for two nodes and a slot. A set of m markers took less than 4m numbers on
    the way, all its smaller areas included.
    """
    start = stop = NOWHERE
    for side in range(2):
        key = high if side else low
        node = _find(nodes, key, path)
        if node == NOWHERE:
            random = next_random(state[RANDOM])
            height = height_of(random, state[BRANCH_BITS])
            broken = 0
            for level in range(height):
                broken += nodes[edge_at(path[level], level) + SET + 1]
            # They end up in edges to the node, in edges from it and in its own set.
            if 12 * broken > len(markers) - state[MARKERS_END]:
                return 12 * broken
            state[RANDOM] = random
            node = _link(nodes, state, key, height, path)
            _adjust(nodes, markers, spans, state, node, path, True)
        if side:
            stop = node
        else:
            start = node
    room = 4 * _length_of_stairs(nodes, start, stop, 1)
    if room > len(markers) - state[MARKERS_END]:
        return room
    slot = state[FREE_SLOT]
    if slot < 0:
        slot = state[SLOTS_END]
        state[SLOTS_END] += 1
    else:
        state[FREE_SLOT] = spans[SPAN * slot + FOLLOWING]
    ids[slot] = number
    spans[SPAN * slot + LOW] = low
    spans[SPAN * slot + HIGH] = high
    spans[SPAN * slot + FOLLOWING] = nodes[start + FIRST]
    nodes[start + FIRST] = slot
    _change_interval(nodes, markers, state, start, stop, slot, True)
    return 0


@inline
def _room_to_unlink(nodes: Any, node: Any, path: Any) -> Any:
    """Room that suffices if every set around a node gets all the markers of the node."""
    more, height = nodes[node + EQ + 1], int(nodes[node + HEIGHT])
    if more == 0:
        return 0
    total = _length_of_stairs(nodes, int(path[height - 1]), int(path[0]), more)
    top = 0
    for level in range(height):
        total += nodes[edge_at(path[level], level) + SET + 1] + more
        if nodes[edge_at(node, level) + NEXT] != NOWHERE:
            top = level
    near, far = nodes[edge_at(node, 0) + NEXT], nodes[edge_at(node, top) + NEXT]
    return 4 * (total + _length_of_stairs(nodes, int(near), int(far), more))


@kernel(i8, i8, i8, i8, i4w, i4w, i4w, i4w, i8w, i8w)
def delete_interval(
    low: Any,
    high: Any,
    slot: Any,
    nodes: Any,
    markers: Any,
    spans: Any,
    ids: Any,
    state: Any,
    path: Any,
) -> Any:
    """Delete what is in a slot, then the nodes without owner; or return the room to go on with.

    To go on after that, with the nodes alone, give slot -1.
    """
    if slot >= 0:
        stop = _find(nodes, high, path)
        start = _find(nodes, low, path)
        _change_interval(nodes, markers, state, start, stop, slot, False)
        if nodes[start + FIRST] == slot:
            nodes[start + FIRST] = spans[SPAN * slot + FOLLOWING]
        else:
            before = int(nodes[start + FIRST])
            while spans[SPAN * before + FOLLOWING] != slot:
                before = int(spans[SPAN * before + FOLLOWING])
            spans[SPAN * before + FOLLOWING] = spans[SPAN * slot + FOLLOWING]
        ids[slot] = -1
        spans[SPAN * slot + FOLLOWING] = state[FREE_SLOT]
        state[FREE_SLOT] = slot
    for side in range(2):
        node = _find(nodes, high if side else low, path)
        if node != NOWHERE and nodes[node + OWNERS] == 0:
            room = _room_to_unlink(nodes, node, path)
            if room > len(markers) - state[MARKERS_END]:
                return room
            _adjust(nodes, markers, spans, state, node, path, False)
            _unlink(nodes, markers, state, node, path)
    return 0
