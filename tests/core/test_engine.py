"""The façade: building from any source, ids, matches, top-k, snapshots, threads."""

from __future__ import annotations

import dataclasses
import enum
import json
import logging
import mmap
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from answers import build, expected
from bittern.engine import index as index_module
from bittern.engine.snapshot.folder import read_snapshot, write_snapshot
from bittern.errors import (
    BadSubscription,
    OptionError,
    SnapshotError,
    SubscriptionError,
    UnknownSubscriptionError,
)
from bittern.model.events import maps as maps_module
from bittern.model.ids import Ids
from bittern.model.matches import Matches
from steady import PATIENCE, said_here

SHOP = {
    "cheap": "price < 10",
    "red": "color = 'red' AND price <= 50.5",
    "also red": "price <= 50.5 AND color = 'red'",
    "soon": "due < TIMESTAMP '2026-01-31 08:00:00' OR due IS NULL",
    "name": "name LIKE 'The %' AND name NOT LIKE '%draft%' AND name RLIKE '[0-9]+$'",
    "suffix": "name LIKE '%.pdf' OR kind IN ('a', 'b', 'a')",
    "all": "TRUE",
    "none": "FALSE",
}
EVENTS: list[dict[str, Any]] = [
    {"price": 5, "color": "red"},
    {"price": 50.5, "color": "red", "name": "The Book 2"},
    {"price": 51, "kind": "b"},
    {"name": "The draft 3"},
    {"name": "a.pdf", "color": "blue"},
    {},
]

# ------------------------------------------------------------------ sources

SOURCES: dict[str, Any] = {
    "mapping": SHOP.copy,
    "pairs": lambda: list(SHOP.items()),
    "lists": lambda: [list(pair) for pair in SHOP.items()],
    "generator": lambda: (pair for pair in SHOP.items()),
    "triples": lambda: [(id_, text, None) for id_, text in SHOP.items()],
    "items": SHOP.items,
    "table": lambda: pa.table({"id": list(SHOP), "expression": list(SHOP.values())}),
    "columns in another order": lambda: pa.table(
        {"note": [1] * len(SHOP), "expression": list(SHOP.values()), "id": list(SHOP)}
    ),
    "record batch": lambda: pa.record_batch({"id": list(SHOP), "expression": list(SHOP.values())}),
    "dictionary columns": lambda: pa.table(
        {
            "id": pa.array(list(SHOP)).dictionary_encode(),
            "expression": pa.array(list(SHOP.values())).dictionary_encode(),
        }
    ),
    "chunks": lambda: pa.concat_tables(
        pa.table({"id": [id_], "expression": [text]}) for id_, text in SHOP.items()
    ),
    "data frame": lambda: pd.DataFrame({"id": list(SHOP), "expression": list(SHOP.values())}),
}


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source: str) -> None:
    index = build(SOURCES[source]())
    assert len(index) == len(SHOP)
    assert index.ids.to_pylist() == list(SHOP)
    assert index.texts.to_pylist() == list(SHOP.values())
    assert index.weights is None
    assert index.bad == []
    assert bittern.Matcher(index).match(EVENTS).to_pylist() == expected(SHOP, EVENTS)


def test_weights_come_with_tables_and_triples() -> None:
    triples = [("a", "x = 1", 2.5), ("b", "x = 2", None), ("c", "x = 3", -4), ("d", "x = 4", 0)]
    columns = [list(column) for column in zip(*triples, strict=True)]
    table = pa.table(dict(zip(("id", "expression", "weight"), columns, strict=True)))
    for source in (triples, table, table.to_batches()[0], table.to_pandas()):
        assert build(source).weights.tolist() == [2.5, 1.0, -4.0, 0.0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "source",
    [
        5,
        None,
        "a = 1",
        b"a = 1",
        ["a = 1"],
        [("x",)],
        [("x", "a = 1", 1.0, "more")],
        ["ab"],
        [5],
        pa.table({"id": [1]}),
        pa.table({"expression": ["a = 1"]}),
        pd.DataFrame({"ID": [1], "expression": ["a = 1"]}),
        pa.table({}),
        pa.Table.from_arrays([["x"], ["y"], ["a = 1"]], names=["id", "id", "expression"]),
        pd.DataFrame({"id": [1, "a"], "expression": ["a = 1", "a = 2"]}),
    ],
    ids=lambda source: repr(source)[:40].replace("\n", " "),
)
def test_sources_that_make_no_sense(source: Any) -> None:
    with pytest.raises(OptionError, match="id"):
        bittern.Index.build(source)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittern.engine.given.CHUNK", 10)
    told: list[tuple[str, int, int]] = []
    catalog = {n: f"a = {n % 7} AND b = 'x{n}'" for n in range(35)}
    index = build(catalog, progress=lambda *news: told.append(news))
    assert told == [
        *(("read", done, 35) for done in (10, 20, 30, 35)),
        ("build", 0, 1),
        ("build", 1, 1),
    ]
    events = [{"a": n % 7, "b": f"x{n}"} for n in range(40)]
    assert bittern.Matcher(index).match(events).to_pylist() == expected(catalog, events)
    assert set(index.timings) == {"read", "build"}


