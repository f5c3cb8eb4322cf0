"""CloudEvents SQL (CESQL), version 1: filters over the attributes of CloudEvents.

An event passes a filter whose value is TRUE, without any error. So what an expression becomes says
both when it is TRUE and that nothing in it fails: no attribute missing, no text that is cast to a
number and is none. How values and their types are told is in ``values.py``; here is how
expressions are read::

    type LIKE 'com.shop.%' AND sequence > 5 OR EXISTS subject
    ^ the reader builds the value of each part at once; there is no tree

Of AND, OR and XOR none binds more than another, and CESQL's page groups them from the left where
its own implementations group them from the right; so a rule that mixes them without parentheses is
refused. A sign that stands before digits belongs to the number, as in the grammar: ``1 -1`` is no
difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from bittern.errors import RuleError, brief
from bittern.imports import conditions as say
from bittern.imports.cesql_expressions import operators, values
from bittern.imports.cesql_expressions.functions import called, computed
from bittern.imports.cesql_expressions.values import CesqlValue
from bittern.imports.constructs import said
from bittern.imports.jms_selectors.selectors import place_in

#: Characters of an expression, and levels of parentheses and signs.
MAX_TEXT = 65_536
MAX_DEPTH = 50

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<text>'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*")
    |(?P<integer>[+-]?[0-9]+(?![0-9A-Za-z])|[+-][0-9]+)
    |(?P<word>[A-Za-z0-9_]+)
    |(?P<sign><>|!=|<=|>=|[=<>+\-*/%(),])""",
    re.VERBOSE | re.DOTALL,
)
_KEYS = {"AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"}
_JOINED = {"AND": operators.both, "OR": operators.either, "XOR": operators.differ}


def cesql(expression: Any) -> str:
    """The expression of a filter."""
    if not isinstance(expression, str):
        raise RuleError(f"an expression is text, not {type(expression).__name__}")
    if len(expression) > MAX_TEXT:
        raise RuleError(f"an expression has at most {MAX_TEXT:,} characters")
    found = _Reader(expression).read()
    holds = [each for each in found.cases if each.type == "Boolean"]
    if found.cases and not holds:
        raise RuleError(f"a filter is a condition, and this is a value: {found.cases[0].type}")
    return say.printed(say.any_of(each.when for each in holds if each.constant is True))


