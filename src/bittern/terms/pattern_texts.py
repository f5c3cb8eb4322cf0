r"""The patterns of LIKE and RLIKE: the form of a LIKE pattern, and whether RE2 accepts a regex.

==============  ==========  ========  ==========================================
pattern         form        text      pieces
==============  ==========  ========  ==========================================
``abc``         EXACT       ``abc``   ``("abc",)``
``abc%``        PREFIX      ``abc``   ``("abc", ANY)``
``%abc``        SUFFIX      ``abc``   ``(ANY, "abc")``
``%abc%``       CONTAINS    ``abc``   ``(ANY, "abc", ANY)``
``%``           ANY                   ``(ANY,)``: every string, but not NULL
``a_c%\%``      GENERAL               ``("a", ANY_ONE, "c", ANY, "%")``
==============  ==========  ========  ==========================================

Both are O(pattern length), and both raise ``ValueError`` with a message for the user.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any

from bittern.terms.limits import MAX_REGEX_BYTES, MAX_REGEX_LENGTH


class LikeForm(enum.Enum):
    """What a LIKE pattern requires of a string."""

    EXACT = "exact"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    ANY = "any"
    GENERAL = "general"


class Wildcard(enum.Enum):
    """A place in a pattern that is not literal text."""

    ANY_ONE = "_"
    ANY = "%"


@dataclass(frozen=True, slots=True)
class LikeParts:
    """A pattern taken apart; ``text`` is the literal text unless the form is GENERAL or ANY."""

    form: LikeForm
    text: str
    pieces: tuple[str | Wildcard, ...]


_MARKS = re.compile(r"[%_\\]")
_FORMS = {
    (): LikeForm.EXACT,
    (str,): LikeForm.EXACT,
    (str, Wildcard.ANY): LikeForm.PREFIX,
    (Wildcard.ANY, str): LikeForm.SUFFIX,
    (Wildcard.ANY, str, Wildcard.ANY): LikeForm.CONTAINS,
    (Wildcard.ANY,): LikeForm.ANY,
}


def like_parts(pattern: str, escape: str = "\\") -> LikeParts:
    """Take a LIKE pattern apart; runs of ``%`` count as one. O(length)."""
    pieces: list[str | Wildcard] = []
    text: list[str] = []
    # Literal text goes by whole runs: a run ends where a wildcard or an escape may begin.
    position = 0
    marks = _MARKS if escape == "\\" else re.compile(rf"[%_{re.escape(escape)}]")
    for mark in marks.finditer(pattern):
        start = mark.start()
        if start < position:  # the character after an escape
            continue
        text.append(pattern[position:start])
        position = start + 1
        if mark[0] == escape:
            escaped = pattern[position : position + 1]
            if not escaped or escaped not in ("%", "_", escape):
                raise ValueError(_escape_message(escape, escaped))
            text.append(escaped)
            position += 1
            continue
        if literal := "".join(text):
            pieces.append(literal)
        text.clear()
        if mark[0] == "_" or not pieces or pieces[-1] is not Wildcard.ANY:
            pieces.append(Wildcard(mark[0]))
    text.append(pattern[position:])
    if literal := "".join(text):
        pieces.append(literal)
    shape = tuple(str if isinstance(piece, str) else piece for piece in pieces[:4])
    form = _FORMS.get(shape, LikeForm.GENERAL)
    if form is LikeForm.GENERAL and len(pattern) > MAX_REGEX_LENGTH:
        raise ValueError(
            f"a LIKE pattern with wildcards inside has at most {MAX_REGEX_LENGTH:,} characters, "
            f"this one has {len(pattern):,}"
        )
    if form is LikeForm.GENERAL:
        return LikeParts(form, "", tuple(pieces))
    return LikeParts(form, "".join(p for p in pieces if isinstance(p, str)), tuple(pieces))


def _escape_message(escape: str, escaped: str) -> str:
    fix = f"write {escape * 2} for the character itself"
    if escaped:
        return (
            f"a LIKE pattern may use its escape character {escape} only before %, _ or "
            f"itself, not before {escaped!r}; {fix}"
        )
    return f"a LIKE pattern cannot end in its escape character {escape}; {fix}"


class RegexTooLargeError(ValueError):
    """A regular expression is longer, or compiles to more, than the limits allow."""


def compile_regex(pattern: str, *, of_bytes: bool = False) -> Any:
    """Compile for RE2 within the limits; ``search`` on the result finds the pattern anywhere.

    ``of_bytes``: it searches UTF-8, and positions are those of bytes.
    """
    import re2  # noqa: PLC0415  only expressions with RLIKE pay for it

    if len(pattern) > MAX_REGEX_LENGTH:
        raise RegexTooLargeError(
            f"a regular expression has at most {MAX_REGEX_LENGTH:,} characters, "
            f"this one has {len(pattern):,}"
        )
    options = re2.Options()
    options.max_mem = MAX_REGEX_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern.encode() if of_bytes else pattern, options)
    except re2.error as wrong:
        reason = wrong.args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        if "too large" in reason:
            raise RegexTooLargeError("the regular expression is too large once compiled") from None
        raise ValueError(f"not a regular expression for RE2: {reason}") from None
