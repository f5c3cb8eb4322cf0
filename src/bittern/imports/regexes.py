r"""Regular expressions of other systems in RE2's syntax, with the same meaning, or refused.

::

    Lucene   "ab".<1-9>      the whole value; . is any character; ^ and $ are characters
    PCRE     ^a\s+b$         found anywhere; $ also stands before a line end that is the last
    RE2      what RLIKE has

Everything that is not known to mean the same is refused. O(length); the time to match a value never
depends on the pattern, as it does with PCRE.
"""

from __future__ import annotations

import re

from bittern.errors import RuleError, brief

#: Groups inside each other.
_MAX_DEPTH = 50
_REPEAT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_DIGITS = "0-9"
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
}


def literal(text: str, *, ignoring_case: bool = False) -> str:
    """A text as it is; without case, the letters a to z match in both."""
    return "".join(_character(each, ignoring_case=ignoring_case) for each in text)


def _character(character: str, *, ignoring_case: bool = False) -> str:
    if character.isascii() and character.isalpha():
        both = f"[{character.lower()}{character.upper()}]"
        return both if ignoring_case else character
    if (character.isascii() and character.isdigit()) or character in " _":
        return character
    return f"\\x{{{ord(character):x}}}"


# Lucene


def from_lucene(pattern: str, *, optional: bool = True, ignoring_case: bool = False) -> str:
    """A pattern of Lucene, for the whole value; without ``optional``, only the basic operators."""
    reader = _Lucene(pattern, optional=optional, ignoring_case=ignoring_case)
    return f"^{reader.union(0)}$" if pattern else "^$"


class _Lucene:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str, *, optional: bool, ignoring_case: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._optional = optional
        self._ignoring_case = ignoring_case

    def union(self, depth: int) -> str:
        """Alternatives, up to a closing parenthesis or the end."""
        if depth > _MAX_DEPTH:
            raise RuleError(f"a pattern has at most {_MAX_DEPTH} groups inside each other")
        branches = [self._branch(depth)]
        while self._next("|"):
            branches.append(self._branch(depth))
        if depth == 0 and self._at < len(self._pattern):
            raise self._wrong("one closing parenthesis too many")
        return f"(?:{'|'.join(branches)})"

    def _branch(self, depth: int) -> str:
        found = ""
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            found += self._repeated(self._atom(depth))
        if not found:
            raise self._wrong("an empty alternative")
        return found

    def _repeated(self, atom: str) -> str:
        while self._at < len(self._pattern):
            character = self._pattern[self._at]
            if character in "*+?":
                self._at += 1
                atom = f"(?:{atom}){character}"
            elif character == "{":
                repeat = _REPEAT.match(self._pattern, self._at)
                if repeat is None or (repeat[3] and int(repeat[3]) < int(repeat[1])):
                    raise self._wrong("{ that is not a count")
                self._at = repeat.end()
                atom = f"(?:{atom}){repeat[0]}"
            else:
                break
        return atom

    def _atom(self, depth: int) -> str:
        character = self._pattern[self._at]
        self._at += 1
        if character == "(":
            if self._next(")"):
                return "(?:)"
            inner = self.union(depth + 1)
            if not self._next(")"):
                raise self._wrong("a parenthesis that is not closed")
            return inner
        if character == "[":
            return self._class()
        if character == ".":
            return "(?s:.)"
        if character in "*+?{":
            raise self._wrong("nothing to repeat")
        if character == "\\":
            return self._escaped()
        if self._optional and character in '"@~<&#':
            if character == "@":
                return "(?s:.*)"
            if character == '"':
                return self._quoted()
            raise self._wrong(
                f"the operator {character}, which is not supported; for the character, write "
                f"\\{character}"
            )
        return _character(character, ignoring_case=self._ignoring_case)

    def _escaped(self) -> str:
        if self._at == len(self._pattern):
            raise self._wrong("a backslash at the end")
        character = self._pattern[self._at]
        self._at += 1
        if character in _CLASSES:
            return _CLASSES[character]
        if character in "sS":
            return r"[ \t\n\r]" if character == "s" else r"[^ \t\n\r]"
        return _character(character, ignoring_case=self._ignoring_case)

    def _quoted(self) -> str:
        end = self._pattern.find('"', self._at)
        if end < 0:
            raise self._wrong("a quote that is not closed")
        text, self._at = self._pattern[self._at : end], end + 1
        return f"(?:{literal(text, ignoring_case=self._ignoring_case)})"

    def _class(self) -> str:
        if self._ignoring_case:
            raise self._wrong("[...] without case is not supported")
        found = "[^" if self._next("^") else "["
        empty = True
        while not self._next("]"):
            low = self._member()
            found += _character(low)
            if self._next("-"):
                high = self._member()
                if high < low:
                    raise self._wrong("a range that is reversed")
                found += "-" + _character(high)
            empty = False
        if empty:
            raise self._wrong("[] without characters")
        return found + "]"

    def _member(self) -> str:
        if self._at >= len(self._pattern) or self._pattern[self._at] in "[]":
            raise self._wrong("[...] that is not closed, or has [ or ] without a backslash")
        escaped = self._next("\\")
        if self._at >= len(self._pattern):
            raise self._wrong("[...] that is not closed")
        character = self._pattern[self._at]
        if escaped and character in "dDwWsS":
            raise self._wrong("a class inside [...] is not supported")
        self._at += 1
        return character

    def _next(self, character: str) -> bool:
        found = self._pattern[self._at : self._at + 1] == character
        self._at += found
        return found

    def _wrong(self, reason: str) -> RuleError:
        return RuleError(f"the pattern {brief(self._pattern)} has {reason} (at {self._at})")


