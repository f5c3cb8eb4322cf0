"""Hash table of keys in flat arrays: found, put in and taken out in O(1), in no order.

The entries of ``keyed_lists`` are found through ``slots``: a key's hash picks a home slot, and
linear probing goes on from there until it meets the key's entry or a free slot::

    keys    .  3  4  20               entry 1 to 3
    slots   0  0  2  1  3  0  0  0    0 is free; 4 is at home in slot 2, 3 and 20 both in slot 3
            k  l                      and behind them, in two halves, the key of the hash

Half of the slots at least stay free. Taking an entry out moves those behind it that probing would
not find any more one gap forward, so that no slot has to be marked as deleted. The hash's key
(``model/hashing.py``) is drawn from the keys as they were built, so that the same ones are saved as
the same bytes, and is a secret one as soon as they change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, void
from bittern.literature.predicates.keyed_lists import (
    N_KEYS,
    NONE,
    USED,
    KeyedLists,
    free_entry,
    new_entry,
)
from bittern.model.hashing import hash_word, multiplier_of, secret_multiplier

if TYPE_CHECKING:
    from bittern.arrays import Int32s, Int64s


#: What the key takes behind the slots: a word of 64 bits.
KEY_SLOTS = 2


def n_slots(n: int) -> int:
    """Slots for n entries: a power of two, at most half full."""
    return 2 << max(n - 1, 0).bit_length()


def _empty(n: int, multiplier: np.uint64) -> Int32s:
    """Slots for n entries, all free, and the key of the hash behind them."""
    slots = np.zeros(n_slots(n) + KEY_SLOTS, np.int32)
    slots[-KEY_SLOTS:] = np.array([multiplier]).view(np.int32)
    return slots


@inline
def _mask(slots: Any) -> Any:
    return len(slots) - KEY_SLOTS - 1


@inline
def _home(slots: Any, key: Any) -> Any:
    """The slot where probing for a key begins."""
    low, high = np.uint32(slots[len(slots) - 2]), np.uint32(slots[len(slots) - 1])
    hashed = hash_word(key, np.uint64(low) | np.uint64(high) << np.uint64(32))
    return np.int64(hashed & np.uint64(_mask(slots)))


@inline
def _slot_of(keys: Any, slots: Any, key: Any) -> Any:
    """The slot of a key's entry, or the free one where it would go, which only damage can take."""
    mask = _mask(slots)
    at = _home(slots, key)
    for _ in range(mask):
        if slots[at] == NONE or keys[slots[at]] == key:
            break
        at = (at + 1) & mask
    return at


@inline
def entry_of(keys: Any, slots: Any, key: Any) -> Any:
    """The entry of a key, or none."""
    return int(slots[_slot_of(keys, slots, key)])


@kernel(i8, i8r, i4r, i8)
def _find_entry(keys: Any, slots: Any, key: Any) -> Any:
    return entry_of(keys, slots, key)


@kernel(void, i8r, i4r, i4w)
def _fill_slots(keys: Any, entries: Any, slots: Any) -> None:
    for entry in entries:
        slots[_slot_of(keys, slots, keys[entry])] = entry


@kernel(i8, i8w, i4w, i8w, i8)
def _put_entry(keys: Any, slots: Any, state: Any, key: Any) -> Any:
    at = _slot_of(keys, slots, key)
    if slots[at] != NONE:
        return slots[at]
    entry = new_entry(keys, state, key)
    slots[at] = entry
    return entry


@kernel(void, i8w, i4w, i8w, i8)
def _remove_entry(keys: Any, slots: Any, state: Any, entry: Any) -> None:
    mask = _mask(slots)
    gap = _slot_of(keys, slots, keys[entry])
    at = gap
    while True:
        at = (at + 1) & mask
        if slots[at] == NONE:
            break
        # It may go to the gap unless it is at home behind it.
        if (at - _home(slots, keys[slots[at]])) & mask >= (at - gap) & mask:
            slots[gap] = slots[at]
            gap = at
    slots[gap] = NONE
    free_entry(keys, state, entry)


class KeyTable(KeyedLists):
    """Lists of sids by key, with the keys in a hash table; ``directory`` are its slots."""

    directory_name = "slots"

    @staticmethod
    def _index(keys: Int64s) -> Int32s:
        slots = _empty(len(keys) - 1, multiplier_of(keys))
        _fill_slots(keys, np.arange(1, len(keys), dtype=np.int32), slots)
        return slots

    @staticmethod
    def _shape(n: int) -> tuple[int, ...]:
        return (n_slots(n) + KEY_SLOTS,)

    def _find(self, key: int) -> int:
        return int(_find_entry(self.keys, self.directory, key))

    def _put(self, key: int) -> int:
        return int(_put_entry(self.keys, self.directory, self.state, key))

    def _remove(self, entry: int) -> None:
        _remove_entry(self.keys, self.directory, self.state, entry)

    def _grow(self, capacity: int) -> None:
        slots = _empty(capacity, secret_multiplier())
        _fill_slots(self.keys, self._in_use(), slots)
        self.directory = slots

    def _in_use(self) -> Int32s:
        slots = self.directory[:-KEY_SLOTS]
        return np.asarray(slots[slots != NONE])

    def entries(self) -> Int32s:
        """The entries in order of their keys: O(n log n)."""
        entries = self._in_use()
        return np.asarray(entries[np.argsort(self.keys[entries], kind="stable")])

    def _check_directory(self) -> None:
        """Verify that every entry in a slot is found from its key's home."""
        size, used = len(self.directory) - KEY_SLOTS, int(self.state[USED])
        assert size & (size - 1) == 0, "the number of slots is no power of two"
        assert size >= 2 * self.state[N_KEYS], "more than half of the slots are taken"
        entries = self._in_use()
        assert ((entries > 0) & (entries < used)).all(), "a slot leads to no entry"
        assert len(np.unique(entries)) == len(entries), "two slots have the same entry"
        for entry in entries.tolist():
            assert self._find(int(self.keys[entry])) == entry, "an entry is not found by its key"
