"""Conditions with their opposites: how foreign rules say NOT.

An ``Answer`` is a pair of conditions: ``yes`` is TRUE where the foreign condition holds, ``no``
where it does not. NOT exchanges them, AND and OR join them, so that no NOT ever meets an unknown
comparison::

    name LIKE 'win%'        yes   it is a text that starts so
                            no    it is another text, or of another kind, or NULL, or missing

Of a two-valued system one of them is TRUE; of one with three values, as JMS has, what is neither is
unknown.

**Any value of a list.** For most systems a list stands for each of its values: ``any_value`` holds
for a value, or for a list that has such a value. What no condition of ours can look into (a list
whose elements are of several kinds, and where the format flattens them, a list of lists) is neither
``yes`` nor ``no``: no rule matches by it, whatever stands around, and the event is listed in
``matches.mistyped``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

from bittern.errors import RuleError
from bittern.imports.conditions import (
    FALSE,
    TRUE,
    Kind,
    all_of,
    any_of,
    is_kind,
    is_null,
    parts_of,
    printed,
    some_element,
)
from bittern.imports.constructs import said
from bittern.language.limits import MAX_LENGTH

#: Ways to choose the conditions that are to hold, written out one by one.
_MAX_CHOICES = 500
#: Characters of all of them together, far beyond what an expression may have.
_MAX_WRITTEN = 64 * MAX_LENGTH
_SCALARS: tuple[Kind, ...] = ("number", "string", "boolean")


class ListPaths:
    """Which attributes may hold lists: those of some dotted paths and what lies inside, or all."""

    def __init__(self, paths: Collection[str] | None) -> None:
        self._paths = None if paths is None else {tuple(parts_of(each)) for each in paths}

    def may_hold(self, parts: Sequence[str]) -> bool:
        """Whether one of these is a list: the attribute, or something on the way to it."""
        if self._paths is None:
            return True
        return any(tuple(parts[:length]) in self._paths for length in range(1, len(parts) + 1))


class Answer(NamedTuple):
    """A condition that is TRUE where something holds, and one that is TRUE where it does not."""

    yes: str
    no: str


#: Stands for a condition that is longer than an expression may be, if nothing drops it.
TOO_LONG = "\0too long"
ALWAYS = Answer(TRUE, FALSE)
NEVER = Answer(FALSE, TRUE)


def both(answers: Iterable[Answer]) -> Answer:
    """AND; of nothing, it always holds."""
    found = list(answers)
    return bounded(Answer(all_of(each.yes for each in found), any_of(each.no for each in found)))


def either(answers: Iterable[Answer]) -> Answer:
    """OR; of nothing, it never holds."""
    found = list(answers)
    return bounded(Answer(any_of(each.yes for each in found), all_of(each.no for each in found)))


def bounded(answer: Answer) -> Answer:
    """The answer with what is too long left out: each of the two may be so without the other."""
    return Answer(*(TOO_LONG if _is_too_long(each) else each for each in answer))


def told(answer: Answer, construct: Any) -> Answer:
    """The answer, after noting the construct that it was made of."""
    return Answer(said(answer.yes, construct), said(answer.no, construct, fails=True))


def _is_too_long(condition: str) -> bool:
    return len(condition) > MAX_LENGTH or TOO_LONG in condition


def written(answer: Answer, place: str = "") -> str:
    """The expression of what holds; ``RuleError`` where it is beyond a limit."""
    if _is_too_long(answer.yes):
        raise RuleError(
            f"the expression that it becomes has more than {MAX_LENGTH:,} characters", place
        )
    return printed(answer.yes, place)


def negated(answer: Answer) -> Answer:
    """NOT."""
    return Answer(answer.no, answer.yes)


def at_least(least: int, answers: Sequence[Answer]) -> Answer:
    """So many of these hold: every choice of them is written out."""
    count = len(answers)
    if least > count:
        return NEVER
    if least <= 0:
        return ALWAYS
    if least in (1, count):
        return either(answers) if least == 1 else both(answers)
    if max(comb(count, least), comb(count, least - 1)) > _MAX_CHOICES:
        raise RuleError(f"{least} of {count} conditions have too many choices to be written out")
    size = sum(len(each.yes) + len(each.no) for each in answers)
    if size * comb(count - 1, least - 1) > _MAX_WRITTEN:
        return Answer(TOO_LONG, TOO_LONG)
    yes = any_of(all_of(each.yes for each in own) for own in combinations(answers, least))
    failing = combinations(answers, count - least + 1)  # then fewer are left
    return bounded(Answer(yes, any_of(all_of(each.no for each in own) for own in failing)))


def is_not_true(condition: str) -> str:
    """A condition made of terms is FALSE or unknown; a term that has no value is unknown."""
    return f"({condition}) IS NOT TRUE"


def is_object(name: str) -> str:
    """TRUE for an object, else unknown."""
    return f"size(map_keys({name})) >= 0"


def is_list(name: str) -> str:
    """TRUE for a list, else unknown."""
    return f"array_size({name}) >= 0"


def is_no_list(name: str) -> str:
    """TRUE for anything but a list, else FALSE."""
    return f"array_size({name}) IS NULL"


def has_no_values(name: str) -> str:
    """TRUE for a list that is empty, or has nothing but NULL."""
    return f"NOT exists({name}, v -> v IS NOT NULL)"


def is_plain_list(name: str, *, flattened: bool) -> str:
    """TRUE for a list whose elements are of one kind, and no lists if that matters."""
    # A list without values has whatever type the lists beside it have.
    alike = any_of([f"size(array_distinct({name})) >= 0", has_no_values(name)])
    if not flattened:
        return alike
    return all_of([alike, is_not_true(f"exists({name}, v -> size(v) >= 0)")])


def any_value(
    name: str,
    kind: Kind,
    condition: Callable[[str], str],
    *,
    element: str | None = None,
    flattened: bool = True,
    may_be_list: bool = True,
) -> Answer:
    """The attribute's value, or some element of it, is of this kind and fulfils the condition.

    ``element`` is what says so of a list, if there is something faster than to go through it. Lists
    inside lists have no answer if the foreign system looks into them (``flattened``).
    """
    if element is None:
        element = some_element(name, kind, condition)
    own = condition(name)
    others = [is_kind(name, other) for other in _SCALARS if other != kind]
    not_own = [f"NOT ({own})", is_null(name), *others, is_object(name)]
    if not may_be_list:
        return Answer(own, any_of(not_own))
    plain = is_plain_list(name, flattened=flattened)
    no = any_of([*not_own, all_of([plain, is_not_true(element)])])
    return Answer(any_of([own, element]), no)
