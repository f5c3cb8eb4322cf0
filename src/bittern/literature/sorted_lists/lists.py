"""Numbered lists of sorted pairs (key, value): what the predicate lists of an index are kept in.

Each list is a set of pairs of int32, ascending by key, then by value; a key may have many values.
Kernels search them with ``seek`` and ``following`` (``literature/sorted_lists/blocks.py``),
whichever of two forms they are in:

*packed*, as built or mapped: one array of offsets, 4 bytes per list and 8 per pair. ``begins`` and
``ends`` are two views of it, and every list is one flat run::

    offsets  0  2  2  5              lists 0: (3,1) (8,0)   1: none   2: (1,4) (4,0) (4,7)
    keys     3  8  1  4  4
    values   1  0  4  0  7

*loose*, from the first change on: 12 bytes per list. Lists of up to a block's size are flat runs in
areas; longer ones are B+trees of blocks in the same arrays, so that a change costs O(log n) and
not O(n)::

    begins   5  2  2 ~9              list 0 has moved to make room for (5, 2), and list 3, a long
    ends     8  2  5 70              one, is a tree of 70 pairs with its root at 9
    limits   9  2  5  .
    keys     .  .  1  4  4  3  5  8  . | ~2 ...    blocks     free ...

Kernels never make room: ``reserve(n)`` makes enough for any n pairs and gives the arrays to change,
in which a kernel may then call ``insert_pair`` n times, and ``delete_pair`` as often as it likes.
Where room or much of what is in use is wasted, everything is written anew without holes, which n
changes pay for by O(n) moves in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int32s, starts_of
from bittern.errors import OptionError
from bittern.growing import longer
from bittern.jit import frozen, i4r, i4w, i8, i8r, kernel, void
from bittern.literature.sorted_lists.blocks import (
    BLOCK,
    FAN,
    FREE,
    LISTS,
    LOOSE,
    SLOTS,
    ListArrays,
    LooseArrays,
    delete_pair,
    find_pair,
    following,
    insert_pair,
    length_of,
    room_for,
    start_of,
)
from bittern.literature.sorted_lists.checking import check_loose, check_packed
from bittern.stabbing.areas import HELD, USED

MAX_PAIRS = 2**31 - 1
"""Offsets are int32: half the bytes of the directory, which is most of a sparse index."""

_LEAST_ROOM = 64
# How full blocks are when lists become loose: an eighth is left to grow.
_FILL, _FAN_FILL = BLOCK * 7 // 8, FAN * 7 // 8


@kernel(void, i4r, i8r, i8r, i4w, i4w, i4w)
def _scatter(lists: Any, order: Any, pairs: Any, offsets: Any, keys: Any, values: Any) -> None:
    """Fill lists backwards in the order of pairs; ``offsets`` are their ends, and then begins."""
    for i in range(len(order) - 1, -1, -1):
        source = order[i]
        n = np.uint64(lists[source])
        offsets[n] -= 1
        at = np.uint64(offsets[n])
        keys[at] = pairs[source] >> 32
        values[at] = (pairs[source] & 0xFFFFFFFF) - 2147483648


@kernel(i8, i4r, i4r)
def _loose_slots(begins: Any, ends: Any) -> Any:
    """What the loose form of these lists occupies, without free room."""
    slots = 0
    for n in range(len(begins)):
        length = length_of(begins, ends, n)
        if length <= BLOCK:
            slots += length
            continue
        blocks = (length + _FILL - 1) // _FILL
        slots += blocks * SLOTS
        while blocks > 1:
            blocks = (blocks + _FAN_FILL - 1) // _FAN_FILL
            slots += blocks * SLOTS
    return slots


@kernel(void, LISTS, i4w, i4w, i4w)
def _pack(lists: Any, offsets: Any, packed_keys: Any, packed_values: Any) -> None:
    begins, ends, keys, values = lists
    at = 0
    for n in range(len(begins)):
        offsets[n] = at
        begin, end, block = start_of(begins, ends, keys, n)
        while True:
            for i in range(begin, end):
                packed_keys[at] = keys[i]
                packed_values[at] = values[i]
                at += 1
            block, begin, end = following(keys, values, block)
            if block < 0:
                break
    offsets[len(begins)] = at


@kernel(void, LISTS, LOOSE)
def _loosen(lists: Any, loose: Any) -> None:
    """Write lists of either form into new arrays, flat or as trees, without holes."""
    old_begins, old_ends, old_keys, old_values = lists
    begins, ends, limits, keys, values, figures = loose
    used = 0
    for n in range(len(old_begins)):
        length = length_of(old_begins, old_ends, n)
        begin, end, block = start_of(old_begins, old_ends, old_keys, n)
        # A flat run is one leaf without a header.
        flat = length <= BLOCK
        leaves = 1 if flat else (length + _FILL - 1) // _FILL
        first = used
        for leaf in range(leaves):
            stop = length * (leaf + 1) // leaves
            count = stop - length * leaf // leaves
            if not flat:
                keys[used] = count
                values[used] = used + SLOTS if leaf + 1 < leaves else -1
            at = used + int(not flat)
            for i in range(at, at + count):
                while begin == end:
                    block, begin, end = following(old_keys, old_values, block)
                keys[i] = old_keys[begin]
                values[i] = old_values[begin]
                begin += 1
            used += count if flat else SLOTS
        if flat:
            begins[n], ends[n], limits[n] = first, used, used
            continue
        # Each level lies where the one below ends, its blocks one after the other.
        nodes = leaves
        while nodes > 1:
            parents = (nodes + _FAN_FILL - 1) // _FAN_FILL
            for parent in range(parents):
                start = nodes * parent // parents
                count = nodes * (parent + 1) // parents - start
                keys[used] = ~count
                values[used] = -1
                for i in range(count):
                    child = first + (start + i) * SLOTS
                    keys[used + 1 + i] = keys[child + 1]
                    values[used + 1 + i] = values[child + 1]
                    keys[used + 1 + FAN + i] = child
                    values[used + 1 + FAN + i] = 0
                used += SLOTS
            first += nodes * SLOTS
            nodes = parents
        begins[n], ends[n], limits[n] = ~first, length, ~first
    figures[USED] = used
    figures[FREE] = -1


@kernel(i8, LOOSE, i4r, i4r, i4r)
def _insert(loose: Any, lists: Any, new_keys: Any, new_values: Any) -> Any:
    begins, ends, limits, keys, values, figures = loose
    n = 0
    for i in range(len(lists)):
        n += insert_pair(
            begins, ends, limits, keys, values, figures, lists[i], new_keys[i], new_values[i]
        )
    return n


@kernel(i8, LOOSE, i4r, i4r, i4r)
def _delete(loose: Any, lists: Any, old_keys: Any, old_values: Any) -> Any:
    begins, ends, _, keys, values, figures = loose
    n = 0
    for i in range(len(lists)):
        n += delete_pair(begins, ends, keys, values, figures, lists[i], old_keys[i], old_values[i])
    return n


@kernel(i8, LISTS, i4r, i4r, i4r)
def _count_held(arrays: Any, lists: Any, some_keys: Any, some_values: Any) -> Any:
    begins, ends, keys, values = arrays
    n = 0
    for i in range(len(lists)):
        n += find_pair(begins, ends, keys, values, lists[i], some_keys[i], some_values[i]) >= 0
    return n


class SortedLists:
    """Lists of sorted pairs; see the module for their two forms.

    ``searched`` are the arrays that kernels search, which change with every ``reserve``,
    ``insert``, ``delete``, ``add_lists`` and ``arrays``: ask for them before each kernel call.
    """

    searched: ListArrays

    def __init__(self, offsets: Int32s, keys: Int32s, values: Int32s) -> None:
        """Take packed lists as they are, read-only or not: O(1)."""
        self._take(offsets, keys, values)

    def _take(self, offsets: Int32s, keys: Int32s, values: Int32s) -> None:
        self._offsets = offsets
        self._loose: LooseArrays | None = None
        self._figures = np.array([len(keys), len(keys), -1], np.int64)
        self.searched = frozen(ListArrays(offsets[:-1], offsets[1:], keys, values))

    @classmethod
    def build(cls, lists: Int32s, keys: Int32s, values: Int32s, n_lists: int) -> Self:
        """Pairs by the list they belong to, in any order; equal ones count once: O(n log n)."""
        if len(lists) > MAX_PAIRS:
            raise OptionError(_too_many(len(lists)))
        pairs = (keys.astype(np.int64) << 32) + (values.astype(np.int64) + 2**31)
        order = np.argsort(pairs, kind="stable")
        offsets = np.zeros(n_lists + 1, np.int32)
        offsets[:-1] = np.cumsum(np.bincount(lists, minlength=n_lists))
        offsets[-1] = len(lists)
        packed_keys, packed_values = np.empty_like(keys), np.empty_like(values)
        _scatter(lists, order, pairs, offsets, packed_keys, packed_values)
        return cls(*_each_once(offsets, packed_keys, packed_values))

    @property
    def n_lists(self) -> int:
        """How many lists there are, empty ones included."""
        return len(self.searched.begins)

    @property
    def n_pairs(self) -> int:
        """How many pairs all lists hold together."""
        return int(self._figures[HELD])

    @property
    def packed(self) -> bool:
        """Whether nothing changed since the lists were built, mapped or packed."""
        return self._loose is None

    @property
    def nbytes(self) -> int:
        """What is in use; free room at the end has not been touched and occupies nothing."""
        if self._loose is None:
            return int(self._offsets.nbytes) + 8 * self.n_pairs
        return 3 * self._loose.begins.nbytes + 8 * int(self._figures[USED])

    def lengths(self) -> npt.NDArray[np.int64]:
        """How many pairs each list holds."""
        begins, ends, _, _ = self.searched
        return ends.astype(np.int64) - np.maximum(begins, 0)

    def reserve(self, n_pairs: int) -> LooseArrays:
        """Enter the loose form, with room for any ``n_pairs`` pairs; the arrays to change.

        They are good for that many ``insert_pair``, and any number of ``delete_pair``, until
        something else of this class is called.
        """
        used, held = int(self._figures[USED]), self.n_pairs
        if held + n_pairs > MAX_PAIRS:
            raise OptionError(_too_many(held + n_pairs))
        wasted = used > 4 * held + max(_LEAST_ROOM, self.n_lists // 8)
        if self._loose is None or wasted or used + room_for(n_pairs, used) > len(self._loose.keys):
            self._write_anew(n_pairs)
        assert self._loose is not None
        return self._loose

    def _write_anew(self, n_pairs: int) -> None:
        slots = int(_loose_slots(self.searched.begins, self.searched.ends))
        # The directory counts as well: writing it anew must be paid for by many changes.
        most = slots + max(_LEAST_ROOM, slots // 2, self.n_lists // 8)
        size = most + room_for(n_pairs, most)
        if size > MAX_PAIRS:
            raise OptionError(
                f"changing {n_pairs:,} of {self.n_pairs:,} list entries takes more room than one "
                "index has: make fewer changes at once, or split the subscriptions"
            )
        begins, ends, limits = (np.empty(self.n_lists, np.int32) for _ in range(3))
        keys, values = np.empty(size, np.int32), np.empty(size, np.int32)
        loose = LooseArrays(begins, ends, limits, keys, values, self._figures.copy())
        _loosen(self.searched, loose)
        # All memory is there: from here on nothing fails half way.
        self._change_to(loose)

    def _change_to(self, loose: LooseArrays) -> None:
        self._loose, self._figures = loose, loose.figures
        self._offsets = np.empty(0, np.int32)
        self.searched = frozen(ListArrays(loose.begins, loose.ends, loose.keys, loose.values))

    def insert(self, lists: Int32s, keys: Int32s, values: Int32s) -> int:
        """Insert pairs; those that are there already stay as they are. How many are new."""
        return int(_insert(self.reserve(len(lists)), lists, keys, values))

    def delete(self, lists: Int32s, keys: Int32s, values: Int32s) -> int:
        """Delete those of the pairs that are there; how many were."""
        return int(_delete(self.reserve(0), lists, keys, values))

    def count_held(self, lists: Int32s, keys: Int32s, values: Int32s) -> int:
        """How many of these pairs are there."""
        return int(_count_held(self.searched, lists, keys, values))

    def pairs(self) -> tuple[Int32s, Int32s, Int32s]:
        """The list, key and value of every pair, in order: O(lists + pairs)."""
        offsets = np.empty(self.n_lists + 1, np.int32)
        keys, values = np.empty(self.n_pairs, np.int32), np.empty(self.n_pairs, np.int32)
        _pack(self.searched, offsets, keys, values)
        return np.repeat(np.arange(self.n_lists, dtype=np.int32), np.diff(offsets)), keys, values

    def add_lists(self, n: int) -> int:
        """Add n empty lists after the others; the number of the first: O(1) each, amortised."""
        first = self.n_lists
        begins, ends, limits, keys, values, figures = self.reserve(0)
        grown = LooseArrays(
            longer(begins, n), longer(ends, n), longer(limits, n), keys, values, figures
        )
        self._change_to(grown)
        return first

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Offsets, keys and values of the packed form, entering it: O(1) or O(everything)."""
        if self._loose is not None:
            offsets = np.empty(self.n_lists + 1, np.int32)
            keys, values = (np.empty(self.n_pairs, np.int32) for _ in range(2))
            _pack(self.searched, offsets, keys, values)
            self._take(offsets, keys, values)
        return {
            "offsets": self._offsets,
            "keys": self.searched.keys,
            "values": self.searched.values,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The lists again, searched in place."""
        return cls(arrays["offsets"], arrays["keys"], arrays["values"])

    def check(self) -> None:
        """Verify every invariant, whatever the arrays hold: O(lists log lists + slots)."""
        if self._loose is None:
            check_packed(self._offsets, self.searched.keys, self.searched.values)
        else:
            check_loose(self._loose)


def _each_once(offsets: Int32s, keys: Int32s, values: Int32s) -> tuple[Int32s, Int32s, Int32s]:
    """The packed lists with each pair once."""
    repeated = np.zeros(len(keys) + 1, np.bool_)
    repeated[1:-1] = (keys[1:] == keys[:-1]) & (values[1:] == values[:-1])
    repeated[offsets] = False
    if not repeated.any():
        return offsets, keys, values
    kept = ~repeated[:-1]
    before = starts_of(kept, np.int32)
    return before[offsets], keys[kept], values[kept]


def _too_many(n: int) -> str:
    return (
        f"{n:,} list entries are too many for one index (at most {MAX_PAIRS:,}): "
        "split the subscriptions"
    )
