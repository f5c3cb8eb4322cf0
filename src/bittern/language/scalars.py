"""Text to terms, by Spark's grammar and precedence.

``lower(brand) = 'acme' AND price * 2 > 10`` is::

    Call("and", (Call("=", (Call("lower", (Attribute("brand"),)), Constant("acme"))),
                 Call(">", (Call("*", (Attribute("price"), Constant(2))), Constant(10)))))

Operators bind, from the loosest::

    OR   AND   NOT !   [NOT] IN, BETWEEN, LIKE, IS   = < ...   |   ^   &   + - ||   * / % DIV
    unary + - ~   ::type   [element]   .field

A call whose arguments are all constant is evaluated at once, unless that fails: then every event
fails on it, and only where it is needed. The parser calls itself once per level of parentheses, and
levels are limited. O(length).
"""

from __future__ import annotations

import difflib
from typing import Any

import pyarrow as pa

from bittern.errors import ExpressionError, LimitError
from bittern.language.constants import (
    INTERVAL_UNITS,
    constant_number,
    constant_of,
    interval_of,
    typed_constant,
)
from bittern.language.lexer import QUANTIFIERS, Token, is_complete, tokens, without_comments
from bittern.language.limits import MAX_PARTS, MAX_TERM_DEPTH
from bittern.language.literals import (
    TERM,
    attribute_name,
    attribute_of,
    attribute_parts,
    has_too_many_parts,
    string_value,
)
from bittern.language.syntax import Quantified
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term
from bittern.terms.scope import Meaning, folded, functions
from bittern.terms.types import type_of

_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "<=>"))
#: Comparisons that can follow each other, as in ``10 <= a < 30``.
_CHAINS = (frozenset(("<", "<=")), frozenset((">", ">=")))
#: How tightly infix operators bind.
_POWERS = {
    **dict.fromkeys(_COMPARISONS, 1),
    "|": 2,
    "^": 3,
    "&": 4,
    "+": 5,
    "-": 5,
    "||": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    "div": 6,
}
_UNARY = {"-": "negative", "+": "positive", "~": "~"}
_UNARY_POWER = 7
_VALUES = {"NULL": None, "TRUE": True, "FALSE": False}
#: Words that are no operand, though they look like names: a number behind them keeps its sign.
_WORDS = frozenset(
    "case when then else div interval ilike any some all from for as distinct on".split()  # noqa: SIM905
)
_REFUSED = {
    **dict.fromkeys(
        ("rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id", "randstr"),
        "it gives another value each time",
    ),
    **dict.fromkeys(
        ("now", "current_date", "current_timestamp", "curdate", "localtimestamp", "current_time"),
        "the present moment is not part of an event",
    ),
    **dict.fromkeys(
        ("count", "sum", "avg", "mean", "min", "max", "first", "last", "collect_list"),
        "it needs many rows, and a subscription sees one event",
    ),
}


def read_term(text: str) -> Term:
    """Read a term or a condition; raises ``ExpressionError`` or ``LimitError``. O(length)."""
    return _Reader(without_comments(text)).read()


