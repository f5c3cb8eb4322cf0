"""What a value must contain for a pattern to hold: fragments, found before anything is verified.

``LIKE`` patterns become small byte programs in which two bytes that UTF-8 never uses stand for the
wildcards; the longest run between wildcards must occur in every value that satisfies it.

A regular expression gets a **cover**: a set of fragments of which at least one must occur. The
rules are those of a pivot cover: a sequence takes the best cover of its parts, adjoining
literals being one part; an alternation takes the union of its branches'; what may repeat zero
times, and every class, contributes nothing.

    ab(cd|ef+)?x{2}       ab          (or x: shorter)
    (?i)error: [0-9]+     error:      found without regard to ASCII case
    (foo|bar)[a-z]        foo or bar
    [0-9]+|x              none: the first branch has no fragment

The reader knows exactly as much of RE2's syntax as it needs to be sure; at anything else it gives
up, and a regular expression without a cover is verified on every value. O(pattern length).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

#: In a LIKE program: any run of characters, and exactly one character.
ANY_RUN, ANY_ONE = 0xFF, 0xFE

#: Fragments longer than this are cut: the automaton stays small, verification does the rest.
MAX_FRAGMENT = 64

#: An alternation with more fragments than this is not worth filing under each.
MAX_COVER = 32
#: From this length on, it matters more how many patterns share a fragment than how long it is.
_LONG_ENOUGH = 3

_MAX_DEPTH = 100


def like_program(text: str) -> bytes:
    r"""Compile a LIKE pattern whose escape character is the backslash.

    >>> like_program(r"50\%_%")
    b'50%\xfe\xff'
    """
    program = bytearray()
    escaped = False
    for character in text:
        if not escaped and character == "\\":
            escaped = True
            continue
        if not escaped and character == "%":
            if not program or program[-1] != ANY_RUN:
                program.append(ANY_RUN)
        elif not escaped and character == "_":
            program.append(ANY_ONE)
        else:
            program += character.encode()
        escaped = False
    return bytes(program) + b"\\" * escaped


def like_fragment(program: bytes) -> bytes:
    """Return the longest literal run of a LIKE program; empty if it has only wildcards."""
    runs = program.replace(b"\xfe", b"\xff").split(b"\xff")
    return max(runs, key=len)[:MAX_FRAGMENT]


class Fragment(NamedTuple):
    """A required literal; ``folded`` ones are lower-case and found in either ASCII case."""

    text: bytes
    folded: bool


Cover: TypeAlias = tuple[Fragment, ...]
#: How good a cover is: the greater the better.
Worth: TypeAlias = Callable[[Cover], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Part:
    r"""What is known of a piece of the expression.

    ``exact``: it matches this literal and nothing else (an empty one for ``^`` and ``\b``).
    ``cover``: else, fragments at least one of which it contains; empty when nothing is known.
    """

    exact: Fragment | None = None
    cover: Cover = ()


class _Doubt(Exception):  # noqa: N818 - it is not an error: the answer is "no cover"
    """Syntax that the reader is not sure of."""


_UNKNOWN = _Part()
_EMPTY = _Part(Fragment(b"", False))
_REPEAT = re.compile(r"\{(0|[1-9][0-9]{0,3})(,(?:0|[1-9][0-9]{0,3})?)?\}", re.ASCII)
_BRACE_NUMBER = re.compile(r"\{[0-9]", re.ASCII)
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_NAMED = re.compile(r"\(\?P?<[^>]*>")
_HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|[A-Za-z])")
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


def regex_covers(patterns: Sequence[str]) -> list[Cover]:
    """A cover for each pattern, preferring fragments that few of the patterns share.

    What many patterns ask for (a domain, a common path) many values contain; the part that is
    particular to a pattern is the better one to look for.
    """
    popularity: Counter[Fragment] = Counter()

    def counting(cover: Cover) -> tuple[int, ...]:
        popularity.update(cover)
        return _worth(cover)

    def particular(cover: Cover) -> tuple[int, ...]:
        if not cover:
            return (0, 0, 0, 0)
        shortest, negative_count = _worth(cover)
        shared = sum(popularity[fragment] for fragment in cover)
        return (min(shortest, _LONG_ENOUGH), -shared, shortest, negative_count)

    for pattern in patterns:
        regex_cover(pattern, counting)
    return [regex_cover(pattern, particular) for pattern in patterns]


def regex_cover(pattern: str, worth: Worth | None = None) -> Cover:
    """Fragments of which every matching value contains at least one; empty if none is known.

    ``worth`` tells how good a cover is; by itself, the longer its shortest fragment the better.

    >>> regex_cover("(?i)disc|[0-9]{2}mg")
    (Fragment(text=b'di', folded=True), Fragment(text=b'mg', folded=True))
    """
    reader = _Reader(pattern, worth or _worth)
    try:
        part = reader.alternation(folded=False, depth=0)
        if reader.position != len(pattern):
            return ()
    except _Doubt:
        return ()
    return _cut(_cover_of(part))


def _cut(cover: Cover) -> Cover:
    return tuple(dict.fromkeys(Fragment(f.text[:MAX_FRAGMENT], f.folded) for f in cover))


def _cover_of(part: _Part) -> Cover:
    if part.exact is None:
        return part.cover
    return (part.exact,) if part.exact.text else ()


def _worth(cover: Cover) -> tuple[int, ...]:
    return (min(*(len(f.text) for f in cover), MAX_FRAGMENT), -len(cover)) if cover else (0, 0)


def _sequence(parts: list[_Part], worth: Worth) -> _Part:
    """Join adjoining exact parts into runs; the best of the runs and the covers stands for all."""
    best: Cover = ()
    run = Fragment(b"", False)
    exact = True
    for part in parts:
        if part.exact is not None and (
            not part.exact.text or not run.text or part.exact.folded == run.folded
        ):
            folded = part.exact.folded if part.exact.text else run.folded
            run = Fragment(run.text + part.exact.text, folded)
            continue
        exact = False
        best = max(best, _cover_of(_Part(run)), part.cover, key=worth)
        run = part.exact or Fragment(b"", False)
    return _Part(run) if exact else _Part(cover=max(best, _cover_of(_Part(run)), key=worth))


def _alternatives(branches: list[_Part]) -> _Part:
    if len(branches) == 1:
        return branches[0]
    covers = [_cover_of(branch) for branch in branches]
    union = tuple(dict.fromkeys(fragment for cover in covers for fragment in cover))
    return _Part(cover=union) if all(covers) and len(union) <= MAX_COVER else _UNKNOWN


class _Reader:
    """A recursive-descent reader of RE2 syntax that yields parts instead of a tree."""

    def __init__(self, text: str, worth: Worth) -> None:
        self.text = text
        self.worth = worth
        self.position = 0

    def alternation(self, *, folded: bool, depth: int) -> _Part:
        """Everything up to the closing parenthesis, or the end; flags set inside end with it."""
        if depth > _MAX_DEPTH:
            raise _Doubt
        text = self.text
        branches: list[_Part] = []
        parts: list[_Part] = []
        while self.position < len(text) and text[self.position] != ")":
            character = text[self.position]
            if character == "|":
                self.position += 1
                branches.append(_sequence(parts, self.worth))
                parts = []
            elif character in "*+?" or (character == "{" and _REPEAT.match(text, self.position)):
                self._repeat(parts)
            elif flags := _FLAGS.match(text, self.position):
                self.position = flags.end()
                inner = (folded or "i" in flags[1]) and "i" not in (flags[2] or "")
                if flags[3] == ")":
                    folded = inner
                else:
                    parts.append(self._group(folded=inner, depth=depth))
            elif character == "(":
                named = _NAMED.match(text, self.position)
                if named is None and text.startswith("(?", self.position):
                    raise _Doubt
                self.position = named.end() if named else self.position + 1
                parts.append(self._group(folded=folded, depth=depth))
            elif text.startswith("\\Q", self.position):
                parts += self._quoted(folded=folded)
            else:
                parts.append(self._atom(folded=folded))
        return _alternatives([*branches, _sequence(parts, self.worth)])

    def _group(self, *, folded: bool, depth: int) -> _Part:
        part = self.alternation(folded=folded, depth=depth + 1)
        if not self.text.startswith(")", self.position):
            raise _Doubt
        self.position += 1
        return part

    def _repeat(self, parts: list[_Part]) -> None:
        """Apply a quantifier to the part before it: at least once keeps its cover."""
        if not parts:
            raise _Doubt
        counted = _REPEAT.match(self.text, self.position)
        if counted:
            at_least_once = int(counted[1]) > 0
            self.position = counted.end()
        else:
            at_least_once = self.text[self.position] == "+"
            self.position += 1
        if self.text.startswith("?", self.position):  # the reluctant form finds the same values
            self.position += 1
        parts[-1] = _Part(cover=_cover_of(parts[-1])) if at_least_once else _UNKNOWN

    def _quoted(self, *, folded: bool) -> list[_Part]:
        end = self.text.find("\\E", self.position)
        stop = len(self.text) if end < 0 else end
        quoted = self.text[self.position + 2 : stop]
        self.position = stop if end < 0 else end + 2
        return [_literal(character, folded=folded) for character in quoted]

    def _atom(self, *, folded: bool) -> _Part:
        """One character, class, or assertion."""
        text, start = self.text, self.position
        character = text[start]
        if character == "\\":
            return self._escape(folded=folded)
        if character == "[":
            self._skip_class()
            return _UNKNOWN
        self.position += 1
        if character == ".":
            return _UNKNOWN
        if character in "^$":
            return _EMPTY
        if character == "{" and _BRACE_NUMBER.match(text, start):
            raise _Doubt  # a count that RE2 may read in its own way
        return _literal(character, folded=folded)

    def _escape(self, *, folded: bool) -> _Part:
        text, start = self.text, self.position
        if start + 1 == len(text):
            raise _Doubt
        following = text[start + 1]
        if coded := _HEX.match(text, start):
            self.position = coded.end()
            return _literal_of_code(int(coded[1] or coded[2], 16), folded=folded)
        if coded := _OCTAL.match(text, start):
            self.position = coded.end()
            return _literal_of_code(int(coded[1], 8), folded=folded)
        if named := _PROPERTY.match(text, start):
            self.position = named.end()
            return _UNKNOWN
        self.position += 2
        if following in "AzbB":
            return _EMPTY
        if following in "dDsSwWC":
            return _UNKNOWN
        if following in _CONTROLS:
            return _literal(_CONTROLS[following], folded=folded)
        if following.isascii() and not following.isalnum():
            return _literal(following, folded=folded)
        raise _Doubt

    def _skip_class(self) -> None:
        text = self.text
        at = self.position + 1
        at += text.startswith("^", at)
        first = True
        while at < len(text) and (first or text[at] != "]"):
            named_end = text.find(":]", at + 2) if text.startswith("[:", at) else -1
            if named_end >= 0:
                at = named_end + 2
            else:
                at += 2 if text[at] == "\\" else 1
            first = False
        if at >= len(text):
            raise _Doubt
        self.position = at + 1


def _literal(character: str, *, folded: bool) -> _Part:
    """One literal character; what folds with a non-ASCII letter (k, s) is not one."""
    if not folded:
        return _Part(Fragment(character.encode(), False))
    if not character.isascii() or character in "kKsS":
        return _UNKNOWN
    return _Part(Fragment(character.lower().encode(), True))


def _literal_of_code(code: int, *, folded: bool) -> _Part:
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return _UNKNOWN
    return _literal(chr(code), folded=folded)
