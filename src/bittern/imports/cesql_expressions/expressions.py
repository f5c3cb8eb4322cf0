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
from typing import Any

from bittern.errors import RuleError
from bittern.imports import conditions as say
from bittern.imports.cesql_expressions import operators, values
from bittern.imports.cesql_expressions.functions import called, computed
from bittern.imports.cesql_expressions.values import CesqlValue
from bittern.imports.constructs import said
from bittern.imports.words import WordReader

_WORD = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<text>'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*")
    |(?P<integer>[+-]?[0-9]+(?![0-9A-Za-z])|[+-][0-9]+)
    |(?P<word>[A-Za-z0-9_]+)
    |(?P<sign><>|!=|<=|>=|[=<>+\-*/%(),])""",
    re.VERBOSE | re.DOTALL,
)
_KEYS = frozenset(("AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"))
_JOINED = {"AND": operators.both, "OR": operators.either, "XOR": operators.differ}


def cesql(expression: Any) -> str:
    """The expression of a filter."""
    found = _Reader(expression).read()
    holds = [each for each in found.cases if each.type == "Boolean"]
    if found.cases and not holds:
        raise RuleError(f"a filter is a condition, and this is a value: {found.cases[0].type}")
    return say.printed(say.any_of(each.when for each in holds if each.constant is True))


class _Reader(WordReader):
    """One expression, from what binds least to what binds most: each level is one method."""

    title = "an expression"
    levels = "parentheses and signs"
    pattern = _WORD
    keys = _KEYS

    def read(self) -> CesqlValue:
        """The value of the whole text."""
        found = self._logic()
        word = self.next
        if word.kind == "integer" and word.text[0] in "+-":
            self.refuse(f"{word.text} is a number: write a space behind the sign")
        self.ends()
        return found

    def _made(self, position: int, make: Any, *arguments: Any, **options: Any) -> CesqlValue:
        """What is made of these parts; a reason to refuse it gets its place."""
        try:
            value: CesqlValue = make(*arguments, **options)
        except RuleError as wrong:
            self.refuse(wrong.reason, position)
        return value

    def _logic(self) -> CesqlValue:
        found, joined_by = self._comparison(), ""
        while True:
            position = self.next.position
            operator = self.takes(*_JOINED)
            if not operator:
                return found
            if joined_by not in ("", operator):
                self.refuse(
                    f"{joined_by} and {operator} bind alike in CESQL, and are grouped in two ways: "
                    "put one of them into parentheses",
                    position,
                )
            joined_by = operator
            found = self._made(position, _JOINED[operator], found, self._comparison())

    def _comparison(self) -> CesqlValue:
        start = self.at
        found = self._compared()
        for case in found.cases:
            said(case.when, self.since(start))
        return found

    def _compared(self) -> CesqlValue:
        found = self._sum()
        while True:
            position = self.next.position
            operator = self.takes("=", "!=", "<>", "<", "<=", ">", ">=")
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
            position = self.next.position
            operator = self.takes("+", "-")
            if not operator:
                return found
            found = self._made(position, computed, found, operator, self._product())

    def _product(self) -> CesqlValue:
        found = self._among()
        while True:
            position = self.next.position
            operator = self.takes("*", "/", "%")
            if not operator:
                return found
            found = self._made(position, computed, found, operator, self._among())

    def _among(self) -> CesqlValue:
        """``IN`` and ``LIKE``, which bind more than arithmetic."""
        found = self._like(self._signed())
        while True:
            start = self.at
            position = self.words[start].position
            negated = bool(self.takes("NOT"))
            if not self.takes("IN"):
                self.at = start
                return found
            self.needs("(")
            elements = self._arguments()
            if not elements:
                self.refuse("IN has at least one element", position)
            found = self._made(position, operators.among, found, elements, negated=negated)
            found = self._like(found)

    def _like(self, found: CesqlValue) -> CesqlValue:
        while True:
            start = self.at
            position = self.words[start].position
            negated = bool(self.takes("NOT"))
            if not self.takes("LIKE"):
                self.at = start
                return found
            word = self.next
            if word.kind != "text":
                self.refuse(f"LIKE takes a string, not {self.next.shown}")
            self.at += 1
            pattern = _unquoted(word.text)
            found = self._made(position, operators.like, found, pattern, negated=negated)

    def _signed(self) -> CesqlValue:
        position = self.next.position
        sign = self.takes("NOT", "-")
        if not sign:
            return self._single()
        level = self.deeper()
        found = self._signed()
        self.back(level)
        if sign == "NOT":
            return self._made(position, operators.negated, found)
        return self._made(position, computed, values.literal(0), "-", found)

    def _arguments(self) -> list[CesqlValue]:
        """Values up to the closing parenthesis, with commas between."""
        if self.takes(")"):
            return []
        level = self.deeper()
        found = [self._logic()]
        while self.takes(","):
            found.append(self._logic())
        self.needs(")")
        self.back(level)
        return found

    def _single(self) -> CesqlValue:
        word = self.next
        if self.takes("("):
            level = self.deeper()
            found = self._logic()
            self.needs(")")
            self.back(level)
            return found
        if self.takes("EXISTS"):
            return values.exists(self._name("EXISTS takes the name of an attribute"))
        if word.says("TRUE", "FALSE"):
            self.at += 1
            return values.literal(word.text == "TRUE")
        if word.kind == "text":
            self.at += 1
            return self._made(word.position, values.literal, _unquoted(word.text))
        if word.kind == "integer":
            number = int(word.text) if len(word.text) < 40 else values.INTEGERS.stop
            if number not in values.INTEGERS:
                self.refuse("an Integer has 32 bits")
            self.at += 1
            return values.literal(number)
        if word.kind == "word" and self.words[self.at + 1].says("("):
            self.at += 2
            name = word.text.upper()
            arguments = self._arguments()
            return self._made(word.position, called, name, arguments)
        return values.attribute(self._name("an attribute, a constant or a parenthesis is expected"))

    def _name(self, wanted: str) -> str:
        word = self.next
        if word.kind not in ("word", "integer") or not word.text.isalnum():
            self.refuse(f"{wanted}, not {self.next.shown}")
        if word.kind == "integer":
            self.refuse(f"{wanted}, not a number")
        self.at += 1
        return word.text.lower()


def _unquoted(text: str) -> str:
    """A string's characters; a backslash stands before a quote, and else for itself."""
    quote = text[0]
    return text[1:-1].replace(f"\\{quote}", quote)
