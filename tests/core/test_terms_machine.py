"""The machine for numeric terms gives what evaluating them one function at a time gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.language.scalars import read_term
from bittern.model.events.derived.known import Known
from bittern.terms.machine.machine import Machine
from bittern.terms.scope import MeaninglessError, Scope, evaluate
from bittern.terms.types import INTEGERS, TIMESTAMP
from effort import examples

N = 100
_WHOLE = {"t": pa.int8(), "s": pa.int16(), "i": pa.int32(), "a": pa.int64(), "b": pa.int64()}
_EDGES = [0, 1, -1, 2, -3, 7, 100, 2**31, -(2**31), 2**53 + 1, 2**62]
_REALS = [0.0, -0.0, 1.5, -2.5, 1.005, 0.1, 1e15, 123456789.987654321, 1e300, -1e-300]
_REALS += [math.inf, -math.inf, math.nan, 2.0**63, -(2.0**63), 2.0**31, 127.9, -128.9]
_TIMES = [0, 1, -1, 86_399_999_999, 1_709_251_199_999_999, -62_135_596_800_000_000]


@st.composite
def columns(draw: st.DrawFn) -> dict[str, pa.Array]:
    """Columns of every type that a register holds, and one of text."""

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        few = draw(st.lists(st.sampled_from([*values, None]), min_size=1, max_size=8))
        return pa.array([few[row % len(few)] for row in range(N)], kind)

    found = {}
    for name, kind in _WHOLE.items():
        limits = np.iinfo(kind.to_pandas_dtype())
        edges = [x for x in (*_EDGES, limits.min, limits.max) if limits.min <= x <= limits.max]
        found[name] = column(edges, kind)
    found |= {name: column(_REALS, pa.float64()) for name in "xy"}
    found |= {name: column([True, False], pa.bool_()) for name in "pq"}
    found["at"] = column(_TIMES, TIMESTAMP)
    found["day"] = column([-719_162, -1, 0, 59, 60, 19_782], pa.date32())
    found["text"] = column(["12", "-7", "", "x", "300"], pa.string())
    return found


_ATOMS = [*_WHOLE, "x", "y", "0", "1", "-1", "3", "9223372036854775807L", "2.5D", "0.0D", "1.5"]
_ATOMS += ["length(text)", "CAST(text AS INT)", "year(at)", "month(at)", "day(at)", "hour(at)"]
_ATOMS += ["minute(at)", "second(at)", "year(day)", "month(day)", "day(day)", "CAST(p AS INT)"]
_SHAPES = ["({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} % {1})", "-({0})"]
_SHAPES += [f"try_{name}({{0}}, {{1}})" for name in ("add", "subtract", "multiply", "divide")]
_SHAPES += ["abs({0})", "floor({0})", "ceil({0})", "round({0}, 2)", "round({0})", "mod({0}, {1})"]
_SHAPES += [f"CAST({{0}} AS {name})" for name in ("TINYINT", "INT", "BIGINT", "DOUBLE")]
_SHAPES += ["try_cast({0} AS SMALLINT)", "greatest({0}, {1}, {2})", "least({0}, {1})"]
_SHAPES += ["coalesce({0}, {1}, {2})", "nvl({0}, {1})"]
_CONDITIONS = ["{0} < {1}", "{0} <= {1}", "{0} = {1}", "{0} != {1}", "{0} >= {1}", "{0} > {1}"]
_CONDITIONS += ["{0} BETWEEN {1} AND {2}", "{0} IS NULL", "{0} IS NOT NULL"]
_JOINED = ["({0} AND {1})", "({0} OR {1})", "(NOT {0})", "({0} IS TRUE)", "({0} IS FALSE)"]
_CHOICES = ["CASE WHEN {2} THEN {0} ELSE {1} END", "if({2}, {0}, {1})"]


def _filled(shapes: list[str], parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(shapes), st.tuples(parts, parts, parts)).map(
        lambda pair: pair[0].format(*pair[1])
    )


def _grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    conditions = _filled(_CONDITIONS, parts) | st.sampled_from(["p", "q", "at = at", "day > day"])
    joined = conditions | _filled(_JOINED, conditions)
    choices = st.tuples(st.sampled_from(_CHOICES), parts, parts, joined).map(
        lambda found: found[0].format(*found[1:])
    )
    return _filled(_SHAPES, parts) | choices


NUMBERS = st.recursive(st.sampled_from(_ATOMS), _grown, max_leaves=6)
TERMS = NUMBERS | _filled(_CONDITIONS, NUMBERS)


def same(one: Any, other: Any) -> bool:
    """Equal, as Spark's events are: NaN too, and which zero it is counts."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return bool(one == other)


