"""Dates and timestamps from strings and numbers, and back.

::

    to_date('29.02.2024', 'dd.MM.yyyy')    2024-02-29
    date_format(2024-02-29, 'EEE d MMM')   'Thu 29 Feb'
    make_date(2024, 2, 30)                 fails; there are 29 days
    timestamp_seconds(1.5)                 1970-01-01 00:00:01.5

Without a pattern, reading a string is a cast (``terms/casts``); patterns are in ``patterns.py``,
and they are constants. All O(rows).
"""

from __future__ import annotations

from functools import partial

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
    as_micros,
    as_whole,
    cells,
    column,
    days_in,
    failing,
    first_of,
    fits_int,
    is_text,
    made,
    mask_of,
    multiplied,
    nothing,
    spread,
)
from bittern.terms.times.patterns import parsed, written
from bittern.terms.times.zones import zoned
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ, is_number, type_name

TABLE = FunctionTable()
_DATE = pa.date32()
_DEFAULT = "yyyy-MM-dd HH:mm:ss"


def _pattern(scope: Scope, value: Value) -> str | None:
    """The pattern that an argument is; None if it is NULL."""
    if pa.types.is_null(value.type):
        return None
    if not isinstance(value, pa.Scalar):
        raise MeaninglessError("a pattern of dates is a constant")
    found: str | None = cast(scope, value, pa.string()).as_py()
    return found


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _read(scope: Scope, value: Value, pattern: str, kind: pa.DataType, *, strict: bool) -> Value:
    """Strings as timestamps, or as the dates of these."""
    array = column(value)
    micros, local, fits = parsed(pattern, array)
    there = mask_of(array.is_valid())
    if strict:
        failing(scope, there, ~fits, "not a time by the pattern")
    numbers = local if kind == TIMESTAMP_NTZ else micros // DAY if kind == _DATE else micros
    return made(kind, numbers, there & fits, is_one=isinstance(value, pa.Scalar))


def _converted(kind: pa.DataType, scope: Scope, call: Call, value: Value, *rest: Value) -> Value:
    """``to_date``, ``to_timestamp`` and their kin, of one type."""
    strict = not call.function.startswith("try_")
    given = value.type
    by_itself = is_text(given) or _is_moment(given) or pa.types.is_null(given)
    if not by_itself and (rest or kind != TIMESTAMP or not is_number(given)):
        value = cast(scope, value, pa.string())
    if rest and not _is_moment(value.type):
        pattern = _pattern(scope, rest[0])
        if pattern is None:
            return nothing(value, kind)
        if is_text(value.type):
            return _read(scope, value, pattern, kind, strict=strict)
    return value if value.type == kind else cast(scope, value, kind, strict=strict)


for _names, _kind in (
    (("to_date", "try_to_date"), _DATE),
    (("to_timestamp", "try_to_timestamp", "to_timestamp_ltz"), TIMESTAMP),
    (("to_timestamp_ntz",), TIMESTAMP_NTZ),
):
    TABLE.add(*_names, least=1, most=2)(partial(_converted, _kind))


