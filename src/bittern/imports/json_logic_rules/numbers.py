"""Arithmetic of JSON Logic, case by case of what its variables hold.

JavaScript makes a number of anything, in two ways: ``-``, ``/``, ``%``, ``min`` and ``max`` as
``Number`` does, ``+`` and ``*`` as ``parseFloat``::

    value       Number     parseFloat
    5           5          5
    " 5 "       5          5
    "5 km"      NaN        5
    ""          0          NaN
    true        1          NaN
    null        0          NaN

So the value of an operand is a few *cases*, each with a condition that says when it applies: then
it is a constant, which may be NaN, or a term that is a DOUBLE. What has no case here (a list, a
text that spells an infinite number or one with a prefix such as ``0x``) has no answer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from bittern.imports.answers import Answer, bounded, is_list, is_no_list, is_object
from bittern.imports.conditions import (
    TRUE,
    all_of,
    any_of,
    constant,
    is_kind,
    is_null,
    matches,
)
from bittern.imports.json_logic_rules.javascript import (
    BLANK,
    DECIMAL,
    INFINITE,
    LEADING,
    PREFIXED,
    number_of,
    parsed_number,
)
from bittern.imports.json_logic_rules.operands import (
    Subject,
    expect,
    is_variable,
    literal,
    operation,
    subject_of,
)
from bittern.imports.json_rules import Place, refuse
from bittern.language.limits import MAX_LENGTH

#: Cases of one value.
_MAX_CASES = 256
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "!=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class NumberCase(NamedTuple):
    """Where ``when`` is TRUE, the value is a constant, or a term; ``finite`` if it surely is."""

    when: str
    value: float = math.nan
    term: str = ""
    finite: bool = True

    def is_nan(self) -> bool:
        """Whether it is no number."""
        return not self.term and math.isnan(self.value)

    def written(self) -> str:
        """The constant or the term, as a DOUBLE."""
        return self.term or constant(float(self.value))


def is_arithmetic(logic: Any) -> bool:
    """Whether it is a call of arithmetic."""
    found = operation(logic)
    return found is not None and found[0] in _ARITHMETIC


def compared_numbers(name: str, arguments: list[Any], places: list[Place]) -> Answer:
    """A comparison of which one side is arithmetic."""
    sides = [_side(name, logic, at) for logic, at in zip(arguments, places, strict=True)]
    sign = "=" if name in ("==", "===") else name
    yes: list[str] = []
    no: list[str] = []
    for left, right in product(*sides):
        when = all_of([left.when, right.when])
        if left.term or right.term:
            if left.is_nan() or right.is_nan():
                no.append(when)
                continue
            yes.append(all_of([when, _written(left, sign, right)]))
            no.append(all_of([when, _written(left, _OPPOSITE[sign], right)]))
        else:
            (yes if _holds(left.value, sign, right.value) else no).append(when)
    return bounded(Answer(any_of(yes), any_of(no)))


def _written(left: NumberCase, sign: str, right: NumberCase) -> str:
    """A comparison with a term; an infinite constant, which none is written as, is beyond all."""
    if not left.term:
        left, sign, right = right, _FLIPPED[sign], left
    if right.term or math.isfinite(right.value):
        return f"{left.term} {sign} {right.written()}"
    towards, away = (">", "<=") if right.value > 0 else ("<", ">=")
    most = constant(math.copysign(sys.float_info.max, right.value))
    if sign in ("=", f"{towards}="):
        return f"{left.term} {towards} {most}"
    if sign in ("!=", away[0]):
        return f"{left.term} {away} {most}"
    return "FALSE" if sign == towards else TRUE


def is_nonzero(logic: Any, at: Place) -> Answer:
    """Whether arithmetic is truthy: neither 0 nor NaN."""
    yes: list[str] = []
    no: list[str] = []
    for case in _computed(logic, at):
        if case.term:
            yes.append(all_of([case.when, f"{case.term} != 0"]))
            no.append(all_of([case.when, f"{case.term} = 0"]))
        else:
            (no if case.is_nan() or case.value == 0 else yes).append(case.when)
    return bounded(Answer(any_of(yes), any_of(no)))


def _holds(left: float, sign: str, right: float) -> bool:
    if sign == "=":
        return left == right
    if sign in ("<", "<="):
        return left < right if sign == "<" else left <= right
    return left > right if sign == ">" else left >= right


def _side(name: str, logic: Any, at: Place) -> list[NumberCase]:
    """One side of a comparison as a number."""
    if is_arithmetic(logic):
        return _computed(logic, at)
    if is_variable(logic):
        subject = subject_of(operation(logic)[1], at)  # type: ignore[index]
        if name == "===":
            return _merged(_strict(subject))
        # Only an order makes a number of NULL; it equals none.
        return _merged(_number(subject, nothing=math.nan if name == "==" else 0.0))
    value = literal(logic, at)
    is_equal = name == "===" and (isinstance(value, bool | str) or value is None)
    if is_equal or (name == "==" and value is None):
        return [NumberCase(TRUE)]  # equal to no number, as NaN is
    return [NumberCase(TRUE, float(number_of(value)))]


# Variables


def _number(subject: Subject, nothing: float = 0.0) -> Iterator[NumberCase]:
    """What ``Number`` makes of it; ``nothing`` is what NULL is."""
    name = subject.name
    yield from _guarded(subject, _numbers_and_texts(name, DECIMAL))
    known = [BLANK, DECIMAL, PREFIXED, *INFINITE]
    texts = [
        NumberCase(matches(name, BLANK), 0),
        NumberCase(all_of(f"NOT ({matches(name, each)})" for each in known)),
        NumberCase(f"{name} = TRUE", 1),
        NumberCase(f"{name} = FALSE", 0),
        NumberCase(is_object(name)),
    ]
    yield from _guarded(subject, texts)
    yield from _absent(subject, lambda value: nothing if value is None else number_of(value))


def _parsed(subject: Subject) -> Iterator[NumberCase]:
    """What ``parseFloat`` makes of it: the number that a text begins with."""
    name = subject.name
    yield from _guarded(subject, _numbers_and_texts(name, LEADING))
    known = [LEADING, *(each.removesuffix("$") for each in INFINITE)]
    others = [
        NumberCase(all_of(f"NOT ({matches(name, each)})" for each in known)),
        NumberCase(is_kind(name, "boolean")),
        NumberCase(is_object(name)),
    ]
    yield from _guarded(subject, others)
    yield from _absent(subject, parsed_number)


def _strict(subject: Subject) -> Iterator[NumberCase]:
    """For ``===``: only a number equals one."""
    name = subject.name
    yield from _guarded(subject, [_plain_number(name)])
    others = [is_kind(name, "string"), is_kind(name, "boolean"), is_object(name), is_list(name)]
    yield from _guarded(subject, [NumberCase(any_of(others))])
    yield from _absent(subject, lambda value: number_of(value) if _is_number(value) else math.nan)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain_number(name: str) -> NumberCase:
    return NumberCase(is_kind(name, "number"), term=f"CAST({name} AS DOUBLE)")


def _numbers_and_texts(name: str, pattern: str) -> list[NumberCase]:
    """A number, or the text that spells one as the pattern's first group."""
    spelled = f"TRY_CAST(regexp_extract({name}, {constant(pattern)}, 1) AS DOUBLE)"
    is_text = all_of([matches(name, pattern), f"abs({spelled}) <= {constant(sys.float_info.max)}"])
    return [_plain_number(name), NumberCase(is_text, term=spelled)]


