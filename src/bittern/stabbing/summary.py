"""What a set of intervals looks like: a few hundred numbers, from which costs are predicted.

::

    lengths 1 1 2 3 7, domain 20       octave v    0      1      2        lengths 2**v .. 2**(v+1)-1
                                       counts      2      2      1        intervals
                                       cells       2      5      7        cells of these together
                                       bits        4      3      1        lengths with bit v set
                                       multiples   5      1      0        lengths divisible by 2**v

``cells`` over the domain is how many ids a value finds on average. ``counts`` and ``cells`` give
the entries of CEI exactly on average over all positions (their mean is linear within an
octave), ``bits`` those of LCI and ``multiples`` those of SCI exactly. ``points`` are the distinct
ends and ``pieces`` the elementary intervals that they cut the domain into, each end being one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.arrays import Int32s, Int64s

OCTAVES = 31
_SPARSE = 32


@dataclass(frozen=True)
class Summary:
    """Intervals in figures; see the module."""

    n: int
    domain: int
    counts: NDArray[np.float64]
    cells: NDArray[np.float64]
    bits: NDArray[np.float64]
    multiples: NDArray[np.float64]
    points: int
    pieces: int
    occupied: int
    """Elementary intervals that lie in at least one interval."""

    @classmethod
    def of(cls, lows: Int32s, highs: Int32s, domain: int) -> Summary:
        """Summarise valid intervals: O(n + min(domain, n log n))."""
        lengths = highs.astype(np.int64) - lows + 1
        octaves = np.frexp(lengths)[1] - 1
        longest = int(lengths.max(initial=0)).bit_length()
        bits, multiples = np.zeros(OCTAVES), np.zeros(OCTAVES)
        for v in range(longest):
            bits[v] = np.count_nonzero(lengths >> v & 1)
            multiples[v] = np.count_nonzero(lengths & ((1 << v) - 1) == 0)
        points, pieces, occupied = _ends(lows, highs, domain)
        return cls(
            n=len(lows),
            domain=domain,
            counts=np.bincount(octaves, minlength=OCTAVES).astype(np.float64),
            cells=np.bincount(octaves, weights=lengths, minlength=OCTAVES).astype(np.float64),
            bits=bits,
            multiples=multiples,
            points=points,
            pieces=pieces,
            occupied=occupied,
        )

    @property
    def ids_per_value(self) -> float:
        """Intervals that contain a cell, on average over the domain."""
        return float(self.cells.sum()) / max(self.domain, 1)

    @property
    def mean_length(self) -> float:
        """Cells of an interval, on average."""
        return float(self.cells.sum()) / max(self.n, 1)


def _ends(lows: Int32s, highs: Int32s, domain: int) -> tuple[int, int, int]:
    """Distinct ends, elementary intervals, and those of them that lie in an interval."""
    if domain <= _SPARSE * len(lows):
        changes = np.bincount(lows, minlength=domain + 1)
        is_end = changes > 0
        leaving = np.bincount(highs, minlength=domain + 1)
        is_end |= leaving > 0
        changes[1:] -= leaving[:-1]
        begins = is_end.copy()
        begins[1:] |= is_end[:-1]
        begins[0] = True
        pieces = np.flatnonzero(begins[:domain])
        covered = np.cumsum(changes)[pieces] > 0
        return int(is_end.sum()), len(pieces), int(covered.sum())
    points = np.unique(np.concatenate([lows, highs])).astype(np.int64)
    pieces = np.unique(np.concatenate([np.zeros(min(domain, 1), np.int64), points, points + 1]))
    pieces = pieces[pieces < domain]
    before = np.searchsorted(np.sort(lows), pieces, "right")
    after: Int64s = before - np.searchsorted(np.sort(highs), pieces, "left")
    return len(points), len(pieces), int(np.count_nonzero(after))
