"""Syntax tree to text: the canonical form, which reads back as the same tree.

``Not(In("odd name", (Literal(1),)))`` becomes ```odd name` NOT IN (1)``. Parentheses are printed
only where they are needed: around OR inside AND, and around both inside NOT. Strings escape what
would not survive a text file. The document of a quantifier is called ``d``, or ``d1``, ``d2`` ...
if the event has an attribute of that name. Printing is O(nodes) and does not recurse.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from decimal import Decimal

from bittern.language.lexer import is_bare, is_quantifier
from bittern.language.literals import PRESENT, TERM, attribute_parts
from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Like,
    Literal,
    Not,
    OfDocument,
    Or,
    Pair,
    Predicate,
    Quantified,
    Window,
)
from bittern.language.trees import walk

_ALIAS = "d"
#: Characters of a term in a message.
_SHORT = 300
#: What can stand before an operator as it is: a name, or one call of a function.
_WORD_OR_CALL = re.compile(r"[\w.]+(?:\([^()]*\))?")

#: The end of a term that looks a value up in a set.
_IN_SET = re.compile(r" IN SET (?:\w+|`(?:[^`]|``)+`)\Z")
#: Control characters, and the line ends and invisible marks that editors and diffs mangle.
_ESCAPED = re.compile("[\\\\'\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_SHORT_ESCAPES = {"\\": "\\\\", "'": "''", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def print_expression(tree: Expression) -> str:
    """Write a tree as text; ``parse`` of it gives the same tree back. O(nodes)."""
    pieces: list[str] = []
    waiting: list[Expression | str] = [tree]
    alias = _ALIAS
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, And | Or):
            between = " AND " if isinstance(node, And) else " OR "
            for operand in reversed(node.operands):
                wrap = isinstance(node, And) and isinstance(operand, Or)
                waiting.extend((")", operand, "(", between) if wrap else (operand, between))
            waiting.pop()  # nothing stands before the first operand
        elif isinstance(node, Not):
            operand = node.operand
            if isinstance(operand, And | Or):
                waiting.extend((")", operand, "NOT ("))
            elif isinstance(operand, Not | Quantified):
                waiting.extend((operand, "NOT "))
            else:
                pieces.append(print_leaf(node, alias))
        elif isinstance(node, Quantified):
            alias = alias_for(node)
            word = "FORALL" if node.universal else "EXISTS"
            waiting.extend((")", node.condition, f"{word} {alias}{_window(node.window)} ("))
        else:
            pieces.append(print_leaf(node, alias))
    return "".join(pieces)


def print_leaf(leaf: Expression, alias: str = _ALIAS) -> str:
    """Write one leaf (or NOT of one), but not a quantifier; inside one, pass the alias."""
    negation = ""
    if isinstance(leaf, Not):
        leaf, negation = leaf.operand, "NOT "
    of_document = f"{alias}."
    if isinstance(leaf, BooleanConstant):
        return negation + print_literal(Literal(leaf.value))
    if isinstance(leaf, Join):
        document, event = print_attribute(leaf.document), print_attribute(leaf.event)
        return f"{negation}{of_document}{document} {leaf.operator} {event}"
    if isinstance(leaf, Pair):
        before = of_document if leaf.of_document else ""
        left, right = print_attribute(leaf.left), print_attribute(leaf.right)
        return f"{negation}{before}{left} {leaf.operator} {before}{right}"
    before = of_document if isinstance(leaf, OfDocument) else ""
    predicate: Predicate = leaf.predicate if isinstance(leaf, OfDocument) else leaf  # type: ignore[assignment]
    if isinstance(predicate, Compare):
        return f"{negation}{before}{_predicate(predicate, '')}"
    return before + _predicate(predicate, negation)


def alias_for(quantified: Quantified) -> str:
    """A name for the document that no path of the event starts with. O(nodes)."""
    window = quantified.window or Window()
    event = [*window.per, *([] if window.of is None else [window.of])]
    for node in walk(quantified.condition):
        if isinstance(node, Join):
            event.append(node.event)
        elif isinstance(node, Pair):
            event.extend(() if node.of_document else (node.left, node.right))
        elif not isinstance(node, And | Or | Not | BooleanConstant | OfDocument | Quantified):
            event.append(node.attribute)
    taken = {attribute_parts(name)[0] for name in event}
    numbered = (f"{_ALIAS}{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain([_ALIAS], numbered) if name not in taken)


def _window(window: Window | None) -> str:
    if window is None:
        return ""
    text = ""
    if window.count is not None:
        text = f" IN LAST {window.count}"
    elif window.microseconds is not None and window.of is not None:
        from bittern.language.durations import print_duration  # noqa: PLC0415  only then

        # A bare EXISTS before PER would be taken for a quantifier.
        name = f"`{window.of}`" if is_quantifier(window.of) else print_attribute(window.of)
        text = f" IN LAST '{print_duration(window.microseconds)}' OF {name}"
    if window.per:
        text += f" PER {', '.join(map(print_attribute, window.per))}"
    return text


def _predicate(node: Predicate, negation: str) -> str:
    if node.attribute.startswith(PRESENT):
        return f"{attribute_word(node.attribute[1:])} IS {negation}MISSING"
    if isinstance(node, Compare) and node.attribute.startswith(TERM):
        left, *right = node.attribute[1:].split(TERM)
        if right and node.operand == Literal(0):
            return f"{_operand(left)} {node.operator} {_operand(right[0])}"
        if node.operator == "=" and node.operand.value is True and _IN_SET.search(left):
            return left
    name = print_attribute(node.attribute)
    if isinstance(node, IsNull) and node.attribute.endswith(TERM):
        return name if negation else f"NOT {name}"  # it is there if the term is TRUE
    if node.attribute.startswith(TERM):
        name = _operand(name)
    if isinstance(node, Compare):
        return f"{name} {node.operator} {print_literal(node.operand)}"
    if isinstance(node, IsNull):
        return f"{name} IS {negation}NULL"
    if isinstance(node, Between):
        ends = f"{print_literal(node.low)} AND {print_literal(node.high)}"
        return f"{name} {negation}BETWEEN {ends}"
    if isinstance(node, In):
        return f"{name} {negation}IN ({', '.join(map(print_literal, node.values))})"
    if isinstance(node, Like):
        escape = "" if node.escape == "\\" else f" ESCAPE {print_text(node.escape)}"
        return f"{name} {negation}LIKE {print_text(node.pattern)}{escape}"
    return f"{name} {negation}RLIKE {print_text(node.pattern)}"


def _operand(text: str) -> str:
    """A term's text as an operand: anything but a word or a call stands in parentheses."""
    return text if _WORD_OR_CALL.fullmatch(text) else f"({text})"