def row_of(own: dict[str, pa.Array], row: int) -> dict[str, Any]:
    """What a row has."""
    return {name: array[row].as_py() for name, array in own.items()}


@examples(2)
@given(st.lists(TERMS, min_size=1, max_size=5), columns())
def test_the_machine_agrees_with_the_scope(texts: list[str], own: dict[str, pa.Array]) -> None:
    terms = [read_term(text) for text in texts]
    scope = Scope(own, N)
    for number, array in Machine(terms).values(range(len(terms)), scope):
        expected, failures = evaluate(terms[number], own, N)
        shown = texts[number]
        assert not failures, f"{shown} fails: {failures[0].reason}"
        kind = pa.int64() if expected.type in INTEGERS else expected.type
        assert array.type == kind, shown
        pairs = zip(array.to_pylist(), expected.to_pylist(), strict=True)
        for row, (one, other) in enumerate(pairs):
            assert same(one, other), f"{shown} is {one}, not {other}, for {row_of(own, row)}"
    assert not scope.failures


#: One term for each instruction, and whether it is left to the scope for these columns.
TRANSLATED = {
    "a + 1": False,
    "a + b": True,
    "i - 5": False,
    "a * 3 % 7": False,
    "a % z": True,
    "try_mod(a, z)": False,
    "abs(-a)": False,
    "x / 3 - y * 2 + x % 2": False,
    "-x + abs(y)": False,
    "floor(x) + ceil(y)": False,
    "round(x, 1)": False,
    "CAST(x AS TINYINT) + i": False,
    "CAST(a AS DOUBLE)": False,
    "compare(a, i)": False,
    "compare(x, y)": False,
    "a < i OR x = y AND NOT p": False,
    "p IS TRUE OR x IS NULL OR a IS NOT NULL OR p IS FALSE": False,
    "CASE WHEN z = 0 THEN a ELSE a % z END": False,
    "coalesce(x, y, 1)": False,
    "greatest(a, i) + least(x, y)": False,
    "greatest(x, y) * least(a, i)": False,
    "year(at) + month(at) + day(at) + hour(at) + minute(at) + second(at) + year(day)": False,
    "length(text) * 2": False,
}


@pytest.mark.parametrize("text", TRANSLATED)
def test_what_is_translated(text: str) -> None:
    own = {
        "a": pa.array([5, None, 2**62, -3] * 25),
        "b": pa.array([1, 2, 2**62, None] * 25),
        "i": pa.array([7, None, 8, 9] * 25, pa.int32()),
        "z": pa.array([0, 3, None, 4] * 25),
        "x": pa.array([0.25, 1.5, None, -2.75] * 25),
        "y": pa.array([math.nan, 1.5, 3.0, None] * 25),
        "p": pa.array([True, None, False, True] * 25),
        "at": pa.array([1, 2, None, 4] * 25, TIMESTAMP),
        "day": pa.array([1, 2, None, 4] * 25, pa.date32()),
        "text": pa.array(["x", None, "yz", ""] * 25),
    }
    if "y)" in text and "floor" in text:
        own["y"] = pa.array([1.5, None, 3.0, -0.5] * 25)
    if text.startswith(("a * 3", "a % z", "try_mod", "greatest(x")):
        own["a"] = pa.array([5, None, 4, -3] * 25)
    found = list(Machine([read_term(text)]).values([0], Scope(own, N)))
    assert len(found) == (not TRANSLATED[text])
    if found:
        expected = evaluate(read_term(text), own, N)[0].to_pylist()
        pairs = zip(found[0][1].to_pylist(), expected, strict=True)
        assert all(same(one, other) for one, other in pairs)