# PCRE

_ESCAPES = "nrtfdDwW"
_OUTSIDE = re.compile(r"\(\?(?!:)|\(\*|[*+?}]\+")


def from_pcre(pattern: str, options: str = "") -> str:
    """A pattern of PCRE that is found anywhere, with the options i (case) and s (dot)."""
    if set(options) - set("is"):
        raise RuleError(f"the options {brief(options)} have others than i and s")
    found, at, depth = "", 0, 0
    while at < len(pattern):
        character = pattern[at]
        if _OUTSIDE.match(pattern, at):
            raise _refused(pattern, at, "what RE2 does not have")
        if character == "\\":
            piece = _pcre_escape(pattern, at, inside=False)
            found, at = found + piece, at + (2 if pattern[at + 1] != "x" else 4)
        elif character == "[":
            piece, at = _pcre_class(pattern, at)
            found += piece
        elif character == "{":
            repeat = _REPEAT.match(pattern, at)
            if repeat is None:
                raise _refused(pattern, at, "{ that is not a count; for the character, write \\{")
            found, at = found + repeat[0], repeat.end()
        elif character == "$":
            if at + 1 < len(pattern) or depth:
                raise _refused(pattern, at, "$ before the end; for the character, write \\$")
            found, at = found + r"(?:\n?\z)", at + 1
        else:
            depth += (character == "(") - (character == ")")
            found, at = found + character, at + 1
    flags = "".join(each for each in "is" if each in options)
    return f"(?{flags}){found}" if flags else found


def _pcre_escape(pattern: str, at: int, *, inside: bool) -> str:
    character = pattern[at + 1 : at + 2]
    space = r"\t\n\x0b\f\r "
    if character == "s":
        return space if inside else f"[{space}]"
    if character == "S" and not inside:
        return f"[^{space}]"
    if character and character in _ESCAPES:
        return "\\" + character
    if character and character in "bBAz" and not inside:
        return "\\" + character
    if re.match(r"x[0-9a-fA-F]{2}", pattern[at + 1 : at + 4]):
        return pattern[at : at + 4]
    if character and character.isascii() and not character.isalnum():
        return _character(character)
    raise _refused(pattern, at, f"\\{character}, which is not supported")


def _pcre_class(pattern: str, at: int) -> tuple[str, int]:
    found, at = "[", at + 1
    if pattern[at : at + 1] == "^":
        found, at = found + "^", at + 1
    if pattern[at : at + 1] == "]":
        found, at = found + "\\]", at + 1
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "\\":
            piece = _pcre_escape(pattern, at, inside=True)
            found, at = found + piece, at + (2 if pattern[at + 1] != "x" else 4)
        elif pattern[at] == "[":
            raise _refused(pattern, at, "[ inside [...]; for the character, write \\[")
        else:
            found, at = found + pattern[at], at + 1
    if at >= len(pattern):
        raise _refused(pattern, at, "[...] that is not closed")
    return found + "]", at + 1


def _refused(pattern: str, at: int, reason: str) -> RuleError:
    return RuleError(f"the pattern {brief(pattern)} has {reason} (at {at})")
