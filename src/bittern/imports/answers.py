"""Conditions of two-valued systems, each with its opposite.

An ``Answer`` is a pair of conditions: ``yes`` is TRUE where the foreign condition holds, ``no``
where it does not. NOT exchanges them, AND and OR join them, so that no NOT ever meets an unknown
comparison::

    name LIKE 'win%'        yes   it is a text that starts so
                            no    it is another text, or of another kind, or NULL, or missing

**Any value of a list.** For most systems a list stands for each of its values: ``any_value`` holds
for a value, or for a list that has such a value. What no condition of ours can look into (a list
whose elements are of several kinds, and where the format flattens them, a list of lists) is neither
``yes`` nor ``no``: no rule matches by it, whatever stands around, and the event is listed in
``matches.mistyped``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bittern.imports.conditions import (
    FALSE,
    TRUE,
    Kind,
    all_of,
    any_of,
    is_kind,
    is_null,
    some_element,
)

_SCALARS: tuple[Kind, ...] = ("number", "string", "boolean")


class Answer(NamedTuple):
    """A condition that is TRUE where something holds, and one that is TRUE where it does not."""

    yes: str
    no: str


ALWAYS = Answer(TRUE, FALSE)
NEVER = Answer(FALSE, TRUE)


def both(answers: Iterable[Answer]) -> Answer:
    """AND; of nothing, it always holds."""
    found = list(answers)
    return Answer(all_of(each.yes for each in found), any_of(each.no for each in found))


def either(answers: Iterable[Answer]) -> Answer:
    """OR; of nothing, it never holds."""
    found = list(answers)
    return Answer(any_of(each.yes for each in found), all_of(each.no for each in found))


def negated(answer: Answer) -> Answer:
    """NOT."""
    return Answer(answer.no, answer.yes)


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


def is_plain_list(name: str, *, flattened: bool) -> str:
    """TRUE for a list whose elements are of one kind, and no lists if that matters."""
    alike = f"size(array_distinct({name})) >= 0"
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
) -> Answer:
    """The attribute's value, or some element of it, is of this kind and fulfils the condition.

    ``element`` is what says so of a list, if there is something faster than to go through it. Lists
    inside lists have no answer if the foreign system looks into them (``flattened``).
    """
    if element is None:
        element = some_element(name, kind, condition)
    own = condition(name)
    others = [is_kind(name, other) for other in _SCALARS if other != kind]
    plain = is_plain_list(name, flattened=flattened)
    return Answer(
        any_of([own, element]),
        any_of(
            [
                f"NOT ({own})",
                is_null(name),
                *others,
                is_object(name),
                all_of([plain, is_not_true(element)]),
            ]
        ),
    )
