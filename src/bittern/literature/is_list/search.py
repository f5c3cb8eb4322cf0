"""Searching an interval skip list for a batch of values: many descents at a time.

A descent waits for memory at almost every node that it comes to, and knows the next only when it is
there. So a group of values goes down together: each takes its turn, goes on as far as the node
that it is at allows, asks for the next one and steps aside until the others had their turn::

    value 12   head -> 9 | level down ... -> 12 | report
    value 77                head -> 50 |            -> 75 | level down ...
    value 31                   head -> 9 |              -> 30 | ...

Each value reports one set per level at most. Those of a group are written where all would fit,
and moved together once the group is through, so that they are in the order of the values. The sets
hold slots, which become ids after they were copied (``runs``): close together, as they were built
in the order of their low ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import i4r, i4w, i8, i8r, kernel, prefetch, void
from bittern.literature.is_list.nodes import (
    DOMAIN,
    EDGE_BITS,
    EQ,
    HEAD,
    LEVELS,
    NEXT,
    SET,
    edge_at,
)
from bittern.stabbing.runs import RUNS, Runs

if TYPE_CHECKING:
    from bittern.arrays import Int32s, Int64s

GROUP = 32
"""Values that go down together: enough to hide a miss of all caches, few enough to stay in one."""

_AHEAD = 32
"""Runs between asking for markers and reading them."""

_EQ_MARKERS = -1  # the level of a value that met its own key


@kernel(i8, i4r, i8r, i4r, i8, RUNS)
def _search(nodes: Any, state: Any, values: Any, first: Any, runs: Any) -> Any:
    """Sets of the values from ``first`` on, as runs, while there is room for a whole group."""
    offsets, ends, begins, lengths = runs
    domain, levels = state[DOMAIN], state[LEVELS]
    edges, level_of = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    n_runs, turns = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    total, n = offsets[first], ends[first]
    for base in range(first, len(values), GROUP):
        if n + GROUP * levels > len(begins):
            return base
        size = min(GROUP, len(values) - base)
        going = 0
        for g in range(size):
            edges[g] = edge_at(HEAD, levels - 1)
            level_of[g] = levels - 1
            n_runs[g] = n + g * levels
            if levels and 0 <= values[base + g] < domain:
                turns[going] = g
                going += 1
        while going:
            stay = 0
            for turn in range(going):
                g = turns[np.uint64(turn)]
                at = np.uint64(g)
                value, edge, level = values[np.uint64(base + g)], edges[at], level_of[at]
                run = n_runs[at]
                through = False
                while not through:
                    key = nodes[np.uint64(edge)]
                    if level != _EQ_MARKERS and key <= value:
                        node = int(nodes[np.uint64(edge + NEXT)])
                        if key == value:
                            edge, level = node + EQ - SET, _EQ_MARKERS
                        else:
                            edge = edge_at(node, level)
                        break
                    length = nodes[np.uint64(edge + SET + 1)]
                    begins[np.uint64(run)] = nodes[np.uint64(edge + SET)]
                    lengths[np.uint64(run)] = length
                    run += int(length > 0)
                    through = level <= 0
                    level -= 1
                    edge -= 1 << EDGE_BITS
                n_runs[at] = run
                if not through:
                    prefetch(nodes, edge)
                    edges[at], level_of[at] = edge, level
                    turns[np.uint64(stay)] = g
                    stay += 1
            going = stay
        room = n
        for g in range(size):
            for run in range(room + g * levels, n_runs[g]):
                begins[n], lengths[n] = begins[run], lengths[run]
                total += int(lengths[n])
                n += 1
            offsets[base + g + 1] = total
            ends[base + g + 1] = n
    return len(values)


@kernel(void, i4r, i4r, i4r, i4r, i8, i8, i4w)
def _write_ids(
    slot_ids: Any, markers: Any, begins: Any, lengths: Any, first: Any, last: Any, ids: Any
) -> None:
    """Write the ids of runs of slots, one after the other.

    Not several at a time past the end, as ``runs`` copies ids: there may be anything in areas.
    """
    at = 0
    for run in range(first, last):
        prefetch(markers, int(begins[np.uint64(min(run + _AHEAD, last - 1))]))
        begin, length = int(begins[np.uint64(run)]), int(lengths[np.uint64(run)])
        for k in range(length):
            ids[np.uint64(at + k)] = slot_ids[np.uint64(markers[np.uint64(begin + k)])]
        at += length


class MarkedRuns(Runs):
    """Runs of markers, read as the ids of the intervals that left them."""

    def __init__(
        self, nodes: Int32s, markers: Int32s, slot_ids: Int32s, state: Int64s, values: Int32s
    ) -> None:
        """Search a batch of values."""
        super().__init__(markers, len(values), GROUP * int(state[LEVELS]))
        self._slot_ids = slot_ids
        self.search(_search, nodes, state, values)

    def _fill(self, first: int, last: int, ids: Int32s) -> None:
        _, ends, begins, lengths = self.found
        runs = begins, lengths, int(ends[first]), int(ends[last])
        _write_ids(self._slot_ids, self.items, *runs, ids)
