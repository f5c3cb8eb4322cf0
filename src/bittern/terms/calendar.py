"""The Gregorian calendar, carried on before its first and beyond any year, and zones of time.

Days count from 1970-01-01. ``civil(-719528)`` is (0, 1, 1): years are counted as astronomers do.
``offset_of`` is what Java's ``ZoneId`` means by a name. All O(1).
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from functools import cache
from typing import Any

import numpy as np

_ERA = 146_097  # days of 400 years
_EPOCH = 719_468  # days from 0000-03-01, with which years begin here, to 1970-01-01

#: Names of three letters that Java keeps for zones; some of them are no names in the database.
_SHORT = {
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
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
}
_OFFSET = re.compile(r"([+-])(\d)|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?", re.ASCII)
_PREFIX = re.compile(r"(?:UTC|GMT|UT)(?=[+-])")
_MOST_OFFSET = 18 * 3600


def days_of(year: Any, month: Any, day: Any) -> Any:
    """The day's number; integers or arrays of them, valid or not."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day's number."""
    era, of_era = divmod(days + _EPOCH, _ERA)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def length_of_month(year: Any, month: Any) -> Any:
    """How many days a month of 1 to 12 has; integers or arrays of them."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return 30 + (month + month // 8) % 2 - (month == 2) * (2 - leap)


def offset_of(zone: str, year: int, month: int, day: int, second: int) -> int | None:
    """Seconds that a zone is ahead of UTC at a local time; None if there is no such zone.

    A local time that a clock skips counts from before the gap, one that comes twice is the first.
    """
    # Spark still takes an hour, or a minute, of one digit.
    zone = re.sub(r"([+-])([0-9]):", r"\g<1>0\2:", zone, count=1)
    zone = re.sub(r"([+-][0-9][0-9]):([0-9])$", r"\1:0\2", zone, count=1)
    zone = _SHORT.get(zone, zone)
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    if match := _OFFSET.fullmatch(_PREFIX.sub("", zone, count=1)):
        return _fixed(match)
    known = _zone(zone)
    if known is None:
        return None
    # Rules come back every 400 years; before there were any, local mean time holds.
    year = 1 if year < 1 else year if year < 9999 else 9600 - 400 + year % 400
    hour, second = divmod(second, 3600)
    local = datetime.datetime(year, month, day, hour, second // 60, second % 60, tzinfo=known)
    ahead = local.utcoffset()
    return None if ahead is None else round(ahead.total_seconds())


def _fixed(match: re.Match[str]) -> int | None:
    sign, hours = match[1] or match[3], int(match[2] or match[4])
    minutes, seconds = int(match[5] or 0), int(match[6] or 0)
    ahead = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or ahead > _MOST_OFFSET:
        return None
    return -ahead if sign == "-" else ahead


@cache
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    return zoneinfo.ZoneInfo(name) if name in _names() else None


def is_date(year: Any, month: Any, day: Any) -> Any:
    """Whether there is such a day; arrays."""
    there = (month >= 1) & (month <= 12) & (day >= 1)
    return there & (day <= length_of_month(year, np.where(there, month, 1)))
