"""Cutting a catalog into parts, without Spark: each subscription in one part, no match missed."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import workloads
from hypothesis import given
from hypothesis import strategies as st

import oracle
import strategies
from bittern import Index, Matcher
from bittern.engine.sharding.chunks import Chunk
from bittern.engine.sharding.cutting import POINTS, combined, cut, stood_for, thinned
from bittern.engine.sharding.regions import (
    EVERY_EVENT,
    NO_EVENT,
    REGION_BITS,
    CellRuns,
    Ruler,
    RulerKey,
    build_router,
    compared,
    literal,
    presence,
    text_value,
    united,
    value_text,
    visits,
    witnesses,
)
from bittern.engine.subscriptions import read_subscriptions
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.language.syntax import Compare
from bittern.model.numbers import exact
from bittern.model.rank.space import ANY, BOOLEAN, NUMBER, STRING, TIME


def chunks_of(catalog, n_chunks, sample):
    """The catalog (id to text) in chunks, each with its ids."""
    items = list(catalog.items())
    for i in range(n_chunks):
        shapes = Shapes()
        read = read_subscriptions(items[i::n_chunks], shapes, on_error="raise", progress=None)
        yield read.ids, Chunk(read, shapes.templates, sample)


class Parts:
    """A catalog in parts, as the tasks make them; ``cut_of`` may be another catalog's parts."""

    def __init__(
        self, catalog, n_shards, *, n_chunks=1, sample=None, marks=64, width=1e-9, cut_of=None
    ):
        chunks = list(chunks_of(catalog, n_chunks, sample))
        self.points = pa.concat_tables(chunk.points(width) for _, chunk in chunks)
        few = combined(self.points, width)
        known = None if sample is None else lambda names: presence(names, sample)
        self.cut = cut_of.cut if cut_of else cut(few, n_shards, known, marks=marks)
        self.n_shards = n_shards
        self.part_of = {}
        runs = [(part, [], []) for part in range(n_shards)]
        for ids, chunk in chunks:
            assigned = chunk.assign(self.cut)
            assert len(assigned.parts) == len(ids)
            self.part_of |= dict(zip(ids, assigned.parts.tolist(), strict=True))
            for part, firsts, lasts in runs:
                own = assigned.region_parts == part
                firsts.append(assigned.regions.firsts[own])
                lasts.append(assigned.regions.lasts[own])
        regions = [
            united(np.concatenate(firsts), np.concatenate(lasts)) for _, firsts, lasts in runs
        ]
        self.router = build_router(self.cut.ruler, regions, sample)

    def visited(self, events):
        return [
            {region >> REGION_BITS for region in regions}
            for regions in Matcher(self.router).match(events).to_pylist()
        ]

    def sizes(self):
        """Subscriptions of each shard, and of home."""
        sizes = np.bincount(list(self.part_of.values()), minlength=self.n_shards + 1)
        return sizes[:-1], int(sizes[-1])


def check(trees, events, batch, **options):
    """Every subscription is in one part, and events that match it visit that part."""
    texts = {id_: print_expression(tree) for id_, tree in trees.items()}
    parts = Parts(texts, **options)
    assert parts.part_of.keys() == texts.keys()
    assert all(0 <= part <= parts.n_shards for part in parts.part_of.values())
    for event, visited in zip(events, parts.visited(batch), strict=True):
        for id_, tree in trees.items():
            part = parts.part_of[id_]
            if part < parts.n_shards and part not in visited:
                assert not oracle.matches(tree, event), (texts[id_], event, part)
    return parts


def check_texts(texts, events, n_shards, **options):
    trees = {i: parse(text) for i, text in enumerate(texts)}
    return check(trees, events, events, n_shards=n_shards, **options)


OPTIONS = st.fixed_dictionaries(
    {
        "n_shards": st.integers(1, 7),
        "n_chunks": st.integers(1, 3),
        "marks": st.sampled_from([1, 3, 64]),
        "width": st.sampled_from([1e-9, 0.5, 2.0, 1e9]),
    }
)

# ------------------------------------------------------------------ no match is missed


@given(
    strategies.catalogs(strategies.free_expressions(), 20),
    strategies.batches(strategies.free_events()),
    OPTIONS,
)
def test_no_match_is_missed(trees, events, options):
    check(trees, events, events, **options)


@given(
    strategies.catalogs(strategies.typed_expressions(), 20),
    strategies.batches(strategies.typed_events()),
    OPTIONS,
    st.booleans(),
)
def test_no_match_is_missed_with_a_sample(trees, events, options, sampled):
    batch = strategies.as_arrow(events)
    check(trees, events, batch, sample=batch if sampled and events else None, **options)


