"""The definition of truth in plain Python: slow, obvious, and independent of the engine.

``truth(tree, event)`` walks the syntax tree once per event and answers True, False or None
(unknown, SQL's NULL); an event matches when the answer is True::

    price < 10 AND color = 'red'   on   {"price": 5}
      price < 10     ->  True
      color = 'red'  ->  None        color is missing: NULL
      AND            ->  None        not a match, and neither is NOT (...)

EXISTS and FORALL go through ``documents``, oldest first, one by one::

    EXISTS d IN LAST 2 (d.price > price)   on   {"price": 5}
      documents            {"price": 9}, {"price": 4}, {}
      window               {"price": 4}, {}
      d.price > price  ->  False, None
      EXISTS           ->  False         no document for which it is True

A value has a kind (number, string, boolean, time) and, inside its kind, a key by which it is
ordered. Values of different kinds are never compared: the answer is None. Nothing of ``bittern``
is used here but the classes of the tree. O(predicates x documents x length of values) per event.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import re2

from bittern.language import syntax

Truth: TypeAlias = bool | None

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
#: How the names start that IS MISSING has: ``a IS MISSING`` is IsNull of this and ``a``.
_PRESENT = "\3"
#: From here on every float is an integer, and not every integer is a float.
_FIRST_INEXACT = 2.0**53


def matches(
    tree: syntax.Expression, event: Mapping[str, Any], documents: Sequence[Mapping[str, Any]] = ()
) -> bool:
    """Say whether the event matches: only True does, unknown does not."""
    return truth(tree, event, documents) is True


def truth(
    tree: syntax.Expression, event: Mapping[str, Any], documents: Sequence[Mapping[str, Any]] = ()
) -> Truth:
    """Evaluate the tree on one event, after these documents, in three-valued logic."""
    return _truth(tree, event, documents, {})


def _truth(
    tree: syntax.Expression,
    event: Mapping[str, Any],
    documents: Sequence[Mapping[str, Any]],
    document: Mapping[str, Any],
) -> Truth:
    """Evaluate the tree; inside a quantifier, for one document."""

    def of(operands: Iterable[syntax.Expression]) -> list[Truth]:
        return [_truth(operand, event, documents, document) for operand in operands]

    match tree:
        case syntax.BooleanConstant(value):
            return value
        case syntax.Not(operand):
            return _not(*of([operand]))
        case syntax.And(operands):
            return _and(of(operands))
        case syntax.Or(operands):
            return _not(_and(map(_not, of(operands))))
        case syntax.Quantified(universal, condition, window):
            answers = [
                _truth(condition, event, (), each) is True
                for each in _window(window or syntax.Window(), event, documents)
            ]
            return all(answers) if universal else any(answers)
        case syntax.OfDocument(predicate):
            return _truth(predicate, document, (), {})
        case syntax.Join(theirs, operator, ours):
            return _compare(look_up(document, theirs), operator, look_up(event, ours))
        case syntax.Pair(of_document, left, operator, right):
            side = document if of_document else event
            return _compare(look_up(side, left), operator, look_up(side, right))
        case syntax.IsNull(attribute) if attribute.startswith(_PRESENT):
            return is_missing(event, attribute[1:])
        case syntax.IsNull(attribute):
            return look_up(event, attribute) is None
        case syntax.Compare(attribute, operator, operand):
            return _compare(look_up(event, attribute), operator, operand.value)
        case syntax.Between(attribute, low, high):
            value = look_up(event, attribute)
            return _and([_compare(value, ">=", low.value), _compare(value, "<=", high.value)])
        case syntax.In(attribute, literals):
            value = look_up(event, attribute)
            return _not(_and(_compare(value, "!=", literal.value) for literal in literals))
        case syntax.Like(attribute, pattern, escape):
            value = look_up(event, attribute)
            if not isinstance(value, str):
                return None
            return _is_like(value, _like_items(pattern, escape))
        case syntax.Regex(attribute, pattern):
            value = look_up(event, attribute)
            return re2.search(pattern, value) is not None if isinstance(value, str) else None
    raise TypeError(f"not an expression: {tree!r}")


def _window(
    window: syntax.Window, event: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Find the documents of a window; whatever is unknown about one keeps it out."""
    inside = [
        document
        for document in documents
        if all(
            _compare(look_up(document, name), "=", look_up(event, name)) is True
            for name in window.per
        )
        and (window.of is None or _is_recent(window, event, document))
    ]
    return inside if window.count is None else inside[-window.count :]


