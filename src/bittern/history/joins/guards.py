"""Guards: the quantified predicates that must be looked up for an event at all.

A subscription with quantified predicates, each an *entry* of the join table, is read once more
with TRUE in their place. The result is its guard. It depends on constants alone, so an ordinary
index of the guards tells which of them hold for an event, and only their entries are looked up::

    subscriptions                                    guard        entries   demand of documents
    price < 10 AND EXISTS d (d.isbn = isbn)          price < 10   A         some: isbn IS NOT NULL
    shop = 's' AND NOT EXISTS d (d.isbn = isbn)      shop = 's'   A         -
    price < 10 AND EXISTS d (d.price > price)        price < 10   B         some: price IS NOT NULL
    EXISTS d (d.isbn = isbn)                         always       A C       some: isbn IS NOT NULL
      AND FORALL d (d.ok = TRUE)                                            every: ok = TRUE

    event price 5    guards 0 2 hold, and 3 always    needs A B C
    event shop 's'   guard 1 holds, and 3 always      needs A C

Guards differ in at least one of the three columns. ``alive`` is the pre-filter's bit vector: a
guard with a demand (``history/demands/implied.py``) that the documents do not meet cannot lead to a
match, so it needs no entries. An entry that is not looked up counts as not holding, and that cannot
cause a wrong match: TRUE is the most that an entry, negated or not, can add to AND and OR, and the
guard has failed even with TRUE. And an unmet demand belongs to an entry that must hold.

Cost: to make them, about as long as the index itself took; a demand is worked out once for each
entry and the constants that have a say in it. For an event what matching takes, and O(entries of
the guards that hold).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.engine.index import Index
from bittern.engine.live.delta import ALL_ALIVE
from bittern.engine.matcher import match_read, new_totals
from bittern.engine.subscriptions import Subscriptions
from bittern.engine.unanswered import SUSPECT
from bittern.history.demands.implied import Constraint, demanded, joined_attributes
from bittern.history.rows import Rows
from bittern.jit import i4r, i4w, i8r, i8w, kernel, u1r, void
from bittern.language.literals import attribute_name
from bittern.language.normalize import ALWAYS
from bittern.language.quantifiers import quantified_of
from bittern.language.shapes import Shapes
from bittern.language.syntax import And, Expression, Not, Predicate, Quantified
from bittern.language.templates import Slot, Template
from bittern.language.trees import walk
from bittern.model.distinct import encoded
from bittern.model.events.reads import readable_rows
from bittern.model.strings import arrow_of

_Numbers: TypeAlias = tuple[int, ...]
_NO_SETS: Mapping[str, Any] = {}


@kernel(void, i8r, i4r, i8r, i4r, i8r, u1r, i4w, i8w)
def _count(
    held_starts: Any,
    held: Any,
    starts: Any,
    entries: Any,
    always: Any,
    readable: Any,
    seen: Any,
    out: Any,
) -> None:
    """Distinct entries of the guards of each event; ``out`` becomes where each event begins."""
    for event in range(len(readable)):
        n = len(always) if readable[event] else 0
        for i in range(held_starts[event], held_starts[event + 1]):
            guard = held[i]
            for k in range(starts[guard], starts[guard + 1]):
                if seen[entries[k]] < event:
                    seen[entries[k]] = event
                    n += 1
        out[event + 1] = out[event] + n


@kernel(void, i8r, i4r, i8r, i4r, i8r, u1r, i4w, i8r, i8w)
def _fill(
    held_starts: Any,
    held: Any,
    starts: Any,
    entries: Any,
    always: Any,
    readable: Any,
    seen: Any,
    out_starts: Any,
    out: Any,
) -> None:
    """The entries themselves, ascending."""
    for event in range(len(readable)):
        at = out_starts[event]
        if readable[event]:
            for k in range(len(always)):
                out[at] = always[k]
                at += 1
        for i in range(held_starts[event], held_starts[event + 1]):
            guard = held[i]
            for k in range(starts[guard], starts[guard + 1]):
                if seen[entries[k]] < event:
                    seen[entries[k]] = event
                    out[at] = entries[k]
                    at += 1
        out[out_starts[event] : at].sort()


class _Lists(NamedTuple):
    """A list of numbers for each guard, one after the other."""

    starts: npt.NDArray[np.int64]
    items: npt.NDArray[np.int32]
    owners: npt.NDArray[np.int64]  # the guard of each item

    @classmethod
    def of(cls, lists: Sequence[_Numbers]) -> _Lists:
        rows = Rows.of(lists)
        return cls(rows.starts, rows.numbers.astype(np.int32), rows.events())


class Needed(NamedTuple):
    """The entries that each event needs, and how many guards held for all of them."""

    rows: Rows
    held: int


class Guards:
    """The guards of an index's subscriptions with quantified predicates. Immutable.

    ``entries`` are the hidden names of the quantified predicates and ``constraints`` what the
    guards demand of the documents; otherwise both go by their numbers there.
    """

    def __init__(
        self,
        index: Index,
        entries: list[str],
        constraints: list[Constraint],
        entries_of: _Lists,
        constraints_of: _Lists,
    ) -> None:
        #: The guards that constants decide, by number; those that hold always come after them.
        self.index = index
        self.entries = entries
        self.constraints = constraints
        self._entries_of = entries_of
        self._constraints_of = constraints_of

    @classmethod
    def of(cls, index: Index) -> Guards | None:
        """The guards of an index; None if no subscription of it has a quantified predicate."""
        reader = _Reader()
        for text in index.texts.filter(pc.match_substring_regex(index.texts, SUSPECT)):
            reader.add(text.as_py())
        return reader.guards() if reader.entries else None

    def __len__(self) -> int:
        return len(self._entries_of.starts) - 1

    def alive(self, satisfied: Mask) -> Mask:
        """Which guards can lead to a match, given the constraints that the documents satisfy."""
        alive = np.ones(len(self), dtype=np.bool_)
        failed = ~satisfied[self._constraints_of.items]
        alive[self._constraints_of.owners[failed]] = False
        return alive

    def entries_alive(self, alive: Mask) -> Mask:
        """Which entries are needed by some living guard."""
        needed = np.zeros(len(self.entries), dtype=np.bool_)
        needed[self._entries_of.items[alive[self._entries_of.owners]]] = True
        return needed

    def always(self, alive: Mask | None = None) -> npt.NDArray[np.int64]:
        """The entries that every event needs: those of guards that always hold."""
        first = self._entries_of.starts[len(self.index)]
        entries, owners = self._entries_of.items[first:], self._entries_of.owners[first:]
        return np.unique(entries if alive is None else entries[alive[owners]]).astype(np.int64)

    def needed(
        self,
        events: Any,
        json: str | Sequence[str] = (),
        alive: Mask | None = None,
        sets: Mapping[str, Any] = _NO_SETS,
    ) -> Needed:
        """The entries that each event of a block needs, in ascending order.

        An event that cannot be read needs none. O(values + candidates + entries of the guards that
        hold).
        """
        marks = ALL_ALIVE if alive is None else alive[: len(self.index)].view(np.uint8)
        read = self.index.encoder.read(events, json, sets)
        held = match_read([self.index], [read], [marks], self.index.all_ids, new_totals())
        readable = readable_rows(len(held), held.rejects).view(np.uint8)
        always = self.always(alive)
        seen = np.full(len(self.entries), -1, dtype=np.int32)
        seen[always] = len(held)  # as if every event had seen them
        given = held.offsets, held.subscriptions, *self._entries_of[:2], always, readable
        starts = np.zeros(len(held) + 1, dtype=np.int64)
        _count(*given, seen.copy(), starts)
        out = np.empty(int(starts[-1]), dtype=np.int64)
        _fill(*given, seen, starts, out)
        return Needed(Rows(starts, out), len(held.subscriptions))


class _Fact(NamedTuple):
    """A conjunct on the event in a template: itself, the slots of its names, all of its slots."""

    template: Template
    names: tuple[int, ...]
    slots: tuple[int, ...]


class _Form(NamedTuple):
    """What the texts of one shape have in common."""

    relaxed: int  # shape of the guard; -1 if it holds always
    joins: tuple[int, ...]  # slots of entries
    musts: tuple[int, ...]  # slots of the entries that have to hold
    facts: tuple[_Fact, ...]


class _Reader:
    """Makes guards from texts; most of the work is done once for each shape or entry."""

    def __init__(self) -> None:
        self.entries: dict[str, int] = {}
        self._shapes = Shapes()
        self._relaxed = Shapes()
        self._forms: dict[int, _Form | None] = {}
        self._names: dict[str, str] = {}
        self._quantified: dict[str, tuple[Quantified, frozenset[str]]] = {}
        self._demands: dict[tuple[Any, ...], Constraint | None] = {}
        self._constraints: dict[Constraint, int] = {}
        # Distinct ones in order: (shape, parameters, entries, demands); only the last two of
        # those that hold always.
        self._guards: dict[tuple[int, tuple[str, ...], _Numbers, _Numbers], None] = {}
        self._always: dict[tuple[_Numbers, _Numbers], None] = {}

    def add(self, text: str) -> None:
        """Read one subscription; nothing happens if it has no quantified predicate that counts."""
        shape, parameters = self._shapes.read(text)
        if shape not in self._forms:
            self._forms[shape] = self._form(self._shapes.templates[shape])
        form = self._forms[shape]
        if form is None:
            return
        names = [self._name(parameters[slot]) for slot in form.joins]
        entries = tuple(sorted({self.entries.setdefault(n, len(self.entries)) for n in names}))
        found = [self._demand(form, shape, parameters, slot) for slot in form.musts]
        known = self._constraints
        demands = tuple(sorted({known.setdefault(each, len(known)) for each in found if each}))
        if form.relaxed < 0:
            self._always[entries, demands] = None
            return
        own = list(parameters)
        for slot in form.joins:
            own[slot] = ""  # the guard does not ask for it
        self._guards[form.relaxed, tuple(own), entries, demands] = None

    def _form(self, template: Template) -> _Form | None:
        """What a template gives; None if no entry is left in it."""
        joins = [slot.number for slot in _slots(template.tree) if slot.kind == "join"]
        if not joins:
            return None
        relaxed = template.relaxed()
        tree = template.tree
        musts, facts = [], []
        for operand in tree.operands if isinstance(tree, And) else (tree,):
            slots = list(_slots(operand))
            if all(slot.kind != "join" for slot in slots):
                names = [slot.number for slot in slots if slot.kind == "attribute"]
                numbers = tuple(slot.number for slot in slots)
                facts.append(_Fact(Template(operand, ()), tuple(names), numbers))
            elif isinstance(operand, Not):  # IS NOT NULL of the entry itself
                musts.append(slots[0].number)
        shape = -1 if relaxed.tree is ALWAYS else self._relaxed.add(relaxed)
        return _Form(shape, tuple(joins), tuple(musts), tuple(facts))

    def _name(self, raw: str) -> str:
        """The attribute that a parameter names."""
        name = self._names.get(raw)
        if name is None:
            name = self._names[raw] = attribute_name(raw)
        return name

    def _demand(
        self, form: _Form, shape: int, parameters: Sequence[str], slot: int
    ) -> Constraint | None:
        """What an entry that must hold demands, given the constants of its text."""
        raw = parameters[slot]
        if raw not in self._quantified:
            quantified = quantified_of(self._name(raw))
            self._quantified[raw] = quantified, joined_attributes(quantified)
        quantified, joined = self._quantified[raw]
        facts = [
            (number, fact)
            for number, fact in enumerate(form.facts)
            if joined.issuperset(self._name(parameters[slot]) for slot in fact.names)
        ]
        key: tuple[Any, ...] = (raw,)  # without any of them it is the same whatever the shape
        if facts:
            own = ((number, *(parameters[slot] for slot in fact.slots)) for number, fact in facts)
            key = raw, shape, *own
        if key not in self._demands:
            beside = [fact.template.fill(parameters) for _, fact in facts]
            self._demands[key] = demanded(quantified, beside)
        return self._demands[key]

    def guards(self) -> Guards:
        """All that has been read."""
        shapes = [shape for shape, _, _, _ in self._guards]
        parameters = [raw for _, own, _, _ in self._guards for raw in own]
        catalog = Subscriptions(
            list(range(len(shapes))),
            pa.nulls(len(shapes), pa.large_string()),
            None,
            np.array(shapes, dtype=np.int32),
            encoded(arrow_of(parameters)),
            [],
        )
        lists = [(entries, demands) for _, _, entries, demands in self._guards]
        lists += self._always
        return Guards(
            Index.of_subscriptions(catalog, self._relaxed.templates),
            list(self.entries),
            list(self._constraints),
            _Lists.of([entries for entries, _ in lists]),
            _Lists.of([demands for _, demands in lists]),
        )


def _slots(tree: Expression) -> Iterable[Slot]:
    """Every slot of a template's tree."""
    for node in walk(tree):
        if isinstance(node, Predicate):
            for each in fields(node):
                value = getattr(node, each.name)
                values = value if isinstance(value, tuple) else (value,)
                yield from (slot for slot in values if isinstance(slot, Slot))
