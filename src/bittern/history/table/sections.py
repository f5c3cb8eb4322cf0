"""A section of the join table: some entries, and all that is known about documents for them.

The first entries make up the first section. Entries that come later get their own section, built
from the documents that exist by then. A batch passes through each section in turn::

    events -> values of the section's attributes   (model/events/typed/typed.py)
           -> its conditions that are TRUE         (matched like subscriptions)
           -> one pass over its summaries          (history/passes/passes.py)
           -> document sets for what is pending    (history/sets/sets.py)
           -> entries that hold, by event
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bittern.arrays import Mask
from bittern.history.documents.mapping_rows import readable
from bittern.history.passes.groups import empty_groups
from bittern.history.passes.passes import Answers, live_from
from bittern.history.rows import Rows
from bittern.history.sets.sets import DocumentSets
from bittern.history.table.plans import JoinPlan, SetAlternative, plan_of
from bittern.language.alternatives import JoinEntry
from bittern.language.syntax import Pair
from bittern.model.events.typed.typed import Typed, TypedReader


class ConditionMatcher(Protocol):
    """Expressions that are matched like subscriptions (``history/joins/conditions.py``)."""

    def __call__(self, events: Any, json: Any) -> Rows:
        """Which of them are TRUE for each event of a batch, in whatever form it comes."""


#: Makes that from the conditions' texts.
ConditionsOf = Callable[[Sequence[str]], ConditionMatcher]


class EventBatch(NamedTuple):
    """A batch of events that passes through the table."""

    events: Any
    json: Any
    n: int
    asks: Mask  # which are looked up
    joins: Mask  # which become documents
    number: int  # of the first that does
    first: int  # documents before it have expired
    keep: int | None  # so many documents stay

    def live(self, number: int) -> int:
        """The oldest document that document ``number`` sees."""
        return live_from(self.first, self.keep, number)

    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of the first document that each event does not see."""
        return self.number + np.cumsum(self.joins) - self.joins


class Section:
    """Some entries of the join table, in order. One thread at a time."""

    def __init__(
        self, entries: Sequence[JoinEntry], conditions_of: ConditionsOf, *, keep: int | None
    ) -> None:
        self.n_entries = len(entries)
        self.plan: JoinPlan = plan_of(entries, forgets=keep is not None)
        self._reader = TypedReader(self.plan.attributes)
        texts = self.plan.conditions
        self._conditions = conditions_of(texts) if texts else None
        self._groups = empty_groups(64, 64, 64, 1024)
        self._sets = _Sets(self.plan) if self.plan.set_alternatives else None
        #: Lookups and searches of document sets so far.
        self.lookups = self.searches = 0

    def run(self, batch: EventBatch, active: Mask, needed: Rows | None) -> Rows:
        """Take a batch; returns the entries that hold, by event. Only ``active`` ones are asked."""
        typed, _, rejects = self._reader.read(batch.events, batch.json)
        if rejects:
            typed = self._reader.read(readable(batch.events, rejects), batch.json).typed
        true = Rows.none(batch.n)
        if self._conditions is not None:
            true = self._conditions(batch.events, batch.json)
        if self._sets is not None and batch.joins.any():
            self._sets.append(batch, typed, true)
        answers, self._groups = self.plan.run.run(
            self._groups,
            typed,
            true,
            asks=batch.asks,
            joins=batch.joins,
            active=active,
            number=batch.number,
            first=batch.first,
            keep=batch.keep,
            needed=needed,
        )
        self.lookups += answers.lookups
        if self._sets is None:
            return answers.holding
        self.searches += len(answers.pending.numbers)
        found = self._sets.search(batch, typed, true, answers.pending)
        if batch.keep is not None:
            self._sets.sets.expire(batch.number + int(batch.joins.sum()) - batch.keep)
        return _united(answers, found != self.plan.run.lookups.negated[answers.pending.numbers])

    def nbytes(self) -> int:
        """Bytes of everything that is kept about the documents."""
        sets = 0 if self._sets is None else self._sets.sets.nbytes
        return sum(array.nbytes for array in self._groups) + sets

    def statistics(self) -> dict[str, int]:
        """What it consists of."""
        groups, _, steps, _ = self._groups.used.tolist()
        return {
            "entries": self.n_entries,
            "summaries": len(self.plan.run.specs.question),
            "lookups": len(self.plan.run.lookups.table),
            "groups": groups,
            "steps": steps,
            "set_terms": len(self.plan.set_alternatives),
            "conditions": len(self.plan.conditions),
            "bytes": self.nbytes(),
        }


