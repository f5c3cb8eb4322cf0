"""String table: an exact, immutable map from (group, bytes) to a dense index, in flat arrays.

Attribute names live in one (group 0), string constants in another (group = their channel). The
three strings ``(0, "red") (0, "blue") (7, "red")`` are::

    data     r e d b l u e r e d         all bytes, one string after the other
    offsets  0     3       7     10      string i is data[offsets[i]:offsets[i+1]]
    groups   0     0       7
    slots    . 3 . . 1 . 2 .             0 is free, else  hash bits 32..63 | i + 1
    key      3 words                     of the hash

A string's hash picks its home slot by its low bits; linear probing goes on from there, and half of
the slots at least stay free. A slot carries the upper half of the hash, so a string that is not
in the table costs one cache miss and no comparison, and one that is costs one comparison, which
decides. The hash has a key (``model/hashing.py``), drawn from all that is in the table, so that
strings which collide cannot be chosen. Memory: 12 bytes and 16 to 32 bytes of slots per string,
plus its bytes.

The functions marked ``@inline`` are for other modules' kernels, which take a table as one argument
of type ``STRING_TABLE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bittern.arrays import record_of, starts_of
from bittern.errors import EventError, SnapshotError
from bittern.jit import (
    folded_product,
    i4r,
    i4w,
    i8,
    i8r,
    inline,
    kernel,
    prefetch,
    read_only,
    text,
    tuple_type,
    u1r,
    u1w,
    u8r,
    u8w,
    void,
)
from bittern.model.hashing import KEY_WORDS, hash_last, key_of


class StringTableArrays(NamedTuple):
    """What kernels see of a string table; the module's docstring draws it."""

    data: np.ndarray
    offsets: np.ndarray
    groups: np.ndarray
    slots: np.ndarray
    key: np.ndarray


STRING_TABLE = tuple_type(StringTableArrays, u1r, i8r, i4r, u8r, u8r)
_TABLE_IN_THE_MAKING = tuple_type(StringTableArrays, u1r, i8r, i4r, u8w, u8r)
_DTYPES = (np.uint8, np.int64, np.int32, np.uint64, np.uint64)

_MOST_STRINGS = 2**31 - 2  # an index is an int32
#: Strings that are few enough to be put together one by one (``arrow_of``).
_FEW = 1 << 14
_INDEX_BITS = np.uint64(32)
_INDEX_MASK = np.uint64(0xFFFFFFFF)
_FREE = np.uint64(0)
# The rows of what ``find_together`` takes, and how many strings at a time are worth while.
STARTS, STOPS, HASHES, FOUND, KEY_ROWS = range(5)
TOGETHER = 32
_ONE = np.uint64(1)


@inline
def byte_at(data: Any, at: Any) -> Any:
    """``data[at]`` as 64 bits; the unsigned index spares the test for negative ones."""
    return np.uint64(data[np.uint64(at)])


@inline
def word_at(data: Any, at: Any) -> Any:
    """The 8 bytes at ``at``, the first one lowest; compiles to a single load."""
    return (
        byte_at(data, at)
        | byte_at(data, at + 1) << np.uint64(8)
        | byte_at(data, at + 2) << np.uint64(16)
        | byte_at(data, at + 3) << np.uint64(24)
        | byte_at(data, at + 4) << np.uint64(32)
        | byte_at(data, at + 5) << np.uint64(40)
        | byte_at(data, at + 6) << np.uint64(48)
        | byte_at(data, at + 7) << np.uint64(56)
    )


@inline
def half_word_at(data: Any, at: Any) -> Any:
    """The 4 bytes at ``at``, the first one lowest."""
    return (
        byte_at(data, at)
        | byte_at(data, at + 1) << np.uint64(8)
        | byte_at(data, at + 2) << np.uint64(16)
        | byte_at(data, at + 3) << np.uint64(24)
    )


@inline
def _big_endian_word_at(data: Any, at: Any) -> Any:
    """The 8 bytes at ``at``, the first one highest: unsigned order is the bytes' order."""
    return (
        byte_at(data, at) << np.uint64(56)
        | byte_at(data, at + 1) << np.uint64(48)
        | byte_at(data, at + 2) << np.uint64(40)
        | byte_at(data, at + 3) << np.uint64(32)
        | byte_at(data, at + 4) << np.uint64(24)
        | byte_at(data, at + 5) << np.uint64(16)
        | byte_at(data, at + 6) << np.uint64(8)
        | byte_at(data, at + 7)
    )


