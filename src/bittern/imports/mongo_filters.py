"""Filters of MongoDB's query language.

::

    {"price": {"$lt": 10}, "tags": {"$ne": "sold"}}

    (price < 10 OR a list that has some element < 10) AND (tags is no 'sold', no list with it, ...)

Values of different kinds are not compared. A list stands for each of its elements, under negations
too: ``$ne``, ``$nin``, ``$not`` and ``$nor`` are the opposites of what they negate, and so hold for
what is missing. ``null`` equals what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bittern.errors import RuleError, brief
from bittern.imports.answers import (
    ALWAYS,
    NEVER,
    Answer,
    ListPaths,
    any_value,
    both,
    either,
    is_list,
    is_no_list,
    is_not_true,
    is_plain_list,
    negated,
    told,
    written,
)
from bittern.imports.conditions import (
    TRUE,
    Kind,
    all_of,
    any_of,
    compare,
    constant,
    has_element,
    has_elements_of,
    is_kind,
    is_missing,
    is_null,
    is_one_of,
    kind_of,
    matches,
    parts_of,
    path,
    some_element,
)
from bittern.imports.json_rules import Place, place_of, read_json, refuse
from bittern.imports.regexes import from_pcre

_ORDER = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_SCALARS: tuple[Kind, ...] = ("number", "string", "boolean")
_TYPES: dict[Any, Kind] = {
    "number": "number",
    "string": "string",
    2: "string",
    "bool": "boolean",
    8: "boolean",
}
_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": float,
}


def mongo(rule: Any, *, lists: Collection[str] | None = None) -> str:
    """The expression of a filter, in text or as the object.

    ``lists`` are the dotted paths that may hold a list; without it any may.
    """
    return written(_filter(read_json(rule), (), ListPaths(lists)))


def _filter(found: Any, at: Place, lists: ListPaths) -> Answer:
    if not isinstance(found, dict):
        refuse("a filter must be an object", at)
    return both(_entry(key, value, (*at, key), lists) for key, value in found.items())


def _entry(key: str, value: Any, at: Place, lists: ListPaths) -> Answer:
    if key == "$comment":
        return ALWAYS
    if key in ("$and", "$or", "$nor"):
        if not isinstance(value, list) or not value:
            refuse(f"{key} takes a list of filters, with one at least", at)
        answers = [_filter(each, (*at, place), lists) for place, each in enumerate(value)]
        return both(answers) if key == "$and" else _or(answers, is_negated=key == "$nor")
    if key.startswith("$"):
        refuse(f"{brief(key)} is not supported", at)
    try:
        return told(_Field(key, at, lists).test(value, at), {key: value})
    except RuleError as wrong:
        raise RuleError(wrong.reason, wrong.place or place_of(at)) from None


def _or(answers: list[Answer], *, is_negated: bool) -> Answer:
    found = either(answers)
    return negated(found) if is_negated else found


def _constant(value: Any, at: Place) -> Any:
    """A number, a text, a Boolean or None, which may be in extended JSON."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, text),) = value.items()
        if name in _NUMBERS:
            return _number(name, text, at)
    if value is not None and kind_of(value) == "container":
        refuse("a number, a text, a Boolean or null is expected", at)
    return value


def _number(name: str, text: Any, at: Place) -> Any:
    """A number of extended JSON, which writes it as a text."""
    try:
        number = _NUMBERS[name](text) if isinstance(text, str) and "_" not in text else None
    except ValueError:
        number = None
    if number is None or number != number or number in (math.inf, -math.inf):  # noqa: PLR0124 (NaN)
        refuse(f"{brief(text)} is no number that an expression can have, as a text", at)
    return number


