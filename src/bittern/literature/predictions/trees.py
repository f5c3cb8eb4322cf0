"""Predicted bytes and search work of bit vectors, trees and skip lists: estimates only.

They assume what ``stabbing/predict.py`` assumes where nothing decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bittern.literature.bit_vectors.hybrid_index import DEFAULT_MINIMUM
from bittern.literature.is_list import nodes as skip_nodes
from bittern.literature.is_list.index import MAX_ENTRIES
from bittern.stabbing.estimate import Estimate, Work, copied, descent, misses
from bittern.stabbing.predict import SLOT, WORD, Family, depth, interval_rows, words_per_row
from bittern.stabbing.summary import OCTAVES, Summary

_CLUSTER = DEFAULT_MINIMUM


def _lengths(summary: Summary) -> Iterator[tuple[float, float]]:
    """Lengths that stand for the intervals of an octave each, and how many intervals: thirds."""
    for v in np.flatnonzero(summary.counts):
        count, least = float(summary.counts[v]), 2.0**v
        width = 2 * (float(summary.cells[v]) / count - least)
        for share in (1 / 6, 1 / 2, 5 / 6):
            yield least + share * width, count / 3


def skip_edges(ends: float) -> float:
    """Expected edges of a skip list's staircase over this many edges of level 0.

    A node between is on it unless higher ones stand on both sides. Of nodes with heights h, of
    chance x = 2**-h, the one after m others is as high as all of them with the chance q(m), the
    sum of x (1 - x)**m; one of m before and s - m behind it is on the staircase with the chance
    q(m) + q(s - m) - q(s).
    """
    x = 2.0 ** -np.arange(1.0, 41.0)
    one_side = float(((1 - x) * (1 - (1 - x) ** (ends - 1))).sum())
    both = float((x * (1 - x) ** ends).sum())
    return 1 + 2 * one_side - (ends - 1) * both


def _hybrid(name: str, summary: Summary) -> Iterator[Estimate]:
    leaves = cluster_leaves(summary)
    if summary.ids_per_value < _CLUSTER - 1:
        leaves = min(leaves, summary.n / (0.7 * (_CLUSTER - summary.ids_per_value)))
    leaves = max(leaves, 1.0)
    for one in interval_rows(name, summary):
        size = one.bytes + 12 * (leaves - 1) + 12 * leaves
        inside = depth(summary.occupied / leaves)
        keys = depth(leaves)
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
    size = 16 + 8 * nodes + 4 * (nodes + 1) + WORD * words + SLOT * summary.n
    steps = depth(leaves)
    found = float(in_row.sum())
    lines = misses(steps, 4 * nodes) + misses(found, WORD * words) + misses(found, 4 * summary.n)
    work = Work(
        headers=steps,
        steps=2 * steps,
        words=found,
        bits=summary.ids_per_value,
        misses=lines + descent(steps, 8 * nodes),
    )
    yield Estimate(name, {}, round(size), work)


def _canonical(summary: Summary) -> tuple[NDArray[np.float64], float]:
    """Canonical nodes of all intervals by level; pieces of an interval."""
    density = summary.pieces / max(summary.domain, 1)
    entries, total = np.zeros(OCTAVES + 1), 0.0
    for length, count in _lengths(summary):
        pieces = 1.0 if length <= 1 else 2 + (length - 2) * density
        b = int(math.log2(pieces + 1))
        entries[:b] += count
        entries[b] += count * ((pieces + 1) / 2**b - 1)
        total += count * pieces
    return entries, total / max(summary.n, 1)


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
    in_rows = WORD * leaves * words
    size = 12 * (leaves - 1) + 8 * (leaves + 1) + in_rows + SLOT * summary.n
    steps = depth(leaves)
    candidates = summary.ids_per_value + 1
    work = Work(
        steps=2 * steps,
        words=words,
        bits=2 * candidates,
        misses=misses(1, in_rows) + misses(words, SLOT * summary.n) + descent(steps, 12 * leaves),
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
    steps = 2 * depth(summary.points)
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


TREES: dict[str, Family] = {
    "cluster": _cluster,
    "hybrid": _hybrid,
    "segment-tree": _segment_tree,
    "is-list": _is_list,
}
