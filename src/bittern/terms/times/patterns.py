r"""Patterns of dates and times, as Java's formatter has them: what they write, and what they read.

::

    yyyy-MM-dd'T'HH:mm     ->   y4  "-"  M2  "-"  d2  "T"  H2  ":"  m2      (tokens)
    2024-02-29 13:05       ->   2024-02-29T13:05                            (written)
    ^(?P<y>...)-(?P<M>\d{2})-(?P<d>\d{2})T...$                               (read)

Writing puts columns of digits together; reading is one regular expression over the column, and the
calendar behind it is arithmetic. Both O(rows x letters), nothing per row in Python. A pattern is a
constant. Letters that Spark refuses are refused, as are those of zones that have no offset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.scope import MeaninglessError
from bittern.terms.times.moments import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Numbers,
    day_of_month,
    days_in,
    first_of,
    mask_of,
    months_of,
    start_of_year,
    year_of,
)

_MOST_LETTERS = 200
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August"]
_MONTHS += ["September", "October", "November", "December"]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
#: How often a letter may stand.
_COUNTS = {
    **dict.fromkeys("MLEQq", 4),
    **dict.fromkeys("dHhKkms", 2),
    **dict.fromkeys("XxZ", 5),
    "y": 6,
    "D": 3,
    "S": 9,
    "a": 1,
}
#: Of zones, as all times are in UTC.
_ZONES = {
    **{"X" * count: "Z" for count in range(1, 6)},
    **{"Z" * count: "+0000" for count in range(1, 4)},
    "ZZZZ": "GMT",
    "ZZZZZ": "Z",
    "x": "+00",
    "xx": "+0000",
    "xxx": "+00:00",
    "xxxx": "+0000",
    "xxxxx": "+00:00",
}
_READABLE = frozenset("yMLdDHhKkmsSaXxZ")


class PatternPiece(NamedTuple):
    """A letter and how often it stands, or (width 0) a literal, ``[`` or ``]``."""

    text: str
    width: int


@lru_cache(maxsize=256)
def tokens(pattern: str) -> tuple[PatternPiece, ...]:
    """The letters and literals of a pattern; ``MeaninglessError`` if it is none."""
    if len(pattern) > _MOST_LETTERS:
        raise MeaninglessError(f"a pattern of dates has at most {_MOST_LETTERS} letters")
    found: list[PatternPiece] = []
    depth = 0
    for match in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", pattern, re.DOTALL):
        quoted, letter, other = match.groups()
        if quoted is not None:
            found.append(PatternPiece("literal:" + (quoted.replace("''", "'") or "'"), 0))
        elif letter is not None:
            if len(match[0]) > _COUNTS.get(letter, 0):
                raise MeaninglessError(f"{match[0]!r} has no meaning in a pattern of dates")
            found.append(PatternPiece(letter, len(match[0])))
        elif other in "[]":
            depth += 1 if other == "[" else -1
            found.append(PatternPiece(other, 0))
        else:
            found.append(PatternPiece("literal:" + other, 0))
        if depth < 0 or (other and other in "{}#'"):
            raise MeaninglessError(f"{other!r} has no meaning in a pattern of dates")
    return tuple(found)


def _padded(numbers: Numbers, width: int) -> pa.Array:
    """Digits, with zeros in front."""
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _named(names: list[str] | tuple[str, ...], numbers: Numbers) -> pa.Array:
    return pa.array(names).take(pa.array(numbers))


def _year(years: Numbers, count: int) -> pa.Array:
    """A year; one that has more digits than there are letters gets a sign, from four on."""
    size = np.abs(years)
    if count == 2:
        return _padded(size % 100, 2)
    digits = _padded(size, count)
    plus = (years >= 10**count) & (count >= 4)
    if not (plus.any() or (years < 0).any()):
        return digits
    signs = _named(("", "+", "-"), np.where(years < 0, 2, plus.astype(np.int64)))
    return pc.binary_join_element_wise(signs, digits, "")


_NUMBERS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "M": lambda days, _: months_of(days) % 12 + 1,
    "L": lambda days, _: months_of(days) % 12 + 1,
    "d": lambda days, _: day_of_month(days),
    "D": lambda days, _: days - start_of_year(days) + 1,
    "Q": lambda days, _: months_of(days) % 12 // 3 + 1,
    "q": lambda days, _: months_of(days) % 12 // 3 + 1,
    "H": lambda _, time: time // HOUR,
    "k": lambda _, time: (time // HOUR + 23) % 24 + 1,
    "K": lambda _, time: time // HOUR % 12,
    "h": lambda _, time: (time // HOUR + 11) % 12 + 1,
    "m": lambda _, time: time // MINUTE % 60,
    "s": lambda _, time: time // SECOND % 60,
}


def _piece(token: PatternPiece, days: Numbers, time: Numbers) -> pa.Array | str:
    """What a token writes."""
    text, count = token
    if not count:
        return "" if text in "[]" else text.removeprefix("literal:")
    if text in "XxZ":
        return _ZONES[text * count]
    if text == "y":
        return _year(year_of(days), count)
    if text == "a":
        return _named(("AM", "PM"), time // (12 * HOUR))
    if text == "E":
        names = _WEEKDAYS if count == 4 else [name[:3] for name in _WEEKDAYS]
        return _named(names, (days + 3) % 7)
    if text == "S":
        digits = _padded(time % SECOND, 6)
        return pc.utf8_slice_codeunits(pc.utf8_rpad(digits, 9, "0"), 0, count)
    numbers = _NUMBERS[text](days, time)
    if count < 3 or text == "D":
        return _padded(numbers, count)
    if text in "Qq":
        return _named(_QUARTERS if count == 4 else ("Q1", "Q2", "Q3", "Q4"), numbers - 1)
    return _named(_MONTHS if count == 4 else [name[:3] for name in _MONTHS], numbers - 1)


def written(pattern: str, micros: Numbers) -> pa.Array:
    """The timestamps as the pattern writes them."""
    days, time = micros // DAY, micros % DAY
    pieces: list[pa.Array | str] = [_piece(token, days, time) for token in tokens(pattern)]
    start = pa.repeat("", len(micros))
    return pc.binary_join_element_wise(start, *pieces, "")


class TextReader(NamedTuple):
    """How a column is read: its regular expression, and the letter and count of each group."""

    expression: str
    groups: dict[str, int]


@lru_cache(maxsize=256)
def reader(pattern: str) -> TextReader:
    """What reads a pattern; ``MeaninglessError`` if none does."""
    groups: dict[str, int] = {}
    written_as = ["(?i)^"]
    open_sections = 0
    found = tokens(pattern)
    for place, (text, count) in enumerate(found):
        if not count:
            if text in "[]":
                open_sections += 1 if text == "[" else -1
                written_as.append("(?:" if text == "[" else ")?")
            else:
                written_as.append(_escaped(text.removeprefix("literal:")))
            continue
        if text not in _READABLE:
            raise MeaninglessError(f"{text!r} is written in a pattern of dates, but not read")
        name = {"L": "M", "x": "X", "Z": "X"}.get(text, text)
        if name in groups:
            raise MeaninglessError(f"{text!r} stands twice in a pattern of dates")
        if _is_loose(text, count) or (text == "y" and count != 2):
            _check_behind(found[place + 1 :])
        groups[name] = count
        written_as.append(f"(?P<{name}>{_expression(text, count)})")
    written_as.append(")?" * open_sections + "$")
    if "X" in groups and len({t.text for t in found} & set("XxZ")) > 1:
        raise MeaninglessError("a pattern of dates has one zone")
    return TextReader("".join(written_as), groups)


def _escaped(text: str) -> str:
    return "".join(f"\\x{{{ord(letter):x}}}" for letter in text)


def _check_behind(rest: tuple[PatternPiece, ...]) -> None:
    """Refuse what follows a number of any size, unless it says how many digits it has.

    Java gives all digits that are left over to the number in front.
    """
    for text, count in rest:
        if not count or text not in "yMLdDHhKkmsS" or (text in "ML" and count > 2):
            return
        if _is_loose(text, count) or text in "yS" or (text == "D" and count < 3):
            raise MeaninglessError("numbers of no fixed size side by side in a pattern of dates")


def _is_loose(text: str, count: int) -> bool:
    """Whether it reads as many digits as there are."""
    return (count == 1 and text in "MLdDHhKkms") or (text == "y" and count in (1, 3))


def _expression(text: str, count: int) -> str:
    if text == "y":
        if count == 2:
            return "[0-9]{2}"
        if count < 4:
            return f"-?[0-9]{{{count},6}}"
        return (
            f"-?[0-9]{{{count}}}" if count > 5 else f"-?[0-9]{{{count}}}|[+-][0-9]{{{count + 1},6}}"
        )
    if text in "ML" and count > 2:
        return "|".join(_MONTHS if count == 4 else [name[:3] for name in _MONTHS])
    if text == "a":
        return "AM|PM"
    if text == "S":
        return f"[0-9]{{1,{count}}}"
    if text in "XxZ":
        kind = 2 if text == "Z" and count < 4 else count
        if text == "Z" and count == 4:
            raise MeaninglessError("'ZZZZ' is written in a pattern of dates, but not read")
        offset = (
            "[+-]"
            + (
                "[0-9]{2}(?:[0-9]{2})?",
                "[0-9]{4}",
                "[0-9]{2}:[0-9]{2}",
                "[0-9]{4}(?:[0-9]{2})?",
                "[0-9]{2}:[0-9]{2}(?::[0-9]{2})?",
            )[kind - 1]
        )
        return f"Z|{offset}" if text == "X" or (count == 5 and text == "Z") else offset
    if text == "D" and count == 2:
        return "[0-9]{2,3}"
    return "[0-9]{1,18}" if count == 1 else f"[0-9]{{{count}}}"


class Parsed(NamedTuple):
    """Times that were read, in UTC and as they stand there, and which strings are times at all."""

    micros: Numbers
    local: Numbers
    fits: Mask


def parsed(pattern: str, strings: pa.Array) -> Parsed:
    """The timestamps that strings are by a pattern. Strings that are NULL do not fit."""
    expression, groups = reader(pattern)
    fits = mask_of(pc.match_substring_regex(strings, expression).fill_null(False))
    if not groups:
        return Parsed(np.zeros(len(strings), np.int64), np.zeros(len(strings), np.int64), fits)
    texts = pc.extract_regex(strings, expression)
    fields = {name: pc.struct_field(texts, name).fill_null("") for name in groups}

    def number(name: str, default: int, least: int, most: int) -> Numbers:
        """A field, or a default where it is absent; what is out of bounds does not fit."""
        nonlocal fits
        if name not in fields:
            return np.full(len(strings), default)
        numbers, given = _digits(fields[name], name, groups[name])
        fits = fits & (~given | ((numbers >= least) & (numbers <= most)))
        return np.where(given & (numbers >= least) & (numbers <= most), numbers, default)

    years = number("y", 1970, -290_000, 290_000)
    year_start = (years - 1970) * 12
    months = year_start + number("M", 1, 1, 12) - 1
    day = number("d", 1, 1, 31)
    fits = fits & (day <= days_in(months))
    days = first_of(months) + day - 1
    if "D" in fields:
        of_year = number("D", 0, 1, 366)
        by_year = first_of(year_start) + of_year - 1
        agrees = year_of(by_year) == years
        if "M" in fields:
            agrees &= (months_of(by_year) == months) | _absent(fields["M"])
        if "d" in fields:
            agrees &= (day_of_month(by_year) == day) | _absent(fields["d"])
        fits = fits & ((of_year == 0) | agrees)
        days = np.where(of_year == 0, days, by_year)
    clock, agrees = _clock(fields, number)
    fits = fits & agrees
    local = np.where(fits, days, 0) * DAY + np.where(fits, clock, 0)
    offset = number("X", 0, -18 * 3600, 18 * 3600)
    return Parsed(np.where(fits, local - offset * SECOND, 0), np.where(fits, local, 0), fits)


def _absent(texts: pa.Array) -> Mask:
    return mask_of(pc.equal(texts, ""))


def _clock(fields: dict[str, pa.Array], number: Any) -> tuple[Numbers, Mask]:
    """The time of day, and whether its fields agree."""
    if len(fields.keys() & set("HkhK")) > 1:
        raise MeaninglessError("a pattern of dates has one letter for hours")
    half = number("a", 0, 0, 1)
    if fields.keys() & set("Hk"):
        hour = number("H", 0, 0, 23) if "H" in fields else number("k", 24, 1, 24) % 24
        agrees = (hour // 12 == half) if "a" in fields else np.ones(len(hour), np.bool_)
        if "a" in fields:
            agrees |= _absent(fields["a"])
    elif fields.keys() & set("hK"):
        hour = (number("h", 12, 1, 12) % 12 if "h" in fields else number("K", 0, 0, 11)) + 12 * half
        agrees = np.ones(len(hour), np.bool_)
    else:
        hour, agrees = 12 * half, np.ones(len(half), np.bool_)
    time = hour * HOUR + number("m", 0, 0, 59) * MINUTE + number("s", 0, 0, 59) * SECOND
    return time + number("S", 0, 0, SECOND - 1), agrees


def _digits(texts: pa.Array, name: str, count: int) -> tuple[Numbers, Mask]:
    """The number that each text of a field is, and where there is a text."""
    given = ~_absent(texts)
    if name == "a":
        return mask_of(pc.equal(pc.utf8_lower(texts), "pm")).astype(np.int64), given
    if name == "M" and count > 2:
        short = pc.utf8_slice_codeunits(pc.utf8_lower(texts), 0, 3)
        places = pc.index_in(short, pa.array([each[:3].lower() for each in _MONTHS]))
        return places.fill_null(0).to_numpy().astype(np.int64) + 1, given
    if name == "S":
        texts = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, 6, "0"), 0, 6)
    if name == "X":
        return _offsets(texts), given
    plain = pc.if_else(pa.array(given), texts, "0")
    numbers = pc.utf8_ltrim(plain, "+").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return (numbers + 2000 if name == "y" and count == 2 else numbers), given


def _offsets(texts: pa.Array) -> Numbers:
    """Seconds ahead of UTC; more than 59 minutes or seconds are no offset."""
    signs = np.where(mask_of(pc.starts_with(texts, "-")), -1, 1)
    digits = pc.replace_substring_regex(texts, "[^0-9]", "")
    padded = pc.utf8_rpad(digits, 6, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    hours, minutes, seconds = padded // 10_000, padded // 100 % 100, padded % 100
    wrong = (minutes > 59) | (seconds > 59)
    return np.where(wrong, 1 << 40, signs * (hours * 3600 + minutes * 60 + seconds))
