"""The directory of OpIndex: which sorted list holds a pivot's predicates of an operator.

The list of a pivot and an operator, L(pivot, operator) in section 4.2 of seed 003, is cut into
segments: an attribute's segment is its number modulo ``n_segments``, and each segment is one of the
sorted lists. There are as many segments as were asked for (``segments``), but no more than
attributes. Lists that exist are numbered in blocks of ``n_segments`` as they come, so that an
operator that a pivot has no predicate of takes 4 bytes. Table 1's subscriptions with the pivots A,
C and D and two segments::

    pivot_of    A 0   B -1   C 1   D 2   E -1
    firsts      =  <=  >=            the list of the first segment, or -1: there is no such list
       A        0   2   4
       C        6   8  10            list 6 is C = of {A, C, E}, list 7 is C = of {B, D}
       D       12  14  16
    signatures  a word for each list

A signature has a bit set for each of the list's (attribute, operand) where a value satisfies single
operands, else for each attribute. Deleting leaves it set.

Cost: O(1) for each predicate; 32 bytes for each pivot, and 12 for each list, 4 of them its offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, record_of
from bittern.growing import longer
from bittern.jit import frozen, i4r, i8, inline, kernel, tuple_type, u1r, u8r, u8w, void
from bittern.literature.opindex.filing import Filings
from bittern.literature.opindex.operators import N_OPERATORS, POINT
from bittern.matching.contract import check_size


class DirectoryArrays(NamedTuple):
    """What matching sees."""

    pivot_of: Int32s  # of each channel its number as a pivot, or -1
    firsts: Int32s  # of each pivot and operator the list of its first segment, or -1
    signatures: npt.NDArray[np.uint64]  # of each list; none if there are no signatures


DIRECTORY = tuple_type(DirectoryArrays, i4r, i4r, u8r)


@inline
def signature_bit(number: Any, n_bits: Any) -> Any:
    """Which of a signature's bits stands for a key, or for an attribute."""
    mixed = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
    return mixed * np.uint64(n_bits) >> np.uint64(32)


@kernel(void, i4r, u1r, i4r, i4r, i8, u8w)
def _sign(
    lists: Any, operators: Any, channels: Any, keys: Any, n_bits: Any, signatures: Any
) -> None:
    for i in range(len(lists)):
        number = keys[i] if POINT >> operators[i] & 1 else channels[i]
        signatures[lists[i]] |= np.uint64(1) << signature_bit(number, n_bits)


def _places(pivots: npt.NDArray[Any], filings: Filings) -> Int32s:
    """The place in ``firsts`` of each basic predicate; below 0 where there is no pivot."""
    of_pivots = np.repeat(pivots.astype(np.int32) * N_OPERATORS, filings.sizes)
    return of_pivots + np.where(of_pivots < 0, 0, filings.operators).astype(np.int32)