class _Sets:
    """The document sets of a section, with the numbers that they know things by."""

    def __init__(self, plan: JoinPlan) -> None:
        self._rows = {name: row for row, name in enumerate(plan.attributes)}
        self._texts = plan.conditions
        self._alternatives: dict[int, list[SetAlternative]] = {}
        attributes: dict[str, None] = {}
        conditions: dict[str, None] = {}
        pairs: dict[Pair, None] = {}
        for each in plan.set_alternatives:
            self._alternatives.setdefault(each.entry, []).append(each)
            alternative = each.alternative
            names = [document for document, _ in alternative.sides()]
            names += [*each.window.per, *((each.window.of,) if each.window.of else ())]
            for pair, _ in alternative.pairs:
                if pair.of_document:
                    pairs[pair] = None
                    names += [pair.left, pair.right]
            attributes |= dict.fromkeys(names)
            conditions |= dict.fromkeys(condition.text for condition in alternative.document)
        self.sets = DocumentSets(list(attributes), list(conditions), list(pairs))
        self._own_rows = np.array([self._rows[name] for name in attributes], dtype=np.int64)
        own = {text: number for number, text in enumerate(conditions)}
        self._own_conditions = np.array([own.get(text, -1) for text in plan.conditions] or [-1])

    def append(self, batch: EventBatch, typed: Typed, true: Rows) -> None:
        """Take the events that become documents."""
        events, own = true.events(), self._own_conditions[true.numbers]
        kept = (own >= 0) & batch.joins[events]
        documents = (batch.numbers() - batch.number)[events[kept]]
        satisfied = Rows.grouped(documents, own[kept], int(batch.joins.sum()))
        kinds, words, ties, heap = typed
        rows = self._own_rows
        chosen = Typed(kinds[rows], words[rows], ties[rows], heap)
        self.sets.append(batch.number, chosen.take(batch.joins), satisfied)

    def search(
        self, batch: EventBatch, typed: Typed, true: Rows, pending: Rows
    ) -> npt.NDArray[np.bool_]:
        """For each pending entry, whether a document satisfies one of its set alternatives."""
        stops = batch.numbers()
        found = np.zeros(len(pending.numbers), dtype=np.bool_)
        events = pending.events()
        last, satisfied = -1, set[str]()
        for i, (event, entry) in enumerate(
            zip(events.tolist(), pending.numbers.tolist(), strict=True)
        ):
            if event != last:
                own = true.numbers[true.starts[event] : true.starts[event + 1]].tolist()
                last, satisfied = event, {self._texts[number] for number in own}
            stop = int(stops[event])
            first = batch.live(stop)
            found[i] = any(
                self.sets.find(
                    each.alternative, each.window, typed, self._rows, event, satisfied, stop, first
                )
                for each in self._alternatives[entry]
            )
        return found


def _united(answers: Answers, holds: npt.NDArray[np.bool_]) -> Rows:
    """Entries that hold by lookups, and pending ones that turned out to, by event."""
    holding, pending, _ = answers
    events = np.concatenate((holding.events(), pending.events()[holds]))
    numbers = np.concatenate((holding.numbers, pending.numbers[holds]))
    return Rows.grouped(events, numbers, len(holding.starts) - 1)
