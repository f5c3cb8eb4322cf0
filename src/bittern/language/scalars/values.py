"""Values: operators, constants, casts, CASE."""

from __future__ import annotations

import pyarrow as pa

from bittern.errors import ExpressionError
from bittern.language.constants import (
    INTERVAL_UNITS,
    constant_number,
    constant_of,
    interval_of,
    typed_constant,
)
from bittern.language.lexer import QUANTIFIERS, Token
from bittern.language.limits import MAX_TERM_DEPTH
from bittern.language.literals import (
    HIDDEN,
    MARKS,
    TERM,
    attribute_of,
    attribute_parts,
)
from bittern.language.parser import Parser
from bittern.language.quantifiers import hidden_name
from bittern.language.scalars.functions import FunctionReader
from bittern.language.scalars.refused import IS_PRESENT, PRESENT_WORDS
from bittern.language.scalars.tokens import BYTEWISE, COLLATE, FOLDED, NO_OPERANDS, VALUES
from bittern.language.syntax import Quantified
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term
from bittern.terms.unknown import is_any_function_allowed

#: Operators that compare.
COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "<=>"))
#: Comparisons that can follow each other, as in ``10 <= a < 30``.
_CHAINS = (frozenset(("<", "<=")), frozenset((">", ">=")))
_ONE_WAY = frozenset().union(*_CHAINS)
#: How tightly infix operators bind.
_POWERS = {
    **dict.fromkeys(COMPARISONS, 1),
    "|": 2,
    "^": 3,
    "&": 4,
    **dict.fromkeys(("<<", ">>", ">>>"), 5),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%", "div"), 7),
}
_SHIFTS = {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"}
_UNARY = {"-": "negative", "+": "positive", "~": "~"}


class ValueReader(FunctionReader):
    """Reads values."""

    def _value(self, least: int) -> Term:
        """A value of operators that bind more tightly than ``least``."""
        first = self._next
        left = middle = self._unary()
        chained: str | None = None  # the comparison just read, if another may follow its right side
        while True:
            token = self._peek()
            operator = self._operator(token)
            power = _POWERS.get(operator, 0)
            if power <= least:
                return left
            if operator in COMPARISONS and not least and chained is None:
                self._note_operand(first)
            self._take()
            right = self._value(power)
            if chained is not None and any(way >= {chained, operator} for way in _CHAINS):
                link = self._call(operator, [self._copied(middle, token), right])
                left = self._call("and", [left, link])
            else:
                if chained in _ONE_WAY and operator in _ONE_WAY:
                    self._error(
                        "a chain of comparisons must go one way, such as 10 <= a < 30", token
                    )
                left = self._call(_SHIFTS.get(operator, operator), [left, right])
            is_link = operator in COMPARISONS and not isinstance(right, Constant)
            chained, middle = (operator if is_link else None), right

    def _operator(self, token: Token) -> str:
        if token.kind == "attribute" and token.text.lower() == "div":
            return "div"
        return token.kind

    def _unary(self) -> Term:
        signs = []
        while self._peek().kind in _UNARY:
            signs.append(self._take())
        if len(signs) > MAX_TERM_DEPTH:
            self._too_deep(signs[0])
        term = self._postfix(self._primary())
        for sign in reversed(signs):
            term = self._call(_UNARY[sign.kind], [term])
        return term

    def _postfix(self, term: Term) -> Term:
        while True:
            if self._accept("["):
                element = self._condition()
                self._expect("]", "']' behind the element")
                key = element.scalar.as_py() if isinstance(element, Constant) else None
                if isinstance(term, Attribute) and isinstance(key, str) and key and TERM not in key:
                    term = self._inside(term, key, self._peek())
                else:
                    term = self._call("[]", [term, element])
            elif self._accept("::"):
                term = Call("cast", (term,), self._type())
                term = self._fold(term)
            elif self._accept("."):
                token = self._take()
                field = self._name(token) if token.kind == "attribute" else HIDDEN
                if field.startswith(MARKS):  # a quantified predicate is no field
                    self._fail(token, "the name of a field after '.'")
                for part in attribute_parts(field):
                    if isinstance(term, Attribute):
                        term = self._inside(term, part, token)
                    else:
                        term = self._call(".", [term, Constant(pa.scalar(part))])
            elif self._word("collate"):
                token = self._take()
                if token.kind == "string":
                    self._fail(token, "the name of a collation without quotes")
                term = self._with_collation(term, token)
            elif self._peek().kind == ":":
                self._refuse(
                    "':' leads into a variant, whose fields are attributes of their own: "
                    "for v:a.b write a.b",
                    self._peek(),
                )
            else:
                return term

    def _with_collation(self, term: Term, token: Token) -> Term:
        """The term, to be compared by the collation that a name or a string says."""
        raw = self._string(token) if token.kind == "string" else token.text
        name = raw.upper().removeprefix("SYSTEM.BUILTIN.")
        if name == FOLDED:
            return Call(COLLATE, (term,))
        if name != "UTF8_BINARY":
            if is_any_function_allowed():
                return Call(COLLATE, (term, Constant(pa.scalar(raw))))
            return Constant(
                self._error(
                    f"there is no collation {token.text[:40]} here: use UTF8_BINARY or UTF8_LCASE",
                    token,
                )
            )
        return Call(BYTEWISE, (term,))

    def _inside(self, term: Attribute, key: str, token: Token) -> Term:
        """``m['k']`` is the attribute ``m.k``, and so is ``(m).k``."""
        return Attribute(self._short(attribute_of([*attribute_parts(term.name), key]), token))

    def _primary(self) -> Term:
        token = self._take()
        self._count_operand(token)
        kind = token.kind
        if kind in VALUES:
            return constant_of(VALUES[kind])
        if kind in ("number", "string"):
            return self._literal(token)
        if kind in ("DATE", "TIMESTAMP"):
            return self._typed(kind.lower(), self._take())
        if kind == "(":
            terms = self._list(")")
            return terms[0] if len(terms) == 1 else self._call("struct", terms)
        if kind in QUANTIFIERS:
            return self._quantified(token)
        if kind in ("LIKE", "RLIKE", "REGEXP") and self._peek().kind == "(":
            return self._function(token)
        if kind != "attribute":
            self._fail(token, "a value")
        word, following = token.text.lower(), self._peek()
        if following.kind == "(":
            return self._function(token)
        if word == "select" and self._begins_subquery(following):
            self._refuse("a subquery cannot stand in a subscription, which sees one event", token)
        if following.kind == "string" and word in ("x", "timestamp_ntz", "timestamp_ltz"):
            return self._typed(word, self._take())
        if word == "interval" and following.kind in ("string", "number"):
            return self._interval(token)
        if word == "case" and not self._ends_operand(following):
            return self._case()
        if following.kind == "->":
            self._take()
            return Lambda((self._parameter(token),), self._condition())
        return Attribute(self._name(token))

    def _begins_subquery(self, token: Token) -> bool:
        """Whether this is what SELECT selects; an attribute may have that name."""
        if token.kind == "*":
            after = self._peek(1)
            return after.kind == "attribute" and after.text.lower() == "from"
        is_name = token.kind == "attribute" and token.text.lower() not in NO_OPERANDS
        return is_name or token.kind in ("number", "string", *VALUES)

    def _quantified(self, token: Token) -> Term:
        """EXISTS d (...) or FORALL d (...), which has no terms inside."""
        open_ = 0
        while (each := self._take()).kind not in ("end", "other"):
            open_ += (each.kind == "(") - (each.kind == ")")
            if each.kind == ")" and not open_:
                break
        piece = self.text[token.position : each.position + len(each.text)]
        try:
            tree = Parser(piece).parse()
        except ExpressionError as wrong:
            at = token.position + wrong.position
            raise type(wrong)(wrong.message, self.text, at) from None
        assert isinstance(tree, Quantified), piece
        return Call("isnotnull", (Attribute(hidden_name(tree)),))

    def _ends_operand(self, token: Token) -> bool:
        """Whether a name in front of this token is complete: ``case = 5`` is an attribute."""
        return token.kind not in (
            "attribute",
            "number",
            "string",
            "(",
            "NOT",
            "NULL",
            "TRUE",
            "FALSE",
            "DATE",
            "TIMESTAMP",
            "-",
            "+",
            "~",
            "!",
        ) or (token.kind == "attribute" and token.text.lower() in ("ilike", "div", "then", "end"))

    def _literal(self, token: Token) -> Term:
        if token.kind == "number":
            return Constant(self._read(token, constant_number))
        text = self._string(token)
        while self._peek().kind == "string":
            text += self._string(self._take())
        return Constant(pa.scalar(text, pa.string()))

    def _typed(self, kind: str, token: Token) -> Term:
        """The constant of a word and a string: DATE '2024-01-31'."""
        text = self._string(token)
        if kind != "x" and (word := text.strip().lower()) in PRESENT_WORDS:
            self._refuse(f"{word} cannot stand in a subscription: {IS_PRESENT}", token)
        return Constant(self._read(token, lambda _: typed_constant(kind, text)))

    def _interval(self, token: Token) -> Term:
        """INTERVAL '1' DAY, INTERVAL '1-2' YEAR TO MONTH, INTERVAL 3 DAYS 2 HOURS."""
        pieces: list[tuple[str, str]] = []
        while self._peek().kind in ("string", "number"):
            amount = self._take()
            raw = self._string(amount) if amount.kind == "string" else amount.text
            unit = ""
            if self._is_unit(self._peek()):
                unit = self._take().text
                if self._word("to"):
                    unit += " TO " + self._take().text
            pieces.append((raw, unit))
            if not unit:
                break
        try:
            return Constant(interval_of(pieces))
        except ValueError as wrong:
            return Constant(self._error(str(wrong), token))

    def _is_unit(self, token: Token) -> bool:
        return token.kind == "attribute" and token.text.lower().rstrip("s") in INTERVAL_UNITS

    def _case(self) -> Term:
        value = None if self._is_word("when") else self._condition()
        arguments: list[Term] = []
        while self._word("when"):
            token = self._peek()
            condition = self._condition()
            if value is not None:
                condition = self._call("=", [self._copied(value, token), condition])
            if not self._word("then"):
                self._fail(self._peek(), "THEN")
            arguments += [condition, self._condition()]
        if not arguments:
            self._fail(self._peek(), "WHEN")
        arguments.append(self._condition() if self._word("else") else constant_of(None))
        if not self._word("end"):
            self._fail(self._peek(), "WHEN, ELSE or END")
        return self._call("case", arguments)
