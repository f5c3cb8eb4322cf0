"""Catalogs read in parts and joined: as if one process had read everything in that order."""

from __future__ import annotations

import inspect
import itertools
import pickle
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import expected
from bittern.engine.subscriptions import (
    Subscriptions,
    join_subscriptions,
    read_subscriptions,
    select_rows,
)
from bittern.errors import BadSubscription
from bittern.language.limits import MAX_DEPTH
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.language.templates import Template

Row = tuple[Any, ...]
REPEATED = "this id was given before; ids are unique"


def read(rows: Any) -> tuple[Subscriptions, list[Template]]:
    shapes = Shapes()
    return read_subscriptions(rows, shapes, on_error="skip", progress=None), shapes.templates


def joined(*parts: Any) -> tuple[Subscriptions, list[Template]]:
    return join_subscriptions(read(part) for part in parts)


def index(catalog: Subscriptions, templates: list[Template]) -> bittern.Index:
    built = bittern.Index.of_subscriptions(catalog, templates)
    built.check()
    return built


def saved_id(built: bittern.Index, folder: Any) -> str:
    return built.save(folder / f"index{len(list(folder.iterdir()))}")


ROWS: list[Row] = [
    (1, "a < 7"),
    (2, "b = 'x' AND a < 9", 2.5),
    (3, "a < 9 OR c LIKE 'x%'"),
    (4, "b = 'x' AND a < 7"),
    (5, "NOT (a IN (1, 2) AND d IS NULL)"),
    (6, "c LIKE '%x' AND c RLIKE 'y+'"),
    (7, "e = DATE '2024-01-01'"),
    (8, "TRUE"),
    (9, "1"),
    (10, "a < 9"),
]


@pytest.mark.parametrize("cuts", [[], [0], [5], [0, 0, 3, 3, 10], [3, 6], list(range(11))])
def test_parts_give_the_very_index_of_the_whole(cuts: list[int], tmp_path) -> None:
    ends = [0, *cuts, len(ROWS)]
    catalog, templates = joined(*[ROWS[a:b] for a, b in itertools.pairwise(ends)])
    whole = bittern.Index.build(ROWS, on_error="skip")
    assert catalog.ids == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert catalog.bad == whole.bad
    assert saved_id(index(catalog, templates), tmp_path) == saved_id(whole, tmp_path)


def test_equal_templates_and_parameters_are_one() -> None:
    catalog, templates = joined([(1, "a < 7"), (2, "b = 'x'")], [(3, "b = 'x'"), (4, "a < 7")])
    assert len(templates) == 2
    assert catalog.shape_ids.tolist() == [0, 1, 1, 0]
    assert catalog.parameters.dictionary.to_pylist() == ["a", "7", "b", "'x'"]


@pytest.mark.parametrize("parts", [[], [[]], [[], []], [[(1, "oops oops")]]])
def test_nothing_is_a_catalog_too(parts: list[list[Row]]) -> None:
    catalog, templates = joined(*parts)
    built = index(catalog, templates)
    assert len(built) == 0
    assert [bad.id for bad in catalog.bad] == [row[0] for part in parts for row in part]
    assert bittern.Matcher(built).match([{"a": 1}]).to_pylist() == [[]]


def test_weights_of_one_part_make_the_others_weigh_one() -> None:
    catalog, _ = joined([(1, "a = 1")], [(2, "a = 1", 3)], [(3, "a = 1", None)])
    assert catalog.weights is not None
    assert catalog.weights.tolist() == [1.0, 3.0, 1.0]
    assert joined([(1, "a = 1")], [(2, "a = 1")])[0].weights is None


def test_of_one_id_the_first_good_one_stays() -> None:
    parts: list[list[Row]] = [
        [("x", "a ="), ("y", "a = 1"), ("z", "a = 1 AND b = 2")],
        [("x", "a = 2"), ("y", "a = 'never read'"), ("y", "(")],
        [("y", ")"), ("x", "a ="), ("w", "c = 3"), ("z", "b = 2"), (None, "a = 1")],
    ]
    catalog, templates = joined(*parts)
    rows = [row for part in parts for row in part]
    whole = bittern.Index.build(rows, on_error="skip")
    assert catalog.ids == whole.ids.to_pylist() == ["y", "z", "x", "w"]
    assert catalog.texts.to_pylist() == whole.texts.to_pylist()
    assert set(catalog.bad) == set(whole.bad)
    assert len(catalog.bad) == len(whole.bad)
    assert catalog.bad[1:3] == [BadSubscription("y", 0, REPEATED)] * 2
    event = {"a": 2, "b": 2, "c": 3}
    assert bittern.Matcher(index(catalog, templates)).match([event]).to_pylist() == [["x", "w"]]


