"""Events as Python mappings, flattened to tagged values.

``{"price": 9, "user": {"age": 30}}`` says that ``price`` is 9 and ``user.age`` is 30. Only
attributes in use are read. What is inside a list is a value without a kind. This is the convenient
form, read by one Python loop over the values; Arrow tables and JSON text are the fast forms.
"""

from __future__ import annotations

import datetime as dt
import math
from array import array
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, cast

import numpy as np

from bittern.language.literals import attribute_of, attribute_parts
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


class Heads(NamedTuple):
    """What the keys of a mapping stand for.

    ``keys`` has ``attribute << 8``, so that a tag can stand beside it; or ``~i`` where keys inside
    the value are in use, as ``paths[i]`` tells: the head of the key itself or -1, the head of its
    prefix, and the keys inside.
    """

    keys: dict[str, int]
    paths: list[tuple[int, int, Heads]]


def heads_of(
    names: Sequence[tuple[Sequence[str], int]], before: tuple[str, ...], prefixes: Mapping[str, int]
) -> Heads:
    """The keys that lead from a path to attributes. Calls itself for each part of a name."""
    found = Heads({}, [])
    inside: dict[str, list[tuple[Sequence[str], int]]] = {}
    for (first, *rest), number in names:
        if not rest:
            found.keys[first] = number << 8
        elif len(before) <= MAX_DEPTH:  # what lies deeper is not read
            inside.setdefault(first, []).append((rest, number))
    for key, below in inside.items():
        path = (*before, key)
        prefix = prefixes[attribute_of(path)] << 8
        found.paths.append((found.keys.get(key, -1), prefix, heads_of(below, path, prefixes)))
        found.keys[key] = -len(found.paths)
    return found


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
        self._heads: Heads | None = None  # this too
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

    @property
    def heads(self) -> Heads:
        """What the keys of events stand for."""
        if self._heads is None:
            parts = [(attribute_parts(name), number) for name, number in self.numbers.items()]
            self._heads = heads_of(parts, (), self.prefixes)
        return self._heads

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


