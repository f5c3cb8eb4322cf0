r"""Where the terms of a text are, so that texts that differ in constants share that knowledge.

A text is cut into words and gaps (``shapes.py``). A term starts in some gap and ends in another,
and what it is called can be put in its place::

    text     coalesce(price, 0) < 30 AND brand = 'x'
    parts    "" coalesce "(" price ", " 0 ") < " 30 " " AND " " brand " = " 'x' ""
    cut      from gap 0, character 0, to gap 6 (") < "), character 1
    plain    `\1coalesce(price, 0)` < 30 AND brand = 'x'

Only the left operands of predicates are cut. Whatever else a text has that is not plain makes the
plain text wrong, or mean something else: ``shapes.py`` compares. O(length).
"""

from __future__ import annotations

import bisect
import itertools
from typing import TypeAlias

from bittern.errors import ExpressionError
from bittern.language.lexer import WORD, word_kind
from bittern.language.limits import MAX_TERMS

#: A place in a text: a gap between two of its words, and how many characters of it are before.
WordPlace: TypeAlias = tuple[int, int]
#: From one place to another.
OperandCut: TypeAlias = tuple[WordPlace, WordPlace]


def cuts_of(text: str) -> tuple[OperandCut, ...]:
    """Where the operands of a text's predicates are that are terms."""
    from bittern.language.scalars import operands_of  # noqa: PLC0415  only for terms

    ends = list(itertools.accumulate(map(len, WORD.split(text))))
    cuts = []
    for start, stop in operands_of(text):
        operand = text[start:stop]
        if WORD.fullmatch(operand) is None or word_kind(operand) != "attribute":
            cuts.append((_place(ends, start), _place(ends, stop)))
    return tuple(cuts)


def _place(ends: list[int], position: int) -> WordPlace:
    """A position, which is not inside a word, as a place."""
    part = bisect.bisect_left(ends, position)
    if part % 2:
        return part + 1, 0  # right behind a word
    return part, position - (ends[part - 1] if part else 0)


def put_words(parts: list[str], cuts: tuple[OperandCut, ...], words: dict[str, str]) -> str | None:
    """The text of these parts with words in place of its terms; new ones are remembered.

    None if one of them is no term, or a constant, or if there may be too many of them.
    """
    if len(cuts) > MAX_TERMS:
        return None
    pieces, at = [], (0, 0)
    for start, stop in cuts:
        piece = _between(parts, start, stop)
        word = words.get(piece) or _word(piece)
        if word is None:
            return None
        words[piece] = word
        pieces += [_between(parts, at, start), word]
        at = stop
    return "".join([*pieces, _between(parts, at, (len(parts), 0))])


def _word(piece: str) -> str | None:
    from bittern.language.derived import operand_word  # noqa: PLC0415  only for terms

    try:
        return operand_word(piece)
    except ExpressionError:
        return None


def _between(parts: list[str], start: WordPlace, stop: WordPlace) -> str:
    """The text from one place to another."""
    (first, skipped), (last, taken) = start, stop
    if first == last:
        return parts[first][skipped:taken]
    rest = [parts[last][:taken]] if last < len(parts) else []
    return "".join([parts[first][skipped:], *parts[first + 1 : last], *rest])
