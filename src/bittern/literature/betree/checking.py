"""Checks what kernels trust in a BE-Tree: clauses, c-nodes, runs, the table and free lists.

Every number is checked before it is used as an index, so arrays that are wrong in any way are safe
to check. ``AssertionError`` says what is wrong. O(everything x depth).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.jit import i4r2, i8, i8r, i8w, kernel, u8r, void
from bittern.literature.betree.checking_clauses import check_clauses
from bittern.literature.betree.clauses import (
    LEAF,
    SPOT,
    interval_rows,
    rows_of,
)
from bittern.literature.betree.nodes import (
    AREAS,
    BEGIN,
    CAPACITY,
    CHANNEL,
    EMPTY,
    END,
    FREE,
    FREE_NODE,
    HIGH,
    LEFT,
    LIMIT,
    LISTED,
    LOW,
    MOST_LISTED,
    N_FIGURES,
    N_PNODES,
    NO_CHANNEL,
    NODE_WIDTH,
    NONE,
    PARENT,
    PLACE,
    RIGHT,
    ROOT,
    USED_ITEMS,
    USED_NODES,
    USED_ROWS,
    find,
)
from bittern.stabbing.areas import check_areas

_PATH_FAULTS = (
    "a clause lacks a channel of its path",
    "a clause is not within an interval of its path",
    "a clause is listed with a wrong predicate",
)


# ------------------------------------------------------------------ c-nodes


@kernel(i8, i8r, i8, i8w)
def _chain(following: Any, first: Any, out: Any) -> Any:
    """Follow a chain to NONE; how long it is, or -1 if it leaves the array or does not end."""
    n = 0
    while first != NONE:
        if first < 0 or first >= len(following) or n == len(out):
            return -1
        out[n] = first
        n += 1
        first = following[first]
    return n


@kernel(i8, i4r2, i8r)
def _twice(nodes: Any, pnodes: Any) -> Any:
    """A p-node whose channel is on the path above it, or -1."""
    for pnode in pnodes:
        up = nodes[pnode, PARENT]
        while up != ROOT:
            if nodes[up, CHANNEL] == nodes[pnode, CHANNEL]:
                return pnode
            up = nodes[up, PARENT]
    return -1


@kernel(i8, u8r, i4r2, i8r)
def _not_found(slots: Any, nodes: Any, pnodes: Any) -> Any:
    """A p-node that the table does not find, or -1."""
    for pnode in pnodes:
        if find(slots, nodes, nodes[pnode, PARENT], nodes[pnode, CHANNEL]) != pnode:
            return pnode
    return -1


def _check_nodes(held: Mapping[str, npt.NDArray[Any]], capacity: int) -> tuple[Int64s, Int64s]:
    """C-nodes are one tree, whose channels and intervals fit; returns live ones, and p-nodes."""
    figures, bases = held["figures"], held["bases"]
    nodes = held["nodes"][: figures[USED_NODES]]
    free = nodes[:, CHANNEL] == FREE
    live = np.flatnonzero(~free)
    chain = np.empty(len(nodes), dtype=np.int64)
    n = int(_chain(nodes[:, PARENT].astype(np.int64), int(figures[FREE_NODE]), chain))
    assert n >= 0, "free c-nodes are not one chain"
    assert np.array_equal(np.sort(chain[:n]), np.flatnonzero(free)), (
        "free c-nodes are not one chain"
    )
    root = nodes[ROOT]
    assert root[CHANNEL] == NO_CHANNEL, "the root has a channel"
    assert root[LEFT] == root[RIGHT] == root[PARENT] == NONE, "the root has a half or a parent"
    below = live[live != ROOT]
    channels, parents = nodes[below, CHANNEL], nodes[below, PARENT]
    assert ((channels >= 0) & (channels < len(bases) - 1)).all(), "a c-node's channel is not there"
    assert ((parents >= 0) & (parents < len(nodes))).all(), "a c-node has no parent"
    assert not free[parents].any(), "a c-node's parent is free"
    up = np.zeros(len(nodes), dtype=np.int64)
    up[below] = parents
    for _ in range(len(nodes).bit_length()):
        up = up[up]
    assert not up.any(), "a c-node is not below the root"

    is_pnode = nodes[parents, CHANNEL] != channels
    pnodes, halves, above = below[is_pnode], below[~is_pnode], parents[~is_pnode]
    own = channels[is_pnode]
    whole = (nodes[pnodes, LOW] == bases[own]) & (nodes[pnodes, HIGH] == bases[own + 1] - 1)
    assert whole.all(), "a p-node does not cover its channel"
    lows, highs = nodes[above, LOW].astype(np.int64), nodes[above, HIGH].astype(np.int64)
    middles = (lows + highs) >> 1
    left, right = nodes[above, LEFT] == halves, nodes[above, RIGHT] == halves
    assert (left != right).all(), "a half is not below its c-node"
    assert (nodes[halves, LOW] == np.where(left, lows, middles + 1)).all(), "a half is not a half"
    assert (nodes[halves, HIGH] == np.where(left, middles, highs)).all(), "a half is not a half"
    assert (nodes[below, LOW] <= nodes[below, HIGH]).all(), "a c-node covers nothing"
    n_halves = np.count_nonzero(nodes[live][:, [LEFT, RIGHT]] >= 0)
    assert n_halves == len(halves), "a c-node has a half that is none"
    assert (nodes[live][:, [LEFT, RIGHT]] >= NONE).all(), "a c-node has a half that is none"
    assert _twice(nodes, pnodes) < 0, "a channel is twice on a path"
    assert (nodes[live, CAPACITY] >= capacity).all(), "a c-node holds less than the capacity"
    _check_table(held["slots"], nodes, pnodes)
    return live, pnodes


def _check_table(slots: npt.NDArray[np.uint64], nodes: Int32s, pnodes: Int64s) -> None:
    """The table holds each p-node once, and nothing else."""
    size = len(slots) - 1
    assert size > 0, "the table's size is not a power of two"
    assert size & (size - 1) == 0, "the table's size is not a power of two"
    entered = slots[:-1][slots[:-1] != EMPTY] & np.uint64(0xFFFFFFFF)
    assert 2 * len(entered) <= size, "the table is more than half full"
    assert len(entered) == len(pnodes), "the table does not have one entry per p-node"
    assert (entered < len(nodes)).all(), "the table has a p-node that is not there"
    assert _not_found(slots, nodes, pnodes) < 0, "the table does not find a p-node"


# ------------------------------------------------------------------ runs


@kernel(i8, i4r2, i4r2, i4r2, i8r, i8)
def _path_fault(nodes: Any, items: Any, rows: Any, clauses: Any, n_channels: Any) -> Any:
    """The number of what is wrong between some clause and its path, or -1."""
    tests = np.full(n_channels, -1, dtype=np.int64)
    on_path = np.full(n_channels, -1, dtype=np.int64)
    for clause in clauses:
        at, end = clause + 1, rows_of(rows, clause)
        while at < end and rows[at, 1] >= 0:
            tests[rows[at, 0]] = at
            at += 1 + interval_rows(rows[at, 3])
        node = rows[clause, LEAF]
        up = node
        while up != ROOT:
            channel = nodes[up, CHANNEL]
            at = tests[channel]
            if at <= clause or at >= end:
                return 0
            if rows[at, 1] < nodes[up, LOW] or rows[at, 2] > nodes[up, HIGH]:
                return 1
            on_path[channel] = clause
            up = nodes[up, PARENT]
        tested = at = clause + 1
        while at < end and rows[at, 1] >= 0:
            if on_path[rows[at, 0]] != clause:
                tested = at
                break
            at += 1 + interval_rows(rows[at, 3])
        item = nodes[node, BEGIN] + rows[clause, SPOT]
        for k in range(3):
            if items[item, k + 1] != rows[tested, k]:
                return 2
    return -1


@kernel(void, i4r2, i8r, i8w)
def _free_areas(items: Any, figures: Any, out: Any) -> None:
    """Where free areas begin and end, in ``out`` from 1 on; how many, or -1, in its first."""
    n = 0
    for log in range(len(figures) - AREAS):
        begin = figures[AREAS + log]
        while begin != NONE:
            end = begin + (1 << log)
            if begin < 0 or end > len(items) or 2 * n + 3 > len(out):
                out[0] = -1
                return
            out[2 * n + 1], out[2 * n + 2] = begin, end
            n += 1
            begin = items[begin, 0]
    out[0] = n


def _check_runs(
    held: Mapping[str, npt.NDArray[Any]], live: Int64s, pnodes: Int64s, clauses: Int64s
) -> None:
    """C-nodes list their p-nodes and clauses, each once and in its place, in areas of their own."""
    figures = held["figures"]
    nodes, rows = held["nodes"][: figures[USED_NODES]], held["rows"][: figures[USED_ROWS]]
    items = held["items"][: figures[USED_ITEMS]]
    begins, ends, limits = (nodes[live, k].astype(np.int64) for k in (BEGIN, END, LIMIT))
    assert ((begins >= 0) & (begins <= ends)).all(), "a run ends before it begins"
    free = np.empty(2 * len(items) + 3, dtype=np.int64)
    _free_areas(items, figures, free)
    assert free[0] >= 0, "free areas are not chains"
    free_begins, free_ends = free[1 : 2 * free[0] + 1].reshape(-1, 2).T
    check_areas(
        np.concatenate((begins, free_begins)),
        np.concatenate((ends, free_ends)),
        np.concatenate((limits, free_ends)),
        len(items),
        "run",
    )
    listed = nodes[live, LISTED].astype(np.int64)
    counts = np.bincount(nodes[pnodes, PARENT], minlength=len(nodes))[live]
    assert np.array_equal(np.where(listed < 0, ~listed, listed), counts), (
        "a c-node is wrong about its p-nodes"
    )
    assert not (listed == ~0).any(), "a c-node is wrong about its p-nodes"
    shown = np.maximum(listed, 0)
    assert (shown <= np.minimum(MOST_LISTED, ends - begins)).all(), "a run is too short"
    left = ends - begins - shown
    assert (left <= nodes[live, CAPACITY]).all(), "a c-node has overflowed"
    halved = (nodes[live][:, [LEFT, RIGHT]] >= 0).any(axis=1)
    assert ((left > 0) | (counts > 0) | halved | (live == ROOT)).all(), "a c-node is empty"

    first = np.zeros(len(nodes), dtype=np.int64)
    first[live] = begins
    in_list = np.zeros(len(nodes), dtype=np.bool_)
    in_list[live] = listed > 0
    mine = pnodes[in_list[nodes[pnodes, PARENT]]]
    in_run = np.zeros(len(nodes), dtype=np.int64)
    in_run[live] = shown
    places, above = nodes[mine, PLACE].astype(np.int64), nodes[mine, PARENT]
    assert ((places >= 0) & (places < in_run[above])).all(), "a p-node is not in its place"
    expected = np.column_stack((mine, nodes[mine][:, [CHANNEL, LOW, HIGH]]))
    assert np.array_equal(items[first[above] + places], expected), "a p-node is not in its place"

    leaves, spots = rows[clauses, LEAF].astype(np.int64), rows[clauses, SPOT].astype(np.int64)
    is_live = np.zeros(len(nodes) + 1, dtype=np.bool_)
    is_live[live] = True
    assert is_live[np.clip(leaves, -1, len(nodes))].all(), "a clause is filed in no c-node"
    length = np.zeros(len(nodes), dtype=np.int64)
    length[live] = ends - begins
    inside = (spots >= in_run[leaves]) & (spots < length[leaves])
    assert inside.all(), "a clause is not in its place"
    assert np.array_equal(items[first[leaves] + spots, 0], clauses), "a clause is not in its place"
    assert left.sum() == len(clauses), "something is listed that is no clause"
    n_channels = len(held["frequencies"])
    fault = int(_path_fault(nodes, items, rows, clauses, n_channels))
    assert fault < 0, _PATH_FAULTS[fault]


# ------------------------------------------------------------------ all of it


def _check_sizes(held: Mapping[str, npt.NDArray[Any]]) -> None:
    """Arrays have the shapes and types that kernels are compiled for, and room for what is used."""
    figures = held["figures"]
    for name, dtype, shape in (
        ("figures", np.int64, (N_FIGURES,)),
        ("nodes", np.int32, (len(held["nodes"]), NODE_WIDTH)),
        ("items", np.int32, (len(held["items"]), 4)),
        ("rows", np.int32, (len(held["rows"]), 4)),
        ("slots", np.uint64, (len(held["slots"]),)),
        ("firsts", np.int32, (len(held["firsts"]),)),
        ("frequencies", np.float64, (len(held["bases"]) - 1,)),
    ):
        array = held[name]
        assert array.dtype == dtype, f"{name} have the wrong type"
        assert array.shape == shape, f"{name} have the wrong shape"
    assert 1 <= figures[USED_NODES] <= len(held["nodes"]), "more c-nodes are used than there are"
    assert 0 <= figures[USED_ITEMS] <= len(held["items"]), "more items are used than there are"
    assert 0 <= figures[USED_ROWS] <= len(held["rows"]), "more rows are used than there are"
    assert (held["frequencies"] >= 0).all(), "a frequency is negative"


def check_tree(held: Mapping[str, npt.NDArray[Any]], capacity: int) -> None:
    """Verify every invariant of a tree's arrays, whose channels tile the axis."""
    _check_sizes(held)
    clauses = check_clauses(held)
    live, pnodes = _check_nodes(held, capacity)
    assert len(pnodes) == held["figures"][N_PNODES], "wrong number of p-nodes"
    _check_runs(held, live, pnodes, clauses)
