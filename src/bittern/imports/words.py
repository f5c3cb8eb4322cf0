"""Rules that are text: cut into words, which a reader goes through from left to right.

::

    price > 5 AND name LIKE 'a%'         word  sign  integer  key  word  key  text  end

A ``WordReader`` of a format says which words there are and which of them are keys, and has a method
for each level of its grammar. What it refuses gets the place where that stands. O(length).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, NoReturn

from bittern.errors import RuleError, brief

#: Characters of a rule, and levels of what is inside each other.
MAX_WORDS_TEXT = 65_536
MAX_LEVELS = 50


class Word(NamedTuple):
    """A word: its kind is the name of a group of the format's pattern, ``key`` or ``end``."""

    kind: str
    text: str
    position: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.position + len(self.text)

    @property
    def shown(self) -> str:
        """As messages show it."""
        return "the end" if self.kind == "end" else brief(self.text)

    def says(self, *words: str) -> bool:
        """Whether it is one of these key words or signs."""
        return self.kind in ("key", "sign") and self.text in words


class WordReader:
    """The words of one rule, and how far it is read."""

    #: What the rule is called, and what counts as a level of it.
    title: ClassVar[str]
    levels: ClassVar[str]
    #: Has a group for each kind of words: ``space``, ``word``, ``sign`` and others.
    pattern: ClassVar[re.Pattern[str]]
    keys: ClassVar[frozenset[str]]

    def __init__(self, rule: Any) -> None:
        """Cut the rule into words; ``RuleError`` if it is none of this format."""
        if not isinstance(rule, str):
            raise RuleError(f"{self.title} is text, not {type(rule).__name__}")
        if len(rule) > MAX_WORDS_TEXT:
            raise RuleError(f"{self.title} has at most {MAX_WORDS_TEXT:,} characters")
        self.text = rule
        self.words = list(self._split())
        self.at = 0
        self._level = 0

    def _split(self) -> Iterator[Word]:
        position = 0
        while position < len(self.text):
            match = self.pattern.match(self.text, position)
            if match is None:
                self.refuse(f"{brief(self.text[position])} has no meaning here", position)
            kind, found = str(match.lastgroup), match[0]
            if kind == "word" and found.upper() in self.keys:
                kind, found = "key", found.upper()
            if kind != "space":
                yield Word(kind, found, position)
            position = match.end()
        yield Word("end", "", len(self.text))

    @property
    def next(self) -> Word:
        """The word that comes next."""
        return self.words[self.at]

    def refuse(self, reason: str, position: int | None = None) -> NoReturn:
        """Refuse the rule, because of the next word or of what is at a position."""
        if position is None:
            position = self.next.position
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        raise RuleError(reason, f"line {line}, column {column}")

    def takes(self, *words: str) -> str:
        """The next word if it is one of these, which is read then; else nothing."""
        word = self.next
        if not word.says(*words):
            return ""
        self.at += 1
        return word.text

    def needs(self, word: str) -> None:
        """Read this word, which must be next."""
        if not self.takes(word):
            self.refuse(f"{word} is expected here, not {self.next.shown}")

    def ends(self) -> None:
        """Refuse what is left."""
        if self.next.kind != "end":
            self.refuse(f"{self.next.shown} is not expected here")

    def deeper(self) -> int:
        """One level further in; returns the level to come back to with ``back``."""
        self._level += 1
        if self._level > MAX_LEVELS:
            self.refuse(f"{self.title} has at most {MAX_LEVELS} levels of {self.levels}")
        return self._level - 1

    def back(self, level: int) -> None:
        """Out again."""
        self._level = level

    def since(self, start: int) -> str:
        """The text from the word with this number to the last one that was read."""
        return self.text[self.words[start].position : self.words[self.at - 1].end]
