"""The terms of one event: what ``derived.py`` computes for a batch, without its columns.

Terms that read the same attributes are a *group*. A group is asked with the values that an event
has for these, and what becomes of each term depends on the types of the values alone::

    value in a set        one look-up                                 a value
    price * 2             the machine of terms, on one row            a value
    lower(brand), ...     by the functions of a batch, as columns     cells, which are kept
                          of one row

Cells are kept by the values that they were computed from, and forgotten when there are too many, or
when some set is another. A group is left alone where all its terms are NULL because an attribute
is. A term that has no value, as Spark would fail, makes the event one for the batch, which lists
the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from bittern.model.events.batch import Constants, PairBatch, cells_of
from bittern.model.events.columns import plain, read_column
from bittern.model.events.derived.derived import (
    DerivedAttributes,
    add_elements,
    evaluated,
)
from bittern.model.events.derived.gathered import TypedColumn, one_value
from bittern.model.events.derived.known import Failures
from bittern.model.rank.space import NUMBER, STRING, TIME
from bittern.model.tagged import BOOLEAN, FLOAT, INTEGER, TIMESTAMP
from bittern.model.tagged import STRING as TEXT
from bittern.terms.logic.members import NamedSets, set_of
from bittern.terms.machine.kernel import LEFT, run
from bittern.terms.machine.translator import BOOLEAN as TRUTH
from bittern.terms.machine.translator import REAL, Translation
from bittern.terms.nodes import Attribute, Call
from bittern.terms.scope import Scope
from bittern.terms.types import INTEGERS

#: The tag of a value, and its payload or the bytes of a string; None: there is none.
Given: TypeAlias = tuple[int, Any] | None
#: An attribute, and the tag and the payload of its value.
TermValue: TypeAlias = tuple[int, int, int]
#: Values of these are told from each other by their payloads.
TAGS = frozenset((INTEGER, FLOAT, BOOLEAN, TIMESTAMP, TEXT))
_SET_KINDS = {INTEGER: NUMBER, TIMESTAMP: TIME, TEXT: STRING}
#: What is kept: so much for each index, and nothing for longer strings.
_MOST_KEPT = 1 << 16
_LONGEST_KEPT = 256
_MOST_PLANS = 64
_UNKNOWN = [-1]


class LeftError(Exception):
    """An event has to be left to the batch."""


class _Group(NamedTuple):
    """Terms that read the same attributes, by their places among all."""

    reads: tuple[int, ...]
    names: tuple[str, ...]
    places: list[int]
    is_strict: bool
    plans: dict[tuple[int | None, ...], _Plan]


class _Plan(NamedTuple):
    """How the terms of a group are computed for values of some types."""

    look_ups: list[tuple[int, str, int]]  # the attribute, its set, and the kind of the value
    translation: Translation | None
    inputs: list[int]  # which of the values each input of the machine is
    results: list[tuple[int, int, int]]  # of the machine: the place, the attribute, and the tag
    rest: list[int]  # the places of the others


class _Kept(NamedTuple):
    """Cells by group and values; None: some term has no value."""

    sets: NamedSets
    cells: list[dict[tuple[Given, ...], list[int] | None]]


class OneRow:
    """The terms of one rank space, for one event at a time. Threads may share it."""

    def __init__(self, derived: DerivedAttributes, constants: Constants) -> None:
        self._derived = derived
        self._constants = constants
        self._all = [*derived.terms, *(array for array, _ in derived.elements)]
        numbers = derived.found_as.numbers
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for place, each in enumerate(self._all):
            groups.setdefault((each.reads, each.is_strict), []).append(place)
        self._groups = [
            _Group(tuple(numbers[name] for name in names), names, places, strict, {})
            for (names, strict), places in groups.items()
        ]
        #: Whether some term may have a value though no attribute that it reads has one.
        self.are_always_asked = not all(group.is_strict for group in self._groups)
        self._kept = self._none_kept({})
        self._n_kept = 0

    def _none_kept(self, sets: NamedSets) -> _Kept:
        return _Kept(sets, [{} for _ in self._groups])

    def of(self, given: Sequence[Given], sets: NamedSets) -> tuple[list[TermValue], list[int]]:
        """The values of terms, and for others their channels and cells in turn.

        ``given`` has the value of each attribute that terms read. ``LeftError`` if the batch has to
        tell why a term has no value.
        """
        kept = self._kept
        if kept.sets is not sets or self._n_kept > _MOST_KEPT:
            kept = self._kept = self._none_kept(sets)
            self._n_kept = 0
        entries: list[TermValue] = []
        cells: list[int] = []
        for group, known in zip(self._groups, kept.cells, strict=True):
            values = tuple([given[read] for read in group.reads])
            if group.is_strict and None in values:
                continue
            types = tuple([value and value[0] for value in values])
            plan = group.plans.get(types)
            if plan is None:
                plan = self._plan(group, types)
            for attribute, name, kind in plan.look_ups:
                is_there = sets[name].has(values[0][1], kind, name)  # type: ignore[index]
                entries.append((attribute, BOOLEAN, int(is_there)))
            left = _run(plan, values, entries) if plan.translation is not None else []
            if left:
                cells += _there(self._cells(group, left, values, sets))
            if not plan.rest:
                continue
            found = known.get(values, _UNKNOWN)
            if found is _UNKNOWN:
                found = self._cells(group, plan.rest, values, sets)
                if all(value is None or _is_short(value) for value in values):
                    known[values] = found
                    self._n_kept += 1
            cells += _there(found)
        return entries, cells

    def _plan(self, group: _Group, types: tuple[int | None, ...]) -> _Plan:
        """How a group is computed, which is kept as far as there is room."""
        terms, look_ups, rest = self._derived.terms, [], []
        for place in group.places:
            name = _set_of_value(terms[place].term) if place < len(terms) else None
            if name is not None and types[0] in _SET_KINDS:
                look_ups.append((terms[place].number, name, _SET_KINDS[types[0]]))
            else:
                rest.append(place)
        numeric = [place for place in rest if place < len(terms)]
        columns = ((name, _column(tag)) for name, tag in zip(group.names, types, strict=True))
        typed = tuple((name, array.type) for name, array in columns)
        plan = _Plan(look_ups, None, [], [], rest)
        translation = self._derived.machine.translated(tuple(numeric), typed)
        inputs = [term.name for term in translation.inputs if isinstance(term, Attribute)]
        if translation.terms and len(inputs) == len(translation.inputs):
            done = [numeric[place] for place in translation.terms]
            tags = map(_tag_of, translation.kinds)
            plan = _Plan(
                look_ups,
                translation,
                [group.names.index(name) for name in inputs],
                [(place, terms[place].number, tag) for place, tag in zip(done, tags, strict=True)],
                [place for place in rest if place not in done],
            )
        if len(group.plans) >= _MOST_PLANS:
            group.plans.clear()
        group.plans[types] = plan
        return plan

    def _cells(
        self, group: _Group, places: Iterable[int], values: Sequence[Given], sets: NamedSets
    ) -> list[int] | None:
        """Channels and cells in turn; None if some term has no value."""
        arrays = {
            name: pa.nulls(1) if value is None else one_value(*value)
            for name, value in zip(group.names, values, strict=True)
        }
        columns = {name: TypedColumn(None, [array]) for name, array in arrays.items()}
        scope, batch, failures = Scope(arrays, 1, sets=sets), PairBatch(self._constants), Failures()
        terms, elements = self._derived.terms, self._derived.elements
        for place in places:
            for rows, array in evaluated(self._all[place], columns, scope, failures):
                if place < len(terms):
                    batch.add_column(terms[place].number, read_column(plain(array)))
                else:
                    of_array, wanted = elements[place - len(terms)]
                    add_elements(of_array, wanted, array, rows, batch, failures)
        if failures:
            return None
        cells = cells_of(batch.pairs())
        channels = np.searchsorted(self._constants.arrays.bases, cells, "right") - 1
        found: list[int] = np.column_stack((channels, cells)).ravel().tolist()
        return found


def _there(found: list[int] | None) -> list[int]:
    if found is None:
        raise LeftError
    return found


def _is_short(value: tuple[int, Any]) -> bool:
    return value[0] != TEXT or len(value[1]) <= _LONGEST_KEPT


def _column(tag: int | None) -> pa.Array:
    """A column of the type that values with this tag have."""
    if tag is None:
        return pa.nulls(1)
    return one_value(tag, b"" if tag == TEXT else 0)


def _set_of_value(term: Any) -> str | None:
    """The set, if a term says that an attribute's own value is in one."""
    if isinstance(term, Call) and isinstance(term.arguments[0], Attribute):
        return set_of(term)
    return None


def _tag_of(kind: pa.DataType) -> int:
    """The tag of values that the machine ends with."""
    if kind == REAL:
        return FLOAT
    if kind == TRUTH:
        return BOOLEAN
    return INTEGER if kind in INTEGERS else TIMESTAMP


def _run(plan: _Plan, values: Sequence[Given], entries: list[TermValue]) -> list[int]:
    """Add what the machine finds; returns the places of terms that it leaves to columns."""
    translation = plan.translation
    assert translation is not None
    numbers = np.array([values[place][1] for place in plan.inputs], np.int64)  # type: ignore[index]
    n = len(plan.results)
    out, states, either = np.empty(n, np.int64), np.empty(n, np.uint8), np.zeros(n, np.int64)
    run(
        translation.code,
        translation.constants,
        numbers,
        np.zeros(len(numbers), np.uint8),
        1,
        translation.n_registers,
        translation.results,
        out,
        states,
        either,
    )
    left = []
    for (place, attribute, tag), payload, state in zip(
        plan.results, out.tolist(), states.tolist(), strict=True
    ):
        if state & LEFT:
            left.append(place)
        elif not state:
            entries.append((attribute, tag, payload))
    return left
