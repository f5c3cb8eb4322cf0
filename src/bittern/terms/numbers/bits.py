"""Bits of integers: ``& | ^ ~``, shifts, ``bit_count``; and integers in other bases.

::

    5 & 3 = 1    shiftleft(1, 33) = 2, an INT is shifted by 33 mod 32    bin(5) = '101'
                 bit_count(-1) = 64, whatever its type                   conv('ff', 16, 10) = '255'

O(rows); digits of another base are found for each distinct value once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.terms.casts.casts import cast, widened
from bittern.terms.columns import as_array, as_given, column, given, meaningless, per_distinct
from bittern.terms.nodes import Call
from bittern.terms.numbers.numbers import OVERFLOW, pair
from bittern.terms.scope import FunctionTable, Scope, Value
from bittern.terms.types import common_type, is_number

TABLE = FunctionTable()
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORD = (1 << 64) - 1
_BASES = range(2, 37)


def _bitwise(
    function: Callable[[Any, Any], Any], scope: Scope, call: Call, left: Value, right: Value
) -> Value:
    kinds = left.type, right.type
    if all(map(pa.types.is_null, kinds)):
        left = right = widened(left, pa.int32())
    left, right = pair(scope, call.function, left, right)
    if not (pa.types.is_integer(left.type) and pa.types.is_integer(right.type)):
        raise meaningless(call.function, *kinds)
    kind = common_type(left.type, right.type)
    assert kind is not None
    one, other = (column(widened(value, kind)) for value in (left, right))
    return given(function(one.data, other.data), one.valid & other.valid, kind, left, right)


TABLE.add("&", least=2)(partial(_bitwise, np.bitwise_and))
TABLE.add("|", least=2)(partial(_bitwise, np.bitwise_or))
TABLE.add("^", least=2)(partial(_bitwise, np.bitwise_xor))


@TABLE.add("~", least=1)
def _not(_scope: Scope, call: Call, value: Value) -> Value:
    if pa.types.is_null(value.type):
        return widened(value, pa.int32())
    if not pa.types.is_integer(value.type):
        raise meaningless(call.function, value.type)
    own = column(value)
    return given(~own.data, own.valid, value.type, value)


def _implicit(scope: Scope, call: Call, value: Value, kind: pa.DataType) -> Value:
    """An argument that Spark casts to an integer."""
    types = pa.types
    if not (is_number(value.type) or types.is_string(value.type) or types.is_null(value.type)):
        raise meaningless(call.function, value.type)
    return cast(scope, value, kind)


def _shift(
    function: Callable[[Any, Any], Any], scope: Scope, call: Call, value: Value, by: Value
) -> Value:
    kind = pa.int64() if value.type == pa.int64() else pa.int32()
    value = _implicit(scope, call, value, kind)
    own, count = column(value), column(_implicit(scope, call, by, pa.int32()))
    width = kind.bit_width
    data = function(own.data, (count.data & (width - 1)).astype(own.data.dtype))
    return given(data, own.valid & count.valid, kind, value, by)


def _unsigned_shift(data: Any, by: Any) -> Any:
    unsigned = np.dtype(f"u{data.dtype}")
    return (data.view(unsigned) >> by.view(unsigned)).view(data.dtype)


TABLE.add("shiftleft", "<<", least=2)(partial(_shift, np.left_shift))
TABLE.add("shiftright", ">>", least=2)(partial(_shift, np.right_shift))
TABLE.add("shiftrightunsigned", ">>>", least=2)(partial(_shift, _unsigned_shift))


@TABLE.add("bit_count", least=1)
def _bit_count(_scope: Scope, call: Call, value: Value) -> Value:
    types = pa.types
    if types.is_null(value.type):
        return widened(value, pa.int32())
    if not (types.is_integer(value.type) or types.is_boolean(value.type)):
        raise meaningless(call.function, value.type)
    own = column(value)
    counts = np.bitwise_count(own.data.astype(np.int64).view(np.uint64)).astype(np.int32)
    return given(counts, own.valid, pa.int32(), value)


@TABLE.add("bin", least=1)
def _bin(scope: Scope, call: Call, value: Value) -> Value:
    """The bits of a BIGINT, of a negative one all 64."""
    value = _implicit(scope, call, value, pa.int64())
    text = per_distinct(as_array(value), lambda number: f"{number & _WORD:b}", pa.string())
    return as_given(text, value)


def _written(number: int, base: int) -> str:
    """A number that is not negative, in digits of a base."""
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


@TABLE.add("conv", least=3)
def _conv(scope: Scope, call: Call, value: Value, base: Value, to: Value) -> Value:
    """Digits of one base in another; negative numbers wrap around unless the base is negative."""
    text = cast(scope, value, pa.string())
    bases = [_implicit(scope, call, each, pa.int32()) for each in (base, to)]
    if any(isinstance(each, pa.Array) for each in bases):
        raise meaningless("conv with a base that is no constant", *(each.type for each in bases))
    one, other = (each.as_py() for each in bases)
    if one is None or other is None or one not in _BASES or abs(other) not in _BASES:
        return as_given(pa.nulls(len(as_array(text)), pa.string()), value)
    found = per_distinct(as_array(text), lambda each: _converted(each, one, other), pa.string())
    over = pc.equal(found, "")
    scope.fail(as_given(over, value), OVERFLOW)
    return as_given(pc.if_else(over, pa.scalar(None, pa.string()), found), value)


def _converted(text: str, base: int, to: int) -> str | None:
    """One number in another base; empty if it does not fit 64 bits, None if there is nothing."""
    text = text.strip(" ")
    if not text:
        return None
    negative = text.startswith("-")
    number = 0
    for character in text[negative:]:
        digit = _DIGITS.find(character.upper())
        if not 0 <= digit < base:
            break
        number = number * base + digit
        if number > _WORD:
            return ""
    if negative and to > 0:
        # Of a magnitude in the upper half Spark makes -1.
        number = _WORD if number >= 1 << 63 else -number & _WORD
    elif to < 0 and number >= 1 << 63:
        negative, number = True, -number & _WORD
    return ("-" if negative and to < 0 else "") + _written(number, abs(to))
