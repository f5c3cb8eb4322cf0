"""The syntax tree of an expression: frozen dataclasses, nothing else.

``price < 10 AND NOT color IN ('red', 'blue')`` is::

    And((Compare("price", "<", Literal(10)),
         Not(In("color", (Literal("red"), Literal("blue"))))))

``NOT IN``, ``NOT LIKE``, ``NOT BETWEEN``, ``IS NOT NULL`` and friends are ``Not`` of the positive
node; the printer writes them back the short way.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

#: A literal's Python value. ``None`` is NULL. Timestamps are UTC-aware datetimes.
LiteralValue: TypeAlias = int | Decimal | float | str | bool | dt.date | dt.datetime | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: its type says its kind (bool before int, datetime before date)."""

    value: LiteralValue


@dataclass(frozen=True, slots=True)
class Compare:
    """``attribute operator literal``; operator is one of ``= != < <= > >=``."""

    attribute: str
    operator: str
    operand: Literal


@dataclass(frozen=True, slots=True)
class Between:
    """``attribute BETWEEN low AND high``, both ends included."""

    attribute: str
    low: Literal
    high: Literal


@dataclass(frozen=True, slots=True)
class In:
    """``attribute IN (values)``."""

    attribute: str
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """``attribute LIKE pattern``, with the escape character resolved into ``escape``."""

    attribute: str
    pattern: str
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class Regex:
    """``attribute RLIKE pattern``: RE2 syntax, found anywhere in the value."""

    attribute: str
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """``attribute IS NULL``."""

    attribute: str


@dataclass(frozen=True, slots=True)
class BooleanConstant:
    """``TRUE``, ``FALSE`` or ``NULL`` standing as a whole condition."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Not:
    """``NOT operand``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class And:
    """``a AND b AND ...``: two or more operands."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """``a OR b OR ...``: two or more operands."""

    operands: tuple[Expression, ...]


Predicate: TypeAlias = Compare | Between | In | Like | Regex | IsNull


@dataclass(frozen=True, slots=True)
class OfDocument:
    """``d.price < 10``: a predicate on the document. Only inside a quantifier, as the next two."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Join:
    """``d.document operator event``: an attribute of the document against one of the event."""

    document: str
    operator: str
    event: str


@dataclass(frozen=True, slots=True)
class Pair:
    """``left operator right``: two attributes of the document, or two of the event."""

    of_document: bool
    left: str
    operator: str
    right: str


@dataclass(frozen=True, slots=True)
class Window:
    """Which documents a quantifier ranges over.

    The last ``count``, or those whose time ``of`` is at most ``microseconds`` before the event's;
    with ``per``, only documents that have the event's values in these attributes.
    """

    count: int | None = None
    microseconds: int | None = None
    of: str | None = None
    per: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantified:
    """``EXISTS d (condition)`` or, if universal, ``FORALL d (condition)``; always TRUE or FALSE.

    The leaves of the condition are predicates (on the event), OfDocument, Join, Pair and Constant.
    """

    universal: bool
    condition: Expression
    window: Window | None = None


Leaf: TypeAlias = Predicate | OfDocument | Join | Pair | Quantified | BooleanConstant
Expression: TypeAlias = Leaf | Not | And | Or
