"""Hash table of keys in flat arrays: found, put in and taken out in O(1), in no order.

The entries of ``keyed_lists`` are found through ``slots``: a key's hash picks a home slot, and
linear probing goes on from there until it meets the key's entry or a free slot::

    keys    .  3  4  20               entry 1 to 3
    slots   0  0  0  0  1  2  3  0    0 is free; 3 is at home in slot 4, 4 and 20 both in slot 5

Half of the slots at least stay free. Taking an entry out moves those behind it that probing would
not find any more one gap forward, so that no slot has to be marked as deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.engine.jit import i4r, i4w, i8, i8r, i8w, inline, kernel, void
from bittern.stabbing.keyed_lists import N_KEYS, NONE, USED, KeyedLists, free_entry, new_entry

if TYPE_CHECKING:
    from bittern.stabbing.contract import Int32s, Int64s


def n_slots(n: int) -> int:
    """Slots for n entries: a power of two, at most half full."""
    return 2 << max(n - 1, 0).bit_length()


@inline
def _home(key: Any, mask: Any) -> Any:
    """The slot where probing for a key begins: the upper bits of a product, mixed by a prime."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(32)) & np.uint64(mask))


@inline
def _slot_of(keys: Any, slots: Any, key: Any) -> Any:
    """The slot of a key's entry, or the free one where it would go."""
    mask = len(slots) - 1
    at = _home(key, mask)
    while slots[at] != NONE and keys[slots[at]] != key:
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
    slots[:] = NONE
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
    mask = len(slots) - 1
    gap = _slot_of(keys, slots, keys[entry])
    at = gap
    while True:
        at = (at + 1) & mask
        if slots[at] == NONE:
            break
        # It may go to the gap unless it is at home behind it.
        if (at - _home(keys[slots[at]], mask)) & mask >= (at - gap) & mask:
            slots[gap] = slots[at]
            gap = at
    slots[gap] = NONE
    free_entry(keys, state, entry)


class KeyTable(KeyedLists):
    """Lists of sids by key, with the keys in a hash table; ``directory`` are its slots."""

    directory_name = "slots"

    @staticmethod
    def _index(keys: Int64s) -> Int32s:
        slots = np.empty(n_slots(len(keys) - 1), np.int32)
        _fill_slots(keys, np.arange(1, len(keys), dtype=np.int32), slots)
        return slots

    @staticmethod
    def _shape(n: int) -> tuple[int, ...]:
        return (n_slots(n),)

    def _find(self, key: int) -> int:
        return int(_find_entry(self.keys, self.directory, key))

    def _put(self, key: int) -> int:
        return int(_put_entry(self.keys, self.directory, self.state, key))

    def _remove(self, entry: int) -> None:
        _remove_entry(self.keys, self.directory, self.state, entry)

    def _grow(self, capacity: int) -> None:
        slots = np.empty(n_slots(capacity), np.int32)
        _fill_slots(self.keys, self._in_use(), slots)
        self.directory = slots

    def _in_use(self) -> Int32s:
        return np.asarray(self.directory[self.directory != NONE])

    def entries(self) -> Int32s:
        """The entries in order of their keys: O(n log n)."""
        entries = self._in_use()
        return np.asarray(entries[np.argsort(self.keys[entries], kind="stable")])

    def _check_directory(self) -> None:
        """Verify that every entry in a slot is found from its key's home."""
        size, used = len(self.directory), int(self.state[USED])
        assert size & (size - 1) == 0, "the number of slots is no power of two"
        assert size >= 2 * self.state[N_KEYS], "more than half of the slots are taken"
        entries = self._in_use()
        assert ((entries > 0) & (entries < used)).all(), "a slot leads to no entry"
        assert len(np.unique(entries)) == len(entries), "two slots have the same entry"
        for entry in entries.tolist():
            assert self._find(int(self.keys[entry])) == entry, "an entry is not found by its key"
