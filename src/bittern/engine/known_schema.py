"""Subscriptions over events of a known schema: what they mean there, and what can never hold.

``KnownSchema`` stands beside ``Shapes`` where texts are read. It converts those whose constants are
of another kind than the attribute (``language/conversions.py``), and finds the mistakes that no
parser can see::

    price > '98'     price > 98.0e0
    prize > 98       the events have no prize: did you mean price?
    seen > 98        seen is TIMESTAMP, and is never compared with a number

What becomes of a predicate depends on its attribute, its operator and the kinds of its constants,
so it is decided once for each combination of these: a further text costs one look-up.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bittern.arrays import Int32s, Int64s
from bittern.engine.subscriptions import Subscriptions
from bittern.errors import BadSubscription, ExpressionError
from bittern.language.conversions import converted, converted_text, term_of_leaf
from bittern.language.derived import is_derived, sides_of, term_of
from bittern.language.lexer import tokens, without_comments
from bittern.language.literals import attribute_name, kind_of
from bittern.language.printer import print_attribute
from bittern.language.quantifiers import is_hidden, quantified_of, sides_of_quantified
from bittern.language.shapes import Shapes
from bittern.language.syntax import (
    And,
    BooleanConstant,
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
from bittern.language.templates import Slot, Template
from bittern.language.term_printer import print_term
from bittern.language.trees import walk
from bittern.model.event_schema import EventSchema
from bittern.terms import nodes
from bittern.terms.casts.coercions import CastError, ColumnTypes, can_be_text, compared_as
from bittern.terms.scope import MeaninglessError
from bittern.terms.types import type_name
from bittern.terms.unknown import EMBEDDED, SPARK

logger = logging.getLogger("bittern")

_MAX_REMEMBERED = 1_000_000
#: A warning names so many.
_SHOWN = 5
#: A constant of each kind, which stands for all of them.
_SAMPLES: dict[str, Any] = {
    "number": 2,  # 1 were TRUE in Python
    "string": "",
    "date": dt.date(2000, 1, 1),
    "timestamp": dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
}


class Unknown(NamedTuple):
    """A subscription that names what the events do not have, or compares what cannot be."""

    id: str | int | None  # None: of several
    attribute: str
    reason: str


class ReadRows(NamedTuple):
    """The shape of each text (-1: it is bad), and the numbers of all parameters."""

    shape_ids: Int32s
    codes: Int32s

    def by_leaf(self, templates: Sequence[Template]) -> Iterator[tuple[Predicate, Int64s, Int32s]]:
        """Each predicate of each shape, the rows that have it, and their attributes' numbers."""
        sizes = np.array([*(len(template.kinds) for template in templates), 0])  # 0 for shape -1
        starts = np.cumsum(sizes[self.shape_ids]) - sizes[self.shape_ids]
        order = np.argsort(self.shape_ids, kind="stable")
        shapes, firsts = np.unique(self.shape_ids[order], return_index=True)
        for shape, rows in zip(shapes.tolist(), np.split(order, firsts[1:]), strict=False):
            if shape >= 0:
                for leaf in leaves(templates[shape]):
                    yield leaf, rows, self.codes[starts[rows] + _slot(leaf)]


