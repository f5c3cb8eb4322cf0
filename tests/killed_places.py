"""The place of a pipeline that is killed: its events, its catalog, and what must come of them.

A catalog changes between batches, and each version has a subscription of its own that is true of
every event: a batch that is matched with a wrong version shows in every row, and an event that is
lost shows as well.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import answers
import bittern
from spark_jobs import streams
from steady import come

COLOURS = ("red", "tan", "sea green", None)
EVENTS_A_FILE = 24
#: What a catalog's database has for the end of a row that is current.
OPEN = 2**63 - 1

LONG = "x" * 2_000_000
#: Documents for which an event is rejected.
UNREADABLE = (
    "no",
    "",
    '{"size": 3',
    "[1]",
    "7",
    "[" * 100_000,
    '{"size": ' + "[" * 5_000 + "]" * 5_000 + "}",
    '{"size": NaN}',
    '{"size": 45, "x": "\x00"}',
    '{"size": 45, "x": "\\ud800"}',
)
#: Those whose size counts as missing, since no subscription compares with such; the rest matches.
MISTYPED = ('{"size": "45"}', '{"size": true}', '{"size": {"size": 45}}')
#: Those that look bad, and are not.
ODD = (
    '{"size": 1e999}',
    '{"size": ' + "9" * 4_000 + "}",
    '{"size": 1, "size": 45}',
    '{"size": null}',
    '{"size": 45, "other": "' + LONG + '"}',
    "{}",
)


class Place:
    """A pipeline's folder, what has come there, and how its catalog has changed."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.path = folder
        self.events: dict[int, dict[str, Any]] = {}
        self.unreadable: set[int] = set()
        self.mistyped: set[int] = set()
        self.bad: set[str] = set()
        self.pins: dict[int, dict[str, Any]] = {}
        self._random = random.Random(7)
        self._files = 0
        (folder / "events").mkdir(parents=True)
        self.catalog = bittern.Catalog(url or folder / "catalog.db")
        puts = [{"id": f"s{n}", "expression": self._expression()} for n in range(80)]
        self.catalog.apply(puts)
        self.change()

    def _expression(self) -> str:
        low, colour = self._random.randrange(40), self._random.choice(COLOURS[:-1])
        return self._random.choice(
            [
                f"price BETWEEN {low} AND {low + 9}",
                f"price > {low} AND colour = '{colour}'",
                f"colour LIKE '{colour[:2]}%' OR size > {low}",
                f"NOT (colour = '{colour}') AND size < {low}",
            ]
        )

    def change(self) -> int:
        """Make a new version: some are added, some replaced, some removed, one is only its own."""
        puts = [{"id": f"s{self._random.randrange(100)}", "expression": self._expression()}]
        puts += [{"id": f"only-{self.catalog.version() + 1}", "expression": "id >= 0"}]
        there = self.catalog.at().column("id").to_pylist()
        removes = [id_ for id_ in there if id_.startswith("only-")]
        gone = self._random.choice([id_ for id_ in there if id_.startswith("s")])
        return self.catalog.apply(puts, [*removes, *({gone} - {puts[0]["id"]})])

    def arrive(self) -> None:
        """The events of one batch come, some of which cannot be read."""
        draw = self._random
        for _ in range(streams.FILES_A_BATCH):
            rows = [
                {
                    "price": draw.uniform(0, 50),
                    "colour": draw.choice(COLOURS),
                    "document": json.dumps({"size": draw.randrange(50)}),
                }
                for _ in range(EVENTS_A_FILE)
            ]
            draw.choice(rows)["document"] = UNREADABLE[0]
            self.put(rows)

    def put(self, rows: Iterable[dict[str, Any]]) -> None:
        """Put events there as one file, all at once."""
        rows = [{"id": id_} | row for id_, row in enumerate(rows, len(self.events))]
        for row in rows:
            text = row["document"]
            read = {} if text in UNREADABLE else json.loads(text)
            self.events[row["id"]] = row | read
            if text in UNREADABLE:
                self.unreadable.add(row["id"])
            if text in MISTYPED:
                self.mistyped.add(row["id"])
        schema = {"id": pa.int64(), "price": pa.float64(), "colour": pa.string()}
        table = pa.Table.from_pylist(rows, pa.schema(schema | {"document": pa.string()}))
        partial = self.path / "events" / ".partial"
        pq.write_table(table, partial)
        come(partial, partial.with_name(f"{self._files:05d}.parquet"))
        self._files += 1

    def write_past_the_door(self, id_: str, expression: str, weight: float | None = None) -> None:
        """Have the catalog's database hold a subscription that the catalog would have refused."""
        self.bad.add(expression)
        version = self.catalog.version() + 1
        with closing(sqlite3.connect(self.path / "catalog.db")) as database, database:
            database.execute("UPDATE bittern_catalog SET version = ?", [version])
            database.execute("INSERT INTO bittern_versions VALUES (?, 0, 1, 0, 0)", [version])
            database.execute(
                "UPDATE bittern_subscriptions SET until = ? WHERE id = ? AND until = ?",
                [version, id_, OPEN],
            )
            database.execute(
                "INSERT INTO bittern_subscriptions (id, since, until, expression, weight, enabled,"
                " created, changed) VALUES (?, ?, ?, ?, ?, 1, 0, 0)",
                [id_, version, OPEN, expression, weight],
            )

    def rows(self, table: str = "matches") -> list[dict[str, Any]]:
        """What readers of a table see."""
        found = []
        for folder in (self.path / table).glob("batch=*"):
            batch = int(folder.name.removeprefix("batch="))
            found += [{"batch": batch} | row for row in pq.read_table(folder).to_pylist()]
        return found

    def batches(self) -> set[int]:
        """The batches whose matches are there."""
        return {row["batch"] for row in self.rows()}

    def matched(self) -> set[int]:
        """The events that have matches, which those that can be read all have."""
        return {row["id"] for row in self.rows()}

    def check_pins(self) -> None:
        """No pin has changed since it was seen first."""
        for file in (self.path / "checkpoint" / "bittern" / "pins").glob("[0-9]*.json"):
            pin = json.loads(file.read_text(encoding="utf-8"))
            assert self.pins.setdefault(int(file.stem), pin) == pin

    def assert_died_at(self, stage: str, batch: int) -> None:
        """What is there of a batch is what there is at a stage of it."""
        self.check_pins()
        assert (batch in self.pins) == (stage != "before the pin")
        assert (batch in self.batches()) == (stage in ("after the commit", "after Spark's commit"))

    @contextmanager
    def as_it_was(self, copy: Path) -> Iterator[None]:
        """Go on from a copy for a while, whose batches may be pinned otherwise."""
        pins, self.pins = self.pins, {}
        with streams.as_it_was(self.path, copy):
            yield
        self.pins = pins

    def assert_exact(self) -> None:
        """Every match of every event once, by the version that its batch is pinned to."""
        self.check_pins()
        rows = self.rows()
        batch_of = {row["id"]: row["batch"] for row in rows}
        sound = self.events.keys() - self.unreadable
        assert batch_of.keys() == sound, "events are lost"
        expected: Counter[tuple[Any, ...]] = Counter()
        for batch in set(batch_of.values()):
            version = self.pins[batch]["version"]
            table = self.catalog.at(version)
            texts = dict(zip(*table.select(["id", "expression"]).to_pydict().values(), strict=True))
            good = {id_: text for id_, text in texts.items() if text not in self.bad}
            ids = [id_ for id_ in sound if batch_of[id_] == batch]
            found = answers.expected(good, [self.events[id_] for id_ in ids])
            for id_, matched in zip(ids, found, strict=True):
                expected.update((batch, id_, subscription, version) for subscription in matched)
        assert Counter(tuple(row.values()) for row in rows) == expected
        rejects = Counter(row["id"] for row in self.rows("rejects"))
        assert rejects == Counter(self.unreadable | self.mistyped)
        for table_folder in ("matches", "rejects"):
            assert not [*(self.path / table_folder).glob(".batch*")], "something is left behind"
