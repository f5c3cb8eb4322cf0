"""Changes in Python workers: Arrow batches of both sides in, matches by kind of change out.

::

    in   key  state    price       out  id  change  subscriptions  candidates  rejected  first
         7    -        8                7   enter   []             5           null      true
         7    -        12               7   leave   [cheap]        0           null      false
         8    missing  -                8   enter   [cheap]        2           null      true
         8    -        5

The first row of a change tells what it has entered, empty or not; other kinds have rows where there
is something to tell. Cost: as ``operator.py``, for both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.errors import OptionError
from bittern.model.transitions import Transitions
from bittern.spark.history.remembered import HistoryMatcher
from bittern.spark.operator import (
    CANDIDATES,
    FIRST,
    REJECTED,
    SUBSCRIPTIONS,
    Batches,
    Reference,
    blocks,
    cuts,
    subscription_lists,
)
from bittern.terms.spelling import spelling

CHANGE = "change"
#: The state of a row that is not there. Others say why it cannot be compared.
MISSING = ""


@dataclass(frozen=True)
class ChangeOperator:
    """Batches of changes in, batches of matches out: what is carried, the kind, and the matches."""

    ref: Reference
    #: Of the first columns.
    names: tuple[str, ...]
    #: How many of them, the last, stand behind the kind.
    texts: int
    kinds: tuple[str, ...]
    json: tuple[str, ...]
    #: Are rows still in Debezium's envelopes?
    is_envelope: bool
    case_sensitive: bool = True

    def __call__(self, batches: Batches) -> Batches:
        """Match one partition. O(rows + candidates + matches)."""
        matcher = self.ref.matcher()
        assert not isinstance(matcher, HistoryMatcher), "changes have no history"
        for batch in blocks(batches):
            carried, events, before, after, wrong = self._sides(batch)
            with spelling(case_sensitive=self.case_sensitive):
                matches = matcher.match(events, json=self.json)
            found = Transitions.of(matches, before, after, wrong)
            for at, kind in enumerate(self.kinds):
                yield from self._rows(carried, found, kind, is_first=at == 0)

    def _sides(
        self, batch: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, pa.RecordBatch, np.ndarray, np.ndarray, list[tuple[int, str]]]:
        """What is carried by change, rows of both sides, which they are, and what is wrong."""
        end = len(self.names)
        if self.is_envelope:
            from bittern.model.events.json.envelopes import open_envelopes  # noqa: PLC0415

            opened = open_envelopes(batch.column(end))
            texts = pa.concat_arrays([opened.before, opened.after])
            # In turn: both sides of a change visit the same lists.
            order = np.arange(len(texts)).reshape(2, -1).T.reshape(-1)
            rows = texts.take(pa.array(order))
            there = rows.is_valid().to_numpy(zero_copy_only=False)
            events = pa.RecordBatch.from_arrays([rows], names=list(self.json))
            return batch.select(range(end)), events, *_places(there), opened.wrong
        if batch.num_rows % 2:
            raise OptionError(
                "the two rows of a change have come apart: this is a fault of Bittern"
            )
        firsts = np.arange(0, batch.num_rows, 2)
        state = batch.column(end)
        told = state.take(pa.array(firsts)).to_pylist() if state.null_count < len(state) else []
        wrong = [(at, why) for at, why in enumerate(told) if why]
        there = state.is_null().to_numpy(zero_copy_only=False)
        carried = batch.select(range(end)).take(pa.array(firsts))
        # With the state, which is no attribute: a batch without columns has no rows.
        return carried, batch.select(range(end, batch.num_columns)), *_places(there), wrong

    def _rows(
        self, carried: pa.RecordBatch, found: Transitions, kind: str, *, is_first: bool
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one kind."""
        matches = found.of_kind(kind)
        reasons: list[str | None] = [None] * len(found)
        for at, reason in (*found.mistyped, *found.rejects):
            reasons[at] = reason
        names = [*self.names[: len(self.names) - self.texts], CHANGE]
        names += self.names[len(self.names) - self.texts :]
        for first, last in cuts(matches.offsets):
            lists = subscription_lists(matches, first, last)
            counts = matches.counts[first:last]
            columns = [column.slice(first, last - first) for column in carried.columns]
            nothing = pa.array(counts == 0)
            kinds = pc.if_else(nothing, pa.scalar(None, pa.string()), kind)
            columns.insert(len(self.names) - self.texts, kinds)
            n = last - first
            candidates = found.candidates[first:last] if is_first else np.zeros(n, np.int64)
            told = pa.array(reasons[first:last] if is_first else [None] * n, pa.string())
            columns += [lists, pa.array(candidates), told, pa.repeat(pa.scalar(is_first), n)]
            rows = pa.RecordBatch.from_arrays(
                columns, [*names, SUBSCRIPTIONS, CANDIDATES, REJECTED, FIRST]
            )
            yield rows if is_first else rows.filter(pc.greater(pa.array(counts), 0))


def _places(there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of rows in turn, which are the old ones and which the new ones; -1 is missing."""
    rows = np.where(there, np.arange(len(there)), -1)
    return rows[::2], rows[1::2]
