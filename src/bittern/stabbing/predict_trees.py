"""Predicted bytes and search work of bit vectors, trees and skip lists: estimates only.

Everything here assumes that intervals begin anywhere with the same chance, and lengths within an
octave are spread evenly up to what their mean allows.

Slots are ordered by left end, so 64 neighbours, one *word* of a bit vector, begin within ``span``
cells. A value d cells behind such a word is in an interval of it with the chance that one of 64 is
longer than d; added up over all words before the value, that is how many words a row has::

    words              |....|....|....|....|   value       span = 64 * domain / n
    S(d) = share of lengths > d       <-- d -->|           words per row = sum of 1 - exp(-64 S(d))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bittern.stabbing import skip_nodes
from bittern.stabbing.estimate import Estimate, Work, copied, descent, misses
from bittern.stabbing.hybrid_index import DEFAULT_MINIMUM
from bittern.stabbing.is_list import MAX_ENTRIES
from bittern.stabbing.summary import OCTAVES, Summary

_UNLIMITED = 2**63
_WORD = 12  # bytes of a word and its number
_SLOT = 12  # bytes of an interval in its slot
_CLUSTER = DEFAULT_MINIMUM
_FIRST_WORD = 0.9
_LEFT_BETWEEN = 0.45
_STEPS = 8  # points per octave at which the share of longer intervals is taken


def longer_than(summary: Summary, cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the intervals that have more cells than that."""
    total = np.zeros_like(cells)
    for v in range(OCTAVES):
        if summary.counts[v]:
            least = 2.0**v
            mean = summary.cells[v] / summary.counts[v]
            width = max(2 * (mean - least), 1.0)
            total += summary.counts[v] * np.clip((least + width - cells) / width, 0.0, 1.0)
    return total / max(summary.n, 1)


def _lengths(summary: Summary) -> Iterator[tuple[float, float]]:
    """Lengths that stand for the intervals of an octave each, and how many intervals: thirds."""
    for v in np.flatnonzero(summary.counts):
        count, least = float(summary.counts[v]), 2.0**v
        width = 2 * (float(summary.cells[v]) / count - least)
        for share in (1 / 6, 1 / 2, 5 / 6):
            yield least + share * width, count / 3


def words_per_row(summary: Summary) -> float:
    """Nonzero words in the bit vector of an elementary interval that is in any interval."""
    if not summary.n:
        return 0.0
    span = 64.0 * summary.domain / summary.n
    octaves = int(np.flatnonzero(summary.counts)[-1]) + 1
    edges = np.append(0.0, 2.0 ** np.linspace(0, octaves, octaves * _STEPS + 1))
    middles = (edges[1:] + edges[:-1]) / 2
    found = -np.expm1(-64 * longer_than(summary, middles))
    # The first word is the one that the value itself is somewhere in.
    return max(1.0, _FIRST_WORD + float((np.diff(edges) * found).sum()) / span)


def skip_edges(ends: float) -> float:
    """Expected edges of a skip list's staircase over so many edges of level 0.

    A node between is on it unless higher ones stand on both sides. Of nodes with heights h, of
    chance x = 2**-h, the one after m others is as high as all of them with the chance q(m), the
    sum of x (1 - x)**m; one of m before and s - m behind it is on the staircase with the chance
    q(m) + q(s - m) - q(s).
    """
    x = 2.0 ** -np.arange(1.0, 41.0)
    one_side = float(((1 - x) * (1 - (1 - x) ** (ends - 1))).sum())
    both = float((x * (1 - x) ** ends).sum())
    return 1 + 2 * one_side - (ends - 1) * both


def _depth(nodes: float) -> float:
    return math.log2(nodes + 1)


def _covered(summary: Summary) -> float:
    """Chance that a value is in any interval."""
    return 1 - math.exp(-summary.ids_per_value)


def _interval(name: str, summary: Summary) -> Iterator[Estimate]:
    nodes = summary.occupied
    per_row = words_per_row(summary)
    in_rows = _WORD * nodes * per_row
    size = 8 * nodes + 4 * (nodes + 1) + in_rows + _SLOT * summary.n
    steps = _depth(nodes)
    words = per_row * _covered(summary)
    lines = misses(2, 4 * nodes) + misses(1, in_rows) + misses(words, 4 * summary.n)
    work = Work(steps=steps, words=words, bits=summary.ids_per_value, misses=lines)
    yield Estimate(name, {}, round(size), work)


def _hybrid(name: str, summary: Summary) -> Iterator[Estimate]:
    leaves = cluster_leaves(summary)
    if summary.ids_per_value < _CLUSTER - 1:
        leaves = min(leaves, summary.n / (0.7 * (_CLUSTER - summary.ids_per_value)))
    leaves = max(leaves, 1.0)
    for one in _interval(name, summary):
        size = one.bytes + 12 * (leaves - 1) + 12 * leaves
        inside = _depth(summary.occupied / leaves)
        keys = _depth(leaves)
        lines = descent(keys, 12 * leaves) + misses(inside / 4, 8 * summary.occupied)
        work = replace(one.work, steps=2 * keys + inside, misses=one.work.misses + lines)
        yield Estimate(name, {"minimum": _CLUSTER}, round(size), work)


