"""Tests of one value in JSON Logic, kind by kind.

JavaScript compares values of any kinds: ``"5" < 10`` and ``null < 10`` and ``[5] < 10`` are true.
So a comparison is told for each kind that a value may have, and the expression has them all::

    kind        price < 10 is
    number      price < 10
    text        the number that it spells < 10, where it spells one
    Boolean     TRUE: both 0 and 1 are
    NULL        TRUE: it counts as 0
    object      FALSE: it is NaN
    list        that of its text: without elements, or with one

A ``Test`` tells it for one kind, of an attribute or of an element of a list; ``javascript.py``
computes what constants are. There are four: ``TRUTH``, ``compared_with`` for ``==`` and the orders,
``strictly`` for ``===``, and ``holding`` for ``in``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bittern.errors import RuleError
from bittern.imports.answers import (
    ALWAYS,
    NEVER,
    Answer,
    has_no_values,
    is_list,
    is_not_true,
    is_plain_list,
)
from bittern.imports.conditions import (
    ANY_TEXT,
    Kind,
    all_of,
    any_of,
    compare,
    constant,
    has_element,
    has_elements_of,
    is_kind,
    is_null,
    is_one_of,
    kind_of,
    like,
    matches,
)
from bittern.imports.json_logic_rules.javascript import (
    BLANK,
    DECIMAL,
    INFINITE,
    PREFIXED,
    compared,
    is_strictly_equal,
    number_of,
    text_of,
    truthy,
)

SCALARS: tuple[Kind, ...] = ("number", "string", "boolean")
_SQL = {"==": "=", "===": "="}
#: Whole numbers among joined ones, and numbers that JavaScript writes in another way.
_WHOLE = r"\.0(,|$)"
_ODD = r"E|-0\.0(,|$)|[0-9]{16}"


class Test:
    """A test of one value: as a function of constants, and as conditions for each kind."""

    def __init__(
        self,
        holds: Callable[[Any], bool],
        scalar: Callable[[str, Kind], Answer],
        of_list: Callable[[str], Answer],
        of_object: bool | None = None,  # noqa: FBT001
    ) -> None:
        self._holds, self._scalar, self.of_list = holds, scalar, of_list
        self._of_object = of_object

    def __call__(self, name: str, kind: Kind) -> Answer:
        """For values of a kind, TRUE or FALSE; unknown for NULL and others."""
        return self._scalar(name, kind)

    def of(self, value: Any, *, is_text: bool = True) -> bool:
        """For a constant; ``is_text`` says that it is none that stands for an object."""
        if not is_text and self._of_object is not None:
            return self._of_object
        return self._holds(value)


def decided(holds: bool) -> Answer:  # noqa: FBT001
    """What constants alone decide."""
    return ALWAYS if holds else NEVER


def guarded(name: str, kind: Kind, answer: Answer) -> Answer:
    """TRUE and FALSE stand for all values of a kind."""
    every = is_kind(name, kind)
    return Answer(*(every if each == "TRUE" else each for each in answer))


def _truth_scalar(name: str, kind: Kind) -> Answer:
    empty = {"number": 0, "string": "", "boolean": False}[kind]
    return Answer(compare(name, "!=", empty), compare(name, "=", empty))


def _truth_list(name: str) -> Answer:
    return Answer(f"array_size({name}) > 0", f"array_size({name}) = 0")


TRUTH = Test(truthy, _truth_scalar, _truth_list, of_object=True)


def _numeric(name: str, operator: str, value: float) -> Answer:
    """A number compared with a constant, which may be NaN or infinite."""
    if math.isnan(value):
        return NEVER
    if math.isinf(value):
        return decided(compared(operator, 0, value))
    sign = _SQL.get(operator, operator)
    found = compare(name, sign, value)
    return Answer(found, f"NOT ({found})")


def _spelled(name: str, operator: str, value: float) -> Answer:
    """A text that is compared with a number: by the number that it spells."""
    if math.isnan(value):
        return NEVER
    spelled = f"TRY_CAST(regexp_extract({name}, {constant(DECIMAL)}, 1) AS DOUBLE)"
    number = _numeric(spelled, operator, value)
    if math.isinf(value):
        decimal = matches(name, DECIMAL)
        number = Answer(*(decimal if each == "TRUE" else each for each in number))
    yes, no = [number.yes], [number.no]
    for pattern, own in ((BLANK, 0.0), (INFINITE[0], math.inf), (INFINITE[1], -math.inf)):
        (yes if compared(operator, own, value) else no).append(matches(name, pattern))
    known = any_of(matches(name, each) for each in (BLANK, DECIMAL, *INFINITE, PREFIXED))
    no.append(f"NOT {known}")
    return Answer(any_of(yes), any_of(no))


def compared_with(operator: str, value: Any) -> Test:
    """``==`` or an order, with a constant that is no list."""
    number = number_of(value)

    def scalar(name: str, kind: Kind) -> Answer:
        if value is None and operator == "==":
            return NEVER
        if kind == "boolean":
            true, false = (compared(operator, each, value) for each in (True, False))
            own = [each for each, holds in ((True, true), (False, false)) if holds]
            others = [each for each in (True, False) if each not in own]
            return Answer(is_one_of(name, own), is_one_of(name, others))
        if kind == "string":
            if isinstance(value, str):
                found = compare(name, _SQL.get(operator, operator), value)
                return Answer(found, f"NOT ({found})")
            return _spelled(name, operator, number)
        return _numeric(name, operator, number)

    def of_list(name: str) -> Answer:
        return _list_as_text(name, operator, value, scalar)

    if isinstance(value, str) and operator != "==" and any(each > "\ud7ff" for each in value):
        raise RuleError("an order of characters beyond U+D7FF differs in JavaScript")
    return Test(lambda other: compared(operator, other, value), scalar, of_list)


def _list_as_text(
    name: str, operator: str, value: Any, scalar: Callable[[str, Kind], Answer]
) -> Answer:
    """A list is the text of its elements with commas between them, as in JavaScript."""
    if value is None and operator == "==":
        return Answer("FALSE", is_list(name))
    if isinstance(value, str):
        return _list_beside_text(name, operator, value)
    size, first = f"array_size({name})", f"get({name}, 0)"
    empty = any_of([f"{size} = 0", all_of([f"{size} = 1", is_null(first)])])
    single = f"{size} = 1"
    yes: list[str] = []
    no = [f"{size} > 1"]  # NaN, for the comma
    (yes if compared(operator, "", value) else no).append(empty)
    for kind in ("number", "string"):
        found = guarded(first, kind, scalar(first, kind))
        yes.append(all_of([single, found.yes]))
        no.append(all_of([single, found.no]))
    no.append(all_of([single, is_kind(first, "boolean")]))  # [true] is "true", which is NaN
    return Answer(any_of(yes), any_of(no))


def _list_beside_text(name: str, operator: str, value: str) -> Answer:
    """The joined elements are compared, where they are all of one kind."""
    joined = f"array_join({name}, ',', '')"
    shown = f"regexp_replace({joined}, {constant(_WHOLE)}, '$1')"
    ways = [(has_no_values(name), joined)]
    ways += [(has_elements_of(name, kind), joined) for kind in SCALARS if kind != "number"]
    # 1.0 is "1"; how long numbers are written in JavaScript is not known here.
    number = all_of([has_elements_of(name, "number"), f"NOT ({matches(joined, _ODD)})"])
    ways.append((number, shown))
    sign = _SQL.get(operator, operator)
    found = [(guard, compare(text, sign, value)) for guard, text in ways]
    return Answer(
        any_of(all_of([guard, holds]) for guard, holds in found),
        any_of(all_of([guard, f"NOT ({holds})"]) for guard, holds in found),
    )


def strictly(values: list[Any]) -> Test:
    """``===`` to one of these constants; no list or object is."""

    def scalar(name: str, kind: Kind) -> Answer:
        own = [each for each in values if each is not None and kind_of(each) == kind]
        if not own:
            return NEVER
        found = is_one_of(name, own)
        return Answer(found, f"NOT ({found})")

    return Test(
        lambda other: any(is_strictly_equal(other, each) for each in values),
        scalar,
        lambda name: Answer("FALSE", is_list(name)),
        of_object=False,
    )


def holding(value: Any) -> Test:
    """A text that has this one in it, or a list that has this element."""
    part = text_of(value)

    def scalar(name: str, kind: Kind) -> Answer:
        if kind != "string":
            return NEVER
        found = like(name, ANY_TEXT, part, ANY_TEXT)
        return Answer(
            all_of([found, compare(name, "!=", "")]),
            any_of([f"NOT ({found})", compare(name, "=", "")]),
        )

    def of_list(name: str) -> Answer:
        if value is None:
            found = f"exists({name}, v -> v IS NULL)"
            return Answer(found, all_of([is_list(name), is_not_true(found)]))
        found = has_element(name, value)
        plain = is_plain_list(name, flattened=False)
        return Answer(found, all_of([plain, is_not_true(found)]))

    def holds(other: Any) -> bool:
        return isinstance(other, str) and other != "" and part in other

    return Test(holds, scalar, of_list, of_object=False)
