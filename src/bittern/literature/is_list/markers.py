"""Sets of markers that grow and shrink, in areas of one array.

A set of m markers owns an area of 2**k numbers, the smallest that holds m, so that nothing but its
begin and length need be stored. One that outgrows its area moves to one of twice the size; one that
fits into half of it gives the other half back::

    a b c .                                an area of 4
    put d, e      a b c d e . . .          one of 8; the 4 numbers are free
    take a        e b c d                  the last comes into its place; half of the 8 are free

Free areas of each size are a chain, through their own first number, and are used again before the
free end of the array is. Markers are in no order: putting one in is O(1) and finding one O(m), like
giving back an area that was full, so that going to and fro over a power of two costs no more.

A set is named by the place in ``nodes`` where its begin and length are (``nodes``).
"""

from __future__ import annotations

from typing import Any

from bittern.jit import i4r, i4w, i8, inline, kernel
from bittern.literature.is_list.nodes import (
    ENTRIES,
    EQ,
    FREE_AREAS,
    HEAD,
    HEIGHT,
    MARKERS_END,
    MOVED,
    NEXT,
    NOWHERE,
    SET,
    edge_at,
)


@inline
def _size_class(length: Any) -> Any:
    """Find k of the smallest area of 2**k numbers that holds this many."""
    k = 0
    while 1 << k < length:
        k += 1
    return k


@inline
def _new_area(markers: Any, state: Any, k: Any) -> Any:
    area = state[FREE_AREAS + k]
    if area < 0:
        area = state[MARKERS_END]
        state[MARKERS_END] += 1 << k
    else:
        state[FREE_AREAS + k] = markers[area]
    return area


@inline
def _free_area(markers: Any, state: Any, area: Any, k: Any) -> None:
    markers[area] = state[FREE_AREAS + k]
    state[FREE_AREAS + k] = area


@inline
def put(nodes: Any, markers: Any, state: Any, at: Any, slot: Any) -> None:
    """Add a marker to the set at this place of a node or edge."""
    begin, length = int(nodes[at]), int(nodes[at + 1])
    if length & (length - 1) == 0:  # none, or the area is full
        k = _size_class(length)
        area = _new_area(markers, state, k + 1 if length else 0)
        for i in range(length):
            markers[area + i] = markers[begin + i]
        if length:
            _free_area(markers, state, begin, k)
        nodes[at] = area
        begin = area
    markers[begin + length] = slot
    nodes[at + 1] = length + 1
    state[ENTRIES] += 1
    state[MOVED] += 1


@inline
def take_at(nodes: Any, markers: Any, state: Any, at: Any, k: Any) -> None:
    """Take the k-th marker out of a set; the last one comes into its place."""
    begin, length = int(nodes[at]), int(nodes[at + 1]) - 1
    markers[begin + k] = markers[begin + length]
    nodes[at + 1] = length
    if length & (length - 1) == 0:
        _free_area(markers, state, begin + length, _size_class(length))
    state[ENTRIES] -= 1
    state[MOVED] += 1


@inline
def change(nodes: Any, markers: Any, state: Any, at: Any, slot: Any, add: Any) -> None:
    """Put a marker into a set, or find it there and take it out."""
    if add:
        put(nodes, markers, state, at, slot)
    else:
        begin, k = int(nodes[at]), 0
        while markers[begin + k] != slot:
            k += 1
        take_at(nodes, markers, state, at, k)


@inline
def free_set(nodes: Any, markers: Any, state: Any, at: Any) -> None:
    """Give back the area of a set that is not needed any more."""
    length = int(nodes[at + 1])
    if length:
        _free_area(markers, state, nodes[at], _size_class(length))
        state[ENTRIES] -= length
        state[MOVED] += length


@kernel(i8, i4w, i4r, i4w)
def spread(nodes: Any, markers: Any, areas: Any) -> Any:
    """Copy every set to an area of its own, one after the other; return where they end.

    Only adds up their sizes if ``areas`` has no room at all.
    """
    at = 0
    node = HEAD
    while node != NOWHERE:
        for level in range(-1, nodes[node + HEIGHT]):
            place = node + EQ if level < 0 else edge_at(node, level) + SET
            begin, length = int(nodes[place]), int(nodes[place + 1])
            if length == 0:
                continue
            if len(areas):
                for i in range(length):
                    areas[at + i] = markers[begin + i]
                nodes[place] = at
            at += 1 << _size_class(length)
        node = int(nodes[edge_at(node, 0) + NEXT])
    return at
