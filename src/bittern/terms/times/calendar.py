"""The Gregorian calendar, carried on before its first and beyond any year.

Days count from 1970-01-01. ``civil(-719528)`` is (0, 1, 1): years are counted as astronomers do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ERA = 146_097  # days of 400 years
_EPOCH = 719_468  # days from 0000-03-01, with which years begin here, to 1970-01-01


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


def is_date(year: Any, month: Any, day: Any) -> Any:
    """Whether there is such a day; arrays."""
    there = (month >= 1) & (month <= 12) & (day >= 1)
    return there & (day <= length_of_month(year, np.where(there, month, 1)))
