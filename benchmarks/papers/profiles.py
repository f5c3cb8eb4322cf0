"""Profiles over k attributes: conjunctions of one interval per attribute (seed 004, 4.1).

A profile is an AND of predicates low <= attribute <= high, at most one per attribute, and its
number is its position. Attributes are handled one at a time, as in the paper: one index per
attribute, of whatever structure, tells which profiles a value satisfies; these are bit vectors over
the profiles, and their AND is the answer::

    attribute   x          y                  x = 5    y = 4    AND     x = 5, y missing
    profile 0   [2, 8]     [3, 4]             1        1        1       0
    profile 1   [5, 5]     -                  1        1        1       1
    profile 2   [6, 9]     [0, 9]             0        1        0       0

A profile without a predicate on an attribute (low = high = -1) has its bit set there always; one
with a predicate on an attribute that the event lacks (value -1) does not match.

The Cluster Index gives profiles that *may* match. Its vectors are combined in the same way, and
only what is left in the end is evaluated: every predicate of every surviving profile.

``evaluations`` counts what figures 7 and 8 of the paper show: comparisons of an event's values with
keys, elementary intervals or predicates, over all attributes; combining vectors is none. Without an
index there are two ways: the naive algorithm evaluates every predicate of every profile
(``naive_evaluations``), the lazy one leaves a profile at its first predicate that is false
(``lazy_evaluations``).

Matching m events costs what the indexes cost, and k m n / 64 words to combine for n profiles; it
runs in pieces of so many events that vectors and found profiles take a bounded amount of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError
from bittern.jit import i4r, i4r2, i4w, i8, i8r, i8w, kernel, u8r, u8w, void
from bittern.literature.bit_vectors.bitmaps import (
    NO_BITS,
    ONE_BIT,
    count_bits,
    lowest_bit,
    words_for,
)
from bittern.literature.bit_vectors.cluster_index import ClusterIndex
from bittern.stabbing.contract import StabbingIndex, as_int32, as_values
from bittern.stabbing.registry import structure as structure_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bittern.arrays import UInt64s

Table: TypeAlias = NDArray[np.int32]
"""One row per attribute, one column per profile or event."""

NONE = -1
"""In place of a predicate's low and high: the profile has none here; of a value: it is missing."""

_PIECE_BITS = 2**26
"""Events at a time are so many that their vectors have this many bits: 8 MiB."""


@kernel(void, u8r, i8r, i4r, u8w, u8w)
def _combine(free: Any, offsets: Any, found: Any, scratch: Any, alive: Any) -> None:
    """AND each event's vector with that of the profiles found for it and those that are free."""
    width = len(free)
    for event in range(len(offsets) - 1):
        for w in range(width):
            scratch[w] = free[w]
        for i in range(offsets[event], offsets[event + 1]):
            profile = np.uint64(found[i])
            scratch[profile >> np.uint64(6)] |= ONE_BIT << (profile & np.uint64(63))
        row = event * width
        for w in range(width):
            alive[row + w] &= scratch[w]


@kernel(void, i4r2, i4r2, i4r2, i8, u8w, i8w)
def _verify(lows: Any, highs: Any, values: Any, width: Any, alive: Any, counts: Any) -> None:
    """Evaluate the predicates of surviving profiles, counting them; those that fail are dropped."""
    for event in range(values.shape[1]):
        for w in range(width):
            word = alive[event * width + w]
            while word != NO_BITS:
                profile = w * 64 + np.int64(lowest_bit(word))
                for a in range(len(values)):
                    if lows[a, profile] != NONE:
                        counts[event] += 1
                        if not lows[a, profile] <= values[a, event] <= highs[a, profile]:
                            alive[event * width + w] &= ~(word & (~word + ONE_BIT))
                word &= word - ONE_BIT


