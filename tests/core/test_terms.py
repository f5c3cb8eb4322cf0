"""Terms: read by Spark's grammar, written canonically, put under names, matched in every form."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
from bittern.errors import ExpressionError, LimitError
from bittern.history.history import History
from bittern.language.normalize import normal_form
from bittern.language.parser import parse
from bittern.language.printer import print_expression
from bittern.language.scalars import read_term
from bittern.language.shapes import Shapes
from bittern.language.term_printer import print_term
from bittern.terms import scope
from bittern.terms.nodes import Attribute, Call, Constant, Lambda, Term
from bittern.terms.scope import evaluate
from effort import examples

#: A text, and how it is written with every operator in parentheses.
BINDS = [
    ("a OR b AND c", "a OR (b AND c)"),
    ("NOT a = b", "NOT (a = b)"),
    ("NOT a AND b", "(NOT a) AND b"),
    ("! a = b", "NOT (a = b)"),
    ("a = b IS NULL", "(a = b) IS NULL"),
    ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
    ("a = b = c", "(a = b) = c"),
    ("a IN (b, c) = d", None),
    ("10 <= a < b", "(10 <= a) AND (a < b)"),
    ("case = 5", "`case` = 5"),
    ("CASE a WHEN 1 THEN b END = c", "CASE WHEN a = 1 THEN b ELSE NULL END = c"),
    ("a IS NOT TRUE", "NOT (a IS TRUE)"),
    ("a IS UNKNOWN", "a IS NULL"),
    ("a IS DISTINCT FROM b", "NOT (a <=> b)"),
    ("a LIKE ANY (b, c)", "(a LIKE b) OR (a LIKE c)"),
    ("a NOT LIKE ALL (b, c)", "(NOT (a LIKE b)) AND (NOT (a LIKE c))"),
    ("a /* b */ = -- c\n b", "a = b"),
    ("exists(a, x -> x = b)", "exists(a, x -> (x = b))"),
    ("a + b - c || d", "a + b - c || d"),
    ("a - (b - c) * d / 2", "a - ((b - c) * d / 2)"),
    ("- - a", "-(-a)"),
    ("`all` + 5", "`all` + 5"),
    ("(CASE WHEN a THEN b END).c", "(CASE WHEN a THEN b ELSE NULL END).c"),
    ("filter(a, x -> x).exists", "filter(a, x -> x).`exists`"),
    ("date_part('YEAR', a)", "EXTRACT(year FROM a)"),
    ("é + 1", "`é` + 1"),
    ("filter(a, ö -> ö.b.ü)", "filter(a, `ö` -> `ö`.`b`.`ü`)"),
    ("concat(a, -0.0F)", "concat(a, CAST(-0.0e0 AS FLOAT))"),
]


@pytest.mark.parametrize(("text", "canonical"), BINDS)
def test_operators_bind_as_in_spark(text: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(ExpressionError):
            read_term(text)
        return
    assert print_term(read_term(text)) == canonical
    assert read_term(canonical) == read_term(text)


#: A condition, and the plain condition that it becomes.
PLAIN = [
    ("a < b", "a < b"),
    ("b > a", "a < b"),
    ("1.0 < 1.1", "TRUE"),
    ("a = (1)", "a = 1"),
    ("a <=> 5", "a = 5 AND a IS NOT NULL"),
    ("NULL <=> a", "a IS NULL"),
    ("a <=> b", "a = b AND a IS NOT NULL AND b IS NOT NULL OR a IS NULL AND b IS NULL"),
    ("a IS TRUE", "a = TRUE AND a IS NOT NULL"),
    ("a IN (1, b)", "a = b OR a IN (1)"),
    ("a BETWEEN b AND 5", "a >= b AND a <= 5"),
    ("isnotnull(a)", "a IS NOT NULL"),
    ("5 BETWEEN 1 AND 2", "FALSE"),
    ("coalesce(a, b) LIKE 'x%'", "coalesce(a, b) LIKE 'x%'"),
    ("a LIKE ANY ('x%', 'y%')", "a LIKE 'x%' OR a LIKE 'y%'"),
    ("a = 'x' 'y'", "a = 'xy'"),
    ("a = 5L", "a = 5"),
    ("a !< 5", "a >= 5"),
]


@pytest.mark.parametrize(("text", "plain"), PLAIN)
def test_a_condition_becomes_plain(text: str, plain: str) -> None:
    assert print_expression(parse(text)) == plain
    assert print_expression(parse(plain)) == plain


_NAMES = st.sampled_from(("a", "b.c", "odd name", "case", "end", "x", "all", "then", "exists"))
_CONSTANTS = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda n: pa.scalar(n, pa.int32())),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: pa.scalar(n, pa.int64())),
    st.integers(-128, 127).map(lambda n: pa.scalar(n, pa.int8())),
    st.floats().map(lambda x: pa.scalar(x, pa.float64())),
    st.floats(width=32).map(lambda x: pa.scalar(x, pa.float32())),
    st.decimals(-999, 999, places=2).map(lambda d: pa.scalar(d, pa.decimal128(10, 2))),
    st.text(max_size=4).filter(lambda t: t.isprintable()).map(lambda t: pa.scalar(t, pa.string())),
    st.binary(max_size=3).map(lambda b: pa.scalar(b, pa.binary())),
    st.dates().map(lambda d: pa.scalar(d, pa.date32())),
    st.booleans().map(lambda b: pa.scalar(b, pa.bool_())),
    st.just(pa.scalar(None, pa.null())),
).map(Constant)


def _calls(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    def call(name: str, least: int, most: int) -> st.SearchStrategy[Term]:
        arguments = st.lists(inner, min_size=least, max_size=most)
        return arguments.map(lambda found: Call(name, tuple(found)))

    infix = ("=", "<", "<=>", "and", "or", "like", "!=", "+", "-", "*", "div", "||", "&")
    return st.one_of(
        *(call(name, 2, 2) for name in infix),
        *(call(name, 1, 1) for name in ("not", "is null", "is true", "isnotnull", "negative")),
        call("coalesce", 1, 3),
        call("case", 3, 3),
        call("between", 3, 3),
        call("in", 2, 4),
        inner.map(lambda term: Call("in set", (term, Constant(pa.scalar("odd `name`"))))),
        inner.map(lambda term: Call("cast", (term,), pa.int32())),
        inner.map(lambda term: Call("extract", (Constant(pa.scalar("year")), term))),
        st.tuples(inner, inner).map(lambda two: Call("filter", (two[0], Lambda(("end",), two[1])))),
        st.tuples(inner.filter(lambda term: isinstance(term, Call)), _NAMES).map(
            lambda two: Call(".", (two[0], Constant(pa.scalar(two[1].partition(".")[0]))))
        ),
    )


def _has_only_constants(term: Term) -> bool:
    """Is there a call that is evaluated when it is read back?"""
    if isinstance(term, Lambda):
        return _has_only_constants(term.body)
    if not isinstance(term, Call):
        return False
    if all(isinstance(each, Constant) for each in term.arguments):
        return True
    return any(map(_has_only_constants, term.arguments))


TERMS: st.SearchStrategy[Term] = st.recursive(
    st.one_of(_NAMES.map(Attribute), _CONSTANTS), _calls, max_leaves=8
).filter(lambda term: not _has_only_constants(term))


@given(TERMS)
@examples(12)
def test_what_is_written_reads_back(term: Term) -> None:
    text = print_term(term)
    again = read_term(text)
    # A junction inside another of its kind is written in parentheses, and stays inside.
    assert print_term(again) == text
    assert again == term


EVENTS: list[dict[str, Any]] = [
    {},
    {"a": 1, "b": 2},
    {"a": 2.5, "b": 2},
    {"a": "x", "b": "y"},
    {"a": "y", "b": "y"},
    {"a": True, "b": False},
    {"a": True, "b": 1},
    {"a": 5},
    {"b": -3},
    {"a": 2**53 + 1, "b": 2.0**53},
]
CONDITIONS = [
    "a < b",
    "a = b",
    "NOT a >= b",
    "a <=> b",
    "NOT (a <=> b)",
    "a IS DISTINCT FROM b",
    "coalesce(a, b) = 5",
    "a IS NOT TRUE",
    "NOT (a IS TRUE)",
    "greatest(a, b) > 1",
    "CASE WHEN a > b THEN a ELSE b END = 2",
    "nullif(a, 5) IS NULL",
    "if(a IS NULL, b, a) < 0",
    "(a = 1) = (b = 2)",
    "a BETWEEN b AND 3",
    "a IN (b, 5)",
    "isnan(a)",
]


def test_all_forms_of_events_give_the_same() -> None:
    index = bittern.Index.build(dict(enumerate(CONDITIONS)))
    matcher = bittern.Matcher(index)
    found = matcher.match(EVENTS).to_pylist()
    assert [sorted(each) for each in found] == [
        [id_ for id_, text in enumerate(CONDITIONS) if bittern.explain(index, event, id_).matched]
        for event in EVENTS
    ]
    assert matcher.match([json.dumps(event) for event in EVENTS]).to_pylist() == found
    with bittern.LiveMatcher() as live:
        for id_, text in enumerate(CONDITIONS):
            live.subscribe(id_, text)
        again = live.match(EVENTS).to_pylist()
    assert [sorted(each) for each in again] == [sorted(each) for each in found]
    columns = pa.table({"a": pa.array([1, 5, None], pa.int32()), "b": pa.array([2.0, None, -3.0])})
    rows = [{"a": 1, "b": 2.0}, {"a": 5}, {"b": -3.0}]
    assert matcher.match(columns).to_pylist() == matcher.match(rows).to_pylist()


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_is_what_its_term_is(text: str) -> None:
    """The tree of predicates and the term itself, evaluated over columns, say the same."""
    numbers = [None, 1, 2, 3, 5, -3]
    pairs = [(a, b) for a in numbers for b in numbers]
    columns = {
        "a": pa.array([a for a, _ in pairs], pa.int64()),
        "b": pa.array([b for _, b in pairs], pa.int64()),
    }
    if text.startswith(("a IS NOT TRUE", "NOT (a IS")):
        columns["a"] = pa.array([None if a is None else a > 2 for a, _ in pairs])
    values, failures = evaluate(read_term(text), columns, len(pairs))
    assert not failures
    found = bittern.Matcher(bittern.Index.build({"s": text})).match(pa.table(columns))
    assert [bool(each) for each in found.to_pylist()] == [v is True for v in values.to_pylist()]


def test_what_an_event_lacks_has_no_type_from_others() -> None:
    texts = {
        "first": "coalesce(a, b) = 'x'",
        "text": "CAST(coalesce(a, b) AS STRING) = '5'",
        "exact": "nvl(a, b) = 9007199254740993",
        "choice": "CASE WHEN c THEN a ELSE b END = 'x'",
        "zero": "coalesce(a, 0) = 0",
        "sum": "a + b = 6",
    }
    matcher = bittern.Matcher(bittern.Index.build(texts))
    events: list[dict[str, Any]] = [
        {"a": 1, "b": 5},
        {"b": "x"},
        {"a": 2.5, "b": 1},
        {"b": 5},
        {"a": None, "b": 2**53 + 1},
        {"a": "x", "b": True},
        {"c": False, "b": "x"},
        {},
    ]
    alone = [set(matcher.match(event).ids(0)) for event in events]
    assert alone[1] == {"first", "choice", "zero"}
    assert [each - {"zero"} for each in alone[3:5]] == [{"text"}, {"exact"}]
    for form in (events, [json.dumps(event) for event in events]):
        assert list(map(set, matcher.match(form).to_pylist())) == alone
        for first in range(len(events)):
            found = matcher.match(form[first : first + 3]).to_pylist()
            assert list(map(set, found)) == alone[first : first + 3]


@pytest.mark.parametrize("name", sorted(scope._STRICT))
def test_strict_functions_are_null_where_an_argument_is(name: str) -> None:
    own = scope.functions()[name]
    kinds = (pa.null(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32())
    given = [pa.array([5]), pa.array(["5"]), pa.array([2.5]), pa.array([True])]
    for count in range(own.least, (own.most if own.most > 0 else 3) + 1):
        for place, kind, other in itertools.product(range(count), kinds, given):
            columns = {"a": pa.nulls(1, kind), "b": other}
            arguments = [Attribute("b")] * count
            arguments[place] = Attribute("a")
            with contextlib.suppress(scope.MeaninglessError):
                found, _ = evaluate(Call(name, tuple(arguments), pa.string()), columns, 1)
                assert not found[0].is_valid, (place, kind, other)


def test_strings_that_only_terms_read_are_checked() -> None:
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xffx")]
    )
    lists = pa.ListArray.from_arrays([0, 1, 2], texts)
    maps = pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "k"]), texts)
    matcher = bittern.Matcher(
        bittern.Index.build(
            {"s": "lower(a) = 'x'", "l": "lower(a[0]) = 'x'", "m": "lower(a.k) = 'x'", "n": "n = 1"}
        )
    )
    for column, own in ((texts, "s"), (lists, "l"), (maps, "m")):
        matches = matcher.match(pa.table({"a": column, "n": [1, 1]}))
        assert list(map(set, matches.to_pylist())) == [set(), {own, "n"}]
        assert [row for row, why in matches.rejects if "not valid UTF-8" in why] == [0]
    matches = matcher.match([{"a": "\ud800", "n": 1}, {"a": "x"}])
    assert matches.to_pylist() == [[], ["s"]]
    assert [row for row, _ in matches.rejects] == [0]


def test_a_snapshot_keeps_terms(tmp_path: Any) -> None:
    bittern.Index.build({"s": "a < b", "t": "coalesce(a, 0) = 0"}).save(tmp_path / "index")
    matcher = bittern.Matcher(bittern.Index.open(tmp_path / "index"))
    assert matcher.match([{"a": 1, "b": 2}, {}]).to_pylist() == [["s"], ["t"]]


def test_an_event_cannot_carry_the_value_of_a_term() -> None:
    matcher = bittern.Matcher(bittern.Index.build({"s": "coalesce(a, b) = 5", "t": "a < b"}))
    fake = {"\x01coalesce(a, b)": 5, "\x01a\x01b": -1}
    assert matcher.match([fake, json.dumps(fake)]).to_pylist() == [[], []]
    assert matcher.match(pa.table({name: [value] for name, value in fake.items()})).to_pylist() == [
        []
    ]


def test_a_term_beside_a_quantified_predicate() -> None:
    text = "EXISTS d (d.a = a) AND coalesce(b, 1) = 1"
    with History() as history, bittern.LiveMatcher(history=history) as live:
        live.subscribe("s", text)
        found = [
            live.match([event]).to_pylist()[0] for event in ({"a": 1}, {"a": 1}, {"a": 1, "b": 2})
        ]
    assert found == [[], ["s"], []]
    assert print_expression(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EXISTS d (coalesce(d.a, 1) = 1)", "functions such as coalesce"),
        ("(EXISTS d (d.a = a)) = b", "stand by themselves"),
        ("1 . EXISTS d (d.a = a)", "the name of a field"),
        ("lowr(a) = 'x' AND b = 1", "there is no function lowr"),
        ("coalesce() = 1", "at least 1 argument"),
        ("rand() < 1", "another value each time"),
        ("count(a) > 1", "many rows"),
        ("max_by(a, b) > 1", "needs many rows"),
        ("lag(a) > 1", "needs many rows"),
        ("explode(a) > 1", "gives many rows"),
        ("a IN (SELECT b FROM c)", "a subquery cannot stand"),
        ("EXISTS (SELECT 1)", "a subquery cannot stand"),
        ("a = (select * from b)", "a subquery cannot stand"),
        ("a > TIMESTAMP 'today'", "the present moment"),
        ("v:a.b::int = 1", "for v:a.b write a.b"),
        ("select - 1 > 2 AND select * 2 > 1 AND select IN (1, 2)", None),
        ("xxhash64(a) > 1", 'functions="spark"'),
        ("CASE WHEN a THEN b = 1", "WHEN, ELSE or END"),
        ("CAST(a AS THING) = 1", "is no type"),
        ("coalesce(a, 5)", None),
        ("a < b) = 1", "operator or the end"),
        ("(a = 1) > 5", "a condition is TRUE or FALSE"),
        ("coalesce(a, 1", "',' or ')'"),
        ("a = b AND", "a value"),
        ("date_part(a, b) = 1", "the name of a field"),
        ("date_part('/*', b) = 1", "the name of a field"),
        ("lower(a) = 'x' 'y", "closing quote"),
        ("lower(a) = 'x' AND b = DATE '2024-01-311", "closing quote"),
        ("a = X'612", "closing quote"),
        ("a > b - INTERVAL '1 dayx", "closing quote"),
        ("a > b - INTERVAL '\\ud83d' DAY", "half a surrogate pair"),
        ("lower(a) COLLATE UTF8_LCASE", "beside a comparison"),
        ("CAST(a COLLATE UTF8_LCASE AS INT) = 1", "beside a comparison"),
    ],
)
def test_mistakes(text: str, message: str | None) -> None:
    if message is None:
        parse(text)
        return
    for read in (parse, Shapes().read):
        with pytest.raises(ExpressionError) as caught:
            read(text)
        assert message in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(" * 5000 + "a" + ")" * 5000 + " = 1",
        "(" * 3000 + "a < b" + ")" * 3000,
        "NOT " * 3000 + "a < b",
        "a < " + "CASE WHEN b THEN " * 2000 + "1",
        "a = b" + " = b" * 5000,
        "a[" * 4000 + "0" + "]" * 4000 + " = 1",
        "coalesce(a, " * 150 + "1" + ")" * 150 + " = 1",
        "CASE " * 40 + "a" + " WHEN 1 THEN 1 WHEN 2 THEN 2 END" * 40 + " = 1",
        "(" * 40 + "a" + ") LIKE ANY (b, c)" * 40,
        "(b < " * 40 + "a" + " < c)" * 40,
        "a" + "::int" * 60 + " = 1",  # in other words, CAST(CAST(...
        f"concat({', '.join(['a'] * 5000)}) IN ({', '.join(['b'] * 4000)})",
        f"length(a) IN ({', '.join(map(str, range(5000)))})",
        f"arrays_overlap(a, array({', '.join(map(str, range(5000)))}))",
        f"length(a) = 1{' OR a = 1' * 5000}",
    ],
)
def test_bombs_are_refused(text: str) -> None:
    for read in (parse, Shapes().read):
        with pytest.raises(LimitError):
            read(text)


def test_long_sums_are_no_deep_terms() -> None:
    subscriptions = {"sum": " + ".join(["a"] * 99) + " = 99", "other": "a = 1"}
    matcher = bittern.Matcher(bittern.Index.build(subscriptions))
    assert sorted(matcher.match({"a": 1}).ids(0)) == ["other", "sum"]


#: Texts of one shape each, of which the last is read otherwise than those before it.
ALIKE = [
    ("to_date(a) = DATE '2024-01-31'", "to_date(a) = DATE '2024-1-31'"),
    ("length(a) = 5", "isnull(a) = 5"),
    (
        "length(a) > 5 AND b = TIMESTAMP '2024-01-31 10:00:00'",
        "length(a) > 5 AND b = TIMESTAMP '2024'",
    ),
    ("abs(a) IN (1, 2)", "abs(a) IN (1, 12345678901234567890)"),
    ("coalesce(a, 'x') LIKE 'x%'", "coalesce(a, 'x') LIKE 'x%y_'"),
    ("length(a) = 5", "size(a) = 5", "lowr(a) = 5"),
    (
        "array_contains(a, 'x') AND b < 1",
        "array_contains(c, 'y') AND b < 2",
        "array_contains(array('x'), 'x') AND b < 2",
        "array_contains(a, x'00') AND b < 2",
        "array_contains(a, 'y') IS NULL AND b < 1",
        "array_contains(a, NULL) AND b < 2",
    ),
    ("NOT array_contains(a, 'x')", "NOT array_contains(b, 'y')"),
    ("array_contains(a, 1) = TRUE", "array_contains(b, 2) = TRUE", "array_contains(b, 2) = 5"),
    (
        "exists(a, i -> i.p < 1) AND b = 2",
        "exists(c, i -> i.p < 5) AND d = 'x'",
        "exists(c, i -> i.p < 5) AND d = 4",
        "exists(a, i -> i.p < b) AND b = 3",
        "exists(a, i -> q.p < 1) AND b = 2",
        "exists(5, i -> i.p < 1) AND b = 2",
    ),
    ("lower(a) = 'x' AND startswith(b, 'y')", "lower(c) = 'z' AND startswith(d, 'y%')"),
    ("isnan(a) OR b", "isnan(c) OR d", "sqrt(c) OR d"),
    ("exists d (d.a = a) AND isnan(b)", "exists e (e.a = a) AND isnan(c)"),
    ("coalesce(isnan(a), b) = TRUE", "coalesce(isnan(c), d) = TRUE"),
    ("(a < b) = isnan(c)", "(a < d) = isnan(c)"),
]


@pytest.mark.parametrize("texts", ALIKE)
def test_a_known_shape_changes_nothing(texts: tuple[str, ...]) -> None:
    shapes = Shapes()
    for text in (*texts, *texts):
        try:
            right: Any = normal_form(parse(text))
        except ExpressionError as wrong:
            right = wrong.message, wrong.position
        try:
            shape, parameters = shapes.read(text)
            found: Any = shapes.templates[shape].fill(parameters)
        except ExpressionError as wrong:
            found = wrong.message, wrong.position
        assert found == right


def test_texts_that_differ_in_constants_are_read_once() -> None:
    several = [f"coalesce(a, {n % 3}) > {n} AND b = {n}" for n in range(50)]
    lone = [f"array_contains(a, 't{n}') AND exists(b, i -> i.p > {n % 3})" for n in range(50)]
    shapes = Shapes()
    for texts in (several, lone):
        assert len({shapes.read(text)[0] for text in texts}) == 1
    assert all(shapes._cuts.values()), "some texts are read in full each time"
    for text in (*several, *lone):
        shape, parameters = shapes.read(text)
        assert shapes.templates[shape].fill(parameters) == parse(text)


def test_mistakes_in_texts_of_a_known_shape_are_where_they_were_made() -> None:
    shapes = Shapes()
    shapes.read("coalesce(a, 0) > 1 AND lower(b) LIKE 'x%'")
    wrong = r"coalesce(a, 0) > 1 AND lower(b) LIKE r'x\y'"
    for read in (shapes.read, parse):
        with pytest.raises(ExpressionError) as caught:
            read(wrong)
        assert (caught.value.text, caught.value.position) == (wrong, caught.value.position)
        assert "\1" not in str(caught.value)


def test_a_shape_that_is_not_plain_is_read_in_full_each_time() -> None:
    shapes = Shapes()
    for text in ("a ILIKE 'X%'", "b ILIKE 'y_'", "a < b", "c < d"):
        for _ in range(2):
            shape, parameters = shapes.read(text)
            assert shapes.templates[shape].fill(parameters) == parse(text)


def test_not_is_said_of_each_pattern_of_constants_too() -> None:
    texts = {
        "any": "'Zeta' NOT LIKE ANY ('%e%', 'z%')",
        "neither": "'Zeta' NOT LIKE ANY ('%e%', 'Z%')",
        "all": "'Zeta' NOT LIKE ALL ('%x%', 'z%')",
        "not all": "'Zeta' NOT LIKE ALL ('%e%', 'z%')",
        "without case": "initcap('zeta') NOT ILIKE SOME ('%e%', 'y%')",
        "denied twice": "NOT ('Zeta' NOT LIKE ANY ('%e%', 'Z%'))",
    }
    matcher = bittern.Matcher(bittern.Index.build(texts))
    [found] = matcher.match([{}]).to_pylist()
    assert sorted(found) == ["all", "any", "denied twice", "without case"]


def test_explain_shows_the_value_of_a_term() -> None:
    index = bittern.Index.build({"s": "coalesce(brand, 'none') = 'acme' AND low < high"})
    lines = str(bittern.explain(index, {"brand": "apex", "low": 1, "high": 2}, "s")).splitlines()
    assert lines[2:] == [
        "    coalesce(brand, 'none') = 'acme': false, coalesce(brand, 'none') is 'apex'",
        "    high > low: true, high is 2, low is 1",
    ]


def test_kinds_that_differ_are_listed() -> None:
    matcher = bittern.Matcher(bittern.Index.build({"s": "a < b"}))
    found = matcher.match([{"a": 1, "b": "x"}, {"a": 1, "b": 2}])
    assert found.to_pylist() == [[], ["s"]]
    assert [row for row, _ in found.mistyped] == [0]


#: A term over a = [TRUE, FALSE, NULL], n = [1, NULL, 1], the rows where it is 1, where it fails.
FAILING = [
    ("CASE WHEN a THEN 'x' ELSE 1 END", [1, 2], [0]),
    ("CASE WHEN a THEN 1 ELSE 'x' END", [0], [1, 2]),
    ("CASE WHEN a THEN 'x' WHEN NOT a THEN '1' ELSE n END", [1, 2], [0]),
    ("CASE WHEN a THEN 'x' WHEN NOT a THEN 'y' ELSE 1 END", [2], [0, 1]),
    ("CASE WHEN a THEN concat('x', 'y') ELSE 1 END", [1, 2], [0]),
    ("CASE WHEN a THEN s ELSE 1 END", [1, 2], [0]),
    ("CASE WHEN n = 1 THEN CASE WHEN a THEN 'x' ELSE 1 END ELSE 1 END", [1, 2], [0]),
    ("if(a, 'x', 1)", [1, 2], [0]),
    ("nvl2(n, 1, 'x')", [0, 2], [1]),
    ("coalesce(n, 'x')", [0, 2], [1]),
    ("coalesce(n, 'x', 1)", [0, 2], [1]),
    ("coalesce(nullif(n, 1), 'x')", [], [0, 1, 2]),
    ("nvl(n, 'x')", [0, 2], [1]),
    ("if(a IS NULL, 1 / 0, 1)", [0, 1], [2]),
    ("month(if(a, DATE '2024-01-02', 'x'))", [0], [1, 2]),
    ("if(a AND 1 / 0 > 1, 2, 1)", [1], [0, 2]),
    ("if(NOT a OR 1 / 0 > 1, 1, 2)", [1], [0, 2]),
    ("if(n IN (1, 1 / 0), 1, 2)", [0, 2], []),
    ("if(n IN (1 / 0, 1), 2, 1)", [1], [0, 2]),
    ("if(n BETWEEN 2 AND 1 / 0, 2, 1)", [0, 1, 2], []),
    ("coalesce(n + 1 / 0, 1)", [1], [0, 2]),
    ("coalesce(1 / (n - 1) / nullif(n, 1), 1)", [0, 1, 2], []),
    ("if(exists(array(1, 0), e -> a AND n / e = 1), 1, 2)", [0], [2]),
]


@pytest.mark.parametrize(("text", "ones", "failing"), FAILING)
def test_a_result_fails_only_the_rows_that_take_it(
    text: str, ones: list[int], failing: list[int]
) -> None:
    events = pa.table({"a": [True, False, None], "n": [1, None, 1], "s": ["x", "y", "z"]})
    columns = {name: events[name].combine_chunks() for name in events.column_names}
    _, failures = evaluate(read_term(text), columns, 3)
    assert sorted({int(row) for failure in failures for row in failure.rows}) == failing
    found = bittern.Matcher(bittern.Index.build({"s": f"{text} = 1"})).match(events)
    assert [row for row, ids in enumerate(found.to_pylist()) if ids] == ones
    assert sorted({row for row, _ in found.mistyped}) == failing


REPEATED = {
    "lower": "lower(brand) = 'acme'",
    "not": "NOT (lower(brand) = 'acme')",
    "like": "upper(brand) LIKE '%C%E' OR upper(brand) LIKE '%PE%'",
    "null": "substr(brand, 2) IS NULL",
    "no null": "coalesce(brand, 'x') = 'x'",
    "fails": "CAST(brand AS INT) > 3",
    "meaningless": "hour(brand) > 3 OR size(brand) > 1",
    "integers": "a % 3 = 1 AND a * 2 < 30",
    "exact": "a * 9000000000000000000 > 5",
    "days": "year(day) = 2024",
    "two": "concat(brand, a) = 'Acme4'",
    "floats": "string(f) = '-0.0'",
    "alone": "a < 3",
}


def test_values_that_many_events_share_are_computed_once() -> None:
    brands = ["Acme", None, "apex", "17", "", "ß"]
    days = [None, 0, 19_999]
    n = 5_000
    events = pa.table(
        {
            "brand": [brands[i // 7 % 6] for i in range(n)],
            "a": [None if i % 11 == 0 else i % 20 for i in range(n)],
            "day": pa.array([days[i % 3] for i in range(n)], pa.date32()),
            "f": [(0.0, -0.0, 1.5)[i % 3] for i in range(n)],
        }
    )
    matcher = bittern.Matcher(bittern.Index.build(REPEATED))
    whole = matcher.match(events)
    parts = [matcher.match(events.slice(i, 100)) for i in range(0, n, 100)]  # too few to repeat
    assert whole.to_pylist() == [ids for part in parts for ids in part.to_pylist()]
    assert {name for ids in whole.to_pylist() for name in ids} == {*REPEATED} - {"meaningless"}
    mistyped = [
        (event + 100 * at, reason)
        for at, part in enumerate(parts)
        for event, reason in part.mistyped
    ]
    assert whole.mistyped == mistyped
    assert len({reason for _, reason in mistyped}) > 1
