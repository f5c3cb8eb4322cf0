"""Counting, batch by batch: what matched, which predicates rejected the rest, hours, samples."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bittern.engine.backtest.draft import DRAFT, ReadDraft, Truths
from bittern.engine.backtest.result import (
    Backtest,
    HourCount,
    PredicateCount,
    SampleEvent,
)
from bittern.engine.backtest.sources import RememberedBatch, mapping_at
from bittern.errors import ExpressionError, OptionError
from bittern.language.derived import is_derived
from bittern.language.parser import parse
from bittern.language.syntax import IsNull
from bittern.model.events.derived.derived import DerivedAttributes
from bittern.model.events.reader import EventReader
from bittern.model.matches import Matches

#: Truths held at once: a batch has fewer events where a draft has many predicates.
MOST_TRUTHS = 1 << 24
#: Different hours that are counted, some eleven years; events of others have no hour.
MOST_HOURS = 100_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_HOUR = 3_600_000_000  # microseconds
#: The hours of Python's calendar.
_FIRST_HOUR = (dt.datetime(1, 1, 1, tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(hours=1)
_LAST_HOUR = (dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(hours=1)


class Matching(Protocol):
    """A matcher that holds the draft and its predicates."""

    def match(self, events: Any, *, json: str | Sequence[str] = ()) -> Matches:
        """Which of them each event satisfies."""


class TimeOf:
    """The time of events: a term, as a timestamp. Microseconds since 1970, by batch."""

    def __init__(self, text: str) -> None:
        said = f"time must be an attribute or a term that gives a time, not {text!r:.100}"
        try:
            tree = parse(f"try_cast({text} AS TIMESTAMP) IS NULL")
        except ExpressionError as error:
            raise OptionError(f"{said}: {error.message}") from None
        if not isinstance(tree, IsNull) or not is_derived(tree.attribute):
            raise OptionError(said)
        self._name = tree.attribute
        self._derived = DerivedAttributes({self._name: 0})

    def hours(
        self, events: Any, json: str | Sequence[str], sets: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.int64], Truths]:
        """The hour of each event since 1970, and whether it has one."""
        from bittern.model.events.derived.gathered import Gathered  # noqa: PLC0415  with its kernels

        gathered, results = self._derived.columns(), Gathered([self._name])
        n_events = EventReader(self._derived.found_as, gathered, json).read(events)
        self._derived.add(gathered, n_events, results, sets=sets)
        hours, known = np.zeros(n_events, dtype=np.int64), np.zeros(n_events, dtype=np.bool_)
        for array in results.typed(n_events)[self._name].arrays:
            if not pa.types.is_timestamp(array.type):
                continue
            own = array.is_valid().to_numpy(zero_copy_only=False)
            values = pc.fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
            hours[own], known[own] = values[own] // _HOUR, True
        known &= (hours >= _FIRST_HOUR) & (hours <= _LAST_HOUR)
        return hours, known


class _Drawn(NamedTuple):
    """A sample: drawn at random with this key, the lowest of which stay."""

    key: float
    event: int
    values: Mapping[str, Any]


class Counter:
    """What a backtest counts. Batches go in; ``result`` gives what is known so far."""

    def __init__(self, draft: ReadDraft, *, time: TimeOf | None, samples: int) -> None:
        self._draft = draft
        self._time = time
        self._n_samples = samples
        n = len(draft.predicates)
        self._true, self._rejects, self._alone = (np.zeros(n, dtype=np.int64) for _ in range(3))
        #: Rows so far, of which some could not be read.
        self.rows = 0
        self.matches = self._unreadable = self._untimed = 0
        self._hours: dict[int, list[int]] = {}
        self._kept: list[_Drawn] = []
        self._draw = np.random.default_rng(0)  # the same samples each time

    @property
    def block(self) -> int:
        """How many events a batch may have."""
        return max(1, MOST_TRUTHS // (len(self._draft.nodes) + 1))

    def add(self, batch: RememberedBatch, matches: Matches, sets: Mapping[str, Any]) -> None:
        """Count a batch, as matched by a matcher of the draft and its predicates."""
        n_events = len(matches.offsets) - 1
        rows = np.repeat(np.arange(n_events), np.diff(matches.offsets))
        truths = np.zeros((len(self._draft.predicates) + 1, n_events), dtype=np.bool_)
        truths[matches.subscriptions, rows] = True
        read = np.ones(n_events, dtype=np.bool_)
        read[[row for row, _ in matches.rejects]] = False
        matched, leaves = truths[DRAFT], truths[DRAFT + 1 :]
        if self._draft.nodes:
            found = self._draft.outcome(leaves)
            self._true += leaves.sum(axis=1)
            self._rejects += (found.rejects & read).sum(axis=1)
            self._alone += (found.alone & read).sum(axis=1)
        if self._time is not None:
            hours, known = self._time.hours(batch.events, batch.json, sets)
            self._count_hours(hours, known & read, matched)
            self._untimed += int(np.count_nonzero(read & ~known))
        self._keep(batch, np.flatnonzero(matched))
        self.matches += int(np.count_nonzero(matched))
        self._unreadable += int(np.count_nonzero(~read))
        self.rows += n_events

    def _count_hours(self, hours: npt.NDArray[np.int64], known: Truths, matched: Truths) -> None:
        found, places = np.unique(hours[known], return_inverse=True)
        events = np.bincount(places, minlength=len(found)).tolist()
        matches = np.bincount(places, weights=matched[known], minlength=len(found)).tolist()
        for hour, n_events, n_matches in zip(found.tolist(), events, matches, strict=True):
            if hour not in self._hours and len(self._hours) >= MOST_HOURS:
                self._untimed += n_events
                continue
            counts = self._hours.setdefault(hour, [0, 0])
            counts[0] += n_events
            counts[1] += int(n_matches)

    def _keep(self, batch: RememberedBatch, matched: npt.NDArray[np.int64]) -> None:
        """Keep some of the matching events, each as likely as every other."""
        if not self._n_samples or not len(matched):
            return
        keys = self._draw.random(len(matched))
        full = len(self._kept) == self._n_samples
        worst = self._kept[-1].key if full else 2.0
        best = np.argsort(keys, kind="stable")[: self._n_samples]
        for place in best[keys[best] < worst].tolist():
            row = int(matched[place])
            values = mapping_at(batch.events, row)
            self._kept.append(_Drawn(float(keys[place]), self.rows + row, values))
        self._kept.sort(key=lambda kept: kept.key)
        del self._kept[self._n_samples :]

    def result(self) -> Backtest:
        """What was found so far."""
        counts = (self._true.tolist(), self._rejects.tolist(), self._alone.tolist())
        rows = zip(self._draft.predicates, *counts, strict=True)
        return Backtest(
            self._draft.text,
            self.rows - self._unreadable,
            self.matches,
            self._unreadable,
            tuple(PredicateCount(*row) for row in rows),
            tuple(hour_counts({hour: tuple(n) for hour, n in self._hours.items()})),
            self._untimed,
            tuple(
                SampleEvent(event, values)
                for _, event, values in sorted(self._kept, key=lambda kept: kept.event)
            ),
        )


def hour_counts(hours: Mapping[int, tuple[int, ...]]) -> list[HourCount]:
    """Events and matches by hour since 1970, in order."""
    return [HourCount(_EPOCH + dt.timedelta(hours=hour), *hours[hour]) for hour in sorted(hours)]