class _Reader:
    """One reading of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _signs_apart(tokens(text))
        self._next = 0
        self._depth = 0

    def read(self) -> Term:
        term = self._condition()
        token = self._peek()
        if token.kind != "end":
            self._fail(token, "an operator or the end")
        self._check_height(term)
        return term

    # Conditions.

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
        term = self._value(0)
        while True:
            negated = self._peek().kind == "NOT"
            token = self._tokens[self._next + negated] if negated else self._peek()
            word = token.kind if token.kind != "attribute" else token.text.lower()
            read = _PREDICATES.get(word)
            if read is None:
                if negated:
                    self._fail(token, "IN, BETWEEN, LIKE or RLIKE after NOT")
                return term
            self._next += 1 + negated
            term = read(self, term, word, negated) if word == "IS" else read(self, term, word)
            if negated and word != "IS":
                term = self._denied(term)

    def _denied(self, term: Term) -> Term:
        """NOT of a predicate; of LIKE ANY, of each pattern."""
        if isinstance(term, Call) and term.function in ("or", "and"):
            return self._call(term.function, [self._call("not", [a]) for a in term.arguments])
        return self._call("not", [term])

    def _is(self, term: Term, _word: str, _negated: bool) -> Term:  # noqa: FBT001
        negated = self._accept("NOT")
        token = self._take()
        word = token.kind if token.kind != "attribute" else token.text.upper()
        if word in ("NULL", "UNKNOWN"):
            found = self._call("is null", [term])
        elif word in ("TRUE", "FALSE"):
            found = self._call(f"is {word.lower()}", [term])
        elif word == "DISTINCT" and self._word("from"):
            found = self._call("not", [self._call("<=>", [term, self._value(1)])])
        else:
            self._fail(token, "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        return self._call("not", [found]) if negated else found

    def _in(self, term: Term, _word: str) -> Term:
        self._expect("(", "'(' after IN")
        if self._peek().kind == ")":
            self._error("IN needs at least one value", self._peek())
        return self._call("in", [term, *self._list(")")])

    def _between(self, term: Term, _word: str) -> Term:
        low = self._value(1)
        self._expect("AND", "AND between the two ends of BETWEEN")
        return self._call("between", [term, low, self._value(1)])

    def _like(self, term: Term, word: str) -> Term:
        name = word.lower()
        if self._peek().text.lower() in ("any", "some", "all") and self._peek(1).kind == "(":
            joins = "and" if self._take().text.lower() == "all" else "or"
            self._take()
            patterns = [self._call(name, [term, each]) for each in self._list(")")]
            return patterns[0] if len(patterns) == 1 else self._call(joins, patterns)
        arguments = [term, self._value(1)]
        if self._accept("ESCAPE"):
            arguments.append(self._value(1))
        return self._call(name, arguments)

    def _rlike(self, term: Term, _word: str) -> Term:
        return self._call("rlike", [term, self._value(1)])

    # Values.

    def _value(self, least: int) -> Term:
        """A value of operators that bind more tightly than ``least``."""
        left = self._unary()
        chained: str | None = None
        while True:
            token = self._peek()
            operator = self._operator(token)
            power = _POWERS.get(operator, 0)
            if power <= least:
                return left
            self._take()
            right = self._value(power)
            if chained is not None and any(pair >= {chained, operator} for pair in _CHAINS):
                assert isinstance(left, Call)
                middle = left.arguments[-1] if left.function != "and" else left.arguments[-1].arguments[1]  # type: ignore[union-attr]  # noqa: E501
                left = self._call("and", [left, self._call(operator, [middle, right])])
            else:
                left = self._call(operator, [left, right])
            chained = operator if operator in _COMPARISONS and least < 1 else None

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
                if token.kind != "attribute":
                    self._fail(token, "the name of a field after '.'")
                for part in attribute_parts(attribute_name(token.text)):
                    if isinstance(term, Attribute):
                        term = self._inside(term, part, token)
                    else:
                        term = self._call(".", [term, Constant(pa.scalar(part))])
            elif self._word("collate"):
                token = self._take()
                term = self._call("collate", [term, Constant(pa.scalar(token.text.upper()))])
            else:
                return term

    def _inside(self, term: Attribute, key: str, token: Token) -> Term:
        """``m['k']`` is the attribute ``m.k``, and so is ``(m).k``."""
        return Attribute(self._short(attribute_of([*attribute_parts(term.name), key]), token))

    def _primary(self) -> Term:
        token = self._take()
        kind = token.kind
        if kind in _VALUES:
            return constant_of(_VALUES[kind])
        if kind in ("number", "string"):
            return self._literal(token)
        if kind in ("DATE", "TIMESTAMP"):
            return self._typed(kind.lower(), self._take())
        if kind == "(":
            term = self._condition()
            self._expect(")", "')'")
            return term
        if kind in QUANTIFIERS:
            return self._quantified(token)
        if kind != "attribute":
            self._fail(token, "a value")
        word, following = token.text.lower(), self._peek()
        if following.kind == "(":
            return self._function(token)
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

    def _quantified(self, token: Token) -> Term:
        """EXISTS d (...) or FORALL d (...), which has no terms inside."""
        from bittern.language.parser import Parser
        from bittern.language.quantifiers import hidden_name

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
        return token.kind not in ("attribute", "number", "string", "(", "NOT", "NULL", "TRUE",
                                  "FALSE", "DATE", "TIMESTAMP", "-", "+", "~", "!") or (
            token.kind == "attribute" and token.text.lower() in ("ilike", "div", "then", "end"))

    def _name(self, token: Token) -> str:
        return self._short(str(self._read(token, attribute_name)), token)

    def _short(self, name: str, token: Token) -> str:
        if has_too_many_parts(name):
            raise LimitError(
                f"an attribute has at most {MAX_PARTS} parts, separated by dots",
                self.text,
                token.position,
            )
        return name

    def _literal(self, token: Token) -> Term:
        if token.kind == "number":
            return Constant(self._read(token, constant_number))
        if not is_complete(token.text):
            self._error("this string has no closing quote", token)
        text = self._read(token, string_value)
        while self._peek().kind == "string":
            text += self._read(self._take(), string_value)
        return Constant(pa.scalar(text, pa.string()))

    def _typed(self, kind: str, token: Token) -> Term:
        """The constant of a word and a string: DATE '2024-01-31'."""
        return Constant(self._read(token, lambda raw: typed_constant(kind, string_value(raw))))

    def _interval(self, token: Token) -> Term:
        """INTERVAL '1' DAY, INTERVAL '1-2' YEAR TO MONTH, INTERVAL 3 DAYS 2 HOURS."""
        pieces: list[tuple[str, str]] = []
        while self._peek().kind in ("string", "number"):
            amount = self._take()
            raw = string_value(amount.text) if amount.kind == "string" else amount.text
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
            self._error(str(wrong), token)

    def _is_unit(self, token: Token) -> bool:
        return token.kind == "attribute" and token.text.lower().rstrip("s") in INTERVAL_UNITS

    def _case(self) -> Term:
        value = None if self._is_word("when") else self._condition()
        arguments: list[Term] = []
        while self._word("when"):
            condition = self._condition()
            if value is not None:
                condition = self._call("=", [value, condition])
            if not self._word("then"):
                self._fail(self._peek(), "THEN")
            arguments += [condition, self._condition()]
        if not arguments:
            self._fail(self._peek(), "WHEN")
        arguments.append(self._condition() if self._word("else") else constant_of(None))
        if not self._word("end"):
            self._fail(self._peek(), "WHEN, ELSE or END")
        return self._call("case", arguments)

    # Functions.

    def _function(self, token: Token) -> Term:
        name = token.text.lower()
        opening = self._take()
        if name in ("cast", "try_cast"):
            term = self._condition()
            if not self._word("as"):
                self._fail(self._peek(), f"AS and a type in {name.upper()}")
            kind = self._type()
            self._expect(")", "')'")
            return self._fold(Call(name, (term,), kind))
        if name == "extract":
            field = self._take().text.lower()
            if not self._word("from"):
                self._fail(self._peek(), "FROM in EXTRACT")
            arguments: list[Term] = [Constant(pa.scalar(field)), self._condition()]
            self._expect(")", "')'")
        elif name == "trim" and (special := self._trim()) is not None:
            name, arguments = special
        else:
            arguments = self._arguments(name)
        if name in ("date_part", "datepart"):
            name = "extract"
        if name in ("position",) and len(arguments) == 1:
            self._error("position takes two arguments, as in position('b' IN a)", opening)
        self._check_function(name, len(arguments), token)
        return self._call(name, arguments)

    def _trim(self) -> tuple[str, list[Term]] | None:
        """TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
        sides = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
        start = self._next
        side = self._peek().text.lower()
        name = "trim"
        if side in sides and self._peek(1).kind not in (")", ","):
            self._take()
            name = sides[side]
        characters = [] if self._is_word("from") else [self._condition()]
        if not self._word("from"):
            self._next = start
            return None
        text = self._condition()
        self._expect(")", "')'")
        return name, [*characters, text]

    def _arguments(self, name: str) -> list[Term]:
        """The arguments up to ``)``; SUBSTRING has FROM and FOR, POSITION IN, OVERLAY PLACING."""
        if self._accept(")"):
            return []
        between = {
            "substring": ("from", "for"),
            "substr": ("from", "for"),
            "overlay": ("placing", "from", "for"),
        }.get(name, ())
        arguments = [self._value(0) if name == "position" else self._argument()]
        while True:
            token = self._take()
            if token.kind == ")":
                return arguments
            is_word = token.kind == "attribute" and token.text.lower() in between
            if token.kind != "," and not is_word and not (name == "position" and token.kind == "IN"):
                self._fail(token, "',' or ')'")
            arguments.append(self._argument())

    def _argument(self) -> Term:
        """An argument, which may be a function itself: ``x -> ...`` or ``(x, y) -> ...``."""
        if self._peek().kind == "(":
            at = self._next + 1
            names = []
            while self._tokens[at].kind == "attribute" and self._tokens[at + 1].kind in (",", ")"):
                names.append(self._tokens[at])
                at += 2
                if self._tokens[at - 1].kind == ")":
                    break
            if names and self._tokens[at].kind == "->":
                self._next = at + 1
                return Lambda(tuple(map(self._parameter, names)), self._condition())
        return self._condition()

    def _parameter(self, token: Token) -> str:
        name = self._name(token)
        if "." in name or "`" in name:
            self._error("the parameter of -> is a plain name", token)
        return name

    def _check_function(self, name: str, count: int, token: Token) -> None:
        known = functions()
        meaning = known.get(name)
        if meaning is None or not name.isidentifier():
            if name in _REFUSED:
                self._error(f"{name} cannot stand in a subscription: {_REFUSED[name]}", token)
            near = difflib.get_close_matches(name, filter(str.isidentifier, known), 1)
            hint = f": did you mean {near[0]}?" if near else ""
            self._error(f"there is no function {name[:40]}{hint}", token)
        elif count < meaning.least or 0 <= meaning.most < count:
            self._error(f"{name} takes {_how_many(meaning)}, not {count}", token)

    def _type(self) -> pa.DataType:
        token = self._take()
        name = token.text
        if self._accept("("):
            pieces = []
            while (piece := self._take()).kind not in (")", "end", "other"):
                pieces.append(piece.text)
            name += f"({''.join(pieces)})"
        try:
            return type_of(name)
        except ValueError as wrong:
            self._error(str(wrong), token)

    def _list(self, closing: str) -> list[Term]:
        """Terms with commas between them, up to a closing parenthesis."""
        found = [self._condition()]
        while self._accept(","):
            found.append(self._condition())
        self._expect(closing, f"',' or '{closing}'")
        return found

    def _call(self, name: str, arguments: list[Term]) -> Term:
        return self._fold(Call(name, tuple(arguments)))

    def _fold(self, call: Call) -> Term:
        if not all(isinstance(argument, Constant) for argument in call.arguments):
            return call
        try:
            return Constant(folded(call))
        except (ValueError, KeyError):
            return call

    def _check_height(self, term: Term) -> None:
        heights = [(term, 1)]
        while heights:
            node, height = heights.pop()
            if height > MAX_TERM_DEPTH:
                self._too_deep(self._tokens[0])
            below = node.arguments if isinstance(node, Call) else ()
            below = (node.body,) if isinstance(node, Lambda) else below
            heights.extend((each, height + 1) for each in below)

    # Tokens.

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        if token.kind not in ("end", "other"):
            self._next += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._peek().kind != kind:
            return False
        self._next += 1
        return True

    def _expect(self, kind: str, expected: str) -> None:
        token = self._take()
        if token.kind != kind:
            self._fail(token, expected)

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

    def _too_deep(self, token: Token) -> Any:
        raise LimitError(
            f"an expression is nested more than {MAX_TERM_DEPTH} levels deep",
            self.text,
            token.position,
        )

    def _error(self, message: str, token: Token) -> Any:
        raise ExpressionError(message, self.text, token.position) from None

    def _fail(self, token: Token, expected: str) -> Any:
        found = "the end" if token.kind == "end" else token.text[:30]
        self._error(f"expected {expected}, found {found}", token)


