"""Counting, batch by batch: what matched, which predicates rejected the rest, hours, samples."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
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
Hours = npt.NDArray[np.int64]
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
    ) -> tuple[Hours, Truths]:
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


class Tally:
    """Counts of the events of one batch after the other; those of two parts can be added."""

    def __init__(self, draft: ReadDraft) -> None:
        self._draft = draft
        #: Events that could be read, those that could not, matches, and events without an hour.
        self.events = self.unreadable = self.matches = self.untimed = 0
        #: By predicate: how often it was true, rejected an event, and did so alone.
        self.predicates = np.zeros((3, len(draft.predicates)), dtype=np.int64)
        #: Events and matches by hour since 1970.
        self.hours: dict[int, list[int]] = {}

    def add(self, truths: Truths, read: Truths) -> Truths:
        """Count a batch; returns which events matched.

        ``truths`` is true where a subscription of the draft (row) was satisfied, ``read`` where an
        event could be read.
        """
        matched: Truths = truths[DRAFT]
        leaves = truths[DRAFT + 1 :]
        if self._draft.nodes:
            found = self._draft.outcome(leaves)
            counted = (leaves, found.rejects & read, found.alone & read)
            self.predicates += np.array([each.sum(axis=1) for each in counted])
        n_read = int(np.count_nonzero(read))
        self.events += n_read
        self.unreadable += len(read) - n_read
        self.matches += int(np.count_nonzero(matched))
        return matched

    def add_hours(self, hours: Hours, known: Truths, read: Truths, matched: Truths) -> None:
        """Count the events of a batch by hour, of those that have one."""
        known = known & read
        found, places = np.unique(hours[known], return_inverse=True)
        events = np.bincount(places, minlength=len(found))
        matches = np.bincount(places[matched[known]], minlength=len(found))
        self.untimed += int(np.count_nonzero(read & ~known))
        self._add_counts(zip(found.tolist(), events.tolist(), matches.tolist(), strict=True))

    def _add_counts(self, counts: Iterable[tuple[int, int, int]]) -> None:
        for hour, n_events, n_matches in counts:
            if hour not in self.hours and len(self.hours) >= MOST_HOURS:
                self.untimed += n_events
                continue
            known = self.hours.setdefault(hour, [0, 0])
            known[0] += n_events
            known[1] += n_matches

    def parts(self) -> dict[str, Any]:
        """All counts in what JSON has."""
        numbers = (self.events, self.unreadable, self.matches, self.untimed)
        hours = [[hour, *counts] for hour, counts in self.hours.items()]
        return {"numbers": numbers, "predicates": self.predicates.tolist(), "hours": hours}

    def add_parts(self, parts: Mapping[str, Any]) -> None:
        """Add the counts of other events."""
        events, unreadable, matches, untimed = parts["numbers"]
        self.events += events
        self.unreadable += unreadable
        self.matches += matches
        self.untimed += untimed
        self.predicates += np.array(parts["predicates"], np.int64).reshape(3, -1)
        self._add_counts(tuple(each) for each in parts["hours"])

    def result(self, samples: Iterable[SampleEvent]) -> Backtest:
        """What was found so far."""
        counts = zip(self._draft.predicates, *self.predicates.tolist(), strict=True)
        return Backtest(
            self._draft.text,
            self.events,
            self.matches,
            self.unreadable,
            tuple(PredicateCount(*each) for each in counts),
            tuple(
                HourCount(_EPOCH + dt.timedelta(hours=hour), *self.hours[hour])
                for hour in sorted(self.hours)
            ),
            self.untimed,
            tuple(samples),
        )


class Counter:
    """What a backtest counts and keeps. Batches go in; ``result`` gives what is known so far."""

    def __init__(self, draft: ReadDraft, *, time: TimeOf | None, samples: int) -> None:
        self._draft = draft
        self._time = time
        self._tally = Tally(draft)
        self._n_samples = samples
        self._kept: list[_Drawn] = []
        self._draw = np.random.default_rng(0)  # the same samples each time
        #: Events so far, those included that could not be read.
        self.rows = 0

    @property
    def block(self) -> int:
        """How many events a batch may have."""
        return max(1, MOST_TRUTHS // (len(self._draft.nodes) + 1))

    def add(self, batch: RememberedBatch, matches: Matches, sets: Mapping[str, Any]) -> None:
        """Count a batch, as matched by a matcher of the draft and its predicates."""
        n_events = len(matches.offsets) - 1
        truths = np.zeros((len(self._draft.predicates) + 1, n_events), dtype=np.bool_)
        rows = np.repeat(np.arange(n_events), np.diff(matches.offsets))
        truths[matches.subscriptions, rows] = True
        read = np.ones(n_events, dtype=np.bool_)
        read[[row for row, _ in matches.rejects]] = False
        matched = self._tally.add(truths, read)
        if self._time is not None:
            hours, known = self._time.hours(batch.events, batch.json, sets)
            self._tally.add_hours(hours, known, read, matched)
        self._keep(batch, np.flatnonzero(matched))
        self.rows += n_events

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
        kept = sorted(self._kept, key=lambda each: each.event)
        return self._tally.result(SampleEvent(each.event, each.values) for each in kept)
