"""Conditions of new shapes, put together from predicates that are known.

Where millions of texts nest AND, OR and NOT freely, almost each has a shape of its own. But their
predicates have few: ``a = n``, ``a BETWEEN n AND n``. So a predicate is parsed once for each number
that its first parameter may have, and what stands around it is read without the parser::

    text        a = 1 AND NOT (b IN (2, 3) OR c < 4)
    predicates  a = n          a IN (n, n)    a < n        first parameters 0, 2, 5
    normal form a = n          NOT IN (n, n)  a >= n
    tree        And            (                     ) And: NOT has turned the OR

What comes out is the parser's normal form. Whatever is not plainly a condition of such predicates
is left to the parser: terms, constants in place of predicates, dates and patterns (whose meaning is
not in their kind alone), deep trees, mistakes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bittern.errors import ExpressionError
from bittern.language.conjuncts import NAMES
from bittern.language.normalize import normal_form
from bittern.language.slot_parser import SlotParser
from bittern.language.syntax import And, BooleanConstant, Expression, Not, Or
from bittern.language.templates import Template

#: Letters of words that a predicate or a NOT starts with.
_STARTS = NAMES | {"NOT"}
_CONNECTIVES = frozenset(("AND", "OR"))
_SPACE = " \t\n\r\f\v"
#: Longer texts and deeper trees are left to the parser, which counts.
_MOST_WORDS, _MOST_LEVELS = 1000, 60
#: Predicates that are remembered; beyond it the memory starts anew.
_MOST_REMEMBERED = 100_000
_PLACES = range(1 << 20)


class _Predicate(NamedTuple):
    """A predicate in normal form, the kinds of its slots, and which of its words are parameters."""

    node: Expression
    kinds: tuple[str, ...]
    places: tuple[int, ...]
    #: Parentheses that are closed behind its last word.
    n_open: int


class _Group:
    """What stands between two parentheses: operands of AND, those of OR so far."""

    __slots__ = ("ands", "is_negated", "ors")

    def __init__(self, *, is_negated: bool) -> None:
        self.is_negated = is_negated
        self.ands: list[Any] = []
        self.ors: list[Any] = []

    def turn(self) -> None:
        """An OR comes next."""
        self.ors.append(_joined(Or if self.is_negated else And, self.ands))
        self.ands = []

    def node(self) -> Any:
        """All of it."""
        if not self.ors:
            return _joined(Or if self.is_negated else And, self.ands)
        self.turn()
        return _joined(And if self.is_negated else Or, self.ors)


class KnownPredicates:
    """Reads conditions. One thread at a time."""

    def __init__(self) -> None:
        #: By key, number of the first parameter, and whether it is negated; None: to be parsed.
        self._predicates: dict[tuple[str, int, bool], _Predicate | None] = {}

    def read(
        self, parts: list[str], words: list[str], letters: list[str]
    ) -> tuple[Template, list[int]] | None:
        """A text's template, and which words are parameters; None: it takes the parser. O(words).

        ``parts`` are what stands between words, and letters, in turn.
        """
        n = len(letters)
        if n > _MOST_WORDS or letters.count("NOT") + "".join(parts).count("(") > _MOST_LEVELS:
            return None
        groups = [_Group(is_negated=False)]
        kinds: list[str] = []
        places: list[int] = []
        at, negated = 0, False
        while at < n:
            before = parts[2 * at]
            if before != " ":
                for sign in before:
                    if sign == "(":
                        groups.append(_Group(is_negated=groups[-1].is_negated != negated))
                        negated = False
                    elif sign not in _SPACE:
                        return None
            if letters[at] == "NOT":
                negated = not negated
                at += 1
                continue
            if letters[at] not in NAMES:
                return None
            end = _end(letters, at)
            group = groups[-1]
            pieces = parts[2 * at + 1 : 2 * end]
            key = "\0".join(pieces)
            place = key, len(kinds), group.is_negated != negated
            found = self._predicate(place, pieces, words[at:end])
            if found is None:
                return None
            group.ands.append(found.node)
            kinds += found.kinds
            places += [at + place for place in found.places]
            behind = parts[2 * end]
            closing = behind.count(")")
            if len(behind) - closing - behind.count(" ") and (behind.strip(_SPACE + ")")):
                return None
            closing -= found.n_open
            if not 0 <= closing < len(groups):
                return None
            for _ in range(closing):
                closed = groups.pop()
                groups[-1].ands.append(closed.node())
            if end == n:
                break
            if letters[end] == "OR":
                groups[-1].turn()
            at, negated = end + 1, False
        else:
            return None  # it ends with NOT, AND or OR, or has no words
        if len(groups) > 1:
            return None
        return Template(_frozen(groups[0].node()), tuple(kinds)), places

    def _predicate(
        self, place: tuple[str, int, bool], pieces: list[str], words: list[str]
    ) -> _Predicate | None:
        if place in self._predicates:
            return self._predicates[place]
        if len(self._predicates) >= _MOST_REMEMBERED:
            self._predicates.clear()
        text = pieces.copy()
        text[::2] = words
        key, first, negated = place
        n_open = key.count("(") - key.count(")")
        found = _parsed("".join(text), n_open, first, is_negated=negated)
        self._predicates[place] = found
        return found


def _end(letters: list[str], at: int) -> int:
    """Where a predicate ends that starts at a word: in front of AND or OR and a new start."""
    end, last = at + 1, len(letters) - 1
    while end < last:
        if letters[end] in _CONNECTIVES and letters[end + 1] in _STARTS:
            return end
        end += 1
    return last + 1


def _parsed(text: str, n_open: int, first: int, *, is_negated: bool) -> _Predicate | None:
    """A predicate, if its normal form depends on the kinds of its parameters alone."""
    try:
        parser = SlotParser(text + ")" * n_open, first)
        tree = parser.parse()
    except ExpressionError:
        return None
    if parser.checks or parser.likes or isinstance(tree, And | Or):
        return None
    node = normal_form(Not(tree) if is_negated else tree)
    if isinstance(node, And | Or | BooleanConstant):
        return None
    return _Predicate(node, tuple(parser.kinds), parser.picker()(_PLACES), n_open)


def _joined(operator: type[And | Or], operands: list[Any]) -> Any:
    """A node in the making: a predicate, or its operator and its operands."""
    if len(operands) == 1:
        return operands[0]
    flat: list[Any] = []
    for operand in operands:
        if isinstance(operand, tuple) and operand[0] is operator:
            flat += operand[1]
        else:
            flat.append(operand)
    return operator, flat


def _frozen(node: Any) -> Expression:
    """The tree of a node in the making; it calls itself for each of a few levels."""
    if isinstance(node, tuple):
        operator, operands = node
        return operator(tuple(map(_frozen, operands)))  # type: ignore[no-any-return]
    return node  # type: ignore[no-any-return]
