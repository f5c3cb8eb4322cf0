"""Hard cases for the history: small rooms, long runs, crashes, threads, bombs, hostile events."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bittern
import oracle
from bittern.engine import matcher
from bittern.errors import HistoryError, OptionError, SubscriptionError
from bittern.history.history import History
from bittern.history.joins import joins
from bittern.history.joins.phases import AUTO, CONSTANTS, JOINS
from bittern.history.passes import groups, passes
from bittern.history.sets import ordered, ordered_runs, sets
from bittern.history.table import plans, sections, table
from bittern.language import alternatives
from bittern.language.quantifiers import HIDDEN
from bittern.language.syntax import Quantified
from semantics import JOINED, Joined

Event = Mapping[str, Any]

TWINS = bittern.Index.build({"old": "EXISTS d (d.a = a)", "new": "NOT EXISTS d (d.a = a)"})
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
LONG = "a string that is longer than a word, "
#: Values that others are likely to equal, or to be no more than akin to: 1, TRUE and 1.0.
VALUES: tuple[Any, ...] = (
    *(0, 1, 2, 3) * 3,
    *("x", "1", LONG + "one", LONG + "two", LONG),
    *(True, False, 1.0, 1.5, float("nan"), -0.0),
    *(START, START.date(), [1], {"b": 1}, None),
)
CONSTANTS_ = ("0", "1", "2", "1.0", "TRUE", "'x'", f"'{LONG}one'", "DATE '2024-01-01'")
WINDOWS = (
    *[""] * 4,
    *("IN LAST 1", "IN LAST 3", "IN LAST 40", "PER a", "PER b, a"),
    *("IN LAST 1 PER a", "IN LAST 2 PER b", "IN LAST 3 PER a, c"),
    *("IN LAST '5 minutes' OF t", "IN LAST '40 minutes' OF t PER a", "IN LAST '1 second' OF t"),
)


def pick(random: np.random.Generator, choices: Sequence[Any]) -> Any:
    return choices[int(random.integers(len(choices)))]


def event_of(random: np.random.Generator) -> dict[str, Any]:
    """Times go back and forth, are missing, or are no times."""
    event = {name: pick(random, VALUES) for name in "abc" if random.random() < 0.85}
    if random.random() < 0.85:
        event["t"] = START + dt.timedelta(minutes=int(random.integers(90)))
    elif random.random() < 0.5:
        event["t"] = pick(random, VALUES)
    return event


def condition_of(random: np.random.Generator, depth: int) -> str:
    if depth and random.random() < 0.7:
        word = pick(random, (" AND ", " AND ", " OR "))
        parts = [condition_of(random, depth - 1) for _ in range(int(random.integers(2, 4)))]
        return f"{pick(random, ('', '', '', 'NOT '))}({word.join(parts)})"
    left, right = pick(random, "abc"), pick(random, "abct")
    operator = pick(random, ("=", "=", "=", "!=", "<", "<=", ">", ">="))
    roll = random.random()
    if roll < 0.6:
        return f"d.{left} {operator} {right}"
    if roll < 0.85:
        return f"{pick(random, ('d.', 'd.', ''))}{left} {operator} {pick(random, CONSTANTS_)}"
    others = ("d.{0} IS NULL", "d.{0} LIKE 'x%'", "d.{0} < d.{1}", "{0} != {1}", "d.{0} IN (1, 2)")
    return str(pick(random, others)).format(left, right)


def expression_of(random: np.random.Generator) -> str:
    parts = [
        f"{pick(random, ('EXISTS', 'FORALL', 'NOT EXISTS'))} d {pick(random, WINDOWS)} "
        f"({condition_of(random, int(random.integers(3)))})"
        for _ in range(int(random.integers(1, 3)))
    ]
    if random.random() < 0.6:
        operator, constant = pick(random, ("<", ">=", "=", "!=")), pick(random, CONSTANTS_)
        parts.append(f"{pick(random, 'abc')} {operator} {constant}")
    return str(pick(random, (" AND ", " AND ", " OR "))).join(parts)


class Run:
    """A live matcher beside nested loops."""

    def __init__(self, keep: int | None, *, phases: str = AUTO, prefilter: bool = True) -> None:
        self.keep = keep
        self.history = History(keep=keep)
        self.live = bittern.LiveMatcher(history=self.history)
        assert self.live.joins is not None
        self.live.joins.phases, self.live.joins.prefilter = phases, prefilter
        self.trees: dict[int, Any] = {}
        self.texts: dict[int, str] = {}
        self.seen: list[Event] = []
        self.next = 0

    def subscribe(self, text: str) -> None:
        self.live.subscribe(self.next, text)
        self.trees[self.next], self.texts[self.next] = bittern.parse(text), text
        self.next += 1

    def unsubscribe(self, id_: int) -> None:
        self.live.unsubscribe(id_)
        del self.trees[id_]

    def expire(self, count: int) -> None:
        """Let the oldest go that are still there; with ``keep`` some no longer count anyway."""
        count = min(count, len(self.seen))
        self.history.expire(self.history.end - len(self.seen) + count)
        self.seen = self.seen[count:]

    def match(self, events: Sequence[Event], *, at_once: bool = False) -> None:
        before = len(self.seen)
        found = self.live.match(list(events), at_once=at_once).to_pylist()
        for row, (event, own) in enumerate(zip(events, found, strict=True)):
            known = self.seen[:before] if at_once else self.seen
            known = known if self.keep is None else known[-self.keep :]
            right = {i for i, tree in self.trees.items() if oracle.matches(tree, event, known)}
            wrong = {self.texts[int(i)]: i in right for i in right.symmetric_difference(own)}
            assert not wrong, (row, event, wrong)
            self.seen.append(event)

    def close(self) -> None:
        self.live.close()
        self.history.close()


def tight(specs: Any, old: Any, first: int, spare: int) -> Any:
    """As ``renew``, with next to no room to spare."""
    measured = old._replace(used=np.zeros(4, dtype=np.int64))
    groups._copy_live(specs, old, measured, first, 0)
    room = [n + spare // 1024 for n in measured.used.tolist()]
    room[3] += 60
    fresh = groups.empty_groups(*room)
    groups._copy_live(specs, old, fresh, first, 1)
    return fresh


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every room so small that it is renewed all the time, every threshold soon passed."""
    empty = groups.empty_groups
    monkeypatch.setattr(sections, "empty_groups", lambda *_: empty(1, 1, 1, 8))
    monkeypatch.setattr(passes, "renew", tight)
    monkeypatch.setattr(passes, "_FIRST_OUTPUT", 1)
    monkeypatch.setattr(matcher, "BLOCK", 5)
    monkeypatch.setattr(joins, "_MOST_ANSWERS", 1)
    monkeypatch.setattr(plans, "MOST_ALIKE", 1)
    monkeypatch.setattr(alternatives, "MANY_ALTERNATIVES", 4)
    monkeypatch.setattr(sets, "FEW", 2)
    monkeypatch.setattr(sets, "FEWEST_EXPIRED", 3)
    monkeypatch.setattr(ordered, "LONGEST_TAIL", 3)
    monkeypatch.setattr(ordered, "RATIO", 2)
    monkeypatch.setattr(ordered_runs, "MOST_MARKS", 3)
    monkeypatch.setattr(ordered_runs, "LEAST_STEP", 2)


