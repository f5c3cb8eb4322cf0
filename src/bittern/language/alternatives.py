"""A quantifier as alternatives, each a conjunction: the entries of the join table.

``FORALL d (P)`` means "there is no document for which P is not TRUE". So both quantifiers ask
whether some document satisfies one of a few *alternatives*; FORALL then negates the answer::

    EXISTS d (d.isbn = isbn AND (d.price > price OR d.sold))
        1   joins d.isbn = isbn, d.price > price
        2   joins d.isbn = isbn      document sold = TRUE

    FORALL d (isbn != d.isbn)             no document with
        1   joins d.isbn = isbn
        2   apart (isbn, isbn)       one of them is missing, or they are of different kinds

Negations are pushed to the leaves first, which three-valued logic allows. There, a comparison "is
not TRUE" if its opposite holds or its two sides cannot be compared. If that makes too many
alternatives, a comparison that must not be TRUE is left as it is (``denied``), which only document
sets can answer. If there are still too many, the condition is refused. O(alternatives squared x
their length).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from bittern.language.normalize import OPPOSITE, normal_form
from bittern.language.printer import print_expression
from bittern.language.syntax import (
    And,
    BooleanConstant,
    Compare,
    Expression,
    Join,
    Not,
    OfDocument,
    Or,
    Pair,
    Quantified,
    Window,
)

#: With more alternatives than this, comparisons that must not be TRUE are denied, not split in two.
MANY_ALTERNATIVES = 32
#: A condition with more alternatives than this is refused: each is looked up on its own.
MOST_ALTERNATIVES = 1024
#: Products that are this many times as long are not made to see what is left of them.
_PRODUCT = 16


class OneSided(NamedTuple):
    """An expression on one side alone, and whether it must be TRUE or must not be.

    ``compares`` is the expression itself where it is one comparison with a constant.
    """

    text: str
    holds: bool
    compares: Compare | None = None


class Apart(NamedTuple):
    """The values of two attributes cannot be compared: one is missing, or their kinds differ."""

    document: str
    event: str


class PairHolds(NamedTuple):
    """A comparison within one side, and whether it must be TRUE or must not be."""

    pair: Pair
    holds: bool


class Conjunction(NamedTuple):
    """Conditions that must all hold for one document."""

    document: tuple[OneSided, ...] = ()
    event: tuple[OneSided, ...] = ()
    joins: tuple[Join, ...] = ()
    apart: tuple[Apart, ...] = ()
    pairs: tuple[PairHolds, ...] = ()
    denied: tuple[Join, ...] = ()  # these must not be TRUE

    def sides(self) -> list[tuple[str, str]]:
        """The attributes that are compared with each other: (document's, event's)."""
        joins = [(join.document, join.event) for join in (*self.joins, *self.denied)]
        return joins + [(apart.document, apart.event) for apart in self.apart]


class JoinEntry(NamedTuple):
    """A quantified predicate: some document in the window (if negated: none) is what is asked for.

    It satisfies one of the alternatives.
    """

    negated: bool
    alternatives: tuple[Conjunction, ...]
    window: Window


_Literal: TypeAlias = tuple[str, OneSided | Join | Apart | PairHolds]
_Alternatives: TypeAlias = list[frozenset[_Literal]]


class _TooManyError(Exception):
    """There are more alternatives than wanted."""


def entry_of(quantified: Quantified) -> JoinEntry:
    """The entry of a quantified predicate; ``ValueError`` if it has too many alternatives."""
    tree = normal_form(quantified.condition)
    wanted = not quantified.universal
    try:
        found = _alternatives(tree, is_true=wanted, split=True, most=MANY_ALTERNATIVES)
    except _TooManyError:
        try:
            found = _alternatives(tree, is_true=wanted, split=False, most=MOST_ALTERNATIVES)
        except _TooManyError:
            raise ValueError(
                f"the condition of a quantifier has more than {MOST_ALTERNATIVES:,} alternatives "
                "once AND and OR are multiplied out"
            ) from None
    alternatives = tuple(sorted(map(_conjunction, found), key=repr))
    return JoinEntry(quantified.universal, alternatives, quantified.window or Window())


def _alternatives(tree: Expression, *, is_true: bool, split: bool, most: int) -> _Alternatives:
    """What makes a normal form TRUE, or not TRUE. Its depth is limited by the parser."""
    if isinstance(tree, And | Or):
        parts = (
            _alternatives(operand, is_true=is_true, split=split, most=most)
            for operand in tree.operands
        )
        if isinstance(tree, And) != is_true:
            return _pruned([alternative for part in parts for alternative in part], most)
        alternatives: _Alternatives = [frozenset()]
        for part in parts:
            if len(alternatives) * len(part) > _PRODUCT * most:
                raise _TooManyError
            alternatives = _pruned([one | other for one in alternatives for other in part], most)
        return alternatives
    if isinstance(tree, BooleanConstant):
        return [frozenset()] if (tree.value is True) == is_true else []
    return [frozenset([literal]) for literal in _literals(tree, is_true=is_true, split=split)]


def _pruned(alternatives: _Alternatives, most: int) -> _Alternatives:
    """The alternatives without those that ask for all that another asks for, and more."""
    kept: _Alternatives = []
    for alternative in sorted(set(alternatives), key=len):
        if not any(other <= alternative for other in kept):
            kept.append(alternative)
            if len(kept) > most:
                raise _TooManyError
    return kept


def _literals(leaf: Expression, *, is_true: bool, split: bool) -> list[_Literal]:
    """What one leaf asks for, as alternatives."""
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    if isinstance(inner, OfDocument):
        shown = Not(inner.predicate) if isinstance(leaf, Not) else inner.predicate
        compares = shown if isinstance(shown, Compare) else None
        return [("document", OneSided(print_expression(shown), is_true, compares))]
    if isinstance(inner, Pair):
        return [("pairs", PairHolds(inner, is_true))]
    if not isinstance(inner, Join):
        return [("event", OneSided(print_expression(leaf), is_true))]
    if is_true:
        return [("joins", inner)]
    if not split:
        return [("denied", inner)]
    opposite = Join(inner.document, OPPOSITE[inner.operator], inner.event)
    return [("joins", opposite), ("apart", Apart(inner.document, inner.event))]


def _conjunction(literals: frozenset[_Literal]) -> Conjunction:
    """The conjunction of these literals, in an order that equal ones share."""
    places: dict[str, list[object]] = {}
    for place, literal in sorted(literals, key=repr):
        places.setdefault(place, []).append(literal)
    return Conjunction(**{place: tuple(own) for place, own in places.items()})  # type: ignore[arg-type]
