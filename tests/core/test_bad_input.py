"""Hostile and broken input: each kind has a documented meaning or a clear error.

An event that cannot be read is rejected, and the others of its batch do not notice; a batch that is
no batch at all is an ``EventError``; a subscription that cannot be taken is listed. Nothing else
may come out, whatever goes in.
"""

from __future__ import annotations

import collections
import datetime as dt
import json
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import oracle
import strategies
from answers import build, engine, expected
from bittern.errors import BitternError, EventError, SubscriptionError
from bittern.history import History
from bittern.language import limits
from bittern.language.parser import parse
from effort import examples

CATALOG = {
    "one": "a = 1",
    "text": "a = 'x' OR a LIKE 'x%' OR a LIKE '%x' OR a LIKE '%x_%' OR a RLIKE 'x$'",
    "there": "a IS NOT NULL",
    "null": "a IS NULL",
    "deep": "a.b.c = 1",
    "number": "a < 5 OR a >= 5",
    "time": "a < DATE '2020-01-01' OR a >= DATE '2020-01-01'",
}


@pytest.fixture(scope="module")
def matcher() -> bittern.Matcher:
    return bittern.Matcher(build(CATALOG))


# ------------------------------------------------------------------ batches that are none


@pytest.mark.parametrize(
    "events",
    [
        None,
        5,
        1.5,
        True,
        object(),
        b'{"a": 1}',
        bytearray(b"{}"),
        memoryview(b"{}"),
        {1, 2},
        iter([]),
        (event for event in [{"a": 1}]),
        np.array([1, 2]),
        pd.Series([1, 2]),
        pa.scalar(1),
        pa.array([1, 2]),
        pa.array([b"{}"]),
        pa.array([[{"a": 1}]]),
        pa.chunked_array([[1.5]]),
        pa.schema([("a", pa.int64())]),
        SimpleNamespace(a=1),
        dt.date(2024, 1, 1),
        int,
    ],
    ids=lambda events: f"{type(events).__name__} {str(events)[:11]!r}",
)
def test_what_is_no_batch_is_an_event_error(matcher: bittern.Matcher, events: Any) -> None:
    with pytest.raises(EventError, match="events"):
        matcher.match(events)
    with pytest.raises(EventError):
        bittern.Index.build(CATALOG, sample=events) if events is not None else matcher.match(events)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, "x"]}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [object(), object()]}),
    ],
    ids=["two types", "two columns of one name", "objects"],
)
def test_a_data_frame_that_arrow_cannot_hold_is_an_event_error(
    matcher: bittern.Matcher, frame: pd.DataFrame
) -> None:
    with pytest.raises(EventError, match="a"):
        matcher.match(frame)


@pytest.mark.parametrize(
    "event",
    [5, "x", 1.5, b"{}", [], [{"a": 1}], (), object(), True, {1}, dt.date(2024, 1, 1), math.nan],
    ids=lambda event: repr(event)[:16],  # without an address, which no two processes share
)
def test_an_event_that_is_no_mapping_is_rejected_alone(
    matcher: bittern.Matcher, event: Any
) -> None:
    matches = matcher.match([{"a": 1}, event, {"a": 2}])
    assert [row for row, _ in matches.rejects] == [1]
    assert any(word in matches.rejects[0][1] for word in ("mapping", "JSON", "object"))
    assert matches.to_pylist() == [["one", "there", "number"], [], ["there", "number"]]
    assert matcher.last_statistics["rejects"] == 1


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "{",
            "}",
            "[]",
            "[1]",
            "null",
            "5",
            '"x"',
            "{]",
            '{"a"}',
            '{"a":}',
            '{"a":1,}',
            "{'a': 1}",
        ),
        *(
            '{"a": 01}',
            '{"a": NaN}',
            '{"a": Infinity}',
            '{"a": 1} x',
            '{"a": 1}{"a": 1}',
            '{"a": "\n"}',
            "\x00",
        ),
        *(
            '{"a": "\\ud800"}',
            '{"a": "\\x"}',
            '{"a": tru}',
            '{"a": 1e}',
            '{"a": .5}',
            '{"a": +1}',
            "\ufeff{}",
        ),
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"a": "' + "x" * 1_000_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_broken_json_is_rejected_alone(matcher: bittern.Matcher, text: str) -> None:
    for events in (['{"a": 1}', text, '{"a": 1}'], pa.array(['{"a": 1}', text, '{"a": 1}'])):
        matches = matcher.match(events)
        assert [row for row, _ in matches.rejects] == [1]
        assert matches.to_pylist() == [
            ["one", "there", "number"],
            [],
            ["one", "there", "number"],
        ]


