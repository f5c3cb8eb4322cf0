"""Selectors of JMS: SQL-92's conditions over the properties of a message.

A selector is read into a small tree, and each node says when it is TRUE and when it is FALSE; what
is neither is unknown, as in SQL. NOT swaps the two, so no negation is left around anything::

    NOT (n = 5)     n != 5, or n is a string or a Boolean

which is how JMS differs from us: there, values of different kinds are compared, and are not equal.
Properties are attributes by name. Numbers with a fraction are doubles, as in Java.
"""

from __future__ import annotations

import re
from typing import Any

from bittern.imports import conditions as say
from bittern.imports.answers import ALWAYS, NEVER, Answer, both, either, negated, told, written
from bittern.imports.jms_selectors.conditions import (
    Arithmetic,
    JmsConstant,
    Operand,
    Property,
    among,
    compared,
    holds,
    like,
    properties_in,
    property_is_null,
    same,
    text_of,
)
from bittern.imports.words import WordReader

#: Comparisons of conditions: each doubles what is inside it.
MAX_SAME = 8

_WORD = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?)
    |(?P<integer>0[xX][0-9a-fA-F]+|[0-9]+)[lL]?
    |(?P<text>'(?:[^']|'')*')
    |(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<sign><>|<=|>=|[=<>+\-*/%(),])""",
    re.VERBOSE | re.DOTALL,
)
_KEYS = frozenset(
    ("AND", "OR", "NOT", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE", "NULL", "TRUE", "FALSE")
)


def jms(selector: Any) -> str:
    """The expression of a selector."""
    return written(_Reader(selector).read())


# Reading


class _Reader(WordReader):
    """One selector. OR, AND, NOT, comparisons, sums, products: each level is one method."""

    title = "a selector"
    levels = "parentheses"
    pattern = _WORD
    keys = _KEYS

    def __init__(self, rule: Any) -> None:
        super().__init__(rule)
        self.same = 0

    def read(self) -> Answer:
        found = self._condition(self._either())
        self.ends()
        return found

    def _condition(self, found: Answer | Operand) -> Answer:
        if isinstance(found, Answer):
            return found
        if isinstance(found, Property):
            return told(holds(found.name), found.name.strip("`"))
        if isinstance(found, JmsConstant) and isinstance(found.value, bool):
            return ALWAYS if found.value else NEVER
        return self.refuse("a condition is expected before this, not a value")

    def _value(self, found: Answer | Operand) -> Operand:
        if isinstance(found, Answer):
            self.refuse("a value is expected before this, not a condition")
        return found

    def _either(self) -> Answer | Operand:
        found = self._all()
        parts = [found]
        while self.takes("OR"):
            parts.append(self._all())
        if len(parts) == 1:
            return found
        return either(map(self._condition, parts))

    def _all(self) -> Answer | Operand:
        found = self._negated()
        parts = [found]
        while self.takes("AND"):
            parts.append(self._negated())
        return found if len(parts) == 1 else both(map(self._condition, parts))

    def _negated(self) -> Answer | Operand:
        nots = 0
        while self.takes("NOT"):
            nots += 1
        start = self.at
        found = self._equality()
        if isinstance(found, Answer):
            found = told(found, self.since(start))
        if nots:
            found = self._condition(found)
        return negated(self._condition(found)) if nots % 2 else found

    def _equality(self) -> Answer | Operand:
        found = self._comparison()
        while operator := self.takes("=", "<>", "IS"):
            if operator == "IS":
                is_not = bool(self.takes("NOT"))
                self.needs("NULL")
                if not isinstance(found, Property):
                    self.refuse("IS NULL must follow a property")
                found = property_is_null(found.name)
            else:
                is_not = operator == "<>"
                found = self._equal(found, self._comparison())
            found = negated(found) if is_not else found
        return found

    def _equal(self, left: Answer | Operand, right: Answer | Operand) -> Answer:
        if isinstance(left, Answer) or isinstance(right, Answer):
            self.same += 1
            if self.same > MAX_SAME:
                self.refuse(f"at most {MAX_SAME} conditions are compared with = or <>")
            return same(self._condition(left), self._condition(right))
        return compared(left, "=", right)

    def _comparison(self) -> Answer | Operand:
        found: Answer | Operand = self._sum()
        while operator := self.takes("<", "<=", ">", ">=", "BETWEEN", "LIKE", "IN", "NOT"):
            is_not = operator == "NOT"
            if is_not:
                operator = self.takes("BETWEEN", "LIKE", "IN")
                if not operator:
                    self.refuse("BETWEEN, LIKE or IN is expected after NOT")
            value = self._value(found)
            if operator == "BETWEEN":
                low = self._ordered(self._sum())
                self.needs("AND")
                high = self._ordered(self._sum())
                self._ordered(value)
                signs = ("<", ">") if is_not else (">=", "<=")
                ends = (compared(value, signs[0], low), compared(value, signs[1], high))
                found = either(ends) if is_not else both(ends)
                continue
            if operator in ("LIKE", "IN"):
                if not isinstance(value, Property):
                    self.refuse(f"{operator} must follow a property")
                found = self._like(value) if operator == "LIKE" else self._among(value)
            else:
                found = compared(self._ordered(value), operator, self._ordered(self._sum()))
            found = negated(found) if is_not else found
        return found

    def _ordered(self, value: Answer | Operand) -> Operand:
        value = self._value(value)
        if isinstance(value, JmsConstant) and say.kind_of(value.value) != "number":
            self.refuse("only numbers have an order in JMS: strings and Booleans have = and <>")
        return value

    def _text(self) -> str:
        word = self.next
        if word.kind != "text":
            self.refuse("a string is expected here")
        self.at += 1
        return word.text[1:-1].replace("''", "'")

    def _like(self, value: Property) -> Answer:
        pattern, escape = self._text(), ""
        if self.takes("ESCAPE"):
            escape = self._text()
            if len(escape) != 1:
                self.refuse("ESCAPE takes one character")
        pieces: list[Any] = []
        characters = iter(pattern)
        for each in characters:
            if each == escape:
                pieces.append(next(characters, each))
            else:
                pieces.append({"%": say.ANY_TEXT, "_": say.ANY_CHARACTER}.get(each, each))
        return like(value.name, pieces)

    def _among(self, value: Property) -> Answer:
        self.needs("(")
        values = [self._text()]
        while self.takes(","):
            values.append(self._text())
        self.needs(")")
        return among(value.name, values)

    # Arithmetic

    def _sum(self) -> Answer | Operand:
        found = self._product()
        while operator := self.takes("+", "-"):
            found = self._computed(found, operator, self._product())
        return found

    def _product(self) -> Answer | Operand:
        found = self._signed()
        while operator := self.takes("*", "/", "%"):
            found = self._computed(found, operator, self._signed())
        return found

    def _signed(self) -> Answer | Operand:
        sign = self.takes("+", "-")
        if not sign:
            return self._single()
        level = self.deeper()
        found = self._numeric(self._signed())
        self.back(level)
        if sign == "+":
            return found
        if isinstance(found, JmsConstant):
            return JmsConstant(-found.value)
        return Arithmetic(f"(-{text_of(found)})", properties_in(found))

    def _computed(self, left: Answer | Operand, operator: str, right: Answer | Operand) -> Operand:
        first, second = self._numeric(left), self._numeric(right)
        text = f"({text_of(first)} {operator} {text_of(second)})"
        return Arithmetic(text, properties_in(first) + properties_in(second))

    def _numeric(self, found: Answer | Operand) -> Operand:
        value = self._value(found)
        if isinstance(value, JmsConstant) and say.kind_of(value.value) != "number":
            self.refuse("arithmetic is for numbers: joining strings with + is not JMS")
        return value

    def _single(self) -> Answer | Operand:
        word = self.next
        if self.takes("("):
            level = self.deeper()
            found = self._either()
            self.needs(")")
            self.back(level)
            return found
        self.at += 1
        if word.kind == "float":
            return JmsConstant(float(word.text))
        if word.kind == "integer":
            return JmsConstant(_integer(word.text))
        if word.kind == "text":
            return JmsConstant(word.text[1:-1].replace("''", "'"))
        if word.says("TRUE", "FALSE"):
            return JmsConstant(word.text == "TRUE")
        if word.kind == "word":
            return Property(say.path(word.text))
        self.at -= 1
        return self.refuse(f"a property, a constant or a parenthesis is expected, not {word.shown}")


def _integer(text: str) -> int | float:
    """Java's integers: hexadecimal with 0x, octal with a leading 0; too large ones are doubles."""
    digits = text.rstrip("lL")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits.startswith("0") and len(digits) > 1 and set(digits) <= set("01234567"):
        return int(digits, 8)
    number = int(digits) if len(digits) < 40 else float(digits)
    return number if number < 1 << 63 else float(number)
