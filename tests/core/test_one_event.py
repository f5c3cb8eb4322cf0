"""One event at a time: one compiled call finds what a batch finds, or leaves it to the batch."""

from __future__ import annotations

import copy
import datetime as dt
import json
import math
import os
import pickle
import threading
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import oracle
from bittern.engine.matcher import FEW, StateMatcher
from bittern.engine.one_event.matcher import OneEvent
from bittern.engine.one_event.patterns import LAST_VALUE
from bittern.engine.one_event.table import VALUES
from bittern.jit import Kernel
from bittern.language.printer import print_expression
from bittern.model.events.derived import one_row
from bittern.model.matches import Subscribers
from bittern.model.patterns.sets import PatternSet
from effort import chosen_seed, examples
from strategies import catalogs, free_events, free_expressions

_whole = StateMatcher.match


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the calls that were left to the batch."""
    calls: Counter[str] = Counter()

    def counted(self: StateMatcher, events: Any, **options: Any) -> Any:
        calls["batch"] += 1
        return _whole(self, events, **options)

    monkeypatch.setattr(StateMatcher, "match", counted)
    return calls


def seen(matches: Any, statistics: dict[str, int]) -> Any:
    """All that a caller can see of a call with one event."""
    return (
        matches.to_pylist(),
        matches.rejects,
        matches.mistyped,
        matches.counts.tolist(),
        matches.candidates.tolist(),
        len(matches),
        statistics,
        matches.offsets.tolist(),
    )


def same_as_the_batch(matcher: Any, event: Any) -> list[list[Any]]:
    """Match an event alone, in a list of two, and in a batch of two."""
    alone = seen(matcher.match(event), matcher.last_statistics)
    few = seen(matcher.match([event, event]), matcher.last_statistics)
    live = isinstance(matcher, bittern.LiveMatcher)
    state, sets = matcher.sealed_with_sets() if live else (matcher._state, matcher._sets)
    batch = StateMatcher(state, None, sets)
    both = _whole(batch, [event, event])
    whole = both.to_pylist()
    assert few == seen(both, batch.last_statistics)
    assert alone[0] == whole[:1] == whole[1:]
    assert alone[1] == both.rejects[:1]
    assert alone[2] == both.mistyped[:1]
    assert alone[3] == both.counts[:1].tolist()
    assert alone[4] == both.candidates[:1].tolist()
    assert alone[5] == 1
    assert {name: 2 * n for name, n in alone[6].items()} == batch.last_statistics
    return alone[0]


def as_json(event: Any) -> str | None:
    """The event as JSON text, if it can be written without a loss."""

    def is_plain(value: Any) -> bool:
        if isinstance(value, dict):
            return all(map(is_plain, value.values()))
        return isinstance(value, str | bool | list | None) or (
            isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        )

    try:
        text = json.dumps(event, ensure_ascii=len(event) % 2 == 0) if is_plain(event) else None
        return None if text is None else text.encode().decode()
    except UnicodeEncodeError:
        return None


@examples(2)
@given(
    catalogs(free_expressions(3)), st.lists(free_events(), min_size=1, max_size=5), st.booleans()
)
def test_it_finds_what_a_batch_and_the_oracle_find(catalog, events, changed) -> None:
    index = bittern.Index.build({id_: print_expression(tree) for id_, tree in catalog.items()})
    matcher: Any = bittern.Matcher(index)
    assert matcher._state.segments[0].one_event is not None
    if changed:
        half = dict(list(catalog.items())[::2])
        matcher = bittern.LiveMatcher(
            bittern.Index.build({id_: print_expression(tree) for id_, tree in half.items()})
        )
        for id_, tree in catalog.items():
            if id_ not in half:
                matcher.subscribe(id_, print_expression(tree))
        for id_ in list(catalog)[::3]:
            matcher.unsubscribe(id_)
        catalog = {id_: tree for n, (id_, tree) in enumerate(catalog.items()) if n % 3}
    for event in events:
        right = sorted(id_ for id_, tree in catalog.items() if oracle.matches(tree, event))
        assert sorted(same_as_the_batch(matcher, event)[0]) == right
        text = as_json(event)
        if text is not None:
            read = json.loads(text)
            right = sorted(id_ for id_, tree in catalog.items() if oracle.matches(tree, read))
            found = same_as_the_batch(matcher, text)[0]
            if not matcher.match(text).rejects:
                assert sorted(found) == right


SHOP = {
    "cheap": "price < 10",
    "red": "color = 'red' AND price >= 2.5",
    "either": "size = 3 OR color = 'tan' OR price > 90",
    "ends": "name LIKE '%s' AND sold",
    "none": "color IS NULL",
    "then": "seen >= TIMESTAMP '2026-01-31 08:00:00'",
    "deep": "car.doors = 3",
    "huge": "weight > 1234567890123456789 OR weight = 0.1",
}


@pytest.fixture(scope="module")
def shop() -> bittern.Index:
    return bittern.Index.build(SHOP)


SERVED = [
    {},
    {"price": 5, "color": "red"},
    {"price": 5.5, "color": "red", "x": object()},
    {"price": 1e300, "color": "tan", "size": 3},
    {"name": "glas", "sold": True},
    {"name": "größs", "sold": True, "color": "日本"},
    {"name": "größ", "sold": False},
    {"price": None, "color": None},
    {"price": math.nan},
    {"price": -0.0},
    {"seen": dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)},
    {"seen": dt.datetime(2026, 1, 31, 7, 59, 59, 999999)},
    {"car": {"doors": 3, "color": "red"}},
    {"car": {"doors": None}, "color": "x" * 5000},
    {"car": 5},
    {"weight": 2**63 - 1},
    {1: 2, "price": 3},
    '{"price": 5, "color": "red"}',
    '{"price": 0.1234567890123456789, "weight": 12345678901234567891, "size": 3}',
    '{"weight": 1e999, "price": -1E-400}',
    '{"weight": 0.10000000000000000555111512312578270211815834045410156250}',
    '{"color": "\\u0072ed", "price": 7, "name": "\\ud83d\\ude00s", "sold": true}',
    '{"price": 5, "price": 95, "color": null, "co\\u006cor": "tan"}',
    ' {"car" : {"doors": 3 , "x": [1, {"y": [[]]}]} } ',
    '{"x": "' + "é" * 3000 + '", "price": 5}',
]
LEFT_TO_THE_BATCH = [
    {"price": "5"},
    {"price": Decimal("2.5"), "color": "red"},
    {"weight": 2**70},
    {"seen": dt.date(2026, 2, 1)},
    {"color": "\ud800"},
    {"price": np.float64(5)},
    {"car": [{"doors": 3}]},
    {"color": ["red"]},
    "",
    "{",
    "[]",
    "nul",
    '{"price": 05}',
    '{"color": "\ud800"}',
    '{"color": "\\ud800"}',
    '{"color": "a\nb"}',
    '{"price": 5} {}',
    '{"a":' * 70 + "1" + "}" * 70,
    '{"price": "5"}',
    '{"car": [{"doors": 3}], "price": 5}',
]


@pytest.mark.parametrize("event", SERVED, ids=lambda event: repr(event)[:40])
def test_it_serves(shop, batches, event) -> None:
    bittern.Matcher(shop).match(event)
    assert not batches
    same_as_the_batch(bittern.Matcher(shop), event)


@pytest.mark.parametrize("event", LEFT_TO_THE_BATCH, ids=lambda event: repr(event)[:40])
def test_it_leaves_to_the_batch(shop, batches, event) -> None:
    bittern.Matcher(shop).match(event)
    assert batches["batch"] == 1
    same_as_the_batch(bittern.Matcher(shop), event)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("my_own(price) > 8", {"functions": "spark"}),
        ("price < 3", {"strategy": "scan"}),
        ("price < 3", {"stabbing": "interval-tree"}),
    ],
)
def test_indexes_that_need_batches(batches, more, options) -> None:
    index = bittern.Index.build(SHOP | {"more": more}, **options)
    assert bittern.Matcher(index)._state.segments[0].one_event is None
    if "functions" not in options:
        same_as_the_batch(bittern.Matcher(index), {"price": 5, "name": "a lamp"})
        assert batches["batch"] == 2


#: Terms on the attributes of free events: a number, b string, c time, d boolean, m of any kind.
TERMS = {
    "product": "a * 2 > 8",
    "sum of others": "a + n.x BETWEEN -3 AND 9",
    "whole": "length(b) + a >= 3",
    "lower": "lower(b) = 'ab'",
    "ilike": "b ILIKE '%A%'",
    "patterns": "upper(b) LIKE '%A%B%' OR upper(b) RLIKE 'A.?B'",
    "reversed": "trim(b) LIKE '%a'",
    "decimal": "a * 1.10 = 1.1",
    "cast": "CAST(b AS INT) > 0",
    "tried": "try_cast(b AS DOUBLE) < 5",
    "divided": "1 / a < 3",
    "first": "coalesce(a, n.x, 7) = 7",
    "null": "coalesce(b, 'none') = 'none'",
    "mixed": "coalesce(m, 1) = 1",
    "own": "concat(m, 'x') = 'ax'",
    "case": "CASE WHEN a > 3 THEN b ELSE 'low' END = 'low'",
    "two": "a = n.x OR b != n.`y.z`",
    "same": "m <=> NULL AND a IS NOT NULL",
    "year": "year(c) = 2026",
    "cut": "date_trunc('MONTH', c) < c",
    "truth": "d AND NOT d = (a > 1)",
    "array": "array_contains(l, 3) OR size(l) = 2",
    "missing": "a IS MISSING OR n.x IS NOT MISSING AND b IS MISSING",
    "numbers": "a IN SET numbers",
    "texts": "b IN SET texts AND NOT m IN SET texts",
    "times": "c IN SET times",
    "of a term": "lower(b) IN SET texts",
    "plain": "a > 1",
}
TERM_SETS = {
    "numbers": [1, 2, 0.5, -0.0, 2**70],
    "texts": ["ab", "a", "", "ß"],
    "times": [dt.datetime(2026, 1, 31, tzinfo=dt.UTC)],
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "a": st.sampled_from([0, 1, 2, 5, -0.0, 0.5, 1e300, math.nan, 2**62, 2**70, Decimal("1.5")]),
    "b": st.sampled_from(["ab", "AB", "a", "", "3", " a", "ß", "x" * 300, "İ", "a\nb"]),
    "c": st.sampled_from([dt.datetime(2026, 1, 31, tzinfo=dt.UTC), dt.datetime(2025, 7, 1, 8)]),
    "d": st.booleans(),
    "m": st.sampled_from([1, 1.0, "a", "ab", True, [1], {"x": 1}]),
    "n": st.sampled_from([{"x": 1}, {"x": None}, {"x": 7.5, "y.z": "ab"}, {}, [], 3]),
    "l": st.sampled_from([[3, 4], [], "no", [[1]]]),
}
_TERM_EVENTS = st.fixed_dictionaries(
    {}, optional={name: st.none() | st.one_of(values, values) for name, values in _VALUES.items()}
)


@pytest.fixture(scope="module")
def terms() -> bittern.Index:
    return bittern.Index.build(TERMS, sets=TERM_SETS)


@examples(2)
@given(st.sets(st.sampled_from(sorted(TERMS)), min_size=1), st.lists(_TERM_EVENTS, min_size=1))
def test_terms_find_what_a_batch_finds(chosen, events) -> None:
    index = bittern.Index.build({name: TERMS[name] for name in sorted(chosen)}, sets=TERM_SETS)
    matcher = bittern.Matcher(index)
    assert matcher._state.segments[0].one_event is not None
    for event in events:
        same_as_the_batch(matcher, event)
        if (text := as_json(event)) is not None:
            same_as_the_batch(matcher, text)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"a": 3, "b": "40"},
        {"a": 3.5, "b": "3", "n": {"x": 1, "y.z": "3"}},
        {"a": None, "b": None, "n": None},
        {"b": "5", "c": dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "d": True, "a": 1},
        {"x": object(), "a": 2},
        '{"a": 1.00000000000000000000000001, "b": "1\\u0030", "n": {"x": null}}',
        '{"a": null, "n": null, "b": "17", "a": 2}',
        "{}",
    ],
    ids=lambda event: repr(event)[:16],  # without an address, which no two processes share
)
def test_terms_are_served(terms, batches, event) -> None:
    matcher = bittern.Matcher(terms)
    matcher.match(event)
    assert not batches
    for _ in range(2):  # what is kept is right as well
        same_as_the_batch(matcher, event)


@pytest.mark.parametrize(
    "event",
    [{"a": 0}, {"b": "x"}, {"l": [3]}, {"n": [1]}, {"m": {"x": 1}}, {"a": 2**70}, '{"b": "x"}'],
    ids=repr,
)
def test_terms_without_a_value_are_left_to_the_batch(terms, batches, event) -> None:
    matcher = bittern.Matcher(terms)
    for turn in range(1, 3):
        matcher.match(event)
        assert batches["batch"] == turn
    same_as_the_batch(matcher, event)


def test_a_hidden_attribute_is_none_of_an_event(terms, batches) -> None:
    matcher = bittern.Matcher(terms)
    names = [name for name in terms.encoder.numbers if ord(name[0]) < 32]
    assert len(names) > 20
    event = dict.fromkeys(names, "ab") | {"a": 5}
    assert matcher.match(event).to_pylist() == matcher.match({"a": 5}).to_pylist()
    assert matcher.match(json.dumps(event)).to_pylist() == matcher.match({"a": 5}).to_pylist()
    assert not batches


def test_what_is_kept_of_terms_is_bounded(terms, monkeypatch) -> None:
    monkeypatch.setattr(one_row, "_MOST_KEPT", 5)
    monkeypatch.setattr(one_row, "_MOST_PLANS", 1)
    matcher = bittern.Matcher(terms)
    kinds: list[Any] = [1, "5", 1.5, "7"]
    events = [{"b": f"{n % 9}", "a": kinds[n % 4], "m": kinds[n % 3]} for n in range(60)]
    right = _whole(StateMatcher(matcher._state, sets=terms.sets), events).to_pylist()
    assert [matcher.match(event).to_pylist()[0] for event in events] == right
    computed = matcher._state.segments[0].one_event._computed._terms
    assert computed._n_kept < 30


def test_a_set_that_is_changed_counts_in_the_next_match(batches) -> None:
    with bittern.LiveMatcher(sets={"vips": ["a"]}) as live:
        live.subscribe("own", "user IN SET vips")
        live.subscribe("lower", "lower(user) IN SET vips")
        for _ in range(2):
            assert live.match({"user": "A"}).to_pylist() == [["lower"]]
            live.sets["vips"] = ["A"]
            assert live.match({"user": "A"}).to_pylist() == [["own"]]
            live.sets["vips"] = [1, 2]
            assert live.match({"user": 2}).rejects == []
            assert live.match({"user": "A"}).mistyped
            live.sets["vips"] = ["a"]
        assert batches["batch"] == 4


def test_what_needs_a_history_is_left_out(batches) -> None:
    index = bittern.Index.build({"new": "NOT EXISTS d (d.a = a)", "plain": "a > 1"})
    matcher = bittern.Matcher(index)
    assert matcher.match({"a": 3}).to_pylist() == [["plain"]]
    assert not batches
    same_as_the_batch(matcher, {"a": 3})


PATTERNS = {
    "contains": "name LIKE '%lamp%'",
    "ends": "name LIKE 'a%p'",
    "escaped": r"name LIKE '%50\\%%'",
    "two": "name LIKE '__'",
    "turns": "name LIKE '%a%a%a%b'",
    "regex": "name RLIKE 'l[ae]+.*p$'",
    "both": "name RLIKE 'red|blue'",
    "digit": r"name RLIKE '\\d'",
    "letters": r"name RLIKE '\\pL{3}'",
    "letter": r"name RLIKE 'lamp\\pL'",
    "folded": "name RLIKE '(?i)kiss' AND price < 10",
    "quoted": """name LIKE '%"%'""",
    "wide": "name LIKE '%日%'",
    "other": "color LIKE '%ed%'",
    "not": "NOT name LIKE '%z%'",
    "two of it": "name LIKE '%lamp%' AND color RLIKE 'r.d'",
    "all": "name LIKE '%'",
}
NAMES = [
    *("", "a", "ab", "a lamp", "lamp", "lampion", "lamp lamp", "50%", "a50%b", "x1", "kiss"),
    *("KISS", "\u212ai\u017fs", "\u017f", "日", "日本日", "red or blue", "blue", 'a "quoted" lamp'),
    *("\x00", "\n", "a\\b", "aaab" * 40, "a" * 300, "lampz", "ééé", "\U0001f600"),
]


@pytest.fixture(scope="module")
def patterns() -> bittern.Index:
    return bittern.Index.build(PATTERNS)


@pytest.mark.parametrize("form", ["mapping", "plain", "escaped"])
def test_patterns_are_served(patterns, batches, form) -> None:
    matcher = bittern.Matcher(patterns)
    events: list[Any] = [{"name": name} for name in NAMES]
    events += [{"name": name, "price": 3, "color": "reddish"} for name in NAMES]
    events += [{"name": None, "color": "red"}, {"price": 3}, {"color": "", "name": "lamp", "x": ""}]
    right = _whole(StateMatcher(matcher._state), events).to_pylist()
    if form != "mapping":
        events = [json.dumps(event, ensure_ascii=form == "escaped") for event in events]
    assert [matcher.match(event).to_pylist()[0] for event in events] == right
    assert not batches
    for event in events:
        same_as_the_batch(matcher, event)


def test_values_with_patterns_and_numbers_to_be_rounded(patterns, batches) -> None:
    matcher = bittern.Matcher(patterns)
    text = '{"name": "kiss", "price": 9.99999999999999999999, "color": "r\\u0065d"}'
    assert {"folded", "other"} - set(matcher.match(text).ids(0)) == {"folded"}
    assert set(matcher.match(text.replace("9.9", "8.9")).ids(0)) >= {"folded", "other"}
    assert not batches


def test_patterns_that_many_values_satisfy() -> None:
    many = {n: f"name LIKE '%{'abcdefgh'[n % 8]}%{n % 7}'" for n in range(3000)}
    more = {f"x{n}": f"name LIKE '%{n}%'" for n in range(300)}
    matcher = bittern.Matcher(bittern.Index.build(many | more))
    numbers = "".join(map(str, range(300)))
    for name in ("abcdefgh" + numbers + "6", numbers, "a1", "x" * 50_000 + "a1"):
        same_as_the_batch(matcher, {"name": name})
        same_as_the_batch(matcher, json.dumps({"name": name}))


def test_numbers_of_values_begin_again(patterns, batches) -> None:
    matcher = bittern.Matcher(patterns)
    one = matcher._state.segments[0].one_event
    right = [matcher.match({"name": name}).to_pylist() for name in NAMES]
    (scratch,) = one._free
    scratch._state[VALUES] = LAST_VALUE - 3
    assert [matcher.match({"name": name}).to_pylist() for name in NAMES] == right
    assert scratch._state[VALUES] < LAST_VALUE - 3
    assert not batches


def test_what_ends_while_re2_is_asked_changes_nothing(patterns, batches, monkeypatch) -> None:
    matcher = bittern.Matcher(patterns)
    event = {"name": "lampion", "price": 3}
    right = matcher.match(event).ids(0)
    assert "letter" in right

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PatternSet, "search", interrupted)
        with pytest.raises(KeyboardInterrupt):
            matcher.match(event)
    assert matcher.match({"name": "z"}).ids(0) == ["all"]
    assert matcher.match(event).ids(0) == right
    assert not batches


def test_damaged_patterns_are_left_to_the_batch(patterns, monkeypatch) -> None:
    sets = patterns.encoder.constants.patterns
    number = next(iter(sets))
    damaged = copy.copy(sets[number])
    damaged._programs = damaged._programs.astype(np.int64)
    assert OneEvent.of(patterns) is not None
    monkeypatch.setitem(sets, number, damaged)
    assert OneEvent.of(patterns) is None


def test_classes_in_bits_are_served(batches) -> None:
    rng = np.random.default_rng(chosen_seed())
    wide = {
        n: " AND ".join(
            f"a{k} BETWEEN {low} AND {low + 60}"
            for k, low in enumerate(rng.integers(0, 40, 6).tolist())
        )
        for n in range(1500)
    }
    other = {f"x{n}": f"color = 'c{n % 50}' AND a1 > {n % 90}" for n in range(500)}
    index = bittern.Index.build(wide | other, strategy="pivot-bits")
    assert index.subscriptions.statistics()["bits"]["classes"] > 0
    matcher = bittern.Matcher(index)
    events: list[Any] = [
        {f"a{k}": value for k, value in enumerate(rng.integers(0, 100, 7).tolist()) if value > 9}
        | {"color": f"c{n}"}
        for n in range(40)
    ]
    events += [{f"a{k}": 50 for k in range(6)}, {}, {"a1": 70, "color": "c1"}]
    right = _whole(StateMatcher(matcher._state), events).to_pylist()
    assert max(map(len, right)) > 1024  # more than a scratch has room for at first
    for turn in (events, list(map(json.dumps, events))):
        assert [matcher.match(event).to_pylist()[0] for event in turn] == right
    assert not batches
    for event in (*events[:5], *events[-3:]):
        same_as_the_batch(matcher, event)


def test_a_limit_is_served(batches) -> None:
    own: dict[str, Any] = {"id": list(range(6)), "expression": [f"price > {n}" for n in range(6)]}
    weights = {"weight": [3.5, 1.0, 2.0, 3.5, 0.0, 2.0]}
    for table in (pa.table(own), pa.table(own | weights)):
        matcher = bittern.Matcher(bittern.Index.build(table))
        for limit in (1, 2, 5, 100):
            for event in ({"price": 4}, {"price": 0}, '{"price": 9}'):
                alone = matcher.match(event, limit=limit)
                told = matcher.last_statistics
                few = matcher.match([event] * 3, limit=limit)
                assert not batches
                batch = StateMatcher(matcher._state)
                whole = _whole(batch, [event], limit=limit)
                assert alone.to_pylist() == whole.to_pylist() == few.to_pylist()[2:]
                assert alone.ranked == whole.ranked
                assert told == batch.last_statistics
        for wrong in (0, True, 1.5):
            with pytest.raises(bittern.errors.OptionError):
                matcher.match({"price": 4}, limit=wrong)


def test_options_need_the_batch(shop, batches) -> None:
    matcher = bittern.Matcher(shop)
    with pytest.raises(bittern.errors.OptionError):
        matcher.match({"price": 5}, json="doc")
    with pytest.raises(bittern.errors.EventError):
        matcher.match(b'{"price": 5}')
    assert batches["batch"] == 2


def test_room_grows_with_what_an_event_needs(batches) -> None:
    wide = {n: f"a{n} >= {n % 7}" for n in range(3000)}
    many = {f"s{n}": "x >= 0" for n in range(5000)}
    more = {f"t{n}": f"y >= {n}" for n in range(6000)}
    matcher = bittern.Matcher(bittern.Index.build(wide | many | more))
    text = json.dumps({f"a{n}": 9 for n in range(3000)} | {"long": "y" * 50_000})
    assert len(matcher.match({"x": 1}).ids(0)) == 5000
    assert len(matcher.match({f"a{n}": 9 for n in range(3000)}).ids(0)) == 3000
    assert len(matcher.match({"y": 10_000, "x": 0}).ids(0)) == 11_000
    assert len(matcher.match(text).ids(0)) == 3000
    assert matcher.match({"x": -1}).ids(0) == []
    assert not batches
    for event in ({"x": 1, "y": 3}, text, {f"a{n}": 0 for n in range(3000)}):
        same_as_the_batch(matcher, event)
    batches.clear()
    assert matcher.match(json.dumps({"long": "y" * (1 << 21), "x": 1})).counts.tolist() == [5000]
    assert batches["batch"] == 1


def test_threads_share_a_matcher(batches) -> None:
    index = bittern.Index.build({n: f"a >= {n} AND b != {n % 5}" for n in range(500)})
    matcher, wrong = bittern.Matcher(index), []

    def work(seed: int) -> None:
        for i in range(200):
            a, b = (seed * 7 + i * 13) % 500, i % 5
            right = [n for n in range(500) if a >= n and n % 5 != b]
            event: Any = {"a": a, "b": b}
            found = matcher.match(event if i % 2 else json.dumps(event))
            if found.ids(0) != right:
                wrong.append((event, found.ids(0)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not batches


def test_threads_share_patterns(patterns, batches) -> None:
    matcher, wrong = bittern.Matcher(patterns), []
    right = {name: matcher.match({"name": name}).ids(0) for name in NAMES}

    def work(seed: int) -> None:
        for i in range(100):
            name = NAMES[(seed + i) % len(NAMES)]
            event: Any = {"name": name}
            found = matcher.match(event if i % 2 else json.dumps(event)).ids(0)
            if found != right[name]:
                wrong.append((name, found))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not batches


@pytest.mark.parametrize("index", ["shop", "patterns"])
def test_a_forked_child_matches_too(index, request) -> None:
    matcher = bittern.Matcher(request.getfixturevalue(index))
    event = {"price": 5, "name": "a lampion", "color": "red"}
    right = matcher.match(event).ids(0)
    assert right
    child = os.fork()
    if child == 0:
        os._exit(0 if matcher.match(event).ids(0) == right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_has_addresses_of_its_own(again, batches, tmp_path) -> None:
    bittern.Index.build(SHOP).save(tmp_path / "index")
    matcher = bittern.Matcher(bittern.Index.open(tmp_path / "index"))
    right = matcher.match({"price": 5}).ids(0)
    twin = again(matcher)
    del matcher
    assert twin.match({"price": 5}).ids(0) == right
    assert not batches
    found = again(twin.match('{"price": 5}'))
    assert (found.ids(0), found.offsets.tolist()) == (right, [0, len(right)])


def test_matches_of_one_event_are_matches(shop) -> None:
    alone = bittern.Matcher(shop).match({"price": 5, "color": "red"})
    whole = bittern.Matcher(shop).match([{"price": 5, "color": "red"}, {}])
    assert alone.to_arrow(flat=True).equals(whole.to_arrow(flat=True).slice(0, len(alone.ids(0))))
    assert alone.offsets.dtype == whole.offsets.dtype
    assert alone.candidates.dtype == whole.candidates.dtype
    assert not alone.ranked
    with pytest.raises(IndexError):
        alone.ids(1)
    with pytest.raises(AttributeError, match="nothing"):
        alone.nothing  # noqa: B018


def test_a_live_matcher_serves_one_event(shop, batches) -> None:
    with bittern.LiveMatcher(shop) as live:
        live.subscribe("new", "price = 5")
        live.unsubscribe("cheap")
        assert live.match({"price": 5}).ids(0) == ["none", "new"]
        assert live.match('{"price": 5, "color": "red"}').ids(0) == ["red", "new"]
        live.replace("new", "price = 6")
        assert live.match({"price": 5}).ids(0) == ["none"]
        assert live.last_statistics["events"] == 1
        assert not batches
        live.subscribe("pattern", "name LIKE '%x%'")
        assert live.match({"price": 6, "name": "axe"}).ids(0) == ["none", "new", "pattern"]
        assert not batches
        live.subscribe("term", "price * 2 > 8")
        assert live.match({"price": 6}).ids(0) == ["none", "new", "term"]
        assert not batches


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the segments that a call of its own is made for."""
    found: Counter[str] = Counter()
    whole = OneEvent.match

    def counted(self: OneEvent, *arguments: Any) -> Any:
        found["own"] += 1
        return whole(self, *arguments)

    monkeypatch.setattr(OneEvent, "match", counted)
    return found