def test_half_a_surrogate_pair_rejects_its_own_event_only(matcher: bittern.Matcher) -> None:
    good = ["one", "there", "number"]
    for broken in ('{"a": "\ud800"}', '{"\udfff": 1}', "\ud800"):
        matches = matcher.match(['{"a": 1}', broken, '{"a": 1}'])
        assert matches.to_pylist() == [good, [], good]
        assert [row for row, _ in matches.rejects] == [1]
    matches = matcher.match([{"a": 1}, {"a": "\ud800"}, {"a": 1}])
    assert matches.to_pylist() == [good, [], good]
    assert [row for row, _ in matches.rejects] == [1]
    matches = matcher.match([{"\ud800": 1, "a": 1}, {"other": "\ud800", "a": 1}])
    assert matches.to_pylist() == [good, good]


def test_a_rejected_event_leaves_no_values_behind() -> None:
    catalog = {"a": "a = 1", "d": "d = 0.5", "s": "s = 'x'", "null": "s IS NULL"}
    event = {"a": 1, "d": Decimal("0.5"), "s": "\ud800"}
    matches = bittern.Matcher(build(catalog)).match([event, {"s": "x"}, event])
    assert matches.to_pylist() == [[], ["s"], []]
    assert [row for row, _ in matches.rejects] == [0, 2]


# ------------------------------------------------------------------ values

JUNK: list[Any] = [
    *(
        [],
        [[]],
        [None],
        {},
        {"b": {}},
        {"b": {"c": None}},
        {"b": [1]},
        (),
        (1, 2),
        set(),
        frozenset([1]),
    ),
    *(
        b"x",
        bytearray(b"x"),
        object(),
        int,
        len,
        ...,
        1j,
        Fraction(1, 2),
        range(3),
        dt.time(5),
        dt.timedelta(5),
    ),
    *(
        np.array([1, 2]),
        np.array(5),
        np.complex128(1j),
        np.void(b"x"),
        np.bytes_(b"x"),
        np.longdouble(1),
    ),
    *(pd.Timedelta(5), pd.Period("2024"), pd.Interval(0, 1), pa.scalar(1), collections.deque([1])),
    *(SimpleNamespace(a=1), Exception("x"), np.timedelta64(5, "s"), np.timedelta64(5, "ns")),
]


@pytest.mark.parametrize(
    "value", JUNK, ids=lambda value: f"{type(value).__name__} {str(value)[:20]!r}"
)
def test_values_of_other_types_are_there_and_no_more(matcher: bittern.Matcher, value: Any) -> None:
    matches = matcher.match([{"a": value}, {"a": 1}, {"b": value}])
    first, *others = matches.to_pylist()
    assert others == [["one", "there", "number"], ["null"]]
    assert first == ["there"]
    assert matches.rejects == []