def print_attribute(name: str) -> str:
    """Write a canonical attribute name, with back-quotes around the parts that need them.

    Of an attribute that stands for a term, write the term; of one that stands for another's
    presence, what it says.
    """
    if name.startswith(PRESENT):
        return f"{attribute_word(name[1:])} IS NOT MISSING"
    if name.startswith(TERM):
        left, *right = name[1:].split(TERM)
        return f"compare({left}, {right[0]})" if right and right[0] else left
    return attribute_word(name)


def print_short(name: str) -> str:
    """The same for messages about many events: only the beginning of a long term."""
    text = print_attribute(name)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


def attribute_word(name: str) -> str:
    """Write the name of any attribute as one word, terms and quantified predicates included."""
    return ".".join(
        part if is_bare(part) else "`" + part.replace("`", "``") + "`"
        for part in attribute_parts(name)
    )


def print_literal(literal: Literal) -> str:
    """Write a constant so that it reads back with the same kind and value."""
    value = literal.value
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return print_text(value)
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC).replace(tzinfo=None)
        return f"TIMESTAMP '{moment.isoformat(' ')}Z'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        text = repr(value)
        return text if "e" in text else text + "e0"  # without an exponent it were a decimal
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text if "." in text else text + "."  # without a dot it were an integer
    return str(value)


def print_text(value: str) -> str:
    """Write a string as a literal."""
    return "'" + _ESCAPED.sub(_escape, value) + "'"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"