@inline
def _last_word(data: Any, start: Any, stop: Any) -> Any:
    """The last 8 bytes; of a shorter string all bytes, some twice. Never reads outside it."""
    length = stop - start
    if length >= 8:
        return word_at(data, stop - 8)
    if length >= 4:
        return half_word_at(data, start) | half_word_at(data, stop - 4) << np.uint64(32)
    if length == 0:
        return np.uint64(0)
    middle = byte_at(data, start + (length >> 1)) << np.uint64(8)
    return byte_at(data, start) | middle | byte_at(data, stop - 1) << np.uint64(16)


@inline
def hash_bytes(data: Any, start: Any, stop: Any, salt: Any, key: Any) -> Any:
    """64 well-mixed bits of ``data[start:stop]``; O(length), 16 bytes a step."""
    at, mixed = start, key[0]
    while at + 16 < stop:
        mixed = folded_product(word_at(data, at) ^ key[1], word_at(data, at + 8) ^ mixed)
        at += 16
    first = word_at(data, at) if at + 8 < stop else np.uint64(0)
    last = _last_word(data, start, stop)
    mixed = folded_product(first ^ key[1], last ^ mixed)
    return hash_last(mixed, salt, stop - start, key)


@inline
def same_bytes(data_a: Any, start_a: Any, data_b: Any, start_b: Any, length: Any) -> Any:
    """Tell whether two strings of this length are equal; O(length), 8 bytes a step."""
    at = 0
    while at + 8 < length:
        if word_at(data_a, start_a + at) != word_at(data_b, start_b + at):
            return False
        at += 8
    last_a = _last_word(data_a, start_a, start_a + length)
    return last_a == _last_word(data_b, start_b, start_b + length)


@inline
def big_endian_prefix(data: Any, start: Any, stop: Any) -> Any:
    """The first 8 bytes, padded with zeros: orders strings as far as 8 bytes can."""
    if stop - start >= 8:
        return _big_endian_word_at(data, start)
    prefix = np.uint64(0)
    shift = np.uint64(56)
    for at in range(start, stop):
        prefix |= byte_at(data, at) << shift
        shift -= np.uint64(8)
    return prefix


@inline
def compare_bytes(
    data_a: Any, start_a: Any, stop_a: Any, data_b: Any, start_b: Any, stop_b: Any
) -> Any:
    """-1, 0 or 1 as string a is below, equal to or above b, byte by byte, then by length."""
    length_a, length_b = stop_a - start_a, stop_b - start_b
    shared = min(length_a, length_b)
    at = 0
    while at < shared:
        word_a = big_endian_prefix(data_a, start_a + at, start_a + min(at + 8, shared))
        word_b = big_endian_prefix(data_b, start_b + at, start_b + min(at + 8, shared))
        if word_a != word_b:
            return -1 if word_a < word_b else 1
        at += 8
    return np.int64(length_a > length_b) - np.int64(length_a < length_b)


@inline
def slot_of(hashed: Any, index: Any) -> Any:
    """A slot that is taken: the upper half of a hash, and an index. 0 is a free one."""
    return hashed >> _INDEX_BITS << _INDEX_BITS | np.uint64(index + 1)


@inline
def index_held(slot: Any, hashed: Any) -> Any:
    """The index in a slot that is taken; -1 where the string has another hash."""
    if (slot ^ hashed) >> _INDEX_BITS != _FREE:
        return np.int64(-1)
    return np.int64(slot & _INDEX_MASK) - 1


@inline
def _probe(table: Any, hashed: Any, data: Any, start: Any, stop: Any, group: Any) -> Any:
    """The slot where probing ends, and the index of this string there; -1 if it is not in.

    It ends at a free slot, which only a damaged table does not have: then after all of them.
    """
    mask = np.uint64(len(table.slots) - 1)
    at = hashed & mask
    for _ in range(len(table.slots)):
        slot = table.slots[at]
        if slot == _FREE:
            break
        index = index_held(slot, hashed)
        if index >= 0:
            first = table.offsets[index]
            length = table.offsets[index + 1] - first
            same = table.groups[index] == group and length == stop - start
            if same and same_bytes(table.data, first, data, start, length):
                return at, index
        at = (at + _ONE) & mask
    return at, np.int64(-1)


