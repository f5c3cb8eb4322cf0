"""Predicted bytes and search work of a structure, from a summary of the intervals.

Bytes are exact wherever the layout is decided by the domain and the lengths: directories always,
the entries of Dlist too; those of CEI on average over all positions. Trees and bit vectors are
estimated. The structures of ``literature/`` are predicted there (``literature/predictions``), and
only when they are compared.

A list is taken to be nonempty with the chance 1 - exp(-mean length): entries fall anywhere. Where
neither decides, intervals are assumed to begin anywhere with the same chance, and lengths within an
octave to be spread evenly up to what their mean allows.

Slots of bit vectors are ordered by left end, so 64 neighbours, one *word*, begin within ``span``
cells. A value d cells behind such a word is in an interval of it with the chance that one of 64 is
longer than d; added up over all words before the value, that is how many words a row has::

    words              |....|....|....|....|   value       span = 64 * domain / n
    S(d) = share of lengths > d       <-- d -->|           words per row = sum of 1 - exp(-64 S(d))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bittern.stabbing.cei import n_lists as cei_lists
from bittern.stabbing.cei import n_masks as cei_masks
from bittern.stabbing.estimate import UNLIMITED, Estimate, Work, copied, descent, misses
from bittern.stabbing.id_lists import MAX_ENTRIES
from bittern.stabbing.summary import OCTAVES, Summary

Family: TypeAlias = Callable[[str, Summary], Iterator[Estimate]]
"""Predicts a structure with each value of its parameter that may be worth trying."""

WORD = 12
"""Bytes of a word of a bit vector and its number."""
SLOT = 12
"""Bytes of an interval in its slot."""
_FIRST_WORD = 0.9
_LEFT_BETWEEN = 0.45
_STEPS = 8  # points per octave at which the share of longer intervals is taken


def estimates(name: str, summary: Summary) -> list[Estimate]:
    """Estimate one structure, with each value of its parameter that may be worth trying."""
    family = _FAMILIES.get(name)
    if family is None:
        family = import_module("bittern.literature.predictions").FAMILIES[name]
    return list(family(name, summary))


def nonempty(entries: NDArray[np.float64], lists: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chance that a list holds anything, where so many entries are spread over so many lists."""
    return -np.expm1(-entries / np.maximum(lists, 1.0))


def powers(most: int) -> range:
    """Which 2**k to try as longest construct: those up to ``most``, but not 1, which is Dlist."""
    k = most.bit_length() - 1
    return range(min(1, k), k + 1)


# Lists per cell: Dlist and UI


def per_cell(name: str, summary: Summary) -> Iterator[Estimate]:
    """Lists per cell: exact."""
    entries = int(summary.cells.sum())
    directory = 4 * (summary.domain + 1)
    found = covered(summary)
    waits = misses(1, directory) + copied(found, summary.ids_per_value, 4 * entries)
    work = Work(headers=1, lists=found, ids=summary.ids_per_value, misses=waits)
    yield Estimate(name, {}, directory + 4 * entries, work)


# Containment-encoded intervals


def _cei(name: str, summary: Summary) -> Iterator[Estimate]:
    for bits in powers(1 << max(summary.domain - 1, 0).bit_length()):
        by_level = cei_entries(summary, bits)
        entries = float(by_level.sum())
        directory = 4 * (cei_lists(summary.domain, bits) + 1)
        shape = 24
        size = directory + 4 * cei_masks(summary.domain, bits) + shape + 4 * round(entries)
        lists = np.maximum(summary.domain / 2.0 ** np.arange(bits + 1), 1.0)
        found = nonempty(by_level, lists)
        # A level is visited when anything is in it among the 64 cells of its mask.
        span = np.maximum(2.0 ** np.arange(bits + 1), 64.0)
        visited = float(-np.expm1(-by_level * span / max(summary.domain, 1)).sum())
        lines = float(found.sum())
        work = Work(
            headers=visited,
            lists=lines,
            ids=summary.ids_per_value,
            misses=misses(visited, directory) + copied(lines, summary.ids_per_value, 4 * entries),
        )
        yield Estimate(name, {"segment": 1 << bits}, size, work, directory + 4 * MAX_ENTRIES)


def cei_entries(summary: Summary, bits: int) -> NDArray[np.float64]:
    """Entries by level of blocks, exactly, on average over all positions of the intervals.

    An interval of w cells has one block of each level below b on
    average, and the rest, (w + 1) / 2**b - 1, of level b = min(bits, log2 w).
    """
    entries = np.zeros(bits + 1)
    for v in range(OCTAVES):
        b = min(bits, v)
        entries[:b] += summary.counts[v]
        entries[b] += (summary.cells[v] + summary.counts[v]) / 2.0**b - summary.counts[v]
    return entries


# Bit vectors and trees


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


def depth(nodes: float) -> float:
    """Steps on the way down a balanced tree."""
    return math.log2(nodes + 1)


def covered(summary: Summary) -> float:
    """Chance that a value is in any interval."""
    return 1 - math.exp(-summary.ids_per_value)


def interval_rows(name: str, summary: Summary) -> Iterator[Estimate]:
    """A bit vector per elementary interval."""
    nodes = summary.occupied
    per_row = words_per_row(summary)
    in_rows = WORD * nodes * per_row
    size = 8 * nodes + 4 * (nodes + 1) + in_rows + SLOT * summary.n
    steps = depth(nodes)
    words = per_row * covered(summary)
    lines = misses(2, 4 * nodes) + misses(1, in_rows) + misses(words, 4 * summary.n)
    work = Work(steps=steps, words=words, bits=summary.ids_per_value, misses=lines)
    yield Estimate(name, {}, round(size), work)


def _interval_tree(name: str, summary: Summary) -> Iterator[Estimate]:
    nodes = tree_nodes(summary)
    size = 20 * summary.n + 24 * nodes
    steps = depth(nodes)
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
    yield Estimate(name, {}, round(size), work, UNLIMITED)


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


_FAMILIES: dict[str, Family] = {
    "dlist": per_cell,
    "cei": _cei,
    "interval": interval_rows,
    "interval-tree": _interval_tree,
}
