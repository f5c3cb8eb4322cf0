"""Events as Python mappings, flattened to tagged values.

``{"price": 9, "user": {"age": 30}}`` says that ``price`` is 9 and ``user.age`` is 30. Only
attributes in use are read. What is inside a list is a value without a kind. This is the convenient
form, read by one Python loop over the values; Arrow tables and JSON text are the fast forms.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, cast

import numpy as np

from bittern.language.literals import attribute_parts
from bittern.model.numbers import INT64_MAX, INT64_MIN, Number
from bittern.model.tagged import (
    BOOLEAN,
    EXACT,
    FLOAT,
    INTEGER,
    OTHER,
    PATH_BITS,
    STRING,
    TIMESTAMP,
    TaggedValues,
)
from bittern.terms.spelling import does_case_count

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
MAX_DEPTH = 64
MAX_STRING = 2**31 - 1  # lengths are int32
#: What a path may lead into and be a list from there on.
LISTS = (list, tuple, np.ndarray)
_LAST_TIME = np.int64(INT64_MAX)
#: The units of ``datetime64`` of which a microsecond has several, and how many.
_FINE = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}


class Flattened(NamedTuple):
    """Tagged values, numbers that no tag can hold, and rows that could not be read."""

    values: TaggedValues
    exact: list[tuple[int, int, Number]]  # (row, attribute, number)
    rejected: list[tuple[int, str]]


def path_part(key: str) -> str:
    """A key as a part of a canonical attribute name."""
    if "." in key or "`" in key:
        return "`" + key.replace("`", "``") + "`"
    return key


class Names:
    """Attribute names in use: number by name, and the paths that lead to one.

    These paths, the *prefixes*, have numbers behind those of the attributes. In tagged values such
    a number says that a list stands there, and ``spread`` gives it to all attributes below.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.numbers = {name: i for i, name in enumerate(names)}
        self.prefixes: dict[str, int] = {}
        self._below: list[list[int]] = []
        self._parts: list[int] = []
        self._folded: dict[str, list[str]] | None = None  # made when first asked for
        for i, name in enumerate(names):
            # A dot inside back-quotes adds a prefix that no event has: harmless.
            at = name.find(".")
            while at >= 0:
                number = self.prefixes.setdefault(name[:at], len(names) + len(self.prefixes))
                if number == len(names) + len(self._below):
                    self._below.append([])
                    self._parts.append(len(attribute_parts(name[:at])))
                self._below[number - len(names)].append(i)
                at = name.find(".", at + 1)

    def below(self, prefix: str) -> list[int]:
        """The attributes that a prefix leads to."""
        return self._below[self.prefixes[prefix] - len(self.numbers)]

    def paths(self, prefix: str, columns: Sequence[str]) -> list[list[str]]:
        """For each of the columns, or fields of the struct ``prefix``, the paths in use that it is.

        That is one path, or none. If case does not count, there may be several ways to write it.
        """
        before = f"{prefix}." if prefix else ""
        paths = [before + path_part(column) for column in columns]
        if does_case_count():
            return [[path] if self.has(path) else [] for path in paths]
        alike: dict[str, list[str]] = {}
        for path in paths:
            alike.setdefault(path.lower(), []).append(path)
        there = set(paths)
        return [
            [
                way
                for way in self._ways(path)
                if way == path
                or (way.startswith(before) and way not in there and len(alike[path.lower()]) == 1)
            ]
            for path in paths
        ]

    def has(self, path: str) -> bool:
        """Whether a path is an attribute or leads to one."""
        return path in self.numbers or path in self.prefixes

    def _ways(self, path: str) -> list[str]:
        """How a path is written in use, whatever the case."""
        if self._folded is None:
            folded: dict[str, list[str]] = {}
            for each in dict.fromkeys((*self.numbers, *self.prefixes)):
                folded.setdefault(each.lower(), []).append(each)
            self._folded = folded  # whole: another thread may be reading it
        return self._folded.get(path.lower(), [])

    def spread(self, values: TaggedValues) -> TaggedValues:
        """Values in which every attribute below a list is something without a kind. O(values)."""
        n = len(self.numbers)
        lists = values.attributes >= n
        if not self.prefixes or not lists.any():
            return values
        prefixes = values.attributes[lists] - n
        below = [self._below[number] for number in prefixes.tolist()]
        counts = [len(each) for each in below]
        rows = np.repeat(values.rows[lists], counts).astype(np.int64)
        parts = np.array(self._parts, dtype=np.int64)[prefixes] << PATH_BITS
        payloads = np.repeat(values.payloads[lists] | parts, counts)
        own = values.at(~lists)
        added, first = np.unique(
            rows << 32 | np.concatenate(below, dtype=np.int64), return_index=True
        )
        # A key that JSON repeats may be a list and an object, whose own values count then.
        new = ~np.isin(added, own.rows.astype(np.int64) << 32 | own.attributes)
        added, payloads = added[new], payloads[first[new]]
        zeros = np.zeros(len(added), dtype=np.int64)
        rows = np.concatenate([own.rows, added >> 32])
        order = np.argsort(rows, kind="stable")
        return TaggedValues(
            rows.astype(np.int32),
            np.concatenate([own.attributes, added & 0xFFFFFFFF]).astype(np.int32),
            np.concatenate([own.tags, zeros + OTHER]).astype(np.uint8),
            np.concatenate([own.payloads, payloads]),
            np.concatenate([own.lengths, zeros]).astype(np.int32),
            values.data,
        ).at(order)


