"""Libraries, databases and NumPy, each in the form that suits it best.

    ncls          all_overlaps_both on [cell, cell + 1); once more with every batch sorted first
    intervaltree  tree[value], one after the other
    duckdb        value >= low AND value < high as a join: an IE join; one thread, and all
    polars        the same with join_where, streaming, all threads
    ... buckets   both again as a hash join: every interval stands in all buckets of 64 cells that
                  it meets, a value in one; joined on the bucket, then filtered
    numpy         intervals sorted by low, the window of lows that can reach a value by
                  searchsorted, and a comparison of the highs in it; and comparing everything

::

    buckets of 64        0         64        128
    interval [50, 130)   |    50 ------------|- 130    rows (0, id), (1, id), (2, id)
    value 70.5           |          x        |         bucket 1: one candidate, once
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.papers.measure import BATCH, Values, as_cells

if TYPE_CHECKING:
    from benchmarks.papers.measure import Intervals

BUCKET_BITS = 6
"""Of buckets of 32, 64 and 128 cells, those of 64 were the fastest with all threads."""


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


def _table(intervals: Intervals) -> pa.Table:
    stops = intervals.highs.astype(np.float64) + 1
    return pa.table({"id": intervals.ids, "low": intervals.lows.astype(np.float64), "high": stops})


def _events(values: Values) -> pa.Table:
    return pa.table({"event": np.arange(len(values), dtype=np.int32), "value": values})


def _bucketed(intervals: Intervals) -> pa.Table:
    """Every interval once for each bucket that it meets."""
    first = intervals.lows >> BUCKET_BITS
    counts = (intervals.highs >> BUCKET_BITS) - first + 1
    rows = np.repeat(np.arange(len(intervals)), counts)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    bucket = (first[rows] + nth).astype(np.int32)
    return _table(intervals).take(pa.array(rows)).append_column("bucket", pa.array(bucket))


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
    batches: ClassVar[tuple[int, ...]] = (BATCH, 1 << 17, 1 << 20)
    config: ClassVar[dict[str, Any]] = {"threads": 1}
    condition = "value >= low AND value < high"

    def __init__(self, intervals: Intervals) -> None:
        import duckdb

        self._connection = duckdb.connect(config=self.config)
        self._connection.register("incoming", self._rows(intervals))
        self._connection.execute("CREATE TABLE intervals AS FROM incoming")
        self._connection.unregister("incoming")

    def _rows(self, intervals: Intervals) -> pa.Table:
        return _table(intervals)

    def ids(self, values: Values) -> Values:  # noqa: D102
        self._connection.register("events", _events(values))
        pairs = self._connection.sql(
            f"SELECT event, id FROM events JOIN intervals ON {self.condition}"
        ).to_arrow_table()
        self._connection.unregister("events")
        return np.asarray(pairs["id"])


class DuckDBThreads(DuckDB):
    """The same with as many threads as it likes."""

    name = "duckdb"
    config: ClassVar[dict[str, Any]] = {}


class DuckDBBuckets(DuckDB):
    """A hash join on buckets."""

    name = "duckdb, buckets, one thread"
    batches = (BATCH, 1 << 17)
    condition = (
        f"bucket = CAST(floor(value) AS INTEGER) >> {BUCKET_BITS} AND value >= low AND value < high"
    )

    def _rows(self, intervals: Intervals) -> pa.Table:
        return _bucketed(intervals)


class DuckDBBucketsThreads(DuckDBBuckets):
    """The same with as many threads as it likes."""

    name = "duckdb, buckets"
    config: ClassVar[dict[str, Any]] = {}


class Polars(Peer):
    """A join of two frames on inequalities, with as many threads as it likes."""

    name = "polars"
    batches: ClassVar[tuple[int, ...]] = (BATCH, 1 << 17, 1 << 20)

    def __init__(self, intervals: Intervals) -> None:
        import polars as pl

        self._polars = pl
        self._intervals = self._frame(self._rows(intervals))

    def _rows(self, intervals: Intervals) -> pa.Table:
        return _table(intervals)

    def _frame(self, table: pa.Table) -> Any:
        return self._polars.from_arrow(table).lazy()  # type: ignore[union-attr]

    def ids(self, values: Values) -> Values:  # noqa: D102
        pairs = self._joined(self._frame(_events(values))).select("event", "id")
        return np.asarray(pairs.collect(engine="streaming")["id"].to_numpy())

    def _joined(self, events: Any) -> Any:
        return events.join_where(self._intervals, *self._conditions())

    def _conditions(self) -> tuple[Any, Any]:
        column = self._polars.col
        return column("value") >= column("low"), column("value") < column("high")


class PolarsBuckets(Polars):
    """A hash join on buckets."""

    name = "polars, buckets"
    batches = (BATCH, 1 << 17)

    def _rows(self, intervals: Intervals) -> pa.Table:
        return _bucketed(intervals)

    def _joined(self, events: Any) -> Any:
        bucket = self._polars.col("value").cast(self._polars.Int32) // (1 << BUCKET_BITS)
        placed = events.with_columns(bucket.alias("bucket"))
        return placed.join(self._intervals, on="bucket").filter(*self._conditions())


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


OTHERS: tuple[type[Peer], ...] = (
    Ncls,
    SortedNcls,
    IntervalTree,
    DuckDB,
    DuckDBThreads,
    DuckDBBuckets,
    DuckDBBucketsThreads,
    Polars,
    PolarsBuckets,
    NumPy,
    BruteForce,
)
