"""The pre-filter: which demands on the documents are met, updated as documents arrive.

A subscription's demand (``history/demands/implied.py``) is that some document, or every document,
satisfies a condition on documents alone. Conditions are matched like subscriptions, each document
once, and of each demand the number of one document is kept::

    some:  price < 10         the newest document that satisfies it       met if that is live
    every: year IS NOT NULL   the newest document that does not           met if that is not

For a batch, a demand counts as met if it is met at any moment of it: what is left out cannot match,
and everything else is looked up. O(conditions satisfied) for a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bittern.history.demands.implied import Constraint
from bittern.history.rows import Rows
from bittern.history.table.sections import ConditionMatcher, ConditionsOf, EventBatch
from bittern.jit import i8, i8r, i8w, kernel, u1r, void


@kernel(void, i8r, i8r, u1r, i8, i8w, i8w, i8w)
def _note(
    starts: Any, conditions: Any, joins: Any, number: Any, met: Any, failed: Any, streaks: Any
) -> None:
    """Newest documents that satisfy a condition, and that do not; ``number`` is the next one's."""
    seen = 0  # documents, the newest first
    for event in range(len(joins) - 1, -1, -1):
        if not joins[event]:
            continue
        for i in range(starts[event], starts[event + 1]):
            condition = conditions[i]
            met[condition] = max(met[condition], number - 1 - seen)
            if streaks[condition] == seen:
                streaks[condition] += 1
        seen += 1
    for condition in range(len(streaks)):
        if streaks[condition] < seen:
            failed[condition] = number - 1 - streaks[condition]


class PreFilter:
    """Some demands, and which of them the documents meet. One thread at a time."""

    def __init__(self, constraints: Sequence[Constraint], conditions_of: ConditionsOf) -> None:
        texts = list(dict.fromkeys(constraint.condition for constraint in constraints))
        place = {text: i for i, text in enumerate(texts)}
        self._place = np.array([place[each.condition] for each in constraints], dtype=np.int64)
        self._universal = np.array([each.universal for each in constraints], dtype=np.bool_)
        self._conditions: ConditionMatcher | None = conditions_of(texts) if texts else None
        self._met = np.full(len(texts), -1, dtype=np.int64)
        self._failed = np.full(len(texts), -1, dtype=np.int64)

    def take(self, batch: EventBatch) -> npt.NDArray[np.bool_]:
        """Take a batch's documents; returns which demands are met at some moment of it."""
        before = self._failed.copy()
        n_joins = int(np.count_nonzero(batch.joins))
        if self._conditions is not None and n_joins:
            true: Rows = self._conditions(batch.events, batch.json)
            streaks = np.zeros(len(self._met), dtype=np.int64)
            _note(
                *true,
                batch.joins.view(np.uint8),
                batch.number + n_joins,
                self._met,
                self._failed,
                streaks,
            )
        # Document 0 has not been seen where nothing has: -1 is before every first.
        some = self._met[self._place] >= max(0, batch.live(batch.number))
        every = before[self._place] < max(0, batch.live(batch.number + n_joins))
        return np.where(self._universal, every, some)
