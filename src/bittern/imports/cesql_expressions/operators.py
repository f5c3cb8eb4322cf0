"""Operators of CloudEvents SQL over the cases of their operands: comparisons, IN, LIKE, logic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from bittern.imports import conditions as say
from bittern.imports.cesql_expressions.values import (
    NOTHING,
    Case,
    CesqlValue,
    cast,
    joined,
    to_integer,
    truth,
)

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

# Comparisons


def compared(left: Case, operator: str, right: Case) -> str:
    """Two cases of one type apply, and their values compare so."""
    if not left.term and not right.term:
        holds = _holds(left.constant, operator, right.constant)
        return say.all_of([left.when, right.when]) if holds else say.FALSE
    if not left.term:
        left, operator, right = right, _FLIPPED[operator], left
    if left.number is not None and not right.term:
        return _number_as_text(left, left.number, operator, right)
    # Two terms of different kinds are cast, as Spark does: each has to be of its own.
    parts = [right.when] if left.plain and not right.term else [left.when, right.when]
    return say.all_of([*parts, f"{left.written()} {operator} {right.written()}"])


def _holds(left: Any, operator: str, right: Any) -> bool:
    if operator in ("=", "!="):
        return bool((left == right) == (operator == "="))
    if operator in ("<", ">="):
        return bool((left < right) == (operator == "<"))
    return bool((left <= right) == (operator == "<="))


def _number_as_text(left: Case, number: Case, operator: str, right: Case) -> str:
    """The text of an Integer beside a constant: equal to it if the constant is such a text."""
    for spelled in to_integer(right):
        if str(spelled.constant) == right.constant:
            return compared(number, operator, spelled)
    return say.all_of([left.when, right.when]) if operator == "!=" else say.FALSE


def equals(left: CesqlValue, right: CesqlValue, *, negated: bool = False) -> CesqlValue:
    """``=``: the left side is cast to the type of the right one."""
    found: dict[str, list[str]] = {"=": [], "!=": []}
    for one in right.cases:
        for other in cast(left, one.type):
            for operator, own in found.items():
                own.append(compared(other, operator, one))
    texts = all(each.type == "String" for each in right.cases)
    lacks = _union(left, right) if texts else None
    holds, fails = say.any_of(found["="]), say.any_of(found["!="])
    return truth(*((fails, holds) if negated else (holds, fails)), left, right, lacks=lacks)


def _union(*parts: CesqlValue) -> frozenset[str] | None:
    found: frozenset[str] = NOTHING
    for part in parts:
        if part.lacks is None:
            return None
        found |= part.lacks
    return found


def ordered(left: CesqlValue, operator: str, right: CesqlValue) -> CesqlValue:
    """``<`` and the like: both sides are Integers."""
    fixed = _is_constant(left) or _is_constant(right)  # then an attribute is compared as it is
    one, other = (
        list(cast(side, "Integer")) if fixed else joined(side, "Integer") for side in (left, right)
    )
    pairs = list(product(one, other))
    holds, fails = (
        say.any_of(compared(a, sign, b) for a, b in pairs)
        for sign in (operator, _OPPOSITE[operator])
    )
    return truth(holds, fails, left, right)


def among(left: CesqlValue, elements: list[CesqlValue], *, negated: bool = False) -> CesqlValue:
    """``IN``: the elements are cast to the type of the left side, one by one up to an equal one.

    An element that cannot be cast is an error, unless an equal one comes before.
    """
    holds: list[str] = []
    fails: list[str] = []
    for case in left.cases:
        yes, no = _among(case, elements)
        holds.append(yes)
        fails.append(no)
    found = (
        (say.any_of(fails), say.any_of(holds))
        if negated
        else (say.any_of(holds), say.any_of(fails))
    )
    texts = all(each.type == "String" for each in left.cases)
    constants = all(map(_is_constant, elements))
    return truth(*found, left, lacks=left.lacks if texts and constants else None)


def _is_constant(value: CesqlValue) -> bool:
    return len(value.cases) == 1 and not value.cases[0].term and value.cases[0].when == say.TRUE


def _among(case: Case, elements: list[CesqlValue]) -> tuple[str, str]:
    """When the case equals an element, and when it equals none."""
    holds, fails = say.FALSE, say.TRUE
    for run in reversed(list(_runs(case, elements))):
        yes, no = run
        holds, fails = say.any_of([yes, say.all_of([no, holds])]), say.all_of([no, fails])
    return holds, fails


def _runs(case: Case, elements: list[CesqlValue]) -> Iterator[tuple[str, str]]:
    """For each element when it is equal, and when not; constants that come together are one IN."""
    constants: list[Any] = []
    for element in elements:
        found = list(cast(element, case.type))
        fixed = len(found) == 1 and not found[0].term and found[0].when == say.TRUE
        if fixed and case.plain:
            constants.append(found[0].constant)
            continue
        if constants:
            yield _is_one_of(case, constants)
            constants = []
        yield (
            say.any_of(compared(case, "=", each) for each in found),
            say.any_of(compared(case, "!=", each) for each in found),
        )
    if constants:
        yield _is_one_of(case, constants)


def _is_one_of(case: Case, constants: list[Any]) -> tuple[str, str]:
    same = say.is_one_of(case.term, constants)
    return same, f"NOT ({same})"


def like(value: CesqlValue, pattern: str, *, negated: bool = False) -> CesqlValue:
    """``LIKE``, of the value as text."""
    pieces = _pieces(pattern)
    holds: list[str] = []
    fails: list[str] = []
    for case in cast(value, "String"):
        if not case.term:
            matched = _matches(pieces, case.constant)
            (holds if matched else fails).append(case.when)
        elif case.number is not None and not _may_be_number(pieces):
            fails.append(case.when)
        else:
            guard = [] if case.plain else [case.when]
            same = say.like(case.term, *pieces)
            holds.append(say.all_of([*guard, same]))
            fails.append(say.all_of([*guard, f"NOT ({same})"]))
    yes, no = say.any_of(holds), say.any_of(fails)
    return truth(*((no, yes) if negated else (yes, no)), value, lacks=value.lacks)


def _pieces(pattern: str) -> list[Any]:
    wild = {"%": say.ANY_TEXT, "_": say.ANY_CHARACTER}
    return [wild.get(each, each[-1]) for each in re.findall(r"\\[%_]|(?s:.)", pattern)]


def _matches(pieces: list[Any], text: str) -> bool:
    """Whether a constant is like the pattern: the places that the pattern may have come to."""
    reached = {0}
    for piece in pieces:
        if piece is say.ANY_TEXT:
            reached = set(range(min(reached, default=len(text) + 1), len(text) + 1))
        elif piece is say.ANY_CHARACTER:
            reached = {at + 1 for at in reached if at < len(text)}
        else:
            reached = {at + 1 for at in reached if text[at : at + 1] == piece}
    return len(text) in reached


def _may_be_number(pieces: list[Any]) -> bool:
    return all(not isinstance(each, str) or each in "-0123456789" for each in pieces)


# Logic: AND and OR look at the right side only if the left one does not tell


def both(left: CesqlValue, right: CesqlValue) -> CesqlValue:
    """``AND``."""
    holds = say.all_of([left.when(True), right.when(True)])
    rest = right.when(False)
    if not _is_told(left, right):
        rest = say.all_of([left.when(True), rest])
    return _logical(holds, say.any_of([left.when(False), rest]), left, right)


def either(left: CesqlValue, right: CesqlValue) -> CesqlValue:
    """``OR``."""
    fails = say.all_of([left.when(False), right.when(False)])
    rest = right.when(True)
    if not _is_told(left, right):
        rest = say.all_of([left.when(False), rest])
    return _logical(say.any_of([left.when(True), rest]), fails, left, right)


def _is_told(left: CesqlValue, right: CesqlValue) -> bool:
    """Whether the left side has no error wherever the right one has none."""
    return _is_boolean(left) and left.lacks is not None and left.lacks <= right.needs


def _is_boolean(value: CesqlValue) -> bool:
    return all(each.type == "Boolean" for each in value.cases)


def _logical(holds: str, fails: str, left: CesqlValue, right: CesqlValue) -> CesqlValue:
    alike = _is_boolean(left) and _is_boolean(right)
    found = truth(holds, fails, left, lacks=_union(left, right) if alike else None)
    return replace(found, needs=left.needs)


def differ(left: CesqlValue, right: CesqlValue) -> CesqlValue:
    """``XOR``, which looks at both sides."""
    yes, no = left.when(True), left.when(False)
    other, none = right.when(True), right.when(False)
    return truth(
        say.any_of([say.all_of([yes, none]), say.all_of([no, other])]),
        say.any_of([say.all_of([yes, other]), say.all_of([no, none])]),
        left,
        right,
    )


def negated(value: CesqlValue) -> CesqlValue:
    """``NOT``."""
    lacks = value.lacks if _is_boolean(value) else None
    return truth(value.when(False), value.when(True), value, lacks=lacks)
