"""Chooses a structure and its parameter for given intervals: ``stabbing="auto"``.

There are four structures to choose from, ``RECOMMENDED``. Each is estimated
(``stabbing/predict.py``) with every promising value of its parameter, and priced with measured
constants (``stabbing/measured.py``). Of those that fit into the memory limit, the fastest sets the
standard: among all that need at most a quarter more time than it, the smallest is chosen::

    predicted      bytes    ns per value                 memory allowed: 60 MB
    dlist          260 MB    60       does not fit
    cei  L = 256    28 MB    75       <- the smallest of those up to 75 * 1.25
    cei  L = 512    28 MB    79
    interval-tree   13 MB   600       fits, but slow

The other structures of the registry are ranked after the choice, for comparison. None of them is
predicted to be better than all four by more than the error of predictions: if one came first, it
would be by error.

Without a limit given, an index may take 16 MiB and 64 bytes per interval: enough for each
structure that shares entries, not for one that writes an id into every cell of long intervals.
The choice depends on the intervals and that limit alone, not on the machine or its load: the same
intervals get the same structure everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from bittern.errors import OptionError
from bittern.stabbing.contract import StabbingIndex, as_int32, check_intervals
from bittern.stabbing.estimate import Estimate, in_bytes
from bittern.stabbing.predict import estimates
from bittern.stabbing.registry import STRUCTURES, checked_memory, structure
from bittern.stabbing.summary import Summary

RECOMMENDED = ("dlist", "cei", "interval-tree", "interval")
"""The structures to choose from: the fastest, the one that shares entries, the smallest, and the
fastest of those that need nothing per cell."""

SLACK = 1.25
"""A structure that needs at most this many times the least time is fast enough to be preferred if
it is smaller: predictions are not more exact than that."""


@dataclass(frozen=True)
class Choice:
    """What to build, and why."""

    name: str
    parameters: dict[str, int]
    bytes: int
    """Predicted."""
    nanoseconds: float
    """Predicted, per value."""
    reasons: tuple[str, ...]


def choose(lows: ArrayLike, highs: ArrayLike, domain: int, *, memory: int | None = None) -> Choice:
    """Choose a structure for these intervals; OptionError if none fits into ``memory`` bytes.

    O(n + min(domain, n log n)), a few nanoseconds per interval.
    """
    low = as_int32(lows, "lows")
    low, high, _ = check_intervals(low, highs, np.arange(len(low)), domain)
    summary = Summary.of(low, high, domain)
    limit = checked_memory(memory, summary.n)
    return _choice(_each(RECOMMENDED, summary, limit), summary, limit)


def _choice(each: list[Estimate], summary: Summary, limit: int) -> Choice:
    first = best_of(each, limit)
    if not first.fits(limit):
        raise OptionError(
            f"no structure for {_over(summary)} fits into {_count(limit, 'byte')}: "
            f"the smallest, {shown(first)}, needs about {first.bytes:,}"
        )
    return Choice(
        first.name,
        first.parameters,
        first.bytes,
        first.nanoseconds,
        tuple(_reasons(first, each, summary, limit)),
    )


def ranked(summary: Summary, memory: int) -> list[Estimate]:
    """Every structure with its best parameter: the one to choose, then the others by time.

    Those that do not fit into the memory come last, the smallest first.
    """
    chosen = best_of(_each(RECOMMENDED, summary, memory), memory)
    others = [one for one in _each(STRUCTURES, summary, memory) if one.name != chosen.name]
    fitting = [one for one in others if one.fits(memory)]
    too_large = [one for one in others if not one.fits(memory)]
    return [chosen, *sorted(fitting, key=_time), *sorted(too_large, key=_size)]


def _each(names: Iterable[str], summary: Summary, memory: int) -> list[Estimate]:
    """The structures of these names, each with its best parameter."""
    return [best_of(estimates(name, summary), memory) for name in names]


def best_of(candidates: list[Estimate], memory: int) -> Estimate:
    """The best by the rule that the module states; the smallest if none fits."""
    fitting = [one for one in candidates if one.fits(memory)]
    if not fitting:
        return min(candidates, key=_size)
    least = min(map(_time, fitting))
    return min((one for one in fitting if one.nanoseconds <= SLACK * least), key=_size)


def _time(estimate: Estimate) -> float:
    return estimate.nanoseconds


def _size(estimate: Estimate) -> tuple[int, float]:
    return estimate.bytes, estimate.nanoseconds


def shown(estimate: Estimate) -> str:
    """A structure with its parameter, in words."""
    given = ", ".join(f"{name} {value:,}" for name, value in estimate.parameters.items())
    return f"{estimate.name} with {given}" if given else estimate.name


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _over(summary: Summary) -> str:
    return f"{_count(summary.n, 'interval')} over {_count(summary.domain, 'cell')}"


def _reasons(first: Estimate, each: list[Estimate], summary: Summary, memory: int) -> Iterator[str]:
    """Sentences that explain the choice."""
    fitting = [one for one in each if one.fits(memory)]
    fastest = min(fitting, key=_time)
    yield (
        f"{_over(summary)}, {summary.mean_length:,.1f} cells long on average: "
        f"a value finds {summary.ids_per_value:,.2f} of them"
    )
    limit = in_bytes(memory)
    if len(fitting) < len(each):
        names = ", ".join(one.name for one in fitting)
        yield f"of {', '.join(RECOMMENDED)}, only {names} can be built in {limit}"
    else:
        yield f"each of {', '.join(RECOMMENDED)} can be built in {limit}"
    if fitting == [first]:
        pass  # nothing to prefer it to
    elif first is fastest:
        yield f"{shown(first)} is the fastest of these by prediction"
    else:
        yield (
            f"{shown(first)} takes {in_bytes(first.bytes)}, the least of those that are predicted "
            f"to need at most {SLACK:g} times as long as the fastest, {shown(fastest)}"
        )
    excluded = [one for one in each if not one.fits(memory) and _time(one) < _time(first)]
    if excluded:
        faster = min(excluded, key=_time)
        yield f"{shown(faster)} would be faster and needs {in_bytes(faster.bytes)}"


def build_chosen(
    lows: ArrayLike, highs: ArrayLike, ids: ArrayLike, domain: int, memory: int | None = None
) -> StabbingIndex:
    """Build the best structure. If it takes more than predicted, it is given up.

    Predictions assume that ends are spread evenly, and crowded ones may need several times the
    bytes. Then the next best is built; OptionError if none is left.
    """
    low, high, number = check_intervals(lows, highs, ids, domain)
    summary = Summary.of(low, high, domain)
    limit = checked_memory(memory, summary.n)
    each = _each(RECOMMENDED, summary, limit)
    while True:
        choice = _choice(each, summary, limit)
        index = structure(choice.name).build(low, high, number, domain=domain, **choice.parameters)
        if index.nbytes <= limit:
            return index
        each = [
            replace(one, bytes=index.nbytes) if one.name == choice.name else one for one in each
        ]
