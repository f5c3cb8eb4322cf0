"""Keys with lists of sids: what the trees and hash tables of the predicate indexes have in common.

Every distinct key is an *entry*, a number from 1 on (0 stands for no entry), with ``width`` lists
of sids, one for each kind of predicate on that key. Entry e has the lists from ``width * e`` on::

    entry     1     2     3          width 2: a list for >, a list for >=
    keys    . 3     7     12
    lists     2 3   4 5   6 7        > 7 with sid 9, >= 7 with sid 4: 9 in list 4, 4 in list 5

How an entry is found is up to the class: by a red-black tree (``red_black_nodes``) or by hashing
(``key_table``), in one array beside, the *directory*.

As built or mapped, entries are in order of their keys and their lists are packed (``id_lists``);
that is also the form that is saved. The first change copies all and makes room for more entries.
An entry whose lists are all empty is taken out, and its number used again: free ones are a chain
through their keys. Saving after changes builds the packed form again, O(size).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from bittern.arrays import Int32s, Int64s, ranges, starts_of
from bittern.jit import frozen, i4r, i4r2, i8r, inline, read_only, tuple_type
from bittern.stabbing.contract import unfit
from bittern.stabbing.id_lists import IdLists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

NONE = 0
"""The entry that is none."""

USED, FREE, N_KEYS, ROOT = range(4)
"""Running figures: entry numbers that were ever used, ``NONE`` among them; the first free one
of these; entries in use; and the root, of a tree."""

STATE_SIZE = 4
_LEAST_ROOM = 16


@inline
def new_entry(keys: Any, state: Any, key: Any) -> Any:
    """An entry for a key that has none: a free one, or the next; there is room for it."""
    entry = state[FREE]
    if entry != NONE:
        state[FREE] = keys[entry]
    else:
        entry = state[USED]
        state[USED] += 1
    state[N_KEYS] += 1
    keys[entry] = key
    return entry


@inline
def free_entry(keys: Any, state: Any, entry: Any) -> None:
    """Chain an entry that the directory does not have any more to the free ones."""
    keys[entry] = state[FREE]
    state[FREE] = entry
    state[N_KEYS] -= 1


@inline
def length_of(begins: Any, ends: Any, n: Any) -> Any:
    """How many sids list n has."""
    return int(ends[n]) - int(begins[n])


@inline
def copy_list(begins: Any, ends: Any, items: Any, n: Any, sids: Any, at: Any) -> Any:
    """Write the sids of list n from ``at`` on; where the next ones go."""
    for k in range(begins[n], ends[n]):
        sids[at] = items[k]
        at += 1
    return at


class KeyedArrays(NamedTuple):
    """Keys, what finds them, and begins, ends and items of their lists."""

    keys: Int64s
    directory: Int32s
    begins: Int32s
    ends: Int32s
    items: Int32s


#: With the directory of a hash table, and with that of a tree.
KEY_TABLE = tuple_type(KeyedArrays, i8r, i4r, i4r, i4r, i4r)
KEY_TREE = tuple_type(KeyedArrays, i8r, i4r2, i4r, i4r, i4r)


class KeyedLists(ABC):
    """Lists of sids by key and kind; see the module."""

    directory_name: ClassVar[str]
    """The name of the directory among the saved arrays."""

    def __init__(self, keys: Int64s, directory: Int32s, lists: IdLists, width: int) -> None:
        """Take a built form as it is, read-only or not: O(1)."""
        self.width = width
        self._take(keys, directory, lists)

    def _take(self, keys: Int64s, directory: Int32s, lists: IdLists) -> None:
        n = len(keys) - 1
        self.keys, self.directory, self.lists = keys, directory, lists
        self.state = np.array([n + 1, NONE, n, self._root(n)], np.int64)
        self._built = True
        self._searched: KeyedArrays | None = None

    @classmethod
    def build(cls, keys: Int64s, kinds: Int32s, sids: Int32s, width: int) -> Self:
        """Build from keys with the kind and the sid of each, in any order: O(n log n)."""
        order = np.lexsort((sids, kinds, keys))
        return cls(*cls._plant(keys[order], kinds[order], sids[order], width), width)

    @classmethod
    def _plant(
        cls, keys: Int64s, kinds: Int32s, sids: Int32s, width: int
    ) -> tuple[Int64s, Int32s, IdLists]:
        """The arrays of the built form, from what is in order of key, kind and sid."""
        is_new = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        entry_of = np.cumsum(is_new)
        distinct = np.concatenate((np.zeros(1, np.int64), keys[is_new]))
        counts = np.bincount(width * entry_of + kinds, minlength=width * len(distinct))
        offsets = starts_of(counts, np.int32)
        return distinct, cls._index(distinct), IdLists(offsets, np.ascontiguousarray(sids))

    # -- what a class adds -----------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def _index(keys: Int64s) -> Int32s:
        """Make the directory of entries with these ascending keys, of which the first is none."""

    @staticmethod
    @abstractmethod
    def _shape(n: int) -> tuple[int, ...]:
        """The shape of the directory of n entries, as built."""

    @staticmethod
    def _root(n: int) -> int:  # noqa: ARG004
        """The root of n entries, as built."""
        return NONE

    @abstractmethod
    def _find(self, key: int) -> int:
        """The entry of a key, or ``NONE``."""

    @abstractmethod
    def _put(self, key: int) -> int:
        """The entry of a key, new if there was none; there is room for it."""

    @abstractmethod
    def _remove(self, entry: int) -> None:
        """Take an entry out that is there, and chain its number to the free ones."""

    @abstractmethod
    def _grow(self, capacity: int) -> None:
        """Make room in the directory for entry numbers below ``capacity``; it may be changed."""

    @abstractmethod
    def entries(self) -> Int32s:
        """The entries in use, in ascending order of their keys."""

    @abstractmethod
    def _check_directory(self) -> None:
        """Verify that the directory finds every entry that is in use, and no other."""

    # -- changes ---------------------------------------------------------------------------------

    def insert(self, key: int, kinds: Int32s, sid: int) -> None:
        """Add a sid to the lists of these kinds of a key."""
        self._searched = None
        self._loosen()
        entry = self._put(key)
        self.lists.insert(self.width * np.int32(entry) + kinds, sid)

    def delete(self, key: int, kinds: Int32s, sid: int) -> bool:
        """Take a sid out of the lists of these kinds; False, and no change, if one lacks it."""
        entry = self._find(key)
        if entry == NONE or not self.lists.delete(self.width * np.int32(entry) + kinds, sid):
            return False
        self._searched = None
        self._loosen()
        own = slice(self.width * entry, self.width * (entry + 1))
        if (self.lists.begins[own] == self.lists.ends[own]).all():
            self._remove(entry)
        return True

    def _loosen(self) -> None:
        """Own every array, with room for one more entry at least: O(size), rarely."""
        state = self.state
        full = state[FREE] == NONE and state[USED] == len(self.keys)
        if full or self._built:
            used = int(state[USED])
            capacity = used + max(_LEAST_ROOM, used // 2)
            keys = np.zeros(capacity, np.int64)
            keys[:used] = self.keys[:used]
            self.lists.extend(capacity * self.width)
            self._grow(capacity)
            self.keys = keys
            self._built = False

    # -- looking inside --------------------------------------------------------------------------

    @property
    def searched(self) -> KeyedArrays:
        """What kernels search; it is made once after a change."""
        if self._searched is None:
            of_lists = self.lists.begins, self.lists.ends, self.lists.items
            self._searched = frozen(KeyedArrays(self.keys, self.directory, *of_lists))
        return self._searched

    @property
    def n_sids(self) -> int:
        """How many sids all lists hold together."""
        return self.lists.n_entries

    @property
    def n_keys(self) -> int:
        """How many distinct keys there are."""
        return int(self.state[N_KEYS])

    def contents(self) -> tuple[Int64s, Int32s, Int32s]:
        """Keys, kinds and sids of everything, in this order: O(size)."""
        entries, kinds = self.entries(), np.arange(self.width, dtype=np.int32)
        numbers = (self.width * entries[:, None] + kinds).ravel()
        begins = self.lists.begins[numbers].astype(np.int64)
        lengths = self.lists.ends[numbers] - begins
        places = ranges(begins, lengths)
        return (
            np.repeat(np.repeat(self.keys[entries], self.width), lengths),
            np.repeat(np.tile(kinds, len(entries)), lengths),
            self.lists.items[places],
        )

    def check(self) -> None:
        """Verify the directory, the lists, and that no entry is without sids: O(size log size)."""
        state, used = self.state, int(self.state[USED])
        assert 1 <= used <= len(self.keys), "more entries are used than there are"
        assert self.lists.n_lists == self.width * len(self.keys), "entries and lists differ"
        self.lists.check()
        self._check_directory()
        entries = self.entries()
        assert len(entries) == state[N_KEYS], "entries are miscounted"
        ordered = self.keys[entries]
        assert (ordered[1:] > ordered[:-1]).all(), "keys are out of order"
        lengths = (self.lists.ends - self.lists.begins).reshape(-1, self.width).sum(axis=1)
        assert (lengths[entries] > 0).all(), "an entry has no sids"
        assert int(lengths[entries].sum()) == self.n_sids, "sids belong to no entry"
        free, number = int(state[FREE]), 0
        while free != NONE and number < used:
            assert 0 < free < used, "a free entry is beyond those used"
            number += 1
            free = int(self.keys[free])
        assert number + len(entries) + 1 == used, "free entries are miscounted"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The built form, which it takes on again after changes: O(1) or O(size)."""
        if not self._built:
            self._take(*self._plant(*self.contents(), self.width))
        offsets, items = self.lists.pack()
        return {
            "keys": read_only(self.keys),
            self.directory_name: read_only(self.directory),
            "offsets": read_only(offsets),
            "items": read_only(items),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], width: int) -> Self:
        """Search the given arrays where they are; SnapshotError if their sizes disagree: O(1)."""
        names = ("keys", cls.directory_name, "offsets", "items")
        keys, directory, offsets, items = (np.asarray(arrays[name]) for name in names)
        fit = (
            keys.dtype == np.int64
            and all(array.dtype == np.int32 for array in (directory, offsets, items))
            and all(array.ndim == 1 for array in (keys, offsets, items))
            and len(keys) > 0
            and directory.shape == cls._shape(len(keys) - 1)
            and len(offsets) == width * len(keys) + 1
            and (int(offsets[0]), int(offsets[-1])) == (0, len(items))
        )
        if not fit:
            raise unfit("a predicate index")
        return cls(read_only(keys), read_only(directory), IdLists(offsets, read_only(items)), width)