@pytest.mark.parametrize(
    "key", [1, None, b"a", 1.5, ("a",), True, frozenset(), np.int64(3)], ids=repr
)
def test_keys_that_are_no_strings_are_not_looked_at(matcher: bittern.Matcher, key: Any) -> None:
    assert matcher.match([{key: 1, "a": 1}, {key: {"a": 1}}]).to_pylist() == [
        ["one", "there", "number"],
        ["null"],
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_of_millions_of_digits(sign: int) -> None:
    """Neither to print all digits nor to convert them to a decimal, which would take hours."""
    value = sign << 10_000_000
    subscriptions = {"large": "a > 5", "term": "a * 2 > 5", "member": "a IN SET s", "low": "-a > 5"}
    index = bittern.Index.build(subscriptions, sets={"s": [1, 10**30]})
    expected = ["large", "term"] if sign > 0 else ["low"]
    events = [{"a": value}, {"a": 1, "b": [value]}]
    matcher = bittern.Matcher(index)
    assert matcher.match(events).to_pylist() == [expected, ["member"]]
    assert matcher.match(events[0]).to_pylist() == [expected]
    assert value not in index.sets["s"]
    assert "e+3010299" in str(bittern.explain(index, events[0], "large"))
    with pytest.raises(bittern.errors.OptionError, match=r"9\.04982e\+3010299"):
        matcher.match(events, limit=-abs(value))
    with pytest.raises(bittern.errors.OptionError, match=r"9\.04982e\+3010299"):
        bittern.Index.build({}, stabbing="auto", stabbing_memory=-abs(value))
    bittern.Index.build({}, stabbing="auto", stabbing_memory=abs(value))
    with pytest.raises(IndexError, match=r"9\.04982e\+3010299"):
        matcher.match(events).ids(value)


def test_huge_strings(matcher: bittern.Matcher) -> None:
    huge = "x" * 10_000_000
    catalog = {
        **CATALOG,
        "long": f"a LIKE '{'x' * 1000}%' AND a NOT LIKE '%y%'",
        "exact": f"a = '{'x' * 50_000}'",
    }
    events = [{"a": huge}, {"a": "y" + huge}, {huge: huge}, {"a": "x" * 50_000}]
    right = [
        ["text", "there", "long"],
        ["text", "there"],
        ["null"],
        ["text", "there", "long", "exact"],
    ]
    assert engine(catalog, events) == right
    assert engine(catalog, [json.dumps(event) for event in events]) == right
    column = pa.array([huge, "y" + huge, None, "x" * 50_000])
    assert engine(catalog, pa.table({"a": column})) == right


def test_ten_thousand_attributes_in_one_event() -> None:
    names = [f"a{n}" for n in range(10_000)]
    catalog = {
        "last": "a9999 = 9999",
        "first": "a0 = 0 AND a1 = 1",
        "none": "a10000 IS NULL",
        "no": "a5 = 6",
    }
    event = {name: n for n, name in enumerate(names)}
    right = [["last", "first", "none"]]
    assert engine(catalog, event) == right
    assert engine(catalog, json.dumps(event)) == right
    assert engine(catalog, pa.Table.from_pylist([event])) == right
    as_map = pa.array([list(event.items())], pa.map_(pa.string(), pa.int64()))
    assert engine(catalog, pa.table({"m": as_map})) == right
    index = build({name: f"{name} = {n}" for n, name in enumerate(names)})
    assert bittern.Matcher(index).match(event).to_pylist() == [names]


def nest(depth: int, value: Any, key: str = "a") -> Any:
    for _ in range(depth):
        value = {key: value}
    return value


@pytest.mark.parametrize("depth", [1, 10, 60, 63, 64, 65, 70, 500, 100_000])
def test_deeply_nested_events(depth: int) -> None:
    """Up to 60 levels are read; what lies deeper is not there, or rejects the text."""
    catalog = {f"{n}": ".".join("a" * n) + " = 1" for n in (1, 10, 60)}
    right = [str(depth)] if str(depth) in catalog else []
    event = nest(depth, 1)
    assert engine(catalog, event) == [right]
    text = '{"a":' * depth + "1" + "}" * depth
    matches = bittern.Matcher(build(catalog)).match([text, '{"a": 1}'])
    assert matches.to_pylist() == [right, ["1"]]
    assert [row for row, _ in matches.rejects] in ([], [0])
    while isinstance(event, dict):  # not by the garbage collector's recursion
        event = event.pop("a")


def test_a_mapping_that_holds_itself() -> None:
    event: dict[str, Any] = {"b": 1}
    event["a"] = event
    catalog = {"near": "b = 1", "far": "a.a.a.b = 1", "there": "a.a.a.a IS NOT NULL"}
    assert engine(catalog, event) == [["near", "far", "there"]]


@pytest.mark.parametrize(
    "value",
    [
        *(
            Decimal("1e999999999999"),
            Decimal("-1e999999999999"),
            Decimal("1e-999999999999"),
            Decimal("1e100000"),
        ),
        *(
            Decimal("-1e-100000"),
            Decimal("0e999999999999"),
            Decimal("9" * 5000),
            Decimal("0." + "1" * 5000),
        ),
        *(
            10**5000,
            -(10**5000),
            2**64,
            Decimal("1e400"),
            Decimal("1e-400"),
            Decimal("1e308"),
            Decimal("1e-330"),
        ),
    ],
    ids=lambda value: (
        format(value, ".5g") if isinstance(value, Decimal) else f"{value.bit_length()} bits"
    ),
)
def test_numbers_beyond_all_measure(value: Any) -> None:
    largest = Decimal(repr(sys.float_info.max))
    catalog = {
        "huge": "a > 1.7976931348623157e308",
        "large": "a > 1",
        "positive": "a > 0",
        "tiny": "a < 5e-324",
        "zero": "a = 0",
        "negative": "a < 0",
        "low": "a < -1.7976931348623157e308",
    }
    thresholds = {
        "huge": value > largest,
        "large": value > 1,
        "positive": value > 0,
        "tiny": value < Decimal("5e-324"),
        "zero": value == 0,
        "negative": value < 0,
        "low": value < -largest,
    }
    assert engine(catalog, {"a": value}) == [[name for name, holds in thresholds.items() if holds]]


def test_many_exact_numbers_against_many_constants() -> None:
    """Neither Decimals nor integers beyond 64 bits cost a pass over all constants each."""
    catalog = {n: f"a = {n}.5" for n in range(3000)}
    events: list[dict[str, Any]] = [{"a": Decimal(n) / 2} for n in range(3000)]
    events += [{"a": 2**70 + n} for n in range(100)]
    matches = bittern.Matcher(build(catalog)).match(events)
    right = [[n // 2] if n % 2 else [] for n in range(3000)] + [[]] * 100
    assert matches.to_pylist() == right
    column = pa.array([event["a"] for event in events[:3000]], pa.decimal256(60, 20))
    assert (
        bittern.Matcher(build(catalog)).match(pa.table({"a": column})).to_pylist() == right[:3000]
    )


def test_moments_at_the_ends_of_the_calendar(matcher: bittern.Matcher) -> None:
    east, west = dt.timezone(dt.timedelta(hours=14)), dt.timezone(dt.timedelta(hours=-12))
    values = [
        *(
            dt.datetime(1, 1, 1),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
            dt.datetime(1, 1, 1, tzinfo=east),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=west),
        ),
        *(dt.date.min, dt.date.max, pd.Timestamp.min, pd.Timestamp.max, pd.Timestamp("1600-01-01")),
        *(np.datetime64("290000-01-01", "us"), np.datetime64("-200000-01-01", "D")),
    ]
    for value in values:
        assert matcher.match({"a": value}).to_pylist() == [["there", "time"]], value


any_value = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.decimals(),
        st.text(st.characters()),
        st.binary(),
        st.datetimes(timezones=st.one_of(st.none(), st.timezones())),
        st.dates(),
        st.complex_numbers(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(["a", "b", "c", "x"]), st.text(), st.integers()),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


@examples(3)
@given(st.lists(any_value, max_size=6))
def test_anything_at_all_in_a_list(values: list[Any]) -> None:
    """Nothing but an answer comes out; what is not rejected is as the oracle says."""
    index = _JUNK_INDEX
    for events in (values, [{"a": value, "n": {"x": value}} for value in values]):
        if events and all(isinstance(event, str) for event in events):
            continue  # JSON texts
        matches = bittern.Matcher(index).match(events)
        rejected = {row for row, _ in matches.rejects}
        for row, (event, ids) in enumerate(zip(events, matches.to_pylist(), strict=True)):
            if row in rejected:
                assert ids == []
                continue
            known = event if isinstance(event, dict) else {}
            if not _has_signalling_nan(known):
                assert ids == [
                    id_ for id_, tree in _JUNK_TREES.items() if oracle.matches(tree, known)
                ]


def _has_signalling_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_signalling_nan, value.values()))
    return isinstance(value, Decimal) and value.is_snan()


