"""Text to syntax tree, as Spark would read it in ``events.filter(text)``.

``a = 1 OR NOT b < 2 AND (c OR d IN (3, 4))`` is read with one group per open parenthesis::

    group            finished OR operands     AND operands so far     NOTs waiting
    whole text       [a = 1]                  [NOT b < 2]             0
      ( ...          [c = TRUE]               [d IN (3, 4)]           0

NOT binds tighter than AND, and AND tighter than OR. A predicate is read in one go
(``predicates.py``), so BETWEEN keeps its own AND. ``EXISTS d IN LAST 100 PER a (`` opens a group
too, and closing it makes everything inside a leaf. The groups are a list, not Python's stack, so no
input overflows it. Reading is O(length) in time and memory; limits are checked along the way.
"""

from __future__ import annotations

from typing import Any

from bittern.errors import ExpressionError, LimitError, brief
from bittern.language.complaints import explain_token
from bittern.language.lexer import QUANTIFIERS, Token, is_bare, without_comments
from bittern.language.limits import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PREDICATES,
    MAX_TERMS,
    MAX_WINDOW_COUNT,
)
from bittern.language.predicates import PredicateParser, too_many_predicates
from bittern.language.syntax import And, Expression, In, Not, Or, Quantified, Window
from bittern.language.trees import Branch, Draft, flatten, walk
from bittern.terms.pattern_texts import RegexTooLargeError

_OPENING = frozenset(("(", "NOT", *QUANTIFIERS))


def parse(text: str) -> Expression:
    """Read a Boolean SQL expression; raises ``ExpressionError`` or ``LimitError``. O(length).

    Most texts have only predicates on attributes; what else there is, terms are for.
    """
    check_text(text)
    plain = without_comments(text)
    try:
        return Parser(plain).parse()
    except LimitError:
        raise
    except ExpressionError as wrong:
        return parse_with_terms(plain, wrong)


def parse_with_terms(text: str, wrong: ExpressionError, *, hidden: bool = False) -> Expression:
    """Read a text that may have terms, after it was found wrong without them.

    Of two complaints, the one that comes later in the text is of the parser that understood more.
    """
    # Only for terms.
    from bittern.language.derived import (  # noqa: PLC0415
        TermTooLargeError,
        condition_of,
        count_terms,
    )
    from bittern.language.scalars import FunctionCallError, read_term  # noqa: PLC0415

    try:
        term = read_term(text, hidden=hidden)
    except (LimitError, FunctionCallError):
        raise
    except ExpressionError as other:
        raise (other if other.position > wrong.position else wrong) from None
    try:
        tree = condition_of(term)
    except ValueError as meaningless:
        message = str(meaningless)
        at = wrong.position if message == wrong.message else 0
        too_large = isinstance(meaningless, RegexTooLargeError | TermTooLargeError)
        raise (LimitError if too_large else ExpressionError)(message, text, at) from None
    leaves = [node for node in walk(tree) if not isinstance(node, And | Or | Not)]
    if sum(len(leaf.values) if isinstance(leaf, In) else 1 for leaf in leaves) > MAX_PREDICATES:
        raise too_many_predicates(text, 0)
    if count_terms(tree) > MAX_TERMS:
        message = f"an expression has at most {MAX_TERMS} distinct terms: make it several"
        raise LimitError(message, text, 0)
    return tree


def check_text(text: str) -> None:
    """Refuse what is not text, and text that is too long."""
    if not isinstance(text, str):
        raise ExpressionError(
            f"an expression must be a string, not {type(text).__name__}", brief(text), 0
        )
    if len(text) > MAX_LENGTH:
        raise LimitError(
            f"an expression has at most {MAX_LENGTH:,} characters, this one has {len(text):,}",
            text,
            MAX_LENGTH,
        )


class _Group:
    """What has been read since an opening parenthesis, and the quantifier before it if any."""

    __slots__ = ("ands", "nots", "ors", "quantifier")

    def __init__(self, quantifier: tuple[bool, Window | None] | None = None) -> None:
        self.quantifier = quantifier
        self.ors: list[Draft] = []
        self.ands: list[Draft] = []
        self.nots = 0


