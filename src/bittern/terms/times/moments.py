"""Dates, timestamps and whole numbers as NumPy sees them, which the functions of time compute in.

A date is days since 1970, a timestamp microseconds since then, in the proleptic Gregorian calendar
and in UTC::

    [2024-02-29, NULL]   ->   Cells(numbers=[19782, 0], there=[True, False], is_one=False)

A constant is a single cell, which NumPy spreads over the rows of the others. All O(rows).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.casts.casts import cast
from bittern.terms.scope import MeaninglessError, Scope, Value
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ, is_number, type_name

Numbers: TypeAlias = npt.NDArray[np.int64]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_I4, _I8 = np.iinfo(np.int32), np.iinfo(np.int64)


class WholeNumbers(NamedTuple):
    """Whole numbers, and which of them are there; where they are not, the number is 0."""

    numbers: Numbers
    there: Mask
    is_one: bool


def column(value: Value) -> pa.Array:
    """A value as an array; a scalar is an array of one."""
    if isinstance(value, pa.Array):
        return value
    return pa.repeat(value, 1) if value.is_valid else pa.nulls(1, value.type)


def cells(value: Value) -> WholeNumbers:
    """The numbers behind integers, dates, timestamps, durations and decimals of up to 18 digits."""
    array, is_one = column(value), isinstance(value, pa.Scalar)
    kind, there = array.type, mask_of(column(value).is_valid())
    if pa.types.is_null(kind):
        return WholeNumbers(np.zeros(len(array), np.int64), there, is_one)
    if pa.types.is_decimal(kind):
        halves = np.frombuffer(array.buffers()[1], dtype=np.int64)
        numbers = halves[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    else:
        if pa.types.is_date(kind):
            array = array.view(pa.int32())
        elif not pa.types.is_integer(kind):
            array = array.view(pa.int64())
        numbers = array.cast(pa.int64()).fill_null(0).to_numpy()
    return WholeNumbers(np.where(there, numbers, 0), there, is_one)


def mask_of(array: pa.Array) -> Mask:
    """A Boolean array without NULLs."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def spread(*parts: WholeNumbers) -> tuple[Mask, bool]:
    """Where all parts are there, and whether all of them are constants."""
    there = parts[0].there
    for each in parts[1:]:
        there = there & each.there
    return there, all(each.is_one for each in parts)


def made(kind: pa.DataType, numbers: Any, there: Mask, *, is_one: bool) -> Value:
    """Numbers as values of a type that counts them: integers, dates, timestamps, decimals, ..."""
    numbers, there = np.broadcast_arrays(np.asarray(numbers), there)
    if pa.types.is_decimal(kind):
        halves = np.empty((len(numbers), 2), np.int64)
        halves[:, 0], halves[:, 1] = numbers, np.where(numbers < 0, -1, 0)
        valid = pa.array(there).buffers()[1]
        array = pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(halves)])
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        array = pa.array(numbers.astype(kind.to_pandas_dtype()), kind, mask=~there)
    else:
        plain = pa.int32() if pa.types.is_date(kind) else pa.int64()
        narrow = numbers.astype(plain.to_pandas_dtype())
        array = pa.array(narrow, plain, mask=~there).view(kind)
    return array[0] if is_one else array


def nothing(value: Value, kind: pa.DataType) -> Value:
    """NULL of a type, for as many rows as the value has."""
    return pa.scalar(None, kind) if isinstance(value, pa.Scalar) else pa.nulls(len(value), kind)


def failing(scope: Scope, there: Mask, bad: Any, reason: str) -> Mask:
    """Fail the rows that are there and bad; what is left is there."""
    wrong: Mask = there & bad
    if wrong.any():
        scope.fail(wrong, reason)
    left: Mask = there & ~wrong
    return left


