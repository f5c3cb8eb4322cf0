"""Spark's types as Arrow's, their names, and the type that two of them have in common.

=============================  =======================  ==========================================
Spark                          Arrow                    names in a cast
=============================  =======================  ==========================================
TINYINT SMALLINT INT BIGINT    int8 int16 int32 int64   BYTE SHORT INTEGER LONG
FLOAT DOUBLE                   float32 float64          REAL
DECIMAL(p, s)                  decimal128(p, s)         DEC NUMERIC; DECIMAL alone is (10, 0)
STRING BINARY BOOLEAN          string binary bool       VARCHAR(n) and CHAR(n) are STRING
DATE                           date32
TIMESTAMP, TIMESTAMP_LTZ       timestamp[us, UTC]
TIMESTAMP_NTZ                  timestamp[us]
INTERVAL DAY TO SECOND         duration[us]             and every part of it but DAY
INTERVAL DAY                   duration[s]              whole days: a date stays a date beside it
INTERVAL YEAR TO MONTH         month_day_nano_interval  months alone; make_interval fills all three
ARRAY MAP STRUCT               list map struct          ARRAY<INT>, MAP<STRING, INT>, STRUCT<a: INT>
=============================  =======================  ==========================================

``settled`` turns any other Arrow type of events into one of these: unsigned integers into the next
signed type, large strings into strings, other units of time into microseconds. Of nested types,
``settled_nested`` (``nested/nested.py``) does it inside too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
DAY_TIME = pa.duration("us")
DAYS = pa.duration("s")
YEAR_MONTH = pa.month_day_nano_interval()
#: Values that no function takes; what they hold is not kept.
ANY = pa.large_binary()
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
#: Digits that an integer of each type may have, and those of its DECIMAL.
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
MAX_PRECISION = 38
_DAY_MILLISECONDS = 86_400_000
_LAST_DAY = 2**31 - 1

_NAMES = {
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "void": pa.null(),
    "decimal": pa.decimal128(10, 0),
    "dec": pa.decimal128(10, 0),
    "numeric": pa.decimal128(10, 0),
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(([0-9]{1,2})(?:,(-?[0-9]{1,2}))?\)")
_NESTED = re.compile(r"(array|map|struct) ?< ?(.+?) ?>", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"(?:`([^`]+)`|(\w+)) ?(?:: ?| )(.+)", re.DOTALL)
_TEXT = re.compile(r"(?:varchar|char|character)\([0-9]+\)")
#: The shortest name of each type, which ``type_name`` writes.
_SHOWN = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
    DAY_TIME: "INTERVAL DAY TO SECOND",
    DAYS: "INTERVAL DAY",
    YEAR_MONTH: "INTERVAL YEAR TO MONTH",
    ANY: "ANY",
}


def type_of(name: str) -> pa.DataType:
    """The type of a name in a cast, such as ``decimal(10, 2)``; ``ValueError`` if there is none."""
    plain = "".join(name.lower().split())
    if plain in _NAMES:
        return _NAMES[plain]
    if match := _DECIMAL.fullmatch(plain):
        precision, scale = int(match[1]), int(match[2] or 0)
        if not 0 <= scale <= precision <= MAX_PRECISION or not precision:
            raise ValueError(
                f"a decimal has at most {MAX_PRECISION} digits, and no more of them behind the "
                f"point than in all: not {name}"
            )
        return pa.decimal128(precision, scale)
    if _TEXT.fullmatch(plain):
        return pa.string()
    if (nested := _nested_type(" ".join(name.split()))) is not None:
        return nested
    raise ValueError(f"{name[:40]} is no type: try INT, BIGINT, DOUBLE, DECIMAL(10, 2), STRING")


def _nested_type(name: str) -> pa.DataType | None:
    """The type of ARRAY<...>, MAP<..., ...> or STRUCT<...: ..., ...>."""
    match = _NESTED.fullmatch(name)
    if match is None:
        return None
    word, inner = match[1].lower(), _split(match[2])
    if word == "array" and len(inner) == 1:
        return pa.list_(type_of(inner[0]))
    if word == "map" and len(inner) == 2:
        return pa.map_(*map(type_of, inner))
    if word != "struct":
        return None
    fields = [_FIELD.fullmatch(each) for each in inner]
    if not all(fields):
        return None
    named = [(each[1] or each[2], type_of(each[3])) for each in fields if each is not None]
    return pa.struct(named)


def _split(text: str) -> list[str]:
    """What commas separate that are not inside of brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]


