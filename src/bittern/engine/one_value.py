"""What a predicate says of one value, in plain Python: for explanations, not for matching.

``price <= 580`` says False of 600, and None, which is unknown, of ``'600'``: that is no number.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from bittern.language.syntax import Between, Compare, In, Like, Literal, Predicate, Regex
from bittern.model.numbers import exact
from bittern.terms.pattern_texts import Wildcard, compile_regex, like_parts

Truth = bool | None
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def kind_name(value: Any) -> str:
    """The kind of a value, as an explanation says it."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, str):
        return "string"
    return "time" if isinstance(value, dt.date | np.datetime64) else "value that can be compared"


def wanted_kind(node: Predicate) -> str:
    """The kind of values that a predicate can be TRUE or FALSE of."""
    if isinstance(node, Compare):
        return kind_name(node.operand.value)
    if isinstance(node, Between):
        return kind_name(node.low.value)
    if isinstance(node, In):
        return next((kind_name(v.value) for v in node.values if v.value is not None), "number")
    return "string"


def outcome(node: Predicate, value: Any) -> Truth:
    """Whether a value, which is not NULL, satisfies a predicate other than IS NULL."""
    if isinstance(node, Compare):
        return _compare(value, node.operator, node.operand)
    if isinstance(node, Between):
        ends = [_compare(value, ">=", node.low), _compare(value, "<=", node.high)]
        return False if False in ends else (None if None in ends else True)
    if isinstance(node, In):
        found = [_compare(value, "=", each) for each in node.values]
        return True if True in found else (None if None in found else False)
    if not isinstance(value, str):
        return None
    if isinstance(node, Like):
        return is_like(value, node)
    assert isinstance(node, Regex)
    return compile_regex(node.pattern).search(value) is not None


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compare(value: Any, comparison: str, literal: Literal) -> Truth:
    wanted = literal.value
    if wanted is None or kind_name(value) != kind_name(wanted):
        return None
    return _OPERATORS[comparison](_key(value), _key(wanted))


def _key(value: Any) -> Any:
    """What a value compares by: NaN above infinity above every number, strings by their bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return value
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64))
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - _EPOCH) // _MICROSECOND
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return (2, 0) if math.isnan(value) else (1 if value > 0 else -1, 0)
    return (0, exact(value))


def is_like(value: str, node: Like) -> bool:
    """Go through the value with a bit for each piece that may be next: O(value x pattern / 64)."""
    pieces: list[str | Wildcard] = []
    for part in like_parts(node.pattern, node.escape).pieces:
        pieces.extend(part if isinstance(part, str) else [part])
    stays = 0
    leads_to: dict[str | Wildcard, int] = {Wildcard.ANY_ONE: 0}
    state = 1
    for piece in pieces:
        if piece is Wildcard.ANY:
            stays |= state
        else:
            state <<= 1
            leads_to[piece] = leads_to.get(piece, 0) | state
    reached, anyway = 1, leads_to[Wildcard.ANY_ONE]
    for character in value:
        fits = leads_to.get(character, 0) | anyway
        reached = reached << 1 & fits | reached & stays
    return bool(reached & state)