# ------------------------------------------------------------------ bad subscriptions

MIXED: list[Any] = [
    ("good", "a = 1"),
    ("cut off", "a = "),
    ("good", "a = 2"),
    ("no text", 5),
    (True, "a = 1"),
    (1.5, "a = 1"),
    (None, "a = 1"),
    (2**63, "a = 1"),
    ("\ud800", "a = 1"),
    ("half a pair", "a = '\ud800'"),
    ("regex", "a RLIKE '('"),
    ("light", "a = 1", float("nan")),
    ("heavy", "a = 1", 10**400),
    ("true", "a = 1", True),
    ("word", "a = 1", "1"),
    ("late", "a = 1 AND AND b = 2"),
    ("cut off", "b = 3"),
    (-(2**63), "a = 1 OR b = 3"),
]


def test_all_bad_subscriptions_are_raised_at_once() -> None:
    with pytest.raises(SubscriptionError) as caught:
        bittern.Index.build(MIXED)
    bad = caught.value.bad
    assert [each.id for each in bad] == [
        row[0] for number, row in enumerate(MIXED) if number not in (0, 16, 17)
    ]
    positions = {each.id: each.position for each in bad if isinstance(each.id, str)}
    assert positions["cut off"] == 4
    assert positions["late"] == 10
    shown = str(caught.value)
    assert "15 subscriptions are not valid" in shown
    assert "... and 5 more" in shown
    assert "'cut off', position 4" in shown


def test_bad_subscriptions_can_be_skipped() -> None:
    index = build(MIXED, on_error="skip")
    assert index.ids.to_pylist() == ["good", "cut off", str(-(2**63))]
    assert len(index.bad) == 15
    assert all(isinstance(each, BadSubscription) and each.message for each in index.bad)
    reasons = {repr(each.id): each.message for each in index.bad}
    assert "given before" in reasons["'good'"]
    assert "text" in reasons["'no text'"]
    assert "weight" in reasons["'heavy'"]
    assert "64 bits" in reasons[repr(2**63)]
    found = bittern.Matcher(index).match([{"a": 1}, {"b": 3}]).to_pylist()
    assert found == [["good", -(2**63)], ["cut off", -(2**63)]]


def test_a_bad_id_may_be_used_again_for_a_good_subscription() -> None:
    index = build([("x", "a ="), ("x", "a = 1")], on_error="skip")
    assert index.ids.to_pylist() == ["x"]
    assert [each.position for each in index.bad] == [3]


def test_other_ways_to_treat_errors_are_refused() -> None:
    with pytest.raises(OptionError, match="on_error"):
        bittern.Index.build({}, on_error="ignore")


def test_one_bad_subscription_among_many_keeps_its_own_position() -> None:
    catalog = [(n, f"a = {n}" if n != 77 else "a = = 1") for n in range(200)]
    with pytest.raises(SubscriptionError) as caught:
        bittern.Index.build(catalog)
    assert caught.value.bad == [BadSubscription(77, 4, caught.value.bad[0].message)]


# ------------------------------------------------------------------ ids

IDS: list[Any] = [
    "",
    "1",
    1,
    -1,
    0,
    "0",
    "été",
    "😀",
    "a\x00b",
    2**63 - 1,
    -(2**63),
    "x" * 5000,
    " ",
    "01",
]