def _guarded(subject: Subject, cases: Iterable[NumberCase]) -> Iterator[NumberCase]:
    """Nothing lies inside of a list, for JavaScript; here the list itself would."""
    plain = [is_no_list(each) for each in subject.around]
    for case in cases:
        yield case._replace(when=all_of([*plain, case.when]))


def _absent(subject: Subject, convert: Callable[[Any], float]) -> Iterator[NumberCase]:
    """Where there is nothing: NULL, or what the default is where it is missing."""
    name, around = subject.name, subject.around
    gone = [is_list(each) for each in around]
    if subject.default is None:
        yield NumberCase(any_of([is_null(name), *gone]), convert(None))
        return
    plain = [is_no_list(each) for each in around]
    outside = [f"{around[-1]} IS NOT NULL"] if around else []
    missing = [f"{name} IS MISSING", *gone, *([is_null(around[-1])] if around else [])]
    nulls = all_of([is_null(name), f"{name} IS NOT MISSING", *plain, *outside])
    yield NumberCase(nulls, convert(None))
    yield NumberCase(any_of(missing), convert(subject.default))


# Arithmetic


def _computed(logic: Any, at: Place) -> list[NumberCase]:
    """The cases of a call of arithmetic."""
    name, arguments = operation(logic)  # type: ignore[misc]
    at = (*at, name)
    least, most = _ARITHMETIC[name]
    expect(least <= len(arguments) <= most, f"{name} takes other numbers of arguments", at)
    places = [(*at, place) for place in range(len(arguments))]
    found = [_operand(name, each, own) for each, own in zip(arguments, places, strict=True)]
    if name == "-" and len(found) == 1:
        found.insert(0, [NumberCase(TRUE, 0.0)])
    result = found[0]
    for other in found[1:]:
        result = _combined(name, result, other)
        if len(result) > _MAX_CASES or sum(len(each.when) for each in result) > MAX_LENGTH:
            refuse("arithmetic of so many variables is too long when all cases are told", at)
    return result


def _operand(name: str, logic: Any, at: Place) -> list[NumberCase]:
    if is_arithmetic(logic):
        return _computed(logic, at)
    convert, of_variable = (parsed_number, _parsed) if name in "+*" else (number_of, _number)
    if is_variable(logic):
        return _merged(of_variable(subject_of(operation(logic)[1], at)))  # type: ignore[index]
    return [NumberCase(TRUE, float(convert(literal(logic, at))))]