class KnownSchema:
    """What a schema of events says about subscriptions. One thread at a time."""

    def __init__(self, schema: EventSchema, functions: str = EMBEDDED) -> None:
        """``functions="spark"`` says that Spark computes terms, and knows better what it can."""
        self.schema = schema
        self._is_spark = functions == SPARK
        self._types = ColumnTypes(_Columns(schema), self._is_of_spark if self._is_spark else None)
        self._slots: dict[int, tuple[Template, tuple[int, ...]]] = {}
        self._needs: dict[tuple[Any, ...], bool] = {}
        self._changes: dict[Predicate, bool] = {}
        self._reasons: dict[Predicate | str, str] = {}  # by predicate or missing attribute

    @classmethod
    def of(cls, schema: Any, functions: str = EMBEDDED) -> KnownSchema:
        """From what a caller gave as a schema."""
        return cls(EventSchema.of(schema), functions)

    def converted(self, text: str, template: Template, parameters: Sequence[str]) -> str:
        """A text of a template with these parameters, with the casts that Spark adds.

        The same text if it needs none. ``ExpressionError`` if a constant cannot be cast.
        """
        if len(self._needs) >= _MAX_REMEMBERED:
            self._needs.clear()
            self._slots.clear()
        known = self._slots.get(id(template))  # which it keeps: no other has this id
        if known is None:
            slots = dict.fromkeys(_slot(leaf) for leaf in leaves(template))
            known = self._slots[id(template)] = template, tuple(slots)
        key = (id(template), *[parameters[slot] for slot in known[1]])
        needs = self._needs.get(key)
        if needs is None:
            needs = self._needs[key] = any(
                self._is_changed(leaf, parameters[_slot(leaf)]) for leaf in leaves(template)
            )
        return converted_text(text, self._types) if needs else text

    def changed_rows(
        self, rows: ReadRows, templates: Sequence[Template], word: Callable[[int], str]
    ) -> Int64s:
        """Which texts need casts; ``word`` tells what a parameter's number stands for.

        O(parameters), in whole columns; every distinct predicate is decided once.
        """
        found = [np.empty(0, dtype=np.int64)]
        for leaf, own, codes in rows.by_leaf(templates):
            distinct, inverse = np.unique(codes, return_inverse=True)
            changed = [self._is_changed(leaf, word(code)) for code in distinct.tolist()]
            found.append(own[np.array(changed, dtype=np.bool_)[inverse]])
        return np.unique(np.concatenate(found))

    def convert(self, text: str) -> str:
        """A text with its casts; ``ExpressionError`` if a constant cannot be cast."""
        return converted_text(text, self._types)

    def _is_changed(self, leaf: Predicate, word: str) -> bool:
        """Whether a predicate on this attribute needs a cast."""
        own = _with_name(leaf, word)
        if own not in self._changes:
            try:
                self._changes[own] = converted(own, self._types) != own
            except CastError:
                self._changes[own] = True
        return self._changes[own]

    def unknown(self, subscriptions: Subscriptions, templates: Sequence[Template]) -> list[Unknown]:
        """The mistakes of subscriptions, in their order. O(parameters)."""
        words = subscriptions.parameters.dictionary
        read = ReadRows(subscriptions.shape_ids, subscriptions.parameters.indices.to_numpy())
        found: set[tuple[int, str, str]] = set()
        for leaf, rows, own in read.by_leaf(templates):
            for code in np.unique(own).tolist():
                for name, reason in self._mistakes(leaf, words[code].as_py()):
                    for row in rows[own == code].tolist():
                        found.add((row, name, reason))
        return [
            Unknown(subscriptions.ids[row], name, reason) for row, name, reason in sorted(found)
        ]

    def read(
        self,
        id_: str | int,
        text: str,
        shapes: Shapes,
        unknown: str,
        tell: Callable[[list[Unknown]], None] | None = None,
    ) -> tuple[str, int, tuple[str, ...]]:
        """Read one subscription: its converted text, its shape and its parameters.

        What it asks for in vain ``tell`` gets, or else the log, unless ``unknown`` is "ignore"; if
        that is "raise", it is an ``ExpressionError``.
        """
        shape_id, parameters = shapes.read(text)
        converted = self.converted(text, shapes.templates[shape_id], parameters)
        if converted is not text:
            shape_id, parameters = shapes.read(converted)
        if unknown != "ignore":
            template = shapes.templates[shape_id]
            found = [
                Unknown(id_, *mistake)
                for leaf in leaves(template)
                for mistake in self._mistakes(leaf, parameters[_slot(leaf)])
            ]
            mistakes = list(dict.fromkeys(found))
            if mistakes and unknown == "raise":
                _, attribute, reason = mistakes[0]
                raise ExpressionError(reason, text, _position(text, attribute))
            (tell or tell_unknown)(mistakes)
        return converted, shape_id, parameters

    def missing(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Of attributes as an index names them, those that no event has, and what to say of them.

        So are texts that Spark does not compare by their bytes, as the index does. For an index
        that was built before the events were known.
        """
        names = list(names)
        asked = dict.fromkeys(each for name in names for each in attributes_in(name))
        found = [(each, self._missing(each)) for each in asked if self.schema.is_missing(each)]
        compared = dict.fromkeys(each for name in names for each in sides_of(name) or [name])
        return found + [
            (each, f"Spark does not compare {each} by its bytes, and this index does")
            for each in compared
            if self._is_of_spark(each)
        ]

    def _is_of_spark(self, name: str) -> bool:
        return not self.schema.is_compared_by_bytes(name)

    def _missing(self, name: str) -> str:
        if name not in self._reasons:
            self._reasons[name] = self.schema.missing(name)
        return self._reasons[name]

    def judge(
        self, subscriptions: Subscriptions, templates: list[Template], *, refuse: bool
    ) -> tuple[Subscriptions, list[Unknown]]:
        """The subscriptions and their mistakes; if those are refused, what has some is bad."""
        mistakes = self.unknown(subscriptions, templates)
        kept = self._without(subscriptions, templates, mistakes) if refuse else subscriptions
        return kept, mistakes

    def _without(
        self, subscriptions: Subscriptions, templates: list[Template], unknown: Sequence[Unknown]
    ) -> Subscriptions:
        """The subscriptions without those that have mistakes, which are bad. O(parameters)."""
        first: dict[str | int | None, Unknown] = {}
        for each in unknown:
            first.setdefault(each.id, each)
        rows = [row for row, id_ in enumerate(subscriptions.ids) if id_ in first] if first else []
        bad = []
        for row in rows:
            id_, (_, attribute, reason) = subscriptions.ids[row], first[subscriptions.ids[row]]
            at = _position(subscriptions.texts[row].as_py(), attribute)
            bad.append(BadSubscription(id_, at, reason))
        return subscriptions.without(bad, templates) if bad else subscriptions

    def _mistakes(self, leaf: Predicate, word: str) -> list[tuple[str, str]]:
        """What is wrong with a predicate on an attribute: names and reasons."""
        name = attribute_name(word)
        missing = [each for each in attributes_in(name) if self.schema.is_missing(each)]
        if missing:
            return [(each, self._missing(each)) for each in missing]
        own = _with_name(leaf, word)
        if own not in self._reasons:
            self._reasons[own] = self._never(own)
        return [(_shown(own), self._reasons[own])] if self._reasons[own] else []

    def _never(self, leaf: Predicate) -> str:
        """Why a predicate is never true, because of types; empty if it may be."""
        term = term_of_leaf(leaf)
        if not isinstance(term, nodes.Call):
            return ""
        try:
            kinds = [self._types.of(argument) for argument in term.arguments]
        except MeaninglessError as wrong:
            return "" if self._is_spark else f"{_shown(leaf)} has no value: {wrong}"
        first, *others = kinds
        if first is None:
            return ""
        what = f"{_shown(leaf)} is {type_name(first)}"
        if isinstance(leaf, Like | Regex):
            return "" if can_be_text(first) else f"{what}, in which no pattern is found"
        for argument, other in zip(term.arguments[1:], others, strict=True):
            if other is not None and compared_as((first, other)) is None:
                return f"{what}, and is never compared with {_described(argument, other)}"
        return ""


class _Columns(Mapping[str, pa.Array]):
    """Empty columns of the attributes whose types are known."""

    def __init__(self, schema: EventSchema) -> None:
        self.schema = schema

    def __getitem__(self, name: str) -> pa.Array:
        kind = self.schema.type_of(name)
        if kind is None:
            raise KeyError(name)
        return pa.nulls(0, kind)

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("attributes are looked up, not listed")

    def __len__(self) -> int:
        raise NotImplementedError("attributes are looked up, not counted")


def leaves(template: Template) -> list[Predicate]:
    """The predicates of a template, with slots, each once."""
    found: dict[Predicate, None] = {}
    for node in walk(template.tree):
        if not isinstance(node, And | Or | Not | BooleanConstant):
            assert not isinstance(node, Join | OfDocument | Pair | Quantified), "hidden"
            found[node] = None
    return list(found)


def _slot(leaf: Predicate) -> int:
    """The number of the slot of a predicate's attribute."""
    slot: Any = leaf.attribute
    return int(slot.number)


def _with_name(leaf: Predicate, word: str) -> Predicate:
    """A predicate of a template with an attribute, and some constant of the kind in each slot."""

    def filled(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(filled, value))
        return Literal(_SAMPLES[value.kind]) if isinstance(value, Slot) else value

    name = attribute_name(word)
    if isinstance(leaf, Like | Regex):
        return replace(leaf, attribute=name, pattern="")
    values = {field.name: filled(getattr(leaf, field.name)) for field in fields(leaf)[1:]}
    return type(leaf)(name, **values)


def attributes_in(name: str) -> list[str]:
    """The attributes of events and documents that an attribute of an index stands for."""
    if is_hidden(name):
        event, document = sides_of_quantified(quantified_of(name))
        return list(dict.fromkeys((*event, *document)))
    return nodes.attributes_of(term_of(name)) if is_derived(name) else [name]


def _shown(leaf: Predicate) -> str:
    """The first of what a predicate compares."""
    return print_attribute((sides_of(leaf.attribute) or [leaf.attribute])[0])


def _described(term: nodes.Term, kind: pa.DataType) -> str:
    if isinstance(term, nodes.Constant):
        return f"a {kind_of(Literal(term.scalar.as_py()))}"
    return f"{print_term(term)}, which is {type_name(kind)}"


def _position(text: str, attribute: str) -> int:
    """Where a text has an attribute, or 0."""
    for token in tokens(without_comments(text)):
        if token.kind == "attribute":
            name = attribute_name(token.text)
            if name == attribute or name.endswith(f".{attribute}"):  # of a document
                return int(token.position)
    return 0


def tell_unknown(unknown: Sequence[Unknown]) -> None:
    """Warn of what the events do not have, if there is anything."""
    if not unknown:
        return
    reasons = list(dict.fromkeys(each.reason for each in unknown))
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    ids = {each.id for each in unknown}
    logger.warning(
        "bittern: %s ask for what the events cannot have: %s%s",
        "subscriptions" if None in ids else f"{len(ids):,} subscription(s)",
        "; ".join(reasons[:_SHOWN]),
        more,
    )
