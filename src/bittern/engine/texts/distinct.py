"""Distinct byte strings, numbered in the order in which they were first seen.

Kernels look strings up and add them; between two calls there is room to be made. The strings
``red``, ``blue`` and ``red`` again are 0, 1 and 0::

    data     r e d b l u e . . .     offsets  0 3 7 . . .     size  2
    slots    . 2 . . 1 . . .         as in a string table (``model/strings.py``), with a secret key
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.jit import i8w, inline, kernel, read_only, tuple_type, u1w, u8r, u8w, void
from bittern.model.hashing import secret_key
from bittern.model.strings import arrow_text, byte_at, hash_bytes, index_held, same_bytes, slot_of

_FREE = np.uint64(0)
_ONE = np.uint64(1)


class DistinctArrays(NamedTuple):
    """What kernels see; the module's docstring draws it."""

    slots: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int64]
    key: npt.NDArray[np.uint64]


DISTINCT = tuple_type(DistinctArrays, u8w, i8w, u1w, i8w, u8r)


@inline
def number_of(strings: Any, data: Any, start: Any, stop: Any, most: Any) -> Any:
    """The number of ``data[start:stop]``, which is added if it is new. O(length).

    There must be room for it. -1 if it is new, and there are ``most`` already.
    """
    hashed = hash_bytes(data, start, stop, 0, strings.key)
    mask = np.uint64(len(strings.slots) - 1)
    at = hashed & mask
    while True:
        slot = strings.slots[at]
        if slot == _FREE:
            break
        known = index_held(slot, hashed)
        if known >= 0:
            first = strings.offsets[known]
            length = strings.offsets[known + 1] - first
            if length == stop - start and same_bytes(strings.data, first, data, start, length):
                return known
        at = (at + _ONE) & mask
    number = strings.size[0]
    if number >= most:
        return np.int64(-1)
    begin = strings.offsets[number]
    for i in range(stop - start):
        strings.data[begin + i] = byte_at(data, start + i)
    strings.offsets[number + 1] = begin + stop - start
    strings.slots[at] = slot_of(hashed, number)
    strings.size[0] = number + 1
    return number


@kernel(void, DISTINCT)
def _fill_slots(strings: Any) -> None:
    mask = np.uint64(len(strings.slots) - 1)
    for number in range(strings.size[0]):
        start, stop = strings.offsets[number], strings.offsets[number + 1]
        hashed = hash_bytes(strings.data, start, stop, 0, strings.key)
        at = hashed & mask
        while strings.slots[at] != _FREE:
            at = (at + _ONE) & mask
        strings.slots[at] = slot_of(hashed, number)


class Distinct:
    """Distinct byte strings. One thread at a time."""

    def __init__(self) -> None:
        #: What kernels take, after ``make_room``.
        self.arrays = DistinctArrays(
            np.zeros(2, dtype=np.uint64),
            np.zeros(1, dtype=np.int64),
            np.empty(0, dtype=np.uint8),
            np.zeros(1, dtype=np.int64),
            read_only(secret_key()),
        )

    def __len__(self) -> int:
        return int(self.arrays.size[0])

    def __getitem__(self, number: int) -> bytes:
        first, last = self.arrays.offsets[number : number + 2].tolist()
        return self.arrays.data[first:last].tobytes()

    def make_room(self, count: int, n_bytes: int) -> DistinctArrays:
        """Have room for so many more strings of so many bytes together. O(1), amortised."""
        slots, offsets, data, _, _ = own = self.arrays
        need, used = len(self) + count, int(offsets[len(self)])
        if len(offsets) <= need:
            own = own._replace(offsets=_larger(offsets, len(self) + 1, need + 1))
        if len(data) < used + n_bytes:
            own = own._replace(data=_larger(data, used, used + n_bytes))
        if len(slots) < 2 * need:
            size = 1 << (2 * need - 1).bit_length()
            own = own._replace(slots=np.zeros(size, dtype=np.uint64))
            _fill_slots(own)
        self.arrays = own
        return own

    def to_arrow(self) -> pa.Array:
        """All strings, which are UTF-8, as an Arrow array of their own."""
        offsets = self.arrays.offsets[: len(self) + 1].copy()
        return arrow_text(self.arrays.data[: offsets[-1]].copy(), offsets)


def _larger(array: npt.NDArray[Any], used: int, need: int) -> npt.NDArray[Any]:
    """A copy of what is used, with room for what is needed, and half as much again."""
    larger = np.empty(max(need, used + used // 2), array.dtype)
    larger[:used] = array[:used]
    return larger
