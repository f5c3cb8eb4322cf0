"""Functions of dates and timestamps: their fields, what they are cut to, days and months apart.

::

    date_trunc('MONTH', 2024-02-29 13:05)    2024-02-01 00:00
    add_months(2024-01-31, 1)                2024-02-29    the last day of a shorter month
    EXTRACT(WEEK FROM 2024-12-31)            1             weeks as ISO 8601 counts them

``EXTRACT(field FROM x)`` is the call ``extract`` with the field's name, a string, first. The unit
of ``TIMESTAMPADD(MONTH, 1, x)`` is a word that reads as an attribute: its name counts, not its
value.
Numbers in NumPy (``moments.py``), all O(rows).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from bittern.terms.nodes import Attribute, Call, Term
from bittern.terms.scope import FunctionTable, MeaninglessError, Scope, Value
from bittern.terms.times.interval_literals import interval_literal, print_months
from bittern.terms.times.intervals import extracted, is_interval
from bittern.terms.times.moments import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Numbers,
    WholeNumbers,
    added,
    as_days,
    as_micros,
    as_whole,
    choices,
    day_of_month,
    days_in,
    failing,
    first_of,
    fits_int,
    is_text,
    made,
    months_of,
    multiplied,
    plus_months,
    shifted_months,
    spread,
    start_of_year,
    timestamp_like,
    year_of,
)
from bittern.terms.times.shifting import plus_days, shifted
from bittern.terms.types import TIMESTAMP

__all__ = ["TABLE", "interval_literal", "print_months", "shifted"]
TABLE = FunctionTable()
_DATE = pa.date32()


def _week_start(days: Numbers) -> Numbers:
    """The Monday on or before a day; 1970 began on a Thursday."""
    return days - (days + 3) % 7


def _thursday(days: Numbers) -> Numbers:
    """The Thursday of a day's week, whose year the week belongs to."""
    return _week_start(days) + 3


_OF_DAYS: dict[str, Callable[[Numbers], Numbers]] = {
    "year": year_of,
    "quarter": lambda days: months_of(days) % 12 // 3 + 1,
    "month": lambda days: months_of(days) % 12 + 1,
    "day": day_of_month,
    "dayofmonth": day_of_month,
    "dayofweek": lambda days: (days + 4) % 7 + 1,
    "weekday": lambda days: (days + 3) % 7,
    "dayofyear": lambda days: days - start_of_year(days) + 1,
    "weekofyear": lambda days: (_thursday(days) - start_of_year(_thursday(days))) // 7 + 1,
}
_OF_MICROS: dict[str, Callable[[Numbers], Numbers]] = {
    "hour": lambda micros: micros % DAY // HOUR,
    "minute": lambda micros: micros % HOUR // MINUTE,
    "second": lambda micros: micros % MINUTE // SECOND,
}
#: The names that EXTRACT takes beside those of the functions.
_FIELDS = {
    "year": "y years yr yrs",
    "quarter": "qtr",
    "month": "mon mons months",
    "weekofyear": "week w weeks",
    "day": "d days",
    "dayofweek": "dow",
    "dayofyear": "doy",
    "hour": "h hours hr hrs",
    "minute": "m min mins minutes",
    "second": "s sec seconds secs",
    "yearofweek": "",
    "dayofweek_iso": "dow_iso",
}
_FIELD_OF = {name: field for field, names in _FIELDS.items() for name in (field, *names.split())}
for _own in ("weekofyear", "dayofyear"):  # functions, but no fields
    del _FIELD_OF[_own]


def _field(scope: Scope, call: Call, value: Value) -> Value:
    name = call.function
    if name in _OF_DAYS:
        own = as_days(scope, value, name)
        numbers = _OF_DAYS[name](own.numbers)
    else:
        own = as_micros(scope, value, name)
        numbers = _OF_MICROS[name](own.numbers)
    return made(pa.int32(), numbers, own.there, is_one=own.is_one)


for _name in (*_OF_DAYS, *_OF_MICROS):
    TABLE.add(_name, least=1)(_field)


@TABLE.add("extract", "date_part", "datepart", least=2)
def _extract(scope: Scope, _call: Call, name: Value, value: Value) -> Value:
    written = name.as_py() if isinstance(name, pa.Scalar) else None
    if not isinstance(written, str):
        raise MeaninglessError("EXTRACT takes the name of a field, as it is written")
    field = _FIELD_OF.get(written.lower())
    if field is None:
        raise MeaninglessError(f"{written[:40]} is not a field of a date or a timestamp")
    if is_interval(value.type):
        return extracted(field, value)
    if field == "second":
        own = as_micros(scope, value, "EXTRACT")
        return made(pa.decimal128(8, 6), own.numbers % MINUTE, own.there, is_one=own.is_one)
    if field in ("yearofweek", "dayofweek_iso"):
        own = as_days(scope, value, "EXTRACT")
        days = own.numbers
        numbers = year_of(_thursday(days)) if field == "yearofweek" else (days + 3) % 7 + 1
        return made(pa.int32(), numbers, own.there, is_one=own.is_one)
    return _field(scope, Call(field, ()), value)


