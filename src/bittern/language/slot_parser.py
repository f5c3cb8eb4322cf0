"""The parser of plain predicates, with slots where texts of one shape differ (``shapes.py``)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from bittern.language.parser import Parser
from bittern.language.quantifiers import is_hidden
from bittern.language.templates import Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bittern.language.lexer import Token
    from bittern.terms.pattern_texts import LikeParts

#: Kinds of constants whose text is checked beyond being a string.
TIMES = frozenset(("date", "timestamp"))


class SlotParser(Parser):
    """The parser, with a slot in place of every parameter; ``first`` is the number of the first."""

    def __init__(self, text: str, first: int = 0) -> None:
        super().__init__(text)
        self._first = first
        self.parameters = [token.text for token in self._tokens if token.number >= 0]
        self.kinds = [token.kind for token in self._tokens if token.number >= 0]
        self.checks: list[tuple[int, str]] = []
        self.likes: list[tuple[int, int]] = []

    def _name(self, token: Token, name: str) -> Any:
        if is_hidden(name):
            self.kinds[token.number] = "join"
        return Slot(self._first + token.number, self.kinds[token.number])

    def _presence(self, token: Token, name: Any) -> Any:  # noqa: ARG002
        return self._fail(token, "NULL")  # a name of its own stands for it, where it is plain

    def _value(self, token: Token, kind: str, value: Any) -> Any:  # noqa: ARG002
        self.kinds[token.number] = kind
        if kind in TIMES:
            self.checks.append((token.number, kind))
        return Slot(self._first + token.number, kind)

    def _like(self, token: Token, escape: Token | None, parts: LikeParts) -> Any:
        self.likes.append((token.number, escape.number if escape else -1))
        return Slot(self._first + token.number, "string", parts.form)

    def _regex(self, token: Token, pattern: str) -> Any:  # noqa: ARG002
        self.checks.append((token.number, "regex"))
        return Slot(self._first + token.number, "string")

    def picker(self) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        """Make the function that picks the parameters out of a text's words."""
        words = [token for token in self._tokens if token.kind.isalpha()]
        return picker([place for place, token in enumerate(words) if token.number >= 0])


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Make the function that picks what stands at these places."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda words: tuple([words[place] for place in places])
