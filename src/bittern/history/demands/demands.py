"""All demands of all subscriptions, in pre-filters that are made as subscriptions arrive.

As in the join table (``history/table/table.py``), new demands get their own pre-filter, which is
filled from the existing documents. When there are too many pre-filters, they are merged into one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bittern.arrays import Int64s
from bittern.history.demands.implied import Constraint
from bittern.history.demands.prefilter import PreFilter
from bittern.history.table.sections import ConditionsOf, EventBatch
from bittern.history.table.table import MOST_SECTIONS, StoredDocuments, stored_batches


class Demands:
    """Which demands the documents meet, by number. One thread at a time."""

    def __init__(
        self, documents: StoredDocuments, conditions_of: ConditionsOf, keep: int | None
    ) -> None:
        self._documents = documents
        self._conditions_of = conditions_of
        self._keep = keep
        self._filters: list[PreFilter] = []
        self._numbers: dict[Constraint, int] = {}

    def use(self, constraints: Sequence[Constraint]) -> Int64s:
        """The numbers of these demands; new ones are checked against all documents.

        If some are new, demands that are not among these may be dropped.
        """
        new = [each for each in dict.fromkeys(constraints) if each not in self._numbers]
        if new and len(self._filters) >= MOST_SECTIONS:
            self._become(constraints)
        elif new:
            made = PreFilter(new, self._conditions_of)
            for batch in stored_batches(self._documents, self._keep):
                made.take(batch)
            numbers = {each: len(self._numbers) + i for i, each in enumerate(new)}
            self._filters, self._numbers = [*self._filters, made], self._numbers | numbers
        return np.array([self._numbers[each] for each in constraints], dtype=np.int64)

    def take(self, batch: EventBatch) -> npt.NDArray[np.bool_]:
        """Take a batch's documents; returns which demands are met at some moment of it."""
        met = [each.take(batch) for each in self._filters]
        return np.concatenate([np.empty(0, dtype=np.bool_), *met])

    def rebuild(self) -> None:
        """Check everything again, after documents were removed."""
        self._become(list(self._numbers))

    def _become(self, constraints: Sequence[Constraint]) -> None:
        """Put these into one pre-filter; an interrupt leaves the previous state."""
        fresh = Demands(self._documents, self._conditions_of, self._keep)
        fresh.use(constraints)
        self._filters, self._numbers = fresh._filters, fresh._numbers
