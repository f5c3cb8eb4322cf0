"""Verification of an interval skip list, from the definitions and not from how it is changed.

The marker rule is checked row by row, a row being one marker on one edge: the edge lies within the
interval; the edge that spans it one level up does not (higher ones span that one); and the
edges of an interval are as long together as the interval, which no path could be that left one
out, for edges within the same interval of which none spans another do not overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bittern.literature.is_list import nodes as skip

if TYPE_CHECKING:
    from bittern.arrays import Int32s, Int64s


class _Level(NamedTuple):
    """Nodes of one level, the head first: where they are, their keys, and their edges."""

    places: Int64s
    keys: Int64s
    edges: Int64s


def check_list(
    nodes: Int32s, markers: Int32s, spans: Int32s, ids: Int32s, state: Int64s, *, packed: bool
) -> None:
    """Raise AssertionError that names the first broken invariant: O(markers log markers)."""
    assert int(state[skip.SLOTS_END]) <= min(len(ids), len(spans) // skip.SPAN), "slots are missing"
    spans = spans[: skip.SPAN * int(state[skip.SLOTS_END])]
    levels = _check_links(nodes, state)
    slots = _check_slots(nodes, spans, ids, state, levels[0].places[1:])
    sets = [levels[0].places[1:] + skip.EQ, *(level.edges + skip.SET for level in levels)]
    _check_areas(nodes, markers, state, np.concatenate(sets), packed=packed)
    _check_markers(nodes, markers, spans, slots, levels)


def _chain(links: Int32s, head: int, field: int, most: int) -> Int64s:
    """Positions of a chain; one more than ``most`` if it is longer than that."""
    found = np.empty(most + 1, np.int32)
    return found[: int(skip.follow(links, head, field, found))].astype(np.int64)


def _check_links(nodes: Int32s, state: Int64s) -> list[_Level]:
    n_nodes, top = int(state[skip.NODES]), int(state[skip.LEVELS])
    levels: list[_Level] = []
    above = skip.EDGES + (np.arange(top, skip.MAX_LEVELS) << skip.EDGE_BITS) + skip.HEAD
    assert (nodes[above + skip.NEXT_KEY] == skip.LAST_KEY).all(), "wrong number of levels"
    assert (nodes[above + skip.NEXT] == skip.NOWHERE).all(), "an edge above all levels leads on"
    assert (nodes[above + skip.SET + 1] == 0).all(), "an edge above all levels has markers"
    for number in range(max(top, 1)):
        field = skip.EDGES + (number << skip.EDGE_BITS)
        places = _chain(nodes, skip.HEAD, field + skip.NEXT, n_nodes + 1)
        level = _Level(places, nodes[places + skip.KEY].astype(np.int64), places + field)
        assert level.keys[0] == -1, "the head has a key"
        assert (np.diff(level.keys) > 0).all(), f"keys of level {number} are not ascending"
        assert int(level.keys[-1]) < int(state[skip.DOMAIN]), "a key is outside the domain"
        copies = nodes[level.edges + skip.NEXT_KEY]
        assert np.array_equal(copies, [*level.keys[1:], skip.LAST_KEY]), "an edge has a wrong key"
        assert nodes[level.edges[-1] + skip.NEXT] == skip.NOWHERE, "a level does not end"
        if number == 0:
            heights = nodes[places + skip.HEIGHT]
            assert len(places) == n_nodes + 1, "wrong number of nodes"
            assert ((heights > 0) & (heights <= skip.MAX_LEVELS)).all(), "a height is impossible"
            assert heights[0] == skip.MAX_LEVELS, "the head is not as high as it can be"
            assert int(heights[1:].max(initial=0)) == top, "wrong number of levels"
        expected = levels[0].places[heights > number] if number else places
        assert np.array_equal(places, expected), "a level has not the nodes of its height"
        levels.append(level)
    used = skip.HEAD_SIZE + _sizes(heights[1:])
    for height in range(1, skip.MAX_LEVELS + 1):
        free = _chain(nodes, int(state[skip.FREE_NODES + height]), skip.FIRST, len(nodes))
        assert (nodes[free + skip.HEIGHT] == height).all(), "a free node is in a wrong chain"
        used += _sizes(nodes[free + skip.HEIGHT])
    assert used == int(state[skip.NODES_END]) <= len(nodes), "nodes do not fill their array"
    return levels


def _sizes(heights: Int32s) -> int:
    return len(heights) * skip.EDGES + (int(heights.sum()) << skip.EDGE_BITS)


def _check_slots(
    nodes: Int32s, spans: Int32s, ids: Int32s, state: Int64s, places: Int64s
) -> Int64s:
    """Verify intervals, chains and owners; the slots that hold an interval."""
    end = int(state[skip.SLOTS_END])
    slots = np.flatnonzero(ids[:end] >= 0)
    assert len(slots) == int(state[skip.INTERVALS]), "wrong number of intervals"
    following = spans[skip.FOLLOWING :: skip.SPAN].copy()
    free = _chain(following, int(state[skip.FREE_SLOT]), 0, end)
    assert np.array_equal(np.sort(free), np.flatnonzero(ids[:end] < 0)), "free slots are lost"
    lows, highs = (spans[skip.SPAN * slots + field] for field in (skip.LOW, skip.HIGH))
    assert (lows <= highs).all(), "an interval is reversed"
    keys, owners = np.unique(np.concatenate((lows, highs)), return_counts=True)
    assert np.array_equal(keys, nodes[places + skip.KEY]), "nodes are not the ends of intervals"
    assert np.array_equal(owners, nodes[places + skip.OWNERS]), "an end has a wrong owner count"
    # All chains at once, one interval further in each step.
    chained: list[Int32s] = []
    at, low = nodes[places + skip.FIRST], keys
    while len(at) and len(chained) <= end:
        at, low = at[at >= 0], low[at >= 0]
        assert (at < end).all(), "a chain leads nowhere"
        assert (spans[skip.SPAN * at + skip.LOW] == low).all(), "an interval is in a wrong chain"
        chained.append(at)
        at = following[at]
    found = np.sort(np.concatenate([slots[:0], *chained]))
    assert np.array_equal(found, slots), "chains do not hold every interval once"
    return slots


def _check_areas(
    nodes: Int32s, markers: Int32s, state: Int64s, sets: Int64s, *, packed: bool
) -> None:
    """Verify that sets and free areas fill their part of the array, without overlap."""
    lengths = nodes[sets + 1].astype(np.int64)
    assert (lengths >= 0).all(), "a set has a negative length"
    assert int(lengths.sum()) == int(state[skip.ENTRIES]), "sets do not add up to the entries"
    begins, lengths = nodes[sets][lengths > 0].astype(np.int64), lengths[lengths > 0]
    if not packed:
        lengths = 1 << np.frexp(lengths - 1)[1].astype(np.int64)
    for k in range(len(state) - skip.FREE_AREAS):
        free = _chain(markers, int(state[skip.FREE_AREAS + k]), 0, len(markers))
        begins, lengths = np.append(begins, free), np.append(lengths, np.full(len(free), 1 << k))
    order = np.argsort(begins)
    ends = np.cumsum(lengths[order])
    assert np.array_equal(begins[order], ends - lengths[order]), "areas overlap or leave gaps"
    used = int(ends[-1]) if len(ends) else 0
    assert used == int(state[skip.MARKERS_END]) <= len(markers), "areas do not fill their array"


def _rows(nodes: Int32s, markers: Int32s, sets: Int64s, slots: Int64s) -> tuple[Int64s, Int64s]:
    """For every marker of these sets: which set it is in, and its slot."""
    lengths = nodes[sets + 1].astype(np.int64)
    of_set = np.repeat(np.arange(len(sets)), lengths)
    first = np.cumsum(lengths) - lengths
    at = np.arange(len(of_set)) - first[of_set] + nodes[sets][of_set]
    slot = markers[at].astype(np.int64)
    assert np.isin(slot, slots).all(), "a marker is of no interval"
    return of_set, slot


def _check_markers(
    nodes: Int32s, markers: Int32s, spans: Int32s, slots: Int64s, levels: list[_Level]
) -> None:
    n_slots = len(spans) // skip.SPAN
    lows, highs = spans[skip.LOW :: skip.SPAN], spans[skip.HIGH :: skip.SPAN]
    covered = np.zeros(n_slots, np.int64)
    # Slots touch nodes: those of points at first, then both ends of every marked edge.
    points = slots[lows[slots] == highs[slots]]
    touched = [np.searchsorted(levels[0].keys, lows[points]) * n_slots + points]
    for number, level in enumerate(levels):
        of_edge, slot = _rows(nodes, markers, level.edges + skip.SET, slots)
        x, y = level.keys[of_edge], nodes[level.edges + skip.NEXT_KEY][of_edge].astype(np.int64)
        inside = (lows[slot] <= x) & (y <= highs[slot])
        assert inside.all(), "a marked edge leaves its interval"
        assert len(np.unique(of_edge * n_slots + slot)) == len(slot), "a marker is there twice"
        if number + 1 < len(levels):
            above = levels[number + 1]
            parent = np.searchsorted(above.keys, x, side="right") - 1
            z = nodes[above.edges + skip.NEXT_KEY][parent]
            longer = (lows[slot] <= above.keys[parent]) & (z <= highs[slot])
            assert not longer.any(), "a marker could be on a longer edge"
        np.add.at(covered, slot, y - x)
        ends = (np.searchsorted(levels[0].keys, end) for end in (x, y))
        touched += [end * n_slots + slot for end in ends]
    assert np.array_equal(covered[slots], (highs - lows)[slots]), "a marker is missing"
    node, slot = _rows(nodes, markers, levels[0].places + skip.EQ, slots)
    found = np.sort(node * n_slots + slot)
    assert np.array_equal(found, np.unique(np.concatenate(touched))), "eq markers are wrong"