def test_an_input_that_cannot_be_computed_leaves_only_what_needs_it() -> None:
    own = {"text": pa.array(["x"] * N), "a": pa.array(range(N))}
    terms = [read_term("length(text) + CAST(text AS INT)"), read_term("length(text) + a")]
    found = dict(Machine(terms).values([0, 1], Scope(own, N)))
    assert found.keys() == {1}
    assert found[1].to_pylist() == [1 + i for i in range(N)]
    with pytest.raises(MeaninglessError):
        evaluate(read_term("hour(a)"), own, N)
    assert not dict(Machine([read_term("hour(a) + 1")]).values([0], Scope(own, N)))


def test_a_call_that_is_constant_only_here_is_a_number() -> None:
    own = {"x": pa.array([0.5, None] * (N // 2))}
    # What is constant but long is not computed when the text is read.
    text = "x + CAST(length(repeat('a', 100000)) AS BIGINT)"
    found = list(Machine([read_term(text)]).values([0], Scope(own, N)))
    assert [array.to_pylist() for _, array in found] == [[100_000.5, None] * (N // 2)]


TEXTS = {
    "lower": "lower(brand) = 'brand7'",
    "order": "upper(brand) > 'BRAND3'",
    "end": "concat(brand, '!') LIKE '%7!'",
    "null": "substr(brand, 2) IS NULL",
    "number": "CAST(substr(brand, 6) AS INT) + 1 > 20",
    "alone": "a > 5 AND a * 2 < 60",
}


def _brands(first: int, n: int) -> pa.Table:
    names = [None if i % 13 == 0 else f"Brand{first + i % 30}" for i in range(n)]
    names[5] = "Brand"
    return pa.table({"brand": names, "a": [i % 40 for i in range(n)]})


def test_what_is_known_of_values_is_what_would_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    index = bittern.Index.build(TEXTS)
    matcher = bittern.Matcher(index)
    for limit in (1 << 21, 60, 0):
        monkeypatch.setattr("bittern.model.events.derived.known._MOST_CELLS", limit)
        for first in (0, 10, 0, 100, 5):
            events = _brands(first, 2_000)
            found = matcher.match(events)
            parts = [matcher.match(events.slice(i, 50)) for i in range(0, 2_000, 50)]
            assert found.to_pylist() == [ids for part in parts for ids in part.to_pylist()]
            assert len(found.mistyped) == sum(len(part.mistyped) for part in parts) > 0
    assert any(found.to_pylist())


def test_known_values_are_not_computed_again_unless_they_fail() -> None:
    asked: list[list[Any]] = []

    def compute(values: pa.Array) -> tuple[Any, dict[int, list[tuple[int, str]]]]:
        asked.append(values.to_pylist())
        rows = np.arange(len(values), dtype=np.uint64)
        bad = [(row, "bad") for row, value in enumerate(asked[-1]) if value == "bad"]
        return np.uint64(7) << np.uint64(32) | rows, {3: bad}

    known = Known([1], np.array([0, 5, 9], dtype=np.int32))
    for values, new in ((["a", None], ["a", None]), (["a", "bad"], ["bad"]), (["bad"], ["bad"])):
        codes = np.array([0, len(values) - 1, 0])
        pieces, failed = known.pairs(pa.array(values, pa.string()), codes, compute)
        assert asked[-1] == new
        assert [int(pair) & 0xFF for pair in pieces[0]] == [0, 1, 2]
        assert failed.get(3, []) == [(i, "bad") for i, value in enumerate(values) if value == "bad"]
    known.pairs(pa.array(["a"]), np.zeros(1, np.int64), compute)
    assert len(asked) == 3
