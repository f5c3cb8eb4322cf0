"""Functions and arithmetic of CloudEvents SQL over the cases of their arguments.

An error (a division by zero, a place beyond a text) is a condition that the result's case lacks;
Integers have 32 bits, and what does not fit has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from bittern.errors import RuleError
from bittern.imports import conditions as say
from bittern.imports.cesql_expressions.values import (
    INTEGERS,
    MAX_CASES,
    NOTHING,
    Case,
    CesqlValue,
    Type,
    cast,
    joined,
    to_boolean,
    to_integer,
    truth,
    value_of,
)

#: What Unicode calls white space.
_SPACES = (
    "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))))
    + "\u2028\u2029\u202f\u205f\u3000"
)


def _combined(
    types: Sequence[Type], make: Callable[..., Sequence[Case]], arguments: Sequence[CesqlValue]
) -> CesqlValue:
    """What a function makes of each choice of one case per argument."""
    sides = [joined(value, kind) for value, kind in zip(arguments, types, strict=True)]
    found: list[Case] = []
    for choice in product(*sides):
        found += make(say.all_of(each.when for each in choice), *choice)
        if len(found) > MAX_CASES:
            raise RuleError(f"an expression can be of more than {MAX_CASES} kinds")
    return value_of(found, *arguments)


# Arithmetic


def _quotient(left: int, right: int) -> int | None:
    if right == 0:
        return None
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int | None:
    quotient = _quotient(left, right)
    return None if quotient is None else left - quotient * right


_OPERATORS: dict[str, tuple[Callable[[int, int], int | None], str]] = {
    "+": (lambda a, b: a + b, "try_add({}, {})"),
    "-": (lambda a, b: a - b, "try_subtract({}, {})"),
    "*": (lambda a, b: a * b, "try_multiply({}, {})"),
    "/": (_quotient, "try_cast(({} DIV nullif({}, 0)) AS INT)"),
    "%": (_remainder, "({} % nullif({}, 0))"),
}


def computed(left: CesqlValue, operator: str, right: CesqlValue) -> CesqlValue:
    """Arithmetic of two Integers."""
    fold, form = _OPERATORS[operator]

    def make(when: str, one: Case, other: Case) -> list[Case]:
        if not one.term and not other.term:
            return _constant(when, fold(one.constant, other.constant))
        return _number(when, form.format(_int(one), _int(other)))

    return _combined(("Integer", "Integer"), make, (left, right))


def _int(case: Case) -> str:
    """An Integer in 32 bits, whatever the attribute's own type."""
    return f"try_cast({case.term} AS INT)" if case.plain else case.written()


def _constant(when: str, number: int | None) -> list[Case]:
    fits = number is not None and number in INTEGERS
    return [Case("Integer", when, number)] if fits else []


def _number(when: str, term: str) -> list[Case]:
    return [Case("Integer", say.all_of([when, f"{term} IS NOT NULL"]), term=term)]


def _absolute(when: str, case: Case) -> list[Case]:
    if not case.term:
        return _constant(when, abs(case.constant))
    lowest = say.compare(case.term, "!=", INTEGERS[0])
    return [Case("Integer", say.all_of([when, lowest]), term=f"abs({case.term})")]


# Texts


def _length(when: str, case: Case) -> list[Case]:
    if not case.term:
        return [Case("Integer", when, len(case.constant))]
    return [Case("Integer", when, term=f"length({case.term})")]


def _text(form: str) -> Callable[..., list[Case]]:
    def make(when: str, *cases: Case) -> list[Case]:
        return [Case("String", when, term=form.format(", ".join(c.written() for c in cases)))]

    return make


def _end(word: str) -> Callable[..., list[Case]]:
    """LEFT and RIGHT: so many characters, or all; fewer than none is an error."""

    def make(when: str, text: Case, count: Case) -> list[Case]:
        if not count.term and count.constant < 0:
            return []
        guards = [when, f"{count.term} >= 0"] if count.term else [when]
        term = f"{word}({text.written()}, {count.written()})"
        return [Case("String", say.all_of(guards), term=term)]

    return make


