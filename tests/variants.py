"""Variants written by hand: the binary encoding of Spark and Parquet, for tests to read.

``encode({"a": 1})`` is (value, metadata). A ``Layout`` chooses what the encoding leaves open: wider
numbers than needed, keys and values in another order, strings that are never short.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

#: How Spark's variants look in Arrow.
MARKED = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TICK = dt.timedelta(microseconds=1)


@dataclass
class Layout:
    """What an encoder may choose; ``extra`` bytes more per number than needed."""

    extra: int = 0
    large: bool = False
    backwards: bool = False
    long_strings: bool = False
    keys: list[str] = field(default_factory=list)


def primitive(kind: int, content: bytes = b"") -> bytes:
    return bytes([kind << 2]) + content


def _width(most: int, layout: Layout) -> int:
    return min(4, max(1, (most.bit_length() + 7) // 8) + layout.extra)


def _numbers(numbers: list[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def _container(basic: int, ids: list[int] | None, parts: list[bytes], layout: Layout) -> bytes:
    order = list(range(len(parts)))[:: -1 if layout.backwards else 1]
    starts = dict.fromkeys(order, 0)
    at = 0
    for i in order:
        starts[i] = at
        at += len(parts[i])
    width = _width(at, layout)
    large = layout.large or len(parts) > 255
    header = width - 1
    count = len(parts).to_bytes(4 if large else 1, "little")
    body = _numbers([*(starts[i] for i in range(len(parts))), at], width)
    if ids is None:
        header |= large << 2
    else:
        id_width = _width(max(ids, default=0), layout)
        header |= (id_width - 1) << 2 | large << 4
        body = _numbers(ids, id_width) + body
    return bytes([header << 2 | basic]) + count + body + b"".join(parts[i] for i in order)


def value_of(value: Any, layout: Layout) -> bytes:
    """The value part; keys are added to the layout's."""
    if value is None:
        return primitive(0)
    if isinstance(value, bool):
        return primitive(1 if value else 2)
    if isinstance(value, int):
        size = next(
            size for size in (1, 2, 4, 8) if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1
        )
        return primitive(
            {1: 3, 2: 4, 4: 5, 8: 6}[size], value.to_bytes(size, "little", signed=True)
        )
    if isinstance(value, float):
        return primitive(7, struct.pack("<d", value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        ticks = (aware - _EPOCH) // _TICK
        return primitive(12 if value.tzinfo else 13, ticks.to_bytes(8, "little", signed=True))
    if isinstance(value, dt.date):
        days = value.toordinal() - _EPOCH.toordinal()
        return primitive(11, days.to_bytes(4, "little", signed=True))
    if isinstance(value, str):
        text = value.encode()
        if len(text) < 64 and not layout.long_strings:
            return bytes([len(text) << 2 | 1]) + text
        return primitive(16, len(text).to_bytes(4, "little") + text)
    if isinstance(value, list):
        return _container(3, None, [value_of(item, layout) for item in value], layout)
    names = sorted(value)
    for name in names:
        if name not in layout.keys:
            layout.keys.append(name)
    ids = [layout.keys.index(name) for name in names]
    return _container(2, ids, [value_of(value[name], layout) for name in names], layout)


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    mantissa = int("".join(map(str, digits))) * 10 ** max(0, exponent) * (-1 if sign else 1)
    size, kind = next(
        (size, kind)
        for size, kind in ((4, 8), (8, 9), (16, 10))
        if abs(mantissa) < 1 << 8 * size - 1
    )
    return primitive(
        kind, bytes([max(0, -exponent)]) + mantissa.to_bytes(size, "little", signed=True)
    )


def metadata_of(layout: Layout) -> bytes:
    """The dictionary of the layout's keys."""
    texts = [key.encode() for key in layout.keys]
    starts = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    width = _width(max(len(texts), starts[-1]), layout)
    header = 1 | (width - 1) << 6
    return bytes([header]) + _numbers([len(texts), *starts], width) + b"".join(texts)


def encode(value: Any, layout: Layout | None = None) -> tuple[bytes, bytes]:
    """The value and the metadata of a variant."""
    layout = Layout() if layout is None else layout
    encoded = value_of(value, layout)
    return encoded, metadata_of(layout)


def column(pairs: Sequence[tuple[bytes, bytes] | None], kind: pa.DataType = MARKED) -> pa.Array:
    """An Arrow column of variants; None is a null."""
    names = ("value", "metadata")
    rows = [None if pair is None else dict(zip(names, pair, strict=True)) for pair in pairs]
    return pa.array(rows, kind)


FUZZED: list[Any] = [
    {"a": 1, "b": "text", "c": {"d": [1, {"a": 2}], "e": Decimal("12345678901234567.25")}},
    {"c": {"d": dt.date(2024, 1, 1), "e": 0.1}, "a": Decimal("-1.5"), "b": "é" * 40},
    {"b": None, "a": True, "c": {"c": {"c": {}}}, "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)},
]


FUZZ_CATALOG = {
    "a": "a > 0 OR a = TRUE",
    "b": "b LIKE '%x%' OR b RLIKE 't$' OR b LIKE '%é'",
    "c": "c.d = 1 OR c.e > 0.05 OR c.d < DATE '2030-01-01' OR c.c.c.c IS NULL",
    "t": "t > DATE '2000-01-01' OR t IS NULL",
}


def mangled(generator: random.Random) -> tuple[bytes, bytes]:
    """A variant with some bytes changed, cut off or added."""
    large, backwards, long_strings = (generator.random() < 0.5 for _ in range(3))
    layout = Layout(generator.randrange(4), large, backwards, long_strings)
    value = bytearray(value_of(generator.choice(FUZZED), layout))
    parts = [value, bytearray(metadata_of(layout))]
    for _ in range(generator.randint(1, 4)):
        part = generator.choice(parts)
        at = generator.randrange(len(part) + 1)
        kind = generator.randrange(4)
        if kind == 0:
            del part[at : at + generator.randint(1, 4)]
        elif kind == 1:
            part[at:at] = generator.randbytes(generator.randint(1, 4))
        elif at < len(part):
            part[at] = generator.choice([0, 255, part[at] ^ 1 << generator.randrange(8)])
    return bytes(parts[0]), bytes(parts[1])
