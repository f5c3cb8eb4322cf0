"""Conditions of a JMS selector: when each is TRUE, and when it is FALSE.

What is neither is unknown. Both are text in which nothing is negated but comparisons of one kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from bittern.imports import conditions as say
from bittern.imports.answers import Answer, bounded

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_KINDS: tuple[say.Kind, ...] = ("number", "string", "boolean")


# Values


@dataclass(frozen=True)
class JmsConstant:
    """A number, a string or a Boolean."""

    value: Any


@dataclass(frozen=True)
class Property:
    """A property, by its quoted name."""

    name: str


@dataclass(frozen=True)
class Arithmetic:
    """What arithmetic makes of properties, all of which must be numbers."""

    text: str
    properties: tuple[str, ...]


Operand: TypeAlias = JmsConstant | Property | Arithmetic


def text_of(value: Operand) -> str:
    """The value as text of an expression."""
    return (
        say.constant(value.value)
        if isinstance(value, JmsConstant)
        else (value.name if isinstance(value, Property) else value.text)
    )


# Conditions


def same(left: Answer, right: Answer) -> Answer:
    """Two conditions are both TRUE or both FALSE."""
    return bounded(
        Answer(
            say.any_of([say.all_of([left.yes, right.yes]), say.all_of([left.no, right.no])]),
            say.any_of([say.all_of([left.yes, right.no]), say.all_of([left.no, right.yes])]),
        )
    )


def holds(name: str) -> Answer:
    """A property alone: TRUE is TRUE, any other value is FALSE."""
    others = (say.is_kind(name, kind) for kind in _KINDS if kind != "boolean")
    fails = say.any_of([say.compare(name, "=", False), *others])
    return Answer(say.compare(name, "=", True), fails)


def compared(left: Operand, operator: str, right: Operand) -> Answer:
    """Two values, compared; of two kinds they are neither equal nor in order."""
    differ = operator == "!="
    opposite = _compared(left, _OPPOSITE[operator], right, differ=not differ)
    return Answer(_compared(left, operator, right, differ=differ), opposite)


def _compared(left: Operand, operator: str, right: Operand, *, differ: bool) -> str:
    """The comparison, or ``differ``: what is of two kinds fulfils it as well."""
    if isinstance(left, JmsConstant) and isinstance(right, JmsConstant):
        if say.kind_of(left.value) != say.kind_of(right.value):
            return say.TRUE if differ else say.FALSE
        return f"({text_of(left)} {operator} {text_of(right)})"
    if isinstance(left, JmsConstant):
        left, right, operator = right, left, _FLIPPED[operator]
    kinds = [
        say.is_kind(name, "number")
        for name in dict.fromkeys(_properties(left) + _properties(right))
    ]
    if not isinstance(right, JmsConstant) and isinstance(left, Property):
        # Two terms of different kinds are cast, as Spark does; JMS never casts.
        kinds = [
            say.any_of(say.all_of([_is_of(left, kind), _is_of(right, kind)]) for kind in _KINDS)
        ]
    elif isinstance(right, Property):
        kinds.append(say.is_kind(right.name, "number"))
    found = say.all_of([*kinds, f"({text_of(left)} {operator} {text_of(right)})"])
    return say.any_of([found, *_different(left, right)]) if differ else found


def _properties(value: Operand) -> tuple[str, ...]:
    return value.properties if isinstance(value, Arithmetic) else ()


def _different(left: Operand, right: Operand) -> Iterator[str]:
    """Both sides have values, of two kinds."""
    for kind in _KINDS:
        own = _is_of(left, kind)
        other = say.any_of(_is_of(right, each) for each in _KINDS if each != kind)
        yield say.all_of([own, other])


def properties_in(value: Operand) -> tuple[str, ...]:
    """The properties that a part of a sum has."""
    return (value.name,) if isinstance(value, Property) else _properties(value)


def _is_of(value: Operand, kind: say.Kind) -> str:
    if isinstance(value, Property):
        return say.is_kind(value.name, kind)
    if isinstance(value, JmsConstant):
        return say.TRUE if say.kind_of(value.value) == kind else say.FALSE
    if kind != "number":
        return say.FALSE
    return say.all_of(say.is_kind(name, "number") for name in value.properties)


def among(name: str, values: Iterable[str]) -> Answer:
    """IN: what is no string is unknown."""
    found = say.is_one_of(name, values)
    return Answer(found, f"NOT ({found})")


def like(name: str, pieces: Iterable[Any]) -> Answer:
    """LIKE: what is no string is FALSE."""
    found = say.like(name, *pieces)
    others = (say.is_kind(name, kind) for kind in _KINDS if kind != "string")
    return Answer(found, say.any_of([f"NOT ({found})", *others]))


def property_is_null(name: str) -> Answer:
    """A property is NULL; never unknown."""
    return Answer(say.is_null(name), f"{name} IS NOT NULL")
