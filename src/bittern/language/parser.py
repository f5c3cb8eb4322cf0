"""Text to syntax tree, as Spark would read it in ``events.filter(text)``.

``a = 1 OR NOT b < 2 AND (c OR d IN (3, 4))`` is read with one group per open parenthesis::

    group            finished OR operands     AND operands so far     NOTs waiting
    whole text       [a = 1]                  [NOT b < 2]             0
      ( ...          [c = TRUE]               [d IN (3, 4)]           0

NOT binds tighter than AND, AND tighter than OR; a predicate is read in one go, so BETWEEN keeps
its own AND. The groups are a list, not Python's stack: no input overflows it. Reading is
O(length) in time and memory, and limits are checked on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bittern.errors import ExpressionError, LimitError
from bittern.language.complaints import explain_token, incomplete
from bittern.language.lexer import Token, is_complete, tokens
from bittern.language.limits import MAX_DEPTH, MAX_LENGTH, MAX_PREDICATES
from bittern.language.literals import (
    attribute_name,
    date_literal,
    number_value,
    string_value,
    timestamp_literal,
)
from bittern.language.patterns import LikeParts, RegexTooLargeError, compile_regex, like_parts
from bittern.language.syntax import (
    And,
    Between,
    Compare,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Regex,
)
from bittern.language.trees import Branch, Draft, flatten

if TYPE_CHECKING:
    from collections.abc import Callable

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KEYWORD_VALUES = {"TRUE": True, "FALSE": False, "NULL": None}
_LITERAL_STARTS = frozenset(("number", "string", "DATE", "TIMESTAMP", *_KEYWORD_VALUES))
#: Kinds that may stand together in one IN or BETWEEN share a family.
_FAMILIES = {"date": "time", "timestamp": "time"}
_READERS: dict[str, Callable[[str], Any]] = {
    "attribute": attribute_name,
    "number": number_value,
    "string": string_value,
    "date": date_literal,
    "timestamp": timestamp_literal,
}


def parse(text: str) -> Expression:
    """Read a Boolean SQL expression; raises ``ExpressionError`` or ``LimitError``. O(length)."""
    return Parser(text).parse()


class _Group:
    """What has been read since an opening parenthesis."""

    __slots__ = ("ands", "nots", "ors")

    def __init__(self) -> None:
        self.ors: list[Draft] = []
        self.ands: list[Draft] = []
        self.nots = 0


class Parser:
    """One reading of one text. Subclasses change what stands for names, values and patterns."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ExpressionError(
                f"an expression is a string, not {type(text).__name__}", str(text)[:100], 0
            )
        if len(text) > MAX_LENGTH:
            raise LimitError(
                f"an expression has at most {MAX_LENGTH:,} characters, this one has {len(text):,}",
                text,
                MAX_LENGTH,
            )
        self.text = text
        self._tokens = tokens(text)
        self._next = 0
        self._n_predicates = 0

    # What stands in the tree for an attribute, a literal, a pattern.

    def _name(self, token: Token, name: str) -> Any:  # noqa: ARG002
        return name

    def _value(self, token: Token, kind: str, value: Any) -> Any:  # noqa: ARG002
        return Literal(value)

    def _like(self, token: Token, escape: Token | None, parts: LikeParts) -> Any:  # noqa: ARG002
        return string_value(token.text)

    def _regex(self, token: Token, pattern: str) -> Any:  # noqa: ARG002
        return pattern

    # Conditions: AND, OR, NOT and parentheses.

    def parse(self) -> Expression:
        """Read the whole text."""
        groups = [_Group()]
        depth = 0
        while True:
            group = groups[-1]
            token = self._take()
            if token.kind in ("(", "NOT"):
                depth += 1
                self._check_depth(depth, token)
                if token.kind == "NOT":
                    group.nots += 1
                else:
                    groups.append(_Group())
                continue
            self._add(groups[-1], self._predicate(token), token)
            depth -= group.nots
            group.nots = 0
            while (token := self._take()).kind == ")" and len(groups) > 1:
                condition = self._close(groups.pop(), token)
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

    # Predicates.

    def _predicate(self, token: Token) -> Expression:
        self._count(token)
        if token.kind == "attribute":
            return self._on_attribute(token)
        if token.kind not in _LITERAL_STARTS:
            self._fail(token, "a condition")
        following = self._tokens[self._next].kind
        if token.kind in _KEYWORD_VALUES and following not in _FLIPPED:
            return Constant(_KEYWORD_VALUES[token.kind])
        literal, _ = self._literal(token)
        operator = self._take()
        if operator.kind not in _FLIPPED:
            self._fail(operator, "a comparison with an attribute after the constant")
        right = self._take()
        if right.kind in _LITERAL_STARTS:
            self._error("both sides are constants: one of them must be an attribute", right)
        return Compare(self._attribute(right), _FLIPPED[operator.kind], literal)

    def _on_attribute(self, token: Token) -> Expression:
        following = self._tokens[self._next]
        if following.kind == "string":
            # most likely an operator that does not exist here: say so before anything else
            self._fail(following, "an operator")
        attribute = self._attribute(token)
        if following.kind in _FLIPPED:
            self._next += 1
            operand, _ = self._literal(self._take())
            return Compare(attribute, following.kind, operand)
        if following.kind == "IS":
            self._next += 1
            negated = self._accept("NOT")
            self._expect("NULL", "NULL after IS" if negated else "NULL or NOT NULL after IS")
            return Not(IsNull(attribute)) if negated else IsNull(attribute)
        negated = self._accept("NOT")
        operator = self._tokens[self._next]
        if operator.kind == "BETWEEN":
            self._next += 1
            positive: Expression = self._between(attribute)
        elif operator.kind == "IN":
            self._next += 1
            positive = self._in(attribute)
        elif operator.kind == "LIKE":
            self._next += 1
            positive = self._like_predicate(attribute)
        elif operator.kind in ("RLIKE", "REGEXP"):
            self._next += 1
            positive = self._regex_predicate(attribute)
        elif negated:
            self._fail(operator, "IN, BETWEEN, LIKE or RLIKE after NOT")
        else:
            return Compare(attribute, "=", Literal(True))
        return Not(positive) if negated else positive

    def _between(self, attribute: str) -> Between:
        low, low_kind = self._literal(self._take())
        self._expect("AND", "AND between the two ends of BETWEEN")
        token = self._take()
        high, high_kind = self._literal(token)
        self._same_family(low_kind, high_kind, token, "BETWEEN")
        return Between(attribute, low, high)

    def _in(self, attribute: str) -> In:
        self._expect("(", "'(' after IN")
        token = self._take()
        if token.kind == ")":
            self._error("IN needs at least one value", token)
        literal, known = self._literal(token)
        values = [literal]
        while (separator := self._take()).kind == ",":
            token = self._take()
            self._count(token)
            literal, kind = self._literal(token)
            self._same_family(known, kind, token, "IN")
            known = kind if known == "null" else known
            values.append(literal)
        if separator.kind != ")":
            self._fail(separator, "',' or ')' in the list of IN")
        return In(attribute, tuple(values))

    def _same_family(self, first: str, second: str, token: Token, where: str) -> None:
        families = {_FAMILIES.get(kind, kind) for kind in (first, second) if kind != "null"}
        if len(families) > 1:
            self._error(f"{where} mixes a {first} with a {second}", token)

    def _like_predicate(self, attribute: str) -> Like:
        pattern = self._string("a string as the pattern of LIKE")
        text = self._read(pattern, "string")
        escape_token, escape = None, "\\"
        if self._accept("ESCAPE"):
            escape_token = self._string("a string of one character after ESCAPE")
            escape = self._read(escape_token, "string")
            if len(escape) != 1 or escape > "\uffff":
                self._error("ESCAPE needs a string of exactly one character", escape_token)
        try:
            parts = like_parts(text, escape)
        except ValueError as wrong:
            self._error(str(wrong), pattern)
        return Like(attribute, self._like(pattern, escape_token, parts), escape)

    def _regex_predicate(self, attribute: str) -> Regex:
        token = self._string("a string as the regular expression")
        pattern = self._read(token, "string")
        try:
            compile_regex(pattern)
        except RegexTooLargeError as wrong:
            raise LimitError(str(wrong), self.text, token.position) from None
        except ValueError as wrong:
            self._error(str(wrong), token)
        return Regex(attribute, self._regex(token, pattern))

    # Attributes and literals.

    def _attribute(self, token: Token) -> Any:
        following = self._tokens[self._next]
        if token.kind != "attribute":
            self._fail(token, "an attribute")
        if following.kind == "(":
            self._error(f"functions such as {token.text[:30]}(...) are not supported", token)
        return self._name(token, self._read(token, "attribute"))

    def _literal(self, token: Token) -> tuple[Any, str]:
        """Read the literal that starts with a token; its kind comes along."""
        kind = token.kind
        if kind in _KEYWORD_VALUES:
            return Literal(_KEYWORD_VALUES[kind]), "null" if kind == "NULL" else "boolean"
        if kind in ("DATE", "TIMESTAMP"):
            kind, token = kind.lower(), self._take()
        elif kind not in ("number", "string"):
            self._fail(token, "a constant")
        return self._value(token, kind, self._read(token, kind)), kind

    def _string(self, expected: str) -> Token:
        token = self._take()
        if token.kind != "string":
            self._fail(token, expected)
        return token

    def _read(self, token: Token, kind: str) -> Any:
        if not is_complete(token.text):
            self._error(incomplete(token), token)
        try:
            return _READERS[kind](token.text)
        except ValueError as wrong:
            self._error(str(wrong), token)

    # Tokens.

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind not in ("end", "other"):  # both come last, and stay
            self._next += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._tokens[self._next].kind != kind:
            return False
        self._next += 1
        return True

    def _expect(self, kind: str, expected: str) -> None:
        token = self._take()
        if token.kind != kind:
            self._fail(token, expected)

    def _count(self, token: Token) -> None:
        self._n_predicates += 1
        if self._n_predicates > MAX_PREDICATES:
            raise LimitError(
                f"an expression has at most {MAX_PREDICATES:,} predicates, "
                "every value of IN being one",
                self.text,
                token.position,
            )

    def _error(self, message: str, token: Token) -> Any:
        raise ExpressionError(message, self.text, token.position) from None

    def _fail(self, token: Token, expected: str) -> Any:
        """Complain about a token that stands where something else was expected."""
        self._error(explain_token(self._tokens, token, expected), token)