@pytest.mark.parametrize(
    "ids",
    [IDS, [i for i in IDS if isinstance(i, int)], [i for i in IDS if isinstance(i, str)]],
    ids=len,
)
def test_ids_come_back_as_they_were_given(ids: list[Any], tmp_path: Path) -> None:
    index = build([(id_, f"a = {n} OR b = 1") for n, id_ in enumerate(ids)])
    index.save(tmp_path / "s")
    for each in (index, bittern.Index.open(tmp_path / "s")):
        matcher = bittern.Matcher(each)
        assert matcher.match({"b": 1}).to_pylist() == [ids]
        for n, id_ in enumerate(ids):
            [found] = matcher.match({"a": n}).ids(0)
            assert found == id_
            assert type(found) is type(id_)
            assert each.expression(id_) == f"a = {n} OR b = 1"
        for unknown in ("no such", 12345, "-01", True, 1.0, None):
            if unknown not in ids:
                with pytest.raises(UnknownSubscriptionError):
                    each.expression(unknown)  # type: ignore[arg-type]


class Color(str, enum.Enum):  # noqa: UP042  this kind prints as Color.RED
    RED = "red"
    BLUE = "blue"


class Size(int, enum.Enum):
    SMALL = 1


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


GUISES: list[tuple[Any, str | int]] = [
    (Color.RED, "red"),
    (Size.SMALL, 1),
    (Loud("quiet"), "quiet"),
    (np.str_("text"), "text"),
    (np.int64(-7), -7),
    (np.uint8(8), 8),
    (np.uint64(2**63 - 1), 2**63 - 1),
]


def test_ids_in_another_guise_are_the_plain_ids(tmp_path: Path) -> None:
    index = build([(id_, f"a = {n}") for n, (id_, _) in enumerate(GUISES)])
    index.save(tmp_path / "s")
    for each in (index, bittern.Index.open(tmp_path / "s")):
        matches = bittern.Matcher(each).match([{"a": n} for n in range(len(GUISES))])
        assert matches.to_pylist() == [[plain] for _, plain in GUISES]
        assert {type(id_) for [id_] in matches.to_pylist()} == {str, int}
        for n, (id_, plain) in enumerate(GUISES):
            assert each.expression(id_) == each.expression(plain) == f"a = {n}"
        for unknown in ("Color.RED", Color.BLUE, "QUIET", np.int64(5), np.float64(1), np.True_):
            with pytest.raises(UnknownSubscriptionError):
                each.expression(unknown)  # type: ignore[arg-type]


def test_only_ids_are_found() -> None:
    index = build({"None": "a = 1", "1.5": "a = 2", "True": "a = 3"})
    for stranger in (None, 1.5, True, "\ud800"):
        with pytest.raises(UnknownSubscriptionError):
            index.expression(stranger)  # type: ignore[arg-type]


def test_an_id_in_two_guises_is_given_twice() -> None:
    rows = [(Color.RED, "a = 1"), ("red", "a = 2"), (1, "a = 3"), (np.int32(1), "a = 4")]
    index = build(rows, on_error="skip")
    assert [(each.id, type(each.id)) for each in index.bad] == [("red", str), (1, int)]
    assert build([*rows[:1], ("Color.RED", "a = 1")]).ids.to_pylist() == ["red", "Color.RED"]


@pytest.mark.parametrize("id_", [np.float64(1), np.True_, np.uint64(2**63), b"x", (1,), [1]])
def test_what_is_no_id_in_any_guise(id_: Any) -> None:
    with pytest.raises(SubscriptionError, match="id"):
        bittern.Index.build([(id_, "a = 1")])


def test_unknown_ids_are_key_errors() -> None:
    with pytest.raises(KeyError, match="'x'"):
        build({"y": "a = 1"}).expression("x")


@given(st.lists(st.one_of(st.integers(-50, 50), st.text(max_size=3)), unique_by=repr, max_size=12))
def test_ids_are_ordered_numbers_first_then_text_by_bytes(ids: list[Any]) -> None:
    try:
        "".join(str(id_) for id_ in ids).encode()
    except UnicodeEncodeError:
        return
    ranks = Ids.of(ids).ranks().tolist()
    right = sorted(
        ids, key=lambda id_: (isinstance(id_, str), id_ if isinstance(id_, int) else id_.encode())
    )
    assert [
        id_ for _, id_ in sorted(zip(ranks, ids, strict=True), key=lambda pair: pair[0])
    ] == right


