"""Bit vectors over the intervals of an index, stored by their nonzero words.

Seed 004 keeps one vector of n bits in every node, which is n**2 bits for n intervals, and names
compression as future work. Here a *row* keeps only its nonzero 64-bit words, each with its number,
ascending. Bit b of word w is slot 64 w + b (``slots``)::

    slots 3, 64, 70 and 700     numbers    0       1         10
                                words      1 << 3  1 | 1<<6  1 << 60

Slots are ordered by left end, so the intervals that contain a value are neighbours, save for the
long ones: with 640,000 intervals of up to 200 cells out of a million, a row that holds 61 bits has
3 words. A word costs 12 bytes, as little as 3 ids.

Row r is ``numbers[begins[r]:ends[r]]`` and the same part of ``words``. Like id lists, rows are
*packed* as built or mapped (``begins`` and ``ends`` are views of one array of offsets) and *loose*
from the first change on, each in an area to grow in (``areas``); when the free end is used up, all
is packed with room again. Growing beyond the limit of memory is refused, shrinking never is.

Building in bulk is a module of its own, ``bulk``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bittern.arrays import UInt64s
from bittern.literature.bit_vectors.bulk import (
    PackedRows,
    refuse_too_many,
    rows_of_pairs,
    rows_of_runs,
)
from bittern.literature.bit_vectors.words import (
    clear_bit,
    copy_rows,
    count_all,
    first_wrong,
    gather,
    room_to_set,
    set_bit,
)
from bittern.stabbing.areas import HELD, USED, check_areas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from bittern.arrays import Int32s

_LEAST_ROOM = 64


class BitVectors:
    """Rows of bits, searched through ``begins, ends, numbers, words``; see the module."""

    begins: Int32s
    ends: Int32s
    numbers: Int32s
    words: UInt64s

    def __init__(self, offsets: Int32s, numbers: Int32s, words: UInt64s) -> None:
        """Take packed rows as they are, read-only or not: O(1)."""
        self._take(offsets, numbers, words)

    def _take(self, offsets: Int32s, numbers: Int32s, words: UInt64s) -> None:
        self._offsets: Int32s | None = offsets
        self._limits: Int32s | None = None
        self._figures = np.array([len(words), len(words)], np.int64)
        self.n_rows = len(offsets) - 1
        self.begins, self.ends = offsets[:-1], offsets[1:]
        self.numbers, self.words = numbers, words

    @classmethod
    def of_pairs(cls, rows: Int32s, slots: Int32s, n_rows: int, *, refuse: bool = True) -> Self:
        """Set bit slots[i] of rows[i] for all i; the slots of one row are ascending."""
        return cls(*rows_of_pairs(rows, slots, n_rows, refuse=refuse))

    @classmethod
    def of_runs(cls, firsts: Int32s, lasts: Int32s, n_rows: int, *, refuse: bool = True) -> Self:
        """Set bit s of rows firsts[s] .. lasts[s], of none if that is reversed."""
        return cls(*rows_of_runs(firsts, lasts, n_rows, refuse=refuse))

    @property
    def packed(self) -> bool:
        """Whether nothing changed since the rows were built, mapped or packed."""
        return self._limits is None

    @property
    def n_words(self) -> int:
        """How many words all rows hold together."""
        return int(self._figures[HELD])

    @property
    def n_bits(self) -> int:
        """How many bits are set in all rows together: O(words)."""
        return int(count_all(*self._directory(), self.words))

    def _directory(self) -> tuple[Int32s, Int32s]:
        return self.begins[: self.n_rows], self.ends[: self.n_rows]

    def _every_row(self) -> Int32s:
        return np.arange(self.n_rows, dtype=np.int32)

    def set(self, rows: Int32s, slot: int) -> None:
        """Set the bit of a slot in each of these distinct rows: O(their words), amortised."""
        limits, number = self.ends if self._limits is None else self._limits, slot >> 6
        room = int(room_to_set(rows, number, self.begins, self.ends, limits, self.numbers))
        if self._lacks(room):  # it will be packed first, and then each of the rows has to move
            room = int(room_to_set(rows, number, self.begins, self.ends, self.ends, self.numbers))
        limits = self._loosened(room)
        set_bit(rows, slot, self.begins, self.ends, limits, self.numbers, self.words, self._figures)

    def clear(self, rows: Int32s, slot: int) -> None:
        """Clear the bit of a slot in each of these rows, where it is set: O(their words)."""
        self._loosened(0)
        clear_bit(rows, slot, self.begins, self.ends, self.numbers, self.words, self._figures)

    def add_rows(self, copies_of: Int32s) -> int:
        """Add rows, each a copy of another or empty (-1), and return the number of the first."""
        first, n = self.n_rows, self.n_rows + len(copies_of)
        limits = self._loosened(self._room_to_copy(copies_of))
        if n > len(self.begins):
            more = np.zeros(max(len(copies_of), _LEAST_ROOM, first // 2), np.int32)
            self.begins, self.ends, self._limits = (
                np.append(array[:first], more) for array in (self.begins, self.ends, limits)
            )
        self._copy(self.begins, self.ends, copies_of, np.arange(first, n, dtype=np.int32))
        self.n_rows = n
        return first

    def splice(self, begin: int, stop: int, sources: Int32s) -> None:
        """Replace rows begin .. stop-1 by one row per source, and so shift the rows behind.

        The first that names an old row becomes it, others that do copy it; -1 makes an empty one.
        The same source stands in one piece, and old rows that are named by none are empty: O(rows).
        """
        copied = sources < 0
        copied[1:] |= sources[1:] == sources[:-1]
        if not copied.any() and len(sources) == stop - begin:
            return
        n, limits = self.n_rows, self._loosened(self._room_to_copy(sources[copied]))
        old = self.begins, self.ends
        self.begins, self.ends, self._limits = (
            np.concatenate([array[:begin], _pick(array, sources), array[stop:n]])
            for array in (*old, limits)
        )
        self.n_rows = len(self.begins)
        rows = np.flatnonzero(copied).astype(np.int32) + np.int32(begin)
        self._copy(*old, sources[copied], rows)

    def _room_to_copy(self, sources: Int32s) -> int:
        lengths = _pick(self.ends, sources) - _pick(self.begins, sources)
        return int(lengths.sum()) + len(sources)

    def _copy(self, begins: Int32s, ends: Int32s, sources: Int32s, rows: Int32s) -> None:
        """Give these rows the words of others, which stand at these begins and ends; -1: none."""
        froms, tos = _pick(begins, sources), _pick(ends, sources)
        directory = self.begins, self.ends, self._limits
        copy_rows(froms, tos, rows, *directory, self.numbers, self.words, self._figures)

    def put(self, rows: Int32s, other: BitVectors) -> None:
        """Replace these distinct rows by the rows of another, in order: O(its words), amortised."""
        offsets, numbers, words = other.pack()
        limits = self._loosened(len(words))
        begin = int(self._figures[USED])
        end = begin + len(words)
        self._figures[HELD] += len(words) - int((self.ends[rows] - self.begins[rows]).sum())
        self._figures[USED] = end
        self.numbers[begin:end], self.words[begin:end] = numbers, words
        self.begins[rows] = offsets[:-1] + np.int32(begin)
        self.ends[rows] = limits[rows] = offsets[1:] + np.int32(begin)

    def union(self, rows: Int32s) -> Int32s:
        """Slots that have a bit in any of these rows, ascending: O(words log words)."""
        _, numbers, words = self.gather(rows)
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
        joined = np.bitwise_or.reduceat(words[order], starts) if len(starts) else words
        which, bit = np.nonzero(
            np.unpackbits(joined.astype("<u8").view(np.uint8), bitorder="little").reshape(-1, 64)
        )
        return (numbers[starts][which].astype(np.int64) * 64 + bit).astype(np.int32)

    def is_empty(self, rows: Int32s) -> NDArray[np.bool_]:
        """Which of these rows have no bit."""
        return np.asarray(self.begins[rows] == self.ends[rows])

    def same(self, other: BitVectors) -> bool:
        """Whether the rows of both have the same bits: O(words)."""
        offsets, numbers, words = self.gather(self._every_row())
        others = other.gather(other._every_row())
        return (
            np.array_equal(offsets, others[0])
            and np.array_equal(numbers, others[1])
            and np.array_equal(words, others[2])
        )

    def gather(self, rows: Int32s, room: int = 0) -> PackedRows:
        """Copy these rows one behind the other: offsets, numbers and words, and unused room."""
        n_words = int((self.ends[rows].astype(np.int64) - self.begins[rows]).sum())
        offsets = np.empty(len(rows) + 1, np.int32)
        numbers, words = np.empty(n_words + room, np.int32), np.empty(n_words + room, np.uint64)
        gather(rows, self.begins, self.ends, self.numbers, self.words, offsets, numbers, words)
        return offsets, numbers, words

    def pack(self) -> PackedRows:
        """Offsets, numbers and words of the packed form, entering it if needed: O(1) or O(all)."""
        if self._offsets is None:
            self._take(*self.gather(self._every_row()))
        assert self._offsets is not None
        return self._offsets, self.numbers, self.words

    def _lacks(self, room: int) -> bool:
        """Whether the rows are packed, or this many words are more than are left at the end."""
        return self._limits is None or int(self._figures[USED]) + room > len(self.words)

    def _loosened(self, room: int) -> Int32s:
        """Limits of the loose form, after entering it or making room in it as needed."""
        if self._lacks(room):
            if room:
                refuse_too_many(self.n_words + room, self.n_rows)
            room += max(_LEAST_ROOM, self.n_words // 2)
            offsets, self.numbers, self.words = self.gather(self._every_row(), room)
            self.begins, self.ends = offsets[:-1].copy(), offsets[1:].copy()
            self._offsets, self._limits = None, offsets[1:].copy()
            self._figures[USED] = self.n_words
        assert self._limits is not None
        return self._limits

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The packed form; the next change copies it."""
        offsets, numbers, words = self.pack()
        return {"row_offsets": offsets, "row_numbers": numbers, "row_words": words}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Take these arrays where they are, or None if their sizes do not fit together: O(1)."""
        offsets, numbers, words = (
            np.asarray(arrays[f"row_{name}"]) for name in ("offsets", "numbers", "words")
        )
        fit = (
            offsets.dtype == numbers.dtype == np.int32
            and words.dtype == np.uint64
            and len(offsets) > 0
            and int(offsets[0]) == 0
            and int(offsets[-1]) == len(numbers) == len(words)
        )
        return cls(offsets, numbers, words) if fit else None

    def check(self, n_slots: int) -> None:
        """Verify order, bounds and that no two rows share a word: O(rows + words)."""
        begins, ends = self._directory()
        lengths = ends.astype(np.int64) - begins
        assert (lengths >= 0).all(), "a row ends before it begins"
        assert int(lengths.sum()) == self.n_words, "rows do not add up to the words"
        if self._limits is not None:
            used = int(self._figures[USED])
            assert used <= len(self.words), "more words are used than exist"
            check_areas(begins, ends, self._limits[: self.n_rows], used, "row")
        bad = int(first_wrong(begins, ends, self.numbers, self.words, n_slots))
        assert bad < 0, f"the words of row {bad} are out of order, without bits or past the slots"


def _pick(array: Int32s, positions: Int32s) -> Int32s:
    """The items at these positions, and 0 for -1."""
    picked = np.zeros(len(positions), np.int32)
    there = positions >= 0
    picked[there] = array[positions[there]]
    return picked
