"""Explains why an event matched a subscription, or why it did not.

The expression is evaluated predicate by predicate, in plain Python, over the event as a mapping::

    's1' does not match
      AND: false
        model = 'iphone5s': true, model is 'iphone5s'
        price <= 580: false, price is 600
        color = 'silver': unknown, color is missing
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from bittern.engine.asked import read_sets
from bittern.engine.index import Index
from bittern.engine.live.matcher import LiveMatcher
from bittern.engine.one_value import Truth, kind_name, outcome, wanted_kind
from bittern.engine.unanswered import needs_history
from bittern.errors import EventError, brief
from bittern.language.derived import is_derived, sides_of, stands_for_truth, term_of
from bittern.language.literals import attribute_parts
from bittern.language.parser import parse
from bittern.language.presence import is_presence, present_path
from bittern.language.printer import print_attribute, print_expression
from bittern.language.shapes import Shapes
from bittern.language.syntax import (
    And,
    BooleanConstant,
    Expression,
    IsNull,
    Join,
    Not,
    OfDocument,
    Or,
    Pair,
    Predicate,
    Quantified,
)
from bittern.language.trees import walk
from bittern.model.events.mappings import LISTS, plain_value
from bittern.model.events.objects import is_variant_column
from bittern.notebooks import tree as html_tree
from bittern.terms.nodes import attributes_of

_WORDS = {True: "true", False: "false", None: "unknown"}
#: Of terminals: green, red and yellow.
_COLOURS = {True: 32, False: 31, None: 33}


class _Nothing(Enum):
    """What an attribute is that has no value."""

    MISSING = "missing"
    NULL = "null"


class _Event(NamedTuple):
    """An event: what it has, terms included, and why some terms have no value."""

    values: Mapping[str, Any]
    failures: Mapping[str, str] = {}


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
    #: What it was in the rule that the expression was made of, if that is known.
    construct: str = ""

    def predicates(self) -> Iterator[Step]:
        """The predicates below this node, in order."""
        stack = [self]
        while stack:
            step = stack.pop()
            if step.parts:
                stack.extend(reversed(step.parts))
            else:
                yield step

    def rows(self) -> Iterator[tuple[int, Step]]:
        """The node and its parts in order, each with its depth."""
        stack = [(0, self)]
        while stack:
            depth, step = stack.pop()
            yield depth, step
            stack.extend((depth + 1, part) for part in reversed(step.parts))

    def outcome(self) -> str:
        """Whether the node held, and what was found."""
        found = f", {self.found}" if self.found else ""
        construct = f"  <- {self.construct}" if self.construct else ""
        return f"{_WORDS[self.truth]}{found}{construct}"


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
    #: "pivot" or "bits", where the index has both.
    found_by: str = ""

    @property
    def matched(self) -> bool:
        """Whether the event matched."""
        return self.step.truth is True and not self.left_out

    def predicates(self) -> list[Step]:
        """Every predicate with its outcome, in order."""
        return list(self.step.predicates())

    def __str__(self) -> str:
        steps = (f"{'  ' * depth}{s.text}: {s.outcome()}" for depth, s in self.step.rows())
        return "\n".join([self._verdict(), *(f"  {line}" for line in (*steps, *self._remarks()))])

    def coloured(self) -> str:
        """The same text for a terminal: green what was true, red what was false."""
        lines = [f"\x1b[1m{self._verdict()}\x1b[0m"]
        for depth, s in self.step.rows():
            outcome = f"\x1b[{_COLOURS[s.truth]}m{s.outcome()}\x1b[0m"
            lines.append(f"  {'  ' * depth}{s.text}: {outcome}")
        return "\n".join(lines + [f"  {remark}" for remark in self._remarks()])

    def _repr_html_(self) -> str:
        """The same as a tree, for notebooks."""
        rows = [(depth, s.truth, s.text, s.outcome()) for depth, s in self.step.rows()]
        return html_tree(self._verdict(), rows, self._remarks())

    def _verdict(self) -> str:
        return f"{self.id!r} {'matches' if self.matched else 'does not match'}"

    def _remarks(self) -> list[str]:
        """What is to be said of the whole."""
        remarks = [f"phases: {self.phases}"] if self.phases else []
        if self.found_by:
            remarks.append(f"found by: {self.found_by}")
        if self.left_out:
            remarks.append("left out: it has EXISTS or FORALL, and there is no history to look in")
        return remarks


def explain(
    index: HasExpressions,
    event: Any,
    id_: str | int,
    *,
    sets: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    draft: str | None = None,
) -> Explanation:
    """Why ``event`` matches subscription ``id_`` of an index or live matcher, or why it does not.

    ``event`` is one mapping, JSON text, or an Arrow table or record batch of one row. A live
    matcher with a history compares it with the current documents, and does not add it to them.
    ``sets`` are named sets in place of those of the index or matcher. With the ``metadata`` that a
    catalog has of a subscription that was imported, predicates show what they were in its rule.
    A ``draft`` is explained in place of the subscription's expression, which need not be there.

    >>> import bittern
    >>> index = bittern.Index.build({"s1": "price < 10 AND color = 'red'"})
    >>> print(bittern.explain(index, {"price": 12}, "s1"))
    's1' does not match
      AND: false
        price < 10: false, price is 12
        color = 'red': unknown, color is missing
    """
    text = index.expression(id_) if draft is None else draft
    tree, mapping = parse(text), _as_mapping(event)
    known = getattr(index, "sets", {})
    read = _read(tree, mapping, event, known if sets is None else {**known, **read_sets(sets)})
    asked = [node for node in walk(tree) if isinstance(node, Quantified)]
    if not asked or not isinstance(index, LiveMatcher) or index.joins is None:
        step = _with_constructs(_evaluate(tree, read, {}), metadata)
        left_out = bool(asked) and _needs_history(text)
        found_by = "" if draft is not None else _found_by(index, id_)
        return Explanation(id_, text, step, left_out=left_out, found_by=found_by)
    joins, state = index.joins, index.seal()
    answers = dict(zip(asked, joins.holds(asked, mapping), strict=True))
    n_documents = len(joins.history)
    found = f"among {n_documents:,} document{'s' * (n_documents != 1)}"
    steps = {each: Step(print_expression(each), answers[each], found) for each in asked}
    outlook = joins.outlook([segment.index for segment in state.segments], float(len(mapping)))
    step = _with_constructs(_evaluate(tree, read, steps), metadata)
    return Explanation(id_, text, step, str(outlook))


def _with_constructs(step: Step, metadata: Mapping[str, Any] | None) -> Step:
    """The steps with what their predicates were in the rule that was imported."""
    imported = (metadata or {}).get("imported")
    constructs = imported.get("constructs") if isinstance(imported, Mapping) else None
    if not isinstance(constructs, Mapping):
        return step
    done: list[Step] = []
    stack = [(step, False)]
    while stack:
        each, ready = stack.pop()
        if each.parts and not ready:
            stack.append((each, True))
            stack.extend((part, False) for part in reversed(each.parts))
            continue
        parts = tuple(done[len(done) - len(each.parts) :])
        del done[len(done) - len(each.parts) :]
        done.append(replace(each, parts=parts, construct=str(constructs.get(each.text, ""))))
    return done[0]


def _found_by(index: HasExpressions, id_: str | int) -> str:
    """The strategy that finds a subscription, if that is not the index's own."""
    if not isinstance(index, Index):
        return ""
    number = index.subscribers.class_of(index.all_ids.find(id_))
    name = index.subscriptions.found_by(number)
    return "" if name == index.subscriptions.name else name


