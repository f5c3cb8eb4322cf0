"""Intervals: literals, parts, arithmetic.

::

    INTERVAL '1' DAY               duration[s]  86400      added to a date, it gives a date
    INTERVAL '1 02' DAY TO HOUR    duration[us] 93600e6    added to a date, it gives a timestamp
    INTERVAL '1-2' YEAR TO MONTH   14 months, 0 days, 0 nanoseconds
    make_interval(0, 1, 0, 2)       1 month,  2 days, 0 nanoseconds

Months and days are apart, as a month has no fixed number of days. Only intervals of months alone
are compared or multiplied. All O(rows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.casts.casts import cast
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.times.moments import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Numbers,
    WholeNumbers,
    added,
    as_whole,
    cells,
    column,
    failing,
    fits_int,
    is_text,
    made,
    mask_of,
    multiplied,
    spread,
)
from bittern.terms.types import DAY_TIME, DAYS, YEAR_MONTH, is_number, type_name

TABLE = FunctionTable()
_TRIPLE = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_OVERFLOW = "interval overflow"


class IntervalParts(NamedTuple):
    """The months, days and microseconds of intervals, and which of them are there."""

    months: Numbers
    days: Numbers
    micros: Numbers
    there: Mask
    is_one: bool


def is_interval(kind: pa.DataType) -> bool:
    """Whether it is one of the types of intervals."""
    return bool(pa.types.is_duration(kind) or pa.types.is_interval(kind))


def parts(value: Value) -> IntervalParts:
    """An interval of months (and days, and time) in its parts."""
    array = column(value)
    there = mask_of(array.is_valid())
    buffer = array.buffers()[1]
    if buffer is None:
        triples = np.zeros(len(array), _TRIPLE)
    else:
        triples = np.frombuffer(buffer, _TRIPLE)[array.offset : array.offset + len(array)]
    months, days, nanos = (
        np.where(there, triples[name], 0).astype(np.int64) for name in ("months", "days", "nanos")
    )
    return IntervalParts(months, days, nanos // 1000, there, isinstance(value, pa.Scalar))


def of_parts(months: Any, days: Any, micros: Any, there: Mask, *, is_one: bool) -> Value:
    """The interval of these parts, each of which fits."""
    shape = np.broadcast_shapes(*(np.shape(each) for each in (months, days, micros, there)))
    triples = np.zeros(shape, _TRIPLE)
    triples["months"], triples["days"], triples["nanos"] = months, days, np.multiply(micros, 1000)
    valid = pa.array(np.broadcast_to(there, shape)).buffers()[1]
    array = pa.Array.from_buffers(YEAR_MONTH, shape[0], [valid, pa.py_buffer(triples)])
    return array[0] if is_one else array


def months_alone(value: Value) -> Value:
    """Intervals of months as their months, which are compared."""
    own = parts(value)
    if own.days.any() or own.micros.any():
        raise MeaninglessError("intervals of months and days have no order")
    return made(pa.int32(), own.months, own.there, is_one=own.is_one)


def micros_of(value: Value) -> WholeNumbers:
    """The microseconds of an interval of days and time."""
    own = cells(value)
    return own if value.type != DAYS else own._replace(numbers=own.numbers * SECOND)


def _of_micros(kind: pa.DataType, micros: Numbers, there: Mask, *, is_one: bool) -> Value:
    numbers = micros if kind == DAY_TIME else micros // SECOND
    return made(kind, numbers, there, is_one=is_one)


#: The fields of an interval: what is larger than all of them together, and the size of one.
_WITHIN = {"day": (None, DAY), "hour": (DAY, HOUR), "minute": (HOUR, MINUTE), "second": (MINUTE, 1)}


def extracted(field: str, value: Value) -> Value:
    """EXTRACT from an interval; of a negative one all fields are negative."""
    if pa.types.is_interval(value.type):
        own = parts(value)
        if field not in ("year", "month"):
            raise MeaninglessError(f"an interval of months has no {field}")
        years = np.sign(own.months) * (np.abs(own.months) // 12)
        kind = pa.int32() if field == "year" else pa.int8()
        numbers = years if field == "year" else own.months - 12 * years
        return made(kind, numbers, own.there, is_one=own.is_one)
    micros = micros_of(value)
    if field not in _WITHIN:
        raise MeaninglessError(f"an interval of days and time has no {field}")
    within, size = _WITHIN[field]
    rest = micros.numbers if within is None else np.fmod(micros.numbers, within)
    kinds = {"day": pa.int32(), "second": pa.decimal128(8, 6)}
    whole = np.sign(rest) * (np.abs(rest) // size)
    return made(kinds.get(field, pa.int8()), whole, micros.there, is_one=micros.is_one)


def negated(scope: Scope, value: Value) -> Value:
    """Minus an interval."""
    if not is_interval(value.type):
        raise MeaninglessError(f"{type_name(value.type)} has no negative")
    if pa.types.is_interval(value.type):
        own = parts(value)
        there = failing(scope, own.there, ~fits_int(-own.months) | ~fits_int(-own.days), _OVERFLOW)
        months, days = np.where(there, -own.months, 0), np.where(there, -own.days, 0)
        return of_parts(months, days, -own.micros, there, is_one=own.is_one)
    plain = cells(value)
    there = failing(scope, plain.there, plain.numbers == np.iinfo(np.int64).min, _OVERFLOW)
    return made(value.type, -plain.numbers, there, is_one=plain.is_one)


def total(scope: Scope, left: Value, right: Value, sign: int) -> Value:
    """The sum of two intervals of one kind, or their difference (sign -1)."""
    if pa.types.is_interval(left.type) and pa.types.is_interval(right.type):
        one, other = parts(left), parts(right)
        there, is_one = one.there & other.there, one.is_one and other.is_one
        months, days = one.months + sign * other.months, one.days + sign * other.days
        micros, over = added(one.micros, sign * other.micros)
        bad = ~fits_int(months) | ~fits_int(days) | over | (np.abs(micros) > _MOST_MICROS)
        there = failing(scope, there, bad, _OVERFLOW)
        months, days, micros = (np.where(there, each, 0) for each in (months, days, micros))
        return of_parts(months, days, micros, there, is_one=is_one)
    if pa.types.is_interval(left.type) or pa.types.is_interval(right.type):
        raise MeaninglessError("intervals of months and of days do not add up")
    one_, other_ = micros_of(left), micros_of(right)
    there, is_one = spread(one_, other_)
    sums, over = added(one_.numbers, sign * other_.numbers)
    there = failing(scope, there, over, _OVERFLOW)
    kind = DAYS if left.type == right.type == DAYS else DAY_TIME
    return _of_micros(kind, sums, there, is_one=is_one)


#: An interval in Spark takes more microseconds than Arrow has nanoseconds for: 292 years of them.
_MOST_MICROS = np.iinfo(np.int64).max // 1000


def scaled(scope: Scope, call: Call, left: Value, right: Value) -> Value:
    """``interval * number``, ``number * interval`` and ``interval / number``, rounded half up."""
    divides = call.function == "/"
    if not is_interval(left.type):
        if divides or not is_interval(right.type):
            raise MeaninglessError("an interval is divided by a number, not the other way round")
        left, right = right, left
    if is_text(right.type) or pa.types.is_null(right.type):
        right = cast(scope, right, pa.float64())
    if not is_number(right.type):
        raise MeaninglessError(f"an interval is not multiplied with {type_name(right.type)}")
    is_months = pa.types.is_interval(left.type)
    own = cells(months_alone(left)) if is_months else micros_of(left)
    factor = column(right)
    there = own.there & mask_of(factor.is_valid())
    is_one = own.is_one and isinstance(right, pa.Scalar)
    if divides:
        zero = mask_of(pc.equal(pc.sign(factor), 0).fill_null(False))
        there = failing(scope, there, zero, "division by zero")
    numbers, fits = _rounded(own.numbers, factor, there, divides=divides)
    if is_months:
        fits = fits & fits_int(numbers)
    there = failing(scope, there, ~fits, _OVERFLOW)
    if is_months:
        return of_parts(np.where(there, numbers, 0), 0, 0, there, is_one=is_one)
    return made(DAY_TIME, numbers, there, is_one=is_one)


def _rounded(
    numbers: Numbers, factor: pa.Array, there: Mask, *, divides: bool
) -> tuple[Numbers, Mask]:
    """Products or quotients, halves away from zero, and where they fit 64 bits."""
    if pa.types.is_floating(factor.type):
        other = factor.cast(pa.float64()).fill_null(1).to_numpy()
        with np.errstate(all="ignore"):
            exact = numbers / other if divides else numbers * other
            whole = np.trunc(exact)
            whole = whole + np.sign(exact) * (np.abs(exact - whole) >= 0.5)
            fits = np.abs(whole) < 2.0**63
        return np.where(fits, whole, 0).astype(np.int64), fits
    if pa.types.is_integer(factor.type):
        factor = factor.cast(pa.decimal128(19, 0))
    wide = pa.decimal256(factor.type.precision, factor.type.scale)
    numbers, there = np.broadcast_arrays(numbers, there)
    if len(factor) != len(numbers):
        size = np.broadcast_shapes(numbers.shape, (len(factor),))[0]
        numbers, there = np.broadcast_to(numbers, (size,)), np.broadcast_to(there, (size,))
        factor = factor if len(factor) == size else factor.take(pa.array(np.zeros(size, np.int64)))
    left = pa.array(numbers).cast(pa.decimal256(19, 0))
    right = pc.if_else(pa.array(there), factor.cast(wide), pa.scalar(None, wide))
    try:
        exact = pc.divide(left, right) if divides else pc.multiply(left, right)
    except pa.ArrowInvalid:
        raise MeaninglessError(f"no interval is divided by {type_name(factor.type)}") from None
    whole = pc.round(exact, 0, "half_towards_infinity")
    least, most = (pa.scalar(each).cast(pa.decimal256(19, 0)) for each in (-(2**63), 2**63 - 1))
    fits = pc.and_(pc.greater_equal(whole, least), pc.less_equal(whole, most)).fill_null(False)
    small = pc.if_else(fits, whole, pa.scalar(None, whole.type))
    plain = small.cast(pa.decimal256(76 - exact.type.scale, 0)).cast(pa.int64())
    return plain.fill_null(0).to_numpy(), mask_of(fits)


def _seconds(scope: Scope, value: Value, name: str) -> WholeNumbers:
    """Seconds with six digits behind the point, as microseconds."""
    if not (is_number(value.type) or is_text(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"{name} takes seconds as a number, not {type_name(value.type)}")
    kind = pa.decimal128(18, 6)
    return cells(value if value.type == kind else cast(scope, value, kind))


_ZERO = pa.scalar(0, pa.int32())


def _amounts(
    scope: Scope, call: Call, values: tuple[Value, ...], count: int, *, seconds: bool
) -> list[WholeNumbers]:
    """The arguments of a maker, those that are left out being 0; the last may be seconds."""
    given = (*values, *[_ZERO] * (count - len(values)))
    whole = [as_whole(scope, each, call.function) for each in given[: count - seconds]]
    return whole if not seconds else [*whole, _seconds(scope, given[-1], call.function)]


def _sum(own: list[WholeNumbers], sizes: tuple[int, ...]) -> tuple[Numbers, Mask]:
    """Amounts in units of these sizes together, and where they overflow."""
    total_, over = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    for each, size in zip(own, sizes, strict=True):
        product, beyond = multiplied(each.numbers, size)
        total_, too = added(total_, product)
        over = over | beyond | too
    return total_, over


_TIME = (DAY, HOUR, MINUTE, 1)


@TABLE.add("make_dt_interval", least=0, most=4)
def _make_dt_interval(scope: Scope, call: Call, *values: Value) -> Value:
    own = _amounts(scope, call, values, 4, seconds=True)
    there, is_one = spread(*own)
    micros, over = _sum(own, _TIME)
    there = failing(scope, there, over, _OVERFLOW)
    return made(DAY_TIME, micros, there, is_one=is_one)


@TABLE.add("make_ym_interval", least=0, most=2)
def _make_ym_interval(scope: Scope, call: Call, *values: Value) -> Value:
    own = _amounts(scope, call, values, 2, seconds=False)
    there, is_one = spread(*own)
    months = own[0].numbers * 12 + own[1].numbers
    there = failing(scope, there, ~fits_int(months), _OVERFLOW)
    return of_parts(np.where(there, months, 0), 0, 0, there, is_one=is_one)


def _make_interval(scope: Scope, call: Call, *values: Value) -> Value:
    own = _amounts(scope, call, values, 7, seconds=True)
    there, is_one = spread(*own)
    months = own[0].numbers * 12 + own[1].numbers
    days = own[2].numbers * 7 + own[3].numbers
    micros, over = _sum(own[4:], _TIME[1:])
    bad = ~fits_int(months) | ~fits_int(days) | over | (np.abs(micros) > _MOST_MICROS)
    if call.function == "make_interval":
        there = failing(scope, there, bad, _OVERFLOW)
    else:
        there = there & ~bad
    months, days, micros = (np.where(there, each, 0) for each in (months, days, micros))
    return of_parts(months, days, micros, there, is_one=is_one)


TABLE.add("make_interval", "try_make_interval", least=0, most=7)(_make_interval)
