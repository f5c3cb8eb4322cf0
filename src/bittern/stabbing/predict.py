"""Predicted bytes and search work of every structure, from a summary of the intervals.

Bytes are exact wherever the layout is decided by the domain and the lengths: directories and
bitmaps always, the entries of Dlist, UI, SCI and LCI too; those of CEI on average over all
positions. Trees and bit vectors are estimated (``stabbing/predict_trees.py``), and so are predicate
indexes, whose search depends on which intervals are bounded on one side and how many candidates
the others make (``stabbing/predict_predicates.py``).

A list is taken to be nonempty with the chance 1 - exp(-mean length): entries fall anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bittern.stabbing import cost
from bittern.stabbing.cei import n_lists as cei_lists
from bittern.stabbing.cei import n_masks as cei_masks
from bittern.stabbing.constructs import LOGARITHMIC, MAX_LONGEST, SIMPLE, Scheme
from bittern.stabbing.estimate import Estimate, Work, copied, misses
from bittern.stabbing.id_lists import MAX_ENTRIES
from bittern.stabbing.predict_predicates import PREDICATES
from bittern.stabbing.predict_trees import TREES
from bittern.stabbing.summary import OCTAVES, Summary

_LARGEST_SCI = 64  # a value has L * L / 2 constructs: more are never worth it


def estimates(name: str, summary: Summary) -> list[Estimate]:
    """Estimate one structure, with each value of its parameter that may be worth trying."""
    return list(_FAMILIES[name](name, summary))


def _nonempty(entries: NDArray[np.float64], lists: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chance that a list holds anything, where so many entries are spread over so many lists."""
    return -np.expm1(-entries / np.maximum(lists, 1.0))


def _powers(most: int) -> range:
    """Which 2**k to try as longest construct: those up to ``most``, but not 1, which is Dlist."""
    k = most.bit_length() - 1
    return range(min(1, k), k + 1)


# Lists per cell: Dlist and UI


def _per_cell(name: str, summary: Summary) -> Iterator[Estimate]:
    entries = int(summary.cells.sum())
    directory = 4 * (cost.ui_constructs(summary.domain) + 1)
    found = 1 - math.exp(-summary.ids_per_value)
    waits = misses(1, directory) + copied(found, summary.ids_per_value, 4 * entries)
    work = Work(headers=1, lists=found, ids=summary.ids_per_value, misses=waits)
    yield Estimate(name, {}, directory + 4 * entries, work)


# Containment-encoded intervals


def _cei(name: str, summary: Summary) -> Iterator[Estimate]:
    for bits in _powers(1 << max(summary.domain - 1, 0).bit_length()):
        by_level = cei_entries(summary, bits)
        entries = float(by_level.sum())
        directory = 4 * (cei_lists(summary.domain, bits) + 1)
        shape = 24
        size = directory + 4 * cei_masks(summary.domain, bits) + shape + 4 * round(entries)
        lists = np.maximum(summary.domain / 2.0 ** np.arange(bits + 1), 1.0)
        found = _nonempty(by_level, lists)
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

    As in ``cost.cei_mean``: an interval of w cells has one block of each level below b on
    average, and the rest, (w + 1) / 2**b - 1, of level b = min(bits, log2 w).
    """
    entries = np.zeros(bits + 1)
    for v in range(OCTAVES):
        b = min(bits, v)
        entries[:b] += summary.counts[v]
        entries[b] += (summary.cells[v] + summary.counts[v]) / 2.0**b - summary.counts[v]
    return entries


# Virtual construct intervals: SCI and LCI, found in four ways


def construct_entries(scheme: Scheme, summary: Summary, longest: int) -> NDArray[np.float64]:
    """Entries by length of constructs; exact for LCI, exact in total for SCI."""
    k = longest.bit_length() - 1
    below = float((summary.bits[:k] * 2.0 ** np.arange(k)).sum())
    whole = (float(summary.cells.sum()) - below) / longest
    if scheme.logarithmic:
        return np.append(summary.bits[:k], whole)
    entries = np.zeros(longest)
    for v in range(k):  # lengths 2**v .. 2**(v+1) - 1 are constructs themselves
        entries[(1 << v) - 1 : (2 << v) - 1] += summary.counts[v] / (1 << v)
    rests = summary.n - float(summary.multiples[k] + summary.counts[:k].sum())
    entries[:-1] += rests / max(longest - 1, 1)
    entries[-1] += whole
    return entries


def _constructs(scheme: Scheme, way: str) -> Callable[[str, Summary], Iterator[Estimate]]:
    def family(name: str, summary: Summary) -> Iterator[Estimate]:
        most = min(MAX_LONGEST if scheme.logarithmic else _LARGEST_SCI, max(summary.domain, 1))
        for k in _powers(most):
            yield _construct(name, scheme, way, summary, 1 << k)

    return family


def _construct(name: str, scheme: Scheme, way: str, summary: Summary, longest: int) -> Estimate:
    domain = summary.domain
    lengths = scheme.lengths(longest).astype(np.float64)
    per = len(lengths)
    by_length = construct_entries(scheme, summary, longest)
    constructs = cost.lci_constructs if scheme.logarithmic else cost.sci_constructs
    covering_segment = cost.lci_segment if scheme.logarithmic else cost.sci_segment
    n_lists, segment = constructs(domain, longest), covering_segment(longest)
    directory = 4 * (n_lists + 1)
    tables = 4 * (per + longest + 1 + longest)
    size = directory + 4 * round(float(by_length.sum())) + tables
    active = _nonempty(by_length, np.full(per, float(domain)))
    found = float((lengths * active).sum())
    work = {"ids": summary.ids_per_value, "lists": found}
    lines = found
    if way in ("bitmap", "clipped"):
        width = -(-(segment if way == "clipped" else n_lists) // 64)
        bitmap = 8 * domain * width
        size += bitmap + 24
        work["words"] = 1 + segment / 64
        work["misses"] = misses(1 + segment / 512, bitmap) + misses(found, directory)
    elif way == "virtual":
        work["headers"] = segment
        work["steps"] = (longest - 1) * float(active.sum())
        work["misses"] = misses(1 + segment / 16, directory)
    else:
        # The lists of one beginning are neighbours and copied as one.
        later = np.cumsum(by_length[::-1])[::-1] / max(domain, 1)
        shorter = np.append(0.0, lengths[:-1])
        lines = float(((lengths - shorter) * -np.expm1(-later)).sum())
        work["headers"] = 2 * longest
        work["lists"] = lines
        work["misses"] = misses(1 + longest * per / 16, directory)
    items = 4 * float(by_length.sum())
    work["misses"] += copied(lines, summary.ids_per_value, items)
    return Estimate(name, {"longest": longest}, size, Work(**work))


_Family = Callable[[str, Summary], Iterator[Estimate]]

_FAMILIES: dict[str, _Family] = {
    "dlist": _per_cell,
    "ui": _per_cell,
    "cei": _cei,
    "sci": _constructs(SIMPLE, "bitmap"),
    "sci-bc": _constructs(SIMPLE, "clipped"),
    "sci-bv": _constructs(SIMPLE, "virtual"),
    "sci-dt": _constructs(SIMPLE, "table"),
    "lci": _constructs(LOGARITHMIC, "bitmap"),
    "lci-bc": _constructs(LOGARITHMIC, "clipped"),
    "lci-bv": _constructs(LOGARITHMIC, "virtual"),
    "lci-dt": _constructs(LOGARITHMIC, "table"),
    **TREES,
    **PREDICATES,
}