def _read(
    tree: Expression, mapping: Mapping[str, Any], event: Any, sets: Mapping[str, Any]
) -> _Event:
    """The event with what a tree asks beyond its values, under the names that stand for it."""
    leaves = [
        n for n in walk(tree) if not isinstance(n, And | Or | Not | BooleanConstant | Quantified)
    ]
    own = [n.attribute for n in leaves]  # type: ignore[union-attr]
    names = {name for attribute in own for name in (attribute, *sides_of(attribute))}
    source = event if isinstance(event, pa.Table | pa.RecordBatch) else [mapping]
    read = _Event(mapping)
    if terms := sorted(filter(is_derived, names)):
        from bittern.model.events.derived.derived import term_values  # noqa: PLC0415  only for terms

        values, failures = term_values(terms, source, sets)
        read = _Event({**mapping, **values}, failures)
    if presences := sorted(filter(is_presence, names)):
        from bittern.model.events.present import present_names  # noqa: PLC0415  only then

        there = present_names(presences, source)
        read = _Event({**read.values, **dict.fromkeys(there, True)}, read.failures)
    return read


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
            own = {k: v for k, v in entries.items() if v is not None or k not in event}
            event = event | own | columns
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


def _evaluate(tree: Expression, event: _Event, answered: Mapping[Quantified, Step]) -> Step:
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
        elif isinstance(node, BooleanConstant):
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