def plain_value(value: Any) -> Any:
    """A value without NumPy and pandas around it; None for their missing values.

    Times that Python's calendar cannot hold stay ``datetime64[us]``; those that microseconds cannot
    hold become the first or the last that they can.
    """
    if isinstance(value, dt.datetime) and not dt.MINYEAR <= value.year <= dt.MAXYEAR:
        value = cast("Any", value).to_datetime64()  # pandas' may be, though they are datetimes
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return None
        unit, step = np.datetime_data(value.dtype)
        if unit in _FINE:  # NumPy's own conversion overflows near the first time
            ticks = np.datetime64(int(value.astype(np.int64)) * step // _FINE[unit], "us")
        else:
            ticks = value.astype("datetime64[us]")
        if unit not in _FINE and ticks.astype(value.dtype) != value:
            last = _LAST_TIME if value.astype(np.int64) > 0 else -_LAST_TIME
            return last.astype("datetime64[us]")
        held = ticks.item()  # an integer where it is out of range
        return ticks if isinstance(held, int) else held
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas', without importing pandas
        return None
    return value


class _Collector:
    def __init__(self, names: Names, others: list[Any] | None) -> None:
        self.names = names
        self.others = others
        self.rows: list[int] = []
        self.attributes: list[int] = []
        self.tags: list[int] = []
        self.payloads: list[int] = []
        self.lengths: list[int] = []
        self.data = bytearray()
        self.exact: list[tuple[int, int, Number]] = []

    def event(self, row: int, event: Mapping[Any, Any]) -> None:
        stack: list[tuple[str, int, Mapping[Any, Any]]] = [("", 0, event)]
        while stack:
            prefix, depth, mapping = stack.pop()
            for key, value in mapping.items():
                if value is None or not isinstance(key, str):
                    continue
                path = prefix + path_part(key)
                attribute = self.names.numbers.get(path)
                if attribute is not None:
                    self.value(row, attribute, value)
                if path not in self.names.prefixes:
                    continue
                if isinstance(value, Mapping) and depth < MAX_DEPTH:
                    stack.append((path + ".", depth + 1, value))
                elif isinstance(value, LISTS):
                    self.value(row, self.names.prefixes[path], value)

    def value(self, row: int, attribute: int, value: Any) -> None:
        value = plain_value(value)
        if value is None:
            return
        tag, payload, length = OTHER, 0, 0
        if isinstance(value, bool):
            tag, payload = BOOLEAN, int(value)
        elif isinstance(value, int):
            if INT64_MIN <= value <= INT64_MAX:
                tag, payload = INTEGER, value
            else:
                tag = EXACT
                self.exact.append((row, attribute, value))
        elif isinstance(value, float):
            tag, payload = FLOAT, struct.unpack("<q", struct.pack("<d", value))[0]
        elif isinstance(value, str):
            text = value.encode()
            if len(text) > MAX_STRING:
                raise ValueError("a string is longer than 2 GiB")
            tag, payload, length = STRING, len(self.data), len(text)
            self.data += text
        elif isinstance(value, dt.datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            tag, payload = TIMESTAMP, (aware - _EPOCH) // _MICROSECOND
        elif isinstance(value, dt.date):
            midnight = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
            tag, payload = TIMESTAMP, (midnight - _EPOCH) // _MICROSECOND
        elif isinstance(value, Decimal):
            if value.is_finite():
                tag = EXACT
                self.exact.append((row, attribute, value))
            else:
                beyond = math.nan if value.is_nan() else float(value)
                tag, payload = FLOAT, struct.unpack("<q", struct.pack("<d", beyond))[0]
        elif isinstance(value, np.datetime64):  # beyond Python's calendar
            tag, payload = TIMESTAMP, int(value.astype(np.int64))
        elif self.others is not None:
            payload = len(self.others)
            self.others.append(value)
        self.rows.append(row)
        self.attributes.append(attribute)
        self.tags.append(tag)
        self.payloads.append(payload)
        self.lengths.append(length)


def flatten(events: Sequence[Any], names: Names, others: list[Any] | None = None) -> Flattened:
    """Tagged values of a list of mappings; rejects rows that are not mappings or have bad text.

    Values without a kind are added to ``others``, and their payloads say where.
    """
    collector = _Collector(names, others)
    rejected: list[tuple[int, str]] = []
    for row, event in enumerate(events):
        before = len(collector.rows)
        if event is None:
            continue
        if not isinstance(event, Mapping):
            rejected.append((row, f"an event must be a mapping, not {type(event).__name__}"))
            continue
        try:
            collector.event(row, event)
        except Exception as wrong:  # noqa: BLE001  whatever is in an event, the others count
            for column in ("rows", "attributes", "tags", "payloads", "lengths"):
                del getattr(collector, column)[before:]
            collector.exact = [entry for entry in collector.exact if entry[0] != row]
            half = isinstance(wrong, UnicodeEncodeError)
            reason = "a string holds half a surrogate pair" if half else f"unreadable: {wrong!r}"
            rejected.append((row, reason))
    values = TaggedValues(
        np.array(collector.rows, dtype=np.int32),
        np.array(collector.attributes, dtype=np.int32),
        np.array(collector.tags, dtype=np.uint8),
        np.array(collector.payloads, dtype=np.int64),
        np.array(collector.lengths, dtype=np.int32),
        np.frombuffer(bytes(collector.data), dtype=np.uint8),
    )
    return Flattened(values, collector.exact, rejected)
