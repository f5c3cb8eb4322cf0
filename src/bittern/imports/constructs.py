r"""Which construct of a foreign rule each predicate of its expression came from.

While a rule is translated by ``with_constructs``, formats say of each condition that they make what
it was made of. The notes are by the text of a predicate, as ``bittern.explain`` shows it::

    lower(Image) LIKE '%\\\\cmd.exe'    selection: Image|endswith: '\\cmd.exe'

Of two constructs with one predicate the first is kept, and one that holds by the predicate before
one that fails by it. Otherwise ``said`` costs nothing; here it reads the condition once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from bittern.errors import ExpressionError
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.syntax import And, BooleanConstant, Or
from bittern.language.trees import walk

#: Characters of a construct that are kept.
_SHOWN = 160


class _Notes(NamedTuple):
    """Constructs by the predicates of when they hold, and of when they fail."""

    holds: dict[str, str]
    fails: dict[str, str]


_notes: ContextVar[_Notes | None] = ContextVar("_notes", default=None)


def with_constructs(
    translate: Callable[..., str], rule: Any, **options: Any
) -> tuple[str, dict[str, str]]:
    """The expression of a rule, and its predicates with what they came from."""
    notes = _Notes({}, {})
    before = _notes.set(notes)
    try:
        expression = translate(rule, **options)
    finally:
        _notes.reset(before)
    own = set(_predicates(expression))
    found = notes.fails | notes.holds
    return expression, {text: told for text, told in found.items() if text in own}


def said(condition: str, construct: Any, *, fails: bool = False) -> str:
    """The condition, after noting what holds (or fails) by it: text, or what JSON has."""
    notes = _notes.get()
    if notes is None:
        return condition
    found, text = notes.fails if fails else notes.holds, _text(construct)
    with contextlib.suppress(ExpressionError):  # beyond a limit: whoever writes the whole says so
        for predicate in _predicates(condition):
            found.setdefault(predicate, text)
    return condition


def _predicates(expression: str) -> Iterator[str]:
    for node in walk(parse(expression)):
        if not isinstance(node, And | Or | BooleanConstant):
            yield print_expression(node)


def _text(construct: Any) -> str:
    text = construct
    if not isinstance(text, str):
        text = json.dumps(construct, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
