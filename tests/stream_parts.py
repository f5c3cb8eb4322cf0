"""Parts of a stream without Spark: a builder and its views, the folders of a history."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlalchemy")

from answers import expected
from bittern.catalog.catalog import Catalog
from bittern.spark.catalogs import views
from bittern.spark.catalogs.builder import Builder
from bittern.spark.catalogs.views import View
from bittern.spark.snapshots import node_cache
from bittern.spark.streaming.documents import StreamHistory
from bittern.spark.streaming.outbox import Outbox
from live_cases import EVENTS


def forget() -> None:
    """Make this process one that has nothing open."""
    views._indexes.clear()
    views._states.clear()
    node_cache._opened.clear()
    while node_cache._published:
        os.close(node_cache._published.popitem()[1])


def matches(of: Any, events: Any = EVENTS) -> list[list[str]]:
    return [sorted(ids) for ids in of.match(events).to_pylist()]


class Session:
    """As much of a Spark session as a builder asks: its conf."""

    def __init__(self, master: str = "local[2]") -> None:
        self._conf = {"spark.master": master}
        self.conf = self

    def get(self, name: str, default: Any = None) -> Any:
        return self._conf.get(name, default)


def builder(
    catalog: Catalog, store: str | None, master: str = "local[2]", *, history: bool = False
) -> Builder:
    return Builder(Session(master), catalog, store, history=history)  # type: ignore[arg-type]


def check(view: View, catalog: Catalog, without: tuple[str, ...] = ()) -> None:
    """The view matches what its version of the catalog has, in a process that has seen nothing."""
    rows = catalog.at(view.version)
    texts = dict(zip(rows["id"].to_pylist(), rows["expression"].to_pylist(), strict=True))
    for id_ in without:
        del texts[id_]
    right = [sorted(ids) for ids in expected(texts, EVENTS)]
    assert matches(pickle.loads(pickle.dumps(view)).matcher()) == right


def notes(built: Builder) -> dict[int, str]:
    """The bases that the store tells of."""
    told = [json.loads(file.read_text()) for file in sorted(Path(built.list_folder).glob("*.json"))]
    return {each["version"]: each["snapshot"] for each in told}


class LocalSession(Session):
    """A session that can be stopped."""

    _jsc: object | None = object()

    @property
    def sparkContext(self) -> LocalSession:  # noqa: N802
        return self


def put(path: Path, batch: int, *files: pa.Table) -> None:
    """Write a batch as tasks and the driver do, without Spark."""
    with Outbox(path).staging(batch) as staging:
        for number, table in enumerate(files):
            name = f"part-{number:05d}-{number}-{staging.token}.parquet"
            pq.write_table(table, staging.attempts / name)
            staging.accept(name, (staging.attempts / name).stat().st_size)
        staging.commit()


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def read(history: StreamHistory, batch: int) -> list[int]:
    """The ids of all documents before a batch, by their numbers."""
    found: dict[int, int] = {}
    for part in history.before(batch):
        folder = sorted(Path(part.path).glob("*.parquet"))
        rows = [id_ for file in folder for id_ in pq.read_table(file)["id"].to_pylist()]
        assert len(rows) == part.n_documents
        assert part.number not in found
        found |= dict(enumerate(rows, part.number))
    return [found[number] for number in sorted(found)]


def names(history: StreamHistory) -> set[str]:
    """The entries of a history's folder, without those of its writers."""
    found = {entry.name for entry in history.path.iterdir()} - {"_bittern"}
    return {name for name in found if not re.fullmatch(r"\.[0-9a-f]{16}", name)}