class _Field:
    """The tests of one field."""

    def __init__(self, field: str, at: Place, lists: ListPaths) -> None:
        parts = parts_of(field)
        for part in parts:
            if part.isdecimal():
                refuse(f"{brief(field)} asks for one element of a list: not supported", at)
            if part.startswith("$"):
                refuse(f"{brief(part)} is not the name of a field", at)
        self._name = path(*parts)
        self._may_be_list = lists.may_hold(parts)
        #: What is on the way there.
        self._around = [path(*parts[:length]) for length in range(1, len(parts))]

    # A whole condition on the field

    def test(self, value: Any, at: Place) -> Answer:
        """What stands behind the field: a constant or operators."""
        if not isinstance(value, dict) or (len(value) == 1 and next(iter(value)) in _NUMBERS):
            return self._equals(_constant(value, at))
        if not value or not all(key.startswith("$") for key in value):
            refuse("equality with an object is not supported; name its fields: a.b", at)
        if "$options" in value and "$regex" not in value:
            refuse("$options without $regex", at)
        found = []
        for operator, operand in value.items():
            if operator == "$options":
                continue
            if operator == "$regex":
                found.append(self._regex(operand, value.get("$options", ""), (*at, operator)))
            else:
                found.append(self._operator(operator, operand, (*at, operator)))
        return both(found)

    def _operator(self, operator: str, operand: Any, at: Place) -> Answer:
        if operator in ("$eq", "$ne"):
            found = self._equals(_constant(operand, at))
            return negated(found) if operator == "$ne" else found
        if operator in ("$in", "$nin", "$all"):
            if not isinstance(operand, list):
                refuse("a list is expected", at)
            return self._list_operator(operator, operand, at)
        if operator in _ORDER:
            return self._order(operator, _constant(operand, at), at)
        if operator == "$not":
            if not isinstance(operand, dict):
                refuse("$not takes an object with operators", at)
            if not all(key.startswith("$") for key in operand) or set(operand) & set(_NUMBERS):
                refuse("$not takes an object with operators", at)
            return negated(self.test(operand, at))
        if operator == "$exists":
            if operand not in (True, False, 0, 1):
                refuse("true or false is expected", at)
            return self._exists() if operand else negated(self._exists())
        if operator == "$size":
            return self._size(_constant(operand, at), at)
        if operator == "$mod":
            return self._modulo(operand, at)
        if operator == "$type":
            return self._type(operand, at)
        if operator == "$elemMatch":
            return self._element(operand, at)
        raise RuleError(f"{brief(operator)} is not supported", place_of(at))

    def _list_operator(self, operator: str, operand: list[Any], at: Place) -> Answer:
        if operator == "$all" and any(isinstance(each, dict) for each in operand):
            tests = [
                self.test(each, (*at, place))
                if isinstance(each, dict) and list(each) == ["$elemMatch"]
                else self._equals(_constant(each, (*at, place)))
                for place, each in enumerate(operand)
            ]
            return both(tests)
        values = [_constant(each, (*at, place)) for place, each in enumerate(operand)]
        if operator == "$all":
            return both(map(self._equals, values)) if values else NEVER
        found = self._is_in(values)
        return negated(found) if operator == "$nin" else found

    # Single tests

    def _any(
        self, kind: Kind, condition: Callable[[str], str], element: str | None = None
    ) -> Answer:
        # MongoDB looks into a list that it finds, but not into lists inside of that one. A path
        # that leads through a list finds several lists.
        return any_value(
            self._name,
            kind,
            condition,
            element=element,
            flattened=bool(self._around),
            may_be_list=self._may_be_list,
        )

    def _no_list_around(self, answer: Answer) -> Answer:
        """What is missing in a list of objects cannot be told from what is null."""
        plain = list(map(is_no_list, self._around)) if self._may_be_list else []
        return Answer(all_of([*plain, answer.yes]), all_of([*plain, answer.no]))

    def _equals(self, value: Any) -> Answer:
        return self._is_in([value])

    def _is_in(self, values: list[Any]) -> Answer:
        """The field, or an element of it, equals one of these."""
        by_kind: dict[Kind, list[Any]] = {}
        for value in values:
            if value is not None:
                by_kind.setdefault(kind_of(value), []).append(value)
        found = [
            self._any(kind, lambda each, own=own: is_one_of(each, own), self._has_one_of(own))  # type: ignore[misc]
            for kind, own in by_kind.items()
        ]
        if None in values:
            found.append(self._is_null())
        return either(found)

    def _has_one_of(self, values: list[Any]) -> str:
        if len(values) == 1:
            return has_element(self._name, values[0])
        written = dict.fromkeys(map(constant, values))
        return f"arrays_overlap({self._name}, array({', '.join(written)}))"

    def _is_null(self) -> Answer:
        """NULL or missing, or a list with NULL in it, of whatever kinds its elements are."""
        name, element = self._name, f"exists({self._name}, v -> v IS NULL)"
        if not self._may_be_list:
            return Answer(is_null(name), f"{name} IS NOT NULL")
        found = Answer(
            any_of([is_null(name), element]),
            all_of([f"{name} IS NOT NULL", is_not_true(element)]),
        )
        return self._no_list_around(found)

    def _order(self, operator: str, value: Any, at: Place) -> Answer:
        if value is None:
            refuse("null has no order", at)
        return self._any(kind_of(value), lambda each: compare(each, _ORDER[operator], value))

    def _regex(self, pattern: Any, options: Any, at: Place) -> Answer:
        if not isinstance(pattern, str) or not isinstance(options, str):
            refuse("$regex and $options are texts", at)
        found = from_pcre(pattern, options)
        return self._any("string", lambda each: matches(each, found))

    def _exists(self) -> Answer:
        name = self._name
        *_, last = ("", *self._around)
        # Inside of NULL nothing is missing in SQL; in MongoDB everything is.
        there = [f"{last} IS NOT NULL"] if last else []
        gone = [is_null(last)] if last else []
        return self._no_list_around(
            Answer(
                all_of([f"{name} IS NOT MISSING", *there]),
                any_of([is_missing(name), *gone]),
            )
        )

    def _size(self, size: Any, at: Place) -> Answer:
        if kind_of(size) != "number" or size != int(size) or size < 0:
            refuse("$size takes a number of elements", at)
        length = f"array_size({self._name})"
        found = Answer(
            f"{length} = {int(size)}", any_of([f"{length} != {int(size)}", f"{length} IS NULL"])
        )
        return self._no_list_around(found)

    def _modulo(self, operand: Any, at: Place) -> Answer:
        """The whole part of a number has a remainder, which has the number's sign."""
        expected = "$mod takes a divisor that is not 0 and a remainder, both whole numbers"
        if not isinstance(operand, list) or len(operand) != 2:
            refuse(expected, at)
        numbers = [_constant(each, at) for each in operand]
        whole = all(each is not None and kind_of(each) == "number" for each in numbers)
        if not whole or any(each != int(each) for each in numbers) or not numbers[0]:
            refuse(expected, at)
        divisor, remainder = map(constant, map(int, numbers))

        def condition(name: str) -> str:
            left = f"(TRY_CAST({name} AS BIGINT) % {divisor})"
            return all_of([is_kind(name, "number"), f"{left} = {remainder}"])

        return self._any("number", condition)

    def _type(self, operand: Any, at: Place) -> Answer:
        wanted = operand if isinstance(operand, list) else [operand]
        found = []
        for each in wanted:
            if each in ("array", 4):
                plain = Answer(is_list(self._name), is_no_list(self._name))
                found.append(self._no_list_around(plain))
            elif isinstance(each, str | int) and not isinstance(each, bool) and each in _TYPES:
                kind = _TYPES[each]
                found.append(self._any(kind, lambda name, kind=kind: is_kind(name, kind)))  # type: ignore[misc]
            else:
                refuse(f"the type {brief(each)} is not supported: number, string, bool, array", at)
        return either(found)

    # $elemMatch

    def _element(self, operand: Any, at: Place) -> Answer:
        if not isinstance(operand, dict) or not operand:
            refuse("$elemMatch takes an object with operators or fields", at)
        if all(key.startswith("$") for key in operand):
            yes = self._element_value(operand, at)
            plain = is_plain_list(self._name, flattened=True)
        else:
            yes, plain = self._element_object(operand, at)
        no = any_of([is_no_list(self._name), all_of([plain, is_not_true(yes)])])
        return self._no_list_around(Answer(yes, no))

    def _element_value(self, operand: Mapping[str, Any], at: Place) -> str:
        """Some element fulfils all of the operators, which are told for each kind of element."""
        ways = []
        for kind in _SCALARS:
            inner = [_of_element(each, value, kind, (*at, each)) for each, value in operand.items()]
            condition = all_of(inner)
            if condition == TRUE:
                condition = "v IS NOT NULL"
            if condition != "FALSE":
                ways.append(some_element(self._name, kind, lambda _, own=condition: own))  # type: ignore[misc]
        if all(_of_null(each, value) for each, value in operand.items()):
            ways.append(f"exists({self._name}, v -> v IS NULL)")
        return any_of(ways)

    def _element_object(self, operand: Mapping[str, Any], at: Place) -> tuple[str, str]:
        """Some element is an object whose fields fulfil all conditions."""
        guards, inner = [], []
        plain = [is_no_list(f"get({self._name}, 0)")]
        for key, test in operand.items():
            place = (*at, key)
            if key.startswith("$") or "." in key or key.isdecimal():
                refuse(f"{brief(key)} inside $elemMatch is not supported", place)
            tests = test if isinstance(test, dict) else {"$eq": test}
            name, field = f"{self._name}.{path(key)}", f"v.{path(key)}"
            for operator, value in tests.items():
                kind, condition = _positive(field, operator, value, (*place, operator))
                guards.append(has_elements_of(name, kind))
                inner.append(condition)
            plain.append(is_plain_list(name, flattened=True))
        yes = all_of([*guards, f"exists({self._name}, v -> {all_of(inner)})"])
        return yes, all_of(plain)