@kernel(void, u8r, i8, i8w)
def _count(alive: Any, width: Any, offsets: Any) -> None:
    total = NO_BITS
    offsets[0] = 0
    for event in range(len(offsets) - 1):
        for w in range(event * width, (event + 1) * width):
            total += count_bits(alive[w])
        offsets[event + 1] = np.int64(total)


@kernel(void, u8r, i8, i8r, i4w)
def _write(alive: Any, width: Any, offsets: Any, profiles: Any) -> None:
    for event in range(len(offsets) - 1):
        at = offsets[event]
        for w in range(width):
            word = alive[event * width + w]
            while word != NO_BITS:
                profiles[at] = w * 64 + np.int64(lowest_bit(word))
                word &= word - ONE_BIT
                at += 1


@kernel(void, i4r2, i4r2, i4r2, i8w)
def _count_lazily(lows: Any, highs: Any, values: Any, counts: Any) -> None:
    for event in range(values.shape[1]):
        counts[event] = 0
        for profile in range(lows.shape[1]):
            for a in range(len(values)):
                if lows[a, profile] != NONE:
                    counts[event] += 1
                    if not lows[a, profile] <= values[a, event] <= highs[a, profile]:
                        break


class Profiles:
    """Conjunctions over k attributes with one index each; see the module."""

    def __init__(self, lows: Table, highs: Table, indexes: Sequence[StabbingIndex]) -> None:
        """Take valid profiles and the index of each attribute."""
        self.lows, self.highs = lows, highs
        self.indexes = list(indexes)
        self._free = _bits_of(lows == NONE)

    @classmethod
    def build(
        cls,
        lows: ArrayLike,
        highs: ArrayLike,
        *,
        domains: Sequence[int],
        structure: str = "interval",
        **parameters: Any,
    ) -> Self:
        """Index n profiles: ends of shape (k, n) in cells of k domains, -1 for no predicate."""
        low, high = _table(lows, "lows"), _table(highs, "highs")
        if low.shape != high.shape or len(low) != len(domains):
            raise OptionError(
                f"lows, highs and domains are for {low.shape}, {high.shape} and {len(domains)} "
                "attributes (and profiles): give the same for all"
            )
        cls_of_index = structure_of(structure)
        indexes = []
        for a, domain in enumerate(domains):
            there = np.flatnonzero((low[a] != NONE) | (high[a] != NONE)).astype(np.int32)
            try:
                index = cls_of_index.build(
                    low[a, there], high[a, there], there, domain=domain, **parameters
                )
            except OptionError as error:
                raise OptionError(f"attribute {a}: {error}") from None
            indexes.append(index)
        return cls(low, high, indexes)

    @property
    def n_profiles(self) -> int:
        """How many profiles there are."""
        return int(self.lows.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes and of the profiles themselves."""
        own = self.lows.nbytes + self.highs.nbytes + self._free.nbytes
        return own + sum(index.nbytes for index in self.indexes)

    def match(self, values: ArrayLike) -> tuple[Int64s, Int32s]:
        """Profiles that m events satisfy, values being of shape (k, m) and -1 where one is missing.

        Event i matches profiles ``numbers[offsets[i]:offsets[i + 1]]``, ascending.
        """
        cells = self._cells(values)
        offsets, numbers = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
        width = words_for(self.n_profiles)
        for piece in self._pieces(cells):
            alive = self._survivors(piece)
            if self._evaluates_last:
                counts = np.zeros(piece.shape[1], np.int64)
                _verify(self.lows, self.highs, piece, width, alive, counts)
            ends = np.empty(piece.shape[1] + 1, np.int64)
            _count(alive, width, ends)
            found = np.empty(int(ends[-1]), np.int32)
            _write(alive, width, ends, found)
            offsets.append(ends[1:] + offsets[-1][-1])
            numbers.append(found)
        return np.concatenate(offsets), np.concatenate(numbers)

    def evaluations(self, values: ArrayLike) -> Int64s:
        """Predicate evaluations for each of m events, as the paper's figures count them.

        The sum of what the indexes of seed 004 count for the values that the event has. For the
        Cluster Index these are the keys, and every predicate of the profiles that are candidates
        for all attributes. OptionError for a structure that counts none.
        """
        cells = self._cells(values)
        counts = np.zeros(cells.shape[1], np.int64)
        for index, row in zip(self.indexes, cells, strict=True):
            count = getattr(index, "evaluations", None)
            if count is None:
                raise OptionError(
                    f"structure {index.name!r} does not count evaluations: choose from 'cluster', "
                    "'interval', 'hybrid', 'segment-tree' and 'interval-tree'"
                )
            counts += count(row)
            if isinstance(index, ClusterIndex):  # candidates wait until the vectors are combined
                counts -= np.diff(index.candidates_batch(row).offsets)
        if self._evaluates_last:
            at = 0
            for piece in self._pieces(cells):
                alive, last = self._survivors(piece), at + piece.shape[1]
                width = words_for(self.n_profiles)
                _verify(self.lows, self.highs, piece, width, alive, counts[at:last])
                at = last
        return counts

    @property
    def _evaluates_last(self) -> bool:
        return any(isinstance(index, ClusterIndex) for index in self.indexes)

    def _cells(self, values: ArrayLike) -> Table:
        given = np.asarray(values)
        if given.ndim != 2 or len(given) != len(self.indexes):
            raise OptionError(
                f"values are of shape {given.shape}: give one row for each of the "
                f"{len(self.indexes)} attributes and one column per event"
            )
        return np.stack([as_values(row) for row in given])

    def _pieces(self, cells: Table) -> list[Table]:
        """Cut a batch into as many events at a time as memory is meant for."""
        size = max(1, _PIECE_BITS // max(1, self.n_profiles))
        starts = range(0, cells.shape[1], size)
        return [np.ascontiguousarray(cells[:, at : at + size]) for at in starts]

    def _survivors(self, piece: Table) -> UInt64s:
        """Vectors of the profiles that all indexes name, one event after the other."""
        width = words_for(self.n_profiles)
        alive = np.tile(_bits_of(np.ones((1, self.n_profiles), bool))[0], piece.shape[1])
        scratch = np.empty(width, np.uint64)
        for a, index in enumerate(self.indexes):
            if isinstance(index, ClusterIndex):
                located = index.candidates_batch(piece[a])
            else:
                located = index.locate_batch(piece[a])
            found = located.ids(0, piece.shape[1])
            _combine(self._free[a], located.offsets, found, scratch, alive)
        return alive


def naive_evaluations(lows: ArrayLike, values: ArrayLike) -> Int64s:
    """Predicate evaluations for each of m events without an index: all of them, k n at most."""
    predicates = int(np.count_nonzero(_table(lows, "lows") != NONE))
    return np.full(np.shape(values)[1], predicates, np.int64)


def lazy_evaluations(lows: ArrayLike, highs: ArrayLike, values: ArrayLike) -> Int64s:
    """The same, but each profile only up to its first predicate that is false: O(k n m)."""
    cells = _table(values, "values")
    counts = np.empty(cells.shape[1], np.int64)
    _count_lazily(_table(lows, "lows"), _table(highs, "highs"), cells, counts)
    return counts


def _table(numbers: ArrayLike, what: str) -> Table:
    """Make a contiguous int32 table of whole numbers, one row per attribute."""
    given = np.asarray(numbers)
    if given.ndim != 2 or not len(given):
        raise OptionError(f"{what} are of shape {given.shape}: give one row per attribute")
    return np.stack([as_int32(row, what) for row in given])


def _bits_of(flags: NDArray[np.bool_]) -> UInt64s:
    """Rows of flags as rows of bits, in whole words."""
    rows, n = flags.shape
    padded = np.zeros((rows, words_for(n) * 64), bool)
    padded[:, :n] = flags
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
