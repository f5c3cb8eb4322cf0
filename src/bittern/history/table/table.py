"""The join table: every distinct quantified predicate once, and which of them hold for an event.

Entries are identified by their text. New entries become a section (``history/table/sections.py``),
built from the existing documents. When there are too many sections, they are merged into one,
without the entries that are no longer used::

    use(["EXISTS d (d.price > price)", "FORALL d (d.isbn != isbn)"])    section 0: entries 0, 1
    use([..., "EXISTS d (d.year = year)"])                              section 1: entry 2

Each entry is evaluated at most once for an event, whatever the number of subscriptions that need
it. O(documents) for a new section; for a batch see ``history/passes/passes.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from bittern.arrays import Int64s, Mask, starts_of
from bittern.history.rows import Rows
from bittern.history.table.sections import ConditionsOf, EventBatch, Section
from bittern.language.alternatives import entry_of
from bittern.language.quantifiers import quantified_of

#: With more sections than this, all become one.
MOST_SECTIONS = 6


class StoredDocuments(Protocol):
    """Documents that exist already (``history/documents/documents.py``)."""

    @property
    def first(self) -> int:
        """The number of the oldest one."""

    @property
    def end(self) -> int:
        """The number of the next one to come."""

    def stored(self) -> Iterator[tuple[int, Any]]:
        """(number of the first, events), in order of arrival; the first ones may have expired."""


def stored_batches(documents: StoredDocuments, keep: int | None) -> Iterator[EventBatch]:
    """Existing documents, as batches that ask nothing."""
    for number, events in documents.stored():
        n, first = events.n_documents, documents.first
        joins = np.arange(number, number + n) >= first
        nobody = np.zeros(n, dtype=np.bool_)
        yield EventBatch(events, (), n, nobody, joins, max(number, first), first, keep)


class JoinTable:
    """Which entries hold for events, given the documents before them. One thread at a time."""

    def __init__(
        self, documents: StoredDocuments, conditions_of: ConditionsOf, keep: int | None
    ) -> None:
        self._documents = documents
        self._conditions_of = conditions_of
        self._keep = keep
        self._sections: list[Section] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    @property
    def lookups(self) -> int:
        """The number of lookups and searches so far."""
        return sum(section.lookups + section.searches for section in self._sections)

    def use(self, names: Sequence[str]) -> None:
        """Keep exactly these entries; others are dropped now or later."""
        new = [name for name in dict.fromkeys(names) if name not in self._numbers]
        unused = len(self._numbers) + len(new) - len(set(names))
        if new and (len(self._sections) >= MOST_SECTIONS or unused > len(names)):
            self._become(names)
        else:
            self.add(names)

    def add(self, names: Sequence[str]) -> Int64s:
        """The numbers of the entries with these hidden names; new ones are built. O(documents)."""
        new = [name for name in dict.fromkeys(names) if name not in self._numbers]
        if new:
            entries = [entry_of(quantified_of(name)) for name in new]
            section = Section(entries, self._conditions_of, keep=self._keep)
            self._fill(section)
            numbers = {name: len(self._numbers) + i for i, name in enumerate(new)}
            self._sections, self._numbers = [*self._sections, section], self._numbers | numbers
        return np.array([self._numbers[name] for name in names], dtype=np.int64)

    def rebuild(self) -> None:
        """Rebuild all sections, after documents were removed."""
        self._become(list(self._numbers))

    def _become(self, names: Sequence[str]) -> None:
        """Put these entries into one section; an interrupt leaves the previous state."""
        fresh = JoinTable(self._documents, self._conditions_of, self._keep)
        fresh.add(names)
        self._sections, self._numbers = fresh._sections, fresh._numbers

    def _fill(self, section: Section) -> None:
        """Fill a section from the existing documents."""
        nobody = np.zeros(section.n_entries, dtype=np.bool_)
        for batch in stored_batches(self._documents, self._keep):
            section.run(batch, nobody, None)

    def run(
        self, batch: EventBatch, active: Mask | None = None, needed: Rows | None = None
    ) -> Rows:
        """Take a batch through all sections; the entries that hold, by event.

        ``needed`` has the entries to ask for each event, else all that are ``active`` are asked.
        """
        if active is None:
            active = np.ones(len(self), dtype=np.bool_)
        if len(self._sections) == 1:
            return self._sections[0].run(batch, active, needed)
        parts, first = [], 0
        for section in self._sections:
            own = slice(first, first + section.n_entries)
            asked = None if needed is None else _between(needed, own)
            parts.append((first, section.run(batch, active[own], asked)))
            first += section.n_entries
        return _joined(parts, batch.n)

    def statistics(self) -> dict[str, int]:
        """What all sections consist of."""
        total: dict[str, int] = {"entries": 0, "bytes": 0}
        for section in self._sections:
            for name, value in section.statistics().items():
                total[name] = total.get(name, 0) + value
        return total | {"sections": len(self._sections)}


def _between(rows: Rows, own: slice) -> Rows:
    """The numbers in a range, counted from its start."""
    inside = (rows.numbers >= own.start) & (rows.numbers < own.stop)
    before = starts_of(inside)
    return Rows(before[rows.starts], rows.numbers[inside] - own.start)


def _joined(parts: list[tuple[int, Rows]], n: int) -> Rows:
    """The numbers of all parts by event, each counted from its part's first."""
    none = np.empty(0, dtype=np.int64)
    events = np.concatenate([none, *(rows.events() for _, rows in parts)])
    numbers = np.concatenate([none, *(rows.numbers + first for first, rows in parts)])
    return Rows.grouped(events, numbers, n)
