r"""The meaning of the raw text of one token: names, numbers, strings, dates and timestamps.

========================  =================================  ==========================
raw text                  function                           value
========================  =================================  ==========================
```odd name`.b``          ``attribute_name``                 ``"odd name.b"``
```a.b`.c``               ``attribute_name``                 ``"`a.b`.c"`` (stays quoted)
``- 17``                  ``number_value``                   ``-17``
``1.50``, ``15e-1``       ``number_value``                   ``Decimal("1.50")``, ``1.5``
``'it''s\n'``             ``string_value``                   ``"it's"`` and a newline
``'2026-01-31'``          ``time_value("date", raw)``        microseconds since 1970, UTC
========================  =================================  ==========================

Strings follow Spark's default: single or double quotes, a doubled quote is one quote, backslash
escapes, ``r'...'`` without any. Every function is O(length) and raises ``ValueError`` with a
message for users; the caller, which knows the position, adds it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bittern.language.limits import MAX_DECIMAL_DIGITS, MAX_PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bittern.language.syntax import Literal

#: The first character of names that stand for quantified predicates (``quantifiers.py``). They hold
#: any text as it is, in one part; no attribute of an expression may start with it.
HIDDEN = "\0"
#: The first character of names that stand for terms (``derived.py``), likewise.
TERM = "\1"
#: The first character of names that stand for another attribute's presence (``presence.py``).
PRESENT = "\3"
#: How the words of such names start.
HIDDEN_WORD = "`" + HIDDEN
TERM_WORD = "`" + TERM
PRESENT_WORD = "`" + PRESENT
#: All of them, of names and of words.
MARKS = (HIDDEN, TERM, PRESENT)
MARKED_WORDS = (HIDDEN_WORD, TERM_WORD, PRESENT_WORD)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_INT64 = range(-(1 << 63), 1 << 63)
_MAX_OFFSET = dt.timedelta(hours=18)

_SURROGATE = re.compile("[\ud800-\udfff]")
_PART = re.compile(r"`((?:[^`]++|``)*+)`|([^.`]+)")
_ESCAPES = {
    quote: re.compile(
        rf"\\(?:u([0-9A-Fa-f]{{4}})|U([0-9A-Fa-f]{{8}})|([01][0-7]{{2}})|(.))|{quote}({quote})",
        re.DOTALL,
    )
    for quote in "'\""
}
_NAMED_ESCAPES = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    # kept for LIKE, which gives them their meaning
    "%": "\\%",
    "_": "\\_",
}
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    _DATE.pattern + r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
    r"(?: ?(?:Z|UTC|([+-])([0-9]{2}):([0-9]{2})))?)?"
)


def kind_of(literal: Literal) -> str:
    """A literal's kind: null, boolean, number, string, date or timestamp. O(1)."""
    value = literal.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dt.datetime):
        return "timestamp"
    if isinstance(value, dt.date):
        return "date"
    return "number"


def attribute_name(raw: str) -> str:
    """An attribute's canonical name: parts joined by dots, back-quoted only where needed."""
    if "`" not in raw:
        return raw
    if raw.startswith(MARKED_WORDS):
        return raw[1:-1].replace("``", "`")
    if _SURROGATE.search(raw):
        raise ValueError("an attribute name cannot hold half a surrogate pair")
    parts = [bare or quoted.replace("``", "`") for quoted, bare in _PART.findall(raw)]
    if not all(parts):
        raise ValueError("an attribute name cannot be empty")
    return attribute_of(parts)


def attribute_of(parts: Iterable[str]) -> str:
    """The canonical name of the attribute whose path has these parts."""
    return ".".join(_quoted(part) if "." in part or "`" in part else part for part in parts)


def attribute_parts(name: str) -> tuple[str, ...]:
    """Split a canonical attribute name into the parts of its path."""
    if name.startswith(MARKS):
        return (name,)
    if "`" not in name:
        return tuple(name.split("."))
    return tuple(bare or quoted.replace("``", "`") for quoted, bare in _PART.findall(name))