_JUNK_CATALOG = CATALOG | {
    "inner": "n.x = 1 OR n.x.b = 'x'",
    "many": "a IN (0, 1, 1.5, 'a', TRUE, DATE '2000-01-01')".replace(
        ", 'a', TRUE, DATE '2000-01-01'", ""
    ),
    "not": "NOT (a > 0.5 AND n.x < 1e300)",
    "flag": "a OR NOT n.x",
}
_JUNK_INDEX = bittern.Index.build(_JUNK_CATALOG)
_JUNK_TREES = {id_: parse(text) for id_, text in _JUNK_CATALOG.items()}


@given(
    st.lists(
        st.one_of(st.text(), st.sampled_from(['{"a": 1}', "{}", '{"a": {"b": {"c": 1}}}'])),
        max_size=6,
    )
)
def test_any_texts_in_a_list(texts: list[str]) -> None:
    matches = bittern.Matcher(_JUNK_INDEX).match(texts)
    rejected = {row for row, _ in matches.rejects}
    for row, text in enumerate(texts):
        try:
            event = json.loads(text, parse_constant=lambda _: 1 / 0)
            text.encode()
        except (ValueError, ZeroDivisionError, RecursionError):
            event = None
        assert (row in rejected) == (not isinstance(event, dict)), text


