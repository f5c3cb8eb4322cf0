"""What a Spark user writes today for the same matching, each in the best form found for it.

Subscriptions are conjunctions, so they are rows: the predicates side by side, the narrowest first,
since most rows fail there and the others are then not looked at::

    subscription  attribute_1  low_1  high_1   attribute_2  low_2  high_2   ...
               0           17      4       4           905      1      33
               1            4     12      50          NULL   NULL    NULL

    nested loop   every event beside every row, compared
    bins          the narrowest predicate's interval in bins, an equi-join on (attribute, bin), then
                  the exact comparison: a range join, with the pivot chosen by hand
    UDF           a Python function that calls one compiled lambda per rule (``rules.py``)

Each gives (event, subscription), and these must be the ones that our match gives.

Cost: O(events * subscriptions), except bins: O(events * rows of the bins met).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from benchmarks.spark import rules
from benchmarks.spark.frames import EVENT, VALUES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from benchmarks.draw import Ints
    from benchmarks.generators import Conjunctions

SUBSCRIPTION = "subscription"
#: Of bins where events carry a map (the best of 5, 10 and 25), and where they have columns. Bins of
#: 1 are exact, and their rows the most.
MAP_WIDTH, COLUMNS_WIDTH = 5, 1


def rows_of(conjunctions: Conjunctions, *, by_name: bool) -> pa.Table:
    """Predicates side by side, narrowest first; attributes by name or by number. O(predicates)."""
    vocabulary, codes = conjunctions.vocabulary, rules.narrowest_first(conjunctions)
    sizes = np.diff(conjunctions.offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(codes)) - np.repeat(conjunctions.offsets[:-1], sizes)
    names = pa.array(vocabulary.attributes)
    columns: dict[str, Any] = {SUBSCRIPTION: np.arange(len(sizes), dtype=np.int64)}
    for number in range(int(sizes.max())):
        chosen = place == number
        missing = np.ones(len(sizes), np.bool_)
        missing[owner[chosen]] = False
        attribute = _spread(vocabulary.attribute[codes[chosen]], owner[chosen], missing)
        columns[f"attribute_{number + 1}"] = names.take(attribute) if by_name else attribute
        for side, bound in (("low", vocabulary.low), ("high", vocabulary.high)):
            columns[f"{side}_{number + 1}"] = _spread(bound[codes[chosen]], owner[chosen], missing)
    return pa.table(columns)


def _spread(values: Ints, rows: Ints, missing: Any) -> pa.Array:
    spread = np.zeros(len(missing), np.int64)
    spread[rows] = values
    return pa.array(spread, mask=missing)


class Peer(ABC):
    """One way of matching, holding the subscriptions."""

    name: str

    def __init__(
        self, spark: SparkSession, conjunctions: Conjunctions, folder: Path, *, as_map: bool
    ) -> None:
        """Load the subscriptions; ``as_map`` says whether events carry attributes in a map."""
        self.spark = spark
        self.attributes = conjunctions.vocabulary.attributes
        self.as_map = as_map
        self.load(conjunctions, folder)

    @abstractmethod
    def load(self, conjunctions: Conjunctions, folder: Path) -> None:
        """Bring the subscriptions where matching will read them; ``folder`` is for files."""

    @abstractmethod
    def match(self, events: DataFrame) -> DataFrame:
        """(event, subscription), one row per match."""

    @abstractmethod
    def forget(self) -> None:
        """Free what loading took."""


class _Join(Peer):
    """Subscriptions as rows that Spark holds in memory."""

    def load(self, conjunctions: Conjunctions, folder: Path) -> None:  # noqa: ARG002
        table = rows_of(conjunctions, by_name=self.as_map)
        self.predicates = (table.num_columns - 1) // 3
        self.rows = self.prepared(self.spark.createDataFrame(table).repartition(2)).cache()
        self.rows.count()

    def prepared(self, rows: DataFrame) -> DataFrame:
        """Give the rows as they are to be held."""
        return rows

    def events(self, events: DataFrame) -> DataFrame:
        """The number of an event and its values: the map, or an array in order of attributes."""
        values = F.col(VALUES) if self.as_map else F.array(*self.attributes)
        return events.select(EVENT, values.alias(VALUES))

    def holds(self, first: int) -> Column:
        """All predicates of a row from ``first`` on hold for the values beside it."""
        value = f"{VALUES}[attribute_{{0}}]" if self.as_map else f"get({VALUES}, attribute_{{0}})"
        one = f"{value} BETWEEN low_{{0}} AND high_{{0}}"
        tests = [
            one.format(k) if k == 1 else f"(attribute_{k} IS NULL OR {one.format(k)})"
            for k in range(first, self.predicates + 1)
        ]
        return F.expr(" AND ".join(tests) or "true")

    def forget(self) -> None:
        self.rows.unpersist()


class NestedLoop(_Join):
    """Every event beside every subscription; the events are broadcast, being the fewer rows."""

    name = "broadcast nested-loop join"

    def match(self, events: DataFrame) -> DataFrame:  # noqa: D102
        joined = self.rows.join(F.broadcast(self.events(events)), self.holds(1))
        return joined.select(EVENT, SUBSCRIPTION)


class Bins(_Join):
    """A range join by bins on the narrowest predicate of each subscription."""

    name = "interval join by bins"

    def prepared(self, rows: DataFrame) -> DataFrame:  # noqa: D102
        self.width = MAP_WIDTH if self.as_map else COLUMNS_WIDTH
        bins = F.expr(f"explode(sequence(low_1 div {self.width}, high_1 div {self.width}))")
        return rows.withColumn("bin", bins)

    def match(self, events: DataFrame) -> DataFrame:  # noqa: D102
        explode = F.explode(VALUES) if self.as_map else F.posexplode(VALUES)
        values = self.events(events).select("*", explode.alias("attribute_1", "value"))
        values = values.withColumn("bin", F.expr(f"value div {self.width}"))
        joined = values.join(self.rows, ["attribute_1", "bin"])
        exact = F.expr("value BETWEEN low_1 AND high_1") & self.holds(2)
        return joined.filter(exact).select(EVENT, SUBSCRIPTION)


class Udf(Peer):
    """A Python function that tries one rule after the other."""

    name = "Python UDF over rules"

    def load(self, conjunctions: Conjunctions, folder: Path) -> None:  # noqa: D102
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"rules-{len(conjunctions.offsets) - 1}-{len(self.attributes)}.txt"
        self.path.write_text(rules.source(conjunctions))

    def match(self, events: DataFrame) -> DataFrame:  # noqa: D102
        loop = F.udf(rules.Loop(str(self.path)).holding, "array<bigint>", useArrow=True)
        values = F.col(VALUES) if self.as_map else F.struct(*self.attributes)
        return events.select(EVENT, F.explode(loop(values)).alias(SUBSCRIPTION))

    def forget(self) -> None:  # noqa: D102
        self.path.unlink()


PEERS: tuple[type[Peer], ...] = (NestedLoop, Bins, Udf)