def with_deltas(base: bittern.Index, *deltas: dict[str, str]) -> bittern.LiveMatcher:
    live = bittern.LiveMatcher(base)
    for rows in deltas:
        for id_, text in rows.items():
            live.subscribe(id_, text)
        live.seal()
    assert len(live.seal().segments) > len(deltas)
    return live


DELTAS = (
    {f"x{n}": f"price < {n} AND color != 'tan'" for n in range(9)},
    {f"y{n}": f"color = 'größ' OR size >= {n} AND seen IS NULL" for n in range(4)},
    {"z": "car.doors >= 3 AND color = 'red'"},
)


def test_deltas_are_matched_in_the_call_of_the_snapshot(shop, batches, calls, monkeypatch) -> None:
    monkeypatch.setattr("bittern.engine.live.delta.SMALL_DELTA", 0)
    events: list[Any] = [*SERVED, {"color": "größ", "size": 2, "price": 1}]
    events += ['{"color": "\\u0072ed", "car": {"doors": 4}, "size": 1}', {"size": 3, "x": 2.5}]
    with with_deltas(shop, *DELTAS) as live:
        live.unsubscribe("x3")
        live.unsubscribe("cheap")
        state = live.seal()
        right = _whole(StateMatcher(state), events).to_pylist()
        assert [live.match(event).to_pylist()[0] for event in events] == right
        assert any("z" in own and "y0" in own for own in right)
        assert not batches
        calls.clear()
        for event in events:
            same_as_the_batch(live, event)
            # Numbers that Python rounds take a call for each.
            assert not calls or type(event) is str
            calls.clear()
        same_as_the_batch(live, events[-2])
        assert not calls
        for twin in (copy.copy(state), pickle.loads(pickle.dumps(state))):
            assert not twin.together


