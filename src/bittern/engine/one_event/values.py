"""A mapping as the kernel reads it: two numbers for each value in use, and the strings as bytes.

With the attributes 0 = price, 1 = color and 2 = sold, the event ``{"price": 9.5, "color": "red",
"x": 1, "sold": False}`` becomes::

    longs   0 << 8 | FLOAT  bits   1 << 8 | STRING  3   2 << 8 | BOOLEAN  0
    text    red

Keys that no subscription mentions cost one look-up. Values are told apart by their exact type; what
is none of the usual ones (a decimal, a date, a list on the way) is left to the batch, which knows
all of them (``model/events/mappings.py``).
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from bittern.model.events.mappings import Heads
from bittern.model.tagged import BOOLEAN, FLOAT, INTEGER, OTHER, STRING, TIMESTAMP

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class Buffers(NamedTuple):
    """Where values are written: integers, the same memory as floats, and strings."""

    longs: memoryview
    reals: memoryview
    strings: list[str]


def read_mapping(
    event: dict[Any, Any], heads: Heads, longs: memoryview, reals: memoryview
) -> tuple[int, bytes]:
    """Write the values of an event; returns how many there are, and their strings.

    ``IndexError`` if there are more than there is room for. Some other exception if there is one
    that only the batch can read, such as an integer of more than 64 bits or half a surrogate pair.
    """
    strings: list[str] = []
    n = _read(event, heads, Buffers(longs, reals, strings), 0) >> 1
    return n, "".join(strings).encode()


def _read(event: dict[Any, Any], heads: Heads, buffers: Buffers, at: int) -> int:
    """Write from ``at`` on; returns where the values end. Calls itself for mappings inside."""
    keys, paths = heads
    longs, reals, strings = buffers
    for key, value in event.items():
        head = keys.get(key)
        if head is None or value is None:
            continue
        if type(key) is not str:
            raise TypeError(key)
        kind = type(value)
        if head < 0:
            head, _, inside = paths[~head]
            if kind is dict:
                at = _read(value, inside, buffers, at)
            elif kind is not str and kind is not int and kind is not float and kind is not bool:
                raise TypeError(kind)
            if head < 0:
                continue
        if kind is str:
            longs[at] = head | STRING
            longs[at + 1] = len(value)
            strings.append(value)
        elif kind is int:
            longs[at] = head | INTEGER
            longs[at + 1] = value
        elif kind is float:
            longs[at] = head | FLOAT
            reals[at + 1] = value
        elif kind is bool:
            longs[at] = head | BOOLEAN
            longs[at + 1] = value
        elif kind is dt.datetime:
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            longs[at] = head | TIMESTAMP
            longs[at + 1] = (aware - _EPOCH) // _MICROSECOND
        elif kind is dict or kind is list or kind is tuple:
            longs[at] = head | OTHER
            longs[at + 1] = 0
        else:
            raise TypeError(kind)
        at += 2
    return at
