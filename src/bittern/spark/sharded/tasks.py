"""The tasks that build a sharded index: Arrow batches in, Arrow batches out.

Each is a small callable that holds plain data, which ``spark/sharded/building.py`` gives to
``mapInArrow``::

    Settle      rows of repeated ids          ──►  the first good row of each, and bad rows
    Survey      rows                          ──►  points, and bad rows
      combine   points of many chunks         ──►  as few as of one
    Assign      rows                          ──►  (part, row), and (part, first cell, last cell)
    BuildParts  these, by part and by id      ──►  one row for each part: its snapshot, its regions

Kinds of rows that travel together share a schema; each leaves NULL what it has not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.engine.index import Index
from bittern.engine.sharding.chunks import Chunk
from bittern.engine.sharding.cutting import POINTS, Cut, combined
from bittern.engine.sharding.regions import compared, united
from bittern.engine.subscriptions import Subscriptions
from bittern.spark.arrow_tables import packed, unpacked
from bittern.spark.history.past import without_quantifiers
from bittern.spark.snapshots.store import write
from bittern.spark.subscriptions.reading import Reading, chunks, writable
from bittern.terms.unknown import SPARK

#: Events of the sample that tasks get to choose pivots by.
_TASK_SAMPLE = 2_048

_BAD_FIELDS = [("position", pa.int32()), ("message", pa.string())]
_REGION_FIELDS = [("first", pa.int64()), ("last", pa.int64())]
#: What is known of each part in the end.
BUILT = pa.schema(
    [
        ("part", pa.int32()),
        ("id", pa.string()),
        ("uri", pa.string()),
        ("subscriptions", pa.int64()),
        ("nbytes", pa.int64()),
        ("attributes", pa.list_(pa.string())),  # with each of their kinds, in the next column
        ("kinds", pa.list_(pa.int64())),
        ("firsts", pa.list_(pa.int64())),
        ("lasts", pa.list_(pa.int64())),
    ]
)


def task_sample(sample: pa.Table | None) -> bytes | None:
    """Some events of a sample, evenly spread over it, as bytes that a closure can carry."""
    if sample is None:
        return None
    step = -(-len(sample) // _TASK_SAMPLE)
    return packed(sample.take(np.arange(0, len(sample), step)))


def _unpacked(events: bytes | None) -> pa.Table | None:
    return None if events is None else unpacked(events)


def _filled(schema: pa.Schema, n_rows: int, columns: dict[str, Any]) -> pa.RecordBatch:
    """A batch of these columns, and NULL in the others."""
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(n_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _bad_batch(schema: pa.Schema, catalog: Subscriptions) -> pa.RecordBatch:
    columns = {
        "id": [writable(each.id) for each in catalog.bad],
        "position": [each.position for each in catalog.bad],
        "message": [writable(each.message) for each in catalog.bad],
    }
    return _filled(schema, len(catalog.bad), columns)


def _row_fields(id_type: pa.DataType) -> list[tuple[str, pa.DataType]]:
    return [("id", id_type), ("expression", pa.string()), ("weight", pa.float64())]


def _good_columns(catalog: Subscriptions) -> dict[str, Any]:
    columns = {"id": catalog.ids, "expression": catalog.texts.cast(pa.string())}
    if catalog.weights is not None:
        columns["weight"] = catalog.weights
    return columns


def _read(
    batches: Iterator[pa.RecordBatch], events: bytes | None, reading: Reading, *, history: bool
) -> Iterator[tuple[Subscriptions, Chunk]]:
    """Chunk after chunk of a partition, read and filed; without a history what needs one is bad."""
    sample, reader = _unpacked(events), reading.reader()
    for table in chunks(batches):
        catalog = reader.read(table)
        if not history:
            catalog = without_quantifiers(catalog, reader.shapes.templates)
        yield catalog, Chunk(catalog, reader.shapes.templates, sample)


@dataclass(frozen=True)
class Settle:
    """Of rows sorted by id and by their order: the first good one of each id, and what is bad."""

    id_type: pa.DataType
    reading: Reading

    @property
    def schema(self) -> pa.Schema:
        """Of what comes out."""
        return pa.schema([*_row_fields(self.id_type), *_BAD_FIELDS])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All of a partition at once: rows of one id must meet."""
        kept = list(batches)
        if kept:
            catalog = self.reading.reader().read(pa.Table.from_batches(kept))
            yield _filled(self.schema, len(catalog.ids), _good_columns(catalog))
            yield _bad_batch(self.schema, catalog)


