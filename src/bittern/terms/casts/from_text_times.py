"""Casts of STRING to DATE, TIMESTAMP and TIMESTAMP_NTZ: the forms that Spark reads.

::

    2024   2024-2   2024-02-29   2024-02-29T12:30:00.5   2024-2-29 1:2:3+01:00   … Europe/Berlin
    |----------- DATE, with anything after T or a space
    |----------- TIMESTAMP: local time is UTC; TIMESTAMP_NTZ leaves a zone out

Years have four to six digits (of a DATE seven), and may have a sign. The common forms, of fixed
length, are read as columns of bytes in NumPy; all others one by one, each distinct value once. A
time without a date would be of today: it is not read here.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Mask
from bittern.terms.casts.from_text import trimmed
from bittern.terms.columns import arrow
from bittern.terms.times.calendar import days_of, is_date, length_of_month

_DAY, _SECOND = 86_400_000_000, 1_000_000
_DATE = re.compile(
    r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})"
    r"(?:\.(\d*))?([^.\d].*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
#: Zones are asked up to here, some days before the end of the numbers.
_LATEST = 2**63 - 1 - 4 * _DAY
#: What Java trims.
_SPACES = "".join(map(chr, range(33)))
_DATE_SHAPE = b"0000-00-00"
_TIME_SHAPE = b"0000-00-00 00:00:00"
#: A point, six digits and a Z.
_MOST_BEHIND = 8


def dates(array: pa.Array) -> tuple[pa.Array, Mask]:
    """The strings as dates, and a mask of those that are none."""
    text, valid = trimmed(array), _valid(array)
    end = len(_DATE_SHAPE)
    data, length = _bytes(text, end + 1)
    ends = (length == end) | (data[:, end] == ord(" ")) | (data[:, end] == ord("T"))
    good = valid & ends & _has_shape(data, _DATE_SHAPE)
    days, there = _days(data)
    good &= there
    values = _asked(text, days, good, valid, _date)
    return arrow(values.astype(np.int32), good, pa.date32()), valid & ~good


def timestamps(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """The strings as times of a type, and a mask of those that are none."""
    text, valid = trimmed(array), _valid(array)
    start = len(_TIME_SHAPE)
    data, length = _bytes(text, start + _MOST_BEHIND)
    short = length == len(_DATE_SHAPE)
    data[short, len(_DATE_SHAPE) :] = 0
    data[short, len(_DATE_SHAPE) : start] = np.frombuffer(b" 00:00:00", np.uint8)
    end = np.where(short, start, length)
    rows = np.arange(len(data))
    ends_in_z = (end > start) & (data[rows, np.clip(end - 1, 0, data.shape[1] - 1)] == ord("Z"))
    end = end - ends_in_z
    good = valid & _has_shape(data, _TIME_SHAPE) & (end >= start) & (end != start + 1)
    good &= end <= start + _MOST_BEHIND - 1
    good &= (end == start) | (data[:, start] == ord("."))
    micros = np.zeros(len(data), np.int64)
    for place in range(1, 7):
        digit = data[:, start + place].astype(np.int64) - ord("0")
        inside = start + place < end
        good &= ~inside | ((digit >= 0) & (digit <= 9))
        micros = micros * 10 + np.where(inside, digit, 0)
    days, there = _days(data)
    hour, minute, second = (_number(data, at, 2) for at in (11, 14, 17))
    good &= there & (hour < 24) & (minute < 60) & (second < 60)
    seconds = hour * 3600 + minute * 60 + second
    values = days * _DAY + seconds * _SECOND + micros
    with_zone = kind.tz is not None
    values = _asked(text, values, good, valid, lambda each: _timestamp(each, with_zone=with_zone))
    return arrow(values, good, kind), valid & ~good


def _valid(array: pa.Array) -> Mask:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _bytes(text: pa.Array, width: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The first bytes of each string, filled up with zeros, and how many it has in all.

    One byte of all strings lies in memory after the other, as they are looked at.
    """
    columns = np.zeros((width, len(text)), np.uint8)
    if not len(text):
        return columns.T, np.zeros(0, np.int64)
    _, places, held = text.buffers()
    offsets = np.frombuffer(places, np.int32)[text.offset : text.offset + len(text) + 1]
    offsets = offsets.astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    everything = np.zeros(last - first + width, np.uint8)
    if last > first:
        everything[: last - first] = np.frombuffer(held, np.uint8)[first:last]
    starts, length = offsets[:-1] - first, np.diff(offsets)
    for at in range(width):
        columns[at] = np.where(at < length, everything[starts + at], 0)
    return columns.T, length


