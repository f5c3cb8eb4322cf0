"""How intervals are written: ``INTERVAL '1' DAY``, ``INTERVAL '1-2' YEAR TO MONTH``.

The reader gives amounts and units as it finds them::

    INTERVAL '1' DAY                          [("1", "DAY")]
    INTERVAL 3 DAYS 2 HOURS                   [("3", "DAYS"), ("2", "HOURS")]
    INTERVAL '3 days 2 hours'                 [("3 days 2 hours", "")]
    INTERVAL '1 02:03:04.5' DAY TO SECOND     [("1 02:03:04.5", "DAY TO SECOND")]

Only seconds have a fraction, of up to nine digits, of which six count.
"""

from __future__ import annotations

import re

import pyarrow as pa

from bittern.terms.times.moments import DAY, HOUR, MINUTE, SECOND
from bittern.terms.types import DAY_TIME, DAYS, YEAR_MONTH

_MONTHS = {"year": 12, "month": 1}
_MICROS = {
    "week": 7 * DAY,
    "day": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}
_PIECE = re.compile(r" ?([+-]?) ?([0-9]*)(\.[0-9]{0,9})? ([a-z]+?)s?(?= |$)")
_FRACTION = r"([0-9]{1,2}(?:\.[0-9]{1,9})?)"
#: From the first unit to the last: the parts of the text, and the size of each.
_RANGES: dict[str, tuple[str, tuple[int, ...]]] = {
    "day to hour": (r"([0-9]+) +([0-9]{1,2})", (DAY, HOUR)),
    "day to minute": (r"([0-9]+) +([0-9]{1,2}):([0-9]{1,2})", (DAY, HOUR, MINUTE)),
    "day to second": (
        r"([0-9]+) +([0-9]{1,2}):([0-9]{1,2}):" + _FRACTION,
        (DAY, HOUR, MINUTE, SECOND),
    ),
    "hour to minute": (r"([0-9]+):([0-9]{1,2})", (HOUR, MINUTE)),
    "hour to second": (r"([0-9]+):([0-9]{1,2}):" + _FRACTION, (HOUR, MINUTE, SECOND)),
    "minute to second": (r"([0-9]+):" + _FRACTION, (MINUTE, SECOND)),
}
#: How many of a unit there may be behind a larger one.
_MOST = {HOUR: 23, MINUTE: 59, SECOND: 59}


def interval_literal(pieces: list[tuple[str, str]]) -> pa.Scalar:
    """The interval of amounts and units; ``ValueError`` says why it is none."""
    if len(pieces) == 1 and " to " in " ".join(pieces[0][1].lower().split()):
        return _ranged(pieces[0][0].strip(), " ".join(pieces[0][1].lower().split()))
    return _listed(" ".join(f"{amount} {unit}" for amount, unit in pieces))


def _wrong(text: str) -> ValueError:
    return ValueError(f"{text.strip()[:40]!r} is not an interval: try INTERVAL '1' DAY")


def _listed(text: str) -> pa.Scalar:
    """``3 days 2 hours``."""
    rest = " ".join(text.lower().split()).removeprefix("interval ")
    months = micros = at = 0
    units: set[str] = set()
    while at < len(rest):
        match = _PIECE.match(rest, at)
        if match is None:
            raise _wrong(text)
        sign, whole, fraction, unit = match.groups()
        if not (whole or (fraction or ".") != ".") or (fraction and unit != "second"):
            raise _wrong(text)
        amount = int(whole or 0)
        if unit in _MONTHS:
            months += (-amount if sign == "-" else amount) * _MONTHS[unit]
        elif unit in _MICROS:
            parts = int((fraction or ".")[1:].ljust(6, "0")[:6])
            own = amount * _MICROS[unit] + parts
            micros += -own if sign == "-" else own
        else:
            raise _wrong(text)
        units.add(unit)
        at = match.end()
    if not units:
        raise _wrong(text)
    if units & _MONTHS.keys() and units & _MICROS.keys():
        raise ValueError("an interval has months or days and time, not both")
    if units & _MONTHS.keys():
        return _of_months(months)
    return _of_micros(micros, is_days=units <= {"day", "week"})


def _ranged(text: str, units: str) -> pa.Scalar:
    """``1-2`` YEAR TO MONTH, ``1 02:03`` DAY TO MINUTE."""
    sign = -1 if text.startswith("-") else 1
    plain = text[1:] if text[:1] in ("+", "-") else text
    if units == "year to month":
        match = re.fullmatch("([0-9]+)-([0-9]+)", plain)
        if match is None or int(match[2]) > 11:
            raise ValueError(f"{text[:40]!r} is not years and months: try '1-2' YEAR TO MONTH")
        return _of_months(sign * (int(match[1]) * 12 + int(match[2])))
    if units not in _RANGES:
        raise ValueError(f"no interval goes from {units[:40]}")
    pattern, sizes = _RANGES[units]
    match = re.fullmatch(pattern, plain)
    if match is None:
        raise ValueError(f"{text[:40]!r} does not go from {units}")
    micros = 0
    for place, (part, size) in enumerate(zip(match.groups(), sizes, strict=True)):
        whole, _, fraction = part.partition(".")
        if place and int(whole) > _MOST[size]:
            raise ValueError(f"{text[:40]!r} does not go from {units}: {whole} is too many")
        micros += int(whole) * size + int(fraction.ljust(6, "0")[:6])
    return _of_micros(sign * micros, is_days=False)


def _of_months(months: int) -> pa.Scalar:
    if not -(1 << 31) <= months < 1 << 31:
        raise ValueError("an interval has less than 2^31 months")
    return pa.scalar(pa.MonthDayNano([months, 0, 0]), YEAR_MONTH)


def _of_micros(micros: int, *, is_days: bool) -> pa.Scalar:
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError("an interval has less than 2^63 microseconds")
    if is_days:
        return pa.scalar(micros // SECOND, pa.int64()).cast(DAYS)
    return pa.scalar(micros, pa.int64()).cast(DAY_TIME)


def print_months(scalar: pa.Scalar) -> str:
    """Write an interval of months, or of whole days, so that it reads back."""
    if scalar.type == DAYS:
        days = scalar.cast(pa.int64()).as_py() // 86_400
        return f"INTERVAL '{days}' DAY"
    months, days, nanos = scalar.as_py()
    if days or nanos:
        whole, rest = divmod(abs(nanos) // 1000, SECOND)
        sign = "-" if nanos < 0 else ""
        seconds = f"CAST('{sign}{whole}.{rest:06}' AS DECIMAL(18, 6))"
        return f"make_interval(0, {months}, 0, {days}, 0, 0, {seconds})"
    sign = "-" if months < 0 else ""
    return f"INTERVAL '{sign}{abs(months) // 12}-{abs(months) % 12}' YEAR TO MONTH"
