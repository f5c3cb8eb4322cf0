"""Intervals drawn as the papers draw them, and what one structure costs on them.

Every measurement is checked against an answer that needs no index. Of the intervals that begin at
or before a cell, those that ended before it do not contain it::

    lows  sorted   2  5  5  9        cell 6: 3 begin at 2, 5, 5
    highs sorted   4  7  8  9                1 ended at 4          so 2 contain it

The same with running sums of ids gives the sum of the ids to be found. A structure that counts
differently for any value, or adds up to another sum, ends the run.

Times are per value, the median of several passes over all values in batches of at most 16,384
values and four million ids, floats turned into cells and ids written to fresh arrays included.
"""

from __future__ import annotations

import gc
import statistics
import sys
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.run import DisagreementError, agree, timed
from bittern.arrays import Int32s
from bittern.errors import OptionError
from bittern.stabbing.registry import structure

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.draw import Draw, Ints

Values: TypeAlias = NDArray[Any]
Point: TypeAlias = dict[str, Any]

BATCH = 16_384
BATCH_IDS = 1 << 22
PASSES, FEWER_PASSES = 5, 3
#: Once the passes have taken so long together, the smaller number of them is enough.
SECONDS = 4.0
SINGLES = 500


def progress(text: str) -> None:
    """Say on stderr what is being measured."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Intervals:
    """Closed intervals of cells 0 .. domain - 1; the ids are their numbers."""

    lows: Int32s
    highs: Int32s
    domain: int

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def ids(self) -> Int32s:
        """The number of each."""
        return np.arange(len(self), dtype=np.int32)

    def first(self, n: int) -> Intervals:
        """The first ``n`` of them."""
        return Intervals(self.lows[:n], self.highs[:n], self.domain)


def closed_integers(draw: Draw, n: int, domain: int, widest: int) -> Intervals:
    """Seed 000: integers 1 .. R, from x in 1 .. R-1 to min(x + w, R), w in 1 .. W, both in it."""
    start = 1 + draw.below(domain - 1, n)
    stop = np.minimum(start + 1 + draw.below(widest, n), domain)
    return Intervals((start - 1).astype(np.int32), (stop - 1).astype(np.int32), domain)


def half_open(draw: Draw, n: int, domain: int, widest: int) -> Intervals:
    """Seed 001: [x, x + w) with x in 1 .. r-1 and w in 1 .. W, cut off at r."""
    start = 1 + draw.below(domain - 1, n)
    stop = np.minimum(start + 1 + draw.below(widest, n), domain)
    return Intervals(start.astype(np.int32), (stop - 1).astype(np.int32), domain)


class Truth:
    """How many intervals contain a value, and the sum of their ids, by two binary searches."""

    def __init__(self, intervals: Intervals) -> None:
        self._lows, self._low_sums = _ordered(intervals.lows)
        self._highs, self._high_sums = _ordered(intervals.highs)

    def counts(self, values: Values) -> Ints:
        """Intervals that contain each value."""
        begun, ended = self._begun_and_ended(values)
        return begun - ended

    def id_sum(self, values: Values) -> int:
        """Sum of all ids that the values are to find."""
        begun, ended = self._begun_and_ended(values)
        return int((self._low_sums[begun] - self._high_sums[ended]).sum())

    def _begun_and_ended(self, values: Values) -> tuple[Ints, Ints]:
        cells = as_cells(values)
        return (
            np.searchsorted(self._lows, cells, side="right"),
            np.searchsorted(self._highs, cells, side="left"),
        )


def _ordered(ends: Int32s) -> tuple[Int32s, Ints]:
    order = np.argsort(ends, kind="stable")
    return ends[order], np.concatenate([np.zeros(1, np.int64), np.cumsum(order, dtype=np.int64)])


def as_cells(values: Values) -> Int32s:
    """Cell of each value: floats, which are not negative here, lose their fraction."""
    return values.astype(np.int32, copy=False)


def cut(counts: Ints, values: int = BATCH, ids: int = BATCH_IDS) -> list[slice]:
    """Batches of at most so many values and, unless one value alone has more, so many ids."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    batches, start = [], 0
    while start < len(counts):
        fit = int(np.searchsorted(ends, ends[start] + ids, side="right")) - 1
        stop = min(start + values, max(fit, start + 1))
        batches.append(slice(start, stop))
        start = stop
    return batches


def median_of_passes(work: Callable[[], Any]) -> float:
    """Seconds of the median pass: five, or three when those take long."""
    passes: list[float] = []
    gc.disable()  # once for all passes: collecting before each would take longer than they do
    try:
        while len(passes) < PASSES and not (len(passes) >= FEWER_PASSES and sum(passes) > SECONDS):
            begin = perf_counter()
            work()
            passes.append(perf_counter() - begin)
    finally:
        gc.enable()
    return statistics.median(passes)


@cache
def load_kernels(name: str) -> None:
    """Build and search something small, so that no measurement includes compiling."""
    index = structure(name).build([1], [2], [0], domain=8)
    index.stab_batch(np.array([1], np.int32))


def measure(name: str, intervals: Intervals, values: Values, x: float, **parameters: Any) -> Point:
    """Build the structure, search all values, and give its point of a figure.

    A structure that refuses because it would take too much memory gives the reason instead.
    """
    load_kernels(name)
    point: Point = {"structure": name, "x": x, "parameters": parameters}
    try:
        index, point["build_seconds"] = timed(
            lambda: structure(name).build(
                intervals.lows,
                intervals.highs,
                intervals.ids,
                domain=intervals.domain,
                **parameters,
            )
        )
    except OptionError as refusal:
        progress(f"  {name} at {x:g}: {refusal}")
        return {**point, "refused": str(refusal)}
    truth = Truth(intervals)
    counts = truth.counts(values)
    batches = cut(counts)
    check(name, index, values, truth, batches)

    def stab() -> None:
        for batch in batches:
            index.stab_batch(as_cells(values[batch]))

    def count() -> None:
        for batch in batches:
            index.locate_batch(as_cells(values[batch]))

    singles = as_cells(values[:SINGLES]).tolist()

    def stab_each() -> None:
        for value in singles:
            index.stab(value)

    nanoseconds = 1e9 / len(values)
    point |= {
        "bytes": index.nbytes,
        "entries": int(index.statistics()["entries"]),
        "ids_per_value": float(counts.mean()),
        "ns_per_value": median_of_passes(stab) * nanoseconds,
        "ns_to_count": median_of_passes(count) * nanoseconds,
        "ns_single": median_of_passes(stab_each) * 1e9 / len(singles),
    }
    progress(
        f"  {name} at {x:g}: {point['ns_per_value']:.0f} ns per value for"
        f" {point['ids_per_value']:.1f} ids, {point['bytes'] / 1e6:.1f} MB,"
        f" built in {point['build_seconds']:.2f} s"
    )
    return point


def check(name: str, index: Any, values: Values, truth: Truth, batches: list[slice]) -> None:
    """Raise unless the index finds what a plain count says, in every batch."""
    for batch in batches:
        offsets, ids = index.stab_batch(as_cells(values[batch]))
        agree(name, np.diff(offsets), truth.counts(values[batch]))
        same_ids(name, ids, truth.id_sum(values[batch]))


def same_ids(name: str, ids: Values, expected: int) -> None:
    """Raise unless the ids have the sum they must have."""
    found = int(ids.sum(dtype=np.int64))
    if found != expected:
        raise DisagreementError(f"{name} finds other ids: their sum is {found}, not {expected}")
