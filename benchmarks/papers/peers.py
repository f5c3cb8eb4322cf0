"""What one would take instead, on the same intervals and events: libraries, databases, NumPy.

640,000 intervals of 1 to 200 cells out of 1,048,576, and a million floats as events. Everybody
answers with the ids (ours, NumPy) or pairs of event and id (the others) of all matches::

    bittern       every structure that fits, floats turned into cells inside the time
    copy          nothing but copying as many ids, batch by batch, out of a filled array
    ncls          all_overlaps_both on [cell, cell + 1); once more with every batch sorted first
    intervaltree  tree[value], one after the other
    duckdb        value >= low AND value < high as a join: an IE join; one thread, and all
    polars        the same with join_where, all threads
    numpy         intervals sorted by low, the window of lows that can reach a value by
                  searchsorted, and a comparison of the highs in it; and comparing everything

Ours, the copy and NumPy get batches of 16,384; the others also larger ones, of which the fastest
counts. Who is slow gets as many events as about ten seconds allow.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.draw import Draw
from benchmarks.papers.measure import (
    BATCH,
    Truth,
    Values,
    as_cells,
    half_open,
    load_kernels,
    progress,
    same_ids,
)
from benchmarks.run import DisagreementError, timed
from bittern.errors import OptionError
from bittern.stabbing.registry import STRUCTURES, structure

if TYPE_CHECKING:
    from benchmarks.papers.measure import Intervals

SEED = 99
SECONDS = 10.0
CHECK_SECONDS = 2.0
PASSES = 3


class Peer(ABC):
    """Someone who holds the intervals and finds those that contain values."""

    name: ClassVar[str]
    batches: ClassVar[tuple[int, ...]] = (BATCH,)
    """Sizes of batches to try."""

    @abstractmethod
    def __init__(self, intervals: Intervals) -> None:
        """Take the intervals."""

    @abstractmethod
    def ids(self, values: Values) -> Values:
        """Find the ids of all matches of a batch."""

    def rewind(self) -> None:  # noqa: B027
        """The next batch is the first one again."""

    @property
    def nbytes(self) -> int | None:
        """Bytes that its arrays occupy, where it can tell."""
        return None


class Ours(Peer):
    """One of our structures, with the parameters that it chooses itself."""

    name = "bittern"

    def __init__(self, intervals: Intervals, kind: str = "cei") -> None:
        self._index = structure(kind).build(
            intervals.lows, intervals.highs, intervals.ids, domain=intervals.domain
        )

    def ids(self, values: Values) -> Values:  # noqa: D102
        return self._index.stab_batch(as_cells(values))[1]

    @property
    def nbytes(self) -> int:  # noqa: D102
        return self._index.nbytes


class Copy(Peer):
    """Nothing but the output: the ids of all events, found before, copied out batch by batch."""

    name = "copy"

    def __init__(self, intervals: Intervals, values: Values) -> None:
        finder = Ours(intervals)
        found = [finder.ids(values[i : i + BATCH]) for i in range(0, len(values), BATCH)]
        # One array that was written: pages never written would all be one and cost nothing.
        self._found = np.concatenate(found)
        self._ends = np.concatenate([[0], np.cumsum([len(ids) for ids in found])])
        self._next = 0

    def ids(self, values: Values) -> Values:  # noqa: ARG002, D102
        first, stop = self._ends[self._next : self._next + 2]
        self._next += 1
        return self._found[first:stop].copy()

    def rewind(self) -> None:  # noqa: D102
        self._next = 0


class Ncls(Peer):
    """Nested containment lists, of integers only."""

    name = "ncls"
    batches = (BATCH, 1 << 20)

    def __init__(self, intervals: Intervals) -> None:
        from ncls import NCLS  # type: ignore[import-untyped]

        stops = intervals.highs.astype(np.int64) + 1
        self._lists = NCLS(intervals.lows.astype(np.int64), stops, intervals.ids.astype(np.int64))

    def ids(self, values: Values) -> Values:  # noqa: D102
        cells = values.astype(np.int64)
        _, ids = self._lists.all_overlaps_both(cells, cells + 1, np.arange(len(cells)))
        return np.asarray(ids)


class SortedNcls(Ncls):
    """The same, with the events of every batch sorted first, which its caches like."""

    name = "ncls, events sorted"

    def ids(self, values: Values) -> Values:  # noqa: D102
        order = np.argsort(values)
        cells = values[order].astype(np.int64)
        _, ids = self._lists.all_overlaps_both(cells, cells + 1, order)
        return np.asarray(ids)


class IntervalTree(Peer):
    """A tree of Python objects."""

    name = "intervaltree"
    batches = (64,)

    def __init__(self, intervals: Intervals) -> None:
        from intervaltree import (  # type: ignore[import-untyped]
            IntervalTree as Tree,
        )

        stops = (intervals.highs.astype(np.int64) + 1).tolist()
        self._tree = Tree.from_tuples(
            zip(intervals.lows.tolist(), stops, intervals.ids.tolist(), strict=True)
        )

    def ids(self, values: Values) -> Values:  # noqa: D102
        return np.array(
            [found.data for value in values.tolist() for found in self._tree[value]], np.int64
        )


class DuckDB(Peer):
    """A join of two tables; DuckDB plans it as an IE join."""

    name = "duckdb, one thread"
    batches = (BATCH, 1 << 17, 1 << 20)
    config: ClassVar[dict[str, Any]] = {"threads": 1}

    def __init__(self, intervals: Intervals) -> None:
        import duckdb

        self._connection = duckdb.connect(config=self.config)
        self._connection.register("incoming", _table(intervals))
        self._connection.execute("CREATE TABLE intervals AS FROM incoming")
        self._connection.unregister("incoming")

    def ids(self, values: Values) -> Values:  # noqa: D102
        self._connection.register("events", _events(values))
        pairs = self._connection.sql(
            "SELECT event, id FROM events JOIN intervals ON value >= low AND value < high"
        ).to_arrow_table()
        self._connection.unregister("events")
        return np.asarray(pairs["id"])


class DuckDBThreads(DuckDB):
    """The same with as many threads as it likes."""

    name = "duckdb"
    config: ClassVar[dict[str, Any]] = {}


class Polars(Peer):
    """A join of two frames on inequalities, with as many threads as it likes."""

    name = "polars"
    batches = (BATCH, 1 << 17, 1 << 20)

    def __init__(self, intervals: Intervals) -> None:
        import polars as pl

        self._polars = pl
        self._intervals: Any = pl.from_arrow(_table(intervals)).lazy()  # type: ignore[union-attr]

    def ids(self, values: Values) -> Values:  # noqa: D102
        column = self._polars.col
        events: Any = self._polars.from_arrow(_events(values)).lazy()  # type: ignore[union-attr]
        joined = events.join_where(
            self._intervals,
            column("value") >= column("low"),
            column("value") < column("high"),
        )
        return np.asarray(joined.select("event", "id").collect()["id"].to_numpy())


class NumPy(Peer):
    """Intervals sorted by low: those that can reach a value stand side by side."""

    name = "numpy, searchsorted"

    def __init__(self, intervals: Intervals) -> None:
        order = np.argsort(intervals.lows, kind="stable")
        self._lows = intervals.lows[order]
        self._highs = intervals.highs[order]
        self._ids = intervals.ids[order]
        self._longest = int((intervals.highs - intervals.lows).max())

    def ids(self, values: Values) -> Values:  # noqa: D102
        cells = as_cells(values)
        first = np.searchsorted(self._lows, cells - self._longest, side="left")
        counts = np.searchsorted(self._lows, cells, side="right") - first
        shifts = first - np.concatenate([[0], np.cumsum(counts)[:-1]])
        candidates = np.arange(counts.sum()) + np.repeat(shifts, counts)
        kept = self._highs[candidates] >= np.repeat(cells, counts)
        return np.asarray(self._ids[candidates[kept]])


class BruteForce(Peer):
    """Every interval compared with every value."""

    name = "numpy, brute force"
    batches = (64,)

    def __init__(self, intervals: Intervals) -> None:
        self._lows, self._highs = intervals.lows, intervals.highs

    def ids(self, values: Values) -> Values:  # noqa: D102
        cells = as_cells(values)
        return np.concatenate(
            [np.flatnonzero((self._lows <= cell) & (cell <= self._highs)) for cell in cells]
        )


def _table(intervals: Intervals) -> pa.Table:
    stops = intervals.highs.astype(np.float64) + 1
    return pa.table({"id": intervals.ids, "low": intervals.lows.astype(np.float64), "high": stops})


def _events(values: Values) -> pa.Table:
    return pa.table({"event": np.arange(len(values), dtype=np.int32), "value": values})


OTHERS: tuple[type[Peer], ...] = (
    Ncls,
    SortedNcls,
    IntervalTree,
    DuckDB,
    DuckDBThreads,
    Polars,
    NumPy,
    BruteForce,
)


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
    for kind in STRUCTURES:
        load_kernels(kind)
        try:
            peer, seconds = timed(lambda kind=kind: Ours(intervals, kind))  # type: ignore[misc]
        except OptionError as refusal:
            result["ours"][kind] = {"refused": str(refusal)}
            progress(f"  {kind}: {refusal}")
            continue
        result["ours"][kind] = _measured(kind, peer, seconds, values, truth)
        del peer
    result["others"]["copy"] = _measured("copy", Copy(intervals, values), 0.0, values, truth)
    for other in OTHERS:
        peer, seconds = timed(lambda other=other: other(intervals))  # type: ignore[misc]
        result["others"][other.name] = _measured(other.name, peer, seconds, values, truth)
        del peer
    return result


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
