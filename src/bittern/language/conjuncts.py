"""Conjunctions cut into their predicates, before they are parsed (``shapes.py``)."""

from __future__ import annotations

from typing import Any

#: Letters of words that a predicate starts with.
NAMES = frozenset("aj")


def conjuncts(parts: list[str], letters: list[Any]) -> list[tuple[str, int, int]] | None:
    """Cut ``predicate AND predicate AND ...`` into (key, first word, end) of each predicate.

    ``parts`` are skeleton and letters in turn. None if the text may be anything else: each
    predicate starts with a name and ends before a plain `` AND `` or the end of the text.
    """
    if parts[0] or parts[-1] or letters[0] not in NAMES or "OR" in letters:
        return None
    starts = [place for place, letter in enumerate(letters) if letter in NAMES]
    for start in starts[1:]:
        if letters[start - 1] != "AND" or parts[2 * start] != " " or parts[2 * start - 2] != " ":
            return None
    ends = [start - 1 for start in starts[1:]]
    ends.append(len(letters))
    return [
        ("\0".join(parts[2 * start + 1 : 2 * end]), start, end)
        for start, end in zip(starts, ends, strict=True)
    ]
