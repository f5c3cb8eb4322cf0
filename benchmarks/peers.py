"""DuckDB and Polars on the same subscriptions and events: what one would do without an engine.

A conjunction becomes a row, and matching a join. Three forms, each workload in the one that suits
the database best::

    wide      dense, optional, ranges     one row per subscription, low and high per attribute
              sub  low_a0 high_a0  low_a1 high_a1      every event value between low and high;
                0      17      17      -1    1000      no predicate: -1 .. 1000; missing: -1
    keys      equality                    one row per subscription, a hash join on two columns
    counting  shop, shop-10m, ads         one row per predicate, joined on the attribute name;
              as many predicates must hold as the subscription has

Both get one thread and Arrow events, and both hand back the event of every match, so that their
counts can be compared with ours.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from benchmarks.draw import Ints
    from benchmarks.generators import Conjunctions

Form: TypeAlias = Literal["wide", "keys", "counting"]

FORMS: dict[str, Form] = {
    "dense": "wide",
    "optional": "wide",
    "ranges": "wide",
    "equality": "keys",
    "shop": "counting",
    "shop-10m": "counting",
    "ads": "counting",
}
LOWEST, HIGHEST = -1, 1_000  # around every value of a wide workload


class Peer(ABC):
    """One engine holding one workload's subscriptions."""

    name: str

    def __init__(self, form: Form, conjunctions: Conjunctions) -> None:
        """Load the subscriptions. O(predicates)."""
        self.form = form
        self.attributes = conjunctions.vocabulary.attributes
        self.load(_subscription_rows(self.form, conjunctions))

    def counts(self, events: pa.Table) -> Ints:
        """Count the matches of each event."""
        rows = _event_rows(self.form, self.attributes, events)
        return np.bincount(self.matched_events(rows), minlength=len(events)).astype(np.int64)

    @abstractmethod
    def load(self, subscriptions: pa.Table) -> None:
        """Take the subscription rows into the engine's own storage."""

    @abstractmethod
    def matched_events(self, events: pa.Table) -> Ints:
        """Join, and give the event number of every match."""


class DuckDB(Peer):
    """An in-memory DuckDB database with one thread."""

    name = "duckdb"

    def load(self, subscriptions: pa.Table) -> None:  # noqa: D102
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.register("incoming", subscriptions)
        self._connection.execute("CREATE TABLE subscriptions AS FROM incoming")
        self._connection.unregister("incoming")

    def matched_events(self, events: pa.Table) -> Ints:  # noqa: D102
        self._connection.register("events", events)
        result = self._connection.sql(self._query()).to_arrow_table()
        self._connection.unregister("events")
        return result["event"].to_numpy()  # type: ignore[no-any-return]

    def _query(self) -> str:
        match self.form:
            case "wide":
                between = " AND ".join(
                    f"{name} >= low_{name} AND {name} <= high_{name}" for name in self.attributes
                )
                return f"SELECT event, subscription FROM events JOIN subscriptions ON {between}"
            case "keys":
                keys = ", ".join(self.attributes)
                return f"SELECT event, subscription FROM events JOIN subscriptions USING ({keys})"
            case "counting":
                return (
                    "SELECT event, subscription FROM events JOIN subscriptions USING (attribute)"
                    " WHERE value BETWEEN low AND high"
                    " GROUP BY event, subscription, size HAVING count(*) = size"
                )


class Polars(Peer):
    """Polars frames with one thread, which must be said before it is imported."""

    name = "polars"

    def load(self, subscriptions: pa.Table) -> None:  # noqa: D102
        os.environ["POLARS_MAX_THREADS"] = "1"
        import polars as pl

        self._polars = pl
        self._subscriptions: Any = pl.from_arrow(subscriptions).lazy()  # type: ignore[union-attr]

    def matched_events(self, events: pa.Table) -> Ints:  # noqa: D102
        column = self._polars.col
        frame: Any = self._polars.from_arrow(events).lazy()  # type: ignore[union-attr]
        match self.form:
            case "wide":
                between = [
                    comparison
                    for name in self.attributes
                    for comparison in (
                        column(name) >= column(f"low_{name}"),
                        column(name) <= column(f"high_{name}"),
                    )
                ]
                joined = frame.join_where(self._subscriptions, *between)
            case "keys":
                joined = frame.join(self._subscriptions, on=self.attributes)
            case "counting":
                joined = (
                    frame.join(self._subscriptions, on="attribute")
                    .filter(column("value").is_between(column("low"), column("high")))
                    .group_by("event", "subscription", "size")
                    .len()
                    .filter(column("len") == column("size"))
                )
        return joined.select("event", "subscription").collect()["event"].to_numpy()  # type: ignore[no-any-return]


def _subscription_rows(form: Form, conjunctions: Conjunctions) -> pa.Table:
    vocabulary, codes = conjunctions.vocabulary, conjunctions.codes
    sizes = np.diff(conjunctions.offsets)
    subscription = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    attribute = vocabulary.attribute[codes]
    if form == "counting":
        return pa.table(
            {
                "subscription": subscription,
                "size": np.repeat(sizes, sizes).astype(np.int32),
                "attribute": pa.array(vocabulary.attributes).take(pa.array(attribute)),
                "low": vocabulary.low[codes],
                "high": vocabulary.high[codes],
            }
        )
    columns: dict[str, Any] = {"subscription": np.arange(len(sizes), dtype=np.int32)}
    for number, name in enumerate(vocabulary.attributes):
        chosen = attribute == number
        if form == "keys":
            columns[name] = vocabulary.low.take(pa.array(codes[chosen]))
            continue
        for side, bound, unbounded in (
            ("low", vocabulary.low, LOWEST),
            ("high", vocabulary.high, HIGHEST),
        ):
            filled = np.full(len(sizes), unbounded, dtype=np.int64)
            filled[subscription[chosen]] = bound[codes[chosen]]
            columns[f"{side}_{name}"] = filled
    return pa.table(columns)


def _event_rows(form: Form, attributes: list[str], events: pa.Table) -> pa.Table:
    number = np.arange(len(events), dtype=np.int32)
    if form == "counting":
        entries = events["attributes"].combine_chunks()
        counts = np.diff(entries.offsets.to_numpy())
        first, last = entries.offsets[0].as_py(), entries.offsets[-1].as_py()
        return pa.table(
            {
                "event": np.repeat(number, counts),
                "attribute": entries.keys.slice(first, last - first),
                "value": entries.items.slice(first, last - first),
            }
        )
    columns = {name: events[name] for name in attributes}
    if form == "wide":
        columns = {name: column.fill_null(LOWEST) for name, column in columns.items()}
    return pa.table({"event": number, **columns})


PEERS: tuple[type[Peer], ...] = (DuckDB, Polars)