def has_too_many_parts(name: str) -> bool:
    """Whether the path of a canonical attribute name is longer than allowed. O(length)."""
    return (
        not name.startswith(TERM)
        and name.count(".") >= MAX_PARTS
        and len(attribute_parts(name)) > MAX_PARTS
    )


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def number_value(raw: str) -> int | Decimal | float:
    """Read an integer, a decimal (with a dot) or a float (with an exponent)."""
    if not raw.isdigit():
        raw = "".join(raw.split())  # a sign may stand apart from its digits
    if "e" in raw or "E" in raw:
        number = float(raw)
        if not math.isfinite(number):
            raise ValueError(f"the number {_shown(raw)} is too large for a float")
        return number
    digits = raw.lstrip("+-0")
    if "." in raw:
        if len(digits) - 1 > MAX_DECIMAL_DIGITS:
            raise ValueError(
                f"the decimal {_shown(raw)} has more than {MAX_DECIMAL_DIGITS} digits; "
                "write it with an exponent to make it a float"
            )
        return Decimal(raw)
    if len(digits) > 19 or (integer := int(raw)) not in _INT64:
        raise ValueError(
            f"the integer {_shown(raw)} does not fit in 64 bits; "
            "write it with an exponent to make it a float"
        )
    return integer


def _shown(raw: str) -> str:
    return raw if len(raw) <= 30 else raw[:27] + "..."


def string_value(raw: str) -> str:
    """Read a quoted string: doubled quotes, backslash escapes, or raw as written."""
    if raw[0] in "rR":
        value = raw[2:-1]
    else:
        quote, value = raw[0], raw[1:-1]
        if "\\" in value:
            value = _ESCAPES[quote].sub(_unescape, value)
        elif quote in value:
            value = value.replace(quote + quote, quote)
    if not value.isascii() and _SURROGATE.search(value):
        try:
            value = value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError("a string cannot hold half a surrogate pair") from None
    return value


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, other, doubled = match.groups()
    if other is not None:
        return _NAMED_ESCAPES.get(other, other)
    if octal is not None:
        return chr(int(octal, 8))
    if doubled is not None:
        return str(doubled)
    code = int(short or long, 16)
    if code > 0x10FFFF:
        raise ValueError(f"\\U{long} is not a Unicode character")
    return chr(code)


def date_literal(raw: str) -> dt.date:
    """Read the string of a ``DATE`` literal, ``yyyy-mm-dd``."""
    text = string_value(raw)
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"a date must be written 'yyyy-mm-dd', not {_shown(text)!r}")
    try:
        return dt.date(*map(int, match.groups()))
    except ValueError as wrong:
        raise ValueError(f"{text!r} is not a date: {wrong}") from None


def timestamp_literal(raw: str) -> dt.datetime:
    """Read the string of a ``TIMESTAMP`` literal as UTC, which is also the default zone."""
    text = string_value(raw)
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(
            "a timestamp must be written 'yyyy-mm-dd hh:mm:ss.ffffff' with an optional zone "
            f"(Z, UTC or +hh:mm), not {_shown(text)!r}"
        )
    *fields, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = (int(field or 0) for field in fields)
    microsecond = int((fraction or "").ljust(6, "0"))
    offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if offset > _MAX_OFFSET or int(minutes or 0) > 59:
        raise ValueError(f"{text!r} is not a timestamp: a zone is at most 18 hours from UTC")
    try:
        local = dt.datetime(year, month, day, hour, minute, second, microsecond, dt.UTC)
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError) as wrong:
        raise ValueError(f"{text!r} is not a timestamp: {wrong}") from None


def time_value(kind: str, raw: str) -> int:
    """Microseconds since 1970 UTC of a literal's raw string; ``kind`` is date or timestamp."""
    if kind == "timestamp":
        return (timestamp_literal(raw) - _EPOCH) // _MICROSECOND
    return (date_literal(raw).toordinal() - _EPOCH.toordinal()) * 86_400_000_000


#: How the raw text of a parameter of each kind is read.
READERS: dict[str, Callable[[str], Any]] = {
    "attribute": attribute_name,
    "number": number_value,
    "string": string_value,
    "date": date_literal,
    "timestamp": timestamp_literal,
}
