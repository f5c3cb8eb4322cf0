"""Keys: constants and values of one kind, as numbers and bytes that sort as they do.

A key is eight bytes as one unsigned number, its *prefix*, a length, and the rest, its *tail*, in
words of four bytes, each as a number too::

    integer     prefix = value + 2**63                      length 8
    float       prefix = bits, all flipped if negative,     length 8    -0.0 is 0.0, NaN one key
                else with the sign flipped                              above all others
    timestamp   microseconds since 1970 as an integer       length 8
    string      first 8 bytes of the UTF-8, big-endian      its own     tail: the other bytes

    "kettle"      6b 65 74 74 6c 65 00 00, 6
    "kettle cup"  6b 65 74 74 6c 65 20 63, 10, tail 75 70 00 00

Keys are compared by prefix, tail and length, in this order; a string that only has more zero
bytes than another one is longer.

A value need not be one that a constant can have: 2.5 among integers, a nanosecond among
microseconds, an integer that no float equals. It lies between two keys, and becomes the lower one
with a length of 9, which is above it and below the next. Below all keys is length 0, above all
the highest prefix with length 9.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bittern.arrays import Int32s, Int64s
from bittern.errors import OptionError, brief
from bittern.jit import frozen, i4w, i8r, kernel, u1r, u8w, void
from bittern.literature.pb_tree.pages import NUMBER_BYTES, TreeKeys
from bittern.literature.pb_tree.tree import of_numbers
from bittern.model.numbers import INT64_MAX, INT64_MIN, WHOLE_FLOATS, exact
from bittern.model.rank.space import NUMBER, STRING, TIME
from bittern.stabbing.values import NANOSECONDS, Values, decimals, kind_name, read

KINDS = {"integer": NUMBER, "float": NUMBER, "string": STRING, "timestamp": TIME}
"""Kinds of keys, and which values they are."""

_SIGN = np.uint64(1 << 63)
_BITS, _FLOAT = struct.Struct("=q"), struct.Struct("=d")
_BETWEEN = 9
_BELOW_ALL, _ABOVE_ALL = (0, 0), (2**64 - 1, _BETWEEN)


_NUMBERS = of_numbers(np.empty(0, np.int64))
_ZERO = np.zeros(1, np.int32)


class EncodedKeys(NamedTuple):
    """Keys, and which of them are not NULL; ``data`` sorts as they do."""

    keys: TreeKeys
    valid: NDArray[np.bool_]
    data: Any

    def order(self) -> Int64s:
        """Positions of what is not NULL, ascending by key: O(n), or O(n log n) if not sorted."""
        prefixes, lengths = self.keys.prefixes, self.keys.lengths
        if isinstance(self.data, pa.Array):
            order = pc.array_sort_indices(self.data).to_numpy().astype(np.int64)
        elif len(lengths):
            order = np.lexsort((lengths, prefixes))
        elif (prefixes[1:] >= prefixes[:-1]).all():
            order = np.arange(len(prefixes))
        else:
            order = np.argsort(prefixes, kind="stable")
        return np.asarray(order[self.valid[order]], np.int64)

    def take(self, order: Int64s) -> TreeKeys:
        """Some of the keys, as kernels take them."""
        keys = self.keys
        if not len(keys.lengths):
            return frozen(keys._replace(prefixes=keys.prefixes[order]))
        prefixes, lengths, starts, tails = keys
        return frozen(TreeKeys(prefixes[order], lengths[order], starts[order], tails))


def encode(kind: str, values: Any, what: str) -> EncodedKeys:
    """Values of any form as keys of a kind; OptionError if they are of another kind. O(n)."""
    given = read(values, what)
    if given.kind is None:
        given = Values(KINDS[kind], np.zeros(len(given.data), np.int64), given.valid)
        kind = "integer"  # all of them NULL: whatever they are
    elif given.kind != KINDS[kind]:
        raise OptionError(f"{what} are {kind_name(given.kind)}, but the index has {kind} keys")
    if kind == "string":
        data = given.data.cast(pa.large_binary())
        return EncodedKeys(_of_strings(data), given.is_valid, data)
    data = decimals(given) if given.kind == NUMBER and given.scale else given.data
    if kind == "timestamp":
        keys = _of_times(data, given.scale)
    elif kind == "integer":
        keys = _of_integers(data)
    else:
        keys = _of_floats(data)
    return EncodedKeys(keys, given.is_valid, data)


class OneKey(NamedTuple):
    """One key; its prefix is ``number`` + 2**63, and so ``number`` is signed."""

    number: int
    length: int = NUMBER_BYTES
    tail: Int32s = _ZERO


def encode_one(kind: str, value: Any, what: str) -> OneKey | None:
    """One value as a key, None if it is NULL; the usual types on a shorter way than ``encode``."""
    own = type(value)
    if kind == "float":
        if own is float or (own is int and abs(value) <= WHOLE_FLOATS):
            return OneKey(_float_number(value))
    elif kind == "integer":
        if own is int and INT64_MIN <= value <= INT64_MAX:
            return OneKey(value)
    elif kind == "string" and own is str:
        with contextlib.suppress(UnicodeEncodeError):  # a lone surrogate is refused below
            return _one_string(value.encode())
    keys, valid, _ = encode(kind, [value], what)
    if not valid[0]:
        return None
    number = int(keys.prefixes[0]) - 2**63
    return OneKey(number, int(keys.lengths[0]), keys.tails) if len(keys.lengths) else OneKey(number)


def keys_of(key: OneKey) -> TreeKeys:
    """One key as an array of keys."""
    prefixes = np.array([key.number], np.int64)
    if key.length == NUMBER_BYTES:
        return of_numbers(prefixes)
    lengths, starts = np.array([key.length], np.int32), np.zeros(1, np.int64)
    return frozen(of_numbers(prefixes)._replace(lengths=lengths, starts=starts, tails=key.tail))


def _one_string(text: bytes) -> OneKey:
    number = int.from_bytes(text[:8].ljust(8, b"\0")) - 2**63
    if len(text) <= NUMBER_BYTES:
        return OneKey(number, len(text))
    rest = text[8:] + bytes(-len(text) % 4)
    return OneKey(number, len(text), np.frombuffer(rest, ">i4").astype(np.int32))


def check_constants(encoded: EncodedKeys, kind: str, most: int) -> None:
    """Refuse what is NULL, no key of this kind, or longer than ``most`` bytes."""
    if not encoded.valid.all():
        row = int(np.argmin(encoded.valid))
        raise OptionError(f"constant {row} is NULL: nothing can be compared with NULL")
    lengths = encoded.keys.lengths
    if not len(lengths):
        return
    if kind == "string":
        wrong = lengths > most
        why = f"longer than {most} bytes, the most for pages of this size: use larger pages"
    else:
        wrong = lengths != NUMBER_BYTES
        why = f"not a key of kind {kind} in 64 bits: use another kind"
    if wrong.any():
        row = int(np.argmax(wrong))
        data = encoded.data[row]
        shown = data.as_py().decode() if isinstance(data, pa.Scalar) else data
        raise OptionError(f"constant {row}, {brief(shown)}, is {why}")


# -- numbers and times -------------------------------------------------------------------------


def float_prefixes(floats: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Floats as numbers in the same order."""
    with np.errstate(invalid="ignore"):  # a signalling NaN, before it becomes the usual one
        bits = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.uint64)  # + 0.0: no -0.0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _float_number(number: float) -> int:
    """The same for one number, less 2**63."""
    if number != number:  # noqa: PLR0124
        number = math.nan  # of all its forms, one
    (bits,) = _BITS.unpack(_FLOAT.pack(number + 0.0))
    return int(bits) if bits >= 0 else int(bits) ^ INT64_MAX