def _how_many(meaning: Meaning) -> str:
    least, most = meaning.least, meaning.most
    if most < 0:
        return f"at least {least} argument{'s' * (least != 1)}"
    if least == most:
        return f"{least} argument{'s' * (least != 1)}"
    return f"{least} to {most} arguments"


def _signs_apart(found: list[Token]) -> list[Token]:
    """The tokens, where a sign behind an operand is an operator: ``a -5`` subtracts."""
    apart: list[Token] = []
    for token in found:
        signed = token.kind == "number" and token.text[0] in "+-"
        if signed and apart and _is_operand(apart[-1]):
            sign, digits = token.text[0], token.text[1:].lstrip()
            start = token.position + len(token.text) - len(digits)
            apart.append(Token(sign, sign, token.position, -1))
            token = Token("number", digits, start, token.number)  # noqa: PLW2901
        apart.append(token)
    return apart


def _is_operand(token: Token) -> bool:
    """Whether a value ends with this token."""
    if token.kind == "attribute":
        return token.text.lower() not in _WORDS
    return token.kind in ("number", "string", ")", "]", *_VALUES)


_PREDICATES: dict[str, Any] = {
    "IS": _Reader._is,
    "IN": _Reader._in,
    "BETWEEN": _Reader._between,
    "LIKE": _Reader._like,
    "ilike": _Reader._like,
    "RLIKE": _Reader._rlike,
    "REGEXP": _Reader._rlike,
}