@inline
def find(table: Any, data: Any, start: Any, stop: Any, group: Any) -> Any:
    """The index of (group, ``data[start:stop]``), or -1. O(length), one or three cache misses."""
    hashed = hash_bytes(data, start, stop, group, table.key)
    return np.int32(_probe(table, hashed, data, start, stop, group)[1])


@inline
def find_together(table: Any, data: Any, keys: Any, n: Any, group: Any) -> None:
    """``find`` for ``n`` strings, by the rows of ``keys``, which wait for memory together."""
    mask = np.uint64(len(table.slots) - 1)
    for i in range(n):
        hashed = hash_bytes(data, keys[STARTS, i], keys[STOPS, i], group, table.key)
        keys[HASHES, i] = np.int64(hashed)
        prefetch(table.slots, np.int64(hashed & mask))
    for i in range(n):
        hashed = np.uint64(keys[HASHES, i])
        keys[FOUND, i] = index_held(table.slots[hashed & mask], hashed)
        prefetch(table.offsets, keys[FOUND, i])
        prefetch(table.groups, keys[FOUND, i])
    for i in range(n):
        if keys[FOUND, i] >= 0:
            prefetch(table.data, table.offsets[np.uint64(keys[FOUND, i])])
    for i in range(n):
        hashed = np.uint64(keys[HASHES, i])
        keys[FOUND, i] = _probe(table, hashed, data, keys[STARTS, i], keys[STOPS, i], group)[1]


@kernel(void, _TABLE_IN_THE_MAKING)
def _fill_slots(table: Any) -> None:
    for index in range(len(table.groups)):
        start, stop = table.offsets[index], table.offsets[index + 1]
        group = table.groups[index]
        hashed = hash_bytes(table.data, start, stop, group, table.key)
        at, found = _probe(table, hashed, table.data, start, stop, group)
        if found < 0:
            table.slots[at] = slot_of(hashed, index)


@kernel(void, STRING_TABLE, u1r, i8r, i4r, i4w)
def _find_all(table: Any, data: Any, offsets: Any, groups: Any, found: Any) -> None:
    for i in range(len(found)):
        found[i] = find(table, data, offsets[i], offsets[i + 1], groups[i])


@kernel(i8, STRING_TABLE, text, i8)
def _find_one(table: Any, data: Any, group: Any) -> Any:
    return np.int64(find(table, data, np.int64(0), np.int64(len(data)), np.int32(group)))


@kernel(void, u1r, i8r, i4r, i8r, u1w)
def gather_strings(data: Any, starts: Any, lengths: Any, offsets: Any, out: Any) -> None:
    """Copy strings to where ``offsets`` say, one after the other."""
    for i in range(len(starts)):
        for at in range(lengths[i]):
            out[offsets[i] + at] = data[starts[i] + at]