@TABLE.add("unix_timestamp", "to_unix_timestamp", least=1, most=2)
def _unix_timestamp(scope: Scope, call: Call, value: Value, *rest: Value) -> Value:
    if is_text(value.type):
        pattern = _pattern(scope, rest[0]) if rest else _DEFAULT
        if pattern is None:
            return nothing(value, pa.int64())
        value = _read(scope, value, pattern, TIMESTAMP, strict=True)
    own = as_micros(scope, value, call.function)
    whole = np.sign(own.numbers) * (np.abs(own.numbers) // SECOND)
    return made(pa.int64(), whole, own.there, is_one=own.is_one)


def _as_written(own: WholeNumbers, numbers: Numbers, pattern: str) -> Value:
    text = pc.if_else(pa.array(own.there), written(pattern, numbers), pa.scalar(None, pa.string()))
    return text[0] if own.is_one else text


@TABLE.add("date_format", least=2)
def _date_format(scope: Scope, _call: Call, value: Value, form: Value) -> Value:
    own, pattern = as_micros(scope, value, "date_format"), _pattern(scope, form)
    if pattern is None:
        return nothing(value, pa.string())
    return _as_written(own, own.numbers, pattern)


@TABLE.add("from_unixtime", least=1, most=2)
def _from_unixtime(scope: Scope, _call: Call, value: Value, *rest: Value) -> Value:
    own = as_whole(scope, value, "from_unixtime", pa.int64())
    pattern = _pattern(scope, rest[0]) if rest else _DEFAULT
    if pattern is None:
        return nothing(value, pa.string())
    return _as_written(own, own.numbers * SECOND, pattern)


@TABLE.add("timestamp_seconds", least=1)
def _timestamp_seconds(scope: Scope, call: Call, value: Value) -> Value:
    kind = value.type
    if pa.types.is_decimal(kind):
        return _of_decimal(scope, value)
    if not pa.types.is_floating(kind):
        return _of_integer(SECOND, scope, call, value)
    seconds = column(value).cast(pa.float64()).fill_null(np.nan).to_numpy()
    there = np.isfinite(seconds)
    with np.errstate(over="ignore"):
        exact = seconds * 1e6
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    small = np.where(there & (np.abs(exact) < 2.0**63), exact, 0).astype(np.int64)
    numbers = np.where(exact >= 2.0**63, high, np.where(exact <= -(2.0**63), low, small))
    return made(TIMESTAMP, numbers, there, is_one=isinstance(value, pa.Scalar))


def _of_decimal(scope: Scope, value: Value) -> Value:
    """Seconds with a fraction, which is exact or fails."""
    array = column(value)
    wide = array.cast(pa.decimal256(76, max(6, array.type.scale)))
    there = mask_of(array.is_valid())
    whole = mask_of(pc.equal(pc.round(wide, 6), wide).fill_null(False))
    most = pa.scalar("9223372036854.775807").cast(wide.type)
    small = mask_of(pc.less_equal(pc.abs(wide), most).fill_null(False))
    there = failing(scope, there, ~whole, "a fraction of a microsecond")
    there = failing(scope, there, ~small, "time overflow")
    fine = pc.if_else(pa.array(there), wide, pa.scalar(None, wide.type))
    numbers = cells(fine.cast(pa.decimal128(19, 6))).numbers
    return made(TIMESTAMP, numbers, there, is_one=isinstance(value, pa.Scalar))


def _of_integer(size: int, scope: Scope, call: Call, value: Value) -> Value:
    if not (pa.types.is_integer(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"{call.function} takes a number, not {type_name(value.type)}")
    own = cells(value)
    numbers, over = multiplied(own.numbers, size)
    there = failing(scope, own.there, over, "time overflow")
    return made(TIMESTAMP, numbers, there, is_one=own.is_one)


TABLE.add("timestamp_millis", least=1)(partial(_of_integer, 1000))
TABLE.add("timestamp_micros", least=1)(partial(_of_integer, 1))


def _unix(size: int, _scope: Scope, call: Call, value: Value) -> Value:
    if not (pa.types.is_timestamp(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"{call.function} takes a timestamp, not {type_name(value.type)}")
    own = cells(value)
    return made(pa.int64(), own.numbers // size, own.there, is_one=own.is_one)


TABLE.add("unix_seconds", least=1)(partial(_unix, SECOND))
TABLE.add("unix_millis", least=1)(partial(_unix, 1000))
TABLE.add("unix_micros", least=1)(partial(_unix, 1))


@TABLE.add("unix_date", least=1)
def _unix_date(_scope: Scope, _call: Call, value: Value) -> Value:
    if not (pa.types.is_date(value.type) or pa.types.is_null(value.type)):
        raise MeaninglessError(f"unix_date takes a date, not {type_name(value.type)}")
    own = cells(value)
    return made(pa.int32(), own.numbers, own.there, is_one=own.is_one)


@TABLE.add("date_from_unix_date", least=1)
def _date_from_unix_date(scope: Scope, call: Call, value: Value) -> Value:
    own = as_whole(scope, value, call.function)
    return made(_DATE, own.numbers, own.there, is_one=own.is_one)


def _days(years: Numbers, months: Numbers, day: Numbers) -> tuple[Numbers, Mask]:
    """The day of a year, a month and a day of the month, and where there is none."""
    bad = (months < 1) | (months > 12)
    month = (years - 1970) * 12 + np.where(bad, 1, months) - 1
    days = first_of(month) + day - 1
    return days, bad | (day < 1) | (day > days_in(month)) | ~fits_int(days)


@TABLE.add("make_date", least=3)
def _make_date(scope: Scope, _call: Call, *values: Value) -> Value:
    own = [as_whole(scope, value, "make_date") for value in values]
    there, is_one = spread(*own)
    days, bad = _days(*(each.numbers for each in own))
    there = failing(scope, there, bad, "no such date")
    return made(_DATE, days, there, is_one=is_one)


def _make_timestamp(kind: pa.DataType, scope: Scope, call: Call, *values: Value) -> Value:
    """From year, month, day, hour, minute, seconds with a fraction, and maybe a zone."""
    name, quiet = call.function, Scope({}, scope.n_rows)
    own = [as_whole(scope, value, name) for value in values[:5]]
    fraction = values[5]
    if not (is_number(fraction.type) or is_text(fraction.type) or pa.types.is_null(fraction.type)):
        raise MeaninglessError(f"{name} takes seconds as a number, not {type_name(fraction.type)}")
    own.append(cells(cast(scope, fraction, pa.decimal128(16, 6))))
    there, is_one = spread(*own)
    days, bad = _days(*(each.numbers for each in own[:3]))
    hour, minute, micros = (each.numbers for each in own[3:])
    bad = bad | (hour < 0) | (hour > 23) | (minute < 0) | (minute > 59)
    bad = bad | (micros < 0) | (micros > MINUTE) | (np.abs(days) > 106_000_000)
    judge = quiet if name.startswith("try_") else scope
    there = failing(judge, there, bad, "no such time")
    numbers = np.where(there, days, 0) * DAY + hour * HOUR + minute * MINUTE + micros
    if len(values) == 7:
        zone = values[6]
        is_one = is_one and isinstance(zone, pa.Scalar)
        numbers, there = zoned(scope, numbers, there, zone, to_utc=True)
    return made(kind, numbers, there, is_one=is_one)


for _name in ("make_timestamp", "make_timestamp_ltz"):
    TABLE.add(_name, f"try_{_name}", least=6, most=7)(partial(_make_timestamp, TIMESTAMP))
TABLE.add("make_timestamp_ntz", "try_make_timestamp_ntz", least=6)(
    partial(_make_timestamp, TIMESTAMP_NTZ)
)
