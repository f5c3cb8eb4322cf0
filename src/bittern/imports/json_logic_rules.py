r"""Rules of JSON Logic, with JavaScript's meaning of comparisons.

::

    {"and": [{"<": [{"var": "price"}, 10]}, {"in": ["sale", {"var": "tags"}]}]}

JavaScript compares values of any kinds: ``"5" < 10`` and ``null < 10`` and ``[5] < 10`` are true.
So a comparison is told for each kind that a value may have, and the expression has them all::

    kind        price < 10 is
    number      price < 10
    text        the number that it spells < 10, where it spells one
    Boolean     TRUE: both 0 and 1 are
    NULL        TRUE: it counts as 0
    object      FALSE: it is NaN
    list        that of its text: without elements, or with one

A ``_Test`` tells it for one kind, of an attribute or of an element of a list; ``javascript.py``
computes what constants are. A rule is a condition: it matches where its value is *truthy*. What is
computed, or compared with anything but a constant, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
    is_object,
    is_plain_list,
    negated,
    written,
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
    parts_of,
    path,
)
from bittern.imports.javascript import (
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
from bittern.imports.json_rules import place_of, read_json, refuse

Path = tuple[str | int, ...]
_SCALARS: tuple[Kind, ...] = ("number", "string", "boolean")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SQL = {"==": "=", "===": "="}
#: Whole numbers among joined ones, and numbers that JavaScript writes in another way.
_WHOLE = r"\.0(,|$)"
_ODD = r"E|-0\.0(,|$)|[0-9]{16}"
#: Names that every object of JavaScript has, or every text and list.
_INHERITED = frozenset(
    "constructor toString valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable "  # noqa: SIM905
    "toLocaleString __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ "
    "__lookupSetter__ length".split()
)


def json_logic(rule: Any) -> str:
    """The expression of a rule, in text or as the object."""
    return written(_condition(read_json(rule), ()))


# Conditions


def _operation(logic: Any) -> tuple[str, list[Any]] | None:
    """The name and the arguments, unless it is a constant."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return None
    ((name, arguments),) = logic.items()
    return name, arguments if isinstance(arguments, list) else [arguments]


def _condition(logic: Any, at: Path) -> Answer:
    """Where a rule is truthy."""
    found = _operation(logic)
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
            _expect(bool(arguments), f"{name} without arguments", at)
            joined = both if name == "and" else either
            return joined([condition(place) for place in range(len(arguments))])
        if name in ("!", "!!"):
            _expect(len(arguments) == 1, f"{name} takes one argument", at)
            return negated(condition(0)) if name == "!" else condition(0)
        if name in ("if", "?:"):
            return _if([condition(place) for place in range(len(arguments))])
        if name == "var":
            return _subject(arguments, at).answer(_truth)
        if name in _COMPARISONS:
            return _comparison(name, arguments, places, at)
        if name == "in":
            return _in(arguments, places, at)
        if name in ("some", "all", "none"):
            return _quantified(name, arguments, places, at)
        if name in ("missing", "missing_some"):
            return _missing(name, arguments, at)
    except RuleError as wrong:
        raise RuleError(wrong.reason, wrong.place or place_of(at)) from None
    raise RuleError(
        f"{brief(name)} is not supported: a condition that compares with constants is", place_of(at)
    )


def _expect(holds: bool, reason: str, at: Path) -> None:  # noqa: FBT001
    if not holds:
        refuse(reason, at)


def _if(answers: list[Answer]) -> Answer:
    """Conditions and results in turn; the last alone is for all others."""
    rest = answers.pop() if len(answers) % 2 else NEVER
    for place in range(len(answers) - 2, -1, -2):
        test, result = answers[place], answers[place + 1]
        rest = either([both([test, result]), both([negated(test), rest])])
    return rest


def _literal(logic: Any, at: Path) -> Any:
    """A constant that is a number, a text, a Boolean or None."""
    if logic is not None and kind_of(logic) == "container":
        refuse('one side is to be {"var": ...} and the other a constant that is no list', at)
    return logic


def _is_variable(logic: Any) -> bool:
    found = _operation(logic)
    return found is not None and found[0] == "var"


# Subjects: what a variable leads to


class _Subject(NamedTuple):
    """An attribute, with the paths that lead to it and what it is where it is missing."""

    name: str
    around: tuple[str, ...]
    default: Any

    def answer(self, test: _Test) -> Answer:
        """The test for whatever kind the attribute has."""
        found = [_guarded(self.name, kind, test(self.name, kind)) for kind in _SCALARS]
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


def _guarded(name: str, kind: Kind, answer: Answer) -> Answer:
    """TRUE and FALSE stand for all values of a kind."""
    every = is_kind(name, kind)
    return Answer(*(every if each == "TRUE" else each for each in answer))


def _objects(name: str, holds: bool) -> Answer:  # noqa: FBT001
    return Answer(is_object(name), "FALSE") if holds else Answer("FALSE", is_object(name))


