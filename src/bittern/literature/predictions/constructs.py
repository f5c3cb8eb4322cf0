"""Predicted bytes and search work of virtual construct intervals: SCI and LCI, found in four ways.

Directories and bitmaps are exact, and the entries of SCI and LCI too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bittern.literature.constructs.family import LOGARITHMIC, MAX_LONGEST, SIMPLE, Scheme
from bittern.stabbing.estimate import Estimate, Work, copied, misses
from bittern.stabbing.predict import Family, nonempty, per_cell, powers
from bittern.stabbing.summary import Summary

_LARGEST_SCI = 64  # a value has L * L / 2 constructs: more are never worth it


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


def _constructs(scheme: Scheme, way: str) -> Family:
    def family(name: str, summary: Summary) -> Iterator[Estimate]:
        most = min(MAX_LONGEST if scheme.logarithmic else _LARGEST_SCI, max(summary.domain, 1))
        for k in powers(most):
            yield _construct(name, scheme, way, summary, 1 << k)

    return family


def _construct(name: str, scheme: Scheme, way: str, summary: Summary, longest: int) -> Estimate:
    domain = summary.domain
    lengths = scheme.lengths(longest).astype(np.float64)
    per = len(lengths)
    by_length = construct_entries(scheme, summary, longest)
    n_lists, segment = domain * per, (longest - 1) * per + 1
    directory = 4 * (n_lists + 1)
    tables = 4 * (per + longest + 1 + longest)
    size = directory + 4 * round(float(by_length.sum())) + tables
    active = nonempty(by_length, np.full(per, float(domain)))
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


CONSTRUCTS: dict[str, Family] = {
    "ui": per_cell,
    "sci": _constructs(SIMPLE, "bitmap"),
    "sci-bc": _constructs(SIMPLE, "clipped"),
    "sci-bv": _constructs(SIMPLE, "virtual"),
    "sci-dt": _constructs(SIMPLE, "table"),
    "lci": _constructs(LOGARITHMIC, "bitmap"),
    "lci-bc": _constructs(LOGARITHMIC, "clipped"),
    "lci-bv": _constructs(LOGARITHMIC, "virtual"),
    "lci-dt": _constructs(LOGARITHMIC, "table"),
}