@pytest.mark.parametrize(
    "more",
    [{"q": "unheard = 3"}, {"q": "name LIKE '%a%'"}, {"q": "price * 2 > 4"}, {"q": "a IS MISSING"}],
)
def test_deltas_that_need_calls_of_their_own(shop, batches, calls, monkeypatch, more) -> None:
    monkeypatch.setattr("bittern.engine.live.delta.SMALL_DELTA", 0)
    with with_deltas(shop, DELTAS[0], more) as live:
        for event in ({"price": 5, "unheard": 3, "name": "a"}, '{"price": 1, "a": 2}'):
            same_as_the_batch(live, event)
            assert calls["own"]
        assert not batches


def test_room_grows_for_deltas(batches, calls) -> None:
    base = bittern.Index.build({n: f"a >= {n % 3} AND b < 5" for n in range(900)})
    more = {f"d{n}": f"a <= {n % 7}" for n in range(3000)}
    with with_deltas(base, more) as live:
        for event in ({"a": 3, "b": 1}, '{"a": 3, "b": 1}', {"a": 9}):
            same_as_the_batch(live, event)
        assert len(live.match({"a": 2, "b": 1}).ids(0)) > 2048
        assert not batches
        assert not calls
    with bittern.LiveMatcher() as live:  # no snapshot but an empty one
        for id_, text in more.items():
            live.subscribe(id_, text)
        assert len(live.match({"a": 0}).ids(0)) == 3000
        same_as_the_batch(live, '{"a": 6, "b": 0}')
        assert not batches
        assert not calls


