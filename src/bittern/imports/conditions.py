"""Pieces of expressions, from which the formats build theirs.

A condition is text that stands in parentheses where others may go around it; names and constants
are always written by these functions, never pasted. ``printed`` reads the whole once more and
writes it in canonical form, so that what a format returns is an expression or an error::

    name = path("os")
    old = like(name, "win", ANY_TEXT)
    printed(any_of([compare(path("price"), "<", 10), is_not(old, name, "string")]))

A comparison is unknown where its attribute is missing or of another kind. As long as no NOT is
around it, that is as good as FALSE. Under one it is not: a foreign NOT means "does not hold", which
is ``is_not``. Push negations down to the leaves, and ask for each leaf's ``is_not``.

**Lists.** JSON does not say which attribute is a list. ``x = 5`` is unknown for a list, and
``array_contains(x, 5)`` for anything else, so either may stand beside the other. Lists whose
elements are of several kinds have no type here: ``some_element`` is unknown for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal

from bittern.errors import ExpressionError, RuleError
from bittern.language.limits import MAX_DECIMAL_DIGITS, MAX_PARTS
from bittern.language.parser import parse
from bittern.language.printer import print_expression, print_literal, print_text
from bittern.language.syntax import Literal as Constant

#: What a value can be, apart from NULL; ``container`` is a list or an object.
Kind = Literal["number", "string", "boolean", "container"]

TRUE = "TRUE"
FALSE = "FALSE"

_INT64 = range(-(1 << 63), 1 << 63)
_WILD = re.compile(r"[\\%_]")
#: What stands in a LIKE pattern for any text, and for any one character.
ANY_TEXT, ANY_CHARACTER = object(), object()


# Names and constants


def path(*parts: str) -> str:
    """The name of an attribute, every part quoted: ``path("a b", "c")`` is ```a b`.`c```."""
    if not all(parts):
        raise RuleError("a name is empty: Bittern has no attribute without a name")
    if len(parts) > MAX_PARTS:
        raise RuleError(f"a path has at most {MAX_PARTS} parts, this one has {len(parts)}")
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def constant(value: Any) -> str:
    """A number, a text or a Boolean as a literal. Beyond 64 bits, an integer becomes a float."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
            raise RuleError("a text holds half a surrogate pair, which no event has")
        return print_text(value)
    if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
        try:
            value = float(value)
        except OverflowError:
            raise RuleError("a number is too large for a float") from None
    if isinstance(value, Decimal) and len(value.as_tuple().digits) > MAX_DECIMAL_DIGITS:
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise RuleError("a number is infinite or NaN, which no constant of Bittern's is")
    return print_literal(Constant(value))


def kind_of(value: Any) -> Kind:
    """The kind of a constant that is not NULL."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float | Decimal):
        return "number"
    return "container"


# Comparisons: unknown where the attribute is missing or of another kind


def compare(name: str, operator: str, value: Any) -> str:
    """``name operator value``; the operator is one of ``= != < <= > >=``."""
    return f"{name} {operator} {constant(value)}"


def is_one_of(name: str, values: Iterable[Any]) -> str:
    """``name IN (values)``, for each kind of values a list of its own; none are NULL."""
    lists: dict[Kind, dict[str, None]] = {}
    for value in values:
        lists.setdefault(kind_of(value), {})[constant(value)] = None
    return any_of(
        f"{name} IN ({', '.join(found)})" if len(found) > 1 else f"{name} = {next(iter(found))}"
        for found in lists.values()
    )


def like(name: str, *pieces: Any, ignoring_case: bool = False) -> str:
    """``name LIKE pattern``: pieces are texts as they are, ``ANY_TEXT`` and ``ANY_CHARACTER``.

    Without case, both sides are in lower case as Spark has it; ILIKE of a number is a text.
    """
    pattern = "".join(
        "%"
        if piece is ANY_TEXT
        else "_"
        if piece is ANY_CHARACTER
        else _WILD.sub(r"\\\g<0>", piece)
        for place, piece in enumerate(pieces)
        if place == 0 or not piece is pieces[place - 1] is ANY_TEXT
    )
    return f"{name} {'ILIKE' if ignoring_case else 'LIKE'} {constant(pattern)}"


def matches(name: str, pattern: str) -> str:
    """``name RLIKE pattern``: RE2's syntax, found anywhere."""
    return f"{name} RLIKE {constant(pattern)}"


# Never unknown


def is_null(name: str) -> str:
    """The attribute is NULL or missing."""
    return f"{name} IS NULL"


def is_missing(name: str) -> str:
    """The event does not have the attribute at all, not even as NULL."""
    return f"{name} IS MISSING"


def is_kind(name: str, kind: Kind) -> str:
    """TRUE for values of this kind, never TRUE for others; unknown for those (see ``is_not``)."""
    if kind == "string":
        return f"{name} >= ''"
    if kind == "boolean":
        return f"{name} IN (TRUE, FALSE)"
    if kind == "container":
        return f"size({name}) >= 0"
    return f"({name} < 0 OR {name} >= 0)"


def is_not(condition: str, name: str, kind: Kind) -> str:
    """The condition on this one attribute, whose value it takes to be of a kind, is not TRUE."""
    others: tuple[Kind, ...] = ("number", "string", "boolean", "container")
    return any_of(
        [
            f"NOT ({condition})",
            is_null(name),
            *(is_kind(name, other) for other in others if other != kind),
        ]
    )


# Lists


def has_element(name: str, value: Any) -> str:
    """The list has an element that equals the value, which is not NULL. Looked up together."""
    return f"array_contains({name}, {constant(value)})"


def has_elements_of(name: str, kind: Kind) -> str:
    """TRUE for a list whose elements are of this kind or NULL, an empty one included."""
    sample: Any = {"string": "", "boolean": False}.get(kind, 0)
    return f"array_position({name}, {constant(sample)}) >= 0"


def some_element(
    name: str, kind: Kind, condition: Callable[[str], str], variable: str = "v"
) -> str:
    """The list has elements of a kind, and for some of them the condition is TRUE.

    Comparing inside a term casts: the kind keeps 5 from being equal to '5'.
    """
    inner = f"exists({name}, {variable} -> {condition(variable)})"
    return inner if kind == "container" else all_of([has_elements_of(name, kind), inner])


# Together


def all_of(conditions: Iterable[str]) -> str:
    """AND; of nothing, TRUE."""
    return _joined(conditions, " AND ", neutral=TRUE, final=FALSE)


def any_of(conditions: Iterable[str]) -> str:
    """OR; of nothing, FALSE."""
    return _joined(conditions, " OR ", neutral=FALSE, final=TRUE)


def _joined(conditions: Iterable[str], between: str, *, neutral: str, final: str) -> str:
    found = [each for each in dict.fromkeys(conditions) if each != neutral]
    if final in found:
        return final
    if len(found) <= 1:
        return found[0] if found else neutral
    return f"({between.join(found)})"


def printed(condition: str, place: str = "") -> str:
    """The whole expression in canonical form; ``RuleError`` where it is beyond a limit."""
    try:
        return print_expression(parse(condition))
    except ExpressionError as wrong:
        raise RuleError(
            f"the expression that it becomes is refused: {wrong.message}", place
        ) from None


def parts_of(dotted: str) -> Sequence[str]:
    """The parts of a dotted path, none of them empty."""
    parts = dotted.split(".")
    if not all(parts):
        raise RuleError(f"{dotted!r} is not a path: one of its names is empty")
    return parts