def _merged(cases: Iterable[NumberCase]) -> list[NumberCase]:
    """Cases of one constant are one."""
    found: dict[str, NumberCase] = {}
    for case in cases:
        key = case.term or repr(case.value)
        if case.when == "FALSE":
            continue
        before = found.get(key)
        when = case.when if before is None else any_of([before.when, case.when])
        found[key] = case._replace(when=when)
    return list(found.values())


def _combined(name: str, lefts: list[NumberCase], rights: list[NumberCase]) -> list[NumberCase]:
    """An operator of two operands."""
    found = []
    nans = [any_of(c.when for c in side if c.is_nan()) for side in (lefts, rights)]
    numbers = [[c for c in side if not c.is_nan()] for side in (lefts, rights)]
    known = [any_of(c.when for c in side) for side in (lefts, rights)]
    others = any_of(c.when for c in numbers[0])
    is_nan = any_of([all_of([nans[0], known[1]]), all_of([others, nans[1]])])
    found.append(NumberCase(is_nan))
    for left, right in product(*numbers):
        found += _of_two(name, left, right)
    return _merged(found)


def _of_two(name: str, left: NumberCase, right: NumberCase) -> Iterator[NumberCase]:
    """What it makes of two cases that are not NaN."""
    when = all_of([left.when, right.when])
    if not left.term and not right.term:
        yield NumberCase(when, _FOLDED[name](left.value, right.value))
        return
    if math.inf in {abs(each.value) for each in (left, right) if not each.term}:
        yield from _with_infinity(name, when, left, right)
        return
    if name in "/%" and (right.term or right.value == 0):
        zero = all_of([when, f"{right.term} = 0"]) if right.term else when
        yield from _by_zero(name, zero, left)
        if not right.term:
            return
        when = all_of([when, f"{right.term} != 0"])
    term = _WRITTEN[name].format(left.written(), right.written())
    n_finite = left.finite + right.finite
    if n_finite == 2 or name in ("min", "max") or (n_finite and name in "+-/"):
        finite = n_finite == 2 and name in ("%", "min", "max")
        yield NumberCase(when, term=term, finite=finite)
        return
    yield NumberCase(all_of([when, f"NOT (isnan({term}))"]), term=term, finite=False)
    yield NumberCase(all_of([when, f"isnan({term})"]))


def _with_infinity(
    name: str, when: str, left: NumberCase, right: NumberCase
) -> Iterator[NumberCase]:
    """A term, which is not NaN, beside an infinite constant."""
    term, infinite = (left, right.value) if left.term else (right, left.value)
    if name in ("min", "max"):
        is_term = (infinite > 0) == (name == "min")
        yield term._replace(when=when) if is_term else NumberCase(when, infinite)
    elif not term.finite:
        for each in _by_size(term, when):
            yield from _of_two(name, *((each, right) if left.term else (left, each)))
    elif name in "+-":
        yield NumberCase(when, -infinite if name == "-" and left.term else infinite)
    elif name == "%":
        yield NumberCase(when, term=left.term)  # an infinite number has no remainder: NaN
    elif name == "/" and left.term:
        yield NumberCase(when, 0.0)
    else:
        at_zero = math.nan if name == "*" else infinite
        for sign, value in ((">", infinite), ("<", -infinite), ("=", at_zero)):
            yield NumberCase(all_of([when, f"{term.term} {sign} 0"]), value)


def _by_size(case: NumberCase, when: str) -> Iterator[NumberCase]:
    """A term that may be infinite, as a finite one and two constants."""
    most = constant(sys.float_info.max)
    is_finite = all_of([when, f"{case.term} >= -{most}", f"{case.term} <= {most}"])
    yield NumberCase(is_finite, term=case.term)
    yield NumberCase(all_of([when, f"{case.term} > {most}"]), math.inf)
    yield NumberCase(all_of([when, f"{case.term} < -{most}"]), -math.inf)


def _by_zero(name: str, when: str, left: NumberCase) -> Iterator[NumberCase]:
    if name == "%":
        yield NumberCase(when)
    elif left.term:
        yield NumberCase(all_of([when, f"{left.term} > 0"]), math.inf)
        yield NumberCase(all_of([when, f"{left.term} < 0"]), -math.inf)
        yield NumberCase(all_of([when, f"{left.term} = 0"]))
    else:
        yield NumberCase(when, _divided(left.value, 0.0))


def _divided(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


def _remainder(left: float, right: float) -> float:
    return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)


_FOLDED: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": _remainder,
    "min": min,
    "max": max,
}
_WRITTEN = {
    "+": "({} + {})",
    "-": "({} - {})",
    "*": "({} * {})",
    "/": "({} / nullif({}, 0e0))",
    "%": "({} % nullif({}, 0e0))",
    "min": "least({}, {})",
    "max": "greatest({}, {})",
}
#: How many arguments each takes.
_ARITHMETIC = {
    "+": (1, 16),
    "*": (2, 16),
    "-": (1, 2),
    "/": (2, 2),
    "%": (2, 2),
    "min": (1, 16),
    "max": (1, 16),
}
