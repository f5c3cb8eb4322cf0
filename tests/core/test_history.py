"""Events compared with documents seen before: the whole engine against nested loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bittern
import oracle
from bittern.errors import OptionError, SubscriptionError
from bittern.history.history import History
from bittern.history.joins import joins
from bittern.history.joins.phases import AUTO, CONSTANTS, JOINS
from bittern.history.table.table import JoinTable
from bittern.language.printer import print_expression
from bittern.language.syntax import Expression
from effort import examples
from steady import said_here
from strategies import documents, joined_events, joined_expressions

Event = Mapping[str, Any]


def expected(
    trees: Sequence[Expression],
    events: Sequence[Event],
    before: Sequence[Event],
    *,
    at_once: bool = False,
    keep: int | None = None,
) -> list[list[int]]:
    """Nested loops: each event against each document before it."""
    seen, found = list(before), []
    for event in events:
        known = seen if not at_once else list(before)
        known = known if keep is None else known[-keep:]
        found.append([i for i, tree in enumerate(trees) if oracle.matches(tree, event, known)])
        seen.append(event)
    return found


def texts(trees: Sequence[Expression]) -> dict[int, str]:
    return {i: print_expression(tree) for i, tree in enumerate(trees)}


@given(
    st.lists(joined_expressions(), min_size=1, max_size=6),
    documents(),
    st.lists(joined_events(), max_size=8),
    st.sampled_from([AUTO, JOINS, CONSTANTS]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, None, 1, 3]),
)
def test_matches_are_those_of_nested_loops(
    trees: list[Expression],
    before: list[Event],
    events: list[Event],
    phases: str,
    prefilter: bool,  # noqa: FBT001  drawn
    at_once: bool,  # noqa: FBT001  drawn
    keep: int | None,
) -> None:
    """Whatever goes first, in strict order and at once, with all documents and with few."""
    index = bittern.Index.build(texts(trees))
    with History(keep=keep) as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.joins is not None
        live.joins.phases, live.joins.prefilter = phases, prefilter
        history.append(before)
        found = live.match(events, at_once=at_once)
        assert [sorted(row) for row in found.to_pylist()] == expected(
            trees, events, before, at_once=at_once, keep=keep
        )
        seen = [*before, *events]
        assert history.end == len(seen)
        again = live.match(events, remember=False, at_once=True)
        assert [sorted(row) for row in again.to_pylist()] == expected(
            trees, events, seen, at_once=True, keep=keep
        )
        assert history.end == len(seen)


class Changing(RuleBasedStateMachine):
    """Subscriptions, documents and expiry in any order, with a history on disk or in memory."""

    @initialize(keep=st.sampled_from([None, None, 2, 5]))
    def begin(self, keep: int | None) -> None:
        self.history = History(keep=keep)
        self.live = bittern.LiveMatcher(history=self.history)
        self.keep = keep
        self.trees: dict[int, Expression] = {}
        self.seen: list[Event] = []
        self.next = 0

    @rule(tree=joined_expressions())
    def subscribe(self, tree: Expression) -> None:
        self.live.subscribe(self.next, print_expression(tree))
        self.trees[self.next] = tree
        self.next += 1

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        if self.trees:
            gone = data.draw(st.sampled_from(sorted(self.trees)))
            self.live.unsubscribe(gone)
            del self.trees[gone]

    @rule(events=documents())
    def append(self, events: list[Event]) -> None:
        self.history.append(events)
        self.seen += events

    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(0, self.history.end))
        self.history.expire(before)
        gone = max(0, before - (self.history.end - len(self.seen)))
        self.seen = self.seen[gone:]

    @rule(events=st.lists(joined_events(), max_size=4), at_once=st.booleans())
    def match(self, events: list[Event], at_once: bool) -> None:  # noqa: FBT001  drawn
        found = self.live.match(events, at_once=at_once)
        names, trees = list(self.trees), list(self.trees.values())
        right = expected(trees, events, self.seen, at_once=at_once, keep=self.keep)
        assert [sorted(row) for row in found.to_pylist()] == [
            sorted(names[i] for i in row) for row in right
        ]
        self.seen += events

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "history"):
            expected_ = len(self.seen) if self.keep is None else min(self.keep, len(self.seen))
            assert len(self.history) == expected_

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.live.close()
            self.history.close()


TestChanging = Changing.TestCase
TestChanging.settings = examples(0.5, steps=12)


# ------------------------------------------------------------------ dense random cases


def dense_value(random: np.random.Generator) -> Any:
    """A value that others are likely to equal, of a kind that others are likely to have."""
    roll = int(random.integers(20))
    if roll < 13:
        return int(random.integers(4))
    if roll < 17:
        return ["x", "y", "a long string, one", "a long string, two"][int(random.integers(4))]
    return [None, float("nan"), 1.5][roll - 17]


def dense_event(random: np.random.Generator) -> dict[str, Any]:
    return {name: dense_value(random) for name in "abc" if random.random() < 0.9}


def dense_condition(random: np.random.Generator, depth: int) -> str:
    if depth and random.random() < 0.65:
        word = " AND " if random.random() < 0.7 else " OR "
        parts = [dense_condition(random, depth - 1) for _ in range(int(random.integers(2, 4)))]
        return ("NOT " if random.random() < 0.15 else "") + "(" + word.join(parts) + ")"
    left, right = (str(random.choice(list("abc"))) for _ in range(2))
    operator = str(random.choice(["=", "=", "!=", "<", "<=", ">", ">="]))
    roll = random.random()
    if roll < 0.7:
        return f"d.{left} {operator} {right}"
    if roll < 0.85:
        return f"d.{left} {operator} {int(random.integers(4))}"
    return [f"{left} < 2", f"d.{left} IS NULL", f"d.{left} < d.{right}", f"{left} != {right}"][
        int(random.integers(4))
    ]


def dense_expression(random: np.random.Generator) -> str:
    windows = ["", "", "", "IN LAST 2", "IN LAST 3 PER a", "PER b", "IN LAST 1 PER a, c"]
    parts = [
        f"{random.choice(['EXISTS', 'FORALL', 'NOT EXISTS'])} d {random.choice(windows)} "
        f"({dense_condition(random, int(random.integers(3)))})"
        for _ in range(int(random.integers(1, 3)))
    ]
    if random.random() < 0.5:
        parts.append(f"{random.choice(list('abc'))} {random.choice(['<', '>='])} 2")
    return (" AND " if random.random() < 0.7 else " OR ").join(parts)


@pytest.mark.parametrize("seed", range(12))
def test_dense_random_cases(seed: int) -> None:
    """Few values and attributes, so that everything meets everything."""
    random = np.random.default_rng(seed)
    written = [dense_expression(random) for _ in range(40)]
    trees = [bittern.parse(text) for text in written]
    before = [dense_event(random) for _ in range(int(random.integers(0, 12)))]
    events = [dense_event(random) for _ in range(12)]
    keep = [None, None, 4][seed % 3]
    for phases in (JOINS, CONSTANTS):
        with History(keep=keep) as history:
            history.append(before)
            index = bittern.Index.build(dict(enumerate(written)))
            with bittern.LiveMatcher(index, history=history) as live:
                assert live.joins is not None
                live.joins.phases = phases
                found = [sorted(row) for row in live.match(events).to_pylist()]
        right = expected(trees, events, before, keep=keep)
        wrong = [
            (written[i], event, i in own)
            for event, own, should in zip(events, found, right, strict=True)
            for i in set(own) ^ set(should)
        ]
        assert not wrong


# ------------------------------------------------------------------ what goes wrong


def test_at_once_is_at_once_over_many_blocks() -> None:
    index = bittern.Index.build({"new": "FORALL d (d.isbn != isbn)"})
    with bittern.LiveMatcher(index, history=History()) as live:
        found = live.match([{"isbn": 1}] * 20_000, at_once=True)
        assert len(found.subscriptions) == 20_000
        assert live.match([{"isbn": 1}]).to_pylist() == [[]]


def test_whoever_is_interrupted_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are stored before all else; what was to be known of them is built again."""
    index = bittern.Index.build({"new": "FORALL d (d.isbn != isbn)"})
    with History() as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.match([{"isbn": 1}]).to_pylist() == [["new"]]
        with monkeypatch.context() as patched:
            patched.setattr(JoinTable, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                live.match([{"isbn": 2}])
            history.append([{"isbn": 3}])  # for what is built again
        assert len(history) == 3
        assert live.match([{"isbn": n} for n in (1, 2, 3, 4)]).to_pylist() == [[], [], [], ["new"]]


#: Subscriptions that need a history, two that do not though they look so, and a plain one.
MIXED = {
    "exists": "EXISTS d (d.a = a)",
    "new": "a = 1 AND NOT EXISTS d (d.a = a)",
    "either": "a = 1 OR FORALL d (d.a < a)",
    "anyway": "a = 1 OR TRUE OR ∃ d (d.a = a)",
    "attribute": "a = 1 AND exists IS NULL",
    "plain": "a = 1",
}


@pytest.mark.parametrize("strategy", ["pivot", "counting"])
def test_without_a_history_quantifiers_are_left_out_with_one_warning(
    strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    index = bittern.Index.build(MIXED, strategy=strategy)
    right = [["anyway", "attribute", "plain"], ["anyway"]]
    events = [{"a": 1}, {"a": 2}]
    matcher = bittern.Matcher(index)
    for _ in range(2):
        assert matcher.match(events).to_pylist() == right
    assert matcher.match(events, limit=5).to_pylist() == right
    assert "3 subscription(s) are left out" in caplog.text
    assert "history=" in caplog.text
    with bittern.LiveMatcher(index) as live:
        assert live.match(events).to_pylist() == right
        live.unsubscribe("attribute")
        live.subscribe("more", "a = 2")
        assert live.match(events).to_pylist() == [["anyway", "plain"], ["anyway", "more"]]
        assert len(live) == len(MIXED)
        assert "either" in live
    assert len(said_here(caplog)) == 1
    for id_ in MIXED:
        explained = bittern.explain(index, {"a": 1}, id_)
        assert explained.matched == (id_ in right[0]), id_
        assert ("left out" in str(explained)) == (id_ in ("exists", "new", "either"))


def test_without_a_history_quantifiers_are_refused_at_the_door() -> None:
    with bittern.LiveMatcher(bittern.Index.build({"x": "a = 1"})) as live:
        for change, id_ in ((live.subscribe, "y"), (live.replace, "x")):
            with pytest.raises(SubscriptionError, match="history=") as caught:
                change(id_, "exists = 1 AND a = 1 AND NOT EXISTS d (d.a = a)")
            assert [(bad.id, bad.position) for bad in caught.value.bad] == [(id_, 29)]
        live.subscribe("attribute", "a = 1 AND exists IS NULL")
        put = [("x", "EXISTS d (d.a = a)", None), ("z", "a = 1", None)]
        [bad] = live.apply([], put, 1)
        assert (bad.id, bad.position) == ("x", 0)
        assert live.match({"a": 1}).to_pylist() == [["attribute", "z"]]


def test_a_history_serves_one_matcher() -> None:
    with History() as history:
        with bittern.LiveMatcher(history=history), pytest.raises(OptionError, match="another"):
            bittern.LiveMatcher(history=history)
        bittern.LiveMatcher(history=history).close()


@pytest.mark.parametrize("keep", [0, -1, 2**63, True, 1.5, "7 days"])
def test_keep_is_a_number_of_documents(keep: Any) -> None:
    with pytest.raises(OptionError, match="keep must be a whole number from 1 to 9,223"):
        History(keep=keep)


@pytest.mark.parametrize("before", ["x", None, 1.5, True])
def test_documents_expire_before_a_number(before: Any) -> None:
    with History() as history, pytest.raises(OptionError, match="the number of a document"):
        history.expire(before)


def test_what_was_remembered_is_there_when_a_folder_is_opened_again(tmp_path: Path) -> None:
    with bittern.LiveMatcher(history=tmp_path / "history") as live:
        live.subscribe("fell", "EXISTS d (d.isbn = isbn AND d.price > price)")
        live.match([{"isbn": "a", "price": 9}])
    with bittern.LiveMatcher(history=tmp_path / "history") as live:
        live.subscribe("fell", "EXISTS d (d.isbn = isbn AND d.price > price)")
        live.subscribe("rose", "EXISTS d (d.isbn = isbn AND d.price < price)")
        events = [{"isbn": "a", "price": 8}, {"isbn": "a", "price": 10}, {"isbn": "b", "price": 1}]
        assert live.match(events).to_pylist() == [["fell"], ["rose"], []]


def test_documents_that_came_without_a_word_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storing them worked, and what comes after storing did not."""
    index = bittern.Index.build({"new": "NOT EXISTS d (d.a = a)"})
    with History(keep=1) as history, bittern.LiveMatcher(index, history=history) as live:
        live.match([{"a": 1}])
        with monkeypatch.context() as patched:
            patched.setattr(History, "_let_go", lambda _: (_ for _ in ()).throw(OSError("full")))
            with pytest.raises(OSError, match="full"):
                history.append([{"a": 7}])
        assert live.match([{"a": 7}], remember=False).to_pylist() == [[]]


def test_keep_bounds_what_document_sets_hold() -> None:
    index = bittern.Index.build({"s": "flag = 1 AND EXISTS d (d.a < a AND d.b < b)"})
    sizes = []
    with History(keep=10) as history, bittern.LiveMatcher(index, history=history) as live:
        assert live.joins is not None
        for _ in range(4):
            live.match([{"a": i, "b": -i} for i in range(3000)])
            sizes.append(live.joins.statistics()["bytes"])
    assert max(sizes[1:]) <= 2 * sizes[0], sizes


def test_an_empty_batch_tells_nothing_of_what_events_need() -> None:
    index = bittern.Index.build({i: f"EXISTS d (d.a = a AND d.b != {i})" for i in range(50)})
    with bittern.LiveMatcher(index, history=History()) as live:
        assert live.joins is not None
        live.joins.prefilter = False
        live.match([])
        live.match([{"a": 1}] * 300)
        needed = live.joins.estimate.needed if live.joins.estimate else None
        live.match([])
        live.match([{"a": 1}])
        assert live.joins.estimate is not None
        assert needed == live.joins.estimate.needed == 50


def test_the_first_block_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows yet how much of each event has to be held."""
    assert joins._MOST_ANSWERS <= 1 << 24
    monkeypatch.setattr(joins, "_MOST_ANSWERS", 1 << 20)
    texts = {i: f"EXISTS d (d.a = a AND d.b != {i})" for i in range(500)}
    with bittern.LiveMatcher(bittern.Index.build(texts), history=History()) as live:
        assert live.joins is not None
        live.joins.prefilter = False
        sizes = []
        run = live.joins.run

        def counted(events: Any, *rest: Any, **options: Any) -> Any:
            sizes.append(len(events))
            return run(events, *rest, **options)

        live.joins.run = counted  # type: ignore[method-assign]
        live.match([{"a": 1, "b": 0}] * 4_000)
    assert sum(sizes) == 4_000
    assert sizes[0] <= 256
    assert max(sizes) * 500 <= 1 << 20