def _look_up(event: _Event, attribute: str) -> Any:
    value: Any = event.values
    for part in attribute_parts(attribute):
        if isinstance(value, LISTS):
            return value  # what lies inside a list is one
        if value is None:
            return _Nothing.NULL
        if not isinstance(value, Mapping) or part not in value:
            return _Nothing.MISSING
        value = value[part]
    value = plain_value(value)
    return _Nothing.NULL if value is None else value


def _found(event: _Event, name: str) -> str:
    """What an attribute or a term is; of a term without a value, or that is a truth, why."""
    value, text = _look_up(event, name), print_attribute(name)
    if not is_derived(name):
        return f"{text} is {value.value if isinstance(value, _Nothing) else brief(value)}"
    if name in event.failures:
        return event.failures[name]
    read = [(each, _look_up(event, each)) for each in attributes_of(term_of(name))]
    if isinstance(value, bool):
        return ", ".join(_found(event, each) for each, _ in read)
    if not isinstance(value, _Nothing):
        return f"{text} is {brief(value)}"
    lacking = [_found(event, each) for each, own in read if isinstance(own, _Nothing)]
    return ", ".join([f"{text} is null", *lacking])


def _predicate(node: Predicate, event: _Event) -> Step:
    text = print_expression(node)
    if is_presence(node.attribute):
        is_missing = isinstance(_look_up(event, node.attribute), _Nothing)
        path = present_path(node.attribute)
        found = _found(event, path)
        if is_missing or isinstance(_look_up(event, path), _Nothing):
            found = f"{print_attribute(path)} is {'missing' if is_missing else 'null'}"
        return Step(text, is_missing, found)
    value = _look_up(event, node.attribute)
    if sides := sides_of(node.attribute):
        known = [_found(event, side) for side in sides]
        if isinstance(node, IsNull):
            return Step(text, isinstance(value, _Nothing), ", ".join(known))
        if not isinstance(value, _Nothing):
            return Step(text, outcome(node, value), ", ".join(known))
        if len(sides) == 1 and not isinstance(_look_up(event, sides[0]), _Nothing):
            known.append("which is of another kind than the members")
        return Step(text, None, ", ".join(known))
    found = _found(event, node.attribute)
    if isinstance(node, IsNull):
        return Step(text, isinstance(value, _Nothing), found)
    if isinstance(value, _Nothing):
        return Step(text, None, found)
    truth = outcome(node, value)
    if truth is None and kind_name(value) != wanted_kind(node):
        found += f", which is not a {wanted_kind(node)}"
    return Step(text, truth, found)


def _is_presence(node: Expression) -> bool:
    """Whether it says that an attribute is not there which is there if its term is TRUE."""
    return isinstance(node, IsNull) and stands_for_truth(node.attribute)


def _presence(node: Not, event: _Event) -> Step:
    assert isinstance(node.operand, IsNull), "that is how it is written"
    name = node.operand.attribute
    is_there = not isinstance(_look_up(event, name), _Nothing)
    read = [_found(event, each) for each in attributes_of(term_of(name))]
    return Step(print_expression(node), is_there, event.failures.get(name) or ", ".join(read))