_TO_MONTHS = {"year": 12, "yyyy": 12, "yy": 12, "quarter": 3, "month": 1, "mon": 1, "mm": 1}
_TO_MICROS = {
    "day": DAY,
    "dd": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}


def _cut_days(unit: str, days: Numbers) -> Numbers | None:
    """The first day of the year, quarter, month or week."""
    if unit == "week":
        return _week_start(days)
    size = _TO_MONTHS.get(unit)
    return None if size is None else first_of(months_of(days) // size * size)


def _cut_micros(unit: str, micros: Numbers) -> Numbers | None:
    size = _TO_MICROS.get(unit)
    if size is not None:
        return micros // size * size
    days = _cut_days(unit, micros // DAY)
    return None if days is None else days * DAY


def _cut(
    scope: Scope,
    own: WholeNumbers,
    unit: Value,
    kind: pa.DataType,
    cut: Callable[[str, Numbers], Numbers | None],
) -> Value:
    """Cut by the unit of each row; of those that are none, nothing is known."""
    words, places = choices(scope, unit)
    shape = np.broadcast_shapes(own.numbers.shape, places.shape)
    numbers, there = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    for place, word in enumerate(words):
        answer = None if word is None else cut(word.lower(), own.numbers)
        if answer is not None:
            chosen = places == place
            numbers, there = np.where(chosen, answer, numbers), there | chosen
    is_one = own.is_one and isinstance(unit, pa.Scalar)
    return made(kind, numbers, there & own.there, is_one=is_one)


@TABLE.add("trunc", least=2)
def _trunc(scope: Scope, _call: Call, value: Value, unit: Value) -> Value:
    return _cut(scope, as_days(scope, value, "trunc"), unit, _DATE, _cut_days)


@TABLE.add("date_trunc", least=2)
def _date_trunc(scope: Scope, _call: Call, unit: Value, value: Value) -> Value:
    return _cut(scope, as_micros(scope, value, "date_trunc"), unit, TIMESTAMP, _cut_micros)


@TABLE.add("datediff", "date_diff", least=2, most=3, lazy=True)
def _datediff(scope: Scope, call: Call) -> Value:
    if len(call.arguments) == 3:
        return _timestampdiff(scope, call)
    end, start = (as_days(scope, scope.value(term), "datediff") for term in call.arguments)
    there, is_one = spread(end, start)
    return made(pa.int32(), end.numbers - start.numbers, there, is_one=is_one)


def _date_plus(sign: int, scope: Scope, call: Call) -> Value:
    if len(call.arguments) == 3:
        return _timestampadd(scope, call)
    date, count = map(scope.value, call.arguments)
    narrow = pa.types.is_integer(count.type) and count.type != pa.int64()
    if not (narrow or is_text(count.type) or pa.types.is_null(count.type)):
        raise MeaninglessError(f"{call.function} takes days as an INT, not {count.type}")
    return plus_days(as_days(scope, date, call.function), as_whole(scope, count, "days"), sign)


TABLE.add("date_add", "dateadd", least=2, most=3, lazy=True)(partial(_date_plus, 1))
TABLE.add("date_sub", least=2, lazy=True)(partial(_date_plus, -1))


@TABLE.add("add_months", least=2)
def _add_months(scope: Scope, _call: Call, date: Value, count: Value) -> Value:
    own, months = as_days(scope, date, "add_months"), as_whole(scope, count, "add_months")
    there, is_one = spread(own, months)
    days = shifted_months(own.numbers, months.numbers)
    there = failing(scope, there, ~fits_int(days), "date overflow")
    return made(_DATE, days, there, is_one=is_one)


@TABLE.add("months_between", least=2, most=3)
def _months_between(
    scope: Scope, _call: Call, end: Value, start: Value, rounds: Value | None = None
) -> Value:
    rounding = pa.scalar(True) if rounds is None else rounds
    if not (pa.types.is_boolean(rounding.type) or pa.types.is_null(rounding.type)):
        raise MeaninglessError("months_between takes TRUE or FALSE third")
    one, other = (as_micros(scope, value, "months_between") for value in (end, start))
    there, is_one = spread(one, other)
    days = one.numbers // DAY, other.numbers // DAY
    months = months_of(days[0]), months_of(days[1])
    place = day_of_month(days[0]), day_of_month(days[1])
    both_last = (place[0] == days_in(months[0])) & (place[1] == days_in(months[1]))
    seconds = [own.numbers % DAY // SECOND for own in (one, other)]
    apart = (place[0] - place[1]) * 86_400 + seconds[0] - seconds[1]
    whole = (months[0] - months[1]).astype(np.float64)
    is_whole = (place[0] == place[1]) | both_last
    exact = np.where(is_whole, whole, whole + apart / (31 * 86_400.0))
    rounded = np.floor(exact * 1e8 + 0.5) / 1e8
    if isinstance(rounding, pa.Scalar):
        wanted = np.array([rounding.as_py() is True])
        there = there & rounding.is_valid
    else:
        wanted = scope.mask(rounding)
        there, is_one = there & scope.mask(rounding.is_valid()), False
    numbers = np.where(wanted & ~is_whole, rounded, exact)
    return made(pa.float64(), numbers, there, is_one=is_one)


@TABLE.add("last_day", least=1)
def _last_day(scope: Scope, _call: Call, value: Value) -> Value:
    own = as_days(scope, value, "last_day")
    return made(_DATE, first_of(months_of(own.numbers) + 1) - 1, own.there, is_one=own.is_one)


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = {name[:n]: i for i, name in enumerate(_WEEKDAYS) for n in (2, 3, len(name))}


@TABLE.add("next_day", least=2)
def _next_day(scope: Scope, _call: Call, value: Value, name: Value) -> Value:
    own = as_days(scope, value, "next_day")
    words, places = choices(scope, name)
    wanted = np.array([-2 if w is None else _WEEKDAY.get(w.lower(), -1) for w in words])[places]
    there = own.there & (wanted != -2)
    there = failing(scope, there, wanted == -1, "no day of the week")
    days = own.numbers + 1 + (wanted - (own.numbers + 1 + 3)) % 7
    return made(_DATE, days, there, is_one=own.is_one and isinstance(name, pa.Scalar))


_UNITS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "dayofyear": DAY,
    "week": 7 * DAY,
}
_MONTH_UNITS = {"month": 1, "quarter": 3, "year": 12}


def _unit(term: Term) -> tuple[int, int]:
    """How many months, and how many microseconds, a unit is; one of them is 0."""
    name = term.name.lower() if isinstance(term, Attribute) else ""
    if name not in _UNITS and name not in _MONTH_UNITS:
        raise MeaninglessError("a unit is written as YEAR, MONTH, DAY, HOUR, ... without quotes")
    return _MONTH_UNITS.get(name, 0), _UNITS.get(name, 0)


@TABLE.add("timestampadd", least=3, lazy=True)
def _timestampadd(scope: Scope, call: Call) -> Value:
    months, size = _unit(call.arguments[0])
    count, value = map(scope.value, call.arguments[1:])
    own = as_micros(scope, value, call.function)
    times = as_whole(scope, count, call.function, pa.int64())
    there, is_one = spread(own, times)
    if months:
        product, beyond = multiplied(times.numbers, months)
        total, over = plus_months(own.numbers, product)
    else:
        product, beyond = multiplied(times.numbers, size)
        total, over = added(own.numbers, product)
    there = failing(scope, there, beyond | over, "time overflow")
    return made(timestamp_like(value.type), total, there, is_one=is_one)


def _months_apart(start: Numbers, end: Numbers) -> Numbers:
    """Whole months from one moment to another."""
    days, other = start // DAY, end // DAY
    early = (other > days) & (end % DAY < start % DAY)
    late = (other < days) & (end % DAY > start % DAY)
    other = other - early + late
    packed = [months_of(each) * 32 + day_of_month(each) for each in (days, other)]
    apart = packed[1] - packed[0]
    whole: Numbers = np.sign(apart) * (np.abs(apart) // 32)
    return whole


@TABLE.add("timestampdiff", least=3, lazy=True)
def _timestampdiff(scope: Scope, call: Call) -> Value:
    unit = call.arguments[0]
    months, size = _unit(unit)
    if isinstance(unit, Attribute) and unit.name.lower() == "dayofyear":  # Spark adds these only
        raise MeaninglessError("a difference is not counted in DAYOFYEAR: DAY is the same")
    one, other = (as_micros(scope, scope.value(term), call.function) for term in call.arguments[1:])
    there, is_one = spread(one, other)
    if months:
        numbers = _months_apart(one.numbers, other.numbers)
        size = months
    else:
        numbers, over = added(other.numbers, -one.numbers)
        there = failing(scope, there, over, "time overflow")
    whole = np.abs(numbers) // size
    return made(pa.int64(), np.sign(numbers) * whole, there, is_one=is_one)
