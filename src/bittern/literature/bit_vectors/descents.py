"""Descents: many values go down a tree of keys at a time.

A descent waits for memory at almost every node, and knows the next one only when it is there; and
which way it turns is what a processor cannot foretell. So a group of values goes down together,
level by level and without a jump that depends on a key: each value takes one step, asks for its
next node and steps aside until the others had their turn::

    value 12    21 -> 19 |             -> leaf |             level by level; a value that has
    value 40       21 -> 23 |            -> 31 |             arrived is not in the next turns
    value 22          21 -> 23 |            -> leaf |

What a step is, is for the tree to say: a function of the nodes, a node and a value. It returns the
child, or a negative number where the way ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.jit import inline, prefetch

GROUP = 32
"""Values that go down together: enough to hide a miss of all caches, few enough to stay in one."""


@inline
def descend(
    step: Any,
    nodes: Any,
    root: Any,
    domain: Any,
    values: Any,
    first: Any,
    size: Any,
    turns: Any,
    path: Any,
    stride: Any,
) -> Any:
    """Lead ``size`` values from ``first`` on, at most GROUP, from the root (-1: none) to the end.

    What the steps of value g returned is at path[g], path[stride + g] ..., from the root to the
    first negative number; outside the domain that is where the root would be. With a stride of 0
    only the last one is kept. ``turns`` is room for GROUP numbers. Returns how much of ``path`` the
    nodes are in.
    """
    width = nodes.shape[1]
    going = 0
    for g in range(size):
        path[g] = root if 0 <= values[first + g] < domain else -1
        turns[going] = g
        going += int(path[g] >= 0)
    at = 0
    while going:
        stay = 0
        for turn in range(going):
            g = turns[np.uint64(turn)]
            node = step(nodes, np.uint64(path[np.uint64(at + g)]), values[np.uint64(first + g)])
            prefetch(nodes, node * width)
            path[np.uint64(at + stride + g)] = node
            turns[np.uint64(stay)] = g
            stay += int(node >= 0)
        going = stay
        at += stride
    return at
