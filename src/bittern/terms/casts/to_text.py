"""Casts to STRING: what Spark writes for each type.

::

    1.0E10   100.0   NaN        FLOAT and DOUBLE as Java prints them (``numbers/shortest.py``)
    0.0000001                   DECIMAL with all digits of its scale, never with an exponent
    2024-02-29 12:30:00.5       times without zeros at the end; years below 0 or beyond 9999 signed

All O(rows); dates outside of the years 0 to 9999 are asked one by one, each distinct value once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.columns import column, merged, per_distinct
from bittern.terms.numbers.shortest import float_text
from bittern.terms.times.calendar import civil

_DAY = 86_400_000_000
#: The days from 0000-01-01 to 9999-12-31, which Arrow writes as Spark does.
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896


def to_text(array: pa.Array) -> pa.Array:
    """The array as strings; bytes have to be UTF-8."""
    kind, types = array.type, pa.types
    if types.is_floating(kind):
        return float_text(array)
    if types.is_decimal(kind):
        return _decimal_text(array)
    if types.is_date(kind):
        return _with_long_years(pc.cast(array, pa.string()), array, 1)
    if types.is_timestamp(kind):
        text = pc.cast(array.view(pa.timestamp("us")), pa.string())
        text = pc.replace_substring_regex(text, r"(\.[0-9]*?)0+$", r"\1")
        return _with_long_years(pc.replace_substring_regex(text, r"\.$", ""), array, _DAY)
    return pc.cast(array, pa.string())


def _decimal_text(array: pa.Array) -> pa.Array:
    scale = array.type.scale
    buffers = array.buffers()
    units = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(array), buffers, array.null_count, array.offset
    )
    text = pc.cast(units, pa.string())
    if not scale:
        return text
    sign = pc.if_else(pc.starts_with(text, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), fraction, ".")


def _with_long_years(text: pa.Array, array: pa.Array, day: int) -> pa.Array:
    """The text, but for years that have a sign; ``day`` is one day in the array's units."""
    units, valid = column(array)
    days = units // day
    long = valid & ((days < _FIRST_DAY) | (days > _LAST_DAY))
    if not long.any():
        return text
    own = pa.array(units[long].astype(np.int64))
    return merged(text, long, per_distinct(own, lambda at: _signed(at, day), pa.string()))


def _signed(at: int, day: int) -> str:
    days, rest = divmod(at, day)
    year, month, date = civil(days)
    text = f"{'+' if year > 0 else '-'}{abs(year):04}-{month:02}-{date:02}"
    if day == 1:
        return text
    seconds, micros = divmod(rest, 1_000_000)
    time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text} {time}.{micros:06}".rstrip("0").rstrip(".") if micros else f"{text} {time}"