@given(
    st.lists(
        st.lists(st.one_of(st.integers(-9, 9), st.sampled_from("ab1é")), max_size=4), min_size=1
    )
)
def test_ids_of_several_indexes_joined(parts: list[list[Any]]) -> None:
    joined = Ids.joined([Ids.of(part) for part in parts])
    right = [id_ for part in parts for id_ in part]
    few = slice(max(0, len(right) - 3), None)  # these do not join the parts
    assert joined.take(np.arange(len(right))[few]) == right[few]
    assert len(joined) == len(right)
    assert joined.take(np.arange(len(right))) == right


# ------------------------------------------------------------------ matches


@pytest.fixture(scope="module")
def shop() -> bittern.Index:
    return build(SHOP)


def test_matches_of_one_event(shop: bittern.Index) -> None:
    matches = bittern.Matcher(shop).match(EVENTS)
    right = expected(SHOP, EVENTS)
    assert len(matches) == len(EVENTS)
    assert matches.counts.tolist() == [len(each) for each in right]
    for event, ids in enumerate(right):
        assert matches.ids(event) == ids
        assert matches.ids(event - len(EVENTS)) == ids
    for event in (len(EVENTS), -len(EVENTS) - 1):
        with pytest.raises(IndexError, match="6 events"):
            matches.ids(event)


def test_matches_as_tables(shop: bittern.Index) -> None:
    right = expected(SHOP, EVENTS)
    matches = bittern.Matcher(shop).match(EVENTS)
    lists = matches.to_arrow()
    assert lists.column_names == ["event", "subscriptions"]
    assert lists["event"].to_pylist() == list(range(len(EVENTS)))
    assert [sorted(each) for each in lists["subscriptions"].to_pylist()] == [
        sorted(each) for each in right
    ]
    flat = matches.to_arrow(flat=True)
    assert flat.column_names == ["event", "subscription"]
    rows = sorted(zip(flat["event"].to_pylist(), flat["subscription"].to_pylist(), strict=True))
    assert rows == sorted((event, id_) for event, ids in enumerate(right) for id_ in ids)
    assert flat["event"].to_pylist() == sorted(flat["event"].to_pylist())


@given(st.lists(st.lists(st.integers(0, 5), unique=True), max_size=6), st.booleans())
def test_lists_of_ids(rows: list[list[int]], ranked: bool) -> None:  # noqa: FBT001
    """One event or all: the same ids, in the index's order unless they are ranked."""
    names: list[str | int] = ["b", 3, "a", "3", -1, ""]
    offsets = np.cumsum([0, *map(len, rows)])
    members = np.array([each for row in rows for each in row], dtype=np.int32)
    matches = Matches(offsets, members, Ids.of(names), ranked=ranked)
    right = [[names[each] for each in (row if ranked else sorted(row))] for row in rows]
    assert matches.to_pylist() == right
    assert [matches.ids(event) for event in range(len(rows))] == right


def test_a_string_too_long_to_compare_is_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = {"is": "a = 'abc'", "long": "a >= 'abcd'", "there": "a IS NOT NULL"}
    maps = pa.array(
        [[("a", text)] for text in ("abc", "abcd", "abc")], pa.map_(pa.string(), pa.string())
    )
    matcher = bittern.Matcher(build(catalog))
    events = pa.table({"m": maps})
    assert matcher.match(events).to_pylist() == [
        ["is", "there"],
        ["long", "there"],
        ["is", "there"],
    ]
    monkeypatch.setattr(maps_module, "MAX_STRING", 3)
    assert matcher.match(events).to_pylist() == [["is", "there"], ["there"], ["is", "there"]]


def test_integer_ids_stay_integers_in_tables() -> None:
    matches = bittern.Matcher(build({7: "a = 1", 9: "a = 1"})).match([{"a": 1}, {}])
    assert sorted(matches.to_arrow(flat=True)["subscription"].to_pylist()) == [7, 9]
    assert matches.to_arrow(flat=True).schema.field("subscription").type == pa.int64()
    mixed = bittern.Matcher(build({7: "a = 1", "9": "a = 1"})).match([{"a": 1}])
    assert sorted(mixed.to_arrow(flat=True)["subscription"].to_pylist()) == ["7", "9"]


