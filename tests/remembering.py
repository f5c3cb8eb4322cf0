"""A pipeline that remembers, in a folder of its own, and what it must find there.

Every match is compared with the oracle, which goes through the documents one by one. Which those
are is known from the batch of each event: all of earlier batches, and with ``order_by`` those of
the same batch that come before it.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import bittern
import oracle
from bittern.language.parser import parse
from bittern.spark.streaming.documents import StreamHistory
from bittern.spark.streaming.metrics import BatchReport, Metrics
from bittern.spark.streaming.pins import Checkpoint
from spark_jobs import streams
from steady import come

COLOURS = ("red", "tan", "sea green", None)
EVENTS_A_FILE = 6
UNREADABLE = "no"
QUANTIFIED = (
    "EXISTS d (d.price > price)",
    "FORALL d (d.price <= price)",
    "NOT EXISTS d (d.colour = colour)",
    "EXISTS d (d.colour = colour AND d.price > price)",
    "EXISTS d (d.size = size AND d.colour != 'red') AND price < {low}",
    "EXISTS d IN LAST 5 (d.size >= size)",
    "FORALL d IN LAST 2 PER colour (d.size < size)",
    "EXISTS d IN LAST {low} (d.price BETWEEN 10 AND 20 AND d.size > {low})",
    "colour = 'red' AND NOT (FORALL d IN LAST 7 (d.size != {low} OR d.price > price))",
    "EXISTS d PER colour (d.price > 5 AND d.size < price AND d.price < size)",
)
PLAIN = ("price > {low}", "size < {low} OR colour = 'tan'")


class Place:
    """A pipeline's folder, what has come there, and how its catalog has changed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.events: dict[int, dict[str, Any]] = {}
        self.unreadable: set[int] = set()
        self.arrival: list[int] = []  # of documents, as far as it was seen
        self._random = random.Random(7)
        self._files = 0
        (folder / "events").mkdir(parents=True)
        self.catalog = bittern.Catalog(folder / "catalog.db")
        self.catalog.apply([{"id": f"s{n}", "expression": self._expression()} for n in range(12)])
        self.change()

    @property
    def history(self) -> Path:
        """Where the documents are."""
        return self.path / "checkpoint" / "bittern" / "history"

    def _expression(self) -> str:
        text = self._random.choice((*QUANTIFIED, *PLAIN))
        return text.replace("{low}", str(self._random.randrange(1, 12)))

    def change(self) -> None:
        """Make a new version: some are added or replaced, one goes, one is only its own."""
        there = self.catalog.at().column("id").to_pylist()
        puts = [
            {"id": f"s{number}", "expression": self._expression()}
            for number in self._random.sample(range(16), 3)
        ]
        puts += [{"id": f"only-{self.catalog.version() + 1}", "expression": "id >= 0"}]
        gone = {self._random.choice([id_ for id_ in there if id_.startswith("s")])}
        gone |= {id_ for id_ in there if id_.startswith("only-")}
        self.catalog.apply(puts, [*(gone - {put["id"] for put in puts})])

    def arrive(self, files: int = streams.FILES_A_BATCH) -> None:
        """The events of one batch come, some of which cannot be read."""
        for _ in range(files):
            rows = [self._event(len(self.events) + n) for n in range(EVENTS_A_FILE)]
            rows[self._random.randrange(3)]["document"] = UNREADABLE
            for row in rows:
                text = row["document"]
                read = {} if text == UNREADABLE else json.loads(text)
                self.events[row["id"]] = row | read
                if text == UNREADABLE:
                    self.unreadable.add(row["id"])
            schema = {"id": pa.int64(), "price": pa.float64(), "colour": pa.string()}
            table = pa.Table.from_pylist(rows, pa.schema(schema | {"document": pa.string()}))
            partial = self.path / "events" / ".partial"
            pq.write_table(table, partial)
            come(partial, partial.with_name(f"{self._files:05d}.parquet"))
            self._files += 1

    def _event(self, id_: int) -> dict[str, Any]:
        draw = self._random
        return {
            "id": id_,
            "price": draw.choice([None, *map(float, range(24))]),
            "colour": draw.choice(COLOURS),
            "document": json.dumps({"size": draw.randrange(24)}),
        }

    def rows(self) -> list[tuple[int, int, str, int]]:
        """Batch, event, subscription and version of each match."""
        found = []
        for folder in (self.path / "matches").glob("batch=*"):
            batch = int(folder.name.removeprefix("batch="))
            rows = pq.read_table(folder, partitioning=None).to_pylist()
            found += [(batch, row["id"], row["subscription"], row["version"]) for row in rows]
        return found

    def remembered(self, batches: int) -> list[int]:
        """The events that are documents, in order."""
        return [
            id_
            for part in StreamHistory(self.history).before(batches)
            for file in sorted(Path(part.path).glob("*.parquet"))
            for id_ in pq.read_table(file, partitioning=None)["id"].to_pylist()
        ]

    def note(self, batches: int) -> None:
        """See which documents there are, in which order: that never changes."""
        stored = self.remembered(batches)
        known = [id_ for id_ in stored if id_ in self.arrival]
        assert known == self.arrival[len(self.arrival) - len(known) :]
        self.arrival += stored[len(known) :]

    def assert_exact(self, *, keep: int | None = None, order: bool = False) -> None:
        """Every match once, with the version of its batch and the documents before its event."""
        rows = self.rows()
        batch_of = {id_: batch for batch, id_, _, _ in rows}
        sound = self.events.keys() - self.unreadable
        assert batch_of.keys() == sound, "events are lost"
        batches = max(batch_of.values()) + 1
        self.note(batches)
        assert Counter(self.arrival) == Counter(sound)
        assert [batch_of[id_] for id_ in self.arrival] == sorted(batch_of.values())
        if order:
            by = {id_: (batch_of[id_], *self._price(id_), id_) for id_ in sound}
            assert self.arrival == sorted(sound, key=lambda id_: by[id_])
        expected: Counter[tuple[Any, ...]] = Counter()
        for batch in range(batches):
            version = self.version(batch)
            table = self.catalog.at(version).select(["id", "expression"]).to_pydict()
            trees = {id_: parse(text) for id_, text in zip(*table.values(), strict=True)}
            before = [self.events[id_] for id_ in self.arrival if batch_of[id_] < batch]
            for id_ in [id_ for id_ in self.arrival if batch_of[id_] == batch]:
                expected.update(
                    (batch, id_, subscription, version)
                    for subscription, tree in trees.items()
                    if oracle.matches(tree, self.events[id_], before[-(keep or len(before)) :])
                )
                if order:
                    before.append(self.events[id_])
        assert Counter(rows) == expected
        assert not [*self.history.glob(".batch*")], "something is left behind"

    def _price(self, id_: int) -> tuple[bool, float]:
        """By which events are ordered, NULLs first."""
        price = self.events[id_]["price"]
        return price is not None, price or 0.0

    def version(self, batch: int) -> int:
        """The catalog's version that a batch is pinned to."""
        pin = Checkpoint(self.path / "checkpoint").pinned(batch)
        assert pin is not None
        return pin.version


class Changes(Metrics):
    """Changes the catalog after every batch, and keeps what it is told."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.reports: list[BatchReport] = []
        self._place = place

    def batch(self, report: BatchReport) -> None:
        super().batch(report)
        self.reports.append(report)
        self._place.note(report.batch_id + 1)
        self._place.change()


def run(spark: Any, place: Place, **options: Any) -> list[BatchReport]:
    """Match all that is there; what was told of each batch."""
    told = Changes(place)
    chosen = {"history": True, **options}
    streams.pipeline(spark, str(place.path), metrics=told, **chosen).run()
    return told.reports