def _positive(field: str, operator: str, value: Any, at: Place) -> tuple[Kind, str]:
    """A comparison that holds for values of one kind only."""
    sign = _ORDER.get(operator, "=" if operator == "$eq" else None)
    if sign is not None and (found := _constant(value, at)) is not None:
        return kind_of(found), compare(field, sign, found)
    raise RuleError("fields in $elemMatch take $eq, $lt, $lte, $gt and $gte only", place_of(at))


def _of_element(operator: str, operand: Any, kind: Kind, at: Place) -> str:
    """What an operator says of an element ``v`` of this kind; never unknown but for NULL."""
    if operator in ("$in", "$nin"):
        if not isinstance(operand, list):
            refuse("a list is expected", at)
        values = [_constant(each, (*at, place)) for place, each in enumerate(operand)]
        own = [each for each in values if each is not None and kind_of(each) == kind]
        found = is_one_of("v", own) if own else "FALSE"
        return _opposite(found) if operator == "$nin" else found
    if operator in ("$eq", "$ne"):
        return _of_element("$in" if operator == "$eq" else "$nin", [operand], kind, at)
    if operator in _ORDER:
        value = _constant(operand, at)
        if value is None:
            refuse("null has no order", at)
        return compare("v", _ORDER[operator], value) if kind_of(value) == kind else "FALSE"
    raise RuleError(f"{brief(operator)} inside $elemMatch is not supported", place_of(at))


def _opposite(condition: str) -> str:
    return "TRUE" if condition == "FALSE" else f"NOT ({condition})"


def _of_null(operator: str, operand: Any) -> bool:
    """What an operator says of an element that is NULL."""
    if operator in ("$in", "$eq"):
        return None in (operand if operator == "$in" else [operand])
    if operator in ("$nin", "$ne"):
        return None not in (operand if operator == "$nin" else [operand])
    return False
