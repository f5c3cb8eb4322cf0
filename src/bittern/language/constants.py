"""Constants of terms, in Spark's types.

=====================================  ==========================================
text                                   type
=====================================  ==========================================
``5``, ``3000000000``                  INT, BIGINT: the first that holds it
``5Y``, ``5S``, ``5L``                 TINYINT, SMALLINT, BIGINT
``1.50``, ``1.5BD``                    DECIMAL(3, 2), DECIMAL(2, 1)
``1e3``, ``1.5D``, ``1.5F``            DOUBLE, DOUBLE, FLOAT
``'a' 'b'``, ``X'1AF'``                STRING, BINARY
``DATE '2024-1-31'``, ``TIMESTAMP``,   DATE, TIMESTAMP
``TIMESTAMP_NTZ '2024-01-31 10:00'``   TIMESTAMP_NTZ
``INTERVAL '1' DAY``                   INTERVAL DAY TO SECOND
=====================================  ==========================================

``literal_of`` is the way back to the literals that predicates have. O(length) each.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from bittern.language.limits import MAX_DECIMAL_DIGITS
from bittern.language.syntax import Literal
from bittern.terms.nodes import Call, Constant, Term
from bittern.terms.scope import folded
from bittern.terms.types import MAX_PRECISION, TIMESTAMP, TIMESTAMP_NTZ

INTERVAL_UNITS = frozenset(
    "year month week day hour minute second millisecond microsecond".split()  # noqa: SIM905
)
_NUMBER = re.compile(r"([+-]?)\s*([0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)")
_INTEGERS = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}
_TYPES = {
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}


def constant_of(value: bool | None) -> Constant:  # noqa: FBT001
    """TRUE, FALSE or NULL."""
    return Constant(pa.scalar(value, pa.null() if value is None else pa.bool_()))


def constant_number(raw: str) -> pa.Scalar:
    """The number of a token, by Spark's rules for its type."""
    match = _NUMBER.fullmatch(raw)
    if match is None or not any(map(str.isdigit, match[2])):
        raise ValueError(
            f"{raw[:30]} is not a number; a name that starts with a digit needs back-quotes"
        )
    digits, suffix = match[1] + match[2], match[3].upper()
    is_whole = digits.lstrip("+-").isdigit()
    if suffix in _INTEGERS and is_whole:
        return _integer(int(digits), (_INTEGERS[suffix],), raw)
    if suffix in ("D", "F"):
        return _float(digits, pa.float64() if suffix == "D" else pa.float32())
    if suffix not in ("", "BD"):
        raise ValueError(f"{raw[:30]} is not a number: suffixes are Y, S, L, F, D and BD")
    if suffix == "BD" or not is_whole:
        if suffix == "" and "e" in digits.lower():
            return _float(digits, pa.float64())
        return _decimal(Decimal(digits), raw)
    if len(digits) > MAX_PRECISION + 1:
        raise ValueError(f"the integer {raw[:27]} has more than {MAX_PRECISION} digits")
    value = int(digits)
    if -(1 << 63) <= value < 1 << 63:
        return _integer(value, (pa.int32(), pa.int64()), raw)
    return _decimal(Decimal(value), raw)


def _integer(value: int, kinds: tuple[pa.DataType, ...], raw: str) -> pa.Scalar:
    for kind in kinds:
        if -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1:
            return pa.scalar(value, kind)
    raise ValueError(f"{raw[:30]} does not fit in {kinds[-1].bit_width} bits")


def _float(digits: str, kind: pa.DataType) -> pa.Scalar:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:30]} is too large for a float")
    return pa.scalar(value, kind)


def _decimal(value: Decimal, raw: str) -> pa.Scalar:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if value == 0:
        precision = max(1, scale)
    if precision > MAX_PRECISION:
        raise ValueError(f"the decimal {raw[:27]} has more than {MAX_PRECISION} digits")
    return pa.scalar(value, pa.decimal128(precision, scale))


def typed_constant(kind: str, text: str) -> pa.Scalar:
    """The constant of a word and a text: DATE '2024-01-31', X'1AF'."""
    if kind == "x":
        digits = "0" * (len(text) % 2) + text
        if not re.fullmatch("[0-9A-Fa-f]*", text):
            raise ValueError(f"X'{text[:30]}' is not binary: its digits are 0 to 9 and A to F")
        return pa.scalar(bytes.fromhex(digits), pa.binary())
    day = "1970-01-01" if text.strip().lower() == "epoch" else text
    try:
        constant = folded(Call("cast", (Constant(pa.scalar(day, pa.string())),), _TYPES[kind]))
        constant.as_py()
    except (ValueError, OverflowError):
        name = kind.partition("_")[0]
        raise ValueError(f"{text[:40]!r} is not a {name} of the years 1 to 9999") from None
    return constant


def interval_of(pieces: list[tuple[str, str]]) -> pa.Scalar:
    """The interval of amounts and units, as in INTERVAL '1' DAY or INTERVAL 3 DAYS 2 HOURS."""
    from bittern.terms.times.times import interval_literal  # noqa: PLC0415

    return interval_literal(pieces)


def literal_of(scalar: pa.Scalar) -> Literal | None:
    """The literal of a predicate that a constant is; None if predicates have none for it."""
    kind, value = scalar.type, scalar.as_py()
    if value is None or isinstance(value, bool | str):
        return Literal(value)
    if pa.types.is_integer(kind):
        return Literal(value)
    if isinstance(value, float):
        return Literal(value) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        if value.is_finite() and len(value.as_tuple().digits) <= MAX_DECIMAL_DIGITS:
            return Literal(value)
        return None
    if isinstance(value, dt.datetime):
        return Literal(value if value.tzinfo else value.replace(tzinfo=dt.UTC))
    return Literal(value) if isinstance(value, dt.date) else None


def literals_of(terms: Sequence[Term]) -> tuple[Literal, ...] | None:
    """The literals that terms are; None if one of them is none."""
    found = [literal_of(each.scalar) if isinstance(each, Constant) else None for each in terms]
    literals = tuple(each for each in found if each is not None)
    return literals if len(literals) == len(found) else None
