"""The arrays of a BE-Tree: c-nodes, what they list, and the table of all p-directories.

A *c-node* is a row of ``nodes``. It has an l-node (clauses), a p-directory (p-nodes by channel)
and, unless it is the root, halves an interval of cells of its channel with up to two children. A
*p-node* is the c-node at the top of its c-directory: it covers all cells of its channel, and its
parent is the c-node in whose p-directory it is. A child of a half has its parent's channel, and no
channel is twice on a path otherwise, so the channels tell the two apart.

What a c-node lists is a run of ``items``, rows of (what, channel, low, high)::

    nodes[4]   BEGIN 7  END 11  LISTED 1  ...
    items[7]   p-node 9       b  all cells       p-nodes first, while there are few of them
    items[8]   clause 31      c  [40, 44]        clauses, each with one of its predicates: most
    items[9]   clause 77      d  [90, 90]        events that come by fail it, so that nothing but
    items[10]  clause 12      c  [46, 52]        this run is read

A p-directory of more than ``MOST_LISTED`` p-nodes is not listed (LISTED is ~ their number); an
event's channels are then looked up in ``slots``. This one open-addressing table of all p-nodes,
keyed by (c-node, channel), holds hash << 32 | p-node, and is at most half full. Taking one out
moves the following ones up, so that there are no tombstones. Behind the slots stands the key of the
hash (``model/hashing.py``): of a packed tree drawn from its content, otherwise a secret.

Runs are areas of powers of two with free lists by size, and free c-nodes are chained: what is given
back is used again. O(1) for each of these functions, amortised.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s, UInt64s
from bittern.jit import (
    i4r2,
    i4w2,
    i8r,
    i8w,
    inline,
    kernel,
    tuple_type,
    u8r,
    u8w,
    void,
)
from bittern.model.hashing import hash_word

# The columns of a c-node; those that matching reads are first.
BEGIN, END, LISTED, CHANNEL, LOW, HIGH, LEFT, RIGHT = range(8)
PARENT, PLACE, LIMIT, CAPACITY = range(8, 12)
NODE_WIDTH = 12
ROOT = 0
#: The channel of the root, and of a c-node that is not in use: its PARENT is the next such one.
NO_CHANNEL, FREE = -1, -2
NONE = -1

#: A p-directory of more p-nodes is looked up by the event's channels instead of being read. A look
#: up misses the cache, and an event has tens of channels.
MOST_LISTED = 64

# Running figures: what is in use from the start of each array on, and where free lists begin.
USED_NODES, FREE_NODE, USED_ITEMS, USED_ROWS, DELETED_ROWS, N_PNODES, N_CLAUSES, N_SEVERAL = range(
    8
)
AREAS = 8  # the first free area of 1, 2, 4, ... items
N_FIGURES = AREAS + 32


class TreeArrays(NamedTuple):
    """A tree: its c-nodes, what they list, the clauses (``clauses``), the table, the figures."""

    nodes: Int32s
    items: Int32s
    rows: Int32s
    slots: UInt64s
    figures: Int64s


SEARCHED = tuple_type(TreeArrays, i4r2, i4r2, i4r2, u8r, i8r)
CHANGING = tuple_type(TreeArrays, i4w2, i4w2, i4w2, u8w, i8w)

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)


# ------------------------------------------------------------------ the table of p-directories


@inline
def mask_of(slots: Any) -> Any:
    """One less than the number of slots; the key of the hash follows the slots."""
    return np.uint64(len(slots) - 2)


@inline
def hash_of(slots: Any, node: Any, channel: Any) -> Any:
    """32 bits for (c-node, channel), as an unsigned 64-bit number."""
    both = np.uint64(node) << _HALF | np.uint64(channel)
    return hash_word(both, slots[np.uint64(len(slots) - 1)])


@inline
def find(slots: Any, nodes: Any, node: Any, channel: Any) -> Any:
    """The p-node of a channel in a c-node's p-directory, or NONE."""
    mask = mask_of(slots)
    hashed = hash_of(slots, node, channel)
    at = hashed & mask
    for _ in range(len(slots)):  # only a damaged table has no slot that is empty
        if slots[at] == EMPTY:
            break
        if slots[at] >> _HALF == hashed:
            found = slots[at] & _LOW_HALF
            if nodes[found, PARENT] == node and nodes[found, CHANNEL] == channel:
                return np.int64(found)
        at = (at + _ONE) & mask
    return np.int64(NONE)


