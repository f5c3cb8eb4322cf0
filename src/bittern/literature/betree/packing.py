"""Packing a BE-Tree: only what is in use, and neighbours in the tree are neighbours in memory.

C-nodes get new numbers, each before what is below it; their runs follow one another in the same
order, and so do the clauses, except that those of a class stay together. So an event that has a
p-node's channel reads one stretch of each array. O(everything).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s
from bittern.jit import frozen, i4r, i4r2, i4w, i8, kernel, void
from bittern.literature.betree.clauses import CLASS, LEAF, move_class
from bittern.literature.betree.nodes import (
    AREAS,
    BEGIN,
    CHANGING,
    CHANNEL,
    DELETED_ROWS,
    EMPTY,
    END,
    FREE,
    FREE_NODE,
    LEFT,
    LIMIT,
    N_PNODES,
    NODE_WIDTH,
    NONE,
    PARENT,
    RIGHT,
    ROOT,
    SEARCHED,
    USED_ITEMS,
    USED_NODES,
    USED_ROWS,
    TreeArrays,
    enter,
    listed,
)
from bittern.model.hashing import multiplier_of


@kernel(i8, i4r2, i8, i4w, i4w)
def _order(nodes: Any, used: Any, order: Any, renamed: Any) -> Any:
    """Live c-nodes, each before what is below it; their new numbers, and how many there are."""
    starts = np.zeros(used + 1, dtype=np.int64)
    for node in range(used):
        if node != ROOT and nodes[node, CHANNEL] != FREE:
            starts[nodes[node, PARENT] + 1] += 1
    for node in range(used):
        starts[node + 1] += starts[node]
    free = starts[:-1].copy()
    children = np.empty(used, dtype=np.int32)
    for node in range(used):
        if node != ROOT and nodes[node, CHANNEL] != FREE:
            parent = nodes[node, PARENT]
            children[free[parent]] = node
            free[parent] += 1
    stack = np.empty(used, dtype=np.int32)
    stack[0] = ROOT
    height, n = 1, 0
    while height > 0:
        height -= 1
        node = stack[height]
        order[n] = node
        renamed[node] = n
        n += 1
        for i in range(starts[node], starts[node + 1]):
            stack[height] = children[i]
            height += 1
    return n


@kernel(void, SEARCHED, i4w, i4r, i4r, i8, CHANGING)
def _write(tree: Any, firsts: Any, order: Any, renamed: Any, n: Any, packed: Any) -> None:
    """Write c-nodes, what they list and its clauses in order, and enter all p-nodes."""
    nodes, items, rows, _, _ = tree
    out_nodes, out_items, out_rows, slots, _ = packed
    moved = np.full(len(rows), -1, dtype=np.int32)
    at = n_rows = 0
    for new in range(n):
        node = order[new]
        for k in range(NODE_WIDTH):
            out_nodes[new, k] = nodes[node, k]
        begin, end = nodes[node, BEGIN], nodes[node, END]
        first = begin + listed(nodes, node)
        out_nodes[new, BEGIN] = at
        for i in range(begin, end):
            for k in range(1, 4):
                out_items[at, k] = items[i, k]
            if i < first:
                out_items[at, 0] = renamed[items[i, 0]]
            else:
                clause = items[i, 0]
                if moved[clause] < 0:
                    n_rows = move_class(rows, firsts, rows[clause, CLASS], out_rows, n_rows, moved)
                out_items[at, 0] = moved[clause]
                out_rows[moved[clause], LEAF] = new
            at += 1
        out_nodes[new, END] = out_nodes[new, LIMIT] = at
        if new == ROOT:
            continue
        parent = nodes[node, PARENT]
        out_nodes[new, PARENT] = renamed[parent]
        for half in (LEFT, RIGHT):
            if nodes[node, half] >= 0:
                out_nodes[new, half] = renamed[nodes[node, half]]
        if nodes[parent, CHANNEL] != nodes[node, CHANNEL]:
            enter(slots, renamed[parent], nodes[node, CHANNEL], new)


def table_of(n_pnodes: int, multiplier: np.uint64) -> npt.NDArray[np.uint64]:
    """An empty table that has room for as many p-nodes and one more, with this key of its hash."""
    size = 4
    while size < 2 * (n_pnodes + 1):
        size *= 2
    slots = np.full(size + 1, EMPTY, dtype=np.uint64)
    slots[-1] = multiplier
    return slots


def pack(tree: TreeArrays, firsts: Int32s) -> TreeArrays:
    """The tree in new arrays; ``firsts`` and the figures are changed in place."""
    nodes, figures = tree.nodes, tree.figures
    used, n_rows = int(figures[USED_NODES]), int(figures[USED_ROWS])
    order, renamed = np.empty(used, dtype=np.int32), np.empty(used, dtype=np.int32)
    n = _order(nodes, used, order, renamed)
    live = order[:n]
    n_items = int((nodes[live, END] - nodes[live, BEGIN]).sum(dtype=np.int64))
    packed = TreeArrays(
        np.empty((n, NODE_WIDTH), dtype=np.int32),
        np.empty((n_items, 4), dtype=np.int32),
        np.empty((n_rows - int(figures[DELETED_ROWS]), 4), dtype=np.int32),
        table_of(int(figures[N_PNODES]), multiplier_of(nodes[live][:, [PARENT, CHANNEL]])),
        figures,
    )
    _write(frozen(tree._replace(rows=tree.rows[:n_rows])), firsts, order, renamed, n, packed)
    figures[USED_NODES], figures[USED_ITEMS], figures[USED_ROWS] = n, n_items, len(packed.rows)
    figures[DELETED_ROWS] = 0
    figures[FREE_NODE] = NONE
    figures[AREAS:] = NONE
    return packed
