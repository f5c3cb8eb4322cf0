"""Arrays and objects of variants as Python values, for the terms that read them.

The layout is in ``variant.py``. ``TreeReader`` reads one value at a time, as deep as it goes::

    03 02 00 02 04  0c 01  0c 02        an array of 2 elements, at 0 and 2 of 4 bytes: [1, 2]

The bytes may be anything: what is corrupt, or would take longer to read than its bytes are many,
is a value without a type. Numbers become what they are elsewhere in variants. O(bytes).
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.model.events.json.entries import MAX_DEPTH
from bittern.model.events.variant.values import ARRAY, OBJECT, SHORT_STRING

_FLOAT_DIGITS = 10**15
_EXACT_POWERS = 22
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_DAY = dt.date(1970, 1, 1)
#: What cannot be read, or has no type.
UNREADABLE = object()


class TreeReader:
    """Reads values of a batch of variants by where their headers are."""

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        ends: npt.NDArray[np.int64],
        metadata: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]],
    ) -> None:
        self._data, self._ends = data, ends
        self._metadata, self._offsets = metadata
        self._keys: tuple[int, list[str]] = (-1, [])

    def __call__(self, row: int, at: int) -> Any:
        """The value of a row whose header is at some place."""
        try:
            if self._keys[0] != row:
                raw = self._metadata[self._offsets[row] : self._offsets[row + 1]].tobytes()
                self._keys = row, _dictionary(raw)
            tree = _Tree(self._data[at : self._ends[row]].tobytes(), self._keys[1])
            return tree.value(0, 0)
        except (IndexError, ValueError, OverflowError, struct.error):
            return UNREADABLE


def _number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + width], "little")


def _signed(data: bytes, at: int, width: int) -> int:
    value = _number(data, at, width)
    return value - (value >> 8 * width - 1 << 8 * width)


def _dictionary(data: bytes) -> list[str]:
    width = (data[0] >> 6) + 1
    count = _number(data, 1, width)
    if (count + 2) * width >= len(data):
        raise IndexError
    ends = [_number(data, 1 + width * (i + 1), width) for i in range(count + 1)]
    text = 1 + width * (count + 2)
    if ends != sorted(ends):  # keys that overlap would be longer than their bytes
        raise IndexError
    return [data[text + a : text + b].decode() for a, b in pairwise(ends)]


class _Tree:
    """One value being read; it cannot have more parts than bytes."""

    def __init__(self, data: bytes, keys: list[str]) -> None:
        self._data, self._keys = data, keys
        self._budget = len(data)

    def value(self, at: int, depth: int) -> Any:
        self._budget -= 1
        if self._budget < 0 or depth > MAX_DEPTH:
            raise IndexError
        header = self._data[at]
        basic, kind = header & 3, header >> 2
        if basic == SHORT_STRING:
            return self._bytes(at + 1, kind).decode()
        if basic == OBJECT:
            return self._object(at, kind, depth)
        if basic == ARRAY:
            return self._array(at, kind, depth)
        read = _PRIMITIVES.get(kind)
        return UNREADABLE if read is None else read(self._data, at + 1)

    def _bytes(self, at: int, size: int) -> bytes:
        if at + size > len(self._data):
            raise IndexError
        return self._data[at : at + size]

    def _object(self, at: int, kind: int, depth: int) -> dict[str, Any]:
        width, id_width, count_width = (
            (kind & 3) + 1,
            (kind >> 2 & 3) + 1,
            4 if kind >> 4 & 1 else 1,
        )
        count = self._count(at + 1, count_width)
        ids = at + 1 + count_width
        offsets = ids + count * id_width
        values = offsets + (count + 1) * width
        found = {}
        for i in range(count):
            key = self._keys[_number(self._data, ids + i * id_width, id_width)]
            place = _number(self._data, offsets + i * width, width)
            found[key] = self.value(values + place, depth + 1)
        return found

    def _array(self, at: int, kind: int, depth: int) -> list[Any]:
        width, count_width = (kind & 3) + 1, 4 if kind >> 2 & 1 else 1
        count = self._count(at + 1, count_width)
        offsets = at + 1 + count_width
        values = offsets + (count + 1) * width
        places = [_number(self._data, offsets + i * width, width) for i in range(count)]
        return [self.value(values + place, depth + 1) for place in places]

    def _count(self, at: int, width: int) -> int:
        count = _number(self._data, at, width)
        if count > self._budget:
            raise IndexError
        return count


def _decimal(data: bytes, at: int, width: int) -> Any:
    """An integer or a float if it stands for the decimal, as in ``values.py``."""
    places, mantissa = _number(data, at, 1), _signed(data, at + 1, width)
    while places > 0 and abs(mantissa) >= _FLOAT_DIGITS and mantissa % 10 == 0:
        mantissa, places = mantissa // 10, places - 1
    if places == 0:
        return mantissa
    if places <= _EXACT_POWERS and abs(mantissa) < _FLOAT_DIGITS:
        return mantissa / 10**places
    digits = tuple(map(int, str(abs(mantissa))))
    return Decimal((int(mantissa < 0), digits, -places))


def _text(data: bytes, at: int) -> bytes:
    size = _number(data, at, 4)
    if at + 4 + size > len(data):
        raise IndexError
    return data[at + 4 : at + 4 + size]


def _moment(microseconds: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=microseconds)


#: By type what reads a primitive, from the data and where its bytes begin.
_PRIMITIVES: dict[int, Any] = {
    0: lambda _data, _at: None,
    1: lambda _data, _at: True,
    2: lambda _data, _at: False,
    3: lambda data, at: _signed(data, at, 1),
    4: lambda data, at: _signed(data, at, 2),
    5: lambda data, at: _signed(data, at, 4),
    6: lambda data, at: _signed(data, at, 8),
    7: lambda data, at: struct.unpack_from("<d", data, at)[0],
    8: lambda data, at: _decimal(data, at, 4),
    9: lambda data, at: _decimal(data, at, 8),
    10: lambda data, at: _decimal(data, at, 16),
    11: lambda data, at: _FIRST_DAY + dt.timedelta(days=_signed(data, at, 4)),
    12: lambda data, at: _moment(_signed(data, at, 8)),
    13: lambda data, at: _moment(_signed(data, at, 8)),
    14: lambda data, at: struct.unpack_from("<f", data, at)[0],
    15: _text,
    16: lambda data, at: _text(data, at).decode(),
    18: lambda data, at: _moment(_signed(data, at, 8) // 1000),
    19: lambda data, at: _moment(_signed(data, at, 8) // 1000),
}