def type_name(kind: pa.DataType) -> str:
    """A type's name as Spark writes it."""
    types = pa.types
    if types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{own.name}`: {type_name(own.type)}' for own in kind)}>"
    if types.is_null(kind):
        return "VOID"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SHOWN.get(kind, str(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether arithmetic is defined on it."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The DECIMAL that holds every value of an integer type."""
    return kind if pa.types.is_decimal(kind) else pa.decimal128(min(DIGITS[kind], 20), 0)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds all values of both, without a cast of strings; None: none."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    types = pa.types
    if is_number(left) and is_number(right):
        if types.is_integer(left) and types.is_integer(right):
            return max(left, right, key=INTEGERS.index)
        if types.is_floating(left) or types.is_floating(right):
            both = {left, right}
            return pa.float32() if both == {pa.float32()} else pa.float64()
        one, other = as_decimal(left), as_decimal(right)
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        # Digits in front of the point come first, and those behind it are given up for them.
        return pa.decimal128(min(whole + scale, MAX_PRECISION), min(scale, MAX_PRECISION - whole))
    times = [types.is_date(kind) or types.is_timestamp(kind) for kind in (left, right)]
    if all(times):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if types.is_duration(left) and types.is_duration(right):
        return DAY_TIME
    if types.is_list(left) and types.is_list(right):
        inner = common_type(left.value_type, right.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(left) and types.is_struct(right) and len(left) == len(right):
        found = [common_type(one.type, other.type) for one, other in zip(left, right, strict=True)]
        if None in found:
            return None
        return pa.struct([(own.name, kind) for own, kind in zip(left, found, strict=True)])
    return None


def wider_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which Spark compares two values, or puts the branches of CASE; None: none.

    A string is cast to what it stands beside: to BIGINT beside an integer, to DOUBLE beside any
    other number, else to the very type.
    """
    found = common_type(left, right)
    if found is not None or not (pa.types.is_string(left) or pa.types.is_string(right)):
        return found
    other = right if pa.types.is_string(left) else left
    if is_number(other):
        return pa.int64() if pa.types.is_integer(other) else pa.float64()
    types = pa.types
    is_plain = types.is_date(other) or types.is_timestamp(other) or types.is_boolean(other)
    return other if is_plain or types.is_binary(other) else None


def widest_type(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """``wider_type`` of all; strings are met first, as it matters in which order it is found."""
    found: pa.DataType | None = pa.null()
    for kind in sorted(kinds, key=lambda kind: not pa.types.is_string(kind)):
        found = None if found is None else wider_type(found, kind)
    return found


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """The decimal type of a result, or the one that Spark takes where it has more than 38 digits.

    Digits in front of the point are kept; of those behind it at least six.
    """
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def settled(array: pa.Array) -> pa.Array:
    """A plain array of an event's column, in the Arrow type that stands for Spark's."""
    kind, types = array.type, pa.types
    if types.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
        return array.cast(wider.get(kind.bit_width, pa.decimal128(20, 0)))
    if types.is_large_string(kind):
        return array.cast(pa.string())
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    if kind == pa.float16():
        return array.cast(pa.float32())
    if types.is_timestamp(kind):
        return _microseconds(array, TIMESTAMP if kind.tz else TIMESTAMP_NTZ)
    if types.is_date64(kind):
        days = _floored(array.view(pa.int64()), _DAY_MILLISECONDS)
        days = pc.max_element_wise(pc.min_element_wise(days, _LAST_DAY), ~_LAST_DAY)
        return pc.if_else(array.is_valid(), days, None).cast(pa.int32()).view(pa.date32())
    if types.is_duration(kind):
        return _microseconds(array, DAY_TIME)
    if types.is_decimal(kind) and not (types.is_decimal128(kind) and kind.scale >= 0):
        digits = kind.precision - min(kind.scale, 0)
        if digits <= MAX_PRECISION:
            return array.cast(pa.decimal128(digits, max(kind.scale, 0)))
        return of_any(array)
    return of_any(array) if types.is_union(kind) or types.is_time(kind) else array


def of_any(array: pa.Array) -> pa.Array:
    """Values of a type that Spark does not have: they are NULL or not, and that is all."""
    return pc.if_else(array.is_valid(), pa.scalar(b"", ANY), pa.scalar(None, ANY))


def _microseconds(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The times in microseconds; nanoseconds are cut off downwards, as Spark does it.

    Times that are too far away are as far as can be.
    """
    kind, units = array.type, array.view(pa.int64())
    if kind.unit == "ns":
        units = _floored(units, 1000)
    elif kind.unit != "us":
        factor = 1000 if kind.unit == "ms" else 1_000_000
        most = (2**63 - 1) // factor
        near = pc.max_element_wise(pc.min_element_wise(units, most), -most)
        units = pc.if_else(units.is_valid(), pc.multiply(near, factor), None)
    return units.view(target)


def _floored(units: pa.Array, size: int) -> pa.Array:
    whole = pc.divide(units, size)
    rest = pc.less(pc.subtract(units, pc.multiply(whole, size)), 0)
    return pc.subtract(whole, rest.cast(pa.int64()))
