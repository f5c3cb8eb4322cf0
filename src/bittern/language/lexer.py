r"""Text to tokens.

``price<= -5 AND `odd name` LIKE 'x%'`` is::

    position  0          5      8      11      15           26     31     35
    kind      attribute  <=     number AND     attribute    LIKE   string end
    text      price      <=     -5     AND     `odd name`   LIKE   'x%'
    number    0          -1     1      -1      2            -1     3      -1

Attributes, numbers and strings are the *parameters* of an expression, counted by ``number``.
``WORD`` finds them and the keywords. The lexer uses the same regular expression, so ``shapes`` can
take a text apart without the lexer and never disagree with it. No letter or digit is ever outside
of a word, so nothing is found in the middle of something else.

EXISTS and FORALL are keywords only before a bare name, DATE and TIMESTAMP only before a string,
MISSING only behind IS and IS NOT. Anywhere else they are attributes like any other.

These regular expressions do not backtrack: every repetition is possessive, and a string or a
number always succeeds (and is refused later if it is incomplete). So both are O(length) on any
input.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from bittern.errors import ExpressionError

KEYWORDS = frozenset(
    "AND OR NOT IN BETWEEN LIKE RLIKE REGEXP ESCAPE IS NULL TRUE FALSE".split()  # noqa: SIM905
)
#: Names like any other, which have a meaning of their own in some places of a term.
TERM_WORDS = frozenset(
    "CASE WHEN THEN ELSE END DIV ILIKE INTERVAL COLLATE ANY SOME ALL DISTINCT UNKNOWN "  # noqa: SIM905
    "CAST TRY_CAST EXTRACT TRIM BOTH LEADING TRAILING SUBSTRING SUBSTR POSITION OVERLAY PLACING "
    "FROM FOR AS TO X TIMESTAMP_NTZ TIMESTAMP_LTZ SET".split()
)
#: Keywords only in front of a string, so that they can also name attributes.
TYPES = frozenset(("DATE", "TIMESTAMP"))
#: A keyword only behind IS and IS NOT.
MISSING = "MISSING"
#: Keywords only in front of a bare name, which is then the document's.
QUANTIFIERS = frozenset(("EXISTS", "FORALL"))
#: What may be more than a name.
_NOT_ONLY_NAMES = KEYWORDS | TERM_WORDS | QUANTIFIERS | frozenset((*TYPES, MISSING))
#: Any so many digits fit in 64 bits.
_PLAIN_DIGITS = 18

_SPACE = r"[ \t\n\r\f\v]"
_BARE = r"[^\W\d]\w*+"
_PART = rf"(?:{_BARE}|`(?:[^`]++|``)*+(?:`|\Z))"
_NAME = rf"(?!r['\"]|R['\"]){_PART}(?:\.{_PART})*+"
_DIGITS = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_NUMBER = rf"(?:[+-]{_SPACE}*+)?{_DIGITS}\w*+"


def _string(end: str, raw_end: str) -> str:
    """Strings of both quotes, plain and raw, up to the given end (``Q`` is the quote)."""
    one = rf"Q(?:[^Q\\]++|\\.|QQ)*+{end}|[rR]Q[^Q]*+{raw_end}"
    return "|".join(one.replace("Q", quote) for quote in "'\"")


_STRING = _string(r"(?:Q|\\?\Z)", r"(?:Q|\Z)")
#: The lookahead only saves time: it fails at once where no word can start.
WORD = re.compile(rf"((?=[\w'\"`+.-])(?:{_NAME}|{_NUMBER}|{_STRING}))", re.DOTALL)

_TOKEN = re.compile(
    rf"{_SPACE}++|(?P<word>{_NAME})|(?P<number>{_NUMBER})|(?P<string>{_STRING})"
    r"|(?P<operator>==|<=>|<<|>>>|>>|<>|<=|>=|!=|!<|!>|\|\||::|->|[=<>(),≠≤≥∃∀+*/%&|^~!\[\].:-])"
    r"|(?P<other>.)",
    re.DOTALL,
)
#: A comment to the end of the line, where another begins, or what only looks like one because it
#: is in quotes.
_COMMENT = re.compile(rf"(--[^\n]*+)|(/\*)|{_STRING}|`(?:[^`]++|``)*+(?:`|\Z)", re.DOTALL)
_BRACKET = re.compile(r"/\*|\*/")
_CLOSED_STRING = re.compile(_string("Q", "Q"), re.DOTALL)
_PLAIN_NUMBER = re.compile(rf"(?:[+-]{_SPACE}*+)?{_DIGITS}")
_BARE_PART = re.compile(_BARE)
#: Operators and quantifiers with a sign, by that sign.
_SYNONYMS = {
    "==": "=",
    "<>": "!=",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "!<": ">=",
    "!>": "<=",
    "∃": "EXISTS",
    "∀": "FORALL",
}


class Token(NamedTuple):
    """A piece of the text: ``kind`` is a parameter kind, a keyword, an operator, other or end."""

    kind: str
    text: str
    position: int
    number: int


def tokens(text: str) -> list[Token]:
    """Cut a text into tokens; the last is ``other`` (not a token) or ``end``. O(length)."""
    found: list[Token] = []
    n_parameters = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        raw, position = match[0], match.start()
        if kind == "operator":
            kind = _SYNONYMS.get(raw, raw)
        elif kind == "word":
            kind = name_kind(raw)
            if kind == "attribute" and found and is_bare(raw) and _is_quantifier(found):
                n_parameters -= 1
                found[-1] = found[-1]._replace(kind=found[-1].text.upper(), number=-1)
            elif kind == "attribute" and is_missing(raw) and _is_behind_is(found):
                kind = MISSING
        elif kind == "string" and found and is_type(found[-1].text):
            n_parameters -= 1
            found[-1] = found[-1]._replace(kind=found[-1].text.upper(), number=-1)
        if kind in ("attribute", "number", "string"):
            found.append(Token(kind, raw, position, n_parameters))
            n_parameters += 1
        else:
            found.append(Token(kind, raw, position, -1))
            if kind == "other":
                return found
    found.append(Token("end", "", len(text), -1))
    return found


class TokenCursor:
    """The tokens of one text, and which of them comes next: what readers of texts have alike."""

    def __init__(self, text: str, found: list[Token]) -> None:
        self.text = text
        self._tokens = found
        self._next = 0

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind not in ("end", "other"):  # both come last, and stay
            self._next += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._tokens[self._next].kind != kind:
            return False
        self._next += 1
        return True

    def _expect(self, kind: str, expected: str) -> None:
        token = self._take()
        if token.kind != kind:
            self._fail(token, expected)

    def _error(self, message: str, token: Token) -> Any:
        raise ExpressionError(message, self.text, token.position) from None

    def _fail(self, token: Token, expected: str) -> Any:
        """Raise for a token where something else was expected."""
        raise NotImplementedError


def without_comments(text: str) -> str:
    """The text with spaces in place of comments, so that positions stay. O(length).

    ``ExpressionError`` if a comment is not closed.
    """
    if "--" not in text and "/*" not in text:
        return text
    pieces, at, done = [], 0, 0
    while (match := _COMMENT.search(text, at)) is not None:
        at = match.end()
        if match[2]:
            at = _end_of_comment(text, at)
            if at < 0:
                message = "this comment is not closed: write */ at its end"
                raise ExpressionError(message, text, match.start())
        if match[1] or match[2]:
            pieces += [text[done : match.start()], " " * (at - match.start())]
            done = at
    return "".join([*pieces, text[done:]])


def _end_of_comment(text: str, start: int) -> int:
    """Where a comment ends that has begun before; others may be inside it. -1 if it does not."""
    depth = 1
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "/*" else -1
        if not depth:
            return bracket.end()
    return -1


def name_kind(raw: str) -> str:
    """The kind of a name: attribute, a keyword, or ``other`` for a path that starts with one."""
    first, dot, _ = raw.partition(".")
    if first.isascii() and first.upper() in KEYWORDS:
        return "other" if dot else first.upper()
    return "attribute"


def _is_quantifier(found: list[Token]) -> bool:
    """Whether the last token, with a bare name coming next, is EXISTS or FORALL.

    It is not if it is itself the name that follows such a word.
    """
    return is_quantifier(found[-1].text) and (len(found) < 2 or found[-2].kind not in QUANTIFIERS)


def is_quantifier(raw: str) -> bool:
    """Whether a word in front of a bare name makes the name a document's."""
    return raw.isascii() and raw.upper() in QUANTIFIERS


