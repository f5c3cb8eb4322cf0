"""The tokens of one text, and what every part of the reader does with them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bittern.errors import ExpressionError, LimitError
from bittern.language.complaints import incomplete
from bittern.language.lexer import Token, TokenCursor, is_complete, tokens
from bittern.language.limits import (
    MAX_FOLDED_ARRAY_BYTES,
    MAX_FOLDED_BYTES,
    MAX_OPERANDS,
    MAX_PARTS,
    MAX_TERM_COPIES,
    MAX_TERM_DEPTH,
    MAX_TERM_HEIGHT,
)
from bittern.language.literals import (
    MARKS,
    TERM,
    attribute_name,
    has_too_many_parts,
    string_value,
)
from bittern.terms.nodes import Call, Constant, Lambda, Term, walk
from bittern.terms.scope import folded
from bittern.terms.unknown import is_any_function_allowed

#: Keywords that are values.
VALUES = {"NULL": None, "TRUE": True, "FALSE": False}
#: Words that are no operand, though they look like names: a number behind them keeps its sign.
NO_OPERANDS = frozenset(
    "case when then else div interval ilike any some all from for as distinct on".split()  # noqa: SIM905
)

#: The calls that say how a text is compared, until it is: without case, and by its bytes. With the
#: name of another collation the first one stays: only Spark knows that.
COLLATE = "collate"
BYTEWISE = "collate by bytes"
FOLDED = "UTF8_LCASE"
#: What does not depend on how texts are compared.
_INDIFFERENT = frozenset(("is null", "isnull", "isnotnull"))
_COLLATED = frozenset(
    "= != < <= > >= <=> in between like contains startswith endswith instr".split()  # noqa: SIM905
)


class FunctionCallError(ExpressionError):
    """A function is called that does not exist, or with too few or too many arguments."""


class TokenReader(TokenCursor):
    """One reading of one text.

    ``hidden`` says that names may stand for quantified predicates or for the presence of another:
    the text is one of ours.
    """

    def __init__(self, text: str, *, hidden: bool) -> None:
        super().__init__(text, _signs_apart(tokens(text)))
        self._hidden = hidden
        self._depth = 0
        self._copies = 0
        self._n_operands = 0
        #: From where to where in the text the left operands of predicates are.
        self.operands: list[tuple[int, int]] = []

    def _condition(self) -> Term:
        """Read anything, up to where it ends."""
        raise NotImplementedError

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _note_operand(self, first: int) -> None:
        """Note that the tokens since the first one are the left operand of a predicate.

        Those inside of it are none: they are not left on their own.
        """
        start, last = self._tokens[first].position, self._tokens[self._next - 1]
        while self.operands and self.operands[-1][0] >= start:
            self.operands.pop()
        self.operands.append((start, last.position + len(last.text)))

    def _is_word(self, word: str) -> bool:
        token = self._peek()
        return token.kind == "attribute" and token.text.lower() == word

    def _word(self, word: str) -> bool:
        if not self._is_word(word):
            return False
        self._next += 1
        return True

    def _read(self, token: Token, read: Any) -> Any:
        try:
            return read(token.text)
        except ValueError as wrong:
            self._error(str(wrong), token)

    def _string(self, token: Token) -> str:
        """The text that a string stands for."""
        if not is_complete(token.text):
            self._error(incomplete(token), token)
        return str(self._read(token, string_value))

    def _count_operand(self, token: Token) -> None:
        self._n_operands += 1
        if self._n_operands > MAX_OPERANDS:
            message = f"an expression with terms has at most {MAX_OPERANDS:,} operands"
            raise LimitError(message, self.text, token.position)

    def _too_deep(self, token: Token) -> Any:
        raise LimitError(
            f"a term is nested more than {MAX_TERM_DEPTH} levels deep",
            self.text,
            token.position,
        )

    def _refuse(self, message: str, token: Token) -> Any:
        """What is well understood, whatever the parser of plain predicates says of it."""
        raise FunctionCallError(message, self.text, token.position)

    def _fail(self, token: Token, expected: str) -> Any:
        found = "the end" if token.kind == "end" else token.text[:30]
        self._error(f"expected {expected}, found {found}", token)

    def _name(self, token: Token) -> str:
        """The canonical name of an attribute."""
        if not is_complete(token.text):
            self._error(incomplete(token), token)
        name = str(self._read(token, attribute_name))
        if name.startswith(TERM) or (name.startswith(MARKS) and not self._hidden):
            self._error(f"an attribute name cannot start with U+{ord(name[0]):04X}", token)
        return self._short(name, token)

    def _short(self, name: str, token: Token) -> str:
        """The name, unless it has too many parts."""
        if has_too_many_parts(name):
            raise LimitError(
                f"an attribute has at most {MAX_PARTS} parts, separated by dots",
                self.text,
                token.position,
            )
        return name

    # Calls.

    def _copied(self, term: Term, token: Token) -> Term:
        """The term, to be put in one more place; what copies hold is counted."""
        for _ in walk(term):
            self._copies += 1
            if self._copies > MAX_TERM_COPIES:
                raise LimitError(
                    "an operand that stands for several is too long: CASE with a value, LIKE ANY "
                    "and chains of comparisons repeat it",
                    self.text,
                    token.position,
                )
        return term

    def _call(self, name: str, arguments: list[Term]) -> Term:
        if any(_collation(each) is not None for each in arguments):
            arguments = self._collated(name, arguments)
        return self._fold(Call(name, tuple(arguments)))

    def _collated(self, name: str, arguments: list[Term]) -> list[Term]:
        """The arguments of a comparison, one of which is collated: all are, and case is folded.

        In other functions only Spark knows what a collation does.
        """
        collations = {*map(_collation, arguments)} - {None}
        if len(collations) > 1:
            self._error("a comparison has one collation, not two", self._peek())
        plain = [_without_collation(each) for each in arguments]
        is_bytewise = collations == {BYTEWISE}
        if name in _INDIFFERENT or (is_bytewise and not is_any_function_allowed()):
            return plain
        # Only Spark knows whether a column has another collation of its own.
        if is_bytewise or name not in _COLLATED:
            if not is_any_function_allowed():
                self._error(
                    f"COLLATE stands beside a comparison, not in {name.upper()}", self._peek()
                )
            collation = Constant(pa.scalar("UTF8_BINARY" if is_bytewise else FOLDED))
            return [
                each if _collation(each) is None else Call(COLLATE, (inner, collation))
                for each, inner in zip(arguments, plain, strict=True)
            ]
        texts = 2 if name in ("like", "ilike") else len(arguments)  # the third is the escape
        return [self._call("lower", [each]) for each in plain[:texts]] + plain[texts:]

    def _fold(self, call: Call) -> Term:
        if not all(isinstance(argument, Constant) for argument in call.arguments):
            return call
        try:
            constant = folded(call)
            constant.as_py()  # which has to be, to be written and compared
        except (ValueError, OverflowError):
            return call
        return call if _is_large(constant) else Constant(constant)

    def _check(self, term: Term) -> None:
        """Refuse a term that is too high, or has a collation outside of a comparison."""
        heights = [(term, 1)]
        while heights:
            node, height = heights.pop()
            if height > MAX_TERM_HEIGHT:
                self._too_deep(self._tokens[0])
            if _collation(node) is not None:
                self._error("COLLATE stands beside a comparison", self._peek())
            below = node.arguments if isinstance(node, Call) else ()
            below = (node.body,) if isinstance(node, Lambda) else below
            heights.extend((each, height + 1) for each in below)


def _collation(term: Term) -> str | None:
    """How a term is to be compared, if that is said."""
    if not isinstance(term, Call) or len(term.arguments) != 1:
        return None
    return term.function if term.function in (COLLATE, BYTEWISE) else None


def by_bytes(term: Term) -> Term:
    """A term that is not compared, and so needs not say that it would be compared by its bytes."""
    return _without_collation(term) if _collation(term) == BYTEWISE else term


def _without_collation(term: Term) -> Term:
    """What is compared, without how."""
    if not isinstance(term, Call) or _collation(term) is None:
        return term
    return term.arguments[0]


def _is_large(constant: pa.Scalar) -> bool:
    """Whether a computed constant would make the name of its term too long."""
    kind = constant.type
    if not constant.is_valid:
        return False
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return len(constant.as_buffer()) > MAX_FOLDED_BYTES
    return bool(pa.types.is_list(kind) and constant.values.nbytes > MAX_FOLDED_ARRAY_BYTES)


def _signs_apart(found: list[Token]) -> list[Token]:
    """The tokens, where a sign behind an operand is an operator: ``a -5`` subtracts."""
    apart: list[Token] = []
    for token in found:
        signed = token.kind == "number" and token.text[0] in "+-"
        if not (signed and apart and _is_operand(apart[-1])):
            apart.append(token)
            continue
        sign, digits = token.text[0], token.text[1:].lstrip()
        start = token.position + len(token.text) - len(digits)
        apart.append(Token(sign, sign, token.position, -1))
        apart.append(Token("number", digits, start, token.number))
    return apart


def _is_operand(token: Token) -> bool:
    """Whether a value ends with this token."""
    if token.kind == "attribute":
        return token.text.lower() not in NO_OPERANDS
    return token.kind in ("number", "string", ")", "]", *VALUES)