# ------------------------------------------------------------------ subscriptions

BOMBS = {
    "nested parentheses": "(" * 100_000 + "a = 1" + ")" * 100_000,
    "nested NOT": "NOT " * 100_000 + "a = 1",
    "open parentheses": "(" * 60_000,
    "too long": "a = 1 OR " * 10_000 + "a = 1",
    "too many predicates": " OR ".join(["a=1"] * 5000),
    "a long list": f"a IN ({', '.join(str(n) for n in range(5000))})",
    "a long string": "a = '" + "x" * 70_000 + "'",
    "an open string": "a = '" + "x" * 60_000,
    "a huge number": "a = " + "9" * 60_000,
    "a huge exponent": "a = 1e999999999",
    "a long decimal": "a = 0." + "1" * 100,
    "a long regex": f"a RLIKE '{'x' * 2000}'",
    "a regex that explodes": "a RLIKE '((((x{100}){100}){100}){100})'",
    "a regex that repeats": "a RLIKE '(x{1000}){1000}'",
    "a broken regex": "a RLIKE '[z-a]'",
    "look-around": "a RLIKE '(?=x)'",
    "a back reference": r"a RLIKE '(x)\\1'",
    "nothing": "",
    "spaces": " \n\t ",
    "zeros": "\x00",
    "a comment": "-- a = 1",
    "a semicolon": "a = 1; DROP TABLE subscriptions",
    "a function": "sleep(10)",
    "half a pair": "a = '\ud800'",
    "a name of half a pair": "`\ud800` = 1",
    "two types": "a = 'x' AND a BETWEEN 1 AND 'z'",
    "a date that is none": "a = DATE '2024-02-30'",
}


