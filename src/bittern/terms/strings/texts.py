"""What functions of strings are made of: arguments as text, characters, slices, distinct values.

An Arrow column of strings is one buffer of bytes and where each value begins in it. Characters are
code points, and those begin where a byte is no continuation of another::

    values    a é          b            data     61 C3 A9 62
                                        offsets  0        3  4
    characters begin at bytes           starts   0  1     3   (and 4, the end)
    the first one of each value         first    0        2   (and 3)

so that character k of row i is at byte ``starts[first[i] + k]``, for all rows at once. O(bytes).

``each`` is for what neither Arrow nor NumPy has with Spark's meaning: it calls a Python function
once for every distinct combination of values, about 1 us a call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.casts.casts import cast
from bittern.terms.limits import MAX_COLUMN_BYTES, MAX_VALUE_BYTES
from bittern.terms.nodes import Call
from bittern.terms.scope import MeaninglessError, Scope, Value
from bittern.terms.types import is_number, type_name

Integers: TypeAlias = npt.NDArray[np.int64]
TOO_LONG = "the result is too long"
_BLOCK = 1 << 18


def constants_once(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function of columns, which computes one row where all of its arguments are constants."""

    @wraps(function)
    def evaluate(scope: Scope, call: Call, *values: Value) -> Value:
        if any(isinstance(value, pa.Array) for value in values):
            return function(scope, call, *values)
        own = Scope({}, 1)
        found = own.array(function(own, call, *values))[0]
        for failure in own.failures:
            scope.fail(True, failure.reason)
        return found

    return evaluate


def text(scope: Scope, value: Value) -> Value:
    """The value as a string."""
    kind = value.type
    if pa.types.is_string(kind):
        return value
    if pa.types.is_null(kind):
        return value.cast(pa.string())
    if pa.types.is_nested(kind):
        raise MeaninglessError(f"{type_name(kind)} is not text")
    return cast(scope, value, pa.string())


def texts(scope: Scope, *values: Value) -> list[Value]:
    """The values as strings."""
    return [text(scope, value) for value in values]


def text_or_bytes(scope: Scope, value: Value) -> Value:
    """A BINARY as it is, anything else as a string."""
    return value if pa.types.is_binary(value.type) else text(scope, value)


def number(scope: Scope, value: Value, kind: pa.DataType | None = None) -> Value:
    """The value as an INT, or another type of integers; numbers lose what is behind the point."""
    kind = kind or pa.int32()
    own = value.type
    if own == kind:
        return value
    if pa.types.is_null(own) or (pa.types.is_integer(own) and own.bit_width < kind.bit_width):
        return value.cast(kind)
    if is_number(own) or pa.types.is_string(own):
        return cast(scope, value, kind)
    raise MeaninglessError(f"{type_name(own)} is not a number")


def integers(scope: Scope, value: Value) -> Integers:
    """Integers, one per row; 0 where there is none."""
    array = scope.array(value)
    if array.null_count:
        array = array.fill_null(0)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)


