"""Tagged values in the making: what the scanners of JSON text and of variants share.

An object is read key by key. With ``car.color`` in use, the keys ``car`` and, inside it, ``color``
grow a path, which is looked up among the names::

    key     path            attribute
    car     car             -           an object: its keys stand behind "car."
    color   car.color       7           its value becomes an entry of attribute 7

A part of a name that has a dot or a back quote stands between back quotes, as in expressions. A
path longer than every name is given up at once, so the path needs no more room than that.

All functions are O(1) or O(length of the key), and compiled into the scanners.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bittern.jit import f8w, i4w, i8w, inline, tuple_type, u1w
from bittern.model.events.json.tokens import BACK_QUOTE, needs_quotes
from bittern.model.strings import StringTable, byte_at, find

#: Objects inside objects; what lies deeper is not read.
MAX_DEPTH = 64
# The length of a path that
UNUSED = -1  # no name begins with,
UNWRITTEN = -2  # is the key itself, and not copied before an object needs it.


class TaggedRoom(NamedTuple):
    """The columns of ``TaggedValues`` with room; ``reals`` is ``payloads`` seen as floats."""

    rows: np.ndarray
    attributes: np.ndarray
    tags: np.ndarray
    payloads: np.ndarray
    reals: np.ndarray
    lengths: np.ndarray

    @classmethod
    def room(cls, most: int) -> TaggedRoom:
        """Columns for this many entries: 21 bytes each, touched only as far as they are used."""
        payloads = np.empty(most, np.int64)
        return cls(
            rows=np.empty(most, np.int32),
            attributes=np.empty(most, np.int32),
            tags=np.empty(most, np.uint8),
            payloads=payloads,
            reals=payloads.view(np.float64),
            lengths=np.empty(most, np.int32),
        )


ENTRIES = tuple_type(TaggedRoom, i4w, i4w, u1w, i8w, f8w, i4w)


def longest_name(names: StringTable) -> int:
    """The length in bytes of the longest name: what a path needs room for."""
    return int(np.diff(names.as_tuple.offsets).max(initial=0))


@inline
def append(path: Any, length: Any, byte: Any) -> Any:
    """The path with one byte more, or ``UNUSED`` when it is longer than every name."""
    if length < 0 or length >= len(path):
        return np.int64(UNUSED)
    path[length] = byte
    return length + 1


@inline
def extend_path(path: Any, length: Any, data: Any, start: Any, stop: Any) -> Any:
    """The path with a key's canonical name behind it; returns its length, or ``UNUSED``."""
    quoted = needs_quotes(data, start, stop)
    if quoted:
        length = append(path, length, BACK_QUOTE)
    at = start
    while at < stop and length >= 0:
        byte = byte_at(data, at)
        if byte == BACK_QUOTE:
            length = append(path, length, BACK_QUOTE)
        length = append(path, length, byte)
        at += 1
    if quoted:
        length = append(path, length, BACK_QUOTE)
    return length


@inline
def find_path(names: Any, path: Any, length: Any) -> Any:
    """The number of the name that the path is, or -1."""
    if length < 0:
        return np.int32(-1)
    return find(names, path, np.int64(0), length, 0)


@inline
def find_prefix(names: Any, path: Any, length: Any) -> Any:
    """The number of the path among those that lead to a name, or -1."""
    if length < 0:
        return np.int32(-1)
    return find(names, path, np.int64(0), length, 1)


@inline
def find_key(names: Any, path: Any, prefix: Any, data: Any, start: Any, stop: Any) -> Any:
    """The attribute that a key stands for, or -1, and its path's length.

    ``prefix`` is the length of the path before the key, up to the dot.
    """
    if prefix == 0 and not needs_quotes(data, start, stop):
        return find(names, data, start, stop, 0), np.int64(UNWRITTEN)  # the key is its own path
    length = np.int64(UNUSED)
    if prefix >= 0:
        length = extend_path(path, prefix, data, start, stop)
    return find_path(names, path, length), length


@inline
def place_of(entries: Any, latest: Any, first: Any, count: Any, attribute: Any) -> Any:
    """Where an attribute's entry goes in the row whose entries so far are first .. count.

    A repeated path takes its old place: the last value counts. ``latest`` is only a hint, so it
    needs no clearing between rows: it holds if the entry that it points to is one of this row and
    says that it is this attribute's.
    """
    at = latest[attribute]
    if not (first <= at < count and entries.attributes[at] == attribute):
        at = count
        latest[attribute] = at
        entries.attributes[at] = attribute
    return at