def _segment_tree(name: str, summary: Summary) -> Iterator[Estimate]:
    leaves = max(summary.pieces, 1)
    nodes = 2 * leaves - 1
    by_level, far = _canonical(summary)
    level_nodes = leaves / 2.0 ** np.arange(len(by_level))
    # The intervals of a node begin in as many pieces before it as it has, or as they are long.
    reach = (2.0 ** np.arange(len(by_level)) + far) / 2
    spread = 1 + summary.n / leaves * reach / 64
    in_row = spread * -np.expm1(-by_level / level_nodes / spread)
    words = float((level_nodes * in_row).sum())
    size = 16 + 8 * nodes + 4 * (nodes + 1) + _WORD * words + _SLOT * summary.n
    steps = _depth(leaves)
    found = float(in_row.sum())
    lines = misses(steps, 4 * nodes) + misses(found, _WORD * words) + misses(found, 4 * summary.n)
    work = Work(
        headers=steps,
        steps=2 * steps,
        words=found,
        bits=summary.ids_per_value,
        misses=lines + descent(steps, 8 * nodes),
    )
    yield Estimate(name, {}, round(size), work)


def _canonical(summary: Summary) -> tuple[NDArray[np.float64], float]:
    """Canonical nodes of all intervals by level, as in ``cost.cei_mean``; pieces of an interval."""
    density = summary.pieces / max(summary.domain, 1)
    entries, total = np.zeros(OCTAVES + 1), 0.0
    for length, count in _lengths(summary):
        pieces = 1.0 if length <= 1 else 2 + (length - 2) * density
        b = int(math.log2(pieces + 1))
        entries[:b] += count
        entries[b] += count * ((pieces + 1) / 2**b - 1)
        total += count * pieces
    return entries, total / max(summary.n, 1)


def _interval_tree(name: str, summary: Summary) -> Iterator[Estimate]:
    nodes = tree_nodes(summary)
    size = 20 * summary.n + 24 * nodes
    steps = _depth(nodes)
    lists = min(steps, summary.ids_per_value)
    list_length = summary.n / max(nodes, 1.0)
    compared = steps * (1 + math.log2(list_length + 1))
    work = Work(
        steps=compared,
        lists=lists,
        ids=summary.ids_per_value,
        misses=copied(2 * lists, summary.ids_per_value, 20 * summary.n),
        waits=descent(steps, 24 * nodes),
    )
    yield Estimate(name, {}, round(size), work, _UNLIMITED)


def tree_nodes(summary: Summary) -> float:
    """Nodes of an interval tree: as many gaps as are left when an interval rarely fits into one.

    Keys g cells apart leave n/domain * (cells that 1 - S adds up to, from 0 to g) intervals
    between two of them; splitting ends where that is about a half.
    """
    if not summary.n:
        return 0.0
    gaps = 2.0 ** np.linspace(0, OCTAVES, OCTAVES * _STEPS + 1)
    steps = np.diff(np.append(0.0, gaps))
    left = summary.n / summary.domain * np.cumsum(steps * (1 - longer_than(summary, gaps)))
    gap = float(np.interp(_LEFT_BETWEEN, left, gaps))
    return min(summary.domain / gap, float(summary.points), float(summary.n))


def cluster_leaves(summary: Summary) -> float:
    """Leaves of a Cluster Index.

    A leaf holds no interval that ends before another begins. Cut greedily, that makes one of
    2/a - 1 cells, a being the chance that an interval begins in a cell (and another ends there);
    the paper's balanced cuts make up to 1.6 times as many leaves, more where intervals rarely meet.
    """
    if not summary.n:
        return 1.0
    a = -math.expm1(-summary.n / summary.domain)
    greedy = summary.domain * a / (2 - a)
    alone = math.exp(-summary.ids_per_value)
    return min(greedy * (1 + 0.61 * (1 - a)) * (1 + 0.57 * alone), float(summary.points))


def _cluster(name: str, summary: Summary) -> Iterator[Estimate]:
    leaves = cluster_leaves(summary)
    words = words_per_row(summary)
    in_rows = _WORD * leaves * words
    size = 12 * (leaves - 1) + 8 * (leaves + 1) + in_rows + _SLOT * summary.n
    steps = _depth(leaves)
    candidates = summary.ids_per_value + 1
    work = Work(
        steps=2 * steps,
        words=words,
        bits=2 * candidates,
        misses=misses(1, in_rows) + misses(words, _SLOT * summary.n) + descent(steps, 12 * leaves),
    )
    yield Estimate(name, {"minimum": 1}, round(size), work)


def _is_list(name: str, summary: Summary) -> Iterator[Estimate]:
    density = summary.points / max(summary.domain, 1)
    edges = sum(
        count * skip_edges(1 + (length - 2) * density)
        for length, count in _lengths(summary)
        if length > 1
    )
    markers = 2 * edges + summary.n
    fixed = 4 * skip_nodes.HEAD_SIZE + 8 * skip_nodes.STATE_SIZE
    size = fixed + 56 * summary.points + 16 * summary.n + 4 * markers
    steps = 2 * _depth(summary.points)
    lists = min(steps / 2, summary.ids_per_value)
    work = Work(
        steps=steps,
        lists=lists,
        bits=summary.ids_per_value,
        misses=copied(lists, summary.ids_per_value, 4 * markers)
        + misses(lists, 4 * summary.n)
        + descent(steps, 56 * summary.points),
    )
    most = round(size + 4 * (MAX_ENTRIES - markers))
    yield Estimate(name, {}, round(size), work, most)


TREES: dict[str, Callable[[str, Summary], Iterator[Estimate]]] = {
    "cluster": _cluster,
    "interval": _interval,
    "hybrid": _hybrid,
    "segment-tree": _segment_tree,
    "interval-tree": _interval_tree,
    "is-list": _is_list,
}