@dataclass(frozen=True)
class Survey:
    """Where pivots lie, and what is bad."""

    events: bytes | None
    width: float  # subscriptions for each point
    id_type: pa.DataType
    reading: Reading
    history: bool

    @property
    def schema(self) -> pa.Schema:
        """Of what comes out."""
        return pa.schema([*POINTS, ("id", self.id_type), *_BAD_FIELDS])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The points and bad rows of each chunk."""
        for catalog, chunk in _read(batches, self.events, self.reading, history=self.history):
            yield self._batch(chunk.points(self.width))
            yield _bad_batch(self.schema, catalog)

    def combine(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The points of all chunks on some attributes, as few as those of one chunk."""
        kept = []
        for batch in batches:
            batch = batch.cast(self.schema)  # noqa: PLW2901 (its texts may have long offsets)
            is_bad = batch.column("message").is_valid()
            yield batch.filter(is_bad)
            kept.append(batch.filter(pc.invert(is_bad)))
        if kept:
            points = pa.Table.from_batches(kept).select(POINTS.names)
            yield self._batch(combined(points, self.width))

    def _batch(self, points: pa.Table) -> pa.RecordBatch:
        columns = {name: points[name].combine_chunks() for name in POINTS.names}
        return _filled(self.schema, len(points), columns)


@dataclass(frozen=True)
class Assign:
    """Good rows with their part; and for each part its regions, as rows without an id."""

    events: bytes | None
    cut: Cut
    id_type: pa.DataType
    reading: Reading
    history: bool

    @property
    def schema(self) -> pa.Schema:
        """Of what comes out."""
        return pa.schema([("part", pa.int32()), *_row_fields(self.id_type), *_REGION_FIELDS])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows and regions of each chunk."""
        schema = self.schema
        for catalog, chunk in _read(batches, self.events, self.reading, history=self.history):
            assigned = chunk.assign(self.cut)
            columns = {"part": assigned.parts, **_good_columns(catalog)}
            yield _filled(schema, len(catalog.ids), columns)
            away = assigned.region_parts < self.cut.n_shards  # home has no regions
            columns = {
                "part": assigned.region_parts[away],
                "first": assigned.regions.firsts[away],
                "last": assigned.regions.lasts[away],
            }
            yield _filled(schema, int(away.sum()), columns)


@dataclass(frozen=True)
class BuildParts:
    """A part's index, built and written; a partition is one part, or several one by one."""

    events: bytes | None
    where: str
    stabbing: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The index of each part, as its rows stream in."""
        sample = _unpacked(self.events)
        for part, own in itertools.groupby(_by_part(batches), key=lambda piece: piece[0]):
            regions: list[pa.RecordBatch] = []
            index = Index.build(
                _rows((batch for _, batch in own), regions),
                sample=sample,
                stabbing=self.stabbing,
                functions=SPARK,
            )
            if len(index) == 0:
                continue  # the regions of what another part got
            ref = write(index, self.where)
            runs = united(*(_joined(regions, name) for name, _ in _REGION_FIELDS))
            keys = compared(index)
            values = (
                part,
                ref.id,
                ref.uri,
                len(index),
                index.nbytes,
                [key.attribute for key in keys],
                [key.kind for key in keys],
                *runs,
            )
            columns = {name: [value] for name, value in zip(BUILT.names, values, strict=True)}
            yield _filled(BUILT, 1, columns)


def _by_part(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches that are sorted by part, cut where it changes."""
    for batch in batches:
        parts = batch.column("part").to_numpy()
        edges = np.flatnonzero(np.diff(parts)) + 1
        for first, end in itertools.pairwise([0, *edges.tolist(), len(parts)]):
            if first < end:
                yield int(parts[first]), batch.slice(first, end - first)


def _rows(
    batches: Iterable[pa.RecordBatch], regions: list[pa.RecordBatch]
) -> Iterator[tuple[Any, Any, Any]]:
    """The subscriptions of some batches; what is not one goes to ``regions``."""
    for batch in batches:
        is_region = batch.column("id").is_null()
        regions.append(batch.filter(is_region))
        own = batch.filter(pc.invert(is_region))
        yield from zip(
            *(own.column(name).to_pylist() for name in ("id", "expression", "weight")), strict=True
        )


def _joined(batches: list[pa.RecordBatch], name: str) -> Any:
    return np.concatenate([batch.column(name).to_numpy() for batch in batches])