def _subject(arguments: list[Any], at: Path) -> _Subject:
    _expect(1 <= len(arguments) <= 2, "var takes a name, and maybe a default", at)
    name, *rest = arguments
    _expect(isinstance(name, str) and bool(name), "var takes the name of an attribute", at)
    parts = parts_of(name)
    for part in parts:
        if part in _INHERITED or part.isdecimal():
            refuse(f"{brief(name)}: {part} has a meaning of its own in JavaScript", at)
    around = tuple(path(*parts[:length]) for length in range(1, len(parts)))
    default = _literal(rest[0], at) if rest else None
    return _Subject(path(*parts), around, default)


# Tests: what holds for a value, by its kind


class _Test:
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


def _decided(holds: bool) -> Answer:  # noqa: FBT001
    return ALWAYS if holds else NEVER


def _truth_scalar(name: str, kind: Kind) -> Answer:
    empty = {"number": 0, "string": "", "boolean": False}[kind]
    return Answer(compare(name, "!=", empty), compare(name, "=", empty))


def _truth_list(name: str) -> Answer:
    return Answer(f"array_size({name}) > 0", f"array_size({name}) = 0")


_truth = _Test(truthy, _truth_scalar, _truth_list, of_object=True)


def _numeric(name: str, operator: str, value: float) -> Answer:
    """A number compared with a constant, which may be NaN or infinite."""
    if math.isnan(value):
        return NEVER
    if math.isinf(value):
        return _decided(compared(operator, 0, value))
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


def _compared_with(operator: str, value: Any) -> _Test:
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
    return _Test(lambda other: compared(operator, other, value), scalar, of_list)


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
        found = _guarded(first, kind, scalar(first, kind))
        yes.append(all_of([single, found.yes]))
        no.append(all_of([single, found.no]))
    no.append(all_of([single, is_kind(first, "boolean")]))  # [true] is "true", which is NaN
    return Answer(any_of(yes), any_of(no))


def _list_beside_text(name: str, operator: str, value: str) -> Answer:
    """The joined elements are compared, where they are all of one kind."""
    joined = f"array_join({name}, ',', '')"
    shown = f"regexp_replace({joined}, {constant(_WHOLE)}, '$1')"
    ways = [(has_no_values(name), joined)]
    ways += [(has_elements_of(name, kind), joined) for kind in _SCALARS if kind != "number"]
    # 1.0 is "1"; how long numbers are written in JavaScript is not known here.
    number = all_of([has_elements_of(name, "number"), f"NOT ({matches(joined, _ODD)})"])
    ways.append((number, shown))
    sign = _SQL.get(operator, operator)
    found = [(guard, compare(text, sign, value)) for guard, text in ways]
    return Answer(
        any_of(all_of([guard, holds]) for guard, holds in found),
        any_of(all_of([guard, f"NOT ({holds})"]) for guard, holds in found),
    )


def _strictly(values: list[Any]) -> _Test:
    """``===`` to one of these constants; no list or object is."""

    def scalar(name: str, kind: Kind) -> Answer:
        own = [each for each in values if each is not None and kind_of(each) == kind]
        if not own:
            return NEVER
        found = is_one_of(name, own)
        return Answer(found, f"NOT ({found})")

    return _Test(
        lambda other: any(is_strictly_equal(other, each) for each in values),
        scalar,
        lambda name: Answer("FALSE", is_list(name)),
        of_object=False,
    )


# Comparisons

_COMPARISONS = frozenset(("==", "===", "!=", "!==", "<", "<=", ">", ">="))


def _comparison(name: str, arguments: list[Any], places: list[Path], at: Path) -> Answer:
    if name in ("<", "<=") and len(arguments) == 3:
        first = _comparison(name, arguments[:2], places, at)
        return both([first, _comparison(name, arguments[1:], places[1:], at)])
    _expect(len(arguments) == 2, f"{name} takes two arguments", at)
    if name in ("!=", "!=="):
        return negated(_comparison(name.replace("!", "=", 1), arguments, places, at))
    left, right = arguments
    if _is_variable(right) and not _is_variable(left):
        name, left, right = _FLIPPED.get(name, name), right, left
        places = [places[1], places[0]]
    value = _literal(right, places[1])
    test = _strictly([value]) if name == "===" else _compared_with(name, value)
    if not _is_variable(left):
        return _decided(test.of(_literal(left, places[0])))
    return _subject(_operation(left)[1], places[0]).answer(test)  # type: ignore[index]


def _in(arguments: list[Any], places: list[Path], at: Path) -> Answer:
    _expect(len(arguments) == 2, "in takes two arguments", at)
    needle, haystack = arguments
    if _is_variable(needle):
        if not isinstance(haystack, list):
            refuse("a variable can be in a list of constants", places[1])
        values = [_literal(each, (*places[1], place)) for place, each in enumerate(haystack)]
        return _subject(_operation(needle)[1], places[0]).answer(_strictly(values))  # type: ignore[index]
    value = _literal(needle, places[0])
    if isinstance(haystack, list):
        values = [_literal(each, (*places[1], place)) for place, each in enumerate(haystack)]
        return _decided(any(is_strictly_equal(value, each) for each in values))
    if not _is_variable(haystack):
        text = _literal(haystack, places[1])
        return _decided(isinstance(text, str) and text != "" and text_of(value) in text)
    return _subject(_operation(haystack)[1], places[1]).answer(_holding(value))  # type: ignore[index]


