"""What the c-nodes of a BE-Tree list: clauses and p-nodes that come and go.

A run is an area whose size doubles, p-nodes first (``nodes`` draws one). Clauses and p-nodes
know their place in it; the last one of its kind fills a gap, so that nothing else moves::

    p1 p2 | c1 c2 c3            p-node p3 comes:    p1 p2 p3 | c2 c3 c1
                                p-node p1 goes:     p3 p2 | c2 c3 c1...

All are O(1), amortised.
"""

from __future__ import annotations

from typing import Any

from bittern.jit import inline
from bittern.literature.betree.clauses import LEAF, SPOT
from bittern.literature.betree.nodes import (
    AREAS,
    BEGIN,
    CHANNEL,
    END,
    FREE,
    FREE_NODE,
    LEFT,
    LIMIT,
    LISTED,
    MOST_LISTED,
    N_PNODES,
    NONE,
    PARENT,
    PLACE,
    RIGHT,
    ROOT,
    USED_ITEMS,
    USED_NODES,
    enter,
    new_node,
    withdraw,
)


@inline
def _give_area(tree: Any, begin: Any, limit: Any) -> None:
    """Chain an area to the free ones of its size; what is over a power of two is lost."""
    size = limit - begin
    if size > 0:
        log = 0
        while 2 << log <= size:
            log += 1
        tree.items[begin, 0] = tree.figures[AREAS + log]
        tree.figures[AREAS + log] = begin


@inline
def _widen(tree: Any, node: Any) -> Any:
    """Twice the area for a c-node's run; False if there is no room, which is a power of two."""
    nodes, items, _, _, figures = tree
    begin, end, limit = nodes[node, BEGIN], nodes[node, END], nodes[node, LIMIT]
    log = 0
    while 1 << log < 2 * (limit - begin):
        log += 1
    moved = figures[AREAS + log]
    if moved >= 0:
        figures[AREAS + log] = items[moved, 0]
    else:
        moved = figures[USED_ITEMS]
        if moved + (1 << log) > len(items):
            return False
        figures[USED_ITEMS] += 1 << log
    for i in range(end - begin):
        for k in range(4):
            items[moved + i, k] = items[begin + i, k]
    _give_area(tree, begin, limit)
    nodes[node, BEGIN] = moved
    nodes[node, END] = moved + end - begin
    nodes[node, LIMIT] = moved + (1 << log)
    return True


@inline
def _copy_item(items: Any, source: Any, target: Any) -> None:
    for k in range(4):
        items[target, k] = items[source, k]


@inline
def _move_clause(tree: Any, begin: Any, source: Any, target: Any) -> None:
    """A clause to another place in its run."""
    _copy_item(tree.items, source, target)
    tree.rows[tree.items[target, 0], SPOT] = target - begin


@inline
def put(tree: Any, node: Any, clause: Any, tested: Any) -> Any:
    """List a clause with the predicate in row ``tested``; False if there is no room."""
    nodes, items, rows, _, _ = tree
    if nodes[node, END] == nodes[node, LIMIT] and not _widen(tree, node):
        return False
    at = nodes[node, END]
    items[at, 0] = clause
    for k in range(3):
        items[at, k + 1] = rows[tested, k]
    rows[clause, LEAF], rows[clause, SPOT] = node, at - nodes[node, BEGIN]
    nodes[node, END] = at + 1
    return True


@inline
def take(tree: Any, node: Any, spot: Any) -> None:
    """Take the clause at this place out of a run; the last one fills it."""
    nodes = tree.nodes
    begin, last = nodes[node, BEGIN], nodes[node, END] - 1
    if begin + spot != last:
        _move_clause(tree, begin, last, begin + spot)
    nodes[node, END] = last


@inline
def has_room(tree: Any, node: Any) -> Any:
    """Whether there is room for one more c-node below this one, with one clause."""
    nodes, items, _, slots, figures = tree
    return (
        (figures[FREE_NODE] >= 0 or figures[USED_NODES] < len(nodes))
        and 2 * (figures[N_PNODES] + 1) <= len(slots) - 1
        and figures[USED_ITEMS] + 4 * (nodes[node, LIMIT] - nodes[node, BEGIN]) + 2 <= len(items)
    )


@inline
def add_pnode(tree: Any, bases: Any, node: Any, channel: Any, capacity: Any) -> Any:
    """A new p-node in the p-directory of a c-node; there is room (``has_room``)."""
    nodes, items = tree.nodes, tree.items
    low, high = bases[channel], bases[channel + 1] - 1
    pnode = new_node(tree, node, channel, low, high, capacity)
    enter(tree.slots, node, channel, pnode)
    tree.figures[N_PNODES] += 1
    n = nodes[node, LISTED]
    if n < 0:
        nodes[node, LISTED] = n - 1
        return pnode
    if n == MOST_LISTED:  # from now on it is looked up: only clauses stay
        begin, end = nodes[node, BEGIN], nodes[node, END]
        left = end - begin - n
        for k in range(min(n, left)):
            _move_clause(tree, begin, end - 1 - k, begin + k)
        nodes[node, END] = begin + left
        nodes[node, LISTED] = ~(n + 1)
        return pnode
    if nodes[node, END] == nodes[node, LIMIT]:
        _widen(tree, node)
    begin, end = nodes[node, BEGIN], nodes[node, END]
    if begin + n < end:
        _move_clause(tree, begin, begin + n, end)
    at = begin + n
    items[at, 0], items[at, 1], items[at, 2], items[at, 3] = pnode, channel, low, high
    nodes[node, END] = end + 1
    nodes[node, LISTED] = n + 1
    nodes[pnode, PLACE] = n
    return pnode


@inline
def _drop_pnode(tree: Any, node: Any, pnode: Any) -> None:
    """Take a p-node out of the p-directory of a c-node."""
    nodes, items = tree.nodes, tree.items
    withdraw(tree.slots, node, nodes[pnode, CHANNEL], pnode)
    tree.figures[N_PNODES] -= 1
    n = nodes[node, LISTED]
    if n < 0:
        nodes[node, LISTED] = n + 1 if n < ~1 else 0
        return
    begin, place, last = nodes[node, BEGIN], nodes[pnode, PLACE], n - 1
    if place != last:
        _copy_item(items, begin + last, begin + place)
        nodes[items[begin + place, 0], PLACE] = place
    if nodes[node, END] - 1 > begin + last:
        _move_clause(tree, begin, nodes[node, END] - 1, begin + last)
    nodes[node, END] -= 1
    nodes[node, LISTED] = last


@inline
def remove_empty(tree: Any, node: Any) -> None:
    """Free a c-node with nothing in it, and its parents as far as they have become empty."""
    nodes, figures = tree.nodes, tree.figures
    while (
        node != ROOT
        and nodes[node, BEGIN] == nodes[node, END]
        and nodes[node, LISTED] == 0
        and nodes[node, LEFT] < 0
        and nodes[node, RIGHT] < 0
    ):
        parent = nodes[node, PARENT]
        _give_area(tree, nodes[node, BEGIN], nodes[node, LIMIT])
        if nodes[parent, CHANNEL] != nodes[node, CHANNEL]:
            _drop_pnode(tree, parent, node)
        elif nodes[parent, LEFT] == node:
            nodes[parent, LEFT] = NONE
        else:
            nodes[parent, RIGHT] = NONE
        nodes[node, CHANNEL], nodes[node, PARENT] = FREE, figures[FREE_NODE]
        figures[FREE_NODE] = node
        node = parent
