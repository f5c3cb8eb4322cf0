"""Operands of JSON Logic: the variables and constants of a rule.

::

    {"var": "item.price"}        a variable: an attribute, here inside of another
    {"var": ["price", 10]}       the same with a default, for where it is missing
    5  "red"  true  null         constants

A ``Subject`` is what a variable leads to. The value may be of any kind, so its answer to a test has
all of them; and it may be NULL or missing, where the test is of None or of the default.

JavaScript finds more by a name than what a document has: ``length`` of a text, ``0`` of a list,
``constructor`` of everything. Such names are refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bittern.errors import brief
from bittern.imports.answers import Answer, is_list, is_no_list, is_object
from bittern.imports.conditions import all_of, any_of, is_null, kind_of, parts_of, path
from bittern.imports.json_logic_rules.tests import SCALARS, Test, guarded
from bittern.imports.json_rules import Place, refuse

#: Names that every object of JavaScript has, or every text and list.
INHERITED = frozenset(
    "constructor toString valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable "  # noqa: SIM905
    "toLocaleString __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ "
    "__lookupSetter__ length".split()
)


def operation(logic: Any) -> tuple[str, list[Any]] | None:
    """The name and the arguments, unless it is a constant."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return None
    ((name, arguments),) = logic.items()
    return name, arguments if isinstance(arguments, list) else [arguments]


def literal(logic: Any, at: Place) -> Any:
    """A constant that is a number, a text, a Boolean or None."""
    if logic is not None and kind_of(logic) == "container":
        refuse('one side must be {"var": ...} and the other a constant that is not a list', at)
    return logic


def is_variable(logic: Any) -> bool:
    """Whether it is ``{"var": ...}``, whatever its name."""
    found = operation(logic)
    return found is not None and found[0] == "var"


def expect(holds: bool, reason: str, at: Place) -> None:  # noqa: FBT001
    """Refuse what is at this place unless the condition holds."""
    if not holds:
        refuse(reason, at)


class Subject(NamedTuple):
    """An attribute, with the paths that lead to it and what it is where it is missing."""

    name: str
    around: tuple[str, ...]
    default: Any

    def answer(self, test: Test) -> Answer:
        """The test for whatever kind the attribute has."""
        found = [guarded(self.name, kind, test(self.name, kind)) for kind in SCALARS]
        found.append(_objects(self.name, test.of("[object Object]", is_text=False)))
        found.append(test.of_list(self.name))
        # Nothing lies inside of a list, for JavaScript; here the list itself would.
        plain = [is_no_list(each) for each in self.around]
        yes = all_of([*plain, any_of(each.yes for each in found)])
        no = all_of([*plain, any_of(each.no for each in found)])
        gone = [is_list(each) for each in self.around]
        absent = test.of(None)
        if self.default is None:
            nothing = any_of([is_null(self.name), *gone])
            return _with_constant(Answer(yes, no), nothing, absent)
        missing = f"{self.name} IS MISSING"
        nulls = all_of([is_null(self.name), f"{self.name} IS NOT MISSING", *plain])
        if self.around:
            # What is inside of NULL is missing for JavaScript.
            around = self.around[-1]
            missing = any_of([missing, is_null(around), *gone])
            nulls = all_of([nulls, f"{around} IS NOT NULL"])
        answer = _with_constant(Answer(yes, no), nulls, absent)
        return _with_constant(answer, missing, test.of(self.default))


def _with_constant(answer: Answer, where: str, holds: bool) -> Answer:  # noqa: FBT001
    if holds:
        return Answer(any_of([where, answer.yes]), answer.no)
    return Answer(answer.yes, any_of([where, answer.no]))


def _objects(name: str, holds: bool) -> Answer:  # noqa: FBT001
    return Answer(is_object(name), "FALSE") if holds else Answer("FALSE", is_object(name))


def subject_of(arguments: list[Any], at: Place) -> Subject:
    """What the arguments of ``var`` lead to."""
    expect(1 <= len(arguments) <= 2, "var takes a name, and maybe a default", at)
    name, *rest = arguments
    expect(isinstance(name, str) and bool(name), "var takes the name of an attribute", at)
    parts = parts_of(name)
    for part in parts:
        if part in INHERITED or part.isdecimal():
            refuse(f"{brief(name)}: {part} has a meaning of its own in JavaScript", at)
    around = tuple(path(*parts[:length]) for length in range(1, len(parts)))
    default = literal(rest[0], at) if rest else None
    return Subject(path(*parts), around, default)
