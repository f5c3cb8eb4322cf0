"""Messages about a token that is in the wrong place.

Most texts that fail use some SQL that is not known where it stands: inside EXISTS and FORALL,
arithmetic and functions. Naming that helps more than "unexpected token". O(tokens).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bittern.language.lexer import KEYWORDS, QUANTIFIERS, Token, is_complete, is_quantifier

if TYPE_CHECKING:
    from collections.abc import Sequence

_ARITHMETIC = "arithmetic is not supported: compare an attribute with a constant"
_OTHER = {
    ";": "an expression does not end in ';'",
    **dict.fromkeys("\u2018\u2019\u201c\u201d", "strings are quoted with ' or \""),
}
_UNKNOWN_OPERATORS = {
    "ILIKE": "ILIKE is not supported: use RLIKE '(?i)...'",
    "DIV": _ARITHMETIC,
    "SIMILAR": "SIMILAR TO is not supported: use RLIKE",
}

#: What may come behind IS, for "expected ...".
AFTER_IS = "NULL, TRUE, FALSE, UNKNOWN, MISSING or DISTINCT FROM after IS"


def explain_token(
    tokens: Sequence[Token], token: Token, expected: str, *, quantified: bool = False
) -> str:
    """Say what was expected, what was found and, where that is known, what to write instead.

    ``quantified``: the token is inside EXISTS or FORALL, where attributes can be compared.
    """
    kind, raw = token.kind, token.text
    if kind == "other":
        return _explain_other(raw)
    place = tokens.index(token)
    before = tokens[place - 1] if place else None
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    if kind == "<=>":
        return "<=> is not supported: use = or IS NULL"
    if token.number >= 0 and not is_complete(raw):
        return incomplete(token)
    if kind == "string" and before is not None and before.kind == "string":
        return "strings side by side are not joined: write one string"
    if kind == "string" and before is not None and before.text.upper() in _UNKNOWN_OPERATORS:
        return _UNKNOWN_OPERATORS[before.text.upper()]
    if kind == "number" and raw[0] in "+-" and before is not None and _is_operand(before):
        return _ARITHMETIC
    if kind == "attribute":
        if raw.upper() in _UNKNOWN_OPERATORS:
            return _UNKNOWN_OPERATORS[raw.upper()]
        if before is not None and before.kind == "attribute" and is_quantifier(before.text):
            return _needs_a_name(before.text)
        if after is not None and after.kind == "(":
            return no_function(token)
        if expected == "a constant":
            compared = "by IN or BETWEEN" if quantified else "outside of EXISTS and FORALL"
            return (
                f"expected a constant, found the attribute {_short(raw)}: two attributes cannot be "
                f"compared {compared}, and a string needs quotes"
            )
    reserved = kind in KEYWORDS or (kind in QUANTIFIERS and raw.isalpha())
    hint = f"; to use {raw} as an attribute name, write `{raw}`" if reserved else ""
    return f"expected {expected}, found {_found(token)}{hint}"


def no_function(token: Token) -> str:
    """Say why a parenthesis cannot follow a name."""
    if is_quantifier(token.text):
        return _needs_a_name(token.text)
    return f"functions such as {_short(token.text)}(...) are not supported"


def _needs_a_name(raw: str) -> str:
    word = raw.upper()
    return f"{word} needs a plain name for the document, as in {word} d (...)"


def incomplete(token: Token) -> str:
    """Say what is missing at the end of a parameter."""
    if token.kind == "number":
        return (
            f"{_short(token.text)} is not a number; numbers have no suffix, "
            "and a name that starts with a digit needs back-quotes"
        )
    noun = "string" if token.kind == "string" else "back-quoted name"
    return f"this {noun} has no closing quote"


def _short(raw: str) -> str:
    return raw if len(raw) <= 30 else raw[:27] + "..."


def _is_operand(token: Token) -> bool:
    return token.kind in ("attribute", "number")


def _found(token: Token) -> str:
    if token.kind == "end":
        return "the end"
    if token.kind in ("attribute", "number", "string"):
        return f"the {token.kind} {_short(token.text)}"
    return token.text if token.text.isalpha() else f"'{token.text}'"


def _explain_other(raw: str) -> str:
    if raw in _OTHER:
        return _OTHER[raw]
    first, dot, _ = raw.partition(".")
    if dot:
        return f"{first} is a keyword: as part of an attribute name, write it `{first}`"
    shown = raw if raw.isprintable() and raw.isascii() else f"U+{ord(raw):04X}"
    return f"the character {shown} is not part of any expression"
