"""JSON of strangers: read with the places of mistakes, and within limits.

A place is a line and a column while the text is no JSON, and from then on a path such as
``$.detail.price[0]``. Keys that come twice are refused: which one counts, nobody can tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from bittern.errors import RuleError, brief

#: Characters of a rule's text.
MAX_TEXT = 1_000_000
#: Levels of objects and arrays inside each other.
MAX_DEPTH = 64
#: Objects, arrays and values in one rule.
MAX_VALUES = 16_384

#: Where in a rule: the keys and numbers that lead there.
Place: TypeAlias = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


def read_json(rule: Any) -> Any:
    """The object of a rule that may be text; what is no text is checked for size only.

    O(length). Numbers are int or float, infinity and NaN are refused.
    """
    if isinstance(rule, bytes):
        try:
            rule = rule.decode("utf-8-sig")
        except UnicodeDecodeError as wrong:
            raise RuleError(f"the rule is not UTF-8: {wrong}") from None
    if isinstance(rule, str):
        rule = _parsed(rule)
    _check_size(rule)
    return rule


def _parsed(text: str) -> Any:
    if len(text) > MAX_TEXT:
        raise RuleError(f"a rule has at most {MAX_TEXT:,} characters, this one has {len(text):,}")
    if not text.strip():
        raise RuleError("the text is empty: a rule is expected")
    try:
        return json.loads(
            text, object_pairs_hook=object_of, parse_constant=_constant, parse_int=_integer
        )
    except json.JSONDecodeError as wrong:
        place = f"line {wrong.lineno}, column {wrong.colno}"
        raise RuleError(f"this is not JSON: {wrong.msg}", place) from None
    except RecursionError:
        raise RuleError(_too_deep()) from None


class _Ambiguous(dict[str, Any]):
    """An object in which a key came twice."""

    key: str


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these pairs. Where keys come twice, it is one that ``read_json`` refuses.

    So whoever reads a file of many rules learns of it where the rule is translated.
    """
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    ambiguous = _Ambiguous(found)
    ambiguous.key = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return ambiguous


def _constant(word: str) -> NoReturn:
    raise RuleError(f"{word} is not a number in JSON")


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= 40 else float(text)


def _too_deep() -> str:
    return f"a rule has at most {MAX_DEPTH} levels of objects and arrays inside each other"


def _check_size(rule: Any) -> None:
    """Refuse what is too deep or too large, and what JSON does not have. Does not recurse."""
    waiting: list[tuple[Any, int]] = [(rule, 0)]
    n_values = 0
    while waiting:
        value, depth = waiting.pop()
        n_values += 1
        if depth > MAX_DEPTH:
            raise RuleError(_too_deep())
        if n_values > MAX_VALUES:
            raise RuleError(f"a rule has at most {MAX_VALUES:,} values")
        if isinstance(value, _Ambiguous):
            raise RuleError(f"the key {brief(value.key)} comes twice in one object")
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise RuleError(f"a key must be a string, not {brief(key)}")
            waiting.extend((each, depth + 1) for each in value.values())
        elif isinstance(value, list | tuple):
            waiting.extend((each, depth + 1) for each in value)
        elif isinstance(value, float) and (value != value or value in (_INFINITE, -_INFINITE)):  # noqa: PLR0124 (NaN)
            raise RuleError(f"{value} is not a number in JSON")
        elif isinstance(value, int) and value.bit_length() > _FLOAT_BITS:
            raise RuleError("a number is too large for a float")
        elif not isinstance(value, str | int | float | bool | None):
            raise RuleError(f"a rule is made of what JSON has, not of {type(value).__name__}")


_INFINITE = float("inf")
#: Integers of more bits are beyond all floats.
_FLOAT_BITS = 1023


def place_of(path: Sequence[str | int]) -> str:
    """A path as messages show it: ``$.detail.price[0]``."""
    text = "$"
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}"
        else:
            text += f"[{brief(part)}]"
    return text


def refuse(reason: str, path: Sequence[str | int] = ()) -> NoReturn:
    """Raise a ``RuleError`` for what stands at a path."""
    raise RuleError(reason, place_of(path))
