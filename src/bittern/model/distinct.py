"""Equal strings get one number: what Arrow's ``dictionary_encode`` does, under a secret key.

Arrow hashes without a key, and its hash of up to sixteen bytes can be undone by hand: 160,000
strings that all collide take it half a minute. So strings that strangers choose are numbered here,
in the order of their first use::

    strings   red  tan  red  NULL  tan        codes    0  1  0  2  1
                                              firsts   0  1  3

A string's hash picks its home slot, linear probing goes on from there, and half of the slots stay
free (``strings.py``). O(bytes), and 16 to 32 bytes of slots for each string, which are given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Int32s, starts_of
from bittern.jit import b1r, i4w, i8, i8r, i8w, kernel, u1r, u8r, u8w
from bittern.model.hashing import secret_key
from bittern.model.strings import (
    StringTable,
    arrow_strings,
    hash_bytes,
    index_held,
    same_bytes,
    slot_of,
)

_FREE, _ONE = np.uint64(0), np.uint64(1)


class Numbered(NamedTuple):
    """The number of each string, and by number the first string that has it."""

    codes: Int32s
    firsts: npt.NDArray[np.int64]


@kernel(i8, u1r, i8r, b1r, u8r, u8w, i4w, i8w)
def _number(
    data: Any, offsets: Any, missing: Any, key: Any, slots: Any, codes: Any, firsts: Any
) -> Any:
    """Fill codes and firsts; returns how many numbers there are. A slot is as in ``strings.py``."""
    mask = np.uint64(len(slots) - 1)
    count: Any = np.int64(0)
    for i in range(len(codes)):
        is_missing = len(missing) > 0 and missing[i]
        start, stop = offsets[i], offsets[i] if is_missing else offsets[i + 1]
        hashed = hash_bytes(data, start, stop, np.int64(is_missing), key)
        at = hashed & mask
        number = np.int64(-1)
        while number < 0:
            slot = slots[at]
            known = index_held(slot, hashed)
            if slot == _FREE:
                number = count
                slots[at] = slot_of(hashed, count)
                firsts[count] = i
                count += 1
            elif known >= 0:
                first = firsts[known]
                begin, length = offsets[first], offsets[first + 1] - offsets[first]
                if len(missing) > 0 and (missing[first] or is_missing):
                    like = missing[first] == is_missing
                else:
                    like = length == stop - start and same_bytes(data, begin, data, start, length)
                if like:
                    number = known
            at = (at + _ONE) & mask
        codes[i] = number
    return count


def distinct(strings: pa.Array) -> Numbered:
    """Number strings, or bytes; NULL is one of its own. O(bytes)."""
    data, offsets, valid = arrow_strings(strings)
    missing = np.empty(0, np.bool_) if valid is None else ~valid
    slots = np.zeros(1 << max(1, (2 * len(strings) - 1).bit_length()), np.uint64)
    codes, firsts = np.empty(len(strings), np.int32), np.empty(len(strings), np.int64)
    count = _number(data, offsets, missing, secret_key(), slots, codes, firsts)
    return Numbered(codes, firsts[:count])


def encoded(strings: pa.Array) -> pa.DictionaryArray:
    """The strings, none of them NULL, as codes and a dictionary in the order of first use."""
    codes, firsts = distinct(strings)
    return _dictionary_array(codes, strings.take(_arrow(firsts)))


def unified(chunks: Sequence[pa.DictionaryArray]) -> pa.DictionaryArray:
    """The chunks one after the other, under one dictionary in the order of first use. O(bytes)."""
    if len(chunks) == 1:
        return chunks[0]
    whole = pa.concat_arrays([chunk.dictionary for chunk in chunks])
    codes, firsts = distinct(whole)
    shifts = starts_of([len(chunk.dictionary) for chunk in chunks])[:-1].tolist()
    own = [
        codes[shift:][np.from_dlpack(chunk.indices)]
        for shift, chunk in zip(shifts, chunks, strict=True)
    ]
    return _dictionary_array(np.concatenate(own), whole.take(_arrow(firsts)))


def table_of(strings: pa.Array) -> StringTable:
    """A table that finds the first of equal strings; NULL is one of its own."""
    return StringTable.build(*_with_groups(strings))


def places_in(table: StringTable, strings: pa.Array) -> Int32s:
    """Where the strings are in what a table was made of, or -1."""
    return table.find_batch(*_with_groups(strings))


def _with_groups(
    strings: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int32] | int]:
    """Bytes, offsets and groups of strings; NULL is nothing in a group of its own."""
    if strings.null_count == 0:
        return *arrow_strings(strings)[:2], 0
    groups = strings.is_null().to_numpy(zero_copy_only=False).astype(np.int32)
    data, offsets, _ = arrow_strings(strings.fill_null(""))
    return data, offsets, groups


def _arrow(places: npt.NDArray[np.int64]) -> pa.Array:
    """Without a look for pandas (``strings.arrow_of``)."""
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])


def _dictionary_array(codes: Int32s, dictionary: pa.Array) -> pa.DictionaryArray:
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes)])
    return pa.DictionaryArray.from_arrays(indices, dictionary, safe=False)