class StringTable:
    """An exact map from (group, bytes) to a dense index; immutable, memory-mappable.

    ``build`` makes one, ``find_batch`` and ``find_one`` ask it, ``arrays`` and ``from_arrays`` take
    it to disk and back, ``as_tuple`` is what other modules' kernels take.
    """

    def __init__(self, arrays: StringTableArrays) -> None:
        typed = map(np.ascontiguousarray, arrays, _DTYPES)  # what kernels are compiled for
        self.as_tuple = StringTableArrays(*map(read_only, typed))

    @classmethod
    def build(cls, data: np.ndarray, offsets: np.ndarray, groups: np.ndarray | int) -> StringTable:
        """Index all strings; of equal ones the first is found. O(bytes)."""
        count = len(offsets) - 1
        if count > _MOST_STRINGS:
            raise EventError(f"a string table holds at most {_MOST_STRINGS} strings, not {count}")
        groups = _per_string(groups, count)
        slots = np.zeros(1 << max(1, (2 * count - 1).bit_length()), np.uint64)
        key = key_of(data[offsets[0] : offsets[-1]], np.diff(offsets), groups)
        table = cls(StringTableArrays(data, offsets, groups, slots, key))
        _fill_slots(table.as_tuple._replace(slots=slots))
        return table

    @classmethod
    def of(cls, strings: Sequence[bytes], groups: np.ndarray | int) -> StringTable:
        """The same from Python strings, as bytes."""
        return cls.build(np.frombuffer(b"".join(strings), np.uint8), _offsets(strings), groups)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> StringTable:
        """The table that ``arrays`` described; copies nothing, looks at sizes only."""
        table = cls(record_of(StringTableArrays, arrays))
        count, slots = len(table), len(table.as_tuple.slots)
        _demand(len(table.as_tuple.offsets) == count + 1, "offsets and groups disagree")
        _demand(slots >= 2 and slots & (slots - 1) == 0, "slots are not a power of two")
        _demand(len(table.as_tuple.key) == KEY_WORDS, "the key is of another length")
        return table

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, read-only; O(1)."""
        return self.as_tuple._asdict()

    def find_batch(
        self, data: np.ndarray, offsets: np.ndarray, groups: np.ndarray | int
    ) -> np.ndarray:
        """The index of every (group, string), -1 where there is none; int32. O(bytes)."""
        found = np.empty(len(offsets) - 1, np.int32)
        _find_all(self.as_tuple, data, offsets, _per_string(groups, len(found)), found)
        return found

    def find_one(self, string: bytes, group: int) -> int:
        """The index of one (group, string), or -1; a batch of one takes several times as long."""
        return int(_find_one(self.as_tuple, string, group))

    def __len__(self) -> int:
        return len(self.as_tuple.groups)

    @property
    def nbytes(self) -> int:
        """What the arrays occupy."""
        return sum(array.nbytes for array in self.as_tuple)

    def check(self) -> None:
        """Raise SnapshotError unless every invariant holds; O(bytes)."""
        data, offsets, groups, slots, _ = self.as_tuple
        _demand(bool(offsets[0] == 0 and offsets[-1] == len(data)), "offsets miss some bytes")
        _demand(bool((np.diff(offsets) >= 0).all()), "offsets run backwards")
        held = np.sort(slots[slots != _FREE] & _INDEX_MASK).astype(np.int64) - 1
        _demand(2 * len(held) <= len(slots), "more than half of the slots are taken")
        if len(held):
            _demand(held[0] >= 0 and held[-1] < len(self), "a slot points nowhere")
        _demand(bool((np.diff(held) > 0).all()), "two slots hold one string")
        found = self.find_batch(data, offsets, groups)
        _demand(bool((found >= 0).all()), "a string is not found")
        _demand(bool((found <= np.arange(len(self))).all()), "a later twin is found")
        _demand(np.array_equal(np.unique(found), held), "a slot is out of reach")


def _per_string(groups: np.ndarray | int, count: int) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(groups, np.int32), count))


def _demand(holds: bool, otherwise: str) -> None:  # noqa: FBT001
    if not holds:
        raise SnapshotError(f"damaged string table: {otherwise}")


def _offsets(strings: Sequence[str | bytes]) -> np.ndarray:
    """Where each string begins if they lie one behind the other, and the end of the last."""
    return starts_of(np.fromiter(map(len, strings), np.int64, len(strings)))


def arrow_of(texts: Sequence[str]) -> pa.Array:
    """An Arrow array of Python strings.

    ``pa.array`` is faster, but first loads pandas where that is installed. That takes as long as
    building a small index does.
    """
    if len(texts) > _FEW:
        return pa.array(texts, type=pa.large_string())
    encoded = [text.encode() for text in texts]
    buffers = [None, pa.py_buffer(_offsets(encoded)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


def arrow_text(data: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """An Arrow array of strings over these bytes, without copying."""
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
    )


def arrow_integers(integers: np.ndarray) -> pa.Array:
    """An Arrow array of these integers, without copying and without pandas (``arrow_of``)."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(integers))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(integers.dtype), len(integers), buffers)


def arrow_strings(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The bytes, int64 offsets and validity (``None``: no nulls) of an Arrow string array.

    Views of Arrow's memory for (large) strings and binaries; string views and dictionaries, whose
    bytes do not lie in order, are written out first. A sliced array keeps the whole array's bytes.
    """
    array = _in_order(array)
    count = len(array)
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets_buffer, data_buffer = array.buffers()
    if count == 0 or offsets_buffer is None:
        offsets = np.zeros(count + 1, np.int64)
    else:
        stored = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)
        offsets = stored[array.offset : array.offset + count + 1].astype(np.int64, copy=False)
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", np.uint8)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    return data, offsets, valid


def _in_order(array: pa.Array) -> pa.Array:
    """The same strings in an array whose bytes lie one string after the other."""
    if isinstance(array, pa.ExtensionArray):  # such as Arrow's own JSON type
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = _in_order(array.dictionary)
        large = pa.large_binary() if _is_binary(values.type) else pa.large_string()
        return values.cast(large).take(array.indices)
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if not (_is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise EventError(f"expected strings, got an Arrow array of type {kind}")
    return array


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
