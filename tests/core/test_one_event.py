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
from bittern.model.matches import Subscribers
from bittern.model.patterns.sets import PatternSet
from effort import chosen_seed, examples
from strategies import FREE, KINDS, catalogs, expressions, free_events, predicates_on

#: Without IS MISSING, which is left to the batch.
_SERVED = expressions(
    st.one_of(
        *(
            predicates_on(name, KINDS[kind or other], text="string" in (kind, other))
            for name, kind in FREE.items()
            for other in ("number", "string")
        )
    ),
    3,
)


_whole = StateMatcher.match
_SETS = bittern.Index.build({}, sets={"vips": [1]}).sets


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
    batch = StateMatcher(matcher.sealed_with_sets()[0] if live else matcher._state, None, _SETS)
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
@given(catalogs(_SERVED), st.lists(free_events(), min_size=1, max_size=5), st.booleans())
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
        ("price * 2 > 8", {}),
        ("price IS MISSING", {}),
        ("id IN SET vips", {"sets": {"vips": [1]}}),
        ("price < 3", {"strategy": "scan"}),
        ("price < 3", {"stabbing": "interval-tree"}),
    ],
)
def test_indexes_that_need_batches(batches, more, options) -> None:
    index = bittern.Index.build(SHOP | {"more": more}, **options)
    assert bittern.Matcher(index)._state.segments[0].one_event is None
    same_as_the_batch(bittern.Matcher(index), {"price": 5, "name": "a lamp"})
    assert batches["batch"] == 2


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
        assert batches["batch"] == 1


def test_few_events_are_matched_one_by_one(shop, batches) -> None:
    matcher = bittern.Matcher(shop)
    events = [event for event in SERVED if len(str(event)) < 100] * 6
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
