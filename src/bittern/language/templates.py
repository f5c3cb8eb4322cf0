"""Templates: the normal form that texts of one shape share, with slots for their parameters.

``price <= 580 AND model = 'iphone5s'`` and ``size <= -1 AND name = 'x'`` are two fillings of::

    tree    And((Compare(Slot 0, "<=", Slot 1), Compare(Slot 2, "=", Slot 3)))
    kinds   attribute  number  attribute  string

A quantified predicate is a parameter too, of kind *join*: an attribute with a hidden name
(``quantifiers.py``) that is NULL or not. Filling and relaxing are O(nodes) and do not recurse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bittern.language.literals import READERS, attribute_name, kind_of
from bittern.language.normalize import ALWAYS, normal_form
from bittern.language.printer import attribute_word, print_literal, print_text
from bittern.language.quantifiers import hidden_name, is_hidden, quantified_of
from bittern.language.syntax import (
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Leaf,
    Like,
    Literal,
    Not,
    OfDocument,
    Pair,
    Quantified,
    Regex,
)
from bittern.language.trees import flat, map_leaves, unflat
from bittern.terms.pattern_texts import LikeForm, like_parts

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a template takes a parameter: its number in the text and its kind.

    ``kind`` is attribute, join, number, string, date or timestamp. ``form`` is set for the pattern
    of a LIKE: all texts of the template have patterns of that form.
    """

    number: int
    kind: str
    form: LikeForm | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """The normal form that texts of one shape share.

    In ``tree``, a ``Slot`` stands for every attribute name, for every literal except TRUE, FALSE
    and NULL, and for every pattern. ``kinds`` has one kind per slot, used by the tree or not.
    """

    tree: Expression
    kinds: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _template, (flat(self.tree), self.kinds)  # pickling a deep tree recurses

    def fill(self, parameters: Sequence[str]) -> Expression:
        """Put the parameters of one text into the tree. O(nodes)."""

        def value(slot: Any) -> Any:
            if not isinstance(slot, Slot):
                return slot
            return Literal(READERS[slot.kind](parameters[slot.number]))

        def fill(node: Any) -> Expression:
            if isinstance(node, BooleanConstant):
                return node
            name = attribute_name(parameters[node.attribute.number])
            if node.attribute.kind == "join":
                return Not(quantified_of(name))
            if isinstance(node, Compare):
                return Compare(name, node.operator, value(node.operand))
            if isinstance(node, Between):
                return Between(name, value(node.low), value(node.high))
            if isinstance(node, In):
                return In(name, tuple(value(each) for each in node.values))
            if isinstance(node, Like):
                return Like(name, value(node.pattern).value, node.escape)
            if isinstance(node, Regex):
                return Regex(name, value(node.pattern).value)
            return IsNull(name)

        filled = map_leaves(self.tree, fill)
        return normal_form(filled) if "join" in self.kinds else filled

    def relaxed(self) -> Template:
        """The template without its quantified predicates, as if all of them held.

        Every event that a text of this template matches, its relaxed template matches too, with
        the same parameters. O(nodes).
        """
        nodes: list[Any] = []
        for node in flat(self.tree):
            if isinstance(node, IsNull) and _slot(node).kind == "join":
                if nodes and nodes[-1] is Not:
                    nodes.pop()
                nodes.append(ALWAYS)
            else:
                nodes.append(node)
        return Template(normal_form(unflat(nodes)), self.kinds)


class SlotMaker:
    """Puts slots in place of the names and constants of a tree, and keeps these as parameters."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.parameters: list[str] = []

    def leaf(self, node: Leaf) -> Expression:
        """The leaf with slots. O(its constants)."""
        if isinstance(node, BooleanConstant):
            return node
        assert not isinstance(node, OfDocument | Join | Pair), "only quantifiers have these"
        if isinstance(node, Quantified):
            return Not(IsNull(self._slot("join", hidden_name(node))))
        name = self._slot("join" if is_hidden(node.attribute) else "attribute", node.attribute)
        if isinstance(node, Compare):
            return Compare(name, node.operator, self._value(node.operand))
        if isinstance(node, Between):
            return Between(name, self._value(node.low), self._value(node.high))
        if isinstance(node, In):
            return In(name, tuple(map(self._value, node.values)))
        if isinstance(node, Like):
            form = like_parts(node.pattern, node.escape).form
            return Like(name, self._add("string", print_text(node.pattern), form), node.escape)
        if isinstance(node, Regex):
            return Regex(name, self._add("string", print_text(node.pattern)))
        return IsNull(name)

    def _slot(self, kind: str, name: str) -> Any:
        return self._add(kind, attribute_word(name))

    def _value(self, literal: Literal) -> Any:
        kind = kind_of(literal)
        if kind in ("null", "boolean"):
            return literal
        text = print_literal(literal)
        # The parameter of a date is its string alone.
        return self._add(kind, text.partition(" ")[2] if kind in ("date", "timestamp") else text)

    def _add(self, kind: str, raw: str, form: LikeForm | None = None) -> Any:
        self.kinds.append(kind)
        self.parameters.append(raw)
        return Slot(len(self.kinds) - 1, kind, form)


def _slot(node: IsNull) -> Slot:
    slot: Any = node.attribute
    return cast("Slot", slot)


def _template(nodes: tuple[Any, ...], kinds: tuple[str, ...]) -> Template:
    """A template from its pickle."""
    return Template(unflat(nodes), kinds)