def as_days(scope: Scope, value: Value, name: str) -> WholeNumbers:
    """Days since 1970 of a date, of a timestamp, or of a string that is cast."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        own = cells(value)
        return own._replace(numbers=own.numbers // DAY)
    if is_text(kind):
        return cells(cast(scope, value, pa.date32()))
    if pa.types.is_date(kind) or pa.types.is_null(kind):
        return cells(value)
    raise MeaninglessError(f"{name} takes a date, not {type_name(kind)}")


def as_micros(scope: Scope, value: Value, name: str) -> WholeNumbers:
    """Microseconds since 1970 of a timestamp, of a date, or of a string that is cast."""
    kind = value.type
    if pa.types.is_date(kind):
        own = cells(value)
        there = failing(scope, own.there, np.abs(own.numbers) > _I8.max // DAY, "time overflow")
        return own._replace(numbers=np.where(there, own.numbers, 0) * DAY, there=there)
    if is_text(kind):
        return cells(cast(scope, value, TIMESTAMP))
    if pa.types.is_timestamp(kind) or pa.types.is_null(kind):
        return cells(value)
    raise MeaninglessError(f"{name} takes a timestamp, not {type_name(kind)}")


def as_whole(
    scope: Scope, value: Value, name: str, kind: pa.DataType | None = None
) -> WholeNumbers:
    """The numbers of an INT, or of what is cast to one, as Spark does it for an argument."""
    kind = kind or pa.int32()
    if pa.types.is_null(value.type):
        return cells(value)
    if pa.types.is_integer(value.type):
        own = cells(value)
        over = ~fits_int(own.numbers) if kind == pa.int32() else False
        return own._replace(there=failing(scope, own.there, over, "INT overflow"))
    if not (is_number(value.type) or is_text(value.type)):
        raise MeaninglessError(f"{name} takes a whole number, not {type_name(value.type)}")
    return cells(cast(scope, value, kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether it is STRING."""
    return bool(pa.types.is_string(kind))


def timestamp_like(kind: pa.DataType) -> pa.DataType:
    """The type of a timestamp that is computed from this one: TIMESTAMP_NTZ stays what it is."""
    return TIMESTAMP_NTZ if kind == TIMESTAMP_NTZ else TIMESTAMP


def months_of(days: Numbers) -> Numbers:
    """Months since January 1970."""
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64)


def first_of(months: Numbers) -> Numbers:
    """The first day of a month."""
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def day_of_month(days: Numbers) -> Numbers:
    """The day of the month, from 1."""
    return days - first_of(months_of(days)) + 1


def days_in(months: Numbers) -> Numbers:
    """How many days a month has."""
    return first_of(months + 1) - first_of(months)


def year_of(days: Numbers) -> Numbers:
    """The year; 0 is the one before year 1."""
    return months_of(days) // 12 + 1970


def start_of_year(days: Numbers) -> Numbers:
    """The first of January."""
    return first_of(months_of(days) // 12 * 12)


def shifted_months(days: Numbers, months: Numbers) -> Numbers:
    """The day some months later, or the last day of a month that is too short for it."""
    target = months_of(days) + months
    return first_of(target) + np.minimum(day_of_month(days), days_in(target)) - 1


def plus_months(micros: Numbers, months: Numbers) -> tuple[Numbers, Mask]:
    """The moment some months later, and where it overflows."""
    beyond = np.abs(months) > 8_000_000  # half a million years either way
    moved = shifted_months(micros // DAY, np.where(beyond, 0, months))
    days, over = multiplied(moved, DAY)
    total, too = added(days, micros % DAY)
    return total, beyond | over | too


def fits_int(numbers: Numbers) -> Mask:
    """Whether numbers fit an INT."""
    return (numbers >= _I4.min) & (numbers <= _I4.max)


def added(left: Numbers, right: Numbers) -> tuple[Numbers, Mask]:
    """The sums, and where they overflow 64 bits."""
    total = left + right
    over: Mask = ((left ^ total) & (right ^ total)) < 0
    return total, over


def multiplied(numbers: Numbers, factor: int) -> tuple[Numbers, Mask]:
    """The products with a positive factor, and where they overflow 64 bits."""
    over = (numbers > _I8.max // factor) | (numbers < -(_I8.max // factor))
    return np.where(over, 0, numbers) * factor, over


def choices(scope: Scope, value: Value) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The distinct strings of a value, and for each row the number of its string.

    For arguments that are a word out of few. NULL is a string of its own, ``None``.
    """
    array = column(cast(scope, value, pa.string()))
    encoded = array.dictionary_encode()
    words: list[str | None] = [*encoded.dictionary.to_pylist(), None]
    places = pc.fill_null(encoded.indices, len(words) - 1).to_numpy()
    return words, places.astype(np.int64)
