"""Explains why an event matched a subscription, or why it did not.

The expression is evaluated predicate by predicate, in plain Python, over the event as a mapping::

    's1' does not match
      AND: false
        model = 'iphone5s': true, model is 'iphone5s'
        price <= 580: false, price is 600
        color = 'silver': unknown, color is missing
"""

from __future__ import annotations

import datetime as dt
import json
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa

from bittern.engine.live.matcher import LiveMatcher
from bittern.engine.unanswered import needs_history
from bittern.errors import EventError, brief
from bittern.language.derived import is_derived, sides_of, stands_for_truth
from bittern.language.literals import attribute_parts
from bittern.language.parser import parse
from bittern.language.printer import print_attribute, print_expression
from bittern.language.shapes import Shapes
from bittern.language.syntax import (
    And,
    Between,
    Compare,
    Constant,
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
    Regex,
)
from bittern.language.trees import walk
from bittern.model.events.documents import is_variant_column
from bittern.model.events.mappings import LISTS, plain_value
from bittern.model.numbers import exact
from bittern.terms.pattern_texts import Wildcard, compile_regex, like_parts

Truth = bool | None
_WORDS = {True: "true", False: "false", None: "unknown"}
_MISSING = object()


class HasExpressions(Protocol):
    """An index or a live matcher, which knows the texts of its subscriptions."""

    def expression(self, id_: str | int, /) -> str:
        """The text of a subscription; raises UnknownSubscriptionError."""
        ...


@dataclass(frozen=True)
class Step:
    """One node of the expression: its text, whether it held, what was found, its parts."""

    text: str
    truth: Truth
    found: str = ""
    parts: tuple[Step, ...] = ()

    def predicates(self) -> Iterator[Step]:
        """The predicates below this node, in order."""
        stack = [self]
        while stack:
            step = stack.pop()
            if step.parts:
                stack.extend(reversed(step.parts))
            else:
                yield step

    def lines(self) -> Iterator[str]:
        """The node and its parts, indented."""
        stack = [(self, 0)]
        while stack:
            step, depth = stack.pop()
            found = f", {step.found}" if step.found else ""
            yield f"{'  ' * depth}{step.text}: {_WORDS[step.truth]}{found}"
            stack.extend((part, depth + 1) for part in reversed(step.parts))


@dataclass(frozen=True)
class Explanation:
    """Whether an event matched a subscription, and the outcome of each predicate; print it."""

    id: str | int
    expression: str
    step: Step
    #: Which phase went first for the last batch, or would for the next; if there are quantifiers.
    phases: str = ""
    #: Whether it is not matched at all, because there is no history to look in.
    left_out: bool = False

    @property
    def matched(self) -> bool:
        """Whether the event matched."""
        return self.step.truth is True and not self.left_out

    def predicates(self) -> list[Step]:
        """Every predicate with its outcome, in order."""
        return list(self.step.predicates())

    def __str__(self) -> str:
        verdict = "matches" if self.matched else "does not match"
        lines = [f"{self.id!r} {verdict}", *(f"  {line}" for line in self.step.lines())]
        if self.phases:
            lines.append(f"  phases: {self.phases}")
        if self.left_out:
            lines.append("  left out: it has EXISTS or FORALL, and there is no history to look in")
        return "\n".join(lines)


def explain(
    index: HasExpressions, event: Any, id_: str | int, *, sets: Mapping[str, Any] | None = None
) -> Explanation:
    """Why ``event`` matches subscription ``id_`` of an index or live matcher, or why it does not.

    ``event`` is one mapping, JSON text, or an Arrow table or record batch of one row. A live
    matcher with a history compares it with the current documents, and does not add it to them.
    ``sets`` are named sets in place of those of the index or matcher.

    >>> import bittern
    >>> index = bittern.Index.build({"s1": "price < 10 AND color = 'red'"})
    >>> print(bittern.explain(index, {"price": 12}, "s1"))
    's1' does not match
      AND: false
        price < 10: false, price is 12
        color = 'red': unknown, color is missing
    """
    text = index.expression(id_)
    tree, mapping = parse(text), _as_mapping(event)
    known = getattr(index, "sets", {})
    mapping = _with_terms(tree, mapping, event, known if sets is None else _given(known, sets))
    asked = [node for node in walk(tree) if isinstance(node, Quantified)]
    if not asked or not isinstance(index, LiveMatcher) or index.joins is None:
        step = _evaluate(tree, mapping, {})
        return Explanation(id_, text, step, left_out=bool(asked) and _needs_history(text))
    joins, state = index.joins, index.seal()
    answers = dict(zip(asked, joins.holds(asked, mapping), strict=True))
    n_documents = len(joins.history)
    found = f"among {n_documents:,} document{'s' * (n_documents != 1)}"
    steps = {each: Step(print_expression(each), answers[each], found) for each in asked}
    outlook = joins.outlook([segment.index for segment in state.segments], float(len(mapping)))
    return Explanation(id_, text, _evaluate(tree, mapping, steps), str(outlook))