class PivotDirectory:
    """Pivots, the numbers of their lists, and the signatures of these; see the module."""

    searched: DirectoryArrays

    def __init__(self, arrays: DirectoryArrays, segments: int, n_bits: int) -> None:
        """Take arrays as they are, read-only or not; the first change copies them: O(lists)."""
        self.segments, self.n_bits = segments, n_bits
        self.n_segments = max(1, min(segments, len(arrays.pivot_of)))
        self.n_lists = self.n_segments * int(np.count_nonzero(arrays.firsts >= 0))
        self._owned = False
        self._show(arrays)

    @classmethod
    def empty(cls, n_channels: int, segments: int, n_bits: int) -> Self:
        """A directory without a pivot."""
        none, no_words = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint64)
        arrays = DirectoryArrays(np.full(n_channels, -1, dtype=np.int32), none, no_words)
        return cls(arrays, segments, n_bits)

    def _show(self, arrays: DirectoryArrays) -> None:
        self._own, self.searched = arrays, frozen(arrays)

    @property
    def n_pivots(self) -> int:
        """How many channels are pivots, or have been."""
        return len(self.searched.firsts) // N_OPERATORS

    def pivots(self) -> Int32s:
        """The channel of each pivot."""
        channels = np.flatnonzero(self.searched.pivot_of >= 0).astype(np.int32)
        return channels[np.argsort(self.searched.pivot_of[channels])]

    def blocks(self) -> Int32s:
        """Of each block of lists its place in ``firsts``: pivot x operators + operator."""
        places = np.flatnonzero(self.searched.firsts >= 0).astype(np.int32)
        return places[np.argsort(self.searched.firsts[places])]

    def add(self, filings: Filings) -> None:
        """Add pivots for all filings, and lists for their predicates."""
        pivot_of, firsts, _ = self.searched
        pivots = pivot_of[filings.pivots]
        channels = np.unique(filings.pivots[pivots < 0])
        added = self.n_pivots + np.searchsorted(channels, filings.pivots)
        places = _places(np.where(pivots < 0, added, pivots), filings)
        known = places < len(firsts)
        known[known] = firsts[places[known]] >= 0
        places = np.unique(places[~known])
        n_new = len(places) * self.n_segments
        check_size("segments of lists", self.n_lists + n_new)
        if len(places) == 0:
            return
        # From here on nothing fails half way.
        own = self._changing()
        own.pivot_of[channels] = self.n_pivots + np.arange(len(channels))
        wider = longer(own.firsts, len(channels) * N_OPERATORS)
        wider[len(own.firsts) :] = -1
        wider[places] = self.n_lists + self.n_segments * np.arange(len(places))
        self.n_lists += n_new
        signatures = longer(own.signatures, n_new if self.n_bits else 0)
        self._show(DirectoryArrays(own.pivot_of, wider, signatures))

    def look_up(self, filings: Filings) -> tuple[Int32s, Int32s]:
        """The pivot of each filing and the list of each basic predicate; -1 where there is none."""
        pivots = self.searched.pivot_of[filings.pivots]
        places = _places(pivots, filings)
        firsts = np.full(len(places), -1, dtype=np.int32)
        firsts[places >= 0] = self.searched.firsts[places[places >= 0]]
        lists = np.where(firsts < 0, -1, firsts + filings.channels % self.n_segments)
        return pivots, lists.astype(np.int32)

    def sign(
        self, lists: Int32s, operators: npt.NDArray[np.uint8], channels: Int32s, keys: Int32s
    ) -> None:
        """Set the bits of new entries in the signatures of their lists."""
        if self.n_bits:
            _sign(lists, operators, channels, keys, self.n_bits, self._changing().signatures)

    def unsigned(self) -> PivotDirectory:
        """The same with clean signatures."""
        pivot_of, firsts, signatures = self._own
        arrays = DirectoryArrays(pivot_of, firsts, np.zeros_like(signatures))
        return PivotDirectory(arrays, self.segments, self.n_bits)

    def _changing(self) -> DirectoryArrays:
        """The arrays to change: copied where they may be someone else's."""
        if not self._owned:
            self._owned = True
            pivot_of, firsts, signatures = self._own
            self._show(DirectoryArrays(pivot_of.copy(), firsts.copy(), signatures.copy()))
        return self._own

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, to be saved; from now on the next change copies."""
        self._owned = False
        return self.searched._asdict()

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], segments: int, n_bits: int
    ) -> Self:
        """The same again, searched in place."""
        own = record_of(DirectoryArrays, arrays)
        return cls(own, segments, n_bits)

    def check(self, n_channels: int, n_lists: int) -> None:
        """Pivots and blocks of lists are numbered without gaps, and each list has a signature."""
        pivot_of, firsts, signatures = self.searched
        assert len(pivot_of) == n_channels, "the directory is of another rank space"
        numbers = np.sort(pivot_of[pivot_of != -1])
        assert np.array_equal(numbers, np.arange(self.n_pivots)), "pivots are not numbered in turn"
        assert len(firsts) == self.n_pivots * N_OPERATORS, "the directory is cut off"
        blocks = np.sort(firsts[firsts != -1])
        expected = self.n_segments * np.arange(len(blocks))
        assert np.array_equal(blocks, expected), "lists are not numbered in turn"
        assert n_lists == self.n_segments * len(blocks) == self.n_lists, "lists are missing"
        assert len(signatures) == (n_lists if self.n_bits else 0), "signatures are missing"
