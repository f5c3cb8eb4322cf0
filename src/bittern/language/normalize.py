"""Syntax tree to normal form: negations at the leaves, no constants, no AND in AND or OR in OR.

::

    NOT (a < 5 OR b IN (1, NULL) AND c LIKE 'x%')
    a >= 5 AND (never OR c NOT LIKE 'x%')             negation pushed down; NOT IN with NULL
    a >= 5 AND c NOT LIKE 'x%'                        never holds, so it disappears

A subscription matches where its expression is TRUE; FALSE and NULL both mean no match.
Three-valued NOT turns AND into OR and ``<`` into ``>=`` exactly, NULL included, so it can be
pushed to the leaves first. The remaining AND and OR never make TRUE out of FALSE or NULL, so from
there on both are the same, *never*. The result is

- ``Constant(True)`` (always) or ``Constant(False)`` (never), or a tree without any constant;
- ``Not`` only around In (two or more values), Between, Like, Regex and IsNull (or OfDocument with
  one of these inside), and around Quantified, which stays as it is written;
- AND and OR with two or more operands, AND never directly in AND, nor OR in OR.

Of all literals, only the NULL keyword is folded: what holds for one set of constants holds for all,
so the normal form of a template is the template of the normal form. O(nodes), no recursion.
"""

from __future__ import annotations

from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    Join,
    Leaf,
    Literal,
    Not,
    OfDocument,
    Or,
    Pair,
)
from bittern.language.trees import Branch, Draft, flatten

ALWAYS = BooleanConstant(True)
NEVER = BooleanConstant(False)

_NULL = Literal(None)
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def normal_form(tree: Expression) -> Expression:
    """Push negations down, fold constants, flatten; TRUE for exactly the same events. O(nodes)."""
    # Parents first, so that backwards it is operands first.
    order: list[tuple[type[And | Or], int] | Expression] = []
    waiting = [(tree, False)]
    while waiting:
        node, negated = waiting.pop()
        if isinstance(node, Not):
            waiting.append((node.operand, not negated))
        elif isinstance(node, And | Or):
            operator = And if isinstance(node, And) != negated else Or
            order.append((operator, len(node.operands)))
            waiting.extend((operand, negated) for operand in node.operands)
        elif isinstance(node, BooleanConstant):
            order.append(ALWAYS if node.value is not None and node.value != negated else NEVER)
        else:
            order.append(_negative(node) if negated else _positive(node))
    done: list[Draft] = []
    for step in reversed(order):
        if isinstance(step, tuple):
            operator, count = step
            operands = done[-count:]
            done[-count:] = [_fold(operator, operands)]
        else:
            done.append(step)
    return flatten(done[0])


def _fold(operator: type[And | Or], operands: list[Draft]) -> Draft:
    absorbing, neutral = (NEVER, ALWAYS) if operator is And else (ALWAYS, NEVER)
    if any(operand is absorbing for operand in operands):
        return absorbing
    live = [operand for operand in operands if operand is not neutral]
    if len(live) > 1:
        return Branch(operator, live)
    return live[0] if live else neutral


def _positive(node: Leaf) -> Expression:
    """Fold a predicate that must be TRUE."""
    if isinstance(node, OfDocument):
        return _of_document(_positive(node.predicate))
    if isinstance(node, Compare):
        return NEVER if node.operand == _NULL else node
    if isinstance(node, Between):
        return NEVER if _NULL in (node.low, node.high) else node
    if isinstance(node, In):
        values = tuple(value for value in node.values if value != _NULL)
        if len(values) > 1:
            return In(node.attribute, values)
        return Compare(node.attribute, "=", values[0]) if values else NEVER
    return node


def _negative(node: Leaf) -> Expression:
    """Fold a predicate that must be FALSE."""
    if isinstance(node, OfDocument):
        return _of_document(_negative(node.predicate))
    if isinstance(node, Join):
        return Join(node.document, OPPOSITE[node.operator], node.event)
    if isinstance(node, Pair):
        return Pair(node.of_document, node.left, OPPOSITE[node.operator], node.right)
    if isinstance(node, Compare):
        return _positive(Compare(node.attribute, OPPOSITE[node.operator], node.operand))
    if isinstance(node, Between):
        # NOT BETWEEN is a < low OR a > high: one side still decides when the other is NULL.
        if node.low == _NULL:
            return _positive(Compare(node.attribute, ">", node.high))
        if node.high == _NULL:
            return Compare(node.attribute, "<", node.low)
        return Not(node)
    if isinstance(node, In):
        if _NULL in node.values:
            return NEVER
        if len(node.values) == 1:
            return Compare(node.attribute, "!=", node.values[0])
    return Not(node)


def _of_document(folded: Expression) -> Expression:
    """The folded predicate, applied to the document."""
    if folded is NEVER:
        return NEVER
    if isinstance(folded, Not):
        return Not(OfDocument(folded.operand))  # type: ignore[arg-type]
    return OfDocument(folded)  # type: ignore[arg-type]
