"""The tree of a JMS selector: each condition says when it is TRUE and when it is FALSE.

What is neither is unknown. Both are text in which nothing is negated but comparisons of one kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from bittern.imports import conditions as say
from bittern.imports.truths import Condition

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


def written(value: Operand) -> str:
    """The value as text of an expression."""
    return (
        say.constant(value.value)
        if isinstance(value, JmsConstant)
        else (value.name if isinstance(value, Property) else value.text)
    )


# Conditions: when TRUE, when FALSE


@dataclass(frozen=True)
class Same(Condition):
    """Two conditions are both TRUE or both FALSE."""

    left: Condition
    right: Condition

    def true(self) -> str:
        """When it is TRUE."""
        left, right = self.left, self.right
        both = say.all_of([left.true(), right.true()])
        return say.any_of([both, say.all_of([left.false(), right.false()])])

    def false(self) -> str:
        """When it is FALSE."""
        left, right = self.left, self.right
        first = say.all_of([left.true(), right.false()])
        return say.any_of([first, say.all_of([left.false(), right.true()])])


@dataclass(frozen=True)
class Holds(Condition):
    """A property alone: TRUE is TRUE, any other value is FALSE."""

    name: str

    def true(self) -> str:
        """When it is TRUE."""
        return say.compare(self.name, "=", True)

    def false(self) -> str:
        """When it is FALSE."""
        others = (say.is_kind(self.name, kind) for kind in _KINDS if kind != "boolean")
        return say.any_of([say.compare(self.name, "=", False), *others])


@dataclass(frozen=True)
class Compared(Condition):
    """Two values, compared; of two kinds they are neither equal nor in order."""

    left: Operand
    operator: str
    right: Operand

    def true(self) -> str:
        """When it is TRUE."""
        return self._compared(self.operator, differ=self.operator == "!=")

    def false(self) -> str:
        """When it is FALSE."""
        return self._compared(_OPPOSITE[self.operator], differ=self.operator != "!=")

    def _compared(self, operator: str, *, differ: bool) -> str:
        """The comparison, or ``differ``: what is of two kinds fulfils it as well."""
        left, right = self.left, self.right
        if isinstance(left, JmsConstant) and isinstance(right, JmsConstant):
            if say.kind_of(left.value) != say.kind_of(right.value):
                return say.TRUE if differ else say.FALSE
            return f"({written(left)} {operator} {written(right)})"
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
        compared = say.all_of([*kinds, f"({written(left)} {operator} {written(right)})"])
        return say.any_of([compared, *_different(left, right)]) if differ else compared


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


@dataclass(frozen=True)
class Among(Condition):
    """IN: what is no string is unknown."""

    name: str
    values: tuple[str, ...]

    def true(self) -> str:
        """When it is TRUE."""
        return say.is_one_of(self.name, self.values)

    def false(self) -> str:
        """When it is FALSE."""
        return f"NOT ({self.true()})"


@dataclass(frozen=True)
class LikePattern(Condition):
    """LIKE: what is no string is FALSE."""

    name: str
    pieces: tuple[Any, ...]

    def true(self) -> str:
        """When it is TRUE."""
        return say.like(self.name, *self.pieces)

    def false(self) -> str:
        """When it is FALSE."""
        others = (say.is_kind(self.name, kind) for kind in _KINDS if kind != "string")
        return say.any_of([f"NOT ({self.true()})", *others])


@dataclass(frozen=True)
class PropertyIsNull(Condition):
    """A property is NULL; never unknown."""

    name: str

    def true(self) -> str:
        """When it is TRUE."""
        return say.is_null(self.name)

    def false(self) -> str:
        """When it is FALSE."""
        return f"{self.name} IS NOT NULL"
