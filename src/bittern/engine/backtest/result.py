"""What a backtest found: counts, hours, samples, and which predicate rejects how many events."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

#: Characters of a sample, and lines of hours, that the text shows.
_WIDTH, _MOST_LINES = 100, 48
_BAR = 30
#: Python refuses to read whole numbers of more than 4,300 digits.
_DIGITS = 4_000


@dataclass(frozen=True)
class PredicateCount:
    """What one predicate of the draft did, negations being part of it.

    ``true`` events satisfied it. ``rejects`` of the events that did not match were rejected by it
    (it was not true, and nothing made up for it), ``alone`` of them by nothing else: they would
    have matched without it.
    """

    text: str
    true: int
    rejects: int
    alone: int


@dataclass(frozen=True)
class HourCount:
    """The events of one hour (UTC), and how many of them matched."""

    start: dt.datetime
    events: int
    matches: int


@dataclass(frozen=True)
class SampleEvent:
    """An event that matched: its number among all events (None: they have none), its values."""

    event: int | None
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Backtest:
    """What a draft would have matched; print it, or take ``as_json()``."""

    expression: str
    #: Events that could be read.
    events: int
    matches: int
    #: Events that could not be read.
    unreadable: int
    predicates: tuple[PredicateCount, ...] = ()
    #: Ascending; empty if no time was asked for.
    hours: tuple[HourCount, ...] = ()
    #: Events whose hour is not known; 0 if no time was asked for.
    untimed: int = 0
    samples: tuple[SampleEvent, ...] = ()

    @property
    def rejects_most(self) -> PredicateCount | None:
        """The predicate that rejects most events; of several, the one that does so alone."""
        rejecting = [each for each in self.predicates if each.rejects]
        return max(rejecting, key=lambda each: (each.rejects, each.alone), default=None)

    def with_samples(self, column: str) -> Backtest:
        """The same with samples that are the JSON objects in one column of theirs."""
        opened = [replace(each, values=event_of(each.values[column])) for each in self.samples]
        return replace(self, samples=tuple(opened))

    def as_json(self) -> dict[str, Any]:
        """All of it in what JSON has."""
        most = self.rejects_most
        return {
            "expression": self.expression,
            "events": self.events,
            "matches": self.matches,
            "unreadable": self.unreadable,
            "rejects_most": None if most is None else most.text,
            "predicates": [vars(each) for each in self.predicates],
            "hours": [
                {
                    "start": each.start.isoformat(),
                    "events": each.events,
                    "matches": each.matches,
                }
                for each in self.hours
            ],
            "untimed": self.untimed,
            "samples": [
                {"event": each.event, "values": json_value(each.values)} for each in self.samples
            ],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        share = f" ({self.matches / self.events:.2%})" if self.events else ""
        yield f"would have matched {self.matches:,} of {self.events:,} events{share}"
        if self.unreadable:
            yield f"{self.unreadable:,} more could not be read"
        if self.predicates:
            yield from self._predicate_lines()
        if self.hours or self.untimed:
            yield from self._hour_lines()
        if self.samples:
            yield "\nsamples"
            for each in self.samples:
                text = str(json_value(each.values))
                short = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
                name = "" if each.event is None else f"event {each.event:,}: "
                yield f"  {name}{short}"

    def _predicate_lines(self) -> Iterator[str]:
        most = self.rejects_most
        yield f"\n{'true':>14} {'rejects':>13} {'alone':>13}  predicate"
        for each in self.predicates:
            mark = "  <- rejects most" if each is most else ""
            yield f"{each.true:>14,} {each.rejects:>13,} {each.alone:>13,}  {each.text}{mark}"

    def _hour_lines(self) -> Iterator[str]:
        width = "hour"
        counted = [(each.start, each.events, each.matches) for each in self.hours]
        if len(counted) > _MOST_LINES:
            width, counted = "day", self._days()
        most = max((matches for _, _, matches in counted), default=0)
        yield f"\nmatches per {width} (UTC)"
        for start, events, matches in counted[:_MOST_LINES]:
            bar = "#" * math.ceil(_BAR * matches / most) if most else ""
            when = f"{start:%Y-%m-%d %H:%M}" if width == "hour" else f"{start:%Y-%m-%d}"
            yield f"  {when}  {bar:<{_BAR}}  {matches:,} of {events:,}"
        if len(counted) > _MOST_LINES:
            yield f"  ... and {len(counted) - _MOST_LINES:,} more {width}s"
        if self.untimed:
            yield f"  {self.untimed:,} events have no such time"

    def _days(self) -> list[tuple[dt.datetime, int, int]]:
        days: dict[dt.datetime, list[int]] = {}
        for each in self.hours:
            day = days.setdefault(each.start.replace(hour=0), [0, 0])
            day[0] += each.events
            day[1] += each.matches
        return [(day, *counts) for day, counts in days.items()]  # type: ignore[misc]


def event_of(text: str | bytes) -> Any:
    """A JSON event, whatever numbers it has: of more digits than Python reads, it is a float."""

    def number(told: str) -> int | float:
        return int(told) if len(told) < _DIGITS else float(told)

    return json.loads(text, parse_int=number)


def json_value(value: Any) -> Any:
    """A value of an event in what JSON has; whatever it lacks becomes text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, dt.date) else str(value)
