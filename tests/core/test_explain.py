"""Explanations agree with the engine and the oracle, and say what each predicate found."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import oracle
import strategies
from bittern.engine.one_value import is_like
from bittern.errors import EventError, UnknownSubscriptionError
from bittern.language.literals import PRESENT
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.syntax import And, BooleanConstant, Like, Not, Or
from effort import examples

if TYPE_CHECKING:
    from bittern.language.syntax import Expression


def predicates(tree: Expression) -> list[Expression]:
    """The leaves of a tree, from left to right."""
    if isinstance(tree, And | Or):
        return [leaf for operand in tree.operands for leaf in predicates(operand)]
    return predicates(tree.operand) if isinstance(tree, Not) else [tree]


@examples(3)
@given(strategies.free_expressions(), strategies.free_events())
def test_explanations_agree_with_the_oracle(tree: Expression, event: dict[str, Any]) -> None:
    text = print_expression(tree)
    index = bittern.Index.build({"s": text})
    explanation = bittern.explain(index, event, "s")
    assert explanation.matched == oracle.matches(parse(text), event)
    assert explanation.matched == (bittern.Matcher(index).match(event).to_pylist() == [["s"]])
    assert explanation.expression == text
    assert explanation.id == "s"
    leaves = predicates(parse(text))
    steps = explanation.predicates()
    assert [step.text for step in steps] == [print_expression(leaf) for leaf in leaves]
    assert [step.truth for step in steps] == [oracle.truth(leaf, event) for leaf in leaves]
    shown = str(explanation)
    assert shown.startswith("'s' matches" if explanation.matched else "'s' does not match")
    words = {True: "true", False: "false", None: "unknown"}
    for leaf, step in zip(leaves, steps, strict=True):
        assert f"{step.text}: {words[step.truth]}" in shown
        if not isinstance(leaf, BooleanConstant):
            name = leaf.attribute.removeprefix(PRESENT)  # type: ignore[union-attr]
            value = oracle.look_up(event, name)
            has_none = step.found.endswith((" is missing", " is null"))
            assert has_none == (value is None)
            assert step.found in shown


@given(strategies.typed_expressions(3), strategies.typed_events())
def test_explanations_of_rows_of_a_table(tree: Expression, event: dict[str, Any]) -> None:
    index = bittern.Index.build({1: print_expression(tree)})
    table = strategies.as_arrow([event])
    right = bittern.Matcher(index).match(table).to_pylist() == [[1]]
    for form in (table, table.to_batches()[0], event, [event]):
        assert bittern.explain(index, form, 1).matched == right == oracle.matches(tree, event)


INDEX = {
    "s1": "model = 'iphone5s' AND price <= 580 AND (color = 'silver' OR NOT tags IS NULL)",
    2: "a.`b.c` = 1",
}


@pytest.fixture(scope="module")
def index() -> bittern.Index:
    return bittern.Index.build(INDEX)


def test_the_text_names_every_predicate_and_what_was_found(index: bittern.Index) -> None:
    explanation = bittern.explain(index, {"model": "iphone5s", "price": 600, "tags": [1]}, "s1")
    assert str(explanation).splitlines() == [
        "'s1' does not match",
        "  AND: false",
        "    model = 'iphone5s': true, model is 'iphone5s'",
        "    price <= 580: false, price is 600",
        "    OR: true",
        "      color = 'silver': unknown, color is missing",
        "      NOT: true",
        "        tags IS NULL: false, tags is [1]",
    ]
    failing = [step for step in explanation.predicates() if step.truth is False]
    assert [(step.text, step.found) for step in failing] == [
        ("price <= 580", "price is 600"),
        ("tags IS NULL", "tags is [1]"),
    ]


@pytest.mark.parametrize(
    ("expression", "value", "said"),
    [
        ("a = 1", "1", "not a number"),
        ("a = '1'", 1, "not a string"),
        ("a = TRUE", 1, "not a boolean"),
        ("a > DATE '2024-01-01'", "2024-02-02", "not a time"),
        ("a LIKE 'x%'", 5, "not a string"),
        ("a BETWEEN 1 AND 2", True, "not a number"),
        ("a IN (1, 2)", "x", "not a number"),
        ("a = 1", [1], "[1]"),
        ("a < 5", math.nan, "nan"),
        ("a < 5", Decimal("5.10"), "5.10"),
        ("a < DATE '2024-01-01'", dt.date(2024, 1, 2), "2024-01-02"),
    ],
)
def test_a_value_of_another_kind_is_named(expression: str, value: Any, said: str) -> None:
    explanation = bittern.explain(bittern.Index.build({"s": expression}), {"a": value}, "s")
    assert not explanation.matched
    assert said in str(explanation)


def test_long_values_are_cut() -> None:
    explanation = bittern.explain(
        bittern.Index.build({"s": "a = 'y'"}), {"a": "x" * 10_000_000}, "s"
    )
    assert len(str(explanation)) < 500


def test_forms_of_one_event(index: bittern.Index) -> None:
    event = {"a": {"b.c": 1}}
    for form in (event, [event], json.dumps(event), pa.Table.from_pylist([event])):
        assert bittern.explain(index, form, 2).matched
        assert not bittern.explain(index, form, "s1").matched


def test_entries_of_maps_are_attributes() -> None:
    catalog = {
        "a": "a = 1",
        "b": "b = 'own'",
        "m": "m IS NOT NULL",
        "c": "`c.d` = 1",
        "e": "e IS NULL",
    }
    index = bittern.Index.build(catalog)
    entries = [("a", 0), ("a", 1), ("b", 5), ("c.d", 1), ("e", None)]
    table = pa.table({"m": pa.array([entries], pa.map_(pa.string(), pa.int64())), "b": ["own"]})
    assert bittern.Matcher(index).match(table).to_pylist() == [list(catalog)]
    for id_ in catalog:
        assert bittern.explain(index, table, id_).matched, id_


@pytest.mark.parametrize(
    "value",
    [
        np.int64(5),
        np.float64(5),
        np.bool_(True),
        np.str_("x"),
        np.datetime64("2024-01-02", "ns"),
        np.datetime64("NaT"),
        pd.Timestamp("2024-01-02"),
        pd.NaT,
        pd.NA,
        Decimal("nan"),
        Decimal("5.0"),
        Decimal("1e999999999"),
        10**400,
        *(-(10**400), math.inf, 2**63, 2.0**63, 1j, b"x", object(), "\ud800", float(10**23)),
    ],
    ids=lambda value: f"{type(value).__name__} {str(value)[:20]!r}",
)
def test_odd_values_are_explained_as_they_are_matched(value: Any) -> None:
    catalog = {
        "number": "a >= 5",
        "text": "a = 'x'",
        "flag": "a = TRUE",
        "time": "a = DATE '2024-01-02'",
        "null": "a IS NULL",
        "huge": "a > 1e300",
        "like": "a LIKE '%'",
        "equal": "a = 1e23 OR a = 9223372036854775808e0",
    }
    index = bittern.Index.build(catalog)
    matches = bittern.Matcher(index).match({"a": value})
    if matches.rejects:
        return  # half a surrogate pair: no event at all
    explained = [id_ for id_ in catalog if bittern.explain(index, {"a": value}, id_).matched]
    assert explained == matches.to_pylist()[0]


@pytest.mark.parametrize(
    "event",
    [
        None,
        5,
        [],
        [{}, {}],
        "",
        "{",
        "[]",
        "5",
        b"{}",
        pa.table({"a": []}),
        pa.table({"a": [1, 2]}),
        [5],
        ["{"],
    ],
    ids=lambda event: f"{type(event).__name__} {str(event)[:12]!r}",
)
def test_what_is_not_one_event_is_refused(index: bittern.Index, event: Any) -> None:
    with pytest.raises(EventError):
        bittern.explain(index, event, "s1")


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": "\\ud800"}', '{"a": Infinity}'])
def test_json_is_as_strict_as_in_matching(text: str) -> None:
    index = bittern.Index.build({"s": "a IS NOT NULL"})
    assert bittern.Matcher(index).match(text).rejects
    with pytest.raises(EventError):
        bittern.explain(index, text, "s")


def test_unknown_subscriptions(index: bittern.Index) -> None:
    for id_ in ("s2", 1, "2", True, None):
        with pytest.raises(UnknownSubscriptionError):
            bittern.explain(index, {}, id_)  # type: ignore[arg-type]


@examples(3)
@given(
    st.lists(st.sampled_from(["%", "_", "__", "a", "b", "\u20ac", "\\_"]), max_size=9).map("".join),
    st.text("ab_\u20ac", max_size=12),
)
def test_like_is_explained_as_it_is_defined(pattern: str, value: str) -> None:
    like = Like("a", pattern)
    assert is_like(value, like) == oracle.matches(like, {"a": value})


def test_deep_and_wide_expressions() -> None:
    catalog = {
        "deep": "NOT (" * 90 + "a = 1" + ")" * 90,
        "wide": " AND ".join(f"a != {n}" for n in range(2, 2000)),
    }
    index = bittern.Index.build(catalog)
    for id_, text in catalog.items():
        explanation = bittern.explain(index, {"a": 1}, id_)
        assert explanation.matched == oracle.matches(parse(text), {"a": 1})
        assert len(str(explanation).splitlines()) >= len(explanation.predicates()) + 1


@pytest.mark.parametrize(
    ("text", "event", "line"),
    [
        ("lower(s) = 'acme'", {"s": "APEX"}, "lower(s) = 'acme': false, lower(s) is 'apex'"),
        ("a * 2 > b", {"a": 2, "b": 9}, "(a * 2) > b: false, a * 2 is 4, b is 9"),
        ("a > b", {"a": 2}, "a > b: unknown, a is 2, b is missing"),
        ("a > b", {"a": 2, "b": None}, "unknown, a is 2, b is null"),
        ("exists(l, i -> i.x < 5)", {"l": [{"x": 7}]}, ": false, l is [{'x': 7}]"),
        (
            "exists(l, i -> i.x < 5)",
            {},
            ": unknown, exists(l, i -> (i.x < 5)) is null, l is missing",
        ),
        ("CASE WHEN a > 1 THEN 'x' ELSE 'y' END = 'x'", {"a": 0}, "ELSE 'y' END is 'y'"),
        ("array_contains(l, 'x')", {"l": ["a"]}, "array_contains(l, 'x'): false, l is ['a']"),
        ("isnan(x)", {"x": 1.5}, "isnan(x) = TRUE: false, x is 1.5"),
        (
            "CAST(s AS INT) = 5",
            {"s": "x"},
            "unknown, CAST(s AS INT) has no value: a STRING that is no INT",
        ),
        (
            "CAST(s AS INT) > a",
            {"s": "x", "a": 1},
            "unknown, CAST(s AS INT) has no value: a STRING that is no INT, a is 1",
        ),
        ("10 / a IS NULL", {"a": 0}, "true, 10 / a has no value: division by zero"),
        ("TRY_CAST(s AS INT) = 5", {"s": "x"}, "unknown, TRY_CAST(s AS INT) is null"),
        ("lower(s) IS NULL", {"s": None}, "true, lower(s) is null, s is null"),
        (
            "date_add(t, 9999999) > DATE '2024-01-01'",
            {"t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)},
            ": true, date_add(t, 9999999) is 29403-",
        ),
    ],
)
def test_terms(text: str, event: dict[str, Any], line: str) -> None:
    index = bittern.Index.build({"s": text})
    explanation = bittern.explain(index, event, "s")
    assert line in str(explanation)
    assert bittern.Matcher(index).match(event).to_pylist() == [["s"] if explanation.matched else []]
    with bittern.LiveMatcher() as live:
        live.subscribe("s", text)
        assert str(bittern.explain(live, event, "s")) == str(explanation)


def test_terms_on_the_command_line(bittern_command: Any, tmp_path: Path) -> None:
    bittern.Index.build({"s": "CAST(s AS INT) = 5"}).save(tmp_path / "s.bittern")
    _, out, _ = bittern_command("explain", tmp_path / "s.bittern", "s", '{"s": "x"}')
    assert "CAST(s AS INT) has no value: a STRING that is no INT" in out