class Parser(PredicateParser):
    """One reading of one text."""

    # Conditions: AND, OR, NOT, parentheses and quantifiers.

    def parse(self) -> Expression:
        """Read the whole text."""
        groups = [_Group()]
        depth = 0
        while True:
            group = groups[-1]
            token = self._take()
            if token.kind in _OPENING:
                depth += 1
                self._check_depth(depth, token)
                if token.kind == "NOT":
                    group.nots += 1
                elif token.kind == "(":
                    groups.append(_Group())
                else:
                    groups.append(_Group(self._quantifier(token)))
                continue
            predicates: list[Draft] = [*self._predicate(token)]
            self._add(group, self._join(And, predicates, token), token)
            depth -= group.nots
            group.nots = 0
            while (token := self._take()).kind == ")" and len(groups) > 1:
                closed = groups.pop()
                condition = self._close(closed, token)
                if closed.quantifier is not None:
                    condition = self._quantified(closed.quantifier, condition, depth, token)
                group = groups[-1]
                self._add(group, condition, token)
                depth -= group.nots + 1
                group.nots = 0
            if token.kind == "OR":
                group.ors.append(self._join(And, group.ands, token))
                group.ands = []
            elif token.kind == "end" and len(groups) == 1:
                return flatten(self._close(group, token))
            elif token.kind != "AND":
                self._fail(token, "AND, OR or ')'" if len(groups) > 1 else "AND, OR or the end")

    def _add(self, group: _Group, condition: Draft, token: Token) -> None:
        for _ in range(group.nots):
            condition = self._branch(Not, [condition], token)
        group.ands.append(condition)

    def _close(self, group: _Group, token: Token) -> Draft:
        return self._join(Or, [*group.ors, self._join(And, group.ands, token)], token)

    def _join(self, operator: type[And | Or], operands: list[Draft], token: Token) -> Draft:
        return operands[0] if len(operands) == 1 else self._branch(operator, operands, token)

    def _branch(self, operator: type[And | Or | Not], operands: list[Draft], token: Token) -> Draft:
        height = 0
        for operand in operands:
            if isinstance(operand, Branch):
                merges = operand.operator is operator and operator is not Not
                height = max(height, operand.height - merges)
        self._check_depth(height + 1, token)
        return Branch(operator, operands, height + 1)

    def _check_depth(self, depth: int, token: Token) -> None:
        if depth > MAX_DEPTH:
            raise LimitError(
                f"conditions are nested more than {MAX_DEPTH} levels deep",
                self.text,
                token.position,
            )

    # Quantifiers.

    def _quantifier(self, token: Token) -> tuple[bool, Window | None]:
        """Read from EXISTS or FORALL to the parenthesis: whether it is FORALL, and the window."""
        if self._alias is not None:
            self._error("a quantifier cannot be inside another one", token)
        word, name = token.kind, self._take()
        if name.kind != "attribute" or not is_bare(name.text):
            self._fail_here(name, f"a plain name for the document, as in {word} d (...)")
        self._alias = name.text
        window = self._window()
        opening = self._take()
        if opening.kind != "(":
            self._fail_here(opening, f"IN LAST, PER or '(' after {word} {name.text[:30]}")
        return word == "FORALL", None if window == Window() else window

    def _fail_here(self, token: Token, expected: str) -> Any:
        """Raise for a token in front of the parenthesis, where no name is a function."""
        self._error(explain_token([token], token, expected), token)

    def _window(self) -> Window:
        count = microseconds = of = None
        if self._accept("IN"):
            last = self._take()
            if not _is_word(last, "LAST"):
                self._fail(last, "LAST after IN")
            size = self._take()
            if size.kind == "number":
                count = self._window_count(size)
            elif size.kind == "string":
                microseconds = self._window_duration(size)
                if not _is_word(preposition := self._take(), "OF"):
                    self._fail(preposition, "OF and the attribute that holds the time")
                of = self._shared_attribute("OF")
            else:
                self._fail(size, "a number of documents, or a duration in quotes, after IN LAST")
        per = []
        if _is_word(self._tokens[self._next], "PER"):
            self._next += 1
            per.append(self._shared_attribute("PER"))
            while self._accept(","):
                per.append(self._shared_attribute("PER"))
        return Window(count, microseconds, of, tuple(per))

    def _window_count(self, token: Token) -> int:
        count = self._read(token, "number")
        if not isinstance(count, int) or count < 1:
            self._error("IN LAST takes a whole number of documents, at least 1", token)
        if count > MAX_WINDOW_COUNT:
            self._error(f"IN LAST takes at most {MAX_WINDOW_COUNT:,} documents", token)
        return int(count)

    def _window_duration(self, token: Token) -> int:
        from bittern.language.durations import duration_value  # noqa: PLC0415  only then

        text = self._read(token, "string")
        try:
            return duration_value(text)
        except ValueError as wrong:
            return int(self._error(str(wrong), token))

    def _shared_attribute(self, word: str) -> str:
        """Read an attribute that event and document both have, so it has no alias in front."""
        token = self._take()
        if token.kind != "attribute":
            self._fail(token, f"an attribute after {word}")
        attribute = self._attribute_of(token)
        if attribute.of_document:
            self._error(
                f"{word} names an attribute of both the event and the document, without "
                f"{self._alias}. before it",
                token,
            )
        return str(attribute.name)

    def _quantified(
        self, quantifier: tuple[bool, Window | None], condition: Draft, depth: int, token: Token
    ) -> Quantified:
        """Make a leaf of the content of the quantifier's parentheses."""
        self._check_depth(depth + (condition.height if isinstance(condition, Branch) else 0), token)
        self._alias = None
        universal, window = quantifier
        return Quantified(universal, flatten(condition), window)


def _is_word(token: Token, word: str) -> bool:
    """Whether a name is one of the words that are only read in front of a quantifier."""
    return token.kind == "attribute" and token.text.isascii() and token.text.upper() == word
