"""The pivot cover: which tests a class is filed under.

A cover is a set of tests at least one of which must hold for the expression to hold: of a test,
itself; of an AND, the cheapest operand's cover; of an OR, the union of all operands' covers. So a
class filed under its cover is a candidate for every event that it matches, at the least expected
number of events that it does not, and nothing is ever multiplied out. For
``a = 1 AND (b < 5 OR c = 2)`` with a rare::

    cost    AND 0.01  [ a = 1: 0.01   OR 0.35 [ b < 5: 0.3   c = 2: 0.05 ] ]
    cover   { a = 1 }

The cost of a test is the share of events that satisfy it, from ``mass``: the running sum over the
global axis of how many events fall into each cell. "Missing" cannot be looked up in an index; an
expression that only such tests cover goes on the always-candidate list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import starts_of
from bittern.jit import i4r, i8r, i8w, inline, kernel, void
from bittern.model.classes.classes import Classes
from bittern.model.classes.structure import OR, TEST
from bittern.model.rank.space import PATTERN, RankSpace

#: More than any sum of costs: what no index can look up.
UNCOVERABLE = 1e300
#: The share of values that a pattern is taken to match while nothing is known.
PATTERN_SHARE = 0.05
#: How much a prior counts against a sample of events, in events.
_PRIOR_EVENTS = 1.0


@kernel(void, i4r, i8r, i4r, i4r, i8w, i8w)
def _count_mentions(
    channels: Any, starts: Any, counts: Any, attributes: Any, last: Any, mentions: Any
) -> None:
    """How many classes mention each attribute; ``last`` (-1) is the class that did so last."""
    for c in range(len(starts)):
        for i in range(starts[c], starts[c] + counts[c]):
            if channels[i] < 0:  # a test that never holds may have no channel
                continue
            attribute = np.uint64(attributes[channels[i]])
            if last[attribute] != c:
                last[attribute] = c
                mentions[attribute] += 1


def cell_mass(
    rank: RankSpace, classes: Classes, sample_cells: npt.NDArray[np.int64] | None, n_sample: int
) -> npt.NDArray[np.float64]:
    """The running sum of expected events per cell, as a share of all events.

    ``sample_cells`` counts, for each global cell, the sample's events in it. Without a sample,
    attributes that many classes mention are assumed to be in many events, with values distributed
    over the cells like the constants. However often a class mentions an attribute, as in a long
    ``IN``, it counts once.
    """
    bases = rank.arrays.bases.astype(np.int64)
    cells = np.diff(bases)
    mentions = np.zeros(len(rank.names), dtype=np.int64)
    _count_mentions(
        classes.channels,
        classes.starts,
        classes.counts,
        rank.channel_attributes,
        np.full(len(mentions), -1, dtype=np.int64),
        mentions,
    )
    presence = np.minimum(1.0, mentions / max(1, mentions.max(initial=1)))[rank.channel_attributes]
    presence = np.where(rank.channel_kinds == PATTERN, presence * PATTERN_SHARE, presence)
    # ANY is as frequent as the attribute itself; each other channel's share is spread evenly.
    share = np.repeat(presence / cells, cells)
    if sample_cells is not None:
        share = (sample_cells + _PRIOR_EVENTS * share) / (n_sample + _PRIOR_EVENTS)
    return starts_of(share, np.float64)


@inline
def test_cost(low: Any, high: Any, mass: Any) -> Any:
    """The expected share of events that satisfy a test."""
    if low < 0:
        return UNCOVERABLE
    if low > high:
        return 0.0
    return mass[high + 1] - mass[low]


@inline
def mark_cover(
    structures: Any, first: Any, last: Any, costs: Any, node_costs: Any, chosen: Any, marks: Any
) -> Any:
    """Mark the tests of the cheapest cover of one nested structure; returns its cost."""
    test = len(costs)
    for i in range(last - 1, first - 1, -1):  # children come after their parent
        if structures.operators[i] == TEST:
            test -= 1
            node_costs[i - first] = costs[test]
            continue
        total = 0.0 if structures.operators[i] == OR else UNCOVERABLE
        child = i + 1
        while child < i + structures.sizes[i]:
            cost = node_costs[child - first]
            total = (
                min(UNCOVERABLE, total + cost)
                if structures.operators[i] == OR
                else min(total, cost)
            )
            child += structures.sizes[child]
        node_costs[i - first] = total
    chosen[: last - first] = 0
    chosen[0] = 1
    for i in range(first, last):
        if structures.operators[i] == TEST:
            marks[test] = chosen[i - first]
            test += 1
            continue
        if not chosen[i - first]:
            continue
        best = i + 1
        child = i + 1
        while child < i + structures.sizes[i]:
            if structures.operators[i] == OR:
                chosen[child - first] = 1
            elif node_costs[child - first] < node_costs[best - first]:
                best = child
            child += structures.sizes[child]
        chosen[best - first] = 1
    return node_costs[0]
