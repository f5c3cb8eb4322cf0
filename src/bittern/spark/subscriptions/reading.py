"""Subscriptions read on the executors: rows in, parsed chunks out, joined on the driver.

Reading a text costs more than everything else that is done with a subscription, and needs no other
subscription. So each task reads its own partition, and returns columns instead of texts::

    partition 0   (1, "p < 7")  (2, "p < ")   ──►  chunk: ids 1, templates, shapes, parameters
    partition 1   (3, "p < 9")  ...           ──►  chunk: ids 3, ...         bad: 2, position 4
                                                     │
    driver        toArrow, in the order of rows  ◄───┘──►  join_subscriptions  ──►  all as one

A chunk is a pickled ``Subscriptions`` with the templates it uses, compressed: 27 bytes for a
subscription of 47 (Arrow's own format takes 25, and the same time). It holds bad subscriptions as
data: whatever a row holds, its task succeeds.

Cost: about 6 us for each subscription on an executor, half of one on the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from bittern.engine.known_schema import KnownSchema
from bittern.engine.subscriptions import Subscriptions, join_subscriptions, read_subscriptions
from bittern.language.shapes import Shapes
from bittern.language.templates import Template
from bittern.model.event_schema import EventSchema
from bittern.spark.arrow_tables import to_arrow
from bittern.terms.unknown import SPARK

#: A chunk ends with the batch that reaches one of these: a row of Spark holds less than 2 GiB.
_CHUNK_ROWS, _CHUNK_BYTES = 50_000, 1 << 26

_CODEC = "zstd"
#: Of a packed chunk, as Spark says it and as Arrow does.
_SCHEMA = "size bigint, packed binary"
_ARROW_SCHEMA = pa.schema([("size", pa.int64()), ("packed", pa.binary())])


@dataclass(frozen=True)
class Reading:
    """How tasks read texts: for events of a schema, if one is known."""

    schema: EventSchema | None = None
    #: Is a subscription bad that asks for what the events do not have?
    refuses_unknown: bool = False

    def reader(self) -> Reader:
        """A reader for one partition."""
        return Reader(self)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition; one packed chunk after the other. O(total text)."""
        reader = self.reader()
        for table in chunks(batches):
            size, packed = pack(reader.read(table), reader.shapes.templates)
            yield pa.RecordBatch.from_arrays(
                [pa.array([size]), pa.array([packed], pa.binary())], schema=_ARROW_SCHEMA
            )


class Reader:
    """Reads one table after the other, with the shapes of all."""

    def __init__(self, reading: Reading) -> None:
        schema = reading.schema
        self._known = None if schema is None else KnownSchema(schema, SPARK)
        self._refuses = reading.refuses_unknown
        self.shapes = Shapes()

    def read(self, table: pa.Table) -> Subscriptions:
        """The subscriptions of a table, and the bad ones."""
        shapes, known = self.shapes, self._known
        catalog = read_subscriptions(
            table, shapes, on_error="skip", progress=None, functions=SPARK, known=known
        )
        if known is not None and self._refuses:
            catalog, _ = known.judge(catalog, shapes.templates, refuse=True)
        return catalog


def read(rows: DataFrame, reading: Reading) -> tuple[Subscriptions, list[Template]]:
    """Read all rows (id, expression, weight) on the executors, in one job.

    The catalog is in the order of the rows: partition by partition.
    """
    packed = to_arrow(rows.mapInArrow(reading, _SCHEMA))
    sizes, chunks = packed.column("size").to_pylist(), packed.column("packed")
    return join_subscriptions(
        unpack(size, chunk.as_buffer()) for size, chunk in zip(sizes, chunks, strict=True)
    )


def chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Several batches at a time: larger chunks repeat less."""
    kept: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        kept.append(batch)
        n_rows += batch.num_rows
        n_bytes += batch.nbytes
        if n_rows >= _CHUNK_ROWS or n_bytes >= _CHUNK_BYTES:
            yield pa.Table.from_batches(kept)
            kept, n_rows, n_bytes = [], 0, 0
    if n_rows:
        yield pa.Table.from_batches(kept)


def pack(catalog: Subscriptions, templates: list[Template]) -> tuple[int, bytes]:
    """A catalog and those of the templates that it uses, compressed; and the size before."""
    used, shape_ids = np.unique(catalog.shape_ids, return_inverse=True)
    catalog = catalog._replace(shape_ids=shape_ids.astype(np.int32))
    plain = pickle.dumps((catalog, [templates[shape] for shape in used.tolist()]), protocol=5)
    return len(plain), pa.compress(plain, codec=_CODEC, asbytes=True)


def unpack(size: int, packed: pa.Buffer | bytes) -> tuple[Subscriptions, list[Template]]:
    """What ``pack`` was given."""
    plain = pa.decompress(packed, decompressed_size=size, codec=_CODEC)
    # Written by this module's own code in a task of this very job.
    catalog, templates = pickle.loads(plain)  # noqa: S301
    return catalog, templates


def writable(value: Any) -> Any:
    """A value as Arrow can hold it: bytes of a text that are not UTF-8 are escaped."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