def _given(known: Mapping[str, Any], sets: Mapping[str, Any]) -> Mapping[str, Any]:
    from bittern.engine.sets.named import read_sets  # noqa: PLC0415  only for sets

    return {**known, **read_sets(sets)}


def _with_terms(
    tree: Expression, mapping: Mapping[str, Any], event: Any, sets: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The event with the values of the terms of a tree, under the names that stand for them."""
    leaves = [n for n in walk(tree) if not isinstance(n, And | Or | Not | Constant | Quantified)]
    own = [n.attribute for n in leaves]  # type: ignore[union-attr]
    names = {name for attribute in own for name in (attribute, *sides_of(attribute))}
    names = {name for name in names if is_derived(name)}
    if not names:
        return mapping
    from bittern.model.events.derived import term_values  # noqa: PLC0415  only for terms

    source = event if isinstance(event, pa.Table | pa.RecordBatch) else [mapping]
    return {**mapping, **term_values(sorted(names), source, sets)}


def _needs_history(text: str) -> bool:
    shapes = Shapes()
    shape, _ = shapes.read(text)
    return needs_history(shapes.templates[shape])


def _as_mapping(event: Any) -> Mapping[str, Any]:
    if isinstance(event, pa.Table | pa.RecordBatch):
        if any(is_variant_column(field) for field in event.schema):
            raise EventError(
                "an event with a variant cannot be explained: give it as a mapping or JSON"
            )
        rows = event.to_pylist()
        if len(rows) != 1:
            raise EventError(
                f"only one event can be explained at a time, but the table has {len(rows)} rows"
            )
        columns = {field.name: _plain(rows[0][field.name], field.type) for field in event.schema}
        maps = [field.name for field in event.schema if pa.types.is_map(field.type)]
        event = columns
        for name in reversed(maps):  # their keys are attributes, unless a column has the name
            entries = columns[name] or {}
            event = event | {k: v for k, v in entries.items() if v is not None} | columns
    elif isinstance(event, str):
        try:
            event = json.loads(event, parse_constant=_refuse_constant)
            json.dumps(event, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise EventError("the event holds half a surrogate pair") from None
        except ValueError as wrong:
            raise EventError(f"the event is not JSON: {wrong}") from None
    elif isinstance(event, Sequence) and len(event) == 1:
        event = event[0]
    if not isinstance(event, Mapping):
        raise EventError(f"an event must be a mapping or a JSON object, not {type(event).__name__}")
    return event


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value of an Arrow type in plain Python; maps, which are lists of pairs, become mappings."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    return value


def _evaluate(
    tree: Expression, event: Mapping[str, Any], answered: Mapping[Quantified, Step]
) -> Step:
    """Post-order over the tree without recursion: expressions may be deep."""
    done: list[Step] = []
    stack: list[tuple[Expression, bool]] = [(tree, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Not) and _is_presence(node.operand):
            done.append(_presence(node, event))
        elif isinstance(node, And | Or | Not):
            operands = (node.operand,) if isinstance(node, Not) else node.operands
            if not ready:
                stack.append((node, True))
                stack.extend((operand, False) for operand in reversed(operands))
                continue
            parts = tuple(done[-len(operands) :])
            del done[-len(operands) :]
            done.append(_combine(node, parts))
        elif isinstance(node, Constant):
            done.append(Step(print_expression(node), node.value))
        elif isinstance(node, Quantified):
            unknown = Step(print_expression(node), None, "there is no history to look in")
            done.append(answered.get(node, unknown))
        else:
            assert not isinstance(node, OfDocument | Join | Pair), "only quantifiers have these"
            done.append(_predicate(node, event))
    return done[0]


def _combine(node: And | Or | Not, parts: tuple[Step, ...]) -> Step:
    truths = [part.truth for part in parts]
    if isinstance(node, Not):
        inner = truths[0]
        return Step("NOT", None if inner is None else not inner, parts=parts)
    decisive = isinstance(node, Or)
    truth: Truth = not decisive
    if decisive in truths:
        truth = decisive
    elif None in truths:
        truth = None
    return Step("OR" if decisive else "AND", truth, parts=parts)


def _look_up(event: Mapping[str, Any], attribute: str) -> Any:
    value: Any = event
    for part in attribute_parts(attribute):
        if isinstance(value, LISTS):
            return value  # what lies inside a list is one
        if not isinstance(value, Mapping) or value.get(part) is None:
            return _MISSING
        value = value[part]
    value = plain_value(value)
    return _MISSING if value is None else value


def _predicate(node: Predicate, event: Mapping[str, Any]) -> Step:
    value = _look_up(event, node.attribute)
    name = print_attribute(node.attribute)
    text = print_expression(node)
    if isinstance(node, Compare) and (sides := sides_of(node.attribute)):
        values = [(print_attribute(side), _look_up(event, side)) for side in sides]
        known = [f"{side} is {'missing' if v is _MISSING else brief(v)}" for side, v in values]
        if len(sides) == 1 and value is _MISSING and values[0][1] is not _MISSING:
            known.append("which is of another kind than the members")
        return Step(text, None if value is _MISSING else _test(node, value), ", ".join(known))
    if isinstance(node, IsNull):
        found = "is missing" if value is _MISSING else f"is {brief(value)}"
        return Step(text, value is _MISSING, f"{name} {found}")
    if value is _MISSING:
        return Step(text, None, f"{name} is missing")
    truth = _test(node, value)
    found = f"{name} is {brief(value)}"
    if truth is None and _kind(value) != _wanted_kind(node):
        found += f", which is not a {_wanted_kind(node)}"
    return Step(text, truth, found)


def _is_presence(node: Expression) -> bool:
    """Whether it says that an attribute is not there which is there if its term is TRUE."""
    return isinstance(node, IsNull) and stands_for_truth(node.attribute)


def _presence(node: Not, event: Mapping[str, Any]) -> Step:
    assert isinstance(node.operand, IsNull), "that is how it is written"
    is_there = _look_up(event, node.operand.attribute) is not _MISSING
    return Step(print_expression(node), is_there)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, str):
        return "string"
    return "time" if isinstance(value, dt.date) else "value that can be compared"


def _wanted_kind(node: Predicate) -> str:
    if isinstance(node, Compare):
        return _kind(node.operand.value)
    if isinstance(node, Between):
        return _kind(node.low.value)
    if isinstance(node, In):
        return next((_kind(v.value) for v in node.values if v.value is not None), "number")
    return "string"


def _test(node: Predicate, value: Any) -> Truth:
    if isinstance(node, Compare):
        return _compare(value, node.operator, node.operand)
    if isinstance(node, Between):
        ends = [_compare(value, ">=", node.low), _compare(value, "<=", node.high)]
        return False if False in ends else (None if None in ends else True)
    if isinstance(node, In):
        found = [_compare(value, "=", each) for each in node.values]
        return True if True in found else (None if None in found else False)
    if not isinstance(value, str):
        return None
    if isinstance(node, Like):
        return _like(value, node)
    assert isinstance(node, Regex)
    return compile_regex(node.pattern).search(value) is not None


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compare(value: Any, comparison: str, literal: Literal) -> Truth:
    wanted = literal.value
    if wanted is None or _kind(value) != _kind(wanted):
        return None
    return _OPERATORS[comparison](_key(value), _key(wanted))


def _key(value: Any) -> Any:
    """What a value compares by: NaN above infinity above every number, strings by their bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return value
    if isinstance(value, dt.datetime):
        return value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return (2, 0) if math.isnan(value) else (1 if value > 0 else -1, 0)
    return (0, exact(value))


def _like(value: str, node: Like) -> bool:
    """Go through the value with a bit for each piece that may be next: O(value x pattern / 64)."""
    pieces: list[str | Wildcard] = []
    for part in like_parts(node.pattern, node.escape).pieces:
        pieces.extend(part if isinstance(part, str) else [part])
    stays = 0
    leads_to: dict[str | Wildcard, int] = {Wildcard.ANY_ONE: 0}
    state = 1
    for piece in pieces:
        if piece is Wildcard.ANY:
            stays |= state
        else:
            state <<= 1
            leads_to[piece] = leads_to.get(piece, 0) | state
    reached, anyway = 1, leads_to[Wildcard.ANY_ONE]
    for character in value:
        fits = leads_to.get(character, 0) | anyway
        reached = reached << 1 & fits | reached & stays
    return bool(reached & state)
