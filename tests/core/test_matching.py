"""Subscription indexes: ``pivot`` finds what ``scan`` finds, and both what the oracle says.

Small catalogs come from hypothesis and are judged by the oracle; large ones come from NumPy and are
judged by evaluating whole columns of events. Every catalog is matched on both views of a batch (the
matrix, and hash tables), with and without a sample of events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, engine, expected
from bittern.errors import OptionError
from bittern.language.printer import print_expression
from bittern.matching import contract as contract_module
from bittern.model.classes.structure import AND, OR, TEST, Nested, Structure
from bittern.model.rank.encoded import encode_pairs, event_entries
from bittern.model.rank.tables import find_cell
from matching_cases import SHAPES, World, limits, pairs, right_pairs, small_events

if TYPE_CHECKING:
    from bittern.language.syntax import Expression

# ------------------------------------------------------------------ both views, small buffers


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "sparse": {"sparse": True},
    "tiny chunks": {"chunk": 1},
    "sparse, tiny chunks and blocks": {"sparse": True, "chunk": 1, "block": 2},
    "blocks of one": {"block": 1},
}


def agree_in_every_way(index: bittern.Index, events: Any, right: list[list[Any]]) -> None:
    matcher = bittern.Matcher(index)
    for way, options in WAYS.items():
        with limits(**options):
            matches = matcher.match(events)
        assert matches.to_pylist() == right, way
        assert matcher.last_statistics["matches"] == sum(map(len, right)), way
        assert matcher.last_statistics["events"] == len(right), way
        assert matcher.last_statistics["candidates"] >= 0, way
    if not index.encoder.read(events).rejects:
        agree_event_by_event(index, events)


def agree_event_by_event(index: bittern.Index, events: Any) -> None:
    """As a delta is matched."""
    read = index.encoder.read(events)
    few = index.subscriptions.match_pairs(read.pairs.copy(), read.n_events, read.bases)
    usual = index.subscriptions.match(index.encoder.encode(events).events)
    pairs = [sorted(zip(*map(list, each[:2]), strict=True)) for each in (few, usual)]
    assert pairs[0] == pairs[1]
    assert few.candidates.tolist() == usual.candidates.tolist()


@given(
    strategies.catalogs(strategies.free_expressions(), max_size=14),
    strategies.batches(strategies.free_events(), max_size=8),
    st.one_of(st.none(), strategies.batches(strategies.free_events(), max_size=5)),
    st.sampled_from(["pivot", "pivot", "scan"]),
)
def test_any_catalog(
    catalog: dict[str, Expression],
    events: list[dict[str, Any]],
    sample: list[dict[str, Any]] | None,
    strategy: str,
) -> None:
    texts = {name: print_expression(tree) for name, tree in catalog.items()}
    index = build(texts, sample=sample, strategy=strategy)
    agree_in_every_way(index, events, expected(texts, events))


@pytest.mark.parametrize("strategy", ["pivot", "scan"])
@pytest.mark.parametrize("sampled", [False, True])
def test_shapes_of_expressions(strategy: str, *, sampled: bool) -> None:
    events = small_events()
    index = build(SHAPES, strategy=strategy, sample=events if sampled else None)
    agree_in_every_way(index, events, expected(SHAPES, events))


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_alone(name: str) -> None:
    """Alone, a shape has the axis to itself: other numbers of channels, cells and postings."""
    catalog = {name: SHAPES[name]}
    events = small_events()
    right = expected(catalog, events)
    agree_in_every_way(build(catalog), events, right)
    agree_in_every_way(build(catalog, sample=[{"a": 1, "b": 2}] * 9), events, right)


def test_what_no_index_can_look_up_is_always_a_candidate() -> None:
    statistics = build(SHAPES).statistics()["pivot"]
    assert statistics["always"] == len(
        ["null", "or null", "both null", "null or null", "the other", "true (and or true)"]
    )
    never = ["false (and false, unknown)", "contradiction", "hidden contradiction"]
    assert statistics["never"] == len(never)


# ------------------------------------------------------------------ classes

SAME = {
    "order": [
        "a = 1 AND b = 2 AND c > 3",
        "c > 3 AND a = 1 AND b = 2",
        "(b = 2) AND (c > 3 AND a = 1)",
    ],
    "spelling": ["a = 1", "`a` = 1", "1 = a", "a == 1", "(a = 1.0)", "a = 1e0"],
    "ranges": [
        "a >= 3 AND a <= 5",
        "a BETWEEN 3 AND 5",
        "a <= 5 AND a >= 3 AND a >= 1",
        "5 >= a AND 3 <= a",
    ],
    "points": ["a = 7", "a BETWEEN 7 AND 7", "a IN (7)", "a >= 7 AND a <= 7"],
    "negations": ["NOT a > 5", "a <= 5", "NOT NOT a <= 5", "NOT (NOT (a <= 5))"],
    "text": ["s LIKE 'abc'", "s = 'abc'", 's = "abc"', "s IN ('abc')"],
    "constants": ["TRUE", "NOT FALSE", "a = 1 OR TRUE"],
    "never": ["FALSE", "a = 1 AND FALSE", "NULL"],
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_condition_is_one_class(name: str) -> None:
    catalog = dict(enumerate(SAME[name]))
    statistics = build(catalog).statistics()
    assert statistics["subscriptions"] == len(catalog)
    assert statistics["classes"] == 1
    events = [{"a": value, "b": 2, "c": 4, "s": "abc"} for value in (None, 1, 3, 4, 5, 6, 7)]
    assert engine(catalog, events) == expected(catalog, events)


def test_different_conditions_are_different_classes() -> None:
    catalog = [
        *(
            "a = 1",
            "a = 2",
            "b = 1",
            "a != 1",
            "a = 1 AND b = 1",
            "a = 1 OR b = 1",
            "a < 1",
            "a <= 1",
        ),
        *(
            "a = '1'",
            "a = TRUE",
            "a = DATE '1970-01-01'",
            "a IS NULL",
            "a IS NOT NULL",
            "TRUE",
            "FALSE",
        ),
        *(
            "a LIKE '1%'",
            "a LIKE '%1'",
            "a LIKE '%1%'",
            "a LIKE '1_'",
            "a RLIKE '1'",
            "a = 1 AND b = 2",
        ),
        *("(a = 1 OR b = 1) AND c = 1", "a = 1 OR b = 1 AND c = 1", "a = 1 AND (b = 1 OR c = 1)"),
    ]
    assert build(dict(enumerate(catalog))).statistics()["classes"] == len(catalog)


def test_subscribers_of_a_class_all_match() -> None:
    catalog = {
        n: f"a = {n % 3} AND b = 1" if n % 2 else f"b = 1 AND a = {n % 3}" for n in range(3000)
    }
    index = build(catalog)
    assert index.statistics()["classes"] == 3
    found = bittern.Matcher(index).match([{"a": 1, "b": 1}, {"a": 5, "b": 1}]).to_pylist()
    assert found == [[n for n in range(3000) if n % 3 == 1], []]


# ------------------------------------------------------------------ large catalogs


@pytest.mark.parametrize(
    ("n_attributes", "n_events", "per_event", "dense"),
    [(300, 200, 20, True), (300, 3000, 12, False), (30, 2000, 25, True), (3000, 300, 5, False)],
)
def test_large_catalogs_of_conjunctions(
    n_attributes: int, n_events: int, per_event: int, *, dense: bool
) -> None:
    world = World(n_attributes + n_events, n_attributes, n_events, per_event)
    texts, holds = zip(
        *(world.conjunction() for _ in range(6_000 if n_attributes < 300 else 10_000)), strict=True
    )
    right = right_pairs(list(holds))
    events = world.events()
    index = build(zip(range(len(texts)), texts, strict=True))
    sampled = build(zip(range(len(texts)), texts, strict=True), sample=events.slice(0, 50))
    with limits(sparse=not dense):
        assert bool(len(index.encoder.encode(events).events.by_event.matrix)) == dense
        assert np.array_equal(pairs(bittern.Matcher(index).match(events)), right)
        assert np.array_equal(pairs(bittern.Matcher(sampled).match(events)), right)
    with limits(sparse=True, chunk=500, block=700):
        assert np.array_equal(pairs(bittern.Matcher(index).match(events)), right)


@pytest.mark.parametrize("seed", range(3))
def test_large_catalogs_of_nested_expressions(seed: int) -> None:
    world = World(seed, [4, 12, 60][seed], 300, [3, 8, 15][seed])
    texts, holds, _ = zip(*(world.nested(4) for _ in range(600)), strict=True)
    right = right_pairs(list(holds))
    events = world.events()
    catalog = list(zip(range(len(texts)), texts, strict=True))
    for options in ({}, {"sample": events}, {"strategy": "scan"}):
        matcher = bittern.Matcher(build(catalog, **options))
        assert np.array_equal(pairs(matcher.match(events)), right)
        with limits(sparse=True, chunk=100):
            assert np.array_equal(pairs(matcher.match(events)), right)


def test_scan_and_pivot_look_at_as_many_candidates_as_they_say() -> None:
    catalog = {n: f"a = {n % 7} AND b = {n}" for n in range(100)}
    events = [{"a": 3, "b": 10}, {"a": 1}, {}]
    scan = bittern.Matcher(build(catalog, strategy="scan"))
    scan.match(events)
    assert scan.last_statistics == {
        "events": 3,
        "candidates": 300,
        "matches": 1,
        "rejects": 0,
        "mistyped": 0,
    }
    pivot = bittern.Matcher(build(catalog))
    pivot.match(events)
    assert pivot.last_statistics["candidates"] < 100


# ------------------------------------------------------------------ many matches, many events


@pytest.fixture(scope="module")
def crowd() -> bittern.Index:
    """100,000 different conditions, all met by ``a = 5``; a tenth of them has a residual test."""
    texts = (f"a > -{n + 1}" if n % 10 else f"a > -{n + 1} AND b = 1" for n in range(100_000))
    return build(enumerate(texts))


def test_one_event_that_matches_everything(crowd: bittern.Index) -> None:
    matches = bittern.Matcher(crowd).match({"a": 5, "b": 1})
    assert matches.counts.tolist() == [100_000]
    assert np.array_equal(np.sort(matches.subscriptions), np.arange(100_000))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_output_grows_as_often_as_needed(crowd: bittern.Index, *, sparse: bool) -> None:
    events = [{"a": 5, "b": 1}, {"a": -50_000}, {"b": 1}, {}, {"a": 5}] * 3
    with limits(sparse=sparse, chunk=1000):
        matches = bittern.Matcher(crowd).match(events)
    partly = 50_000 - 5_000  # a > -50001 and beyond, without those that want b
    assert matches.counts.tolist() == [100_000, partly, 0, 0, 90_000] * 3
    for event in (1, 6, 11):
        own = matches.subscriptions[matches.offsets[event] : matches.offsets[event + 1]]
        assert np.array_equal(np.sort(own), [n for n in range(50_000, 100_000) if n % 10])


def test_always_candidates_that_all_match() -> None:
    catalog = {n: f"a{n} IS NULL OR b = 1" for n in range(3000)}
    index = build(catalog)
    assert index.statistics()["pivot"]["always"] == 3000
    for sparse in (False, True):
        with limits(sparse=sparse):
            matches = bittern.Matcher(index).match([{}, {"b": 1}, {"a7": 1}] * 5)
        assert matches.counts.tolist() == [3000, 3000, 2999] * 5


def test_a_hundred_thousand_events() -> None:
    values = np.arange(100_000) % 1000
    index = build(
        {"low": "a < 10", "seven": "a = 7", "null": "b IS NULL", "mid": "a BETWEEN 500 AND 502"}
    )
    table = pa.table({"a": values, "b": pa.array(values, mask=values % 2 == 0)})
    matches = bittern.Matcher(index).match(table)
    right = (
        (values < 10) + 1 * (values == 7) + (values % 2 == 0) + ((values >= 500) & (values <= 502))
    )
    assert np.array_equal(matches.counts, right)
    assert matches.ids(7) == ["low", "seven"]
    assert matches.ids(99_500) == ["null", "mid"]
    rows = [{"a": int(value)} for value in values[:40_000]]
    assert np.array_equal(
        bittern.Matcher(index).match(rows).counts, right[:40_000] + values[:40_000] % 2
    )


@pytest.mark.parametrize("n_events", [1, 2, 3, 4, 5, 7, 8, 9])
def test_block_boundaries(n_events: int) -> None:
    matcher = bittern.Matcher(build({"a": "a = 1", "null": "b IS NULL", "all": "TRUE"}))
    rows = [{"a": n % 2, "b": n if n % 3 else None} for n in range(n_events)]
    right = [
        [i for i, h in (("a", n % 2), ("null", n % 3 == 0), ("all", True)) if h]
        for n in range(n_events)
    ]
    texts = [f'{{"a": {n % 2}, "b": {n if n % 3 else "null"}}}' for n in range(n_events)]
    with limits(block=4):
        for form in (
            rows,
            tuple(rows),
            texts,
            pa.Table.from_pylist(rows),
            pa.array(texts),
            pa.array(rows),
        ):
            assert matcher.match(form).to_pylist() == right
        rejected = matcher.match([*texts, "{", *texts, "]"])
    assert [row for row, _ in rejected.rejects] == [n_events, 2 * n_events + 1]
    assert rejected.to_pylist() == [*right, [], *right, []]


EMPTY_BATCHES = {
    "list": [],
    "tuple": (),
    "table without columns": pa.table({}),
    "table without rows": pa.table({"a": pa.array([], pa.int64())}),
    "table without chunks": pa.Table.from_batches([], pa.schema([("a", pa.string())])),
    "struct array": pa.array([], pa.struct([("a", pa.int64())])),
    "map array": pa.array([], pa.map_(pa.string(), pa.int64())),
    "text array": pa.array([], pa.string()),
    "chunked array": pa.chunked_array([], pa.string()),
    "null array": pa.nulls(0),
}
EMPTY_CATALOGS = {
    "nothing": {},
    "never": {"x": "FALSE"},
    "always": {"x": "TRUE"},
    "some": {"x": "a = 1", "y": "a LIKE '%b_%'", "z": "a.b IS NULL"},
}


@pytest.mark.parametrize("strategy", ["pivot", "scan"])
@pytest.mark.parametrize("catalog", EMPTY_CATALOGS)
def test_empty_batches_and_indexes(catalog: str, strategy: str) -> None:
    index = build(EMPTY_CATALOGS[catalog], strategy=strategy)
    matcher = bittern.Matcher(index)
    for name, batch in EMPTY_BATCHES.items():
        matches = matcher.match(batch)
        assert matches.to_pylist() == [], name
        assert matches.offsets.tolist() == [0], name
        assert matches.to_arrow().num_rows == matches.to_arrow(flat=True).num_rows == 0, name
        assert len(matcher.match(batch, limit=3)) == 0, name
    events = [{}, {"a": 1}, {"a": "xbx"}, {"a": {"b": 1}}]
    assert matcher.match(events).to_pylist() == expected(EMPTY_CATALOGS[catalog], events)
    assert build({}, sample=events, strategy=strategy).statistics()["classes"] == 0
    for batch in EMPTY_BATCHES.values():
        assert len(build(EMPTY_CATALOGS[catalog], sample=batch)) == len(EMPTY_CATALOGS[catalog])


def test_unknown_strategies_and_structures_are_refused() -> None:
    with pytest.raises(OptionError, match="pivot"):
        bittern.Index.build({}, strategy="magic")
    with pytest.raises(OptionError, match="cei"):
        bittern.Index.build({}, stabbing="none")


# ------------------------------------------------------------------ invariants

FILED = {
    **SHAPES,
    **{f"p{n}": f"a = {n} AND b > {n} AND c < {n} AND (d = 1 OR d = {n})" for n in range(9)},
}


def _first_of_several(arrays: dict[str, npt.NDArray[Any]]) -> int:
    """Where the rows of a class with several pivots begin."""
    return int(arrays["starts"][np.flatnonzero(arrays["several"])[0]])


def _damage_several(column: int, value: int) -> Any:
    def damage(arrays: dict[str, npt.NDArray[Any]]) -> None:
        arrays["rows"][_first_of_several(arrays), column] = value

    return damage


def _damage(field: str, value: int, place: Any = 0) -> Any:
    def damage(arrays: dict[str, npt.NDArray[Any]]) -> None:
        arrays[field][place] = value

    return damage


def _cut(field: str) -> Any:
    def damage(arrays: dict[str, npt.NDArray[Any]]) -> None:
        arrays[field] = arrays[field][:-1].copy()

    return damage


def _swap_postings(arrays: dict[str, npt.NDArray[Any]]) -> None:
    arrays["lows"][:] = arrays["lows"][::-1].copy()


def _inline(column: int, value: int) -> Any:
    """Damage the bounds of a posting that has an inline test."""

    def damage(arrays: dict[str, npt.NDArray[Any]]) -> None:
        tested = np.flatnonzero(arrays["heads"][:, 0] < arrays["heads"][:, 0].max())
        arrays["bounds"][tested[0], column] = value

    return damage


def _extra_column(arrays: dict[str, npt.NDArray[Any]]) -> None:
    free = np.flatnonzero(arrays["heads"][:, 0] == arrays["heads"][:, 0].max())
    arrays["bounds"][free[0], 1] = 1


def _long_pivots(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """All rows of a class are pivots."""
    c = np.flatnonzero(arrays["several"])[0]
    first, last = arrays["starts"][c : c + 2]
    arrays["rows"][first, 3] = last - first


def _nothing_left(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """A posting without rows says that there are some."""
    done = np.flatnonzero(arrays["heads"][:, 1] < 0)[0]
    arrays["heads"][done, 1] = ~arrays["heads"][done, 1]


def _rows_left(arrays: dict[str, npt.NDArray[Any]]) -> None:
    arrays["heads"][0, 1] = ~arrays["heads"][0, 1]


def _always(several: int) -> Any:
    """A class that is filed is an always-candidate, too."""

    def damage(arrays: dict[str, npt.NDArray[Any]]) -> None:
        heads = arrays["heads"][:, 1]
        classes = heads[heads >= 0]
        arrays["always"][0] = classes[arrays["several"][classes] == several][0]

    return damage


FAR = 10**6
DAMAGE = {
    "a class that is not there": (_damage("heads", FAR, (0, 1)), "no class"),
    "rows where there are none": (_nothing_left, "left to test"),
    "no rows where there are some": (_rows_left, "left to test"),
    "an inline channel that is not there": (_damage("heads", FAR, (0, 0)), "channel is not there"),
    "a negative inline channel": (_damage("heads", -1, (0, 0)), "channel is not there"),
    "a negative inline bound": (_inline(0, -1), "inline test is for cells beyond"),
    "an inline bound beyond the axis": (_inline(1, FAR), "inline test is for cells beyond"),
    "bounds of the extra column": (_extra_column, "not for 0"),
    "bounds cut off": (_cut("bounds"), "differ in number"),
    "highs cut off": (_cut("highs"), "differ in number"),
    "postings out of order": (_swap_postings, "not in order"),
    "an empty interval": (_damage("highs", -1), "empty interval"),
    "a posting before the axis": (_damage("lows", -1), "beyond the axis"),
    "a posting beyond the axis": (_damage("highs", FAR), "beyond the axis"),
    "an always-candidate that is not there": (_damage("always", FAR), "always-candidate is no"),
    "a negative always-candidate": (_damage("always", -1), "always-candidate is no"),
    "an always-candidate with a pivot": (_always(0), "has pivots"),
    "an always-candidate with several pivots": (_always(1), "has pivots"),
    "rows that do not start at 0": (_damage("starts", 1), "do not start"),
    "rows that run backwards": (_damage("starts", FAR, 1), "not ascending"),
    "rows cut off": (_cut("rows"), "do not end"),
    "starts cut off": (_cut("starts"), "one start per class"),
    "a channel that is not there": (_damage("rows", FAR, (-1, 0)), "tests a channel"),
    "the extra column in a row": (_damage("rows", -1, (-1, 0)), "tests a channel"),
    "a row before the axis": (_damage("rows", -2, (-1, 1)), "tests cells beyond"),
    "a row beyond the axis": (_damage("rows", FAR, (-1, 2)), "tests cells beyond"),
    "a jump that goes backwards": (_damage("rows", 0, (-1, 3)), "backwards"),
    "a jump out of the program": (_damage("rows", FAR, (-1, 3)), "leaves its program"),
    "neither one pivot nor several": (_damage("several", 2), "neither one"),
    "one of several pivots": (_damage_several(3, 1), "fewer than two"),
    "no program after the pivots": (_long_pivots, "no program"),
    "a pivot without a posting": (_damage_several(2, 0), "disagree"),
    "a part of no class": (_damage("owners", FAR), "belongs to no class"),
    "parts cut off": (_cut("owners"), "one owner per part"),
    "an item that is no posting": (_damage("stabbing.items", FAR, -1), "other intervals"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_to_the_pivot_index_is_noticed(name: str) -> None:
    index = build(FILED)
    arrays = {key: array.copy() for key, array in index.subscriptions.arrays().items()}
    damage, message = DAMAGE[name]
    damage(arrays)
    damaged = type(index.subscriptions).from_arrays(arrays, index.subscriptions.parameters)
    with pytest.raises(AssertionError, match=message):
        damaged.check(index.rank.n_channels, index.rank.n_cells)


def test_damage_to_the_stabbing_index_is_noticed() -> None:
    index = build(FILED)
    filed, arrays = index.subscriptions, index.subscriptions.arrays()
    for key in [key for key in arrays if key.startswith("stabbing.") and len(arrays[key])]:
        broken = arrays | {key: arrays[key][:-1].copy()}
        with pytest.raises((AssertionError, ValueError, bittern.errors.BitternError)):
            type(filed).from_arrays(broken, filed.parameters).check(
                index.rank.n_channels, index.rank.n_cells
            )


def test_the_same_pivot_twice_is_noticed() -> None:
    index = build({"x": "(a = 1 OR b = 2) AND (c = 3 OR d = 4)"})
    arrays = {key: array.copy() for key, array in index.subscriptions.arrays().items()}
    for field in ("lows", "highs"):
        arrays[field][1] = arrays[field][0]
    arrays["rows"][1, :3] = arrays["rows"][0, :3]
    damaged = type(index.subscriptions).from_arrays(arrays, index.subscriptions.parameters)
    with pytest.raises(AssertionError, match="same pivot twice"):
        damaged.check(index.rank.n_channels, index.rank.n_cells)


def test_a_posting_that_is_never_found_is_noticed() -> None:
    index = build({"x": "a = 1", "y": "a = 2"})
    arrays = {key: array.copy() for key, array in index.subscriptions.arrays().items()}
    arrays["stabbing.items"][:] = 0
    damaged = type(index.subscriptions).from_arrays(arrays, index.subscriptions.parameters)
    with pytest.raises(AssertionError, match="other intervals"):
        damaged.check(index.rank.n_channels, index.rank.n_cells)


SCAN_DAMAGE = {
    "starts cut off": (_cut("starts"), "do not end"),
    "rows cut off": (_cut("rows"), "do not end"),
    "no channel": (_damage("rows", -1, (0, 0)), "tests a channel"),
    "a channel that is not there": (_damage("rows", FAR, (0, 0)), "tests a channel"),
    "cells that are not there": (_damage("rows", FAR, (0, 1)), "tests cells beyond"),
    "a jump that goes backwards": (_damage("rows", 0, (0, 3)), "backwards"),
    "a jump out of the program": (_damage("rows", FAR, (0, 3)), "leaves its program"),
}


@pytest.mark.parametrize("name", SCAN_DAMAGE)
def test_damage_to_the_scan_index_is_noticed(name: str) -> None:
    index = build(FILED, strategy="scan")
    arrays = {key: array.copy() for key, array in index.subscriptions.arrays().items()}
    damage, message = SCAN_DAMAGE[name]
    damage(arrays)
    with pytest.raises(AssertionError, match=message):
        type(index.subscriptions).from_arrays(arrays, {}).check(
            index.rank.n_channels, index.rank.n_cells
        )


@pytest.mark.parametrize("strategy", ["pivot", "scan"])
def test_more_tests_than_can_be_numbered_are_refused(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = {n: f"a = {n} AND b = {n}" for n in range(4)}
    monkeypatch.setattr(contract_module, "MOST_ROWS", 8)
    assert len(build(catalog, strategy=strategy)) == 4
    monkeypatch.setattr(contract_module, "MOST_ROWS", 7)
    with pytest.raises(OptionError, match=r"have 8 tests; .* at most 7: split"):
        bittern.Index.build(catalog, strategy=strategy)


def test_more_rows_than_can_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract_module, "MOST_ROWS", 5)
    with pytest.raises(OptionError, match="have 6 rows"):  # two pivots and four tests
        bittern.Index.build({"x": "(a = 1 OR b = 2) AND (c = 3 OR d = 4)"})


def test_damage_to_subscribers_is_noticed() -> None:
    index = build({1: "a = 1", 2: "a = 1", 3: "a = 2"})
    subscribers = index.subscribers
    for starts, members in [
        (subscribers.starts[::-1].copy(), subscribers.subscribers),
        (subscribers.starts, subscribers.subscribers * 0),
        (subscribers.starts[:-1].copy(), subscribers.subscribers),
        (np.insert(subscribers.starts, 1, 0), subscribers.subscribers),
        (subscribers.starts[:0], subscribers.subscribers),
    ]:
        index.subscribers = type(subscribers)(starts, members)
        with pytest.raises(AssertionError):
            index.check()
    index.subscribers = subscribers
    index.check()


# ------------------------------------------------------------------ structures and encoded batches


def nested_structures() -> st.SearchStrategy[Nested]:
    def several(inner: st.SearchStrategy[Nested]) -> st.SearchStrategy[Nested]:
        return st.tuples(st.sampled_from([AND, OR]), st.lists(inner, min_size=1, max_size=4))

    return st.recursive(st.just(TEST), several, max_leaves=12)


def value_of(nested: Nested, outcomes: Iterator[bool]) -> bool:
    if isinstance(nested, int):
        return next(outcomes)
    values = [value_of(child, outcomes) for child in nested[1]]
    return all(values) if nested[0] == AND else any(values)


@given(nested_structures(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_running_a_program_evaluates_the_structure(nested: Nested, outcomes: list[bool]) -> None:
    jumps = Structure.of(nested).jumps.tolist()
    at = 0
    while at < len(jumps):
        at = jumps[at] >> 1 if outcomes[at] == bool(jumps[at] & 1) else at + 1
    assert (at == len(jumps)) == value_of(nested, iter(outcomes))


@given(st.data())
def test_both_views_hold_the_same_pairs(data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.integers(1, 400), min_size=1, max_size=9))
    bases = np.concatenate(([0], np.cumsum(widths))).astype(np.int32)
    n_events = data.draw(st.integers(0, 40))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    matrix = np.array(
        [
            [
                random.integers(bases[c], bases[c + 1]) if random.random() < 0.5 else -1
                for c in range(len(widths))
            ]
            for _ in range(n_events)
        ]
    ).reshape(n_events, len(widths))
    rows, channels = np.nonzero(matrix >= 0)
    cells = matrix[rows, channels]
    packed = random.permutation(cells.astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64))
    dense = encode_pairs(packed.copy(), n_events, bases)
    with limits(sparse=True):
        sparse = encode_pairs(packed.copy(), n_events, bases)
    assert dense.cells.tolist() == sparse.cells.tolist() == np.unique(cells).tolist()
    for events in (dense, sparse):
        for cell, start, stop in zip(
            events.cells, events.offsets, events.offsets[1:], strict=False
        ):
            assert sorted(events.rows[start:stop]) == sorted(rows[cells == cell])
    width = dense.by_event.width
    assert width == len(widths) + 1
    seen = dense.by_event.matrix.reshape(n_events, width)
    assert np.array_equal(seen[:, :-1], matrix)
    assert (seen[:, -1] == 0).all()
    table = sparse.by_event
    for event in range(n_events if len(table.starts) else 0):
        for c in range(len(widths)):
            assert find_cell(table.starts, table.table, table.entries, event, c) == matrix[event, c]
    for events in (dense, sparse):
        offsets, entries = event_entries(events, bases)
        for event in range(n_events):
            assert entries[offsets[event] : offsets[event + 1]].tolist() == [
                c << 32 | int(matrix[event, c]) for c in range(len(widths)) if matrix[event, c] >= 0
            ]
