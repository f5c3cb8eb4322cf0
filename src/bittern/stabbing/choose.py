"""Which structure to take for given intervals, and with which parameter: ``stabbing="auto"``.

Every structure of the registry is estimated (``stabbing/predict.py``) with each value of its
parameter that may be worth it, and priced with measured constants (``stabbing/measured.py``).
Of those that fit into the memory allowed, the fastest decides how slow is slow: among all that
need at most a quarter more time than it, the smallest is taken::

    predicted      bytes    ns per value                 memory allowed: 60 MB
    dlist          260 MB    60       does not fit
    cei  L = 256    28 MB    75       <- the smallest of those up to 75 * 1.25
    cei  L = 512    28 MB    79
    lci-dt          57 MB   190       fits, but slow

Without a limit given, an index may take 16 MiB and 64 bytes per interval: enough for each
structure that shares entries, not for one that writes an id into every cell of long intervals.
The choice depends on the intervals and that limit alone, not on the machine or its load: the same
catalog gets the same structure everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bittern.errors import OptionError
from bittern.stabbing.contract import StabbingIndex, as_int32, check_intervals
from bittern.stabbing.estimate import Estimate
from bittern.stabbing.predict import estimates
from bittern.stabbing.registry import STRUCTURES, structure
from bittern.stabbing.summary import Summary

AUTO = "auto"
"""The name that asks for a choice."""

ALLOWANCE = 16 * 2**20
"""Bytes that an index may take however few intervals there are."""

BYTES_PER_INTERVAL = 64
"""Bytes that it may take for each interval beside."""

SLACK = 1.25
"""A structure that needs up to so many times the least time is fast enough to be preferred
for being smaller: predictions are not more exact than that."""


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


def default_memory(n: int) -> int:
    """Bytes that an index of n intervals may take unless somebody says otherwise."""
    return ALLOWANCE + BYTES_PER_INTERVAL * n


def choose(lows: ArrayLike, highs: ArrayLike, domain: int, *, memory: int | None = None) -> Choice:
    """Choose a structure for these intervals; OptionError if none fits into ``memory`` bytes.

    O(n + min(domain, n log n)), a few nanoseconds per interval.
    """
    low = as_int32(lows, "lows")
    low, high, _ = check_intervals(low, highs, np.arange(len(low)), domain)
    summary = Summary.of(low, high, domain)
    limit = checked_memory(memory, summary.n)
    best = ranked(summary, limit)
    first = best[0]
    if not first.fits(limit):
        raise OptionError(
            f"no structure for these {summary.n:,} intervals over {domain:,} cells fits into "
            f"{limit:,} bytes: the smallest, {_shown(first)}, needs about {first.bytes:,}"
        )
    return Choice(
        first.name,
        first.parameters,
        first.bytes,
        first.nanoseconds,
        tuple(_reasons(best, summary, limit)),
    )


def ranked(summary: Summary, memory: int) -> list[Estimate]:
    """Every structure with its best parameter, best first, by the rule that the module states.

    Those that do not fit into the memory come last, the smallest first.
    """
    each = [best_of(estimates(name, summary), memory) for name in STRUCTURES]
    fitting = [one for one in each if one.fits(memory)]
    too_large = sorted((one for one in each if not one.fits(memory)), key=_size)
    return [*_in_order(fitting), *too_large]


def best_of(candidates: list[Estimate], memory: int) -> Estimate:
    """The best of one structure's parameters; the smallest if none fits."""
    fitting = [one for one in candidates if one.fits(memory)]
    return _in_order(fitting)[0] if fitting else min(candidates, key=_size)


def _in_order(fitting: list[Estimate]) -> list[Estimate]:
    """The smallest of those that are fast enough first, then the others by time."""
    if not fitting:
        return []
    least = min(one.nanoseconds for one in fitting)
    fast = [one for one in fitting if one.nanoseconds <= SLACK * least]
    first = min(fast, key=_size)
    rest = [one for one in fitting if one is not first]
    return [first, *sorted(rest, key=lambda one: one.nanoseconds)]


def _size(estimate: Estimate) -> tuple[int, float]:
    return estimate.bytes, estimate.nanoseconds


def _shown(estimate: Estimate) -> str:
    given = ", ".join(f"{name} {value}" for name, value in estimate.parameters.items())
    return f"{estimate.name} with {given}" if given else estimate.name


def _reasons(best: list[Estimate], summary: Summary, memory: int) -> list[str]:
    """Sentences about the choice, for people."""
    first = best[0]
    fitting = [one for one in best if one.fits(memory)]
    fastest = min(fitting, key=lambda one: one.nanoseconds)
    seen = (
        f"{summary.n:,} intervals over {summary.domain:,} cells, {summary.mean_length:,.1f} cells "
        f"long on average: a value finds {summary.ids_per_value:,.2f} of them"
    )
    reasons = [
        seen,
        f"{len(fitting)} of {len(best)} structures fit into {memory:,} bytes",
    ]
    if first is fastest:
        reasons.append(f"{_shown(first)} is the fastest of these by prediction")
    else:
        reasons.append(
            f"{_shown(first)} takes {first.bytes:,} bytes, the least of those that are predicted "
            f"to need at most {SLACK:g} times as long as the fastest, {_shown(fastest)}"
        )
    faster = [one for one in best if one.nanoseconds < first.nanoseconds]
    excluded = [one for one in faster if not one.fits(memory)]
    reasons += [
        f"{_shown(one)} would be faster and needs {one.bytes:,} bytes"
        for one in sorted(excluded, key=lambda one: one.nanoseconds)[:1]
    ]
    return reasons


def checked_memory(memory: int | None, n: int) -> int:
    """Return the limit that holds; OptionError if it is none."""
    if memory is None:
        return default_memory(n)
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 1:
        raise OptionError(f"the memory for a stabbing index is {memory!r}: give bytes from 1 on")
    return memory


def check_name(name: str, memory: int | None = None) -> None:
    """Refuse an unknown name, and a limit of memory where nothing is to be chosen."""
    if name == AUTO:
        checked_memory(memory, 0)
        return
    structure(name)
    if memory is not None:
        raise OptionError(f'a limit of memory is for stabbing="{AUTO}", not for {name!r}')


def build_named(
    name: str, lows: ArrayLike, highs: ArrayLike, domain: int, memory: int | None = None
) -> StabbingIndex:
    """Build the structure of this name, or the one to choose if it is "auto"; ids are positions."""
    check_name(name, memory)
    parameters: dict[str, Any] = {}
    if name == AUTO:
        choice = choose(lows, highs, domain, memory=memory)
        name, parameters = choice.name, choice.parameters
    ids = np.arange(len(np.asarray(lows)), dtype=np.int32)
    return structure(name).build(lows, highs, ids, domain=domain, **parameters)