def one(value: Value, what: str) -> Any:
    """The value of a constant in Python; ``MeaninglessError`` if it is a column."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    raise MeaninglessError(f"{what} must be a constant")


def where(mask: Any, array: pa.Array) -> pa.Array:
    """The values of the rows of a mask, NULL elsewhere."""
    mask = pa.array(mask) if isinstance(mask, np.ndarray) else mask
    return pc.if_else(mask, array, pa.scalar(None, array.type))


def all_there(scope: Scope, *values: Value) -> Mask:
    """The rows in which none of the values is NULL."""
    found = np.ones(scope.n_rows, dtype=np.bool_)
    for value in values:
        found &= scope.mask(pc.is_valid(value))
    return found


def sizes(scope: Scope, value: Value) -> Integers:
    """The bytes of each value, 0 where it is NULL."""
    return integers(scope, pc.binary_length(value))


def within_limits(scope: Scope, lengths: Integers) -> Mask:
    """The rows whose results, of so many bytes, fit into a value and a column; the others fail."""
    fits = lengths <= MAX_VALUE_BYTES
    room = min(MAX_COLUMN_BYTES, scope.spent.bytes_left)
    fits &= np.cumsum(np.where(fits, lengths, 0)) <= room
    scope.spent.built += int(lengths[fits].sum())
    scope.fail(~fits, TOO_LONG)
    return fits


class Characters:
    """Where the characters of each value are; the bytes of BINARY are its characters."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array
        _, offsets, data = array.buffers()
        start, stop = array.offset, array.offset + len(array) + 1
        self.offsets = np.frombuffer(offsets, dtype=np.int32, count=stop)[start:].astype(np.int64)
        self.data = np.frombuffer(data or b"", dtype=np.uint8)
        low, high = self.offsets[0], self.offsets[-1]
        used = self.data[low:high]
        self.starts: Integers | None = None
        first = self.offsets
        if pa.types.is_string(array.type) and (used >= 0x80).any():
            starts = np.flatnonzero((used & 0xC0) != 0x80) + low
            self.starts = np.append(starts, high)
            first = np.searchsorted(self.starts, self.offsets)
        self._first = first[:-1]
        self.counts = np.diff(first)

    def bytes_before(self, positions: Integers) -> Integers:
        """How many bytes of each value are in front of its character ``positions[i]``."""
        if self.starts is None:
            return positions
        places: Integers = self.starts[self._first + positions]
        return places - self.offsets[:-1]

    def characters_before(self, positions: Integers) -> Integers:
        """How many characters of each value are in front of its byte ``positions[i]``."""
        if self.starts is None:
            return positions
        found: Integers = np.searchsorted(self.starts, self.offsets[:-1] + positions)
        return found - self._first

    def cut(self, start: Integers, stop: Integers) -> pa.Array:
        """The characters from ``start`` to before ``stop`` of each value, wherever those are."""
        low = np.clip(start, 0, self.counts)
        high = np.clip(stop, low, self.counts)
        return self.cut_bytes(self.bytes_before(low), self.bytes_before(high))

    def cut_bytes(self, start: Integers, stop: Integers) -> pa.Array:
        """The bytes from ``start`` to before ``stop``, both within each value."""
        lengths = stop - start
        if not start.any() and (lengths == np.diff(self.offsets)).all():
            return self.array
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(offsets[-1], dtype=np.uint8)
        shift = self.offsets[:-1] + start - offsets[:-1]
        # In blocks of whole rows, as the place of each byte takes eight of them.
        row = 0
        while row < len(lengths):
            begin = offsets[row]
            last = int(np.searchsorted(offsets, begin + _BLOCK, side="right"))
            own = slice(row, max(last - 1, row + 1))
            end = offsets[own.stop]
            places = np.repeat(shift[own], lengths[own]) + np.arange(begin, end)
            data[begin:end] = self.data[places]
            row = own.stop
        return assembled(self.array, offsets, data)


def assembled(like: pa.Array, offsets: Integers, data: npt.NDArray[np.uint8]) -> pa.Array:
    """Strings (or BINARY) of these bytes, NULL where the array that they were made from is."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    made = pa.Array.from_buffers(like.type, len(like), buffers)
    return where(like.is_valid(), made) if like.null_count else made


def each(scope: Scope, kind: pa.DataType, function: Callable[..., Any], *values: Value) -> pa.Array:
    """A function of the Python values of each row; NULL where one of them is NULL.

    It is called once for each distinct combination. Where it raises ``ValueError`` the rows fail,
    and so do those whose results are too large.
    """
    present = all_there(scope, *values)
    rows = pa.array(np.flatnonzero(present))
    combined = np.zeros(len(rows), dtype=np.int64)
    chosen = np.zeros(min(len(rows), 1), dtype=np.int64)
    columns: list[Any] = []
    for value in values:
        if isinstance(value, pa.Scalar):
            columns.append(value.as_py())
            continue
        encoded = value.take(rows).dictionary_encode()
        columns.append((encoded.dictionary.to_pylist(), encoded.indices.to_numpy()))
        combined = combined * len(encoded.dictionary) + columns[-1][1]
        # Numbered anew for every column, combinations stay below the number of rows.
        _, chosen, combined = np.unique(combined, return_index=True, return_inverse=True)
    arguments = [
        [column[0][code] for code in column[1][chosen].tolist()]
        if isinstance(column, tuple)
        else [column] * len(chosen)
        for column in columns
    ]
    results: list[Any] = []
    failed: dict[str, list[int]] = {}
    size = 0
    for arguments_of_one in zip(*arguments, strict=True):
        result = None
        try:
            if size > MAX_COLUMN_BYTES:
                raise ValueError(TOO_LONG)  # noqa: TRY301
            result = function(*arguments_of_one)
        except ValueError as wrong:
            failed.setdefault(str(wrong), []).append(len(results))
        results.append(result)
        size += len(result) if isinstance(result, str | bytes) else 0
    places = np.full(scope.n_rows, len(results), dtype=np.int64)
    places[present] = combined
    found = pa.array([*results, None], kind)
    for reason, which in failed.items():
        scope.fail(np.isin(places, which), reason)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        places[~within_limits(scope, sizes(scope, found)[places])] = len(results)
    return found.take(pa.array(places))


def sized(length: int) -> None:
    """Give up a value that grows beyond what one may have, before it does."""
    if length > MAX_VALUE_BYTES:
        raise ValueError(TOO_LONG)
