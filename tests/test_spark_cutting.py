"""Cutting a catalog into parts, without Spark: each subscription in one part, no match missed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import strategies
from bittern import Matcher
from bittern.engine.catalog import read_catalog
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.spark.cutting import POINTS, combined, cut
from bittern.spark.pivots import Chunk
from bittern.spark.regions import build_router, presence, united
from bittern.spark.shards import REGION_BITS
import numpy as np


def chunks_of(catalog, n_chunks, sample=None):
    """The catalog (id to text) in chunks, each with its ids."""
    items = list(catalog.items())
    out = []
    for i in range(n_chunks):
        own = items[i::n_chunks]
        shapes = Shapes()
        read = read_catalog(own, shapes, on_error="raise", progress=None)
        out.append((read.ids, Chunk(read, shapes.templates, sample)))
    return out


class Parts:
    """What the Spark jobs do, in this process."""

    def __init__(self, catalog, n_shards, *, n_chunks=1, sample=None, marks=64, width=1e-9):
        chunks = chunks_of(catalog, n_chunks, sample)
        points = combined(pa.concat_tables(chunk.points(width) for _, chunk in chunks), width)
        known = None if sample is None else lambda names: presence(names, sample)
        self.points = points
        self.cut = cut(points, n_shards, known, marks=marks)
        self.part_of = {}
        gathered = [[] for _ in range(n_shards)]
        for ids, chunk in chunks:
            assigned = chunk.assign(self.cut)
            self.part_of |= dict(zip(ids, assigned.parts.tolist(), strict=True))
            for part, first, last in zip(assigned.region_parts, *assigned.regions, strict=True):
                if part < n_shards:
                    gathered[part].append((first, last))
        self.regions = [
            united(*(np.array(own, dtype=np.int64).reshape(-1, 2).T)) for own in gathered
        ]
        self.router = build_router(self.cut.ruler, self.regions, sample)
        self.n_shards = n_shards

    def visited(self, events):
        return [
            {region >> REGION_BITS for region in regions}
            for regions in Matcher(self.router).match(events).to_pylist()
        ]

    def sizes(self):
        return np.bincount(list(self.part_of.values()), minlength=self.n_shards + 1)


def check(trees, events, batch, **options):
    texts = {id_: print_expression(tree) for id_, tree in trees.items()}
    parts = Parts(texts, **options)
    assert parts.part_of.keys() == texts.keys()
    assert all(0 <= part <= parts.n_shards for part in parts.part_of.values())
    for event, visited in zip(events, parts.visited(batch), strict=True):
        for id_, tree in trees.items():
            part = parts.part_of[id_]
            if part < parts.n_shards and oracle.matches(tree, event):
                assert part in visited, (texts[id_], event, part)
    return parts


options = st.fixed_dictionaries(
    {
        "n_shards": st.integers(1, 7),
        "n_chunks": st.integers(1, 3),
        "marks": st.sampled_from([1, 3, 64]),
        "width": st.sampled_from([1e-9, 0.5, 2.0, 1e9]),
    }
)


@given(
    strategies.catalogs(strategies.free_expressions(), 20),
    strategies.batches(strategies.free_events()),
    options,
)
def test_no_match_is_missed(trees, events, options):
    check(trees, events, events, **options)


@given(
    strategies.catalogs(strategies.typed_expressions(), 20),
    strategies.batches(strategies.typed_events()),
    options,
    st.booleans(),
)
def test_no_match_is_missed_with_a_sample(trees, events, options, sampled):
    batch = strategies.as_arrow(events)
    check(trees, events, batch, sample=batch if sampled else None, **options)