class Collector:
    """The values of events, one behind the other, in the order of the events."""

    def __init__(self, keys: Heads, others: list[Any] | None = None) -> None:
        self._keys = keys
        self.others = others
        # Lists, which become arrays at the end: appending to an array takes longer.
        self.heads: list[int] = []  # attribute << 8 | tag
        self.payloads: list[int] = []  # of strings their length, of floats 0
        self.reals: list[float] = []
        self.texts: list[bytes] = []
        self.exact: list[tuple[int, int, Number]] = []

    def event(self, row: int, event: Mapping[Any, Any]) -> None:
        """Add the values of an event."""
        stack: list[tuple[int, Heads, Mapping[Any, Any]]] = [(0, self._keys, event)]
        heads, payloads = self.heads, self.payloads
        while stack:
            depth, (keys, paths), mapping = stack.pop()
            for key, value in mapping.items():
                head = keys.get(key)
                if head is None or value is None:
                    continue
                kind = type(value)
                if head < 0:
                    if not isinstance(key, str):
                        continue
                    head, prefix, inside = paths[~head]
                    if isinstance(value, Mapping) and depth < MAX_DEPTH:
                        stack.append((depth + 1, inside, value))
                    elif isinstance(value, LISTS):
                        self.value(row, prefix, value)
                    if head < 0:
                        continue
                # The usual types first, which is most of the time that reading takes.
                if kind is str:
                    payloads.append(self.text(value))
                    heads.append(head | STRING)
                elif kind is float:
                    heads.append(head | FLOAT)
                    payloads.append(0)
                    self.reals.append(value)
                elif kind is bool:
                    heads.append(head | BOOLEAN)
                    payloads.append(value)
                elif kind is int and INT64_MIN <= value <= INT64_MAX:
                    heads.append(head | INTEGER)
                    payloads.append(value)
                elif isinstance(key, str):
                    self.value(row, head, value)

    def text(self, value: str) -> int:
        """Keep a string; returns its length in bytes."""
        text = value.encode()
        if len(text) > MAX_STRING:
            raise ValueError("a string is longer than 2 GiB")
        self.texts.append(text)
        return len(text)

    def value(self, row: int, head: int, value: Any) -> None:
        """Add a value of any type."""
        value = plain_value(value)
        if value is None:
            return
        tag, payload = OTHER, 0
        if isinstance(value, bool):
            tag, payload = BOOLEAN, int(value)
        elif isinstance(value, int):
            if INT64_MIN <= value <= INT64_MAX:
                tag, payload = INTEGER, value
            else:
                tag = EXACT
                self.exact.append((row, head >> 8, value))
        elif isinstance(value, float):
            tag = FLOAT
            self.reals.append(value)
        elif isinstance(value, str):
            tag, payload = STRING, self.text(value)
        elif isinstance(value, dt.datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            tag, payload = TIMESTAMP, (aware - _EPOCH) // _MICROSECOND
        elif isinstance(value, dt.date):
            midnight = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
            tag, payload = TIMESTAMP, (midnight - _EPOCH) // _MICROSECOND
        elif isinstance(value, Decimal):
            if value.is_finite():
                tag = EXACT
                self.exact.append((row, head >> 8, value))
            else:
                tag = FLOAT
                self.reals.append(math.nan if value.is_nan() else float(value))
        elif isinstance(value, np.datetime64):  # beyond Python's calendar
            tag, payload = TIMESTAMP, int(value.astype(np.int64))
        elif self.others is not None:
            payload = len(self.others)
            self.others.append(value)
        self.heads.append(head | tag)
        self.payloads.append(payload)

    def columns(self, counts: Sequence[int]) -> TaggedValues:
        """All values, of which each event has so many."""
        heads, payloads = (np.array(array("q", each)) for each in (self.heads, self.payloads))
        tags = (heads & 255).astype(np.uint8)
        payloads[tags == FLOAT] = np.array(self.reals, dtype=np.float64).view(np.int64)
        strings = tags == STRING
        lengths = np.zeros(len(heads), dtype=np.int32)
        lengths[strings] = payloads[strings]
        payloads[strings] = np.cumsum(payloads[strings]) - payloads[strings]
        return TaggedValues(
            np.repeat(np.arange(len(counts), dtype=np.int32), np.array(counts, dtype=np.int64)),
            (heads >> 8).astype(np.int32),
            tags,
            payloads,
            lengths,
            np.frombuffer(b"".join(self.texts), dtype=np.uint8),
        )


def flatten(events: Sequence[Any], names: Names, others: list[Any] | None = None) -> Flattened:
    """Tagged values of a list of mappings; rejects rows that are not mappings or have bad text.

    Values without a kind are added to ``others``, and their payloads say where.
    """
    return collect(events, Collector(names.heads, others))


def collect(events: Sequence[Any], collector: Collector) -> Flattened:
    """What a collector takes from mappings."""
    rejected: list[tuple[int, str]] = []
    counts = []
    for row, event in enumerate(events):
        before = len(collector.heads)
        if event is None:
            counts.append(0)
            continue
        if type(event) is not dict and not isinstance(event, Mapping):
            rejected.append((row, f"an event must be a mapping, not {type(event).__name__}"))
            counts.append(0)
            continue
        n_reals, n_texts = len(collector.reals), len(collector.texts)
        try:
            collector.event(row, event)
        except MemoryError:  # of this process, not of the event
            raise
        except Exception as wrong:  # noqa: BLE001  whatever is in an event, the others count
            del collector.heads[before:], collector.payloads[before:]
            del collector.reals[n_reals:], collector.texts[n_texts:]
            collector.exact = [entry for entry in collector.exact if entry[0] != row]
            half = isinstance(wrong, UnicodeEncodeError)
            reason = "a string holds half a surrogate pair" if half else f"unreadable: {wrong!r}"
            rejected.append((row, reason))
        counts.append(len(collector.heads) - before)
    return Flattened(collector.columns(counts), collector.exact, rejected)