def long_run(seed: int, events: int, subscriptions: int) -> None:
    """Many small calls, with subscriptions and documents that come and go."""
    random = np.random.default_rng(seed)
    run = Run(
        pick(random, (None, None, None, 2, 7, 30)),
        phases=pick(random, (AUTO, JOINS, CONSTANTS)),
        prefilter=bool(random.random() < 0.7),
    )
    try:
        for _ in range(subscriptions):
            run.subscribe(expression_of(random))
        left = events
        while left > 0:
            n = min(left, int(pick(random, (1, 1, 1, 2, 3, 5, 20, 70))))
            run.match([event_of(random) for _ in range(n)], at_once=n < 5 and random.random() < 0.3)
            left -= n
            roll = random.random()
            if roll < 0.15:
                run.subscribe(expression_of(random))
            elif roll < 0.25 and run.trees:
                run.unsubscribe(pick(random, list(run.trees)))
            elif roll < 0.3:
                run.expire(int(random.integers(5)))
            elif roll < 0.4:
                more = [event_of(random) for _ in range(3)]
                run.history.append(more)
                run.seen += more
    finally:
        run.close()


@pytest.mark.parametrize("seed", range(4))
def test_long_runs(seed: int) -> None:
    long_run(seed, 120, 10)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(100, 104))
def test_long_runs_in_small_rooms(seed: int) -> None:
    long_run(seed, 80, 10)


# ------------------------------------------------------------------ blocks


