"""Word table: an immutable set of 64-bit integers in one array, found by hash.

The four members 3, 4, 20 and -1, with 0 as the word that marks a free slot::

    slots   0  20  4  0  0  3  -1  0
    head    0  4                         a word that is no member, and how many members there are
    key     1 word                       of the hash

A member's hash picks its home slot, linear probing goes on from there, and half of the slots at
least stay free: a look-up is one cache miss, whether it finds or not. The hash has a key, drawn
from all members (``model/hashing.py``), so that members that collide cannot be chosen. The same
members are the same bytes. Memory: 16 to 32 bytes per member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s, Mask, record_of
from bittern.errors import SnapshotError
from bittern.jit import b1, b1w, frozen, i8, i8r, i8w, inline, kernel, tuple_type, u8r, void
from bittern.model.hashing import hash_word, multiplier_of
from bittern.model.numbers import INT64_MIN


class WordArrays(NamedTuple):
    """What kernels see of a word table; the module's docstring draws it."""

    slots: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    key: npt.NDArray[np.uint64]


WORDS = tuple_type(WordArrays, i8r, i8r, u8r)
_WORDS_IN_THE_MAKING = tuple_type(WordArrays, i8w, i8r, u8r)
_DTYPES = (np.int64, np.int64, np.uint64)
_FREE, _COUNT = 0, 1  # in the head


@inline
def _slot_of(table: Any, word: Any) -> Any:
    """The slot where probing for a word ends: its own, or a free one.

    Only a damaged table has no free slot: then it ends after all of them.
    """
    mask = np.uint64(len(table.slots) - 1)
    at = hash_word(word, table.key[0]) & mask
    for _ in range(len(table.slots)):
        if table.slots[at] == word or table.slots[at] == table.head[_FREE]:
            break
        at = (at + np.uint64(1)) & mask
    return at


@kernel(void, _WORDS_IN_THE_MAKING, i8r)
def _fill(table: Any, words: Any) -> None:
    for i in range(len(words)):
        table.slots[_slot_of(table, words[i])] = words[i]


@kernel(void, WORDS, i8r, b1w)
def _find_all(table: Any, words: Any, found: Any) -> None:
    for i in range(len(words)):
        is_there = table.slots[_slot_of(table, words[i])] == words[i]
        found[i] = is_there and words[i] != table.head[_FREE]


@kernel(b1, WORDS, i8)
def _find_one(table: Any, word: Any) -> Any:
    return table.slots[_slot_of(table, word)] == word and word != table.head[_FREE]


class WordTable:
    """An immutable set of 64-bit integers; ``build`` makes one, ``find_batch`` asks it."""

    def __init__(self, arrays: WordArrays) -> None:
        typed: Any = map(np.ascontiguousarray, arrays, _DTYPES)  # what kernels are compiled for
        self._arrays = frozen(WordArrays(*typed))

    def __len__(self) -> int:
        return int(self._arrays.head[_COUNT])

    @classmethod
    def build(cls, words: Int64s) -> WordTable:
        """Of distinct words in ascending order. O(words)."""
        head = np.array([_absent(words), len(words)])
        slots = np.full(2 << max(len(words) - 1, 0).bit_length(), head[_FREE])
        table = cls(WordArrays(slots, head, np.array([multiplier_of(words)])))
        _fill(table._arrays._replace(slots=slots), words)
        return table

    def find_batch(self, words: Int64s) -> Mask:
        """Which of these are members. O(words)."""
        found = np.empty(len(words), np.bool_)
        _find_all(self._arrays, np.ascontiguousarray(words), found)
        return found

    def find_one(self, word: int) -> bool:
        """Whether one is a member. O(1)."""
        return bool(_find_one(self._arrays, word))

    def words(self) -> Int64s:
        """The members, ascending. O(members x log members)."""
        slots = self._arrays.slots
        return np.sort(slots[slots != self._arrays.head[_FREE]])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """To be saved."""
        return self._arrays._asdict()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> WordTable:
        """The table again, in place; looks at sizes only."""
        table = cls(record_of(WordArrays, arrays))
        slots, head, key = table._arrays
        n = len(slots)
        _demand(n >= 2 and n & (n - 1) == 0, "slots are not a power of two")
        _demand(len(head) == 2 and len(key) == 1, "the head or the key is of another length")
        _demand(0 <= 2 * int(head[_COUNT]) <= n, "more than half of the slots are taken")
        return table

    def check(self) -> None:
        """Raise SnapshotError unless every invariant holds. O(slots)."""
        words = self.words()
        _demand(len(words) == len(self), "the number of members is wrong")
        _demand(bool((words[1:] > words[:-1]).all()), "two slots hold one word")
        _demand(bool(self.find_batch(words).all()), "a word is not found")


def _absent(words: Int64s) -> int:
    """A word that is not among these, which ascend."""
    if not len(words) or words[0] > INT64_MIN:
        return INT64_MIN
    gaps = np.flatnonzero(words != INT64_MIN + np.arange(len(words)))
    return INT64_MIN + (int(gaps[0]) if len(gaps) else len(words))


def _demand(holds: bool, otherwise: str) -> None:  # noqa: FBT001
    if not holds:
        raise SnapshotError(f"damaged word table: {otherwise}")