@inline
def enter(slots: Any, node: Any, channel: Any, pnode: Any) -> None:
    """Put a p-node into the table, which has room."""
    mask = mask_of(slots)
    hashed = hash_of(slots, node, channel)
    at = hashed & mask
    while slots[at] != EMPTY:
        at = (at + _ONE) & mask
    slots[at] = hashed << _HALF | np.uint64(pnode)


@inline
def withdraw(slots: Any, node: Any, channel: Any, pnode: Any) -> None:
    """Remove a p-node, and move entries that it had displaced."""
    mask = mask_of(slots)
    hashed = hash_of(slots, node, channel)
    wanted = hashed << _HALF | np.uint64(pnode)
    hole = hashed & mask
    while slots[hole] != wanted:
        hole = (hole + _ONE) & mask
    at = (hole + _ONE) & mask
    while slots[at] != EMPTY:
        home = (slots[at] >> _HALF) & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            slots[hole] = slots[at]
            hole = at
        at = (at + _ONE) & mask
    slots[hole] = EMPTY


@kernel(void, u8w, u8w)
def enter_again(old: Any, new: Any) -> None:
    """Copy a table with its key into a larger, empty one."""
    mask = mask_of(new)
    new[len(new) - 1] = old[len(old) - 1]
    for slot in old[: len(old) - 1]:
        if slot != EMPTY:
            at = (slot >> _HALF) & mask
            while new[at] != EMPTY:
                at = (at + _ONE) & mask
            new[at] = slot


# ------------------------------------------------------------------ c-nodes


@inline
def new_node(tree: Any, parent: Any, channel: Any, low: Any, high: Any, capacity: Any) -> Any:
    """A c-node with nothing in it; there is room for one."""
    nodes, figures = tree.nodes, tree.figures
    node = figures[FREE_NODE]
    if node >= 0:
        figures[FREE_NODE] = nodes[node, PARENT]
    else:
        node = figures[USED_NODES]
        figures[USED_NODES] += 1
    nodes[node, BEGIN] = nodes[node, END] = nodes[node, LIMIT] = 0
    nodes[node, LISTED] = nodes[node, PLACE] = 0
    nodes[node, CHANNEL], nodes[node, LOW], nodes[node, HIGH] = channel, low, high
    nodes[node, LEFT] = nodes[node, RIGHT] = NONE
    nodes[node, PARENT], nodes[node, CAPACITY] = parent, capacity
    return node


@inline
def listed(nodes: Any, node: Any) -> Any:
    """The number of p-nodes before the clauses in a c-node's run."""
    return max(0, nodes[node, LISTED])


@inline
def n_clauses(nodes: Any, node: Any) -> Any:
    """How many clauses the l-node of a c-node has."""
    return nodes[node, END] - nodes[node, BEGIN] - listed(nodes, node)


def shape_of(nodes: npt.NDArray[np.int32]) -> dict[str, Any]:
    """How many c-nodes and leaves there are, how deep clauses are filed, and the largest leaf."""
    live = np.flatnonzero(nodes[:, CHANNEL] != FREE)
    clauses = np.zeros(len(nodes), dtype=np.int64)
    clauses[live] = nodes[live, END] - nodes[live, BEGIN] - np.maximum(nodes[live, LISTED], 0)
    depths = np.zeros(len(nodes), dtype=np.int64)
    below = live[live != ROOT]
    up = nodes[below, PARENT]
    while len(below):
        depths[below] += 1
        below, up = below[up != ROOT], up[up != ROOT]
        up = nodes[up, PARENT]
    total = max(1, int(clauses.sum()))
    return {
        "c_nodes": len(live),
        "leaves": int(np.count_nonzero(clauses)),
        "deepest": int(depths[live].max()),
        "mean_depth": round(float((depths * clauses).sum() / total), 2),
        "largest_leaf": int(clauses.max()),
    }