@pytest.mark.parametrize("kind", ["number", "string", "time", "boolean"])
def test_no_match_is_missed_where_constants_meet(kind):
    leaf = strategies.predicates_on("a", strategies.KINDS[kind], text=kind == "string")
    trees = dict(enumerate(strategies.sample(leaf, 300)))
    values = strategies.sample(strategies.KINDS[kind], 100)
    if kind == "number":
        values += [*strategies.UNWRITABLE_FLOATS, -0.0, *strategies.EDGE_FLOATS]
        values += [*strategies.LONG_DECIMALS, *strategies.LARGE_INTEGERS]
    events = [{"a": value} for value in values] + [{"a": None}, {}, {"a": [1]}, {"a": "?"}]
    for n_shards, n_chunks, marks in ((2, 1, 2), (5, 3, 16), (7, 2, 1000)):
        parts = check(trees, events, events, n_shards=n_shards, n_chunks=n_chunks, marks=marks)
        assert len(set(parts.part_of.values())) > 1


@pytest.mark.parametrize("n_chunks", [1, 2, 3, 5])
def test_constants_that_share_a_double_are_told_apart(n_chunks):
    integers = [
        sign * (2**exponent + i) for sign in (1, -1) for exponent in (53, 62) for i in range(-4, 5)
    ]
    decimals = [Decimal("0.1") + i * Decimal("1e-18") for i in range(-9, 10)]
    values = [value for pair in zip(integers, decimals * 2, strict=False) for value in pair]
    texts = [f"a = {value}" for value in values] + [f"a > {value}" for value in values]
    for marks in (1, 3, 9, 1000):
        check_texts(texts, [{"a": value} for value in values], 7, n_chunks=n_chunks, marks=marks)


@given(
    strategies.catalogs(strategies.free_expressions(), 8),
    strategies.catalogs(strategies.free_expressions(), 12),
    strategies.batches(strategies.free_events()),
)
def test_a_cut_serves_any_catalog(others, trees, events):
    texts = {id_: print_expression(tree) for id_, tree in others.items()}
    check(trees, events, events, n_shards=3, cut_of=Parts(texts, 3))


# ------------------------------------------------------------------ what is cut, and how evenly


def even(parts, least=0.8):
    sizes, _ = parts.sizes()
    return sizes.min() >= least * sizes.mean() and sizes.max() <= sizes.mean() / least


@pytest.mark.parametrize("n_shards", range(1, 8))
def test_one_attribute_is_cut_at_its_constants(n_shards):
    texts = [f"a = {i % 700}" for i in range(1400)]
    parts = check_texts(texts, [{"a": i} for i in range(-1, 701, 7)], n_shards, n_chunks=2)
    assert even(parts)
    assert all(len(visited) <= 1 for visited in parts.visited([{"a": i} for i in range(700)]))


def test_long_common_prefixes_are_cut_all_the_same():
    stem = "https://example.org/" + "very/" * 100
    texts = [f"url LIKE '{stem}{i:04}%'" for i in range(600)]
    parts = check_texts(
        texts, [{"url": f"{stem}{i:04}/x"} for i in range(0, 600, 99)], 4, n_chunks=2
    )
    assert even(parts)
    visits_ = [len(each) for each in parts.visited([{"url": f"{stem}{i:04}"} for i in range(600)])]
    assert np.mean(visits_) < 1.1
    # Beyond what a mark holds, they are not told apart, and still none is lost.
    longer = "x" * 2000
    check_texts([f"url = '{longer}{i}'" for i in range(50)], [{"url": f"{longer}7"}], 3)


def test_predicates_without_a_low_end_are_cut_by_their_high_end():
    texts = [f"price < {i}" for i in range(1000)]
    parts = check_texts(texts, [{"price": i + 0.5} for i in range(0, 1000, 50)], 4)
    assert even(parts)
    visited = [len(each) for each in parts.visited([{"price": 990}, {"price": 5}])]
    assert visited == [1, 4]


def test_one_constant_is_dealt_out():
    events = [{"a": 5}, {"a": 6}, {}]
    parts = check_texts(["a = 5"] * 1000, events, 4, n_chunks=3)
    assert even(parts)
    assert parts.visited(events) == [{0, 1, 2, 3}, set(), set()]


def test_what_the_ruler_does_not_cut_is_dealt_out():
    texts = [f"name LIKE '%{i}'" for i in range(300)] + [f"name LIKE '%{i}%'" for i in range(300)]
    parts = check_texts(texts, [{"name": "17"}, {"name": 17}, {"other": "17"}], 3)
    assert even(parts)


