"""Texts whose constants are of another kind than what they are compared with, once types are known.

With ``price`` a DOUBLE and ``code`` a STRING::

    price > '98' AND code IN (5, 6)
    price > 98.0e0 AND CAST(code AS BIGINT) IN (5, 6)

Spark's analyzer adds these casts to every filter (``terms/casts/coercions.py``). Here the text
itself is converted: whatever reads it later, without the schema, reads what was meant. Predicates
that need no cast stay as they are. Conditions of quantifiers are not converted. O(length).

Where Spark computes terms, it also compares texts that have a collation, or are padded: with
``name STRING COLLATE UTF8_LCASE``, ``name = 'a'`` becomes ``coalesce(name = 'a')``.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from bittern.errors import ExpressionError
from bittern.language.constants import constant_number
from bittern.language.derived import condition_of, is_derived, stands_for_truth, term_of
from bittern.language.lexer import tokens, without_comments
from bittern.language.literals import READERS
from bittern.language.parser import parse
from bittern.language.printer import print_expression, print_literal
from bittern.language.quantifiers import is_hidden
from bittern.language.syntax import (
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Leaf,
    Like,
    Literal,
    OfDocument,
    Pair,
    Quantified,
    Regex,
)
from bittern.language.trees import flat, map_leaves
from bittern.terms import nodes
from bittern.terms.casts.coercions import CastError, ColumnTypes, coerced
from bittern.terms.types import TIMESTAMP


def converted_text(text: str, types: ColumnTypes) -> str:
    """The text with the casts that Spark adds; ``ExpressionError`` if a constant has no such value.

    The same text if it needs none.
    """
    tree = parse(text)
    try:
        changed = map_leaves(tree, lambda leaf: converted(leaf, types))
    except CastError as wrong:
        raise ExpressionError(str(wrong), text, _position(text, wrong.constant)) from None
    # As nodes in order: comparing deep trees recurses.
    return text if flat(changed) == flat(tree) else print_expression(changed)


def converted(leaf: Leaf, types: ColumnTypes) -> Expression:
    """A predicate with the casts that Spark adds; the same one if it needs none."""
    term = term_of_leaf(leaf)
    if term is None:
        return leaf
    changed = coerced(term, types)
    if types.has_texts_of_spark(changed):
        # As one term of Spark's, for whatever is taken apart is compared by bytes here.
        return condition_of(nodes.Call("coalesce", (changed,)))
    return leaf if changed == term else condition_of(changed)


def term_of_leaf(leaf: Leaf) -> nodes.Term | None:
    """The predicate as a term; None for those of quantifiers, and for elements of arrays."""
    if isinstance(leaf, BooleanConstant | OfDocument | Join | Pair | Quantified):
        return None
    name = leaf.attribute
    if is_hidden(name) or stands_for_truth(name):
        return None
    value = term_of(name) if is_derived(name) else nodes.Attribute(name)
    if isinstance(leaf, Compare):
        if isinstance(value, nodes.Call) and value.function == "compare":
            return nodes.Call(leaf.operator, value.arguments)
        return nodes.Call(leaf.operator, (value, _constant(leaf.operand)))
    if isinstance(leaf, Between):
        return nodes.Call("between", (value, _constant(leaf.low), _constant(leaf.high)))
    if isinstance(leaf, In):
        return nodes.Call("in", (value, *map(_constant, leaf.values)))
    if isinstance(leaf, Like):
        return nodes.Call("like", (value, _text(leaf.pattern), _text(leaf.escape)))
    if isinstance(leaf, Regex):
        return nodes.Call("rlike", (value, _text(leaf.pattern)))
    assert isinstance(leaf, IsNull)
    return nodes.Call("is null", (value,))


def _text(value: str) -> nodes.Constant:
    return nodes.Constant(pa.scalar(value, pa.string()))


def _constant(literal: Literal) -> nodes.Constant:
    """A literal in Spark's type for it."""
    value = literal.value
    if isinstance(value, dt.datetime):
        return nodes.Constant(pa.scalar(value, TIMESTAMP))
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return nodes.Constant(constant_number(print_literal(literal)))
    return nodes.Constant(pa.scalar(value))


def _position(text: str, constant: nodes.Constant) -> int:
    """Where a text has a string, or 0."""
    value = constant.scalar.as_py()
    for token in tokens(without_comments(text)):
        if token.kind == "string" and READERS["string"](token.text) == value:
            return token.position
    return 0