# ------------------------------------------------------------------ top k


def top(catalog: list[tuple[Any, str, Any]], events: list[Any], limit: int) -> list[list[Any]]:
    """The k best of each event, by the book: heaviest first, then numbers before text, by value."""

    def rank(row: tuple[Any, str, Any]) -> Any:
        id_, _, weight = row
        text = isinstance(id_, str)
        return -(1.0 if weight is None else weight), text, id_.encode() if text else id_

    matched = expected({id_: text for id_, text, _ in catalog}, events)
    ranked = [row[0] for row in sorted(catalog, key=rank)]
    return [[id_ for id_ in ranked if id_ in ids][:limit] for ids in matched]


IDS_OF_KIND = {
    "strings": st.text("ab1é", max_size=3),
    "integers": st.integers(-20, 20),
    "mixed": st.one_of(st.sampled_from([str(n) for n in range(-3, 12)]), st.integers(-3, 12)),
}


@pytest.mark.parametrize("kind", IDS_OF_KIND)
def test_the_heaviest_matches(kind: str) -> None:
    @given(
        st.lists(
            st.tuples(
                IDS_OF_KIND[kind],
                st.sampled_from(["a = 1", "a >= 1", "b = 1", "TRUE", "a IS NULL"]),
                st.sampled_from([None, 0, 1, 1.0, -2.5, 1e300, -1e300]),
            ),
            unique_by=lambda row: (type(row[0]), row[0]),
            max_size=12,
        ),
        st.booleans(),
        st.integers(1, 6),
    )
    def agrees(catalog: list[tuple[Any, str, Any]], weighted: bool, limit: int) -> None:  # noqa: FBT001
        if not weighted:
            catalog = [(id_, text, None) for id_, text, _ in catalog]
        events = [{"a": 1, "b": 1}, {"a": 1}, {}, {"a": 0}]
        matches = bittern.Matcher(build(catalog)).match(events, limit=limit)
        right = top(catalog, events, limit)
        assert matches.to_pylist() == right
        assert matches.counts.tolist() == [len(each) for each in right]
        lists = matches.to_arrow()["subscriptions"].to_pylist()
        assert lists == [[str(i) for i in each] for each in right] or lists == right

    agrees()


def test_a_limit_beyond_all_matches_orders_them() -> None:
    catalog = [("b", "a = 1", 1.0), ("a", "a = 1", 1.0), ("c", "a = 1", 2.0)]
    matcher = bittern.Matcher(build(catalog))
    for limit in (3, 10**9, 2**63, 10**30):
        matches = matcher.match([{"a": 1}, {}], limit=limit)
        assert matches.to_pylist() == [["c", "a", "b"], []]
        assert matcher.match({}, limit=limit).to_pylist() == [[]]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_limits_that_make_no_sense(shop: bittern.Index, limit: Any) -> None:
    with pytest.raises(OptionError, match="limit"):
        bittern.Matcher(shop).match(EVENTS, limit=limit)


@pytest.mark.parametrize("make", [bittern.Matcher, bittern.LiveMatcher])
@pytest.mark.parametrize("index", [{"s": "price < 5"}, "shop.bittern", 5])
def test_a_matcher_takes_an_index(make: Any, index: Any) -> None:
    with pytest.raises(OptionError, match=r"takes an index, not \w+: make one with Index\.build"):
        make(index)


def test_rejects_survive_a_limit(shop: bittern.Index) -> None:
    matches = bittern.Matcher(shop).match(["{}", "[]", '{"price": 5}'], limit=1)
    assert [row for row, _ in matches.rejects] == [1]
    assert matches.to_pylist() == [["all"], [], ["all"]]


# ------------------------------------------------------------------ statistics