def test_one_as_a_number_and_as_text_are_two_ids() -> None:
    catalog, _ = joined([(1, "a = 1"), ("2", "a = 1")], [("1", "a = 1"), (2, "a = 1"), (1, "b")])
    assert catalog.ids == [1, "2", "1", 2]
    assert catalog.bad == [BadSubscription(1, 0, REPEATED)]


def test_rows_are_selected_with_their_parameters() -> None:
    catalog, templates = read(ROWS)
    keep = np.arange(len(catalog.ids)) % 2 == 1
    kept = select_rows(catalog, templates, keep)
    assert kept.ids == catalog.ids[1::2]
    given = {row[0]: row[1] for row in ROWS}
    assert kept.texts.to_pylist() == [given[id_] for id_ in kept.ids]
    event = {"a": 5, "b": "x", "c": "xyx"}
    found = bittern.Matcher(index(kept, templates)).match([event]).to_pylist()
    assert found == expected({id_: given[id_] for id_ in kept.ids}, [event])


@given(
    catalog=strategies.catalogs(strategies.free_expressions()),
    events=strategies.batches(strategies.free_events()),
    data=st.data(),
)
def test_any_cut_of_any_catalog_matches_alike(catalog: Any, events: Any, data: Any) -> None:
    texts = {id_: print_expression(tree) for id_, tree in catalog.items()}
    rows = list(texts.items())
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4).map(sorted))
    parts = [rows[a:b] for a, b in itertools.pairwise([0, *cuts, len(rows)])]
    built = index(*joined(*parts))
    assert bittern.Matcher(built).match(events).to_pylist() == expected(texts, events)


# ------------------------------------------------------------------ templates on their way


@pytest.mark.parametrize("text", ["TRUE", "a = TRUE", "a IS NULL", "a IN (1, 2)", "a RLIKE 'x'"])
def test_a_template_that_was_pickled_is_the_same(text: str) -> None:
    catalog, (template,) = read([(1, text)])
    again = pickle.loads(pickle.dumps(template))
    shapes = Shapes()
    assert shapes.add(template) == shapes.add(again) == 0
    assert again.fill(catalog.parameters.to_pylist()) == parse(text)


def pickled_with_little_stack(value: Any) -> bytes:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        return pickle.dumps(value)
    finally:
        sys.setrecursionlimit(limit)


def test_the_deepest_expression_can_be_pickled() -> None:
    text, deeper = "", "a = 1"
    while not read([(1, deeper)])[0].bad:
        text, deeper = deeper, f"b < 2 AND (x LIKE 'y%' OR {deeper})"
    assert text.count("(") > MAX_DEPTH // 4
    _, templates = read([(1, text)])
    again = pickle.loads(pickled_with_little_stack(templates))
    shapes = Shapes()
    assert [shapes.add(template) for template in (*templates, *again)] == [0, 0]


# ------------------------------------------------------------------ text that is none


@pytest.mark.parametrize("large", [False, True])
def test_bytes_that_are_no_text_are_bad_ids_and_expressions(large: bool) -> None:  # noqa: FBT001
    def text(raws: list[bytes | None]) -> pa.Array:
        kind = (pa.large_binary(), pa.large_string()) if large else (pa.binary(), pa.string())
        array = pa.array(raws, kind[0])
        return pa.Array.from_buffers(kind[1], len(array), array.buffers())

    table = pa.table(
        {
            "id": text([b"ok", b"\xff", b"expression", b"null", None]),
            "expression": text([b"a = 1", b"a = 1", b"a = '\xed\xa0\x80'", None, b"a = 1"]),
        }
    )
    catalog, _ = read(table)
    assert catalog.ids == ["ok"]
    assert [(bad.id, bad.position) for bad in catalog.bad] == [
        ("\udcff", 0),
        ("expression", 4),
        ("null", 0),
        (None, 0),
    ]
    assert "surrogate" in catalog.bad[0].message
    assert "surrogate" in catalog.bad[1].message