def _has_shape(data: npt.NDArray[np.uint8], shape: bytes) -> Mask:
    """Digits where the shape has 0, and else its own characters; T stands for a space, too."""
    good = np.ones(len(data), np.bool_)
    for at, byte in enumerate(shape):
        own = data[:, at]
        if byte == ord("0"):
            good &= (own >= ord("0")) & (own <= ord("9"))
        else:
            good &= (own == byte) | ((byte == ord(" ")) & (own == ord("T")))
    return good


def _number(data: npt.NDArray[np.uint8], at: int, width: int) -> npt.NDArray[np.int64]:
    found = np.zeros(len(data), np.int64)
    for place in range(at, at + width):
        found = found * 10 + (data[:, place].astype(np.int64) - ord("0"))
    return found


def _days(data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], Mask]:
    """The days of ``0000-00-00``, and whether there are such."""
    year, month, day = _number(data, 0, 4), _number(data, 5, 2), _number(data, 8, 2)
    return days_of(year, month, day), is_date(year, month, day)


def _asked(
    text: pa.Array, values: npt.NDArray[Any], good: Mask, valid: Mask, answer: Any
) -> npt.NDArray[Any]:
    """The values, and those of strings that are not good yet: those that can be read become so."""
    values = np.where(good, values, 0)
    rest = np.flatnonzero(valid & ~good)
    if len(rest):
        encoded = text.take(pa.array(rest)).dictionary_encode()
        found = [answer(each) for each in encoded.dictionary.to_pylist()]
        which = encoded.indices.to_numpy()
        values[rest] = np.array([each or 0 for each in found], np.int64)[which]
        good[rest] = np.array([each is not None for each in found])[which]
    return values


def _day(sign: str, *parts: str | None) -> tuple[int, int, int] | None:
    year, month, day = (int(part or 1) for part in parts)
    year = -year if sign == "-" else year
    if 1 <= month <= 12 and 1 <= day <= length_of_month(year, month):
        return year, month, day
    return None


def _date(text: str) -> int | None:
    match = _DATE.fullmatch(text)
    day = _day(*match.groups()) if match else None
    if day is None:
        return None
    days = int(days_of(*day))
    return days if -(2**31) <= days < 2**31 else None


def _timestamp(text: str, *, with_zone: bool) -> int | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    sign, year, month, date, *times, fraction, zone = match.groups()
    day = _day(sign, year, month, date)
    hour, minute, second = (int(part or 0) for part in times)
    if day is None or hour > 23 or minute > 59 or second > 59:
        return None
    seconds = hour * 3600 + minute * 60 + second
    found = int(days_of(*day)) * _DAY + seconds * _SECOND
    ahead = _ahead(zone.strip(_SPACES), found) if zone else 0
    if ahead is None:
        return None
    found += int((fraction or "")[:6].ljust(6, "0"))
    if with_zone:
        found -= ahead
    return found if -(2**63) <= found < 2**63 else None


def _ahead(name: str, local: int) -> int | None:
    """Microseconds that a zone is ahead of UTC at a local time; None if there is no such zone."""
    from bittern.terms.times.zones import utc_of, zone_of  # noqa: PLC0415  they cast, too

    zone = zone_of(name)
    if zone is None or isinstance(zone, int):
        return None if zone is None else zone * _SECOND
    local = max(min(local, _LATEST), -_LATEST)
    return local - int(utc_of(zone, np.array([local]))[0])
