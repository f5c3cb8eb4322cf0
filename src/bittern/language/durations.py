"""Durations as text: ``'1 hour 30 minutes'`` is 5,400,000,000 microseconds.

A duration alternates numbers and units. Units go from microsecond to week, singular or plural, in
any case and order. A duration is written with its largest units first, at most days, so each has
one text: ``'90 minutes'`` and ``'1 HOUR 30 minutes'`` are both ``'1 hour 30 minutes'``. O(length).
"""

from __future__ import annotations

import re

from bittern.language.limits import MAX_WINDOW_DAYS

#: Microseconds of each unit, largest first; a week is read, and written as days.
_UNITS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_WRITTEN = [unit for unit in _UNITS if unit != "week"]
_PART = re.compile(rf"\s*([0-9]{{1,18}})\s+({'|'.join(_UNITS)})s?(?![^\s])", re.IGNORECASE)


def duration_value(text: str) -> int:
    """Read a positive duration, in microseconds; ``ValueError`` says what is wrong."""
    total, place = 0, 0
    while match := _PART.match(text, place):
        total += int(match[1]) * _UNITS[match[2].lower()]
        place = match.end()
    if text[place:].strip() or not place:
        shown = text if len(text) <= 30 else text[:27] + "..."
        raise ValueError(
            f"a duration must be written like '90 minutes' or '1 hour 30 minutes', with units from "
            f"microseconds to weeks, not {shown!r}"
        )
    if total == 0:
        raise ValueError("a duration must be longer than 0")
    if total > MAX_WINDOW_DAYS * _UNITS["day"]:
        raise ValueError(f"a duration must be at most {MAX_WINDOW_DAYS:,} days")
    return total


def print_duration(microseconds: int) -> str:
    """Write a duration so that it reads back as the same duration."""
    parts = []
    for unit in _WRITTEN:
        count, microseconds = divmod(microseconds, _UNITS[unit])
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(parts)
