"""What one would take instead, on the same intervals and events.

640,000 intervals of 1 to 200 cells out of 1,048,576, and a million floats as events. Everybody
answers with the ids (ours, NumPy) or pairs of event and id (the others) of all matches::

    bittern    every structure that fits, floats turned into cells inside the time; CEI with
               several segments as well
    Intervals  bittern.Intervals: built from floats, and its own encoding of the events inside
    copy       nothing but the output: offsets and ids of each batch copied into fresh arrays, out
               of arrays that hold those of the whole run
    others     ``benchmarks.papers.others``

Ours, the copy and NumPy get batches of 16,384; the others also larger ones, of which the fastest
counts. Who is slow gets as many events as about ten seconds allow. Each of our structures is also
searched one value at a time, beside one batch of the same values.
"""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import bittern
from benchmarks.draw import Draw
from benchmarks.papers.measure import (
    BATCH,
    SINGLES,
    Truth,
    Values,
    as_cells,
    half_open,
    load_kernels,
    median_of_passes,
    progress,
    same_ids,
)
from benchmarks.papers.others import OTHERS, Peer
from benchmarks.run import DisagreementError, timed
from bittern.errors import OptionError
from bittern.stabbing.registry import STRUCTURES, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.papers.measure import Intervals

SEED = 99
SECONDS = 10.0
CHECK_SECONDS = 2.0
PASSES = 3
ROUNDS = 7
SEGMENTS = (8, 16, 32, 64)
UNDER_VALUES = ("cei", "dlist")
"""Structures that ``bittern.Intervals`` is measured with."""


def with_segment(segment: int) -> str:
    """What CEI with this segment is called in a result."""
    return f"cei, segment={segment}"


class Ours(Peer):
    """One of our structures, with the parameters that it chooses itself unless given."""

    name = "bittern"

    def __init__(self, intervals: Intervals, kind: str = "cei", **parameters: Any) -> None:
        self.index = structure(kind).build(
            intervals.lows, intervals.highs, intervals.ids, domain=intervals.domain, **parameters
        )

    def ids(self, values: Values) -> Values:  # noqa: D102
        return self.index.stab_batch(as_cells(values))[1]

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self.index.nbytes


class OverValues(Peer):
    """``bittern.Intervals`` over the floats themselves."""

    name = "Intervals"

    def __init__(self, intervals: Intervals, kind: str) -> None:
        lows, stops = intervals.lows.astype(np.float64), intervals.highs + 1.0
        self._index = bittern.Intervals.build(
            lows, stops, intervals.ids, closed="left", structure=kind
        )

    def ids(self, values: Values) -> Values:  # noqa: D102
        return self._index.stab_batch(values)[1]

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self._index.nbytes


class Copy(Peer):
    """Nothing but the output: offsets and ids of every batch, found before, into fresh arrays."""

    name = "copy"

    def __init__(self, intervals: Intervals, values: Values) -> None:
        index = Ours(intervals).index
        cells = as_cells(values)
        found = [index.stab_batch(cells[i : i + BATCH]) for i in range(0, len(cells), BATCH)]
        # Arrays that were written: pages never written would all be one and cost nothing.
        self._offsets = np.concatenate([offsets for offsets, _ in found])
        self._ids = np.concatenate([ids for _, ids in found])
        self._ends = np.cumsum([(0, 0), *((len(o), len(ids)) for o, ids in found)], axis=0)
        self._next = 0

    def ids(self, values: Values) -> Values:  # noqa: ARG002, D102
        (offset, first), (last_offset, stop) = self._ends[self._next : self._next + 2]
        self._next += 1
        self._offsets[offset:last_offset].copy()
        return self._ids[first:stop].copy()

    def rewind(self) -> None:  # noqa: D102
        self._next = 0


def compare(*, small: bool) -> dict[str, Any]:
    """Measure all of them; a difference in what they find ends the run."""
    domain, n, events = (2_048, 500, 2_000) if small else (1_048_576, 640_000, 1_000_000)
    intervals = half_open(Draw(SEED, 0), n, domain, 200)
    values = 1 + Draw(SEED, 1).unit(events) * (domain - 1)
    truth = Truth(intervals)
    result: dict[str, Any] = {
        "parameters": {"r": domain, "W": 200, "n": n, "events": events},
        "ids_per_event": float(truth.counts(values).mean()),
        "ours": {},
        "others": {},
    }
    for name, make in _ours(intervals).items():
        try:
            peer, seconds = timed(make)
        except OptionError as refusal:
            result["ours"][name] = {"refused": str(refusal)}
            progress(f"  {name}: {refusal}")
            continue
        result["ours"][name] = _measured(name, peer, seconds, values, truth)
        if isinstance(peer, Ours):
            result["ours"][name] |= _singles(peer, values)
        del peer
    result["others"]["copy"] = _measured("copy", Copy(intervals, values), 0.0, values, truth)
    _take_turns(result, intervals, values)
    for other in OTHERS:
        peer, seconds = timed(lambda other=other: other(intervals))  # type: ignore[misc]
        result["others"][other.name] = _measured(other.name, peer, seconds, values, truth)
        del peer
    return result


