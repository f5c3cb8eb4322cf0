"""From entries to a plan: the summaries that answer them, and the alternatives for document sets.

An alternative is a lookup in a summary if it joins by equalities and at most one other comparison::

    d.isbn = isbn AND d.price > price AND d.shop = 's3' AND d.title LIKE '%bird%'
        conditions on the document   title LIKE '%bird%'
        key                          isbn, shop          (looked up with the event's and with 's3')
        question                     MAX of price

Alternatives that differ in nothing but the names on the event's side, in constants that they
compare with, or in ``>`` and ``>=``, share a summary. With a key and several other comparisons the
summary is a list of the group's documents. Alternatives that differ in other conditions (LIKE, IN)
have summaries of their own, each with room for all its groups, so only some of a kind have one.
Everything else (several order comparisons without a key, a pair of attributes, windows that mix
with a history that forgets) goes to document sets. O(entries), in Python: once for each distinct
quantified predicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from bittern.history.passes.groups import (
    ARRIVAL,
    COUNT,
    DISTINCT,
    KINDS,
    LIST,
    MAX,
    MIN,
    NEWEST,
    NO_AXIS,
    PLACES,
    TIMES,
    Specs,
)
from bittern.history.passes.intake import Intake
from bittern.history.passes.lookups import COLUMNS, NO_VALUE, Lookups
from bittern.history.passes.passes import Pass
from bittern.history.rows import Rows
from bittern.history.sets.outcomes import ABOVE, ANYHOW, APART, BELOW, EQUAL, OUTCOMES
from bittern.language.alternatives import Conjunction, JoinEntry, OneSided
from bittern.language.syntax import Compare, LiteralValue, Window
from bittern.model.events.typed.typed import Typed, TypedReader

#: Parts of a key: the document's row, and the code of what it equals.
_Keys: TypeAlias = list[tuple[int, int]]
#: So many summaries may differ in nothing but their conditions.
MOST_ALIKE = 8
#: Outcomes that a summary tells without the documents: its question, and whether strictly.
_QUESTIONS = {
    ABOVE: (MAX, 1),
    ABOVE | EQUAL: (MAX, 0),
    BELOW: (MIN, 1),
    BELOW | EQUAL: (MIN, 0),
    BELOW | ABOVE: (DISTINCT, 0),
    APART: (KINDS, 0),
}


class SetAlternative(NamedTuple):
    """An alternative that document sets answer, and the entry that it belongs to."""

    entry: int
    alternative: Conjunction
    window: Window


class JoinPlan(NamedTuple):
    """What must be known about events and documents, and how it answers entries."""

    attributes: list[str]  # the rows of the batch's values
    conditions: list[str]  # whatever has to be TRUE, or not, of events and documents
    run: Pass
    set_alternatives: list[SetAlternative]


def plan_of(entries: Sequence[JoinEntry], *, forgets: bool) -> JoinPlan:
    """How to answer these entries; ``forgets``: the history keeps a limited number of documents."""
    maker = _Maker(forgets=forgets)
    for number, entry in enumerate(entries):
        maker.add(number, entry)
    return maker.plan(entries)


class _Spec(NamedTuple):
    """A summary, as it is told apart from others."""

    question: int
    axis: int
    axis_of: int
    value: int
    keys: tuple[int, ...]
    listed: tuple[int, ...]
    conditions: tuple[int, ...]


class _Other(NamedTuple):
    """A comparison that is not a key: a document's value, good outcomes, the other side's code."""

    document: int
    outcomes: int
    code: int


class _Maker:
    """Numbers everything in the order in which it is first needed."""

    def __init__(self, *, forgets: bool) -> None:
        self._forgets = forgets
        self._attributes: dict[str, int] = {}
        self._conditions: dict[str, int] = {}
        self._specs: dict[_Spec, int] = {}
        # Columns of the table, codes of the key, conditions on the event, residuals.
        self._lookups: list[tuple[list[int], list[int], list[int], list[int]]] = []
        self._needs: list[int] = []  # a row, for each lookup, or -1
        self._set_alternatives: list[SetAlternative] = []
        self._constants: dict[tuple[type, LiteralValue], int] = {}
        self._alike: dict[_Spec, int] = {}

    def _row(self, attribute: str) -> int:
        return self._attributes.setdefault(attribute, len(self._attributes))

    def _coded(self, conditions: Sequence[OneSided]) -> list[int]:
        numbers = self._conditions
        return sorted(
            2 * numbers.setdefault(each.text, len(numbers)) + int(each.holds) for each in conditions
        )

    def add(self, number: int, entry: JoinEntry) -> None:
        for alternative in entry.alternatives:
            if not self._look_up(number, alternative, entry.window):
                self._set_alternatives.append(SetAlternative(number, alternative, entry.window))
                self._name_all(alternative, entry.window)

    def _name_all(self, alternative: Conjunction, window: Window) -> None:
        """Document sets want to see these."""
        self._coded(alternative.document)
        self._coded(alternative.event)
        for sides in alternative.sides():
            for attribute in sides:
                self._row(attribute)
        for pair, _ in alternative.pairs:
            self._row(pair.left)
            self._row(pair.right)
        for attribute in (*window.per, *((window.of,) if window.of else ())):
            self._row(attribute)

    def _look_up(self, number: int, alternative: Conjunction, window: Window) -> bool:
        """Make lookups of an alternative, if they can answer it."""
        is_windowed = window.microseconds is not None or (window.count is not None and window.per)
        if alternative.pairs or (is_windowed and self._forgets):
            return False
        keys, others, conditions = self._parts(alternative, window)
        if len(others) > 1 and not keys:
            return False
        if len(others) != 1 or others[0].outcomes in _QUESTIONS:
            choices = [(keys, others)]
        else:  # some document is apart, or one compares so
            other = others[0]
            apart = [(keys, [other._replace(outcomes=APART)])] if other.outcomes & APART else []
            rest = other.outcomes & ~APART
            if rest == EQUAL:
                choices = [*apart, (sorted([*keys, (other.document, other.code)]), [])]
            else:
                choices = [*apart, (keys, [other._replace(outcomes=rest)])]
        coded = tuple(self._coded(conditions))
        specs = [self._spec(*choice, window, coded) for choice in choices]
        if not all(map(self._has_room, specs)):
            return False
        for spec, choice in zip(specs, choices, strict=True):
            self._add_lookup(number, spec, *choice, window, self._coded(alternative.event))
        return True

    def _spec(
        self, keys: _Keys, others: list[_Other], window: Window, conditions: tuple[int, ...]
    ) -> _Spec:
        """The summary that answers."""
        axis, axis_of = self._axis(window)
        question, document, listed = NEWEST, -1, tuple[int, ...]()
        if len(others) == 1:
            question, document = _QUESTIONS[others[0].outcomes][0], others[0].document
        elif others:
            question, listed = LIST, tuple(sorted({other.document for other in others}))
        documents = tuple(row for row, _ in keys)
        return _Spec(question, axis, axis_of, document, documents, listed, conditions)

    def _add_lookup(
        self,
        number: int,
        spec: _Spec,
        keys: _Keys,
        others: list[_Other],
        window: Window,
        conditions: list[int],
    ) -> None:
        """What is looked up there, for entry ``number``."""
        summary = self._specs.setdefault(spec, len(self._specs))
        value, strict = NO_VALUE, 0
        residuals: list[int] = []
        if len(others) == 1:
            value, strict = others[0].code, _QUESTIONS[others[0].outcomes][1]
        else:
            for other in others:
                residuals += [spec.listed.index(other.document), other.outcomes, other.code]
        last = -1 if window.count is None else window.count
        microseconds = -1 if window.microseconds is None else window.microseconds
        columns = [number, summary, value, strict, last, microseconds]
        codes = [code for _, code in keys]
        self._lookups.append((columns, codes, conditions, residuals))
        time = [spec.axis_of] if spec.axis == TIMES else []
        needed = [*codes, *time, *(other.code for other in others if not other.outcomes & APART)]
        self._needs.append(next((row for row in needed if row >= 0), -1))

    def _parts(
        self, alternative: Conjunction, window: Window
    ) -> tuple[_Keys, list[_Other], list[OneSided]]:
        """Keys (row, code), other comparisons, and conditions that are none."""
        row = self._row
        keys = {(row(name), row(name)) for name in window.per}
        others = [_Other(row(each.document), APART, row(each.event)) for each in alternative.apart]
        conditions = []
        for join in alternative.joins:
            if join.operator == "=":
                keys.add((row(join.document), row(join.event)))
            else:
                others.append(_Other(row(join.document), OUTCOMES[join.operator], row(join.event)))
        for join in alternative.denied:
            outcomes = ANYHOW ^ OUTCOMES[join.operator]
            others.append(_Other(row(join.document), outcomes, row(join.event)))
        for condition in alternative.document:
            compares = condition.compares
            if compares is None:
                conditions.append(condition)
                continue
            outcomes = OUTCOMES[compares.operator]
            if not condition.holds:
                outcomes ^= ANYHOW
            if outcomes == EQUAL:
                keys.add((row(compares.attribute), self._fixed(compares)))
            else:
                others.append(_Other(row(compares.attribute), outcomes, self._fixed(compares)))
        return sorted(keys), others, conditions

    def _fixed(self, compares: Compare) -> int:
        """The code of a constant."""
        value = compares.operand.value
        numbers = self._constants
        return -1 - numbers.setdefault((type(value), value), len(numbers))  # 1 is not TRUE

    def _axis(self, window: Window) -> tuple[int, int]:
        """What ages are, and where they come from: the row of a time, or the COUNT of places."""
        if window.microseconds is not None:
            assert window.of is not None, "a window of time has an attribute"
            return TIMES, self._row(window.of)
        if window.count is not None and window.per:
            rows = tuple(map(self._row, sorted(window.per)))
            counter = _Spec(COUNT, NO_AXIS, -1, -1, rows, (), ())
            return PLACES, self._specs.setdefault(counter, len(self._specs))
        return ARRIVAL if self._forgets or window.count is not None else NO_AXIS, -1

    def _has_room(self, spec: _Spec) -> bool:
        """Whether there are few enough summaries that differ only in their conditions."""
        if not spec.conditions or spec in self._specs:
            return True
        alike = spec._replace(conditions=())
        self._alike[alike] = self._alike.get(alike, 0) + 1
        return self._alike[alike] <= MOST_ALIKE

    def plan(self, entries: Sequence[JoinEntry]) -> JoinPlan:
        n_rows, n_conditions = len(self._attributes), len(self._conditions)
        run = Pass(
            self._all_specs(),
            self._all_lookups(entries, n_rows),
            self._intake(),
            _typed([value for _, value in self._constants]),
            n_conditions,
        )
        return JoinPlan(list(self._attributes), list(self._conditions), run, self._set_alternatives)

    def _all_specs(self) -> Specs:
        specs = list(self._specs)
        columns = np.array([spec[:4] for spec in specs], dtype=np.int64).reshape(-1, 4).T.copy()
        keys, listed = (
            Rows.of([spec.keys for spec in specs]),
            Rows.of([spec.listed for spec in specs]),
        )
        question, axis, axis_of, value = columns
        return Specs(question, axis, axis_of, value, *keys, *listed)

    def _all_lookups(self, entries: Sequence[JoinEntry], n_rows: int) -> Lookups:
        table = np.zeros((len(self._lookups), COLUMNS), dtype=np.int64)
        lists: list[int] = []
        for i, (columns, keys, conditions, residuals) in enumerate(self._lookups):
            ends = np.cumsum([len(lists), len(keys), len(conditions), len(residuals)])
            needs = self._needs[i]
            table[i] = [*columns, ends[0], ends[1], ends[1], ends[2], ends[3], needs]
            lists += keys + conditions + residuals
        has_sets = np.zeros(len(entries), dtype=np.uint8)
        has_sets[[each.entry for each in self._set_alternatives]] = 1
        negated = np.array([entry.negated for entry in entries], dtype=np.uint8)
        under = np.array(self._needs, dtype=np.int64)
        order = np.argsort(under, kind="stable")
        return Lookups(
            table,
            np.array(lists, dtype=np.int64),
            np.searchsorted(table[:, 0], np.arange(len(entries) + 1)).astype(np.int64),
            negated,
            has_sets,
            np.searchsorted(under[order], np.arange(n_rows + 1)).astype(np.int64),
            order.astype(np.int64),
            order[: np.count_nonzero(under < 0)].astype(np.int64),
            np.flatnonzero(negated | has_sets),
        )

    def _intake(self) -> Intake:
        filed: list[list[int]] = [[] for _ in self._conditions]
        unfiled, counters = [], []
        for number, spec in enumerate(self._specs):
            required = [code >> 1 for code in spec.conditions if code & 1]
            if spec.question == COUNT:
                counters.append(number)
            elif required:
                filed[required[0]].append(number)
            else:
                unfiled.append(number)
        return Intake(
            *Rows.of(filed),
            np.array(unfiled, dtype=np.int64),
            np.array(counters, dtype=np.int64),
            *Rows.of([spec.conditions for spec in self._specs]),
        )


def _typed(constants: Sequence[LiteralValue]) -> Typed:
    """Constants as values, in one row."""
    events = [{"value": constant} for constant in constants]
    return TypedReader(["value"]).read(events).typed
