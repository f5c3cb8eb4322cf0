"""``+`` and ``-`` of dates, timestamps and intervals.

::

    date + INT                    date          date - date             interval of days
    date + interval of days       date          date - timestamp        interval of days and time
    date + interval with hours    timestamp     timestamp - timestamp   interval of days and time
    2024-01-31 + 1 month          2024-02-29    string + interval       string, of a timestamp

What a term means is decided by types alone. All O(rows).
"""

from __future__ import annotations

import pyarrow as pa

from bittern.terms.casts.casts import cast
from bittern.terms.nodes import Call
from bittern.terms.scope import MeaninglessError, Scope, Value
from bittern.terms.times.intervals import is_interval, micros_of, parts, total
from bittern.terms.times.moments import (
    DAY,
    WholeNumbers,
    added,
    as_days,
    as_micros,
    as_whole,
    failing,
    fits_int,
    is_text,
    made,
    multiplied,
    nothing,
    plus_months,
    shifted_months,
    spread,
    timestamp_like,
)
from bittern.terms.types import DAY_TIME, DAYS, TIMESTAMP

_DATE = pa.date32()


def plus_days(date: WholeNumbers, days: WholeNumbers, sign: int) -> Value:
    """The date some days later. Far beyond the year 9999 it starts over, as in Spark."""
    there, is_one = spread(date, days)
    return made(_DATE, date.numbers + sign * days.numbers, there, is_one=is_one)


def shifted(scope: Scope, call: Call, left: Value, right: Value) -> Value:
    """What ``+`` and ``-`` mean where an operand is a date, a timestamp or an interval."""
    if call.function == "-":
        return _minus(scope, left, right)
    if _is_moment(left.type) and _is_moment(right.type):
        raise MeaninglessError("two dates or timestamps do not add up")
    if _is_moment(right.type) or (is_interval(left.type) and not _is_moment(left.type)):
        left, right = right, left
    if pa.types.is_null(right.type) and _is_moment(left.type):
        return nothing(left, timestamp_like(left.type))
    return _moved(scope, left, right, 1)


def _minus(scope: Scope, left: Value, right: Value) -> Value:
    if _is_moment(right.type):
        return _apart(scope, left, right)
    if _is_moment(left.type) and (is_text(right.type) or pa.types.is_null(right.type)):
        return _apart(scope, left, right)
    return _moved(scope, left, right, -1)


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _apart(scope: Scope, end: Value, start: Value) -> Value:
    """From one date or timestamp to another."""
    if pa.types.is_timestamp(end.type) or pa.types.is_timestamp(start.type):
        one, other = (as_micros(scope, value, "-") for value in (end, start))
        there, is_one = spread(one, other)
        numbers = one.numbers - other.numbers
        over = ((one.numbers ^ other.numbers) & (one.numbers ^ numbers)) < 0
        there = failing(scope, there, over, "interval overflow")
        return made(DAY_TIME, numbers, there, is_one=is_one)
    one, other = (as_days(scope, value, "-") for value in (end, start))
    there, is_one = spread(one, other)
    return made(DAYS, (one.numbers - other.numbers) * 86_400, there, is_one=is_one)


def _moved(scope: Scope, value: Value, by: Value, sign: int) -> Value:
    """A date, a timestamp, an interval or a string, an interval or some days later."""
    if not is_interval(by.type):
        narrow = pa.types.is_integer(by.type) and by.type != pa.int64()
        if pa.types.is_null(by.type) and is_interval(value.type):
            return nothing(value, value.type)
        if not (pa.types.is_date(value.type) and narrow):
            raise MeaninglessError(f"{value.type} and {by.type} do not add up")
        return plus_days(as_days(scope, value, "+"), as_whole(scope, by, "+"), sign)
    if is_interval(value.type) or pa.types.is_null(value.type):
        own = nothing(value, by.type) if pa.types.is_null(value.type) else value
        return total(scope, own, by, sign)
    if is_text(value.type) and not pa.types.is_interval(by.type):
        moment = cast(scope, value, TIMESTAMP)
        return cast(scope, _moved(scope, moment, by, sign), pa.string())
    if not _is_moment(value.type):
        raise MeaninglessError(f"{value.type} and {by.type} do not add up")
    if pa.types.is_interval(by.type):
        return _moved_months(scope, value, by, sign)
    micros = micros_of(by)
    if by.type == DAYS and pa.types.is_date(value.type):
        days = micros._replace(numbers=micros.numbers // DAY)
        return plus_days(as_days(scope, value, "+"), days, sign)
    own_ = as_micros(scope, value, "+")
    there, is_one = spread(own_, micros)
    numbers, over = added(own_.numbers, sign * micros.numbers)
    there = failing(scope, there, over, "time overflow")
    return made(timestamp_like(value.type), numbers, there, is_one=is_one)


def _moved_months(scope: Scope, value: Value, by: Value, sign: int) -> Value:
    """Months first, then days, then time."""
    own = parts(by)
    months, days, micros = (sign * each for each in (own.months, own.days, own.micros))
    if pa.types.is_date(value.type):
        date = as_days(scope, value, "+")
        there = failing(scope, date.there & own.there, micros != 0, "a date has no hours")
        moved = shifted_months(date.numbers, months) + days
        there = failing(scope, there, ~fits_int(moved), "date overflow")
        return made(_DATE, moved, there, is_one=date.is_one and own.is_one)
    moment = as_micros(scope, value, "+")
    later, over = plus_months(moment.numbers, months)
    product, beyond = multiplied(days, DAY)
    later, too = added(later, product)
    later, last = added(later, micros)
    there = failing(scope, moment.there & own.there, over | beyond | too | last, "time overflow")
    return made(timestamp_like(value.type), later, there, is_one=moment.is_one and own.is_one)
