"""Short texts that would take long, or much memory, are refused, or fail for a row."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import bittern
from bittern.errors import ExpressionError, LimitError
from bittern.language.limits import MAX_OPERANDS, MAX_TERM_DEPTH, MAX_TERMS
from bittern.language.parser import parse
from bittern.language.shapes import Shapes
from bittern.terms import scope
from bittern.terms.nested import lambdas
from bittern.terms.scope import Scope, evaluate

EVENT: dict[str, Any] = {
    "a": 1,
    "s": "aaaaaaaaaa",
    "n": 2**31 - 1,
    "l": list(range(60)),
    "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    "x": 1.0,
}


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "a = 1" + ")" * 10_000,
        "(" * 10_000 + "a" + ")" * 10_000 + " + 1 = 2",
        "CASE WHEN a THEN " * 3000 + "1" + " END" * 3000 + " = 1",
        "CASE WHEN " * 3000 + "a" + " THEN 1 END" * 3000 + " = 1",
        "exists(l, x -> " * 4000 + "TRUE" + ")" * 4000,
        "x -> " * 9000 + "x",
        "- " * 30_000 + "a = 1",
        "NOT " * 16_000 + "a",
        "!" * 60_000 + "a",
        "~" * 60_000 + "a = 1",
        "a" + " + a" * 15_000 + " = 1",
        "a" + "[0]" * 15_000 + " = 1",
        "a" + "::int" * 10_000 + " = 1",
        "a" + ".b" * 20_000 + " = 1",
        "a" + " IS NULL" * 8000,
        "a" + " BETWEEN 1 AND 2" * 4000,
        "a" + " < b" * 15_000,
        "trim(" * 9000 + "a" + ")" * 9000 + " = 'x'",
        "position(" * 6000 + "'a' IN a" + ")" * 6000 + " = 1",
        "exists(l, (" * 5000,
        "coalesce(" + "a," * (MAX_OPERANDS + 1) + "a) = 1",
        "lower(a) = 'x' OR a IN (" + "1," * MAX_OPERANDS + "1)",
        " OR ".join(f"a + {number} = 1" for number in range(MAX_TERMS + 1)),
        "s IN (" + ", ".join(f"repeat(s, {number})" for number in range(MAX_TERMS + 1)) + ")",
        "s RLIKE '" + "(a|b)*" * 10_000 + "'",
        "lower(s) RLIKE '" + "a{1000}" * 100 + "'",
        "lower(s) = 'x' AND s RLIKE '" + "a{1000}" * 100 + "'",
        "a" * 70_000,
        "-" * 100_000 + "a",
    ],
    ids=lambda text: f"{text[:24]}...",
)
def test_refused(text: str) -> None:
    for read in (parse, Shapes().read):
        with pytest.raises(LimitError):
            read(text)


@pytest.mark.parametrize(
    "text",
    [
        "'" * 65_535,
        "`" * 65_535,
        "/*" * 30_000,
        "a" + "[" * 60_000,
        "trim(BOTH " * 5000 + "a",
        "EXISTS d (" * 5000 + "a = 1" + ")" * 5000,
        "9" * 60_000 + " = n",
        "1e1000000000BD = n",
        "CAST(n AS DECIMAL(99999999999999, 2)) = 1",
        "INTERVAL '" + "9" * 50_000 + "' DAY IS NULL",
        "t + INTERVAL '9999999999999' DAY > t",
        "length(concat(" + ", ".join(["repeat('a', 8000), s"] * 100) + ")) = 1",
    ],
    ids=lambda text: f"{text[:24]}...",
)
def test_wrong(text: str) -> None:
    for read in (parse, Shapes().read):
        with pytest.raises(ExpressionError) as wrong:
            read(text)
        assert len(wrong.value.message) < 300


def test_nothing_is_read_again_and_again() -> None:
    depth = MAX_TERM_DEPTH - 2
    for call in ("trim(", "lower(", "(", "-(", "CASE WHEN TRUE THEN ", "position('x' IN "):
        close = " END" if call.startswith("CASE") else ")"
        parse(call * depth + "a" + close * depth + " IS NULL")


@pytest.mark.parametrize(
    "text",
    [
        "repeat(s, 1000000000) = 'x'",
        "repeat('abc', 1000000000) = s",
        "repeat(repeat(repeat(repeat('a', 1000), 1000), 1000), 1000) = s",
        "length(repeat(repeat(repeat(repeat(s, 1000), 1000), 1000), 1000)) = 3",
        "lpad(s, 2147483647) = 'x'",
        "rpad('a', 2147483647, 'b') = s",
        "space(n) = s",
        "replace(" * 4 + "s" + ", 'a', repeat('a', 1000))" * 4 + " = 'x'",
        "regexp_replace(repeat(s, 100000), 'a', repeat('b', 1000)) = 'x'",
        "translate(concat(repeat(s, 99999), repeat(s, 99999)), 'a', 'b') = 'x'",
        "array_join(transform(l, x -> repeat(s, 100000)), ',') = 'x'",
        "aggregate(l, 'a', (acc, x) -> concat(acc, acc)) = 'x'",
        "levenshtein(repeat(s, 100000), repeat(s, 100000)) = 1",
        "size(" + "transform(l, x -> " * 5 + "l" + ")" * 5 + ") = 3",
        "CAST(x * 1e38 AS DECIMAL(38, 0)) * CAST(1e37 AS DECIMAL(38, 0)) = 1",
        "make_interval(n, n, n, n, n, n, n) IS NULL",
        "t + make_interval(n) > t",
        "make_dt_interval(9223372036854775807, 1, 1, 1) IS NULL",
        "make_ym_interval(n, 12) IS NULL",
        "add_months(t, n) > t",
        "make_date(n, 1, 1) > t",
        "timestamp_seconds(9223372036854775807) > t",
        "dateadd(YEAR, n, t) > t",
        "date_format(t, '" + "y" * 60_000 + "') = 'x'",
        "conv('" + "9" * 60_000 + "', 10, 36) = s",
    ],
)
def test_a_row_fails_with_a_reason(text: str) -> None:
    """The other predicates of the event count, and an explanation says why."""
    index = bittern.Index.build({"s": text, "other": "a = 1"})
    matches = bittern.Matcher(index).match([EVENT] * 3)
    assert all("other" in ids for ids in matches.to_pylist())
    assert [row for row, _ in matches.mistyped] == [0, 1, 2]
    assert all("has no value: " in why and len(why) < 600 for _, why in matches.mistyped)
    assert "has no value: " in str(bittern.explain(index, EVENT, "s"))


@pytest.mark.parametrize(
    "text",
    [
        "power(n, n) = 5",
        "exp(n) = 5",
        "shiftleft(1, 2000000000) = n",
        "date_add(t, 2147483647) > t",
        "date_add(t, 2147483647) > DATE '2024-01-01'",
        "split_part(s, 'x', n) = 'x'",
        "from_unixtime(9223372036854775807) = s",
        "substring(s, -2147483648, n) = s",
        "1e-999999 = x",
        "regexp_extract(s, '" + "(a*)*" * 150 + "b', 1) = 'x'",
    ],
)
def test_extremes_have_values(text: str) -> None:
    index = bittern.Index.build({"s": text})
    matches = bittern.Matcher(index).match([EVENT])
    assert not matches.mistyped
    explanation = bittern.explain(index, EVENT, "s")
    assert matches.to_pylist() == [["s"] if explanation.matched else []]


def test_long_constants_are_not_part_of_names() -> None:
    index = bittern.Index.build({"s": "length(concat(s, repeat('abcd', 100000))) > 5"})
    assert max(map(len, index.rank.attribute_names())) < 100
    assert bittern.Matcher(index).match([EVENT]).to_pylist() == [["s"]]


def column(*values: Any) -> dict[str, pa.Array]:
    return {"l": pa.array(values), "n": pa.array([1] * len(values))}


def term(text: str) -> Any:
    from bittern.language.scalars import read_term

    return read_term(text)


def test_functions_inside_functions_share_their_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "MAX_TERM_ELEMENTS", 500)
    monkeypatch.setattr(scope, "MAX_TERM_ELEMENTS_PER_ROW", 0)
    one = term("size(transform(l, x -> x)) > 0")
    two = term("size(transform(l, x -> size(transform(l, y -> y)))) > 0")
    columns = column(list(range(20)), [1])
    assert evaluate(one, columns, 2)[0].to_pylist() == [True, True]
    values, failures = evaluate(two, columns, 2)
    assert values.to_pylist()[0] is None
    assert "too many elements" in failures[0].reason
    steps = term("aggregate(l, 0L, (a, x) -> a + aggregate(l, 0L, (b, y) -> b + y)) > 0")
    monkeypatch.setattr(lambdas, "_STEP", 20)
    assert "too many elements" in evaluate(steps, columns, 2)[1][0].reason


def test_arrays_that_are_repeated_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambdas, "MAX_ELEMENTS", 100)
    values, failures = evaluate(
        term("exists(l, x -> array_contains(l, x + 1))"), column(list(range(20)), [1, 2]), 2
    )
    assert values.to_pylist() == [None, True]
    assert [each.rows.tolist() for each in failures] == [[0]]


def test_what_is_held_and_built_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"s": pa.array(["x" * 100] * 10)}
    long = term("concat(lower(s), upper(s), reverse(s))")
    assert not evaluate(long, texts, 10)[1]
    with monkeypatch.context() as patch:
        patch.setattr(scope, "MAX_HELD_BYTES", 2000)
        with pytest.raises(scope.MeaninglessError, match="too large"):
            evaluate(long, texts, 10)
    monkeypatch.setattr(scope, "MAX_BUILT_BYTES", 3500)
    monkeypatch.setattr(scope, "MAX_BUILT_BYTES_PER_ROW", 0)
    values, failures = evaluate(term("concat(repeat(s, 2), s)"), texts, 10)
    assert 0 < values.null_count < 10
    assert failures[0].reason == "the result is too long"


def test_what_terms_share_is_computed_again_if_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = term("lower(s)")
    texts = {"s": pa.array(["X" * 100] * 10)}
    for most, times in ((10_000, 1), (100, 2)):
        monkeypatch.setattr(scope, "MAX_KEPT_BYTES", most)
        own = Scope(texts, 10, repeated=frozenset([id(shared)]))
        first, second = own.value(shared), own.value(shared)
        assert first.equals(second)
        assert (first is not second) == (times == 2)