@pytest.mark.parametrize("phases", [JOINS, CONSTANTS])
def test_blocks_follow_each_other(phases: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In strict order it makes no difference where a batch is cut."""
    monkeypatch.setattr(matcher, "BLOCK", 70)
    monkeypatch.setattr(joins, "_MOST_ANSWERS", 1)
    random = np.random.default_rng(7)
    run = Run(None, phases=phases)
    for _ in range(12):
        run.subscribe(expression_of(random))
    run.match([event_of(random) for _ in range(145)])
    run.close()


@pytest.mark.parametrize(("phases", "keep"), [(JOINS, None), (CONSTANTS, 900)])
def test_a_batch_longer_than_a_block(phases: str, keep: int | None) -> None:
    """Long columns, long strings, many groups, and documents that go while others come."""
    random = np.random.default_rng(4)
    n = matcher.BLOCK + 700
    a, b = random.integers(0, n, n), random.integers(0, 50, n)
    s = np.array([f"{LONG}{number}" for number in random.integers(0, n // 2, n)])
    texts = {
        0: "EXISTS d (d.a = a)",
        1: "EXISTS d (d.s = s AND d.b > b)",
        2: "EXISTS d IN LAST 100 (d.b = b AND d.a < a)",
        3: "FORALL d PER s (d.b <= b)",
    }
    index = bittern.Index.build(texts)
    with History(keep=keep) as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.joins is not None
        live.joins.phases = phases
        found = live.match(pa.table({"a": a, "b": b, "s": s})).to_pylist()
        assert len(history) == (keep or n)
    for i in [*range(20), *range(matcher.BLOCK - 20, matcher.BLOCK + 20), *range(0, n, 97)]:
        first = 0 if keep is None else max(0, i - keep)
        last, same = slice(max(first, i - 100), i), s[first:i] == s[i]
        right = {
            0: (a[first:i] == a[i]).any(),
            1: (same & (b[first:i] > b[i])).any(),
            2: ((b[last] == b[i]) & (a[last] < a[i])).any(),
            3: (b[first:i][same] <= b[i]).all(),
        }
        assert sorted(found[i]) == [id_ for id_, holds in right.items() if holds]


def test_events_are_remembered_before_there_are_subscriptions() -> None:
    with History() as history, bittern.LiveMatcher(history=history) as live:
        assert live.match([{"a": 1}, {"a": 2}]).to_pylist() == [[], []]
        live.subscribe("plain", "a = 1")
        assert live.match({"a": 1}).to_pylist() == [["plain"]]
        live.subscribe("s", "EXISTS d IN LAST 3 (d.a = 2 AND d.a = a)")
        assert live.match([{"a": 2}, {"a": 2}]).to_pylist() == [["s"], ["s"]]
        assert len(history) == 5


@pytest.mark.parametrize("phases", [JOINS, CONSTANTS])
def test_at_once_no_block_comes_before_another(
    phases: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matcher, "BLOCK", 64)
    with History() as history, bittern.LiveMatcher(TWINS, history=history) as live:
        assert live.joins is not None
        live.joins.phases = phases
        found = live.match([{"a": 1, "b": 1}] * 200, at_once=True)
        assert found.to_pylist() == [["new"]] * 200
        assert len(history) == 200


# ------------------------------------------------------------------ rules by name


@pytest.mark.parametrize("one", JOINED, ids=lambda one: one.expression)
@pytest.mark.parametrize("phases", [JOINS, CONSTANTS])
def test_every_rule_of_the_language(one: Joined, phases: str) -> None:
    index = bittern.Index.build({"s": one.expression})
    for keep in (None, 100):
        with History(keep=keep) as history, bittern.LiveMatcher(index, history=history) as live:
            assert live.joins is not None
            live.joins.phases = phases
            for document in one.documents:
                live.match([document])
            assert live.match(one.event).to_pylist() == [["s"] if one.answer else []]


def test_seed_004_example_3() -> None:
    text = "author = 'Smith' AND 10 <= price <= 30 AND ∀ d (isbn != d.isbn)"
    with History() as history, bittern.LiveMatcher(history=history) as live:
        live.subscribe("books", text)
        book = {"author": "Smith", "price": 20, "isbn": "x"}
        found = live.match([book, book, book | {"isbn": "y"}, book | {"isbn": "z", "price": 31}])
        assert found.to_pylist() == [["books"], [], ["books"], []]


def test_seed_004_example_5() -> None:
    profiles = {
        "P1": "∃ d (price < d.price)",
        "P2": "∀ d (year > d.year)",
        "P3": "∃ d (author = d.author)",
    }
    index = bittern.Index.build(profiles)
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        history.append(
            [{"price": 10, "year": 2000, "author": "Smith"}, {"price": 25, "year": 1999}]
        )
        new = {"price": 30, "year": 2001, "author": "Smith"}
        assert [sorted(row) for row in live.match(new).to_pylist()] == [["P2", "P3"]]


@pytest.mark.parametrize(
    ("text", "unmet", "met", "event"),
    [
        ("price = 10 AND ∃ d (d.price = price)", {"price": 11}, {"price": 10}, {"price": 10}),
        ("price < 10 AND ∃ d (d.price = price)", {"price": 10}, {"price": 9}, {"price": 9}),
    ],
    ids=["example 6", "example 7"],
)
def test_seed_004_examples_6_and_7(text: str, unmet: Event, met: Event, event: Event) -> None:
    """What is implied is looked up in the documents: until one is so, nothing else is."""
    with History() as history, bittern.LiveMatcher(history=history) as live:
        assert live.joins is not None
        live.subscribe("s", text)
        history.append([unmet])
        assert live.match(event, remember=False).to_pylist() == [[]]
        assert live.joins.lookups == 0
        history.append([met])
        assert live.match(event, remember=False).to_pylist() == [["s"]]
        assert live.joins.lookups == 1


# ------------------------------------------------------------------ forms of events

PLAIN = {"a": pa.int64(), "b": pa.string(), "c": pa.float64()}


def forms(events: Sequence[dict[str, Any]]) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """The same events in every form."""
    texts = [json.dumps(event) for event in events]
    columns = {name: [event.get(name) for event in events] for name in PLAIN}
    frame = pa.table({name: pa.array(columns[name], kind) for name, kind in PLAIN.items()})
    maps = {
        f"m{name}": pa.array(
            [[(name, value)] if value is not None else [] for value in columns[name]],
            pa.map_(pa.string(), kind),
        )
        for name, kind in PLAIN.items()
    }
    some = [
        text if row % 2 else event
        for row, (text, event) in enumerate(zip(texts, events, strict=True))
    ]
    return {
        "mappings": (events, ()),
        "texts": (texts, ()),
        "mixed": (some, ()),
        "array": (pa.array(texts), ()),
        "table": (frame, ()),
        "batch": (frame.to_batches()[0], ()),
        "structs": (frame.to_struct_array(), ()),
        "maps": (pa.table(maps), ()),
        "json": (pa.table({"text": texts}), ("text",)),
        "encoded": (frame.set_column(1, "b", frame.column("b").dictionary_encode()), ()),
    }


def test_forms_of_events_make_the_same_history(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    texts = {i: expression_of(random) for i in range(60)}
    index = bittern.Index.build(texts)
    values = {"a": (0, 1, 2, 3, None), "b": ("x", "1", LONG + "one", None), "c": (1.0, 1.5, 0.0)}
    events = [
        {name: pick(random, own) for name, own in values.items() if random.random() < 0.9}
        for _ in range(40)
    ]
    answers, later = {}, {}
    for name, (given, columns) in forms(events).items():
        with bittern.LiveMatcher(index, history=tmp_path / name) as live:
            answers[name] = live.match(given, json=columns).to_pylist()
        with bittern.LiveMatcher(index, history=tmp_path / name) as live:
            assert live.joins is not None
            assert len(live.joins.history) == len(events)
            later[name] = live.match(events, remember=False, at_once=True).to_pylist()
    assert all(own == answers["mappings"] for own in answers.values())
    assert all(own == later["mappings"] for own in later.values())
    assert any(answers["mappings"])
    assert later["mappings"] != answers["mappings"]


@pytest.mark.parametrize("form", ["mappings", "texts", "table", "structs", "map", "json"])
def test_nobody_can_pretend_that_a_predicate_holds(form: str) -> None:
    """An event with an attribute that is called like a predicate is an event like any other."""
    name = HIDDEN + "EXISTS d (d.a = a)"
    event = {name: 1, "a": 1}
    row = [(name, 1), ("a", 1)]
    given, columns = {
        "mappings": ([event], ()),
        "texts": ([json.dumps(event)], ()),
        "table": (pa.Table.from_pylist([event]), ()),
        "structs": (pa.array([event]), ()),
        "map": (pa.array([row], pa.map_(pa.string(), pa.int64())), ()),
        "json": (pa.table({"j": [json.dumps(event)]}), ("j",)),
    }[form]
    index = bittern.Index.build({"old": "EXISTS d (d.a = a)", "new": "NOT EXISTS d (d.a = a)"})
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        found = live.match(given, json=columns)
        assert (found.to_pylist(), found.mistyped, found.rejects) == ([["new"]], [], [])
        assert live.match(given, json=columns).to_pylist() == [["old"]]


@pytest.mark.parametrize("bad", ["{", "[1]", "null", '{"a": "\\ud800"}', 5, b"{}"])
def test_what_cannot_be_read_is_no_document(bad: Any) -> None:
    with History() as history, bittern.LiveMatcher(TWINS, history=history) as live:
        found = live.match([{"a": 1}, bad, {"a": 2}, bad, {"a": 1}])
        assert [row for row, _ in found.rejects] == [1, 3]
        assert found.to_pylist() == [["new"], [], ["new"], [], ["old"]]
        assert len(history) == 3
        history.append([bad, {"a": 7}, bad])
        assert len(history) == 4
        assert live.match([{"a": 7}]).to_pylist() == [["old"]]
        live.subscribe("last", "EXISTS d IN LAST 2 (d.a = a)")  # from the documents stored
        assert [sorted(row) for row in live.match([{"a": 7}]).to_pylist()] == [["last", "old"]]


def test_what_is_rejected_is_no_document_at_once_either() -> None:
    index = bittern.Index.build({"s": "EXISTS d (d.a = a)", "b": "b = 'x'"})
    for at_once in (False, True):
        with History() as history, bittern.LiveMatcher(index, history=history) as live:
            found = live.match([{"a": 1, "b": "\ud800"}, {"a": 2}], at_once=at_once)
            assert [row for row, _ in found.rejects] == [0]
            assert len(history) == 1, at_once


@pytest.mark.parametrize("other", ["EXISTS d (d.b = b)", "EXISTS d (d.b LIKE 'x%')"])
def test_an_unreadable_value_is_the_same_before_and_after(other: str) -> None:
    """Whatever becomes of the event, other subscriptions and rebuilding make no difference."""
    answers = []
    for more in ({}, {"t": other}):
        index = bittern.Index.build({"s": "EXISTS d (d.a = a)"} | more)
        with History() as history, bittern.LiveMatcher(index, history=history) as live:
            live.match([{}, {"a": 1, "b": "\ud800"}])
            answers.append(live.match([{"a": 1}], remember=False).to_pylist())
            history.expire(1)  # so that all is read again
            answers.append(live.match([{"a": 1}], remember=False).to_pylist())
    assert answers == answers[:1] * 4


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("keep", [None, 50])
def test_kinds_of_constants_are_kept_apart(keep: int | None) -> None:
    """1, TRUE, 1.0, '1' and dates as keys of one summary."""
    random = np.random.default_rng(11)
    run = Run(keep)
    for operator in ("=", "!=", "<=", ">"):
        for constant in CONSTANTS_:
            run.subscribe(f"EXISTS d (d.a = a AND d.b {operator} {constant})")
            run.subscribe(f"FORALL d (d.b {operator} {constant})")
    run.match([{"a": pick(random, (1, True)), "b": value} for value in VALUES])
    run.close()


@pytest.mark.parametrize("event", [-(2**63), -(2**63) + 1])
@pytest.mark.parametrize("document", [-(2**63), -(2**63) + 1, 0])
def test_windows_at_the_ends_of_time(document: int, event: int) -> None:
    texts = {
        "newest": "EXISTS d IN LAST '1 hour' OF t (TRUE)",
        "most": "EXISTS d IN LAST '1 hour' OF t (d.a > a)",
        "list": "EXISTS d IN LAST '1 hour' OF t PER g (d.a > a AND d.b > a)",
        "sets": "EXISTS d IN LAST '1 hour' OF t (d.a < d.b)",
    }
    kind = pa.timestamp("us")
    rest = {"a": [2], "b": [3], "g": [1]}
    with (
        History() as history,
        bittern.LiveMatcher(bittern.Index.build(texts), history=history) as live,
    ):
        history.append(pa.table({"t": pa.array([document], kind)} | rest))
        given = pa.table({"t": pa.array([event], kind)} | rest | {"a": [1]})
        assert set(live.match(given).to_pylist()[0]) == set(texts)


@pytest.mark.parametrize("text", ["TRUE", "d.a < d.b"], ids=["summary", "sets"])
def test_windows_are_of_whole_microseconds(text: str) -> None:
    hour, kind = 3600 * 10**9, pa.timestamp("ns")
    index = bittern.Index.build({"s": f"EXISTS d IN LAST '1 hour' OF t ({text})"})
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        history.append(pa.table({"t": pa.array([500], kind), "a": [1], "b": [2]}))
        given = pa.table({"t": pa.array([hour + 500, hour + 999, hour + 1000], kind)})
        assert live.match(given, remember=False).to_pylist() == [["s"], ["s"], []]


@pytest.mark.parametrize("question", ["d.a IN (1, 2)", "d.a < 5", "d.a = TRUE", "d.a != 'x'"])
def test_forall_with_a_constant_needs_no_list_of_all_documents(question: str) -> None:
    """What is kept of the documents does not grow with them."""
    index = bittern.Index.build({"s": f"FORALL d ({question})"})
    value = {"d.a = TRUE": True, "d.a != 'x'": "y"}.get(question, 1)
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.joins is not None
        sizes = []
        for _ in range(3):
            history.append([{"a": value}] * 2000)
            assert live.match([{}], remember=False).to_pylist() == [["s"]]
            sizes.append(live.joins.statistics()["bytes"])
        assert sizes[0] == sizes[-1], sizes


@pytest.mark.parametrize("phases", [JOINS, CONSTANTS])
def test_only_entries_whose_attributes_the_event_has_are_touched(phases: str) -> None:
    index = bittern.Index.build({i: f"a > 0 AND EXISTS d (d.x{i} = x{i})" for i in range(100)})
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.joins is not None
        live.joins.phases = phases
        history.append([{f"x{i}": i for i in range(100)}])
        assert live.match({"a": 1, "x7": 7}, remember=False).to_pylist() == [[7]]
        assert live.joins.lookups == 1


# ------------------------------------------------------------------ durability


@pytest.mark.parametrize("keep", [None, 6])
def test_reopened_it_goes_on_as_if_it_had_never_been_closed(
    tmp_path: Path, keep: int | None
) -> None:
    random = np.random.default_rng(5)
    index = bittern.Index.build({i: expression_of(random) for i in range(50)})
    batches = [[event_of(random) for _ in range(int(n))] for n in random.integers(0, 9, 12)]
    with History(keep=keep) as whole, bittern.LiveMatcher(index, history=whole) as live:
        expected = [live.match(batch).to_pylist() for batch in batches]
    found = []
    for batch in batches:
        history = History(tmp_path / "h", keep=keep)
        with history, bittern.LiveMatcher(index, history=history) as live:
            found.append(live.match(batch).to_pylist())
    assert found == expected


_CHILD = """
import sys, bittern
index = bittern.Index.build({"old": "EXISTS d (d.a = a)", "new": "NOT EXISTS d (d.a = a)"})
live = bittern.LiveMatcher(index, history=sys.argv[1])
number = len(live.joins.history)
while True:
    assert live.match([{"a": number}, {"a": number}]).to_pylist() == [["new"], ["old"]]
    print(number, flush=True)
    number += 2
"""


def test_a_killed_process_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    folder = tmp_path / "h"
    for n_lines in (5, 23):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        with child:
            answered = [int(next(child.stdout)) for _ in range(n_lines)]
            with pytest.raises(HistoryError, match="in use"):
                bittern.LiveMatcher(TWINS, history=folder)
            child.kill()
            answered += map(int, child.stdout)
        with bittern.LiveMatcher(TWINS, history=folder) as live:
            assert live.joins is not None
            history = live.joins.history
            assert history.end in (answered[-1] + 2, answered[-1] + 4)  # a call, or none of it
            asked = [{"a": number} for number in range(0, answered[-1] + 1, 2)]
            found = live.match(asked, remember=False)
            assert found.to_pylist() == [["old"]] * len(asked)


def test_a_history_serves_one_matcher(tmp_path: Path) -> None:
    with History(tmp_path / "h") as history, bittern.LiveMatcher(TWINS, history=history):
        with pytest.raises(OptionError, match="another matcher uses this history"):
            bittern.LiveMatcher(TWINS, history=history)
        with pytest.raises(HistoryError, match="in use"):
            bittern.LiveMatcher(TWINS, history=tmp_path / "h")
    with bittern.LiveMatcher(TWINS, history=tmp_path / "h") as live:
        assert live.match({"a": 1}).to_pylist() == [["new"]]


def test_a_closed_matcher_leaves_the_history_alone() -> None:
    with History() as history:
        with bittern.LiveMatcher(TWINS, history=history) as first:
            first.match({"a": 1})
        with bittern.LiveMatcher(TWINS, history=history) as second:
            second.match({"a": 2})
            with contextlib.suppress(OptionError, HistoryError):
                first.match({"a": 7})
            expected = "old" if len(history) == 3 else "new"
            assert second.match({"a": 7}).to_pylist() == [[expected]]


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", ["_table.run", "_demands.take"])
def test_an_interrupted_call_does_no_harm(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = bittern.Index.build(
        {"s": "EXISTS d (d.a = a)", "p": "EXISTS d (d.a = a AND d.b < d.a)"}
    )
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        live.match([{"a": 1, "b": 0}])
        owner, name = place.split(".")
        with monkeypatch.context() as patch:
            patch.setattr(getattr(live.joins, owner), name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                live.match([{"a": 2, "b": 1}])
        stored = len(history)
        found = live.match([{"a": 2}, {"a": 1}], remember=False).to_pylist()
        assert [sorted(row) for row in found] == [["p", "s"] if stored == 2 else [], ["p", "s"]]
        live.match([{"a": 3, "b": 1}])
        assert sorted(live.match([{"a": 3}]).to_pylist()[0]) == ["p", "s"]


def test_documents_are_appended_after_an_interrupted_call(monkeypatch: pytest.MonkeyPatch) -> None:
    index = bittern.Index.build({"s": "EXISTS d (d.a = a AND d.b < d.a)"})
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.joins is not None
        live.match([{"a": 1, "b": 0}])
        with monkeypatch.context() as patch:
            patch.setattr(live.joins._table, "run", interrupted)
            with pytest.raises(KeyboardInterrupt):
                live.match([{"a": 2, "b": 1}])
        history.append([{"a": 3, "b": 2}])
        assert len(history) == 3
        found = live.match([{"a": 1}, {"a": 2}, {"a": 3}], remember=False)
        assert found.to_pylist() == [["s"]] * 3


def test_rebuilding_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with History() as history, bittern.LiveMatcher(TWINS, history=history) as live:
        assert live.joins is not None
        live.match([{"a": 1}, {"a": 2}])
        with monkeypatch.context() as patch:
            patch.setattr(table.JoinTable, "_fill", interrupted)
            with pytest.raises(KeyboardInterrupt):
                history.expire(1)
        assert live.match([{"a": 1}, {"a": 2}], remember=False).to_pylist() == [["new"], ["old"]]


# ------------------------------------------------------------------ indexes


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        *[(name, {}) for name in ("pivot", "scan", "counting", "opindex", "opindex-bs", "betree")],
        ("kindex", {"domain": [0, 9]}),
    ],
)
def test_every_strategy(strategy: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    """Built, saved and opened, changed, and compacted."""
    texts = {
        0: "EXISTS d (d.a = a)",
        1: "FORALL d (d.b < b) AND a = 1",
        2: "NOT EXISTS d IN LAST 2 (d.a = a) AND b IN (1, 2)",
        3: "EXISTS d (d.a = a AND d.b > b) OR FORALL d PER b (d.a != a)",
        4: "a = 2",
    }
    bittern.Index.build(texts, strategy=strategy, parameters=parameters).save(tmp_path / "index")
    random = np.random.default_rng(2)
    values = (0, 1, 2, 3)
    alone = bittern.Matcher(bittern.Index.open(tmp_path / "index"))
    assert alone.match([{"a": 1, "b": 1}, {"a": 2}]).to_pylist() == [[], [4]]
    with (
        History() as history,
        bittern.LiveMatcher(
            bittern.Index.open(tmp_path / "index", verify=True), history=history
        ) as live,
    ):
        seen: list[Event] = []
        for step in range(6):
            if step == 2:
                texts[9] = "EXISTS d IN LAST 3 (d.b = b AND d.a < a)"
                live.subscribe(9, texts[9])
                del texts[0]
                live.unsubscribe(0)
            if step == 4:
                live.compact()
            trees = {id_: bittern.parse(text) for id_, text in texts.items()}
            events = [{"a": pick(random, values), "b": pick(random, values)} for _ in range(8)]
            found = live.match(events).to_pylist()
            for event, own in zip(events, found, strict=True):
                right = [id_ for id_, tree in trees.items() if oracle.matches(tree, event, seen)]
                assert sorted(own) == sorted(right)
                seen.append(event)


def test_without_a_history_quantifiers_match_nothing() -> None:
    for alone in (bittern.Matcher(TWINS), bittern.LiveMatcher(TWINS)):
        assert alone.match([{"a": 1}, {}]).to_pylist() == [[], []]


def test_more_sections_than_there_may_be() -> None:
    random = np.random.default_rng(9)
    run = Run(None)
    for step in range(4 * table.MOST_SECTIONS):
        run.subscribe(expression_of(random))
        if step % 3 == 2:
            run.unsubscribe(min(run.trees))
        run.match([event_of(random) for _ in range(2)])
        assert run.live.joins is not None
        assert run.live.joins.statistics()["sections"] <= table.MOST_SECTIONS + 1
    run.close()


def test_asking_by_the_way_does_not_add_up() -> None:
    with History() as history, bittern.LiveMatcher(TWINS, history=history) as live:
        live.match({"a": 1})
        assert live.joins is not None
        for number in range(3 * table.MOST_SECTIONS):
            tree = bittern.parse(f"EXISTS d (d.a = {number})")
            assert isinstance(tree, Quantified)
            assert live.joins.holds([tree], {}) == [number == 1]
        assert live.joins.statistics()["sections"] <= table.MOST_SECTIONS + 1


# ------------------------------------------------------------------ threads


def test_threads_share_a_history() -> None:
    """Each event is sent by every thread: the first to come is new, and all others are not."""
    n_threads, n_events = 4, 60
    wrong: list[BaseException] = []
    answers: list[list[Any]] = [[] for _ in range(n_threads)]
    with History() as history, bittern.LiveMatcher(TWINS, history=history) as live:
        begin = threading.Barrier(n_threads + 2)

        def guarded(work: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                try:
                    begin.wait()
                    work()
                except BaseException as error:  # noqa: BLE001  told below
                    wrong.append(error)

            return run

        def match(thread: int) -> None:
            order = np.random.default_rng(thread).permutation(n_events)
            for part in np.array_split(order, 20):
                found = live.match([{"a": int(key)} for key in part])
                answers[thread] += zip(part.tolist(), found.to_pylist(), strict=True)

        def change() -> None:
            for number in range(40):
                live.subscribe(f"more{number}", f"EXISTS d (d.a = a AND d.b = {number})")
                live.subscribe(f"less{number}", f"a < 0 AND FORALL d (d.c{number % 3} > a)")
                if number > 3:
                    live.unsubscribe(f"more{number - 3}")

        def append() -> None:
            for number in range(40):
                history.append([{"a": n_events + number}])

        works: list[Callable[[], None]] = [partial(match, thread) for thread in range(n_threads)]
        works += [change, append]
        threads = [threading.Thread(target=guarded(work)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        assert len(history) == n_threads * n_events + 40
        counts = Counter(name for own in answers for _, row in own for name in row)
        assert counts == {"new": n_events, "old": (n_threads - 1) * n_events}
        assert len({key for own in answers for key, row in own if row == ["new"]}) == n_events
        stored = [typed.words.shape[1] for _, typed in history.documents.scan(["a"])]
        assert sum(stored) == len(history)
        every = [{"a": key} for key in range(n_events + 40)]
        assert live.match(every, remember=False).to_pylist() == [["old"]] * len(every)


# ------------------------------------------------------------------ bombs


def either(number: int) -> str:
    return f"(d.a{number} = a{number} OR d.b{number} = b{number})"


@pytest.mark.parametrize(
    "text",
    [
        f"EXISTS d ({' AND '.join(map(either, range(30)))})",
        f"EXISTS d ({' AND '.join(map(either, range(1000)))})",
        f"FORALL d ({' OR '.join(f'(d.a{i} = x AND d.b{i} = y)' for i in range(40))})",
        f"EXISTS d {'(' * 5000}d.a = a{')' * 5000}",
        f"EXISTS d ({'NOT (' * 300}d.a = a{')' * 300})",
    ],
    ids=["30 pairs", "1,000 pairs", "FORALL", "parentheses", "negations"],
)
def test_bombs_are_refused_at_the_door(text: str) -> None:
    with pytest.raises(SubscriptionError, match="'bomb'"):
        bittern.Index.build({"good": "a = 1", "bomb": text})
    with bittern.LiveMatcher() as live, pytest.raises(SubscriptionError, match="'bomb'"):
        live.subscribe("bomb", text)


def test_long_conditions() -> None:
    """1,000 parts under AND, and as many quantifiers in one expression."""
    texts = {
        "all": f"EXISTS d ({' AND '.join(f'd.a{i} = a{i}' for i in range(1000))})",
        "some": f"FORALL d ({' OR '.join(f'd.a{i} != a{i}' for i in range(1000))})",
        "many": " AND ".join(f"EXISTS d (d.a{i} = a{i})" for i in range(1000)),
    }
    event = {f"a{i}": i for i in range(1000)}
    with (
        History() as history,
        bittern.LiveMatcher(bittern.Index.build(texts), history=history) as live,
    ):
        found = live.match([event, event, event | {"a999": 0}])
        assert [sorted(row) for row in found.to_pylist()] == [["some"], ["all", "many"], ["some"]]


@pytest.mark.parametrize("n", [200, 400])
def test_alternatives_are_compared_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long OR is a list of alternatives already: it takes no time that grows with its cube."""
    compared = 0
    pruned = alternatives._pruned

    def counted(alternatives: Any, most: int) -> Any:
        nonlocal compared
        compared += len(alternatives)
        return pruned(alternatives, most)

    monkeypatch.setattr(alternatives, "_pruned", counted)
    tree = bittern.parse(f"EXISTS d ({' OR '.join(f'd.a = a{i}' for i in range(n))})")
    assert isinstance(tree, Quantified)
    with contextlib.suppress(ValueError):
        alternatives.entry_of(tree)
    assert compared <= 20 * n


def test_products_are_not_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of a product may go again: it is refused, or pruned, before it takes minutes."""
    longest = 0
    pruned = alternatives._pruned

    def measured(alternatives: Any, most: int) -> Any:
        nonlocal longest
        longest = max(longest, len(alternatives))
        return pruned(alternatives, most)

    monkeypatch.setattr(alternatives, "_pruned", measured)
    parts = [" OR ".join(f"d.a = {first + i}" for i in range(260)) for first in (0, 1)]
    tree = bittern.parse(f"EXISTS d (({parts[0]}) AND ({parts[1]}))")
    assert isinstance(tree, Quantified)
    with contextlib.suppress(ValueError):
        alternatives.entry_of(tree)
    assert longest <= 64 * alternatives.MOST_ALTERNATIVES