def test_bombs_come_back_as_bad_subscriptions() -> None:
    catalog = {**BOMBS, "good": "a = 1"}
    index = build(catalog, on_error="skip")
    assert [bad.id for bad in index.bad] == list(BOMBS)
    assert index.ids.to_pylist() == ["good"]
    for bad in index.bad:
        assert 0 <= bad.position <= len(BOMBS[str(bad.id)])
        assert 0 < len(bad.message) < 500
    with pytest.raises(SubscriptionError) as caught:
        bittern.Index.build(catalog)
    assert len(str(caught.value)) < 10_000


def test_the_largest_expressions_that_are_allowed() -> None:
    catalog = {
        "deep": "(" * (limits.MAX_DEPTH - 1) + "a = 1" + ")" * (limits.MAX_DEPTH - 1),
        "not": "NOT " * (limits.MAX_DEPTH - 1) + "a = 1",
        "and": " AND ".join(f"a != {n}" for n in range(2, 2002)),
        "or": " OR ".join(f"b{n} = 1" for n in range(2000)) + " OR a = 1",
        "in": f"a IN ({', '.join(str(n) for n in range(limits.MAX_PREDICATES))})",
        "not in": f"a NOT IN ({', '.join(str(n) for n in range(2, limits.MAX_PREDICATES))})",
        "cnf": " AND ".join(f"(a = {n} OR a = 1 OR b{n} = 2)" for n in range(600)),
        "dnf": " OR ".join(f"(a = 1 AND b{n} = {n})" for n in range(600)),
    }
    events = [
        {"a": 1},
        {"a": 1, "b7": 7},
        {"a": 3},
        {"b1999": 1},
        {f"b{n}": 2 for n in range(600)},
        {},
    ]
    right = expected(catalog, events)
    assert engine(catalog, events) == right
    assert engine(catalog, events, strategy="scan") == right


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("(x+x+)+y", "x" * 100_000),
        ("(a|aa)+$", "a" * 100_000 + "b"),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        ("(.*)(.*)(.*)(.*)(.*)[0-9]", "x" * 20_000),
    ],
)
def test_regexes_that_backtrack_elsewhere_are_quick_here(pattern: str, value: str) -> None:
    assert engine({"r": f"a RLIKE '{pattern}'", "n": f"a NOT RLIKE '{pattern}'"}, {"a": value}) == [
        ["n"]
    ]


def test_like_patterns_of_many_wildcards() -> None:
    catalog = {"yes": f"a LIKE '{'%x' * 300}%'", "no": f"a LIKE '{'%x_' * 300}y'"}
    assert engine(catalog, {"a": "x" * 20_000}) == [["yes"]]


def test_contradictions_and_tautologies_are_subscriptions_like_others() -> None:
    catalog = {
        "never": "a > 5 AND a < 3",
        "empty range": "a BETWEEN 5 AND 3",
        "false": "FALSE",
        "always": "TRUE",
        "either": "a IS NULL OR a IS NOT NULL",
        "both": "a IS NULL AND a IS NOT NULL",
        "numbers": "a < 5 OR a >= 5",
    }
    index = build(catalog)
    assert len(index) == len(catalog)
    found = bittern.Matcher(index).match([{}, {"a": 1}, {"a": "x"}]).to_pylist()
    assert found == [["always", "either"], ["always", "either", "numbers"], ["always", "either"]]


@given(strategies.free_events())
def test_events_are_never_changed(event: dict[str, Any]) -> None:
    before = repr(event)
    bittern.Matcher(_JUNK_INDEX).match([event])
    assert repr(event) == before


# ------------------------------------------------------------------ integers that Python prints not

LONG = 10**5000


