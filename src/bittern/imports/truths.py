"""Conditions that say when they are TRUE and when they are FALSE: what is neither is unknown.

With both, NOT swaps the two, and AND and OR of either are AND and OR, so that no negation is left
around anything. Of a two-valued system each condition is either. O(nodes), twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from bittern.imports import conditions as say
from bittern.imports.constructs import said


class Condition:
    """What is TRUE, FALSE or unknown."""

    def true(self) -> str:
        """When it is TRUE."""
        raise NotImplementedError

    def false(self) -> str:
        """When it is FALSE."""
        raise NotImplementedError


@dataclass(frozen=True)
class Decided(Condition):
    """TRUE or FALSE."""

    value: bool

    def true(self) -> str:
        """When it is TRUE."""
        return say.TRUE if self.value else say.FALSE

    def false(self) -> str:
        """When it is FALSE."""
        return say.FALSE if self.value else say.TRUE


@dataclass(frozen=True)
class Opposite(Condition):
    """The opposite."""

    operand: Condition

    def true(self) -> str:
        """When it is TRUE."""
        return self.operand.false()

    def false(self) -> str:
        """When it is FALSE."""
        return self.operand.true()


@dataclass(frozen=True)
class Both(Condition):
    """AND, or OR where only one has to hold."""

    operands: tuple[Condition, ...]
    either: bool = False

    def true(self) -> str:
        """When it is TRUE."""
        parts = (each.true() for each in self.operands)
        return say.any_of(parts) if self.either else say.all_of(parts)

    def false(self) -> str:
        """When it is FALSE."""
        parts = (each.false() for each in self.operands)
        return say.all_of(parts) if self.either else say.any_of(parts)


@dataclass(frozen=True)
class TwoTexts(Condition):
    """Two texts."""

    holds: str
    fails: str

    def true(self) -> str:
        """When it is TRUE."""
        return self.holds

    def false(self) -> str:
        """When it is FALSE."""
        return self.fails


@dataclass(frozen=True)
class Told(Condition):
    """A condition, with the construct that it was made of."""

    operand: Condition
    construct: str

    def true(self) -> str:
        """When it is TRUE."""
        return said(self.operand.true(), self.construct)

    def false(self) -> str:
        """When it is FALSE."""
        return said(self.operand.false(), self.construct)