def _take_turns(result: dict[str, Any], intervals: Intervals, values: Values) -> None:
    """Measure those again whose ratios are judged closely, pass by pass in turns.

    A machine that others use is faster in one minute than in the next: what is to be compared
    within some ten percent is measured at the same time.
    """
    closely = {"dlist", "ui", "cei", *map(with_segment, SEGMENTS)}
    found = {
        name: one
        for name, one in result["ours"].items()
        if name in closely and "refused" not in one
    }
    makers = _ours(intervals)
    peers = {name: makers[name]() for name in found}
    peers["copy"], found["copy"] = Copy(intervals, values), result["others"]["copy"]
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(ROUNDS):
        for name, peer in peers.items():
            seconds[name].append(_pass(peer, min(BATCH, len(values)), values)[0])
    for name, passes in seconds.items():
        nanoseconds = statistics.median(passes) / len(values) * 1e9
        again = {"passes": ROUNDS, "ns_per_event": nanoseconds}
        found[name] |= {**again, "tried": [found[name]["tried"][0] | again]}
        progress(f"  {name}, in turns: {nanoseconds:,.1f} ns per event")


def _ours(intervals: Intervals) -> Mapping[str, Callable[[], Peer]]:
    """Make each of ours, by name, with its kernels loaded."""
    few = intervals.first(1)
    made: dict[str, Callable[[], Peer]] = {}
    for kind in STRUCTURES:
        load_kernels(kind)
        made[kind] = lambda kind=kind: Ours(intervals, kind)  # type: ignore[misc]
    for segment in SEGMENTS:
        made[with_segment(segment)] = lambda segment=segment: Ours(  # type: ignore[misc]
            intervals, segment=segment
        )
    for kind in UNDER_VALUES:
        OverValues(few, kind).ids(np.zeros(1))
        made[f"Intervals, {kind}"] = lambda kind=kind: OverValues(  # type: ignore[misc]
            intervals, kind
        )
    return made


def _singles(peer: Ours, values: Values) -> dict[str, float]:
    """The first values one at a time, and the same as one batch, in nanoseconds per value."""
    cells = as_cells(values[:SINGLES])
    one_by_one = cells.tolist()

    def single() -> None:
        for value in one_by_one:
            peer.index.stab(value)

    nanoseconds = 1e9 / len(cells)
    return {
        "ns_single": median_of_passes(single) * nanoseconds,
        "ns_batch": median_of_passes(lambda: peer.index.stab_batch(cells)) * nanoseconds,
    }


def _measured(
    name: str, peer: Peer, build_seconds: float, values: Values, truth: Truth
) -> dict[str, Any]:
    """Give the fastest of the peer's batch sizes."""
    sizes = sorted({min(size, len(values)) for size in peer.batches})
    found = [_passes(name, peer, size, values, truth) for size in sizes]
    best = min(found, key=lambda each: each["ns_per_event"])
    progress(f"  {name}: {best['ns_per_event']:,.0f} ns per event, batches of {best['batch']:,}")
    return {"build_seconds": build_seconds, "bytes": peer.nbytes, **best, "tried": found}


def _passes(name: str, peer: Peer, size: int, values: Values, truth: Truth) -> dict[str, Any]:
    """Median of three passes, or one over as many events as ten seconds allow.

    They count ids and look at none: reading them, and the truth, would push what is searched out
    of the caches. So the ids are checked before, in as many batches as a few seconds allow.
    """
    _check(name, peer, size, values, truth)
    counts = truth.counts(values)
    passes: list[float] = []
    events = len(values)
    while len(passes) < PASSES and sum(passes) < SECONDS / PASSES:
        seconds, events, found = _pass(peer, size, values[:events])
        passes.append(seconds)
        expected = int(counts[:events].sum())
        if found != expected:
            raise DisagreementError(f"{name} finds {found:,} ids, not {expected:,}")
    return {
        "batch": size,
        "events": events,
        "passes": len(passes),
        "ns_per_event": statistics.median(passes) / events * 1e9,
    }


def _check(name: str, peer: Peer, size: int, values: Values, truth: Truth) -> None:
    """Raise if a batch has other ids than it must have."""
    begin, done = perf_counter(), 0
    while done < len(values) and perf_counter() - begin < CHECK_SECONDS:
        batch = values[done : done + size]
        same_ids(name, peer.ids(batch), truth.id_sum(batch))
        done += len(batch)
    peer.rewind()


def _pass(peer: Peer, size: int, values: Values) -> tuple[float, int, int]:
    """Seconds, events and ids of a pass, which ends early after ten seconds."""
    found, done = 0, 0
    begin = perf_counter()
    while done < len(values) and perf_counter() - begin < SECONDS:
        found += len(peer.ids(values[done : done + size]))
        done = min(done + size, len(values))
    seconds = perf_counter() - begin
    peer.rewind()
    return seconds, done, found


EXPERIMENTS = {"peers": compare}