def test_statistics_say_what_there_is(shop: bittern.Index) -> None:
    statistics = shop.statistics()
    assert statistics["subscriptions"] == 8
    assert statistics["classes"] == 7
    assert statistics["strategy"] == "pivot"
    assert statistics["attributes"] == 5
    assert statistics["patterns"] == 2
    predicates = {
        "<": 2,
        "<=": 2,
        "=": 2,
        "IN": 1,
        "IS NULL": 1,
        "LIKE": 2,
        "NOT LIKE": 1,
        "RLIKE": 1,
    }
    assert statistics["predicates"] == predicates
    assert statistics["bytes"] == shop.nbytes == sum(statistics["arrays"].values())
    assert statistics["bytes_per_subscription"] == round(shop.nbytes / 8, 1)
    assert statistics["cells"] == shop.rank.n_cells
    assert statistics["pivot"]["classes"] == 7
    json.dumps(statistics)
    assert repr(shop) == "<bittern.Index of 8 subscriptions>"


# ------------------------------------------------------------------ snapshots


@pytest.fixture(scope="module")
def rich() -> dict[str, str]:
    """Every kind of channel, several pivots, always-candidates, classes with many subscribers."""
    catalog = dict(SHOP)
    for n in range(200):
        catalog[f"n{n}"] = f"price BETWEEN {n} AND {n + 3} AND color IN ('red', 'blue', 'c{n % 5}')"
        catalog[f"m{n}"] = (
            f"NOT (name LIKE '%{n % 9}_%' OR price < {n}.25) OR kind IS NULL AND price = {n}"
        )
    return catalog


@pytest.mark.parametrize("strategy", ["pivot", "scan"])
def test_a_snapshot_matches_as_the_index_did(
    rich: dict[str, str], strategy: str, tmp_path: Path
) -> None:
    rows = [(id_, text, len(text) % 5) for id_, text in rich.items()]
    index = build(rows, strategy=strategy)
    saved = index.save(tmp_path / "s")
    opened = bittern.Index.open(tmp_path / "s", verify=True)
    opened.check()
    assert opened.id == index.id == saved
    assert opened.path == index.path == tmp_path / "s"
    assert opened.statistics() == index.statistics()
    assert opened.texts.to_pylist() == list(rich.values())
    assert opened.ids.to_pylist() == list(rich)
    assert np.array_equal(opened.weights, index.weights)  # type: ignore[arg-type]
    events = [*EVENTS, *({"price": n, "color": "blue", "name": f"a{n}b"} for n in range(40))]
    right = bittern.Matcher(index).match(events)
    found = bittern.Matcher(opened).match(events)
    assert found.to_pylist() == right.to_pylist() == expected(rich, events)
    limited = [bittern.Matcher(each).match(events, limit=3).to_pylist() for each in (index, opened)]
    assert limited[0] == limited[1]
    again = opened.save(tmp_path / "t")
    assert again == saved


def test_saving_is_deterministic(rich: dict[str, str], tmp_path: Path) -> None:
    assert len({build(rich).save(tmp_path / name) for name in "ab"}) == 1


def test_an_empty_index_can_be_saved(tmp_path: Path) -> None:
    build({}).save(tmp_path / "s")
    opened = bittern.Index.open(tmp_path / "s", verify=True)
    opened.check()
    assert bittern.Matcher(opened).match([{"a": 1}, {}]).to_pylist() == [[], []]


