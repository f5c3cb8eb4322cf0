"""Random numbers that a workload can be frozen with.

The distribution methods of a NumPy generator may change their streams between versions; the raw
bits of PCG64 are promised to stay. So :class:`Draw` takes raw bits and does the rest itself::

    64 raw bits -> the upper 53 as a fraction -> the inverse of a distribution function -> a draw

Cost: a few nanoseconds per number; :meth:`Draw.race` a sort of every row.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]


class Draw:
    """Random numbers that stay the same for the same key, whatever NumPy's version."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))

    def raw(self, n: int) -> npt.NDArray[np.uint64]:
        """``n`` times 64 random bits."""
        return np.asarray(self._bits.random_raw(n), dtype=np.uint64)

    def unit(self, n: int) -> Floats:
        """Uniform in [0, 1)."""
        return (self.raw(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, bound: int | Ints, n: int) -> Ints:
        """Uniform integers in [0, bound); ``bound`` may differ per number."""
        wide = (self.raw(n) >> np.uint64(32)) * np.asarray(bound, dtype=np.uint64)
        return (wide >> np.uint64(32)).astype(np.int64)

    def weighted(self, weights: Floats, n: int) -> Ints:
        """Choose indices of ``weights``, each as often as its weight says."""
        cumulative = np.cumsum(weights)
        chosen = np.searchsorted(cumulative, self.unit(n) * cumulative[-1], side="right")
        return np.asarray(np.minimum(chosen, len(weights) - 1), dtype=np.int64)

    def skewed(self, bound: Ints) -> Ints:
        """Zipf-like in [0, bound): the r-th most frequent has share log(1 + 1/r) / log(bound + 1).

        Frequent values lie scattered over the domain, so that a range holds few of them.
        """
        rank = np.power(bound + 1.0, self.unit(len(bound))).astype(np.int64) - 1
        # A prime above every bound: no two ranks share a value.
        return np.asarray(rank * 7_919 % bound, dtype=np.int64)

    def distinct(self, rows: int, count: int, of: int) -> Ints:
        """``rows`` times ``count`` different integers below ``of``, each set equally likely."""
        if of <= 256:
            return self.race(rows, count, np.ones(of))
        chosen = self.below(of, rows * count).reshape(rows, count)
        again = np.arange(rows)
        while len(again):  # few rows hold a repeated value, and they are drawn anew as a whole
            ordered = np.sort(chosen[again], axis=1)
            again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
            chosen[again] = self.below(of, len(again) * count).reshape(len(again), count)
        return chosen

    def race(self, rows: int, count: int, weights: Floats) -> Ints:
        """``rows`` times ``count`` different indices of ``weights``, drawn one after the other.

        Every index gets an arrival time, exponential with its weight as rate; the first arrivals
        are a weighted sample without replacement.
        """
        times = -np.log1p(-self.unit(rows * len(weights))).reshape(rows, len(weights)) / weights
        return np.argsort(times, axis=1)[:, :count].astype(np.int64)
