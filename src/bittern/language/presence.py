r"""``a IS MISSING``: whether an event has an attribute at all, NULL or not.

That an attribute is there is an attribute of its own in an index. Its name is U+0003, which no name
in an expression starts with, and the name of the other. It has a value where the other is there, so
being missing is being NULL::

    a.b IS MISSING AND c IS NOT MISSING           as it is written
    `\3a.b` IS NULL AND `\3c` IS NOT NULL         as it is indexed

Everything behind the parser knows only such names. ``model/events/present.py`` finds out which of
these attributes an event has.
"""

from __future__ import annotations

from bittern.language.lexer import is_missing, word_kind
from bittern.language.literals import PRESENT, attribute_name


def is_presence(name: str) -> bool:
    """Whether an attribute stands for the presence of another. O(1)."""
    return name.startswith(PRESENT)


def presence_of(name: str) -> str:
    """The name of the attribute that is there where an event has this one."""
    return PRESENT + name


def present_path(name: str) -> str:
    """The attribute whose presence another one stands for."""
    return name[len(PRESENT) :]


def name_presences(parts: list[str]) -> list[str]:
    """A text with ``IS NULL`` of names of ours in place of IS MISSING. O(length).

    ``parts`` are what stands between words and the words in turn; so is what is returned. MISSING
    as the name of an attribute, and behind anything but an attribute, stays as it is.
    """
    named = list(parts)
    for place in range(3, len(parts), 2):
        if not is_missing(parts[place]):
            continue
        before = place - 2
        if parts[before].upper() == "NOT" and before > 1:
            before -= 2
        name = before - 2
        is_behind = parts[before].upper() == "IS" and name > 0
        apart = name == 1 or parts[name - 1]  # or it would become one with the word before
        gaps = parts[name + 1 : place : 2]
        is_plain = is_behind and apart and all(map(str.isspace, gaps))
        if is_plain and word_kind(parts[name]) == "attribute":
            quoted = presence_of(attribute_name(parts[name])).replace("`", "``")
            named[name], named[place] = f"`{quoted}`", "NULL"
    return named
