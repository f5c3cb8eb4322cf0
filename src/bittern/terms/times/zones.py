"""Time zones: what a clock shows there, and when it shows it.

::

    12:00 in UTC                                14:00 in Europe/Berlin, in summer
    02:30 in Berlin, as summer time begins      03:30 there: the hour that is missing is passed over
    02:30 in Berlin, as summer time ends        the first of two

A zone is a name of the tz database, an offset (``+02:00``, ``UTC+2``) or one of Java's short names
(``PST``). The offset of a zone is looked up once for each day, and twice on the days on which it
changes: O(rows + days).
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, Scope, Value
from bittern.terms.times.moments import (
    DAY,
    SECOND,
    Numbers,
    added,
    as_micros,
    choices,
    failing,
    made,
)
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ

TABLE = FunctionTable()
#: A zone of the tz database, or seconds ahead of UTC.
Zone: TypeAlias = ZoneInfo | int

#: Java's ``ZoneId.SHORT_IDS``.
_SHORT = {
    "EST": "-05:00",
    "HST": "-10:00",
    "MST": "-07:00",
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
#: In the database, but no zones of Java's.
_NOT_IN_JAVA = frozenset(("Factory", "ROC", "localtime", "posixrules"))
_OFFSET = re.compile(
    "(?:UTC|GMT|UT)?([+-])(?:([0-9])|([0-9]{2})(?:([0-9]{2})([0-9]{2})?"
    "|:([0-9]{2})(?::([0-9]{2}))?)?)"
)
_MOST_SECONDS = 18 * 3600
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Seconds of 400 years, after which days of the year and of the week come again.
_CYCLE = 146_097 * 86_400
#: Python's calendar ends with the year 9999; rules go on as 400 years before, and before them all
#: is as in year 1.
_FIRST, _LAST = (
    int((moment - _EPOCH).total_seconds())
    for moment in (
        dt.datetime(1, 1, 3, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 29, tzinfo=dt.UTC),
    )
)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _NOT_IN_JAVA


@lru_cache(maxsize=1024)
def zone_of(text: str) -> Zone | None:
    """The zone of a text; None if it is none."""
    name = _SHORT.get(text, text)
    if name in ("Z", "UTC", "GMT", "UT"):
        return 0
    # Spark takes +h:mm and +hh:m as well.
    name = re.sub("([+-])([0-9]):", r"\g<1>0\g<2>:", name, count=1)
    name = re.sub("([+-])([0-9]{2}):([0-9])$", r"\1\2:0\3", name, count=1)
    if match := _OFFSET.fullmatch(name):
        sign, one, two, *rest = match.groups()
        minute, second = int(rest[0] or rest[2] or 0), int(rest[1] or rest[3] or 0)
        seconds = int(one or two) * 3600 + minute * 60 + second
        if minute > 59 or second > 59 or seconds > _MOST_SECONDS:
            return None
        return -seconds if sign == "-" else seconds
    return ZoneInfo(name) if name in _names() else None


def _offset(zone: ZoneInfo, second: int) -> int:
    """Seconds ahead of UTC, at a second since 1970."""
    if second > _LAST:
        second -= -((_LAST - second) // _CYCLE) * _CYCLE
    moment = _EPOCH + dt.timedelta(seconds=max(second, _FIRST))
    ahead = moment.astimezone(zone).utcoffset()
    assert ahead is not None
    return int(ahead.total_seconds())


@lru_cache(maxsize=1 << 16)
def _day(zone: ZoneInfo, day: int) -> tuple[int, int, int]:
    """The offsets at the start and at the end of a day in UTC, and the second of the change."""
    start = day * 86_400
    before, after = _offset(zone, start), _offset(zone, start + 86_399)
    if before == after:
        return before, after, start + 86_400
    low, high = start, start + 86_399
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return before, after, high


def offsets(zone: Zone, micros: Numbers) -> Numbers:
    """How many microseconds a zone is ahead of UTC, at moments of UTC."""
    if isinstance(zone, int):
        return np.full(len(micros), zone * SECOND)
    days, places = np.unique(micros // DAY, return_inverse=True)
    known = np.array([_day(zone, day) for day in days.tolist()], np.int64).reshape(-1, 3)
    before, after, change = (known[:, column][places] * SECOND for column in range(3))
    return np.where(micros < change, before, after)


def there_at(zone: Zone, micros: Numbers) -> Numbers:
    """What a clock in the zone shows, at moments of UTC."""
    return added(micros, offsets(zone, micros))[0]


def utc_of(zone: Zone, local: Numbers) -> Numbers:
    """The moments of UTC at which a clock in the zone shows these times.

    Where it shows a time twice it is the first; a time that it never shows is taken as one before
    the change.
    """
    before, after = offsets(zone, local - DAY), offsets(zone, local + DAY)
    use_after = (offsets(zone, local - before) != before) & (offsets(zone, local - after) == after)
    return local - np.where(use_after, after, before)


def zoned(
    scope: Scope, micros: Numbers, there: Mask, name: Value, *, to_utc: bool
) -> tuple[Numbers, Mask]:
    """Times moved from UTC to the zone of each row, or back."""
    words, places = choices(scope, name)
    size = np.broadcast_shapes(micros.shape, places.shape)
    micros, places = np.broadcast_to(micros, size), np.broadcast_to(places, size)
    there = np.broadcast_to(there, size)
    moved, known = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    missing = np.zeros(size, np.bool_)
    for place, word in enumerate(words):
        chosen = places == place
        zone = None if word is None else zone_of(word)
        if word is None:
            missing |= chosen
        if zone is None or not chosen.any():
            continue
        known |= chosen
        moved[chosen] = (utc_of if to_utc else there_at)(zone, micros[chosen])
    return moved, failing(scope, there & ~missing, ~known, "no such time zone")


def _utc_timestamp(scope: Scope, call: Call, value: Value, zone: Value) -> Value:
    own = as_micros(scope, value, call.function)
    to_utc = call.function == "to_utc_timestamp"
    numbers, there = zoned(scope, own.numbers, own.there, zone, to_utc=to_utc)
    return made(TIMESTAMP, numbers, there, is_one=own.is_one and isinstance(zone, pa.Scalar))


TABLE.add("from_utc_timestamp", "to_utc_timestamp", least=2)(_utc_timestamp)


@TABLE.add("convert_timezone", least=2, most=3)
def _convert_timezone(scope: Scope, _call: Call, *values: Value) -> Value:
    """From one zone, or from UTC, to another."""
    *zones, value = values
    own = as_micros(scope, value, "convert_timezone")
    numbers, there = own.numbers, own.there
    if len(zones) == 2:
        numbers, there = zoned(scope, numbers, there, zones[0], to_utc=True)
    numbers, there = zoned(scope, numbers, there, zones[-1], to_utc=False)
    is_one = all(isinstance(each, pa.Scalar) for each in values)
    return made(TIMESTAMP_NTZ, numbers, there, is_one=is_one)