def test_few_events_are_matched_one_by_one(shop, batches) -> None:
    matcher = bittern.Matcher(shop)
    events = [event for event in SERVED if len(str(event)) < 100] * 14
    right = [matcher.match(event).to_pylist()[0] for event in events]
    for n in (1, 2, FEW):
        assert matcher.match(events[:n]).to_pylist() == right[:n]
        assert matcher.last_statistics["events"] == n
    assert not batches
    for odd in ([], events[: FEW + 1], tuple(events[:2]), [events[0], None], [{}, "[]"]):
        assert len(matcher.match(odd)) == len(odd)
    assert batches["batch"] == 5
    assert matcher.match([{}, "[]"]).rejects == [(1, "the top level is not an object")]


def test_a_list_does_not_have_anything_compiled(shop, batches, monkeypatch) -> None:
    monkeypatch.setattr(Kernel, "load", lambda _: False)
    assert len(bittern.Matcher(shop).match([{"price": 5}])) == 1
    assert batches["batch"] == 1


def test_arrays_of_another_type_are_left_to_the_batch(shop) -> None:
    damaged = copy.copy(shop)
    assert OneEvent.of(damaged) is not None
    damaged.subscribers = Subscribers(
        shop.subscribers.starts, shop.subscribers.subscribers.astype(np.int64)
    )
    assert OneEvent.of(damaged) is None
