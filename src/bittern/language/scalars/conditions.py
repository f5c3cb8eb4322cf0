"""Conditions: AND, OR, NOT, and what is said of a value by IN, BETWEEN, LIKE and IS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from bittern.errors import LimitError
from bittern.language.complaints import AFTER_IS
from bittern.language.lexer import MISSING, QUANTIFIERS, Token, without_comments
from bittern.language.limits import MAX_TERM_DEPTH
from bittern.language.literals import MARKS, attribute_parts
from bittern.language.presence import presence_of
from bittern.language.scalars.tokens import by_bytes
from bittern.language.scalars.values import ValueReader
from bittern.terms.logic.members import IN_SET, set_of
from bittern.terms.nodes import Attribute, Call, Constant, Term

if TYPE_CHECKING:
    from collections.abc import Callable


def read_term(text: str, *, hidden: bool = False) -> Term:
    """Read a term or a condition; raises ``ExpressionError`` or ``LimitError``. O(length).

    ``hidden`` allows names that stand for quantified predicates (``language/quantifiers.py``).
    """
    try:
        return _Reader(without_comments(text), hidden=hidden).read()
    except RecursionError:  # the caller has used most of the stack
        raise LimitError("a term is nested too deeply", text, 0) from None


def operands_of(text: str) -> list[tuple[int, int]]:
    """Where in a text without comments the left operands of its predicates are. O(length)."""
    reader = _Reader(text, hidden=True)
    reader.read()
    return reader.operands


class _Reader(ValueReader):
    """Reads whole texts."""

    def __init__(self, text: str, *, hidden: bool) -> None:
        super().__init__(text, hidden=hidden)
        self._predicates: dict[str, Callable[[Term, str], Term]] = {
            "IS": self._is,
            "IN": self._in,
            "BETWEEN": self._between,
            "LIKE": self._like,
            "ilike": self._like,
            "RLIKE": self._rlike,
            "REGEXP": self._rlike,
        }

    def read(self) -> Term:
        """Read the whole text."""
        term = self._condition()
        token = self._peek()
        if token.kind != "end":
            self._fail(token, "an operator or the end")
        term = by_bytes(term)
        self._check(term)
        return term

    def _condition(self) -> Term:
        """OR of ANDs."""
        self._depth += 1
        if self._depth > MAX_TERM_DEPTH:
            self._too_deep(self._peek())
        alternatives = [self._conjunction()]
        while self._accept("OR"):
            alternatives.append(self._conjunction())
        self._depth -= 1
        return alternatives[0] if len(alternatives) == 1 else self._call("or", alternatives)

    def _conjunction(self) -> Term:
        operands = [self._negation()]
        while self._accept("AND"):
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else self._call("and", operands)

    def _negation(self) -> Term:
        nots = 0
        while self._accept("NOT") or self._accept("!"):
            nots += 1
        if nots > MAX_TERM_DEPTH:
            self._too_deep(self._peek())
        term = self._predicate()
        for _ in range(nots):
            term = self._call("not", [term])
        return term

    def _predicate(self) -> Term:
        """A value, and what is said of it by IN, BETWEEN, LIKE and IS."""
        first = self._next
        term = self._value(0)
        while True:
            negated = self._peek().kind == "NOT"
            token = self._tokens[self._next + negated] if negated else self._peek()
            word = token.kind if token.kind != "attribute" else token.text.lower()
            read = self._predicates.get(word)
            if read is None:
                if negated:
                    self._fail(token, "IN, BETWEEN, LIKE or RLIKE after NOT")
                if self._is_call(first):
                    self._note_operand(first)
                return term
            self._note_operand(first)
            self._next += 1 + negated
            if self._asks_each(word):
                term = self._like_each(term, word, negated=negated)
                continue
            term = read(term, word)
            if set_of(term) is not None:  # an operand as a whole: as an attribute, it is there
                self._note_operand(first)
            if negated:
                term = self._call("not", [term])

    def _is_call(self, first: int) -> bool:
        """Whether the tokens since the first one are a call alone, which then is a condition."""
        name, open_, *_, last = *self._tokens[first : first + 2], self._tokens[self._next - 1]
        return name.kind in ("attribute", *QUANTIFIERS) and open_.kind == "(" and last.kind == ")"

    def _is(self, term: Term, _word: str) -> Term:
        negated = self._accept("NOT")
        token = self._take()
        word = token.kind if token.kind != "attribute" else token.text.upper()
        if word in ("NULL", "UNKNOWN"):
            found = self._call("is null", [term])
        elif word in ("TRUE", "FALSE"):
            found = self._call(f"is {word.lower()}", [term])
        elif word == "DISTINCT" and self._word("from"):
            found = self._call("not", [self._call("<=>", [term, self._value(1)])])
        elif word == MISSING:
            found = self._is_missing(term, token)
        else:
            self._fail(token, AFTER_IS)
        return self._call("not", [found]) if negated else found

    def _is_missing(self, term: Term, token: Token) -> Term:
        if isinstance(term, Attribute) and not term.name.startswith(MARKS):
            return Call("is null", (Attribute(presence_of(term.name)),))
        message = "IS MISSING is asked of an attribute, not of what is computed"
        return Constant(self._error(message, token))

    def _in(self, term: Term, _word: str) -> Term:
        if self._word("set"):
            return self._call(IN_SET, [term, self._set_name()])
        self._expect("(", "'(' or SET after IN")
        if self._peek().kind == ")":
            self._error("IN needs at least one value", self._peek())
        return self._call("in", [term, *self._list(")")])

    def _set_name(self) -> Term:
        token = self._take()
        if token.kind != "attribute":
            self._fail(token, "the name of a set after IN SET")
        parts = attribute_parts(self._name(token))
        if len(parts) > 1:
            self._error("the name of a set is one name: put it into back quotes", token)
        return Constant(pa.scalar(parts[0]))

    def _between(self, term: Term, _word: str) -> Term:
        low = self._value(1)
        self._expect("AND", "AND between the two ends of BETWEEN")
        return self._call("between", [term, low, self._value(1)])

    def _like(self, term: Term, word: str) -> Term:
        arguments = [term, self._value(1)]
        if self._accept("ESCAPE"):
            arguments.append(self._value(1))
        return self._call(word.lower(), arguments)

    def _asks_each(self, word: str) -> bool:
        """Whether LIKE is followed by ANY, SOME or ALL of several patterns."""
        is_any = self._peek().text.lower() in ("any", "some", "all")
        return word in ("LIKE", "ilike") and is_any and self._peek(1).kind == "("

    def _like_each(self, term: Term, word: str, *, negated: bool) -> Term:
        """LIKE ANY and its kin. NOT is said of each pattern, before constants fold to one truth."""
        joins = "and" if self._take().text.lower() == "all" else "or"
        opening = self._take()
        found = []
        for pattern in self._list(")"):
            one = self._call(word.lower(), [self._copied(term, opening), pattern])
            found.append(self._call("not", [one]) if negated else one)
        return found[0] if len(found) == 1 else self._call(joins, found)

    def _rlike(self, term: Term, _word: str) -> Term:
        return self._call("rlike", [term, self._value(1)])