def _is_recent(
    window: syntax.Window, event: Mapping[str, Any], document: Mapping[str, Any]
) -> bool:
    assert window.of is not None
    assert window.microseconds is not None
    then = _kind_and_key(look_up(document, window.of))
    now = _kind_and_key(look_up(event, window.of))
    if then is None or now is None or (then[0], now[0]) != ("time", "time"):
        return False
    return bool(then[1] >= now[1] - window.microseconds)


def path(attribute: str) -> list[str]:
    """Split an attribute into its parts: ``a.`b.c```` has the parts ``a`` and ``b.c``."""
    parts, position = [], 0
    while position <= len(attribute):
        if attribute[position : position + 1] == "`":
            part, position = "", position + 1
            while True:
                end = attribute.index("`", position)
                part += attribute[position:end]
                position = end + 1
                if attribute[position : position + 1] != "`":
                    break
                part, position = part + "`", position + 1
        else:
            end = attribute.find(".", position)
            end = len(attribute) if end < 0 else end
            part, position = attribute[position:end], end
        parts.append(part)
        assert attribute[position : position + 1] in (".", ""), attribute
        position += 1
    return parts


def look_up(event: Mapping[str, Any], attribute: str) -> Any:
    """Find the value of an attribute; None when it, or anything on the way to it, is missing.

    What lies inside a list is a list, as the field of an array of structs is an array in Spark: it
    is there if the list is, and has no kind. So the list itself stands for it.
    """
    value: Any = event
    for part in path(attribute):
        if isinstance(value, list):
            return value
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def is_missing(event: Mapping[str, Any], attribute: str) -> bool:
    """Say whether nothing is there, not even None: what None would hold is None.

    A path that leads into a list is there, as the list is; one into any other value is missing.
    """
    value: Any = event
    for part in path(attribute):
        if value is None or isinstance(value, list):
            return False
        if not isinstance(value, Mapping) or part not in value:
            return True
        value = value[part]
    return False


def _not(answer: Truth) -> Truth:
    return None if answer is None else not answer


def _and(answers: Iterable[Truth]) -> Truth:
    answers = list(answers)
    if False in answers:
        return False
    return None if None in answers else True


def _compare(value: Any, operator: str, operand: Any) -> Truth:
    ours, theirs = _kind_and_key(value), _kind_and_key(operand)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return None
    left, right = ours[1], theirs[1]
    answers: dict[str, bool] = {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return answers[operator]


def _kind_and_key(value: Any) -> tuple[str, Any] | None:
    """Give a value's kind and its place in that kind's order; None for NULL, lists and mappings."""
    match value:
        case bool():
            return "boolean", value
        case int() | float() | Decimal():
            return "number", _number_key(value)
        case str():
            return "string", value.encode()
        case dt.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return "time", (aware - _EPOCH) // _MICROSECOND
        case dt.date():
            return "time", (value - _EPOCH.date()) // _MICROSECOND
    return None


def _number_key(value: float | Decimal) -> tuple[int, Fraction]:
    """Order -infinity, all finite numbers by exact value, infinity, NaN."""
    if value != value:  # noqa: PLR0124  only NaN differs from itself
        return 2, Fraction(1)
    if value in (float("inf"), float("-inf")):
        return (1, Fraction(1)) if value > 0 else (-1, Fraction(1))
    if isinstance(value, float) and not _is_an_integer_that_matters(value):
        return 0, Fraction(repr(value))  # 0.1 stands for one tenth, as it prints
    return 0, Fraction(value)


def _is_an_integer_that_matters(value: float) -> bool:
    """From 2^53 on a float is the integer it is, as long as a 64-bit integer can equal it."""
    return abs(value) >= _FIRST_INEXACT and -(2**63) <= value < 2**63


_ANY_STRING, _ANY_CHARACTER = object(), object()


def _like_items(pattern: str, escape: str) -> list[Any]:
    """Cut a LIKE pattern into characters and the two wildcards."""
    items: list[Any] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            items.append(next(characters))
        elif character == "%":
            items.append(_ANY_STRING)
        elif character == "_":
            items.append(_ANY_CHARACTER)
        else:
            items.append(character)
    return items


def _is_like(value: str, items: list[Any]) -> bool:
    """Match by keeping the set of positions that the items so far can end at."""
    ends = {0}
    for item in items:
        if item is _ANY_STRING:
            ends = set(range(min(ends), len(value) + 1))
        else:
            ends = {
                end + 1
                for end in ends
                if end < len(value) and (item is _ANY_CHARACTER or item == value[end])
            }
        if not ends:
            return False
    return len(value) in ends
