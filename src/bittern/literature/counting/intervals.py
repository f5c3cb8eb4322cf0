"""The distinct intervals that clauses ask for, each under one number.

An interval [low, high] of cells is one number, its *key*; so is the cell that forbids a clause
which asks for its channel to be missing. Numbers that are no longer used have the key -1 and are
given again::

    key       low << 32 | high << 1 | forbids

    keys      [0,4]  [7,7]  -1  [7,7] forbids        numbers 0, 1 and 3
    slots     3  .  0  .  .  1  .  .                 the hash table: numbers, -1 is free

A key is found by hashing: linear probing in a table that is at most half full, and removing one
moves those after it back, so that there are no tombstones. The table is made when it is first asked
for: matching does without. Its hash has a secret key (``model/hashing.py``). Cost: O(1) for each
key that is found, added or removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, Int64s
from bittern.growing import GrowingColumn
from bittern.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, u8, void
from bittern.model.hashing import hash_word, secret_multiplier

UNUSED = -1
"""The key of a number that no clause uses."""

_LEAST_SLOTS = 64


def keys_of(lows: Int32s, highs: Int32s, forbids: npt.NDArray[np.bool_]) -> Int64s:
    """Intervals as keys."""
    return lows.astype(np.int64) << 32 | highs.astype(np.int64) << 1 | forbids


def ends_of(keys: Int64s) -> tuple[Int32s, Int32s]:
    """The intervals of keys: where they begin and end."""
    return (keys >> 32).astype(np.int32), ((keys & 0xFFFFFFFF) >> 1).astype(np.int32)


def numbered(keys: Int64s, bases: Int32s) -> tuple[Int64s, Int32s]:
    """The distinct keys, to be numbered in this order, and the number of each that is given.

    A value satisfies a run of the intervals that begin or end with their channel (``<``, ``>=``):
    each of these kinds is numbered by itself, so that lists which are gone through together stand
    together.
    """
    distinct, number_of = np.unique(keys, return_inverse=True)
    lows, highs = ends_of(distinct)
    channels = np.searchsorted(bases, lows, "right") - 1
    kinds = np.where(lows == bases[channels], 0, np.where(highs + 1 == bases[channels + 1], 1, 2))
    order = np.argsort(channels * 3 + kinds, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return distinct[order], place[number_of]


@inline
def _home(key: Any, multiplier: Any, mask: Any) -> Any:
    """Where the search for a key begins."""
    return np.int64(hash_word(key, multiplier) & np.uint64(mask))


@inline
def _slot_of(keys: Any, slots: Any, multiplier: Any, key: Any) -> Any:
    """The slot that holds the number of a key, or the free one where the search for it ends."""
    mask = len(slots) - 1
    at = _home(key, multiplier, mask)
    while slots[at] >= 0 and keys[slots[at]] != key:
        at = (at + 1) & mask
    return at


@kernel(void, i8r, i4w, u8)
def _fill(keys: Any, slots: Any, multiplier: Any) -> None:
    slots[:] = -1
    for number in range(len(keys)):
        if keys[number] != UNUSED:
            slots[_slot_of(keys, slots, multiplier, keys[number])] = number


@kernel(void, i8r, i4r, u8, i8r, i4w)
def _find(keys: Any, slots: Any, multiplier: Any, wanted: Any, numbers: Any) -> None:
    for i in range(len(wanted)):
        numbers[i] = slots[_slot_of(keys, slots, multiplier, wanted[i])]


@kernel(i8, i8w, i4w, u8, i4r, i8, i8r, i4w, i4w)
def _add(
    keys: Any,
    slots: Any,
    multiplier: Any,
    free: Any,
    first_new: Any,
    wanted: Any,
    numbers: Any,
    added: Any,
) -> Any:
    """Number each key, those that are not there with free numbers and then new ones."""
    n_added = 0
    for i in range(len(wanted)):
        at = _slot_of(keys, slots, multiplier, wanted[i])
        if slots[at] < 0:
            number = first_new + n_added - len(free)
            if n_added < len(free):
                number = np.int64(free[n_added])
            keys[number] = wanted[i]
            slots[at] = number
            added[n_added] = number
            n_added += 1
        numbers[i] = slots[at]
    return n_added


@kernel(void, i8w, i4w, u8, i4r)
def _remove(keys: Any, slots: Any, multiplier: Any, numbers: Any) -> None:
    """Remove keys, and move those back whose search would now end too early."""
    mask = len(slots) - 1
    for i in range(len(numbers)):
        hole = _slot_of(keys, slots, multiplier, keys[numbers[i]])
        keys[numbers[i]] = UNUSED
        at = (hole + 1) & mask
        while slots[at] >= 0:
            from_home = (at - _home(keys[slots[at]], multiplier, mask)) & mask
            if from_home >= (at - hole) & mask:
                slots[hole] = slots[at]
                hole = at
            at = (at + 1) & mask
        slots[hole] = -1


class DistinctIntervals:
    """Keys by number, and numbers by key; see the module."""

    def __init__(self, keys: Int64s) -> None:
        """Take keys as they are, read-only or not: O(1)."""
        self._keys = GrowingColumn(keys)
        self._slots: Int32s | None = None
        self._multiplier = secret_multiplier()
        self._free = np.empty(0, np.int32)

    @property
    def keys(self) -> Int64s:
        """The key of each number, to be read."""
        return self._keys.items

    @property
    def nbytes(self) -> int:
        """What keys and table occupy."""
        return int(self.keys.nbytes) + (0 if self._slots is None else int(self._slots.nbytes))

    def share(self) -> Int64s:
        """The key of each number, in an array that does not change any more."""
        return self._keys.share()

    def numbers(self) -> Int32s:
        """The numbers in use, ascending."""
        return np.flatnonzero(self.keys != UNUSED).astype(np.int32)

    def ends(self) -> tuple[Int32s, Int32s]:
        """Where the interval of each number begins and ends; empty if it is not in use."""
        lows, highs = ends_of(self.keys)
        unused = self.keys == UNUSED
        lows[unused], highs[unused] = 0, -1
        return lows, highs

    def find(self, wanted: Int64s) -> Int32s:
        """The number of each key, or -1."""
        numbers = np.empty(len(wanted), np.int32)
        _find(self.keys, self._table(0), self._multiplier, wanted, numbers)
        return numbers

    def add(self, wanted: Int64s) -> tuple[Int32s, Int32s]:
        """The number of each key, and which of these numbers are new: O(keys given), amortised."""
        n, slots = len(self._keys), self._table(len(wanted))
        numbers, added = np.empty(len(wanted), np.int32), np.empty(len(wanted), np.int32)
        keys = self._keys.extended(len(wanted))
        free, multiplier = self._free, self._multiplier
        n_added = int(_add(keys, slots, multiplier, free, n, wanted, numbers, added))
        self._keys.cut(n + max(0, n_added - len(self._free)))
        self._free = self._free[n_added:]
        return numbers, added[:n_added]

    def remove(self, numbers: Int32s) -> None:
        """Remove these numbers' keys; the numbers may be given again."""
        _remove(self._keys.extended(0), self._table(0), self._multiplier, numbers)
        self._free = np.concatenate((numbers, self._free))

    def _table(self, more: int) -> Int32s:
        """The hash table, with room for more keys."""
        if self._slots is None:
            self._free = np.flatnonzero(self.keys == UNUSED).astype(np.int32)
        needed = max(_LEAST_SLOTS, 2 * (len(self._keys) + more))
        if self._slots is None or len(self._slots) < needed:
            self._slots = np.empty(1 << needed.bit_length(), np.int32)
            _fill(self.keys, self._slots, self._multiplier)
        return self._slots

    def check(self, bases: Int32s) -> None:
        """Keys are distinct intervals, each in one channel; those that forbid are its one cell."""
        keys = self.keys
        assert keys.dtype == np.int64, "keys are not of 64 bits"
        assert keys.ndim == 1, "keys are not flat"
        used = keys[keys != UNUSED]
        assert (used >= 0).all(), "a key is negative"
        assert len(np.unique(used)) == len(used), "an interval stands twice"
        lows, highs = ends_of(used)
        assert (lows <= highs).all(), "an interval is empty"
        assert (highs < bases[-1]).all(), "an interval is beyond the axis"
        ends = bases[np.searchsorted(bases, lows, "right")]
        assert (highs < ends).all(), "an interval leaves its channel"
        forbids = (used & 1).astype(np.bool_)
        starts = bases[np.searchsorted(bases, lows, "right") - 1]
        assert (ends[forbids] - starts[forbids] == 1).all(), "what forbids is not a channel"
        if self._slots is not None:
            held = np.sort(self._slots[self._slots >= 0])
            assert np.array_equal(held, self.numbers()), "the table holds other numbers"
            assert np.array_equal(self.find(used), self.numbers()), "a key is not found"
            free = np.setdiff1d(np.arange(len(keys)), held)
            assert np.array_equal(np.sort(self._free), free), "free numbers are lost"
