"""Selectors of JMS: SQL-92's conditions over the properties of a message.

A selector is read into a small tree, and each node says when it is TRUE and when it is FALSE; what
is neither is unknown, as in SQL. NOT swaps the two, so no negation is left around anything::

    NOT (n = 5)     n != 5, or n is a string or a Boolean

which is how JMS differs from us: there, values of different kinds are compared, and are not equal.
Properties are attributes by name. Numbers with a fraction are doubles, as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from bittern.errors import RuleError, brief
from bittern.imports import conditions as say
from bittern.imports.jms_selectors.conditions import (
    Among,
    Arithmetic,
    Compared,
    Holds,
    JmsConstant,
    LikePattern,
    Operand,
    Property,
    PropertyIsNull,
    Same,
    properties_in,
    written,
)
from bittern.imports.truths import Both, Condition, Decided, Opposite, Told

#: Characters of a selector, and levels of parentheses and NOT.
MAX_TEXT = 65_536
MAX_DEPTH = 50
#: Comparisons of conditions: each doubles what is inside it.
MAX_SAME = 8

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?)
    |(?P<integer>0[xX][0-9a-fA-F]+|[0-9]+)[lL]?
    |(?P<text>'(?:[^']|'')*')
    |(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<sign><>|<=|>=|[=<>+\-*/%(),])""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    *("AND", "OR", "NOT", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE", "NULL", "TRUE", "FALSE"),
}


def jms(selector: Any) -> str:
    """The expression of a selector."""
    if not isinstance(selector, str):
        raise RuleError(f"a selector is text, not {type(selector).__name__}")
    if len(selector) > MAX_TEXT:
        raise RuleError(f"a selector has at most {MAX_TEXT:,} characters")
    return say.printed(_Reader(selector).read().true())


# Reading


class _Token(NamedTuple):
    kind: str
    text: str
    position: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these key words or signs."""
        return self.kind in ("key", "sign") and self.text in words


def place_in(text: str, position: int) -> str:
    """A position as messages show it."""
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - (text.rfind(chr(10), 0, position) + 1) + 1}"


