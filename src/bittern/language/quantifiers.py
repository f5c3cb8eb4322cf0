r"""Quantified predicates under a name: in an index each is an attribute that an event has or lacks.

``EXISTS d (d.price > price)`` is either TRUE or FALSE for an event, and that can be told from the
documents. So it is indexed as a predicate on an attribute, whose name is the predicate's own text
after a character that no name in an expression starts with::

    x = 1 AND NOT ∃ e (price < e.price)                      as it is written
    x = 1 AND NOT `\0EXISTS d (d.price > price)` IS NOT NULL  as it is indexed

Equal predicates must have equal names, whatever they call the document and however they are
written: ``canonical`` takes the normal form, sorts the operands of AND and OR by their texts
without duplicates, and does the same to the values of IN and to the attributes of PER.
O(length x depth).

``hide`` puts the names into a text that was cut into words and the gaps between them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bittern.errors import LimitError
from bittern.language.alternatives import entry_of
from bittern.language.lexer import is_bare, is_quantifier
from bittern.language.literals import HIDDEN, HIDDEN_WORD
from bittern.language.normalize import normal_form
from bittern.language.parser import Parser
from bittern.language.predicates import FLIPPED
from bittern.language.printer import (
    alias_for,
    attribute_word,
    print_expression,
    print_leaf,
    print_literal,
)
from bittern.language.syntax import (
    And,
    Compare,
    Expression,
    In,
    Join,
    Leaf,
    Not,
    OfDocument,
    Or,
    Pair,
    Quantified,
    Window,
)
from bittern.language.trees import flat, walk

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "HIDDEN",
    "HIDDEN_WORD",
    "canonical",
    "hidden_name",
    "hidden_word",
    "hide",
    "is_hidden",
    "quantified_of",
    "sides_of_quantified",
]

#: What stands after a hidden name for the predicate to be TRUE, as words and what is between them.
_IS_THERE = (" ", "IS", " ", "NOT", " ", "NULL")
_SYMBOLS = frozenset("∃∀")
#: Characters of EXISTS, and of FORALL.
_LENGTH = 6


#: Predicates that are remembered: an index, its guards and the join table ask for the same ones.
_REMEMBERED = 1 << 16


def is_hidden(name: str) -> bool:
    """Whether an attribute stands for a quantified predicate. O(1)."""
    return name.startswith(HIDDEN)


def hidden_name(quantified: Quantified) -> str:
    """The name of the attribute that stands for a quantified predicate. O(length x depth)."""
    return HIDDEN + print_expression(canonical(quantified))


@lru_cache(maxsize=_REMEMBERED)
def hidden_word(text: str) -> str:
    """The same from the text of a quantified predicate alone, back-quoted. O(length x depth).

    ``LimitError`` if it has too many alternatives to be looked up.
    """
    quantified = Parser(text).parse()
    assert isinstance(quantified, Quantified), text
    try:
        entry_of(quantified)
    except ValueError as wrong:
        raise LimitError(str(wrong), text, 0) from None
    return attribute_word(hidden_name(quantified))


@lru_cache(maxsize=_REMEMBERED)
def quantified_of(name: str) -> Quantified:
    """The quantified predicate, in canonical form, that a hidden name stands for. O(length)."""
    tree = Parser(name[len(HIDDEN) :]).parse()
    assert isinstance(tree, Quantified), name
    return tree


def canonical(quantified: Quantified) -> Quantified:
    """The same predicate in the form that all ways to write it share. O(length x depth)."""
    window = quantified.window
    if window is not None:
        window = replace(window, per=tuple(sorted(set(window.per))))
        window = None if window == Window() else window
    normal = Quantified(quantified.universal, normal_form(quantified.condition), window)
    return replace(normal, condition=_sorted(normal.condition, alias_for(normal)))


class _Part(NamedTuple):
    """A node with the text that it is sorted by, and its operands by theirs."""

    text: str
    node: Expression
    operands: dict[str, Expression]


def _sorted(tree: Expression, alias: str) -> Expression:
    """A normal form with the operands of AND and OR in the order of their texts, each once."""
    done: list[_Part] = []
    for node in reversed(flat(tree)):  # operands first
        if isinstance(node, tuple):
            operator, count = node
            done[-count:] = [_branch(operator, done[-count:])]
            continue
        leaf = normal_form(Not(done.pop().node)) if node is Not else _leaf(node)
        done.append(_Part(print_leaf(leaf, alias), leaf, {}))
    return done[0].node


def _branch(operator: type[And | Or], parts: list[_Part]) -> _Part:
    """An AND or OR; of equal operands one is left, which may be an AND or OR of the same kind."""
    operands: dict[str, Expression] = {}
    for part in parts:
        operands |= part.operands if isinstance(part.node, operator) else {part.text: part.node}
    operands = dict(sorted(operands.items()))
    if len(operands) == 1:
        return next(part for part in parts if part.text in operands)
    between = " AND " if operator is And else " OR "
    return _Part(f"({between.join(operands)})", operator(tuple(operands.values())), operands)


def _leaf(leaf: Leaf) -> Expression:
    """The form of a leaf that is chosen among those that say the same."""
    if isinstance(leaf, OfDocument):
        return OfDocument(_leaf(leaf.predicate))  # type: ignore[arg-type]
    if isinstance(leaf, Pair) and leaf.left > leaf.right:
        return Pair(leaf.of_document, leaf.right, FLIPPED[leaf.operator], leaf.left)
    if isinstance(leaf, In):
        by_text = {print_literal(value): value for value in leaf.values}
        values = tuple(by_text[text] for text in sorted(by_text))
        if len(values) == 1:
            return Compare(leaf.attribute, "=", values[0])
        return In(leaf.attribute, values)
    return leaf


def hide(parts: list[str], word_of: Callable[[str], str]) -> list[str]:
    """Put hidden names in the place of the quantified predicates of a text. O(length).

    ``parts`` are what stands between words and the words in turn; so is what is returned.
    ``word_of`` gives the quoted name for a predicate's text. What is no quantified predicate, or
    does not end, stays as it is.
    """
    hidden = [parts[0]]
    taken = 1  # the first word that is not yet in the list
    for place in [
        place
        for place in range(1, len(parts), 2)
        if len(parts[place]) == _LENGTH or not parts[place - 1].isascii()
    ]:
        if place < taken:
            continue
        hidden += parts[taken:place]
        taken = place
        before = hidden[-1].rstrip()
        if before[-1:] in _SYMBOLS and is_bare(parts[place]):
            start, name = hidden[-1][len(before) - 1 :], place
        elif is_quantifier(parts[place]) and _is_named(parts, place):
            start, name = "", place + 2
        else:
            continue
        last, length = _end(parts, name + 1)
        if last == len(parts):
            break
        piece = "".join((start, *parts[place:last], parts[last][:length]))
        hidden[-1] = hidden[-1][: len(hidden[-1]) - len(start)]
        rest = parts[last][length:]
        if not rest and last < len(parts) - 1:
            rest = " "  # or the next word would become one with NULL
        hidden += (word_of(piece), *_IS_THERE, rest)
        taken = last + 1
    hidden += parts[taken:]
    return hidden


def _is_named(parts: list[str], place: int) -> bool:
    """Whether a bare name follows a word."""
    return len(parts) > place + 2 and parts[place + 1].isspace() and is_bare(parts[place + 2])


def _end(parts: list[str], first: int) -> tuple[int, int]:
    """Where the first parenthesis from a place on is closed: the part, and how much of it."""
    depth = 0
    for place in range(first, len(parts), 2):
        for length, character in enumerate(parts[place], 1):
            if character == "(":
                depth += 1
            elif character == ")":
                depth -= 1
                if depth <= 0:
                    return place, length
    return len(parts), 0


def sides_of_quantified(quantified: Quantified) -> tuple[list[str], list[str]]:
    """The attributes of events, and those of documents, in a quantified predicate."""
    event: list[str] = []
    document: list[str] = []
    if quantified.window is not None:
        of = quantified.window.of
        both = [*quantified.window.per, *([] if of is None else [of])]
        event += both
        document += both
    for node in walk(quantified.condition):
        if isinstance(node, Join):
            event.append(node.event)
            document.append(node.document)
        elif isinstance(node, Pair):
            (document if node.of_document else event).extend((node.left, node.right))
        elif isinstance(node, OfDocument):
            document.append(node.predicate.attribute)
        elif hasattr(node, "attribute"):
            event.append(node.attribute)
    return event, document