class _Token(NamedTuple):
    kind: str
    text: str
    position: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these key words or signs."""
        return self.kind in ("key", "sign") and self.text in words


class _Reader:
    """One expression, from what binds least to what binds most: each level is one method."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.at = 0
        self.depth = 0

    def _split(self) -> Iterator[_Token]:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                self._refuse(f"{brief(self.text[position])} has no meaning here", position)
            kind, found = str(match.lastgroup), match[0]
            if kind == "word" and found.upper() in _KEYS:
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
            self._refuse(f"{word} is expected here, not {self._shown()}")

    def _shown(self) -> str:
        token = self.tokens[self.at]
        return "the end" if token.kind == "end" else brief(token.text)

    def read(self) -> CesqlValue:
        """The value of the whole text."""
        found = self._logic()
        token = self.tokens[self.at]
        if token.kind == "integer" and token.text[0] in "+-":
            self._refuse(f"{token.text} is a number: write a space behind the sign")
        if token.kind != "end":
            self._refuse(f"{self._shown()} is not expected here")
        return found

    def _made(self, position: int, make: Any, *arguments: Any, **options: Any) -> CesqlValue:
        """What is made of these parts; a reason to refuse it gets its place."""
        try:
            value: CesqlValue = make(*arguments, **options)
        except RuleError as wrong:
            self._refuse(wrong.reason, position)
        return value

    def _logic(self) -> CesqlValue:
        found, joined_by = self._comparison(), ""
        while True:
            position = self.tokens[self.at].position
            operator = self._takes(*_JOINED)
            if not operator:
                return found
            if joined_by not in ("", operator):
                self._refuse(
                    f"{joined_by} and {operator} bind alike in CESQL, and are grouped in two ways: "
                    "put one of them into parentheses",
                    position,
                )
            joined_by = operator
            found = self._made(position, _JOINED[operator], found, self._comparison())

    def _comparison(self) -> CesqlValue:
        start = self.at
        found = self._compared()
        last = self.tokens[self.at - 1]
        text = self.text[self.tokens[start].position : last.position + len(last.text)]
        for case in found.cases:
            said(case.when, text)
        return found

    def _compared(self) -> CesqlValue:
        found = self._sum()
        while True:
            position = self.tokens[self.at].position
            operator = self._takes("=", "!=", "<>", "<", "<=", ">", ">=")
            if not operator:
                return found
            right = self._sum()
            if operator in ("=", "!=", "<>"):
                unequal = operator != "="
                found = self._made(position, operators.equals, found, right, negated=unequal)
            else:
                found = self._made(position, operators.ordered, found, operator, right)

    def _sum(self) -> CesqlValue:
        found = self._product()
        while True:
            position = self.tokens[self.at].position
            operator = self._takes("+", "-")
            if not operator:
                return found
            found = self._made(position, computed, found, operator, self._product())

    def _product(self) -> CesqlValue:
        found = self._among()
        while True:
            position = self.tokens[self.at].position
            operator = self._takes("*", "/", "%")
            if not operator:
                return found
            found = self._made(position, computed, found, operator, self._among())

    def _among(self) -> CesqlValue:
        """``IN`` and ``LIKE``, which bind more than arithmetic."""
        found = self._like(self._signed())
        while True:
            start = self.at
            position = self.tokens[start].position
            negated = bool(self._takes("NOT"))
            if not self._takes("IN"):
                self.at = start
                return found
            self._needs("(")
            elements = self._arguments()
            if not elements:
                self._refuse("IN has at least one element", position)
            found = self._made(position, operators.among, found, elements, negated=negated)
            found = self._like(found)

    def _like(self, found: CesqlValue) -> CesqlValue:
        while True:
            start = self.at
            position = self.tokens[start].position
            negated = bool(self._takes("NOT"))
            if not self._takes("LIKE"):
                self.at = start
                return found
            token = self.tokens[self.at]
            if token.kind != "text":
                self._refuse(f"LIKE takes a string, not {self._shown()}")
            self.at += 1
            pattern = _unquoted(token.text)
            found = self._made(position, operators.like, found, pattern, negated=negated)

    def _signed(self) -> CesqlValue:
        position = self.tokens[self.at].position
        sign = self._takes("NOT", "-")
        if not sign:
            return self._single()
        depth = self._deeper()
        found = self._signed()
        self.depth = depth
        if sign == "NOT":
            return self._made(position, operators.negated, found)
        return self._made(position, computed, values.literal(0), "-", found)

    def _deeper(self) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(f"an expression has at most {MAX_DEPTH} levels of parentheses and signs")
        return self.depth - 1

    def _arguments(self) -> list[CesqlValue]:
        """Values up to the closing parenthesis, with commas between."""
        if self._takes(")"):
            return []
        depth = self._deeper()
        found = [self._logic()]
        while self._takes(","):
            found.append(self._logic())
        self._needs(")")
        self.depth = depth
        return found

    def _single(self) -> CesqlValue:
        token = self.tokens[self.at]
        if self._takes("("):
            depth = self._deeper()
            found = self._logic()
            self._needs(")")
            self.depth = depth
            return found
        if self._takes("EXISTS"):
            return values.exists(self._name("EXISTS takes the name of an attribute"))
        if token.says("TRUE", "FALSE"):
            self.at += 1
            return values.literal(token.text == "TRUE")
        if token.kind == "text":
            self.at += 1
            return self._made(token.position, values.literal, _unquoted(token.text))
        if token.kind == "integer":
            number = int(token.text) if len(token.text) < 40 else values.INTEGERS.stop
            if number not in values.INTEGERS:
                self._refuse("an Integer has 32 bits")
            self.at += 1
            return values.literal(number)
        if token.kind == "word" and self.tokens[self.at + 1].says("("):
            self.at += 2
            name = token.text.upper()
            arguments = self._arguments()
            return self._made(token.position, called, name, arguments)
        return values.attribute(self._name("an attribute, a constant or a parenthesis is expected"))

    def _name(self, wanted: str) -> str:
        token = self.tokens[self.at]
        if token.kind not in ("word", "integer") or not token.text.isalnum():
            self._refuse(f"{wanted}, not {self._shown()}")
        if token.kind == "integer":
            self._refuse(f"{wanted}, not a number")
        self.at += 1
        return token.text.lower()


def _unquoted(text: str) -> str:
    """A string's characters; a backslash stands before a quote, and else for itself."""
    quote = text[0]
    return text[1:-1].replace(f"\\{quote}", quote)