def _holding(value: Any) -> _Test:
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

    return _Test(holds, scalar, of_list, of_object=False)


# Lists


def _quantified(name: str, arguments: list[Any], places: list[Path], at: Path) -> Answer:
    _expect(len(arguments) == 2, f"{name} takes two arguments", at)
    _expect(_is_variable(arguments[0]), "a variable is expected, which holds a list", places[0])
    subject = _subject(_operation(arguments[0])[1], places[0])  # type: ignore[index]
    _expect(subject.default is None, "a list without a default is expected", places[0])
    if name == "all":
        exception = _some(subject, arguments[1], places[1], is_negated=True)
        size = f"array_size({subject.name})"
        plain = [is_no_list(each) for each in subject.around]
        yes = all_of([*plain, f"{size} > 0", exception.no])
        return Answer(yes, any_of([f"{size} = 0", exception.yes, _no_list(subject)]))
    found = _some(subject, arguments[1], places[1], is_negated=False)
    return found if name == "some" else negated(found)


def _no_list(subject: _Subject) -> str:
    return any_of([is_no_list(subject.name), *map(is_list, subject.around)])


def _some(subject: _Subject, logic: Any, at: Path, *, is_negated: bool) -> Answer:
    """Some element is truthy in the body, told for each kind that all elements may have.

    If the body is about a field of the elements, their fields are a list of their own.
    """
    fields = _fields_in(logic)
    if len(fields) > 1:
        refuse("inside of some, all and none, one field of the elements is supported", at)
    field = fields.pop() if fields else ""
    if not isinstance(field, str) or any(each in _INHERITED for each in field.split(".")):
        refuse(f"{brief(field)} is no name of a field that is supported", at)
    name = f"{subject.name}.{path(*parts_of(field))}" if field else subject.name
    body, ways = _Body(field), []
    for kind in _SCALARS:
        answer = body.of_kind(logic, at, kind)
        condition = answer.no if is_negated else answer.yes
        if condition == "TRUE":
            condition = "v IS NOT NULL"
        if condition != "FALSE":
            ways.append(all_of([has_elements_of(name, kind), f"exists({name}, v -> {condition})"]))
    if body.of_nothing(logic, at) is not is_negated:
        ways.append(f"exists({name}, v -> v IS NULL)")
    plain = [is_no_list(each) for each in subject.around]
    scalars = [has_elements_of(name, kind) for kind in _SCALARS]
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
        if _is_variable(each):
            name = each["var"]
            found.add(name if isinstance(name, str) else brief(name))
        elif isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return found


class _Body:
    """What is asked of each element, which ``{"var": field}`` stands for."""

    def __init__(self, field: str) -> None:
        self._variable = {"var": field}

    def of_kind(self, logic: Any, at: Path, kind: Kind) -> Answer:
        """What it says of elements ``v`` of a kind."""
        return self._condition(logic, at, lambda test: test("v", kind))

    def of_nothing(self, logic: Any, at: Path) -> bool:
        """What it says of an element that is NULL."""
        return self._condition(logic, at, lambda test: _decided(test.of(None))) == ALWAYS

    def _condition(self, logic: Any, at: Path, ask: Callable[[_Test], Answer]) -> Answer:
        found = _operation(logic)
        if found is None:
            return _decided(truthy(logic))
        if logic == self._variable:
            return ask(_truth)
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

    def _test(self, name: str, arguments: list[Any], at: Path) -> _Test:
        left, right = arguments
        if name == "in" and left == self._variable and isinstance(right, list):
            return _strictly([_literal(each, at) for each in right])
        if name == "in" and right == self._variable:
            return _holding(_literal(left, at))
        if right == self._variable:
            name, left, right = _FLIPPED.get(name, name), right, left
        if left != self._variable or name == "in":
            refuse('an element, {"var": ""}, and a constant are expected', at)
        value = _literal(right, at)
        return _strictly([value]) if name == "===" else _compared_with(name, value)


def _missing(name: str, arguments: list[Any], at: Path) -> Answer:
    least, names = 0, arguments
    if name == "missing_some":
        is_call = len(arguments) == 2 and kind_of(arguments[0]) == "number"
        _expect(is_call and isinstance(arguments[1], list), "a number and names are expected", at)
        least, names = math.ceil(arguments[0]), arguments[1]
    elif arguments and isinstance(arguments[0], list):
        names = arguments[0]
    _expect(all(isinstance(each, str) for each in names), "names are expected", at)
    empty = _strictly([None, ""])
    gone = [_subject([each], at).answer(empty) for each in names]
    if name == "missing":
        return either(gone)
    enough = at_least(least, [negated(each) for each in gone])
    return both([either(gone), negated(enough)])