class _Reader:
    """One selector. OR, AND, NOT, comparisons, sums, products: each level is one method."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.at = 0
        self.depth = self.same = 0

    def _split(self) -> Iterator[_Token]:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                self._refuse(f"{brief(self.text[position])} has no meaning here", position)
            kind, found = str(match.lastgroup), match[0]
            if kind == "word" and found.upper() in _WORDS:
                kind, found = "key", found.upper()
            if kind != "space":
                yield _Token(kind, found, position)
            position = match.end()
        yield _Token("end", "", len(self.text))

    def _refuse(self, reason: str, position: int | None = None) -> NoReturn:
        if position is None:
            position = self.tokens[self.at].position
        raise RuleError(reason, place_in(self.text, position))

    def _takes(self, *words: str) -> str:
        """The next token if it is one of these, else nothing."""
        token = self.tokens[self.at]
        if not token.says(*words):
            return ""
        self.at += 1
        return token.text

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            found = self.tokens[self.at]
            shown = brief(found.text) if found.kind != "end" else "the end"
            self._refuse(f"{word} is expected here, not {shown}")

    def read(self) -> Condition:
        found = self._condition(self._either())
        if self.tokens[self.at].kind != "end":
            self._refuse(f"{brief(self.tokens[self.at].text)} is not expected here")
        return found

    def _condition(self, found: Condition | Operand) -> Condition:
        if isinstance(found, Condition):
            return found
        if isinstance(found, Property):
            return Told(Holds(found.name), found.name.strip("`"))
        if isinstance(found, JmsConstant) and isinstance(found.value, bool):
            return Decided(found.value)
        return self._refuse("a condition is expected before this, not a value")

    def _value(self, found: Condition | Operand) -> Operand:
        if isinstance(found, Condition):
            self._refuse("a value is expected before this, not a condition")
        return found

    def _either(self) -> Condition | Operand:
        found = self._all()
        parts = [found]
        while self._takes("OR"):
            parts.append(self._all())
        if len(parts) == 1:
            return found
        return Both(tuple(map(self._condition, parts)), either=True)

    def _all(self) -> Condition | Operand:
        found = self._negated()
        parts = [found]
        while self._takes("AND"):
            parts.append(self._negated())
        return found if len(parts) == 1 else Both(tuple(map(self._condition, parts)))

    def _negated(self) -> Condition | Operand:
        nots = 0
        while self._takes("NOT"):
            nots += 1
        start = self.at
        found = self._equality()
        if isinstance(found, Condition):
            last = self.tokens[self.at - 1]
            end = last.position + len(last.text)
            found = Told(found, self.text[self.tokens[start].position : end])
        if nots:
            found = self._condition(found)
        return Opposite(self._condition(found)) if nots % 2 else found

    def _equality(self) -> Condition | Operand:
        found = self._comparison()
        while operator := self._takes("=", "<>", "IS"):
            if operator == "IS":
                negated = bool(self._takes("NOT"))
                self._needs("NULL")
                if not isinstance(found, Property):
                    self._refuse("IS NULL must follow a property")
                found = PropertyIsNull(found.name)
            else:
                negated = operator == "<>"
                found = self._equal(found, self._comparison())
            found = Opposite(found) if negated else found
        return found

    def _equal(self, left: Condition | Operand, right: Condition | Operand) -> Condition:
        if isinstance(left, Condition) or isinstance(right, Condition):
            self.same += 1
            if self.same > MAX_SAME:
                self._refuse(f"at most {MAX_SAME} conditions are compared with = or <>")
            return Same(self._condition(left), self._condition(right))
        return Compared(left, "=", right)

    def _comparison(self) -> Condition | Operand:
        found: Condition | Operand = self._sum()
        while operator := self._takes("<", "<=", ">", ">=", "BETWEEN", "LIKE", "IN", "NOT"):
            negated = operator == "NOT"
            if negated:
                operator = self._takes("BETWEEN", "LIKE", "IN")
                if not operator:
                    self._refuse("BETWEEN, LIKE or IN is expected after NOT")
            value = self._value(found)
            if operator == "BETWEEN":
                low = self._ordered(self._sum())
                self._needs("AND")
                high = self._ordered(self._sum())
                self._ordered(value)
                signs = ("<", ">") if negated else (">=", "<=")
                ends = (Compared(value, signs[0], low), Compared(value, signs[1], high))
                found = Both(ends, either=negated)
                continue
            if operator in ("LIKE", "IN"):
                if not isinstance(value, Property):
                    self._refuse(f"{operator} must follow a property")
                found = self._like(value) if operator == "LIKE" else self._among(value)
            else:
                found = Compared(self._ordered(value), operator, self._ordered(self._sum()))
            found = Opposite(found) if negated else found
        return found

    def _ordered(self, value: Condition | Operand) -> Operand:
        value = self._value(value)
        if isinstance(value, JmsConstant) and say.kind_of(value.value) != "number":
            self._refuse("only numbers have an order in JMS: strings and Booleans have = and <>")
        return value

    def _text(self) -> str:
        token = self.tokens[self.at]
        if token.kind != "text":
            self._refuse("a string is expected here")
        self.at += 1
        return token.text[1:-1].replace("''", "'")

    def _like(self, value: Property) -> Condition:
        pattern, escape = self._text(), ""
        if self._takes("ESCAPE"):
            escape = self._text()
            if len(escape) != 1:
                self._refuse("ESCAPE takes one character")
        pieces: list[Any] = []
        characters = iter(pattern)
        for each in characters:
            if each == escape:
                pieces.append(next(characters, each))
            else:
                pieces.append({"%": say.ANY_TEXT, "_": say.ANY_CHARACTER}.get(each, each))
        return LikePattern(value.name, tuple(pieces))

    def _among(self, value: Property) -> Condition:
        self._needs("(")
        values = [self._text()]
        while self._takes(","):
            values.append(self._text())
        self._needs(")")
        return Among(value.name, tuple(values))

    # Arithmetic

    def _sum(self) -> Condition | Operand:
        found = self._product()
        while operator := self._takes("+", "-"):
            found = self._computed(found, operator, self._product())
        return found

    def _product(self) -> Condition | Operand:
        found = self._signed()
        while operator := self._takes("*", "/", "%"):
            found = self._computed(found, operator, self._signed())
        return found

    def _signed(self) -> Condition | Operand:
        sign = self._takes("+", "-")
        if not sign:
            return self._single()
        with_depth = self._deeper()
        found = self._numeric(self._signed())
        self.depth = with_depth
        if sign == "+":
            return found
        if isinstance(found, JmsConstant):
            return JmsConstant(-found.value)
        return Arithmetic(f"(-{written(found)})", properties_in(found))

    def _computed(
        self, left: Condition | Operand, operator: str, right: Condition | Operand
    ) -> Operand:
        first, second = self._numeric(left), self._numeric(right)
        text = f"({written(first)} {operator} {written(second)})"
        return Arithmetic(text, properties_in(first) + properties_in(second))

    def _numeric(self, found: Condition | Operand) -> Operand:
        value = self._value(found)
        if isinstance(value, JmsConstant) and say.kind_of(value.value) != "number":
            self._refuse("arithmetic is for numbers: joining strings with + is not JMS")
        return value

    def _deeper(self) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(f"a selector has at most {MAX_DEPTH} levels of parentheses")
        return self.depth - 1

    def _single(self) -> Condition | Operand:
        token = self.tokens[self.at]
        if self._takes("("):
            depth = self._deeper()
            found = self._either()
            self._needs(")")
            self.depth = depth
            return found
        self.at += 1
        if token.kind == "float":
            return JmsConstant(float(token.text))
        if token.kind == "integer":
            return JmsConstant(_integer(token.text))
        if token.kind == "text":
            return JmsConstant(token.text[1:-1].replace("''", "'"))
        if token.says("TRUE", "FALSE"):
            return JmsConstant(token.text == "TRUE")
        if token.kind == "word":
            return Property(say.path(token.text))
        self.at -= 1
        shown = brief(token.text) if token.kind != "end" else "the end"
        return self._refuse(f"a property, a constant or a parenthesis is expected, not {shown}")


def _integer(text: str) -> int | float:
    """Java's integers: hexadecimal with 0x, octal with a leading 0; too large ones are doubles."""
    digits = text.rstrip("lL")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits.startswith("0") and len(digits) > 1 and set(digits) <= set("01234567"):
        return int(digits, 8)
    number = int(digits) if len(digits) < 40 else float(digits)
    return number if number < 1 << 63 else float(number)