def test_always_candidates_are_at_home_unless_they_are_too_many():
    rare = ["a IS NULL"] * 5 + [f"b = {i}" for i in range(100)]
    parts = check_texts(rare, [{"a": 1, "b": 3}, {}], 3)
    assert {parts.part_of[i] for i in range(5)} == {3}
    only = ["a IS NULL", "TRUE", "NOT (b = 1) OR b IS NULL"] * 50
    parts = check_texts(only, [{"a": 1, "b": 3}, {}], 3)
    assert even(parts)
    assert parts.visited([{}]) == [{0, 1, 2}]


def test_what_never_holds_is_somewhere_and_draws_no_event():
    texts = ["FALSE", "a = 1 AND a = 2", "a < NULL"] * 30
    parts = check_texts(texts, [{"a": 1}], 3)
    assert len(parts.part_of) == 90
    assert parts.visited([{"a": 1}, {}]) == [set(), set()]


def test_an_empty_catalog_has_no_regions():
    parts = check_texts([], [{"a": 1}], 4)
    assert len(parts.router) == 0
    assert parts.cut.traffic == (0.0,) * 4


def test_small_and_hot_attributes_are_at_home():
    texts = [f"k{i % 5} = {i}" for i in range(2000)] + ["status = 'new'"]
    sample = pa.table({"status": ["old"] * 99 + ["new"], "k3": [None] * 50 + [3] * 50})
    parts = Parts(dict(enumerate(texts)), 4, sample=sample)
    assert parts.part_of[2000] == 4
    assert parts.sizes()[1] == 1  # k3 is as hot, and not small
    assert visits(parts.router, 4, sample).tolist().count(50) == 1


def test_hot_attributes_share_a_shard():
    texts = [f"k{i % 40} = {i}" for i in range(4000)]
    hot = [f"k{i}" for i in range(10)]
    sample = pa.table({name: np.arange(100) for name in hot})
    parts = Parts(dict(enumerate(texts)), 4, sample=sample)
    assert even(parts)
    events = [dict.fromkeys(hot, i) for i in range(4000)]
    assert visits(parts.router, 4, events).astype(bool).sum() == 1


def test_shop_is_cut_evenly():
    workload = workloads.get("shop", "small")
    table = workload.subscriptions()
    catalog = dict(zip(table["id"].to_pylist(), table["expression"].to_pylist(), strict=True))
    for n_shards, sample in ((3, None), (8, workload.sample(1000))):
        parts = Parts(catalog, n_shards, n_chunks=2, sample=sample, marks=8192, width=0.5)
        sizes, _ = parts.sizes()
        assert len(parts.part_of) == len(catalog)
        assert sizes.max() <= 1.5 * sizes.mean()


def test_the_order_of_chunks_changes_nothing():
    texts = {i: f"a{i % 5} = {i} OR b >= {i % 70}" for i in range(300)}
    points = Parts(texts, 3, n_chunks=4).points
    shuffled = points.take(np.random.default_rng(1).permutation(len(points)))
    first, again = cut(combined(points, 2.0), 3), cut(combined(shuffled, 2.0), 3)
    assert first.ruler == again.ruler
    assert np.array_equal(first.parts, again.parts)
    assert np.array_equal(first.starts, again.starts)


def test_few_points_tell_what_many_did():
    texts = {i: f"a = {i * i}" for i in range(2000)} | {-1 - i: "a = 77" for i in range(500)}
    points = Parts(texts, 3, n_chunks=4).points
    few = combined(points, 25.0)
    assert len(few) <= 2500 / 25 + 1
    for name in ("load", "bytes"):
        total = sum(points[name].to_pylist())
        assert math.isclose(sum(few[name].to_pylist()), total)
    heavy = max(few.to_pylist(), key=lambda point: point["load"])
    assert heavy["value"] == "77"
    assert few.schema == POINTS


# ------------------------------------------------------------------ regions


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6))))
def test_united_is_the_union(pairs):
    firsts = np.array([first for first, _ in pairs], dtype=np.int64)
    lasts = np.array([first + length for first, length in pairs], dtype=np.int64)
    runs = united(firsts, lasts)
    cells = [cell for a, b in zip(*runs, strict=True) for cell in range(a, b + 1)]
    wanted = {cell for first, n in pairs for cell in range(first, first + n + 1)}
    assert cells == sorted(wanted)
    assert (runs.firsts[1:] > runs.lasts[:-1] + 1).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 10))), st.floats(0.1, 20))