@pytest.mark.parametrize(
    "call",
    [
        lambda matcher: matcher.match([], limit=-LONG),
        lambda matcher: matcher.match([], limit=[LONG]),
        lambda matcher: matcher.match([], json=[LONG]),
        lambda _: bittern.Index.build({LONG: "a = 1"}),
        lambda _: bittern.Index.build([LONG]),
        lambda _: bittern.Index.build([("a", "a = 1", LONG)]),
        lambda _: bittern.Index.build({}, strategy=LONG),
        lambda _: bittern.Index.build({}, stabbing=LONG),
        lambda _: bittern.Index.build({}, parameters=[LONG]),
        lambda _: bittern.Index.build({}, on_error=LONG),
        lambda _: bittern.LiveMatcher().subscribe(LONG, "a = 1"),
        lambda _: bittern.LiveMatcher().subscribe("a", LONG),
        lambda _: bittern.LiveMatcher().unsubscribe(LONG),
        lambda matcher: matcher.index.expression(LONG),
        lambda _: bittern.parse(LONG),
        lambda _: History(LONG),
        lambda _: History().expire(LONG),
        lambda _: History(keep=-LONG),
        lambda _: History(keep=LONG),
        lambda _: History(keep=2**63),
        lambda _: bittern.Intervals.build([1], [2], closed=LONG),
        lambda _: bittern.Intervals.build([1], [2], structure=LONG),
        lambda _: bittern.Intervals.build([1], [2], structure="cei", segment=LONG),
        lambda _: bittern.Intervals.build([1], [2], structure="sci", longest=LONG),
        lambda _: bittern.Intervals.build([1], [2], structure="is-list", branching=LONG),
        lambda _: bittern.Intervals.build([1], [2], structure="cluster", minimum=LONG),
        lambda _: bittern.Intervals.build([1], [2], structure="auto", memory=-LONG),
    ],
)
def test_long_integers_are_refused_in_words(
    matcher: bittern.Matcher, call: Callable[[bittern.Matcher], Any]
) -> None:
    with pytest.raises(BitternError) as refused:
        call(matcher)
    assert len(str(refused.value)) < 400


def test_long_integers_are_values_like_others(matcher: bittern.Matcher) -> None:
    assert matcher.match({"a": LONG}).to_pylist() == [["there", "number"]]
    assert "a is 1.00000e+5000" in str(bittern.explain(matcher.index, {"a": LONG}, "number"))


def test_the_most_documents_that_can_be_kept() -> None:
    index = build({"less": "EXISTS d (d.a > a)"})
    with History(keep=2**63 - 1) as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.match([{"a": 2}, {"a": 1}]).to_pylist() == [[], ["less"]]


# ------------------------------------------------------------------ costly expressions


def test_a_long_disjunction_over_one_attribute_is_a_candidate_once_per_event() -> None:
    catalog = {"below": " OR ".join(f"a < {k}" for k in range(1, 2000))}
    matcher = bittern.Matcher(build(catalog))
    assert matcher.match([{"a": 5}] * 10).to_pylist() == [["below"]] * 10
    assert matcher.last_statistics["candidates"] == 10


def test_overlapping_and_touching_intervals_are_united() -> None:
    catalog = {
        "two": "a < 5 OR a < 7 OR a = 7",
        "gap": "a BETWEEN 1 AND 3 OR a BETWEEN 5 AND 6 OR a BETWEEN 2 AND 4 OR b = 1",
        "all": "a != 1 OR a != 2",
        "strings": "s < 'b' OR s LIKE 'b%' OR s = 'bz' OR a = 3 OR a = 3",
    }
    events = [{"a": k} for k in range(9)] + [{"a": 3.5}, {"b": 1, "a": 2}, {"s": "ba"}, {"s": "c"}]
    assert engine(catalog, events) == expected(catalog, events)


def test_a_general_like_pattern_has_a_limit() -> None:
    with pytest.raises(SubscriptionError, match="LIKE pattern with wildcards inside"):
        bittern.Index.build({"s": f"a LIKE '%{'a' * 2000}_b%'"})
    bittern.Index.build({"s": f"a LIKE '%{'a' * 2000}%'"})