def is_missing(raw: str) -> bool:
    """Whether a word behind IS says that an attribute is missing."""
    return len(raw) == len(MISSING) and raw.upper() == MISSING


def _is_behind_is(found: list[Token]) -> bool:
    """Whether the next token stands behind IS or IS NOT."""
    kinds = [token.kind for token in found[-2:]]
    return kinds[-1:] == ["IS"] or kinds == ["IS", "NOT"]


def is_type(raw: str) -> bool:
    """Whether a word in front of a string makes the string a date or a timestamp."""
    return raw.isascii() and raw.upper() in TYPES


def word_kind(raw: str) -> str:
    """A word's kind by its text alone: parameter kind, keyword or other. O(length)."""
    if raw[0] in "+-.0123456789":
        return "number"
    if raw[0] in "'\"" or (raw[0] in "rR" and raw[1:2] in ("'", '"')):
        return "string"
    return name_kind(raw)


def plain_kind(raw: str) -> str | None:
    """The kind of a name or an integer that is nothing more; None: it takes a closer look."""
    if raw.isascii():
        if raw.isidentifier():
            return None if raw.upper() in _NOT_ONLY_NAMES else "attribute"
        if raw.isdigit() and len(raw) <= _PLAIN_DIGITS:
            return "number"
    return None


def is_complete(raw: str) -> bool:
    """Whether a parameter is complete: closing quotes, no letters after a number. O(length)."""
    kind = word_kind(raw)
    if kind == "string":
        return _CLOSED_STRING.fullmatch(raw) is not None
    if kind == "number":
        return _PLAIN_NUMBER.fullmatch(raw) is not None
    return raw.count("`") % 2 == 0


def is_bare(part: str) -> bool:
    """Whether a part of an attribute name needs no back-quotes. O(length)."""
    return _BARE_PART.fullmatch(part) is not None and part.upper() not in KEYWORDS