def test_thinned_keeps_the_sums_and_the_heavy(points, width):
    points.sort(key=lambda point: point[0])
    groups = np.array([group for group, _ in points], dtype=np.int64)
    loads = np.array([load for _, load in points])
    kept = thinned(groups, loads, width)
    assert set(groups[kept]) == set(groups)
    assert set(np.flatnonzero(loads > width)) <= set(kept)
    assert math.isclose(stood_for(loads, kept).sum(), loads.sum(), abs_tol=1e-9)
    assert len(kept) <= loads.sum() / width + len(set(groups))


def test_regions_read_as_expressions():
    ruler = Ruler(
        (
            EVERY_EVENT,
            NO_EVENT,
            RulerKey("color", STRING),
            RulerKey("price", NUMBER),
            RulerKey("size", ANY),
        ),
        ((), (), ("red",), (Decimal("9.5"), 20), ()),
    )
    assert ruler.bases.tolist() == [0, 1, 2, 5, 10, 11]

    def texts(*runs):
        firsts, lasts = zip(*runs, strict=True)
        return ruler.expressions(CellRuns(np.array(firsts), np.array(lasts)))

    assert texts((6, 8)) == ["price >= 9.5 AND price <= 20"]
    assert texts((7, 7)) == ["price > 9.5 AND price < 20"]
    assert texts((5, 5), (9, 9)) == ["price < 9.5", "price > 20"]
    assert texts((3, 3), (10, 10)) == ["color = 'red'", "size IS NOT NULL"]
    assert texts((2, 9)) == ["color IS NOT NULL", "price IS NOT NULL"]
    assert texts((4, 6)) == ["color > 'red'", "price <= 9.5"]
    assert texts((0, 0), (3, 3)) == ["TRUE"]


KINDS = {
    "a = 1 OR a BETWEEN 3 AND 5": [("a", NUMBER)],
    "a > TIMESTAMP '2026-01-01 00:00:00' OR a = TRUE": [("a", TIME), ("a", BOOLEAN)],
    "a LIKE '%x'": [("a", STRING)],
    "a LIKE 'x_y%z' AND a IS NOT NULL": [("a", STRING), ("a", ANY)],
    "`a.b`.`c d` IS NULL OR é RLIKE 'x+'": [("`a.b`.c d", ANY), ("é", STRING)],
    "TRUE": [],
}


@pytest.mark.parametrize("text", KINDS)
def test_witnesses_make_attributes_and_kinds_known_at_no_cost(text):
    index = Index.build({1: text})
    keys = compared(index)
    assert keys == KINDS[text]
    told = Index.build(dict(enumerate(witnesses(keys))))
    names = index.rank.attribute_names()
    assert set(told.rank.attribute_names()) == set(names)
    for name in names:
        assert told.encoder.kinds.mask(name) == index.encoder.kinds.mask(name)
    assert told.subscriptions.statistics()["never"] == len(told)


def test_a_router_with_witnesses_routes_as_without():
    texts = {i: f"a = {i} AND b = 'x' OR c > {i}" for i in range(30)}
    parts = Parts(texts, 3)
    keys = compared(Index.build(texts | {99: "z IS NULL"}))
    runs = [CellRuns(np.array([base]), np.array([base + 3])) for base in parts.cut.ruler.bases[2:4]]
    events = [{"a": a, "c": c, "b": "x"} for a in range(-1, 31, 3) for c in (None, 1.5, 40)]
    plain, told = (
        Matcher(build_router(parts.cut.ruler, runs, None, known)) for known in ((), keys)
    )
    assert told.match(events).to_pylist() == plain.match(events).to_pylist()
    assert any(plain.match(events).to_pylist())
    assert told.last_statistics["candidates"] == plain.last_statistics["candidates"]
    assert visits(told.index, 2, events).tolist() == visits(plain.index, 2, events).tolist()
    assert set(told.index.rank.attribute_names()) == {"a", "b", "c", "z"}


@given(
    st.one_of(
        strategies.KINDS["number"].map(lambda value: (NUMBER, exact(value))),
        strategies.strings.map(lambda value: (STRING, value)),
        st.booleans().map(lambda value: (BOOLEAN, int(value))),
        strategies.timestamps.map(
            lambda value: (TIME, (value - strategies.TIMESTAMPS[3]) // strategies._TICK)
        ),
    )
)
def test_a_mark_reads_back_exactly(mark):
    kind, value = mark
    assert text_value(kind, value_text(value)) == value
    written = literal(kind, value)
    read = parse(print_expression(Compare("a", "=", written))).operand
    assert read == written
    if kind == NUMBER:
        assert exact(read.value) == value
