"""What a subscription demands of the earlier documents, whatever the next event is.

::

    price < 10 AND isbn IN ('x', 'y')
      AND EXISTS d (d.isbn = isbn AND d.price <= price AND (d.shop = 'a' OR d.rank > rank))

    some document:  isbn IN ('x', 'y') AND price < 10 AND (shop = 'a' OR rank IS NOT NULL)

Until a document satisfies that, the subscription cannot match, and nothing needs to be looked up
for it; the condition is an ordinary expression over the attributes of a document, so an ordinary
index tells for each new document which conditions it satisfies. A condition on a document alone
stands as it is. A comparison with the event demands that the document has the attribute, and more
where constants bound the event's side, ``(d.x OP1 a) AND (a OP2 c)``::

    a OP2 c     d.x = a    d.x != a    d.x < a    d.x <= a    d.x > a    d.x >= a
    a =  c      x =  c     x != c      x < c      x <= c      x > c      x >= c
    a != c      x != c       -           -          -           -          -
    a <  c      x <  c       -         x < c      x <  c        -          -
    a <= c      x <= c       -         x < c      x <= c        -          -
    a >  c      x >  c       -           -          -         x > c      x >  c
    a >= c      x >= c       -           -          -         x > c      x >= c

Several constants on ``a`` (an interval, a list, values left out) are intersected first; then only
the ends of what is left matter, and whether they belong to it: ``d.x < a`` asks for an x below the
upper end, ``d.x != a`` excludes a value if it is all that is left, ``d.x = a`` asks of x whatever
is asked of ``a``, patterns included. Where OP2 is ``=`` the demand says all that the comparison
does and could stand in its place; elsewhere it is weaker.

Only what must hold counts: conjuncts at the top, and inside a quantifier AND, and OR where each
branch demands something. A negated quantifier demands nothing that can be written: a document that
lacks ``x`` satisfies neither ``x < 5`` nor its opposite. EXISTS within a window is EXISTS over all
documents too; FORALL within a window may range over none. O(nodes + constants sorted).
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from bittern.errors import LimitError
from bittern.language.limits import MAX_DEPTH
from bittern.language.literals import kind_of
from bittern.language.normalize import ALWAYS, NEVER, normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.syntax import (
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Literal,
    Not,
    OfDocument,
    Or,
    Pair,
    Predicate,
    Quantified,
    Window,
)
from bittern.language.trees import map_leaves, walk
from bittern.model.numbers import exact

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Constraint(NamedTuple):
    """The subscription cannot match unless some document (universal: every one) satisfies this.

    ``condition`` is the text of an expression over the document's attributes; ``TRUE`` asks for
    any document at all.
    """

    universal: bool
    condition: str


def constraints(tree: Expression) -> tuple[Constraint, ...]:
    """What the documents must satisfy for the expression to be TRUE for any event at all."""
    tree = normal_form(tree)
    operands = tree.operands if isinstance(tree, And) else (tree,)
    found = [
        demanded(replace(each, condition=normal_form(each.condition)), operands)
        for each in operands
        if isinstance(each, Quantified)
    ]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def joined_attributes(quantified: Quantified) -> frozenset[str]:
    """The attributes of the event whose constants affect what is demanded."""
    joins = {node.event for node in walk(quantified.condition) if isinstance(node, Join)}
    return frozenset(joins.union(quantified.window.per if quantified.window else ()))


def demanded(quantified: Quantified, beside: Sequence[Expression]) -> Constraint | None:
    """What a quantified predicate that must hold demands; its condition is a normal form.

    ``beside`` are normal forms that must hold as well; only those about one of the
    ``joined_attributes``, and no other attribute, make a difference.
    """
    window = quantified.window or Window()
    if quantified.universal and window != Window():
        return None
    known = _learn({}, beside)
    # A document of the window has the event's values in these attributes, and a time.
    within: list[Expression] = [Join(name, "=", name) for name in window.per]
    if window.of is not None:
        within.append(Not(OfDocument(IsNull(window.of))))
    condition = quantified.condition
    demand = _demand(normal_form(And((condition, *within))) if within else condition, known)
    text = print_expression(demand)
    if len(text) > MAX_DEPTH and not _is_within_limits(text):
        demand, text = ALWAYS, "TRUE"
    if quantified.universal and demand is ALWAYS:
        return None
    return Constraint(quantified.universal, text)


def _is_within_limits(text: str) -> bool:
    """Whether it can be read back; a text within the lowest limit always can."""
    try:
        parse(text)
    except LimitError:
        return False
    return True


# -- what a condition demands of a document --------------------------------------------------


def _demand(tree: Expression, known: Mapping[str, _Event]) -> Expression:
    """What holds of every document for which the normal form is TRUE with an event so known."""
    if isinstance(tree, And):
        known = _learn(known, tree.operands)
        return _all([_demand(operand, known) for operand in tree.operands])
    if isinstance(tree, Or):
        return _any([_demand(operand, known) for operand in tree.operands])
    if isinstance(tree, Join):
        return _of_join(tree, known.get(tree.event))
    if isinstance(tree, Pair) and tree.of_document:
        return _all([_there(tree.left), _there(tree.right)])
    if isinstance(tree, OfDocument):
        return tree.predicate
    if isinstance(tree, Not) and isinstance(tree.operand, OfDocument):
        return Not(tree.operand.predicate)
    return NEVER if tree == NEVER else ALWAYS


def _there(attribute: str) -> Expression:
    return Not(IsNull(attribute))


def _all(parts: Iterable[Expression]) -> Expression:
    """The conjunction, short: nothing twice, no "is there" of what is compared besides."""
    parts = [own for part in parts for own in (part.operands if isinstance(part, And) else [part])]
    if len(parts) == 1:
        return parts[0]
    if any(part is NEVER for part in parts):
        return NEVER
    compared = {
        _attribute(part)
        for part in parts
        if not any(isinstance(node, IsNull) for node in walk(part))
    }
    absent = {_there(name) for name in compared if name is not None}
    left = [part for part in _distinct(parts) if part is not ALWAYS and part not in absent]
    return And(tuple(left)) if len(left) > 1 else left[0] if left else ALWAYS


def _any(parts: Iterable[Expression]) -> Expression:
    """The disjunction, short in the same way."""
    parts = [own for part in parts for own in (part.operands if isinstance(part, Or) else [part])]
    if len(parts) == 1:
        return parts[0]
    if any(part is ALWAYS for part in parts):
        return ALWAYS
    left = [part for part in _distinct(parts) if part is not NEVER]
    return Or(tuple(left)) if len(left) > 1 else left[0] if left else NEVER


def _distinct(parts: Iterable[Expression]) -> Iterable[Expression]:
    """Each once, by its text: as trees, ``x = 1`` and ``x = TRUE`` are equal in Python."""
    return {print_expression(part): part for part in parts}.values()


def _of_join(join: Join, event: _Event | None) -> Expression:
    """What ``d.x OP1 a`` demands of x, with what is known of ``a``."""
    x = join.document
    if event is None:
        return _there(x)
    if join.operator == "=" and event.values:
        return _all([_there(x), *(_renamed(tree, x) for tree in event.predicates)])
    return _any([_bound(x, join.operator, pieces) for pieces in event.values.values()])


def _bound(x: str, operator: str, pieces: _Pieces) -> Expression:
    """The same where ``a`` is of one kind: only the ends of what it can be matter."""
    low, high = pieces[0][0], pieces[-1][1]
    if operator in ("<", "<=") and high.literal is not None:
        return Compare(x, operator if high.after else "<", high.literal)
    if operator in (">", ">=") and low.literal is not None:
        return Compare(x, ">" if low.after else operator, low.literal)
    if operator == "!=" and low.literal is not None and low.key == high.key:
        return Compare(x, "!=", low.literal)
    return _there(x)


def _renamed(tree: Expression, name: str) -> Expression:
    """The same predicates on another attribute."""

    def rename(leaf: Any) -> Any:
        return replace(leaf, attribute=name)

    return map_leaves(tree, rename)


# -- what is known of the event --------------------------------------------------------------


def _attribute(tree: Expression) -> str | None:
    """The attribute that all of the tree speaks of; None if there is not just one."""
    only = None
    for node in walk(tree):
        if isinstance(node, Predicate):
            if only not in (None, node.attribute):
                return None
            only = node.attribute
        elif not isinstance(node, And | Or | Not):
            return None
    return only


def _learn(known: Mapping[str, _Event], operands: Sequence[Expression]) -> Mapping[str, _Event]:
    """What is known of the event once all the operands are TRUE."""
    found: dict[str, list[Expression]] = {}
    for operand in operands:
        name = _attribute(operand)
        if name is not None:
            found.setdefault(name, []).append(operand)
    before = {name: known[name].predicates if name in known else () for name in found}
    return {**known, **{name: _Event((*before[name], *own)) for name, own in found.items()}}


class _Event:
    """All that is known of one attribute of the event."""

    def __init__(self, predicates: tuple[Expression, ...]) -> None:
        self.predicates = predicates
        self._values: _Values | None = None

    @property
    def values(self) -> _Values:
        """The values for which all the predicates are TRUE."""
        # Not a cached_property, whose lock another thread may hold when the process is forked.
        if self._values is None:
            self._values = _intersection([_values(tree) for tree in self.predicates])
        return self._values


@dataclass(frozen=True, slots=True, order=True)
class _Cut:
    """A place between values: just before a constant, just after it, or beyond all of them."""

    side: int  # -1 before everything, 1 after everything, 0 at the constant
    key: Any = None
    after: bool = False
    literal: Literal | None = field(default=None, compare=False)


#: Disjoint stretches of one kind in ascending order, each from a cut to a cut; at least one.
_Pieces: TypeAlias = list[tuple[_Cut, _Cut]]
#: By kind; a kind that is not there has no value at all.
_Values: TypeAlias = dict[str, _Pieces]

_START, _END = _Cut(-1), _Cut(1)
_KINDS = ("number", "string", "boolean", "time")


def _values(tree: Expression) -> _Values:
    """The values of its one attribute for which a normal form is TRUE."""
    if isinstance(tree, And):
        return _intersection(map(_values, tree.operands))
    if isinstance(tree, Or):
        return _union(map(_values, tree.operands))
    leaf = tree.operand if isinstance(tree, Not) else tree
    if isinstance(leaf, Compare):
        return _compared(leaf.operator, leaf.operand)
    if isinstance(leaf, Between):
        low, high = leaf.low, leaf.high
        if leaf is tree:
            return _intersection([_compared(">=", low), _compared("<=", high)])
        return _union([_compared("<", low), _compared(">", high)])
    if isinstance(leaf, In):
        if leaf is tree:
            return _union(_compared("=", each) for each in leaf.values)
        return _intersection(_compared("!=", each) for each in leaf.values)
    if isinstance(leaf, IsNull):
        return {} if leaf is tree else {kind: [(_START, _END)] for kind in _KINDS}
    return {"string": [(_START, _END)]}  # a pattern


def _compared(operator: str, literal: Literal) -> _Values:
    kind, key = _ordered(literal)
    before, after = _Cut(0, key, False, literal), _Cut(0, key, True, literal)
    pieces = {
        "=": [(before, after)],
        "!=": [(_START, before), (after, _END)],
        "<": [(_START, before)],
        "<=": [(_START, after)],
        ">": [(after, _END)],
        ">=": [(before, _END)],
    }
    return {kind: pieces[operator]}


def _ordered(literal: Literal) -> tuple[str, Any]:
    """The kind of a constant, and what orders it within its kind as events are ordered."""
    value: Any = literal.value
    kind = kind_of(literal)
    if kind == "number":
        return kind, exact(value)
    if kind == "string":
        return kind, value.encode()
    if kind == "date":
        value = dt.datetime.combine(value, dt.time(), dt.UTC)
    return ("boolean", value) if kind == "boolean" else ("time", value - _EPOCH)


def _union(several: Iterable[_Values]) -> _Values:
    found: dict[str, _Pieces] = {}
    for values in several:
        for kind, pieces in values.items():
            found.setdefault(kind, []).extend(pieces)
    return {kind: _merged(pieces) for kind, pieces in found.items()}


def _intersection(several: Iterable[_Values]) -> _Values:
    """What is outside of no set; many sets of many pieces are merged in one sort."""
    several = list(several)
    if len(several) == 1:
        return several[0]
    found: _Values = {}
    for kind in several[0]:
        if not all(kind in values for values in several):
            continue
        outside = [gap for values in several for gap in _gaps(values[kind])]
        pieces = _gaps(_merged(outside))
        if pieces:
            found[kind] = pieces
    return found


def _merged(pieces: _Pieces) -> _Pieces:
    """Overlapping and adjacent stretches as one. O(pieces log pieces)."""
    out: _Pieces = []
    for low, high in sorted(pieces):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], high)
        else:
            out.append((low, high))
    return out


def _gaps(pieces: _Pieces) -> _Pieces:
    """What the stretches leave out."""
    ends = [_START, *itertools.chain.from_iterable(pieces), _END]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [(low, high) for low, high in pairs if low < high]