def _substring(when: str, text: Case, place: Case, length: Case | None = None) -> list[Case]:
    """From a place on, which 0 is for nothing; a place outside or a negative length is an error."""
    if length is not None and not length.term and length.constant < 0:
        return []
    if length is not None and length.term:
        when = say.all_of([when, f"{length.term} >= 0"])
    arguments = [each.written() for each in (text, place, length) if each is not None]
    found = Case("String", when, term=f"substring({', '.join(arguments)})")
    nothing = Case("String", when, "")
    size = f"length({text.written()})"
    if not place.term:
        if place.constant == 0:
            return [nothing]
        inside = f"{size} >= {abs(place.constant)}"
        return [Case("String", say.all_of([when, inside]), term=found.term)]
    outside = [f"{place.term} != 0", f"{place.term} <= {size}", f"{place.term} >= (0 - {size})"]
    return [
        Case("String", say.all_of([when, f"{place.term} = 0"]), ""),
        Case("String", say.all_of([when, *outside]), term=found.term),
    ]


# Casts


def _is(to: Callable[[Case], Any], value: CesqlValue) -> CesqlValue:
    """Whether each case can be cast."""
    holds: list[str] = []
    fails: list[str] = []
    for case in value.cases:
        own = list(to(case))
        holds += [each.when for each in own]
        if case.type == "String" and not case.term:
            fails += [] if own else [case.when]
        elif case.type == "String":
            fails.append(say.all_of([case.when, _is_not(to, case)]))
    return truth(say.any_of(holds), say.any_of(fails), value, lacks=value.lacks)


def _is_not(to: Callable[[Case], Any], case: Case) -> str:
    if to is to_boolean:
        return f"NOT (lower({case.term}) IN ('true', 'false'))"
    digits = say.matches(case.term, r"\A[+-]?[0-9]+\z")
    too_large = say.all_of([digits, f"try_cast({case.term} AS INT) IS NULL"])
    return say.any_of([f"NOT ({digits})", too_large])


def _cast_to(kind: Type) -> Callable[[CesqlValue], CesqlValue]:
    def make(value: CesqlValue) -> CesqlValue:
        lacks = value.lacks if kind == "String" else None
        return value_of(cast(value, kind), value, lacks=lacks)

    return make


# By name


def _concat(*values: CesqlValue) -> CesqlValue:
    if not values:
        return value_of([Case("String", say.TRUE, "")], lacks=NOTHING)
    return _combined(["String"] * len(values), _text("concat({})"), values)


def _concat_ws(*values: CesqlValue) -> CesqlValue:
    return _combined(["String"] * len(values), _text("concat_ws({})"), values)


def _of(types: Sequence[Type], make: Callable[..., Sequence[Case]]) -> Callable[..., CesqlValue]:
    return lambda *values: _combined(types, make, values)


_PLACES: tuple[Type, ...] = ("String", "Integer", "Integer")
_TRIM = "btrim({}, " + say.constant(_SPACES) + ")"
#: Functions by name, with the numbers of arguments that they take.
FUNCTIONS: dict[str, tuple[range, Callable[..., CesqlValue]]] = {
    "LENGTH": (range(1, 2), _of(["String"], _length)),
    "CONCAT": (range(1 << 16), _concat),
    "CONCAT_WS": (range(1, 1 << 16), _concat_ws),
    "LOWER": (range(1, 2), _of(["String"], _text("lower({})"))),
    "UPPER": (range(1, 2), _of(["String"], _text("upper({})"))),
    "TRIM": (range(1, 2), _of(["String"], _text(_TRIM))),
    "LEFT": (range(2, 3), _of(["String", "Integer"], _end("left"))),
    "RIGHT": (range(2, 3), _of(["String", "Integer"], _end("right"))),
    "SUBSTRING": (
        range(2, 4),
        lambda *values: _combined(_PLACES[: len(values)], _substring, values),
    ),
    "ABS": (range(1, 2), _of(["Integer"], _absolute)),
    "INT": (range(1, 2), _cast_to("Integer")),
    "BOOL": (range(1, 2), _cast_to("Boolean")),
    "STRING": (range(1, 2), _cast_to("String")),
    "IS_INT": (range(1, 2), lambda value: _is(to_integer, value)),
    "IS_BOOL": (range(1, 2), lambda value: _is(to_boolean, value)),
}


def called(name: str, arguments: Sequence[CesqlValue]) -> CesqlValue:
    """A call of a function; its name in capitals."""
    if name not in FUNCTIONS:
        raise RuleError(f"there is no function {name}: one of {', '.join(sorted(FUNCTIONS))}")
    counts, make = FUNCTIONS[name]
    if len(arguments) not in counts:
        least = counts[0]
        told = f"{least} or more" if len(counts) > 100 else " or ".join(map(str, counts))
        raise RuleError(f"{name} takes {told} arguments, not {len(arguments)}")
    return make(*arguments)