def _of_integers(data: NDArray[Any]) -> TreeKeys:
    if data.dtype == np.float64:
        with np.errstate(invalid="ignore"):  # what is not finite is not small either
            whole = (np.abs(data) < WHOLE_FLOATS) & (data == np.floor(data))
        if whole.all():
            data = data.astype(np.int64)
    return of_numbers(data) if data.dtype == np.int64 else _of_each(data, _whole)


def _of_floats(data: NDArray[Any]) -> TreeKeys:
    if data.dtype == np.float64:
        return _NUMBERS._replace(prefixes=float_prefixes(data))
    if data.dtype == np.int64 and _within(data, int(WHOLE_FLOATS)):
        return _of_floats(data.astype(np.float64))
    return _of_each(data, _between_floats)


def _of_times(data: Int64s, scale: int) -> TreeKeys:
    if scale == 0:
        return of_numbers(data)
    if scale == NANOSECONDS:
        micros = data // 1000
        keys = of_numbers(micros)
        if (micros * 1000 == data).all():
            return keys
        lengths = np.where(micros * 1000 == data, NUMBER_BYTES, _BETWEEN).astype(np.int32)
        return keys._replace(lengths=lengths, starts=np.zeros(len(data), np.int64), tails=_ZERO)
    factor = 10**-scale
    if _within(data, INT64_MAX // factor):
        return of_numbers(data * factor)
    return _of_each(data * np.array(1, object) * factor, _whole)


def _within(data: Int64s, limit: int) -> bool:
    """Whether all are from -limit to limit, which the absolute of the lowest number is not."""
    return bool(((data >= -limit) & (data <= limit)).all())


def _of_each(data: NDArray[Any], key_of: Callable[[Any], tuple[int, int]]) -> TreeKeys:
    """One by one, where no array of 64 bits holds them all."""
    pairs = [key_of(each) for each in data.tolist()]
    prefixes = np.array([prefix for prefix, _ in pairs], np.uint64)
    lengths = np.array([length for _, length in pairs], np.int32)
    return TreeKeys(prefixes, lengths, np.zeros(len(pairs), np.int64), _ZERO)


def _whole(number: Any) -> tuple[int, int]:
    """A number among integers."""
    if isinstance(number, float) and not math.isfinite(number):
        return _BELOW_ALL if number < 0 else _ABOVE_ALL
    number = exact(number)
    lower = math.floor(number)
    if lower < INT64_MIN:
        return _BELOW_ALL
    if lower > INT64_MAX:
        return _ABOVE_ALL
    return lower + 2**63, NUMBER_BYTES if lower == number else _BETWEEN


def _between_floats(number: Any) -> tuple[int, int]:
    """A number among floats: itself, or the next float below and a length above it."""
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf if number > 0 else -math.inf
    if isinstance(number, float) or (math.isfinite(nearest) and exact(nearest) == exact(number)):
        return _float_number(nearest) + 2**63, NUMBER_BYTES
    if nearest == math.inf or (math.isfinite(nearest) and exact(nearest) > exact(number)):
        nearest = math.nextafter(nearest, -math.inf)
    return _float_number(nearest) + 2**63, _BETWEEN


# -- strings -----------------------------------------------------------------------------------


def _of_strings(data: pa.Array) -> TreeKeys:
    offsets = np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1]
    held = data.buffers()[2]
    text = np.frombuffer(held, np.uint8) if held is not None else np.empty(0, np.uint8)
    lengths = np.diff(offsets)
    words = np.where(lengths > 8, (lengths - 5) >> 2, 0)
    starts = np.cumsum(words) - words
    prefixes, tails = np.empty(len(data), np.uint64), np.empty(int(words.sum()), np.int32)
    _pack(offsets, text, starts, prefixes, tails)
    return TreeKeys(prefixes, lengths.astype(np.int32), starts, tails)


@kernel(void, i8r, u1r, i8r, u8w, i4w)
def _pack(offsets: Any, text: Any, starts: Any, prefixes: Any, tails: Any) -> None:
    for row in range(len(starts)):
        begin, end = offsets[row], offsets[row + 1]
        prefix = np.uint64(0)
        for k in range(8):
            byte = np.uint64(text[begin + k]) if begin + k < end else np.uint64(0)
            prefix = (prefix << np.uint64(8)) | byte
        prefixes[row] = prefix
        at, place = begin + 8, starts[row]
        while at < end:
            word = np.uint32(0)
            for k in range(4):
                byte32 = np.uint32(text[at + k]) if at + k < end else np.uint32(0)
                word = np.uint32(word << np.uint32(8)) | byte32
            tails[place] = np.int32(word)
            at += 4
            place += 1
