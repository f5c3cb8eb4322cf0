"""Events as Python mappings, flattened to tagged values.

``{"price": 9, "user": {"age": 30}}`` says that ``price`` is 9 and ``user.age`` is 30. Only
attributes in use are looked at. This is the convenient way in, one Python loop over the values;
Arrow tables and JSON text are the fast ones.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from bittern.model.numbers import INT64_MAX, INT64_MIN, Number
from bittern.model.tagged import (
    BOOLEAN,
    EXACT,
    FLOAT,
    INTEGER,
    OTHER,
    STRING,
    TIMESTAMP,
    TaggedValues,
)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
MAX_DEPTH = 64
MAX_STRING = 2**31 - 1  # lengths are int32


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
    """Attribute names in use: number by name, and the paths that lead to one."""

    def __init__(self, names: Sequence[str]) -> None:
        self.numbers = {name: i for i, name in enumerate(names)}
        self.prefixes: set[str] = set()
        for name in names:
            # A dot inside back-quotes adds a prefix that no event has: harmless.
            at = name.find(".")
            while at >= 0:
                self.prefixes.add(name[:at])
                at = name.find(".", at + 1)


def plain_value(value: Any) -> Any:
    """A value without NumPy and pandas around it; None for their missing values.

    Times that Python's calendar cannot hold stay ``datetime64[us]``.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
        held = value.item()  # an integer where it is out of range, None where it is not a time
        return value if isinstance(held, int) else held
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas', without importing pandas
        return None
    return value


class _Collector:
    def __init__(self, names: Names) -> None:
        self.names = names
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
                if isinstance(value, Mapping) and path in self.names.prefixes and depth < MAX_DEPTH:
                    stack.append((path + ".", depth + 1, value))

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
        self.rows.append(row)
        self.attributes.append(attribute)
        self.tags.append(tag)
        self.payloads.append(payload)
        self.lengths.append(length)


def flatten(events: Sequence[Any], names: Names) -> Flattened:
    """Tagged values of a list of mappings; a row that is no mapping, or bad text, is rejected."""
    collector = _Collector(names)
    rejected: list[tuple[int, str]] = []
    for row, event in enumerate(events):
        before = len(collector.rows)
        if event is None:
            continue
        if not isinstance(event, Mapping):
            rejected.append((row, f"an event is a mapping, not {type(event).__name__}"))
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