def test_opening_maps_the_arrays_and_copies_none_of_them(
    rich: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(rich).save(tmp_path / "s")
    snapshot = read_snapshot(tmp_path / "s")
    assert all(isinstance(array, np.ndarray) for array in snapshot.arrays.values())
    monkeypatch.setattr(index_module, "read_snapshot", lambda _, **__: snapshot)
    opened = bittern.Index.open(tmp_path / "s")
    held = opened._matching_arrays() | opened._other_arrays()
    assert held.keys() == snapshot.arrays.keys()
    own = [(name, array) for name, array in held.items() if not name.startswith("patterns.")]
    for patterns in opened._patterns.values():  # joined to be saved
        own += [(f"patterns.{name}", array) for name, array in patterns.arrays().items()]
    for name, array in own:
        if array.nbytes > 64 and name not in (
            "texts.offsets",
            "ids.offsets",
        ):  # shifted to be saved
            assert not array.flags.writeable, name
            assert np.shares_memory(array, snapshot.arrays[name]), name
    assert opened.texts.buffers()[1].address == snapshot.arrays["texts.offsets"].ctypes.data
    for name, array in snapshot.arrays.items():
        base = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert array.nbytes == 0 or isinstance(getattr(base, "obj", base), mmap.mmap), name


SECOND = """
import json, sys
import bittern
index = bittern.Index.open(sys.argv[1])
index.check()
print("open", flush=True)
for line in sys.stdin:
    print(json.dumps(bittern.Matcher(index).match(json.loads(line)).to_pylist()), flush=True)
"""


def test_a_second_process_matches_at_the_same_time(rich: dict[str, str], tmp_path: Path) -> None:
    index = build(rich)
    index.save(tmp_path / "s")
    opened = bittern.Matcher(bittern.Index.open(tmp_path / "s"))
    command = [sys.executable, "-c", SECOND, str(tmp_path / "s")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as second:
        assert second.stdin is not None
        assert second.stdout is not None
        assert second.stdout.readline() == "open\n"
        for batch in (EVENTS, EVENTS[::-1], []):
            second.stdin.write(json.dumps(batch) + "\n")
            second.stdin.flush()
            assert json.loads(second.stdout.readline()) == opened.match(batch).to_pylist()
        second.stdin.close()
        assert second.wait(PATIENCE) == 0


def test_snapshots_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError):
        bittern.Index.open(tmp_path / "nowhere")
    write_snapshot(tmp_path / "other", {"numbers": np.arange(5)}, {"kind": "measurements"})
    with pytest.raises(SnapshotError, match="other"):
        bittern.Index.open(tmp_path / "other")


def test_every_array_and_every_entry_of_meta_is_needed(
    rich: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(rich).save(tmp_path / "s")
    snapshot = read_snapshot(tmp_path / "s")

    def refuses(**changes: Any) -> None:
        changed = dataclasses.replace(snapshot, **changes)
        monkeypatch.setattr(index_module, "read_snapshot", lambda _, **__: changed)
        with pytest.raises(SnapshotError, match="not an index"):
            bittern.Index.open(tmp_path / "s")

    for name in snapshot.arrays:
        refuses(arrays={key: array for key, array in snapshot.arrays.items() if key != name})
    for name in ("strategy", "parameters", "operators"):
        refuses(meta={key: value for key, value in snapshot.meta.items() if key != name})
    refuses(meta=snapshot.meta | {"strategy": "betree"})


# ------------------------------------------------------------------ threads


@pytest.mark.parametrize("opened", [False, True])
def test_threads_share_a_matcher(rich: dict[str, str], tmp_path: Path, *, opened: bool) -> None:
    index = build(rich)
    if opened:
        index.save(tmp_path / "s")
        index = bittern.Index.open(tmp_path / "s")
    matcher = bittern.Matcher(index)
    batches: list[Any] = [
        [{"price": n, "color": "red", "name": f"The b{n}c {n}"} for n in range(start, start + 12)]
        for start in range(0, 96, 12)
    ]
    batches += [pa.Table.from_pylist(batch) for batch in batches]
    batches += [[json.dumps(event) for event in batch] for batch in batches[:8]]
    right = [expected(rich, batch) for batch in batches[:8]] * 3
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = list(pool.map(lambda batch: matcher.match(batch).to_pylist(), batches))
            assert found == right
            ranked = list(
                pool.map(lambda batch: matcher.match(batch, limit=2).counts.max(), batches)
            )
            assert set(ranked) == {2}


def test_the_first_call_may_come_from_many_threads() -> None:
    """Look-ups that are prepared on first use are prepared once, or alike."""
    catalog = {n: f"a LIKE '%{n}_%' OR b = {n}" for n in range(50)}

    def ask(matcher: bittern.Matcher, n: int) -> Any:
        return matcher.match({"b": n}).ids(0), matcher.index.expression(n)

    for _ in range(5):
        matchers = [bittern.Matcher(bittern.Index.build(catalog))] * len(catalog)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, matchers, catalog))
        assert found == [([n], text) for n, text in catalog.items()]


def test_nothing_is_logged_or_printed(shop: bittern.Index, caplog: Any, capsys: Any) -> None:
    bittern.Matcher(shop).match(EVENTS)
    with caplog.at_level(logging.DEBUG, logger="bittern"):
        bittern.Matcher(bittern.Index.build(SHOP)).match(EVENTS)
    assert said_here(caplog) == []
    assert capsys.readouterr() == ("", "")
