"""The values that a k-index rewrites ranges into, and the ranges that it cannot rewrite.

Every cell of a channel (``model/rank/space.py``) stands for one *value* or more: a constant for
itself, a gap between two constants for each whole number in it, so that a range covers as many
values as it has whole numbers. With ``price <= 8``, ``price = 2`` and the domain 1 to 12::

    cells   (..2)  2   (2..8)     8   (8..)
    values  1      2   3 4 5 6 7  8   9 10 11 12
    counts  1      1   5          1   4

A gap without any whole number counts as one value, where fractions fall; what lies outside the
domain counts for nothing, but every cell has its value. So matching is exact for any event: all
values of a cell hold the same postings, and an event reads those of the first.

A range has to begin and end with whole numbers. One that is open to a side ends with the domain, so
that there has to be one. A cell objects to a range that begins or ends with it (``objections``, 3
bits for each end); the seventh bit says that the cell by itself is an equality, which is always
fine. Booleans have two values, patterns and "is not NULL" one, so they object to nothing. All cells
of a channel together ("is a string", which ``NOT LIKE`` asks besides) are not a range.

Cost: O(cells); 5 bytes per cell, and 8 more in memory for the running sum of counts (``before``),
so that how many values an interval covers is known at once, however many they are.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bittern.arrays import starts_of
from bittern.errors import OptionError, brief
from bittern.literature.clauses.normal import Clauses
from bittern.matching.checks import check_channels
from bittern.model.rank.space import COUNT, FINE, FIRST, NUMBER, REVERSED, STRING, TIME, RankSpace

Domain: TypeAlias = tuple[int, int]

#: Without a domain; further out, a gap is one value.
_WIDEST = (-(2**61), 2**61)
_MOST_VALUES = 2**31 - 1

# What a cell objects to, the worst last.
_OPEN, _FRACTION, _TIME, _STRING = 1, 2, 3, 4
#: Whole numbers that one range may cover.
MOST_COVERED = 1 << 20
_UPPER, _EQUALITY = 3, 6  # bits
_WIDE = 5  # what no cell objects to alone
_PLEA = (
    "k-index rewrites ranges into equalities over whole numbers, and a range here "
    "(!= and NOT IN have some) "
)
#: What to do, in words that are right in Python and on the command line.
_OTHERWISE = "use the strategy opindex"
_REASONS = {
    _OPEN: _PLEA + "is open to one side: give the parameter domain, two whole numbers, low and "
    f"high, as in domain=[1, 50]; or {_OTHERWISE}",
    _FRACTION: _PLEA + f"begins or ends with another number: {_OTHERWISE}",
    _TIME: _PLEA + f"is a range of times: {_OTHERWISE}",
    _WIDE: _PLEA + f"covers more than {MOST_COVERED:,} of them: {_OTHERWISE}",
    _STRING: _PLEA + f"is a range of strings, as each prefix and suffix is: {_OTHERWISE}",
}


class CellValues(NamedTuple):
    """What cells stand for, and which ranges they object to."""

    bases: npt.NDArray[np.int32]  # first cell of each channel, and the end
    counts: npt.NDArray[np.int32]  # values of each cell
    objections: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int64]  # values of all cells before each, and in all

    @classmethod
    def from_arrays(
        cls,
        bases: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        objections: npt.NDArray[np.uint8],
    ) -> CellValues:
        """What is saved, and the running sum. O(cells)."""
        return cls(bases, counts, objections, starts_of(counts))

    @classmethod
    def of(cls, rank: RankSpace, domain: Domain | None) -> CellValues:
        """The values of all cells. O(cells)."""
        bases = rank.arrays.bases
        kinds = np.repeat(rank.channel_kinds, np.diff(bases))
        places = np.arange(rank.n_cells) - np.repeat(bases[:-1], np.diff(bases))
        equality = (places & 1).astype(np.uint8)
        counts = np.ones(rank.n_cells, dtype=np.int32)
        lower = np.zeros(rank.n_cells, dtype=np.uint8)
        lower[kinds == TIME] = _TIME
        lower[(kinds == STRING) | (kinds == REVERSED)] = _STRING
        upper = lower.copy()

        # Numbers come first, among channels, cells and constants.
        heads = rank.arrays.heads[rank.channel_kinds == NUMBER]
        floors, whole = _constants(rank, heads)
        firsts, ends = heads[:, FIRST], heads[:, FIRST] + heads[:, COUNT]
        n_cells = 2 * len(floors) + len(heads)
        points = equality[:n_cells] == 1
        low, high = domain or _WIDEST
        # A gap has the whole numbers above the constant to its left, which is rounded down, and
        # below the one to its right, which is rounded up.
        lefts = np.insert(np.clip(floors, low - 1, high), firsts, low - 1)
        below = np.clip(np.clip(floors, low - 1, high + 1) - whole, low - 1, high)
        rights = np.insert(below, ends, high)
        gaps = np.clip(rights - lefts, 1, _MOST_VALUES)
        is_open = 0 if domain else _OPEN
        objects = np.where(whole, 0, _FRACTION)
        counts[:n_cells][~points] = gaps
        for side, places_of_open in ((lower, firsts), (upper, ends)):
            side[:n_cells][points] = objects
            side[:n_cells][~points] = np.insert(objects, places_of_open, is_open)
        if domain is None:  # nothing ends there, so nothing is to be counted
            counts[bases[: len(heads)]] = counts[bases[1 : len(heads) + 1] - 1] = 1
        objections = lower | upper << _UPPER | equality << _EQUALITY
        return cls.from_arrays(bases, counts, objections.astype(np.uint8))

    def refused(self, clauses: Clauses) -> dict[int, str]:
        """The classes of clauses with a range that cannot be rewritten, and why. O(intervals)."""
        if not len(clauses.lows):
            return {}
        lows, highs = self.objections[clauses.lows], self.objections[clauses.highs]
        fine = (clauses.lows == clauses.highs) & ((clauses.lows < 0) | (lows >> _EQUALITY == 1))
        worst = np.maximum(lows & 7, highs >> _UPPER & 7).astype(np.int64)
        covered = self.before[clauses.highs + 1] - self.before[np.maximum(clauses.lows, 0)]
        worst[(worst == 0) & (covered > MOST_COVERED)] = _WIDE
        bad = np.flatnonzero(~fine & (worst > 0))
        predicates = np.searchsorted(clauses.interval_starts, bad, "right") - 1
        channels = clauses.channels[predicates]
        first, last = self.bases[channels], self.bases[channels + 1] - 1
        is_range = (clauses.lows[bad] > first) | (clauses.highs[bad] < last)
        bad, predicates = bad[is_range], predicates[is_range]
        owners = clauses.owners[np.searchsorted(clauses.starts, predicates, "right") - 1]
        reasons = zip(owners.tolist(), worst[bad].tolist(), strict=True)
        return {owner: _REASONS[reason] for owner, reason in reasons}

    def check(self, n_channels: int, n_cells: int) -> None:
        """Channels tile the cells, and each of these has values."""
        check_channels(self.bases, n_channels, n_cells)
        assert len(self.counts) == len(self.objections) == n_cells, "cells are missing"
        assert (self.counts > 0).all(), "a cell has no value"
        for side in (self.objections & 7, self.objections >> _UPPER & 7):
            assert (side <= _STRING).all(), "a cell has an objection that is none"
        assert (self.objections >> _EQUALITY <= 1).all(), "a cell has an objection that is none"


def _constants(
    rank: RankSpace, heads: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The numbers that channels with these heads are compared with: rounded down; if whole."""
    floors = rank.arrays.floors[: int(heads[:, COUNT].sum())]
    whole = np.ones(len(floors), dtype=np.bool_)
    fine = np.repeat(heads[:, FINE] >= 0, heads[:, COUNT])
    whole[fine] = rank.arrays.fine_whole[: np.count_nonzero(fine)] == 1
    return floors, whole


def checked_domain(domain: object) -> Domain | None:
    """The domain as a pair of numbers; OptionError if it is none."""
    if domain is None:
        return None
    pair = tuple(domain) if isinstance(domain, list | tuple) else ()
    ok = len(pair) == 2 and all(type(end) is int and abs(end) < _WIDEST[1] for end in pair)
    if not ok or pair[0] > pair[1]:
        raise OptionError(
            f"domain is {brief(domain)}, but must be the lowest and the highest whole number of "
            "every numeric attribute, as in domain=[1, 50]"
        )
    return pair
