"""Rules of JSON Logic, with JavaScript's meaning of comparisons.

::

    {"and": [{"<": [{"var": "price"}, 10]}, {"in": ["sale", {"var": "tags"}]}]}

A rule is a condition: it matches where its value is *truthy*. ``and``, ``or``, ``!`` and ``if``
join conditions; a comparison and ``in`` apply a test (``tests.py``) to a variable, or to
a constant (``operands.py``). What is computed, or compared with anything but a constant,
is refused.

**Lists.** ``some``, ``all`` and ``none`` ask a condition of the elements, which may be of any kind,
so it is told for each kind that all of them may have. It is about the elements themselves or about
one field of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bittern.errors import RuleError, brief
from bittern.imports.answers import (
    ALWAYS,
    NEVER,
    Answer,
    at_least,
    both,
    either,
    has_no_values,
    is_list,
    is_no_list,
    is_not_true,
    negated,
    told,
    written,
)
from bittern.imports.conditions import (
    Kind,
    all_of,
    any_of,
    has_elements_of,
    kind_of,
    parts_of,
    path,
)
from bittern.imports.json_logic_rules.javascript import is_strictly_equal, text_of, truthy
from bittern.imports.json_logic_rules.numbers import compared_numbers, is_arithmetic, is_nonzero
from bittern.imports.json_logic_rules.operands import (
    INHERITED,
    Subject,
    expect,
    is_variable,
    literal,
    operation,
    subject_of,
)
from bittern.imports.json_logic_rules.tests import (
    SCALARS,
    TRUTH,
    Test,
    compared_with,
    decided,
    holding,
    strictly,
)
from bittern.imports.json_rules import Place, place_of, read_json, refuse

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def json_logic(rule: Any) -> str:
    """The expression of a rule, in text or as the object."""
    return written(_condition(read_json(rule), ()))


# Conditions


def _condition(logic: Any, at: Place) -> Answer:
    """Where a rule is truthy."""
    found = operation(logic)
    if found is None:
        return ALWAYS if truthy(logic) else NEVER
    name, arguments = found
    at = (*at, name)
    places = [
        (*at, place) if isinstance(logic[name], list) else at for place in range(len(arguments))
    ]

    def condition(place: int) -> Answer:
        return _condition(arguments[place], places[place])

    try:
        if name in ("and", "or"):
            expect(bool(arguments), f"{name} without arguments", at)
            joined = both if name == "and" else either
            return joined([condition(place) for place in range(len(arguments))])
        if name in ("!", "!!"):
            expect(len(arguments) <= 1, f"{name} takes one argument", at)
            answer = condition(0) if arguments else NEVER  # JavaScript's undefined is not true
            return negated(answer) if name == "!" else answer
        if name in ("if", "?:"):
            return _if([condition(place) for place in range(len(arguments))])
        if name == "var":
            return told(subject_of(arguments, at).answer(TRUTH), logic)
        if is_arithmetic(logic):
            return told(is_nonzero(logic, at[:-1]), logic)
        if name in _COMPARISONS:
            return told(_comparison(name, arguments, places, at), logic)
        if name == "in":
            return told(_in(arguments, places, at), logic)
        if name in ("some", "all", "none"):
            return told(_quantified(name, arguments, places, at), logic)
        if name in ("missing", "missing_some"):
            return told(_missing(name, arguments, at), logic)
    except RuleError as wrong:
        raise RuleError(wrong.reason, wrong.place or place_of(at)) from None
    raise RuleError(
        f"{brief(name)} is not supported: a condition that compares with constants is", place_of(at)
    )


def _if(answers: list[Answer]) -> Answer:
    """Conditions and results in turn; the last alone is for all others."""
    rest = answers.pop() if len(answers) % 2 else NEVER
    for place in range(len(answers) - 2, -1, -2):
        test, result = answers[place], answers[place + 1]
        rest = either([both([test, result]), both([negated(test), rest])])
    return rest


# Comparisons

_COMPARISONS = frozenset(("==", "===", "!=", "!==", "<", "<=", ">", ">="))


def _comparison(name: str, arguments: list[Any], places: list[Place], at: Place) -> Answer:
    if name in ("<", "<=") and len(arguments) == 3:
        first = _comparison(name, arguments[:2], places, at)
        return both([first, _comparison(name, arguments[1:], places[1:], at)])
    expect(len(arguments) == 2, f"{name} takes two arguments", at)
    if name in ("!=", "!=="):
        return negated(_comparison(name.replace("!", "=", 1), arguments, places, at))
    if any(map(is_arithmetic, arguments)):
        return compared_numbers(name, arguments, places)
    left, right = arguments
    if is_variable(right) and not is_variable(left):
        name, left, right = _FLIPPED.get(name, name), right, left
        places = [places[1], places[0]]
    value = literal(right, places[1])
    test = strictly([value]) if name == "===" else compared_with(name, value)
    if not is_variable(left):
        return decided(test.of(literal(left, places[0])))
    return subject_of(operation(left)[1], places[0]).answer(test)  # type: ignore[index]


def _in(arguments: list[Any], places: list[Place], at: Place) -> Answer:
    expect(len(arguments) == 2, "in takes two arguments", at)
    needle, haystack = arguments
    if is_variable(needle):
        if not isinstance(haystack, list):
            refuse("a variable can be in a list of constants", places[1])
        values = [literal(each, (*places[1], place)) for place, each in enumerate(haystack)]
        return subject_of(operation(needle)[1], places[0]).answer(strictly(values))  # type: ignore[index]
    value = literal(needle, places[0])
    if isinstance(haystack, list):
        values = [literal(each, (*places[1], place)) for place, each in enumerate(haystack)]
        return decided(any(is_strictly_equal(value, each) for each in values))
    if not is_variable(haystack):
        text = literal(haystack, places[1])
        return decided(isinstance(text, str) and text != "" and text_of(value) in text)
    return subject_of(operation(haystack)[1], places[1]).answer(holding(value))  # type: ignore[index]


# Lists


def _quantified(name: str, arguments: list[Any], places: list[Place], at: Place) -> Answer:
    expect(len(arguments) == 2, f"{name} takes two arguments", at)
    expect(is_variable(arguments[0]), "a variable is expected, which holds a list", places[0])
    subject = subject_of(operation(arguments[0])[1], places[0])  # type: ignore[index]
    expect(subject.default is None, "a list without a default is expected", places[0])
    if name == "all":
        exception = _some(subject, arguments[1], places[1], is_negated=True)
        size = f"array_size({subject.name})"
        plain = [is_no_list(each) for each in subject.around]
        yes = all_of([*plain, f"{size} > 0", exception.no])
        return Answer(yes, any_of([f"{size} = 0", exception.yes, _no_list(subject)]))
    found = _some(subject, arguments[1], places[1], is_negated=False)
    return found if name == "some" else negated(found)


def _no_list(subject: Subject) -> str:
    return any_of([is_no_list(subject.name), *map(is_list, subject.around)])


def _some(subject: Subject, logic: Any, at: Place, *, is_negated: bool) -> Answer:
    """Some element is truthy in the body, told for each kind that all elements may have.

    If the body is about a field of the elements, their fields are a list of their own.
    """
    fields = _fields_in(logic)
    if len(fields) > 1:
        refuse("inside of some, all and none, one field of the elements is supported", at)
    field = fields.pop() if fields else ""
    if not isinstance(field, str) or any(each in INHERITED for each in field.split(".")):
        refuse(f"{brief(field)} is not the name of a field that is supported", at)
    name = f"{subject.name}.{path(*parts_of(field))}" if field else subject.name
    body, ways = _Body(field), []
    for kind in SCALARS:
        answer = body.of_kind(logic, at, kind)
        condition = answer.no if is_negated else answer.yes
        if condition == "TRUE":
            condition = "v IS NOT NULL"
        if condition != "FALSE":
            ways.append(all_of([has_elements_of(name, kind), f"exists({name}, v -> {condition})"]))
    if body.of_nothing(logic, at) is not is_negated:
        ways.append(f"exists({name}, v -> v IS NULL)")
    plain = [is_no_list(each) for each in subject.around]
    scalars = [has_elements_of(name, kind) for kind in SCALARS]
    of_scalars = any_of([has_no_values(name), *scalars])
    yes = all_of([*plain, is_list(subject.name), any_of(ways)])
    no = [_no_list(subject), all_of([of_scalars, *(is_not_true(each) for each in ways)])]
    return Answer(yes, any_of(no))


def _fields_in(logic: Any) -> set[Any]:
    """The names of all variables in a rule."""
    found: set[Any] = set()
    waiting = [logic]
    while waiting:
        each = waiting.pop()
        if is_variable(each):
            name = each["var"]
            found.add(name if isinstance(name, str) else brief(name))
        elif isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return found


class _Body:
    """What is asked of each element, which ``{"var": field}`` stands for."""

    def __init__(self, field: str) -> None:
        self._variable = {"var": field}

    def of_kind(self, logic: Any, at: Place, kind: Kind) -> Answer:
        """What it says of elements ``v`` of a kind."""
        return self._condition(logic, at, lambda test: test("v", kind))

    def of_nothing(self, logic: Any, at: Place) -> bool:
        """What it says of an element that is NULL."""
        return self._condition(logic, at, lambda test: decided(test.of(None))) == ALWAYS

    def _condition(self, logic: Any, at: Place, ask: Callable[[Test], Answer]) -> Answer:
        found = operation(logic)
        if found is None:
            return decided(truthy(logic))
        if logic == self._variable:
            return ask(TRUTH)
        name, arguments = found
        at = (*at, name)
        if name in ("and", "or") and arguments:
            answers = [self._condition(each, at, ask) for each in arguments]
            return both(answers) if name == "and" else either(answers)
        if name in ("!", "!!") and len(arguments) == 1:
            answer = self._condition(arguments[0], at, ask)
            return negated(answer) if name == "!" else answer
        if name in ("in", *_COMPARISONS) and len(arguments) == 2:
            answer = ask(self._test(name.replace("!", "=", 1), arguments, at))
            return negated(answer) if name.startswith("!") else answer
        raise RuleError(f"{brief(name)} inside of some, all or none is not supported", place_of(at))

    def _test(self, name: str, arguments: list[Any], at: Place) -> Test:
        left, right = arguments
        if name == "in" and left == self._variable and isinstance(right, list):
            return strictly([literal(each, at) for each in right])
        if name == "in" and right == self._variable:
            return holding(literal(left, at))
        if right == self._variable:
            name, left, right = _FLIPPED.get(name, name), right, left
        if left != self._variable or name == "in":
            refuse('an element, {"var": ""}, and a constant are expected', at)
        value = literal(right, at)
        return strictly([value]) if name == "===" else compared_with(name, value)


def _missing(name: str, arguments: list[Any], at: Place) -> Answer:
    least, names = 0, arguments
    if name == "missing_some":
        is_call = len(arguments) == 2 and kind_of(arguments[0]) == "number"
        expect(is_call and isinstance(arguments[1], list), "a number and names are expected", at)
        least, names = math.ceil(arguments[0]), arguments[1]
    elif arguments and isinstance(arguments[0], list):
        names = arguments[0]
    expect(all(isinstance(each, str) for each in names), "names are expected", at)
    empty = strictly([None, ""])
    gone = [subject_of([each], at).answer(empty) for each in names]
    if name == "missing":
        return either(gone)
    enough = at_least(least, [negated(each) for each in gone])
    return both([either(gone), negated(enough)])
